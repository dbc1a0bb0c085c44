
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_conf.h>
#include <ngx_kexec_contexts.h>
#include <ngx_kexec_health.h>
#include <ngx_kexec_hold.h>
#include <ngx_kexec_operation.h>
#include <ngx_kexec_report.h>
#include <ngx_kexec_sync.h>


static ngx_int_t ngx_http_kexec_text_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_kexec_time_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
#if (NGX_DEBUG)
static ngx_int_t ngx_http_kexec_zone_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
#endif

static ngx_int_t ngx_http_kexec_add_variables(ngx_conf_t *cf);
static ngx_int_t ngx_http_kexec_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_kexec_init_process(ngx_cycle_t *cycle);
static void ngx_http_kexec_exit_process(ngx_cycle_t *cycle);
static ngx_kexec_zone_t *ngx_kexec_cycle_zone(ngx_cycle_t *cycle);


static ngx_http_module_t  ngx_http_kexec_module_ctx = {
    ngx_http_kexec_add_variables,          /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_http_kexec_create_main_conf,       /* create main configuration */
    ngx_http_kexec_init_main_conf,         /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_kexec_create_loc_conf,        /* create location configuration */
    ngx_http_kexec_merge_loc_conf          /* merge location configuration */
};


ngx_module_t  ngx_http_kexec_module = {
    NGX_MODULE_V1,
    &ngx_http_kexec_module_ctx,            /* module context */
    ngx_http_kexec_commands,               /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_kexec_init_module,            /* init module */
    ngx_http_kexec_init_process,           /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_kexec_exit_process,           /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


#define NGX_KEXEC_VAR_CONTEXT    0
#define NGX_KEXEC_VAR_EXECUTION  1
#define NGX_KEXEC_VAR_STATUS     2
#define NGX_KEXEC_VAR_QUEUE      3
#define NGX_KEXEC_VAR_RUN        4


static ngx_http_variable_t  ngx_http_kexec_vars[] = {

    { ngx_string("kexec_context"), NULL, ngx_http_kexec_text_variable,
      NGX_KEXEC_VAR_CONTEXT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kexec_execution"), NULL, ngx_http_kexec_text_variable,
      NGX_KEXEC_VAR_EXECUTION, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kexec_status"), NULL, ngx_http_kexec_text_variable,
      NGX_KEXEC_VAR_STATUS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kexec_queue_time"), NULL, ngx_http_kexec_time_variable,
      NGX_KEXEC_VAR_QUEUE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kexec_run_time"), NULL, ngx_http_kexec_time_variable,
      NGX_KEXEC_VAR_RUN, NGX_HTTP_VAR_NOCACHEABLE, 0 },

#if (NGX_DEBUG)
    { ngx_string("kexec_zone"), NULL, ngx_http_kexec_zone_variable,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },
#endif

      ngx_http_null_variable
};


static ngx_str_t  ngx_kexec_statuses[] = {
    ngx_null_string,
    ngx_string("ok"),
    ngx_string("error"),
    ngx_string("cancelled"),
    ngx_string("timeout"),
    ngx_string("rejected"),
    ngx_string("died")
};


static ngx_int_t
ngx_http_kexec_text_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t           *status;
    ngx_kexec_report_t  *report;

    report = ngx_kexec_find_report(r);

    if (report == NULL
        || (data == NGX_KEXEC_VAR_CONTEXT && !report->has_context)
        || (data == NGX_KEXEC_VAR_EXECUTION && !report->has_execution)
        || (data == NGX_KEXEC_VAR_STATUS
            && report->status == NGX_KEXEC_STATUS_NONE))
    {
        v->not_found = 1;
        return NGX_OK;
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    switch (data) {

    case NGX_KEXEC_VAR_CONTEXT:
        v->len = NGX_KEXEC_UUID_LEN;
        v->data = report->context;
        break;

    case NGX_KEXEC_VAR_EXECUTION:
        v->len = NGX_KEXEC_UUID_LEN;
        v->data = report->execution;
        break;

    default: /* NGX_KEXEC_VAR_STATUS */
        status = &ngx_kexec_statuses[report->status];
        v->len = status->len;
        v->data = status->data;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_kexec_time_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char              *p;
    ngx_msec_t           ms;
    ngx_kexec_report_t  *report;

    report = ngx_kexec_find_report(r);

    if (report == NULL
        || (data == NGX_KEXEC_VAR_QUEUE && !report->has_queue_time)
        || (data == NGX_KEXEC_VAR_RUN && !report->has_run_time))
    {
        v->not_found = 1;
        return NGX_OK;
    }

    ms = (data == NGX_KEXEC_VAR_QUEUE) ? report->queue_time : report->run_time;

    p = ngx_pnalloc(r->pool, NGX_TIME_T_LEN + 4);
    if (p == NULL) {
        return NGX_ERROR;
    }

    v->len = ngx_sprintf(p, "%T.%03M", (time_t) (ms / 1000), ms % 1000) - p;
    v->data = p;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


#if (NGX_DEBUG)

/* the zone's state, for tests: all of it is looked at under the lock */

static ngx_int_t
ngx_http_kexec_zone_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    size_t                  len;
    u_char                 *p;
    ngx_uint_t              wrong;
    ngx_kexec_zone_t       *zone;
    ngx_kexec_zone_stat_t   stat;

    zone = ngx_kexec_request_zone(r);

    if (zone == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    len = 128 + 8 * NGX_INT_T_LEN + NGX_OFF_T_LEN;

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    wrong = ngx_kexec_zone_wrong(zone);

    ngx_kexec_zone_stat(zone, &stat);

    v->len = ngx_snprintf(p, len, "{\"contexts\": %ui, \"claims\": %ui, "
                          "\"held\": %ui, \"queued\": %ui, \"dead\": %ui, "
                          "\"idle\": %ui, \"rebuilt\": %ui, \"wrong\": %ui, "
                          "\"temp\": %O}",
                          stat.contexts, stat.claims, stat.held, stat.queued,
                          stat.dead, stat.idle, stat.rebuilt, wrong,
                          ngx_kexec_zone_temp(zone))
             - p;
    v->data = p;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}

#endif


static ngx_int_t
ngx_http_kexec_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_kexec_vars; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


static ngx_kexec_zone_t *
ngx_kexec_cycle_zone(ngx_cycle_t *cycle)
{
    ngx_http_kexec_main_conf_t  *kmcf;

    /* the http block may be missing */

    kmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_kexec_module);

    return kmcf ? kmcf->zone : NULL;
}


static ngx_int_t
ngx_http_kexec_init_module(ngx_cycle_t *cycle)
{
    ngx_kexec_zone_t  *zone;

    zone = ngx_kexec_cycle_zone(cycle);

    if (zone == NULL || ngx_test_config) {
        return NGX_OK;
    }

    return ngx_kexec_zone_init_module(zone, cycle);
}


static ngx_int_t
ngx_http_kexec_init_process(ngx_cycle_t *cycle)
{
    ngx_kexec_zone_t            *zone;
    ngx_http_kexec_main_conf_t  *kmcf;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    zone = ngx_kexec_cycle_zone(cycle);

    if (zone == NULL) {
        return NGX_OK;
    }

    if (ngx_kexec_zone_init_process(zone, cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    kmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_kexec_module);

    ngx_kexec_hold_init(cycle, zone);
    ngx_kexec_sync_init(cycle, kmcf, ngx_kexec_operation_expire);

    return ngx_kexec_startup(cycle, kmcf);
}


static void
ngx_http_kexec_exit_process(ngx_cycle_t *cycle)
{
    ngx_kexec_zone_t  *zone;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return;
    }

    zone = ngx_kexec_cycle_zone(cycle);

    if (zone) {
        ngx_kexec_zone_exit_process(zone);
    }
}
