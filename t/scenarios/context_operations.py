#!/usr/bin/python3
"""Restarts, deletions and interrupts that Jupyter refuses, that come in numbers, whose clients leave."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faulty import *


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


@scenario(workers=(2,), many=5, location="kexec_ready_timeout 15s;")
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


# Many at once


def restarts(server, context, n):
    return [server.stream("POST", "/contexts/%s/restart" % context) for _ in range(n)]


def running(server, context, code):
    stream = server.execute("print a\n" + code, context)
    stream.wait_for("stdout")
    return stream


def calls(jupyter, mark, name):
    return len(jupyter.log(mark, ev="rest", name=name))


@scenario(many=10)
def one_for_all(server, rounds):
    """Fifteen restarts of one context: one is done, and answers all of them, those that come while it goes on too."""
    jupyter = server.jupyter
    for i in range(rounds):
        for fault, status in {None: 200, 500: 500, "reset": 503}.items():
            context = server.create_context()
            a = running(server, context, "sleep 30")
            jupyter.set(restart={"delay": 0.7, "act": True, **({"reset": True} if fault == "reset" else
                                                              {"status": 500} if fault else {})})
            mark = jupyter.mark()
            streams = restarts(server, context, 8)
            jupyter.wait(since=mark, ev="rest", name="restart", fault=True)
            b = server.execute("print b", context)
            b.wait_head(5)
            streams += restarts(server, context, 7)
            gather(streams + [a, b], 10)
            is_([s.status for s in streams], [status] * 15, "all of them are answered: %s" % fault)
            is_((verdict(a), verdict(b)), ("ContextRestarted", "ContextRestarted"), "who ran or waited is told")
            # what Jupyter raised at is asked again, five times
            is_(calls(jupyter, mark, "restart"), 6 if fault == 500 else 1, "by one restart")
            jupyter.set(restart=None)
            server.usable(context)


@scenario(many=10)
def dropped(server, rounds):
    """Fifteen restarts whose clients leave at once: what they ended is restarted, once, and the next one runs."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        jupyter.kernel(context, "set", restart_delay=1)
        mark = jupyter.mark()
        one = restarts(server, context, 1)[0]
        one.answer()
        single = one.finished_at - one.sent_at

        a = running(server, context, "swallow 60")
        mark = jupyter.mark()
        for stream in restarts(server, context, 15):
            stream.wait_head(0.01)
            stream.reset()
        left = time.monotonic()
        b = gather([server.execute("print b", context)], 20)[0]
        gather([a])
        is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs")
        is_(verdict(a), "ContextRestarted", "who ran was told")
        is_(calls(jupyter, mark, "restart"), 1, "by one restart")
        at_most(b.finished_at - left, 2 * single + 2, "soon")


@scenario(many=10, default_contexts="")
def left_before_it_began(server, rounds):
    """A restart that waits for a context to be made, and nobody waits for the restart any more: it is not done."""
    jupyter = server.jupyter
    for i in range(rounds):
        jupyter.set(session_create={"delay": 1, "times": 1})
        mark = jupyter.mark()
        a = server.execute("print a")
        jupyter.wait(since=mark, ev="rest", name="session_create")
        for stream in restarts(server, "default", 3):
            stream.wait_head(0.2)
            stream.close()
        gather([a])
        is_((verdict(a), a.text()), ("ok", "a\n"), "the context is made")
        server.usable("default")
        is_(calls(jupyter, mark, "restart"), 0, "and not restarted")
        server.request("DELETE", "/contexts/default")


@scenario(many=10)
def delete_is_finished(server, rounds):
    """A DELETE whose client leaves is finished: the context was gone for everybody else by then."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        session = server.session(context)["id"]
        jupyter.set(restart={"delay": 1, "times": 1})
        mark = jupyter.mark()
        restart = restarts(server, context, 1)[0]
        jupyter.wait(since=mark, ev="rest", name="restart", fault=True)
        deletion = server.stream("DELETE", "/contexts/" + context)
        deletion.wait_head(0.2)
        is_(server.request("POST", "/contexts/%s/restart" % context).status, 404, "the context is gone")
        deletion.close()
        gather([restart])
        jupyter.wait(since=mark, ev="rest", name="session_delete", **{"path~": session})
        wait_until(lambda: server.session(context) is None, 5, "the session's end")
        is_(server.request("DELETE", "/contexts/" + context).status, 404, "it stays gone")


@scenario(many=10, location="kexec_queue size=3 timeout=20s;")
def too_many(server, rounds):
    """More restarts or interrupts of one context than kexec_queue lets wait: 429, as for executions."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        jupyter.set(restart={"delay": 1, "times": 1})
        mark = jupyter.mark()
        streams = restarts(server, context, 1)
        jupyter.wait(since=mark, ev="rest", name="restart", fault=True)
        streams += restarts(server, context, 10)
        gather(streams, 10)
        refused = [s for s in streams if s.status != 200]
        is_(sorted(s.status for s in streams), [200] * 4 + [429] * 7, "one at work, three that wait")
        is_({s.headers.get("retry-after") for s in refused}, {"1"}, "the others may come again")
        like(refused[0].body, "restarts are waiting", "in words")

        a = running(server, context, "swallow 60")
        streams = [server.stream("POST", "/contexts/%s/interrupt" % context) for _ in range(10)]
        gather(streams, 10)
        is_(sorted(s.status for s in streams), [429] * 7 + [504] * 3, "three interrupts wait")
        refused = next(s for s in streams if s.status == 429)
        is_(refused.headers.get("retry-after"), "1", "the others may come again")
        like(refused.body, "interrupts are waiting", "in words")
        a.close()


@scenario(many=5, default_contexts="", location="kexec_queue size=3 timeout=20s;")
def too_many_for_a_new_one(server, rounds):
    """Executions that wait for their default context to be made are limited by kexec_queue as well."""
    jupyter = server.jupyter
    for i in range(rounds):
        jupyter.set(session_create={"delay": 1, "times": 1})
        mark = jupyter.mark()
        streams = [server.execute("print %d" % n) for n in range(8)]
        gather(streams, 10)
        refused = [s for s in streams if s.status != 200]
        is_(sorted(s.status for s in streams), [200] * 4 + [429] * 4, "one that will run, three that will wait")
        made = jupyter.wait(since=mark, ev="session_created")["t"]
        ok(max(s.finished_at for s in refused) < made, "the others are refused while it is made")
        server.request("DELETE", "/contexts/default")


main(Faulty, workers=(1,), jobs=10)
