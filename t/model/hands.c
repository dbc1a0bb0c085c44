
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <model.h>


/*
 * Does what the machine says, as ngx_kexec_execution.c and its neighbours do,
 * and checks each action: most of the invariants are here, the others where
 * the kernel takes what was sent (kernel.c).
 */


#define MODEL_EVENTS  8


static void model_act(model_world_t *w, ngx_kexec_action_t *action);
static ngx_uint_t model_fails(ngx_kexec_do_e what);
static void model_take(model_world_t *w);
static void model_link_opens(model_world_t *w);
static void model_step(model_world_t *w, ngx_kexec_step_e step);
static void model_send(model_world_t *w, model_what_e what);
static void model_outdated(model_world_t *w, model_what_e from,
    model_what_e to);
static void model_call(model_world_t *w, ngx_kexec_call_e call);
static void model_call_not(model_world_t *w);
static void model_tell(model_world_t *w, ngx_kexec_say_e say, ngx_uint_t n);
static ngx_uint_t model_denies(ngx_kexec_say_e say, ngx_uint_t n);
static void model_end(model_world_t *w);
static void model_done(model_world_t *w);


/* events that actions lead to at once, in the order of the module's queue */

static ngx_uint_t                 model_nevents;
static ngx_kexec_machine_event_t  model_events[MODEL_EVENTS];


static ngx_kexec_machine_event_t *
model_push(ngx_kexec_on_e what, ngx_int_t n)
{
    ngx_kexec_machine_event_t  *ev;

    if (model_nevents == MODEL_EVENTS) {
        ngx_abort();
    }

    ev = &model_events[model_nevents++];

    ngx_memzero(ev, sizeof(ngx_kexec_machine_event_t));

    ev->what = what;
    ev->n = n;

    return ev;
}


void
model_on(model_world_t *w, ngx_kexec_on_e what, ngx_int_t n)
{
    ngx_kexec_machine_event_t  ev;

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    ev.what = what;
    ev.n = n;

    model_event(w, &ev);
}


void
model_event(model_world_t *w, ngx_kexec_machine_event_t *first)
{
#if (NGX_KEXEC_TEST)
    const char                  *broken;
#endif
    ngx_uint_t                   i;
    ngx_kexec_machine_t         *m;
    ngx_kexec_machine_event_t    ev;
    ngx_kexec_execution_state_e  state;

    m = &w->m;

    model_nevents = 0;
    *model_push(first->what, 0) = *first;

    while (model_nevents) {

        ev = model_events[0];
        model_nevents--;

        for (i = 0; i < model_nevents; i++) {
            model_events[i] = model_events[i + 1];
        }

        if (w->e.done) {
            continue;
        }

        state = m->state;
        model_reached[state][ev.what]++;

        m->link_up = (w->e.link != MODEL_CLOSED);

        ngx_kexec_machine(m, &ev);

        model_say("    %s -> %s by %s:%ld\n",
                  ngx_kexec_machine_states[state].name,
                  ngx_kexec_machine_states[m->state].name,
                  ngx_kexec_machine_event_name(&ev),
                  (long) ev.n);

#if (NGX_KEXEC_TEST)
        broken = ngx_kexec_machine_check(m);
        model_check(broken == NULL, broken);
#endif

        for (i = 0; i < m->nactions; i++) {
            model_act(w, &m->actions[i]);
        }

        if (!w->e.done) {
            model_check(m->state != NGX_KEXEC_EX_DONE,
                        "an end that nobody is told of");
            model_check(m->viewer == w->e.viewer, "whether there is a client");

            if (w->e.taken) {
                w->e.foreign = (m->foreign != 0);
            }
        }
    }

    if (!w->e.done) {
        model_check(m->call == w->e.call, "which call is under way");
        model_check((m->reach != NGX_KEXEC_REACH_NOT) == w->e.taken,
                    "whether there is a kernel");
        model_check(m->waits || m->call, "nothing is waited for");
    }
}


static void
model_act(model_world_t *w, ngx_kexec_action_t *action)
{
    model_env_t  *e;

    e = &w->e;

    model_check(!e->done, "something is done after the end");

    switch (action->what) {

    case NGX_KEXEC_DO_LOOK:

        if (w->m.state == NGX_KEXEC_EX_QUEUED) {
            (void) model_push(model_pick(2) ? NGX_KEXEC_ON_QUEUED
                                            : NGX_KEXEC_ON_GRANTED, 0);
        }

        return;

    case NGX_KEXEC_DO_TAKE:
        model_check(!e->taken, "the kernel is taken twice");

        if (!model_fails(action->what)) {
            model_take(w);
        }

        return;

    case NGX_KEXEC_DO_OTHER:
        model_check(e->taken && e->link != MODEL_OPEN,
                    "another session's link, too late");
        e->other_id = 1;
        return;

    case NGX_KEXEC_DO_OPEN:
        model_check(e->taken, "a link to no kernel");

        if (!model_fails(action->what)) {
            model_link_opens(w);
        }

        return;

    case NGX_KEXEC_DO_DISCARD:
        model_check(e->taken, "no kernel is thrown away");
        e->taken = 0;
        e->link = MODEL_CLOSED;
        e->other_id = 0;
        e->fresh = 1;
        e->seen = 0;
        e->foreign = 0;
        return;

    case NGX_KEXEC_DO_SEND_CODE:
        model_say("    sends the code\n");
        model_outdated(w, MODEL_CODE, MODEL_CODE);
        model_send(w, MODEL_CODE);
        return;

    case NGX_KEXEC_DO_SEND_FENCE:
        model_say("    sends a fence\n");
        model_outdated(w, MODEL_FENCE, MODEL_FENCE);
        model_send(w, MODEL_FENCE);
        return;

    case NGX_KEXEC_DO_SEND_AGAIN:
        model_say("    sends the fence again\n");
        model_send(w, MODEL_FENCE);
        return;

    case NGX_KEXEC_DO_SEND_STEP:
        model_say("    sends a silent request\n");
        model_outdated(w, MODEL_STEP, MODEL_STEP_BACK);
        model_send(w, w->m.state == NGX_KEXEC_EX_RESTORING
                      || w->m.step == NGX_KEXEC_STEP_OWED ? MODEL_STEP_BACK
                      : w->m.step == NGX_KEXEC_STEP_ENV ? MODEL_STEP_SET
                      : MODEL_STEP);
        return;

    case NGX_KEXEC_DO_STEP:
        model_step(w, action->n);
        return;

    case NGX_KEXEC_DO_FETCH:
        model_check(!e->fetch, "variables are fetched twice");
        e->fetch = !model_fails(action->what);
        return;

    case NGX_KEXEC_DO_FETCH_NOT:
        e->fetch = 0;
        return;

    case NGX_KEXEC_DO_MARK:
        model_check(!e->mark, "a session is renamed twice");
        e->mark = !model_fails(action->what);
        return;

    case NGX_KEXEC_DO_MARK_NOT:
        e->mark = 0;
        return;

    case NGX_KEXEC_DO_CALL:
        model_call(w, action->n);
        return;

    case NGX_KEXEC_DO_CALL_NOT:
        model_call_not(w);
        return;

    case NGX_KEXEC_DO_TELL:
        model_tell(w, action->say, action->n);
        return;

    case NGX_KEXEC_DO_TELL_VERDICT:
        model_check(e->viewer, "somebody is told who is not there");
        return;

    case NGX_KEXEC_DO_TELL_END:
        model_end(w);
        return;

    case NGX_KEXEC_DO_DONE:
        model_done(w);
        return;

    default:
        return;
    }
}


/* there is no memory for it, or no socket */

static ngx_uint_t
model_fails(ngx_kexec_do_e what)
{
    if (model_pick(2) == 0) {
        return 0;
    }

    model_costs(MODEL_CALLS);
    model_say("    there is no memory\n");

    (void) model_push(NGX_KEXEC_ON_FAILED, what);

    return 1;
}


static void
model_take(model_world_t *w)
{
    model_env_t                *e;
    ngx_kexec_machine_event_t  *ev;

    e = &w->e;

    e->taken = 1;

    ev = model_push(NGX_KEXEC_ON_KERNEL, 0);

    ev->open = (e->link == MODEL_OPEN);
    ev->fresh = ev->open ? e->fresh : 1;
    ev->seen = ev->open ? e->seen : 0;
    ev->foreign = ev->open ? e->foreign : 0;
}


/* Jupyter closes an older link of the same session id when this one opens */

static void
model_link_opens(model_world_t *w)
{
    w->e.link = MODEL_OPENING;
    w->e.counted = 0;
}


/* as ngx_kexec_step_source() */

static void
model_step(model_world_t *w, ngx_kexec_step_e step)
{
    ngx_uint_t  needed;

    switch (step) {

    case NGX_KEXEC_STEP_OWED:
        needed = w->m.facts.owes_restore;
        break;

    case NGX_KEXEC_STEP_CWD:
        needed = !w->m.facts.prepared;
        break;

    case NGX_KEXEC_STEP_ENVS:
        needed = (w->e.envs
                  && w->m.facts.prepared < NGX_KEXEC_PREPARED_ENVS);
        break;

    case NGX_KEXEC_STEP_ENV:
        needed = w->e.env;
        break;

    default:
        needed = 0;
        break;
    }

    (void) model_push(NGX_KEXEC_ON_STEP, needed ? NGX_OK : NGX_DECLINED);
}


/* without a link, or with a deaf one, it comes to nobody */

static void
model_send(model_world_t *w, model_what_e what)
{
    model_env_t      *e;
    model_request_t  *request;

    e = &w->e;

    if (e->link != MODEL_OPEN || e->deaf || e->kernel == MODEL_GONE) {
        return;
    }

    if (e->ninbox == MODEL_INBOX) {
        model_beyond();
        return;
    }

    request = &e->inbox[e->ninbox++];

    ngx_memzero(request, sizeof(model_request_t));

    request->what = what;
    request->current = 1;
    request->mine = 1;
    request->denied = (what == MODEL_CODE && e->denied);

    /* kill() is through before Jupyter answers, and before what follows */

    request->after = 1;
}


/* a new id is in use: what comes with the old one is not heard any more */

static void
model_outdated(model_world_t *w, model_what_e from, model_what_e to)
{
    ngx_uint_t    i;
    model_env_t  *e;

    e = &w->e;

    for (i = 0; i < e->ninbox; i++) {
        if (e->inbox[i].what >= from && e->inbox[i].what <= to) {
            e->inbox[i].current = 0;
        }
    }

    if (e->running.what >= from && e->running.what <= to) {
        e->running.current = 0;
    }

    for (i = 0; i < e->nshell; i++) {

        switch (e->shell[i].what) {

        case MODEL_FENCE_REPLY:
            e->shell[i].current &= (from != MODEL_FENCE);
            break;

        case MODEL_STEP_REPLY_OK:
        case MODEL_STEP_REPLY_ERROR:
        case MODEL_STEP_REPLY_ABORTED:
            e->shell[i].current &= (from != MODEL_STEP);
            break;

        default:
            e->shell[i].current &= (from != MODEL_CODE);
            break;
        }
    }

    for (i = 0; i < e->niopub; i++) {

        switch (e->iopub[i].what) {

        case MODEL_FENCE_BUSY:
        case MODEL_FENCE_IDLE:
            e->iopub[i].current &= (from != MODEL_FENCE);
            break;

        case MODEL_STEP_BUSY:
            e->iopub[i].current &= (from != MODEL_STEP);
            break;

        case MODEL_CODE_BUSY:
        case MODEL_CODE_OUTPUT:
        case MODEL_CODE_IDLE:
            e->iopub[i].current &= (from != MODEL_CODE);
            break;

        default:
            break;
        }
    }
}


static void
model_call(model_world_t *w, ngx_kexec_call_e call)
{
    model_env_t          *e;
    ngx_kexec_machine_t  *m;

    e = &w->e;
    m = &w->m;

    model_check(e->call == NGX_KEXEC_CALL_NONE, "two calls at a time");

    if (call == NGX_KEXEC_CALL_INTERRUPT) {
        model_check(m->state != NGX_KEXEC_EX_SENT, "an interrupt in SENT");
        model_check(m->state != NGX_KEXEC_EX_BUSY || !m->code.idle,
                    "an interrupt after the code's end");
        model_check(m->state == NGX_KEXEC_EX_BUSY || m->foreign == 0,
                    "somebody else's cell is interrupted");
        model_check(m->state != NGX_KEXEC_EX_DONE
                    && m->state != NGX_KEXEC_EX_LEAVING
                    && m->state != NGX_KEXEC_EX_RESTORING,
                    "an interrupt when the slot goes on");
    }

    if (call != NGX_KEXEC_CALL_SESSION && call != NGX_KEXEC_CALL_DROP) {
        model_check(e->taken, "a call for no kernel");
    }

    if (model_fails(NGX_KEXEC_DO_CALL)) {
        return;
    }

    model_say("    calls Jupyter: %d\n", call);

    e->call = call;
    e->acted = 0;
    e->counted = (e->link == MODEL_OPEN);
}


/* Jupyter may have it already, and obey it */

static void
model_call_not(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    if (e->call == NGX_KEXEC_CALL_INTERRUPT && !e->acted) {
        e->late = 1;
    }

    e->call = NGX_KEXEC_CALL_NONE;
}


static void
model_tell(model_world_t *w, ngx_kexec_say_e say, ngx_uint_t n)
{
    ngx_uint_t    i;
    model_env_t  *e;

    e = &w->e;

    model_say("    tells %d:%lu\n", say, (unsigned long) n);

    model_check(e->viewer, "somebody is told who is not there");

    if (e->told) {

        /* the first error counts */

        return;
    }

    e->told = 1;

    if (!model_denies(say, n)) {
        return;
    }

    e->denied = 1;

    model_check(!e->started, "who is told that it did not run, and it did");

    for (i = 0; i < e->ninbox; i++) {
        if (e->inbox[i].what == MODEL_CODE && e->inbox[i].mine) {
            e->inbox[i].denied = 1;
        }
    }
}


/* says that the code did not run, and will not */

static ngx_uint_t
model_denies(ngx_kexec_say_e say, ngx_uint_t n)
{
    switch (say) {

    case NGX_KEXEC_SAY_GONE:
    case NGX_KEXEC_SAY_QUEUE_TIMEOUT:
    case NGX_KEXEC_SAY_NO_KERNEL:
    case NGX_KEXEC_SAY_FOREIGN:
    case NGX_KEXEC_SAY_ENV_TOO_LARGE:
    case NGX_KEXEC_SAY_CODE_TOO_LARGE:
    case NGX_KEXEC_SAY_REFUSED_SETUP:
    case NGX_KEXEC_SAY_REFUSED:
    case NGX_KEXEC_SAY_BAD_ENV:
    case NGX_KEXEC_SAY_FETCH:
    case NGX_KEXEC_SAY_NOT_STARTED:
    case NGX_KEXEC_SAY_UNNOTICED:
        return 1;

    case NGX_KEXEC_SAY_NOT_READY:
    case NGX_KEXEC_SAY_ORPHAN:
    case NGX_KEXEC_SAY_UNREACHABLE:
    case NGX_KEXEC_SAY_TOKEN:
    case NGX_KEXEC_SAY_SHUTDOWN_BEFORE:
    case NGX_KEXEC_SAY_UNLINKED:
    case NGX_KEXEC_SAY_HELD:
    case NGX_KEXEC_SAY_HELD_TOO_LONG:
        return (n & 1) == 0;

    case NGX_KEXEC_SAY_EVICTED:
    case NGX_KEXEC_SAY_DELETED:
        return n == 0;

    default:
        return 0;
    }
}


static void
model_end(model_world_t *w)
{
    model_env_t          *e;
    ngx_kexec_machine_t  *m;

    e = &w->e;
    m = &w->m;

    model_say("    ends the stream\n");

    model_check(e->viewer, "a stream ends twice");

    e->viewer = 0;

    if (e->told) {
        return;
    }

    model_check(m->code.reply && (m->code.status == NGX_KEXEC_ANSWER_OK
                                  || m->code.status
                                     == NGX_KEXEC_ANSWER_ERROR),
                "an end without a word");

    model_check(e->liar || e->replied, "an end that the kernel did not tell");
}


static void
model_done(model_world_t *w)
{
    model_env_t          *e;
    ngx_kexec_machine_t  *m;

    e = &w->e;
    m = &w->m;

    e->done = 1;

    if (e->create && !m->made) {

        /* there is no context, and no next one */

        e->evicted = 1;
    }

    model_check(!e->viewer, "a client is left behind");
    model_check(e->call != NGX_KEXEC_CALL_INTERRUPT || m->shutdown,
                "an interrupt is on its way when the slot goes on");

    model_check(e->vars != 1 || m->facts.owes_restore || !m->facts.kernel
                || m->facts.process == 0
                || e->kernel != MODEL_UP || m->facts.process != e->process,
                "variables stay behind, and nobody knows");

    /* what the hands keep of the kernel, and of its link */

    e->fresh = m->fresh;
    e->seen = m->seen;
    e->foreign = (m->foreign != 0);

    if (e->taken && (m->other || e->link != MODEL_OPEN)) {
        e->link = MODEL_CLOSED;
    }

    model_hands_off(w);
}


void
model_hands_off(model_world_t *w)
{
    model_call_not(w);

    w->e.fetch = 0;
    w->e.mark = 0;
    w->e.taken = 0;
    w->e.other_id = 0;
}
