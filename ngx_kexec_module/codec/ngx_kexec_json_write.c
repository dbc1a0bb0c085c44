
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_json.h>
#include <ngx_kexec_json_scan.h>


/* the longest escape: a surrogate pair */
#define NGX_KEXEC_JSON_ESCAPE  (sizeof("\\ud83d\\ude00") - 1)

/* what is scanned and copied at once, so that the copy finds it cached */
#define NGX_KEXEC_JSON_CHUNK   16384


static ngx_inline ngx_int_t ngx_kexec_json_write_escaped(ngx_kexec_out_t *out,
    ngx_str_t *text, ngx_uint_t quotes);
static u_char *ngx_kexec_json_escape(u_char *p, u_char **pos, u_char *last);
static u_char *ngx_kexec_json_escape_unit(u_char *p, uint32_t unit);
static uint32_t ngx_kexec_json_utf8(u_char **pos, u_char *last);


ngx_int_t
ngx_kexec_out_write(ngx_kexec_out_t *out, const void *data, size_t len)
{
    size_t         n;
    const u_char  *p;

    p = data;

    while (len) {

        if (out->pos == out->end) {
            if (out->more(out) != NGX_OK) {
                return NGX_ERROR;
            }
        }

        n = ngx_min(len, (size_t) (out->end - out->pos));

        out->pos = ngx_cpymem(out->pos, p, n);

        p += n;
        len -= n;
    }

    return NGX_OK;
}


ngx_int_t
ngx_kexec_json_write_value(ngx_kexec_out_t *out, ngx_str_t *value)
{
    u_char     *p, *end, *last;
    ngx_int_t   rc;
    ngx_str_t   text;

    if (ngx_kexec_json_type(value) == NGX_KEXEC_JSON_STRING) {
        return ngx_kexec_json_write_inside(out, value);
    }

    p = value->data;
    last = p + value->len;

    while (p < last) {

        switch (*p) {

        case ' ':
        case '\t':
        case CR:
        case LF:
            p++;
            continue;

        case ',':
            rc = ngx_kexec_out_write(out, ", ", 2);
            end = p + 1;
            break;

        case ':':
            rc = ngx_kexec_out_write(out, ": ", 2);
            end = p + 1;
            break;

        case '{':
        case '}':
        case '[':
        case ']':
            rc = ngx_kexec_out_write(out, p, 1);
            end = p + 1;
            break;

        case '"':
            end = ngx_kexec_json_walk_scalar(p, last);
            if (end == NULL) {
                return NGX_ERROR;
            }

            text.data = p;
            text.len = end - p;

            rc = ngx_kexec_json_write_inside(out, &text);
            break;

        default:
            end = ngx_kexec_json_walk_scalar(p, last);
            if (end == NULL) {
                return NGX_ERROR;
            }

            /* NaN and the infinities are Python's, not JSON's */

            if (*p == 'N' || end[-1] == 'y') {
                rc = ngx_kexec_out_write(out, "null", 4);

            } else {
                rc = ngx_kexec_out_write(out, p, end - p);
            }
        }

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        p = end;
    }

    return NGX_OK;
}


ngx_int_t
ngx_kexec_json_write_inside(ngx_kexec_out_t *out, ngx_str_t *inside)
{
    return ngx_kexec_json_write_escaped(out, inside, 0);
}


ngx_int_t
ngx_kexec_json_write_text(ngx_kexec_out_t *out, ngx_str_t *text)
{
    return ngx_kexec_json_write_escaped(out, text, 1);
}


size_t
ngx_kexec_json_text_size(ngx_str_t *text)
{
    u_char  *p, *q, *last, buf[NGX_KEXEC_JSON_ESCAPE];
    size_t   size;

    if (text->len == 0) {
        return 0;
    }

    p = text->data;
    last = p + text->len;
    size = 0;

    while (p < last) {
        q = ngx_kexec_json_scan(p, last, 1, 1);

        size += q - p;
        p = q;

        if (p < last) {
            size += ngx_kexec_json_escape(buf, &p, last) - buf;
        }
    }

    return size;
}


static ngx_inline ngx_int_t
ngx_kexec_json_write_escaped(ngx_kexec_out_t *out, ngx_str_t *text,
    ngx_uint_t quotes)
{
    u_char  *p, *q, *end, *last, buf[NGX_KEXEC_JSON_ESCAPE];
    size_t   n;

    if (text->len == 0) {
        return NGX_OK;
    }

    p = text->data;
    last = p + text->len;

    while (p < last) {

        if (out->pos == out->end) {
            if (out->more(out) != NGX_OK) {
                return NGX_ERROR;
            }
        }

        n = ngx_min(last - p, out->end - out->pos);
        end = p + ngx_min(n, NGX_KEXEC_JSON_CHUNK);

        q = ngx_kexec_json_scan(p, end, quotes, 1);

        out->pos = ngx_cpymem(out->pos, p, q - p);
        p = q;

        if (p == end) {
            continue;
        }

        /* text that is not ASCII has many of them in a row */

        while (p < last && (*p > 0x7e || p == q)) {

            if ((size_t) (out->end - out->pos) >= NGX_KEXEC_JSON_ESCAPE) {
                out->pos = ngx_kexec_json_escape(out->pos, &p, last);
                continue;
            }

            n = ngx_kexec_json_escape(buf, &p, last) - buf;

            if (ngx_kexec_out_write(out, buf, n) != NGX_OK) {
                return NGX_ERROR;
            }
        }
    }

    return NGX_OK;
}


/* escapes the character at *pos, whatever it is, and moves *pos behind it */

static u_char *
ngx_kexec_json_escape(u_char *p, u_char **pos, u_char *last)
{
    u_char    c;
    uint32_t  n;

    n = ngx_kexec_json_utf8(pos, last);

    if (n > 0xffff) {
        n -= 0x10000;
        p = ngx_kexec_json_escape_unit(p, 0xd800 + (n >> 10));
        return ngx_kexec_json_escape_unit(p, 0xdc00 + (n & 0x3ff));
    }

    switch (n) {

    case '"':
    case '\\':
        c = (u_char) n;
        break;

    case '\b':
        c = 'b';
        break;

    case '\f':
        c = 'f';
        break;

    case LF:
        c = 'n';
        break;

    case CR:
        c = 'r';
        break;

    case '\t':
        c = 't';
        break;

    default:
        return ngx_kexec_json_escape_unit(p, n);
    }

    *p++ = '\\';
    *p++ = c;

    return p;
}


static u_char *
ngx_kexec_json_escape_unit(u_char *p, uint32_t unit)
{
    static u_char  hex[] = "0123456789abcdef";

    *p++ = '\\';
    *p++ = 'u';
    *p++ = hex[unit >> 12];
    *p++ = hex[(unit >> 8) & 0xf];
    *p++ = hex[(unit >> 4) & 0xf];
    *p++ = hex[unit & 0xf];

    return p;
}


/*
 * The character at *pos.  What is no UTF-8 gives U+FFFD as Python's
 * decode(errors="replace") does: one for each longest beginning of a
 * character, so that the next byte is looked at again.
 */

static uint32_t
ngx_kexec_json_utf8(u_char **pos, u_char *last)
{
    u_char      c, low, high, *p;
    uint32_t    n;
    ngx_uint_t  more;

    p = *pos;
    c = *p++;

    *pos = p;

    if (c < 0x80) {
        return c;
    }

    low = 0x80;
    high = 0xbf;

    if (c >= 0xc2 && c <= 0xdf) {
        n = c & 0x1f;
        more = 1;

    } else if (c >= 0xe0 && c <= 0xef) {
        n = c & 0x0f;
        more = 2;

        if (c == 0xe0) {
            low = 0xa0;

        } else if (c == 0xed) {
            /* no surrogates */
            high = 0x9f;
        }

    } else if (c >= 0xf0 && c <= 0xf4) {
        n = c & 0x07;
        more = 3;

        if (c == 0xf0) {
            low = 0x90;

        } else if (c == 0xf4) {
            high = 0x8f;
        }

    } else {
        return 0xfffd;
    }

    while (more--) {

        if (p == last || *p < low || *p > high) {
            *pos = p;
            return 0xfffd;
        }

        n = (n << 6) | (*p++ & 0x3f);

        low = 0x80;
        high = 0xbf;
    }

    *pos = p;

    return n;
}
