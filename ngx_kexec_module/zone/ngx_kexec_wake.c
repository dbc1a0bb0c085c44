
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_channel.h>
#include <ngx_kexec_wake.h>


/*
 * A worker must not use up its descriptors for this: a worker without an
 * eventfd is one whose waiters look by themselves.
 */

#define NGX_KEXEC_WAKE_SHARE  8


typedef struct {
    void       (*handler)(void *data);
    void        *data;
    ngx_event_t  event;
    ngx_uint_t   index;
    unsigned     listening:1;
} ngx_kexec_wake_self_t;


static void ngx_kexec_wake_read_handler(ngx_event_t *rev);
static void ngx_kexec_wake_posted_handler(ngx_event_t *ev);


/*
 * Not a cycle's: the descriptors must be older than any worker, so that
 * those of the old and the new configuration can wake each other.
 */

static ngx_fd_t               *ngx_kexec_wake_fds;
static ngx_uint_t              ngx_kexec_wake_n;

static ngx_kexec_wake_self_t   ngx_kexec_wake_self;


ngx_int_t
ngx_kexec_wake_init(ngx_uint_t n, ngx_log_t *log)
{
#if (NGX_HAVE_EVENTFD && NGX_HAVE_SYS_EVENTFD_H)

    ngx_fd_t       fd;
    ngx_uint_t     i;
    struct rlimit  rlmt;

    if (ngx_kexec_wake_fds) {
        return NGX_OK;
    }

    if (getrlimit(RLIMIT_NOFILE, &rlmt) == 0
        && rlmt.rlim_cur / NGX_KEXEC_WAKE_SHARE < n)
    {
        n = rlmt.rlim_cur / NGX_KEXEC_WAKE_SHARE;
    }

    ngx_kexec_wake_fds = ngx_alloc(ngx_max(n, 1) * sizeof(ngx_fd_t), log);
    if (ngx_kexec_wake_fds == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        fd = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);

        if (fd == -1) {
            ngx_log_error(NGX_LOG_WARN, log, ngx_errno,
                          "eventfd() failed, only %ui workers can be woken "
                          "by others", i);
            break;
        }

        ngx_kexec_wake_fds[i] = fd;
    }

    ngx_kexec_wake_n = i;

#endif

    return NGX_OK;
}


ngx_int_t
ngx_kexec_wake_listen(ngx_cycle_t *cycle, ngx_uint_t i,
    void (*handler)(void *data), void *data)
{
    ngx_fd_t                fd;
    ngx_uint_t              n;
    ngx_kexec_wake_self_t  *self;

    self = &ngx_kexec_wake_self;

    self->index = i;
    self->handler = handler;
    self->data = data;
    self->listening = 1;

    self->event.handler = ngx_kexec_wake_posted_handler;
    self->event.log = cycle->log;

    if (i >= ngx_kexec_wake_n) {
        return NGX_OK;
    }

    fd = ngx_kexec_wake_fds[i];

    if (ngx_add_channel_event(cycle, fd, NGX_READ_EVENT,
                              ngx_kexec_wake_read_handler)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* nginx calls handlers of idle connections when a worker begins to leave */

    for (n = 0; n < cycle->connection_n; n++) {

        if (cycle->connections[n].fd == fd) {
            cycle->connections[n].idle = 1;
            break;
        }
    }

    return NGX_OK;
}


static void
ngx_kexec_wake_read_handler(ngx_event_t *rev)
{
    ssize_t            n;
    uint64_t           count;
    ngx_err_t          err;
    ngx_connection_t  *c;

    if (rev->timedout) {
        rev->timedout = 0;
        return;
    }

    c = rev->data;

    c->close = 0;

    n = read(c->fd, &count, sizeof(uint64_t));

    if (n == -1) {
        err = ngx_errno;

        if (err != NGX_EAGAIN && err != NGX_EINTR) {
            ngx_log_error(NGX_LOG_ALERT, rev->log, err,
                          "read() eventfd %d failed", c->fd);
        }
    }

    ngx_kexec_wake_self.handler(ngx_kexec_wake_self.data);
}


static void
ngx_kexec_wake_posted_handler(ngx_event_t *ev)
{
    ngx_kexec_wake_self.handler(ngx_kexec_wake_self.data);
}


void
ngx_kexec_wake(ngx_uint_t i)
{
    ssize_t                 n;
    uint64_t                one;
    ngx_err_t               err;
    ngx_kexec_wake_self_t  *self;

    self = &ngx_kexec_wake_self;

    if (self->listening && self->index == i) {
        ngx_post_event(&self->event, &ngx_posted_events);
        return;
    }

    if (i >= ngx_kexec_wake_n) {
        return;
    }

    one = 1;

    n = write(ngx_kexec_wake_fds[i], &one, sizeof(uint64_t));

    if (n == -1) {
        err = ngx_errno;

        /* a counter that is full wakes as well */

        if (err != NGX_EAGAIN && err != NGX_EINTR) {
            ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, err,
                          "write() to eventfd %d failed",
                          ngx_kexec_wake_fds[i]);
        }
    }
}
