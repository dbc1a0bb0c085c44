#!/usr/bin/python3
"""A client leaves: the context is free again, its variables intact, and nobody else is hit."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

LEAVE = [Stream.close, Stream.reset, Stream.half_close]


@scenario(rounds=3, many=50)
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


@scenario(rounds=3, many=50)
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


@scenario(rounds=2, many=50)
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


@scenario(rounds=1, many=50)
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
        ok(2 <= b.finished_at - left < 4, "after kexec_interrupt_timeout", "took %.3f s" % (b.finished_at - left))
        is_((told(d), result(d)), ("ok", "2"), "who came during the restart runs")
        within(d.finished_at - b.finished_at, 10, "soon")
        e = server.run("x", context_id=context)
        is_(e.error(), "NameError", "the variables are gone, as was told")


main(lambda workers: Server(workers, "kexec_interrupt_timeout 2s; kexec_keepalive 1s;"))
