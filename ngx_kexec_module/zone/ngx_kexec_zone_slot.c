
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_kexec_zone_int.h>


/*
 * A context's slot and queue.  Everything in here runs under the lock.
 */


static void ngx_kexec_slot_unqueue(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx, ngx_kexec_zone_claim_t *cl);
static void ngx_kexec_slot_unwatch(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx, ngx_kexec_zone_claim_t *cl);
static void ngx_kexec_slot_unnotice(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_claim_t *cl);


void
ngx_kexec_slot_move(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl,
    ngx_kexec_claim_state_e state)
{
    zone->sh->nclaims[cl->state]--;
    zone->sh->nclaims[state]++;

    ngx_memory_barrier();

    cl->state = state;

    ngx_memory_barrier();
}


void
ngx_kexec_slot_free(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl)
{
    ngx_kexec_slot_move(zone, cl, NGX_KEXEC_CLAIM_NONE);

    ngx_kexec_zone_crash(zone, 7);

    ngx_kexec_slot_unnotice(zone, cl);

    cl->next = zone->sh->free_claims;
    zone->sh->free_claims = cl - zone->claims;
}


void
ngx_kexec_slot_take(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx,
    ngx_kexec_zone_claim_t *cl, ngx_kexec_claim_state_e state)
{
    cl->granted = ngx_kexec_zone_now();

    ngx_kexec_slot_move(zone, cl, state);

    ngx_kexec_zone_crash(zone, 8);

    ctx->holder = cl - zone->claims;

    ctx->c.held_since = ngx_current_msec ? ngx_current_msec : 1;
    ctx->c.phase = (cl->kind == NGX_KEXEC_CLAIM_RESTART)
                   ? NGX_KEXEC_PHASE_RESTARTING : NGX_KEXEC_PHASE_PREPARING;
}


void
ngx_kexec_slot_release(ngx_kexec_zone_context_t *ctx)
{
    ctx->holder = NGX_KEXEC_NONE;
    ctx->c.held_since = 0;
    ctx->c.phase = NGX_KEXEC_PHASE_FREE;
    ctx->c.used = ngx_kexec_zone_now();
}


/* operations come first, everything else in order of arrival */

ngx_uint_t
ngx_kexec_slot_before(ngx_kexec_zone_claim_t *one, ngx_kexec_zone_claim_t *two)
{
    ngx_uint_t  first, second;

    first = (one->kind != NGX_KEXEC_CLAIM_RUN);
    second = (two->kind != NGX_KEXEC_CLAIM_RUN);

    return first == second ? one->sequence < two->sequence : first;
}


void
ngx_kexec_slot_queue(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx,
    ngx_kexec_zone_claim_t *cl)
{
    uint32_t                 i, prev, next;
    ngx_kexec_zone_claim_t  *claims;

    i = cl - zone->claims;
    claims = zone->claims;

    /* most are the last one */

    next = NGX_KEXEC_NONE;
    prev = ctx->tail;

    while (prev != NGX_KEXEC_NONE
           && ngx_kexec_slot_before(cl, &claims[prev]))
    {
        next = prev;
        prev = claims[prev].prev;
    }

    ngx_kexec_slot_move(zone, cl, NGX_KEXEC_CLAIM_QUEUED);

    cl->prev = prev;
    cl->next = next;

    *(prev == NGX_KEXEC_NONE ? &ctx->head : &claims[prev].next) = i;

    ngx_kexec_zone_crash(zone, 9);

    *(next == NGX_KEXEC_NONE ? &ctx->tail : &claims[next].prev) = i;

    ctx->c.queued++;
}


static void
ngx_kexec_slot_unqueue(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx,
    ngx_kexec_zone_claim_t *cl)
{
    ngx_kexec_zone_claim_t  *claims;

    claims = zone->claims;

    *(cl->prev == NGX_KEXEC_NONE ? &ctx->head : &claims[cl->prev].next)
        = cl->next;

    ngx_kexec_zone_crash(zone, 10);

    *(cl->next == NGX_KEXEC_NONE ? &ctx->tail : &claims[cl->next].prev)
        = cl->prev;

    cl->next = NGX_KEXEC_NONE;
    cl->prev = NGX_KEXEC_NONE;

    ctx->c.queued--;
}


void
ngx_kexec_slot_watch(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx,
    ngx_kexec_zone_claim_t *cl)
{
    ngx_kexec_slot_move(zone, cl, NGX_KEXEC_CLAIM_WATCHING);

    cl->prev = NGX_KEXEC_NONE;
    cl->next = ctx->watchers;

    if (cl->next != NGX_KEXEC_NONE) {
        zone->claims[cl->next].prev = cl - zone->claims;
    }

    ctx->watchers = cl - zone->claims;
}


static void
ngx_kexec_slot_unwatch(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx,
    ngx_kexec_zone_claim_t *cl)
{
    *(cl->prev == NGX_KEXEC_NONE ? &ctx->watchers
                                 : &zone->claims[cl->prev].next) = cl->next;

    if (cl->next != NGX_KEXEC_NONE) {
        zone->claims[cl->next].prev = cl->prev;
    }
}


/*
 * Direct hand-over: whoever is next holds the slot before the lock is given
 * back, so that nobody who comes by can be faster.  Those who did not answer
 * a grant get another one when there is nobody else.
 */

void
ngx_kexec_slot_grant(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx)
{
    uint32_t                 i;
    ngx_kexec_zone_claim_t  *cl;

    i = ctx->head;

    while (i != NGX_KEXEC_NONE && zone->claims[i].late) {
        i = zone->claims[i].next;
    }

    if (i == NGX_KEXEC_NONE) {
        i = ctx->head;
    }

    if (i != NGX_KEXEC_NONE) {
        cl = &zone->claims[i];

        ngx_kexec_slot_unqueue(zone, ctx, cl);
        ngx_kexec_slot_take(zone, ctx, cl, NGX_KEXEC_CLAIM_GRANTED);

        ngx_kexec_zone_crash(zone, 11);

        ngx_kexec_slot_notice(zone, cl);
    }

    ngx_kexec_slot_tell_watchers(zone, ctx);
}


/* a slot must not stay with somebody who does not answer, or with nobody */

void
ngx_kexec_slot_check(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx)
{
    ngx_kexec_zone_claim_t  *cl;

    if (ctx->holder == NGX_KEXEC_NONE) {

        if (ctx->head != NGX_KEXEC_NONE) {
            zone->sh->idle++;
            ngx_kexec_slot_grant(zone, ctx);
        }

        return;
    }

    cl = &zone->claims[ctx->holder];

    if (cl->state != NGX_KEXEC_CLAIM_GRANTED
        || (ngx_msec_int_t) (ngx_kexec_zone_now() - cl->granted)
           < NGX_KEXEC_GRANT_TIME)
    {
        return;
    }

    cl->late = 1;
    cl->interrupt = 0;

    ngx_kexec_slot_release(ctx);
    ngx_kexec_slot_queue(zone, ctx, cl);

    ngx_kexec_zone_crash(zone, 12);

    ngx_kexec_slot_grant(zone, ctx);
}


/*
 * Claims that are thrown out keep their records until their owners leave,
 * but have no part in the context any more.  Tells how many there were.
 */

ngx_uint_t
ngx_kexec_slot_throw_out(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx,
    ngx_kexec_verdict_e verdict, ngx_uint_t operations)
{
    uint32_t                 i, next;
    ngx_uint_t               n;
    ngx_kexec_zone_claim_t  *cl;

    n = 0;

    for (i = ctx->head; i != NGX_KEXEC_NONE; i = next) {
        cl = &zone->claims[i];
        next = cl->next;

        if (cl->kind == NGX_KEXEC_CLAIM_RUN || operations) {
            ngx_kexec_slot_unqueue(zone, ctx, cl);
            ngx_kexec_slot_end_with(zone, cl, verdict);
            n++;
        }
    }

    return n;
}


/* a restart has ended, and with it all that wait */

void
ngx_kexec_slot_answer(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx,
    ngx_kexec_verdict_e verdict)
{
    uint32_t                 i, next;
    ngx_kexec_zone_claim_t  *cl;

    for (i = ctx->head; i != NGX_KEXEC_NONE; i = next) {
        cl = &zone->claims[i];
        next = cl->next;

        if (cl->kind == NGX_KEXEC_CLAIM_RUN) {
            break;
        }

        if (cl->kind == NGX_KEXEC_CLAIM_RESTART) {
            ngx_kexec_slot_unqueue(zone, ctx, cl);
            ngx_kexec_slot_end_with(zone, cl, verdict);
        }
    }
}


void
ngx_kexec_slot_end_with(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl,
    ngx_kexec_verdict_e verdict)
{
    cl->verdict = verdict;

    ngx_kexec_slot_move(zone, cl, NGX_KEXEC_CLAIM_ENDED);

    ngx_kexec_zone_crash(zone, 13);

    cl->context = NGX_KEXEC_NONE;

    ngx_kexec_slot_notice(zone, cl);
}


/*
 * Ends a claim in any state.  An orphan's worker is gone, or is leaving while
 * the claim is still at work: code that it sent may still be running.  One
 * that sent none leaves none, and whatever holds the kernel then is somebody
 * else's.
 */

void
ngx_kexec_slot_end(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl,
    ngx_uint_t orphan)
{
    ngx_uint_t                 kind, state;
    ngx_kexec_zone_context_t  *ctx;

    kind = cl->kind;
    state = cl->state;

    if (cl->context == NGX_KEXEC_NONE) {
        ngx_kexec_slot_free(zone, cl);
        return;
    }

    ctx = &zone->contexts[cl->context];

    if (state == NGX_KEXEC_CLAIM_WATCHING) {
        ngx_kexec_slot_unwatch(zone, ctx, cl);
        ngx_kexec_slot_free(zone, cl);
        return;
    }

    if (state == NGX_KEXEC_CLAIM_QUEUED) {
        ngx_kexec_slot_unqueue(zone, ctx, cl);
        ngx_kexec_slot_free(zone, cl);

        if (kind == NGX_KEXEC_CLAIM_DELETE) {
            ngx_kexec_slot_undelete(zone, ctx);
        }

        return;
    }

    /* the slot is given back */

    if (state == NGX_KEXEC_CLAIM_HELD) {

        if (orphan && kind == NGX_KEXEC_CLAIM_RESTART) {
            ctx->c.ready = 0;
            ctx->c.prepared = 0;
        }

        if (kind == NGX_KEXEC_CLAIM_DELETE) {

            /* it may have been carried out in part: the next one asks */

            ctx->c.ready = 0;
        }

        if (orphan && kind == NGX_KEXEC_CLAIM_RUN) {

            if (ctx->c.phase == NGX_KEXEC_PHASE_FOREIGN) {

                /* what runs there is somebody else's: the next one waits */

                ctx->c.ready = 0;

            } else if (ctx->c.phase != NGX_KEXEC_PHASE_PREPARING) {
                ctx->c.dirty = 1;
            }
        }
    }

    ngx_kexec_zone_crash(zone, 14);

    ngx_kexec_slot_free(zone, cl);
    ngx_kexec_slot_release(ctx);

    ngx_kexec_zone_crash(zone, 15);

    if (kind == NGX_KEXEC_CLAIM_DELETE) {
        ngx_kexec_slot_undelete(zone, ctx);

    } else if (ctx->c.state == NGX_KEXEC_CONTEXT_CREATING) {
        ngx_kexec_zone_unfinished(zone, ctx);
    }

    if (ctx->c.state == NGX_KEXEC_CONTEXT_READY
        || ctx->c.state == NGX_KEXEC_CONTEXT_DELETING)
    {
        ngx_kexec_slot_grant(zone, ctx);
    }
}


/* where nobody deletes the context any more, it is what it was before */

void
ngx_kexec_slot_undelete(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx)
{
    if (ctx->c.state != NGX_KEXEC_CONTEXT_DELETING
        || ngx_kexec_slot_deletes(zone, ctx))
    {
        return;
    }

    if (ctx->created) {
        ctx->c.state = NGX_KEXEC_CONTEXT_READY;
        ngx_kexec_slot_tell_watchers(zone, ctx);
        return;
    }

    ctx->c.state = NGX_KEXEC_CONTEXT_CREATING;

    if (ctx->holder == NGX_KEXEC_NONE) {
        ngx_kexec_zone_unfinished(zone, ctx);
        return;
    }

    ngx_kexec_slot_tell_watchers(zone, ctx);
}


/* how many deletions the context has, at work or in the queue */

ngx_uint_t
ngx_kexec_slot_deletes(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx)
{
    uint32_t    i;
    ngx_uint_t  n;

    n = (ctx->holder != NGX_KEXEC_NONE
         && zone->claims[ctx->holder].kind == NGX_KEXEC_CLAIM_DELETE);

    for (i = ctx->head; i != NGX_KEXEC_NONE; i = zone->claims[i].next) {
        n += (zone->claims[i].kind == NGX_KEXEC_CLAIM_DELETE);
    }

    return n;
}


/* puts a claim on its worker's list, the worker is woken after the unlock */

void
ngx_kexec_slot_notice(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl)
{
    uint32_t                  i;
    ngx_kexec_zone_worker_t  *worker;

    if (cl->noticed) {
        return;
    }

    i = cl - zone->claims;
    worker = &zone->sh->workers[cl->worker];

    cl->next_notice = NGX_KEXEC_NONE;
    cl->prev_notice = worker->tail;
    cl->noticed = 1;

    *(worker->tail == NGX_KEXEC_NONE ? &worker->head
                          : &zone->claims[worker->tail].next_notice) = i;
    worker->tail = i;

    zone->wakes[cl->worker / 64] |= (uint64_t) 1 << (cl->worker % 64);
}


static void
ngx_kexec_slot_unnotice(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl)
{
    ngx_kexec_zone_worker_t  *worker;

    if (!cl->noticed) {
        return;
    }

    worker = &zone->sh->workers[cl->worker];

    *(cl->prev_notice == NGX_KEXEC_NONE ? &worker->head
          : &zone->claims[cl->prev_notice].next_notice) = cl->next_notice;

    *(cl->next_notice == NGX_KEXEC_NONE ? &worker->tail
          : &zone->claims[cl->next_notice].prev_notice) = cl->prev_notice;

    cl->noticed = 0;
}


/* the first of a worker's notices, taken off its list; NULL: none left */

ngx_kexec_zone_claim_t *
ngx_kexec_slot_next_notice(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_worker_t *worker)
{
    ngx_kexec_zone_claim_t  *cl;

    if (worker->head == NGX_KEXEC_NONE) {
        return NULL;
    }

    cl = &zone->claims[worker->head];

    ngx_kexec_slot_unnotice(zone, cl);

    return cl;
}


void
ngx_kexec_slot_tell_watchers(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx)
{
    uint32_t  i, last;

    last = NGX_KEXEC_NONE;

    for (i = ctx->watchers; i != NGX_KEXEC_NONE; i = zone->claims[i].next) {
        last = i;
    }

    /* who came first stands last */

    for (i = last; i != NGX_KEXEC_NONE; i = zone->claims[i].prev) {
        ngx_kexec_slot_notice(zone, &zone->claims[i]);
    }
}
