
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include "stub_nginx.h"

#include <poll.h>
#include <sys/mman.h>


#define STUB_CHANNELS  16
#define STUB_TIMERS    8


typedef struct {
    ngx_connection_t   c;
    ngx_event_t        read;
} stub_channel_t;


stub_t                 stub;
void                 (*stub_spin)(void);

static stub_channel_t  channels[STUB_CHANNELS];
static ngx_uint_t      nchannels;
static ngx_event_t    *timers[STUB_TIMERS];
static ngx_log_t       stub_log;
static ngx_time_t      stub_now;


/* nginx's variables */

ngx_pid_t              ngx_pid;
ngx_uint_t             ngx_process = NGX_PROCESS_WORKER;
ngx_uint_t             ngx_test_config;
ngx_uint_t             ngx_exiting;
ngx_uint_t             ngx_pagesize = 4096;
volatile ngx_cycle_t  *ngx_cycle = &stub.cycle;
volatile ngx_msec_t    ngx_current_msec;
volatile ngx_time_t   *ngx_cached_time = &stub_now;
ngx_queue_t            ngx_posted_events;
ngx_rbtree_t           ngx_event_timer_rbtree;


void
stub_start(void)
{
    ngx_pid = getpid();

    ngx_queue_init(&ngx_posted_events);

    stub_log.log_level = NGX_LOG_INFO;

    stub.cycle.log = &stub_log;
    stub.cycle.old_cycle = &stub.old;
    stub.conf.cycle = &stub.cycle;
    stub.conf.log = &stub_log;

    ngx_current_msec = ngx_kexec_zone_now();

    stub_reset();
}


void
stub_reset(void)
{
    memset(stub.zones, 0, sizeof(stub.zones));
    memset(stub.old_zones, 0, sizeof(stub.old_zones));

    stub.cycle.shared_memory.part.elts = stub.zones;
    stub.cycle.shared_memory.part.nelts = 0;
    stub.cycle.shared_memory.part.next = NULL;
    stub.old.shared_memory.part = stub.cycle.shared_memory.part;
    stub.old.shared_memory.part.elts = stub.old_zones;

    stub.error[0] = '\0';
    stub.level = NGX_LOG_DEBUG;
}


void
stub_reload(void)
{
    memcpy(stub.old_zones, stub.zones, sizeof(stub.zones));
    memset(stub.zones, 0, sizeof(stub.zones));

    stub.old.shared_memory.part.nelts = stub.cycle.shared_memory.part.nelts;
    stub.cycle.shared_memory.part.nelts = 0;
}


ngx_kexec_zone_t *
stub_add(const char *name, size_t size)
{
    ngx_str_t  str;

    str.len = strlen(name);
    str.data = (u_char *) name;

    return ngx_kexec_zone_add(&stub.conf, &str, size, &stub);
}


ngx_kexec_zone_t *
stub_init(ngx_uint_t i)
{
    ngx_uint_t        k;
    ngx_shm_zone_t   *zone, *old;
    ngx_slab_pool_t  *pool;

    zone = &stub.zones[i];

    for (k = 0; k < stub.old.shared_memory.part.nelts; k++) {
        old = &stub.old_zones[k];

        if (old->tag == zone->tag
            && old->shm.size == zone->shm.size
            && old->shm.name.len == zone->shm.name.len
            && ngx_strncmp(old->shm.name.data, zone->shm.name.data,
                           old->shm.name.len)
               == 0)
        {
            zone->shm.addr = old->shm.addr;

            return zone->init(zone, old->data) == NGX_OK ? zone->data : NULL;
        }
    }

    zone->shm.addr = mmap(NULL, zone->shm.size, PROT_READ|PROT_WRITE,
                          MAP_ANON|MAP_SHARED, -1, 0);

    pool = (ngx_slab_pool_t *) zone->shm.addr;

    pool->addr = pool;
    pool->mutex.lock = &pool->lock.lock;

    /* a slab's own needs: the pool, its slots, and 24 bytes for each page */

    pool->end = zone->shm.addr + zone->shm.size;
    pool->start = zone->shm.addr + sizeof(ngx_slab_pool_t) + 9 * 56
                  + zone->shm.size / (4096 + 24) * 24;
    pool->start = ngx_align_ptr(pool->start, 4096);

    return zone->init(zone, NULL) == NGX_OK ? zone->data : NULL;
}


void
stub_free(ngx_uint_t i)
{
    munmap(stub.zones[i].shm.addr, stub.zones[i].shm.size);

    stub_pool_free();
}


ngx_kexec_zone_t *
stub_zone(size_t size)
{
    stub_reset();

    if (stub_add("kexec", size) == NULL) {
        return NULL;
    }

    return stub_init(0);
}


void
stub_unlock(ngx_kexec_zone_t *zone, ngx_pid_t pid)
{
    (void) ngx_atomic_cmp_set(zone->shpool->mutex.lock, pid, 0);
}


void
stub_channel(ngx_uint_t n)
{
    channels[n].read.handler(&channels[n].read);
}


ngx_uint_t
stub_channels(void)
{
    return nchannels;
}


void
stub_forget_channels(void)
{
    ngx_uint_t    i;
    ngx_queue_t  *q;

    nchannels = 0;

    for (i = 0; i < STUB_TIMERS; i++) {
        if (timers[i]) {
            timers[i]->timer_set = 0;
            timers[i] = NULL;
        }
    }

    while (!ngx_queue_empty(&ngx_posted_events)) {
        q = ngx_queue_head(&ngx_posted_events);
        ngx_delete_posted_event(ngx_queue_data(q, ngx_event_t, queue));
    }
}


void
stub_timers(ngx_uint_t all)
{
    ngx_uint_t    i;
    ngx_event_t  *ev, *due[STUB_TIMERS];

    memcpy(due, timers, sizeof(timers));

    for (i = 0; i < STUB_TIMERS; i++) {
        ev = due[i];

        if (ev
            && (all
                || (ngx_msec_int_t) (ev->timer.key - ngx_current_msec) <= 0))
        {
            timers[i] = NULL;
            ev->timer_set = 0;
            ev->timedout = 1;
            ev->handler(ev);
        }
    }
}


void
stub_loop(ngx_msec_t ms)
{
    ngx_uint_t      i;
    ngx_event_t    *ev;
    ngx_queue_t    *q;
    struct pollfd   fds[STUB_CHANNELS];

    if (!ngx_queue_empty(&ngx_posted_events)) {
        ms = 0;
    }

    for (i = 0; i < nchannels; i++) {
        fds[i].fd = channels[i].c.fd;
        fds[i].events = POLLIN;
    }

    (void) poll(fds, nchannels, ms);

    ngx_current_msec = ngx_kexec_zone_now();

    for (i = 0; i < nchannels; i++) {
        if (fds[i].revents) {
            stub_channel(i);
        }
    }

    stub_timers(0);

    while (!ngx_queue_empty(&ngx_posted_events)) {
        q = ngx_queue_head(&ngx_posted_events);
        ev = ngx_queue_data(q, ngx_event_t, queue);

        ngx_delete_posted_event(ev);

        ev->handler(ev);
    }
}


/* nginx's functions */

void
ngx_rbtree_insert(ngx_rbtree_t *tree, ngx_rbtree_node_t *node)
{
    ngx_uint_t  i;

    for (i = 0; i < STUB_TIMERS; i++) {
        if (timers[i] == NULL) {
            timers[i] = ngx_rbtree_data(node, ngx_event_t, timer);
            return;
        }
    }

    abort();
}


void
ngx_rbtree_delete(ngx_rbtree_t *tree, ngx_rbtree_node_t *node)
{
    ngx_uint_t  i;

    for (i = 0; i < STUB_TIMERS; i++) {
        if (timers[i] == ngx_rbtree_data(node, ngx_event_t, timer)) {
            timers[i] = NULL;
        }
    }
}


ngx_int_t
ngx_add_channel_event(ngx_cycle_t *cycle, ngx_fd_t fd, ngx_int_t event,
    ngx_event_handler_pt handler)
{
    stub_channel_t  *channel;

    if (nchannels == STUB_CHANNELS) {
        return NGX_ERROR;
    }

    channel = &channels[nchannels++];

    memset(channel, 0, sizeof(stub_channel_t));

    channel->c.fd = fd;
    channel->c.read = &channel->read;
    channel->read.data = &channel->c;
    channel->read.handler = handler;
    channel->read.log = cycle->log;

    return NGX_OK;
}


ngx_shm_zone_t *
ngx_shared_memory_add(ngx_conf_t *cf, ngx_str_t *name, size_t size, void *tag)
{
    ngx_shm_zone_t  *zone;

    zone = &stub.zones[cf->cycle->shared_memory.part.nelts++];

    zone->shm.size = size;
    zone->shm.name = *name;
    zone->shm.log = cf->log;
    zone->tag = tag;

    return zone;
}


void *
ngx_slab_alloc(ngx_slab_pool_t *pool, size_t size)
{
    u_char  *p;

    p = pool->start;
    size = ngx_align(size, 4096);

    if (size > (size_t) (pool->end - p)) {
        return NULL;
    }

    pool->start += size;

    /* as memory that was used before */

    memset(p, 0xa5, size);

    return p;
}


void
ngx_shmtx_lock(ngx_shmtx_t *mtx)
{
    stub_forbid("that very lock");

    while (!ngx_atomic_cmp_set(mtx->lock, 0, ngx_pid)) {
        sched_yield();

        if (stub_spin) {
            stub_spin();
        }
    }

    stub_locked();
}


void
ngx_shmtx_unlock(ngx_shmtx_t *mtx)
{
    stub_unlocked();

    if (!ngx_atomic_cmp_set(mtx->lock, ngx_pid, 0)) {
        abort();
    }
}


void *
ngx_alloc(size_t size, ngx_log_t *log)
{
    return malloc(size);
}


void *
ngx_calloc(size_t size, ngx_log_t *log)
{
    return calloc(1, size);
}


/* which message it was is enough, its arguments are not looked at */

static void
stub_message(ngx_uint_t level, const char *fmt)
{
    stub_forbid("the log");

    if (level != NGX_LOG_DEBUG) {
        stub.level = level;
        snprintf((char *) stub.error, sizeof(stub.error), "%s", fmt);
    }
}


#if (NGX_HAVE_VARIADIC_MACROS)

void
ngx_log_error_core(ngx_uint_t level, ngx_log_t *log, ngx_err_t err,
    const char *fmt, ...)
{
    stub_message(level, fmt);
}

#endif


void ngx_cdecl
ngx_conf_log_error(ngx_uint_t level, ngx_conf_t *cf, ngx_err_t err,
    const char *fmt, ...)
{
    stub_message(level, fmt);
}
