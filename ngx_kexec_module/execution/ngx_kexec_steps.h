
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_STEPS_H_INCLUDED_
#define _NGX_KEXEC_STEPS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>


/*
 * The source of a step of the set-up, in ex->source.  NGX_DECLINED: it is not
 * needed, or the language has none; NGX_ERROR: no memory.
 */
ngx_int_t ngx_kexec_step_source(ngx_kexec_execution_t *ex,
    ngx_kexec_step_e step);


#endif /* _NGX_KEXEC_STEPS_H_INCLUDED_ */
