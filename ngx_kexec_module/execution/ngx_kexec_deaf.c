
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>


/*
 * Deaf: a link through which nothing comes.  Where a link of this session ended
 * before Jupyter had subscribed it to the kernel, what is for the next one goes
 * to that one, and the ZeroMQ sockets that are handed on from one to the other
 * may be dead for good.
 *
 * A Jupyter that has too much to do is silent as well, and what it has for the
 * link would be lost by another one.  So only its answer to a question about
 * the kernel makes a silent link a deaf one.
 */


/* so many times longer is waited for a kernel that is busy, or may start */
#define NGX_KEXEC_DEAF_BUSY   4
#define NGX_KEXEC_DEAF_START  2

/* an answer that took this long is as good as none */
#define NGX_KEXEC_DEAF_ANSWER_TIME  2000


/* Jupyter was asked for the kernel: did it answer, and soon? */

void
ngx_kexec_deaf_answer(ngx_kexec_execution_t *ex, ngx_uint_t answered)
{
    if (!answered
        || ngx_current_msec - ex->asked > NGX_KEXEC_DEAF_ANSWER_TIME)
    {
        ex->overloaded = 1;
        ex->unheard_at = ngx_current_msec;
    }
}


/* for how long nothing has come, while Jupyter did answer */

ngx_msec_t
ngx_kexec_deaf_quiet(ngx_kexec_execution_t *ex, ngx_msec_t quiet)
{
    if (!ex->overloaded) {
        return quiet;
    }

    return ngx_min(quiet, ngx_current_msec - ex->unheard_at);
}


/* NGX_OK: a kernel is prepared, and another link is being opened to it */

ngx_int_t
ngx_kexec_deaf_probe(ngx_kexec_execution_t *ex, ngx_uint_t busy)
{
    ngx_msec_t  limit;

    if ((ex->state != NGX_KEXEC_EX_PROBING && ex->state != NGX_KEXEC_EX_SETUP)
        || !ex->fence.sent || !ex->fence.late)
    {
        return NGX_DECLINED;
    }

    limit = (ngx_msec_t) NGX_KEXEC_DEAF_TIME << ngx_min(ex->deaf, 6);

    if (busy || !ex->ctx.ready) {

        /* that alone may be why: it runs something, or starts */

        limit *= busy ? NGX_KEXEC_DEAF_BUSY : NGX_KEXEC_DEAF_START;
    }

    if (ngx_kexec_deaf_quiet(ex, ngx_current_msec - ex->probed) < limit) {
        return NGX_DECLINED;
    }

    return ngx_kexec_connect_anew(ex);
}


/* the same while code is sent or runs: what is printed just now is lost */

void
ngx_kexec_deaf_run(ngx_kexec_execution_t *ex)
{
    ex->cut = 1;
    ex->dropped = 1;
    ngx_kexec_claim_phase(&ex->claim, NGX_KEXEC_PHASE_RECONNECTING);

    (void) ngx_kexec_connect_anew(ex);
}


/*
 * A link of another session, for a moment, makes Jupyter forget the sockets.
 * NGX_DECLINED: an interrupt is on its way, and is waited for first.
 */

ngx_int_t
ngx_kexec_connect_anew(ngx_kexec_execution_t *ex)
{
    ngx_kexec_ask_no_more(ex);

    if (ex->http) {
        return NGX_DECLINED;
    }

    ngx_log_error(NGX_LOG_INFO, &ex->log, 0,
                  "nothing comes through the link, it is opened anew");

    /* a call on the kernel's behalf uses what is discarded with it */

    ngx_kexec_session_unmark(ex);

    ex->deaf++;
    ex->foreign = ex->kernel->foreign;
    ex->seen = ex->kernel->seen;

    ngx_kexec_kernel_discard(ex->kernel);
    ex->kernel = NULL;
    ex->other = 1;

    ngx_kexec_connect(ex);

    return NGX_OK;
}
