
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_websocket.h>


#define NGX_KEXEC_WS_FIN       0x80
#define NGX_KEXEC_WS_RSV       0x70
#define NGX_KEXEC_WS_OPCODE    0x0f
#define NGX_KEXEC_WS_MASK      0x80
#define NGX_KEXEC_WS_LENGTH    0x7f

#define NGX_KEXEC_WS_LENGTH16  126
#define NGX_KEXEC_WS_LENGTH64  127

/* section 7.1.5: a close frame without a code */
#define NGX_KEXEC_WS_NO_CODE   1005

#define ngx_kexec_websocket_is_control(opcode)  ((opcode) & 0x08)


static ngx_int_t ngx_kexec_websocket_check(ngx_kexec_websocket_t *ws);


ngx_int_t
ngx_kexec_websocket_header(ngx_kexec_websocket_t *ws, u_char **pos,
    u_char *last)
{
    uint64_t    length;
    ngx_uint_t  i, need, opcode;

    while (*pos < last) {

        ws->header[ws->have++] = *(*pos)++;

        if (ws->have == 1) {
            continue;
        }

        if (ws->have == 2 && ngx_kexec_websocket_check(ws) != NGX_OK) {
            return NGX_ERROR;
        }

        length = ws->header[1] & NGX_KEXEC_WS_LENGTH;

        switch (length) {

        case NGX_KEXEC_WS_LENGTH16:
            need = 4;
            break;

        case NGX_KEXEC_WS_LENGTH64:
            need = 10;
            break;

        default:
            need = 2;
        }

        if (ws->have < need) {
            continue;
        }

        if (need > 2) {
            length = 0;

            for (i = 2; i < need; i++) {
                length = (length << 8) | ws->header[i];
            }

            if (length >> 63) {
                ws->error = "the length has its highest bit set";
                return NGX_ERROR;
            }
        }

        opcode = ws->header[0] & NGX_KEXEC_WS_OPCODE;

        ws->opcode = opcode;
        ws->length = length;
        ws->fin = (ws->header[0] & NGX_KEXEC_WS_FIN) ? 1 : 0;
        ws->have = 0;

        if (opcode == NGX_KEXEC_WS_TEXT || opcode == NGX_KEXEC_WS_BINARY) {
            ws->message = opcode;
        }

        return NGX_OK;
    }

    return NGX_AGAIN;
}


/* the first two bytes of a header, against the frames before it */

static ngx_int_t
ngx_kexec_websocket_check(ngx_kexec_websocket_t *ws)
{
    ngx_uint_t  opcode;

    if (ws->fin && !ngx_kexec_websocket_is_control(ws->opcode)) {
        /* the frame before this one was the last of its message */
        ws->message = 0;
    }

    if (ws->header[0] & NGX_KEXEC_WS_RSV) {
        ws->error = "a reserved bit is set";
        return NGX_ERROR;
    }

    if (ws->header[1] & NGX_KEXEC_WS_MASK) {
        ws->error = "the frame is masked";
        return NGX_ERROR;
    }

    opcode = ws->header[0] & NGX_KEXEC_WS_OPCODE;

    switch (opcode) {

    case NGX_KEXEC_WS_CONTINUATION:

        if (ws->message == 0) {
            ws->error = "there is no message to continue";
            return NGX_ERROR;
        }

        return NGX_OK;

    case NGX_KEXEC_WS_TEXT:
    case NGX_KEXEC_WS_BINARY:

        if (ws->message) {
            ws->error = "a message begins inside another";
            return NGX_ERROR;
        }

        return NGX_OK;

    case NGX_KEXEC_WS_CLOSE:
    case NGX_KEXEC_WS_PING:
    case NGX_KEXEC_WS_PONG:

        if (!(ws->header[0] & NGX_KEXEC_WS_FIN)) {
            ws->error = "a control frame is fragmented";
            return NGX_ERROR;
        }

        if (ws->header[1] > NGX_KEXEC_WS_CONTROL) {
            ws->error = "a control frame is too long";
            return NGX_ERROR;
        }

        return NGX_OK;

    default:
        ws->error = "the opcode is reserved";
        return NGX_ERROR;
    }
}


u_char *
ngx_kexec_websocket_write_header(u_char *p, ngx_uint_t opcode,
    uint64_t length, const u_char mask[4])
{
    ngx_int_t  shift;

    *p++ = (u_char) (NGX_KEXEC_WS_FIN | opcode);

    if (length < NGX_KEXEC_WS_LENGTH16) {
        *p++ = (u_char) (NGX_KEXEC_WS_MASK | length);
        shift = -8;

    } else if (length <= 0xffff) {
        *p++ = NGX_KEXEC_WS_MASK | NGX_KEXEC_WS_LENGTH16;
        shift = 8;

    } else {
        *p++ = NGX_KEXEC_WS_MASK | NGX_KEXEC_WS_LENGTH64;
        shift = 56;
    }

    for ( /* void */ ; shift >= 0; shift -= 8) {
        *p++ = (u_char) (length >> shift);
    }

    return ngx_cpymem(p, mask, 4);
}


void
ngx_kexec_websocket_mask(u_char *p, size_t len, const u_char mask[4],
    size_t offset)
{
    u_char      key[8];
    uint64_t    word, wide;
    ngx_uint_t  i;

    for (i = 0; i < 8; i++) {
        key[i] = mask[(offset + i) % 4];
    }

    ngx_memcpy(&wide, key, 8);

    while (len >= 8) {
        ngx_memcpy(&word, p, 8);
        word ^= wide;
        ngx_memcpy(p, &word, 8);

        p += 8;
        len -= 8;
    }

    for (i = 0; i < len; i++) {
        p[i] ^= key[i];
    }
}


ngx_uint_t
ngx_kexec_websocket_close_code(u_char *p, size_t len)
{
    if (len < 2) {
        return NGX_KEXEC_WS_NO_CODE;
    }

    return p[0] << 8 | p[1];
}
