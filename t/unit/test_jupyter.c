
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "kexec_unit.h"
#include "stub_core.h"
#include <ngx_kexec_jupyter.h>


/* the call that was started last */

static struct {
    ngx_kexec_http_t   http;
    char               method[16];
    char               uri[256];
    char               body[1024];
} call;


uintptr_t
ngx_escape_uri(u_char *dst, u_char *src, size_t size, ngx_uint_t type)
{
    char        hex[4];
    ngx_uint_t  n;

    assert_int_equal(type, NGX_ESCAPE_URI_COMPONENT);

    for (n = 0; size; src++, size--) {

        if (isalnum(*src) || strchr("-._~", *src)) {

            if (dst) {
                *dst++ = *src;
            }

            continue;
        }

        n++;

        if (dst) {
            sprintf(hex, "%%%02X", *src);
            dst = ngx_cpymem(dst, hex, 3);
        }
    }

    return dst ? (uintptr_t) dst : n;
}


ngx_kexec_http_t *
ngx_kexec_http_create(ngx_kexec_server_t *server, ngx_log_t *log)
{
    (void) log;

    memset(&call, 0, sizeof(call));

    call.http.server = *server;
    call.http.pool = &stub_pool;

    return &call.http;
}


void
ngx_kexec_http_send(ngx_kexec_http_t *http, const char *method,
    ngx_str_t *uri, ngx_str_t *body)
{
    assert_ptr_equal(http, &call.http);

    strcpy(call.method, method);
    memcpy(call.uri, uri->data, uri->len);

    if (body) {
        memcpy(call.body, body->data, body->len);
    }
}


void
ngx_kexec_http_cancel(ngx_kexec_http_t *http)
{
    (void) http;

    fail();
}


static void
handler(ngx_kexec_http_t *http)
{
    (void) http;
}


static void
assert_call(ngx_kexec_http_t *http, const char *method, const char *uri,
    const char *body)
{
    assert_ptr_equal(http, &call.http);
    assert_ptr_equal(http->handler, handler);
    assert_ptr_equal(http->data, &call);

    assert_string_equal(call.method, method);
    assert_string_equal(call.uri, uri);
    assert_string_equal(call.body, body);

    stub_pool_free();
}


static void
test_calls(void **state)
{
    ngx_str_t            id, path, name, spec;
    ngx_kexec_server_t   server;

    (void) state;

    memset(&server, 0, sizeof(server));

    id = unit_str("a-b/../c?d%");

    assert_call(ngx_kexec_jupyter_kernel(&server, &id, handler, &call, NULL),
                "GET", "/api/kernels/a-b%2F..%2Fc%3Fd%25", "");
    assert_call(ngx_kexec_jupyter_interrupt(&server, &id, handler, &call,
                                            NULL),
                "POST", "/api/kernels/a-b%2F..%2Fc%3Fd%25/interrupt", "");
    assert_call(ngx_kexec_jupyter_delete(&server, &id, handler, &call, NULL),
                "DELETE", "/api/sessions/a-b%2F..%2Fc%3Fd%25", "");

    id = unit_str("k");

    assert_call(ngx_kexec_jupyter_restart(&server, &id, handler, &call, NULL),
                "POST", "/api/kernels/k/restart", "");
    assert_call(ngx_kexec_jupyter_sessions(&server, handler, &call, NULL),
                "GET", "/api/sessions", "");
    assert_call(ngx_kexec_jupyter_specs(&server, handler, &call, NULL),
                "GET", "/api/kernelspecs", "");
    assert_call(ngx_kexec_jupyter_status(&server, handler, &call, NULL),
                "GET", "/api/status", "");

    path = unit_str("home/\xc3\xa4 \"x\"\\y\n");
    name.data = (u_char *) "n\0m";
    name.len = 3;
    spec = unit_str("python3");

    assert_call(ngx_kexec_jupyter_create(&server, &path, &name, &spec,
                                         handler, &call, NULL),
                "POST", "/api/sessions",
                "{\"path\":\"home/\xc3\xa4 \\\"x\\\"\\\\y\\n\","
                "\"name\":\"n\\u0000m\",\"type\":\"notebook\","
                "\"kernel\":{\"name\":\"python3\"}}");

    /* no UTF-8: nothing is sent */

    path = unit_str("\xff");

    assert_null(ngx_kexec_jupyter_create(&server, &path, &name, &spec,
                                         handler, &call, NULL));
}


#define ID64  "0123456789012345678901234567890123456789012345678901234567890123"


static void
test_session(void **state)
{
    size_t           i;
    ngx_str_t        body;
    ngx_kexec_id_t   session, kernel;

    static const char *const  wrong[] = {
        "", "null", "[]", "\"id\"", "{}", "{\"id\":\"s\"}",
        "{\"id\":\"s\",\"kernel\":null}",
        "{\"id\":\"s\",\"kernel\":{\"id\":7}}",
        "{\"id\":\"s\",\"kernel\":{\"id\":\"\"}}",
        "{\"id\":\"\",\"kernel\":{\"id\":\"k\"}}",
        "{\"id\":\"s\",\"kernel\":{\"id\":\"" ID64 "4\"}}",
        "{\"id\":\"s\",\"kernel\":{\"id\":\"k\"}",
        "{\"id\":\"s\",\"kernel\":{\"id\":\"k\"}} x"
    };

    (void) state;

    body = unit_str("{\"id\":\"s1\",\"path\":\"p\",\"kernel\":{\"id\":\"" ID64
                    "\",\"name\":\"python3\"}}");

    assert_int_equal(ngx_kexec_jupyter_parse_session(&body, &session, &kernel),
                     NGX_OK);
    unit_assert_bytes(session.data, session.len, "s1", 2);
    unit_assert_bytes(kernel.data, kernel.len, ID64, 64);

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        body = unit_str(wrong[i]);
        assert_int_equal(ngx_kexec_jupyter_parse_session(&body, &session,
                                                         &kernel),
                         NGX_ERROR);
    }
}


static void
test_kernel(void **state)
{
    ngx_str_t                  body;
    ngx_uint_t                 links;
    ngx_kexec_kernel_state_e   is;

    (void) state;

    body = unit_str("{\"id\":\"k\",\"execution_state\":\"idle\","
                    "\"connections\":2}");
    assert_int_equal(ngx_kexec_jupyter_parse_kernel(&body, &is, &links),
                     NGX_OK);
    assert_int_equal(is, NGX_KEXEC_KERNEL_IDLE);
    assert_int_equal(links, 2);

    body = unit_str("{\"execution_state\":\"idles\"}");
    assert_int_equal(ngx_kexec_jupyter_parse_kernel(&body, &is, &links),
                     NGX_OK);
    assert_int_equal(is, NGX_KEXEC_KERNEL_OTHER);
    assert_int_equal(links, 0);

    body = unit_str("{\"execution_state\":\"busy\"}");
    assert_int_equal(ngx_kexec_jupyter_parse_kernel(&body, &is, &links),
                     NGX_OK);
    assert_int_equal(is, NGX_KEXEC_KERNEL_BUSY);

    body = unit_str("{\"execution_state\":null}");
    assert_int_equal(ngx_kexec_jupyter_parse_kernel(&body, &is, &links),
                     NGX_ERROR);

    body = unit_str("<html>");
    assert_int_equal(ngx_kexec_jupyter_parse_kernel(&body, &is, &links),
                     NGX_ERROR);
}


#define spec(name, language)                                                  \
    "\"" name "\":{\"name\":\"" name "\",\"spec\":{\"language\":\"" language  \
    "\"},\"resources\":{}}"

#define SPECS                                                                 \
    "{\"default\":\"python3\",\"kernelspecs\":{"                              \
    spec("xeus", "Python") "," spec("python3", "python") ","                  \
    spec("apython", "python") "," spec("zir", "R") "," spec("ir", "R") ","    \
    spec("javascript", "javascript") "," spec("bash", "bash") ","             \
    "\"broken\":{\"spec\":null}}}"


static void
assert_spec(const char *specs, const char *language, const char *name,
    const char *kind)
{
    ngx_str_t  body, lang, spec, got, names;

    body = unit_str(specs);
    lang = unit_str(language);

    assert_int_equal(ngx_kexec_jupyter_pick_spec(&stub_pool, &body, &lang,
                                                 &spec, &got, &names),
                     NGX_OK);
    unit_assert_str(&spec, name);
    unit_assert_str(&got, kind);

    stub_pool_free();
}


static void
assert_no_spec(const char *specs, const char *language, const char *there)
{
    ngx_str_t  body, lang, spec, got, names;

    body = unit_str(specs);
    lang = unit_str(language);

    assert_int_equal(ngx_kexec_jupyter_pick_spec(&stub_pool, &body, &lang,
                                                 &spec, &got, &names),
                     NGX_DECLINED);
    unit_assert_str(&names, there);

    stub_pool_free();
}


static void
test_pick_spec(void **state)
{
    ngx_str_t  body, lang, spec, got, names;

    (void) state;

    /* the default one, though another comes first */
    assert_spec(SPECS, "python", "python3", "python");

    /* by name */
    assert_spec(SPECS, "apython", "apython", "python");
    assert_spec(SPECS, "javascript", "javascript", "javascript");
    assert_spec("{\"default\":\"a\",\"kernelspecs\":{" spec("a", "bash") ","
                spec("bash", "shell") "}}", "bash", "bash", "shell");

    /* by language, in any case, the first by name */
    assert_spec(SPECS, "r", "ir", "R");
    assert_spec("{\"kernelspecs\":{" spec("b", "Python") ","
                spec("a", "PYTHON") "}}", "python", "a", "PYTHON");

    assert_spec(SPECS, "typescript", "javascript", "javascript");
    assert_spec("{\"kernelspecs\":{" spec("javascript", "javascript") ","
                spec("deno", "typescript") "}}", "typescript", "deno",
                "typescript");

    assert_no_spec(SPECS, "cobol", "apython, bash, ir, javascript, python, "
                                   "python3, R, xeus, zir");
    assert_no_spec(SPECS, "", "apython, bash, ir, javascript, python, "
                              "python3, R, xeus, zir");
    assert_no_spec("{\"kernelspecs\":{" spec("python3", "python") "}}",
                   "typescript", "python, python3");
    assert_no_spec("{\"default\":\"\",\"kernelspecs\":{}}", "python", "");

    body = unit_str("{\"message\":\"no\"}");
    lang = unit_str("python");
    assert_int_equal(ngx_kexec_jupyter_pick_spec(&stub_pool, &body, &lang,
                                                 &spec, &got, &names),
                     NGX_ERROR);
}


static void
test_error(void **state)
{
    char        text[512];
    size_t      i;
    ngx_str_t   body, message;

    static const char *const  said[][2] = {
        { "{\"message\":\"No such kernel\",\"reason\":null}",
          "No such kernel" },
        { "{\"message\":\"\",\"reason\":\"x\"}",
          "{\"message\":\"\",\"reason\":\"x\"}" },
        { "{\"message\":null}", "{\"message\":null}" },
        { "Bad gateway\r\n", "Bad gateway" },
        { "", "Jupyter did not say why" },
        { "\r\n", "Jupyter did not say why" }
    };

    (void) state;

    for (i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        body = unit_str(said[i][0]);
        ngx_kexec_jupyter_parse_error(&stub_pool, &body, &message);
        unit_assert_str(&message, said[i][1]);
    }

    /* cut, and not inside a character: 199 + 3 bytes */

    memset(text, 'a', sizeof(text));
    memcpy(text + 199, "\xe2\x82\xac", 3);

    body.data = (u_char *) text;
    body.len = sizeof(text);

    ngx_kexec_jupyter_parse_error(&stub_pool, &body, &message);
    unit_assert_bytes(message.data, message.len, text, 199);

    stub_pool_free();
}


static void
test_sessions(void **state)
{
    ngx_str_t                     body;
    ngx_array_t                  *a;
    ngx_kexec_jupyter_session_t  *s;

    (void) state;

    body = unit_str("[{\"id\":\"s1\",\"path\":\"p\\u00e4\",\"name\":\"n1\","
                    "\"kernel\":{\"id\":\"k1\",\"name\":\"ir\","
                    "\"connections\":2}},"
                    "{\"id\":\"s2\",\"path\":\"p\",\"name\":\"n\","
                    "\"kernel\":null},"
                    "{\"id\":\"s3\",\"path\":\"p\",\"kernel\":{\"id\":\"k\"}},"
                    "null, 7,"
                    "{\"id\":\"s4\",\"path\":\"\",\"name\":\"\","
                    "\"kernel\":{\"id\":\"k4\"}}]");

    a = ngx_kexec_jupyter_parse_sessions(&stub_pool, &body);

    assert_non_null(a);
    assert_int_equal(a->nelts, 2);

    s = a->elts;
    unit_assert_bytes(s[0].session.data, s[0].session.len, "s1", 2);
    unit_assert_bytes(s[0].kernel.data, s[0].kernel.len, "k1", 2);
    unit_assert_str(&s[0].path, "p\xc3\xa4");
    unit_assert_str(&s[0].name, "n1");
    unit_assert_str(&s[0].spec, "ir");
    assert_int_equal(s[0].links, 2);
    unit_assert_bytes(s[1].session.data, s[1].session.len, "s4", 2);
    unit_assert_str(&s[1].path, "");
    unit_assert_str(&s[1].spec, "");
    assert_int_equal(s[1].links, 0);

    body = unit_str("[]");
    a = ngx_kexec_jupyter_parse_sessions(&stub_pool, &body);
    assert_non_null(a);
    assert_int_equal(a->nelts, 0);

    body = unit_str("{}");
    assert_null(ngx_kexec_jupyter_parse_sessions(&stub_pool, &body));

    body = unit_str("[");
    assert_null(ngx_kexec_jupyter_parse_sessions(&stub_pool, &body));

    stub_pool_free();
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_session),
        cmocka_unit_test(test_kernel),
        cmocka_unit_test(test_pick_spec),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_sessions)
    };

    return cmocka_run_group_tests_name("jupyter", tests, NULL, NULL);
}
