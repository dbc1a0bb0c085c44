
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_WAKE_H_INCLUDED_
#define _NGX_KEXEC_WAKE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>


/*
 * Waking another worker: a table of eventfds made once, before any fork, so
 * that old and new generations of workers can wake each other.  What a wake
 * is about stands in shared memory; a wake too many is harmless.
 */


/*
 * In the master (or the only process), before workers are forked; a second
 * call, on a reload, does nothing.  n: how many.  A missing eventfd is not an
 * error: waiters re-check by a timer of their own.
 */
ngx_int_t ngx_kexec_wake_init(ngx_uint_t n, ngx_log_t *log);

/* in a worker: handler runs in its event loop whenever slot i is woken */
ngx_int_t ngx_kexec_wake_listen(ngx_cycle_t *cycle, ngx_uint_t i,
    void (*handler)(void *data), void *data);

/* wakes whoever listens on i; by a posted event if that is this process */
void ngx_kexec_wake(ngx_uint_t i);


#endif /* _NGX_KEXEC_WAKE_H_INCLUDED_ */
