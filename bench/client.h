/* The client's options, and what its parts share. */

#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include "net.h"


typedef struct {
    int           port;
    int           ws;               /* straight to Jupyter */
    int           v1;
    const char   *token;
    const char   *kind;             /* of a case: alone, waiter, leavers */
    const char   *code;
    const char   *started;          /* the text that shows that it runs */
    const char   *get;              /* GET this instead of running code */
    char        **targets;          /* contexts or kernels */
    int           ntargets;
    int           lanes;
    long          count;            /* of each lane */
    double        seconds;          /* or for so long */
    long          warm;             /* of each lane, not counted */
    long          events;           /* of each answer, when known */
    double        slow;             /* reads slowly for so many seconds */
    int           fresh;            /* a new connection each time */
    int           delack;           /* acknowledges late from the start */
    int           env;              /* with an environment variable */
    int           hold;             /* says "open" and waits for stdin's end */
} options_t;


extern options_t  opt;


/* code as the inside of a JSON string */
void json_escape(buf_t *b, const char *text);

/* requests, to be sent as they are; id is the message's, 36 bytes */
void http_execute(buf_t *b, const char *context, const char *code);
void ws_request(buf_t *b, const char *id, const char *code);
void ws_handshake(buf_t *b, const char *kernel);

void new_id(char *id);

/* prints percentiles of milliseconds: to the end and, if known, the first event */
void report(double *ms, double *firsts, size_t n, double seconds, long errors,
    uint64_t bytes);

void lanes_run(void);
void scene_drop(void);
void scene_make(void);

#endif
