
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>
#include <ngx_kexec_identity.h>


/* for Jupyter to take down a session's new name */
#define NGX_KEXEC_MARK_TIME  5000

/* so many kernels are started for one execution: each may be gone at once */
#define NGX_KEXEC_SESSIONS   3


static void ngx_kexec_session_specs(ngx_kexec_execution_t *ex);
static void ngx_kexec_session_specs_handler(ngx_kexec_http_t *http);
static void ngx_kexec_session_post(ngx_kexec_execution_t *ex);
static void ngx_kexec_session_handler(ngx_kexec_http_t *http);
static void ngx_kexec_session_failed(ngx_kexec_execution_t *ex,
    ngx_kexec_http_t *http);
static void ngx_kexec_session_dropped(ngx_kexec_http_t *http);
static void ngx_kexec_session_marked(ngx_kexec_http_t *http);


/*
 * A new Jupyter session, and with it a new kernel, for a context that is being
 * made, or whose kernel was given up by Jupyter.
 */

void
ngx_kexec_session(ngx_kexec_execution_t *ex)
{
    ex->state = NGX_KEXEC_EX_SESSION;
    ex->log.action = "making a Jupyter session";

    ngx_kexec_forget(ex);

    ex->foreign = 0;

    if (ex->kind == NGX_KEXEC_CLAIM_RUN
        && ex->sessions++ == NGX_KEXEC_SESSIONS)
    {
        ngx_kexec_fail(ex, NGX_HTTP_SERVICE_UNAVAILABLE, "KernelNotReady",
                       "the kernel is not there any more, nor are %d that "
                       "were started in its place, the code did not run",
                       NGX_KEXEC_SESSIONS);
        return;
    }

    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_CONNECT);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_LINK);

    ngx_kexec_server_at(ex->server, &ex->ctx);

    if (ex->ctx.spec_len == 0) {
        ngx_kexec_session_specs(ex);
        return;
    }

    ngx_kexec_session_post(ex);
}


static void
ngx_kexec_session_specs(ngx_kexec_execution_t *ex)
{
    ex->http = ngx_kexec_jupyter_specs(ex->server,
                                       ngx_kexec_session_specs_handler, ex,
                                       &ex->log);
    if (ex->http == NULL) {
        ngx_kexec_fail(ex, NGX_HTTP_INTERNAL_SERVER_ERROR, "InternalError",
                       "out of memory");
    }
}


static void
ngx_kexec_session_specs_handler(ngx_kexec_http_t *http)
{
    ngx_int_t               rc;
    ngx_str_t               language, spec, kind, names;
    ngx_kexec_execution_t  *ex;

    ex = http->data;
    ex->http = NULL;

    if (ex->leaving) {
        ngx_kexec_done(ex);
        return;
    }

    if (http->status != NGX_HTTP_OK) {
        ngx_kexec_session_failed(ex, http);
        return;
    }

    language.len = ex->ctx.language_len;
    language.data = ex->ctx.language;

    rc = ngx_kexec_jupyter_pick_spec(ex->pool, &http->body, &language, &spec,
                                     &kind, &names);

    if (rc == NGX_DECLINED) {
        ngx_kexec_fail(ex, NGX_HTTP_BAD_REQUEST, "BadLanguage",
                       "There is no kernel for the language %V here, choose "
                       "one of: %V", &language, &names);
        return;
    }

    if (rc != NGX_OK || spec.len > NGX_KEXEC_LANGUAGE_LEN) {
        ngx_kexec_fail(ex, NGX_HTTP_INTERNAL_SERVER_ERROR, "InternalError",
                       "Jupyter's list of kernels could not be read");
        return;
    }

    ex->ctx.spec_len = spec.len;
    ngx_memcpy(ex->ctx.spec, spec.data, spec.len);

    ex->ctx.kind = ngx_kexec_language_find(&language);

    if (ex->ctx.kind == NGX_KEXEC_LANG_OTHER) {
        ex->ctx.kind = ngx_kexec_language_find(&kind);
    }

    ngx_kexec_session_post(ex);
}


static void
ngx_kexec_session_post(ngx_kexec_execution_t *ex)
{
    u_char      buf[NGX_KEXEC_SESSION_PATH_LEN];
    ngx_str_t   path, name, spec;

    if (ngx_kexec_session_name(ex->pool, &ex->ctx, &name) != NGX_OK) {
        goto failed;
    }

    /* Jupyter answers an old path with its old session, however dead */

    path.data = buf;
    path.len = ngx_kexec_session_path(buf, &ex->ctx) - buf;

    spec.len = ex->ctx.spec_len;
    spec.data = ex->ctx.spec;

    ex->http = ngx_kexec_jupyter_create(ex->server, &path, &name, &spec,
                                        ngx_kexec_session_handler, ex,
                                        &ex->log);
    if (ex->http) {
        return;
    }

failed:

    ngx_kexec_fail(ex, NGX_HTTP_INTERNAL_SERVER_ERROR, "InternalError",
                   "out of memory");
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

    if (!made
        || ngx_kexec_jupyter_parse_session(&http->body, &ex->ctx.session,
                                           &ex->ctx.kernel)
           != NGX_OK)
    {
        if (http->connected && !ex->asked_twice) {

            /*
             * There may be a session whose id was lost on the way.  Jupyter
             * answers the same path with the same session.
             */

            ex->asked_twice = 1;
            ngx_kexec_session_post(ex);
            return;
        }

        if (!made) {
            ngx_kexec_session_failed(ex, http);
            return;
        }

        ngx_kexec_fail(ex, NGX_HTTP_INTERNAL_SERVER_ERROR, "InternalError",
                       "Jupyter's answer to a new session could not be read");
        return;
    }

    ex->asked_twice = 0;
    ex->step = 0;
    ex->recover = 0;

    ngx_kexec_zone_new_process(&ex->ctx);

    ngx_kexec_zone_update(&ex->claim, &ex->ctx);

    if (ex->leaving) {

        /* whoever wants the slot finds the new session */

        ngx_kexec_done(ex);
        return;
    }

    ngx_kexec_connect(ex);
}


static void
ngx_kexec_session_failed(ngx_kexec_execution_t *ex, ngx_kexec_http_t *http)
{
    ngx_str_t  message;

    if (ex->leaving) {
        ngx_kexec_done(ex);
        return;
    }

    if (http->status == 0 && !http->connected
        && ex->kind == NGX_KEXEC_CLAIM_CREATE
        && ngx_kexec_peer(ex->conf, ex->servers, &ex->ctx) == NGX_OK)
    {
        /* one of the upstream block's other servers may be there */

        ex->servers++;
        ex->ctx.spec_len = 0;

        ngx_kexec_session(ex);
        return;
    }

    if (http->status == 0) {
        ngx_kexec_fail(ex, NGX_HTTP_SERVICE_UNAVAILABLE, "JupyterUnavailable",
                       "Jupyter is not reachable: %s", http->error);
        return;
    }

    if (http->status == NGX_HTTP_FORBIDDEN
        || http->status == NGX_HTTP_UNAUTHORIZED)
    {
        ngx_log_error(NGX_LOG_ERR, &ex->log, 0,
                      "Jupyter refused the token (%ui)", http->status);
        ngx_kexec_fail(ex, NGX_HTTP_SERVICE_UNAVAILABLE, "JupyterUnavailable",
                       "Jupyter refused the server's token (%ui)",
                       http->status);
        return;
    }

    ngx_kexec_jupyter_parse_error(ex->pool, &http->body, &message);

    ngx_kexec_fail(ex, NGX_HTTP_INTERNAL_SERVER_ERROR, "ContextFailed",
                   "Failed to create context: %V", &message);
}


/*
 * Jupyter gave the kernel up or culled it, somebody deleted it there, or
 * Jupyter was started anew.  Its answers do not tell which, nor does it matter:
 * the context lives until a client deletes it through us.
 */

void
ngx_kexec_gone(ngx_kexec_execution_t *ex)
{
    if (ex->kind == NGX_KEXEC_CLAIM_CREATE) {
        ngx_kexec_fail(ex, NGX_HTTP_INTERNAL_SERVER_ERROR, "ContextFailed",
                       "Failed to create context: its kernel is gone");
        return;
    }

    ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                  "the kernel is not there any more, its context gets "
                  "another one");

    ngx_kexec_zone_new_process(&ex->ctx);
    ex->ctx.kernel.len = 0;
    ngx_kexec_zone_update(&ex->claim, &ex->ctx);

    ex->env_set = 0;
    ex->recover = 0;
    ex->held = NGX_KEXEC_HELD_NOT;

    /* an interrupt that is on its way reaches nobody */

    ex->interrupts = 0;
    ex->fence.sent = 0;

    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_FENCE);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_HELD);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_INTERRUPT);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_STUCK);

    ngx_kexec_forget(ex);

    if (ex->leaving) {
        ngx_kexec_done(ex);
        return;
    }

    if (ex->ending) {

        /* the code was over, and there is nothing to restart or wait for */

        ex->exits = 0;
        ex->over = 1;

        ngx_kexec_run_end(ex);
        return;
    }

    if (ex->state < NGX_KEXEC_EX_SENT && !ex->ask.sent) {

        if (ex->cancel == NGX_KEXEC_CANCEL_NONE) {
            ngx_kexec_session(ex);
            return;
        }

        ngx_kexec_tell(ex, "ExecutionInterrupted", "the execution was "
                       "interrupted before its code ran");

    } else {
        ngx_kexec_tell(ex, "KernelDied", "the kernel is not there any more "
                       "(Jupyter gave it up or was restarted, or somebody "
                       "deleted it), its variables are lost; the code %s",
                       ex->state == NGX_KEXEC_EX_BUSY
                       ? "was running" : "may or may not have run");

        if (ex->outcome == NGX_KEXEC_STATUS_NONE) {
            ex->outcome = NGX_KEXEC_STATUS_DIED;
        }
    }

    ngx_kexec_done(ex);
}


/*
 * A context that could not be made, or that nobody waits for any more, leaves
 * no kernel behind: its session is deleted before the end is told.
 * NGX_DECLINED: there is none.
 */

ngx_int_t
ngx_kexec_session_drop(ngx_kexec_execution_t *ex)
{
    ngx_str_t  id;

    if (ex->ctx.session.len == 0) {
        return NGX_DECLINED;
    }

    ex->state = NGX_KEXEC_EX_SESSION;
    ex->log.action = "deleting a Jupyter session";
    ex->waits &= 1 << NGX_KEXEC_WAIT_SHUTDOWN;

    ngx_kexec_forget(ex);

    id.len = ex->ctx.session.len;
    id.data = ex->ctx.session.data;

    ex->http = ngx_kexec_jupyter_delete(ex->server, &id,
                                        ngx_kexec_session_dropped, ex,
                                        &ex->log);

    ex->ctx.session.len = 0;

    return ex->http ? NGX_OK : NGX_DECLINED;
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

    ngx_kexec_not_made(ex);
}


/*
 * The kernel is prepared: from here on its context outlives the zone, and a
 * process that comes after this one is told by its absence from the name.
 * NGX_OK: under way, ngx_kexec_setup() is called again; NGX_ERROR.
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

    if (ex->state == NGX_KEXEC_EX_SETUP) {
        ngx_kexec_setup(ex);
    }
}


void
ngx_kexec_session_unmark(ngx_kexec_execution_t *ex)
{
    if (ex->mark) {
        ngx_kexec_http_cancel(ex->mark);
        ex->mark = NULL;
    }
}
