
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_SCHEMA_H_INCLUDED_
#define _NGX_KEXEC_SCHEMA_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <jansson.h>


/*
 * Request bodies: JSON objects with known members, and what is wrong with one
 * in the words that the reference server's clients know (those of pydantic).
 *
 * Pure: no I/O; memory is jansson's.
 */


typedef enum {
    NGX_KEXEC_FIELD_STRING = 0,
    NGX_KEXEC_FIELD_STRINGS,            /* object of strings */
    NGX_KEXEC_FIELD_SECONDS             /* number above 0 */
} ngx_kexec_field_type_e;


typedef struct {
    const char               *name;     /* NULL ends a list of fields */
    ngx_kexec_field_type_e    type;
    ngx_uint_t                required;
} ngx_kexec_field_t;


/* what POST /execute and POST /contexts take */
extern ngx_kexec_field_t  ngx_kexec_execute_fields[];
extern ngx_kexec_field_t  ngx_kexec_create_fields[];


/*
 * NGX_OK: *object has the body's members of those names, to be given back with
 * json_decref().  Members that are null can be taken as absent.
 * NGX_DECLINED: *errors is the JSON text of a 422's body, to be freed with
 * free().
 * NGX_ABORT: the body is no text at all.
 * NGX_ERROR: no memory.
 * is_json: whether the body's Content-Type says so.
 */
ngx_int_t ngx_kexec_schema_parse(ngx_str_t *body, ngx_uint_t is_json,
    ngx_kexec_field_t *fields, json_t **object, char **errors);

/*
 * The text of a body as UTF-8, without a byte order mark: like Python's
 * json.loads(), it takes UTF-8, UTF-16 and UTF-32, and lone surrogates in them.
 * *text is a part of body or, unless *memory is NULL, stands in memory to be
 * freed with free().
 * NGX_OK; NGX_DECLINED: none of these; NGX_ERROR: no memory.
 */
ngx_int_t ngx_kexec_schema_decode(ngx_str_t *body, ngx_str_t *text,
    u_char **memory);

/* does a Content-Type (empty: there is none) stand for JSON? */
ngx_uint_t ngx_kexec_schema_is_json(ngx_str_t *content_type);

/* a member that is a string and not empty, else an empty one */
void ngx_kexec_schema_string(json_t *object, const char *name,
    ngx_str_t *value);


#endif /* _NGX_KEXEC_SCHEMA_H_INCLUDED_ */
