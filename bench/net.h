/* What the client and the kernel of the bench share: buffers, sockets, frames. */

#ifndef BENCH_NET_H
#define BENCH_NET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WS_TEXT    1
#define WS_BINARY  2
#define WS_CLOSE   8
#define WS_PING    9
#define WS_PONG    10

#define WS_HEAD    14           /* the longest head of a frame */

#define V1  "v1.kernel.websocket.jupyter.org"

#define lit(s)  s, sizeof(s) - 1


/* the bytes at data[pos] up to data[len] */

typedef struct {
    char    *data;
    size_t   pos, len, size;
} buf_t;

void buf_reserve(buf_t *b, size_t n);
void buf_put(buf_t *b, const void *data, size_t n);
void buf_text(buf_t *b, const char *text);
void buf_format(buf_t *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void buf_taken(buf_t *b, size_t n);         /* from the front */


typedef struct {
    size_t         head;        /* how long the head is */
    uint64_t       size;        /* of the payload */
    unsigned       opcode;
    unsigned       masked;
    unsigned char  mask[4];
} frame_t;

int frame_parse(const char *p, size_t n, frame_t *f);   /* 0: not all there */
size_t frame_head(char *p, unsigned opcode, uint64_t size,
    const unsigned char *mask);
void frame_mask(char *p, size_t n, const unsigned char *mask);

uint64_t get_le64(const char *p);
char *put_le64(char *p, uint64_t n);

/* where the text that follows a needle begins; NULL if it is not there */
char *after(const char *p, size_t n, const char *needle);

int net_listen(int port);
int net_connect(int port, int receive_buffer);
void net_nonblocking(int fd);
void net_option(int fd, int option, int value);         /* of IPPROTO_TCP */

uint64_t now_ns(void);

void *xrealloc(void *p, size_t n);
void die(const char *format, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

#endif
