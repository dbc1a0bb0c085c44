#!/bin/bash
#
# Runs a Jupyter Server and an nginx with the module in front of it.
#
#   server.sh run      in the foreground until Ctrl-C
#   server.sh start    in the background; returns when GET /health says 200
#   server.sh stop     stops what "start" or "run" of the same RUN_DIR started
#   server.sh conf     only writes the configuration and prints its name
#
# Environment, with the defaults:
#
#   PORT              49999    where nginx listens, on 127.0.0.1
#   JUPYTER_PORT      8888
#   WORKERS           1        worker_processes
#   MASTER            on       master_process
#   RUN_DIR           run      logs, pid files, token, temporary files
#   NGINX             nginx    the binary; a prefix such as valgrind may precede
#   MODULE            build/ngx_http_kexec_module.so; empty: linked statically
#   LOG_LEVEL         info     of nginx's error log
#   DEFAULT_CONTEXTS  python, and javascript where there is a node
#   DEFAULT_CWD       /home/user when it exists, else HOME
#   EXTRA_HTTP        a file or a text: more lines for http {}
#   EXTRA_LOCATION    the same for the module's location {}
#   JUPYTER_OPTIONS            more options for its command line
#   NO_JUPYTER                 not empty: Jupyter is there already, or comes
#   START_TIMEOUT     60       seconds for "start"
#   STOP_TIMEOUT      5        seconds for nginx to finish what it is doing
#
# Two instances with different ports and RUN_DIR don't meet.

set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)

absolute() { case $1 in /*) echo "$1" ;; *) echo "$top/$1" ;; esac; }

port=${PORT:-49999}
jupyter_port=${JUPYTER_PORT:-8888}
run=$(absolute "${RUN_DIR:-run}")
module=${MODULE-build/ngx_http_kexec_module.so}
nginx=${NGINX:-$(command -v nginx || echo /usr/sbin/nginx)}
unset NGINX     # nginx itself takes it for a list of inherited sockets
home=${HOME:-/}
[ ! -d /home/user ] || home=/home/user

say() { echo "server: $*"; }
die() { echo "server: $*" >&2; exit 1; }


# ---- processes, known by their pid alone

# "pid start-time": a pid alone may be another process by now.

identity() {
    awk '{ pid = $1; sub(/^.*\) /, ""); print pid, $20 }' \
        "/proc/$1/stat" 2> /dev/null || true
}

# A zombie is gone.

alive() {
    local state

    state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status" \
            2> /dev/null) || return 1
    [ -n "$state" ] && [ "${state:0:1}" != Z ]
}

# The pid in a file, when the process is alive and is ours: RUN_DIR is in the
# command line of both nginx's master and Jupyter.

pid_in() {
    local pid

    [ -s "$1" ] && read -r pid < "$1" && alive "$pid" &&
        tr '\0' ' ' < "/proc/$pid/cmdline" | grep -qF -- "$run/" &&
        echo "$pid"
}

# The identities of a process's children, their children and so on.

descendants() {
    local pid

    cat /proc/[0-9]*/status 2> /dev/null | awk -v root="$1" '
        /^Pid:/  { pid = $2 }
        /^PPid:/ { parent[pid] = $2 }

        END {
            for (pid in parent) {
                p = pid
                while (p in parent && parent[p] != root) p = parent[p]
                if (p in parent) print pid
            }
        }
    ' | while read -r pid; do identity "$pid"; done || true
}

# gone <seconds> <pid>

gone() {
    local tries=$(($1 * 20))

    while alive "$2"; do
        [ $((tries--)) -gt 0 ] || return 1
        sleep 0.05
    done
}

# end <name> <pid> <signal> <seconds> [<signal> <seconds>]...: one signal
# after the other until the process is gone, KILL at last; then what is left
# of its descendants.

end() {
    local name=$1 pid=$2 family id left

    shift 2
    family=$(descendants "$pid")

    while [ $# -gt 0 ]; do
        kill -s "$1" "$pid" 2> /dev/null || true
        gone "$2" "$pid" && break
        shift 2
    done

    if alive "$pid"; then
        say "$name did not stop, killed"
        kill -s KILL "$pid" 2> /dev/null || true
        gone 5 "$pid" || true
    fi

    left=

    while read -r id; do
        [ -n "$id" ] && [ "$(identity "${id% *}")" = "$id" ] || continue
        alive "${id% *}" || continue
        kill -s KILL "${id% *}" 2> /dev/null || true
        left="$left ${id% *}"
    done <<< "$family"

    [ -z "$left" ] || say "$name left processes, killed:$left"
}


# ---- configuration

# write_lines <file> <file or text>

write_lines() {
    if [ -n "$2" ] && [ -f "$2" ]; then
        cat "$2" > "$1"
    else
        printf '%s\n' "$2" > "$1"
    fi
}

default_contexts() {
    local name

    if [ -z "${DEFAULT_CONTEXTS+set}" ]; then
        DEFAULT_CONTEXTS=python
        ! command -v node > /dev/null || DEFAULT_CONTEXTS="python javascript"
    fi

    for name in $DEFAULT_CONTEXTS; do
        printf 'kexec_default_context %s; ' "$name"
    done
}

# sed takes &, \ and its own delimiter in a replacement for its own.

quoted() { printf '%s' "$1" | sed 's/[&\\|]/\\&/g'; }

configure() {
    local load= user= word value script=

    [ -z "$module" ] || load="load_module $(absolute "$module");"
    [ "$(id -u)" != 0 ] || user="user root;"

    while read -r word value; do
        script+="s|@$word@|$(quoted "$value")|g;"
    done << END
LOAD_MODULE $load
USER $user
WORKERS ${WORKERS:-1}
MASTER ${MASTER:-on}
DAEMON on
ERROR_LOG $run/error.log
LOG_LEVEL ${LOG_LEVEL:-info}
ACCESS_LOG $run/access.log
LISTEN 127.0.0.1:$port
JUPYTER_PORT $jupyter_port
TOKEN_FILE $run/token
CWD ${DEFAULT_CWD:-$home}
DEFAULT_CONTEXTS $(default_contexts)
RUN $run
END

    mkdir -p "$run/temp" "$run/root"

    write_lines "$run/http.conf" "${EXTRA_HTTP:-}"
    write_lines "$run/location.conf" "${EXTRA_LOCATION:-}"

    sed "$script" "$top/docker/nginx.conf.in" > "$run/nginx.conf"

    if [ ! -s "$run/token" ]; then
        (umask 077; od -An -N 24 -tx1 /dev/urandom | tr -d ' \n' \
            > "$run/token")
    fi
}


# ---- start and stop

jupyter_lives() {
    [ -n "${NO_JUPYTER:-}" ] || pid_in "$run/jupyter.pid" > /dev/null
}

# Of the kernels in docker/kernels those that can run here: two need node, one
# of them what tools/node.sh installs.

choose_kernels() {
    local spec name

    rm -rf "$run/jupyter/kernels"
    mkdir -p "$run/jupyter/kernels"

    for spec in "$top"/docker/kernels/*/kernel.json; do
        name=$(basename "${spec%/*}")

        case $name in
            javascript) command -v node > /dev/null || continue ;;
            typescript) [ -d "$top/build/node/node_modules" ] || continue ;;
        esac

        ln -s "${spec%/*}" "$run/jupyter/kernels/$name"
    done
}

start_jupyter() {
    choose_kernels

    [ -z "${NO_JUPYTER:-}" ] || return 0

    # setsid: Ctrl-C in a terminal is for this script alone, which stops the
    # two in order.  --default-signal: a shell's background jobs ignore
    # SIGINT, kernels would inherit that and could not be interrupted.

    # Jupyter's and IPython's own directories are kept out of the user's
    # home, and the user's settings out of here.

    cd "$run"

    JUPYTER_TOKEN_FILE=$run/token \
    JUPYTER_CONFIG_DIR=$run/jupyter/config \
    JUPYTER_DATA_DIR=$run/jupyter/data \
    JUPYTER_RUNTIME_DIR=$run/jupyter/runtime \
    JUPYTER_PATH=$run/jupyter${JUPYTER_PATH:+:$JUPYTER_PATH} \
    NODE_PATH=$top/build/node/node_modules${NODE_PATH:+:$NODE_PATH} \
    IPYTHONDIR=$run/ipython \
    setsid env --default-signal=INT --default-signal=QUIT \
        /usr/bin/python3 -m jupyter_server \
        --config="$top/docker/jupyter/jupyter_server_config.py" \
        --ServerApp.port="$jupyter_port" \
        --ServerApp.root_dir="$run/root" \
        ${JUPYTER_OPTIONS:-} \
        < /dev/null >> "$run/jupyter.log" 2>&1 9>&- &

    local pid=$!
    echo "$pid" > "$run/jupyter.pid"
    cd "$top"

    # Until it runs Python it still looks like this script.

    until pid_in "$run/jupyter.pid" > /dev/null || ! alive "$pid"; do
        sleep 0.01
    done
}

start_nginx() (
    # A stream takes two descriptors.  $nginx is split into words, see above.

    ulimit -n "$(ulimit -Hn)"

    setsid env --default-signal=INT --default-signal=QUIT \
        $nginx -p "$run/" -c "$run/nginx.conf" \
        < /dev/null >> "$run/nginx.log" 2>&1 9>&-
)

listens() { (: < "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }

tails() {
    local log

    for log in nginx.log error.log jupyter.log; do
        [ -s "$run/$log" ] || continue
        echo "---- the end of $run/$log"
        tail -n 20 "$run/$log"
    done >&2
}

give_up() {
    say "$*" >&2
    tails
    stop
    exit 1
}

start() {
    local deadline

    mkdir -p "$run"
    exec 9> "$run/lock"
    flock -n 9 || die "another start or stop works in $run"

    if pid_in "$run/nginx.pid" > /dev/null ||
       pid_in "$run/jupyter.pid" > /dev/null
    then
        die "already running in $run"
    fi

    # Another server's port would pass for this one's.

    ! listens "$port" || die "port $port is in use"
    [ -n "${NO_JUPYTER:-}" ] || ! listens "$jupyter_port" ||
        die "port $jupyter_port is in use"

    configure
    rm -f "$run"/*.log "$run/nginx.pid"

    deadline=$((SECONDS + ${START_TIMEOUT:-60}))

    # nginx can do without Jupyter, but would say so in its log.

    start_jupyter

    until [ -n "${NO_JUPYTER:-}" ] || listens "$jupyter_port"; do
        jupyter_lives || give_up "Jupyter ended"
        [ $SECONDS -lt $deadline ] || give_up "Jupyter does not listen"
        sleep 0.05
    done

    start_nginx || give_up "nginx did not start"

    until curl -sf -m 5 -o /dev/null "http://127.0.0.1:$port/health"; do
        jupyter_lives || give_up "Jupyter ended"
        pid_in "$run/nginx.pid" > /dev/null || give_up "nginx ended"
        [ $SECONDS -lt $deadline ] || give_up "not healthy:" \
            "$(curl -s -m 5 "http://127.0.0.1:$port/health" || true)"
        sleep 0.05
    done

    exec 9>&-
}

stop() {
    local pid

    if pid=$(pid_in "$run/nginx.pid"); then
        end nginx "$pid" QUIT "${STOP_TIMEOUT:-5}" TERM 5
    fi

    # Jupyter shuts its kernels down by itself.

    if pid=$(pid_in "$run/jupyter.pid"); then
        end Jupyter "$pid" TERM 15
    fi

    rm -f "$run/nginx.pid" "$run/jupyter.pid"
}

run() {
    trap 'stop; exit 1' EXIT
    trap 'trap - EXIT; stop; exit 0' INT TERM HUP

    start

    say "logs in $run; Ctrl-C stops; try:"
    echo "curl -N http://127.0.0.1:$port/execute" \
         "-H 'Content-Type: application/json'" \
         "-d '{\"code\": \"print(6 * 7)\"}'"

    while pid_in "$run/nginx.pid" > /dev/null; do
        jupyter_lives || give_up "Jupyter ended"

        # wait, unlike sleep, lets a signal through at once.

        sleep 1 &
        wait $! || true
    done

    give_up "nginx ended"
}

case ${1:-} in
    run | start | stop)
        "$1"
        ;;
    conf)
        configure
        echo "$run/nginx.conf"
        ;;
    *)
        die "usage: server.sh run | start | stop | conf"
        ;;
esac
