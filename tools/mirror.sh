#!/bin/bash
#
# Prints where this machine takes Debian from, whichever way that is written
# down: a mirror has all of the releases.

set -euo pipefail

mirror=$(. /etc/os-release
         apt-get indextargets \
             --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' \
             'Created-By: Packages' |
         sed -n "s/^Debian $VERSION_CODENAME //p" | head -n 1)

[ -n "$mirror" ] || {
    echo "mirror: no Debian mirror among this machine's apt sources" >&2
    exit 1
}

echo "$mirror"
