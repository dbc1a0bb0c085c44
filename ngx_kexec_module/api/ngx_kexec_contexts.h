
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_CONTEXTS_H_INCLUDED_
#define _NGX_KEXEC_CONTEXTS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_answer.h>
#include <ngx_kexec_execution.h>
#include <ngx_kexec_park.h>
#include <ngx_kexec_report.h>
#include <ngx_kexec_schema.h>


/* a context that is to be made */

typedef struct {
    ngx_http_request_t         *request;        /* NULL: none */
    ngx_http_kexec_loc_conf_t  *conf;
    ngx_kexec_zone_t           *zone;
    ngx_str_t                  *language;
    ngx_str_t                  *cwd;
    ngx_uint_t                  is_default;

    /* called at its end, unless it is NULL */
    ngx_kexec_created_pt        created;
    void                       *data;

    /* NULL, or where to put what makes it, until created() is called */
    ngx_kexec_execution_t     **execution;

    /* what is to be answered where it cannot be made */
    ngx_uint_t                  status;
    const char                 *sentence;
} ngx_kexec_make_t;


/* GET /contexts, POST /contexts */

ngx_int_t ngx_kexec_list_handler(ngx_http_request_t *r, ngx_str_t *id);
ngx_int_t ngx_kexec_create_handler(ngx_http_request_t *r, ngx_str_t *id);

/* the zone of the http block */
ngx_kexec_zone_t *ngx_kexec_request_zone(ngx_http_request_t *r);

/*
 * The body of a request by its schema.  NGX_OK: *object, which lives as long
 * as the request; NGX_DONE: the request was answered.
 */
ngx_int_t ngx_kexec_body(ngx_http_request_t *r, ngx_kexec_field_t *fields,
    json_t **object);

/* gives the object back before the request ends */
void ngx_kexec_body_free(ngx_http_request_t *r, json_t *object);

/*
 * The normal form of a request's word for a language, python if it is empty.
 * NGX_OK; NGX_DONE: the request was answered.
 */
ngx_int_t ngx_kexec_language(ngx_http_request_t *r, ngx_str_t *word,
    ngx_str_t *language);

/*
 * Starts to make a context: on the Jupyter Server that the upstream block's
 * balancing picks for the request, or, without one, on the block's first live
 * one; if that cannot be reached, on another.
 * NGX_OK: under way, ctx and *execution are set; NGX_BUSY: the default context
 * of that language is there already, or being made: ctx is that one; NGX_ERROR:
 * status and sentence say why not.
 */
ngx_int_t ngx_kexec_context_make(ngx_kexec_make_t *make,
    ngx_kexec_context_t *ctx);

/*
 * Answers that there is no such context: 404, or 503 as long as not all of
 * Jupyter's sessions were seen.
 */
void ngx_kexec_answer_unknown(ngx_http_request_t *r, ngx_str_t *id);

/*
 * Answers that n executions, restarts or interrupts of the context wait
 * already: 429, with Retry-After.
 */
void ngx_kexec_answer_full(ngx_http_request_t *r, ngx_uint_t n,
    const char *what);


#endif /* _NGX_KEXEC_CONTEXTS_H_INCLUDED_ */
