#!/usr/bin/python3
"""How code ended, by real kernels: no failure is hidden, none is faked, none is silent."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

FORMATTER = """
class X:
    def _repr_html_(self):
        raise ValueError("of the formatter")
"""


@scenario(rounds=1, many=20)
def formatter(server, rounds):
    """A formatter that raises: its traceback is stderr, the verdict is the code's own."""
    context = server.create_context()
    for i in range(rounds):
        a = server.run(FORMATTER + "display(X())\n{}['key']", context_id=context)
        is_(told(a), "KeyError", "the code's own error is told")
        ok("ValueError: of the formatter\n" in a.text("stderr"), "the formatter's is on stderr", a.text("stderr"))
        ok("KeyError" not in a.text("stderr"), "and that alone", a.text("stderr"))
        a = server.run(FORMATTER + "display(X())\n7", context_id=context)
        is_((told(a), [e.get("text") for e in a.all() if e.get("is_main_result")]), ("ok", ["7"]),
            "without an error the code ends well")


@scenario(rounds=1, many=20)
def traceback_shown(server, rounds):
    """Code that shows a traceback and goes on has not failed."""
    context = server.create_context()
    for i in range(rounds):
        a = server.run("try:\n    1 / 0\nexcept Exception:\n    get_ipython().showtraceback()\nprint('after')",
                       context_id=context)
        is_((told(a), a.text()), ("ok", "after\n"), "it ends well")
        ok("ZeroDivisionError: division by zero\n" in a.text("stderr"), "its traceback is on stderr", a.text("stderr"))
        is_([t for t in a.types() if t.startswith("std")], ["stderr", "stdout"], "in its place")
        a = server.run("import sys\nsys.exit(3)", context_id=context)
        is_((told(a), "SystemExit" in a.text("stderr")), ("SystemExit", False), "sys.exit() is an error, once")


# code with a NUL by language: what is told, or the result

NUL = {
    "python": ("print('a')\n'\0'", "InvalidCode", None),
    "r": ("cat('a')\n'b\0'", "InvalidCode", None),
    "bash": ("echo 'a\0b'", "InvalidCode", None),
    "javascript": ("'a\0b'.length", "ok", "3"),
    "typescript": ("'a\0b'.length", "ok", "3"),
}


@scenario(rounds=1, many=5)
def nul(server, rounds):
    """A NUL in the code: refused in words or run, never ignored."""
    contexts = {language: server.create_context(language=language) for language in NUL}
    for i in range(rounds):
        for language, (code, expected, value) in NUL.items():
            a = server.run(code, context_id=contexts[language])
            is_((told(a), result(a), a.text()), (expected, value, ""), language)
            if expected != "ok":
                ok("NUL" in a.all()[0].get("value", ""), "in words", a.all())


# code that asks for input, by language: what is told, stdout

ASKS = {
    "python": ("input('x? ')", "StdinNotImplementedError", ""),
    "r": ("a <- readline('x? ')\nb <- readline('y? ')\ncat('got', nchar(a), nchar(b))", "ok", "got 0 0"),
    "bash": ("read x\necho \"got ${#x}\"", "ok", "got 0\n"),
    "javascript": ("require('fs').readFileSync(0, 'utf8').length", "ok", ""),
}


@scenario(rounds=1, many=5)
def asks(server, rounds):
    """Code that asks for input has its answer at once, be it an error or an empty line."""
    contexts = {language: server.create_context(language=language) for language in ASKS}
    for i in range(rounds):
        for language, (code, expected, text) in ASKS.items():
            a = server.run(code, context_id=contexts[language], timeout=20)
            is_((told(a), a.text()), (expected, text), language)
            is_("nobody to ask" in a.text("stderr"), language == "r", "who answered is told")


EXITS = {"python": ("x = 1", ("exit()", "quit()"), "'x' in globals()", "False"),
         "r": ("x <- 1", ("q()", "quit('no')"), "exists('x')", "[1] FALSE")}


@scenario(rounds=1, many=10)
def exits(server, rounds):
    """exit() ends the kernel: the next one, be it queued or not, runs in a new one, soon and complete."""
    for language, (before, codes, after, value) in EXITS.items():
        context = server.create_context(language=language)
        server.run(before, context_id=context)
        start = time.monotonic()
        server.request("POST", "/contexts/%s/restart" % context)
        is_(told(server.run(before, context_id=context)), "ok", "%s: a restart by request" % language)
        usual = time.monotonic() - start
        for code in codes * rounds:
            server.run(before, context_id=context)
            a = server.execute(code, context)
            b = server.queued(after, context)
            is_((told(a), told(b), result(b)), ("ok", "ok", value), "%s: %s, one waits" % (language, code))
            ok("output_dropped" not in a.types() + b.types(), "nothing is lost", (a.types(), b.types()))
            within(b.finished_at - a.finished_at, 2 * usual + 1, "as soon as after a restart")
            server.run(before, context_id=context)
            a = server.run(code, context_id=context)
            b = server.run(after, context_id=context)
            is_((told(a), told(b), result(b)), ("ok", "ok", value), "%s: %s, one comes then" % (language, code))
            ok("output_dropped" not in a.types() + b.types(), "nothing is lost", (a.types(), b.types()))
    context = server.create_context()
    a = server.run("x = 1\nexit(keep_kernel=True)", context_id=context)
    is_((told(a), server.value("x", context)), ("ok", "1"), "exit(keep_kernel=True) keeps it")


main(lambda workers: Server(workers), quick=(1,))
