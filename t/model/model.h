
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _MODEL_H_INCLUDED_
#define _MODEL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_machine.h>
#include <ngx_kexec_phase.h>


/*
 * The execution's machine, as it is built into the module, with all that can
 * happen around it: a kernel with its queue, Jupyter, the link, a client,
 * others who use the same kernel, and executions of the same context one after
 * the other.
 *
 *     kernel.c, jupyter.c, world.c
 *               what can happen, one move after the other
 *     time.c    what matters of time
 *     hands.c   does what the machine says, and checks it: the invariants
 *     search.c  tries every move in every state
 *
 * A move may cost something: what is out of the ordinary (a message that is
 * lost, a process that dies, a timer that fires while something else could
 * happen) costs 1, what happens anyhow nothing.  All states that cost nothing
 * are seen first, then those that cost 1, and so on.
 *
 * Time is coarse: a timer that is set may fire at any time, and how long ago
 * something was is one of a few classes.
 */


#define MODEL_INBOX  4
#define MODEL_SHELL  3
#define MODEL_IOPUB  5


/* a request in the kernel's queue, and what the kernel runs */

typedef enum {
    MODEL_NOTHING = 0,
    MODEL_CODE,
    MODEL_FENCE,
    MODEL_STEP,                 /* prepares the kernel */
    MODEL_STEP_SET,             /* sets the request's variables */
    MODEL_STEP_BACK,            /* puts them back */
    MODEL_OTHER,                /* somebody else's cell */
    MODEL_LEFTOVER              /* what code left running when it ended */
} model_what_e;


typedef struct {
    unsigned char               what:4;
    unsigned char               current:1;  /* its id is the one in use */
    unsigned char               mine:1;     /* of this execution */
    unsigned char               denied:1;   /* it will not run, it was said */
    unsigned char               after:1;    /* behind any SIGINT so far */
} model_request_t;


/* messages from the kernel, or in its name */

typedef enum {
    MODEL_NO_MESSAGE = 0,
    MODEL_CODE_BUSY,
    MODEL_CODE_OUTPUT,
    MODEL_CODE_IDLE,
    MODEL_FENCE_BUSY,
    MODEL_FENCE_IDLE,
    MODEL_STEP_BUSY,
    MODEL_OTHER_BUSY,
    MODEL_OTHER_IDLE,
    MODEL_DIED,                 /* Jupyter restarts it */
    MODEL_DEAD,                 /* Jupyter gives it up */
    MODEL_STARTING,
    MODEL_REPLY_OK,
    MODEL_REPLY_INTERRUPTED,
    MODEL_REPLY_ABORTED,
    MODEL_REPLY_EXITS,
    MODEL_FENCE_REPLY,
    MODEL_STEP_REPLY_OK,
    MODEL_STEP_REPLY_ERROR,
    MODEL_STEP_REPLY_ABORTED,
    MODEL_SHUTDOWN_REPLY
} model_message_e;


typedef struct {
    unsigned char               what:5;
    unsigned char               current:1;
    unsigned char               process:2;
} model_message_t;


typedef enum {
    MODEL_UP = 0,
    MODEL_DOWN,                 /* the process died, Jupyter has not noticed */
    MODEL_GONE                  /* Jupyter does not know it any more */
} model_kernel_e;


typedef enum {
    MODEL_CLOSED = 0,
    MODEL_OPENING,
    MODEL_OPEN
} model_link_e;


typedef struct {
    /* the kernel */
    model_kernel_e              kernel;
    unsigned char               process;    /* 1 to 3 */
    model_request_t             running;
    model_request_t             inbox[MODEL_INBOX];
    unsigned char               ninbox;
    unsigned char               sigint;     /* on its way to the process */
    unsigned char               stale;      /* that one is an earlier one's */
    unsigned char               vars;       /* 1: ours are set, 2: another's */

    /* on their way here */
    model_message_t             shell[MODEL_SHELL];
    model_message_t             iopub[MODEL_IOPUB];
    unsigned char               nshell;
    unsigned char               niopub;

    /* Jupyter */
    unsigned char               call;       /* ngx_kexec_call_e */
    unsigned char               acted;      /* on it */
    unsigned char               counted;    /* our link was open when asked */
    unsigned char               late;       /* an interrupt without an answer
                                               may come yet */
    unsigned char               late_stale; /* for an earlier one */

    /* the link, and what the hands know of it */
    model_link_e                link;
    unsigned char               deaf;
    unsigned char               other_id;   /* of another session */
    unsigned char               taken;
    unsigned char               fresh;
    unsigned char               seen;
    unsigned char               foreign;

    /* what is under way besides */
    unsigned char               fetch;
    unsigned char               mark;

    /* the client */
    unsigned char               viewer;
    unsigned char               asked;      /* for an interrupt */
    unsigned char               told;       /* an error */
    unsigned char               denied;     /* that the code did not run */
    unsigned char               started;    /* the code did, times */
    unsigned char               replied;    /* the kernel, truly */
    unsigned char               unheard;    /* its busy, idle, reply: bits */

    /* this world, for good */
    unsigned char               others;     /* use the kernel as well */
    unsigned char               liar;       /* code forges messages */
    unsigned char               env;        /* requests have variables */
    unsigned char               envs;       /* kexec_envs_url */
    unsigned char               never_restart;
    unsigned char               in_order;   /* a fence stays behind code */

    unsigned char               create;     /* a context is made */
    unsigned char               evicted;    /* no next one follows */
    unsigned char               leaving;    /* the worker */
    unsigned char               done;
} model_env_t;


typedef struct {
    ngx_kexec_machine_t         m;
    model_env_t                 e;
} model_world_t;


/* what costs something */

typedef enum {
    MODEL_CODE_DOES = 0,        /* leftovers, no end told, signals swallowed */
    MODEL_LIES,                 /* forged messages */
    MODEL_DEATHS,               /* of the process, or the whole kernel */
    MODEL_MESSAGES,             /* lost, or doubled */
    MODEL_LINK,                 /* cut, or deaf */
    MODEL_CALLS,                /* without an answer, or a wrong one */
    MODEL_OTHERS,               /* who use the kernel as well */
    MODEL_TIME,                 /* a timer is first, though more goes on */
    MODEL_WORKER,               /* killed, or to end; a restart is asked for */
    MODEL_KINDS,
    MODEL_NEXT = MODEL_KINDS    /* one more execution: always looked at */
} model_kind_e;


/* search.c: one of 0 .. n - 1, each of them in turn */
ngx_uint_t model_pick(ngx_uint_t n);

/*
 * This move is out of the ordinary; where its kind is not among those that are
 * looked at, it is not made.
 */
void model_costs(model_kind_e kind);

/* this move cannot be, or goes beyond the model's bounds */
void model_beyond(void);

/* an invariant, by its name */
void model_check(ngx_uint_t holds, const char *name);

/* a line of the story, if one is told */
void model_say(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

extern ngx_uint_t  model_reached[NGX_KEXEC_EX_STATES][NGX_KEXEC_ON_N];

/* kernel.c: moves, and what others do to it or see of it */
ngx_uint_t model_kernel_takes(model_world_t *w);
ngx_uint_t model_code_says(model_world_t *w);
ngx_uint_t model_code_ends(model_world_t *w);
ngx_uint_t model_code_lies(model_world_t *w);
ngx_uint_t model_sigint(model_world_t *w);
void model_send_sigint(model_world_t *w, ngx_uint_t stale);
ngx_uint_t model_process_dies(model_world_t *w);
void model_new_process(model_world_t *w);
void model_gone(model_world_t *w);
void model_to_iopub(model_world_t *w, model_message_e what,
    ngx_uint_t current);
void model_to_shell(model_world_t *w, model_message_e what,
    ngx_uint_t current);
ngx_uint_t model_room(model_world_t *w, ngx_uint_t shell, ngx_uint_t iopub);
void model_forget_messages(model_env_t *e);
void model_forget_requests(model_env_t *e);

/* jupyter.c: moves */
ngx_uint_t model_jupyter_notices(model_world_t *w);
ngx_uint_t model_jupyter_obeys(model_world_t *w);
ngx_uint_t model_jupyter_obeys_late(model_world_t *w);
ngx_uint_t model_jupyter_answers(model_world_t *w);
ngx_uint_t model_jupyter_does_not(model_world_t *w);
ngx_uint_t model_others_run(model_world_t *w);
ngx_uint_t model_others_restart(model_world_t *w);
ngx_uint_t model_others_delete(model_world_t *w);
ngx_uint_t model_link_opened(model_world_t *w);
ngx_uint_t model_link_closed(model_world_t *w);
ngx_uint_t model_shell_comes(model_world_t *w);
ngx_uint_t model_iopub_comes(model_world_t *w);
ngx_uint_t model_message_lost(model_world_t *w);

/* world.c: a new world, one move: 0: it cannot be made */
void model_begin(model_world_t *w);
ngx_uint_t model_move(model_world_t *w);

/* time.c: timers alone have to end it */
void model_silent(model_world_t *w);

/* what is on its way is an earlier execution's from here on */
void model_over(model_env_t *e);

/* what does not matter is the same in all worlds */
void model_canonical(model_world_t *w);

/* hands.c: an event, with all that follows at once */
void model_event(model_world_t *w, ngx_kexec_machine_event_t *ev);
void model_on(model_world_t *w, ngx_kexec_on_e what, ngx_int_t n);

/* nothing of the execution goes on: it ended, or its worker did */
void model_hands_off(model_world_t *w);


/* how long each timer runs at most, in ms */
extern ngx_msec_t  model_limits[NGX_KEXEC_WAIT_N];

/* the machine's time when a move begins */
#define MODEL_NOW  10000000


#endif /* _MODEL_H_INCLUDED_ */
