
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_CHANNEL_H_INCLUDED_
#define _NGX_KEXEC_CHANNEL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>


/* what goes to the kernel; messages come back as events of the machine's */


/* takes ex->kernel: ON_KERNEL follows; NGX_ERROR: no memory */
ngx_int_t ngx_kexec_channel_take(ngx_kexec_execution_t *ex);

/* where there is no link, nothing is sent, and nothing said: it is lost */
void ngx_kexec_channel_send_code(ngx_kexec_execution_t *ex);
void ngx_kexec_channel_send_fence(ngx_kexec_execution_t *ex);
void ngx_kexec_channel_send_again(ngx_kexec_execution_t *ex);
void ngx_kexec_channel_send_step(ngx_kexec_execution_t *ex);


#endif /* _NGX_KEXEC_CHANNEL_H_INCLUDED_ */
