
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_IDENTITY_H_INCLUDED_
#define _NGX_KEXEC_IDENTITY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_jupyter.h>
#include <ngx_kexec_zone.h>


/*
 * All that makes a context ours stands in its session's path and name, so that
 * it can be found again when the zone is lost.
 */


#define NGX_KEXEC_SESSION_PATH_LEN                                            \
    (sizeof("kexec--") - 1 + NGX_KEXEC_UUID_LEN + NGX_INT32_LEN)


/* writes the path to p; returns its end */
u_char *ngx_kexec_session_path(u_char *p, ngx_kexec_context_t *ctx);

/*
 * The name, from pool.  Its "process" is that of a kernel whose directory and
 * variables are set: without it the context was never ready.  NGX_ERROR: no
 * memory.
 */
ngx_int_t ngx_kexec_session_name(ngx_pool_t *pool, ngx_kexec_context_t *ctx,
    ngx_str_t *name);

/*
 * What a session of Jupyter's tells of its context; ready, sockaddr and server
 * are not set.  NGX_DECLINED: it is not ours.
 */
ngx_int_t ngx_kexec_session_parse(ngx_kexec_jupyter_session_t *session,
    ngx_kexec_context_t *ctx);


#endif /* _NGX_KEXEC_IDENTITY_H_INCLUDED_ */
