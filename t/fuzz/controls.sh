#!/bin/bash
#
# Negative controls: breaks the module's code, each time in a way that a fuzzer
# must find.
#
#   t/fuzz/controls.sh [FUZZER...]
#
#   SECONDS_EACH    for each of them, 60

set -euo pipefail

cd "$(dirname "$0")"

build=../../build/fuzz/control
each=${SECONDS_EACH:-60}
only=("$@")
found=0
sound=

# breaks <fuzzer> <file> <sed script>

breaks() {
    local fuzzer=$1 file=$2 src=$build/src

    if [ "${#only[@]}" -gt 0 ] && [[ " ${only[*]} " != *" $fuzzer "* ]]; then
        return
    fi

    # what is found must not be there before

    if [ "$fuzzer" != "$sound" ]; then
        make -s SECONDS=5 "../../build/fuzz/$fuzzer.run"
        sound=$fuzzer
    fi

    rm -rf "$build"
    mkdir -p "$build"
    cp -r ../../ngx_kexec_module "$src"
    sed -i -z "$3" "$src/$file"

    ! cmp -s "../../ngx_kexec_module/$file" "$src/$file" ||
        { echo "controls: $file does not have that any more: $3"; exit 1; }

    make -s SRC="$src" BUILD="$build" "$build/$fuzzer"

    if make -s SRC="$src" BUILD="$build" SECONDS="$each" "$build/$fuzzer.run" > "$build/log" 2>&1; then
        echo "controls: $fuzzer does not find in $file: $3"
        exit 1
    fi

    echo "$fuzzer finds in $file: $3"
    found=$((found + 1))
}

breaks fuzz_link link/ngx_kexec_link_frames.c 's/    link->len = 0;\n\n    if (link->size/    if (link->size/'
breaks fuzz_link link/ngx_kexec_link_frames.c 's/ngx_memcpy(p, link->message, link->len)/ngx_memcpy(p, link->message, link->len \& ~1)/'
breaks fuzz_link link/ngx_kexec_link_frames.c 's/if (n < link->rest) {/if (n + 1 < link->rest) {/'
breaks fuzz_link link/ngx_kexec_link_frames.c 's/link->rest > link->max_message - link->len/link->rest > link->max_message/'
breaks fuzz_link link/ngx_kexec_link.c 's/        b->last = b->start + size;/        b->last = b->start + size + (size == 3);/'

breaks fuzz_schema api/ngx_kexec_schema_decode.c 's/n - 0xd800) << 10/n - 0xd800) << 9/'
breaks fuzz_schema api/ngx_kexec_schema_decode.c 's/encoding->unit - 1 - i : i/i : i/'
breaks fuzz_schema codec/ngx_kexec_json.c 's/"false", 5/"false", 4/'

breaks fuzz_client client/ngx_kexec_client.c 's/client->file_sent = b->file_last;/client->file_sent = b->file_last - (b->file_last % 7 == 3);/'
breaks fuzz_client client/ngx_kexec_client.c 's/\(!client->failed\n        && (\)client->file_size\n            || /\1/'
breaks fuzz_client client/ngx_kexec_client.c 's/\n           && client->after == NULL;/;/'
breaks fuzz_client client/ngx_kexec_client.c 's/c->buffered || wev->delayed) {/c->buffered) {/'
breaks fuzz_client client/ngx_kexec_client.c 's/    ngx_kexec_zone_temp_add(-client->file_size);\n\n    client->temp_file/    client->temp_file/'

breaks fuzz_routes api/ngx_kexec_routes.c "s/while (p < last \&\& \*p != '\/')/while (*p != '\/' \&\& p < last)/"
breaks fuzz_routes api/ngx_kexec_routes.c 's/    return p == last;/    return 1;/'
breaks fuzz_routes api/ngx_kexec_routes.c 's/            path.len++;\n            path.data--;/            path.len++;/'
breaks fuzz_routes api/ngx_kexec_routes.c 's/r->uri.len + escape + 1 + r->args.len/r->uri.len + escape + r->args.len - 1/'

breaks fuzz_env execution/ngx_kexec_envs.c 's/ngx_memcpy(kv->value.data, val.data, val.len)/ngx_memcpy(kv->value.data, val.data, ngx_min(val.len, 4000))/'
breaks fuzz_env execution/ngx_kexec_envs.c 's/                          "out: %s", \&key, reason);\n            continue;/                          "out: %s", \&key, reason);/'
breaks fuzz_env execution/ngx_kexec_envs.c 's/kv = ngx_palloc(pool, n \*/kv = ngx_palloc(pool, (n - (n > 60)) */'

breaks fuzz_jupyter jupyter/ngx_kexec_identity.c 's/ngx_min((uint64_t) serial, NGX_KEXEC_SERIAL_FOUND)/(uint64_t) serial/'
breaks fuzz_jupyter jupyter/ngx_kexec_identity.c 's/n > (ngx_int_t) NGX_KEXEC_EPOCH_FOUND/n > NGX_MAX_INT_T_VALUE/'

echo "controls: all $found were found"
