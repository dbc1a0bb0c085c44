
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "kexec_unit.h"
#include <ngx_kexec_websocket.h>


typedef struct {
    const char  *bytes;
    size_t       len;
    ngx_uint_t   opcode;
    ngx_uint_t   fin;
    uint64_t     length;
} header_case_t;


#define bytes(s)  s, sizeof(s) - 1


static header_case_t  good[] = {
    { bytes("\x81\x00"), 1, 1, 0 },
    { bytes("\x81\x05"), 1, 1, 5 },
    { bytes("\x82\x7d"), 2, 1, 125 },
    { bytes("\x82\x7e\x00\x7e"), 2, 1, 126 },
    { bytes("\x82\x7e\xff\xff"), 2, 1, 65535 },
    { bytes("\x02\x7f\x00\x00\x00\x00\x00\x01\x00\x00"), 2, 0, 65536 },
    { bytes("\x01\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), 1, 0,
      0x7fffffffffffffff },
    { bytes("\x88\x02"), 8, 1, 2 },
    { bytes("\x89\x7d"), 9, 1, 125 },
    { bytes("\x8a\x00"), 10, 1, 0 },

    /* longer than it has to be, which is read all the same */
    { bytes("\x82\x7e\x00\x01"), 2, 1, 1 },
    { bytes("\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x02"), 2, 1, 2 }
};


static const struct {
    const char  *bytes;
    size_t       len;
    const char  *error;
} bad[] = {
    { bytes("\x81\x80"), "the frame is masked" },
    { bytes("\x89\x85"), "the frame is masked" },
    { bytes("\xc1\x00"), "a reserved bit is set" },
    { bytes("\xa1\x00"), "a reserved bit is set" },
    { bytes("\x91\x00"), "a reserved bit is set" },
    { bytes("\x83\x00"), "the opcode is reserved" },
    { bytes("\x87\x00"), "the opcode is reserved" },
    { bytes("\x8b\x00"), "the opcode is reserved" },
    { bytes("\x8f\x00"), "the opcode is reserved" },
    { bytes("\x08\x00"), "a control frame is fragmented" },
    { bytes("\x09\x00"), "a control frame is fragmented" },
    { bytes("\x88\x7e"), "a control frame is too long" },
    { bytes("\x8a\x7f"), "a control frame is too long" },
    { bytes("\x80\x00"), "there is no message to continue" },
    { bytes("\x00\x00"), "there is no message to continue" },
    { bytes("\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00"),
      "the length has its highest bit set" }
};


/* all of it in pieces that end at the two cuts */

static ngx_int_t
feed(ngx_kexec_websocket_t *ws, const u_char *bytes, size_t len, size_t cut1,
    size_t cut2)
{
    size_t      i, ends[3];
    u_char     *pos;
    ngx_int_t   rc;

    ends[0] = cut1;
    ends[1] = cut2;
    ends[2] = len;

    pos = (u_char *) bytes;
    rc = NGX_AGAIN;

    for (i = 0; i < 3 && rc == NGX_AGAIN; i++) {
        rc = ngx_kexec_websocket_header(ws, &pos, (u_char *) bytes + ends[i]);

        if (rc == NGX_AGAIN) {
            assert_ptr_equal(pos, bytes + ends[i]);
        }
    }

    if (rc == NGX_OK) {
        assert_ptr_equal(pos, bytes + len);
    }

    return rc;
}


static void
test_header(void **state)
{
    size_t                  i, cut1, cut2;
    ngx_str_t               copy;
    ngx_kexec_websocket_t   ws;

    (void) state;

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        copy = unit_copy(good[i].bytes, good[i].len);

        for (cut1 = 0; cut1 <= copy.len; cut1++) {
            for (cut2 = cut1; cut2 <= copy.len; cut2++) {
                memset(&ws, 0, sizeof(ws));

                assert_int_equal(feed(&ws, copy.data, copy.len, cut1, cut2),
                                 NGX_OK);
                assert_int_equal(ws.opcode, good[i].opcode);
                assert_int_equal(ws.fin, good[i].fin);
                assert_true(ws.length == good[i].length);
            }
        }

        free(copy.data);
    }
}


static void
test_violation(void **state)
{
    size_t                  i, cut;
    ngx_kexec_websocket_t   ws;

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (cut = 0; cut <= bad[i].len; cut++) {
            memset(&ws, 0, sizeof(ws));

            assert_int_equal(feed(&ws, (const u_char *) bad[i].bytes,
                                  bad[i].len, cut, cut),
                             NGX_ERROR);
            assert_string_equal(ws.error, bad[i].error);
        }
    }
}


static void
test_nothing(void **state)
{
    u_char                 *pos, byte;
    ngx_kexec_websocket_t   ws;

    (void) state;

    memset(&ws, 0, sizeof(ws));
    byte = 0x81;
    pos = &byte;

    assert_int_equal(ngx_kexec_websocket_header(&ws, &pos, pos), NGX_AGAIN);
    assert_ptr_equal(pos, &byte);
}


/* one step: a header and what must be known behind it */

static void
step(ngx_kexec_websocket_t *ws, const char *bytes, ngx_int_t rc,
    ngx_uint_t message)
{
    u_char  *pos;

    pos = (u_char *) bytes;

    assert_int_equal(ngx_kexec_websocket_header(ws, &pos, pos + 2), rc);

    if (rc == NGX_OK) {
        assert_int_equal(ws->message, message);
    }
}


static void
test_fragments(void **state)
{
    ngx_kexec_websocket_t  ws;

    (void) state;

    memset(&ws, 0, sizeof(ws));

    step(&ws, "\x82\x00", NGX_OK, 2);

    step(&ws, "\x01\x01", NGX_OK, 1);
    step(&ws, "\x89\x01", NGX_OK, 1);
    step(&ws, "\x00\x01", NGX_OK, 1);
    step(&ws, "\x8a\x00", NGX_OK, 1);
    step(&ws, "\x8a\x00", NGX_OK, 1);

    /* the final frame still knows what it belongs to */
    step(&ws, "\x80\x01", NGX_OK, 1);

    step(&ws, "\x89\x00", NGX_OK, 0);
    step(&ws, "\x02\x01", NGX_OK, 2);
    step(&ws, "\x80\x00", NGX_OK, 2);
    step(&ws, "\x81\x00", NGX_OK, 1);

    step(&ws, "\x80\x00", NGX_ERROR, 0);
    assert_string_equal(ws.error, "there is no message to continue");

    memset(&ws, 0, sizeof(ws));

    step(&ws, "\x01\x01", NGX_OK, 1);
    step(&ws, "\x89\x00", NGX_OK, 1);
    step(&ws, "\x81\x00", NGX_ERROR, 0);
    assert_string_equal(ws.error, "a message begins inside another");

    memset(&ws, 0, sizeof(ws));

    step(&ws, "\x01\x01", NGX_OK, 1);
    step(&ws, "\x80\x01", NGX_OK, 1);
    step(&ws, "\x8a\x00", NGX_OK, 0);
    step(&ws, "\x80\x00", NGX_ERROR, 0);
}


static void
test_write_header(void **state)
{
    size_t      i, len;
    u_char      buf[NGX_KEXEC_WS_HEADER + 1], *end;
    const char  mask[] = "\x01\x02\x03\x04";

    static const struct {
        ngx_uint_t   opcode;
        uint64_t     length;
        const char  *bytes;
        size_t       len;
    } cases[] = {
        { 1, 0, bytes("\x81\x80") },
        { 2, 125, bytes("\x82\xfd") },
        { 1, 126, bytes("\x81\xfe\x00\x7e") },
        { 1, 65535, bytes("\x81\xfe\xff\xff") },
        { 1, 65536, bytes("\x81\xff\x00\x00\x00\x00\x00\x01\x00\x00") },
        { 1, 0x0102030405060708,
          bytes("\x81\xff\x01\x02\x03\x04\x05\x06\x07\x08") },
        { 10, 3, bytes("\x8a\x83") },
        { 8, 2, bytes("\x88\x82") }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(buf, 0xee, sizeof(buf));

        end = ngx_kexec_websocket_write_header(buf, cases[i].opcode,
                                               cases[i].length,
                                               (const u_char *) mask);

        len = end - buf;

        assert_true(len <= NGX_KEXEC_WS_HEADER);
        assert_int_equal(len, cases[i].len + 4);
        assert_memory_equal(buf, cases[i].bytes, cases[i].len);
        assert_memory_equal(buf + cases[i].len, mask, 4);
        assert_int_equal(buf[len], 0xee);
    }
}


static void
test_mask(void **state)
{
    size_t     i, len, cut;
    u_char     mask[4] = { 0x37, 0xfa, 0x21, 0x3d }, plain[67], whole[67];
    ngx_str_t  copy;

    (void) state;

    for (len = 0; len <= sizeof(plain); len++) {

        for (i = 0; i < len; i++) {
            plain[i] = (u_char) (i * 7 + len);
            whole[i] = plain[i] ^ mask[i % 4];
        }

        for (cut = 0; cut <= len; cut++) {
            copy = unit_copy(plain, len);

            ngx_kexec_websocket_mask(copy.data, cut, mask, 0);
            ngx_kexec_websocket_mask(copy.data + cut, len - cut, mask, cut);

            assert_memory_equal(copy.data, whole, len);

            free(copy.data);
        }
    }

    /* the "Hello" of section 5.7 */

    copy = unit_copy("Hello", 5);
    ngx_kexec_websocket_mask(copy.data, 5, mask, 0);
    assert_memory_equal(copy.data, "\x7f\x9f\x4d\x51\x58", 5);
    free(copy.data);
}


static void
test_close_code(void **state)
{
    (void) state;

    assert_int_equal(ngx_kexec_websocket_close_code(NULL, 0), 1005);
    assert_int_equal(ngx_kexec_websocket_close_code((u_char *) "\x03", 1),
                     1005);
    assert_int_equal(ngx_kexec_websocket_close_code((u_char *) "\x03\xe8", 2),
                     1000);
    assert_int_equal(ngx_kexec_websocket_close_code((u_char *) "\x03\xe9x", 3),
                     1001);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_violation),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_write_header),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_close_code)
    };

    return cmocka_run_group_tests_name("websocket", tests, NULL, NULL);
}
