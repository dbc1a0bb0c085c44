
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_machine_int.h>


/*
 * The states: what each is called, and which timers may be set there.  Others
 * end when the state is entered.
 */


#define wait(name)  (1 << NGX_KEXEC_WAIT_##name)

#define NGX_KEXEC_WAITS_WORKER  (wait(SHUTDOWN) | wait(LAST))


ngx_kexec_machine_state_t  ngx_kexec_machine_states[] = {

    { "queued", "waiting in the queue",
      wait(QUEUE) | wait(LOOK) | wait(SHUTDOWN) },

    { "session", "making a Jupyter session",
      wait(READY) | wait(TIMEOUT) | wait(SHUTDOWN) },

    { "linking", "opening the link to the kernel",
      wait(READY) | wait(LEFTOVER) | wait(LINK) | wait(CONNECT)
      | wait(FENCE) | wait(HELD) | wait(TIMEOUT) | wait(INTERRUPT)
      | wait(STUCK) | NGX_KEXEC_WAITS_WORKER },

    { "probing", "waiting for the kernel to be ready",
      wait(READY) | wait(LEFTOVER) | wait(FENCE) | wait(HELD)
      | wait(TIMEOUT) | wait(ORPHAN) | wait(INTERRUPT) | wait(OVER)
      | wait(STUCK) | NGX_KEXEC_WAITS_WORKER },

    { "setup", "preparing the kernel",
      wait(READY) | wait(LINK) | wait(CONNECT) | wait(FENCE) | wait(HELD)
      | wait(SETUP) | wait(TIMEOUT) | wait(SHUTDOWN) },

    { "sent", "waiting for the code to start",
      wait(READY) | wait(LINK) | wait(CONNECT) | wait(FENCE) | wait(HELD)
      | wait(START) | wait(SILENT) | wait(TIMEOUT) | NGX_KEXEC_WAITS_WORKER },

    { "busy", "running code",
      wait(LINK) | wait(CONNECT) | wait(FENCE) | wait(IDLE) | wait(REPLY)
      | wait(VERDICT) | wait(SILENT) | wait(TIMEOUT) | wait(INTERRUPT)
      | wait(STUCK) | NGX_KEXEC_WAITS_WORKER },

    { "ending", "asking whether the output is whole",
      wait(CONNECT) | wait(VERDICT) | NGX_KEXEC_WAITS_WORKER },

    { "barrier", "waiting for the kernel after an interrupt",
      wait(CONNECT) | wait(FENCE) | wait(HELD) | wait(OVER) | wait(STUCK)
      | wait(BARRIER) | NGX_KEXEC_WAITS_WORKER },

    { "restoring", "putting variables back",
      wait(CONNECT) | wait(FENCE) | wait(SETUP) | wait(RESTORE)
      | NGX_KEXEC_WAITS_WORKER },

    { "restarting", "restarting the kernel",
      wait(CONNECT) | wait(RESTART) | NGX_KEXEC_WAITS_WORKER },

    { "dropping", "deleting a Jupyter session",
      NGX_KEXEC_WAITS_WORKER },

    { "leaving", "waiting for an interrupt's answer",
      NGX_KEXEC_WAITS_WORKER },

    { "done", NULL,
      0 }
};
