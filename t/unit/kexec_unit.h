
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _KEXEC_UNIT_H_INCLUDED_
#define _KEXEC_UNIT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_json.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>


/*
 * What a writer wrote, taken through windows of a fixed size.  Each window is
 * memory of its own, so that a sanitizer sees a byte written behind its end.
 */

typedef struct {
    ngx_kexec_out_t   out;

    u_char           *window;
    size_t            size;
    ngx_int_t         windows;          /* how many more there are, or -1 */
    ngx_uint_t        refused;

    u_char           *data;
    size_t            len;
} unit_sink_t;


static ngx_inline void
unit_sink_take(unit_sink_t *sink)
{
    size_t  n;

    if (sink->window == NULL) {
        return;
    }

    n = sink->out.pos - sink->window;

    sink->data = realloc(sink->data, sink->len + n + 1);
    memcpy(sink->data + sink->len, sink->window, n);
    sink->len += n;
    sink->data[sink->len] = '\0';

    free(sink->window);
    sink->window = NULL;
    sink->out.pos = NULL;
    sink->out.end = NULL;
}


static ngx_inline ngx_int_t
unit_sink_more(ngx_kexec_out_t *out)
{
    unit_sink_t *sink = out->data;

    unit_sink_take(sink);

    if (sink->windows == 0) {

        /* a writer that is refused returns at once */
        assert_int_equal(sink->refused, 0);

        sink->refused = 1;
        return NGX_ERROR;
    }

    if (sink->windows > 0) {
        sink->windows--;
    }

    sink->window = malloc(sink->size);
    out->pos = sink->window;
    out->end = sink->window + sink->size;

    return NGX_OK;
}


static ngx_inline ngx_kexec_out_t *
unit_sink_open(unit_sink_t *sink, size_t size)
{
    memset(sink, 0, sizeof(unit_sink_t));

    sink->size = size;
    sink->windows = -1;
    sink->data = calloc(1, 1);
    sink->out.more = unit_sink_more;
    sink->out.data = sink;

    return &sink->out;
}


static ngx_inline void
unit_sink_close(unit_sink_t *sink)
{
    free(sink->window);
    free(sink->data);
    memset(sink, 0, sizeof(unit_sink_t));
}


/* memory without a byte to spare, for the same reason */

static ngx_inline ngx_str_t
unit_alloc(size_t len)
{
    ngx_str_t  str;

    str.len = len;
    str.data = malloc(len);

    return str;
}


static ngx_inline ngx_str_t
unit_copy(const void *data, size_t len)
{
    ngx_str_t  str;

    str = unit_alloc(len);
    memcpy(str.data, data, len);

    return str;
}


static ngx_inline ngx_str_t
unit_str(const char *text)
{
    ngx_str_t  str;

    str.len = strlen(text);
    str.data = (u_char *) text;

    return str;
}


static ngx_inline void
unit_assert_bytes(const void *data, size_t len, const void *expect,
    size_t expect_len)
{
    if (len != expect_len || (len && memcmp(data, expect, len) != 0)) {
        print_error("got:      \"%.*s\"\nexpected: \"%.*s\"\n",
                    (int) len, (const char *) data,
                    (int) expect_len, (const char *) expect);
        fail();
    }
}


static ngx_inline void
unit_assert_str(ngx_str_t *str, const char *expect)
{
    unit_assert_bytes(str->data, str->len, expect, strlen(expect));
}


#endif /* _KEXEC_UNIT_H_INCLUDED_ */
