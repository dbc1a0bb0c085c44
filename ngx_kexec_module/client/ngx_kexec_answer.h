
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_ANSWER_H_INCLUDED_
#define _NGX_KEXEC_ANSWER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Answers, the only way that a request without a stream ends.  Each
 * finalizes the request; the caller must not use it afterwards, and runs
 * posted requests if it was not called by nginx itself.
 */

/* text/plain, as the reference server's own sentences */
void ngx_kexec_answer_text(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *text);

/* application/json; the body is used as it is */
void ngx_kexec_answer_json(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *json);

/* adds a header; values must outlive the request */
ngx_int_t ngx_kexec_add_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);


#endif /* _NGX_KEXEC_ANSWER_H_INCLUDED_ */
