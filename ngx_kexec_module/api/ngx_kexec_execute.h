
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_EXECUTE_H_INCLUDED_
#define _NGX_KEXEC_EXECUTE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* POST /execute */
ngx_int_t ngx_kexec_execute_handler(ngx_http_request_t *r, ngx_str_t *id);


#endif /* _NGX_KEXEC_EXECUTE_H_INCLUDED_ */
