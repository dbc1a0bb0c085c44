
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>
#include <ngx_kexec_session.h>
#include <ngx_kexec_calls.h>


/* calls to Jupyter on the kernel's behalf: their answers are events */


/* for Jupyter's answer to a question */
#define NGX_KEXEC_ASK_TIME  5000


static void ngx_kexec_call_asked(ngx_kexec_http_t *http);
static void ngx_kexec_call_interrupted(ngx_kexec_http_t *http);
static void ngx_kexec_call_restarted(ngx_kexec_http_t *http);
static void ngx_kexec_call_answered(ngx_kexec_execution_t *ex,
    ngx_kexec_http_t *http, ngx_kexec_machine_event_t *ev);


ngx_int_t
ngx_kexec_call(ngx_kexec_execution_t *ex, ngx_kexec_call_e call)
{
    ngx_str_t            id;
    ngx_kexec_server_t  *server;

    id.len = ex->ctx.kernel.len;
    id.data = ex->ctx.kernel.data;

    server = ex->kernel ? &ex->kernel->server : ex->server;

    switch (call) {

    case NGX_KEXEC_CALL_SESSION:
        return ngx_kexec_session_make(ex);

    case NGX_KEXEC_CALL_DROP:
        return ngx_kexec_session_drop(ex);

    case NGX_KEXEC_CALL_INTERRUPT:
        ex->http = ngx_kexec_jupyter_interrupt(server, &id,
                                               ngx_kexec_call_interrupted, ex,
                                               &ex->log);
        break;

    case NGX_KEXEC_CALL_RESTART:
        ex->http = ngx_kexec_jupyter_restart(server, &id,
                                             ngx_kexec_call_restarted, ex,
                                             &ex->log);
        if (ex->http) {
            ngx_kexec_http_limit(ex->http, NGX_KEXEC_RESTART_TIME);
        }

        break;

    default: /* NGX_KEXEC_CALL_ASK, NGX_KEXEC_CALL_CHECK */
        ex->http = ngx_kexec_jupyter_kernel(server, &id, ngx_kexec_call_asked,
                                            ex, &ex->log);
        if (ex->http && call == NGX_KEXEC_CALL_ASK) {
            ngx_kexec_http_limit(ex->http, NGX_KEXEC_ASK_TIME);
        }

        break;
    }

    return ex->http ? NGX_OK : NGX_ERROR;
}


void
ngx_kexec_call_stop(ngx_kexec_execution_t *ex)
{
    if (ex->http) {
        ngx_kexec_http_cancel(ex->http);
        ex->http = NULL;
    }
}


static void
ngx_kexec_call_asked(ngx_kexec_http_t *http)
{
    ngx_kexec_execution_t      *ex;
    ngx_kexec_kernel_state_e    state;
    ngx_kexec_machine_event_t   ev;

    ex = http->data;

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    if (http->status == NGX_HTTP_OK) {

        state = NGX_KEXEC_KERNEL_OTHER;

        (void) ngx_kexec_jupyter_parse_kernel(&http->body, &state, &ev.links);

        ev.says = (state == NGX_KEXEC_KERNEL_IDLE) ? NGX_KEXEC_JUPYTER_IDLE
                  : (state == NGX_KEXEC_KERNEL_BUSY) ? NGX_KEXEC_JUPYTER_BUSY
                  : NGX_KEXEC_JUPYTER_OTHER;
    }

    ngx_kexec_call_answered(ex, http, &ev);
}


static void
ngx_kexec_call_interrupted(ngx_kexec_http_t *http)
{
    ngx_kexec_execution_t      *ex;
    ngx_kexec_machine_event_t   ev;

    ex = http->data;

    if ((http->status < 200 || http->status >= 300)
        && http->status != NGX_HTTP_NOT_FOUND)
    {
        ngx_log_error(NGX_LOG_ERR, &ex->log, 0,
                      "Jupyter did not interrupt the kernel: %ui %s",
                      http->status, http->error ? http->error : "");
    }

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));
    ngx_kexec_call_answered(ex, http, &ev);
}


static void
ngx_kexec_call_restarted(ngx_kexec_http_t *http)
{
    ngx_kexec_execution_t      *ex;
    ngx_kexec_machine_event_t   ev;

    ex = http->data;

    if (http->status != NGX_HTTP_OK) {
        ngx_log_error(NGX_LOG_ERR, &ex->log, 0,
                      "Jupyter did not restart the kernel: %ui %s",
                      http->status, http->error ? http->error : "");
    }

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));
    ngx_kexec_call_answered(ex, http, &ev);
}


static void
ngx_kexec_call_answered(ngx_kexec_execution_t *ex, ngx_kexec_http_t *http,
    ngx_kexec_machine_event_t *ev)
{
    ev->what = NGX_KEXEC_ON_ANSWER;
    ev->n = http->status;
    ev->connected = http->connected;

    ex->http = NULL;

    ex->event(ex, ev);
}
