
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>
#include <ngx_kexec_verdict.h>
#include <ngx_kexec_events.h>


/*
 * What the kernel says of the code becomes events here, and how the code ended
 * is decided: by its reply alone.  An error on iopub may be a formatter's, or
 * anybody's who prints a traceback, so it is held until the reply confirms it,
 * together with what comes behind it, for the order of events to stay.  What is
 * not confirmed is told as stderr, in its place.
 */


/* an error is held for this long, and no more than that behind it */
#define NGX_KEXEC_VERDICT_TIME  1000
#define NGX_KEXEC_VERDICT_SIZE  65536


struct ngx_kexec_kept_s {
    ngx_kexec_kept_t           *next;
    ngx_kexec_message_t         msg;        /* its bytes follow */
};


static ngx_int_t ngx_kexec_verdict_hold(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg);
static void ngx_kexec_verdict_flush(ngx_kexec_execution_t *ex,
    ngx_kexec_kept_t *confirmed);
static ngx_kexec_kept_t *ngx_kexec_verdict_find(ngx_kexec_execution_t *ex,
    ngx_kexec_reply_t *reply);
static void ngx_kexec_verdict_keep(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg);
static void ngx_kexec_verdict_drop(ngx_kexec_execution_t *ex);
static void ngx_kexec_verdict_kept(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg);
static void ngx_kexec_verdict_write(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg, ngx_uint_t confirmed);


/*
 * The code was sent with allow_stdin false, but some kernels ask all the same,
 * R's for one, and wait for ever.  An empty line is what R itself takes where
 * it runs without a terminal.
 */

ngx_int_t
ngx_kexec_verdict_input(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg)
{
    u_char     buf[NGX_KEXEC_UUID_LEN + 1 + NGX_INT_T_LEN];
    ngx_str_t  id;

    if (msg->channel != NGX_KEXEC_CHANNEL_STDIN) {
        return NGX_DECLINED;
    }

    id.data = buf;
    id.len = ngx_sprintf(buf, "%*s-%ui", (size_t) NGX_KEXEC_UUID_LEN, ex->id,
                         ++ex->serial)
             - buf;

    return ngx_kexec_kernel_answer(ex->kernel, &id, &msg->header);
}


/* a message of the code's on iopub */

void
ngx_kexec_verdict_message(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg)
{
    ngx_kexec_reply_t    reply, error;
    ngx_kexec_message_t  kept;

    if (ex->client == NULL || msg->type == NGX_KEXEC_MSG_OTHER) {
        return;
    }

    if (msg->type == NGX_KEXEC_MSG_ERROR) {

        if (ex->errored) {
            return;
        }

        if (ex->m.code.reply) {

            /* the reply has overtaken it */

            if (ex->verdict.reply.data) {

                ngx_kexec_verdict_kept(ex, &kept);
                ngx_kexec_message_reply(&kept, &reply);
                ngx_kexec_message_reply(msg, &error);

                if (ngx_kexec_message_same_error(&reply, &error)) {
                    ngx_kexec_verdict_write(ex, msg, 1);
                    ngx_kexec_verdict_drop(ex);
                    return;
                }
            }

            ngx_kexec_verdict_write(ex, msg, 0);
            return;
        }

    } else if (ex->verdict.held == NULL) {
        ngx_kexec_verdict_write(ex, msg, 0);
        return;
    }

    if (ngx_kexec_verdict_hold(ex, msg) != NGX_OK) {
        ngx_kexec_verdict_release(ex);
        ngx_kexec_verdict_write(ex, msg, 0);
    }
}


/*
 * The reply is there; another one, which a kernel does not send but its code
 * may, takes its place.
 */

void
ngx_kexec_verdict_reply(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg,
    ngx_kexec_reply_t *reply)
{
    ngx_kexec_kept_t  *held;

    ngx_kexec_verdict_drop(ex);

    if (ex->client == NULL) {
        return;
    }

    switch (reply->status) {

    case NGX_KEXEC_REPLY_OK:
        ngx_kexec_verdict_release(ex);
        return;

    case NGX_KEXEC_REPLY_ERROR:
        break;

    default:

        /* it confirms nothing: what is held is all that is known */

        return;
    }

    held = ngx_kexec_verdict_find(ex, reply);

    ngx_kexec_verdict_flush(ex, held);

    if (held == NULL && !ex->errored) {

        /* its error may still come on iopub, where the code raised it */

        ngx_kexec_verdict_keep(ex, msg);
    }
}


/* nothing is confirmed, and what is held waits no longer */

void
ngx_kexec_verdict_release(ngx_kexec_execution_t *ex)
{
    ngx_kexec_verdict_flush(ex, NULL);
}


/*
 * The end of the client's stream: what the reply told is told; or the last
 * error of code that is over without one.
 */

void
ngx_kexec_verdict_end(ngx_kexec_execution_t *ex)
{
    ngx_kexec_kept_t     *held;
    ngx_kexec_reply_t     none;
    ngx_kexec_message_t   msg;

    held = NULL;

    if (ex->m.code.idle) {
        ngx_memzero(&none, sizeof(ngx_kexec_reply_t));
        held = ngx_kexec_verdict_find(ex, &none);
    }

    ngx_kexec_verdict_flush(ex, held);

    if (ex->verdict.reply.data) {
        ngx_kexec_verdict_kept(ex, &msg);
        ngx_kexec_verdict_write(ex, &msg, 1);
        ngx_kexec_verdict_drop(ex);
    }
}


/* NGX_DECLINED: it is more than is held; NGX_ERROR: no memory */

static ngx_int_t
ngx_kexec_verdict_hold(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg)
{
    size_t                size;
    u_char               *p;
    ngx_kexec_kept_t     *held;
    ngx_kexec_verdict_t  *v;

    v = &ex->verdict;

    size = sizeof(ngx_kexec_kept_t) + msg->header.len + msg->content.len;

    if (v->held) {

        /* the first may be as large as any message */

        if (v->size + size > NGX_KEXEC_VERDICT_SIZE) {
            return NGX_DECLINED;
        }

        v->size += size;
    }

    held = ngx_alloc(size, &ex->log);
    if (held == NULL) {
        return NGX_ERROR;
    }

    held->next = NULL;
    held->msg = *msg;

    p = (u_char *) held + sizeof(ngx_kexec_kept_t);

    held->msg.header.data = p;
    p = ngx_cpymem(p, msg->header.data, msg->header.len);

    held->msg.content.data = p;
    ngx_memcpy(p, msg->content.data, msg->content.len);

    if (v->held) {
        *v->last = held;

    } else {
        v->held = held;

        if (!ex->m.code.idle) {

            /* the message is an event of the machine's, then this is seen */

            ex->m.waits |= 1 << NGX_KEXEC_WAIT_VERDICT;
            ex->m.wait[NGX_KEXEC_WAIT_VERDICT] = ngx_current_msec
                                                 + NGX_KEXEC_VERDICT_TIME;
        }
    }

    v->last = &held->next;

    return NGX_OK;
}


/* all that is held is told in order, errors but the confirmed one as stderr */

static void
ngx_kexec_verdict_flush(ngx_kexec_execution_t *ex, ngx_kexec_kept_t *confirmed)
{
    ngx_kexec_kept_t  *held;

    while (ex->verdict.held) {

        held = ex->verdict.held;
        ex->verdict.held = held->next;

        ngx_kexec_verdict_write(ex, &held->msg, held == confirmed);

        ngx_free(held);
    }

    ex->verdict.size = 0;

    ex->m.waits &= ~(1 << NGX_KEXEC_WAIT_VERDICT);
}


/* which of the errors that are held is the reply's: rather a later one */

static ngx_kexec_kept_t *
ngx_kexec_verdict_find(ngx_kexec_execution_t *ex, ngx_kexec_reply_t *reply)
{
    ngx_uint_t          same, best;
    ngx_kexec_kept_t   *held, *found;
    ngx_kexec_reply_t   error;

    found = NULL;
    best = 1;

    for (held = ex->verdict.held; held; held = held->next) {

        if (held->msg.type != NGX_KEXEC_MSG_ERROR) {
            continue;
        }

        ngx_kexec_message_reply(&held->msg, &error);

        same = ngx_kexec_message_same_error(reply, &error);

        if (same >= best) {
            best = same;
            found = held;
        }
    }

    return found;
}


/* the reply's error is kept for the end: never more than one */

static void
ngx_kexec_verdict_keep(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg)
{
    ngx_str_t  *reply;

    reply = &ex->verdict.reply;

    reply->data = ngx_alloc(msg->content.len, &ex->log);

    if (reply->data == NULL) {
        ngx_kexec_verdict_write(ex, msg, 1);
        return;
    }

    reply->len = msg->content.len;
    ngx_memcpy(reply->data, msg->content.data, reply->len);
}


static void
ngx_kexec_verdict_drop(ngx_kexec_execution_t *ex)
{
    if (ex->verdict.reply.data) {
        ngx_free(ex->verdict.reply.data);
        ngx_str_null(&ex->verdict.reply);
    }
}


static void
ngx_kexec_verdict_kept(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg)
{
    ngx_memzero(msg, sizeof(ngx_kexec_message_t));

    msg->channel = NGX_KEXEC_CHANNEL_SHELL;
    msg->type = NGX_KEXEC_MSG_EXECUTE_REPLY;
    msg->content = ex->verdict.reply;
}


static void
ngx_kexec_verdict_write(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg,
    ngx_uint_t confirmed)
{
    ngx_int_t            rc;
    ngx_str_t            reason;
    const char          *full;
    ngx_kexec_client_t  *client;

    client = ex->client;

    if (client == NULL || (confirmed && ex->errored)) {
        return;
    }

    full = confirmed ? NULL : ngx_kexec_client_full(client);

    if (full) {
        ex->dropped = 1;
        ex->dropped_why = full;
        return;
    }

    if (msg->type == NGX_KEXEC_MSG_ERROR && !confirmed) {
        rc = ngx_kexec_event_unconfirmed(&client->out, msg);

    } else {
        rc = ngx_kexec_event_message(&client->out, msg);
    }

    if (rc == NGX_DECLINED) {
        return;
    }

    if (rc == NGX_OK && ngx_kexec_message_rate_limit(msg)
        && ngx_kexec_message_process(msg) != ex->m.facts.process)
    {
        ngx_str_set(&reason, "Jupyter throws output away that comes too fast, "
                    "lift its iopub_msg_rate_limit and iopub_data_rate_limit");

        rc = ngx_kexec_event_dropped(&client->out, &reason);
    }

    if (rc == NGX_ERROR) {
        ex->dropped = 1;

    } else if (confirmed) {
        ex->errored = 1;
    }

    /* after an error of the output the wake finds the client gone */

    if (msg->type == NGX_KEXEC_MSG_EXECUTE_INPUT) {
        ngx_kexec_client_wake_later(client);
        return;
    }

    ngx_kexec_client_wake(client);
}
