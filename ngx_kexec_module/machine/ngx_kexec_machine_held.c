
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_machine_int.h>


/*
 * Held: a kernel that owes an answer, and does not take the fence behind it.
 *
 * Somebody else's cell is known by its busy, without idle, on our link, and is
 * never interrupted.  All else is a leftover, of an earlier execution that was
 * told to have ended: a callback, a task or a thread that blocks the kernel,
 * forged messages, a stopped process.  It is treated like code of ours that
 * does not end: interrupted, in the end restarted; at once if nobody wants the
 * execution any more, else after kexec_ready_timeout.
 */


static ngx_kexec_held_e ngx_kexec_machine_held_whose(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_held_end(ngx_kexec_machine_t *m);


/* the fence is not back for NGX_KEXEC_HELD_TIME */

void
ngx_kexec_machine_held(ngx_kexec_machine_t *m)
{
    ngx_kexec_held_e  held;

    if (m->state == NGX_KEXEC_EX_LINKING) {

        /* by itself, or since nothing came: that may be why */

        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_HELD, NGX_KEXEC_RETRY_TIME);
        return;
    }

    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_HELD, NGX_KEXEC_HELD_TIME);

    if (!m->facts.ready || m->reach != NGX_KEXEC_REACH_OPEN) {

        /* a kernel that is being started has kexec_ready_timeout */

        return;
    }

    held = ngx_kexec_machine_held_whose(m);

    if (held == NGX_KEXEC_HELD_NOT) {
        return;
    }

    if (held != m->held) {
        m->held = held;

        ngx_kexec_machine_log(m, NGX_KEXEC_LOG_HELD, held);
    }

    if (held == NGX_KEXEC_HELD_LEFTOVER
        && (m->cancel || m->state == NGX_KEXEC_EX_BARRIER))
    {
        ngx_kexec_machine_held_end(m);
    }
}


/* HELD_NOT: Jupyter is asked, and it is looked again when it has answered */

static ngx_kexec_held_e
ngx_kexec_machine_held_whose(ngx_kexec_machine_t *m)
{
    if (m->foreign) {
        return NGX_KEXEC_HELD_FOREIGN;
    }

    if (m->recover || m->seen) {

        /* a foreign cell would have been seen to begin */

        return NGX_KEXEC_HELD_LEFTOVER;
    }

    if (m->links == 0) {
        m->held_asks = 1;
        ngx_kexec_machine_ask(m);
        return NGX_KEXEC_HELD_NOT;
    }

    return m->links > 1 ? NGX_KEXEC_HELD_FOREIGN : NGX_KEXEC_HELD_LEFTOVER;
}


/* Jupyter has told how many links the kernel has */

void
ngx_kexec_machine_held_asked(ngx_kexec_machine_t *m)
{
    if (m->held_asks) {
        m->held_asks = 0;
        ngx_kexec_machine_held(m);
    }
}


/* a reason to cancel came: what holds the kernel is not waited for any more */

void
ngx_kexec_machine_held_cancel(ngx_kexec_machine_t *m)
{
    if (m->held == NGX_KEXEC_HELD_LEFTOVER) {
        ngx_kexec_machine_held_end(m);
    }
}


/* kexec_ready_timeout is over, and the code was not seen to start */

void
ngx_kexec_machine_held_too_long(ngx_kexec_machine_t *m)
{
    ngx_uint_t  connected;

    connected = m->reach == NGX_KEXEC_REACH_OPEN
                || (m->reach == NGX_KEXEC_REACH_OPENING && m->link_up);

    if (m->conf.create
        || m->state == NGX_KEXEC_EX_SESSION
        || (!connected && !m->code.sent)
        || (m->state == NGX_KEXEC_EX_SETUP && !m->fence.sent))
    {
        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_NOT_READY,
                               ngx_kexec_machine_orphan(m));
        return;
    }

    if (m->foreign) {
        m->held = NGX_KEXEC_HELD_FOREIGN;
    }

    ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_HELD_TOO_LONG,
                           m->held << 1 | m->code.sent);
    ngx_kexec_machine_tell_end(m);

    m->cancel = NGX_KEXEC_CANCEL_CLIENT;

    if (m->held == NGX_KEXEC_HELD_FOREIGN) {

        if (!m->code.sent) {
            ngx_kexec_machine_leave(m);
        }

        /* else the slot is kept: codes would pile up in front of the kernel */

        return;
    }

    if (!connected) {

        /* until then Jupyter cannot be asked for anything */

        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_READY, m->conf.ready_timeout);
        return;
    }

    ngx_kexec_machine_held_end(m);
}


/* not even the restart that was to follow came about */

void
ngx_kexec_machine_held_still(ngx_kexec_machine_t *m)
{
    if (m->conf.create) {
        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_NOT_READY, 0);
        return;
    }

    if (m->foreign) {
        m->held = NGX_KEXEC_HELD_FOREIGN;
    }

    if (m->held == NGX_KEXEC_HELD_FOREIGN && m->code.sent) {

        /* the slot is kept, as above */

        return;
    }

    /* whoever has the slot next tries it all again */

    (void) ngx_kexec_machine_orphan(m);
    ngx_kexec_machine_leave(m);
}


/*
 * From here on it is as with the code of a dead worker's execution: a fence,
 * interrupts, and one more fence as the barrier.  Code that was sent ahead of
 * the fence may start before that, and is interrupted as well.
 */

static void
ngx_kexec_machine_held_end(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_HELD,
                           m->held << 1 | m->code.sent);
    ngx_kexec_machine_tell_end(m);

    /* nobody watches any more: what interrupts do not end is restarted */

    m->cancel = NGX_KEXEC_CANCEL_CLIENT;

    m->held = NGX_KEXEC_HELD_LEFTOVER;

    ngx_kexec_machine_unmark(m);
    ngx_kexec_machine_unfetch(m);

    if (m->state == NGX_KEXEC_EX_SETUP || m->state == NGX_KEXEC_EX_SENT) {
        ngx_kexec_machine_to(m, m->reach == NGX_KEXEC_REACH_OPEN
                                ? NGX_KEXEC_EX_PROBING
                                : NGX_KEXEC_EX_LINKING);
        m->probed = m->now;

        m->silent.sent = 0;
        ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_TIMEOUT);

        if (!m->fence.sent) {
            ngx_kexec_machine_fence(m);
        }
    }

    if (m->state != NGX_KEXEC_EX_BARRIER) {

        if (!ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_LEFTOVER)) {

            /*
             * When even the restart that follows does not come about.  It is
             * looked again and again, which must not put that off.
             */

            ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_READY);
            ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_LEFTOVER,
                                   m->conf.interrupt_timeout
                                   + NGX_KEXEC_RESTART_TIME);
        }

        m->recover = 1;
    }

    /* those that were sent already go on by themselves */

    if (m->interrupts == 0 || m->state == NGX_KEXEC_EX_BARRIER) {
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_INTERRUPT, 0);
    }
}
