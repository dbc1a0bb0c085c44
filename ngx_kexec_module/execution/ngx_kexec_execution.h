
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_EXECUTION_H_INCLUDED_
#define _NGX_KEXEC_EXECUTION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_client.h>
#include <ngx_kexec_jupyter.h>
#include <ngx_kexec_kernel.h>
#include <ngx_kexec_server.h>


/*
 * An execution: one run of code in a context, with its own pool, log, timer
 * and state machine.  Its client is a viewer that may leave; the slot is
 * given back by the execution alone.
 *
 * Making a context takes the first half of the same way (session, link,
 * fence, working directory), so it is an execution without code.
 */


typedef enum {
    NGX_KEXEC_EX_QUEUED = 0,
    NGX_KEXEC_EX_SESSION,           /* Jupyter makes a session and kernel */
    NGX_KEXEC_EX_LINKING,           /* the link is being opened */
    NGX_KEXEC_EX_PROBING,           /* a fence, until the kernel is ready */
    NGX_KEXEC_EX_SETUP,             /* silent requests ahead of the code */
    NGX_KEXEC_EX_SENT,              /* the code is sent, not seen to start */
    NGX_KEXEC_EX_BUSY,
    NGX_KEXEC_EX_BARRIER,           /* a fence behind an interrupt */
    NGX_KEXEC_EX_RESTORING,         /* prior variables are put back */
    NGX_KEXEC_EX_RESTARTING,        /* Jupyter restarts a stuck kernel */
    NGX_KEXEC_EX_DONE
} ngx_kexec_execution_state_e;


/* how often "aborted" is taken for an answer: somebody's errors may do that */
#define NGX_KEXEC_ABORTED  50

/*
 * Is a kernel busy with a dead worker's code?  Jupyter is asked this often, and
 * is not believed for longer than that, in ms.
 */
#define NGX_KEXEC_ORPHAN_TIME       300
#define NGX_KEXEC_ORPHAN_LATE_TIME  2000

/* a fence that is not back is sent once more */
#define NGX_KEXEC_FENCE_TIME        1000

/* the fence is not back for this long: something keeps the kernel busy */
#define NGX_KEXEC_HELD_TIME         2000

/* what failed is tried again after this */
#define NGX_KEXEC_RETRY_TIME        1000

/* the kernel is busy, but nothing shows yet that the code runs */
#define NGX_KEXEC_INTERRUPT_START_TIME  100

/* a link that brings nothing is opened anew after this long, then twice that */
#define NGX_KEXEC_DEAF_TIME         2000


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
    NGX_KEXEC_WAIT_LINK,            /* limit of a lost link */
    NGX_KEXEC_WAIT_CONNECT,         /* next try to open the link */
    NGX_KEXEC_WAIT_FENCE,           /* the fence is sent once more */
    NGX_KEXEC_WAIT_START,           /* no busy yet: a fence behind the code */
    NGX_KEXEC_WAIT_IDLE,            /* reply came, idle did not */
    NGX_KEXEC_WAIT_REPLY,           /* idle came, reply did not */
    NGX_KEXEC_WAIT_VERDICT,         /* an error is held for the reply */
    NGX_KEXEC_WAIT_SILENT,          /* ask Jupyter about a silent kernel */
    NGX_KEXEC_WAIT_TIMEOUT,         /* the request's own limit */
    NGX_KEXEC_WAIT_INTERRUPT,       /* the next interrupt */
    NGX_KEXEC_WAIT_STUCK,           /* interrupts did not help */
    NGX_KEXEC_WAIT_BARRIER,         /* limit of the barrier */
    NGX_KEXEC_WAIT_SETUP,           /* a silent request is not answered */
    NGX_KEXEC_WAIT_HELD,            /* something keeps the kernel busy */
    NGX_KEXEC_WAIT_SHUTDOWN,        /* worker_shutdown_timeout, near or over */
    NGX_KEXEC_WAIT_N
} ngx_kexec_wait_e;


/* whose fault it is that a kernel does not answer, see ngx_kexec_held.c */

typedef enum {
    NGX_KEXEC_HELD_NOT = 0,
    NGX_KEXEC_HELD_FOREIGN,         /* somebody else's cell runs there */
    NGX_KEXEC_HELD_LEFTOVER         /* what our earlier code left running */
} ngx_kexec_held_e;


/* a request to the kernel and what is known of it */

typedef struct {
    size_t                      len;
    u_char                      id[NGX_KEXEC_UUID_LEN + 32];
    ngx_kexec_reply_e           status;
    unsigned                    sent:1;
    unsigned                    busy:1;
    unsigned                    iopub:1;        /* anything on iopub */
    unsigned                    reply:1;
    unsigned                    idle:1;
    unsigned                    late:1;         /* was to be repeated */
    unsigned                    half:1;         /* half back for as long */
} ngx_kexec_ask_t;


/* what is known of how the code ended, and not told yet; see _verdict.c */

typedef struct ngx_kexec_kept_s  ngx_kexec_kept_t;

typedef struct {
    ngx_str_t                   reply;          /* content, of an error */
    ngx_kexec_kept_t           *held;           /* from an iopub error on */
    ngx_kexec_kept_t          **last;
    size_t                      size;           /* behind the first */
} ngx_kexec_verdict_t;


typedef struct ngx_kexec_execution_s  ngx_kexec_execution_t;


/*
 * The end of making a context: 200, or a status and a sentence.  ctx is the
 * context as it is now.
 */
typedef void (*ngx_kexec_created_pt)(void *data, ngx_uint_t status,
    ngx_str_t *sentence, ngx_kexec_context_t *ctx);


struct ngx_kexec_execution_s {
    ngx_kexec_claim_t           claim;
    ngx_kexec_claim_kind_e      kind;           /* RUN or CREATE */

    ngx_pool_t                 *pool;
    ngx_log_t                   log;
    ngx_http_kexec_loc_conf_t  *conf;

    u_char                      id[NGX_KEXEC_UUID_LEN];
    ngx_kexec_context_t         ctx;
    ngx_kexec_server_t         *server;
    ngx_kexec_kernel_t         *kernel;

    /* of an execution */
    ngx_kexec_client_t         *client;
    ngx_str_t                   code;
    ngx_keyval_t               *env;
    ngx_uint_t                  nenv;
    ngx_keyval_t               *envs;           /* of kexec_envs_url */
    ngx_uint_t                  nenvs;
    ngx_str_t                   access_token;   /* for that; never logged */
    ngx_msec_t                  timeout;        /* 0: none */

    /* of a new context */
    ngx_kexec_created_pt        created;
    void                       *data;
    ngx_uint_t                  servers;        /* of the block, tried */
    ngx_uint_t                  failure;        /* status, and sentence */
    ngx_str_t                   sentence;

    ngx_kexec_execution_state_e state;
    ngx_kexec_cancel_e          cancel;
    ngx_kexec_status_e          outcome;

    ngx_kexec_ask_t             ask;            /* the code */
    ngx_kexec_ask_t             fence;
    ngx_kexec_ask_t             silent;         /* set-up or restore */
    ngx_uint_t                  step;           /* of the set-up */
    ngx_uint_t                  serial;         /* of message ids */
    ngx_kexec_verdict_t         verdict;
    uint32_t                    process;        /* mark of the one it was
                                                   sent to */
    ngx_uint_t                  resent;
    ngx_uint_t                  aborted;

    ngx_kexec_http_t           *http;           /* the one REST call */
    ngx_kexec_http_t           *mark;           /* another name's call */
    ngx_kexec_http_t           *fetch;          /* call of kexec_envs_url */
    ngx_uint_t                  interrupts;     /* calls made so far */
    ngx_msec_t                  interrupted;    /* when the first was sent */
    ngx_msec_t                  restarting;     /* since when */
    ngx_uint_t                  tries;          /* to open the link */
    ngx_uint_t                  sessions;       /* made, or asked for */
    ngx_msec_t                  probed;         /* since when */
    ngx_msec_t                  died;           /* its process, last, or 0 */
    ngx_msec_t                  orphan;         /* looked for, since when */
    ngx_uint_t                  deaf;           /* links that were */
    ngx_msec_t                  asked;          /* Jupyter, last */
    ngx_msec_t                  unheard_at;     /* if it was overloaded */
    const char                 *dropped_why;    /* if more is known of it */
    ngx_kexec_held_e            held;
    ngx_uint_t                  links;          /* of the kernel, 0: unknown */
    uint32_t                    foreign;        /* of a link that was deaf */

    ngx_msec_t                  entered;
    ngx_msec_t                  started;        /* code was first sent */
    ngx_msec_t                  heard;          /* last message of the code */
    ngx_msec_t                  doubted;        /* its reply, since when */

    ngx_event_t                 timer;
    ngx_event_t                 freeing;
    ngx_uint_t                  waits;          /* bits of the set ones */
    ngx_msec_t                  wait[NGX_KEXEC_WAIT_N];

    unsigned                    errored:1;      /* an error event was sent */
    unsigned                    dropped:1;      /* output is missing */
    unsigned                    cut:1;          /* link was lost once */
    unsigned                    env_set:1;      /* restoring is owed */
    unsigned                    fetched:1;      /* envs, be there any or not */
    unsigned                    recover:1;      /* an orphan may run */
    unsigned                    asked_twice:1;  /* for a new session */
    unsigned                    unheard:1;      /* Jupyter took no interrupt */
    unsigned                    seen:1;         /* as foreign, of that link */
    unsigned                    held_asks:1;    /* for links, see there */
    unsigned                    unanswered:1;   /* one may come yet */
    unsigned                    obeyed:1;       /* one was, Jupyter says */
    unsigned                    exits:1;        /* the process, by itself */
    unsigned                    over:1;         /* replied, and a fence did */
    unsigned                    ending:1;       /* when asking is over */
    unsigned                    suspect:1;      /* idle, Jupyter said */
    unsigned                    unended:1;      /* its end will not be told */
    unsigned                    overloaded:1;   /* Jupyter was, once */
    unsigned                    asking:1;       /* http: is it there, idle? */
    unsigned                    leaving:1;      /* as soon as http is back */
    unsigned                    other:1;        /* link of another session */
    unsigned                    abandoned:1;    /* new context not wanted */
    unsigned                    made:1;         /* new context is ready */
    unsigned                    shutdown:1;     /* its worker has to end */
};


/*
 * An execution in the context ctx.  r gives the token and the settings; the
 * caller then sets code, env (in the execution's pool) and timeout.  NULL: no
 * memory.
 */
ngx_kexec_execution_t *ngx_kexec_execution_create(ngx_http_request_t *r,
    ngx_http_kexec_loc_conf_t *conf, ngx_kexec_context_t *ctx,
    ngx_kexec_claim_kind_e kind);

/* throws away one that was not started */
void ngx_kexec_execution_destroy(ngx_kexec_execution_t *ex);

/*
 * Asks for the slot: NGX_OK, and from now on the execution looks after
 * itself; or what ngx_kexec_claim_enter() refused with.
 */
ngx_int_t ngx_kexec_execution_enter(ngx_kexec_execution_t *ex,
    ngx_kexec_zone_t *zone);

/* makes the context ctx, whose record the claim already holds */
void ngx_kexec_execution_make(ngx_kexec_execution_t *ex);

/* the client is there: it gets the events, and its leaving cancels */
void ngx_kexec_execution_attach(ngx_kexec_execution_t *ex,
    ngx_kexec_client_t *client);

/* nobody waits for the new context any more: it is taken away again */
void ngx_kexec_execution_abandon(ngx_kexec_execution_t *ex);


/*
 * Between the parts of the state machine:
 *
 *     ngx_kexec_execution.c   queue, timer, end
 *     ngx_kexec_session.c     a new Jupyter session
 *     ngx_kexec_prepare.c     link and fence
 *     ngx_kexec_process.c     the kernel's process: another one, or dead
 *     ngx_kexec_setup.c       silent requests
 *     ngx_kexec_envs.c        variables that somebody else knows
 *     ngx_kexec_run.c         the code
 *     ngx_kexec_verdict.c     its events, and how it ended
 *     ngx_kexec_deaf.c        a link through which nothing comes
 *     ngx_kexec_held.c        a kernel that something keeps busy
 *     ngx_kexec_cancel.c      interrupts, barrier, restart of a stuck kernel,
 *                             the end of the worker
 */

void ngx_kexec_wait(ngx_kexec_execution_t *ex, ngx_kexec_wait_e wait,
    ngx_msec_t ms);
void ngx_kexec_wait_not(ngx_kexec_execution_t *ex, ngx_kexec_wait_e wait);

ngx_int_t ngx_kexec_ask(ngx_kexec_execution_t *ex, ngx_kexec_ask_t *ask,
    ngx_str_t *code, ngx_uint_t silent);
void ngx_kexec_fence(ngx_kexec_execution_t *ex);
void ngx_kexec_ours(ngx_kexec_execution_t *ex);
void ngx_kexec_fence_again(ngx_kexec_execution_t *ex);

uint32_t ngx_kexec_message_process(ngx_kexec_message_t *msg);
void ngx_kexec_process(ngx_kexec_execution_t *ex, ngx_kexec_message_t *msg);
void ngx_kexec_replaced(ngx_kexec_execution_t *ex);
void ngx_kexec_died(ngx_kexec_execution_t *ex, ngx_uint_t dead);

void ngx_kexec_granted(ngx_kexec_execution_t *ex);
void ngx_kexec_connect(ngx_kexec_execution_t *ex);
void ngx_kexec_probe(ngx_kexec_execution_t *ex);
void ngx_kexec_probe_barrier(ngx_kexec_execution_t *ex);
void ngx_kexec_setup(ngx_kexec_execution_t *ex);
void ngx_kexec_setup_answered(ngx_kexec_execution_t *ex);
void ngx_kexec_restore(ngx_kexec_execution_t *ex);

void ngx_kexec_forget(ngx_kexec_execution_t *ex);
void ngx_kexec_leave(ngx_kexec_execution_t *ex);
void ngx_kexec_done(ngx_kexec_execution_t *ex);

/*
 * Tells the client an error (the first one counts), ends its stream, ends the
 * execution before its code ran.
 */
void ngx_kexec_tell(ngx_kexec_execution_t *ex, const char *name,
    const char *fmt, ...);
void ngx_kexec_tell_end(ngx_kexec_execution_t *ex);
void ngx_kexec_fail(ngx_kexec_execution_t *ex, ngx_uint_t status,
    const char *name, const char *fmt, ...);

/* did the code run?  What may still run is left to the slot's next holder */
const char *ngx_kexec_orphan(ngx_kexec_execution_t *ex);

void ngx_kexec_send_code(ngx_kexec_execution_t *ex);
void ngx_kexec_run_message(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg);
void ngx_kexec_run_fence(ngx_kexec_execution_t *ex);
void ngx_kexec_run_wait(ngx_kexec_execution_t *ex, ngx_kexec_wait_e wait);
void ngx_kexec_run_end(ngx_kexec_execution_t *ex);
ngx_uint_t ngx_kexec_run_goes_on(ngx_kexec_execution_t *ex,
    ngx_kexec_wait_e wait);
void ngx_kexec_run_died(ngx_kexec_execution_t *ex, ngx_uint_t dead);

/*
 * Answers an input_request of the code's; NGX_DECLINED: it is not one that can
 * be answered, and tells nothing.
 */
ngx_int_t ngx_kexec_verdict_input(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg);

/*
 * A message of the code's on iopub; its reply; its end, before anything else is
 * told.  _release() tells what is held, as unconfirmed, or frees it when the
 * client is gone.
 */
void ngx_kexec_verdict_message(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg);
void ngx_kexec_verdict_reply(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg, ngx_kexec_reply_t *reply);
void ngx_kexec_verdict_end(ngx_kexec_execution_t *ex);
void ngx_kexec_verdict_release(ngx_kexec_execution_t *ex);

void ngx_kexec_ask_jupyter(ngx_kexec_execution_t *ex);
void ngx_kexec_ask_no_more(ngx_kexec_execution_t *ex);

void ngx_kexec_deaf_answer(ngx_kexec_execution_t *ex, ngx_uint_t answered);
ngx_msec_t ngx_kexec_deaf_quiet(ngx_kexec_execution_t *ex, ngx_msec_t quiet);
ngx_int_t ngx_kexec_deaf_probe(ngx_kexec_execution_t *ex, ngx_uint_t busy);
void ngx_kexec_deaf_run(ngx_kexec_execution_t *ex);
ngx_int_t ngx_kexec_connect_anew(ngx_kexec_execution_t *ex);

void ngx_kexec_held(ngx_kexec_execution_t *ex);
void ngx_kexec_held_asked(ngx_kexec_execution_t *ex);
void ngx_kexec_held_cancel(ngx_kexec_execution_t *ex);
void ngx_kexec_held_too_long(ngx_kexec_execution_t *ex);
void ngx_kexec_held_no_more(ngx_kexec_execution_t *ex);
const char *ngx_kexec_held_words(ngx_kexec_execution_t *ex);

void ngx_kexec_cancel(ngx_kexec_execution_t *ex, ngx_kexec_cancel_e reason);
void ngx_kexec_interrupt(ngx_kexec_execution_t *ex);
void ngx_kexec_interrupt_next(ngx_kexec_execution_t *ex);
void ngx_kexec_interrupt_first(ngx_kexec_execution_t *ex);
void ngx_kexec_stuck(ngx_kexec_execution_t *ex);
void ngx_kexec_barrier(ngx_kexec_execution_t *ex);
void ngx_kexec_restart(ngx_kexec_execution_t *ex);
ngx_uint_t ngx_kexec_interrupts_over(ngx_kexec_execution_t *ex);

/* a restart or DELETE wants the slot: the client is told, the slot goes on */
void ngx_kexec_evicted(ngx_kexec_execution_t *ex, ngx_kexec_verdict_e verdict);

/* its worker may be leaving, and has worker_shutdown_timeout left */
void ngx_kexec_leaving(ngx_kexec_execution_t *ex);
void ngx_kexec_shutdown(ngx_kexec_execution_t *ex);

/* the context's kernel is not there any more (404) */
void ngx_kexec_gone(ngx_kexec_execution_t *ex);

void ngx_kexec_session(ngx_kexec_execution_t *ex);
ngx_int_t ngx_kexec_session_drop(ngx_kexec_execution_t *ex);
ngx_int_t ngx_kexec_session_mark(ngx_kexec_execution_t *ex);
void ngx_kexec_session_unmark(ngx_kexec_execution_t *ex);
void ngx_kexec_not_made(ngx_kexec_execution_t *ex);


#endif /* _NGX_KEXEC_EXECUTION_H_INCLUDED_ */
