
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_HTTP_H_INCLUDED_
#define _NGX_KEXEC_HTTP_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_event_connect.h>
#include <ngx_kexec_http_parse.h>


/*
 * A small HTTP/1.1 client on ngx_event_connect_peer().  A call has its own
 * pool, log and connection and depends on no request, so that it outlives the
 * client on whose behalf it was made.
 */


/*
 * A Jupyter Server: where it is and how to speak to it.  Whoever fills it in
 * keeps it alive for as long as a link that uses it lives; a call has a copy.
 */

typedef struct {
    struct sockaddr      *sockaddr;
    socklen_t             socklen;
    ngx_str_t             name;         /* for logs: "127.0.0.1:8888" */
    ngx_str_t             host;         /* Host header, "": the address */
    ngx_str_t             base;         /* URI prefix without last "/", or "" */
    ngx_str_t             token;        /* or ""; never logged */
    const char           *token_header; /* NULL: "Authorization: token " */
    ngx_msec_t            connect_timeout;
    ngx_msec_t            timeout;      /* of a whole REST call */
} ngx_kexec_server_t;


/* what the log says about a connection to Jupyter; log->data points to it */

typedef struct {
    ngx_str_t            *server;       /* its name */
    ngx_str_t             request;      /* method and URI */
} ngx_kexec_http_log_t;


typedef struct ngx_kexec_http_s  ngx_kexec_http_t;

/*
 * Called once, from the event loop, never from inside the function that
 * started the call.  The call is freed when it returns.
 */
typedef void (*ngx_kexec_http_pt)(ngx_kexec_http_t *http);


struct ngx_kexec_http_s {
    /* set by the caller, between _create() and _send() */
    ngx_kexec_http_pt         handler;
    void                     *data;

    /* what came back, valid inside the handler */
    ngx_uint_t                status;       /* 0: no answer, error says why */
    ngx_str_t                 body;
    const char               *error;        /* "timed out", ... */

    ngx_pool_t               *pool;         /* for the caller too */

    /* private below */
    ngx_kexec_server_t        server;
    ngx_log_t                 log;
    ngx_kexec_http_log_t      log_ctx;
    ngx_peer_connection_t     peer;
    ngx_event_t               timer;        /* of the whole call */
    ngx_event_t               done;         /* tells what failed in _send() */
    ngx_buf_t                *request;
    ngx_buf_t                *response;     /* what was read last */
    size_t                    size;         /* of the body's memory */
    ngx_kexec_http_head_t     head;
    ngx_kexec_http_chunked_t  chunks;
    unsigned                  connected:1;
    unsigned                  headed:1;     /* the head is read */
    unsigned                  finished:1;
};


/* the largest answer that is taken, in bytes */
#define NGX_KEXEC_HTTP_MAX_BODY  (8 * 1024 * 1024)


/*
 * NULL: no memory.  Where the server is is copied, its token, host and base
 * are needed until ngx_kexec_http_send() returns.
 */
ngx_kexec_http_t *ngx_kexec_http_create(ngx_kexec_server_t *server,
    ngx_log_t *log);

/*
 * Sends "method base+uri" with an optional JSON body.  Everything is copied.
 * Whatever goes wrong comes to the handler as status 0.
 */
void ngx_kexec_http_send(ngx_kexec_http_t *http, const char *method,
    ngx_str_t *uri, ngx_str_t *body);

/* another limit than the server's for a call under way, from now on */
void ngx_kexec_http_limit(ngx_kexec_http_t *http, ngx_msec_t limit);

/* ends a call without calling its handler; the call is freed */
void ngx_kexec_http_cancel(ngx_kexec_http_t *http);


/* shared with the websocket's handshake */

/*
 * The bytes of a request; headers are whole lines, body may be NULL.
 * line becomes the method and the URI, for the log.  NULL: no memory.
 */
ngx_buf_t *ngx_kexec_http_request(ngx_pool_t *pool,
    ngx_kexec_server_t *server, const char *method, ngx_str_t *uri,
    const char *headers, ngx_str_t *body, ngx_str_t *line);

/* as ngx_event_connect_peer() */
ngx_int_t ngx_kexec_http_connect(ngx_peer_connection_t *peer,
    ngx_kexec_server_t *server, ngx_log_t *log);

/* how a connect() ended that was in progress: NULL, or why it failed */
const char *ngx_kexec_http_test_connect(ngx_connection_t *c);

/* ngx_log_t's handler */
u_char *ngx_kexec_http_log_error(ngx_log_t *log, u_char *buf, size_t len);


#endif /* _NGX_KEXEC_HTTP_H_INCLUDED_ */
