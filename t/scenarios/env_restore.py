#!/usr/bin/python3
"""A request's variables: set before its code, put back behind it, whatever fails in between."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faulty import *

SET, RESTORE = "'k': 1", "del sys.__kexec_env__"     # of the snippets for Python


def violations(server, since=0):
    """Goes through what each process ran: code that has "with env" in it must find variables set, other code none."""
    found = []
    codes, dirty, kernels = {}, {}, set()
    for r in server.jupyter.log(since):
        kernel = r.get("kernel")
        if r["ev"] == "kernel_up":
            dirty[kernel] = False
        elif r["ev"] == "start":
            codes[r["msg_id"]] = r["code"]
            if not r["silent"]:
                wanted = "with env" in r["code"]
                if dirty.get(kernel, False) != wanted:
                    found.append("%r ran %s variables" % (r["code"], "without" if wanted else "with somebody's"))
        elif r["ev"] == "ran" and r["silent"]:
            code = codes[r["msg_id"]]
            # a snippet that fails may have done its work in part
            if SET in code:
                dirty[kernel] = True
            elif RESTORE in code and r["status"] == "ok":
                dirty[kernel] = False
    return found


def run(server, context, code, **fields):
    return gather([server.execute(code, context, **fields)], 12)[0]


def with_env(server, context, code="print with env", **fields):
    return run(server, context, code, env_vars={"A": "secret"}, **fields)


@scenario(many=20)
def put_back(server, rounds):
    """After any end of the code, and before anybody else's."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        mark = jupyter.mark()
        for code, told_, fields in (
                ("print with env", "ok", {}), ("error ValueError with env", "ValueError", {}),
                ("print with env\nsleep 30", "ExecutionTimeout", {"timeout": 0.3}),
                ("print with env\ndrop_reply", "ExecutionLost", {}), ("print with env\ndrop_idle", "ok", {}),
                ("print with env\nabort 2", "ok", {}), ("print with env\nlose 1", "ok", {}),
                ("print with env\nlose 99", "KernelUnresponsive", {}), ("print with env\ndie 0.1", "KernelDied", {}),
                ("print with env\ncut\nsleep 0.1", "ok", {}), ("print with env\nswallow 30", "ExecutionTimeout",
                                                               {"timeout": 0.3}),
                ("print with env\ndead", "KernelDied", {})):
            stream = with_env(server, context, code, **fields)
            is_(verdict(stream), told_, repr(code))
            is_(verdict(run(server, context, "print plain")), "ok", "the next one runs")
        none(violations(server, mark), "each ran with its own variables")


@scenario(many=20)
def restore_fails(server, rounds):
    """Putting back fails once: it is owed, and the next one does it."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        mark = jupyter.mark()
        jupyter.set(fail_silent={"match": RESTORE, "times": 1})
        is_(verdict(with_env(server, context)), "ok", "its client does not notice")
        is_(verdict(run(server, context, "print plain")), "ok", "the next one runs")
        none(violations(server, mark), "without the other one's variables")
        # for ever: nobody hangs
        jupyter.set(fail_silent={"match": RESTORE})
        for _ in range(2):
            is_(verdict(with_env(server, context)), "ok", "for ever: it runs")
            is_(verdict(run(server, context, "print plain")), "ok", "and the next one")
        jupyter.set(fail_silent=None)
        mark = jupyter.mark()
        run(server, context, "print with env after all")
        none([v for v in violations(server, mark) if "plain" in v], "and is put back when it can be")
        jupyter.set(abort_silent=0)


@scenario(rounds=3, many=20)
def set_after_death(server, rounds):
    """What sets them waits in Jupyter's socket when the process dies and the client leaves: the next process takes it."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        kernel = server.kernel(context)
        jupyter.kernel(kernel, "set", die_keeps_queue=True, autorestart_delay=0.2)
        run(server, context, "print first\nleftover 60")
        mark = jupyter.mark()
        a = server.execute("print with env", context, env_vars={"A": "secret"})
        jupyter.wait(since=mark, ev="execute", kernel=kernel)
        if i % 2:
            jupyter.kernel(kernel, "die")
        a.close()
        if not i % 2:
            jupyter.kernel(kernel, "die")
        for _ in range(2):
            is_(verdict(run(server, context, "print plain")), "ok", "the next one runs")
        none(violations(server, mark), "without the other one's variables")
        is_(len([r for r in jupyter.log(mark, ev="start", kernel=kernel) if SET in r["code"]]), 1, "which were set")


@scenario(many=20)
def set_fails(server, rounds):
    """Setting fails: EnvironmentError, the code does not run, and what may have been set is put back."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        mark = jupyter.mark()
        jupyter.set(fail_silent={"match": SET, "times": 1, "ename": "OSError"})
        stream = with_env(server, context)
        is_(verdict(stream), "EnvironmentError", "told")
        like(value(stream), "did not run", "that it did not run")
        is_(server.ran("print with env", mark), 0, "and indeed")
        is_(verdict(run(server, context, "print plain")), "ok", "the next one runs")
        none(violations(server, mark), "without the other one's variables")
        # set-up and restore fail both
        jupyter.set(fail_silent=[{"match": SET, "times": 1}, {"match": RESTORE, "times": 1}])
        is_(verdict(with_env(server, context)), "EnvironmentError", "and if putting back fails as well")
        is_(verdict(run(server, context, "print plain")), "ok", "the next one runs")
        none(violations(server, mark), "without the other one's variables")
        # cwd of a new context, then of a running one's new process
        jupyter.set(fail_silent={"match": "chdir"})
        is_(server.request("POST", "/contexts", {"cwd": "/nowhere"}).status, 400,
            "a directory that cannot be entered: 400")
        jupyter.set(fail_silent=None)


@scenario(many=20)
def silent_requests_aborted(server, rounds):
    """Silent requests that are answered `aborted` are repeated, with a bound."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(4)
        mark = jupyter.mark()
        for n, context in enumerate(contexts):
            jupyter.kernel(context, "set", abort_silent=[1, 3, 20, 0][n])
        streams = [server.execute("print with env %d" % n, c, env_vars={"A": "secret"}) for n, c in enumerate(contexts)]
        after = [server.execute("print plain", c) for c in contexts]
        gather(streams + after, 12)
        is_([verdict(s) for s in streams + after], ["ok"] * 8, "all run")
        none(violations(server, mark), "each with its own variables")
        # for ever
        since = jupyter.mark()
        jupyter.kernel(contexts[0], "set", abort_silent=10 ** 9)
        stream = with_env(server, contexts[0], "print with env never")
        ok(verdict(stream) in ("KernelNotReady", "KernelUnresponsive"), "aborted for ever: told", verdict(stream))
        at_most(took(stream), 6.5, "within kexec_ready_timeout")
        is_(server.ran("print with env never", since), 0, "the code did not run")
        many = len(jupyter.log(since, ev="execute", silent=True))
        ok(many <= 200, "without a storm of requests", "%d in %.1f s" % (many, took(stream)))
        jupyter.kernel(contexts[0], "set", abort_silent=0)
        # while putting back
        stream = server.execute("print with env\nsleep 0.5", contexts[1], env_vars={"A": "secret"})
        stream.wait_for("stdout")
        jupyter.kernel(contexts[1], "set", abort_silent=10 ** 9)
        gather([stream])
        time.sleep(0.2)
        jupyter.kernel(contexts[1], "set", abort_silent=0)
        for context in contexts:
            server.usable(context, limit=4)
        none(violations(server, mark), "each with its own variables")


@scenario(many=20)
def leave_during_set_up(server, rounds):
    """The client leaves while variables are set or put back; its code does not run, nothing is left."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(6)
        mark = jupyter.mark()
        jupyter.set(silent_delay=0.7)
        streams = [server.execute("print with env %d" % n, c, env_vars={"A": "secret"}) for n, c in enumerate(contexts)]
        jupyter.wait(count=6, since=mark, ev="start", silent=True)
        time.sleep(0.05)
        for n in 0, 1:
            streams[n].close()
        jupyter.kernel(contexts[2], "cut")
        streams[2].reset()
        streams[3].close()
        jupyter.kernel(contexts[3], "die")
        for n in 4, 5:
            streams[n].wait_for("end_of_execution")         # being put back now
        time.sleep(0.05)
        jupyter.kernel(contexts[4], "cut")
        jupyter.kernel(contexts[5], "die")
        after = gather([server.execute("print plain", c) for c in contexts], 12)
        is_([verdict(s) for s in after], ["ok"] * 6, "the next ones run")
        at_most(max(took(s) for s in after), 6, "soon")
        is_([server.ran("print with env %d" % n, mark) for n in range(4)], [0] * 4, "none of those who left ran")
        none(violations(server, mark), "each ran with its own variables")
        jupyter.set(silent_delay=None)


@scenario(many=20)
def cut_in_setup(server, rounds):
    """The link is cut while variables are set: before, during and after the silent request runs."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(8)
        mark = jupyter.mark()
        jupyter.set(silent_delay=0.7)
        streams = []
        for n, context in enumerate(contexts):
            streams.append(server.execute("print with env %d" % n, context, env_vars={"A": "secret"}))
        jupyter.wait(count=8, since=mark, ev="start", silent=True)
        for n, context in enumerate(contexts):
            time.sleep(0.04)
            jupyter.kernel(context, ["cut", "close"][n % 2])
        gather(streams, 12)
        # on a slow machine one may be past its set-up
        told_ = [verdict(s) for s in streams]
        ok(set(told_) <= {"ok", "LinkLost"} and told_.count("LinkLost") <= 2, "all run", repr(told_))
        is_([s.text() for s in streams], ["with env %d\n" % n if told_[n] == "ok" else "" for n in range(8)],
            "their output is there")
        at_most(max(took(s) for s in streams), 4, "soon")
        is_([server.ran("print with env %d" % n, mark) for n in range(8)], [int(t == "ok") for t in told_], "once")
        jupyter.set(silent_delay=None)
        for context in contexts:
            server.usable(context)
        none(violations(server, mark), "each ran with its own variables")


@scenario(location="kexec_max_code_size 20m;")
def too_large(server, rounds):
    """Jupyter takes no message over 10 MiB: told at once, and no storm of links."""
    jupyter = server.jupyter
    context = server.create_context()
    for _ in range(3):
        mark = jupyter.mark()
        stream = run(server, context, "print with env", env_vars={"A": "x" * (11 << 20)})
        is_(verdict(stream), "EnvironmentError", "variables")
        at_most(took(stream), 3, "at once")
        ok(len(jupyter.log(mark, ev="ws_open")) < 4, "with few links")
        stream = run(server, context, "#" + "x" * (11 << 20))
        is_(verdict(stream), "CodeTooLarge", "code")
        at_most(took(stream), 3, "at once")
        server.usable(context)
    none(violations(server), "nothing is left set")


@scenario(rounds=12, many=200)
def fuzz(server, rounds):
    """Executions with and without variables, clients that leave, links that break, silent requests that fail."""
    jupyter = server.jupyter
    contexts = server.contexts(8)
    mark = jupyter.mark()
    jupyter.set(silent_delay=0.03, interrupt={"delay": [0, 0.05]}, order="random")

    def one(context, seed):
        rng = random.Random(seed)
        for i in range(rounds):
            env = rng.random() < 0.5
            code = rng.choice(["print %s", "print %s\nsleep 0.2", "error E %s", "print %s\nswallow 0.2",
                               "sleep 0.1\nprint %s\nabort 1",
                               "print %s\nsleep 5"]) % ("with env" if env else "plain")
            if rng.random() < 0.2:
                jupyter.kernel(context, "set", abort_silent=rng.randint(1, 3))
            if rng.random() < 0.1:
                jupyter.kernel(context, "set", fail_silent=[{"match": rng.choice([SET, RESTORE]), "times": 1}])
            fields = {"env_vars": {"A": "secret"}} if env else {}
            stream = server.execute(code, context, **fields)
            time.sleep(rng.uniform(0, 0.25))
            if rng.random() < 0.15:
                jupyter.kernel(context, rng.choice(["cut", "close", "die"]))
            if rng.random() < 0.6:
                stream.close()
            elif "sleep 5" in code:
                server.request("POST", "/contexts/%s/interrupt" % context)
            if not stream.ended:
                stream.finish(15)
                if verdict(stream).startswith("no end") or verdict(stream).startswith("several"):
                    yield "round %d.%d, %r: %s" % (seed, i, code, verdict(stream))
            after = server.run("print plain", context_id=context)
            # what was sent when the link broke may be lost with it, a process may die under it
            if verdict(after) not in ("ok", "LinkLost", "KernelDied"):
                yield "round %d.%d, after %r: %s %r" % (seed, i, code, verdict(after), value(after))
            elif took(after) > 6 * slack():
                yield "round %d.%d, after %r: took %.1f s" % (seed, i, code, took(after))

    none(parallel([lambda c=c, n=n: list(one(c, n)) for n, c in enumerate(contexts)], 60 + 3 * rounds),
         "%d rounds" % (rounds * len(contexts)))
    none([v for v in violations(server, mark) if "somebody's" in v], "no code saw another one's variables")


main(Faulty, workers=(1,), jobs=10)
