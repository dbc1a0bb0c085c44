
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_machine_int.h>


static void ngx_kexec_machine_cancel_code(ngx_kexec_machine_t *m);
static ngx_uint_t ngx_kexec_machine_may_interrupt(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_stuck_for_good(ngx_kexec_machine_t *m);


/*
 * When interrupts are sent, in milliseconds after the first: one may come in
 * the wrong moment and be lost, or be swallowed by the code.
 */

static ngx_msec_t  ngx_kexec_machine_times[] = { 0, 100, 300, 1000, 2000,
                                                 4000 };

#define NGX_KEXEC_INTERRUPT_TIMES                                             \
    (sizeof(ngx_kexec_machine_times) / sizeof(ngx_msec_t))

#define NGX_KEXEC_INTERRUPT_PERIOD  4000


void
ngx_kexec_machine_cancel(ngx_kexec_machine_t *m, ngx_kexec_cancel_e reason)
{
    if (reason <= m->cancel) {

        if (reason == NGX_KEXEC_CANCEL_INTERRUPT
            && m->state == NGX_KEXEC_EX_BUSY
            && m->call != NGX_KEXEC_CALL_INTERRUPT
            && !ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_INTERRUPT))
        {
            /* asked again after the last one was given up */

            m->interrupts = 1;
            m->interrupted = m->now;

            ngx_kexec_machine_interrupt(m);
        }

        return;
    }

    m->cancel = reason;

    if (m->outcome == NGX_KEXEC_OUTCOME_NONE) {
        m->outcome = NGX_KEXEC_OUTCOME_CANCELLED;
    }

    switch (m->state) {

    case NGX_KEXEC_EX_QUEUED:
        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_NOT_STARTED, 0);
        ngx_kexec_machine_done(m);
        return;

    case NGX_KEXEC_EX_LINKING:

        if (m->reach != NGX_KEXEC_REACH_OPENING) {
            ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_UNLINKED,
                                   ngx_kexec_machine_orphan(m));
            ngx_kexec_machine_tell_end(m);
            ngx_kexec_machine_leave(m);
            return;
        }

        /*
         * Jupyter subscribes a new link to the kernel a while after it was
         * opened, even if it is closed by then: the next link of the same
         * session would lose its messages to the dead one.  So a link that
         * is being opened is waited for, until the fence is back.
         */

        return;

    case NGX_KEXEC_EX_SETUP:

        if (m->fetching) {

            /* whoever is asked for variables must not keep the slot */

            ngx_kexec_machine_unfetch(m);
            ngx_kexec_machine_go(m, NGX_KEXEC_GO_SETUP, 0);
            return;
        }

        /* fall through */

    case NGX_KEXEC_EX_PROBING:

        /* a step that is under way ends by itself and sees the reason then */

        ngx_kexec_machine_go(m, NGX_KEXEC_GO_HELD_CANCEL, 0);
        return;

    case NGX_KEXEC_EX_SENT:
    case NGX_KEXEC_EX_BUSY:
        ngx_kexec_machine_cancel_code(m);
        return;

    default:

        /* a step that is under way ends by itself and sees the reason then */

        return;
    }
}


static void
ngx_kexec_machine_cancel_code(ngx_kexec_machine_t *m)
{
    if (m->state == NGX_KEXEC_EX_BUSY && m->code.reply && !m->viewer) {

        /* only its output is waited for, and by nobody */

        ngx_kexec_machine_go(m, NGX_KEXEC_GO_RUN_END, 0);
        return;
    }

    if (m->state == NGX_KEXEC_EX_SENT) {

        /*
         * The kernel may be running somebody else's code.  Only when it says
         * that ours has started may it be interrupted.
         */

        ngx_kexec_machine_go(m, NGX_KEXEC_GO_HELD_CANCEL, 0);
        return;
    }

    if (m->interrupts == 0) {
        ngx_kexec_machine_interrupt_first(m);
        return;
    }

    if (!ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_STUCK)) {
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_STUCK,
                               m->conf.interrupt_timeout);
    }

    ngx_kexec_machine_interrupt(m);
}


/*
 * ipykernel says that it is busy a moment before it can be interrupted: until
 * then an interrupt is lost or, in the middle of that, even ends the process.
 * Any other message of the code shows that it runs.  Where none comes, 100 ms
 * are enough.
 */

void
ngx_kexec_machine_interrupt_first(ngx_kexec_machine_t *m)
{
    if (m->cancel == NGX_KEXEC_CANCEL_NONE || m->interrupts) {
        return;
    }

    if (m->code.iopub) {
        ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_INTERRUPT);
        ngx_kexec_machine_interrupt(m);
        return;
    }

    if (!ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_INTERRUPT)) {
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_INTERRUPT,
                               NGX_KEXEC_INTERRUPT_START_TIME);
    }
}


static ngx_uint_t
ngx_kexec_machine_may_interrupt(ngx_kexec_machine_t *m)
{
    switch (m->state) {

    case NGX_KEXEC_EX_LINKING:
    case NGX_KEXEC_EX_BARRIER:
        return m->held == NGX_KEXEC_HELD_LEFTOVER;

    case NGX_KEXEC_EX_PROBING:
        return m->recover;

    case NGX_KEXEC_EX_BUSY:
        return m->cancel && !m->over && !m->code.idle;

    default:
        return 0;
    }
}


void
ngx_kexec_machine_interrupt(ngx_kexec_machine_t *m)
{
    if (!ngx_kexec_machine_may_interrupt(m)
        || (m->state == NGX_KEXEC_EX_BUSY
            && !ngx_kexec_machine_goes_on(m, NGX_KEXEC_WAIT_INTERRUPT)))
    {
        return;
    }

    if (m->state != NGX_KEXEC_EX_BUSY && m->foreign) {

        /* somebody else's cell was next: it is not hit, nor does it count */

        ngx_kexec_machine_interrupt_later(m);

        if (ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_STUCK)) {
            ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_STUCK,
                                   m->conf.interrupt_timeout);
        }

        return;
    }

    ngx_kexec_machine_ask_no_more(m);

    if (m->call) {
        return;
    }

    ngx_kexec_machine_call(m, NGX_KEXEC_CALL_INTERRUPT);

    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_ORPHAN);

    m->covers = 0;

    if (m->interrupts++ == 0) {
        m->interrupted = m->now;
        m->obeyed = 0;

        /* POST /contexts/ID/interrupt never restarts */

        if (m->cancel != NGX_KEXEC_CANCEL_INTERRUPT) {
            ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_STUCK,
                                   m->conf.interrupt_timeout);
        }
    }
}


/* one could not be sent, or must not be now: what leads to the next one */

void
ngx_kexec_machine_interrupt_later(ngx_kexec_machine_t *m)
{
    ngx_kexec_wait_e  wait;

    switch (m->state) {

    case NGX_KEXEC_EX_BARRIER:
        wait = NGX_KEXEC_WAIT_OVER;
        break;

    case NGX_KEXEC_EX_PROBING:
        wait = m->interrupts ? NGX_KEXEC_WAIT_INTERRUPT
                             : NGX_KEXEC_WAIT_ORPHAN;
        break;

    default:
        wait = NGX_KEXEC_WAIT_INTERRUPT;
        break;
    }

    ngx_kexec_machine_wait(m, wait, NGX_KEXEC_RETRY_TIME);
}


/* is the last one over? */

void
ngx_kexec_machine_interrupt_over(ngx_kexec_machine_t *m)
{
    if (m->state == NGX_KEXEC_EX_BARRIER) {
        ngx_kexec_machine_barrier(m);
        return;
    }

    if (!m->fence.sent) {
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_PROBE_BARRIER, 0);
    }
}


/* so neither patience nor a barrier depends on it */

void
ngx_kexec_machine_interrupt_unsent(ngx_kexec_machine_t *m)
{
    if (--m->interrupts == 0) {
        ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_STUCK);
    }

    ngx_kexec_machine_interrupt_later(m);
}


/* Jupyter has answered an interrupt, or did not in time */

void
ngx_kexec_machine_interrupted(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev)
{
    ngx_msec_int_t  ms;

    m->unheard = (ev->n == 0);

    if (ev->n) {
        m->unanswered = 0;

    } else if (ev->connected) {

        /* one that was not even sent says nothing about those before it */

        m->unanswered = 1;
    }

    if (ev->n == NGX_HTTP_NOT_FOUND) {
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_GONE, 0);
        return;
    }

    if (ev->n && !m->obeyed) {

        /* the code's time to end begins here */

        m->obeyed = 1;

        if (ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_STUCK)) {
            ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_STUCK,
                                   m->conf.interrupt_timeout);
        }
    }

    if (m->state == NGX_KEXEC_EX_BARRIER) {
        ngx_kexec_machine_barrier(m);
        return;
    }

    if (m->state == NGX_KEXEC_EX_PROBING && !m->fence.sent) {
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_PROBE_BARRIER, 0);
        return;
    }

    if (m->unended && m->state == NGX_KEXEC_EX_BUSY
        && (ev->n || ev->connected))
    {
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_RUN_END, 0);
        return;
    }

    if (!ngx_kexec_machine_may_interrupt(m)) {
        return;
    }

    if (ev->n == 0 && !ev->connected) {

        ngx_kexec_machine_interrupt_unsent(m);
        return;
    }

    ms = NGX_KEXEC_INTERRUPT_PERIOD;

    if (m->interrupts < NGX_KEXEC_INTERRUPT_TIMES) {
        ms = (ngx_msec_int_t)
                 (m->interrupted + ngx_kexec_machine_times[m->interrupts]
                  - m->now);
        ms = ngx_max(ms, 10);
    }

    if (m->cancel == NGX_KEXEC_CANCEL_INTERRUPT
        && m->now + ms - m->interrupted > m->conf.interrupt_timeout)
    {
        /* who asked is told by then that it does not help */

        return;
    }

    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_INTERRUPT, (ngx_msec_t) ms);
}


/*
 * An interrupt was sent, and the code is over.  The slot must not go on before
 * it is certain that no interrupt is on its way any more: the calls are
 * answered, and the kernel has answered a fence after that.
 */

void
ngx_kexec_machine_barrier(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_to(m, NGX_KEXEC_EX_BARRIER);

    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_OVER);
    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_STUCK);

    if (!ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_BARRIER)) {
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_BARRIER,
                               NGX_KEXEC_BARRIER_TIME);
    }

    if (ngx_kexec_machine_interrupts_over(m)) {
        ngx_kexec_machine_fence(m);
    }
}


/* neither interrupts nor patience help */

void
ngx_kexec_machine_stuck(ngx_kexec_machine_t *m)
{
    if (m->state == NGX_KEXEC_EX_BUSY) {

        if (!ngx_kexec_machine_goes_on(m, NGX_KEXEC_WAIT_STUCK)) {
            return;
        }

    } else if (m->foreign) {

        if (m->code.sent || m->reach != NGX_KEXEC_REACH_OPEN) {

            /* the slot is kept, as when it is held for too long */

            ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_STUCK,
                                   m->conf.interrupt_timeout);
            return;
        }

        /* somebody else's cell holds the kernel: the next one waits */

        m->facts.ready = 0;
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);

        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_FOREIGN, 0);
        return;
    }

    if (m->reach != NGX_KEXEC_REACH_OPEN && m->unheard) {

        /* Jupyter is not there: nothing can be restarted */

        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_STUCK,
                               m->conf.interrupt_timeout);
        ngx_kexec_machine_ask(m);
        return;
    }

    if (m->interrupts && !m->obeyed
        && m->now - m->interrupted < m->conf.ready_timeout)
    {
        /* as far as Jupyter says, no interrupt has come to the kernel yet */

        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_STUCK, NGX_KEXEC_RETRY_TIME);
        return;
    }

    if (m->conf.create) {

        /* it goes with its session, instead of being restarted for nobody */

        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_NOT_READY, 0);
        return;
    }

    if (m->conf.never_restart) {
        ngx_kexec_machine_stuck_for_good(m);
        return;
    }

    ngx_kexec_machine_log(m, NGX_KEXEC_LOG_STUCK, 1);

    ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_RESTARTED,
                           m->state == NGX_KEXEC_EX_PROBING);
    ngx_kexec_machine_tell_end(m);

    ngx_kexec_machine_restart(m);
}


/* kexec_interrupt_failure wait */

static void
ngx_kexec_machine_stuck_for_good(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_log(m, NGX_KEXEC_LOG_STUCK, 0);

    if (m->state == NGX_KEXEC_EX_BARRIER) {

        if (m->call) {

            /* an interrupt on its way is waited for */

            ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_BARRIER,
                                   NGX_KEXEC_RETRY_TIME);
            return;
        }

        /* the next one waits for the kernel before it sends its code */

        m->facts.ready = 0;
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);
        ngx_kexec_machine_leave(m);
        return;
    }

    if (ngx_kexec_machine_before(m)) {

        if (m->call && m->call != NGX_KEXEC_CALL_ASK) {
            ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_STUCK,
                                   NGX_KEXEC_RETRY_TIME);
            return;
        }

        /* that is a dead worker's code, ours is not sent yet */

        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_ORPHAN,
                               ngx_kexec_machine_orphan(m));
        return;
    }

    /* interrupts go on; the client has waited long enough */

    ngx_kexec_machine_tell_end(m);
}


/*
 * The kernel is stuck, or its code asked it to exit: whoever waits is told the
 * one, and does not notice the other.
 */

void
ngx_kexec_machine_restart(ngx_kexec_machine_t *m)
{
    if (m->state != NGX_KEXEC_EX_RESTARTING) {

        if (!m->exits) {
            ngx_kexec_machine_do(m, NGX_KEXEC_DO_EVICT, 0);
        }

        m->restarting = m->now;
    }

    ngx_kexec_machine_to(m, NGX_KEXEC_EX_RESTARTING);

    m->code.sent = 0;

    ngx_kexec_machine_fence_not(m);

    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_RESTART,
                           NGX_KEXEC_RESTART_TIME + NGX_KEXEC_BARRIER_TIME);

    /* the process that an interrupt on its way is for will be gone */

    ngx_kexec_machine_call_not(m);
    ngx_kexec_machine_call(m, NGX_KEXEC_CALL_RESTART);
}


void
ngx_kexec_machine_restarted(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev)
{
    if (ev->n != NGX_HTTP_OK) {

        /* a kernel that is not there is a 500 like any other failure */

        ngx_kexec_machine_call(m, NGX_KEXEC_CALL_CHECK);
        return;
    }

    ngx_kexec_machine_new_process(m);

    m->fresh = 1;

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);
    ngx_kexec_machine_done(m);
}


/* is the kernel there that did not restart? */

void
ngx_kexec_machine_checked(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev)
{
    if (ev->n == NGX_HTTP_NOT_FOUND) {
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_GONE, 0);
        return;
    }

    if (m->now - m->restarting > m->conf.ready_timeout) {

        /* that is left to the next execution */

        ngx_kexec_machine_log(m, NGX_KEXEC_LOG_NO_RESTART, 0);

        m->facts.ready = 0;
        m->facts.dirty = 1;

        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);
        ngx_kexec_machine_done(m);
        return;
    }

    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_RESTART, NGX_KEXEC_RETRY_TIME);
}


/* somebody restarts or deletes the context: the slot is wanted back at once */

void
ngx_kexec_machine_evicted(ngx_kexec_machine_t *m, ngx_uint_t deleted)
{
    ngx_kexec_machine_tell(m, deleted ? NGX_KEXEC_SAY_DELETED
                                      : NGX_KEXEC_SAY_EVICTED,
                           m->started != 0);

    if (m->outcome == NGX_KEXEC_OUTCOME_NONE) {
        m->outcome = NGX_KEXEC_OUTCOME_CANCELLED;
    }

    ngx_kexec_machine_tell_end(m);

    if (!m->over) {

        /* nobody interrupts the code: a new process ends it, if one comes */

        (void) ngx_kexec_machine_orphan(m);
    }

    ngx_kexec_machine_leave(m);
}


/* that is to be said in so many ms */

void
ngx_kexec_machine_worker_leaves(ngx_kexec_machine_t *m, ngx_msec_t ms)
{
    if (!m->shutdown && !ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_SHUTDOWN)) {
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_SHUTDOWN, ms);
    }
}


/*
 * When worker_shutdown_timeout is over, nginx closes all connections without a
 * word, clients' and links'.  What can be said and done has to be before.
 */

void
ngx_kexec_machine_shutdown(ngx_kexec_machine_t *m)
{
    m->shutdown = 1;

    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_LAST, m->conf.last_time);

    if (m->state == NGX_KEXEC_EX_DROPPING
        || m->state == NGX_KEXEC_EX_LEAVING)
    {
        return;
    }

    if (m->conf.create || ngx_kexec_machine_before(m)) {
        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_SHUTDOWN_BEFORE,
                               ngx_kexec_machine_orphan(m));
        return;
    }

    ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_SHUTDOWN, 0);
    ngx_kexec_machine_tell_end(m);

    ngx_kexec_machine_cancel(m, NGX_KEXEC_CANCEL_CLIENT);
}


/* time is over */

void
ngx_kexec_machine_last(ngx_kexec_machine_t *m)
{
    if (m->conf.create) {
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_NOT_MADE, 0);

    } else {
        ngx_kexec_machine_log(m, NGX_KEXEC_LOG_SHUTDOWN, 0);

        m->facts.dirty = 1;
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);
    }

    ngx_kexec_machine_done(m);
}
