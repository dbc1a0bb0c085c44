
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_answer.h>
#include <ngx_kexec_report.h>


static void ngx_kexec_answer(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *type, ngx_str_t *body);


void
ngx_kexec_answer_text(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *text)
{
    static ngx_str_t  type = ngx_string("text/plain; charset=utf-8");

    ngx_kexec_answer(r, status, &type, text);
}


void
ngx_kexec_answer_json(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *json)
{
    static ngx_str_t  type = ngx_string("application/json");

    ngx_kexec_answer(r, status, &type, json);
}


static void
ngx_kexec_answer(ngx_http_request_t *r, ngx_uint_t status, ngx_str_t *type,
    ngx_str_t *body)
{
    ngx_int_t            rc;
    ngx_buf_t           *b;
    ngx_chain_t          out;
    ngx_kexec_report_t  *report;

    /*
     * nginx gives a body that nobody reads lingering_timeout, and a connection
     * where that has passed is not kept.  This answer may have taken longer.
     */

    r->connection->read->timedout = 0;

    report = ngx_kexec_report(r);

    if (report && report->status == NGX_KEXEC_STATUS_NONE && status >= 400) {
        report->status = NGX_KEXEC_STATUS_REJECTED;
    }

    r->headers_out.status = status;

    /* nginx knows no 422, and calls 405 "Not Allowed" */

    if (status == 422) {
        ngx_str_set(&r->headers_out.status_line, "422 Unprocessable Content");

    } else if (status == NGX_HTTP_NOT_ALLOWED) {
        ngx_str_set(&r->headers_out.status_line, "405 Method Not Allowed");
    }

    r->headers_out.content_length_n = body->len;
    r->headers_out.content_type = *type;
    r->headers_out.content_type_len = type->len;
    r->headers_out.content_type_lowcase = NULL;

    if (status == NGX_HTTP_TEMPORARY_REDIRECT) {
        r->headers_out.content_type.len = 0;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    if (body->len) {
        b->pos = ngx_pstrdup(r->pool, body);
        if (b->pos == NULL) {
            ngx_http_finalize_request(r, NGX_ERROR);
            return;
        }

        b->last = b->pos + body->len;
        b->memory = 1;
    }

    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    ngx_http_finalize_request(r, ngx_http_output_filter(r, &out));
}


ngx_int_t
ngx_kexec_add_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    /* ngx_list_push() zeroes nothing, and "next" is new in 1.23.0 */

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    h->key.len = ngx_strlen(name);
    h->key.data = (u_char *) name;
    h->value = *value;

    return NGX_OK;
}
