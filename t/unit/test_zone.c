
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "stub_workers.h"
#include <ngx_kexec_wake.h>


/* the zone's life, its contexts and its workers */


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
    assert_int_equal(got.failure_status, 0);
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
test_dead_worker(void **state)
{
    ngx_kexec_ref_t         run, prepares, creating, restart, delete, waits;
    ngx_kexec_context_t     ctx;
    ngx_kexec_zone_stat_t   stat;

    run = ready_context(&ctx);
    prepares = ready_context(&ctx);
    restart = ready_context(&ctx);
    delete = ready_context(&ctx);
    waits = ready_context(&ctx);

    ngx_current_msec = ngx_kexec_zone_now();

    be(1);
    assert_int_equal(enter(0, run), NGX_OK);
    ngx_kexec_claim_phase(&own[0].claim, NGX_KEXEC_PHASE_RUNNING);
    owner(8);
    assert_int_equal(enter(8, prepares), NGX_OK);
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
    assert_int_equal(stat.dead, 6);

    stub_timers(1);
    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.dead, 0);

    assert_int_equal(stub.level, NGX_LOG_WARN);
    assert_int_equal(stat.claims, 3);

    assert_int_equal(ngx_kexec_zone_get(zone, &run, &ctx), NGX_OK);
    assert_int_equal(ctx.held_since, 0);
    assert_true(ctx.dirty);

    /* only code that was sent leaves an orphan */

    assert_int_equal(ngx_kexec_zone_get(zone, &prepares, &ctx), NGX_OK);
    assert_int_equal(ctx.held_since, 0);
    assert_false(ctx.dirty);

    assert_int_equal(ngx_kexec_zone_get(zone, &restart, &ctx), NGX_OK);
    assert_false(ctx.dirty);
    assert_false(ctx.ready);
    assert_false(ctx.prepared);

    assert_int_equal(ngx_kexec_zone_get(zone, &delete, &ctx), NGX_OK);
    assert_int_equal(ctx.state, NGX_KEXEC_CONTEXT_READY);
    assert_false(ctx.dirty);
    assert_false(ctx.ready);

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

    free(worker[1].self.owners);
    memset(&worker[1], 0, sizeof(worker[1]));
    owner(0);
    owner(1);
    owner(2);
    owner(3);
    owner(5);
    owner(8);
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
    ngx_kexec_claim_phase(&own[0].claim, NGX_KEXEC_PHASE_RUNNING);
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
    leave(1);

    ngx_kexec_zone_get(zone, &ref, &ctx);
    assert_int_not_equal(ctx.held_since, 0);

    stub_timers(1);
    ngx_kexec_zone_get(zone, &ref, &ctx);
    assert_int_equal(ctx.held_since, 0);

    /* a worker that was taken for dead by mistake comes back */

    be(2);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_NONE);
    assert_int_equal(enter(0, ref), NGX_ERROR);
    stub_timers(1);
    assert_int_equal(enter(0, ref), NGX_OK);
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
    ngx_kexec_claim_phase(&own[0].claim, NGX_KEXEC_PHASE_RUNNING);
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
    stub_timers(1);
    assert_int_equal(enter(0, ref), NGX_OK);

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
