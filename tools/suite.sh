#!/bin/bash
#
# suite.sh DIR SUITE COMMAND...: apt-get for another suite of Debian, packages
# and sources, with sources and state of its own in DIR.  The machine's own apt
# never hears of that suite.  What is downloaded comes to DIR.

set -euo pipefail

mirror=$("$(dirname "$0")/mirror.sh")
dir=$1 suite=$2
shift 2

mkdir -p "$dir/lists/partial" "$dir/archives/partial"
cd "$dir"

from="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror"
printf '%s\n' "deb $from $suite main" "deb-src $from $suite main" \
    > sources.list

opt=(-q
     -o Dir::Etc::sourcelist="$PWD/sources.list"
     -o Dir::Etc::sourceparts=-
     -o Dir::Etc::preferencesparts=/dev/null
     -o Dir::State::lists="$PWD/lists"
     -o Dir::State::status=/dev/null
     -o Dir::Cache::archives="$PWD/archives"
     -o Dir::Cache::pkgcache=
     -o Dir::Cache::srcpkgcache=
     -o APT::Sandbox::User="$(id -un)"
     -o Acquire::Languages=none)

apt-get "${opt[@]}" update
apt-get "${opt[@]}" "$@"
