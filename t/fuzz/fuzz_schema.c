
/*
 * Copyright (C) the ngx_kexec_module authors
 */


/*
 * Bodies of requests.  The first byte says what the Content-Type and the
 * members are.  A body is an object with members of those types, or the answer
 * is a JSON object of the form that clients know.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_schema.h>


#define check(condition)  if (!(condition)) { abort(); }


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static ngx_kexec_field_t  execute[] = {
    { "code", NGX_KEXEC_FIELD_STRING, 1 },
    { "context_id", NGX_KEXEC_FIELD_STRING, 0 },
    { "language", NGX_KEXEC_FIELD_STRING, 0 },
    { "env_vars", NGX_KEXEC_FIELD_STRINGS, 0 },
    { "timeout", NGX_KEXEC_FIELD_SECONDS, 0 },
    { NULL, 0, 0 }
};

static ngx_kexec_field_t  create[] = {
    { "language", NGX_KEXEC_FIELD_STRING, 0 },
    { "cwd", NGX_KEXEC_FIELD_STRING, 0 },
    { NULL, 0, 0 }
};


ngx_int_t
ngx_strncasecmp(u_char *s1, u_char *s2, size_t n)
{
    return strncasecmp((char *) s1, (char *) s2, n);
}


static void
check_object(json_t *object, ngx_kexec_field_t *field)
{
    json_t      *value, *member;
    ngx_str_t    text;
    const char  *name;

    check(json_is_object(object));

    for ( /* void */ ; field->name; field++) {
        value = json_object_get(object, field->name);

        if (value == NULL || json_is_null(value)) {
            check(!field->required);
            continue;
        }

        switch (field->type) {

        case NGX_KEXEC_FIELD_STRING:
            check(json_is_string(value));

            ngx_kexec_schema_string(object, field->name, &text);
            check(text.len == json_string_length(value));
            break;

        case NGX_KEXEC_FIELD_STRINGS:
            check(json_is_object(value));

            json_object_foreach(value, name, member) {
                check(json_is_string(member));
            }

            break;

        default: /* NGX_KEXEC_FIELD_SECONDS */
            check(json_number_value(value) > 0);
        }
    }
}


static void
check_errors(const char *text, size_t size)
{
    size_t   i;
    json_t  *errors, *details, *detail;

    /* what is sent back is bounded: the body at most once for each field */

    check(strlen(text) <= 6 * 8 * size + 2048);

    errors = json_loads(text, JSON_ALLOW_NUL, NULL);
    check(errors);

    details = json_object_get(errors, "detail");
    check(json_array_size(details) > 0);

    json_array_foreach(details, i, detail) {
        check(json_is_string(json_object_get(detail, "type")));
        check(json_is_string(json_object_get(detail, "msg")));
        check(json_array_size(json_object_get(detail, "loc")) > 0);
    }

    json_decref(errors);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char               *errors;
    json_t             *object;
    ngx_str_t           body;
    ngx_int_t           rc;
    ngx_uint_t          is_json;
    ngx_kexec_field_t  *fields;

    if (size < 1) {
        return 0;
    }

    fields = (*data & 1) ? create : execute;
    is_json = !(*data & 2);

    data++;
    size--;

    body.len = size;
    body.data = malloc(size ? size : 1);
    memcpy(body.data, data, size);

    (void) ngx_kexec_schema_is_json(&body);

    rc = ngx_kexec_schema_parse(&body, is_json, fields, &object, &errors);

    if (rc == NGX_OK) {
        check_object(object, fields);
        json_decref(object);

    } else {
        check(rc == NGX_DECLINED);
        check_errors(errors, size);
        free(errors);
    }

    free(body.data);

    return 0;
}
