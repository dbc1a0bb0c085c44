
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_machine_int.h>


/*
 * The states: what each is called; what those are told who wait for the slot,
 * see ngx_kexec_machine_phase(); which timers may be set there, others end when
 * it is entered; which call may be under way; and which events mean anything,
 * others are dropped.
 */


#define wait(name)  ((ngx_uint_t) 1 << NGX_KEXEC_WAIT_##name)
#define call(name)  ((ngx_uint_t) 1 << NGX_KEXEC_CALL_##name)
#define on(name)    ((uint64_t) 1 << NGX_KEXEC_ON_##name)


/* the end of the worker is one of any state */
#define NGX_KEXEC_WAITS_WORKER  (wait(SHUTDOWN) | wait(LAST))

#define NGX_KEXEC_ON_ALWAYS                                                   \
    (on(EVICTED) | on(LOST) | on(WORKER_LEAVES) | on(TIMER))

#define NGX_KEXEC_ON_CLIENT  (on(INTERRUPT) | on(CLIENT_LEFT))
#define NGX_KEXEC_ON_CALL    (on(ANSWER) | on(FAILED))
#define NGX_KEXEC_ON_LINK    (on(KERNEL) | on(OPENED) | on(CLOSED))

/* through an open link */

#define NGX_KEXEC_ON_CODE                                                     \
    (on(CODE_BUSY) | on(CODE_OUTPUT) | on(CODE_IDLE) | on(CODE_REPLY))

#define NGX_KEXEC_ON_FENCE                                                    \
    (on(FENCE_IOPUB) | on(FENCE_IDLE) | on(FENCE_REPLY))

#define NGX_KEXEC_ON_STEPS  (on(STEP) | on(STEP_IOPUB) | on(STEP_REPLY))

#define NGX_KEXEC_ON_PROCESS                                                  \
    (on(FOREIGN) | on(DIED) | on(DEAD) | on(STARTING) | on(SHUTDOWN_REPLY))


ngx_kexec_machine_state_t  ngx_kexec_machine_states[] = {

    { "queued", "waiting in the queue",
      NGX_KEXEC_PHASE_FREE,
      wait(QUEUE) | wait(LOOK) | wait(SHUTDOWN),
      0,
      NGX_KEXEC_ON_ALWAYS | NGX_KEXEC_ON_CLIENT
      | on(START) | on(ENTERED) | on(QUEUED) | on(GRANTED) },

    { "session", "making a Jupyter session",
      NGX_KEXEC_PHASE_PREPARING,
      wait(READY) | wait(TIMEOUT) | wait(SHUTDOWN),
      call(SESSION),
      NGX_KEXEC_ON_ALWAYS | NGX_KEXEC_ON_CLIENT | on(ABANDONED)
      | NGX_KEXEC_ON_CALL },

    { "linking", "opening the link to the kernel",
      NGX_KEXEC_PHASE_PREPARING,
      wait(READY) | wait(LEFTOVER) | wait(LINK) | wait(CONNECT)
      | wait(FENCE) | wait(HELD) | wait(TIMEOUT) | wait(INTERRUPT)
      | wait(STUCK) | NGX_KEXEC_WAITS_WORKER,
      call(ASK) | call(INTERRUPT),
      NGX_KEXEC_ON_ALWAYS | NGX_KEXEC_ON_CLIENT | on(ABANDONED)
      | NGX_KEXEC_ON_CALL | NGX_KEXEC_ON_LINK | on(FETCHED) | on(MARKED) },

    { "probing", "waiting for the kernel to be ready",
      NGX_KEXEC_PHASE_PREPARING,
      wait(READY) | wait(LEFTOVER) | wait(FENCE) | wait(HELD)
      | wait(TIMEOUT) | wait(ORPHAN) | wait(INTERRUPT) | wait(OVER)
      | wait(STUCK) | NGX_KEXEC_WAITS_WORKER,
      call(ASK) | call(INTERRUPT),
      NGX_KEXEC_ON_ALWAYS | NGX_KEXEC_ON_CLIENT | on(ABANDONED)
      | NGX_KEXEC_ON_CALL | on(CLOSED) | NGX_KEXEC_ON_PROCESS
      | NGX_KEXEC_ON_FENCE | NGX_KEXEC_ON_CODE },

    { "setup", "preparing the kernel",
      NGX_KEXEC_PHASE_PREPARING,
      wait(READY) | wait(LINK) | wait(CONNECT) | wait(FENCE) | wait(HELD)
      | wait(SETUP) | wait(TIMEOUT) | wait(SHUTDOWN),
      call(ASK),
      NGX_KEXEC_ON_ALWAYS | NGX_KEXEC_ON_CLIENT | on(ABANDONED)
      | NGX_KEXEC_ON_CALL | on(CLOSED) | NGX_KEXEC_ON_PROCESS
      | NGX_KEXEC_ON_FENCE | NGX_KEXEC_ON_STEPS | on(FETCHED) | on(MARKED) },

    { "sent", "waiting for the code to start",
      NGX_KEXEC_PHASE_RUNNING,
      wait(READY) | wait(LINK) | wait(CONNECT) | wait(FENCE) | wait(HELD)
      | wait(START) | wait(SILENT) | wait(TIMEOUT) | NGX_KEXEC_WAITS_WORKER,
      call(ASK),
      NGX_KEXEC_ON_ALWAYS | NGX_KEXEC_ON_CLIENT | NGX_KEXEC_ON_CALL
      | NGX_KEXEC_ON_LINK | NGX_KEXEC_ON_PROCESS | NGX_KEXEC_ON_FENCE
      | NGX_KEXEC_ON_CODE },

    { "busy", "running code",
      NGX_KEXEC_PHASE_RUNNING,
      wait(LINK) | wait(CONNECT) | wait(FENCE) | wait(IDLE) | wait(REPLY)
      | wait(VERDICT) | wait(SILENT) | wait(TIMEOUT) | wait(INTERRUPT)
      | wait(STUCK) | NGX_KEXEC_WAITS_WORKER,
      call(ASK) | call(INTERRUPT),
      NGX_KEXEC_ON_ALWAYS | NGX_KEXEC_ON_CLIENT | NGX_KEXEC_ON_CALL
      | NGX_KEXEC_ON_LINK | NGX_KEXEC_ON_PROCESS | NGX_KEXEC_ON_FENCE
      | NGX_KEXEC_ON_CODE },

    { "ending", "asking whether the output is whole",
      NGX_KEXEC_PHASE_RUNNING,
      wait(CONNECT) | wait(VERDICT) | NGX_KEXEC_WAITS_WORKER,
      call(ASK),
      NGX_KEXEC_ON_ALWAYS | on(CLIENT_LEFT) | NGX_KEXEC_ON_CALL
      | NGX_KEXEC_ON_LINK | NGX_KEXEC_ON_PROCESS | NGX_KEXEC_ON_CODE },

    { "barrier", "waiting for the kernel after an interrupt",
      NGX_KEXEC_PHASE_CANCELLING,
      wait(CONNECT) | wait(FENCE) | wait(HELD) | wait(OVER) | wait(STUCK)
      | wait(BARRIER) | NGX_KEXEC_WAITS_WORKER,
      call(ASK) | call(INTERRUPT),
      NGX_KEXEC_ON_ALWAYS | NGX_KEXEC_ON_CALL | NGX_KEXEC_ON_LINK
      | NGX_KEXEC_ON_PROCESS | NGX_KEXEC_ON_FENCE },

    { "restoring", "putting variables back",
      NGX_KEXEC_PHASE_RESTORING,
      wait(CONNECT) | wait(FENCE) | wait(SETUP) | wait(RESTORE)
      | NGX_KEXEC_WAITS_WORKER,
      call(ASK),
      NGX_KEXEC_ON_ALWAYS | NGX_KEXEC_ON_CALL | NGX_KEXEC_ON_LINK
      | NGX_KEXEC_ON_PROCESS | NGX_KEXEC_ON_FENCE | NGX_KEXEC_ON_STEPS },

    { "restarting", "restarting the kernel",
      NGX_KEXEC_PHASE_RESTARTING,
      wait(CONNECT) | wait(RESTART) | NGX_KEXEC_WAITS_WORKER,
      call(RESTART) | call(CHECK),
      NGX_KEXEC_ON_ALWAYS | NGX_KEXEC_ON_CALL | NGX_KEXEC_ON_LINK
      | NGX_KEXEC_ON_PROCESS },

    { "dropping", "deleting a Jupyter session",
      NGX_KEXEC_PHASE_PREPARING,
      NGX_KEXEC_WAITS_WORKER,
      call(DROP),
      NGX_KEXEC_ON_ALWAYS | NGX_KEXEC_ON_CALL },

    { "leaving", "waiting for an interrupt's answer",
      NGX_KEXEC_PHASE_CANCELLING,
      NGX_KEXEC_WAITS_WORKER,
      call(SESSION) | call(DROP) | call(ASK) | call(INTERRUPT)
      | call(RESTART) | call(CHECK),
      on(WORKER_LEAVES) | on(TIMER) | on(FOREIGN) | NGX_KEXEC_ON_CALL },

    { "done", NULL, NGX_KEXEC_PHASE_FREE, 0, 0, 0 }
};


/* what happened, for the debug log: as in ngx_kexec_on_e, ngx_kexec_wait_e */

static const char  *ngx_kexec_machine_events[NGX_KEXEC_ON_N] = {
    "start", "entered", "queued", "granted", "evicted", "lost", "interrupt",
    "client left", "abandoned", "worker leaves", "timer", "kernel", "opened",
    "closed", "code busy", "code output", "code idle", "code reply",
    "fence iopub", "fence idle", "fence reply", "step iopub", "step reply",
    "foreign", "died", "dead", "starting", "shutdown reply", "step",
    "fetched", "marked", "answer", "failed"
};

static const char  *ngx_kexec_machine_timers[NGX_KEXEC_WAIT_N] = {
    "timer queue", "timer look", "timer ready", "timer leftover",
    "timer link", "timer connect", "timer fence", "timer start", "timer idle",
    "timer reply", "timer verdict", "timer silent", "timer timeout",
    "timer orphan", "timer interrupt", "timer over", "timer stuck",
    "timer barrier", "timer restore", "timer restart", "timer setup",
    "timer held", "timer shutdown", "timer last"
};


const char *
ngx_kexec_machine_event_name(ngx_kexec_machine_event_t *ev)
{
    return ev->what == NGX_KEXEC_ON_TIMER ? ngx_kexec_machine_timers[ev->n]
                                          : ngx_kexec_machine_events[ev->what];
}
