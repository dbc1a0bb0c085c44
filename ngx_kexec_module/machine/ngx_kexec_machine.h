
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_MACHINE_H_INCLUDED_
#define _NGX_KEXEC_MACHINE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * What an execution decides: one run of code in a context, or the making of a
 * context, which takes the first half of the same way.
 *
 * Pure: an event and the plain state go in, the next state and a list of
 * actions come out.  No memory is taken, nothing is called, the time is an
 * argument.  Whoever carries the actions out (ngx_kexec_execution.c, or
 * t/model) does so in their order; one that fails comes back as an event, after
 * all of them.  Output passes by outside.
 */


typedef enum {
    NGX_KEXEC_EX_QUEUED = 0,
    NGX_KEXEC_EX_SESSION,           /* Jupyter makes a session and kernel */
    NGX_KEXEC_EX_LINKING,           /* the link is being opened */
    NGX_KEXEC_EX_PROBING,           /* a fence, until the kernel is ready */
    NGX_KEXEC_EX_SETUP,             /* silent requests ahead of the code */
    NGX_KEXEC_EX_SENT,              /* the code is sent, not seen to start */
    NGX_KEXEC_EX_BUSY,
    NGX_KEXEC_EX_ENDING,            /* the code is over, Jupyter is asked yet
                                       whether its output is whole */
    NGX_KEXEC_EX_BARRIER,           /* a fence behind an interrupt */
    NGX_KEXEC_EX_RESTORING,         /* prior variables are put back */
    NGX_KEXEC_EX_RESTARTING,        /* Jupyter restarts a stuck kernel */
    NGX_KEXEC_EX_DROPPING,          /* a failed context's session is deleted */
    NGX_KEXEC_EX_LEAVING,           /* an interrupt's answer is waited for */
    NGX_KEXEC_EX_DONE,
    NGX_KEXEC_EX_STATES
} ngx_kexec_execution_state_e;


/* why an execution is to end early; a later reason may only be stronger */

typedef enum {
    NGX_KEXEC_CANCEL_NONE = 0,
    NGX_KEXEC_CANCEL_INTERRUPT,     /* POST /contexts/ID/interrupt */
    NGX_KEXEC_CANCEL_TIMEOUT,       /* the request's own limit */
    NGX_KEXEC_CANCEL_CLIENT         /* nobody watches any more */
} ngx_kexec_cancel_e;


/* what an execution waits for; each has a moment of its own */

typedef enum {
    NGX_KEXEC_WAIT_QUEUE = 0,       /* limit of the time in the queue */
    NGX_KEXEC_WAIT_LOOK,            /* re-check of the claim while queued */
    NGX_KEXEC_WAIT_READY,           /* limit until the code starts */
    NGX_KEXEC_WAIT_LEFTOVER,        /* limit until what held it is over */
    NGX_KEXEC_WAIT_LINK,            /* limit of a lost link */
    NGX_KEXEC_WAIT_CONNECT,         /* next try to open the link */
    NGX_KEXEC_WAIT_FENCE,           /* the fence is sent once more */
    NGX_KEXEC_WAIT_START,           /* no busy yet: a fence behind the code */
    NGX_KEXEC_WAIT_IDLE,            /* reply came, idle did not */
    NGX_KEXEC_WAIT_REPLY,           /* idle came, reply did not */
    NGX_KEXEC_WAIT_VERDICT,         /* an error is held for the reply */
    NGX_KEXEC_WAIT_SILENT,          /* ask Jupyter about a silent kernel */
    NGX_KEXEC_WAIT_TIMEOUT,         /* the request's own limit */
    NGX_KEXEC_WAIT_ORPHAN,          /* ask Jupyter whether one runs */
    NGX_KEXEC_WAIT_INTERRUPT,       /* the next interrupt */
    NGX_KEXEC_WAIT_OVER,            /* ask whether the last one is over */
    NGX_KEXEC_WAIT_STUCK,           /* interrupts did not help */
    NGX_KEXEC_WAIT_BARRIER,         /* limit of the barrier */
    NGX_KEXEC_WAIT_RESTORE,         /* limit of putting variables back */
    NGX_KEXEC_WAIT_RESTART,         /* the next try to restart the kernel */
    NGX_KEXEC_WAIT_SETUP,           /* a silent request is not answered */
    NGX_KEXEC_WAIT_HELD,            /* something keeps the kernel busy */
    NGX_KEXEC_WAIT_SHUTDOWN,        /* worker_shutdown_timeout is near */
    NGX_KEXEC_WAIT_LAST,            /* and over */
    NGX_KEXEC_WAIT_N
} ngx_kexec_wait_e;


/* how the kernel can be reached */

typedef enum {
    NGX_KEXEC_REACH_NOT = 0,        /* it is not ours */
    NGX_KEXEC_REACH_DOWN,           /* its link is not open */
    NGX_KEXEC_REACH_OPENING,
    NGX_KEXEC_REACH_OPEN
} ngx_kexec_reach_e;


/* whose fault it is that a kernel does not answer */

typedef enum {
    NGX_KEXEC_HELD_NOT = 0,
    NGX_KEXEC_HELD_FOREIGN,         /* somebody else's cell runs there */
    NGX_KEXEC_HELD_LEFTOVER         /* what our earlier code left running */
} ngx_kexec_held_e;


/* the one call to Jupyter on the kernel's behalf that is under way */

typedef enum {
    NGX_KEXEC_CALL_NONE = 0,
    NGX_KEXEC_CALL_SESSION,         /* a session and kernel are made */
    NGX_KEXEC_CALL_DROP,            /* that session is deleted again */
    NGX_KEXEC_CALL_ASK,             /* is the kernel there, and idle? */
    NGX_KEXEC_CALL_INTERRUPT,
    NGX_KEXEC_CALL_RESTART,
    NGX_KEXEC_CALL_CHECK            /* is it there, that did not restart? */
} ngx_kexec_call_e;


/* the silent requests of the set-up, in their order */

typedef enum {
    NGX_KEXEC_STEP_OWED = 0,        /* puts back what an earlier one left */
    NGX_KEXEC_STEP_CWD,
    NGX_KEXEC_STEP_COMMON,          /* kexec_env */
    NGX_KEXEC_STEP_ENVS,            /* kexec_envs_url */
    NGX_KEXEC_STEP_ENV,             /* the request's env_vars */
    NGX_KEXEC_STEP_DONE
} ngx_kexec_step_e;


/* how an execution is counted, if not by what its client was told */

typedef enum {
    NGX_KEXEC_OUTCOME_NONE = 0,
    NGX_KEXEC_OUTCOME_CANCELLED,
    NGX_KEXEC_OUTCOME_TIMEOUT,
    NGX_KEXEC_OUTCOME_DIED
} ngx_kexec_outcome_e;


/* how a request to the kernel was answered: the reply's status */

typedef enum {
    NGX_KEXEC_ANSWER_OTHER = 0,     /* none, or one of no meaning */
    NGX_KEXEC_ANSWER_OK,
    NGX_KEXEC_ANSWER_ERROR,
    NGX_KEXEC_ANSWER_ABORTED,
    NGX_KEXEC_ANSWER_INTERRUPTED
} ngx_kexec_answer_e;


/* what Jupyter says of a kernel */

typedef enum {
    NGX_KEXEC_JUPYTER_OTHER = 0,    /* it starts, or cannot be known */
    NGX_KEXEC_JUPYTER_IDLE,
    NGX_KEXEC_JUPYTER_BUSY
} ngx_kexec_jupyter_says_e;


/* what a client is told, or the log; the words are not the machine's */

typedef enum {
    NGX_KEXEC_SAY_NONE = 0,

    /* before the code ran: also the failure of a new context */
    NGX_KEXEC_SAY_GONE,             /* the context, before it had the slot */
    NGX_KEXEC_SAY_INVALID_CODE,
    NGX_KEXEC_SAY_NO_MEMORY,
    NGX_KEXEC_SAY_QUEUE_TIMEOUT,
    NGX_KEXEC_SAY_LOST_PLACE,
    NGX_KEXEC_SAY_NOT_READY,        /* n: the code may have run */
    NGX_KEXEC_SAY_NO_KERNEL,        /* nor those started in its place */
    NGX_KEXEC_SAY_FOREIGN,
    NGX_KEXEC_SAY_ORPHAN,           /* does not end; n: may have run */
    NGX_KEXEC_SAY_UNREACHABLE,      /* n: may have run */
    NGX_KEXEC_SAY_TOKEN,            /* n: status << 1 | may have run */
    NGX_KEXEC_SAY_SESSION,          /* as the hands know */
    NGX_KEXEC_SAY_ENV_TOO_LARGE,
    NGX_KEXEC_SAY_CODE_TOO_LARGE,
    NGX_KEXEC_SAY_REFUSED_SETUP,
    NGX_KEXEC_SAY_BAD_CWD,
    NGX_KEXEC_SAY_BAD_ENV,
    NGX_KEXEC_SAY_FETCH,            /* as the hands know */
    NGX_KEXEC_SAY_ABANDONED,
    NGX_KEXEC_SAY_SHUTDOWN_BEFORE,  /* n: may have run */
    NGX_KEXEC_SAY_CREATE_GONE,

    /* the end of an execution */
    NGX_KEXEC_SAY_NOT_STARTED,      /* interrupted before it ran */
    NGX_KEXEC_SAY_UNLINKED,         /* interrupted; n: may have run */
    NGX_KEXEC_SAY_HELD,             /* interrupted, not started;
                                       n: ngx_kexec_held_e << 1 | was sent */
    NGX_KEXEC_SAY_HELD_TOO_LONG,    /* the same n */
    NGX_KEXEC_SAY_REFUSED,          /* the code, again and again */
    NGX_KEXEC_SAY_UNNOTICED,
    NGX_KEXEC_SAY_LINK_LOST,
    NGX_KEXEC_SAY_LINK_GONE,        /* kexec_reconnect_timeout */
    NGX_KEXEC_SAY_INTERRUPTED,
    NGX_KEXEC_SAY_INTERRUPTED_UNTOLD,
    NGX_KEXEC_SAY_LOST,             /* no reply */
    NGX_KEXEC_SAY_UNENDED,
    NGX_KEXEC_SAY_TIMEOUT,
    NGX_KEXEC_SAY_TIMEOUT_SENT,     /* n: ngx_kexec_held_e */
    NGX_KEXEC_SAY_DIED,             /* while the code ran */
    NGX_KEXEC_SAY_DIED_SENT,
    NGX_KEXEC_SAY_KERNEL_GONE,      /* n: was running */
    NGX_KEXEC_SAY_RESTARTED,        /* stuck; n: by what ran before */
    NGX_KEXEC_SAY_EVICTED,          /* restarted by somebody; n: had started */
    NGX_KEXEC_SAY_DELETED,          /* n: had started */
    NGX_KEXEC_SAY_SHUTDOWN,

    /* the log alone */
    NGX_KEXEC_LOG_HELD,
    NGX_KEXEC_LOG_DEAF,
    NGX_KEXEC_LOG_DIED,             /* n: and was given up */
    NGX_KEXEC_LOG_GONE,
    NGX_KEXEC_LOG_UNSEEN,           /* started again unseen */
    NGX_KEXEC_LOG_LOST_CODE,
    NGX_KEXEC_LOG_LOST_END,         /* n: 1 no reply, 2 no idle */
    NGX_KEXEC_LOG_STUCK,            /* n: and is restarted */
    NGX_KEXEC_LOG_NO_RESTART,
    NGX_KEXEC_LOG_STEP,             /* n: which */
    NGX_KEXEC_LOG_RESTORE,
    NGX_KEXEC_LOG_SHUTDOWN
} ngx_kexec_say_e;


/*
 * What is to be done.  Where a function of the hands can fail, the event is
 * named that tells so.
 */

typedef enum {
    /* the claim, the context's record */
    NGX_KEXEC_DO_LOOK = 0,          /* at the claim */
    NGX_KEXEC_DO_PHASE,             /* n: ngx_kexec_phase_e */
    NGX_KEXEC_DO_FACTS,             /* m->facts go into the record */
    NGX_KEXEC_DO_EVICT,             /* all that wait: restarted */

    /* the kernel and its link */
    NGX_KEXEC_DO_TAKE,              /* ON_KERNEL, ON_FAILED */
    NGX_KEXEC_DO_OTHER,             /* link has another session's id */
    NGX_KEXEC_DO_OPEN,              /* ON_OPENED, ON_CLOSED, ON_FAILED */
    NGX_KEXEC_DO_DISCARD,
    NGX_KEXEC_DO_SEND_CODE,
    NGX_KEXEC_DO_SEND_FENCE,        /* a new one */
    NGX_KEXEC_DO_SEND_AGAIN,        /* the same fence */
    NGX_KEXEC_DO_SEND_STEP,         /* what DO_STEP has made */

    /* the set-up */
    NGX_KEXEC_DO_STEP,              /* n: which; ON_STEP */
    NGX_KEXEC_DO_FETCH,             /* ON_FETCHED, ON_FAILED */
    NGX_KEXEC_DO_FETCH_NOT,
    NGX_KEXEC_DO_MARK,              /* ON_MARKED */
    NGX_KEXEC_DO_MARK_NOT,

    /* Jupyter; n: ngx_kexec_call_e; ON_..., or ON_FAILED */
    NGX_KEXEC_DO_CALL,
    NGX_KEXEC_DO_CALL_NOT,

    /* the client, the log; n with NGX_KEXEC_SAY_... */
    NGX_KEXEC_DO_TELL,              /* the first error counts */
    NGX_KEXEC_DO_TELL_VERDICT,      /* what the reply told */
    NGX_KEXEC_DO_TELL_HELD,         /* errors that no reply confirmed */
    NGX_KEXEC_DO_TELL_DROPPED,      /* output is missing, at the end */
    NGX_KEXEC_DO_TELL_END,
    NGX_KEXEC_DO_LOG,

    /* the end */
    NGX_KEXEC_DO_NOT_MADE,          /* the context: m->failure */
    NGX_KEXEC_DO_DONE,
    NGX_KEXEC_DO_N
} ngx_kexec_do_e;


typedef enum {
    /* the claim, the client, the worker */
    NGX_KEXEC_ON_START = 0,         /* the record of a new context is ours */
    NGX_KEXEC_ON_ENTERED,           /* n: the slot is ours; else queued */
    NGX_KEXEC_ON_QUEUED,            /* still */
    NGX_KEXEC_ON_GRANTED,           /* ev->say: why it cannot be used */
    NGX_KEXEC_ON_EVICTED,           /* n: the context is deleted */
    NGX_KEXEC_ON_LOST,              /* the claim */
    NGX_KEXEC_ON_INTERRUPT,         /* POST /contexts/ID/interrupt */
    NGX_KEXEC_ON_CLIENT_LEFT,
    NGX_KEXEC_ON_ABANDONED,         /* nobody waits for a new context */
    NGX_KEXEC_ON_WORKER_LEAVES,     /* n: ms until it is to be said */
    NGX_KEXEC_ON_TIMER,             /* n: ngx_kexec_wait_e */

    /* the kernel and its link */
    NGX_KEXEC_ON_KERNEL,            /* taken: ev->open, fresh, seen, foreign */
    NGX_KEXEC_ON_OPENED,
    NGX_KEXEC_ON_CLOSED,            /* n: close code or HTTP status, or 0 */
    NGX_KEXEC_ON_CODE_BUSY,
    NGX_KEXEC_ON_CODE_OUTPUT,       /* anything else on iopub */
    NGX_KEXEC_ON_CODE_IDLE,
    NGX_KEXEC_ON_CODE_REPLY,        /* n: ngx_kexec_answer_e; ev->exits */
    NGX_KEXEC_ON_FENCE_IOPUB,
    NGX_KEXEC_ON_FENCE_IDLE,
    NGX_KEXEC_ON_FENCE_REPLY,       /* ev->process, in_order */
    NGX_KEXEC_ON_STEP_IOPUB,
    NGX_KEXEC_ON_STEP_REPLY,        /* n: ngx_kexec_answer_e */
    NGX_KEXEC_ON_FOREIGN,           /* n: mark of what runs, or 0 */
    NGX_KEXEC_ON_DIED,              /* Jupyter says so */
    NGX_KEXEC_ON_DEAD,              /* and gives it up */
    NGX_KEXEC_ON_STARTING,          /* a process says so */
    NGX_KEXEC_ON_SHUTDOWN_REPLY,    /* it ends in order */

    /* the set-up */
    NGX_KEXEC_ON_STEP,              /* n: NGX_OK, NGX_DECLINED: not needed,
                                       NGX_ERROR */
    NGX_KEXEC_ON_FETCHED,           /* ev->say: SAY_NONE, or why not */
    NGX_KEXEC_ON_MARKED,

    /*
     * Jupyter's answer to the call under way, n: HTTP status, 0: none;
     * ev->connected, and of a session SAY_..., of a kernel says and links
     */
    NGX_KEXEC_ON_ANSWER,
    NGX_KEXEC_ON_FAILED,            /* n: ngx_kexec_do_e that could not be */
    NGX_KEXEC_ON_N
} ngx_kexec_on_e;


typedef struct {
    ngx_kexec_on_e              what;
    ngx_int_t                   n;

    ngx_kexec_say_e             say;
    ngx_kexec_jupyter_says_e    says;
    ngx_uint_t                  links;      /* of the kernel, 0: unknown */
    uint32_t                    process;    /* mark, 0: unknown */
    uint32_t                    foreign;

    unsigned                    open:1;
    unsigned                    fresh:1;
    unsigned                    seen:1;
    unsigned                    exits:1;    /* the process, by itself */
    unsigned                    in_order:1;
    unsigned                    connected:1;
} ngx_kexec_machine_event_t;


typedef struct {
    ngx_kexec_do_e              what;
    ngx_kexec_say_e             say;
    ngx_uint_t                  n;
} ngx_kexec_action_t;


/* a request to the kernel and what is known of it */

typedef struct {
    ngx_kexec_answer_e          status;
    unsigned                    sent:1;
    unsigned                    iopub:1;    /* anything on iopub */
    unsigned                    reply:1;
    unsigned                    idle:1;
    unsigned                    late:1;     /* was to be repeated */
    unsigned                    half:1;     /* half back for as long */
} ngx_kexec_ask_t;


/* of the context, as the record has it when the slot is taken */

typedef struct {
    uint32_t                    epoch;      /* kernel starts that we know of */
    uint32_t                    process;    /* mark of the kernel's process */
    unsigned                    prepared:2; /* NGX_KEXEC_PREPARED... */
    unsigned                    ready:1;
    unsigned                    in_order:1;
    unsigned                    dirty:1;
    unsigned                    owes_restore:1;
    unsigned                    session:1;  /* there is one */
    unsigned                    kernel:1;
} ngx_kexec_facts_t;


typedef struct {
    ngx_msec_t                  queue_timeout;
    ngx_msec_t                  ready_timeout;
    ngx_msec_t                  reconnect_timeout;
    ngx_msec_t                  interrupt_timeout;
    ngx_msec_t                  timeout;        /* the request's, 0: none */
    ngx_msec_t                  last_time;      /* of a worker that ends */
    unsigned                    create:1;       /* makes a context */
    unsigned                    is_default:1;
    unsigned                    envs:1;         /* kexec_envs_url, to be set */
    unsigned                    never_restart:1; /* kexec_interrupt_failure */
} ngx_kexec_machine_conf_t;


#define NGX_KEXEC_ACTIONS  48
#define NGX_KEXEC_GOES     4


/* parts of the machine: where an event goes on, of its own */

typedef struct {
    ngx_uint_t                  what;
    ngx_uint_t                  n;
} ngx_kexec_machine_go_t;


typedef struct {
    ngx_kexec_machine_conf_t    conf;
    ngx_kexec_facts_t           facts;

    /* set before each event */
    ngx_msec_t                  now;
    ngx_msec_t                  link_read;      /* anything, last */
    unsigned                    link_up:1;      /* to Jupyter, if not open */

    ngx_kexec_execution_state_e state;
    ngx_uint_t                  phase;          /* told, ngx_kexec_phase_e */
    ngx_kexec_cancel_e          cancel;
    ngx_kexec_outcome_e         outcome;
    ngx_kexec_say_e             failure;        /* of a new context */
    ngx_uint_t                  failure_n;

    ngx_kexec_ask_t             code;
    ngx_kexec_ask_t             fence;
    ngx_kexec_ask_t             silent;         /* set-up or restore */
    ngx_kexec_step_e            step;
    uint32_t                    process;        /* mark of the one that the
                                                   code was sent to */
    ngx_uint_t                  resent;
    ngx_uint_t                  aborted;

    /* the link */
    ngx_kexec_reach_e           reach;
    uint32_t                    foreign;        /* mark of somebody else's
                                                   request that runs there */
    ngx_uint_t                  links;          /* of the kernel, 0: unknown */
    ngx_uint_t                  tries;          /* to open it */
    ngx_uint_t                  deaf;           /* links that were */
    ngx_kexec_held_e            held;

    ngx_kexec_call_e            call;
    ngx_uint_t                  interrupts;     /* calls made so far */
    ngx_uint_t                  sessions;       /* made, or asked for */

    ngx_msec_t                  interrupted;    /* when the first was sent, or
                                                   0: no barrier is owed */
    ngx_msec_t                  restarting;     /* since when */
    ngx_msec_t                  probed;         /* since when */
    ngx_msec_t                  died;           /* its process, last, or 0 */
    ngx_msec_t                  orphan;         /* looked for, since when */
    ngx_msec_t                  asked;          /* Jupyter, last */
    ngx_msec_t                  overloaded;     /* it was, last, or 0 */
    ngx_msec_t                  started;        /* code was first sent */
    ngx_msec_t                  heard;          /* last message of the code */
    ngx_msec_t                  doubted;        /* its reply, since when */

    ngx_uint_t                  waits;          /* bits of the set ones */
    ngx_msec_t                  wait[NGX_KEXEC_WAIT_N];

    ngx_kexec_machine_event_t   said;           /* by Jupyter, of the kernel */

    ngx_uint_t                  ngo;
    ngx_kexec_machine_go_t      go[NGX_KEXEC_GOES];

    ngx_uint_t                  nactions;
    ngx_kexec_action_t          actions[NGX_KEXEC_ACTIONS];

    /*
     * What goes together is in ngx_kexec_machine_check.c, which test builds
     * ask behind each event.  In short:
     *
     *     counted          only while the link is open
     *     fresh            while the kernel is ours
     *     seen, foreign    the same, but that another link than one that was
     *                      deaf begins with what was known
     *     other            while none is open, after a deaf one
     *     fetching         or marking, in SETUP, and in LINKING behind it
     *     recover          LINKING, PROBING, and the RESTARTING after them
     *     covers           not while an interrupt flies or is unanswered
     *     held_asks        with WAIT_HELD, and that with a fence
     *     over, exits      behind the code's reply, or its end
     *     env_set          while the record owes it, too
     *     viewer           never of a new context, nor once unended, shutdown
     *                      or cancelled for want of one
     */

    unsigned                    viewer:1;       /* a client is told */
    unsigned                    fresh:1;        /* not proved by a fence yet */
    unsigned                    seen:1;         /* it answered through it */
    unsigned                    other:1;        /* link of another session */
    unsigned                    fetching:1;     /* kexec_envs_url */
    unsigned                    fetched:1;      /* envs, be there any or not */
    unsigned                    marking:1;      /* the session's name */

    unsigned                    cut:1;          /* link was lost once */
    unsigned                    env_set:1;      /* restoring is owed */
    unsigned                    recover:1;      /* an orphan may run */
    unsigned                    unheard:1;      /* Jupyter took no interrupt */
    unsigned                    unanswered:1;   /* one may come yet */
    unsigned                    obeyed:1;       /* one was, Jupyter says */
    unsigned                    covers:1;       /* the fence is behind them */
    unsigned                    held_asks:1;    /* for links */
    unsigned                    counted:1;      /* our link, when asked */
    unsigned                    exits:1;        /* the process, by itself */
    unsigned                    over:1;         /* replied, and a fence did */
    unsigned                    suspect:1;      /* idle, Jupyter said */
    unsigned                    unended:1;      /* its end will not be told */
    unsigned                    abandoned:1;    /* new context not wanted */
    unsigned                    made:1;         /* new context is ready */
    unsigned                    shutdown:1;     /* its worker has to end */
} ngx_kexec_machine_t;


typedef struct {
    const char                 *name;
    const char                 *action;         /* for the log */
    ngx_uint_t                  phase;          /* if nothing else matters */
    ngx_uint_t                  waits;          /* bits of those allowed */
    ngx_uint_t                  calls;
    uint64_t                    events;         /* that mean anything */
} ngx_kexec_machine_state_t;


extern ngx_kexec_machine_state_t  ngx_kexec_machine_states[];

/* for the debug log */
const char *ngx_kexec_machine_event_name(ngx_kexec_machine_event_t *ev);


/*
 * One event, at the time m->now: the state is the next one, and what is to be
 * done stands in m->actions, nactions of them.  Nothing happens once the state
 * is DONE.
 */
void ngx_kexec_machine(ngx_kexec_machine_t *m, ngx_kexec_machine_event_t *ev);

#if (NGX_KEXEC_TEST)

/* what does not hold behind an event, and its actions; NULL: all does */
const char *ngx_kexec_machine_check(ngx_kexec_machine_t *m);

#endif

/* is the state one before the code is sent? */
ngx_uint_t ngx_kexec_machine_before(ngx_kexec_machine_t *m);

/* would that answer mean that the code did not run? */
ngx_uint_t ngx_kexec_machine_aborted(ngx_kexec_machine_t *m,
    ngx_kexec_answer_e answer);

/* the kernel's process is another one, in which nothing of ours is */
void ngx_kexec_facts_new_process(ngx_kexec_facts_t *facts);


#endif /* _NGX_KEXEC_MACHINE_H_INCLUDED_ */
