
/*
 * Copyright (C) the ngx_kexec_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_kexec_http_parse.h>


#define NGX_KEXEC_HTTP_MAX_HEAD  (64 * 1024)


typedef struct {
    ngx_str_t     name;             /* in lower case */
    ngx_int_t   (*handler)(ngx_kexec_http_head_t *head, ngx_str_t *value);
} ngx_kexec_http_header_t;


static ngx_int_t ngx_kexec_http_line(ngx_kexec_http_head_t *head);
static ngx_int_t ngx_kexec_http_status_line(ngx_kexec_http_head_t *head);
static ngx_int_t ngx_kexec_http_header_line(ngx_kexec_http_head_t *head);
static ngx_int_t ngx_kexec_http_head_end(ngx_kexec_http_head_t *head);
static ngx_int_t ngx_kexec_http_content_length(ngx_kexec_http_head_t *head,
    ngx_str_t *value);
static ngx_int_t ngx_kexec_http_transfer_encoding(ngx_kexec_http_head_t *head,
    ngx_str_t *value);
static ngx_int_t ngx_kexec_http_connection(ngx_kexec_http_head_t *head,
    ngx_str_t *value);
static ngx_int_t ngx_kexec_http_upgrade(ngx_kexec_http_head_t *head,
    ngx_str_t *value);
static ngx_int_t ngx_kexec_http_accept(ngx_kexec_http_head_t *head,
    ngx_str_t *value);
static ngx_int_t ngx_kexec_http_protocol(ngx_kexec_http_head_t *head,
    ngx_str_t *value);
static ngx_int_t ngx_kexec_http_extensions(ngx_kexec_http_head_t *head,
    ngx_str_t *value);
static ngx_int_t ngx_kexec_http_copy(ngx_kexec_http_head_t *head,
    u_char *p, ngx_uint_t *len, ngx_str_t *value);
static ngx_uint_t ngx_kexec_http_token(ngx_str_t *list, const char *token);
static ngx_uint_t ngx_kexec_http_tchar(u_char ch);
static ngx_int_t ngx_kexec_http_hex(u_char ch);


static ngx_kexec_http_header_t  ngx_kexec_http_headers[] = {

    { ngx_string("content-length"), ngx_kexec_http_content_length },
    { ngx_string("transfer-encoding"), ngx_kexec_http_transfer_encoding },
    { ngx_string("connection"), ngx_kexec_http_connection },
    { ngx_string("upgrade"), ngx_kexec_http_upgrade },
    { ngx_string("sec-websocket-accept"), ngx_kexec_http_accept },
    { ngx_string("sec-websocket-protocol"), ngx_kexec_http_protocol },
    { ngx_string("sec-websocket-extensions"), ngx_kexec_http_extensions },

    { ngx_null_string, NULL }
};


ngx_int_t
ngx_kexec_http_head(ngx_kexec_http_head_t *head, u_char **pos, u_char *last)
{
    u_char     *p, ch;
    ngx_int_t   rc;

    for (p = *pos; p < last; /* void */ ) {

        ch = *p++;

        if (++head->size > NGX_KEXEC_HTTP_MAX_HEAD) {
            head->error = "response head is too large";
            return NGX_ERROR;
        }

        if (ch == LF) {
            rc = ngx_kexec_http_line(head);

            if (rc == NGX_AGAIN) {
                head->line_len = 0;
                head->cr = 0;
                continue;
            }

            *pos = p;

            return rc;
        }

        if (head->cr || (ch < ' ' && ch != '\t' && ch != CR) || ch == 0x7f) {
            head->error = "invalid character in response head";
            return NGX_ERROR;
        }

        if (ch == CR) {
            head->cr = 1;
            continue;
        }

        /* what does not fit belongs to a header that nobody here reads */

        if (head->line_len < sizeof(head->line)) {
            head->line[head->line_len] = ch;
        }

        head->line_len++;
    }

    *pos = p;

    return NGX_AGAIN;
}


static ngx_int_t
ngx_kexec_http_line(ngx_kexec_http_head_t *head)
{
    if (!head->headers) {
        return ngx_kexec_http_status_line(head);
    }

    if (head->line_len == 0) {
        return ngx_kexec_http_head_end(head);
    }

    return ngx_kexec_http_header_line(head);
}


static ngx_int_t
ngx_kexec_http_status_line(ngx_kexec_http_head_t *head)
{
    u_char      *p;
    ngx_uint_t   i;

    /* HTTP/1.x NNN[ reason], RFC 9112, section 4 */

    p = head->line;

    if (head->line_len < sizeof("HTTP/1.1 200") - 1
        || ngx_memcmp(p, "HTTP/1.", sizeof("HTTP/1.") - 1) != 0
        || p[7] < '0' || p[7] > '9' || p[8] != ' '
        || p[9] == '0'
        || (head->line_len > 12 && p[12] != ' '))
    {
        goto invalid;
    }

    head->status = 0;

    for (i = 9; i < 12; i++) {
        if (p[i] < '0' || p[i] > '9') {
            goto invalid;
        }

        head->status = head->status * 10 + (p[i] - '0');
    }

    head->headers = 1;
    head->keepalive = (p[7] != '0');
    head->content_length = -1;

    return NGX_AGAIN;

invalid:

    head->error = "invalid status line";

    return NGX_ERROR;
}


static ngx_int_t
ngx_kexec_http_header_line(ngx_kexec_http_head_t *head)
{
    u_char                   *p, *last;
    ngx_str_t                 name, value;
    ngx_kexec_http_header_t  *header;

    p = head->line;
    last = p + ngx_min(head->line_len, sizeof(head->line));

    /*
     * A space before the colon and a folded line are refused too: they are
     * read differently by different recipients.  RFC 9112, section 5
     */

    name.data = p;

    while (p < last && ngx_kexec_http_tchar(*p)) {
        *p = ngx_tolower(*p);
        p++;
    }

    name.len = p - name.data;

    if (name.len == 0 || p == last || *p != ':') {
        head->error = "invalid header line";
        return NGX_ERROR;
    }

    for (header = ngx_kexec_http_headers; header->name.len; header++) {

        if (name.len == header->name.len
            && ngx_memcmp(name.data, header->name.data, name.len) == 0)
        {
            break;
        }
    }

    if (header->name.len == 0) {
        return NGX_AGAIN;
    }

    if (head->line_len > sizeof(head->line)) {
        head->error = "header line is too long";
        return NGX_ERROR;
    }

    p++;

    while (p < last && (*p == ' ' || *p == '\t')) {
        p++;
    }

    while (p < last && (last[-1] == ' ' || last[-1] == '\t')) {
        last--;
    }

    value.len = last - p;
    value.data = p;

    return header->handler(head, &value);
}


static ngx_int_t
ngx_kexec_http_head_end(ngx_kexec_http_head_t *head)
{
    if (head->chunked && head->content_length != -1) {
        head->error = "both Content-Length and Transfer-Encoding";
        return NGX_ERROR;
    }

    if (head->status < 200 && head->status != 101) {

        /* an interim response: the next one starts from nothing */

        head->headers = 0;
        head->accept_len = 0;
        head->protocol_len = 0;
        head->chunked = 0;
        head->upgrading = 0;
        head->websocket = 0;
        head->extensions = 0;

        return NGX_AGAIN;
    }

    if (head->status == 101 && head->extensions) {
        head->error = "websocket extension that was not asked for";
        return NGX_ERROR;
    }

    head->upgrade = head->upgrading && head->websocket;

    return NGX_OK;
}


static ngx_int_t
ngx_kexec_http_content_length(ngx_kexec_http_head_t *head, ngx_str_t *value)
{
    u_char      ch;
    size_t      i;

    if (head->content_length != -1) {
        head->error = "repeated Content-Length";
        return NGX_ERROR;
    }

    if (value->len == 0) {
        goto invalid;
    }

    head->content_length = 0;

    for (i = 0; i < value->len; i++) {
        ch = value->data[i];

        if (ch < '0' || ch > '9') {
            goto invalid;
        }

        if (head->content_length > (NGX_MAX_OFF_T_VALUE - 9) / 10) {
            goto invalid;
        }

        head->content_length = head->content_length * 10 + (ch - '0');
    }

    return NGX_AGAIN;

invalid:

    head->error = "invalid Content-Length";

    return NGX_ERROR;
}


static ngx_int_t
ngx_kexec_http_transfer_encoding(ngx_kexec_http_head_t *head, ngx_str_t *value)
{
    /* nothing but "chunked" may be sent to a client that sent no TE */

    if (head->chunked || value->len != sizeof("chunked") - 1
        || !ngx_kexec_http_token(value, "chunked"))
    {
        head->error = "invalid Transfer-Encoding";
        return NGX_ERROR;
    }

    head->chunked = 1;

    return NGX_AGAIN;
}


static ngx_int_t
ngx_kexec_http_connection(ngx_kexec_http_head_t *head, ngx_str_t *value)
{
    if (ngx_kexec_http_token(value, "keep-alive")) {
        head->keepalive = 1;
    }

    if (ngx_kexec_http_token(value, "close")) {
        head->keepalive = 0;
    }

    if (ngx_kexec_http_token(value, "upgrade")) {
        head->upgrading = 1;
    }

    return NGX_AGAIN;
}


static ngx_int_t
ngx_kexec_http_upgrade(ngx_kexec_http_head_t *head, ngx_str_t *value)
{
    if (ngx_kexec_http_token(value, "websocket")) {
        head->websocket = 1;
    }

    return NGX_AGAIN;
}


static ngx_int_t
ngx_kexec_http_accept(ngx_kexec_http_head_t *head, ngx_str_t *value)
{
    return ngx_kexec_http_copy(head, head->accept, &head->accept_len, value);
}


static ngx_int_t
ngx_kexec_http_protocol(ngx_kexec_http_head_t *head, ngx_str_t *value)
{
    return ngx_kexec_http_copy(head, head->protocol, &head->protocol_len,
                               value);
}


static ngx_int_t
ngx_kexec_http_extensions(ngx_kexec_http_head_t *head, ngx_str_t *value)
{
    if (value->len) {
        head->extensions = 1;
    }

    return NGX_AGAIN;
}


static ngx_int_t
ngx_kexec_http_copy(ngx_kexec_http_head_t *head, u_char *p, ngx_uint_t *len,
    ngx_str_t *value)
{
    if (*len || value->len > sizeof(head->accept)) {
        head->error = "invalid websocket header";
        return NGX_ERROR;
    }

    ngx_memcpy(p, value->data, value->len);
    *len = value->len;

    return NGX_AGAIN;
}


/* is the token, given in lower case, in a comma-separated list? */

static ngx_uint_t
ngx_kexec_http_token(ngx_str_t *list, const char *token)
{
    u_char      *p, *last;
    const char  *t;

    p = list->data;
    last = p + list->len;

    while (p < last) {

        while (p < last && (*p == ' ' || *p == '\t' || *p == ',')) {
            p++;
        }

        for (t = token; p < last && *t && ngx_tolower(*p) == *t; t++) {
            p++;
        }

        if (*t == '\0') {

            while (p < last && (*p == ' ' || *p == '\t')) {
                p++;
            }

            if (p == last || *p == ',') {
                return 1;
            }
        }

        while (p < last && *p != ',') {
            p++;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_kexec_http_tchar(u_char ch)
{
    u_char  lc;

    lc = ngx_tolower(ch);

    if ((lc >= 'a' && lc <= 'z') || (ch >= '0' && ch <= '9')) {
        return 1;
    }

    switch (ch) {

    case '!': case '#': case '$': case '%': case '&': case '\'': case '*':
    case '+': case '-': case '.': case '^': case '_': case '`': case '|':
    case '~':
        return 1;
    }

    return 0;
}


ngx_int_t
ngx_kexec_http_chunked(ngx_kexec_http_chunked_t *ctx, u_char **pos,
    u_char *last, u_char **data, u_char **data_last)
{
    u_char     *p, ch;
    ngx_int_t   n;

    enum {
        sw_start = 0,
        sw_size,
        sw_space,
        sw_extension,
        sw_size_lf,
        sw_data,
        sw_data_end,
        sw_data_lf,
        sw_trailer,
        sw_trailer_line,
        sw_end_lf,
        sw_done
    } state;

    state = ctx->state;

    for (p = *pos; p < last; /* void */ ) {

        if (state == sw_data) {
            *data = p;

            if (last - p < ctx->size) {
                ctx->size -= last - p;
                p = last;

            } else {
                p += ctx->size;
                ctx->size = 0;
                state = sw_data_end;
            }

            *data_last = p;
            *pos = p;
            ctx->state = state;

            return NGX_OK;
        }

        ch = *p++;

        switch (state) {

        case sw_start:
            n = ngx_kexec_http_hex(ch);
            if (n == NGX_ERROR) {
                return NGX_ERROR;
            }

            ctx->size = n;
            state = sw_size;
            break;

        case sw_size:
            n = ngx_kexec_http_hex(ch);

            if (n != NGX_ERROR) {
                if (ctx->size > (NGX_MAX_OFF_T_VALUE - 15) / 16) {
                    return NGX_ERROR;
                }

                ctx->size = ctx->size * 16 + n;
                break;
            }

            state = sw_space;

            /* fall through */

        case sw_space:

            switch (ch) {
            case ' ':
            case '\t':
                break;
            case ';':
                state = sw_extension;
                break;
            case CR:
                state = sw_size_lf;
                break;
            case LF:
                state = ctx->size ? sw_data : sw_trailer;
                break;
            default:
                return NGX_ERROR;
            }

            break;

        case sw_extension:

            switch (ch) {
            case CR:
                state = sw_size_lf;
                break;
            case LF:
                state = ctx->size ? sw_data : sw_trailer;
                break;
            }

            break;

        case sw_size_lf:
            if (ch != LF) {
                return NGX_ERROR;
            }

            state = ctx->size ? sw_data : sw_trailer;
            break;

        case sw_data_end:

            switch (ch) {
            case CR:
                state = sw_data_lf;
                break;
            case LF:
                state = sw_start;
                break;
            default:
                return NGX_ERROR;
            }

            break;

        case sw_data_lf:
            if (ch != LF) {
                return NGX_ERROR;
            }

            state = sw_start;
            break;

        case sw_trailer:

            switch (ch) {
            case CR:
                state = sw_end_lf;
                break;
            case LF:
                state = sw_done;
                break;
            default:
                state = sw_trailer_line;
            }

            break;

        case sw_trailer_line:
            if (ch == LF) {
                state = sw_trailer;
            }

            break;

        case sw_end_lf:
            if (ch != LF) {
                return NGX_ERROR;
            }

            state = sw_done;
            break;

        default:
            return NGX_ERROR;
        }

        if (state == sw_done) {
            *pos = p;
            ctx->state = state;

            return NGX_DONE;
        }
    }

    *pos = p;
    ctx->state = state;

    return NGX_AGAIN;
}


static ngx_int_t
ngx_kexec_http_hex(u_char ch)
{
    if (ch >= '0' && ch <= '9') {
        return ch - '0';
    }

    ch = ngx_tolower(ch);

    if (ch >= 'a' && ch <= 'f') {
        return ch - 'a' + 10;
    }

    return NGX_ERROR;
}
