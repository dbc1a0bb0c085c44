#!/bin/bash
#
# Prints where this machine takes Debian from, whichever way that is written
# down: a mirror has all of the releases.  "mirror.sh security": where it takes
# security updates from, nothing if it has no source of its own for them.

set -euo pipefail

if [ "${1:-}" = security ]; then
    . /etc/os-release
    apt-get indextargets --format '$(CODENAME) $(REPO_URI)' \
        'Created-By: Packages' |
        sed -n "s/^$VERSION_CODENAME-security //p" | head -n 1
    exit
fi

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
