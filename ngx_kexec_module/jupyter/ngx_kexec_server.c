
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_server.h>


static void ngx_kexec_pin(ngx_kexec_context_t *ctx,
    struct sockaddr *sockaddr, socklen_t socklen, ngx_str_t *name);


ngx_kexec_server_t *
ngx_kexec_server_create(ngx_http_kexec_loc_conf_t *conf,
    ngx_http_request_t *r, ngx_pool_t *pool)
{
    ngx_str_t            token;
    ngx_kexec_server_t  *server;

    server = ngx_pcalloc(pool, sizeof(ngx_kexec_server_t));
    if (server == NULL) {
        return NULL;
    }

    server->host = conf->host;
    server->base = conf->base;
    server->connect_timeout = conf->connect_timeout;
    server->timeout = conf->jupyter_timeout;

    if (conf->token_file.len) {
        server->token = conf->token_file;
        return server;
    }

    if (conf->token == NULL) {
        return server;
    }

    if (conf->token->lengths == NULL) {
        server->token = conf->token->value;
        return server;
    }

    if (r == NULL) {
        return server;
    }

    if (ngx_http_complex_value(r, conf->token, &token) != NGX_OK) {
        return NULL;
    }

    if (!ngx_kexec_token_valid(&token)) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "the value of \"kexec_token\" has characters that no "
                      "HTTP header can hold, none is sent");
        return server;
    }

    server->token.len = token.len;
    server->token.data = ngx_pstrdup(pool, &token);
    if (server->token.data == NULL && token.len) {
        return NULL;
    }

    return server;
}


ngx_uint_t
ngx_kexec_token_valid(ngx_str_t *token)
{
    size_t  i;

    for (i = 0; i < token->len; i++) {
        if (token->data[i] <= ' ' || token->data[i] >= 0x7f) {
            return 0;
        }
    }

    return 1;
}


void
ngx_kexec_server_at(ngx_kexec_server_t *server, ngx_kexec_context_t *ctx)
{
    server->sockaddr = (struct sockaddr *) ctx->sockaddr;
    server->socklen = ctx->socklen;
    server->name.len = ctx->server_len;
    server->name.data = ctx->server;
}


/*
 * One round of the upstream block's own balancing.  It may look at the request
 * (hash keys, addresses), so it is given an upstream of its own for a moment.
 */

ngx_int_t
ngx_kexec_balance(ngx_http_request_t *r, ngx_http_kexec_loc_conf_t *conf,
    ngx_kexec_context_t *ctx)
{
    ngx_int_t                      rc;
    ngx_http_upstream_t           *u, *saved;
    ngx_peer_connection_t         *pc;
    ngx_http_upstream_srv_conf_t  *uscf;

    uscf = conf->upstream.upstream;

    u = ngx_pcalloc(r->pool, sizeof(ngx_http_upstream_t));
    if (u == NULL) {
        return NGX_ERROR;
    }

    u->conf = &conf->upstream;
    u->peer.log = r->connection->log;
    u->peer.log_error = NGX_ERROR_ERR;

    saved = r->upstream;
    r->upstream = u;

    pc = &u->peer;

    if (uscf->peer.init(r, uscf) != NGX_OK) {
        r->upstream = saved;
        return NGX_ERROR;
    }

    rc = pc->get(pc, pc->data);

    if (rc == NGX_OK || rc == NGX_DONE) {

        ngx_kexec_pin(ctx, pc->sockaddr, pc->socklen, pc->name);

        /* a cached connection is given back: only the address is wanted */

        u->keepalive = 1;
        u->request_body_sent = 1;

        pc->free(pc, pc->data, 0);

        if (pc->connection) {

            if (pc->connection->pool) {
                ngx_destroy_pool(pc->connection->pool);
            }

            ngx_close_connection(pc->connection);
            pc->connection = NULL;
        }

        rc = NGX_OK;

    } else {
        rc = NGX_ERROR;
    }

    r->upstream = saved;

    return rc;
}


/*
 * Every balancer of nginx keeps its servers in this list, the backup ones in
 * a second.
 */

ngx_int_t
ngx_kexec_peer(ngx_http_kexec_loc_conf_t *conf, ngx_uint_t n,
    ngx_kexec_context_t *ctx)
{
    ngx_int_t                      rc;
    ngx_http_upstream_rr_peer_t   *peer;
    ngx_http_upstream_rr_peers_t  *peers;

    rc = NGX_DECLINED;

    for (peers = conf->upstream.upstream->peer.data;
         peers && rc != NGX_OK;
         peers = peers->next)
    {
        ngx_http_upstream_rr_peers_rlock(peers);

        for (peer = peers->peer; peer; peer = peer->next) {

            if (peer->down || n-- > 0) {
                continue;
            }

            ngx_kexec_pin(ctx, peer->sockaddr, peer->socklen, &peer->name);

            rc = NGX_OK;
            break;
        }

        ngx_http_upstream_rr_peers_unlock(peers);
    }

    return rc;
}


static void
ngx_kexec_pin(ngx_kexec_context_t *ctx, struct sockaddr *sockaddr,
    socklen_t socklen, ngx_str_t *name)
{
    ctx->socklen = socklen;
    ngx_memcpy(ctx->sockaddr, sockaddr, socklen);

    ctx->server_len = ngx_min(name->len, NGX_SOCKADDR_STRLEN);
    ngx_memcpy(ctx->server, name->data, ctx->server_len);
}
