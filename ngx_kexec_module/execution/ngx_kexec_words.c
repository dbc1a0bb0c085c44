
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>
#include <ngx_kexec_words.h>
#include <ngx_kexec_verdict.h>
#include <ngx_kexec_events.h>


/* what the machine says, in words */


typedef struct {
    ngx_kexec_say_e   say;
    ngx_uint_t        status;           /* of a new context that failed */
    const char       *name;             /* NULL: as the hands know */
    const char       *text;             /* NULL: depends */
} ngx_kexec_words_t;


static ngx_kexec_words_t *ngx_kexec_words_find(ngx_kexec_say_e say);
static u_char *ngx_kexec_words(ngx_kexec_execution_t *ex, u_char *p,
    u_char *last, ngx_kexec_say_e say, ngx_uint_t n);
static u_char *ngx_kexec_words_before(ngx_kexec_execution_t *ex, u_char *p,
    u_char *last, ngx_kexec_say_e say, ngx_uint_t n);
static u_char *ngx_kexec_words_queue(ngx_kexec_execution_t *ex, u_char *p,
    u_char *last);


static ngx_kexec_words_t  ngx_kexec_words_table[] = {

    { NGX_KEXEC_SAY_GONE, NGX_HTTP_NOT_FOUND, "ContextDeleted",
      "the context is gone, the code did not run" },

    { NGX_KEXEC_SAY_INVALID_CODE, NGX_HTTP_BAD_REQUEST, "InvalidCode", NULL },

    { NGX_KEXEC_SAY_NO_MEMORY, NGX_HTTP_INTERNAL_SERVER_ERROR, "InternalError",
      "out of memory" },

    { NGX_KEXEC_SAY_QUEUE_TIMEOUT, NGX_HTTP_SERVICE_UNAVAILABLE,
      "QueueTimeout", NULL },

    { NGX_KEXEC_SAY_LOST_PLACE, NGX_HTTP_INTERNAL_SERVER_ERROR,
      "InternalError",
      "the execution lost its place, send it again" },

    { NGX_KEXEC_SAY_NOT_READY, NGX_HTTP_SERVICE_UNAVAILABLE, "KernelNotReady",
      NULL },

    { NGX_KEXEC_SAY_NO_KERNEL, NGX_HTTP_SERVICE_UNAVAILABLE, "KernelNotReady",
      NULL },

    { NGX_KEXEC_SAY_FOREIGN, NGX_HTTP_SERVICE_UNAVAILABLE, "KernelNotReady",
      "somebody else's code runs in the kernel, the code did not run" },

    { NGX_KEXEC_SAY_ORPHAN, NGX_HTTP_SERVICE_UNAVAILABLE, "KernelNotReady",
      NULL },

    { NGX_KEXEC_SAY_UNREACHABLE, NGX_HTTP_SERVICE_UNAVAILABLE,
      "JupyterUnavailable", NULL },

    { NGX_KEXEC_SAY_TOKEN, NGX_HTTP_SERVICE_UNAVAILABLE, "JupyterUnavailable",
      NULL },

    { NGX_KEXEC_SAY_SESSION, 0, NULL, NULL },

    { NGX_KEXEC_SAY_ENV_TOO_LARGE, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
      "EnvironmentError",
      "Jupyter refused the environment variables as too large, the code did "
      "not run" },

    { NGX_KEXEC_SAY_CODE_TOO_LARGE, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
      "CodeTooLarge", NULL },

    { NGX_KEXEC_SAY_REFUSED_SETUP, NGX_HTTP_SERVICE_UNAVAILABLE,
      "KernelUnresponsive", NULL },

    { NGX_KEXEC_SAY_BAD_CWD, NGX_HTTP_BAD_REQUEST, "BadCwd", NULL },

    { NGX_KEXEC_SAY_BAD_ENV, 0, "EnvironmentError",
      "the kernel could not set the environment variables, the code did not "
      "run" },

    { NGX_KEXEC_SAY_FETCH, 0, "EnvironmentError", NULL },

    { NGX_KEXEC_SAY_ABANDONED, NGX_HTTP_CLIENT_CLOSED_REQUEST, "Abandoned",
      "nobody waits for the context any more" },

    { NGX_KEXEC_SAY_SHUTDOWN_BEFORE, NGX_HTTP_SERVICE_UNAVAILABLE,
      "ServerShutdown", NULL },

    { NGX_KEXEC_SAY_CREATE_GONE, NGX_HTTP_INTERNAL_SERVER_ERROR,
      "ContextFailed",
      "Failed to create context: its kernel is gone" },

    { NGX_KEXEC_SAY_NOT_STARTED, 0, "ExecutionInterrupted",
      "the execution was interrupted before its code ran" },

    { NGX_KEXEC_SAY_UNLINKED, 0, "ExecutionInterrupted", NULL },

    { NGX_KEXEC_SAY_HELD, 0, "ExecutionInterrupted", NULL },

    { NGX_KEXEC_SAY_HELD_TOO_LONG, 0, "KernelNotReady", NULL },

    { NGX_KEXEC_SAY_REFUSED, 0, "KernelUnresponsive", NULL },

    { NGX_KEXEC_SAY_UNNOTICED, 0, "KernelUnresponsive",
      "the kernel took no notice of the code, which was sent twice" },

    { NGX_KEXEC_SAY_LINK_LOST, 0, "LinkLost",
      "the link to the kernel was lost while the code was sent, it may or "
      "may not have run" },

    { NGX_KEXEC_SAY_LINK_GONE, 0, "JupyterUnavailable", NULL },

    { NGX_KEXEC_SAY_INTERRUPTED, 0, "ExecutionInterrupted",
      "the code was interrupted" },

    { NGX_KEXEC_SAY_INTERRUPTED_UNTOLD, 0, "ExecutionInterrupted",
      "the code was interrupted, the kernel did not tell how it ended" },

    { NGX_KEXEC_SAY_LOST, 0, "ExecutionLost",
      "the kernel is done but did not tell how the code ended" },

    { NGX_KEXEC_SAY_UNENDED, 0, "ExecutionLost",
      "the kernel takes requests again but did not tell how the code ended, "
      "something of it may still run and is interrupted" },

    { NGX_KEXEC_SAY_TIMEOUT, 0, "ExecutionTimeout", NULL },

    { NGX_KEXEC_SAY_TIMEOUT_SENT, 0, "ExecutionTimeout", NULL },

    { NGX_KEXEC_SAY_DIED, 0, "KernelDied",
      "the kernel process died while the code was running (killed, crashed "
      "or out of memory) and is started again, its variables are lost" },

    { NGX_KEXEC_SAY_DIED_SENT, 0, "KernelDied",
      "the kernel process died before the code was seen to start, it may or "
      "may not have run; a new one is started, the variables are lost" },

    { NGX_KEXEC_SAY_KERNEL_GONE, 0, "KernelDied", NULL },

    { NGX_KEXEC_SAY_RESTARTED, 0, "ContextRestarted", NULL },

    { NGX_KEXEC_SAY_EVICTED, 0, "ContextRestarted", NULL },

    { NGX_KEXEC_SAY_DELETED, 0, "ContextDeleted", NULL },

    { NGX_KEXEC_SAY_SHUTDOWN, 0, "ServerShutdown",
      "the server's worker process had to end (worker_shutdown_timeout), "
      "the code was interrupted" },

    { NGX_KEXEC_SAY_NONE, 0, NULL, NULL }
};


static const char  *ngx_kexec_words_held[] = {
    "it does not answer",
    "it runs somebody else's code",
    "it is held by what earlier code left running"
};


void
ngx_kexec_tell(ngx_kexec_execution_t *ex, ngx_kexec_say_e say, ngx_uint_t n)
{
    ngx_str_t           value;
    ngx_kexec_words_t  *words;
    u_char              buf[NGX_KEXEC_SENTENCE];

    if (ex->client == NULL || ex->errored) {
        return;
    }

    ngx_kexec_verdict_release(ex);

    words = ngx_kexec_words_find(say);

    value.data = buf;
    value.len = ngx_kexec_words(ex, buf, buf + NGX_KEXEC_SENTENCE, say, n)
                - buf;

    ex->errored = 1;

    (void) ngx_kexec_event_error(&ex->client->out,
                                 words->name ? words->name : ex->name, &value);
}


/* the client's stream ends here, whatever the execution still has to do */

void
ngx_kexec_tell_end(ngx_kexec_execution_t *ex)
{
    ngx_str_t            reason;
    ngx_kexec_client_t  *client;
    ngx_kexec_report_t  *report;

    client = ex->client;

    if (client == NULL) {
        return;
    }

    ngx_kexec_verdict_end(ex);

    report = client->report;

    switch (ex->m.outcome) {

    case NGX_KEXEC_OUTCOME_CANCELLED:
        report->status = NGX_KEXEC_STATUS_CANCELLED;
        break;

    case NGX_KEXEC_OUTCOME_TIMEOUT:
        report->status = NGX_KEXEC_STATUS_TIMEOUT;
        break;

    case NGX_KEXEC_OUTCOME_DIED:
        report->status = NGX_KEXEC_STATUS_DIED;
        break;

    default: /* NGX_KEXEC_OUTCOME_NONE */
        report->status = !ex->errored ? NGX_KEXEC_STATUS_OK
                         : ex->m.started ? NGX_KEXEC_STATUS_ERROR
                                         : NGX_KEXEC_STATUS_REJECTED;
    }

    if (!report->has_queue_time) {
        report->has_queue_time = 1;
        report->queue_time = ngx_current_msec - ex->entered;
    }

    if (ex->m.started) {
        report->has_run_time = 1;
        report->run_time = ngx_current_msec - ex->m.started;
    }

    if (ex->dropped) {
        reason.data = (u_char *) (ex->dropped_why ? ex->dropped_why
                                  : "a part of the output was lost");
        reason.len = ngx_strlen(reason.data);
        (void) ngx_kexec_event_dropped(&client->out, &reason);
    }

    (void) ngx_kexec_event_end(&client->out);

    ex->client = NULL;

    ngx_kexec_client_end(client);
}


ngx_uint_t
ngx_kexec_tell_failure(ngx_kexec_execution_t *ex, u_char *buf,
    ngx_str_t *sentence)
{
    ngx_kexec_words_t  *words;

    words = ngx_kexec_words_find(ex->m.failure);

    sentence->data = buf;
    sentence->len = ngx_kexec_words(ex, buf, buf + NGX_KEXEC_SENTENCE,
                                    ex->m.failure, ex->m.failure_n)
                    - buf;

    return words->name ? words->status : ex->status;
}


static ngx_kexec_words_t *
ngx_kexec_words_find(ngx_kexec_say_e say)
{
    ngx_kexec_words_t  *words;

    words = ngx_kexec_words_table;

    while (words->say != say && words->say != NGX_KEXEC_SAY_NONE) {
        words++;
    }

    return words;
}


static u_char *
ngx_kexec_words(ngx_kexec_execution_t *ex, u_char *p, u_char *last,
    ngx_kexec_say_e say, ngx_uint_t n)
{
    ngx_msec_t          timeout;
    const char         *sent;
    ngx_kexec_words_t  *words;

    words = ngx_kexec_words_find(say);

    if (words->text) {
        return ngx_slprintf(p, last, "%s", words->text);
    }

    timeout = ex->m.conf.timeout;
    sent = (n & 1) ? "may yet start, and is interrupted then" : "did not run";

    switch (say) {

    case NGX_KEXEC_SAY_UNLINKED:
        return ngx_slprintf(p, last, "the execution was interrupted, the code "
                            "%s", n ? "may or may not have run"
                                    : "did not run");

    case NGX_KEXEC_SAY_HELD:
        return ngx_slprintf(p, last, "the execution was interrupted before "
                            "its code started, %s; the code %s",
                            ngx_kexec_words_held[n >> 1], sent);

    case NGX_KEXEC_SAY_HELD_TOO_LONG:
        return ngx_slprintf(p, last, "the kernel did not take the code within "
                            "%M s, %s; the code %s",
                            ex->conf->ready_timeout / 1000,
                            ngx_kexec_words_held[n >> 1], sent);

    case NGX_KEXEC_SAY_REFUSED:
        return ngx_slprintf(p, last, "the kernel refused the code %ui times, "
                            "it did not run", n);

    case NGX_KEXEC_SAY_LINK_GONE:
        return ngx_slprintf(p, last, "Jupyter could not be reached for %M s "
                            "after the code was sent, its output is lost from "
                            "there on", ex->conf->reconnect_timeout / 1000);

    case NGX_KEXEC_SAY_TIMEOUT:
        return ngx_slprintf(p, last, "the execution was interrupted after its "
                            "timeout of %M.%03M s", timeout / 1000,
                            timeout % 1000);

    case NGX_KEXEC_SAY_TIMEOUT_SENT:
        return ngx_slprintf(p, last, "the kernel did not start the code "
                            "within its timeout of %M.%03M s, %s; it may yet "
                            "start, and is interrupted then", timeout / 1000,
                            timeout % 1000, ngx_kexec_words_held[n]);

    case NGX_KEXEC_SAY_KERNEL_GONE:
        return ngx_slprintf(p, last, "the kernel is not there any more "
                            "(Jupyter gave it up or was restarted, or somebody "
                            "deleted it), its variables are lost; the code %s",
                            n ? "was running" : "may or may not have run");

    case NGX_KEXEC_SAY_RESTARTED:
        return ngx_slprintf(p, last, "the kernel did not end %s within %M s "
                            "after an interrupt and was restarted, its "
                            "variables are lost",
                            n ? "what ran there before the code" : "its code",
                            ex->conf->interrupt_timeout / 1000);

    case NGX_KEXEC_SAY_EVICTED:
        return ngx_slprintf(p, last, "the context was restarted%s",
                            n ? "" : ", the code did not run");

    case NGX_KEXEC_SAY_DELETED:
        return ngx_slprintf(p, last, "the context was deleted%s",
                            n ? "" : ", the code did not run");

    default:
        return ngx_kexec_words_before(ex, p, last, say, n);
    }
}


/* before the code ran, or of a new context */

static u_char *
ngx_kexec_words_before(ngx_kexec_execution_t *ex, u_char *p, u_char *last,
    ngx_kexec_say_e say, ngx_uint_t n)
{
    const char  *ran;

    ran = (n & 1) ? "may or may not have run" : "did not run";

    switch (say) {

    case NGX_KEXEC_SAY_INVALID_CODE:
        return ngx_slprintf(p, last, "%V; the code did not run",
                            &ex->sentence);

    case NGX_KEXEC_SAY_QUEUE_TIMEOUT:
        return ngx_kexec_words_queue(ex, p, last);

    case NGX_KEXEC_SAY_NOT_READY:
        return ngx_slprintf(p, last, "the kernel was not ready within %M s, "
                            "the code %s", ex->conf->ready_timeout / 1000,
                            ran);

    case NGX_KEXEC_SAY_NO_KERNEL:
        return ngx_slprintf(p, last, "the kernel is not there any more, nor "
                            "are %ui that were started in its place, the code "
                            "did not run", n);

    case NGX_KEXEC_SAY_ORPHAN:
        return ngx_slprintf(p, last, "earlier code in the kernel does not end "
                            "after an interrupt, the code %s", ran);

    case NGX_KEXEC_SAY_UNREACHABLE:
        return ngx_slprintf(p, last, "Jupyter could not be reached for %M s, "
                            "the code %s", ex->conf->reconnect_timeout / 1000,
                            ran);

    case NGX_KEXEC_SAY_TOKEN:
        return ngx_slprintf(p, last, "Jupyter refused the server's token "
                            "(%ui), the code %s", n >> 1, ran);

    case NGX_KEXEC_SAY_CODE_TOO_LARGE:
        return ngx_slprintf(p, last, "Jupyter refused the code as too large "
                            "(%uz bytes), it did not run", ex->code.len);

    case NGX_KEXEC_SAY_REFUSED_SETUP:
        return ngx_slprintf(p, last, "the kernel refused to be prepared %ui "
                            "times, the code did not run", n);

    case NGX_KEXEC_SAY_BAD_CWD:
        return ngx_slprintf(p, last, "The working directory %*s does not "
                            "exist or cannot be entered", ex->ctx.cwd_len,
                            ex->ctx.cwd);

    case NGX_KEXEC_SAY_FETCH:
        return ngx_slprintf(p, last, "the context's environment variables "
                            "(kexec_envs_url) could not be had, the code did "
                            "not run: %V", &ex->sentence);

    case NGX_KEXEC_SAY_SHUTDOWN_BEFORE:

        if (ex->kind == NGX_KEXEC_CLAIM_CREATE) {
            return ngx_slprintf(p, last, "The server's worker process had to "
                                "end (worker_shutdown_timeout) before the "
                                "context was made");
        }

        return ngx_slprintf(p, last, "the server's worker process had to end "
                            "(worker_shutdown_timeout), the code %s", ran);

    default: /* NGX_KEXEC_SAY_SESSION */
        return ngx_slprintf(p, last, "%V", &ex->sentence);
    }
}


static u_char *
ngx_kexec_words_queue(ngx_kexec_execution_t *ex, u_char *p, u_char *last)
{
    ngx_msec_int_t        held;
    ngx_kexec_context_t   ctx;

    static const char  *phases[] = {
        "free",
        "held by an execution whose kernel is being prepared",
        "held by a running execution",
        "held by an execution that is being cancelled",
        "held by an execution that puts variables back",
        "held by a restart of the kernel",
        "held by an execution whose link to the kernel is lost",
        "kept busy by somebody else's code, which is not interrupted,",
        "kept busy by what earlier code left running in the kernel"
    };

    held = 0;
    ctx.phase = NGX_KEXEC_PHASE_FREE;

    if (ngx_kexec_zone_get(ex->claim.zone, &ex->claim.context, &ctx)
        == NGX_OK
        && ctx.held_since)
    {
        /* another worker's clock may be a little ahead of ours */

        held = (ngx_msec_int_t) (ngx_current_msec - ctx.held_since);
        held = ngx_max(held, 0);
    }

    return ngx_slprintf(p, last, "the execution waited %M s in the queue and "
                        "did not run: the context has been %s for %M s",
                        ex->conf->queue_timeout / 1000, phases[ctx.phase],
                        (ngx_msec_t) held / 1000);
}


void
ngx_kexec_tell_log(ngx_kexec_execution_t *ex, ngx_kexec_say_e say,
    ngx_uint_t n)
{
    switch (say) {

    case NGX_KEXEC_LOG_HELD:
        ngx_log_error(NGX_LOG_INFO, &ex->log, 0, "the kernel is held by %s",
                      n == NGX_KEXEC_HELD_FOREIGN
                      ? "somebody else's code"
                      : "what earlier code left running");
        return;

    case NGX_KEXEC_LOG_DEAF:
        ngx_log_error(NGX_LOG_INFO, &ex->log, 0,
                      "nothing comes through the link, it is opened anew");
        return;

    case NGX_KEXEC_LOG_DIED:
        ngx_log_error(NGX_LOG_WARN, &ex->log, 0, "the kernel died%s",
                      n ? " and was given up by Jupyter" : "");
        return;

    case NGX_KEXEC_LOG_GONE:
        ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                      "the kernel is not there any more, its context gets "
                      "another one");
        return;

    case NGX_KEXEC_LOG_UNSEEN:
        ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                      "the kernel was started again unseen");
        return;

    case NGX_KEXEC_LOG_LOST_CODE:
        ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                      "the code was lost on its way to the kernel");
        return;

    case NGX_KEXEC_LOG_LOST_END:
        ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                      "the end of an execution was lost by the kernel or "
                      "Jupyter%s%s", (n & 1) ? ", no reply" : "",
                      (n & 2) ? ", no idle" : "");
        return;

    case NGX_KEXEC_LOG_STUCK:

        if (n) {
            ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                          "the kernel does not end its code after an "
                          "interrupt and is restarted, its variables are "
                          "lost");

        } else {
            ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                          "the code does not end after an interrupt");
        }

        return;

    case NGX_KEXEC_LOG_NO_RESTART:
        ngx_log_error(NGX_LOG_ERR, &ex->log, 0,
                      "Jupyter did not restart the kernel for %M s, that is "
                      "left to the next execution",
                      ex->conf->ready_timeout / 1000);
        return;

    case NGX_KEXEC_LOG_STEP:
        ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                      "step %ui of the kernel's preparation failed", n);
        return;

    case NGX_KEXEC_LOG_RESTORE:
        ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                      "the kernel could not put variables back");
        return;

    case NGX_KEXEC_LOG_SHUTDOWN:
        ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                      "worker_shutdown_timeout is over, what runs in the "
                      "kernel is left to other workers");
        return;

    default:
        return;
    }
}
