# The shell of the bash kernel: for each line that it reads from descriptor 252
# it runs the code in the file $1 and answers with the exit status.

shopt -s expand_aliases

# SIGINT comes to the whole process group.  It ends the command that runs by
# itself, and the rest of the code by these traps: "return" leaves the innermost
# function, and DEBUG makes each command that would follow return as well, until
# nothing of the code is left.  BASH_SOURCE is empty outside of the code.

# The code may have replaced the trap, or said "set -e": what one piece does to
# them is over with it.

while
    set +e
    trap '[ ${#BASH_SOURCE[@]} = 0 ] || {
              trap "[ \${#BASH_SOURCE[@]} = 0 ] || return 130" DEBUG
              return 130
          }' INT
    read -r -u 252
do
    . "$1"
    echo $? >&251
    trap - DEBUG
done
