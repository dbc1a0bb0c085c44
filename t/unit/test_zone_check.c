
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "stub_workers.h"
#include <ngx_kexec_wake.h>

#include <sys/prctl.h>
#include <sys/wait.h>


/*
 * The checker: a worker that dies at any point of a critical section, and
 * records with anything in them.
 */


#define LANGUAGES  4
#define LIMIT      6


static uint64_t  seed;


static ngx_uint_t
any(ngx_uint_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;

    return (seed >> 11) % n;
}


/* a reference to some record, which may be free */

static ngx_kexec_ref_t
some_context(void)
{
    ngx_kexec_ref_t  ref;

    ref.index = any(any(4) ? 6 : zone->ncontexts);
    ref.generation = zone->contexts[ref.index].c.ref.generation;

    return ref;
}


/* anything that a worker may do, in no sensible order */

static void
step(void)
{
    ngx_str_t               text;
    ngx_uint_t              i;
    ngx_kexec_ref_t         ref, holder;
    ngx_kexec_claim_t      *claim;
    ngx_kexec_context_t     ctx;
    ngx_kexec_zone_stat_t   stat;

    static const char  *languages[LANGUAGES] = { "python", "r", "java", "js" };

    i = any(CLAIMS);
    claim = &own[i].claim;
    ref = some_context();

    switch (any(23)) {

    case 0:
    case 1:
    case 2:
        claim->context = ref;
        (void) ngx_kexec_claim_enter(zone, claim, LIMIT);
        break;

    case 3:
    case 4:
        (void) look(i);
        break;

    case 5:
        leave(i);
        break;

    case 6:
        (void) operate(i, ref, NGX_KEXEC_CLAIM_RESTART);
        break;

    case 7:
        (void) operate(i, ref, NGX_KEXEC_CLAIM_DELETE);
        break;

    case 8:
        (void) watch(i, ref);
        break;

    case 9:
        (void) ngx_kexec_claim_interrupt(zone, &ref, &holder);
        (void) ngx_kexec_claim_holds(zone, &ref, &holder);
        break;

    case 10:
        ngx_kexec_claim_evict(claim, NGX_KEXEC_VERDICT_RESTARTED);
        ngx_kexec_claim_phase(claim, NGX_KEXEC_PHASE_RUNNING);
        break;

    case 11:
        if (ngx_kexec_zone_get(zone, &claim->context, &ctx) == NGX_OK) {
            ctx.kernel.len = 8;
            memset(ctx.kernel.data, 'a' + any(26), ctx.kernel.len);
            ctx.spec_len = 8;
            memcpy(ctx.spec, ctx.kernel.data, ctx.spec_len);
            ctx.dirty = 0;
            ngx_kexec_zone_update(claim, &ctx);
        }

        break;

    case 12:
    case 13:
        new_context(&ctx, languages[any(LANGUAGES)], any(2));
        (void) ngx_kexec_zone_create(zone, &ctx, claim);
        break;

    case 14:
    case 15:
        ngx_kexec_zone_created(claim);
        break;

    case 16:
        text.data = (u_char *) "no";
        text.len = 2;
        ngx_kexec_zone_failed(claim, 500, &text);
        break;

    case 17:
        ngx_kexec_zone_remove(claim);
        break;

    case 18:
        notices();
        ngx_kexec_zone_stat(zone, &stat);
        break;

    case 19:
        new_context(&ctx, languages[any(LANGUAGES)], any(2));
        ctx.session.len = 1;
        ctx.session.data[0] = 's';
        (void) ngx_kexec_zone_adopt(zone, &ctx);
        break;

    case 20:
        if (ngx_kexec_zone_get(zone, &ref, &ctx) == NGX_OK) {
            ngx_kexec_zone_lost(zone, &ctx);

            if (any(2)) {
                (void) ngx_kexec_zone_lapse(zone, &ref, 0);
            }
        }

        (void) ngx_kexec_zone_make_room(zone, &ctx);
        break;

    case 21:
        claim->context = ref;
        (void) ngx_kexec_claim_expire(zone, claim, 0);
        break;

    default:

        /* a grant that was not answered */

        for (i = 0; i < zone->nclaims; i++) {
            if (zone->claims[i].state == NGX_KEXEC_CLAIM_GRANTED) {
                zone->claims[i].granted -= NGX_KEXEC_GRANT_TIME;
            }
        }

        if (any(20) == 0) {
            ngx_kexec_zone_exit_process(zone);
            stub_forget_channels();
            (void) ngx_kexec_zone_init_process(zone, &stub.cycle);
        }
    }
}


/* everybody leaves, and whatever is left in the zone can be used */

static void
assert_usable(void)
{
    ngx_uint_t              i, n;
    ngx_array_t            *list;
    ngx_kexec_context_t    *ctx, got;
    ngx_kexec_zone_stat_t   stat;

    assert_int_equal(ngx_kexec_zone_wrong(zone), 0);

    for (i = 0; i < CLAIMS; i++) {
        (void) look(i);
        leave(i);
    }

    notices();
    assert_int_equal(ngx_kexec_zone_wrong(zone), 0);

    list = ngx_kexec_zone_list(zone, NULL);
    ctx = list->elts;

    for (i = 0; i < list->nelts; i++) {
        assert_int_equal(ctx[i].queued, 0);
        assert_int_equal(ctx[i].phase, NGX_KEXEC_PHASE_FREE);

        assert_int_equal(enter(0, ctx[i].ref), NGX_OK);
        assert_int_equal(enter(1, ctx[i].ref), NGX_AGAIN);
        assert_int_equal(enter(2, ctx[i].ref), NGX_AGAIN);
        leave(0);
        assert_int_equal(look(2), NGX_KEXEC_CLAIM_QUEUED);
        assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
        leave(1);
        assert_int_equal(look(2), NGX_KEXEC_CLAIM_HELD);

        /* some make room for new ones */

        if (any(2)) {
            leave(2);

        } else {
            ngx_kexec_zone_remove(&own[2].claim);
        }
    }

    stub_free_array(list);

    ready_context(&got);
    assert_int_equal(enter(0, got.ref), NGX_OK);
    ngx_kexec_zone_remove(&own[0].claim);

    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.claims, 0);
    assert_int_equal(stat.queued, 0);
    assert_int_equal(stat.held, 0);

    for (n = 0, i = 0; i < zone->ncontexts; i++) {
        n += (zone->contexts[i].c.state != NGX_KEXEC_CONTEXT_FREE);
    }

    assert_int_equal(stat.contexts, n);
    assert_int_equal(ngx_kexec_zone_wrong(zone), 0);
}


/* whatever is done, the zone stays as it should be */

static void
test_random(void **state)
{
    ngx_uint_t              i;
    ngx_kexec_zone_stat_t   stat;

    stop(1);
    stop(2);
    be(0);
    stub_timers(1);
    stub_forget_channels();
    ngx_kexec_zone_exit_process(zone);
    (void) ngx_kexec_zone_init_process(zone, &stub.cycle);

    for (i = 0; i < 20000; i++) {
        step();

        if (i % 8 == 0) {
            assert_int_equal(ngx_kexec_zone_wrong(zone), 0);
        }
    }

    assert_usable();

    ngx_kexec_zone_stat(zone, &stat);
    assert_int_equal(stat.idle, 0);
    assert_int_equal(stat.rebuilt, 0);

    worker[1].pid = 0;
    worker[2].pid = 0;
}


#if (NGX_DEBUG)

/* a worker that does anything, until it dies at that point */

static void
die(ngx_uint_t point)
{
    ngx_uint_t  i;

    prctl(PR_SET_PDEATHSIG, SIGKILL);

    ngx_pid = getpid();
    ngx_kexec_zone_self.owners = NULL;
    ngx_kexec_zone_self.worker = NGX_KEXEC_NONE;

    stub_forget_channels();
    memset(own, 0, sizeof(own));

    zone->sh->crashed = 1;
    ngx_kexec_zone_crash_point = point;

    (void) ngx_kexec_zone_init_process(zone, &stub.cycle);

    /* the first time is not always the most interesting one */

    for (i = any(300); i; i--) {
        step();
    }

    zone->sh->crashed = 0;

    for (i = 0; i < 1000000; i++) {
        step();
    }

    _exit(1);
}


static void
test_crash(void **state)
{
    int                     status;
    ngx_pid_t               pid;
    ngx_uint_t              i, point, round;
    ngx_kexec_ref_t         ref;
    ngx_kexec_context_t     ctx;
    ngx_kexec_zone_stat_t   before, stat;

    for (point = 1; point <= NGX_KEXEC_CRASH_POINTS; point++) {

        for (round = 0; round < 12; round++) {

            /* somebody else is there as well, with a claim of each kind */

            for (i = 0; i < 4; i++) {
                ready_context(&ctx);
            }

            (void) enter(0, some_context());
            (void) enter(1, some_context());
            (void) enter(2, some_context());
            (void) watch(3, some_context());
            new_context(&ctx, "python", 0);
            (void) ngx_kexec_zone_create(zone, &ctx, &own[4].claim);
            (void) operate(5, some_context(), NGX_KEXEC_CLAIM_RESTART);
            (void) operate(6, some_context(), NGX_KEXEC_CLAIM_DELETE);

            ngx_kexec_zone_stat(zone, &before);

            seed = point * 1000003 + round + 1;

            pid = fork();

            if (pid == 0) {
                die(point);
            }

            waitpid(pid, &status, 0);
            if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
                fail_msg("point %d was not reached: status %d", (int) point,
                         status);
            }

            stub_unlock(zone, pid);

            assert_int_equal(ngx_kexec_zone_wrong(zone), 0);
            ngx_kexec_zone_stat(zone, &stat);
            assert_int_equal(stat.rebuilt, before.rebuilt + 1);

            /* half of an update is not believed */

            for (i = 0; i < zone->ncontexts; i++) {
                ref = zone->contexts[i].c.ref;

                if (ngx_kexec_zone_get(zone, &ref, &ctx) == NGX_OK
                    && ctx.kernel.len)
                {
                    assert_int_equal(ctx.kernel.len, ctx.spec_len);
                    assert_memory_equal(ctx.kernel.data, ctx.spec,
                                        ctx.spec_len);
                }
            }

            /* its own claims go with the next sweep */

            stub_timers(1);

            ngx_kexec_zone_stat(zone, &stat);
            assert_int_equal(stat.dead, 0);
            assert_int_equal(stat.idle, 0);

            assert_usable();
        }
    }
}

#endif


/* the last thing that a worker did was to change a state, and not to tell */

static void
test_told(void **state)
{
    ngx_kexec_ref_t       ref;
    ngx_kexec_context_t   ctx;

    ref = ready_context(&ctx);

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    assert_int_equal(watch(2, ref), NGX_OK);
    notices();
    assert_int_equal(own[2].notices, 0);

    zone->sh->writer = 1;
    assert_int_equal(ngx_kexec_zone_wrong(zone), 0);

    notices();
    assert_int_equal(own[0].notices, 1);
    assert_int_equal(own[1].notices, 1);
    assert_int_equal(own[2].notices, 1);
}


/* two claims with the same slot: the one that knows it has it keeps it */

static void
test_holders(void **state)
{
    ngx_kexec_ref_t       ref;
    ngx_kexec_context_t   ctx;

    ref = ready_context(&ctx);

    assert_int_equal(enter(0, ref), NGX_OK);
    assert_int_equal(enter(1, ref), NGX_AGAIN);
    assert_int_equal(enter(2, ref), NGX_AGAIN);

    record(1)->state = NGX_KEXEC_CLAIM_GRANTED;
    zone->sh->writer = 1;

    assert_int_equal(ngx_kexec_zone_wrong(zone), 0);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(look(2), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[2].look.position, 2);

    record(0)->state = NGX_KEXEC_CLAIM_GRANTED;
    record(1)->state = NGX_KEXEC_CLAIM_HELD;
    zone->sh->writer = 1;

    assert_int_equal(ngx_kexec_zone_wrong(zone), 0);
    assert_int_equal(look(1), NGX_KEXEC_CLAIM_HELD);
    assert_int_equal(look(0), NGX_KEXEC_CLAIM_QUEUED);
    assert_int_equal(own[0].look.position, 1);

    record(0)->state = NGX_KEXEC_CLAIM_HELD;
    zone->sh->writer = 1;

    assert_int_equal(ngx_kexec_zone_wrong(zone), 0);
    assert_int_equal((look(0) == NGX_KEXEC_CLAIM_HELD)
                     + (look(1) == NGX_KEXEC_CLAIM_HELD), 1);
    assert_int_equal((look(0) == NGX_KEXEC_CLAIM_NONE)
                     + (look(1) == NGX_KEXEC_CLAIM_NONE), 1);
    assert_int_equal(ngx_kexec_zone_get(zone, &ref, &ctx), NGX_OK);
    assert_true(ctx.dirty);
}


/* something else where it hurts most, or anywhere */

static void
damage(void)
{
    u_char                    *p;
    size_t                     size;
    uint32_t                   value;
    ngx_kexec_zone_sh_t       *sh;
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *ctx;

    sh = zone->sh;
    cl = &zone->claims[any(3) ? any(24) : any(zone->nclaims)];
    ctx = &zone->contexts[any(3) ? any(6) : any(zone->ncontexts)];

    switch (any(4)) {
    case 0:
        value = any(24);
        break;
    case 1:
        value = NGX_KEXEC_NONE;
        break;
    case 2:
        value = seed;
        break;
    default:
        value = any(7);
    }

    switch (any(30)) {
    case 0: cl->next = value; break;
    case 1: cl->prev = value; break;
    case 2: cl->next_notice = value; break;
    case 3: cl->prev_notice = value; break;
    case 4: cl->state = value; break;
    case 5: cl->kind = value; break;
    case 6: cl->context = value; break;
    case 7: cl->context_generation = value; break;
    case 8: cl->worker = value; break;
    case 9: cl->worker_generation = value; break;
    case 10: cl->generation = value; break;
    case 11: cl->sequence = any(2) ? value : seed; break;
    case 12: cl->verdict = value; break;
    case 13: cl->noticed = value; break;
    case 14: ctx->c.state = value; break;
    case 15: ctx->holder = value; break;
    case 16: ctx->head = value; break;
    case 17: ctx->tail = value; break;
    case 18: ctx->watchers = value; break;
    case 19: ctx->next = value; break;
    case 20: ctx->next_default = value; break;
    case 21: ctx->c.ref.generation = value; break;
    case 22: ctx->c.language_len = value; break;
    case 23: ctx->created = value; ctx->torn = value >> 1; break;
    case 24: ctx->c.is_default = value; break;
    case 25: sh->free_claims = value; sh->free_contexts = value; break;
    case 26: sh->workers[any(4)].head = value; break;
    case 27: sh->workers[any(4)].generation = value; break;
    case 28: zone->ids[any(zone->nbuckets)] = value; break;

    default:

        /* a byte of anything but the lock and what is not looked at */

        p = (u_char *) &sh->serial;
        size = (u_char *) &zone->defaults[zone->nbuckets] - p;
        p[any(size)] = value;
    }
}


static void
test_damage(void **state)
{
    ngx_uint_t              i, n, round;
    ngx_kexec_zone_stat_t   stat;

    stop(1);
    stop(2);
    be(0);
    stub_timers(1);

    for (round = 0; round < 8000; round++) {

        seed = round + 1;

        ngx_kexec_zone_exit_process(zone);
        stub_forget_channels();
        (void) ngx_kexec_zone_init_process(zone, &stub.cycle);

        for (i = any(150); i; i--) {
            step();
        }

        assert_int_equal(ngx_kexec_zone_wrong(zone), 0);

        for (n = 1 + any(round % 3 ? 4 : 40); n; n--) {
            damage();
        }

        /* as if it was done by a worker that died in here */

        zone->sh->writer = 1;

        assert_int_equal(ngx_kexec_zone_wrong(zone), 0);

        /* a worker that lost its own record has a new one after a sweep */

        for (i = 0; i < 3; i++) {
            stub_timers(1);
        }

        ngx_kexec_zone_stat(zone, &stat);
        assert_int_equal(stat.dead, 0);

        for (i = 0; i < 40; i++) {
            step();
        }

        assert_usable();

        memset(own, 0, sizeof(own));
    }

    worker[1].pid = 0;
    worker[2].pid = 0;
}


/* and when there is nothing but noise */

static void
test_noise(void **state)
{
    u_char      *p;
    size_t       i, size;
    ngx_uint_t   round;

    stop(1);
    stop(2);
    be(0);

    for (round = 0; round < 50; round++) {

        seed = round + 1;

        p = (u_char *) &zone->sh->serial;
        size = (u_char *) &zone->defaults[zone->nbuckets] - p;

        for (i = 0; i < size; i++) {
            p[i] = any(256);
        }

        zone->sh->writer = 1;

        assert_int_equal(ngx_kexec_zone_wrong(zone), 0);
        memset(own, 0, sizeof(own));

        for (i = 0; i < 3; i++) {
            stub_timers(1);
        }

        for (i = 0; i < 100; i++) {
            step();
        }

        assert_usable();
    }

    memset(worker[1].self.owners, 0, zone->nclaims * sizeof(void *));
    worker[1].pid = 0;
    worker[2].pid = 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_random, setup, teardown),
#if (NGX_DEBUG)
        cmocka_unit_test_setup_teardown(test_crash, setup, teardown),
#endif
        cmocka_unit_test_setup_teardown(test_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_holders, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_noise, setup, teardown),
    };

    seed = 1;

    stub_start();

    if (ngx_kexec_wake_init(NGX_KEXEC_MAX_WORKERS, stub.cycle.log) != NGX_OK) {
        return 1;
    }

    /* a checker that never ends must not take the tests with it */

    alarm(120);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
