#!/usr/bin/python3
"""The link to a real Jupyter is cut by a proxy: it is opened again, and nothing is lost or doubled."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from link_proxy import LinkProxy
from scenario import *

CONF = "kexec_reconnect_timeout 5s; kexec_keepalive 1s;"

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


@scenario(rounds=2, many=50)
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


@scenario(rounds=2, many=50)
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


main(lambda workers: Server(workers, CONF), quick=(1,))
