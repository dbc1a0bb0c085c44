
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>
#include <ngx_kexec_session.h>
#include <ngx_kexec_identity.h>


/* for Jupyter to take down a session's new name */
#define NGX_KEXEC_MARK_TIME  5000


static ngx_int_t ngx_kexec_session_specs(ngx_kexec_execution_t *ex);
static void ngx_kexec_session_specs_handler(ngx_kexec_http_t *http);
static ngx_int_t ngx_kexec_session_post(ngx_kexec_execution_t *ex);
static void ngx_kexec_session_handler(ngx_kexec_http_t *http);
static void ngx_kexec_session_failed(ngx_kexec_execution_t *ex,
    ngx_kexec_http_t *http);
static void ngx_kexec_session_say(ngx_kexec_execution_t *ex, ngx_uint_t status,
    const char *name, const char *fmt, ...);
static void ngx_kexec_session_answer(ngx_kexec_execution_t *ex,
    ngx_kexec_http_t *http, ngx_kexec_say_e say);
static void ngx_kexec_session_dropped(ngx_kexec_http_t *http);
static void ngx_kexec_session_marked(ngx_kexec_http_t *http);


/*
 * A new Jupyter session, and with it a new kernel: ON_ANSWER tells, with what
 * there is to be said in ex->status, name and sentence.
 */

ngx_int_t
ngx_kexec_session_make(ngx_kexec_execution_t *ex)
{
    ex->asked_twice = 0;

    ngx_kexec_server_at(ex->server, &ex->ctx);

    return ex->ctx.spec_len ? ngx_kexec_session_post(ex)
                            : ngx_kexec_session_specs(ex);
}


static ngx_int_t
ngx_kexec_session_specs(ngx_kexec_execution_t *ex)
{
    ex->http = ngx_kexec_jupyter_specs(ex->server,
                                       ngx_kexec_session_specs_handler, ex,
                                       &ex->log);

    return ex->http ? NGX_OK : NGX_ERROR;
}


static void
ngx_kexec_session_specs_handler(ngx_kexec_http_t *http)
{
    ngx_int_t               rc;
    ngx_str_t               language, spec, kind, names;
    ngx_kexec_execution_t  *ex;

    ex = http->data;
    ex->http = NULL;

    if (http->status != NGX_HTTP_OK) {
        ngx_kexec_session_failed(ex, http);
        return;
    }

    language.len = ex->ctx.language_len;
    language.data = ex->ctx.language;

    rc = ngx_kexec_jupyter_pick_spec(ex->pool, &http->body, &language, &spec,
                                     &kind, &names);

    if (rc == NGX_DECLINED) {
        ngx_kexec_session_say(ex, NGX_HTTP_BAD_REQUEST, "BadLanguage",
                              "There is no kernel for the language %V here, "
                              "choose one of: %V", &language, &names);
        ngx_kexec_session_answer(ex, http, NGX_KEXEC_SAY_SESSION);
        return;
    }

    if (rc != NGX_OK || spec.len > NGX_KEXEC_LANGUAGE_LEN) {
        ngx_kexec_session_say(ex, NGX_HTTP_INTERNAL_SERVER_ERROR,
                              "InternalError", "Jupyter's list of kernels "
                              "could not be read");
        ngx_kexec_session_answer(ex, http, NGX_KEXEC_SAY_SESSION);
        return;
    }

    ex->ctx.spec_len = spec.len;
    ngx_memcpy(ex->ctx.spec, spec.data, spec.len);

    ex->ctx.kind = ngx_kexec_language_find(&language);

    if (ex->ctx.kind == NGX_KEXEC_LANG_OTHER) {
        ex->ctx.kind = ngx_kexec_language_find(&kind);
    }

    if (ngx_kexec_session_post(ex) != NGX_OK) {
        ngx_kexec_session_answer(ex, http, NGX_KEXEC_SAY_NO_MEMORY);
    }
}


static ngx_int_t
ngx_kexec_session_post(ngx_kexec_execution_t *ex)
{
    u_char     buf[NGX_KEXEC_SESSION_PATH_LEN];
    ngx_str_t  path, name, spec;

    if (ngx_kexec_session_name(ex->pool, &ex->ctx, &name) != NGX_OK) {
        return NGX_ERROR;
    }

    /* Jupyter answers an old path with its old session, however dead */

    path.data = buf;
    path.len = ngx_kexec_session_path(buf, &ex->ctx) - buf;

    spec.len = ex->ctx.spec_len;
    spec.data = ex->ctx.spec;

    ex->http = ngx_kexec_jupyter_create(ex->server, &path, &name, &spec,
                                        ngx_kexec_session_handler, ex,
                                        &ex->log);

    return ex->http ? NGX_OK : NGX_ERROR;
}


static void
ngx_kexec_session_handler(ngx_kexec_http_t *http)
{
    ngx_uint_t              made;
    ngx_kexec_execution_t  *ex;

    ex = http->data;
    ex->http = NULL;

    made = (http->status == NGX_HTTP_CREATED || http->status == NGX_HTTP_OK);

    if (!made && http->status) {
        ngx_kexec_session_failed(ex, http);
        return;
    }

    if (made
        && ngx_kexec_jupyter_parse_session(&http->body, &ex->ctx.session,
                                           &ex->ctx.kernel)
           == NGX_OK)
    {
        ngx_kexec_session_answer(ex, http, NGX_KEXEC_SAY_NONE);
        return;
    }

    if (http->connected && !ex->asked_twice) {

        /*
         * There may be a session whose id was lost on the way.  Jupyter
         * answers the same path with the same session.
         */

        ex->asked_twice = 1;

        if (ngx_kexec_session_post(ex) != NGX_OK) {
            ngx_kexec_session_answer(ex, http, NGX_KEXEC_SAY_NO_MEMORY);
        }

        return;
    }

    if (!made) {
        ngx_kexec_session_failed(ex, http);
        return;
    }

    ngx_kexec_session_say(ex, NGX_HTTP_INTERNAL_SERVER_ERROR, "InternalError",
                          "Jupyter's answer to a new session could not be "
                          "read");
    ngx_kexec_session_answer(ex, http, NGX_KEXEC_SAY_SESSION);
}


static void
ngx_kexec_session_failed(ngx_kexec_execution_t *ex, ngx_kexec_http_t *http)
{
    ngx_str_t  message;

    if (http->status == 0 && !http->connected
        && ex->kind == NGX_KEXEC_CLAIM_CREATE
        && ex->m.state == NGX_KEXEC_EX_SESSION
        && ngx_kexec_peer(ex->conf, ex->servers, &ex->ctx) == NGX_OK)
    {
        /* one of the upstream block's other servers may be there */

        ex->servers++;
        ex->ctx.spec_len = 0;

        if (ngx_kexec_session_make(ex) != NGX_OK) {
            ngx_kexec_session_answer(ex, http, NGX_KEXEC_SAY_NO_MEMORY);
        }

        return;
    }

    if (http->status == 0) {
        ngx_kexec_session_say(ex, NGX_HTTP_SERVICE_UNAVAILABLE,
                              "JupyterUnavailable",
                              "Jupyter is not reachable: %s", http->error);

    } else if (http->status == NGX_HTTP_FORBIDDEN
               || http->status == NGX_HTTP_UNAUTHORIZED)
    {
        ngx_log_error(NGX_LOG_ERR, &ex->log, 0,
                      "Jupyter refused the token (%ui)", http->status);

        ngx_kexec_session_say(ex, NGX_HTTP_SERVICE_UNAVAILABLE,
                              "JupyterUnavailable",
                              "Jupyter refused the server's token (%ui)",
                              http->status);

    } else {
        ngx_kexec_jupyter_parse_error(ex->pool, &http->body, &message);

        ngx_kexec_session_say(ex, NGX_HTTP_INTERNAL_SERVER_ERROR,
                              "ContextFailed", "Failed to create context: %V",
                              &message);
    }

    ngx_kexec_session_answer(ex, http, NGX_KEXEC_SAY_SESSION);
}


/* why there is no session, for the words of NGX_KEXEC_SAY_SESSION */

static void
ngx_kexec_session_say(ngx_kexec_execution_t *ex, ngx_uint_t status,
    const char *name, const char *fmt, ...)
{
    u_char   *p;
    va_list   args;

    ex->status = status;
    ex->name = name;

    ngx_str_null(&ex->sentence);

    p = ngx_pnalloc(ex->pool, NGX_KEXEC_SENTENCE);

    if (p) {
        va_start(args, fmt);
        ex->sentence.data = p;
        ex->sentence.len = ngx_vslprintf(p, p + NGX_KEXEC_SENTENCE, fmt, args)
                           - p;
        va_end(args);
    }
}


static void
ngx_kexec_session_answer(ngx_kexec_execution_t *ex, ngx_kexec_http_t *http,
    ngx_kexec_say_e say)
{
    ngx_kexec_machine_event_t  ev;

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    ev.what = NGX_KEXEC_ON_ANSWER;
    ev.n = http->status;
    ev.say = say;
    ev.connected = http->connected;

    ex->event(ex, &ev);
}


/*
 * A context that could not be made, or that nobody waits for any more, leaves
 * no kernel behind.
 */

ngx_int_t
ngx_kexec_session_drop(ngx_kexec_execution_t *ex)
{
    ngx_str_t  id;

    id.len = ex->ctx.session.len;
    id.data = ex->ctx.session.data;

    ex->http = ngx_kexec_jupyter_delete(ex->server, &id,
                                        ngx_kexec_session_dropped, ex,
                                        &ex->log);

    ex->ctx.session.len = 0;

    return ex->http ? NGX_OK : NGX_ERROR;
}


static void
ngx_kexec_session_dropped(ngx_kexec_http_t *http)
{
    ngx_kexec_execution_t  *ex;

    ex = http->data;
    ex->http = NULL;

    if (http->status == 0 || http->status >= 500) {
        ngx_log_error(NGX_LOG_ERR, &ex->log, 0,
                      "a session could not be deleted: %ui %s",
                      http->status, http->error ? http->error : "");
    }

    ngx_kexec_session_answer(ex, http, NGX_KEXEC_SAY_NONE);
}


/*
 * The kernel is prepared: from here on its context outlives the zone, and a
 * process that comes after this one is told by its absence from the name.
 * NGX_OK: under way, ON_MARKED follows; NGX_ERROR.
 */

ngx_int_t
ngx_kexec_session_mark(ngx_kexec_execution_t *ex)
{
    ngx_str_t  id, name;

    if (ngx_kexec_session_name(ex->pool, &ex->ctx, &name) != NGX_OK) {
        return NGX_ERROR;
    }

    id.len = ex->ctx.session.len;
    id.data = ex->ctx.session.data;

    ex->mark = ngx_kexec_jupyter_rename(&ex->kernel->server, &id, &name,
                                        ngx_kexec_session_marked, ex,
                                        &ex->log);
    if (ex->mark == NULL) {
        return NGX_ERROR;
    }

    ngx_kexec_http_limit(ex->mark, NGX_KEXEC_MARK_TIME);

    return NGX_OK;
}


static void
ngx_kexec_session_marked(ngx_kexec_http_t *http)
{
    ngx_kexec_execution_t  *ex;

    ex = http->data;
    ex->mark = NULL;

    if (http->status != NGX_HTTP_OK) {
        ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                      "Jupyter did not take down that the context is ready, "
                      "a new nginx would not know it: %ui %s",
                      http->status, http->error ? http->error : "");
    }

    ngx_kexec_on(ex, NGX_KEXEC_ON_MARKED, 0);
}


void
ngx_kexec_session_unmark(ngx_kexec_execution_t *ex)
{
    if (ex->mark) {
        ngx_kexec_http_cancel(ex->mark);
        ex->mark = NULL;
    }
}
