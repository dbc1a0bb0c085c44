"""Faulty: an nginx in front of a scripted Jupyter, with short timeouts, and many streams at once.

    from faulty import *

    @scenario(many=10, location="kexec_max_message 8m;")
    def lost_reply(server, rounds):
        ...

    main(Faulty, workers=(1,), jobs=10)

Most of such scenarios wait, so that several are run at a time.  Where an outcome takes seconds by nature, many streams
run side by side, each in a context of its own: see gather(), table() and parallel().
"""

import random
import threading
import traceback

from scenario import *

CONF = """
    kexec_interrupt_timeout 2s;
    kexec_reconnect_timeout 2s;
    kexec_ready_timeout 15s;
    kexec_connect_timeout 2s;
    kexec_jupyter_timeout 5s;
    kexec_keepalive 1s;
    kexec_queue size=64 timeout=20s;
"""


def merged(*texts):
    """Directives, a later one in the place of an earlier one of its name."""
    found = {}
    for line in ";".join(texts).replace("\n", " ").split(";"):
        if line.strip():
            found[line.split()[0]] = line.strip() + ";"
    return "\n".join(found.values())


class Faulty(Scripted):
    """location: more directives, stronger than conf's.  No worker may die, unless .deaths says so."""

    def __init__(self, workers=1, location="", conf=CONF, **more):
        super().__init__(workers, merged(conf, location), **more)
        self.pids = set(self.workers())
        self.deaths = False             # may workers die?

    def check_log(self):
        if self.deaths:
            self.allowed = "exited on signal 9"
        super().check_log()
        found = self.log.lines("runtime error:")
        if found:
            ok(False, "nothing from UBSan", "\n".join(found[:10]))
        pids = set(self.workers())
        if self.deaths:
            return
        is_(pids, self.pids, "no worker died")
        self.pids = pids

    def fresh(self):
        """No faults, no log; kernels stay."""
        self.jupyter.reset()

    def contexts(self, n):
        """New contexts, made side by side."""
        streams = [self.stream("POST", "/contexts", {}) for _ in range(n)]
        answers = [s.answer() for s in streams]
        bad = [a for a in answers if a.status != 200]
        if bad:
            raise RuntimeError("POST /contexts: %r" % bad[0])
        return [a.json()["id"] for a in answers]

    def ran(self, code, since=0):
        """How often that code was started, in any kernel."""
        return len(self.jupyter.log(since, ev="start", code=code))

    def sent(self, code, since=0):
        """How often it was sent."""
        return len(self.jupyter.log(since, ev="execute", code=code))

    def begun(self, code, context, **more):
        """An execution whose code was seen to start."""
        mark = self.jupyter.mark()
        stream = self.execute(code, context, **more)
        self.jupyter.wait(since=mark, ev="start", **{"code~": code})
        return stream

    def usable(self, context, name="the context is usable", limit=3):
        """The next execution runs, alone and unharmed."""
        mark = "usable %d" % random.getrandbits(40)
        stream = self.run("print " + mark, context_id=context)
        return is_((told(stream), stream.text()), ("ok", mark + "\n"), name) and \
            within(stream.finished_at - stream.sent_at, limit, name + ", soon")


def protocols(server, function, n=24):
    """For both of Jupyter's protocols: function(contexts, protocol), with n fresh contexts."""
    for protocol in "v1", "json":
        server.fresh()
        server.jupyter.set(protocol=protocol)
        function(server.contexts(n), protocol)


def gather(streams, timeout=30):
    """Reads all of them to their ends, as they come; each gets its .finished_at."""
    end = time.monotonic() + timeout * slack()
    left = [s for s in streams if not s.ended]
    while left and time.monotonic() < end:
        ready, _, _ = select.select([s.sock for s in left], [], [], 0.2)
        for s in left:
            if s.sock in ready:
                s.pump(0)
            if s.ended:
                s.finished_at = time.monotonic()
                if s.ended == "complete":
                    s.sock.close()
        left = [s for s in left if not s.ended]
    for s in streams:
        if not hasattr(s, "finished_at"):
            s.finished_at = time.monotonic()
    return streams


def verdict(stream):
    """told(), without reading: for streams that were gathered."""
    events = stream.all()
    if stream.ended != "complete" or not events or events[-1]["type"] != "end_of_execution":
        return "no end: %s %s %r" % (stream.status_line, stream.ended, events[-3:])
    types = stream.types()
    if types.count("end_of_execution") != 1:
        return "several ends: %r" % (types,)
    if types.count("error") > 1:
        return "several errors: %r" % (events,)
    return stream.error() or "ok"


def value(stream):
    """The words of the (first) error event."""
    return next((e.get("value") for e in stream.all() if e.get("type") == "error"), None)


def dropped(stream):
    return "output_dropped" in stream.types()


def took(stream):
    return stream.finished_at - stream.sent_at


at_most = within


class Case:
    """One row of a table: code, and what its stream must be like.  told: a verdict, or a tuple of them."""

    def __init__(self, name, code, told="ok", text=None, lost=False, least=0, most=None, check=None, **fields):
        self.name, self.code, self.told, self.text = name, code, told, text
        self.lost, self.least, self.most, self.check, self.fields = lost, least, most, check, fields
        self.stream = None

    def problems(self):
        s = self.stream
        found = []
        if verdict(s) not in (self.told if isinstance(self.told, tuple) else (self.told,)):
            found.append("told %s, not %s: %r" % (verdict(s), self.told, value(s)))
        if self.text is not None and s.text() != self.text:
            found.append("text %r, not %r" % (s.text()[:300], self.text[:300]))
        if self.lost is not None and dropped(s) != self.lost:
            found.append("output_dropped was%s told" % ("" if dropped(s) else " not"))
        if took(s) < self.least:
            found.append("ended too soon, after %.2f s" % took(s))
        if self.most and took(s) > self.most * slack():
            found.append("took %.2f s, limit %.2f s" % (took(s), self.most * slack()))
        if self.check:
            found += [p for p in [self.check(s)] if p]
        return found


def run_cases(server, contexts, cases, timeout=60):
    """Spreads the cases over the contexts, each context takes one after the other.  No two cases have the same
    code: a marker is put behind it."""
    waiting, running = list(cases), {}
    free = list(contexts)
    end = time.monotonic() + timeout * slack()
    while (waiting or running) and time.monotonic() < end:
        while waiting and free:
            case = waiting.pop(0)
            context = free.pop(0)
            case.context = context
            case.stream = server.execute(case.code, context, **case.fields)
            running[case.stream] = context
        ready, _, _ = select.select([s.sock for s in running], [], [], 0.2)
        for s in [s for s in running if s.sock in ready]:
            s.pump(0)
            if s.ended:
                s.finished_at = time.monotonic()
                s.sock.close()
                free.append(running.pop(s))
    for s in running:
        s.finished_at = time.monotonic()
        s.close()
    return [c for c in cases if c.stream is not None]


def table(server, contexts, cases, name, timeout=60):
    """Runs the cases; one test for all, every bad one in its detail."""
    done = run_cases(server, contexts, cases, timeout)
    bad = ["%s: %s" % (c.name, "; ".join(p)) for c in done for p in [c.problems()] if p]
    if len(done) < len(cases):
        bad.append("%d of %d cases were never started" % (len(cases) - len(done), len(cases)))
    return ok(not bad, "%s (%d cases)" % (name, len(cases)), "\n".join(bad[:20] + ["..."] * (len(bad) > 20)))


def parallel(functions, timeout=60):
    """Runs functions in threads; returns what they return (lists of problems), all in one list."""
    problems = []

    def run(function):
        try:
            problems.extend(function() or [])
        except Exception:
            problems.append(traceback.format_exc())

    threads = [threading.Thread(target=run, args=(f,), daemon=True) for f in functions]
    end = time.monotonic() + timeout * slack()
    for t in threads:
        t.start()
    for t in threads:
        t.join(max(end - time.monotonic(), 0))
    if any(t.is_alive() for t in threads):
        problems.append("%d of %d threads did not end" % (sum(t.is_alive() for t in threads), len(threads)))
    return problems


def none(problems, name):
    return ok(not problems, name, "\n".join(map(str, problems[:20])))
