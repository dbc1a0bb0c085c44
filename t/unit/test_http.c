
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "kexec_unit.h"
#include <ngx_kexec_http_parse.h>


#define LINE     1024
#define HEAD     (64 * 1024)

#define NONE     -1
#define CHUNKED  0x1
#define UPGRADE  0x2
#define KEEP     0x4


static const struct {
    const char  *head;
    ngx_uint_t   status;
    off_t        length;
    ngx_uint_t   flags;
    const char  *accept;
    const char  *protocol;
} good[] = {
    { "HTTP/1.1 200 OK\r\n\r\n", 200, NONE, KEEP, "", "" },
    { "HTTP/1.1 200\r\n\r\n", 200, NONE, KEEP, "", "" },
    { "HTTP/1.1 200 \r\n\r\n", 200, NONE, KEEP, "", "" },
    { "HTTP/1.0 404 Not  Found\r\n\r\n", 404, NONE, 0, "", "" },
    { "HTTP/1.9 599 \xe9\r\n\r\n", 599, NONE, KEEP, "", "" },

    /* a line feed alone, RFC 9112, section 2.2 */
    { "HTTP/1.1 204 No\nA: b\n\n", 204, NONE, KEEP, "", "" },

    { "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, 0, KEEP, "", "" },
    { "HTTP/1.1 200 OK\r\ncontent-LENGTH:\t 007 \t\r\n\r\n", 200, 7, KEEP,
      "", "" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 922337203685477580\r\n\r\n", 200,
      922337203685477580, KEEP, "", "" },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", 200, NONE,
      KEEP | CHUNKED, "", "" },
    { "HTTP/1.1 200 OK\r\nConnection: x, Close\r\n\r\n", 200, NONE, 0, "",
      "" },
    { "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", 200, NONE, KEEP,
      "", "" },
    { "HTTP/1.1 200 OK\r\nConnection: closed, xclose, clos\r\n\r\n", 200,
      NONE, KEEP, "", "" },

    { "HTTP/1.1 101 Switching Protocols\r\nServer: TornadoServer/6.2\r\n"
      "Date: Sun, 29 Nov 2026 14:32:25 GMT\r\nUpgrade: websocket\r\n"
      "Connection: Upgrade\r\n"
      "Sec-Websocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
      "Sec-Websocket-Protocol: v1.kernel.websocket.jupyter.org\r\n\r\n",
      101, NONE, KEEP | UPGRADE, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
      "v1.kernel.websocket.jupyter.org" },
    { "HTTP/1.1 101 Switching\r\nUPGRADE: h2c , WebSocket\r\n"
      "connection: keep-alive ,upgrade\r\n"
      "Sec-WebSocket-Extensions:\r\n\r\n", 101, NONE, KEEP | UPGRADE, "", "" },
    { "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\n\r\n", 101, NONE,
      KEEP, "", "" },
    { "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n", 101, NONE, KEEP,
      "", "" },

    /* what is not for us, folded into nothing */
    { "HTTP/1.1 200 OK\r\nX:\r\nY: \r\n!#$%&'*+-.^_`|~: \x80\xff\r\n\r\n",
      200, NONE, KEEP, "", "" },

    /* interim answers leave nothing behind */
    { "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 200, NONE, KEEP,
      "", "" },
    { "HTTP/1.0 103 Hints\r\nContent-Length: 5\r\nConnection: upgrade\r\n"
      "Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n"
      "Sec-WebSocket-Protocol: y\r\nSec-WebSocket-Extensions: z\r\n\r\n"
      "HTTP/1.1 199 ?\r\nTransfer-Encoding: chunked\r\n\r\n"
      "HTTP/1.1 101 OK\r\nSec-WebSocket-Accept: a\r\n\r\n", 101, NONE, KEEP,
      "a", "" },
    { "HTTP/1.1 100 C\r\nConnection: upgrade\r\n\r\n"
      "HTTP/1.1 101 OK\r\nUpgrade: websocket\r\n\r\n", 101, NONE, KEEP, "",
      "" },
    { "HTTP/1.1 100 C\r\nUpgrade: websocket\r\n\r\n"
      "HTTP/1.1 101 OK\r\nConnection: upgrade\r\n\r\n", 101, NONE, KEEP, "",
      "" }
};


static const struct {
    const char  *head;
    const char  *error;
} bad[] = {
    { "\r\n", "invalid status line" },
    { "\n", "invalid status line" },
    { "HTTP/1.1\r\n", "invalid status line" },
    { "HTTP/2 200 OK\r\n", "invalid status line" },
    { "HTTP/2.0 200 OK\r\n", "invalid status line" },
    { "http/1.1 200 OK\r\n", "invalid status line" },
    { "HTTP/1.x 200 OK\r\n", "invalid status line" },
    { "HTTP/1.1  200 OK\r\n", "invalid status line" },
    { "HTTP/1.1 20 OK\r\n", "invalid status line" },
    { "HTTP/1.1 020 OK\r\n", "invalid status line" },
    { "HTTP/1.1 2000 OK\r\n", "invalid status line" },
    { "HTTP/1.1 2 0 OK\r\n", "invalid status line" },
    { "HTTP/1.1 -20 OK\r\n", "invalid status line" },
    { "HTTP/1.1 200OK\r\n", "invalid status line" },
    { "<html></html>\r\n", "invalid status line" },

    { "HTTP/1.1 200 OK\rX", "invalid character in response head" },
    { "HTTP/1.1 200 OK\r\r", "invalid character in response head" },
    { "HTTP/1.1 200 OK\r\nA: b\x01", "invalid character in response head" },
    { "HTTP/1.1 200 OK\r\nA: b\x7f", "invalid character in response head" },

    { "HTTP/1.1 200 OK\r\nA\r\n", "invalid header line" },
    { "HTTP/1.1 200 OK\r\n: b\r\n", "invalid header line" },
    { "HTTP/1.1 200 OK\r\nA : b\r\n", "invalid header line" },
    { "HTTP/1.1 200 OK\r\nA b: c\r\n", "invalid header line" },
    { "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n", "invalid header line" },
    { "HTTP/1.1 200 OK\r\nA: b\r\n\tc\r\n", "invalid header line" },
    { "HTTP/1.1 200 OK\r\n\xc3\xa4: b\r\n", "invalid header line" },

    { "HTTP/1.1 200 OK\r\nContent-Length:\r\n", "invalid Content-Length" },
    { "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n", "invalid Content-Length" },
    { "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n", "invalid Content-Length" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 1 1\r\n", "invalid Content-Length" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n",
      "invalid Content-Length" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n", "invalid Content-Length" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n",
      "invalid Content-Length" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551617\r\n",
      "invalid Content-Length" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
      "repeated Content-Length" },

    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n",
      "invalid Transfer-Encoding" },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n",
      "invalid Transfer-Encoding" },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunkedx\r\n",
      "invalid Transfer-Encoding" },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n",
      "invalid Transfer-Encoding" },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
      "Transfer-Encoding: chunked\r\n", "invalid Transfer-Encoding" },

    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
      "Content-Length: 4\r\n\r\n",
      "both Content-Length and Transfer-Encoding" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
      "Transfer-Encoding: chunked\r\n\r\n",
      "both Content-Length and Transfer-Encoding" },

    { "HTTP/1.1 101 S\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
      "websocket extension that was not asked for" },
    { "HTTP/1.1 101 S\r\nSec-WebSocket-Accept: a\r\n"
      "Sec-WebSocket-Accept: a\r\n", "invalid websocket header" },
    { "HTTP/1.1 101 S\r\nSec-WebSocket-Protocol: 0123456789012345678901234567"
      "8901234567890123456789012345678901234\r\n",
      "invalid websocket header" },

    { "HTTP/1.1 100 C\r\n\r\nHTTP/1.1\r\n", "invalid status line" }
};


/* all of it in pieces that end at the two cuts, each in memory of its own */

static ngx_int_t
feed(ngx_kexec_http_head_t *head, const char *bytes, size_t len, size_t cut1,
    size_t cut2, size_t *taken)
{
    size_t      i, from, ends[3];
    u_char     *pos;
    ngx_int_t   rc;
    ngx_str_t   piece;

    ends[0] = cut1;
    ends[1] = cut2;
    ends[2] = len;

    memset(head, 0, sizeof(ngx_kexec_http_head_t));

    rc = NGX_AGAIN;
    from = 0;

    for (i = 0; i < 3 && rc == NGX_AGAIN; i++) {
        piece = unit_copy(bytes + from, ends[i] - from);
        pos = piece.data;

        rc = ngx_kexec_http_head(head, &pos, piece.data + piece.len);

        if (rc == NGX_AGAIN) {
            assert_ptr_equal(pos, piece.data + piece.len);
        }

        from += pos - piece.data;

        free(piece.data);
    }

    *taken = from;

    return rc;
}


static void
test_head(void **state)
{
    size_t                  i, len, cut1, cut2, taken;
    char                    bytes[1024];
    ngx_kexec_http_head_t   head;

    (void) state;

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {

        len = strlen(good[i].head);

        memcpy(bytes, good[i].head, len);
        memcpy(bytes + len, "HTTP", 4);

        for (cut1 = 0; cut1 <= len; cut1++) {
            for (cut2 = cut1; cut2 <= len; cut2 += 1 + (len > 100) * 12) {

                assert_int_equal(feed(&head, bytes, len + 4, cut1, cut2,
                                      &taken),
                                 NGX_OK);
                assert_int_equal(taken, len);

                assert_int_equal(head.status, good[i].status);
                assert_true(head.content_length == good[i].length);
                assert_int_equal(head.chunked,
                                 (good[i].flags & CHUNKED) ? 1 : 0);
                assert_int_equal(head.upgrade,
                                 (good[i].flags & UPGRADE) ? 1 : 0);
                assert_int_equal(head.keepalive,
                                 (good[i].flags & KEEP) ? 1 : 0);

                unit_assert_bytes(head.accept, head.accept_len,
                                  good[i].accept, strlen(good[i].accept));
                unit_assert_bytes(head.protocol, head.protocol_len,
                                  good[i].protocol, strlen(good[i].protocol));
                assert_null(head.error);
            }
        }
    }
}


static void
test_refused(void **state)
{
    size_t                  i, len, cut, taken;
    ngx_kexec_http_head_t   head;

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {

        len = strlen(bad[i].head);

        for (cut = 0; cut <= len; cut++) {
            assert_int_equal(feed(&head, bad[i].head, len, cut, cut, &taken),
                             NGX_ERROR);
            assert_string_equal(head.error, bad[i].error);
        }

        /* the last byte is what is refused */

        assert_int_equal(feed(&head, bad[i].head, len - 1, 0, 0, &taken),
                         NGX_AGAIN);
    }

    /* NUL */

    assert_int_equal(feed(&head, "HTTP/1.1 200 O\0\r\n", 17, 0, 0, &taken),
                     NGX_ERROR);
    assert_string_equal(head.error, "invalid character in response head");
}


/* a head with one header of that many bytes, the line's end not counted */

static ngx_str_t
long_head(const char *header, size_t len)
{
    u_char     *p;
    ngx_str_t   text;

    text = unit_alloc(sizeof("HTTP/1.1 200 OK\r\n") - 1 + len + 4);

    p = ngx_cpymem(text.data, "HTTP/1.1 200 OK\r\n", 17);

    memset(p, '1', len);
    memcpy(p, header, strlen(header));

    memcpy(p + len, "\r\n\r\n", 4);

    return text;
}


static void
assert_long(const char *header, size_t len, ngx_int_t rc, const char *error)
{
    size_t                  cut, taken;
    ngx_str_t               text;
    ngx_kexec_http_head_t   head;

    text = long_head(header, len);

    for (cut = 0; cut <= text.len; cut += 997) {
        assert_int_equal(feed(&head, (char *) text.data, text.len, cut, cut,
                              &taken),
                         rc);

        if (error) {
            assert_string_equal(head.error, error);

        } else {
            assert_int_equal(taken, text.len);
        }
    }

    free(text.data);
}


static void
test_long(void **state)
{
    (void) state;

    /* nobody reads it */

    assert_long("Set-Cookie: ", LINE, NGX_OK, NULL);
    assert_long("Set-Cookie: ", LINE + 1, NGX_OK, NULL);
    assert_long("Set-Cookie: ", HEAD - 21, NGX_OK, NULL);
    assert_long("Set-Cookie: ", HEAD - 20, NGX_ERROR,
                "response head is too large");

    /* somebody does */

    assert_long("Connection: ", LINE, NGX_OK, NULL);
    assert_long("Connection: ", LINE + 1, NGX_ERROR,
                "header line is too long");

    /* a name without an end */

    assert_long("", LINE, NGX_ERROR, "invalid header line");
    assert_long("", LINE + 1, NGX_ERROR, "invalid header line");
}


static void
test_interim_flood(void **state)
{
    ngx_uint_t              i;
    ngx_int_t               rc;
    u_char                 *pos;
    ngx_kexec_http_head_t   head;

    static u_char  interim[] = "HTTP/1.1 100 Continue\r\n\r\n";

    (void) state;

    memset(&head, 0, sizeof(head));
    rc = NGX_AGAIN;

    for (i = 0; i < HEAD / 25 + 1 && rc == NGX_AGAIN; i++) {
        pos = interim;
        rc = ngx_kexec_http_head(&head, &pos, interim + 25);
    }

    assert_int_equal(rc, NGX_ERROR);
    assert_string_equal(head.error, "response head is too large");
}


static const struct {
    const char  *input;
    ngx_int_t    rc;
    const char  *body;
} chunks[] = {
    { "0\r\n\r\n", NGX_DONE, "" },
    { "000\r\n\r\n", NGX_DONE, "" },
    { "3\r\nabc\r\n0\r\n\r\n", NGX_DONE, "abc" },
    { "3\nabc\n0\n\n", NGX_DONE, "abc" },
    { "1\r\na\r\n2\r\nbc\r\n0010\r\n0123456789abcdef\r\n0\r\n\r\n", NGX_DONE,
      "abc0123456789abcdef" },
    { "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", NGX_DONE,
      "01234567890123456789" },
    { "2;a=b;c=\"d\"\r\n\r\n\r\n0 ; x\r\n\r\n", NGX_DONE, "\r\n" },
    { "1 \t\r\nx\r\n0\r\nT: v\r\nU: \r\n\r\n", NGX_DONE, "x" },

    { "", NGX_AGAIN, "" },
    { "3\r\nab", NGX_AGAIN, "ab" },
    { "3\r\nabc\r\n0\r\n", NGX_AGAIN, "abc" },
    { "3\r\nabc\r\n0\r\nT: v\r\n", NGX_AGAIN, "abc" },

    { "\r\n", NGX_ERROR, "" },
    { "g\r\n", NGX_ERROR, "" },
    { "-1\r\n", NGX_ERROR, "" },
    { " 1\r\n", NGX_ERROR, "" },
    { "0x1\r\n", NGX_ERROR, "" },
    { "1 1\r\n", NGX_ERROR, "" },
    { "1\rx", NGX_ERROR, "" },
    { "3\r\nabcd", NGX_ERROR, "abc" },
    { "3\r\nabc\rx", NGX_ERROR, "abc" },
    { "3\r\nabc\r\n\r\n", NGX_ERROR, "abc" },
    { "0\r\n\rx", NGX_ERROR, "" },
    { "7fffffffffffffff0\r\n", NGX_ERROR, "" },
    { "fffffffffffffffff\r\n", NGX_ERROR, "" }
};


static ngx_int_t
decode(const char *bytes, size_t len, size_t cut1, size_t cut2, char *body,
    size_t *body_len, size_t *taken)
{
    size_t                     i, from, ends[3];
    u_char                    *pos, *last, *data, *data_last;
    ngx_int_t                  rc;
    ngx_str_t                  piece;
    ngx_kexec_http_chunked_t   ctx;

    ends[0] = cut1;
    ends[1] = cut2;
    ends[2] = len;

    memset(&ctx, 0, sizeof(ctx));

    rc = NGX_AGAIN;
    from = 0;
    *body_len = 0;

    for (i = 0; i < 3 && rc == NGX_AGAIN; i++) {
        piece = unit_copy(bytes + from, ends[i] - from);
        pos = piece.data;
        last = piece.data + piece.len;

        for ( ;; ) {
            rc = ngx_kexec_http_chunked(&ctx, &pos, last, &data, &data_last);

            if (rc != NGX_OK) {
                break;
            }

            assert_true(data < data_last && data_last == pos && pos <= last);

            memcpy(body + *body_len, data, data_last - data);
            *body_len += data_last - data;
        }

        if (rc == NGX_AGAIN) {
            assert_ptr_equal(pos, last);
        }

        from += pos - piece.data;

        free(piece.data);
    }

    *taken = from;

    return rc;
}


static void
test_chunked(void **state)
{
    char        body[64], bytes[128];
    size_t      i, len, rest, cut1, cut2, body_len, taken;
    ngx_int_t   rc;

    (void) state;

    for (i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {

        len = strlen(chunks[i].input);
        rest = (chunks[i].rc == NGX_DONE) ? 3 : 0;

        memcpy(bytes, chunks[i].input, len);
        memcpy(bytes + len, "xyz", rest);

        for (cut1 = 0; cut1 <= len; cut1++) {
            for (cut2 = cut1; cut2 <= len; cut2++) {

                rc = decode(bytes, len + rest, cut1, cut2, body, &body_len,
                            &taken);

                assert_int_equal(rc, chunks[i].rc);
                unit_assert_bytes(body, body_len, chunks[i].body,
                                  strlen(chunks[i].body));

                if (rc == NGX_DONE) {
                    assert_int_equal(taken, len);
                }
            }
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_interim_flood),
        cmocka_unit_test(test_chunked)
    };

    return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
