
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_SERVER_H_INCLUDED_
#define _NGX_KEXEC_SERVER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_http.h>
#include <ngx_kexec_settings.h>
#include <ngx_kexec_zone.h>


/*
 * Which Jupyter Server a context has, and how it is spoken to: by what the
 * directives say, and by what the upstream block picks.  Requests are looked at
 * for the token's variables and by the block's balancing alone.
 */


/* of kexec_envs_url */

struct ngx_kexec_envs_s {
    ngx_kexec_server_t          server;         /* without times and token */
    ngx_str_t                   uri;
};


/*
 * The Jupyter Server of a context or, when sockaddr is NULL, without an
 * address yet; allocated from pool.  r may be NULL: then only a token that
 * needs no request is known.
 */
ngx_kexec_server_t *ngx_kexec_server_create(ngx_http_kexec_loc_conf_t *conf,
    ngx_http_request_t *r, ngx_pool_t *pool);

/* points the server to where ctx is pinned; ctx must live as long */
void ngx_kexec_server_at(ngx_kexec_server_t *server,
    ngx_kexec_context_t *ctx);

/* can an HTTP header hold the token? */
ngx_uint_t ngx_kexec_token_valid(ngx_str_t *token);

/*
 * Pins ctx to the Jupyter Server that the upstream block's balancing picks for
 * r.  NGX_ERROR: there is none.
 */
ngx_int_t ngx_kexec_balance(ngx_http_request_t *r,
    ngx_http_kexec_loc_conf_t *conf, ngx_kexec_context_t *ctx);

/*
 * Pins ctx to the upstream block's n-th live server, in the block's order.
 * NGX_DECLINED: there are not that many.
 */
ngx_int_t ngx_kexec_peer(ngx_http_kexec_loc_conf_t *conf, ngx_uint_t n,
    ngx_kexec_context_t *ctx);


#endif /* _NGX_KEXEC_SERVER_H_INCLUDED_ */
