
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_machine_int.h>


static void ngx_kexec_machine_part(ngx_kexec_machine_t *m,
    ngx_kexec_machine_go_t *go);
static void ngx_kexec_machine_claim(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);
static void ngx_kexec_machine_message(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);
static void ngx_kexec_machine_work(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);
static void ngx_kexec_machine_timer(ngx_kexec_machine_t *m,
    ngx_kexec_wait_e wait);
static void ngx_kexec_machine_answer(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);
static void ngx_kexec_machine_failed(ngx_kexec_machine_t *m,
    ngx_kexec_do_e what);
static void ngx_kexec_machine_tell_phase(ngx_kexec_machine_t *m);
static ngx_uint_t ngx_kexec_machine_phase(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_left(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);


void
ngx_kexec_machine(ngx_kexec_machine_t *m, ngx_kexec_machine_event_t *ev)
{
    ngx_kexec_machine_go_t  go;

    m->nactions = 0;
    m->ngo = 0;

    if (ev->what == NGX_KEXEC_ON_TIMER) {
        m->waits &= ~(1 << ev->n);
    }

    if (!(ngx_kexec_machine_states[m->state].events
          & ((uint64_t) 1 << ev->what)))
    {
        return;
    }

    if (m->state == NGX_KEXEC_EX_LEAVING) {
        ngx_kexec_machine_left(m, ev);

    } else if (ev->what < NGX_KEXEC_ON_KERNEL) {
        ngx_kexec_machine_claim(m, ev);

    } else if (ev->what < NGX_KEXEC_ON_STEP) {
        ngx_kexec_machine_message(m, ev);

    } else {
        ngx_kexec_machine_work(m, ev);
    }

    while (m->ngo && m->state != NGX_KEXEC_EX_DONE) {
        go = m->go[--m->ngo];
        ngx_kexec_machine_part(m, &go);
    }

    ngx_kexec_machine_tell_phase(m);
}


/*
 * First of all that is to be done: whoever finds this worker dead takes the
 * phase for what it was about to do.
 */

static void
ngx_kexec_machine_tell_phase(ngx_kexec_machine_t *m)
{
    ngx_uint_t          phase;
    ngx_kexec_action_t  action;

    phase = ngx_kexec_machine_phase(m);

    if (phase == m->phase || m->state == NGX_KEXEC_EX_DONE) {
        return;
    }

    m->phase = phase;

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_PHASE, phase);

    action = m->actions[m->nactions - 1];

    ngx_memmove(&m->actions[1], &m->actions[0],
                (m->nactions - 1) * sizeof(ngx_kexec_action_t));

    m->actions[0] = action;
}


static ngx_uint_t
ngx_kexec_machine_phase(ngx_kexec_machine_t *m)
{
    ngx_uint_t  phase;

    phase = ngx_kexec_machine_states[m->state].phase;

    switch (phase) {

    case NGX_KEXEC_PHASE_PREPARING:
    case NGX_KEXEC_PHASE_RUNNING:
    case NGX_KEXEC_PHASE_CANCELLING:
        break;

    default:
        return phase;
    }

    if (m->held) {
        return (m->held == NGX_KEXEC_HELD_FOREIGN) ? NGX_KEXEC_PHASE_FOREIGN
                                                   : NGX_KEXEC_PHASE_LEFTOVER;
    }

    if (phase == NGX_KEXEC_PHASE_PREPARING) {

        /* code that was sent may start late, and is interrupted then */

        return m->code.sent ? NGX_KEXEC_PHASE_CANCELLING : phase;
    }

    if (phase == NGX_KEXEC_PHASE_RUNNING && m->reach != NGX_KEXEC_REACH_OPEN) {
        return NGX_KEXEC_PHASE_RECONNECTING;
    }

    return m->cancel ? NGX_KEXEC_PHASE_CANCELLING : phase;
}


/* where the event goes on */

static void
ngx_kexec_machine_part(ngx_kexec_machine_t *m, ngx_kexec_machine_go_t *go)
{
    switch (go->what) {

    case NGX_KEXEC_GO_SESSION:
        ngx_kexec_machine_session(m);
        return;

    case NGX_KEXEC_GO_CONNECT:
        ngx_kexec_machine_connect(m);
        return;

    case NGX_KEXEC_GO_CONNECT_ANEW:
        ngx_kexec_machine_connect_anew(m);
        return;

    case NGX_KEXEC_GO_PROBE:
        ngx_kexec_machine_probe(m);
        return;

    case NGX_KEXEC_GO_PROBE_BARRIER:
        ngx_kexec_machine_probe_barrier(m);
        return;

    case NGX_KEXEC_GO_SETUP:
        ngx_kexec_machine_setup(m);
        return;

    case NGX_KEXEC_GO_SEND_CODE:
        ngx_kexec_machine_send_code(m);
        return;

    case NGX_KEXEC_GO_RUN_FENCE:
        ngx_kexec_machine_run_fence(m);
        return;

    case NGX_KEXEC_GO_RUN_END:
        ngx_kexec_machine_run_end(m);
        return;

    case NGX_KEXEC_GO_RUN_DIED:
        ngx_kexec_machine_run_died(m, go->n);
        return;

    case NGX_KEXEC_GO_RESTORE:
        ngx_kexec_machine_restore(m);
        return;

    case NGX_KEXEC_GO_GONE:
        ngx_kexec_machine_gone(m);
        return;

    case NGX_KEXEC_GO_ASKED:
        ngx_kexec_machine_said(m);
        return;

    case NGX_KEXEC_GO_HELD_ASKED:
        ngx_kexec_machine_held_asked(m);
        return;

    case NGX_KEXEC_GO_HELD_CANCEL:
        ngx_kexec_machine_held_cancel(m);
        return;

    case NGX_KEXEC_GO_CANCEL:
        ngx_kexec_machine_cancel(m, go->n);
        return;

    case NGX_KEXEC_GO_INTERRUPT:
        ngx_kexec_machine_interrupt(m);
        return;

    case NGX_KEXEC_GO_INTERRUPT_FIRST:
        ngx_kexec_machine_interrupt_first(m);
        return;

    case NGX_KEXEC_GO_BARRIER:
        ngx_kexec_machine_barrier(m);
        return;

    default: /* NGX_KEXEC_GO_RESTART */
        ngx_kexec_machine_restart(m);
        return;
    }
}


/* events of the claim, the client, the worker */

static void
ngx_kexec_machine_claim(ngx_kexec_machine_t *m, ngx_kexec_machine_event_t *ev)
{
    switch (ev->what) {

    case NGX_KEXEC_ON_START:
        ngx_kexec_machine_session(m);
        return;

    case NGX_KEXEC_ON_ENTERED:

        if (ev->n) {

            /*
             * The headers go first: a client is attached yet, so the way on
             * begins in the event loop.
             */

            ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_LOOK, 0);
            return;
        }

        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_QUEUE, m->conf.queue_timeout);

        /* fall through */

    case NGX_KEXEC_ON_QUEUED:
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_LOOK,
                               NGX_KEXEC_RECHECK_TIME);
        return;

    case NGX_KEXEC_ON_GRANTED:
        ngx_kexec_machine_granted(m, ev->say);
        return;

    case NGX_KEXEC_ON_EVICTED:
        ngx_kexec_machine_evicted(m, ev->n);
        return;

    case NGX_KEXEC_ON_LOST:
        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_LOST_PLACE, 0);
        return;

    case NGX_KEXEC_ON_INTERRUPT:
        ngx_kexec_machine_cancel(m, NGX_KEXEC_CANCEL_INTERRUPT);
        return;

    case NGX_KEXEC_ON_CLIENT_LEFT:
        m->viewer = 0;
        ngx_kexec_machine_cancel(m, NGX_KEXEC_CANCEL_CLIENT);
        return;

    case NGX_KEXEC_ON_ABANDONED:
        m->abandoned = 1;
        return;

    case NGX_KEXEC_ON_WORKER_LEAVES:
        ngx_kexec_machine_worker_leaves(m, ev->n);
        return;

    case NGX_KEXEC_ON_TIMER:
        ngx_kexec_machine_timer(m, ev->n);
        return;

    default:
        return;
    }
}


/* events of the kernel and its link */

static void
ngx_kexec_machine_message(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev)
{
    switch (ev->what) {

    case NGX_KEXEC_ON_KERNEL:
        ngx_kexec_machine_kernel(m, ev);
        return;

    case NGX_KEXEC_ON_OPENED:
        ngx_kexec_machine_opened(m);
        return;

    case NGX_KEXEC_ON_CLOSED:
        ngx_kexec_machine_closed(m, ev->n);
        return;

    case NGX_KEXEC_ON_CODE_BUSY:
    case NGX_KEXEC_ON_CODE_OUTPUT:
    case NGX_KEXEC_ON_CODE_IDLE:
    case NGX_KEXEC_ON_CODE_REPLY:

        if (m->code.sent) {
            ngx_kexec_machine_code(m, ev);
        }

        return;

    case NGX_KEXEC_ON_FENCE_IOPUB:
    case NGX_KEXEC_ON_FENCE_IDLE:
    case NGX_KEXEC_ON_FENCE_REPLY:

        if (!m->fence.sent) {
            return;
        }

        if (ev->what == NGX_KEXEC_ON_FENCE_REPLY) {
            m->fence.reply = 1;
            ngx_kexec_machine_seen(m, ev);

        } else {
            m->fence.iopub = 1;
            m->fence.idle |= (ev->what == NGX_KEXEC_ON_FENCE_IDLE);
            ngx_kexec_machine_ours(m);
        }

        ngx_kexec_machine_fence_back(m);
        return;

    case NGX_KEXEC_ON_STEP_IOPUB:
        ngx_kexec_machine_ours(m);
        return;

    case NGX_KEXEC_ON_STEP_REPLY:

        if (m->silent.sent) {
            m->silent.status = ev->n;
            ngx_kexec_machine_step_answer(m);
        }

        return;

    case NGX_KEXEC_ON_FOREIGN:
        m->foreign = ev->foreign;
        return;

    case NGX_KEXEC_ON_DIED:
        ngx_kexec_machine_died(m, 0);
        return;

    case NGX_KEXEC_ON_DEAD:
        ngx_kexec_machine_died(m, 1);
        return;

    case NGX_KEXEC_ON_STARTING:

        /*
         * A process says so first of all.  If the kernel was ready before,
         * somebody has had it restarted by Jupyter.
         */

        if (m->facts.ready && !m->fresh) {
            ngx_kexec_machine_died(m, 0);
        }

        return;

    case NGX_KEXEC_ON_SHUTDOWN_REPLY:
        ngx_kexec_machine_replaced(m);
        return;

    default:
        return;
    }
}


/* events of the set-up, and of what was to be done */

static void
ngx_kexec_machine_work(ngx_kexec_machine_t *m, ngx_kexec_machine_event_t *ev)
{
    switch (ev->what) {

    case NGX_KEXEC_ON_STEP:
        ngx_kexec_machine_step(m, ev->n);
        return;

    case NGX_KEXEC_ON_FETCHED:
        ngx_kexec_machine_fetched(m, ev->say);
        return;

    case NGX_KEXEC_ON_MARKED:
        m->marking = 0;

        if (m->state == NGX_KEXEC_EX_SETUP) {
            ngx_kexec_machine_setup(m);
        }

        return;

    case NGX_KEXEC_ON_ANSWER:
        ngx_kexec_machine_answer(m, ev);
        return;

    case NGX_KEXEC_ON_FAILED:
        ngx_kexec_machine_failed(m, ev->n);
        return;

    default: /* NGX_KEXEC_ON_N */
        return;
    }
}


static void
ngx_kexec_machine_timer(ngx_kexec_machine_t *m, ngx_kexec_wait_e wait)
{
    switch (wait) {

    case NGX_KEXEC_WAIT_QUEUE:
        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_QUEUE_TIMEOUT, 0);
        return;

    case NGX_KEXEC_WAIT_LOOK:
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_LOOK, 0);
        return;

    case NGX_KEXEC_WAIT_READY:
        ngx_kexec_machine_held_too_long(m);
        return;

    case NGX_KEXEC_WAIT_LEFTOVER:
        ngx_kexec_machine_held_still(m);
        return;

    case NGX_KEXEC_WAIT_HELD:
        ngx_kexec_machine_held(m);
        return;

    case NGX_KEXEC_WAIT_CONNECT:
        ngx_kexec_machine_connect(m);
        return;

    case NGX_KEXEC_WAIT_LINK:
        ngx_kexec_machine_link_timeout(m);
        return;

    case NGX_KEXEC_WAIT_FENCE:

        if (m->fence.late && ngx_kexec_machine_before(m)) {

            /*
             * A deleted kernel's link stays open and swallows fences, and
             * one may be deaf: the answer tells.
             */

            ngx_kexec_machine_ask(m);
        }

        ngx_kexec_machine_fence_again(m);
        return;

    case NGX_KEXEC_WAIT_ORPHAN:
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_ORPHAN,
                               NGX_KEXEC_ORPHAN_TIME);
        ngx_kexec_machine_ask(m);
        return;

    case NGX_KEXEC_WAIT_INTERRUPT:
        ngx_kexec_machine_interrupt(m);
        return;

    case NGX_KEXEC_WAIT_OVER:
        ngx_kexec_machine_interrupt_over(m);
        return;

    case NGX_KEXEC_WAIT_STUCK:
    case NGX_KEXEC_WAIT_BARRIER:
        ngx_kexec_machine_stuck(m);
        return;

    case NGX_KEXEC_WAIT_RESTORE:

        /* somebody else's code holds the kernel: the next one will do it */

        ngx_kexec_machine_done(m);
        return;

    case NGX_KEXEC_WAIT_RESTART:
        ngx_kexec_machine_restart(m);
        return;

    case NGX_KEXEC_WAIT_SHUTDOWN:
        ngx_kexec_machine_shutdown(m);
        return;

    case NGX_KEXEC_WAIT_LAST:
        ngx_kexec_machine_last(m);
        return;

    case NGX_KEXEC_WAIT_SETUP:

        /* a fence tells whether the silent request is lost or just late */

        ngx_kexec_machine_fence(m);
        return;

    default:
        ngx_kexec_machine_run_timer(m, wait);
        return;
    }
}


static void
ngx_kexec_machine_answer(ngx_kexec_machine_t *m, ngx_kexec_machine_event_t *ev)
{
    ngx_kexec_call_e  call;

    call = m->call;
    m->call = NGX_KEXEC_CALL_NONE;

    switch (call) {

    case NGX_KEXEC_CALL_SESSION:
        ngx_kexec_machine_session_answer(m, ev);
        return;

    case NGX_KEXEC_CALL_DROP:
        ngx_kexec_machine_not_made(m);
        return;

    case NGX_KEXEC_CALL_ASK:
        ngx_kexec_machine_asked(m, ev);
        return;

    case NGX_KEXEC_CALL_INTERRUPT:
        ngx_kexec_machine_interrupted(m, ev);
        return;

    case NGX_KEXEC_CALL_RESTART:
        ngx_kexec_machine_restarted(m, ev);
        return;

    case NGX_KEXEC_CALL_CHECK:
        ngx_kexec_machine_checked(m, ev);
        return;

    default: /* NGX_KEXEC_CALL_NONE */
        return;
    }
}


/* there was no memory for it, or no socket */

static void
ngx_kexec_machine_failed(ngx_kexec_machine_t *m, ngx_kexec_do_e what)
{
    ngx_kexec_call_e  call;

    switch (what) {

    case NGX_KEXEC_DO_OPEN:
        m->reach = NGX_KEXEC_REACH_DOWN;
        ngx_kexec_machine_connect_later(m);
        return;

    case NGX_KEXEC_DO_MARK:
        m->marking = 0;

        if (m->state == NGX_KEXEC_EX_SETUP) {
            ngx_kexec_machine_setup(m);
        }

        return;

    case NGX_KEXEC_DO_FETCH:
        m->fetching = 0;

        /* fall through */

    case NGX_KEXEC_DO_TAKE:
        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_NO_MEMORY, 0);
        return;

    case NGX_KEXEC_DO_CALL:
        break;

    default:
        return;
    }

    call = m->call;
    m->call = NGX_KEXEC_CALL_NONE;

    switch (call) {

    case NGX_KEXEC_CALL_SESSION:
        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_NO_MEMORY, 0);
        return;

    case NGX_KEXEC_CALL_DROP:
        ngx_kexec_machine_not_made(m);
        return;

    case NGX_KEXEC_CALL_INTERRUPT:
        ngx_kexec_machine_interrupt_unsent(m);
        return;

    case NGX_KEXEC_CALL_RESTART:
    case NGX_KEXEC_CALL_CHECK:
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_RESTART,
                               NGX_KEXEC_RETRY_TIME);
        return;

    default: /* whatever waits for an answer asks again */
        return;
    }
}


/* what is waited for is an answer, or the end of the worker's time */

static void
ngx_kexec_machine_left(ngx_kexec_machine_t *m, ngx_kexec_machine_event_t *ev)
{
    switch (ev->what) {

    case NGX_KEXEC_ON_ANSWER:

        if (m->call == NGX_KEXEC_CALL_SESSION && ev->say == NGX_KEXEC_SAY_NONE)
        {
            /* whoever wants the slot finds the new session */

            ngx_kexec_machine_session_answer(m, ev);
            return;
        }

        if (m->call == NGX_KEXEC_CALL_RESTART && ev->n == NGX_HTTP_OK) {
            ngx_kexec_machine_restarted(m, ev);
            return;
        }

        if (m->call != NGX_KEXEC_CALL_SESSION && ev->n == NGX_HTTP_NOT_FOUND) {
            ngx_kexec_machine_gone(m);
            return;
        }

        if (m->call == NGX_KEXEC_CALL_INTERRUPT && ev->n == 0
            && (ev->connected || m->unanswered))
        {
            /* one may be obeyed yet: a later call shows that it was */

            m->call = NGX_KEXEC_CALL_NONE;
            ngx_kexec_machine_ask(m);

            if (m->call) {
                return;
            }
        }

        break;

    case NGX_KEXEC_ON_FAILED:

        if (ev->n != NGX_KEXEC_DO_CALL) {
            return;
        }

        break;

    case NGX_KEXEC_ON_TIMER:

        ngx_kexec_machine_timer(m, ev->n);
        return;

    case NGX_KEXEC_ON_WORKER_LEAVES:
        ngx_kexec_machine_worker_leaves(m, ev->n);
        return;

    default: /* NGX_KEXEC_ON_FOREIGN */
        m->foreign = ev->foreign;
        return;
    }

    m->call = NGX_KEXEC_CALL_NONE;

    ngx_kexec_machine_done(m);
}
