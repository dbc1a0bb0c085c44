
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>


void
ngx_kexec_on(ngx_kexec_execution_t *ex, ngx_kexec_on_e what, ngx_int_t n)
{
    ngx_kexec_machine_event_t  ev;

    ngx_memzero(&ev, sizeof(ngx_kexec_machine_event_t));

    ev.what = what;
    ev.n = n;

    ex->event(ex, &ev);
}
