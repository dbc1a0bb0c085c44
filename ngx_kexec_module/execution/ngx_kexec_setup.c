
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_envs.h>
#include <ngx_kexec_execution.h>


/* a fence tells whether a silent request that is this late was lost */
#define NGX_KEXEC_SETUP_TIME        2000

/* what a silent request does, in the order of an execution's set-up */
#define NGX_KEXEC_STEP_OWED    0    /* puts back what an earlier one left */
#define NGX_KEXEC_STEP_CWD     1
#define NGX_KEXEC_STEP_COMMON  2    /* kexec_env */
#define NGX_KEXEC_STEP_ENVS    3    /* kexec_envs_url */
#define NGX_KEXEC_STEP_ENV     4    /* the request's env_vars */
#define NGX_KEXEC_STEP_DONE    5


/* a snippet's source, growing in an execution's pool */

typedef struct {
    ngx_kexec_out_t              out;
    u_char                      *start;
    ngx_pool_t                  *pool;
} ngx_kexec_snippet_t;


static ngx_int_t ngx_kexec_setup_source(ngx_kexec_execution_t *ex,
    ngx_str_t *source);
static ngx_int_t ngx_kexec_snippet_more(ngx_kexec_out_t *out);


/* the next silent request that is needed, or the code */

void
ngx_kexec_setup(ngx_kexec_execution_t *ex)
{
    ngx_int_t   rc;
    ngx_str_t   source;
    ngx_uint_t  prepared;

    ex->state = NGX_KEXEC_EX_SETUP;
    ex->log.action = "preparing the kernel";

    if (ex->mark || ex->fetch) {
        return;
    }

    for ( ;; ) {

        if (ex->cancel) {
            ngx_kexec_tell(ex, "ExecutionInterrupted", "the execution was "
                           "interrupted before its code ran");
            ngx_kexec_tell_end(ex);
            ngx_kexec_restore(ex);
            return;
        }

        if (ex->step == NGX_KEXEC_STEP_DONE) {
            break;
        }

        if (ex->step == NGX_KEXEC_STEP_ENVS && !ex->fetched
            && ngx_kexec_envs_wanted(ex))
        {
            if (ngx_kexec_envs_fetch(ex) == NGX_OK) {
                return;
            }

            rc = NGX_ERROR;

        } else {
            rc = ngx_kexec_setup_source(ex, &source);
        }

        if (rc == NGX_ERROR) {
            ngx_kexec_fail(ex, NGX_HTTP_INTERNAL_SERVER_ERROR,
                           "InternalError", "out of memory");
            return;
        }

        if (rc == NGX_DECLINED) {
            ex->step++;
            continue;
        }

        if (ex->step == NGX_KEXEC_STEP_ENV) {

            /* from here on it is owed to put them back, whoever does it */

            ex->env_set = 1;
            ex->ctx.owes_restore = 1;
            ngx_kexec_zone_update(&ex->claim, &ex->ctx);
        }

        (void) ngx_kexec_ask(ex, &ex->silent, &source, 1);

        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_SETUP, NGX_KEXEC_SETUP_TIME);
        return;
    }

    prepared = ngx_kexec_envs_wanted(ex) ? NGX_KEXEC_PREPARED_ENVS
                                         : NGX_KEXEC_PREPARED;

    if (ex->ctx.prepared < prepared) {
        ex->ctx.prepared = prepared;
        ngx_kexec_zone_update(&ex->claim, &ex->ctx);

        if (ngx_kexec_session_mark(ex) == NGX_OK) {
            return;
        }
    }

    if (ex->kind == NGX_KEXEC_CLAIM_CREATE) {

        if (ex->abandoned && !ex->ctx.is_default) {
            ngx_kexec_fail(ex, NGX_HTTP_CLIENT_CLOSED_REQUEST, "Abandoned",
                           "nobody waits for the context any more");
            return;
        }

        ex->made = 1;

        ngx_kexec_done(ex);
        return;
    }

    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_READY);

    ngx_kexec_send_code(ex);
}


static ngx_int_t
ngx_kexec_setup_source(ngx_kexec_execution_t *ex, ngx_str_t *source)
{
    ngx_int_t              rc;
    ngx_str_t              cwd;
    ngx_kexec_snippet_t    snippet;
    ngx_kexec_language_e   kind;

    ngx_memzero(&snippet, sizeof(ngx_kexec_snippet_t));

    snippet.pool = ex->pool;
    snippet.out.more = ngx_kexec_snippet_more;
    snippet.out.data = &snippet;

    kind = ex->ctx.kind;
    rc = NGX_DECLINED;

    switch (ex->step) {

    case NGX_KEXEC_STEP_OWED:

        if (ex->ctx.owes_restore) {
            rc = ngx_kexec_language_restore(&snippet.out, kind);
        }

        break;

    case NGX_KEXEC_STEP_CWD:

        cwd.len = ex->ctx.cwd_len;
        cwd.data = ex->ctx.cwd;

        if (!ex->ctx.prepared && cwd.len) {
            rc = ngx_kexec_language_cwd(&snippet.out, kind, &cwd);
        }

        break;

    case NGX_KEXEC_STEP_COMMON:

        if (!ex->ctx.prepared && ex->conf->env) {
            rc = ngx_kexec_language_set(&snippet.out, kind,
                                        ex->conf->env->elts,
                                        ex->conf->env->nelts, 0);
        }

        break;

    case NGX_KEXEC_STEP_ENVS:

        if (ex->nenvs && ngx_kexec_envs_wanted(ex)) {
            rc = ngx_kexec_language_set(&snippet.out, kind, ex->envs,
                                        ex->nenvs, 0);
        }

        break;

    case NGX_KEXEC_STEP_ENV:

        if (ex->nenv) {
            rc = ngx_kexec_language_set(&snippet.out, kind, ex->env, ex->nenv,
                                        1);
        }

        break;
    }

    source->data = snippet.start;
    source->len = snippet.out.pos - snippet.start;

    return rc;
}


static ngx_int_t
ngx_kexec_snippet_more(ngx_kexec_out_t *out)
{
    ngx_kexec_snippet_t *snippet = out->data;

    size_t   len, size;
    u_char  *p;

    len = out->pos - snippet->start;
    size = len ? 2 * (out->end - snippet->start) : 1024;

    p = ngx_pnalloc(snippet->pool, size);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (len) {
        ngx_memcpy(p, snippet->start, len);
        (void) ngx_pfree(snippet->pool, snippet->start);
    }

    snippet->start = p;
    out->pos = p + len;
    out->end = p + size;

    return NGX_OK;
}


void
ngx_kexec_setup_answered(ngx_kexec_execution_t *ex)
{
    ngx_kexec_reply_e  status;

    if (ex->state != NGX_KEXEC_EX_SETUP && ex->state != NGX_KEXEC_EX_RESTORING)
    {
        return;
    }

    status = ex->silent.status;

    if (status == NGX_KEXEC_REPLY_INTERRUPTED) {

        /* somebody's interrupt hit it, and to repeat it does no harm */

        status = NGX_KEXEC_REPLY_ABORTED;
    }

    ex->silent.sent = 0;
    ex->fence.sent = 0;

    /* what held the kernel is over */

    ex->held = NGX_KEXEC_HELD_NOT;
    ex->links = 0;

    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_SETUP);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_FENCE);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_HELD);

    if (ex->state == NGX_KEXEC_EX_RESTORING) {

        if (status == NGX_KEXEC_REPLY_ABORTED
            && ex->aborted++ < NGX_KEXEC_ABORTED)
        {
            ngx_kexec_restore(ex);
            return;
        }

        if (status != NGX_KEXEC_REPLY_OK) {
            ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                          "the kernel could not put variables back");

            /* it is still owed: the next one tries again */

            ngx_kexec_done(ex);
            return;
        }

        ex->env_set = 0;
        ex->ctx.owes_restore = 0;
        ngx_kexec_zone_update(&ex->claim, &ex->ctx);

        ngx_kexec_done(ex);
        return;
    }

    if (status == NGX_KEXEC_REPLY_ABORTED) {

        if (ex->aborted++ < NGX_KEXEC_ABORTED) {
            ngx_kexec_setup(ex);
            return;
        }

        ngx_kexec_fail(ex, NGX_HTTP_SERVICE_UNAVAILABLE, "KernelUnresponsive",
                       "the kernel refused to be prepared %d times, the code "
                       "did not run", NGX_KEXEC_ABORTED);
        return;
    }

    if (status != NGX_KEXEC_REPLY_OK) {

        if (ex->step == NGX_KEXEC_STEP_CWD
            && ex->kind == NGX_KEXEC_CLAIM_CREATE)
        {
            ngx_kexec_fail(ex, NGX_HTTP_BAD_REQUEST, "BadCwd",
                           "The working directory %*s does not exist or "
                           "cannot be entered", ex->ctx.cwd_len, ex->ctx.cwd);
            return;
        }

        if (ex->step == NGX_KEXEC_STEP_ENVS
            || ex->step == NGX_KEXEC_STEP_ENV)
        {
            ngx_kexec_tell(ex, "EnvironmentError", "the kernel could not set "
                           "the environment variables, the code did not run");
            ngx_kexec_tell_end(ex);
            ngx_kexec_restore(ex);
            return;
        }

        ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                      "step %ui of the kernel's preparation failed",
                      ex->step);
    }

    if (ex->step == NGX_KEXEC_STEP_OWED && status == NGX_KEXEC_REPLY_OK) {
        ex->ctx.owes_restore = 0;
        ngx_kexec_zone_update(&ex->claim, &ex->ctx);
    }

    ex->step++;

    ngx_kexec_setup(ex);
}


/* the last step before the slot goes on */

void
ngx_kexec_restore(ngx_kexec_execution_t *ex)
{
    ngx_int_t  rc;
    ngx_str_t  source;

    if (!ex->env_set || ex->ctx.kernel.len == 0) {
        ngx_kexec_done(ex);
        return;
    }

    ex->state = NGX_KEXEC_EX_RESTORING;
    ex->log.action = "putting variables back";
    ex->step = NGX_KEXEC_STEP_OWED;

    ngx_kexec_claim_phase(&ex->claim, NGX_KEXEC_PHASE_RESTORING);

    if (!(ex->waits & (1 << NGX_KEXEC_WAIT_BARRIER))) {
        ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_READY);
        ngx_kexec_wait(ex, NGX_KEXEC_WAIT_BARRIER,
                       ex->conf->interrupt_timeout);
    }

    rc = ngx_kexec_setup_source(ex, &source);

    if (rc != NGX_OK) {
        ngx_kexec_done(ex);
        return;
    }

    (void) ngx_kexec_ask(ex, &ex->silent, &source, 1);

    ngx_kexec_wait(ex, NGX_KEXEC_WAIT_SETUP, NGX_KEXEC_SETUP_TIME);
}
