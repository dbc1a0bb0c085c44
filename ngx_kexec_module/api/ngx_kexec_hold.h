
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_HOLD_H_INCLUDED_
#define _NGX_KEXEC_HOLD_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_routes.h>
#include <ngx_kexec_zone.h>


/* from init_process: requests of this worker may be held for that zone */
void ngx_kexec_hold_init(ngx_cycle_t *cycle, ngx_kexec_zone_t *zone);

/*
 * Right after the start of nginx its contexts are not known yet: a request
 * waits for Jupyter's first answer, at most 5 s, and is then given to handler.
 * NGX_DECLINED: it need not wait; else what a content handler returns.
 */
ngx_int_t ngx_kexec_hold(ngx_http_request_t *r, ngx_kexec_handler_pt handler,
    ngx_str_t *id);


#endif /* _NGX_KEXEC_HOLD_H_INCLUDED_ */
