
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_OPERATIONS_H_INCLUDED_
#define _NGX_KEXEC_OPERATIONS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_settings.h>
#include <ngx_kexec_zone.h>


/* POST /contexts/ID/restart, /contexts/ID/interrupt, DELETE /contexts/ID */

ngx_int_t ngx_kexec_restart_handler(ngx_http_request_t *r, ngx_str_t *id);
ngx_int_t ngx_kexec_delete_handler(ngx_http_request_t *r, ngx_str_t *id);
ngx_int_t ngx_kexec_interrupt_handler(ngx_http_request_t *r, ngx_str_t *id);

/* deletes a context, unless it was used within kmcf's idle_timeout */
void ngx_kexec_operation_expire(ngx_http_kexec_main_conf_t *kmcf,
    ngx_http_kexec_loc_conf_t *conf, ngx_kexec_context_t *ctx);


#endif /* _NGX_KEXEC_OPERATIONS_H_INCLUDED_ */
