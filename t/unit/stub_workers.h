
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _STUB_WORKERS_H_INCLUDED_
#define _STUB_WORKERS_H_INCLUDED_


#include "stub_nginx.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>


/*
 * One process that plays several workers: each of them has a process of its
 * own that can be killed, and this one takes their places in turn.
 */


#define SIZE     (256 * 1024)
#define WORKERS  3
#define CLAIMS   10


typedef struct {
    ngx_kexec_claim_t       claim;
    ngx_uint_t              notices;
    ngx_kexec_claim_look_t  look;       /* the last one of look() */
    ngx_kexec_claim_t      *leaves;     /* what its handler ends */
    void                   *frees;      /* and whose memory goes with it */
    ngx_uint_t              watches;    /* or begins again at once */
} owner_t;


typedef struct {
    ngx_pid_t               pid;
    ngx_kexec_zone_self_t   self;
    ngx_uint_t              channel;
} worker_t;


extern worker_t           worker[WORKERS];
extern ngx_kexec_zone_t  *zone;
extern owner_t            own[CLAIMS];


/* a zone and its workers for a test, in worker 0's place; a clean zone */
int setup(void **state);
int teardown(void **state);

void be(ngx_uint_t k);
void start(ngx_uint_t k);
void stop(ngx_uint_t k);

/* what the worker that one is would do when it is woken */
void notices(void);

/* a handler that counts, and an owner that has it */
void handler(ngx_kexec_claim_t *claim);
owner_t *owner(ngx_uint_t i);

void new_context(ngx_kexec_context_t *ctx, const char *language,
    ngx_uint_t is_default);

/* one that is ready, and whose slot is free */
ngx_kexec_ref_t ready_context(ngx_kexec_context_t *ctx);

/* the zone's functions for own[i] */
ngx_int_t enter(ngx_uint_t i, ngx_kexec_ref_t context);
ngx_int_t operate(ngx_uint_t i, ngx_kexec_ref_t context,
    ngx_kexec_claim_kind_e kind);
ngx_int_t watch(ngx_uint_t i, ngx_kexec_ref_t context);
ngx_kexec_claim_state_e look(ngx_uint_t i);
void leave(ngx_uint_t i);

ngx_kexec_zone_claim_t *record(ngx_uint_t i);
ngx_str_t str(const char *text);


#endif /* _STUB_WORKERS_H_INCLUDED_ */
