
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_kexec_hands.h>
#include <ngx_kexec_interruption.h>


static void ngx_kexec_interruption_notice(ngx_kexec_claim_t *claim);
static void ngx_kexec_interruption_timer(ngx_event_t *ev);
static void ngx_kexec_interruption_look(ngx_kexec_interruption_t *in);
static void ngx_kexec_interruption_end(ngx_kexec_interruption_t *in,
    ngx_kexec_interruption_e end);


ngx_int_t
ngx_kexec_interruption_enter(ngx_kexec_interruption_t *in,
    ngx_kexec_zone_t *zone, ngx_kexec_ref_t *context, ngx_uint_t limit,
    ngx_msec_t timeout)
{
    ngx_int_t  rc;

    in->limit = ngx_current_msec + timeout;

    in->claim.handler = ngx_kexec_interruption_notice;
    in->claim.data = in;
    in->claim.context = *context;

    in->timer.handler = ngx_kexec_interruption_timer;
    in->timer.data = in;
    in->timer.log = ngx_cycle->log;

    /* watched first, so that no change is missed */

    rc = ngx_kexec_claim_watch(zone, &in->claim, limit);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_kexec_claim_interrupt(zone, context, &in->holder);

    if (rc != NGX_OK) {
        ngx_kexec_interruption_leave(in);
        return rc;
    }

    ngx_add_timer(&in->timer, ngx_min(NGX_KEXEC_RECHECK_TIME, timeout));

    return NGX_OK;
}


static void
ngx_kexec_interruption_notice(ngx_kexec_claim_t *claim)
{
    ngx_kexec_interruption_look(claim->data);
}


static void
ngx_kexec_interruption_timer(ngx_event_t *ev)
{
    ngx_kexec_interruption_look(ev->data);
}


static void
ngx_kexec_interruption_look(ngx_kexec_interruption_t *in)
{
    ngx_msec_t      ms, last;
    ngx_msec_int_t  left;

    if (!ngx_kexec_claim_holds(in->claim.zone, &in->claim.context,
                               &in->holder))
    {
        ngx_kexec_interruption_end(in, NGX_KEXEC_INTERRUPTION_OVER);
        return;
    }

    left = (ngx_msec_int_t) (in->limit - ngx_current_msec);

    if (left <= 0) {
        ngx_kexec_interruption_end(in, NGX_KEXEC_INTERRUPTION_STUCK);
        return;
    }

    left = ngx_min(NGX_KEXEC_RECHECK_TIME, left);

    if (ngx_kexec_hands_leaving(&ms, &last) == NGX_OK) {

        if (ms == 0) {
            ngx_kexec_interruption_end(in, NGX_KEXEC_INTERRUPTION_SHUTDOWN);
            return;
        }

        left = ngx_min(left, (ngx_msec_int_t) ms);
    }

    ngx_add_timer(&in->timer, (ngx_msec_t) left);
}


static void
ngx_kexec_interruption_end(ngx_kexec_interruption_t *in,
    ngx_kexec_interruption_e end)
{
    ngx_kexec_interruption_leave(in);

    in->handler(in->data, end);
}


void
ngx_kexec_interruption_leave(ngx_kexec_interruption_t *in)
{
    ngx_kexec_claim_leave(&in->claim);

    if (in->timer.timer_set) {
        ngx_del_timer(&in->timer);
    }
}
