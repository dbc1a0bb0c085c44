
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "stub_core.h"


typedef struct stub_piece_s  stub_piece_t;

struct stub_piece_s {
    stub_piece_t  *next;
    void          *data;
    ngx_array_t   *array;           /* whose elts are freed, too; or NULL */
};


ngx_pool_t  stub_pool;


static stub_piece_t  *pieces;


/* zones, requests and the like have no pool here */

void *
ngx_palloc(ngx_pool_t *pool, size_t size)
{
    stub_piece_t  *piece;

    if (pool && pool != &stub_pool) {
        abort();
    }

    piece = malloc(sizeof(stub_piece_t));

    piece->data = malloc(size);
    piece->array = NULL;
    piece->next = pieces;
    pieces = piece;

    return piece->data;
}


void *
ngx_pnalloc(ngx_pool_t *pool, size_t size)
{
    return ngx_palloc(pool, size);
}


void *
ngx_pcalloc(ngx_pool_t *pool, size_t size)
{
    return memset(ngx_palloc(pool, size), 0, size);
}


ngx_array_t *
ngx_array_create(ngx_pool_t *pool, ngx_uint_t n, size_t size)
{
    ngx_array_t  *a;

    a = ngx_palloc(pool, sizeof(ngx_array_t));
    pieces->array = a;

    a->elts = malloc(n * size);
    a->nelts = 0;
    a->size = size;
    a->nalloc = n;
    a->pool = pool;

    return a;
}


void *
ngx_array_push(ngx_array_t *a)
{
    return ngx_array_push_n(a, 1);
}


void *
ngx_array_push_n(ngx_array_t *a, ngx_uint_t n)
{
    void  *p;

    if (a->nelts + n > a->nalloc) {
        a->nalloc = 2 * ngx_max(n, a->nalloc);
        a->elts = realloc(a->elts, a->nalloc * a->size);
    }

    p = (u_char *) a->elts + a->nelts * a->size;
    a->nelts += n;

    return p;
}


void
stub_free_array(ngx_array_t *a)
{
    free(a->elts);
    a->elts = NULL;
}


void
stub_pool_free(void)
{
    stub_piece_t  *piece;

    while (pieces) {
        piece = pieces;
        pieces = piece->next;

        if (piece->array) {
            free(piece->array->elts);
        }

        free(piece->data);
        free(piece);
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


/* what those who are tested have in their formats, and no more */

u_char * ngx_cdecl
ngx_sprintf(u_char *buf, const char *fmt, ...)
{
    va_list     args;
    ngx_str_t  *str;

    va_start(args, fmt);

    for ( /* void */ ; *fmt; fmt++) {

        if (*fmt != '%') {
            *buf++ = *fmt;
            continue;
        }

        switch (*++fmt) {

        case 'P':
            buf += sprintf((char *) buf, "%d", va_arg(args, ngx_pid_t));
            break;

        case 's':
            buf += sprintf((char *) buf, "%s", va_arg(args, char *));
            break;

        case 'V':
            str = va_arg(args, ngx_str_t *);
            buf = ngx_cpymem(buf, str->data, str->len);
            break;

        case 'Z':
            *buf++ = '\0';
            break;

        default:
            abort();
        }
    }

    va_end(args);

    return buf;
}
