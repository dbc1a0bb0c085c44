
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_MESSAGE_H_INCLUDED_
#define _NGX_KEXEC_MESSAGE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_json.h>


/*
 * Messages of the Jupyter messaging protocol (5.3), as they travel in the
 * websocket of /api/kernels/ID/channels.
 *
 * Pure: no I/O, no allocation, only nginx's basic types.
 */


/* how a websocket message is laid out */

typedef enum {
    NGX_KEXEC_FORMAT_TEXT = 0,          /* default protocol, text frame */
    NGX_KEXEC_FORMAT_BINARY,            /* default protocol, with buffers */
    NGX_KEXEC_FORMAT_V1                 /* v1.kernel.websocket.jupyter.org */
} ngx_kexec_format_e;


typedef enum {
    NGX_KEXEC_CHANNEL_OTHER = 0,
    NGX_KEXEC_CHANNEL_SHELL,
    NGX_KEXEC_CHANNEL_IOPUB,
    NGX_KEXEC_CHANNEL_CONTROL,
    NGX_KEXEC_CHANNEL_STDIN
} ngx_kexec_channel_e;


typedef enum {
    NGX_KEXEC_MSG_OTHER = 0,
    NGX_KEXEC_MSG_STATUS,
    NGX_KEXEC_MSG_STREAM,
    NGX_KEXEC_MSG_DISPLAY_DATA,
    NGX_KEXEC_MSG_EXECUTE_RESULT,
    NGX_KEXEC_MSG_EXECUTE_INPUT,
    NGX_KEXEC_MSG_ERROR,
    NGX_KEXEC_MSG_EXECUTE_REPLY,
    NGX_KEXEC_MSG_KERNEL_INFO_REPLY,
    NGX_KEXEC_MSG_INPUT_REQUEST,
    NGX_KEXEC_MSG_SHUTDOWN_REPLY
} ngx_kexec_msg_type_e;


typedef enum {
    NGX_KEXEC_STATE_OTHER = 0,
    NGX_KEXEC_STATE_BUSY,
    NGX_KEXEC_STATE_IDLE,
    NGX_KEXEC_STATE_STARTING,
    NGX_KEXEC_STATE_RESTARTING,
    NGX_KEXEC_STATE_AUTORESTARTING,
    NGX_KEXEC_STATE_DEAD
} ngx_kexec_state_e;


typedef enum {
    NGX_KEXEC_REPLY_OTHER = 0,
    NGX_KEXEC_REPLY_OK,
    NGX_KEXEC_REPLY_ERROR,
    NGX_KEXEC_REPLY_ABORTED,            /* "aborted": it did not run */
    NGX_KEXEC_REPLY_INTERRUPTED         /* "abort": R's word for that */
} ngx_kexec_reply_e;


/* all spans point into the parsed bytes and live as long as they do */

typedef struct {
    ngx_kexec_channel_e    channel;
    ngx_kexec_msg_type_e   type;
    ngx_str_t              parent_id;   /* parent's msg_id, escaped; or empty */
    ngx_str_t              parent;      /* parent_header, checked JSON */
    ngx_str_t              header;      /* checked JSON objects */
    ngx_str_t              content;
} ngx_kexec_message_t;


/* the members of an execute_reply or error, as checked JSON spans or empty */

typedef struct {
    ngx_kexec_reply_e      status;
    ngx_str_t              ename;
    ngx_str_t              evalue;
    ngx_str_t              traceback;
    unsigned               exits:1;     /* payload: the process will end */
} ngx_kexec_reply_t;


/*
 * A request to the kernel's shell channel; or, with the header of an
 * input_request as parent, the answer to that on the channel stdin.
 */

typedef struct {
    ngx_str_t              id;          /* msg_id, plain ASCII */
    ngx_str_t              session;     /* session of the header, plain ASCII */
    ngx_str_t              date;        /* ISO 8601 */
    ngx_str_t              code;        /* UTF-8, not escaped */
    ngx_str_t              parent;      /* a JSON object; empty: none */
    unsigned               info:1;      /* kernel_info_request, no code */
    unsigned               silent:1;
    unsigned               input:1;     /* input_reply, an empty line */
} ngx_kexec_request_msg_t;


/*
 * Takes a whole websocket message apart: NGX_OK, or NGX_DECLINED for one
 * that is not of that layout, which the caller skips.
 */
ngx_int_t ngx_kexec_message_parse(ngx_str_t *bytes, ngx_kexec_format_e format,
    ngx_kexec_message_t *msg);

/* session and msg_type of the request that it belongs to, escaped, or empty */
void ngx_kexec_message_request(ngx_kexec_message_t *msg, ngx_str_t *session,
    ngx_str_t *type);

/*
 * Is a kernel_info_reply that of an implementation which takes one request of
 * the shell channel after the other, also where code awaits something?  Only
 * those are named that are known to.
 */
ngx_uint_t ngx_kexec_message_in_order(ngx_kexec_message_t *msg);

/* the execution_state of a status message */
ngx_kexec_state_e ngx_kexec_message_state(ngx_kexec_message_t *msg);

/*
 * Is it Jupyter's own notice, written to stderr in the kernel's name, that it
 * throws output away (iopub_msg_rate_limit, iopub_data_rate_limit)?  Code may
 * print the same words: the header's session tells whose they are.
 */
ngx_uint_t ngx_kexec_message_rate_limit(ngx_kexec_message_t *msg);

/*
 * The verdict of an execute_reply, or (with status NGX_KEXEC_REPLY_ERROR)
 * of an iopub error message.
 */
void ngx_kexec_message_reply(ngx_kexec_message_t *msg,
    ngx_kexec_reply_t *reply);

/*
 * Does an iopub error tell what an error reply tells?  0: no.  1: the same name
 * and value, or the reply tells neither.  2: the same traceback, too.
 */
ngx_uint_t ngx_kexec_message_same_error(ngx_kexec_reply_t *reply,
    ngx_kexec_reply_t *error);

/*
 * An execute_request with stop_on_error false, allow_stdin false and
 * store_history by silent, a kernel_info_request, or an input_reply: the exact
 * size in the given layout (TEXT or V1), and the bytes.  write returns the end.
 */
size_t ngx_kexec_message_size(ngx_kexec_request_msg_t *req,
    ngx_kexec_format_e format);
u_char *ngx_kexec_message_write(u_char *p, ngx_kexec_request_msg_t *req,
    ngx_kexec_format_e format);


#endif /* _NGX_KEXEC_MESSAGE_H_INCLUDED_ */
