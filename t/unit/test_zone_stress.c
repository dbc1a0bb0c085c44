
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "stub_nginx.h"
#include <ngx_kexec_wake.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>


/*
 * Several workers share a few contexts, and this process is their master: it
 * kills one now and then, unlocks what that had locked, and starts another
 * one in its place.
 */


#define WORKERS     4
#define CONTEXTS    3
#define JOBS        8
#define LIMIT       64

#define DURATION    5000
#define STALLS      3500        /* from then on some do not answer in time */
#define PATIENCE    8000


typedef enum {
    IDLE,
    WAITING,
    HOLDING,
    CREATING
} job_state_e;


typedef struct {
    ngx_kexec_claim_t   claim;
    job_state_e         state;
    ngx_uint_t          context;
    ngx_uint_t          operation;
    ngx_msec_t          since;
    ngx_msec_t          next;           /* when it does something again */
    ngx_msec_t          gives_up;
} job_t;


/* what all processes write down */

typedef struct {
    ngx_atomic_t        stop;
    ngx_atomic_t        stalls;

    ngx_atomic_t        inside[CONTEXTS];   /* who holds the slot */
    ngx_atomic_t        code[CONTEXTS];     /* with code, no operation */

    ngx_atomic_t        runs;
    ngx_atomic_t        waited;
    ngx_atomic_t        aborted;
    ngx_atomic_t        thrown_out;
    ngx_atomic_t        orphans;

    /* what must not happen */
    ngx_atomic_t        overtaken;
    ngx_atomic_t        doubled;
    ngx_atomic_t        not_told;
    ngx_atomic_t        forgotten;
    ngx_atomic_t        refused;
} board_t;


static board_t           *board;
static ngx_kexec_zone_t  *zone;

static ngx_pid_t          workers[WORKERS];
static ngx_uint_t         deaths;
static job_t              jobs[JOBS];
static uint64_t           seed;


static ngx_uint_t
any(ngx_uint_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;

    return (seed >> 11) % n;
}


static void
count(ngx_atomic_t *counter)
{
    (void) ngx_atomic_fetch_add(counter, 1);
}


/*
 * The slot is ours: nobody who was there before and did not have his chance
 * is still waiting, nobody else is in there, and if somebody died in there
 * we are told so.
 */

static void
held(job_t *job)
{
    uint32_t                 i;
    ngx_pid_t                pid;
    ngx_kexec_context_t      ctx;
    ngx_kexec_zone_claim_t  *cl, *own;

    ngx_kexec_zone_lock(zone);

    own = &zone->claims[job->claim.ref.index];
    i = zone->contexts[own->context].head;

    for ( /* void */ ; i != NGX_KEXEC_NONE; i = cl->next) {
        cl = &zone->claims[i];

        if (own->kind == NGX_KEXEC_CLAIM_RUN
            && cl->granted == 0
            && cl->sequence < own->sequence)
        {
            count(&board->overtaken);
        }
    }

    ngx_kexec_zone_unlock(zone);

    if (ngx_kexec_zone_get(zone, &job->claim.context, &ctx) != NGX_OK) {
        count(&board->doubled);
        return;
    }

    pid = board->inside[job->context];

    if (pid) {

        if (kill(pid, 0) == 0) {
            count(&board->doubled);

        } else if (!ctx.dirty && board->code[job->context]) {
            count(&board->not_told);
        }

        count(&board->orphans);
    }

    ngx_kexec_claim_phase(&job->claim, NGX_KEXEC_PHASE_RUNNING);

    board->code[job->context] = (own->kind == NGX_KEXEC_CLAIM_RUN);
    board->inside[job->context] = ngx_pid;

    ctx.dirty = 0;
    ctx.kernel.len = 8;
    memset(ctx.kernel.data, 'a' + any(26), 8);

    ngx_kexec_zone_update(&job->claim, &ctx);

    count(&board->runs);

    job->state = HOLDING;
    job->next = ngx_current_msec + any(4);
}


static void
end(job_t *job)
{
    if (job->state == HOLDING) {
        board->inside[job->context] = 0;
    }

    ngx_kexec_claim_leave(&job->claim);

    job->state = IDLE;
    job->next = ngx_current_msec + any(10);
}


static void
look(job_t *job)
{
    ngx_kexec_claim_look_t  seen;

    ngx_kexec_claim_look(&job->claim, &seen);

    if (job->state != WAITING) {

        if (seen.verdict) {
            end(job);
        }

        return;
    }

    switch (seen.state) {

    case NGX_KEXEC_CLAIM_HELD:
        count(&board->waited);
        held(job);
        return;

    case NGX_KEXEC_CLAIM_QUEUED:

        if (ngx_current_msec - job->since > PATIENCE) {
            count(&board->forgotten);
            end(job);
            return;
        }

        if ((ngx_msec_int_t) (job->gives_up - ngx_current_msec) <= 0) {
            count(&board->aborted);
            end(job);
            return;
        }

        job->next = ngx_min(job->gives_up, ngx_current_msec + 500);
        return;

    case NGX_KEXEC_CLAIM_ENDED:
        count(&board->thrown_out);
        end(job);
        return;

    default:
        count(&board->refused);
        end(job);
    }
}


static void
handler(ngx_kexec_claim_t *claim)
{
    look(claim->data);
}


static void
begin(job_t *job)
{
    ngx_int_t             rc;
    ngx_str_t             language;
    ngx_kexec_context_t   ctx;
    u_char                name[16];

    job->context = any(CONTEXTS);
    job->since = ngx_current_msec;
    job->gives_up = ngx_current_msec + (any(3) ? 60000 : any(20));
    job->next = ngx_current_msec + any(10);

    language.data = name;
    language.len = sprintf((char *) name, "language%d", (int) job->context);

    rc = ngx_kexec_zone_default(zone, &language, &ctx);

    if (rc != NGX_OK || ctx.state == NGX_KEXEC_CONTEXT_FAILED) {

        memset(&ctx, 0, sizeof(ngx_kexec_context_t));
        snprintf((char *) ctx.cwd, sizeof(ctx.cwd), "%036llx",
                 (unsigned long long) seed);
        memcpy(ctx.id, ctx.cwd, NGX_KEXEC_UUID_LEN);
        memcpy(ctx.language, name, language.len);
        ctx.language_len = language.len;
        ctx.is_default = 1;

        rc = ngx_kexec_zone_create(zone, &ctx, &job->claim);

        if (rc == NGX_OK) {

            /* the kernel of one whose record was lost is another one now */

            board->inside[job->context] = 0;
            job->state = CREATING;
            return;
        }

        if (rc != NGX_BUSY) {
            count(&board->refused);
            return;
        }
    }

    job->claim.context = ctx.ref;
    job->operation = (any(50) == 0);

    rc = job->operation ? ngx_kexec_claim_operate(zone, &job->claim,
                                                  NGX_KEXEC_CLAIM_RESTART, LIMIT)
                        : ngx_kexec_claim_enter(zone, &job->claim, LIMIT);

    switch (rc) {

    case NGX_OK:
        held(job);
        break;

    case NGX_AGAIN:
        job->state = WAITING;
        job->next = ngx_min(job->gives_up, ngx_current_msec + 500);
        break;

    case NGX_ERROR:
        count(&board->refused);
    }
}


static void
worker(ngx_uint_t k)
{
    ngx_uint_t   i;
    job_t       *job;

    prctl(PR_SET_PDEATHSIG, SIGKILL);

    stub_spin = NULL;
    stub_forget_channels();

    ngx_pid = getpid();
    ngx_current_msec = ngx_kexec_zone_now();

#if (NGX_DEBUG)
    ngx_kexec_zone_crash_point = 1 + any(NGX_KEXEC_CRASH_POINTS);
#endif

    if (ngx_kexec_zone_init_process(zone, &stub.cycle) != NGX_OK) {
        _exit(2);
    }

    for (i = 0; i < JOBS; i++) {
        jobs[i].claim.handler = handler;
        jobs[i].claim.data = &jobs[i];
    }

    while (!board->stop) {

        for (i = 0; i < JOBS; i++) {
            job = &jobs[i];

            if ((ngx_msec_int_t) (job->next - ngx_current_msec) > 0) {
                continue;
            }

            switch (job->state) {

            case IDLE:
                begin(job);
                break;

            case WAITING:
                look(job);
                break;

            case CREATING:
                ngx_kexec_zone_created(&job->claim);

                /* fall through */

            case HOLDING:
                end(job);
            }
        }

        if (board->stalls && k == 0 && any(300) == 0) {
            usleep(1200000);
        }

        stub_loop(1);
    }

    for (i = 0; i < JOBS; i++) {
        end(&jobs[i]);
    }

    ngx_kexec_zone_exit_process(zone);

    _exit(0);
}


static void
spawn(ngx_uint_t k)
{
    seed += 0x9e3779b97f4a7c15;

    workers[k] = fork();

    if (workers[k] == 0) {
        worker(k);
    }
}


/* what the master does on SIGCHLD; those who wait for the lock do it too */

static void
reap(void)
{
    int         status;
    ngx_pid_t   pid;
    ngx_uint_t  k;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {

        stub_unlock(zone, pid);

        for (k = 0; k < WORKERS; k++) {

            if (workers[k] == pid) {
                workers[k] = 0;
            }
        }

        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
            deaths++;

        } else if (!board->stop || !WIFEXITED(status)
                   || WEXITSTATUS(status) != 0)
        {
            fail_msg("a worker ended with status %d", status);
        }
    }
}


static void
test_stress(void **state)
{
    ngx_uint_t              i, k, bad;
    ngx_msec_t              start, now, next;
    ngx_kexec_zone_stat_t   stat;

    board = mmap(NULL, sizeof(board_t), PROT_READ|PROT_WRITE,
                 MAP_ANON|MAP_SHARED, -1, 0);
    assert_ptr_not_equal(board, MAP_FAILED);

    zone = stub_zone(256 * 1024);
    assert_non_null(zone);

    stub_spin = reap;

    start = ngx_kexec_zone_now();
    next = start + 300;

    for (k = 0; k < WORKERS; k++) {
        spawn(k);
    }

    for ( ;; ) {
        usleep(10000);

        now = ngx_kexec_zone_now() - start;

        if (now > DURATION) {
            break;
        }

        board->stalls = (now > STALLS);

        reap();

        for (k = 0; k < WORKERS; k++) {
            if (workers[k] == 0) {
                spawn(k);
            }
        }

        ngx_kexec_zone_lock(zone);
        bad = ngx_kexec_zone_check(zone, 0);
        ngx_kexec_zone_unlock(zone);

        assert_int_equal(bad, 0);

        if (now + start > next) {
            next = now + start + 100 + any(100);

#if (NGX_DEBUG)
            /* some die where it hurts, and some anywhere */

            if (any(2)) {
                zone->sh->crashed = 0;
                continue;
            }
#endif

            k = any(WORKERS);

            if (workers[k]) {
                kill(workers[k], SIGKILL);
            }
        }
    }

#if (NGX_DEBUG)
    zone->sh->crashed = 1;
#endif

    board->stop = 1;

    for (k = 0; k < WORKERS; k++) {
        for (i = 0; workers[k] && i < 1000; i++) {
            usleep(10000);
            reap();
        }

        assert_int_equal(workers[k], 0);
    }

    /* who comes next finds the zone in order, and nobody in there */

    ngx_pid = getpid();
    assert_int_equal(ngx_kexec_zone_init_process(zone, &stub.cycle), NGX_OK);

    ngx_kexec_zone_stat(zone, &stat);

    print_message("%d runs, %d of them had waited, %d gave up, %d thrown out, "
                  "%d deaths, %d orphans, %d repairs\n",
                  (int) board->runs, (int) board->waited,
                  (int) board->aborted, (int) board->thrown_out,
                  (int) deaths, (int) board->orphans, (int) stat.rebuilt);

    assert_int_equal(board->overtaken, 0);
    assert_int_equal(board->doubled, 0);
    assert_int_equal(board->not_told, 0);
    assert_int_equal(board->forgotten, 0);
    assert_int_equal(board->refused, 0);

    assert_int_equal(stat.claims, 0);
    assert_int_equal(stat.dead, 0);
    assert_int_equal(stat.idle, 0);

    assert_true(board->runs > 200);
    assert_true(board->waited > 100);
    assert_true(board->aborted > 10);
    assert_true(deaths > 5);

#if (NGX_DEBUG)
    assert_true(stat.rebuilt > 0);
#endif

    ngx_kexec_zone_lock(zone);
    assert_int_equal(ngx_kexec_zone_check(zone, 0), 0);
    ngx_kexec_zone_unlock(zone);

    ngx_kexec_zone_exit_process(zone);
    stub_free(0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_stress),
    };

    seed = time(NULL);

    stub_start();

    if (ngx_kexec_wake_init(NGX_KEXEC_MAX_WORKERS, stub.cycle.log) != NGX_OK) {
        return 1;
    }

    alarm(60);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
