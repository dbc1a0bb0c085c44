
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_JSON_H_INCLUDED_
#define _NGX_KEXEC_JSON_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * JSON (RFC 8259) as spans: the text is walked, never decoded, so whatever a
 * kernel prints passes unchanged: NUL, lone surrogates, big integers, bytes
 * that are not UTF-8, and Python's NaN, Infinity and -Infinity.
 *
 * Pure: no I/O, no allocation, only nginx's basic types.
 */


/* the deepest nesting that is walked; deeper text is refused */
#define NGX_KEXEC_JSON_DEPTH  512

/* the least room that more() makes */
#define NGX_KEXEC_OUT_ROOM    64


/*
 * Where bytes are written: a window [pos, end) into memory that the owner
 * holds, and more(), which the writer calls when the window is too small.
 * more() takes over what was written up to pos and sets a new window of at
 * least NGX_KEXEC_OUT_ROOM bytes.  It returns NGX_OK or NGX_ERROR; after an
 * error the writer returns NGX_ERROR at once.
 */

typedef struct ngx_kexec_out_s  ngx_kexec_out_t;

struct ngx_kexec_out_s {
    u_char       *pos;
    u_char       *end;
    ngx_int_t   (*more)(ngx_kexec_out_t *out);
    void         *data;
};


typedef enum {
    NGX_KEXEC_JSON_NONE = 0,
    NGX_KEXEC_JSON_NULL,
    NGX_KEXEC_JSON_TRUE,
    NGX_KEXEC_JSON_FALSE,
    NGX_KEXEC_JSON_NUMBER,              /* NaN and Infinity included */
    NGX_KEXEC_JSON_STRING,
    NGX_KEXEC_JSON_ARRAY,
    NGX_KEXEC_JSON_OBJECT
} ngx_kexec_json_type_e;


/* an iterator over the members of an object or the elements of an array */

typedef struct {
    u_char       *pos;
    u_char       *end;
    ngx_uint_t    state;                /* private */
} ngx_kexec_json_iter_t;


/*
 * Checks that [text] is one JSON value (with white space around it) and
 * makes *value the span of the value alone, quotes and brackets included.
 * NGX_OK or NGX_DECLINED.
 */
ngx_int_t ngx_kexec_json_check(ngx_str_t *text, ngx_str_t *value);

/* by the first byte of a span that ngx_kexec_json_check() or _next() made */
ngx_kexec_json_type_e ngx_kexec_json_type(ngx_str_t *value);

/*
 * Starts over an object's or array's span.  NGX_DECLINED if it is neither.
 */
ngx_int_t ngx_kexec_json_open(ngx_kexec_json_iter_t *iter, ngx_str_t *value);

/*
 * The next member or element: NGX_OK, or NGX_DONE behind the last one.
 * The key is the span between the quotes, still escaped; it is empty for
 * array elements.  Either may be NULL.
 *
 * The text is checked on the way, so that a large one need not be walked
 * twice: NGX_DECLINED if it is not JSON, which never happens to a checked
 * span.
 */
ngx_int_t ngx_kexec_json_next(ngx_kexec_json_iter_t *iter, ngx_str_t *key,
    ngx_str_t *value);

/*
 * The value of the last member of that name, as in Python.
 * NGX_OK, or NGX_DECLINED if there is none or the span is no object.
 */
ngx_int_t ngx_kexec_json_member(ngx_str_t *object, const char *name,
    ngx_str_t *value);

/* the span between the quotes of a string span, NGX_DECLINED if no string */
ngx_int_t ngx_kexec_json_string(ngx_str_t *value, ngx_str_t *text);

/* is the inside of a string (a key) that ASCII text, however it is escaped? */
ngx_uint_t ngx_kexec_json_equal(ngx_str_t *inside, const char *name);


/* plain bytes, as they are */
ngx_int_t ngx_kexec_out_write(ngx_kexec_out_t *out, const void *data,
    size_t len);

/*
 * Writes a checked JSON value (or the inside of a JSON string) so that the
 * output is ASCII and valid JSON and means the same: bytes above 0x7e become
 * \uXXXX (pairs above U+FFFF; DEL too, as the reference does), a byte that is
 * no UTF-8 becomes \ufffd, NaN and the infinities become null, and between
 * tokens stands what Python's json.dumps() puts there: ", " and ": ".
 * Existing escapes are kept as they are.
 */
ngx_int_t ngx_kexec_json_write_value(ngx_kexec_out_t *out, ngx_str_t *value);
ngx_int_t ngx_kexec_json_write_inside(ngx_kexec_out_t *out, ngx_str_t *inside);

/*
 * Writes arbitrary bytes (UTF-8, not JSON) as the inside of a JSON string,
 * without the quotes: ", \, control characters and all that is not ASCII
 * escaped, invalid UTF-8 as \ufffd.
 */
ngx_int_t ngx_kexec_json_write_text(ngx_kexec_out_t *out, ngx_str_t *text);

/* the number of bytes that ngx_kexec_json_write_text() writes */
size_t ngx_kexec_json_text_size(ngx_str_t *text);


#endif /* _NGX_KEXEC_JSON_H_INCLUDED_ */
