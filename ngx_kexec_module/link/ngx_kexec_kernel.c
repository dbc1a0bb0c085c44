
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_kernel.h>


/* an input_request's header has a few hundred bytes */
#define NGX_KEXEC_KERNEL_HEADER  4096

#define NGX_KEXEC_KERNEL_SWEEP_TIME  5000


static ngx_kexec_kernel_t *ngx_kexec_kernel_create(ngx_kexec_zone_t *zone,
    ngx_kexec_context_t *ctx, ngx_kexec_server_t *server);
static ngx_uint_t ngx_kexec_kernel_same(ngx_str_t *one, ngx_str_t *two);
static ngx_int_t ngx_kexec_kernel_write(ngx_kexec_kernel_t *kernel,
    ngx_kexec_request_msg_t *req);
static void ngx_kexec_kernel_opened(ngx_kexec_link_t *link);
static void ngx_kexec_kernel_message(ngx_kexec_link_t *link,
    ngx_kexec_message_t *msg);
static void ngx_kexec_kernel_lost(ngx_kexec_kernel_t *kernel,
    ngx_kexec_kernel_lost_e lost);
static void ngx_kexec_kernel_closed(ngx_kexec_link_t *link,
    ngx_uint_t status, const char *reason);
static void ngx_kexec_kernel_sweep(ngx_event_t *ev);
static void ngx_kexec_kernel_free(ngx_kexec_kernel_t *kernel);
static void ngx_kexec_kernel_freeing(ngx_event_t *ev);


static ngx_kexec_link_handlers_t  ngx_kexec_kernel_handlers = {
    ngx_kexec_kernel_opened,
    ngx_kexec_kernel_message,
    ngx_kexec_kernel_closed
};


/*
 * The kernels that this worker knows, by the index of the context's record.
 * A worker serves one zone, for as long as it lives.
 */

static ngx_kexec_kernel_t  **ngx_kexec_kernels;
static ngx_uint_t            ngx_kexec_kernels_n;

static ngx_event_t           ngx_kexec_kernel_sweep_event;
static ngx_connection_t      ngx_kexec_kernel_dumb;


ngx_kexec_kernel_t *
ngx_kexec_kernel_take(ngx_kexec_zone_t *zone, ngx_kexec_context_t *ctx,
    ngx_kexec_server_t *server, size_t max_message,
    ngx_kexec_kernel_user_t *user, void *data)
{
    ngx_kexec_kernel_t     *kernel;
    ngx_kexec_zone_stat_t   stat;

    if (ngx_kexec_kernels == NULL) {

        ngx_kexec_zone_stat(zone, &stat);

        ngx_kexec_kernels = ngx_calloc(stat.max_contexts
                                       * sizeof(ngx_kexec_kernel_t *),
                                       ngx_cycle->log);
        if (ngx_kexec_kernels == NULL) {
            return NULL;
        }

        ngx_kexec_kernels_n = stat.max_contexts;

        /* debug logs take an event's data for a connection */

        ngx_kexec_kernel_dumb.fd = (ngx_socket_t) -1;

        ngx_kexec_kernel_sweep_event.handler = ngx_kexec_kernel_sweep;
        ngx_kexec_kernel_sweep_event.data = &ngx_kexec_kernel_dumb;
        ngx_kexec_kernel_sweep_event.log = ngx_cycle->log;
        ngx_kexec_kernel_sweep_event.cancelable = 1;
    }

    if (!ngx_kexec_kernel_sweep_event.timer_set) {
        ngx_add_timer(&ngx_kexec_kernel_sweep_event,
                      NGX_KEXEC_KERNEL_SWEEP_TIME);
    }

    kernel = ngx_kexec_kernels[ctx->ref.index];

    if (kernel
        && (kernel->context.generation != ctx->ref.generation
            || kernel->id.len != ctx->kernel.len
            || ngx_memcmp(kernel->id.data, ctx->kernel.data, kernel->id.len)
               != 0
            || !ngx_kexec_kernel_same(&kernel->server.token, &server->token)))
    {
        /* what a token opened is for that token: Jupyter judges any other */

        ngx_kexec_kernel_free(kernel);
        kernel = NULL;
    }

    if (kernel == NULL) {
        kernel = ngx_kexec_kernel_create(zone, ctx, server);
        if (kernel == NULL) {
            return NULL;
        }

        ngx_kexec_kernels[ctx->ref.index] = kernel;

    }

    kernel->server.connect_timeout = server->connect_timeout;
    kernel->server.timeout = server->timeout;

    kernel->max_message = max_message;
    kernel->lost = NGX_KEXEC_KERNEL_HERE;
    kernel->user = user;
    kernel->data = data;

    if (kernel->link) {
        ngx_kexec_link_idle(kernel->link, 0);
    }

    return kernel;
}


static ngx_kexec_kernel_t *
ngx_kexec_kernel_create(ngx_kexec_zone_t *zone, ngx_kexec_context_t *ctx,
    ngx_kexec_server_t *server)
{
    u_char              *p;
    ngx_str_t           *dst[3], *src[3];
    ngx_uint_t           i;
    ngx_pool_t          *pool;
    ngx_kexec_kernel_t  *kernel;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    kernel = ngx_pcalloc(pool, sizeof(ngx_kexec_kernel_t));
    if (kernel == NULL) {
        goto failed;
    }

    kernel->pool = pool;
    kernel->zone = zone;
    kernel->context = ctx->ref;
    kernel->id = ctx->kernel;

    kernel->server.socklen = ctx->socklen;
    kernel->server.sockaddr = ngx_palloc(pool, ctx->socklen);
    kernel->server.name.len = ctx->server_len;
    kernel->server.name.data = ngx_pnalloc(pool, ctx->server_len);

    if (kernel->server.sockaddr == NULL || kernel->server.name.data == NULL) {
        goto failed;
    }

    ngx_memcpy(kernel->server.sockaddr, ctx->sockaddr, ctx->socklen);
    ngx_memcpy(kernel->server.name.data, ctx->server, ctx->server_len);

    dst[0] = &kernel->server.token;
    dst[1] = &kernel->server.host;
    dst[2] = &kernel->server.base;
    src[0] = &server->token;
    src[1] = &server->host;
    src[2] = &server->base;

    for (i = 0; i < 3; i++) {

        if (src[i]->len == 0) {
            continue;
        }

        dst[i]->len = src[i]->len;
        dst[i]->data = ngx_pstrdup(pool, src[i]);

        if (dst[i]->data == NULL) {
            goto failed;
        }
    }

    /*
     * The same for every worker, so that Jupyter knows the one link from
     * the other and replays what came in between.
     */

    p = ngx_pnalloc(pool, 2 * 16 + 3 + NGX_KEXEC_UUID_LEN);
    if (p == NULL) {
        goto failed;
    }

    kernel->session_id.data = p;
    p = ngx_sprintf(p, "%016xL-%*s", ngx_kexec_zone_instance(zone),
                    (size_t) NGX_KEXEC_UUID_LEN, ctx->id);
    kernel->session_id.len = p - kernel->session_id.data;
    kernel->session = kernel->session_id;

    *p = 'x';

    return kernel;

failed:

    ngx_destroy_pool(pool);

    return NULL;
}


static ngx_uint_t
ngx_kexec_kernel_same(ngx_str_t *one, ngx_str_t *two)
{
    return one->len == two->len
           && (one->len == 0
               || ngx_memcmp(one->data, two->data, one->len) == 0);
}


ngx_int_t
ngx_kexec_kernel_open(ngx_kexec_kernel_t *kernel)
{
    ngx_str_t  id;

    if (kernel->link) {
        ngx_kexec_link_close(kernel->link);
    }

    kernel->open = 0;
    kernel->fresh = 1;
    kernel->seen = 0;

    id.len = kernel->id.len;
    id.data = kernel->id.data;

    kernel->link = ngx_kexec_link_open(&kernel->server, &id,
                                       &kernel->session_id,
                                       kernel->max_message,
                                       &ngx_kexec_kernel_handlers, kernel,
                                       ngx_cycle->log);

    return kernel->link ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_kexec_kernel_send(ngx_kexec_kernel_t *kernel, ngx_str_t *id,
    ngx_str_t *code, ngx_uint_t silent)
{
    ngx_kexec_request_msg_t  req;

    ngx_memzero(&req, sizeof(ngx_kexec_request_msg_t));

    req.id = *id;

    if (code) {
        req.code = *code;
        req.silent = silent ? 1 : 0;

    } else {
        req.info = 1;
    }

    return ngx_kexec_kernel_write(kernel, &req);
}


ngx_int_t
ngx_kexec_kernel_answer(ngx_kexec_kernel_t *kernel, ngx_str_t *id,
    ngx_str_t *header)
{
    ngx_kexec_request_msg_t  req;

    ngx_memzero(&req, sizeof(ngx_kexec_request_msg_t));

    req.id = *id;
    req.input = 1;

    /* code can forge a header of any size, which Jupyter would refuse */

    if (header->len < NGX_KEXEC_KERNEL_HEADER) {
        req.parent = *header;
    }

    return ngx_kexec_kernel_write(kernel, &req);
}


static ngx_int_t
ngx_kexec_kernel_write(ngx_kexec_kernel_t *kernel,
    ngx_kexec_request_msg_t *req)
{
    u_char       date[sizeof("1970-01-01T00:00:00.000Z")];
    ngx_tm_t     tm;
    ngx_time_t  *tp;

    if (kernel->link == NULL || !kernel->open) {
        return NGX_ERROR;
    }

    tp = ngx_timeofday();
    ngx_gmtime(tp->sec, &tm);

    req->date.data = date;
    req->date.len = ngx_sprintf(date, "%4d-%02d-%02dT%02d:%02d:%02d.%03MZ",
                                tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                                tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec,
                                tp->msec)
                    - date;

    req->session = kernel->session;

    return ngx_kexec_link_send(kernel->link, req);
}


void
ngx_kexec_kernel_release(ngx_kexec_kernel_t *kernel)
{
    kernel->user = NULL;
    kernel->data = NULL;

    if (kernel->link == NULL || !kernel->open || ngx_exiting) {
        ngx_kexec_kernel_free(kernel);
        return;
    }

    ngx_kexec_link_idle(kernel->link, 1);
}


void
ngx_kexec_kernel_other(ngx_kexec_kernel_t *kernel)
{
    kernel->session_id.len = kernel->session.len + 1;
}


void
ngx_kexec_kernel_discard(ngx_kexec_kernel_t *kernel)
{
    ngx_kexec_kernel_free(kernel);
}


void
ngx_kexec_kernel_deleted(ngx_kexec_ref_t *context)
{
    ngx_kexec_kernel_t  *kernel;

    if (context->index >= ngx_kexec_kernels_n) {
        return;
    }

    kernel = ngx_kexec_kernels[context->index];

    if (kernel && kernel->user == NULL
        && kernel->context.generation == context->generation)
    {
        ngx_kexec_kernel_free(kernel);
    }
}


static void
ngx_kexec_kernel_opened(ngx_kexec_link_t *link)
{
    ngx_kexec_kernel_t  *kernel;

    kernel = ngx_kexec_link_data(link);

    kernel->open = 1;

    if (kernel->user) {
        kernel->user->opened(kernel->data);
    }
}


static void
ngx_kexec_kernel_message(ngx_kexec_link_t *link, ngx_kexec_message_t *msg)
{
    ngx_kexec_kernel_t  *kernel;

    kernel = ngx_kexec_link_data(link);

    if (ngx_kexec_link_skipped(link)) {

        if (kernel->user) {
            kernel->user->skipped(kernel->data);
        }

        return;
    }

    if (kernel->user) {
        kernel->user->message(kernel->data, msg);
        return;
    }

    ngx_kexec_kernel_foreign(kernel, msg);

    if (msg->type == NGX_KEXEC_MSG_SHUTDOWN_REPLY) {

        /* all that is seen of a restart that somebody asks Jupyter for */

        ngx_kexec_kernel_lost(kernel, NGX_KEXEC_KERNEL_RESTARTED);
        return;
    }

    if (msg->type != NGX_KEXEC_MSG_STATUS) {
        return;
    }

    /* an idle kernel that dies takes its variables along: the next one asks */

    switch (ngx_kexec_message_state(msg)) {

    case NGX_KEXEC_STATE_STARTING:

        /* a process says so first of all: a ready one was replaced */

    case NGX_KEXEC_STATE_RESTARTING:
    case NGX_KEXEC_STATE_AUTORESTARTING:
        ngx_kexec_kernel_lost(kernel, NGX_KEXEC_KERNEL_RESTARTED);
        return;

    case NGX_KEXEC_STATE_DEAD:
        ngx_kexec_kernel_lost(kernel, NGX_KEXEC_KERNEL_DEAD);
        return;

    default:
        return;
    }
}


/*
 * Code can say so as often as it likes: all workers wait for the zone's lock,
 * so it is taken only for what is news.
 */

static void
ngx_kexec_kernel_lost(ngx_kexec_kernel_t *kernel,
    ngx_kexec_kernel_lost_e lost)
{
    if (lost <= kernel->lost) {
        return;
    }

    kernel->lost = lost;
    kernel->fresh = 1;

    ngx_kexec_zone_kernel_lost(kernel->zone, &kernel->context, &kernel->id,
                               lost == NGX_KEXEC_KERNEL_DEAD);
}


/*
 * Does the kernel run somebody else's code?  It does from that one's busy to
 * its idle.  Jupyter's own questions have our session, or are short.
 */

void
ngx_kexec_kernel_foreign(ngx_kexec_kernel_t *kernel, ngx_kexec_message_t *msg)
{
    uint32_t           mark;
    ngx_str_t          session, type;
    ngx_kexec_state_e  state;

    if (msg->type != NGX_KEXEC_MSG_STATUS || msg->parent_id.len == 0) {
        return;
    }

    mark = ngx_crc32_short(msg->parent_id.data, msg->parent_id.len) | 1;
    state = ngx_kexec_message_state(msg);

    if (state == NGX_KEXEC_STATE_IDLE && mark == kernel->foreign) {
        kernel->foreign = 0;
        return;
    }

    if (state != NGX_KEXEC_STATE_BUSY) {
        return;
    }

    ngx_kexec_message_request(msg, &session, &type);

    if (session.len == 0
        || (session.len >= kernel->session.len
            && ngx_memcmp(session.data, kernel->session.data,
                          kernel->session.len) == 0)
        || (type.len == sizeof("kernel_info_request") - 1
            && ngx_memcmp(type.data, "kernel_info_request", type.len) == 0))
    {
        return;
    }

    kernel->foreign = mark;
}


static void
ngx_kexec_kernel_closed(ngx_kexec_link_t *link, ngx_uint_t status,
    const char *reason)
{
    ngx_kexec_kernel_t  *kernel;

    kernel = ngx_kexec_link_data(link);

    kernel->link = NULL;
    kernel->open = 0;

    if (kernel->user) {
        kernel->user->closed(kernel->data, status, reason);
        return;
    }

    ngx_kexec_kernel_free(kernel);
}


/*
 * Jupyter leaves the link of a deleted kernel open.  Where another worker
 * deleted the context, or gave it another kernel, this one finds out here.
 */

static void
ngx_kexec_kernel_sweep(ngx_event_t *ev)
{
    ngx_uint_t            i, left;
    ngx_kexec_kernel_t   *kernel;
    ngx_kexec_context_t   ctx;

    left = 0;

    for (i = 0; i < ngx_kexec_kernels_n; i++) {

        kernel = ngx_kexec_kernels[i];

        if (kernel == NULL) {
            continue;
        }

        if (kernel->user == NULL
            && (ngx_kexec_zone_get(kernel->zone, &kernel->context, &ctx)
                != NGX_OK
                || kernel->id.len != ctx.kernel.len
                || ngx_memcmp(kernel->id.data, ctx.kernel.data,
                              kernel->id.len)
                   != 0))
        {
            ngx_kexec_kernel_free(kernel);
            continue;
        }

        left++;
    }

    if (left && !ngx_exiting) {
        ngx_add_timer(ev, NGX_KEXEC_KERNEL_SWEEP_TIME);
    }
}


static void
ngx_kexec_kernel_free(ngx_kexec_kernel_t *kernel)
{
    if (kernel->link) {
        ngx_kexec_link_close(kernel->link);
        kernel->link = NULL;
    }

    if (kernel->context.index < ngx_kexec_kernels_n
        && ngx_kexec_kernels[kernel->context.index] == kernel)
    {
        ngx_kexec_kernels[kernel->context.index] = NULL;
    }

    /* a handler of the link's may still use it */

    kernel->freeing.handler = ngx_kexec_kernel_freeing;
    kernel->freeing.data = kernel;
    kernel->freeing.log = ngx_cycle->log;

    ngx_post_event(&kernel->freeing, &ngx_posted_events);
}


static void
ngx_kexec_kernel_freeing(ngx_event_t *ev)
{
    ngx_kexec_kernel_t *kernel = ev->data;

    ngx_destroy_pool(kernel->pool);
}
