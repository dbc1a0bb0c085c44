
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_INTERRUPTION_H_INCLUDED_
#define _NGX_KEXEC_INTERRUPTION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_kexec_zone.h>


/*
 * A POST /contexts/ID/interrupt, until the slot moved on: the execution that
 * holds it is asked to interrupt its code, and the context is watched.
 */

typedef enum {
    NGX_KEXEC_INTERRUPTION_OVER = 0,            /* what ran has ended */
    NGX_KEXEC_INTERRUPTION_STUCK,               /* it does not react */
    NGX_KEXEC_INTERRUPTION_SHUTDOWN             /* this worker has to end */
} ngx_kexec_interruption_e;


/* called once, unless the interruption is left before */
typedef void (*ngx_kexec_interruption_pt)(void *data,
    ngx_kexec_interruption_e end);


/* the caller zeroes it, and sets handler and data */

typedef struct {
    ngx_kexec_interruption_pt   handler;
    void                       *data;

    ngx_kexec_claim_t           claim;
    ngx_kexec_ref_t             holder;
    ngx_event_t                 timer;
    ngx_msec_t                  limit;
} ngx_kexec_interruption_t;


/*
 * limit: how many may wait; timeout: for how long.  NGX_OK; NGX_DONE: none of
 * ours runs; or what ngx_kexec_claim_watch() or _interrupt() refused with.
 */
ngx_int_t ngx_kexec_interruption_enter(ngx_kexec_interruption_t *in,
    ngx_kexec_zone_t *zone, ngx_kexec_ref_t *context, ngx_uint_t limit,
    ngx_msec_t timeout);

/* nobody waits for it any more; harmless when it is over */
void ngx_kexec_interruption_leave(ngx_kexec_interruption_t *in);


#endif /* _NGX_KEXEC_INTERRUPTION_H_INCLUDED_ */
