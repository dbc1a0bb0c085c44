
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_kexec_hands.h>


/* so long before worker_shutdown_timeout is over all is ended in words */
#define NGX_KEXEC_SHUTDOWN_TIME  1000


void
ngx_kexec_hands_know(ngx_kexec_context_t *ctx, ngx_kexec_facts_t *facts)
{
    facts->epoch = ctx->epoch;
    facts->process = ctx->process;
    facts->prepared = ctx->prepared;
    facts->ready = ctx->ready;
    facts->in_order = ctx->in_order;
    facts->dirty = ctx->dirty;
    facts->owes_restore = ctx->owes_restore;
    facts->session = (ctx->session.len != 0);
    facts->kernel = (ctx->kernel.len != 0);
}


void
ngx_kexec_hands_facts(ngx_kexec_facts_t *facts, ngx_kexec_context_t *ctx)
{
    ctx->epoch = facts->epoch;
    ctx->process = facts->process;
    ctx->prepared = facts->prepared;
    ctx->ready = facts->ready;
    ctx->in_order = facts->in_order;
    ctx->dirty = facts->dirty;
    ctx->owes_restore = facts->owes_restore;

    if (!facts->kernel) {
        ctx->kernel.len = 0;
    }
}


ngx_int_t
ngx_kexec_hands_leaving(ngx_msec_t *ms, ngx_msec_t *last)
{
    ngx_msec_t        leaving, timeout;
    ngx_core_conf_t  *ccf;

    leaving = ngx_kexec_zone_leaving();

    ccf = (ngx_core_conf_t *) ngx_get_conf(ngx_cycle->conf_ctx,
                                           ngx_core_module);
    timeout = ccf->shutdown_timeout;

    if (leaving == 0 || timeout == 0) {
        return NGX_DECLINED;
    }

    *last = ngx_min(timeout / 2, NGX_KEXEC_SHUTDOWN_TIME);

    timeout -= *last;
    timeout -= ngx_min(timeout, ngx_current_msec - leaving);

    *ms = timeout;

    return NGX_OK;
}


ngx_uint_t
ngx_kexec_hands_due(ngx_uint_t waits, ngx_msec_t *wait, ngx_uint_t i)
{
    return (waits & (1 << i))
           && (ngx_msec_int_t) (wait[i] - ngx_current_msec) <= 0;
}


/*
 * What is not done always has its timer set: a worker that leaves gracefully
 * waits for timers only.  One that is set too early stays: that it fires once
 * for nothing is cheaper.
 */

void
ngx_kexec_hands_arm(ngx_event_t *timer, ngx_uint_t waits, ngx_msec_t *wait,
    ngx_uint_t n)
{
    ngx_uint_t      i;
    ngx_msec_int_t  ms, min;

    min = 10000;

    for (i = 0; i < n; i++) {

        if (waits & (1 << i)) {
            ms = (ngx_msec_int_t) (wait[i] - ngx_current_msec);
            min = ngx_min(min, ngx_max(ms, 0));
        }
    }

    if (timer->timer_set) {

        if ((ngx_msec_int_t) (ngx_current_msec + min - timer->timer.key) >= 0)
        {
            return;
        }

        /* adding alone would keep a time that is less than 300 ms off */

        ngx_del_timer(timer);
    }

    ngx_add_timer(timer, (ngx_msec_t) min);
}
