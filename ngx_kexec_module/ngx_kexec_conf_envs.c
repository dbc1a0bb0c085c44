
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_conf.h>
#include <ngx_kexec_server.h>


char *
ngx_http_kexec_envs_url(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kexec_loc_conf_t  *klcf = conf;

    ngx_url_t          u;
    ngx_str_t         *value;
    ngx_kexec_envs_t  *envs;

    if (klcf->envs != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        klcf->envs = NULL;
        return NGX_CONF_OK;
    }

    if (value[1].len < 8
        || ngx_strncasecmp(value[1].data, (u_char *) "http://", 7) != 0)
    {
        goto invalid;
    }

    ngx_memzero(&u, sizeof(ngx_url_t));

    u.url.len = value[1].len - 7;
    u.url.data = value[1].data + 7;
    u.default_port = 80;
    u.uri_part = 1;

    if (ngx_parse_url(cf->pool, &u) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "%s in \"kexec_envs_url\" \"%V\"",
                           u.err ? u.err : "invalid URL", &value[1]);
        return NGX_CONF_ERROR;
    }

    if (u.uri.len && u.uri.data[0] != '/') {
        goto invalid;
    }

    envs = ngx_pcalloc(cf->pool, sizeof(ngx_kexec_envs_t));
    if (envs == NULL) {
        return NGX_CONF_ERROR;
    }

    envs->server.sockaddr = u.addrs[0].sockaddr;
    envs->server.socklen = u.addrs[0].socklen;
    envs->server.name = u.addrs[0].name;
    envs->server.host = ngx_kexec_url_host(&u);

    if (u.uri.len) {
        envs->uri = u.uri;

    } else {
        ngx_str_set(&envs->uri, "/");
    }

    klcf->envs = envs;

    return NGX_CONF_OK;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid URL \"%V\": \"kexec_envs_url\" takes "
                       "http://host:port/path or \"off\"", &value[1]);

    return NGX_CONF_ERROR;
}
