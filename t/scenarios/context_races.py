#!/usr/bin/python3
"""Contexts that are deleted while they are made, and contexts whose kernels are gone."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faulty import *
from link_proxy import LinkProxy


def sessions(server):
    """How many sessions and kernels there are in Jupyter."""
    return len(server.rest("GET", "/api/sessions").json()), len(server.rest("GET", "/api/kernels").json())


def listed(server):
    return [c["id"] for c in server.request("GET", "/contexts").json()]


def health(server):
    """Of the location that has default contexts."""
    return request(server.health_port, "GET", "/health").status


def making():
    """Where the making of a context is when it is deleted: what makes that last, longer than the deletion takes to come, and
    how it is seen in Jupyter."""
    delay = min(0.5 * slack(), 2.5)                      # Jupyter has 5 s to answer
    return {
        "kernels are asked for": ({"kernelspecs": {"delay": delay}}, {"ev": "rest", "name": "kernelspecs"}),
        "a session is made": ({"session_create": {"delay": delay}}, {"ev": "rest", "name": "session_create"}),
        "the link is opened": ({"channels": {"delay": delay}}, {"ev": "rest", "name": "channels"}),
        "the kernel starts": ({"start_delay": delay}, {"ev": "ws_open"}),
        "directory and variables are set": ({"silent_delay": delay}, {"ev": "start", "silent": True}),
        "its session is renamed": ({"session_patch": {"delay": delay}}, {"ev": "rest", "name": "session_patch"}),
    }


@scenario(workers=(2,), many=10)
def default_deleted_while_made(server, rounds):
    """DELETE /contexts/default at any moment of its making: it is gone, and the next use makes another one."""
    jupyter = server.jupyter
    wait_until(lambda: health(server) == 200, 10, "the default context")
    for i in range(rounds):
        for name, (slow, seen) in making().items():
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


@scenario(workers=(2,), many=10)
def deleted_at_start(server, rounds):
    """The same for the one that is made at start-up: /health is 200 only once there is one."""
    jupyter = server.jupyter
    for i in range(rounds):
        for name, (slow, seen) in making().items():
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


@scenario(workers=(4,), many=10)
def given_up_unheard(server, rounds):
    """A kernel that is given up while nothing runs: whatever its workers heard of that, the context lives on."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(8)
        for context in contexts:
            server.run("set x 1", context_id=context)
        old = [server.kernel(c) for c in contexts]
        mark = jupyter.mark()
        jupyter.cut_all()                       # nobody hears of it
        jupyter.wait(count=len(contexts), since=mark, ev="ws_close")
        for context in contexts:
            jupyter.kernel(context, "dead")
        jupyter.wait(count=len(contexts), since=mark, ev="kernel_removed")
        streams = [server.execute("get x", c) for c in contexts]
        again = [server.execute("print again", c) for c in contexts]
        gather(streams + again, 15)
        is_([verdict(s) for s in streams], ["NameError"] * len(contexts), "all run, in new kernels")
        is_([(verdict(s), s.text()) for s in again], [("ok", "again\n")] * len(contexts), "so does what waits")
        ok(not set(old) & {server.kernel(c) for c in contexts}, "each has another one")
        is_(len(jupyter.log(mark, ev="session_created")), len(contexts), "and one only")
        is_([c for c in contexts if c not in listed(server)], [], "their ids are the same")


@scenario(workers=(2,), many=10, start_delay=0.3)
def operations_without_kernel(server, rounds):
    """Restart, interrupt and deletion of a context whose kernel is gone, known or not."""
    jupyter = server.jupyter
    for i in range(rounds):
        for heard in True, False:
            contexts = server.contexts(4)
            mark = jupyter.mark()
            if not heard:
                jupyter.cut_all()
                jupyter.wait(count=len(contexts), since=mark, ev="ws_close")
            for context in contexts:
                jupyter.kernel(context, "dead")
            jupyter.wait(count=len(contexts), since=mark, ev="kernel_removed")
            a = server.execute("print runs", contexts[0])
            b = server.execute("print waits", contexts[0])
            a.wait_head()
            statuses = [server.request("POST", "/contexts/%s/%s" % (contexts[1], "restart")).status,
                        server.request("POST", "/contexts/%s/%s" % (contexts[2], "interrupt")).status,
                        server.request("DELETE", "/contexts/" + contexts[3]).status]
            is_(statuses, [200] * 3, "all are done (%sheard of)" % ("" if heard else "not "))
            gather([a, b], 10)
            is_([verdict(a), verdict(b)], ["ok"] * 2, "what came first runs")
            for context in contexts[:3]:
                server.usable(context)
            is_(server.request("DELETE", "/contexts/" + contexts[3]).status, 404, "the deleted one is gone")
            ok(contexts[3] not in listed(server), "and not listed")


@scenario(workers=(2,), many=5)
def jupyter_started_anew(server, rounds):
    """Jupyter loses all its kernels at once: every context goes on, running code is told."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(4)
        before = listed(server)
        busy = server.execute("print a\nsleep 30", contexts[0])
        busy.wait_for("stdout")
        waits = server.execute("print waits", contexts[0])
        jupyter.stop(signal.SIGKILL)
        jupyter.start()
        gather([busy, waits], 15)
        ok(verdict(busy) in ("KernelDied", "JupyterUnavailable"), "running: told", verdict(busy))
        is_((verdict(waits), waits.text()), ("ok", "waits\n"), "waiting: runs in a new kernel")
        for context in contexts[1:]:
            server.usable(context)
        server.usable(None)
        is_(listed(server), before, "the same contexts are there, in order")


@scenario(workers=(2,), many=5, http="kexec_max_contexts 6;")
def oldest_makes_room(server, rounds):
    """As many contexts as allowed: those without a kernel make room, the one that was not used for longest first."""
    jupyter = server.jupyter
    server.run("print default")
    for i in range(rounds):
        contexts = server.contexts(5)
        is_(server.request("POST", "/contexts", {}).status, 429, "no one has to go that has a kernel")
        for context in contexts:
            server.run("print used in this order", context_id=context)
        mark = jupyter.mark()
        for context in contexts[:3]:
            jupyter.kernel(context, "dead")
        jupyter.wait(count=3, since=mark, ev="kernel_removed")
        server.usable(contexts[0])              # has another one
        jupyter.kernel(contexts[0], "dead")     # and lost it, later than the others
        wait_until(lambda: server.session(contexts[0]) is None, 5, "its end")
        made = []
        for left in ([0, 2, 3, 4], [0, 3, 4], [3, 4]):
            answer = server.request("POST", "/contexts", {})
            is_(answer.status, 200, "another one is made")
            made.append(answer.json()["id"])
            is_([n for n, c in enumerate(contexts) if c in listed(server)], left, "the oldest went")
        is_(server.request("POST", "/contexts", {}).status, 429, "then there are as many as allowed")
        for context in contexts[3:] + made:
            server.usable(context)
            is_(server.request("DELETE", "/contexts/" + context).status, 200, "deleted")


@scenario(workers=(2,), many=10)
def jupyter_raises(server, rounds):
    """A call about a kernel that has just died may be a 500 for a second: it is made again, until it is clear."""
    jupyter = server.jupyter
    for i in range(rounds):
        for times in 1, 3:
            context = server.create_context()
            mark = jupyter.mark()
            jupyter.set(restart={"status": 500, "times": times}, session_delete={"status": 500, "times": times})
            is_(server.request("POST", "/contexts/%s/restart" % context).status, 200, "it is restarted")
            is_(len(jupyter.log(mark, ev="rest", name="restart")), times + 1, "when Jupyter can")
            server.usable(context)
            is_(server.request("DELETE", "/contexts/" + context).status, 200, "it is deleted")
            is_(len(jupyter.log(mark, ev="rest", name="session_delete")), times + 1, "when Jupyter can")
            is_((server.session(context), context in listed(server)), (None, False), "nothing is left")


@scenario(workers=(2,), many=5)
def idle_elsewhere(server, rounds):
    """Idle contexts that cannot be deleted, as no location has their server any more, stand in nobody's way."""
    path = os.path.join(server.run_dir, "nginx.conf")
    with open(path) as f:
        first = f.read()
    for i in range(rounds):
        old = server.contexts(6)
        with LinkProxy(server.jupyter.port) as proxy:
            with open(path, "w") as f:
                f.write(re.sub(r"(kexec_zone [^;]+;)", r"\1 kexec_context_idle_timeout 1s;",
                               re.sub(r"server 127\.0\.0\.1:\d+;", "server 127.0.0.1:%d;" % proxy.port, first)))
            workers = set(server.workers())
            server.reload()
            wait_until(lambda: not workers & set(server.workers()), 10, "the old workers' end")
            new = server.contexts(6)
            wait_until(lambda: not set(new) & set(listed(server)), 20, "the end of all idle ones")
            is_([c for c in old if c not in listed(server)], [], "the others are there")
            with open(path, "w") as f:
                f.write(first)
            workers = set(server.workers())
            server.reload()
            wait_until(lambda: not workers & set(server.workers()), 10, "the old workers' end")
            server.pids = set(server.workers())


main(Faulty, workers=(1,), jobs=10)
