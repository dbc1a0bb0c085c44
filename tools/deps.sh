#!/bin/bash
#
# Installs the Debian packages that are missing: "deps.sh run" what building
# and running take, "deps.sh test" what the tests take as well, "deps.sh check"
# what sanitizers and analyzers take on top of that, "deps.sh deb" what building
# Debian packages takes, "deps.sh test-deb" what testing those takes as well,
# "deps.sh image" what building and testing the sandbox image takes.  When
# nothing is missing it says nothing and changes nothing.

set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)

run_packages="
    gcc libc6-dev make nginx nginx-dev libjansson-dev
    jupyter-server python3-ipykernel curl"

# python3-websocket is a client's view of Jupyter, python3-h2 and
# nghttp2-client are HTTP/2 clients, iproute2 shapes and cuts networks, openssl
# makes certificates, r-cran-irkernel is the kernel for R, python3-pandas,
# -matplotlib and -pil are what Python's rich results are made of.

test_packages="
    libcmocka-dev clang libclang-rt-dev valgrind
    iproute2 netcat-openbsd nghttp2-client openssl
    python3-websocket python3-h2
    python3-pandas python3-matplotlib python3-pil
    r-base-core r-cran-irkernel"

# debian/control says the same; debootstrap makes the systems in which the
# packages are tested.

deb_packages="build-essential debhelper nginx-dev libjansson-dev"
test_deb_packages="debootstrap lintian"

# unshare and ip make the namespaces in which the container runs; a client of
# it is the SDK for node.

image_packages="buildah debootstrap util-linux iproute2 python3"

# clang-tidy analyzes, llvm has names for addresses, dpkg-dev unpacks sources.

check_packages="clang-tidy llvm dpkg-dev"

die() { echo "deps: $*" >&2; exit 1; }

root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Prints those of its arguments that are not installed.

missing() {
    local installed

    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" \
                2> /dev/null | sed -n 's/^installed //p')

    printf '%s\n' "$@" | grep -vxF -- "$installed" || true
}

# A web server that nobody asked for must not come up on port 80 because a
# package brings it, so invoke-rc.d is told that nothing starts today.

policy=/usr/sbin/policy-rc.d
policy_is=

forbid_services() {
    local answer=0

    if [ -x $policy ]; then
        $policy nginx start > /dev/null 2>&1 || answer=$?
        [ $answer != 101 ] || return 0          # forbidden already
    fi

    policy_is=ours
    trap allow_services EXIT
    trap 'exit 1' INT TERM HUP

    if [ -e $policy ]; then
        root mv $policy $policy.kexec
        policy_is=theirs
    fi

    printf '#!/bin/sh\nexit 101\n' | root tee $policy > /dev/null
    root chmod 755 $policy
}

allow_services() {
    case $policy_is in
        ours)   root rm -f $policy ;;
        theirs) root mv $policy.kexec $policy ;;
    esac

    policy_is=
}

apt_install() {
    root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
        --no-install-recommends "$@" ||
        die "apt-get could not install: $*"
}

# The real Test::Nginx is packaged in Debian sid alone, for all architectures.
# Only this one file comes from there, by an apt with state and sources of its
# own; the machine's apt never hears of sid.

fetch_test_nginx() {
    local dir=$1 mirror opt

    mirror=$("$top/tools/mirror.sh") || return 1

    mkdir -p "$dir/lists/partial" "$dir/archives/partial"

    printf 'deb [signed-by=%s] %s sid main\n' \
        /usr/share/keyrings/debian-archive-keyring.gpg "$mirror" \
        > "$dir/sources.list"

    opt=(-q
         -o Dir::Etc::sourcelist="$dir/sources.list"
         -o Dir::Etc::sourceparts=-
         -o Dir::Etc::preferencesparts=-
         -o Dir::State::lists="$dir/lists"
         -o Dir::Cache::archives="$dir/archives"
         -o Dir::Cache::pkgcache=
         -o Dir::Cache::srcpkgcache=
         -o APT::Sandbox::User="$(id -un)"
         -o Acquire::Languages=none)

    apt-get "${opt[@]}" update &&
        (cd "$dir" && apt-get "${opt[@]}" download libtest-nginx-perl)
}

install_test_nginx() {
    local dir

    # A release of Debian that has it needs no sid.

    if apt-cache show --no-all-versions libtest-nginx-perl \
           > /dev/null 2>&1
    then
        apt_install libtest-nginx-perl
        return
    fi

    dir=$(mktemp -d)
    chmod 755 "$dir"

    if ! fetch_test_nginx "$dir"; then
        rm -rf "$dir"
        die "libtest-nginx-perl could not be fetched from Debian sid"
    fi

    apt_install "$dir"/libtest-nginx-perl_*.deb
    rm -rf "$dir"
}

# Debian's python must have its kernel: a machine with another python in front
# of the PATH must not decide what is tested.

check_kernel() {
    /usr/bin/python3 -c '
from importlib.util import find_spec as find
exit(not (find("ipykernel") and find("jupyter_server")))' ||
        die "Debian's python3 lacks ipykernel or jupyter_server"
}

# Any node will do, wherever it comes from.

want_node() {
    command -v node > /dev/null || packages="$packages nodejs"
    command -v npm > /dev/null || packages="$packages npm"
}

packages=$run_packages
test_nginx=

case ${1:-} in
    run)
        ;;
    test | check)
        packages="$packages $test_packages libtest-nginx-perl"
        [ "$1" = test ] || packages="$packages $check_packages"
        want_node
        ;;
    deb)
        packages=$deb_packages
        ;;
    test-deb)
        packages="$deb_packages $test_deb_packages"
        ;;
    image)
        packages=$image_packages
        want_node
        ;;
    *)
        die "usage: deps.sh run | test | check | deb | test-deb | image"
        ;;
esac

lack=$(missing $packages)

if [ -n "$lack" ]; then
    command -v apt-get > /dev/null || die "no apt-get; missing:" $lack

    echo "deps: installing" $lack

    # A source that cannot be reached is no reason to stop: the packages may
    # come from another one.

    root apt-get update -q || true
    forbid_services

    if [[ $lack == *libtest-nginx-perl* ]]; then
        lack=${lack/libtest-nginx-perl/}
        test_nginx=yes
    fi

    [ -z "${lack//[[:space:]]/}" ] || apt_install $lack
    [ -z "$test_nginx" ] || install_test_nginx

    allow_services
fi

case $1 in run | test | check) check_kernel ;; esac
case $1 in test | check) "$top/tools/node.sh" ;; esac
