
/*
 * Copyright (C) the ngx_kexec_module authors
 */


/*
 * A client that takes its events at any speed, from memory and from a temporary
 * file, with nginx's filters, its limit_rate and the disk as the input wants
 * them.  What was written comes whole, in order, once; what is kept in memory is
 * limited; and the end comes.
 */


#include <ngx_config.h>
#include <ngx_core.h>

static int truncate_file(int fd, off_t size);

#define ftruncate  truncate_file

#include <ngx_kexec_client.c>


#define check(condition)  if (!(condition)) { abort(); }

#define TOTAL    (8 * 1024 * 1024)
#define PIECES   16384


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


ngx_module_t          ngx_http_kexec_module;
ngx_module_t          ngx_http_core_module;
volatile ngx_msec_t   ngx_current_msec;
ngx_queue_t           ngx_posted_events;
ngx_queue_t           ngx_posted_next_events;
ngx_rbtree_t          ngx_event_timer_rbtree;

static ngx_http_core_loc_conf_t    core;
static ngx_http_kexec_loc_conf_t   conf;
static ngx_http_kexec_main_conf_t  main_conf;
static ngx_http_request_t          request;
static ngx_connection_t            connection;
static ngx_event_t                 read_event, write_event;
static ngx_log_t                   log_;
static ngx_http_cleanup_t          cleanup;
static ngx_kexec_report_t          report;

static void       *pieces[PIECES];
static size_t      npieces, blocks;

static u_char     *noise, *written, *taken, *file;
static size_t      nwritten, ntaken, file_size;

static ngx_buf_t  *queue[PIECES];       /* what nginx has and was not taken */
static size_t      nqueue;
static size_t      budget;              /* what the client takes */

static off_t       temp, others;
static ngx_uint_t  full_disk, disk_was_full, limited, ended, finalized;


/* nginx */

void *
ngx_palloc(ngx_pool_t *pool, size_t size)
{
    check(pool == NULL && npieces < PIECES);

    blocks += (size == NGX_KEXEC_BLOCK);

    pieces[npieces] = malloc(size);

    return pieces[npieces++];
}


void *
ngx_pcalloc(ngx_pool_t *pool, size_t size)
{
    return memset(ngx_palloc(pool, size), 0, size);
}


ngx_chain_t *
ngx_alloc_chain_link(ngx_pool_t *pool)
{
    return ngx_palloc(pool, sizeof(ngx_chain_t));
}


ngx_chain_t *
ngx_chain_get_free_buf(ngx_pool_t *pool, ngx_chain_t **free)
{
    ngx_chain_t  *cl;

    cl = *free;

    if (cl) {
        *free = cl->next;

    } else {
        cl = ngx_alloc_chain_link(pool);
        cl->buf = ngx_calloc_buf(pool);
    }

    cl->next = NULL;

    return cl;
}


void
ngx_chain_update_chains(ngx_pool_t *pool, ngx_chain_t **free,
    ngx_chain_t **busy, ngx_chain_t **out, ngx_buf_tag_t tag)
{
    ngx_chain_t  *cl, **last;

    check(pool == NULL);

    for (last = busy; *last; last = &(*last)->next) { /* void */ }

    *last = *out;
    *out = NULL;

    while (*busy && ngx_buf_size((*busy)->buf) == 0) {
        cl = *busy;
        *busy = cl->next;

        if (cl->buf->tag == tag) {
            cl->buf->pos = cl->buf->start;
            cl->buf->last = cl->buf->start;
            cl->next = *free;
            *free = cl;
        }
    }
}


static void
take_bytes(u_char *p, size_t n)
{
    check(ntaken + n <= TOTAL);

    memcpy(taken + ntaken, p, n);
    ntaken += n;
    budget -= n;
    connection.sent += n;
}


static void
push(void)
{
    size_t      n, done;
    ngx_buf_t  *b;

    for (done = 0; done < nqueue; done++) {
        b = queue[done];

        n = ngx_min((size_t) ngx_buf_size(b), budget);

        if (b->in_file) {
            check((size_t) b->file_last <= file_size);
            take_bytes(file + b->file_pos, n);
            b->file_pos += n;

        } else {
            take_bytes(b->pos, n);
            b->pos += n;
        }

        if (ngx_buf_size(b)) {
            break;
        }

        if (b->last_buf) {
            check(!ended);
            ended = 1;
        }
    }

    nqueue -= done;
    memmove(queue, queue + done, nqueue * sizeof(ngx_buf_t *));

    connection.buffered = (nqueue != 0);
}


ngx_int_t
ngx_http_output_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    size_t  before;

    check(r == &request && !ended && !finalized);

    for ( /* void */ ; in; in = in->next) {
        check(ngx_buf_size(in->buf) > 0);
        check(nqueue < PIECES);
        queue[nqueue++] = in->buf;
    }

    before = ntaken;

    push();

    if (limited && ntaken > before) {
        write_event.delayed = 1;
        ngx_add_timer(&write_event, 10);
    }

    return nqueue ? NGX_AGAIN : NGX_OK;
}


ngx_int_t
ngx_http_send_special(ngx_http_request_t *r, ngx_uint_t flags)
{
    check(r == &request && !ended);

    if (flags & NGX_HTTP_LAST) {
        ended = 1;
    }

    return NGX_OK;
}


void
ngx_http_finalize_request(ngx_http_request_t *r, ngx_int_t rc)
{
    check(r == &request && rc == NGX_OK && !finalized);

    finalized = 1;
}


ssize_t
ngx_write_chain_to_temp_file(ngx_temp_file_t *tf, ngx_chain_t *chain)
{
    size_t  n;

    check(chain && chain->next == NULL);

    if (full_disk) {
        disk_was_full = 1;
        return NGX_ERROR;
    }

    n = chain->buf->last - chain->buf->pos;

    check(tf->offset + n <= TOTAL);

    memcpy(file + tf->offset, chain->buf->pos, n);
    file_size = tf->offset + n;

    return n;
}


static int
truncate_file(int fd, off_t size)
{
    check(fd == NGX_INVALID_FILE && size == 0 && nqueue == 0);

    memset(file, 'F', file_size);
    file_size = 0;

    return 0;
}


ngx_http_cleanup_t *
ngx_http_cleanup_add(ngx_http_request_t *r, size_t size)
{
    check(r == &request && size == 0);

    request.cleanup = &cleanup;

    return &cleanup;
}


ngx_int_t
ngx_http_send_header(ngx_http_request_t *r)
{
    check(r == &request);

    return NGX_OK;
}


ngx_int_t
ngx_handle_write_event(ngx_event_t *wev, size_t lowat)
{
    check(wev == &write_event && lowat == 0);

    return NGX_OK;
}


ngx_int_t
ngx_tcp_nodelay(ngx_connection_t *c)
{
    check(c == &connection);

    return NGX_OK;
}


void
ngx_rbtree_insert(ngx_rbtree_t *tree, ngx_rbtree_node_t *node)
{
    check(tree && node);
}


void
ngx_rbtree_delete(ngx_rbtree_t *tree, ngx_rbtree_node_t *node)
{
    check(tree && node);
}


/* the module */

ngx_kexec_report_t *
ngx_kexec_report(ngx_http_request_t *r)
{
    check(r == &request);

    return &report;
}


ngx_int_t
ngx_kexec_add_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    check(r == &request && name && value->len);

    return NGX_OK;
}


ngx_int_t
ngx_kexec_park(ngx_http_request_t *r)
{
    check(r == &request);

    return NGX_OK;
}


void
ngx_kexec_zone_temp_add(off_t size)
{
    temp += size;

    check(temp >= 0);
}


off_t
ngx_kexec_zone_temp(ngx_kexec_zone_t *zone)
{
    check(zone == NULL);

    return temp + others;
}


/* events of the loop */

static void
turn(void)
{
    if (nqueue == 0 || budget == 0) {
        connection.buffered = (nqueue != 0);

    } else {
        push();
    }

    while (write_event.posted && !finalized) {
        ngx_delete_posted_event(&write_event);
        ngx_kexec_client_write_handler(&request);

        if (write_event.delayed) {
            return;
        }
    }
}


static void
writable(void)
{
    if (!finalized) {
        ngx_post_event(&write_event, &ngx_posted_events);
        turn();
    }
}


static void
expire(void)
{
    if (write_event.delayed) {
        check(write_event.timer_set);
        write_event.delayed = 0;
        write_event.timer_set = 0;
        writable();
    }
}


static void
event(ngx_kexec_client_t *client, size_t n, ngx_uint_t begun)
{
    size_t  k;

    if (nwritten + n > TOTAL || n == 0) {
        return;
    }

    if (!begun && ngx_kexec_client_full(client)) {
        check(client->file_size || client->failed
              || client->kept + NGX_KEXEC_BLOCK > conf.buffer_size);
        return;
    }

    memcpy(written + nwritten, noise + nwritten % 251, n);

    /* as the module's writers do, in pieces */

    k = n / 3;

    check(ngx_kexec_out_write(&client->out, written + nwritten, k) == NGX_OK);
    check(ngx_kexec_out_write(&client->out, written + nwritten + k, n - k)
          == NGX_OK);

    nwritten += n;

    ngx_kexec_client_wake(client);
}


static void
check_memory(ngx_kexec_client_t *client)
{
    if (!disk_was_full) {
        check(client->kept <= conf.buffer_size);
        check(blocks <= conf.buffer_size / NGX_KEXEC_BLOCK + 2);
    }

    check(temp == client->file_size);
}


static void
start(const uint8_t *data)
{
    static void  *loc_conf[2] = { &conf, &core };
    static void  *main_confs[2] = { &main_conf, NULL };

    memset(&request, 0, sizeof(request));
    memset(&connection, 0, sizeof(connection));
    memset(&read_event, 0, sizeof(read_event));
    memset(&write_event, 0, sizeof(write_event));
    memset(&cleanup, 0, sizeof(cleanup));

    ngx_queue_init(&ngx_posted_events);
    ngx_queue_init(&ngx_posted_next_events);

    ngx_http_core_module.ctx_index = 1;
    core.send_timeout = 60000;

    conf.keepalive = 5000;
    conf.client_timeout = 30000;
    conf.buffer_size = 32768 + (data[0] & 0x0f) * 10000;
    conf.max_temp_file_size = (data[0] & 0x10) ? 0 : 40000 << (data[1] & 7);
    main_conf.max_temp_files_size = 100000 << (data[1] >> 5);

    request.main = &request;
    request.connection = &connection;
    request.loc_conf = loc_conf;
    request.main_conf = main_confs;
    connection.read = &read_event;
    connection.write = &write_event;
    connection.log = &log_;
    connection.data = &request;
    read_event.log = &log_;
    write_event.log = &log_;
    write_event.data = &connection;
    write_event.ready = 1;

    nwritten = 0;
    ntaken = 0;
    nqueue = 0;
    npieces = 0;
    blocks = 0;
    budget = 0;
    temp = 0;
    others = 0;
    file_size = 0;
    full_disk = 0;
    disk_was_full = 0;
    limited = 0;
    ended = 0;
    finalized = 0;
}


static void
play(ngx_kexec_client_t *client, const uint8_t *data, const uint8_t *last)
{
    size_t  n;

    for ( /* void */ ; last - data >= 3; data += 3) {

        n = data[1] | data[2] << 8;

        switch (data[0] & 0x0f) {

        case 0:
        case 1:
        case 2:
            event(client, n % 300, data[0] & 0x80);
            break;

        case 3:
            event(client, n, data[0] & 0x80);
            break;

        case 4:
            event(client, n << 4, data[0] & 0x80);
            break;

        case 5:
        case 6:
            turn();
            break;

        case 7:
            budget += n % 5000;
            writable();
            break;

        case 8:
            budget += n << 4;
            writable();
            break;

        case 9:
            full_disk = n & 1;
            break;

        case 10:
            others = n << 4;
            break;

        case 11:
            limited = n & 1;
            break;

        case 12:
            write_event.ready = n & 1;
            break;

        default:
            expire();
        }

        check_memory(client);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t               i;
    ngx_kexec_client_t  *client;

    if (size < 3) {
        return 0;
    }

    if (noise == NULL) {
        written = malloc(TOTAL);
        taken = malloc(TOTAL);
        file = malloc(TOTAL);
        noise = malloc(TOTAL + 256);

        for (i = 0; i < TOTAL + 256; i++) {
            noise[i] = (u_char) (i * 2654435761 >> 13);
        }
    }

    start(data);

    client = ngx_kexec_client_create(&request);
    check(client);

    if (data[2] & 1) {
        event(client, data[2], 1);
    }

    check(ngx_kexec_client_start(client) == NGX_OK);

    play(client, data + 3, data + size);

    /* how it all ended is always told; and then the client takes it all */

    event(client, 100, 1);
    ngx_kexec_client_end(client);

    for (i = 0; i < 10000 && !finalized; i++) {
        budget = (data[2] & 2) ? 100000 : TOTAL;
        expire();
        writable();
    }

    check(finalized);

    budget = TOTAL;
    push();

    check(ended);
    check(ntaken == nwritten);
    check(memcmp(taken, written, ntaken) == 0);

    cleanup.handler(cleanup.data);
    check(temp == 0);

    for (i = 0; i < npieces; i++) {
        free(pieces[i]);
    }

    return 0;
}
