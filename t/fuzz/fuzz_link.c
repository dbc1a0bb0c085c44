
/*
 * Copyright (C) the ngx_kexec_module authors
 */


/*
 * Messages put together from frames, across reads.  The input says what frames
 * Jupyter sends, up to a few megabytes of them, how reads cut them, what of
 * ours it takes, which allocation fails and when a handler closes the link.
 * The same messages must come whole and in order, however reads cut them.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_message.h>

/* what is in the messages does not matter here */

static ngx_int_t take_message(ngx_str_t *bytes, ngx_kexec_format_e format,
    ngx_kexec_message_t *msg);

#define ngx_kexec_message_parse  take_message

/* all but the opening of links; what that calls is not linked */

#include <ngx_kexec_link.c>
#include <ngx_kexec_link_frames.c>


#define check(condition)  if (!(condition)) { abort(); }

#define STREAM  (3 * 1024 * 1024)
#define NOISE   ((1 << 20) + 256)
#define EVENTS  4096


typedef struct {
    uint64_t  event[EVENTS];            /* messages, skips, and the end */
    size_t    n;
} story_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


volatile ngx_msec_t   ngx_current_msec;
ngx_queue_t           ngx_posted_events;
ngx_queue_t           ngx_posted_next_events;

static story_t        expected, *story;
static uint64_t       pings[EVENTS];
static size_t         npings;
static ngx_uint_t     any_ping;

static u_char        *stream, *whole, *noise;
static size_t         stream_len, stream_pos;

static uint32_t       cuts;             /* 0: reads are as large as can be */
static ngx_uint_t     allocations, failing, closing;


static uint32_t
next_cut(uint32_t n)
{
    cuts = cuts * 1664525 + 1013904223;

    return (cuts >> 8) % n;
}


static uint64_t
hash(const u_char *p, size_t len, uint64_t sum)
{
    size_t    i;
    uint64_t  n;

    for (i = 0; i + 8 <= len; i += 8) {
        memcpy(&n, p + i, 8);
        sum = (sum ^ n) * 0x9e3779b97f4a7c15 + 1;
    }

    for ( /* void */ ; i < len; i++) {
        sum = (sum ^ p[i]) * 0x9e3779b97f4a7c15 + 1;
    }

    return sum ^ len;
}


static void
tell(story_t *s, uint64_t event)
{
    if (s->n < EVENTS) {
        s->event[s->n++] = event;
    }
}


/* nginx */

void *
ngx_alloc(size_t size, ngx_log_t *log)
{
    check(log);

    if (++allocations == failing) {
        return NULL;
    }

    return malloc(size);
}


ngx_int_t
ngx_handle_read_event(ngx_event_t *rev, ngx_uint_t flags)
{
    check(rev && flags == 0);

    return NGX_OK;
}


ngx_int_t
ngx_handle_write_event(ngx_event_t *wev, size_t lowat)
{
    check(wev && lowat == 0);

    return NGX_OK;
}


static ssize_t
receive(ngx_connection_t *c, u_char *buf, size_t size)
{
    size_t  n, most;

    check(c && size);

    n = stream_len - stream_pos;

    if (cuts) {
        most = next_cut(8) ? next_cut(next_cut(4) ? 20 : 200000) : 0;
        n = ngx_min(n, most);
    }

    if (n == 0) {
        return NGX_AGAIN;
    }

    n = ngx_min(n, size);

    memcpy(buf, stream + stream_pos, n);
    stream_pos += n;

    return n;
}


/*
 * Each frame of ours is masked, and a pong has what a ping had, which is known
 * unless there are pings among bytes that stand in the stream as they are.
 */

static void
check_sent(u_char *p, size_t len)
{
    size_t   i, payload;
    u_char  *mask;

    check(len >= 6 && (p[1] & 0x80));

    payload = p[1] & 0x7f;
    mask = p + 2;

    check(len == 6 + payload);

    for (i = 0; i < payload; i++) {
        p[6 + i] ^= mask[i % 4];
    }

    if (p[0] == (0x80 | NGX_KEXEC_WS_PONG)) {

        if (any_ping) {
            return;
        }

        for (i = 0; i < npings; i++) {
            if (pings[i] == hash(p + 6, payload, 0)) {
                return;
            }
        }

        check(0);
    }

    check(p[0] == (0x80 | NGX_KEXEC_WS_CLOSE));
}


static ssize_t
send_bytes(ngx_connection_t *c, u_char *buf, size_t size)
{
    check(c);
    check_sent(buf, size);

    return size;
}


static ngx_chain_t *
send_chain(ngx_connection_t *c, ngx_chain_t *in, off_t limit)
{
    size_t         n, most;
    static u_char  frame[NGX_KEXEC_WS_HEADER + NGX_KEXEC_WS_CONTROL];
    static size_t  have;

    check(c && limit == 0);

    for ( /* void */ ; in; in = in->next) {

        if (in->buf->pos == in->buf->start) {
            have = 0;
        }

        n = in->buf->last - in->buf->pos;

        if (cuts) {
            most = next_cut(10);
            n = ngx_min(n, most);
        }

        check(have + n <= sizeof(frame));
        memcpy(frame + have, in->buf->pos, n);
        have += n;

        in->buf->pos += n;

        if (in->buf->pos < in->buf->last) {
            return in;
        }

        check_sent(frame, have);
        have = 0;
    }

    return NULL;
}


/* the owner of the link */

static uint64_t
message(ngx_str_t *bytes, ngx_uint_t text)
{
    return hash(bytes->data, bytes->len, text ? 3 : 5);
}


static ngx_int_t
is_message(uint64_t sum)
{
    return (sum >> 20) % 4 ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
take_message(ngx_str_t *bytes, ngx_kexec_format_e format,
    ngx_kexec_message_t *msg)
{
    uint64_t  sum;

    sum = message(bytes, format == NGX_KEXEC_FORMAT_TEXT);
    tell(story, sum);

    memset(msg, 0, sizeof(ngx_kexec_message_t));

    return is_message(sum);
}


static void
handle_message(ngx_kexec_link_t *link, ngx_kexec_message_t *msg)
{
    check(msg->type == NGX_KEXEC_MSG_OTHER);

    tell(story, ngx_kexec_link_skipped(link) ? 1 : 2);

    if (closing && --closing == 0) {
        ngx_kexec_link_close(link);
    }
}


static ngx_kexec_link_handlers_t  handlers = { NULL, handle_message, NULL };


static void
read_all(story_t *s, size_t max_message, ngx_kexec_format_e format)
{
    ngx_int_t           rc;
    ngx_log_t           log;
    ngx_buf_t           in;
    ngx_event_t         rev, wev;
    ngx_connection_t    c;
    ngx_kexec_link_t   *link;

    memset(s, 0, sizeof(story_t));
    memset(&log, 0, sizeof(ngx_log_t));
    memset(&in, 0, sizeof(ngx_buf_t));
    memset(&rev, 0, sizeof(ngx_event_t));
    memset(&wev, 0, sizeof(ngx_event_t));
    memset(&c, 0, sizeof(ngx_connection_t));

    story = s;
    stream_pos = 0;
    allocations = 0;

    ngx_queue_init(&ngx_posted_events);
    ngx_queue_init(&ngx_posted_next_events);

    link = calloc(1, sizeof(ngx_kexec_link_t));

    link->in = &in;
    link->handlers = &handlers;
    link->max_message = max_message;
    link->state = NGX_KEXEC_LINK_OPEN;
    link->format = format;
    link->last_out = &link->out;
    link->peer.connection = &c;
    link->reading = 1;

    link->pong.buf.start = link->pong_data;
    link->pong.buf.pos = link->pong_data;
    link->pong.buf.last = link->pong_data;
    link->pong.buf.end = link->pong_data + sizeof(link->pong_data);
    link->pong.chain.buf = &link->pong.buf;

    in.start = malloc(NGX_KEXEC_LINK_BUFFER);
    in.pos = in.start;
    in.last = in.start;
    in.end = in.start + NGX_KEXEC_LINK_BUFFER;

    rev.log = &log;
    wev.log = &log;
    link->flush.log = &log;

    c.read = &rev;
    c.write = &wev;
    c.recv = receive;
    c.send = send_bytes;
    c.send_chain = send_chain;
    c.idle = 1;
    wev.ready = 1;

    do {
        rc = ngx_kexec_link_read(link);

        check(link->message == NULL || link->size <= max_message);
        check(link->size >= link->len || link->skip || link->len == 0);

        if (rc == NGX_OK && (cuts == 0 || next_cut(3) == 0)) {
            ngx_kexec_link_flush(link);
        }

    } while (rc == NGX_OK && stream_pos < stream_len);

    check(rc == NGX_OK || rc == NGX_ERROR || (rc == NGX_DONE && link->closing));

    tell(s, rc);
    tell(s, rc == NGX_ERROR ? link->status : 0);

    ngx_kexec_link_free_out(link, NULL);
    free(link->message);
    free(in.start);
    free(link);
}


static void
put(u_char opcode, u_char *payload, size_t len)
{
    u_char  *p;

    p = stream + stream_len;
    *p++ = opcode;

    if (len < 126) {
        *p++ = len;

    } else if (len < 65536) {
        *p++ = 126;
        *p++ = len >> 8;
        *p++ = len;

    } else {
        *p++ = 127;
        memset(p, 0, 5);
        p += 5;
        *p++ = len >> 16;
        *p++ = len >> 8;
        *p++ = len;
    }

    memcpy(p, payload, len);
    stream_len = p + len - stream;
}


/*
 * The frames that data asks for, and what they come to.  0: it cannot be told,
 * since something stands there that ends a link.
 */

static ngx_uint_t
make_stream(const uint8_t *data, size_t size, size_t max_message)
{
    u_char            *payload;
    size_t             n, len;
    uint64_t           sum;
    ngx_str_t          bytes;
    const uint8_t     *last;
    ngx_uint_t         op, open, skip, text, known;

    stream_len = 0;
    npings = 0;
    any_ping = 0;
    memset(&expected, 0, sizeof(story_t));

    len = 0;
    open = 0;
    skip = 0;
    text = 0;
    known = 1;

    last = data + size;

    while (last - data >= 4) {
        op = data[0];
        n = data[1];

        if (op & 0x40) {
            n = n << 12 | data[2] << 4 | data[3] >> 4;

        } else if (op & 0x20) {
            n = n << 8 | data[2];
        }

        if (stream_len + n + 64 > STREAM) {
            break;
        }

        payload = noise + data[3];
        data += 4;

        switch (op & 0x07) {

        case 5:
            put(0x8a, payload, n % 126);
            continue;

        case 6:
            n %= 126;
            put(0x89, payload, n);

            if (npings < EVENTS) {
                pings[npings++] = hash(payload, n, 0);

            } else {
                any_ping = 1;
            }

            continue;

        case 7:
            if (op & 0x08) {
                put(0x88, payload, n % 126);

            } else {
                n = ngx_min((size_t) (last - data), 16);
                memcpy(stream + stream_len, data, n);
                stream_len += n;
                data += n;
                any_ping = 1;
            }

            known = 0;
            continue;
        }

        if (!open) {
            text = op & 0x10;
            len = 0;
            skip = 0;
        }

        put((open ? 0 : text ? 1 : 2) | (op & 0x08 ? 0x80 : 0), payload, n);

        skip |= (n > max_message - len);

        if (!skip) {
            memcpy(whole + len, payload, n);
            len += n;
        }

        open = !(op & 0x08);

        if (open) {
            continue;
        }

        if (skip) {
            tell(&expected, 1);
            continue;
        }

        bytes.len = len;
        bytes.data = whole;

        sum = message(&bytes, text);
        tell(&expected, sum);
        tell(&expected, is_message(sum) == NGX_OK ? 2 : 1);
    }

    tell(&expected, (uint64_t) NGX_OK);
    tell(&expected, 0);

    return known;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t              i, max_message;
    uint32_t            seed;
    story_t            *one, *many;
    ngx_uint_t          known, close_at;
    ngx_kexec_format_e  format;

    if (size < 4) {
        return 0;
    }

    if (stream == NULL) {
        stream = malloc(STREAM);
        whole = malloc(STREAM);
        noise = malloc(NOISE);

        for (i = 0; i < NOISE; i++) {
            noise[i] = (u_char) (i * 2654435761 >> 13);
        }
    }

    seed = data[0] + 1;
    max_message = (data[1] & 0x80) ? 65536 : 65536 + (data[1] << 14);
    format = (data[1] & 1) ? NGX_KEXEC_FORMAT_V1 : NGX_KEXEC_FORMAT_TEXT;
    failing = data[2] < 16 ? data[2] : 0;
    close_at = data[3] < 16 ? data[3] : 0;

    one = malloc(sizeof(story_t));
    many = malloc(sizeof(story_t));

    known = make_stream(data + 4, size - 4, max_message);

    cuts = 0;
    closing = close_at;
    read_all(one, max_message, format);

    cuts = seed;
    closing = close_at;
    read_all(many, max_message, format);

    check(one->n == many->n);
    check(memcmp(one->event, many->event, one->n * sizeof(uint64_t)) == 0);

    if (known && !failing && !close_at) {
        check(one->n == expected.n);
        check(memcmp(one->event, expected.event, one->n * sizeof(uint64_t))
              == 0);
    }

    free(one);
    free(many);

    return 0;
}
