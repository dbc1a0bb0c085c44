
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>
#include <ngx_kexec_steps.h>
#include <ngx_kexec_envs.h>


/* a snippet's source, growing in an execution's pool */

typedef struct {
    ngx_kexec_out_t              out;
    u_char                      *start;
    ngx_pool_t                  *pool;
} ngx_kexec_snippet_t;


static ngx_int_t ngx_kexec_snippet_more(ngx_kexec_out_t *out);


ngx_int_t
ngx_kexec_step_source(ngx_kexec_execution_t *ex, ngx_kexec_step_e step)
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

    switch (step) {

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

    default: /* NGX_KEXEC_STEP_DONE */
        break;
    }

    ex->source.data = snippet.start;
    ex->source.len = snippet.out.pos - snippet.start;

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
