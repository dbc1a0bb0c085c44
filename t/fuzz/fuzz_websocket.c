
/*
 * Copyright (C) the ngx_kexec_module authors
 */


/*
 * Frames in any pieces: the first byte says how the rest is cut.  The same
 * must be read from one piece and from many.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_websocket.h>


#define check(condition)  if (!(condition)) { abort(); }


typedef struct {
    ngx_kexec_websocket_t   ws;
    uint64_t                rest;       /* of the payload */
    ngx_int_t               rc;
    ngx_uint_t              frames;
    uint64_t                sum;        /* of all that was read */
} reader_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
mix(reader_t *r, uint64_t n)
{
    r->sum = (r->sum ^ n) * 0x9e3779b97f4a7c15 + 1;
}


static void
frame(reader_t *r)
{
    u_char                  buf[NGX_KEXEC_WS_HEADER], *p, *end;
    ngx_kexec_websocket_t   again;

    static const u_char     mask[4] = { 1, 2, 3, 4 };

    check(r->ws.length >> 63 == 0);

    if (r->ws.opcode >= NGX_KEXEC_WS_CLOSE) {
        check(r->ws.fin);
        check(r->ws.length <= NGX_KEXEC_WS_CONTROL);

    } else {
        check(r->ws.message);
        check(r->ws.opcode == NGX_KEXEC_WS_CONTINUATION
              || r->ws.opcode == r->ws.message);
    }

    mix(r, r->ws.opcode);
    mix(r, r->ws.fin);
    mix(r, r->ws.length);
    mix(r, r->ws.message);

    r->frames++;
    r->rest = r->ws.length;

    /* what we would write for it, seen by the other end */

    if (r->ws.opcode == NGX_KEXEC_WS_CONTINUATION) {
        return;
    }

    end = ngx_kexec_websocket_write_header(buf, r->ws.opcode, r->ws.length,
                                           mask);

    check(end - buf <= NGX_KEXEC_WS_HEADER);
    check(buf[1] & 0x80);
    check(memcmp(end - 4, mask, 4) == 0);

    buf[1] &= 0x7f;
    p = buf;
    memset(&again, 0, sizeof(again));

    check(ngx_kexec_websocket_header(&again, &p, end - 4) == NGX_OK);
    check(p == end - 4);
    check(again.fin && again.opcode == r->ws.opcode);
    check(again.length == r->ws.length);
}


static void
feed(reader_t *r, u_char *p, u_char *last)
{
    u_char  *before;
    size_t   n;

    while (p < last && r->rc != NGX_ERROR) {

        if (r->rest) {
            n = ngx_min(r->rest, (uint64_t) (last - p));

            for (r->rest -= n; n; n--) {
                mix(r, *p++);
            }

            continue;
        }

        before = p;
        r->rc = ngx_kexec_websocket_header(&r->ws, &p, last);

        check(p > before && p <= last);

        switch (r->rc) {

        case NGX_OK:
            frame(r);
            break;

        case NGX_AGAIN:
            check(p == last);
            break;

        default:
            check(r->rc == NGX_ERROR && r->ws.error);
            mix(r, r->ws.error[0] + r->ws.error[2]);
        }
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t     n;
    u_char    *copy, *all, *p, *last, mask[4];
    uint32_t   seed;
    reader_t   whole, pieces;

    if (size < 1) {
        return 0;
    }

    memset(&whole, 0, sizeof(whole));
    memset(&pieces, 0, sizeof(pieces));

    seed = *data++ + 1;
    size--;

    all = malloc(size ? size : 1);
    memcpy(all, data, size);

    feed(&whole, all, all + size);

    for (p = all, last = all + size; p < last; p += n) {
        seed = seed * 1664525 + 1013904223;
        n = 1 + (seed >> 24) % 5;
        n = ngx_min(n, (size_t) (last - p));

        /* each piece is memory of its own */

        copy = malloc(n);
        memcpy(copy, p, n);
        feed(&pieces, copy, copy + n);
        free(copy);
    }

    check(whole.rc == pieces.rc);
    check(whole.frames == pieces.frames);
    check(whole.rest == pieces.rest);
    check(whole.sum == pieces.sum);

    /* masking at once and in two steps, and back */

    memcpy(mask, &seed, 4);
    n = size ? seed % size : 0;

    copy = malloc(size ? size : 1);
    memcpy(copy, all, size);

    ngx_kexec_websocket_mask(copy, n, mask, 0);
    ngx_kexec_websocket_mask(copy + n, size - n, mask, n);
    ngx_kexec_websocket_mask(copy, size, mask, 0);

    check(memcmp(copy, all, size) == 0);
    check(ngx_kexec_websocket_close_code(all, size) <= 65535);

    free(copy);
    free(all);

    return 0;
}
