
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_REPORT_H_INCLUDED_
#define _NGX_KEXEC_REPORT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_id.h>


typedef enum {
    NGX_KEXEC_STATUS_NONE = 0,
    NGX_KEXEC_STATUS_OK,
    NGX_KEXEC_STATUS_ERROR,
    NGX_KEXEC_STATUS_CANCELLED,
    NGX_KEXEC_STATUS_TIMEOUT,
    NGX_KEXEC_STATUS_REJECTED,
    NGX_KEXEC_STATUS_DIED
} ngx_kexec_status_e;


/*
 * What the log's variables tell of a request.  It is in the request's pool
 * and outlives all that the request's cleanups end.
 */

typedef struct {
    u_char                      context[NGX_KEXEC_UUID_LEN];
    u_char                      execution[NGX_KEXEC_UUID_LEN];
    unsigned                    has_context:1;
    unsigned                    has_execution:1;
    unsigned                    has_queue_time:1;
    unsigned                    has_run_time:1;
    ngx_kexec_status_e          status;
    ngx_msec_t                  queue_time;
    ngx_msec_t                  run_time;
} ngx_kexec_report_t;


/* the request's report, made on first use; NULL: no memory */
ngx_kexec_report_t *ngx_kexec_report(ngx_http_request_t *r);

/* the same, NULL if there is none */
ngx_kexec_report_t *ngx_kexec_find_report(ngx_http_request_t *r);


#endif /* _NGX_KEXEC_REPORT_H_INCLUDED_ */
