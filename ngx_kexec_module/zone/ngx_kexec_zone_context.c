
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_kexec_zone_int.h>


#define NGX_KEXEC_ZONE_COPIES  8            /* made under one lock */


static void ngx_kexec_zone_unlink(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx);
static int ngx_libc_cdecl ngx_kexec_zone_cmp(const void *one,
    const void *two);
static ngx_uint_t ngx_kexec_zone_moved(ngx_kexec_context_t *c,
    ngx_kexec_context_t *ctx);


static ngx_str_t  ngx_kexec_zone_given_up = ngx_string(
    "the creation of the context was interrupted, please try again");


ngx_kexec_zone_context_t *
ngx_kexec_zone_context(ngx_kexec_zone_t *zone, ngx_kexec_ref_t *ref)
{
    ngx_kexec_zone_context_t  *ctx;

    if (ref->generation == 0 || ref->index >= zone->ncontexts) {
        return NULL;
    }

    ctx = &zone->contexts[ref->index];

    if (ctx->c.ref.generation != ref->generation
        || ctx->c.state == NGX_KEXEC_CONTEXT_FREE)
    {
        return NULL;
    }

    return ctx;
}


uint32_t *
ngx_kexec_zone_bucket(ngx_kexec_zone_t *zone, uint32_t *table, u_char *data,
    size_t len)
{
    size_t      i;
    ngx_uint_t  key;

    key = 0;

    for (i = 0; i < len; i++) {
        key = ngx_hash(key, data[i]);
    }

    return &table[key & (zone->nbuckets - 1)];
}


ngx_kexec_zone_context_t *
ngx_kexec_zone_by_id(ngx_kexec_zone_t *zone, u_char *id)
{
    uint32_t                   i;
    ngx_kexec_zone_context_t  *ctx;

    i = *ngx_kexec_zone_bucket(zone, zone->ids, id, NGX_KEXEC_UUID_LEN);

    while (i != NGX_KEXEC_NONE) {
        ctx = &zone->contexts[i];

        if (ngx_memcmp(ctx->c.id, id, NGX_KEXEC_UUID_LEN) == 0) {
            return ctx;
        }

        i = ctx->next;
    }

    return NULL;
}


ngx_kexec_zone_context_t *
ngx_kexec_zone_by_language(ngx_kexec_zone_t *zone, u_char *language,
    size_t len)
{
    uint32_t                   i;
    ngx_kexec_zone_context_t  *ctx;

    i = *ngx_kexec_zone_bucket(zone, zone->defaults, language, len);

    while (i != NGX_KEXEC_NONE) {
        ctx = &zone->contexts[i];

        if (ctx->c.language_len == len
            && ngx_memcmp(ctx->c.language, language, len) == 0)
        {
            return ctx;
        }

        i = ctx->next_default;
    }

    return NULL;
}


void
ngx_kexec_zone_link(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx)
{
    uint32_t  *bucket;

    bucket = ngx_kexec_zone_bucket(zone, zone->ids, ctx->c.id,
                                   NGX_KEXEC_UUID_LEN);
    ctx->next = *bucket;
    *bucket = ctx->c.ref.index;

    if (ctx->c.is_default) {
        bucket = ngx_kexec_zone_bucket(zone, zone->defaults, ctx->c.language,
                                       ctx->c.language_len);
        ctx->next_default = *bucket;
        *bucket = ctx->c.ref.index;
    }

    zone->sh->ncontexts++;
}


static void
ngx_kexec_zone_unlink(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx)
{
    uint32_t  *link;

    link = ngx_kexec_zone_bucket(zone, zone->ids, ctx->c.id,
                                 NGX_KEXEC_UUID_LEN);

    while (*link != ctx->c.ref.index) {
        link = &zone->contexts[*link].next;
    }

    *link = ctx->next;

    if (ctx->c.is_default) {
        link = ngx_kexec_zone_bucket(zone, zone->defaults, ctx->c.language,
                                     ctx->c.language_len);

        while (*link != ctx->c.ref.index) {
            link = &zone->contexts[*link].next_default;
        }

        *link = ctx->next_default;
    }

    zone->sh->ncontexts--;
}


/* the context is gone, and nobody holds its slot any more */

void
ngx_kexec_zone_drop(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx)
{
    uint32_t                 i;
    ngx_kexec_zone_claim_t  *cl;

    if (ctx->c.state == NGX_KEXEC_CONTEXT_FAILED) {
        zone->sh->nfailed--;
    }

    ctx->c.state = NGX_KEXEC_CONTEXT_FREE;

    ngx_memory_barrier();
    ngx_kexec_zone_crash(zone, 1);

    ngx_kexec_slot_throw_out(zone, ctx, NGX_KEXEC_VERDICT_DELETED, 1);

    for (i = ctx->watchers; i != NGX_KEXEC_NONE; i = ctx->watchers) {
        cl = &zone->claims[i];

        ctx->watchers = cl->next;

        cl->context = NGX_KEXEC_NONE;
        cl->next = NGX_KEXEC_NONE;
        cl->prev = NGX_KEXEC_NONE;

        ngx_kexec_slot_notice(zone, cl);
    }

    ngx_kexec_zone_crash(zone, 2);

    ngx_kexec_zone_unlink(zone, ctx);

    ctx->next = zone->sh->free_contexts;
    zone->sh->free_contexts = ctx->c.ref.index;
}


/*
 * A default context's failure is kept for those who wait for it, other ones
 * have nobody but their creator.
 */

void
ngx_kexec_zone_fail(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx,
    ngx_uint_t status, ngx_str_t *sentence)
{
    size_t  len;

    if (!ctx->c.is_default) {
        ngx_kexec_zone_drop(zone, ctx);
        return;
    }

    len = ngx_min(sentence->len, NGX_KEXEC_FAILURE_LEN);

    if (len < sentence->len) {

        /* not in the middle of a character */

        while (len && (sentence->data[len] & 0xc0) == 0x80) {
            len--;
        }
    }

    ngx_memcpy(ctx->c.failure, sentence->data, len);

    ctx->c.failure[len] = '\0';
    ctx->c.failure_len = len;
    ctx->c.failure_status = status;

    ngx_memory_barrier();

    ctx->c.state = NGX_KEXEC_CONTEXT_FAILED;
    zone->sh->nfailed++;

    ngx_kexec_zone_crash(zone, 3);

    ngx_kexec_slot_throw_out(zone, ctx, NGX_KEXEC_VERDICT_DELETED, 1);
    ngx_kexec_slot_tell_watchers(zone, ctx);
}


void
ngx_kexec_zone_unfinished(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx)
{
    ngx_kexec_zone_fail(zone, ctx, 0, &ngx_kexec_zone_given_up);
}


ngx_int_t
ngx_kexec_zone_find(ngx_kexec_zone_t *zone, ngx_str_t *id,
    ngx_kexec_context_t *ctx)
{
    ngx_int_t                  rc;
    ngx_kexec_zone_context_t  *rec;

    if (id->len != NGX_KEXEC_UUID_LEN) {
        return NGX_DECLINED;
    }

    rc = NGX_DECLINED;

    ngx_kexec_zone_lock(zone);

    rec = ngx_kexec_zone_by_id(zone, id->data);

    if (rec && rec->c.state != NGX_KEXEC_CONTEXT_FAILED) {
        *ctx = rec->c;
        rc = NGX_OK;
    }

    ngx_kexec_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_kexec_zone_get(ngx_kexec_zone_t *zone, ngx_kexec_ref_t *ref,
    ngx_kexec_context_t *ctx)
{
    ngx_int_t                  rc;
    ngx_kexec_zone_context_t  *rec;

    rc = NGX_DECLINED;

    ngx_kexec_zone_lock(zone);

    rec = ngx_kexec_zone_context(zone, ref);

    if (rec) {
        *ctx = rec->c;
        rc = NGX_OK;
    }

    ngx_kexec_zone_unlock(zone);

    return rc;
}


ngx_int_t
ngx_kexec_zone_default(ngx_kexec_zone_t *zone, ngx_str_t *language,
    ngx_kexec_context_t *ctx)
{
    ngx_int_t                  rc;
    ngx_kexec_zone_context_t  *rec;

    rc = NGX_DECLINED;

    ngx_kexec_zone_lock(zone);

    rec = ngx_kexec_zone_by_language(zone, language->data, language->len);

    if (rec) {
        *ctx = rec->c;
        rc = NGX_OK;
    }

    ngx_kexec_zone_unlock(zone);

    return rc;
}


/*
 * A few at a time, so that others are not kept from the lock: each is whole,
 * while those that come and go meanwhile may be there or not.
 */

ngx_array_t *
ngx_kexec_zone_list(ngx_kexec_zone_t *zone, ngx_pool_t *pool)
{
    ngx_uint_t            i, n, end, top;
    ngx_array_t          *list;
    ngx_kexec_context_t  *ctx;

    list = ngx_array_create(pool, zone->sh->ncontexts + NGX_KEXEC_ZONE_COPIES,
                            sizeof(ngx_kexec_context_t));
    if (list == NULL) {
        return NULL;
    }

    top = ngx_min(zone->sh->top, zone->ncontexts);

    for (i = 0; i < top; /* void */ ) {

        end = ngx_min(i + NGX_KEXEC_ZONE_BATCH, top);

        ctx = ngx_array_push_n(list, NGX_KEXEC_ZONE_COPIES);
        if (ctx == NULL) {
            return NULL;
        }

        n = 0;

        ngx_kexec_zone_lock(zone);

        for ( /* void */ ; i < end && n < NGX_KEXEC_ZONE_COPIES; i++) {

            if (zone->contexts[i].c.state == NGX_KEXEC_CONTEXT_READY) {
                ctx[n++] = zone->contexts[i].c;
            }
        }

        ngx_kexec_zone_unlock(zone);

        list->nelts -= NGX_KEXEC_ZONE_COPIES - n;
    }

    ngx_qsort(list->elts, list->nelts, sizeof(ngx_kexec_context_t),
              ngx_kexec_zone_cmp);

    return list;
}


static int ngx_libc_cdecl
ngx_kexec_zone_cmp(const void *one, const void *two)
{
    const ngx_kexec_context_t  *first = one;
    const ngx_kexec_context_t  *second = two;

    return (first->serial > second->serial) - (first->serial < second->serial);
}


ngx_int_t
ngx_kexec_zone_create(ngx_kexec_zone_t *zone, ngx_kexec_context_t *ctx,
    ngx_kexec_claim_t *claim)
{
    ngx_int_t                  rc;
    ngx_kexec_zone_sh_t       *sh;
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *rec, *other;

    ngx_kexec_claim_leave(claim);

    sh = zone->sh;

    ngx_kexec_zone_lock(zone);

    rec = ngx_kexec_zone_by_id(zone, ctx->id);

    other = ctx->is_default
            ? ngx_kexec_zone_by_language(zone, ctx->language,
                                         ctx->language_len)
            : NULL;

    if (other && other->c.state != NGX_KEXEC_CONTEXT_FAILED) {
        rec = other;
    }

    if (rec && rec->c.state != NGX_KEXEC_CONTEXT_FAILED) {
        *ctx = rec->c;
        rc = NGX_BUSY;
        goto done;
    }

    if (zone->max && sh->ncontexts - sh->nfailed >= zone->max) {
        rc = NGX_ABORT;
        goto done;
    }

    cl = ngx_kexec_claim_make(zone, claim, NULL, NGX_KEXEC_CLAIM_CREATE);
    if (cl == NULL) {
        rc = (ngx_kexec_zone_self.worker == NGX_KEXEC_NONE) ? NGX_ERROR
                                                            : NGX_DECLINED;
        goto done;
    }

    if (rec) {
        ngx_kexec_zone_drop(zone, rec);
    }

    if (other && other != rec) {
        ngx_kexec_zone_drop(zone, other);
    }

    if (ngx_kexec_zone_room(zone) != NGX_OK) {
        ngx_kexec_claim_forget(claim);
        ngx_kexec_slot_free(zone, cl);

        rc = NGX_DECLINED;
        goto done;
    }

    rec = &zone->contexts[sh->free_contexts];
    sh->free_contexts = rec->next;

    ctx->serial = ++sh->serial;
    ctx->state = NGX_KEXEC_CONTEXT_CREATING;

    ngx_kexec_zone_write(zone, rec, ctx);

    ctx->ref = rec->c.ref;
    claim->context = rec->c.ref;

    cl->context = rec->c.ref.index;
    cl->context_generation = rec->c.ref.generation;

    ngx_memory_barrier();
    ngx_kexec_zone_crash(zone, 4);

    rec->c.state = NGX_KEXEC_CONTEXT_CREATING;

    ngx_kexec_zone_link(zone, rec);

    ngx_kexec_zone_crash(zone, 5);

    ngx_kexec_slot_take(zone, rec, cl, NGX_KEXEC_CLAIM_HELD);

    rc = NGX_OK;

done:

    ngx_kexec_zone_unlock(zone);

    return rc;
}


/* a free record, or a failed one in its place */

ngx_int_t
ngx_kexec_zone_room(ngx_kexec_zone_t *zone)
{
    ngx_uint_t                 n;
    ngx_kexec_zone_context_t  *rec;

    if (zone->sh->free_contexts != NGX_KEXEC_NONE) {
        return NGX_OK;
    }

    if (zone->sh->nfailed == 0) {
        return NGX_DECLINED;
    }

    for (n = 0; n < zone->ncontexts; n++) {

        if (++zone->hand >= zone->ncontexts) {
            zone->hand = 0;
        }

        rec = &zone->contexts[zone->hand];

        if (rec->c.state == NGX_KEXEC_CONTEXT_FAILED) {
            ngx_kexec_zone_drop(zone, rec);
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


void
ngx_kexec_zone_write(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *rec,
    ngx_kexec_context_t *ctx)
{
    uint32_t  generation;

    zone->sh->top = ngx_max(zone->sh->top,
                            (ngx_uint_t) (rec - zone->contexts + 1));

    generation = rec->c.ref.generation + 1;

    rec->c.ref.index = rec - zone->contexts;
    rec->c.ref.generation = generation ? generation : 1;

    /* a generation is never forgotten, and the state is free for now */

    ngx_memzero((u_char *) rec + sizeof(ngx_kexec_ref_t),
                sizeof(ngx_kexec_zone_context_t) - sizeof(ngx_kexec_ref_t));

    rec->c.kind = ctx->kind;
    rec->c.serial = ctx->serial;
    rec->c.is_default = ctx->is_default;

    ngx_memcpy(rec->c.id, ctx->id, NGX_KEXEC_UUID_LEN);

    rec->c.language_len = ngx_min(ctx->language_len, NGX_KEXEC_LANGUAGE_LEN);
    ngx_memcpy(rec->c.language, ctx->language, rec->c.language_len);

    rec->c.spec_len = ngx_min(ctx->spec_len, NGX_KEXEC_LANGUAGE_LEN);
    ngx_memcpy(rec->c.spec, ctx->spec, rec->c.spec_len);

    rec->c.cwd_len = ngx_min(ctx->cwd_len, NGX_KEXEC_CWD_LEN);
    ngx_memcpy(rec->c.cwd, ctx->cwd, rec->c.cwd_len);

    rec->c.socklen = ngx_min(ctx->socklen, sizeof(rec->c.sockaddr));
    ngx_memcpy(rec->c.sockaddr, ctx->sockaddr, rec->c.socklen);

    rec->c.server_len = ngx_min(ctx->server_len, sizeof(rec->c.server));
    ngx_memcpy(rec->c.server, ctx->server, rec->c.server_len);

    rec->holder = NGX_KEXEC_NONE;
    rec->head = NGX_KEXEC_NONE;
    rec->tail = NGX_KEXEC_NONE;
    rec->watchers = NGX_KEXEC_NONE;
    rec->next_default = NGX_KEXEC_NONE;
}


void
ngx_kexec_zone_update(ngx_kexec_claim_t *claim, ngx_kexec_context_t *ctx)
{
    ngx_kexec_zone_t          *zone;
    ngx_kexec_context_t       *c;
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *rec;

    zone = claim->zone;

    if (zone == NULL) {
        return;
    }

    ngx_kexec_zone_lock(zone);

    cl = ngx_kexec_claim_record(claim);

    if (!ngx_kexec_claim_is_holder(zone, cl)) {
        goto done;
    }

    rec = &zone->contexts[cl->context];
    c = &rec->c;

    c->ready = ctx->ready;
    c->prepared = ctx->prepared;
    c->owes_restore = ctx->owes_restore;
    c->dirty = ctx->dirty;

    c->epoch = ngx_max(c->epoch, ctx->epoch);
    c->process = ctx->process;
    c->in_order = ctx->in_order;

    c->kind = ctx->kind;

    /* half of an address is worse than none, and these seldom change */

    if (ngx_kexec_zone_moved(c, ctx)) {
        rec->torn = 1;

        ngx_memory_barrier();

        c->session = ctx->session;
        c->kernel = ctx->kernel;

        ngx_kexec_zone_crash(zone, 6);

        c->spec_len = ngx_min(ctx->spec_len, NGX_KEXEC_LANGUAGE_LEN);
        ngx_memcpy(c->spec, ctx->spec, c->spec_len);
        c->spec[c->spec_len] = '\0';

        c->socklen = ngx_min(ctx->socklen, sizeof(c->sockaddr));
        ngx_memcpy(c->sockaddr, ctx->sockaddr, c->socklen);

        c->server_len = ngx_min(ctx->server_len, sizeof(c->server));
        ngx_memcpy(c->server, ctx->server, c->server_len);

        ngx_memory_barrier();

        rec->torn = 0;
    }

done:

    ngx_kexec_zone_unlock(zone);
}


static ngx_uint_t
ngx_kexec_zone_moved(ngx_kexec_context_t *c, ngx_kexec_context_t *ctx)
{
    return c->session.len != ctx->session.len
           || c->kernel.len != ctx->kernel.len
           || c->spec_len != ctx->spec_len
           || c->socklen != ctx->socklen
           || c->server_len != ctx->server_len
           || ngx_memcmp(c->session.data, ctx->session.data, c->session.len)
           || ngx_memcmp(c->kernel.data, ctx->kernel.data, c->kernel.len)
           || ngx_memcmp(c->spec, ctx->spec, c->spec_len)
           || ngx_memcmp(c->sockaddr, ctx->sockaddr, c->socklen)
           || ngx_memcmp(c->server, ctx->server, c->server_len);
}


void
ngx_kexec_zone_created(ngx_kexec_claim_t *claim)
{
    ngx_kexec_zone_t          *zone;
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *rec;

    zone = claim->zone;

    if (zone == NULL) {
        return;
    }

    ngx_kexec_zone_lock(zone);

    cl = ngx_kexec_claim_record(claim);

    if (ngx_kexec_claim_is_holder(zone, cl)
        && cl->kind == NGX_KEXEC_CLAIM_CREATE)
    {
        rec = &zone->contexts[cl->context];

        rec->created = 1;

        /* one that was deleted meanwhile goes on being deleted */

        if (rec->c.state == NGX_KEXEC_CONTEXT_CREATING) {
            rec->c.state = NGX_KEXEC_CONTEXT_READY;
        }

        ngx_kexec_slot_tell_watchers(zone, rec);
    }

    ngx_kexec_zone_unlock(zone);
}


void
ngx_kexec_zone_failed(ngx_kexec_claim_t *claim, ngx_uint_t status,
    ngx_str_t *sentence)
{
    ngx_kexec_zone_t          *zone;
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *rec;

    zone = claim->zone;

    if (zone == NULL) {
        return;
    }

    ngx_kexec_zone_lock(zone);

    cl = ngx_kexec_claim_record(claim);

    if (ngx_kexec_claim_is_holder(zone, cl)
        && cl->kind == NGX_KEXEC_CLAIM_CREATE
        && !zone->contexts[cl->context].created)
    {
        rec = &zone->contexts[cl->context];

        ngx_kexec_slot_free(zone, cl);
        ngx_kexec_slot_release(rec);
        ngx_kexec_zone_fail(zone, rec, status, sentence);

    } else if (cl) {
        ngx_kexec_slot_end(zone, cl, 0);
    }

    ngx_kexec_claim_forget(claim);

    ngx_kexec_zone_unlock(zone);
}


void
ngx_kexec_zone_remove(ngx_kexec_claim_t *claim)
{
    ngx_kexec_zone_t          *zone;
    ngx_kexec_zone_claim_t    *cl;
    ngx_kexec_zone_context_t  *rec;

    zone = claim->zone;

    if (zone == NULL) {
        return;
    }

    ngx_kexec_zone_lock(zone);

    cl = ngx_kexec_claim_record(claim);

    if (ngx_kexec_claim_is_holder(zone, cl)) {
        rec = &zone->contexts[cl->context];

        ngx_kexec_slot_release(rec);
        ngx_kexec_zone_drop(zone, rec);
        ngx_kexec_slot_free(zone, cl);

    } else if (cl) {
        ngx_kexec_slot_end(zone, cl, 0);
    }

    ngx_kexec_claim_forget(claim);

    ngx_kexec_zone_unlock(zone);
}


void
ngx_kexec_zone_new_process(ngx_kexec_context_t *ctx)
{
    ctx->epoch++;
    ctx->process = 0;
    ctx->ready = 0;
    ctx->prepared = 0;
    ctx->dirty = 0;
}


void
ngx_kexec_zone_kernel_lost(ngx_kexec_zone_t *zone, ngx_kexec_ref_t *context,
    ngx_kexec_id_t *kernel, ngx_uint_t dead)
{
    ngx_kexec_context_t       *c;
    ngx_kexec_zone_context_t  *rec;

    ngx_kexec_zone_lock(zone);

    rec = ngx_kexec_zone_context(zone, context);

    if (rec) {
        c = &rec->c;

        if (c->kernel.len == kernel->len
            && ngx_memcmp(c->kernel.data, kernel->data, kernel->len) == 0)
        {
            ngx_kexec_zone_new_process(c);

            if (dead) {
                c->kernel.len = 0;
            }
        }
    }

    ngx_kexec_zone_unlock(zone);
}
