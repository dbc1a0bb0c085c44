
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_hands.h>
#include <ngx_kexec_jupyter.h>
#include <ngx_kexec_kernel.h>
#include <ngx_kexec_operation.h>
#include <ngx_kexec_server.h>


/* an action brings one event at most, and a handler one */
#define NGX_KEXEC_OPERATION_EVENTS  4


struct ngx_kexec_operation_s {
    ngx_kexec_op_t              m;

    ngx_kexec_claim_t           claim;
    ngx_kexec_claim_kind_e      kind;           /* RESTART or DELETE */

    ngx_pool_t                 *pool;
    ngx_kexec_context_t         ctx;
    ngx_kexec_server_t         *server;

    ngx_kexec_operation_pt      handler;
    void                       *data;

    const char                 *error;          /* of the last call */

    ngx_event_t                 timer;
    ngx_event_t                 freeing;

    ngx_uint_t                  first;          /* of the events to come */
    ngx_uint_t                  nevents;
    ngx_kexec_op_event_t        events[NGX_KEXEC_OPERATION_EVENTS];

    unsigned                    running:1;      /* the machine, or its hands */
};


static void ngx_kexec_operation_notice(ngx_kexec_claim_t *claim);
static void ngx_kexec_operation_leaving(ngx_kexec_operation_t *op);
static void ngx_kexec_operation_timer(ngx_event_t *ev);

static void ngx_kexec_operation_on(ngx_kexec_operation_t *op,
    ngx_kexec_op_on_e what, ngx_uint_t n);
static void ngx_kexec_operation_run(ngx_kexec_operation_t *op);
static void ngx_kexec_operation_do(ngx_kexec_operation_t *op,
    ngx_kexec_op_action_t *action);

static void ngx_kexec_operation_look(ngx_kexec_operation_t *op);
static ngx_kexec_op_end_e ngx_kexec_operation_ended(
    ngx_kexec_verdict_e verdict);
static ngx_kexec_verdict_e ngx_kexec_operation_verdict(ngx_kexec_op_end_e end);
static ngx_int_t ngx_kexec_operation_call(ngx_kexec_operation_t *op,
    ngx_kexec_call_e call);
static void ngx_kexec_operation_answered(ngx_kexec_http_t *http);
static void ngx_kexec_operation_log(ngx_kexec_operation_t *op,
    ngx_uint_t status);
static void ngx_kexec_operation_free(ngx_event_t *ev);


ngx_kexec_operation_t *
ngx_kexec_operation_create(ngx_http_request_t *r,
    ngx_http_kexec_loc_conf_t *conf, ngx_kexec_context_t *ctx,
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

    /*
     * set by ngx_pcalloc():
     *
     *     all that is not set below, state QUEUED included
     */

    op->pool = pool;
    op->kind = kind;
    op->ctx = *ctx;

    op->m.restart = (kind == NGX_KEXEC_CLAIM_RESTART);

    ngx_kexec_hands_know(ctx, &op->m.facts);

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


ngx_int_t
ngx_kexec_operation_enter(ngx_kexec_operation_t *op, ngx_kexec_zone_t *zone,
    ngx_uint_t limit, ngx_kexec_operation_pt handler, void *data)
{
    ngx_int_t  rc;

    rc = ngx_kexec_claim_operate(zone, &op->claim, op->kind, limit);

    if (rc != NGX_OK && rc != NGX_AGAIN) {
        ngx_destroy_pool(op->pool);
        return rc;
    }

    op->handler = handler;
    op->data = data;
    op->m.client = 1;

    ngx_kexec_operation_leaving(op);

    ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_ENTERED, rc == NGX_OK);

    return NGX_OK;
}


void
ngx_kexec_operation_expire(ngx_http_kexec_main_conf_t *kmcf,
    ngx_http_kexec_loc_conf_t *conf, ngx_kexec_context_t *ctx)
{
    ngx_kexec_operation_t  *op;

    op = ngx_kexec_operation_create(NULL, conf, ctx, NGX_KEXEC_CLAIM_DELETE);

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

    ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_ENTERED, 1);
}


void
ngx_kexec_operation_abandon(ngx_kexec_operation_t *op)
{
    ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_CLIENT_LEFT, 0);
}


static void
ngx_kexec_operation_notice(ngx_kexec_claim_t *claim)
{
    ngx_kexec_operation_t *op = claim->data;

    ngx_kexec_operation_leaving(op);

    ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_NOTICE, 0);
}


static void
ngx_kexec_operation_leaving(ngx_kexec_operation_t *op)
{
    ngx_msec_t  ms, last;

    if (ngx_kexec_hands_leaving(&ms, &last) == NGX_OK) {
        ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_WORKER_LEAVES, ms);
    }
}


static void
ngx_kexec_operation_timer(ngx_event_t *ev)
{
    ngx_uint_t              i;
    ngx_kexec_operation_t  *op;

    op = ev->data;

    for (i = 0; i < NGX_KEXEC_OP_WAIT_N; i++) {

        if (!ngx_kexec_hands_due(op->m.waits, op->m.wait, i)) {
            continue;
        }

        ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_TIMER, i);

        if (op->m.state == NGX_KEXEC_OP_DONE) {
            return;
        }
    }

    ngx_kexec_hands_arm(ev, op->m.waits, op->m.wait, NGX_KEXEC_OP_WAIT_N);
}


static void
ngx_kexec_operation_on(ngx_kexec_operation_t *op, ngx_kexec_op_on_e what,
    ngx_uint_t n)
{
    ngx_uint_t  i;

    if (op->nevents == NGX_KEXEC_OPERATION_EVENTS) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "too many events of an operation");
        ngx_debug_point();
        return;
    }

    i = (op->first + op->nevents++) % NGX_KEXEC_OPERATION_EVENTS;

    op->events[i].what = what;
    op->events[i].n = n;

    if (op->running) {
        return;
    }

    op->running = 1;

    while (op->nevents) {
        ngx_kexec_operation_run(op);
    }

    op->running = 0;

    if (op->m.state != NGX_KEXEC_OP_DONE) {
        ngx_kexec_hands_arm(&op->timer, op->m.waits, op->m.wait,
                            NGX_KEXEC_OP_WAIT_N);
    }
}


/* one event, and all that is to be done for it */

static void
ngx_kexec_operation_run(ngx_kexec_operation_t *op)
{
    ngx_uint_t             i;
    ngx_kexec_op_event_t   ev;
    ngx_kexec_op_state_e   state;

    ev = op->events[op->first];

    op->first = (op->first + 1) % NGX_KEXEC_OPERATION_EVENTS;
    op->nevents--;

    op->m.now = ngx_current_msec;

    state = op->m.state;

    ngx_kexec_op(&op->m, &ev);

    if (op->m.state != state) {
        ngx_log_debug6(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                       "kexec operation on %*s: %s -> %s by event %d:%ui",
                       (size_t) NGX_KEXEC_UUID_LEN, op->ctx.id,
                       ngx_kexec_op_states[state].name,
                       ngx_kexec_op_states[op->m.state].name, ev.what, ev.n);
    }

    ngx_kexec_hands_facts(&op->m.facts, &op->ctx);

    for (i = 0; i < op->m.nactions; i++) {
        ngx_kexec_operation_do(op, &op->m.actions[i]);
    }
}


static void
ngx_kexec_operation_do(ngx_kexec_operation_t *op,
    ngx_kexec_op_action_t *action)
{
    switch (action->what) {

    case NGX_KEXEC_OP_DO_LOOK:
        ngx_kexec_operation_look(op);
        return;

    case NGX_KEXEC_OP_DO_ABANDON:

        if (ngx_kexec_claim_abandon(&op->claim) == NGX_OK) {
            ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_ABANDONED, 0);
        }

        return;

    case NGX_KEXEC_OP_DO_PHASE:
        ngx_kexec_claim_phase(&op->claim, action->n);
        return;

    case NGX_KEXEC_OP_DO_FACTS:
        ngx_kexec_zone_update(&op->claim, &op->ctx);
        return;

    case NGX_KEXEC_OP_DO_REMOVE:
        ngx_kexec_kernel_deleted(&op->ctx.ref);
        ngx_kexec_zone_remove(&op->claim);
        return;

    case NGX_KEXEC_OP_DO_ANSWER:
        ngx_kexec_claim_answer(&op->claim,
                               ngx_kexec_operation_verdict(action->n));
        return;

    case NGX_KEXEC_OP_DO_LEAVE:
        ngx_kexec_claim_leave(&op->claim);
        return;

    case NGX_KEXEC_OP_DO_CALL:

        if (ngx_kexec_operation_call(op, action->n) != NGX_OK) {
            ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_FAILED, 0);
        }

        return;

    case NGX_KEXEC_OP_DO_LOG:
        ngx_kexec_operation_log(op, action->n);
        return;

    case NGX_KEXEC_OP_DO_TELL:
        op->handler(op->data, action->n);
        return;

    default: /* NGX_KEXEC_OP_DO_DONE */

        if (op->timer.timer_set) {
            ngx_del_timer(&op->timer);
        }

        ngx_post_event(&op->freeing, &ngx_posted_events);
        return;
    }
}


static void
ngx_kexec_operation_look(ngx_kexec_operation_t *op)
{
    ngx_kexec_claim_look_t  look;

    ngx_kexec_claim_look(&op->claim, &look);

    switch (look.state) {

    case NGX_KEXEC_CLAIM_QUEUED:
        ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_QUEUED, 0);
        return;

    case NGX_KEXEC_CLAIM_HELD:
        break;

    default:
        ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_ENDED,
                               ngx_kexec_operation_ended(look.verdict));
        return;
    }

    if (look.verdict == NGX_KEXEC_VERDICT_DELETED) {
        ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_EVICTED, 0);
        return;
    }

    /* its creator or last holder may have changed what is known of it */

    if (ngx_kexec_zone_get(op->claim.zone, &op->claim.context, &op->ctx)
        != NGX_OK)
    {
        ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_ENDED,
                               NGX_KEXEC_OP_END_DELETED);
        return;
    }

    ngx_kexec_hands_know(&op->ctx, &op->m.facts);

    ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_GRANTED, 0);
}


/* what a verdict of the zone's says of its end, or that of another restart */

static ngx_kexec_op_end_e
ngx_kexec_operation_ended(ngx_kexec_verdict_e verdict)
{
    switch (verdict) {

    case NGX_KEXEC_VERDICT_RESTARTED:
        return NGX_KEXEC_OP_END_OK;

    case NGX_KEXEC_VERDICT_REFUSED:
        return NGX_KEXEC_OP_END_REFUSED;

    case NGX_KEXEC_VERDICT_UNREACHABLE:
        return NGX_KEXEC_OP_END_UNREACHABLE;

    case NGX_KEXEC_VERDICT_DELETED:
        return NGX_KEXEC_OP_END_DELETED;

    default: /* NGX_KEXEC_VERDICT_NONE */
        return NGX_KEXEC_OP_END_LOST;
    }
}


/* and back, of a restart that answers others */

static ngx_kexec_verdict_e
ngx_kexec_operation_verdict(ngx_kexec_op_end_e end)
{
    switch (end) {

    case NGX_KEXEC_OP_END_OK:
        return NGX_KEXEC_VERDICT_RESTARTED;

    case NGX_KEXEC_OP_END_REFUSED:
        return NGX_KEXEC_VERDICT_REFUSED;

    default: /* NGX_KEXEC_OP_END_UNREACHABLE */
        return NGX_KEXEC_VERDICT_UNREACHABLE;
    }
}


static ngx_int_t
ngx_kexec_operation_call(ngx_kexec_operation_t *op, ngx_kexec_call_e call)
{
    ngx_str_t          session, kernel;
    ngx_kexec_http_t  *http;

    session.len = op->ctx.session.len;
    session.data = op->ctx.session.data;

    kernel.len = op->ctx.kernel.len;
    kernel.data = op->ctx.kernel.data;

    ngx_kexec_server_at(op->server, &op->ctx);

    switch (call) {

    case NGX_KEXEC_CALL_RESTART:
        http = ngx_kexec_jupyter_restart(op->server, &kernel,
                                         ngx_kexec_operation_answered, op,
                                         ngx_cycle->log);
        if (http) {
            ngx_kexec_http_limit(http, NGX_KEXEC_RESTART_TIME);
        }

        break;

    case NGX_KEXEC_CALL_CHECK:
        http = ngx_kexec_jupyter_kernel(op->server, &kernel,
                                        ngx_kexec_operation_answered, op,
                                        ngx_cycle->log);
        break;

    default: /* NGX_KEXEC_CALL_DROP */
        http = ngx_kexec_jupyter_delete(op->server, &session,
                                        ngx_kexec_operation_answered, op,
                                        ngx_cycle->log);
        break;
    }

    return http ? NGX_OK : NGX_ERROR;
}


static void
ngx_kexec_operation_answered(ngx_kexec_http_t *http)
{
    ngx_kexec_operation_t  *op;

    op = http->data;

    op->error = http->error;

    ngx_kexec_operation_on(op, NGX_KEXEC_OP_ON_ANSWER, http->status);
}


static void
ngx_kexec_operation_log(ngx_kexec_operation_t *op, ngx_uint_t status)
{
    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "Jupyter did not %s the kernel of context %*s: %ui %s",
                  op->kind == NGX_KEXEC_CLAIM_RESTART ? "restart" : "delete",
                  (size_t) NGX_KEXEC_UUID_LEN, op->ctx.id, status,
                  op->error ? op->error : "");
}


static void
ngx_kexec_operation_free(ngx_event_t *ev)
{
    ngx_kexec_operation_t *op = ev->data;

    ngx_destroy_pool(op->pool);
}
