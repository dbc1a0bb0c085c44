
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_LINK_H_INCLUDED_
#define _NGX_KEXEC_LINK_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_http.h>
#include <ngx_kexec_message.h>


/*
 * A link: the websocket to one kernel's channels (RFC 6455; Jupyter's
 * subprotocol v1.kernel.websocket.jupyter.org is asked for, the default
 * protocol works too).  It has its own pool, log and connection, reads at all
 * times, answers pings and closes, and never pauses.  One bad frame or
 * message is skipped with a log line; a violation that loses the framing
 * closes the link.
 *
 * Handlers are called from the event loop only, never from inside a function
 * of the link's.  A handler may close the link.  After closed() was called,
 * or ngx_kexec_link_close(), the link must not be used any more.
 */


typedef struct ngx_kexec_link_s  ngx_kexec_link_t;


typedef struct {
    /* the handshake is done: messages may be sent */
    void                (*opened)(ngx_kexec_link_t *link);

    /* a message; its spans are valid until return */
    void                (*message)(ngx_kexec_link_t *link,
                                   ngx_kexec_message_t *msg);

    /*
     * The link is gone and will be freed.  status: the HTTP status of a
     * refused handshake (404: no such kernel), a websocket close code (1000
     * and above), or 0 (connection refused, reset, timed out).
     */
    void                (*closed)(ngx_kexec_link_t *link, ngx_uint_t status,
                                  const char *reason);
} ngx_kexec_link_handlers_t;


/*
 * Opens a link.  The ids are copied; the server must outlive the link.
 * session_id is what Jupyter recognises the link by: a later link with the
 * same one takes this one's place and gets what was buffered meanwhile.
 * max_message: bytes; a longer one, or one that is malformed, is skipped and
 * told as a message of type NGX_KEXEC_MSG_OTHER with link->skipped set during
 * the call.
 * NULL: no memory.
 */
ngx_kexec_link_t *ngx_kexec_link_open(ngx_kexec_server_t *server,
    ngx_str_t *kernel, ngx_str_t *session_id, size_t max_message,
    ngx_kexec_link_handlers_t *handlers, void *data, ngx_log_t *log);

/*
 * Sends a request on shell; what the socket does not take at once is kept
 * and sent in order.  Only after opened().  NGX_OK or NGX_ERROR (no memory;
 * a broken connection comes as closed()).
 */
ngx_int_t ngx_kexec_link_send(ngx_kexec_link_t *link,
    ngx_kexec_request_msg_t *req);

/*
 * Closes without calling closed(): a close frame is sent if the socket takes
 * it at once.  The memory is freed when it is safe (also inside a handler).
 */
void ngx_kexec_link_close(ngx_kexec_link_t *link);

/*
 * A link that is between executions may be closed by a worker that leaves
 * gracefully (ngx_connection_t's idle); a busy one may not.
 */
void ngx_kexec_link_idle(ngx_kexec_link_t *link, ngx_uint_t idle);

void *ngx_kexec_link_data(ngx_kexec_link_t *link);
ngx_uint_t ngx_kexec_link_skipped(ngx_kexec_link_t *link);

/* is Jupyter there?  It answers the handshake when the kernel is ready */
ngx_uint_t ngx_kexec_link_connected(ngx_kexec_link_t *link);

/* when something was last read, ngx_current_msec */
ngx_msec_t ngx_kexec_link_last_read(ngx_kexec_link_t *link);


#endif /* _NGX_KEXEC_LINK_H_INCLUDED_ */
