#!/usr/bin/python3
"""The link to a kernel is cut, closed or refused: it is opened again, and nothing is lost or doubled, or that is told."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faulty import *
from link_proxy import LinkProxy


@scenario(many=30)
def cut_while_busy(server, rounds):
    """The link is cut while code prints: nothing is lost or doubled that Jupyter keeps, the code runs on."""
    def lines(a, b):
        return "".join("print %d\n" % n for n in range(a, b))

    def run(contexts, protocol):
        ends = ["cut", "cut_mid_frame", "close", "close 1000", "close 1001 going", "close 1009 big", "close 1011 error",
                "close 1012", "close 4000 own"]
        # what is on its way when a connection is reset is lost, and what comes before a close is answered
        cases = [Case(end, "%ssleep 0.1\n%s\n%s%ssleep 0.05\n%s" % (
                          lines(0, 50), end, "sleep 0.3\n" * ("close" in end), lines(50, 100), lines(100, 150)), "ok",
                      "".join("%d\n" % n for n in range(150)), False, 0, 5) for end in ends]
        cases += [Case(end + ", silent", "print 0\nsleep 0.1\n%s\nsleep 1\nprint 1" % end, "ok", "0\n1\n", False, 1, 5)
                  for end in ends[:4]]
        # the end may get lost between Jupyter's close and ours, which is told then
        cases += [Case(end + " at the end", "print 0\nsleep 0.1\n%s" % end, ("ok", "ExecutionLost"), "0\n", None, 0,
                       7) for end in ends[:4]]
        cases += [Case("%d times" % n, "".join("print %d\nsleep 0.1\ncut\n" % k for k in range(n)) + "print end", "ok",
                       "".join("%d\n" % k for k in range(n)) + "end\n", False, 0, 10) for n in (2, 5, 20)]
        table(server, contexts, cases, "cut while busy, " + protocol, 60)
        for case in cases:
            if server.ran(case.code) != 1:
                ok(False, "%s: ran %d times" % (case.name, server.ran(case.code)))
        for context in contexts[::5]:
            server.usable(context)
    for _ in range(rounds):
        protocols(server, run)


@scenario()
def cut_while_sent(server, rounds):
    """Somebody else's cell holds the kernel, our code waits in it; the link is cut: it runs once, its output is there."""
    server.fresh()
    jupyter = server.jupyter
    contexts = server.contexts(6)
    streams, problems = [], []
    for n, context in enumerate(contexts):
        jupyter.kernel(context, "foreign", seconds=1.2)
        streams.append(server.execute("print a %d\nsleep 0.1\nprint b" % n + "\nlose 1" * (n == 5), context))
    for n, context in enumerate(contexts):
        jupyter.wait(ev="execute", **{"code~": "print a %d" % n})
    for n, context in enumerate(contexts):
        jupyter.kernel(context, ["cut", "close"][n % 2])
    if rounds == 1:
        time.sleep(0.3)
        jupyter.kernel(contexts[4], "cut")
        time.sleep(0.3)
        jupyter.kernel(contexts[4], "close", code=1011)
    gather(streams, 15)
    for n, stream in enumerate(streams):
        code = "print a %d" % n
        ran = len(jupyter.log(ev="start", **{"code~": code}))
        if n == 5:
            is_((verdict(stream), ran, len(jupyter.log(ev="execute", **{"code~": code}))), ("LinkLost", 0, 1),
                "lost and cut: what may have run is not sent again")
            like(value(stream), "may or may not", "and that is told")
        else:
            is_((verdict(stream), stream.text(), ran), ("ok", "a %d\nb\n" % n, 1), "it ran once, all is there")
    for context in contexts:
        server.usable(context)


@scenario()
def cut_with_another_link(server, rounds):
    """With somebody else's link open Jupyter keeps nothing for us: what is lost is told."""
    server.fresh()
    jupyter = server.jupyter
    context = server.create_context()
    kernel = server.kernel(context)
    jupyter.set(channels={"delay": 0.3, "times": 1})
    stream = server.execute("print begin\nsleep 0.1\ncut\n" + "print 1\nsleep 0.02\n" * 40 + "print end", context)
    jupyter.wait(ev="rest", name="channels", fault=True)    # ours is to be opened again
    other = server.connect(kernel)
    gather([stream], 10)
    is_(verdict(stream), "ok", "it ends")
    ok(stream.text().count("1\n") < 40, "a part is lost", stream.text())
    ok(dropped(stream), "output_dropped is told", repr(stream.types()))
    ok(stream.text().endswith("end\n"), "the rest is there")
    is_(other.closed, None, "the other link was left alone")
    server.usable(context)


REFUSALS = {
    "403": {"status": 403}, "401": {"status": 401}, "404": {"status": 404}, "500": {"status": 500},
    "503": {"refuse": True},
    "200": {"status": 200}, "hang": {"hang": True}, "reset": {"reset": True}, "close": {"close": True},
    "rubbish": {"raw": "SSH-2.0-OpenSSH_9.2\r\n\r\n"}, "half a head": {"raw": "HTTP/1.1 101 Switching"},
    "no websocket": {"raw": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"},
    "a wrong key": {"raw": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           "Sec-WebSocket-Accept: nonsense\r\n\r\n"},
}


@scenario(location="kexec_reconnect_timeout 1s; kexec_ready_timeout 5s;")
def link_refused(server, rounds):
    """Jupyter does not open a link: before the code is sent, and while it runs."""
    server.fresh()
    jupyter = server.jupyter
    told_ = {"403": "JupyterUnavailable", "401": "JupyterUnavailable", "404": "ok",
             "hang": ("KernelNotReady", "JupyterUnavailable")}
    contexts = dict(zip(REFUSALS, server.contexts(len(REFUSALS))))
    kernels = {name: server.kernel(c) for name, c in contexts.items()}
    first = kernels["404"]

    # one fault for all: which one applies is a matter of the kernel's id in the URL, so they take turns
    for before in True, False:
        for name, fault in REFUSALS.items():
            if before and rounds == 1 and name in ("401", "200", "close", "half a head", "no websocket"):
                continue                                # each takes its second
            context = contexts[name]
            if name == "hang" and not before:
                continue                                # as long as a handshake may take: see jupyter_outage.py
            mark = jupyter.mark()
            stream = None
            if not before:
                stream = server.execute("print 1\nsleep 0.4\nprint 2", context)
                stream.wait_for("stdout")
            jupyter.set(channels={**fault, "match": kernels[name], **({} if before else {"times": 2})})
            jupyter.kernel(kernels[name], "cut")
            if before:
                jupyter.wait(since=mark, ev="ws_close", kernel=kernels[name])
                time.sleep(0.05)
                stream = server.execute("print never", context)
            gather([stream], 12)
            if before:
                wanted = told_.get(name, "JupyterUnavailable")
                ok(verdict(stream) in (wanted if isinstance(wanted, tuple) else (wanted,)),
                   "refused with %s: told so" % name, "%s %s" % (verdict(stream), value(stream)))
                is_(server.ran("print never", mark), name == "404", "the code did not run, but in another kernel")
                at_most(took(stream), 5.5 if name == "hang" else 2.5, "in time")
            elif name == "404":
                is_(verdict(stream), "KernelDied", "%s while it runs: it has no kernel any more" % name)
            elif name in ("403", "401"):
                ok(verdict(stream) in ("ok",), "%s while it runs, twice: it goes on" % name,
                   "%s %s" % (verdict(stream), value(stream)))
            else:
                is_((verdict(stream), stream.text()), ("ok", "1\n2\n"),
                    "refused twice with %s while it runs: nothing is lost" % name)
            jupyter.set(channels=None)
            server.usable(context, "and then the context is usable", 5)
            # the old session is there still where it was only the link that was a 404
            kernels[name] = [s["kernel"]["id"] for s in server.rest("GET", "/api/sessions").json()
                             if context in s["path"]][-1]
    isnt(kernels["404"], first, "the one that was a 404 has another kernel")


# A real Jupyter, behind a proxy that cuts


def real(workers):
    return Server(workers, "kexec_reconnect_timeout 5s; kexec_keepalive 1s;")


# what is on its way at that moment nobody can know of, so the cuts come in the pauses
CODE = """
import time
for batch in range(5):
    for line in range(30):
        print(batch, line, flush=True)
    time.sleep(0.5)
'the end'
"""
OUTPUT = "".join("%d %d\n" % (batch, line) for batch in range(5) for line in range(30))


def batches(stream):
    return stream.text().count(" 29\n")


@scenario(rounds=2, many=50, workers=(1, 4), quick=(1,), server=real)
def cut_in_the_pauses(server, rounds):
    """Once for a moment, and once for longer, so that Jupyter keeps a batch or two."""
    with LinkProxy(server.env["JUPYTER_PORT"]) as proxy:
        server.through(proxy.port)
        context = server.create_context()
        for i in range(rounds):
            stream = server.execute(CODE, context)
            for n in range(1, 5):
                wait_until(lambda: stream.pump(0.05) or batches(stream) >= n, 10, "batch %d" % n)
                if batches(stream) < 5:
                    wait_until(lambda: proxy.cut(quiet=0.1) or stream.pump(0.02) and batches(stream) == 5, 10, "a pause")
                    proxy.refuse(0.8 * (i % 2))
            is_((told(stream), result(stream)), ("ok", "the end"), "it runs to its end")
            is_(stream.text(), OUTPUT, "all output, once, in order")
            ok("output_dropped" not in stream.types(), "nothing is said to be missing")
            is_(server.value("'next'", context), "next", "and the context is usable")


@scenario(rounds=2, many=50, workers=(1, 4), quick=(1,), server=real)
def gone_for_good(server, rounds):
    """For longer than kexec_reconnect_timeout: told, and afterwards the context has its variables."""
    with LinkProxy(server.env["JUPYTER_PORT"]) as proxy:
        server.through(proxy.port)
        context = server.create_context()
        for i in range(rounds):
            told(server.run("x = %d" % i, context_id=context))
            stream = server.busy(context)
            proxy.refuse(6)
            proxy.cut(every=True)
            is_(told(stream), "JupyterUnavailable", "it is told")
            within(stream.finished_at - stream.sent_at, 7, "in time")
            is_(server.value("x", context), str(i), "the code is interrupted, the next one runs")


main(Faulty, workers=(1,), jobs=10)
