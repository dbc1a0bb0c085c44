
/*
 * Copyright (C) the ngx_kexec_module authors
 */


/*
 * Bodies of requests.  The first byte says what the Content-Type and the
 * members are.  A body is an object with members of those types, or the answer
 * is a JSON object of the form that clients know.  What jansson takes is JSON,
 * and the encoding of a text does not matter.
 */


#include <iconv.h>
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_schema.h>


#define check(condition)  if (!(condition)) { abort(); }

#define DEEP     "{\"detail\":[{\"type\":\"too_deep\""
#define INVALID  "{\"detail\":[{\"type\":\"json_invalid\""


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


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


/* what came of a body: nothing more but what a client could see */

static ngx_int_t
parse(const uint8_t *data, size_t size, ngx_uint_t is_json,
    ngx_kexec_field_t *fields, char **result)
{
    char       *errors;
    json_t     *object;
    ngx_int_t   rc;
    ngx_str_t   body;

    /* memory without a byte to spare */

    body.len = size;
    body.data = malloc(size ? size : 1);
    memcpy(body.data, data, size);

    (void) ngx_kexec_schema_is_json(&body);

    *result = NULL;

    rc = ngx_kexec_schema_parse(&body, is_json, fields, &object, &errors);

    if (rc == NGX_OK) {
        check_object(object, fields);
        *result = json_dumps(object, JSON_COMPACT);
        json_decref(object);

    } else if (rc == NGX_DECLINED) {
        check_errors(errors, size);
        *result = errors;

    } else {
        check(rc == NGX_ABORT && is_json);
    }

    free(body.data);

    return rc;
}


static void
check_jansson(const uint8_t *data, size_t size, ngx_int_t rc, char *result)
{
    size_t   i, brackets;
    json_t  *json;

    brackets = 0;

    for (i = 0; i < size; i++) {
        brackets += (data[i] == '[' || data[i] == '{');
    }

    check(brackets > 512 || result == NULL
          || strncmp(result, DEEP, sizeof(DEEP) - 1) != 0);

    json = json_loadb((char *) data, size, JSON_DECODE_ANY|JSON_ALLOW_NUL,
                      NULL);

    /* jansson takes NUL for the end */

    if (json && memchr(data, '\0', size) == NULL) {
        check(rc == NGX_OK
              || (rc == NGX_DECLINED
                  && strncmp(result, INVALID, sizeof(INVALID) - 1) != 0));
    }

    json_decref(json);
}


static void
check_encoding(const char *encoding, const uint8_t *data, size_t size,
    ngx_kexec_field_t *fields, ngx_int_t rc, char *result)
{
    char       *in, *out, *text, *other;
    size_t      in_left, out_left;
    iconv_t     cd;

    cd = iconv_open(encoding, "UTF-8");
    check(cd != (iconv_t) -1);

    in = (char *) data;
    in_left = size;
    out_left = 4 * size + 4;
    text = malloc(out_left);
    out = text;

    if (iconv(cd, &in, &in_left, &out, &out_left) != (size_t) -1) {

        check(parse((u_char *) text, out - text, 1, fields, &other) == rc);
        check(result == NULL || strcmp(result, other) == 0);

        free(other);
    }

    free(text);
    iconv_close(cd);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char               *result;
    ngx_int_t           rc;
    ngx_uint_t          is_json;
    ngx_kexec_field_t  *fields;

    if (size < 1) {
        return 0;
    }

    fields = (*data & 1) ? ngx_kexec_create_fields
                         : ngx_kexec_execute_fields;
    is_json = !(*data & 2);

    data++;
    size--;

    rc = parse(data, size, is_json, fields, &result);

    /* JSON begins with ASCII, and with more than that its encoding is told */

    if (is_json && size >= 2 && data[0] && data[0] < 0x80
        && data[1] && data[1] < 0x80)
    {
        check_jansson(data, size, rc, result);

        check_encoding("UTF-16", data, size, fields, rc, result);
        check_encoding("UTF-16LE", data, size, fields, rc, result);
        check_encoding("UTF-16BE", data, size, fields, rc, result);
        check_encoding("UTF-32", data, size, fields, rc, result);
        check_encoding("UTF-32LE", data, size, fields, rc, result);
        check_encoding("UTF-32BE", data, size, fields, rc, result);
    }

    free(result);

    return 0;
}
