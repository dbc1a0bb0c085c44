#!/usr/bin/python3
"""The kernels of other languages than Python: clients that leave, code that spoils what the kernel needs, ends, stdin."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

JAVASCRIPT = [
    "async function main() { await new Promise(() => {}) }\nmain()",
    "await new Promise(() => {})",
    "({ then(resolve) {} })",
    "await ({ then(resolve) {} })",
    "({ get then() { for (;;); } })",
    "({ [Symbol.for('Jupyter.display')]() { return new Promise(() => {}) } })",
    "({ [Symbol.for('nodejs.util.inspect.custom')]() { for (;;); } })",
    "const { setTimeout: wait } = require('timers/promises')\n(async () => { for (;;) await wait(50) })()",
    "for (;;);",
    "require('child_process').execSync('sleep 60')",
]

LEFT = {
    "javascript": ("x = 42", JAVASCRIPT, "x"),
    "typescript": ("x = 42", JAVASCRIPT[:2] + [
        "enum Kind { A }\nasync function main(): Promise<void> { await new Promise(() => {}) }\nmain()"], "x"),
    "r": ("x <- 42", ["Sys.sleep(60)", "repeat {}"], "cat(x)"),
    "bash": ("x=42", ["sleep 60", "while :; do :; done", "read -t 60 line < <(sleep 60)"], "echo $x"),
}


def shown(stream):
    """The result, or what was printed."""
    return (result(stream) or stream.text()).strip()


@scenario(rounds=1, many=10)
def leave(server, rounds):
    """The next request has the variables, within a second."""
    for language, (before, codes, after) in LEFT.items():
        context = server.create_context(language=language)
        says = {"r": "cat('-started-\\n'); flush.console()\n", "bash": "echo -started-\n"}.get(
            language, "process.stdout.write('-started-\\n')\n;")
        for code in codes * rounds:
            is_(told(server.run(before, context_id=context)), "ok", "%s: x is set" % language)
            a = server.execute(says + code, context)
            ok(a.wait_for("stdout", 30), "it runs")
            left = a.close()
            b = server.run(after, context_id=context)
            is_((told(b), shown(b)), ("ok", "42"), "%s: x is still there: %r" % (language, code))
            within(b.finished_at - left, 1, "answered soon after the other left")


# Pieces of code, one after the other, and what the next one says behind each.

SPOILT = {
    "javascript": ("x = 42", "process.stdout.write('out '); process.stderr.write('err'); x", [
        "JSON.stringify = () => { throw 1 }",
        "JSON = Promise = Error = Symbol = String = Buffer = null",
        "Promise.prototype.then = Promise.prototype.finally = Promise.race = null; 1",
        "Array.prototype.map = Array.prototype.join = Array.prototype[Symbol.iterator] = null; 1",
        "String.prototype.replace = RegExp.prototype.exec = Object.keys = Object.defineProperty = null; 1",
        "Object.prototype.toJSON = () => { throw 1 }; 1",
        "console.log = () => { throw 1 }; console = null",
        "process.exit = process.on = process.emitWarning = null; process.removeAllListeners(); 1",
        "process.stdout.end(); process.stderr.end(); 1",
        "process.stdout.destroy(); process.stderr.destroy(); 1",
        "const fs = require('fs'); fs.closeSync(0); fs.closeSync(1); fs.closeSync(2)",
        "const fs = require('fs'); fs.readFileSync = fs.writeSync = fs.openSync = null",
        "const kexecRun = 1, kexecHolder = 2, work = 3",
        "require('fs').writeSync(251, '1 {\"data\": null}\\n9 {}\\n{}\\n')",
        "Object.freeze(globalThis); 1",
    ]),
    "bash": ("x=42", "printf 'out '; printf err >&2; printf $x", [
        "exec >&-",
        "exec 2>&- 0<&-",
        "exec >/dev/null 2>&1",
        "set -euo pipefail",
        "set -x",
        "set -- a b c",
        "trap '' INT; trap 'exit 3' DEBUG",
        "PATH=",
        "IFS=$'\\n'; readonly IFS REPLY",
        "alias echo=false; read() { exit 1; }; echo() { exit 1; }",
        "echo 1 0 >&251; echo x >&251",
    ]),
    "r": ("x <- 42", "base::cat('out '); base::message('err'); base::cat(x)", [
        "sink('/dev/null')",
        "sink(tempfile()); sink(stdout(), type = 'message')",
        "closeAllConnections()",
        "print <- function(...) stop('mine'); cat <- paste <- paste0 <- print",
        "c <- list <- function(...) stop('mine')",
        "options(warn = 2, digits = 3)",
    ]),
}


@scenario(rounds=1, many=5)
def spoilt(server, rounds):
    """What the code replaces, closes or redirects does not break the kernel."""
    for language, (before, after, codes) in SPOILT.items():
        for _ in range(rounds):
            context = server.create_context(language=language)
            told(server.run(before, context_id=context))
            for code in codes:
                told(server.run(code, context_id=context))
                a = server.run(after, context_id=context)
                is_((told(a), (a.text() + (result(a) or "")).strip(), a.text("stderr").strip()), ("ok", "out 42", "err"),
                    "%s: %r" % (language, code))
            server.request("DELETE", "/contexts/" + context)


@scenario(rounds=1, many=10)
def ends(server, rounds):
    """Code that ends the process, or the shell: the client is told, and the next one runs."""
    contexts = {language: server.create_context(language=language) for language in ("javascript", "bash")}
    for language, code, error, after, value in [
        ("javascript", "process.exit()", "ProcessExited", "typeof x", "undefined"),
        ("javascript", "process.kill(process.pid, 'SIGKILL')", "ProcessExited", "typeof x", "undefined"),
        ("javascript", "require('fs').closeSync(251)", "ProcessExited", "typeof x", "undefined"),
        ("javascript", "require('fs').closeSync(252)", "ok", "1", "ProcessExited"),
        ("bash", "exit 0", "ok", "echo $x", "42"),
        ("bash", "exit", "ok", "echo $x", "42"),
        ("bash", "exit 3", "ExitError", "echo $x", "42"),
        ("bash", "set -e\nfalse\nx=1", "ExitError", "echo $x", "42"),
        ("bash", "set -u\necho $nothing\nx=1", "ExitError", "echo $x", "42"),
        ("bash", ": ${nothing:?}", "ExitError", "echo $x", "42"),
        ("bash", "kill $$", "ProcessExited", "echo $x", "42"),
        ("bash", "kill -9 $$", "ProcessExited", "echo ${x-gone}", "gone"),
        ("bash", "exec true", "ProcessExited", "echo ${x-gone}", "gone"),
        ("bash", "exec 251>&-", "ProcessExited", "echo ${x-gone}", "gone"),
    ] * rounds:
        context = contexts[language]
        told(server.run("x=42", context_id=context))
        is_(told(server.run(code, context_id=context)), error, "%s: %r" % (language, code))
        a = server.run(after, context_id=context)
        said = told(a)
        is_(shown(a) if said == "ok" else said, value, "the next one runs")


@scenario(rounds=1, many=10)
def nobody_to_ask(server, rounds):
    """Code that reads its standard input is at the end of it, and does not wait."""
    for language, codes in {
        "javascript": ["require('fs').readFileSync(0, 'utf8').length",
                       "for await (const line of require('readline').createInterface({ input: process.stdin })); 0",
                       "for await (const line of require('readline').createInterface({ input: process.stdin })); 0",
                       "await new Promise((ended) => process.stdin.on('end', ended).resume()); 0"],
        "typescript": ["for await (const chunk of process.stdin); 0"],
        "bash": ["read line; echo ${#line}", "cat | wc -c"],
    }.items():
        context = server.create_context(language=language)
        for code in codes * rounds:
            a = server.run(code, context_id=context)
            is_((told(a), shown(a)), ("ok", "0"), "%s: %r" % (language, code))
    context = server.create_context(language="javascript")
    for code in [
        "const a = require('readline').createInterface({ input: process.stdin })\n"
        "for (;;) await new Promise((answer) => a.question('name? ', answer))",
        "const b = require('readline/promises').createInterface({ input: process.stdin })\n"
        "for (;;) await b.question('name? ')",
    ]:
        a = server.run(code, context_id=context)
        is_((told(a), "nobody to ask" in a.all()[-2].get("value", "")), ("Error", True), "%r fails" % code)


main(lambda workers: Server(workers, "kexec_interrupt_timeout 5s;", default_contexts=""), workers=(1,), jobs=2)
