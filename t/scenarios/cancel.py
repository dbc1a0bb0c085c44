#!/usr/bin/python3
"""A client leaves: the context is free again, its variables intact, and nobody else is hit."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

LEAVE = [Stream.close, Stream.reset, Stream.half_close]


@scenario(rounds=3, many=50, workers=(0, 1, 4))
def leave(server, rounds):
    """The next request, sent at once, runs within a second."""
    context = server.create_context()
    for i in range(rounds):
        is_(told(server.run("x = %d" % i, context_id=context)), "ok", "x is set")
        a = server.execute("import time\ntime.sleep(300)", context)
        time.sleep(0.3)
        left = LEAVE[i % 2](a)
        b = server.run("x", context_id=context)
        is_((told(b), result(b)), ("ok", str(i)), "x is still there")
        within(b.finished_at - left, 1, "answered soon after the other left")


@scenario(rounds=1, many=50)
def leave_an_await(server, rounds):
    """The same with code that awaits: a pause, tasks, a thread; and the code's own end of it is run."""
    context = server.create_context()
    for i in range(rounds):
        for code in ("await asyncio.sleep(300)", "await asyncio.gather(asyncio.sleep(300), asyncio.sleep(200))",
                     "await asyncio.create_task(asyncio.sleep(300))",
                     "await asyncio.sleep(0)\nimport time\ntime.sleep(300)",
                     "try:\n    await asyncio.Event().wait()\nfinally:\n    x += 0.5"):
            is_(told(server.run("import asyncio\nx = 7", context_id=context)), "ok", "x is set")
            a = server.busy(context, code)
            left = LEAVE[i % 2](a)
            b = server.run("int(x)", context_id=context)
            is_((told(b), result(b)), ("ok", "7"), "x is still there: %s" % code.partition("\n")[0])
            within(b.finished_at - left, 1, "answered soon after the other left")
        is_(server.value("x", context), "7.5", "finally: was run")
        a = server.busy(context, "await asyncio.sleep(300)")
        is_(server.request("POST", "/contexts/%s/interrupt" % context).status, 200, "interrupted")
        is_(told(a), "KeyboardInterrupt", "its client is told the same as for any code")


@scenario(rounds=3, many=50, workers=(0, 1, 4))
def leave_with_waiters(server, rounds):
    """The same with others already waiting: they run normally, in order."""
    context = server.create_context()
    for i in range(rounds):
        is_(told(server.run("x = [%d]" % i, context_id=context)), "ok", "x is set")
        a = server.execute("import time\ntime.sleep(300)", context)
        a.wait_for("number_of_executions")
        b = server.queued("x.append('b'); x", context)
        c = server.queued("x.append('c'); x", context)
        time.sleep(0.3)
        left = LEAVE[i % 2](a)
        is_((told(b), result(b)), ("ok", "[%d, 'b']" % i), "who waited first runs next")
        within(b.finished_at - left, 1, "answered soon after the other left")
        is_((told(c), result(c)), ("ok", "[%d, 'b', 'c']" % i), "who waited second runs then")


@scenario(rounds=2, many=50, workers=(0, 1, 4))
def waiters_leave(server, rounds):
    """20 waiters leave: none of their code runs, the next request is served next."""
    context = server.create_context()
    for i in range(rounds):
        is_(told(server.run("ran = []", context_id=context)), "ok", "the list is set")
        gate = server.gate()
        holder = server.busy(context, gate.code if i % 2 else "import time\ntime.sleep(300)")
        waiters = [server.queued("ran.append(%d)" % n, context) for n in range(20)]
        random.shuffle(waiters)
        for n, waiter in enumerate(waiters):
            LEAVE[n % 3](waiter)
        after = server.queued("ran", context)
        freed = gate.open() if i % 2 else holder.close()
        is_((told(after), result(after)), ("ok", "[]"), "the next request runs, none of the others ran")
        within(after.finished_at - freed, 1, "it is served at once")
        is_(server.value("ran", context), "[]", "none of them ran later")


@scenario(rounds=1, many=50, workers=(0, 1, 4))
def swallowed(server, rounds):
    """Code that swallows KeyboardInterrupt: the kernel is restarted, who waits is told so."""
    context = server.create_context()
    for i in range(rounds):
        is_(told(server.run("x = 1", context_id=context)), "ok", "x is set")
        a = server.busy(context, SWALLOW)
        b = server.queued("x", context)
        c = server.queued("x", context)
        left = a.close()
        is_(told(b), "ContextRestarted", "who waits is told")
        d = server.queued("y = 2; y", context)
        is_(told(c), "ContextRestarted", "the second one as well")
        between(b.finished_at - left, 2, 4, "after kexec_interrupt_timeout")
        is_((told(d), result(d)), ("ok", "2"), "who came during the restart runs")
        within(d.finished_at - b.finished_at, 10, "soon")
        e = server.run("x", context_id=context)
        is_(e.error(), "NameError", "the variables are gone, as was told")


@scenario(rounds=24, many=500)
def no_foreign_interrupt(server, rounds):
    """Clients leave around the end of their code: no interrupt ever hits the next one's."""
    context = server.create_context()
    is_(told(server.run("import time\nx = 7\nran = 0", context_id=context)), "ok", "x is set")
    wrong, ran, edge = [], 0, 0.105
    for i in range(rounds):
        # half of the rounds look for the moment when a leaving is just too late, with somebody already waiting
        aimed = i % 2 == 0
        leave_after = edge + random.uniform(-0.003, 0.003) if aimed else random.uniform(0, 0.3)
        a = server.execute("time.sleep(0.1)\nran += 1", context)
        b = server.queued("time.sleep(0.03); ran", context) if aimed else None
        time.sleep(max(a.sent_at + leave_after - time.monotonic(), 0))
        left = LEAVE[i // 2 % 2](a)
        b = b or server.execute("time.sleep(0.03); ran", context)
        if told(b) != "ok":
            wrong.append((i, leave_after, b.all()))
            continue
        if b.finished_at - left > 2 * slack():
            wrong.append((i, leave_after, "late", b.finished_at - left))
        a_ran = int(result(b)) > ran
        ran = int(result(b))
        if aimed:
            edge += -0.001 if a_ran else 0.001
    is_(wrong, [], "everybody else's code ran to its end")
    ok(rounds < 20 or 0 < ran < rounds, "some were interrupted, some not", "%d of %d ran" % (ran, rounds))
    is_(server.value("x", context), "7", "x is still there")


@scenario(rounds=2, many=50)
def half_closed(server, rounds):
    """shutdown(SHUT_WR), as `nc -N` does it, is a client that left."""
    context = server.create_context()
    for i in range(rounds):
        is_(told(server.run("x = %d" % i, context_id=context)), "ok", "x is set")
        a = server.busy(context)
        waiter = server.queued("x = 'ran'", context)
        waiter.half_close()
        left = a.half_close()
        b = server.run("x", context_id=context)
        is_((told(b), result(b)), ("ok", str(i)), "the slot is free, who half-closed in the queue did not run")
        within(b.finished_at - left, 1, "soon")
        for stream in (a, waiter):
            stream.finish(5)
            ok(stream.ended and "end_of_execution" not in stream.types(), "its answer is broken off",
               "%s %r" % (stream.ended, stream.types()))


@scenario(rounds=1, many=10)
def leave_at_any_time(server, rounds):
    """A client that leaves during each step of its request's way leaves nothing behind."""
    context = server.create_context()
    for i in range(rounds):
        is_(told(server.run("x = 7", context_id=context)), "ok", "x is set")
        for delay in (0, 0.001, 0.002, 0.003, 0.005, 0.008, 0.013, 0.02, 0.03, 0.05):
            a = server.execute("import time\ntime.sleep(300)", context, env_vars={"A": "1"})
            time.sleep(delay)
            left = LEAVE[i % 2](a)
            b = server.run("import os\nx, os.environ.get('A')", context_id=context)
            is_((told(b), result(b)), ("ok", "(7, None)"), "left after %d ms: the next one runs" % (1000 * delay))
            within(b.finished_at - left, 1, "soon")


@scenario(rounds=2, many=50)
def armed_but_not_safe(server, rounds):
    """ipykernel ends when SIGINT comes between its being armed and the code, or behind the code: it never does.
    The kernel is made slow in these places, so that they can be met."""
    context = server.create_context()
    told(server.run("""
import time
x = 7
kernel = get_ipython().kernel
def slow(pre, post):
    pre_hook, post_hook = kernel.pre_handler_hook, kernel.post_handler_hook
    def new_pre():
        pre_hook()
        time.sleep(pre)
    def new_post():
        time.sleep(post)
        post_hook()
    kernel.pre_handler_hook, kernel.post_handler_hook = new_pre, new_post
slow(0.05, 0)
""", context_id=context))
    for i in range(rounds):
        a = server.execute("time.sleep(300)", context)
        left = a.close()
        b = server.run("x", context_id=context)
        is_((told(b), result(b)), ("ok", "7"), "left before the code: the kernel lives")
        within(b.finished_at - left, 1, "and is free")
    told(server.run("slow(0, 0.1)", context_id=context))
    for i in range(rounds):
        a = server.execute("print('end')", context)
        a.wait_for("stdout")
        left = a.close()
        b = server.run("x", context_id=context)
        is_((told(b), result(b)), ("ok", "7"), "left at the end of the code: the kernel lives")
        within(b.finished_at - left, 1, "and is free")


@scenario(rounds=1, many=50)
def slow_traceback(server, rounds):
    """A kernel that needs longer for its traceback than interrupts are apart, as a new and busy one does."""
    context = server.create_context()
    told(server.run("""
import time
x = 7
tracebacks = get_ipython().InteractiveTB
make = tracebacks.structured_traceback
def slow(*args, **more):
    time.sleep(0.15)
    return make(*args, **more)
tracebacks.structured_traceback = slow
""", context_id=context))
    for i in range(rounds):
        a = server.busy(context)
        b = server.queued("x", context)
        is_(server.request("POST", "/contexts/%s/interrupt" % context).status, 200, "interrupted")
        is_(told(a), "KeyboardInterrupt", "its client is told")
        is_((told(b), result(b)), ("ok", "7"), "the next one runs")
        a = server.busy(context)
        left = a.close()
        b = server.run("x", context_id=context)
        is_((told(b), result(b)), ("ok", "7"), "after a leaving, too")
        within(b.finished_at - left, 1, "soon")


@scenario(rounds=1, many=50)
def crowd(server, rounds):
    """40 clients, each second one leaves at a random time: the others run in the order of their arrival."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("import time\norder = []", context_id=context))
        streams, leaving = [], []
        for n in range(40):
            streams.append(server.queued("time.sleep(0.01)\norder.append(%d)\n%d" % (n, n), context))
            if n % 2:
                leaving.append((time.monotonic() + random.uniform(0, 0.6), n))
        leaving.sort()
        while leaving:
            when, n = leaving.pop(0)
            while time.monotonic() < when:
                for stream in streams:
                    stream.pump(0)
                time.sleep(0.001)
            if not streams[n].ended:
                LEAVE[n % 3](streams[n])
                streams[n].ended = streams[n].ended or "left"
        stayed = [n for n in range(40) if streams[n].ended != "left"]
        is_([(told(streams[n]), result(streams[n])) for n in stayed], [("ok", str(n)) for n in stayed],
            "who stayed ran to the end")
        order = json.loads(server.value("order", context))
        ok(order == sorted(set(order)), "in the order of their arrival, each once", order)
        ok(set(stayed) <= set(order), "all of them")


main(lambda workers: Server(workers, "kexec_interrupt_timeout 2s; kexec_keepalive 1s;"), jobs=2)
