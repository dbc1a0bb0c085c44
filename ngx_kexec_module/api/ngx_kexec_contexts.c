
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_contexts.h>


/* a POST /contexts until its context is made; in the request's pool */

typedef struct {
    ngx_http_request_t         *request;
    ngx_kexec_execution_t      *execution;
} ngx_kexec_create_t;


static ngx_int_t ngx_kexec_read_body(ngx_http_request_t *r, ngx_str_t *body,
    ngx_uint_t *copied);
static void ngx_kexec_body_cleanup(void *data);
static void ngx_kexec_create_body(ngx_http_request_t *r);
static void ngx_kexec_create_cleanup(void *data);
static void ngx_kexec_create_done(void *data, ngx_uint_t status,
    ngx_str_t *sentence, ngx_kexec_context_t *ctx);
static json_t *ngx_kexec_context_json(ngx_kexec_context_t *ctx);
static void ngx_kexec_answer_jansson(ngx_http_request_t *r, json_t *json);


ngx_kexec_zone_t *
ngx_kexec_request_zone(ngx_http_request_t *r)
{
    ngx_http_kexec_main_conf_t  *kmcf;

    kmcf = ngx_http_get_module_main_conf(r, ngx_http_kexec_module);

    return kmcf->zone;
}


ngx_int_t
ngx_kexec_body(ngx_http_request_t *r, ngx_kexec_field_t *fields,
    json_t **object)
{
    char                *errors;
    ngx_int_t            rc;
    ngx_str_t            body, type, text;
    ngx_uint_t           copied;
    ngx_pool_cleanup_t  *cln;

    if (ngx_kexec_read_body(r, &body, &copied) != NGX_OK) {
        goto failed;
    }

    ngx_str_null(&type);

    if (r->headers_in.content_type) {
        type = r->headers_in.content_type->value;
    }

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        goto failed;
    }

    rc = ngx_kexec_schema_parse(&body, ngx_kexec_schema_is_json(&type),
                                fields, object, &errors);

    if (copied) {

        /* the request may last long */

        (void) ngx_pfree(r->pool, body.data);
    }

    if (rc == NGX_OK) {
        cln->handler = ngx_kexec_body_cleanup;
        cln->data = *object;
        return NGX_OK;
    }

    if (rc == NGX_DECLINED) {
        text.data = (u_char *) errors;
        text.len = ngx_strlen(errors);

        ngx_kexec_answer_json(r, 422, &text);

        free(errors);
        return NGX_DONE;
    }

    if (rc == NGX_ABORT) {
        ngx_str_set(&text,
                    "{\"detail\":\"There was an error parsing the body\"}");
        ngx_kexec_answer_json(r, NGX_HTTP_BAD_REQUEST, &text);
        return NGX_DONE;
    }

failed:

    ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);

    return NGX_DONE;
}


/*
 * The whole body in one piece, wherever core or another module put it; copied:
 * in memory of its own, from the request's pool.
 */

static ngx_int_t
ngx_kexec_read_body(ngx_http_request_t *r, ngx_str_t *body,
    ngx_uint_t *copied)
{
    off_t         size;
    u_char       *p;
    ssize_t       n;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    ngx_str_null(body);
    *copied = 0;

    if (r->request_body == NULL) {
        return NGX_OK;
    }

    size = 0;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        size += ngx_buf_size(cl->buf);
    }

    if (size == 0) {
        return NGX_OK;
    }

    cl = r->request_body->bufs;

    if (cl->next == NULL && ngx_buf_in_memory(cl->buf)) {
        body->data = cl->buf->pos;
        body->len = (size_t) size;
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, (size_t) size);
    if (p == NULL) {
        return NGX_ERROR;
    }

    body->data = p;
    *copied = 1;

    for ( /* void */ ; cl; cl = cl->next) {

        b = cl->buf;

        if (ngx_buf_in_memory(b)) {
            p = ngx_cpymem(p, b->pos, b->last - b->pos);

        } else if (b->in_file) {
            n = ngx_read_file(b->file, p, (size_t) (b->file_last
                                                    - b->file_pos),
                              b->file_pos);

            if (n != (ssize_t) (b->file_last - b->file_pos)) {
                return NGX_ERROR;
            }

            p += n;
        }
    }

    body->len = p - body->data;

    return NGX_OK;
}


static void
ngx_kexec_body_cleanup(void *data)
{
    json_decref(data);
}


void
ngx_kexec_body_free(ngx_http_request_t *r, json_t *object)
{
    ngx_pool_cleanup_t  *cln;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler == ngx_kexec_body_cleanup && cln->data == object) {
            cln->handler = NULL;
            json_decref(object);
            return;
        }
    }
}


ngx_int_t
ngx_kexec_language(ngx_http_request_t *r, ngx_str_t *word,
    ngx_str_t *language)
{
    ngx_str_t  text;

    language->data = ngx_pnalloc(r->pool, word->len + 10);
    if (language->data == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_DONE;
    }

    language->len = ngx_kexec_language_normalize(language->data, word);

    if (language->len == 0) {
        ngx_str_set(language, "python");
    }

    if (language->len > NGX_KEXEC_LANGUAGE_LEN) {
        ngx_str_set(&text, "The name of the language is too long");
        ngx_kexec_answer_text(r, NGX_HTTP_BAD_REQUEST, &text);
        return NGX_DONE;
    }

    return NGX_OK;
}


ngx_int_t
ngx_kexec_context_make(ngx_kexec_make_t *make, ngx_kexec_context_t *ctx)
{
    ngx_int_t               rc;
    ngx_kexec_zone_t       *zone;
    ngx_kexec_execution_t  *ex;

    static u_char  why[NGX_KEXEC_FAILURE_LEN + 1];

    zone = make->zone;

    if (make->is_default && ngx_kexec_zone_seen(zone) < NGX_KEXEC_SEEN_SOME) {

        /* there may be one from before, and Jupyter does not tell */

        *ngx_kexec_zone_why_unseen(zone, why) = '\0';

        make->status = NGX_HTTP_SERVICE_UNAVAILABLE;
        make->sentence = (char *) why;
        return NGX_ERROR;
    }

    make->status = NGX_HTTP_INTERNAL_SERVER_ERROR;
    make->sentence = "out of memory";

    ngx_memzero(ctx, sizeof(ngx_kexec_context_t));

    ngx_kexec_uuid(ctx->id);

    ctx->language_len = make->language->len;
    ngx_memcpy(ctx->language, make->language->data, make->language->len);

    ctx->cwd_len = make->cwd->len;
    ngx_memcpy(ctx->cwd, make->cwd->data, make->cwd->len);

    ctx->is_default = make->is_default ? 1 : 0;
    ctx->kind = ngx_kexec_language_find(make->language);

    rc = make->request ? ngx_kexec_balance(make->request, make->conf, ctx)
                       : ngx_kexec_peer(make->conf, 0, ctx);

    if (rc != NGX_OK) {
        make->status = NGX_HTTP_SERVICE_UNAVAILABLE;
        make->sentence = "No Jupyter Server of the upstream is available";
        return NGX_ERROR;
    }

    ex = ngx_kexec_execution_create(make->request, make->conf, ctx,
                                    NGX_KEXEC_CLAIM_CREATE);
    if (ex == NULL) {
        return NGX_ERROR;
    }

    do {
        rc = ngx_kexec_zone_create(zone, ctx, &ex->claim);

    } while ((rc == NGX_DECLINED || rc == NGX_ABORT)
             && ngx_kexec_make_room(zone) == NGX_OK);

    if (rc != NGX_OK) {
        ngx_kexec_execution_destroy(ex);

        if (rc == NGX_BUSY) {
            return NGX_BUSY;
        }

        if (rc == NGX_ABORT) {
            make->status = NGX_HTTP_TOO_MANY_REQUESTS;
            make->sentence = "The server is allowed no more contexts "
                             "(kexec_max_contexts), delete one first";
            return NGX_ERROR;
        }

        make->status = NGX_HTTP_SERVICE_UNAVAILABLE;
        make->sentence = "The server holds as many contexts as it can, "
                         "delete one first";
        return NGX_ERROR;
    }

    ex->ctx = *ctx;
    ex->created = make->created;
    ex->data = make->data;

    /* its end may be told before this returns */

    if (make->execution) {
        *make->execution = ex;
    }

    ngx_kexec_execution_make(ex);

    return NGX_OK;
}


ngx_int_t
ngx_kexec_create_handler(ngx_http_request_t *r, ngx_str_t *id)
{
    ngx_int_t  rc;

    r->request_body_in_single_buf = 1;

    rc = ngx_http_read_client_request_body(r, ngx_kexec_create_body);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}


static void
ngx_kexec_create_body(ngx_http_request_t *r)
{
    json_t                     *body;
    ngx_str_t                   word, language, cwd, text;
    ngx_kexec_make_t            make;
    ngx_kexec_create_t         *create;
    ngx_http_cleanup_t         *cln;
    ngx_kexec_context_t         ctx;
    ngx_http_kexec_loc_conf_t  *conf;

    if (ngx_kexec_body(r, ngx_kexec_create_fields, &body) != NGX_OK) {
        return;
    }

    conf = ngx_http_get_module_loc_conf(r, ngx_http_kexec_module);

    ngx_kexec_schema_string(body, "language", &word);
    ngx_kexec_schema_string(body, "cwd", &cwd);

    if (ngx_kexec_language(r, &word, &language) != NGX_OK) {
        return;
    }

    if (cwd.len == 0) {
        cwd = conf->cwd;
    }

    if (cwd.len > NGX_KEXEC_CWD_LEN) {
        ngx_str_set(&text, "The working directory's path is too long, "
                    "1023 bytes are allowed");
        ngx_kexec_answer_text(r, NGX_HTTP_BAD_REQUEST, &text);
        return;
    }

    if (ngx_strlchr(cwd.data, cwd.data + cwd.len, '\0')) {
        ngx_str_set(&text, "The working directory's path has a NUL character, "
                    "which no path can have");
        ngx_kexec_answer_text(r, NGX_HTTP_BAD_REQUEST, &text);
        return;
    }

    create = ngx_pcalloc(r->pool, sizeof(ngx_kexec_create_t));
    cln = ngx_http_cleanup_add(r, 0);

    if (create == NULL || cln == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    create->request = r;

    cln->handler = ngx_kexec_create_cleanup;
    cln->data = create;

    ngx_memzero(&make, sizeof(ngx_kexec_make_t));

    make.request = r;
    make.conf = conf;
    make.zone = ngx_kexec_request_zone(r);
    make.language = &language;
    make.cwd = &cwd;
    make.created = ngx_kexec_create_done;
    make.data = create;
    make.execution = &create->execution;

    if (ngx_kexec_context_make(&make, &ctx) != NGX_OK) {
        text.data = (u_char *) make.sentence;
        text.len = ngx_strlen(make.sentence);
        ngx_kexec_answer_text(r, make.status, &text);
        return;
    }

    if (ngx_kexec_park(r) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
    }
}


/* the client left: nobody will ever know the new context's id */

static void
ngx_kexec_create_cleanup(void *data)
{
    ngx_kexec_create_t *create = data;

    if (create->execution) {
        ngx_kexec_execution_abandon(create->execution);
        create->execution = NULL;
    }
}


static void
ngx_kexec_create_done(void *data, ngx_uint_t status, ngx_str_t *sentence,
    ngx_kexec_context_t *ctx)
{
    ngx_kexec_create_t *create = data;

    ngx_connection_t    *c;
    ngx_kexec_report_t  *report;
    ngx_http_request_t  *r;

    create->execution = NULL;

    r = create->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (status != NGX_HTTP_OK) {
        ngx_kexec_answer_text(r, status, sentence);

    } else {
        report = ngx_kexec_report(r);

        if (report) {
            report->has_context = 1;
            ngx_memcpy(report->context, ctx->id, NGX_KEXEC_UUID_LEN);
            report->status = NGX_KEXEC_STATUS_OK;
        }

        ngx_kexec_answer_jansson(r, ngx_kexec_context_json(ctx));
    }

    ngx_http_run_posted_requests(c);
}


void
ngx_kexec_answer_unknown(ngx_http_request_t *r, ngx_str_t *id)
{
    ngx_str_t  text;

    if (ngx_kexec_zone_seen(ngx_kexec_request_zone(r)) != NGX_KEXEC_SEEN_ALL) {
        ngx_str_set(&text, "Jupyter did not answer since the server was "
                    "started, so this context is not known yet, try again "
                    "later");
        ngx_kexec_answer_text(r, NGX_HTTP_SERVICE_UNAVAILABLE, &text);
        return;
    }

    text.data = ngx_pnalloc(r->pool, id->len + sizeof("Context  not found"));
    if (text.data == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    text.len = ngx_sprintf(text.data, "Context %V not found", id) - text.data;

    ngx_kexec_answer_text(r, NGX_HTTP_NOT_FOUND, &text);
}


void
ngx_kexec_answer_full(ngx_http_request_t *r, ngx_uint_t n, const char *what)
{
    u_char     *p;
    ngx_str_t   text, one;

    ngx_str_set(&one, "1");

    p = ngx_pnalloc(r->pool, 128);

    if (p == NULL || ngx_kexec_add_header(r, "Retry-After", &one) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    text.data = p;
    text.len = ngx_snprintf(p, 128, "The context's queue is full, %ui %s are "
                            "waiting, try again later", n, what)
               - p;

    ngx_kexec_answer_text(r, NGX_HTTP_TOO_MANY_REQUESTS, &text);
}


ngx_int_t
ngx_kexec_list_handler(ngx_http_request_t *r, ngx_str_t *id)
{
    json_t               *list;
    ngx_int_t             rc;
    ngx_str_t             text;
    ngx_uint_t            i;
    ngx_array_t          *contexts;
    ngx_kexec_context_t  *ctx;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_kexec_zone_seen(ngx_kexec_request_zone(r)) < NGX_KEXEC_SEEN_SOME) {
        ngx_str_set(&text, "Jupyter did not answer since the server was "
                    "started, so its contexts are not known yet, try again "
                    "later");

        r->main->count++;

        ngx_kexec_answer_text(r, NGX_HTTP_SERVICE_UNAVAILABLE, &text);
        return NGX_DONE;
    }

    contexts = ngx_kexec_zone_list(ngx_kexec_request_zone(r), r->pool);
    if (contexts == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    list = json_array();

    ctx = contexts->elts;

    for (i = 0; list && i < contexts->nelts; i++) {
        if (json_array_append_new(list, ngx_kexec_context_json(&ctx[i])) != 0)
        {
            json_decref(list);
            list = NULL;
        }
    }

    r->main->count++;

    ngx_kexec_answer_jansson(r, list);

    return NGX_DONE;
}


static json_t *
ngx_kexec_context_json(ngx_kexec_context_t *ctx)
{
    return json_pack("{s:s%, s:s%, s:s%}",
                     "id", ctx->id, (size_t) NGX_KEXEC_UUID_LEN,
                     "language", ctx->language, ctx->language_len,
                     "cwd", ctx->cwd, ctx->cwd_len);
}


static void
ngx_kexec_answer_jansson(ngx_http_request_t *r, json_t *json)
{
    char       *text;
    ngx_str_t   body;

    text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);

    if (text == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    body.data = (u_char *) text;
    body.len = ngx_strlen(text);

    ngx_kexec_answer_json(r, NGX_HTTP_OK, &body);

    free(text);
}
