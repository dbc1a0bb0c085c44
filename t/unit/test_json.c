
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "kexec_unit.h"


static ngx_int_t
check(const char *text, ngx_str_t *value)
{
    ngx_int_t         rc;
    static ngx_str_t  str;

    /* the value lives until the next call */

    free(str.data);
    str = unit_copy(text, strlen(text));

    rc = ngx_kexec_json_check(&str, value);

    if (rc != NGX_OK) {
        assert_int_equal(rc, NGX_DECLINED);
    }

    return rc;
}


static void
test_check(void **state)
{
    size_t     i;
    ngx_str_t  value;

    static const struct {
        const char  *text;
        const char  *value;
    } good[] = {
        { "{}", NULL },
        { " \t\r\n{}\n", "{}" },
        { "[]", NULL },
        { "[ ]", NULL },
        { "\"\"", NULL },
        { " \"a b\" ", "\"a b\"" },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD800\"", NULL },
        { "\"\x7f\xff\xe2\x82\"", NULL },
        { "\"\\u09af\\uAFaf\"", NULL },
        { "0", NULL },
        { "-0", NULL },
        { "-0.0e+00", NULL },
        { "12345678901234567890123456789012345678901234567890", NULL },
        { "1.5E-7", NULL },
        { "true", NULL },
        { "false", NULL },
        { "null", NULL },
        { "NaN", NULL },
        { "Infinity", NULL },
        { "-Infinity", NULL },
        { "[1,[2,{\"a\":[{}]}],\"]\",{}]", NULL },
        { "{\"a\" : {\"b\":1 , \"b\":2}, \"\":[]}", NULL }
    };

    static const char  *bad[] = {
        "", " ", "{", "}", "[", "]", "[}", "{]", "\"", "\"a", "\"\\\"",
        "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\", "\"\n\"", "\"\x1f\"",
        "[1,]", "[,1]", "[1 2]", "[1", "[1,", "{\"a\"}", "{\"a\":}", "{\"a\"",
        "{\"a\":1,}", "{,}", "{a:1}", "{1:1}", "{\"a\":1", "{\"a\":1 \"b\":2}",
        "01", "-", "+1", ".5", "1.", "1.e1", "1e", "1e+", "--1", "0x10",
        "tru", "truee", "nul", "nan", "Nan", "-NaN", "Infinit", "-infinity",
        "1 2", "{} x", "[] []", "'a'", "\xef\xbb\xbf{}", "\xff", "// x\n1",
        "[1]]", "{\"a\":1}}"
    };

    (void) state;

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(check(good[i].text, &value), NGX_OK);
        unit_assert_str(&value,
                        good[i].value ? good[i].value : good[i].text);
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (check(bad[i], &value) != NGX_DECLINED) {
            print_error("taken: %s\n", bad[i]);
            fail();
        }
    }

    /* a NUL is no end, and nothing behind the end is looked at */

    value = unit_copy("\"a\0b\"", 5);
    assert_int_equal(ngx_kexec_json_check(&value, &value), NGX_DECLINED);
    free(value.data);

    value = unit_copy("1e9", 2);
    assert_int_equal(ngx_kexec_json_check(&value, &value), NGX_DECLINED);
    free(value.data);

    ngx_str_null(&value);
    assert_int_equal(ngx_kexec_json_check(&value, &value), NGX_DECLINED);
}


/* every length around the steps of the scanner, every place in it */

static void
test_scan(void **state)
{
    size_t     len, at, i;
    ngx_str_t  text, value;

    static const struct {
        u_char      byte;
        ngx_int_t   rc;
    } cases[] = {
        { 'x', NGX_OK },
        { 0x7f, NGX_OK },
        { 0x80, NGX_OK },
        { 0xff, NGX_OK },
        { ' ', NGX_OK },
        { '!', NGX_OK },
        { '#', NGX_OK },
        { '[', NGX_OK },
        { ']', NGX_OK },
        { 0x1f, NGX_DECLINED },
        { 0x00, NGX_DECLINED },
        { '"', NGX_DECLINED }
    };

    (void) state;

    for (len = 1; len < 70; len++) {
        text = unit_alloc(len + 2);

        for (at = 1; at <= len; at++) {
            for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                memset(text.data, 'x', text.len);
                text.data[0] = '"';
                text.data[len + 1] = '"';
                text.data[at] = cases[i].byte;

                assert_int_equal(ngx_kexec_json_check(&text, &value),
                                 cases[i].rc);
            }

            if (at < len) {
                memset(text.data + 1, 'x', len);
                text.data[at] = '\\';
                text.data[at + 1] = '"';

                assert_int_equal(ngx_kexec_json_check(&text, &value), NGX_OK);

                text.data[at + 1] = 'x';

                assert_int_equal(ngx_kexec_json_check(&text, &value),
                                 NGX_DECLINED);
            }
        }

        free(text.data);
    }
}


static void
test_depth(void **state)
{
    size_t     depth, half;
    u_char    *p;
    ngx_str_t  text, value;

    (void) state;

    for (depth = NGX_KEXEC_JSON_DEPTH; depth < NGX_KEXEC_JSON_DEPTH + 2;
         depth++)
    {
        text = unit_alloc(depth * 2);
        memset(text.data, '[', depth);
        memset(text.data + depth, ']', depth);

        assert_int_equal(ngx_kexec_json_check(&text, &value),
                         depth > NGX_KEXEC_JSON_DEPTH ? NGX_DECLINED
                                                      : NGX_OK);

        /* a wrong bracket is seen on every level */

        if (depth == NGX_KEXEC_JSON_DEPTH) {
            for (half = 0; half < depth; half++) {
                text.data[depth + half] = '}';
                assert_int_equal(ngx_kexec_json_check(&text, &value),
                                 NGX_DECLINED);
                text.data[depth + half] = ']';
            }
        }

        free(text.data);
    }

    /* objects and arrays by turns */

    text = unit_alloc(NGX_KEXEC_JSON_DEPTH / 2 * sizeof("[{\"\":}]"));
    p = text.data;

    for (depth = 0; depth < NGX_KEXEC_JSON_DEPTH / 2; depth++) {
        p = ngx_cpymem(p, "[{\"\":", 5);
    }

    *p++ = '1';

    for (depth = 0; depth < NGX_KEXEC_JSON_DEPTH / 2; depth++) {
        p = ngx_cpymem(p, "}]", 2);
    }

    text.len = p - text.data;

    assert_int_equal(ngx_kexec_json_check(&text, &value), NGX_OK);

    free(text.data);
}


static void
test_type(void **state)
{
    size_t     i;
    ngx_str_t  value;

    static const struct {
        const char             *text;
        ngx_kexec_json_type_e   type;
    } cases[] = {
        { "", NGX_KEXEC_JSON_NONE },
        { "x", NGX_KEXEC_JSON_NONE },
        { "null", NGX_KEXEC_JSON_NULL },
        { "true", NGX_KEXEC_JSON_TRUE },
        { "false", NGX_KEXEC_JSON_FALSE },
        { "7", NGX_KEXEC_JSON_NUMBER },
        { "-1", NGX_KEXEC_JSON_NUMBER },
        { "NaN", NGX_KEXEC_JSON_NUMBER },
        { "Infinity", NGX_KEXEC_JSON_NUMBER },
        { "-Infinity", NGX_KEXEC_JSON_NUMBER },
        { "\"\"", NGX_KEXEC_JSON_STRING },
        { "[]", NGX_KEXEC_JSON_ARRAY },
        { "{}", NGX_KEXEC_JSON_OBJECT }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        value = unit_str(cases[i].text);
        assert_int_equal(ngx_kexec_json_type(&value), cases[i].type);
    }
}


static void
test_iterate(void **state)
{
    ngx_str_t               text, key, value;
    ngx_kexec_json_iter_t   iter;

    (void) state;

    text = unit_str(" { \"a\" : 1 , \"b\\n\":[2,{}],\"\":\"x\" } ");

    assert_int_equal(ngx_kexec_json_open(&iter, &text), NGX_OK);

    assert_int_equal(ngx_kexec_json_next(&iter, &key, &value), NGX_OK);
    unit_assert_str(&key, "a");
    unit_assert_str(&value, "1");

    assert_int_equal(ngx_kexec_json_next(&iter, &key, &value), NGX_OK);
    unit_assert_str(&key, "b\\n");
    unit_assert_str(&value, "[2,{}]");

    assert_int_equal(ngx_kexec_json_next(&iter, &key, &value), NGX_OK);
    unit_assert_str(&key, "");
    unit_assert_str(&value, "\"x\"");

    assert_int_equal(ngx_kexec_json_next(&iter, &key, &value), NGX_DONE);
    assert_int_equal(ngx_kexec_json_next(&iter, &key, &value), NGX_DONE);

    text = unit_str("[null, [\"]\"]]");

    assert_int_equal(ngx_kexec_json_open(&iter, &text), NGX_OK);
    assert_int_equal(ngx_kexec_json_next(&iter, &key, NULL), NGX_OK);
    assert_int_equal(key.len, 0);
    assert_int_equal(ngx_kexec_json_next(&iter, NULL, &value), NGX_OK);
    unit_assert_str(&value, "[\"]\"]");
    assert_int_equal(ngx_kexec_json_next(&iter, NULL, NULL), NGX_DONE);

    text = unit_str("\"{}\"");
    assert_int_equal(ngx_kexec_json_open(&iter, &text), NGX_DECLINED);

    ngx_str_null(&text);
    assert_int_equal(ngx_kexec_json_open(&iter, &text), NGX_DECLINED);
}


/* text that was not checked before is checked by the way */

static void
test_iterate_unchecked(void **state)
{
    size_t                  i;
    ngx_int_t               rc;
    ngx_str_t               text;
    ngx_kexec_json_iter_t   iter;

    static const char  *bad[] = {
        "{", "[", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}",
        "{a:1}", "{\"a\" 1}", "{\"a\":[}", "{\"a\":{]}", "[1,]", "[1 2]",
        "[1}", "{\"a\":1]", "{} x", "[1]]", "[x]", "{\"a\":1}{"
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        text = unit_copy(bad[i], strlen(bad[i]));

        assert_int_equal(ngx_kexec_json_open(&iter, &text), NGX_OK);

        do {
            rc = ngx_kexec_json_next(&iter, NULL, NULL);
        } while (rc == NGX_OK);

        assert_int_equal(rc, NGX_DECLINED);

        free(text.data);
    }
}


static void
test_member(void **state)
{
    ngx_str_t  text, value;

    (void) state;

    text = unit_str("{\"a\":1,\"b\":2,\"a\":3,\"d\\u0061ta\":4,\"A\":5}");

    assert_int_equal(ngx_kexec_json_member(&text, "b", &value), NGX_OK);
    unit_assert_str(&value, "2");

    assert_int_equal(ngx_kexec_json_member(&text, "a", &value), NGX_OK);
    unit_assert_str(&value, "3");

    assert_int_equal(ngx_kexec_json_member(&text, "data", &value), NGX_OK);
    unit_assert_str(&value, "4");

    assert_int_equal(ngx_kexec_json_member(&text, "c", &value), NGX_DECLINED);
    unit_assert_str(&value, "4");

    text = unit_str("{\"a\":1,]");
    assert_int_equal(ngx_kexec_json_member(&text, "a", &value), NGX_DECLINED);

    text = unit_str("[\"a\"]");
    assert_int_equal(ngx_kexec_json_member(&text, "a", &value), NGX_DECLINED);

    ngx_str_null(&text);
    assert_int_equal(ngx_kexec_json_member(&text, "a", &value), NGX_DECLINED);
}


static void
test_equal(void **state)
{
    size_t     i;
    ngx_str_t  inside;

    static const struct {
        const char  *inside;
        const char  *name;
        ngx_uint_t   equal;
    } cases[] = {
        { "", "", 1 },
        { "", "a", 0 },
        { "a", "", 0 },
        { "text/plain", "text/plain", 1 },
        { "text\\/plain", "text/plain", 1 },
        { "text\\u002fplain", "text/plain", 1 },
        { "\\u0074ext\\u002Fplain", "text/plain", 1 },
        { "text/plai", "text/plain", 0 },
        { "text/plain ", "text/plain", 0 },
        { "text/plaim", "text/plain", 0 },
        { "text\\u012fplain", "text/plain", 0 },
        { "text\\nplain", "text/plain", 0 },
        { "te\\u0000xt", "text", 0 },
        { "text\\u0000", "text", 0 },
        { "\\u0061", "a", 1 },
        { "\\u007f\\u007F", "\x7f\x7f", 1 },
        { "\\u006", "a", 0 },
        { "\\u0061", "ab", 0 },
        { "\\u0061\\", "aa", 0 },
        { "aaaaa\\", "aaaaa", 0 },
        { "text\\\\", "text", 0 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        inside = unit_copy(cases[i].inside, strlen(cases[i].inside));
        assert_int_equal(ngx_kexec_json_equal(&inside, cases[i].name),
                         cases[i].equal);
        free(inside.data);
    }
}


typedef ngx_int_t (*writer_pt)(ngx_kexec_out_t *out, ngx_str_t *text);


/* the same through windows of every size, and an error where one is missing */

static void
assert_writes(writer_pt writer, const void *data, size_t len,
    const char *expect)
{
    size_t       size;
    ngx_int_t    i, n;
    ngx_str_t    text;
    unit_sink_t  sink;

    text = unit_copy(data, len);

    for (size = NGX_KEXEC_OUT_ROOM; size < NGX_KEXEC_OUT_ROOM + 20; size++) {

        assert_int_equal(writer(unit_sink_open(&sink, size), &text), NGX_OK);

        unit_sink_take(&sink);
        unit_assert_bytes(sink.data, sink.len, expect, strlen(expect));
        unit_sink_close(&sink);
    }

    n = (strlen(expect) + NGX_KEXEC_OUT_ROOM - 1) / NGX_KEXEC_OUT_ROOM;

    for (i = 0; i < n; i++) {
        unit_sink_open(&sink, NGX_KEXEC_OUT_ROOM);
        sink.windows = i;

        assert_int_equal(writer(&sink.out, &text), NGX_ERROR);

        unit_sink_take(&sink);
        unit_assert_bytes(sink.data, sink.len, expect,
                          i * NGX_KEXEC_OUT_ROOM);
        unit_sink_close(&sink);
    }

    free(text.data);
}


#define assert_value(text, expect)                                           \
    assert_writes(ngx_kexec_json_write_value, text, sizeof(text) - 1, expect)
#define assert_inside(text, expect)                                          \
    assert_writes(ngx_kexec_json_write_inside, text, sizeof(text) - 1, expect)
#define assert_text(text, expect)                                            \
    assert_writes(ngx_kexec_json_write_text, text, sizeof(text) - 1, expect)


static void
test_write_value(void **state)
{
    (void) state;

    assert_value("{\"a\":1,\"b\":[1,2,{}],\"c\":{\"d\":null}}",
                 "{\"a\": 1, \"b\": [1, 2, {}], \"c\": {\"d\": null}}");
    assert_value("{\n  \"a\" : [ 1 ,\t2 ] ,\r\n \"b\" : { } \n}",
                 "{\"a\": [1, 2], \"b\": {}}");
    assert_value("[NaN,Infinity,-Infinity,true,false,null]",
                 "[null, null, null, true, false, null]");
    assert_value("-Infinity", "null");
    assert_value("[-1.50e+07,123456789012345678901234567890,-0,1E400]",
                 "[-1.50e+07, 123456789012345678901234567890, -0, 1E400]");
    assert_value("{\" a : , \":\"{[ NaN ]}\"}", "{\" a : , \": \"{[ NaN ]}\"}");
    assert_value("[\"\\\"\\\\\\/\\u00E9\\ud800\"]",
                 "[\"\\\"\\\\\\/\\u00E9\\ud800\"]");
    assert_value("\"h\xc3\xa9llo \xe2\x98\x83 \xf0\x9f\x8e\x89 \x7f\"",
                 "\"h\\u00e9llo \\u2603 \\ud83c\\udf89 \\u007f\"");
    assert_value("{\"\xc3\xa9\":\"\xc3\xa9\"}",
                 "{\"\\u00e9\": \"\\u00e9\"}");
    assert_value("1234567890123456789012345678901234567890123456789012345678"
                 "90123456789012345678901234567890",
                 "1234567890123456789012345678901234567890123456789012345678"
                 "90123456789012345678901234567890");
}


static void
test_write_inside(void **state)
{
    (void) state;

    assert_inside("", "");
    assert_inside("plain \\\" \\n \\u0000 \\ud800", "plain \\\" \\n \\u0000 "
                                                     "\\ud800");
    assert_inside("\xe2\x80\xa8", "\\u2028");
    assert_inside("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
                  "\\ud800\\udc00\\udbff\\udfff");
    assert_inside("\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
                  "\\u07ff\\u0800\\ud7ff\\ue000\\uffff");

    assert_inside("\xc2\x80\xc3\xa9\x7f\x7f" "a",
                  "\\u0080\\u00e9\\u007f\\u007fa");
    assert_inside("\xf1\x80\x80\x80", "\\ud8c0\\udc00");

    /* not UTF-8 */

    assert_inside("\xc1\x80", "\\ufffd\\ufffd");
    assert_inside("a\xff" "b", "a\\ufffdb");
    assert_inside("\x80\xbf", "\\ufffd\\ufffd");
    assert_inside("\xc0\xaf\xc1\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd");
    assert_inside("\xe2\x98", "\\ufffd");
    assert_inside("\xe2\x98" "A", "\\ufffdA");
    assert_inside("\xe2\xe2\x98\x83", "\\ufffd\\u2603");
    assert_inside("\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd");
    assert_inside("\xe0\x80\x80", "\\ufffd\\ufffd\\ufffd");
    assert_inside("\xf0\x9f\x8e", "\\ufffd");
    assert_inside("\xf0\x8f\xbf\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd");
    assert_inside("\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd");
    assert_inside("\xf5\x80", "\\ufffd\\ufffd");
}


static void
test_write_text(void **state)
{
    (void) state;

    assert_text("", "");
    assert_text("a\"b\\c/d'e", "a\\\"b\\\\c/d'e");
    assert_text("\b\f\n\r\t\0\x01\x1f\x7f",
                "\\b\\f\\n\\r\\t\\u0000\\u0001\\u001f\\u007f");
    assert_text("\xe6\xbc\xa2\xe5\xad\x97\xf0\x9f\x8e\x89\n\xff\"",
                "\\u6f22\\u5b57\\ud83c\\udf89\\n\\ufffd\\\"");
}


static void
test_text_size(void **state)
{
    size_t       len, i;
    u_char       buf[80];
    ngx_str_t    text;
    unit_sink_t  sink;

    (void) state;

    srandom(1);

    for (i = 0; i < 2000; i++) {
        text.data = buf;
        text.len = random() % sizeof(buf);

        for (len = 0; len < text.len; len++) {
            buf[len] = (random() % 4) ? 'a' + random() % 26 : random() % 256;
        }

        assert_int_equal(
            ngx_kexec_json_write_text(unit_sink_open(&sink, 64), &text),
            NGX_OK);

        unit_sink_take(&sink);
        assert_int_equal(ngx_kexec_json_text_size(&text), sink.len);
        unit_sink_close(&sink);
    }

    ngx_str_null(&text);
    assert_int_equal(ngx_kexec_json_text_size(&text), 0);
}


/* a window that has just the room is never called too small */

static void
test_exact_window(void **state)
{
    u_char            buf[64];
    ngx_str_t         text;
    ngx_kexec_out_t   out;

    (void) state;

    text = unit_str("a\xf0\x9f\x8e\x89\n");

    out.pos = buf;
    out.end = buf + ngx_kexec_json_text_size(&text);
    out.more = NULL;
    out.data = NULL;

    assert_int_equal(ngx_kexec_json_write_text(&out, &text), NGX_OK);
    assert_ptr_equal(out.pos, out.end);
    assert_int_equal(ngx_kexec_out_write(&out, "", 0), NGX_OK);
    unit_assert_bytes(buf, out.pos - buf, "a\\ud83c\\udf89\\n", 15);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_type),
        cmocka_unit_test(test_iterate),
        cmocka_unit_test(test_iterate_unchecked),
        cmocka_unit_test(test_member),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_write_value),
        cmocka_unit_test(test_write_inside),
        cmocka_unit_test(test_write_text),
        cmocka_unit_test(test_text_size),
        cmocka_unit_test(test_exact_window)
    };

    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
