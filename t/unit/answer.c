
/*
 * Copyright (C) the ngx_kexec_module authors
 */


/*
 * Answers questions on stdin, for the tests that are written in Python:
 *
 *   question: what (1 byte), length (u32, little endian), bytes
 *   answer:   '0' for NGX_OK, '1' for NGX_DECLINED; length, bytes
 *
 *   w   ngx_kexec_json_write_value() of what ngx_kexec_json_check() takes
 *   x   ngx_kexec_json_write_text()
 *   e   the event of a message; its first byte is the format
 *   p   channel, type, state, verdict, parent_id of such a message
 *   q   a request; the first bytes are format, info, silent
 *
 * Whatever is written, is written through windows of several sizes.
 */


#include "kexec_unit.h"
#include <ngx_kexec_message.h>
#include <ngx_kexec_events.h>


static const size_t  windows[] = { 1 << 15, 64, 65, 100, 4096 };


static void
die(const char *text)
{
    fprintf(stderr, "answer: %s\n", text);
    abort();
}


static int
read_all(void *data, size_t len)
{
    return fread(data, 1, len, stdin) == len;
}


static void
answer(ngx_int_t rc, const void *data, size_t len)
{
    uint32_t  n = len;

    putchar(rc == NGX_OK ? '0' : '1');
    fwrite(&n, 1, 4, stdout);
    fwrite(data, 1, len, stdout);
    fflush(stdout);
}


static ngx_int_t
write_once(ngx_kexec_out_t *out, int what, ngx_str_t *bytes)
{
    ngx_str_t            value;
    ngx_kexec_message_t  msg;

    switch (what) {

    case 'w':
        if (ngx_kexec_json_check(bytes, &value) != NGX_OK) {
            return NGX_DECLINED;
        }

        return ngx_kexec_json_write_value(out, &value);

    case 'x':
        return ngx_kexec_json_write_text(out, bytes);

    default: /* 'e' */
        value.data = bytes->data + 1;
        value.len = bytes->len - 1;

        if (ngx_kexec_message_parse(&value, bytes->data[0], &msg) != NGX_OK) {
            return NGX_DECLINED;
        }

        return ngx_kexec_event_message(out, &msg);
    }
}


static void
answer_written(int what, ngx_str_t *bytes)
{
    size_t       i;
    ngx_int_t    rc, again;
    unit_sink_t  sink, other;

    rc = write_once(unit_sink_open(&sink, windows[0]), what, bytes);
    unit_sink_take(&sink);

    if (rc == NGX_ERROR) {
        die("an error");
    }

    if (rc == NGX_DECLINED && sink.len) {
        die("something was written");
    }

    if (what == 'x' && sink.len != ngx_kexec_json_text_size(bytes)) {
        die("not the promised size");
    }

    for (i = 1; i < sizeof(windows) / sizeof(windows[0]); i++) {
        again = write_once(unit_sink_open(&other, windows[i]), what, bytes);
        unit_sink_take(&other);

        if (again != rc || other.len != sink.len
            || memcmp(other.data, sink.data, sink.len) != 0)
        {
            die("the window's size makes a difference");
        }

        unit_sink_close(&other);
    }

    answer(rc, sink.data, sink.len);

    unit_sink_close(&sink);
}


static void
answer_parsed(ngx_str_t *bytes)
{
    char                 buf[8192];
    ngx_int_t            len;
    ngx_str_t            text;
    ngx_kexec_reply_t    reply;
    ngx_kexec_message_t  msg;

    text.data = bytes->data + 1;
    text.len = bytes->len - 1;

    if (ngx_kexec_message_parse(&text, bytes->data[0], &msg) != NGX_OK) {
        answer(NGX_DECLINED, "", 0);
        return;
    }

    ngx_kexec_message_reply(&msg, &reply);

    len = snprintf(buf, sizeof(buf), "%d %d %d %d %.*s", msg.channel,
                   msg.type, ngx_kexec_message_state(&msg), reply.status,
                   (int) msg.parent_id.len, (char *) msg.parent_id.data);

    answer(NGX_OK, buf, len);
}


static void
answer_request(ngx_str_t *bytes)
{
    size_t                    size;
    u_char                   *p;
    ngx_kexec_request_msg_t   req;

    memset(&req, 0, sizeof(req));

    req.id = unit_str("0123-id");
    req.session = unit_str("my-session");
    req.date = unit_str("2026-11-29T14:32:25.589513Z");
    req.info = bytes->data[1];
    req.silent = bytes->data[2];
    req.code.data = bytes->data + 3;
    req.code.len = bytes->len - 3;

    size = ngx_kexec_message_size(&req, bytes->data[0]);
    p = malloc(size);

    if (ngx_kexec_message_write(p, &req, bytes->data[0]) != p + size) {
        die("not the promised size");
    }

    answer(NGX_OK, p, size);
    free(p);
}


int
main(void)
{
    int        what;
    uint32_t   len;
    ngx_str_t  bytes;

    while ((what = getchar()) != EOF) {

        if (!read_all(&len, 4)) {
            die("no length");
        }

        bytes.len = len;
        bytes.data = malloc(len ? len : 1);

        if (!read_all(bytes.data, len)) {
            die("too few bytes");
        }

        switch (what) {

        case 'p':
            answer_parsed(&bytes);
            break;

        case 'q':
            answer_request(&bytes);
            break;

        default:
            answer_written(what, &bytes);
        }

        free(bytes.data);
    }

    return 0;
}
