
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_SESSION_H_INCLUDED_
#define _NGX_KEXEC_SESSION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>


/* a context's session in Jupyter, which has its kernel */


/*
 * Makes one, in ex->http: ON_ANSWER follows, with NGX_KEXEC_SAY_NONE when
 * ex->ctx has the ids, else with why not; NGX_ERROR: no memory.
 */
ngx_int_t ngx_kexec_session_make(ngx_kexec_execution_t *ex);

/* deletes it, in ex->http: ON_ANSWER follows; NGX_ERROR: no memory */
ngx_int_t ngx_kexec_session_drop(ngx_kexec_execution_t *ex);

/*
 * Has Jupyter take down that the kernel is prepared: ON_MARKED follows;
 * NGX_ERROR: no memory.  _unmark() drops the call.
 */
ngx_int_t ngx_kexec_session_mark(ngx_kexec_execution_t *ex);
void ngx_kexec_session_unmark(ngx_kexec_execution_t *ex);


#endif /* _NGX_KEXEC_SESSION_H_INCLUDED_ */
