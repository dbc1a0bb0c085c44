
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_conf.h>
#include <ngx_kexec_server.h>


#define NGX_KEXEC_TOKEN_LEN  4096


char *
ngx_http_kexec_token(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kexec_loc_conf_t  *klcf = conf;

    ngx_str_t                         *value;
    ngx_http_compile_complex_value_t   ccv;

    if (klcf->token != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    if (klcf->token_file.len) {
        return "cannot be used beside \"kexec_token_file\"";
    }

    value = cf->args->elts;

    klcf->token = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));
    if (klcf->token == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = klcf->token;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (klcf->token->lengths == NULL && !ngx_kexec_token_valid(&value[1])) {
        return "has white space or other characters that no HTTP header can "
               "hold";
    }

    return NGX_CONF_OK;
}


char *
ngx_http_kexec_token_file(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kexec_loc_conf_t  *klcf = conf;

    u_char     *buf, *last;
    ssize_t     n;
    ngx_fd_t    fd;
    ngx_str_t  *value;

    if (klcf->token_file.len) {
        return "is duplicate";
    }

    if (klcf->token != NGX_CONF_UNSET_PTR) {
        return "cannot be used beside \"kexec_token\"";
    }

    value = cf->args->elts;

    if (ngx_conf_full_name(cf->cycle, &value[1], 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    buf = ngx_pnalloc(cf->pool, NGX_KEXEC_TOKEN_LEN);
    if (buf == NULL) {
        return NGX_CONF_ERROR;
    }

    fd = ngx_open_file(value[1].data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_open_file_n " \"%V\" failed", &value[1]);
        return NGX_CONF_ERROR;
    }

    n = ngx_read_fd(fd, buf, NGX_KEXEC_TOKEN_LEN);

    if (n == -1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_read_fd_n " \"%V\" failed", &value[1]);
    }

    if (ngx_close_file(fd) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_ALERT, cf, ngx_errno,
                           ngx_close_file_n " \"%V\" failed", &value[1]);
    }

    if (n == -1) {
        return NGX_CONF_ERROR;
    }

    last = buf + n;

    while (last > buf && last[-1] <= ' ') {
        last--;
    }

    while (buf < last && *buf <= ' ') {
        buf++;
    }

    if (buf == last || n == NGX_KEXEC_TOKEN_LEN) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" should hold a token of 1 to %d characters",
                           &value[1], NGX_KEXEC_TOKEN_LEN - 1);
        return NGX_CONF_ERROR;
    }

    klcf->token_file.data = buf;
    klcf->token_file.len = last - buf;

    if (!ngx_kexec_token_valid(&klcf->token_file)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the token in \"%V\" has white space or other "
                           "characters that no HTTP header can hold",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}
