
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_machine_int.h>


/* no busy for this long: a fence is sent behind the code */
#define NGX_KEXEC_START_TIME  2000

/* idle came this long ago: the reply is lost */
#define NGX_KEXEC_REPLY_TIME  1000


static void ngx_kexec_machine_run_busy(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_run_unheld(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_run_replied(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_run_finish(ngx_kexec_machine_t *m,
    ngx_uint_t gone);
static void ngx_kexec_machine_run_lost(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_run_unsent(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_run_unended(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_run_killed(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_run_timeout(ngx_kexec_machine_t *m);
static ngx_uint_t ngx_kexec_machine_other_process(ngx_kexec_machine_t *m);


void
ngx_kexec_machine_send_code(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_to(m, NGX_KEXEC_EX_SENT);
    m->heard = m->now;

    if (m->started == 0) {
        m->started = m->now;

        if (m->conf.timeout) {
            ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_TIMEOUT, m->conf.timeout);
        }
    }

    m->process = m->facts.process;
    m->suspect = 0;

    /* a fence that is on its way is ahead of the code, and tells nothing */

    ngx_kexec_machine_fence_not(m);

    ngx_memzero(&m->code, sizeof(ngx_kexec_ask_t));
    m->code.sent = 1;

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_SEND_CODE, 0);

    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_READY, m->conf.ready_timeout);
    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_START, NGX_KEXEC_START_TIME);
    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_SILENT, NGX_KEXEC_SILENT_TIME);
}


/* code that has shown anything, or ended, was not aborted, whatever it says */

ngx_uint_t
ngx_kexec_machine_aborted(ngx_kexec_machine_t *m, ngx_kexec_answer_e answer)
{
    return answer == NGX_KEXEC_ANSWER_ABORTED
           && !m->code.iopub && !m->code.reply && !m->code.idle;
}


/* a message whose parent is the code */

void
ngx_kexec_machine_code(ngx_kexec_machine_t *m, ngx_kexec_machine_event_t *ev)
{
    m->heard = m->now;

    if (m->state == NGX_KEXEC_EX_ENDING) {

        /* it is over, and what is asked decides */

        m->code.idle |= (ev->what == NGX_KEXEC_ON_CODE_IDLE);
        m->code.reply |= (ev->what == NGX_KEXEC_ON_CODE_REPLY);
        return;
    }

    switch (ev->what) {

    case NGX_KEXEC_ON_CODE_REPLY:

        if (ngx_kexec_machine_aborted(m, ev->n)) {
            ngx_kexec_machine_run_lost(m);
            return;
        }

        ngx_kexec_machine_run_busy(m);

        m->code.reply = 1;
        m->code.status = ev->n;
        m->exits = ev->exits;

        if (!m->viewer) {
            ngx_kexec_machine_run_end(m);
            return;
        }

        ngx_kexec_machine_run_replied(m);
        return;

    case NGX_KEXEC_ON_CODE_OUTPUT:
        m->code.iopub = 1;

        /* fall through */

    case NGX_KEXEC_ON_CODE_BUSY:
        ngx_kexec_machine_run_busy(m);
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_INTERRUPT_FIRST, 0);
        return;

    default: /* NGX_KEXEC_ON_CODE_IDLE */
        ngx_kexec_machine_run_busy(m);
        m->code.idle = 1;
        ngx_kexec_machine_run_replied(m);
        return;
    }
}


/* the code was seen to start: from here on it may be interrupted */

static void
ngx_kexec_machine_run_busy(ngx_kexec_machine_t *m)
{
    if (m->state == NGX_KEXEC_EX_BUSY) {
        return;
    }

    /*
     * It may also start in a new kernel, after the one that it was sent to
     * died, while that one's readiness is waited for.
     */

    ngx_kexec_machine_to(m, NGX_KEXEC_EX_BUSY);

    m->recover = 0;

    ngx_kexec_machine_ours(m);

    if (!ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_SILENT)) {
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_SILENT,
                               NGX_KEXEC_SILENT_TIME);
    }

    ngx_kexec_machine_run_unheld(m);
}


/* our code started after all: what held the kernel is over */

static void
ngx_kexec_machine_run_unheld(ngx_kexec_machine_t *m)
{
    m->held_asks = 0;

    if (m->held == NGX_KEXEC_HELD_NOT) {
        return;
    }

    m->held = NGX_KEXEC_HELD_NOT;

    if (m->interrupts) {

        /* they were not for our code, which has all of its time yet */

        m->interrupts = 1;
        m->interrupted = m->now;

        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_INTERRUPT,
                               NGX_KEXEC_INTERRUPT_START_TIME);
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_STUCK,
                               m->conf.interrupt_timeout);
    }
}


static void
ngx_kexec_machine_run_replied(ngx_kexec_machine_t *m)
{
    if (!m->code.idle) {
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_IDLE, NGX_KEXEC_QUIET_TIME);
        return;
    }

    if (m->code.reply) {
        ngx_kexec_machine_run_end(m);
        return;
    }

    /* no output follows: what is held waits for the reply as well */

    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_VERDICT);

    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_REPLY, NGX_KEXEC_REPLY_TIME);

    if (m->interrupts) {

        /*
         * A second interrupt may have hit the kernel when it was about to
         * tell of the first.  A fence comes behind a reply that is only late.
         */

        ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_INTERRUPT);

        if (!m->fence.sent) {
            ngx_kexec_machine_fence(m);
        }
    }
}


void
ngx_kexec_machine_run_end(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_run_finish(m, 0);
}


/* gone: so is the process that was interrupted, if any was */

static void
ngx_kexec_machine_run_finish(ngx_kexec_machine_t *m, ngx_uint_t gone)
{
    ngx_kexec_machine_fence_not(m);

    if (m->call == NGX_KEXEC_CALL_ASK && m->cut && m->viewer) {

        /* is the output whole?  The answer comes back here */

        ngx_kexec_machine_to(m, NGX_KEXEC_EX_ENDING);
        return;
    }

    m->code.sent = 0;

    if (m->viewer) {
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_TELL_VERDICT, 0);
    }

    if (m->code.status == NGX_KEXEC_ANSWER_INTERRUPTED
        || m->code.status == NGX_KEXEC_ANSWER_ABORTED)
    {
        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_INTERRUPTED, 0);

    } else if (m->interrupts && !m->code.reply) {
        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_INTERRUPTED_UNTOLD, 0);

    } else if (m->code.status == NGX_KEXEC_ANSWER_OTHER) {
        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_LOST, 0);
    }

    ngx_kexec_machine_tell_end(m);

    if (m->exits) {

        /* Jupyter would take seconds to notice, and code be lost meanwhile */

        ngx_kexec_machine_new_process(m);
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);

        ngx_kexec_machine_go(m, NGX_KEXEC_GO_RESTART, 0);
        return;
    }

    if (m->interrupted || (m->code.reply && !m->code.idle && !m->over)) {

        /* or its client left, and all that says that it ended is its reply */

        if (gone) {
            ngx_kexec_machine_leave(m);

        } else {
            ngx_kexec_machine_go(m, NGX_KEXEC_GO_BARRIER, 0);
        }

        return;
    }

    ngx_kexec_machine_go(m, NGX_KEXEC_GO_RESTORE, 0);
}


/* the kernel did not run the code: it was aborted, or it never arrived */

static void
ngx_kexec_machine_run_lost(ngx_kexec_machine_t *m)
{
    m->code.sent = 0;

    if (ngx_kexec_machine_before(m)) {

        /* what held the kernel was interrupted: the fence behind that counts */

        return;
    }

    /* nothing holds a kernel that has answered */

    m->held = NGX_KEXEC_HELD_NOT;

    if (m->cancel) {
        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_NOT_STARTED, 0);
        ngx_kexec_machine_run_end(m);
        return;
    }

    if (m->aborted++ < NGX_KEXEC_ABORTED) {

        if (!m->facts.ready && m->reach == NGX_KEXEC_REACH_OPEN) {

            /* it was restarted meanwhile, and has to be prepared first */

            m->step = NGX_KEXEC_STEP_OWED;
            ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_READY,
                                   m->conf.ready_timeout);
            ngx_kexec_machine_go(m, NGX_KEXEC_GO_PROBE, 0);
            return;
        }

        ngx_kexec_machine_send_code(m);
        return;
    }

    ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_REFUSED, NGX_KEXEC_ABORTED);
    ngx_kexec_machine_run_end(m);
}


/*
 * The fence is back: the kernel has dealt with all that was sent before.  Its
 * reply and its idle come on different sockets; only idle is behind all of
 * the code's output.  A reply whose idle is still missing when the fence was
 * to be repeated counts too.
 */

void
ngx_kexec_machine_run_fence(ngx_kexec_machine_t *m)
{
    if (!m->fence.idle && !m->fence.reply) {
        return;
    }

    if (!m->fence.half
        && ((!m->fence.reply && !m->code.reply)
            || (!m->fence.idle && !m->code.idle)))
    {
        /*
         * It is half back, and what is missing of the code comes ahead of the
         * other half, if that comes at all.
         */

        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_FENCE, NGX_KEXEC_FENCE_TIME);
        return;
    }

    if (m->state == NGX_KEXEC_EX_SENT) {
        ngx_kexec_machine_run_unsent(m);
        return;
    }

    if (m->code.reply && m->fence.reply && !m->over) {

        /*
         * However long its output and idle are on their way, it is out of
         * time no more, and nothing is to be interrupted.
         */

        m->over = 1;
        ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_TIMEOUT);
        ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_INTERRUPT);
        ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_STUCK);
    }

    if (m->code.idle && m->interrupts) {

        /* it swallowed its own reply */

        ngx_kexec_machine_run_end(m);
        return;
    }

    if (!m->fence.idle && ngx_kexec_machine_quiet(m) < NGX_KEXEC_QUIET_TIME) {
        return;
    }

    if (!m->code.reply && !m->code.idle
        && !m->facts.in_order && !m->suspect
        && !ngx_kexec_machine_other_process(m))
    {
        /* it may answer while the code awaits: Jupyter is asked */

        ngx_kexec_machine_fence_not(m);
        return;
    }

    ngx_kexec_machine_log(m, NGX_KEXEC_LOG_LOST_END,
                          (m->code.reply ? 0 : 1) | (m->code.idle ? 0 : 2));

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_TELL_DROPPED, 0);

    if (!m->code.reply && !m->code.idle) {

        if (!ngx_kexec_machine_other_process(m)) {
            ngx_kexec_machine_run_unended(m);
            return;
        }

        ngx_kexec_machine_run_killed(m);

        /* a new one has neither directory nor variables of ours */

        m->facts.prepared = 0;
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);
    }

    ngx_kexec_machine_run_end(m);
}


/* neither busy nor a reply: the code was lost on its way */

static void
ngx_kexec_machine_run_unsent(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_fence_not(m);

    if (ngx_kexec_machine_other_process(m)) {

        /* the process that it was sent to may have taken it along */

        ngx_kexec_machine_run_killed(m);
        ngx_kexec_machine_run_end(m);
        return;
    }

    if (m->cut) {

        /* what may have run is never sent again */

        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_LINK_LOST, 0);
        ngx_kexec_machine_run_end(m);
        return;
    }

    if (!m->cancel && m->resent++) {
        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_UNNOTICED, 0);
        ngx_kexec_machine_run_end(m);
        return;
    }

    ngx_kexec_machine_log(m, NGX_KEXEC_LOG_LOST_CODE, 0);

    ngx_kexec_machine_run_lost(m);
}


void
ngx_kexec_machine_run_timer(ngx_kexec_machine_t *m, ngx_kexec_wait_e wait)
{
    ngx_msec_t  quiet;

    switch (wait) {

    case NGX_KEXEC_WAIT_TIMEOUT:
        ngx_kexec_machine_run_timeout(m);
        return;

    case NGX_KEXEC_WAIT_START:

        if (!m->fence.sent) {
            ngx_kexec_machine_fence(m);

            /* a deleted kernel's link stays open and swallows all */

            ngx_kexec_machine_ask(m);
        }

        return;

    case NGX_KEXEC_WAIT_VERDICT:
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_TELL_HELD, 0);
        return;

    case NGX_KEXEC_WAIT_REPLY:

        ngx_kexec_machine_run_end(m);
        return;

    case NGX_KEXEC_WAIT_IDLE:

        if (m->fence.sent) {
            return;
        }

        quiet = ngx_kexec_machine_quiet(m);

        if (quiet < NGX_KEXEC_QUIET_TIME) {
            ngx_kexec_machine_wait(m, wait, NGX_KEXEC_QUIET_TIME - quiet);
            return;
        }

        ngx_kexec_machine_fence(m);
        return;

    case NGX_KEXEC_WAIT_SILENT:

        quiet = m->now - m->heard;

        if (quiet < NGX_KEXEC_SILENT_TIME) {
            ngx_kexec_machine_wait(m, wait, NGX_KEXEC_SILENT_TIME - quiet);
            return;
        }

        ngx_kexec_machine_wait(m, wait, NGX_KEXEC_SILENT_TIME);
        ngx_kexec_machine_ask(m);

        if (m->state == NGX_KEXEC_EX_BUSY && m->facts.in_order
            && !m->fence.sent && !m->code.reply && !m->code.idle)
        {
            /* it comes back behind the code, or when that is over untold */

            ngx_kexec_machine_fence(m);
        }

        return;

    default:
        return;
    }
}


/* the request's own limit */

static void
ngx_kexec_machine_run_timeout(ngx_kexec_machine_t *m)
{
    if (!ngx_kexec_machine_goes_on(m, NGX_KEXEC_WAIT_TIMEOUT)) {
        return;
    }

    m->outcome = NGX_KEXEC_OUTCOME_TIMEOUT;

    if (m->state == NGX_KEXEC_EX_BUSY) {
        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_TIMEOUT, 0);

    } else {
        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_TIMEOUT_SENT, m->held);
        ngx_kexec_machine_tell_end(m);
    }

    ngx_kexec_machine_go(m, NGX_KEXEC_GO_CANCEL, NGX_KEXEC_CANCEL_TIMEOUT);
}


/*
 * The kernel, which takes one request after the other, has answered the fence
 * and told no end of the code: something of that is broken, and may still run.
 */

static void
ngx_kexec_machine_run_unended(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_UNENDED, 0);
    ngx_kexec_machine_tell_end(m);

    if (m->interrupts) {
        ngx_kexec_machine_run_end(m);
        return;
    }

    m->cancel = NGX_KEXEC_CANCEL_CLIENT;
    m->unended = 1;

    ngx_kexec_machine_go(m, NGX_KEXEC_GO_INTERRUPT, 0);
}


/* only one that is known to be the same took nothing along */

static ngx_uint_t
ngx_kexec_machine_other_process(ngx_kexec_machine_t *m)
{
    return m->process == 0 || m->process != m->facts.process;
}


/* the kernel process died under the code, or before it */

void
ngx_kexec_machine_run_died(ngx_kexec_machine_t *m, ngx_uint_t dead)
{
    ngx_kexec_machine_fence_not(m);

    if (m->exits) {

        /* it said so: Jupyter was quicker than its own idle, and restarts it */

        m->exits = 0;

        ngx_kexec_machine_do(m, NGX_KEXEC_DO_TELL_DROPPED, 0);
        ngx_kexec_machine_to(m, NGX_KEXEC_EX_ENDING);
    }

    if (m->state == NGX_KEXEC_EX_ENDING) {

        /* the code was over */

        m->over = 1;

        ngx_kexec_machine_ask_no_more(m);
        ngx_kexec_machine_run_finish(m, 1);
        return;
    }

    ngx_kexec_machine_run_killed(m);
    ngx_kexec_machine_tell_end(m);

    if (m->state == NGX_KEXEC_EX_BUSY) {
        ngx_kexec_machine_leave(m);
        return;
    }

    /*
     * A process may die before its busy leaves it, so the code may have run,
     * and is not sent again.  It may also still be in the kernel's socket and
     * run in the next process: only when that one's fence is back, it is not.
     * If it starts there, it is interrupted as if its client had left.
     */

    if (dead) {
        m->code.sent = 0;
        ngx_kexec_machine_leave(m);
        return;
    }

    m->cancel = NGX_KEXEC_CANCEL_CLIENT;
    m->step = NGX_KEXEC_STEP_OWED;

    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_READY, m->conf.ready_timeout);

    ngx_kexec_machine_go(m, NGX_KEXEC_GO_PROBE, 0);
}


static void
ngx_kexec_machine_run_killed(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_tell(m, m->state == NGX_KEXEC_EX_BUSY
                              ? NGX_KEXEC_SAY_DIED : NGX_KEXEC_SAY_DIED_SENT,
                           0);

    if (m->outcome == NGX_KEXEC_OUTCOME_NONE) {
        m->outcome = NGX_KEXEC_OUTCOME_DIED;
    }
}
