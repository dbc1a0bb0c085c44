
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_identity.h>
#include <ngx_kexec_sync.h>


/* what a session says of a context */

typedef struct {
    ngx_uint_t            n;            /* its place in Jupyter's list */
    uint32_t              epoch;
    unsigned              ours:1;
    unsigned              marked:1;     /* its kernel was prepared */
    unsigned              first:1;      /* of those that claim its id */
    u_char                id[NGX_KEXEC_UUID_LEN];
} ngx_kexec_sync_claim_t;


static int ngx_libc_cdecl ngx_kexec_sync_cmp_claims(const void *one,
    const void *two);
static int ngx_libc_cdecl ngx_kexec_sync_cmp_places(const void *one,
    const void *two);


ngx_int_t
ngx_kexec_sync_order(ngx_pool_t *pool, ngx_array_t *sessions)
{
    ngx_uint_t                    i, n;
    ngx_kexec_context_t           ctx;
    ngx_kexec_sync_claim_t       *claim;
    ngx_kexec_jupyter_session_t  *session, *ordered;

    n = sessions->nelts;

    if (n < 2) {
        return NGX_OK;
    }

    session = sessions->elts;

    claim = ngx_pcalloc(pool, n * sizeof(ngx_kexec_sync_claim_t));
    ordered = ngx_palloc(pool, n * sizeof(ngx_kexec_jupyter_session_t));

    if (claim == NULL || ordered == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        claim[i].n = i;

        if (ngx_kexec_session_parse(&session[i], &ctx) != NGX_OK) {
            continue;
        }

        claim[i].ours = 1;
        claim[i].marked = (ctx.prepared != 0);
        claim[i].epoch = ctx.epoch;
        ngx_memcpy(claim[i].id, ctx.id, NGX_KEXEC_UUID_LEN);
    }

    ngx_qsort(claim, n, sizeof(ngx_kexec_sync_claim_t),
              ngx_kexec_sync_cmp_claims);

    for (i = 0; i < n; i++) {
        claim[i].first = !claim[i].ours || i == n - 1
                         || ngx_memcmp(claim[i].id, claim[i + 1].id,
                                       NGX_KEXEC_UUID_LEN)
                            != 0;
    }

    ngx_qsort(claim, n, sizeof(ngx_kexec_sync_claim_t),
              ngx_kexec_sync_cmp_places);

    for (i = 0; i < n; i++) {
        ordered[i] = session[claim[i].n];
    }

    ngx_memcpy(session, ordered, n * sizeof(ngx_kexec_jupyter_session_t));

    return NGX_OK;
}


/* by id; of one id, the one that has the best right to it comes last */

static int ngx_libc_cdecl
ngx_kexec_sync_cmp_claims(const void *one, const void *two)
{
    int                            rc;
    const ngx_kexec_sync_claim_t  *first = one;
    const ngx_kexec_sync_claim_t  *second = two;

    rc = ngx_memcmp(first->id, second->id, NGX_KEXEC_UUID_LEN);

    if (rc != 0) {
        return rc;
    }

    if (first->marked != second->marked) {
        return first->marked ? 1 : -1;
    }

    if (first->epoch != second->epoch) {
        return first->epoch > second->epoch ? 1 : -1;
    }

    return first->n > second->n ? 1 : -1;
}


static int ngx_libc_cdecl
ngx_kexec_sync_cmp_places(const void *one, const void *two)
{
    const ngx_kexec_sync_claim_t  *first = one;
    const ngx_kexec_sync_claim_t  *second = two;

    if (first->first != second->first) {
        return first->first ? 1 : -1;
    }

    return first->n > second->n ? 1 : -1;
}
