#!/usr/bin/python3
"""HTTP/2: a stream's reset is a client that left; windows hold up nobody else."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

try:
    from h2_client import H2Connection
except ImportError:
    skip_all("no python3-h2")


def busy(connection, context, code="import time\ntime.sleep(300)"):
    stream = connection.execute("print('-started-')\n" + code, context)
    if stream.wait_for("stdout") is None:
        raise TimeoutError("an execution did not start: %r" % stream.all())
    return stream


@scenario(rounds=3, many=50)
def stream_reset(server, rounds):
    """Running and queued streams of one connection are reset."""
    context = server.create_context()
    connection = H2Connection(server.h2_port)
    for i in range(rounds):
        set_x = connection.execute("x = %d\nran = []" % i, context)
        is_((told(set_x), set_x.headers.get("content-type")), ("ok", "application/x-ndjson"), "x is set")
        a = busy(connection, context)
        b = connection.execute("ran.append('b')", context)
        b.wait_head()
        c = connection.execute("x, ran", context)
        c.wait_head()
        b.reset()
        left = a.reset()
        is_((told(c), result(c)), ("ok", "(%d, [])" % i), "the next stream runs, the reset one in the queue did not")
        within(c.finished_at - left, 1, "soon")
        is_(server.value("ran", context), "[]", "nor later")


@scenario(rounds=2, many=50)
def connection_lost(server, rounds):
    """The connection goes with all of its streams, once in order, once by a reset."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("x = %d\nran = []" % i, context_id=context))
        connection = H2Connection(server.h2_port)
        busy(connection, context)
        for n in range(5):
            connection.execute("ran.append(%d)" % n, context).wait_head()
        other = server.queued("x, ran", context)
        if i % 2:
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        left = connection.close()
        is_((told(other), result(other)), ("ok", "(%d, [])" % i), "who waited behind them runs, none of them did")
        within(other.finished_at - left, 1, "soon")


@scenario(rounds=1, many=20)
def reset_at_any_time(server, rounds):
    """Resets right behind the request, and a bit later."""
    context = server.create_context()
    told(server.run("x = 7", context_id=context))
    connection = H2Connection(server.h2_port)
    for i in range(rounds):
        for delay in (0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.03):
            a = connection.execute("import time\ntime.sleep(300)", context)
            time.sleep(delay)
            left = a.reset()
            b = connection.execute("x", context)
            is_((told(b), result(b)), ("ok", "7"), "reset after %d ms: the next stream runs" % (1000 * delay))
            within(b.finished_at - left, 1, "soon")


@scenario(rounds=1, many=20)
def closed_window(server, rounds):
    """A stream whose window is shut: the slot is free at idle, others of the connection run, all arrives later."""
    context = server.create_context()
    line = "0123456789abcdef" * 4
    for i in range(rounds):
        connection = H2Connection(server.h2_port, auto_window=False)
        connection.h2.increment_flow_control_window(1 << 30)        # the connection's own stays open
        connection.flush()
        a = connection.execute("for i in range(20000): print('%%06d %s' %% i)" % line, context)
        b = connection.execute("'next'", context)
        is_((told(b), result(b)), ("ok", "next"), "the next stream of the connection runs")
        ok(not a.ended and 0 < len(a.body) <= 65535, "the first one has got its window and no more",
           "%s %d" % (a.ended, len(a.body)))
        end = time.monotonic() + 30
        while not a.ended and not connection.closed and time.monotonic() < end:
            a.open_window()
            connection.pump(1)
        is_(told(a), "ok", "it gets its end")
        ok(a.text() == "".join("%06d %s\n" % (n, line) for n in range(20000)), "and all of its output, in order",
           "%d bytes" % len(a.text()))
        connection.close()


@scenario(rounds=1, many=20)
def keepalive(server, rounds):
    """Queued streams are told each second that all is well."""
    context = server.create_context()
    for i in range(rounds):
        connection = H2Connection(server.h2_port)
        gate = server.gate()
        a = busy(connection, context, gate.code)
        b = connection.execute("1", context)
        b.wait(lambda: sum(e["type"] == "keepalive" for _, e in b.events) >= 2, 5)
        gate.open()
        is_((told(a), told(b), result(b)), ("ok", "ok", "1"), "both end well")
        times = [t for t, e in b.events if e["type"] == "keepalive"]
        ok(len(times) >= 2 and 0.8 < times[1] - times[0] < 1.3, "one each second", times)


main(lambda workers: Server(workers, "kexec_interrupt_timeout 2s; kexec_keepalive 1s;"))
