
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_EVENTS_H_INCLUDED_
#define _NGX_KEXEC_EVENTS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_json.h>
#include <ngx_kexec_message.h>


/*
 * Events: one JSON object a line, ASCII only, as the published
 * code-interpreter SDKs read them.
 *
 * Pure: no I/O, no allocation, only nginx's basic types.
 */


/*
 * Writes the event that a kernel's message stands for: stream, display_data,
 * execute_result, execute_input (number_of_executions), error, and an
 * execute_reply with status error (as the same event error).  An input_request
 * becomes a stderr that says that an empty line was the answer.
 *
 * NGX_OK      a whole line was written
 * NGX_DECLINED  the message stands for none, or its content is not what the
 *             protocol says; nothing was written
 * NGX_ERROR   the output refused; a part of the line may have been written
 */
ngx_int_t ngx_kexec_event_message(ngx_kexec_out_t *out,
    ngx_kexec_message_t *msg);

/*
 * The same for an iopub error that the reply does not confirm: it did not end
 * the code, so its traceback is an event stderr.
 */
ngx_int_t ngx_kexec_event_unconfirmed(ngx_kexec_out_t *out,
    ngx_kexec_message_t *msg);

/* an error event of ours; texts are UTF-8, not escaped; traceback is "" */
ngx_int_t ngx_kexec_event_error(ngx_kexec_out_t *out, const char *name,
    ngx_str_t *value);

/* {"type": "output_dropped", "reason": ...} */
ngx_int_t ngx_kexec_event_dropped(ngx_kexec_out_t *out, ngx_str_t *reason);

ngx_int_t ngx_kexec_event_keepalive(ngx_kexec_out_t *out);
ngx_int_t ngx_kexec_event_end(ngx_kexec_out_t *out);


#endif /* _NGX_KEXEC_EVENTS_H_INCLUDED_ */
