
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_sha1.h>
#include <ngx_kexec_link_int.h>


#define NGX_KEXEC_LINK_POOL_SIZE  4096

/* after so much other connections of the worker get their turn */
#define NGX_KEXEC_LINK_TURN       (1024 * 1024)

/*
 * Jupyter answers the handshake when the kernel has told what it is, and
 * waits for that up to 60 seconds (kernel_info_timeout).
 */
#define NGX_KEXEC_LINK_HANDSHAKE_TIME  60000

#define NGX_KEXEC_LINK_PROTOCOL   "v1.kernel.websocket.jupyter.org"

/* RFC 6455, section 1.3 */
#define NGX_KEXEC_LINK_GUID       "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


static ngx_int_t ngx_kexec_link_start(ngx_kexec_link_t *link,
    ngx_str_t *kernel, ngx_str_t *session_id);
static ngx_int_t ngx_kexec_link_handshake(ngx_kexec_link_t *link,
    ngx_str_t *kernel, ngx_str_t *session_id);
static void ngx_kexec_link_set_timer(ngx_kexec_link_t *link);
static void ngx_kexec_link_timer_handler(ngx_event_t *ev);
static void ngx_kexec_link_flush_handler(ngx_event_t *ev);
static void ngx_kexec_link_write_handler(ngx_event_t *wev);
static void ngx_kexec_link_read_handler(ngx_event_t *rev);
static ngx_int_t ngx_kexec_link_read(ngx_kexec_link_t *link);
static ssize_t ngx_kexec_link_recv(ngx_kexec_link_t *link);
static void ngx_kexec_link_quickack(ngx_kexec_link_t *link);
static ngx_int_t ngx_kexec_link_process_head(ngx_kexec_link_t *link);
static const char *ngx_kexec_link_check_head(ngx_kexec_link_t *link);
static void ngx_kexec_link_finalize(ngx_kexec_link_t *link);
static void ngx_kexec_link_free(ngx_kexec_link_t *link);


ngx_kexec_link_t *
ngx_kexec_link_open(ngx_kexec_server_t *server, ngx_str_t *kernel,
    ngx_str_t *session_id, size_t max_message,
    ngx_kexec_link_handlers_t *handlers, void *data, ngx_log_t *log)
{
    ngx_pool_t        *pool;
    ngx_kexec_link_t  *link;

    pool = ngx_create_pool(NGX_KEXEC_LINK_POOL_SIZE, log);
    if (pool == NULL) {
        return NULL;
    }

    link = ngx_pcalloc(pool, sizeof(ngx_kexec_link_t));
    if (link == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    link->server = server;
    link->handlers = handlers;
    link->data = data;
    link->max_message = max_message;
    link->pool = pool;
    link->last_out = &link->out;
    link->last_unread = &link->unread;
    link->last_read = ngx_current_msec;

    link->log = *log;
    link->log.handler = ngx_kexec_http_log_error;
    link->log.data = &link->log_ctx;
    link->log.action = "connecting to jupyter";

    /* the link outlives the request on whose connection it was opened */
    link->log.connection = 0;

    link->log_ctx.server = &server->name;

    pool->log = &link->log;

    link->timer.handler = ngx_kexec_link_timer_handler;
    link->timer.data = link;
    link->timer.log = &link->log;

    link->flush.handler = ngx_kexec_link_flush_handler;
    link->flush.data = link;
    link->flush.log = &link->log;

    link->pong.buf.start = link->pong_data;
    link->pong.buf.pos = link->pong_data;
    link->pong.buf.last = link->pong_data;
    link->pong.buf.memory = 1;
    link->pong.chain.buf = &link->pong.buf;

    link->in = ngx_create_temp_buf(pool, NGX_KEXEC_LINK_BUFFER);
    if (link->in == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    if (ngx_kexec_link_start(link, kernel, session_id) != NGX_OK) {
        ngx_kexec_link_free(link);
        return NULL;
    }

    return link;
}


static ngx_int_t
ngx_kexec_link_start(ngx_kexec_link_t *link, ngx_str_t *kernel,
    ngx_str_t *session_id)
{
    ngx_int_t          rc;
    ngx_connection_t  *c;

    if (ngx_kexec_link_handshake(link, kernel, session_id) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_EVENT, &link->log, 0,
                   "kexec link open \"%V\"", &link->log_ctx.request);

    ngx_kexec_link_set_timer(link);

    rc = ngx_kexec_http_connect(&link->peer, link->server, &link->log);

    if (rc == NGX_ERROR) {
        (void) ngx_kexec_link_fail(link, 0, "connection failed");

        /* not ngx_posted_events: a handler that tries again would starve */
        ngx_post_event(&link->flush, &ngx_posted_next_events);

        return NGX_OK;
    }

    c = link->peer.connection;

    c->data = link;
    c->pool = link->pool;

    c->read->handler = ngx_kexec_link_read_handler;
    c->write->handler = ngx_kexec_link_write_handler;

    if (rc == NGX_OK) {
        ngx_post_event(c->write, &ngx_posted_next_events);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_kexec_link_handshake(ngx_kexec_link_t *link, ngx_str_t *kernel,
    ngx_str_t *session_id)
{
    u_char                *p, random[16], headers[512];
    size_t                 len;
    ngx_str_t              uri, key, binary;
    ngx_buf_t             *b;
    ngx_kexec_link_out_t  *out;

    ngx_kexec_random(random, sizeof(random));

    binary.len = sizeof(random);
    binary.data = random;

    key.data = link->key;

    ngx_encode_base64(&key, &binary);

    p = ngx_snprintf(headers, sizeof(headers) - 1,
                     "Connection: Upgrade" CRLF
                     "Upgrade: websocket" CRLF
                     "Sec-WebSocket-Version: 13" CRLF
                     "Sec-WebSocket-Protocol: " NGX_KEXEC_LINK_PROTOCOL CRLF
                     "Sec-WebSocket-Key: %V" CRLF, &key);
    *p = '\0';

    len = sizeof("/api/kernels//channels?session_id=") - 1
          + kernel->len
          + 2 * ngx_escape_uri(NULL, kernel->data, kernel->len,
                               NGX_ESCAPE_URI_COMPONENT)
          + session_id->len
          + 2 * ngx_escape_uri(NULL, session_id->data, session_id->len,
                               NGX_ESCAPE_URI_COMPONENT);

    uri.data = ngx_pnalloc(link->pool, len);
    if (uri.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(uri.data, "/api/kernels/", sizeof("/api/kernels/") - 1);
    p = (u_char *) ngx_escape_uri(p, kernel->data, kernel->len,
                                  NGX_ESCAPE_URI_COMPONENT);
    p = ngx_cpymem(p, "/channels?session_id=",
                   sizeof("/channels?session_id=") - 1);
    p = (u_char *) ngx_escape_uri(p, session_id->data, session_id->len,
                                  NGX_ESCAPE_URI_COMPONENT);

    uri.len = p - uri.data;

    b = ngx_kexec_http_request(link->pool, link->server, "GET", &uri,
                               (char *) headers, NULL, &link->log_ctx.request);
    if (b == NULL) {
        return NGX_ERROR;
    }

    out = ngx_kexec_link_alloc(link, b->last - b->pos);
    if (out == NULL) {
        return NGX_ERROR;
    }

    out->buf.last = ngx_cpymem(out->buf.last, b->pos, b->last - b->pos);

    ngx_kexec_link_push(link, out);

    return NGX_OK;
}


void
ngx_kexec_link_close(ngx_kexec_link_t *link)
{
    if (link->closing) {
        return;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_EVENT, &link->log, 0, "kexec link close");

    ngx_kexec_link_send_close(link, NGX_KEXEC_LINK_NORMAL);

    link->closing = 1;

    if (!link->reading) {
        ngx_kexec_link_free(link);
    }
}


void
ngx_kexec_link_idle(ngx_kexec_link_t *link, ngx_uint_t idle)
{
    ngx_connection_t  *c;

    c = link->peer.connection;

    if (c == NULL || link->closing) {
        return;
    }

    c->idle = idle ? 1 : 0;

    if (idle && ngx_exiting) {

        /*
         * A posted event might come too late: a worker that has no timers
         * left exits before it looks at them.
         */

        link->leaving = 1;
        ngx_add_timer(&link->timer, 1);

    } else if (link->leaving) {

        link->leaving = 0;
        ngx_kexec_link_set_timer(link);
    }
}


void *
ngx_kexec_link_data(ngx_kexec_link_t *link)
{
    return link->data;
}


ngx_uint_t
ngx_kexec_link_skipped(ngx_kexec_link_t *link)
{
    return link->skipped;
}


ngx_uint_t
ngx_kexec_link_connected(ngx_kexec_link_t *link)
{
    return link->state != NGX_KEXEC_LINK_CONNECTING;
}


ngx_msec_t
ngx_kexec_link_last_read(ngx_kexec_link_t *link)
{
    return link->last_read;
}


static void
ngx_kexec_link_set_timer(ngx_kexec_link_t *link)
{
    ngx_msec_t  timeout;

    if (link->leaving) {
        return;
    }

    switch (link->state) {

    case NGX_KEXEC_LINK_CONNECTING:
        timeout = link->server->connect_timeout;
        break;

    case NGX_KEXEC_LINK_HANDSHAKING:
        timeout = ngx_max(link->server->timeout, NGX_KEXEC_LINK_HANDSHAKE_TIME);
        break;

    default:  /* NGX_KEXEC_LINK_OPEN */

        if (link->timer.timer_set) {
            ngx_del_timer(&link->timer);
        }

        return;
    }

    ngx_add_timer(&link->timer, timeout);
}


static void
ngx_kexec_link_timer_handler(ngx_event_t *ev)
{
    ngx_kexec_link_t *link = ev->data;

    if (link->error) {
        /* connect() has failed already */

    } else if (link->leaving) {
        ngx_kexec_link_send_close(link, NGX_KEXEC_LINK_AWAY);
        (void) ngx_kexec_link_fail(link, 0, "worker is shutting down");

    } else {
        ngx_log_error(NGX_LOG_ERR, &link->log, NGX_ETIMEDOUT,
                      "jupyter did not open the link in time");
        (void) ngx_kexec_link_fail(link, 0, "timed out");
    }

    ngx_kexec_link_finalize(link);
}


static void
ngx_kexec_link_flush_handler(ngx_event_t *ev)
{
    ngx_kexec_link_t *link = ev->data;

    if (link->error) {
        ngx_kexec_link_finalize(link);
        return;
    }

    ngx_kexec_link_flush(link);
}


static void
ngx_kexec_link_write_handler(ngx_event_t *wev)
{
    const char        *error;
    ngx_connection_t  *c;
    ngx_kexec_link_t  *link;

    c = wev->data;
    link = c->data;

    ngx_log_debug0(NGX_LOG_DEBUG_EVENT, wev->log, 0,
                   "kexec link write handler");

    if (link->state == NGX_KEXEC_LINK_CONNECTING) {

        error = ngx_kexec_http_test_connect(c);

        if (error) {
            (void) ngx_kexec_link_fail(link, 0, error);
            ngx_kexec_link_finalize(link);
            return;
        }

        link->state = NGX_KEXEC_LINK_HANDSHAKING;
        link->log.action = "opening link to kernel";

        ngx_kexec_link_set_timer(link);
    }

    ngx_kexec_link_flush(link);
}


static void
ngx_kexec_link_read_handler(ngx_event_t *rev)
{
    ngx_int_t          rc;
    ngx_connection_t  *c;
    ngx_kexec_link_t  *link;

    c = rev->data;
    link = c->data;

    ngx_log_debug0(NGX_LOG_DEBUG_EVENT, rev->log, 0,
                   "kexec link read handler");

    link->reading = 1;

    rc = ngx_kexec_link_read(link);

    link->reading = 0;

    if (link->closing) {
        ngx_kexec_link_free(link);
        return;
    }

    if (rc == NGX_ERROR) {
        ngx_kexec_link_finalize(link);
    }
}


static ngx_int_t
ngx_kexec_link_read(ngx_kexec_link_t *link)
{
    size_t             total;
    ssize_t            n;
    ngx_int_t          rc;
    const char        *error;
    ngx_connection_t  *c;

    c = link->peer.connection;

    if (c->close) {
        ngx_kexec_link_send_close(link, NGX_KEXEC_LINK_AWAY);
        return ngx_kexec_link_fail(link, 0, "worker is shutting down");
    }

    if (link->state == NGX_KEXEC_LINK_CONNECTING) {

        /* of what comes before the connection stands only an error counts */

        error = ngx_kexec_http_test_connect(c);

        return error ? ngx_kexec_link_fail(link, 0, error) : NGX_OK;
    }

    total = 0;

    do {
        n = ngx_kexec_link_recv(link);

        if (n == NGX_AGAIN) {

            if (link->broken) {
                return ngx_kexec_link_fail(link, 0, "connection reset");
            }

            if (total && !c->idle) {

                /* more is to come, and may wait for the acknowledgement */

                ngx_kexec_link_quickack(link);
            }

            if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
                return ngx_kexec_link_fail(link, 0, "internal error");
            }

            return NGX_OK;
        }

        if (n == NGX_ERROR) {
            return ngx_kexec_link_fail(link, 0, "connection reset");
        }

        if (n == 0) {
            ngx_log_error(NGX_LOG_ERR, &link->log, 0,
                          "jupyter prematurely closed connection");
            return ngx_kexec_link_fail(link, 0, "connection closed");
        }

        link->last_read = ngx_current_msec;

        total += n;

        if (link->state == NGX_KEXEC_LINK_HANDSHAKING) {

            rc = ngx_kexec_link_process_head(link);

            if (rc == NGX_AGAIN) {
                continue;
            }

            if (rc == NGX_ERROR) {
                return NGX_ERROR;
            }
        }

        rc = ngx_kexec_link_process_frames(link);

        if (rc == NGX_ERROR || rc == NGX_DONE) {
            return rc;
        }

    } while (total < NGX_KEXEC_LINK_TURN);

    ngx_post_event(c->read, &ngx_posted_next_events);

    return NGX_OK;
}


static ssize_t
ngx_kexec_link_recv(ngx_kexec_link_t *link)
{
    size_t             size;
    ssize_t            n;
    ngx_buf_t         *b;
    ngx_connection_t  *c;

    b = link->in;
    c = link->peer.connection;

    if (link->assembling) {

        size = (size_t) ngx_min(link->rest, NGX_KEXEC_LINK_TURN);

        n = c->recv(c, link->message + link->len, size);

        if (n > 0) {
            link->len += n;
            link->rest -= n;
        }

        return n;
    }

    /* what is left is less than a frame that fits into the buffer */

    if (b->pos > b->start) {
        size = b->last - b->pos;

        ngx_memmove(b->start, b->pos, size);

        b->pos = b->start;
        b->last = b->start + size;
    }

    n = c->recv(c, b->last, b->end - b->last);

    if (n > 0) {
        b->last += n;
    }

    return n;
}


/*
 * Jupyter's end has Nagle's algorithm on (Tornado sets TCP_NODELAY only when
 * asked to), so that a reply may wait for the acknowledgement of the message
 * before it, which a receiver delays by 40 ms.  The kernel forgets this option
 * by itself.
 */

static void
ngx_kexec_link_quickack(ngx_kexec_link_t *link)
{
#if (NGX_LINUX)

    int  on;

    switch (link->server->sockaddr->sa_family) {

    case AF_INET:
#if (NGX_HAVE_INET6)
    case AF_INET6:
#endif
        on = 1;

        /* a refusal costs time and nothing else */

        (void) setsockopt(link->peer.connection->fd, IPPROTO_TCP,
                          TCP_QUICKACK, (const void *) &on, sizeof(int));
    }

#endif
}


static ngx_int_t
ngx_kexec_link_process_head(ngx_kexec_link_t *link)
{
    ngx_int_t    rc;
    ngx_buf_t   *b;
    const char  *error;

    b = link->in;

    rc = ngx_kexec_http_head(&link->head, &b->pos, b->last);

    if (rc == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    if (rc == NGX_OK && link->head.status != 101) {
        ngx_log_error(NGX_LOG_ERR, &link->log, 0,
                      "jupyter refused the link with status %ui",
                      link->head.status);
        return ngx_kexec_link_fail(link, link->head.status,
                                   "handshake refused");
    }

    error = (rc == NGX_OK) ? ngx_kexec_link_check_head(link)
                           : link->head.error;

    if (error) {
        ngx_log_error(NGX_LOG_ERR, &link->log, 0,
                      "jupyter's handshake was not taken: %s", error);
        return ngx_kexec_link_fail(link, 0, error);
    }

    ngx_log_debug1(NGX_LOG_DEBUG_EVENT, &link->log, 0,
                   "kexec link is open, format:%d", link->format);

    link->state = NGX_KEXEC_LINK_OPEN;
    link->log.action = "reading from kernel";

    ngx_kexec_link_set_timer(link);

    if (ngx_kexec_link_send_ping(link) != NGX_OK) {
        return ngx_kexec_link_fail(link, 0, "out of memory");
    }

    link->handlers->opened(link);

    return link->closing ? NGX_ERROR : NGX_OK;
}


static const char *
ngx_kexec_link_check_head(ngx_kexec_link_t *link)
{
    u_char                  hash[20], text[ngx_base64_encoded_length(20)];
    ngx_str_t               binary, base64;
    ngx_sha1_t              sha1;
    ngx_kexec_http_head_t  *head;

    head = &link->head;

    if (!head->upgrade) {
        return "no upgrade to websocket";
    }

    ngx_sha1_init(&sha1);
    ngx_sha1_update(&sha1, link->key, NGX_KEXEC_LINK_KEY_LEN);
    ngx_sha1_update(&sha1, NGX_KEXEC_LINK_GUID,
                    sizeof(NGX_KEXEC_LINK_GUID) - 1);
    ngx_sha1_final(hash, &sha1);

    binary.len = sizeof(hash);
    binary.data = hash;

    base64.data = text;

    ngx_encode_base64(&base64, &binary);

    if (head->accept_len != base64.len
        || ngx_memcmp(head->accept, base64.data, base64.len) != 0)
    {
        return "wrong Sec-WebSocket-Accept";
    }

    if (head->protocol_len == 0) {
        link->format = NGX_KEXEC_FORMAT_TEXT;
        return NULL;
    }

    if (head->protocol_len != sizeof(NGX_KEXEC_LINK_PROTOCOL) - 1
        || ngx_memcmp(head->protocol, NGX_KEXEC_LINK_PROTOCOL,
                      sizeof(NGX_KEXEC_LINK_PROTOCOL) - 1)
           != 0)
    {
        return "unknown Sec-WebSocket-Protocol";
    }

    link->format = NGX_KEXEC_FORMAT_V1;

    return NULL;
}


ngx_int_t
ngx_kexec_link_fail(ngx_kexec_link_t *link, ngx_uint_t status,
    const char *reason)
{
    link->status = status;
    link->error = reason;

    return NGX_ERROR;
}


static void
ngx_kexec_link_finalize(ngx_kexec_link_t *link)
{
    ngx_log_debug2(NGX_LOG_DEBUG_EVENT, &link->log, 0,
                   "kexec link closed, status:%ui reason:\"%s\"",
                   link->status, link->error);

    link->closing = 1;

    link->handlers->closed(link, link->status, link->error);

    ngx_kexec_link_free(link);
}


static void
ngx_kexec_link_free(ngx_kexec_link_t *link)
{
    ngx_kexec_link_log_untold(link);

    if (link->timer.timer_set) {
        ngx_del_timer(&link->timer);
    }

    if (link->flush.posted) {
        ngx_delete_posted_event(&link->flush);
    }

    if (link->peer.connection) {
        ngx_close_connection(link->peer.connection);
    }

    *link->last_out = link->unread;
    ngx_kexec_link_free_out(link, NULL);

    if (link->message) {
        ngx_free(link->message);
    }

    ngx_destroy_pool(link->pool);
}
