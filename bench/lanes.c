/*
 * Executions in lanes: each lane has a connection and sends its next request
 * when the answer to the last one is complete.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "client.h"

#define READ     (256 * 1024)
#define PEEK     2048           /* of a message, enough for what is looked at */

#define SLOW     16384          /* a slow reader takes so much */
#define PAUSE    10000          /* and then pauses, in microseconds */

#define END      "{\"type\": \"end_of_execution\"}\n"


typedef enum { HEAD, SIZE, DATA, DATA_END, LAST, DONE } state_t;

typedef struct {
    int         fd;
    char       *target;
    buf_t       request;
    long        done;           /* executions, the warm ones included */
    uint64_t    start;
    long        events;
    uint64_t    first;          /* when the first event came */

    /* HTTP: the answer, chunked or with a length */
    state_t     state;
    buf_t       head;
    uint64_t    left;           /* of the chunk, the body or the frame */
    int         chunked, closes, failed;
    char        tail[sizeof(END) - 1];

    buf_t       peek;           /* the beginning of the body or the message */

    /* websocket: what of this execution has come */
    char        id[37];
    frame_t     frame;
    int         idle, reply;
} lane_t;


static int        epoll;
static double    *ms, *firsts;
static size_t     nms, size_ms;
static long       errors;
static uint64_t   bytes;
static uint64_t   until;        /* with --seconds */


static void
lane_connect(lane_t *lane)
{
    struct epoll_event  ev = { .events = EPOLLIN, .data.ptr = lane };

    lane->fd = net_connect(opt.port, opt.slow ? SLOW : 0);

    if (opt.delack) {
        net_option(lane->fd, TCP_QUICKACK, 0);
    }

    epoll_ctl(epoll, EPOLL_CTL_ADD, lane->fd, &ev);
}


static void
lane_open(lane_t *lane)
{
    char    *end, answer[4096];
    buf_t    request = { 0 };
    size_t   n = 0;

    lane_connect(lane);

    if (opt.ws) {
        ws_handshake(&request, lane->target);

        if (send(lane->fd, request.data, request.len, 0) == -1) {
            die("handshake");
        }

        /* bytes one by one: what follows is for the frame parser */

        do {
            if (n == sizeof(answer) || recv(lane->fd, answer + n, 1, 0) != 1) {
                die("handshake");
            }

            end = memmem(answer, ++n, "\r\n\r\n", 4);

        } while (end == NULL);

        if (after(answer, n, " 101 ") == NULL) {
            die("no websocket: %.100s", answer);
        }

        free(request.data);

    } else if (opt.get) {
        buf_format(&lane->request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                   opt.get);

    } else {
        http_execute(&lane->request, lane->target, opt.code);
    }

    net_nonblocking(lane->fd);
}


static void
lane_start(lane_t *lane)
{
    lane->start = now_ns();
    lane->events = 0;

    if (lane->fd == -1) {
        lane_connect(lane);
        net_nonblocking(lane->fd);
    }

    if (opt.ws) {
        lane->idle = lane->reply = 0;
        lane->request.pos = lane->request.len = 0;
        new_id(lane->id);
        ws_request(&lane->request, lane->id, opt.code);

    } else {
        lane->state = HEAD;
        lane->head.pos = lane->head.len = lane->peek.len = 0;
        lane->failed = 0;
    }

    if (send(lane->fd, lane->request.data, lane->request.len, 0)
        != (ssize_t) lane->request.len)
    {
        die("send");
    }
}


static void
lane_end(lane_t *lane)
{
    if (lane->done >= opt.warm && (until == 0 || now_ns() < until)) {

        if (nms == size_ms) {
            size_ms = 2 * size_ms + 4096;
            ms = xrealloc(ms, size_ms * sizeof(double));
            firsts = xrealloc(firsts, size_ms * sizeof(double));
        }

        firsts[nms] = (lane->first - lane->start) / 1e6;
        ms[nms++] = (now_ns() - lane->start) / 1e6;
    }

    /* IPython has one more to tell when its cache of 1000 results is full */

    if (lane->failed || lane->events < opt.events) {

        if (errors++ == 0) {
            fprintf(stderr, "an answer of %ld events, %ld were expected%s: "
                    "%.*s\n", lane->events, opt.events,
                    lane->failed ? ", failed" : "",
                    (int) lane->peek.len, lane->peek.data);
        }
    }

    lane->done++;

    if (!opt.ws && (opt.fresh || lane->closes)) {
        close(lane->fd);
        lane->fd = -1;
    }
}


/* HTTP */

static void
http_head(lane_t *lane)
{
    char    *p, *head = lane->head.data;
    size_t   n = lane->head.len;

    lane->failed = after(head, 16, " 200 ") == NULL;
    lane->chunked = after(head, n, "\r\nTransfer-Encoding: chunked") != NULL
                    || after(head, n, "\r\ntransfer-encoding: chunked") != NULL;
    lane->closes = after(head, n, "\r\nConnection: close") != NULL;

    p = after(head, n, "\r\nContent-Length: ");

    lane->left = p ? strtoul(p, NULL, 10) : 0;
    lane->state = lane->chunked ? SIZE : lane->left ? DATA : DONE;
}


static void
http_data(lane_t *lane, const char *p, size_t n)
{
    size_t       room = PEEK - lane->peek.len;
    size_t       keep = sizeof(lane->tail);
    const char  *q, *last = p + n;

    buf_put(&lane->peek, p, n < room ? n : room);

    for (q = p; (q = memchr(q, '\n', last - q)); q++) {
        if (lane->events++ == 0) {
            lane->first = now_ns();
        }
    }

    if (n >= keep) {
        memcpy(lane->tail, last - keep, keep);

    } else {
        memmove(lane->tail, lane->tail + n, keep - n);
        memcpy(lane->tail + keep - n, p, n);
    }
}


static const char *
http_take(lane_t *lane, const char *p, const char *last)
{
    char         c;
    size_t       n;
    const char  *q;

    switch (lane->state) {

    case HEAD:

        /* up to the empty line, which may come in pieces */

        n = lane->head.len;
        buf_put(&lane->head, p, last - p);
        q = after(lane->head.data, lane->head.len, "\r\n\r\n");

        if (q == NULL) {
            return last;
        }

        p += q - lane->head.data - n;
        lane->head.len = q - lane->head.data;
        http_head(lane);
        return p;

    case SIZE:
        c = *p++;

        if (c == '\n') {
            lane->state = lane->left ? DATA : LAST;

        } else if (c != '\r') {
            lane->left = lane->left * 16
                         + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        }

        return p;

    case DATA:
        n = last - p;

        if (n > lane->left) {
            n = lane->left;
        }

        http_data(lane, p, n);
        lane->left -= n;

        if (lane->left == 0) {
            lane->state = lane->chunked ? DATA_END : DONE;
        }

        return p + n;

    case DATA_END:
        if (*p == '\n') {
            lane->state = SIZE;
        }

        return p + 1;

    default: /* LAST: the line behind the last chunk */
        if (*p == '\n') {
            lane->state = DONE;
        }

        return p + 1;
    }
}


/* returns 1 when the answer is complete */

static int
http_read(lane_t *lane, const char *p, size_t n)
{
    const char  *last = p + n;

    while (p < last) {
        p = http_take(lane, p, last);

        if (lane->state == DONE) {

            if (!opt.get && memcmp(lane->tail, END, sizeof(lane->tail)) != 0) {
                lane->failed = 1;
            }

            return 1;
        }
    }

    return 0;
}


/* websocket */

static void
ws_message(lane_t *lane)
{
    char    *p = lane->peek.data, *type, *content;
    size_t   n = lane->peek.len, type_len;

    if (lane->frame.opcode == WS_PING) {
        char  pong[WS_HEAD] = "\0\0\0";

        send(lane->fd, pong, frame_head(pong, WS_PONG, 0,
                                        (unsigned char *) "abcd"), 0);
        return;
    }

    type = after(p, n, "\"msg_type\": \"");

    if (type == NULL || memmem(p, n, lane->id, 36) == NULL) {
        return;
    }

    type_len = p + n - type;
    content = type;

#define is(name)  (type_len > sizeof(name) && memcmp(type, lit(name)) == 0)

    if (is("status")) {
        lane->idle |= after(content, type_len, "\"execution_state\": \"idle")
                      != NULL;

    } else if (is("execute_reply")) {
        lane->reply = 1;
        lane->failed = after(content, type_len, "\"status\": \"error") != NULL;

    } else if (lane->events++ == 0) {
        lane->first = now_ns();
    }
}


static int
ws_read(lane_t *lane, const char *p, size_t n)
{
    size_t       take, room;
    const char  *last = p + n;

    while (p < last) {

        if (lane->state == HEAD) {

            /* a head may come in pieces */

            take = WS_HEAD - lane->head.len;
            take = (size_t) (last - p) < take ? (size_t) (last - p) : take;
            room = lane->head.len;

            buf_put(&lane->head, p, take);

            if (!frame_parse(lane->head.data, lane->head.len, &lane->frame)) {
                return 0;
            }

            p += lane->frame.head - room;

            lane->head.len = 0;
            lane->peek.len = 0;
            lane->left = lane->frame.size;
            lane->state = DATA;
        }

        take = last - p;
        take = take < lane->left ? take : lane->left;
        room = PEEK - lane->peek.len;

        buf_put(&lane->peek, p, take < room ? take : room);

        p += take;
        lane->left -= take;

        if (lane->left == 0) {
            lane->state = HEAD;
            ws_message(lane);
        }
    }

    return lane->idle && lane->reply;
}


static int
lane_read(lane_t *lane)
{
    ssize_t      n;
    size_t       size = READ;
    static char  buf[READ];

    if (opt.slow && now_ns() - lane->start < opt.slow * 1e9) {
        usleep(PAUSE);
        size = SLOW;
    }

    n = recv(lane->fd, buf, size, 0);

    if (n <= 0) {
        if (n == -1 && errno == EAGAIN) {
            return 0;
        }

        die("the connection was closed in an answer");
    }

    bytes += n;

    if (opt.ws) {
        net_option(lane->fd, TCP_QUICKACK, 1);

        return ws_read(lane, buf, n);
    }

    return http_read(lane, buf, n);
}


/* all that can be open at once is open: somebody looks at the memory */

static void
hold(void)
{
    char  c;

    puts("open");
    fflush(stdout);

    while (read(STDIN_FILENO, &c, 1) > 0) { /* void */ }
}


void
lanes_run(void)
{
    int                  i, n, running;
    long                 left;
    lane_t              *lanes, *lane;
    uint64_t             start;
    struct epoll_event   events[256];

    epoll = epoll_create1(EPOLL_CLOEXEC);

    lanes = xrealloc(NULL, opt.lanes * sizeof(lane_t));
    memset(lanes, 0, opt.lanes * sizeof(lane_t));

    for (i = 0; i < opt.lanes; i++) {
        if (opt.ntargets) {
            lanes[i].target = opt.targets[i % opt.ntargets];
        }

        lane_open(&lanes[i]);
    }

    left = opt.warm * opt.lanes;
    running = opt.lanes;
    start = now_ns();
    until = left || opt.seconds == 0 ? 0 : start + opt.seconds * 1e9;

    for (i = 0; i < opt.lanes; i++) {
        lane_start(&lanes[i]);
    }

    if (opt.hold) {
        hold();
        _exit(0);
    }

    while (running) {
        n = epoll_wait(epoll, events, 256, -1);

        for (i = 0; i < n; i++) {
            lane = events[i].data.ptr;

            if (!lane_read(lane)) {
                continue;
            }

            lane_end(lane);

            if (left && lane->done <= opt.warm && --left == 0) {
                start = now_ns();
                bytes = 0;
                nms = 0;
                until = opt.seconds ? start + opt.seconds * 1e9 : 0;
            }

            if (left || (opt.seconds ? now_ns() < until
                                     : lane->done < opt.warm + opt.count))
            {
                lane_start(lane);

            } else {
                running--;
            }
        }
    }

    report(ms, firsts, nms, opt.seconds ? opt.seconds : (now_ns() - start) / 1e9,
           errors, bytes);
}
