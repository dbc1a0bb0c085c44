
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_MACHINE_OPERATION_H_INCLUDED_
#define _NGX_KEXEC_MACHINE_OPERATION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_machine.h>


/*
 * What an operation decides: a restart or a deletion of a context, by a client
 * or, an expiry, by nobody.  Pure, by the rules of ngx_kexec_machine.h: an
 * event and the plain state go in, the next state and a list of actions come
 * out; what fails comes back as an event.
 *
 * It is a sibling of the execution's machine and not states of it.  It has no
 * link, no code, no fence and no stream, so that each of its states would have
 * to say no to most of an execution's events, and each part of an execution
 * that it is none of these.  What both know and do the same is there once:
 * what is known of a context, and what a new process changes of it
 * (ngx_kexec_facts_t); and the names of the calls.
 */


typedef enum {
    NGX_KEXEC_OP_QUEUED = 0,        /* the slot is somebody else's, or ours and
                                       not looked at yet */
    NGX_KEXEC_OP_CALLING,           /* Jupyter restarts or deletes */
    NGX_KEXEC_OP_CHECKING,          /* is it there, that did not restart? */
    NGX_KEXEC_OP_PAUSING,           /* Jupyter raised, it is called again */
    NGX_KEXEC_OP_DONE,
    NGX_KEXEC_OP_STATES
} ngx_kexec_op_state_e;


typedef enum {
    NGX_KEXEC_OP_WAIT_LOOK = 0,     /* re-check of the claim while queued */
    NGX_KEXEC_OP_WAIT_AGAIN,        /* the end of the pause */
    NGX_KEXEC_OP_WAIT_SHUTDOWN,     /* worker_shutdown_timeout, nearly over */
    NGX_KEXEC_OP_WAIT_N
} ngx_kexec_op_wait_e;


/* how it ended; the words are not the machine's */

typedef enum {
    NGX_KEXEC_OP_END_OK = 0,        /* it was carried out */
    NGX_KEXEC_OP_END_REFUSED,       /* by Jupyter */
    NGX_KEXEC_OP_END_UNREACHABLE,   /* Jupyter is */
    NGX_KEXEC_OP_END_DELETED,       /* the context, by somebody else */
    NGX_KEXEC_OP_END_LOST,          /* its place */
    NGX_KEXEC_OP_END_NO_MEMORY,
    NGX_KEXEC_OP_END_SHUTDOWN,      /* of the worker; it goes on untold */
    NGX_KEXEC_OP_END_N
} ngx_kexec_op_end_e;


typedef enum {
    /* the claim, its record; those of the context are in m->facts */
    NGX_KEXEC_OP_DO_LOOK = 0,       /* ON_QUEUED, GRANTED, EVICTED, ENDED */
    NGX_KEXEC_OP_DO_ABANDON,        /* ON_ABANDONED, if nobody felt it yet */
    NGX_KEXEC_OP_DO_PHASE,          /* n: ngx_kexec_phase_e */
    NGX_KEXEC_OP_DO_FACTS,          /* m->facts go into the record */
    NGX_KEXEC_OP_DO_REMOVE,         /* the context */
    NGX_KEXEC_OP_DO_ANSWER,         /* all restarts that wait; n: how it
                                       ended */
    NGX_KEXEC_OP_DO_LEAVE,          /* the slot, or the queue */

    /* Jupyter; n: RESTART, DROP or CHECK; ON_ANSWER, or ON_FAILED */
    NGX_KEXEC_OP_DO_CALL,

    NGX_KEXEC_OP_DO_LOG,            /* it was not carried out; n: HTTP status,
                                       or 0 */
    NGX_KEXEC_OP_DO_TELL,           /* the client; n: how it ended */
    NGX_KEXEC_OP_DO_DONE,
    NGX_KEXEC_OP_DO_N
} ngx_kexec_op_do_e;


typedef enum {
    NGX_KEXEC_OP_ON_ENTERED = 0,    /* n: the slot is ours; else queued */
    NGX_KEXEC_OP_ON_NOTICE,         /* something has happened to the claim */

    /* what a look at the claim shows */
    NGX_KEXEC_OP_ON_QUEUED,         /* still */
    NGX_KEXEC_OP_ON_GRANTED,        /* the slot is ours */
    NGX_KEXEC_OP_ON_EVICTED,        /* and is wanted back by a deletion */
    NGX_KEXEC_OP_ON_ENDED,          /* n: how: another one has answered it, the
                                       context or the claim is gone */

    NGX_KEXEC_OP_ON_CLIENT_LEFT,
    NGX_KEXEC_OP_ON_ABANDONED,      /* the claim has ended with that */
    NGX_KEXEC_OP_ON_WORKER_LEAVES,  /* n: ms until it is to be said */
    NGX_KEXEC_OP_ON_TIMER,          /* n: ngx_kexec_op_wait_e */
    NGX_KEXEC_OP_ON_ANSWER,         /* Jupyter's; n: HTTP status, 0: none */
    NGX_KEXEC_OP_ON_FAILED,         /* there was no memory for the call */
    NGX_KEXEC_OP_ON_N
} ngx_kexec_op_on_e;


typedef struct {
    ngx_kexec_op_on_e           what;
    ngx_uint_t                  n;
} ngx_kexec_op_event_t;


typedef struct {
    ngx_kexec_op_do_e           what;
    ngx_uint_t                  n;
} ngx_kexec_op_action_t;


#define NGX_KEXEC_OP_ACTIONS  8


typedef struct {
    ngx_kexec_facts_t           facts;          /* when the slot was taken */

    /* set before each event */
    ngx_msec_t                  now;

    ngx_kexec_op_state_e        state;
    ngx_uint_t                  status;         /* of the restart, CHECKING */
    ngx_uint_t                  raised;         /* how often Jupyter has */

    ngx_uint_t                  waits;          /* bits of the set ones */
    ngx_msec_t                  wait[NGX_KEXEC_OP_WAIT_N];

    ngx_uint_t                  nactions;
    ngx_kexec_op_action_t       actions[NGX_KEXEC_OP_ACTIONS];

    unsigned                    restart:1;      /* else a deletion */
    unsigned                    client:1;       /* is told */
} ngx_kexec_op_t;


typedef struct {
    const char                 *name;
    const char                 *action;         /* while ... */
} ngx_kexec_op_name_t;


extern ngx_kexec_op_name_t  ngx_kexec_op_states[];


/* as ngx_kexec_machine() */
void ngx_kexec_op(ngx_kexec_op_t *m, ngx_kexec_op_event_t *ev);


#endif /* _NGX_KEXEC_MACHINE_OPERATION_H_INCLUDED_ */
