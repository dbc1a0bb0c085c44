
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_contexts.h>
#include <ngx_kexec_envs.h>
#include <ngx_kexec_execute.h>


/* a POST /execute until its execution takes over; in the request's pool */

typedef struct {
    ngx_kexec_claim_t           claim;          /* watches a new context */
    ngx_http_request_t         *request;
    ngx_http_kexec_loc_conf_t  *conf;
    ngx_kexec_zone_t           *zone;
    json_t                     *body;
    ngx_str_t                   language;       /* normalized; or empty */
    ngx_str_t                   id;             /* or empty */
    ngx_kexec_context_t         ctx;
    ngx_event_t                 timer;
    ngx_msec_t                  since;
    unsigned                    waiting:1;
    unsigned                    made:1;         /* by this request */
} ngx_kexec_execute_t;


static void ngx_kexec_execute_body(ngx_http_request_t *r);
static size_t ngx_kexec_execute_size(json_t *body, size_t *code);
static ngx_int_t ngx_kexec_execute_check(ngx_kexec_execute_t *e);
static void ngx_kexec_execute_context(ngx_kexec_execute_t *e);
static void ngx_kexec_execute_wait(ngx_kexec_execute_t *e);
static void ngx_kexec_execute_notice(ngx_kexec_claim_t *claim);
static void ngx_kexec_execute_timer(ngx_event_t *ev);
static void ngx_kexec_execute_awaited(ngx_kexec_execute_t *e);
static void ngx_kexec_execute_unwait(ngx_kexec_execute_t *e);
static void ngx_kexec_execute_cleanup(void *data);
static void ngx_kexec_execute_start(ngx_kexec_execute_t *e);
static void ngx_kexec_execute_refuse(ngx_kexec_execute_t *e, ngx_int_t rc);


ngx_int_t
ngx_kexec_execute_handler(ngx_http_request_t *r, ngx_str_t *id)
{
    ngx_int_t  rc;

    r->request_body_in_single_buf = 1;

    rc = ngx_http_read_client_request_body(r, ngx_kexec_execute_body);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}


static void
ngx_kexec_execute_body(ngx_http_request_t *r)
{
    json_t               *body;
    ngx_kexec_execute_t  *e;

    if (ngx_kexec_body(r, ngx_kexec_execute_fields, &body) != NGX_OK) {
        return;
    }

    e = ngx_pcalloc(r->pool, sizeof(ngx_kexec_execute_t));
    if (e == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    e->request = r;
    e->conf = ngx_http_get_module_loc_conf(r, ngx_http_kexec_module);
    e->zone = ngx_kexec_request_zone(r);
    e->body = body;
    e->since = ngx_current_msec;

    if (ngx_kexec_execute_check(e) == NGX_OK) {
        ngx_kexec_execute_context(e);
    }
}


/* what the execution is to keep, however long it waits */

static size_t
ngx_kexec_execute_size(json_t *body, size_t *code)
{
    size_t       size;
    json_t      *value;
    const char  *name;

    *code = json_string_length(json_object_get(body, "code"));
    size = *code;

    json_object_foreach (json_object_get(body, "env_vars"), name, value) {
        size += ngx_strlen(name) + json_string_length(value);
    }

    return size;
}


static ngx_int_t
ngx_kexec_execute_check(ngx_kexec_execute_t *e)
{
    size_t               size, code;
    ngx_str_t            text, language;
    ngx_http_request_t  *r;

    r = e->request;

    ngx_kexec_schema_string(e->body, "context_id", &e->id);
    ngx_kexec_schema_string(e->body, "language", &language);

    size = ngx_kexec_execute_size(e->body, &code);

    if (size > e->conf->max_code_size) {

        text.data = ngx_pnalloc(r->pool, 128);
        if (text.data == NULL) {
            goto failed;
        }

        text.len = ngx_sprintf(text.data, "The code%s %uz bytes, "
                               "%uz are allowed (kexec_max_code_size)",
                               size == code ? " has"
                                            : " and its variables have",
                               size, e->conf->max_code_size)
                   - text.data;

        ngx_kexec_answer_text(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE, &text);
        return NGX_DONE;
    }

    if (e->id.len && language.len) {
        ngx_str_set(&text,
                    "Only one of context_id or language can be provided");
        ngx_kexec_answer_text(r, NGX_HTTP_BAD_REQUEST, &text);
        return NGX_DONE;
    }

    if (e->id.len && !(e->id.len == 7
                       && ngx_strncmp(e->id.data, "default", 7) == 0))
    {
        return NGX_OK;
    }

    e->id.len = 0;

    return ngx_kexec_language(r, &language, &e->language);

failed:

    ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);

    return NGX_DONE;
}


/* finds the context, or makes the default one of a language */

static void
ngx_kexec_execute_context(ngx_kexec_execute_t *e)
{
    ngx_int_t            rc;
    ngx_str_t            text;
    ngx_kexec_make_t     make;
    ngx_http_request_t  *r;

    r = e->request;

    if (e->id.len) {
        rc = ngx_kexec_zone_find(e->zone, &e->id, &e->ctx);

        if (rc != NGX_OK || e->ctx.state == NGX_KEXEC_CONTEXT_DELETING) {
            ngx_kexec_answer_unknown(e->request, &e->id);
            return;
        }

        ngx_kexec_execute_start(e);
        return;
    }

    rc = ngx_kexec_zone_default(e->zone, &e->language, &e->ctx);

    if (rc == NGX_OK && e->ctx.state == NGX_KEXEC_CONTEXT_READY) {
        ngx_kexec_execute_start(e);
        return;
    }

    if (rc != NGX_OK || e->ctx.state == NGX_KEXEC_CONTEXT_FAILED) {

        if (e->made) {
            ngx_str_set(&text, "The context was deleted while it was made");
            ngx_kexec_answer_text(r, NGX_HTTP_INTERNAL_SERVER_ERROR, &text);
            return;
        }

        e->made = 1;

        ngx_memzero(&make, sizeof(ngx_kexec_make_t));

        make.request = r;
        make.conf = e->conf;
        make.zone = e->zone;
        make.language = &e->language;
        make.cwd = &e->conf->cwd;
        make.is_default = 1;

        if (ngx_kexec_context_make(&make, &e->ctx) == NGX_ERROR) {
            text.data = (u_char *) make.sentence;
            text.len = ngx_strlen(make.sentence);
            ngx_kexec_answer_text(r, make.status, &text);
            return;
        }
    }

    ngx_kexec_execute_wait(e);
}


/* until the context is there, or is known to fail */

static void
ngx_kexec_execute_wait(ngx_kexec_execute_t *e)
{
    ngx_int_t            rc;
    ngx_str_t            text;
    ngx_http_cleanup_t  *cln;
    ngx_http_request_t  *r;

    r = e->request;

    e->claim.handler = ngx_kexec_execute_notice;
    e->claim.data = e;
    e->claim.context = e->ctx.ref;

    /* as many as can run and wait once the context is there */

    rc = ngx_kexec_claim_watch(e->zone, &e->claim, e->conf->queue_size + 1);

    if (rc == NGX_BUSY) {
        ngx_kexec_execute_refuse(e, rc);
        return;
    }

    if (rc == NGX_ERROR) {
        ngx_str_set(&text, "The server holds too many requests, "
                    "try again later");
        ngx_kexec_answer_text(r, NGX_HTTP_SERVICE_UNAVAILABLE, &text);
        return;
    }

    if (!e->waiting) {
        cln = ngx_http_cleanup_add(r, 0);
        if (cln == NULL) {
            ngx_kexec_claim_leave(&e->claim);
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }

        cln->handler = ngx_kexec_execute_cleanup;
        cln->data = e;

        e->timer.handler = ngx_kexec_execute_timer;
        e->timer.data = r->connection;
        e->timer.log = r->connection->log;

        e->waiting = 1;
    }

    ngx_add_timer(&e->timer, NGX_KEXEC_RECHECK_TIME);

    if (ngx_kexec_park(r) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }
}


static void
ngx_kexec_execute_notice(ngx_kexec_claim_t *claim)
{
    ngx_kexec_execute_awaited(claim->data);
}


static void
ngx_kexec_execute_timer(ngx_event_t *ev)
{
    ngx_kexec_execute_awaited((ngx_kexec_execute_t *)
                  ((u_char *) ev - offsetof(ngx_kexec_execute_t, timer)));
}


static void
ngx_kexec_execute_awaited(ngx_kexec_execute_t *e)
{
    ngx_int_t            rc;
    ngx_str_t            text;
    ngx_connection_t    *c;
    ngx_kexec_context_t  ctx;

    c = e->request->connection;

    ngx_http_set_log_request(c->log, e->request);

    rc = ngx_kexec_zone_get(e->zone, &e->claim.context, &ctx);

    if (rc == NGX_OK
        && (ctx.state == NGX_KEXEC_CONTEXT_CREATING
            || ctx.state == NGX_KEXEC_CONTEXT_DELETING))
    {
        if (ngx_current_msec - e->since
            < e->conf->ready_timeout + 2 * e->conf->jupyter_timeout)
        {
            ngx_add_timer(&e->timer, NGX_KEXEC_RECHECK_TIME);
            return;
        }

        ngx_kexec_execute_unwait(e);

        ngx_str_set(&text, "The context was not ready in time");
        ngx_kexec_answer_text(e->request, NGX_HTTP_SERVICE_UNAVAILABLE,
                              &text);

    } else if (rc == NGX_OK && ctx.state == NGX_KEXEC_CONTEXT_FAILED
               && (ctx.failure_status || e->made))
    {
        ngx_kexec_execute_unwait(e);

        text.data = ctx.failure;
        text.len = ctx.failure_len;
        ngx_kexec_answer_text(e->request,
                              ctx.failure_status ? ctx.failure_status
                                                 : NGX_HTTP_SERVICE_UNAVAILABLE,
                              &text);

    } else {

        /* it is there, or gone, or whoever was making it is */

        ngx_kexec_execute_unwait(e);
        ngx_kexec_execute_context(e);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_kexec_execute_unwait(ngx_kexec_execute_t *e)
{
    ngx_kexec_claim_leave(&e->claim);

    if (e->timer.timer_set) {
        ngx_del_timer(&e->timer);
    }
}


static void
ngx_kexec_execute_cleanup(void *data)
{
    ngx_kexec_execute_unwait(data);
}


/* the context is there: from here on an execution looks after it all */

static void
ngx_kexec_execute_start(ngx_kexec_execute_t *e)
{
    double                  seconds;
    ngx_int_t               rc;
    ngx_str_t               code, text;
    const char             *why, *name;
    ngx_http_request_t     *r;
    ngx_kexec_client_t     *client;
    ngx_kexec_execution_t  *ex;

    r = e->request;

    client = ngx_kexec_client_create(r);

    ex = ngx_kexec_execution_create(r, e->conf, &e->ctx,
                                    NGX_KEXEC_CLAIM_RUN);

    if (client == NULL || ex == NULL) {
        goto failed;
    }

    rc = ngx_kexec_env_read(json_object_get(e->body, "env_vars"), e->ctx.kind,
                            ex->pool, &ex->env, &ex->nenv, NULL, &why, &name);

    if (rc == NGX_DECLINED) {
        ngx_kexec_execution_destroy(ex);

        text.len = ngx_strlen(name) + ngx_strlen(why) + 64;
        text.data = ngx_pnalloc(r->pool, text.len);
        if (text.data == NULL) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }

        text.len = ngx_snprintf(text.data, text.len,
                                "The environment variable \"%s\" cannot be "
                                "set: %s", name, why)
                   - text.data;

        ngx_kexec_answer_text(r, NGX_HTTP_BAD_REQUEST, &text);
        return;
    }

    if (rc != NGX_OK || ngx_kexec_envs_token(ex, r) != NGX_OK) {
        goto failed;
    }

    ngx_kexec_schema_string(e->body, "code", &code);

    ex->code.len = code.len;
    ex->code.data = ngx_pstrdup(ex->pool, &code);
    if (ex->code.data == NULL && code.len) {
        goto failed;
    }

    seconds = json_number_value(json_object_get(e->body, "timeout"));

    if (seconds > 0) {
        ex->m.conf.timeout = seconds < 1e6 ? (ngx_msec_t) (seconds * 1000)
                                    : 1000000000;
        ex->m.conf.timeout = ngx_max(ex->m.conf.timeout, 1);
    }

    rc = ngx_kexec_execution_enter(ex, e->zone);

    if (rc != NGX_OK) {
        ngx_kexec_execution_destroy(ex);
        ngx_kexec_execute_refuse(e, rc);
        return;
    }

    ngx_kexec_execution_attach(ex, client);

    /* the execution has what it needs, and the request may last long */

    ngx_kexec_body_free(r, e->body);
    e->body = NULL;

    if (ngx_kexec_client_start(client) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_ERROR);
    }

    return;

failed:

    if (ex) {
        ngx_kexec_execution_destroy(ex);
    }

    ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
}


static void
ngx_kexec_execute_refuse(ngx_kexec_execute_t *e, ngx_int_t rc)
{
    ngx_str_t            text;
    ngx_http_request_t  *r;

    r = e->request;

    switch (rc) {

    case NGX_BUSY:
        ngx_kexec_answer_full(r, e->conf->queue_size, "executions");
        return;

    case NGX_DECLINED:

        if (e->id.len == 0) {
            ngx_str_set(&text, "The context was just deleted, try again");
            ngx_kexec_answer_text(r, NGX_HTTP_SERVICE_UNAVAILABLE, &text);
            return;
        }

        ngx_kexec_answer_unknown(e->request, &e->id);
        return;

    default:

        ngx_str_set(&text, "The server holds too many requests, "
                    "try again later");
        ngx_kexec_answer_text(r, NGX_HTTP_SERVICE_UNAVAILABLE, &text);
    }
}
