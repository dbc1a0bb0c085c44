
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>


/*
 * Held: a kernel that owes an answer, and does not take the fence behind it.
 *
 * Somebody else's cell is known by its busy, without idle, on our link, and is
 * never interrupted.  All else is a leftover, of an earlier execution that was
 * told to have ended: a callback, a task or a thread that blocks the kernel,
 * forged messages, a stopped process.  It is treated like code of ours that
 * does not end: interrupted, in the end restarted; at once if nobody wants the
 * execution any more, else after kexec_ready_timeout.
 */


static ngx_kexec_held_e ngx_kexec_held_whose(ngx_kexec_execution_t *ex);
static void ngx_kexec_held_end(ngx_kexec_execution_t *ex);
static const char *ngx_kexec_held_code(ngx_kexec_execution_t *ex);


/* the fence is not back for NGX_KEXEC_HELD_TIME */

void
ngx_kexec_held(ngx_kexec_execution_t *ex)
{
    ngx_kexec_held_e  held;

    switch (ex->state) {

    case NGX_KEXEC_EX_PROBING:
    case NGX_KEXEC_EX_SETUP:
    case NGX_KEXEC_EX_SENT:
    case NGX_KEXEC_EX_BARRIER:
        break;

    case NGX_KEXEC_EX_LINKING:

        /* by itself, or since nothing came: that may be why */

        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_HELD, NGX_KEXEC_RETRY_TIME);
        return;

    default:

        /* what runs has limits of its own, what is put back is owed */

        return;
    }

    if (!ex->fence.sent) {
        return;
    }

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_HELD, NGX_KEXEC_HELD_TIME);

    if (!ex->ctx.ready || ex->kernel == NULL || !ex->kernel->open) {

        /* a kernel that is being started has kexec_ready_timeout */

        return;
    }

    held = ngx_kexec_held_whose(ex);

    if (held == NGX_KEXEC_HELD_NOT) {
        return;
    }

    if (held != ex->held) {
        ngx_log_error(NGX_LOG_INFO, &ex->log, 0, "the kernel is held by %s",
                      held == NGX_KEXEC_HELD_FOREIGN
                      ? "somebody else's code"
                      : "what earlier code left running");

        ex->held = held;

        ngx_kexec_claim_phase(&ex->claim, held == NGX_KEXEC_HELD_FOREIGN
                                          ? NGX_KEXEC_PHASE_FOREIGN
                                          : NGX_KEXEC_PHASE_LEFTOVER);
    }

    if (held == NGX_KEXEC_HELD_LEFTOVER
        && (ex->cancel || ex->state == NGX_KEXEC_EX_BARRIER))
    {
        ngx_kexec_held_end(ex);
    }
}


/* HELD_NOT: Jupyter is asked, and it is looked again when it has answered */

static ngx_kexec_held_e
ngx_kexec_held_whose(ngx_kexec_execution_t *ex)
{
    if (ex->kernel->foreign) {
        return NGX_KEXEC_HELD_FOREIGN;
    }

    if (ex->recover || ex->kernel->seen) {

        /* a foreign cell would have been seen to begin */

        return NGX_KEXEC_HELD_LEFTOVER;
    }

    if (ex->links == 0) {
        ex->held_asks = 1;
        ngx_kexec_ask_jupyter(ex);
        return NGX_KEXEC_HELD_NOT;
    }

    return ex->links > 1 ? NGX_KEXEC_HELD_FOREIGN : NGX_KEXEC_HELD_LEFTOVER;
}


/* Jupyter has told how many links the kernel has */

void
ngx_kexec_held_asked(ngx_kexec_execution_t *ex)
{
    if ((ex->waits & (1 << NGX_KEXEC_WAIT_HELD)) && ex->held_asks) {
        ngx_kexec_held(ex);
    }

    ex->held_asks = 0;
}


/* a reason to cancel came: what holds the kernel is not waited for any more */

void
ngx_kexec_held_cancel(ngx_kexec_execution_t *ex)
{
    if (ex->held == NGX_KEXEC_HELD_LEFTOVER) {
        ngx_kexec_held_end(ex);
    }
}


/* kexec_ready_timeout is over, and the code was not seen to start */

void
ngx_kexec_held_too_long(ngx_kexec_execution_t *ex)
{
    ngx_uint_t  connected;

    connected = (ex->kernel && ex->kernel->link
                 && ngx_kexec_link_connected(ex->kernel->link));

    if (ex->kind == NGX_KEXEC_CLAIM_CREATE
        || ex->state == NGX_KEXEC_EX_SESSION
        || (!connected && !ex->ask.sent)
        || (ex->state == NGX_KEXEC_EX_SETUP && !ex->fence.sent))
    {
        ngx_kexec_fail(ex, NGX_HTTP_SERVICE_UNAVAILABLE, "KernelNotReady",
                       "the kernel was not ready within %M s, the code %s",
                       ex->conf->ready_timeout / 1000, ngx_kexec_orphan(ex));
        return;
    }

    if (ex->kernel && ex->kernel->foreign) {
        ex->held = NGX_KEXEC_HELD_FOREIGN;
    }

    if (ex->client == NULL && ex->held == NGX_KEXEC_HELD_LEFTOVER) {

        /* whoever has the slot next tries it all again */

        (void) ngx_kexec_orphan(ex);
        ngx_kexec_leave(ex);
        return;
    }

    ngx_kexec_tell(ex, "KernelNotReady", "the kernel did not take the code "
                   "within %M s, %s; the code %s",
                   ex->conf->ready_timeout / 1000, ngx_kexec_held_words(ex),
                   ngx_kexec_held_code(ex));
    ngx_kexec_tell_end(ex);

    ex->cancel = NGX_KEXEC_CANCEL_CLIENT;

    if (ex->held == NGX_KEXEC_HELD_FOREIGN) {

        if (!ex->ask.sent) {
            ngx_kexec_leave(ex);
        }

        /* else the slot is kept: codes would pile up in front of the kernel */

        return;
    }

    if (!connected) {

        /* until then Jupyter cannot be asked for anything */

        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_READY, ex->conf->ready_timeout);
        return;
    }

    ngx_kexec_held_end(ex);
}


/*
 * From here on it is as with the code of a dead worker's execution: a fence,
 * interrupts, and one more fence as the barrier.  Code that was sent ahead of
 * the fence may start before that, and is interrupted as well.
 */

static void
ngx_kexec_held_end(ngx_kexec_execution_t *ex)
{
    if (ex->client) {
        ngx_kexec_tell(ex, "ExecutionInterrupted", "the execution was "
                       "interrupted before its code started, %s; the code %s",
                       ngx_kexec_held_words(ex), ngx_kexec_held_code(ex));
        ngx_kexec_tell_end(ex);
    }

    ex->held = NGX_KEXEC_HELD_LEFTOVER;

    if (ex->state == NGX_KEXEC_EX_SETUP || ex->state == NGX_KEXEC_EX_SENT) {
        ex->state = NGX_KEXEC_EX_PROBING;
        ex->log.action = "waiting for what earlier code left running";
        ex->probed = ngx_current_msec;

        ex->silent.sent = 0;
        ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_SETUP);
        ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_TIMEOUT);

        if (!ex->fence.sent) {
            ngx_kexec_fence(ex);
        }
    }

    if (ex->state != NGX_KEXEC_EX_BARRIER) {
        ex->recover = 1;

        /* when even the restart that follows does not come about */

        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_READY,
                       ex->conf->interrupt_timeout + NGX_KEXEC_RESTART_TIME);
    }

    /* those that were sent already go on by themselves */

    if (ex->interrupts == 0 || ex->state == NGX_KEXEC_EX_BARRIER) {
        ngx_kexec_interrupt(ex);
    }
}


/* our code started after all: what held the kernel is over */

void
ngx_kexec_held_no_more(ngx_kexec_execution_t *ex)
{
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_HELD);

    if (ex->held == NGX_KEXEC_HELD_NOT) {
        return;
    }

    ex->held = NGX_KEXEC_HELD_NOT;

    if (!ex->cancel) {
        ngx_kexec_claim_phase(&ex->claim, NGX_KEXEC_PHASE_RUNNING);
    }

    if (ex->interrupts) {

        /* they were not for our code, which has all of its time yet */

        ex->interrupts = 1;
        ex->interrupted = ngx_current_msec;

        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_INTERRUPT,
                       NGX_KEXEC_INTERRUPT_START_TIME);
        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_STUCK, ex->conf->interrupt_timeout);
    }
}


const char *
ngx_kexec_held_words(ngx_kexec_execution_t *ex)
{
    switch (ex->held) {

    case NGX_KEXEC_HELD_FOREIGN:
        return "it runs somebody else's code";

    case NGX_KEXEC_HELD_LEFTOVER:
        return "it is held by what earlier code left running";

    default:
        return "it does not answer";
    }
}


static const char *
ngx_kexec_held_code(ngx_kexec_execution_t *ex)
{
    return ex->ask.sent ? "may yet start, and is interrupted then"
                        : "did not run";
}
