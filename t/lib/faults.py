"""What the scripts t/scenarios/faults*.py share: an nginx in front of a scripted Jupyter, with short timeouts.

    from faults import *

    @scenario(rounds=1, many=10, location="kexec_max_message 8m;")
    def lost_reply(server, rounds):
        ...

    main()

Each scenario has servers of its own and is run in a process of its own, several at a time (--jobs), since most of
them wait; --all is for those of all the scripts.  The other options are those of scenario.py.  When a scenario fails,
its servers' directory is kept, with scripted.log: what Jupyter saw.

Where an outcome takes seconds by nature, many streams run side by side, each in a context of its own: see gather(),
table() and parallel().
"""

import argparse
import glob
import random
import threading
import traceback

import kexec_test
from scenario import *
from scenario import Server, result, told

CONF = """
    kexec_interrupt_timeout 2s;
    kexec_reconnect_timeout 2s;
    kexec_ready_timeout 15s;
    kexec_connect_timeout 2s;
    kexec_jupyter_timeout 5s;
    kexec_keepalive 1s;
    kexec_queue size=64 timeout=20s;
"""

_scenarios = {}


def scenario(rounds=1, many=None, workers=1, conf=CONF, location="", **options):
    """location: more directives, stronger than CONF's.  options: of the scripted Jupyter, and of Faulty."""
    def add(function):
        _scenarios[function.__name__] = (function, rounds, many or rounds, workers, merged(conf, location), options)
        return function
    return add


def merged(*texts):
    """Directives, a later one in the place of an earlier one of its name."""
    found = {}
    for line in ";".join(texts).replace("\n", " ").split(";"):
        if line.strip():
            found[line.split()[0]] = line.strip() + ";"
    return "\n".join(found.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", help="only scenarios with that many, 1,4")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--only", action="append")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", "-j", type=int, default=int(os.environ.get("JOBS", "10")))
    parser.add_argument("--all", action="store_true", help="of all scripts faults*.py, 24 at a time")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.list:
        print("\n".join(_scenarios))
        sys.exit(0)
    if args.alone:
        run_alone(args.alone, args)
    script = os.path.abspath(sys.argv[0])
    chosen = [(script, n) for n, s in _scenarios.items() if (not args.only or n in args.only)
              and (not args.workers or str(s[3]) in args.workers.split(","))]
    if args.all:
        scripts = sorted(glob.glob(os.path.join(os.path.dirname(script), "faults*.py")))
        chosen = [(s, n) for s in scripts for n in subprocess.check_output([sys.executable, s, "--list"],
                                                                           text=True).split()]
        args.jobs = 24
    options = ["--many"] * args.many + (["--rounds", str(args.rounds)] if args.rounds else [])
    start = time.monotonic()
    jobs = [threading.Thread(target=run_jobs, args=(chosen, options), daemon=True) for _ in range(args.jobs)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    diag("%.1f s" % (time.monotonic() - start))
    done_testing()


_lock = threading.Lock()


def run_jobs(chosen, options):
    while True:
        with _lock:
            if not chosen:
                return
            script, name = chosen.pop(0)
        process = subprocess.run([sys.executable, script, "--alone", name, *options],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        with _lock:
            tests = kexec_test._tests
            seen = 0
            for line in process.stdout.split("\n"):
                match = re.match(r"(not ok|ok) \d+(.*)", line)
                if match:
                    seen += 1
                    tests["run"] += 1
                    tests["failed"] += match.group(1) == "not ok"
                    print("%s %d%s" % (match.group(1), tests["run"], match.group(2)))
                elif line and not re.match(r"1\.\.\d+$|# \d+ of \d+ tests failed", line):
                    print(line if line.startswith("#") else "# " + line)
            sys.stdout.flush()
            if process.returncode and (process.returncode != 1 or not seen):
                ok(False, "%s ends with status 0, not %d" % (name, process.returncode))


def run_alone(name, args):
    function, rounds, many, workers, conf, options = _scenarios[name]
    rounds = args.rounds or (many if args.many else rounds)
    diag("scenario %s workers=%d rounds=%d" % (name, workers, rounds))
    start = time.monotonic()
    try:
        with Faulty(workers, conf, **options) as server:
            try:
                function(server, rounds)
                server.check_log()
            finally:
                if kexec_test._tests["failed"]:
                    server.keep_log()
    except Exception:
        ok(False, "%s goes to its end" % name, traceback.format_exc())
    diag("%s %s workers=%d %.1f s" % ("FAILED" if kexec_test._tests["failed"] else "passed", name, workers,
                                      time.monotonic() - start))
    done_testing()


class Faulty(Server):
    """nginx and a scripted Jupyter of its own; options are Jupyter's."""

    def __init__(self, workers=1, conf=CONF, http="", default_contexts="python", jupyter=None, **options):
        super().__init__(workers, conf, jupyter or ScriptedJupyter(**options), http=http,
                         default_contexts=default_contexts)
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

    def keep_log(self):
        """What Jupyter saw, beside nginx's own logs."""
        with open(os.path.join(self.run_dir, "scripted.log"), "w") as f:
            for r in self.jupyter.log():
                f.write("%.3f %s\n" % (r["t"], json.dumps({k: v for k, v in r.items()
                                                           if k not in ("t", "content", "header")})))

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

    def started(self, part, since=0, timeout=10):
        return self.jupyter.wait(since=since, timeout=timeout, ev="start", **{"code~": part})

    def usable(self, context, name="the context is usable", limit=3):
        """The next execution runs, alone and unharmed."""
        mark = "usable %d" % random.getrandbits(40)
        stream = self.run("print " + mark, context_id=context)
        return is_((told(stream), stream.text()), ("ok", mark + "\n"), name) and \
            within(stream.finished_at - stream.sent_at, limit, name + ", soon")


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
