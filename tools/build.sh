#!/bin/bash
#
# Builds the module against Debian's nginx-dev, outside of both source trees.
#
#   BUILD_DIR   where to build (build); another one, such as build/asan, can
#               live beside it
#   NGINX_SRC   nginx-dev's folder (/usr/share/nginx/src)
#   CC          the compiler (gcc)
#   CC_OPT      more flags for the compiler, such as -fsanitize=address
#   LD_OPT      more flags for the linker

set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD_DIR:-build}
case $build in /*) ;; *) build=$top/$build ;; esac

cc=${CC:-gcc}
nginx=${NGINX_SRC:-/usr/share/nginx/src}
objs=$build/objs
module=ngx_http_kexec_module.so

die() { echo "build: $*" >&2; exit 1; }

[ -f "$nginx/conf_flags" ] || die "no $nginx/conf_flags:" \
    "nginx-dev is missing, \"make deps-run\" installs it"

compgen -G "$top/ngx_kexec_module/*.c" > /dev/null ||
    die "no sources in ngx_kexec_module/"

# nginx's own flags for gcc are -W (the old name of -Wextra) -Wall
# -Wpointer-arith -Wno-unused-parameter -Werror; they are said again, so that
# they don't depend on what a compiler's name makes of them.  Handlers have
# fixed prototypes and seldom use every parameter: hence the exception.

cc_opt="-O2 -g -Wall -Wextra -Wno-unused-parameter -Werror ${CC_OPT:-}"
ld_opt=${LD_OPT:-}

# What the configured tree depends on.  When this text is unchanged, make
# alone finds what has to be compiled again.

want=$(
    echo "$top $cc $cc_opt $ld_opt"
    dpkg-query -W -f '${Package} ${Version}\n' nginx-dev 2> /dev/null ||
        cat "$nginx/conf_flags"
    $cc --version | head -n 1
    cd "$top"
    cat config
    echo ngx_kexec_module/*.[ch] ngx_kexec_module/*/*.[ch]
)

mkdir -p "$build"

# Two makes in one tree wait for each other.

exec 9> "$build/lock"
flock 9

if [ ! -f "$objs/Makefile" ] ||
   [ "$want" != "$(cat "$build/configured" 2> /dev/null)" ]
then
    echo "build: configuring in $build"

    rm -rf "$objs" "$build/configured"

    # Debian's configure runs from any checkout of it and writes to
    # --builddir alone.

    (
        cd "$nginx"
        . ./conf_flags
        ./configure "${NGX_CONF_FLAGS[@]}" \
            --with-cc="$cc" --with-cc-opt="$cc_opt" --with-ld-opt="$ld_opt" \
            --builddir="$objs" --add-dynamic-module="$top"

    ) > "$build/configure.log" 2>&1 || {
        tail -n 20 "$build/configure.log" >&2
        die "configure failed, all of it is in $build/configure.log"
    }

    printf '%s\n' "$want" > "$build/configured"
fi

make -s --no-print-directory -C "$nginx" -f "$objs/Makefile" \
    -j "$(nproc)" modules

ln -sfn "objs/$module" "$build/$module"
