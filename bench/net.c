#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "net.h"


void
die(const char *format, ...)
{
    va_list  args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);

    fprintf(stderr, " (%s)\n", strerror(errno));
    exit(1);
}


void *
xrealloc(void *p, size_t n)
{
    p = realloc(p, n);
    if (p == NULL) {
        die("no memory");
    }

    return p;
}


uint64_t
now_ns(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


void
buf_reserve(buf_t *b, size_t n)
{
    if (b->size - b->len >= n) {
        return;
    }

    if (b->pos) {
        memmove(b->data, b->data + b->pos, b->len - b->pos);
        b->len -= b->pos;
        b->pos = 0;
    }

    if (b->size - b->len < n) {
        b->size = 2 * b->size + n;
        b->data = xrealloc(b->data, b->size);
    }
}


void
buf_put(buf_t *b, const void *data, size_t n)
{
    buf_reserve(b, n);
    memcpy(b->data + b->len, data, n);
    b->len += n;
}


void
buf_text(buf_t *b, const char *text)
{
    buf_put(b, text, strlen(text));
}


void
buf_format(buf_t *b, const char *format, ...)
{
    int      n;
    va_list  args;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);

    buf_reserve(b, n + 1);

    va_start(args, format);
    vsnprintf(b->data + b->len, n + 1, format, args);
    va_end(args);

    b->len += n;
}


void
buf_taken(buf_t *b, size_t n)
{
    b->pos += n;

    if (b->pos == b->len) {
        b->pos = b->len = 0;
    }
}


int
frame_parse(const char *data, size_t n, frame_t *f)
{
    int                   i, more;
    const unsigned char  *p = (const unsigned char *) data;

    if (n < 2) {
        return 0;
    }

    f->opcode = p[0] & 0x0f;
    f->masked = p[1] >> 7;
    f->size = p[1] & 0x7f;

    more = f->size == 126 ? 2 : f->size == 127 ? 8 : 0;

    f->head = 2 + more + 4 * f->masked;

    if (n < f->head) {
        return 0;
    }

    if (more) {
        for (f->size = 0, i = 0; i < more; i++) {
            f->size = f->size << 8 | p[2 + i];
        }
    }

    if (f->masked) {
        memcpy(f->mask, p + 2 + more, 4);
    }

    return 1;
}


size_t
frame_head(char *data, unsigned opcode, uint64_t size,
    const unsigned char *mask)
{
    int             i, more;
    unsigned char  *p = (unsigned char *) data;

    more = size < 126 ? 0 : size < 65536 ? 2 : 8;

    *p++ = 0x80 | opcode;
    *p++ = (mask ? 0x80 : 0) | (more == 0 ? size : more == 2 ? 126 : 127);

    for (i = more; i--; ) {
        *p++ = size >> (8 * i);
    }

    if (mask) {
        memcpy(p, mask, 4);
        p += 4;
    }

    return (char *) p - data;
}


void
frame_mask(char *p, size_t n, const unsigned char *mask)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        p[i] ^= mask[i % 4];
    }
}


uint64_t
get_le64(const char *p)
{
    uint64_t  n;

    memcpy(&n, p, 8);

    return le64toh(n);
}


char *
put_le64(char *p, uint64_t n)
{
    n = htole64(n);
    memcpy(p, &n, 8);

    return p + 8;
}


char *
after(const char *p, size_t n, const char *needle)
{
    size_t  len = strlen(needle);

    p = memmem(p, n, needle, len);

    return p ? (char *) p + len : NULL;
}


static struct sockaddr_in
address(int port)
{
    struct sockaddr_in  sin = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
    };

    return sin;
}


int
net_listen(int port)
{
    int                 fd, on = 1;
    struct sockaddr_in  sin = address(port);

    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));

    if (fd == -1 || bind(fd, (struct sockaddr *) &sin, sizeof(sin)) == -1
        || listen(fd, 4096) == -1)
    {
        die("cannot listen on port %d", port);
    }

    net_nonblocking(fd);

    return fd;
}


/* on the loopback it is there at once */

int
net_connect(int port, int receive_buffer)
{
    int                 fd;
    struct sockaddr_in  sin = address(port);

    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (receive_buffer) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(int));
    }

    if (fd == -1 || connect(fd, (struct sockaddr *) &sin, sizeof(sin)) == -1) {
        die("cannot connect to port %d", port);
    }

    net_option(fd, TCP_NODELAY, 1);

    return fd;
}


void
net_nonblocking(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}


void
net_option(int fd, int option, int value)
{
    setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(int));
}
