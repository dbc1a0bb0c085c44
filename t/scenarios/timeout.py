#!/usr/bin/python3
"""A request's own timeout: the code is interrupted, the variables stay, the next one runs."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *


@scenario(rounds=2, many=50)
def timeout(server, rounds):
    context = server.create_context()
    for i in range(rounds):
        told(server.run("x = %d" % i, context_id=context))
        a = server.execute("import time\nprint('before')\ntime.sleep(300)\nx = 'ran on'", context, timeout=0.5)
        b = server.queued("x", context)
        is_((told(a), a.text()), ("ExecutionTimeout", "before\n"), "ExecutionTimeout, after what was printed")
        between(a.finished_at - a.sent_at, 0.5, 1.5, "in time")
        like(next(e["value"] for e in a.all() if e["type"] == "error"), r"0\.5", "the limit is named")
        is_(a.types().count("error"), 1, "no other error")
        is_((told(b), result(b)), ("ok", str(i)), "the next one runs, the variables are intact")
        within(b.finished_at - a.finished_at, 1, "soon")


@scenario(rounds=1, many=50)
def run_time_only(server, rounds):
    """The time in the queue does not count."""
    context = server.create_context()
    for i in range(rounds):
        gate = server.gate()
        holder = server.busy(context, gate.code)
        a = server.queued("import time\ntime.sleep(0.2)\n'ran'", context, timeout=0.7)
        is_(a.next(1.2), None, "it waits for longer than its timeout")
        gate.open()
        is_((told(holder), told(a), result(a)), ("ok", "ok", "ran"), "and runs then")


@scenario(rounds=20, many=300)
def at_its_end(server, rounds):
    """Timeouts that come just when the code ends hit nobody else."""
    context = server.create_context()
    told(server.run("import time\nx = 7", context_id=context))
    wrong, ends, seconds = [], set(), 0.05
    for i in range(rounds):
        a = server.execute("time.sleep(0.045)\n'end'", context, timeout=seconds)
        b = server.execute("time.sleep(0.03); x", context)
        ends.add(told(a))
        # the moment is looked for: how long the code takes is the machine's affair
        seconds *= random.uniform(0.85, 1) if told(a) == "ok" else random.uniform(1, 1.3)
        if (told(b), result(b)) != ("ok", "7"):
            wrong.append((seconds, a.all(), b.all()))
        if told(a) == "ok" and result(a) != "end":
            wrong.append((seconds, a.all()))
    is_(wrong, [], "the next ones ran to their end")
    is_(ends, {"ok", "ExecutionTimeout"}, "some were in time, some not")


@scenario(rounds=1)
def refused(server, rounds):
    for bad in (-1, "soon", True, [1]):
        answer = server.request("POST", "/execute", {"code": "1", "timeout": bad})
        is_(answer.status, 422, "%r: 422" % (bad,))
    is_(server.value("1", timeout=None), "1", "null: no limit")
    is_(server.value("1", timeout=60), "1", "enough")


main(lambda workers: Server(workers, "kexec_interrupt_timeout 2s; kexec_keepalive 1s;"), quick=(4,))
