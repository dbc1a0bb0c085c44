
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_WORDS_H_INCLUDED_
#define _NGX_KEXEC_WORDS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>


/* what the machine says, in words */


/* tells the client an error (the first one counts), ends its stream */
void ngx_kexec_tell(ngx_kexec_execution_t *ex, ngx_kexec_say_e say,
    ngx_uint_t n);
void ngx_kexec_tell_end(ngx_kexec_execution_t *ex);

void ngx_kexec_tell_log(ngx_kexec_execution_t *ex, ngx_kexec_say_e say,
    ngx_uint_t n);

/*
 * Why a new context failed: the status, and a sentence in buf, which has
 * NGX_KEXEC_SENTENCE bytes.
 */
ngx_uint_t ngx_kexec_tell_failure(ngx_kexec_execution_t *ex, u_char *buf,
    ngx_str_t *sentence);


#endif /* _NGX_KEXEC_WORDS_H_INCLUDED_ */
