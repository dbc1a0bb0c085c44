
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "kexec_unit.h"
#include <ngx_kexec_message.h>


#define HEADER(type)                                                         \
    "{\"msg_id\": \"k-1\", \"msg_type\": \"" type "\", "                     \
    "\"date\": \"2026-11-29T14:32:25.589513Z\"}"
#define PARENT   "{\"msg_id\": \"p-1\", \"msg_type\": \"execute_request\"}"

#define TEXT(type, content)                                                  \
    "{\"header\": " HEADER(type) ", \"msg_id\": \"k-1\", "                   \
    "\"msg_type\": \"" type "\", \"parent_header\": " PARENT ", "            \
    "\"metadata\": {}, \"content\": " content ", \"buffers\": [], "          \
    "\"channel\": \"iopub\"}"


/* memory without a byte to spare for each message */

static ngx_int_t
parse(const void *data, size_t len, ngx_kexec_format_e format,
    ngx_kexec_message_t *msg)
{
    ngx_int_t         rc;
    static ngx_str_t  copy;

    free(copy.data);
    copy = unit_copy(data, len);

    rc = ngx_kexec_message_parse(&copy, format, msg);

    if (rc != NGX_OK) {
        assert_int_equal(rc, NGX_DECLINED);
    }

    return rc;
}


static ngx_int_t
parse_text(const char *text, ngx_kexec_message_t *msg)
{
    return parse(text, strlen(text), NGX_KEXEC_FORMAT_TEXT, msg);
}


static void
put(u_char *p, uint64_t n, ngx_uint_t size, ngx_uint_t big)
{
    ngx_uint_t  i;

    for (i = 0; i < size; i++) {
        p[big ? size - 1 - i : i] = (u_char) (n >> (8 * i));
    }
}


/* offsets and parts, as jupyter_server packs them */

static ngx_str_t
pack_v1(const char *parts[], ngx_uint_t n)
{
    size_t      len;
    ngx_str_t   bytes;
    ngx_uint_t  i;

    len = 8 * (n + 2);
    bytes = unit_alloc(65536);

    put(bytes.data, n + 1, 8, 0);
    put(bytes.data + 8, len, 8, 0);

    for (i = 0; i < n; i++) {
        memcpy(bytes.data + len, parts[i], strlen(parts[i]));
        len += strlen(parts[i]);
        put(bytes.data + 8 * (i + 2), len, 8, 0);
    }

    bytes.len = len;

    return bytes;
}


static ngx_str_t
pack_binary(const char *parts[], ngx_uint_t n)
{
    size_t      len;
    ngx_str_t   bytes;
    ngx_uint_t  i;

    len = 4 * (n + 1);
    bytes = unit_alloc(65536);

    put(bytes.data, n, 4, 1);

    for (i = 0; i < n; i++) {
        put(bytes.data + 4 * (i + 1), len, 4, 1);
        memcpy(bytes.data + len, parts[i], strlen(parts[i]));
        len += strlen(parts[i]);
    }

    bytes.len = len;

    return bytes;
}


static void
assert_stream(ngx_kexec_message_t *msg)
{
    assert_int_equal(msg->channel, NGX_KEXEC_CHANNEL_IOPUB);
    assert_int_equal(msg->type, NGX_KEXEC_MSG_STREAM);
    unit_assert_str(&msg->parent_id, "p-1");
    unit_assert_str(&msg->header, HEADER("stream"));
    unit_assert_str(&msg->content, "{\"name\": \"stdout\"}");
}


static void
test_text(void **state)
{
    size_t                i;
    ngx_kexec_message_t   msg;

    static const char  *bad[] = {
        "", " ", "{}", "[]", "null", "\"x\"", "x",

        /* no header, no msg_type, no content, or not of the right type */
        "{\"parent_header\": {}, \"content\": {}}",
        "{\"header\": {}, \"content\": {}}",
        "{\"header\": {\"msg_type\": 1}, \"content\": {}}",
        "{\"header\": [], \"content\": {}}",
        "{\"header\": {\"msg_type\": \"stream\"}}",
        "{\"header\": {\"msg_type\": \"stream\"}, \"content\": []}",
        "{\"header\": {\"msg_type\": \"stream\"}, \"content\": \"\"}",
        "{\"header\": {\"msg_type\": \"stream\"}, \"content\": {}",
        "{\"header\": {\"msg_type\": \"stream\"}, \"content\": {},}",
        "{\"header\": {\"msg_type\": \"stream\"}, \"content\": {}} x",
        "[\"header\", {\"msg_type\": \"stream\"}, \"content\", {}]",
        TEXT("stream", "{\"text\": \"\\x\"}"),
        TEXT("stream", "{\"text\": \"\n\"}"),
        TEXT("stream", "{\"text\": tru}")
    };

    static const char  *good[] = {
        TEXT("stream", "{\"text\": \"\\u0000 \\ud800 \xff\"}"),
        TEXT("stream", "{\"text\": NaN, \"n\": 1111111111111111111111111}"),
        TEXT("stream", "{}") "\r\n",
        "\n{\"content\":{},\"header\":{\"msg_type\":\"stream\"}}",
        "{\"header\": 1, \"header\": {\"msg_type\": \"stream\"}, "
            "\"content\": {}}"
    };

    (void) state;

    assert_int_equal(parse_text(TEXT("stream", "{\"name\": \"stdout\"}"),
                                &msg),
                     NGX_OK);
    assert_stream(&msg);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(parse_text(bad[i], &msg), NGX_DECLINED);
    }

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(parse_text(good[i], &msg), NGX_OK);
        assert_int_equal(msg.type, NGX_KEXEC_MSG_STREAM);
    }
}


static void
test_parent(void **state)
{
    size_t                i;
    ngx_kexec_message_t   msg;

    static const struct {
        const char  *text;
        const char  *parent;
    } cases[] = {
        { "", "" },
        { ", \"parent_header\": {}", "" },
        { ", \"parent_header\": null", "" },
        { ", \"parent_header\": [\"msg_id\"]", "" },
        { ", \"parent_header\": {\"msg_id\": null}", "" },
        { ", \"parent_header\": {\"msg_id\": 7}", "" },
        { ", \"parent_header\": {\"msg_id\": \"\"}", "" },
        { ", \"parent_header\": {\"a\": {\"msg_id\": \"x\"}, "
          "\"msg_id\": \"abc_1\"}", "abc_1" },
        { ", \"parent_header\": {\"msg_id\": \"a\\\"b\"}", "a\\\"b" }
    };

    char  text[1024];

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text),
                 "{\"header\": {\"msg_type\": \"status\"}, \"content\": {}%s}",
                 cases[i].text);

        assert_int_equal(parse_text(text, &msg), NGX_OK);
        assert_int_equal(msg.channel, NGX_KEXEC_CHANNEL_OTHER);
        unit_assert_str(&msg.parent_id, cases[i].parent);
    }
}


static void
test_words(void **state)
{
    size_t                i;
    char                  text[1024];
    ngx_kexec_message_t   msg;

    static const struct {
        const char  *word;
        int          value;
    } types[] = {
        { "status", NGX_KEXEC_MSG_STATUS },
        { "stream", NGX_KEXEC_MSG_STREAM },
        { "display_data", NGX_KEXEC_MSG_DISPLAY_DATA },
        { "execute_result", NGX_KEXEC_MSG_EXECUTE_RESULT },
        { "execute_input", NGX_KEXEC_MSG_EXECUTE_INPUT },
        { "error", NGX_KEXEC_MSG_ERROR },
        { "execute_reply", NGX_KEXEC_MSG_EXECUTE_REPLY },
        { "kernel_info_reply", NGX_KEXEC_MSG_KERNEL_INFO_REPLY },
        { "input_request", NGX_KEXEC_MSG_INPUT_REQUEST },
        { "update_display_data", NGX_KEXEC_MSG_OTHER },
        { "clear_output", NGX_KEXEC_MSG_OTHER },
        { "comm_open", NGX_KEXEC_MSG_OTHER },
        { "display", NGX_KEXEC_MSG_OTHER },
        { "", NGX_KEXEC_MSG_OTHER }
    }, channels[] = {
        { "shell", NGX_KEXEC_CHANNEL_SHELL },
        { "iopub", NGX_KEXEC_CHANNEL_IOPUB },
        { "control", NGX_KEXEC_CHANNEL_CONTROL },
        { "stdin", NGX_KEXEC_CHANNEL_STDIN },
        { "iopubs", NGX_KEXEC_CHANNEL_OTHER }
    }, states[] = {
        { "busy", NGX_KEXEC_STATE_BUSY },
        { "idle", NGX_KEXEC_STATE_IDLE },
        { "starting", NGX_KEXEC_STATE_STARTING },
        { "restarting", NGX_KEXEC_STATE_RESTARTING },
        { "autorestarting", NGX_KEXEC_STATE_AUTORESTARTING },
        { "dead", NGX_KEXEC_STATE_DEAD },
        { "Busy", NGX_KEXEC_STATE_OTHER }
    };

    (void) state;

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        snprintf(text, sizeof(text),
                 "{\"header\": {\"msg_type\": \"%s\"}, \"content\": {}}",
                 types[i].word);
        assert_int_equal(parse_text(text, &msg), NGX_OK);
        assert_int_equal(msg.type, types[i].value);
        assert_int_equal(ngx_kexec_message_state(&msg),
                         NGX_KEXEC_STATE_OTHER);
    }

    for (i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
        snprintf(text, sizeof(text),
                 "{\"header\": {\"msg_type\": \"x\"}, \"content\": {}, "
                 "\"channel\": \"%s\"}",
                 channels[i].word);
        assert_int_equal(parse_text(text, &msg), NGX_OK);
        assert_int_equal(msg.channel, channels[i].value);
    }

    for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        snprintf(text, sizeof(text),
                 "{\"header\": {\"msg_type\": \"status\"}, "
                 "\"content\": {\"execution_state\": \"%s\"}}",
                 states[i].word);
        assert_int_equal(parse_text(text, &msg), NGX_OK);
        assert_int_equal(ngx_kexec_message_state(&msg), states[i].value);
    }

    parse_text("{\"header\": {\"msg_type\": \"status\"}, "
               "\"content\": {\"execution_state\": 1}}", &msg);
    assert_int_equal(ngx_kexec_message_state(&msg), NGX_KEXEC_STATE_OTHER);

    /* Jupyter's notice */

    parse_text("{\"header\": {\"msg_type\": \"stream\"}, \"content\": "
               "{\"name\": \"stderr\", \"text\": "
               "\"IOPub data rate exceeded.\\nThe Jupyter\"}}", &msg);
    assert_int_equal(ngx_kexec_message_rate_limit(&msg), 1);

    parse_text("{\"header\": {\"msg_type\": \"stream\"}, \"content\": "
               "{\"text\": \"IOPub data rate exceeded\"}}", &msg);
    assert_int_equal(ngx_kexec_message_rate_limit(&msg), 0);

    parse_text("{\"header\": {\"msg_type\": \"error\"}, \"content\": "
               "{\"text\": \"IOPub message rate exceeded.\\n\"}}", &msg);
    assert_int_equal(ngx_kexec_message_rate_limit(&msg), 0);

    /* only a status has a state */

    parse_text("{\"header\": {\"msg_type\": \"stream\"}, "
               "\"content\": {\"execution_state\": \"idle\"}}", &msg);
    assert_int_equal(ngx_kexec_message_state(&msg), NGX_KEXEC_STATE_OTHER);
}


static void
test_v1(void **state)
{
    size_t                i, cut;
    uint64_t              wrong;
    ngx_str_t             bytes;
    ngx_uint_t            n;
    ngx_kexec_message_t   msg;

    static const char  *parts[] = {
        "iopub", HEADER("stream"), PARENT, "{}", "{\"name\": \"stdout\"}",
        "", "a buffer", "another"
    };

    static const uint64_t  offsets[] = {
        0, 1, 8, 55, 0xffff, 0x80000000, 0x100000000, 0x7fffffffffffffff,
        0x8000000000000000, 0xffffffffffffffff
    };

    (void) state;

    for (n = 5; n <= 8; n++) {
        bytes = pack_v1(parts, n);

        assert_int_equal(parse(bytes.data, bytes.len, NGX_KEXEC_FORMAT_V1,
                               &msg),
                         NGX_OK);
        assert_stream(&msg);

        for (cut = 0; cut < bytes.len; cut++) {
            if (parse(bytes.data, cut, NGX_KEXEC_FORMAT_V1, &msg) == NGX_OK) {

                /* only buffers are missing, which nobody looks at */

                assert_true(n > 5);
                assert_stream(&msg);
            }
        }

        for (i = 0; i <= 6; i++) {
            for (cut = 0; cut < sizeof(offsets) / sizeof(offsets[0]); cut++) {
                memcpy(&wrong, bytes.data + 8 * i, 8);
                put(bytes.data + 8 * i, offsets[cut], 8, 0);

                assert_int_equal(parse(bytes.data, bytes.len,
                                       NGX_KEXEC_FORMAT_V1, &msg),
                                 (i == 0 && offsets[cut] == 8 && n >= 7)
                                 ? NGX_OK : NGX_DECLINED);

                memcpy(bytes.data + 8 * i, &wrong, 8);
            }
        }

        free(bytes.data);
    }

    bytes = pack_v1(parts, 4);
    assert_int_equal(parse(bytes.data, bytes.len, NGX_KEXEC_FORMAT_V1, &msg),
                     NGX_DECLINED);
    free(bytes.data);
}


static void
test_v1_parts(void **state)
{
    size_t                i;
    ngx_str_t             bytes;
    ngx_kexec_message_t   msg;

    static const struct {
        const char  *parts[5];
        ngx_int_t    rc;
    } cases[] = {
        { { "shell", HEADER("status"), "{}", "{}", "{}" }, NGX_OK },
        { { "", HEADER("status"), " {} ", "x", "{ }\n" }, NGX_OK },
        { { "x", HEADER("status"), "null", "", "{}" }, NGX_OK },
        { { "shell", "", "{}", "{}", "{}" }, NGX_DECLINED },
        { { "shell", "{}", "{}", "{}", "{}" }, NGX_DECLINED },
        { { "shell", "[]", "{}", "{}", "{}" }, NGX_DECLINED },
        { { "shell", HEADER("status"), "", "{}", "{}" }, NGX_DECLINED },
        { { "shell", HEADER("status"), "{", "{}", "{}" }, NGX_DECLINED },
        { { "shell", HEADER("status"), "{}", "{}", "" }, NGX_DECLINED },
        { { "shell", HEADER("status"), "{}", "{}", "[]" }, NGX_DECLINED },
        { { "shell", HEADER("status"), "{}", "{}", "{}}" }, NGX_DECLINED }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bytes = pack_v1((const char **) cases[i].parts, 5);
        assert_int_equal(parse(bytes.data, bytes.len, NGX_KEXEC_FORMAT_V1,
                               &msg),
                         cases[i].rc);

        if (cases[i].rc == NGX_OK) {
            assert_int_equal(msg.type, NGX_KEXEC_MSG_STATUS);
            assert_int_equal(msg.parent_id.len, 0);
        }

        free(bytes.data);
    }
}


static void
test_binary(void **state)
{
    size_t                cut;
    ngx_str_t             bytes;
    ngx_uint_t            n;
    ngx_kexec_message_t   msg;

    static const char  *parts[] = {
        TEXT("stream", "{\"name\": \"stdout\"}"), "\xff\xfe", ""
    };

    static const struct {
        size_t       at;
        uint32_t     wrong;
    } cases[] = {
        { 0, 0 }, { 0, 0x80000000 }, { 0, 0xffffffff }, { 0, 0x40000000 },
        { 4, 0 }, { 4, 4 }, { 4, 0xffffffff }, { 8, 0 }, { 8, 0xffffffff },
        { 8, 17 }
    };

    (void) state;

    for (n = 1; n <= 3; n++) {
        bytes = pack_binary(parts, n);

        assert_int_equal(parse(bytes.data, bytes.len, NGX_KEXEC_FORMAT_BINARY,
                               &msg),
                         NGX_OK);
        assert_stream(&msg);

        for (cut = 0; cut < bytes.len; cut++) {
            if (parse(bytes.data, cut, NGX_KEXEC_FORMAT_BINARY, &msg)
                == NGX_OK)
            {
                assert_true(n > 1);
                assert_stream(&msg);
            }
        }

        free(bytes.data);
    }

    for (cut = 0; cut < sizeof(cases) / sizeof(cases[0]); cut++) {
        bytes = pack_binary(parts, 2);
        put(bytes.data + cases[cut].at, cases[cut].wrong, 4, 1);
        assert_int_equal(parse(bytes.data, bytes.len, NGX_KEXEC_FORMAT_BINARY,
                               &msg),
                         NGX_DECLINED);
        free(bytes.data);
    }
}


static void
test_reply(void **state)
{
    size_t                i;
    char                  text[1024];
    ngx_kexec_reply_t     reply;
    ngx_kexec_message_t   msg;

    static const struct {
        const char  *type;
        const char  *content;
        int          status;
        const char  *ename;
        const char  *evalue;
        const char  *traceback;
    } cases[] = {
        { "execute_reply", "{\"status\": \"ok\", \"execution_count\": 1}",
          NGX_KEXEC_REPLY_OK, "", "", "" },
        { "execute_reply", "{\"status\": \"error\", \"ename\": \"E\", "
          "\"evalue\": \"v\", \"traceback\": [\"a\", \"b\"]}",
          NGX_KEXEC_REPLY_ERROR, "\"E\"", "\"v\"", "[\"a\", \"b\"]" },
        { "execute_reply", "{\"status\": \"aborted\"}",
          NGX_KEXEC_REPLY_ABORTED, "", "", "" },
        { "execute_reply", "{\"status\": \"abort\"}",
          NGX_KEXEC_REPLY_INTERRUPTED, "", "", "" },
        { "execute_reply", "{}", NGX_KEXEC_REPLY_OTHER, "", "", "" },
        { "execute_reply", "{\"status\": null}",
          NGX_KEXEC_REPLY_OTHER, "", "", "" },
        { "execute_reply", "{\"status\": \"ok\", \"status\": \"error\"}",
          NGX_KEXEC_REPLY_ERROR, "", "", "" },
        { "error", "{\"ename\": null, \"evalue\": 7, \"traceback\": \"x\"}",
          NGX_KEXEC_REPLY_ERROR, "null", "7", "\"x\"" },
        { "error", "{\"status\": \"ok\"}", NGX_KEXEC_REPLY_ERROR, "", "", "" },
        { "stream", "{\"status\": \"ok\", \"ename\": \"E\"}",
          NGX_KEXEC_REPLY_OTHER, "", "", "" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text),
                 "{\"header\": {\"msg_type\": \"%s\"}, \"content\": %s}",
                 cases[i].type, cases[i].content);

        assert_int_equal(parse_text(text, &msg), NGX_OK);
        ngx_kexec_message_reply(&msg, &reply);

        assert_int_equal(reply.status, cases[i].status);
        unit_assert_str(&reply.ename, cases[i].ename);
        unit_assert_str(&reply.evalue, cases[i].evalue);
        unit_assert_str(&reply.traceback, cases[i].traceback);
    }
}


/* does a reply say that the process will end? */

static void
test_exits(void **state)
{
    size_t               i;
    ngx_str_t            copy;
    ngx_kexec_reply_t    reply;
    ngx_kexec_message_t  msg;

    static const struct {
        const char  *payload;
        unsigned     exits;
    } cases[] = {
        { "[{\"source\": \"ask_exit\", \"keepkernel\": false}]", 1 },
        { "[{\"source\": \"page\"}, {\"source\": \"ask_exit\"}]", 1 },
        { "[{\"keepkernel\": null, \"source\": \"ask\\u005fexit\"}]", 1 },
        { "[{\"source\": \"ask_exit\", \"keepkernel\": true}]", 0 },
        { "[{\"source\": \"page\"}]", 0 },
        { "[\"ask_exit\", {\"source\": 1}, []]", 0 },
        { "{\"source\": \"ask_exit\"}", 0 },
        { "null", 0 },
        { "[]", 0 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char  text[256];

        snprintf(text, sizeof(text), "{\"status\": \"ok\", \"payload\": %s}",
                 cases[i].payload);

        copy = unit_copy(text, strlen(text));

        ngx_memzero(&msg, sizeof(msg));
        msg.type = NGX_KEXEC_MSG_EXECUTE_REPLY;
        msg.content = copy;

        ngx_kexec_message_reply(&msg, &reply);

        assert_int_equal(reply.exits, cases[i].exits);

        free(copy.data);
    }
}


/* a reply's error and one on iopub */

static void
test_same_error(void **state)
{
    size_t                i, n;
    ngx_str_t             copies[2];
    ngx_kexec_reply_t     replies[2];
    ngx_kexec_message_t   msg;

    static const struct {
        const char  *contents[2];
        ngx_uint_t   same;
    } cases[] = {
        { { "{\"ename\": \"E\", \"evalue\": \"v\", \"traceback\": [\"t\"]}",
            "{\"traceback\": [\"t\"], \"ename\": \"E\", \"evalue\": \"v\"}" }, 2 },
        { { "{\"ename\": \"E\", \"evalue\": \"v\", \"traceback\": [\"t\"]}",
            "{\"ename\": \"E\", \"evalue\": \"v\", \"traceback\": []}" }, 1 },
        { { "{\"ename\": \"E\", \"evalue\": \"v\"}",
            "{\"ename\": \"E\", \"evalue\": \"v\", \"traceback\": []}" }, 1 },
        { { "{\"ename\": \"E\", \"evalue\": \"v\"}",
            "{\"ename\": \"E\", \"evalue\": \"w\"}" }, 0 },
        { { "{\"ename\": \"E\", \"evalue\": \"v\"}",
            "{\"ename\": \"F\", \"evalue\": \"v\"}" }, 0 },
        { { "{\"ename\": \"\", \"evalue\": \"1\"}",
            "{\"ename\": \"F\", \"evalue\": \"v\"}" }, 0 },
        { { "{}", "{\"ename\": \"F\", \"evalue\": \"v\"}" }, 1 },
        { { "{\"ename\": \"\", \"evalue\": null}",
            "{\"ename\": \"F\", \"evalue\": \"v\"}" }, 1 },
        { { "{\"ename\": 1, \"evalue\": \"\"}", "{}" }, 0 },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {

        for (n = 0; n < 2; n++) {
            copies[n] = unit_copy(cases[i].contents[n],
                                  strlen(cases[i].contents[n]));

            ngx_memzero(&msg, sizeof(msg));
            msg.type = NGX_KEXEC_MSG_ERROR;
            msg.content = copies[n];

            ngx_kexec_message_reply(&msg, &replies[n]);
        }

        assert_int_equal(ngx_kexec_message_same_error(&replies[0],
                                                      &replies[1]),
                         cases[i].same);

        free(copies[0].data);
        free(copies[1].data);
    }
}


static void
assert_request(ngx_kexec_request_msg_t *req, ngx_kexec_format_e format,
    const void *expect, size_t len)
{
    u_char  *p, *end;
    size_t   size;

    size = ngx_kexec_message_size(req, format);
    p = malloc(size);

    end = ngx_kexec_message_write(p, req, format);

    assert_ptr_equal(end, p + size);
    unit_assert_bytes(p, size, expect, len);

    free(p);
}


#define REQUEST_HEADER(type)                                                 \
    "{\"msg_id\": \"i\", \"username\": \"kexec\", \"session\": \"s\", "      \
    "\"msg_type\": \"" type "\", \"version\": \"5.3\", \"date\": \"d\"}"


/* whose request a message belongs to */

static void
test_whose(void **state)
{
    ngx_str_t            bytes, session, type;
    ngx_kexec_message_t  msg;

    (void) state;

    bytes = unit_str("{\"channel\": \"iopub\", \"header\": {\"msg_type\": "
                     "\"status\"}, \"content\": {}, \"parent_header\": "
                     "{\"msg_type\": \"execute_request\", \"session\": "
                     "\"abc\"}}");

    assert_int_equal(ngx_kexec_message_parse(&bytes, NGX_KEXEC_FORMAT_TEXT,
                                             &msg), NGX_OK);

    ngx_kexec_message_request(&msg, &session, &type);
    unit_assert_str(&session, "abc");
    unit_assert_str(&type, "execute_request");

    /* nobody's, and nonsense */

    msg.parent = unit_str("{}");
    ngx_kexec_message_request(&msg, &session, &type);
    assert_int_equal(session.len, 0);
    assert_int_equal(type.len, 0);

    msg.parent = unit_str("{\"session\": 1, \"msg_type\": [\"x\"]}");
    ngx_kexec_message_request(&msg, &session, &type);
    assert_int_equal(session.len, 0);
    assert_int_equal(type.len, 0);
}


static void
test_in_order(void **state)
{
    ngx_uint_t           i;
    ngx_kexec_message_t  msg;

    static const struct {
        const char *content;
        ngx_uint_t  in_order;
    } cases[] = {
        { "{\"implementation\": \"ipython\"}", 1 },
        { "{\"implementation\": \"kexec_bash\"}", 1 },
        { "{\"implementation\": \"kexec_node\"}", 1 },
        { "{\"implementation\": \"ijavascript\"}", 0 },
        { "{\"implementation\": \"ipython2\"}", 0 },
        { "{\"implementation\": \"\"}", 0 },
        { "{\"implementation\": 1}", 0 },
        { "{}", 0 }
    };

    (void) state;

    memset(&msg, 0, sizeof(msg));

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        msg.content = unit_str(cases[i].content);
        assert_int_equal(ngx_kexec_message_in_order(&msg), cases[i].in_order);
    }
}


static void
test_request(void **state)
{
    ngx_str_t                 bytes;
    ngx_kexec_request_msg_t   req;

    static const char  execute[] =
        "{\"channel\": \"shell\", \"header\": "
        REQUEST_HEADER("execute_request")
        ", \"parent_header\": {}, \"metadata\": {}, \"content\": "
        "{\"code\": \"a\\n\\\"\\u00e9\\ud83c\\udf89\", \"silent\": false, "
        "\"store_history\": true, \"user_expressions\": {}, "
        "\"allow_stdin\": false, \"stop_on_error\": false}, "
        "\"buffers\": []}";

    static const char  info[] =
        "{\"channel\": \"shell\", \"header\": "
        REQUEST_HEADER("kernel_info_request")
        ", \"parent_header\": {}, \"metadata\": {}, \"content\": {}, "
        "\"buffers\": []}";

    static const char  *parts[] = {
        "shell", REQUEST_HEADER("execute_request"), "{}", "{}",
        "{\"code\": \"a\\n\\\"\\u00e9\\ud83c\\udf89\", \"silent\": true, "
        "\"store_history\": false, \"user_expressions\": {}, "
        "\"allow_stdin\": false, \"stop_on_error\": false}"
    };

    static const char  *info_parts[] = {
        "shell", REQUEST_HEADER("kernel_info_request"), "{}", "{}", "{}"
    };

    static const char  input[] =
        "{\"channel\": \"stdin\", \"header\": "
        REQUEST_HEADER("input_reply")
        ", \"parent_header\": {\"msg_id\": \"p\"}, \"metadata\": {}, "
        "\"content\": {\"value\": \"\"}, \"buffers\": []}";

    static const char  *input_parts[] = {
        "stdin", REQUEST_HEADER("input_reply"), "{\"msg_id\": \"p\"}", "{}",
        "{\"value\": \"\"}"
    };

    (void) state;

    memset(&req, 0, sizeof(req));
    req.id = unit_str("i");
    req.session = unit_str("s");
    req.date = unit_str("d");
    req.code = unit_str("a\n\"\xc3\xa9\xf0\x9f\x8e\x89");

    assert_request(&req, NGX_KEXEC_FORMAT_TEXT, execute, sizeof(execute) - 1);

    req.silent = 1;
    bytes = pack_v1(parts, 5);
    assert_request(&req, NGX_KEXEC_FORMAT_V1, bytes.data, bytes.len);
    free(bytes.data);

    req.info = 1;
    ngx_str_null(&req.code);
    assert_request(&req, NGX_KEXEC_FORMAT_TEXT, info, sizeof(info) - 1);

    bytes = pack_v1(info_parts, 5);
    assert_request(&req, NGX_KEXEC_FORMAT_V1, bytes.data, bytes.len);
    free(bytes.data);

    req.info = 0;
    req.input = 1;
    req.parent = unit_str("{\"msg_id\": \"p\"}");
    assert_request(&req, NGX_KEXEC_FORMAT_TEXT, input, sizeof(input) - 1);

    bytes = pack_v1(input_parts, 5);
    assert_request(&req, NGX_KEXEC_FORMAT_V1, bytes.data, bytes.len);
    free(bytes.data);

    req.input = 0;
    req.info = 1;
    ngx_str_null(&req.parent);

    /* no code at all */

    req.info = 0;
    ngx_kexec_message_size(&req, NGX_KEXEC_FORMAT_V1);
}


/* what is written can be read */

static void
test_request_parses(void **state)
{
    u_char                   *p;
    size_t                    size;
    ngx_str_t                 value, inside;
    ngx_uint_t                format;
    ngx_kexec_message_t       msg;
    ngx_kexec_request_msg_t   req;

    (void) state;

    memset(&req, 0, sizeof(req));
    req.id = unit_str("0123-4567");
    req.session = unit_str("abc");
    req.date = unit_str("2026-11-29T14:32:25.589513Z");
    req.code = unit_copy("\x00\xff'", 3);

    for (format = 0; format <= NGX_KEXEC_FORMAT_V1; format++) {

        if (format == NGX_KEXEC_FORMAT_BINARY) {
            continue;
        }

        size = ngx_kexec_message_size(&req, format);
        p = malloc(size);
        ngx_kexec_message_write(p, &req, format);

        assert_int_equal(parse(p, size, format, &msg), NGX_OK);
        assert_int_equal(msg.channel, NGX_KEXEC_CHANNEL_SHELL);
        assert_int_equal(msg.type, NGX_KEXEC_MSG_OTHER);
        assert_int_equal(msg.parent_id.len, 0);
        assert_int_equal(ngx_kexec_json_member(&msg.content, "code", &value),
                         NGX_OK);
        assert_int_equal(ngx_kexec_json_string(&value, &inside), NGX_OK);
        unit_assert_str(&inside, "\\u0000\\ufffd'");

        free(p);
    }

    free(req.code.data);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_parent),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_v1),
        cmocka_unit_test(test_v1_parts),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_reply),
        cmocka_unit_test(test_exits),
        cmocka_unit_test(test_same_error),
        cmocka_unit_test(test_whose),
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_request_parses)
    };

    return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
