
/*
 * Copyright (C) the ngx_kexec_module authors
 */


/*
 * Answers in any pieces: the first byte says how the rest is cut.  The same
 * must be read from one piece and from many: a head, then its body if it is
 * chunked.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_http_parse.h>


#define check(condition)  if (!(condition)) { abort(); }


typedef struct {
    ngx_kexec_http_head_t      head;
    ngx_kexec_http_chunked_t   chunks;
    ngx_int_t                  head_rc;
    ngx_int_t                  rc;
    size_t                     taken;
    u_char                    *body;
    size_t                     len;
} reader_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
feed_body(reader_t *r, u_char **pos, u_char *last)
{
    u_char  *before, *data, *data_last;

    for ( ;; ) {
        before = *pos;
        r->rc = ngx_kexec_http_chunked(&r->chunks, pos, last, &data,
                                       &data_last);

        check(*pos >= before && *pos <= last);

        switch (r->rc) {

        case NGX_OK:
            check(data >= before && data < data_last && data_last == *pos);

            memcpy(r->body + r->len, data, data_last - data);
            r->len += data_last - data;
            break;

        case NGX_AGAIN:
            check(*pos == last);
            return;

        default:
            check(r->rc == NGX_DONE || r->rc == NGX_ERROR);
            return;
        }
    }
}


static void
feed(reader_t *r, u_char *p, u_char *last)
{
    u_char  *start;

    start = p;

    if (r->head_rc == NGX_AGAIN) {
        r->head_rc = ngx_kexec_http_head(&r->head, &p, last);

        switch (r->head_rc) {

        case NGX_OK:
            check(p > start && p <= last);
            check(r->head.status >= 101 && r->head.status <= 999);
            check(r->head.status >= 200 || r->head.status == 101);
            check(r->head.content_length >= -1);
            check(!r->head.chunked || r->head.content_length == -1);
            check(r->head.accept_len <= sizeof(r->head.accept));
            check(r->head.protocol_len <= sizeof(r->head.protocol));
            break;

        case NGX_AGAIN:
            check(p == last);
            break;

        default:
            check(r->head_rc == NGX_ERROR && r->head.error);
        }
    }

    if (r->head_rc == NGX_OK && r->head.chunked && r->rc == NGX_AGAIN) {
        feed_body(r, &p, last);
    }

    r->taken += p - start;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t     n;
    u_char    *copy, *all, *p, *last;
    uint32_t   seed;
    reader_t   whole, pieces;

    if (size < 1) {
        return 0;
    }

    memset(&whole, 0, sizeof(whole));
    memset(&pieces, 0, sizeof(pieces));

    seed = *data++ + 1;
    size--;

    whole.head_rc = whole.rc = NGX_AGAIN;
    pieces.head_rc = pieces.rc = NGX_AGAIN;

    whole.body = malloc(size + 1);
    pieces.body = malloc(size + 1);

    all = malloc(size ? size : 1);
    memcpy(all, data, size);

    feed(&whole, all, all + size);

    for (p = all, last = all + size; p < last; p += n) {
        seed = seed * 1664525 + 1013904223;
        n = 1 + (seed >> 24) % 7;
        n = ngx_min(n, (size_t) (last - p));

        if (pieces.head_rc == NGX_ERROR || pieces.rc != NGX_AGAIN
            || (pieces.head_rc == NGX_OK && !pieces.head.chunked))
        {
            break;
        }

        /* each piece is memory of its own */

        copy = malloc(n);
        memcpy(copy, p, n);
        feed(&pieces, copy, copy + n);
        free(copy);
    }

    check(whole.head_rc == pieces.head_rc);
    check(whole.rc == pieces.rc);
    check(whole.len == pieces.len);
    check(memcmp(whole.body, pieces.body, whole.len) == 0);

    /* where an error stands does not matter */

    check(whole.taken == pieces.taken || whole.head_rc == NGX_ERROR
          || whole.rc == NGX_ERROR);

    if (whole.head_rc == NGX_OK) {
        check(memcmp(&whole.head, &pieces.head,
                     offsetof(ngx_kexec_http_head_t, line))
              == 0);

    } else if (whole.head_rc == NGX_ERROR) {
        check(strcmp(whole.head.error, pieces.head.error) == 0);
    }

    free(whole.body);
    free(pieces.body);
    free(all);

    return 0;
}
