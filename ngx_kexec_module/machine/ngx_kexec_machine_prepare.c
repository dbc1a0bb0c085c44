
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_machine_int.h>


/* the longest pause between two tries to open a link */
#define NGX_KEXEC_CONNECT_TIME  1000

/*
 * Jupyter closes an older link of the session when a new one opens, and what
 * arrives on that one afterwards is taken for another protocol: a format for
 * a hundred million numbers, which keeps it busy for seconds.  So what a dead
 * worker sent last gets this much time to be read.
 */
#define NGX_KEXEC_ORPHAN_LINK_TIME  100

/* a fence tells whether a silent request that is this late was lost */
#define NGX_KEXEC_SETUP_TIME    2000

/* new kernels for an execution whose kernel is gone, and they too */
#define NGX_KEXEC_SESSIONS      3


static void ngx_kexec_machine_link(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_link_limit(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_probed(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_silent_not(ngx_kexec_machine_t *m);
static void ngx_kexec_machine_prepared(ngx_kexec_machine_t *m);
static ngx_uint_t ngx_kexec_machine_envs(ngx_kexec_machine_t *m);


/* the slot is ours, and with it the kernel: m->facts are the context's */

void
ngx_kexec_machine_granted(ngx_kexec_machine_t *m, ngx_kexec_say_e why)
{
    if (why) {
        ngx_kexec_machine_fail(m, why, 0);
        return;
    }

    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_READY, m->conf.ready_timeout);

    if (!m->facts.kernel) {
        ngx_kexec_machine_session(m);
        return;
    }

    m->recover = m->facts.dirty;

    ngx_kexec_machine_connect(m);
}


/*
 * A new Jupyter session, and with it a new kernel, for a context that is being
 * made, or whose kernel was given up by Jupyter.
 */

void
ngx_kexec_machine_session(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_to(m, NGX_KEXEC_EX_SESSION);

    ngx_kexec_machine_forget(m);

    /* what was for the last one, or is known of it, is not this one's */

    ngx_kexec_machine_fence_not(m);

    m->silent.sent = 0;
    m->other = 0;
    m->recover = 0;
    m->unanswered = 0;

    ngx_kexec_machine_interrupts_none(m);

    if (!m->conf.create && m->sessions++ == NGX_KEXEC_SESSIONS) {
        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_NO_KERNEL, NGX_KEXEC_SESSIONS);
        return;
    }

    if (!ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_READY)) {
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_READY, m->conf.ready_timeout);
    }

    ngx_kexec_machine_call(m, NGX_KEXEC_CALL_SESSION);
}


void
ngx_kexec_machine_session_answer(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev)
{
    if (ev->say) {
        ngx_kexec_machine_fail(m, ev->say, 0);
        return;
    }

    m->step = NGX_KEXEC_STEP_OWED;

    ngx_kexec_machine_new_process(m);

    m->facts.owes_restore = 0;
    m->facts.session = 1;
    m->facts.kernel = 1;

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);

    if (m->state == NGX_KEXEC_EX_LEAVING) {
        ngx_kexec_machine_done(m);
        return;
    }

    ngx_kexec_machine_connect(m);
}


/* takes the kernel and, where there is none yet, opens a link to it */

void
ngx_kexec_machine_connect(ngx_kexec_machine_t *m)
{
    if (ngx_kexec_machine_before(m)) {
        ngx_kexec_machine_to(m, NGX_KEXEC_EX_LINKING);

        /* a silent request is repeated when the kernel is ready */

        m->silent.sent = 0;
    }

    if (m->reach) {
        ngx_kexec_machine_link(m);
        return;
    }

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_TAKE, 0);
}


void
ngx_kexec_machine_kernel(ngx_kexec_machine_t *m, ngx_kexec_machine_event_t *ev)
{
    m->reach = ev->open ? NGX_KEXEC_REACH_OPEN : NGX_KEXEC_REACH_DOWN;
    m->fresh = ev->fresh;

    if (m->deaf == 0) {

        /* else what holds the kernel is the same as on the deaf link */

        m->seen = ev->open && ev->seen;
        m->foreign = ev->foreign;
    }

    if (m->other) {
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_OTHER, 0);
    }

    ngx_kexec_machine_link(m);
}


static void
ngx_kexec_machine_link(ngx_kexec_machine_t *m)
{
    if (m->reach == NGX_KEXEC_REACH_OPEN) {
        ngx_kexec_machine_probe(m);
        return;
    }

    ngx_kexec_machine_link_limit(m);

    if (m->recover && m->tries == 0) {
        m->tries = 1;
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_CONNECT,
                               NGX_KEXEC_ORPHAN_LINK_TIME);
        return;
    }

    m->reach = NGX_KEXEC_REACH_OPENING;
    m->fresh = 1;

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_OPEN, 0);
}


/* at once the first time, then with growing pauses */

void
ngx_kexec_machine_connect_later(ngx_kexec_machine_t *m)
{
    ngx_msec_t  pause;

    pause = m->tries ? 50 << ngx_min(m->tries, 8) : 0;
    m->tries++;

    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_CONNECT,
                           ngx_min(pause, NGX_KEXEC_CONNECT_TIME));
}


void
ngx_kexec_machine_opened(ngx_kexec_machine_t *m)
{
    m->reach = NGX_KEXEC_REACH_OPEN;
    m->tries = 0;

    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_LINK);

    if (m->other) {
        m->other = 0;

        ngx_kexec_machine_ask_no_more(m);
        ngx_kexec_machine_discard(m);
        ngx_kexec_machine_connect(m);
        return;
    }

    switch (m->state) {

    case NGX_KEXEC_EX_LINKING:
        ngx_kexec_machine_probe(m);
        return;

    case NGX_KEXEC_EX_SENT:
    case NGX_KEXEC_EX_BUSY:

        /*
         * What was printed meanwhile comes now.  A fence behind it shows
         * when it is all there, but for kernels that answer while code
         * awaits: Jupyter would take them for idle then, as they say.
         */

        if (m->state == NGX_KEXEC_EX_SENT || m->facts.in_order
            || m->code.reply || m->code.idle)
        {
            ngx_kexec_machine_fence(m);
        }

        /* Jupyter keeps nothing for us while somebody else has a link */

        ngx_kexec_machine_ask(m);
        return;

    case NGX_KEXEC_EX_RESTORING:

        /* the answer to a silent request may be lost with the link */

        ngx_kexec_machine_fence(m);
        return;

    case NGX_KEXEC_EX_BARRIER:
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_BARRIER, 0);
        return;

    default:
        return;
    }
}


void
ngx_kexec_machine_closed(ngx_kexec_machine_t *m, ngx_uint_t status)
{
    m->reach = NGX_KEXEC_REACH_DOWN;
    m->counted = 0;
    m->seen = 0;

    if (status == NGX_HTTP_NOT_FOUND) {
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_GONE, 0);
        return;
    }

    if (ngx_kexec_machine_before(m)
        && (status == NGX_HTTP_FORBIDDEN || status == NGX_HTTP_UNAUTHORIZED))
    {
        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_TOKEN,
                               status << 1 | ngx_kexec_machine_orphan(m));
        return;
    }

    if (status == 1009 && m->state == NGX_KEXEC_EX_SETUP) {
        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_ENV_TOO_LARGE, 0);
        return;
    }

    if (status == 1009 && m->state == NGX_KEXEC_EX_SENT) {

        /* Tornado's limit, 10 MiB unless configured: it was not passed on */

        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_CODE_TOO_LARGE, 0);
        return;
    }

    if (m->state == NGX_KEXEC_EX_SENT || m->state == NGX_KEXEC_EX_BUSY
        || m->state == NGX_KEXEC_EX_ENDING)
    {
        m->cut = 1;
    }

    if (m->state == NGX_KEXEC_EX_PROBING) {
        ngx_kexec_machine_to(m, NGX_KEXEC_EX_LINKING);
    }

    ngx_kexec_machine_link_limit(m);
    ngx_kexec_machine_connect_later(m);
}


/* that of all tries together, where somebody waits for what comes through it */

static void
ngx_kexec_machine_link_limit(ngx_kexec_machine_t *m)
{
    if ((m->viewer || m->conf.create)
        && ngx_kexec_machine_may_wait(m, NGX_KEXEC_WAIT_LINK)
        && !ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_LINK))
    {
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_LINK,
                               m->conf.reconnect_timeout);
    }
}


/* kexec_reconnect_timeout is over */

void
ngx_kexec_machine_link_timeout(ngx_kexec_machine_t *m)
{
    if (ngx_kexec_machine_before(m)) {

        if (m->reach == NGX_KEXEC_REACH_OPENING && m->link_up) {

            /* Jupyter is there, its kernel is not: that is not its limit */

            ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_LINK,
                                   m->conf.reconnect_timeout);
            ngx_kexec_machine_go(m, NGX_KEXEC_GO_CONNECT_ANEW, 0);
            return;
        }

        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_UNREACHABLE,
                               ngx_kexec_machine_orphan(m));
        return;
    }

    ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_LINK_GONE, 0);
    ngx_kexec_machine_tell_end(m);

    ngx_kexec_machine_go(m, NGX_KEXEC_GO_CANCEL, NGX_KEXEC_CANCEL_CLIENT);
}


/*
 * Is the kernel there?  A fence's reply shows that it answers, a message on
 * iopub with the fence as its parent that its output reaches us.
 */

void
ngx_kexec_machine_probe(ngx_kexec_machine_t *m)
{
    if (m->facts.ready && !m->fresh && !m->recover) {
        ngx_kexec_machine_setup(m);
        return;
    }

    ngx_kexec_machine_unmark(m);
    ngx_kexec_machine_unfetch(m);

    ngx_kexec_machine_to(m, NGX_KEXEC_EX_PROBING);
    m->probed = m->now;

    ngx_kexec_machine_fence(m);

    if (m->recover) {

        /*
         * The code of a dead worker's execution may still run here.  If the
         * fence does not come back soon, it does, or a new process starts,
         * which an interrupt would kill.  Jupyter knows, unless the kernel
         * was quicker than its subscription.
         */

        if (m->orphan == 0) {
            m->orphan = m->now;
        }

        ngx_kexec_machine_wait(m, m->interrupts ? NGX_KEXEC_WAIT_INTERRUPT
                                                : NGX_KEXEC_WAIT_ORPHAN,
                               NGX_KEXEC_ORPHAN_TIME);
    }
}


/* it may be lost, or the kernel busy: the same one once more */

void
ngx_kexec_machine_fence_again(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_FENCE, NGX_KEXEC_FENCE_TIME);

    /*
     * Behind code that runs for long, more than two would only pile up in
     * front of the kernel.
     */

    if (m->reach == NGX_KEXEC_REACH_OPEN
        && (!m->fence.late || ngx_kexec_machine_before(m)))
    {
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_SEND_AGAIN, 0);
    }

    m->fence.late = 1;
    m->fence.half = m->fence.reply || m->fence.idle;

    if (m->state == NGX_KEXEC_EX_SENT || m->state == NGX_KEXEC_EX_BUSY) {
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_RUN_FENCE, 0);
    }
}


void
ngx_kexec_machine_fence_back(ngx_kexec_machine_t *m)
{
    ngx_kexec_ask_t  *fence;

    fence = &m->fence;

    switch (m->state) {

    case NGX_KEXEC_EX_PROBING:

        if (!fence->reply || !fence->iopub) {
            return;
        }

        break;

    case NGX_KEXEC_EX_SENT:
    case NGX_KEXEC_EX_BUSY:

        ngx_kexec_machine_go(m, NGX_KEXEC_GO_RUN_FENCE, 0);
        return;

    case NGX_KEXEC_EX_BARRIER:
    case NGX_KEXEC_EX_SETUP:
    case NGX_KEXEC_EX_RESTORING:

        if (!fence->reply && !fence->idle) {
            return;
        }

        break;

    default:
        return;
    }

    ngx_kexec_machine_fence_not(m);

    switch (m->state) {

    case NGX_KEXEC_EX_PROBING:
        ngx_kexec_machine_probed(m);
        return;

    case NGX_KEXEC_EX_BARRIER:

        if (!m->covers) {

            /* an interrupt was sent behind it: another one behind that */

            ngx_kexec_machine_go(m, NGX_KEXEC_GO_BARRIER, 0);
            return;
        }

        ngx_kexec_machine_interrupts_none(m);
        ngx_kexec_machine_restore(m);
        return;

    case NGX_KEXEC_EX_SETUP:
        m->held = NGX_KEXEC_HELD_NOT;

        if (m->silent.sent) {

            /* the silent request was lost: its repetition does no harm */

            ngx_kexec_machine_silent_not(m);
            ngx_kexec_machine_setup(m);
        }

        return;

    default: /* NGX_KEXEC_EX_RESTORING */

        if (m->silent.sent) {
            ngx_kexec_machine_silent_not(m);
            ngx_kexec_machine_restore(m);
        }

        return;
    }
}


static void
ngx_kexec_machine_probed(ngx_kexec_machine_t *m)
{
    if (m->interrupts) {

        /* the orphan's end was hastened */

        ngx_kexec_machine_probe_barrier(m);
        return;
    }

    ngx_kexec_machine_ask_no_more(m);

    ngx_kexec_machine_interrupts_none(m);

    m->held = NGX_KEXEC_HELD_NOT;
    m->recover = 0;
    m->fresh = 0;
    m->facts.ready = 1;
    m->facts.dirty = 0;

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);

    /* code sent before the kernel died was never seen by the new one */

    m->code.sent = 0;

    ngx_kexec_machine_setup(m);
}


/* one more fence, when the last interrupt is answered, is the barrier */

void
ngx_kexec_machine_probe_barrier(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_INTERRUPT);

    if (!ngx_kexec_machine_interrupts_over(m)) {
        return;
    }

    /* those after it are counted anew; m->interrupted: it is owed */

    m->interrupts = 0;

    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_OVER);
    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_STUCK);

    ngx_kexec_machine_fence(m);
}


/* the next silent request that is needed, or the code */

void
ngx_kexec_machine_setup(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_to(m, NGX_KEXEC_EX_SETUP);

    if (m->marking || m->fetching) {
        return;
    }

    if (m->cancel) {
        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_NOT_STARTED, 0);
        ngx_kexec_machine_tell_end(m);
        ngx_kexec_machine_restore(m);
        return;
    }

    if (m->step == NGX_KEXEC_STEP_ENVS && !m->fetched
        && ngx_kexec_machine_envs(m))
    {
        m->fetching = 1;
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FETCH, 0);
        return;
    }

    if (m->step != NGX_KEXEC_STEP_DONE) {
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_STEP, m->step);
        return;
    }

    ngx_kexec_machine_prepared(m);
}


/* the answer of kexec_envs_url */

void
ngx_kexec_machine_fetched(ngx_kexec_machine_t *m, ngx_kexec_say_e why)
{
    m->fetching = 0;
    m->fetched |= (why == NGX_KEXEC_SAY_NONE);

    if (m->state != NGX_KEXEC_EX_SETUP) {

        /* the link was lost meanwhile */

        return;
    }

    if (why) {
        ngx_kexec_machine_tell(m, why, 0);
        ngx_kexec_machine_tell_end(m);
        ngx_kexec_machine_restore(m);
        return;
    }

    ngx_kexec_machine_setup(m);
}


/* what a step comes to */

void
ngx_kexec_machine_step(ngx_kexec_machine_t *m, ngx_int_t rc)
{
    if (m->state == NGX_KEXEC_EX_RESTORING) {

        if (rc != NGX_OK) {
            ngx_kexec_machine_done(m);
            return;
        }

    } else if (rc == NGX_ERROR) {
        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_NO_MEMORY, 0);
        return;

    } else if (rc == NGX_DECLINED) {
        m->step++;
        ngx_kexec_machine_setup(m);
        return;

    } else if (m->step == NGX_KEXEC_STEP_ENV) {

        /* from here on it is owed to put them back, whoever does it */

        m->env_set = 1;
        m->facts.owes_restore = 1;
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);
    }

    ngx_memzero(&m->silent, sizeof(ngx_kexec_ask_t));
    m->silent.sent = 1;

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_SEND_STEP, 0);
    ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_SETUP, NGX_KEXEC_SETUP_TIME);
}


/* it is answered, or lost */

static void
ngx_kexec_machine_silent_not(ngx_kexec_machine_t *m)
{
    m->silent.sent = 0;
    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_SETUP);
}


static void
ngx_kexec_machine_prepared(ngx_kexec_machine_t *m)
{
    ngx_uint_t  prepared;

    prepared = ngx_kexec_machine_envs(m) ? NGX_KEXEC_PREPARED_ENVS
                                         : NGX_KEXEC_PREPARED;

    if (m->facts.prepared < prepared) {
        m->facts.prepared = prepared;
        m->marking = 1;

        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_MARK, 0);
        return;
    }

    if (m->conf.create) {

        if (m->abandoned && !m->conf.is_default) {
            ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_ABANDONED, 0);
            return;
        }

        m->made = 1;

        ngx_kexec_machine_done(m);
        return;
    }

    ngx_kexec_machine_go(m, NGX_KEXEC_GO_SEND_CODE, 0);
}


static ngx_uint_t
ngx_kexec_machine_envs(ngx_kexec_machine_t *m)
{
    return m->conf.envs
           && m->facts.prepared < NGX_KEXEC_PREPARED_ENVS;
}


void
ngx_kexec_machine_step_answer(ngx_kexec_machine_t *m)
{
    ngx_kexec_answer_e  status;

    status = m->silent.status;

    if (status == NGX_KEXEC_ANSWER_INTERRUPTED) {

        /* somebody's interrupt hit it, and to repeat it does no harm */

        status = NGX_KEXEC_ANSWER_ABORTED;
    }

    /* what held the kernel is over */

    m->held = NGX_KEXEC_HELD_NOT;

    ngx_kexec_machine_silent_not(m);
    ngx_kexec_machine_fence_not(m);

    if (m->state == NGX_KEXEC_EX_RESTORING) {

        if (status == NGX_KEXEC_ANSWER_ABORTED
            && m->aborted++ < NGX_KEXEC_ABORTED)
        {
            ngx_kexec_machine_restore(m);
            return;
        }

        if (status != NGX_KEXEC_ANSWER_OK) {

            /* it is still owed: the next one tries again */

            ngx_kexec_machine_log(m, NGX_KEXEC_LOG_RESTORE, 0);
            ngx_kexec_machine_done(m);
            return;
        }

        m->env_set = 0;
        m->facts.owes_restore = 0;

        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);
        ngx_kexec_machine_done(m);
        return;
    }

    if (status == NGX_KEXEC_ANSWER_ABORTED) {

        if (m->aborted++ < NGX_KEXEC_ABORTED) {
            ngx_kexec_machine_setup(m);
            return;
        }

        ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_REFUSED_SETUP,
                               NGX_KEXEC_ABORTED);
        return;
    }

    if (status != NGX_KEXEC_ANSWER_OK) {

        if (m->step == NGX_KEXEC_STEP_CWD && m->conf.create) {
            ngx_kexec_machine_fail(m, NGX_KEXEC_SAY_BAD_CWD, 0);
            return;
        }

        if (m->step == NGX_KEXEC_STEP_ENVS || m->step == NGX_KEXEC_STEP_ENV) {
            ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_BAD_ENV, 0);
            ngx_kexec_machine_tell_end(m);
            ngx_kexec_machine_restore(m);
            return;
        }

        ngx_kexec_machine_log(m, NGX_KEXEC_LOG_STEP, m->step);
    }

    if (m->step == NGX_KEXEC_STEP_OWED && status == NGX_KEXEC_ANSWER_OK) {
        m->facts.owes_restore = 0;
        m->env_set = 0;
        ngx_kexec_machine_do(m, NGX_KEXEC_DO_FACTS, 0);
    }

    m->step++;

    ngx_kexec_machine_setup(m);
}


/* the last step before the slot goes on */

void
ngx_kexec_machine_restore(ngx_kexec_machine_t *m)
{
    if (!m->env_set) {
        ngx_kexec_machine_done(m);
        return;
    }

    ngx_kexec_machine_to(m, NGX_KEXEC_EX_RESTORING);
    m->step = NGX_KEXEC_STEP_OWED;

    if (!ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_RESTORE)) {
        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_RESTORE,
                               m->conf.interrupt_timeout);
    }

    ngx_kexec_machine_do(m, NGX_KEXEC_DO_STEP, NGX_KEXEC_STEP_OWED);
}
