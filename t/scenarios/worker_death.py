#!/usr/bin/python3
"""Worker processes die: in any state of an execution, at any moment, inside the zone's critical sections too.  Contexts
and variables stay, who waits in another worker is served soon and in order, nothing of the dead one is left."""

import itertools
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from workers import *
import situations
import kexec_test

# for the slot to be free and the queue to move
SOON = 3


def everybody_waits(server, context, holder, n=8):
    """Waiters in all workers in turn: [(number, stream)].  Each is in the queue when the next one comes."""
    waiting = []
    for k in range(n):
        stream = server.execute_on(k % server.n_workers, "ran.append(%d)" % k, context)
        stream.wait_head(10)
        waiting.append((k, stream))
    return waiting


def judge_queue(server, context, waiting, victim, since, lost=True):
    """Those in the victim are cut off (unless it may finish what it has), the others run in order, the first soon."""
    streams = [s for _, s in waiting]
    pump_all(streams, lambda: all(s.ended for s in streams))
    cut = [k for k, s in waiting if worker_of(s) == victim and lost]
    is_([k for k, s in waiting if s.ended != "complete"], cut, "who waited in that worker is cut off, nobody else")
    is_([told(s) for k, s in waiting if k not in cut], ["ok"] * (len(waiting) - len(cut)), "all others end well")
    first = min((s.at("end_of_execution") for k, s in waiting if k not in cut), default=since)
    within(first - since, SOON, "the first of them soon")
    is_(server.value("ran", context), repr([k for k, _ in waiting if k not in cut]),
        "in order; the code of those that were cut off did not run")


@scenario(rounds=2, many=50, workers=(4,))
def killed(server, rounds):
    """SIGKILL or SIGTERM at a random moment of a running execution, with waiters in all workers."""
    server.allowed = KILLED
    context = server.create_context()
    for i in range(rounds):
        number = (signal.SIGKILL, signal.SIGTERM)[i % 2]
        told(server.run("ran = []\nx = %d" % i, context_id=context))
        with watched(server, "the zone, with " + number.name):
            holder = server.execute_on(0, "import time\ntime.sleep(300)", context)
            victim = worker_of(holder)
            waiting = everybody_waits(server, context, holder)
            time.sleep(random.uniform(0, 0.3))
            server.signal(number, victim)
            killed = time.monotonic()
            judge_queue(server, context, waiting, victim, killed)
            holder.finish(5)
            isnt(holder.ended, "complete", "the running one is cut off")
            is_(server.value("x", context), str(i), "the variables are there")
            server.replaced(victim)
            is_(told(server.execute_on(0, "1", context)), "ok", "the new worker runs code")
            server.quiet()


@scenario(rounds=5, many=150, workers=(4,))
def killed_as_it_sends(server, rounds):
    """SIGKILL as the worker is granted the slot and sends its code: Jupyter must not find that on a link it has closed."""
    server.allowed = KILLED
    context = server.create_context()
    longest = 0
    for i in range(rounds):
        gate = server.gate()
        first = server.execute_on(1, gate.code, context)
        first.wait_head(10)
        holder = server.execute_on(0, "import time\ntime.sleep(300)", context)
        victim = worker_of(holder)
        waiting = server.execute_on(2, "1", context)
        waiting.wait_head(10)
        gate.open()
        told(first)
        time.sleep(random.uniform(0, 0.012))
        server.signal(signal.SIGKILL, victim)
        killed = time.monotonic()
        if told(waiting) != "ok":
            ok(False, "the next one runs", waiting.all())
        longest = max(longest, waiting.finished_at - killed)
        server.replaced(victim)
    within(longest, SOON, "the next one runs soon")
    server.quiet()


@scenario(rounds=1, many=50, workers=(4,))
def left(server, rounds):
    """SIGQUIT: the worker ends what it has, complete, then another one takes its place."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("ran = []", context_id=context))
        with watched(server):
            gate = server.gate()
            holder = server.execute_on(0, gate.code + "for i in range(1000):\n    print(i)", context)
            victim = worker_of(holder)
            waiting = everybody_waits(server, context, holder)
            server.signal(signal.SIGQUIT, victim)
            late = [(8, server.execute_on(1, "ran.append(8)", context))]    # nobody listens in worker 0's place now
            worker_of(late[0][1])
            time.sleep(0.3)
            opened = gate.open()
            judge_queue(server, context, waiting + late, victim, opened, lost=False)
            is_((told(holder), holder.text()), ("ok", "".join("%d\n" % n for n in range(1000))), "complete output")
            server.replaced(victim)
            is_(told(server.execute_on(0, "1", context)), "ok", "the new worker runs code")
            server.quiet()


@scenario(rounds=1, many=30, workers=(1,), quick=(1,))
def the_only_one(server, rounds):
    """With one worker, its successor does it all."""
    server.allowed = KILLED
    context = server.create_context()
    for i in range(rounds):
        told(server.run("x = %d" % i, context_id=context))
        holder = server.busy(context)
        queued = server.queued("x = 'ran'", context)
        victim = worker_of(holder)
        server.signal(signal.SIGKILL, victim)
        killed = time.monotonic()
        stream = server.run("x", context_id=context)
        is_((told(stream), result(stream)), ("ok", str(i)), "the next one runs, the variables are there")
        within(stream.finished_at - killed, SOON, "soon")
        server.replaced(victim)
        server.quiet()


@scenario(rounds=1, many=20, workers=(4,))
def maker(server, rounds):
    """The worker that makes a default context: who waits for that in another one makes it after all."""
    server.allowed = KILLED
    own = server.create_context()
    for i in range(rounds):
        victim = worker_of(server.execute_on(0, "1", own))
        server.quiet()
        server.execute_on(0, "echo it", None, language="bash")
        wait_until(lambda: server.zone()["claims"] == 1, 10, "the context's making")
        waiting = server.execute_on(1, "echo $((6 * 7))", None, language="bash")
        wait_until(lambda: server.zone()["claims"] == 2, 10, "somebody who waits for it")
        server.signal(signal.SIGKILL, victim)
        is_((told(waiting), waiting.text()), ("ok", "42\n"), "the other one runs")
        server.replaced(victim)
        made = [c["id"] for c in server.request("GET", "/contexts").json() if c["language"] == "bash"]
        is_(len(made), 1, "there is one such context")
        is_(server.request("DELETE", "/contexts/" + made[0]).status, 200, "which can be deleted")
        server.quiet()


@scenario(rounds=1, many=20, workers=(4,))
def at_random(server, rounds):
    """Workers are killed again and again under a load of executions, drops, interrupts and new contexts."""
    server.allowed = KILLED
    contexts = [server.create_context() for _ in range(3)]
    for context in contexts:
        told(server.run("n = 0\nmine = %r" % context, context_id=context))
    stop = threading.Event()
    problems, kills = [], []

    def killed(since):
        """Was a worker killed meanwhile?  A moment later is too late for what has already failed."""
        return any(t >= since for t in kills)

    def ask(method, path, body=None):
        """None: cut off with its worker."""
        since = time.monotonic()
        stream = server.stream(method, path, body)
        stream.finish(30 * slack())
        if stream.status is not None and stream.ended == "complete":
            return stream
        if not killed(since):
            problems.append("%s %s: %s %s, though no worker was killed" % (method, path, stream.status_line, stream.ended))

    def operate(context, what):
        if what < 0.1:
            answer = ask("POST", "/contexts/%s/interrupt" % context)
            if answer and answer.status != 200:
                problems.append("interrupt: %s %r" % (answer.status_line, answer.body))
            return
        if what < 0.2:
            for method in "POST", "DELETE":
                answer = ask(method, "/contexts" if method == "POST" else "/contexts/" + made, {} if method == "POST" else None)
                if answer is None:
                    return
                if answer.status != 200:
                    problems.append("%s of a context: %s %r" % (method, answer.status_line, answer.body))
                    return
                made = method == "POST" and json.loads(answer.body)["id"]
            return
        since = time.monotonic()
        stream = server.execute(random.choice(["mine", "import time; time.sleep(0.2)\nmine"]), context)
        if what < 0.5:
            stream.wait_head(random.random())
            stream.close()
            return
        stream.finish(30 * slack())
        if stream.ended != "complete":
            if not killed(since):
                problems.append("broken off, %s, though no worker was killed: %r" % (stream.ended, stream.all()))
        elif told(stream) not in ("ok", "KeyboardInterrupt", "ExecutionInterrupted") or \
                told(stream) == "ok" and result(stream) != context:
            problems.append("%s was told %r" % (context, stream.all()))

    def client(seed):
        rand = random.Random(seed)
        while not stop.is_set():
            since = time.monotonic()
            try:
                operate(rand.choice(contexts), rand.random())
            except OSError as e:
                if not killed(since):       # before it could be accepted
                    problems.append("%r, though no worker was killed" % e)
            except Exception:
                problems.append(traceback.format_exc())
    threads = [threading.Thread(target=client, args=(n,), daemon=True) for n in range(6)]
    with watched(server):
        for thread in threads:
            thread.start()
        for i in range(4 * rounds):
            time.sleep(random.uniform(0.2, 0.8))
            victim = random.choice(server.workers())
            kills.append(time.monotonic())
            server.signal(random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)), victim)
            server.replaced(victim)
            kills.append(time.monotonic())          # its successor took over
        stop.set()
        for thread in threads:
            thread.join(40 * slack())
        ok(not any(t.is_alive() for t in threads), "every request ends")
        ok(not problems, "all are told the truth", "\n".join(problems[:5]))
        for context in contexts:
            is_(server.value("mine", context), context, "its variables are there")
        server.quiet()


# Every state, by a scripted Jupyter

STATES = situations.STATES + ["session", "restart", "delete"]
SLOW = {"linking": {"channels": {"delay": 0.7}}, "barrier": {"interrupt": {"delay": 0.7}},
        "restarting": {"restart": {"delay": 0.7}}, "restart": {"restart": {"delay": 0.7}},
        "delete": {"any": {"delay": 0.7, "match": "sessions/"}}}


class InState(situations.Situation):
    """A Situation whose execution is in worker 0."""

    def execute(self, code=None, **fields):
        if code:
            self.code = code
        self.a = self.server.execute_on(0, self.code, self.context, **fields)


@scenario(rounds=3, many=60, workers=(4,))
def in_each_state(server, rounds):
    """SIGKILL in a state: two that wait in other workers run in order, the context is what it was."""
    with ScriptedJupyter() as jupyter, Workers(4, CONF.replace("interrupt_timeout 4s", "interrupt_timeout 2s"), jupyter=jupyter,
                                               http="kexec_sync 300ms;") as own:
        own.allowed = KILLED
        states = itertools.cycle(random.sample(STATES, len(STATES)))
        for i in range(rounds):
            one_state(own, jupyter, next(states))
        own.check_log()


def one_state(server, jupyter, state):
    s = InState(server, state, "kill", False)
    told(server.run("set x 7", context_id=s.context))
    with watched(server, "the zone, in state " + state):
        jupyter.set(**SLOW.get(state, {}))
        if state in ("restart", "delete"):
            s.execute("print begin")
            victim = worker_of(s.a)
            told(s.a)
            operation = operation_on(server, 0, state, s.context)
            jupyter.wait(since=s.mark, ev="rest", **{"path~": {"restart": "/restart", "delete": "sessions/"}[state]})
        elif state == "session":
            jupyter.kernel(s.kernel, "dead")
            jupyter.wait(since=s.mark, ev="kernel_removed")
            time.sleep(0.2)         # the worker that has the link hears of it
            jupyter.set(session_create={"delay": 0.7})
            s.execute("print begin")
            victim = worker_of(s.a)
            time.sleep(0.2)
        else:
            s.enter()
            victim = worker_of(s.a)
        streams = []
        for k, code in (1, "print b"), (2, "print c"):
            streams.append(server.execute_on(k, code, s.context))
            if state != "delete":
                streams[-1].wait_head(10)
        b, c = streams
        server.signal(signal.SIGKILL, victim)
        killed = time.monotonic()
        jupyter.set(**dict.fromkeys(SLOW.get(state, {})), session_create=None)
        if state in ("probing", "setup", "restoring"):
            s.options(silent_delay=0, kernel_info={})
        pump_all(streams, lambda: all(x.ended for x in streams), 20)
        if state == "delete":
            # it may have come to its end without that worker
            wait_until(lambda: server.run("print 1", context_id=s.context).status in (200, 404), 10)
        elif state in ("restart", "restarting"):
            ok({told(b), told(c)} <= {"ok", "ContextRestarted"}, state + ": who waited is told", [told(b), told(c)])
            is_(told(server.run("print 1", context_id=s.context)), "ok", state + ": the next one runs")
        elif is_((told(b), told(c), b.text(), c.text()), ("ok", "ok", "b\n", "c\n"), state + ": both run"):
            within(b.at("end_of_execution") - killed, SOON, state + ": soon")
            is_([r["code"] for r in jupyter.log(s.mark, ev="start") if r["code"] in ("print b", "print c")],
                ["print b", "print c"], state + ": in order, once")
            if state not in ("session",):
                is_(server.run("get x", context_id=s.context).text(), "7\n", state + ": the variables are there")
        server.replaced(victim)
        server.quiet(state + ": nothing is left in the zone")


def operation_on(server, worker, what, context):
    method, path = {"restart": ("POST", "/contexts/%s/restart"), "delete": ("DELETE", "/contexts/%s")}[what]
    return Stream(server.port, method, path % context, {} if method == "POST" else None,
                  local_port=server._ports[worker].pop())


@scenario(rounds=2, many=20, workers=(4,))
def deletion_taken_over(server, rounds):
    """A worker dies in the middle of a DELETE: the client that asks again deletes the context, which nobody sees come back."""
    with ScriptedJupyter() as jupyter, Workers(4, CONF, jupyter=jupyter) as own:
        own.allowed = KILLED
        for i in range(rounds):
            context = own.create_context()
            first = own.execute_on(0, "print begin", context)
            victim = worker_of(first)
            told(first)
            jupyter.set(session_delete={"hang": True, "times": 1})
            mark = jupyter.mark()
            operation_on(own, 0, "delete", context)
            jupyter.wait(since=mark, ev="rest", name="session_delete")
            again = [operation_on(own, k, "delete", context) for k in (1, 2)]
            wait_until(lambda: own.zone()["claims"] == 3, 10, "both to wait")
            gone = own.execute_on(3, "print 1", context)
            gone.finish()
            is_(gone.status, 404, "it is gone for an execution")
            own.signal(signal.SIGKILL, victim)
            pump_all(again, lambda: all(s.ended for s in again), 20)
            is_(sorted(s.status for s in again), [200, 404], "one of them deletes it, the other is told so")
            is_(own.run("print 1", context_id=context).status, 404, "it stays gone")
            is_(jupyter.log(mark, ev="rest", name="session_delete")[-1]["status"], 204, "in Jupyter too")
            own.replaced(victim)
            own.quiet()
        own.check_log()


# Inside the zone

POINTS = 21

# What needs more than requests: a worker that dies while it has claims
HELP = {18: signal.SIGTERM}

# A grant that is not taken in time, kexec_context_idle_timeout: the unit test has them
UNREACHED = {12, 21}


@scenario(rounds=1, many=2 * POINTS, workers=(4,))
def inside_the_zone(server, rounds):
    """At each of the numbered points of the critical sections, under load."""
    server.allowed = KILLED_INSIDE
    server.configure(lambda text: "env KEXEC_ZONE_CRASH;\n" + text)
    contexts = [server.create_context() for _ in range(3)]
    for context in contexts:
        told(server.run("mine = %r" % context, context_id=context))
    points = sorted(set(range(1, POINTS + 1)) - UNREACHED)
    random.shuffle(points)
    missed = []
    for point in itertools.islice(itertools.cycle(points), rounds):
        restart(server, point)
        with watched(server, "point %d: the zone" % point):
            if not load_until(server, contexts, lambda: server.log.lines("exited on signal 9"), HELP.get(point)):
                missed.append(point)
            for context in contexts:
                stream = server.run("mine", context_id=context)
                is_((told(stream), result(stream)), ("ok", context), "point %d: the context is what it was" % point)
                within(stream.finished_at - stream.sent_at, SOON, "point %d: at once" % point)
            server.quiet("point %d: nothing is left in the zone" % point)
        server.check_log()
    is_(missed, [], "every point was reached")


@scenario(rounds=1, many=10, workers=(4,))
def while_a_session_is_written(server, rounds):
    """Jupyter gave a kernel up, and the worker dies in the middle of writing that down: the context is not lost."""
    with ScriptedJupyter() as jupyter, Workers(4, jupyter=jupyter) as own:
        own.allowed = KILLED_INSIDE
        own.configure(lambda text: "env KEXEC_ZONE_CRASH;\n" + text)
        context = own.create_context()
        for i in range(rounds):
            restart(own, 6)
            stream = own.execute("print 1\nsleep 30", context)
            stream.wait_for("stdout", 10)
            jupyter.kernel(own.kernel(context), "dead")
            stream.finish(10)
            isnt(stream.ended, "complete", "the worker died")
            is_(told(own.run("print 2", context_id=context)), "ok", "the next one runs, in a new kernel")
            is_(context in [c["id"] for c in own.request("GET", "/contexts").json()], True, "the context is listed")
            own.quiet()
        own.check_log()


def restart(server, point):
    """All of nginx, with a point set."""
    server.kill()
    server.log.mark()
    kexec_test.NGINX_ENV["KEXEC_ZONE_CRASH"] = str(point)
    server.start_nginx()
    del kexec_test.NGINX_ENV["KEXEC_ZONE_CRASH"]
    wait_until(lambda: port_answers(server.port), 10, "nginx")
    server.wait_healthy()


def load_until(server, contexts, test, number=None, seconds=30):
    """Clients that do all that a client can do; requests may be cut off.  A worker gets the signal."""
    stop = threading.Event()

    def client(n):
        rand = random.Random(n)
        while not stop.is_set():
            context = rand.choice(contexts)
            try:
                what = rand.random()
                if what < 0.15:
                    new = server.request("POST", "/contexts", {}, timeout=10).json()["id"]
                    waiting = server.execute("import time; time.sleep(0.3)", new)
                    waiting.wait_head(1)
                    queued = [server.execute("1", new) for _ in range(2)]
                    time.sleep(0.05)
                    server.request("POST", "/contexts/%s/interrupt" % new, timeout=10)
                    server.request("POST", "/contexts/%s/restart" % new, timeout=10)
                    server.request("DELETE", "/contexts/" + new, timeout=10)
                    for stream in [waiting] + queued:
                        stream.close()
                elif what < 0.2:
                    server.request("POST", "/contexts", {"cwd": "/nowhere"}, timeout=10)
                elif what < 0.3:
                    server.request("POST", "/execute", {"code": "1", "language": "nope%d" % rand.randrange(9)}, timeout=10)
                else:
                    stream = server.execute("import time; time.sleep(0.02)\nmine", context)
                    if what < 0.5:
                        stream.wait_head(0.1)
                        stream.close()
                    else:
                        stream.finish(5)
                        stream.close()
            except (OSError, ValueError, IndexError, KeyError):
                pass
    threads = [threading.Thread(target=client, args=(n,), daemon=True) for n in range(8)]
    for thread in threads:
        thread.start()
    if number:
        time.sleep(1)
        server.signal(number, server.workers()[0])
    end = time.monotonic() + seconds * slack()
    died = False
    while not died and time.monotonic() < end:
        died = bool(test())
        time.sleep(0.02)
    time.sleep(0.3)
    stop.set()
    for thread in threads:
        thread.join(20)
    return died


main(lambda workers: Workers(workers, http="kexec_sync 300ms;"), workers=(1, 4))
