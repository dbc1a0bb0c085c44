#!/usr/bin/python3
"""How code ended: its reply decides, whatever else the kernel says, leaves unsaid or is made to say.  No failure is
hidden, none is faked, none is silent."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faulty import *

LIMIT = 65536


def error(name, value="v", traceback=None):
    """Content of an iopub error, with the traceback that the scripted kernel gives its own."""
    if traceback is None:
        traceback = ["\x1b[0;31m%s\x1b[0m" % ("-" * 60), "\x1b[0;31m%s\x1b[0m Traceback (most recent call last)" % name,
                     "\x1b[0;31m%s\x1b[0m: %s" % (name, value)]
    return {"ename": name, "evalue": value, "traceback": traceback}


def shown(name, value="v", traceback=None):
    """A line of code: an error on iopub that ends nothing."""
    return "message error " + json.dumps(error(name, value, traceback))


def printed(name, value="v"):
    """The same as output."""
    return "".join(line + "\n" for line in error(name, value)["traceback"])


def story(stream):
    """What a client saw, a word or text each."""
    words = []
    for e in stream.all():
        if e["type"] in ("stdout", "stderr"):
            words.append((e["type"], e["text"]))
        elif e["type"] == "error":
            words.append(("error", e["name"], e["traceback"] and "".join(error(e["name"], e["value"])["traceback"])
                          == e["traceback"]))
        elif e["type"] not in ("number_of_executions", "keepalive"):
            words.append(e["type"])
    return words


EMPTY_LINE = "\nThe code asks for input, and there is nobody to ask: it got an empty line\n"
END = "end_of_execution"
FORMATTER = ("stderr", printed("FormatterError"))
OWN = ("error", "KeyError", True)

# code, and what its client sees; most seconds
STORIES = {
    "a formatter raises, the code ends well": (
        [shown("FormatterError"), "print a"], [FORMATTER, ("stdout", "a\n"), END], 1),
    "a formatter raises, then the code": (
        [shown("FormatterError"), "print a", "error KeyError v"], [FORMATTER, ("stdout", "a\n"), OWN, END], 1),
    "the same error twice": (
        [shown("KeyError"), "print a", "error KeyError v"],
        [("stderr", printed("KeyError")), ("stdout", "a\n"), OWN, END], 1),
    "output follows the code's error": (
        ["drop_error", shown("KeyError"), "stderr w", "print a", "error KeyError v"],
        [OWN, ("stderr", "w\n"), ("stdout", "a\n"), END], 1),
    "the reply overtakes it all": (
        ["reply " + json.dumps({"status": "error", **error("KeyError")}), "drop_reply", shown("FormatterError"), "print a",
         "error KeyError v"], [FORMATTER, ("stdout", "a\n"), OWN, END], 1),
    "the error is in the reply alone": (
        ["drop_error", shown("FormatterError"), "print a", "error KeyError v"],
        [FORMATTER, ("stdout", "a\n"), OWN, END], 1),
    "the reply says that it failed, and no more": (
        ["drop_reply", shown("FormatterError"), "print a", shown("KeyError"), 'reply {"status": "error"}'],
        [FORMATTER, ("stdout", "a\n"), OWN, END], 3),
    "the reply has another traceback": (
        ["drop_reply", shown("FormatterError"), shown("KeyError"),
         "reply " + json.dumps({"status": "error", **error("KeyError", traceback=[])})], [FORMATTER, OWN, END], 3),
    "no traceback at all": (
        [shown("FormatterError", traceback=[]), "print a"],
        [("stderr", "FormatterError: v\n"), ("stdout", "a\n"), END], 1),
    "no reply": (
        ["drop_reply", shown("FormatterError"), "print a", "error KeyError v"],
        [FORMATTER, ("stdout", "a\n"), OWN, END], 2.5),
    "no reply, and no error": (["drop_reply", "print a"], [("stdout", "a\n"), ("error", "ExecutionLost", ""), END], 2.5),
    "a reply that tells nothing": (
        ["drop_reply", 'reply {"status": 7}', "print a"],
        [("stdout", "a\n"), ("error", "ExecutionLost", ""), END], 3),
    "a reply forged, then the true one": (
        ['reply {"status": "ok"}', "print a", "error KeyError v"],
        [("stdout", "a\n"), ("stderr", printed("KeyError")), OWN, END], 1),
    "an error forged, then the true reply": (
        ["reply " + json.dumps({"status": "error", **error("Forged")}), "print a"], [("stdout", "a\n"), END], 1),
    "held for a second, no longer": (
        [shown("FormatterError"), "print a", "sleep 3", "print b"],
        [FORMATTER, ("stdout", "a\n"), ("stdout", "b\n"), END], 4.5),
    "it neither replies nor is idle": (
        ["drop_reply", "drop_idle", "error KeyError v"],
        [("stderr", printed("KeyError")), ("error", "ExecutionLost", ""), "output_dropped", END], 14),
    "a question": (
        ["ask x? ", "print a"],
        [("stderr", "x?" + EMPTY_LINE), ("stdout", "answer: ''\n"), ("stdout", "a\n"), END], 1),
    "a question behind an error": (
        [shown("KeyError"), "drop_error", "ask x?", "error KeyError v"],
        [OWN, ("stderr", "x?" + EMPTY_LINE), ("stdout", "answer: ''\n"), END], 1),
    "one that nobody asked": (['message input_request {"prompt": "x"}', "print a"], [("stdout", "a\n"), END], 1),
    "it dies": ([shown("FormatterError"), "die"], [FORMATTER, ("error", "KernelDied", ""), END], 3),
}


@scenario(rounds=1, many=10)
def stories(server, rounds):
    """An error on iopub counts when the reply confirms it; else it is stderr, in its place."""
    contexts = server.contexts(len(STORIES))
    for i in range(rounds):
        cases = [Case(name, "\n".join(lines), told=None, lost=None, most=most) for name, (lines, _, most)
                 in STORIES.items()]
        for case, (_, expected, _) in zip(cases, STORIES.values()):
            case.told = next((w[1] for w in expected if w[0] == "error"), "ok")
            case.check = lambda s, expected=expected: story(s) != expected and "saw %r, not %r" % (story(s), expected)
        table(server, contexts, cases, "what each client is told")


@scenario(rounds=1, many=10)
def held_no_longer(server, rounds):
    """What is printed behind an error is held for a second at most, and 64 kB at most."""
    context = server.create_context()
    for i in range(rounds):
        a = server.execute(shown("FormatterError") + "\nprint a\nsleep 30", context)
        a.wait_for("stderr")
        within(time.monotonic() - a.sent_at, 2, "an error that nothing follows is told")
        a.reset()
        mark = server.jupyter.mark()
        b = server.execute(shown("FormatterError") + "\nflood 100 1000\nsleep 30", context)
        server.jupyter.wait(since=mark, ev="start")
        start = time.monotonic()
        b.wait_for("stderr")
        within(time.monotonic() - start, 0.9, "at once if much output follows")
        b.reset()


@scenario(rounds=1, many=10)
def large(server, rounds):
    """An error of any size is told once, in its place."""
    context = server.create_context()
    text = "x" * (4 * LIMIT)
    for i in range(rounds):
        a = server.run("error KeyError %s" % text, context_id=context)
        is_((told(a), a.text("stderr")), ("KeyError", ""), "told as the error alone")
        is_(value(a), text, "in full")


def memory(server):
    """What the worker has allocated, in MB."""
    with open("/proc/%d/status" % server.workers()[0]) as f:
        return int(re.search(r"RssAnon:\s*(\d+) kB", f.read()).group(1)) / 1024


@scenario(rounds=1, many=5)
def many_replies(server, rounds):
    """Replies that the code forges: one is kept, however many there are."""
    context = server.create_context()
    for i in range(rounds):
        before = memory(server)
        a = server.execute("forge 20 4000000\nprint a\nsleep 30", context)
        a.wait_for("stdout")
        grown = memory(server) - before
        if not INSTRUMENTED:            # a sanitizer keeps what was freed
            ok(grown < 24, "20 replies of 4 MB: the worker grows by less than six", "%.0f MB" % grown)
        a.reset()
        b = server.run("print b", context_id=context)
        is_((told(b), b.text()), ("ok", "b\n"), "the next one runs")


@scenario(rounds=1, many=10, location="kexec_interrupt_timeout 6s;")
def forged_reply(server, rounds):
    """A reply alone stops neither the timeout nor an interrupt: the code that sent it runs on."""
    forged = 'reply {"status": "ok"}\nprint a\n'
    for i in range(rounds):
        one, two, three = server.contexts(3)
        for context in one, two, three:
            server.run("set v kept", context_id=context)
        a = server.execute(forged + "sleep 60", one, timeout=0.5)
        b = server.execute(forged + "sleep 60", two)
        c = server.execute(forged + "swallow 60", three, timeout=0.5)
        b.wait_for("stdout")
        asked = server.stream("POST", "/contexts/%s/interrupt" % two)
        gather([a, b, c, asked], 20)
        is_((verdict(a), a.text()), ("ExecutionTimeout", "a\n"), "the timeout is told")
        at_most(took(a), 4, "in time")
        is_((verdict(b), asked.answer().status), ("KeyboardInterrupt", 200), "it can be interrupted")
        is_(verdict(c), "ExecutionTimeout", "one that swallows interrupts is told, too")
        is_([server.run("get v", context_id=context).text() for context in (one, two)], ["kept\n"] * 2,
            "the variables are kept")
        is_(verdict(gather([server.execute("get v", three)], 10)[0]), "NameError", "or else the kernel is another one")


@scenario(rounds=1, many=10, default_contexts="python")
def exits(server, rounds):
    """Code that asked for the end of its process: restarted once, at once, whatever Jupyter says; nobody is told an error."""
    jupyter = server.jupyter
    for fault, limit in (None, 2.5), ({"status": 500, "times": 2}, 6), ({"delay": 0.5}, 3), \
            ({"act": True, "status": 500, "times": 1}, 5):
        context = server.create_context()
        for i in range(rounds):
            jupyter.set(restart=fault and dict(fault))
            mark = jupyter.mark()
            server.run("set v old", context_id=context)
            a = server.execute("ask_exit", context, env_vars={"A": "secret"})
            b = [server.execute(code, context) for code in ("get v", "print waiting")]
            gather([a, *b], 20)
            is_([verdict(s) for s in (a, *b)], ["ok", "NameError", "ok"], "restart %r: who waits runs in a new one" % fault)
            at_most(b[1].finished_at - a.finished_at, limit, "soon")
            ok(not any(dropped(s) for s in (a, *b)), "complete")
            at_most(took(a), 1, "whose code it was has its end before")
            jupyter.set(restart=None)
    context = server.create_context()
    server.run("set v kept", context_id=context)
    mark = jupyter.mark()
    is_((verdict(gather([server.execute("ask_exit keep", context)])[0]), server.run("get v", context_id=context).text()),
        ("ok", "kept\n"), "one that is to be kept is kept")
    is_(jupyter.log(mark, ev="kernel_restarted"), [], "nobody restarts it")
    payload = json.dumps({"status": "ok", "payload": [{"source": "ask_exit", "keepkernel": False}]})
    a = server.execute("reply %s\nprint a\ndie 0.5" % payload, context)
    b = server.execute("print b", context)
    gather([a, b], 15)
    is_((verdict(a), dropped(a), verdict(b)), ("ok", True, "ok"), "gone before its idle: it had ended")


@scenario(rounds=1, many=10)
def exits_gone(server, rounds):
    """Code that asked for the end of its process, whose kernel is given up or gone before all of that is known, or starts slowly."""
    jupyter = server.jupyter
    forged = "reply %s\nprint a\n" % json.dumps({"status": "ok", "payload": [{"source": "ask_exit", "keepkernel": False}]})
    for i in range(rounds):
        gone, dead, slow = server.contexts(3)
        jupyter.kernel(gone, "set", autorestart_delay=60)
        jupyter.kernel(slow, "set", start_delay=7)
        mark = jupyter.mark()
        jupyter.set(kernel_get={"delay": 2, "status": 404, "match": server.kernel(gone)})
        a = [server.execute("cut\nsleep 0.5\nask_exit", gone), server.execute(forged + "dead 0.5", dead),
             server.execute(forged + "die 0.5", slow)]
        b = [server.execute("print b", context) for context in (gone, dead, slow)]
        gather(a + b, 20)
        is_([verdict(s) for s in a], ["ok"] * 3, "it had ended")
        is_([(verdict(s), s.text()) for s in b], [("ok", "b\n")] * 3, "who waits runs")
        at_most(b[0].finished_at - a[0].finished_at, 2, "in a new kernel, soon")
        at_most(b[1].finished_at - a[1].finished_at, 2, "also where it was given up")
        is_(jupyter.log(mark, ev="rest", name="restart"), [], "none is restarted that starts by itself")
        jupyter.set(kernel_get=None)


# By real kernels


RAISES = """
class X:
    def _repr_html_(self):
        raise ValueError("of the formatter")
"""


@scenario(rounds=1, many=20, workers=(1, 4), quick=(1,), server=Server)
def formatter(server, rounds):
    """A formatter that raises: its traceback is stderr, the verdict is the code's own."""
    context = server.create_context()
    for i in range(rounds):
        a = server.run(RAISES + "display(X())\n{}['key']", context_id=context)
        is_(told(a), "KeyError", "the code's own error is told")
        ok("ValueError: of the formatter\n" in a.text("stderr"), "the formatter's is on stderr", a.text("stderr"))
        ok("KeyError" not in a.text("stderr"), "and that alone", a.text("stderr"))
        a = server.run(RAISES + "display(X())\n7", context_id=context)
        is_((told(a), [e.get("text") for e in a.all() if e.get("is_main_result")]), ("ok", ["7"]),
            "without an error the code ends well")


@scenario(rounds=1, many=20, workers=(1, 4), quick=(1,), server=Server)
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


@scenario(rounds=1, many=5, workers=(1, 4), quick=(1,), server=Server)
def nul(server, rounds):
    """A NUL in the code: refused in words or run, never ignored."""
    contexts = {language: server.create_context(language=language) for language in NUL}
    for i in range(rounds):
        for language, (code, expected, wanted) in NUL.items():
            a = server.run(code, context_id=contexts[language])
            is_((told(a), result(a), a.text()), (expected, wanted, ""), language)
            if expected != "ok":
                ok("NUL" in a.all()[0].get("value", ""), "in words", a.all())


# code that asks for input, by language: what is told, stdout

ASKS = {
    "python": ("input('x? ')", "StdinNotImplementedError", ""),
    "r": ("a <- readline('x? ')\nb <- readline('y? ')\ncat('got', nchar(a), nchar(b))", "ok", "got 0 0"),
    "bash": ("read x\necho \"got ${#x}\"", "ok", "got 0\n"),
    "javascript": ("require('fs').readFileSync(0, 'utf8').length", "ok", ""),
}


@scenario(rounds=1, many=5, workers=(1, 4), quick=(1,), server=Server)
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


@scenario(rounds=1, many=10, workers=(1, 4), quick=(1,), server=Server)
def exits_by_language(server, rounds):
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


main(Faulty, workers=(1,), jobs=10)
