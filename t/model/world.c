
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <model.h>


/*
 * Executions of one context, one after the other: how they begin, what their
 * clients and workers do, and when their timers fire.
 */


typedef ngx_uint_t (*model_move_pt)(model_world_t *w);


static void model_start(model_world_t *w, ngx_kexec_facts_t *facts);
static ngx_uint_t model_timer(model_world_t *w);
static ngx_uint_t model_quiet(model_world_t *w);
static ngx_uint_t model_client(model_world_t *w);
static ngx_uint_t model_envs(model_world_t *w);
static ngx_uint_t model_worker(model_world_t *w);
static ngx_uint_t model_next(model_world_t *w);
static void model_next_idle(model_world_t *w, ngx_kexec_facts_t *facts);


static model_move_pt  model_moves[] = {
    model_kernel_takes,
    model_code_says,
    model_code_ends,
    model_code_lies,
    model_sigint,
    model_process_dies,
    model_jupyter_notices,
    model_jupyter_obeys,
    model_jupyter_obeys_late,
    model_jupyter_answers,
    model_jupyter_does_not,
    model_others_run,
    model_others_restart,
    model_others_delete,
    model_link_opened,
    model_link_closed,
    model_shell_comes,
    model_iopub_comes,
    model_message_lost,
    model_timer,
    model_client,
    model_envs,
    model_worker,
    model_next
};


void
model_begin(model_world_t *w)
{
    model_env_t        *e;
    ngx_kexec_facts_t   facts;

    ngx_memzero(w, sizeof(model_world_t));
    ngx_memzero(&facts, sizeof(ngx_kexec_facts_t));

    e = &w->e;

    e->process = 1;
    e->fresh = 1;

    e->env = model_pick(2);
    e->envs = e->env;
    e->never_restart = model_pick(2);
    e->in_order = model_pick(2);
    e->create = model_pick(2);

    model_say("requests with%s variables; a kernel that does not end is%s "
              "restarted, and%s takes one request after the other\n",
              e->env ? "" : "out", e->never_restart ? " not" : "",
              e->in_order ? "" : " does not say that it");

    if (e->create) {
        model_say("a context is made\n");
        e->kernel = MODEL_GONE;
        model_start(w, &facts);
        return;
    }

    /* the kernel was made by somebody else, and is prepared */

    facts.session = 1;
    facts.kernel = 1;
    facts.ready = 1;
    facts.prepared = e->envs ? NGX_KEXEC_PREPARED_ENVS : NGX_KEXEC_PREPARED;
    facts.process = 1;
    facts.in_order = e->in_order;

    model_start(w, &facts);
}


static void
model_start(model_world_t *w, ngx_kexec_facts_t *facts)
{
    ngx_uint_t            i;
    model_env_t          *e;
    ngx_kexec_machine_t  *m;

    m = &w->m;
    e = &w->e;

    ngx_memzero(m, sizeof(ngx_kexec_machine_t));

    m->now = MODEL_NOW;
    m->link_read = MODEL_NOW;

    m->conf.queue_timeout = 300000;
    m->conf.ready_timeout = 60000;
    m->conf.reconnect_timeout = 30000;
    m->conf.interrupt_timeout = 15000;
    m->conf.last_time = 1000;
    m->conf.envs = e->envs;
    m->conf.never_restart = e->never_restart;

    m->conf.timeout = 20000;
    m->conf.create = e->create;

    m->facts = *facts;
    m->viewer = !e->create;

    e->viewer = !e->create;
    e->asked = 0;
    e->told = 0;
    e->denied = 0;
    e->started = 0;
    e->replied = 0;
    e->unheard = 0;
    e->evicted = 0;
    e->leaving = 0;
    e->done = 0;

    /* all that is left of earlier ones is that */

    e->stale = e->sigint;
    e->late_stale = e->late;
    e->vars = e->vars ? 2 : 0;

    e->running.current = 0;
    e->running.mine = 0;
    e->running.denied = 0;

    for (i = 0; i < e->ninbox; i++) {
        e->inbox[i].mine = 0;
    }

    model_over(e);

    if (e->create) {
        model_on(w, NGX_KEXEC_ON_START, 0);
        return;
    }

    model_on(w, NGX_KEXEC_ON_ENTERED, model_pick(2));
}


ngx_uint_t
model_move(model_world_t *w)
{
    ngx_uint_t  n;

    n = model_pick(sizeof(model_moves) / sizeof(model_moves[0]));

    if (w->e.done && model_moves[n] != model_next) {
        return 0;
    }

    return model_moves[n](w);
}


/* timers */

static ngx_uint_t
model_timer(model_world_t *w)
{
    ngx_uint_t            wait;
    ngx_kexec_machine_t  *m;

    m = &w->m;

    wait = model_pick(NGX_KEXEC_WAIT_N);

    if (!(m->waits & (1 << wait))) {
        return 0;
    }

    if (model_limits[wait] > 500 && wait != NGX_KEXEC_WAIT_INTERRUPT
        && wait != NGX_KEXEC_WAIT_CONNECT && !model_quiet(w))
    {
        model_costs(MODEL_TIME);
    }

    model_say("timer %lu\n", (unsigned long) wait);

    m->now += model_limits[wait];

    model_on(w, NGX_KEXEC_ON_TIMER, wait);
    return 1;
}


/* nothing ordinary is to come before a timer */

static ngx_uint_t
model_quiet(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    return e->call == NGX_KEXEC_CALL_NONE && e->link != MODEL_OPENING
           && !e->sigint && !e->late && !e->fetch && !e->mark
           && (e->link == MODEL_CLOSED || e->deaf
               || (e->nshell == 0 && e->niopub == 0))
           && e->kernel != MODEL_DOWN
           && e->running.what == MODEL_NOTHING
           && (e->ninbox == 0 || e->kernel != MODEL_UP);
}


/* the client, and who else wants something of an execution */

static ngx_uint_t
model_client(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    if (e->create) {

        if (w->m.abandoned) {
            return 0;
        }

        model_say("nobody waits for the context any more\n");
        model_on(w, NGX_KEXEC_ON_ABANDONED, 0);
        return 1;
    }

    if (model_pick(2) == 0) {

        if (!e->viewer) {
            return 0;
        }

        model_say("the client leaves\n");
        e->viewer = 0;
        model_on(w, NGX_KEXEC_ON_CLIENT_LEFT, 0);
        return 1;
    }

    if (e->asked) {
        return 0;
    }

    model_say("an interrupt is asked for\n");
    e->asked = 1;
    model_on(w, NGX_KEXEC_ON_INTERRUPT, 0);
    return 1;
}


static ngx_uint_t
model_envs(model_world_t *w)
{
    ngx_uint_t                  fails;
    ngx_kexec_machine_event_t   ev;

    if (w->e.mark) {
        w->e.mark = 0;
        model_say("the session has its new name\n");
        model_on(w, NGX_KEXEC_ON_MARKED, 0);
        return 1;
    }

    if (!w->e.fetch) {
        return 0;
    }

    w->e.fetch = 0;

    fails = model_pick(2);

    if (fails) {
        model_costs(MODEL_CALLS);
    }

    model_say("variables are %sfetched\n", fails ? "not " : "");

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));
    ev.what = NGX_KEXEC_ON_FETCHED;
    ev.say = fails ? NGX_KEXEC_SAY_FETCH : NGX_KEXEC_SAY_NONE;

    model_event(w, &ev);
    return 1;
}


/* the worker ends, in order or not; somebody restarts the context */

static ngx_uint_t
model_worker(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    model_costs(MODEL_WORKER);

    switch (model_pick(4)) {

    case 0:

        if (e->leaving) {
            return 0;
        }

        model_say("the worker is to end\n");
        e->leaving = 1;
        model_on(w, NGX_KEXEC_ON_WORKER_LEAVES, 0);
        return 1;

    case 1:

        if (e->evicted || e->create) {
            return 0;
        }

        model_say("somebody restarts the context\n");
        e->evicted = 1;
        model_on(w, NGX_KEXEC_ON_EVICTED, 0);
        return 1;

    case 2:

        if (e->create || w->m.state == NGX_KEXEC_EX_DROPPING) {
            return 0;
        }

        model_say("its place is lost\n");
        e->evicted = 1;
        model_on(w, NGX_KEXEC_ON_LOST, 0);
        return 1;

    default:

        if (e->create) {
            return 0;
        }

        model_say("the worker is killed\n");

        e->done = 1;
        e->viewer = 0;
        e->link = MODEL_CLOSED;
        e->leaving = 1;

        model_hands_off(w);

        /* who gives its slot back does that */

        w->m.facts.dirty = 1;
        return 1;
    }
}


/* the next execution of the same context, in this worker or another one */

static ngx_uint_t
model_next(model_world_t *w)
{
    model_env_t        *e;
    ngx_kexec_facts_t   facts;

    e = &w->e;

    if (!e->done || e->evicted) {
        return 0;
    }

    /* more in a row, or more that is out of the ordinary, is seen later */

    model_costs(MODEL_NEXT);

    facts = w->m.facts;
    e->create = 0;

    if (e->leaving || model_pick(2)) {
        model_say("the next one, in another worker\n");
        e->link = MODEL_CLOSED;

        if (e->others) {
            model_forget_messages(e);
        }

    } else {

        if (e->link == MODEL_OPEN && !e->deaf && model_pick(2)) {
            model_say("what was on its way comes meanwhile\n");
            model_next_idle(w, &facts);
        }

        model_say("the next one\n");
    }

    if (e->link != MODEL_OPEN) {
        e->fresh = 1;
        e->seen = 0;
        e->foreign = 0;
    }

    model_start(w, &facts);
    return 1;
}


/* as ngx_kexec_kernel_message() without a user */

static void
model_next_idle(model_world_t *w, ngx_kexec_facts_t *facts)
{
    ngx_uint_t    i, lost, dead;
    model_env_t  *e;

    e = &w->e;

    lost = 0;
    dead = 0;

    for (i = 0; i < e->niopub; i++) {

        switch (e->iopub[i].what) {

        case MODEL_OTHER_BUSY:
            e->foreign = 1;
            break;

        case MODEL_OTHER_IDLE:
            e->foreign = 0;
            break;

        case MODEL_DEAD:
            dead = 1;

            /* fall through */

        case MODEL_DIED:
        case MODEL_STARTING:
            lost = 1;
            break;

        default:
            break;
        }
    }

    for (i = 0; i < e->nshell; i++) {
        lost |= (e->shell[i].what == MODEL_SHUTDOWN_REPLY);
    }

    if (lost) {
        e->fresh = 1;

        facts->process = 0;
        facts->ready = 0;
        facts->prepared = 0;
        facts->dirty = 0;

        if (dead) {
            facts->kernel = 0;
        }
    }

    model_forget_messages(e);
}
