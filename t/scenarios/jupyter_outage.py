#!/usr/bin/python3
"""Jupyter itself: not there, gone for a while, hanging, answering nonsense."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from situations import *


# At start


class Early(Nginx):
    """An nginx that is started while Jupyter is not well: server.sh would wait for it."""

    def __init__(self, jupyter, location=CONF, default_contexts="python"):
        super().__init__(jupyter, 1, True, location, {"DEFAULT_CONTEXTS": default_contexts}, start=False)
        self._script("conf")
        self.start_nginx()
        self.started = True
        wait_until(lambda: port_answers(self.port), 10, "nginx")

    def healthy(self, limit):
        start = time.monotonic()
        wait_until(lambda: self.request("GET", "/health").status == 200, 15, "/health")
        at_most(time.monotonic() - start, limit, "healthy soon")


STARTS = {
    "nobody listens": ({}, "python: Jupyter is not reachable: connection refused", 503, 503),
    "it refuses the token": ({"any": {"status": 403}}, "python: Jupyter refused the server's token", 503, 503),
    "no session can be made": ({"session_create": {"status": 500}}, "python: Failed to create context: Internal", 500,
                               500),
    "sessions of rubbish": ({"session_create": {"status": 201, "body": "rubbish"}},
                            "python: Jupyter's answer to a new session", 500, 500),
    "no list of kernels": ({"kernelspecs": {"status": 500}}, "python: ", 500, 500),
    "a list of rubbish": ({"kernelspecs": {"status": 200, "body": "[]"}}, "python: ", 500, 500),
    "connections are reset": ({"any": {"reset": True}}, "python: Jupyter is not reachable: connection reset", 503, 503),
    "it hangs": ({"any": {"hang": True}}, "python: (Jupyter is not reachable: timed out|the kernel is starting)",
                 (503, 504), 503),
    "no link": ({"channels": {"status": 503}}, "python: (Jupyter could not be reached|the kernel is starting)", 503,
                503),
}


def make_start(name, faults, why, created, executed):
    def start(server, rounds):
        with ScriptedJupyter() as jupyter:
            jupyter.set(**faults)
            if not faults:
                jupyter.down()
            with Early(jupyter, merged(CONF, "kexec_jupyter_timeout 1s; kexec_reconnect_timeout 1s;")) as nginx:
                time.sleep(0.7)
                health = nginx.request("GET", "/health")
                is_(health.status, 503, "%s: not healthy" % name)
                like(health.body, "^" + why, "and the reason is told")
                streams = gather([nginx.stream("POST", "/contexts", {}), nginx.execute("print 1"),
                                  nginx.execute("print 1"),
                                  nginx.stream("GET", "/contexts")], 12)
                ok(streams[0].status in (created if isinstance(created, tuple) else (created,)),
                   "POST /contexts is refused",
                   "%s %r" % (streams[0].status_line, streams[0].body))
                ok(all(s.status in (executed, created) for s in streams[1:3]), "POST /execute is refused",
                   repr([(s.status_line, s.body) for s in streams]))
                if not faults or "any" in faults:
                    like(streams[3].body, "contexts are not known yet", "there may be contexts")
                else:
                    is_(streams[3].body, b"[]", "there are no contexts")
                at_most(max(took(s) for s in streams), 8, "in time")
                jupyter.up()
                jupyter.reset()
                nginx.healthy(3)
                stream = nginx.run("print 1")
                is_((verdict(stream), stream.text()), ("ok", "1\n"), "everything works once it is well")
                context = nginx.create_context()
                stream = nginx.run("print 2", context_id=context)
                is_((verdict(stream), stream.text()), ("ok", "2\n"), "a new context as well")
                is_(len(nginx.request("GET", "/contexts").json()), 2, "and there are two")
                # nginx tries again, where somebody else had its port for a moment
                nginx.log.check("bind\\(\\) to .*Address already in use")
    start.__name__ = "start_%d" % (1 + list(STARTS).index(name))
    return start


for _name, _row in STARTS.items():
    scenario()(make_start(_name, *_row))


@scenario()
def start_without_the_kernel(server, rounds):
    """A default context whose kernel is not installed is left out; the others are there."""
    with ScriptedJupyter() as jupyter:
        jupyter.set(kernelspecs=["python3"])
        with Early(jupyter, default_contexts="python javascript") as nginx:
            nginx.healthy(3)
            is_(nginx.run("print 1", language="javascript").status, 400, "no such language")
            is_(verdict(nginx.run("print 1")), "ok", "the other one runs")
            nginx.log.check("bind\\(\\) to .*Address already in use")


@scenario(many=3)
def health(server, rounds):
    """From a state that is at most a second old; a busy Jupyter is not a dead one."""
    jupyter = server.jupyter

    def soon(status, limit, name, why=None):
        start = time.monotonic()
        while server.request("GET", "/health").status != status and time.monotonic() - start < 6 * slack():
            time.sleep(0.05)
        answer = server.request("GET", "/health")
        is_(answer.status, status, name)
        at_most(time.monotonic() - start, limit, name + ", soon")
        if why:
            like(answer.body, why, "and why")

    for i in range(rounds):
        soon(200, 1, "healthy")
        jupyter.down()
        soon(503, 2, "down", "not reachable: connection refused")
        jupyter.up()
        soon(200, 2, "up")
        jupyter.set(status={"status": 403})
        soon(503, 2, "refused", "Jupyter answers 403")
        jupyter.set(status={"status": 200, "body": "rubbish"})
        soon(200, 2, "any 200 will do")
        jupyter.set(status={"hang": True})
        time.sleep(1.2)
        streams = gather([server.stream("GET", "/health") for _ in range(5)], 5)
        is_([s.status for s in streams], [200] * 5, "busy: the last good answer is kept")
        at_most(max(took(s) for s in streams), 3, "within 2 s")
        jupyter.set(status=None)


# Down for a while


@scenario(many=10)
def not_read_yet(server, rounds):
    """A link that Jupyter has opened and does not read yet, as it looks for the kernel: nothing is sent that would be found
    there if the link is replaced by then."""
    jupyter = server.jupyter
    context = server.create_context()
    told(server.run("set x 7", context_id=context))
    for i in range(rounds):
        for leaves in False, True:
            jupyter.kernel(context, "cut")
            jupyter.set(nudge=1)
            mark = jupyter.mark()
            a = server.execute("print a", context)
            jupyter.wait(since=mark, ev="ws_open")
            if leaves:
                a.close()
            else:
                is_((verdict(gather([a])[0]), a.text()), ("ok", "a\n"), "it runs")
            jupyter.wait(since=mark, ev="ws_ping")
            is_(jupyter.log(mark, ev="ws_unread"), [], "nothing was sent that Jupyter did not read")
            jupyter.set(nudge=0)
            is_(server.run("get x", context_id=context).text(), "7\n", "the variables are there")


@scenario(many=10)
def down_shorter(server, rounds):
    """For less than kexec_reconnect_timeout: nobody notices but by the time it takes."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(3)
        for context in contexts:
            server.run("set x 1", context_id=context)
        mark = jupyter.mark()
        codes = ["print begin\nsleep 2\nprint end %d" % i, "print begin\nsleep 0.5\nprint end %d" % i,
                 "".join("print %d\nsleep 0.02\n" % n for n in range(60)) + "print end %d" % i]
        a = [server.execute(code, c) for code, c in zip(codes, contexts)]
        for stream in a:
            stream.wait_for("stdout")
        b = [server.execute("get x", c) for c in contexts]
        time.sleep(0.2)
        jupyter.down(seconds=1.2)
        time.sleep(0.3)
        c = [server.execute("get x", c) for c in contexts]
        gather(a + b + c, 12)
        is_([verdict(s) for s in a], ["ok"] * 3, "running: it ends well")
        is_([s.text().count("end") for s in a], [1] * 3, "the rest is there, once")
        is_([server.ran(code, mark) for code in codes], [1] * 3, "each ran once")
        numbers = [int(line) for line in a[2].text().split("\n")[:-2]]
        ok(numbers == sorted(set(numbers)) and len(numbers) >= 55, "nothing twice, in order", repr(numbers))
        is_([(verdict(s), s.text()) for s in b + c], [("ok", "1\n")] * 6, "queued before and during: they run")


@scenario(many=10)
def down_longer(server, rounds):
    """For longer: who runs is told, who waits waits, and runs when Jupyter is back, with all variables."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(4)
        for context in contexts:
            server.run("set x 1", context_id=context)
        mark = jupyter.mark()
        codes = ["print begin\nsleep 60", "print begin\nsleep 1\nprint end", "print begin\nsleep 60",
                 "print begin\nsleep 60"]
        a = [server.execute(code, c, **({"timeout": 1} if n == 2 else {})) for n,
             (code, c) in enumerate(zip(codes, contexts))]
        for stream in a:
            stream.wait_for("stdout")
        b = [server.execute("get x", c) for c in contexts]
        time.sleep(0.2)
        jupyter.down(seconds=7)
        went = time.monotonic()
        time.sleep(0.3)
        a[3].close()
        idle = server.execute("print idle")
        time.sleep(2.5)
        c = [server.execute("get x", c) for c in contexts]
        gather(a[:3] + [idle], 4)
        is_([verdict(s) for s in a[:3]], ["JupyterUnavailable", "JupyterUnavailable", "ExecutionTimeout"],
            "running: told")
        at_most(max(s.finished_at for s in a[:3]) - went, 3.5, "after kexec_reconnect_timeout")
        is_(verdict(idle), "JupyterUnavailable", "idle before: told")
        like(value(idle), "did not run", "that it did not run")
        is_(server.ran("print idle", mark), 0, "and indeed")
        gather(b + c, 18)
        is_([(verdict(s), s.text()) for s in b + c], [("ok", "1\n")] * 8,
            "queued before and during: they run, with all variables")
        at_most(max(s.finished_at for s in b + c) - went, 13, "soon after it is back")
        is_([len(jupyter.log(mark, ev="start", code=code)) for code in set(codes)].count(0), 0, "all had run")
        is_(len(jupyter.log(mark, ev="kernel_restarted")), 0, "no kernel was restarted")


@scenario(many=5)
def paused(server, rounds):
    """Jupyter as a whole does not answer, connections stay open: for 1.5 s and for 6 s."""
    jupyter = server.jupyter
    for i in range(rounds):
        for seconds in 1.5, 6:
            contexts = server.contexts(4)
            for context in contexts:
                server.run("set x 1", context_id=context)
            a = [server.execute("print begin\nsleep 2\nprint end", contexts[0]),
                 server.execute("print begin\nsleep 60", contexts[1]),
                 server.execute("print begin\nsleep 60", contexts[2], timeout=0.5)]
            for stream in a:
                stream.wait_for("stdout")
            b = [server.execute("get x", c) for c in contexts[:3]]
            jupyter.pause()
            try:
                a[1].close()
                c = [server.execute("get x", contexts[3]), server.execute("get x", contexts[3], env_vars={"A": "1"})]
                new = server.stream("POST", "/contexts", {})
                time.sleep(seconds)
            finally:
                jupyter.go_on()
            gather([a[0], a[2], new] + b + c, 20)
            is_(verdict(a[0]), "ok", "%s s: what ran ends well" % seconds)
            is_(verdict(a[2]), "ExecutionTimeout", "a deadline is told")
            told_ = [verdict(s) for s in b + c]
            # the limit of the barrier, and stuck code, end with a restart after long enough a time
            ok(set(told_) <= ({"ok"} if seconds < 2 else {"ok", "ContextRestarted", "KernelNotReady", "NameError"}),
               "who waited is served", repr([(verdict(s), value(s)) for s in b + c]))
            ok(new.status == 200 or seconds > 2 and new.status == 503, "a new context is made, or refused",
               repr(new.status_line))
            for context in contexts:
                server.usable(context)


def make_down(state, seconds):
    def down(server, rounds):
        """Jupyter goes away while an execution is in that state, for less or more than kexec_reconnect_timeout."""
        jupyter = server.jupyter
        for i in range(rounds):
            server.fresh()
            if state == "linking":
                jupyter.set(channels={"delay": 0.7})
            if state == "barrier":
                jupyter.set(interrupt={"delay": 0.7})
            if state == "restarting":
                jupyter.set(restart={"delay": 0.7})
            situations = [Situation(server, state, "nothing", waiting) for waiting in (False, True)]
            none(parallel([s.enter for s in situations], 20), "%s, down for %.1f s: entered" % (state, seconds))
            jupyter.down(seconds=seconds)
            time.sleep(0.2)
            for s in situations:
                s.operation = None
                s.happened = time.monotonic() + seconds
                s.c = server.execute("print came %s" % s.tag, s.context)
            time.sleep(seconds)
            jupyter.set(channels=None, interrupt=None, restart=None)
            problems = []
            for s in situations:
                watched = [s.a] if state in WATCHED else []
                gather(watched + [x for x in (s.b, s.c) if x], 22)
                for stream, name in [(x, "who ran") for x in watched] + [(x, "who waited") for x in (s.b,)
                                                                         if x] + [(s.c, "who came")]:
                    allowed = {"ok"}
                    if seconds > 2:
                        allowed |= {"JupyterUnavailable"}
                        if state == "sent" and name == "who ran":
                            allowed |= {"LinkLost"}
                    if state == "restarting":
                        allowed |= {"ContextRestarted"}
                    if verdict(stream) not in allowed:
                        s.say("%s was told %s %r" % (name, verdict(stream), value(stream)))
                for code in s.code, "sleep 0.02\nprint waited " + s.tag, "print came " + s.tag:
                    runs = len(jupyter.log(s.mark, ev="start", code=code))
                    if runs > 1:
                        s.say("%r ran %d times" % (code, runs))
                try:
                    s.options(silent_delay=0, kernel_info={})
                except RuntimeError:
                    pass
                last = gather([server.execute("print after", s.context)], 12)[0]
                if (verdict(last), last.text()) != ("ok", "after\n"):
                    s.say("the next one: %s %r" % (verdict(last), value(last)))
                problems += s.problems
            none(problems, "%s, down for %.1f s" % (state, seconds))
    down.__name__ = "down_%s_%s" % (state, "shorter" if seconds < 2 else "longer")
    return down


for _state in STATES:
    for _seconds in 1, 3.5:
        scenario(many=10)(make_down(_state, _seconds))


# Answers


@scenario(location="kexec_jupyter_timeout 1s;")
def session_answers(server, rounds):
    """POST /api/sessions that fails in all ways: told, in time, and no kernel is left behind."""
    jupyter = server.jupyter
    faults = {
        "500": ({"status": 500}, 500),
        "501 with a sentence": ({"status": 501, "body": '{"message": "no such kernel"}'}, 500),
        "403": ({"status": 403}, 503), "404": ({"status": 404}, 500), "hang": ({"hang": True}, 503),
        "close": ({"close": True}, 503),
        "reset": ({"reset": True}, 503), "rubbish": ({"raw": "garbage\r\n\r\n"}, 503),
        "no body": ({"status": 201, "body": ""}, 500),
        "a body of rubbish": ({"status": 201, "body": "rubbish"}, 500),
        "an empty object": ({"status": 201, "body": "{}"}, 500),
        "wrong types": ({"status": 201, "body": '{"id": 3, "kernel": []}'}, 500),
        "a list": ({"status": 201, "body": "[[[]]]"}, 500),
        "long ids": ({"status": 201, "body": '{"id": "%s", "kernel": {"id": "%s"}}' % ("x" * 5000, "y" * 5000)}, 500),
        "HTML": ({"status": 500, "body": "<html>secret token</html>", "headers": {"Content-Type": "text/html"}}, 500),
        "chunks of rubbish": ({"raw": "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n"}, 503),
        "a long head": ({"raw": "HTTP/1.1 201 Created\r\n" + "X: %s\r\n" % ("y" * 100000) + "\r\n"}, None),
        "an endless body": ({"raw": "HTTP/1.1 201 Created\r\n\r\n" + "x" * 3000000}, None),
    }
    for name, (fault, status) in faults.items():
        jupyter.set(session_create=fault)
        stream = gather([server.stream("POST", "/contexts", {})], 8)[0]
        ok(stream.status == status if status else stream.status in (500, 503), "%s: %s" % (name, status),
           "%s %r" % (stream.status_line, stream.body[:200]))
        at_most(took(stream), 3.5, "in time")
        ok(b"secret token" not in stream.body, "no page is passed on")
    jupyter.set(session_create=None)

    # carried out, but the answer is lost: Jupyter has a session that nobody would find again
    for name, fault in {"hangs": {"act": True, "hang": True}, "is cut": {"act": True, "status": 201, "cut_body": True},
                        "is reset": {"act": True, "reset": True}, "is rubbish": {"act": True, "status": 201,
                                                                                 "body": "rubbish"},
                        "is closed": {"act": True, "close": True}}.items():
        before = len(jupyter.state()["kernels"])
        jupyter.set(session_create={**fault, "times": 1})
        stream = gather([server.stream("POST", "/contexts", {})], 8)[0]
        jupyter.set(session_create=None)
        made = stream.status == 200
        if made:
            server.usable(json.loads(stream.body)["id"])
        wait_until(lambda: True, 1)
        time.sleep(0.3)
        is_(len(jupyter.state()["kernels"]) - before, int(made),
            "the answer %s (%s): no kernel is left behind" % (name, stream.status))


@scenario(chunked=7, keepalive=False)
def chunked(server, rounds):
    """All of Jupyter's answers in chunks of 7 bytes, connections closed."""
    for _ in range(3):
        context = server.create_context()
        a = server.execute("print a\nsleep 30", context)
        a.wait_for("stdout")
        a.close()
        server.usable(context)
        is_(server.request("POST", "/contexts/%s/restart" % context).status, 200, "restarted")
        server.usable(context)
        is_(server.request("DELETE", "/contexts/" + context).status, 200, "deleted")


@scenario()
def delete_fails(server, rounds):
    """DELETE that Jupyter does not do: told, and the context is as it was, its orphan interrupted."""
    jupyter = server.jupyter
    for fault in {"status": 500}, {"reset": True}, {"raw": "rubbish\r\n\r\n"}, {"status": 403}, {"hang": True}:
        context = server.create_context()
        a = server.execute("print a\nsleep 30", context, env_vars={"A": "secret"})
        a.wait_for("stdout")
        jupyter.set(session_delete=fault)
        stream = gather([server.stream("DELETE", "/contexts/" + context)], 8)[0]
        ok(stream.status in (500, 503), "%s: told" % fault, repr(stream.status_line))
        is_(verdict(gather([a])[0]), "ContextDeleted", "who ran is told")
        jupyter.set(session_delete=None)
        server.usable(context, limit=4)
        is_(server.request("DELETE", "/contexts/" + context).status, 200, "and then it goes")


# Gone while code runs and others wait


GONE = "kexec_reconnect_timeout 1s; kexec_queue size=16 timeout=7s;"


@scenario(rounds=1, many=10, workers=(1, 4), location=GONE)
def jupyter_down(server, rounds):
    """Jupyter does not answer for a while, longer than kexec_interrupt_timeout; its kernels live on."""
    jupyter = server.jupyter
    context = server.create_context()
    for i in range(rounds):
        told(server.run("set x 7", context_id=context))
        mark = jupyter.mark()
        a = server.begun("sleep 300", context)
        b = server.queued("get x", context)
        jupyter.down()
        down = time.monotonic()
        is_(told(a), "JupyterUnavailable", "running: JupyterUnavailable, end")
        between(a.finished_at - down, 1, 2, "after kexec_reconnect_timeout")
        c = server.execute("get x", context)
        ok(c.wait_head() in (200, 503), "arriving: queued or 503", c.status_line)
        is_(b.next(3), None, "queued: waits")
        jupyter.up()
        up = time.monotonic()
        is_((told(b), b.text()), ("ok", "7\n"), "and runs once Jupyter is back, the variables intact")
        within(b.finished_at - up, 3, "soon")
        if c.status == 200:
            is_((told(c), c.text()), ("ok", "7\n"), "arriving: runs")
        is_([r["code"] for r in jupyter.log(mark, ev="interrupt", landed="hit") if r.get("landed_code") != "sleep 300"]
            , [], "only the code of the first was interrupted")


@scenario(rounds=1, many=5, quick=(1,), workers=(1, 4), location=GONE)
def jupyter_down_too_long(server, rounds):
    """The same for longer than kexec_queue's timeout."""
    jupyter = server.jupyter
    context = server.create_context()
    for i in range(rounds):
        told(server.run("set x 7", context_id=context))
        a = server.begun("sleep 300", context)
        b = server.queued("get x", context)
        jupyter.down()
        is_(told(a), "JupyterUnavailable", "running: JupyterUnavailable, end")
        is_(told(b), "QueueTimeout", "queued: up to its queue timeout")
        between(b.finished_at - b.sent_at, 7, 8, "which is exact")
        like(b.all()[0].get("value"), r"held by .* for \d+ s", "and is told why")
        c = server.execute("get x", context)
        c.wait_head()
        jupyter.up()
        if c.status == 200:
            is_((told(c), c.text()), ("ok", "7\n"), "arriving: runs once Jupyter is back")
        is_(server.run("get x", context_id=context).text(), "7\n", "all is well then")


main(Faulty, workers=(1,), jobs=10)
