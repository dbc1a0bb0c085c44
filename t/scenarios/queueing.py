#!/usr/bin/python3
"""Many requests on one context: order, limits, keepalives, the queue's timeout."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

CONF = "kexec_queue size=16 timeout=4s; kexec_keepalive 1s; kexec_interrupt_timeout 2s;"


@scenario(rounds=2, many=50)
def eighteen_in_order(server, rounds):
    """One runs, 16 wait and run in the order of their arrival, one gets 429."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("order = []", context_id=context))
        gate = server.gate()
        holder = server.busy(context, gate.code)
        waiters = [server.queued("order.append(%d); order" % n, context) for n in range(16)]
        late = server.execute("order.append('late')", context)
        is_(late.wait_head(), 429, "the 18th: 429")
        like(late.headers.get("retry-after"), r"^[1-9]\d*$", "with Retry-After")
        late.finish()
        like(late.body, "full", "and a reason in words")
        gate.open()
        is_(told(holder), "ok", "the first one ends")
        is_([(told(w), result(w)) for w in waiters], [("ok", repr(list(range(n + 1)))) for n in range(16)],
            "16 run, each after those that came before it")


@scenario(rounds=2, many=50)
def eighteen_at_once(server, rounds):
    """All 18 are sent before any answer is read."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("import time\norder = []", context_id=context))
        path = server.path("at-once")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        streams = [Stream(server.port, "POST", "/execute", {
            "code": "while len(order) == 0 and not os.path.exists(%r): time.sleep(0.005)\norder.append(%d); %d"
            .replace("while", "import os\nwhile") % (path, n, n), "context_id": context}, send=False)
            for n in range(18)]
        for stream in streams:
            stream.sock.sendall(stream.request)
        statuses = [stream.wait_head() for stream in streams]
        open(path, "w").close()
        is_((statuses.count(200), statuses.count(429)), (17, 1), "17 are let in, one is not")
        let_in = [n for n in range(18) if statuses[n] == 200]
        is_([(told(streams[n]), result(streams[n])) for n in let_in], [("ok", str(n)) for n in let_in], "17 run")
        order = json.loads(server.value("order", context))
        is_(sorted(order), let_in, "each once")
        os.unlink(path)


@scenario(rounds=1, many=10, quick=(1,))
def keepalives(server, rounds):
    """A silent execution and a queued one are told each second that all is well."""
    context = server.create_context()
    for i in range(rounds):
        gate = server.gate()
        holder = server.busy(context, gate.code)
        waiter = server.queued("1", context)
        count = lambda stream: sum(e["type"] == "keepalive" for _, e in stream.events)
        pump_all([holder, waiter], lambda: min(count(holder), count(waiter)) >= 3, 10)
        gate.open()
        told(holder), told(waiter)
        for name, stream in ("running", holder), ("queued", waiter):
            times = [t for t, e in stream.events if e["type"] == "keepalive"]
            pauses = [b - a for a, b in zip(times, times[1:])]
            ok(len(times) >= 3, name + ": it is told", times)
            between(sum(pauses) / len(pauses), 1, 1.3, name + ": each second")
            ok(all(e == {"type": "keepalive"} for e in (e for _, e in stream.events) if e["type"] == "keepalive"),
               name + ": with nothing else in it")
        gate = server.gate()
        noisy = server.busy(context, "import time\nfor i in range(15):\n    print(i, flush=True)\n    time.sleep(0.1)")
        told(noisy)
        is_([e for _, e in noisy.events if e["type"] == "keepalive"], [], "none while there is output")


@scenario(rounds=1, many=10, quick=(4,))
def queue_timeout(server, rounds):
    """Nobody waits for ever: QueueTimeout, saying for how long the slot was held, and by what."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("ran = []", context_id=context))
        holder = server.busy(context)
        a = server.queued("ran.append('a')", context)
        b = server.queued("ran.append('b')", context)
        for stream in (a, b):
            is_(told(stream), "QueueTimeout", "QueueTimeout")
            between(stream.finished_at - stream.sent_at, 4, 5, "after kexec_queue's timeout")
        like(a.all()[0]["value"], r"waited \d+ s .* held by a running execution for \d+ s", "with the reason")
        holder.pump(0)
        ok(not holder.ended, "the running one runs on")
        left = holder.close()
        is_(server.value("ran", context), "[]", "none of them ran")


@scenario(rounds=1, many=50, workers=(4,))
def round_robin(server, rounds):
    """100 short executions through all workers in turn: strict order, no foreign output, two links at most."""
    context = server.create_context()
    kernel = server.kernel(context)
    for i in range(rounds):
        told(server.run("order = []", context_id=context))
        links, done = [], threading.Event()

        def watch():
            while not done.is_set():
                links.append(server.rest("GET", "/api/kernels/" + kernel).json()["connections"])
                done.wait(0.05)
        watcher = threading.Thread(target=watch)
        waiting, wrong, used = [], [], []
        watcher.start()
        try:
            for n in range(100):
                # no more than 10 at a time, each by another worker than the one before
                stream = server.execute_on(n % 4, "print('out-%d')\norder.append(%d)\n%d" % (n, n, n), context)
                stream.wait_head()
                used.append(stream.headers["x-worker"])
                waiting.append((n, stream))
                while len(waiting) > (10 if n < 99 else 0):
                    m, stream = waiting.pop(0)
                    if (told(stream), result(stream), stream.text()) != ("ok", str(m), "out-%d\n" % m):
                        wrong.append((m, stream.all()))
        finally:
            done.set()
            watcher.join()
        is_(wrong, [], "each got its own output and result, nothing else")
        is_(server.value("order == list(range(100))", context), "True", "they ran in the order of their arrival")
        is_((len(set(used)), all(a != b for a, b in zip(used, used[1:]))), (4, True), "all four workers in turn")
        ok(0 < max(links) <= 2, "two links to the kernel at most", links)


main(lambda workers: Server(workers, CONF))
