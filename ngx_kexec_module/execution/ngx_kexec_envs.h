
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_ENVS_H_INCLUDED_
#define _NGX_KEXEC_ENVS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <jansson.h>
#include <ngx_kexec_execution.h>


/*
 * kexec_envs_url: is it to be asked by this execution?  _fetch() comes back
 * with ON_FETCHED, and why there are none in ex->sentence; NGX_ERROR: no
 * memory.  _stop() drops the call.  _token() copies the client's
 * X-Access-Token while there is a request.
 */
ngx_uint_t ngx_kexec_envs_wanted(ngx_kexec_execution_t *ex);
ngx_int_t ngx_kexec_envs_fetch(ngx_kexec_execution_t *ex);
void ngx_kexec_envs_stop(ngx_kexec_execution_t *ex);
ngx_int_t ngx_kexec_envs_token(ngx_kexec_execution_t *ex,
    ngx_http_request_t *r);

/*
 * Copies a JSON object of environment variables to pool.  A variable that the
 * language cannot hold, or whose value is no string, is said in log and left
 * out; without a log it is NGX_DECLINED, with *name and *why (the name lives as
 * long as object).  NGX_OK, NGX_ERROR: no memory.
 */
ngx_int_t ngx_kexec_env_read(json_t *object, ngx_kexec_language_e kind,
    ngx_pool_t *pool, ngx_keyval_t **env, ngx_uint_t *nenv, ngx_log_t *log,
    const char **why, const char **name);


#endif /* _NGX_KEXEC_ENVS_H_INCLUDED_ */
