
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _STUB_NGINX_H_INCLUDED_
#define _STUB_NGINX_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_kexec_zone_int.h>
#include "stub_core.h"


/*
 * As much of nginx as the zone needs to run without it: a configuration that
 * is parsed twice, a shared memory zone with its lock, and an event loop that
 * knows eventfds, posted events and timers.
 */


typedef struct {
    ngx_cycle_t        cycle;
    ngx_cycle_t        old;
    ngx_conf_t         conf;

    ngx_shm_zone_t     zones[4];
    ngx_shm_zone_t     old_zones[4];

    u_char             error[1024];     /* what was logged last */
    ngx_uint_t         level;
} stub_t;


extern stub_t  stub;

/* called by who waits for the lock: a master has to unlock it */
extern void  (*stub_spin)(void);


void stub_start(void);

/* forgets all zones, or makes the present ones those of the old cycle */
void stub_reset(void);
void stub_reload(void);

ngx_kexec_zone_t *stub_add(const char *name, size_t size);

/* what nginx does with a zone that was added; NULL if its init refused */
ngx_kexec_zone_t *stub_init(ngx_uint_t i);
void stub_free(ngx_uint_t i);

/* a new zone, in a new configuration */
ngx_kexec_zone_t *stub_zone(size_t size);

/* what must not be done under the zone's lock (stub_lock.c) */
void stub_locked(void);
void stub_unlocked(void);
void stub_forbid(const char *name);

/* what the master does when a worker died */
void stub_unlock(ngx_kexec_zone_t *zone, ngx_pid_t pid);

/* runs the handlers of the n-th channel that was added, woken or not */
void stub_channel(ngx_uint_t n);
ngx_uint_t stub_channels(void);
void stub_forget_channels(void);

/* runs the timers that are due, or all of them */
void stub_timers(ngx_uint_t all);

/* runs what is posted, then waits up to ms for an event, and runs timers */
void stub_loop(ngx_msec_t ms);


#endif /* _STUB_NGINX_H_INCLUDED_ */
