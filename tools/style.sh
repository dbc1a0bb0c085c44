#!/bin/sh
#
# The part of the house style that a machine can see.

cd "$(dirname "$0")/.." || exit 1

set -- ngx_kexec_module/*.[ch] ngx_kexec_module/*/*.[ch]

[ -f "$1" ] || { echo "style: no sources in ngx_kexec_module/" >&2; exit 1; }

awk '
    function complain(what) { print FILENAME ":" FNR ": " what; bad = 1 }

    function close_file() {
        if (last > 900) {
            print file ": " last " lines, 900 are the limit"
            bad = 1
        }
    }

    FNR == 1 && NR != 1     { close_file() }
                            { file = FILENAME; last = FNR }
    length($0) > 80         { complain("longer than 80 columns") }
    /\t/                    { complain("tab") }
    /[ \t\r]$/              { complain("trailing blank") }

    END                     { close_file(); exit bad }
' "$@" >&2
