
/*
 * Copyright (C) the ngx_kexec_module authors
 */


/*
 * Prints snippets for roundtrip.py.  A line of standard input is one of
 *
 *     set LANGUAGE KEEP [NAME VALUE]...
 *     restore LANGUAGE
 *     cwd LANGUAGE PATH
 *
 * with names, values and paths as "x" and their bytes in hexadecimal.  The
 * answer is "RC LENGTH", a line break, and so many bytes.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_language.h>


static ngx_int_t more(ngx_kexec_out_t *out);
static void drain(ngx_kexec_out_t *out);
static void reserve(size_t size);
static ngx_str_t word(char **pos);
static ngx_str_t hex(char **pos);


static u_char  window[NGX_KEXEC_OUT_ROOM];
static u_char  *text;
static size_t   len, room;


int
main(void)
{
    char                  *line, *pos;
    size_t                 size;
    ssize_t                n;
    ngx_int_t              rc;
    ngx_str_t              op, path;
    ngx_uint_t             keep, nvars;
    ngx_keyval_t          *vars;
    ngx_kexec_out_t        out;
    ngx_kexec_language_e   lang;

    line = NULL;
    size = 0;

    while ((n = getline(&line, &size, stdin)) > 0) {

        if (line[n - 1] == '\n') {
            line[n - 1] = '\0';
        }

        pos = line;
        op = word(&pos);
        path = word(&pos);
        lang = ngx_kexec_language_find(&path);

        len = 0;
        out.pos = window;
        out.end = window + sizeof(window);
        out.more = more;
        out.data = NULL;

        switch (op.data[0]) {

        case 's':
            path = word(&pos);
            keep = (path.data[0] == '1');

            vars = malloc((n / 4 + 1) * sizeof(ngx_keyval_t));
            if (vars == NULL) {
                return 1;
            }

            for (nvars = 0; *pos; nvars++) {
                vars[nvars].key = hex(&pos);
                vars[nvars].value = hex(&pos);
            }

            rc = ngx_kexec_language_set(&out, lang, vars, nvars, keep);

            free(vars);
            break;

        case 'r':
            rc = ngx_kexec_language_restore(&out, lang);
            break;

        default:
            path = hex(&pos);
            rc = ngx_kexec_language_cwd(&out, lang, &path);
        }

        drain(&out);

        printf("%d %zu\n", (int) rc, len);
        fwrite(text, 1, len, stdout);
        fflush(stdout);
    }

    free(line);
    free(text);

    return 0;
}


static ngx_int_t
more(ngx_kexec_out_t *out)
{
    drain(out);

    return NGX_OK;
}


static void
drain(ngx_kexec_out_t *out)
{
    size_t  n;

    n = out->pos - window;

    reserve(len + n);
    ngx_memcpy(text + len, window, n);

    len += n;
    out->pos = window;
}


static void
reserve(size_t size)
{
    if (text && size <= room) {
        return;
    }

    room = 2 * size + 4096;
    text = realloc(text, room);

    if (text == NULL) {
        abort();
    }
}


/* the next word of the line, which it ends with NUL */

static ngx_str_t
word(char **pos)
{
    ngx_str_t  w;

    w.data = (u_char *) *pos;
    w.len = strcspn(*pos, " ");

    *pos += w.len;

    if (**pos) {
        *(*pos)++ = '\0';
    }

    return w;
}


/* a word in hexadecimal, decoded in its place */

static ngx_str_t
hex(char **pos)
{
    char           digits[3];
    size_t         i;
    ngx_str_t      w;

    w = word(pos);

    if (w.len == 0) {
        return w;
    }

    w.len /= 2;

    for (i = 0; i < w.len; i++) {
        digits[0] = w.data[1 + i * 2];
        digits[1] = w.data[2 + i * 2];
        digits[2] = '\0';

        w.data[i] = (u_char) strtol(digits, NULL, 16);
    }

    return w;
}
