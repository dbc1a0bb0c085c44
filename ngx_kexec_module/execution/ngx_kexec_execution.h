
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_EXECUTION_H_INCLUDED_
#define _NGX_KEXEC_EXECUTION_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_kexec_client.h>
#include <ngx_kexec_jupyter.h>
#include <ngx_kexec_kernel.h>
#include <ngx_kexec_machine.h>
#include <ngx_kexec_server.h>


/*
 * An execution: one run of code in a context, with its own pool, log, timer
 * and machine (ngx_kexec_machine.h), which decides; this room has its hands,
 * which do what it says.  Its client is a viewer that may leave; the slot is
 * given back by the execution alone.
 *
 * Making a context takes the first half of the same way (session, link,
 * fence, working directory), so it is an execution without code.
 */


/* a handler may tell several things at once */
#define NGX_KEXEC_EXECUTION_EVENTS  8


/* what is known of how the code ended, and not told yet; see _verdict.c */

typedef struct ngx_kexec_kept_s  ngx_kexec_kept_t;

typedef struct {
    ngx_str_t                   reply;          /* content, of an error */
    ngx_kexec_kept_t           *held;           /* from an iopub error on */
    ngx_kexec_kept_t          **last;
    size_t                      size;           /* behind the first */
} ngx_kexec_verdict_t;


/* the id of a request to the kernel */

typedef struct {
    size_t                      len;
    u_char                      data[NGX_KEXEC_UUID_LEN + 32];
} ngx_kexec_msg_id_t;


typedef struct ngx_kexec_execution_s  ngx_kexec_execution_t;

typedef void (*ngx_kexec_event_pt)(ngx_kexec_execution_t *ex,
    ngx_kexec_machine_event_t *ev);


/*
 * The end of making a context: 200, or a status and a sentence.  ctx is the
 * context as it is now.
 */
typedef void (*ngx_kexec_created_pt)(void *data, ngx_uint_t status,
    ngx_str_t *sentence, ngx_kexec_context_t *ctx);


struct ngx_kexec_execution_s {
    ngx_kexec_machine_t         m;
    ngx_kexec_event_pt          event;

    ngx_kexec_claim_t           claim;
    ngx_kexec_claim_kind_e      kind;           /* RUN or CREATE */

    ngx_pool_t                 *pool;
    ngx_log_t                   log;
    ngx_http_kexec_loc_conf_t  *conf;

    u_char                      id[NGX_KEXEC_UUID_LEN];
    ngx_kexec_context_t         ctx;
    ngx_kexec_server_t         *server;
    ngx_kexec_kernel_t         *kernel;

    /* of an execution */
    ngx_kexec_client_t         *client;
    ngx_str_t                   code;
    ngx_keyval_t               *env;
    ngx_uint_t                  nenv;
    ngx_keyval_t               *envs;           /* of kexec_envs_url */
    ngx_uint_t                  nenvs;
    ngx_str_t                   access_token;   /* for that; never logged */

    /* of a new context */
    ngx_kexec_created_pt        created;
    void                       *data;
    ngx_uint_t                  servers;        /* of the block, tried */

    /* what the machine cannot know: see NGX_KEXEC_SAY_SESSION */
    ngx_uint_t                  status;
    const char                 *name;
    ngx_str_t                   sentence;

    ngx_msec_t                  entered;
    ngx_str_t                   source;         /* of a step */
    ngx_uint_t                  serial;         /* of message ids */
    ngx_kexec_msg_id_t          code_id;
    ngx_kexec_msg_id_t          fence_id;
    ngx_kexec_msg_id_t          silent_id;
    ngx_kexec_verdict_t         verdict;
    const char                 *dropped_why;    /* if more is known of it */

    ngx_kexec_http_t           *http;           /* the machine's call */
    ngx_kexec_http_t           *mark;           /* another name's call */
    ngx_kexec_http_t           *fetch;          /* call of kexec_envs_url */

    ngx_event_t                 timer;
    ngx_event_t                 freeing;

    ngx_uint_t                  first;          /* of the events to come */
    ngx_uint_t                  nevents;
    ngx_kexec_machine_event_t   events[NGX_KEXEC_EXECUTION_EVENTS];

    unsigned                    running:1;      /* the machine, or its hands */
    unsigned                    errored:1;      /* an error event was sent */
    unsigned                    dropped:1;      /* output is missing */
    unsigned                    asked_twice:1;  /* for a new session */
};


/*
 * An execution in the context ctx.  r gives the token and the settings; the
 * caller then sets code, env (in the execution's pool) and m.conf.timeout.
 * NULL: no memory.
 */
ngx_kexec_execution_t *ngx_kexec_execution_create(ngx_http_request_t *r,
    ngx_http_kexec_loc_conf_t *conf, ngx_kexec_context_t *ctx,
    ngx_kexec_claim_kind_e kind);

/* throws away one that was not started */
void ngx_kexec_execution_destroy(ngx_kexec_execution_t *ex);

/*
 * Asks for the slot: NGX_OK, and from now on the execution looks after
 * itself; or what ngx_kexec_claim_enter() refused with.
 */
ngx_int_t ngx_kexec_execution_enter(ngx_kexec_execution_t *ex,
    ngx_kexec_zone_t *zone);

/* makes the context ctx, whose record the claim already holds */
void ngx_kexec_execution_make(ngx_kexec_execution_t *ex);

/* the client is there: it gets the events, and its leaving cancels */
void ngx_kexec_execution_attach(ngx_kexec_execution_t *ex,
    ngx_kexec_client_t *client);

/* nobody waits for the new context any more: it is taken away again */
void ngx_kexec_execution_abandon(ngx_kexec_execution_t *ex);


/*
 * Something has happened: calls ex->event, where the machine decides, and what
 * it says is done, at once, or behind what is being done.
 */
void ngx_kexec_on(ngx_kexec_execution_t *ex, ngx_kexec_on_e what,
    ngx_int_t n);

/* what a client is told has at most this many bytes */
#define NGX_KEXEC_SENTENCE  1024


#endif /* _NGX_KEXEC_EXECUTION_H_INCLUDED_ */
