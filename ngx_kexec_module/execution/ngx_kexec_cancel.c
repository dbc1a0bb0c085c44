
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_envs.h>
#include <ngx_kexec_execution.h>


/* the code ended, the fence behind it is not back: the kernel is stuck */
#define NGX_KEXEC_BARRIER_TIME          5000

/* so long before worker_shutdown_timeout is over all is ended in words */
#define NGX_KEXEC_SHUTDOWN_TIME         1000


static ngx_uint_t ngx_kexec_may_interrupt(ngx_kexec_execution_t *ex);
static void ngx_kexec_interrupted(ngx_kexec_http_t *http);
static void ngx_kexec_restarted(ngx_kexec_http_t *http);
static void ngx_kexec_restart_failed(ngx_kexec_http_t *http);
static ngx_msec_t ngx_kexec_shutdown_timeout(void);


/*
 * When interrupts are sent, in milliseconds after the first: one may come in
 * the wrong moment and be lost, or be swallowed by the code.
 */

static ngx_msec_t  ngx_kexec_interrupt_times[] = { 0, 100, 300, 1000, 2000,
                                                   4000 };

#define NGX_KEXEC_INTERRUPT_TIMES                                             \
    (sizeof(ngx_kexec_interrupt_times) / sizeof(ngx_msec_t))

#define NGX_KEXEC_INTERRUPT_PERIOD  4000


void
ngx_kexec_cancel(ngx_kexec_execution_t *ex, ngx_kexec_cancel_e reason)
{
    if (reason <= ex->cancel) {

        if (reason == NGX_KEXEC_CANCEL_INTERRUPT
            && ex->state == NGX_KEXEC_EX_BUSY
            && (ex->http == NULL || ex->asking)
            && !(ex->waits & (1 << NGX_KEXEC_WAIT_INTERRUPT)))
        {
            /* asked again after the last one was given up */

            ex->interrupts = 1;
            ex->interrupted = ngx_current_msec;

            ngx_kexec_interrupt(ex);
        }

        return;
    }

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, &ex->log, 0,
                   "kexec cancel: %d in state %d", reason, ex->state);

    ex->cancel = reason;

    if (ex->outcome == NGX_KEXEC_STATUS_NONE) {
        ex->outcome = NGX_KEXEC_STATUS_CANCELLED;
    }

    switch (ex->state) {

    case NGX_KEXEC_EX_QUEUED:
        ngx_kexec_done(ex);
        return;

    case NGX_KEXEC_EX_LINKING:

        if (ex->kernel == NULL || ex->kernel->link == NULL) {
            ngx_kexec_tell(ex, "ExecutionInterrupted", "the execution was "
                           "interrupted, the code %s", ngx_kexec_orphan(ex));
            ngx_kexec_tell_end(ex);
            ngx_kexec_leave(ex);
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

        if (ex->fetch) {

            /* whoever is asked for variables must not keep the slot */

            ngx_kexec_envs_stop(ex);
            ngx_kexec_setup(ex);
            return;
        }

        /* fall through */

    case NGX_KEXEC_EX_PROBING:

        /* a step that is under way ends by itself and sees the reason then */

        ngx_kexec_held_cancel(ex);
        return;

    case NGX_KEXEC_EX_SENT:

        /*
         * The kernel may be running somebody else's code.  Only when it says
         * that ours has started may it be interrupted.
         */

        break;

    case NGX_KEXEC_EX_BUSY:

        if (ex->ask.reply && ex->client == NULL) {

            /* only its output is waited for, and by nobody */

            ngx_kexec_run_end(ex);
            return;
        }

        if (ex->interrupts && !(ex->waits & (1 << NGX_KEXEC_WAIT_STUCK))) {
            ngx_kexec_wait(ex, NGX_KEXEC_WAIT_STUCK,
                           ex->conf->interrupt_timeout);
        }

        if (ex->interrupts) {
            ngx_kexec_interrupt(ex);

        } else {
            ngx_kexec_interrupt_first(ex);
        }

        break;

    default:

        /* a step that is under way ends by itself and sees the reason then */

        return;
    }

    if (ex->kernel->open) {
        ngx_kexec_claim_phase(&ex->claim, NGX_KEXEC_PHASE_CANCELLING);
    }

    if (ex->state == NGX_KEXEC_EX_SENT) {
        ngx_kexec_held_cancel(ex);
    }
}


/*
 * ipykernel says that it is busy a moment before it can be interrupted: until
 * then an interrupt is lost or, in the middle of that, even ends the process.
 * Any other message of the code shows that it runs.  Where none comes, 100 ms
 * are enough.
 */

void
ngx_kexec_interrupt_first(ngx_kexec_execution_t *ex)
{
    if (ex->cancel == NGX_KEXEC_CANCEL_NONE || ex->interrupts) {
        return;
    }

    if (ex->ask.iopub) {
        ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_INTERRUPT);
        ngx_kexec_interrupt(ex);
        return;
    }

    if (!(ex->waits & (1 << NGX_KEXEC_WAIT_INTERRUPT))) {
        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_INTERRUPT,
                       NGX_KEXEC_INTERRUPT_START_TIME);
    }
}


static ngx_uint_t
ngx_kexec_may_interrupt(ngx_kexec_execution_t *ex)
{
    if (ex->leaving || ex->ending) {
        return 0;
    }

    switch (ex->state) {

    case NGX_KEXEC_EX_LINKING:
    case NGX_KEXEC_EX_BARRIER:
        return ex->held == NGX_KEXEC_HELD_LEFTOVER;

    case NGX_KEXEC_EX_PROBING:
        return ex->recover;

    default:
        break;
    }

    return ex->state == NGX_KEXEC_EX_BUSY && ex->cancel && !ex->over
           && !ex->ask.idle;
}


void
ngx_kexec_interrupt(ngx_kexec_execution_t *ex)
{
    ngx_str_t  id;

    if (!ngx_kexec_may_interrupt(ex)
        || (ex->state == NGX_KEXEC_EX_BUSY
            && !ngx_kexec_run_goes_on(ex, NGX_KEXEC_WAIT_INTERRUPT)))
    {
        return;
    }

    if (ex->state != NGX_KEXEC_EX_BUSY && ex->kernel->foreign) {

        /* somebody else's cell was next: it is not hit, nor does it count */

        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_INTERRUPT, NGX_KEXEC_RETRY_TIME);

        if (ex->waits & (1 << NGX_KEXEC_WAIT_STUCK)) {
            ngx_kexec_wait(ex, NGX_KEXEC_WAIT_STUCK,
                           ex->conf->interrupt_timeout);
        }

        return;
    }

    ngx_kexec_ask_no_more(ex);

    if (ex->http) {
        return;
    }

    id.len = ex->ctx.kernel.len;
    id.data = ex->ctx.kernel.data;

    ex->http = ngx_kexec_jupyter_interrupt(&ex->kernel->server, &id,
                                           ngx_kexec_interrupted, ex,
                                           &ex->log);

    if (ex->http == NULL) {
        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_INTERRUPT, NGX_KEXEC_RETRY_TIME);
        return;
    }

    if (ex->interrupts++ == 0) {
        ex->interrupted = ngx_current_msec;
        ex->obeyed = 0;

        /* POST /contexts/ID/interrupt never restarts */

        if (ex->cancel != NGX_KEXEC_CANCEL_INTERRUPT) {
            ngx_kexec_wait(ex, NGX_KEXEC_WAIT_STUCK,
                           ex->conf->interrupt_timeout);
        }
    }
}


/* it is time for the next interrupt, or to look whether the last one is over */

void
ngx_kexec_interrupt_next(ngx_kexec_execution_t *ex)
{
    switch (ex->state) {

    case NGX_KEXEC_EX_BARRIER:
        ngx_kexec_barrier(ex);
        return;

    case NGX_KEXEC_EX_PROBING:

        if (ex->interrupts == 0) {
            ngx_kexec_wait(ex, NGX_KEXEC_WAIT_INTERRUPT,
                           NGX_KEXEC_ORPHAN_TIME);
            ngx_kexec_ask_jupyter(ex);
            return;
        }

        if (!ex->fence.sent) {
            ngx_kexec_probe_barrier(ex);
            return;
        }

        break;

    default:
        break;
    }

    ngx_kexec_interrupt(ex);
}


static void
ngx_kexec_interrupted(ngx_kexec_http_t *http)
{
    ngx_msec_int_t          ms;
    ngx_kexec_execution_t  *ex;

    ex = http->data;
    ex->http = NULL;
    ex->unheard = (http->status == 0);
    ex->unanswered = (http->status == 0 && http->connected);

    if (http->status == NGX_HTTP_NOT_FOUND) {
        ngx_kexec_gone(ex);
        return;
    }

    if (http->status < 200 || http->status >= 300) {
        ngx_log_error(NGX_LOG_ERR, &ex->log, 0,
                      "Jupyter did not interrupt the kernel: %ui %s",
                      http->status, http->error ? http->error : "");
    }

    if (http->status && !ex->obeyed) {

        /* the code's time to end begins here */

        ex->obeyed = 1;

        if (ex->waits & (1 << NGX_KEXEC_WAIT_STUCK)) {
            ngx_kexec_wait(ex, NGX_KEXEC_WAIT_STUCK,
                           ex->conf->interrupt_timeout);
        }
    }

    if (ex->leaving) {
        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_LOOK, 0);
        return;
    }

    if (ex->state == NGX_KEXEC_EX_BARRIER) {
        ngx_kexec_barrier(ex);
        return;
    }

    if (ex->state == NGX_KEXEC_EX_PROBING && !ex->fence.sent) {
        ngx_kexec_probe_barrier(ex);
        return;
    }

    if (ex->unended && ex->state == NGX_KEXEC_EX_BUSY
        && (http->status || http->connected))
    {
        ngx_kexec_run_end(ex);
        return;
    }

    if (!ngx_kexec_may_interrupt(ex)) {
        return;
    }

    if (http->status == 0 && !http->connected) {

        /* it was not sent, so neither patience nor a barrier depends on it */

        if (--ex->interrupts == 0) {
            ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_STUCK);
        }

        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_INTERRUPT, NGX_KEXEC_RETRY_TIME);
        return;
    }

    ms = NGX_KEXEC_INTERRUPT_PERIOD;

    if (ex->interrupts < NGX_KEXEC_INTERRUPT_TIMES) {
        ms = (ngx_msec_int_t)
                 (ex->interrupted + ngx_kexec_interrupt_times[ex->interrupts]
                  - ngx_current_msec);
        ms = ngx_max(ms, 10);
    }

    if (ex->cancel == NGX_KEXEC_CANCEL_INTERRUPT
        && ngx_current_msec + ms - ex->interrupted
           > ex->conf->interrupt_timeout)
    {
        /* who asked is told by then that it does not help */

        return;
    }

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_INTERRUPT, (ngx_msec_t) ms);
}


/*
 * An interrupt was sent, and the code is over.  The slot must not go on before
 * it is certain that no interrupt is on its way any more: the calls are
 * answered, and the kernel has answered a fence after that.
 */

void
ngx_kexec_barrier(ngx_kexec_execution_t *ex)
{
    ex->state = NGX_KEXEC_EX_BARRIER;
    ex->log.action = "waiting for the kernel after an interrupt";

    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_INTERRUPT);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_STUCK);

    if (!(ex->waits & (1 << NGX_KEXEC_WAIT_BARRIER))) {
        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_BARRIER, NGX_KEXEC_BARRIER_TIME);
    }

    if (ngx_kexec_interrupts_over(ex)) {
        ngx_kexec_fence(ex);
    }
}


/*
 * Is no interrupt on its way?  A call that Jupyter took and did not answer in
 * time may be obeyed yet: Jupyter's answer to a later one shows that it was.
 * If not, whatever calls back next asks again.
 */

ngx_uint_t
ngx_kexec_interrupts_over(ngx_kexec_execution_t *ex)
{
    if (!ex->unanswered) {
        ngx_kexec_ask_no_more(ex);
        return ex->http == NULL;
    }

    ngx_kexec_ask_jupyter(ex);

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_INTERRUPT, NGX_KEXEC_RETRY_TIME);

    return 0;
}


/* neither interrupts nor patience help */

void
ngx_kexec_stuck(ngx_kexec_execution_t *ex)
{
    switch (ex->state) {

    case NGX_KEXEC_EX_RESTORING:

        /* somebody else's code holds the kernel: the next one will do it */

        ngx_kexec_done(ex);
        return;

    case NGX_KEXEC_EX_RESTARTING:
        ngx_kexec_restart(ex);
        return;

    case NGX_KEXEC_EX_LINKING:
    case NGX_KEXEC_EX_PROBING:
    case NGX_KEXEC_EX_BARRIER:

        if (ex->kernel == NULL) {
            return;
        }

        if (ex->kernel->foreign) {

            if (ex->ask.sent || !ex->kernel->open) {

                /* the slot is kept, as ngx_kexec_held_too_long() does */

                ngx_kexec_wait(ex, NGX_KEXEC_WAIT_STUCK,
                               ex->conf->interrupt_timeout);
                return;
            }

            /* somebody else's cell holds the kernel: the next one waits */

            ex->ctx.ready = 0;
            ngx_kexec_zone_update(&ex->claim, &ex->ctx);

            ngx_kexec_fail(ex, NGX_HTTP_SERVICE_UNAVAILABLE, "KernelNotReady",
                           "somebody else's code runs in the kernel, the code "
                           "did not run");
            return;
        }

        /* fall through */

    case NGX_KEXEC_EX_BUSY:

        if (ex->state == NGX_KEXEC_EX_BUSY
            && !ngx_kexec_run_goes_on(ex, NGX_KEXEC_WAIT_STUCK))
        {
            return;
        }

        if (!ex->kernel->open && ex->unheard) {

            /* Jupyter is not there: nothing can be restarted */

            ngx_kexec_wait(ex, NGX_KEXEC_WAIT_STUCK,
                           ex->conf->interrupt_timeout);
            ngx_kexec_ask_jupyter(ex);
            return;
        }

        break;

    default:
        return;
    }

    if (ex->interrupts && !ex->obeyed
        && ngx_current_msec - ex->interrupted < ex->conf->ready_timeout)
    {
        /* as far as Jupyter says, no interrupt has come to the kernel yet */

        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_STUCK, NGX_KEXEC_RETRY_TIME);
        return;
    }

    if (ex->conf->interrupt_failure == NGX_KEXEC_FAILURE_WAIT) {

        ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                      "the code does not end after an interrupt");

        if (ex->state == NGX_KEXEC_EX_BARRIER) {

            if (ex->http) {

                /* an interrupt on its way is waited for */

                ngx_kexec_wait(ex, NGX_KEXEC_WAIT_BARRIER,
                               NGX_KEXEC_RETRY_TIME);
                return;
            }

            /* the next one waits for the kernel before it sends its code */

            ex->ctx.ready = 0;
            ngx_kexec_zone_update(&ex->claim, &ex->ctx);
            ngx_kexec_leave(ex);
            return;
        }

        if (ex->state <= NGX_KEXEC_EX_PROBING) {

            if (ex->http && !ex->asking) {
                ngx_kexec_wait(ex, NGX_KEXEC_WAIT_STUCK, NGX_KEXEC_RETRY_TIME);
                return;
            }

            /* that is a dead worker's code, ours is not sent yet */

            ngx_kexec_fail(ex, NGX_HTTP_SERVICE_UNAVAILABLE, "KernelNotReady",
                           "earlier code in the kernel does not end after an "
                           "interrupt, the code %s", ngx_kexec_orphan(ex));
            return;
        }

        /* interrupts go on; the client has waited long enough */

        ngx_kexec_tell_end(ex);
        return;
    }

    ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                  "the kernel does not end its code after an interrupt and "
                  "is restarted, its variables are lost");

    ngx_kexec_tell(ex, "ContextRestarted", "the kernel did not end %s "
                   "within %M s after an interrupt and was restarted, its "
                   "variables are lost",
                   ex->state == NGX_KEXEC_EX_PROBING
                   ? "what ran there before the code" : "its code",
                   ex->conf->interrupt_timeout / 1000);
    ngx_kexec_tell_end(ex);

    ngx_kexec_restart(ex);
}


/*
 * The kernel is stuck, or its code asked it to exit: whoever waits is told the
 * one, and does not notice the other.
 */

void
ngx_kexec_restart(ngx_kexec_execution_t *ex)
{
    ngx_str_t  id;

    if (ex->state != NGX_KEXEC_EX_RESTARTING && !ex->exits) {
        ngx_kexec_claim_evict(&ex->claim, NGX_KEXEC_VERDICT_RESTARTED);
    }

    if (ex->state != NGX_KEXEC_EX_RESTARTING) {
        ex->restarting = ngx_current_msec;
    }

    ex->state = NGX_KEXEC_EX_RESTARTING;
    ex->log.action = "restarting the kernel";
    ex->ask.sent = 0;
    ex->fence.sent = 0;

    /* that very timer is what repeats a restart that fails */

    ex->waits &= 1 << NGX_KEXEC_WAIT_SHUTDOWN;
    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_STUCK,
                   NGX_KEXEC_RESTART_TIME + NGX_KEXEC_BARRIER_TIME);

    ngx_kexec_claim_phase(&ex->claim, NGX_KEXEC_PHASE_RESTARTING);

    if (ex->http) {

        /* the process that it interrupts will be gone */

        ngx_kexec_http_cancel(ex->http);
        ex->asking = 0;
    }

    id.len = ex->ctx.kernel.len;
    id.data = ex->ctx.kernel.data;

    ex->http = ngx_kexec_jupyter_restart(&ex->kernel->server, &id,
                                         ngx_kexec_restarted, ex,
                                         &ex->log);
    if (ex->http) {
        ngx_kexec_http_limit(ex->http, NGX_KEXEC_RESTART_TIME);
        return;
    }

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_STUCK, NGX_KEXEC_RETRY_TIME);
}


static void
ngx_kexec_restarted(ngx_kexec_http_t *http)
{
    ngx_str_t               id;
    ngx_kexec_execution_t  *ex;

    ex = http->data;
    ex->http = NULL;

    if (http->status != NGX_HTTP_OK) {
        ngx_log_error(NGX_LOG_ERR, &ex->log, 0,
                      "Jupyter did not restart the kernel: %ui %s",
                      http->status, http->error ? http->error : "");

        /* a kernel that is not there is a 500 like any other failure */

        id.len = ex->ctx.kernel.len;
        id.data = ex->ctx.kernel.data;

        ex->http = ngx_kexec_jupyter_kernel(&ex->kernel->server, &id,
                                            ngx_kexec_restart_failed, ex,
                                            &ex->log);
        return;
    }

    ngx_kexec_zone_new_process(&ex->ctx);
    ex->env_set = 0;

    if (ex->kernel) {
        ex->kernel->fresh = 1;
    }

    ngx_kexec_zone_update(&ex->claim, &ex->ctx);

    ngx_kexec_done(ex);
}


static void
ngx_kexec_restart_failed(ngx_kexec_http_t *http)
{
    ngx_kexec_execution_t  *ex;

    ex = http->data;
    ex->http = NULL;

    if (http->status == NGX_HTTP_NOT_FOUND) {
        ngx_kexec_gone(ex);
        return;
    }

    if (!ex->leaving
        && ngx_current_msec - ex->restarting > ex->conf->ready_timeout)
    {
        ngx_log_error(NGX_LOG_ERR, &ex->log, 0,
                      "Jupyter did not restart the kernel for %M s, that is "
                      "left to the next execution",
                      ex->conf->ready_timeout / 1000);

        ex->ctx.ready = 0;
        ex->ctx.dirty = 1;
        ngx_kexec_zone_update(&ex->claim, &ex->ctx);

        ngx_kexec_done(ex);
        return;
    }

    ngx_kexec_wait(ex, ex->leaving ? NGX_KEXEC_WAIT_LOOK
                                   : NGX_KEXEC_WAIT_STUCK,
                   NGX_KEXEC_RETRY_TIME);
}


/* somebody restarts or deletes the context: the slot is wanted back at once */

void
ngx_kexec_evicted(ngx_kexec_execution_t *ex, ngx_kexec_verdict_e verdict)
{
    if (verdict == NGX_KEXEC_VERDICT_DELETED) {
        ngx_kexec_tell(ex, "ContextDeleted", "the context was deleted%s",
                       ex->started ? "" : ", the code did not run");
    } else {
        ngx_kexec_tell(ex, "ContextRestarted", "the context was restarted%s",
                       ex->started ? "" : ", the code did not run");
    }

    if (ex->outcome == NGX_KEXEC_STATUS_NONE) {
        ex->outcome = NGX_KEXEC_STATUS_CANCELLED;
    }

    ngx_kexec_tell_end(ex);

    if (!ex->over) {

        /* nobody interrupts the code: a new process ends it, if one comes */

        (void) ngx_kexec_orphan(ex);
    }

    ngx_kexec_leave(ex);
}


/*
 * When worker_shutdown_timeout is over, nginx closes all connections without a
 * word, clients' and links'.  What can be said and done has to be before.
 */

void
ngx_kexec_leaving(ngx_kexec_execution_t *ex)
{
    ngx_msec_t  leaving, timeout;

    leaving = ngx_kexec_zone_leaving();
    timeout = ngx_kexec_shutdown_timeout();

    if (leaving == 0 || timeout == 0 || ex->shutdown
        || (ex->waits & (1 << NGX_KEXEC_WAIT_SHUTDOWN)))
    {
        return;
    }

    timeout -= ngx_min(timeout / 2, NGX_KEXEC_SHUTDOWN_TIME);
    timeout -= ngx_min(timeout, ngx_current_msec - leaving);

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_SHUTDOWN, timeout);
}


static ngx_msec_t
ngx_kexec_shutdown_timeout(void)
{
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(ngx_cycle->conf_ctx,
                                           ngx_core_module);

    return ccf->shutdown_timeout;
}


void
ngx_kexec_shutdown(ngx_kexec_execution_t *ex)
{
    if (ex->shutdown) {

        /* time is over */

        if (ex->kind == NGX_KEXEC_CLAIM_CREATE) {
            ngx_kexec_not_made(ex);
            return;
        }

        ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                      "worker_shutdown_timeout is over, what runs in the "
                      "kernel is left to other workers");

        ex->ctx.dirty = 1;
        ngx_kexec_zone_update(&ex->claim, &ex->ctx);

        ngx_kexec_done(ex);
        return;
    }

    ex->shutdown = 1;

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_SHUTDOWN,
                   ngx_min(ngx_kexec_shutdown_timeout() / 2,
                           NGX_KEXEC_SHUTDOWN_TIME));

    if (ex->failure) {

        /* a context that failed is being taken away */

        return;
    }

    if (ex->kind == NGX_KEXEC_CLAIM_CREATE) {
        ngx_kexec_fail(ex, NGX_HTTP_SERVICE_UNAVAILABLE, "ServerShutdown",
                       "The server's worker process had to end "
                       "(worker_shutdown_timeout) before the context was made");
        return;
    }

    if (ex->state < NGX_KEXEC_EX_SENT) {
        ngx_kexec_fail(ex, NGX_HTTP_SERVICE_UNAVAILABLE, "ServerShutdown",
                       "the server's worker process had to end "
                       "(worker_shutdown_timeout), the code %s",
                       ngx_kexec_orphan(ex));
        return;
    }

    ngx_kexec_tell(ex, "ServerShutdown", "the server's worker process had to "
                   "end (worker_shutdown_timeout), the code was interrupted");
    ngx_kexec_tell_end(ex);

    ngx_kexec_cancel(ex, NGX_KEXEC_CANCEL_CLIENT);
}
