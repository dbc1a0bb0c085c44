"""Executions in every state: Situation brings one there, lets something happen and judges."""

import itertools

from faulty import *

STATES = ["linking", "probing", "setup", "sent", "busy", "ending", "barrier", "restoring", "restarting"]
WATCHED = {"linking", "probing", "setup", "sent", "busy", "ending"}     # there is a client still

EVENTS = ["die", "dead", "delete", "restart behind the back", "interrupt behind the back", "cut", "close",
          "close 1009", "close 1011",
          "leave", "POST restart", "DELETE", "POST interrupt", "nothing"]

# what the client is told, where it is not "ok"
TOLD = {
    "die": {s: {"KernelDied"} for s in ("sent", "busy", "ending")},
    "dead": {s: {"KernelDied"} for s in ("sent", "busy", "ending")},
    "delete": {"sent": {"KernelDied"}, "busy": {"KernelDied", "KeyboardInterrupt"}, "ending": {"ok", "KernelDied"},
               "setup": {"ok", "EnvironmentError"}},
    "restart behind the back": {"busy": {"KeyboardInterrupt", "ExecutionLost", "KernelDied"},
                                "setup": {"ok", "EnvironmentError"}, "sent": {"ok", "KernelDied"},
                                "ending": {"ok", "KernelDied", "ExecutionLost"}},
    "interrupt behind the back": {"busy": {"KeyboardInterrupt"}, "setup": {"EnvironmentError"}, "ending": {"ok"}},
    "close 1009": {"sent": {"CodeTooLarge"}, "setup": {"EnvironmentError"}},
    "POST restart": {s: {"ContextRestarted"} for s in STATES},
    "DELETE": {s: {"ContextDeleted"} for s in STATES},
    "POST interrupt": {"busy": {"KeyboardInterrupt"}, "sent": {"KeyboardInterrupt"}, "ending": {"ok"}} |
                      {s: {"ExecutionInterrupted"} for s in ("linking", "probing", "setup")},
}


class Situation:
    """A context of its own whose execution is brought into a state."""

    count = itertools.count()

    def __init__(self, server, state, event, waiting):
        self.server, self.jupyter, self.state, self.event = server, server.jupyter, state, event
        self.name = "%s in %s%s" % (event, state, ", one waits" if waiting else "")
        self.problems = []
        self.tag = "%d %s" % (next(Situation.count), state)
        self.context = server.create_context()
        self.kernel = server.kernel(self.context)
        self.mark = self.jupyter.mark()
        self.code = "print begin %s\nsleep 1.5\nprint end" % self.tag
        self.waiting = waiting
        self.b = None

    def say(self, text):
        self.problems.append("%s: %s" % (self.name, text))

    def wait(self, **match):
        return self.jupyter.wait(since=self.mark, kernel=self.kernel, **match)

    def options(self, **options):
        self.jupyter.kernel(self.kernel, "set", **options)

    def execute(self, code=None, **fields):
        if code:
            self.code = code
        self.a = self.server.execute(self.code, self.context, **fields)
        if self.waiting:
            self.queue()

    def queue(self):
        self.b = self.server.execute("sleep 0.02\nprint waited %s" % self.tag, self.context)
        self.b.wait_head(10)

    def enter(self):
        getattr(self, "enter_" + self.state)()

    def enter_linking(self):
        self.jupyter.kernel(self.kernel, "cut")
        self.wait(ev="ws_close")
        time.sleep(0.05)
        self.execute()          # channels are slow to open here: see matrix()
        self.jupyter.wait(since=self.mark, ev="rest", name="channels", **{"path~": self.kernel})
        time.sleep(0.1)

    def enter_probing(self):
        self.options(kernel_info={"delay": 0.7})
        self.jupyter.kernel(self.kernel, "cut")
        self.wait(ev="ws_close")
        time.sleep(0.05)
        self.execute()
        self.wait(ev="message", type="kernel_info_request", **{"session!": True})

    def enter_setup(self):
        self.options(silent_delay=0.7)
        self.execute(env_vars={"A": "secret"})
        self.wait(ev="start", silent=True)

    def enter_sent(self):
        self.jupyter.kernel(self.kernel, "foreign", seconds=1.5)
        self.execute()
        self.wait(ev="execute", **{"code~": self.tag})

    def enter_busy(self):
        self.execute()
        self.a.wait_for("stdout", 10)

    def enter_ending(self):
        """The reply is there, idle is not."""
        self.execute("reply_first 1.5\nprint begin %s" % self.tag)
        self.wait(ev="ran", silent=False)

    def enter_barrier(self):
        """The code has ended, an interrupt call is in flight: they are slow here."""
        self.execute("print begin %s\nsleep 0.2" % self.tag)
        self.a.wait_for("stdout", 10)
        self.a.close()
        self.wait(ev="end", silent=False)

    def enter_restoring(self):
        self.options(silent_delay=0.7)
        self.execute("print begin %s" % self.tag, env_vars={"A": "secret"})
        self.a.wait_for("end_of_execution", 10)
        self.a.finish()

    def enter_restarting(self):
        """A kernel that does not react; restarts are slow here."""
        self.execute("print begin %s\nswallow 60" % self.tag)
        self.a.wait_for("stdout", 10)
        self.a.close()
        self.jupyter.wait(since=self.mark, ev="rest", name="restart", **{"path~": self.kernel})
        time.sleep(0.1)

    def happen(self):
        event, jupyter = self.event, self.jupyter
        word, _, rest = event.partition(" ")
        try:
            if event in ("die", "dead", "delete", "cut"):
                jupyter.kernel(self.kernel, event)
            elif word == "close":
                jupyter.kernel(self.kernel, "close", **({"code": int(rest)} if rest else {}))
            elif event == "restart behind the back":
                jupyter.kernel(self.kernel, "restart")
            elif event == "interrupt behind the back":
                jupyter.kernel(self.kernel, "interrupt")
            elif event == "leave":
                random.choice([Stream.close, Stream.reset, Stream.half_close])(self.a)
            elif event != "nothing":
                path = "/contexts/" + self.context + ("/" + rest if word == "POST" else "")
                self.operation = self.server.stream(word, path)
        except RuntimeError as e:
            self.say("the fake does not do that: %s" % e)
        self.happened = time.monotonic()

    def run(self):
        try:
            self.enter()
            self.operation = None
            self.happen()
            self.judge()
        except Exception as e:
            self.say("%r %s" % (e, traceback.format_exc().replace("\n", " | ")))
        return self.problems

    def limit(self, stream, seconds, what):
        if stream.finished_at - self.happened > seconds * slack():
            self.say("%s took %.1f s" % (what, stream.finished_at - self.happened))

    def judge(self):
        event, state = self.event, self.state
        gone = event == "DELETE"
        watched = state in WATCHED and event != "leave"
        everybody = [s for s in (self.a if watched else None, self.b, self.operation) if s]
        gather(everybody, 25)

        if watched:
            told_ = TOLD.get(event, {}).get(state, {"ok"})
            if verdict(self.a) not in told_:
                self.say("told %s %r, not %s" % (verdict(self.a), value(self.a), "/".join(told_)))
            self.limit(self.a, 14 if state in ("busy", "ending")
                       and event in ("delete", "restart behind the back") else 9, "its end")
            if verdict(self.a) == "ok" and not dropped(self.a) and "begin" not in self.a.text():
                self.say("output is missing without a word")

        if self.operation:
            wanted = {"POST interrupt": (200, 504)}.get(event, (200,))
            if self.operation.status not in wanted:
                self.say("%s was answered %s %r" % (event, self.operation.status, self.operation.body))
            self.limit(self.operation, 5, event)

        if self.b:
            allowed = {"ContextDeleted"} if gone else {"ContextRestarted"} if event == "POST restart" else {"ok"}
            if state == "restarting":
                allowed = allowed | {"ContextRestarted"}
            if event in ("delete", "restart behind the back") and state == "busy":
                allowed = allowed | {"ExecutionLost", "KernelDied",
                                     "KeyboardInterrupt"}    # it had begun in the old process
            if event == "DELETE" and self.b.status == 404:
                pass
            elif verdict(self.b) not in allowed:
                self.say("who waited was told %s %r, not %s" % (verdict(self.b), value(self.b), "/".join(allowed)))
            self.limit(self.b, 16, "who waited")
            runs = len(self.jupyter.log(self.mark, ev="start", code="sleep 0.02\nprint waited %s" % self.tag))
            began = event in ("delete", "restart behind the back") and state == "busy"
            if runs != (verdict(self.b) == "ok") and not began:
                self.say("who waited was told %s and ran %d times" % (verdict(self.b), runs))

        runs = len(self.jupyter.log(self.mark, ev="start", code=self.code))
        if runs > 1:
            self.say("ran %d times" % runs)
        unsure = "may or may not have run" in (value(self.a) or "") if watched else False
        if watched and not runs and not unsure and verdict(self.a) in ("ok", "KernelDied", "KeyboardInterrupt"):
            self.say("told %s and did not run" % verdict(self.a))
        if watched and runs and verdict(self.a) in ("ExecutionInterrupted", "CodeTooLarge", "EnvironmentError"):
            if event != "close 1009":                   # the fake closes though it has taken the code
                self.say("told %s and ran" % verdict(self.a))

        try:
            self.options(silent_delay=0, kernel_info={})
        except RuntimeError:
            pass
        if gone:
            last = gather([self.server.execute("print after", self.context)], 12)[0]
            if last.status != 404 and verdict(last) != "ContextDeleted":
                self.say("gone, but answered %s" % verdict(last))
            answer = self.server.run("print after", context_id=self.context)
            if answer.status != 404:
                self.say("gone, but still answered %s" % answer.status)
            return
        last = gather([self.server.execute("print after %s" % self.tag, self.context)], 12)[0]
        if (verdict(last), last.text()) != ("ok", "after %s\n" % self.tag) and not (verdict(last) == "ok"
                                                                                    and dropped(last)):
            self.say("the next one: %s %r %r" % (verdict(last), value(last), last.text()))
        if self.event in ("leave", "nothing", "cut", "close", "POST interrupt") and took(last) > 6 * slack():
            self.say("the next one took %.1f s" % took(last))
        # with env_vars: they were put back, or the process is another one
        state_ = self.jupyter.state()["kernels"].get(self.server.kernel(self.context), {})
        silent = state_.get("silent", [])
        if not any("chdir" in s for s in silent):
            self.say("the kernel is not prepared: %r" % [s[:30] for s in silent])
        sets = [k for k, s in enumerate(silent) if "secret" in s]
        restores = [k for k, s in enumerate(silent) if "del sys.__kexec_env__" in s]
        if sets and (not restores or restores[-1] < sets[-1]):
            self.say("variables were not put back: %d set, %d put back" % (len(sets), len(restores)))
