
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_ZONE_INT_H_INCLUDED_
#define _NGX_KEXEC_ZONE_INT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_kexec_zone.h>


/*
 * The zone's records, for the files that work on them.
 *
 * What a record says about itself is the truth: a claim has its context, its
 * worker, its state and its number in the order of arrival.  Links, holders
 * and counts are derived from that, and made anew by the checker when a
 * worker died while it was changing them.  A record's state is therefore the
 * last thing written when the record is made, and the first when it ends.
 */


#define NGX_KEXEC_NONE             0xffffffff

#define NGX_KEXEC_ZONE_MIN         (256 * 1024)
#define NGX_KEXEC_ZONE_CONTEXT     4096     /* bytes of a zone per context */
#define NGX_KEXEC_ZONE_CLAIMS      16       /* claims per context */

#define NGX_KEXEC_GRANT_TIME       1000     /* to acknowledge a grant */
#define NGX_KEXEC_SWEEP_TIME       1000

/* records that are looked at before the lock is given to others */
#define NGX_KEXEC_ZONE_BATCH       64


typedef struct {
    ngx_kexec_context_t       c;            /* begins with its reference */

    unsigned                  created:1;    /* was ready once */
    unsigned                  torn:1;       /* c is being written */

    uint32_t                  next;         /* of its hash, or free */
    uint32_t                  next_default;

    uint32_t                  holder;
    uint32_t                  head;         /* of the queue */
    uint32_t                  tail;
    uint32_t                  watchers;
} ngx_kexec_zone_context_t;


typedef struct {
    uint32_t                  generation;   /* the first member */

    uint32_t                  worker;
    uint32_t                  worker_generation;

    uint32_t                  context;      /* NONE: it is gone */
    uint32_t                  context_generation;

    uint8_t                   state;
    uint8_t                   kind;
    uint8_t                   verdict;

    unsigned                  interrupt:1;
    unsigned                  late:1;       /* did not answer a grant */
    unsigned                  noticed:1;    /* on its worker's list */
    unsigned                  begun:1;      /* an operation that others felt */

    uint64_t                  sequence;     /* order of arrival */
    ngx_msec_t                granted;

    uint32_t                  next;         /* queue, watchers, or free */
    uint32_t                  prev;
    uint32_t                  next_notice;
    uint32_t                  prev_notice;
} ngx_kexec_zone_claim_t;


typedef struct {
    ngx_pid_t                 pid;          /* 0: free */
    uint32_t                  generation;
    uint64_t                  start;        /* the process' start stamp */
    ngx_msec_t                beat;
    ngx_atomic_t              temp;         /* bytes of temporary files */

    uint32_t                  head;         /* of its notices */
    uint32_t                  tail;
} ngx_kexec_zone_worker_t;


typedef struct {
    ngx_pid_t                 pid;
    ngx_msec_t                time;
} ngx_kexec_zone_turn_t;


typedef struct {
    ngx_atomic_t              writer;       /* pid, while it is in here */

    uint64_t                  instance;
    uint64_t                  serial;       /* of the youngest context */
    uint64_t                  sequence;     /* of the youngest claim */

    uint32_t                  free_contexts;
    uint32_t                  free_claims;

    ngx_uint_t                ncontexts;    /* in use */
    ngx_uint_t                top;          /* records behind it were never */
    ngx_uint_t                nfailed;
    ngx_uint_t                nclaims[NGX_KEXEC_CLAIM_WATCHING + 1];

    ngx_uint_t                idle;
    ngx_uint_t                rebuilt;

    ngx_atomic_t              seen;         /* ngx_kexec_seen_e */
    size_t                    why_len;
    u_char                    why[NGX_KEXEC_FAILURE_LEN];
    ngx_kexec_zone_turn_t     turns[NGX_KEXEC_TURNS];

#if (NGX_DEBUG)
    ngx_uint_t                crashed;
#endif

    ngx_kexec_zone_worker_t   workers[NGX_KEXEC_MAX_WORKERS];
} ngx_kexec_zone_sh_t;


/* a cycle's view of the zone; the sizes are not read from shared memory */

struct ngx_kexec_zone_s {
    ngx_kexec_zone_sh_t       *sh;
    ngx_slab_pool_t           *shpool;

    ngx_uint_t                 ncontexts;
    ngx_uint_t                 nclaims;
    ngx_uint_t                 nbuckets;    /* a power of two */
    ngx_uint_t                 max;         /* contexts, 0: as many as fit */
    uint32_t                   upstream;    /* kexec_pass's mark, 0: none */

    ngx_kexec_zone_context_t  *contexts;
    ngx_kexec_zone_claim_t    *claims;
    uint32_t                  *ids;         /* contexts by id */
    uint32_t                  *defaults;    /* default contexts by language */

    ngx_uint_t                 hand;        /* in search of failed ones */

    /* what is to be done when the lock is given back */
    uint64_t                   wakes[NGX_KEXEC_MAX_WORKERS / 64];
    ngx_pid_t                  died;
    ngx_uint_t                 repairs;
};


/* this process as a worker */

typedef struct {
    ngx_kexec_zone_t          *zone;
    ngx_kexec_claim_t        **owners;      /* by a claim's index */
    uint32_t                   worker;      /* NONE: has no record */
    uint32_t                   generation;
    ngx_uint_t                 rebuilt;     /* what of it was seen */
    ngx_msec_t                 leaving;     /* since when, 0: it stays */
    off_t                      temp;        /* bytes of temporary files */
} ngx_kexec_zone_self_t;


extern ngx_kexec_zone_self_t  ngx_kexec_zone_self;


/* ngx_kexec_zone.c */

void ngx_kexec_zone_lock(ngx_kexec_zone_t *zone);
void ngx_kexec_zone_unlock(ngx_kexec_zone_t *zone);
ngx_msec_t ngx_kexec_zone_now(void);

/* ngx_kexec_zone_context.c */

ngx_kexec_zone_context_t *ngx_kexec_zone_context(ngx_kexec_zone_t *zone,
    ngx_kexec_ref_t *ref);
ngx_kexec_zone_context_t *ngx_kexec_zone_by_id(ngx_kexec_zone_t *zone,
    u_char *id);
ngx_kexec_zone_context_t *ngx_kexec_zone_by_language(ngx_kexec_zone_t *zone,
    u_char *language, size_t len);
uint32_t *ngx_kexec_zone_bucket(ngx_kexec_zone_t *zone, uint32_t *table,
    u_char *data, size_t len);
void ngx_kexec_zone_link(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx);
void ngx_kexec_zone_drop(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx);
void ngx_kexec_zone_fail(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx, ngx_uint_t status, ngx_str_t *sentence);
void ngx_kexec_zone_unfinished(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx);
ngx_int_t ngx_kexec_zone_room(ngx_kexec_zone_t *zone);
void ngx_kexec_zone_write(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *rec, ngx_kexec_context_t *ctx);

/* ngx_kexec_claim.c */

ngx_kexec_zone_claim_t *ngx_kexec_claim_record(ngx_kexec_claim_t *claim);
ngx_kexec_zone_claim_t *ngx_kexec_claim_make(ngx_kexec_zone_t *zone,
    ngx_kexec_claim_t *claim, ngx_kexec_zone_context_t *ctx,
    ngx_kexec_claim_kind_e kind);
ngx_uint_t ngx_kexec_claim_is_holder(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_claim_t *cl);
void ngx_kexec_claim_forget(ngx_kexec_claim_t *claim);

/* ngx_kexec_zone_slot.c */

void ngx_kexec_slot_move(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl,
    ngx_kexec_claim_state_e state);
void ngx_kexec_slot_free(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl);
void ngx_kexec_slot_take(ngx_kexec_zone_t *zone, ngx_kexec_zone_context_t *ctx,
    ngx_kexec_zone_claim_t *cl, ngx_kexec_claim_state_e state);
ngx_uint_t ngx_kexec_slot_before(ngx_kexec_zone_claim_t *one,
    ngx_kexec_zone_claim_t *two);
void ngx_kexec_slot_queue(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx, ngx_kexec_zone_claim_t *cl);
void ngx_kexec_slot_watch(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx, ngx_kexec_zone_claim_t *cl);
void ngx_kexec_slot_grant(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx);
void ngx_kexec_slot_release(ngx_kexec_zone_context_t *ctx);
void ngx_kexec_slot_check(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx);
ngx_uint_t ngx_kexec_slot_throw_out(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx, ngx_kexec_verdict_e verdict,
    ngx_uint_t operations);
void ngx_kexec_slot_answer(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx, ngx_kexec_verdict_e verdict);
void ngx_kexec_slot_end_with(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_claim_t *cl, ngx_kexec_verdict_e verdict);
void ngx_kexec_slot_end(ngx_kexec_zone_t *zone, ngx_kexec_zone_claim_t *cl,
    ngx_uint_t orphan);
ngx_uint_t ngx_kexec_slot_deletes(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx);
void ngx_kexec_slot_undelete(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx);
void ngx_kexec_slot_notice(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_claim_t *cl);
ngx_kexec_zone_claim_t *ngx_kexec_slot_next_notice(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_worker_t *worker);
void ngx_kexec_slot_tell_watchers(ngx_kexec_zone_t *zone,
    ngx_kexec_zone_context_t *ctx);

/* ngx_kexec_zone_temp.c */

/* writes what this worker knows to its record, which may be new or damaged */
void ngx_kexec_worker_tell_temp(void);

/* ngx_kexec_zone_check.c */

/*
 * Under the lock.  Tells how many things are wrong in the zone; with repair
 * these are put right, and all claims get a notice.
 */
ngx_uint_t ngx_kexec_zone_check(ngx_kexec_zone_t *zone, ngx_uint_t repair);


/*
 * Tests kill the process at a numbered point of a critical section, once in
 * a zone's life: the point is set here, or by the environment's
 * KEXEC_ZONE_CRASH.
 */

#define NGX_KEXEC_CRASH_POINTS     21

#if (NGX_DEBUG)

extern ngx_uint_t  ngx_kexec_zone_crash_point;

void ngx_kexec_zone_crash(ngx_kexec_zone_t *zone, ngx_uint_t point);

#else

#define ngx_kexec_zone_crash(zone, point)

#endif


#endif /* _NGX_KEXEC_ZONE_INT_H_INCLUDED_ */
