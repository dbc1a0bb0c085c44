
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_jupyter.h>

#include <jansson.h>


/* how much of an answer that is not JSON is told to the caller, in bytes */
#define NGX_KEXEC_JUPYTER_EXCERPT  200


/* one kernelspec */

typedef struct {
    ngx_str_t             name;
    ngx_str_t             language;
} ngx_kexec_jupyter_spec_t;


static ngx_kexec_http_t *ngx_kexec_jupyter_call(ngx_kexec_server_t *server,
    const char *method, const char *collection, ngx_str_t *id,
    const char *action, ngx_str_t *body, ngx_kexec_http_pt handler,
    void *data, ngx_log_t *log);
static ngx_kexec_http_t *ngx_kexec_jupyter_post(ngx_kexec_server_t *server,
    const char *method, ngx_str_t *id, json_t *json,
    ngx_kexec_http_pt handler, void *data, ngx_log_t *log);
static ngx_uint_t ngx_kexec_jupyter_links(json_t *kernel);
static json_t *ngx_kexec_jupyter_load(ngx_str_t *body);
static ngx_int_t ngx_kexec_jupyter_member(json_t *object, const char *name,
    ngx_str_t *value);
static ngx_int_t ngx_kexec_jupyter_id(json_t *object, ngx_kexec_id_t *id);
static ngx_int_t ngx_kexec_jupyter_copy(ngx_pool_t *pool, ngx_str_t *dst,
    ngx_str_t *src);
static ngx_int_t ngx_kexec_jupyter_ids(json_t *model, ngx_kexec_id_t *session,
    ngx_kexec_id_t *kernel);
static ngx_array_t *ngx_kexec_jupyter_specs_list(ngx_pool_t *pool,
    json_t *root);
static ngx_kexec_jupyter_spec_t *ngx_kexec_jupyter_find_spec(
    ngx_array_t *specs, ngx_str_t *preferred, ngx_str_t *language);
static ngx_int_t ngx_kexec_jupyter_names(ngx_pool_t *pool, ngx_array_t *specs,
    ngx_str_t *names);
static int ngx_libc_cdecl ngx_kexec_jupyter_cmp_specs(const void *one,
    const void *two);
static int ngx_libc_cdecl ngx_kexec_jupyter_cmp_names(const void *one,
    const void *two);
static ngx_uint_t ngx_kexec_jupyter_same(ngx_str_t *one, ngx_str_t *two);


ngx_kexec_http_t *
ngx_kexec_jupyter_kernel(ngx_kexec_server_t *server, ngx_str_t *kernel,
    ngx_kexec_http_pt handler, void *data, ngx_log_t *log)
{
    return ngx_kexec_jupyter_call(server, "GET", "kernels", kernel, "", NULL,
                                  handler, data, log);
}


ngx_kexec_http_t *
ngx_kexec_jupyter_interrupt(ngx_kexec_server_t *server, ngx_str_t *kernel,
    ngx_kexec_http_pt handler, void *data, ngx_log_t *log)
{
    return ngx_kexec_jupyter_call(server, "POST", "kernels", kernel,
                                  "/interrupt", NULL, handler, data, log);
}


ngx_kexec_http_t *
ngx_kexec_jupyter_restart(ngx_kexec_server_t *server, ngx_str_t *kernel,
    ngx_kexec_http_pt handler, void *data, ngx_log_t *log)
{
    return ngx_kexec_jupyter_call(server, "POST", "kernels", kernel,
                                  "/restart", NULL, handler, data, log);
}


ngx_kexec_http_t *
ngx_kexec_jupyter_create(ngx_kexec_server_t *server, ngx_str_t *path,
    ngx_str_t *name, ngx_str_t *kernel_name, ngx_kexec_http_pt handler,
    void *data, ngx_log_t *log)
{
    return ngx_kexec_jupyter_post(server, "POST", NULL,
               json_pack("{s:s%, s:s%, s:s, s:{s:s%}}",
                         "path", path->data, path->len,
                         "name", name->data, name->len,
                         "type", "notebook",
                         "kernel", "name", kernel_name->data,
                         kernel_name->len),
               handler, data, log);
}


ngx_kexec_http_t *
ngx_kexec_jupyter_rename(ngx_kexec_server_t *server, ngx_str_t *session,
    ngx_str_t *name, ngx_kexec_http_pt handler, void *data, ngx_log_t *log)
{
    return ngx_kexec_jupyter_post(server, "PATCH", session,
                                  json_pack("{s:s%}", "name", name->data,
                                            name->len),
                                  handler, data, log);
}


/* sends json, which is given away, to the sessions or one of them */

static ngx_kexec_http_t *
ngx_kexec_jupyter_post(ngx_kexec_server_t *server, const char *method,
    ngx_str_t *id, json_t *json, ngx_kexec_http_pt handler, void *data,
    ngx_log_t *log)
{
    char              *text;
    ngx_str_t          body;
    ngx_kexec_http_t  *http;

    text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);

    if (text == NULL) {
        return NULL;
    }

    body.len = ngx_strlen(text);
    body.data = (u_char *) text;

    http = ngx_kexec_jupyter_call(server, method, "sessions", id, "", &body,
                                  handler, data, log);

    free(text);

    return http;
}


ngx_kexec_http_t *
ngx_kexec_jupyter_delete(ngx_kexec_server_t *server, ngx_str_t *session,
    ngx_kexec_http_pt handler, void *data, ngx_log_t *log)
{
    return ngx_kexec_jupyter_call(server, "DELETE", "sessions", session, "",
                                  NULL, handler, data, log);
}


ngx_kexec_http_t *
ngx_kexec_jupyter_sessions(ngx_kexec_server_t *server,
    ngx_kexec_http_pt handler, void *data, ngx_log_t *log)
{
    return ngx_kexec_jupyter_call(server, "GET", "sessions", NULL, "", NULL,
                                  handler, data, log);
}


ngx_kexec_http_t *
ngx_kexec_jupyter_specs(ngx_kexec_server_t *server, ngx_kexec_http_pt handler,
    void *data, ngx_log_t *log)
{
    return ngx_kexec_jupyter_call(server, "GET", "kernelspecs", NULL, "", NULL,
                                  handler, data, log);
}


ngx_kexec_http_t *
ngx_kexec_jupyter_status(ngx_kexec_server_t *server, ngx_kexec_http_pt handler,
    void *data, ngx_log_t *log)
{
    return ngx_kexec_jupyter_call(server, "GET", "status", NULL, "", NULL,
                                  handler, data, log);
}


static ngx_kexec_http_t *
ngx_kexec_jupyter_call(ngx_kexec_server_t *server, const char *method,
    const char *collection, ngx_str_t *id, const char *action, ngx_str_t *body,
    ngx_kexec_http_pt handler, void *data, ngx_log_t *log)
{
    u_char            *p;
    size_t             len;
    ngx_str_t          uri;
    ngx_kexec_http_t  *http;

    http = ngx_kexec_http_create(server, log);
    if (http == NULL) {
        return NULL;
    }

    len = sizeof("/api//") - 1 + ngx_strlen(collection) + ngx_strlen(action);

    if (id) {
        len += id->len + 2 * ngx_escape_uri(NULL, id->data, id->len,
                                            NGX_ESCAPE_URI_COMPONENT);
    }

    uri.data = ngx_pnalloc(http->pool, len);
    if (uri.data == NULL) {
        ngx_kexec_http_cancel(http);
        return NULL;
    }

    p = ngx_sprintf(uri.data, "/api/%s", collection);

    if (id) {
        *p++ = '/';
        p = (u_char *) ngx_escape_uri(p, id->data, id->len,
                                      NGX_ESCAPE_URI_COMPONENT);
    }

    p = ngx_cpymem(p, action, ngx_strlen(action));

    uri.len = p - uri.data;

    http->handler = handler;
    http->data = data;

    ngx_kexec_http_send(http, method, &uri, body);

    return http;
}


ngx_int_t
ngx_kexec_jupyter_parse_session(ngx_str_t *body, ngx_kexec_id_t *session,
    ngx_kexec_id_t *kernel)
{
    json_t     *root;
    ngx_int_t   rc;

    root = ngx_kexec_jupyter_load(body);

    rc = ngx_kexec_jupyter_ids(root, session, kernel);

    json_decref(root);

    return rc;
}


ngx_int_t
ngx_kexec_jupyter_parse_kernel(ngx_str_t *body,
    ngx_kexec_kernel_state_e *state, ngx_uint_t *links)
{
    json_t     *root;
    ngx_int_t   rc;
    ngx_str_t   text;

    root = ngx_kexec_jupyter_load(body);

    rc = ngx_kexec_jupyter_member(root, "execution_state", &text);

    if (rc == NGX_OK) {
        *state = NGX_KEXEC_KERNEL_OTHER;

        if (text.len == 4 && ngx_strncmp(text.data, "idle", 4) == 0) {
            *state = NGX_KEXEC_KERNEL_IDLE;

        } else if (text.len == 4 && ngx_strncmp(text.data, "busy", 4) == 0) {
            *state = NGX_KEXEC_KERNEL_BUSY;
        }

        *links = ngx_kexec_jupyter_links(root);
    }

    json_decref(root);

    return rc;
}


static ngx_uint_t
ngx_kexec_jupyter_links(json_t *kernel)
{
    json_int_t  n;

    n = json_integer_value(json_object_get(kernel, "connections"));

    return n > 0 ? (ngx_uint_t) n : 0;
}


ngx_int_t
ngx_kexec_jupyter_pick_spec(ngx_pool_t *pool, ngx_str_t *body,
    ngx_str_t *language, ngx_str_t *spec, ngx_str_t *kind, ngx_str_t *names)
{
    json_t                    *root;
    ngx_int_t                  rc;
    ngx_str_t                  preferred;
    ngx_array_t               *specs;
    ngx_kexec_jupyter_spec_t  *found;

    static ngx_str_t  typescript = ngx_string("typescript");
    static ngx_str_t  javascript = ngx_string("javascript");

    root = ngx_kexec_jupyter_load(body);

    specs = ngx_kexec_jupyter_specs_list(pool, root);
    if (specs == NULL) {
        rc = NGX_ERROR;
        goto done;
    }

    if (ngx_kexec_jupyter_member(root, "default", &preferred) != NGX_OK) {
        ngx_str_null(&preferred);
    }

    found = ngx_kexec_jupyter_find_spec(specs, &preferred, language);

    if (found == NULL && ngx_kexec_jupyter_same(language, &typescript)) {
        found = ngx_kexec_jupyter_find_spec(specs, &preferred, &javascript);
    }

    if (found == NULL) {
        rc = ngx_kexec_jupyter_names(pool, specs, names);
        goto done;
    }

    *spec = found->name;
    *kind = found->language;

    rc = NGX_OK;

done:

    json_decref(root);

    return rc;
}


/* sorted by name */

static ngx_array_t *
ngx_kexec_jupyter_specs_list(ngx_pool_t *pool, json_t *root)
{
    json_t                    *map, *entry;
    ngx_str_t                  name, language;
    const char                *key;
    ngx_array_t               *specs;
    ngx_kexec_jupyter_spec_t  *spec;

    map = json_object_get(root, "kernelspecs");
    if (!json_is_object(map)) {
        return NULL;
    }

    specs = ngx_array_create(pool, 8, sizeof(ngx_kexec_jupyter_spec_t));
    if (specs == NULL) {
        return NULL;
    }

    json_object_foreach(map, key, entry) {

        if (ngx_kexec_jupyter_member(json_object_get(entry, "spec"),
                                     "language", &language)
            != NGX_OK)
        {
            continue;
        }

        name.len = ngx_strlen(key);
        name.data = (u_char *) key;

        spec = ngx_array_push(specs);
        if (spec == NULL) {
            return NULL;
        }

        if (ngx_kexec_jupyter_copy(pool, &spec->name, &name) != NGX_OK
            || ngx_kexec_jupyter_copy(pool, &spec->language, &language)
               != NGX_OK)
        {
            return NULL;
        }
    }

    ngx_qsort(specs->elts, specs->nelts, sizeof(ngx_kexec_jupyter_spec_t),
              ngx_kexec_jupyter_cmp_specs);

    return specs;
}


static ngx_kexec_jupyter_spec_t *
ngx_kexec_jupyter_find_spec(ngx_array_t *specs, ngx_str_t *preferred,
    ngx_str_t *language)
{
    ngx_uint_t                 i;
    ngx_kexec_jupyter_spec_t  *spec, *first;

    spec = specs->elts;
    first = NULL;

    for (i = 0; i < specs->nelts; i++) {

        if (ngx_kexec_jupyter_same(&spec[i].name, language)) {
            return &spec[i];
        }
    }

    for (i = 0; i < specs->nelts; i++) {

        if (!ngx_kexec_jupyter_same(&spec[i].language, language)) {
            continue;
        }

        if (ngx_kexec_jupyter_same(&spec[i].name, preferred)) {
            return &spec[i];
        }

        if (first == NULL) {
            first = &spec[i];
        }
    }

    return first;
}


static ngx_int_t
ngx_kexec_jupyter_names(ngx_pool_t *pool, ngx_array_t *specs, ngx_str_t *names)
{
    u_char                    *p;
    size_t                     len;
    ngx_str_t                 *word;
    ngx_uint_t                 i, n;
    ngx_kexec_jupyter_spec_t  *spec;

    spec = specs->elts;
    n = 2 * specs->nelts;

    if (n == 0) {
        ngx_str_null(names);
        return NGX_DECLINED;
    }

    word = ngx_palloc(pool, n * sizeof(ngx_str_t));
    if (word == NULL) {
        return NGX_ERROR;
    }

    len = 0;

    for (i = 0; i < specs->nelts; i++) {
        word[2 * i] = spec[i].name;
        word[2 * i + 1] = spec[i].language;

        len += spec[i].name.len + spec[i].language.len + 2 * sizeof(", ");
    }

    ngx_qsort(word, n, sizeof(ngx_str_t), ngx_kexec_jupyter_cmp_names);

    p = ngx_pnalloc(pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    names->data = p;

    for (i = 0; i < n; i++) {

        if (i > 0) {
            if (ngx_kexec_jupyter_same(&word[i], &word[i - 1])) {
                continue;
            }

            *p++ = ','; *p++ = ' ';
        }

        p = ngx_cpymem(p, word[i].data, word[i].len);
    }

    names->len = p - names->data;

    return NGX_DECLINED;
}


void
ngx_kexec_jupyter_parse_error(ngx_pool_t *pool, ngx_str_t *body,
    ngx_str_t *message)
{
    json_t     *root;
    ngx_str_t   text;

    root = ngx_kexec_jupyter_load(body);

    if (ngx_kexec_jupyter_member(root, "message", &text) != NGX_OK
        || text.len == 0)
    {
        text = *body;

        if (text.len && text.data[0] == '<') {

            /* a page for browsers, which holds the token */

            ngx_str_set(&text, "Jupyter answered with an HTML page, is the "
                        "path of \"kexec_pass\" its base_url?");
        }

        if (text.len > NGX_KEXEC_JUPYTER_EXCERPT) {
            text.len = NGX_KEXEC_JUPYTER_EXCERPT;

            /* not in the middle of a character */

            while (text.len && (text.data[text.len] & 0xc0) == 0x80) {
                text.len--;
            }
        }

        while (text.len && text.data[text.len - 1] <= ' ') {
            text.len--;
        }

        if (text.len == 0) {
            ngx_str_set(&text, "Jupyter did not say why");
        }
    }

    if (ngx_kexec_jupyter_copy(pool, message, &text) != NGX_OK) {
        ngx_str_null(message);
    }

    json_decref(root);
}


ngx_array_t *
ngx_kexec_jupyter_parse_sessions(ngx_pool_t *pool, ngx_str_t *body)
{
    size_t                        i;
    json_t                       *root, *model, *k;
    ngx_str_t                     path, name, spec;
    ngx_array_t                  *sessions;
    ngx_kexec_id_t                session, kernel;
    ngx_kexec_jupyter_session_t  *s;

    sessions = NULL;

    root = ngx_kexec_jupyter_load(body);

    if (!json_is_array(root)) {
        goto failed;
    }

    sessions = ngx_array_create(pool, 8, sizeof(ngx_kexec_jupyter_session_t));
    if (sessions == NULL) {
        goto failed;
    }

    json_array_foreach(root, i, model) {

        /* one that lacks anything was not made by this module */

        if (ngx_kexec_jupyter_ids(model, &session, &kernel) != NGX_OK
            || ngx_kexec_jupyter_member(model, "path", &path) != NGX_OK
            || ngx_kexec_jupyter_member(model, "name", &name) != NGX_OK)
        {
            continue;
        }

        s = ngx_array_push(sessions);
        if (s == NULL) {
            goto failed;
        }

        k = json_object_get(model, "kernel");

        if (ngx_kexec_jupyter_member(k, "name", &spec) != NGX_OK) {
            ngx_str_set(&spec, "");
        }

        s->session = session;
        s->kernel = kernel;
        s->links = ngx_kexec_jupyter_links(k);

        if (ngx_kexec_jupyter_copy(pool, &s->path, &path) != NGX_OK
            || ngx_kexec_jupyter_copy(pool, &s->name, &name) != NGX_OK
            || ngx_kexec_jupyter_copy(pool, &s->spec, &spec) != NGX_OK)
        {
            goto failed;
        }
    }

    json_decref(root);

    return sessions;

failed:

    json_decref(root);

    return NULL;
}


/* NULL, which jansson's functions take as nothing at all: it is no JSON */

static json_t *
ngx_kexec_jupyter_load(ngx_str_t *body)
{
    return json_loadb((char *) body->data, body->len, JSON_ALLOW_NUL, NULL);
}


static ngx_int_t
ngx_kexec_jupyter_member(json_t *object, const char *name, ngx_str_t *value)
{
    json_t  *member;

    member = json_object_get(object, name);

    if (!json_is_string(member)) {
        return NGX_ERROR;
    }

    value->len = json_string_length(member);
    value->data = (u_char *) json_string_value(member);

    return NGX_OK;
}


static ngx_int_t
ngx_kexec_jupyter_id(json_t *object, ngx_kexec_id_t *id)
{
    ngx_str_t  value;

    if (ngx_kexec_jupyter_member(object, "id", &value) != NGX_OK
        || value.len == 0 || value.len > NGX_KEXEC_ID_LEN)
    {
        return NGX_ERROR;
    }

    id->len = value.len;
    ngx_memcpy(id->data, value.data, value.len);

    return NGX_OK;
}


static ngx_int_t
ngx_kexec_jupyter_ids(json_t *model, ngx_kexec_id_t *session,
    ngx_kexec_id_t *kernel)
{
    if (ngx_kexec_jupyter_id(model, session) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_kexec_jupyter_id(json_object_get(model, "kernel"), kernel);
}


static ngx_int_t
ngx_kexec_jupyter_copy(ngx_pool_t *pool, ngx_str_t *dst, ngx_str_t *src)
{
    dst->len = src->len;

    dst->data = ngx_pnalloc(pool, src->len);
    if (dst->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(dst->data, src->data, src->len);

    return NGX_OK;
}


static int ngx_libc_cdecl
ngx_kexec_jupyter_cmp_specs(const void *one, const void *two)
{
    ngx_kexec_jupyter_spec_t  *first, *second;

    first = (ngx_kexec_jupyter_spec_t *) one;
    second = (ngx_kexec_jupyter_spec_t *) two;

    return (int) ngx_memn2cmp(first->name.data, second->name.data,
                              first->name.len, second->name.len);
}


static int ngx_libc_cdecl
ngx_kexec_jupyter_cmp_names(const void *one, const void *two)
{
    size_t      n;
    ngx_int_t   rc;
    ngx_str_t  *first, *second;

    first = (ngx_str_t *) one;
    second = (ngx_str_t *) two;

    n = ngx_min(first->len, second->len);

    rc = ngx_strncasecmp(first->data, second->data, n);

    return (int) (rc ? rc : (ngx_int_t) (first->len - second->len));
}


static ngx_uint_t
ngx_kexec_jupyter_same(ngx_str_t *one, ngx_str_t *two)
{
    return one->len == two->len
           && ngx_strncasecmp(one->data, two->data, one->len) == 0;
}
