
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_machine_operation.h>
#include <ngx_kexec_phase.h>


/*
 * A call about a kernel that has just died makes Jupyter raise, for a second or
 * so: it is made again after this, so many times.  One without an answer is
 * not: Jupyter may be at it yet.
 */
#define NGX_KEXEC_RAISED_TIME   500
#define NGX_KEXEC_RAISED_TIMES  5


static void ngx_kexec_op_unwanted(ngx_kexec_op_t *m);
static void ngx_kexec_op_claim(ngx_kexec_op_t *m, ngx_kexec_op_event_t *ev);
static void ngx_kexec_op_call(ngx_kexec_op_t *m);
static void ngx_kexec_op_answer(ngx_kexec_op_t *m, ngx_uint_t status);
static void ngx_kexec_op_failed(ngx_kexec_op_t *m);
static void ngx_kexec_op_result(ngx_kexec_op_t *m, ngx_uint_t status,
    ngx_uint_t gone);
static void ngx_kexec_op_deleted(ngx_kexec_op_t *m);
static void ngx_kexec_op_restarted(ngx_kexec_op_t *m, ngx_uint_t gone);
static void ngx_kexec_op_end(ngx_kexec_op_t *m, ngx_kexec_op_end_e end);
static void ngx_kexec_op_tell(ngx_kexec_op_t *m, ngx_kexec_op_end_e end);
static void ngx_kexec_op_done(ngx_kexec_op_t *m);

static void ngx_kexec_op_do(ngx_kexec_op_t *m, ngx_kexec_op_do_e what,
    ngx_uint_t n);
static void ngx_kexec_op_to(ngx_kexec_op_t *m, ngx_kexec_op_state_e state);
static void ngx_kexec_op_wait(ngx_kexec_op_t *m, ngx_kexec_op_wait_e wait,
    ngx_msec_t ms);
static ngx_uint_t ngx_kexec_op_waits(ngx_kexec_op_t *m,
    ngx_kexec_op_wait_e wait);


ngx_kexec_op_name_t  ngx_kexec_op_states[] = {
    { "queued", "waiting for the slot" },
    { "calling", "restarting or deleting a kernel" },
    { "checking", "asking whether the kernel is there" },
    { "pausing", "waiting until Jupyter is called again" },
    { "done", NULL }
};


void
ngx_kexec_op(ngx_kexec_op_t *m, ngx_kexec_op_event_t *ev)
{
    m->nactions = 0;

    if (ev->what == NGX_KEXEC_OP_ON_TIMER) {
        m->waits &= ~(1 << ev->n);
    }

    if (m->state == NGX_KEXEC_OP_DONE) {
        return;
    }

    switch (ev->what) {

    case NGX_KEXEC_OP_ON_CLIENT_LEFT:
        m->client = 0;
        ngx_kexec_op_unwanted(m);
        return;

    case NGX_KEXEC_OP_ON_WORKER_LEAVES:

        if (m->client && !ngx_kexec_op_waits(m, NGX_KEXEC_OP_WAIT_SHUTDOWN)) {
            ngx_kexec_op_wait(m, NGX_KEXEC_OP_WAIT_SHUTDOWN, ev->n);
        }

        return;

    case NGX_KEXEC_OP_ON_TIMER:

        if (ev->n == NGX_KEXEC_OP_WAIT_SHUTDOWN) {
            ngx_kexec_op_tell(m, NGX_KEXEC_OP_END_SHUTDOWN);
            ngx_kexec_op_unwanted(m);
            return;
        }

        break;

    default:
        break;
    }

    if (m->state == NGX_KEXEC_OP_QUEUED || m->state == NGX_KEXEC_OP_PAUSING) {
        ngx_kexec_op_claim(m, ev);
        return;
    }

    /* whatever happens to the claim, Jupyter is at it */

    if (ev->what == NGX_KEXEC_OP_ON_ANSWER) {
        ngx_kexec_op_answer(m, ev->n);

    } else if (ev->what == NGX_KEXEC_OP_ON_FAILED) {
        ngx_kexec_op_failed(m);
    }
}


/* nobody waits for it any more: it goes on if somebody felt it */

static void
ngx_kexec_op_unwanted(ngx_kexec_op_t *m)
{
    m->waits &= ~(1 << NGX_KEXEC_OP_WAIT_SHUTDOWN);

    if (m->state == NGX_KEXEC_OP_QUEUED) {
        ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_ABANDON, 0);
    }
}


static void
ngx_kexec_op_claim(ngx_kexec_op_t *m, ngx_kexec_op_event_t *ev)
{
    switch (ev->what) {

    case NGX_KEXEC_OP_ON_ENTERED:

        /* the way on begins in the event loop */

        ngx_kexec_op_wait(m, NGX_KEXEC_OP_WAIT_LOOK,
                          ev->n ? 0 : NGX_KEXEC_RECHECK_TIME);
        return;

    case NGX_KEXEC_OP_ON_NOTICE:
    case NGX_KEXEC_OP_ON_TIMER:
        ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_LOOK, 0);
        return;

    case NGX_KEXEC_OP_ON_QUEUED:
        ngx_kexec_op_to(m, NGX_KEXEC_OP_QUEUED);
        ngx_kexec_op_wait(m, NGX_KEXEC_OP_WAIT_LOOK, NGX_KEXEC_RECHECK_TIME);
        return;

    case NGX_KEXEC_OP_ON_EVICTED:

        if (m->restart) {
            ngx_kexec_op_end(m, NGX_KEXEC_OP_END_DELETED);
            return;
        }

        /* fall through */

    case NGX_KEXEC_OP_ON_GRANTED:

        if (!ngx_kexec_op_waits(m, NGX_KEXEC_OP_WAIT_AGAIN)) {
            ngx_kexec_op_call(m);
        }

        /* else it was a notice of something else: the pause is not over */

        return;

    case NGX_KEXEC_OP_ON_ENDED:
        ngx_kexec_op_end(m, ev->n);
        return;

    case NGX_KEXEC_OP_ON_ABANDONED:
        ngx_kexec_op_done(m);
        return;

    default:
        return;
    }
}


static void
ngx_kexec_op_call(ngx_kexec_op_t *m)
{
    if (!m->restart) {

        if (!m->facts.session) {

            /* it was not made yet: there is nothing in Jupyter */

            ngx_kexec_op_deleted(m);
            return;
        }

        ngx_kexec_op_to(m, NGX_KEXEC_OP_CALLING);
        ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_CALL, NGX_KEXEC_CALL_DROP);
        return;
    }

    if (!m->facts.kernel) {

        /* it is gone: the next execution starts a new one */

        ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_ANSWER, NGX_KEXEC_OP_END_OK);
        ngx_kexec_op_end(m, NGX_KEXEC_OP_END_OK);
        return;
    }

    ngx_kexec_op_to(m, NGX_KEXEC_OP_CALLING);
    ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_PHASE, NGX_KEXEC_PHASE_RESTARTING);
    ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_CALL, NGX_KEXEC_CALL_RESTART);
}


static void
ngx_kexec_op_answer(ngx_kexec_op_t *m, ngx_uint_t status)
{
    if (m->state == NGX_KEXEC_OP_CHECKING) {
        ngx_kexec_op_result(m, m->status, status == NGX_HTTP_NOT_FOUND);
        return;
    }

    if (m->restart && status >= NGX_HTTP_INTERNAL_SERVER_ERROR) {

        /* a kernel that is not there is a 500 like any other failure */

        m->status = status;

        ngx_kexec_op_to(m, NGX_KEXEC_OP_CHECKING);
        ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_CALL, NGX_KEXEC_CALL_CHECK);
        return;
    }

    ngx_kexec_op_result(m, status,
                        status == NGX_HTTP_NOT_FOUND || status == 410);
}


static void
ngx_kexec_op_failed(ngx_kexec_op_t *m)
{
    if (m->state == NGX_KEXEC_OP_CHECKING) {
        ngx_kexec_op_result(m, m->status, 0);
        return;
    }

    ngx_kexec_op_end(m, NGX_KEXEC_OP_END_NO_MEMORY);
}


static void
ngx_kexec_op_result(ngx_kexec_op_t *m, ngx_uint_t status, ngx_uint_t gone)
{
    ngx_kexec_op_end_e  end;

    if (gone || (status >= NGX_HTTP_OK && status < NGX_HTTP_SPECIAL_RESPONSE))
    {
        if (m->restart) {
            ngx_kexec_op_restarted(m, gone);

        } else {
            ngx_kexec_op_deleted(m);
        }

        return;
    }

    if (status >= NGX_HTTP_INTERNAL_SERVER_ERROR
        && m->raised++ < NGX_KEXEC_RAISED_TIMES)
    {
        ngx_kexec_op_to(m, NGX_KEXEC_OP_PAUSING);
        ngx_kexec_op_wait(m, NGX_KEXEC_OP_WAIT_AGAIN, NGX_KEXEC_RAISED_TIME);
        return;
    }

    ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_LOG, status);

    end = status ? NGX_KEXEC_OP_END_REFUSED : NGX_KEXEC_OP_END_UNREACHABLE;

    /* a context that was not deleted is one as before: the zone sees to that */

    if (m->restart) {
        ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_ANSWER, end);
    }

    ngx_kexec_op_end(m, end);
}


static void
ngx_kexec_op_deleted(ngx_kexec_op_t *m)
{
    ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_REMOVE, 0);
    ngx_kexec_op_end(m, NGX_KEXEC_OP_END_OK);
}


static void
ngx_kexec_op_restarted(ngx_kexec_op_t *m, ngx_uint_t gone)
{
    ngx_kexec_facts_new_process(&m->facts);

    if (gone) {

        /* the next execution starts a new one */

        m->facts.kernel = 0;
    }

    ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_FACTS, 0);
    ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_ANSWER, NGX_KEXEC_OP_END_OK);
    ngx_kexec_op_end(m, NGX_KEXEC_OP_END_OK);
}


/* the slot goes on first, so that the client finds what it is told */

static void
ngx_kexec_op_end(ngx_kexec_op_t *m, ngx_kexec_op_end_e end)
{
    if (m->restart && m->state != NGX_KEXEC_OP_QUEUED
        && end != NGX_KEXEC_OP_END_OK)
    {
        /* it may have been carried out all the same: the next one asks */

        m->facts.ready = 0;
        ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_FACTS, 0);
    }

    ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_LEAVE, 0);

    ngx_kexec_op_tell(m, end);
    ngx_kexec_op_done(m);
}


static void
ngx_kexec_op_tell(ngx_kexec_op_t *m, ngx_kexec_op_end_e end)
{
    if (m->client) {
        m->client = 0;
        ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_TELL, end);
    }
}


/* the one end */

static void
ngx_kexec_op_done(ngx_kexec_op_t *m)
{
    ngx_kexec_op_to(m, NGX_KEXEC_OP_DONE);

    m->waits = 0;

    ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_DONE, 0);
}


static void
ngx_kexec_op_do(ngx_kexec_op_t *m, ngx_kexec_op_do_e what, ngx_uint_t n)
{
    ngx_kexec_op_action_t  *action;

    if (m->nactions == NGX_KEXEC_OP_ACTIONS) {
        ngx_abort();
    }

    action = &m->actions[m->nactions++];

    action->what = what;
    action->n = n;
}


/* each state but the last has one timer of its own, or a call */

static void
ngx_kexec_op_to(ngx_kexec_op_t *m, ngx_kexec_op_state_e state)
{
    m->state = state;
    m->waits &= 1 << NGX_KEXEC_OP_WAIT_SHUTDOWN;
}


static void
ngx_kexec_op_wait(ngx_kexec_op_t *m, ngx_kexec_op_wait_e wait, ngx_msec_t ms)
{
    m->waits |= 1 << wait;
    m->wait[wait] = m->now + ms;
}


static ngx_uint_t
ngx_kexec_op_waits(ngx_kexec_op_t *m, ngx_kexec_op_wait_e wait)
{
    return (m->waits & (1 << wait)) != 0;
}
