
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_envs.h>
#include <ngx_kexec_execution.h>


/* the longest pause between two tries to open a link */
#define NGX_KEXEC_CONNECT_TIME  1000


/*
 * Jupyter closes an older link of the session when a new one opens, and what
 * arrives on that one afterwards is taken for another protocol: a format for
 * a hundred million numbers, which keeps it busy for seconds.  So what a dead
 * worker sent last gets this much time to be read.
 */
#define NGX_KEXEC_ORPHAN_LINK_TIME  100


static void ngx_kexec_connect_later(ngx_kexec_execution_t *ex);
static void ngx_kexec_opened(void *data);
static void ngx_kexec_closed(void *data, ngx_uint_t status,
    const char *reason);
static void ngx_kexec_message(void *data, ngx_kexec_message_t *msg);
static void ngx_kexec_skipped(void *data);
static ngx_uint_t ngx_kexec_ask_is(ngx_kexec_ask_t *ask,
    ngx_kexec_message_t *msg);
static void ngx_kexec_fence_back(ngx_kexec_execution_t *ex);


static ngx_kexec_kernel_user_t  ngx_kexec_execution_user = {
    ngx_kexec_opened,
    ngx_kexec_message,
    ngx_kexec_skipped,
    ngx_kexec_closed
};


/* the slot is ours, and with it the kernel */

void
ngx_kexec_granted(ngx_kexec_execution_t *ex)
{
    ngx_msec_t           waited;
    const char          *why;
    ngx_kexec_report_t  *report;

    if (ngx_kexec_zone_get(ex->claim.zone, &ex->claim.context, &ex->ctx)
        != NGX_OK)
    {
        ngx_kexec_fail(ex, NGX_HTTP_NOT_FOUND, "ContextDeleted",
                       "the context is gone, the code did not run");
        return;
    }

    if (ex->client) {
        waited = ngx_current_msec - ex->entered;

        report = ex->client->report;
        report->has_queue_time = 1;
        report->queue_time = waited;
    }

    why = ngx_kexec_language_refuses_code(ex->ctx.kind, &ex->code);

    if (why) {
        ngx_kexec_fail(ex, NGX_HTTP_BAD_REQUEST, "InvalidCode",
                       "%s; the code did not run", why);
        return;
    }

    ngx_kexec_language_lines(ex->ctx.kind, &ex->code);

    ngx_kexec_claim_phase(&ex->claim, NGX_KEXEC_PHASE_PREPARING);
    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_READY, ex->conf->ready_timeout);

    ex->recover = ex->ctx.dirty;

    if (ex->ctx.kernel.len == 0) {
        ngx_kexec_session(ex);
        return;
    }

    ngx_kexec_connect(ex);
}


/* takes the kernel and, where there is none yet, opens a link to it */

void
ngx_kexec_connect(ngx_kexec_execution_t *ex)
{
    if (ex->kernel == NULL) {
        ex->kernel = ngx_kexec_kernel_take(ex->claim.zone, &ex->ctx,
                                           ex->server, ex->conf->max_message,
                                           &ngx_kexec_execution_user, ex);
        if (ex->kernel == NULL) {
            ngx_kexec_fail(ex, NGX_HTTP_INTERNAL_SERVER_ERROR,
                           "InternalError", "out of memory");
            return;
        }

        if (ex->other) {
            ngx_kexec_kernel_other(ex->kernel);
        }

        if (ex->deaf) {

            /* what holds the kernel is the same as on the link before */

            ex->kernel->foreign = ex->foreign;
        }
    }

    if (ex->kernel->open) {
        ngx_kexec_probe(ex);
        return;
    }

    if (ex->state <= NGX_KEXEC_EX_SETUP) {
        ex->state = NGX_KEXEC_EX_LINKING;
        ex->log.action = "opening the link to the kernel";

        /* a silent request is repeated when the kernel is ready */

        ex->silent.sent = 0;
        ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_SETUP);
    }

    if (!(ex->waits & (1 << NGX_KEXEC_WAIT_LINK))
        && (ex->client || ex->kind == NGX_KEXEC_CLAIM_CREATE))
    {
        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_LINK, ex->conf->reconnect_timeout);
    }

    if (ex->recover && ex->tries == 0) {
        ex->tries = 1;
        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_CONNECT, NGX_KEXEC_ORPHAN_LINK_TIME);
        return;
    }

    if (ngx_kexec_kernel_open(ex->kernel) != NGX_OK) {
        ngx_kexec_connect_later(ex);
    }
}


/* at once the first time, then with growing pauses */

static void
ngx_kexec_connect_later(ngx_kexec_execution_t *ex)
{
    ngx_msec_t  pause;

    pause = ex->tries ? 50 << ngx_min(ex->tries, 8) : 0;
    ex->tries++;

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_CONNECT,
                   ngx_min(pause, NGX_KEXEC_CONNECT_TIME));
}


static void
ngx_kexec_opened(void *data)
{
    ngx_kexec_execution_t *ex = data;

    if (ex->state == NGX_KEXEC_EX_DONE) {
        return;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, &ex->log, 0,
                   "kexec link open in state %d", ex->state);

    ex->tries = 0;

    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_LINK);

    if (ex->other) {
        ex->other = 0;

        ngx_kexec_ask_no_more(ex);
        ngx_kexec_kernel_discard(ex->kernel);
        ex->kernel = NULL;

        ngx_kexec_connect(ex);
        return;
    }

    if (ex->deaf) {
        ex->kernel->seen = ex->seen;
    }

    switch (ex->state) {

    case NGX_KEXEC_EX_LINKING:
        ngx_kexec_probe(ex);
        break;

    case NGX_KEXEC_EX_SENT:
    case NGX_KEXEC_EX_BUSY:

        /*
         * What was printed meanwhile comes now.  A fence behind it shows
         * when it is all there, but for kernels that answer while code
         * awaits: Jupyter would take them for idle then, as they say.
         */

        ngx_kexec_claim_phase(&ex->claim, ex->cancel
                                          ? NGX_KEXEC_PHASE_CANCELLING
                                          : NGX_KEXEC_PHASE_RUNNING);

        if (ex->state == NGX_KEXEC_EX_SENT || ex->ctx.in_order
            || ex->ask.reply || ex->ask.idle)
        {
            ngx_kexec_fence(ex);
        }

        /* Jupyter keeps nothing for us while somebody else has a link */

        ngx_kexec_ask_jupyter(ex);
        break;

    case NGX_KEXEC_EX_SETUP:
    case NGX_KEXEC_EX_RESTORING:

        /* the answer to a silent request may be lost with the link */

        ngx_kexec_fence(ex);
        break;

    case NGX_KEXEC_EX_BARRIER:
        ngx_kexec_barrier(ex);
        break;

    default:
        break;
    }
}


/*
 * Is the kernel there?  A fence's reply shows that it answers, a message on
 * iopub with the fence as its parent that its output reaches us.
 */

void
ngx_kexec_probe(ngx_kexec_execution_t *ex)
{
    if (ex->ctx.ready && !ex->kernel->fresh && !ex->recover) {
        ngx_kexec_setup(ex);
        return;
    }

    ngx_kexec_session_unmark(ex);
    ngx_kexec_envs_stop(ex);

    ex->state = NGX_KEXEC_EX_PROBING;
    ex->log.action = "waiting for the kernel to be ready";
    ex->probed = ngx_current_msec;

    ngx_kexec_fence(ex);

    if (ex->recover) {

        /*
         * The code of a dead worker's execution may still run here.  If the
         * fence does not come back soon, it does, or a new process starts,
         * which an interrupt would kill.  Jupyter knows, unless the kernel
         * was quicker than its subscription.
         */

        if (ex->orphan == 0) {
            ex->orphan = ngx_current_msec;
        }

        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_INTERRUPT, NGX_KEXEC_ORPHAN_TIME);
    }
}


void
ngx_kexec_fence(ngx_kexec_execution_t *ex)
{
    (void) ngx_kexec_ask(ex, &ex->fence, NULL, 0);

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_FENCE, NGX_KEXEC_FENCE_TIME);

    if (!(ex->waits & (1 << NGX_KEXEC_WAIT_HELD))) {
        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_HELD, NGX_KEXEC_HELD_TIME);
    }
}


/* it may be lost, or the kernel busy: the same one once more */

void
ngx_kexec_fence_again(ngx_kexec_execution_t *ex)
{
    ngx_str_t  id;

    if (!ex->fence.sent) {
        return;
    }

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_FENCE, NGX_KEXEC_FENCE_TIME);

    /*
     * Behind code that runs for long, more than two would only pile up in
     * front of the kernel.
     */

    if (ex->kernel && ex->kernel->open
        && !(ex->fence.late && ex->state >= NGX_KEXEC_EX_SENT))
    {
        id.len = ex->fence.len;
        id.data = ex->fence.id;

        (void) ngx_kexec_kernel_send(ex->kernel, &id, NULL, 0);
    }

    ex->fence.late = 1;
    ex->fence.half = ex->fence.reply || ex->fence.idle;

    if (ex->state == NGX_KEXEC_EX_SENT || ex->state == NGX_KEXEC_EX_BUSY) {
        ngx_kexec_run_fence(ex);
    }
}


/* without a link it counts as sent too: the fence is repeated by its timer */

ngx_int_t
ngx_kexec_ask(ngx_kexec_execution_t *ex, ngx_kexec_ask_t *ask,
    ngx_str_t *code, ngx_uint_t silent)
{
    ngx_str_t  id;

    ngx_memzero(ask, sizeof(ngx_kexec_ask_t));

    /* code knows the id that it was sent with, and must not guess the next */

    ask->sent = 1;
    ask->len = ngx_snprintf(ask->id, sizeof(ask->id), "%*s-%ui-%08xD",
                            (size_t) NGX_KEXEC_UUID_LEN, ex->id,
                            ++ex->serial, (uint32_t) ngx_random())
               - ask->id;

    id.len = ask->len;
    id.data = ask->id;

    if (ex->kernel == NULL || !ex->kernel->open) {
        return NGX_DECLINED;
    }

    return ngx_kexec_kernel_send(ex->kernel, &id, code, silent);
}


static ngx_uint_t
ngx_kexec_ask_is(ngx_kexec_ask_t *ask, ngx_kexec_message_t *msg)
{
    return ask->sent
           && msg->parent_id.len == ask->len
           && ngx_memcmp(msg->parent_id.data, ask->id, ask->len) == 0;
}


static void
ngx_kexec_message(void *data, ngx_kexec_message_t *msg)
{
    ngx_kexec_execution_t *ex = data;

    ngx_kexec_ask_t    *ask;
    ngx_kexec_reply_t   reply;

    if (ex->state == NGX_KEXEC_EX_DONE || ex->leaving) {
        return;
    }

    if (ngx_kexec_ask_is(&ex->ask, msg)) {
        ngx_kexec_run_message(ex, msg);
        return;
    }

    if (ngx_kexec_ask_is(&ex->fence, msg)) {
        ask = &ex->fence;

    } else if (ngx_kexec_ask_is(&ex->silent, msg)) {
        ask = &ex->silent;

    } else {

        if (msg->type == NGX_KEXEC_MSG_SHUTDOWN_REPLY) {
            ngx_kexec_replaced(ex);
            return;
        }

        if (msg->type == NGX_KEXEC_MSG_STATUS) {

            ngx_kexec_kernel_foreign(ex->kernel, msg);

            /* Jupyter's own words about the kernel have no parent */

            switch (ngx_kexec_message_state(msg)) {

            case NGX_KEXEC_STATE_RESTARTING:
            case NGX_KEXEC_STATE_AUTORESTARTING:
                ngx_kexec_died(ex, 0);
                break;

            case NGX_KEXEC_STATE_DEAD:
                ngx_kexec_died(ex, 1);
                break;

            case NGX_KEXEC_STATE_STARTING:

                /*
                 * A process says so first of all.  If the kernel was ready
                 * before, somebody has had it restarted by Jupyter.
                 */

                if (ex->ctx.ready && !ex->kernel->fresh) {
                    ngx_kexec_died(ex, 0);
                }

                break;

            default:
                break;
            }
        }

        return;
    }

    if (msg->channel == NGX_KEXEC_CHANNEL_IOPUB) {
        ask->iopub = 1;
        ngx_kexec_ours(ex);
    }

    switch (msg->type) {

    case NGX_KEXEC_MSG_STATUS:

        if (ngx_kexec_message_state(msg) == NGX_KEXEC_STATE_IDLE) {
            ask->idle = 1;
        }

        break;

    case NGX_KEXEC_MSG_EXECUTE_REPLY:
        ngx_kexec_message_reply(msg, &reply);
        ask->status = reply.status;
        ask->reply = 1;
        break;

    case NGX_KEXEC_MSG_KERNEL_INFO_REPLY:
        ask->reply = 1;
        ngx_kexec_process(ex, msg);
        break;

    default:
        break;
    }

    if (ask == &ex->fence) {
        ngx_kexec_fence_back(ex);
        return;
    }

    if (ask->reply) {
        ngx_kexec_setup_answered(ex);
    }
}


/* the kernel takes one request after the other, and now it took ours */

void
ngx_kexec_ours(ngx_kexec_execution_t *ex)
{
    ex->kernel->foreign = 0;
    ex->kernel->seen = 1;

    ex->foreign = 0;
}


static void
ngx_kexec_skipped(void *data)
{
    ngx_kexec_execution_t *ex = data;

    if (ex->state == NGX_KEXEC_EX_BUSY) {
        ex->dropped = 1;
        ex->dropped_why = "a message of the kernel was larger than "
                          "kexec_max_message, nested deeper than 512 levels, "
                          "or malformed";
    }
}


static void
ngx_kexec_closed(void *data, ngx_uint_t status, const char *reason)
{
    ngx_kexec_execution_t *ex = data;

    if (ex->state == NGX_KEXEC_EX_DONE) {
        return;
    }

    ngx_log_error(NGX_LOG_INFO, &ex->log, 0,
                  "link to the kernel closed: %s (%ui)", reason, status);

    if (status == NGX_HTTP_NOT_FOUND) {
        ngx_kexec_gone(ex);
        return;
    }

    if (ex->state <= NGX_KEXEC_EX_SETUP
        && (status == NGX_HTTP_FORBIDDEN || status == NGX_HTTP_UNAUTHORIZED))
    {
        ngx_log_error(NGX_LOG_ERR, &ex->log, 0,
                      "Jupyter refused the token (%ui)", status);
        ngx_kexec_fail(ex, NGX_HTTP_SERVICE_UNAVAILABLE,
                       "JupyterUnavailable",
                       "Jupyter refused the server's token (%ui), the code "
                       "%s", status, ngx_kexec_orphan(ex));
        return;
    }

    if (status == 1009 && ex->state == NGX_KEXEC_EX_SETUP) {
        ngx_kexec_fail(ex, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                       "EnvironmentError", "Jupyter refused the environment "
                       "variables as too large, the code did not run");
        return;
    }

    if (status == 1009 && ex->state == NGX_KEXEC_EX_SENT) {

        /* Tornado's limit, 10 MiB unless configured: it was not passed on */

        ngx_kexec_fail(ex, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE, "CodeTooLarge",
                       "Jupyter refused the code as too large (%uz bytes), "
                       "it did not run", ex->code.len);
        return;
    }

    if (ex->state == NGX_KEXEC_EX_SENT || ex->state == NGX_KEXEC_EX_BUSY) {
        ex->cut = 1;
        ngx_kexec_claim_phase(&ex->claim, NGX_KEXEC_PHASE_RECONNECTING);
    }

    if (ex->state == NGX_KEXEC_EX_PROBING) {
        ex->state = NGX_KEXEC_EX_LINKING;
    }

    if (!(ex->waits & (1 << NGX_KEXEC_WAIT_LINK))
        && (ex->client || ex->kind == NGX_KEXEC_CLAIM_CREATE))
    {
        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_LINK, ex->conf->reconnect_timeout);
    }

    ngx_kexec_connect_later(ex);
}


static void
ngx_kexec_fence_back(ngx_kexec_execution_t *ex)
{
    ngx_kexec_ask_t  *fence;

    fence = &ex->fence;

    switch (ex->state) {

    case NGX_KEXEC_EX_PROBING:

        if (!fence->reply || !fence->iopub) {
            return;
        }

        break;

    case NGX_KEXEC_EX_SENT:
    case NGX_KEXEC_EX_BUSY:

        ngx_kexec_run_fence(ex);
        return;

    case NGX_KEXEC_EX_BARRIER:
    case NGX_KEXEC_EX_SETUP:
    case NGX_KEXEC_EX_RESTORING:

        if (!fence->reply && !fence->idle) {
            return;
        }

        break;

    default:
        return;
    }

    fence->sent = 0;
    ex->links = 0;

    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_FENCE);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_HELD);

    switch (ex->state) {

    case NGX_KEXEC_EX_PROBING:

        if (ex->interrupts) {

            /* the orphan's end was hastened */

            ngx_kexec_probe_barrier(ex);
            return;
        }

        ngx_kexec_ask_no_more(ex);

        ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_INTERRUPT);
        ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_STUCK);

        ex->held = NGX_KEXEC_HELD_NOT;
        ex->recover = 0;
        ex->kernel->fresh = 0;
        ex->ctx.ready = 1;
        ex->ctx.dirty = 0;
        ngx_kexec_zone_update(&ex->claim, &ex->ctx);

        if (ex->ask.sent) {

            /* sent before the kernel died, and the new one never saw it */

            ex->ask.sent = 0;
        }

        ngx_kexec_setup(ex);
        return;

    case NGX_KEXEC_EX_BARRIER:
        ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_BARRIER);
        ngx_kexec_restore(ex);
        return;

    default: /* NGX_KEXEC_EX_SETUP, NGX_KEXEC_EX_RESTORING */

        if (!ex->silent.reply) {

            /* the silent request was lost: its repetition does no harm */

            if (ex->state == NGX_KEXEC_EX_SETUP) {
                ngx_kexec_setup(ex);
            } else {
                ngx_kexec_restore(ex);
            }
        }
    }
}


/* one more fence, when the last interrupt is answered, is the barrier */

void
ngx_kexec_probe_barrier(ngx_kexec_execution_t *ex)
{
    if (!ngx_kexec_interrupts_over(ex)) {
        return;
    }

    ex->interrupts = 0;

    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_INTERRUPT);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_STUCK);

    ngx_kexec_fence(ex);
}
