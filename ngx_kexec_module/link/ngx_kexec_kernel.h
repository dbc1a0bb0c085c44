
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_KERNEL_H_INCLUDED_
#define _NGX_KEXEC_KERNEL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_zone.h>
#include <ngx_kexec_link.h>


/*
 * A worker's view of a context's kernel: its link, which outlives executions,
 * and the one who uses it now.  Links follow the slot: another worker that
 * takes the slot opens a link with the same session id, and Jupyter closes
 * this one.
 */


typedef struct ngx_kexec_kernel_s  ngx_kexec_kernel_t;


typedef struct {
    /* the link is up, with fresh set if messages of the kernel may be missed */
    void                (*opened)(void *data);
    void                (*message)(void *data, ngx_kexec_message_t *msg);

    /* a message that was longer than kexec_max_message */
    void                (*skipped)(void *data);

    /* as ngx_kexec_link_handlers_t's */
    void                (*closed)(void *data, ngx_uint_t status,
                                  const char *reason);
} ngx_kexec_kernel_user_t;


/* what an idle kernel has said of its process since it was used last */

typedef enum {
    NGX_KEXEC_KERNEL_HERE = 0,
    NGX_KEXEC_KERNEL_RESTARTED,
    NGX_KEXEC_KERNEL_DEAD
} ngx_kexec_kernel_lost_e;


struct ngx_kexec_kernel_s {
    ngx_kexec_zone_t           *zone;
    ngx_kexec_ref_t             context;
    ngx_kexec_id_t              id;
    ngx_kexec_link_t           *link;       /* NULL: none, or being opened */

    unsigned                    open:1;
    unsigned                    fresh:1;    /* not proved by a fence yet */
    unsigned                    skipped:1;
    unsigned                    seen:1;     /* it answered through this link:
                                               a foreign request that came
                                               after that was noticed */

    uint32_t                    foreign;    /* mark of somebody else's request
                                               that runs, or 0 */

    /* private */
    ngx_pool_t                 *pool;
    ngx_kexec_server_t          server;
    ngx_str_t                   session;    /* of message headers */
    ngx_str_t                   session_id; /* of the link */
    size_t                      max_message;
    ngx_kexec_kernel_lost_e     lost;
    ngx_kexec_kernel_user_t    *user;
    void                       *data;
    ngx_event_t                 freeing;
};


/*
 * The kernel of ctx, to be used by the holder of its slot alone, until
 * ngx_kexec_kernel_release().  What this worker has of an older kernel of the
 * same context, or what was opened with another token, is thrown away.  The
 * server is copied.  NULL: no memory.
 */
ngx_kexec_kernel_t *ngx_kexec_kernel_take(ngx_kexec_zone_t *zone,
    ngx_kexec_context_t *ctx, ngx_kexec_server_t *server, size_t max_message,
    ngx_kexec_kernel_user_t *user, void *data);

/*
 * The link that is opened next has another session id than all others of the
 * context: Jupyter throws away what it keeps for those.
 */
void ngx_kexec_kernel_other(ngx_kexec_kernel_t *kernel);

/* opens the link; opened() or closed() follows.  NGX_ERROR: no memory */
ngx_int_t ngx_kexec_kernel_open(ngx_kexec_kernel_t *kernel);

/*
 * Sends code (silent or not), or a kernel_info_request when code is NULL, as
 * the message id.  NGX_ERROR: no memory or no link.
 */
ngx_int_t ngx_kexec_kernel_send(ngx_kexec_kernel_t *kernel, ngx_str_t *id,
    ngx_str_t *code, ngx_uint_t silent);

/*
 * Answers an input_request, whose header is given, with an empty line, as the
 * message id.  NGX_ERROR: no memory or no link.
 */
ngx_int_t ngx_kexec_kernel_answer(ngx_kexec_kernel_t *kernel, ngx_str_t *id,
    ngx_str_t *header);

/* a message whose parent is no request of the kernel's user was read */
void ngx_kexec_kernel_foreign(ngx_kexec_kernel_t *kernel,
    ngx_kexec_message_t *msg);

/* the slot goes on: the link is kept, idle, until it is needed or closed */
void ngx_kexec_kernel_release(ngx_kexec_kernel_t *kernel);

/* the same, but the link is closed and all is forgotten */
void ngx_kexec_kernel_discard(ngx_kexec_kernel_t *kernel);

/* what this worker has of a context that was deleted is thrown away */
void ngx_kexec_kernel_deleted(ngx_kexec_ref_t *context);


#endif /* _NGX_KEXEC_KERNEL_H_INCLUDED_ */
