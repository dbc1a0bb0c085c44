
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_contexts.h>
#include <ngx_kexec_operations.h>


/*
 * A call about a kernel that has just died makes Jupyter raise, for a second or
 * so: it is made again after this, so many times.
 */
#define NGX_KEXEC_RAISED_TIME   500
#define NGX_KEXEC_RAISED_TIMES  5


/*
 * A restart or delete of a context takes the slot like an execution does, but
 * ends all others.  Once anybody else felt it, or it has the slot, it goes on
 * when its client left, so it has its own pool.  One restart answers all that
 * wait when it ends.
 */

typedef struct {
    ngx_kexec_claim_t           claim;
    ngx_pool_t                 *pool;
    ngx_kexec_claim_kind_e      kind;
    ngx_kexec_context_t         ctx;
    ngx_kexec_server_t         *server;
    ngx_http_request_t         *request;        /* NULL: it left */
    ngx_http_cleanup_t         *cleanup;        /* of the request */
    ngx_kexec_http_t           *http;
    ngx_uint_t                  status;         /* of the call that failed */
    ngx_uint_t                  raised;         /* how often it did */
    ngx_event_t                 timer;
    ngx_event_t                 freeing;
    unsigned                    done:1;
} ngx_kexec_operation_t;


/* a POST /contexts/ID/interrupt until the slot moved on */

typedef struct {
    ngx_kexec_claim_t           claim;          /* watches the context */
    ngx_http_request_t         *request;
    ngx_kexec_zone_t           *zone;
    ngx_kexec_ref_t             holder;
    ngx_event_t                 timer;
    ngx_msec_t                  limit;
} ngx_kexec_interruption_t;


static ngx_int_t ngx_kexec_operate(ngx_http_request_t *r, ngx_str_t *id,
    ngx_kexec_claim_kind_e kind);
static ngx_kexec_operation_t *ngx_kexec_operation_create(
    ngx_http_kexec_loc_conf_t *conf, ngx_http_request_t *r,
    ngx_kexec_context_t *ctx, ngx_kexec_claim_kind_e kind);
static ngx_uint_t ngx_kexec_operation_limit(ngx_http_kexec_loc_conf_t *conf);
static ngx_int_t ngx_kexec_operation_find(ngx_http_request_t *r,
    ngx_str_t *id, ngx_kexec_context_t *ctx);
static ngx_int_t ngx_kexec_operation_refuse(ngx_http_request_t *r,
    ngx_uint_t status, const char *fmt, ngx_str_t *id);
static void ngx_kexec_operation_notice(ngx_kexec_claim_t *claim);
static void ngx_kexec_operation_timer(ngx_event_t *ev);
static void ngx_kexec_operation_look(ngx_kexec_operation_t *op);
static void ngx_kexec_operation_call(ngx_kexec_operation_t *op);
static void ngx_kexec_operation_handler(ngx_kexec_http_t *http);
static void ngx_kexec_operation_answered(ngx_kexec_http_t *http);
static void ngx_kexec_operation_result(ngx_kexec_operation_t *op,
    ngx_uint_t status, ngx_uint_t gone, const char *error);
static void ngx_kexec_operation_failed(ngx_kexec_operation_t *op,
    ngx_uint_t status);
static void ngx_kexec_operation_verdict(ngx_kexec_operation_t *op,
    ngx_kexec_verdict_e verdict);
static void ngx_kexec_operation_end(ngx_kexec_operation_t *op,
    ngx_uint_t status, const char *sentence);
static void ngx_kexec_operation_done(ngx_kexec_operation_t *op);
static void ngx_kexec_operation_cleanup(void *data);
static void ngx_kexec_operation_free(ngx_event_t *ev);

static void ngx_kexec_interruption_notice(ngx_kexec_claim_t *claim);
static void ngx_kexec_interruption_timer(ngx_event_t *ev);
static void ngx_kexec_interruption_look(ngx_kexec_interruption_t *in);
static void ngx_kexec_interruption_cleanup(void *data);


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
    ngx_http_cleanup_t         *cln;
    ngx_kexec_context_t         ctx;
    ngx_kexec_operation_t      *op;
    ngx_http_kexec_loc_conf_t  *conf;

    rc = ngx_kexec_operation_find(r, id, &ctx);

    if (rc != NGX_OK) {
        return rc;
    }

    conf = ngx_http_get_module_loc_conf(r, ngx_http_kexec_module);

    cln = ngx_http_cleanup_add(r, 0);
    op = cln ? ngx_kexec_operation_create(conf, r, &ctx, kind) : NULL;

    if (op == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_DONE;
    }

    rc = ngx_kexec_claim_operate(ngx_kexec_request_zone(r), &op->claim, kind,
                                 ngx_kexec_operation_limit(conf));

    if (rc != NGX_OK && rc != NGX_AGAIN) {
        ngx_destroy_pool(op->pool);

        if (rc == NGX_BUSY) {
            ngx_kexec_answer_full(r, ngx_kexec_operation_limit(conf),
                                  kind == NGX_KEXEC_CLAIM_RESTART
                                  ? "restarts" : "deletions");
            return NGX_DONE;
        }

        if (rc == NGX_ERROR) {
            return ngx_kexec_operation_refuse(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                              "The server holds too many "
                                              "requests, try again later", id);
        }

        return ngx_kexec_operation_refuse(r, NGX_HTTP_NOT_FOUND,
                                          "Context %V not found", id);
    }

    op->request = r;
    op->cleanup = cln;

    cln->handler = ngx_kexec_operation_cleanup;
    cln->data = op;

    ngx_add_timer(&op->timer, rc == NGX_OK ? 0 : NGX_KEXEC_RECHECK_TIME);

    if (ngx_kexec_park(r) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }

    return NGX_DONE;
}


static ngx_kexec_operation_t *
ngx_kexec_operation_create(ngx_http_kexec_loc_conf_t *conf,
    ngx_http_request_t *r, ngx_kexec_context_t *ctx,
    ngx_kexec_claim_kind_e kind)
{
    ngx_pool_t             *pool;
    ngx_kexec_operation_t  *op;

    pool = ngx_create_pool(4096, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    op = ngx_pcalloc(pool, sizeof(ngx_kexec_operation_t));
    if (op == NULL) {
        goto failed;
    }

    op->pool = pool;
    op->kind = kind;
    op->ctx = *ctx;

    op->server = ngx_kexec_server_create(conf, r, pool);
    if (op->server == NULL) {
        goto failed;
    }

    op->claim.handler = ngx_kexec_operation_notice;
    op->claim.data = op;
    op->claim.context = ctx->ref;

    op->timer.handler = ngx_kexec_operation_timer;
    op->timer.data = op;
    op->timer.log = ngx_cycle->log;

    op->freeing.handler = ngx_kexec_operation_free;
    op->freeing.data = op;
    op->freeing.log = ngx_cycle->log;

    return op;

failed:

    ngx_destroy_pool(pool);

    return NULL;
}


void
ngx_kexec_operation_expire(ngx_http_kexec_main_conf_t *kmcf,
    ngx_http_kexec_loc_conf_t *conf, ngx_kexec_context_t *ctx)
{
    ngx_kexec_operation_t  *op;

    op = ngx_kexec_operation_create(conf, NULL, ctx, NGX_KEXEC_CLAIM_DELETE);

    if (op == NULL) {
        return;
    }

    if (ngx_kexec_claim_expire(kmcf->zone, &op->claim, kmcf->idle_timeout)
        != NGX_OK)
    {
        ngx_destroy_pool(op->pool);
        return;
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "context %*s was not used for kexec_context_idle_timeout "
                  "and is deleted", (size_t) NGX_KEXEC_UUID_LEN, ctx->id);

    ngx_add_timer(&op->timer, 0);
}


/* one at least may wait: who restarts or interrupts wants a queue to end */

static ngx_uint_t
ngx_kexec_operation_limit(ngx_http_kexec_loc_conf_t *conf)
{
    return ngx_max(conf->queue_size, 1);
}


/*
 * The context of the path; "default" is the default one of python.  After this
 * the request has one more reference, and is answered unless NGX_OK comes
 * back.
 */

static ngx_int_t
ngx_kexec_operation_find(ngx_http_request_t *r, ngx_str_t *id,
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


static ngx_int_t
ngx_kexec_operation_refuse(ngx_http_request_t *r, ngx_uint_t status,
    const char *fmt, ngx_str_t *id)
{
    size_t     len;
    ngx_str_t  text;

    len = ngx_strlen(fmt) + id->len;

    text.data = ngx_pnalloc(r->pool, len);
    if (text.data == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_DONE;
    }

    text.len = ngx_snprintf(text.data, len, fmt, id) - text.data;

    ngx_kexec_answer_text(r, status, &text);

    return NGX_DONE;
}


static void
ngx_kexec_operation_notice(ngx_kexec_claim_t *claim)
{
    ngx_kexec_operation_look(claim->data);
}


static void
ngx_kexec_operation_timer(ngx_event_t *ev)
{
    ngx_kexec_operation_look(ev->data);
}


static void
ngx_kexec_operation_look(ngx_kexec_operation_t *op)
{
    ngx_kexec_claim_look_t  look;

    if (op->done || op->http) {
        return;
    }

    ngx_kexec_claim_look(&op->claim, &look);

    switch (look.state) {

    case NGX_KEXEC_CLAIM_QUEUED:
        ngx_add_timer(&op->timer, NGX_KEXEC_RECHECK_TIME);
        return;

    case NGX_KEXEC_CLAIM_HELD:

        if (op->kind == NGX_KEXEC_CLAIM_RESTART
            && look.verdict == NGX_KEXEC_VERDICT_DELETED)
        {
            break;
        }

        ngx_kexec_operation_call(op);
        return;

    default:
        break;
    }

    ngx_kexec_operation_verdict(op, look.verdict);
}


static void
ngx_kexec_operation_call(ngx_kexec_operation_t *op)
{
    ngx_str_t  id;

    /* its creator or last holder may have changed what is known of it */

    if (ngx_kexec_zone_get(op->claim.zone, &op->claim.context, &op->ctx)
        != NGX_OK)
    {
        ngx_kexec_operation_end(op, NGX_HTTP_NOT_FOUND,
                                "The context was deleted meanwhile");
        return;
    }

    ngx_kexec_server_at(op->server, &op->ctx);

    if (op->kind == NGX_KEXEC_CLAIM_RESTART) {

        if (op->ctx.kernel.len == 0) {

            /* it is gone: the next execution starts a new one */

            ngx_kexec_claim_answer(&op->claim, NGX_KEXEC_VERDICT_RESTARTED);
            ngx_kexec_operation_verdict(op, NGX_KEXEC_VERDICT_RESTARTED);
            return;
        }

        ngx_kexec_claim_phase(&op->claim, NGX_KEXEC_PHASE_RESTARTING);

        id.len = op->ctx.kernel.len;
        id.data = op->ctx.kernel.data;

        op->http = ngx_kexec_jupyter_restart(op->server, &id,
                                             ngx_kexec_operation_handler, op,
                                             ngx_cycle->log);
        if (op->http) {
            ngx_kexec_http_limit(op->http, NGX_KEXEC_RESTART_TIME);
        }

    } else if (op->ctx.session.len == 0) {

        /* it was not made yet: there is nothing in Jupyter */

        ngx_kexec_operation_result(op, NGX_HTTP_NO_CONTENT, 0, NULL);
        return;

    } else {
        id.len = op->ctx.session.len;
        id.data = op->ctx.session.data;

        op->http = ngx_kexec_jupyter_delete(op->server, &id,
                                            ngx_kexec_operation_handler, op,
                                            ngx_cycle->log);
    }

    if (op->http == NULL) {
        ngx_kexec_operation_end(op, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                "out of memory");
    }
}


static void
ngx_kexec_operation_handler(ngx_kexec_http_t *http)
{
    ngx_str_t               id;
    ngx_uint_t              status, gone;
    ngx_kexec_operation_t  *op;

    op = http->data;
    op->http = NULL;

    status = http->status;
    gone = (status == NGX_HTTP_NOT_FOUND || status == 410);

    if (op->kind == NGX_KEXEC_CLAIM_RESTART && status >= 500) {

        /* a kernel that is not there is a 500 like any other failure */

        id.len = op->ctx.kernel.len;
        id.data = op->ctx.kernel.data;

        op->status = status;
        op->http = ngx_kexec_jupyter_kernel(op->server, &id,
                                            ngx_kexec_operation_answered, op,
                                            ngx_cycle->log);
        if (op->http) {
            return;
        }
    }

    ngx_kexec_operation_result(op, status, gone, http->error);
}


/* the answer to the question whether a kernel is there that did not restart */

static void
ngx_kexec_operation_answered(ngx_kexec_http_t *http)
{
    ngx_kexec_operation_t  *op;

    op = http->data;
    op->http = NULL;

    ngx_kexec_operation_result(op, op->status,
                               http->status == NGX_HTTP_NOT_FOUND,
                               http->error);
}


static void
ngx_kexec_operation_result(ngx_kexec_operation_t *op, ngx_uint_t status,
    ngx_uint_t gone, const char *error)
{
    if (status >= 500 && !gone && op->raised++ < NGX_KEXEC_RAISED_TIMES) {
        ngx_add_timer(&op->timer, NGX_KEXEC_RAISED_TIME);
        return;
    }

    if (status == 0 || (status >= 300 && !gone)) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "Jupyter did not %s the kernel of context %*s: %ui %s",
                      op->kind == NGX_KEXEC_CLAIM_RESTART ? "restart"
                                                          : "delete",
                      (size_t) NGX_KEXEC_UUID_LEN, op->ctx.id, status,
                      error ? error : "");
    }

    if (op->kind == NGX_KEXEC_CLAIM_DELETE) {

        if (gone || (status >= 200 && status < 300)) {
            ngx_kexec_kernel_deleted(&op->ctx.ref);
            ngx_kexec_zone_remove(&op->claim);
            ngx_kexec_operation_end(op, NGX_HTTP_OK, NULL);
            return;
        }

        /* when the claim leaves, it is a context as before */

    }

    if (op->kind == NGX_KEXEC_CLAIM_RESTART) {

        if (gone || (status >= 200 && status < 300)) {
            ngx_kexec_zone_new_process(&op->ctx);

            if (gone) {

                /* the next execution starts a new one */

                op->ctx.kernel.len = 0;
            }

            ngx_kexec_zone_update(&op->claim, &op->ctx);
            ngx_kexec_claim_answer(&op->claim, NGX_KEXEC_VERDICT_RESTARTED);
            ngx_kexec_operation_verdict(op, NGX_KEXEC_VERDICT_RESTARTED);
            return;
        }

        /* it may have been carried out all the same: the next one asks */

        op->ctx.ready = 0;

        ngx_kexec_zone_update(&op->claim, &op->ctx);
    }

    ngx_kexec_operation_failed(op, status);
}


static void
ngx_kexec_operation_failed(ngx_kexec_operation_t *op, ngx_uint_t status)
{
    ngx_kexec_verdict_e  verdict;

    verdict = status ? NGX_KEXEC_VERDICT_REFUSED
                     : NGX_KEXEC_VERDICT_UNREACHABLE;

    if (op->kind == NGX_KEXEC_CLAIM_RESTART) {
        ngx_kexec_claim_answer(&op->claim, verdict);
    }

    ngx_kexec_operation_verdict(op, verdict);
}


/* its own, or that of the restart that answers for it */

static void
ngx_kexec_operation_verdict(ngx_kexec_operation_t *op,
    ngx_kexec_verdict_e verdict)
{
    switch (verdict) {

    case NGX_KEXEC_VERDICT_RESTARTED:
        ngx_kexec_operation_end(op, NGX_HTTP_OK, NULL);
        return;

    case NGX_KEXEC_VERDICT_REFUSED:
        ngx_kexec_operation_end(op, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                op->kind == NGX_KEXEC_CLAIM_RESTART
                                ? "Failed to restart context"
                                : "Failed to remove context");
        return;

    case NGX_KEXEC_VERDICT_UNREACHABLE:
        ngx_kexec_operation_end(op, NGX_HTTP_SERVICE_UNAVAILABLE,
                                "Jupyter is not reachable");
        return;

    case NGX_KEXEC_VERDICT_DELETED:
        ngx_kexec_operation_end(op, NGX_HTTP_NOT_FOUND,
                                "The context was deleted meanwhile");
        return;

    default:
        ngx_kexec_operation_end(op, NGX_HTTP_SERVICE_UNAVAILABLE,
                                "The request lost its place, try again");
    }
}


static void
ngx_kexec_operation_end(ngx_kexec_operation_t *op, ngx_uint_t status,
    const char *sentence)
{
    ngx_str_t            text;
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    ngx_kexec_claim_leave(&op->claim);
    ngx_kexec_operation_done(op);

    r = op->request;

    if (r == NULL) {
        return;
    }

    /* the request may end long after the operation */

    op->cleanup->handler = NULL;

    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (sentence) {
        text.data = (u_char *) sentence;
        text.len = ngx_strlen(sentence);
        ngx_kexec_answer_text(r, status, &text);

    } else {
        ngx_str_set(&text, "null");
        ngx_kexec_answer_json(r, status, &text);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_kexec_operation_done(ngx_kexec_operation_t *op)
{
    op->done = 1;

    if (op->timer.timer_set) {
        ngx_del_timer(&op->timer);
    }

    ngx_post_event(&op->freeing, &ngx_posted_events);
}


/* the client left */

static void
ngx_kexec_operation_cleanup(void *data)
{
    ngx_kexec_operation_t *op = data;

    op->request = NULL;

    if (op->http == NULL && ngx_kexec_claim_abandon(&op->claim) == NGX_OK) {
        ngx_kexec_operation_done(op);
    }
}


static void
ngx_kexec_operation_free(ngx_event_t *ev)
{
    ngx_kexec_operation_t *op = ev->data;

    ngx_destroy_pool(op->pool);
}


ngx_int_t
ngx_kexec_interrupt_handler(ngx_http_request_t *r, ngx_str_t *id)
{
    ngx_int_t                   rc;
    ngx_str_t                   text;
    ngx_http_cleanup_t         *cln;
    ngx_kexec_context_t         ctx;
    ngx_kexec_interruption_t   *in;
    ngx_http_kexec_loc_conf_t  *conf;

    rc = ngx_kexec_operation_find(r, id, &ctx);

    if (rc != NGX_OK) {
        return rc;
    }

    conf = ngx_http_get_module_loc_conf(r, ngx_http_kexec_module);

    in = ngx_pcalloc(r->pool, sizeof(ngx_kexec_interruption_t));
    cln = ngx_http_cleanup_add(r, 0);

    if (in == NULL || cln == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_DONE;
    }

    in->request = r;
    in->zone = ngx_kexec_request_zone(r);
    in->limit = ngx_current_msec + conf->interrupt_timeout;

    in->claim.handler = ngx_kexec_interruption_notice;
    in->claim.data = in;
    in->claim.context = ctx.ref;

    in->timer.handler = ngx_kexec_interruption_timer;
    in->timer.data = r->connection;
    in->timer.log = r->connection->log;

    cln->handler = ngx_kexec_interruption_cleanup;
    cln->data = in;

    /* watched first, so that no change is missed */

    rc = ngx_kexec_claim_watch(in->zone, &in->claim,
                               ngx_kexec_operation_limit(conf));

    if (rc == NGX_BUSY) {
        ngx_kexec_answer_full(r, ngx_kexec_operation_limit(conf),
                              "interrupts");
        return NGX_DONE;
    }

    if (rc == NGX_ERROR) {
        return ngx_kexec_operation_refuse(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                          "The server holds too many "
                                          "requests, try again later", id);
    }

    if (rc == NGX_OK) {
        rc = ngx_kexec_claim_interrupt(in->zone, &ctx.ref, &in->holder);
    }

    switch (rc) {

    case NGX_OK:
        ngx_add_timer(&in->timer, ngx_min(NGX_KEXEC_RECHECK_TIME,
                                          conf->interrupt_timeout));

        if (ngx_kexec_park(r) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        }

        return NGX_DONE;

    case NGX_DONE:
        ngx_kexec_interruption_cleanup(in);

        ngx_str_set(&text, "null");
        ngx_kexec_answer_json(r, NGX_HTTP_OK, &text);
        return NGX_DONE;

    default:
        ngx_kexec_interruption_cleanup(in);

        return ngx_kexec_operation_refuse(r, NGX_HTTP_NOT_FOUND,
                                          "Context %V not found", id);
    }
}


static void
ngx_kexec_interruption_notice(ngx_kexec_claim_t *claim)
{
    ngx_kexec_interruption_look(claim->data);
}


static void
ngx_kexec_interruption_timer(ngx_event_t *ev)
{
    ngx_kexec_interruption_look((ngx_kexec_interruption_t *)
                 ((u_char *) ev - offsetof(ngx_kexec_interruption_t, timer)));
}


static void
ngx_kexec_interruption_look(ngx_kexec_interruption_t *in)
{
    ngx_str_t           text;
    ngx_msec_int_t      left;
    ngx_connection_t   *c;

    c = in->request->connection;

    ngx_http_set_log_request(c->log, in->request);

    if (!ngx_kexec_claim_holds(in->zone, &in->claim.context, &in->holder)) {

        /* a request may live on after its answer, its body unread */

        ngx_kexec_interruption_cleanup(in);

        ngx_str_set(&text, "null");
        ngx_kexec_answer_json(in->request, NGX_HTTP_OK, &text);
        ngx_http_run_posted_requests(c);
        return;
    }

    left = (ngx_msec_int_t) (in->limit - ngx_current_msec);

    if (left > 0) {
        ngx_add_timer(&in->timer, ngx_min(NGX_KEXEC_RECHECK_TIME, left));
        return;
    }

    ngx_kexec_interruption_cleanup(in);

    ngx_str_set(&text, "The code does not react to interrupts, restart the "
                "context to end it");
    ngx_kexec_answer_text(in->request, NGX_HTTP_GATEWAY_TIME_OUT, &text);
    ngx_http_run_posted_requests(c);
}


static void
ngx_kexec_interruption_cleanup(void *data)
{
    ngx_kexec_interruption_t *in = data;

    ngx_kexec_claim_leave(&in->claim);

    if (in->timer.timer_set) {
        ngx_del_timer(&in->timer);
    }
}
