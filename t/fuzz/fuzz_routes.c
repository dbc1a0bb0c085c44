
/*
 * Copyright (C) the ngx_kexec_module authors
 */


/*
 * Paths of requests, below locations with and without a slash at their end.
 * What is called, allowed, redirected or not there is what another reading of
 * the same table says, from memory without a byte to spare.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_answer.c>
#include <ngx_kexec_routes.c>


#define check(condition)  if (!(condition)) { abort(); }


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


ngx_module_t  ngx_http_kexec_module;

static char        hex[] = "0123456789ABCDEF";

static ngx_str_t   seen_id;
static ngx_int_t   called;              /* -1: no handler */
static ngx_str_t   allow, location;
static ngx_uint_t  status;

static ngx_list_t         *headers;
static ngx_table_elt_t     header;
static ngx_http_request_t  request;
static void               *pieces[16];
static ngx_uint_t          npieces;


/* nginx */

void *
ngx_pnalloc(ngx_pool_t *pool, size_t size)
{
    check(pool == NULL && npieces < 16);

    pieces[npieces] = malloc(size ? size : 1);

    return pieces[npieces++];
}


void *
ngx_list_push(ngx_list_t *list)
{
    check(list == headers);

    return &header;
}


uintptr_t
ngx_escape_uri(u_char *dst, u_char *src, size_t size, ngx_uint_t type)
{
    uintptr_t  n;

    check(type == NGX_ESCAPE_URI);

    for (n = 0; size--; src++) {

        if (*src > 0x20 && *src < 0x7f && !strchr("\"#%<>?\\^`{|}", *src)) {

            if (dst) {
                *dst++ = *src;
            }

            continue;
        }

        n++;

        if (dst) {
            *dst++ = '%';
            *dst++ = hex[*src >> 4];
            *dst++ = hex[*src & 15];
        }
    }

    return dst ? (uintptr_t) dst : n;
}


ngx_int_t
ngx_http_discard_request_body(ngx_http_request_t *r)
{
    check(r == &request);

    return NGX_OK;
}


ngx_int_t
ngx_http_send_header(ngx_http_request_t *r)
{
    check(r == &request && status == 0);

    status = r->headers_out.status;

    if (status == NGX_HTTP_NOT_ALLOWED) {
        check(header.key.len == 5 && memcmp(header.key.data, "Allow", 5) == 0);
        allow = header.value;
    }

    if (status == NGX_HTTP_TEMPORARY_REDIRECT) {
        check(header.key.len == 8);
        location = header.value;
    }

    return NGX_ERROR;
}


void
ngx_http_finalize_request(ngx_http_request_t *r, ngx_int_t rc)
{
    check(r == &request && rc == NGX_ERROR && status);
}


/* the module */

ngx_kexec_report_t *
ngx_kexec_report(ngx_http_request_t *r)
{
    check(r == &request);

    return NULL;
}


ngx_int_t
ngx_kexec_hold(ngx_http_request_t *r, ngx_kexec_handler_pt handler,
    ngx_str_t *id)
{
    check(r == &request && handler && id);

    return NGX_DECLINED;
}


#define handler(name, n)                                                     \
                                                                             \
ngx_int_t                                                                    \
name(ngx_http_request_t *r, ngx_str_t *id)                                   \
{                                                                            \
    check(r == &request && called == -1);                                    \
                                                                             \
    called = n;                                                              \
    seen_id = *id;                                                           \
                                                                             \
    return NGX_DONE;                                                         \
}

handler(ngx_kexec_health_handler, 0)
handler(ngx_kexec_execute_handler, 1)
handler(ngx_kexec_list_handler, 2)
handler(ngx_kexec_create_handler, 3)
handler(ngx_kexec_delete_handler, 4)
handler(ngx_kexec_restart_handler, 5)
handler(ngx_kexec_interrupt_handler, 6)


/* bits of the handlers that a path has, by what stands between its slashes */

static ngx_uint_t
handlers(const u_char *p, size_t len, ngx_str_t *id)
{
    char         *words[4], *word;
    size_t        n;
    static char   text[(1 << 20) + 64];

    id->len = 0;

    if (len == 0 || p[0] != '/') {
        return 0;
    }

    memcpy(text, p + 1, len - 1);
    text[len - 1] = '\0';

    word = text;

    for (n = 0; word && n < 4; n++) {
        words[n] = strsep(&word, "/");
    }

    if (word) {
        return 0;
    }

    if (n == 1) {
        return strcmp(words[0], "health") == 0 ? 1 << 0
               : strcmp(words[0], "execute") == 0 ? 1 << 1
               : strcmp(words[0], "contexts") == 0 ? 1 << 2 | 1 << 3
               : 0;
    }

    if (strcmp(words[0], "contexts") != 0 || words[1][0] == '\0') {
        return 0;
    }

    id->len = strlen(words[1]);

    if (n == 2) {
        return 1 << 4;
    }

    return n > 3 ? 0
           : strcmp(words[2], "restart") == 0 ? 1 << 5
           : strcmp(words[2], "interrupt") == 0 ? 1 << 6
           : 0;
}


static void
check_redirect(ngx_str_t *uri, ngx_str_t *args)
{
    u_char     *p, *last;
    size_t      i;
    ngx_uint_t  c;

    p = location.data;
    last = p + location.len;

    for (i = 0; i < uri->len - 1; i++) {
        check(p < last);
        c = *p++;

        if (c == '%') {
            check(last - p >= 2 && strchr(hex, p[0]) && strchr(hex, p[1]));
            c = (strchr(hex, p[0]) - hex) << 4 | (strchr(hex, p[1]) - hex);
            p += 2;

        } else {
            check(c > 0x20 && c < 0x7f);
        }

        check(c == uri->data[i]);
    }

    if (args->len) {
        check(last - p == (ssize_t) args->len + 1 && *p == '?');
        check(memcmp(p + 1, args->data, args->len) == 0);

    } else {
        check(p == last);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t                     skip;
    ngx_str_t                  id;
    ngx_uint_t                 i, known, hit;
    ngx_http_kexec_loc_conf_t  conf;
    static ngx_event_t         rev;
    static ngx_connection_t    c;
    static void               *loc_conf[1];

    static ngx_str_t   locations[] = {
        ngx_string("/"), ngx_string("/api/"), ngx_string("/api"),
        ngx_string("")
    };

    static ngx_uint_t  methods[] = {
        NGX_HTTP_GET, NGX_HTTP_POST, NGX_HTTP_DELETE, NGX_HTTP_PUT
    };

    static ngx_uint_t  method_of[] = {
        NGX_HTTP_GET, NGX_HTTP_POST, NGX_HTTP_GET, NGX_HTTP_POST,
        NGX_HTTP_DELETE, NGX_HTTP_POST, NGX_HTTP_POST
    };

    /* nginx refuses NUL itself */

    if (size < 1 || size > 1 << 20 || memchr(data + 1, '\0', size - 1)) {
        return 0;
    }

    memset(&request, 0, sizeof(request));
    memset(&conf, 0, sizeof(conf));
    memset(&header, 0, sizeof(header));

    called = -1;
    status = 0;
    npieces = 0;
    headers = &request.headers_out.headers;

    loc_conf[0] = &conf;
    conf.location = locations[data[0] & 3];
    c.read = &rev;

    request.main = &request;
    request.connection = &c;
    request.loc_conf = loc_conf;
    request.valid_location = 1;
    request.method = methods[(data[0] >> 2) & 3];

    if (data[0] & 0x10) {
        ngx_str_set(&request.args, "a=b%20c");
    }

    /* nginx gives a location only what begins with it */

    request.uri.len = conf.location.len + size - 1;
    request.uri.data = malloc(request.uri.len ? request.uri.len : 1);
    memcpy(request.uri.data, conf.location.data, conf.location.len);
    memcpy(request.uri.data + conf.location.len, data + 1, size - 1);

    check(ngx_kexec_route(&request) == NGX_DONE);

    skip = conf.location.len;

    if (skip && conf.location.data[skip - 1] == '/') {
        skip--;
    }

    known = handlers(request.uri.data + skip, request.uri.len - skip, &id);
    hit = 0;

    for (i = 0; i < 7; i++) {

        if ((known & 1 << i) && method_of[i] == request.method) {
            check(called == (ngx_int_t) i && status == 0);
            check(seen_id.len == id.len);
            hit = 1;
        }
    }

    if (hit) {
        /* it was called */

    } else if (known) {
        check(called == -1 && status == NGX_HTTP_NOT_ALLOWED);
        check(allow.len == (known == (1 << 2 | 1 << 3) ? 9
                            : known == 1 << 0 ? 3 : known == 1 << 4 ? 6 : 4));

    } else if (request.uri.len > skip + 1
               && request.uri.data[request.uri.len - 1] == '/'
               && handlers(request.uri.data + skip,
                           request.uri.len - skip - 1, &id))
    {
        check(called == -1 && status == NGX_HTTP_TEMPORARY_REDIRECT);
        check_redirect(&request.uri, &request.args);

    } else {
        check(called == -1 && status == NGX_HTTP_NOT_FOUND);
    }

    free(request.uri.data);

    while (npieces) {
        free(pieces[--npieces]);
    }

    return 0;
}
