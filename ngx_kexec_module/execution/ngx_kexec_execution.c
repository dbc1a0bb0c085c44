
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_calls.h>
#include <ngx_kexec_channel.h>
#include <ngx_kexec_envs.h>
#include <ngx_kexec_execution.h>
#include <ngx_kexec_hands.h>
#include <ngx_kexec_session.h>
#include <ngx_kexec_steps.h>
#include <ngx_kexec_verdict.h>
#include <ngx_kexec_words.h>


static u_char *ngx_kexec_execution_log(ngx_log_t *log, u_char *buf,
    size_t len);
static void ngx_kexec_execution_notice(ngx_kexec_claim_t *claim);
static void ngx_kexec_execution_look(ngx_kexec_execution_t *ex);
static void ngx_kexec_execution_leaving(ngx_kexec_execution_t *ex);
static void ngx_kexec_execution_granted(ngx_kexec_execution_t *ex);
static void ngx_kexec_execution_gone(void *data);

static void ngx_kexec_execution_event(ngx_kexec_execution_t *ex,
    ngx_kexec_machine_event_t *ev);
static void ngx_kexec_execution_run(ngx_kexec_execution_t *ex);
#if (NGX_KEXEC_TEST)
static void ngx_kexec_execution_check(ngx_kexec_execution_t *ex);
#endif
static void ngx_kexec_execution_do(ngx_kexec_execution_t *ex,
    ngx_kexec_action_t *action);
static ngx_int_t ngx_kexec_execution_try(ngx_kexec_execution_t *ex,
    ngx_kexec_action_t *action);
static void ngx_kexec_execution_know(ngx_kexec_execution_t *ex);

static void ngx_kexec_execution_timer(ngx_event_t *ev);

static void ngx_kexec_execution_not_made(ngx_kexec_execution_t *ex);
static void ngx_kexec_execution_done(ngx_kexec_execution_t *ex);
static void ngx_kexec_execution_made(ngx_kexec_execution_t *ex);
static void ngx_kexec_execution_free(ngx_event_t *ev);


ngx_kexec_execution_t *
ngx_kexec_execution_create(ngx_http_request_t *r,
    ngx_http_kexec_loc_conf_t *conf, ngx_kexec_context_t *ctx,
    ngx_kexec_claim_kind_e kind)
{
    ngx_pool_t             *pool;
    ngx_kexec_execution_t  *ex;

    pool = ngx_create_pool(4096, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    ex = ngx_pcalloc(pool, sizeof(ngx_kexec_execution_t));
    if (ex == NULL) {
        goto failed;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     all that is not set below, state QUEUED included
     */

    ex->pool = pool;
    ex->conf = conf;
    ex->event = ngx_kexec_execution_event;
    ex->kind = kind;
    ex->ctx = *ctx;

    ex->log = *ngx_cycle->log;
    ex->log.handler = ngx_kexec_execution_log;
    ex->log.data = ex;
    ex->log.action = NULL;
    pool->log = &ex->log;

    ex->server = ngx_kexec_server_create(conf, r, pool);
    if (ex->server == NULL) {
        goto failed;
    }

    ngx_kexec_uuid(ex->id);

    ex->m.conf.queue_timeout = conf->queue_timeout;
    ex->m.conf.ready_timeout = conf->ready_timeout;
    ex->m.conf.reconnect_timeout = conf->reconnect_timeout;
    ex->m.conf.interrupt_timeout = conf->interrupt_timeout;
    ex->m.conf.create = (kind == NGX_KEXEC_CLAIM_CREATE);
    ex->m.conf.is_default = ctx->is_default;
    ex->m.conf.never_restart = (conf->interrupt_failure
                                == NGX_KEXEC_FAILURE_WAIT);

    ex->claim.handler = ngx_kexec_execution_notice;
    ex->claim.data = ex;
    ex->claim.context = ctx->ref;

    ex->timer.handler = ngx_kexec_execution_timer;
    ex->timer.data = ex;
    ex->timer.log = &ex->log;

    ex->freeing.handler = ngx_kexec_execution_free;
    ex->freeing.data = ex;
    ex->freeing.log = &ex->log;

    return ex;

failed:

    ngx_destroy_pool(pool);

    return NULL;
}


void
ngx_kexec_execution_destroy(ngx_kexec_execution_t *ex)
{
    ngx_destroy_pool(ex->pool);
}


static u_char *
ngx_kexec_execution_log(ngx_log_t *log, u_char *buf, size_t len)
{
    u_char                 *p;
    ngx_kexec_execution_t  *ex;

    if (log->action) {
        p = ngx_snprintf(buf, len, " while %s", log->action);
        len -= p - buf;
        buf = p;
    }

    ex = log->data;

    return ngx_snprintf(buf, len, ", kexec context: %*s, execution: %*s",
                        (size_t) NGX_KEXEC_UUID_LEN, ex->ctx.id,
                        (size_t) NGX_KEXEC_UUID_LEN, ex->id);
}


ngx_int_t
ngx_kexec_execution_enter(ngx_kexec_execution_t *ex, ngx_kexec_zone_t *zone)
{
    ngx_int_t  rc;

    ex->entered = ngx_current_msec;

    rc = ngx_kexec_claim_enter(zone, &ex->claim, ex->conf->queue_size);

    if (rc != NGX_OK && rc != NGX_AGAIN) {
        return rc;
    }

    ngx_kexec_on(ex, NGX_KEXEC_ON_ENTERED, rc == NGX_OK);

    return NGX_OK;
}


void
ngx_kexec_execution_make(ngx_kexec_execution_t *ex)
{
    ex->entered = ngx_current_msec;

    ngx_kexec_execution_know(ex);
    ngx_kexec_execution_leaving(ex);

    ngx_kexec_on(ex, NGX_KEXEC_ON_START, 0);
}


void
ngx_kexec_execution_attach(ngx_kexec_execution_t *ex,
    ngx_kexec_client_t *client)
{
    ngx_kexec_report_t  *report;

    ex->client = client;
    ex->m.viewer = 1;

    client->gone = ngx_kexec_execution_gone;
    client->data = ex;

    report = client->report;

    report->has_context = 1;
    ngx_memcpy(report->context, ex->ctx.id, NGX_KEXEC_UUID_LEN);

    report->has_execution = 1;
    ngx_memcpy(report->execution, ex->id, NGX_KEXEC_UUID_LEN);
}


void
ngx_kexec_execution_abandon(ngx_kexec_execution_t *ex)
{
    ex->created = NULL;
    ex->data = NULL;

    ngx_kexec_on(ex, NGX_KEXEC_ON_ABANDONED, 0);
}


/* the client left: it is forgotten first, for its memory goes with it */

static void
ngx_kexec_execution_gone(void *data)
{
    ngx_kexec_execution_t *ex = data;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, &ex->log, 0,
                   "kexec client left in state %s",
                   ngx_kexec_machine_states[ex->m.state].name);

    ex->client->report->status = NGX_KEXEC_STATUS_CANCELLED;

    if (ex->m.started) {
        ex->client->report->has_run_time = 1;
        ex->client->report->run_time = ngx_current_msec - ex->m.started;
    }

    ex->client = NULL;

    ngx_kexec_verdict_end(ex);

    ngx_kexec_on(ex, NGX_KEXEC_ON_CLIENT_LEFT, 0);
}


static void
ngx_kexec_execution_notice(ngx_kexec_claim_t *claim)
{
    ngx_kexec_execution_look(claim->data);
}


static void
ngx_kexec_execution_look(ngx_kexec_execution_t *ex)
{
    ngx_kexec_claim_look_t  look;

    if (ex->m.state == NGX_KEXEC_EX_DONE) {
        return;
    }

    ngx_kexec_execution_leaving(ex);

    if (ex->m.state == NGX_KEXEC_EX_LEAVING) {
        return;
    }

    ngx_kexec_claim_look(&ex->claim, &look);

    if (look.verdict != NGX_KEXEC_VERDICT_NONE) {
        ngx_kexec_on(ex, NGX_KEXEC_ON_EVICTED,
                               look.verdict == NGX_KEXEC_VERDICT_DELETED);
        return;
    }

    switch (look.state) {

    case NGX_KEXEC_CLAIM_QUEUED:
        ngx_kexec_on(ex, NGX_KEXEC_ON_QUEUED, 0);
        return;

    case NGX_KEXEC_CLAIM_HELD:
        break;

    default:
        ngx_log_error(NGX_LOG_ALERT, &ex->log, 0,
                      "claim of an execution is lost");
        ngx_kexec_on(ex, NGX_KEXEC_ON_LOST, 0);
        return;
    }

    if (ex->m.state == NGX_KEXEC_EX_QUEUED) {
        ngx_kexec_execution_granted(ex);
    }

    if (look.interrupt) {
        ngx_kexec_on(ex, NGX_KEXEC_ON_INTERRUPT, 0);
    }
}


static void
ngx_kexec_execution_leaving(ngx_kexec_execution_t *ex)
{
    ngx_msec_t  ms;

    if (ngx_kexec_hands_leaving(&ms, &ex->m.conf.last_time) == NGX_OK) {
        ngx_kexec_on(ex, NGX_KEXEC_ON_WORKER_LEAVES, (ngx_int_t) ms);
    }
}


/* the slot is ours, and with it the kernel */

static void
ngx_kexec_execution_granted(ngx_kexec_execution_t *ex)
{
    const char                 *why;
    ngx_kexec_report_t         *report;
    ngx_kexec_machine_event_t   ev;

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    ev.what = NGX_KEXEC_ON_GRANTED;

    if (ngx_kexec_zone_get(ex->claim.zone, &ex->claim.context, &ex->ctx)
        != NGX_OK)
    {
        ev.say = NGX_KEXEC_SAY_GONE;
        ngx_kexec_execution_event(ex, &ev);
        return;
    }

    if (ex->client) {
        report = ex->client->report;
        report->has_queue_time = 1;
        report->queue_time = ngx_current_msec - ex->entered;
    }

    why = ngx_kexec_language_refuses_code(ex->ctx.kind, &ex->code);

    if (why) {
        ex->sentence.data = (u_char *) why;
        ex->sentence.len = ngx_strlen(why);
        ev.say = NGX_KEXEC_SAY_INVALID_CODE;

    } else {
        ngx_kexec_language_lines(ex->ctx.kind, &ex->code);
    }

    ngx_kexec_execution_know(ex);
    ngx_kexec_execution_event(ex, &ev);
}


static void
ngx_kexec_execution_event(ngx_kexec_execution_t *ex,
    ngx_kexec_machine_event_t *ev)
{
    ngx_uint_t  i;

    if (ex->nevents == NGX_KEXEC_EXECUTION_EVENTS) {
        ngx_log_error(NGX_LOG_ALERT, &ex->log, 0,
                      "too many events of an execution");
        ngx_debug_point();
        return;
    }

    i = (ex->first + ex->nevents++) % NGX_KEXEC_EXECUTION_EVENTS;
    ex->events[i] = *ev;

    if (ex->running) {
        return;
    }

    ex->running = 1;

    while (ex->nevents) {
        ngx_kexec_execution_run(ex);
    }

    ex->running = 0;

    if (ex->m.state != NGX_KEXEC_EX_DONE) {
        ngx_kexec_hands_arm(&ex->timer, ex->m.waits, ex->m.wait,
                            NGX_KEXEC_WAIT_N);
    }
}


/* one event, and all that is to be done for it */

static void
ngx_kexec_execution_run(ngx_kexec_execution_t *ex)
{
    ngx_uint_t                    i;
    ngx_kexec_link_t             *link;
    ngx_kexec_machine_t          *m;
    ngx_kexec_machine_event_t     ev;
    ngx_kexec_execution_state_e   state;

    m = &ex->m;

    ev = ex->events[ex->first];

    ex->first = (ex->first + 1) % NGX_KEXEC_EXECUTION_EVENTS;
    ex->nevents--;

    m->now = ngx_current_msec;

    link = ex->kernel ? ex->kernel->link : NULL;

    m->link_up = link && ngx_kexec_link_connected(link);
    m->link_read = link ? ngx_kexec_link_last_read(link) : 0;

    state = m->state;

    ngx_kexec_machine(m, &ev);

#if (NGX_KEXEC_TEST)
    ngx_kexec_execution_check(ex);
#endif

    if (m->state != state || m->nactions) {
        ngx_log_debug5(NGX_LOG_DEBUG_HTTP, &ex->log, 0,
                       "kexec %s -> %s by %s:%i, %ui to do",
                       ngx_kexec_machine_states[state].name,
                       ngx_kexec_machine_states[m->state].name,
                       ngx_kexec_machine_event_name(&ev), ev.n, m->nactions);
    }

    /* what is done is done with what the machine knows */

    ngx_kexec_hands_facts(&m->facts, &ex->ctx);

    for (i = 0; i < m->nactions; i++) {
        ngx_kexec_execution_do(ex, &m->actions[i]);
    }

    ex->log.action = (char *) ngx_kexec_machine_states[m->state].action;

    if (ex->kernel) {
        ex->kernel->foreign = m->foreign;
    }
}


#if (NGX_KEXEC_TEST)

static void
ngx_kexec_execution_check(ngx_kexec_execution_t *ex)
{
    const char  *broken;

    broken = ngx_kexec_machine_check(&ex->m);

    if (broken) {
        ngx_log_error(NGX_LOG_ALERT, &ex->log, 0,
                      "kexec machine in state %s: %s",
                      ngx_kexec_machine_states[ex->m.state].name, broken);
        ngx_abort();
    }
}

#endif


static void
ngx_kexec_execution_do(ngx_kexec_execution_t *ex, ngx_kexec_action_t *action)
{
    switch (action->what) {

    case NGX_KEXEC_DO_LOOK:
        ngx_kexec_execution_look(ex);
        return;

    case NGX_KEXEC_DO_PHASE:
        ngx_kexec_claim_phase(&ex->claim, action->n);
        return;

    case NGX_KEXEC_DO_FACTS:
        ngx_kexec_zone_update(&ex->claim, &ex->ctx);
        return;

    case NGX_KEXEC_DO_EVICT:
        ngx_kexec_claim_evict(&ex->claim, NGX_KEXEC_VERDICT_RESTARTED);
        return;

    case NGX_KEXEC_DO_OTHER:
        ngx_kexec_kernel_other(ex->kernel);
        return;

    case NGX_KEXEC_DO_DISCARD:
        ngx_kexec_kernel_discard(ex->kernel);
        ex->kernel = NULL;
        return;

    case NGX_KEXEC_DO_SEND_CODE:
        ngx_kexec_channel_send_code(ex);
        return;

    case NGX_KEXEC_DO_SEND_FENCE:
        ngx_kexec_channel_send_fence(ex);
        return;

    case NGX_KEXEC_DO_SEND_AGAIN:
        ngx_kexec_channel_send_again(ex);
        return;

    case NGX_KEXEC_DO_SEND_STEP:
        ngx_kexec_channel_send_step(ex);
        return;

    case NGX_KEXEC_DO_STEP:
        ngx_kexec_on(ex, NGX_KEXEC_ON_STEP,
                               ngx_kexec_step_source(ex, action->n));
        return;

    case NGX_KEXEC_DO_FETCH_NOT:
        ngx_kexec_envs_stop(ex);
        return;

    case NGX_KEXEC_DO_MARK_NOT:
        ngx_kexec_session_unmark(ex);
        return;

    case NGX_KEXEC_DO_CALL_NOT:
        ngx_kexec_call_stop(ex);
        return;

    case NGX_KEXEC_DO_TELL:
        ngx_kexec_tell(ex, action->say, action->n);
        return;

    case NGX_KEXEC_DO_TELL_VERDICT:
        ngx_kexec_verdict_end(ex);
        return;

    case NGX_KEXEC_DO_TELL_HELD:
        ngx_kexec_verdict_release(ex);
        return;

    case NGX_KEXEC_DO_TELL_DROPPED:
        ex->dropped = 1;
        return;

    case NGX_KEXEC_DO_TELL_END:
        ngx_kexec_tell_end(ex);
        return;

    case NGX_KEXEC_DO_LOG:
        ngx_kexec_tell_log(ex, action->say, action->n);
        return;

    case NGX_KEXEC_DO_NOT_MADE:
        ngx_kexec_execution_not_made(ex);
        return;

    case NGX_KEXEC_DO_DONE:
        ngx_kexec_execution_done(ex);
        return;

    default:

        if (ngx_kexec_execution_try(ex, action) != NGX_OK) {
            ngx_kexec_on(ex, NGX_KEXEC_ON_FAILED, action->what);
        }

        return;
    }
}


/* what there may be no memory for */

static ngx_int_t
ngx_kexec_execution_try(ngx_kexec_execution_t *ex, ngx_kexec_action_t *action)
{
    switch (action->what) {

    case NGX_KEXEC_DO_TAKE:
        return ngx_kexec_channel_take(ex);

    case NGX_KEXEC_DO_OPEN:
        return ngx_kexec_kernel_open(ex->kernel);

    case NGX_KEXEC_DO_FETCH:
        return ngx_kexec_envs_fetch(ex);

    case NGX_KEXEC_DO_MARK:
        return ngx_kexec_session_mark(ex);

    case NGX_KEXEC_DO_CALL:
        return ngx_kexec_call(ex, action->n);

    default: /* NGX_KEXEC_DO_N */
        return NGX_OK;
    }
}


/* what is known of the context, as it was copied out of its record */

static void
ngx_kexec_execution_know(ngx_kexec_execution_t *ex)
{
    ngx_kexec_hands_know(&ex->ctx, &ex->m.facts);

    ex->m.conf.envs = (ex->conf->envs && ex->kind == NGX_KEXEC_CLAIM_RUN
                       && ex->ctx.kind != NGX_KEXEC_LANG_OTHER);
}


static void
ngx_kexec_execution_timer(ngx_event_t *ev)
{
    ngx_uint_t              i;
    ngx_kexec_execution_t  *ex;

    ex = ev->data;

    for (i = 0; i < NGX_KEXEC_WAIT_N; i++) {

        if (!ngx_kexec_hands_due(ex->m.waits, ex->m.wait, i)) {
            continue;
        }

        ngx_kexec_on(ex, NGX_KEXEC_ON_TIMER, i);

        if (ex->m.state == NGX_KEXEC_EX_DONE) {
            return;
        }
    }

    ngx_kexec_hands_arm(ev, ex->m.waits, ex->m.wait, NGX_KEXEC_WAIT_N);
}


/* a new context failed, or was given up, and has left nothing behind */

static void
ngx_kexec_execution_not_made(ngx_kexec_execution_t *ex)
{
    ngx_str_t             sentence;
    ngx_uint_t            status;
    ngx_kexec_created_pt  created;
    u_char                buf[NGX_KEXEC_SENTENCE];

    created = ex->created;
    ex->created = NULL;

    status = ngx_kexec_tell_failure(ex, buf, &sentence);

    /* a worker that has to end says nothing about the context */

    ngx_kexec_zone_failed(&ex->claim, ex->m.shutdown ? 0 : status, &sentence);

    if (created) {
        created(ex->data, status, &sentence, &ex->ctx);
    }
}


/*
 * The one end of an execution.  Its memory is freed from the event loop, for
 * this may be called from any of its handlers.
 */

static void
ngx_kexec_execution_done(ngx_kexec_execution_t *ex)
{
    if (ex->timer.timer_set) {
        ngx_del_timer(&ex->timer);
    }

    ngx_kexec_call_stop(ex);
    ngx_kexec_session_unmark(ex);
    ngx_kexec_envs_stop(ex);

    /* a client that has left, or was told its end */

    ngx_kexec_verdict_end(ex);

    if (ex->kernel) {
        ex->kernel->fresh = ex->m.fresh;
        ex->kernel->seen = ex->m.reach == NGX_KEXEC_REACH_OPEN
                           && ex->m.seen;
        ex->kernel->foreign = ex->m.foreign;

        if (ex->m.other) {
            ngx_kexec_kernel_discard(ex->kernel);

        } else {
            ngx_kexec_kernel_release(ex->kernel);
        }

        ex->kernel = NULL;
    }

    if (ex->kind == NGX_KEXEC_CLAIM_CREATE && ex->claim.ref.generation) {
        ngx_kexec_execution_made(ex);
    }

    ngx_kexec_claim_leave(&ex->claim);

    ngx_post_event(&ex->freeing, &ngx_posted_events);
}


static void
ngx_kexec_execution_made(ngx_kexec_execution_t *ex)
{
    ngx_str_t             sentence;
    ngx_kexec_created_pt  created;

    if (ex->m.made) {
        ngx_kexec_zone_created(&ex->claim);
        ngx_str_null(&sentence);

    } else {

        /* whoever wants it deleted has the slot next, and does it */

        ngx_str_set(&sentence, "The context was deleted while it was made");
    }

    created = ex->created;
    ex->created = NULL;

    if (created) {
        created(ex->data,
                ex->m.made ? NGX_HTTP_OK : NGX_HTTP_INTERNAL_SERVER_ERROR,
                &sentence, &ex->ctx);
    }
}


static void
ngx_kexec_execution_free(ngx_event_t *ev)
{
    ngx_kexec_execution_t *ex = ev->data;

    ngx_destroy_pool(ex->pool);
}
