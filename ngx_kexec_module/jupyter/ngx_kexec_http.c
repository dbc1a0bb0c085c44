
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_event_connect.h>
#include <ngx_kexec_http.h>


#define NGX_KEXEC_HTTP_POOL_SIZE    4096
#define NGX_KEXEC_HTTP_BUFFER_SIZE  8192


static ngx_int_t ngx_kexec_http_copy_server(ngx_kexec_http_t *http,
    ngx_kexec_server_t *server);
static void ngx_kexec_http_start(ngx_kexec_http_t *http, const char *method,
    ngx_str_t *uri, ngx_str_t *body);
static void ngx_kexec_http_timeout_handler(ngx_event_t *ev);
static void ngx_kexec_http_done_handler(ngx_event_t *ev);
static void ngx_kexec_http_write_handler(ngx_event_t *wev);
static void ngx_kexec_http_read_handler(ngx_event_t *rev);
static ngx_int_t ngx_kexec_http_process(ngx_kexec_http_t *http);
static ngx_int_t ngx_kexec_http_process_head(ngx_kexec_http_t *http);
static ngx_int_t ngx_kexec_http_process_body(ngx_kexec_http_t *http);
static ngx_int_t ngx_kexec_http_append(ngx_kexec_http_t *http, u_char *p,
    size_t len);
static ngx_int_t ngx_kexec_http_reserve(ngx_kexec_http_t *http, size_t size);
static void ngx_kexec_http_done(ngx_kexec_http_t *http, const char *error);
static void ngx_kexec_http_close(ngx_kexec_http_t *http);


ngx_kexec_http_t *
ngx_kexec_http_create(ngx_kexec_server_t *server, ngx_log_t *log)
{
    ngx_pool_t        *pool;
    ngx_kexec_http_t  *http;

    pool = ngx_create_pool(NGX_KEXEC_HTTP_POOL_SIZE, log);
    if (pool == NULL) {
        return NULL;
    }

    http = ngx_pcalloc(pool, sizeof(ngx_kexec_http_t));
    if (http == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     http->status = 0;
     *     http->body = { 0, NULL };
     *     http->error = NULL;
     *     http->timer.cancelable = 0;
     */

    http->pool = pool;

    if (ngx_kexec_http_copy_server(http, server) != NGX_OK) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    http->log = *log;
    http->log.handler = ngx_kexec_http_log_error;
    http->log.data = &http->log_ctx;
    http->log.action = "connecting to jupyter";

    http->log_ctx.server = &http->server.name;

    pool->log = &http->log;

    http->timer.handler = ngx_kexec_http_timeout_handler;
    http->timer.data = http;
    http->timer.log = &http->log;

    http->done.handler = ngx_kexec_http_done_handler;
    http->done.data = http;
    http->done.log = &http->log;

    return http;
}


/* a call may outlive whoever it was made for: a link, an execution */

static ngx_int_t
ngx_kexec_http_copy_server(ngx_kexec_http_t *http, ngx_kexec_server_t *server)
{
    ngx_kexec_server_t  *own;

    own = &http->server;

    *own = *server;

    own->sockaddr = ngx_palloc(http->pool, server->socklen);
    if (own->sockaddr == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(own->sockaddr, server->sockaddr, server->socklen);

    own->name.data = ngx_pstrdup(http->pool, &server->name);
    if (own->name.data == NULL) {
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_kexec_http_send(ngx_kexec_http_t *http, const char *method, ngx_str_t *uri,
    ngx_str_t *body)
{
    /*
     * The timer also makes a worker that exits gracefully wait for the end of
     * the call, and thus is set when the call has failed already.
     */

    ngx_add_timer(&http->timer, http->server.timeout);

    ngx_kexec_http_start(http, method, uri, body);

    /* what is in the request by now, and the caller's */

    ngx_str_null(&http->server.host);
    ngx_str_null(&http->server.base);
    ngx_str_null(&http->server.token);

    if (http->error) {

        /* not ngx_posted_events: a handler that tries again would starve */

        ngx_post_event(&http->done, &ngx_posted_next_events);
    }
}


void
ngx_kexec_http_cancel(ngx_kexec_http_t *http)
{
    if (http->finished) {
        return;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_EVENT, &http->log, 0, "kexec http cancel");

    ngx_kexec_http_close(http);
    ngx_destroy_pool(http->pool);
}


static void
ngx_kexec_http_start(ngx_kexec_http_t *http, const char *method,
    ngx_str_t *uri, ngx_str_t *body)
{
    ngx_int_t          rc;
    ngx_connection_t  *c;

    http->response = ngx_create_temp_buf(http->pool,
                                         NGX_KEXEC_HTTP_BUFFER_SIZE);
    if (http->response == NULL) {
        http->error = "no memory";
        return;
    }

    http->request = ngx_kexec_http_request(http->pool, &http->server, method,
                                           uri, "Connection: close" CRLF, body,
                                           &http->log_ctx.request);
    if (http->request == NULL) {
        http->error = "no memory";
        return;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_EVENT, &http->log, 0,
                   "kexec http request \"%V\"", &http->log_ctx.request);

    rc = ngx_kexec_http_connect(&http->peer, &http->server, &http->log);

    if (rc != NGX_OK && rc != NGX_AGAIN) {
        http->error = "connection failed";
        return;
    }

    c = http->peer.connection;

    c->data = http;
    c->pool = http->pool;

    c->read->handler = ngx_kexec_http_read_handler;
    c->write->handler = ngx_kexec_http_write_handler;

    if (rc == NGX_AGAIN) {
        ngx_add_timer(c->write, http->server.connect_timeout);
        return;
    }

    ngx_post_event(c->write, &ngx_posted_next_events);
}


void
ngx_kexec_http_limit(ngx_kexec_http_t *http, ngx_msec_t limit)
{
    if (http->timer.timer_set) {
        ngx_del_timer(&http->timer);
        ngx_add_timer(&http->timer, limit);
    }
}


ngx_buf_t *
ngx_kexec_http_request(ngx_pool_t *pool, ngx_kexec_server_t *server,
    const char *method, ngx_str_t *uri, const char *headers, ngx_str_t *body,
    ngx_str_t *line)
{
    size_t       len;
    ngx_buf_t   *b;
    ngx_str_t    host;
    const char  *header;

    header = server->token_header ? server->token_header
                                  : "Authorization: token ";
    host = server->host;

    if (host.len == 0) {

        /* Jupyter refuses names that are not its own, but no addresses */

        host = server->name;

        if (server->sockaddr->sa_family == AF_UNIX) {
            ngx_str_set(&host, "localhost");
        }
    }

    len = ngx_strlen(method) + sizeof(" ") - 1
          + server->base.len + uri->len + sizeof(" HTTP/1.1" CRLF) - 1
          + sizeof("Host: " CRLF) - 1 + host.len
          + ngx_strlen(header) + sizeof(CRLF) - 1 + server->token.len
          + ngx_strlen(headers)
          + sizeof("Content-Type: application/json" CRLF) - 1
          + sizeof("Content-Length: " CRLF) - 1 + NGX_SIZE_T_LEN
          + sizeof(CRLF) - 1;

    if (body) {
        len += body->len;
    }

    b = ngx_create_temp_buf(pool, len);
    if (b == NULL) {
        return NULL;
    }

    b->last = ngx_sprintf(b->last, "%s %V%V", method, &server->base, uri);

    line->len = b->last - b->pos;
    line->data = b->pos;

    b->last = ngx_sprintf(b->last, " HTTP/1.1" CRLF "Host: %V" CRLF "%s",
                          &host, headers);

    if (server->token.len) {
        b->last = ngx_sprintf(b->last, "%s%V" CRLF, header, &server->token);
    }

    if (body) {
        b->last = ngx_sprintf(b->last,
                              "Content-Type: application/json" CRLF
                              "Content-Length: %uz" CRLF CRLF "%V",
                              body->len, body);

    } else if (ngx_strcmp(method, "POST") == 0) {
        b->last = ngx_sprintf(b->last, "Content-Length: 0" CRLF CRLF);

    } else {
        *b->last++ = CR; *b->last++ = LF;
    }

    return b;
}


ngx_int_t
ngx_kexec_http_connect(ngx_peer_connection_t *peer, ngx_kexec_server_t *server,
    ngx_log_t *log)
{
    ngx_int_t  rc;

    peer->sockaddr = server->sockaddr;
    peer->socklen = server->socklen;
    peer->name = &server->name;
    peer->get = ngx_event_get_peer;
    peer->log = log;
    peer->log_error = NGX_ERROR_ERR;
    peer->so_keepalive = 1;

    rc = ngx_event_connect_peer(peer);

    if (rc != NGX_OK && rc != NGX_AGAIN) {
        return NGX_ERROR;
    }

    if (ngx_tcp_nodelay(peer->connection) != NGX_OK) {
        ngx_close_connection(peer->connection);
        peer->connection = NULL;

        return NGX_ERROR;
    }

    return rc;
}


const char *
ngx_kexec_http_test_connect(ngx_connection_t *c)
{
    int        err;
    socklen_t  len;

#if (NGX_HAVE_KQUEUE)

    if (ngx_event_flags & NGX_USE_KQUEUE_EVENT)  {
        if (c->write->pending_eof || c->read->pending_eof) {
            err = c->write->pending_eof ? c->write->kq_errno
                                        : c->read->kq_errno;
            goto failed;
        }

        return NULL;
    }

#endif

    err = 0;
    len = sizeof(int);

    /*
     * BSDs and Linux return 0 and set a pending error in err
     * Solaris returns -1 and sets errno
     */

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, (void *) &err, &len) == -1) {
        err = ngx_socket_errno;
    }

    if (err == 0) {
        return NULL;
    }

#if (NGX_HAVE_KQUEUE)
failed:
#endif

    (void) ngx_connection_error(c, err, "connect() failed");

    switch (err) {

    case NGX_ECONNREFUSED:
        return "connection refused";

    case NGX_ETIMEDOUT:
        return "connection timed out";

    default:
        return "connection failed";
    }
}


static void
ngx_kexec_http_timeout_handler(ngx_event_t *ev)
{
    ngx_kexec_http_t *http = ev->data;

    ngx_log_error(NGX_LOG_ERR, &http->log, NGX_ETIMEDOUT,
                  "jupyter did not answer in time");

    ngx_kexec_http_done(http, "timed out");
}


static void
ngx_kexec_http_done_handler(ngx_event_t *ev)
{
    ngx_kexec_http_t *http = ev->data;

    ngx_kexec_http_done(http, http->error);
}


static void
ngx_kexec_http_write_handler(ngx_event_t *wev)
{
    ssize_t            n;
    ngx_buf_t         *b;
    const char        *error;
    ngx_connection_t  *c;
    ngx_kexec_http_t  *http;

    c = wev->data;
    http = c->data;

    ngx_log_debug0(NGX_LOG_DEBUG_EVENT, wev->log, 0,
                   "kexec http write handler");

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_ERR, wev->log, NGX_ETIMEDOUT,
                      "jupyter did not accept the connection in time");
        ngx_kexec_http_done(http, "connection timed out");
        return;
    }

    if (!http->connected) {

        error = ngx_kexec_http_test_connect(c);
        if (error) {
            ngx_kexec_http_done(http, error);
            return;
        }

        http->connected = 1;
        http->log.action = "sending request to jupyter";

        if (wev->timer_set) {
            ngx_del_timer(wev);
        }
    }

    b = http->request;

    if (b->pos == b->last) {
        return;
    }

    while (b->pos < b->last) {

        n = c->send(c, b->pos, b->last - b->pos);

        if (n == NGX_ERROR) {
            ngx_kexec_http_done(http, "connection reset");
            return;
        }

        if (n == NGX_AGAIN || n == 0) {
            break;
        }

        b->pos += n;
    }

    if (ngx_handle_write_event(wev, 0) != NGX_OK) {
        ngx_kexec_http_done(http, "internal error");
        return;
    }

    if (b->pos == b->last) {
        http->log.action = "reading answer from jupyter";

        if (c->read->ready) {
            ngx_post_event(c->read, &ngx_posted_events);
        }
    }
}


static void
ngx_kexec_http_read_handler(ngx_event_t *rev)
{
    ssize_t            n;
    ngx_int_t          rc;
    ngx_buf_t         *b;
    const char        *error;
    ngx_connection_t  *c;
    ngx_kexec_http_t  *http;

    c = rev->data;
    http = c->data;

    ngx_log_debug0(NGX_LOG_DEBUG_EVENT, rev->log, 0,
                   "kexec http read handler");

    if (c->close) {
        ngx_kexec_http_done(http, "worker is shutting down");
        return;
    }

    if (!http->connected) {

        /* of what comes before the connection stands only an error counts */

        error = ngx_kexec_http_test_connect(c);
        if (error) {
            ngx_kexec_http_done(http, error);
        }

        return;
    }

    b = http->response;

    for ( ;; ) {

        n = c->recv(c, b->start, b->end - b->start);

        if (n == NGX_AGAIN) {

            if (ngx_handle_read_event(rev, 0) != NGX_OK) {
                ngx_kexec_http_done(http, "internal error");
            }

            return;
        }

        if (n == NGX_ERROR) {
            ngx_kexec_http_done(http, "connection reset");
            return;
        }

        if (n == 0) {
            break;
        }

        b->pos = b->start;
        b->last = b->start + n;

        rc = ngx_kexec_http_process(http);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_ERROR) {
            ngx_log_error(NGX_LOG_ERR, &http->log, 0,
                          "jupyter's answer was not taken: %s", http->error);
        }

        ngx_kexec_http_done(http, http->error);
        return;
    }

    if (http->headed && !http->head.chunked && http->head.content_length == -1)
    {
        ngx_kexec_http_done(http, NULL);
        return;
    }

    ngx_log_error(NGX_LOG_ERR, &http->log, 0,
                  "jupyter prematurely closed connection");

    ngx_kexec_http_done(http, "connection closed");
}


static ngx_int_t
ngx_kexec_http_process(ngx_kexec_http_t *http)
{
    ngx_int_t  rc;

    if (!http->headed) {

        rc = ngx_kexec_http_process_head(http);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    return ngx_kexec_http_process_body(http);
}


/* NGX_DECLINED: there is a body */

static ngx_int_t
ngx_kexec_http_process_head(ngx_kexec_http_t *http)
{
    off_t                   length;
    ngx_int_t               rc;
    ngx_buf_t              *b;
    ngx_kexec_http_head_t  *head;

    b = http->response;
    head = &http->head;

    rc = ngx_kexec_http_head(head, &b->pos, b->last);

    if (rc == NGX_ERROR) {
        http->error = head->error;
    }

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_log_debug3(NGX_LOG_DEBUG_EVENT, &http->log, 0,
                   "kexec http status:%ui length:%O chunked:%d",
                   head->status, head->content_length, head->chunked);

    http->headed = 1;

    if (head->status == 101) {
        http->error = "upgrade that was not asked for";
        return NGX_ERROR;
    }

    length = head->content_length;

    if (head->status == 204 || head->status == 304 || length == 0) {
        return NGX_OK;
    }

    if (length > NGX_KEXEC_HTTP_MAX_BODY) {
        http->error = "answer is too large";
        return NGX_ERROR;
    }

    if (length > 0 && ngx_kexec_http_reserve(http, length) != NGX_OK) {
        return NGX_ERROR;
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_kexec_http_process_body(ngx_kexec_http_t *http)
{
    off_t       rest;
    u_char     *data, *last;
    ngx_int_t   rc;
    ngx_buf_t  *b;

    b = http->response;

    if (!http->head.chunked) {

        last = b->last;

        if (http->head.content_length != -1) {
            rest = http->head.content_length - http->body.len;
            last = b->pos + ngx_min(rest, b->last - b->pos);
        }

        if (ngx_kexec_http_append(http, b->pos, last - b->pos) != NGX_OK) {
            return NGX_ERROR;
        }

        return ((off_t) http->body.len == http->head.content_length)
               ? NGX_OK : NGX_AGAIN;
    }

    for ( ;; ) {

        rc = ngx_kexec_http_chunked(&http->chunks, &b->pos, b->last, &data,
                                    &last);

        switch (rc) {

        case NGX_OK:
            if (ngx_kexec_http_append(http, data, last - data) != NGX_OK) {
                return NGX_ERROR;
            }

            break;

        case NGX_DONE:
            return NGX_OK;

        case NGX_ERROR:
            http->error = "invalid chunk";
            return NGX_ERROR;

        default:  /* NGX_AGAIN */
            return NGX_AGAIN;
        }
    }
}


static ngx_int_t
ngx_kexec_http_append(ngx_kexec_http_t *http, u_char *p, size_t len)
{
    if (len > NGX_KEXEC_HTTP_MAX_BODY - http->body.len) {
        http->error = "answer is too large";
        return NGX_ERROR;
    }

    if (len > http->size - http->body.len) {

        if (ngx_kexec_http_reserve(http, ngx_max(http->body.len + len,
                                                 2 * http->size))
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    ngx_memcpy(http->body.data + http->body.len, p, len);
    http->body.len += len;

    return NGX_OK;
}


static ngx_int_t
ngx_kexec_http_reserve(ngx_kexec_http_t *http, size_t size)
{
    u_char  *p;

    p = ngx_pnalloc(http->pool, size);
    if (p == NULL) {
        http->error = "no memory";
        return NGX_ERROR;
    }

    if (http->body.data) {
        ngx_memcpy(p, http->body.data, http->body.len);
        (void) ngx_pfree(http->pool, http->body.data);
    }

    http->body.data = p;
    http->size = size;

    return NGX_OK;
}


static void
ngx_kexec_http_done(ngx_kexec_http_t *http, const char *error)
{
    ngx_log_debug2(NGX_LOG_DEBUG_EVENT, &http->log, 0,
                   "kexec http done, status:%ui error:\"%s\"",
                   http->head.status, error ? error : "");

    http->error = error;
    http->finished = 1;

    if (error) {
        http->status = 0;
        http->body.len = 0;

    } else {
        http->status = http->head.status;
    }

    ngx_kexec_http_close(http);

    if (http->handler) {
        http->handler(http);
    }

    ngx_destroy_pool(http->pool);
}


static void
ngx_kexec_http_close(ngx_kexec_http_t *http)
{
    if (http->timer.timer_set) {
        ngx_del_timer(&http->timer);
    }

    if (http->done.posted) {
        ngx_delete_posted_event(&http->done);
    }

    if (http->peer.connection) {
        ngx_close_connection(http->peer.connection);
        http->peer.connection = NULL;
    }
}


u_char *
ngx_kexec_http_log_error(ngx_log_t *log, u_char *buf, size_t len)
{
    u_char                *p;
    ngx_kexec_http_log_t  *ctx;

    if (log->action) {
        p = ngx_snprintf(buf, len, " while %s", log->action);
        len -= p - buf;
        buf = p;
    }

    ctx = log->data;

    if (ctx->request.len) {
        p = ngx_snprintf(buf, len, ", request: \"%V\"", &ctx->request);
        len -= p - buf;
        buf = p;
    }

    return ngx_snprintf(buf, len, ", jupyter: \"%V\"", ctx->server);
}
