#!/bin/bash
#
# Builds the Debian packages for the release that this machine runs, in a clean
# folder.
#
#   DEB_DIR   where the packages are in the end (build/deb)

set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
out=${DEB_DIR:-build/deb}
case $out in /*) ;; *) out=$top/$out ;; esac

# What the packages are made of.

sources="CHANGELOG.md LICENSE README.md config debian docker docs"
sources+=" ngx_kexec_module"

rm -rf "$out"
mkdir -p "$out/source"

tar -C "$top" -c --exclude=__pycache__ $sources | tar -C "$out/source" -x

(
    cd "$out/source"
    dpkg-buildpackage -us -uc -b

) > "$out/build.log" 2>&1 || {
    tail -n 30 "$out/build.log" >&2
    echo "deb: failed, all of it is in $out/build.log" >&2
    exit 1
}

rm -r "$out/source"
ls "$out"/*.deb
