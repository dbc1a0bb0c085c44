
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_report.h>


static void ngx_kexec_report_cleanup(void *data);


ngx_kexec_report_t *
ngx_kexec_report(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;
    ngx_kexec_report_t  *report;

    report = ngx_kexec_find_report(r);
    if (report) {
        return report;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_kexec_report_t));
    if (cln == NULL) {
        return NULL;
    }

    report = cln->data;
    ngx_memzero(report, sizeof(ngx_kexec_report_t));

    cln->handler = ngx_kexec_report_cleanup;

    return report;
}


/*
 * r->ctx is wiped by internal redirects, so the report is found as a cleanup
 * of the request's pool, the way the realip module does it.
 */

ngx_kexec_report_t *
ngx_kexec_find_report(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;

    for (cln = r->main->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_kexec_report_cleanup) {
            return cln->data;
        }
    }

    return NULL;
}


static void
ngx_kexec_report_cleanup(void *data)
{
    /* only a mark to find the report by */
}
