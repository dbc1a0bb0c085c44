
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_language.h>


void
ngx_kexec_language_lines(ngx_kexec_language_e lang, ngx_str_t *code)
{
    u_char  *p, *dst, *last;

    if ((lang != NGX_KEXEC_LANG_R && lang != NGX_KEXEC_LANG_BASH)
        || code->len == 0)
    {
        return;
    }

    last = code->data + code->len;
    dst = ngx_strlchr(code->data, last, CR);

    if (dst == NULL) {
        return;
    }

    for (p = dst; p < last; p++) {
        if (*p == CR && p + 1 < last && p[1] == LF) {
            continue;
        }

        *dst++ = *p;
    }

    code->len = dst - code->data;
}
