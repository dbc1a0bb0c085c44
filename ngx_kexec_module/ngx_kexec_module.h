
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_MODULE_H_INCLUDED_
#define _NGX_KEXEC_MODULE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_settings.h>
#include <ngx_kexec_zone.h>


/* the directives (ngx_kexec_conf.c) */

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

/* kexec_envs_url (ngx_kexec_envs.c) */

char *ngx_http_kexec_envs_url(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* the Host header for a parsed URL, "" for a UNIX-domain socket */
ngx_str_t ngx_kexec_url_host(ngx_url_t *u);


ngx_kexec_zone_t *ngx_kexec_request_zone(ngx_http_request_t *r);


/* finds the handler of a request by its method and path below the location */
ngx_int_t ngx_kexec_route(ngx_http_request_t *r);

/* handlers of the routing table; bodies are not read yet */
ngx_int_t ngx_kexec_execute_handler(ngx_http_request_t *r, ngx_str_t *id);
ngx_int_t ngx_kexec_create_handler(ngx_http_request_t *r, ngx_str_t *id);
ngx_int_t ngx_kexec_list_handler(ngx_http_request_t *r, ngx_str_t *id);
ngx_int_t ngx_kexec_restart_handler(ngx_http_request_t *r, ngx_str_t *id);
ngx_int_t ngx_kexec_delete_handler(ngx_http_request_t *r, ngx_str_t *id);
ngx_int_t ngx_kexec_interrupt_handler(ngx_http_request_t *r, ngx_str_t *id);
ngx_int_t ngx_kexec_health_handler(ngx_http_request_t *r, ngx_str_t *id);

/* default contexts, from init_process */
ngx_int_t ngx_kexec_startup(ngx_cycle_t *cycle,
    ngx_http_kexec_main_conf_t *kmcf);


#endif /* _NGX_KEXEC_MODULE_H_INCLUDED_ */
