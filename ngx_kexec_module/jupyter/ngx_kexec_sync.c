
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_identity.h>
#include <ngx_kexec_sync.h>


/*
 * Jupyter is the truth, the zone is a cache.  One worker for all asks each
 * server for its sessions, at once when the zone is new, and then every
 * kexec_sync: contexts that the zone does not know are adopted, sessions of
 * contexts that were never ready are deleted.  A context whose session is gone
 * has no kernel until it is used again.
 */


#define NGX_KEXEC_SYNC_TICK_TIME   1000

/* as long as a server did not answer yet */
#define NGX_KEXEC_SYNC_RETRY_TIME  1000

/* contexts that are looked at in one turn */
#define NGX_KEXEC_SYNC_IDLE   4
#define NGX_KEXEC_IDLE_TICK_TIME   1000

/* a context without a kernel that nobody used for this long is forgotten */
#define NGX_KEXEC_LOST_TIME        3600000


/* a session of ours that the zone does not know */

typedef struct {
    ngx_kexec_id_t              session;
    ngx_msec_t                  since;
} ngx_kexec_stranger_t;


/* a server that was asked in this round */

typedef struct {
    socklen_t                   socklen;
    u_char                      sockaddr[NGX_SOCKADDRLEN];
    ngx_uint_t                  answered;
} ngx_kexec_sync_server_t;


/* this worker's part */

typedef struct {
    ngx_http_kexec_main_conf_t *kmcf;
    ngx_kexec_expire_pt         expire;
    ngx_event_t                 timer;
    ngx_connection_t            dumb;
    ngx_uint_t                  hand;           /* in search of idle ones */

    /* a round over all servers */
    ngx_pool_t                 *pool;
    ngx_uint_t                  npeer;
    ngx_http_kexec_loc_conf_t  *conf;
    ngx_kexec_server_t         *server;
    ngx_kexec_context_t        *where;
    ngx_kexec_http_t           *http;
    ngx_array_t                *contexts;       /* before it began */
    ngx_array_t                *servers;        /* ngx_kexec_sync_server_t */
    ngx_array_t                *seen;           /* ngx_kexec_id_t */
    ngx_array_t                *doomed;         /* ngx_kexec_id_t */
    ngx_uint_t                  adopted;
    ngx_uint_t                  why_len;
    u_char                      why[NGX_KEXEC_FAILURE_LEN];
    unsigned                    answered:1;
    unsigned                    failed:1;

    /* of this round and of the last one */
    ngx_array_t                *strangers;
    ngx_array_t                *last_strangers;
} ngx_kexec_sync_t;


static void ngx_kexec_sync_timer(ngx_event_t *ev);
static void ngx_kexec_sync_expire(ngx_kexec_sync_t *sync);
static ngx_http_kexec_loc_conf_t *ngx_kexec_sync_conf(ngx_kexec_sync_t *sync,
    ngx_kexec_context_t *ctx);
static void ngx_kexec_sync_start(ngx_kexec_sync_t *sync);
static void ngx_kexec_sync_next(ngx_kexec_sync_t *sync);
static void ngx_kexec_sync_handler(ngx_kexec_http_t *http);
static void ngx_kexec_sync_asked(ngx_kexec_sync_t *sync, ngx_uint_t answered);
static ngx_uint_t ngx_kexec_sync_answered(ngx_kexec_sync_t *sync,
    ngx_kexec_context_t *ctx);
static void ngx_kexec_sync_failed(ngx_kexec_sync_t *sync,
    ngx_kexec_http_t *http);
static ngx_int_t ngx_kexec_sync_session(ngx_kexec_sync_t *sync,
    ngx_kexec_jupyter_session_t *session);
static ngx_uint_t ngx_kexec_sync_known(ngx_kexec_sync_t *sync,
    ngx_kexec_id_t *session);
static ngx_msec_t ngx_kexec_sync_stranger(ngx_kexec_sync_t *sync,
    ngx_kexec_id_t *session);
static void ngx_kexec_sync_adopt(ngx_kexec_sync_t *sync,
    ngx_kexec_context_t *ctx);
static void ngx_kexec_sync_delete(ngx_kexec_sync_t *sync);
static void ngx_kexec_sync_deleted(ngx_kexec_http_t *http);
static void ngx_kexec_sync_end(ngx_kexec_sync_t *sync);
static void ngx_kexec_sync_lapse(ngx_kexec_zone_t *zone,
    ngx_kexec_context_t *ctx);
static ngx_uint_t ngx_kexec_sync_same(ngx_kexec_id_t *one,
    ngx_kexec_id_t *two);


static ngx_kexec_sync_t  ngx_kexec_sync;


void
ngx_kexec_sync_init(ngx_cycle_t *cycle, ngx_http_kexec_main_conf_t *kmcf,
    ngx_kexec_expire_pt expire)
{
    ngx_kexec_sync_t  *sync;

    sync = &ngx_kexec_sync;

    sync->kmcf = kmcf;
    sync->expire = expire;

    /* debug logs take an event's data for a connection */

    sync->dumb.fd = (ngx_socket_t) -1;

    sync->timer.handler = ngx_kexec_sync_timer;
    sync->timer.data = &sync->dumb;
    sync->timer.log = cycle->log;
    sync->timer.cancelable = 1;

    ngx_add_timer(&sync->timer, 1);
}


static void
ngx_kexec_sync_timer(ngx_event_t *ev)
{
    ngx_msec_t                   interval;
    ngx_kexec_sync_t            *sync;
    ngx_http_kexec_main_conf_t  *kmcf;

    if (ngx_exiting) {
        return;
    }

    sync = &ngx_kexec_sync;
    kmcf = sync->kmcf;

    interval = ngx_kexec_zone_seen(kmcf->zone) == NGX_KEXEC_SEEN_ALL
               ? kmcf->sync : ngx_min(kmcf->sync, NGX_KEXEC_SYNC_RETRY_TIME);

    if (sync->pool == NULL
        && ngx_kexec_zone_turn(kmcf->zone, NGX_KEXEC_TURN_SYNC, interval))
    {
        ngx_kexec_sync_start(sync);
    }

    if (kmcf->idle_timeout
        && ngx_kexec_zone_turn(kmcf->zone, NGX_KEXEC_TURN_IDLE,
                               NGX_KEXEC_IDLE_TICK_TIME))
    {
        ngx_kexec_sync_expire(sync);
    }

    ngx_add_timer(ev, ngx_min(interval, NGX_KEXEC_SYNC_TICK_TIME));
}


/* contexts that nobody used for kexec_context_idle_timeout */

static void
ngx_kexec_sync_expire(ngx_kexec_sync_t *sync)
{
    ngx_uint_t                   i, n;
    ngx_kexec_context_t          ctx[NGX_KEXEC_SYNC_IDLE];
    ngx_http_kexec_loc_conf_t   *conf;
    ngx_http_kexec_main_conf_t  *kmcf;

    kmcf = sync->kmcf;

    n = ngx_kexec_zone_idle(kmcf->zone, kmcf->idle_timeout, &sync->hand, ctx,
                            NGX_KEXEC_SYNC_IDLE);

    for (i = 0; i < n; i++) {
        conf = ngx_kexec_sync_conf(sync, &ctx[i]);

        if (conf) {
            sync->expire(kmcf, conf, &ctx[i]);
        }
    }
}


/* the location with kexec_pass, if the context's server is one of its */

static ngx_http_kexec_loc_conf_t *
ngx_kexec_sync_conf(ngx_kexec_sync_t *sync, ngx_kexec_context_t *ctx)
{
    ngx_uint_t                  n;
    ngx_kexec_context_t         where;
    ngx_http_kexec_loc_conf_t  *conf;

    conf = sync->kmcf->pass;

    for (n = 0; conf && ngx_kexec_peer(conf, n, &where) == NGX_OK; n++) {

        if (ngx_cmp_sockaddr((struct sockaddr *) where.sockaddr, where.socklen,
                             (struct sockaddr *) ctx->sockaddr, ctx->socklen,
                             1)
            == NGX_OK)
        {
            return conf;
        }
    }

    return NULL;
}


static void
ngx_kexec_sync_start(ngx_kexec_sync_t *sync)
{
    ngx_pool_t  *pool, *strangers;

    pool = ngx_create_pool(4096, ngx_cycle->log);
    if (pool == NULL) {
        return;
    }

    strangers = ngx_create_pool(1024, ngx_cycle->log);
    if (strangers == NULL) {
        ngx_destroy_pool(pool);
        return;
    }

    sync->contexts = ngx_kexec_zone_list(sync->kmcf->zone, pool);
    sync->where = ngx_palloc(pool, sizeof(ngx_kexec_context_t));
    sync->servers = ngx_array_create(pool, 2, sizeof(ngx_kexec_sync_server_t));
    sync->seen = ngx_array_create(pool, 16, sizeof(ngx_kexec_id_t));
    sync->doomed = ngx_array_create(pool, 4, sizeof(ngx_kexec_id_t));
    sync->strangers = ngx_array_create(strangers, 4,
                                       sizeof(ngx_kexec_stranger_t));

    if (sync->contexts == NULL || sync->where == NULL
        || sync->servers == NULL || sync->seen == NULL
        || sync->doomed == NULL || sync->strangers == NULL)
    {
        ngx_destroy_pool(strangers);
        ngx_destroy_pool(pool);
        return;
    }

    sync->pool = pool;
    sync->npeer = 0;
    sync->adopted = 0;
    sync->why_len = 0;
    sync->answered = 0;
    sync->failed = 0;

    ngx_kexec_sync_next(sync);
}


/* asks the next server; of a block's servers those that are not "down" */

static void
ngx_kexec_sync_next(ngx_kexec_sync_t *sync)
{
    sync->conf = sync->kmcf->pass;

    /* where the token comes from a request there is none to ask with */

    while (sync->conf
           && !(sync->conf->token && sync->conf->token->lengths)
           && ngx_kexec_peer(sync->conf, sync->npeer++, sync->where) == NGX_OK)
    {
        sync->server = ngx_kexec_server_create(sync->conf, NULL, sync->pool);

        if (sync->server) {
            ngx_kexec_server_at(sync->server, sync->where);

            sync->http = ngx_kexec_jupyter_sessions(sync->server,
                                                    ngx_kexec_sync_handler,
                                                    sync, ngx_cycle->log);
            if (sync->http) {
                return;
            }
        }

        ngx_kexec_sync_asked(sync, 0);
    }

    ngx_kexec_sync_end(sync);
}


/* what the server at sync->where said, or did not say */

static void
ngx_kexec_sync_asked(ngx_kexec_sync_t *sync, ngx_uint_t answered)
{
    ngx_kexec_sync_server_t  *server;

    if (answered) {
        sync->answered = 1;

    } else {
        sync->failed = 1;
    }

    server = ngx_array_push(sync->servers);

    if (server) {
        server->socklen = sync->where->socklen;
        ngx_memcpy(server->sockaddr, sync->where->sockaddr, server->socklen);
        server->answered = answered;
    }
}


/*
 * Did the context's server tell all its sessions?  One that is "down", or whose
 * token only requests know, was not asked, and one address may have several
 * Jupyter Servers behind it.
 */

static ngx_uint_t
ngx_kexec_sync_answered(ngx_kexec_sync_t *sync, ngx_kexec_context_t *ctx)
{
    ngx_uint_t                i, answered;
    ngx_kexec_sync_server_t  *server;

    answered = 0;
    server = sync->servers->elts;

    for (i = 0; i < sync->servers->nelts; i++) {

        if (ngx_cmp_sockaddr((struct sockaddr *) server[i].sockaddr,
                             server[i].socklen,
                             (struct sockaddr *) ctx->sockaddr, ctx->socklen,
                             1)
            != NGX_OK)
        {
            continue;
        }

        if (!server[i].answered) {
            return 0;
        }

        answered = 1;
    }

    return answered;
}


static void
ngx_kexec_sync_handler(ngx_kexec_http_t *http)
{
    ngx_uint_t                    i, answered;
    ngx_array_t                  *sessions;
    ngx_kexec_sync_t             *sync;
    ngx_kexec_jupyter_session_t  *session;

    sync = http->data;
    sync->http = NULL;

    sessions = NULL;

    if (http->status == NGX_HTTP_OK) {
        sessions = ngx_kexec_jupyter_parse_sessions(sync->pool, &http->body);
    }

    if (sessions == NULL
        || ngx_kexec_sync_order(sync->pool, sessions) != NGX_OK)
    {
        ngx_kexec_sync_failed(sync, http);
        ngx_kexec_sync_next(sync);
        return;
    }

    answered = 1;

    /* from the youngest on; of one context, the one that is to have it */

    session = sessions->elts;

    for (i = sessions->nelts; i > 0; i--) {
        if (ngx_kexec_sync_session(sync, &session[i - 1]) != NGX_OK) {
            answered = 0;
        }
    }

    ngx_kexec_sync_asked(sync, answered);
    ngx_kexec_sync_delete(sync);
}


static void
ngx_kexec_sync_failed(ngx_kexec_sync_t *sync, ngx_kexec_http_t *http)
{
    u_char  *p, *last;

    ngx_kexec_sync_asked(sync, 0);

    p = sync->why;
    last = p + NGX_KEXEC_FAILURE_LEN;

    switch (http->status) {

    case 0:
        p = ngx_slprintf(p, last, "Jupyter is not reachable: %s",
                         http->error);
        break;

    case NGX_HTTP_UNAUTHORIZED:
    case NGX_HTTP_FORBIDDEN:
        p = ngx_slprintf(p, last, "Jupyter refused the server's token (%ui)",
                         http->status);
        break;

    case NGX_HTTP_OK:
        p = ngx_slprintf(p, last, "Jupyter's list of sessions could not be "
                         "read");
        break;

    default:
        p = ngx_slprintf(p, last, "Jupyter answers %ui when it is asked for "
                         "its sessions", http->status);
    }

    sync->why_len = p - sync->why;
}


static ngx_int_t
ngx_kexec_sync_session(ngx_kexec_sync_t *sync,
    ngx_kexec_jupyter_session_t *session)
{
    ngx_str_t             id;
    ngx_msec_t            age;
    ngx_kexec_id_t       *seen;
    ngx_kexec_context_t   ctx, known;

    /* also one that has another name by now */

    seen = ngx_array_push(sync->seen);
    if (seen == NULL) {
        return NGX_ERROR;
    }

    *seen = session->session;

    if (ngx_kexec_session_parse(session, &ctx) != NGX_OK) {
        return NGX_OK;
    }

    id.len = NGX_KEXEC_UUID_LEN;
    id.data = ctx.id;

    if (ngx_kexec_zone_find(sync->kmcf->zone, &id, &known) == NGX_OK
        && (ngx_kexec_sync_same(&known.session, &ctx.session)
            || known.state != NGX_KEXEC_CONTEXT_READY
            || known.epoch <= ctx.epoch))
    {
        return NGX_OK;
    }

    if (ngx_kexec_sync_known(sync, &ctx.session)) {

        /* it was deleted since Jupyter was asked */

        return NGX_OK;
    }

    if (ctx.prepared
        && ngx_kexec_zone_seen(sync->kmcf->zone) < NGX_KEXEC_SEEN_ALL)
    {
        ngx_kexec_sync_adopt(sync, &ctx);
        return NGX_OK;
    }

    /*
     * Another nginx may be making it, or this one has just deleted it.  After
     * twice the time that making one may take, neither is so.
     */

    age = ngx_kexec_sync_stranger(sync, &ctx.session);

    if (age < 2 * sync->conf->ready_timeout) {
        return NGX_OK;
    }

    if (ctx.prepared
        && ngx_kexec_zone_find(sync->kmcf->zone, &id, &known) != NGX_OK)
    {
        ngx_kexec_sync_adopt(sync, &ctx);
        return NGX_OK;
    }

    seen = ngx_array_push(sync->doomed);

    if (seen) {
        *seen = ctx.session;
    }

    return NGX_OK;
}


/* did the zone know the session when the round began? */

static ngx_uint_t
ngx_kexec_sync_known(ngx_kexec_sync_t *sync, ngx_kexec_id_t *session)
{
    ngx_uint_t            i;
    ngx_kexec_context_t  *ctx;

    ctx = sync->contexts->elts;

    for (i = 0; i < sync->contexts->nelts; i++) {
        if (ngx_kexec_sync_same(&ctx[i].session, session)) {
            return 1;
        }
    }

    return 0;
}


/* for how long the session is known to be a stranger */

static ngx_msec_t
ngx_kexec_sync_stranger(ngx_kexec_sync_t *sync, ngx_kexec_id_t *session)
{
    ngx_uint_t             i;
    ngx_msec_t             since;
    ngx_kexec_stranger_t  *stranger;

    since = ngx_current_msec;

    if (sync->last_strangers) {
        stranger = sync->last_strangers->elts;

        for (i = 0; i < sync->last_strangers->nelts; i++) {

            if (ngx_kexec_sync_same(&stranger[i].session, session)) {
                since = stranger[i].since;
                break;
            }
        }
    }

    stranger = ngx_array_push(sync->strangers);

    if (stranger) {
        stranger->session = *session;
        stranger->since = since;
    }

    return ngx_current_msec - since;
}


static void
ngx_kexec_sync_adopt(ngx_kexec_sync_t *sync, ngx_kexec_context_t *ctx)
{
    ngx_int_t  rc;

    ctx->socklen = sync->where->socklen;
    ngx_memcpy(ctx->sockaddr, sync->where->sockaddr, ctx->socklen);

    ctx->server_len = sync->where->server_len;
    ngx_memcpy(ctx->server, sync->where->server, ctx->server_len);

    do {
        rc = ngx_kexec_zone_adopt(sync->kmcf->zone, ctx);

    } while (rc == NGX_DECLINED
             && ngx_kexec_make_room(sync->kmcf->zone) == NGX_OK);

    if (rc == NGX_OK) {
        sync->adopted++;

    } else if (rc == NGX_DECLINED) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "the kexec zone is too small to hold context %*s, "
                      "which is left alone in Jupyter",
                      (size_t) NGX_KEXEC_UUID_LEN, ctx->id);
    }
}


/* sessions that nobody will ever use, one after the other */

static void
ngx_kexec_sync_delete(ngx_kexec_sync_t *sync)
{
    ngx_str_t        id;
    ngx_kexec_id_t  *doomed;

    while (sync->doomed->nelts) {

        doomed = sync->doomed->elts;
        doomed += --sync->doomed->nelts;

        id.len = doomed->len;
        id.data = doomed->data;

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "Jupyter session %V belongs to no context and is "
                      "deleted, its context was not made to the end", &id);

        sync->http = ngx_kexec_jupyter_delete(sync->server, &id,
                                              ngx_kexec_sync_deleted, sync,
                                              ngx_cycle->log);
        if (sync->http) {
            return;
        }
    }

    ngx_kexec_sync_next(sync);
}


static void
ngx_kexec_sync_deleted(ngx_kexec_http_t *http)
{
    ngx_kexec_sync_t  *sync;

    sync = http->data;
    sync->http = NULL;

    ngx_kexec_sync_delete(sync);
}


static void
ngx_kexec_sync_end(ngx_kexec_sync_t *sync)
{
    ngx_str_t             why;
    ngx_uint_t            i, n;
    ngx_kexec_id_t       *seen;
    ngx_kexec_zone_t     *zone;
    ngx_kexec_context_t  *ctx;

    zone = sync->kmcf->zone;

    if (sync->adopted) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "%ui contexts were found in Jupyter", sync->adopted);
    }

    seen = sync->seen->elts;
    ctx = sync->contexts->elts;

    for (i = 0; i < sync->contexts->nelts; i++) {

        if (ctx[i].kernel.len == 0) {
            ngx_kexec_sync_lapse(zone, &ctx[i]);
            continue;
        }

        if (!ngx_kexec_sync_answered(sync, &ctx[i])) {
            continue;
        }

        for (n = 0; n < sync->seen->nelts; n++) {
            if (ngx_kexec_sync_same(&seen[n], &ctx[i].session)) {
                break;
            }
        }

        if (n == sync->seen->nelts) {
            ngx_kexec_zone_lost(zone, &ctx[i]);
        }
    }

    why.len = sync->why_len;
    why.data = sync->why;

    ngx_kexec_zone_set_seen(zone, !sync->failed ? NGX_KEXEC_SEEN_ALL
                                  : sync->answered ? NGX_KEXEC_SEEN_SOME
                                                   : NGX_KEXEC_SEEN_TRIED,
                            &why);

    if (sync->last_strangers) {
        ngx_destroy_pool(sync->last_strangers->pool);
    }

    sync->last_strangers = sync->strangers;

    ngx_destroy_pool(sync->pool);
    sync->pool = NULL;
}


static void
ngx_kexec_sync_lapse(ngx_kexec_zone_t *zone, ngx_kexec_context_t *ctx)
{
    if (ngx_kexec_zone_lapse(zone, &ctx->ref, NGX_KEXEC_LOST_TIME) != NGX_OK) {
        return;
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "context %*s has had no kernel and was not used for an "
                  "hour, it is forgotten",
                  (size_t) NGX_KEXEC_UUID_LEN, ctx->id);
}


static ngx_uint_t
ngx_kexec_sync_same(ngx_kexec_id_t *one, ngx_kexec_id_t *two)
{
    return one->len == two->len
           && ngx_memcmp(one->data, two->data, one->len) == 0;
}
