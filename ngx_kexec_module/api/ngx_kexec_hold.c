
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_hold.h>


/* how long requests wait for the first answer, and how often they look */
#define NGX_KEXEC_SYNC_HOLD_TIME   5000
#define NGX_KEXEC_SYNC_LOOK_TIME   20


/* this worker's requests that came too early */

typedef struct {
    ngx_kexec_zone_t           *zone;
    ngx_queue_t                 waiters;
    ngx_event_t                 look;
    ngx_connection_t            dumb;
} ngx_kexec_hold_t;


typedef struct {
    ngx_queue_t                 queue;
    ngx_http_request_t         *request;
    ngx_kexec_handler_pt        handler;
    ngx_str_t                   id;
    ngx_msec_t                  limit;
} ngx_kexec_hold_waiter_t;


static void ngx_kexec_hold_look(ngx_event_t *ev);
static void ngx_kexec_hold_cleanup(void *data);


static ngx_kexec_hold_t  ngx_kexec_holding;


void
ngx_kexec_hold_init(ngx_cycle_t *cycle, ngx_kexec_zone_t *zone)
{
    ngx_kexec_hold_t  *hold;

    hold = &ngx_kexec_holding;

    hold->zone = zone;

    ngx_queue_init(&hold->waiters);

    /* debug logs take an event's data for a connection */

    hold->dumb.fd = (ngx_socket_t) -1;

    hold->look.handler = ngx_kexec_hold_look;
    hold->look.data = &hold->dumb;
    hold->look.log = cycle->log;
}


ngx_int_t
ngx_kexec_hold(ngx_http_request_t *r, ngx_kexec_handler_pt handler,
    ngx_str_t *id)
{
    ngx_kexec_hold_t         *hold;
    ngx_http_cleanup_t       *cln;
    ngx_kexec_hold_waiter_t  *waiter;

    hold = &ngx_kexec_holding;

    if (ngx_kexec_zone_seen(hold->zone) != NGX_KEXEC_SEEN_NONE) {
        return NGX_DECLINED;
    }

    cln = ngx_http_cleanup_add(r, sizeof(ngx_kexec_hold_waiter_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    waiter = cln->data;

    waiter->request = r;
    waiter->handler = handler;
    waiter->id = *id;
    waiter->limit = ngx_current_msec + NGX_KEXEC_SYNC_HOLD_TIME;

    ngx_queue_insert_tail(&hold->waiters, &waiter->queue);

    cln->handler = ngx_kexec_hold_cleanup;

    if (!hold->look.timer_set) {
        ngx_add_timer(&hold->look, NGX_KEXEC_SYNC_LOOK_TIME);
    }

    r->main->count++;

    return NGX_DONE;
}


/* another worker may be the one that asks, so the zone is looked at */

static void
ngx_kexec_hold_look(ngx_event_t *ev)
{
    ngx_queue_t              *q;
    ngx_connection_t         *c;
    ngx_kexec_hold_t         *hold;
    ngx_http_request_t       *r;
    ngx_kexec_hold_waiter_t  *waiter;

    hold = &ngx_kexec_holding;

    while (!ngx_queue_empty(&hold->waiters)) {

        q = ngx_queue_head(&hold->waiters);
        waiter = ngx_queue_data(q, ngx_kexec_hold_waiter_t, queue);

        if (ngx_kexec_zone_seen(hold->zone) == NGX_KEXEC_SEEN_NONE
            && (ngx_msec_int_t) (waiter->limit - ngx_current_msec) > 0)
        {
            break;
        }

        /* in the order of their arrival */

        ngx_queue_remove(q);

        r = waiter->request;
        c = r->connection;

        waiter->request = NULL;

        ngx_http_set_log_request(c->log, r);

        ngx_http_finalize_request(r, waiter->handler(r, &waiter->id));
        ngx_http_run_posted_requests(c);
    }

    if (!ngx_queue_empty(&hold->waiters)) {
        ngx_add_timer(&hold->look, NGX_KEXEC_SYNC_LOOK_TIME);
    }
}


static void
ngx_kexec_hold_cleanup(void *data)
{
    ngx_kexec_hold_waiter_t *waiter = data;

    if (waiter->request) {
        ngx_queue_remove(&waiter->queue);
        waiter->request = NULL;
    }
}
