
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>


/* a kernel's death is news once in this time: its code can tell it as well */
#define NGX_KEXEC_DIED_TIME  500


static void ngx_kexec_process_spare(ngx_kexec_execution_t *ex);


/* a mark of the process that wrote the message, 0 if it cannot be known */

uint32_t
ngx_kexec_message_process(ngx_kexec_message_t *msg)
{
    ngx_str_t  session;

    if (ngx_kexec_json_member(&msg->header, "session", &session) != NGX_OK) {
        return 0;
    }

    return ngx_crc32_short(session.data, session.len);
}


/*
 * Each process of a kernel has a session id of its own in its messages.  One
 * that was restarted while no link was open is told by that alone.
 */

void
ngx_kexec_process(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg)
{
    uint32_t  process;

    process = ngx_kexec_message_process(msg);

    ex->ctx.in_order = ngx_kexec_message_in_order(msg);

    if (process == 0 || process == ex->ctx.process) {
        return;
    }

    if (ex->ctx.process) {
        ngx_log_error(NGX_LOG_WARN, &ex->log, 0,
                      "the kernel was started again unseen");

        ex->ctx.prepared = 0;
        ex->ctx.owes_restore = 0;
        ex->ctx.epoch++;
        ex->step = 0;
    }

    ex->ctx.process = process;

    ngx_kexec_zone_update(&ex->claim, &ex->ctx);
}


/*
 * Somebody has Jupyter restart the kernel, which ends what runs there as it
 * likes.  What comes next is prepared like after any other restart.
 */

void
ngx_kexec_replaced(ngx_kexec_execution_t *ex)
{
    if (!ex->ctx.ready && !ex->recover) {
        return;
    }

    if (ex->recover) {
        ngx_kexec_process_spare(ex);
    }

    ngx_kexec_zone_new_process(&ex->ctx);
    ex->env_set = 0;
    ex->step = 0;
    ex->kernel->fresh = 1;

    ngx_kexec_zone_update(&ex->claim, &ex->ctx);

    if (ex->state == NGX_KEXEC_EX_SETUP) {
        ex->silent.sent = 0;
        ngx_kexec_probe(ex);
    }
}


/* what was to be interrupted is gone with its process */

static void
ngx_kexec_process_spare(ngx_kexec_execution_t *ex)
{
    ex->recover = 0;

    if ((ex->http == NULL || ex->asking) && !ex->unanswered) {

        /* else ngx_kexec_probe_barrier() waits for those on their way */

        ex->interrupts = 0;
    }

    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_INTERRUPT);
    ngx_kexec_wait_not(ex, NGX_KEXEC_WAIT_STUCK);
}


/* Jupyter says that the kernel process is gone; it starts another by itself */

void
ngx_kexec_died(ngx_kexec_execution_t *ex, ngx_uint_t dead)
{
    if (!dead && ex->died && ngx_current_msec - ex->died < NGX_KEXEC_DIED_TIME
        && (ex->state == NGX_KEXEC_EX_PROBING
            || ex->state == NGX_KEXEC_EX_SETUP
            || ex->state == NGX_KEXEC_EX_RESTARTING))
    {
        return;
    }

    ex->died = ngx_current_msec;

    ngx_log_error(NGX_LOG_WARN, &ex->log, 0, "the kernel died%s",
                  dead ? " and was given up by Jupyter" : "");

    ngx_kexec_zone_new_process(&ex->ctx);
    ex->env_set = 0;
    ex->recover = 0;
    ex->held = NGX_KEXEC_HELD_NOT;
    ex->foreign = 0;
    ex->kernel->fresh = 1;
    ex->kernel->foreign = 0;

    if (dead) {
        ex->ctx.kernel.len = 0;
    }

    if (ex->kind == NGX_KEXEC_CLAIM_RUN) {
        ngx_kexec_zone_update(&ex->claim, &ex->ctx);
    }

    switch (ex->state) {

    case NGX_KEXEC_EX_LINKING:
    case NGX_KEXEC_EX_PROBING:
    case NGX_KEXEC_EX_SETUP:
        ex->silent.sent = 0;
        ex->step = 0;

        ngx_kexec_process_spare(ex);

        if (ex->kind == NGX_KEXEC_CLAIM_RUN && ex->client == NULL) {

            /* whoever has the slot next looks for code that was sent */

            (void) ngx_kexec_orphan(ex);
            ngx_kexec_leave(ex);
            return;
        }

        break;

    case NGX_KEXEC_EX_SENT:
    case NGX_KEXEC_EX_BUSY:
        ngx_kexec_run_died(ex, dead);
        return;

    case NGX_KEXEC_EX_BARRIER:
    case NGX_KEXEC_EX_RESTORING:

        /* there is nothing left to be put back */

        ngx_kexec_leave(ex);
        return;

    case NGX_KEXEC_EX_RESTARTING:

        if (dead) {

            /* the next execution makes a new session */

            ngx_kexec_done(ex);
        }

        return;

    default:
        return;
    }

    if (dead) {
        ngx_kexec_session(ex);
        return;
    }

    if (ex->state != NGX_KEXEC_EX_LINKING) {
        ngx_kexec_probe(ex);
    }
}
