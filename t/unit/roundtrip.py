#!/usr/bin/python3
"""roundtrip.py LANGUAGE_CLI [SEED [CASES]]: do the snippets do what they say?

Sets nasty names and values in real interpreters with the snippets of
ngx_kexec_language.c, looks at them there and in child processes, changes them
as a user's code would, restores, and looks again.  A language whose interpreter
is not there is skipped.  TAP on standard output.
"""

import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

DEBIAN = "/usr/bin/python3"
HERE = os.path.dirname(os.path.abspath(__file__))

PIECES = [
    b'"', b"'", b"\\", b"\n", b"\r", b"\r\n", b"\t", b"$", b"`", b"${HOME}",
    b"$(touch pwned)", b"`touch pwned`", b"!", b"!ls", b"?", b"%", b"%%bash\n",
    b"\n%time\n", b"#", b"#{x}", b";", b"&", b"|", b"<", b">", b"*", b"~",
    b"^a^b", b"{", b"}", b"'''", b'"""', b"\\n", b"\\u0022", b"\\x22", b"\\",
    b"\\\n", b"//", b"/*", b"*/", b"=", b"=%d", b" ", b"  ", b"a", b"Z9_",
    b"-n", b"-", b"()", b"[]", b"[0]", b"null", b"undefined", b"NA", b"None",
    b"'; touch pwned; '", b"\"); require('fs').writeFileSync('pwned',''); (\"",
    b"\"\n__import__('os').system('touch pwned')\n\"",
    b"\"); system('touch pwned'); (\"", b"\\'", b'\\"', b"\x7f",
    "é".encode(), "\u0085".encode(), "\u2028".encode(), "\u2029".encode(),
    "\ufeff".encode(), "\ufffd".encode(), "\uffff".encode(), "日本".encode(),
    "\U0001f600".encode(), "\U0010ffff".encode(),
] + [bytes([c]) for c in range(1, 32)]

BROKEN = [b"\x80", b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xc0\xaf",
          b"\xf4\x90\x80\x80", b"\xf0\x9f\x98"]

NAMES = [b"__proto__", b"constructor", b"toString", b"hasOwnProperty", b"0",
         b"17", b"n", b"a", b"v", b"s", b"e", b"_", b"if", b"NA", b"TRUE",
         b"with space", b"a-b", b"a.b", b"a[0]", b"names", b"BASH_FUNC_x%%"]

SHELL_NAMES = [b"A", b"k", b"n", b"v", b"IFS", b"a1", b"LC_ALL", b"CDPATH",
               b"HISTFILE", b"FIGNORE", b"x" * 300, b"if", b"do", b"builtin",
               b"declare", b"TZ", b"_x"]


class Generator:
    """Cases of one language: variables with prior, set and changed values."""

    def __init__(self, seed, language):
        self.random = random.Random("%s %s" % (seed, language))
        self.language = language

    def value(self, size=None):
        rng = self.random
        pieces = PIECES + BROKEN if rng.random() < 0.2 else PIECES
        count = rng.choice((0, 1, 2, 5, 20, 60))
        text = b"".join(rng.choice(pieces) for _ in range(count))
        if size:
            text = (text or b"x") * (size // len(text or b"x") + 1)
        return text[:size] if size else text

    def name(self):
        rng = self.random
        if self.language == "bash":
            if rng.random() < 0.4:
                return rng.choice(SHELL_NAMES)
            return b"V" + bytes(rng.choice(b"abcXYZ_019")
                                for _ in range(rng.randrange(12)))
        if rng.random() < 0.3:
            return rng.choice(NAMES)
        name = b"".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 9)))
        return name.replace(b"=", b"") or b"X"

    def case(self, number):
        rng = self.random
        count = 100 if number == 0 else rng.choice((1, 1, 2, 3, 8))
        names = list(dict.fromkeys(self.name() for _ in range(count)))
        case = {"vars": []}
        for name in names:
            size = 100000 if number == 1 else None
            case["vars"].append({
                "name": name,
                "prior": self.value() if rng.random() < 0.5 else None,
                "value": self.value(size),
                # what the user's code does: nothing, delete, or set
                "change": rng.choice(("no", "delete", "set")),
                "changed": self.value(),
            })
        # once more with other values, or a keepless set before
        case["again"] = rng.random() < 0.3
        return case


class Cli:
    """The C side: words in, a snippet out."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, *words):
        line = " ".join("x" + word.hex() if isinstance(word, bytes) else word
                        for word in words)
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        status, length = self.process.stdout.readline().split()
        assert status == b"0", (status, words)
        snippet = self.process.stdout.read(int(length))
        assert all(32 <= byte < 127 or byte == 10 for byte in snippet)
        return snippet.decode()

    def set(self, language, keep, pairs):
        return self.ask("set", language, str(keep),
                        *[word for pair in pairs for word in pair])


def build(cli, language, seed, cases):
    generator = Generator(seed, language)
    built = []
    for number in range(cases):
        case = generator.case(number)
        pairs = [(var["name"], var["value"]) for var in case["vars"]]
        case["set"] = [cli.set(language, 1, pairs)]
        if case["again"]:
            first = [(name, b"first " + value[:50]) for name, value in pairs]
            case["set"].insert(0, cli.set(language, 1, first[::-1]))
        case["restore"] = cli.ask("restore", language)
        built.append(case)
    return built


def jsonable(value):
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {key: jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [jsonable(item) for item in value]
    return value


def run(command, directory, **options):
    process = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, timeout=120, **options)
    if process.returncode:
        sys.stdout.write("# %s: status %d\n" % (command[0], process.returncode))
    for line in process.stderr.decode(errors="replace").splitlines()[:20]:
        sys.stdout.write("# %s\n" % line)
    return process


def check_views(cases, views, expected=lambda value: value):
    """views: case number and stage -> {name: value in hex, or None}."""
    problems = []
    for number, case in enumerate(cases):
        for stage in ("set", "restored"):
            view = views.get("%d %s" % (number, stage))
            for var in case["vars"]:
                name = expected(var["name"])
                want = var["value"] if stage == "set" else var["prior"]
                want = None if want is None else expected(want).hex()
                got = view.get(name.hex()) if view is not None else "no view"
                if got != want:
                    problems.append("case %d %s: %r is %r, not %r"
                                    % (number, stage, var["name"],
                                       str(got)[:80], str(want)[:80]))
    return problems


# Each of these runs the cases in one process and returns what was wrong.

def python(cli, cases, directory):
    extra = {
        "plain": cli.set("python", 0, [(b"PLAIN", b"1")]),
        "restore": cli.ask("restore", "python"),
        "cwd": cli.ask("cwd", "python", directory.encode() + b"/a '\"\\\n%x"),
        "bad_cwd": cli.ask("cwd", "python", b"/nonexistent"),
    }
    job = json.dumps(jsonable({"cases": cases, "extra": extra}))
    process = run([sys.executable, HERE + "/roundtrip_ipython.py"], directory,
                  input=job.encode())
    if process.returncode:
        return ["the interpreter failed"]
    answer = json.loads(process.stdout)
    return check_views(cases, answer["views"]) + answer["problems"]


def replaced(value):
    """What JavaScript makes of bytes: U+FFFD for each that is no UTF-8."""
    text = value.decode("utf-8", "surrogateescape")
    return "".join("\ufffd" if "\udc80" <= c <= "\udcff" else c
                   for c in text).encode()


def javascript(cli, cases, directory):
    # prior and changed values are set by the test, the replacing is node's
    for case in cases:
        for var in case["vars"]:
            for key in ("prior", "changed"):
                if var[key] is not None:
                    var[key] = replaced(var[key])
    extra = {
        "plain": cli.set("js", 0, [(b"PLAIN", b"1")]),
        "restore": cli.ask("restore", "js"),
        "cwd": cli.ask("cwd", "js", directory.encode() + b"/a '\"\\\n%x"),
        "bad_cwd": cli.ask("cwd", "js", b"/nonexistent"),
    }
    with open(directory + "/job.json", "w") as file:
        json.dump(jsonable({"cases": cases, "extra": extra}), file)
    process = run(["node", HERE + "/roundtrip.js", "job.json"], directory)
    if process.returncode:
        return ["the interpreter failed"]
    answer = json.loads(process.stdout)
    return check_views(cases, answer["views"], replaced) + answer["problems"]


def r_bytes(value):
    """An R literal of any bytes, built another way than the snippets'."""
    return "base::rawToChar(base::as.raw(base::c(%s)))" % ", ".join(
        map(str, value))


R_HEAD = r"""
c <- function(...) stop("c"); list <- function(...) stop("list")
quote <- eval <- invisible <- function(...) stop("masked")
Sys.setenv <- options <- getOption <- function(...) stop("masked")
n <- a <- u <- s <- 5
silent <- function(code, what) base::tryCatch({
    x <- base::withVisible(base::eval(base::parse(text = code),
                                      base::globalenv()))
    if (x$visible) base::cat("problem", what, "prints\n")
}, error = function(e) {
    base::cat("problem", what, base::gsub("\n", " ",
              base::conditionMessage(e)), "\n")
})
view <- function(key, names) for (name in names) {
    value <- base::Sys.getenv(name, unset = NA)
    base::cat("view", key, base::paste(base::charToRaw(name), collapse = ""),
              if (base::is.na(value)) "none" else base::paste0("x",
                  base::paste(base::charToRaw(value), collapse = "")), "\n")
}
put <- function(name, value) {
    x <- base::list(value)
    x <- base::structure(x, names = name)
    base::invisible(base::do.call(base::Sys.setenv, x))
}
rm <- function(name) base::invisible(base::Sys.unsetenv(name))
load <- function(file) base::readChar(file, base::file.info(file)$size,
                                      useBytes = TRUE)
names <- before <- NULL
before <- base::ls(base::globalenv(), all.names = TRUE)
"""


def r(cli, cases, directory):
    script = [R_HEAD]
    files = 0

    def silent(code, what):
        nonlocal files
        files += 1
        with open("%s/code%d" % (directory, files), "w") as file:
            file.write(code)
        script.append("silent(load('code%d'), '%s')" % (files, what))

    for number, case in enumerate(cases):
        script.append("names <- base::c(%s)" % ", ".join(
            r_bytes(var["name"]) for var in case["vars"]))
        for var in case["vars"]:
            name = r_bytes(var["name"])
            script.append("rm(%s)" % name if var["prior"] is None else
                          "put(%s, %s)" % (name, r_bytes(var["prior"])))
        for code in case["set"]:
            silent(code, "case %d set" % number)
        script.append("view('%d set', names)" % number)
        if number % 10 == 0:
            script.append("base::system('env -0 > child%d')" % number)
        for var in case["vars"]:
            name = r_bytes(var["name"])
            if var["change"] == "delete":
                script.append("rm(%s)" % name)
            elif var["change"] == "set":
                script.append("put(%s, %s)" % (name, r_bytes(var["changed"])))
        silent(case["restore"], "case %d restore" % number)
        script.append("view('%d restored', names)" % number)

    restore = cli.ask("restore", "r")
    silent(restore, "restore")
    silent(cli.set("r", 0, []), "set of nothing")
    silent(cli.set("r", 1, []), "set of nothing")
    silent(cli.set("r", 0, [(b"PLAIN", b"1")]), "plain")
    silent(restore, "restore")
    script.append("if (base::Sys.getenv('PLAIN') != '1')"
                  " base::cat('problem plain was restored\\n')")
    script.append("if (!base::is.null(base::getOption('__kexec_env__')))"
                  " base::cat('problem the option stayed\\n')")
    os.mkdir(directory + "/a '\"\\\n%x")
    silent(cli.ask("cwd", "r", directory.encode() + b"/a '\"\\\n%x"), "cwd")
    script.append("if (base::basename(base::getwd()) != \"a '\\\"\\\\\\n%x\")"
                  " base::cat('problem cwd failed\\n')")
    script.append("base::invisible(base::setwd('..'))")
    silent(cli.ask("cwd", "r", b"/nonexistent"), "badcwd")
    script.append("if (!base::identical(before,"
                  " base::ls(base::globalenv(), all.names = TRUE)))"
                  " base::cat('problem the namespace changed\\n')")
    with open(directory + "/run.R", "w") as file:
        file.write("\n".join(script))

    problems = []
    for locale in ("C.UTF-8", "C"):
        process = run(["Rscript", "--vanilla", "run.R"], directory,
                      env=dict(os.environ, LC_ALL=locale))
        if process.returncode:
            problems.append("the interpreter failed")
        views, bad_cwd = {}, False
        for line in process.stdout.decode(errors="replace").splitlines():
            words = line.split(" ")
            if words[0] == "view":
                view = views.setdefault(" ".join(words[1:3]), {})
                view[words[3]] = words[4][1:] if words[4] != "none" else None
            elif line.startswith("problem badcwd"):
                bad_cwd = True
            else:
                problems.append("%s: %s" % (locale, line))
        if not bad_cwd:
            problems.append("a bad cwd is no error")
        problems += check_views(cases, views)
        for number in range(0, len(cases), 10):
            problems += check_child(cases[number], number,
                                    "%s/child%d" % (directory, number))
    return problems


def check_child(case, number, path):
    with open(path, "rb") as file:
        child = dict(line.split(b"=", 1) for line in file.read().split(b"\0")
                     if b"=" in line)
    # the shell between drops names that it could not have
    return ["case %d: child has not %r" % (number, var["name"])
            for var in case["vars"] if re.match(rb"[A-Za-z_]\w*\Z", var["name"])
            and child.get(var["name"]) != var["value"]]


def quoted(value):
    return b"'" + value.replace(b"'", b"'\\''") + b"'"


BASH_HEAD = rb"""
# declarations of the variables NAME..., and all names, into file descriptor 3
look() {
    builtin printf '%s\0' "== $1" >&3
    builtin shift
    while (($#)); do
        builtin printf '%s=' "$1" >&3
        builtin declare -p "$1" >&3 2>/dev/null || builtin :
        builtin printf '\0' >&3
        builtin shift
    done
}
names() {
    builtin compgen -v; builtin compgen -A function
}
exec 2>errors 3>views 4>children
export() { touch pwned; }
declare() { touch pwned; }
unset() { touch pwned; }
printf() { touch pwned; }
shopt -s expand_aliases
alias export='touch pwned; ' unset='touch pwned; ' local='touch pwned; '
"""


def bash(cli, cases, directory):
    rng = random.Random(1)
    script = [BASH_HEAD]
    options = [b"", b"set -u", b"set -e", b"set -f", b"set -eu; IFS=01",
               b"IFS='_ =x'", b"set -C", b"set -o posix", b"set -E",
               b"shopt -s nullglob", b"set -T; trap : DEBUG"]

    for number, case in enumerate(cases):
        script.append(b"( builtin unset -v IFS")
        names = b" ".join(var["name"] for var in case["vars"])
        for var in case["vars"]:
            name, value = var["name"], var["prior"]
            script.append(b"builtin unset -v " + name)
            if value is not None:
                form = rng.choice((b"export %s=%s", b"declare %s=%s",
                                   b"declare -a %s=%s", b"declare -ax %s=%s"))
                if form == b"declare -a %s=%s":
                    script.append(b"builtin declare -a %s; %s=(%s x)"
                                  % (name, name, quoted(value)))
                else:
                    script.append(b"builtin " + form % (name, quoted(value)))
        option = rng.choice(options)
        script.append(option)
        script.append(b"look '%d prior' %s" % (number, names))
        # names() needs a word splitting of its own
        script.append(b'before=; before=$(names)')
        for code in case["set"]:
            script.append(code.encode())
            script.append(b'case $? in 0) ;; *) echo "%d set failed";; esac'
                          % number)
        script.append(b"look '%d set' %s" % (number, names))
        if number != 1:
            script.append(b"{ builtin printf '== %d\\0'; /usr/bin/env -0; } >&4"
                          % number)
        for var in case["vars"]:
            if var["change"] == "delete":
                script.append(b"builtin unset -v " + var["name"])
            elif var["change"] == "set":
                script.append(var["name"] + b"=" + quoted(var["changed"]))
        script.append(case["restore"].encode())
        script.append(b'case $? in 0) ;; *) echo "%d restore failed";; esac'
                      % number)
        script.append(b"look '%d restored' %s" % (number, names))
        script.append(b'builtin test "$(names)" = "$before" || '
                      b'echo "%d changed the names"' % number)
        script.append(b"echo %d done; )" % number)

    script.append(b"""
    set -eu
    readonly RO=1
    %s
    case $? in 1) ;; *) echo 'a readonly variable is no error';; esac
    [[ $RO$OK == 12 ]] || echo 'OK was not set'
    %s
    case $? in 0) ;; *) echo 'restore of a readonly variable';; esac
    [[ $RO${OK-none} == 1none ]] || echo 'OK was not unset'
    builtin declare -i NUMBER=3
    NOTE=7; builtin declare -n REF=NOTE
    %s
    [[ $NUMBER$REF$NOTE == '1+1there7' ]] || echo "attributes: $NUMBER $REF"
    %s
    [[ $NUMBER$REF$NOTE == 377 && ${NUMBER@a} == i ]] || echo 'attributes after'
    %s
    %s
    [[ $PLAIN == 1 ]] || echo 'a plain set was restored'
    CDPATH=/; mkdir "$PWD/-" $'a \\'"\\\\\\n%%x'
    %s
    case $?$PWD in 0*/-) ;; *) echo "cwd failed: $PWD";; esac
    %s
    case $?$PWD in 0*%%x) ;; *) echo "cwd failed: $PWD";; esac
    %s
    case $?$PWD in 1*%%x) ;; *) echo 'a bad cwd is no error';; esac
    echo end
    """ % tuple(code.encode() for code in (
        cli.set("bash", 1, [(b"RO", b"2"), (b"OK", b"2")]),
        cli.ask("restore", "bash"),
        cli.set("bash", 1, [(b"NUMBER", b"1+1"), (b"REF", b"there")]),
        cli.ask("restore", "bash"),
        cli.set("bash", 0, [(b"PLAIN", b"1")]),
        cli.ask("restore", "bash"),
        cli.ask("cwd", "bash", b"-"),
        cli.ask("cwd", "bash", directory.encode() + b"/a '\"\\\n%x"),
        cli.ask("cwd", "bash", b"/nonexistent"))))

    with open(directory + "/run.sh", "wb") as file:
        file.write(b"\n".join(script))
    process = run(["bash", "run.sh"], directory,
                  env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
    problems = [line for line in process.stdout.decode().splitlines()
                if line != "end" and not line.endswith(" done")]
    done = process.stdout.decode().count(" done\n")
    if done != len(cases) or not process.stdout.endswith(b"end\n"):
        problems.append("only %d of %d cases ran" % (done, len(cases)))

    views = {}
    with open(directory + "/views", "rb") as file:
        for item in file.read().split(b"\0"):
            if item.startswith(b"== "):
                view = views.setdefault(item[3:].decode(), {})
            elif b"=" in item:
                name, value = item.split(b"=", 1)
                view[name] = value
    for number in range(len(cases)):
        if views.get("%d prior" % number) != views.get("%d restored" % number):
            prior = views.get("%d prior" % number, {})
            problems.append("case %d is not as before: %s" % (number, [
                (name, value[:200], prior.get(name, b"?")[:200])
                for name, value in views.get("%d restored" % number, {}).items()
                if prior.get(name) != value]))

    children = {}
    with open(directory + "/children", "rb") as file:
        for item in file.read().split(b"\0"):
            if item.startswith(b"== "):
                child = children.setdefault(int(item[3:]), {})
            elif b"=" in item:
                name, value = item.split(b"=", 1)
                child[name] = value
    for number, case in enumerate(cases):
        if number == 1:
            continue
        for var in case["vars"]:
            if children.get(number, {}).get(var["name"]) != var["value"]:
                problems.append("case %d: child has not %r"
                                % (number, var["name"]))
    return problems


def terminal(cli, directory):
    """bash at a terminal, driven as its kernel does it."""
    from pexpect import replwrap  # comes with Debian's IPython

    value = b"it's \"q\" !! !ls $HOME `id` \n\t\r\\ \x03\x04\x1a\x7f\xe2\x82\xac\xff"
    os.environ["HOME"] = directory
    shell = replwrap.bash()
    shell.child.delaybeforesend = None
    shell.run_command("bind 'set enable-bracketed-paste off' 2>/dev/null")
    shell.run_command("cd")
    problems = []

    def run_and_see(code, want):
        got = shell.run_command(code, timeout=60).replace("\r", "").strip()
        if got != want:
            problems.append("%s: %r, not %r" % (code[:60], got[:200], want))

    run_and_see("A=(1 '2 3'); B=old; set -eu", "")
    for size in (1, 5000, 100000):
        big = b"x" * size
        run_and_see(cli.set("bash", 1, [(b"A", value), (b"B", big)]), "")
        run_and_see('printf %s "$A" > value; echo "${#B}"', str(size))
        run_and_see(cli.ask("restore", "bash"), "")
        run_and_see('echo "${A[1]} $B"', "2 3 old")
        with open(directory + "/value", "rb") as file:
            if file.read() != value:
                problems.append("value has changed at the terminal")
    run_and_see(cli.ask("cwd", "bash", b"/nonexistent"), "")
    run_and_see('echo "$?"', "1")
    run_and_see("history | grep -c __kex[e]c || true", "0")
    run_and_see("compgen -v __kexec || true", "")
    shell.child.close(force=True)
    return problems


def has(module):
    return importlib.util.find_spec(module) is not None


def main():
    # IPython is Debian's, the first Python on the path may be another
    if not has("IPython") and sys.executable != DEBIAN \
       and os.path.exists(DEBIAN):
        os.execv(DEBIAN, [DEBIAN, "-B"] + sys.argv)

    cli = Cli(os.path.abspath(sys.argv[1]))
    seed = sys.argv[2] if len(sys.argv) > 2 else "1"
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 300
    tests = [
        ("python", python, has("IPython")),
        ("javascript", javascript, shutil.which("node")),
        ("r", r, shutil.which("Rscript")),
        ("bash", bash, shutil.which("bash")),
        ("bash at a terminal", terminal, has("pexpect")),
    ]
    print("1..%d" % len(tests))
    failed = False

    for number, (language, check, available) in enumerate(tests, 1):
        name = "%d - round trip: %s, seed %s" % (number, language, seed)
        if not available:
            print("ok %s # SKIP not installed" % name)
            continue
        with tempfile.TemporaryDirectory() as directory:
            directory = os.path.realpath(directory)
            if check is terminal:
                problems = terminal(cli, directory)
            else:
                problems = check(cli, build(cli, language, seed, count),
                                 directory)
            if os.path.exists(directory + "/pwned"):
                problems.append("code was injected")
        print("%s %s" % ("not ok" if problems else "ok", name), flush=True)
        for problem in problems[:20]:
            print("#   " + problem.replace("\n", "\\n"))
        failed = failed or bool(problems)

    return failed


if __name__ == "__main__":
    sys.exit(main())
