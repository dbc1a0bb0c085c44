#!/usr/bin/python3
"""Contexts whose making is cut short: nobody is told that they are there, and what comes next makes them anew."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faults import *


def sessions(server):
    """How many sessions and kernels there are in Jupyter."""
    return len(server.rest("GET", "/api/sessions").json()), len(server.rest("GET", "/api/kernels").json())


def listed(server):
    return [c["id"] for c in server.request("GET", "/contexts").json()]


def health(server):
    """Of the location that has default contexts."""
    return request(server.health_port, "GET", "/health").status


# Where the making of a context is when it is deleted: what makes that last, and how it is seen in Jupyter
MAKING = {
    "kernels are asked for": ({"kernelspecs": {"delay": 0.7}}, {"ev": "rest", "name": "kernelspecs"}),
    "a session is made": ({"session_create": {"delay": 0.7}}, {"ev": "rest", "name": "session_create"}),
    "the link is opened": ({"channels": {"delay": 0.7}}, {"ev": "rest", "name": "channels"}),
    "the kernel starts": ({"start_delay": 0.7}, {"ev": "ws_open"}),
    "directory and variables are set": ({"silent_delay": 0.7}, {"ev": "start", "silent": True}),
    "its session is renamed": ({"session_patch": {"delay": 0.7}}, {"ev": "rest", "name": "session_patch"}),
}


@scenario(workers=2, many=10)
def default_deleted_while_made(server, rounds):
    """DELETE /contexts/default at any moment of its making: it is gone, and the next use makes another one."""
    jupyter = server.jupyter
    wait_until(lambda: health(server) == 200, 10, "the default context")
    for i in range(rounds):
        for name, (slow, seen) in MAKING.items():
            is_(server.request("DELETE", "/contexts/default").status, 200, name + ": there is none")
            before = sessions(server)
            jupyter.set(**slow)
            mark = jupyter.mark()
            maker = server.execute("print maker")
            jupyter.wait(since=mark, **seen)
            waits = server.execute("print waits")
            deletion = gather([server.stream("DELETE", "/contexts/default")], 10)[0]
            jupyter.set(**{key: 0 if key.endswith("delay") else None for key in slow})
            gather([maker, waits], 15)
            is_(deletion.status, 200, "it is deleted while it is made")
            ok(maker.status == 500 or (verdict(maker), maker.text()) == ("ok", "maker\n"),
               "who made it is told, or runs in another one", (maker.status_line, maker.all()))
            is_((verdict(waits), waits.text()), ("ok", "waits\n"), "who waited for it runs in another one")
            server.usable(None)
            is_(sessions(server), (before[0] + 1, before[1] + 1), "nothing is left of the first one")
            is_(len(listed(server)), 1, "one is listed")


@scenario(workers=2, many=10)
def deleted_at_start(server, rounds):
    """The same for the one that is made at start-up: /health is 200 only once there is one."""
    jupyter = server.jupyter
    for i in range(rounds):
        for name, (slow, seen) in MAKING.items():
            wait_until(lambda: health(server) == 200, 10, "the default context")
            is_(server.request("DELETE", "/contexts/default").status, 200, name + ": there is none")
            server.kill()
            jupyter.set(**slow)
            mark = jupyter.mark()
            server.start_nginx()
            jupyter.wait(since=mark, **seen)
            is_(server.request("DELETE", "/contexts/default").status, 200, "it is deleted while it is made")
            at_once = health(server)
            jupyter.set(**{key: 0 if key.endswith("delay") else None for key in slow})
            is_(at_once, 503, "/health does not take it for ready")
            wait_until(lambda: health(server) == 200, 10, "the default context")
            is_(len(listed(server)), 1, "then there is one")
            server.usable(None)
            server.pids = set(server.workers())


@scenario(many=10)
def deletion_fails_while_made(server, rounds):
    """Jupyter does not delete the session of a context that is not made: it is no context for all that."""
    jupyter = server.jupyter
    wait_until(lambda: health(server) == 200, 10, "the default context")
    for i in range(rounds):
        for fault in {"status": 500}, {"reset": True}:
            is_(server.request("DELETE", "/contexts/default").status, 200, "there is none")
            jupyter.set(session_create={"delay": 0.7}, session_delete=fault)
            mark = jupyter.mark()
            maker = server.execute("print maker")
            jupyter.wait(since=mark, ev="rest", name="session_create")
            deletion = gather([server.stream("DELETE", "/contexts/default")], 10)[0]
            gather([maker], 10)
            jupyter.set(session_create=None, session_delete=None)
            ok(deletion.status in (500, 503), "that is told", deletion.status)
            ok(maker.status in (500, 503), "who made it is told", maker.status)
            is_(listed(server), [], "it is not listed")
            server.usable(None)


main()
