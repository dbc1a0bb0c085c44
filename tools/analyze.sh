#!/bin/bash
#
# gcc -fanalyzer and clang-tidy over the module's sources.  What docs/analysis.md
# explains is passed over; the rest is printed, the last line is the sum.
#
#   BUILD_DIR   build                   where the module was built
#   NGINX_SRC   /usr/share/nginx/src    nginx-dev's folder

set -uo pipefail

cd "$(dirname "$0")/.."

build=${BUILD_DIR:-build}
nginx=${NGINX_SRC:-/usr/share/nginx/src}
log=$build/log

mkdir -p "$log"

sources=(ngx_kexec_module/*.c ngx_kexec_module/*/*.c)

flags=(-Ingx_kexec_module -isystem "$build/objs")

for room in ngx_kexec_module/*/; do
    flags+=("-I$room")
done

for dir in core event event/modules event/quic os/unix http http/modules \
           http/v2
do
    flags+=(-isystem "$nginx/src/$dir")
done

printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -I{} \
    gcc "${flags[@]}" -O2 -Wall -Wextra -Wno-unused-parameter -fanalyzer \
        -c -o /dev/null {} 2> "$log/fanalyzer.log" ||
    { tail -n 20 "$log/fanalyzer.log"; exit 1; }

printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -I{} \
    clang-tidy --quiet {} -- "${flags[@]}" \
    > "$log/clang-tidy.log" 2> "$log/clang-tidy.err" ||
    { tail -n 20 "$log/clang-tidy.err"; exit 1; }

# Those that are explained stand there as "file: words", without a place.

known=$(sed -n '/^```$/,/^```$/ { /^```$/d; p }' docs/analysis.md)

found=$(cat "$log/fanalyzer.log" "$log/clang-tidy.log" |
    grep -E '^[^ ]+: (warning|error): ' | sed "s|^$PWD/||" | sort -u |
    while IFS= read -r line; do
        file=${line%%:*}
        words=$(sed -E 's/^[^ ]+: (warning|error): //; s/( \[[^][]*\])+$//' \
                <<< "$line")

        grep -qxF -- "${file##*/}: $words" <<< "$known" || echo "$line"
    done)

count=$(grep -c . <<< "$found")

[ "$count" = 0 ] || echo "$found"

echo "analyze: $count findings"
[ "$count" = 0 ]
