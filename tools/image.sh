#!/bin/bash
#
# Builds the sandbox image with buildah, which needs neither a daemon nor a
# registry: the base image is made by debootstrap when there is none.  Packages
# come from the machine's own mirror and registry; of these that base has the
# mirror among its sources, the image built from it nothing more.
#
#   IMAGE        ngx-kexec            its name
#   DOCKERFILE   docker/Dockerfile    what it is built from
#   NPM_CONFIG_USERCONFIG   ~/.npmrc  npm's settings

set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
release=trixie
base=docker.io/library/debian:$release-slim
image=${IMAGE:-ngx-kexec}
dockerfile=$top/${DOCKERFILE:-docker/Dockerfile}
npmrc=${NPM_CONFIG_USERCONFIG:-$HOME/.npmrc}
ca=/etc/ssl/certs/ca-certificates.crt

die() { echo "image: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || die "chroots are made by root alone"

mirror=$("$top/tools/mirror.sh")
security=$("$top/tools/mirror.sh" security)

mkdir -p "$top/build"
work=$(mktemp -d "$top/build/image.XXXXXX")
trap clean EXIT

# The log is there when its step failed.

clean() {
    [ ! -e "$work/log" ] || tail -n 40 "$work/log" >&2
    rm -rf "$work"
}

# source <mirror> <suites>

source() {
    printf '%s\n' "Types: deb" "URIs: $1" "Suites: $2" "Components: main" \
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg" ""
}

# sources <mirror> <mirror of security updates>

sources() {
    source "$1" "$release $release-updates"
    [ -z "$2" ] || source "$2" "$release-security"
}

# As the official image of that name: no manuals and translations, no services
# that start by themselves.

make_base() {
    local root=$work/base container

    debootstrap --variant=minbase "$release" "$root" "$mirror"

    {
        printf 'path-exclude /usr/share/%s/*\n' doc info locale man
        echo 'path-include /usr/share/doc/*/copyright'
    } > "$root/etc/dpkg/dpkg.cfg.d/docker"

    find "$root"/usr/share/{doc,info,locale,man} \
        ! -type d ! -name copyright -delete
    rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb \
        "$root"/var/lib/apt/lists/* "$root"/var/log/{bootstrap,dpkg}.log

    printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"

    rm "$root/etc/apt/sources.list"
    sources "$mirror" "$security" \
        > "$root/etc/apt/sources.list.d/debian.sources"

    container=$(buildah from scratch)
    buildah add -q "$container" "$root" /
    buildah config --cmd bash --env \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        "$container"
    buildah commit -q --rm "$container" "$base"
    rm -rf "$root"
}

build() {
    local secrets=()

    # npm's settings, and the authorities that this machine trusts.

    [ ! -e "$npmrc" ] || secrets+=(--secret "id=npmrc,src=$npmrc")
    [ ! -e "$ca" ] || secrets+=(--secret "id=ca,src=$ca")

    sources "$mirror" "$security" > "$work/debian.sources"

    # --format: OCI's has no HEALTHCHECK.

    buildah bud --isolation chroot --pull-never --layers --format docker \
        --volume "$work/debian.sources:/etc/apt/sources.list.d/debian.sources:ro" \
        "${secrets[@]}" --tag "$image" --file "$dockerfile" "$top"
}

if ! buildah inspect --type image "$base" > /dev/null 2>&1; then
    echo "image: making $base"
    make_base > "$work/log" 2>&1
fi

echo "image: building $image"
build > "$work/log" 2>&1

rm "$work/log"
buildah images --format '{{.Name}}:{{.Tag}} {{.Size}}' "$image"
