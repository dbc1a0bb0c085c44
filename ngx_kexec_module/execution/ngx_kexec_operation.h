
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_OPERATION_H_INCLUDED_
#define _NGX_KEXEC_OPERATION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_machine_operation.h>
#include <ngx_kexec_settings.h>
#include <ngx_kexec_zone.h>


/*
 * A restart or deletion of a context: takes the slot as an execution does, but
 * ends all others.  Once anybody else felt it, or it has the slot, it goes on
 * when its client left, so it has its own pool.  One restart answers all that
 * wait when it ends.
 */

typedef struct ngx_kexec_operation_s  ngx_kexec_operation_t;

/*
 * How it ended, once, and the slot is given on; or, where that takes longer
 * than the worker may, that it goes on.  Not after an abandon.
 */
typedef void (*ngx_kexec_operation_pt)(void *data, ngx_kexec_op_end_e end);


/* kind: RESTART or DELETE; r, or NULL, gives the token.  NULL: no memory */
ngx_kexec_operation_t *ngx_kexec_operation_create(ngx_http_request_t *r,
    ngx_http_kexec_loc_conf_t *conf, ngx_kexec_context_t *ctx,
    ngx_kexec_claim_kind_e kind);

/*
 * Asks for the slot: NGX_OK, and from now on the operation looks after itself;
 * or what ngx_kexec_claim_operate() refused with, and it is gone.
 */
ngx_int_t ngx_kexec_operation_enter(ngx_kexec_operation_t *op,
    ngx_kexec_zone_t *zone, ngx_uint_t limit, ngx_kexec_operation_pt handler,
    void *data);

/* nobody waits for it any more; the handler is not called */
void ngx_kexec_operation_abandon(ngx_kexec_operation_t *op);

/* deletes a context, unless it was used within kmcf's idle_timeout */
void ngx_kexec_operation_expire(ngx_http_kexec_main_conf_t *kmcf,
    ngx_http_kexec_loc_conf_t *conf, ngx_kexec_context_t *ctx);


#endif /* _NGX_KEXEC_OPERATION_H_INCLUDED_ */
