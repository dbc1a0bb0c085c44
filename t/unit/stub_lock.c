
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>

#include "stub_nginx.h"


/*
 * Lock discipline.  Under the zone's lock there is no allocation, no input or
 * output, no logging, no system call that may wait, and no second lock: all
 * other workers wait meanwhile, and who dies or waits there does so for all.
 * Every test of the zone is linked with these functions in the place of libc's
 * (--wrap), and aborts when it calls one of them with the lock held.
 */


static ngx_uint_t  stub_held;


void
stub_locked(void)
{
    stub_held = 1;
}


void
stub_unlocked(void)
{
    stub_held = 0;
}


void
stub_forbid(const char *name)
{
    if (stub_held) {
        stub_held = 0;
        fprintf(stderr, "%s is used under the zone's lock\n", name);
        abort();
    }
}


#define stub_wrap(type, name, params, args)                                   \
                                                                              \
    type __real_##name params;                                                \
    type __wrap_##name params;                                                \
                                                                              \
    type                                                                      \
    __wrap_##name params                                                      \
    {                                                                         \
        stub_forbid(#name);                                                   \
        return __real_##name args;                                            \
    }


stub_wrap(void *, malloc, (size_t size), (size))
stub_wrap(void *, calloc, (size_t n, size_t size), (n, size))
stub_wrap(void *, realloc, (void *p, size_t size), (p, size))
stub_wrap(void, free, (void *p), (p))
stub_wrap(ssize_t, read, (int fd, void *buf, size_t len), (fd, buf, len))
stub_wrap(ssize_t, write, (int fd, const void *buf, size_t len),
          (fd, buf, len))
stub_wrap(int, close, (int fd), (fd))
stub_wrap(int, kill, (pid_t pid, int signo), (pid, signo))


int __real_open64(const char *name, int flags, mode_t mode);
int __wrap_open64(const char *name, int flags, mode_t mode);

int
__wrap_open64(const char *name, int flags, mode_t mode)
{
    stub_forbid("open");
    return __real_open64(name, flags, mode);
}
