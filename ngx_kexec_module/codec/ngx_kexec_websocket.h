
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_WEBSOCKET_H_INCLUDED_
#define _NGX_KEXEC_WEBSOCKET_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * Frames of RFC 6455, seen from the client: what comes in is unmasked, what
 * goes out is masked.
 *
 * Pure: no I/O, no allocation, only nginx's basic types.
 */


#define NGX_KEXEC_WS_CONTINUATION  0x0
#define NGX_KEXEC_WS_TEXT          0x1
#define NGX_KEXEC_WS_BINARY        0x2
#define NGX_KEXEC_WS_CLOSE         0x8
#define NGX_KEXEC_WS_PING          0x9
#define NGX_KEXEC_WS_PONG          0xa

/* the longest header that ngx_kexec_websocket_write_header() writes */
#define NGX_KEXEC_WS_HEADER        14

/* the longest payload of a control frame, section 5.5 */
#define NGX_KEXEC_WS_CONTROL       125


typedef struct {
    /* the frame whose header was read last */
    ngx_uint_t    opcode;
    uint64_t      length;               /* of the payload */
    unsigned      fin:1;

    /*
     * the message of the last data frame: its first opcode; it stays with
     * the message's final frame, until the next header (section 5.4)
     */
    ngx_uint_t    message;

    /* why a header was refused */
    const char   *error;

    /* private */
    ngx_uint_t    have;
    u_char        header[10];
} ngx_kexec_websocket_t;


/*
 * Reads a frame's header from [*pos, last), in any pieces; *pos moves behind
 * what was taken, never into the payload.  The struct is zeroed before the
 * first call; after NGX_OK the caller takes length bytes of payload, then
 * calls again for the next frame.
 *
 * NGX_OK     opcode, fin and length are set
 * NGX_AGAIN  all bytes were taken and more are needed
 * NGX_ERROR  a violation of the protocol (error says which): masked, a
 *            reserved bit or opcode, a fragmented or long control frame, a
 *            continuation of nothing, a new message inside another, a length
 *            with its highest bit set
 */
ngx_int_t ngx_kexec_websocket_header(ngx_kexec_websocket_t *ws, u_char **pos,
    u_char *last);

/*
 * Writes the header of a final, masked frame: up to NGX_KEXEC_WS_HEADER
 * bytes; returns the end.
 */
u_char *ngx_kexec_websocket_write_header(u_char *p, ngx_uint_t opcode,
    uint64_t length, const u_char mask[4]);

/*
 * Masks the payload in place (section 5.3).  offset: how many bytes of this
 * payload were masked before.
 */
void ngx_kexec_websocket_mask(u_char *p, size_t len, const u_char mask[4],
    size_t offset);

/* the status code of a close frame's payload, 1005 if it has none */
ngx_uint_t ngx_kexec_websocket_close_code(u_char *p, size_t len);


#endif /* _NGX_KEXEC_WEBSOCKET_H_INCLUDED_ */
