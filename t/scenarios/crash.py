#!/usr/bin/python3
"""The kernel dies: it is told, and the context lives on, prepared as before."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

KILL = "import os\nos.kill(os.getpid(), 9)"
ENV = "a b'\"$"
CONF = "kexec_interrupt_timeout 8s; kexec_keepalive 1s; kexec_env KEXEC_SCENARIO \"%s\";" % \
    ENV.replace('"', '\\"')


def once(server, name):
    """Code that leaves a mark in a file each time that it runs, and what was written so far."""
    path = server.path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)

    def marks():
        if not os.path.exists(path):
            return ""
        with open(path) as f:
            return f.read()
    return "with open(%r, 'a') as f:\n    _ = f.write('+')\n" % path, marks


def prepared(server, context, name):
    """The context answers as a new one does."""
    stream = server.run("import os\n(os.environ.get('KEXEC_SCENARIO'), os.getcwd())", context_id=context)
    return is_((told(stream), result(stream)), ("ok", repr((ENV, server.cwd))), name)


@scenario(rounds=1, many=50, workers=(0, 1, 4))
def killed(server, rounds):
    """kill -9 from within: KernelDied within 10 s; who waits runs once in the new kernel."""
    context = server.create_context()
    for i in range(rounds):
        is_(told(server.run("x = 1", context_id=context)), "ok", "x is set")
        prepared(server, context, "cwd and environment are set")
        code, marks = once(server, "killed-%d" % i)
        gate = server.gate()
        a = server.busy(context, gate.code + KILL)
        b = server.queued(code + "'ran'", context)
        killed = gate.open()
        is_(told(a), "KernelDied", "the running one is told")
        within(a.finished_at - killed, 10, "in time")
        c = server.queued(code + "'ran too'", context)
        is_((told(b), result(b)), ("ok", "ran"), "who waited runs in the new kernel")
        is_((told(c), result(c)), ("ok", "ran too"), "who came while it started as well")
        is_(marks(), "++", "each ran once")
        is_(server.run("x", context_id=context).error(), "NameError", "it is a new kernel")
        prepared(server, context, "cwd and environment are set again")


@scenario(rounds=3, many=50, quick=(1,))
def killed_at_once(server, rounds):
    """Code that ends its own process, before its busy is out or after: KernelDied, and it never runs again."""
    context = server.create_context()
    ends = (("a signal", KILL), ("_exit", "import os\nos._exit(1)"),
            ("a segmentation fault", "import ctypes\nctypes.string_at(0)"))
    for i in range(rounds):
        for n, (name, end) in enumerate(ends):
            code, marks = once(server, "at-once-%d-%d" % (i, n))
            a = server.run(code + end, context_id=context)
            is_(told(a), "KernelDied", name + ": told")
            within(a.finished_at - a.sent_at, 10, "in time")
            prepared(server, context, "the next one runs in a new process")
            is_(marks(), "+", name + ": it ran once")


@scenario(rounds=1, many=50, quick=(1,))
def killed_while_idle(server, rounds):
    """An idle kernel is killed: a request sent at once, while it is down, is told, and runs once at most."""
    context = server.create_context()
    for i in range(rounds):
        pid = int(server.value("import os\nos.getpid()", context))
        code, marks = once(server, "idle-%d" % i)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), 5, "the kernel's end")
        a = server.run(code + "'ran'", context_id=context)
        # Jupyter's word of the death may have been quicker than the request
        ok(told(a) == "KernelDied" and "may or may not have run" in json.dumps(a.all()) or result(a) == "ran" and marks() == "+",
           "a request sent while the kernel was down is told, or runs", a.all())
        within(a.finished_at - a.sent_at, 10, "in time")
        prepared(server, context, "cwd and environment are set again")
        ok(marks() in ("", "+"), "it ran once at most", marks())


@scenario(rounds=1, many=50, quick=(4,))
def client_left_and_killed(server, rounds):
    """The kernel dies while its interrupted code ends, with nobody watching: the next one runs."""
    context = server.create_context()
    code = "import signal, os\ntry:\n    import time; time.sleep(300)\nfinally:\n    os.kill(os.getpid(), 9)"
    for i in range(rounds):
        a = server.busy(context, code)
        mark, marks = once(server, "left-%d" % i)
        left = a.close()
        b = server.run(mark + "'ran'", context_id=context)
        is_((told(b), result(b)), ("ok", "ran"), "the next one runs")
        within(b.finished_at - left, 12, "in time")
        is_(marks(), "+", "once")
        prepared(server, context, "cwd and environment are set again")

@scenario(rounds=4, many=50)
def cleaned_up(server, rounds):
    """Who is told that the kernel died deletes the context, or restarts it, at once: Jupyter may not be able to yet."""
    for i in range(rounds):
        context = server.create_context()
        a = server.run("import os\nos.kill(os.getpid(), 9)", context_id=context)
        is_(told(a), "KernelDied", "told")
        time.sleep(0.1 * (i % 4))
        if i % 2:
            is_(server.request("POST", "/contexts/%s/restart" % context).status, 200, "it can be restarted")
            is_(server.value("1", context), "1", "and used")
        is_(server.request("DELETE", "/contexts/" + context).status, 200, "it can be deleted")
        ok(context not in [c["id"] for c in server.request("GET", "/contexts").json()], "is not listed")
        is_(server.session(context), None, "and has no session")


@scenario()
def broken_from_inside(server, rounds):
    """Code that breaks what the Python kernel itself needs: it ends, and the next one runs, in the same process."""
    context = server.create_context()
    is_(told(server.run("x = 7", context_id=context)), "ok", "x is set")
    for code in ("import json\njson.dumps = None", "import builtins\nbuiltins.len = 5", "import time\ntime.sleep = None",
                 "import asyncio\nasyncio.get_event_loop().stop()", "import sys\nsys.modules.clear()",
                 "class E(Exception):\n    def __str__(self):\n        raise ValueError\nraise E"):
        a = server.run(code, context_id=context)
        ok(told(a) in ("ok", "E", "TypeError", "AttributeError", "KeyError"), "it ends: %s" % code.splitlines()[-1], told(a))
        is_(server.value("x", context), "7", "the next one runs")


main(lambda workers: Server(workers, CONF), jobs=3)
