/* The scripted kernels of the bench, and the server around them. */

#ifndef BENCH_KERNEL_H
#define BENCH_KERNEL_H

#include "net.h"

#define DATE  "2026-01-01T00:00:00.000000Z"


typedef struct handler_s  handler_t;
typedef struct conn_s     conn_t;
typedef struct kernel_s   kernel_t;

struct handler_s {
    void    (*run)(handler_t *handler, unsigned events);
};

struct conn_s {
    handler_t   handler;        /* comes first: epoll has its address */
    int         fd;
    buf_t       in, out;
    kernel_t   *kernel;         /* of a websocket */
    conn_t     *next;           /* websocket of the same kernel */
    int         v1;
    int         last;           /* HTTP: closed behind the answer */
    int         waits_out;
    unsigned    interest;
};

struct kernel_s {
    handler_t   handler;        /* of the timer */
    int         timer;
    unsigned    number;
    unsigned    process;        /* how often it was started */
    unsigned    count;          /* executions */
    int         removed;
    conn_t     *conns;
    buf_t       path, name;

    /* what runs */
    int         running;
    conn_t     *asker;
    buf_t       parent;         /* the request's header */
    buf_t       frame;          /* of a stream */
    size_t      left, sent;     /* frames; bytes of the first of those */
};


extern int        epoll, split;
extern kernel_t **kernels;
extern unsigned   nkernels;


/* kernel.c: what kernels do */

void kernel_receive(conn_t *c, char *p, size_t n);
void kernel_finish(kernel_t *k, int error);
void kernel_shut_down(kernel_t *k);
void kernel_flush(kernel_t *k);

/* server.c: connections */

void conn_flush(conn_t *c);
void conn_close(conn_t *c);
void conn_interest(conn_t *c);
int conn_frames(conn_t *c);
void kernel_goes_on(kernel_t *k);

/* rest.c: HTTP; 0: the connection is to be closed */

int conn_requests(conn_t *c);

#endif
