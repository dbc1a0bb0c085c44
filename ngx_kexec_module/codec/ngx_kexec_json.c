
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_json.h>
#include <ngx_kexec_json_scan.h>


#define NGX_KEXEC_ITER_OBJECT  0x01
#define NGX_KEXEC_ITER_FIRST   0x02
#define NGX_KEXEC_ITER_DONE    0x04


static u_char *ngx_kexec_json_walk(u_char *p, u_char *last);
static u_char *ngx_kexec_json_walk_key(u_char *p, u_char *last);
static u_char *ngx_kexec_json_walk_string(u_char *p, u_char *last);
static u_char *ngx_kexec_json_walk_number(u_char *p, u_char *last);
static u_char *ngx_kexec_json_walk_digits(u_char *p, u_char *last);
static u_char *ngx_kexec_json_walk_word(u_char *p, u_char *last,
    const char *word, size_t len);
static ngx_int_t ngx_kexec_json_hex(u_char *p, u_char *last);


ngx_int_t
ngx_kexec_json_check(ngx_str_t *text, ngx_str_t *value)
{
    u_char  *p, *end, *last;

    if (text->len == 0) {
        return NGX_DECLINED;
    }

    last = text->data + text->len;
    p = ngx_kexec_json_space(text->data, last);

    end = ngx_kexec_json_walk(p, last);

    if (end == NULL || ngx_kexec_json_space(end, last) != last) {
        return NGX_DECLINED;
    }

    value->data = p;
    value->len = end - p;

    return NGX_OK;
}


ngx_kexec_json_type_e
ngx_kexec_json_type(ngx_str_t *value)
{
    if (value->len == 0) {
        return NGX_KEXEC_JSON_NONE;
    }

    switch (value->data[0]) {

    case '{':
        return NGX_KEXEC_JSON_OBJECT;

    case '[':
        return NGX_KEXEC_JSON_ARRAY;

    case '"':
        return NGX_KEXEC_JSON_STRING;

    case 'n':
        return NGX_KEXEC_JSON_NULL;

    case 't':
        return NGX_KEXEC_JSON_TRUE;

    case 'f':
        return NGX_KEXEC_JSON_FALSE;

    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
    case 'N':
    case 'I':
        return NGX_KEXEC_JSON_NUMBER;

    default:
        return NGX_KEXEC_JSON_NONE;
    }
}


ngx_int_t
ngx_kexec_json_open(ngx_kexec_json_iter_t *iter, ngx_str_t *value)
{
    u_char  *p, *last;

    iter->state = NGX_KEXEC_ITER_DONE;

    if (value->len == 0) {
        return NGX_DECLINED;
    }

    last = value->data + value->len;
    p = ngx_kexec_json_space(value->data, last);

    if (p == last || (*p != '{' && *p != '[')) {
        return NGX_DECLINED;
    }

    iter->pos = p + 1;
    iter->end = last;
    iter->state = NGX_KEXEC_ITER_FIRST;

    if (*p == '{') {
        iter->state |= NGX_KEXEC_ITER_OBJECT;
    }

    return NGX_OK;
}


ngx_int_t
ngx_kexec_json_next(ngx_kexec_json_iter_t *iter, ngx_str_t *key,
    ngx_str_t *value)
{
    u_char     *p, *end, *last;
    ngx_str_t   name;

    if (iter->state & NGX_KEXEC_ITER_DONE) {
        return NGX_DONE;
    }

    last = iter->end;
    p = ngx_kexec_json_space(iter->pos, last);

    if (p == last) {
        return NGX_DECLINED;
    }

    if (*p == ((iter->state & NGX_KEXEC_ITER_OBJECT) ? '}' : ']')) {
        if (ngx_kexec_json_space(p + 1, last) != last) {
            return NGX_DECLINED;
        }

        iter->state |= NGX_KEXEC_ITER_DONE;
        return NGX_DONE;
    }

    if (iter->state & NGX_KEXEC_ITER_FIRST) {
        iter->state &= ~NGX_KEXEC_ITER_FIRST;

    } else {
        if (*p != ',') {
            return NGX_DECLINED;
        }

        p = ngx_kexec_json_space(p + 1, last);
    }

    ngx_str_null(&name);

    if (iter->state & NGX_KEXEC_ITER_OBJECT) {

        if (p == last || *p != '"') {
            return NGX_DECLINED;
        }

        end = ngx_kexec_json_walk_string(p, last);
        if (end == NULL) {
            return NGX_DECLINED;
        }

        name.data = p + 1;
        name.len = end - p - 2;

        p = ngx_kexec_json_space(end, last);

        if (p == last || *p != ':') {
            return NGX_DECLINED;
        }

        p = ngx_kexec_json_space(p + 1, last);
    }

    end = ngx_kexec_json_walk(p, last);
    if (end == NULL) {
        return NGX_DECLINED;
    }

    iter->pos = end;

    if (key) {
        *key = name;
    }

    if (value) {
        value->data = p;
        value->len = end - p;
    }

    return NGX_OK;
}


ngx_int_t
ngx_kexec_json_member(ngx_str_t *object, const char *name, ngx_str_t *value)
{
    ngx_int_t               rc, found;
    ngx_str_t               key, member;
    ngx_kexec_json_iter_t   iter;

    if (ngx_kexec_json_type(object) != NGX_KEXEC_JSON_OBJECT) {
        return NGX_DECLINED;
    }

    (void) ngx_kexec_json_open(&iter, object);

    found = NGX_DECLINED;

    for ( ;; ) {
        rc = ngx_kexec_json_next(&iter, &key, &member);

        if (rc == NGX_DONE) {
            return found;
        }

        if (rc != NGX_OK) {
            return NGX_DECLINED;
        }

        if (ngx_kexec_json_equal(&key, name)) {
            *value = member;
            found = NGX_OK;
        }
    }
}


ngx_int_t
ngx_kexec_json_string(ngx_str_t *value, ngx_str_t *text)
{
    if (value->len < 2 || value->data[0] != '"') {
        return NGX_DECLINED;
    }

    text->data = value->data + 1;
    text->len = value->len - 2;

    return NGX_OK;
}


ngx_uint_t
ngx_kexec_json_equal(ngx_str_t *inside, const char *name)
{
    u_char      c, *p, *last;
    size_t      len;
    ngx_int_t   n;

    len = ngx_strlen(name);

    if (inside->len <= len) {
        return inside->len == len && ngx_memcmp(inside->data, name, len) == 0;
    }

    /* longer than the name: the same only if it has escapes */

    p = inside->data;
    last = p + inside->len;

    while (*name && p < last) {
        c = *p++;

        if (c == '\\') {

            if (p == last) {
                return 0;
            }

            c = *p++;

            switch (c) {

            case '"':
            case '\\':
            case '/':
                break;

            case 'u':
                n = ngx_kexec_json_hex(p, last);

                if (n == NGX_ERROR || n > 0x7f) {
                    return 0;
                }

                c = (u_char) n;
                p += 4;
                break;

            default:
                /* a control character, which no name has */
                return 0;
            }
        }

        if (c != (u_char) *name++) {
            return 0;
        }
    }

    return *name == '\0' && p == last;
}


/* walks over one value; NULL if there is none, or it is nested too deep */

static u_char *
ngx_kexec_json_walk(u_char *p, u_char *last)
{
    uint64_t    objects[NGX_KEXEC_JSON_DEPTH / 64], bit, *word;
    ngx_uint_t  depth;

    /* a bit for each open bracket: is it an object's? */

    depth = 0;

    for ( ;; ) {

        /* at a value, or at the end of an empty object or array */

        p = ngx_kexec_json_space(p, last);

        if (p == last) {
            return NULL;
        }

        if (*p == '{' || *p == '[') {

            if (depth == NGX_KEXEC_JSON_DEPTH) {
                return NULL;
            }

            word = &objects[depth / 64];
            bit = (uint64_t) 1 << (depth % 64);

            if (bit == 1) {
                *word = 0;
            }

            depth++;

            if (*p == '[') {
                *word &= ~bit;

                p = ngx_kexec_json_space(p + 1, last);

                if (p == last || *p != ']') {
                    continue;
                }

            } else {
                *word |= bit;

                p = ngx_kexec_json_space(p + 1, last);

                if (p == last || *p != '}') {
                    p = ngx_kexec_json_walk_key(p, last);
                    if (p == NULL) {
                        return NULL;
                    }

                    continue;
                }
            }

        } else {
            p = ngx_kexec_json_walk_scalar(p, last);
            if (p == NULL) {
                return NULL;
            }
        }

        /* behind a value, or at the bracket that closes an empty one */

        for ( ;; ) {

            if (depth == 0) {
                return p;
            }

            p = ngx_kexec_json_space(p, last);

            if (p == last) {
                return NULL;
            }

            word = &objects[(depth - 1) / 64];
            bit = (uint64_t) 1 << ((depth - 1) % 64);

            if (*p == ',') {
                break;
            }

            if (*p != ((*word & bit) ? '}' : ']')) {
                return NULL;
            }

            p++;
            depth--;
        }

        p++;

        if (*word & bit) {
            p = ngx_kexec_json_walk_key(p, last);
            if (p == NULL) {
                return NULL;
            }
        }
    }
}


static u_char *
ngx_kexec_json_walk_key(u_char *p, u_char *last)
{
    p = ngx_kexec_json_space(p, last);

    if (p == last || *p != '"') {
        return NULL;
    }

    p = ngx_kexec_json_walk_string(p, last);
    if (p == NULL) {
        return NULL;
    }

    p = ngx_kexec_json_space(p, last);

    if (p == last || *p != ':') {
        return NULL;
    }

    return p + 1;
}


u_char *
ngx_kexec_json_walk_scalar(u_char *p, u_char *last)
{
    switch (*p) {

    case '"':
        return ngx_kexec_json_walk_string(p, last);

    case 't':
        return ngx_kexec_json_walk_word(p, last, "true", 4);

    case 'f':
        return ngx_kexec_json_walk_word(p, last, "false", 5);

    case 'n':
        return ngx_kexec_json_walk_word(p, last, "null", 4);

    case 'N':
        return ngx_kexec_json_walk_word(p, last, "NaN", 3);

    default:
        return ngx_kexec_json_walk_number(p, last);
    }
}


static u_char *
ngx_kexec_json_walk_string(u_char *p, u_char *last)
{
    p++;

    for ( ;; ) {
        p = ngx_kexec_json_scan(p, last, 1, 0);

        if (p == last) {
            return NULL;
        }

        if (*p == '"') {
            return p + 1;
        }

        if (*p != '\\' || last - p < 2) {
            return NULL;
        }

        switch (p[1]) {

        case '"':
        case '\\':
        case '/':
        case 'b':
        case 'f':
        case 'n':
        case 'r':
        case 't':
            p += 2;
            break;

        case 'u':
            if (ngx_kexec_json_hex(p + 2, last) == NGX_ERROR) {
                return NULL;
            }

            p += 6;
            break;

        default:
            return NULL;
        }
    }
}


static u_char *
ngx_kexec_json_walk_number(u_char *p, u_char *last)
{
    if (*p == '-') {
        p++;
    }

    if (p == last) {
        return NULL;
    }

    if (*p == 'I') {
        return ngx_kexec_json_walk_word(p, last, "Infinity", 8);
    }

    if (*p == '0') {
        p++;

    } else {
        p = ngx_kexec_json_walk_digits(p, last);
        if (p == NULL) {
            return NULL;
        }
    }

    if (p < last && *p == '.') {
        p = ngx_kexec_json_walk_digits(p + 1, last);
        if (p == NULL) {
            return NULL;
        }
    }

    if (p < last && (*p == 'e' || *p == 'E')) {
        p++;

        if (p < last && (*p == '+' || *p == '-')) {
            p++;
        }

        p = ngx_kexec_json_walk_digits(p, last);
    }

    return p;
}


static u_char *
ngx_kexec_json_walk_digits(u_char *p, u_char *last)
{
    u_char  *start;

    start = p;

    while (p < last && *p >= '0' && *p <= '9') {
        p++;
    }

    return (p == start) ? NULL : p;
}


static u_char *
ngx_kexec_json_walk_word(u_char *p, u_char *last, const char *word, size_t len)
{
    if ((size_t) (last - p) < len || ngx_memcmp(p, word, len) != 0) {
        return NULL;
    }

    return p + len;
}


/* the four hexadecimal digits of \uXXXX */

static ngx_int_t
ngx_kexec_json_hex(u_char *p, u_char *last)
{
    u_char      c;
    ngx_int_t   n;
    ngx_uint_t  i;

    if (last - p < 4) {
        return NGX_ERROR;
    }

    n = 0;

    for (i = 0; i < 4; i++) {
        c = p[i];

        if (c >= '0' && c <= '9') {
            n = n * 16 + (c - '0');
            continue;
        }

        c |= 0x20;

        if (c >= 'a' && c <= 'f') {
            n = n * 16 + (c - 'a' + 10);
            continue;
        }

        return NGX_ERROR;
    }

    return n;
}
