
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <jansson.h>
#include <ngx_kexec_identity.h>


static ngx_int_t ngx_kexec_session_members(json_t *json,
    ngx_kexec_context_t *ctx);
static ngx_uint_t ngx_kexec_session_is_uuid(const char *id);


u_char *
ngx_kexec_session_path(u_char *p, ngx_kexec_context_t *ctx)
{
    return ngx_sprintf(p, "kexec-%*s-%uD", (size_t) NGX_KEXEC_UUID_LEN,
                       ctx->id, ctx->epoch);
}


ngx_int_t
ngx_kexec_session_name(ngx_pool_t *pool, ngx_kexec_context_t *ctx,
    ngx_str_t *name)
{
    char    *text;
    json_t  *json;

    json = json_pack("{s:s%, s:s%, s:s%, s:I, s:b, s:i, s:I, s:b}",
                     "kexec", ctx->id, (size_t) NGX_KEXEC_UUID_LEN,
                     "language", ctx->language, ctx->language_len,
                     "cwd", ctx->cwd, ctx->cwd_len,
                     "serial", (json_int_t) ctx->serial,
                     "default", (int) ctx->is_default,
                     "kind", (int) ctx->kind,
                     "process", (json_int_t) (ctx->prepared ? ctx->process
                                                            : 0),
                     "envs", ctx->prepared == NGX_KEXEC_PREPARED_ENVS);
    if (json == NULL) {
        return NGX_ERROR;
    }

    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);

    if (text == NULL) {
        return NGX_ERROR;
    }

    name->len = ngx_strlen(text);
    name->data = ngx_pnalloc(pool, name->len);

    if (name->data) {
        ngx_memcpy(name->data, text, name->len);
    }

    free(text);

    return name->data ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_kexec_session_parse(ngx_kexec_jupyter_session_t *session,
    ngx_kexec_context_t *ctx)
{
    size_t      len;
    json_t     *json;
    u_char     *epoch;
    ngx_int_t   rc, n;

    static ngx_str_t  prefix = ngx_string("kexec-");

    ngx_memzero(ctx, sizeof(ngx_kexec_context_t));

    /* the path is "kexec-ID-EPOCH" */

    len = prefix.len + NGX_KEXEC_UUID_LEN + 1;

    if (session->path.len <= len
        || ngx_strncmp(session->path.data, prefix.data, prefix.len) != 0
        || session->path.data[len - 1] != '-')
    {
        return NGX_DECLINED;
    }

    epoch = session->path.data + len;

    n = ngx_atoi(epoch, session->path.len - len);

    if (n == NGX_ERROR || n > (ngx_int_t) NGX_KEXEC_EPOCH_FOUND) {
        return NGX_DECLINED;
    }

    ctx->epoch = (uint32_t) n;

    json = json_loadb((char *) session->name.data, session->name.len,
                      JSON_ALLOW_NUL, NULL);

    rc = ngx_kexec_session_members(json, ctx);

    json_decref(json);

    if (rc != NGX_OK
        || ngx_strncmp(session->path.data + prefix.len, ctx->id,
                       NGX_KEXEC_UUID_LEN)
           != 0
        || session->spec.len > NGX_KEXEC_LANGUAGE_LEN)
    {
        return NGX_DECLINED;
    }

    ctx->session = session->session;
    ctx->kernel = session->kernel;

    ctx->spec_len = session->spec.len;
    ngx_memcpy(ctx->spec, session->spec.data, session->spec.len);

    /*
     * What the last nginx left running is nobody's any more, unless somebody
     * is still connected: that nginx itself, as it makes way for a new binary.
     */

    ctx->dirty = (session->links == 0);
    ctx->owes_restore = 1;

    return NGX_OK;
}


static ngx_int_t
ngx_kexec_session_members(json_t *json, ngx_kexec_context_t *ctx)
{
    int           kind, is_default, envs;
    size_t        id_len, language_len, cwd_len;
    const char   *id, *language, *cwd;
    json_int_t    serial, process;

    envs = 0;

    if (json_unpack(json, "{s:s%, s:s%, s:s%, s:I, s:b, s:i, s:I, s?b}",
                    "kexec", &id, &id_len,
                    "language", &language, &language_len,
                    "cwd", &cwd, &cwd_len,
                    "serial", &serial,
                    "default", &is_default,
                    "kind", &kind,
                    "process", &process,
                    "envs", &envs)
        != 0)
    {
        return NGX_DECLINED;
    }

    if (id_len != NGX_KEXEC_UUID_LEN || !ngx_kexec_session_is_uuid(id)
        || serial < 0 || process < 0 || process > NGX_MAX_UINT32_VALUE
        || language_len == 0 || language_len > NGX_KEXEC_LANGUAGE_LEN
        || cwd_len > NGX_KEXEC_CWD_LEN
        || kind < 0 || kind > NGX_KEXEC_LANG_JAVA)
    {
        return NGX_DECLINED;
    }

    ngx_memcpy(ctx->id, id, id_len);

    ctx->language_len = language_len;
    ngx_memcpy(ctx->language, language, language_len);

    ctx->cwd_len = cwd_len;
    ngx_memcpy(ctx->cwd, cwd, cwd_len);

    ctx->serial = ngx_min((uint64_t) serial, NGX_KEXEC_SERIAL_FOUND);
    ctx->is_default = is_default ? 1 : 0;
    ctx->kind = (ngx_kexec_language_e) kind;
    ctx->process = (uint32_t) process;

    if (process) {
        ctx->prepared = envs ? NGX_KEXEC_PREPARED_ENVS : NGX_KEXEC_PREPARED;
    }

    return NGX_OK;
}


/* as ngx_kexec_uuid() writes it: it goes into messages and logs as it is */

static ngx_uint_t
ngx_kexec_session_is_uuid(const char *id)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_KEXEC_UUID_LEN; i++) {

        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (id[i] != '-') {
                return 0;
            }

        } else if (!((id[i] >= '0' && id[i] <= '9')
                     || (id[i] >= 'a' && id[i] <= 'f')))
        {
            return 0;
        }
    }

    return 1;
}
