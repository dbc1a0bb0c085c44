
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_SYNC_H_INCLUDED_
#define _NGX_KEXEC_SYNC_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_jupyter.h>
#include <ngx_kexec_server.h>


/* deletes a context, unless it was used within kmcf's idle_timeout */
typedef void (*ngx_kexec_expire_pt)(ngx_http_kexec_main_conf_t *kmcf,
    ngx_http_kexec_loc_conf_t *conf, ngx_kexec_context_t *ctx);


/*
 * From init_process: starts to keep the zone and Jupyter's sessions the same,
 * and to let contexts expire that nobody uses.
 */
void ngx_kexec_sync_init(ngx_cycle_t *cycle, ngx_http_kexec_main_conf_t *kmcf,
    ngx_kexec_expire_pt expire);

/*
 * Of sessions that claim one id, the one of the highest epoch among those whose
 * context was ready comes behind all others of that id: only one can have it.
 * Else they keep the order of Jupyter's list, in which the youngest comes last.
 * NGX_OK, NGX_ERROR: no memory.
 */
ngx_int_t ngx_kexec_sync_order(ngx_pool_t *pool, ngx_array_t *sessions);


#endif /* _NGX_KEXEC_SYNC_H_INCLUDED_ */
