/*
 * The way of a kernel's message to an event's bytes: taken apart, the text
 * checked and written with all that is not ASCII escaped.  Payload bytes a
 * second of processor time, for texts of several kinds; one line of JSON.
 */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_json.h>
#include <ngx_kexec_message.h>
#include <ngx_kexec_events.h>

#define TEXT     65536
#define BLOCK    16384
#define SECONDS  0.2


static u_char  block[BLOCK];


static ngx_int_t
more(ngx_kexec_out_t *out)
{
    out->pos = block;
    out->end = block + BLOCK;

    return NGX_OK;
}


static double
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

    return ts.tv_sec + ts.tv_nsec / 1e9;
}


static u_char *
put64(u_char *p, uint64_t n)
{
    return ngx_cpymem(p, &n, 8);
}


/* a stream message of the v1 protocol with a text of that pattern */

static size_t
stream(u_char *start, const char *pattern)
{
    u_char  *p;
    size_t   n, len, offset;

    static const char  header[] = "{\"msg_id\": \"0\", "
        "\"msg_type\": \"stream\", \"username\": \"u\", \"session\": \"s\", "
        "\"date\": \"2026-01-01T00:00:00.000000Z\", \"version\": \"5.3\"}";
    static const char  begin[] = "{\"name\": \"stdout\", \"text\": \"";

    len = ngx_strlen(pattern);
    n = TEXT / len * len;

    p = put64(start, 6);
    p = put64(p, offset = 56);
    p = put64(p, offset += 5);
    p = put64(p, offset += sizeof(header) - 1);
    p = put64(p, offset += 17);
    p = put64(p, offset += 2);
    p = put64(p, offset += sizeof(begin) - 1 + n + 2);
    p = ngx_cpymem(p, "iopub", 5);
    p = ngx_cpymem(p, header, sizeof(header) - 1);
    p = ngx_cpymem(p, "{\"msg_id\": \"par\"}", 17);
    p = ngx_cpymem(p, "{}", 2);
    p = ngx_cpymem(p, begin, sizeof(begin) - 1);

    for ( /* void */ ; n; n -= len) {
        p = ngx_cpymem(p, pattern, len);
    }

    return ngx_cpymem(p, "\"}", 2) - start;
}


static double
gigabytes(const char *pattern)
{
    double                start, end, text;
    ngx_str_t             bytes;
    ngx_uint_t            i;
    ngx_kexec_out_t       out;
    ngx_kexec_message_t   msg;

    static u_char  buf[TEXT + 1024];

    bytes.data = buf;
    bytes.len = stream(buf, pattern);

    ngx_memzero(&out, sizeof(out));
    out.more = more;

    text = 0;
    start = now();

    do {
        for (i = 0; i < 64; i++) {

            if (ngx_kexec_message_parse(&bytes, NGX_KEXEC_FORMAT_V1, &msg)
                != NGX_OK
                || ngx_kexec_event_message(&out, &msg) != NGX_OK)
            {
                return 0;
            }

            text += TEXT;
        }

        end = now();

    } while (end - start < SECONDS);

    return text / (end - start) / 1e9;
}


int
main(void)
{
    printf("{\"lines\": %.3f, \"ascii\": %.3f, \"latin\": %.3f, "
           "\"chinese\": %.3f}\n",
           gigabytes("a line as programs print them, eighty characters of "
                     "text in all, then its end\\n"),
           gigabytes("0123456789abcdef"),
           gigabytes("ein Text mit \xc3\xa4, \xc3\xb6 und \xc3\xbc darin\\n"),
           gigabytes("\xe4\xb8\xad\xe6\x96\x87"));

    return 0;
}
