
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_machine.h>
#include <ngx_kexec_phase.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>


/*
 * The machine in random surroundings: a kernel that says what it likes, in any
 * order, a Jupyter that answers anything or nothing, links that end, clients
 * that leave.  What has to hold all the same is checked at each action; in the
 * end all falls silent, and timers alone have to bring the execution to its
 * end.
 *
 *     test_machine [RUNS [SEED]]      a seed alone is one run, told in full
 */


#define RUNS   200000
#define STEPS  400


typedef struct {
    ngx_kexec_machine_t         m;
    ngx_msec_t                  begun;
    ngx_uint_t                  run;

    /* what the hands have */
    ngx_kexec_call_e            call;
    ngx_uint_t                  mark;
    ngx_uint_t                  fetch;
    ngx_uint_t                  taken;
    ngx_uint_t                  discarded;  /* what is taken next is new */
    ngx_uint_t                  opening;
    ngx_uint_t                  open;
    ngx_uint_t                  viewer;
    ngx_uint_t                  phase;

    ngx_uint_t                  others;     /* who have a link, too */
    ngx_uint_t                  counted;    /* ours when Jupyter was asked */
    ngx_uint_t                  knew;       /* that no cell of theirs runs */

    /* what has happened */
    ngx_uint_t                  told;       /* an error */
    ngx_uint_t                  done;
    ngx_uint_t                  sent;       /* the code, times */
    ngx_uint_t                  died;       /* a process that may have had it */
    ngx_uint_t                  hit;        /* an interrupt may come yet */
    ngx_uint_t                  was;        /* hit, before the last one */
    ngx_uint_t                  loose;      /* one was never answered */
    ngx_uint_t                  behind;     /* a fence was sent behind it */
    ngx_uint_t                  almost;     /* but for the one under way */
    ngx_uint_t                  evicted;    /* for a new process, or none; or
                                               the record is not ours */
    ngx_uint_t                  shutdown;

    /* events to come at once */
    ngx_uint_t                  n;
    ngx_kexec_machine_event_t   events[8];
} world_t;


static uint64_t    seed;
static ngx_uint_t  runs = RUNS;
static ngx_uint_t  story;

/* which events came in which state */
static ngx_uint_t  seen[NGX_KEXEC_EX_STATES][NGX_KEXEC_ON_N];


static ngx_uint_t
any(ngx_uint_t n)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;

    return (seed >> 33) % n;
}


static void
check(world_t *w, ngx_uint_t holds, const char *what)
{
    if (!holds) {
        fail_msg("run %u, state %s: %s", (unsigned) w->run,
                 ngx_kexec_machine_states[w->m.state].name, what);
    }
}


static void
push(world_t *w, ngx_kexec_on_e what, ngx_int_t n)
{
    check(w, w->n < 8, "too many events at once");

    memset(&w->events[w->n], 0, sizeof(ngx_kexec_machine_event_t));

    w->events[w->n].what = what;
    w->events[w->n].n = n;
    w->n++;
}


static void
take(world_t *w)
{
    ngx_kexec_machine_event_t  *ev;

    w->taken = 1;

    push(w, NGX_KEXEC_ON_KERNEL, 0);

    ev = &w->events[w->n - 1];
    ev->open = !w->discarded && any(2);
    ev->fresh = ev->open ? any(2) : 1;
    ev->seen = ev->open ? any(2) : 0;
    ev->foreign = ev->open && any(4) == 0;

    w->open = ev->open;
}


static void
call(world_t *w, ngx_kexec_call_e what)
{
    ngx_kexec_machine_t  *m;

    m = &w->m;

    check(w, w->call == NGX_KEXEC_CALL_NONE, "two calls at a time");

    if (what == NGX_KEXEC_CALL_INTERRUPT) {
        check(w, m->state != NGX_KEXEC_EX_SENT, "an interrupt in SENT");
        check(w, m->state != NGX_KEXEC_EX_BUSY || !m->code.idle,
              "an interrupt after the code's end");
        check(w, m->state == NGX_KEXEC_EX_BUSY || m->foreign == 0,
              "somebody else's cell is interrupted");
        check(w, m->state != NGX_KEXEC_EX_DONE
                 && m->state != NGX_KEXEC_EX_LEAVING
                 && m->state != NGX_KEXEC_EX_RESTORING,
              "an interrupt when the slot goes on");
    }

    if (what != NGX_KEXEC_CALL_SESSION && what != NGX_KEXEC_CALL_DROP) {
        check(w, w->taken, "a call for no kernel");
    }

    if (any(200) == 0) {
        push(w, NGX_KEXEC_ON_FAILED, NGX_KEXEC_DO_CALL);

        if (m->state == NGX_KEXEC_EX_LEAVING) {

            /* there is no memory to ask with, and no other way to know */

            w->loose = 0;
        }

        return;
    }

    w->call = what;
    w->counted = w->open;

    if (what == NGX_KEXEC_CALL_INTERRUPT) {
        w->was = w->hit;
        w->almost = w->behind;
        w->hit = 1;
        w->behind = 0;
    }
}


static void
act(world_t *w, ngx_kexec_action_t *action)
{
    check(w, !w->done, "something is done after the end");

    switch (action->what) {

    case NGX_KEXEC_DO_LOOK:

        if (w->m.state == NGX_KEXEC_EX_QUEUED) {
            push(w, any(3) ? NGX_KEXEC_ON_GRANTED : NGX_KEXEC_ON_QUEUED, 0);
        }

        return;

    case NGX_KEXEC_DO_TAKE:
        check(w, !w->taken, "the kernel is taken twice");

        if (any(200) == 0) {
            push(w, NGX_KEXEC_ON_FAILED, action->what);
            return;
        }

        take(w);
        return;

    case NGX_KEXEC_DO_OTHER:
        check(w, w->taken && !w->open, "another session's link, too late");
        return;

    case NGX_KEXEC_DO_OPEN:
        check(w, w->taken, "a link to no kernel");

        w->open = 0;
        w->counted = 0;
        w->opening = 1;

        if (any(50) == 0) {
            w->opening = 0;
            push(w, NGX_KEXEC_ON_FAILED, action->what);
        }

        return;

    case NGX_KEXEC_DO_DISCARD:
        check(w, w->taken, "no kernel is thrown away");
        w->taken = 0;
        w->open = 0;
        w->counted = 0;
        w->opening = 0;
        w->discarded = 1;
        return;

    case NGX_KEXEC_DO_SEND_FENCE:
        w->behind = (w->call != NGX_KEXEC_CALL_INTERRUPT && !w->loose);
        w->almost = !w->loose;
        return;

    case NGX_KEXEC_DO_PHASE:
        check(w, w->phase != action->n, "a phase is told twice");
        w->phase = action->n;
        return;

    case NGX_KEXEC_DO_SEND_CODE:
        check(w, w->phase == NGX_KEXEC_PHASE_RUNNING
                 || w->phase == NGX_KEXEC_PHASE_RECONNECTING,
              "code is sent before its phase is told");
        check(w, !w->died, "code is sent again after a death");
        check(w, w->sent < 60, "code is sent for ever again");
        w->sent++;
        return;

    case NGX_KEXEC_DO_STEP:
        push(w, NGX_KEXEC_ON_STEP, any(100) == 0 ? NGX_ERROR
                                   : any(2) ? NGX_DECLINED : NGX_OK);
        return;

    case NGX_KEXEC_DO_FETCH:
        check(w, !w->fetch, "variables are fetched twice");
        w->fetch = 1;
        return;

    case NGX_KEXEC_DO_FETCH_NOT:
        w->fetch = 0;
        return;

    case NGX_KEXEC_DO_MARK:
        check(w, !w->mark, "a session is renamed twice");
        w->mark = 1;
        return;

    case NGX_KEXEC_DO_MARK_NOT:
        w->mark = 0;
        return;

    case NGX_KEXEC_DO_CALL:
        call(w, action->n);
        return;

    case NGX_KEXEC_DO_CALL_NOT:
        w->call = NGX_KEXEC_CALL_NONE;
        return;

    case NGX_KEXEC_DO_TELL:
        w->told = 1;

        /* fall through */

    case NGX_KEXEC_DO_TELL_VERDICT:
        check(w, w->viewer, "somebody is told who is not there");
        return;

    case NGX_KEXEC_DO_TELL_END:
        check(w, w->viewer, "a stream ends twice");
        check(w, w->told || (w->m.code.reply
                             && (w->m.code.status == NGX_KEXEC_ANSWER_OK
                                 || w->m.code.status
                                    == NGX_KEXEC_ANSWER_ERROR)),
              "an end without a word");
        w->viewer = 0;
        return;

    case NGX_KEXEC_DO_LOG:
        check(w, action->say != NGX_KEXEC_LOG_HELD
                 || w->m.held != NGX_KEXEC_HELD_LEFTOVER
                 || w->knew || w->m.recover || !w->others,
              "what others run is taken for a leftover");
        return;

    case NGX_KEXEC_DO_DONE:
        w->done = 1;

        /* where Jupyter answers nothing at all, the next one begins anew */

        check(w, w->m.shutdown
                 || (w->call != NGX_KEXEC_CALL_INTERRUPT
                     && (!w->loose || !w->taken || !w->m.facts.ready)),
              "an interrupt is on its way when the slot goes on");

        /*
         * Who has the slot next sends a fence first, or what was interrupted
         * still holds the kernel, or there is nothing more to come.
         */

        check(w, !w->hit || w->m.held || !w->m.facts.ready || w->m.facts.dirty
                 || w->m.fresh || w->m.shutdown || w->evicted || !w->open,
              "an interrupt may reach the next one");
        return;

    default:
        return;
    }
}


static void
happens(world_t *w, ngx_kexec_machine_event_t *ev)
{
    ngx_uint_t            i, before;
    ngx_kexec_machine_t  *m;
#if (NGX_KEXEC_TEST)
    const char           *broken;
#endif

    m = &w->m;
    before = m->state;

    m->link_up = w->open || w->opening;
    w->knew = m->seen || m->recover;

    seen[before][ev->what]++;

    if ((ev->what == NGX_KEXEC_ON_FENCE_REPLY
         || ev->what == NGX_KEXEC_ON_FENCE_IDLE)
        && m->fence.sent)
    {
        w->hit = w->behind ? 0 : w->hit;
        w->was = w->almost ? 0 : w->was;
    }

    if (ev->what == NGX_KEXEC_ON_DEAD
        || (ev->what == NGX_KEXEC_ON_CLOSED && ev->n == 404))
    {
        /* the kernel is gone: whatever is on its way reaches nobody */

        w->hit = 0;
        w->loose = 0;
    }

    if (ev->what == NGX_KEXEC_ON_EVICTED || ev->what == NGX_KEXEC_ON_LOST) {
        w->evicted = 1;
    }

    if ((ev->what == NGX_KEXEC_ON_DIED || ev->what == NGX_KEXEC_ON_DEAD
         || ev->what == NGX_KEXEC_ON_SHUTDOWN_REPLY)
        && w->call != NGX_KEXEC_CALL_INTERRUPT && !w->loose)
    {
        /* the process that it was for is gone */

        w->hit = 0;
    }

    ngx_kexec_machine(m, ev);

    if (story) {
        print_message("%8lu  %s -> %s by %s:%ld, call %d\n",
                      (unsigned long) (m->now - w->begun),
                      ngx_kexec_machine_states[before].name,
                      ngx_kexec_machine_states[m->state].name,
                      ngx_kexec_machine_event_name(ev), (long) ev->n, m->call);
    }

#if (NGX_KEXEC_TEST)
    broken = ngx_kexec_machine_check(m);

    if (broken) {
        check(w, 0, broken);
    }
#endif

    for (i = 0; i < m->nactions; i++) {

        if (story) {
            print_message("          does %d:%lu\n", m->actions[i].what,
                          (unsigned long) m->actions[i].n);
        }

        act(w, &m->actions[i]);
    }

    if (m->state == NGX_KEXEC_EX_DONE) {
        check(w, w->done, "an end that nobody is told of");
        check(w, !w->viewer, "a client is left behind");
        return;
    }

    check(w, !w->done, "it goes on after the end");
    check(w, m->viewer == w->viewer, "whether there is a client");

    if (w->n == 0) {
        check(w, m->call == w->call, "which call is under way");
        check(w, (m->reach != NGX_KEXEC_REACH_NOT) == w->taken,
              "whether there is a kernel");
        check(w, m->waits || m->call, "nothing is waited for");
    }
}


static void
settle(world_t *w)
{
    ngx_kexec_machine_event_t  ev;

    while (w->n && !w->done) {
        ev = w->events[0];
        w->n--;
        memmove(w->events, w->events + 1,
                w->n * sizeof(ngx_kexec_machine_event_t));
        happens(w, &ev);
    }

    w->n = 0;
}


static void
event(world_t *w, ngx_kexec_on_e what, ngx_int_t n)
{
    push(w, what, n);
    settle(w);
}


/* the next timer, if there is one */

static void
timer(world_t *w)
{
    ngx_uint_t            i, first;
    ngx_kexec_machine_t  *m;

    m = &w->m;
    first = NGX_KEXEC_WAIT_N;

    for (i = 0; i < NGX_KEXEC_WAIT_N; i++) {

        if ((m->waits & (1 << i))
            && (first == NGX_KEXEC_WAIT_N || m->wait[i] < m->wait[first]))
        {
            first = i;
        }
    }

    if (first == NGX_KEXEC_WAIT_N) {
        return;
    }

    m->now = ngx_max(m->now, m->wait[first]);

    event(w, NGX_KEXEC_ON_TIMER, first);
}


static void
answer(world_t *w, ngx_int_t status)
{
    ngx_kexec_machine_event_t  *ev;

    push(w, NGX_KEXEC_ON_ANSWER, status);

    ev = &w->events[w->n - 1];

    ev->connected = status ? 1 : any(2);

    if (status) {
        w->loose = 0;

        if (status == 404
            || (status == 200 && (w->call == NGX_KEXEC_CALL_RESTART
                                  || w->call == NGX_KEXEC_CALL_SESSION)))
        {
            /* another kernel, or another process */

            w->hit = 0;
        }

    } else if (w->call == NGX_KEXEC_CALL_INTERRUPT) {

        if (ev->connected) {
            w->loose = 1;

        } else {
            w->hit = w->was;
            w->behind = w->almost;
        }

    } else if (w->m.state == NGX_KEXEC_EX_LEAVING) {

        /* that was asked for, and has its limit, too */

        w->loose = 0;
    }

    if (w->call == NGX_KEXEC_CALL_SESSION) {
        ev->say = (status == 200) ? NGX_KEXEC_SAY_NONE : NGX_KEXEC_SAY_SESSION;
    }

    if (status == 200) {
        ev->says = any(3);
        ev->links = w->others + (w->counted ? 1 : any(2));
    }

    w->call = NGX_KEXEC_CALL_NONE;

    settle(w);
}


static void
says(world_t *w)
{
    ngx_kexec_machine_t        *m;
    ngx_kexec_machine_event_t  *ev;

    m = &w->m;
    m->link_read = m->now;

    switch (any(16)) {

    case 0:
    case 1:
        event(w, NGX_KEXEC_ON_CODE_BUSY, 0);
        return;

    case 2:
        event(w, NGX_KEXEC_ON_CODE_OUTPUT, 0);
        return;

    case 3:
    case 4:
        event(w, NGX_KEXEC_ON_CODE_IDLE, 0);
        return;

    case 5:
    case 6:
        push(w, NGX_KEXEC_ON_CODE_REPLY, any(5));
        w->events[w->n - 1].exits = (any(20) == 0);
        settle(w);
        return;

    case 7:
        event(w, NGX_KEXEC_ON_FENCE_IOPUB, 0);
        return;

    case 8:
        event(w, NGX_KEXEC_ON_FENCE_IDLE, 0);
        return;

    case 9:
    case 10:
        push(w, NGX_KEXEC_ON_FENCE_REPLY, 0);

        ev = &w->events[w->n - 1];
        ev->process = any(3);
        ev->in_order = any(2);

        settle(w);
        return;

    case 11:
    case 12:
        event(w, NGX_KEXEC_ON_STEP_REPLY, any(8) ? NGX_KEXEC_ANSWER_OK
                                                 : any(5));
        return;

    case 13:
        push(w, NGX_KEXEC_ON_FOREIGN, 0);
        w->events[w->n - 1].foreign = (any(3) == 0);
        settle(w);
        return;

    case 14:

        if (m->code.sent) {
            w->died = 1;
        }

        event(w, any(8) ? NGX_KEXEC_ON_DIED : NGX_KEXEC_ON_DEAD, 0);
        return;

    default:
        event(w, any(2) ? NGX_KEXEC_ON_STARTING : NGX_KEXEC_ON_SHUTDOWN_REPLY,
              0);
        return;
    }
}


static void
step(world_t *w)
{
    static ngx_int_t  statuses[] = { 200, 200, 200, 204, 0, 500, 404 };
    static ngx_int_t  closes[] = { 0, 1006, 1006, 1001, 404, 403, 1009 };

    w->m.now += any(4) ? any(30) : any(3000);

    switch (any(12)) {

    case 0:
    case 1:
        timer(w);
        return;

    case 2:
    case 3:

        if (w->call) {
            answer(w, statuses[any(7)]);
        }

        return;

    case 4:

        if (w->opening || w->open) {
            w->opening = 0;
            w->open = 0;
            w->counted = 0;
            event(w, NGX_KEXEC_ON_CLOSED, closes[any(7)]);
        }

        return;

    case 5:

        if (w->viewer && any(4) == 0) {
            w->viewer = 0;
            event(w, NGX_KEXEC_ON_CLIENT_LEFT, 0);

        } else if (any(4) == 0) {
            event(w, NGX_KEXEC_ON_INTERRUPT, 0);
        }

        return;

    case 6:

        if (w->mark && any(2)) {
            w->mark = 0;
            event(w, NGX_KEXEC_ON_MARKED, 0);

        } else if (w->fetch) {
            w->fetch = 0;
            push(w, NGX_KEXEC_ON_FETCHED, 0);
            w->events[w->n - 1].say = any(3) ? NGX_KEXEC_SAY_NONE
                                             : NGX_KEXEC_SAY_FETCH;
            settle(w);
        }

        return;

    case 7:

        switch (any(60)) {

        case 0:
            event(w, NGX_KEXEC_ON_EVICTED, any(2));
            return;

        case 1:

            if (!w->shutdown) {
                w->shutdown = 1;
                w->m.conf.last_time = 1000;
                event(w, NGX_KEXEC_ON_WORKER_LEAVES, any(5000));
            }

            return;

        case 2:
            event(w, NGX_KEXEC_ON_ABANDONED, 0);
            return;

        case 3:

            if (any(10) == 0) {
                event(w, NGX_KEXEC_ON_LOST, 0);
            }

            return;

        case 4:

            if (w->open) {
                event(w, NGX_KEXEC_ON_STEP_IOPUB, 0);
            }

            return;
        }

        return;

    default:

        if (w->opening) {
            w->opening = 0;
            w->open = 1;
            event(w, NGX_KEXEC_ON_OPENED, 0);

        } else if (w->open) {
            says(w);
        }

        return;
    }
}


/* what Jupyter owes is done; 0: it owes nothing */

static ngx_uint_t
jupyter_goes_on(world_t *w)
{
    if (w->opening) {
        w->opening = 0;
        w->open = 1;
        event(w, NGX_KEXEC_ON_OPENED, 0);

    } else if (w->call) {
        answer(w, 200);

    } else if (w->mark) {
        w->mark = 0;
        event(w, NGX_KEXEC_ON_MARKED, 0);

    } else if (w->fetch) {
        w->fetch = 0;
        event(w, NGX_KEXEC_ON_FETCHED, 0);

    } else {
        return 0;
    }

    return 1;
}


/* what goes on where nothing is wrong, or the code where nobody hinders it */

static void
help(world_t *w)
{
    ngx_kexec_machine_t        *m;
    ngx_kexec_machine_event_t  *ev;

    m = &w->m;
    m->now += any(20);

    if (jupyter_goes_on(w)) {
        return;
    }

    if (w->open && m->fence.sent) {
        m->link_read = m->now;

        if (!m->fence.iopub) {
            event(w, any(2) ? NGX_KEXEC_ON_FENCE_IOPUB
                            : NGX_KEXEC_ON_FENCE_IDLE, 0);
            return;
        }

        push(w, NGX_KEXEC_ON_FENCE_REPLY, 0);

        ev = &w->events[w->n - 1];
        ev->process = m->facts.process ? m->facts.process : 1;
        ev->in_order = m->facts.in_order;

        settle(w);

    } else if (w->open && m->silent.sent) {
        m->link_read = m->now;
        event(w, NGX_KEXEC_ON_STEP_REPLY, NGX_KEXEC_ANSWER_OK);

    } else if (w->open && m->code.sent && any(2)) {
        m->link_read = m->now;

        event(w, m->code.reply ? NGX_KEXEC_ON_CODE_IDLE
                 : m->code.idle ? NGX_KEXEC_ON_CODE_REPLY
                 : any(3) ? NGX_KEXEC_ON_CODE_BUSY : NGX_KEXEC_ON_CODE_REPLY,
              m->code.reply ? 0 : any(4));

    } else {
        timer(w);
    }
}


/* nobody says anything any more, but Jupyter answers calls */

static void
fall_silent(world_t *w)
{
    ngx_uint_t            i;
    ngx_msec_t            limit;
    ngx_kexec_machine_t  *m;

    m = &w->m;

    if (w->viewer) {
        w->viewer = 0;
        event(w, NGX_KEXEC_ON_CLIENT_LEFT, 0);
    }

    limit = m->now + 1800000;

    for (i = 0; i < 20000 && !w->done; i++) {

        if (!jupyter_goes_on(w)) {
            timer(w);
        }

        if (m->foreign || m->held == NGX_KEXEC_HELD_FOREIGN
            || m->conf.never_restart)
        {
            /* the slot may be kept for as long as that runs */

            return;
        }

        if (m->now > limit) {
            break;
        }
    }

    check(w, w->done, "timers alone do not end it");
}


static void
live(ngx_uint_t run)
{
    ngx_uint_t            i, good;
    static world_t        w;
    ngx_kexec_machine_t  *m;

    seed = run;

    memset(&w, 0, sizeof(world_t));

    m = &w.m;

    w.run = run;
    w.begun = 1000000;
    m->now = w.begun;

    m->conf.queue_timeout = 30000;
    m->conf.ready_timeout = 60000;
    m->conf.reconnect_timeout = 30000;
    m->conf.interrupt_timeout = 15000;
    m->conf.timeout = any(3) ? 0 : any(20000) + 1;
    m->conf.create = (any(8) == 0);
    m->conf.is_default = any(2);
    m->conf.envs = (any(4) == 0);
    m->conf.never_restart = (any(6) == 0);

    w.others = any(2);

    if (!m->conf.create) {
        m->facts.kernel = (any(8) != 0);
        m->facts.session = m->facts.kernel;
        m->facts.ready = m->facts.kernel && any(3);
        m->facts.prepared = m->facts.ready ? any(3) : 0;
        m->facts.process = m->facts.ready ? any(3) : 0;
        m->facts.in_order = any(2);
        m->facts.dirty = (any(5) == 0);
        m->facts.owes_restore = (any(5) == 0);

        m->viewer = 1;
        w.viewer = 1;

        event(&w, NGX_KEXEC_ON_ENTERED, any(3) != 0);

    } else {
        event(&w, NGX_KEXEC_ON_START, 0);
    }

    good = any(4) * 30;

    for (i = 0; i < STEPS && !w.done; i++) {

        if (any(100) < good) {
            help(&w);

        } else {
            step(&w);
        }
    }

    if (!w.done) {
        fall_silent(&w);
    }
}


/* cells of the table of states to which no event came */

static void
unreached(void)
{
    ngx_uint_t                 i, k, n;
    ngx_kexec_machine_event_t  ev;

    ev.n = NGX_KEXEC_WAIT_QUEUE;

    for (i = 0, n = 0; i < NGX_KEXEC_EX_DONE; i++) {

        for (k = 0; k < NGX_KEXEC_ON_N; k++) {

            if (seen[i][k]
                || !(ngx_kexec_machine_states[i].events & ((uint64_t) 1 << k)))
            {
                continue;
            }

            ev.what = k;
            n++;

            print_message("not reached: %s by %s\n",
                          ngx_kexec_machine_states[i].name,
                          ngx_kexec_machine_event_name(&ev));
        }
    }

    /* some take millions of runs, but no part of it is dead */

    assert_true(n < 20);
}


static void
test_walks(void **state)
{
    ngx_uint_t  i, k, n;

    (void) state;

    if (story) {
        live(story);
        return;
    }

    for (i = 1; i <= runs; i++) {
        live(i);
    }

    for (i = 0; i < NGX_KEXEC_EX_DONE; i++) {

        for (n = 0, k = 0; k < NGX_KEXEC_ON_N; k++) {
            n += seen[i][k];
        }

        print_message("%12s: %lu events\n", ngx_kexec_machine_states[i].name,
                      (unsigned long) n);
        assert_true(n);
    }

    unreached();
}


/* each event has a name in the debug log, the last one its own */

static void
test_names(void **state)
{
    ngx_kexec_machine_event_t  ev;

    (void) state;

    ev.what = NGX_KEXEC_ON_N - 1;
    assert_string_equal(ngx_kexec_machine_event_name(&ev), "failed");

    ev.what = NGX_KEXEC_ON_TIMER;
    ev.n = NGX_KEXEC_WAIT_N - 1;
    assert_string_equal(ngx_kexec_machine_event_name(&ev), "timer last");
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_walks),
    };

    if (argc > 1) {
        runs = strtoul(argv[1], NULL, 10);
    }

    if (argc > 2) {
        story = strtoul(argv[2], NULL, 10);
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
