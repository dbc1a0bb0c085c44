
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_SETTINGS_H_INCLUDED_
#define _NGX_KEXEC_SETTINGS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * What the directives say.  ngx_kexec_conf.c fills it in, and each room reads
 * there what it needs.
 */


#define NGX_KEXEC_FAILURE_RESTART  0
#define NGX_KEXEC_FAILURE_WAIT     1


typedef struct ngx_http_kexec_loc_conf_s  ngx_http_kexec_loc_conf_t;
typedef struct ngx_kexec_envs_s           ngx_kexec_envs_t;


typedef struct {
    struct ngx_kexec_zone_s    *zone;

    /* ngx_http_kexec_loc_conf_t *: locations with kexec_default_context */
    ngx_array_t                 startup;

    /* one of the locations with kexec_pass, which all mean the same servers */
    ngx_http_kexec_loc_conf_t  *pass;

    ngx_uint_t                  max_contexts;
    ngx_msec_t                  idle_timeout;
    ngx_msec_t                  sync;
    off_t                       max_temp_files_size;
} ngx_http_kexec_main_conf_t;


struct ngx_http_kexec_loc_conf_s {
    ngx_http_upstream_conf_t    upstream;       /* of kexec_pass */
    ngx_str_t                   host;
    ngx_str_t                   base;
    ngx_str_t                   location;

    ngx_http_complex_value_t   *token;
    ngx_str_t                   token_file;     /* its contents */

    ngx_array_t                *defaults;       /* ngx_str_t, normalized */
    ngx_str_t                   cwd;
    ngx_array_t                *env;            /* ngx_keyval_t */
    ngx_kexec_envs_t           *envs;           /* kexec_envs_url, or NULL */

    ngx_uint_t                  queue_size;
    ngx_msec_t                  queue_timeout;

    ngx_msec_t                  keepalive;
    ngx_msec_t                  connect_timeout;
    ngx_msec_t                  jupyter_timeout;
    ngx_msec_t                  ready_timeout;
    ngx_msec_t                  reconnect_timeout;
    ngx_msec_t                  interrupt_timeout;
    ngx_uint_t                  interrupt_failure;
    ngx_msec_t                  client_timeout;

    size_t                      max_code_size;
    size_t                      max_message;
    size_t                      buffer_size;
    size_t                      max_temp_file_size;
    ngx_path_t                 *temp_path;

    unsigned                    enabled:1;      /* kexec_pass is here */
};


extern ngx_module_t  ngx_http_kexec_module;


#endif /* _NGX_KEXEC_SETTINGS_H_INCLUDED_ */
