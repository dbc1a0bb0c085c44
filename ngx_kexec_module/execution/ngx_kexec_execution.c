
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_envs.h>
#include <ngx_kexec_execution.h>
#include <ngx_kexec_events.h>


/* the longest sentence that is told to a client */
#define NGX_KEXEC_SENTENCE  1024


static u_char *ngx_kexec_execution_log(ngx_log_t *log, u_char *buf,
    size_t len);
static void ngx_kexec_execution_notice(ngx_kexec_claim_t *claim);
static void ngx_kexec_execution_look(ngx_kexec_execution_t *ex);
static void ngx_kexec_execution_gone(void *data);
static void ngx_kexec_execution_queue_timeout(ngx_kexec_execution_t *ex);

static void ngx_kexec_execution_timer(ngx_event_t *ev);
static void ngx_kexec_execution_timed(ngx_kexec_execution_t *ex,
    ngx_kexec_wait_e wait);
static void ngx_kexec_execution_arm(ngx_kexec_execution_t *ex);

static void ngx_kexec_execution_free(ngx_event_t *ev);


ngx_kexec_execution_t *
ngx_kexec_execution_create(ngx_http_request_t *r,
    ngx_http_kexec_loc_conf_t *conf, ngx_kexec_context_t *ctx,
    ngx_kexec_claim_kind_e kind)
{
    ngx_pool_t             *pool;
    ngx_kexec_execution_t  *ex;

    pool = ngx_create_pool(4096, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    ex = ngx_pcalloc(pool, sizeof(ngx_kexec_execution_t));
    if (ex == NULL) {
        goto failed;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     all that is not set below, state QUEUED included
     */

    ex->pool = pool;
    ex->conf = conf;
    ex->kind = kind;
    ex->ctx = *ctx;

    ex->log = *ngx_cycle->log;
    ex->log.handler = ngx_kexec_execution_log;
    ex->log.data = ex;
    ex->log.action = NULL;
    pool->log = &ex->log;

    ex->server = ngx_kexec_server_create(conf, r, pool);
    if (ex->server == NULL) {
        goto failed;
    }

    ngx_kexec_uuid(ex->id);

    ex->claim.handler = ngx_kexec_execution_notice;
    ex->claim.data = ex;
    ex->claim.context = ctx->ref;

    ex->timer.handler = ngx_kexec_execution_timer;
    ex->timer.data = ex;
    ex->timer.log = &ex->log;

    ex->freeing.handler = ngx_kexec_execution_free;
    ex->freeing.data = ex;
    ex->freeing.log = &ex->log;

    return ex;

failed:

    ngx_destroy_pool(pool);

    return NULL;
}


void
ngx_kexec_execution_destroy(ngx_kexec_execution_t *ex)
{
    ngx_destroy_pool(ex->pool);
}


static u_char *
ngx_kexec_execution_log(ngx_log_t *log, u_char *buf, size_t len)
{
    u_char                 *p;
    ngx_kexec_execution_t  *ex;

    if (log->action) {
        p = ngx_snprintf(buf, len, " while %s", log->action);
        len -= p - buf;
        buf = p;
    }

    ex = log->data;

    return ngx_snprintf(buf, len, ", kexec context: %*s, execution: %*s",
                        (size_t) NGX_KEXEC_UUID_LEN, ex->ctx.id,
                        (size_t) NGX_KEXEC_UUID_LEN, ex->id);
}


ngx_int_t
ngx_kexec_execution_enter(ngx_kexec_execution_t *ex, ngx_kexec_zone_t *zone)
{
    ngx_int_t  rc;

    ex->entered = ngx_current_msec;

    rc = ngx_kexec_claim_enter(zone, &ex->claim, ex->conf->queue_size);

    if (rc == NGX_OK) {

        /*
         * The headers go first: the caller attaches a client yet, so the
         * way on begins in the event loop.
         */

        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_LOOK, 0);
        return NGX_OK;
    }

    if (rc != NGX_AGAIN) {
        return rc;
    }

    ex->log.action = "waiting in the queue";

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_QUEUE, ex->conf->queue_timeout);
    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_LOOK, NGX_KEXEC_RECHECK_TIME);

    return NGX_OK;
}


void
ngx_kexec_execution_make(ngx_kexec_execution_t *ex)
{
    ex->entered = ngx_current_msec;

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_READY, ex->conf->ready_timeout);
    ngx_kexec_leaving(ex);

    ngx_kexec_session(ex);
}


void
ngx_kexec_execution_attach(ngx_kexec_execution_t *ex,
    ngx_kexec_client_t *client)
{
    ngx_kexec_report_t  *report;

    ex->client = client;

    client->gone = ngx_kexec_execution_gone;
    client->data = ex;

    report = client->report;

    report->has_context = 1;
    ngx_memcpy(report->context, ex->ctx.id, NGX_KEXEC_UUID_LEN);

    report->has_execution = 1;
    ngx_memcpy(report->execution, ex->id, NGX_KEXEC_UUID_LEN);
}


void
ngx_kexec_execution_abandon(ngx_kexec_execution_t *ex)
{
    ex->created = NULL;
    ex->data = NULL;
    ex->abandoned = 1;
}


/* the client left: it is forgotten first, for its memory goes with it */

static void
ngx_kexec_execution_gone(void *data)
{
    ngx_kexec_execution_t *ex = data;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, &ex->log, 0,
                   "kexec client left in state %d", ex->state);

    ex->client->report->status = NGX_KEXEC_STATUS_CANCELLED;

    if (ex->started) {
        ex->client->report->has_run_time = 1;
        ex->client->report->run_time = ngx_current_msec - ex->started;
    }

    ex->client = NULL;

    ngx_kexec_verdict_end(ex);

    ngx_kexec_cancel(ex, NGX_KEXEC_CANCEL_CLIENT);
}


static void
ngx_kexec_execution_notice(ngx_kexec_claim_t *claim)
{
    ngx_kexec_execution_look(claim->data);
}


static void
ngx_kexec_execution_look(ngx_kexec_execution_t *ex)
{
    ngx_kexec_claim_look_t  look;

    if (ex->state == NGX_KEXEC_EX_DONE) {
        return;
    }

    ngx_kexec_leaving(ex);

    if (ex->leaving) {

        if (ex->http == NULL) {
            ngx_kexec_done(ex);
        }

        return;
    }

    ngx_kexec_claim_look(&ex->claim, &look);

    if (look.verdict != NGX_KEXEC_VERDICT_NONE) {
        ngx_kexec_evicted(ex, look.verdict);
        return;
    }

    switch (look.state) {

    case NGX_KEXEC_CLAIM_QUEUED:
        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_LOOK, NGX_KEXEC_RECHECK_TIME);
        return;

    case NGX_KEXEC_CLAIM_HELD:
        break;

    default:
        ngx_log_error(NGX_LOG_ALERT, &ex->log, 0,
                      "claim of an execution is lost");
        ngx_kexec_fail(ex, NGX_HTTP_INTERNAL_SERVER_ERROR, "InternalError",
                       "the execution lost its place, send it again");
        return;
    }

    if (ex->state == NGX_KEXEC_EX_QUEUED) {
        ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_QUEUE);
        ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_LOOK);
        ngx_kexec_granted(ex);
    }

    if (look.interrupt) {
        ngx_kexec_cancel(ex, NGX_KEXEC_CANCEL_INTERRUPT);
    }
}


/*
 * The slot goes on to a new kernel.  An interrupt that is on its way must not
 * reach that, so its answer is waited for, as long as a REST call may take, or
 * the answer to a later call if that one was in vain.
 */

void
ngx_kexec_leave(ngx_kexec_execution_t *ex)
{
    if (ex->unanswered) {
        ngx_kexec_ask_jupyter(ex);

    } else {
        ngx_kexec_ask_no_more(ex);
    }

    if (ex->http) {
        ex->leaving = 1;

        /* nothing else is waited for: the slot's next holder sees to it all */

        ex->waits &= 1 << NGX_KEXEC_WAIT_SHUTDOWN;

        return;
    }

    ngx_kexec_done(ex);
}


static void
ngx_kexec_execution_queue_timeout(ngx_kexec_execution_t *ex)
{
    ngx_msec_int_t        held;
    ngx_kexec_context_t   ctx;

    static const char  *phases[] = {
        "free",
        "held by an execution whose kernel is being prepared",
        "held by a running execution",
        "held by an execution that is being cancelled",
        "held by an execution that puts variables back",
        "held by a restart of the kernel",
        "held by an execution whose link to the kernel is lost",
        "kept busy by somebody else's code, which is not interrupted,",
        "kept busy by what earlier code left running in the kernel"
    };

    held = 0;
    ctx.phase = NGX_KEXEC_PHASE_FREE;

    if (ngx_kexec_zone_get(ex->claim.zone, &ex->claim.context, &ctx)
        == NGX_OK
        && ctx.held_since)
    {
        /* another worker's clock may be a little ahead of ours */

        held = (ngx_msec_int_t) (ngx_current_msec - ctx.held_since);
        held = ngx_max(held, 0);
    }

    ngx_kexec_fail(ex, NGX_HTTP_SERVICE_UNAVAILABLE, "QueueTimeout",
                   "the execution waited %M s in the queue and did not run: "
                   "the context has been %s for %M s",
                   ex->conf->queue_timeout / 1000, phases[ctx.phase],
                   (ngx_msec_t) held / 1000);
}


void
ngx_kexec_wait(ngx_kexec_execution_t *ex, ngx_kexec_wait_e wait,
    ngx_msec_t ms)
{
    ex->waits |= 1 << wait;
    ex->wait[wait] = ngx_current_msec + ms;

    if (ex->timer.timer_set) {

        if ((ngx_msec_int_t) (ex->wait[wait] - ex->timer.timer.key) >= 0) {
            return;
        }

        /* adding alone would keep a time that is less than 300 ms off */

        ngx_del_timer(&ex->timer);
    }

    ngx_add_timer(&ex->timer, ms);
}


void
ngx_kexec_wait_not(ngx_kexec_execution_t *ex, ngx_kexec_wait_e wait)
{
    /* the timer stays: that it fires once for nothing is cheaper */

    ex->waits &= ~(1 << wait);
}


static void
ngx_kexec_execution_timer(ngx_event_t *ev)
{
    ngx_uint_t              i;
    ngx_kexec_execution_t  *ex;

    ex = ev->data;

    for (i = 0; i < NGX_KEXEC_WAIT_N; i++) {

        if (!(ex->waits & (1 << i))
            || (ngx_msec_int_t) (ex->wait[i] - ngx_current_msec) > 0)
        {
            continue;
        }

        ex->waits &= ~(1 << i);

        ngx_kexec_execution_timed(ex, i);

        if (ex->state == NGX_KEXEC_EX_DONE) {
            return;
        }
    }

    ngx_kexec_execution_arm(ex);
}


/*
 * Code that was sent before its kernel died may still run in the next process:
 * whoever has the slot then must look for it.
 */

const char *
ngx_kexec_orphan(ngx_kexec_execution_t *ex)
{
    if (!ex->ask.sent) {
        return "did not run";
    }

    ex->ctx.dirty = 1;
    ngx_kexec_zone_update(&ex->claim, &ex->ctx);

    return "may or may not have run";
}


/*
 * An execution that is not done always has its timer set: a worker that leaves
 * gracefully waits for timers only.
 */

static void
ngx_kexec_execution_arm(ngx_kexec_execution_t *ex)
{
    ngx_uint_t      i;
    ngx_msec_int_t  ms, min;

    min = 10000;

    for (i = 0; i < NGX_KEXEC_WAIT_N; i++) {

        if (ex->waits & (1 << i)) {
            ms = (ngx_msec_int_t) (ex->wait[i] - ngx_current_msec);
            min = ngx_min(min, ngx_max(ms, 0));
        }
    }

    if (ex->timer.timer_set) {
        ngx_del_timer(&ex->timer);
    }

    ngx_add_timer(&ex->timer, (ngx_msec_t) min);
}


static void
ngx_kexec_execution_timed(ngx_kexec_execution_t *ex, ngx_kexec_wait_e wait)
{
    switch (wait) {

    case NGX_KEXEC_WAIT_QUEUE:
        ngx_kexec_execution_queue_timeout(ex);
        break;

    case NGX_KEXEC_WAIT_LOOK:
        ngx_kexec_execution_look(ex);
        break;

    case NGX_KEXEC_WAIT_READY:
        ngx_kexec_held_too_long(ex);
        break;

    case NGX_KEXEC_WAIT_HELD:
        ngx_kexec_held(ex);
        break;

    case NGX_KEXEC_WAIT_CONNECT:
        ngx_kexec_connect(ex);
        break;

    case NGX_KEXEC_WAIT_LINK:

        if (ex->state <= NGX_KEXEC_EX_SETUP) {

            if (ex->kernel && ex->kernel->link
                && ngx_kexec_link_connected(ex->kernel->link))
            {
                /* Jupyter is there, its kernel is not: that is not its limit */

                ngx_kexec_wait(ex, wait, ex->conf->reconnect_timeout);
                (void) ngx_kexec_connect_anew(ex);
                break;
            }

            ngx_kexec_fail(ex, NGX_HTTP_SERVICE_UNAVAILABLE,
                           "JupyterUnavailable", "Jupyter could not be "
                           "reached for %M s, the code %s",
                           ex->conf->reconnect_timeout / 1000,
                           ngx_kexec_orphan(ex));
            break;
        }

        ngx_kexec_tell(ex, "JupyterUnavailable", "Jupyter could not be "
                       "reached for %M s after the code was sent, its "
                       "output is lost from there on",
                       ex->conf->reconnect_timeout / 1000);
        ngx_kexec_tell_end(ex);

        ngx_kexec_cancel(ex, NGX_KEXEC_CANCEL_CLIENT);
        break;

    case NGX_KEXEC_WAIT_FENCE:

        if (ex->fence.late && ex->state <= NGX_KEXEC_EX_SETUP) {

            /*
             * A deleted kernel's link stays open and swallows fences, and
             * one may be deaf: the answer tells.
             */

            ngx_kexec_ask_jupyter(ex);
        }

        ngx_kexec_fence_again(ex);
        break;

    case NGX_KEXEC_WAIT_INTERRUPT:
        ngx_kexec_interrupt_next(ex);
        break;

    case NGX_KEXEC_WAIT_STUCK:
    case NGX_KEXEC_WAIT_BARRIER:
        ngx_kexec_stuck(ex);
        break;

    case NGX_KEXEC_WAIT_SHUTDOWN:
        ngx_kexec_shutdown(ex);
        break;

    case NGX_KEXEC_WAIT_SETUP:

        /* a fence tells whether the silent request is lost or just late */

        if (ex->state == NGX_KEXEC_EX_SETUP
            || ex->state == NGX_KEXEC_EX_RESTORING)
        {
            ngx_kexec_fence(ex);
        }

        break;

    default:
        ngx_kexec_run_wait(ex, wait);
    }
}


void
ngx_kexec_tell(ngx_kexec_execution_t *ex, const char *name, const char *fmt,
    ...)
{
    va_list     args;
    ngx_str_t   value;
    u_char      buf[NGX_KEXEC_SENTENCE];

    if (ex->client == NULL || ex->errored) {
        return;
    }

    ngx_kexec_verdict_release(ex);

    va_start(args, fmt);
    value.data = buf;
    value.len = ngx_vslprintf(buf, buf + NGX_KEXEC_SENTENCE, fmt, args) - buf;
    va_end(args);

    ex->errored = 1;

    (void) ngx_kexec_event_error(&ex->client->out, name, &value);
}


/* the client's stream ends here, whatever the execution still has to do */

void
ngx_kexec_tell_end(ngx_kexec_execution_t *ex)
{
    ngx_str_t            reason;
    ngx_kexec_client_t  *client;
    ngx_kexec_report_t  *report;

    client = ex->client;

    if (client == NULL) {
        return;
    }

    ngx_kexec_verdict_end(ex);

    if (ex->outcome == NGX_KEXEC_STATUS_NONE) {
        ex->outcome = !ex->errored ? NGX_KEXEC_STATUS_OK
                      : ex->started ? NGX_KEXEC_STATUS_ERROR
                                    : NGX_KEXEC_STATUS_REJECTED;
    }

    report = client->report;
    report->status = ex->outcome;

    if (!report->has_queue_time) {
        report->has_queue_time = 1;
        report->queue_time = ngx_current_msec - ex->entered;
    }

    if (ex->started) {
        report->has_run_time = 1;
        report->run_time = ngx_current_msec - ex->started;
    }

    if (ex->dropped) {
        reason.data = (u_char *) (ex->dropped_why ? ex->dropped_why
                                  : "a part of the output was lost");
        reason.len = ngx_strlen(reason.data);
        (void) ngx_kexec_event_dropped(&client->out, &reason);
    }

    (void) ngx_kexec_event_end(&client->out);

    ex->client = NULL;

    ngx_kexec_client_end(client);
}


void
ngx_kexec_fail(ngx_kexec_execution_t *ex, ngx_uint_t status, const char *name,
    const char *fmt, ...)
{
    u_char   *p;
    va_list   args;

    p = ngx_pnalloc(ex->pool, NGX_KEXEC_SENTENCE);

    if (p) {
        va_start(args, fmt);
        ex->sentence.data = p;
        ex->sentence.len = ngx_vslprintf(p, p + NGX_KEXEC_SENTENCE, fmt, args)
                           - p;
        va_end(args);
    }

    if (ex->kind == NGX_KEXEC_CLAIM_CREATE) {

        ex->failure = status;

        if (ngx_kexec_session_drop(ex) != NGX_OK) {
            ngx_kexec_not_made(ex);
        }

        return;
    }

    ngx_kexec_tell(ex, name, "%V", &ex->sentence);
    ngx_kexec_tell_end(ex);

    if (ex->recover || ex->interrupts) {

        /* an interrupt may be on its way */

        ngx_kexec_leave(ex);
        return;
    }

    ngx_kexec_done(ex);
}


/* a new context failed, or was given up, and has left nothing behind */

void
ngx_kexec_not_made(ngx_kexec_execution_t *ex)
{
    ngx_kexec_created_pt  created;

    created = ex->created;
    ex->created = NULL;

    /* a worker that has to end says nothing about the context */

    ngx_kexec_zone_failed(&ex->claim, ex->shutdown ? 0 : ex->failure,
                          &ex->sentence);

    if (created) {
        created(ex->data, ex->failure, &ex->sentence, &ex->ctx);
    }

    ngx_kexec_done(ex);
}


/* the kernel is not wanted any more, nor a call on its behalf */

void
ngx_kexec_forget(ngx_kexec_execution_t *ex)
{
    if (ex->http) {
        ngx_kexec_http_cancel(ex->http);
        ex->http = NULL;
        ex->asking = 0;
    }

    ngx_kexec_session_unmark(ex);
    ngx_kexec_envs_stop(ex);

    if (ex->kernel) {
        ngx_kexec_kernel_discard(ex->kernel);
        ex->kernel = NULL;
    }
}


/*
 * The one end of an execution.  Its memory is freed from the event loop, for
 * this may be called from any of its handlers.
 */

void
ngx_kexec_done(ngx_kexec_execution_t *ex)
{
    ngx_str_t             sentence;
    ngx_kexec_created_pt  created;

    if (ex->state == NGX_KEXEC_EX_DONE) {
        return;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, &ex->log, 0,
                   "kexec execution done in state %d", ex->state);

    ngx_kexec_tell_end(ex);

    ex->state = NGX_KEXEC_EX_DONE;

    if (ex->timer.timer_set) {
        ngx_del_timer(&ex->timer);
    }

    if (ex->http) {
        ngx_kexec_http_cancel(ex->http);
        ex->http = NULL;
    }

    ngx_kexec_session_unmark(ex);
    ngx_kexec_envs_stop(ex);

    if (ex->kernel && ex->other) {
        ngx_kexec_kernel_discard(ex->kernel);

    } else if (ex->kernel) {
        ngx_kexec_kernel_release(ex->kernel);
    }

    ex->kernel = NULL;

    if (ex->kind == NGX_KEXEC_CLAIM_CREATE && ex->claim.ref.generation) {

        if (ex->made) {
            ngx_kexec_zone_created(&ex->claim);
            ngx_str_null(&sentence);

        } else {

            /* whoever wants it deleted has the slot next, and does it */

            ngx_str_set(&sentence, "The context was deleted while it was made");
        }

        created = ex->created;
        ex->created = NULL;

        if (created) {
            created(ex->data,
                    ex->made ? NGX_HTTP_OK : NGX_HTTP_INTERNAL_SERVER_ERROR,
                    &sentence, &ex->ctx);
        }
    }

    ngx_kexec_claim_leave(&ex->claim);

    ngx_post_event(&ex->freeing, &ngx_posted_events);
}


static void
ngx_kexec_execution_free(ngx_event_t *ev)
{
    ngx_kexec_execution_t *ex = ev->data;

    ngx_destroy_pool(ex->pool);
}
