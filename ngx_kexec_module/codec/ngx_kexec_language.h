
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_LANGUAGE_H_INCLUDED_
#define _NGX_KEXEC_LANGUAGE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_json.h>


/*
 * Silent snippets per language: environment variables and the working
 * directory are data, given to the kernel by requests of their own and never
 * pasted into the user's code.
 *
 * Pure: no I/O, no allocation, only nginx's basic types.
 */


/* the numbers stand in the names of Jupyter's sessions: add only at the end */

typedef enum {
    NGX_KEXEC_LANG_OTHER = 0,           /* no snippets: nothing can be set */
    NGX_KEXEC_LANG_PYTHON,
    NGX_KEXEC_LANG_JAVASCRIPT,
    NGX_KEXEC_LANG_TYPESCRIPT,
    NGX_KEXEC_LANG_R,
    NGX_KEXEC_LANG_BASH,
    NGX_KEXEC_LANG_JAVA
} ngx_kexec_language_e;


/*
 * The normal form of a caller's word for a language: lower case, without
 * white space around it, "js" and "ts" spelt out.  Writes at most len bytes
 * to p and returns the length, 0 for an empty word.  len >= language->len.
 * "typescript" is the longest growth: p must have room for len + 10 bytes.
 */
size_t ngx_kexec_language_normalize(u_char *p, ngx_str_t *language);

/*
 * Which snippets to use: by the normal name or the kernelspec's language
 * ("R", "deno", "python3", "node", "ir" are known too).
 */
ngx_kexec_language_e ngx_kexec_language_find(ngx_str_t *name);

/*
 * Can the language hold such a variable?  NULL, or a sentence for the caller
 * that says why not and what can be done.  Names: not empty, no '=' and no
 * NUL in any language; for bash also [A-Za-z_][A-Za-z0-9_]*, but not PS1, PS2
 * and what is readonly (UID, ...).  Values: no NUL.
 */
const char *ngx_kexec_language_refuses(ngx_kexec_language_e lang,
    ngx_str_t *name, ngx_str_t *value);

/*
 * Makes lines of code that end in CR LF end in LF, in place, where the language
 * takes the CR for a part of the code: in R and bash.
 */
void ngx_kexec_language_lines(ngx_kexec_language_e lang, ngx_str_t *code);

/*
 * Can the language's kernel take such code?  NULL, or a sentence for the caller
 * that says why not and what can be done.  A NUL is lost on the way to bash,
 * ends the code for R, and leaves Python 3.11's without an answer.
 */
const char *ngx_kexec_language_refuses_code(ngx_kexec_language_e lang,
    ngx_str_t *code);

/*
 * Each writes the source of one silent request:
 *
 * set      sets the variables; with keep, first remembers the prior value
 *          of each that is not yet remembered (so a repeat is harmless)
 * restore  puts all remembered prior values back (unset ones are unset) and
 *          forgets them; harmless when nothing is remembered
 * cwd      changes the working directory; an error of the kernel's language
 *          if that fails
 *
 * None of them leaves a name in the user's namespace, prints, counts as the
 * last value (_), or depends on what the user has assigned to common names
 * (os, process, ...) as far as the language allows.
 * NGX_OK, NGX_DECLINED (the language has no such snippet, or refuses one of
 * the variables, or the path has a NUL; nothing written), NGX_ERROR (the
 * output refused).
 */
ngx_int_t ngx_kexec_language_set(ngx_kexec_out_t *out,
    ngx_kexec_language_e lang, ngx_keyval_t *vars, ngx_uint_t n,
    ngx_uint_t keep);
ngx_int_t ngx_kexec_language_restore(ngx_kexec_out_t *out,
    ngx_kexec_language_e lang);
ngx_int_t ngx_kexec_language_cwd(ngx_kexec_out_t *out,
    ngx_kexec_language_e lang, ngx_str_t *path);


#endif /* _NGX_KEXEC_LANGUAGE_H_INCLUDED_ */
