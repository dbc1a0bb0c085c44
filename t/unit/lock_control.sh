#!/bin/bash
#
# The negative control of the lock's discipline (stub_lock.c): breaks the
# module's code in several ways, each of which a test must find.
#
#   CC=... LDFLAGS=... lock_control.sh <sources> <build directory>

set -euo pipefail

src=$1
build=$2/control
objs=$2
tried=0

mkdir -p "$build"

# breaks <what is found> <file> <sed script>

breaks() {
    local words=$1 file=$2 out

    sed -z "$3" "$src/$file.c" > "$build/$file.c"

    ! cmp -s "$src/$file.c" "$build/$file.c" ||
        { echo "lock control: $file.c does not have that any more: $3"; exit 1; }

    $CC -c -o "$build/$file.o" "$build/$file.c"
    $CC -o "$build/test" "$objs/test_zone_claims.o" "$build/$file.o" \
        $(ls "$objs"/{ngx_kexec_zone*,ngx_kexec_claim,ngx_kexec_wake}.o \
             "$objs"/stub_{core,nginx,workers,lock}.o | grep -v "/$file.o") $LDFLAGS

    if out=$(timeout 60 "$build/test" 2>&1) || ! grep -q "^$words is used" <<< "$out"; then
        echo "lock control: \"$words\" in $file.c was not found"
        exit 1
    fi

    tried=$((tried + 1))
}

breaks malloc ngx_kexec_zone_slot \
    's/    ctx->c.queued++;\n/&    ngx_free(ngx_alloc(1, NULL));\n/'

breaks write ngx_kexec_zone_slot \
    's/    zone->wakes\[[^;]*;/    ngx_kexec_wake(cl->worker);/
     s/#include <ngx_event.h>\n/&#include <ngx_kexec_wake.h>\n/'

breaks "the log" ngx_kexec_claim \
    's/    cl->verdict = verdict;\n/&    ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0, "x");\n/'

breaks "that very lock" ngx_kexec_claim \
    's/    ngx_kexec_zone_unlock(zone);\n\n    return holds;/    return holds;/'

breaks "that very lock" ngx_kexec_claim \
    's/    cl->interrupt = 1;\n/&    (void) ngx_kexec_claim_holds(zone, context, holder);\n/'

echo "lock control: $tried of $tried breaches were found"
