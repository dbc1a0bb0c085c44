
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_kexec_zone_int.h>


static ngx_uint_t ngx_kexec_zone_unused(ngx_kexec_zone_context_t *rec,
    ngx_msec_t idle);
static ngx_uint_t ngx_kexec_zone_full(ngx_kexec_zone_t *zone);


ngx_int_t
ngx_kexec_zone_adopt(ngx_kexec_zone_t *zone, ngx_kexec_context_t *ctx)
{
    ngx_int_t                  rc;
    ngx_kexec_zone_sh_t       *sh;
    ngx_kexec_zone_context_t  *rec, *other;

    sh = zone->sh;

    ngx_kexec_zone_lock(zone);

    rec = ngx_kexec_zone_by_id(zone, ctx->id);

    if (rec && rec->c.state != NGX_KEXEC_CONTEXT_FAILED) {
        *ctx = rec->c;
        rc = NGX_BUSY;
        goto done;
    }

    if (rec) {
        ngx_kexec_zone_drop(zone, rec);
    }

    if (ctx->is_default) {
        other = ngx_kexec_zone_by_language(zone, ctx->language,
                                           ctx->language_len);

        if (other && other->c.state == NGX_KEXEC_CONTEXT_FAILED) {
            ngx_kexec_zone_drop(zone, other);

        } else if (other) {
            ctx->is_default = 0;
        }
    }

    rc = ngx_kexec_zone_room(zone);

    if (rc != NGX_OK) {
        goto done;
    }

    rec = &zone->contexts[sh->free_contexts];
    sh->free_contexts = rec->next;

    sh->serial = ngx_max(sh->serial, ctx->serial);

    ngx_kexec_zone_write(zone, rec, ctx);

    rec->created = 1;

    rec->c.epoch = ctx->epoch;
    rec->c.process = ctx->process;
    rec->c.ready = ctx->ready;
    rec->c.prepared = ctx->prepared;
    rec->c.dirty = ctx->dirty;
    rec->c.owes_restore = ctx->owes_restore;

    rec->c.session = ctx->session;
    rec->c.kernel = ctx->kernel;

    rec->c.used = ngx_kexec_zone_now();

    ctx->ref = rec->c.ref;

    ngx_memory_barrier();
    ngx_kexec_zone_crash(zone, 19);

    rec->c.state = NGX_KEXEC_CONTEXT_READY;

    ngx_kexec_zone_crash(zone, 20);

    ngx_kexec_zone_link(zone, rec);

done:

    ngx_kexec_zone_unlock(zone);

    return rc;
}


void
ngx_kexec_zone_lost(ngx_kexec_zone_t *zone, ngx_kexec_context_t *ctx)
{
    ngx_kexec_zone_context_t  *rec;

    ngx_kexec_zone_lock(zone);

    rec = ngx_kexec_zone_context(zone, &ctx->ref);

    if (rec
        && rec->c.state == NGX_KEXEC_CONTEXT_READY
        && rec->holder == NGX_KEXEC_NONE
        && rec->c.session.len == ctx->session.len
        && ngx_memcmp(rec->c.session.data, ctx->session.data,
                      ctx->session.len)
           == 0)
    {
        ngx_kexec_zone_new_process(&rec->c);
        rec->c.kernel.len = 0;
    }

    ngx_kexec_zone_unlock(zone);
}


ngx_int_t
ngx_kexec_zone_lapse(ngx_kexec_zone_t *zone, ngx_kexec_ref_t *ref,
    ngx_msec_t idle)
{
    ngx_int_t                  rc;
    ngx_kexec_zone_context_t  *rec;

    rc = NGX_DECLINED;

    ngx_kexec_zone_lock(zone);

    rec = ngx_kexec_zone_context(zone, ref);

    if (rec && rec->c.kernel.len == 0 && ngx_kexec_zone_unused(rec, idle)) {
        ngx_kexec_zone_drop(zone, rec);
        rc = NGX_OK;
    }

    ngx_kexec_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_kexec_zone_make_room(ngx_kexec_zone_t *zone, ngx_kexec_context_t *ctx)
{
    ngx_msec_t                 now;
    ngx_uint_t                 i, end, top, full;
    ngx_kexec_zone_context_t  *rec;

    ctx->ref.generation = 0;

    top = ngx_min(zone->sh->top, zone->ncontexts);
    now = ngx_kexec_zone_now();
    full = 1;

    for (i = 0; i < top && full; /* void */ ) {

        end = ngx_min(i + NGX_KEXEC_ZONE_BATCH, top);

        ngx_kexec_zone_lock(zone);

        full = ngx_kexec_zone_full(zone);

        for ( /* void */ ; i < end && full; i++) {
            rec = &zone->contexts[i];

            if (rec->c.kernel.len == 0 && ngx_kexec_zone_unused(rec, 0)
                && (ctx->ref.generation == 0
                    || now - rec->c.used > now - ctx->used))
            {
                *ctx = rec->c;
            }
        }

        ngx_kexec_zone_unlock(zone);
    }

    if (!full || ctx->ref.generation == 0) {
        return NGX_DECLINED;
    }

    return ngx_kexec_zone_lapse(zone, &ctx->ref, 0);
}


ngx_int_t
ngx_kexec_make_room(ngx_kexec_zone_t *zone)
{
    ngx_kexec_context_t  old;

    if (ngx_kexec_zone_make_room(zone, &old) != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "context %*s, which has no kernel any more, is dropped to "
                  "make room for another one",
                  (size_t) NGX_KEXEC_UUID_LEN, old.id);

    return NGX_OK;
}


static ngx_uint_t
ngx_kexec_zone_full(ngx_kexec_zone_t *zone)
{
    ngx_kexec_zone_sh_t  *sh;

    sh = zone->sh;

    return (sh->free_contexts == NGX_KEXEC_NONE && sh->nfailed == 0)
           || (zone->max && sh->ncontexts - sh->nfailed >= zone->max);
}


static ngx_uint_t
ngx_kexec_zone_unused(ngx_kexec_zone_context_t *rec, ngx_msec_t idle)
{
    return rec->c.state == NGX_KEXEC_CONTEXT_READY
           && rec->holder == NGX_KEXEC_NONE
           && rec->head == NGX_KEXEC_NONE
           && ngx_kexec_zone_now() - rec->c.used >= idle;
}


ngx_uint_t
ngx_kexec_zone_idle(ngx_kexec_zone_t *zone, ngx_msec_t idle,
    ngx_uint_t *hand, ngx_kexec_context_t *ctx, ngx_uint_t n)
{
    ngx_uint_t  i, found, end, left, top;

    found = 0;
    top = ngx_min(zone->sh->top, zone->ncontexts);

    i = *hand;
    left = top;

    while (left && found < n) {

        if (i >= top) {
            i = 0;
        }

        end = ngx_min(i + ngx_min(left, NGX_KEXEC_ZONE_BATCH), top);

        ngx_kexec_zone_lock(zone);

        for ( /* void */ ; i < end && found < n; i++, left--) {

            if (ngx_kexec_zone_unused(&zone->contexts[i], idle)) {
                ctx[found++] = zone->contexts[i].c;
            }
        }

        ngx_kexec_zone_unlock(zone);
    }

    *hand = i;

    return found;
}


ngx_int_t
ngx_kexec_claim_expire(ngx_kexec_zone_t *zone, ngx_kexec_claim_t *claim,
    ngx_msec_t idle)
{
    ngx_int_t                  rc;
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *rec;

    ngx_kexec_claim_leave(claim);

    rc = NGX_DECLINED;

    ngx_kexec_zone_lock(zone);

    rec = ngx_kexec_zone_context(zone, &claim->context);

    if (rec && ngx_kexec_zone_unused(rec, idle)) {

        rc = NGX_ERROR;
        cl = ngx_kexec_claim_make(zone, claim, rec, NGX_KEXEC_CLAIM_DELETE);

        if (cl) {
            rec->c.state = NGX_KEXEC_CONTEXT_DELETING;

            ngx_kexec_zone_crash(zone, 21);

            ngx_kexec_slot_take(zone, rec, cl, NGX_KEXEC_CLAIM_HELD);
            ngx_kexec_slot_tell_watchers(zone, rec);

            rc = NGX_OK;
        }
    }

    ngx_kexec_zone_unlock(zone);

    return rc;
}


ngx_uint_t
ngx_kexec_zone_turn(ngx_kexec_zone_t *zone, ngx_uint_t work,
    ngx_msec_t interval)
{
    ngx_msec_t              now, due;
    ngx_uint_t              mine;
    ngx_kexec_zone_turn_t  *turn;

    turn = &zone->sh->turns[work];
    now = ngx_kexec_zone_now();
    mine = 0;

    ngx_kexec_zone_lock(zone);

    due = (turn->pid == ngx_pid) ? interval : 2 * interval;

    if (turn->pid == 0 || now - turn->time >= due) {
        turn->pid = ngx_pid;
        turn->time = now;
        mine = 1;
    }

    ngx_kexec_zone_unlock(zone);

    return mine;
}


void
ngx_kexec_zone_set_seen(ngx_kexec_zone_t *zone, ngx_kexec_seen_e seen,
    ngx_str_t *why)
{
    ngx_kexec_zone_sh_t  *sh;

    sh = zone->sh;

    ngx_kexec_zone_lock(zone);

    sh->seen = ngx_max(sh->seen, (ngx_atomic_uint_t) seen);

    sh->why_len = ngx_min(why->len, NGX_KEXEC_FAILURE_LEN);
    ngx_memcpy(sh->why, why->data, sh->why_len);

    ngx_kexec_zone_unlock(zone);
}


u_char *
ngx_kexec_zone_why_unseen(ngx_kexec_zone_t *zone, u_char *buf)
{
    u_char  *p;

    ngx_kexec_zone_lock(zone);

    p = ngx_cpymem(buf, zone->sh->why,
                   ngx_min(zone->sh->why_len, NGX_KEXEC_FAILURE_LEN));

    ngx_kexec_zone_unlock(zone);

    return p;
}


/* read without the lock: it only grows */

ngx_kexec_seen_e
ngx_kexec_zone_seen(ngx_kexec_zone_t *zone)
{
    return (ngx_kexec_seen_e) zone->sh->seen;
}


void
ngx_kexec_zone_limit(ngx_kexec_zone_t *zone, ngx_uint_t max)
{
    zone->max = max;
}
