#!/usr/bin/python3
"""Restarts, deletions and interrupts that Jupyter refuses, that come in numbers, whose clients leave."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faults import *


# Somebody else's cell


def foreign_cells(server, contexts, seconds):
    return {n: server.jupyter.kernel(c, "foreign", seconds=seconds)["msg_id"] for n, c in contexts.items()}


def spared(server, contexts, cells, mark):
    """Foreign cells hold the kernels: the next executions wait for them, and nobody interrupts them."""
    jupyter = server.jupyter
    streams = {n: server.execute("print b", c) for n, c in contexts.items()}
    gather(streams.values(), 15)
    for name, b in streams.items():
        is_((verdict(b), b.text()), ("ok", "b\n"), "%s: the next one runs" % (name,))
        hit = [r for r in jupyter.log(mark, ev="interrupt") if cells[name] in (r["executing"], r["landed_in"])]
        is_(hit, [], "the foreign cell is not interrupted")
        is_([r["status"] for r in jupyter.log(mark, ev="ran", msg_id=cells[name])], ["ok"], "it runs to its end")


@scenario(many=5)
def refused(server, rounds):
    """Jupyter refuses a DELETE or a restart: nothing of ours is left in the kernel, what runs there is not ours."""
    operations = {"DELETE": ("DELETE", ""), "restart": ("POST", "/restart")}
    faults = {"500": ({"status": 500}, 500), "reset": ({"reset": True}, 503)}
    for i in range(rounds):
        contexts = dict(zip([(o, f) for o in operations for f in faults], server.contexts(4)))
        for context in contexts.values():
            server.usable(context)
        for fault in faults:
            server.jupyter.set(session_delete=faults[fault][0], restart=faults[fault][0])
            for name, (method, path) in operations.items():
                answer = server.request(method, "/contexts/" + contexts[name, fault] + path)
                is_(answer.status, faults[fault][1], "%s is refused: %s" % (name, fault))
        server.jupyter.set(session_delete=None, restart=None)
        mark = server.jupyter.mark()
        spared(server, contexts, foreign_cells(server, contexts, 3.2), mark)


@scenario(workers=2, many=5, location="kexec_ready_timeout 15s;")
def worker_killed(server, rounds):
    """A worker dies that has sent no code, or with a DELETE or restart under way: there is no orphan either."""
    jupyter = server.jupyter
    server.deaths = True
    for i in range(rounds):
        contexts = dict(zip(["no code", "DELETE", "restart"], server.contexts(3)))
        for context in contexts.values():
            server.usable(context)
            jupyter.kernel(context, "cut")
        jupyter.set(session_delete={"hang": True}, restart={"hang": True})
        mark = jupyter.mark()
        cells = foreign_cells(server, contexts, 5)
        server.execute("print a", contexts["no code"])
        server.stream("DELETE", "/contexts/" + contexts["DELETE"])
        server.stream("POST", "/contexts/%s/restart" % contexts["restart"])
        jupyter.wait(since=mark, ev="rest", name="session_delete")
        jupyter.wait(since=mark, ev="rest", name="restart")
        jupyter.wait(since=mark, ev="ws_open", kernel=server.kernel(contexts["no code"]))
        for pid in server.workers():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: port_answers(server.port), 5, "a new worker")
        jupyter.set(session_delete=None, restart=None)
        spared(server, contexts, cells, mark)
        is_(jupyter.log(mark, ev="start", code="print a"), [], "code that was not sent does not run")


main()
