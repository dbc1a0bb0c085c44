
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_VERDICT_H_INCLUDED_
#define _NGX_KEXEC_VERDICT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_execution.h>


/* the code's events for the client, and how the code ended */


/*
 * Answers an input_request of the code's; NGX_DECLINED: it is not one that can
 * be answered, and tells nothing.
 */
ngx_int_t ngx_kexec_verdict_input(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg);

/*
 * A message of the code's on iopub; its reply; its end, before anything else is
 * told.  _release() tells what is held, as unconfirmed, or frees it when the
 * client is gone.
 */
void ngx_kexec_verdict_message(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg);
void ngx_kexec_verdict_reply(ngx_kexec_execution_t *ex,
    ngx_kexec_message_t *msg, ngx_kexec_reply_t *reply);
void ngx_kexec_verdict_end(ngx_kexec_execution_t *ex);
void ngx_kexec_verdict_release(ngx_kexec_execution_t *ex);

/* a mark of the process that wrote the message, 0 if it cannot be known */
uint32_t ngx_kexec_message_process(ngx_kexec_message_t *msg);


#endif /* _NGX_KEXEC_VERDICT_H_INCLUDED_ */
