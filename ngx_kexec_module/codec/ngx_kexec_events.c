
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_json.h>
#include <ngx_kexec_message.h>
#include <ngx_kexec_events.h>


#define NGX_KEXEC_EVENT_FORMATS  12

#define ngx_kexec_event_literal(out, text)                                   \
    ngx_kexec_out_write(out, text, sizeof(text) - 1)


typedef struct {
    const char  *mime;
    ngx_str_t    member;
} ngx_kexec_event_format_t;


static ngx_int_t ngx_kexec_event_stream(ngx_kexec_out_t *out,
    ngx_kexec_message_t *msg);
static ngx_int_t ngx_kexec_event_timestamp(ngx_kexec_out_t *out,
    ngx_str_t *date);
static ngx_int_t ngx_kexec_event_result(ngx_kexec_out_t *out,
    ngx_kexec_message_t *msg);
static ngx_int_t ngx_kexec_event_text(ngx_kexec_out_t *out, ngx_str_t *value);
static ngx_int_t ngx_kexec_event_extra(ngx_kexec_out_t *out, ngx_str_t *bundle);
static ngx_uint_t ngx_kexec_event_format(ngx_str_t *mime);
static u_char ngx_kexec_event_first_quote(ngx_str_t *inside, size_t *len);
static u_char ngx_kexec_event_last_quote(ngx_str_t *inside, size_t *len);
static u_char ngx_kexec_event_escaped_quote(u_char *p);
static ngx_int_t ngx_kexec_event_execution_count(ngx_kexec_out_t *out,
    ngx_kexec_message_t *msg);
static ngx_int_t ngx_kexec_event_reply(ngx_kexec_out_t *out,
    ngx_kexec_message_t *msg);
static ngx_int_t ngx_kexec_event_input(ngx_kexec_out_t *out,
    ngx_kexec_message_t *msg);
static ngx_int_t ngx_kexec_event_string(ngx_kexec_out_t *out,
    ngx_str_t *value);
static ngx_int_t ngx_kexec_event_traceback(ngx_kexec_out_t *out,
    ngx_str_t *value, const char *end);
static ngx_int_t ngx_kexec_event_date(ngx_kexec_out_t *out,
    ngx_kexec_message_t *msg);


/* the members of a result, in the order in which they are written */

static ngx_kexec_event_format_t
    ngx_kexec_event_formats[NGX_KEXEC_EVENT_FORMATS] =
{
    { "text/plain", ngx_string(", \"text\": ") },
    { "text/html", ngx_string(", \"html\": ") },
    { "text/markdown", ngx_string(", \"markdown\": ") },
    { "image/svg+xml", ngx_string(", \"svg\": ") },
    { "image/png", ngx_string(", \"png\": ") },
    { "image/jpeg", ngx_string(", \"jpeg\": ") },
    { "application/pdf", ngx_string(", \"pdf\": ") },
    { "text/latex", ngx_string(", \"latex\": ") },
    { "application/json", ngx_string(", \"json\": ") },
    { "application/javascript", ngx_string(", \"javascript\": ") },
    { "e2b/data", ngx_string(", \"data\": ") },
    { "e2b/chart", ngx_string(", \"chart\": ") }
};


ngx_int_t
ngx_kexec_event_message(ngx_kexec_out_t *out, ngx_kexec_message_t *msg)
{
    switch (msg->type) {

    case NGX_KEXEC_MSG_STREAM:
        return ngx_kexec_event_stream(out, msg);

    case NGX_KEXEC_MSG_DISPLAY_DATA:
    case NGX_KEXEC_MSG_EXECUTE_RESULT:
        return ngx_kexec_event_result(out, msg);

    case NGX_KEXEC_MSG_EXECUTE_INPUT:
        return ngx_kexec_event_execution_count(out, msg);

    case NGX_KEXEC_MSG_ERROR:
    case NGX_KEXEC_MSG_EXECUTE_REPLY:
        return ngx_kexec_event_reply(out, msg);

    case NGX_KEXEC_MSG_INPUT_REQUEST:
        return ngx_kexec_event_input(out, msg);

    default:
        return NGX_DECLINED;
    }
}


ngx_int_t
ngx_kexec_event_unconfirmed(ngx_kexec_out_t *out, ngx_kexec_message_t *msg)
{
    ngx_kexec_reply_t  error;

    ngx_kexec_message_reply(msg, &error);

    if (error.status != NGX_KEXEC_REPLY_ERROR) {
        return NGX_DECLINED;
    }

    if (ngx_kexec_event_literal(out, "{\"type\": \"stderr\", \"text\": \"")
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (error.traceback.len > sizeof("[]") - 1) {

        if (ngx_kexec_event_traceback(out, &error.traceback, "\\n") != NGX_OK) {
            return NGX_ERROR;
        }

    } else if (ngx_kexec_event_string(out, &error.ename) != NGX_OK
               || ngx_kexec_event_literal(out, ": ") != NGX_OK
               || ngx_kexec_event_string(out, &error.evalue) != NGX_OK
               || ngx_kexec_event_literal(out, "\\n") != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_kexec_event_date(out, msg);
}


ngx_int_t
ngx_kexec_event_error(ngx_kexec_out_t *out, const char *name,
    ngx_str_t *value)
{
    ngx_str_t  text;

    text.data = (u_char *) name;
    text.len = ngx_strlen(name);

    if (ngx_kexec_event_literal(out, "{\"type\": \"error\", \"name\": \"")
        != NGX_OK
        || ngx_kexec_json_write_text(out, &text) != NGX_OK
        || ngx_kexec_event_literal(out, "\", \"value\": \"") != NGX_OK
        || ngx_kexec_json_write_text(out, value) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_kexec_event_literal(out, "\", \"traceback\": \"\"}\n");
}


ngx_int_t
ngx_kexec_event_dropped(ngx_kexec_out_t *out, ngx_str_t *reason)
{
    if (ngx_kexec_event_literal(out,
                            "{\"type\": \"output_dropped\", \"reason\": \"")
        != NGX_OK
        || ngx_kexec_json_write_text(out, reason) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_kexec_event_literal(out, "\"}\n");
}


ngx_int_t
ngx_kexec_event_keepalive(ngx_kexec_out_t *out)
{
    return ngx_kexec_event_literal(out, "{\"type\": \"keepalive\"}\n");
}


ngx_int_t
ngx_kexec_event_end(ngx_kexec_out_t *out)
{
    return ngx_kexec_event_literal(out, "{\"type\": \"end_of_execution\"}\n");
}


static ngx_int_t
ngx_kexec_event_stream(ngx_kexec_out_t *out, ngx_kexec_message_t *msg)
{
    ngx_int_t               rc;
    ngx_str_t               key, value, name, text;
    ngx_kexec_json_iter_t   iter;

    if (ngx_kexec_json_open(&iter, &msg->content) != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_str_null(&name);
    ngx_str_null(&text);

    while (ngx_kexec_json_next(&iter, &key, &value) == NGX_OK) {

        if (ngx_kexec_json_equal(&key, "name")) {
            name = value;

        } else if (ngx_kexec_json_equal(&key, "text")) {
            text = value;
        }
    }

    if (ngx_kexec_json_type(&text) != NGX_KEXEC_JSON_STRING
        || ngx_kexec_json_string(&name, &name) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    if (ngx_kexec_json_equal(&name, "stdout")) {
        rc = ngx_kexec_event_literal(out,
                                     "{\"type\": \"stdout\", \"text\": \"");

    } else if (ngx_kexec_json_equal(&name, "stderr")) {
        rc = ngx_kexec_event_literal(out,
                                     "{\"type\": \"stderr\", \"text\": \"");

    } else {
        return NGX_DECLINED;
    }

    /* without the quotes, which the text has of its own */

    text.data++;
    text.len -= 2;

    if (rc != NGX_OK || ngx_kexec_json_write_inside(out, &text) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_kexec_event_date(out, msg);
}


/* the end of an event of output, behind the inside of its text */

static ngx_int_t
ngx_kexec_event_date(ngx_kexec_out_t *out, ngx_kexec_message_t *msg)
{
    ngx_str_t  value, date;

    /* a message without a date still has an output that counts */

    if (ngx_kexec_json_member(&msg->header, "date", &value) != NGX_OK
        || ngx_kexec_json_string(&value, &date) != NGX_OK)
    {
        ngx_str_null(&date);
    }

    if (ngx_kexec_event_literal(out, "\", \"timestamp\": \"") != NGX_OK
        || ngx_kexec_event_timestamp(out, &date) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_kexec_event_literal(out, "\"}\n");
}


/* a date as Python's isoformat() has it */

static ngx_int_t
ngx_kexec_event_timestamp(ngx_kexec_out_t *out, ngx_str_t *date)
{
    ngx_str_t  text;

    text = *date;

    if (text.len == 0 || text.data[text.len - 1] != 'Z') {
        return ngx_kexec_json_write_inside(out, &text);
    }

    text.len--;

    if (ngx_kexec_json_write_inside(out, &text) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_kexec_event_literal(out, "+00:00");
}


static ngx_int_t
ngx_kexec_event_result(ngx_kexec_out_t *out, ngx_kexec_message_t *msg)
{
    ngx_int_t               rc;
    ngx_str_t               bundle, mime, value;
    ngx_str_t               values[NGX_KEXEC_EVENT_FORMATS];
    ngx_uint_t              i, extra;
    ngx_kexec_json_iter_t   iter;

    if (ngx_kexec_json_member(&msg->content, "data", &bundle) != NGX_OK
        || ngx_kexec_json_type(&bundle) != NGX_KEXEC_JSON_OBJECT)
    {
        return NGX_DECLINED;
    }

    ngx_memzero(values, sizeof(values));

    (void) ngx_kexec_json_open(&iter, &bundle);

    extra = 0;

    while (ngx_kexec_json_next(&iter, &mime, &value) == NGX_OK) {
        i = ngx_kexec_event_format(&mime);

        if (i < NGX_KEXEC_EVENT_FORMATS) {
            values[i] = value;

        } else {
            extra = 1;
        }
    }

    if (ngx_kexec_event_literal(out, "{\"type\": \"result\"") != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < NGX_KEXEC_EVENT_FORMATS; i++) {

        if (values[i].len == 0
            || ngx_kexec_json_type(&values[i]) == NGX_KEXEC_JSON_NULL)
        {
            continue;
        }

        if (ngx_kexec_out_write(out, ngx_kexec_event_formats[i].member.data,
                                ngx_kexec_event_formats[i].member.len)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (i == 0) {
            rc = ngx_kexec_event_text(out, &values[i]);

        } else {
            rc = ngx_kexec_json_write_value(out, &values[i]);
        }

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (ngx_kexec_event_literal(out, ", \"extra\": {") != NGX_OK) {
        return NGX_ERROR;
    }

    if (extra && ngx_kexec_event_extra(out, &bundle) != NGX_OK) {
        return NGX_ERROR;
    }

    if (msg->type == NGX_KEXEC_MSG_EXECUTE_RESULT) {
        return ngx_kexec_event_literal(out, "}, \"is_main_result\": true}\n");
    }

    return ngx_kexec_event_literal(out, "}, \"is_main_result\": false}\n");
}


/*
 * The quotes around Python's repr() of a string are left out, which the
 * reference does to all text that has the same quote on both ends.
 */

static ngx_int_t
ngx_kexec_event_text(ngx_kexec_out_t *out, ngx_str_t *value)
{
    u_char     quote;
    size_t     first, last;
    ngx_str_t  text;

    if (ngx_kexec_json_string(value, &text) != NGX_OK) {
        return ngx_kexec_json_write_value(out, value);
    }

    quote = ngx_kexec_event_first_quote(&text, &first);

    if (quote && quote == ngx_kexec_event_last_quote(&text, &last)) {

        if (text.len == first) {
            /* a single quote mark is both ends */
            text.len = 0;

        } else {
            text.data += first;
            text.len -= first + last;
        }
    }

    if (ngx_kexec_event_literal(out, "\"") != NGX_OK
        || ngx_kexec_json_write_inside(out, &text) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_kexec_event_literal(out, "\"");
}


static ngx_int_t
ngx_kexec_event_extra(ngx_kexec_out_t *out, ngx_str_t *bundle)
{
    ngx_str_t               mime, value;
    ngx_uint_t              n;
    ngx_kexec_json_iter_t   iter;

    (void) ngx_kexec_json_open(&iter, bundle);

    n = 0;

    while (ngx_kexec_json_next(&iter, &mime, &value) == NGX_OK) {

        if (ngx_kexec_event_format(&mime) < NGX_KEXEC_EVENT_FORMATS) {
            continue;
        }

        if (n++ && ngx_kexec_event_literal(out, ", ") != NGX_OK) {
            return NGX_ERROR;
        }

        if (ngx_kexec_event_literal(out, "\"") != NGX_OK
            || ngx_kexec_json_write_inside(out, &mime) != NGX_OK
            || ngx_kexec_event_literal(out, "\": ") != NGX_OK
            || ngx_kexec_json_write_value(out, &value) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_kexec_event_format(ngx_str_t *mime)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_KEXEC_EVENT_FORMATS; i++) {
        if (ngx_kexec_json_equal(mime, ngx_kexec_event_formats[i].mime)) {
            break;
        }
    }

    return i;
}


/* the quote mark that a string begins with and its length, or 0 */

static u_char
ngx_kexec_event_first_quote(ngx_str_t *inside, size_t *len)
{
    u_char  *p;

    if (inside->len == 0) {
        return 0;
    }

    p = inside->data;

    if (*p == '\'') {
        *len = 1;
        return '\'';
    }

    if (*p != '\\') {
        return 0;
    }

    if (p[1] == '"') {
        *len = 2;
        return '"';
    }

    if (p[1] == 'u') {
        *len = 6;
        return ngx_kexec_event_escaped_quote(p);
    }

    return 0;
}


static u_char
ngx_kexec_event_last_quote(ngx_str_t *inside, size_t *len)
{
    u_char      *p, *end;
    ngx_uint_t   odd;

    end = inside->data + inside->len;

    if (end[-1] == '\'') {
        *len = 1;
        return '\'';
    }

    /* a '"' inside a string always has its backslash */

    if (end[-1] == '"') {
        *len = 2;
        return '"';
    }

    if (inside->len < 6) {
        return 0;
    }

    /* six bytes as "\u0027": not if the backslash is itself escaped */

    odd = 0;

    for (p = end - 6; p >= inside->data && *p == '\\'; p--) {
        odd = !odd;
    }

    if (!odd) {
        return 0;
    }

    *len = 6;

    return ngx_kexec_event_escaped_quote(end - 6);
}


static u_char
ngx_kexec_event_escaped_quote(u_char *p)
{
    if (ngx_memcmp(p, "\\u0022", 6) == 0) {
        return '"';
    }

    if (ngx_memcmp(p, "\\u0027", 6) == 0) {
        return '\'';
    }

    return 0;
}


static ngx_int_t
ngx_kexec_event_execution_count(ngx_kexec_out_t *out, ngx_kexec_message_t *msg)
{
    u_char     *last;
    ngx_str_t   value;

    if (ngx_kexec_json_member(&msg->content, "execution_count", &value)
        != NGX_OK
        || ngx_kexec_json_type(&value) != NGX_KEXEC_JSON_NUMBER)
    {
        return NGX_DECLINED;
    }

    /* NaN and Infinity count nothing */

    last = value.data + value.len - 1;

    if (*last < '0' || *last > '9') {
        return NGX_DECLINED;
    }

    if (ngx_kexec_event_literal(out, "{\"type\": \"number_of_executions\", "
                                     "\"execution_count\": ")
        != NGX_OK
        || ngx_kexec_json_write_value(out, &value) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_kexec_event_literal(out, "}\n");
}


static ngx_int_t
ngx_kexec_event_reply(ngx_kexec_out_t *out, ngx_kexec_message_t *msg)
{
    ngx_kexec_reply_t  reply;

    ngx_kexec_message_reply(msg, &reply);

    if (reply.status != NGX_KEXEC_REPLY_ERROR) {
        return NGX_DECLINED;
    }

    if (ngx_kexec_event_literal(out, "{\"type\": \"error\", \"name\": \"")
        != NGX_OK
        || ngx_kexec_event_string(out, &reply.ename) != NGX_OK
        || ngx_kexec_event_literal(out, "\", \"value\": \"") != NGX_OK
        || ngx_kexec_event_string(out, &reply.evalue) != NGX_OK
        || ngx_kexec_event_literal(out, "\", \"traceback\": \"") != NGX_OK
        || ngx_kexec_event_traceback(out, &reply.traceback, "") != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_kexec_event_literal(out, "\"}\n");
}


static ngx_int_t
ngx_kexec_event_input(ngx_kexec_out_t *out, ngx_kexec_message_t *msg)
{
    ngx_str_t  prompt;

    if (ngx_kexec_json_member(&msg->content, "prompt", &prompt) != NGX_OK) {
        ngx_str_null(&prompt);
    }

    if (ngx_kexec_event_literal(out, "{\"type\": \"stderr\", \"text\": \"")
        != NGX_OK
        || ngx_kexec_event_string(out, &prompt) != NGX_OK
        || ngx_kexec_event_literal(out, "\\nThe code asks for input, and there "
                                   "is nobody to ask: it got an empty line\\n")
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_kexec_event_date(out, msg);
}


/* the inside of a string: kernels throw numbers and objects too */

static ngx_int_t
ngx_kexec_event_string(ngx_kexec_out_t *out, ngx_str_t *value)
{
    ngx_str_t  inside;

    if (ngx_kexec_json_string(value, &inside) == NGX_OK) {
        return ngx_kexec_json_write_inside(out, &inside);
    }

    if (ngx_kexec_json_type(value) == NGX_KEXEC_JSON_NULL) {
        return NGX_OK;
    }

    return ngx_kexec_json_write_text(out, value);
}


/* its lines, each with an end, which is written as it stands */

static ngx_int_t
ngx_kexec_event_traceback(ngx_kexec_out_t *out, ngx_str_t *value,
    const char *end)
{
    size_t                  len;
    ngx_str_t               element;
    ngx_kexec_json_iter_t   iter;

    len = ngx_strlen(end);

    if (ngx_kexec_json_type(value) != NGX_KEXEC_JSON_ARRAY) {

        if (ngx_kexec_event_string(out, value) != NGX_OK) {
            return NGX_ERROR;
        }

        return ngx_kexec_out_write(out, end, len);
    }

    (void) ngx_kexec_json_open(&iter, value);

    while (ngx_kexec_json_next(&iter, NULL, &element) == NGX_OK) {

        if (ngx_kexec_event_string(out, &element) != NGX_OK
            || ngx_kexec_out_write(out, end, len) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
