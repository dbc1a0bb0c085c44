
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_HANDS_H_INCLUDED_
#define _NGX_KEXEC_HANDS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_machine.h>
#include <ngx_kexec_zone.h>


/* what the hands of an execution and those of an operation have in common */


/* what is known of the context, as it was copied out of its record; and back */
void ngx_kexec_hands_know(ngx_kexec_context_t *ctx, ngx_kexec_facts_t *facts);
void ngx_kexec_hands_facts(ngx_kexec_facts_t *facts, ngx_kexec_context_t *ctx);

/*
 * NGX_OK: this worker is leaving, and has a limit for that: in *ms all are to
 * be told, and *last is left behind that.  Else NGX_DECLINED.
 */
ngx_int_t ngx_kexec_hands_leaving(ngx_msec_t *ms, ngx_msec_t *last);

/* a machine's moments: bits of those that are set, and when each is */

/* is the i-th one there? */
ngx_uint_t ngx_kexec_hands_due(ngx_uint_t waits, ngx_msec_t *wait,
    ngx_uint_t i);

/* the timer is set for the next of n, and in any case */
void ngx_kexec_hands_arm(ngx_event_t *timer, ngx_uint_t waits,
    ngx_msec_t *wait, ngx_uint_t n);


#endif /* _NGX_KEXEC_HANDS_H_INCLUDED_ */
