
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_HTTP_PARSE_H_INCLUDED_
#define _NGX_KEXEC_HTTP_PARSE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * Parsers of HTTP/1.1 responses, which are fed any pieces.
 *
 * Pure: no I/O, no allocation, only nginx's basic types.
 */


/* the head of a response, also of the websocket's handshake */

typedef struct {
    ngx_uint_t            status;
    off_t                 content_length;    /* -1: none */
    u_char                accept[64];        /* Sec-WebSocket-Accept */
    ngx_uint_t            accept_len;
    u_char                protocol[64];      /* Sec-WebSocket-Protocol */
    ngx_uint_t            protocol_len;
    unsigned              chunked:1;
    unsigned              upgrade:1;         /* "websocket" */
    unsigned              keepalive:1;

    const char           *error;

    /* private; zeroed before the first call */
    unsigned              headers:1;         /* the status line is read */
    unsigned              cr:1;
    unsigned              upgrading:1;       /* Connection: upgrade */
    unsigned              websocket:1;       /* Upgrade: websocket */
    unsigned              extensions:1;      /* Sec-WebSocket-Extensions */
    ngx_uint_t            size;
    ngx_uint_t            line_len;
    u_char                line[1024];
} ngx_kexec_http_head_t;


/*
 * NGX_OK (*pos is behind the head), NGX_AGAIN, or NGX_ERROR with error set.
 * 1xx answers other than 101 are skipped.  Heads over 64 kB, both
 * Content-Length and Transfer-Encoding, and repeated Content-Length are
 * errors.  (RFC 9112)
 */
ngx_int_t ngx_kexec_http_head(ngx_kexec_http_head_t *head, u_char **pos,
    u_char *last);


/* decoder of Transfer-Encoding: chunked */

typedef struct {
    ngx_uint_t            state;             /* zeroed before the first call */
    off_t                 size;
} ngx_kexec_http_chunked_t;

/*
 * NGX_OK: [*data, *data_last) of payload stands in the input; *pos is behind
 * it.  NGX_DONE: the end.  NGX_AGAIN, NGX_ERROR.
 */
ngx_int_t ngx_kexec_http_chunked(ngx_kexec_http_chunked_t *ctx, u_char **pos,
    u_char *last, u_char **data, u_char **data_last);


#endif /* _NGX_KEXEC_HTTP_PARSE_H_INCLUDED_ */
