
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_JUPYTER_H_INCLUDED_
#define _NGX_KEXEC_JUPYTER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_http.h>
#include <ngx_kexec_id.h>


/*
 * Jupyter Server's REST calls, by name.  Each starts a call and returns it
 * (NULL: no memory); the handler gets the answer.  Kernel and session ids are
 * percent-encoded.
 * https://jupyter-server.readthedocs.io/en/latest/developers/rest-api.html
 */


/* GET /api/kernels/ID; 200 or 404 */
ngx_kexec_http_t *ngx_kexec_jupyter_kernel(ngx_kexec_server_t *server,
    ngx_str_t *kernel, ngx_kexec_http_pt handler, void *data, ngx_log_t *log);

/* POST /api/kernels/ID/interrupt; 204, 404 */
ngx_kexec_http_t *ngx_kexec_jupyter_interrupt(ngx_kexec_server_t *server,
    ngx_str_t *kernel, ngx_kexec_http_pt handler, void *data, ngx_log_t *log);

/* POST /api/kernels/ID/restart; 200, 404, 500 */
ngx_kexec_http_t *ngx_kexec_jupyter_restart(ngx_kexec_server_t *server,
    ngx_str_t *kernel, ngx_kexec_http_pt handler, void *data, ngx_log_t *log);

/*
 * POST /api/sessions; path must be unlike any other session's, or Jupyter
 * answers with that one.  201, or 4xx/5xx with {"message": ...}.
 */
ngx_kexec_http_t *ngx_kexec_jupyter_create(ngx_kexec_server_t *server,
    ngx_str_t *path, ngx_str_t *name, ngx_str_t *kernel_name,
    ngx_kexec_http_pt handler, void *data, ngx_log_t *log);

/* PATCH /api/sessions/ID: another name; 200, 404 */
ngx_kexec_http_t *ngx_kexec_jupyter_rename(ngx_kexec_server_t *server,
    ngx_str_t *session, ngx_str_t *name, ngx_kexec_http_pt handler,
    void *data, ngx_log_t *log);

/* DELETE /api/sessions/ID: kills its kernel; 204, 404, 410 */
ngx_kexec_http_t *ngx_kexec_jupyter_delete(ngx_kexec_server_t *server,
    ngx_str_t *session, ngx_kexec_http_pt handler, void *data,
    ngx_log_t *log);

/* GET /api/sessions */
ngx_kexec_http_t *ngx_kexec_jupyter_sessions(ngx_kexec_server_t *server,
    ngx_kexec_http_pt handler, void *data, ngx_log_t *log);

/* GET /api/kernelspecs */
ngx_kexec_http_t *ngx_kexec_jupyter_specs(ngx_kexec_server_t *server,
    ngx_kexec_http_pt handler, void *data, ngx_log_t *log);

/* GET /api/status */
ngx_kexec_http_t *ngx_kexec_jupyter_status(ngx_kexec_server_t *server,
    ngx_kexec_http_pt handler, void *data, ngx_log_t *log);


/* what the answers hold; NGX_ERROR if they are not what they should be */

/* the session's and its kernel's id */
ngx_int_t ngx_kexec_jupyter_parse_session(ngx_str_t *body,
    ngx_kexec_id_t *session, ngx_kexec_id_t *kernel);

typedef enum {
    NGX_KEXEC_KERNEL_OTHER = 0,
    NGX_KEXEC_KERNEL_IDLE,
    NGX_KEXEC_KERNEL_BUSY
} ngx_kexec_kernel_state_e;

/* a kernel model: what Jupyter believes it does, how many links it has */
ngx_int_t ngx_kexec_jupyter_parse_kernel(ngx_str_t *body,
    ngx_kexec_kernel_state_e *state, ngx_uint_t *links);

/*
 * Picks the kernelspec for a normalized language: one of that name, else the
 * default one if it is of that language, else the first (by name) whose
 * language is that, without case; typescript is found as javascript too when
 * nothing else fits (a kernel that runs both).
 * NGX_OK: *spec is the kernelspec's name and *kind its language (allocated
 * from pool).  NGX_DECLINED: none; *names is a list "a, b, c" of the
 * languages and names that there are.  NGX_ERROR: not a kernelspecs answer.
 */
ngx_int_t ngx_kexec_jupyter_pick_spec(ngx_pool_t *pool, ngx_str_t *body,
    ngx_str_t *language, ngx_str_t *spec, ngx_str_t *kind, ngx_str_t *names);

/*
 * Jupyter's own words for a failure: the "message" of a JSON body, else the
 * start of the body; allocated from pool.
 */
void ngx_kexec_jupyter_parse_error(ngx_pool_t *pool, ngx_str_t *body,
    ngx_str_t *message);

/* one session of GET /api/sessions */
typedef struct {
    ngx_kexec_id_t        session;
    ngx_kexec_id_t        kernel;
    ngx_str_t             path;
    ngx_str_t             name;
    ngx_str_t             spec;         /* kernelspec's name, or "" */
    ngx_uint_t            links;        /* of the kernel */
} ngx_kexec_jupyter_session_t;

/* an array of ngx_kexec_jupyter_session_t from pool, NULL: bad answer */
ngx_array_t *ngx_kexec_jupyter_parse_sessions(ngx_pool_t *pool,
    ngx_str_t *body);


#endif /* _NGX_KEXEC_JUPYTER_H_INCLUDED_ */
