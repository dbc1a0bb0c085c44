
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_CLIENT_H_INCLUDED_
#define _NGX_KEXEC_CLIENT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_json.h>
#include <ngx_kexec_report.h>
#include <ngx_kexec_settings.h>


/*
 * A client: the HTTP request that watches an execution.  It takes events,
 * sends them at the client's own speed, and tells when the client left.  The
 * execution may end long before all was sent; the client then drains alone.
 *
 * What the client has not taken is kept in memory up to kexec_buffer_size,
 * then in a temporary file up to kexec_max_temp_file_size, and all clients'
 * files up to kexec_max_temp_files_size.
 *
 * It lives in the request's pool.
 */


typedef struct ngx_kexec_client_s  ngx_kexec_client_t;


struct ngx_kexec_client_s {
    ngx_http_request_t         *request;
    ngx_http_kexec_loc_conf_t  *conf;
    ngx_http_kexec_main_conf_t *main_conf;
    ngx_kexec_report_t         *report;

    /* called when the client left, unless it was ended before */
    void                      (*gone)(void *data);
    void                       *data;

    /* where events are written; a wake must follow */
    ngx_kexec_out_t             out;

    /* private */
    ngx_chain_t                *block;          /* out's window */
    ngx_chain_t                *pending;        /* not given to nginx yet */
    ngx_chain_t               **last_pending;
    ngx_chain_t                *after;          /* behind the file, if full */
    ngx_chain_t               **last_after;
    ngx_chain_t                *busy;
    ngx_chain_t                *free;
    size_t                      kept;           /* bytes of memory in use */

    ngx_temp_file_t            *temp_file;
    ngx_buf_t                  *file_buf;       /* part given to nginx */
    off_t                       file_sent;
    off_t                       file_size;

    off_t                       sent;           /* when the timer was set */

    ngx_event_t                 keepalive;
    ngx_msec_t                  last_event;

    unsigned                    started:1;
    unsigned                    held:1;         /* headers are not sent yet */
    unsigned                    ended:1;
    unsigned                    last:1;         /* the body's end was sent */
    unsigned                    sending:1;
    unsigned                    failed:1;       /* the disk is full */
};


/*
 * Makes the client of a request whose body was read, NULL: no memory.  From
 * now on gone() may be called.
 */
ngx_kexec_client_t *ngx_kexec_client_create(ngx_http_request_t *r);

/*
 * Sends the headers, a few milliseconds later unless something can be sent with
 * them before.  NGX_ERROR: the request must be finalized with
 * NGX_ERROR by the caller, who is called by nginx itself.
 */
ngx_int_t ngx_kexec_client_start(ngx_kexec_client_t *client);

/* what was written to out is to be sent, from the event loop */
void ngx_kexec_client_wake(ngx_kexec_client_t *client);

/* the same for what is no output: it may go with the headers */
void ngx_kexec_client_wake_later(ngx_kexec_client_t *client);

/*
 * Why an event should be dropped as a whole, since no more can be kept, or
 * NULL.  (An event that was begun is always kept.)
 */
const char *ngx_kexec_client_full(ngx_kexec_client_t *client);

/*
 * The last event was written: the stream ends when all is sent.  gone() is
 * not called any more.
 */
void ngx_kexec_client_end(ngx_kexec_client_t *client);


#endif /* _NGX_KEXEC_CLIENT_H_INCLUDED_ */
