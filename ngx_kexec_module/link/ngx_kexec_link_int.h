
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_LINK_INT_H_INCLUDED_
#define _NGX_KEXEC_LINK_INT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_event_connect.h>
#include <ngx_kexec_id.h>
#include <ngx_kexec_link.h>
#include <ngx_kexec_websocket.h>


/* what ngx_kexec_link.c and ngx_kexec_link_frames.c share */


/* messages up to this size are read and handed over in place */
#define NGX_KEXEC_LINK_BUFFER     (128 * 1024)

#define NGX_KEXEC_LINK_KEY_LEN    24

/* close codes, RFC 6455, section 7.4.1 */
#define NGX_KEXEC_LINK_NORMAL     1000
#define NGX_KEXEC_LINK_AWAY       1001
#define NGX_KEXEC_LINK_VIOLATION  1002
#define NGX_KEXEC_LINK_NO_CODE    1005


typedef enum {
    NGX_KEXEC_LINK_CONNECTING = 0,
    NGX_KEXEC_LINK_HANDSHAKING,
    NGX_KEXEC_LINK_OPEN
} ngx_kexec_link_state_e;


/* why a message was skipped */

typedef enum {
    NGX_KEXEC_LINK_LONG = 0,
    NGX_KEXEC_LINK_NO_MEMORY,
    NGX_KEXEC_LINK_MALFORMED,
    NGX_KEXEC_LINK_SKIPS
} ngx_kexec_link_skip_e;


/* a frame on its way out, allocated together with its bytes */

typedef struct {
    ngx_chain_t                 chain;
    ngx_buf_t                   buf;
} ngx_kexec_link_out_t;


struct ngx_kexec_link_s {
    ngx_kexec_server_t         *server;
    ngx_kexec_link_handlers_t  *handlers;
    void                       *data;
    size_t                      max_message;

    ngx_pool_t                 *pool;
    ngx_log_t                   log;
    ngx_kexec_http_log_t        log_ctx;
    ngx_peer_connection_t       peer;
    ngx_event_t                 timer;      /* of connecting, the handshake */
    ngx_event_t                 flush;
    ngx_msec_t                  last_read;

    ngx_kexec_link_state_e      state;
    ngx_kexec_format_e          format;     /* of what is sent */

    ngx_uint_t                  status;     /* why it ends, for closed() */
    const char                 *error;

    u_char                      key[NGX_KEXEC_LINK_KEY_LEN];
    ngx_kexec_http_head_t       head;

    ngx_buf_t                  *in;
    ngx_kexec_websocket_t       ws;
    uint64_t                    rest;       /* of the frame's payload */

    u_char                     *message;    /* memory for long messages */
    size_t                      size;
    size_t                      len;

    u_char                      control[NGX_KEXEC_WS_CONTROL + 1];
    size_t                      control_len;

    ngx_msec_t                  told[NGX_KEXEC_LINK_SKIPS]; /* 0: never */
    ngx_uint_t                  untold[NGX_KEXEC_LINK_SKIPS];

    ngx_chain_t                *out;
    ngx_chain_t               **last_out;
    ngx_chain_t                *unread;     /* kept until Jupyter reads */
    ngx_chain_t               **last_unread;
    ngx_kexec_link_out_t        pong;
    u_char                      pong_data[NGX_KEXEC_WS_HEADER
                                          + NGX_KEXEC_WS_CONTROL];

    unsigned                    payload:1;      /* inside a frame */
    unsigned                    assembling:1;   /* it is read into message */
    unsigned                    skip:1;         /* the rest of the message */
    unsigned                    skipped:1;
    unsigned                    broken:1;       /* nothing can be sent */
    unsigned                    heard:1;        /* Jupyter reads messages */
    unsigned                    reading:1;      /* inside the read handler */
    unsigned                    leaving:1;      /* with the worker */
    unsigned                    closing:1;
};


ngx_int_t ngx_kexec_link_fail(ngx_kexec_link_t *link, ngx_uint_t status,
    const char *reason);

/* NGX_AGAIN, NGX_ERROR, or NGX_DONE: a handler has closed the link */
ngx_int_t ngx_kexec_link_process_frames(ngx_kexec_link_t *link);

/* says in the log how many messages were skipped that were not told there */
void ngx_kexec_link_log_untold(ngx_kexec_link_t *link);

ngx_kexec_link_out_t *ngx_kexec_link_alloc(ngx_kexec_link_t *link,
    size_t size);
void ngx_kexec_link_push(ngx_kexec_link_t *link, ngx_kexec_link_out_t *out);
/* messages are kept until its answer shows that Jupyter reads them */
ngx_int_t ngx_kexec_link_send_ping(ngx_kexec_link_t *link);

void ngx_kexec_link_send_close(ngx_kexec_link_t *link, ngx_uint_t code);
void ngx_kexec_link_flush(ngx_kexec_link_t *link);
void ngx_kexec_link_free_out(ngx_kexec_link_t *link, ngx_chain_t *until);


#endif /* _NGX_KEXEC_LINK_INT_H_INCLUDED_ */
