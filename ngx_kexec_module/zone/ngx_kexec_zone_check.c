
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_kexec_zone_int.h>


/*
 * A worker that died while it was changing the zone leaves it in any state.
 * The checker believes nothing but records, and of them only those that make
 * sense: all links are first counted and compared, and when something is
 * wrong they are made anew from the records.  No index is used before it was
 * compared with the size of its array, and no list is followed for longer
 * than it can be.
 */


/* a claim's number, which no zone reaches in its life */

#define NGX_KEXEC_CHECK_SEQUENCE  ((uint64_t) 1 << 62)


typedef struct {
    ngx_uint_t  queued;
    ngx_uint_t  watching;
    ngx_uint_t  noticed;
    ngx_uint_t  used;
    ngx_uint_t  failed;
    ngx_uint_t  defaults;
} ngx_kexec_check_t;


static ngx_uint_t ngx_kexec_check_context(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx, ngx_kexec_check_t *found);
static ngx_uint_t ngx_kexec_check_state(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx);
static ngx_uint_t ngx_kexec_check_was_ready(ngx_kexec_zone_claim_t *holder);
static ngx_uint_t ngx_kexec_check_claims(ngx_kexec_zone_t *zone,
    ngx_kexec_check_t *found);
static ngx_uint_t ngx_kexec_check_notices(ngx_kexec_zone_t *zone,
    ngx_kexec_check_t *found);
static ngx_uint_t ngx_kexec_check_lists(ngx_kexec_zone_t *zone,
    ngx_kexec_check_t *found);

static ngx_uint_t ngx_kexec_check_context_makes_sense(
    ngx_kexec_zone_context_t *ctx);
static ngx_uint_t ngx_kexec_check_claim_makes_sense(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_claim_t *cl);
static ngx_kexec_zone_context_t *ngx_kexec_check_context_of(
    ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl);

static void ngx_kexec_repair(ngx_kexec_zone_t *zone);
static void ngx_kexec_repair_contexts(ngx_kexec_zone_t *zone);
static void ngx_kexec_repair_claims(ngx_kexec_zone_t *zone);
static void ngx_kexec_repair_claim(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_claim_t *cl);
static ngx_kexec_zone_claim_t *ngx_kexec_repair_holder(
    ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx,
    ngx_kexec_zone_claim_t *cl);
static void ngx_kexec_repair_state(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx);


ngx_uint_t
ngx_kexec_zone_check(ngx_kexec_zone_t *zone, ngx_uint_t repair)
{
    ngx_uint_t         i, bad;
    ngx_kexec_check_t  found;

    ngx_memzero(&found, sizeof(ngx_kexec_check_t));

    bad = 0;

    for (i = 0; i < zone->ncontexts; i++) {
        bad += ngx_kexec_check_context(zone, &zone->contexts[i], &found);
    }

    bad += ngx_kexec_check_claims(zone, &found);
    bad += ngx_kexec_check_notices(zone, &found);
    bad += ngx_kexec_check_lists(zone, &found);

    if (!repair) {
        return bad;
    }

    if (bad) {
        ngx_kexec_repair(zone);
    }

    /* it may be that somebody was not told something: all are told */

    for (i = 0; i < zone->nclaims; i++) {
        if (zone->claims[i].state != NGX_KEXEC_CLAIM_NONE) {
            ngx_kexec_slot_notice(zone, &zone->claims[i]);
        }
    }

    return bad;
}


ngx_uint_t
ngx_kexec_zone_wrong(ngx_kexec_zone_t *zone)
{
    ngx_uint_t  wrong;

    ngx_kexec_zone_lock(zone);

    wrong = ngx_kexec_zone_check(zone, 0);

    ngx_kexec_zone_unlock(zone);

    return wrong;
}


static ngx_uint_t
ngx_kexec_check_context(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx,
    ngx_kexec_check_t *found)
{
    uint32_t                 i, index, prev;
    ngx_uint_t               n;
    ngx_kexec_zone_claim_t  *cl, *last;

    if (ctx->c.state == NGX_KEXEC_CONTEXT_FREE) {
        return 0;
    }

    if (!ngx_kexec_check_context_makes_sense(ctx)) {
        return 1;
    }

    found->used++;
    found->failed += (ctx->c.state == NGX_KEXEC_CONTEXT_FAILED);
    found->defaults += ctx->c.is_default;

    index = ctx - zone->contexts;

    if (ctx->c.ref.index != index || ctx->c.serial > zone->sh->serial
        || index >= zone->sh->top)
    {
        return 1;
    }

    if (ctx->holder != NGX_KEXEC_NONE) {

        if (ctx->holder >= zone->nclaims) {
            return 1;
        }

        cl = &zone->claims[ctx->holder];

        if ((cl->state != NGX_KEXEC_CLAIM_HELD
             && cl->state != NGX_KEXEC_CLAIM_GRANTED)
            || ngx_kexec_check_context_of(zone, cl) != ctx)
        {
            return 1;
        }
    }

    n = 0;
    last = NULL;
    prev = NGX_KEXEC_NONE;

    for (i = ctx->head; i != NGX_KEXEC_NONE; i = cl->next) {

        if (i >= zone->nclaims || ++n > zone->nclaims) {
            return 1;
        }

        cl = &zone->claims[i];

        if (cl->state != NGX_KEXEC_CLAIM_QUEUED
            || cl->prev != prev
            || ngx_kexec_check_context_of(zone, cl) != ctx
            || (last && ngx_kexec_slot_before(cl, last)))
        {
            return 1;
        }

        last = cl;
        prev = i;
    }

    if (ctx->tail != prev || ctx->c.queued != n) {
        return 1;
    }

    found->queued += n;

    n = 0;
    prev = NGX_KEXEC_NONE;

    for (i = ctx->watchers; i != NGX_KEXEC_NONE; i = cl->next) {

        if (i >= zone->nclaims || ++n > zone->nclaims) {
            return 1;
        }

        cl = &zone->claims[i];

        if (cl->state != NGX_KEXEC_CLAIM_WATCHING
            || cl->prev != prev
            || ngx_kexec_check_context_of(zone, cl) != ctx)
        {
            return 1;
        }

        prev = i;
    }

    found->watching += n;

    return ngx_kexec_check_state(zone, ctx);
}


/* what a context is must go with what its claims are */

static ngx_uint_t
ngx_kexec_check_state(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx)
{
    uint32_t                 i;
    ngx_uint_t               runs, deletes;
    ngx_kexec_zone_claim_t  *holder;

    runs = 0;
    deletes = ngx_kexec_slot_deletes(zone, ctx);

    for (i = ctx->head; i != NGX_KEXEC_NONE; i = zone->claims[i].next) {
        runs += (zone->claims[i].kind == NGX_KEXEC_CLAIM_RUN);
    }

    if (ctx->holder == NGX_KEXEC_NONE) {
        holder = NULL;

        if (ctx->c.held_since != 0
            || ctx->c.phase != NGX_KEXEC_PHASE_FREE
            || ctx->head != NGX_KEXEC_NONE)
        {
            return 1;
        }

    } else {
        holder = &zone->claims[ctx->holder];

        if (ctx->c.held_since == 0) {
            return 1;
        }
    }

    switch (ctx->c.state) {

    case NGX_KEXEC_CONTEXT_CREATING:
        return deletes || ctx->created || holder == NULL
               || holder->kind != NGX_KEXEC_CLAIM_CREATE;

    case NGX_KEXEC_CONTEXT_READY:
        return deletes || !ctx->created;

    case NGX_KEXEC_CONTEXT_FAILED:
        return holder || ctx->head != NGX_KEXEC_NONE || !ctx->c.is_default;

    default: /* NGX_KEXEC_CONTEXT_DELETING */
        return deletes == 0 || runs
               || (!ctx->created && ngx_kexec_check_was_ready(holder));
    }
}


/* who runs or restarts has a context that was ready once */

static ngx_uint_t
ngx_kexec_check_was_ready(ngx_kexec_zone_claim_t *holder)
{
    return holder && (holder->kind == NGX_KEXEC_CLAIM_RUN
                      || holder->kind == NGX_KEXEC_CLAIM_RESTART);
}


static ngx_uint_t
ngx_kexec_check_claims(ngx_kexec_zone_t *zone, ngx_kexec_check_t *found)
{
    ngx_uint_t                 i, bad, attached;
    ngx_uint_t                 n[NGX_KEXEC_CLAIM_WATCHING + 1];
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *ctx;

    bad = 0;
    attached = 0;

    ngx_memzero(n, sizeof(n));

    for (i = 0; i < zone->nclaims; i++) {
        cl = &zone->claims[i];

        if (!ngx_kexec_check_claim_makes_sense(zone, cl)) {
            bad++;
            continue;
        }

        n[cl->state]++;

        if (cl->state == NGX_KEXEC_CLAIM_NONE) {
            continue;
        }

        if (cl->sequence > zone->sh->sequence) {
            bad++;
        }

        ctx = ngx_kexec_check_context_of(zone, cl);

        switch (cl->state) {

        case NGX_KEXEC_CLAIM_QUEUED:
            bad += (ctx == NULL);
            break;

        case NGX_KEXEC_CLAIM_GRANTED:
        case NGX_KEXEC_CLAIM_HELD:
            bad += (ctx == NULL || ctx->holder != i);
            break;

        default: /* NGX_KEXEC_CLAIM_ENDED, NGX_KEXEC_CLAIM_WATCHING */
            bad += (ctx == NULL && cl->context != NGX_KEXEC_NONE);
            attached += (ctx != NULL);
            bad += (ctx != NULL && cl->state == NGX_KEXEC_CLAIM_ENDED);
        }
    }

    for (i = 0; i <= NGX_KEXEC_CLAIM_WATCHING; i++) {
        bad += (n[i] != zone->sh->nclaims[i]);
    }

    bad += (n[NGX_KEXEC_CLAIM_QUEUED] != found->queued);
    bad += (attached != found->watching);

    return bad;
}


static ngx_uint_t
ngx_kexec_check_notices(ngx_kexec_zone_t *zone, ngx_kexec_check_t *found)
{
    uint32_t                  i, prev;
    ngx_uint_t                n, w, noticed;
    ngx_kexec_zone_claim_t   *cl;
    ngx_kexec_zone_worker_t  *worker;

    n = 0;
    noticed = 0;

    for (w = 0; w < NGX_KEXEC_MAX_WORKERS; w++) {
        worker = &zone->sh->workers[w];

        if (worker->pid == 0) {
            continue;
        }

        prev = NGX_KEXEC_NONE;

        for (i = worker->head; i != NGX_KEXEC_NONE; i = cl->next_notice) {

            if (i >= zone->nclaims || ++n > zone->nclaims) {
                return 1;
            }

            cl = &zone->claims[i];

            if (cl->state == NGX_KEXEC_CLAIM_NONE
                || cl->worker != w
                || cl->prev_notice != prev
                || !cl->noticed)
            {
                return 1;
            }

            prev = i;
        }

        if (worker->tail != prev) {
            return 1;
        }
    }

    for (i = 0; i < zone->nclaims; i++) {
        noticed += zone->claims[i].noticed;
    }

    return n != noticed;
}


/* the free ones, and the hashes */

static ngx_uint_t
ngx_kexec_check_lists(ngx_kexec_zone_t *zone, ngx_kexec_check_t *found)
{
    uint32_t                   i;
    ngx_uint_t                 k, n, bad;
    ngx_kexec_zone_sh_t       *sh;
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *ctx;

    sh = zone->sh;

    bad = (sh->ncontexts != found->used) + (sh->nfailed != found->failed)
          + (sh->top > zone->ncontexts);

    n = 0;

    for (i = sh->free_contexts; i != NGX_KEXEC_NONE; i = ctx->next) {

        if (i >= zone->ncontexts || ++n > zone->ncontexts) {
            return 1;
        }

        ctx = &zone->contexts[i];

        if (ctx->c.state != NGX_KEXEC_CONTEXT_FREE) {
            return 1;
        }
    }

    bad += (n != zone->ncontexts - found->used);

    n = 0;

    for (i = sh->free_claims; i != NGX_KEXEC_NONE; i = cl->next) {

        if (i >= zone->nclaims || ++n > zone->nclaims) {
            return 1;
        }

        cl = &zone->claims[i];

        if (cl->state != NGX_KEXEC_CLAIM_NONE) {
            return 1;
        }
    }

    bad += (n != sh->nclaims[NGX_KEXEC_CLAIM_NONE]);

    n = 0;

    for (k = 0; k < zone->nbuckets; k++) {

        for (i = zone->ids[k]; i != NGX_KEXEC_NONE; i = ctx->next) {

            if (i >= zone->ncontexts || ++n > zone->ncontexts) {
                return 1;
            }

            ctx = &zone->contexts[i];

            if (ctx->c.state == NGX_KEXEC_CONTEXT_FREE
                || ngx_kexec_zone_bucket(zone, zone->ids, ctx->c.id,
                                         NGX_KEXEC_UUID_LEN)
                   != &zone->ids[k])
            {
                return 1;
            }
        }
    }

    bad += (n != found->used);

    n = 0;

    for (k = 0; k < zone->nbuckets; k++) {

        for (i = zone->defaults[k]; i != NGX_KEXEC_NONE; i = ctx->next_default)
        {
            if (i >= zone->ncontexts || ++n > zone->ncontexts) {
                return 1;
            }

            ctx = &zone->contexts[i];

            if (ctx->c.state == NGX_KEXEC_CONTEXT_FREE
                || !ctx->c.is_default
                || ctx->c.language_len > NGX_KEXEC_LANGUAGE_LEN
                || ngx_kexec_zone_bucket(zone, zone->defaults,
                                         ctx->c.language, ctx->c.language_len)
                   != &zone->defaults[k])
            {
                return 1;
            }
        }
    }

    bad += (n != found->defaults);

    return bad;
}


static ngx_uint_t
ngx_kexec_check_context_makes_sense(ngx_kexec_zone_context_t *ctx)
{
    return (ngx_uint_t) ctx->c.state <= NGX_KEXEC_CONTEXT_DELETING
           && (ngx_uint_t) ctx->c.kind <= NGX_KEXEC_LANG_JAVA
           && (ngx_uint_t) ctx->c.phase <= NGX_KEXEC_PHASE_LEFTOVER
           && ctx->c.ref.generation != 0
           && ctx->c.serial < NGX_KEXEC_SERIAL_MAX
           && ctx->c.language_len <= NGX_KEXEC_LANGUAGE_LEN
           && ctx->c.spec_len <= NGX_KEXEC_LANGUAGE_LEN
           && ctx->c.cwd_len <= NGX_KEXEC_CWD_LEN
           && ctx->c.failure_len <= NGX_KEXEC_FAILURE_LEN
           && ctx->c.session.len <= NGX_KEXEC_ID_LEN
           && ctx->c.kernel.len <= NGX_KEXEC_ID_LEN
           && ctx->c.socklen <= sizeof(ctx->c.sockaddr)
           && ctx->c.server_len <= sizeof(ctx->c.server)
           && !ctx->torn;
}


static ngx_uint_t
ngx_kexec_check_claim_makes_sense(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_claim_t *cl)
{
    ngx_kexec_zone_worker_t  *worker;

    if (cl->state == NGX_KEXEC_CLAIM_NONE) {
        return !cl->noticed;
    }

    if (cl->state > NGX_KEXEC_CLAIM_WATCHING
        || cl->kind < NGX_KEXEC_CLAIM_RUN
        || cl->kind > NGX_KEXEC_CLAIM_WATCH
        || cl->verdict > NGX_KEXEC_VERDICT_UNREACHABLE
        || cl->generation == 0
        || cl->sequence >= NGX_KEXEC_CHECK_SEQUENCE
        || cl->worker >= NGX_KEXEC_MAX_WORKERS)
    {
        return 0;
    }

    worker = &zone->sh->workers[cl->worker];

    if (worker->pid == 0 || worker->generation != cl->worker_generation) {
        return 0;
    }

    if ((cl->kind == NGX_KEXEC_CLAIM_WATCH)
        != (cl->state == NGX_KEXEC_CLAIM_WATCHING))
    {
        return 0;
    }

    return cl->kind != NGX_KEXEC_CLAIM_CREATE
           || cl->state == NGX_KEXEC_CLAIM_HELD
           || cl->state == NGX_KEXEC_CLAIM_ENDED;
}


static ngx_kexec_zone_context_t *
ngx_kexec_check_context_of(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl)
{
    ngx_kexec_ref_t  ref;

    ref.index = cl->context;
    ref.generation = cl->context_generation;

    return ngx_kexec_zone_context(zone, &ref);
}


static void
ngx_kexec_repair(ngx_kexec_zone_t *zone)
{
    ngx_uint_t                 i;
    ngx_kexec_zone_worker_t   *worker;
    ngx_kexec_zone_context_t  *ctx;

    for (i = 0; i < NGX_KEXEC_MAX_WORKERS; i++) {
        worker = &zone->sh->workers[i];

        worker->head = NGX_KEXEC_NONE;
        worker->tail = NGX_KEXEC_NONE;
    }

    ngx_kexec_repair_contexts(zone);
    ngx_kexec_repair_claims(zone);

    for (i = 0; i < zone->ncontexts; i++) {
        ctx = &zone->contexts[i];

        if (ctx->c.state != NGX_KEXEC_CONTEXT_FREE) {
            ngx_kexec_repair_state(zone, ctx);
        }
    }
}


static void
ngx_kexec_repair_contexts(ngx_kexec_zone_t *zone)
{
    ngx_uint_t                 i;
    ngx_kexec_zone_sh_t       *sh;
    ngx_kexec_zone_context_t  *ctx;

    sh = zone->sh;

    sh->ncontexts = 0;
    sh->nfailed = 0;
    sh->top = 0;
    sh->free_contexts = NGX_KEXEC_NONE;

    if (sh->serial >= NGX_KEXEC_SERIAL_MAX) {
        sh->serial = 0;
    }

    for (i = 0; i < zone->nbuckets; i++) {
        zone->ids[i] = NGX_KEXEC_NONE;
        zone->defaults[i] = NGX_KEXEC_NONE;
    }

    for (i = 0; i < zone->ncontexts; i++) {
        ctx = &zone->contexts[i];

        ctx->c.ref.index = i;
        ctx->c.queued = 0;

        ctx->next_default = NGX_KEXEC_NONE;
        ctx->holder = NGX_KEXEC_NONE;
        ctx->head = NGX_KEXEC_NONE;
        ctx->tail = NGX_KEXEC_NONE;
        ctx->watchers = NGX_KEXEC_NONE;

        if (ctx->torn && ctx->created) {

            /*
             * Which kernel is its own is not known: it gets another one.  What
             * kernel it has to be, and where, never changes.
             */

            ngx_kexec_zone_new_process(&ctx->c);

            ctx->c.kernel.len = 0;
            ctx->torn = 0;
        }

        /* a half-written one is no loss: Jupyter still has it */

        if (ctx->c.state == NGX_KEXEC_CONTEXT_FREE
            || !ngx_kexec_check_context_makes_sense(ctx)
            || ngx_kexec_zone_by_id(zone, ctx->c.id)
            || (ctx->c.is_default
                && ngx_kexec_zone_by_language(zone, ctx->c.language,
                                              ctx->c.language_len)))
        {
            ctx->c.state = NGX_KEXEC_CONTEXT_FREE;
            ctx->torn = 0;

            continue;
        }

        ngx_kexec_zone_link(zone, ctx);

        sh->nfailed += (ctx->c.state == NGX_KEXEC_CONTEXT_FAILED);
        sh->serial = ngx_max(sh->serial, ctx->c.serial);
    }

    /* the first ones are taken first: what lies behind is not touched */

    while (i-- > 0) {
        ctx = &zone->contexts[i];

        if (ctx->c.state == NGX_KEXEC_CONTEXT_FREE) {
            ctx->next = sh->free_contexts;
            sh->free_contexts = i;

        } else {
            sh->top = ngx_max(sh->top, i + 1);
        }
    }
}


static void
ngx_kexec_repair_claims(ngx_kexec_zone_t *zone)
{
    ngx_uint_t                 i;
    ngx_kexec_zone_sh_t       *sh;
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *ctx;

    sh = zone->sh;

    sh->sequence = 0;

    for (i = 0; i < zone->nclaims; i++) {
        cl = &zone->claims[i];

        cl->next = NGX_KEXEC_NONE;
        cl->prev = NGX_KEXEC_NONE;
        cl->noticed = 0;

        if (!ngx_kexec_check_claim_makes_sense(zone, cl)) {
            ctx = ngx_kexec_check_context_of(zone, cl);

            if (ctx && cl->state == NGX_KEXEC_CLAIM_HELD) {
                ctx->c.dirty = 1;
            }

            cl->state = NGX_KEXEC_CLAIM_NONE;
        }

        if (cl->state != NGX_KEXEC_CLAIM_NONE) {
            sh->sequence = ngx_max(sh->sequence, cl->sequence);
            ngx_kexec_repair_claim(zone, cl);
        }
    }

    sh->free_claims = NGX_KEXEC_NONE;
    ngx_memzero(sh->nclaims, sizeof(sh->nclaims));

    for (i = 0; i < zone->nclaims; i++) {
        cl = &zone->claims[i];

        sh->nclaims[cl->state]++;

        if (cl->state == NGX_KEXEC_CLAIM_NONE) {
            cl->next = sh->free_claims;
            sh->free_claims = i;
        }
    }
}


/* the counts by state are wrong until all claims are through */

static void
ngx_kexec_repair_claim(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl)
{
    ngx_kexec_zone_context_t  *ctx;

    ctx = ngx_kexec_check_context_of(zone, cl);

    if (cl->state == NGX_KEXEC_CLAIM_WATCHING) {

        if (ctx) {
            ngx_kexec_slot_watch(zone, ctx, cl);

        } else {
            cl->context = NGX_KEXEC_NONE;
        }

        return;
    }

    if (cl->state == NGX_KEXEC_CLAIM_ENDED
        || ctx == NULL
        || ctx->c.state == NGX_KEXEC_CONTEXT_FAILED)
    {
        if (cl->state != NGX_KEXEC_CLAIM_ENDED) {
            cl->state = NGX_KEXEC_CLAIM_ENDED;
            cl->verdict = NGX_KEXEC_VERDICT_DELETED;
        }

        cl->context = NGX_KEXEC_NONE;

        return;
    }

    if (cl->state != NGX_KEXEC_CLAIM_QUEUED) {
        cl = ngx_kexec_repair_holder(zone, ctx, cl);
    }

    if (cl) {
        ngx_kexec_slot_queue(zone, ctx, cl);
    }
}


/* of two holders one goes (back) to the queue, or ends: it is returned */

static ngx_kexec_zone_claim_t *
ngx_kexec_repair_holder(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx,
    ngx_kexec_zone_claim_t *cl)
{
    ngx_kexec_zone_claim_t  *other;

    if (ctx->holder == NGX_KEXEC_NONE) {
        ctx->holder = cl - zone->claims;
        return NULL;
    }

    other = &zone->claims[ctx->holder];

    if (cl->state == NGX_KEXEC_CLAIM_GRANTED) {
        return cl;
    }

    if (other->state == NGX_KEXEC_CLAIM_GRANTED) {
        ctx->holder = cl - zone->claims;
        return other;
    }

    ctx->c.dirty = 1;

    cl->state = NGX_KEXEC_CLAIM_NONE;

    return NULL;
}


static void
ngx_kexec_repair_state(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx)
{
    ngx_uint_t               deletes;
    ngx_kexec_zone_claim_t  *holder;

    deletes = ngx_kexec_slot_deletes(zone, ctx);

    if (ctx->holder == NGX_KEXEC_NONE) {
        holder = NULL;

        ngx_kexec_slot_release(ctx);

    } else {
        holder = &zone->claims[ctx->holder];

        if (ctx->c.held_since == 0) {
            ctx->c.held_since = 1;
        }
    }

    if (ctx->c.state == NGX_KEXEC_CONTEXT_FAILED) {

        if (!ctx->c.is_default) {
            ngx_kexec_zone_drop(zone, ctx);
        }

        return;
    }

    if (ctx->c.state == NGX_KEXEC_CONTEXT_READY
        || (deletes && ngx_kexec_check_was_ready(holder)))
    {
        ctx->created = 1;
    }

    if (deletes) {
        ctx->c.state = NGX_KEXEC_CONTEXT_DELETING;

        ngx_kexec_slot_throw_out(zone, ctx, NGX_KEXEC_VERDICT_DELETED, 0);

    } else if (ctx->created) {
        ctx->c.state = NGX_KEXEC_CONTEXT_READY;

    } else {
        ctx->c.state = NGX_KEXEC_CONTEXT_CREATING;

        if (holder && holder->kind != NGX_KEXEC_CLAIM_CREATE) {
            ngx_kexec_slot_release(ctx);
            ngx_kexec_slot_end_with(zone, holder, NGX_KEXEC_VERDICT_DELETED);
            holder = NULL;
        }

        if (holder == NULL) {
            ngx_kexec_zone_unfinished(zone, ctx);
            return;
        }
    }

    if (holder == NULL && ctx->head != NGX_KEXEC_NONE) {
        ngx_kexec_slot_grant(zone, ctx);
    }
}
