
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_answer.h>
#include <ngx_kexec_client.h>
#include <ngx_kexec_events.h>
#include <ngx_kexec_park.h>
#include <ngx_kexec_zone.h>


/* one buffer of events */
#define NGX_KEXEC_BLOCK  16384

/* so long the headers wait for something to be sent with */
#define NGX_KEXEC_HOLD_TIME  5

/* how much of the temporary file is given to nginx at once */
#define NGX_KEXEC_FILE_PART  (1024 * 1024)

/* after so many parts the worker's other connections have their turn */
#define NGX_KEXEC_FILE_PARTS  4


static void ngx_kexec_client_make_room(ngx_kexec_client_t *client);
static void ngx_kexec_client_cleanup(void *data);
static void ngx_kexec_client_release(ngx_kexec_client_t *client);
static void ngx_kexec_client_write_handler(ngx_http_request_t *r);
static ngx_kexec_client_t *ngx_kexec_client_find(ngx_http_request_t *r);
static void ngx_kexec_client_keepalive(ngx_event_t *ev);
static ngx_int_t ngx_kexec_client_send(ngx_kexec_client_t *client);
static ngx_uint_t ngx_kexec_client_is_last(ngx_kexec_client_t *client);
static void ngx_kexec_client_update_chains(ngx_kexec_client_t *client,
    ngx_chain_t *out);
static void ngx_kexec_client_empty_file(ngx_kexec_client_t *client);
static ngx_chain_t *ngx_kexec_client_file_part(ngx_kexec_client_t *client);
static ngx_int_t ngx_kexec_client_more(ngx_kexec_out_t *out);
static ngx_int_t ngx_kexec_client_close_block(ngx_kexec_client_t *client);
static ngx_int_t ngx_kexec_client_spill(ngx_kexec_client_t *client,
    ngx_chain_t *cl);
static ngx_uint_t ngx_kexec_client_vanished(ngx_kexec_client_t *client);


ngx_kexec_client_t *
ngx_kexec_client_create(ngx_http_request_t *r)
{
    ngx_kexec_client_t  *client;
    ngx_http_cleanup_t  *cln;

    client = ngx_pcalloc(r->pool, sizeof(ngx_kexec_client_t));
    if (client == NULL) {
        return NULL;
    }

    client->report = ngx_kexec_report(r);
    if (client->report == NULL) {
        return NULL;
    }

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NULL;
    }

    client->request = r;
    client->conf = ngx_http_get_module_loc_conf(r, ngx_http_kexec_module);
    client->main_conf = ngx_http_get_module_main_conf(r,
                                                      ngx_http_kexec_module);
    client->last_pending = &client->pending;
    client->last_after = &client->after;
    client->out.more = ngx_kexec_client_more;
    client->out.data = client;

    client->keepalive.handler = ngx_kexec_client_keepalive;
    client->keepalive.data = r->connection;
    client->keepalive.log = r->connection->log;

    /* the event's data is what debug logs take for a connection */

    cln->handler = ngx_kexec_client_cleanup;
    cln->data = client;

    return client;
}


ngx_int_t
ngx_kexec_client_start(ngx_kexec_client_t *client)
{
    ngx_int_t            rc;
    ngx_str_t            value;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = client->request;
    c = r->connection;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = -1;
    r->allow_ranges = 0;

    ngx_http_clear_accept_ranges(r);

    ngx_str_set(&r->headers_out.content_type, "application/x-ndjson");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    ngx_str_set(&value, "no-store");

    if (ngx_kexec_add_header(r, "Cache-Control", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_str_set(&value, "no");

    if (ngx_kexec_add_header(r, "X-Accel-Buffering", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    /* events are to be felt at once */

    if (c->tcp_nodelay != NGX_TCP_NODELAY_SET && ngx_tcp_nodelay(c) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* sendfile() of a temporary file would cork what comes after it */

    c->tcp_nopush = NGX_TCP_NOPUSH_DISABLED;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return NGX_ERROR;
    }

    client->started = 1;
    client->held = 1;
    client->last_event = ngx_current_msec;

    if (ngx_kexec_park(r) != NGX_OK) {
        return NGX_ERROR;
    }

    r->write_event_handler = ngx_kexec_client_write_handler;

    if (client->ended) {
        ngx_kexec_client_wake(client);
        return NGX_OK;
    }

    /*
     * Each write wakes the client, on a processor that the kernel may need:
     * short code is answered by two writes instead of four.
     */

    ngx_add_timer(&client->keepalive, NGX_KEXEC_HOLD_TIME);

    if (client->block) {
        ngx_kexec_client_wake(client);
    }

    return NGX_OK;
}


void
ngx_kexec_client_wake(ngx_kexec_client_t *client)
{
    if (client->started) {
        ngx_post_event(client->request->connection->write,
                       &ngx_posted_events);
    }
}


void
ngx_kexec_client_wake_later(ngx_kexec_client_t *client)
{
    if (!client->held) {
        ngx_kexec_client_wake(client);
    }
}


const char *
ngx_kexec_client_full(ngx_kexec_client_t *client)
{
    const char  *why;

    if (client->failed) {
        return "it could not be written to kexec_temp_path";
    }

    if (client->file_size == 0
        && client->kept + NGX_KEXEC_BLOCK <= client->conf->buffer_size)
    {
        return NULL;
    }

    if (client->file_size >= (off_t) client->conf->max_temp_file_size) {
        why = "the client is so slow that kexec_max_temp_file_size is reached";

    } else if (ngx_kexec_zone_temp(client->main_conf->zone)
               >= client->main_conf->max_temp_files_size)
    {
        why = "so many clients are slow that kexec_max_temp_files_size is "
              "reached";

    } else {
        return NULL;
    }

    if (client->file_size) {
        return why;
    }

    /* no file at all: full is what does not fit into memory */

    ngx_kexec_client_make_room(client);

    return client->kept + NGX_KEXEC_BLOCK > client->conf->buffer_size ? why
                                                                      : NULL;
}


/*
 * One message can be larger than the buffer: a client that keeps up should get
 * it without a detour over the disk.
 */

static void
ngx_kexec_client_make_room(ngx_kexec_client_t *client)
{
    ngx_connection_t  *c;

    c = client->request->connection;

    if (client->file_size == 0
        && client->kept + NGX_KEXEC_BLOCK > client->conf->buffer_size
        && client->started && !client->sending && !c->error
        && c->write->ready
        && ngx_kexec_client_send(client) != NGX_OK)
    {
        c->error = 1;
    }
}


void
ngx_kexec_client_end(ngx_kexec_client_t *client)
{
    client->ended = 1;
    client->gone = NULL;

    if (client->keepalive.timer_set) {
        ngx_del_timer(&client->keepalive);
    }

    ngx_kexec_client_wake(client);
}


static void
ngx_kexec_client_cleanup(void *data)
{
    ngx_kexec_client_t *client = data;

    void  (*gone)(void *data);

    if (client->keepalive.timer_set) {
        ngx_del_timer(&client->keepalive);
    }

    ngx_kexec_zone_temp_add(-client->file_size);
    client->file_size = 0;

    gone = client->gone;
    client->gone = NULL;

    if (gone) {
        gone(client->data);
    }
}


static void
ngx_kexec_client_keepalive(ngx_event_t *ev)
{
    ngx_msec_t           silent, period;
    ngx_connection_t    *c;
    ngx_kexec_client_t  *client;

    client = (ngx_kexec_client_t *)
                 ((u_char *) ev - offsetof(ngx_kexec_client_t, keepalive));

    c = client->request->connection;

    if (client->held) {
        ngx_kexec_client_release(client);

    } else if (ngx_kexec_client_vanished(client)) {
        ngx_log_error(NGX_LOG_INFO, c->log, NGX_ETIMEDOUT,
                      "client does not acknowledge what it is sent");
        c->error = 1;
        ngx_post_event(c->write, &ngx_posted_events);
        return;
    }

    period = ngx_min(client->conf->keepalive, client->conf->client_timeout);
    silent = ngx_current_msec - client->last_event;

    if (silent < client->conf->keepalive) {
        ngx_add_timer(ev, ngx_min(period, client->conf->keepalive - silent));
        return;
    }

    ngx_add_timer(ev, period);

    /* while older output waits for the client, more would not help */

    if (client->busy || client->pending || client->file_size
        || c->write->delayed)
    {
        return;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, c->log, 0, "http kexec keepalive");

    if (ngx_kexec_event_keepalive(&client->out) != NGX_OK) {
        c->error = 1;
    }

    ngx_post_event(c->write, &ngx_posted_events);
}


/* what was held back goes: the headers, and events behind them */

static void
ngx_kexec_client_release(ngx_kexec_client_t *client)
{
    ngx_connection_t  *c;

    c = client->request->connection;

    client->held = 0;

    if ((client->block == NULL || client->out.pos == client->block->buf->pos)
        && ngx_http_send_special(client->request, NGX_HTTP_FLUSH) == NGX_ERROR)
    {
        c->error = 1;
    }

    ngx_post_event(c->write, &ngx_posted_events);
}


static void
ngx_kexec_client_write_handler(ngx_http_request_t *r)
{
    ngx_int_t            rc;
    ngx_event_t         *wev;
    ngx_connection_t    *c;
    ngx_kexec_client_t  *client;

    c = r->connection;
    wev = c->write;

    client = ngx_kexec_client_find(r);

    if (client == NULL) {
        return;
    }

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, c->log, NGX_ETIMEDOUT,
                      "client timed out");
        c->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    /* an HTTP/2 or HTTP/3 stream's end may be told by the write event alone */

    if (c->error
#if (NGX_HTTP_V3 && nginx_version >= 1025000)
        || (c->quic && wev->error)
#endif
        )
    {
        ngx_log_error(NGX_LOG_INFO, c->log, 0,
                      "client closed connection while its code was running");
        ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
        return;
    }

    if (ngx_kexec_client_send(client) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    if (client->ended && ngx_kexec_client_is_last(client)) {

        /* what the socket did not take yet is nginx's to send */

        rc = client->last ? NGX_OK : ngx_http_send_special(r, NGX_HTTP_LAST);
        ngx_http_finalize_request(r, rc);
    }
}


static ngx_kexec_client_t *
ngx_kexec_client_find(ngx_http_request_t *r)
{
    ngx_http_cleanup_t  *cln;

    for (cln = r->main->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_kexec_client_cleanup) {
            return cln->data;
        }
    }

    return NULL;
}


/*
 * Gives nginx all that the client takes.  The open block is left open, to
 * gather more events, while older ones wait.
 */

static ngx_int_t
ngx_kexec_client_send(ngx_kexec_client_t *client)
{
    ngx_int_t                  rc;
    ngx_uint_t                 parts;
    ngx_chain_t               *out, *cl;
    ngx_event_t               *wev;
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = client->request;
    c = r->connection;
    wev = c->write;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (wev->delayed) {

        /* by limit_rate: the write event's timer is its own until it expires */

        return ngx_handle_write_event(wev, clcf->send_lowat);
    }

    client->sending = 1;
    parts = 0;

    for ( ;; ) {

        if ((client->busy == NULL || client->ended)
            && ngx_kexec_client_close_block(client) != NGX_OK)
        {
            goto failed;
        }

        out = client->pending;

        if (out) {
            for (cl = out; cl->next; cl = cl->next) { /* void */ }

            cl->buf->flush = 1;

            client->pending = NULL;
            client->last_pending = &client->pending;

            if (client->ended && ngx_kexec_client_is_last(client)) {

                /* the end of the body leaves with the last event */

                cl->buf->last_buf = 1;
                cl->buf->last_in_chain = 1;
                client->last = 1;
            }

        } else if (client->file_size && client->busy == NULL
                   && !r->buffered && !c->buffered)
        {
            if (client->file_sent == client->file_size) {
                ngx_kexec_client_empty_file(client);
                continue;
            }

            if (parts++ == NGX_KEXEC_FILE_PARTS) {

                /* a worker that leaves waits for timers only */

                ngx_add_timer(wev, clcf->send_timeout);
                ngx_post_event(wev, &ngx_posted_next_events);

                client->sending = 0;

                return NGX_OK;
            }

            out = ngx_kexec_client_file_part(client);

            if (out == NULL) {
                goto failed;
            }

        } else if (client->busy == NULL && !r->buffered && !c->buffered) {

            if (client->after == NULL) {
                break;
            }

            /* the file is empty: there is room again */

            client->pending = client->after;
            client->last_pending = client->last_after;
            client->after = NULL;
            client->last_after = &client->after;
            client->failed = 0;

            continue;
        }

        if (out) {
            client->held = 0;
        }

        rc = ngx_http_output_filter(r, out);

        if (rc == NGX_ERROR) {
            goto failed;
        }

        ngx_kexec_client_update_chains(client, out);

        if (client->busy || r->buffered || c->buffered || wev->delayed) {

            /* the client takes no more for now */

            if (!wev->delayed
                && (!wev->timer_set || client->sent != c->sent))
            {
                client->sent = c->sent;
                ngx_add_timer(wev, clcf->send_timeout);
            }

            if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
                goto failed;
            }

            client->sending = 0;

            return NGX_OK;
        }
    }

    if (wev->timer_set) {
        ngx_del_timer(wev);
    }

    client->sending = 0;

    return NGX_OK;

failed:

    client->sending = 0;

    return NGX_ERROR;
}


/* nothing is kept that would have to be sent */

static ngx_uint_t
ngx_kexec_client_is_last(ngx_kexec_client_t *client)
{
    return client->pending == NULL && client->block == NULL
           && client->file_sent == client->file_size
           && client->after == NULL;
}


static void
ngx_kexec_client_update_chains(ngx_kexec_client_t *client, ngx_chain_t *out)
{
    ngx_chain_t  *cl;

    ngx_chain_update_chains(client->request->pool, &client->free,
                            &client->busy, &out,
                            (ngx_buf_tag_t) &ngx_http_kexec_module);

    client->kept = 0;

    for (cl = client->busy; cl; cl = cl->next) {
        client->kept += cl->buf->end - cl->buf->start;
    }
}


/* all of the temporary file was taken: its space is given back */

static void
ngx_kexec_client_empty_file(ngx_kexec_client_t *client)
{
    if (ftruncate(client->temp_file->file.fd, 0) == -1) {
        ngx_log_error(NGX_LOG_CRIT, client->request->connection->log,
                      ngx_errno, "ftruncate() \"%V\" failed",
                      &client->temp_file->file.name);
    }

    ngx_kexec_zone_temp_add(-client->file_size);

    client->temp_file->offset = 0;
    client->file_sent = 0;
    client->file_size = 0;
}


static ngx_chain_t *
ngx_kexec_client_file_part(ngx_kexec_client_t *client)
{
    ngx_buf_t    *b;
    ngx_pool_t   *pool;
    ngx_chain_t  *cl;

    pool = client->request->pool;

    cl = ngx_alloc_chain_link(pool);
    if (cl == NULL) {
        return NULL;
    }

    b = client->file_buf;

    if (b == NULL) {
        b = ngx_calloc_buf(pool);
        if (b == NULL) {
            return NULL;
        }

        b->in_file = 1;
        b->flush = 1;
        b->file = &client->temp_file->file;

        client->file_buf = b;
    }

    b->file_pos = client->file_sent;
    b->file_last = ngx_min(client->file_size,
                           client->file_sent + NGX_KEXEC_FILE_PART);

    client->file_sent = b->file_last;

    cl->buf = b;
    cl->next = NULL;

    return cl;
}


static ngx_int_t
ngx_kexec_client_more(ngx_kexec_out_t *out)
{
    ngx_kexec_client_t *client = out->data;

    ngx_buf_t    *b;
    ngx_pool_t   *pool;
    ngx_chain_t  *cl;

    if (ngx_kexec_client_close_block(client) != NGX_OK) {
        return NGX_ERROR;
    }

    pool = client->request->pool;

    cl = ngx_chain_get_free_buf(pool, &client->free);
    if (cl == NULL) {
        return NGX_ERROR;
    }

    b = cl->buf;

    if (b->start == NULL) {
        b->start = ngx_palloc(pool, NGX_KEXEC_BLOCK);
        if (b->start == NULL) {
            return NGX_ERROR;
        }

        b->end = b->start + NGX_KEXEC_BLOCK;
        b->tag = (ngx_buf_tag_t) &ngx_http_kexec_module;
        b->temporary = 1;
    }

    b->pos = b->start;
    b->last = b->start;
    b->flush = 0;

    client->block = cl;

    out->pos = b->start;
    out->end = b->end;

    return NGX_OK;
}


/*
 * Ends the block that events are written to: it goes to what is sent from
 * memory or, behind a client that is too slow for that, to the file.
 */

static ngx_int_t
ngx_kexec_client_close_block(ngx_kexec_client_t *client)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    cl = client->block;

    if (cl == NULL) {
        return NGX_OK;
    }

    b = cl->buf;
    b->last = client->out.pos;

    client->block = NULL;
    client->out.pos = NULL;
    client->out.end = NULL;

    if (b->last == b->pos) {
        cl->next = client->free;
        client->free = cl;
        return NGX_OK;
    }

    client->last_event = ngx_current_msec;

    ngx_kexec_client_make_room(client);

    if (!client->failed
        && (client->file_size
            || client->kept + NGX_KEXEC_BLOCK > client->conf->buffer_size))
    {
        if (ngx_kexec_client_spill(client, cl) == NGX_OK) {
            return NGX_OK;
        }

        client->failed = 1;
    }

    cl->next = NULL;

    if (client->failed) {

        /*
         * The disk is full.  The event that was begun, and how it all ended,
         * wait in memory behind the file; other events are dropped.
         */

        *client->last_after = cl;
        client->last_after = &cl->next;

        return NGX_OK;
    }

    *client->last_pending = cl;
    client->last_pending = &cl->next;

    client->kept += b->end - b->start;

    return NGX_OK;
}


static ngx_int_t
ngx_kexec_client_spill(ngx_kexec_client_t *client, ngx_chain_t *cl)
{
    ssize_t              n;
    ngx_temp_file_t     *tf;
    ngx_http_request_t  *r;

    r = client->request;
    tf = client->temp_file;

    cl->next = NULL;

    if (tf == NULL) {
        tf = ngx_pcalloc(r->pool, sizeof(ngx_temp_file_t));
        if (tf == NULL) {
            return NGX_ERROR;
        }

        tf->file.fd = NGX_INVALID_FILE;
        tf->file.log = r->connection->log;
        tf->path = client->conf->temp_path;
        tf->pool = r->pool;
        tf->log_level = NGX_LOG_INFO;
        tf->warn = "output of an execution is buffered to a temporary file";

        client->temp_file = tf;
    }

    if (!r->connection->error) {

        n = ngx_write_chain_to_temp_file(tf, cl);

        if (n == NGX_ERROR) {
            return NGX_ERROR;
        }

        tf->offset += n;
        client->file_size = tf->offset;

        ngx_kexec_zone_temp_add(n);
    }

    cl->buf->pos = cl->buf->start;
    cl->buf->last = cl->buf->start;

    cl->next = client->free;
    client->free = cl;

    return NGX_OK;
}


/*
 * A client that vanished without a FIN: what was sent, keepalives at the least,
 * is sent again and nothing comes back.  TCP_USER_TIMEOUT would also end one
 * that is alive but does not read for a while, which is send_timeout's to
 * judge.
 */

static ngx_uint_t
ngx_kexec_client_vanished(ngx_kexec_client_t *client)
{
#if (NGX_LINUX && NGX_HAVE_TCP_INFO)
    socklen_t         len;
    struct tcp_info   ti;

    len = sizeof(struct tcp_info);

    if (getsockopt(client->request->connection->fd, IPPROTO_TCP, TCP_INFO,
                   &ti, &len)
        == -1)
    {
        /* not a TCP socket */

        return 0;
    }

    /*
     * One may just be on its way.  The backoff does not count: it grows while
     * a closed window is probed, and answered, with ever longer pauses.
     */

    return (ti.tcpi_retransmits > 1 || ti.tcpi_probes > 1)
           && ti.tcpi_last_ack_recv > client->conf->client_timeout;
#else
    return 0;
#endif
}
