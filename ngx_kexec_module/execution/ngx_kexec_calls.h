
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_CALLS_H_INCLUDED_
#define _NGX_KEXEC_CALLS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>


/* one call at a time on the kernel's behalf: ON_ANSWER follows; NGX_ERROR: no
   memory */
ngx_int_t ngx_kexec_call(ngx_kexec_execution_t *ex, ngx_kexec_call_e call);

/* it is not wanted any more, and is not answered */
void ngx_kexec_call_stop(ngx_kexec_execution_t *ex);


#endif /* _NGX_KEXEC_CALLS_H_INCLUDED_ */
