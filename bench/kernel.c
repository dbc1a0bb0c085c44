/* What the scripted kernels do, and the messages that they send. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "kernel.h"

#define LINE      "a line of output, as programs print them, of middling length"

/* a message of the default protocol */
#define TEXT1     "{\"header\": "
#define TEXT2     ", \"parent_header\": "
#define TEXT3     ", \"metadata\": {}, \"content\": "


/* messages out */

static void
message(conn_t *c, const char *channel, const char *type, const buf_t *parent,
    const char *content, size_t content_len)
{
    char             *p, header[320], tail[64];
    size_t            size, n, header_len, tail_len;
    static uint64_t   serial;

    header_len = snprintf(header, sizeof(header),
        "{\"msg_id\": \"%08x-0000-4000-8000-%012lx\", \"msg_type\": \"%s\", "
        "\"username\": \"username\", "
        "\"session\": \"%08x-0000-4000-8000-%012x\", "
        "\"date\": \"" DATE "\", \"version\": \"5.3\"}",
        c->kernel->number, ++serial, type,
        c->kernel->process, c->kernel->number);

#define put(data, size)  p = mempcpy(p, data, size)

    if (c->v1) {
        n = strlen(channel);
        size = 7 * 8 + n + header_len + parent->len + 2 + content_len;

        buf_reserve(&c->out, WS_HEAD + size);
        p = c->out.data + c->out.len;

        p += frame_head(p, WS_BINARY, size, NULL);
        p = put_le64(p, 6);
        p = put_le64(p, size = 7 * 8);
        p = put_le64(p, size += n);
        p = put_le64(p, size += header_len);
        p = put_le64(p, size += parent->len);
        p = put_le64(p, size += 2);
        p = put_le64(p, size += content_len);

        put(channel, n);
        put(header, header_len);
        put(parent->data, parent->len);
        put("{}", 2);
        put(content, content_len);

    } else {
        tail_len = snprintf(tail, sizeof(tail),
                            ", \"buffers\": [], \"channel\": \"%s\"}", channel);

        size = sizeof(TEXT1 TEXT2 TEXT3) - 1
               + header_len + parent->len + content_len + tail_len;

        buf_reserve(&c->out, WS_HEAD + size);
        p = c->out.data + c->out.len;

        p += frame_head(p, WS_TEXT, size, NULL);
        put(TEXT1, sizeof(TEXT1) - 1);
        put(header, header_len);
        put(TEXT2, sizeof(TEXT2) - 1);
        put(parent->data, parent->len);
        put(TEXT3, sizeof(TEXT3) - 1);
        put(content, content_len);
        put(tail, tail_len);
    }

#undef put

    c->out.len = p - c->out.data;

    if (split) {
        conn_flush(c);
    }
}


static void
publish(kernel_t *k, const char *type, const buf_t *parent,
    const char *content, size_t len)
{
    conn_t  *c;

    for (c = k->conns; c; c = c->next) {
        message(c, "iopub", type, parent, content, len);
    }
}


static void
status(kernel_t *k, const buf_t *parent, const char *state)
{
    char  content[64];

    publish(k, "status", parent, content,
            sprintf(content, "{\"execution_state\": \"%s\"}", state));
}


void
kernel_flush(kernel_t *k)
{
    conn_t  *c;

    for (c = k->conns; c; c = c->next) {
        conn_flush(c);
    }
}


/* the end of what runs */

void
kernel_finish(kernel_t *k, int error)
{
    int   n;
    char  content[256];

    static struct itimerspec  never;

    if (error) {
        n = sprintf(content, "{\"status\": \"error\", "
                    "\"ename\": \"KeyboardInterrupt\", \"evalue\": \"\", "
                    "\"traceback\": [], \"execution_count\": %u}", k->count);

        publish(k, "error", &k->parent, content, n);

    } else {
        n = sprintf(content, "{\"status\": \"ok\", \"execution_count\": %u, "
                    "\"user_expressions\": {}, \"payload\": []}", k->count);
    }

    if (k->asker) {
        message(k->asker, "shell", "execute_reply", &k->parent, content, n);
    }

    status(k, &k->parent, "idle");

    k->running = 0;
    k->asker = NULL;
    k->left = 0;

    if (k->timer) {
        timerfd_settime(k->timer, 0, &never, NULL);
    }
}


static void
timer_handler(handler_t *handler, unsigned events)
{
    kernel_t  *k = (kernel_t *) handler;
    uint64_t   n;

    (void) events;

    if (read(k->timer, &n, sizeof(n)) == sizeof(n) && k->running) {
        kernel_finish(k, 0);
        kernel_flush(k);
        kernel_goes_on(k);
    }
}


static void
set_timer(kernel_t *k, double seconds)
{
    struct epoll_event  ev = { .events = EPOLLIN, .data.ptr = &k->handler };
    struct itimerspec   it = { { 0, 0 }, { 0, 0 } };

    if (k->timer == 0) {
        k->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
        k->handler.run = timer_handler;

        if (epoll_ctl(epoll, EPOLL_CTL_ADD, k->timer, &ev) == -1) {
            die("timer");
        }
    }

    it.it_value.tv_sec = (time_t) seconds;
    it.it_value.tv_nsec = 1 + (seconds - (time_t) seconds) * 999999998;

    timerfd_settime(k->timer, 0, &it, NULL);
}


/* one frame, which is then sent again and again */

static void
stream(kernel_t *k, size_t n, const buf_t *content)
{
    conn_t  *c = k->asker;
    size_t   start;
    int      was = split;

    split = 0;
    start = c->out.len - c->out.pos;
    message(c, "iopub", "stream", &k->parent, content->data, content->len);
    start += c->out.pos;
    split = was;

    k->frame.pos = k->frame.len = 0;
    buf_put(&k->frame, c->out.data + start, c->out.len - start);
    c->out.len = start;

    k->left = n;
    k->sent = 0;
}


static void
execute(conn_t *c, const char *code, size_t len, int silent)
{
    kernel_t      *k = c->kernel;
    char           word[64] = "";
    size_t         i, n, size;
    static buf_t   content;

    k->asker = c;
    k->running = 1;
    k->left = 0;

    status(k, &k->parent, "busy");

    if (silent) {
        kernel_finish(k, 0);
        return;
    }

    memcpy(word, code, len < sizeof(word) ? len : sizeof(word) - 1);

    content.pos = content.len = 0;
    buf_format(&content, "{\"code\": \"");
    buf_put(&content, code, len);
    buf_format(&content, "\", \"execution_count\": %u}", ++k->count);
    publish(k, "execute_input", &k->parent, content.data, content.len);

    content.len = 0;

    if (sscanf(word, "sleep %zu", &n) == 1) {
        set_timer(k, strtod(word + 6, NULL));
        return;
    }

    if (sscanf(word, "lines %zu", &n) == 1) {
        buf_text(&content, "{\"name\": \"stdout\", \"text\": \"" LINE "\\n\"}");
        stream(k, n, &content);
        return;
    }

    if (sscanf(word, "stream %zu %zu", &n, &size) == 2) {
        buf_text(&content, "{\"name\": \"stdout\", \"text\": \"");

        for (i = 1; i <= size; i++) {
            buf_text(&content, i % 80 ? "x" : "\\n");
        }

        buf_text(&content, "\"}");
        stream(k, n, &content);
        return;
    }

    if (sscanf(word, "result %zu", &n) != 1) {
        n = 1;
    }

    buf_text(&content, "{\"data\": {\"text/plain\": \"");
    buf_reserve(&content, n);
    memset(content.data + content.len, '1', n);
    content.len += n;
    buf_format(&content, "\"}, \"metadata\": {}, \"execution_count\": %u}",
               k->count);

    publish(k, "execute_result", &k->parent, content.data, content.len);
    kernel_finish(k, 0);
}


/* messages in: of a message as the module and the client write it */

void
kernel_receive(conn_t *c, char *p, size_t n)
{
    char      *header, *end, *content, *code, *last;
    kernel_t  *k = c->kernel;

    static char  info[] = "{\"status\": \"ok\", \"protocol_version\": \"5.3\", "
        "\"implementation\": \"bench\", \"implementation_version\": \"1\", "
        "\"language_info\": {\"name\": \"python\", \"version\": \"3\"}, "
        "\"banner\": \"\", \"help_links\": []}";

    if (c->v1) {
        header = p + get_le64(p + 16);
        end = p + get_le64(p + 24);
        content = p + get_le64(p + 40);
        last = p + get_le64(p + 48);

        if (last > p + n) {
            die("a bad message");
        }

    } else {
        last = p + n;
        header = after(p, n, "\"header\": ");
        end = header ? memchr(header, '}', last - header) : NULL;
        content = after(p, n, "\"content\": ");

        if (end == NULL || content == NULL) {
            die("a bad message");
        }

        end++;
    }

    k->parent.len = 0;
    buf_put(&k->parent, header, end - header);

    if (after(header, end - header, "\"kernel_info_request\"")) {
        status(k, &k->parent, "busy");
        message(c, "shell", "kernel_info_reply", &k->parent, lit(info));
        status(k, &k->parent, "idle");
        return;
    }

    code = after(content, last - content, "\"code\": \"");

    if (code == NULL) {
        return;
    }

    for (p = code; p < last && *p != '"'; p++) {
        p += *p == '\\';
    }

    execute(c, code, p - code,
            after(p, last - p, "\"silent\": true") != NULL);
}


void
kernel_shut_down(kernel_t *k)
{
    static const buf_t  parent = { (char *) "{}", 0, 2, 0 };

    if (k->running) {
        kernel_finish(k, 1);
    }

    status(k, &parent, "busy");
    publish(k, "shutdown_reply", &parent, lit("{\"status\": \"ok\"}"));
    status(k, &parent, "idle");
    kernel_flush(k);
}
