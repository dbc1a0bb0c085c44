
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_park.h>


ngx_int_t
ngx_kexec_park(ngx_http_request_t *r)
{
    ngx_event_t  *rev;

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    rev = r->connection->read;

    /* a client that left before this is seen now or never */

    if (rev->ready) {
        ngx_post_event(rev, &ngx_posted_events);
        return NGX_OK;
    }

    return ngx_handle_read_event(rev, 0);
}
