
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_kexec_link_int.h>


/* memory for long messages is kept for the next one up to this size */
#define NGX_KEXEC_LINK_KEEP  (256 * 1024)

/* of messages that are skipped for the same reason, one is told in this time */
#define NGX_KEXEC_LINK_TOLD_TIME  60000


static void ngx_kexec_link_begin_frame(ngx_kexec_link_t *link);
static ngx_int_t ngx_kexec_link_reserve(ngx_kexec_link_t *link, size_t size);
static void ngx_kexec_link_skip(ngx_kexec_link_t *link,
    ngx_kexec_link_skip_e why);
static void ngx_kexec_link_log_skipped(ngx_kexec_link_t *link,
    ngx_kexec_link_skip_e why, uint64_t len);
static void ngx_kexec_link_log_number(ngx_kexec_link_t *link,
    ngx_kexec_link_skip_e why);
static ngx_int_t ngx_kexec_link_process_data(ngx_kexec_link_t *link);
static void ngx_kexec_link_deliver(ngx_kexec_link_t *link, ngx_str_t *bytes);
static void ngx_kexec_link_tell_skipped(ngx_kexec_link_t *link);
static ngx_int_t ngx_kexec_link_process_control(ngx_kexec_link_t *link);
static ngx_int_t ngx_kexec_link_process_close(ngx_kexec_link_t *link);
static void ngx_kexec_link_heard(ngx_kexec_link_t *link);
static void ngx_kexec_link_send_pong(ngx_kexec_link_t *link);
static u_char *ngx_kexec_link_control_frame(u_char *p, ngx_uint_t opcode,
    u_char *payload, size_t len);


static const char  *ngx_kexec_link_skips[] = {
    "longer than kexec_max_message",
    "no memory",
    "malformed"
};


ngx_int_t
ngx_kexec_link_process_frames(ngx_kexec_link_t *link)
{
    ngx_int_t   rc;
    ngx_buf_t  *b;

    b = link->in;

    for ( ;; ) {

        if (!link->payload) {

            rc = ngx_kexec_websocket_header(&link->ws, &b->pos, b->last);

            if (rc == NGX_AGAIN) {
                return NGX_AGAIN;
            }

            if (rc == NGX_ERROR) {
                ngx_log_error(NGX_LOG_ERR, &link->log, 0,
                              "jupyter broke the websocket protocol: %s",
                              link->ws.error);
                ngx_kexec_link_send_close(link, NGX_KEXEC_LINK_VIOLATION);
                return ngx_kexec_link_fail(link, NGX_KEXEC_LINK_VIOLATION,
                                           link->ws.error);
            }

            ngx_kexec_link_begin_frame(link);
        }

        if (link->ws.opcode >= NGX_KEXEC_WS_CLOSE) {
            rc = ngx_kexec_link_process_control(link);

        } else {
            rc = ngx_kexec_link_process_data(link);
        }

        if (rc != NGX_OK) {
            return rc;
        }

        if (link->closing) {
            return NGX_DONE;
        }
    }
}


static void
ngx_kexec_link_begin_frame(ngx_kexec_link_t *link)
{
    ngx_log_debug3(NGX_LOG_DEBUG_EVENT, &link->log, 0,
                   "kexec link frame opcode:%ui fin:%d length:%uL",
                   link->ws.opcode, link->ws.fin, link->ws.length);

    link->payload = 1;
    link->rest = link->ws.length;

    if (link->ws.opcode >= NGX_KEXEC_WS_CLOSE) {
        link->control_len = 0;
        return;
    }

    if (link->ws.opcode != NGX_KEXEC_WS_CONTINUATION) {
        link->len = 0;
        link->skip = 0;
    }

    if (link->skip) {
        return;
    }

    if (link->rest > link->max_message - link->len) {
        ngx_kexec_link_skip(link, NGX_KEXEC_LINK_LONG);
        return;
    }

    if (link->ws.fin && link->len == 0 && link->rest <= NGX_KEXEC_LINK_BUFFER)
    {
        return;
    }

    if (ngx_kexec_link_reserve(link, link->len + link->rest) != NGX_OK) {
        ngx_kexec_link_skip(link, NGX_KEXEC_LINK_NO_MEMORY);
        return;
    }

    link->assembling = 1;
}


static ngx_int_t
ngx_kexec_link_reserve(ngx_kexec_link_t *link, size_t size)
{
    u_char  *p;

    if (size <= link->size) {
        return NGX_OK;
    }

    if (!link->ws.fin) {
        /* nobody knows how much more comes */
        size = ngx_max(size, ngx_max(2 * link->size, NGX_KEXEC_LINK_BUFFER));
        size = ngx_min(size, link->max_message);
    }

    p = ngx_alloc(size, &link->log);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (link->message) {
        ngx_memcpy(p, link->message, link->len);
        ngx_free(link->message);
    }

    link->message = p;
    link->size = size;

    return NGX_OK;
}


static void
ngx_kexec_link_skip(ngx_kexec_link_t *link, ngx_kexec_link_skip_e why)
{
    ngx_kexec_link_log_skipped(link, why, link->len + link->rest);

    if (link->message) {
        ngx_free(link->message);
        link->message = NULL;
        link->size = 0;
    }

    link->skip = 1;
}


/* a kernel can send as many as it likes, also while nobody uses it */

static void
ngx_kexec_link_log_skipped(ngx_kexec_link_t *link, ngx_kexec_link_skip_e why,
    uint64_t len)
{
    if (link->told[why]
        && ngx_current_msec - link->told[why] < NGX_KEXEC_LINK_TOLD_TIME)
    {
        link->untold[why]++;
        return;
    }

    ngx_kexec_link_log_number(link, why);

    ngx_log_error(NGX_LOG_WARN, &link->log, 0,
                  "message from kernel of %uL bytes or more was skipped: %s",
                  len, ngx_kexec_link_skips[why]);

    link->told[why] = ngx_current_msec ? ngx_current_msec : 1;
}


static void
ngx_kexec_link_log_number(ngx_kexec_link_t *link, ngx_kexec_link_skip_e why)
{
    if (link->untold[why]) {
        ngx_log_error(NGX_LOG_WARN, &link->log, 0,
                      "%ui more messages from kernel were skipped: %s",
                      link->untold[why], ngx_kexec_link_skips[why]);

        link->untold[why] = 0;
    }
}


void
ngx_kexec_link_log_untold(ngx_kexec_link_t *link)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_KEXEC_LINK_SKIPS; i++) {
        ngx_kexec_link_log_number(link, i);
    }
}


static ngx_int_t
ngx_kexec_link_process_data(ngx_kexec_link_t *link)
{
    size_t      n;
    ngx_buf_t  *b;
    ngx_str_t   bytes;

    b = link->in;
    n = b->last - b->pos;

    if (!link->assembling && !link->skip) {

        if (n < link->rest) {
            return NGX_AGAIN;
        }

        bytes.len = (size_t) link->rest;
        bytes.data = b->pos;

        b->pos += bytes.len;
        link->payload = 0;

        ngx_kexec_link_deliver(link, &bytes);

        return NGX_OK;
    }

    n = (size_t) ngx_min(n, link->rest);

    if (n && link->assembling) {
        ngx_memcpy(link->message + link->len, b->pos, n);
        link->len += n;
    }

    b->pos += n;
    link->rest -= n;

    if (link->rest) {
        return NGX_AGAIN;
    }

    link->payload = 0;
    link->assembling = 0;

    if (!link->ws.fin) {
        return NGX_OK;
    }

    bytes.len = link->len;
    bytes.data = link->message;

    ngx_kexec_link_deliver(link, &bytes);

    link->len = 0;

    if (link->size > NGX_KEXEC_LINK_KEEP) {
        ngx_free(link->message);
        link->message = NULL;
        link->size = 0;
    }

    return NGX_OK;
}


static void
ngx_kexec_link_deliver(ngx_kexec_link_t *link, ngx_str_t *bytes)
{
    ngx_kexec_format_e   format;
    ngx_kexec_message_t  msg;

    if (link->skip) {
        ngx_kexec_link_tell_skipped(link);
        return;
    }

    if (link->ws.message == NGX_KEXEC_WS_TEXT) {
        format = NGX_KEXEC_FORMAT_TEXT;

    } else if (link->format == NGX_KEXEC_FORMAT_V1) {
        format = NGX_KEXEC_FORMAT_V1;

    } else {
        format = NGX_KEXEC_FORMAT_BINARY;
    }

    if (ngx_kexec_message_parse(bytes, format, &msg) != NGX_OK) {
        ngx_kexec_link_log_skipped(link, NGX_KEXEC_LINK_MALFORMED, bytes->len);
        ngx_kexec_link_tell_skipped(link);
        return;
    }

    link->handlers->message(link, &msg);
}


static void
ngx_kexec_link_tell_skipped(ngx_kexec_link_t *link)
{
    ngx_kexec_message_t  msg;

    ngx_memzero(&msg, sizeof(ngx_kexec_message_t));

    link->skipped = 1;
    link->handlers->message(link, &msg);
    link->skipped = 0;
}


static ngx_int_t
ngx_kexec_link_process_control(ngx_kexec_link_t *link)
{
    size_t      n;
    ngx_buf_t  *b;

    b = link->in;

    n = b->last - b->pos;
    n = (size_t) ngx_min(n, link->rest);

    ngx_memcpy(link->control + link->control_len, b->pos, n);

    link->control_len += n;
    link->rest -= n;
    b->pos += n;

    if (link->rest) {
        return NGX_AGAIN;
    }

    link->payload = 0;

    switch (link->ws.opcode) {

    case NGX_KEXEC_WS_PING:
        ngx_kexec_link_send_pong(link);
        return NGX_OK;

    case NGX_KEXEC_WS_CLOSE:
        return ngx_kexec_link_process_close(link);

    default:  /* NGX_KEXEC_WS_PONG */
        ngx_kexec_link_heard(link);
        return NGX_OK;
    }
}


static ngx_int_t
ngx_kexec_link_process_close(ngx_kexec_link_t *link)
{
    u_char      *p;
    ngx_uint_t   code;

    code = ngx_kexec_websocket_close_code(link->control, link->control_len);

    if (code < NGX_KEXEC_LINK_NORMAL) {
        /* must not be taken for an HTTP status */
        code = NGX_KEXEC_LINK_VIOLATION;
    }

    ngx_kexec_link_send_close(link, code);

    link->control[link->control_len] = '\0';

    p = link->control + 2;

    if (link->control_len > 2) {

        while (*p >= ' ' && *p < 0x7f) {
            p++;
        }
    }

    if (link->control_len <= 2 || p != link->control + link->control_len) {
        return ngx_kexec_link_fail(link, code, "closed by jupyter");
    }

    return ngx_kexec_link_fail(link, code, (char *) link->control + 2);
}


ngx_int_t
ngx_kexec_link_send(ngx_kexec_link_t *link, ngx_kexec_request_msg_t *req)
{
    size_t                 len;
    u_char                *p, mask[4];
    ngx_buf_t             *b;
    ngx_uint_t             opcode;
    ngx_kexec_link_out_t  *out;

    if (link->state != NGX_KEXEC_LINK_OPEN || link->closing) {
        return NGX_ERROR;
    }

    len = ngx_kexec_message_size(req, link->format);

    out = ngx_kexec_link_alloc(link, NGX_KEXEC_WS_HEADER + len);
    if (out == NULL) {
        return NGX_ERROR;
    }

    opcode = (link->format == NGX_KEXEC_FORMAT_V1) ? NGX_KEXEC_WS_BINARY
                                                   : NGX_KEXEC_WS_TEXT;

    ngx_kexec_random(mask, sizeof(mask));

    b = &out->buf;

    p = ngx_kexec_websocket_write_header(b->last, opcode, len, mask);
    b->last = ngx_kexec_message_write(p, req, link->format);

    ngx_kexec_websocket_mask(p, len, mask, 0);

    ngx_log_debug1(NGX_LOG_DEBUG_EVENT, &link->log, 0,
                   "kexec link send, length:%uz", len);

    if (link->heard) {
        ngx_kexec_link_push(link, out);
        return NGX_OK;
    }

    *link->last_unread = &out->chain;
    link->last_unread = &out->chain.next;

    return NGX_OK;
}


/*
 * Jupyter opens a link before it has found the kernel, and reads nothing until
 * then.  What it finds unread on a link that another one of the session has
 * replaced meanwhile Jupyter Server 1.23 takes for another format, and stands
 * still for 20 seconds.  An answer to a ping comes when it reads.
 */

ngx_int_t
ngx_kexec_link_send_ping(ngx_kexec_link_t *link)
{
    ngx_kexec_link_out_t  *out;

    out = ngx_kexec_link_alloc(link, NGX_KEXEC_WS_HEADER);
    if (out == NULL) {
        return NGX_ERROR;
    }

    out->buf.last = ngx_kexec_link_control_frame(out->buf.start,
                                                 NGX_KEXEC_WS_PING,
                                                 link->control, 0);
    ngx_kexec_link_push(link, out);

    return NGX_OK;
}


static void
ngx_kexec_link_heard(ngx_kexec_link_t *link)
{
    link->heard = 1;

    if (link->unread == NULL) {
        return;
    }

    *link->last_out = link->unread;
    link->last_out = link->last_unread;

    link->unread = NULL;
    link->last_unread = &link->unread;

    ngx_post_event(&link->flush, &ngx_posted_events);
}


ngx_kexec_link_out_t *
ngx_kexec_link_alloc(ngx_kexec_link_t *link, size_t size)
{
    ngx_kexec_link_out_t  *out;

    out = ngx_alloc(sizeof(ngx_kexec_link_out_t) + size, &link->log);
    if (out == NULL) {
        return NULL;
    }

    ngx_memzero(out, sizeof(ngx_kexec_link_out_t));

    out->buf.start = (u_char *) out + sizeof(ngx_kexec_link_out_t);
    out->buf.pos = out->buf.start;
    out->buf.last = out->buf.start;
    out->buf.end = out->buf.start + size;
    out->buf.memory = 1;

    out->chain.buf = &out->buf;

    return out;
}


void
ngx_kexec_link_push(ngx_kexec_link_t *link, ngx_kexec_link_out_t *out)
{
    out->chain.next = NULL;

    *link->last_out = &out->chain;
    link->last_out = &out->chain.next;

    /* what is sent in one turn of the event loop leaves in one packet */

    if (link->state == NGX_KEXEC_LINK_OPEN) {
        ngx_post_event(&link->flush, &ngx_posted_events);
    }
}


static void
ngx_kexec_link_send_pong(ngx_kexec_link_t *link)
{
    u_char      *p;
    ngx_buf_t   *b;
    ngx_uint_t   queued;

    b = &link->pong.buf;

    queued = (b->pos != b->last);

    if (queued && b->pos != b->start) {

        /* the one before it is on its way and will do: section 5.5.3 */

        return;
    }

    p = ngx_kexec_link_control_frame(b->start, NGX_KEXEC_WS_PONG,
                                     link->control, link->control_len);
    b->pos = b->start;
    b->last = p;

    if (!queued) {
        ngx_kexec_link_push(link, &link->pong);
    }
}


void
ngx_kexec_link_send_close(ngx_kexec_link_t *link, ngx_uint_t code)
{
    size_t             len;
    u_char            *p, payload[2];
    u_char             frame[NGX_KEXEC_WS_HEADER + sizeof(payload)];
    ngx_connection_t  *c;

    if (link->state != NGX_KEXEC_LINK_OPEN) {
        return;
    }

    ngx_kexec_link_flush(link);

    c = link->peer.connection;

    if (link->out || link->broken || !c->write->ready) {
        return;
    }

    len = (code == NGX_KEXEC_LINK_NO_CODE) ? 0 : sizeof(payload);

    payload[0] = (u_char) (code >> 8);
    payload[1] = (u_char) code;

    p = ngx_kexec_link_control_frame(frame, NGX_KEXEC_WS_CLOSE, payload, len);

    (void) c->send(c, frame, p - frame);
}


static u_char *
ngx_kexec_link_control_frame(u_char *p, ngx_uint_t opcode, u_char *payload,
    size_t len)
{
    u_char  mask[4];

    ngx_kexec_random(mask, sizeof(mask));

    p = ngx_kexec_websocket_write_header(p, opcode, len, mask);

    ngx_memcpy(p, payload, len);
    ngx_kexec_websocket_mask(p, len, mask, 0);

    return p + len;
}


void
ngx_kexec_link_flush(ngx_kexec_link_t *link)
{
    ngx_chain_t       *cl;
    ngx_connection_t  *c;

    if (link->broken) {
        ngx_kexec_link_free_out(link, NULL);
        return;
    }

    c = link->peer.connection;

    if (link->out) {

        cl = c->send_chain(c, link->out, 0);

        if (cl == NGX_CHAIN_ERROR) {
            goto failed;
        }

        ngx_kexec_link_free_out(link, cl);
    }

    if (ngx_handle_write_event(c->write, 0) != NGX_OK) {
        goto failed;
    }

    return;

failed:

    /* what Jupyter said before it went away, and why, may still be unread */

    link->broken = 1;

    ngx_kexec_link_free_out(link, NULL);

    ngx_post_event(c->read, &ngx_posted_next_events);
}


void
ngx_kexec_link_free_out(ngx_kexec_link_t *link, ngx_chain_t *until)
{
    ngx_chain_t  *cl, *next;

    for (cl = link->out; cl != until; cl = next) {
        next = cl->next;

        if (cl == &link->pong.chain) {
            link->pong.buf.pos = link->pong.buf.start;
            link->pong.buf.last = link->pong.buf.start;

        } else {
            ngx_free(cl);
        }
    }

    link->out = until;

    if (until == NULL) {
        link->last_out = &link->out;
    }
}
