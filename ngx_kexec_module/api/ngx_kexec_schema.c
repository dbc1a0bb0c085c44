
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_json.h>
#include <ngx_kexec_schema.h>


/* a request has few values; a tree of millions takes seconds and gigabytes */
#define NGX_KEXEC_SCHEMA_VALUES  65536

/* what is wrong in a larger body is not sent back along with the error */
#define NGX_KEXEC_SCHEMA_ECHO    65536


/* the most fields that a list of them has */
#define NGX_KEXEC_SCHEMA_FIELDS  8


static ngx_int_t ngx_kexec_schema_read(ngx_str_t *text,
    ngx_kexec_field_t *fields, json_t *object, json_t *details);
static ngx_int_t ngx_kexec_schema_invalid(ngx_str_t *text, json_t *details);
static ngx_int_t ngx_kexec_schema_not_object(json_t *details, json_t *input);
static void ngx_kexec_schema_members(ngx_str_t *value,
    ngx_kexec_field_t *fields, ngx_str_t *members);
static ngx_uint_t ngx_kexec_schema_values(ngx_str_t *body);
static ngx_int_t ngx_kexec_schema_check(ngx_str_t *text,
    ngx_kexec_field_t *field, json_t *object, ngx_uint_t echo,
    json_t *details);
static ngx_int_t ngx_kexec_schema_string_check(ngx_str_t *text,
    json_t *value, const char *field, const char *member, ngx_uint_t echo,
    json_t *details);
static ngx_int_t ngx_kexec_schema_strings(ngx_str_t *text,
    ngx_kexec_field_t *field, json_t *object, ngx_uint_t echo,
    json_t *details);
static ngx_int_t ngx_kexec_schema_seconds(ngx_str_t *text, json_t *value,
    const char *field, ngx_uint_t echo, json_t *details);
static json_t *ngx_kexec_schema_load(ngx_str_t *text, size_t flags);
static ngx_int_t ngx_kexec_schema_error(json_t *details, const char *type,
    const char *field, const char *member, const char *message,
    json_t *input);
static ngx_int_t ngx_kexec_schema_errors(json_t *details, char **errors);


ngx_kexec_field_t  ngx_kexec_execute_fields[] = {
    { "code", NGX_KEXEC_FIELD_STRING, 1 },
    { "context_id", NGX_KEXEC_FIELD_STRING, 0 },
    { "language", NGX_KEXEC_FIELD_STRING, 0 },
    { "env_vars", NGX_KEXEC_FIELD_STRINGS, 0 },
    { "timeout", NGX_KEXEC_FIELD_SECONDS, 0 },
    { NULL, 0, 0 }
};


ngx_kexec_field_t  ngx_kexec_create_fields[] = {
    { "language", NGX_KEXEC_FIELD_STRING, 0 },
    { "cwd", NGX_KEXEC_FIELD_STRING, 0 },
    { NULL, 0, 0 }
};


ngx_int_t
ngx_kexec_schema_parse(ngx_str_t *body, ngx_uint_t is_json,
    ngx_kexec_field_t *fields, json_t **object, char **errors)
{
    u_char     *memory;
    json_t     *json, *details;
    ngx_int_t   rc;
    ngx_str_t   text;

    memory = NULL;
    json = NULL;

    details = json_array();
    if (details == NULL) {
        return NGX_ERROR;
    }

    if (body->len == 0) {
        rc = ngx_kexec_schema_error(details, "missing", NULL, NULL,
                                    "Field required", json_null());

    } else if (!is_json) {

        /* the text itself is what is not an object */

        json = body->len <= NGX_KEXEC_SCHEMA_ECHO
               ? json_stringn((char *) body->data, body->len)
               : NULL;

        rc = ngx_kexec_schema_not_object(details, json);

    } else {
        rc = ngx_kexec_schema_decode(body, &text, &memory);

        if (rc == NGX_DECLINED) {
            rc = NGX_ABORT;
        }

        if (rc == NGX_OK) {
            json = json_object();
            rc = json ? ngx_kexec_schema_read(&text, fields, json, details)
                      : NGX_ERROR;
        }
    }

    if (rc == NGX_OK && json_array_size(details)) {
        rc = ngx_kexec_schema_errors(details, errors);
    }

    free(memory);
    json_decref(details);

    if (rc == NGX_OK) {
        *object = json;
    } else {
        json_decref(json);
    }

    return rc;
}


/*
 * Only what is used becomes a tree.  Elsewhere all may stand that Python's
 * json.loads() takes and jansson does not: NaN, numbers of any size, lone
 * surrogates, NUL in names.
 */

static ngx_int_t
ngx_kexec_schema_read(ngx_str_t *text, ngx_kexec_field_t *fields,
    json_t *object, json_t *details)
{
    json_t      *input;
    ngx_int_t    rc;
    ngx_str_t    value, members[NGX_KEXEC_SCHEMA_FIELDS];
    ngx_uint_t   i, echo;

    if (ngx_kexec_json_check(text, &value) != NGX_OK) {
        return ngx_kexec_schema_invalid(text, details);
    }

    echo = (text->len <= NGX_KEXEC_SCHEMA_ECHO);

    switch (ngx_kexec_json_type(&value)) {

    case NGX_KEXEC_JSON_OBJECT:
        break;

    case NGX_KEXEC_JSON_NULL:
        return ngx_kexec_schema_error(details, "missing", NULL, NULL,
                                      "Field required", json_null());

    default:
        input = echo ? ngx_kexec_schema_load(&value, 0) : NULL;
        rc = ngx_kexec_schema_not_object(details, input);
        json_decref(input);

        return rc;
    }

    ngx_kexec_schema_members(&value, fields, members);

    for (i = 0; fields[i].name; i++) {

        if (members[i].len) {
            rc = ngx_kexec_schema_check(&members[i], &fields[i], object, echo,
                                        details);

        } else if (fields[i].required) {

            input = echo ? ngx_kexec_schema_load(&value, 0) : NULL;
            rc = ngx_kexec_schema_error(details, "missing", fields[i].name,
                                        NULL, "Field required", input);
            json_decref(input);

        } else {
            continue;
        }

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


/* what is no JSON, in jansson's words */

static ngx_int_t
ngx_kexec_schema_invalid(ngx_str_t *text, json_t *details)
{
    u_char        *nul;
    json_t        *json, *detail;
    ngx_uint_t     taken;
    json_error_t   error;

    if (ngx_kexec_schema_values(text) > NGX_KEXEC_SCHEMA_VALUES) {
        return ngx_kexec_schema_error(details, "too_long", NULL, NULL,
                                      "Body has too many values, 65536 are "
                                      "allowed", NULL);
    }

    json = json_loadb((char *) text->data, text->len,
                      JSON_DECODE_ANY|JSON_ALLOW_NUL, &error);

    taken = (json != NULL);
    json_decref(json);

    nul = memchr(text->data, '\0', text->len);

    if (taken && nul) {

        /* jansson takes one for the end */

        error.position = nul - text->data;
        ngx_memcpy(error.text, "unexpected NUL", sizeof("unexpected NUL"));

    } else if (taken) {
        return ngx_kexec_schema_error(details, "too_deep", NULL, NULL,
                                      "Body is nested too deep, 512 levels "
                                      "are allowed", NULL);
    }

    detail = json_pack("{s:s, s:[s, i], s:s, s:{}, s:{s:s}}",
                       "type", "json_invalid",
                       "loc", "body", error.position,
                       "msg", "JSON decode error",
                       "input",
                       "ctx", "error", error.text);

    if (detail == NULL) {
        detail = json_pack("{s:s, s:[s], s:s}", "type", "json_invalid", "loc",
                           "body", "msg", "JSON decode error");
    }

    return json_array_append_new(details, detail) == 0 ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_kexec_schema_not_object(json_t *details, json_t *input)
{
    return ngx_kexec_schema_error(details, "model_attributes_type", NULL, NULL,
                                  "Input should be a valid dictionary or "
                                  "object to extract fields from", input);
}


/* the last member of each name, as in Python; an empty one: there is none */

static void
ngx_kexec_schema_members(ngx_str_t *value, ngx_kexec_field_t *fields,
    ngx_str_t *members)
{
    ngx_str_t              key, member;
    ngx_uint_t             i;
    ngx_kexec_json_iter_t  iter;

    ngx_memzero(members, NGX_KEXEC_SCHEMA_FIELDS * sizeof(ngx_str_t));

    (void) ngx_kexec_json_open(&iter, value);

    while (ngx_kexec_json_next(&iter, &key, &member) == NGX_OK) {

        for (i = 0; fields[i].name; i++) {
            if (ngx_kexec_json_equal(&key, fields[i].name)) {
                members[i] = member;
            }
        }
    }
}


static ngx_uint_t
ngx_kexec_schema_values(ngx_str_t *body)
{
    u_char      *p, *last;
    ngx_uint_t   n, quoted;

    n = 0;
    quoted = 0;
    last = body->data + body->len;

    for (p = body->data; p < last; p++) {

        if (quoted) {

            if (*p == '\\') {
                p++;

            } else if (*p == '"') {
                quoted = 0;
            }

            continue;
        }

        switch (*p) {

        case '"':
            quoted = 1;
            break;

        case ',':
        case ':':
        case '[':
        case '{':
            n++;
            break;
        }
    }

    return n;
}


static ngx_int_t
ngx_kexec_schema_check(ngx_str_t *text, ngx_kexec_field_t *field,
    json_t *object, ngx_uint_t echo, json_t *details)
{
    json_t     *value;
    ngx_int_t   rc;
    ngx_uint_t  before;

    if (ngx_kexec_json_type(text) == NGX_KEXEC_JSON_NULL && !field->required) {
        return NGX_OK;
    }

    if (ngx_kexec_schema_values(text) > NGX_KEXEC_SCHEMA_VALUES) {
        return ngx_kexec_schema_error(details, "too_long", field->name, NULL,
                                      "Input has too many values, 65536 are "
                                      "allowed", NULL);
    }

    if (field->type == NGX_KEXEC_FIELD_STRINGS
        && ngx_kexec_json_type(text) == NGX_KEXEC_JSON_OBJECT)
    {
        return ngx_kexec_schema_strings(text, field, object, echo, details);
    }

    value = ngx_kexec_schema_load(text, 0);
    before = json_array_size(details);

    switch (field->type) {

    case NGX_KEXEC_FIELD_STRING:
        rc = ngx_kexec_schema_string_check(text, value, field->name, NULL,
                                           echo, details);
        break;

    case NGX_KEXEC_FIELD_STRINGS:
        rc = ngx_kexec_schema_error(details, "dict_type", field->name, NULL,
                                    "Input should be a valid dictionary",
                                    echo ? value : NULL);
        break;

    default: /* NGX_KEXEC_FIELD_SECONDS */

        if (value == NULL) {
            value = ngx_kexec_schema_load(text, JSON_DECODE_INT_AS_REAL);
        }

        rc = ngx_kexec_schema_seconds(text, value, field->name, echo, details);
    }

    if (rc == NGX_OK && json_array_size(details) == before
        && json_object_set(object, field->name, value) != 0)
    {
        rc = NGX_ERROR;
    }

    json_decref(value);

    return rc;
}


static ngx_int_t
ngx_kexec_schema_string_check(ngx_str_t *text, json_t *value,
    const char *field, const char *member, ngx_uint_t echo, json_t *details)
{
    if (json_is_string(value)) {
        return NGX_OK;
    }

    if (ngx_kexec_json_type(text) == NGX_KEXEC_JSON_STRING) {

        /* a lone surrogate, which no text has */

        return ngx_kexec_schema_error(details, "string_unicode", field, member,
                                      "Input should be a valid string, unable "
                                      "to parse raw data as a unicode string",
                                      NULL);
    }

    return ngx_kexec_schema_error(details, "string_type", field, member,
                                  "Input should be a valid string",
                                  echo ? value : NULL);
}


static ngx_int_t
ngx_kexec_schema_strings(ngx_str_t *text, ngx_kexec_field_t *field,
    json_t *object, ngx_uint_t echo, json_t *details)
{
    json_t                 *strings, *key, *value;
    ngx_int_t               rc;
    ngx_str_t               quoted, member;
    ngx_uint_t              before;
    const char             *name;
    ngx_kexec_json_iter_t   iter;

    strings = json_object();

    if (strings == NULL
        || json_object_set_new(object, field->name, strings) != 0)
    {
        return NGX_ERROR;
    }

    (void) ngx_kexec_json_open(&iter, text);

    while (ngx_kexec_json_next(&iter, &quoted, &member) == NGX_OK) {

        quoted.data--;
        quoted.len += 2;

        key = ngx_kexec_schema_load(&quoted, 0);
        name = json_string_value(key);

        if (name == NULL || json_string_length(key) != ngx_strlen(name)) {
            rc = ngx_kexec_schema_error(details, "string_unicode", field->name,
                                        NULL, "Names should be valid strings "
                                        "without NUL", NULL);
            goto next;
        }

        value = ngx_kexec_schema_load(&member, 0);
        before = json_array_size(details);

        rc = ngx_kexec_schema_string_check(&member, value, field->name, name,
                                           echo, details);

        if (rc == NGX_OK && json_array_size(details) == before
            && json_object_set(strings, name, value) != 0)
        {
            rc = NGX_ERROR;
        }

        json_decref(value);

    next:

        json_decref(key);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_kexec_schema_seconds(ngx_str_t *text, json_t *value, const char *field,
    ngx_uint_t echo, json_t *details)
{
    if (ngx_kexec_json_type(text) != NGX_KEXEC_JSON_NUMBER) {
        return ngx_kexec_schema_error(details, "float_type", field, NULL,
                                      "Input should be a valid number",
                                      echo ? value : NULL);
    }

    if (value == NULL) {

        /* NaN, an infinity, or 1e400 */

        return ngx_kexec_schema_error(details, "finite_number", field, NULL,
                                      "Input should be a finite number", NULL);
    }

    if (!(json_number_value(value) > 0)) {
        return ngx_kexec_schema_error(details, "greater_than", field, NULL,
                                      "Input should be greater than 0",
                                      echo ? value : NULL);
    }

    return NGX_OK;
}


/* NULL: jansson cannot hold it */

static json_t *
ngx_kexec_schema_load(ngx_str_t *text, size_t flags)
{
    return json_loadb((char *) text->data, text->len,
                      JSON_DECODE_ANY|JSON_ALLOW_NUL|flags, NULL);
}


static ngx_int_t
ngx_kexec_schema_error(json_t *details, const char *type, const char *field,
    const char *member, const char *message, json_t *input)
{
    json_t  *detail;

    if (member) {
        detail = json_pack("{s:s, s:[s, s, s], s:s}", "type", type, "loc",
                           "body", field, member, "msg", message);
    } else if (field) {
        detail = json_pack("{s:s, s:[s, s], s:s}", "type", type, "loc",
                           "body", field, "msg", message);
    } else {
        detail = json_pack("{s:s, s:[s], s:s}", "type", type, "loc", "body",
                           "msg", message);
    }

    if (detail && input && json_object_set(detail, "input", input) != 0) {
        json_decref(detail);
        detail = NULL;
    }

    if (detail == NULL || json_array_append_new(details, detail) != 0) {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_kexec_schema_errors(json_t *details, char **errors)
{
    json_t  *answer;

    answer = json_pack("{s:O}", "detail", details);
    if (answer == NULL) {
        return NGX_ERROR;
    }

    *errors = json_dumps(answer, JSON_COMPACT);

    json_decref(answer);

    return *errors ? NGX_DECLINED : NGX_ERROR;
}


ngx_uint_t
ngx_kexec_schema_is_json(ngx_str_t *content_type)
{
    size_t   len;
    u_char  *p;

    if (content_type->len == 0) {
        return 1;
    }

    p = content_type->data;

    for (len = 0; len < content_type->len; len++) {
        if (p[len] == ';') {
            break;
        }
    }

    while (len && p[len - 1] == ' ') {
        len--;
    }

    if (len < sizeof("application/json") - 1
        || ngx_strncasecmp(p, (u_char *) "application/",
                           sizeof("application/") - 1)
           != 0)
    {
        return 0;
    }

    return (len == sizeof("application/json") - 1
            && ngx_strncasecmp(p + len - 4, (u_char *) "json", 4) == 0)
           || ngx_strncasecmp(p + len - 5, (u_char *) "+json", 5) == 0;
}


void
ngx_kexec_schema_string(json_t *object, const char *name, ngx_str_t *value)
{
    json_t  *json;

    json = json_object_get(object, name);

    value->data = (u_char *) json_string_value(json);
    value->len = json_string_length(json);
}
