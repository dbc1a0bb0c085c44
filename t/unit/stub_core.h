
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _STUB_CORE_H_INCLUDED_
#define _STUB_CORE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * As much of nginx's core as unit tests and fuzzers link: one pool, arrays and
 * strings.  Each piece of the pool is memory of its own, so that a sanitizer
 * sees what goes beyond it.
 */


extern ngx_pool_t  stub_pool;

/* gives back all that came from the pool; elts of one array, ahead of that */
void stub_pool_free(void);
void stub_free_array(ngx_array_t *a);


#endif /* _STUB_CORE_H_INCLUDED_ */
