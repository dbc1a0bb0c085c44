/*
 * The bench's client, of the module's HTTP interface or, as the floor, of a
 * Jupyter Server's websockets.
 *
 *   client run  --http PORT --target CONTEXT ...   executions, one after the
 *   client run  --ws PORT --target KERNEL ...      other in each of its lanes
 *   client drop                                    see scene.c
 *   client make
 *
 * The result is one line of JSON.
 */

#define _GNU_SOURCE
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "client.h"


options_t  opt = { .count = 1, .v1 = 1, .token = "", .code = "1",
                   .started = "\"execution_count\"" };


void
json_escape(buf_t *b, const char *text)
{
    for ( /* void */ ; *text; text++) {

        if (*text == '\n') {
            buf_put(b, "\\n", 2);
            continue;
        }

        if (*text == '"' || *text == '\\') {
            buf_put(b, "\\", 1);
        }

        buf_put(b, text, 1);
    }
}


void
http_execute(buf_t *b, const char *context, const char *code)
{
    buf_t  body = { 0 };

    buf_format(&body, "{\"context_id\": \"%s\", \"code\": \"", context);
    json_escape(&body, code);
    buf_text(&body, opt.env ? "\", \"env_vars\": {\"BENCH\": \"1\"}}" : "\"}");

    buf_format(b, "POST /execute HTTP/1.1\r\nHost: 127.0.0.1\r\n"
               "Content-Type: application/json\r\n"
               "Content-Length: %zu\r\n\r\n", body.len);
    buf_put(b, body.data, body.len);

    free(body.data);
}


void
new_id(char *id)
{
    static unsigned  serial;

    snprintf(id, 37, "%08x-0000-4000-8000-%012x", (unsigned) getpid(),
             ++serial);
}


/* an execute_request or, without code, a kernel_info_request */

void
ws_request(buf_t *b, const char *id, const char *code)
{
    char            date[64], head[WS_HEAD], offsets[7 * 8], *p;
    size_t          n;
    time_t          now = time(NULL);
    buf_t           header = { 0 }, content = { 0 }, payload = { 0 };
    unsigned char   mask[4];

    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S.000Z", gmtime(&now));

    buf_format(&header, "{\"msg_id\": \"%s\", \"username\": \"bench\", "
               "\"session\": \"bench-%d\", \"msg_type\": \"%s_request\", "
               "\"version\": \"5.3\", \"date\": \"%s\"}",
               id, getpid(), code ? "execute" : "kernel_info", date);

    if (code) {
        buf_text(&content, "{\"code\": \"");
        json_escape(&content, code);
        buf_text(&content, "\", \"silent\": false, \"store_history\": true, "
                 "\"user_expressions\": {}, \"allow_stdin\": false, "
                 "\"stop_on_error\": false}");
    } else {
        buf_text(&content, "{}");
    }

    if (opt.v1) {
        p = put_le64(offsets, 6);
        p = put_le64(p, n = sizeof(offsets));
        p = put_le64(p, n += 5);
        p = put_le64(p, n += header.len);
        p = put_le64(p, n += 2);
        p = put_le64(p, n += 2);
        p = put_le64(p, n += content.len);

        buf_put(&payload, offsets, sizeof(offsets));
        buf_put(&payload, lit("shell"));
        buf_put(&payload, header.data, header.len);
        buf_put(&payload, lit("{}{}"));
        buf_put(&payload, content.data, content.len);

    } else {
        buf_format(&payload, "{\"channel\": \"shell\", \"header\": %.*s, "
                   "\"parent_header\": {}, \"metadata\": {}, "
                   "\"content\": %.*s, \"buffers\": []}",
                   (int) header.len, header.data,
                   (int) content.len, content.data);
    }

    memcpy(mask, &id[9], 4);
    mask[0] ^= 0x5a;

    n = frame_head(head, opt.v1 ? WS_BINARY : WS_TEXT, payload.len, mask);
    frame_mask(payload.data, payload.len, mask);

    buf_put(b, head, n);
    buf_put(b, payload.data, payload.len);

    free(header.data);
    free(content.data);
    free(payload.data);
}


void
ws_handshake(buf_t *b, const char *kernel)
{
    char  id[37];

    new_id(id);

    buf_format(b, "GET /api/kernels/%s/channels?session_id=%s HTTP/1.1\r\n"
               "Host: 127.0.0.1\r\nAuthorization: token %s\r\n"
               "Connection: Upgrade\r\nUpgrade: websocket\r\n"
               "Sec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n",
               kernel, id, opt.token,
               opt.v1 ? "Sec-WebSocket-Protocol: " V1 "\r\n" : "");
}


static int
compare(const void *one, const void *two)
{
    double  a = *(const double *) one, b = *(const double *) two;

    return (a > b) - (a < b);
}


static double
quantile(double *ms, size_t n, double q)
{
    return ms[(size_t) ceil(q * n) - 1];
}


void
report(double *ms, double *firsts, size_t n, double seconds, long errors,
    uint64_t bytes)
{
    struct rusage  usage;

    if (n == 0) {
        die("nothing was done");
    }

    getrusage(RUSAGE_SELF, &usage);
    qsort(ms, n, sizeof(double), compare);

    printf("{\"count\": %zu, \"errors\": %ld, \"seconds\": %.6f, "
           "\"bytes\": %lu, \"cpu\": %.6f, \"min\": %.6f, \"p25\": %.6f, \"p50\": %.6f, "
           "\"p99\": %.6f, \"max\": %.6f",
           n, errors, seconds, bytes,
           usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
           + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
           ms[0], quantile(ms, n, 0.25), quantile(ms, n, 0.5),
           quantile(ms, n, 0.99), ms[n - 1]);

    if (firsts) {
        qsort(firsts, n, sizeof(double), compare);
        printf(", \"first\": %.6f", firsts[0]);
    }

    printf("}\n");
}


static const struct option  names[] = {
    { "http", 1, NULL, 'h' }, { "ws", 1, NULL, 'w' }, { "json", 0, NULL, 'j' },
    { "token", 1, NULL, 't' }, { "target", 1, NULL, 'k' },
    { "lanes", 1, NULL, 'l' }, { "code", 1, NULL, 'c' },
    { "get", 1, NULL, 'g' }, { "count", 1, NULL, 'n' },
    { "seconds", 1, NULL, 's' }, { "warm", 1, NULL, 'W' },
    { "events", 1, NULL, 'e' }, { "slow", 1, NULL, 'S' },
    { "new", 0, NULL, 'N' }, { "delack", 0, NULL, 'd' },
    { "env", 0, NULL, 'E' }, { "hold", 0, NULL, 'H' },
    { "case", 1, NULL, 'K' },
    { "started", 1, NULL, 'r' }, { NULL, 0, NULL, 0 }
};


int
main(int argc, char **argv)
{
    int            o;
    struct rlimit  limit;

    opt.targets = xrealloc(NULL, argc * sizeof(char *));

    while ((o = getopt_long(argc, argv, "", names, NULL)) != -1) {

        switch (o) {
        case 'w': opt.ws = 1;                   /* fall through */
        case 'h': opt.port = atoi(optarg);      break;
        case 'j': opt.v1 = 0;                   break;
        case 't': opt.token = optarg;           break;
        case 'k': opt.targets[opt.ntargets++] = optarg; break;
        case 'l': opt.lanes = atoi(optarg);     break;
        case 'c': opt.code = optarg;            break;
        case 'g': opt.get = optarg;             break;
        case 'n': opt.count = atol(optarg);     break;
        case 's': opt.seconds = atof(optarg);   break;
        case 'W': opt.warm = atol(optarg);      break;
        case 'e': opt.events = atol(optarg);    break;
        case 'S': opt.slow = atof(optarg);      break;
        case 'N': opt.fresh = 1;                break;
        case 'd': opt.delack = 1;               break;
        case 'E': opt.env = 1;                  break;
        case 'H': opt.hold = 1;                 break;
        case 'K': opt.kind = optarg;            break;
        case 'r': opt.started = optarg;         break;
        default:  return 2;
        }
    }

    if (opt.lanes == 0) {
        opt.lanes = opt.ntargets;
    }

    signal(SIGPIPE, SIG_IGN);

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);

    if (optind < argc && strcmp(argv[optind], "run") == 0) {
        lanes_run();

    } else if (optind < argc && strcmp(argv[optind], "drop") == 0) {
        scene_drop();

    } else if (optind < argc && strcmp(argv[optind], "make") == 0) {
        scene_make();

    } else {
        fprintf(stderr, "usage: client run | drop | make OPTIONS\n");
        return 2;
    }

    return 0;
}
