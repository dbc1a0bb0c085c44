
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_kexec_zone_int.h>


static ngx_kexec_zone_context_t *ngx_kexec_claim_context(
    ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl);
static ngx_int_t ngx_kexec_claim_join(ngx_kexec_zone_t *zone,
    ngx_kexec_claim_t *claim, ngx_kexec_zone_context_t *ctx, ngx_uint_t limit);
static ngx_uint_t ngx_kexec_claim_end_holder(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx, ngx_kexec_claim_kind_e kind,
    ngx_kexec_verdict_e verdict);
static ngx_uint_t ngx_kexec_claim_count(ngx_kexec_zone_t *zone, uint32_t i,
    ngx_kexec_claim_kind_e kind);
static ngx_kexec_zone_claim_t *ngx_kexec_claim_other(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_claim_t *cl);


/* a claim's record, if it is still this worker's */

ngx_kexec_zone_claim_t *
ngx_kexec_claim_record(ngx_kexec_claim_t *claim)
{
    ngx_kexec_zone_claim_t  *cl;

    if (claim->ref.generation == 0 || claim->ref.index >= claim->zone->nclaims)
    {
        return NULL;
    }

    cl = &claim->zone->claims[claim->ref.index];

    if (cl->generation != claim->ref.generation
        || cl->state == NGX_KEXEC_CLAIM_NONE
        || cl->worker != ngx_kexec_zone_self.worker
        || cl->worker_generation != ngx_kexec_zone_self.generation)
    {
        return NULL;
    }

    return cl;
}


/* a new record, whose state is still to be set */

ngx_kexec_zone_claim_t *
ngx_kexec_claim_make(ngx_kexec_zone_t *zone, ngx_kexec_claim_t *claim,
    ngx_kexec_zone_context_t *ctx, ngx_kexec_claim_kind_e kind)
{
    uint32_t                  generation;
    ngx_kexec_zone_self_t    *self;
    ngx_kexec_zone_claim_t   *cl;
    ngx_kexec_zone_worker_t  *worker;

    self = &ngx_kexec_zone_self;

    if (self->worker == NGX_KEXEC_NONE) {
        return NULL;
    }

    worker = &zone->sh->workers[self->worker];

    if (worker->pid != ngx_pid || worker->generation != self->generation) {
        return NULL;
    }

    if (zone->sh->free_claims == NGX_KEXEC_NONE) {
        return NULL;
    }

    cl = &zone->claims[zone->sh->free_claims];
    zone->sh->free_claims = cl->next;

    generation = cl->generation + 1;

    cl->generation = generation ? generation : 1;

    /* a generation is never forgotten, and the state is none for now */

    ngx_memzero((u_char *) cl + sizeof(uint32_t),
                sizeof(ngx_kexec_zone_claim_t) - sizeof(uint32_t));

    cl->kind = kind;
    cl->worker = self->worker;
    cl->worker_generation = self->generation;
    cl->sequence = ++zone->sh->sequence;
    cl->context = NGX_KEXEC_NONE;
    cl->next = NGX_KEXEC_NONE;
    cl->prev = NGX_KEXEC_NONE;

    if (ctx) {
        cl->context = ctx->c.ref.index;
        cl->context_generation = ctx->c.ref.generation;
    }

    claim->zone = zone;
    claim->ref.index = cl - zone->claims;
    claim->ref.generation = cl->generation;

    self->owners[claim->ref.index] = claim;

    return cl;
}


/* this worker's side of the end of a claim */

void
ngx_kexec_claim_forget(ngx_kexec_claim_t *claim)
{
    ngx_kexec_claim_t  **owners;

    owners = ngx_kexec_zone_self.owners;

    if (claim->ref.generation && owners
        && claim->ref.index < claim->zone->nclaims
        && owners[claim->ref.index] == claim)
    {
        owners[claim->ref.index] = NULL;
    }

    claim->ref.index = 0;
    claim->ref.generation = 0;
}


static ngx_kexec_zone_context_t *
ngx_kexec_claim_context(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl)
{
    if (cl == NULL || cl->context == NGX_KEXEC_NONE) {
        return NULL;
    }

    return &zone->contexts[cl->context];
}


ngx_uint_t
ngx_kexec_claim_is_holder(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl)
{
    return cl && cl->state == NGX_KEXEC_CLAIM_HELD
           && cl->context != NGX_KEXEC_NONE;
}


ngx_int_t
ngx_kexec_claim_enter(ngx_kexec_zone_t *zone, ngx_kexec_claim_t *claim,
    ngx_uint_t limit)
{
    ngx_int_t                  rc;
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *ctx;

    ngx_kexec_claim_leave(claim);

    ngx_kexec_zone_lock(zone);

    ctx = ngx_kexec_zone_context(zone, &claim->context);

    if (ctx == NULL
        || ctx->c.state == NGX_KEXEC_CONTEXT_FAILED
        || ctx->c.state == NGX_KEXEC_CONTEXT_DELETING)
    {
        rc = NGX_DECLINED;
        goto done;
    }

    ngx_kexec_slot_check(zone, ctx);

    if (ctx->holder != NGX_KEXEC_NONE && ctx->c.queued >= limit) {
        rc = NGX_BUSY;
        goto done;
    }

    cl = ngx_kexec_claim_make(zone, claim, ctx, NGX_KEXEC_CLAIM_RUN);

    if (cl == NULL) {
        rc = NGX_ERROR;
        goto done;
    }

    if (ctx->holder == NGX_KEXEC_NONE) {
        ngx_kexec_slot_take(zone, ctx, cl, NGX_KEXEC_CLAIM_HELD);
        ngx_kexec_slot_tell_watchers(zone, ctx);
        rc = NGX_OK;

    } else {
        ngx_kexec_slot_queue(zone, ctx, cl);
        rc = NGX_AGAIN;
    }

done:

    ngx_kexec_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_kexec_claim_operate(ngx_kexec_zone_t *zone, ngx_kexec_claim_t *claim,
    ngx_kexec_claim_kind_e kind, ngx_uint_t limit)
{
    ngx_int_t                  rc;
    ngx_kexec_verdict_e        verdict;
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *ctx;

    ngx_kexec_claim_leave(claim);

    ngx_kexec_zone_lock(zone);

    ctx = ngx_kexec_zone_context(zone, &claim->context);

    if (ctx == NULL || ctx->c.state == NGX_KEXEC_CONTEXT_FAILED) {
        rc = NGX_DECLINED;
        goto done;
    }

    if (ctx->c.state == NGX_KEXEC_CONTEXT_DELETING) {
        rc = (kind == NGX_KEXEC_CLAIM_DELETE)
             ? ngx_kexec_claim_join(zone, claim, ctx, limit) : NGX_DECLINED;
        goto done;
    }

    if (kind == NGX_KEXEC_CLAIM_RESTART
        && ngx_kexec_claim_count(zone, ctx->head, kind) >= limit)
    {
        rc = NGX_BUSY;
        goto done;
    }

    cl = ngx_kexec_claim_make(zone, claim, ctx, kind);

    if (cl == NULL) {
        rc = NGX_ERROR;
        goto done;
    }

    if (kind == NGX_KEXEC_CLAIM_DELETE) {
        ctx->c.state = NGX_KEXEC_CONTEXT_DELETING;
        verdict = NGX_KEXEC_VERDICT_DELETED;
        cl->begun = 1;

    } else {
        verdict = NGX_KEXEC_VERDICT_RESTARTED;
    }

    ngx_kexec_zone_crash(zone, 16);

    if (ngx_kexec_claim_end_holder(zone, ctx, kind, verdict)) {
        cl->begun = 1;
    }

    if (ngx_kexec_slot_throw_out(zone, ctx, verdict,
                                 kind == NGX_KEXEC_CLAIM_DELETE))
    {
        cl->begun = 1;
    }

    if (ctx->holder == NGX_KEXEC_NONE && ctx->head == NGX_KEXEC_NONE) {
        ngx_kexec_slot_take(zone, ctx, cl, NGX_KEXEC_CLAIM_HELD);
        rc = NGX_OK;

    } else {
        ngx_kexec_slot_queue(zone, ctx, cl);
        rc = NGX_AGAIN;

        if (ctx->holder == NGX_KEXEC_NONE) {
            ngx_kexec_slot_grant(zone, ctx);
        }
    }

    ngx_kexec_slot_tell_watchers(zone, ctx);

done:

    ngx_kexec_zone_unlock(zone);

    return rc;
}


/*
 * One more deletion waits behind those that are there: it is thrown out when
 * one of them was carried out, and takes the place of one that was not, as its
 * worker died or Jupyter refused.
 */

static ngx_int_t
ngx_kexec_claim_join(ngx_kexec_zone_t *zone, ngx_kexec_claim_t *claim,
    ngx_kexec_zone_context_t *ctx, ngx_uint_t limit)
{
    ngx_kexec_zone_claim_t  *cl;

    ngx_kexec_slot_check(zone, ctx);

    if (ctx->c.queued >= limit) {
        return NGX_BUSY;
    }

    cl = ngx_kexec_claim_make(zone, claim, ctx, NGX_KEXEC_CLAIM_DELETE);

    if (cl == NULL) {
        return NGX_ERROR;
    }

    ngx_kexec_slot_queue(zone, ctx, cl);

    return NGX_AGAIN;
}


/*
 * A holder that does not know yet that it is one is thrown out like those in
 * the queue, any other one is told.  A restart waits for operations before
 * it, which end by themselves; a deletion wants them to end now.  Tells
 * whether there was anybody.
 */

static ngx_uint_t
ngx_kexec_claim_end_holder(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx, ngx_kexec_claim_kind_e kind,
    ngx_kexec_verdict_e verdict)
{
    ngx_kexec_zone_claim_t  *cl;

    if (ctx->holder == NGX_KEXEC_NONE) {
        return 0;
    }

    cl = &zone->claims[ctx->holder];

    if (cl->kind != NGX_KEXEC_CLAIM_RUN && kind != NGX_KEXEC_CLAIM_DELETE) {
        return 0;
    }

    if (cl->state == NGX_KEXEC_CLAIM_GRANTED) {
        ngx_kexec_slot_release(ctx);
        ngx_kexec_slot_end_with(zone, cl, verdict);
        return 1;
    }

    cl->verdict = verdict;

    ngx_kexec_slot_notice(zone, cl);

    return 1;
}


/* how many of the first claims of a list are of that kind */

static ngx_uint_t
ngx_kexec_claim_count(ngx_kexec_zone_t *zone, uint32_t i,
    ngx_kexec_claim_kind_e kind)
{
    ngx_uint_t  n;

    for (n = 0;
         i != NGX_KEXEC_NONE && zone->claims[i].kind == kind;
         i = zone->claims[i].next)
    {
        n++;
    }

    return n;
}


ngx_int_t
ngx_kexec_claim_abandon(ngx_kexec_claim_t *claim)
{
    ngx_int_t                rc;
    ngx_kexec_zone_t        *zone;
    ngx_kexec_zone_claim_t  *cl, *other;

    zone = claim->zone;

    ngx_kexec_zone_lock(zone);

    rc = NGX_DECLINED;

    cl = ngx_kexec_claim_record(claim);

    if (cl == NULL || cl->context == NGX_KEXEC_NONE
        || cl->state == NGX_KEXEC_CLAIM_HELD)
    {
        goto done;
    }

    if (cl->begun) {

        /* whoever was told of a restart was told the truth by any other one */

        other = ngx_kexec_claim_other(zone, cl);

        if (other == NULL) {
            goto done;
        }

        other->begun = 1;
    }

    ngx_kexec_slot_end(zone, cl, 0);
    ngx_kexec_claim_forget(claim);

    rc = NGX_OK;

done:

    ngx_kexec_zone_unlock(zone);

    return rc;
}


/* another restart of the same context, that is under way or waits */

static ngx_kexec_zone_claim_t *
ngx_kexec_claim_other(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl)
{
    uint32_t                   i;
    ngx_kexec_zone_context_t  *ctx;

    if (cl->kind != NGX_KEXEC_CLAIM_RESTART) {
        return NULL;
    }

    ctx = &zone->contexts[cl->context];

    i = ctx->holder;

    if (i == NGX_KEXEC_NONE || &zone->claims[i] == cl
        || zone->claims[i].kind != NGX_KEXEC_CLAIM_RESTART)
    {
        i = ctx->head;
    }

    while (i != NGX_KEXEC_NONE && &zone->claims[i] == cl) {
        i = zone->claims[i].next;
    }

    if (i == NGX_KEXEC_NONE
        || zone->claims[i].kind != NGX_KEXEC_CLAIM_RESTART)
    {
        return NULL;
    }

    return &zone->claims[i];
}


void
ngx_kexec_claim_answer(ngx_kexec_claim_t *claim, ngx_kexec_verdict_e verdict)
{
    ngx_kexec_zone_t        *zone;
    ngx_kexec_zone_claim_t  *cl;

    zone = claim->zone;

    ngx_kexec_zone_lock(zone);

    cl = ngx_kexec_claim_record(claim);

    if (ngx_kexec_claim_is_holder(zone, cl)) {
        ngx_kexec_slot_answer(zone, &zone->contexts[cl->context], verdict);
    }

    ngx_kexec_zone_unlock(zone);
}


void
ngx_kexec_claim_evict(ngx_kexec_claim_t *claim, ngx_kexec_verdict_e verdict)
{
    ngx_kexec_zone_t        *zone;
    ngx_kexec_zone_claim_t  *cl;

    zone = claim->zone;

    if (zone == NULL) {
        return;
    }

    ngx_kexec_zone_lock(zone);

    cl = ngx_kexec_claim_record(claim);

    if (ngx_kexec_claim_is_holder(zone, cl)) {
        ngx_kexec_slot_throw_out(zone, &zone->contexts[cl->context], verdict,
                                 0);
    }

    ngx_kexec_zone_unlock(zone);
}


ngx_int_t
ngx_kexec_claim_watch(ngx_kexec_zone_t *zone, ngx_kexec_claim_t *claim,
    ngx_uint_t limit)
{
    ngx_int_t                  rc;
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *ctx;

    ngx_kexec_claim_leave(claim);

    ngx_kexec_zone_lock(zone);

    ctx = ngx_kexec_zone_context(zone, &claim->context);

    if (ctx == NULL) {
        rc = NGX_DECLINED;
        goto done;
    }

    if (ngx_kexec_claim_count(zone, ctx->watchers, NGX_KEXEC_CLAIM_WATCH)
        >= limit)
    {
        rc = NGX_BUSY;
        goto done;
    }

    cl = ngx_kexec_claim_make(zone, claim, ctx, NGX_KEXEC_CLAIM_WATCH);

    if (cl == NULL) {
        rc = NGX_ERROR;
        goto done;
    }

    ngx_kexec_slot_watch(zone, ctx, cl);

    rc = NGX_OK;

done:

    ngx_kexec_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_kexec_claim_interrupt(ngx_kexec_zone_t *zone, ngx_kexec_ref_t *context,
    ngx_kexec_ref_t *holder)
{
    ngx_int_t                  rc;
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *ctx;

    holder->index = 0;
    holder->generation = 0;

    ngx_kexec_zone_lock(zone);

    ctx = ngx_kexec_zone_context(zone, context);

    if (ctx == NULL
        || ctx->c.state == NGX_KEXEC_CONTEXT_FAILED
        || ctx->c.state == NGX_KEXEC_CONTEXT_DELETING)
    {
        rc = NGX_DECLINED;
        goto done;
    }

    rc = NGX_DONE;

    if (ctx->holder == NGX_KEXEC_NONE) {
        goto done;
    }

    cl = &zone->claims[ctx->holder];

    if (cl->kind != NGX_KEXEC_CLAIM_RUN) {
        goto done;
    }

    cl->interrupt = 1;

    holder->index = ctx->holder;
    holder->generation = cl->generation;

    ngx_kexec_slot_notice(zone, cl);

    rc = NGX_OK;

done:

    ngx_kexec_zone_unlock(zone);

    return rc;
}


ngx_uint_t
ngx_kexec_claim_holds(ngx_kexec_zone_t *zone, ngx_kexec_ref_t *context,
    ngx_kexec_ref_t *holder)
{
    ngx_uint_t                 holds;
    ngx_kexec_zone_context_t  *ctx;

    ngx_kexec_zone_lock(zone);

    ctx = ngx_kexec_zone_context(zone, context);

    holds = ctx != NULL
            && holder->generation != 0
            && ctx->holder != NGX_KEXEC_NONE
            && ctx->holder == holder->index
            && zone->claims[ctx->holder].generation == holder->generation;

    ngx_kexec_zone_unlock(zone);

    return holds;
}


void
ngx_kexec_claim_look(ngx_kexec_claim_t *claim, ngx_kexec_claim_look_t *look)
{
    uint32_t                 i;
    ngx_kexec_zone_t        *zone;
    ngx_kexec_zone_claim_t  *cl;

    ngx_memzero(look, sizeof(ngx_kexec_claim_look_t));

    zone = claim->zone;

    if (zone == NULL || claim->ref.generation == 0) {
        return;
    }

    ngx_kexec_zone_lock(zone);

    cl = ngx_kexec_claim_record(claim);

    if (cl == NULL) {
        ngx_kexec_claim_forget(claim);
        goto done;
    }

    if (cl->state == NGX_KEXEC_CLAIM_QUEUED) {

        /* whoever waits also watches over the slot */

        cl->late = 0;

        ngx_kexec_slot_check(zone, ngx_kexec_claim_context(zone, cl));
    }

    if (cl->state == NGX_KEXEC_CLAIM_GRANTED) {
        cl->late = 0;
        ngx_kexec_slot_move(zone, cl, NGX_KEXEC_CLAIM_HELD);
    }

    look->state = cl->state;
    look->verdict = cl->verdict;
    look->interrupt = cl->interrupt;

    cl->interrupt = 0;

    if (cl->state == NGX_KEXEC_CLAIM_QUEUED) {

        i = claim->ref.index;

        while (i != NGX_KEXEC_NONE) {
            look->position++;
            i = zone->claims[i].prev;
        }
    }

done:

    ngx_kexec_zone_unlock(zone);
}


void
ngx_kexec_claim_phase(ngx_kexec_claim_t *claim, ngx_kexec_phase_e phase)
{
    ngx_kexec_zone_t        *zone;
    ngx_kexec_zone_claim_t  *cl;

    zone = claim->zone;

    if (zone == NULL) {
        return;
    }

    ngx_kexec_zone_lock(zone);

    cl = ngx_kexec_claim_record(claim);

    if (ngx_kexec_claim_is_holder(zone, cl)) {
        zone->contexts[cl->context].c.phase = phase;
    }

    ngx_kexec_zone_unlock(zone);
}


void
ngx_kexec_claim_leave(ngx_kexec_claim_t *claim)
{
    ngx_kexec_zone_t        *zone;
    ngx_kexec_zone_claim_t  *cl;

    zone = claim->zone;

    if (zone == NULL || claim->ref.generation == 0) {
        return;
    }

    ngx_kexec_zone_lock(zone);

    cl = ngx_kexec_claim_record(claim);

    if (cl) {
        ngx_kexec_slot_end(zone, cl, 0);
    }

    ngx_kexec_claim_forget(claim);

    ngx_kexec_zone_unlock(zone);
}
