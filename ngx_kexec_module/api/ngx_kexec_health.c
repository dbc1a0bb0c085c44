
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_contexts.h>
#include <ngx_kexec_health.h>


/* an answer of Jupyter's is as good as new for this long */
#define NGX_KEXEC_HEALTH_FRESH_TIME  1000

/* a Jupyter that is too busy to answer counts as alive for this long */
#define NGX_KEXEC_HEALTH_KEPT_TIME   30000

/* how long an answer is waited for */
#define NGX_KEXEC_HEALTH_WAIT_TIME   2000

#define NGX_KEXEC_STARTUP_TIME       500


/* a default context that is made at start-up */

typedef struct {
    ngx_http_kexec_loc_conf_t  *conf;
    ngx_kexec_zone_t           *zone;
    ngx_str_t                   language;
    ngx_kexec_execution_t      *execution;
    ngx_uint_t                  len;
    u_char                      why[NGX_KEXEC_FAILURE_LEN];
    unsigned                    settled:1;      /* ready once, or no kernel */
} ngx_kexec_default_t;


/* what this worker knows of a location's Jupyter */

typedef struct {
    ngx_http_kexec_loc_conf_t  *conf;
    ngx_kexec_server_t         *server;
    ngx_kexec_context_t        *where;          /* the server's address */
    ngx_uint_t                  n;              /* servers asked */
    ngx_pool_t                 *pool;
    ngx_kexec_http_t           *http;
    ngx_queue_t                 waiters;
    ngx_msec_t                  good;           /* the last good answer */
    unsigned                    known:1;        /* there was one */
} ngx_kexec_health_t;


/* a GET /health that waits for Jupyter */

typedef struct {
    ngx_queue_t                 queue;
    ngx_http_request_t         *request;
} ngx_kexec_health_waiter_t;


static void ngx_kexec_startup_timer(ngx_event_t *ev);
static ngx_str_t *ngx_kexec_startup_missing(ngx_http_kexec_loc_conf_t *conf,
    ngx_str_t *why);
static void ngx_kexec_startup_try(ngx_kexec_default_t *d);
static void ngx_kexec_startup_made(void *data, ngx_uint_t status,
    ngx_str_t *sentence, ngx_kexec_context_t *ctx);
static void ngx_kexec_startup_failed(ngx_kexec_default_t *d,
    ngx_uint_t status, ngx_str_t *sentence);

static ngx_kexec_health_t *ngx_kexec_health(ngx_http_kexec_loc_conf_t *conf);
static ngx_int_t ngx_kexec_health_ask(ngx_kexec_health_t *health,
    ngx_http_request_t *r);
static ngx_int_t ngx_kexec_health_call(ngx_kexec_health_t *health);
static void ngx_kexec_health_handler_done(ngx_kexec_http_t *http);
static void ngx_kexec_health_answer(ngx_http_request_t *r,
    ngx_uint_t status, ngx_str_t *text);
static void ngx_kexec_health_cleanup(void *data);


/* of this worker; made by ngx_kexec_startup() and on first use */

static ngx_array_t       *ngx_kexec_defaults;
static ngx_array_t       *ngx_kexec_healths;
static ngx_event_t        ngx_kexec_startup_event;
static ngx_connection_t   ngx_kexec_startup_dumb;


ngx_int_t
ngx_kexec_startup(ngx_cycle_t *cycle, ngx_http_kexec_main_conf_t *kmcf)
{
    ngx_str_t                   *language;
    ngx_uint_t                   i, n;
    ngx_kexec_default_t         *d;
    ngx_http_kexec_loc_conf_t  **conf;

    ngx_kexec_healths = ngx_array_create(cycle->pool, 4,
                                         sizeof(ngx_kexec_health_t *));
    ngx_kexec_defaults = ngx_array_create(cycle->pool, 4,
                                          sizeof(ngx_kexec_default_t));

    if (ngx_kexec_healths == NULL || ngx_kexec_defaults == NULL) {
        return NGX_ERROR;
    }

    conf = kmcf->startup.elts;

    for (i = 0; i < kmcf->startup.nelts; i++) {

        language = conf[i]->defaults->elts;

        for (n = 0; n < conf[i]->defaults->nelts; n++) {

            d = ngx_array_push(ngx_kexec_defaults);
            if (d == NULL) {
                return NGX_ERROR;
            }

            ngx_memzero(d, sizeof(ngx_kexec_default_t));

            d->conf = conf[i];
            d->zone = kmcf->zone;
            d->language = language[n];
        }
    }

    if (ngx_kexec_defaults->nelts == 0) {
        return NGX_OK;
    }

    /* debug logs take an event's data for a connection */

    ngx_kexec_startup_dumb.fd = (ngx_socket_t) -1;

    ngx_memzero(&ngx_kexec_startup_event, sizeof(ngx_event_t));

    ngx_kexec_startup_event.handler = ngx_kexec_startup_timer;
    ngx_kexec_startup_event.data = &ngx_kexec_startup_dumb;
    ngx_kexec_startup_event.log = cycle->log;
    ngx_kexec_startup_event.cancelable = 1;

    ngx_add_timer(&ngx_kexec_startup_event, 1);

    return NGX_OK;
}


static void
ngx_kexec_startup_timer(ngx_event_t *ev)
{
    ngx_uint_t            i, left;
    ngx_kexec_default_t  *d;

    if (ngx_exiting) {
        return;
    }

    left = 0;
    d = ngx_kexec_defaults->elts;

    for (i = 0; i < ngx_kexec_defaults->nelts; i++) {

        if (!d[i].settled && d[i].execution == NULL) {
            ngx_kexec_startup_try(&d[i]);
        }

        if (!d[i].settled) {
            left++;
        }
    }

    if (left) {
        ngx_add_timer(ev, NGX_KEXEC_STARTUP_TIME);
    }
}


/* any worker may do it: the zone lets only one */

static void
ngx_kexec_startup_try(ngx_kexec_default_t *d)
{
    ngx_int_t            rc;
    ngx_str_t            text;
    ngx_kexec_make_t     make;
    ngx_kexec_context_t  ctx;

    if (ngx_kexec_zone_seen(d->zone) == NGX_KEXEC_SEEN_NONE) {
        return;
    }

    rc = ngx_kexec_zone_default(d->zone, &d->language, &ctx);

    if (rc == NGX_OK) {

        switch (ctx.state) {

        case NGX_KEXEC_CONTEXT_READY:
            d->settled = 1;
            return;

        case NGX_KEXEC_CONTEXT_FAILED:

            text.data = ctx.failure;
            text.len = ctx.failure_len;
            ngx_kexec_startup_failed(d, ctx.failure_status, &text);

            if (d->settled) {
                return;
            }

            break;

        default:
            ngx_str_set(&text, "the kernel is starting");
            ngx_kexec_startup_failed(d, 0, &text);
            return;
        }
    }

    ngx_memzero(&make, sizeof(ngx_kexec_make_t));

    make.conf = d->conf;
    make.zone = d->zone;
    make.language = &d->language;
    make.cwd = &d->conf->cwd;
    make.is_default = 1;
    make.created = ngx_kexec_startup_made;
    make.data = d;
    make.execution = &d->execution;

    if (ngx_kexec_context_make(&make, &ctx) == NGX_ERROR) {
        text.data = (u_char *) make.sentence;
        text.len = ngx_strlen(make.sentence);
        ngx_kexec_startup_failed(d, make.status, &text);
    }
}


static void
ngx_kexec_startup_made(void *data, ngx_uint_t status, ngx_str_t *sentence,
    ngx_kexec_context_t *ctx)
{
    ngx_kexec_default_t *d = data;

    d->execution = NULL;

    if (status == NGX_HTTP_OK) {
        d->settled = 1;
        return;
    }

    ngx_kexec_startup_failed(d, status, sentence);
}


static void
ngx_kexec_startup_failed(ngx_kexec_default_t *d, ngx_uint_t status,
    ngx_str_t *sentence)
{
    if (status == NGX_HTTP_BAD_REQUEST) {

        /* trying again will not bring a kernel or a directory */

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "default context \"%V\" is left out: %V", &d->language,
                      sentence);

        d->settled = 1;
        return;
    }

    if (status
        && (d->len != sentence->len
            || ngx_memcmp(d->why, sentence->data, d->len) != 0))
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "default context \"%V\" could not be made: %V",
                      &d->language, sentence);
    }

    d->len = ngx_min(sentence->len, NGX_KEXEC_FAILURE_LEN);
    ngx_memcpy(d->why, sentence->data, d->len);
}


/*
 * NULL if all default contexts of the location have been ready once; else
 * the language that is not, and *why.
 */

static ngx_str_t *
ngx_kexec_startup_missing(ngx_http_kexec_loc_conf_t *conf, ngx_str_t *why)
{
    ngx_uint_t            i;
    ngx_kexec_default_t  *d;

    d = ngx_kexec_defaults->elts;

    for (i = 0; i < ngx_kexec_defaults->nelts; i++) {

        /* limit_except and "if" have a configuration of their own */

        if (d[i].conf->defaults != conf->defaults
            || d[i].conf->upstream.upstream != conf->upstream.upstream
            || d[i].settled)
        {
            continue;
        }

        if (d[i].execution == NULL) {

            /* another worker may have been quicker */

            ngx_kexec_startup_try(&d[i]);

            if (d[i].settled) {
                continue;
            }
        }

        why->data = d[i].why;
        why->len = d[i].len;

        if (why->len == 0) {
            ngx_str_set(why, "the kernel is starting");
        }

        return &d[i].language;
    }

    return NULL;
}


ngx_int_t
ngx_kexec_health_handler(ngx_http_request_t *r, ngx_str_t *id)
{
    ngx_int_t                   rc;
    ngx_str_t                  *language, why, text;
    ngx_kexec_health_t         *health;
    ngx_http_kexec_loc_conf_t  *conf;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    r->main->count++;

    conf = ngx_http_get_module_loc_conf(r, ngx_http_kexec_module);

    language = ngx_kexec_startup_missing(conf, &why);

    if (language) {
        text.len = language->len + 2 + why.len;
        text.data = ngx_pnalloc(r->pool, text.len);

        if (text.data == NULL) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return NGX_DONE;
        }

        ngx_sprintf(text.data, "%V: %V", language, &why);

        ngx_kexec_health_answer(r, NGX_HTTP_SERVICE_UNAVAILABLE, &text);
        return NGX_DONE;
    }

    health = ngx_kexec_health(conf);

    if (health == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_DONE;
    }

    if (health->known
        && ngx_current_msec - health->good < NGX_KEXEC_HEALTH_FRESH_TIME)
    {
        ngx_kexec_health_answer(r, NGX_HTTP_OK, NULL);
        return NGX_DONE;
    }

    if (ngx_kexec_health_ask(health, r) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    return NGX_DONE;
}


static ngx_kexec_health_t *
ngx_kexec_health(ngx_http_kexec_loc_conf_t *conf)
{
    ngx_uint_t            i;
    ngx_kexec_health_t  **health, *h;

    health = ngx_kexec_healths->elts;

    for (i = 0; i < ngx_kexec_healths->nelts; i++) {
        if (health[i]->conf == conf) {
            return health[i];
        }
    }

    h = ngx_pcalloc(ngx_kexec_healths->pool, sizeof(ngx_kexec_health_t));
    health = ngx_array_push(ngx_kexec_healths);

    if (h == NULL || health == NULL) {
        return NULL;
    }

    h->conf = conf;
    ngx_queue_init(&h->waiters);

    *health = h;

    return h;
}


/* r waits for the call that is under way, or for a new one */

static ngx_int_t
ngx_kexec_health_ask(ngx_kexec_health_t *health, ngx_http_request_t *r)
{
    ngx_str_t                   text;
    ngx_http_cleanup_t         *cln;
    ngx_kexec_health_waiter_t  *waiter;

    cln = ngx_http_cleanup_add(r, sizeof(ngx_kexec_health_waiter_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    if (health->http == NULL) {

        /* the last call's server is not needed any more */

        if (health->pool) {
            ngx_destroy_pool(health->pool);
        }

        health->pool = ngx_create_pool(4096, ngx_cycle->log);
        if (health->pool == NULL) {
            return NGX_ERROR;
        }

        health->where = ngx_palloc(health->pool, sizeof(ngx_kexec_context_t));
        health->server = ngx_kexec_server_create(health->conf, r,
                                                 health->pool);

        if (health->where == NULL || health->server == NULL) {
            return NGX_ERROR;
        }

        health->server->timeout = NGX_KEXEC_HEALTH_WAIT_TIME;
        health->n = 0;

        if (ngx_kexec_health_call(health) != NGX_OK) {
            ngx_str_set(&text, "No Jupyter Server of the upstream is "
                        "available");
            ngx_kexec_health_answer(r, NGX_HTTP_SERVICE_UNAVAILABLE, &text);
            return NGX_OK;
        }
    }

    waiter = cln->data;
    waiter->request = r;

    ngx_queue_insert_tail(&health->waiters, &waiter->queue);

    cln->handler = ngx_kexec_health_cleanup;

    return ngx_kexec_park(r);
}


/* asks the upstream block's next live server */

static ngx_int_t
ngx_kexec_health_call(ngx_kexec_health_t *health)
{
    if (ngx_kexec_peer(health->conf, health->n++, health->where) != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_kexec_server_at(health->server, health->where);

    health->http = ngx_kexec_jupyter_status(health->server,
                                            ngx_kexec_health_handler_done,
                                            health, ngx_cycle->log);

    return health->http ? NGX_OK : NGX_ERROR;
}


static void
ngx_kexec_health_handler_done(ngx_kexec_http_t *http)
{
    ngx_str_t                   text, *why;
    ngx_uint_t                  busy;
    ngx_queue_t                *q;
    ngx_connection_t           *c;
    ngx_http_request_t         *r;
    ngx_kexec_health_t         *health;
    ngx_kexec_health_waiter_t  *waiter;
    u_char                      buf[128];

    health = http->data;
    health->http = NULL;

    if (http->status == 0 && !http->connected
        && ngx_kexec_health_call(health) == NGX_OK)
    {
        return;
    }

    why = NULL;

    if (http->status == NGX_HTTP_OK) {
        health->known = 1;
        health->good = ngx_current_msec;

    } else {

        /* Jupyter 1.23 answers 500 while a kernel is starting */

        busy = http->status >= 500
               || (http->status == 0
                   && ngx_strcmp(http->error, "timed out") == 0);

        text.data = buf;

        if (http->status) {
            text.len = ngx_snprintf(buf, sizeof(buf), "Jupyter answers %ui",
                                    http->status)
                       - buf;
        } else {
            text.len = ngx_snprintf(buf, sizeof(buf),
                                    "Jupyter is not reachable: %s",
                                    http->error)
                       - buf;
        }

        if (!busy || !health->known
            || ngx_current_msec - health->good > NGX_KEXEC_HEALTH_KEPT_TIME)
        {
            why = &text;
        }
    }

    /* each answer may end its request, and start the next one's call */

    while (!ngx_queue_empty(&health->waiters)) {

        q = ngx_queue_head(&health->waiters);
        waiter = ngx_queue_data(q, ngx_kexec_health_waiter_t, queue);

        r = waiter->request;
        c = r->connection;

        ngx_queue_remove(q);
        waiter->request = NULL;

        ngx_http_set_log_request(c->log, r);

        ngx_kexec_health_answer(r, why ? NGX_HTTP_SERVICE_UNAVAILABLE
                                       : NGX_HTTP_OK, why);
        ngx_http_run_posted_requests(c);

        if (health->http) {
            break;
        }
    }
}


static void
ngx_kexec_health_answer(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *text)
{
    ngx_str_t  ok;

    if (text) {
        ngx_kexec_answer_text(r, status, text);
        return;
    }

    ngx_str_set(&ok, "\"OK\"");
    ngx_kexec_answer_json(r, status, &ok);
}


static void
ngx_kexec_health_cleanup(void *data)
{
    ngx_kexec_health_waiter_t *waiter = data;

    if (waiter->request) {
        ngx_queue_remove(&waiter->queue);
        waiter->request = NULL;
    }
}
