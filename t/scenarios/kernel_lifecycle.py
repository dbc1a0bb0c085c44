#!/usr/bin/python3
"""Kernels that start slowly, die, are given up, deleted or restarted by somebody else: who runs is told, who waits runs
once, and what runs then finds its directory and variables."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faulty import *


def prepared(server, context, name):
    """The process that the context has now was given its working directory and the common variables."""
    stream = server.run("env", context_id=context)
    silent = json.loads(stream.text() or "[]")
    return ok(verdict(stream) == "ok" and any("chdir" in s for s in silent), name,
              repr((verdict(stream), stream.text()[:300])))


def lives(server, context, name):
    ids = [c["id"] for c in server.request("GET", "/contexts").json()]
    return ok(context in ids, name, repr(ids))


# Start


@scenario(location="kexec_ready_timeout 8s;")
def slow_start(server, rounds):
    """A kernel that needs longer than kexec_reconnect_timeout: that is not Jupyter's fault."""
    jupyter = server.jupyter
    jupyter.set(start_delay=3.5)
    stream = gather([server.stream("POST", "/contexts", {})], 12)[0]
    is_(stream.status, 200, "a context is made")
    between(took(stream), 3.4, 6, "when its kernel is there")
    context = json.loads(stream.body)["id"] if stream.status == 200 else None

    # and the same for a kernel that was given up
    jupyter.set(start_delay=None)
    context = context or server.create_context()
    jupyter.kernel(context, "dead")
    jupyter.wait(ev="kernel_removed", why="dead")
    jupyter.set(start_delay=3.5)
    streams = gather([server.execute("print %d" % n, context) for n in range(2)], 12)
    is_([(verdict(s), s.text()) for s in streams], [("ok", "0\n"), ("ok", "1\n")],
        "code runs in a new one that starts slowly")


@scenario(location="kexec_ready_timeout 2s;")
def never_ready(server, rounds):
    """A kernel that does not answer, or not on both channels: 503 within kexec_ready_timeout, and nothing is left behind."""
    jupyter = server.jupyter
    for fault in {"drop": True}, {"drop_iopub": True}, {"drop_reply": True}:
        before = len(jupyter.state()["kernels"])
        jupyter.set(kernel_info=fault)
        stream = gather([server.stream("POST", "/contexts", {})], 12)[0]
        is_(stream.status, 503, "%s: 503" % list(fault)[0])
        between(took(stream), 2, 3, "after kexec_ready_timeout")
        wait_until(lambda: len(jupyter.state()["kernels"]) == before, 3, "its kernel's end")


@scenario()
def ready_late(server, rounds):
    """A kernel whose first answers are lost."""
    jupyter = server.jupyter
    for fault in {"drop": 2}, {"drop_iopub": 2}, {"drop_reply": 2}:
        jupyter.set(kernel_info=fault)
        stream = gather([server.stream("POST", "/contexts", {})], 12)[0]
        is_(stream.status, 200, "%s: after a while it is ready" % fault)
        at_most(took(stream), 4, "soon")
        jupyter.set(kernel_info=None)
        server.usable(json.loads(stream.body)["id"])


@scenario(iopub_subscription_delay=0.4)
def late_subscription(server, rounds):
    """Jupyter's iopub reaches a fresh link late: nothing is lost, for nothing is sent before."""
    for i in range(3):
        context = server.create_context()
        streams = [server.execute("print %d" % n, context) for n in range(3)]
        gather(streams, 10)
        is_([(verdict(s), s.text(), dropped(s)) for s in streams], [("ok", "%d\n" % n, False) for n in range(3)],
            "all is there")
        server.jupyter.kernel(context, "cut")
        time.sleep(0.1)
        stream = server.run("print again", context_id=context)
        is_((verdict(stream), stream.text(), dropped(stream)), ("ok", "again\n", False), "and on a new link")


@scenario(rounds=2, many=10)
def deaf_link(server, rounds):
    """A link through which nothing comes, as Jupyter gives one when the last one ended too early, and all of its session."""
    context = server.create_context()
    for i in range(rounds):
        server.run("set x %d" % i, context_id=context)
        server.jupyter.kernel(context, "cut")
        server.jupyter.set(deaf=1 + i % 2)
        mark = server.jupyter.mark()
        stream = server.run("get x", context_id=context, stream_timeout=40)
        is_((verdict(stream), stream.text(), dropped(stream)), ("ok", "%d\n" % i, False), "it runs on another link")
        at_most(took(stream), 5, "soon")
        is_(len(server.jupyter.log(mark, ev="start", code="get x")), 1, "once")


@scenario(many=5)
def overloaded(server, rounds):
    """Nothing comes through a link, nor any answer of Jupyter's: what that has for the link must not be thrown away."""
    jupyter = server.jupyter
    context = server.create_context()
    server.run("set x 7", context_id=context)
    jupyter.kernel(context, "cut")
    jupyter.set(deaf=1, kernel_get={"hang": True})
    mark = jupyter.mark()
    stream = server.execute("get x", context, stream_timeout=40)
    jupyter.wait(ev="rest", since=mark, method="GET", path="/api/kernels/" + server.kernel(context))
    time.sleep(3)           # a link is taken for deaf by then
    is_(len(jupyter.log(mark, ev="ws_open")), 1, "the link is left alone")
    jupyter.set(kernel_get=None)
    stream.finish(20)
    is_((verdict(stream), stream.text()), ("ok", "7\n"), "it runs on another link when Jupyter answers")


@scenario(many=5, location="kexec_ready_timeout 30s; kexec_interrupt_timeout 8s;")
def deaf_while_running(server, rounds):
    """A link through which nothing comes any more: what is known is told, and the context lives."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(4)
        for context in contexts:
            server.run("print ready", context_id=context)
        busy = server.execute("print busy\nsleep 3", contexts[2])
        busy.wait_for("stdout")
        for context in contexts:
            jupyter.kernel(context, "deaf")
        sent = [server.execute("print sent", contexts[0]), server.execute("print sent", contexts[1]), busy,
                server.execute("lose 1\nprint lost", contexts[3])]
        queued = [server.execute("print next", context) for context in contexts]
        time.sleep(0.2)
        sent[1].reset()
        gather([sent[0], sent[2], sent[3], *queued], 40)
        is_([verdict(s) for s in queued], ["ok"] * 4, "who waited runs")
        at_most(max(took(s) for s in queued), 25, "before long")
        ok(verdict(sent[0]) == "LinkLost" and "may or may not have run" in value(sent[0]), "told what is known",
           value(sent[0]))
        ok(verdict(sent[2]) == "ExecutionLost" or dropped(sent[2]), "and of code that was seen to run", verdict(sent[2]))
        is_(verdict(sent[3]), "LinkLost", "and of code that is lost")


# Death


@scenario(many=20)
def died_while_busy(server, rounds):
    """KernelDied at once, once; who waits runs in the new process, which is prepared; the old variables are gone."""
    jupyter = server.jupyter
    for i in range(rounds):
        for delay in 0.02, 0.3, 1.5:
            contexts = server.contexts(5)
            for context in contexts:
                jupyter.kernel(context, "set", autorestart_delay=delay)
                server.run("set x 1", context_id=context)
            codes = ["print 1\ndie", "flood 500 200\ndie", "drop_busy\ndie", "print 1\nsleep 30", "print 1\nswallow 30"]
            mark = jupyter.mark()
            a = [server.execute(code, c) for code, c in zip(codes, contexts)]
            b = [server.execute("count", c) for c in contexts]
            for n in 3, 4:
                a[n].wait_for("stdout")
            if i % 2:
                a[4].close()                            # interrupts are on their way
                time.sleep(0.05)
            for n in 3, 4:
                jupyter.kernel(contexts[n], "die")
            gather(a + b, 12)
            for n, stream in enumerate(a):
                if not (i % 2 and n == 4):
                    is_(verdict(stream), "KernelDied", "%s, %r: told" % (delay, codes[n]))
                    at_most(took(stream), delay + 2.5, "soon")
            is_([server.ran(c, mark) for c in codes], [1] * 5, "each ran once")
            is_([(verdict(s), s.text()) for s in b], [("ok", "1\n")] * 5, "who waits is the first in the new process")
            for context in contexts:
                prepared(server, context, "it was prepared")
                is_(verdict(server.run("get x", context_id=context)), "NameError", "variables are gone")


@scenario(many=20)
def died_while_sent(server, rounds):
    """The process dies with our request in its socket: told, and never sent again.  Where the request was kept, it is
    interrupted when it starts in the next process."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(6)
        mark = jupyter.mark()
        streams = []
        for n, context in enumerate(contexts):
            jupyter.kernel(context, "set", autorestart_delay=[0.1, 0.8, 2.5][n % 3], die_keeps_queue=n < 3,
                           start_delay=random.uniform(0, 0.3))
            jupyter.kernel(context, "foreign", seconds=20)
            streams.append(server.execute("print sent %d\nsleep 20" % n, context, env_vars=None))
            jupyter.wait(since=mark, ev="execute", code="print sent %d\nsleep 20" % n)
        for context in contexts:
            jupyter.kernel(context, "die")
        waiting = [server.execute("print next %d" % n, c) for n, c in enumerate(contexts)]
        gather(streams + waiting, 12)
        for n, stream in enumerate(streams):
            ok(verdict(stream) == "KernelDied" and "may or may not have run" in value(stream), "told what is known",
               repr((verdict(stream), value(stream))))
            at_most(took(stream), [0.1, 0.8, 2.5][n % 3] + 2, "soon")
            code = "print sent %d\nsleep 20" % n
            is_((server.sent(code, mark), server.ran(code, mark)), (1, int(n < 3)),
                "%s: sent once" % ("kept" if n < 3 else "lost"))
        is_([(verdict(s), s.text()) for s in waiting], [("ok", "next %d\n" % n) for n in range(6)], "who waits runs, unharmed")
        for context in contexts:
            prepared(server, context, "the new process was prepared")

        # while nobody is there to take it, noticed or not
        mark = jupyter.mark()
        for n, context in enumerate(contexts):
            jupyter.kernel(context, "set", autorestart_delay=1, die_keeps_queue=False)
            jupyter.kernel(context, "die")
        time.sleep(random.choice([0, 0.3]))
        streams = [server.execute("print down %d" % n, c) for n, c in enumerate(contexts)]
        gather(streams, 12)
        is_([verdict(s) for s in streams], ["KernelDied"] * 6, "sent while it is down: told")
        ok(max(server.ran("print down %d" % n, mark) for n in range(6)) <= 1, "ran once at most")
        is_([server.sent("print down %d" % n, mark) for n in range(6)], [1] * 6, "sent once")
        for context in contexts:
            server.usable(context)


@scenario(many=20)
def died_unheard(server, rounds):
    """The same where nothing tells of the death, since the link is down: the process that answers is another one."""
    jupyter = server.jupyter
    for i in range(rounds):
        for name, code in ("before its busy is out", "drop_busy\ndie"), ("before it was taken", "print taken"):
            context = server.create_context()
            jupyter.kernel(context, "set", autorestart_delay=0.3, start_delay=0.1)
            code += "\n# %d" % i
            mark = jupyter.mark()
            if "die" not in code:
                jupyter.kernel(context, "foreign", seconds=20)
            a = server.execute(code, context)
            jupyter.wait(since=mark, ev="execute", code=code)
            if "die" not in code:
                jupyter.kernel(context, "die")
            jupyter.set(channels={"delay": 1, "times": 1})
            jupyter.kernel(context, "cut")
            gather([a], 12)
            is_(verdict(a), "KernelDied", name + ": told")
            is_(server.sent(code, mark), 1, "sent once")
            server.usable(context)


@scenario(many=10, location="kexec_ready_timeout 8s;")
def died_again_and_again(server, rounds):
    """A process that dies while it is made ready, several times."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        jupyter.kernel(context, "set", silent_delay=0.3, autorestart_delay=0.2, start_delay=0.1)
        mark = jupyter.mark()
        stream = server.execute("print survived", context, env_vars={"A": "1"})
        for n in range(3):
            jupyter.wait(count=n + 1, since=mark, ev="start", silent=True)
            jupyter.kernel(context, "die")
        gather([stream], 12)
        is_((verdict(stream), server.ran("print survived", mark)), ("ok", 1), "it runs in the end, once")
        server.usable(context)
        jupyter.kernel(context, "set", silent_delay=0)

        # and one that dies of its own set-up, always: a bound all the same
        jupyter.kernel(context, "set", autorestart_delay=0.05, silent_delay=0.05)
        stop = threading.Event()

        def killer():
            while not stop.is_set():
                try:
                    jupyter.wait(since=jupyter.mark(), ev="start", silent=True, timeout=0.5)
                    jupyter.kernel(context, "die")
                except (TimeoutError, RuntimeError):
                    pass
        thread = threading.Thread(target=killer)
        thread.start()
        stream = gather([server.execute("print never", context, env_vars={"A": "1"})], 12)[0]
        stop.set()
        thread.join()
        ok(verdict(stream) in ("KernelNotReady", "ok"), "within kexec_ready_timeout", verdict(stream))
        at_most(took(stream), 10, "in time")
        jupyter.kernel(context, "set", silent_delay=0)
        ok(verdict(server.run("print warm", context_id=context)) in ("ok", "KernelDied"), "its last death may be told yet")
        server.usable(context, limit=5)


@scenario(many=10)
def dead(server, rounds):
    """Jupyter gives a kernel up: the context lives on with a new session, prepared."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(3)
        for context in contexts:
            server.run("set x 1", context_id=context)
        old = [server.kernel(c) for c in contexts]
        a = server.execute("print 1\nsleep 30", contexts[0])
        a.wait_for("stdout")
        b = server.execute("print b", contexts[0])
        jupyter.kernel(contexts[1], "foreign", seconds=20)
        sent = server.execute("print sent", contexts[1])
        jupyter.wait(ev="execute", code="print sent")
        mark = jupyter.mark()
        for context in contexts:
            jupyter.kernel(context, "dead")
        jupyter.wait(count=3, since=mark, ev="kernel_removed", why="dead")
        idle = server.execute("print idle", contexts[2])
        gather([a, b, sent, idle], 12)
        is_([verdict(a), verdict(sent)], ["KernelDied"] * 2, "running or sent: told")
        for name, stream in (("waiting", b), ("idle", idle)):
            is_((verdict(stream), stream.text()), ("ok", "b\n" if stream is b else name + "\n"),
                name + ": runs in the new one")
        for context, kernel in zip(contexts, old):
            lives(server, context, "the context lives on")
            prepared(server, context, "its kernel is prepared")
            isnt(server.kernel(context), kernel, "and another one")


@scenario(many=10)
def died_without_link(server, rounds):
    """The process is replaced while no link is open, nothing tells of it: cwd and variables are applied again."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        kernel = server.kernel(context)
        server.run("set x 1", context_id=context)
        mark = jupyter.mark()
        jupyter.kernel(context, "cut")
        jupyter.wait(since=mark, ev="ws_close")
        jupyter.kernel(context, "die")
        jupyter.wait(since=mark, ev="kernel_up", kernel=kernel)
        time.sleep(0.1)
        prepared(server, context, "the new process was prepared")


@scenario(many=10)
def replaced_in_setup(server, rounds):
    """The same while variables are being set: all of the set-up is done again."""
    jupyter = server.jupyter
    for i in range(rounds):
        for how in "die", "restart":
            context = server.create_context()
            kernel = server.kernel(context)
            mark = jupyter.mark()
            jupyter.kernel(context, "set", silent_delay=0.4)
            a = server.execute("env", context, env_vars={"A": "secret"})
            jupyter.wait(since=mark, ev="start", silent=True)
            jupyter.set(channels={"delay": 0.8, "times": 1})
            jupyter.kernel(context, "cut")
            jupyter.wait(since=mark, ev="ws_close")
            jupyter.kernel(context, how)
            gather([a], 10)
            is_(verdict(a), "ok", how + ": it runs")
            silent = json.loads(a.text() or "[]")
            ok([True for s in silent if "chdir" in s] and [True for s in silent if "secret" in s],
               "with directory and variables",
               repr([s[:40] for s in silent]))
            prepared(server, context, "so does the next one")


@scenario(workers=(2,), many=5)
def orphan_dies(server, rounds):
    """An interrupt ends the process of a dead worker's code: the new one gets the time that it needs."""
    jupyter = server.jupyter
    server.deaths = True
    for i in range(rounds):
        context = server.create_context()
        jupyter.kernel(context, "set", autorestart_delay=0.1, start_delay=3)
        a = server.execute("print a\nswallow 60", context)
        a.wait_for("stdout")
        for pid in server.workers():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: port_answers(server.port), 5, "a new worker")
        mark = jupyter.mark()
        b = server.execute("print b", context)
        jupyter.wait(since=mark, ev="interrupt")
        jupyter.kernel(context, "die")
        gather([b], 12)
        is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs")
        is_(jupyter.log(mark, ev="rest", name="restart"), [], "nobody restarts a kernel that starts")


@scenario(many=10, location="kexec_ready_timeout 5s;")
def ready_too_late(server, rounds):
    """Code was sent, its process dies, the next one keeps the request but takes long to start: who waits is not blocked
    by it."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        jupyter.kernel(context, "set", die_keeps_queue=True, autorestart_delay=0.1, start_delay=4)
        jupyter.kernel(context, "foreign", seconds=20)
        code = "print late %d\nsleep 60" % i
        a = server.execute(code, context)
        jupyter.wait(ev="execute", code=code)
        jupyter.kernel(context, "die")
        gather([a], 9)
        is_(verdict(a), "KernelDied", "it is told")
        ok("may or may not have run" in value(a), "what is known", value(a))
        jupyter.wait(ev="start", code=code, timeout=10)
        jupyter.kernel(context, "set", die_keeps_queue=False, autorestart_delay=0.1, start_delay=0.02)
        server.usable(context, limit=4)


@scenario(many=10)
def restarted_by_somebody(server, rounds):
    """POST restart by somebody else, no status tells of it: who runs is told, later ones find a prepared kernel."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        server.run("set x 1", context_id=context)
        jupyter.kernel(context, "restart")
        time.sleep(0.3)
        prepared(server, context, "idle: the new process was prepared")
        a = server.execute("print 1\nsleep 30", context)
        a.wait_for("stdout")
        b = server.execute("print b", context)
        jupyter.kernel(context, "restart")
        gather([a, b], 15)
        ok(verdict(a) in ("KeyboardInterrupt", "ExecutionLost", "KernelDied"), "running: told", verdict(a))
        is_((verdict(b), server.ran("print b")), ("ok", i + 1), "waiting: runs")
        server.usable(context)


@scenario(many=5)
def restarted_while_swallowing(server, rounds):
    """The same for code that says no last word: Jupyter is asked after 10 s of silence."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(2)
        a = [server.execute("print 1\nswallow 60", c) for c in contexts]
        for stream in a:
            stream.wait_for("stdout")
        b = [server.execute("print b", c) for c in contexts]
        jupyter.kernel(contexts[0], "restart")
        jupyter.kernel(contexts[1], "delete")
        gather(a + b, 20)
        is_([verdict(s) for s in a], ["KernelDied"] * 2, "told")
        is_([verdict(s) for s in b], ["ok"] * 2, "who waits runs in a new process, or a new kernel")
        at_most(max(took(s) for s in a), 14, "after 10 s")


# Restarts by ourselves


@scenario(many=10)
def restart_fails(server, rounds):
    """POST restart that Jupyter does not do: what ran is interrupted before the next one runs, variables are put back."""
    jupyter = server.jupyter
    for i in range(rounds):
        for name, fault in {"a 500": {"status": 500}, "a reset": {"reset": True}, "rubbish": {"raw": "rubbish\r\n\r\n"},
                            "a 403": {"status": 403}}.items():
            context = server.create_context()
            a = server.execute("print a\nsleep 30", context, env_vars={"A": "secret"})
            a.wait_for("stdout")
            jupyter.set(restart=fault)
            answer = server.request("POST", "/contexts/%s/restart" % context)
            ok(answer.status in (500, 503), "%s is told" % name, repr(answer))
            is_(verdict(gather([a])[0]), "ContextRestarted", "who ran is told")
            jupyter.set(restart=None)
            server.usable(context, "the next one runs", 4)
            stream = server.run("env", context_id=context)
            silent = json.loads(stream.text() or "[]")
            ok(not any("secret" in s for s in silent) or "del sys.__kexec_env__" in "".join(silent),
               "and the variables were put back",
               repr(silent))


@scenario()
def restart_hangs(server, rounds):
    """POST restart that hangs: 60 s at most by design; here the client leaves, and who comes later waits in the queue."""
    jupyter = server.jupyter
    context = server.create_context()
    jupyter.set(restart={"delay": 3, "times": 1})
    r = server.stream("POST", "/contexts/%s/restart" % context)
    jupyter.wait(ev="rest", name="restart")
    b = server.execute("print b", context)
    time.sleep(0.2)
    r.close()
    gather([b], 10)
    is_((verdict(b), b.text()), ("ok", "b\n"), "who comes meanwhile runs")
    is_(len(jupyter.log(ev="kernel_restarted")), 1, "after the restart that goes on without its client")


@scenario(many=10)
def restart_while_session(server, rounds):
    """POST restart and DELETE while a new session is being made for a kernel that was given up."""
    jupyter = server.jupyter
    for i in range(rounds):
        for method, path, name in ("POST", "/restart", "ContextRestarted"), ("DELETE", "", "ContextDeleted"):
            context = server.create_context()
            before = set(jupyter.state()["kernels"])
            jupyter.kernel(context, "dead")
            jupyter.wait(since=0, ev="kernel_removed", why="dead")
            time.sleep(0.1)
            jupyter.set(session_create={"delay": 0.8})
            mark = jupyter.mark()
            a = server.execute("print never\nsleep 30", context)
            jupyter.wait(since=mark, ev="rest", name="session_create")
            b = server.execute("print b", context)
            time.sleep(0.1)
            r = server.stream(method, "/contexts/" + context + path)
            gather([a, b, r], 8)
            is_((verdict(a), verdict(b), r.status), (name, name, 200), "%s: all are told" % method)
            at_most(took(r), 3, "in time")
            is_(server.ran("print never\nsleep 30", mark), 0, "the code did not run")
            jupyter.set(session_create=None)
            if method == "POST":
                server.usable(context)
            else:
                time.sleep(0.3)
                left = set(jupyter.state()["kernels"]) - before
                is_(left, set(), "no kernel is left behind")


@scenario(many=10)
def dead_while_restarting(server, rounds):
    """A stuck kernel is given up by Jupyter while it is being restarted."""
    jupyter = server.jupyter
    for i in range(rounds):
        for fault in {"delay": 1, "status": 500, "times": 1}, {"status": 500, "times": 1}:
            context = server.create_context()
            a = server.execute("print a\nswallow 60", context)
            a.wait_for("stdout")
            jupyter.set(restart=fault)
            mark = jupyter.mark()
            left = a.close()
            jupyter.wait(since=mark, ev="rest", name="restart")
            time.sleep(0.1)
            jupyter.kernel(context, "dead")
            jupyter.wait(since=mark, ev="kernel_removed")
            b = gather([server.execute("print b", context)], 10)[0]
            is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs in a new kernel")
            at_most(b.finished_at - left, 6, "in time")
            is_(len(jupyter.log(ev="start", code="print a\nswallow 60",
                                kernel=jupyter.log(mark, ev="kernel_removed")[0]["kernel"])), 1,
                "the code ran once")
            jupyter.set(restart=None)


@scenario(many=10)
def timeout_while_down(server, rounds):
    """The deadline passes while the process is being replaced: told once, and the code is not sent any more."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(2)
        for n, context in enumerate(contexts):
            jupyter.kernel(context, "set", autorestart_delay=0.2, start_delay=1.2)
            jupyter.kernel(context, "foreign", seconds=20)
        mark = jupyter.mark()
        a = [server.execute("print late %d" % n, c, timeout=0.8) for n, c in enumerate(contexts)]
        jupyter.wait(count=2, since=mark, ev="execute", **{"code~": "print late"})
        for context in contexts:
            jupyter.kernel(context, "die")
        gather(a, 6)
        is_([verdict(s) for s in a], ["KernelDied"] * 2, "the death is told")
        at_most(max(took(s) for s in a), 1.3, "in time")
        for context in contexts:
            server.usable(context, limit=4)
        is_([server.ran("print late %d" % n, mark) for n in range(2)], [0, 0], "the code did not run any more")


# Deleted behind the back


@scenario(many=10)
def deleted(server, rounds):
    """Somebody deletes the kernel or its session: running, queued, idle, with variables to be set; the link stays open, or
    not.  Their contexts get other kernels."""
    jupyter = server.jupyter
    for i in range(rounds):
        for close in False, True:
            jupyter.set(close_on_delete=close)
            contexts = server.contexts(5)
            for context in contexts:
                server.run("print warm", context_id=context)
            a = server.execute("print a\nsleep 30", contexts[0])
            a.wait_for("stdout")
            b = [server.execute("sleep 0.1\nprint b", contexts[0]) for _ in range(3)]
            time.sleep(0.1)
            for context in contexts[:4]:
                jupyter.kernel(context, "delete")
            is_(server.rest("DELETE", "/api/sessions/" + server.session(contexts[4])["id"]).status, 204,
                "a session is deleted")
            c = [server.execute("print idle", contexts[1]), server.execute("print idle", contexts[2],
                                                                           env_vars={"A": "1"}),
                 server.execute("print idle", contexts[4], env_vars={"A": "1"}, timeout=20)]
            e = server.execute("print leaves", contexts[3], env_vars={"A": "1"})
            time.sleep(0.1)
            e.close()
            gather([a] + b + c, 16)
            ok(verdict(a) in ("KernelDied", "KeyboardInterrupt"), "running: told", verdict(a))
            ok(verdict(b[0]) in ("ok", "KernelDied"), "queued: the first may have been sent to the old kernel", verdict(b[0]))
            is_([verdict(s) for s in b[1:]], ["ok"] * 2, "queued: run")
            ok(verdict(c[0]) in ("ok", "KernelDied"), "idle: sent to the old kernel, or run", verdict(c[0]))
            is_([verdict(s) for s in c[1:]], ["ok"] * 2, "idle, with variables to be set: run")
            at_most(max(took(s) for s in c), 5.5, "in time")
            for context in contexts:
                server.usable(context, "the next one runs")
                prepared(server, context, "in a kernel that was prepared")
                lives(server, context, "the context is listed")
        jupyter.set(close_on_delete=None)

    # the default context as well
    for close in True, False:
        jupyter.set(close_on_delete=close)
        is_(verdict(server.run("print default")), "ok", "the default context")
        default = [c["id"] for c in server.request("GET", "/contexts").json()][0]
        jupyter.kernel(default, "delete")
        streams = gather([server.execute("print default %d" % n, env_vars={"A": "1"} if n else {}) for n in range(3)], 8)
        is_([(verdict(s), s.text()) for s in streams], [("ok", "default %d\n" % n) for n in range(3)], "run")
        lives(server, default, "in the same context")
    jupyter.set(close_on_delete=None)


@scenario(many=5)
def forged_many(server, rounds):
    """What is said a thousand times of a kernel that is being prepared is believed once a second."""
    jupyter = server.jupyter
    for i in range(rounds):
        for state in "restarting", "autorestarting", "starting":
            context = server.create_context()
            jupyter.kernel(context, "cut")          # so that the next link asks whether it is there
            mark, lines = jupyter.mark(), len(server.log.lines("the kernel died"))
            jupyter.kernel(context, "foreign", code="\n".join(["sleep 1"] + ["forge_status " + state] * 1000 + ["sleep 0.7"]))
            jupyter.wait(since=mark, ev="start")
            a = server.execute("print a", context)
            gather([a], 15)
            is_((verdict(a), a.text()), ("ok", "a\n"), "%s: its code runs" % state)
            fences = len([r for r in jupyter.log(mark, ev="message", type="kernel_info_request") if r["session"]])
            ok(fences < 15, "there was no fence for each", str(fences))
            said = len(server.log.lines("the kernel died")) - lines
            ok(said < 5, "nor a line in the log", str(said))


@scenario(many=3, location="kexec_ready_timeout 6s;")
def never_there(server, rounds):
    """Each new kernel of a context is a 404 as well: a few are tried, then it is told."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        jupyter.kernel(context, "cut")
        mark = jupyter.mark()
        jupyter.set(channels={"status": 404})
        a = gather([server.execute("print a", context)], 15)[0]
        is_(verdict(a), "KernelNotReady", "it is told")
        made = len(jupyter.log(mark, ev="session_created"))
        ok(made < 5, "few kernels were made", str(made))
        jupyter.set(channels=None)
        server.usable(context)


# Given up by Jupyter: on one worker and on several


EQUIPPED = 'kexec_reconnect_timeout 1s; kexec_env KEXEC_SCENARIO "a b";'


def equipped(server, context, name):
    """The kernel has got the working directory and the environment since it started."""
    stream = server.run("env", context_id=context)
    silent = stream.text()
    return ok(told(stream) == "ok" and "KEXEC_SCENARIO" in silent and server.cwd in silent, name, silent)


@scenario(rounds=2, many=50, workers=(1, 4), location=EQUIPPED)
def given_up(server, rounds):
    """Jupyter gives the kernel up: the context's id lives on with a new kernel, prepared as before."""
    jupyter = server.jupyter
    context = server.create_context()
    for i in range(rounds):
        equipped(server, context, "the kernel is prepared")
        told(server.run("set x 1", context_id=context))
        mark = jupyter.mark()
        a = server.begun("sleep 30 #%d" % i, context)
        b = server.queued("print ran-b-%d" % i, context)
        jupyter.kernel(context, "dead")
        is_(told(a), "KernelDied", "the running one is told")
        c = server.queued("print ran-c-%d" % i, context)
        is_((told(b), b.text()), ("ok", "ran-b-%d\n" % i), "who waited runs in a new kernel")
        is_((told(c), c.text()), ("ok", "ran-c-%d\n" % i), "who came later too")
        ran = [r["code"] for r in jupyter.log(mark, ev="start", silent=False)]
        is_(ran, ["sleep 30 #%d" % i, "print ran-b-%d" % i, "print ran-c-%d" % i], "each ran once")
        equipped(server, context, "the new kernel is prepared")
        is_(server.run("get x", context_id=context).error(), "NameError", "the variables are gone")
        is_([c["id"] for c in server.request("GET", "/contexts").json()].count(context), 1, "the id is the same")
        is_(len([s for s in server.rest("GET", "/api/sessions").json() if context in s["path"]]), 1,
            "one session is its")


@scenario(rounds=2, many=50, workers=(1, 4), location=EQUIPPED)
def given_up_while_idle(server, rounds):
    """The same while nothing runs; whether a worker heard of it or not."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("set x 1", context_id=context))
        server.jupyter.kernel(context, "dead")
        a = server.run("print ran", context_id=context)
        ok((told(a), a.text()) == ("ok", "ran\n") or told(a) == "KernelDied",
           "the next one runs in a new kernel, unless it was sent to the old one", a.all())
        equipped(server, context, "the next one does, which is prepared")
        is_([c["id"] for c in server.request("GET", "/contexts").json()].count(context), 1, "the id is the same")


main(Faulty, workers=(1,), jobs=10)
