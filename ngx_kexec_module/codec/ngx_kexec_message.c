
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_json.h>
#include <ngx_kexec_message.h>


/* v1: channel, header, parent_header, metadata, content, and the end */
#define NGX_KEXEC_V1_OFFSETS  6


#define ngx_kexec_message_cpystr(p, str)                                     \
    ngx_cpymem(p, (str)->data, (str)->len)


typedef struct {
    const char  *name;
    ngx_uint_t   value;
} ngx_kexec_message_word_t;


static ngx_int_t ngx_kexec_message_parse_text(ngx_str_t *text,
    ngx_kexec_message_t *msg);
static ngx_int_t ngx_kexec_message_parse_binary(ngx_str_t *bytes,
    ngx_kexec_message_t *msg);
static ngx_int_t ngx_kexec_message_parse_v1(ngx_str_t *bytes,
    ngx_kexec_message_t *msg);
static ngx_int_t ngx_kexec_message_finish(ngx_kexec_message_t *msg,
    ngx_str_t *parent);
static ngx_uint_t ngx_kexec_message_ask_exit(ngx_str_t *payload);
static ngx_uint_t ngx_kexec_message_empty_text(ngx_str_t *value);
static ngx_uint_t ngx_kexec_message_same(ngx_str_t *one, ngx_str_t *two);
static ngx_uint_t ngx_kexec_message_word(ngx_kexec_message_word_t *words,
    ngx_str_t *inside);
static uint32_t ngx_kexec_message_get32(u_char *p);
static uint64_t ngx_kexec_message_get64(u_char *p);
static u_char *ngx_kexec_message_put64(u_char *p, uint64_t n);
static ngx_str_t *ngx_kexec_message_channel(ngx_kexec_request_msg_t *req);
static ngx_str_t *ngx_kexec_message_parent(ngx_kexec_request_msg_t *req);
static ngx_str_t *ngx_kexec_message_kind(ngx_kexec_request_msg_t *req);
static size_t ngx_kexec_message_header_size(ngx_kexec_request_msg_t *req);
static u_char *ngx_kexec_message_header_write(u_char *p,
    ngx_kexec_request_msg_t *req);
static size_t ngx_kexec_message_content_size(ngx_kexec_request_msg_t *req);
static u_char *ngx_kexec_message_content_write(u_char *p,
    ngx_kexec_request_msg_t *req);
static ngx_int_t ngx_kexec_message_full(ngx_kexec_out_t *out);


static ngx_kexec_message_word_t  ngx_kexec_message_channels[] = {
    { "iopub", NGX_KEXEC_CHANNEL_IOPUB },
    { "shell", NGX_KEXEC_CHANNEL_SHELL },
    { "control", NGX_KEXEC_CHANNEL_CONTROL },
    { "stdin", NGX_KEXEC_CHANNEL_STDIN },
    { NULL, NGX_KEXEC_CHANNEL_OTHER }
};


static ngx_kexec_message_word_t  ngx_kexec_message_types[] = {
    { "stream", NGX_KEXEC_MSG_STREAM },
    { "status", NGX_KEXEC_MSG_STATUS },
    { "display_data", NGX_KEXEC_MSG_DISPLAY_DATA },
    { "execute_result", NGX_KEXEC_MSG_EXECUTE_RESULT },
    { "execute_input", NGX_KEXEC_MSG_EXECUTE_INPUT },
    { "error", NGX_KEXEC_MSG_ERROR },
    { "execute_reply", NGX_KEXEC_MSG_EXECUTE_REPLY },
    { "kernel_info_reply", NGX_KEXEC_MSG_KERNEL_INFO_REPLY },
    { "input_request", NGX_KEXEC_MSG_INPUT_REQUEST },
    { "shutdown_reply", NGX_KEXEC_MSG_SHUTDOWN_REPLY },
    { NULL, NGX_KEXEC_MSG_OTHER }
};


static ngx_kexec_message_word_t  ngx_kexec_message_states[] = {
    { "busy", NGX_KEXEC_STATE_BUSY },
    { "idle", NGX_KEXEC_STATE_IDLE },
    { "starting", NGX_KEXEC_STATE_STARTING },
    { "restarting", NGX_KEXEC_STATE_RESTARTING },
    { "autorestarting", NGX_KEXEC_STATE_AUTORESTARTING },
    { "dead", NGX_KEXEC_STATE_DEAD },
    { NULL, NGX_KEXEC_STATE_OTHER }
};


static ngx_kexec_message_word_t  ngx_kexec_message_replies[] = {
    { "ok", NGX_KEXEC_REPLY_OK },
    { "error", NGX_KEXEC_REPLY_ERROR },
    { "aborted", NGX_KEXEC_REPLY_ABORTED },
    { "abort", NGX_KEXEC_REPLY_INTERRUPTED },
    { NULL, NGX_KEXEC_REPLY_OTHER }
};


/* Python's, and those of docker/kernels */

static ngx_kexec_message_word_t  ngx_kexec_message_in_orders[] = {
    { "ipython", 1 },
    { "kexec_bash", 1 },
    { "kexec_node", 1 },
    { NULL, 0 }
};


/* the texts of a request, in order, with what stands between them */

static ngx_str_t  ngx_kexec_message_header_id =
    ngx_string("{\"msg_id\": \"");
static ngx_str_t  ngx_kexec_message_header_session =
    ngx_string("\", \"username\": \"kexec\", \"session\": \"");
static ngx_str_t  ngx_kexec_message_header_execute =
    ngx_string("\", \"msg_type\": \"execute_request\", "
               "\"version\": \"5.3\", \"date\": \"");
static ngx_str_t  ngx_kexec_message_header_info =
    ngx_string("\", \"msg_type\": \"kernel_info_request\", "
               "\"version\": \"5.3\", \"date\": \"");
static ngx_str_t  ngx_kexec_message_header_input =
    ngx_string("\", \"msg_type\": \"input_reply\", "
               "\"version\": \"5.3\", \"date\": \"");
static ngx_str_t  ngx_kexec_message_header_end =
    ngx_string("\"}");

static ngx_str_t  ngx_kexec_message_content_code =
    ngx_string("{\"code\": \"");
static ngx_str_t  ngx_kexec_message_content_loud =
    ngx_string("\", \"silent\": false, \"store_history\": true, "
               "\"user_expressions\": {}, \"allow_stdin\": false, "
               "\"stop_on_error\": false}");
static ngx_str_t  ngx_kexec_message_content_silent =
    ngx_string("\", \"silent\": true, \"store_history\": false, "
               "\"user_expressions\": {}, \"allow_stdin\": false, "
               "\"stop_on_error\": false}");

static ngx_str_t  ngx_kexec_message_content_input =
    ngx_string("{\"value\": \"\"}");

static ngx_str_t  ngx_kexec_message_text_channel =
    ngx_string("{\"channel\": \"");
static ngx_str_t  ngx_kexec_message_text_header =
    ngx_string("\", \"header\": ");
static ngx_str_t  ngx_kexec_message_text_parent =
    ngx_string(", \"parent_header\": ");
static ngx_str_t  ngx_kexec_message_text_content =
    ngx_string(", \"metadata\": {}, \"content\": ");
static ngx_str_t  ngx_kexec_message_text_end =
    ngx_string(", \"buffers\": []}");

static ngx_str_t  ngx_kexec_message_shell = ngx_string("shell");
static ngx_str_t  ngx_kexec_message_stdin = ngx_string("stdin");
static ngx_str_t  ngx_kexec_message_empty = ngx_string("{}");


ngx_int_t
ngx_kexec_message_parse(ngx_str_t *bytes, ngx_kexec_format_e format,
    ngx_kexec_message_t *msg)
{
    ngx_memzero(msg, sizeof(ngx_kexec_message_t));

    switch (format) {

    case NGX_KEXEC_FORMAT_TEXT:
        return ngx_kexec_message_parse_text(bytes, msg);

    case NGX_KEXEC_FORMAT_BINARY:
        return ngx_kexec_message_parse_binary(bytes, msg);

    default: /* NGX_KEXEC_FORMAT_V1 */
        return ngx_kexec_message_parse_v1(bytes, msg);
    }
}


static ngx_int_t
ngx_kexec_message_parse_text(ngx_str_t *text, ngx_kexec_message_t *msg)
{
    ngx_int_t               rc;
    ngx_str_t               key, value, parent, channel, inside;
    ngx_kexec_json_iter_t   iter;

    if (ngx_kexec_json_open(&iter, text) != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_str_null(&parent);
    ngx_str_null(&channel);

    for ( ;; ) {
        rc = ngx_kexec_json_next(&iter, &key, &value);

        if (rc == NGX_DONE) {
            break;
        }

        if (rc != NGX_OK) {
            return NGX_DECLINED;
        }

        if (ngx_kexec_json_equal(&key, "content")) {
            msg->content = value;

        } else if (ngx_kexec_json_equal(&key, "header")) {
            msg->header = value;

        } else if (ngx_kexec_json_equal(&key, "parent_header")) {
            parent = value;

        } else if (ngx_kexec_json_equal(&key, "channel")) {
            channel = value;
        }
    }

    if (ngx_kexec_json_string(&channel, &inside) == NGX_OK) {
        msg->channel = ngx_kexec_message_word(ngx_kexec_message_channels,
                                              &inside);
    }

    return ngx_kexec_message_finish(msg, &parent);
}


/*
 * The number of parts, the offset of each, all of 32 bits in network order,
 * and the parts: the message as text, and its buffers.
 */

static ngx_int_t
ngx_kexec_message_parse_binary(ngx_str_t *bytes, ngx_kexec_message_t *msg)
{
    u_char     *p;
    size_t      start, end;
    uint64_t    n;
    ngx_str_t   text;

    if (bytes->len < 8) {
        return NGX_DECLINED;
    }

    p = bytes->data;

    n = ngx_kexec_message_get32(p);
    start = ngx_kexec_message_get32(p + 4);

    if (n == 0 || n > bytes->len / 4 - 1) {
        return NGX_DECLINED;
    }

    end = (n == 1) ? bytes->len : ngx_kexec_message_get32(p + 8);

    if (start < 4 * (n + 1) || end < start || end > bytes->len) {
        return NGX_DECLINED;
    }

    text.data = p + start;
    text.len = end - start;

    return ngx_kexec_message_parse_text(&text, msg);
}


/*
 * The number of offsets, the offsets, all of 64 bits in little endian order,
 * and the parts; an offset more than there are parts.
 */

static ngx_int_t
ngx_kexec_message_parse_v1(ngx_str_t *bytes, ngx_kexec_message_t *msg)
{
    u_char      *p;
    uint64_t     n, offset, next;
    ngx_str_t    part[NGX_KEXEC_V1_OFFSETS - 1], parent;
    ngx_uint_t   i;

    if (bytes->len < 8) {
        return NGX_DECLINED;
    }

    p = bytes->data;
    n = ngx_kexec_message_get64(p);

    if (n < NGX_KEXEC_V1_OFFSETS || n > bytes->len / 8 - 1) {
        return NGX_DECLINED;
    }

    offset = ngx_kexec_message_get64(p + 8);

    if (offset < 8 * (n + 1)) {
        return NGX_DECLINED;
    }

    for (i = 0; i < NGX_KEXEC_V1_OFFSETS - 1; i++) {
        next = ngx_kexec_message_get64(p + 8 * (i + 2));

        if (next < offset || next > bytes->len) {
            return NGX_DECLINED;
        }

        part[i].data = p + offset;
        part[i].len = next - offset;

        offset = next;
    }

    msg->channel = ngx_kexec_message_word(ngx_kexec_message_channels,
                                          &part[0]);

    /* part[3], the metadata, is not looked at */

    if (ngx_kexec_json_check(&part[1], &msg->header) != NGX_OK
        || ngx_kexec_json_check(&part[2], &parent) != NGX_OK
        || ngx_kexec_json_check(&part[4], &msg->content) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    return ngx_kexec_message_finish(msg, &parent);
}


/* what is the same in all layouts, once the parts were found */

static ngx_int_t
ngx_kexec_message_finish(ngx_kexec_message_t *msg, ngx_str_t *parent)
{
    ngx_str_t  value, inside;

    if (ngx_kexec_json_type(&msg->header) != NGX_KEXEC_JSON_OBJECT
        || ngx_kexec_json_type(&msg->content) != NGX_KEXEC_JSON_OBJECT)
    {
        return NGX_DECLINED;
    }

    if (ngx_kexec_json_member(&msg->header, "msg_type", &value) != NGX_OK
        || ngx_kexec_json_string(&value, &inside) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    msg->type = ngx_kexec_message_word(ngx_kexec_message_types, &inside);
    msg->parent = *parent;

    if (ngx_kexec_json_member(parent, "msg_id", &value) == NGX_OK) {
        (void) ngx_kexec_json_string(&value, &msg->parent_id);
    }

    return NGX_OK;
}


void
ngx_kexec_message_request(ngx_kexec_message_t *msg, ngx_str_t *session,
    ngx_str_t *type)
{
    ngx_str_t  value;

    ngx_str_null(session);
    ngx_str_null(type);

    if (ngx_kexec_json_member(&msg->parent, "session", &value) == NGX_OK) {
        (void) ngx_kexec_json_string(&value, session);
    }

    if (ngx_kexec_json_member(&msg->parent, "msg_type", &value) == NGX_OK) {
        (void) ngx_kexec_json_string(&value, type);
    }
}


ngx_uint_t
ngx_kexec_message_in_order(ngx_kexec_message_t *msg)
{
    ngx_str_t  value, inside;

    if (ngx_kexec_json_member(&msg->content, "implementation", &value)
        != NGX_OK
        || ngx_kexec_json_string(&value, &inside) != NGX_OK)
    {
        return 0;
    }

    return ngx_kexec_message_word(ngx_kexec_message_in_orders, &inside);
}


ngx_kexec_state_e
ngx_kexec_message_state(ngx_kexec_message_t *msg)
{
    ngx_str_t  value, inside;

    if (msg->type != NGX_KEXEC_MSG_STATUS) {
        return NGX_KEXEC_STATE_OTHER;
    }

    if (ngx_kexec_json_member(&msg->content, "execution_state", &value)
        != NGX_OK
        || ngx_kexec_json_string(&value, &inside) != NGX_OK)
    {
        return NGX_KEXEC_STATE_OTHER;
    }

    return ngx_kexec_message_word(ngx_kexec_message_states, &inside);
}


ngx_uint_t
ngx_kexec_message_rate_limit(ngx_kexec_message_t *msg)
{
    ngx_uint_t  i;
    ngx_str_t   value, inside;

    static ngx_str_t  notices[] = {
        ngx_string("IOPub message rate exceeded."),
        ngx_string("IOPub data rate exceeded.")
    };

    /* it is a few hundred bytes, and output is not to be walked for it */

    if (msg->type != NGX_KEXEC_MSG_STREAM
        || msg->content.len > 1024
        || ngx_kexec_json_member(&msg->content, "text", &value) != NGX_OK
        || ngx_kexec_json_string(&value, &inside) != NGX_OK)
    {
        return 0;
    }

    for (i = 0; i < 2; i++) {

        if (inside.len > notices[i].len
            && ngx_memcmp(inside.data, notices[i].data, notices[i].len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


void
ngx_kexec_message_reply(ngx_kexec_message_t *msg, ngx_kexec_reply_t *reply)
{
    ngx_str_t               key, value, inside;
    ngx_kexec_json_iter_t   iter;

    ngx_memzero(reply, sizeof(ngx_kexec_reply_t));

    if (msg->type != NGX_KEXEC_MSG_EXECUTE_REPLY
        && msg->type != NGX_KEXEC_MSG_ERROR)
    {
        return;
    }

    if (ngx_kexec_json_open(&iter, &msg->content) != NGX_OK) {
        return;
    }

    while (ngx_kexec_json_next(&iter, &key, &value) == NGX_OK) {

        if (ngx_kexec_json_equal(&key, "status")) {
            reply->status = NGX_KEXEC_REPLY_OTHER;

            if (ngx_kexec_json_string(&value, &inside) == NGX_OK) {
                reply->status = ngx_kexec_message_word(
                                          ngx_kexec_message_replies, &inside);
            }

        } else if (ngx_kexec_json_equal(&key, "ename")) {
            reply->ename = value;

        } else if (ngx_kexec_json_equal(&key, "evalue")) {
            reply->evalue = value;

        } else if (ngx_kexec_json_equal(&key, "traceback")) {
            reply->traceback = value;

        } else if (ngx_kexec_json_equal(&key, "payload")) {
            reply->exits = ngx_kexec_message_ask_exit(&value) ? 1 : 0;
        }
    }

    if (msg->type == NGX_KEXEC_MSG_ERROR) {
        reply->status = NGX_KEXEC_REPLY_ERROR;
    }
}


/* exit(), quit(), R's q(); but not exit(keep_kernel=True) */

static ngx_uint_t
ngx_kexec_message_ask_exit(ngx_str_t *payload)
{
    ngx_str_t              element, value, inside;
    ngx_kexec_json_iter_t  iter;

    if (ngx_kexec_json_type(payload) != NGX_KEXEC_JSON_ARRAY) {
        return 0;
    }

    (void) ngx_kexec_json_open(&iter, payload);

    while (ngx_kexec_json_next(&iter, NULL, &element) == NGX_OK) {

        if (ngx_kexec_json_member(&element, "source", &value) == NGX_OK
            && ngx_kexec_json_string(&value, &inside) == NGX_OK
            && ngx_kexec_json_equal(&inside, "ask_exit")
            && (ngx_kexec_json_member(&element, "keepkernel", &value) != NGX_OK
                || ngx_kexec_json_type(&value) != NGX_KEXEC_JSON_TRUE))
        {
            return 1;
        }
    }

    return 0;
}


ngx_uint_t
ngx_kexec_message_same_error(ngx_kexec_reply_t *reply,
    ngx_kexec_reply_t *error)
{
    if (ngx_kexec_message_empty_text(&reply->ename)
        && ngx_kexec_message_empty_text(&reply->evalue))
    {

        /* some kernels say there that it failed, and no more */

        return 1;
    }

    if (!ngx_kexec_message_same(&reply->ename, &error->ename)
        || !ngx_kexec_message_same(&reply->evalue, &error->evalue))
    {
        return 0;
    }

    return ngx_kexec_message_same(&reply->traceback, &error->traceback) ? 2
                                                                        : 1;
}


static ngx_uint_t
ngx_kexec_message_empty_text(ngx_str_t *value)
{
    ngx_str_t  inside;

    switch (ngx_kexec_json_type(value)) {

    case NGX_KEXEC_JSON_NONE:
    case NGX_KEXEC_JSON_NULL:
        return 1;

    default:
        return ngx_kexec_json_string(value, &inside) == NGX_OK
               && inside.len == 0;
    }
}


/* spans: whoever writes a value twice writes the same bytes */

static ngx_uint_t
ngx_kexec_message_same(ngx_str_t *one, ngx_str_t *two)
{
    if (one->len != two->len) {
        return 0;
    }

    /* of what is not there, there is no data either */

    return one->len == 0 || ngx_memcmp(one->data, two->data, one->len) == 0;
}


static ngx_uint_t
ngx_kexec_message_word(ngx_kexec_message_word_t *words, ngx_str_t *inside)
{
    while (words->name && !ngx_kexec_json_equal(inside, words->name)) {
        words++;
    }

    return words->value;
}


static uint32_t
ngx_kexec_message_get32(u_char *p)
{
    return (uint32_t) p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}


static uint64_t
ngx_kexec_message_get64(u_char *p)
{
    uint64_t    n;
    ngx_uint_t  i;

    n = 0;

    for (i = 8; i--; /* void */ ) {
        n = (n << 8) | p[i];
    }

    return n;
}


static u_char *
ngx_kexec_message_put64(u_char *p, uint64_t n)
{
    ngx_uint_t  i;

    for (i = 0; i < 8; i++) {
        *p++ = (u_char) n;
        n >>= 8;
    }

    return p;
}


size_t
ngx_kexec_message_size(ngx_kexec_request_msg_t *req, ngx_kexec_format_e format)
{
    size_t  size;

    size = ngx_kexec_message_channel(req)->len
           + ngx_kexec_message_header_size(req)
           + ngx_kexec_message_parent(req)->len
           + ngx_kexec_message_content_size(req);

    if (format == NGX_KEXEC_FORMAT_V1) {
        return size + 8 * (1 + NGX_KEXEC_V1_OFFSETS)
               + ngx_kexec_message_empty.len;
    }

    return size + ngx_kexec_message_text_channel.len
           + ngx_kexec_message_text_header.len
           + ngx_kexec_message_text_parent.len
           + ngx_kexec_message_text_content.len
           + ngx_kexec_message_text_end.len;
}


u_char *
ngx_kexec_message_write(u_char *p, ngx_kexec_request_msg_t *req,
    ngx_kexec_format_e format)
{
    uint64_t    offset;
    ngx_str_t  *channel, *parent;

    channel = ngx_kexec_message_channel(req);
    parent = ngx_kexec_message_parent(req);

    if (format == NGX_KEXEC_FORMAT_V1) {
        offset = 8 * (1 + NGX_KEXEC_V1_OFFSETS);

        p = ngx_kexec_message_put64(p, NGX_KEXEC_V1_OFFSETS);
        p = ngx_kexec_message_put64(p, offset);

        offset += channel->len;
        p = ngx_kexec_message_put64(p, offset);

        offset += ngx_kexec_message_header_size(req);
        p = ngx_kexec_message_put64(p, offset);

        offset += parent->len;
        p = ngx_kexec_message_put64(p, offset);

        offset += ngx_kexec_message_empty.len;
        p = ngx_kexec_message_put64(p, offset);

        offset += ngx_kexec_message_content_size(req);
        p = ngx_kexec_message_put64(p, offset);

        p = ngx_kexec_message_cpystr(p, channel);
        p = ngx_kexec_message_header_write(p, req);
        p = ngx_kexec_message_cpystr(p, parent);
        p = ngx_kexec_message_cpystr(p, &ngx_kexec_message_empty);

        return ngx_kexec_message_content_write(p, req);
    }

    p = ngx_kexec_message_cpystr(p, &ngx_kexec_message_text_channel);
    p = ngx_kexec_message_cpystr(p, channel);
    p = ngx_kexec_message_cpystr(p, &ngx_kexec_message_text_header);
    p = ngx_kexec_message_header_write(p, req);
    p = ngx_kexec_message_cpystr(p, &ngx_kexec_message_text_parent);
    p = ngx_kexec_message_cpystr(p, parent);
    p = ngx_kexec_message_cpystr(p, &ngx_kexec_message_text_content);
    p = ngx_kexec_message_content_write(p, req);

    return ngx_kexec_message_cpystr(p, &ngx_kexec_message_text_end);
}


static ngx_str_t *
ngx_kexec_message_channel(ngx_kexec_request_msg_t *req)
{
    return req->input ? &ngx_kexec_message_stdin : &ngx_kexec_message_shell;
}


static ngx_str_t *
ngx_kexec_message_parent(ngx_kexec_request_msg_t *req)
{
    return req->parent.len ? &req->parent : &ngx_kexec_message_empty;
}


static ngx_str_t *
ngx_kexec_message_kind(ngx_kexec_request_msg_t *req)
{
    return req->input ? &ngx_kexec_message_header_input
           : req->info ? &ngx_kexec_message_header_info
                       : &ngx_kexec_message_header_execute;
}


static size_t
ngx_kexec_message_header_size(ngx_kexec_request_msg_t *req)
{
    return ngx_kexec_message_header_id.len + req->id.len
           + ngx_kexec_message_header_session.len + req->session.len
           + ngx_kexec_message_kind(req)->len
           + req->date.len
           + ngx_kexec_message_header_end.len;
}


static u_char *
ngx_kexec_message_header_write(u_char *p, ngx_kexec_request_msg_t *req)
{
    p = ngx_kexec_message_cpystr(p, &ngx_kexec_message_header_id);
    p = ngx_kexec_message_cpystr(p, &req->id);
    p = ngx_kexec_message_cpystr(p, &ngx_kexec_message_header_session);
    p = ngx_kexec_message_cpystr(p, &req->session);
    p = ngx_kexec_message_cpystr(p, ngx_kexec_message_kind(req));
    p = ngx_kexec_message_cpystr(p, &req->date);

    return ngx_kexec_message_cpystr(p, &ngx_kexec_message_header_end);
}


static size_t
ngx_kexec_message_content_size(ngx_kexec_request_msg_t *req)
{
    if (req->input) {
        return ngx_kexec_message_content_input.len;
    }

    if (req->info) {
        return ngx_kexec_message_empty.len;
    }

    return ngx_kexec_message_content_code.len
           + ngx_kexec_json_text_size(&req->code)
           + (req->silent ? ngx_kexec_message_content_silent.len
                          : ngx_kexec_message_content_loud.len);
}


static u_char *
ngx_kexec_message_content_write(u_char *p, ngx_kexec_request_msg_t *req)
{
    ngx_kexec_out_t  out;

    if (req->input) {
        return ngx_kexec_message_cpystr(p, &ngx_kexec_message_content_input);
    }

    if (req->info) {
        return ngx_kexec_message_cpystr(p, &ngx_kexec_message_empty);
    }

    p = ngx_kexec_message_cpystr(p, &ngx_kexec_message_content_code);

    out.pos = p;
    out.end = p + ngx_kexec_json_text_size(&req->code);
    out.more = ngx_kexec_message_full;
    out.data = NULL;

    (void) ngx_kexec_json_write_text(&out, &req->code);

    return ngx_kexec_message_cpystr(out.pos, req->silent
                                          ? &ngx_kexec_message_content_silent
                                          : &ngx_kexec_message_content_loud);
}


/* never called: the window is as large as what is written */

static ngx_int_t
ngx_kexec_message_full(ngx_kexec_out_t *out)
{
    (void) out;

    return NGX_ERROR;
}
