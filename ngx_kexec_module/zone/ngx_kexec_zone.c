
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_kexec_wake.h>
#include <ngx_kexec_zone_int.h>


static ngx_shm_zone_t *ngx_kexec_zone_next(ngx_list_part_t **part,
    ngx_uint_t *i);
static ngx_int_t ngx_kexec_zone_refuses(ngx_conf_t *cf, ngx_str_t *name,
    size_t size, void *tag);
static ngx_int_t ngx_kexec_zone_init(ngx_shm_zone_t *shm_zone, void *data);
static size_t ngx_kexec_zone_layout(ngx_kexec_zone_t *zone, u_char *base);
static uint64_t ngx_kexec_zone_random(void);


ngx_kexec_zone_t *
ngx_kexec_zone_add(ngx_conf_t *cf, ngx_str_t *name, size_t size, void *tag)
{
    size_t             min;
    ngx_shm_zone_t    *shm_zone;
    ngx_kexec_zone_t  *zone;

    min = ngx_max(NGX_KEXEC_ZONE_MIN, 8 * ngx_pagesize);

    if (size < min) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "kexec zone \"%V\" is too small, "
                           "it takes at least %uzk", name, min / 1024);
        return NULL;
    }

    if (ngx_kexec_zone_refuses(cf, name, size, tag) != NGX_OK) {
        return NULL;
    }

    zone = ngx_pcalloc(cf->pool, sizeof(ngx_kexec_zone_t));
    if (zone == NULL) {
        return NULL;
    }

    zone->ncontexts = size / NGX_KEXEC_ZONE_CONTEXT;
    zone->nclaims = zone->ncontexts * NGX_KEXEC_ZONE_CLAIMS;

    zone->nbuckets = 1;

    while (zone->nbuckets < zone->ncontexts) {
        zone->nbuckets *= 2;
    }

    shm_zone = ngx_shared_memory_add(cf, name, size, tag);
    if (shm_zone == NULL) {
        return NULL;
    }

    shm_zone->init = ngx_kexec_zone_init;
    shm_zone->data = zone;

    return zone;
}


static ngx_shm_zone_t *
ngx_kexec_zone_next(ngx_list_part_t **part, ngx_uint_t *i)
{
    ngx_shm_zone_t  *shm_zone;

    while (*part && *i >= (*part)->nelts) {
        *part = (*part)->next;
        *i = 0;
    }

    if (*part == NULL) {
        return NULL;
    }

    shm_zone = (*part)->elts;

    return &shm_zone[(*i)++];
}


/*
 * A zone of another size or name would be a new and empty one, while workers
 * that are still busy go on with theirs: two queues for the same kernel.
 */

static ngx_int_t
ngx_kexec_zone_refuses(ngx_conf_t *cf, ngx_str_t *name, size_t size, void *tag)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_shm_zone_t   *shm_zone;

    i = 0;
    part = &cf->cycle->shared_memory.part;

    while ((shm_zone = ngx_kexec_zone_next(&part, &i)) != NULL) {

        if (shm_zone->tag == tag) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "there can be one kexec zone only, "
                               "and \"%V\" is there already",
                               &shm_zone->shm.name);
            return NGX_ERROR;
        }
    }

    if (cf->cycle->old_cycle == NULL) {
        return NGX_OK;
    }

    i = 0;
    part = &cf->cycle->old_cycle->shared_memory.part;

    while ((shm_zone = ngx_kexec_zone_next(&part, &i)) != NULL) {

        if (shm_zone->tag != tag) {
            continue;
        }

        if (shm_zone->shm.name.len != name->len
            || ngx_strncmp(shm_zone->shm.name.data, name->data, name->len)
               != 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "kexec zone \"%V\" cannot be renamed to "
                               "\"%V\" by a reload, restart nginx for that",
                               &shm_zone->shm.name, name);
            return NGX_ERROR;
        }

        if (shm_zone->shm.size != size) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "the size of kexec zone \"%V\" cannot be "
                               "changed from %uzk to %uzk by a reload, "
                               "restart nginx for that", name,
                               shm_zone->shm.size / 1024, size / 1024);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


void
ngx_kexec_zone_upstream(ngx_kexec_zone_t *zone, uint32_t mark)
{
    zone->upstream = mark ? mark : 1;
}


static ngx_int_t
ngx_kexec_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_kexec_zone_t  *ozone = data;

    size_t             len;
    ngx_kexec_zone_t  *zone;

    zone = shm_zone->data;

    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (ozone) {

        if (zone->upstream == 0) {

            /* a location may come back */

            zone->upstream = ozone->upstream;
        }

        if (ozone->upstream && zone->upstream != ozone->upstream) {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "the contexts in kexec zone \"%V\" are in other "
                          "Jupyter Servers than those that \"kexec_pass\" "
                          "names now, which a reload cannot change, restart "
                          "nginx for that", &shm_zone->shm.name);
            return NGX_ERROR;
        }

        /* the reload may still fail: nothing that is shared is touched */

        (void) ngx_kexec_zone_layout(zone, (u_char *) ozone->sh);

        return NGX_OK;
    }

    if (shm_zone->shm.exists) {
        (void) ngx_kexec_zone_layout(zone, zone->shpool->data);

        return NGX_OK;
    }

    len = sizeof(" in kexec zone \"\"") + shm_zone->shm.name.len;

    zone->shpool->log_ctx = ngx_slab_alloc(zone->shpool, len);
    if (zone->shpool->log_ctx == NULL) {
        return NGX_ERROR;
    }

    ngx_sprintf(zone->shpool->log_ctx, " in kexec zone \"%V\"%Z",
                &shm_zone->shm.name);

    len = ngx_kexec_zone_layout(zone, NULL);

    zone->shpool->data = ngx_slab_alloc(zone->shpool, len);

    if (zone->shpool->data == NULL) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                      "kexec zone \"%V\" is too small for its %uz bytes "
                      "of records", &shm_zone->shm.name, len);
        return NGX_ERROR;
    }

    ngx_memzero(zone->shpool->data, len);

    (void) ngx_kexec_zone_layout(zone, zone->shpool->data);

    zone->sh->instance = ngx_kexec_zone_random();

    /* all records are free, and the checker makes the lists */

    (void) ngx_kexec_zone_check(zone, 1);

    return NGX_OK;
}


static size_t
ngx_kexec_zone_layout(ngx_kexec_zone_t *zone, u_char *base)
{
    size_t  contexts, claims, ids, defaults;

    contexts = ngx_align(sizeof(ngx_kexec_zone_sh_t), 64);
    claims = ngx_align(contexts + zone->ncontexts
                                  * sizeof(ngx_kexec_zone_context_t), 64);
    ids = claims + zone->nclaims * sizeof(ngx_kexec_zone_claim_t);
    defaults = ids + zone->nbuckets * sizeof(uint32_t);

    if (base) {
        zone->sh = (ngx_kexec_zone_sh_t *) base;
        zone->contexts = (ngx_kexec_zone_context_t *) (base + contexts);
        zone->claims = (ngx_kexec_zone_claim_t *) (base + claims);
        zone->ids = (uint32_t *) (base + ids);
        zone->defaults = (uint32_t *) (base + defaults);
    }

    return defaults + zone->nbuckets * sizeof(uint32_t);
}


static uint64_t
ngx_kexec_zone_random(void)
{
    ngx_fd_t   fd;
    uint64_t   value;
    ngx_int_t  n;

    /* random() would do, but the master has not seeded it */

    fd = ngx_open_file((u_char *) "/dev/urandom", NGX_FILE_RDONLY,
                       NGX_FILE_OPEN, 0);

    if (fd != NGX_INVALID_FILE) {
        n = ngx_read_fd(fd, &value, sizeof(uint64_t));

        (void) ngx_close_file(fd);

        if (n == sizeof(uint64_t)) {
            return value;
        }
    }

    return ((uint64_t) ngx_time() << 32) ^ ((uint64_t) ngx_pid << 16)
           ^ ngx_current_msec;
}


/*
 * A writer's mark that is found in here is that of a worker which died while
 * it held the lock, and the master has unlocked it since.
 */

void
ngx_kexec_zone_lock(ngx_kexec_zone_t *zone)
{
    ngx_shmtx_lock(&zone->shpool->mutex);

    ngx_memzero(zone->wakes, sizeof(zone->wakes));

    zone->died = (ngx_pid_t) zone->sh->writer;

    zone->sh->writer = ngx_pid;

    ngx_memory_barrier();

    if (zone->died) {
        zone->repairs = ngx_kexec_zone_check(zone, 1);
        zone->sh->rebuilt++;
    }
}


void
ngx_kexec_zone_unlock(ngx_kexec_zone_t *zone)
{
    uint64_t    wakes[NGX_KEXEC_MAX_WORKERS / 64];
    ngx_pid_t   died;
    ngx_uint_t  i, repairs;

    ngx_memcpy(wakes, zone->wakes, sizeof(wakes));

    died = zone->died;
    repairs = zone->repairs;

    ngx_memory_barrier();

    zone->sh->writer = 0;

    ngx_memory_barrier();

    ngx_shmtx_unlock(&zone->shpool->mutex);

    for (i = 0; i < NGX_KEXEC_MAX_WORKERS; i++) {

        if (wakes[i / 64] == 0) {
            i |= 63;
            continue;
        }

        if (wakes[i / 64] & ((uint64_t) 1 << (i % 64))) {
            ngx_kexec_wake(i);
        }
    }

    if (died) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "process %P died while it was changing the kexec zone, "
                      "%ui things were put right", died, repairs);
    }
}


/*
 * ngx_current_msec may be old after a long turn of the event loop, and
 * a grant must not look overdue when it is made.
 */

ngx_msec_t
ngx_kexec_zone_now(void)
{
#if (NGX_HAVE_CLOCK_MONOTONIC)
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (ngx_msec_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
#else
    return ngx_current_msec;
#endif
}


uint64_t
ngx_kexec_zone_instance(ngx_kexec_zone_t *zone)
{
    return zone->sh->instance;
}
