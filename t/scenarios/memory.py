#!/usr/bin/python3
"""Whatever is done again and again takes no more memory than at first: one thing at a time, nothing else happens."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from workers import *

# kB by which a worker may grow each time: what is lost for good is a pool, a buffer, a connection.  And by which its
# heap may grow once: sizes that come together for the first time.
EACH, ONCE = 0.5, 64


def execution(server, context):
    return told(server.run("print x", context_id=context)), "ok"


def variables(server, context):
    return told(server.run("print x", context_id=context, env_vars={"A": "b" * 1000})), "ok"


def output(server, context):
    return told(server.run("flood 100 1000", context_id=context)), "ok"


def error(server, context):
    return told(server.run("error NameError x", context_id=context)), "NameError"


def timeout(server, context):
    return told(server.run("sleep 30", context_id=context, timeout=0.02)), "ExecutionTimeout"


def leaving(server, context):
    stream = server.execute("print x\nsleep 30", context)
    stream.wait_for("stdout")
    stream.reset()
    return execution(server, context)


def leaving_at_once(server, context):
    server.execute("print x\nsleep 30", context).reset()
    return execution(server, context)


def waiting(server, context):
    streams = [server.execute("print x", context) for _ in range(5)]
    streams.pop(2).reset()
    return {told(s) for s in streams}, {"ok"}


def interrupt(server, context):
    stream = server.execute("print x\nsleep 30", context)
    stream.wait_for("stdout")
    return (server.request("POST", "/contexts/%s/interrupt" % context).status, told(stream)), (200, "KeyboardInterrupt")


def restart(server, context):
    return (server.request("POST", "/contexts/%s/restart" % context).status, *execution(server, context)), (200, "ok", "ok")


def death(server, context):
    return (told(server.run("print x\ndie 0.01", context_id=context)), *execution(server, context)), ("KernelDied", "ok", "ok")


def given_up(server, context):
    return (told(server.run("print x\ndead", context_id=context)), *execution(server, context)), ("KernelDied", "ok", "ok")


def made_and_deleted(server, _):
    context = server.create_context()
    return (*execution(server, context), server.request("DELETE", "/contexts/" + context).status), ("ok", "ok", 200)


def cut(server, context):
    stream = server.execute("print x\nsleep 0.1\nprint y", context)
    stream.wait_for("stdout")
    server.jupyter.cut_all()
    return told(stream), "ok"


def cut_while_idle(server, context):
    server.jupyter.cut_all()
    got, wanted = execution(server, context)
    return "ok" if got == "LinkLost" else got, wanted       # where the worker had not heard of it yet


def questions(server, context):
    return ({server.request("GET", path).status for path in ("/contexts", "/health")},
            server.request("POST", "/execute", {"code": 5}).status,
            server.request("POST", "/execute", {"code": "1", "language": "nope"}).status), ({200}, 422, 400)


# how often each; a new process takes a second or so
KINDS = {execution: 200, variables: 100, output: 50, error: 100, timeout: 50, leaving: 60, leaving_at_once: 60, waiting: 40,
         interrupt: 50, restart: 8, death: 4, given_up: 20, made_and_deleted: 40, cut: 40, cut_while_idle: 60,
         questions: 100}


def anonymous(pid):
    """kB that are the process' own."""
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"RssAnon:\s*(\d+) kB", f.read()).group(1))


def make(kind, n):
    def one_kind(server, rounds):
        context = server.create_context()
        wrong, sizes, times = [], [], n * rounds
        for part in range(2):
            for _ in range(times):
                got, wanted = kind(server, context)
                if got != wanted:
                    wrong.append(got)
            sizes.append(anonymous(server.workers()[0]))
        is_(wrong, [], "all of them are as they should be")
        memory_within((sizes[1] - sizes[0]) << 10, (ONCE + EACH * times) * 1024, "%d of them" % times)
        diag("%s: %d of them took %d kB" % (kind.__name__, times, sizes[1] - sizes[0]))
        server.request("DELETE", "/contexts/" + context)
    one_kind.__name__ = kind.__name__
    scenario(rounds=1, many=20, workers=(1,))(one_kind)


for kind, n in KINDS.items():
    make(kind, n)


@scenario(rounds=1, many=20, workers=(1,))
def reloads(server, rounds):
    """Of the process that starts the workers: each reload reads the configuration anew."""
    sizes = []
    for part in range(2):
        for _ in range(15 * rounds):
            server.reload()
            wait_until(lambda: len(server.workers()) == 1, 10, "the old worker's end")
        sizes.append(anonymous(server.pid))
    memory_within((sizes[1] - sizes[0]) << 10, (ONCE + EACH * 15 * rounds) * 1024, "%d of them" % (15 * rounds))
    diag("reloads: %d of them took %d kB" % (15 * rounds, sizes[1] - sizes[0]))


main(lambda workers: Workers(workers, "kexec_interrupt_timeout 2s;", jupyter=ScriptedJupyter()), workers=(1,))
