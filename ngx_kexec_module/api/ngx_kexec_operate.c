
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_answer.h>
#include <ngx_kexec_contexts.h>
#include <ngx_kexec_interruption.h>
#include <ngx_kexec_operate.h>
#include <ngx_kexec_operation.h>


/* a restart or deletion, until it ends or its client leaves */

typedef struct {
    ngx_http_request_t         *request;
    ngx_http_cleanup_t         *cleanup;
    ngx_kexec_operation_t      *operation;
    ngx_kexec_claim_kind_e      kind;
} ngx_kexec_operate_t;


/* an interrupt, until what ran has ended */

typedef struct {
    ngx_http_request_t         *request;
    ngx_kexec_interruption_t    interruption;
} ngx_kexec_interrupt_t;


static ngx_int_t ngx_kexec_operate(ngx_http_request_t *r, ngx_str_t *id,
    ngx_kexec_claim_kind_e kind);
static ngx_int_t ngx_kexec_operate_find(ngx_http_request_t *r,
    ngx_str_t *id, ngx_kexec_context_t *ctx);
static ngx_uint_t ngx_kexec_operate_limit(ngx_http_kexec_loc_conf_t *conf);
static ngx_int_t ngx_kexec_operate_refuse(ngx_http_request_t *r,
    ngx_int_t rc, ngx_uint_t limit, const char *what, ngx_str_t *id);
static void ngx_kexec_operate_ended(void *data, ngx_kexec_op_end_e end);
static void ngx_kexec_operate_cleanup(void *data);

static void ngx_kexec_interrupt_ended(void *data,
    ngx_kexec_interruption_e end);
static void ngx_kexec_interrupt_cleanup(void *data);


ngx_int_t
ngx_kexec_restart_handler(ngx_http_request_t *r, ngx_str_t *id)
{
    return ngx_kexec_operate(r, id, NGX_KEXEC_CLAIM_RESTART);
}


ngx_int_t
ngx_kexec_delete_handler(ngx_http_request_t *r, ngx_str_t *id)
{
    return ngx_kexec_operate(r, id, NGX_KEXEC_CLAIM_DELETE);
}


static ngx_int_t
ngx_kexec_operate(ngx_http_request_t *r, ngx_str_t *id,
    ngx_kexec_claim_kind_e kind)
{
    ngx_int_t                   rc;
    ngx_uint_t                  limit;
    ngx_http_cleanup_t         *cln;
    ngx_kexec_context_t         ctx;
    ngx_kexec_operate_t        *op;
    ngx_http_kexec_loc_conf_t  *conf;

    rc = ngx_kexec_operate_find(r, id, &ctx);

    if (rc != NGX_OK) {
        return rc;
    }

    conf = ngx_http_get_module_loc_conf(r, ngx_http_kexec_module);

    op = ngx_palloc(r->pool, sizeof(ngx_kexec_operate_t));
    cln = ngx_http_cleanup_add(r, 0);

    if (op == NULL || cln == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_DONE;
    }

    op->request = r;
    op->cleanup = cln;
    op->kind = kind;

    op->operation = ngx_kexec_operation_create(r, conf, &ctx, kind);

    if (op->operation == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_DONE;
    }

    limit = ngx_kexec_operate_limit(conf);

    rc = ngx_kexec_operation_enter(op->operation, ngx_kexec_request_zone(r),
                                   limit, ngx_kexec_operate_ended, op);

    if (rc != NGX_OK) {
        return ngx_kexec_operate_refuse(r, rc, limit,
                                        kind == NGX_KEXEC_CLAIM_RESTART
                                        ? "restarts" : "deletions", id);
    }

    cln->handler = ngx_kexec_operate_cleanup;
    cln->data = op;

    if (ngx_kexec_park(r) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    return NGX_DONE;
}


/*
 * The context of the path; "default" is the default one of python.  After this
 * the request has one more reference, and is answered unless NGX_OK comes
 * back.
 */

static ngx_int_t
ngx_kexec_operate_find(ngx_http_request_t *r, ngx_str_t *id,
    ngx_kexec_context_t *ctx)
{
    ngx_int_t            rc;
    ngx_str_t            python;
    ngx_kexec_zone_t    *zone;
    ngx_kexec_report_t  *report;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    r->main->count++;

    zone = ngx_kexec_request_zone(r);

    if (id->len == 7 && ngx_strncmp(id->data, "default", 7) == 0) {
        ngx_str_set(&python, "python");
        rc = ngx_kexec_zone_default(zone, &python, ctx);

    } else {
        rc = ngx_kexec_zone_find(zone, id, ctx);
    }

    if (rc != NGX_OK || ctx->state == NGX_KEXEC_CONTEXT_FAILED) {
        ngx_kexec_answer_unknown(r, id);
        return NGX_DONE;
    }

    report = ngx_kexec_report(r);

    if (report) {
        report->has_context = 1;
        ngx_memcpy(report->context, ctx->id, NGX_KEXEC_UUID_LEN);
    }

    return NGX_OK;
}


/* one at least may wait: who restarts or interrupts wants a queue to end */

static ngx_uint_t
ngx_kexec_operate_limit(ngx_http_kexec_loc_conf_t *conf)
{
    return ngx_max(conf->queue_size, 1);
}


/* what the zone refused with */

static ngx_int_t
ngx_kexec_operate_refuse(ngx_http_request_t *r, ngx_int_t rc, ngx_uint_t limit,
    const char *what, ngx_str_t *id)
{
    ngx_str_t  text;

    switch (rc) {

    case NGX_BUSY:
        ngx_kexec_answer_full(r, limit, what);
        return NGX_DONE;

    case NGX_ERROR:
        ngx_str_set(&text, "The server holds too many requests, try again "
                    "later");
        ngx_kexec_answer_text(r, NGX_HTTP_SERVICE_UNAVAILABLE, &text);
        return NGX_DONE;

    default: /* NGX_DECLINED: it is known, but only as long as it goes */
        break;
    }

    text.data = ngx_pnalloc(r->pool, id->len + sizeof("Context  not found"));
    if (text.data == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_DONE;
    }

    text.len = ngx_sprintf(text.data, "Context %V not found", id) - text.data;

    ngx_kexec_answer_text(r, NGX_HTTP_NOT_FOUND, &text);

    return NGX_DONE;
}


static void
ngx_kexec_operate_ended(void *data, ngx_kexec_op_end_e end)
{
    ngx_kexec_operate_t *op = data;

    ngx_str_t            text;
    ngx_uint_t           status;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = op->request;
    c = r->connection;

    /* the request may end long after the operation */

    op->cleanup->handler = NULL;

    ngx_http_set_log_request(c->log, r);

    switch (end) {

    case NGX_KEXEC_OP_END_OK:
        ngx_str_set(&text, "null");
        ngx_kexec_answer_json(r, NGX_HTTP_OK, &text);

        ngx_http_run_posted_requests(c);
        return;

    case NGX_KEXEC_OP_END_REFUSED:
        status = NGX_HTTP_INTERNAL_SERVER_ERROR;

        if (op->kind == NGX_KEXEC_CLAIM_RESTART) {
            ngx_str_set(&text, "Failed to restart context");

        } else {
            ngx_str_set(&text, "Failed to remove context");
        }

        break;

    case NGX_KEXEC_OP_END_UNREACHABLE:
        status = NGX_HTTP_SERVICE_UNAVAILABLE;
        ngx_str_set(&text, "Jupyter is not reachable");
        break;

    case NGX_KEXEC_OP_END_DELETED:
        status = NGX_HTTP_NOT_FOUND;
        ngx_str_set(&text, "The context was deleted meanwhile");
        break;

    case NGX_KEXEC_OP_END_NO_MEMORY:
        status = NGX_HTTP_INTERNAL_SERVER_ERROR;
        ngx_str_set(&text, "out of memory");
        break;

    case NGX_KEXEC_OP_END_SHUTDOWN:
        status = NGX_HTTP_SERVICE_UNAVAILABLE;

        if (op->kind == NGX_KEXEC_CLAIM_RESTART) {
            ngx_str_set(&text, "The server's worker process had to end "
                        "(worker_shutdown_timeout) while the context was "
                        "restarted");

        } else {
            ngx_str_set(&text, "The server's worker process had to end "
                        "(worker_shutdown_timeout) while the context was "
                        "deleted");
        }

        break;

    default: /* NGX_KEXEC_OP_END_LOST */
        status = NGX_HTTP_SERVICE_UNAVAILABLE;
        ngx_str_set(&text, "The request lost its place, try again");
        break;
    }

    ngx_kexec_answer_text(r, status, &text);

    ngx_http_run_posted_requests(c);
}


/* the client left */

static void
ngx_kexec_operate_cleanup(void *data)
{
    ngx_kexec_operate_t *op = data;

    ngx_kexec_operation_abandon(op->operation);
}


ngx_int_t
ngx_kexec_interrupt_handler(ngx_http_request_t *r, ngx_str_t *id)
{
    ngx_int_t                   rc;
    ngx_str_t                   text;
    ngx_uint_t                  limit;
    ngx_http_cleanup_t         *cln;
    ngx_kexec_context_t         ctx;
    ngx_kexec_interrupt_t      *in;
    ngx_http_kexec_loc_conf_t  *conf;

    rc = ngx_kexec_operate_find(r, id, &ctx);

    if (rc != NGX_OK) {
        return rc;
    }

    conf = ngx_http_get_module_loc_conf(r, ngx_http_kexec_module);

    in = ngx_pcalloc(r->pool, sizeof(ngx_kexec_interrupt_t));
    cln = ngx_http_cleanup_add(r, 0);

    if (in == NULL || cln == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_DONE;
    }

    in->request = r;
    in->interruption.handler = ngx_kexec_interrupt_ended;
    in->interruption.data = in;

    limit = ngx_kexec_operate_limit(conf);

    rc = ngx_kexec_interruption_enter(&in->interruption,
                                      ngx_kexec_request_zone(r), &ctx.ref,
                                      limit, conf->interrupt_timeout);

    if (rc == NGX_DONE) {
        ngx_str_set(&text, "null");
        ngx_kexec_answer_json(r, NGX_HTTP_OK, &text);
        return NGX_DONE;
    }

    if (rc != NGX_OK) {
        return ngx_kexec_operate_refuse(r, rc, limit, "interrupts", id);
    }

    cln->handler = ngx_kexec_interrupt_cleanup;
    cln->data = in;

    if (ngx_kexec_park(r) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    return NGX_DONE;
}


/* the request may live on after its answer, its body unread */

static void
ngx_kexec_interrupt_ended(void *data, ngx_kexec_interruption_e end)
{
    ngx_kexec_interrupt_t *in = data;

    ngx_str_t            text;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = in->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    switch (end) {

    case NGX_KEXEC_INTERRUPTION_OVER:
        ngx_str_set(&text, "null");
        ngx_kexec_answer_json(r, NGX_HTTP_OK, &text);
        break;

    case NGX_KEXEC_INTERRUPTION_STUCK:
        ngx_str_set(&text, "The code does not react to interrupts, restart "
                    "the context to end it");
        ngx_kexec_answer_text(r, NGX_HTTP_GATEWAY_TIME_OUT, &text);
        break;

    default: /* NGX_KEXEC_INTERRUPTION_SHUTDOWN */
        ngx_str_set(&text, "The server's worker process had to end "
                    "(worker_shutdown_timeout) before the interrupted code "
                    "did");
        ngx_kexec_answer_text(r, NGX_HTTP_SERVICE_UNAVAILABLE, &text);
        break;
    }

    ngx_http_run_posted_requests(c);
}


/* the client left */

static void
ngx_kexec_interrupt_cleanup(void *data)
{
    ngx_kexec_interrupt_t *in = data;

    ngx_kexec_interruption_leave(&in->interruption);
}
