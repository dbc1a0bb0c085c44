
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_envs.h>


/*
 * kexec_envs_url: variables of a context that somebody else knows.  They are
 * asked for by the first execution after each start of the context's kernel,
 * with its client's X-Access-Token, and stay set like those of kexec_env.
 */


static void ngx_kexec_envs_handler(ngx_kexec_http_t *http);
static void ngx_kexec_envs_failed(ngx_kexec_execution_t *ex, const char *fmt,
    ...);


ngx_int_t
ngx_kexec_envs_token(ngx_kexec_execution_t *ex, ngx_http_request_t *r)
{
    ngx_str_t                   token;
    ngx_http_variable_value_t  *vv;

    static ngx_str_t  name = ngx_string("http_x_access_token");

    if (ex->conf->envs == NULL) {
        return NGX_OK;
    }

    vv = ngx_http_get_variable(r, &name, ngx_hash_key(name.data, name.len));

    if (vv == NULL) {
        return NGX_ERROR;
    }

    token.len = vv->len;
    token.data = vv->data;

    if (vv->not_found || !ngx_kexec_token_valid(&token)) {
        return NGX_OK;
    }

    ex->access_token.len = token.len;
    ex->access_token.data = ngx_pstrdup(ex->pool, &token);

    return ex->access_token.data || token.len == 0 ? NGX_OK : NGX_ERROR;
}


ngx_uint_t
ngx_kexec_envs_wanted(ngx_kexec_execution_t *ex)
{
    return ex->conf->envs
           && ex->kind == NGX_KEXEC_CLAIM_RUN
           && ex->ctx.kind != NGX_KEXEC_LANG_OTHER
           && ex->ctx.prepared < NGX_KEXEC_PREPARED_ENVS;
}


ngx_int_t
ngx_kexec_envs_fetch(ngx_kexec_execution_t *ex)
{
    ngx_kexec_http_t    *http;
    ngx_kexec_server_t  *server;

    server = ngx_palloc(ex->pool, sizeof(ngx_kexec_server_t));
    if (server == NULL) {
        return NGX_ERROR;
    }

    *server = ex->conf->envs->server;
    server->connect_timeout = ex->conf->connect_timeout;
    server->timeout = ex->conf->jupyter_timeout;
    server->token = ex->access_token;
    server->token_header = "X-Access-Token: ";

    http = ngx_kexec_http_create(server, &ex->log);
    if (http == NULL) {
        return NGX_ERROR;
    }

    http->handler = ngx_kexec_envs_handler;
    http->data = ex;

    ngx_kexec_http_send(http, "GET", &ex->conf->envs->uri, NULL);

    ex->fetch = http;

    return NGX_OK;
}


void
ngx_kexec_envs_stop(ngx_kexec_execution_t *ex)
{
    if (ex->fetch) {
        ngx_kexec_http_cancel(ex->fetch);
        ex->fetch = NULL;
    }
}


static void
ngx_kexec_envs_handler(ngx_kexec_http_t *http)
{
    json_t                     *json;
    ngx_int_t                   rc;
    ngx_kexec_execution_t      *ex;
    ngx_kexec_machine_event_t   ev;

    ex = http->data;
    ex->fetch = NULL;

    if (http->status == 0) {
        ngx_kexec_envs_failed(ex, "%s", http->error);
        return;
    }

    if (http->status != NGX_HTTP_OK) {
        ngx_kexec_envs_failed(ex, "the answer was %ui", http->status);
        return;
    }

    json = json_loadb((char *) http->body.data, http->body.len,
                      JSON_ALLOW_NUL, NULL);

    if (!json_is_object(json)) {
        json_decref(json);
        ngx_kexec_envs_failed(ex, "the answer was no JSON object");
        return;
    }

    rc = ngx_kexec_env_read(json, ex->ctx.kind, ex->pool, &ex->envs,
                            &ex->nenvs, &ex->log, NULL, NULL);
    json_decref(json);

    if (rc != NGX_OK) {
        ngx_kexec_envs_failed(ex, "out of memory");
        return;
    }

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    ev.what = NGX_KEXEC_ON_FETCHED;

    ex->event(ex, &ev);
}


static void
ngx_kexec_envs_failed(ngx_kexec_execution_t *ex, const char *fmt, ...)
{
    u_char                     *p;
    va_list                     args;
    ngx_kexec_machine_event_t   ev;

    ngx_str_null(&ex->sentence);

    p = ngx_pnalloc(ex->pool, NGX_MAX_ERROR_STR / 8);

    if (p) {
        va_start(args, fmt);
        ex->sentence.data = p;
        ex->sentence.len = ngx_vslprintf(p, p + NGX_MAX_ERROR_STR / 8, fmt,
                                         args)
                           - p;
        va_end(args);
    }

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    ev.what = NGX_KEXEC_ON_FETCHED;
    ev.say = NGX_KEXEC_SAY_FETCH;

    ex->event(ex, &ev);
}


ngx_int_t
ngx_kexec_env_read(json_t *object, ngx_kexec_language_e kind,
    ngx_pool_t *pool, ngx_keyval_t **env, ngx_uint_t *nenv, ngx_log_t *log,
    const char **why, const char **name)
{
    void          *iter;
    size_t         n;
    json_t        *value;
    ngx_str_t      key, val;
    const char    *reason;
    ngx_keyval_t  *kv;

    *nenv = 0;

    n = json_object_size(object);

    if (n == 0) {
        return NGX_OK;
    }

    kv = ngx_palloc(pool, n * sizeof(ngx_keyval_t));
    if (kv == NULL) {
        return NGX_ERROR;
    }

    *env = kv;

    for (iter = json_object_iter(object);
         iter;
         iter = json_object_iter_next(object, iter))
    {
        value = json_object_iter_value(iter);

        key.data = (u_char *) json_object_iter_key(iter);
        key.len = ngx_strlen(key.data);
        val.data = (u_char *) json_string_value(value);
        val.len = json_string_length(value);

        reason = json_is_string(value)
                 ? ngx_kexec_language_refuses(kind, &key, &val)
                 : "its value is no string";

        if (reason && log == NULL) {
            *why = reason;
            *name = (char *) key.data;
            return NGX_DECLINED;
        }

        if (reason) {
            ngx_log_error(NGX_LOG_WARN, log, 0,
                          "variable \"%V\" of \"kexec_envs_url\" is left "
                          "out: %s", &key, reason);
            continue;
        }

        kv->key.len = key.len;
        kv->key.data = ngx_pstrdup(pool, &key);
        kv->value.len = val.len;
        kv->value.data = ngx_pnalloc(pool, val.len + 1);

        if (kv->key.data == NULL || kv->value.data == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(kv->value.data, val.data, val.len);

        kv++;
        (*nenv)++;
    }

    return NGX_OK;
}
