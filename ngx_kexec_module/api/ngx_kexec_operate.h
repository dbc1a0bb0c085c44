
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_OPERATE_H_INCLUDED_
#define _NGX_KEXEC_OPERATE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* POST /contexts/ID/restart, /contexts/ID/interrupt, DELETE /contexts/ID */

ngx_int_t ngx_kexec_restart_handler(ngx_http_request_t *r, ngx_str_t *id);
ngx_int_t ngx_kexec_delete_handler(ngx_http_request_t *r, ngx_str_t *id);
ngx_int_t ngx_kexec_interrupt_handler(ngx_http_request_t *r, ngx_str_t *id);


#endif /* _NGX_KEXEC_OPERATE_H_INCLUDED_ */
