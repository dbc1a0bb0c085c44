
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_machine_int.h>


ngx_uint_t
ngx_kexec_machine_before(ngx_kexec_machine_t *m)
{
    switch (m->state) {

    case NGX_KEXEC_EX_QUEUED:
    case NGX_KEXEC_EX_SESSION:
    case NGX_KEXEC_EX_LINKING:
    case NGX_KEXEC_EX_PROBING:
    case NGX_KEXEC_EX_SETUP:
        return 1;

    default:
        return 0;
    }
}


void
ngx_kexec_machine_do(ngx_kexec_machine_t *m, ngx_kexec_do_e what, ngx_uint_t n)
{
    ngx_kexec_action_t  *action;

    if (m->nactions == NGX_KEXEC_ACTIONS) {
        ngx_abort();
    }

    action = &m->actions[m->nactions++];

    action->what = what;
    action->say = NGX_KEXEC_SAY_NONE;
    action->n = n;
}


void
ngx_kexec_machine_log(ngx_kexec_machine_t *m, ngx_kexec_say_e say,
    ngx_uint_t n)
{
    ngx_kexec_machine_do(m, NGX_KEXEC_DO_LOG, n);
    m->actions[m->nactions - 1].say = say;
}


void
ngx_kexec_machine_tell(ngx_kexec_machine_t *m, ngx_kexec_say_e say,
    ngx_uint_t n)
{
    if (m->viewer) {
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_TELL, n);
        m->actions[m->nactions - 1].say = say;
    }
}


/* the client's stream ends here, whatever the execution still has to do */

void
ngx_kexec_machine_tell_end(ngx_kexec_machine_t *m)
{
    if (m->viewer) {
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_TELL_END, 0);
        m->viewer = 0;
    }
}


/*
 * The rest of the event is another part's: it goes on there when this one is
 * through, so that nothing is nested.
 */

void
ngx_kexec_machine_go(ngx_kexec_machine_t *m, ngx_kexec_go_e what, ngx_uint_t n)
{
    if (m->ngo == NGX_KEXEC_GOES) {
        ngx_abort();
    }

    m->go[m->ngo].what = what;
    m->go[m->ngo].n = n;
    m->ngo++;
}


void
ngx_kexec_machine_to(ngx_kexec_machine_t *m, ngx_kexec_execution_state_e state)
{
    m->state = state;
    m->waits &= ngx_kexec_machine_states[state].waits;
}


void
ngx_kexec_machine_wait(ngx_kexec_machine_t *m, ngx_kexec_wait_e wait,
    ngx_msec_t ms)
{
    m->waits |= 1 << wait;
    m->wait[wait] = m->now + ms;
}


void
ngx_kexec_machine_wait_not(ngx_kexec_machine_t *m, ngx_kexec_wait_e wait)
{
    m->waits &= ~(1 << wait);
}


ngx_uint_t
ngx_kexec_machine_waits(ngx_kexec_machine_t *m, ngx_kexec_wait_e wait)
{
    return (m->waits & (1 << wait)) != 0;
}


/* in this state? */

ngx_uint_t
ngx_kexec_machine_may_wait(ngx_kexec_machine_t *m, ngx_kexec_wait_e wait)
{
    return (ngx_kexec_machine_states[m->state].waits & (1 << wait)) != 0;
}


void
ngx_kexec_machine_call(ngx_kexec_machine_t *m, ngx_kexec_call_e call)
{
    m->call = call;
    ngx_kexec_machine_do(m, NGX_KEXEC_DO_CALL, call);
}


void
ngx_kexec_machine_call_not(ngx_kexec_machine_t *m)
{
    if (m->call) {
        m->call = NGX_KEXEC_CALL_NONE;
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_CALL_NOT, 0);
    }
}


void
ngx_kexec_machine_new_process(ngx_kexec_machine_t *m)
{
    ngx_kexec_facts_new_process(&m->facts);

    m->env_set = 0;
}


/*
 * The kernel's process is another one, in which nothing of ours is.  Whether
 * variables have to be put back stays as it was: what sets them may wait in
 * Jupyter's socket, and come to that one.
 */

void
ngx_kexec_facts_new_process(ngx_kexec_facts_t *facts)
{
    facts->epoch++;
    facts->process = 0;
    facts->ready = 0;
    facts->prepared = 0;
    facts->dirty = 0;
}


/*
 * Code that was sent before its kernel died may still run in the next process:
 * whoever has the slot then must look for it.
 */

ngx_uint_t
ngx_kexec_machine_orphan(ngx_kexec_machine_t *m)
{
    if (!m->code.sent) {
        return 0;
    }

    m->facts.dirty = 1;
    ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);

    return 1;
}


void
ngx_kexec_machine_fail(ngx_kexec_machine_t *m, ngx_kexec_say_e say,
    ngx_uint_t n)
{
    if (m->conf.create) {

        m->failure = say;
        m->failure_n = n;

        if (!m->facts.session) {
            ngx_kexec_machine_not_made(m);
            return;
        }

        /* it leaves no kernel behind: that is done before the end is told */

        ngx_kexec_machine_to(m, NGX_KEXEC_EX_DROPPING);

        m->facts.session = 0;

        ngx_kexec_machine_forget(m);
        ngx_kexec_machine_call(m, NGX_KEXEC_CALL_DROP);
        return;
    }

    ngx_kexec_machine_tell(m, say, n);
    ngx_kexec_machine_tell_end(m);

    if (m->recover || m->interrupts
        || m->state == NGX_KEXEC_EX_RESTARTING)
    {
        /* an interrupt may be on its way, or a restart */

        ngx_kexec_machine_leave(m);
        return;
    }

    ngx_kexec_machine_done(m);
}


/* a new context failed, or was given up, and has left nothing behind */

void
ngx_kexec_machine_not_made(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_do(m, NGX_KEXEC_DO_NOT_MADE, 0);
    ngx_kexec_machine_done(m);
}


/* the kernel is not wanted any more, nor a call on its behalf */

void
ngx_kexec_machine_forget(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_call_not(m);

    ngx_kexec_machine_unmark(m);
    ngx_kexec_machine_unfetch(m);

    ngx_kexec_machine_discard(m);

    m->foreign = 0;
    m->seen = 0;
}


void
ngx_kexec_machine_unmark(ngx_kexec_machine_t *m)
{
    if (m->marking) {
        m->marking = 0;
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_MARK_NOT, 0);
    }
}


void
ngx_kexec_machine_unfetch(ngx_kexec_machine_t *m)
{
    if (m->fetching) {
        m->fetching = 0;
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FETCH_NOT, 0);
    }
}


void
ngx_kexec_machine_discard(ngx_kexec_machine_t *m)
{
    if (m->reach) {
        m->reach = NGX_KEXEC_REACH_NOT;
        m->counted = 0;
        m->fresh = 0;

        ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_CONNECT);
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_DISCARD, 0);
    }
}


/*
 * The slot goes on to a new kernel.  An interrupt that is on its way must not
 * reach that, so its answer is waited for, as long as a REST call may take, or
 * the answer to a later call if that one was in vain.
 */

void
ngx_kexec_machine_leave(ngx_kexec_machine_t *m)
{
    if (m->state == NGX_KEXEC_EX_RESTARTING) {

        /* if it fails it is not repeated: whoever has the slot next sees */

        m->facts.ready = 0;
        m->facts.dirty = 1;
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);
    }

    if (m->unanswered) {
        ngx_kexec_machine_ask(m);

    } else {
        ngx_kexec_machine_ask_no_more(m);
    }

    if (m->call) {
        ngx_kexec_machine_to(m, NGX_KEXEC_EX_LEAVING);
        return;
    }

    ngx_kexec_machine_done(m);
}


/* the one end */

void
ngx_kexec_machine_done(ngx_kexec_machine_t *m)
{
    if (m->state == NGX_KEXEC_EX_DONE) {
        return;
    }

    ngx_kexec_machine_tell_end(m);

    ngx_kexec_machine_to(m, NGX_KEXEC_EX_DONE);

    m->call = NGX_KEXEC_CALL_NONE;

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_DONE, 0);
}


/* without a link it counts as sent too: it is repeated by its timer */

void
ngx_kexec_machine_fence(ngx_kexec_machine_t *m)
{
    ngx_memzero(&m->fence, sizeof(ngx_kexec_ask_t));
    m->fence.sent = 1;

    m->covers = (m->call != NGX_KEXEC_CALL_INTERRUPT && !m->unanswered);

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_SEND_FENCE, 0);

    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_FENCE, NGX_KEXEC_FENCE_TIME);

    if (ngx_kexec_machine_may_wait(m, NGX_KEXEC_WAIT_HELD)
        && !ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_HELD))
    {
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_HELD, NGX_KEXEC_HELD_TIME);
    }
}


void
ngx_kexec_machine_fence_not(ngx_kexec_machine_t *m)
{
    m->fence.sent = 0;
    m->links = 0;
    m->held_asks = 0;

    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_FENCE);
    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_HELD);
}


/* the kernel takes one request after the other, and now it took ours */

void
ngx_kexec_machine_ours(ngx_kexec_machine_t *m)
{
    m->foreign = 0;
    m->seen = 1;
}


/* a restart or delete by somebody else sends no status message */

void
ngx_kexec_machine_ask(ngx_kexec_machine_t *m)
{
    if (m->call == NGX_KEXEC_CALL_NONE && m->reach) {
        m->asked = m->now;
        m->counted = (m->reach == NGX_KEXEC_REACH_OPEN);

        ngx_kexec_machine_call(m, NGX_KEXEC_CALL_ASK);
    }
}


/* a question may be dropped, unlike an interrupt, and stands in its way */

void
ngx_kexec_machine_ask_no_more(ngx_kexec_machine_t *m)
{
    if (m->call == NGX_KEXEC_CALL_ASK || m->call == NGX_KEXEC_CALL_CHECK) {
        ngx_kexec_machine_call_not(m);
    }
}


/*
 * Is no interrupt on its way?  A call that Jupyter took and did not answer in
 * time may be obeyed yet: Jupyter's answer to a later one shows that it was.
 * If not, whatever calls back next asks again.
 */

ngx_uint_t
ngx_kexec_machine_interrupts_over(ngx_kexec_machine_t *m)
{
    if (!m->unanswered) {
        ngx_kexec_machine_ask_no_more(m);
        return m->call == NGX_KEXEC_CALL_NONE;
    }

    ngx_kexec_machine_ask(m);

    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_OVER, NGX_KEXEC_RETRY_TIME);

    return 0;
}


void
ngx_kexec_machine_interrupts_none(ngx_kexec_machine_t *m)
{
    m->interrupts = 0;
    m->interrupted = 0;
}


/*
 * Is there code to be interrupted?  A reply says that there is none, but code
 * can send one in the kernel's name and go on, so a fence has to come back as
 * well, in the time after which "wait" comes here again.
 */

ngx_uint_t
ngx_kexec_machine_goes_on(ngx_kexec_machine_t *m, ngx_kexec_wait_e wait)
{
    ngx_msec_t  ms;

    if (!m->code.reply) {
        return 1;
    }

    if (m->over) {
        return 0;
    }

    if (m->doubted == 0) {
        m->doubted = m->now;

        if (!m->fence.sent) {
            ngx_kexec_machine_fence(m);
        }
    }

    ms = m->now - m->doubted;

    if (ms < NGX_KEXEC_QUIET_TIME) {
        ngx_kexec_machine_wait(m, wait, NGX_KEXEC_QUIET_TIME - ms);
        return 0;
    }

    return 1;
}


/* for how long the link has been silent */

ngx_msec_t
ngx_kexec_machine_quiet(ngx_kexec_machine_t *m)
{
    return (m->reach == NGX_KEXEC_REACH_OPEN) ? m->now - m->link_read : 0;
}
