
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_machine_int.h>


/* a kernel's death is news once in this time: its code can tell it as well */
#define NGX_KEXEC_DIED_TIME  500


static void ngx_kexec_machine_spare(ngx_kexec_machine_t *m);


/*
 * Each process of a kernel has a session id of its own in its messages.  One
 * that was restarted while no link was open is told by that alone.
 */

void
ngx_kexec_machine_seen(ngx_kexec_machine_t *m, ngx_kexec_machine_event_t *ev)
{
    m->facts.in_order = ev->in_order;

    if (ev->process == 0 || ev->process == m->facts.process) {
        return;
    }

    if (m->facts.process) {
        ngx_kexec_machine_log(m, NGX_KEXEC_LOG_UNSEEN, 0);

        m->facts.prepared = 0;
        m->facts.epoch++;
        m->step = NGX_KEXEC_STEP_OWED;
    }

    m->facts.process = ev->process;

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);
}


/*
 * Somebody has Jupyter restart the kernel, which ends what runs there as it
 * likes.  What comes next is prepared like after any other restart.
 */

void
ngx_kexec_machine_replaced(ngx_kexec_machine_t *m)
{
    if (!m->facts.ready && !m->recover) {
        return;
    }

    if (m->recover) {
        ngx_kexec_machine_spare(m);
    }

    ngx_kexec_machine_new_process(m);

    m->step = NGX_KEXEC_STEP_OWED;
    m->fresh = 1;

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);

    if (m->state == NGX_KEXEC_EX_SETUP) {
        m->silent.sent = 0;
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_PROBE, 0);
    }
}


/* what was to be interrupted is gone with its process */

static void
ngx_kexec_machine_spare(ngx_kexec_machine_t *m)
{
    m->recover = 0;

    if ((m->call == NGX_KEXEC_CALL_NONE || m->call == NGX_KEXEC_CALL_ASK)
        && !m->unanswered)
    {
        /* else the barrier waits for those on their way */

        ngx_kexec_machine_interrupts_none(m);
    }

    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_ORPHAN);
    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_INTERRUPT);
    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_STUCK);
}


/* Jupyter says that the kernel process is gone; it starts another by itself */

void
ngx_kexec_machine_died(ngx_kexec_machine_t *m, ngx_uint_t dead)
{
    if (!dead && m->died && m->now - m->died < NGX_KEXEC_DIED_TIME
        && (m->state == NGX_KEXEC_EX_PROBING
            || m->state == NGX_KEXEC_EX_SETUP
            || m->state == NGX_KEXEC_EX_RESTARTING))
    {
        return;
    }

    m->died = m->now;

    ngx_kexec_machine_log(m, NGX_KEXEC_LOG_DIED, dead);

    ngx_kexec_machine_new_process(m);

    m->recover = 0;
    m->held = NGX_KEXEC_HELD_NOT;
    m->fresh = 1;
    m->foreign = 0;

    if (dead) {
        m->facts.kernel = 0;
    }

    if (!m->conf.create) {
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);
    }

    switch (m->state) {

    case NGX_KEXEC_EX_LINKING:
    case NGX_KEXEC_EX_PROBING:
    case NGX_KEXEC_EX_SETUP:
        m->silent.sent = 0;
        m->step = NGX_KEXEC_STEP_OWED;

        ngx_kexec_machine_spare(m);

        if (!m->conf.create && !m->viewer) {

            /* whoever has the slot next looks for code that was sent */

            (void) ngx_kexec_machine_orphan(m);
            ngx_kexec_machine_leave(m);
            return;
        }

        break;

    case NGX_KEXEC_EX_SENT:
    case NGX_KEXEC_EX_BUSY:
    case NGX_KEXEC_EX_ENDING:
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_RUN_DIED, dead);
        return;

    case NGX_KEXEC_EX_BARRIER:
    case NGX_KEXEC_EX_RESTORING:

        /* there is nothing left to be put back */

        ngx_kexec_machine_leave(m);
        return;

    case NGX_KEXEC_EX_RESTARTING:

        if (dead) {

            /* the next execution makes a new session */

            ngx_kexec_machine_done(m);
        }

        return;

    default:
        return;
    }

    if (dead) {
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_SESSION, 0);
        return;
    }

    if (m->state != NGX_KEXEC_EX_LINKING) {
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_PROBE, 0);
    }
}


/*
 * Jupyter gave the kernel up or culled it, somebody deleted it there, or
 * Jupyter was started anew.  Its answers do not tell which, nor does it matter:
 * the context lives until a client deletes it through us.
 */

void
ngx_kexec_machine_gone(ngx_kexec_machine_t *m)
{
    ngx_kexec_execution_state_e  state;

    if (m->conf.create) {
        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_CREATE_GONE, 0);
        return;
    }

    ngx_kexec_machine_log(m, NGX_KEXEC_LOG_GONE, 0);

    ngx_kexec_machine_new_process(m);
    m->facts.kernel = 0;
    ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);

    m->recover = 0;
    m->held = NGX_KEXEC_HELD_NOT;

    /* an interrupt that is on its way reaches nobody */

    ngx_kexec_machine_interrupts_none(m);
    ngx_kexec_machine_fence_not(m);
    ngx_kexec_machine_forget(m);

    state = m->state;

    if (state == NGX_KEXEC_EX_LEAVING) {
        ngx_kexec_machine_done(m);
        return;
    }

    if (state == NGX_KEXEC_EX_ENDING) {

        /* the code was over, and there is nothing to restart or wait for */

        m->exits = 0;
        m->over = 1;

        ngx_kexec_machine_go(m, NGX_KEXEC_GO_RUN_END, 0);
        return;
    }

    if (ngx_kexec_machine_before(m) && !m->code.sent) {

        if (m->cancel == NGX_KEXEC_CANCEL_NONE) {
            ngx_kexec_machine_go(m, NGX_KEXEC_GO_SESSION, 0);
            return;
        }

        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_NOT_STARTED, 0);

    } else {
        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_KERNEL_GONE,
                               state == NGX_KEXEC_EX_BUSY);

        if (m->outcome == NGX_KEXEC_OUTCOME_NONE) {
            m->outcome = NGX_KEXEC_OUTCOME_DIED;
        }
    }

    ngx_kexec_machine_done(m);
}
