
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <model.h>


/*
 * The kernel: a queue of requests, one process after the other, and code that
 * does as it likes.
 *
 * Assumed: it takes one request after the other, and a SIGINT comes to it
 * before any request that is sent after Jupyter took the call (kill() is
 * through by then): a fence on shell is behind it.  That is not so with
 * interrupt_mode: message.  Requests are not doubled on their way.  Of code's
 * busy, idle and reply one comes, unless the link is lost: that none does shows
 * that the request was lost.
 */


static model_request_t model_next_request(model_env_t *e);
static void model_busy(model_world_t *w, model_message_e what,
    ngx_uint_t current);
static void model_ends(model_world_t *w, model_message_e reply);


/* the kernel */

ngx_uint_t
model_kernel_takes(model_world_t *w)
{
    model_env_t      *e;
    model_request_t   request;

    e = &w->e;

    if (e->kernel != MODEL_UP || e->running.what || e->ninbox == 0
        || !model_room(w, 1, 2))
    {
        return 0;
    }

    request = model_next_request(e);

    if (request.after) {

        /* what came between two requests is ignored */

        e->sigint = 0;
        e->stale = 0;
    }

    switch (request.what) {

    case MODEL_FENCE:
        model_say("the kernel takes a fence\n");
        model_busy(w, MODEL_FENCE_BUSY, request.current);
        model_to_shell(w, MODEL_FENCE_REPLY, request.current);
        model_to_iopub(w, MODEL_FENCE_IDLE, request.current);
        return 1;

    case MODEL_STEP:
    case MODEL_STEP_SET:
    case MODEL_STEP_BACK:

        if (model_pick(2)) {
            model_costs(MODEL_CODE_DOES);
            model_say("the kernel fails at a silent request\n");

            if (request.what == MODEL_STEP_SET) {
                e->vars = request.mine ? 1 : 2;
            }

            model_to_shell(w, MODEL_STEP_REPLY_ERROR, request.current);
            return 1;
        }

        model_say("the kernel runs a silent request\n");
        model_busy(w, MODEL_STEP_BUSY, request.current);

        if (request.what == MODEL_STEP_SET) {
            e->vars = request.mine ? 1 : 2;

        } else if (request.what == MODEL_STEP_BACK) {
            e->vars = 0;
        }

        model_to_shell(w, MODEL_STEP_REPLY_OK, request.current);
        return 1;

    case MODEL_CODE:
        model_say("the kernel starts %s code\n",
                  request.mine ? "the" : "an earlier one's");

        model_check(!request.denied,
                    "code starts of which it was said that it did not run");

        if (request.mine) {
            model_check(!e->started, "code starts twice");
            model_check(e->vars != 2, "another one's variables are set");
            e->started = 1;
        }

        e->running = request;
        model_to_iopub(w, MODEL_CODE_BUSY, request.current);
        return 1;

    default: /* MODEL_OTHER */
        model_say("the kernel starts somebody else's cell\n");
        e->running = request;
        model_to_iopub(w, MODEL_OTHER_BUSY, 1);
        return 1;
    }
}


/* what says little, and is not said by all */

static void
model_busy(model_world_t *w, model_message_e what, ngx_uint_t current)
{
    if (model_room(w, 1, 2) && model_pick(2)) {
        model_costs(MODEL_MESSAGES);
        model_to_iopub(w, what, current);
    }
}


ngx_uint_t
model_code_says(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    if (e->running.what != MODEL_CODE || !e->running.current
        || w->m.code.iopub || !model_room(w, 0, 1)
        || (e->niopub
            && e->iopub[e->niopub - 1].what == MODEL_CODE_OUTPUT))
    {
        return 0;
    }

    model_say("the code prints\n");
    model_to_iopub(w, MODEL_CODE_OUTPUT, 1);
    return 1;
}


ngx_uint_t
model_code_ends(model_world_t *w)
{
    ngx_uint_t        n;
    model_env_t      *e;
    model_request_t   request;

    e = &w->e;

    if (e->kernel != MODEL_UP || e->running.what == MODEL_NOTHING) {
        return 0;
    }

    request = e->running;

    switch (request.what) {

    case MODEL_LEFTOVER:
        model_say("what was left running ends\n");
        ngx_memzero(&e->running, sizeof(model_request_t));
        return 1;

    case MODEL_OTHER:

        if (!model_room(w, 1, 2)) {
            return 0;
        }

        model_say("somebody else's cell ends\n");

        ngx_memzero(&e->running, sizeof(model_request_t));
        model_to_iopub(w, MODEL_OTHER_IDLE, 1);

        if (e->ninbox == 0 || e->inbox[0].what == MODEL_OTHER
            || e->inbox[0].what == MODEL_FENCE || model_pick(2) == 0)
        {
            return 1;
        }

        /* ipykernel: an error makes it refuse what waits */

        model_costs(MODEL_OTHERS);
        model_say("with an error: the next request is aborted\n");

        request = model_next_request(e);

        if (request.what == MODEL_CODE && model_room(w, 1, 2)
            && model_pick(2))
        {
            /* some say so of it as of one that runs */

            model_to_iopub(w, MODEL_CODE_BUSY, request.current);
            model_to_iopub(w, MODEL_CODE_IDLE, request.current);
        }

        model_to_shell(w, request.what == MODEL_CODE
                          ? MODEL_REPLY_ABORTED : MODEL_STEP_REPLY_ABORTED,
                       request.current);
        return 1;

    default: /* MODEL_CODE */
        break;
    }

    if (!model_room(w, 1, 1)) {
        return 0;
    }

    n = model_pick(4);

    switch (n) {

    case 0:
        model_say("the code ends\n");
        model_ends(w, MODEL_REPLY_OK);
        return 1;

    case 1:
        model_costs(MODEL_CODE_DOES);
        model_say("the code ends, and leaves something running\n");
        model_ends(w, MODEL_REPLY_OK);
        e->running.what = MODEL_LEFTOVER;
        return 1;

    case 2:
        model_costs(MODEL_CODE_DOES);
        model_say("the code has the process exit\n");
        model_ends(w, MODEL_REPLY_EXITS);
        e->kernel = MODEL_DOWN;
        e->sigint = 0;
        e->stale = 0;
        e->vars = 0;
        return 1;

    default:

        if (request.mine && (e->unheard & 1)) {
            return 0;
        }

        e->unheard |= request.mine ? 6 : 0;

        model_costs(MODEL_CODE_DOES);
        model_say("the code ends, its end is not told\n");
        ngx_memzero(&e->running, sizeof(model_request_t));
        return 1;
    }
}


/* reply and idle are on their way */

static void
model_ends(model_world_t *w, model_message_e reply)
{
    model_env_t      *e;
    model_request_t   request;

    e = &w->e;
    request = e->running;

    if (request.mine) {
        e->replied = 1;
    }

    model_to_shell(w, reply, request.current);
    model_to_iopub(w, MODEL_CODE_IDLE, request.current);

    ngx_memzero(&e->running, sizeof(model_request_t));
}


/* but for "aborted", which would have it sent again: it asked for that */

ngx_uint_t
model_code_lies(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    if (e->kernel != MODEL_UP
        || (e->running.what != MODEL_CODE && e->running.what != MODEL_LEFTOVER)
        || !model_room(w, 1, 1))
    {
        return 0;
    }

    model_costs(MODEL_LIES);
    e->liar = 1;

    switch (model_pick(5)) {

    case 0:
        model_say("the code forges its reply\n");
        model_to_shell(w, MODEL_REPLY_OK, 1);
        return 1;

    case 1:
        model_say("the code forges its idle\n");
        model_to_iopub(w, MODEL_CODE_IDLE, 1);
        return 1;

    case 2:
        model_say("the code forges the process' death\n");
        model_to_iopub(w, MODEL_DIED, 1);
        return 1;

    case 3:
        model_say("the code forges somebody else's cell\n");
        model_to_iopub(w, MODEL_OTHER_BUSY, 1);
        return 1;

    default:
        model_say("the code forges the process' start\n");
        model_to_iopub(w, MODEL_STARTING, 1);
        return 1;
    }
}


ngx_uint_t
model_sigint(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    if (!e->sigint) {
        return 0;
    }

    if (e->running.what == MODEL_NOTHING) {
        model_say("SIGINT comes to an idle kernel\n");
        e->sigint = 0;
        e->stale = 0;
        return 1;
    }

    if (!model_room(w, 1, 1)) {
        return 0;
    }

    model_check(!e->stale || e->running.what != MODEL_CODE
                || !e->running.mine, "an interrupt reaches the next one");

    e->sigint = 0;
    e->stale = 0;

    if (model_pick(2)) {
        model_costs(MODEL_CODE_DOES);
        model_say("SIGINT is swallowed\n");
        return 1;
    }

    switch (e->running.what) {

    case MODEL_CODE:
        model_say("SIGINT ends the code\n");
        model_ends(w, MODEL_REPLY_INTERRUPTED);
        return 1;

    case MODEL_OTHER:
        model_say("SIGINT ends somebody else's cell\n");
        ngx_memzero(&e->running, sizeof(model_request_t));
        model_to_iopub(w, MODEL_OTHER_IDLE, 1);
        return 1;

    default: /* MODEL_LEFTOVER */
        model_say("SIGINT ends what was left running\n");
        ngx_memzero(&e->running, sizeof(model_request_t));
        return 1;
    }
}


void
model_send_sigint(model_world_t *w, ngx_uint_t stale)
{
    ngx_uint_t    i;
    model_env_t  *e;

    e = &w->e;

    if (e->kernel != MODEL_UP) {
        return;
    }

    e->stale = stale && (!e->sigint || e->stale);
    e->sigint = 1;

    for (i = 0; i < e->ninbox; i++) {
        e->inbox[i].after = 0;
    }
}


ngx_uint_t
model_process_dies(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    if (e->kernel != MODEL_UP) {
        return 0;
    }

    model_costs(MODEL_DEATHS);
    model_say("the process dies\n");

    e->kernel = MODEL_DOWN;
    e->sigint = 0;
    e->stale = 0;
    e->vars = 0;

    ngx_memzero(&e->running, sizeof(model_request_t));

    if (e->ninbox && model_pick(2)) {
        model_say("with what it had received\n");
        model_forget_requests(e);
    }

    return 1;
}


void
model_new_process(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    e->kernel = MODEL_UP;
    e->process = e->process % 3 + 1;
    e->sigint = 0;
    e->stale = 0;
    e->vars = 0;

    ngx_memzero(&e->running, sizeof(model_request_t));
}


void
model_gone(model_world_t *w)
{
    model_env_t  *e;

    e = &w->e;

    e->kernel = MODEL_GONE;
    e->sigint = 0;
    e->stale = 0;
    e->vars = 0;
    e->ninbox = 0;

    ngx_memzero(&e->running, sizeof(model_request_t));
    ngx_memzero(e->inbox, sizeof(e->inbox));
}


void
model_to_iopub(model_world_t *w, model_message_e what, ngx_uint_t current)
{
    model_env_t  *e;

    e = &w->e;

    if (e->link != MODEL_OPEN && e->others) {

        /* Jupyter keeps nothing for us */

        return;
    }

    e->iopub[e->niopub].what = what;
    e->iopub[e->niopub].current = current;
    e->niopub++;
}


void
model_to_shell(model_world_t *w, model_message_e what, ngx_uint_t current)
{
    model_env_t  *e;

    e = &w->e;

    if (e->link != MODEL_OPEN && e->others) {
        return;
    }

    e->shell[e->nshell].what = what;
    e->shell[e->nshell].current = current;
    e->shell[e->nshell].process = (what == MODEL_FENCE_REPLY) ? e->process : 0;
    e->nshell++;
}


ngx_uint_t
model_room(model_world_t *w, ngx_uint_t shell, ngx_uint_t iopub)
{
    return w->e.nshell + shell <= MODEL_SHELL
           && w->e.niopub + iopub <= MODEL_IOPUB;
}


/* the one in front leaves its queue */

static model_request_t
model_next_request(model_env_t *e)
{
    ngx_uint_t       i;
    model_request_t  request;

    request = e->inbox[0];

    e->ninbox--;

    for (i = 0; i < e->ninbox; i++) {
        e->inbox[i] = e->inbox[i + 1];
    }

    ngx_memzero(&e->inbox[e->ninbox], sizeof(model_request_t));

    return request;
}


void
model_forget_messages(model_env_t *e)
{
    e->nshell = 0;
    e->niopub = 0;

    ngx_memzero(e->shell, sizeof(e->shell));
    ngx_memzero(e->iopub, sizeof(e->iopub));
}


void
model_forget_requests(model_env_t *e)
{
    e->ninbox = 0;

    ngx_memzero(e->inbox, sizeof(e->inbox));
}
