
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_answer.h>
#include <ngx_kexec_contexts.h>
#include <ngx_kexec_execute.h>
#include <ngx_kexec_health.h>
#include <ngx_kexec_hold.h>
#include <ngx_kexec_operate.h>
#include <ngx_kexec_routes.h>
#include <ngx_kexec_settings.h>


/* "*" stands for one segment, which is handed to the handler */

typedef struct {
    ngx_uint_t              method;
    ngx_str_t               path;
    ngx_kexec_handler_pt    handler;
} ngx_kexec_route_t;


static ngx_uint_t ngx_kexec_route_match(ngx_str_t *path, ngx_str_t *pattern,
    ngx_str_t *id);
static void ngx_kexec_route_allow(ngx_http_request_t *r, ngx_str_t *path);
static void ngx_kexec_route_redirect(ngx_http_request_t *r);


static ngx_kexec_route_t  ngx_kexec_routes[] = {

    { NGX_HTTP_GET, ngx_string("/health"), ngx_kexec_health_handler },

    { NGX_HTTP_POST, ngx_string("/execute"), ngx_kexec_execute_handler },

    { NGX_HTTP_GET, ngx_string("/contexts"), ngx_kexec_list_handler },

    { NGX_HTTP_POST, ngx_string("/contexts"), ngx_kexec_create_handler },

    { NGX_HTTP_DELETE, ngx_string("/contexts/*"), ngx_kexec_delete_handler },

    { NGX_HTTP_POST, ngx_string("/contexts/*/restart"),
      ngx_kexec_restart_handler },

    { NGX_HTTP_POST, ngx_string("/contexts/*/interrupt"),
      ngx_kexec_interrupt_handler },

    { 0, ngx_null_string, NULL }
};


ngx_int_t
ngx_kexec_route(ngx_http_request_t *r)
{
    ngx_int_t                   rc;
    ngx_str_t                   path, id, text;
    ngx_uint_t                  known;
    ngx_kexec_route_t          *route;
    ngx_http_kexec_loc_conf_t  *conf;

    conf = ngx_http_get_module_loc_conf(r, ngx_http_kexec_module);

    /* answers tell what was done, whatever the client has of older ones */

    r->disable_not_modified = 1;

    /* the location's own "/" belongs to what is below it */

    path = r->uri;

    if (r->valid_location && conf->location.len <= path.len) {
        path.len -= conf->location.len;
        path.data += conf->location.len;

        if (conf->location.len
            && conf->location.data[conf->location.len - 1] == '/')
        {
            path.len++;
            path.data--;
        }
    }

    known = 0;

    for (route = ngx_kexec_routes; route->handler; route++) {

        if (!ngx_kexec_route_match(&path, &route->path, &id)) {
            continue;
        }

        known = 1;

        if (r->method != route->method) {
            continue;
        }

        if (route->handler != ngx_kexec_health_handler) {
            rc = ngx_kexec_hold(r, route->handler, &id);

            if (rc != NGX_DECLINED) {
                return rc;
            }
        }

        return route->handler(r, &id);
    }

    /* whatever body there is stays unread */

    if (ngx_http_discard_request_body(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->main->count++;

    if (known) {
        ngx_kexec_route_allow(r, &path);
        return NGX_DONE;
    }

    if (path.len > 1 && path.data[path.len - 1] == '/') {

        path.len--;

        for (route = ngx_kexec_routes; route->handler; route++) {

            if (ngx_kexec_route_match(&path, &route->path, &id)) {
                ngx_kexec_route_redirect(r);
                return NGX_DONE;
            }
        }
    }

    ngx_str_set(&text, "{\"detail\":\"Not Found\"}");
    ngx_kexec_answer_json(r, NGX_HTTP_NOT_FOUND, &text);

    return NGX_DONE;
}


static ngx_uint_t
ngx_kexec_route_match(ngx_str_t *path, ngx_str_t *pattern, ngx_str_t *id)
{
    u_char  *p, *last, *q, *end;

    p = path->data;
    last = p + path->len;
    q = pattern->data;
    end = q + pattern->len;

    ngx_str_null(id);

    while (q < end) {

        if (*q == '*') {
            id->data = p;

            while (p < last && *p != '/') {
                p++;
            }

            id->len = p - id->data;

            if (id->len == 0) {
                return 0;
            }

            q++;
            continue;
        }

        if (p == last || *p != *q) {
            return 0;
        }

        p++;
        q++;
    }

    return p == last;
}


static void
ngx_kexec_route_allow(ngx_http_request_t *r, ngx_str_t *path)
{
    u_char             *p;
    ngx_str_t           allow, id, text;
    ngx_kexec_route_t  *route;

    static u_char       buf[] = "DELETE, GET, POST";

    p = ngx_pnalloc(r->pool, sizeof(buf));
    if (p == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    allow.data = p;

    for (route = ngx_kexec_routes; route->handler; route++) {

        if (!ngx_kexec_route_match(path, &route->path, &id)) {
            continue;
        }

        if (p != allow.data) {
            p = ngx_cpymem(p, ", ", 2);
        }

        switch (route->method) {

        case NGX_HTTP_GET:
            p = ngx_cpymem(p, "GET", 3);
            break;

        case NGX_HTTP_POST:
            p = ngx_cpymem(p, "POST", 4);
            break;

        default:
            p = ngx_cpymem(p, "DELETE", 6);
        }
    }

    allow.len = p - allow.data;

    if (ngx_kexec_add_header(r, "Allow", &allow) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_str_set(&text, "{\"detail\":\"Method Not Allowed\"}");
    ngx_kexec_answer_json(r, NGX_HTTP_NOT_ALLOWED, &text);
}


/*
 * "/health/" means "/health".  The location is the path alone: to a header that
 * it knows as Location nginx adds its own port, which is not the one that the
 * client used where something maps ports, or TLS ends, in front.
 */

static void
ngx_kexec_route_redirect(ngx_http_request_t *r)
{
    u_char     *p;
    uintptr_t   escape;
    ngx_str_t   location, text;

    escape = 2 * ngx_escape_uri(NULL, r->uri.data, r->uri.len - 1,
                                NGX_ESCAPE_URI);

    p = ngx_pnalloc(r->pool, r->uri.len + escape + 1 + r->args.len);
    if (p == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    location.data = p;

    p = (u_char *) ngx_escape_uri(p, r->uri.data, r->uri.len - 1,
                                  NGX_ESCAPE_URI);
    if (r->args.len) {
        *p++ = '?';
        p = ngx_cpymem(p, r->args.data, r->args.len);
    }

    location.len = p - location.data;

    if (ngx_kexec_add_header(r, "Location", &location) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_str_null(&text);
    ngx_kexec_answer_text(r, NGX_HTTP_TEMPORARY_REDIRECT, &text);
}
