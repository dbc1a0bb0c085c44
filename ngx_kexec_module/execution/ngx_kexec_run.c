
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>


/* no busy for this long: a fence is sent behind the code */
#define NGX_KEXEC_START_TIME    2000

/* the link was silent for this long after the reply: idle may be lost */
#define NGX_KEXEC_QUIET_TIME    2000

/* idle came this long ago: the reply is lost */
#define NGX_KEXEC_REPLY_TIME    1000

/* nothing of the execution was heard for this long: Jupyter is asked */
#define NGX_KEXEC_SILENT_TIME   10000

/* for Jupyter's answer */
#define NGX_KEXEC_ASK_TIME      5000


static void ngx_kexec_run_busy(ngx_kexec_execution_t *ex);
static void ngx_kexec_run_replied(ngx_kexec_execution_t *ex);
static void ngx_kexec_run_lost(ngx_kexec_execution_t *ex);
static void ngx_kexec_run_state_handler(ngx_kexec_http_t *http);
static ngx_msec_t ngx_kexec_run_quiet(ngx_kexec_execution_t *ex);
static ngx_uint_t ngx_kexec_run_other_process(ngx_kexec_execution_t *ex);
static void ngx_kexec_run_unended(ngx_kexec_execution_t *ex);
static void ngx_kexec_run_killed(ngx_kexec_execution_t *ex);


void
ngx_kexec_send_code(ngx_kexec_execution_t *ex)
{
    ex->state = NGX_KEXEC_EX_SENT;
    ex->log.action = "waiting for the code to start";
    ex->heard = ngx_current_msec;

    if (ex->started == 0) {
        ex->started = ngx_current_msec;

        if (ex->timeout) {
            ngx_kexec_wait(ex, NGX_KEXEC_WAIT_TIMEOUT, ex->timeout);
        }
    }

    ngx_kexec_claim_phase(&ex->claim, NGX_KEXEC_PHASE_RUNNING);

    ex->process = ex->ctx.process;

    /* a fence that is on its way is ahead of the code, and tells nothing */

    ex->fence.sent = 0;
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_FENCE);

    (void) ngx_kexec_ask(ex, &ex->ask, &ex->code, 0);

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_READY, ex->conf->ready_timeout);
    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_START, NGX_KEXEC_START_TIME);
    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_SILENT, NGX_KEXEC_SILENT_TIME);
}


/* a message whose parent is the code */

void
ngx_kexec_run_message(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg)
{
    ngx_kexec_reply_t  reply;

    ex->heard = ngx_current_msec;

    if (msg->type == NGX_KEXEC_MSG_EXECUTE_REPLY) {

        ngx_kexec_message_reply(msg, &reply);

        if (reply.status == NGX_KEXEC_REPLY_ABORTED && !ex->ask.iopub) {
            ngx_kexec_run_lost(ex);
            return;
        }

        ngx_kexec_run_busy(ex);

        ex->ask.reply = 1;
        ex->ask.status = reply.status;
        ex->exits = reply.exits;

        ngx_kexec_verdict_reply(ex, msg, &reply);

        if (ex->client == NULL) {
            ngx_kexec_run_end(ex);
            return;
        }

        ngx_kexec_run_replied(ex);
        return;
    }

    if (msg->type == NGX_KEXEC_MSG_INPUT_REQUEST
        && ngx_kexec_verdict_input(ex, msg) != NGX_OK)
    {
        return;
    }

    if (msg->type != NGX_KEXEC_MSG_STATUS) {
        ex->ask.iopub = 1;

        ngx_kexec_run_busy(ex);
        ngx_kexec_verdict_message(ex, msg);
        ngx_kexec_interrupt_first(ex);
        return;
    }

    switch (ngx_kexec_message_state(msg)) {

    case NGX_KEXEC_STATE_BUSY:
        ex->ask.busy = 1;
        ngx_kexec_run_busy(ex);
        ngx_kexec_interrupt_first(ex);
        break;

    case NGX_KEXEC_STATE_IDLE:
        ngx_kexec_run_busy(ex);
        ex->ask.idle = 1;
        ngx_kexec_run_replied(ex);
        break;

    default:
        break;
    }
}


/* the code was seen to start: from here on it may be interrupted */

static void
ngx_kexec_run_busy(ngx_kexec_execution_t *ex)
{
    if (ex->state == NGX_KEXEC_EX_BUSY) {
        return;
    }

    /*
     * It may also start in a new kernel, after the one that it was sent to
     * died, while that one's readiness is waited for.
     */

    ex->state = NGX_KEXEC_EX_BUSY;
    ex->log.action = "running code";

    ex->recover = 0;

    ngx_kexec_ours(ex);

    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_READY);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_START);

    if (ex->cancel) {
        ngx_kexec_claim_phase(&ex->claim, NGX_KEXEC_PHASE_CANCELLING);
    }

    ngx_kexec_held_no_more(ex);
}


static void
ngx_kexec_run_replied(ngx_kexec_execution_t *ex)
{
    if (!ex->ask.idle) {
        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_IDLE, NGX_KEXEC_QUIET_TIME);
        return;
    }

    if (ex->ask.reply) {
        ngx_kexec_run_end(ex);
        return;
    }

    /* no output follows: what is held waits for the reply as well */

    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_VERDICT);

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_REPLY, NGX_KEXEC_REPLY_TIME);

    if (ex->interrupts) {

        /*
         * A second interrupt may have hit the kernel when it was about to
         * tell of the first.  A fence comes behind a reply that is only late.
         */

        ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_INTERRUPT);

        if (!ex->fence.sent) {
            ngx_kexec_fence(ex);
        }
    }
}


void
ngx_kexec_run_end(ngx_kexec_execution_t *ex)
{
    ex->fence.sent = 0;

    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_LINK);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_READY);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_FENCE);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_HELD);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_START);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_IDLE);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_REPLY);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_SILENT);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_TIMEOUT);

    if (ex->asking && ex->cut && ex->client) {

        /* is the output whole?  The answer comes back here */

        ex->ending = 1;
        return;
    }

    ex->ending = 0;
    ex->ask.sent = 0;

    ngx_kexec_verdict_end(ex);

    if (ex->ask.status == NGX_KEXEC_REPLY_INTERRUPTED
        || ex->ask.status == NGX_KEXEC_REPLY_ABORTED)
    {
        ngx_kexec_tell(ex, "ExecutionInterrupted", "the code was interrupted");

    } else if (ex->interrupts && !ex->ask.reply) {
        ngx_kexec_tell(ex, "ExecutionInterrupted", "the code was interrupted, "
                       "the kernel did not tell how it ended");

    } else if (ex->ask.status == NGX_KEXEC_REPLY_OTHER) {
        ngx_kexec_tell(ex, "ExecutionLost", "the kernel is done but did not "
                       "tell how the code ended");
    }

    ngx_kexec_tell_end(ex);

    if (ex->exits) {

        /* Jupyter would take seconds to notice, and code be lost meanwhile */

        ngx_kexec_zone_new_process(&ex->ctx);
        ngx_kexec_zone_update(&ex->claim, &ex->ctx);

        ngx_kexec_restart(ex);
        return;
    }

    if (ex->interrupts || (ex->ask.reply && !ex->ask.idle && !ex->over)) {

        /* or its client left, and all that says that it ended is its reply */

        ngx_kexec_barrier(ex);
        return;
    }

    ngx_kexec_restore(ex);
}


/* the kernel did not run the code: it was aborted, or it never arrived */

static void
ngx_kexec_run_lost(ngx_kexec_execution_t *ex)
{
    ex->ask.sent = 0;

    if (ex->cancel) {
        ngx_kexec_tell(ex, "ExecutionInterrupted",
                       "the execution was interrupted before its code ran");
        ngx_kexec_run_end(ex);
        return;
    }

    if (ex->aborted++ < NGX_KEXEC_ABORTED) {

        if (!ex->ctx.ready && ex->kernel->open) {

            /* it was restarted meanwhile, and has to be prepared first */

            ex->step = 0;
            ngx_kexec_wait(ex, NGX_KEXEC_WAIT_READY, ex->conf->ready_timeout);
            ngx_kexec_probe(ex);
            return;
        }

        ngx_kexec_send_code(ex);
        return;
    }

    ngx_kexec_tell(ex, "KernelUnresponsive",
                   "the kernel refused the code %d times, it did not run",
                   NGX_KEXEC_ABORTED);
    ngx_kexec_run_end(ex);
}


/*
 * The fence is back: the kernel has dealt with all that was sent before.  Its
 * reply and its idle come on different sockets; only idle is behind all of
 * the code's output.  A reply whose idle is still missing when the fence was
 * to be repeated counts too.
 */

void
ngx_kexec_run_fence(ngx_kexec_execution_t *ex)
{
    if (ex->ending || (!ex->fence.idle && !ex->fence.reply)) {
        return;
    }

    if (!ex->fence.half
        && ((!ex->fence.reply && !ex->ask.reply)
            || (!ex->fence.idle && !ex->ask.idle)))
    {
        /*
         * It is half back, and what is missing of the code comes ahead of the
         * other half, if that comes at all.
         */

        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_FENCE, NGX_KEXEC_FENCE_TIME);
        return;
    }

    if (ex->state == NGX_KEXEC_EX_BUSY) {

        if (ex->ask.reply && ex->fence.reply && !ex->over) {

            /*
             * However long its output and idle are on their way, it is out of
             * time no more, and nothing is to be interrupted.
             */

            ex->over = 1;
            ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_TIMEOUT);
            ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_INTERRUPT);
            ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_STUCK);
        }

        if (ex->ask.idle && ex->interrupts) {

            /* it swallowed its own reply */

            ngx_kexec_run_end(ex);
            return;
        }

        if (!ex->fence.idle && ngx_kexec_run_quiet(ex) < NGX_KEXEC_QUIET_TIME) {
            return;
        }

        if (!ex->ask.reply && !ex->ask.idle
            && !ex->ctx.in_order && !ex->suspect
            && !ngx_kexec_run_other_process(ex))
        {
            /* it may answer while the code awaits: Jupyter is asked */

            ex->fence.sent = 0;
            ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_FENCE);
            return;
        }

        ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                      "the end of an execution was lost by the kernel or "
                      "Jupyter%s%s", ex->ask.reply ? "" : ", no reply",
                      ex->ask.idle ? "" : ", no idle");

        ex->dropped = 1;

        if (!ex->ask.reply && !ex->ask.idle) {

            if (ngx_kexec_run_other_process(ex)) {
                ngx_kexec_run_killed(ex);

            } else {
                ngx_kexec_run_unended(ex);
                return;
            }

            /* a new one has neither directory nor variables of ours */

            ex->ctx.prepared = 0;
            ngx_kexec_zone_update(&ex->claim, &ex->ctx);
        }

        ngx_kexec_run_end(ex);
        return;
    }

    /* neither busy nor a reply: the code was lost on its way */

    ex->fence.sent = 0;
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_FENCE);

    if (ngx_kexec_run_other_process(ex)) {

        /* the process that it was sent to may have taken it along */

        ngx_kexec_run_killed(ex);
        ngx_kexec_run_end(ex);
        return;
    }

    if (ex->cut) {

        /* what may have run is never sent again */

        ngx_kexec_tell(ex, "LinkLost", "the link to the kernel was lost while "
                       "the code was sent, it may or may not have run");
        ngx_kexec_run_end(ex);
        return;
    }

    if (!ex->cancel && ex->resent++) {
        ngx_kexec_tell(ex, "KernelUnresponsive", "the kernel took no notice "
                       "of the code, which was sent twice");
        ngx_kexec_run_end(ex);
        return;
    }

    ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                  "the code was lost on its way to the kernel");

    ngx_kexec_run_lost(ex);
}


void
ngx_kexec_run_wait(ngx_kexec_execution_t *ex, ngx_kexec_wait_e wait)
{
    ngx_msec_t  quiet;

    switch (wait) {

    case NGX_KEXEC_WAIT_TIMEOUT:

        if (!ngx_kexec_run_goes_on(ex, wait)) {
            return;
        }

        if (ex->state == NGX_KEXEC_EX_BUSY) {
            ngx_kexec_tell(ex, "ExecutionTimeout", "the execution was "
                           "interrupted after its timeout of %M.%03M s",
                           ex->timeout / 1000, ex->timeout % 1000);
            ex->outcome = NGX_KEXEC_STATUS_TIMEOUT;

        } else {
            ngx_kexec_tell(ex, "ExecutionTimeout", "the kernel did not start "
                           "the code within its timeout of %M.%03M s, %s; it "
                           "may yet start, and is interrupted then",
                           ex->timeout / 1000, ex->timeout % 1000,
                           ngx_kexec_held_words(ex));
            ex->outcome = NGX_KEXEC_STATUS_TIMEOUT;

            ngx_kexec_tell_end(ex);
        }

        ngx_kexec_cancel(ex, NGX_KEXEC_CANCEL_TIMEOUT);
        return;

    case NGX_KEXEC_WAIT_START:

        if (ex->state == NGX_KEXEC_EX_SENT && !ex->fence.sent) {
            ngx_kexec_fence(ex);

            /* a deleted kernel's link stays open and swallows all */

            ngx_kexec_ask_jupyter(ex);
        }

        return;

    case NGX_KEXEC_WAIT_VERDICT:
        ngx_kexec_verdict_release(ex);
        return;

    case NGX_KEXEC_WAIT_REPLY:

        if (ex->state == NGX_KEXEC_EX_BUSY && ex->ask.idle) {
            ngx_kexec_run_end(ex);
        }

        return;

    case NGX_KEXEC_WAIT_IDLE:

        if (ex->state != NGX_KEXEC_EX_BUSY || ex->fence.sent) {
            return;
        }

        quiet = ngx_kexec_run_quiet(ex);

        if (quiet < NGX_KEXEC_QUIET_TIME) {
            ngx_kexec_wait(ex, wait, NGX_KEXEC_QUIET_TIME - quiet);
            return;
        }

        ngx_kexec_fence(ex);
        return;

    case NGX_KEXEC_WAIT_SILENT:

        if (ex->state != NGX_KEXEC_EX_SENT && ex->state != NGX_KEXEC_EX_BUSY) {
            return;
        }

        quiet = ngx_current_msec - ex->heard;

        if (quiet < NGX_KEXEC_SILENT_TIME) {
            ngx_kexec_wait(ex, wait, NGX_KEXEC_SILENT_TIME - quiet);
            return;
        }

        ngx_kexec_wait(ex, wait, NGX_KEXEC_SILENT_TIME);
        ngx_kexec_ask_jupyter(ex);

        if (ex->state == NGX_KEXEC_EX_BUSY && ex->ctx.in_order
            && !ex->fence.sent && !ex->ask.reply && !ex->ask.idle)
        {
            /* it comes back behind the code, or when that is over untold */

            ngx_kexec_fence(ex);
        }

        return;

    default:
        return;
    }
}


/*
 * The kernel, which takes one request after the other, has answered the fence
 * and told no end of the code: something of that is broken, and may still run.
 */

static void
ngx_kexec_run_unended(ngx_kexec_execution_t *ex)
{
    ngx_kexec_tell(ex, "ExecutionLost", "the kernel takes requests again but "
                   "did not tell how the code ended, something of it may still "
                   "run and is interrupted");
    ngx_kexec_tell_end(ex);

    if (ex->interrupts) {
        ngx_kexec_run_end(ex);
        return;
    }

    ex->cancel = NGX_KEXEC_CANCEL_CLIENT;
    ex->unended = 1;

    ngx_kexec_claim_phase(&ex->claim, NGX_KEXEC_PHASE_CANCELLING);

    ngx_kexec_interrupt(ex);
}


/* only one that is known to be the same took nothing along */

static ngx_uint_t
ngx_kexec_run_other_process(ngx_kexec_execution_t *ex)
{
    return ex->process == 0 || ex->process != ex->ctx.process;
}


/*
 * Is there code to be interrupted?  A reply says that there is none, but code
 * can send one in the kernel's name and go on, so a fence has to come back as
 * well, in the time after which "wait" comes here again.
 */

ngx_uint_t
ngx_kexec_run_goes_on(ngx_kexec_execution_t *ex, ngx_kexec_wait_e wait)
{
    ngx_msec_t  ms;

    if (!ex->ask.reply) {
        return 1;
    }

    if (ex->over) {
        return 0;
    }

    if (ex->doubted == 0) {
        ex->doubted = ngx_current_msec;

        if (!ex->fence.sent) {
            ngx_kexec_fence(ex);
        }
    }

    ms = ngx_current_msec - ex->doubted;

    if (ms < NGX_KEXEC_QUIET_TIME) {
        ngx_kexec_wait(ex, wait, NGX_KEXEC_QUIET_TIME - ms);
        return 0;
    }

    return 1;
}


/* for how long the link has been silent */

static ngx_msec_t
ngx_kexec_run_quiet(ngx_kexec_execution_t *ex)
{
    if (ex->kernel == NULL || !ex->kernel->open) {
        return 0;
    }

    return ngx_current_msec - ngx_kexec_link_last_read(ex->kernel->link);
}


/* a restart or delete by somebody else sends no status message */

void
ngx_kexec_ask_jupyter(ngx_kexec_execution_t *ex)
{
    ngx_str_t  id;

    if (ex->http || ex->kernel == NULL) {
        return;
    }

    id.len = ex->ctx.kernel.len;
    id.data = ex->ctx.kernel.data;

    ex->http = ngx_kexec_jupyter_kernel(&ex->kernel->server, &id,
                                        ngx_kexec_run_state_handler, ex,
                                        &ex->log);
    if (ex->http) {
        ngx_kexec_http_limit(ex->http, NGX_KEXEC_ASK_TIME);
        ex->asking = 1;
        ex->asked = ngx_current_msec;
    }
}


/* a question may be dropped, unlike an interrupt, and stands in its way */

void
ngx_kexec_ask_no_more(ngx_kexec_execution_t *ex)
{
    if (ex->http && ex->asking) {
        ngx_kexec_http_cancel(ex->http);
        ex->http = NULL;
    }

    ex->asking = 0;
}


static void
ngx_kexec_run_state_handler(ngx_kexec_http_t *http)
{
    ngx_msec_t                 limit;
    ngx_uint_t                 links;
    ngx_kexec_execution_t     *ex;
    ngx_kexec_kernel_state_e   state;

    ex = http->data;
    ex->http = NULL;
    ex->asking = 0;
    ex->unheard = (http->status == 0);

    ngx_kexec_deaf_answer(ex, http->status != 0);

    if (http->status) {
        ex->unanswered = 0;
    }

    if (ex->leaving) {
        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_LOOK, 0);
        return;
    }

    if (http->status == NGX_HTTP_NOT_FOUND) {
        ngx_kexec_gone(ex);
        return;
    }

    if (ex->interrupts && http->status && !ex->fence.sent) {

        if (ex->state == NGX_KEXEC_EX_BARRIER) {
            ngx_kexec_barrier(ex);
            return;
        }

        if (ex->state == NGX_KEXEC_EX_PROBING) {
            ngx_kexec_probe_barrier(ex);
            return;
        }
    }

    state = NGX_KEXEC_KERNEL_OTHER;
    links = 0;

    if (http->status == NGX_HTTP_OK) {
        (void) ngx_kexec_jupyter_parse_kernel(&http->body, &state, &links);
    }

    if (links) {
        ex->links = links;
        ngx_kexec_held_asked(ex);
    }

    if (http->status
        && ngx_kexec_deaf_probe(ex, state == NGX_KEXEC_KERNEL_BUSY) == NGX_OK)
    {
        return;
    }

    if (ex->state == NGX_KEXEC_EX_PROBING
        && ex->interrupts == 0
        && ex->kernel && ex->kernel->foreign == 0
        && (state == NGX_KEXEC_KERNEL_BUSY
            || ngx_current_msec - ex->orphan > NGX_KEXEC_ORPHAN_LATE_TIME))
    {
        ngx_kexec_interrupt(ex);
        return;
    }

    if (ex->state != NGX_KEXEC_EX_SENT && ex->state != NGX_KEXEC_EX_BUSY) {
        return;
    }

    if (ex->cut && links > 1) {

        /* what came while the link was down went to somebody else alone */

        ex->dropped = 1;
    }

    if (ex->ending) {
        ngx_kexec_run_end(ex);
        return;
    }

    if (state == NGX_KEXEC_KERNEL_IDLE && !ex->suspect) {
        ex->suspect = 1;

        if (!ex->fence.sent) {
            ngx_kexec_fence(ex);
        }

        /* an idle kernel would have answered by then: see below */

        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_SILENT, NGX_KEXEC_QUIET_TIME);
        return;
    }

    limit = (ngx_msec_t) NGX_KEXEC_SILENT_TIME << ngx_min(ex->deaf, 6);

    if (state != NGX_KEXEC_KERNEL_IDLE) {

        /* what runs there may be ours, or Jupyter be wrong */

        limit *= (ex->state == NGX_KEXEC_EX_SENT) ? 6 : 60;
    }

    if (http->status && ex->fence.sent && ex->fence.late
        && (ex->suspect || ex->cut || ex->state == NGX_KEXEC_EX_SENT)
        && ngx_kexec_deaf_quiet(ex, ngx_kexec_run_quiet(ex)) > limit)
    {
        /* the kernel is there: another link brings the fence back */

        ngx_kexec_deaf_run(ex);
    }
}


/* the kernel process died under the code, or before it */

void
ngx_kexec_run_died(ngx_kexec_execution_t *ex, ngx_uint_t dead)
{
    ex->fence.sent = 0;

    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_FENCE);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_INTERRUPT);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_STUCK);

    if (ex->exits) {

        /* it said so: Jupyter was quicker than its own idle, and restarts it */

        ex->exits = 0;
        ex->dropped = 1;
        ex->ending = 1;
    }

    if (ex->ending) {

        /* the code was over */

        ex->over = 1;

        ngx_kexec_ask_no_more(ex);
        ngx_kexec_run_end(ex);

        if (ex->state == NGX_KEXEC_EX_BARRIER) {

            /* what was interrupted is gone: only the calls are waited for */

            ngx_kexec_leave(ex);
        }

        return;
    }

    if (ex->state == NGX_KEXEC_EX_BUSY) {

        ngx_kexec_run_killed(ex);
        ngx_kexec_tell_end(ex);

        ngx_kexec_leave(ex);
        return;
    }

    /*
     * A process may die before its busy leaves it, so the code may have run,
     * and is not sent again.  It may also still be in the kernel's socket and
     * run in the next process: only when that one's fence is back, it is not.
     * If it starts there, it is interrupted as if its client had left.
     */

    ngx_kexec_run_killed(ex);
    ngx_kexec_tell_end(ex);

    if (dead) {
        ex->ask.sent = 0;
        ngx_kexec_leave(ex);
        return;
    }

    ex->cancel = NGX_KEXEC_CANCEL_CLIENT;
    ex->step = 0;

    ngx_kexec_claim_phase(&ex->claim, NGX_KEXEC_PHASE_CANCELLING);
    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_READY, ex->conf->ready_timeout);

    ngx_kexec_probe(ex);
}


static void
ngx_kexec_run_killed(ngx_kexec_execution_t *ex)
{
    if (ex->state == NGX_KEXEC_EX_BUSY) {
        ngx_kexec_tell(ex, "KernelDied", "the kernel process died while the "
                       "code was running (killed, crashed or out of memory) "
                       "and is started again, its variables are lost");

    } else {
        ngx_kexec_tell(ex, "KernelDied", "the kernel process died before the "
                       "code was seen to start, it may or may not have run; a "
                       "new one is started, the variables are lost");
    }

    if (ex->outcome == NGX_KEXEC_STATUS_NONE) {
        ex->outcome = NGX_KEXEC_STATUS_DIED;
    }
}
