
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_schema.h>


/* a request has few values; a tree of millions takes seconds and gigabytes */
#define NGX_KEXEC_SCHEMA_VALUES  65536

/* what is wrong in a larger body is not sent back along with the error */
#define NGX_KEXEC_SCHEMA_ECHO    65536


static ngx_uint_t ngx_kexec_schema_values(ngx_str_t *body);
static ngx_int_t ngx_kexec_schema_check(json_t *object,
    ngx_kexec_field_t *field, ngx_uint_t echo, json_t *details);
static ngx_int_t ngx_kexec_schema_error(json_t *details, const char *type,
    const char *field, const char *member, const char *message,
    json_t *input);
static ngx_int_t ngx_kexec_schema_errors(json_t *details, char **errors);


ngx_int_t
ngx_kexec_schema_parse(ngx_str_t *body, ngx_uint_t is_json,
    ngx_kexec_field_t *fields, json_t **object, char **errors)
{
    json_t        *json, *details, *detail;
    ngx_int_t      rc;
    ngx_uint_t     echo;
    json_error_t   error;

    details = json_array();
    if (details == NULL) {
        return NGX_ERROR;
    }

    json = NULL;
    rc = NGX_OK;
    echo = (body->len <= NGX_KEXEC_SCHEMA_ECHO);

    if (body->len == 0) {
        rc = ngx_kexec_schema_error(details, "missing", NULL, NULL,
                                    "Field required", json_null());
        goto done;
    }

    if (!is_json) {

        /* the text itself is what is not an object */

        json = json_stringn((char *) body->data, body->len);

    } else if (ngx_kexec_schema_values(body) > NGX_KEXEC_SCHEMA_VALUES) {

        rc = ngx_kexec_schema_error(details, "too_long", NULL, NULL,
                                    "Body has too many values, 65536 are "
                                    "allowed", NULL);
        goto done;

    } else {
        json = json_loadb((char *) body->data, body->len,
                          JSON_DECODE_ANY|JSON_ALLOW_NUL, &error);

        if (json == NULL) {
            detail = json_pack("{s:s, s:[s, i], s:s, s:{}, s:{s:s}}",
                               "type", "json_invalid",
                               "loc", "body", error.position,
                               "msg", "JSON decode error",
                               "input",
                               "ctx", "error", error.text);

            if (detail == NULL) {
                detail = json_pack("{s:s, s:[s], s:s}", "type",
                                   "json_invalid", "loc", "body", "msg",
                                   "JSON decode error");
            }

            rc = json_array_append_new(details, detail) == 0 ? NGX_OK
                                                             : NGX_ERROR;
            goto done;
        }
    }

    if (json_is_null(json)) {
        rc = ngx_kexec_schema_error(details, "missing", NULL, NULL,
                                    "Field required", json);
        goto done;
    }

    if (!json_is_object(json)) {
        rc = ngx_kexec_schema_error(details, "model_attributes_type", NULL,
                                    NULL, "Input should be a valid dictionary "
                                    "or object to extract fields from",
                                    !echo ? NULL
                                          : json ? json : json_null());
        goto done;
    }

    for ( /* void */ ; fields->name && rc == NGX_OK; fields++) {
        rc = ngx_kexec_schema_check(json, fields, echo, details);
    }

done:

    if (rc == NGX_OK && json_array_size(details)) {
        rc = ngx_kexec_schema_errors(details, errors);
    }

    json_decref(details);

    if (rc == NGX_OK) {
        *object = json;
    } else {
        json_decref(json);
    }

    return rc;
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
ngx_kexec_schema_check(json_t *object, ngx_kexec_field_t *field,
    ngx_uint_t echo, json_t *details)
{
    json_t      *value, *member;
    ngx_int_t    rc;
    const char  *name;

    value = json_object_get(object, field->name);

    if (value == NULL) {

        if (field->required) {
            return ngx_kexec_schema_error(details, "missing", field->name,
                                          NULL, "Field required",
                                          echo ? object : NULL);
        }

        return NGX_OK;
    }

    if (json_is_null(value) && !field->required) {
        return NGX_OK;
    }

    switch (field->type) {

    case NGX_KEXEC_FIELD_STRING:

        if (!json_is_string(value)) {
            return ngx_kexec_schema_error(details, "string_type", field->name,
                                          NULL,
                                          "Input should be a valid string",
                                          echo ? value : NULL);
        }

        return NGX_OK;

    case NGX_KEXEC_FIELD_STRINGS:

        if (!json_is_object(value)) {
            return ngx_kexec_schema_error(details, "dict_type", field->name,
                                          NULL, "Input should be a valid "
                                          "dictionary", echo ? value : NULL);
        }

        json_object_foreach (value, name, member) {

            if (json_is_string(member)) {
                continue;
            }

            rc = ngx_kexec_schema_error(details, "string_type", field->name,
                                        name, "Input should be a valid string",
                                        echo ? member : NULL);
            if (rc != NGX_OK) {
                return rc;
            }
        }

        return NGX_OK;

    default: /* NGX_KEXEC_FIELD_SECONDS */

        if (!json_is_number(value)) {
            return ngx_kexec_schema_error(details, "float_type", field->name,
                                          NULL, "Input should be a valid "
                                          "number", echo ? value : NULL);
        }

        if (!(json_number_value(value) > 0)) {
            return ngx_kexec_schema_error(details, "greater_than",
                                          field->name, NULL, "Input should "
                                          "be greater than 0",
                                          echo ? value : NULL);
        }

        return NGX_OK;
    }
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
