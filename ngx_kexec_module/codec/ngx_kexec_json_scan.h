
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_JSON_SCAN_H_INCLUDED_
#define _NGX_KEXEC_JSON_SCAN_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#if (__SSE2__)
#include <emmintrin.h>
#endif


/* what the walker and the writer share, and nobody else */


/*
 * The end of the scalar, or of the string with its quotes, that begins at p;
 * NULL if there is none.
 */
u_char *ngx_kexec_json_walk_scalar(u_char *p, u_char *last);


static ngx_inline u_char *
ngx_kexec_json_space(u_char *p, u_char *last)
{
    while (p < last && (*p == ' ' || *p == LF || *p == CR || *p == '\t')) {
        p++;
    }

    return p;
}


/*
 * Finds the first byte that needs attention: with quotes, '"', '\' and
 * control characters; with high, all above 0x7e.
 */

static ngx_inline u_char *
ngx_kexec_json_scan(u_char *p, u_char *last, ngx_uint_t quotes,
    ngx_uint_t high)
{
#if (__SSE2__)
    int       mask;
    __m128i   x, hit, quote, slash, control, one;

    quote = _mm_set1_epi8('"');
    slash = _mm_set1_epi8('\\');
    control = _mm_set1_epi8(0x1f);
    one = _mm_set1_epi8(1);

    while (last - p >= 16) {
        x = _mm_loadu_si128((const __m128i *) p);
        hit = _mm_setzero_si128();

        if (quotes) {
            hit = _mm_or_si128(_mm_cmpeq_epi8(x, quote),
                               _mm_cmpeq_epi8(x, slash));
            hit = _mm_or_si128(hit,
                               _mm_cmpeq_epi8(_mm_min_epu8(x, control), x));
        }

        if (high) {
            /* the saturated sum has its highest bit set from 0x7f on */
            hit = _mm_or_si128(hit, _mm_adds_epu8(x, one));
        }

        mask = _mm_movemask_epi8(hit);

        if (mask) {
            return p + __builtin_ctz(mask);
        }

        p += 16;
    }

#else
    uint64_t  x, y, hit;

    /*
     * (y - 0x01..) & ~y has the highest bit of a byte set where y is zero;
     * a borrow can set others too, but only above a true one
     */

    while (last - p >= 8) {
        ngx_memcpy(&x, p, 8);
        hit = 0;

        if (quotes) {
            y = x ^ 0x2222222222222222;
            hit |= (y - 0x0101010101010101) & ~y;

            y = x ^ 0x5c5c5c5c5c5c5c5c;
            hit |= (y - 0x0101010101010101) & ~y;

            hit |= (x - 0x2020202020202020) & ~x;
        }

        if (high) {
            y = x ^ 0x7f7f7f7f7f7f7f7f;
            hit |= ((y - 0x0101010101010101) & ~y) | x;
        }

        if (hit & 0x8080808080808080) {
            break;
        }

        p += 8;
    }

#endif

    while (p < last) {

        if (quotes && (*p == '"' || *p == '\\' || *p < 0x20)) {
            break;
        }

        if (high && *p > 0x7e) {
            break;
        }

        p++;
    }

    return p;
}


#endif /* _NGX_KEXEC_JSON_SCAN_H_INCLUDED_ */
