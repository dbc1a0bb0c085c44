
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_json_scan.h>
#include <ngx_kexec_schema.h>


/* the bytes of one unit of UTF-16 or UTF-32, and their order */

typedef struct {
    size_t      unit;                   /* 1: UTF-8 */
    ngx_uint_t  little;
    size_t      mark;                   /* bytes of the byte order mark */
} ngx_kexec_encoding_t;


static void ngx_kexec_encoding(ngx_str_t *body,
    ngx_kexec_encoding_t *encoding);
static ngx_uint_t ngx_kexec_is_utf8(ngx_str_t *text);
static uint32_t ngx_kexec_unit(u_char *p, ngx_kexec_encoding_t *encoding);
static u_char *ngx_kexec_utf8(u_char *p, uint32_t n);


ngx_int_t
ngx_kexec_schema_decode(ngx_str_t *body, ngx_str_t *text, u_char **memory)
{
    u_char                *p, *q, *last;
    uint32_t               n, low;
    ngx_kexec_encoding_t   encoding;

    *memory = NULL;

    ngx_kexec_encoding(body, &encoding);

    text->data = body->data + encoding.mark;
    text->len = body->len - encoding.mark;

    if (encoding.unit == 1) {
        return ngx_kexec_is_utf8(text) ? NGX_OK : NGX_DECLINED;
    }

    if (text->len % encoding.unit) {
        return NGX_DECLINED;
    }

    p = text->data;
    last = p + text->len;

    /* three bytes for one of UTF-16's units, at most four for UTF-32's */

    q = malloc(text->len + text->len / 2 + 1);
    if (q == NULL) {
        return NGX_ERROR;
    }

    *memory = q;
    text->data = q;

    while (p < last) {
        n = ngx_kexec_unit(p, &encoding);
        p += encoding.unit;

        if (encoding.unit == 2 && n >= 0xd800 && n <= 0xdbff && p < last) {
            low = ngx_kexec_unit(p, &encoding);

            if (low >= 0xdc00 && low <= 0xdfff) {
                n = 0x10000 + ((n - 0xd800) << 10) + (low - 0xdc00);
                p += encoding.unit;
            }
        }

        if (n > 0x10ffff) {
            free(*memory);
            *memory = NULL;
            return NGX_DECLINED;
        }

        q = ngx_kexec_utf8(q, n);
    }

    text->len = q - text->data;

    return NGX_OK;
}


/* a text of JSON begins with ASCII: zeros tell the rest */

static void
ngx_kexec_encoding(ngx_str_t *body, ngx_kexec_encoding_t *encoding)
{
    size_t   len;
    u_char  *p;

    p = body->data;
    len = body->len;

    encoding->unit = 1;
    encoding->little = 0;
    encoding->mark = 0;

    if (len >= 4 && ngx_memcmp(p, "\x00\x00\xfe\xff", 4) == 0) {
        encoding->unit = 4;
        encoding->mark = 4;

    } else if (len >= 4 && ngx_memcmp(p, "\xff\xfe\x00\x00", 4) == 0) {
        encoding->unit = 4;
        encoding->little = 1;
        encoding->mark = 4;

    } else if (len >= 2 && ngx_memcmp(p, "\xfe\xff", 2) == 0) {
        encoding->unit = 2;
        encoding->mark = 2;

    } else if (len >= 2 && ngx_memcmp(p, "\xff\xfe", 2) == 0) {
        encoding->unit = 2;
        encoding->little = 1;
        encoding->mark = 2;

    } else if (len >= 3 && ngx_memcmp(p, "\xef\xbb\xbf", 3) == 0) {
        encoding->mark = 3;

    } else if (len >= 4 || len == 2) {

        if (p[0] == 0) {
            encoding->unit = (len == 2 || p[1]) ? 2 : 4;

        } else if (p[1] == 0) {
            encoding->unit = (len == 2 || p[2] || p[3]) ? 2 : 4;
            encoding->little = 1;
        }
    }
}


/* lone surrogates pass: what they are in has to be used to be refused */

static ngx_uint_t
ngx_kexec_is_utf8(ngx_str_t *text)
{
    u_char      c, low, high, *p, *last;
    ngx_uint_t  more;

    if (text->len == 0) {
        return 1;
    }

    p = text->data;
    last = p + text->len;

    for ( ;; ) {
        p = ngx_kexec_json_scan(p, last, 0, 1);

        if (p == last) {
            return 1;
        }

        c = *p++;

        if (c == 0x7f) {
            continue;
        }

        low = 0x80;
        high = 0xbf;

        if (c >= 0xc2 && c <= 0xdf) {
            more = 1;

        } else if (c >= 0xe0 && c <= 0xef) {
            more = 2;

            if (c == 0xe0) {
                low = 0xa0;
            }

        } else if (c >= 0xf0 && c <= 0xf4) {
            more = 3;

            if (c == 0xf0) {
                low = 0x90;

            } else if (c == 0xf4) {
                high = 0x8f;
            }

        } else {
            return 0;
        }

        while (more--) {

            if (p == last || *p < low || *p > high) {
                return 0;
            }

            p++;
            low = 0x80;
            high = 0xbf;
        }
    }
}


static uint32_t
ngx_kexec_unit(u_char *p, ngx_kexec_encoding_t *encoding)
{
    size_t    i;
    uint32_t  n;

    n = 0;

    for (i = 0; i < encoding->unit; i++) {
        n = (n << 8) | p[encoding->little ? encoding->unit - 1 - i : i];
    }

    return n;
}


static u_char *
ngx_kexec_utf8(u_char *p, uint32_t n)
{
    if (n < 0x80) {
        *p++ = (u_char) n;
        return p;
    }

    if (n < 0x800) {
        *p++ = (u_char) (0xc0 | n >> 6);

    } else {

        if (n < 0x10000) {
            *p++ = (u_char) (0xe0 | n >> 12);

        } else {
            *p++ = (u_char) (0xf0 | n >> 18);
            *p++ = (u_char) (0x80 | (n >> 12 & 0x3f));
        }

        *p++ = (u_char) (0x80 | (n >> 6 & 0x3f));
    }

    *p++ = (u_char) (0x80 | (n & 0x3f));

    return p;
}
