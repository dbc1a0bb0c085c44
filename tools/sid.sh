#!/bin/bash
#
# Compiles the module against the nginx-dev of Debian sid, with this machine's
# compiler and libraries: what comes to Debian next.

set -euo pipefail

cd "$(dirname "$0")/.."

dir=build/sid

rm -rf "$dir"
mkdir -p "$dir"

tools/suite.sh "$dir/apt" sid download nginx-dev > "$dir/fetch.log" 2>&1 ||
    { tail -n 20 "$dir/fetch.log" >&2; exit 1; }

deb=$(echo "$dir"/apt/nginx-dev_*.deb)

dpkg-deb -x "$deb" "$dir/root"

BUILD_DIR=$dir NGINX_SRC=$PWD/$dir/root/usr/share/nginx/src tools/build.sh

echo "sid: compiled against nginx-dev $(dpkg-deb -f "$deb" Version)"
