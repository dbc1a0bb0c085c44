
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_id.h>


void
ngx_kexec_uuid(u_char *p)
{
    u_char      bytes[16];
    ngx_uint_t  i;

    static u_char    buf[512];
    static size_t    left;
    static ngx_fd_t  fd = NGX_INVALID_FILE;

    /* contexts are found by these ids alone, so they should not be guessed */

    if (fd == NGX_INVALID_FILE) {
        fd = open("/dev/urandom", O_RDONLY|O_CLOEXEC);
    }

    if (left == 0 && fd != NGX_INVALID_FILE
        && ngx_read_fd(fd, buf, sizeof(buf)) == (ssize_t) sizeof(buf))
    {
        left = sizeof(buf);
    }

    if (left) {
        left -= sizeof(bytes);
        ngx_memcpy(bytes, &buf[left], sizeof(bytes));

    } else {
        ngx_kexec_random(bytes, sizeof(bytes));
    }

    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;

    for (i = 0; i < 16; i++) {

        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *p++ = '-';
        }

        p = ngx_hex_dump(p, &bytes[i], 1);
    }
}


void
ngx_kexec_random(u_char *p, size_t len)
{
    uint32_t  n;

    /* ngx_random() has 31 bits */

    while (len) {
        n = ((uint32_t) ngx_random() << 16) ^ (uint32_t) ngx_random();

        p = ngx_cpymem(p, &n, sizeof(uint32_t));
        len -= sizeof(uint32_t);
    }
}
