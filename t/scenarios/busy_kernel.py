#!/usr/bin/python3
"""A kernel that something keeps busy: what earlier code left running is ended, within a bound; somebody else's code never is."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faulty import *

READY = 5                               # kexec_ready_timeout
INTERRUPT = 2                           # kexec_interrupt_timeout, of faulty.py
SHORT = "kexec_ready_timeout %ds;" % READY

# what leaves something behind, and whether an interrupt helps
LEFT = {
    "a callback": ("print a\nset x 1\nleftover", True),
    "one that swallows interrupts": ("print a\nset x 1\nleftover_stubborn", False),
    "a forged end": ("print a\nset x 1\nforge_end\nsleep 3600", True),
    "a forged end, stubborn": ("print a\nset x 1\nforge_end\nswallow 3600", False),
}


def left_behind(server, name):
    context = server.create_context()
    code, helps = LEFT[name]
    stream = server.run(code, context_id=context)
    is_((verdict(stream), stream.text()), ("ok", "a\n"), name + ": its own execution ends well")
    return context, helps


def variable(server, context, helps, name):
    stream = server.run("get x", context_id=context)
    is_((verdict(stream), stream.text()), ("ok", "1\n") if helps else ("NameError", ""),
        name + (": the variables are there" if helps else ": in a new process"))


@scenario(many=5, location=SHORT)
def leaves(server, rounds):
    """The client of the code that is held leaves: what holds the kernel is ended at once."""
    jupyter = server.jupyter

    def one(name):
        context, helps = left_behind(server, name)
        kernel = server.kernel(context)
        mark = jupyter.mark()
        a = server.execute("print never %s\nsleep 30" % name, context)
        jupyter.wait(since=mark, ev="execute", kernel=kernel)
        left = a.close()
        b = gather([server.execute("print b", context)], 20)[0]
        is_((verdict(b), b.text()), ("ok", "b\n") if helps else ("ContextRestarted", ""), name + ": who waits")
        at_most(b.finished_at - left, 5 if helps else 5 + INTERRUPT, "in time")
        server.usable(context)
        variable(server, context, helps, name)

    for i in range(rounds):
        none(parallel([lambda n=n: one(n) for n in LEFT], 60), "all of them")


@scenario(many=5, location=SHORT)
def patient(server, rounds):
    """A client that waits is told after kexec_ready_timeout, in time, that its code may yet start; then it is ended."""
    def one(name, env):
        context, helps = left_behind(server, name)
        a = gather([server.execute("print a\nsleep 30", context, env_vars={"A": "1"} if env else None)], 20)[0]
        ok(verdict(a) == "KernelNotReady" and "held by what earlier code left running" in value(a), name + ": told",
           repr((verdict(a), value(a))))
        ok(("may yet start" in (value(a) or "")) != env, "and whether it runs", value(a))
        ok(READY - 0.1 < took(a) < READY + 6, "after kexec_ready_timeout", "%.2f s" % took(a))
        b = gather([server.execute("print b", context)], 20)[0]
        ok(verdict(b) == "ok" or not helps and verdict(b) == "ContextRestarted", name + ": the next one", verdict(b))
        at_most(b.finished_at - a.finished_at, 4 if helps else 4 + INTERRUPT, "in time")
        server.usable(context)
        variable(server, context, helps, name)

    for i in range(rounds):
        none(parallel([lambda n=n, e=e: one(n, e) for n in LEFT for e in (False, True)], 60), "all of them")


@scenario(many=5, location=SHORT)
def interrupted(server, rounds):
    """POST interrupt, and the request's own timeout: at once, and what is told is true."""
    jupyter = server.jupyter
    for i in range(rounds):
        for name in LEFT:
            for how in "interrupt", "timeout":
                context, helps = left_behind(server, name)
                mark = jupyter.mark()
                a = server.execute("print a\nsleep 30", context, timeout=1 if how == "timeout" else None)
                jupyter.wait(since=mark, ev="execute")
                if how == "interrupt":
                    answer = server.request("POST", "/contexts/%s/interrupt" % context)
                    ok(answer.status in (200, 504), "POST interrupt: the kernel is idle again, or not yet", repr(answer))
                gather([a], 20)
                is_(verdict(a), {"interrupt": "ExecutionInterrupted", "timeout": "ExecutionTimeout"}[how],
                    "%s, %s: told" % (name, how))
                ok("may yet start" in value(a), "what is known", value(a))
                b = gather([server.execute("print b", context)], 20)[0]
                ok(verdict(b) == "ok" or not helps and verdict(b) == "ContextRestarted", "%s, %s: who waits" % (name, how),
                   repr((verdict(b), value(b))))
                at_most(b.finished_at - a.finished_at, 5 if helps else 5 + INTERRUPT, "in time")
                variable(server, context, helps, name)


@scenario(many=5, location=SHORT)
def forged_restart(server, rounds):
    """Code that says in Jupyter's name that its kernel restarts, and goes on: the context is usable again within its bound."""
    def one(state, rest):
        context = server.create_context()
        begun = time.monotonic()
        a = gather([server.execute("print a\nforge_status %s\n%s" % (state, rest), context)], 20)[0]
        is_(verdict(a), "KernelDied", "%s, %s: it is believed" % (state, rest))
        for n in range(20):
            b = gather([server.execute("print b", context)], 20)[0]
            if verdict(b) == "ok":
                break
            ok(verdict(b) in ("KernelNotReady", "ContextRestarted"), "who comes is told", verdict(b))
        is_(verdict(b), "ok", "it is usable again")
        at_most(b.finished_at - begun, READY + INTERRUPT + 3, "in time")

    for i in range(rounds):
        none(parallel([lambda s=s, r=r: one(s, r) for s in ("restarting", "autorestarting", "starting")
                       for r in ("sleep 3600", "swallow 3600")], 60), "all of them")


@scenario(many=5, location=SHORT)
def stopped(server, rounds):
    """A process that takes nothing at all any more, as one that was stopped by a signal: clients that come and go do
    not keep the context from being repaired."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        server.run("print a\nleftover_stubborn", context_id=context)
        mark = jupyter.mark()
        begun = time.monotonic()
        while not jupyter.log(mark, ev="kernel_restarted") and time.monotonic() - begun < 3 * (5 + INTERRUPT):
            a = server.execute("print next", context)
            time.sleep(0.7)             # this is how long they have patience
            a.close()
        at_most(time.monotonic() - begun, 5 + INTERRUPT, "it is restarted in time")
        server.usable(context, limit=4)
        is_(len(jupyter.log(mark, ev="kernel_restarted")), 1, "once")


@scenario(many=5, location=SHORT)
def foreign(server, rounds):
    """Somebody else's cell: never interrupted, nor its kernel restarted; who waits is told whose it is."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(3)
        for context in contexts:
            server.run("set x 1", context_id=context)
        mark = jupyter.mark()
        for context in contexts:
            jupyter.kernel(context, "foreign", seconds=READY + 7)
        jupyter.wait(count=3, since=mark, ev="start")
        a = [server.execute("print a", contexts[0]), server.execute("print a", contexts[1], env_vars={"A": "1"}),
             server.execute("print a", contexts[2])]
        jupyter.wait(since=mark, ev="execute", kernel=server.kernel(contexts[2]), code="print a")
        a[2].close()
        b = server.execute("print b", contexts[0])
        gather(a[:2], 20)
        for stream in a[:2]:
            ok(verdict(stream) == "KernelNotReady" and "somebody else's code" in value(stream), "told", value(stream))
        gather([b], 20)
        is_((verdict(b), b.text()), ("ok", "b\n"), "who waits runs when that one has ended")
        ours = [r for r in jupyter.log(mark, ev="interrupt", landed="hit") if r["landed_code"] != "print a"]
        is_(ours, [], "which was not interrupted")
        is_(jupyter.log(mark, ev="rest", name="restart"), [], "nor was a kernel restarted")
        for context in contexts:
            server.usable(context, limit=6)
            variable(server, context, True, "foreign")


@scenario(many=5, location=SHORT)
def foreign_next(server, rounds):
    """A leftover is interrupted, and behind it somebody else's cell was the next one in the kernel: that is not hit."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        server.run("print a\nset x 1\nleftover", context_id=context)
        mark = jupyter.mark()
        jupyter.kernel(context, "foreign", seconds=4)
        a = server.execute("print never\nsleep 30", context)
        jupyter.wait(since=mark, ev="execute", code="print never\nsleep 30")
        a.close()
        jupyter.wait(since=mark, ev="leftover_interrupted")
        server.usable(context, limit=8)
        is_([r["landed_code"] for r in jupyter.log(mark, ev="interrupt", landed="hit", landed_code="sleep 4")], [],
            "it was not interrupted")
        is_(jupyter.log(mark, ev="rest", name="restart"), [], "nor was the kernel restarted")
        variable(server, context, True, "a cell behind a leftover")


@scenario(many=3, location="kexec_queue size=64 timeout=8s; kexec_ready_timeout 20s;")
def queue_is_told(server, rounds):
    """What a request that waited in vain is told about what holds the kernel."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(2)
        for context in contexts:
            server.run("set x 1", context_id=context)
        server.run("print a\nleftover", context_id=contexts[0])
        mark = jupyter.mark()
        jupyter.kernel(contexts[1], "foreign", seconds=14)
        jupyter.wait(since=mark, ev="start")
        a = [server.execute("print a", c) for c in contexts]
        b = [server.execute("print b", c) for c in contexts]
        gather(b, 20)
        is_([verdict(s) for s in b], ["QueueTimeout"] * 2, "told")
        ok("what earlier code left running" in value(b[0]), "a leftover", value(b[0]))
        ok("somebody else's code" in value(b[1]), "somebody else", value(b[1]))
        for stream in a:
            stream.close()
        for context in contexts:
            server.usable(context, limit=12)


@scenario(many=3)
def barrier(server, rounds):
    """Code that was interrupted leaves something behind, which holds up the fence: it is interrupted as well."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        a = server.execute("print a\nset x 1\nleftover\nsleep 60", context)
        a.wait_for("stdout")
        mark = jupyter.mark()
        left = a.close()
        b = gather([server.execute("print b", context)], 20)[0]
        is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs")
        at_most(b.finished_at - left, 5, "in time")
        is_(jupyter.log(mark, ev="rest", name="restart"), [], "nothing was restarted")
        variable(server, context, True, "barrier")


@scenario(many=3, location="kexec_jupyter_timeout 20s;")
def barrier_foreign(server, rounds):
    """The same, held up by somebody else's cell, and Jupyter is slow to interrupt: whoever has the slot next is not hit."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        jupyter.set(interrupt={"stall": 7, "times": 1})
        mark = jupyter.mark()
        a = server.execute("print a\nsleep 1", context)
        a.wait_for("stdout")
        jupyter.kernel(context, "foreign", seconds=5.4)
        a.close()
        b = gather([server.execute("print b\nsleep 3", context)], 20)[0]
        is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs")
        is_([r["landed"] for r in jupyter.log(mark, ev="interrupt")], ["ignored"], "nobody was hit")
        jupyter.set(interrupt=None)


@scenario(many=3, location=SHORT)
def restart_fails(server, rounds):
    """What holds the kernel is being ended, and a restart that then fails cuts that short: the code that had been sent is
    an orphan."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        server.run("print a\nleftover_stubborn 9", context_id=context)
        mark = jupyter.mark()
        a = server.execute("print a\nsleep 60", context)
        jupyter.wait(since=mark, ev="execute")
        a.close()
        jupyter.wait(since=mark, ev="interrupt")
        jupyter.set(restart={"status": 500})
        is_(server.request("POST", "/contexts/%s/restart" % context).status, 500, "a restart that fails")
        b = gather([server.execute("print b", context)], 20)[0]
        is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs")
        jupyter.set(restart=None)


@scenario(workers=(2,), many=3)
def other_worker(server, rounds):
    """The link of the worker that gets the slot was opened later: Jupyter tells whether somebody else is there at all."""
    jupyter = server.jupyter
    for i in range(rounds):
        for others in False, True:
            context = server.create_context()
            server.execute_on(0, "print a\nset x 1\nleftover 9", context).finish()
            other = server.connect(server.kernel(context)) if others else None
            mark = jupyter.mark()
            a = server.execute_on(1, "print b", context)
            jupyter.wait(since=mark, ev="ws_open")
            a.close()
            server.usable(context, "the next one runs", 12)
            hit = len(jupyter.log(mark, ev="leftover_interrupted"))
            is_(hit, int(not others), "it is not interrupted if somebody is" if others else "it is interrupted")
            if other:
                other.close()


@scenario(many=3)
def no_end(server, rounds):
    """Code after which the kernel sends neither reply nor idle: a fence decides, where it comes back behind the code alone."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(3)
        other = server.create_context(language="javascript")        # answers while code awaits
        mark = jupyter.mark()
        a = [server.execute("print a\nset x 1\nno_end", c) for c in contexts]
        quiet = server.execute("print quiet\nsleep 13\nprint end", server.create_context())
        liar = server.execute("print quiet\nforge_fences 13\nprint end", server.create_context())
        b = [server.execute("print b", c) for c in contexts]
        for stream in a:
            stream.wait_for("stdout")
        a[2].close()
        unsure = server.execute("print a\nno_end", other)
        gather(a[:2] + b + [quiet, liar], 25)
        is_([verdict(s) for s in a[:2]], ["ExecutionLost"] * 2, "told")
        ok(all(10 < took(s) < 20 for s in a[:2]), "after 10 s of silence", repr([took(s) for s in a[:2]]))
        is_([(verdict(s), s.text()) for s in b[:2]], [("ok", "b\n")] * 2, "who waits runs, unharmed")
        ok(verdict(b[2]) in ("ok", "ContextRestarted"), "also where the client has left", verdict(b[2]))
        is_((verdict(quiet), quiet.text(), dropped(quiet)), ("ok", "quiet\nend\n", False), "code that is only quiet runs on")
        is_((verdict(liar), liar.text()), ("ok", "quiet\nend\n"), "so does code that guesses what answers a fence")
        is_([r for r in jupyter.log(mark, ev="interrupt", landed="hit")], [], "nobody was hit")
        for context in contexts[:2]:
            variable(server, context, True, "no end")
        unsure.pump(0)
        is_(unsure.ended, None, "elsewhere only Jupyter's word counts")
        unsure.close()
        last = gather([server.execute("print last", other)], 12)[0]
        ok(verdict(last) in ("ok", "ContextRestarted"), "who waits is told", verdict(last))
        server.usable(other)


@scenario(many=3)
def awaits(server, rounds):
    """A kernel that answers while its code awaits: that its link was cut is not the end of the code."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context(language="javascript")
        mark = jupyter.mark()
        a = server.execute("print a\nno_end", context)         # the fence comes back, and nothing of the code
        a.wait_for("stdout")
        jupyter.kernel(context, "cut")
        jupyter.wait(since=mark, ev="ws_open")
        time.sleep(4)
        a.pump(0)
        is_(a.ended, None, "it goes on")
        is_(jupyter.log(mark, ev="rest", name="interrupt"), [], "nobody interrupts it")
        a.close()
        gather([server.execute("print b", context)], 12)
        server.usable(context)


@scenario(workers=(2,), many=5, location="kexec_ready_timeout 15s;")
def worker_killed(server, rounds):
    """A worker dies whose execution waits behind somebody else's cell: that one is not interrupted by the next worker."""
    jupyter = server.jupyter
    server.deaths = True
    for i in range(rounds):
        context = server.create_context()
        server.execute_on(0, "print ready", context).finish()       # whose link sees the foreign cell begin
        mark = jupyter.mark()
        jupyter.kernel(context, "foreign", seconds=12)
        jupyter.wait(since=mark, ev="start")
        a = server.execute_on(0, "print a", context)
        jupyter.wait(since=mark, ev="execute", code="print a")
        wait_until(lambda: len(server.log.lines("the kernel is held by somebody else's code")) > i, 10, "it is noticed")
        for pid in server.workers():
            os.kill(pid, signal.SIGKILL)
        a.close()
        wait_until(lambda: port_answers(server.port), 5, "a new worker")
        server.usable(context, limit=14)
        is_(jupyter.log(mark, ev="interrupt", landed="hit"), [], "it was not interrupted")


# Ordinary Python code, in a real kernel


REAL_READY, REAL_INTERRUPT = 8, 6


def real(workers):
    return Server(workers, "kexec_ready_timeout %ds; kexec_interrupt_timeout %ds; kexec_keepalive 1s;" % (
        REAL_READY, REAL_INTERRUPT))


BLOCK = "import asyncio, time\nx = 1\n"

# what is left behind, and whether an interrupt can end it
PYTHON = {
    "call_later": (BLOCK + "_ = asyncio.get_event_loop().call_later(0.3, time.sleep, 10**8)", True),
    "create_task": (BLOCK + "async def block():\n    await asyncio.sleep(0.3)\n    time.sleep(10**8)\n"
                    "t = asyncio.get_event_loop().create_task(block())", True),
    "SIGSTOP": (BLOCK + "import os, signal, subprocess\n"
                "_ = subprocess.Popen(['sh', '-c', 'sleep 0.3; kill -STOP %d' % os.getpid()])", False),
}


@scenario(rounds=1, many=20, workers=(1, 4), quick=(1,), server=real)
def left_by_python(server, rounds):
    """Who comes next leaves, or waits: what was left behind is ended."""
    def one(name, leaves):
        code, helps = PYTHON[name]
        context = server.create_context()
        a = server.run(code, context_id=context)
        if told(a) != "ok":
            yield "its own execution ends with %s" % told(a)
        time.sleep(0.8)                                 # 0.3 s is when it begins
        a = server.execute("1", context)
        if leaves:
            a.wait_head(10)
            a.close()
        elif told(a) != "KernelNotReady":
            yield "who waits is told %s" % told(a)
        begun = time.monotonic()
        while True:
            b = server.run("x", context_id=context)
            if told(b) != "ContextRestarted" or helps:
                break
        # with its variables, or in a new process
        if (told(b), result(b)) != (("ok", "1") if helps else ("NameError", None)):
            yield "the next one is told %s, and x is %r" % (told(b), result(b))
        took_ = b.finished_at - begun
        if took_ > (5 + (0 if helps else REAL_INTERRUPT + 4)) * slack():
            yield "usable again after %.1f s" % took_

    for i in range(rounds):
        none(parallel([lambda n=n, l=l: ["%s, leaves %s: %s" % (n, l, p) for p in one(n, l)]
                       for n in PYTHON for l in (True, False)], 120), "all of them")


main(Faulty, workers=(1,), jobs=10)
