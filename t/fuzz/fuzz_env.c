
/*
 * Copyright (C) the ngx_kexec_module authors
 */


/*
 * Environment variables of a request or of kexec_envs_url, as jansson's
 * objects.  The first byte says which language holds them, and whether what it
 * cannot hold is refused or left out; there may be a megabyte of them.
 */


#include <stub_core.h>

/* reading them; what the rest of the file calls is not linked */
#include <ngx_kexec_envs.c>


#define check(condition)  if (!(condition)) { abort(); }


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static ngx_uint_t  warnings;


u_char *
ngx_pstrdup(ngx_pool_t *p, ngx_str_t *src)
{
    return memcpy(ngx_palloc(p, src->len), src->data, src->len);
}


void
ngx_log_error_core(ngx_uint_t level, ngx_log_t *log, ngx_err_t err,
    const char *fmt, ...)
{
    check(level == NGX_LOG_WARN && log && err == 0 && fmt);

    warnings++;
}


static const char *
refused(json_t *value, const char *name, ngx_kexec_language_e kind)
{
    ngx_str_t  key, val;

    if (!json_is_string(value)) {
        return "no string";
    }

    key.len = strlen(name);
    key.data = (u_char *) name;
    val.len = json_string_length(value);
    val.data = (u_char *) json_string_value(value);

    return ngx_kexec_language_refuses(kind, &key, &val);
}


static void
check_read(json_t *object, ngx_kexec_language_e kind, ngx_log_t *log)
{
    u_char        *copy;
    json_t        *value;
    ngx_int_t      rc;
    ngx_uint_t     n, bad;
    const char    *name, *key, *why;
    ngx_keyval_t  *env, *kv;

    env = NULL;
    why = NULL;
    key = NULL;
    n = 17;
    bad = 0;
    warnings = 0;

    rc = ngx_kexec_env_read(object, kind, &stub_pool, &env, &n, log, &why,
                            &key);

    json_object_foreach (object, name, value) {
        bad += (refused(value, name, kind) != NULL);
    }

    if (bad && log == NULL) {
        check(rc == NGX_DECLINED && why && key);
        check(refused(json_object_get(object, key), key, kind));
        return;
    }

    check(rc == NGX_OK && warnings == bad);
    check(n == json_object_size(object) - bad);

    kv = env;

    json_object_foreach (object, name, value) {

        if (refused(value, name, kind)) {
            continue;
        }

        check(kv->key.len == strlen(name));
        check(memcmp(kv->key.data, name, kv->key.len) == 0);
        check(kv->value.len == json_string_length(value));
        check(memcmp(kv->value.data, json_string_value(value), kv->value.len)
              == 0);

        /* each is a copy of its own */

        copy = kv->value.data;
        check(copy != (u_char *) json_string_value(value));

        kv++;
        n--;
    }

    check(n == 0);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t                i, n;
    char                  name[32], *text;
    json_t               *object;
    ngx_log_t             log;
    ngx_kexec_language_e  kind;

    if (size < 2) {
        return 0;
    }

    kind = data[0] % (NGX_KEXEC_LANG_JAVA + 1);

    object = json_loadb((char *) data + 2, size - 2, JSON_ALLOW_NUL, NULL);

    if (json_is_object(object)) {

        if (data[1] & 0x80) {

            /* and some more, up to a megabyte */

            n = (data[1] & 0x7f) << 6;
            text = malloc(n + 1);
            memset(text, 'x', n);

            for (i = 0; i < (data[1] & 0x7f); i++) {
                snprintf(name, sizeof(name), "more_%zu", i);
                json_object_set_new(object, name, json_stringn(text, n));
            }

            free(text);
        }

        memset(&log, 0, sizeof(log));
        log.log_level = NGX_LOG_WARN;

        check_read(object, kind, NULL);
        check_read(object, kind, &log);
    }

    json_decref(object);
    stub_pool_free();

    return 0;
}
