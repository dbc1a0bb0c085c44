/*
 * Sequences of a few requests, with plain blocking sockets.
 *
 * drop: code that sleeps is running, its client leaves; how long until the
 * result of 1 is there?  The cases: it is asked for right after (alone), it has
 * waited in the queue (waiter), 20 waiters leave together with the client and
 * it is asked for right after (leavers).  The floor interrupts by REST, awaits
 * idle (a second interrupt may eat the reply), then a kernel_info_request as a fence, and runs 1.
 *
 * make: how long until a new context is ready, and until it is deleted?  The
 * floor makes a session, opens the websocket and awaits a fence.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "client.h"

#define LEAVERS  20
#define SLEEPS   10000          /* microseconds until the code does, once seen */
#define AGAIN    1              /* seconds until an interrupt is repeated */


typedef struct {
    int          fd;
    buf_t        in;
    const char  *again;         /* posted when nothing comes */
} peer_t;


static buf_t *call(const char *method, const char *path, const char *body);


static void
peer_limit(peer_t *peer, const char *again)
{
    struct timeval  limit = { 60, 0 };

    if (again) {
        limit.tv_sec = AGAIN;
    }

    peer->again = again;

    setsockopt(peer->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}


static void
peer_open(peer_t *peer)
{
    peer->fd = net_connect(opt.port, 0);
    peer->in.pos = peer->in.len = 0;

    peer_limit(peer, NULL);
}


static void
peer_send(peer_t *peer, buf_t *b)
{
    if (send(peer->fd, b->data, b->len, 0) != (ssize_t) b->len) {
        die("send");
    }

    b->len = 0;
}


static void
peer_read(peer_t *peer)
{
    ssize_t  n;

    buf_reserve(&peer->in, 65536);

    while ((n = recv(peer->fd, peer->in.data + peer->in.len, 65536, 0)) == -1
           && errno == EAGAIN && peer->again)
    {
        call("POST", peer->again, "");
    }

    if (n <= 0) {
        die("nothing more came: %.*s", (int) (peer->in.len - peer->in.pos),
            peer->in.data + peer->in.pos);
    }

    peer->in.len += n;

    if (opt.ws) {
        net_option(peer->fd, TCP_QUICKACK, 1);
    }
}


/* HTTP: what came up to the text is forgotten */

static void
peer_wait(peer_t *peer, const char *text)
{
    char  *p;

    while ((p = after(peer->in.data + peer->in.pos,
                      peer->in.len - peer->in.pos, text))
           == NULL)
    {
        peer_read(peer);
    }

    buf_taken(&peer->in, p - peer->in.data - peer->in.pos);
}


/* a call on a connection of its own; returns the answer, in one buffer */

static buf_t *
call(const char *method, const char *path, const char *body)
{
    buf_t           request = { 0 };
    static peer_t   peer;

    peer_open(&peer);

    buf_format(&request, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
               "Authorization: token %s\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\n\r\n%s",
               method, path, opt.token, strlen(body), body);
    peer_send(&peer, &request);

    /* small answers come in one piece */

    peer_read(&peer);

    if (after(peer.in.data, peer.in.len, "HTTP/1.1 20") == NULL) {
        die("%s %s: %.*s", method, path, (int) peer.in.len, peer.in.data);
    }

    close(peer.fd);
    free(request.data);

    return &peer.in;
}


/* the id that follows a text */

static void
take_id(buf_t *b, const char *text, char *id)
{
    char    *p = b->data;
    size_t   n = b->len;

    p = after(p, n, text);
    p = p ? after(p, b->data + n - p, "\"id\"") : NULL;
    p = p ? memchr(p, '"', b->data + n - p) : NULL;

    if (p == NULL || b->data + n - p < 37) {
        die("no id in %.*s", (int) n, b->data);
    }

    memcpy(id, p + 1, 36);
    id[36] = '\0';
}


/* websocket: until both texts have come, in messages with this parent */

static void
ws_wait(peer_t *peer, const char *id, const char *one, const char *two)
{
    char     *p;
    size_t    n;
    frame_t   f;

    while (one || two) {

        p = peer->in.data + peer->in.pos;
        n = peer->in.len - peer->in.pos;

        if (!frame_parse(p, n, &f) || n < f.head + f.size) {
            peer_read(peer);
            continue;
        }

        n = f.head + f.size;

        if (memmem(p, n, id, 36)) {
            one = one && after(p, n, one) ? NULL : one;
            two = two && after(p, n, two) ? NULL : two;
        }

        buf_taken(&peer->in, n);
    }
}


static void
ws_ask(peer_t *peer, char *id, const char *code)
{
    static buf_t  request;

    new_id(id);
    ws_request(&request, id, code);
    peer_send(peer, &request);
}


static void
ws_open(peer_t *peer, const char *kernel)
{
    static buf_t  request;

    peer_open(peer);
    ws_handshake(&request, kernel);
    peer_send(peer, &request);
    peer_wait(peer, "\r\n\r\n");
}


static double
ws_drop(peer_t *peer)
{
    char      id[37], path[128];
    uint64_t  start;

    ws_ask(peer, id, opt.code);
    ws_wait(peer, id, opt.started, NULL);
    usleep(SLEEPS);

    start = now_ns();

    snprintf(path, sizeof(path), "/api/kernels/%s/interrupt", opt.targets[0]);
    call("POST", path, "");

    peer_limit(peer, path);
    ws_wait(peer, id, "\"idle\"", NULL);
    peer_limit(peer, NULL);

    ws_ask(peer, id, NULL);
    ws_wait(peer, id, "\"kernel_info_reply\"", "\"idle\"");

    ws_ask(peer, id, "1");
    ws_wait(peer, id, "\"execute_result\"", NULL);

    start = now_ns() - start;

    /* the reply, on another channel, may have been ahead of the result */

    ws_wait(peer, id, "\"idle\"", NULL);

    return start / 1e6;
}


static double
http_drop(int leavers, int waits)
{
    int             i;
    peer_t          next = { 0 };
    uint64_t        start;
    static peer_t   peer[1 + LEAVERS];
    static buf_t    sleeps, one;

    http_execute(&sleeps, opt.targets[0], opt.code);
    http_execute(&one, opt.targets[0], "1");

    peer_open(&peer[0]);
    peer_send(&peer[0], &sleeps);
    peer_wait(&peer[0], opt.started);
    usleep(SLEEPS);

    for (i = 1; i <= leavers; i++) {
        http_execute(&sleeps, opt.targets[0], opt.code);
        peer_open(&peer[i]);
        peer_send(&peer[i], &sleeps);
        peer_wait(&peer[i], "\r\n\r\n");
    }

    peer_open(&next);

    if (waits) {
        peer_send(&next, &one);
        peer_wait(&next, "\r\n\r\n");
    }

    start = now_ns();

    for (i = 0; i <= leavers; i++) {
        close(peer[i].fd);
    }

    if (!waits) {
        peer_send(&next, &one);
    }

    peer_wait(&next, "\"type\": \"result\"");

    start = now_ns() - start;

    peer_wait(&next, "\"end_of_execution\"");
    close(next.fd);
    free(next.in.data);

    return start / 1e6;
}


void
scene_drop(void)
{
    long       i;
    double    *ms, *all;
    peer_t     peer = { 0 };
    uint64_t   start = now_ns();

    all = xrealloc(NULL, (opt.warm + opt.count) * sizeof(double));
    ms = all + opt.warm;

    if (opt.ws) {
        ws_open(&peer, opt.targets[0]);
    }

    for (i = -opt.warm; i < opt.count; i++) {
        ms[i] = opt.ws ? ws_drop(&peer)
                       : http_drop(strcmp(opt.kind, "leavers") == 0 ? LEAVERS
                                                                    : 0,
                                   strcmp(opt.kind, "waiter") == 0);
    }

    report(ms, NULL, opt.count, (now_ns() - start) / 1e9, 0, 0);
}


static void
http_make(double *made, double *deleted)
{
    char      id[37], path[128];
    uint64_t  start = now_ns();

    take_id(call("POST", "/contexts", "{}"), "{", id);

    *made = (now_ns() - start) / 1e6;

    snprintf(path, sizeof(path), "/contexts/%s", id);

    start = now_ns();
    call("DELETE", path, "");
    *deleted = (now_ns() - start) / 1e6;
}


static void
ws_make(double *made, double *deleted)
{
    char             id[37], session[37], kernel[37], path[128], body[256];
    buf_t           *answer;
    peer_t           peer = { 0 };
    uint64_t         start = now_ns();
    static unsigned  n;

    snprintf(body, sizeof(body), "{\"path\":\"bench-%d-%u\","
             "\"name\":\"bench\",\"type\":\"notebook\","
             "\"kernel\":{\"name\":\"python3\"}}", getpid(), ++n);

    answer = call("POST", "/api/sessions", body);
    take_id(answer, "{", session);
    take_id(answer, "\"kernel\"", kernel);

    ws_open(&peer, kernel);
    ws_ask(&peer, id, NULL);
    ws_wait(&peer, id, "\"kernel_info_reply\"", "\"idle\"");

    *made = (now_ns() - start) / 1e6;

    close(peer.fd);
    free(peer.in.data);

    snprintf(path, sizeof(path), "/api/sessions/%s", session);

    start = now_ns();
    call("DELETE", path, "");
    *deleted = (now_ns() - start) / 1e6;
}


/* two lines: made, deleted */

void
scene_make(void)
{
    long       i;
    double    *made, *deleted;
    uint64_t   start = now_ns();

    made = xrealloc(NULL, opt.count * sizeof(double));
    deleted = xrealloc(NULL, opt.count * sizeof(double));

    for (i = 0; i < opt.count; i++) {
        if (opt.ws) {
            ws_make(&made[i], &deleted[i]);
        } else {
            http_make(&made[i], &deleted[i]);
        }
    }

    report(made, NULL, opt.count, (now_ns() - start) / 1e9, 0, 0);
    report(deleted, NULL, opt.count, (now_ns() - start) / 1e9, 0, 0);
}
