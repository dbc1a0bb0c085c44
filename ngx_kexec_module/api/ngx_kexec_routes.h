
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_ROUTES_H_INCLUDED_
#define _NGX_KEXEC_ROUTES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * A handler of the routing table, with the segment of the path that the route
 * leaves open; the body is not read yet.  It returns what a content handler
 * returns.
 */
typedef ngx_int_t (*ngx_kexec_handler_pt)(ngx_http_request_t *r,
    ngx_str_t *id);


/* finds the handler of a request by its method and path below the location */
ngx_int_t ngx_kexec_route(ngx_http_request_t *r);


#endif /* _NGX_KEXEC_ROUTES_H_INCLUDED_ */
