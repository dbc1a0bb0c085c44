
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_ZONE_H_INCLUDED_
#define _NGX_KEXEC_ZONE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_id.h>
#include <ngx_kexec_language.h>
#include <ngx_kexec_phase.h>


/*
 * The zone: contexts, their slots and queues, shared by all workers.
 *
 * Fixed arrays of records with index links, made once at zone init; one lock
 * (the slab pool's mutex); under it no I/O, no logging, no allocation.  A
 * reference is an index and a generation, so that a record that was given to
 * somebody else is never taken for one's own.
 *
 * A *claim* is a worker's record in the zone: an execution that is queued or
 * holds a slot, an operation on a context that needs the slot (create,
 * restart, delete), or somebody who only watches a context.  Whenever
 * something happened to a claim that its owner must know, the claim is put on
 * its worker's list of notices and that worker is woken; the claim's handler
 * then runs in the worker's event loop.
 */


#define NGX_KEXEC_LANGUAGE_LEN  63
#define NGX_KEXEC_CWD_LEN       1023
#define NGX_KEXEC_FAILURE_LEN   255

#define NGX_KEXEC_MAX_WORKERS   128


/*
 * The name and path of a session in Jupyter may say anything.  A larger serial
 * counts as SERIAL_FOUND, so that those that come after it never reach what is
 * believed of a record; a path with a larger epoch than EPOCH_FOUND is not
 * ours.
 */
#define NGX_KEXEC_SERIAL_FOUND  ((uint64_t) 1 << 53)
#define NGX_KEXEC_SERIAL_MAX    ((uint64_t) 1 << 62)
#define NGX_KEXEC_EPOCH_FOUND   ((uint32_t) 1 << 30)


typedef struct {
    uint32_t                index;
    uint32_t                generation;     /* never 0 in a valid reference */
} ngx_kexec_ref_t;


typedef enum {
    NGX_KEXEC_CONTEXT_FREE = 0,
    NGX_KEXEC_CONTEXT_CREATING,             /* slot held by its creator */
    NGX_KEXEC_CONTEXT_READY,
    NGX_KEXEC_CONTEXT_FAILED,               /* could not be created */
    NGX_KEXEC_CONTEXT_DELETING
} ngx_kexec_context_state_e;


typedef enum {
    NGX_KEXEC_CLAIM_RUN = 1,                /* an execution */
    NGX_KEXEC_CLAIM_CREATE,
    NGX_KEXEC_CLAIM_RESTART,
    NGX_KEXEC_CLAIM_DELETE,
    NGX_KEXEC_CLAIM_WATCH                   /* never queued, holds nothing */
} ngx_kexec_claim_kind_e;


typedef enum {
    NGX_KEXEC_CLAIM_NONE = 0,               /* the record is not ours */
    NGX_KEXEC_CLAIM_QUEUED,
    NGX_KEXEC_CLAIM_GRANTED,                /* slot is ours, not acknowledged */
    NGX_KEXEC_CLAIM_HELD,
    NGX_KEXEC_CLAIM_ENDED,                  /* thrown out: see the verdict */
    NGX_KEXEC_CLAIM_WATCHING
} ngx_kexec_claim_state_e;


/* why a claim was thrown out, or must give its slot back */

typedef enum {
    NGX_KEXEC_VERDICT_NONE = 0,
    NGX_KEXEC_VERDICT_RESTARTED,
    NGX_KEXEC_VERDICT_DELETED,

    /* of a RESTART that another one answers, which failed */
    NGX_KEXEC_VERDICT_REFUSED,
    NGX_KEXEC_VERDICT_UNREACHABLE
} ngx_kexec_verdict_e;


/*
 * A context as its record has it, copied out under the lock.  In a copy
 * sockaddr points to storage inside of it.
 */

typedef struct {
    ngx_kexec_ref_t             ref;
    ngx_kexec_context_state_e   state;
    ngx_kexec_language_e        kind;       /* of snippets */

    uint64_t                    serial;     /* order of creation */
    uint32_t                    epoch;      /* kernel starts that we know of */
    uint32_t                    process;    /* mark of the kernel's process */
    unsigned                    is_default:1;
    unsigned                    ready:1;    /* kernel answers, iopub flows */
    unsigned                    prepared:2; /* NGX_KEXEC_PREPARED... */
    unsigned                    in_order:1; /* its kernel answers a fence only
                                               behind code that still runs */
    unsigned                    dirty:1;    /* an orphan may still run there */
    unsigned                    owes_restore:1;

    u_char                      id[NGX_KEXEC_UUID_LEN];
    size_t                      language_len;
    u_char                      language[NGX_KEXEC_LANGUAGE_LEN + 1];
    size_t                      spec_len;   /* kernelspec's name */
    u_char                      spec[NGX_KEXEC_LANGUAGE_LEN + 1];
    size_t                      cwd_len;
    u_char                      cwd[NGX_KEXEC_CWD_LEN + 1];

    ngx_kexec_id_t              session;    /* Jupyter's ids */
    ngx_kexec_id_t              kernel;

    socklen_t                   socklen;    /* the Jupyter it is pinned to */
    u_char                      sockaddr[NGX_SOCKADDRLEN];
    size_t                      server_len;
    u_char                      server[NGX_SOCKADDR_STRLEN];

    /*
     * of a failed creation: HTTP status and sentence; 0 if it was given up
     * because its worker ends or is dead: whoever waits may make it
     */
    ngx_uint_t                  failure_status;
    size_t                      failure_len;
    u_char                      failure[NGX_KEXEC_FAILURE_LEN + 1];

    /* the slot at the time of the copy */
    ngx_kexec_phase_e           phase;
    ngx_msec_t                  held_since; /* ngx_current_msec of the worker
                                               that gave it; 0: free */
    ngx_uint_t                  queued;
    ngx_msec_t                  used;       /* when it was given back last,
                                               by ngx_kexec_zone_now() */
} ngx_kexec_context_t;


typedef struct ngx_kexec_zone_s   ngx_kexec_zone_t;
typedef struct ngx_kexec_claim_s  ngx_kexec_claim_t;

/*
 * Embedded in whatever owns a claim.  The owner zeroes it, and sets handler,
 * before a claim is made; index and generation belong to the zone.
 */

struct ngx_kexec_claim_s {
    void                      (*handler)(ngx_kexec_claim_t *claim);
    void                       *data;
    ngx_kexec_zone_t           *zone;
    ngx_kexec_ref_t             ref;        /* generation 0: no claim */
    ngx_kexec_ref_t             context;
};


/* what ngx_kexec_claim_look() tells */

typedef struct {
    ngx_kexec_claim_state_e     state;
    ngx_kexec_verdict_e         verdict;    /* holder: give the slot back */
    unsigned                    interrupt:1; /* somebody asked for one */
    ngx_uint_t                  position;   /* 1: next one; 0 unless queued */
} ngx_kexec_claim_look_t;


/*
 * kexec_zone name:size; makes the zone known, in a directive's setter.  NULL
 * and a logged reason on errors: a second zone, too small (under 256k), or
 * another size or name than the running one's on a reload.
 */
ngx_kexec_zone_t *ngx_kexec_zone_add(ngx_conf_t *cf, ngx_str_t *name,
    size_t size, void *tag);

/*
 * A mark of what kexec_pass names: a reload cannot change that once it was
 * set, for the contexts in the zone are there, and their servers would be sent
 * another one's token.
 */
void ngx_kexec_zone_upstream(ngx_kexec_zone_t *zone, uint32_t mark);

/* from the module's init_module: makes the eventfd table once */
ngx_int_t ngx_kexec_zone_init_module(ngx_kexec_zone_t *zone,
    ngx_cycle_t *cycle);

/*
 * From init_process and exit_process, in workers and in single mode only.
 * init takes a worker's record, registers its eventfd and starts the sweep
 * that looks for dead workers; exit gives back all claims of this worker
 * (what runs code becomes dirty).
 */
ngx_int_t ngx_kexec_zone_init_process(ngx_kexec_zone_t *zone,
    ngx_cycle_t *cycle);
void ngx_kexec_zone_exit_process(ngx_kexec_zone_t *zone);

/*
 * Since when this worker is leaving gracefully, 0: it is not.  The handlers of
 * all of its claims are called at that moment.
 */
ngx_msec_t ngx_kexec_zone_leaving(void);


/*
 * Contexts.  ctx is always filled in by a successful call.
 */

/* by id; NGX_OK for creating, ready and deleting ones, else NGX_DECLINED */
ngx_int_t ngx_kexec_zone_find(ngx_kexec_zone_t *zone, ngx_str_t *id,
    ngx_kexec_context_t *ctx);

/* by reference; NGX_DECLINED if it is not that context any more */
ngx_int_t ngx_kexec_zone_get(ngx_kexec_zone_t *zone, ngx_kexec_ref_t *ref,
    ngx_kexec_context_t *ctx);

/* the default context of a normalized language; failed ones too */
ngx_int_t ngx_kexec_zone_default(ngx_kexec_zone_t *zone, ngx_str_t *language,
    ngx_kexec_context_t *ctx);

/*
 * All ready contexts in order of creation, allocated from pool (elements are
 * ngx_kexec_context_t).  NULL: no memory.
 */
ngx_array_t *ngx_kexec_zone_list(ngx_kexec_zone_t *zone, ngx_pool_t *pool);

/*
 * A new context in state CREATING whose slot claim holds (kind CREATE).  From
 * ctx are taken: id, language, spec, kind, cwd, sockaddr, server, is_default.
 * At the end ctx->ref, serial and claim->context are set.
 * NGX_OK; NGX_BUSY: is_default, and that language's is there or being created
 * (not failed), or one of that id is there: ctx is that one; NGX_DECLINED: the
 * zone is full; NGX_ABORT: kexec_max_contexts is reached; NGX_ERROR: this
 * process is not known to the zone.
 */
ngx_int_t ngx_kexec_zone_create(ngx_kexec_zone_t *zone,
    ngx_kexec_context_t *ctx, ngx_kexec_claim_t *claim);

/*
 * By the holder of the slot: writes session, kernel, spec, kind, sockaddr,
 * server, ready, prepared, owes_restore, dirty and (if larger) epoch of ctx
 * to the record.
 */
void ngx_kexec_zone_update(ngx_kexec_claim_t *claim,
    ngx_kexec_context_t *ctx);

/*
 * In a copy: the kernel's process is, or will be, another one.  What is owed to
 * be put back stays owed: see ngx_kexec_facts_new_process().
 */
void ngx_kexec_zone_new_process(ngx_kexec_context_t *ctx);

/*
 * By anybody who has the link of a context whose slot he does not hold:
 * Jupyter says that the kernel died (and starts it again), or that it is dead
 * for good.  Nothing happens if the context has another kernel by now.
 */
void ngx_kexec_zone_kernel_lost(ngx_kexec_zone_t *zone,
    ngx_kexec_ref_t *context, ngx_kexec_id_t *kernel, ngx_uint_t dead);

/*
 * By the creator: the context is ready (its slot stays with the creator until
 * it leaves), or could not be made: it stays as FAILED with status and
 * sentence if it is a default one, for those who watch it, else it is gone;
 * the claim ends.
 */
void ngx_kexec_zone_created(ngx_kexec_claim_t *claim);
void ngx_kexec_zone_failed(ngx_kexec_claim_t *claim, ngx_uint_t status,
    ngx_str_t *sentence);

/*
 * By the holder of a DELETE claim: the record is freed, the claim ends.  What
 * is still queued is thrown out with NGX_KEXEC_VERDICT_DELETED.
 */
void ngx_kexec_zone_remove(ngx_kexec_claim_t *claim);


/*
 * What Jupyter's sessions tell, see ngx_kexec_sync.c.
 */

/*
 * A context found in Jupyter, all but its reference given by ctx, becomes
 * READY; a default one whose language has one already is not a default any
 * more.  NGX_OK; NGX_BUSY: its id is known, ctx is that one; NGX_DECLINED: the
 * zone is full.
 */
ngx_int_t ngx_kexec_zone_adopt(ngx_kexec_zone_t *zone,
    ngx_kexec_context_t *ctx);

/*
 * Jupyter does not have that session any more: its context has no kernel (and
 * kernel.len is 0) until its next use, unless somebody holds its slot, who will
 * notice.
 */
void ngx_kexec_zone_lost(ngx_kexec_zone_t *zone, ngx_kexec_context_t *ctx);

/*
 * A context without a kernel lives in its record alone.  Drops that of ref if
 * nobody made use of it for idle ms, or, where no context more may be made, the
 * one that was not used for the longest time, and ctx is that one.  NGX_OK;
 * NGX_DECLINED: nothing was dropped.
 */
ngx_int_t ngx_kexec_zone_lapse(ngx_kexec_zone_t *zone, ngx_kexec_ref_t *ref,
    ngx_msec_t idle);
ngx_int_t ngx_kexec_zone_make_room(ngx_kexec_zone_t *zone,
    ngx_kexec_context_t *ctx);

/* the same, and logs which one */
ngx_int_t ngx_kexec_make_room(ngx_kexec_zone_t *zone);

/*
 * Contexts of which nobody made use for idle ms, at most n; how many were
 * written.  *hand, 0 at first, goes round all records from call to call.
 */
ngx_uint_t ngx_kexec_zone_idle(ngx_kexec_zone_t *zone, ngx_msec_t idle,
    ngx_uint_t *hand, ngx_kexec_context_t *ctx, ngx_uint_t n);

/*
 * What the temporary files of this worker take up has grown by size bytes, or
 * shrunk by that much; and what those of all workers that live take up.
 */
void ngx_kexec_zone_temp_add(off_t size);
off_t ngx_kexec_zone_temp(ngx_kexec_zone_t *zone);

/*
 * Work that one worker does for all, every interval ms: is it this one's turn?
 * It stays with the same worker, until that one misses a turn.
 */

#define NGX_KEXEC_TURN_SYNC  0
#define NGX_KEXEC_TURN_IDLE  1
#define NGX_KEXEC_TURNS      2

ngx_uint_t ngx_kexec_zone_turn(ngx_kexec_zone_t *zone, ngx_uint_t work,
    ngx_msec_t interval);

/*
 * How much of Jupyter's sessions the zone has seen since it was made: nothing,
 * an attempt failed, some servers' or all servers' sessions.  It only grows.
 * why says what failed last, NGX_KEXEC_FAILURE_LEN bytes of it.
 */

typedef enum {
    NGX_KEXEC_SEEN_NONE = 0,
    NGX_KEXEC_SEEN_TRIED,
    NGX_KEXEC_SEEN_SOME,
    NGX_KEXEC_SEEN_ALL
} ngx_kexec_seen_e;

void ngx_kexec_zone_set_seen(ngx_kexec_zone_t *zone, ngx_kexec_seen_e seen,
    ngx_str_t *why);
ngx_kexec_seen_e ngx_kexec_zone_seen(ngx_kexec_zone_t *zone);

/* copies why to buf of that size; returns its end */
u_char *ngx_kexec_zone_why_unseen(ngx_kexec_zone_t *zone, u_char *buf);

/* from a directive's setter: how many contexts there may be, 0: any number */
void ngx_kexec_zone_limit(ngx_kexec_zone_t *zone, ngx_uint_t max);


/*
 * Slots.
 */

/*
 * Asks for the slot of claim->context (set by the caller) with an execution.
 * limit: how many may wait, the holder not counted.
 * One that is still being created can be entered as well: if that fails, the
 * verdict is NGX_KEXEC_VERDICT_DELETED.  In all of these, what claim was before
 * is left first.
 * NGX_OK: it is held (no acknowledgement needed); NGX_AGAIN: queued;
 * NGX_BUSY: the queue is full; NGX_DECLINED: no such context, or it is being
 * deleted; NGX_ERROR: the zone has no record left.
 */
ngx_int_t ngx_kexec_claim_enter(ngx_kexec_zone_t *zone,
    ngx_kexec_claim_t *claim, ngx_uint_t limit);

/*
 * Asks for the slot with an operation that ends all others (kind RESTART or
 * DELETE): everybody queued is thrown out with the verdict that fits, the
 * holder is told the same verdict, and the operation goes to the head of the
 * queue, behind other operations.  DELETE makes the context DELETING.
 * A RESTART tells nothing to a holder that creates or restarts, and waits.
 * So does a DELETE of a context that is DELETING: it takes over if the one
 * before it leaves without ngx_kexec_zone_remove().
 * limit: how many of the kind may wait.
 * NGX_OK: held; NGX_AGAIN: comes when the holder left; NGX_BUSY: limit of them
 * wait; NGX_DECLINED, NGX_ERROR as above.
 */
ngx_int_t ngx_kexec_claim_operate(ngx_kexec_zone_t *zone,
    ngx_kexec_claim_t *claim, ngx_kexec_claim_kind_e kind, ngx_uint_t limit);

/*
 * Nobody waits for an operation any more.  NGX_OK: it had not begun, or
 * another one does for it: the claim has ended; NGX_DECLINED: it goes on.
 */
ngx_int_t ngx_kexec_claim_abandon(ngx_kexec_claim_t *claim);

/*
 * By the holder of a RESTART that has ended: so have all that wait, with that
 * verdict, for the kernel's process is none that they could have meant.
 */
void ngx_kexec_claim_answer(ngx_kexec_claim_t *claim,
    ngx_kexec_verdict_e verdict);

/*
 * As a DELETE above, if nobody made use of claim->context for idle ms.
 * NGX_OK: held; NGX_DECLINED: somebody did, or it is gone; NGX_ERROR.
 */
ngx_int_t ngx_kexec_claim_expire(ngx_kexec_zone_t *zone,
    ngx_kexec_claim_t *claim, ngx_msec_t idle);

/*
 * By a holder: throws out all that is queued (operations excepted).
 */
void ngx_kexec_claim_evict(ngx_kexec_claim_t *claim,
    ngx_kexec_verdict_e verdict);

/*
 * Watches claim->context: a notice at every change of its state or holder.
 * NGX_OK; NGX_BUSY: limit others watch it; NGX_DECLINED: no such context;
 * NGX_ERROR.
 */
ngx_int_t ngx_kexec_claim_watch(ngx_kexec_zone_t *zone,
    ngx_kexec_claim_t *claim, ngx_uint_t limit);

/*
 * Asks the execution that holds claim->context's slot to be interrupted
 * (its worker is woken).  *holder is that claim's reference, to be compared
 * later with ngx_kexec_claim_holds().  NGX_OK; NGX_DONE: none of ours runs;
 * NGX_DECLINED: no such context.
 */
ngx_int_t ngx_kexec_claim_interrupt(ngx_kexec_zone_t *zone,
    ngx_kexec_ref_t *context, ngx_kexec_ref_t *holder);

/* does that claim still hold that context's slot? */
ngx_uint_t ngx_kexec_claim_holds(ngx_kexec_zone_t *zone,
    ngx_kexec_ref_t *context, ngx_kexec_ref_t *holder);

/*
 * The claim's present state.  A GRANTED one is acknowledged by this and told
 * as HELD; a grant that is not acknowledged within a second passes on to the
 * next (the claim goes back to the queue's head when its worker lives).
 * The interrupt flag is cleared by looking.
 */
void ngx_kexec_claim_look(ngx_kexec_claim_t *claim,
    ngx_kexec_claim_look_t *look);

/* by a holder: what it does now, for those who wait */
void ngx_kexec_claim_phase(ngx_kexec_claim_t *claim, ngx_kexec_phase_e phase);

/*
 * Ends a claim, whatever its state: leaves the queue, or hands the slot to
 * the next one.  A CREATE that was neither created nor failed fails (503), a
 * DELETE that removed nothing makes the context what it was, but not ready.
 * Harmless when there is no claim.
 */
void ngx_kexec_claim_leave(ngx_kexec_claim_t *claim);


/* for the status page of tests and operators */

typedef struct {
    ngx_uint_t                  contexts;
    ngx_uint_t                  max_contexts;
    ngx_uint_t                  claims;
    ngx_uint_t                  max_claims;
    ngx_uint_t                  held;
    ngx_uint_t                  queued;
    ngx_uint_t                  dead;       /* claims of dead workers */
    ngx_uint_t                  idle;       /* slots free with a queue: a bug */
    ngx_uint_t                  rebuilt;    /* times the checker ran */
} ngx_kexec_zone_stat_t;

void ngx_kexec_zone_stat(ngx_kexec_zone_t *zone, ngx_kexec_zone_stat_t *stat);

/* how many things the checker finds wrong, a bug each */
ngx_uint_t ngx_kexec_zone_wrong(ngx_kexec_zone_t *zone);

/* a random value made with the zone: part of the links' session ids */
uint64_t ngx_kexec_zone_instance(ngx_kexec_zone_t *zone);


#endif /* _NGX_KEXEC_ZONE_H_INCLUDED_ */
