
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "stub_workers.h"

#include <sys/prctl.h>
#include <sys/wait.h>


worker_t           worker[WORKERS];
ngx_kexec_zone_t  *zone;
owner_t            own[CLAIMS];

static ngx_uint_t  current;
static ngx_uint_t  ids;


void
be(ngx_uint_t k)
{
    worker[current].self = ngx_kexec_zone_self;

    current = k;

    ngx_pid = worker[k].pid;
    ngx_kexec_zone_self = worker[k].self;
}


void
start(ngx_uint_t k)
{
    ngx_pid_t  pid, parent;

    parent = getpid();
    pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);

        /* unless the parent died before that */

        while (getppid() == parent) {
            pause();
        }

        _exit(0);
    }

    memset(&worker[k], 0, sizeof(worker[k]));

    worker[k].pid = pid;
    worker[k].self.worker = NGX_KEXEC_NONE;
    worker[k].channel = stub_channels();

    be(k);

    assert_int_equal(ngx_kexec_zone_init_process(zone, &stub.cycle), NGX_OK);
}


void
stop(ngx_uint_t k)
{
    if (worker[k].pid) {
        kill(worker[k].pid, SIGKILL);
        waitpid(worker[k].pid, NULL, 0);
    }
}


void
notices(void)
{
    stub_channel(worker[current].channel);
}


void
handler(ngx_kexec_claim_t *claim)
{
    owner_t *o = claim->data;

    o->notices++;

    if (o->leaves) {
        ngx_kexec_claim_leave(o->leaves);

        if (o->watches) {
            (void) ngx_kexec_claim_watch(zone, o->leaves, 64);
        }

        free(o->frees);

        o->leaves = NULL;
        o->frees = NULL;
    }
}


owner_t *
owner(ngx_uint_t i)
{
    memset(&own[i], 0, sizeof(owner_t));

    own[i].claim.handler = handler;
    own[i].claim.data = &own[i];

    return &own[i];
}


int
setup(void **state)
{
    ngx_uint_t  k;

    stub_forget_channels();

    zone = stub_zone(SIZE);
    assert_non_null(zone);

    current = 0;
    ngx_process = NGX_PROCESS_WORKER;

    for (k = 0; k < WORKERS; k++) {
        start(k);
    }

    be(0);

    for (k = 0; k < CLAIMS; k++) {
        owner(k);
    }

    return 0;
}


int
teardown(void **state)
{
    ngx_uint_t  k, bad;

    be(current);

    bad = ngx_kexec_zone_wrong(zone);

    for (k = 0; k < WORKERS; k++) {
        stop(k);
        free(worker[k].self.owners);
        memset(&worker[k], 0, sizeof(worker[k]));
    }

    memset(&ngx_kexec_zone_self, 0, sizeof(ngx_kexec_zone_self));

    stub_free(0);

    return bad ? -1 : 0;
}


void
new_context(ngx_kexec_context_t *ctx, const char *language,
    ngx_uint_t is_default)
{
    memset(ctx, 0, sizeof(ngx_kexec_context_t));

    sprintf((char *) ctx->cwd, "%08x-0000-4000-8000-%012d", (int) getpid(),
            (int) ++ids);
    memcpy(ctx->id, ctx->cwd, NGX_KEXEC_UUID_LEN);

    ctx->cwd_len = sprintf((char *) ctx->cwd, "/home/user");
    ctx->language_len = sprintf((char *) ctx->language, "%s", language);
    ctx->kind = NGX_KEXEC_LANG_PYTHON;
    ctx->is_default = is_default;
}


ngx_kexec_ref_t
ready_context(ngx_kexec_context_t *ctx)
{
    owner_t  o;

    memset(&o, 0, sizeof(owner_t));
    new_context(ctx, "python", 0);

    assert_int_equal(ngx_kexec_zone_create(zone, ctx, &o.claim), NGX_OK);

    ngx_kexec_zone_created(&o.claim);
    ngx_kexec_claim_leave(&o.claim);

    return ctx->ref;
}


ngx_int_t
enter(ngx_uint_t i, ngx_kexec_ref_t context)
{
    own[i].claim.context = context;

    return ngx_kexec_claim_enter(zone, &own[i].claim, 64);
}


ngx_int_t
operate(ngx_uint_t i, ngx_kexec_ref_t context, ngx_kexec_claim_kind_e kind)
{
    own[i].claim.context = context;

    return ngx_kexec_claim_operate(zone, &own[i].claim, kind, 64);
}


ngx_int_t
watch(ngx_uint_t i, ngx_kexec_ref_t context)
{
    own[i].claim.context = context;

    return ngx_kexec_claim_watch(zone, &own[i].claim, zone->nclaims);
}


ngx_kexec_claim_state_e
look(ngx_uint_t i)
{
    ngx_kexec_claim_look(&own[i].claim, &own[i].look);

    return own[i].look.state;
}


ngx_kexec_zone_claim_t *
record(ngx_uint_t i)
{
    return &zone->claims[own[i].claim.ref.index];
}


void
leave(ngx_uint_t i)
{
    ngx_kexec_claim_leave(&own[i].claim);
}


ngx_str_t
str(const char *text)
{
    ngx_str_t  s;

    s.len = strlen(text);
    s.data = (u_char *) text;

    return s;
}
