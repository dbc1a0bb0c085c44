
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_PHASE_H_INCLUDED_
#define _NGX_KEXEC_PHASE_H_INCLUDED_


/* what of a context's record is known to all who work on it */


/* what a kernel's process was given; 0: nothing */
#define NGX_KEXEC_PREPARED       1          /* directory, kexec_env */
#define NGX_KEXEC_PREPARED_ENVS  2          /* and those of kexec_envs_url */

/* who waits in the zone looks again: a wake-up may be lost with its worker */
#define NGX_KEXEC_RECHECK_TIME   500

/* a kernel that is to be killed may take its time to end in order; in ms */
#define NGX_KEXEC_RESTART_TIME   60000


/* what the holder of a slot is doing, for those who wait */

typedef enum {
    NGX_KEXEC_PHASE_FREE = 0,
    NGX_KEXEC_PHASE_PREPARING,
    NGX_KEXEC_PHASE_RUNNING,
    NGX_KEXEC_PHASE_CANCELLING,             /* its client left or a deadline */
    NGX_KEXEC_PHASE_RESTORING,
    NGX_KEXEC_PHASE_RESTARTING,
    NGX_KEXEC_PHASE_RECONNECTING,
    NGX_KEXEC_PHASE_FOREIGN,                /* somebody else's code runs */
    NGX_KEXEC_PHASE_LEFTOVER                /* what earlier code left running */
} ngx_kexec_phase_e;


#endif /* _NGX_KEXEC_PHASE_H_INCLUDED_ */
