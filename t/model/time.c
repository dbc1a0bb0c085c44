
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <model.h>


/* time: what matters of it, and what it brings where nobody does anything */


static ngx_msec_t model_ago(ngx_msec_t now, ngx_msec_t t, ngx_msec_t first,
    ngx_msec_t second, ngx_msec_t third);
static void model_rename(model_world_t *w);
static void model_purge(model_world_t *w);


/* how long each timer runs at most, in ms */

ngx_msec_t  model_limits[NGX_KEXEC_WAIT_N] = {
    300000,     /* QUEUE */
    500,        /* LOOK */
    60000,      /* READY */
    75000,      /* LEFTOVER */
    30000,      /* LINK */
    1000,       /* CONNECT */
    1000,       /* FENCE */
    2000,       /* START */
    2000,       /* IDLE */
    1000,       /* REPLY */
    1000,       /* VERDICT */
    10000,      /* SILENT */
    20000,      /* TIMEOUT */
    2000,       /* ORPHAN */
    4000,       /* INTERRUPT */
    1000,       /* OVER */
    15000,      /* STUCK */
    5000,       /* BARRIER */
    15000,      /* RESTORE */
    65000,      /* RESTART */
    2000,       /* SETUP */
    2000,       /* HELD */
    5000,       /* SHUTDOWN */
    1000        /* LAST */
};


/*
 * Nobody says anything any more, and the client has left.  Jupyter answers: if
 * it is not there, nothing can be done, nor is there anybody who waits.
 */

void
model_silent(model_world_t *w)
{
    ngx_uint_t                  i, n, first;
    ngx_msec_t                  limit;
    model_env_t                *e;
    ngx_kexec_machine_t        *m;
    ngx_kexec_machine_event_t   ev;

    e = &w->e;
    m = &w->m;

    for (i = 0; i < NGX_KEXEC_WAIT_N; i++) {
        m->wait[i] = m->now + model_limits[i];
    }

    limit = m->now + 1800000;

    if (e->viewer) {
        e->viewer = 0;
        model_on(w, NGX_KEXEC_ON_CLIENT_LEFT, 0);
    }

    for (n = 0; n < 5000 && !e->done && m->now < limit; n++) {

        if (m->foreign || m->held == NGX_KEXEC_HELD_FOREIGN
            || m->conf.never_restart)
        {
            /* the two exceptions: the slot may be kept */

            return;
        }

        if (e->call) {
            ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

            ev.what = NGX_KEXEC_ON_ANSWER;
            ev.n = 200;
            ev.connected = 1;
            ev.says = NGX_KEXEC_JUPYTER_BUSY;
            ev.links = 1;

            e->call = NGX_KEXEC_CALL_NONE;

            model_event(w, &ev);

        } else if (e->link == MODEL_OPENING) {
            e->link = MODEL_OPEN;
            model_on(w, NGX_KEXEC_ON_OPENED, 0);

        } else if (e->mark) {
            e->mark = 0;
            model_on(w, NGX_KEXEC_ON_MARKED, 0);

        } else if (e->fetch) {
            e->fetch = 0;
            model_on(w, NGX_KEXEC_ON_FETCHED, 0);

        } else {

            first = NGX_KEXEC_WAIT_N;

            for (i = 0; i < NGX_KEXEC_WAIT_N; i++) {

                if ((m->waits & (1 << i))
                    && (first == NGX_KEXEC_WAIT_N
                        || m->wait[i] < m->wait[first]))
                {
                    first = i;
                }
            }

            m->now = ngx_max(m->now, m->wait[first]);

            model_on(w, NGX_KEXEC_ON_TIMER, first);
        }
    }

    model_check(e->done, "timers alone do not end it");
}


/*
 * Of how long something is ago only matters whether it is longer than the
 * machine's limits for it, which are given, or, since time passes in large
 * steps, not much shorter.
 */

static ngx_msec_t
model_ago(ngx_msec_t now, ngx_msec_t t, ngx_msec_t first, ngx_msec_t second,
    ngx_msec_t third)
{
    ngx_msec_t  ago;

    ago = now - t;

    return MODEL_NOW - ((third && ago >= third / 2) ? third
                        : (second && ago >= second / 2) ? second
                        : (ago >= first / 2) ? first : 0);
}


/* processes are told apart, whatever their names */

static void
model_rename(model_world_t *w)
{
    ngx_uint_t    i, by;
    model_env_t  *e;

    e = &w->e;
    by = 4 - e->process;

#define model_name(p)  ((p) ? ((p) - 1 + by) % 3 + 1 : 0)

    w->m.process = model_name(w->m.process);
    w->m.facts.process = model_name(w->m.facts.process);

    for (i = 0; i < e->nshell; i++) {
        e->shell[i].process = model_name(e->shell[i].process);
    }

    e->process = 1;
}


/* what comes with an old id changes nothing any more */

static void
model_purge(model_world_t *w)
{
    ngx_uint_t    i, n;
    model_env_t  *e;

    e = &w->e;

    for (i = 0, n = 0; i < e->nshell; i++) {
        if (e->shell[i].current) {
            e->shell[n++] = e->shell[i];
        }
    }

    ngx_memzero(&e->shell[n], (MODEL_SHELL - n) * sizeof(model_message_t));
    e->nshell = n;

    for (i = 0, n = 0; i < e->niopub; i++) {
        if (e->iopub[i].current) {
            e->iopub[n++] = e->iopub[i];
        }
    }

    ngx_memzero(&e->iopub[n], (MODEL_IOPUB - n) * sizeof(model_message_t));
    e->niopub = n;

    for (i = 0, n = 0; i < e->ninbox; i++) {
        if (e->inbox[i].current || (e->inbox[i].what != MODEL_FENCE
                                    && e->inbox[i].what != MODEL_STEP))
        {
            e->inbox[n++] = e->inbox[i];
        }
    }

    ngx_memzero(&e->inbox[n], (MODEL_INBOX - n) * sizeof(model_request_t));
    e->ninbox = n;
}


/* none of what is on its way is for an execution that goes on */

void
model_over(model_env_t *e)
{
    ngx_uint_t  i;

    for (i = 0; i < e->nshell; i++) {
        e->shell[i].current &= (e->shell[i].what == MODEL_SHUTDOWN_REPLY);
    }

    for (i = 0; i < e->niopub; i++) {
        e->iopub[i].current &= (e->iopub[i].what >= MODEL_OTHER_BUSY);
    }

    for (i = 0; i < e->ninbox; i++) {
        e->inbox[i].current = 0;
    }
}


void
model_canonical(model_world_t *w)
{
    ngx_uint_t            i, runs;
    ngx_msec_t            now;
    ngx_kexec_facts_t     facts;
    ngx_kexec_machine_t  *m;

    m = &w->m;
    now = m->now;

    model_rename(w);

    if (w->e.done) {

        /* only what it leaves behind matters */

        model_over(&w->e);
        model_purge(w);

        facts = m->facts;
        facts.epoch = 0;

        ngx_memzero(m, sizeof(ngx_kexec_machine_t));

        m->facts = facts;
        m->state = NGX_KEXEC_EX_DONE;
        m->now = MODEL_NOW;

        w->e.asked = 0;
        w->e.told = 0;
        w->e.started = 0;
        w->e.replied = 0;
        w->e.unheard = 0;
        w->e.denied = 0;
        w->e.acted = 0;
        w->e.counted = 0;
        return;
    }

    m->now = MODEL_NOW;

    /* only where it is looked at */

    runs = (m->state == NGX_KEXEC_EX_SENT || m->state == NGX_KEXEC_EX_BUSY);

    m->link_read = runs ? model_ago(now, m->link_read, 2000, 60000, 600000)
                        : 0;
    m->heard = runs ? model_ago(now, m->heard, 10000, 0, 0) : 0;
    m->interrupted = m->interrupted
                     ? model_ago(now, m->interrupted, 60000, 0, 0) : 0;
    m->restarting = (m->state == NGX_KEXEC_EX_RESTARTING)
                    ? model_ago(now, m->restarting, 60000, 0, 0) : 0;
    m->probed = (m->state == NGX_KEXEC_EX_PROBING
                 || m->state == NGX_KEXEC_EX_SETUP)
                ? model_ago(now, m->probed, 2000, 16000, 0) : 0;
    m->asked = (m->call == NGX_KEXEC_CALL_ASK)
               ? model_ago(now, m->asked, 2000, 0, 0) : 0;
    m->overloaded = m->overloaded
                    ? model_ago(now, m->overloaded, 2000, 60000, 600000) : 0;

    m->died = (m->died && now - m->died < 500) ? MODEL_NOW : 0;
    m->orphan = m->recover ? model_ago(now, m->orphan, 2000, 0, 0) : 0;
    m->doubted = m->doubted ? model_ago(now, m->doubted, 2000, 0, 0) : 0;
    m->started = m->started ? MODEL_NOW : 0;
    m->outcome = NGX_KEXEC_OUTCOME_NONE;
    m->link_up = 0;

    if (!m->fence.sent) {
        ngx_memzero(&m->fence, sizeof(ngx_kexec_ask_t));
    }

    if (!w->e.viewer) {
        w->e.told = 0;
        w->e.replied = 0;
    }

    model_purge(w);

    for (i = 0; i < NGX_KEXEC_WAIT_N; i++) {
        m->wait[i] = 0;
    }

    m->facts.epoch = 0;
    m->interrupts = ngx_min(m->interrupts, 2);
    m->tries = ngx_min(m->tries, 2);
    m->deaf = ngx_min(m->deaf, 1);
    m->sessions = ngx_min(m->sessions, 3);

    if (m->aborted > 1) {

        /* the limit is near at once */

        m->aborted = 50;
    }

    if (w->e.call == NGX_KEXEC_CALL_NONE) {
        w->e.acted = 0;
        w->e.counted = 0;
    }

    m->nactions = 0;
    m->ngo = 0;

    ngx_memzero(m->go, sizeof(m->go));
    ngx_memzero(m->actions, sizeof(m->actions));
    ngx_memzero(&m->said, sizeof(ngx_kexec_machine_event_t));
}
