#!/usr/bin/python3
"""Many clients on several workers, with and without faults: first come, first served, nobody hangs, nothing runs twice."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faulty import *

LEAVE = [Stream.close, Stream.reset, Stream.half_close]


@scenario(rounds=2, many=50, workers=(4,))
def fifo(server, rounds):
    """50 clients of one context, half of them leave at any time: the others are served in the order of their arrival."""
    jupyter = server.jupyter
    jupyter.set(order="random", interrupt={"delay": [0, 0.03]}, arm_delay=0.005)
    context = server.create_context()
    for i in range(rounds):
        mark = jupyter.mark()
        codes = ["print %d.%d\nsleep 0.0%d" % (i, n, random.randint(0, 9)) for n in range(50)]
        streams, gone = [], set()

        def leave(n):
            if n not in gone and not streams[n].ended:
                gone.add(n)
                random.choice(LEAVE)(streams[n])

        for code in codes:
            stream = server.execute(code, context)
            stream.wait_head(10)
            streams.append(stream)
            if random.random() < 0.15:
                leave(random.randrange(len(streams)))
        for n in random.sample(range(50), 18):
            time.sleep(random.uniform(0, 0.02))
            leave(n)
        stay = [s for n, s in enumerate(streams) if n not in gone]
        gather(stay, 30)
        is_([verdict(s) for s in stay], ["ok"] * len(stay), "all %d who stay are served" % len(stay))
        order = [codes.index(r["code"]) for r in jupyter.log(mark, ev="start", silent=False) if r["code"] in codes]
        is_(order, sorted(set(order)), "in the order of their arrival, each once")
        ok({n for n in range(50)} - gone <= set(order), "none is left out")
        at_most(max(s.finished_at for s in stay) - streams[-1].sent_at, 20, "nobody hangs")
        server.usable(context)
    state = jupyter.state()
    ok(max(state["max_websockets"].values()) <= 2, "never more than two links to a kernel",
       repr(state["max_websockets"]))


@scenario(rounds=1, many=30, workers=(4,))
def storm(server, rounds):
    """50 clients on 5 contexts, 4 workers; kernels die, links are cut, interrupts are late and fail: each stream ends once."""
    jupyter = server.jupyter
    contexts = server.contexts(5)
    for i in range(rounds):
        jupyter.set(order="random", interrupt={"delay": [0, 0.1]}, arm_delay=0.01, channels={"delay": [0, 0.1]},
                    silent_delay=0.01)
        mark = jupyter.mark()
        lines = ["print 1", "sleep 0.1", "sleep 0.3\nprint 1", "error E no", "flood 200 200",
                 "sleep_uninterruptible 0.2", "swallow 0.3",
                 "print 1\nsleep 20", "abort 1\nprint 1", "idle_first 0.1", "reply_first 0.1", "dup_idle",
                 "fragment 50\nprint 1", "ping 5",
                 "sleep 0.05\ncut\nprint 1", "close\nsleep 0.1"]

        def client(seed):
            rng = random.Random(seed)
            for k in range(3):
                context = rng.choice(contexts)
                code = rng.choice(lines) + "\nprint %d.%d.%d" % (i, seed, k)
                fields = {}
                if rng.random() < 0.3:
                    fields["env_vars"] = {"A": "1"}
                if rng.random() < 0.3 or "sleep 20" in code:
                    fields["timeout"] = rng.uniform(0.1, 1)
                stream = server.execute(code, context, **fields)
                stream.wait_head(10)
                if stream.status != 200:
                    yield "%r: %s" % (code, stream.status_line)
                    continue
                if rng.random() < 0.3:
                    time.sleep(rng.uniform(0, 0.5))
                    rng.choice(LEAVE)(stream)
                    continue
                stream.finish(40)
                if verdict(stream).startswith(("no end", "several")):
                    yield "%r: %s" % (code, verdict(stream))
                elif verdict(stream) not in ("ok", "E", "ExecutionTimeout", "KernelDied", "LinkLost", "ExecutionLost",
                                             "KeyboardInterrupt", "EnvironmentError",
                                            "ContextRestarted"):
                    yield "%r: %s %r" % (code, verdict(stream), value(stream))

        def trouble():
            rng = random.Random(i)
            for _ in range(15):
                time.sleep(rng.uniform(0, 0.4))
                jupyter.kernel(rng.choice(contexts), rng.choice(["cut", "close", "die", "cut", "interrupt"]))
            return []

        none(parallel([lambda n=n: list(client(n)) for n in range(50)] + [trouble], 90),
             "150 executions: each ends, once")
        ran = [r["code"] for r in jupyter.log(mark, ev="start", silent=False)
               if r["code"].rpartition("print ")[2].count(".") == 2]
        twice = sorted({c for c in ran if ran.count(c) > 1})
        is_(twice, [], "none ran twice")
        jupyter.set(interrupt=None, channels=None, silent_delay=None, arm_delay=None)
        for context in contexts:
            server.usable(context, limit=6)
    statuses = [k["queued"] for k in jupyter.state()["kernels"].values()]
    is_(statuses, [0] * len(statuses), "nothing is left in any kernel")


@scenario(rounds=1, many=30, workers=(4,))
def operations(server, rounds):
    """Restarts, interrupts, deletions and new contexts among executions, with calls that fail: each is answered, once, and in
    the end Jupyter has the contexts that there are, and no other."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(6)
        jupyter.set(order="random", interrupt={"delay": [0, 0.1]}, restart={"delay": [0, 0.2]},
                    session_delete={"delay": [0, 0.1]},
                    session_create={"delay": [0, 0.1]}, silent_delay=0.01)
        mark = jupyter.mark()
        lines = ["print 1", "sleep 0.2", "sleep 20", "swallow 0.5", "error E no", "abort 1\nprint 1", "flood 100 100"]

        def client(seed):
            rng = random.Random(i * 1000 + seed)
            for k in range(4):
                n = rng.randrange(len(contexts))
                context = contexts[n]
                what = rng.choice(["execute"] * 8 + ["restart", "restart", "interrupt", "interrupt", "delete"])
                if what != "execute":
                    path = "/contexts/" + context + ("" if what == "delete" else "/" + what)
                    stream = server.stream("DELETE" if what == "delete" else "POST", path)
                    if rng.random() < 0.2:
                        time.sleep(rng.uniform(0, 0.1))
                        rng.choice(LEAVE)(stream)
                        continue
                    stream.finish(20)
                    # 500, 503: where a call was made to fail
                    if stream.status not in (200, 404, 500, 503, 504) or stream.ended != "complete":
                        yield "%s: %s %s %r" % (what, stream.status_line, stream.ended, stream.body)
                    if what == "delete" and stream.status == 200:
                        contexts[n] = server.create_context()
                    continue
                code = rng.choice(lines) + "\nprint %d.%d.%d" % (i, seed, k)
                fields = {"timeout": rng.uniform(0.1, 1.5)} if "20" in code or rng.random() < 0.3 else {}
                if rng.random() < 0.3:
                    fields["env_vars"] = {"A": "1"}
                stream = server.execute(code, context, **fields)
                if rng.random() < 0.3:
                    time.sleep(rng.uniform(0, 0.5))
                    rng.choice(LEAVE)(stream)
                    continue
                stream.finish(40)
                if stream.status == 404:
                    continue
                if verdict(stream) not in ("ok", "E", "ExecutionTimeout", "KeyboardInterrupt", "ContextRestarted",
                                           "ContextDeleted",
                                           "ExecutionInterrupted"):
                    yield "%r: %s %r" % (code, verdict(stream), value(stream))

        def trouble():
            rng = random.Random(i)
            for _ in range(10):
                time.sleep(rng.uniform(0, 0.4))
                call = rng.choice(["restart", "interrupt", "session_delete"])
                jupyter.set(**{call: {"delay": [0, 0.1], "status": 500, "times": 1}})
            jupyter.set(restart=None, interrupt=None, session_delete=None)
            return []

        none(parallel([lambda n=n: list(client(n)) for n in range(40)] + [trouble], 90),
             "160 requests: each is answered, once")
        jupyter.set(restart=None, interrupt=None, session_delete=None, session_create=None, silent_delay=None)
        time.sleep(1)               # a deletion goes on when its client has left
        for context in contexts:
            if context.encode() in server.request("GET", "/contexts").body:
                server.usable(context, limit=8)
        ran = [r["code"] for r in jupyter.log(mark, ev="start", silent=False)
               if r["code"].rpartition("print ")[2].count(".") == 2]
        is_(sorted({c for c in ran if ran.count(c) > 1}), [], "nothing ran twice")
        listed = sorted(c["id"] for c in server.request("GET", "/contexts").json())
        there = sorted(s["path"].partition("kexec-")[2][:36] for s in server.rest("GET", "/api/sessions").json())
        is_(there, listed, "Jupyter has these contexts")
        for context in contexts:
            server.request("DELETE", "/contexts/" + context)


@scenario(many=20, workers=(4,))
def evicted_links(server, rounds):
    """A context that is used by one worker after the other: each link takes the last one's place, nothing is lost."""
    context = server.create_context()
    for i in range(rounds):
        streams = [server.execute("print %d\nflood 50 100\nprint end" % n, context) for n in range(30)]
        gather(streams, 20)
        good = [s for s in streams if verdict(s) == "ok" and not dropped(s) and s.text().count("\n") == 52]
        is_(len(good), 30, "30 executions, nothing lost")
        ok(len({s.headers.get("x-worker") for s in streams}) > 1, "by several workers")


@scenario(many=20)
def interrupt_with_half_a_body(server, rounds):
    """Requests whose body never comes whole live on after their answer: they are answered once."""
    for i in range(rounds):
        context = server.create_context()
        for path in "/interrupt", "/restart":
            a = server.execute("print a\nsleep 0.5", context)
            a.wait_for("stdout")
            stream = Stream(server.port, "POST", "/contexts/%s%s" % (context, path), send=False,
                            headers={"Content-Length": 100})
            stream.sock.sendall(stream.request + b"x" * 10)
            stream.wait_head(5)
            is_(stream.status, 200, path + ": answered")
            gather([a])
            for n in range(3):
                server.usable(context)
            stream.sock.sendall(b"x" * 90)
            stream.pump(0.5)
            is_(stream.body, b"null", "once")
            stream.close()
        stream = Stream(server.port, "DELETE", "/contexts/" + context, send=False, headers={"Content-Length": 100})
        stream.sock.sendall(stream.request)
        is_(stream.wait_head(5), 200, "DELETE: answered")
        stream.close()


@scenario(location="kexec_queue size=5 timeout=1s;", many=10)
def queue_limits(server, rounds):
    """A full queue, and one that takes too long, behind each kind of holder: told what it is."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        holder = server.execute("print a\nsleep 20", context)
        holder.wait_for("stdout")
        waiting = [server.execute("print %d" % n, context) for n in range(5)]
        for s in waiting:
            s.wait_head(5)
        full = server.execute("print no", context).answer(5)
        is_((full.status, "retry-after" in full.headers), (429, True), "a full queue: 429")
        gather(waiting, 5)
        is_({verdict(s) for s in waiting}, {"QueueTimeout"}, "QueueTimeout")
        like(value(waiting[0]), "waited 1 s.*held by a running execution", "which tells why")
        at_most(max(took(s) for s in waiting), 2.2, "in time")
        holder.close()
        server.usable(context)

        # a link that is lost, a restart, a stuck kernel
        holder = server.execute("print a\nsleep 20", context)
        holder.wait_for("stdout")
        jupyter.set(channels={"hang": True})
        jupyter.kernel(context, "cut")
        time.sleep(0.1)
        s = gather([server.execute("print no", context)], 5)[0]
        like(value(s), "whose link to the kernel is lost", "a lost link is told")
        jupyter.set(channels=None)
        holder.close()
        wait_until(lambda: verdict(server.run("print again", context_id=context)) == "ok", 15, "the context")
        jupyter.set(restart={"delay": 1.5, "times": 1})
        r = server.stream("POST", "/contexts/%s/restart" % context)
        jupyter.wait(ev="rest", name="restart", fault=True)
        s = gather([server.execute("print no", context)], 5)[0]
        like(value(s), "a restart of the kernel", "a restart is told")
        gather([r], 5)
        server.usable(context)
        ok(not server.ran("print no"), "none of them ran")


@scenario(many=20)
def first_use(server, rounds):
    """Who waits for a default context while it is made runs in the order of arrival."""
    jupyter = server.jupyter
    for i in range(rounds):
        jupyter.set(start_delay=0.5)
        mark = jupyter.mark()
        streams = []
        for n in range(5):
            streams.append(server.execute("print %d" % n, language="r"))
            time.sleep(0.03)
        gather(streams, 10)
        is_([r["code"] for r in jupyter.log(mark, ev="start", silent=False)], ["print %d" % n for n in range(5)],
            "in order")
        jupyter.set(start_delay=None)
        for context in server.request("GET", "/contexts").json():
            if context["language"] == "r":
                server.request("DELETE", "/contexts/" + context["id"])


main(Faulty, workers=(1,), jobs=10)
