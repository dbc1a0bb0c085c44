
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_HEALTH_H_INCLUDED_
#define _NGX_KEXEC_HEALTH_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_settings.h>


/* GET /health */
ngx_int_t ngx_kexec_health_handler(ngx_http_request_t *r, ngx_str_t *id);

/* default contexts, from init_process */
ngx_int_t ngx_kexec_startup(ngx_cycle_t *cycle,
    ngx_http_kexec_main_conf_t *kmcf);


#endif /* _NGX_KEXEC_HEALTH_H_INCLUDED_ */
