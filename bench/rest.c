/* The REST calls of the scripted kernels' server, and its handshake. */

#define _GNU_SOURCE
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel.h"

#define ACCEPT  "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


kernel_t  **kernels;
unsigned    nkernels;


static void
respond(conn_t *c, const char *status, const buf_t *body)
{
    buf_format(&c->out, "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\n%s\r\n", status, body->len,
               c->last ? "Connection: close\r\n" : "");
    buf_put(&c->out, body->data, body->len);
}


static void
kernel_model(buf_t *b, kernel_t *k)
{
    conn_t    *c;
    unsigned   n = 0;

    for (c = k->conns; c; c = c->next) {
        n++;
    }

    buf_format(b, "{\"id\": \"cccccccc-0000-4000-8000-%012x\", "
               "\"name\": \"python3\", \"last_activity\": \"" DATE "\", "
               "\"execution_state\": \"%s\", \"connections\": %u}",
               k->number, k->running ? "busy" : "idle", n);
}


static void
session_model(buf_t *b, kernel_t *k)
{
    buf_format(b, "{\"id\": \"55555555-0000-4000-8000-%012x\", "
               "\"path\": \"%s\", \"name\": \"%s\", \"type\": \"notebook\", "
               "\"kernel\": ", k->number, k->path.data, k->name.data);
    kernel_model(b, k);
    buf_format(b, ", \"notebook\": {\"path\": \"%s\", \"name\": \"%s\"}}",
               k->path.data, k->name.data);
}


/* the inside of a member's string, with its escapes */

static void
json_inside(buf_t *b, const char *p, size_t n, const char *member)
{
    const char  *q, *last = p + n;

    p = after(p, n, member);

    if (p) {
        for (q = p; q < last && *q != '"'; q++) {
            q += *q == '\\';
        }

        buf_put(b, p, q - p);
    }

    buf_put(b, "", 1);
}


static kernel_t *
kernel_create(const char *body, size_t n)
{
    kernel_t  *k = xrealloc(NULL, sizeof(kernel_t));

    memset(k, 0, sizeof(kernel_t));
    k->number = nkernels;
    k->process = 1;
    json_inside(&k->path, body, n, "\"path\":\"");
    json_inside(&k->name, body, n, "\"name\":\"");

    kernels = xrealloc(kernels, ++nkernels * sizeof(kernel_t *));
    kernels[k->number] = k;

    return k;
}


/* by a kernel's or a session's id */

static kernel_t *
kernel_find(const char *id)
{
    unsigned  n;

    if (strlen(id) < 36 || sscanf(id + 24, "%12x", &n) != 1 || n >= nkernels
        || kernels[n]->removed)
    {
        return NULL;
    }

    return kernels[n];
}


static void
websocket(conn_t *c, kernel_t *k, char *head)
{
    char           *key, text[64];
    unsigned char   hash[SHA_DIGEST_LENGTH];

    key = strcasestr(head, "\r\nsec-websocket-key: ");

    if (key == NULL) {
        die("a websocket without a key");
    }

    sprintf(text, "%.24s%s", key + 21, ACCEPT);
    SHA1((unsigned char *) text, strlen(text), hash);
    EVP_EncodeBlock((unsigned char *) text, hash, sizeof(hash));

    c->v1 = strstr(head, V1) != NULL;
    c->kernel = k;
    c->next = k->conns;
    k->conns = c;

    buf_format(&c->out, "HTTP/1.1 101 Switching Protocols\r\n"
               "Upgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Accept: %s\r\n%s\r\n", text,
               c->v1 ? "Sec-WebSocket-Protocol: " V1 "\r\n" : "");
}


static void
request(conn_t *c, char *head, const char *body, size_t body_len)
{
    char           method[16], path[256], *id;
    unsigned       i, n;
    kernel_t      *k;
    const char    *answer = "200 OK";
    static buf_t   out;

    out.len = 0;

    if (sscanf(head, "%15s %255s", method, path) != 2) {
        die("a bad request: %.100s", head);
    }

    c->last = strcasestr(head, "\r\nconnection: close") != NULL;

#define is(m, p)  (strcmp(method, m) == 0 && strcmp(path, p) == 0)
#define begins(p)  (strncmp(path, p, sizeof(p) - 1) == 0)

    if (is("GET", "/api/status")) {

        for (i = n = 0; i < nkernels; i++) {
            n += kernels[i]->running;
        }

        buf_format(&out, "{\"kernels\": %u, \"running\": %u}", nkernels, n);

    } else if (is("GET", "/api/kernelspecs")) {
        buf_text(&out, "{\"default\": \"python3\", \"kernelspecs\": "
                 "{\"python3\": {\"name\": \"python3\", \"spec\": "
                 "{\"display_name\": \"bench\", \"language\": \"python\", "
                 "\"argv\": [], \"env\": {}}, \"resources\": {}}}}");

    } else if (is("POST", "/api/sessions")) {
        answer = "201 Created";
        session_model(&out, kernel_create(body, body_len));

    } else if (is("GET", "/api/sessions")) {

        for (i = 0; i < nkernels; i++) {
            if (!kernels[i]->removed) {
                buf_text(&out, out.len ? ", " : "[");
                session_model(&out, kernels[i]);
            }
        }

        buf_text(&out, out.len ? "]" : "[]");

    } else if (begins("/api/kernels/") || begins("/api/sessions/")) {

        id = strchr(path + 5, '/') + 1;
        k = kernel_find(id);

        if (k == NULL) {
            answer = "404 Not Found";
            buf_text(&out, "{\"message\": \"Kernel does not exist\"}");

        } else if (strstr(path, "/channels")) {
            websocket(c, k, head);
            return;

        } else if (strcmp(method, "DELETE") == 0) {
            answer = "204 No Content";
            kernel_shut_down(k);
            k->removed = 1;

        } else if (strstr(path, "/interrupt")) {
            answer = "204 No Content";

            if (k->running) {
                kernel_finish(k, 1);
                kernel_flush(k);
                kernel_goes_on(k);
            }

        } else {

            if (strstr(path, "/restart")) {
                kernel_shut_down(k);
                k->process++;
                k->count = 0;
            }

            kernel_model(&out, k);
        }

    } else {
        answer = "404 Not Found";
        buf_text(&out, "{\"message\": \"Not Found\"}");
    }

    respond(c, answer, &out);
}


/* 0: the connection is to be closed */

int
conn_requests(conn_t *c)
{
    char    *p, *end, *length;
    size_t   n, body;

    while (c->kernel == NULL) {

        p = c->in.data + c->in.pos;
        n = c->in.len - c->in.pos;
        end = n ? memmem(p, n, "\r\n\r\n", 4) : NULL;

        if (end == NULL) {
            break;
        }

        end[2] = '\0';
        end += 4;

        length = strcasestr(p, "\r\ncontent-length:");
        body = length ? strtoul(length + 17, NULL, 10) : 0;

        if (n < end - p + body) {
            end[-2] = '\r';
            break;
        }

        request(c, p, end, body);
        buf_taken(&c->in, end - p + body);
    }

    conn_flush(c);
    conn_interest(c);

    return !c->last;
}
