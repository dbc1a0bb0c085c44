/*
 * A Jupyter Server whose kernels do nothing, fast: what is measured in front of
 * it is not Python.
 *
 *   kernel PORT [--split]
 *
 * It knows the REST calls that the module makes, without looking at the token,
 * and both layouts of messages.  A kernel does what the code's first word says:
 *
 *   stream N BYTES   N stream messages with a text of that size
 *   lines N          N stream messages, one short line each
 *   result BYTES     a result of that size
 *   sleep SECONDS    until that is over or it is interrupted
 *
 * All other code has the result 1; a silent request has none.  An answer leaves
 * in one piece; with --split, each message in a write of its own and under
 * Nagle's algorithm, as from Jupyter, and requests are acknowledged late.
 *
 * The faults that tests need are in t/lib/scripted_jupyter.py, not here.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "kernel.h"

#define READ      65536
#define FRAMES    512           /* of one stream, in one writev() */
#define ROUNDS    8             /* of those, before others have their turn */


typedef struct {
    handler_t   handler;
    int         fd;
} listener_t;


int              epoll, split;

static conn_t   *closed;


void
conn_interest(conn_t *c)
{
    struct epoll_event  ev = { .data.ptr = &c->handler };

    /* a kernel that is busy leaves requests where they are */

    ev.events = (c->kernel && c->kernel->running ? EPOLLRDHUP : EPOLLIN)
                | (c->waits_out ? EPOLLOUT : 0);

    if (ev.events != c->interest) {
        c->interest = ev.events;
        epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &ev);
    }
}


void
conn_close(conn_t *c)
{
    conn_t    **p;
    kernel_t   *k = c->kernel;

    if (k) {
        for (p = &k->conns; *p != c; p = &(*p)->next) { /* void */ }

        *p = c->next;

        if (k->asker == c) {
            k->asker = NULL;

            if (k->left) {
                kernel_finish(k, 1);
            }
        }
    }

    close(c->fd);

    /* an event of it may still be in the list */

    c->fd = -1;
    c->next = closed;
    closed = c;
}


static void
free_closed(void)
{
    conn_t  *c;

    while (closed) {
        c = closed;
        closed = c->next;

        free(c->in.data);
        free(c->out.data);
        free(c);
    }
}


void
conn_flush(conn_t *c)
{
    ssize_t  n;

    c->waits_out = 0;

    while (c->out.pos < c->out.len) {
        n = write(c->fd, c->out.data + c->out.pos, c->out.len - c->out.pos);

        if (n == -1) {
            if (errno == EAGAIN) {
                c->waits_out = 1;
            } else {
                c->out.pos = c->out.len = 0;    /* reading finds out */
            }

            return;
        }

        buf_taken(&c->out, n);
    }
}


/* more of the stream that runs, if the socket takes it */

static void
conn_stream(conn_t *c)
{
    int            i, rounds;
    size_t         n;
    ssize_t        sent;
    kernel_t      *k = c->kernel;
    struct iovec   iov[FRAMES];

    for (rounds = 0; rounds < ROUNDS && k->left; rounds++) {

        n = split ? 1 : k->left < FRAMES ? k->left : FRAMES;

        for (i = 0; i < (int) n; i++) {
            iov[i].iov_base = k->frame.data;
            iov[i].iov_len = k->frame.len;
        }

        iov[0].iov_base = k->frame.data + k->sent;
        iov[0].iov_len -= k->sent;

        sent = writev(c->fd, iov, n);

        if (sent == -1) {
            if (errno != EAGAIN) {
                k->left = 0;
            }

            break;
        }

        sent += k->sent;
        k->left -= sent / k->frame.len;
        k->sent = sent % k->frame.len;
    }

    c->waits_out = 1;

    if (k->left == 0) {
        kernel_finish(k, 0);
        kernel_flush(k);
        kernel_goes_on(k);
    }
}


/* frames that are there, as long as the kernel has time */

int
conn_frames(conn_t *c)
{
    char     *p, pong[WS_HEAD];
    frame_t   f;

    while (!c->kernel->running) {

        p = c->in.data + c->in.pos;

        if (!frame_parse(p, c->in.len - c->in.pos, &f)
            || c->in.len - c->in.pos < f.head + f.size)
        {
            break;
        }

        p += f.head;
        frame_mask(p, f.size, f.mask);

        if (f.opcode == WS_CLOSE) {
            return 0;
        }

        if (f.opcode == WS_PING) {
            buf_put(&c->out, pong, frame_head(pong, WS_PONG, f.size, NULL));
            buf_put(&c->out, p, f.size);
        }

        if (f.opcode <= WS_BINARY && !c->kernel->removed) {
            kernel_receive(c, p, f.size);
        }

        buf_taken(&c->in, f.head + f.size);
    }

    kernel_flush(c->kernel);

    if (c->kernel->left && c->out.len == 0) {
        c->waits_out = 1;
    }

    conn_interest(c);

    return 1;
}


/* what came while it was busy */

void
kernel_goes_on(kernel_t *k)
{
    conn_t  *c, *next;

    for (c = k->conns; c; c = next) {
        next = c->next;

        if (!conn_frames(c)) {
            conn_close(c);
        }
    }
}


static void
conn_handler(handler_t *handler, unsigned events)
{
    conn_t   *c = (conn_t *) handler;
    ssize_t   n;

    if (c->fd == -1) {
        return;
    }

    if (events & EPOLLOUT) {
        conn_flush(c);

        if (c->out.len == 0 && c->kernel && c->kernel->left
            && c->kernel->asker == c)
        {
            conn_stream(c);
        }

        if (c->fd == -1) {
            return;
        }

        conn_interest(c);
    }

    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)
        && c->kernel && c->kernel->running)
    {
        conn_close(c);
        return;
    }

    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
        return;
    }

    buf_reserve(&c->in, READ);

    n = read(c->fd, c->in.data + c->in.len, c->in.size - c->in.len);

    if (n == -1 && errno == EAGAIN) {
        return;
    }

    if (n <= 0) {
        conn_close(c);
        return;
    }

    c->in.len += n;

    if (split) {
        net_option(c->fd, TCP_QUICKACK, 0);
    }

    if (!(c->kernel ? conn_frames(c) : conn_requests(c))) {
        conn_close(c);
    }
}


static void
accept_handler(handler_t *handler, unsigned events)
{
    int                  fd;
    conn_t              *c;
    listener_t          *listener = (listener_t *) handler;
    struct epoll_event   ev = { .events = EPOLLIN };

    (void) events;

    while ((fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC))
           != -1)
    {
        c = xrealloc(NULL, sizeof(conn_t));
        memset(c, 0, sizeof(conn_t));

        c->handler.run = conn_handler;
        c->fd = fd;
        c->interest = EPOLLIN;

        if (!split) {
            net_option(fd, TCP_NODELAY, 1);
        }

        ev.data.ptr = &c->handler;
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev);
    }
}


int
main(int argc, char **argv)
{
    int                 i, n;
    struct rlimit       limit;
    listener_t          listener;
    struct epoll_event  events[256], ev = { .events = EPOLLIN };

    if (argc < 2) {
        die("usage: kernel PORT [--split]");
    }

    split = argc > 2 && strcmp(argv[2], "--split") == 0;

    signal(SIGPIPE, SIG_IGN);

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);

    epoll = epoll_create1(EPOLL_CLOEXEC);
    listener.handler.run = accept_handler;
    listener.fd = net_listen(atoi(argv[1]));

    ev.data.ptr = &listener.handler;
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener.fd, &ev);

    puts("ready");
    fflush(stdout);

    for ( ;; ) {
        n = epoll_wait(epoll, events, 256, -1);

        for (i = 0; i < n; i++) {
            ((handler_t *) events[i].data.ptr)->run(events[i].data.ptr,
                                                    events[i].events);
        }

        free_closed();
    }
}
