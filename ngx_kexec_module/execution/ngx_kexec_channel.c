
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>
#include <ngx_kexec_verdict.h>
#include <ngx_kexec_channel.h>


/* the kernel's channels: what an execution sends there, and what comes back */


static ngx_str_t *ngx_kexec_channel_id(ngx_kexec_execution_t *ex,
    ngx_kexec_msg_id_t *id, ngx_str_t *text);
static void ngx_kexec_channel_send(ngx_kexec_execution_t *ex, ngx_str_t *id,
    ngx_str_t *code, ngx_uint_t silent);

static void ngx_kexec_channel_opened(void *data);
static void ngx_kexec_channel_closed(void *data, ngx_uint_t status,
    const char *reason);
static void ngx_kexec_channel_skipped(void *data);

static void ngx_kexec_channel_message(void *data, ngx_kexec_message_t *msg);
static ngx_uint_t ngx_kexec_channel_is(ngx_kexec_ask_t *ask,
    ngx_kexec_msg_id_t *id, ngx_kexec_message_t *msg);
static void ngx_kexec_channel_code(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg);
static void ngx_kexec_channel_code_reply(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg);
static void ngx_kexec_channel_fence(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg);
static void ngx_kexec_channel_step(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg);
static void ngx_kexec_channel_other(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg);
static ngx_kexec_answer_e ngx_kexec_channel_answer(ngx_kexec_reply_e status);


static ngx_kexec_kernel_user_t  ngx_kexec_channel_user = {
    ngx_kexec_channel_opened,
    ngx_kexec_channel_message,
    ngx_kexec_channel_skipped,
    ngx_kexec_channel_closed
};


ngx_int_t
ngx_kexec_channel_take(ngx_kexec_execution_t *ex)
{
    ngx_kexec_machine_event_t  ev;

    ex->kernel = ngx_kexec_kernel_take(ex->claim.zone, &ex->ctx, ex->server,
                                       ex->conf->max_message,
                                       &ngx_kexec_channel_user, ex);
    if (ex->kernel == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    ev.what = NGX_KEXEC_ON_KERNEL;
    ev.open = ex->kernel->open;
    ev.fresh = ex->kernel->fresh;
    ev.seen = ex->kernel->seen;
    ev.foreign = ex->kernel->foreign;

    ex->event(ex, &ev);

    return NGX_OK;
}


void
ngx_kexec_channel_send_code(ngx_kexec_execution_t *ex)
{
    ngx_str_t  id;

    ngx_kexec_channel_send(ex, ngx_kexec_channel_id(ex, &ex->code_id, &id),
                           &ex->code, 0);
}


void
ngx_kexec_channel_send_fence(ngx_kexec_execution_t *ex)
{
    ngx_str_t  id;

    ngx_kexec_channel_send(ex, ngx_kexec_channel_id(ex, &ex->fence_id, &id),
                           NULL, 0);
}


void
ngx_kexec_channel_send_again(ngx_kexec_execution_t *ex)
{
    ngx_str_t  id;

    id.len = ex->fence_id.len;
    id.data = ex->fence_id.data;

    ngx_kexec_channel_send(ex, &id, NULL, 0);
}


void
ngx_kexec_channel_send_step(ngx_kexec_execution_t *ex)
{
    ngx_str_t  id;

    ngx_kexec_channel_send(ex, ngx_kexec_channel_id(ex, &ex->silent_id, &id),
                           &ex->source, 1);
}


/* code knows the id that it was sent with, and must not guess the next */

static ngx_str_t *
ngx_kexec_channel_id(ngx_kexec_execution_t *ex, ngx_kexec_msg_id_t *id,
    ngx_str_t *text)
{
    id->len = ngx_snprintf(id->data, sizeof(id->data), "%*s-%ui-%08xD",
                           (size_t) NGX_KEXEC_UUID_LEN, ex->id, ++ex->serial,
                           (uint32_t) ngx_random())
              - id->data;

    text->len = id->len;
    text->data = id->data;

    return text;
}


/* what cannot be sent is lost on its way, which the machine finds out */

static void
ngx_kexec_channel_send(ngx_kexec_execution_t *ex, ngx_str_t *id,
    ngx_str_t *code, ngx_uint_t silent)
{
    if (ex->kernel && ex->kernel->open) {
        (void) ngx_kexec_kernel_send(ex->kernel, id, code, silent);
    }
}


static void
ngx_kexec_channel_opened(void *data)
{
    ngx_kexec_on(data, NGX_KEXEC_ON_OPENED, 0);
}


static void
ngx_kexec_channel_closed(void *data, ngx_uint_t status, const char *reason)
{
    ngx_kexec_execution_t *ex = data;

    if (ex->m.state == NGX_KEXEC_EX_DONE) {
        return;
    }

    ngx_log_error(NGX_LOG_INFO, &ex->log, 0,
                  "link to the kernel closed: %s (%ui)", reason, status);

    if (status == NGX_HTTP_FORBIDDEN || status == NGX_HTTP_UNAUTHORIZED) {
        ngx_log_error(NGX_LOG_ERR, &ex->log, 0,
                      "Jupyter refused the token (%ui)", status);
    }

    ngx_kexec_on(ex, NGX_KEXEC_ON_CLOSED, status);
}


static void
ngx_kexec_channel_skipped(void *data)
{
    ngx_kexec_execution_t *ex = data;

    if (ex->m.state == NGX_KEXEC_EX_BUSY) {
        ex->dropped = 1;
        ex->dropped_why = "a message of the kernel was larger than "
                          "kexec_max_message, nested deeper than 512 levels, "
                          "or malformed";
    }
}


static void
ngx_kexec_channel_message(void *data, ngx_kexec_message_t *msg)
{
    ngx_kexec_machine_t    *m;
    ngx_kexec_execution_t  *ex;

    ex = data;
    m = &ex->m;

    if (m->state == NGX_KEXEC_EX_DONE || m->state == NGX_KEXEC_EX_LEAVING) {
        return;
    }

    if (ngx_kexec_channel_is(&m->code, &ex->code_id, msg)) {
        ngx_kexec_channel_code(ex, msg);

    } else if (ngx_kexec_channel_is(&m->fence, &ex->fence_id, msg)) {
        ngx_kexec_channel_fence(ex, msg);

    } else if (ngx_kexec_channel_is(&m->silent, &ex->silent_id, msg)) {
        ngx_kexec_channel_step(ex, msg);

    } else {
        ngx_kexec_channel_other(ex, msg);
    }
}


static ngx_uint_t
ngx_kexec_channel_is(ngx_kexec_ask_t *ask, ngx_kexec_msg_id_t *id,
    ngx_kexec_message_t *msg)
{
    return ask->sent
           && msg->parent_id.len == id->len
           && ngx_memcmp(msg->parent_id.data, id->data, id->len) == 0;
}


/* a message whose parent is the code */

static void
ngx_kexec_channel_code(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg)
{
    ngx_kexec_machine_t  *m;

    m = &ex->m;

    switch (msg->type) {

    case NGX_KEXEC_MSG_EXECUTE_REPLY:
        ngx_kexec_channel_code_reply(ex, msg);
        return;

    case NGX_KEXEC_MSG_STATUS:

        switch (ngx_kexec_message_state(msg)) {

        case NGX_KEXEC_STATE_BUSY:
            ngx_kexec_on(ex, NGX_KEXEC_ON_CODE_BUSY, 0);
            return;

        case NGX_KEXEC_STATE_IDLE:
            ngx_kexec_on(ex, NGX_KEXEC_ON_CODE_IDLE, 0);
            return;

        default:
            m->heard = ngx_current_msec;
            return;
        }

    case NGX_KEXEC_MSG_INPUT_REQUEST:

        if (ngx_kexec_verdict_input(ex, msg) != NGX_OK) {
            m->heard = ngx_current_msec;
            return;
        }

        break;

    default:
        break;
    }

    ngx_kexec_verdict_message(ex, msg);

    if (m->state == NGX_KEXEC_EX_BUSY && m->code.iopub && !m->cancel
        && ex->verdict.held == NULL)
    {

        /* output is no news */

        m->heard = ngx_current_msec;
        return;
    }

    ngx_kexec_on(ex, NGX_KEXEC_ON_CODE_OUTPUT, 0);
}


static void
ngx_kexec_channel_code_reply(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg)
{
    ngx_kexec_reply_t           reply;
    ngx_kexec_machine_event_t   ev;

    ngx_kexec_message_reply(msg, &reply);

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    ev.what = NGX_KEXEC_ON_CODE_REPLY;
    ev.n = ngx_kexec_channel_answer(reply.status);
    ev.exits = reply.exits;

    if (!ngx_kexec_machine_aborted(&ex->m, ev.n)) {
        ngx_kexec_verdict_reply(ex, msg, &reply);
    }

    ex->event(ex, &ev);
}


static void
ngx_kexec_channel_fence(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg)
{
    ngx_kexec_machine_event_t  ev;

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    if (msg->type == NGX_KEXEC_MSG_KERNEL_INFO_REPLY) {
        ev.what = NGX_KEXEC_ON_FENCE_REPLY;
        ev.process = ngx_kexec_message_process(msg);
        ev.in_order = ngx_kexec_message_in_order(msg);

        ex->event(ex, &ev);
        return;
    }

    if (msg->channel != NGX_KEXEC_CHANNEL_IOPUB) {
        return;
    }

    ngx_kexec_on(ex, msg->type == NGX_KEXEC_MSG_STATUS
                               && ngx_kexec_message_state(msg)
                                  == NGX_KEXEC_STATE_IDLE
                               ? NGX_KEXEC_ON_FENCE_IDLE
                               : NGX_KEXEC_ON_FENCE_IOPUB, 0);
}


/* a message whose parent is a silent request */

static void
ngx_kexec_channel_step(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg)
{
    ngx_kexec_reply_t  reply;

    if (msg->type == NGX_KEXEC_MSG_EXECUTE_REPLY) {
        ngx_kexec_message_reply(msg, &reply);
        ngx_kexec_on(ex, NGX_KEXEC_ON_STEP_REPLY,
                               ngx_kexec_channel_answer(reply.status));
        return;
    }

    if (msg->channel == NGX_KEXEC_CHANNEL_IOPUB) {
        ngx_kexec_on(ex, NGX_KEXEC_ON_STEP_IOPUB, 0);
    }
}


/* Jupyter's own words about the kernel have no parent */

static void
ngx_kexec_channel_other(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg)
{
    ngx_kexec_machine_event_t  ev;

    if (msg->type == NGX_KEXEC_MSG_SHUTDOWN_REPLY) {
        ngx_kexec_on(ex, NGX_KEXEC_ON_SHUTDOWN_REPLY, 0);
        return;
    }

    if (msg->type != NGX_KEXEC_MSG_STATUS) {
        return;
    }

    ngx_kexec_kernel_foreign(ex->kernel, msg);

    if (ex->kernel->foreign != ex->m.foreign) {
        ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

        ev.what = NGX_KEXEC_ON_FOREIGN;
        ev.foreign = ex->kernel->foreign;

        ex->event(ex, &ev);
    }

    switch (ngx_kexec_message_state(msg)) {

    case NGX_KEXEC_STATE_RESTARTING:
    case NGX_KEXEC_STATE_AUTORESTARTING:
        ngx_kexec_on(ex, NGX_KEXEC_ON_DIED, 0);
        return;

    case NGX_KEXEC_STATE_DEAD:
        ngx_kexec_on(ex, NGX_KEXEC_ON_DEAD, 0);
        return;

    case NGX_KEXEC_STATE_STARTING:
        ngx_kexec_on(ex, NGX_KEXEC_ON_STARTING, 0);
        return;

    default:
        return;
    }
}


static ngx_kexec_answer_e
ngx_kexec_channel_answer(ngx_kexec_reply_e status)
{
    switch (status) {

    case NGX_KEXEC_REPLY_OK:
        return NGX_KEXEC_ANSWER_OK;

    case NGX_KEXEC_REPLY_ERROR:
        return NGX_KEXEC_ANSWER_ERROR;

    case NGX_KEXEC_REPLY_ABORTED:
        return NGX_KEXEC_ANSWER_ABORTED;

    case NGX_KEXEC_REPLY_INTERRUPTED:
        return NGX_KEXEC_ANSWER_INTERRUPTED;

    default: /* NGX_KEXEC_REPLY_OTHER */
        return NGX_KEXEC_ANSWER_OTHER;
    }
}


uint32_t
ngx_kexec_message_process(ngx_kexec_message_t *msg)
{
    ngx_str_t  session;

    if (ngx_kexec_json_member(&msg->header, "session", &session) != NGX_OK) {
        return 0;
    }

    return ngx_crc32_short(session.data, session.len);
}
