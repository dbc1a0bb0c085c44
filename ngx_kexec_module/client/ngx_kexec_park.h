
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_PARK_H_INCLUDED_
#define _NGX_KEXEC_PARK_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Parks a request whose body was read until somebody answers it; a client that
 * leaves meanwhile, or left already, ends it.  NGX_ERROR: nobody looks after
 * it, the caller must finalize it.
 */
ngx_int_t ngx_kexec_park(ngx_http_request_t *r);


#endif /* _NGX_KEXEC_PARK_H_INCLUDED_ */
