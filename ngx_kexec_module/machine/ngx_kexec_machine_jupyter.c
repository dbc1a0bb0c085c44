
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_machine_int.h>


/*
 * What Jupyter says of the kernel; and deaf links: those through which nothing
 * comes.  Where a link of this session ended before Jupyter had subscribed it
 * to the kernel, what is for the next one goes to that one, and the ZeroMQ
 * sockets that are handed on from one to the other may be dead for good.
 *
 * A Jupyter that has too much to do is silent as well, and what it has for the
 * link would be lost by another one.  So only its answer to a question about
 * the kernel makes a silent link a deaf one.
 */


/* a link that brings nothing is opened anew after this long, then twice that */
#define NGX_KEXEC_DEAF_TIME         2000

/* so many times longer is waited for a kernel that is busy, or may start */
#define NGX_KEXEC_DEAF_BUSY         4
#define NGX_KEXEC_DEAF_START        2

/* an answer that took this long is as good as none */
#define NGX_KEXEC_DEAF_ANSWER_TIME  2000


static ngx_msec_t ngx_kexec_machine_deaf_quiet(ngx_kexec_machine_t *m,
    ngx_msec_t quiet);
static ngx_uint_t ngx_kexec_machine_deaf_probe(ngx_kexec_machine_t *m,
    ngx_uint_t busy);
static void ngx_kexec_machine_asked_code(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);


void
ngx_kexec_machine_asked(ngx_kexec_machine_t *m, ngx_kexec_machine_event_t *ev)
{
    m->unheard = (ev->n == 0);

    if (ev->n == 0 || m->now - m->asked > NGX_KEXEC_DEAF_ANSWER_TIME) {
        m->overloaded = m->now;
    }

    if (ev->n) {
        m->unanswered = 0;
    }

    if (ev->n == NGX_HTTP_NOT_FOUND) {
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_GONE, 0);
        return;
    }

    if (m->interrupts && ev->n && !m->fence.sent) {

        if (m->state == NGX_KEXEC_EX_BARRIER) {
            ngx_kexec_machine_go(m, NGX_KEXEC_GO_BARRIER, 0);
            return;
        }

        if (m->state == NGX_KEXEC_EX_PROBING) {
            ngx_kexec_machine_go(m, NGX_KEXEC_GO_PROBE_BARRIER, 0);
            return;
        }
    }

    m->said = *ev;

    if (!m->counted) {

        /* how many they are without ours says nothing */

        m->said.links = 0;
    }

    ngx_kexec_machine_go(m, NGX_KEXEC_GO_ASKED, 0);

    if (m->said.links) {
        m->links = m->said.links;
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_HELD_ASKED, 0);
    }
}


/* what m->said comes to, where it is not that something holds the kernel */

void
ngx_kexec_machine_said(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_event_t  *ev;

    ev = &m->said;

    if (ev->n
        && ngx_kexec_machine_deaf_probe(m, ev->says == NGX_KEXEC_JUPYTER_BUSY))
    {
        ngx_kexec_machine_connect_anew(m);
        return;
    }

    switch (m->state) {

    case NGX_KEXEC_EX_PROBING:

        if (m->interrupts == 0 && m->foreign == 0
            && (ev->says == NGX_KEXEC_JUPYTER_BUSY
                || m->now - m->orphan > NGX_KEXEC_ORPHAN_LATE_TIME))
        {
            ngx_kexec_machine_go(m, NGX_KEXEC_GO_INTERRUPT, 0);
        }

        return;

    case NGX_KEXEC_EX_SENT:
    case NGX_KEXEC_EX_BUSY:
    case NGX_KEXEC_EX_ENDING:
        ngx_kexec_machine_asked_code(m, ev);
        return;

    default:
        return;
    }
}


static void
ngx_kexec_machine_asked_code(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev)
{
    ngx_msec_t  limit;

    if (m->cut && ev->links > 1) {

        /* what came while the link was down went to somebody else alone */

        ngx_kexec_machine_do(m, NGX_KEXEC_DO_TELL_DROPPED, 0);
    }

    if (m->state == NGX_KEXEC_EX_ENDING) {
        ngx_kexec_machine_go(m, NGX_KEXEC_GO_RUN_END, 0);
        return;
    }

    if (ev->says == NGX_KEXEC_JUPYTER_IDLE && !m->suspect) {
        m->suspect = 1;

        if (!m->fence.sent) {
            ngx_kexec_machine_fence(m);
        }

        /* an idle kernel would have answered by then: see below */

        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_SILENT, NGX_KEXEC_QUIET_TIME);
        return;
    }

    limit = (ngx_msec_t) NGX_KEXEC_SILENT_TIME << ngx_min(m->deaf, 6);

    if (ev->says != NGX_KEXEC_JUPYTER_IDLE) {

        /* what runs there may be ours, or Jupyter be wrong */

        limit *= (m->state == NGX_KEXEC_EX_SENT) ? 6 : 60;
    }

    if (ev->n && m->fence.sent && m->fence.late
        && (m->suspect || m->cut || m->state == NGX_KEXEC_EX_SENT)
        && ngx_kexec_machine_deaf_quiet(m, ngx_kexec_machine_quiet(m)) > limit)
    {
        /*
         * The kernel is there: another link brings the fence back.  What is
         * printed just now is lost.
         */

        m->cut = 1;

        ngx_kexec_machine_do(m, NGX_KEXEC_DO_TELL_DROPPED, 0);

        ngx_kexec_machine_connect_anew(m);
    }
}


/* for how long nothing has come, while Jupyter did answer */

static ngx_msec_t
ngx_kexec_machine_deaf_quiet(ngx_kexec_machine_t *m, ngx_msec_t quiet)
{
    if (m->overloaded == 0) {
        return quiet;
    }

    return ngx_min(quiet, m->now - m->overloaded);
}


/* is the link deaf through which a kernel is prepared? */

static ngx_uint_t
ngx_kexec_machine_deaf_probe(ngx_kexec_machine_t *m, ngx_uint_t busy)
{
    ngx_msec_t  limit;

    if ((m->state != NGX_KEXEC_EX_PROBING && m->state != NGX_KEXEC_EX_SETUP)
        || !m->fence.sent || !m->fence.late
        || m->call == NGX_KEXEC_CALL_INTERRUPT)
    {
        return 0;
    }

    limit = (ngx_msec_t) NGX_KEXEC_DEAF_TIME << ngx_min(m->deaf, 6);

    if (busy || !m->facts.ready) {

        /* that alone may be why: it runs something, or starts */

        limit *= busy ? NGX_KEXEC_DEAF_BUSY : NGX_KEXEC_DEAF_START;
    }

    return ngx_kexec_machine_deaf_quiet(m, m->now - m->probed) >= limit;
}


/*
 * A link of another session, for a moment, makes Jupyter forget the sockets.
 * An interrupt that is on its way is waited for first.
 */

void
ngx_kexec_machine_connect_anew(ngx_kexec_machine_t *m)
{
    ngx_kexec_machine_ask_no_more(m);

    if (m->call) {
        return;
    }

    ngx_kexec_machine_log(m, NGX_KEXEC_LOG_DEAF, 0);

    ngx_kexec_machine_unmark(m);

    ngx_kexec_machine_discard(m);

    m->deaf++;
    m->other = 1;

    ngx_kexec_machine_go(m, NGX_KEXEC_GO_CONNECT, 0);
}
