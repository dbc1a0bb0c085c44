
/*
 * Copyright (C) the ngx_kexec_module authors
 */


/*
 * Jupyter's REST answers, and the names of its sessions, in which contexts
 * stand.  Whatever comes in, what is found fits where it is kept, and a
 * session's name that is taken for ours is one that we would write.
 */


#include <stub_core.h>
#include <ngx_kexec_identity.h>


#define check(condition)  if (!(condition)) { abort(); }


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
check_id(ngx_kexec_id_t *id)
{
    check(id->len > 0 && id->len <= NGX_KEXEC_ID_LEN);
}


/* our own ids go into URLs, messages and logs as they are */

static void
check_uuid(u_char *p)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_KEXEC_UUID_LEN; i++) {
        check(strchr(i == 8 || i == 13 || i == 18 || i == 23
                     ? "-" : "0123456789abcdef", p[i])
              && p[i]);
    }
}


static void
check_epoch(ngx_str_t *path, uint32_t epoch)
{
    char    digits[sizeof("4294967295")];
    size_t  len;

    len = snprintf(digits, sizeof(digits), "%u", epoch);

    check(path->len >= len);
    check(memcmp(path->data + path->len - len, digits, len) == 0);
}


static void
check_session(ngx_kexec_jupyter_session_t *session)
{
    ngx_kexec_context_t          ctx, again;
    ngx_kexec_jupyter_session_t  renamed;

    check_id(&session->session);
    check_id(&session->kernel);

    if (ngx_kexec_session_parse(session, &ctx) != NGX_OK) {
        return;
    }

    check_uuid(ctx.id);
    check_epoch(&session->path, ctx.epoch);
    check(ctx.epoch <= NGX_KEXEC_EPOCH_FOUND);
    check(ctx.serial <= NGX_KEXEC_SERIAL_FOUND);
    check(ctx.language_len && ctx.language_len <= NGX_KEXEC_LANGUAGE_LEN);
    check(ctx.cwd_len <= NGX_KEXEC_CWD_LEN);
    check(ctx.spec_len <= NGX_KEXEC_LANGUAGE_LEN);
    check(ctx.kind <= NGX_KEXEC_LANG_JAVA);

    renamed = *session;

    check(ngx_kexec_session_name(&stub_pool, &ctx, &renamed.name) == NGX_OK);
    check(ngx_kexec_session_parse(&renamed, &again) == NGX_OK);
    check(memcmp(&ctx, &again, sizeof(ctx)) == 0);
}


static void
check_sessions(ngx_str_t *body)
{
    ngx_uint_t                    i;
    ngx_array_t                  *sessions;
    ngx_kexec_jupyter_session_t  *session;

    sessions = ngx_kexec_jupyter_parse_sessions(&stub_pool, body);

    if (sessions == NULL) {
        return;
    }

    session = sessions->elts;

    for (i = 0; i < sessions->nelts; i++) {
        check_session(&session[i]);
    }
}


static void
check_spec(ngx_str_t *body, const char *word)
{
    ngx_str_t  language, spec, kind, names;

    language.len = strlen(word);
    language.data = (u_char *) word;

    switch (ngx_kexec_jupyter_pick_spec(&stub_pool, body, &language, &spec,
                                        &kind, &names))
    {
    case NGX_OK:
        check(memmem(body->data, body->len, "\"kernelspecs\"", 13)
              || memmem(body->data, body->len, "\\u", 2));
        break;

    case NGX_DECLINED:
        check(names.len == 0 || names.data);
        break;

    default:
        break;
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ngx_str_t                 body, message;
    ngx_uint_t                links;
    ngx_kexec_id_t            session, kernel;
    ngx_kexec_kernel_state_e  state;

    /* memory without a byte to spare; an answer may have no body at all */

    body.len = size;
    body.data = size ? malloc(size) : NULL;

    if (size) {
        memcpy(body.data, data, size);
    }

    if (ngx_kexec_jupyter_parse_session(&body, &session, &kernel) == NGX_OK) {
        check_id(&session);
        check_id(&kernel);
    }

    if (ngx_kexec_jupyter_parse_kernel(&body, &state, &links) == NGX_OK) {
        check(state <= NGX_KEXEC_KERNEL_BUSY);
    }

    ngx_kexec_jupyter_parse_error(&stub_pool, &body, &message);
    check(message.len <= (size > 200 ? size : 200));

    check_spec(&body, "python");
    check_spec(&body, "typescript");
    check_sessions(&body);

    free(body.data);
    stub_pool_free();

    return 0;
}
