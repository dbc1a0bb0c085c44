
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "kexec_unit.h"
#include <ngx_kexec_message.h>
#include <ngx_kexec_events.h>


typedef struct {
    const char  *type;
    const char  *content;
    const char  *event;                 /* NULL: declined */
} event_case_t;


#define TIMESTAMP  ", \"timestamp\": \"2026-11-29T14:32:25.589513+00:00\"}\n"
#define EMPTY_LINE  "\\nThe code asks for input, and there is nobody to ask: "  \
                    "it got an empty line\\n\""
#define LONG       "AnErrorWithALongNameThatFillsMoreThanOneWindowByItself"
#define MAIN       ", \"extra\": {}, \"is_main_result\": true}\n"


static event_case_t  cases[] = {

    /* streams */

    { "stream", "{\"name\": \"stdout\", \"text\": \"hello\\n\"}",
      "{\"type\": \"stdout\", \"text\": \"hello\\n\"" TIMESTAMP },
    { "stream", "{\"text\": \"\\u001b[31mred\", \"name\": \"stderr\"}",
      "{\"type\": \"stderr\", \"text\": \"\\u001b[31mred\"" TIMESTAMP },
    { "stream", "{\"name\": \"stdout\", \"text\": \"\"}",
      "{\"type\": \"stdout\", \"text\": \"\"" TIMESTAMP },
    { "stream", "{\"name\": \"stdout\", \"text\": \"h\xc3\xa9llo \xe2\x98\x83 "
                "\xe6\xbc\xa2\xe5\xad\x97 \xf0\x9f\x8e\x89 \xe2\x80\xa8 "
                "\\u0000 \x7f\\n\"}",
      "{\"type\": \"stdout\", \"text\": \"h\\u00e9llo \\u2603 \\u6f22\\u5b57 "
      "\\ud83c\\udf89 \\u2028 \\u0000 \\u007f\\n\"" TIMESTAMP },
    { "stream", "{\"name\": \"stdout\", \"text\": \"\\ud800\\udfff\\ud800\"}",
      "{\"type\": \"stdout\", \"text\": \"\\ud800\\udfff\\ud800\"" TIMESTAMP },
    { "stream", "{\"name\": \"stdout\", \"text\": 1, \"text\": \"2\"}",
      "{\"type\": \"stdout\", \"text\": \"2\"" TIMESTAMP },
    { "stream", "{\"name\":\"stdout\",\"text\":\"'quoted'\"}",
      "{\"type\": \"stdout\", \"text\": \"'quoted'\"" TIMESTAMP },

    { "stream", "{\"name\": \"stdlog\", \"text\": \"a\"}", NULL },
    { "stream", "{\"name\": 1, \"text\": \"a\"}", NULL },
    { "stream", "{\"text\": \"a\"}", NULL },
    { "stream", "{\"name\": \"stdout\"}", NULL },
    { "stream", "{\"name\": \"stdout\", \"text\": null}", NULL },
    { "stream", "{\"name\": \"stdout\", \"text\": [\"a\"]}", NULL },
    { "stream", "{}", NULL },

    /* execution counts */

    { "execute_input", "{\"code\": \"x\", \"execution_count\": 2}",
      "{\"type\": \"number_of_executions\", \"execution_count\": 2}\n" },
    { "execute_input", "{\"execution_count\": 99999999999999999999999}",
      "{\"type\": \"number_of_executions\", "
      "\"execution_count\": 99999999999999999999999}\n" },
    { "execute_input", "{\"execution_count\": 10}",
      "{\"type\": \"number_of_executions\", \"execution_count\": 10}\n" },
    { "execute_input", "{\"code\": \"x\"}", NULL },
    { "execute_input", "{\"execution_count\": null}", NULL },
    { "execute_input", "{\"execution_count\": \"2\"}", NULL },
    { "execute_input", "{\"execution_count\": NaN}", NULL },
    { "execute_input", "{\"execution_count\": -Infinity}", NULL },

    /* results */

    { "execute_result", "{\"data\": {\"text/plain\": \"1\"}, \"metadata\": {}, "
                        "\"execution_count\": 3}",
      "{\"type\": \"result\", \"text\": \"1\"" MAIN },
    { "display_data", "{\"data\": {}}",
      "{\"type\": \"result\", \"extra\": {}, \"is_main_result\": false}\n" },
    { "display_data",
      "{\"data\": {\"text/x-other\": \"o\", \"e2b/chart\": {\"type\":\"x\"}, "
      "\"e2b/data\": {\"d\":[1]}, \"application/javascript\": \"js\", "
      "\"application/json\": {\"j\": 1}, \"text/latex\": \"l\", "
      "\"application/pdf\": \"cA==\", \"image/jpeg\": \"ag==\", "
      "\"image/png\": \"cA==\", \"image/svg+xml\": \"s\", "
      "\"text/markdown\": \"m\", \"text/html\": \"h\", "
      "\"text/plain\": \"t\", "
      "\"application/vnd.custom+json\": {\"k\": [1,\"v\"]}}}",
      "{\"type\": \"result\", \"text\": \"t\", \"html\": \"h\", "
      "\"markdown\": \"m\", \"svg\": \"s\", \"png\": \"cA==\", "
      "\"jpeg\": \"ag==\", \"pdf\": \"cA==\", \"latex\": \"l\", "
      "\"json\": {\"j\": 1}, \"javascript\": \"js\", "
      "\"data\": {\"d\": [1]}, \"chart\": {\"type\": \"x\"}, "
      "\"extra\": {\"text/x-other\": \"o\", "
      "\"application/vnd.custom+json\": {\"k\": [1, \"v\"]}}, "
      "\"is_main_result\": false}\n" },
    { "display_data", "{\"data\": {\"text/plain\": null, "
                      "\"text/html\": \"h\", \"a/b\": null}}",
      "{\"type\": \"result\", \"html\": \"h\", \"extra\": {\"a/b\": null}, "
      "\"is_main_result\": false}\n" },
    { "execute_result", "{\"data\": {\"application/json\": [1,NaN,\"a\"], "
                        "\"image/png\": 7, \"text/plain\": [\"'\"]}}",
      "{\"type\": \"result\", \"text\": [\"'\"], \"png\": 7, "
      "\"json\": [1, null, \"a\"]" MAIN },
    { "execute_result", "{\"data\": {\"text\\/plain\": \"a\", "
                        "\"\\u0074ext/html\": \"b\"}}",
      "{\"type\": \"result\", \"text\": \"a\", \"html\": \"b\"" MAIN },
    { "execute_result", "{\"data\": {\"text/plain\": \"a\", "
                        "\"text/plain\": \"b\", \"text/html\": \"h\", "
                        "\"text/html\": null}}",
      "{\"type\": \"result\", \"text\": \"b\"" MAIN },
    { "execute_result", "{\"data\": {\"\": \"\", \"\xc3\xa9\": 1}}",
      "{\"type\": \"result\", \"extra\": {\"\": \"\", \"\\u00e9\": 1}, "
      "\"is_main_result\": true}\n" },

    { "execute_result", "{}", NULL },
    { "execute_result", "{\"data\": null}", NULL },
    { "execute_result", "{\"data\": [\"text/plain\"]}", NULL },
    { "display_data", "{\"data\": \"x\"}", NULL },

    /* errors */

    { "error", "{\"ename\": \"ZeroDivisionError\", "
               "\"evalue\": \"division by zero\", "
               "\"traceback\": [\"\\u001b[0;31m---\", \"a\\n\", \"\xc3\xa9\"]}",
      "{\"type\": \"error\", \"name\": \"ZeroDivisionError\", "
      "\"value\": \"division by zero\", "
      "\"traceback\": \"\\u001b[0;31m---a\\n\\u00e9\"}\n" },
    { "execute_reply", "{\"status\": \"error\", \"ename\": \"E\", "
                       "\"evalue\": \"v\", \"traceback\": []}",
      "{\"type\": \"error\", \"name\": \"E\", \"value\": \"v\", "
      "\"traceback\": \"\"}\n" },
    { "error", "{}",
      "{\"type\": \"error\", \"name\": \"\", \"value\": \"\", "
      "\"traceback\": \"\"}\n" },
    { "error", "{\"ename\": null, \"evalue\": null, \"traceback\": null}",
      "{\"type\": \"error\", \"name\": \"\", \"value\": \"\", "
      "\"traceback\": \"\"}\n" },
    { "error", "{\"ename\": 1, \"evalue\": {\"a\":\"b\"}, "
               "\"traceback\": [null, 2, \"x\", [\"y\"]]}",
      "{\"type\": \"error\", \"name\": \"1\", "
      "\"value\": \"{\\\"a\\\":\\\"b\\\"}\", "
      "\"traceback\": \"2x[\\\"y\\\"]\"}\n" },
    { "error", "{\"traceback\": \"one text\"}",
      "{\"type\": \"error\", \"name\": \"\", \"value\": \"\", "
      "\"traceback\": \"one text\"}\n" },

    { "execute_reply", "{\"status\": \"ok\"}", NULL },
    { "execute_reply", "{\"status\": \"aborted\"}", NULL },
    { "execute_reply", "{\"ename\": \"E\"}", NULL },

    /* no events */

    { "status", "{\"execution_state\": \"idle\"}", NULL },
    { "update_display_data", "{\"data\": {\"text/plain\": \"a\"}}", NULL },
    { "clear_output", "{\"wait\": false}", NULL },
    { "kernel_info_reply", "{\"status\": \"error\"}", NULL },

    /* questions */

    { "input_request", "{\"prompt\": \"x\\n\xc3\xa9? \", \"password\": false}",
      "{\"type\": \"stderr\", \"text\": \"x\\n\\u00e9? " EMPTY_LINE TIMESTAMP },
    { "input_request", "{\"prompt\": null}",
      "{\"type\": \"stderr\", \"text\": \"" EMPTY_LINE TIMESTAMP },
    { "input_request", "{}",
      "{\"type\": \"stderr\", \"text\": \"" EMPTY_LINE TIMESTAMP }
};


/* repr() of a string without its quotes: the inside of text/plain */

static const struct {
    const char  *inside;
    const char  *text;
} quotes[] = {
    { "", "" },
    { "'", "" },
    { "\\\"", "" },
    { "\\u0027", "" },
    { "\\u0022", "" },
    { "''", "" },
    { "\\\"\\\"", "" },
    { "'\\\"", "'\\\"" },
    { "\\\"'", "\\\"'" },
    { "'abc'", "abc" },
    { "\\\"abc\\\"", "abc" },
    { "\\\"it's\\\"", "it's" },
    { "'a\\\\nb'", "a\\\\nb" },
    { "'a\\nb'", "a\\nb" },
    { "\\u0027abc'", "abc" },
    { "'abc\\u0027", "abc" },
    { "\\u0022abc\\\"", "abc" },
    { "\\\"abc\\u0022", "abc" },
    { "'abc\\\\u0027", "'abc\\\\u0027" },
    { "'abc\\\\\\u0027", "abc\\\\" },
    { "'\\\\'", "\\\\" },
    { "\\\"\\\\\\\"", "\\\\" },
    { "\\\\'", "\\\\'" },
    { "abc'", "abc'" },
    { "'abc", "'abc" },
    { "'abc' ", "'abc' " },
    { "b'abc'", "b'abc'" },
    { "\\u0028abc\\u0029", "\\u0028abc\\u0029" },
    { "'\\u00e9'", "\\u00e9" },
    { "'\xc3\xa9'", "\\u00e9" },
    { "'\\u0030027", "'\\u0030027" },
    { "'u0027", "'u0027" }
};


static ngx_int_t
event_of(unit_sink_t *sink, size_t window, const char *text)
{
    ngx_int_t             rc;
    ngx_str_t             copy;
    ngx_kexec_message_t   msg;

    copy = unit_copy(text, strlen(text));

    assert_int_equal(ngx_kexec_message_parse(&copy, NGX_KEXEC_FORMAT_TEXT,
                                             &msg),
                     NGX_OK);

    rc = ngx_kexec_event_message(unit_sink_open(sink, window), &msg);

    unit_sink_take(sink);
    free(copy.data);

    return rc;
}


static void
assert_event(const char *text, const char *expect)
{
    size_t       i;
    ngx_int_t    rc;
    unit_sink_t  sink;

    static const size_t  windows[] = { 64, 65, 79, 128, 65536 };

    for (i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        rc = event_of(&sink, windows[i], text);

        if (expect == NULL) {
            assert_int_equal(rc, NGX_DECLINED);
            assert_int_equal(sink.len, 0);

        } else {
            assert_int_equal(rc, NGX_OK);
            unit_assert_bytes(sink.data, sink.len, expect, strlen(expect));
        }

        unit_sink_close(&sink);
    }
}


static void
test_message(void **state)
{
    size_t  i;
    char    text[4096];

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text),
                 "{\"header\": {\"msg_type\": \"%s\", "
                 "\"date\": \"2026-11-29T14:32:25.589513Z\"}, "
                 "\"parent_header\": {}, \"content\": %s}",
                 cases[i].type, cases[i].content);

        assert_event(text, cases[i].event);
    }
}


/* an error that the reply does not confirm: its text on stderr, or declined */

static void
test_unconfirmed(void **state)
{
    size_t               i, n;
    char                 text[1024], expect[1024];
    ngx_int_t            rc;
    ngx_str_t            copy;
    unit_sink_t          sink;
    ngx_kexec_message_t  msg;

    static const size_t  windows[] = { 64, 65, 79, 128, 65536 };

    static const struct {
        const char  *type;
        const char  *content;
        const char  *text;
    } errors[] = {
        { "error", "{\"ename\": \"E\", \"evalue\": \"v\", "
                   "\"traceback\": [\"---\", \"E: \xc3\xa9\"]}",
          "---\\nE: \\u00e9\\n" },
        { "error", "{\"ename\": \"" LONG "\", \"evalue\": \"v\", "
                   "\"traceback\": []}",
          LONG ": v\\n" },
        { "error", "{\"ename\": \"E\", \"evalue\": 1}", "E: 1\\n" },
        { "error", "{\"traceback\": \"one text\"}", "one text\\n" },
        { "error", "{\"traceback\": [1, [\"a\"]]}",
          "1\\n[\\\"a\\\"]\\n" },
        { "error", "{}", ": \\n" },
        { "execute_reply", "{\"status\": \"ok\"}", NULL },
        { "stream", "{\"name\": \"stdout\", \"text\": \"a\"}", NULL }
    };

    (void) state;

    for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        snprintf(text, sizeof(text),
                 "{\"header\": {\"msg_type\": \"%s\", "
                 "\"date\": \"2026-11-29T14:32:25.589513Z\"}, "
                 "\"content\": %s}",
                 errors[i].type, errors[i].content);

        copy = unit_copy(text, strlen(text));

        assert_int_equal(ngx_kexec_message_parse(&copy, NGX_KEXEC_FORMAT_TEXT,
                                                 &msg),
                         NGX_OK);

        for (n = 0; n < sizeof(windows) / sizeof(windows[0]); n++) {
            rc = ngx_kexec_event_unconfirmed(unit_sink_open(&sink, windows[n]),
                                             &msg);
            unit_sink_take(&sink);

            if (errors[i].text == NULL) {
                assert_int_equal(rc, NGX_DECLINED);
                assert_int_equal(sink.len, 0);

            } else {
                snprintf(expect, sizeof(expect),
                         "{\"type\": \"stderr\", \"text\": \"%s\"" TIMESTAMP,
                         errors[i].text);

                assert_int_equal(rc, NGX_OK);
                unit_assert_bytes(sink.data, sink.len, expect, strlen(expect));
            }

            unit_sink_close(&sink);
        }

        free(copy.data);
    }
}


static void
test_quotes(void **state)
{
    size_t  i;
    char    text[1024], expect[1024];

    (void) state;

    for (i = 0; i < sizeof(quotes) / sizeof(quotes[0]); i++) {
        snprintf(text, sizeof(text),
                 "{\"header\": {\"msg_type\": \"execute_result\"}, "
                 "\"content\": {\"data\": {\"text/plain\": \"%s\"}}}",
                 quotes[i].inside);
        snprintf(expect, sizeof(expect),
                 "{\"type\": \"result\", \"text\": \"%s\"" MAIN,
                 quotes[i].text);

        assert_event(text, expect);

        /* no other member loses its quotes */

        snprintf(text, sizeof(text),
                 "{\"header\": {\"msg_type\": \"execute_result\"}, "
                 "\"content\": {\"data\": {\"text/html\": \"'h'\", "
                 "\"text/plain\": \"%s\"}}}",
                 quotes[i].inside);
        snprintf(expect, sizeof(expect),
                 "{\"type\": \"result\", \"text\": \"%s\", "
                 "\"html\": \"'h'\"" MAIN,
                 quotes[i].text);

        assert_event(text, expect);
    }
}


static void
test_timestamp(void **state)
{
    size_t  i;
    char    text[1024], expect[1024];

    static const struct {
        const char  *header;
        const char  *timestamp;
    } dates[] = {
        { ", \"date\": \"2026-11-29T14:32:25.589513Z\"",
          "2026-11-29T14:32:25.589513+00:00" },
        { ", \"date\": \"2026-11-29T14:32:25+00:00\"",
          "2026-11-29T14:32:25+00:00" },
        { ", \"date\": \"2026-11-29T14:32:25\"", "2026-11-29T14:32:25" },
        { ", \"date\": \"Z\"", "+00:00" },
        { ", \"date\": \"\"", "" },
        { ", \"date\": null", "" },
        { ", \"date\": 7", "" },
        { "", "" }
    };

    (void) state;

    for (i = 0; i < sizeof(dates) / sizeof(dates[0]); i++) {
        snprintf(text, sizeof(text),
                 "{\"header\": {\"msg_type\": \"stream\"%s}, "
                 "\"content\": {\"name\": \"stdout\", \"text\": \"a\"}}",
                 dates[i].header);
        snprintf(expect, sizeof(expect),
                 "{\"type\": \"stdout\", \"text\": \"a\", "
                 "\"timestamp\": \"%s\"}\n",
                 dates[i].timestamp);

        assert_event(text, expect);
    }
}


/* an output that refuses is told at once, wherever it does */

static void
assert_refused(const char *text)
{
    size_t                size;
    ngx_int_t             n, i;
    ngx_str_t             str;
    unit_sink_t           sink, whole;
    ngx_kexec_message_t   msg;

    str = unit_str(text);

    assert_int_equal(ngx_kexec_message_parse(&str, NGX_KEXEC_FORMAT_TEXT,
                                             &msg),
                     NGX_OK);

    if (ngx_kexec_event_message(unit_sink_open(&whole, 65536), &msg)
        != NGX_OK)
    {
        unit_sink_close(&whole);
        return;
    }

    unit_sink_take(&whole);

    for (size = 64; size < whole.len + 2; size++) {
        n = (whole.len + size - 1) / size;

        for (i = 0; i <= n; i++) {
            unit_sink_open(&sink, size);
            sink.windows = i;

            assert_int_equal(ngx_kexec_event_message(&sink.out, &msg),
                             i < n ? NGX_ERROR : NGX_OK);

            unit_sink_take(&sink);
            unit_assert_bytes(sink.data, sink.len, whole.data,
                              ngx_min(i * size, whole.len));
            unit_sink_close(&sink);
        }
    }

    unit_sink_close(&whole);
}


static void
test_refused(void **state)
{
    size_t  i;
    char    text[4096];

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text),
                 "{\"header\": {\"msg_type\": \"%s\", "
                 "\"date\": \"2026-11-29T14:32:25.589513Z\"}, "
                 "\"parent_header\": {}, \"content\": %s}",
                 cases[i].type, cases[i].content);

        assert_refused(text);
    }
}


static void
test_own(void **state)
{
    size_t       window, size;
    ngx_str_t    text;
    unit_sink_t  sink;

    (void) state;

    for (window = 64; window <= 1024; window *= 4) {

        text = unit_str("a \"b\" \xe2\x98\x83\n");

        assert_int_equal(ngx_kexec_event_error(unit_sink_open(&sink, window),
                                               "QueueTimeout", &text),
                         NGX_OK);
        assert_int_equal(ngx_kexec_event_dropped(&sink.out, &text), NGX_OK);
        assert_int_equal(ngx_kexec_event_keepalive(&sink.out), NGX_OK);
        assert_int_equal(ngx_kexec_event_end(&sink.out), NGX_OK);

        ngx_str_null(&text);
        assert_int_equal(ngx_kexec_event_error(&sink.out, "E", &text), NGX_OK);

        unit_sink_take(&sink);
        assert_string_equal((char *) sink.data,
            "{\"type\": \"error\", \"name\": \"QueueTimeout\", "
            "\"value\": \"a \\\"b\\\" \\u2603\\n\", \"traceback\": \"\"}\n"
            "{\"type\": \"output_dropped\", "
            "\"reason\": \"a \\\"b\\\" \\u2603\\n\"}\n"
            "{\"type\": \"keepalive\"}\n"
            "{\"type\": \"end_of_execution\"}\n"
            "{\"type\": \"error\", \"name\": \"E\", \"value\": \"\", "
            "\"traceback\": \"\"}\n");

        unit_sink_close(&sink);
    }

    text = unit_str("0123456789012345678901234567890123456789");

    for (size = 64; size < 110; size++) {
        unit_sink_open(&sink, size);
        sink.windows = 1;
        assert_int_equal(ngx_kexec_event_error(&sink.out, LONG, &text),
                         NGX_ERROR);
        unit_sink_close(&sink);

        unit_sink_open(&sink, size);
        sink.windows = (size < 81) ? 1 : 0;
        assert_int_equal(ngx_kexec_event_dropped(&sink.out, &text),
                         NGX_ERROR);
        unit_sink_close(&sink);
    }
}


/* large texts: many windows, every boundary of the scanner's chunks */

static void
test_large(void **state)
{
    char         *text, *p;
    size_t        n, i, window;
    unit_sink_t   sink;

    static const char  head[] =
        "{\"header\": {\"msg_type\": \"stream\"}, \"content\": "
        "{\"name\": \"stdout\", \"text\": \"";

    (void) state;

    n = 200000;
    text = malloc(n + 1024);

    p = text + sprintf(text, "%s", head);

    for (i = 0; i < n; i++) {
        p[i] = (i % 6151 == 6150) ? '\x7f' : 'a' + i % 26;
    }

    strcpy(p + n, "\"}}");

    for (window = 64; window <= 1 << 20; window *= 16) {
        assert_int_equal(event_of(&sink, window, text), NGX_OK);

        p = (char *) sink.data + sizeof("{\"type\": \"stdout\", \"text\": \"")
            - 1;

        for (i = 0; i < n; i++) {

            if (i % 6151 == 6150) {
                assert_memory_equal(p, "\\u007f", 6);
                p += 6;
                continue;
            }

            if (*p++ != (char) ('a' + i % 26)) {
                fail();
            }
        }

        assert_string_equal(p, "\", \"timestamp\": \"\"}\n");

        unit_sink_close(&sink);
    }

    free(text);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_unconfirmed),
        cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_timestamp),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_large)
    };

    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
