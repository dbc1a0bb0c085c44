
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#ifndef _NGX_KEXEC_ID_H_INCLUDED_
#define _NGX_KEXEC_ID_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


/* Ids: ours, those of Jupyter, and the randomness of ours. */


#define NGX_KEXEC_UUID_LEN  36
#define NGX_KEXEC_ID_LEN    64          /* the longest kernel or session id */


/* a kernel's or a session's, as Jupyter gave it */

typedef struct {
    size_t                len;
    u_char                data[NGX_KEXEC_ID_LEN];
} ngx_kexec_id_t;


/* a random UUID (RFC 9562, version 4), NGX_KEXEC_UUID_LEN bytes */
void ngx_kexec_uuid(u_char *p);

/* random bytes that somebody may guess; len is a multiple of 4 */
void ngx_kexec_random(u_char *p, size_t len);


#endif /* _NGX_KEXEC_ID_H_INCLUDED_ */
