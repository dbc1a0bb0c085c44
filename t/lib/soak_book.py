"""How t/soak judges: what each stream may be told, by what was asked and by what the soak did to its context meanwhile.

Whatever is neither is a violation.  What is told because of something that the soak did is an excuse; they are counted
by reason, and no more than a fifth of all streams may need one.
"""

import collections
import threading
import traceback

import kexec_test
from kexec_test import *

MOST_EXCUSED = 0.2

# What the client of an execution may be told because of what was done to its context in that time.  "lost": it was told
# that all went well, but a part of its output is missing (docs/limits.md); "404": the context is not there.
EXCUSES = {
    "interrupt": {"KeyboardInterrupt", "ExecutionInterrupted"},
    "restart": {"ContextRestarted"},
    "stuck": {"ContextRestarted"},              # code that swallows interrupts was left, or is over its time
    "delete": {"ContextDeleted", "404"},
    "death": {"KernelDied", "output_dropped"},
    "cut": {"LinkLost", "ExecutionLost", "output_dropped", "lost"},
}

# Seconds for which it may show after it was done, on an idle machine: the next process is ready by then
SHOWS = {"interrupt": 1, "restart": 1, "stuck": 25, "delete": 1, "death": 8, "cut": 3, "kill": 2}

# Each of them ends a kernel's process
ENDS = {"restart", "stuck", "death"}


# What each execution does first, and what it tells then
BEGIN = """import os, time
def soak_mark(what):
    fd = os.open(%r, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, what)
    os.close(fd)
soak_mark(b's')"""
FIND = """soak_count = globals().get('soak_count', 0) + 1
print(' '.join(map(str, (%r, os.getpid(), soak_count, os.environ.get('SOAK'), os.environ.get('SOAK_VARIABLE'), os.getcwd()))),
      flush=True)"""


class Context:
    """One that the soak made, or a default one (id None), which is made anew after each DELETE."""

    def __init__(self, id):
        self.id = id
        self.name = id or "default"
        self.pids = {}              # of its kernel's processes, each with the counts that were seen in it
        self.ends = 0               # how many processes the soak has ended
        self.gone = False


class Ask:
    """One execution: what it runs and what its client is to be told.  Its code counts in a file how often it began
    and came to its end, and prints what it finds: process, count of the executions there, variables, directory.
    at_once: before it prints anything."""

    def __init__(self, book, context, code="", told=("ok",), lines=(), ends=True, variable=None, timeout=None, at_once=False):
        self.context, self.told, self.ends, self.variable, self.timeout = context, told, ends, variable, timeout
        self.token = book.token()
        self.lines = ["%s %s" % (self.token, line) for line in lines]
        book.asks.append(self)
        self.file = os.path.join(book.directory, self.token)
        parts = [BEGIN % self.file, code, FIND % self.token] if at_once else [BEGIN % self.file, FIND % self.token, code]
        self.code = "\n".join(parts).replace("TOKEN", self.token) + ("\nsoak_mark(b'e')" if ends else "")

    def fields(self):
        return {**({"env_vars": {"SOAK_VARIABLE": self.variable}} if self.variable else {}),
                **({"timeout": self.timeout} if self.timeout else {})}

    def marks(self):
        """How often it began (s) and came to its end (e)."""
        try:
            with open(self.file) as f:
                return f.read()
        except FileNotFoundError:
            return ""


class Book:
    def __init__(self, directory, cwd):
        self.directory, self.cwd = directory, cwd
        self.lock = threading.Lock()
        self.serial = self.violations = self.judged = 0
        self.done = collections.Counter()
        self.excused = collections.Counter()
        self.causes = []                        # [kind, context or None, from, until]
        self.asks = []

    def token(self):
        with self.lock:
            self.serial += 1
            return "t%d" % self.serial

    def count(self, name):
        with self.lock:
            self.done[name] += 1

    def violation(self, text):
        with self.lock:
            self.violations += 1
            kexec_test._tests["failed"] += 1            # the logs are kept
            print("violation: %s %s" % (time.strftime("%T"), text), flush=True)

    # What was done

    def begin(self, kind, context=None):
        """From now on it may show; until end() and a little longer.  kill: context is the worker's pid."""
        cause = [kind, context, time.monotonic(), None]
        with self.lock:
            self.causes.append(cause)
            self.done[kind] += 1
            if kind in ENDS or kind == "delete" and context.id is None:
                context.ends += 1
        return cause

    def end(self, cause):
        cause[3] = time.monotonic() + SHOWS[cause[0]] * slack()

    def take_back(self, cause):
        """It was not done after all."""
        with self.lock:
            self.causes.remove(cause)
            self.done[cause[0]] -= 1

    def kinds(self, context, since):
        """What was done to a context (or None: to a worker) from then to now."""
        now = time.monotonic()
        with self.lock:
            return {(k, c) for k, c, begin, end in self.causes
                    if (c is context or k == "kill") and begin <= now and (end is None or end >= since)}

    def killed(self, since, worker=None):
        """Was that worker killed meanwhile, or any?"""
        return any(k == "kill" and worker in (None, c) for k, c in self.kinds(None, since))

    # What was told

    def judge(self, ask, stream):
        """A stream that was read to its end; returns whether its client was told what it was to be."""
        with self.lock:
            self.judged += 1
        try:
            verdict = self.look(ask, stream)
        except Exception:
            return self.violation("%s: %s" % (ask.token, traceback.format_exc()))
        if verdict is None:
            return True
        kinds = {k for k, _ in self.kinds(ask.context, stream.sent_at)}
        for kind in kinds:
            if verdict in EXCUSES.get(kind, ()) and not (verdict == "404" and ask.context.id is None):
                with self.lock:
                    self.excused["%s by %s" % (verdict, kind)] += 1
                return False
        if verdict == "broken off" and self.killed(stream.sent_at, int(stream.headers.get("x-worker", 0)) or None):
            with self.lock:
                self.excused["broken off by kill"] += 1
            return False
        self.violation("%s in %s: %s, not %s; done to it: %s; marks %r; %s %s %r" % (
            ask.token, ask.context.name, verdict, "/".join(ask.told), sorted(kinds), ask.marks(), stream.status_line,
            stream.ended, stream.all()[-4:]))
        return False

    def look(self, ask, stream):
        """None: as it was to be.  What the soak's doing may explain is returned, what nothing does is a violation."""
        marks = ask.marks()
        if marks not in ("", "s", "se"):
            self.violation("%s in %s ran more than once: %r" % (ask.token, ask.context.name, marks))
        if stream.ended != "complete":
            return "broken off"
        if stream.status != 200:
            # a default context that was not whole yet: there is no stream yet that could tell
            return "ContextDeleted" if b"deleted while it was made" in stream.body else str(stream.status)
        events, types = stream.all(), stream.types()
        if types.count("end_of_execution") != 1 or types[-1] != "end_of_execution" or types.count("error") > 1:
            self.violation("%s has not one end, at the end: %r" % (ask.token, events[-4:]))
        told = stream.error() or "ok"
        value = next((e["value"] for e in events if e["type"] == "error"), "")
        # not of the code's own, which may say anything
        if "did not run" in value and told not in ask.told and marks:
            self.violation("%s: %s %r, but it ran: %r" % (ask.token, told, value, marks))
        lines = stream.text().splitlines()
        foreign = [line for line in lines if line.split(" ")[0] != ask.token]
        if foreign:
            self.violation("%s got foreign output: %r" % (ask.token, foreign[:3]))
        elif lines:
            self.found(ask, lines[0].split(" "))
        if told not in ask.told:
            return told
        if marks != {"ok": "se" if ask.ends else "s", "ValueError": "s", "KeyboardInterrupt": "s"}.get(told, marks):
            self.violation("%s in %s was told %s, but its marks are %r" % (ask.token, ask.context.name, told, marks))
        if "output_dropped" in types:
            return "output_dropped"
        if told == "ok" and lines[1:] != ask.lines:
            return "lost"
        return None

    def found(self, ask, words):
        """What the code found: the right variables and directory; each process counts on."""
        token, pid, count, *rest = words
        if rest != ["here", str(ask.variable), self.cwd]:
            self.violation("%s in %s is not prepared: %r" % (token, ask.context.name, rest))
        with self.lock:
            counts = ask.context.pids.setdefault(int(pid), set())
            again, lives = count in counts, len(ask.context.pids)
            counts.add(count)
        if again:
            self.violation("%s in %s: the variables of process %s are lost" % (token, ask.context.name, pid))
        if lives > 1 + ask.context.ends:
            self.violation("%s in %s: process %s is one too many, %d were ended" % (
                token, ask.context.name, pid, ask.context.ends))

    def request(self, server, method, path, body=None, allowed=(200,)):
        """A request about contexts.  None if the worker that should have answered was killed."""
        sent = time.monotonic()
        try:
            stream = server.stream(method, path, body, timeout=120)
            stream.finish()
        except OSError as e:
            if not self.killed(sent):
                self.violation("%s %s: %r" % (method, path, e))
            return None
        if stream.status is None or stream.ended != "complete":
            if not self.killed(sent, int(stream.headers.get("x-worker", 0)) or None):
                self.violation("%s %s: no answer, %s" % (method, path, stream.ended))
            return None
        if stream.status not in allowed:
            self.violation("%s %s: %s %r" % (method, path, stream.status_line, bytes(stream.body[:200])))
        return stream

    # In the end

    def close(self):
        """Nothing ran meanwhile that had not, and not too much was excused."""
        for ask in self.asks:
            if ask.marks() not in ("", "s", "se"):
                self.violation("%s in %s ran more than once: %r" % (ask.token, ask.context.name, ask.marks()))
        for reason, n in self.excused.most_common():
            print("soak: excused, %s: %d" % (reason, n), flush=True)
        share = sum(self.excused.values()) / max(self.judged, 1)
        if share > MOST_EXCUSED:
            self.violation("%.0f %% of the streams were excused" % (100 * share))
        return share
