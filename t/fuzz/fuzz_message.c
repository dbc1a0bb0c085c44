
/*
 * Copyright (C) the ngx_kexec_module authors
 */


/*
 * Messages in all layouts and the events that are made of them.  The first
 * byte is the layout: text, binary, v1, or v1 that is packed here of parts
 * between bytes 0x1e, which no JSON has.
 *
 * Whatever comes in, what goes out is one line of ASCII that is JSON by
 * jansson, the same through windows of every size; or it is nothing.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_message.h>
#include <ngx_kexec_events.h>

#include <jansson.h>

#include "fuzz_out.h"


#define PARTS     8
#define SEPARATE  0x1e


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


/* jansson takes no lone surrogates */

static void
pair_surrogates(u_char *p, size_t len)
{
    size_t    i;
    ngx_int_t  high;

    high = -1;

    for (i = 0; i + 1 < len; /* void */ ) {

        if (p[i] != '\\') {
            i++;
            high = -1;
            continue;
        }

        if (p[i + 1] != 'u') {
            i += 2;
            high = -1;
            continue;
        }

        if (strncasecmp((char *) p + i + 2, "d", 1) == 0
            && strchr("89abAB", p[i + 3]))
        {
            if (high >= 0) {
                memcpy(p + high, "\\ufffd", 6);
            }

            high = i;

            if (i + 12 > len || p[i + 6] != '\\' || p[i + 7] != 'u'
                || strncasecmp((char *) p + i + 8, "d", 1) != 0
                || strchr("cdefCDEF", p[i + 9]) == NULL)
            {
                memcpy(p + i, "\\ufffd", 6);
                high = -1;
            }

            i += 6;
            continue;
        }

        if (strncasecmp((char *) p + i + 2, "d", 1) == 0
            && strchr("cdefCDEF", p[i + 3]))
        {
            if (high < 0) {
                memcpy(p + i, "\\ufffd", 6);
            }
        }

        high = -1;
        i += 6;
    }
}


static void
check_json(u_char *p, size_t len)
{
    json_t        *json;
    ngx_str_t      text, value;
    json_error_t   error;

    text.data = p;
    text.len = len;

    check(ngx_kexec_json_check(&text, &value) == NGX_OK);

    pair_surrogates(p, len);

    json = json_loadb((char *) p, len, JSON_ALLOW_NUL|JSON_DECODE_ANY, &error);

    if (json == NULL) {

        /* numbers that no double holds and such names are JSON all the same */

        switch (json_error_code(&error)) {

        case json_error_numeric_overflow:
        case json_error_null_byte_in_key:
            break;

        default:
            fprintf(stderr, "%s: %.*s\n", error.text, (int) len, (char *) p);
            abort();
        }
    }

    json_decref(json);
}


static void
check_ascii(u_char *p, size_t len)
{
    for ( /* void */ ; len; len--, p++) {
        check(*p >= 0x20 && *p <= 0x7e);
    }
}


static ngx_int_t
write_event(ngx_kexec_out_t *out, void *what)
{
    return ngx_kexec_event_message(out, what);
}


static ngx_int_t
write_unconfirmed(ngx_kexec_out_t *out, void *what)
{
    return ngx_kexec_event_unconfirmed(out, what);
}


static ngx_int_t
write_value(ngx_kexec_out_t *out, void *what)
{
    return ngx_kexec_json_write_value(out, what);
}


static ngx_int_t
write_text(ngx_kexec_out_t *out, void *what)
{
    return ngx_kexec_json_write_text(out, what);
}


static void
check_event(ngx_kexec_message_t *msg, size_t size,
    ngx_int_t (*write)(ngx_kexec_out_t *out, void *what))
{
    sink_t     sink;
    ngx_int_t  rc;

    rc = write_all(&sink, write, msg, size);

    if (rc != NGX_OK) {
        check(rc == NGX_DECLINED);
        check(sink.len == 0);

    } else {
        check(sink.len > 0 && sink.data[sink.len - 1] == '\n');
        check_ascii(sink.data, sink.len - 1);
        check_json(sink.data, sink.len - 1);
    }

    free(sink.data);
}


/* a value that was written is written again without a change */

static void
check_value(ngx_str_t *text, size_t size)
{
    sink_t     sink, again;
    ngx_str_t  value, copy;

    if (ngx_kexec_json_check(text, &value) != NGX_OK) {
        return;
    }

    check(write_all(&sink, write_value, &value, size) == NGX_OK);
    check_ascii(sink.data, sink.len);

    copy.data = sink.data;
    copy.len = sink.len;

    check(write_all(&again, write_value, &copy, size) == NGX_OK);
    check(again.len == sink.len);
    check(memcmp(again.data, sink.data, sink.len) == 0);

    check_json(sink.data, sink.len);

    free(sink.data);
    free(again.data);
}


static void
check_text(ngx_str_t *text, size_t size)
{
    sink_t   sink;
    u_char  *p;

    check(write_all(&sink, write_text, text, size) == NGX_OK);
    check(sink.len == ngx_kexec_json_text_size(text));

    p = malloc(sink.len + 2);
    p[0] = '"';

    if (sink.len) {
        memcpy(p + 1, sink.data, sink.len);
    }

    p[sink.len + 1] = '"';

    check_ascii(p, sink.len + 2);
    check_json(p, sink.len + 2);

    free(p);
    free(sink.data);
}


static ngx_str_t
pack(const uint8_t *data, size_t size)
{
    u_char          *p;
    uint64_t         offset;
    ngx_str_t        bytes;
    ngx_uint_t       n;
    const uint8_t   *part, *end, *last;

    bytes.data = malloc(8 * (PARTS + 2) + size);

    p = bytes.data + 8;
    last = data + size;
    n = 0;

    /* the offsets are those of PARTS parts, the last ones may be empty */

    offset = 8 * (PARTS + 2);
    memcpy(p, &offset, 8);
    p += 8;

    for (part = data; n < PARTS; n++) {
        end = memchr(part, SEPARATE, last - part);

        if (end == NULL || n == PARTS - 1) {
            end = last;
        }

        memcpy(bytes.data + offset, part, end - part);
        offset += end - part;

        memcpy(p, &offset, 8);
        p += 8;

        part = (end == last) ? last : end + 1;
    }

    offset = p - bytes.data - 8;
    offset /= 8;
    memcpy(bytes.data, &offset, 8);

    memcpy(&offset, p - 8, 8);
    bytes.len = offset;

    return bytes;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t                window;
    ngx_str_t             bytes, copy;
    ngx_uint_t            layout;
    ngx_kexec_reply_t     reply;
    ngx_kexec_message_t   msg;

    if (size < 1) {
        return 0;
    }

    layout = *data % 4;
    window = NGX_KEXEC_OUT_ROOM + *data / 4;

    data++;
    size--;

    if (layout == 3) {
        layout = NGX_KEXEC_FORMAT_V1;
        bytes = pack(data, size);

    } else {
        bytes.data = malloc(size ? size : 1);
        bytes.len = size;
        memcpy(bytes.data, data, size);
    }

    /* memory without a byte to spare */

    copy.len = bytes.len;
    copy.data = malloc(copy.len ? copy.len : 1);
    memcpy(copy.data, bytes.data, copy.len);
    free(bytes.data);

    if (ngx_kexec_message_parse(&copy, layout, &msg) == NGX_OK) {
        (void) ngx_kexec_message_state(&msg);

        ngx_kexec_message_reply(&msg, &reply);
        check(ngx_kexec_message_same_error(&reply, &reply) != 0);

        check_event(&msg, window, write_event);
        check_event(&msg, window, write_unconfirmed);
    }

    check_value(&copy, window);
    check_text(&copy, window);

    free(copy.data);

    return 0;
}
