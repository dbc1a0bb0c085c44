#!/usr/bin/python3
"""What a real Jupyter does rarely, by the scripted one: replies eaten, kernels given up, Jupyter gone."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

ENV = "a b"
CONF = 'kexec_interrupt_timeout 2s; kexec_keepalive 1s; kexec_reconnect_timeout 1s; kexec_env KEXEC_SCENARIO "a b"; ' \
    "kexec_queue size=16 timeout=7s;"


def start(server, code, context, **more):
    """An execution whose code was seen to start."""
    mark = server.jupyter.mark()
    stream = server.execute(code, context, **more)
    server.jupyter.wait(since=mark, ev="start", **{"code~": code})
    return stream


def prepared(server, context, name):
    """The kernel has got the working directory and the environment since it started."""
    stream = server.run("env", context_id=context)
    silent = stream.text()
    return ok(told(stream) == "ok" and "KEXEC_SCENARIO" in silent and server.cwd in silent, name, silent)


@scenario(rounds=2, many=50)
def reply_eaten(server, rounds):
    """An interrupt may eat the reply: the slot is free as soon as the kernel is idle."""
    context = server.create_context()
    for i in range(rounds):
        a = start(server, "drop_reply\nsleep 30", context)
        left = a.close()
        b = server.run("print hello", context_id=context)
        is_((told(b), b.text()), ("ok", "hello\n"), "the next one runs")
        within(b.finished_at - left, 0.5, "at once")


@scenario(rounds=2, many=50)
def dead(server, rounds):
    """Jupyter gives the kernel up: the context's id lives on with a new kernel, prepared as before."""
    jupyter = server.jupyter
    context = server.create_context()
    for i in range(rounds):
        prepared(server, context, "the kernel is prepared")
        told(server.run("set x 1", context_id=context))
        mark = jupyter.mark()
        a = start(server, "sleep 30 #%d" % i, context)
        b = server.queued("print ran-b-%d" % i, context)
        jupyter.kernel(context, "dead")
        is_(told(a), "KernelDied", "the running one is told")
        c = server.queued("print ran-c-%d" % i, context)
        is_((told(b), b.text()), ("ok", "ran-b-%d\n" % i), "who waited runs in a new kernel")
        is_((told(c), c.text()), ("ok", "ran-c-%d\n" % i), "who came later too")
        ran = [r["code"] for r in jupyter.log(mark, ev="start", silent=False)]
        is_(ran, ["sleep 30 #%d" % i, "print ran-b-%d" % i, "print ran-c-%d" % i], "each ran once")
        prepared(server, context, "the new kernel is prepared")
        is_(server.run("get x", context_id=context).error(), "NameError", "the variables are gone")
        is_([c["id"] for c in server.request("GET", "/contexts").json()].count(context), 1, "the id is the same")
        is_(len([s for s in server.rest("GET", "/api/sessions").json() if context in s["path"]]), 1,
            "one session is its")


@scenario(rounds=2, many=50)
def dead_while_idle(server, rounds):
    """The same while nothing runs; whether a worker heard of it or not."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("set x 1", context_id=context))
        server.jupyter.kernel(context, "dead")
        a = server.run("print ran", context_id=context)
        ok((told(a), a.text()) == ("ok", "ran\n") or told(a) == "KernelDied",
           "the next one runs in a new kernel, unless it was sent to the old one", a.all())
        prepared(server, context, "the next one does, which is prepared")
        is_([c["id"] for c in server.request("GET", "/contexts").json()].count(context), 1, "the id is the same")


@scenario(rounds=1, many=10)
def jupyter_down(server, rounds):
    """Jupyter does not answer for a while, longer than kexec_interrupt_timeout; its kernels live on."""
    jupyter = server.jupyter
    context = server.create_context()
    for i in range(rounds):
        told(server.run("set x 7", context_id=context))
        mark = jupyter.mark()
        a = start(server, "sleep 300", context)
        b = server.queued("get x", context)
        jupyter.down()
        down = time.monotonic()
        is_(told(a), "JupyterUnavailable", "running: JupyterUnavailable, end")
        between(a.finished_at - down, 1, 2, "after kexec_reconnect_timeout")
        c = server.execute("get x", context)
        ok(c.wait_head() in (200, 503), "arriving: queued or 503", c.status_line)
        is_(b.next(3), None, "queued: waits")
        jupyter.up()
        up = time.monotonic()
        is_((told(b), b.text()), ("ok", "7\n"), "and runs once Jupyter is back, the variables intact")
        within(b.finished_at - up, 3, "soon")
        if c.status == 200:
            is_((told(c), c.text()), ("ok", "7\n"), "arriving: runs")
        is_([r["code"] for r in jupyter.log(mark, ev="interrupt", landed="hit") if r.get("landed_code") != "sleep 300"]
            , [], "only the code of the first was interrupted")


@scenario(rounds=1, many=5, quick=(1,))
def jupyter_down_too_long(server, rounds):
    """The same for longer than kexec_queue's timeout."""
    jupyter = server.jupyter
    context = server.create_context()
    for i in range(rounds):
        told(server.run("set x 7", context_id=context))
        a = start(server, "sleep 300", context)
        b = server.queued("get x", context)
        jupyter.down()
        is_(told(a), "JupyterUnavailable", "running: JupyterUnavailable, end")
        is_(told(b), "QueueTimeout", "queued: up to its queue timeout")
        between(b.finished_at - b.sent_at, 7, 8, "which is exact")
        like(b.all()[0].get("value"), r"held by .* for \d+ s", "and is told why")
        c = server.execute("get x", context)
        c.wait_head()
        jupyter.up()
        if c.status == 200:
            is_((told(c), c.text()), ("ok", "7\n"), "arriving: runs once Jupyter is back")
        is_(server.run("get x", context_id=context).text(), "7\n", "all is well then")


main(lambda workers: Server(workers, CONF, jupyter=ScriptedJupyter()))
