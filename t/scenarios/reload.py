#!/usr/bin/python3
"""SIGHUP: what runs ends in the old workers, complete; queues go on over generations; a reload that fails changes nothing;
worker_shutdown_timeout ends what it must in words."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from workers import *

SOON = 3


def old_ones_left(server, old, timeout=10):
    wait_until(lambda: not any(map(is_alive, old)), timeout, "the old workers' end")


@scenario(rounds=25, many=300, workers=(4,))
def storm(server, rounds):
    """A reload every 200 ms under load: every execution ends well, with its own output, once."""
    contexts = [server.create_context() for _ in range(3)]
    for context in contexts:
        told(server.run("mine, n = %r, 0" % context, context_id=context))
    stop, problems, ran = threading.Event(), [], []

    def client(k):
        context = contexts[k % len(contexts)]
        n = 0
        while not stop.is_set():
            n += 1
            tag = "%d-%d" % (k, n)
            try:
                stream = server.run("import time\nn += 1\nfor i in range(20):\n    print(i, %r)\n    time.sleep(0.01)\nmine" % tag,
                                    context_id=context)
            except OSError as e:
                problems.append(repr(e))
                continue
            if (told(stream), result(stream)) != ("ok", context) or stream.text() != "".join("%d %s\n" % (i, tag)
                                                                                           for i in range(20)):
                problems.append("%s %s %r" % (stream.status_line, stream.ended, stream.all()[-3:]))
            ran.append(context)
    threads = [threading.Thread(target=client, args=(k,), daemon=True) for k in range(6)]
    with watched(server):
        for thread in threads:
            thread.start()
        for i in range(rounds):
            time.sleep(0.2)
            server.signal(signal.SIGHUP)
        stop.set()
        for thread in threads:
            thread.join(30)
    ok(not any(t.is_alive() for t in threads), "every execution ends")
    ok(not problems, "well, %d of them" % len(ran), "\n".join(problems[:5]))
    for context in contexts:
        is_(int(server.value("n", context)), ran.count(context), "each ran once")
    wait_until(lambda: len(server.workers()) == server.n_workers, 20, "the end of all old workers")
    server.quiet()
    is_([c["id"] for c in server.request("GET", "/contexts").json()][-3:], contexts, "all contexts are there")


@scenario(rounds=2, many=50, workers=(1, 4), quick=(4,))
def during(server, rounds):
    """One prints all the time while nginx is reloaded twice: its output is complete, the queue is one over three
    generations of workers."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("ran = []", context_id=context))
        gate = server.gate()
        with watched(server):
            old = []
            code = "import time, os\nn = 0\nwhile not os.path.exists(%r):\n    print(n)\n    n += 1\n" \
                "    time.sleep(0.001)\nprint('the end')\nn" % gate.name
            holder = server.busy(context, code, env_vars={"A": "1"})
            waiting = [(0, server.queued("ran.append(0)", context))]
            for k in 1, 2:
                old += server.renew()
                waiting.append((k, server.queued("ran.append(%d)" % k, context)))
            time.sleep(0.2)
            gate.open()
            is_(told(holder), "ok", "what ran all the time ends well")
            n = int(result(holder))
            is_(holder.text(), "-started-\n" + "".join("%d\n" % k for k in range(n)) + "the end\n",
                "complete output")
            is_([told(s) for _, s in waiting], ["ok"] * 3, "who waits in any generation runs")
            is_(server.value("ran", context), "[0, 1, 2]", "in order")
            old_ones_left(server, old)
            server.quiet()


@scenario(rounds=1, many=30, workers=(4,))
def interrupted_and_left(server, rounds):
    """Clients of the old workers leave, or interrupt: the slot moves on to the new ones."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("x = %d" % i, context_id=context))
        for end in "leave", "interrupt":
            holder = server.busy(context)
            old = server.renew()
            b = server.queued("x", context)
            since = time.monotonic()
            if end == "leave":
                holder.close()
            else:
                is_(server.request("POST", "/contexts/%s/interrupt" % context).status, 200, "an interrupt by a new worker")
                is_(told(holder), "KeyboardInterrupt", "reaches the old one")
            is_((told(b), result(b)), ("ok", str(i)), end + ": the next one runs, in a new worker")
            within(b.finished_at - since, SOON, "soon")
            old_ones_left(server, old)
        server.quiet()


@scenario(rounds=1, many=10, workers=(4,))
def refused(server, rounds):
    """A reload that fails, for several reasons, while code runs: said in words, and nothing else happens."""
    server.allowed = r"\[emerg\]"
    with open(server.conf_file) as f:
        good = f.read()
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    in_use = "\nhttp {\n    server { listen 127.0.0.1:%d; }" % taken.getsockname()[1]
    context = server.create_context()
    told(server.run("x = 7", context_id=context))
    for i in range(rounds):
        for name, old, new, words, seconds in (
                ("unknown directive", "\nhttp {", "\nnonsense;\nhttp {", 'unknown directive "nonsense"', 0),
                ("size", "kexec:8m", "kexec:4m", r'size of kexec zone "kexec" cannot be changed from 8192k to 4096k.*restart', 0),
                ("name", "kexec:8m", "other:8m", r'"kexec" cannot be renamed to "other".*restart', 0),
                ("port in use", "\nhttp {", in_use, "still could not bind", 0)):
            gate = server.gate()
            holder = server.busy(context, gate.code + "print('the end')\nx")
            waiting = server.queued("x", context)
            workers = server.workers()
            with watched(server):
                server.log.mark()
                server.configure(lambda text: text.replace(old, new))
                server.signal(signal.SIGHUP)
                server.log.wait(words)
                server.configure(lambda text: good)
                late = server.queued("x", context)
                gate.open()
                is_((told(holder), result(holder)), ("ok", "7"), name + ": what ran ends well")
                is_((told(waiting), told(late)), ("ok", "ok"), name + ": who waited and who came run")
                is_(sorted(server.workers()), sorted(workers), name + ": the workers are the same")
                server.quiet()
        old_ones_left(server, server.renew())
        is_(server.value("x", context), "7", "the next good one works")
    taken.close()


@scenario(rounds=1, many=5, workers=(4,))
def other_servers(server, rounds):
    """A reload that sends kexec_pass elsewhere, where the contexts are not: said in words, and nothing else happens."""
    server.allowed = r"\[emerg\]"
    files = [server.conf_file, os.path.join(server.run_dir, "http.conf")]
    good = [open(f).read() for f in files]
    context = server.create_context()
    told(server.run("x = 7", context_id=context))
    for i in range(rounds):
        for url in "http://127.0.0.1:1", "http://jupyter/base":
            server.log.mark()
            for f, text in zip(files, good):
                with open(f, "w") as out:
                    out.write(re.sub(r"(kexec_pass +)http://jupyter;", lambda m: m.group(1) + url + ";", text))
            server.signal(signal.SIGHUP)
            server.log.wait(r'zone "kexec" are in other Jupyter Servers than those that "kexec_pass" names now.*restart')
            for f, text in zip(files, good):
                with open(f, "w") as out:
                    out.write(text)
            is_(server.value("x", context), "7", "%s is refused, all goes on" % url)
        old_ones_left(server, server.renew())
        is_(server.value("x", context), "7", "the next good one works")


@scenario(rounds=1, many=10, workers=(4,))
def location_removed(server, rounds):
    """The location goes while code runs there and waits; it comes back, and the context is what it was."""
    context = server.create_context()
    told(server.run("x = 7", context_id=context))
    http = os.path.join(server.run_dir, "http.conf")
    with open(http) as f:
        text = f.read()
    for i in range(rounds):
        gate = server.gate()
        holder = server.busy(context, gate.code + "print('the end')\nx")
        waiting = server.queued("x", context)
        with open(http, "w") as f:
            f.write(text.replace("kexec_pass http://jupyter;", "return 410;"))
        old = server.renew()
        is_(server.request("GET", "/contexts").status, 410, "the new configuration holds")
        gate.open()
        is_((told(holder), result(holder)), ("ok", "7"), "what ran ends well")
        is_((told(waiting), result(waiting)), ("ok", "7"), "who waited runs")
        old_ones_left(server, old)
        server.quiet()
        with open(http, "w") as f:
            f.write(text)
        old_ones_left(server, server.renew())
        is_(server.value("x", context), "7", "it is back")


LIMIT = 2


def limited(server):
    """worker_shutdown_timeout, for the workers that there are from now on."""
    if "worker_shutdown_timeout" not in open(server.conf_file).read():
        server.configure(lambda text: "worker_shutdown_timeout %ds;\n%s" % (LIMIT, text))
        old_ones_left(server, server.renew())


@scenario(rounds=1, many=30, workers=(4,))
def shutdown_timeout(server, rounds):
    """worker_shutdown_timeout: before it is over, code is interrupted and all are told; those in new workers run."""
    limited(server)
    context = server.create_context()
    for i in range(rounds):
        told(server.run("x = %d" % i, context_id=context))
        with watched(server):
            holder = server.busy(context)
            waiting = server.queued("x = 'ran'", context)
            old = server.renew()
            since = time.monotonic()
            fresh = server.queued("x", context)
            is_((told(holder), told(waiting)), ("ServerShutdown",) * 2, "who runs and who waits in an old worker is told")
            for stream, words in (holder, "the code was interrupted"), (waiting, "the code did not run"):
                like(stream.all()[-2].get("value"), "worker_shutdown_timeout.*" + words, "in words")
                within(stream.finished_at - since, LIMIT, "in time")
            is_((told(fresh), result(fresh)), ("ok", str(i)), "who waits in a new one runs, the variables are there")
            within(fresh.finished_at - since, LIMIT + SOON, "soon")
            old_ones_left(server, old, LIMIT + 1)
            server.quiet()


@scenario(rounds=1, many=10, workers=(4,))
def shutdown_timeout_swallowed(server, rounds):
    """Code that swallows interrupts does not keep a worker: a new one goes on, and restarts the kernel in the end."""
    limited(server)
    context = server.create_context()
    for i in range(rounds):
        with watched(server):
            holder = server.busy(context, SWALLOW)
            old = server.renew()
            since = time.monotonic()
            fresh = server.queued("1", context)
            is_(told(holder), "ServerShutdown", "it is told")
            within(holder.finished_at - since, LIMIT, "in time")
            old_ones_left(server, old, LIMIT + 1)
            within(time.monotonic() - since, LIMIT + 1, "the old worker leaves")
            is_(told(fresh), "ContextRestarted", "who waits in a new one is told of the restart")
            within(fresh.finished_at - since, LIMIT + 4 + 3 + SOON, "when interrupts had their time")
            is_(server.value("1", context), "1", "then it is usable")
            server.quiet()


@scenario(rounds=1, many=10, workers=(4,))
def shutdown_timeout_created(server, rounds):
    """A context that is being made when the time is over: 503 in words, and nothing is left of it."""
    with ScriptedJupyter() as jupyter, Workers(4, CONF, jupyter=jupyter, http="kexec_sync 300ms;") as own:
        limited(own)
        for i in range(rounds):
            for name, fault in ("a slow session", "session_create"), ("a slow link", "channels"):
                jupyter.set(**{fault: {"delay": 4}})
                mark = jupyter.mark()
                stream = own.stream("POST", "/contexts", {})
                jupyter.wait(since=mark, ev="rest", name=fault)
                old = own.renew()
                since = time.monotonic()
                answer = stream.answer()
                is_(answer.status, 503, name)
                like(answer.body.decode(), "worker_shutdown_timeout", "in words")
                within(time.monotonic() - since, LIMIT, "in time")
                old_ones_left(own, old, LIMIT + 1)
                jupyter.set(**{fault: None})
                own.quiet()
        wait_until(lambda: len(jupyter.rest("GET", "/api/sessions").json()) == 1, 30, "the end of other sessions")
        is_(told(own.run("print 1")), "ok", "the default context works")
        own.check_log()


@scenario(rounds=1, many=10, workers=(4,))
def shutdown_timeout_operations(server, rounds):
    """A restart or deletion that Jupyter is at when the time is over, and one that waits for it: 503 in words."""
    with ScriptedJupyter() as jupyter, Workers(4, CONF, jupyter=jupyter, http="kexec_sync 300ms;") as own:
        own.allowed = "Jupyter did not (restart|delete) the kernel"
        limited(own)
        for i in range(rounds):
            for fault, method, path in ("restart", "POST", "/contexts/%s/restart"), ("session_delete", "DELETE", "/contexts/%s"):
                context = own.create_context()
                jupyter.set(**{fault: {"delay": 4}})
                mark = jupyter.mark()
                streams = [own.stream(method, path % context)]
                jupyter.wait(since=mark, ev="rest", name=fault)
                streams.append(own.stream(method, path % context))
                wait_until(lambda: own.zone()["claims"] == 2, 10, "the second to wait")
                old = own.renew()
                since = time.monotonic()
                for stream in streams:
                    stream.answer()
                for which, stream in zip(("at work", "waiting"), streams):
                    is_(stream.status, 503, "%s %s" % (fault, which))
                    like(stream.body.decode(), "worker_shutdown_timeout", "in words")
                    within(stream.finished_at - since, LIMIT, "in time")
                old_ones_left(own, old, LIMIT + 1)
                jupyter.set(**{fault: None})
                answer = own.run("print 1", context_id=context)
                ok(answer.status == 404 or told(answer) == "ok", "the context is gone, or works", answer.status)
                own.quiet()
        own.check_log()


@scenario(rounds=1, many=10, workers=(4,))
def shutdown_timeout_interrupts(server, rounds):
    """An interrupt that code does not react to when the time is over: 503 in words."""
    with ScriptedJupyter() as jupyter, Workers(4, CONF, jupyter=jupyter, http="kexec_sync 300ms;") as own:
        limited(own)
        for i in range(rounds):
            context = own.create_context()
            holder = own.execute("print a\nswallow 60", context)
            holder.wait_for("stdout", 10)
            interrupt = own.stream("POST", "/contexts/%s/interrupt" % context)
            wait_until(lambda: own.zone()["claims"] == 2, 10, "the interrupt to wait")
            old = own.renew()
            since = time.monotonic()
            answer = interrupt.answer()
            is_(answer.status, 503, "it is told")
            like(answer.body.decode(), "worker_shutdown_timeout", "in words")
            within(interrupt.finished_at - since, LIMIT, "in time")
            is_(told(holder), "ServerShutdown", "so is the code's client")
            old_ones_left(own, old, LIMIT + 1)
            is_(own.request("DELETE", "/contexts/" + context).status, 200, "the context can be deleted")
            own.quiet()
        own.check_log()


main(Workers)
