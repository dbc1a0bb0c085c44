# The shell of the bash kernel: for each line that it reads from descriptor 252
# it runs the code in the file at 250 and answers on 251 with that line and the
# exit status.

shopt -s expand_aliases
exec 253>&1 254>&2

# "exit", or what "set -e" and "set -u" make of a failure, ends the shell.  It
# says so, and leaves its state in the file at 249 for the one that follows.

trap '{ __kexec_s=$?
        builtin trap "" INT
        builtin set +euvx; } 2>/dev/null
      { builtin printf "builtin cd -- %q\n" "$PWD"
        builtin shopt -p
        builtin set +o
        builtin declare -f
        builtin declare -F
        builtin declare -p
        builtin alias -p; } >/dev/fd/249 2>/dev/null
      builtin echo "$__kexec_n exit $__kexec_s" >&251' EXIT

if [ -s /dev/fd/249 ]; then
    for __kexec_n in $(compgen -e); do
        unset -v "$__kexec_n"
    done

    . /dev/fd/249 >/dev/null 2>&1
    : >/dev/fd/249
fi

# SIGINT comes to the whole process group.  It ends the command that runs by
# itself, and the rest of the code by these traps: "return" leaves the innermost
# function, and DEBUG makes each command that would follow return as well, until
# nothing of the code is left.  BASH_SOURCE is empty outside of the code.

# The code may have replaced the trap, closed or redirected descriptors, or said
# "set -e" or "set -x": what one piece does to them is over with it.

while
    builtin trap '[ ${#BASH_SOURCE[@]} = 0 ] || {
                      trap "[ \${#BASH_SOURCE[@]} = 0 ] || return 130" DEBUG
                      return 130
                  }' INT
    exec </dev/null >&253 2>&254 && [ -e /dev/fd/250 ] &&
        builtin mapfile -t -n 1 -u 252 __kexec_n && [ "$__kexec_n" ]
do
    builtin . /dev/fd/250
    { __kexec_s=$?; builtin set +evx; } 2>/dev/null
    builtin echo "$__kexec_n $__kexec_s" >&251 || builtin kill -KILL $$
    builtin trap - DEBUG
done

trap - EXIT
