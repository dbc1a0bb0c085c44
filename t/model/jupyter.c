
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <model.h>


/*
 * Jupyter, the link to it, and others who use the same kernel.
 *
 * Assumed: an interrupt whose call was not answered in time is over when
 * Jupyter answers something later, a call or the opening of a link.
 */


static void model_not_later(model_world_t *w);
static ngx_uint_t model_unheard(model_env_t *e, model_message_t *msg);
static model_message_t model_next_message(model_message_t *queue,
    unsigned char *n);


/* Jupyter */

ngx_uint_t
model_jupyter_notices(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    if (e->kernel != MODEL_DOWN || !model_room(w, 0, 2)) {
        return 0;
    }

    if (model_pick(2)) {
        model_say("Jupyter gives the kernel up\n");
        model_to_iopub(w, MODEL_DEAD, 1);
        model_gone(w);
        return 1;
    }

    model_say("Jupyter starts another process\n");
    model_to_iopub(w, MODEL_DIED, 1);
    model_new_process(w);
    model_to_iopub(w, MODEL_STARTING, 1);
    return 1;
}


ngx_uint_t
model_jupyter_obeys(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    if (e->acted || e->kernel == MODEL_GONE) {
        return 0;
    }

    switch (e->call) {

    case NGX_KEXEC_CALL_INTERRUPT:
        model_say("Jupyter sends SIGINT\n");
        model_send_sigint(w, 0);
        break;

    case NGX_KEXEC_CALL_RESTART:

        if (!model_room(w, 0, 1)) {
            return 0;
        }

        model_say("Jupyter restarts the kernel\n");

        if (e->ninbox && model_pick(2)) {
            model_forget_requests(e);
        }

        model_new_process(w);
        model_to_iopub(w, MODEL_STARTING, 1);
        break;

    default:
        return 0;
    }

    e->acted = 1;
    return 1;
}


ngx_uint_t
model_jupyter_obeys_late(model_world_t *w)
{
    if (!w->e.late) {
        return 0;
    }

    model_say("Jupyter obeys a call that it did not answer\n");

    model_send_sigint(w, w->e.late_stale);

    w->e.late = 0;
    w->e.late_stale = 0;
    return 1;
}


ngx_uint_t
model_jupyter_answers(model_world_t *w)
{
    model_env_t                *e;
    ngx_kexec_machine_event_t   ev;

    e = &w->e;

    if (e->call == NGX_KEXEC_CALL_NONE) {
        return 0;
    }

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    ev.what = NGX_KEXEC_ON_ANSWER;
    ev.n = 200;
    ev.connected = 1;

    if (e->call == NGX_KEXEC_CALL_SESSION) {
        model_new_process(w);

        e->ninbox = 0;
        e->nshell = 0;
        e->niopub = 0;

        ngx_memzero(e->inbox, sizeof(e->inbox));
        ngx_memzero(e->shell, sizeof(e->shell));
        ngx_memzero(e->iopub, sizeof(e->iopub));

        if (model_pick(2)) {
            model_costs(MODEL_CALLS);
            e->kernel = MODEL_GONE;
            ev.n = 500;
            ev.say = NGX_KEXEC_SAY_SESSION;
        }

    } else if (e->kernel == MODEL_GONE) {
        ev.n = (e->call == NGX_KEXEC_CALL_RESTART) ? 500 : 404;

    } else if (e->call == NGX_KEXEC_CALL_DROP) {
        model_gone(w);
        ev.n = 204;

    } else if (e->call == NGX_KEXEC_CALL_ASK
               || e->call == NGX_KEXEC_CALL_CHECK)
    {
        ev.says = e->running.what ? NGX_KEXEC_JUPYTER_BUSY
                                  : NGX_KEXEC_JUPYTER_IDLE;
        ev.links = e->others + (e->counted && e->link == MODEL_OPEN);

        if (model_pick(2)) {

            /* what it knows is old */

            model_costs(MODEL_CALLS);
            ev.says = e->running.what ? NGX_KEXEC_JUPYTER_IDLE
                                      : NGX_KEXEC_JUPYTER_BUSY;
        }

    } else if (e->kernel == MODEL_DOWN) {
        ev.n = 500;

    } else if (!e->acted) {
        return 0;
    }

    model_say("Jupyter answers the call %d: %d\n", e->call, (int) ev.n);

    e->call = NGX_KEXEC_CALL_NONE;

    model_not_later(w);

    model_event(w, &ev);
    return 1;
}


/* a call without an answer was obeyed by now, or never will be */

static void
model_not_later(model_world_t *w)
{
    if (w->e.late) {

        if (model_pick(2)) {
            model_send_sigint(w, w->e.late_stale);
        }

        w->e.late = 0;
        w->e.late_stale = 0;
    }
}


ngx_uint_t
model_jupyter_does_not(model_world_t *w)
{
    model_env_t                *e;
    ngx_kexec_machine_event_t   ev;

    e = &w->e;

    if (e->call == NGX_KEXEC_CALL_NONE) {
        return 0;
    }

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    ev.what = NGX_KEXEC_ON_ANSWER;

    if (e->call == NGX_KEXEC_CALL_SESSION) {
        ev.say = NGX_KEXEC_SAY_SESSION;
    }

    model_costs(MODEL_CALLS);

    if (!e->acted && model_pick(2)) {

        model_say("the call %d does not reach Jupyter\n", e->call);

    } else {
        model_say("Jupyter does not answer the call %d\n", e->call);
        ev.connected = 1;

        if (e->call == NGX_KEXEC_CALL_INTERRUPT && !e->acted) {
            e->late = 1;
            e->late_stale = 0;
        }
    }

    e->call = NGX_KEXEC_CALL_NONE;

    model_event(w, &ev);
    return 1;
}


/* others */

ngx_uint_t
model_others_run(model_world_t *w)
{
    model_env_t      *e;
    model_request_t  *request;

    e = &w->e;

    if (e->kernel == MODEL_GONE || e->ninbox == MODEL_INBOX) {
        return 0;
    }

    if (!e->others) {
        model_costs(MODEL_OTHERS);
        model_say("somebody else opens a link\n");
        e->others = 1;
        return 1;
    }

    model_costs(MODEL_OTHERS);
    model_say("somebody else sends a cell\n");

    request = &e->inbox[e->ninbox++];
    ngx_memzero(request, sizeof(model_request_t));
    request->what = MODEL_OTHER;
    request->current = 1;
    request->after = 1;
    return 1;
}


ngx_uint_t
model_others_restart(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    if (e->kernel != MODEL_UP || !model_room(w, 1, 1)) {
        return 0;
    }

    model_costs(MODEL_OTHERS);
    model_say("somebody else has the kernel restarted\n");

    if (e->ninbox && model_pick(2)) {
        model_forget_requests(e);
    }

    if (model_pick(2)) {
        model_to_shell(w, MODEL_SHUTDOWN_REPLY, 1);
    }

    model_new_process(w);
    model_to_iopub(w, MODEL_STARTING, 1);
    return 1;
}


ngx_uint_t
model_others_delete(model_world_t *w)
{
    if (w->e.kernel == MODEL_GONE) {
        return 0;
    }

    model_costs(MODEL_DEATHS);
    model_say("somebody else deletes the kernel\n");
    model_gone(w);
    return 1;
}


/* the link */

ngx_uint_t
model_link_opened(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    if (e->link != MODEL_OPENING) {
        return 0;
    }

    if (e->kernel == MODEL_GONE) {
        model_say("Jupyter knows no such kernel\n");
        e->link = MODEL_CLOSED;
        model_on(w, NGX_KEXEC_ON_CLOSED, 404);
        return 1;
    }

    e->link = MODEL_OPEN;

    if (e->other_id) {

        /* it forgets what it has for the others of the context */

        e->deaf = 0;
        model_forget_messages(e);

    } else if (!e->deaf && model_pick(2)) {
        model_costs(MODEL_LINK);
        e->deaf = 1;
    }

    model_say("the link is open%s\n", e->deaf ? ", and deaf" : "");

    model_not_later(w);

    model_on(w, NGX_KEXEC_ON_OPENED, 0);
    return 1;
}


ngx_uint_t
model_link_closed(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    if (e->link == MODEL_CLOSED || !e->taken) {
        return 0;
    }

    model_costs(MODEL_LINK);
    model_say("the link is lost\n");

    e->link = MODEL_CLOSED;
    e->counted = 0;

    if (e->others || ((e->nshell || e->niopub) && model_pick(2))) {
        model_forget_messages(e);
    }

    model_on(w, NGX_KEXEC_ON_CLOSED, 1006);
    return 1;
}


ngx_uint_t
model_shell_comes(model_world_t *w)
{
    model_env_t                *e;
    model_message_t             msg;
    ngx_kexec_machine_t        *m;
    ngx_kexec_machine_event_t   ev;

    e = &w->e;
    m = &w->m;

    if (e->nshell == 0 || e->link != MODEL_OPEN || e->deaf) {
        return 0;
    }

    msg = model_next_message(e->shell, &e->nshell);

    m->link_read = m->now;

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    if (m->state == NGX_KEXEC_EX_LEAVING) {
        model_say("a message comes too late\n");
        return 1;
    }

    switch (msg.what) {

    case MODEL_FENCE_REPLY:
        ev.what = NGX_KEXEC_ON_FENCE_REPLY;
        ev.process = msg.process;
        ev.in_order = e->in_order;
        break;

    case MODEL_STEP_REPLY_OK:
        ev.what = NGX_KEXEC_ON_STEP_REPLY;
        ev.n = NGX_KEXEC_ANSWER_OK;
        break;

    case MODEL_STEP_REPLY_ERROR:
        ev.what = NGX_KEXEC_ON_STEP_REPLY;
        ev.n = NGX_KEXEC_ANSWER_ERROR;
        break;

    case MODEL_STEP_REPLY_ABORTED:
        ev.what = NGX_KEXEC_ON_STEP_REPLY;
        ev.n = NGX_KEXEC_ANSWER_ABORTED;
        break;

    case MODEL_SHUTDOWN_REPLY:
        ev.what = NGX_KEXEC_ON_SHUTDOWN_REPLY;
        break;

    default:
        ev.what = NGX_KEXEC_ON_CODE_REPLY;
        ev.n = (msg.what == MODEL_REPLY_INTERRUPTED)
               ? NGX_KEXEC_ANSWER_INTERRUPTED
               : (msg.what == MODEL_REPLY_ABORTED)
               ? NGX_KEXEC_ANSWER_ABORTED : NGX_KEXEC_ANSWER_OK;
        ev.exits = (msg.what == MODEL_REPLY_EXITS);
        break;
    }

    if (!msg.current) {
        model_say("an earlier one's reply comes\n");
        return 1;
    }

    model_say("a reply comes\n");
    model_event(w, &ev);
    return 1;
}


ngx_uint_t
model_iopub_comes(model_world_t *w)
{
    model_env_t                *e;
    model_message_t             msg;
    ngx_kexec_machine_t        *m;
    ngx_kexec_machine_event_t   ev;

    static ngx_kexec_on_e  on[] = {
        NGX_KEXEC_ON_N, NGX_KEXEC_ON_CODE_BUSY, NGX_KEXEC_ON_CODE_OUTPUT,
        NGX_KEXEC_ON_CODE_IDLE, NGX_KEXEC_ON_FENCE_IOPUB,
        NGX_KEXEC_ON_FENCE_IDLE, NGX_KEXEC_ON_STEP_IOPUB,
        NGX_KEXEC_ON_FOREIGN, NGX_KEXEC_ON_FOREIGN, NGX_KEXEC_ON_DIED,
        NGX_KEXEC_ON_DEAD, NGX_KEXEC_ON_STARTING
    };

    e = &w->e;
    m = &w->m;

    if (e->niopub == 0 || e->link != MODEL_OPEN || e->deaf) {
        return 0;
    }

    msg = model_next_message(e->iopub, &e->niopub);

    m->link_read = m->now;

    if (m->state == NGX_KEXEC_EX_LEAVING || !msg.current) {
        model_say("an earlier one's message comes\n");
        return 1;
    }

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    ev.what = on[msg.what];

    if (ev.what == NGX_KEXEC_ON_FOREIGN) {
        ev.foreign = (msg.what == MODEL_OTHER_BUSY);

        if (ev.foreign == m->foreign) {
            model_say("word of somebody else's cell comes\n");
            return 1;
        }
    }

    model_say("a message comes\n");
    model_event(w, &ev);
    return 1;
}


/* or doubled: never towards the kernel */

ngx_uint_t
model_message_lost(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    switch (model_pick(4)) {

    case 0:

        if (e->nshell == 0 || !model_unheard(e, &e->shell[0])) {
            return 0;
        }

        model_say("a reply is lost\n");
        (void) model_next_message(e->shell, &e->nshell);
        break;

    case 1:

        if (e->niopub == 0 || !model_unheard(e, &e->iopub[0])) {
            return 0;
        }

        model_say("a message is lost\n");
        (void) model_next_message(e->iopub, &e->niopub);
        break;

    case 2:

        if (e->nshell == 0 || e->nshell == MODEL_SHELL) {
            return 0;
        }

        model_say("a reply comes twice\n");
        e->shell[e->nshell] = e->shell[e->nshell - 1];
        e->nshell++;
        break;

    default:

        if (e->niopub == 0 || e->niopub == MODEL_IOPUB) {
            return 0;
        }

        model_say("a message comes twice\n");
        e->iopub[e->niopub] = e->iopub[e->niopub - 1];
        e->niopub++;
        break;
    }

    model_costs(MODEL_MESSAGES);
    return 1;
}


/* the one in front leaves its queue */

static model_message_t
model_next_message(model_message_t *queue, unsigned char *n)
{
    ngx_uint_t       i;
    model_message_t  msg;

    msg = queue[0];

    (*n)--;

    for (i = 0; i < *n; i++) {
        queue[i] = queue[i + 1];
    }

    ngx_memzero(&queue[*n], sizeof(model_message_t));

    return msg;
}


/* a message is to be lost */

static ngx_uint_t
model_unheard(model_env_t *e, model_message_t *msg)
{
    ngx_uint_t  bit;

    switch (msg->what) {

    case MODEL_CODE_BUSY:
        bit = 1;
        break;

    case MODEL_CODE_IDLE:
        bit = 2;
        break;

    case MODEL_REPLY_OK:
    case MODEL_REPLY_INTERRUPTED:
    case MODEL_REPLY_EXITS:
        bit = 4;
        break;

    default:
        return 1;
    }

    if ((e->unheard | bit) == 7) {
        return 0;
    }

    e->unheard |= bit;

    return 1;
}
