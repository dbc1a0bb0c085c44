
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_MACHINE_INT_H_INCLUDED_
#define _NGX_KEXEC_MACHINE_INT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_machine.h>
#include <ngx_kexec_phase.h>


/*
 * Between the parts of the machine:
 *
 *     ngx_kexec_machine.c          events; calls all others
 *     ngx_kexec_machine_states.c   the table of states
 *     ngx_kexec_machine_check.c    what has to hold, in test builds
 *     ngx_kexec_machine_prepare.c  session, link, fence, set-up
 *     ngx_kexec_machine_process.c  the kernel's process: another one, or dead
 *     ngx_kexec_machine_run.c      the code
 *     ngx_kexec_machine_jupyter.c  Jupyter's word; links through which nothing
 *                                  comes
 *     ngx_kexec_machine_held.c     a kernel that something keeps busy
 *     ngx_kexec_machine_cancel.c   interrupts, barrier, restart of a stuck
 *                                  kernel, the end of the worker
 *     ngx_kexec_machine_base.c     what all of them need; calls none
 *
 * A part that is through hands on with ngx_kexec_machine_go() instead of
 * calling another one, so that none depends on another, and nothing is nested.
 */


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

/* the link was silent for this long after the reply: idle may be lost */
#define NGX_KEXEC_QUIET_TIME        2000

/* nothing of the execution was heard for this long: Jupyter is asked */
#define NGX_KEXEC_SILENT_TIME       10000

/* the fence behind interrupted code: the kernel is stuck */
#define NGX_KEXEC_BARRIER_TIME      5000

/* how often "aborted" is taken for an answer: somebody's errors may do that */
#define NGX_KEXEC_ABORTED           50


/* where an event goes on */

typedef enum {
    NGX_KEXEC_GO_SESSION = 0,
    NGX_KEXEC_GO_CONNECT,
    NGX_KEXEC_GO_CONNECT_ANEW,
    NGX_KEXEC_GO_PROBE,
    NGX_KEXEC_GO_PROBE_BARRIER,
    NGX_KEXEC_GO_SETUP,
    NGX_KEXEC_GO_SEND_CODE,
    NGX_KEXEC_GO_RUN_FENCE,
    NGX_KEXEC_GO_RUN_END,
    NGX_KEXEC_GO_RUN_DIED,
    NGX_KEXEC_GO_RESTORE,
    NGX_KEXEC_GO_GONE,
    NGX_KEXEC_GO_ASKED,
    NGX_KEXEC_GO_HELD_ASKED,
    NGX_KEXEC_GO_HELD_CANCEL,
    NGX_KEXEC_GO_CANCEL,
    NGX_KEXEC_GO_INTERRUPT,
    NGX_KEXEC_GO_INTERRUPT_FIRST,
    NGX_KEXEC_GO_BARRIER,
    NGX_KEXEC_GO_RESTART
} ngx_kexec_go_e;


/* what was handed on last is done first */
void ngx_kexec_machine_go(ngx_kexec_machine_t *m, ngx_kexec_go_e what,
    ngx_uint_t n);

void ngx_kexec_machine_do(ngx_kexec_machine_t *m, ngx_kexec_do_e what,
    ngx_uint_t n);
void ngx_kexec_machine_log(ngx_kexec_machine_t *m, ngx_kexec_say_e say,
    ngx_uint_t n);
void ngx_kexec_machine_tell(ngx_kexec_machine_t *m, ngx_kexec_say_e say,
    ngx_uint_t n);
void ngx_kexec_machine_tell_end(ngx_kexec_machine_t *m);

void ngx_kexec_machine_to(ngx_kexec_machine_t *m,
    ngx_kexec_execution_state_e state);
void ngx_kexec_machine_wait(ngx_kexec_machine_t *m, ngx_kexec_wait_e wait,
    ngx_msec_t ms);
void ngx_kexec_machine_wait_not(ngx_kexec_machine_t *m, ngx_kexec_wait_e wait);
ngx_uint_t ngx_kexec_machine_waits(ngx_kexec_machine_t *m,
    ngx_kexec_wait_e wait);
ngx_uint_t ngx_kexec_machine_may_wait(ngx_kexec_machine_t *m,
    ngx_kexec_wait_e wait);

void ngx_kexec_machine_call(ngx_kexec_machine_t *m, ngx_kexec_call_e call);
void ngx_kexec_machine_call_not(ngx_kexec_machine_t *m);
void ngx_kexec_machine_new_process(ngx_kexec_machine_t *m);
void ngx_kexec_machine_unmark(ngx_kexec_machine_t *m);
void ngx_kexec_machine_unfetch(ngx_kexec_machine_t *m);
void ngx_kexec_machine_forget(ngx_kexec_machine_t *m);
void ngx_kexec_machine_discard(ngx_kexec_machine_t *m);

/*
 * Ends an execution before its code ran, or the making of a context; gives the
 * slot on, when no interrupt is on its way any more; does so at once.
 */
void ngx_kexec_machine_fail(ngx_kexec_machine_t *m, ngx_kexec_say_e say,
    ngx_uint_t n);
void ngx_kexec_machine_leave(ngx_kexec_machine_t *m);
void ngx_kexec_machine_done(ngx_kexec_machine_t *m);

/* did the code run?  What may still run is left to the slot's next holder */
ngx_uint_t ngx_kexec_machine_orphan(ngx_kexec_machine_t *m);

void ngx_kexec_machine_not_made(ngx_kexec_machine_t *m);

/* a fence behind all that was sent so far; it is not waited for any more */
void ngx_kexec_machine_fence(ngx_kexec_machine_t *m);
void ngx_kexec_machine_fence_not(ngx_kexec_machine_t *m);

/* a message on iopub shows that the kernel took what we sent */
void ngx_kexec_machine_ours(ngx_kexec_machine_t *m);

/* is the kernel there, and idle?  Jupyter is asked, unless a call goes on */
void ngx_kexec_machine_ask(ngx_kexec_machine_t *m);
void ngx_kexec_machine_ask_no_more(ngx_kexec_machine_t *m);

/*
 * Is no interrupt on its way, is there code to be interrupted?  None is left
 * that anything depends on.
 */
ngx_uint_t ngx_kexec_machine_interrupts_over(ngx_kexec_machine_t *m);
ngx_uint_t ngx_kexec_machine_goes_on(ngx_kexec_machine_t *m,
    ngx_kexec_wait_e wait);
void ngx_kexec_machine_interrupts_none(ngx_kexec_machine_t *m);

/* for how long the link has been silent, in ms */
ngx_msec_t ngx_kexec_machine_quiet(ngx_kexec_machine_t *m);

/* prepare */
void ngx_kexec_machine_granted(ngx_kexec_machine_t *m, ngx_kexec_say_e why);
void ngx_kexec_machine_session(ngx_kexec_machine_t *m);
void ngx_kexec_machine_session_answer(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);
void ngx_kexec_machine_connect(ngx_kexec_machine_t *m);
void ngx_kexec_machine_connect_later(ngx_kexec_machine_t *m);
void ngx_kexec_machine_kernel(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);
void ngx_kexec_machine_opened(ngx_kexec_machine_t *m);
void ngx_kexec_machine_closed(ngx_kexec_machine_t *m, ngx_uint_t status);
void ngx_kexec_machine_link_timeout(ngx_kexec_machine_t *m);
void ngx_kexec_machine_probe(ngx_kexec_machine_t *m);
void ngx_kexec_machine_probe_barrier(ngx_kexec_machine_t *m);
void ngx_kexec_machine_fence_again(ngx_kexec_machine_t *m);
void ngx_kexec_machine_fence_back(ngx_kexec_machine_t *m);
void ngx_kexec_machine_setup(ngx_kexec_machine_t *m);
void ngx_kexec_machine_fetched(ngx_kexec_machine_t *m, ngx_kexec_say_e why);
void ngx_kexec_machine_step(ngx_kexec_machine_t *m, ngx_int_t rc);
void ngx_kexec_machine_step_answer(ngx_kexec_machine_t *m);
void ngx_kexec_machine_restore(ngx_kexec_machine_t *m);

/* process */
void ngx_kexec_machine_seen(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);
void ngx_kexec_machine_replaced(ngx_kexec_machine_t *m);
void ngx_kexec_machine_died(ngx_kexec_machine_t *m, ngx_uint_t dead);
void ngx_kexec_machine_gone(ngx_kexec_machine_t *m);

/* run */
void ngx_kexec_machine_send_code(ngx_kexec_machine_t *m);
void ngx_kexec_machine_code(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);
void ngx_kexec_machine_run_fence(ngx_kexec_machine_t *m);
void ngx_kexec_machine_run_end(ngx_kexec_machine_t *m);
void ngx_kexec_machine_run_died(ngx_kexec_machine_t *m, ngx_uint_t dead);
void ngx_kexec_machine_run_timer(ngx_kexec_machine_t *m,
    ngx_kexec_wait_e wait);

/* jupyter */
void ngx_kexec_machine_asked(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);
void ngx_kexec_machine_said(ngx_kexec_machine_t *m);
void ngx_kexec_machine_connect_anew(ngx_kexec_machine_t *m);

/* held */
void ngx_kexec_machine_held(ngx_kexec_machine_t *m);
void ngx_kexec_machine_held_asked(ngx_kexec_machine_t *m);
void ngx_kexec_machine_held_cancel(ngx_kexec_machine_t *m);
void ngx_kexec_machine_held_too_long(ngx_kexec_machine_t *m);
void ngx_kexec_machine_held_still(ngx_kexec_machine_t *m);

/* cancel */
void ngx_kexec_machine_cancel(ngx_kexec_machine_t *m,
    ngx_kexec_cancel_e reason);
void ngx_kexec_machine_interrupt(ngx_kexec_machine_t *m);
void ngx_kexec_machine_interrupt_first(ngx_kexec_machine_t *m);
void ngx_kexec_machine_interrupt_later(ngx_kexec_machine_t *m);
void ngx_kexec_machine_interrupt_over(ngx_kexec_machine_t *m);
void ngx_kexec_machine_interrupt_unsent(ngx_kexec_machine_t *m);
void ngx_kexec_machine_interrupted(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);
void ngx_kexec_machine_barrier(ngx_kexec_machine_t *m);
void ngx_kexec_machine_stuck(ngx_kexec_machine_t *m);
void ngx_kexec_machine_restart(ngx_kexec_machine_t *m);
void ngx_kexec_machine_restarted(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);
void ngx_kexec_machine_checked(ngx_kexec_machine_t *m,
    ngx_kexec_machine_event_t *ev);
void ngx_kexec_machine_evicted(ngx_kexec_machine_t *m, ngx_uint_t deleted);
void ngx_kexec_machine_worker_leaves(ngx_kexec_machine_t *m, ngx_msec_t ms);
void ngx_kexec_machine_shutdown(ngx_kexec_machine_t *m);
void ngx_kexec_machine_last(ngx_kexec_machine_t *m);


#endif /* _NGX_KEXEC_MACHINE_INT_H_INCLUDED_ */
