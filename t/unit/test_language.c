
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "kexec_unit.h"
#include <ngx_kexec_language.h>


#define countof(a)  (sizeof(a) / sizeof(a[0]))


static ngx_kexec_language_e  languages[] = {
    NGX_KEXEC_LANG_PYTHON,
    NGX_KEXEC_LANG_JAVASCRIPT,
    NGX_KEXEC_LANG_TYPESCRIPT,
    NGX_KEXEC_LANG_R,
    NGX_KEXEC_LANG_BASH,
    NGX_KEXEC_LANG_JAVA
};


/* the snippet that sets NAME to the value, which must be ASCII */

static char *
set_to(unit_sink_t *sink, ngx_kexec_language_e lang, const void *value,
    size_t len, size_t window, ngx_uint_t keep)
{
    size_t        i;
    ngx_keyval_t  var;

    var.key = unit_copy("NAME", 4);
    var.value = unit_copy(value, len);

    unit_sink_open(sink, window);
    assert_int_equal(ngx_kexec_language_set(&sink->out, lang, &var, 1, keep),
                     NGX_OK);
    unit_sink_take(sink);

    for (i = 0; i < sink->len; i++) {
        assert_true(sink->data[i] == '\n'
                    || (sink->data[i] >= ' ' && sink->data[i] < 0x7f));
    }

    free(var.key.data);
    free(var.value.data);

    return (char *) sink->data;
}


static void
test_normalize(void **state)
{
    u_char     *p;
    size_t      i, len;
    ngx_str_t   word;

    static const char  *words[][2] = {
        { "", "" },
        { "  ", "" },
        { " \t\r\n\v\f", "" },
        { "python", "python" },
        { " PyThon ", "python" },
        { "\tR\n", "r" },
        { "js", "javascript" },
        { "JS", "javascript" },
        { " js", "javascript" },
        { "ts", "typescript" },
        { "Ts\n", "typescript" },
        { "jss", "jss" },
        { "xs", "xs" },
        { "j s", "j s" },
        { "C++", "c++" },
        { "\xc3\x89", "\xc3\x89" },
        { "python3", "python3" }
    };

    (void) state;

    for (i = 0; i < countof(words); i++) {
        word = unit_copy(words[i][0], strlen(words[i][0]));
        p = malloc(word.len + 10);

        len = ngx_kexec_language_normalize(p, &word);
        unit_assert_bytes(p, len, words[i][1], strlen(words[i][1]));

        free(p);
        free(word.data);
    }
}


static void
test_find(void **state)
{
    size_t     i;
    ngx_str_t  word;

    static const struct {
        const char            *word;
        ngx_kexec_language_e   lang;
    } words[] = {
        { "python", NGX_KEXEC_LANG_PYTHON },
        { "python3", NGX_KEXEC_LANG_PYTHON },
        { "Python", NGX_KEXEC_LANG_PYTHON },
        { "javascript", NGX_KEXEC_LANG_JAVASCRIPT },
        { "js", NGX_KEXEC_LANG_JAVASCRIPT },
        { "node", NGX_KEXEC_LANG_JAVASCRIPT },
        { "nodejs", NGX_KEXEC_LANG_JAVASCRIPT },
        { "typescript", NGX_KEXEC_LANG_TYPESCRIPT },
        { "TS", NGX_KEXEC_LANG_TYPESCRIPT },
        { "deno", NGX_KEXEC_LANG_TYPESCRIPT },
        { "R", NGX_KEXEC_LANG_R },
        { "ir", NGX_KEXEC_LANG_R },
        { "bash", NGX_KEXEC_LANG_BASH },
        { "sh", NGX_KEXEC_LANG_BASH },
        { "java", NGX_KEXEC_LANG_JAVA },
        { "", NGX_KEXEC_LANG_OTHER },
        { "julia", NGX_KEXEC_LANG_OTHER },
        { "pythonx", NGX_KEXEC_LANG_OTHER },
        { "pyth", NGX_KEXEC_LANG_OTHER },
        { "a language with a long, long name", NGX_KEXEC_LANG_OTHER }
    };

    (void) state;

    for (i = 0; i < countof(words); i++) {
        word = unit_copy(words[i].word, strlen(words[i].word));

        if (ngx_kexec_language_find(&word) != words[i].lang) {
            print_error("word: \"%s\"\n", words[i].word);
            fail();
        }

        free(word.data);
    }
}


static void
test_refuses(void **state)
{
    size_t        i, k;
    ngx_str_t     value, nul;
    ngx_str_t     name;
    ngx_keyval_t  var;
    unit_sink_t   sink;

    static const struct {
        const char  *name;
        size_t       len;
        unsigned     bash:1;            /* is it refused by bash, */
        unsigned     others:1;          /* by the others? */
    } names[] = {
        { "A", 1, 0, 0 },
        { "_a9_Z", 5, 0, 0 },
        { "PS1", 3, 1, 0 },
        { "PS2", 3, 1, 0 },
        { "PS3", 3, 0, 0 },
        { "PS12", 4, 0, 0 },
        { "UID", 3, 1, 0 },
        { "BASH_VERSINFO", 13, 1, 0 },
        { "BASH_SOURCE", 11, 1, 0 },
        { "BASH_ENV", 8, 0, 0 },
        { "uid", 3, 0, 0 },
        { "\0", 1, 1, 1 },
        { "", 0, 1, 1 },
        { "=", 1, 1, 1 },
        { "a=", 2, 1, 1 },
        { "a\0b", 3, 1, 1 },
        { "9a", 2, 1, 0 },
        { "a b", 3, 1, 0 },
        { "a-b", 3, 1, 0 },
        { "a[0]", 4, 1, 0 },
        { "a\n", 2, 1, 0 },
        { "@", 1, 1, 0 },
        { "`", 1, 1, 0 },
        { "{", 1, 1, 0 },
        { "\x1f", 1, 1, 0 },
        { "\xc3\xa9", 2, 1, 0 }
    };

    (void) state;

    value = unit_str("value");
    nul = unit_copy("a\0b", 3);

    for (i = 0; i < countof(names); i++) {
        name = unit_copy(names[i].name, names[i].len);

        for (k = 0; k < countof(languages); k++) {

            if ((ngx_kexec_language_refuses(languages[k], &name, &value)
                 != NULL)
                != (languages[k] == NGX_KEXEC_LANG_BASH ? names[i].bash
                                                        : names[i].others))
            {
                print_error("name: \"%s\"\n", names[i].name);
                fail();
            }

            assert_non_null(ngx_kexec_language_refuses(languages[k], &name,
                                                       &nul));

            /* what is refused is never written, asked or not */

            var.key = name;
            var.value = nul;

            unit_sink_open(&sink, 64);
            assert_int_equal(ngx_kexec_language_set(&sink.out, languages[k],
                                                    &var, 1, 1),
                             NGX_DECLINED);
            assert_null(sink.window);
            unit_sink_close(&sink);
        }

        assert_non_null(ngx_kexec_language_refuses(NGX_KEXEC_LANG_OTHER,
                                                   &name, &value));
        free(name.data);
    }

    free(nul.data);
}


/* code with a NUL: lost on its way, or run */

static void
test_refused_code(void **state)
{
    size_t     i;
    ngx_str_t  code;

    static u_char  text[] = "a\0b";

    static const ngx_kexec_language_e  refuse[] = {
        NGX_KEXEC_LANG_PYTHON, NGX_KEXEC_LANG_R, NGX_KEXEC_LANG_BASH
    };

    static const ngx_kexec_language_e  run[] = {
        NGX_KEXEC_LANG_JAVASCRIPT, NGX_KEXEC_LANG_TYPESCRIPT,
        NGX_KEXEC_LANG_JAVA, NGX_KEXEC_LANG_OTHER
    };

    (void) state;

    code.data = text;

    for (i = 0; i < sizeof(refuse) / sizeof(refuse[0]); i++) {

        for (code.len = 0; code.len < 2; code.len++) {
            assert_null(ngx_kexec_language_refuses_code(refuse[i], &code));
        }

        for ( /* void */ ; code.len < 4; code.len++) {
            assert_non_null(ngx_kexec_language_refuses_code(refuse[i], &code));
        }
    }

    code.len = 3;

    for (i = 0; i < sizeof(run) / sizeof(run[0]); i++) {
        assert_null(ngx_kexec_language_refuses_code(run[i], &code));
    }
}


/* CR LF, where the CR would be code */

static void
test_lines(void **state)
{
    size_t       i, k;
    ngx_str_t    code;
    const char  *lines;

    static const struct {
        const char  *code;
        const char  *lines;
    } cases[] = {
        { "", "" },
        { "a", "a" },
        { "a\nb\n", "a\nb\n" },
        { "a\r\nb\r\n", "a\nb\n" },
        { "\r\n", "\n" },
        { "\r", "\r" },
        { "a\rb\r\nc\r", "a\rb\nc\r" },
        { "\r\r\n\n\r", "\r\n\n\r" }
    };

    static const ngx_kexec_language_e  languages[] = {
        NGX_KEXEC_LANG_R, NGX_KEXEC_LANG_BASH,
        NGX_KEXEC_LANG_PYTHON, NGX_KEXEC_LANG_JAVASCRIPT,
        NGX_KEXEC_LANG_TYPESCRIPT, NGX_KEXEC_LANG_JAVA, NGX_KEXEC_LANG_OTHER
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (k = 0; k < sizeof(languages) / sizeof(languages[0]); k++) {
            code = unit_copy(cases[i].code, strlen(cases[i].code));

            ngx_kexec_language_lines(languages[k], &code);

            lines = k < 2 ? cases[i].lines : cases[i].code;

            assert_int_equal(code.len, strlen(lines));
            assert_memory_equal(code.data, lines, code.len);
            free(code.data);
        }
    }
}


static void
test_other(void **state)
{
    ngx_str_t    path;
    unit_sink_t  sink;

    (void) state;

    path = unit_str("/tmp");
    unit_sink_open(&sink, 64);

    assert_int_equal(ngx_kexec_language_set(&sink.out, NGX_KEXEC_LANG_OTHER,
                                            NULL, 0, 0), NGX_DECLINED);
    assert_int_equal(ngx_kexec_language_restore(&sink.out,
                                                NGX_KEXEC_LANG_OTHER),
                     NGX_DECLINED);
    assert_int_equal(ngx_kexec_language_cwd(&sink.out, NGX_KEXEC_LANG_OTHER,
                                            &path), NGX_DECLINED);

    path.data = (u_char *) "/\0";
    path.len = 2;

    assert_int_equal(ngx_kexec_language_cwd(&sink.out, NGX_KEXEC_LANG_PYTHON,
                                            &path), NGX_DECLINED);
    assert_null(sink.window);

    unit_sink_close(&sink);
}


static void
test_literals(void **state)
{
    char         *text;
    size_t        i;
    unit_sink_t   sink;

    static const struct {
        ngx_kexec_language_e   lang;
        const char            *value;
        const char            *literal;
    } values[] = {
        { NGX_KEXEC_LANG_PYTHON, "", "(\"NAME\", \"\"), " },
        { NGX_KEXEC_LANG_PYTHON, "a Z-9_.:/", "\"a Z-9_.:/\"" },
        { NGX_KEXEC_LANG_PYTHON, "\"\\\n\r", "\"\\x22\\x5c\\x0a\\x0d\"" },
        { NGX_KEXEC_LANG_PYTHON, "%!?\x7f\x01",
          "\"\\x25\\x21\\x3f\\x7f\\x01\"" },
        { NGX_KEXEC_LANG_PYTHON, "\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80",
          "\"\\u00e9\\u2028\\U0001f600\"" },
        { NGX_KEXEC_LANG_PYTHON, "\xff\xc3\xed\xa0\x80\xc0\xaf",
          "\"\\udcff\\udcc3\\udced\\udca0\\udc80\\udcc0\\udcaf\"" },
        { NGX_KEXEC_LANG_PYTHON, "\xf4\x8f\xbf\xbf\xf4\x90\x80\x80",
          "\"\\U0010ffff\\udcf4\\udc90\\udc80\\udc80\"" },
        { NGX_KEXEC_LANG_PYTHON, "\xe0\x9f\xbf\xf0\x8f\xbf\xbf\xf5\xe2\x82",
          "\"\\udce0\\udc9f\\udcbf\\udcf0\\udc8f\\udcbf\\udcbf\\udcf5"
          "\\udce2\\udc82\"" },

        { NGX_KEXEC_LANG_JAVASCRIPT, "", "[\"NAME\", \"\"], " },
        { NGX_KEXEC_LANG_JAVASCRIPT, "`${x}\\\"'",
          "\"\\x60\\x24\\x7bx\\x7d\\x5c\\x22\\x27\"" },
        { NGX_KEXEC_LANG_TYPESCRIPT, "\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80",
          "\"\\u00e9\\u2028\\ud83d\\ude00\"" },
        { NGX_KEXEC_LANG_JAVASCRIPT, "\xff\xf4\x8f\xbf\xbf",
          "\"\\ufffd\\udbff\\udfff\"" },

        { NGX_KEXEC_LANG_R, "", ", \"NAME\", \"\")" },
        { NGX_KEXEC_LANG_R, "\"\\\n\xc3\xa9\xff",
          "\"\\x22\\x5c\\x0a\\xc3\\xa9\\xff\"" },

        { NGX_KEXEC_LANG_BASH, "", " $'NAME' $'' keep" },
        { NGX_KEXEC_LANG_BASH, "'\\!\n\t\xc3\xa9\xff",
          " $'\\x27\\x5c\\x21\\x0a\\x09\\xc3\\xa9\\xff'" },

        { NGX_KEXEC_LANG_JAVA, "",
          "{ java.lang.String.join(\"\", \"NAME\"), "
          "java.lang.String.join(\"\", \"\") }, " },
        { NGX_KEXEC_LANG_JAVA, "\"\\u0022\n=%d\x7f",
          "\"\\042\\134u0022\\012=\\045d\\177\"" },
        { NGX_KEXEC_LANG_JAVA, "\xc3\xa9\xf0\x9f\x98\x80\xff",
          "\"\\u00e9\\ud83d\\ude00\\ufffd\"" }
    };

    (void) state;

    for (i = 0; i < countof(values); i++) {
        text = set_to(&sink, values[i].lang, values[i].value,
                      strlen(values[i].value), 64, 1);

        if (strstr(text, values[i].literal) == NULL) {
            print_error("no %s in:\n%s\n", values[i].literal, text);
            fail();
        }

        unit_sink_close(&sink);
    }
}


/* no byte but the safe ones stands in a literal as it is */

static void
test_bytes(void **state)
{
    char         *text, *p;
    u_char        value[3];
    size_t        i, k;
    unit_sink_t   sink;

    (void) state;

    value[0] = '~';
    value[2] = '~';

    for (k = 0; k < countof(languages); k++) {

        for (i = 1; i < 256; i++) {
            value[1] = (u_char) i;
            text = set_to(&sink, languages[k], value, 3, 64, 0);

            p = strstr(text, languages[k] == NGX_KEXEC_LANG_JAVA ? "\\176"
                                                                 : "\\x7e");
            assert_non_null(p);

            if (p[4] != '\\') {
                assert_int_equal(p[4], i);
                assert_non_null(strchr("abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789 ()+,-./:=@[]_", p[4]));
                assert_int_equal(p[5], '\\');
            }

            unit_sink_close(&sink);
        }
    }
}


static void
test_long(void **state)
{
    char         *text, *p, *q, *value;
    size_t        i, len;
    ngx_uint_t    n;
    unit_sink_t   sink;

    (void) state;

    len = 100000;
    value = malloc(len);
    memset(value, 'x', len);

    for (i = 0; i < countof(languages); i++) {
        text = set_to(&sink, languages[i], value, len, 1000, 1);
        assert_true(strlen(text) > len);
        unit_sink_close(&sink);
    }

    /* three bytes a character is the worst for a class file's constant */

    for (i = 0; i + 2 < len; i += 3) {
        memcpy(value + i, "\xe2\x82\xac", 3);
    }

    text = set_to(&sink, NGX_KEXEC_LANG_JAVA, value, i, 1000, 1);

    n = 0;

    for (p = text; (p = strstr(p, "\\u20ac")) != NULL; p = q) {

        for (q = p; memcmp(q, "\\u20ac", 6) == 0; q += 6) { /* void */ }

        assert_int_equal(*q, '"');
        assert_true((q - p) / 6 * 3 <= 65535);
        n += (q - p) / 6;
    }

    assert_int_equal(n, i / 3);

    unit_sink_close(&sink);
    free(value);
}


/* the same text through windows of any size, and an output that refuses */

static void
test_windows(void **state)
{
    char         *text, *same;
    size_t        i, size;
    ngx_int_t     rc, windows;
    ngx_str_t     path;
    unit_sink_t   sink, other;
    ngx_keyval_t  var;

    static const char  value[] = "a\"b\\c\n\xf0\x9f\x98\x80\xff\xe2\x82\xac!";

    (void) state;

    path = unit_str("/a b/\"\xf0\x9f\x98\x80");
    var.key = unit_str("NAME");
    var.value = unit_str(value);

    for (i = 0; i < countof(languages); i++) {
        text = set_to(&sink, languages[i], value, sizeof(value) - 1, 65536, 1);

        for (size = 64; size < 150; size++) {
            same = set_to(&other, languages[i], value, sizeof(value) - 1, size,
                          1);
            assert_string_equal(same, text);
            unit_sink_close(&other);
        }

        unit_sink_close(&sink);

        for (windows = 0; windows < 100; windows++) {
            unit_sink_open(&sink, 64);
            sink.windows = windows;
            rc = ngx_kexec_language_set(&sink.out, languages[i], &var, 1, 0);
            unit_sink_close(&sink);

            if (rc == NGX_OK) {
                break;
            }

            assert_int_equal(rc, NGX_ERROR);
        }

        assert_true(windows > 1 && windows < 100);

        for (windows = 0; windows < 100; windows++) {
            unit_sink_open(&sink, 64);
            sink.windows = windows;
            rc = ngx_kexec_language_cwd(&sink.out, languages[i], &path);
            unit_sink_close(&sink);

            if (rc == NGX_OK) {
                break;
            }

            assert_int_equal(rc, NGX_ERROR);
        }

        assert_true(windows > 0 && windows < 100);

        unit_sink_open(&sink, 64);
        sink.windows = 1;
        assert_int_equal(ngx_kexec_language_restore(&sink.out, languages[i]),
                         NGX_ERROR);
        unit_sink_close(&sink);
    }
}


static void
test_cwd(void **state)
{
    size_t       i;
    ngx_str_t    path;
    unit_sink_t  sink;

    static const struct {
        ngx_kexec_language_e   lang;
        const char            *path;
        const char            *text;
    } paths[] = {
        { NGX_KEXEC_LANG_PYTHON, "/a'\n",
          "__import__('os').chdir(\n\"/a\\x27\\x0a\")" },
        { NGX_KEXEC_LANG_PYTHON, "", "__import__('os').chdir(\n\"\")" },
        { NGX_KEXEC_LANG_JAVASCRIPT, "a\"", "chdir(d);\")(\"a\\x22\");" },
        { NGX_KEXEC_LANG_R, "/\xc3\xa9",
          "p <- \"/\\xc3\\xa9\"\ntryCatch(setwd(p), " },
        { NGX_KEXEC_LANG_BASH, "/a'", "; __kexec $'/a\\x27' >" },
        { NGX_KEXEC_LANG_BASH, "-", "; __kexec ./$'-' >" },
        { NGX_KEXEC_LANG_BASH, "", "; __kexec ./$'' >" },
        { NGX_KEXEC_LANG_JAVA, "/a\"",
          "String d = java.lang.String.join(\"\", \"/a\\042\");" }
    };

    (void) state;

    for (i = 0; i < countof(paths); i++) {
        path = unit_copy(paths[i].path, strlen(paths[i].path));
        unit_sink_open(&sink, 64);

        assert_int_equal(ngx_kexec_language_cwd(&sink.out, paths[i].lang,
                                                &path), NGX_OK);
        unit_sink_take(&sink);

        if (strstr((char *) sink.data, paths[i].text) == NULL) {
            print_error("no %s in:\n%s\n", paths[i].text, sink.data);
            fail();
        }

        unit_sink_close(&sink);
        free(path.data);
    }
}


/* a terminal takes bash's snippets line by line, with history expansion */

static void
test_bash_line(void **state)
{
    char         *text, *p;
    unit_sink_t   sink;

    (void) state;

    text = set_to(&sink, NGX_KEXEC_LANG_BASH, "\n!\t", 3, 64, 1);
    assert_null(strchr(text, '\n'));

    for (p = text; (p = strchr(p, '!')) != NULL; p++) {
        assert_int_equal(p[1], ' ');
    }

    unit_sink_close(&sink);

    unit_sink_open(&sink, 4096);
    assert_int_equal(ngx_kexec_language_restore(&sink.out,
                                                NGX_KEXEC_LANG_BASH), NGX_OK);
    unit_sink_take(&sink);

    text = (char *) sink.data;
    assert_null(strchr(text, '\n'));

    for (p = text; (p = strchr(p, '!')) != NULL; p++) {
        assert_true(p[1] == ' ' || p[1] == '=' || memcmp(p - 2, "${", 2) == 0);
    }

    unit_sink_close(&sink);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_refused_code),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_normalize),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_other),
        cmocka_unit_test(test_literals),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_cwd),
        cmocka_unit_test(test_bash_line)
    };

    return cmocka_run_group_tests_name("language", tests, NULL, NULL);
}
