
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
#include <ngx_kexec_http.h>


/* of kexec_envs_url */

struct ngx_kexec_envs_s {
    ngx_kexec_server_t          server;         /* without times and token */
    ngx_str_t                   uri;
};


typedef enum {
    NGX_KEXEC_STATUS_NONE = 0,
    NGX_KEXEC_STATUS_OK,
    NGX_KEXEC_STATUS_ERROR,
    NGX_KEXEC_STATUS_CANCELLED,
    NGX_KEXEC_STATUS_TIMEOUT,
    NGX_KEXEC_STATUS_REJECTED,
    NGX_KEXEC_STATUS_DIED
} ngx_kexec_status_e;


/*
 * What the log's variables tell of a request.  It is in the request's pool
 * and outlives all that the request's cleanups end.
 */

typedef struct {
    u_char                      context[NGX_KEXEC_UUID_LEN];
    u_char                      execution[NGX_KEXEC_UUID_LEN];
    unsigned                    has_context:1;
    unsigned                    has_execution:1;
    unsigned                    has_queue_time:1;
    unsigned                    has_run_time:1;
    ngx_kexec_status_e          status;
    ngx_msec_t                  queue_time;
    ngx_msec_t                  run_time;
} ngx_kexec_report_t;


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


/* the request's report, made on first use; NULL: no memory */
ngx_kexec_report_t *ngx_kexec_report(ngx_http_request_t *r);

ngx_kexec_zone_t *ngx_kexec_request_zone(ngx_http_request_t *r);

/*
 * The Jupyter Server of a context or, when sockaddr is NULL, without an
 * address yet; allocated from pool.  r may be NULL: then only a token that
 * needs no request is known.
 */
ngx_kexec_server_t *ngx_kexec_server_create(ngx_http_kexec_loc_conf_t *conf,
    ngx_http_request_t *r, ngx_pool_t *pool);


/* can an HTTP header hold the token? */
ngx_uint_t ngx_kexec_token_valid(ngx_str_t *token);

/* points the server to where ctx is pinned; ctx must live as long */
void ngx_kexec_server_at(ngx_kexec_server_t *server,
    ngx_kexec_context_t *ctx);


/*
 * Answers, the only way that a request without a stream ends.  Each
 * finalizes the request; the caller must not use it afterwards, and runs
 * posted requests if it was not called by nginx itself.
 */

/* text/plain, as the reference server's own sentences */
void ngx_kexec_answer_text(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *text);

/* application/json; the body is used as it is */
void ngx_kexec_answer_json(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *json);

/* adds a header; values must outlive the request */
ngx_int_t ngx_kexec_add_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);


/*
 * Parks a request whose body was read until somebody answers it; a client that
 * leaves meanwhile, or left already, ends it.  NGX_ERROR: nobody looks after
 * it, the caller must finalize it.
 */
ngx_int_t ngx_kexec_park(ngx_http_request_t *r);


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
