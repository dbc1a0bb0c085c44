
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _FUZZ_OUT_H_INCLUDED_
#define _FUZZ_OUT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_json.h>


#define check(condition)  if (!(condition)) { abort(); }


/* what a writer wrote, taken through windows that are memory of their own */

typedef struct {
    ngx_kexec_out_t   out;
    u_char           *window;
    size_t            size;
    u_char           *data;
    size_t            len;
} sink_t;


typedef ngx_int_t (*writer_pt)(ngx_kexec_out_t *out, void *what);


static void
take(sink_t *sink)
{
    size_t  n;

    if (sink->window == NULL) {
        return;
    }

    n = sink->out.pos - sink->window;
    check(n <= sink->size);

    sink->data = realloc(sink->data, sink->len + n + 1);
    memcpy(sink->data + sink->len, sink->window, n);
    sink->len += n;

    free(sink->window);
    sink->window = NULL;
}


static ngx_int_t
more(ngx_kexec_out_t *out)
{
    sink_t *sink = out->data;

    take(sink);

    sink->window = malloc(sink->size);
    out->pos = sink->window;
    out->end = sink->window + sink->size;

    return NGX_OK;
}


static ngx_int_t
run(sink_t *sink, size_t size, writer_pt writer, void *what)
{
    ngx_int_t  rc;

    memset(sink, 0, sizeof(sink_t));

    sink->size = size;
    sink->out.more = more;
    sink->out.data = sink;

    rc = writer(&sink->out, what);

    take(sink);

    return rc;
}


/* the output through a large window, when it is the same through others */

static ngx_int_t
write_all(sink_t *sink, writer_pt writer, void *what, size_t size)
{
    sink_t     other;
    ngx_int_t  rc;

    rc = run(sink, 1 << 15, writer, what);

    check(run(&other, size, writer, what) == rc);
    check(other.len == sink->len);
    check(sink->len == 0 || memcmp(other.data, sink->data, sink->len) == 0);

    free(other.data);

    return rc;
}


#endif /* _FUZZ_OUT_H_INCLUDED_ */
