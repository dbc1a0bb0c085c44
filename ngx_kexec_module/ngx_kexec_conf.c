
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_conf.h>
#include <ngx_kexec_routes.h>
#include <ngx_kexec_server.h>
#include <ngx_kexec_zone.h>


static ngx_int_t ngx_http_kexec_content_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_kexec_add_pass(ngx_conf_t *cf,
    ngx_http_kexec_main_conf_t *kmcf, ngx_http_kexec_loc_conf_t *conf);
static char *ngx_http_kexec_pass(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_kexec_zone(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_kexec_default_context(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static char *ngx_http_kexec_env(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_kexec_queue(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_kexec_check_nonzero(ngx_conf_t *cf, void *post,
    void *data);


static ngx_conf_enum_t  ngx_http_kexec_interrupt_failures[] = {
    { ngx_string("restart"), NGX_KEXEC_FAILURE_RESTART },
    { ngx_string("wait"), NGX_KEXEC_FAILURE_WAIT },
    { ngx_null_string, 0 }
};


static ngx_conf_post_t  ngx_http_kexec_nonzero = {
    ngx_http_kexec_check_nonzero
};


ngx_command_t  ngx_http_kexec_commands[] = {

    { ngx_string("kexec_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_kexec_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kexec_max_contexts"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_kexec_main_conf_t, max_contexts),
      NULL },

    { ngx_string("kexec_max_temp_files_size"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_off_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_kexec_main_conf_t, max_temp_files_size),
      NULL },

    { ngx_string("kexec_context_idle_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_kexec_main_conf_t, idle_timeout),
      NULL },

    { ngx_string("kexec_sync"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_kexec_main_conf_t, sync),
      &ngx_http_kexec_nonzero },

    { ngx_string("kexec_pass"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_kexec_pass,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kexec_token"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_kexec_token,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kexec_token_file"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_kexec_token_file,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kexec_default_context"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_kexec_default_context,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kexec_default_cwd"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, cwd),
      NULL },

    { ngx_string("kexec_env"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE2,
      ngx_http_kexec_env,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kexec_envs_url"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_kexec_envs_url,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kexec_queue"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_kexec_queue,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kexec_keepalive"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, keepalive),
      &ngx_http_kexec_nonzero },

    { ngx_string("kexec_connect_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, connect_timeout),
      &ngx_http_kexec_nonzero },

    { ngx_string("kexec_jupyter_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, jupyter_timeout),
      &ngx_http_kexec_nonzero },

    { ngx_string("kexec_ready_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, ready_timeout),
      &ngx_http_kexec_nonzero },

    { ngx_string("kexec_reconnect_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, reconnect_timeout),
      &ngx_http_kexec_nonzero },

    { ngx_string("kexec_interrupt_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, interrupt_timeout),
      &ngx_http_kexec_nonzero },

    { ngx_string("kexec_interrupt_failure"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, interrupt_failure),
      &ngx_http_kexec_interrupt_failures },

    { ngx_string("kexec_client_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, client_timeout),
      &ngx_http_kexec_nonzero },

    { ngx_string("kexec_max_code_size"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, max_code_size),
      NULL },

    { ngx_string("kexec_max_message"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, max_message),
      NULL },

    { ngx_string("kexec_buffer_size"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, buffer_size),
      NULL },

    { ngx_string("kexec_temp_path"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1234,
      ngx_conf_set_path_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, temp_path),
      NULL },

    { ngx_string("kexec_max_temp_file_size"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_kexec_loc_conf_t, max_temp_file_size),
      NULL },

      ngx_null_command
};


void *
ngx_http_kexec_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_kexec_main_conf_t  *kmcf;

    kmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_kexec_main_conf_t));
    if (kmcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     kmcf->zone = NULL;
     *     kmcf->pass = NULL;
     */

    kmcf->max_contexts = NGX_CONF_UNSET_UINT;
    kmcf->idle_timeout = NGX_CONF_UNSET_MSEC;
    kmcf->sync = NGX_CONF_UNSET_MSEC;
    kmcf->max_temp_files_size = NGX_CONF_UNSET;

    if (ngx_array_init(&kmcf->startup, cf->pool, 1, sizeof(void *))
        != NGX_OK)
    {
        return NULL;
    }

    return kmcf;
}


char *
ngx_http_kexec_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_kexec_main_conf_t *kmcf = conf;

    ngx_conf_init_uint_value(kmcf->max_contexts, 0);
    ngx_conf_init_msec_value(kmcf->idle_timeout, 0);
    ngx_conf_init_msec_value(kmcf->sync, 60000);

    if (kmcf->max_temp_files_size == NGX_CONF_UNSET) {
        kmcf->max_temp_files_size = (off_t) 4096 * 1024 * 1024;
    }

    if (kmcf->zone) {
        ngx_kexec_zone_limit(kmcf->zone, kmcf->max_contexts);
    }

    return NGX_CONF_OK;
}


void *
ngx_http_kexec_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_kexec_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_kexec_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     conf->upstream = { 0 };
     *     conf->host = { 0, NULL };
     *     conf->base = { 0, NULL };
     *     conf->location = { 0, NULL };
     *     conf->token_file = { 0, NULL };
     *     conf->cwd = { 0, NULL };
     *     conf->temp_path = NULL;
     *     conf->enabled = 0;
     */

    conf->envs = NGX_CONF_UNSET_PTR;
    conf->token = NGX_CONF_UNSET_PTR;
    conf->defaults = NGX_CONF_UNSET_PTR;
    conf->env = NGX_CONF_UNSET_PTR;
    conf->queue_size = NGX_CONF_UNSET_UINT;
    conf->queue_timeout = NGX_CONF_UNSET_MSEC;
    conf->keepalive = NGX_CONF_UNSET_MSEC;
    conf->connect_timeout = NGX_CONF_UNSET_MSEC;
    conf->jupyter_timeout = NGX_CONF_UNSET_MSEC;
    conf->ready_timeout = NGX_CONF_UNSET_MSEC;
    conf->reconnect_timeout = NGX_CONF_UNSET_MSEC;
    conf->interrupt_timeout = NGX_CONF_UNSET_MSEC;
    conf->interrupt_failure = NGX_CONF_UNSET_UINT;
    conf->client_timeout = NGX_CONF_UNSET_MSEC;
    conf->max_code_size = NGX_CONF_UNSET_SIZE;
    conf->max_message = NGX_CONF_UNSET_SIZE;
    conf->buffer_size = NGX_CONF_UNSET_SIZE;
    conf->max_temp_file_size = NGX_CONF_UNSET_SIZE;

    return conf;
}


static ngx_int_t
ngx_http_kexec_content_handler(ngx_http_request_t *r)
{
    /*
     * A subrequest dies with its main request's client and cannot stream
     * past it, so that nothing promised here could be kept.
     */

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "kexec_pass does not work in a subrequest");
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_kexec_route(r);
}


char *
ngx_http_kexec_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_kexec_loc_conf_t  *prev = parent;
    ngx_http_kexec_loc_conf_t  *conf = child;

    u_char                      *p, *last;
    ngx_http_core_loc_conf_t    *clcf;
    ngx_http_kexec_loc_conf_t  **startup;
    ngx_http_kexec_main_conf_t  *kmcf;

    if (conf->token == NGX_CONF_UNSET_PTR && conf->token_file.len == 0) {
        conf->token = prev->token;
        conf->token_file = prev->token_file;
    }

    if (conf->token == NGX_CONF_UNSET_PTR) {
        conf->token = NULL;
    }

    ngx_conf_merge_ptr_value(conf->defaults, prev->defaults, NULL);
    ngx_conf_merge_ptr_value(conf->env, prev->env, NULL);
    ngx_conf_merge_ptr_value(conf->envs, prev->envs, NULL);
    ngx_conf_merge_str_value(conf->cwd, prev->cwd, "");
    ngx_conf_merge_uint_value(conf->queue_size, prev->queue_size, 64);
    ngx_conf_merge_msec_value(conf->queue_timeout, prev->queue_timeout,
                              300000);
    ngx_conf_merge_msec_value(conf->keepalive, prev->keepalive, 5000);
    ngx_conf_merge_msec_value(conf->connect_timeout, prev->connect_timeout,
                              5000);
    ngx_conf_merge_msec_value(conf->jupyter_timeout, prev->jupyter_timeout,
                              30000);
    ngx_conf_merge_msec_value(conf->ready_timeout, prev->ready_timeout,
                              60000);
    ngx_conf_merge_msec_value(conf->reconnect_timeout,
                              prev->reconnect_timeout, 10000);
    ngx_conf_merge_msec_value(conf->interrupt_timeout,
                              prev->interrupt_timeout, 15000);
    ngx_conf_merge_uint_value(conf->interrupt_failure,
                              prev->interrupt_failure,
                              NGX_KEXEC_FAILURE_RESTART);
    ngx_conf_merge_msec_value(conf->client_timeout, prev->client_timeout,
                              30000);
    ngx_conf_merge_size_value(conf->max_code_size, prev->max_code_size,
                              8 * 1024 * 1024);
    ngx_conf_merge_size_value(conf->max_message, prev->max_message,
                              128 * 1024 * 1024);
    ngx_conf_merge_size_value(conf->buffer_size, prev->buffer_size,
                              256 * 1024);
    ngx_conf_merge_size_value(conf->max_temp_file_size,
                              prev->max_temp_file_size, 1024 * 1024 * 1024);

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (conf->temp_path == NULL) {

        /* a place where nginx writes temporary files in any case */

        conf->temp_path = prev->temp_path ? prev->temp_path
                                          : clcf->client_body_temp_path;
    }

    if (clcf->noname && conf->upstream.upstream == NULL) {
        conf->upstream.upstream = prev->upstream.upstream;
        conf->host = prev->host;
        conf->base = prev->base;
        conf->location = prev->location;
        conf->enabled = prev->enabled;
    }

    if (clcf->lmt_excpt && clcf->handler == NULL && conf->enabled) {
        clcf->handler = ngx_http_kexec_content_handler;
    }

    if (!conf->enabled || clcf->noname) {
        return NGX_CONF_OK;
    }

    if (conf->upstream.upstream->srv_conf) {

        /* the name of an upstream block is nobody's host name */

        conf->host.len = 0;
    }

    kmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_kexec_module);

    if (kmcf->zone == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"kexec_pass\" in location \"%V\" needs a "
                      "\"kexec_zone\" in the http block", &clcf->name);
        return NGX_CONF_ERROR;
    }

    if (conf->buffer_size < 32 * 1024) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"kexec_buffer_size\" must be at least 32k");
        return NGX_CONF_ERROR;
    }

    /* what a kernel tells about itself has to come through */

    if (conf->max_message < 64 * 1024) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"kexec_max_message\" must be at least 64k");
        return NGX_CONF_ERROR;
    }

    if (conf->cwd.len > NGX_KEXEC_CWD_LEN) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"kexec_default_cwd\" is longer than %d bytes",
                      NGX_KEXEC_CWD_LEN);
        return NGX_CONF_ERROR;
    }

    last = conf->cwd.data + conf->cwd.len;

    for (p = conf->cwd.data; p < last; /* void */ ) {

        if (*p < 0x80) {
            p++;
            continue;
        }

        if (ngx_utf8_decode(&p, last - p) > 0x10ffff) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"kexec_default_cwd\" is not UTF-8");
            return NGX_CONF_ERROR;
        }
    }

    if (ngx_http_kexec_add_pass(cf, kmcf, conf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (conf->defaults == NULL) {
        return NGX_CONF_OK;
    }

    if (conf->token && conf->token->lengths) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"kexec_default_context\" is made without a request "
                      "and cannot use a \"kexec_token\" with variables, use "
                      "\"kexec_token_file\"");
        return NGX_CONF_ERROR;
    }

    startup = ngx_array_push(&kmcf->startup);
    if (startup == NULL) {
        return NGX_CONF_ERROR;
    }

    *startup = conf;

    return NGX_CONF_OK;
}


/*
 * What one location's requests made is there for those of any other, token and
 * all: so all of them mean the same servers.
 */

static ngx_int_t
ngx_http_kexec_add_pass(ngx_conf_t *cf, ngx_http_kexec_main_conf_t *kmcf,
    ngx_http_kexec_loc_conf_t *conf)
{
    uint32_t                       mark;
    ngx_http_kexec_loc_conf_t     *pass;
    ngx_http_upstream_srv_conf_t  *uscf;

    pass = kmcf->pass;
    uscf = conf->upstream.upstream;

    if (pass
        && (pass->upstream.upstream != uscf
            || pass->base.len != conf->base.len
            || ngx_strncmp(pass->base.data, conf->base.data, conf->base.len)
               != 0))
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"kexec_pass\" in location \"%V\" goes somewhere else "
                      "than the one in location \"%V\", but all contexts of "
                      "an nginx are in the same Jupyter Servers: name these "
                      "in one upstream block, or run another nginx",
                      &conf->location, &pass->location);
        return NGX_ERROR;
    }

    if (pass == NULL || (pass->token && pass->token->lengths)) {

        /* a token is better that is known without a request */

        kmcf->pass = conf;
    }

    ngx_crc32_init(mark);
    ngx_crc32_update(&mark, uscf->host.data, uscf->host.len);
    ngx_crc32_update(&mark, (u_char *) &uscf->port, sizeof(uscf->port));
    ngx_crc32_update(&mark, conf->base.data, conf->base.len);
    ngx_crc32_final(mark);

    ngx_kexec_zone_upstream(kmcf->zone, mark);

    return NGX_OK;
}


static char *
ngx_http_kexec_pass(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kexec_loc_conf_t  *klcf = conf;

    ngx_url_t                  u;
    ngx_str_t                 *value;
    ngx_http_core_loc_conf_t  *clcf;

    if (klcf->enabled) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (value[1].len < 8
        || ngx_strncasecmp(value[1].data, (u_char *) "http://", 7) != 0
        || ngx_strlchr(value[1].data, value[1].data + value[1].len, '?'))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid URL \"%V\": \"kexec_pass\" takes "
                           "http://upstream or http://host:port, with a "
                           "path if Jupyter has a base_url", &value[1]);
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->named
#if (NGX_PCRE)
        || clcf->regex
#endif
        || clcf->exact_match)
    {
        return "works in a prefix location only, not in an exact one, one "
               "given by a regular expression, or a named one";
    }

    ngx_memzero(&u, sizeof(ngx_url_t));

    u.url.len = value[1].len - 7;
    u.url.data = value[1].data + 7;
    u.default_port = 80;
    u.uri_part = 1;
    u.no_resolve = 1;

    klcf->upstream.upstream = ngx_http_upstream_add(cf, &u, 0);
    if (klcf->upstream.upstream == NULL) {
        return NGX_CONF_ERROR;
    }

    klcf->host = ngx_kexec_url_host(&u);
    klcf->base = u.uri;

    while (klcf->base.len
           && klcf->base.data[klcf->base.len - 1] == '/')
    {
        klcf->base.len--;
    }

    if (klcf->base.len == 0) {
        ngx_str_set(&klcf->base, "");
    }

    klcf->location = clcf->name;
    klcf->enabled = 1;

    clcf->handler = ngx_http_kexec_content_handler;

    if (clcf->name.len && clcf->name.data[clcf->name.len - 1] == '/') {
        clcf->auto_redirect = 1;
    }

    return NGX_CONF_OK;
}


ngx_str_t
ngx_kexec_url_host(ngx_url_t *u)
{
    ngx_str_t  host;

    host = u->host;

    if (u->port && u->port != 80 && !u->no_port) {
        host.len = u->url.len - u->uri.len;
        host.data = u->url.data;
    }

    if (u->family == AF_UNIX) {
        ngx_str_null(&host);
    }

    return host;
}


static char *
ngx_http_kexec_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kexec_main_conf_t  *kmcf = conf;

    u_char     *p;
    ssize_t     size;
    ngx_str_t  *value, name, s;

    if (kmcf->zone) {
        return "is duplicate";
    }

    value = cf->args->elts;

    p = (u_char *) ngx_strchr(value[1].data, ':');

    if (p == NULL || p == value[1].data) {
        goto invalid;
    }

    name.len = p - value[1].data;
    name.data = value[1].data;

    s.data = p + 1;
    s.len = value[1].data + value[1].len - s.data;

    size = ngx_parse_size(&s);

    if (size == NGX_ERROR) {
        goto invalid;
    }

    kmcf->zone = ngx_kexec_zone_add(cf, &name, size, &ngx_http_kexec_module);

    return kmcf->zone ? NGX_CONF_OK : NGX_CONF_ERROR;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid zone \"%V\", it should be \"name:size\", "
                       "for example \"kexec:8m\"", &value[1]);

    return NGX_CONF_ERROR;
}


static char *
ngx_http_kexec_default_context(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kexec_loc_conf_t  *klcf = conf;

    size_t       len;
    u_char      *p;
    ngx_str_t   *value, *language;
    ngx_uint_t   i;

    value = cf->args->elts;

    if (klcf->defaults == NGX_CONF_UNSET_PTR) {
        klcf->defaults = ngx_array_create(cf->pool, 2, sizeof(ngx_str_t));
        if (klcf->defaults == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    p = ngx_pnalloc(cf->pool, value[1].len + 10);
    if (p == NULL) {
        return NGX_CONF_ERROR;
    }

    len = ngx_kexec_language_normalize(p, &value[1]);

    if (len == 0 || len > NGX_KEXEC_LANGUAGE_LEN) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid language \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    language = klcf->defaults->elts;

    for (i = 0; i < klcf->defaults->nelts; i++) {
        if (language[i].len == len
            && ngx_strncmp(language[i].data, p, len) == 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate default context \"%V\"", &value[1]);
            return NGX_CONF_ERROR;
        }
    }

    language = ngx_array_push(klcf->defaults);
    if (language == NULL) {
        return NGX_CONF_ERROR;
    }

    language->len = len;
    language->data = p;

    return NGX_CONF_OK;
}


static char *
ngx_http_kexec_env(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kexec_loc_conf_t  *klcf = conf;

    const char    *why;
    ngx_str_t     *value;
    ngx_uint_t     i;
    ngx_keyval_t  *kv;

    value = cf->args->elts;

    if (klcf->env == NGX_CONF_UNSET_PTR) {
        klcf->env = ngx_array_create(cf->pool, 4, sizeof(ngx_keyval_t));
        if (klcf->env == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    /* what bash can hold, any language can */

    why = ngx_kexec_language_refuses(NGX_KEXEC_LANG_BASH, &value[1],
                                     &value[2]);
    if (why) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"kexec_env %V\": %s",
                           &value[1], why);
        return NGX_CONF_ERROR;
    }

    kv = klcf->env->elts;

    for (i = 0; i < klcf->env->nelts; i++) {
        if (kv[i].key.len == value[1].len
            && ngx_strncmp(kv[i].key.data, value[1].data, value[1].len) == 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate variable \"%V\"", &value[1]);
            return NGX_CONF_ERROR;
        }
    }

    kv = ngx_array_push(klcf->env);
    if (kv == NULL) {
        return NGX_CONF_ERROR;
    }

    kv->key = value[1];
    kv->value = value[2];

    return NGX_CONF_OK;
}


static char *
ngx_http_kexec_queue(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kexec_loc_conf_t  *klcf = conf;

    ngx_int_t    n;
    ngx_str_t   *value, s;
    ngx_uint_t   i;
    ngx_msec_t   ms;

    if (klcf->queue_size != NGX_CONF_UNSET_UINT
        || klcf->queue_timeout != NGX_CONF_UNSET_MSEC)
    {
        return "is duplicate";
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "size=", 5) == 0) {
            n = ngx_atoi(value[i].data + 5, value[i].len - 5);
            if (n == NGX_ERROR) {
                goto invalid;
            }

            klcf->queue_size = n;
            continue;
        }

        if (ngx_strncmp(value[i].data, "timeout=", 8) == 0) {
            s.len = value[i].len - 8;
            s.data = value[i].data + 8;

            ms = ngx_parse_time(&s, 0);
            if (ms == (ngx_msec_t) NGX_ERROR || ms == 0) {
                goto invalid;
            }

            klcf->queue_timeout = ms;
            continue;
        }

        goto invalid;
    }

    return NGX_CONF_OK;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\", \"kexec_queue\" takes "
                       "size=number and timeout=time", &value[i]);

    return NGX_CONF_ERROR;
}


static char *
ngx_http_kexec_check_nonzero(ngx_conf_t *cf, void *post, void *data)
{
    ngx_msec_t  *np = data;

    if (*np == 0) {
        return "must not be 0: every wait has a limit";
    }

    return NGX_CONF_OK;
}
