
/*
 * Copyright (C) the ngx_kexec_module authors
 */


/*
 * Snippets that set variables and the directory, in all languages.  The first
 * byte picks the language and the window; names and values stand between bytes
 * 0x1e.  A snippet is ASCII, the same through windows of every size, and there
 * is none for what the language refuses.  What real interpreters make of them
 * is tested by t/unit/roundtrip.py.
 */


#include "fuzz_out.h"
#include <ngx_kexec_language.h>


#define VARS      16
#define SEPARATE  0x1e


typedef struct {
    ngx_kexec_language_e   lang;
    ngx_keyval_t           vars[VARS];
    ngx_uint_t             n;
    ngx_uint_t             keep;
} snippet_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static ngx_int_t
write_set(ngx_kexec_out_t *out, void *what)
{
    snippet_t *s = what;

    return ngx_kexec_language_set(out, s->lang, s->vars, s->n, s->keep);
}


static ngx_int_t
write_restore(ngx_kexec_out_t *out, void *what)
{
    snippet_t *s = what;

    return ngx_kexec_language_restore(out, s->lang);
}


static ngx_int_t
write_cwd(ngx_kexec_out_t *out, void *what)
{
    snippet_t *s = what;

    return ngx_kexec_language_cwd(out, s->lang, &s->vars[0].value);
}


static void
check_snippet(snippet_t *s, writer_pt writer, ngx_uint_t refused, size_t size)
{
    size_t      i;
    sink_t      sink;
    ngx_int_t   rc;

    rc = write_all(&sink, writer, s, size);

    check(rc == NGX_OK || rc == NGX_DECLINED);
    check(!refused || rc == NGX_DECLINED);
    check(rc == NGX_OK || sink.len == 0);

    for (i = 0; i < sink.len; i++) {
        check(sink.data[i] == '\n'
              || (sink.data[i] >= 0x20 && sink.data[i] <= 0x7e));
    }

    free(sink.data);
}


/* memory without a byte to spare */

static ngx_str_t
field(const uint8_t **pos, const uint8_t *last)
{
    ngx_str_t       value;
    const uint8_t  *end;

    end = memchr(*pos, SEPARATE, last - *pos);

    if (end == NULL) {
        end = last;
    }

    value.len = end - *pos;
    value.data = malloc(value.len ? value.len : 1);
    memcpy(value.data, *pos, value.len);

    *pos = (end == last) ? last : end + 1;

    return value;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t          window, len;
    u_char         *word;
    ngx_str_t      *value;
    snippet_t       s;
    ngx_uint_t      i, refused;
    const uint8_t  *last;

    if (size < 1) {
        return 0;
    }

    s.lang = *data % (NGX_KEXEC_LANG_JAVA + 1);
    s.keep = *data & 1;
    window = NGX_KEXEC_OUT_ROOM + *data / 8;

    last = data + size;
    data++;

    refused = 0;

    for (s.n = 0; s.n < VARS && data < last; s.n++) {
        s.vars[s.n].key = field(&data, last);
        s.vars[s.n].value = field(&data, last);

        if (ngx_kexec_language_refuses(s.lang, &s.vars[s.n].key,
                                       &s.vars[s.n].value))
        {
            refused = 1;
        }
    }

    check_snippet(&s, write_set, refused, window);
    check_snippet(&s, write_restore, 0, window);

    if (s.n) {
        value = &s.vars[0].value;

        check_snippet(&s, write_cwd, memchr(value->data, 0, value->len) != NULL,
                      window);

        word = malloc(value->len + 10);
        len = ngx_kexec_language_normalize(word, value);

        check(len <= value->len + 10);
        free(word);

        check(ngx_kexec_language_find(value) <= NGX_KEXEC_LANG_JAVA);
    }

    for (i = 0; i < s.n; i++) {
        free(s.vars[i].key.data);
        free(s.vars[i].value.data);
    }

    return 0;
}
