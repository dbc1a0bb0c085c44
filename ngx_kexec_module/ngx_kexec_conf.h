
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_CONF_H_INCLUDED_
#define _NGX_KEXEC_CONF_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_settings.h>


/* the directives */

extern ngx_command_t  ngx_http_kexec_commands[];

void *ngx_http_kexec_create_main_conf(ngx_conf_t *cf);
char *ngx_http_kexec_init_main_conf(ngx_conf_t *cf, void *conf);
void *ngx_http_kexec_create_loc_conf(ngx_conf_t *cf);
char *ngx_http_kexec_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);

/* kexec_token and kexec_token_file (ngx_kexec_conf_token.c) */

char *ngx_http_kexec_token(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_kexec_token_file(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* kexec_envs_url (ngx_kexec_conf_envs.c) */

char *ngx_http_kexec_envs_url(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* the Host header for a parsed URL, "" for a UNIX-domain socket */
ngx_str_t ngx_kexec_url_host(ngx_url_t *u);


#endif /* _NGX_KEXEC_CONF_H_INCLUDED_ */
