
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_kexec_wake.h>
#include <ngx_kexec_zone_int.h>


/* a worker that was not seen for longer may be another process by now */

#define NGX_KEXEC_BEAT_TIME  (5 * NGX_KEXEC_SWEEP_TIME)


static ngx_int_t ngx_kexec_worker_join(ngx_kexec_zone_t *zone,
    ngx_cycle_t *cycle);
static ngx_int_t ngx_kexec_worker_take(ngx_kexec_zone_t *zone);
static void ngx_kexec_worker_notices(void *data);
static void ngx_kexec_worker_leaving(ngx_kexec_zone_t *zone);
static void ngx_kexec_worker_sweep(ngx_event_t *ev);
static void ngx_kexec_worker_sweep_workers(ngx_kexec_zone_t *zone);
static void ngx_kexec_worker_sweep_claims(ngx_kexec_zone_t *zone);
static void ngx_kexec_worker_sweep_slots(ngx_kexec_zone_t *zone);
static ngx_uint_t ngx_kexec_worker_give_back(ngx_kexec_zone_t *zone,
    ngx_uint_t i, uint32_t generation);
static ngx_uint_t ngx_kexec_worker_is_dead(ngx_kexec_zone_worker_t *worker);
static uint64_t ngx_kexec_worker_stamp(ngx_pid_t pid);


ngx_kexec_zone_self_t    ngx_kexec_zone_self = {
    NULL, NULL, NGX_KEXEC_NONE, 0, 0, 0, 0
};

static ngx_event_t       ngx_kexec_worker_sweep_event;
static ngx_connection_t  ngx_kexec_worker_dumb;


#if (NGX_DEBUG)

ngx_uint_t  ngx_kexec_zone_crash_point;


void
ngx_kexec_zone_crash(ngx_kexec_zone_t *zone, ngx_uint_t point)
{
    if (point == ngx_kexec_zone_crash_point && !zone->sh->crashed) {
        zone->sh->crashed = 1;
        (void) raise(SIGKILL);
    }
}

#endif


ngx_int_t
ngx_kexec_zone_init_module(ngx_kexec_zone_t *zone, ngx_cycle_t *cycle)
{
    if (ngx_test_config) {
        return NGX_OK;
    }

    if (ngx_kexec_zone_self.zone) {

        /* a reload without a master: the process goes on */

        ngx_kexec_zone_self.zone = zone;
        ngx_kexec_worker_sweep_event.log = cycle->log;
    }

    return ngx_kexec_wake_init(NGX_KEXEC_MAX_WORKERS, cycle->log);
}


ngx_int_t
ngx_kexec_zone_init_process(ngx_kexec_zone_t *zone, ngx_cycle_t *cycle)
{
    ngx_event_t            *ev;
    ngx_kexec_zone_self_t  *self;

    /* the cache manager and loader come by here as well */

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

#if (NGX_DEBUG)
    {
    char  *point;

    point = getenv("KEXEC_ZONE_CRASH");

    if (point) {
        ngx_kexec_zone_crash_point = strtoul(point, NULL, 10);
    }
    }
#endif

    self = &ngx_kexec_zone_self;

    self->zone = zone;
    self->worker = NGX_KEXEC_NONE;

    self->owners = ngx_calloc(zone->nclaims * sizeof(ngx_kexec_claim_t *),
                              cycle->log);
    if (self->owners == NULL) {
        return NGX_ERROR;
    }

    /* what a predecessor left behind waits for nobody else */

    ngx_kexec_worker_sweep_workers(zone);

    if (ngx_kexec_worker_join(zone, cycle) != NGX_OK) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                      "the kexec zone knows %d worker processes, and there "
                      "are more: this one cannot execute anything",
                      NGX_KEXEC_MAX_WORKERS);
    }

    ngx_kexec_worker_dumb.fd = (ngx_socket_t) -1;

    ev = &ngx_kexec_worker_sweep_event;

    ev->handler = ngx_kexec_worker_sweep;
    ev->data = &ngx_kexec_worker_dumb;
    ev->log = cycle->log;
    ev->cancelable = 1;

    ngx_add_timer(ev, NGX_KEXEC_SWEEP_TIME);

    return NGX_OK;
}


void
ngx_kexec_zone_exit_process(ngx_kexec_zone_t *zone)
{
    ngx_kexec_zone_self_t  *self;

    self = &ngx_kexec_zone_self;

    if (self->owners == NULL) {
        return;
    }

    if (ngx_kexec_worker_sweep_event.timer_set) {
        ngx_del_timer(&ngx_kexec_worker_sweep_event);
    }

    if (self->worker != NGX_KEXEC_NONE) {
        (void) ngx_kexec_worker_give_back(zone, self->worker,
                                          self->generation);
    }

    ngx_free(self->owners);

    self->owners = NULL;
    self->zone = NULL;
    self->worker = NGX_KEXEC_NONE;
    self->generation = 0;
}


static ngx_int_t
ngx_kexec_worker_join(ngx_kexec_zone_t *zone, ngx_cycle_t *cycle)
{
    if (ngx_kexec_worker_take(zone) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (ngx_kexec_wake_listen(cycle, ngx_kexec_zone_self.worker,
                              ngx_kexec_worker_notices, NULL)
        != NGX_OK)
    {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                      "this worker process cannot be woken by others, "
                      "what waits in it will look by itself");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_kexec_worker_take(ngx_kexec_zone_t *zone)
{
    uint64_t                  start;
    ngx_int_t                 rc;
    ngx_uint_t                i;
    ngx_kexec_zone_worker_t  *worker;

    rc = NGX_DECLINED;
    start = ngx_kexec_worker_stamp(ngx_pid);

    ngx_kexec_zone_lock(zone);

    for (i = 0; i < NGX_KEXEC_MAX_WORKERS; i++) {
        worker = &zone->sh->workers[i];

        if (worker->pid) {
            continue;
        }

        /* the eventfd that this process listens on cannot be changed */

        if (ngx_kexec_zone_self.worker != NGX_KEXEC_NONE
            && ngx_kexec_zone_self.worker != i)
        {
            continue;
        }

        worker->head = NGX_KEXEC_NONE;
        worker->tail = NGX_KEXEC_NONE;
        worker->start = start;
        worker->beat = ngx_kexec_zone_now();
        worker->temp = (ngx_atomic_uint_t) ngx_kexec_zone_self.temp;

        if (++worker->generation == 0) {
            worker->generation = 1;
        }

        ngx_memory_barrier();

        worker->pid = ngx_pid;

        ngx_kexec_zone_self.worker = i;
        ngx_kexec_zone_self.generation = worker->generation;

        rc = NGX_OK;
        break;
    }

    ngx_kexec_zone_unlock(zone);

    return rc;
}


/*
 * Runs the handlers of claims with notices, one by one.  Any of them may end
 * claims of this worker, their owners included, or make new ones: what is
 * left of a notice is a reference, and a table tells whose it is by now.
 */

static void
ngx_kexec_worker_notices(void *data)
{
    ngx_uint_t                i, n, more;
    ngx_kexec_ref_t           refs[NGX_KEXEC_ZONE_BATCH];
    ngx_kexec_zone_t         *zone;
    ngx_kexec_claim_t        *claim;
    ngx_kexec_zone_self_t    *self;
    ngx_kexec_zone_claim_t   *cl;
    ngx_kexec_zone_worker_t  *worker;

    self = &ngx_kexec_zone_self;
    zone = self->zone;

    if (zone == NULL || self->worker == NGX_KEXEC_NONE) {
        return;
    }

    if (ngx_exiting && self->leaving == 0) {
        ngx_kexec_worker_leaving(zone);
    }

    worker = &zone->sh->workers[self->worker];

    n = 0;
    more = 0;

    ngx_kexec_zone_lock(zone);

    if (worker->pid == ngx_pid && worker->generation == self->generation) {

        while (n < NGX_KEXEC_ZONE_BATCH) {

            cl = ngx_kexec_slot_next_notice(zone, worker);

            if (cl == NULL) {
                break;
            }

            refs[n].index = cl - zone->claims;
            refs[n].generation = cl->generation;
            n++;
        }

        ngx_kexec_zone_crash(zone, 17);

        more = (worker->head != NGX_KEXEC_NONE);
    }

    ngx_kexec_zone_unlock(zone);

    if (more) {
        ngx_kexec_wake(self->worker);
    }

    for (i = 0; i < n; i++) {
        claim = self->owners[refs[i].index];

        if (claim && claim->ref.generation == refs[i].generation
            && claim->handler)
        {
            claim->handler(claim);
        }
    }
}


/* this worker begins to leave: all that it has is told */

static void
ngx_kexec_worker_leaving(ngx_kexec_zone_t *zone)
{
    ngx_uint_t              i;
    ngx_kexec_claim_t      *claim;
    ngx_kexec_zone_self_t  *self;

    self = &ngx_kexec_zone_self;

    self->leaving = ngx_current_msec ? ngx_current_msec : 1;

    for (i = 0; i < zone->nclaims; i++) {
        claim = self->owners[i];

        if (claim && claim->handler) {
            claim->handler(claim);
        }
    }
}


ngx_msec_t
ngx_kexec_zone_leaving(void)
{
    return ngx_kexec_zone_self.leaving;
}


static void
ngx_kexec_worker_sweep(ngx_event_t *ev)
{
    ngx_kexec_zone_t       *zone;
    ngx_kexec_zone_self_t  *self;

    self = &ngx_kexec_zone_self;
    zone = self->zone;

    ngx_kexec_worker_sweep_workers(zone);

    if (self->worker == NGX_KEXEC_NONE) {

        /* others may have left meanwhile */

        (void) ngx_kexec_worker_join(zone, (ngx_cycle_t *) ngx_cycle);
    }

    if (self->rebuilt != zone->sh->rebuilt) {
        self->rebuilt = zone->sh->rebuilt;
        ngx_kexec_worker_sweep_claims(zone);
    }

    ngx_kexec_worker_sweep_slots(zone);

    /* for want of an eventfd nobody may have woken this worker */

    ngx_kexec_worker_notices(NULL);

    ngx_add_timer(ev, NGX_KEXEC_SWEEP_TIME);
}


static void
ngx_kexec_worker_sweep_workers(ngx_kexec_zone_t *zone)
{
    ngx_uint_t                i, n, lost;
    ngx_kexec_zone_self_t    *self;
    ngx_kexec_zone_worker_t  *own;
    ngx_kexec_zone_worker_t   workers[NGX_KEXEC_MAX_WORKERS];

    self = &ngx_kexec_zone_self;
    lost = 0;

    ngx_kexec_zone_lock(zone);

    if (self->worker != NGX_KEXEC_NONE) {
        own = &zone->sh->workers[self->worker];

        if (own->pid == ngx_pid && own->generation == self->generation) {
            own->beat = ngx_kexec_zone_now();
            ngx_kexec_worker_tell_temp();

        } else {
            lost = 1;
        }
    }

    ngx_memcpy(workers, zone->sh->workers, sizeof(workers));

    ngx_kexec_zone_unlock(zone);

    if (lost) {

        /* the record was damaged, and others took this worker for dead */

        (void) ngx_kexec_worker_take(zone);
    }

    for (i = 0; i < NGX_KEXEC_MAX_WORKERS; i++) {

        if ((i == self->worker && !lost)
            || !ngx_kexec_worker_is_dead(&workers[i]))
        {
            continue;
        }

        n = ngx_kexec_worker_give_back(zone, i, workers[i].generation);

        if (n) {
            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "worker process %P is gone, what it had in the "
                          "kexec zone was given back: %ui claims",
                          workers[i].pid, n);
        }
    }
}


/*
 * After a repair: a claim that is said to be this worker's, and that nobody
 * in here knows, would never be ended by anybody else.
 */

static void
ngx_kexec_worker_sweep_claims(ngx_kexec_zone_t *zone)
{
    ngx_uint_t               i, end;
    ngx_kexec_claim_t       *owner;
    ngx_kexec_zone_self_t   *self;
    ngx_kexec_zone_claim_t  *cl;

    self = &ngx_kexec_zone_self;

    for (i = 0; i < zone->nclaims; /* void */ ) {

        end = ngx_min(i + NGX_KEXEC_ZONE_BATCH, zone->nclaims);

        ngx_kexec_zone_lock(zone);

        for ( /* void */ ; i < end; i++) {
            cl = &zone->claims[i];
            owner = self->owners[i];

            if (cl->state != NGX_KEXEC_CLAIM_NONE
                && cl->worker == self->worker
                && cl->worker_generation == self->generation
                && (owner == NULL || owner->ref.generation != cl->generation))
            {
                ngx_kexec_slot_end(zone, cl, 1);
            }
        }

        ngx_kexec_zone_unlock(zone);
    }
}


/*
 * Waiters do this by themselves; this one is for those that cannot, because
 * their worker does not get to it.
 */

static void
ngx_kexec_worker_sweep_slots(ngx_kexec_zone_t *zone)
{
    ngx_uint_t                 i, end, top;
    ngx_kexec_zone_context_t  *ctx;

    /* read without the lock: the next sweep comes soon */

    if (zone->sh->nclaims[NGX_KEXEC_CLAIM_QUEUED] == 0
        && zone->sh->nclaims[NGX_KEXEC_CLAIM_GRANTED] == 0)
    {
        return;
    }

    top = ngx_min(zone->sh->top, zone->ncontexts);

    for (i = 0; i < top; /* void */ ) {

        end = ngx_min(i + NGX_KEXEC_ZONE_BATCH, top);

        ngx_kexec_zone_lock(zone);

        for ( /* void */ ; i < end; i++) {
            ctx = &zone->contexts[i];

            if (ctx->c.state != NGX_KEXEC_CONTEXT_FREE) {
                ngx_kexec_slot_check(zone, ctx);
            }
        }

        ngx_kexec_zone_unlock(zone);
    }
}


/*
 * Ends a worker's claims, a few under each lock, and then its record.  When
 * two processes do so at once, each claim is ended by one of them.
 */

static ngx_uint_t
ngx_kexec_worker_give_back(ngx_kexec_zone_t *zone, ngx_uint_t i,
    uint32_t generation)
{
    ngx_uint_t                k, n, end;
    ngx_kexec_zone_claim_t   *cl;
    ngx_kexec_zone_worker_t  *worker;

    n = 0;
    worker = &zone->sh->workers[i];

    for (k = 0; k < zone->nclaims; /* void */ ) {

        end = ngx_min(k + NGX_KEXEC_ZONE_BATCH, zone->nclaims);

        ngx_kexec_zone_lock(zone);

        if (worker->pid == 0 || worker->generation != generation) {
            ngx_kexec_zone_unlock(zone);
            return n;
        }

        for ( /* void */ ; k < end; k++) {
            cl = &zone->claims[k];

            if (cl->state != NGX_KEXEC_CLAIM_NONE
                && cl->worker == i
                && cl->worker_generation == generation)
            {
                ngx_kexec_slot_end(zone, cl, 1);
                n++;
            }
        }

        ngx_kexec_zone_crash(zone, 18);

        ngx_kexec_zone_unlock(zone);
    }

    ngx_kexec_zone_lock(zone);

    if (worker->generation == generation) {
        worker->pid = 0;
    }

    ngx_kexec_zone_unlock(zone);

    return n;
}


static ngx_uint_t
ngx_kexec_worker_is_dead(ngx_kexec_zone_worker_t *worker)
{
    uint64_t  start;

    if (worker->pid == 0) {
        return 0;
    }

    if (worker->pid < 0 || worker->pid == ngx_pid) {

        /* a record of this process is known to the caller */

        return 1;
    }

    if (kill(worker->pid, 0) == -1 && ngx_errno == NGX_ESRCH) {
        return 1;
    }

    /* the number may have been given to another process */

    if (worker->start == 0
        || (ngx_msec_int_t) (ngx_kexec_zone_now() - worker->beat)
           < NGX_KEXEC_BEAT_TIME)
    {
        return 0;
    }

    start = ngx_kexec_worker_stamp(worker->pid);

    return start != 0 && start != worker->start;
}


/* when a process was started, 0 if that cannot be known */

static uint64_t
ngx_kexec_worker_stamp(ngx_pid_t pid)
{
    u_char      *p, *last;
    ssize_t      n;
    uint64_t     start;
    ngx_fd_t     fd;
    ngx_uint_t   field;
    u_char       name[sizeof("/proc//stat") + NGX_INT64_LEN];
    u_char       buf[1024];

    ngx_sprintf(name, "/proc/%P/stat%Z", pid);

    fd = ngx_open_file(name, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        return 0;
    }

    n = ngx_read_fd(fd, buf, sizeof(buf));

    (void) ngx_close_file(fd);

    if (n <= 0) {
        return 0;
    }

    /* the second field is a name in parentheses, with anything in it */

    last = buf + n;

    for (p = last; p > buf && p[-1] != ')'; p--) { /* void */ }

    for (field = 2; p < last && field < 22; p++) {
        if (*p == ' ') {
            field++;
        }
    }

    start = 0;

    for ( /* void */ ; p < last && *p >= '0' && *p <= '9'; p++) {
        start = start * 10 + (*p - '0');
    }

    return start;
}


void
ngx_kexec_zone_stat(ngx_kexec_zone_t *zone, ngx_kexec_zone_stat_t *stat)
{
    ngx_uint_t                i, end, dead;
    ngx_kexec_zone_sh_t      *sh;
    ngx_kexec_zone_claim_t   *cl;
    ngx_kexec_zone_worker_t   workers[NGX_KEXEC_MAX_WORKERS];

    sh = zone->sh;

    ngx_kexec_zone_lock(zone);

    stat->contexts = sh->ncontexts;
    stat->max_contexts = zone->ncontexts;
    stat->claims = zone->nclaims - sh->nclaims[NGX_KEXEC_CLAIM_NONE];
    stat->max_claims = zone->nclaims;
    stat->held = sh->nclaims[NGX_KEXEC_CLAIM_HELD]
                 + sh->nclaims[NGX_KEXEC_CLAIM_GRANTED];
    stat->queued = sh->nclaims[NGX_KEXEC_CLAIM_QUEUED];
    stat->dead = 0;
    stat->idle = sh->idle;
    stat->rebuilt = sh->rebuilt;

    ngx_memcpy(workers, sh->workers, sizeof(workers));

    ngx_kexec_zone_unlock(zone);

    dead = 0;

    for (i = 0; i < NGX_KEXEC_MAX_WORKERS; i++) {

        if (i != ngx_kexec_zone_self.worker
            && ngx_kexec_worker_is_dead(&workers[i]))
        {
            dead = 1;

        } else {
            workers[i].generation = 0;
        }
    }

    if (!dead) {
        return;
    }

    for (i = 0; i < zone->nclaims; /* void */ ) {

        end = ngx_min(i + NGX_KEXEC_ZONE_BATCH, zone->nclaims);

        ngx_kexec_zone_lock(zone);

        for ( /* void */ ; i < end; i++) {
            cl = &zone->claims[i];

            if (cl->state != NGX_KEXEC_CLAIM_NONE
                && cl->worker_generation == workers[cl->worker].generation)
            {
                stat->dead++;
            }
        }

        ngx_kexec_zone_unlock(zone);
    }
}
