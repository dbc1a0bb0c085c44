
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_zone_int.h>


/*
 * Each worker's record has what its temporary files take up.  It is written
 * by that worker alone, so that no lock is needed, and counts as long as the
 * record is in use: files of a process that is gone have no names, and are gone
 * too.
 */


void
ngx_kexec_zone_temp_add(off_t size)
{
    ngx_kexec_zone_self.temp += size;

    ngx_kexec_worker_tell_temp();
}


off_t
ngx_kexec_zone_temp(ngx_kexec_zone_t *zone)
{
    off_t                     size;
    ngx_uint_t                i;
    ngx_kexec_zone_worker_t  *worker;

    size = 0;

    for (i = 0; i < NGX_KEXEC_MAX_WORKERS; i++) {
        worker = &zone->sh->workers[i];

        if (worker->pid) {
            size += (off_t) worker->temp;
        }
    }

    return size;
}


void
ngx_kexec_worker_tell_temp(void)
{
    ngx_kexec_zone_self_t    *self;
    ngx_kexec_zone_worker_t  *worker;

    self = &ngx_kexec_zone_self;

    if (self->zone == NULL || self->worker == NGX_KEXEC_NONE) {
        return;
    }

    worker = &self->zone->sh->workers[self->worker];

    if (worker->pid == ngx_pid && worker->generation == self->generation) {
        worker->temp = (ngx_atomic_uint_t) self->temp;
    }
}
