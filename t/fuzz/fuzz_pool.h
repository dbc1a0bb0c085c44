
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _FUZZ_POOL_H_INCLUDED_
#define _FUZZ_POOL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


#define check(condition)  if (!(condition)) { abort(); }


/*
 * As much of nginx's pools, arrays and strings as reading Jupyter's answers
 * needs; each piece is memory of its own.
 */

static ngx_pool_t   pool;
static ngx_array_t  pieces = { NULL, 0, sizeof(void *), 0, NULL };


void *
ngx_palloc(ngx_pool_t *p, size_t size)
{
    void  **piece;

    check(p == &pool);

    piece = ngx_array_push(&pieces);
    *piece = malloc(size);

    return *piece;
}


void *
ngx_pnalloc(ngx_pool_t *p, size_t size)
{
    return ngx_palloc(p, size);
}


ngx_array_t *
ngx_array_create(ngx_pool_t *p, ngx_uint_t n, size_t size)
{
    ngx_array_t  *a;

    a = ngx_palloc(p, sizeof(ngx_array_t));

    a->elts = ngx_palloc(p, n * size);
    a->nelts = 0;
    a->size = size;
    a->nalloc = n;
    a->pool = p;

    return a;
}


void *
ngx_array_push(ngx_array_t *a)
{
    void  *elts;

    if (a->nelts == a->nalloc) {
        a->nalloc = 2 * a->nalloc + 1;

        if (a->pool) {
            elts = ngx_palloc(a->pool, a->nalloc * a->size);
            memcpy(elts, a->elts, a->nelts * a->size);
            a->elts = elts;

        } else {
            a->elts = realloc(a->elts, a->nalloc * a->size);
        }
    }

    return (u_char *) a->elts + a->nelts++ * a->size;
}


static void
pool_free(void)
{
    void  **piece;

    for (piece = pieces.elts; pieces.nelts; piece++, pieces.nelts--) {
        free(*piece);
    }
}


ngx_int_t
ngx_strncasecmp(u_char *s1, u_char *s2, size_t n)
{
    return n ? strncasecmp((char *) s1, (char *) s2, n) : 0;
}


ngx_int_t
ngx_memn2cmp(u_char *s1, u_char *s2, size_t n1, size_t n2)
{
    ngx_int_t  rc;

    rc = memcmp(s1, s2, ngx_min(n1, n2));

    return rc ? rc : (ngx_int_t) (n1 - n2);
}


ngx_int_t
ngx_atoi(u_char *line, size_t n)
{
    ngx_int_t  value;

    if (n == 0) {
        return NGX_ERROR;
    }

    for (value = 0; n--; line++) {

        if (*line < '0' || *line > '9'
            || value > (NGX_MAX_INT_T_VALUE - 9) / 10)
        {
            return NGX_ERROR;
        }

        value = value * 10 + (*line - '0');
    }

    return value;
}


#endif /* _FUZZ_POOL_H_INCLUDED_ */
