
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_language.h>


/* the longest escape, of which each output window has room: \U0001f600 */
#define NGX_KEXEC_LANG_ESCAPE  12

/* a constant of a Java class file has at most 65535 bytes, 3 for a char */
#define NGX_KEXEC_LANG_CHUNK   16384

/* the longest word for a language that is looked up */
#define NGX_KEXEC_LANG_WORD    16


/*
 * A set snippet is "head", then "open" NAME "mid" VALUE "close" for each
 * variable, then "plain" or "keep".  A cwd snippet is "cwd" PATH "cwd_end".
 */

typedef struct {
    ngx_str_t               head;
    ngx_str_t               open;
    ngx_str_t               mid;
    ngx_str_t               close;
    ngx_str_t               plain;
    ngx_str_t               keep;
    ngx_str_t               restore;
    ngx_str_t               cwd;
    ngx_str_t               cwd_end;
} ngx_kexec_snippets_t;


typedef struct {
    ngx_str_t               word;
    ngx_kexec_language_e    lang;
} ngx_kexec_language_word_t;


static ngx_kexec_snippets_t *ngx_kexec_language_snippets(
    ngx_kexec_language_e lang);
static ngx_int_t ngx_kexec_language_literal(ngx_kexec_out_t *out,
    ngx_kexec_language_e lang, ngx_str_t *text);
static ngx_int_t ngx_kexec_language_inside(ngx_kexec_out_t *out,
    ngx_kexec_language_e lang, ngx_str_t *text);
static u_char *ngx_kexec_language_escape(u_char *p, ngx_kexec_language_e lang,
    u_char c);
static u_char *ngx_kexec_language_char(u_char *p, ngx_kexec_language_e lang,
    uint32_t n);
static u_char *ngx_kexec_language_hex(u_char *p, const char *prefix,
    uint32_t n, ngx_uint_t digits);
static uint32_t ngx_kexec_language_utf8(u_char **pos, u_char *last);
static ngx_int_t ngx_kexec_language_put(ngx_kexec_out_t *out, ngx_str_t *text);
static ngx_uint_t ngx_kexec_language_has(ngx_str_t *text, u_char c);


/* bash's own: an assignment fails, or does nothing */

static ngx_str_t  ngx_kexec_language_readonly[] = {
    ngx_string("BASHOPTS"),
    ngx_string("BASH_ARGC"),
    ngx_string("BASH_ARGV"),
    ngx_string("BASH_LINENO"),
    ngx_string("BASH_SOURCE"),
    ngx_string("BASH_VERSINFO"),
    ngx_string("EUID"),
    ngx_string("PPID"),
    ngx_string("SHELLOPTS"),
    ngx_string("UID"),
    ngx_null_string
};


static ngx_kexec_language_word_t  ngx_kexec_language_words[] = {
    { ngx_string("python"), NGX_KEXEC_LANG_PYTHON },
    { ngx_string("python3"), NGX_KEXEC_LANG_PYTHON },
    { ngx_string("ipython"), NGX_KEXEC_LANG_PYTHON },
    { ngx_string("javascript"), NGX_KEXEC_LANG_JAVASCRIPT },
    { ngx_string("node"), NGX_KEXEC_LANG_JAVASCRIPT },
    { ngx_string("nodejs"), NGX_KEXEC_LANG_JAVASCRIPT },
    { ngx_string("jslab"), NGX_KEXEC_LANG_JAVASCRIPT },
    { ngx_string("typescript"), NGX_KEXEC_LANG_TYPESCRIPT },
    { ngx_string("deno"), NGX_KEXEC_LANG_TYPESCRIPT },
    { ngx_string("tslab"), NGX_KEXEC_LANG_TYPESCRIPT },
    { ngx_string("r"), NGX_KEXEC_LANG_R },
    { ngx_string("ir"), NGX_KEXEC_LANG_R },
    { ngx_string("bash"), NGX_KEXEC_LANG_BASH },
    { ngx_string("sh"), NGX_KEXEC_LANG_BASH },
    { ngx_string("java"), NGX_KEXEC_LANG_JAVA },
    { ngx_null_string, NGX_KEXEC_LANG_OTHER }
};


/*
 * Python.  The code runs by exec() in a namespace of its own, so it needs no
 * name of the user's but __import__.  Prior values are an attribute of sys,
 * together with the os.environ that they are from.  The compiled source,
 * with the values in it, is taken out of IPython's cache.  IPython treats a
 * single line as something that a person typed, hence the line breaks.
 */

#define NGX_KEXEC_PYTHON                                                      \
    "__import__('builtins').exec(\n\"import os, sys, linecache\\n"            \
    "f = sys._getframe(1).f_code.co_filename\\n"                              \
    "for c in '_ipython_cache', 'cache':\\n"                                  \
    "    getattr(linecache, c, {}).pop(f, None)\\n"

static ngx_kexec_snippets_t  ngx_kexec_language_python = {

    ngx_string(NGX_KEXEC_PYTHON
        "if k:\\n"
        "    s = sys.__dict__.setdefault('__kexec_env__', {})\\n"
        "    s.setdefault('e', os.environ)\\n"
        "    s = s.setdefault('v', {})\\n"
        "    for n, v in a:\\n"
        "        s.setdefault(n, os.environ.get(n))\\n"
        "for n, v in a:\\n"
        "    os.environ[n] = v\\n\",\n{'a': ["),

    ngx_string("("),
    ngx_string(", "),
    ngx_string("), "),
    ngx_string("], 'k': 0})"),
    ngx_string("], 'k': 1})"),

    ngx_string(NGX_KEXEC_PYTHON
        "s = getattr(sys, '__kexec_env__', None)\\n"
        "if s:\\n"
        "    for n, v in s['v'].items():\\n"
        "        for e in s['e'], os.environ:\\n"
        "            if v is None:\\n"
        "                e.pop(n, None)\\n"
        "            else:\\n"
        "                e[n] = v\\n"
        "    del sys.__kexec_env__\\n\",\n{})"),

    ngx_string("__import__('os').chdir(\n"),
    ngx_string(")")
};


/*
 * JavaScript and TypeScript, in node's kernels and in Deno's.  The code is
 * compiled by the Function constructor, which needs no name of the user's,
 * makes "this" the global object and keeps TypeScript's checks away.
 * process is absent in some versions of Deno, so Deno's own way is first.
 * Prior values are a hidden property of the global object, together with
 * the object that they are from: process.env may be replaced by the user.
 */

#define NGX_KEXEC_JS                                                          \
    "var D = this.Deno, P = (D = D && D.env && D) || this.process;\\n"        \
    "if (!(P && P.env)) P = this.require('process');\\n"

static ngx_kexec_snippets_t  ngx_kexec_language_javascript = {

    ngx_string("void (()=>{}).constructor('a', 'k', \"" NGX_KEXEC_JS
        "var e = P.env, s = this.__kexec_env__, i, n;\\n"
        "if (k && !s) {\\n"
        "    s = { p: P, e: e, d: D, v: { __proto__: null } };\\n"
        "    ({}).constructor.defineProperty(this, '__kexec_env__',\\n"
        "        { value: s, configurable: true });\\n"
        "}\\n"
        "for (i = 0; i < a.length; i++) {\\n"
        "    n = a[i][0];\\n"
        "    if (k && !(n in s.v)) s.v[n] = D ? e.get(n)\\n"
        "        : ({}).hasOwnProperty.call(e, n) ? e[n] : undefined;\\n"
        "    if (D) e.set(n, a[i][1]);\\n"
        "    else e[n] = a[i][1];\\n"
        "}\")(["),

    ngx_string("["),
    ngx_string(", "),
    ngx_string("], "),
    ngx_string("], 0);"),
    ngx_string("], 1);"),

    ngx_string("void (()=>{}).constructor(\""
        "var s = this.__kexec_env__, t, i, n, v;\\n"
        "if (!s) return;\\n"
        "t = [s.e, s.p.env || s.e];\\n"
        "for (n in s.v) for (v = s.v[n], i = 0; i < t.length; i++) {\\n"
        "    if (v === undefined) s.d ? t[i].delete(n) : delete t[i][n];\\n"
        "    else s.d ? t[i].set(n, v) : t[i][n] = v;\\n"
        "}\\n"
        "delete this.__kexec_env__;\")();"),

    ngx_string("void (()=>{}).constructor('d', \"" NGX_KEXEC_JS
        "P.chdir(d);\")("),
    ngx_string(");")
};


/*
 * R.  The code is evaluated below the base environment, so that functions
 * are found there and not among the user's.  Prior values are an option:
 * names, and values with NA for those that were unset.  IRkernel answers
 * "ok" to whatever fails in a silent request, unless its own object, which
 * is in a frame further out, is told.
 */

#define NGX_KEXEC_R      "base::invisible(base::eval(base::quote({"
#define NGX_KEXEC_R_END  "}), base::new.env(parent = base::baseenv())))"

static ngx_kexec_snippets_t  ngx_kexec_language_r = {

    ngx_string(NGX_KEXEC_R "\na <- c(character()"),

    ngx_string(", "),
    ngx_string(", "),
    ngx_string(""),

    ngx_string(")\n"
        "n <- a[c(TRUE, FALSE)]\n"
        "if (length(n)) do.call(Sys.setenv,\n"
        "    as.list(structure(a[c(FALSE, TRUE)], names = n)))\n"
        NGX_KEXEC_R_END),

    ngx_string(")\n"
        "n <- a[c(TRUE, FALSE)]\n"
        "s <- getOption(\"__kexec_env__\")\n"
        "u <- unique(n[!(n %in% s$n)])\n"
        "if (length(u)) options(`__kexec_env__` = list(n = c(s$n, u),\n"
        "    v = c(s$v, Sys.getenv(u, unset = NA, names = FALSE))))\n"
        "if (length(n)) do.call(Sys.setenv,\n"
        "    as.list(structure(a[c(FALSE, TRUE)], names = n)))\n"
        NGX_KEXEC_R_END),

    ngx_string(NGX_KEXEC_R "\n"
        "s <- getOption(\"__kexec_env__\")\n"
        "u <- is.na(s$v)\n"
        "if (any(u)) Sys.unsetenv(s$n[u])\n"
        "if (any(!u)) do.call(Sys.setenv,\n"
        "    as.list(structure(s$v[!u], names = s$n[!u])))\n"
        "options(`__kexec_env__` = NULL)\n"
        NGX_KEXEC_R_END),

    ngx_string(NGX_KEXEC_R "\np <- "),
    ngx_string("\n"
        "tryCatch(setwd(p), error = function(e) {\n"
        "    for (f in sys.frames()) {\n"
        "        s <- get0(\".self\", f)\n"
        "        if (inherits(s, \"Executor\") && s$is_silent()) {\n"
        "            s$handle_error(e)\n"
        "            break\n"
        "        }\n"
        "    }\n"
        "    stop(e)\n"
        "})\n"
        NGX_KEXEC_R_END)
};


/*
 * bash.  One line, since the kernel types it at a terminal and waits for a
 * prompt after each.  It has no exclamation mark but where history expansion
 * leaves it alone.  A function holds what is needed meanwhile and removes
 * itself; "|| ! :" gives its status without "set -e" ending the shell.
 * Keep makes the number of its arguments odd.
 *
 * Prior values are the output of "declare -p", which has attributes, arrays
 * and unexported variables right; empty for unset ones.  An old variable is
 * unset first, so that its attributes do not evaluate or redirect the value.
 * A readonly one cannot be set: that is an error, but the others are set.
 * Restoring unsets IFS too, since some values of it break "${!array[@]}".
 * The line is taken out of the shell's history, where it would show secrets.
 */

#define NGX_KEXEC_BASH                                                        \
    "__kexec() { builtin unset -f __kexec; "                                  \
    "if [[ -o history && $(builtin history 1) == *__kexec* ]]; then "         \
    "builtin history -d -1; fi; "

#define NGX_KEXEC_BASH_END  " >/dev/null 2>&1 || ! :"

static ngx_kexec_snippets_t  ngx_kexec_language_bash = {

    ngx_string(NGX_KEXEC_BASH
        "builtin local \"__kexec_k=$(($# % 2))\" __kexec_r=0; "
        "if ((__kexec_k)); then builtin declare -gA __kexec_env; fi; "
        "while (($# > 1)); do "
        "if ((__kexec_k)) && [[ -z ${__kexec_env[$1]+x} ]]; then "
        "__kexec_env[$1]=$(builtin declare -p \"$1\"); fi; "
        "builtin unset -n \"$1\"; if builtin unset -v \"$1\"; "
        "then builtin export \"$1=$2\"; else __kexec_r=1; fi; "
        "builtin shift 2; done; "
        "builtin return \"$__kexec_r\"; }; __kexec"),

    ngx_string(" "),
    ngx_string(" "),
    ngx_string(""),
    ngx_string(NGX_KEXEC_BASH_END),
    ngx_string(" keep" NGX_KEXEC_BASH_END),

    ngx_string(NGX_KEXEC_BASH
        "builtin local __kexec_n __kexec_v __kexec_r=0; "
        "builtin declare -gA __kexec_env; "
        "if [[ -z ${__kexec_env[IFS]+x} ]]; then "
        "__kexec_env[IFS]=$(builtin declare -p IFS); fi; "
        "builtin unset -v IFS; "
        "for __kexec_n in \"${!__kexec_env[@]}\"; do "
        "__kexec_v=${__kexec_env[$__kexec_n]}; "
        "builtin unset -n \"$__kexec_n\"; "
        "if builtin unset -v \"$__kexec_n\"; then "
        "if [[ -n $__kexec_v ]]; then __kexec_v=${__kexec_v#declare }; "
        "builtin declare -g \"${__kexec_v%% *}\" \"$__kexec_n\"; "
        "__kexec_v=${__kexec_v#* }; if [[ $__kexec_v == *=* ]]; then "
        "builtin eval \"$__kexec_v\"; fi; fi; "
        "elif [[ $(builtin declare -p \"$__kexec_n\") != \"$__kexec_v\" ]]; "
        "then __kexec_r=1; fi; done; "
        "builtin unset -v __kexec_env; "
        "builtin return \"$__kexec_r\"; }; __kexec" NGX_KEXEC_BASH_END),

    ngx_string(NGX_KEXEC_BASH "builtin cd -- \"$1\"; }; __kexec "),
    ngx_string(NGX_KEXEC_BASH_END)
};


/*
 * Java.  There is no setenv, so variables are system properties, and prior
 * values are properties too: "=" and the value, or empty for unset ones.
 * A block is a statement, of which JShell keeps no result and no names.
 */

#define NGX_KEXEC_JAVA                                                        \
    "{ java.util.Properties p = java.lang.System.getProperties(); "

static ngx_kexec_snippets_t  ngx_kexec_language_java = {

    ngx_string(NGX_KEXEC_JAVA "java.lang.String[][] a = { "),

    ngx_string("{ "),
    ngx_string(", "),
    ngx_string(" }, "),

    ngx_string("}; for (java.lang.String[] v : a) { "
        "p.setProperty(v[0], v[1]); } }"),

    ngx_string("}; for (java.lang.String[] v : a) { "
        "java.lang.String k = \"__kexec_env__.\" + v[0], "
        "o = p.getProperty(v[0]); "
        "if (p.getProperty(k) == null) { "
        "p.setProperty(k, o == null ? \"\" : \"=\" + o); } "
        "p.setProperty(v[0], v[1]); } }"),

    ngx_string(NGX_KEXEC_JAVA
        "for (java.lang.String k : p.stringPropertyNames()) { "
        "if (k.startsWith(\"__kexec_env__.\")) { "
        "java.lang.String n = k.substring(14), o = p.getProperty(k); "
        "if (o.isEmpty()) { p.remove(n); } "
        "else { p.setProperty(n, o.substring(1)); } "
        "p.remove(k); } } }"),

    ngx_string("{ java.lang.String d = "),
    ngx_string("; if (!new java.io.File(d).isDirectory()) { "
        "throw new java.io.FileNotFoundException(d); } "
        "java.lang.System.setProperty(\"user.dir\", d); }")
};


/*
 * What stands for itself in a literal of every language, and means nothing
 * to the terminals, magics and histories that read the code before it:
 * letters, digits, space, and ( ) + , - . / : = @ [ ] _
 */

static uint32_t  ngx_kexec_language_safe[] = {
    0x00000000,
    0x27fffb01,
    0xafffffff,
    0x07fffffe,
    0x00000000,
    0x00000000,
    0x00000000,
    0x00000000
};


size_t
ngx_kexec_language_normalize(u_char *p, ngx_str_t *language)
{
    u_char  c, *start, *s, *last;

    if (language->len == 0) {
        return 0;
    }

    start = p;
    s = language->data;
    last = s + language->len;

    while (s < last && (*s == ' ' || (*s >= '\t' && *s <= CR))) {
        s++;
    }

    while (s < last && (last[-1] == ' ' || (last[-1] >= '\t'
                                            && last[-1] <= CR)))
    {
        last--;
    }

    while (s < last) {
        c = *s++;
        *p++ = ngx_tolower(c);
    }

    if (p - start == 2 && start[1] == 's') {

        if (start[0] == 'j') {
            p = ngx_cpymem(start, "javascript", sizeof("javascript") - 1);

        } else if (start[0] == 't') {
            p = ngx_cpymem(start, "typescript", sizeof("typescript") - 1);
        }
    }

    return p - start;
}


ngx_kexec_language_e
ngx_kexec_language_find(ngx_str_t *name)
{
    u_char                      word[NGX_KEXEC_LANG_WORD + 10];
    size_t                      len;
    ngx_kexec_language_word_t  *w;

    if (name->len > NGX_KEXEC_LANG_WORD) {
        return NGX_KEXEC_LANG_OTHER;
    }

    len = ngx_kexec_language_normalize(word, name);

    for (w = ngx_kexec_language_words; w->word.len; w++) {

        if (w->word.len == len && ngx_memcmp(w->word.data, word, len) == 0) {
            return w->lang;
        }
    }

    return NGX_KEXEC_LANG_OTHER;
}


const char *
ngx_kexec_language_refuses(ngx_kexec_language_e lang, ngx_str_t *name,
    ngx_str_t *value)
{
    u_char      c;
    size_t      i;
    ngx_str_t  *own;

    if (ngx_kexec_language_snippets(lang) == NULL) {
        return "environment variables cannot be set in this language; "
               "leave them out and set them in the code";
    }

    if (name->len == 0) {
        return "the name of an environment variable is empty; "
               "give it a name or leave it out";
    }

    if (ngx_kexec_language_has(name, '=')) {
        return "the name of an environment variable has an equals sign, "
               "which no environment can hold; use another name";
    }

    if (ngx_kexec_language_has(name, '\0')) {
        return "the name of an environment variable has a NUL character, "
               "which no environment can hold; use another name";
    }

    if (ngx_kexec_language_has(value, '\0')) {
        return "the value of an environment variable has a NUL character, "
               "which no environment can hold; encode it, as base64 does";
    }

    if (lang != NGX_KEXEC_LANG_BASH) {
        return NULL;
    }

    for (i = 0; i < name->len; i++) {
        c = name->data[i] | 0x20;

        if ((c >= 'a' && c <= 'z') || name->data[i] == '_') {
            continue;
        }

        if (i > 0 && name->data[i] >= '0' && name->data[i] <= '9') {
            continue;
        }

        return "bash has only variables whose names are letters, digits and "
               "underscores and do not begin with a digit; use such a name";
    }

    /* the kernel of bash waits for a prompt of its own */

    if (name->len == 3 && name->data[0] == 'P' && name->data[1] == 'S'
        && (name->data[2] == '1' || name->data[2] == '2'))
    {
        return "bash needs its own prompts PS1 and PS2 to tell when code "
               "has ended; use another name";
    }

    for (own = ngx_kexec_language_readonly; own->len; own++) {

        if (own->len == name->len
            && ngx_memcmp(own->data, name->data, own->len) == 0)
        {
            return "bash has a variable of its own by that name, which cannot "
                   "be set; use another name";
        }
    }

    return NULL;
}


const char *
ngx_kexec_language_refuses_code(ngx_kexec_language_e lang, ngx_str_t *code)
{
    const char  *why;

    switch (lang) {

    case NGX_KEXEC_LANG_PYTHON:
        why = "the code has a NUL character, which Python does not take: "
              "remove it, or write it as \\0 in a string";
        break;

    case NGX_KEXEC_LANG_R:
        why = "the code has a NUL character, at which R would end it: "
              "remove it";
        break;

    case NGX_KEXEC_LANG_BASH:
        why = "the code has a NUL character, which bash would leave out: "
              "remove it";
        break;

    default:

        /* the others run it, or have their own words for it */

        return NULL;
    }

    return ngx_kexec_language_has(code, '\0') ? why : NULL;
}


ngx_int_t
ngx_kexec_language_set(ngx_kexec_out_t *out, ngx_kexec_language_e lang,
    ngx_keyval_t *vars, ngx_uint_t n, ngx_uint_t keep)
{
    ngx_uint_t             i;
    ngx_kexec_snippets_t  *s;

    s = ngx_kexec_language_snippets(lang);

    if (s == NULL) {
        return NGX_DECLINED;
    }

    /* bash evaluates what is in a name, so it must never get a bad one */

    for (i = 0; i < n; i++) {
        if (ngx_kexec_language_refuses(lang, &vars[i].key, &vars[i].value)) {
            return NGX_DECLINED;
        }
    }

    if (ngx_kexec_language_put(out, &s->head) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {

        if (ngx_kexec_language_put(out, &s->open) != NGX_OK
            || ngx_kexec_language_literal(out, lang, &vars[i].key) != NGX_OK
            || ngx_kexec_language_put(out, &s->mid) != NGX_OK
            || ngx_kexec_language_literal(out, lang, &vars[i].value) != NGX_OK
            || ngx_kexec_language_put(out, &s->close) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return ngx_kexec_language_put(out, keep ? &s->keep : &s->plain);
}


ngx_int_t
ngx_kexec_language_restore(ngx_kexec_out_t *out, ngx_kexec_language_e lang)
{
    ngx_kexec_snippets_t  *s;

    s = ngx_kexec_language_snippets(lang);

    if (s == NULL) {
        return NGX_DECLINED;
    }

    return ngx_kexec_language_put(out, &s->restore);
}


ngx_int_t
ngx_kexec_language_cwd(ngx_kexec_out_t *out, ngx_kexec_language_e lang,
    ngx_str_t *path)
{
    ngx_kexec_snippets_t  *s;

    s = ngx_kexec_language_snippets(lang);

    if (s == NULL || ngx_kexec_language_has(path, '\0')) {
        return NGX_DECLINED;
    }

    if (ngx_kexec_language_put(out, &s->cwd) != NGX_OK) {
        return NGX_ERROR;
    }

    if (lang == NGX_KEXEC_LANG_BASH
        && (path->len == 0 || path->data[0] != '/'))
    {
        /* not to be looked up in CDPATH, and "-" is a name */

        if (ngx_kexec_out_write(out, "./", 2) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (ngx_kexec_language_literal(out, lang, path) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_kexec_language_put(out, &s->cwd_end);
}


static ngx_kexec_snippets_t *
ngx_kexec_language_snippets(ngx_kexec_language_e lang)
{
    switch (lang) {

    case NGX_KEXEC_LANG_PYTHON:
        return &ngx_kexec_language_python;

    case NGX_KEXEC_LANG_JAVASCRIPT:
    case NGX_KEXEC_LANG_TYPESCRIPT:
        return &ngx_kexec_language_javascript;

    case NGX_KEXEC_LANG_R:
        return &ngx_kexec_language_r;

    case NGX_KEXEC_LANG_BASH:
        return &ngx_kexec_language_bash;

    case NGX_KEXEC_LANG_JAVA:
        return &ngx_kexec_language_java;

    default:
        return NULL;
    }
}


static ngx_int_t
ngx_kexec_language_literal(ngx_kexec_out_t *out, ngx_kexec_language_e lang,
    ngx_str_t *text)
{
    ngx_str_t  open, close;

    switch (lang) {

    case NGX_KEXEC_LANG_BASH:
        ngx_str_set(&open, "$'");
        ngx_str_set(&close, "'");
        break;

    case NGX_KEXEC_LANG_JAVA:
        ngx_str_set(&open, "java.lang.String.join(\"\", \"");
        ngx_str_set(&close, "\")");
        break;

    default:
        ngx_str_set(&open, "\"");
        ngx_str_set(&close, "\"");
    }

    if (ngx_kexec_language_put(out, &open) != NGX_OK
        || ngx_kexec_language_inside(out, lang, text) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_kexec_language_put(out, &close);
}


static ngx_int_t
ngx_kexec_language_inside(ngx_kexec_out_t *out, ngx_kexec_language_e lang,
    ngx_str_t *text)
{
    u_char  *p, *last, *chunk;

    p = text->data;
    last = p + text->len;
    chunk = p + NGX_KEXEC_LANG_CHUNK;

    while (p < last) {

        if (out->end - out->pos < NGX_KEXEC_LANG_ESCAPE) {
            if (out->more(out) != NGX_OK) {
                return NGX_ERROR;
            }
        }

        if (lang == NGX_KEXEC_LANG_JAVA && p >= chunk) {
            chunk = p + NGX_KEXEC_LANG_CHUNK;
            out->pos = ngx_cpymem(out->pos, "\", \"", 4);
            continue;
        }

        if (ngx_kexec_language_safe[*p >> 5] & (1U << (*p & 0x1f))) {
            *out->pos++ = *p++;

        } else if (*p < 0x80 || lang == NGX_KEXEC_LANG_R
                   || lang == NGX_KEXEC_LANG_BASH)
        {
            /* bytes are the same in every locale, characters are not */

            out->pos = ngx_kexec_language_escape(out->pos, lang, *p++);

        } else {
            out->pos = ngx_kexec_language_char(out->pos, lang,
                                         ngx_kexec_language_utf8(&p, last));
        }
    }

    return NGX_OK;
}


static u_char *
ngx_kexec_language_escape(u_char *p, ngx_kexec_language_e lang, u_char c)
{
    if (lang == NGX_KEXEC_LANG_JAVA) {

        /* \u0022 would be a quote, and \u000a a line break */

        *p++ = '\\';
        *p++ = '0' + (c >> 6);
        *p++ = '0' + ((c >> 3) & 0x07);
        *p++ = '0' + (c & 0x07);

        return p;
    }

    return ngx_kexec_language_hex(p, "\\x", c, 2);
}


/* a character that is not ASCII */

static u_char *
ngx_kexec_language_char(u_char *p, ngx_kexec_language_e lang, uint32_t n)
{
    if (lang == NGX_KEXEC_LANG_PYTHON) {

        /* os.environ makes the very byte of a lone surrogate */

        if (n > 0xffff) {
            return ngx_kexec_language_hex(p, "\\U", n, 8);
        }

        return ngx_kexec_language_hex(p, "\\u", n, 4);
    }

    if (n >= 0xdc80 && n <= 0xdcff) {
        n = 0xfffd;
    }

    if (n > 0xffff) {
        n -= 0x10000;
        p = ngx_kexec_language_hex(p, "\\u", 0xd800 + (n >> 10), 4);
        n = 0xdc00 + (n & 0x3ff);
    }

    return ngx_kexec_language_hex(p, "\\u", n, 4);
}


static u_char *
ngx_kexec_language_hex(u_char *p, const char *prefix, uint32_t n,
    ngx_uint_t digits)
{
    static u_char  hex[] = "0123456789abcdef";

    p = ngx_cpymem(p, prefix, 2);

    while (digits--) {
        *p++ = hex[(n >> (digits * 4)) & 0xf];
    }

    return p;
}


/*
 * The character at *pos, or U+DC80 to U+DCFF for a byte that is no UTF-8,
 * which is Python's surrogateescape.
 */

static uint32_t
ngx_kexec_language_utf8(u_char **pos, u_char *last)
{
    u_char    *p;
    size_t     len, i;
    uint32_t   n, least;

    p = *pos;

    if (*p >= 0xf0 && *p <= 0xf4) {
        len = 4;
        n = *p & 0x07;
        least = 0x10000;

    } else if (*p >= 0xe0) {
        len = 3;
        n = *p & 0x0f;
        least = 0x800;

    } else {
        len = 2;
        n = *p & 0x1f;
        least = 0x80;
    }

    if (*p < 0xc0 || *p > 0xf4 || (size_t) (last - p) < len) {
        goto invalid;
    }

    for (i = 1; i < len; i++) {

        if ((p[i] & 0xc0) != 0x80) {
            goto invalid;
        }

        n = (n << 6) | (p[i] & 0x3f);
    }

    if (n < least || n > 0x10ffff || (n >= 0xd800 && n <= 0xdfff)) {
        goto invalid;
    }

    *pos = p + len;

    return n;

invalid:

    *pos = p + 1;

    return 0xdc00 + *p;
}


static ngx_int_t
ngx_kexec_language_put(ngx_kexec_out_t *out, ngx_str_t *text)
{
    return ngx_kexec_out_write(out, text->data, text->len);
}


static ngx_uint_t
ngx_kexec_language_has(ngx_str_t *text, u_char c)
{
    size_t  i;

    for (i = 0; i < text->len; i++) {

        if (text->data[i] == c) {
            return 1;
        }
    }

    return 0;
}
