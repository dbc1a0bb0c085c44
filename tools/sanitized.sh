#!/bin/bash
#
# Builds Debian's nginx and the module with ASan and UBSan, in build/sanitize:
# nginx too, since its pools would hide what is written between two of their
# pieces.  With NGX_DEBUG_PALLOC each piece comes from malloc(), and with
# NGX_KEXEC_TEST an execution's state is checked behind each event.  The
# compiler is clang: its two sanitizers are one runtime, with one set of options.
#
# The source is that of this release's main archive; module and nginx are
# built from the same tree.

set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD_DIR:-$top/build/sanitize}
src=$build/nginx
objs=$build/objs

die() { echo "sanitized: $*" >&2; exit 1; }

mkdir -p "$build"

if [ ! -f "$src/unpacked" ]; then
    echo "sanitized: fetching the source of nginx"

    rm -rf "$src"

    ("$top/tools/suite.sh" "$build/apt" \
         "$(. /etc/os-release; echo "$VERSION_CODENAME")" \
         source --download-only nginx &&
     dpkg-source -x "$build"/apt/nginx_*.dsc "$src") \
        > "$build/fetch.log" 2>&1 || die "see $build/fetch.log"

    touch "$src/unpacked"
fi

san="-fsanitize=address,undefined"
# -Bsymbolic: nginx and the module both have ngx_modules, and ASan must not take
# the one for the other.

ld_opt="$san -Wl,-Bsymbolic"
cc_opt="-O1 -g $san -fno-omit-frame-pointer -DNGX_DEBUG_PALLOC=1 -DNGX_KEXEC_TEST=1"

want=$(
    echo "$cc_opt $ld_opt"
    cd "$top"
    cat config
    echo ngx_kexec_module/*.[ch] ngx_kexec_module/*/*.[ch]
)

if [ "$want" != "$(cat "$build/configured" 2> /dev/null)" ]; then
    echo "sanitized: configuring in $build"

    rm -rf "$objs" "$build/configured"

    (
        # Those are the ones that dynamic modules want, with few modules; the
        # others that are linked into Debian's nginx are used by tests.

        . /usr/share/nginx/src/conf_flags
        modules=$(/usr/sbin/nginx -V 2>&1 |
                  grep -oE -- '--with-[a-z0-9_]+_module( |$)')

        cd "$src"
        ./configure "${NGX_CONF_FLAGS[@]}" $modules --with-cc=clang \
            --with-cc-opt="$cc_opt" --with-ld-opt="$ld_opt" --builddir="$objs" \
            --add-dynamic-module="$top"

    ) > "$build/configure.log" 2>&1 || die "see $build/configure.log"

    printf '%s\n' "$want" > "$build/configured"
fi

make -s --no-print-directory -C "$src" -f "$objs/Makefile" \
    -j "$(nproc)" binary modules > "$build/make.log" 2>&1 || {
        grep -E 'error|warning' "$build/make.log" >&2
        die "see $build/make.log"
    }
