
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/prctl.h>
#include <sys/wait.h>

#include "stub_nginx.h"
#include <ngx_kexec_wake.h>


/*
 * What each function of the zone answers, in one process that plays several
 * workers: each of them has a process of its own that can be killed, and this
 * one takes their places in turn.
 */


#define SIZE     (256 * 1024)
#define WORKERS  3
#define CLAIMS   8


typedef struct {
    ngx_kexec_claim_t       claim;
    ngx_uint_t              notices;
    ngx_kexec_claim_look_t  look;       /* the last one of LOOK() */
    ngx_kexec_claim_t      *leaves;     /* what its handler ends */
} owner_t;


static struct {
    ngx_pid_t              pid;
    ngx_kexec_zone_self_t  self;
    ngx_uint_t             channel;
} worker[WORKERS];

static ngx_uint_t         current;
static ngx_kexec_zone_t  *zone;
static owner_t            own[CLAIMS];
static ngx_uint_t         ids;


/* takes a worker's place */

static void
be(ngx_uint_t k)
{
    worker[current].self = ngx_kexec_zone_self;

    current = k;

    ngx_pid = worker[k].pid;
    ngx_kexec_zone_self = worker[k].self;
}


static void
start(ngx_uint_t k)
{
    ngx_pid_t  pid;

    pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for ( ;; ) {
            pause();
        }
    }

    memset(&worker[k], 0, sizeof(worker[k]));

    worker[k].pid = pid;
    worker[k].self.worker = NGX_KEXEC_NONE;
    worker[k].channel = stub_channels();

    be(k);

    assert_int_equal(ngx_kexec_zone_init_process(zone, &stub.cycle), NGX_OK);
}


static void
stop(ngx_uint_t k)
{
    if (worker[k].pid) {
        kill(worker[k].pid, SIGKILL);
        waitpid(worker[k].pid, NULL, 0);
    }
}


/* what the worker that one is would do when it is woken */

static void
notices(void)
{
    stub_channel(worker[current].channel);
}


static void
handler(ngx_kexec_claim_t *claim)
{
    owner_t *o = claim->data;

    o->notices++;

    if (o->leaves) {
        ngx_kexec_claim_leave(o->leaves);
        o->leaves = NULL;
    }
}


static owner_t *
owner(ngx_uint_t i)
{
    memset(&own[i], 0, sizeof(owner_t));

    own[i].claim.handler = handler;
    own[i].claim.data = &own[i];

    return &own[i];
}


static ngx_uint_t
check(void)
{
    ngx_uint_t  bad;

    ngx_kexec_zone_lock(zone);
    bad = ngx_kexec_zone_check(zone, 0);
    ngx_kexec_zone_unlock(zone);

    return bad;
}


static int
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


static int
teardown(void **state)
{
    ngx_uint_t  k, bad;

    bad = check();

    for (k = 0; k < WORKERS; k++) {
        stop(k);
        free(worker[k].self.owners);
        memset(&worker[k], 0, sizeof(worker[k]));
    }

    memset(&ngx_kexec_zone_self, 0, sizeof(ngx_kexec_zone_self));

    stub_free(0);

    return bad ? -1 : 0;
}


static void
new_context(ngx_kexec_context_t *ctx, const char *language,
    ngx_uint_t is_default)
{
    memset(ctx, 0, sizeof(ngx_kexec_context_t));

    sprintf((char *) ctx->cwd, "00000000-0000-4000-8000-%012d", (int) ++ids);
    memcpy(ctx->id, ctx->cwd, NGX_KEXEC_UUID_LEN);

    ctx->cwd_len = sprintf((char *) ctx->cwd, "/home/user");
    ctx->language_len = sprintf((char *) ctx->language, "%s", language);
    ctx->kind = NGX_KEXEC_LANG_PYTHON;
    ctx->is_default = is_default;
}


/* a context that is ready, and whose slot is free */

static ngx_kexec_ref_t
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


static ngx_int_t
enter(ngx_uint_t i, ngx_kexec_ref_t context)
{
    own[i].claim.context = context;

    return ngx_kexec_claim_enter(zone, &own[i].claim, 64);
}


static ngx_int_t
operate(ngx_uint_t i, ngx_kexec_ref_t context, ngx_kexec_claim_kind_e kind)
{
    own[i].claim.context = context;

    return ngx_kexec_claim_operate(zone, &own[i].claim, kind);
}


static ngx_int_t
watch(ngx_uint_t i, ngx_kexec_ref_t context)
{
    own[i].claim.context = context;

    return ngx_kexec_claim_watch(zone, &own[i].claim);
}


static ngx_kexec_claim_state_e
look(ngx_uint_t i)
{
    ngx_kexec_claim_look(&own[i].claim, &own[i].look);

    return own[i].look.state;
}


static ngx_kexec_zone_claim_t *
record(ngx_uint_t i)
{
    return &zone->claims[own[i].claim.ref.index];
}


static void
leave(ngx_uint_t i)
{
    ngx_kexec_claim_leave(&own[i].claim);
}


static ngx_str_t
str(const char *text)
{
    ngx_str_t  s;

    s.len = strlen(text);
    s.data = (u_char *) text;

    return s;
}


static void
test_add(void **state)
{
    uint64_t           instance;
    ngx_kexec_zone_t  *one, *two;

    stub_reset();

    assert_null(stub_add("kexec", SIZE - 1));
    assert_int_equal(stub.level, NGX_LOG_EMERG);
    assert_non_null(strstr((char *) stub.error, "too small"));

    one = stub_add("kexec", SIZE);
    assert_non_null(one);

    assert_null(stub_add("other", SIZE));
    assert_non_null(strstr((char *) stub.error, "one kexec zone only"));

    assert_ptr_equal(stub_init(0), one);
    assert_string_equal((char *) one->shpool->log_ctx,
                        " in kexec zone \"kexec\"");

    assert_int_equal(one->ncontexts, SIZE / 4096);
    assert_int_equal(one->nclaims, SIZE / 4096 * 16);

    instance = ngx_kexec_zone_instance(one);
    assert_int_not_equal(instance, 0);

    /* reloads */

    stub_reload();
    assert_null(stub_add("kexec", 2 * SIZE));
    assert_int_equal(stub.level, NGX_LOG_EMERG);
    assert_non_null(strstr((char *) stub.error, "cannot be changed"));

    assert_null(stub_add("other", SIZE));
    assert_non_null(strstr((char *) stub.error, "cannot be renamed"));

    two = stub_add("kexec", SIZE);
    assert_non_null(two);
    assert_ptr_not_equal(two, one);
    assert_ptr_equal(stub_init(0), two);

    assert_ptr_equal(two->sh, one->sh);
    assert_ptr_equal(two->claims, one->claims);
    assert_ptr_equal(two->defaults, one->defaults);
    assert_int_equal(ngx_kexec_zone_instance(two), instance);

    stub_free(0);

    /* any other size has room for its records, too */

    assert_non_null(stub_zone(SIZE + 4096 - 1));
    stub_free(0);

    assert_non_null(stub_zone(64 * 1024 * 1024));
    stub_free(0);
}


static void
test_exists(void **state)
{
    ngx_kexec_zone_sh_t  *sh;

    /* shm.exists: another process has made it */

    sh = zone->sh;
    stub.zones[0].shm.exists = 1;

    zone->sh = NULL;
    assert_int_equal(stub.zones[0].init(&stub.zones[0], NULL), NGX_OK);
    assert_ptr_equal(zone->sh, sh);
}


static void
test_contexts(void **state)
{
    ngx_uint_t               i, n;
    ngx_str_t                id, python, text;
    ngx_array_t             *list;
    ngx_kexec_ref_t          ref;
    ngx_kexec_context_t      ctx, got, *c;
    ngx_kexec_zone_stat_t    stat;

    python = str("python");

    assert_int_equal(ngx_kexec_zone_default(zone, &python, &got),
                     NGX_DECLINED);

    new_context(&ctx, "python", 1);
    id.len = NGX_KEXEC_UUID_LEN;
    id.data = ctx.id;

    assert_int_equal(ngx_kexec_zone_find(zone, &id, &got), NGX_DECLINED);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    assert_int_not_equal(ctx.ref.generation, 0);
    assert_int_equal(own[0].claim.context.generation, ctx.ref.generation);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);

    assert_int_equal(ngx_kexec_zone_find(zone, &id, &got), NGX_OK);
    assert_int_equal(got.state, NGX_KEXEC_CONTEXT_CREATING);
    assert_int_equal(got.serial, ctx.serial);
    assert_int_equal(got.kind, NGX_KEXEC_LANG_PYTHON);
    assert_string_equal((char *) got.cwd, "/home/user");
    assert_string_equal((char *) got.language, "python");
    assert_int_equal(got.phase, NGX_KEXEC_PHASE_PREPARING);
    assert_int_not_equal(got.held_since, 0);
    assert_true(got.is_default);

    id.len--;
    assert_int_equal(ngx_kexec_zone_find(zone, &id, &got), NGX_DECLINED);

    assert_int_equal(ngx_kexec_zone_default(zone, &python, &got), NGX_OK);
    assert_int_equal(got.ref.index, ctx.ref.index);

    /* nobody else can create that one, or one of that id */

    new_context(&got, "python", 1);
    assert_int_equal(ngx_kexec_zone_create(zone, &got, &own[1].claim),
                     NGX_BUSY);
    assert_memory_equal(got.id, ctx.id, NGX_KEXEC_UUID_LEN);
    assert_int_equal(own[1].claim.ref.generation, 0);

    new_context(&got, "r", 0);
    memcpy(got.id, ctx.id, NGX_KEXEC_UUID_LEN);
    assert_int_equal(ngx_kexec_zone_create(zone, &got, &own[1].claim),
                     NGX_BUSY);
    assert_int_equal(got.ref.index, ctx.ref.index);

    /* what its creator found out */

    ctx.session.len = sprintf((char *) ctx.session.data, "session");
    ctx.kernel.len = sprintf((char *) ctx.kernel.data, "kernel");
    ctx.spec_len = sprintf((char *) ctx.spec, "python3");
    ctx.server_len = sprintf((char *) ctx.server, "127.0.0.1:8888");
    ctx.socklen = 16;
    memset(ctx.sockaddr, 7, 16);
    ctx.ready = 1;
    ctx.prepared = 1;
    ctx.owes_restore = 1;
    ctx.dirty = 1;
    ctx.epoch = 3;
    ctx.kind = NGX_KEXEC_LANG_R;

    ngx_kexec_zone_update(&own[1].claim, &ctx);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &got), NGX_OK);
    assert_false(got.ready);

    ngx_kexec_zone_update(&own[0].claim, &ctx);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &got), NGX_OK);
    assert_int_equal(got.session.len, 7);
    assert_memory_equal(got.kernel.data, "kernel", 6);
    assert_string_equal((char *) got.spec, "python3");
    assert_memory_equal(got.server, "127.0.0.1:8888", 14);
    assert_memory_equal(got.sockaddr, ctx.sockaddr, 16);
    assert_true(got.ready && got.prepared && got.owes_restore && got.dirty);
    assert_int_equal(got.epoch, 3);
    assert_int_equal(got.kind, NGX_KEXEC_LANG_R);

    ctx.dirty = 0;
    ctx.epoch = 2;
    ngx_kexec_zone_update(&own[0].claim, &ctx);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &got), NGX_OK);
    assert_false(got.dirty);
    assert_int_equal(got.epoch, 3);

    assert_int_equal(ngx_kexec_zone_list(zone, NULL)->nelts, 0);

    ngx_kexec_zone_created(&own[0].claim);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &got), NGX_OK);
    assert_int_equal(got.state, NGX_KEXEC_CONTEXT_READY);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);

    leave(0);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &got), NGX_OK);
    assert_int_equal(got.phase, NGX_KEXEC_PHASE_FREE);
    assert_int_equal(got.held_since, 0);

    /* many, in order, until the zone is full */

    for (n = 1; /* void */ ; n++) {
        new_context(&got, "python", 0);
        own[0].claim.ref.generation = 0;

        if (ngx_kexec_zone_create(zone, &got, &own[0].claim) != NGX_OK) {
            break;
        }

        ngx_kexec_zone_created(&own[0].claim);
        leave(0);
    }

    assert_int_equal(n, SIZE / 4096);

    list = ngx_kexec_zone_list(zone, NULL);
    assert_int_equal(list->nelts, n);

    c = list->elts;

    for (i = 1; i < n; i++) {
        assert_true(c[i - 1].serial < c[i].serial);
    }

    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.contexts, n);
    assert_int_equal(stat.max_contexts, n);
    assert_int_equal(stat.max_claims, 16 * n);
    assert_int_equal(stat.claims, 0);

    /* one is found gone: another one has its place, in order, not its ref */

    ref = c[20].ref;
    assert_int_equal(enter(0, ref), NGX_OK);
    ngx_kexec_zone_remove(&own[0].claim);
    assert_int_equal(own[0].claim.ref.generation, 0);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &got), NGX_DECLINED);

    ready_context(&got);
    assert_int_equal(got.ref.index, ref.index);
    assert_int_not_equal(got.ref.generation, ref.generation);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_DECLINED);

    c = ngx_kexec_zone_list(zone, NULL)->elts;
    assert_int_equal(c[n - 1].ref.index, ref.index);

    /* failures give way when there is no room */

    ref = c[5].ref;
    assert_int_equal(enter(0, ref), NGX_OK);
    ngx_kexec_zone_remove(&own[0].claim);

    new_context(&got, "java", 1);
    assert_int_equal(ngx_kexec_zone_create(zone, &got, &own[0].claim), NGX_OK);
    text = str("no kernel for java");
    ngx_kexec_zone_failed(&own[0].claim, 500, &text);
    text = str("java");
    assert_int_equal(ngx_kexec_zone_default(zone, &text, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_FAILED);

    ready_context(&got);
    assert_int_equal(ngx_kexec_zone_default(zone, &text, &ctx), NGX_DECLINED);

    new_context(&got, "java", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &got, &own[0].claim),
                     NGX_DECLINED);
    assert_int_equal(own[0].claim.ref.generation, 0);
}


static void
test_failed(void **state)
{
    ngx_str_t             text, python, id;
    ngx_kexec_ref_t       old;
    ngx_kexec_context_t   ctx, got;
    u_char                longest[300];

    python = str("python");
    text = str("the kernel did not start");

    new_context(&ctx, "python", 1);
    id.len = NGX_KEXEC_UUID_LEN;
    id.data = ctx.id;

    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    old = ctx.ref;

    assert_int_equal(watch(1, ctx.ref), NGX_OK);
    assert_int_equal(enter(2, ctx.ref), NGX_AGAIN);

    ngx_kexec_zone_failed(&own[0].claim, 503, &text);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_NONE);

    notices();
    assert_int_equal(own[1].notices, 1);
    assert_int_equal(own[2].notices, 1);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(own[2].look.verdict, NGX_KEXEC_VERDICT_DELETED);
    leave(2);

    /* told to those who have a reference or the language, not by id */

    assert_int_equal(ngx_kexec_zone_find(zone, &id, &got), NGX_DECLINED);
    assert_int_equal(ngx_kexec_zone_get(zone, &old, &got), NGX_OK);
    assert_int_equal(got.state, NGX_KEXEC_CONTEXT_FAILED);
    assert_int_equal(got.failure_status, 503);
    assert_string_equal((char *) got.failure, "the kernel did not start");
    assert_int_equal(ngx_kexec_zone_default(zone, &python, &got), NGX_OK);
    assert_int_equal(enter(3, old), NGX_DECLINED);
    assert_int_equal(operate(3, old, NGX_KEXEC_CLAIM_DELETE), NGX_DECLINED);
    assert_int_equal(watch(3, old), NGX_OK);

    /* until somebody tries again */

    new_context(&ctx, "python", 1);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);

    notices();
    assert_int_equal(own[1].notices, 2);
    assert_int_equal(own[3].notices, 1);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_WATCHING);
    assert_int_equal(ngx_kexec_zone_get(zone, &old, &got), NGX_DECLINED);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &got), NGX_OK);
    assert_int_equal(got.state, NGX_KEXEC_CONTEXT_CREATING);

    leave(1);
    leave(3);

    /* a creator that just leaves */

    assert_int_equal(watch(1, ctx.ref), NGX_OK);
    leave(0);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &got), NGX_OK);
    assert_int_equal(got.state, NGX_KEXEC_CONTEXT_FAILED);
    assert_int_equal(got.failure_status, 503);
    notices();
    assert_int_equal(own[1].notices, 3);

    /* a sentence that is too long is cut between characters */

    memset(longest, 'a', sizeof(longest));
    memcpy(longest + 253, "\xe2\x82\xac", 3);
    text.data = longest;
    text.len = sizeof(longest);

    new_context(&ctx, "python", 1);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    ngx_kexec_zone_failed(&own[0].claim, 500, &text);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &got), NGX_OK);
    assert_int_equal(got.failure_len, 253);

    /* one that is no default is gone */

    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    assert_int_equal(enter(2, ctx.ref), NGX_AGAIN);
    ngx_kexec_zone_failed(&own[0].claim, 500, &text);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &got), NGX_DECLINED);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_ENDED);

    /* one that was created cannot fail any more */

    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    ngx_kexec_zone_created(&own[0].claim);
    ngx_kexec_zone_failed(&own[0].claim, 500, &text);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &got), NGX_OK);
    assert_int_equal(got.state, NGX_KEXEC_CONTEXT_READY);
    assert_int_equal(got.phase, NGX_KEXEC_PHASE_FREE);
}


static void
test_queue(void **state)
{
    ngx_uint_t               i;
    ngx_kexec_ref_t          ref, none;
    ngx_kexec_context_t      ctx;
    ngx_kexec_zone_stat_t    stat;

    ref = ready_context(&ctx);

    none = ref;
    none.generation++;
    assert_int_equal(enter(0, none), NGX_DECLINED);
    none.index = 1000000;
    assert_int_equal(enter(0, none), NGX_DECLINED);
    memset(&none, 0, sizeof(none));
    assert_int_equal(enter(0, none), NGX_DECLINED);

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[0].look.position, 0);

    assert_int_equal(enter(1, ref), NGX_AGAIN);
    be(1);
    assert_int_equal(enter(2, ref), NGX_AGAIN);
    be(0);
    assert_int_equal(enter(3, ref), NGX_AGAIN);

    own[4].claim.context = ref;
    assert_int_equal(ngx_kexec_claim_enter(zone, &own[4].claim, 3), NGX_BUSY);
    assert_int_equal(own[4].claim.ref.generation, 0);

    assert_int_equal(look(1), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[1].look.position, 1);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[3].look.position, 3);

    /* a claim of another worker is nobody's business */

    assert_int_equal(look(2), NGX_KEXEC_CLAIM_NONE);
    own[2].claim.ref.index = record(3) - zone->claims;
    own[2].claim.ref.generation = 12345;
    leave(2);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_QUEUED);

    ngx_kexec_claim_phase(&own[0].claim, NGX_KEXEC_PHASE_RUNNING);
    ngx_kexec_claim_phase(&own[1].claim, NGX_KEXEC_PHASE_RESTORING);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.phase, NGX_KEXEC_PHASE_RUNNING);
    assert_int_equal(ctx.queued, 3);

    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.held, 1);
    assert_int_equal(stat.queued, 3);
    assert_int_equal(stat.claims, 4);
    assert_int_equal(stat.dead, 0);

    /* in the order of arrival, and nobody can get in between */

    leave(0);
    assert_int_equal(own[1].notices, 0);
    notices();
    assert_int_equal(own[1].notices, 1);
    assert_int_equal(own[3].notices, 0);

    assert_int_equal(enter(0, ref), NGX_AGAIN);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
    leave(1);
    leave(3);

    /* number 2 is another worker's, and has the slot by now */

    assert_int_equal(look(0), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[0].look.position, 1);

    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.held, 1);

    /* the zone has no more records */

    for (i = 2; i < zone->nclaims; i++) {
        memset(&own[5], 0, sizeof(owner_t));
        assert_int_equal(watch(5, ref), NGX_OK);
    }

    owner(6);
    assert_int_equal(enter(6, ref), NGX_ERROR);
    assert_int_equal(watch(6, ref), NGX_ERROR);
    assert_int_equal(operate(6, ref, NGX_KEXEC_CLAIM_DELETE), NGX_ERROR);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_READY);
    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[6].claim),
                     NGX_DECLINED);
}


static void
test_notices(void **state)
{
    ngx_kexec_ref_t       ref;
    ngx_kexec_context_t   ctx;

    ref = ready_context(&ctx);

    /* a notice for a claim that is gone, or is another one by now */

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    leave(0);
    leave(1);
    notices();
    assert_int_equal(own[1].notices, 0);

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    leave(0);
    assert_int_equal(enter(1, ref), NGX_OK);
    notices();
    assert_int_equal(own[1].notices, 0);
    leave(1);

    /* handlers end each other's claims */

    assert_int_equal(watch(1, ref), NGX_OK);
    assert_int_equal(watch(2, ref), NGX_OK);
    assert_int_equal(watch(3, ref), NGX_OK);
    own[1].leaves = &own[2].claim;
    own[2].leaves = &own[1].claim;
    own[3].leaves = &own[3].claim;

    assert_int_equal(enter(0, ref), NGX_OK);
    notices();
    assert_int_equal(own[1].notices + own[2].notices, 1);
    assert_int_equal(own[3].notices, 1);
    assert_int_equal(own[3].claim.ref.generation, 0);

    leave(1);
    leave(2);
    notices();
    assert_int_equal(own[1].notices + own[2].notices, 1);

    /* several notices are one call, and none is lost after a call */

    assert_int_equal(watch(4, ref), NGX_OK);
    ngx_kexec_zone_created(&own[0].claim);
    leave(0);
    assert_int_equal(enter(0, ref), NGX_OK);
    notices();
    assert_int_equal(own[4].notices, 1);
    leave(0);
    notices();
    assert_int_equal(own[4].notices, 2);

    /* a claim's own end is no news for it */

    leave(4);
    notices();
    assert_int_equal(own[4].notices, 2);
}


/* more than fit into one turn */

static void
test_many_notices(void **state)
{
    ngx_uint_t            i;
    ngx_kexec_ref_t       ref;
    ngx_kexec_context_t   ctx;
    static owner_t        many[200];

    be(WORKERS - 1);

    ref = ready_context(&ctx);

    for (i = 0; i < 200; i++) {
        many[i].claim.handler = handler;
        many[i].claim.data = &many[i];
        many[i].claim.context = ref;
        assert_int_equal(ngx_kexec_claim_watch(zone, &many[i].claim), NGX_OK);
    }

    assert_int_equal(enter(0, ref), NGX_OK);

    for (i = 0; i < 4; i++) {
        stub_loop(0);
    }

    for (i = 0; i < 200; i++) {
        assert_int_equal(many[i].notices, 1);
        ngx_kexec_claim_leave(&many[i].claim);
    }
}


static void
test_restart(void **state)
{
    ngx_kexec_ref_t       ref;
    ngx_kexec_context_t   ctx;

    ref = ready_context(&ctx);

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_RESTART), NGX_OK);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.phase, NGX_KEXEC_PHASE_RESTARTING);
    leave(0);

    /* the holder is told, those who wait go, those who come later wait */

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    assert_int_equal(enter(2, ref), NGX_AGAIN);
    assert_int_equal(operate(3, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    assert_int_equal(enter(4, ref), NGX_AGAIN);

    notices();
    assert_int_equal(own[0].notices, 1);
    assert_int_equal(own[1].notices, 1);
    assert_int_equal(own[3].notices, 0);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[0].look.verdict, NGX_KEXEC_VERDICT_RESTARTED);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(own[1].look.verdict, NGX_KEXEC_VERDICT_RESTARTED);
    assert_int_equal(own[1].look.position, 0);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[3].look.position, 1);

    /* the second one ends what came after the first, and runs after it */

    assert_int_equal(operate(5, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(enter(6, ref), NGX_AGAIN);
    assert_int_equal(look(5), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[5].look.position, 2);

    leave(0);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[3].look.verdict, NGX_KEXEC_VERDICT_NONE);

    /* evicting spares operations */

    assert_int_equal(enter(7, ref), NGX_AGAIN);
    ngx_kexec_claim_evict(&own[7].claim, NGX_KEXEC_VERDICT_RESTARTED);
    assert_int_equal(look(6), NGX_KEXEC_CLAIM_QUEUED);
    ngx_kexec_claim_evict(&own[3].claim, NGX_KEXEC_VERDICT_RESTARTED);
    assert_int_equal(look(6), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(look(7), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(look(5), NGX_KEXEC_CLAIM_QUEUED);

    leave(3);
    assert_int_equal(look(5), NGX_KEXEC_CLAIM_HELD);
    leave(5);

    leave(1);
    leave(2);
    leave(4);
    leave(6);
    leave(7);

    /* one that was granted and does not know it yet has no part in it */

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    leave(0);
    assert_int_equal(operate(2, ref, NGX_KEXEC_CLAIM_RESTART), NGX_OK);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_HELD);
    leave(1);

    /* a restart that waits and goes away lets the next one in */

    assert_int_equal(operate(3, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[2].look.verdict, NGX_KEXEC_VERDICT_NONE);
    assert_int_equal(enter(4, ref), NGX_AGAIN);
    leave(3);
    leave(2);
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_HELD);
    leave(4);

    /* a creator is not disturbed by a restart */

    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    assert_int_equal(operate(1, ctx.ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[0].look.verdict, NGX_KEXEC_VERDICT_NONE);
    ngx_kexec_zone_created(&own[0].claim);
    leave(0);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
}


static void
test_delete(void **state)
{
    ngx_str_t             text;
    ngx_kexec_ref_t       ref;
    ngx_kexec_context_t   ctx;

    text = str("no");
    ref = ready_context(&ctx);

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    assert_int_equal(operate(2, ref, NGX_KEXEC_CLAIM_RESTART), NGX_AGAIN);
    assert_int_equal(watch(3, ref), NGX_OK);
    assert_int_equal(operate(4, ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);

    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[0].look.verdict, NGX_KEXEC_VERDICT_DELETED);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(own[1].look.verdict, NGX_KEXEC_VERDICT_RESTARTED);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(own[2].look.verdict, NGX_KEXEC_VERDICT_DELETED);

    notices();
    assert_int_equal(own[3].notices, 1);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_DELETING);
    assert_int_equal(ngx_kexec_zone_list(zone, NULL)->nelts, 0);

    assert_int_equal(enter(5, ref), NGX_DECLINED);
    assert_int_equal(operate(5, ref, NGX_KEXEC_CLAIM_DELETE), NGX_BUSY);
    assert_int_equal(operate(5, ref, NGX_KEXEC_CLAIM_RESTART), NGX_DECLINED);

    leave(0);
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_HELD);
    notices();
    assert_int_equal(own[3].notices, 2);

    ngx_kexec_zone_remove(&own[4].claim);
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_NONE);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_DECLINED);
    notices();
    assert_int_equal(own[3].notices, 3);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_WATCHING);

    leave(1);
    leave(2);
    leave(3);

    /* a deletion that does not come to its end */

    ref = ready_context(&ctx);

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(operate(1, ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    leave(1);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_READY);
    assert_false(ctx.dirty);
    leave(0);

    assert_int_equal(operate(1, ref, NGX_KEXEC_CLAIM_DELETE), NGX_OK);
    leave(1);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_READY);
    assert_true(ctx.dirty);

    /* of one that is being created: it is created, and then deleted */

    new_context(&ctx, "python", 0);
    ref = ctx.ref;
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    ref = ctx.ref;
    assert_int_equal(operate(1, ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(own[0].look.verdict, NGX_KEXEC_VERDICT_DELETED);
    ngx_kexec_zone_created(&own[0].claim);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_DELETING);
    leave(0);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
    ngx_kexec_zone_remove(&own[1].claim);

    /* it is given up, and the deletion still has to look for it */

    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    ref = ctx.ref;
    assert_int_equal(operate(1, ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    leave(0);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
    leave(1);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_DECLINED);

    /* it fails, and nothing is left to delete */

    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    assert_int_equal(operate(1, ctx.ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    ngx_kexec_zone_failed(&own[0].claim, 500, &text);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_ENDED);
    assert_int_equal(own[1].look.verdict, NGX_KEXEC_VERDICT_DELETED);
    leave(1);

    /* it is not deleted after all */

    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim), NGX_OK);
    assert_int_equal(operate(1, ctx.ref, NGX_KEXEC_CLAIM_DELETE), NGX_AGAIN);
    leave(1);
    assert_int_equal(ngx_kexec_zone_get(zone, &ctx.ref, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_CREATING);
    leave(0);
}


static void
test_interrupt(void **state)
{
    ngx_kexec_ref_t       ref, none, holder, other;
    ngx_kexec_context_t   ctx;

    ref = ready_context(&ctx);
    memset(&none, 0, sizeof(none));

    assert_int_equal(ngx_kexec_claim_interrupt(zone, &none, &holder),
                     NGX_DECLINED);
    assert_int_equal(ngx_kexec_claim_interrupt(zone, &ref, &holder), NGX_DONE);
    assert_false(ngx_kexec_claim_holds(zone, &ref, &holder));

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);

    be(1);
    assert_int_equal(ngx_kexec_claim_interrupt(zone, &ref, &holder), NGX_OK);
    be(0);

    notices();
    assert_int_equal(own[0].notices, 1);
    assert_int_equal(own[1].notices, 0);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_true(own[0].look.interrupt);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_false(own[0].look.interrupt);

    assert_true(ngx_kexec_claim_holds(zone, &ref, &holder));
    leave(0);
    assert_false(ngx_kexec_claim_holds(zone, &ref, &holder));

    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
    assert_false(own[1].look.interrupt);
    assert_int_equal(ngx_kexec_claim_interrupt(zone, &ref, &other), NGX_OK);
    assert_true(other.index != holder.index
                || other.generation != holder.generation);
    leave(1);

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_RESTART), NGX_OK);
    assert_int_equal(ngx_kexec_claim_interrupt(zone, &ref, &holder), NGX_DONE);
    leave(0);

    assert_int_equal(operate(0, ref, NGX_KEXEC_CLAIM_DELETE), NGX_OK);
    assert_int_equal(ngx_kexec_claim_interrupt(zone, &ref, &holder),
                     NGX_DECLINED);
}


static void
test_watch(void **state)
{
    ngx_kexec_ref_t       ref, none;
    ngx_kexec_context_t   ctx;

    memset(&none, 0, sizeof(none));
    assert_int_equal(watch(0, none), NGX_DECLINED);

    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[1].claim), NGX_OK);
    ref = ctx.ref;

    be(1);
    assert_int_equal(watch(0, ref), NGX_OK);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_WATCHING);
    be(0);

    ngx_kexec_zone_created(&own[1].claim);
    be(1); notices(); be(0);
    assert_int_equal(own[0].notices, 1);

    assert_int_equal(enter(2, ref), NGX_AGAIN);
    be(1); notices(); be(0);
    assert_int_equal(own[0].notices, 1);

    leave(1);
    be(1); notices(); be(0);
    assert_int_equal(own[0].notices, 2);

    leave(2);
    be(1); notices(); be(0);
    assert_int_equal(own[0].notices, 3);

    assert_int_equal(operate(2, ref, NGX_KEXEC_CLAIM_DELETE), NGX_OK);
    be(1); notices(); be(0);
    assert_int_equal(own[0].notices, 4);

    ngx_kexec_zone_remove(&own[2].claim);
    be(1); notices();
    assert_int_equal(own[0].notices, 5);

    /* it keeps its record, and nothing else happens to it */

    assert_int_equal(look(0), NGX_KEXEC_CLAIM_WATCHING);
    leave(0);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_NONE);
}


static void
test_grants(void **state)
{
    ngx_kexec_ref_t         ref, holder;
    ngx_kexec_context_t     ctx;
    ngx_kexec_zone_stat_t   stat;

    ref = ready_context(&ctx);

    assert_int_equal(enter(0, ref), NGX_OK);
    be(1);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    assert_int_equal(enter(2, ref), NGX_AGAIN);
    be(2);
    assert_int_equal(enter(3, ref), NGX_AGAIN);
    assert_int_equal(enter(4, ref), NGX_AGAIN);
    be(0);
    leave(0);

    /* worker 1 does not answer: 1 and 2 are passed over */

    be(2);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[3].look.position, 2);

    assert_int_equal(ngx_kexec_claim_interrupt(zone, &ref, &holder), NGX_OK);
    record(1)->granted -= NGX_KEXEC_GRANT_TIME;
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[3].look.position, 2);

    record(2)->granted -= NGX_KEXEC_GRANT_TIME;
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(look(3), NGX_KEXEC_CLAIM_HELD);
    assert_false(ngx_kexec_claim_holds(zone, &ref, &holder));

    /* it does again: it has not lost its place, and was not interrupted */

    be(1);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[1].look.position, 1);
    assert_false(own[1].look.interrupt);
    be(2);
    leave(3);
    be(1);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
    leave(1);

    /* an acknowledged one is never taken away */

    assert_int_equal(look(2), NGX_KEXEC_CLAIM_HELD);
    record(2)->granted -= 1000000;
    be(2);
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_QUEUED);
    be(1);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_HELD);
    leave(2);

    /* nobody else there: the same one gets another grant, and a notice */

    be(2);
    notices();
    own[4].notices = 0;
    record(4)->granted -= NGX_KEXEC_GRANT_TIME;
    be(0);
    ngx_kexec_zone_lock(zone);
    ngx_kexec_slot_check(zone, &zone->contexts[ref.index]);
    ngx_kexec_zone_unlock(zone);
    be(2);
    notices();
    assert_int_equal(own[4].notices, 1);

    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.held, 1);
    assert_int_equal(stat.queued, 0);
    assert_int_equal(stat.idle, 0);

    /* its late answer is one nevertheless */

    record(4)->granted -= NGX_KEXEC_GRANT_TIME;
    assert_int_equal(look(4), NGX_KEXEC_CLAIM_HELD);

    /* a free slot with a queue is a bug, and does not stay */

    assert_int_equal(enter(5, ref), NGX_AGAIN);
    be(0);
    assert_int_equal(enter(6, ref), NGX_AGAIN);

    ngx_kexec_zone_lock(zone);
    ngx_kexec_slot_free(zone, record(4));
    ngx_kexec_slot_release(&zone->contexts[ref.index]);
    ngx_kexec_zone_unlock(zone);

    assert_int_equal(look(6), NGX_KEXEC_CLAIM_QUEUED);
    be(2);
    assert_int_equal(look(5), NGX_KEXEC_CLAIM_HELD);
    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.idle, 1);
}


static void
test_dead_worker(void **state)
{
    ngx_kexec_ref_t         run, creating, restart, delete, waits;
    ngx_kexec_context_t     ctx;
    ngx_kexec_zone_stat_t   stat;

    run = ready_context(&ctx);
    restart = ready_context(&ctx);
    delete = ready_context(&ctx);
    waits = ready_context(&ctx);

    ngx_current_msec = ngx_kexec_zone_now();

    be(1);
    assert_int_equal(enter(0, run), NGX_OK);
    ngx_kexec_zone_get(zone, &restart, &ctx);
    assert_int_equal(operate(1, restart, NGX_KEXEC_CLAIM_RESTART), NGX_OK);
    ctx.ready = 1;
    ctx.prepared = 1;
    ngx_kexec_zone_update(&own[1].claim, &ctx);
    assert_int_equal(operate(2, delete, NGX_KEXEC_CLAIM_DELETE), NGX_OK);
    new_context(&ctx, "python", 1);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[3].claim), NGX_OK);
    creating = ctx.ref;

    be(0);
    assert_int_equal(enter(4, waits), NGX_OK);
    be(1);
    owner(5);
    assert_int_equal(enter(5, waits), NGX_AGAIN);
    be(0);
    assert_int_equal(enter(6, waits), NGX_AGAIN);
    owner(7);
    assert_int_equal(watch(7, creating), NGX_OK);

    /* nobody is taken for dead who is not */

    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.dead, 0);

    stop(1);
    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.dead, 5);

    /* the sweep is due within a second */

    ngx_current_msec += 2000;
    while (stat.dead) {
        stub_loop(100);
        ngx_kexec_zone_stat(zone, &stat);
    }

    assert_int_equal(stub.level, NGX_LOG_WARN);
    assert_int_equal(stat.claims, 3);

    assert_int_equal(ngx_kexec_zone_get(zone, &run, &ctx), NGX_OK);
    assert_int_equal(ctx.held_since, 0);
    assert_true(ctx.dirty);

    assert_int_equal(ngx_kexec_zone_get(zone, &restart, &ctx), NGX_OK);
    assert_true(ctx.dirty);
    assert_false(ctx.ready);
    assert_false(ctx.prepared);

    assert_int_equal(ngx_kexec_zone_get(zone, &delete, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_READY);
    assert_true(ctx.dirty);

    assert_int_equal(ngx_kexec_zone_get(zone, &creating, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_FAILED);
    notices();
    assert_int_equal(own[7].notices, 1);

    assert_int_equal(look(6), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[6].look.position, 1);
    leave(4);
    assert_int_equal(look(6), NGX_KEXEC_CLAIM_HELD);

    assert_int_equal(ngx_kexec_zone_get(zone, &waits, &ctx), NGX_OK);
    assert_false(ctx.dirty);

    memset(&worker[1], 0, sizeof(worker[1]));
    owner(0);
    owner(1);
    owner(2);
    owner(3);
    owner(5);
}


static void
test_successor(void **state)
{
    ngx_kexec_ref_t         ref;
    ngx_kexec_context_t     ctx;
    ngx_kexec_claim_t     **owners;

    ref = ready_context(&ctx);

    be(1);
    assert_int_equal(enter(0, ref), NGX_OK);
    be(0);
    assert_int_equal(enter(1, ref), NGX_AGAIN);

    /* whoever comes next takes over at once */

    stop(1);
    owners = worker[1].self.owners;
    start(1);
    free(owners);
    be(0);

    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_true(ctx.dirty);

    /* a worker's number that another process has by now */

    be(2);
    owner(0);
    assert_int_equal(enter(0, ref), NGX_AGAIN);
    zone->sh->workers[ngx_kexec_zone_self.worker].start += 1;
    zone->sh->workers[ngx_kexec_zone_self.worker].beat -= 60000;
    be(0);
    ngx_current_msec += 2000;
    leave(1);

    ngx_kexec_zone_get(zone, &ref, &ctx);
    assert_int_not_equal(ctx.held_since, 0);

    while (ctx.held_since) {
        stub_loop(100);
        ngx_kexec_zone_get(zone, &ref, &ctx);
    }

    /* a worker that was taken for dead by mistake comes back */

    be(2);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_NONE);
    assert_int_equal(enter(0, ref), NGX_ERROR);
    while (enter(0, ref) == NGX_ERROR) {
        stub_loop(100);
    }
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
}


static void
test_exit(void **state)
{
    ngx_kexec_ref_t       ref, other;
    ngx_kexec_context_t   ctx;

    ref = ready_context(&ctx);
    other = ready_context(&ctx);

    be(1);
    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(watch(1, ref), NGX_OK);
    be(0);
    assert_int_equal(enter(2, ref), NGX_AGAIN);
    assert_int_equal(enter(3, other), NGX_OK);
    be(1);
    owner(4);
    assert_int_equal(enter(4, other), NGX_AGAIN);

    ngx_kexec_zone_exit_process(zone);
    ngx_kexec_zone_exit_process(zone);

    /* what is still in memory is harmless */

    assert_int_equal(look(0), NGX_KEXEC_CLAIM_NONE);
    leave(1);
    leave(4);
    assert_int_equal(enter(0, ref), NGX_ERROR);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim),
                     NGX_BUSY);
    new_context(&ctx, "python", 0);
    assert_int_equal(ngx_kexec_zone_create(zone, &ctx, &own[0].claim),
                     NGX_ERROR);

    be(0);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_true(ctx.dirty);
    assert_int_equal(ngx_kexec_zone_get(zone, &other, &ctx), NGX_OK);
    assert_int_equal(ctx.queued, 0);
    assert_false(ctx.dirty);
}


static void
test_processes(void **state)
{
    ngx_uint_t            i;
    ngx_kexec_ref_t       ref;
    ngx_kexec_context_t   ctx;

    ref = ready_context(&ctx);

    /* a helper has no part in it */

    be(1);
    ngx_kexec_zone_exit_process(zone);
    ngx_process = NGX_PROCESS_HELPER;
    assert_int_equal(ngx_kexec_zone_init_process(zone, &stub.cycle), NGX_OK);
    assert_int_equal(ngx_kexec_zone_self.worker, NGX_KEXEC_NONE);
    assert_int_equal(enter(0, ref), NGX_ERROR);
    ngx_kexec_zone_exit_process(zone);

    /* the only process has */

    ngx_process = NGX_PROCESS_SINGLE;
    assert_int_equal(ngx_kexec_zone_init_process(zone, &stub.cycle), NGX_OK);
    assert_int_equal(enter(0, ref), NGX_OK);
    ngx_kexec_zone_exit_process(zone);

    /* too many workers */

    ngx_process = NGX_PROCESS_WORKER;

    for (i = 0; i < NGX_KEXEC_MAX_WORKERS; i++) {
        if (zone->sh->workers[i].pid == 0) {
            zone->sh->workers[i].pid = getppid();
        }
    }

    assert_int_equal(ngx_kexec_zone_init_process(zone, &stub.cycle), NGX_OK);
    assert_int_equal(stub.level, NGX_LOG_ALERT);
    assert_int_equal(ngx_kexec_zone_self.worker, NGX_KEXEC_NONE);
    assert_int_equal(enter(0, ref), NGX_ERROR);
    assert_int_equal(watch(0, ref), NGX_ERROR);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);

    /* one of them leaves */

    zone->sh->workers[100].pid = 0;
    ngx_current_msec += 2000;
    while (enter(0, ref) == NGX_ERROR) {
        stub_loop(100);
    }

    for (i = 0; i < NGX_KEXEC_MAX_WORKERS; i++) {
        if (zone->sh->workers[i].pid == getppid()) {
            zone->sh->workers[i].pid = 0;
        }
    }
}


static void
test_empty_claims(void **state)
{
    ngx_str_t               text;
    ngx_kexec_claim_t       claim;
    ngx_kexec_context_t     ctx;
    ngx_kexec_claim_look_t  seen;

    text = str("no");
    memset(&claim, 0, sizeof(claim));
    memset(&ctx, 0, sizeof(ctx));

    ngx_kexec_claim_leave(&claim);
    ngx_kexec_claim_look(&claim, &seen);
    assert_int_equal(seen.state, NGX_KEXEC_CLAIM_NONE);
    ngx_kexec_claim_phase(&claim, NGX_KEXEC_PHASE_RUNNING);
    ngx_kexec_claim_evict(&claim, NGX_KEXEC_VERDICT_RESTARTED);
    ngx_kexec_zone_update(&claim, &ctx);
    ngx_kexec_zone_created(&claim);
    ngx_kexec_zone_failed(&claim, 500, &text);
    ngx_kexec_zone_remove(&claim);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_add),
        cmocka_unit_test_setup_teardown(test_exists, setup, teardown),
        cmocka_unit_test_setup_teardown(test_contexts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(test_notices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_notices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_delete, setup, teardown),
        cmocka_unit_test_setup_teardown(test_interrupt, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_grants, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dead_worker, setup, teardown),
        cmocka_unit_test_setup_teardown(test_successor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_exit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_processes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_empty_claims, setup, teardown),
    };

    stub_start();

    /* as the master does before it forks */

    if (ngx_kexec_wake_init(NGX_KEXEC_MAX_WORKERS, stub.cycle.log) != NGX_OK) {
        return 1;
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
