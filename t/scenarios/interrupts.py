#!/usr/bin/python3
"""Clients leave, deadlines pass, interrupts are late, lost, refused or hang: the slot is free within a bound, nobody else
is hit, nothing runs twice."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faulty import *

LEAVE = [Stream.close, Stream.reset, Stream.half_close]


# Interrupts around idle

SCHEDULES = {
    "SIGINT lands late, the answer waits for it": {"sigint_delay": [0, 0.3], "sigint_before_answer": True},
    "the call is carried out late": {"interrupt": {"delay": [0, 0.25]}},
    "the answer is late": {"interrupt": {"act": True, "delay_after": [0, 0.25]}},
    "SIGINT is armed late, replies come in any order": {"arm_delay": 0.05, "order": "random"},
    "all of it": {"sigint_delay": [0, 0.1], "sigint_before_answer": True, "arm_delay": 0.02, "order": "random",
                  "interrupt": {"delay": [0, 0.1]}},
}


def make_random_sigint(name, options):
    def random_sigint(server, rounds):
        """A client leaves at any moment around its code's end: the next execution never sees KeyboardInterrupt."""
        contexts = server.contexts(10)
        server.jupyter.set(**options)
        mark = server.jupyter.mark()

        def run(context, seed):
            rng = random.Random(seed)
            for i in range(rounds):
                code = "sleep %.3f" % rng.choice([0, rng.uniform(0, 0.05), rng.uniform(0, 0.2)])
                if rng.random() < 0.2:
                    code += "\nreply_gap %.3f" % rng.uniform(0, 0.1)
                a = server.execute(code, context)
                b = server.execute("print b\nsleep 0.03", context) if rng.random() < 0.5 else None
                if rng.random() < 0.1:
                    a.wait_for("number_of_executions", 5)
                else:
                    time.sleep(rng.uniform(0, 0.25))
                left = rng.choice(LEAVE)(a)
                b = b or server.execute("print b\nsleep 0.03", context)
                b.finish(10)
                if (verdict(b), b.text()) != ("ok", "b\n"):
                    yield "round %d, %r: %s %r" % (i, code, verdict(b), b.all())
                elif b.finished_at - left > 2.5 * slack():
                    yield "round %d, %r: took %.2f s" % (i, code, b.finished_at - left)

        none(parallel([lambda c=c, n=n: list(run(c, n)) for n, c in enumerate(contexts)], 60 + rounds),
             "%d rounds: %s" % (rounds * len(contexts), name))
        calls = server.jupyter.log(mark, ev="interrupt")
        ok(len(calls) > rounds, "there were interrupts", str(len(calls)))
        is_([r for r in calls if "print b" in (r.get("landed_code") or "")], [], "none landed in the wrong code")
        is_(len(server.jupyter.log(mark, ev="kernel_restarted")), 0, "no kernel was restarted")
    random_sigint.__name__ = "random_sigint_%d" % (1 + list(SCHEDULES).index(name))
    return random_sigint


for _name, _options in SCHEDULES.items():
    scenario(rounds=8, many=200)(make_random_sigint(_name, _options))


# Interrupt calls that fail

ANSWERS = {
    "carried out, the answer takes 1 s": ({"act": True, "delay_after": 1}, "ok"),
    "carried out, the answer hangs": ({"act": True, "hang": True, "times": 1}, None),
    "carried out, then reset": ({"act": True, "reset": True}, "ok"),
    "carried out, then closed": ({"act": True, "close": True}, "ok"),
    "carried out, an answer of rubbish": ({"act": True, "raw": "rubbish\r\n\r\n"}, "ok"),
    "carried out, a 500": ({"act": True, "status": 500}, "ok"),
    "500 twice": ({"status": 500, "times": 2}, "ok"),
    "reset three times": ({"reset": True, "times": 3}, "ok"),
    "late": ({"delay": 0.8}, "ok"),
    "500 for ever": ({"status": 500}, "ContextRestarted"),
    "403 for ever": ({"status": 403}, "ContextRestarted"),
    "hangs for ever": ({"hang": True}, "ContextRestarted"),
}


def make_interrupt_fails(name, fault, wanted):
    def interrupt_fails(server, rounds):
        context = server.create_context()
        server.run("set x %d" % rounds, context_id=context)
        for i in range(rounds):
            server.jupyter.set(interrupt=dict(fault))
            mark = server.jupyter.mark()
            a = server.execute("print a\nsleep 30", context)
            a.wait_for("stdout")
            b = server.execute("get x", context)
            time.sleep(0.1)
            left = LEAVE[i % 3](a)
            gather([b], 15)
            if wanted == "ok":
                is_((verdict(b), b.text()), ("ok", "%d\n" % rounds), "%s: who waits runs, with all variables" % name)
                at_most(b.finished_at - left, 3.5, "soon")
            elif wanted is None:
                # nobody can know where such an interrupt is: a restart makes it certain
                ok(verdict(b) in ("ok", "ContextRestarted"), "%s: who waits is served" % name, repr(b.all()))
                at_most(b.finished_at - left, 8, "within the limits of the barrier and of a restart")
            else:
                is_(verdict(b), wanted, "%s: who waits is told of the restart" % name)
                at_most(b.finished_at - left, 4, "in time")
            server.jupyter.set(interrupt=None)
            server.usable(context)
            if wanted == "ok":
                is_(server.jupyter.log(mark, ev="kernel_restarted"), [], "no kernel was restarted")
            is_(len(server.jupyter.log(mark, ev="start", code="print a\nsleep 30")), 1, "the code ran once")
            server.run("set x %d" % rounds, context_id=context)
    interrupt_fails.__name__ = "interrupt_fails_%d" % (1 + list(ANSWERS).index(name))
    return interrupt_fails


for _name, (_fault, _wanted) in ANSWERS.items():
    scenario(rounds=1, many=20)(make_interrupt_fails(_name, _fault, _wanted))


@scenario(many=10)
def get_hangs(server, rounds):
    """The question whether a kernel is there is never answered: it does not stand in an interrupt's way."""
    jupyter = server.jupyter
    context = server.create_context()
    for i in range(rounds):
        jupyter.set(kernel_get={"hang": True})
        jupyter.kernel(context, "foreign", seconds=2.2)
        a = server.execute("print a\nsleep 30", context)
        a.wait_for("stdout")
        mark = jupyter.mark()
        left = a.close()
        b = gather([server.execute("print b", context)], 15)[0]
        is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs")
        at_most(b.finished_at - left, 1, "soon")
        at_most(jupyter.log(mark, ev="interrupt")[0]["t"] - left, 0.5, "the interrupt was sent at once")
        jupyter.set(kernel_get=None)


# Somebody else's cell


@scenario(many=20)
def foreign(server, rounds):
    """A cell that is not ours holds the kernel: it is never interrupted, whatever happens to those who wait behind it."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(7)
        kernels = [server.kernel(c) for c in contexts]
        mark = jupyter.mark()
        seconds = 2.6 if i % 2 == 0 else 1.2
        cells = [jupyter.kernel(c, "foreign", seconds=seconds)["msg_id"] for c in contexts]
        began = time.monotonic()
        a = [server.execute("print a %d\nsleep 30" % n, c, **({"timeout": 0.5} if n in (3, 4) else {}))
             for n, c in enumerate(contexts)]
        jupyter.wait(count=7, since=mark, ev="execute", **{"code~": "print a"})
        interruption = server.stream("POST", "/contexts/%s/interrupt" % contexts[5])
        time.sleep(0.3)
        for n in (0, 1, 2, 4):
            LEAVE[n % 3](a[n])                      # 3 has a deadline, 4 both
        if i % 2:
            jupyter.kernel(contexts[2], "cut")      # and its link is cut
        b = [server.execute("print b", c) for c in contexts]
        time.sleep(0.3)
        a[6].close()
        gather(b + [a[3]], 15)
        for n, stream in enumerate(b):
            is_((verdict(stream), stream.text()), ("ok", "b\n"), "%d: the next one runs" % n)
            at_most(stream.finished_at - began, seconds + 1, "soon after the foreign cell")
            interrupts = jupyter.log(mark, ev="interrupt", kernel=kernels[n])
            is_([r for r in interrupts if cells[n] in (r["executing"], r["landed_in"])], [],
                "the foreign cell was not interrupted")
            foreign_ran = jupyter.log(mark, ev="ran", msg_id=cells[n])
            is_([r["status"] for r in foreign_ran], ["ok"], "%d: it ran to its end" % n)
            ok(stream.finished_at > foreign_ran[0]["t"], "before the next one")
        is_(verdict(a[3]), "ExecutionTimeout", "the deadline was told")
        between(took(a[3]), 0.4, 1.2, "in time")
        gather([a[5], interruption], 6)
        is_(verdict(a[5]), "KeyboardInterrupt", "POST interrupt takes effect once the code starts")
        ok(interruption.status in (200, 504), "and is answered", repr(interruption.status_line))
        at_most(took(interruption), 3.5, "in time")


@scenario(many=10)
def foreign_and_queue(server, rounds):
    """Behind a foreign cell ten clients come and go: none of their code runs but what was sent already."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        mark = jupyter.mark()
        jupyter.kernel(context, "foreign", seconds=1.5)
        holder = server.execute("print holder\nsleep 30", context)
        jupyter.wait(since=mark, ev="execute", **{"code~": "holder"})
        waiting = [server.execute("print waiting %d" % n, context) for n in range(10)]
        time.sleep(0.2)
        random.shuffle(waiting)
        for n, stream in enumerate([holder] + waiting):
            LEAVE[n % 3](stream)
        last = gather([server.execute("print last", context)], 10)[0]
        is_((verdict(last), last.text()), ("ok", "last\n"), "the last one runs")
        is_(len(jupyter.log(mark, ev="start", **{"code~": "waiting"})), 0, "none of those who left ran")


# Deadlines, the operator's interrupt


@scenario(many=10)
def deadlines(server, rounds):
    """timeout: told at the deadline, whatever the kernel does; the end soon after it."""
    jupyter = server.jupyter
    contexts = server.contexts(8)
    for i in range(rounds):
        cases = [
            Case("sleep", "print 1\nsleep 30", "ExecutionTimeout", "1\n", False, 0.4, 1.2, timeout=0.5),
            Case("swallows", "print 1\nswallow 30", "ExecutionTimeout", "1\n", False, 2, 4, timeout=0.5),
            Case("swallows for a while", "print 1\nswallow 1\nprint 2", "ExecutionTimeout", None, False, 1, 3,
                 timeout=0.5),
            Case("uninterruptible", "print 1\nsleep_uninterruptible 1.5\nprint 2", "ExecutionTimeout", "1\n", False,
                 1.2, 3,
                 timeout=0.5),
            Case("in time", "sleep 0.2\nprint 1", "ok", "1\n", False, 0.1, 1, timeout=2),
            Case("its idle comes late", "reply_first 1\nprint 1", "ok", "1\n", None, 0, 5, timeout=0.5),
            Case("its idle is lost", "drop_idle\nprint 1", "ok", "1\n", True, 1.5, 5, timeout=30),
            Case("tiny", "sleep 30", "ExecutionTimeout", "", False, 0, 1, timeout=0.001),
        ]
        table(server, contexts, cases, "deadlines", 20)
        for case in cases:
            server.usable(case.context)
            runs = len(jupyter.log(ev="start", code=case.code))
            ok(runs <= i + 1, "%s: ran once" % case.name, str(runs))


@scenario()
def second_interrupt(server, rounds):
    """POST interrupt that does not help: 504; once the code can be interrupted, the next one does."""
    jupyter = server.jupyter
    context = server.create_context()
    a = server.execute("print 1\nswallow 7\nprint 2\nsleep 30", context)
    a.wait_for("stdout")
    is_(server.request("POST", "/contexts/%s/interrupt" % context).status, 504, "the first one does not help")
    a.wait_for("stdout")
    mark = jupyter.mark()
    b = server.stream("POST", "/contexts/%s/interrupt" % context)
    gather([a, b], 6)
    is_(b.status, 200, "the second one does")
    is_(verdict(a), "KeyboardInterrupt", "the code was interrupted")
    ok(jupyter.log(mark, ev="interrupt"), "a call was made")
    is_(server.jupyter.log(ev="kernel_restarted"), [], "it never restarts")
    server.usable(context)


@scenario(many=10)
def interrupt_in_every_state(server, rounds):
    """POST interrupt while an execution is idle, queued, linking, probing, set up, busy, restored."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(5)
        mark = jupyter.mark()
        is_(server.request("POST", "/contexts/%s/interrupt" % contexts[0]).status, 200, "idle: 200")
        is_(jupyter.log(mark, ev="interrupt"), [], "idle: nothing is sent")

        # set-up, restoring
        jupyter.set(silent_delay=0.5)
        a = server.execute("print a", contexts[0], env_vars={"A": "1"})
        queued = server.execute("print queued", contexts[0])
        jupyter.wait(since=mark, ev="start", silent=True)
        r = server.request("POST", "/contexts/%s/interrupt" % contexts[0])
        gather([a, queued], 10)
        is_((r.status, verdict(a), verdict(queued)), (200, "ExecutionInterrupted", "ok"),
            "set-up: 200, it did not run, the next one did")
        is_(len(jupyter.log(mark, ev="start", code="print a")), 0, "and indeed")
        a = server.execute("print a", contexts[1], env_vars={"A": "1"})
        a.wait_for("end_of_execution", 10)
        r = server.request("POST", "/contexts/%s/interrupt" % contexts[1])
        is_((r.status, verdict(gather([a])[0])), (200, "ok"), "restoring: 200")
        jupyter.set(silent_delay=None)

        # linking
        jupyter.set(channels={"delay": 0.7, "times": 1})
        jupyter.kernel(contexts[2], "cut")
        time.sleep(0.1)
        a = server.execute("print never %d" % i, contexts[2])
        time.sleep(0.2)
        r = server.request("POST", "/contexts/%s/interrupt" % contexts[2])
        gather([a], 5)
        is_((r.status, verdict(a)), (200, "ExecutionInterrupted"), "linking: 200, it did not run")
        is_(server.ran("print never %d" % i), 0, "and indeed")

        # probing: the kernel is busy with its start
        jupyter.set(autorestart_delay=0.2, start_delay=1)
        since = jupyter.mark()
        jupyter.kernel(contexts[3], "die")
        jupyter.wait(since=since, ev="kernel_restarting")
        a = server.execute("print never either %d" % i, contexts[3])
        time.sleep(0.2)
        r = server.request("POST", "/contexts/%s/interrupt" % contexts[3])
        gather([a], 5)
        is_((r.status, verdict(a)), (200, "ExecutionInterrupted"), "probing: 200, it did not run")
        is_(server.ran("print never either %d" % i), 0, "and indeed")
        jupyter.set(autorestart_delay=None, start_delay=None)

        # busy, with one in the queue
        a = server.execute("print a\nsleep 30", contexts[4])
        a.wait_for("stdout")
        queued = server.execute("print queued", contexts[4])
        r = server.request("POST", "/contexts/%s/interrupt" % contexts[4])
        gather([a, queued], 5)
        is_((r.status, verdict(a), verdict(queued)), (200, "KeyboardInterrupt", "ok"), "busy: 200, the next one runs")
        for context in contexts:
            server.usable(context)


# How interrupted code ended

@scenario(many=20)
def interrupted_reply(server, rounds):
    """Idle comes ahead of the reply, or without it: interrupted code is never said to have ended well."""
    context = server.create_context()
    cases = [("idle_first 0.15\ndrop_error", "KeyboardInterrupt"), ("drop_reply", "KeyboardInterrupt"),
             ("drop_reply\ndrop_error", "ExecutionInterrupted"), ("r_abort", "ExecutionInterrupted")]
    for i in range(rounds):
        for faults, wanted in cases:
            a = server.execute(faults + "\nprint a\nsleep 30", context)
            a.wait_for("stdout")
            b = server.execute("print b", context)
            asked = time.monotonic()
            is_(server.request("POST", "/contexts/%s/interrupt" % context).status, 200, "interrupted")
            gather([a, b], 10)
            is_(verdict(a), wanted, faults.replace("\n", " "))
            at_most(a.finished_at - asked, 1, "soon")
            is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs")
        # somebody else interrupts
        a = server.execute("r_abort\nprint a %d\nsleep 30" % i, context)
        a.wait_for("stdout")
        server.jupyter.kernel(context, "interrupt")
        gather([a], 10)
        is_(verdict(a), "ExecutionInterrupted", "interrupted by somebody else")
        is_(len(server.jupyter.log(ev="start", **{"code~": "print a %d" % i})), 1, "it is not run again")
    is_(server.jupyter.log(ev="kernel_restarted"), [], "no kernel was restarted")


# The barrier, stuck kernels


@scenario(many=10)
def barrier_and_cut(server, rounds):
    """The link is cut while the barrier waits for an interrupt call: the slot does not go on before that is answered."""
    jupyter = server.jupyter
    context = server.create_context()
    for i in range(rounds):
        jupyter.set(interrupt={"delay": 1.5, "times": 1})
        mark = jupyter.mark()
        a = server.execute("print x\nsleep .4", context)
        a.wait_for("stdout")
        a.close()
        jupyter.wait(since=mark, ev="end", silent=False)
        time.sleep(0.1)
        jupyter.kernel(context, ["cut", "close"][i % 2])
        b = gather([server.execute("print b", context)], 10)[0]
        is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs")
        call = jupyter.log(mark, ev="rest", name="interrupt")[0]
        is_((call["status"], call.get("client_left")), (204, None), "the call was waited for")
        ok(jupyter.log(mark, ev="start", code="print b")[0]["t"] > jupyter.log(mark, ev="interrupt")[0]["t"],
           "then it started")


@scenario(many=5, location="kexec_interrupt_timeout 2s; kexec_ready_timeout 30s; kexec_jupyter_timeout 20s;")
def jupyter_stands_still(server, rounds):
    """Jupyter answers nothing for longer than kexec_interrupt_timeout: that says nothing about the code, nothing is lost."""
    jupyter = server.jupyter
    context = server.create_context()
    told(server.run("set x 7", context_id=context))
    for i in range(rounds):
        mark = jupyter.mark()
        a = server.execute("print a\nsleep 60", context)
        a.wait_for("stdout")
        jupyter.pause()
        a.close()
        b = server.execute("get x", context)
        time.sleep(4)
        jupyter.go_on()
        gather([b], 20)
        is_((verdict(b), b.text()), ("ok", "7\n"), "who waits runs, with its variables")
        is_(jupyter.log(mark, ev="rest", name="restart"), [], "nobody restarted the kernel")


@scenario(location="kexec_interrupt_failure wait;")
def wait_and_hanging_interrupt(server, rounds):
    """kexec_interrupt_failure wait: the slot does not go on while an interrupt call is in flight either."""
    jupyter = server.jupyter
    context = server.create_context()
    jupyter.set(interrupt={"delay": 4.7, "times": 1})
    mark = jupyter.mark()
    a = server.execute("print x\nsleep .4", context)
    a.wait_for("stdout")
    a.close()
    b = gather([server.execute("print b", context)], 15)[0]
    is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs")
    call = jupyter.log(mark, ev="rest", name="interrupt")[0]
    is_((call["status"], call.get("client_left")), (204, None), "the call was waited for")

    # code that swallows: it is waited for, nothing is restarted
    a = server.execute("print x\nswallow 5", context, timeout=0.5)
    a.wait_for("stdout")
    b = server.execute("print b", context)
    gather([a, b], 15)
    is_((verdict(a), verdict(b), b.text()), ("ExecutionTimeout", "ok", "b\n"), "swallowing code is waited for")
    at_most(took(a), 3.5, "its client is not")
    is_(jupyter.log(mark, ev="kernel_restarted"), [], "nothing was restarted")


@scenario(many=5, location="kexec_jupyter_timeout 8s;")
def dies_behind_the_barrier(server, rounds):
    """An interrupt call hangs, its code has ended, the process dies: the next one has the new process to itself."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        jupyter.kernel(context, "set", autorestart_delay=0.1)
        jupyter.set(interrupt={"delay": 6.5, "times": 1})
        mark = jupyter.mark()
        a = server.execute("print a\nsleep 0.4", context)
        a.wait_for("stdout")
        a.close()
        jupyter.wait(since=mark, ev="end", silent=False)
        jupyter.kernel(context, "die")
        b = gather([server.execute("print b\nsleep 0.5", context)], 15)[0]
        is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs")
        is_(jupyter.log(mark, ev="rest", name="restart"), [], "nobody restarts the new process")
        is_([r for r in jupyter.log(mark, ev="interrupt") if "print b" in (r.get("landed_code") or "")], [],
            "nor interrupts what runs there")
        jupyter.set(interrupt=None)


@scenario(workers=(2,), many=5, location="kexec_interrupt_failure wait;")
def wait_for_an_orphan(server, rounds):
    """A dead worker's code swallows interrupts: who comes next is told that its code did not run, and it does not."""
    jupyter = server.jupyter
    server.deaths = True
    for i in range(rounds):
        context = server.create_context()
        a = server.execute("print a\nswallow 4", context)
        a.wait_for("stdout")
        mark = jupyter.mark()
        for pid in server.workers():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: port_answers(server.port), 5, "a new worker")
        b = gather([server.execute("print b", context)], 12)[0]
        is_(verdict(b), "KernelNotReady", "it is told")
        ok("did not run" in value(b), "that its code did not run", value(b))
        c = gather([server.execute("print c", context)], 12)[0]
        is_((verdict(c), c.text()), ("ok", "c\n"), "once the orphan has ended the next one runs")
        is_(jupyter.log(mark, ev="start", code="print b"), [], "and that code never did")


@scenario(workers=(2,), many=5)
def orphan_dies(server, rounds):
    """A dead worker's code is interrupted, Jupyter is slow to do that, and the process dies: what runs in the next one
    is not hit."""
    jupyter = server.jupyter
    server.deaths = True
    for i in range(rounds):
        context = server.create_context()
        a = server.execute("print a\nswallow 60", context)
        a.wait_for("stdout")
        jupyter.set(interrupt={"stall": 3, "times": 1})
        mark = jupyter.mark()
        for pid in server.workers():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: port_answers(server.port), 5, "a new worker")
        b = server.execute("print b\nsleep 4", context)
        jupyter.wait(since=mark, ev="rest", name="interrupt")
        jupyter.kernel(context, "die", restart_after=0.1)
        gather([b], 15)
        is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs")
        is_([r for r in jupyter.log(mark, ev="interrupt") if "print b" in (r.get("landed_code") or "")], [],
            "nobody interrupts it")
        jupyter.set(interrupt=None)


@scenario(many=5)
def cut_and_interrupted(server, rounds):
    """The link is cut while the code is sent, of which nothing is heard, and it is interrupted: nobody knows whether it ran."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        mark = jupyter.mark()
        a = server.execute("print a\nlose 1", context)
        jupyter.wait(since=mark, ev="lost")
        jupyter.kernel(context, "cut")
        asked = server.stream("POST", "/contexts/%s/interrupt" % context)
        gather([a, asked], 12)
        is_((verdict(a), asked.answer().status), ("LinkLost", 200), "it is told")
        server.usable(context)


@scenario(workers=(2,), many=5)
def orphan_replaced(server, rounds):
    """A dead worker's code is interrupted, and somebody has the kernel restarted: the process that starts is spared."""
    jupyter = server.jupyter
    server.deaths = True
    for i in range(rounds):
        context = server.create_context()
        a = server.execute("print a\nswallow 60", context)
        a.wait_for("stdout")
        mark = jupyter.mark()
        for pid in server.workers():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: port_answers(server.port), 5, "a new worker")
        jupyter.kernel(context, "set", start_delay=3)
        b = server.execute("print b", context)
        jupyter.wait(since=mark, ev="rest", name="interrupt")
        jupyter.kernel(context, "restart")
        restarted = jupyter.mark()
        gather([b], 15)
        is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs")
        at_most(len(jupyter.log(restarted, ev="rest", name="interrupt")), 1, "nobody interrupts what starts")
        is_(jupyter.log(restarted, ev="rest", name="restart"), [], "nor restarts it")


@scenario(many=10)
def ended_behind_its_output(server, rounds):
    """The reply is there, output and idle are on their way for long: the code is over, nobody interrupts or restarts."""
    jupyter = server.jupyter
    for i in range(rounds):
        context, other = server.create_context(), server.create_context()
        server.run("set v kept", context_id=context)
        mark = jupyter.mark()
        a = server.execute("print a\nsleep 30\nlate_output 1.5\nreply_first 0.1", context)
        late = server.execute("late_output 1.5\nreply_first 0.1", other, timeout=1)
        a.wait_for("stdout")
        left = a.close()
        b = server.execute("get v", context)
        gather([b, late], 12)
        is_((verdict(b), b.text()), ("ok", "kept\n"), "the next one runs, with the variables")
        at_most(b.finished_at - left, 2, "at once")
        is_(jupyter.log(mark, ev="kernel_restarted"), [], "no kernel was restarted")
        is_(verdict(late), "ok", "nor is a timeout over for code that has ended")


RESTARTS = {
    "at once": (None, 3.5), "slowly": ({"delay": 1.5, "times": 1}, 5), "500 twice": ({"status": 500, "times": 2}, 6),
    "reset twice": ({"reset": True, "times": 2}, 6), "carried out, then a 500": ({"act": True, "status": 500,
                                                                                  "times": 1}, 6),
    "rubbish": ({"act": True, "raw": "rubbish\r\n\r\n", "times": 1}, 6),
}


def make_stuck(name, fault, limit):
    def stuck(server, rounds):
        """Code that swallows interrupts: the kernel is restarted; who waited is told, who comes then runs."""
        jupyter = server.jupyter
        context = server.create_context()
        for i in range(rounds):
            jupyter.set(restart=fault and dict(fault))
            mark = jupyter.mark()
            a = server.execute("print a\nswallow 60", context, env_vars={"A": "secret"})
            a.wait_for("stdout")
            b = [server.execute("print waiting %d" % n, context) for n in range(3)]
            time.sleep(0.1)
            left = LEAVE[i % 3](a)
            jupyter.wait(since=mark, ev="rest", name="restart")
            time.sleep(0.1)
            c = server.execute("print c", context)
            gather(b + [c], 15)
            is_([verdict(s) for s in b], ["ContextRestarted"] * 3, "restarted %s: who waited is told" % name)
            at_most(max(s.finished_at for s in b) - left, 2.8, "in time")
            is_((verdict(c), c.text()), ("ok", "c\n"), "who comes then runs")
            at_most(c.finished_at - left, limit, "in time")
            d = server.run("env", context_id=context)
            seen = json.loads(d.text())
            # a's variables are owed yet: what sets them might have waited, and run in this process
            is_([("chdir" in code, "__kexec_env__" in code) for code in seen], [(False, True), (True, False)],
                "in a kernel that was prepared")
            jupyter.set(restart=None)
            server.usable(context)
    stuck.__name__ = "stuck_%d" % (1 + list(RESTARTS).index(name))
    return stuck


for _name, (_fault, _limit) in RESTARTS.items():
    scenario(rounds=1, many=10)(make_stuck(_name, _fault, _limit))


@scenario()
def link_never_back(server, rounds):
    """Code that swallows, and a link that cannot be opened again though Jupyter answers: the slot is free in the end."""
    jupyter = server.jupyter
    context = server.create_context()
    a = server.execute("print a\nswallow 60", context)
    a.wait_for("stdout")
    jupyter.set(channels={"status": 503})
    jupyter.kernel(context, "cut")
    left = a.close()
    jupyter.wait(ev="kernel_restarted", timeout=8)
    jupyter.set(channels=None)
    b = gather([server.execute("print b", context)], 10)[0]
    is_(verdict(b), "ok", "the next one runs")
    at_most(b.finished_at - left, 9, "in time")


@scenario()
def barrier_without_link(server, rounds):
    """The code has ended after an interrupt whose call failed, and its link cannot be opened again."""
    jupyter = server.jupyter
    context = server.create_context()
    jupyter.set(interrupt={"act": True, "delay_after": 0.5, "reset": True})
    a = server.execute("print a\nsleep 30", context)
    a.wait_for("stdout")
    mark = jupyter.mark()
    left = a.close()
    jupyter.wait(since=mark, ev="end", silent=False)
    jupyter.set(channels={"status": 503})
    jupyter.kernel(context, "cut")
    jupyter.wait(since=mark, ev="kernel_restarted", timeout=14)
    jupyter.set(channels=None, interrupt=None)
    b = gather([server.execute("print b", context)], 10)[0]
    is_(verdict(b), "ok", "the next one runs")
    at_most(b.finished_at - left, 15, "in time")


# Recovery of what a dead worker left


@scenario(workers=(2,), many=5)
def recovery_fences(server, rounds):
    """A worker is killed with code running: it is interrupted, politely, and the next one runs."""
    jupyter = server.jupyter
    server.deaths = True
    for i in range(rounds):
        for fault in None, {"act": True, "delay_after": 1, "times": 1}, {"status": 500, "times": 2}:
            context = server.create_context()
            a = server.execute("print a\nsleep 60", context)
            a.wait_for("stdout")
            jupyter.set(interrupt=fault)
            mark = jupyter.mark()
            for pid in server.workers():
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: port_answers(server.port), 5, "a new worker")
            killed = time.monotonic()
            time.sleep(0.3)
            b = gather([server.execute("print b", context)], 10)[0]
            is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs")
            at_most(b.finished_at - killed, 6, "in time")
            fences = len(jupyter.log(mark, ev="kernel_info_done", kernel=server.kernel(context)))
            ok(fences < 15, "with few fences", str(fences))
            is_(jupyter.log(mark, ev="interrupt", landed="hit")[-1]["landed_code"], "print a\nsleep 60",
                "the orphan was hit")
            jupyter.set(interrupt=None)


@scenario(many=10, location="kexec_jupyter_timeout 1500ms; kexec_interrupt_timeout 8s;")
def interrupt_times_out(server, rounds):
    """Jupyter stands still for a while: an interrupt whose call timed out is obeyed late, and hits nobody else."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        jupyter.set(interrupt={"stall": 3}, kernel_get={"delay": 2})
        mark = jupyter.mark()
        a = server.execute("print a\nsleep 0.5", context)
        a.wait_for("stdout")
        a.close()
        jupyter.wait(since=mark, ev="rest", name="interrupt")
        b = server.execute("print b\nsleep 3", context)
        jupyter.wait(since=mark, ev="interrupt", timeout=10)
        gather([b], 15)
        is_((verdict(b), b.text()), ("ok", "b\n"), "the next one runs, unharmed")
        is_(jupyter.log(mark, ev="interrupt", landed="hit"), [], "nobody was hit")
        jupyter.set(interrupt=None)


@scenario(many=3)
def left_while_opened_anew(server, rounds):
    """The client leaves while a deaf link is being opened anew: the interrupt's call outlives the link that it began with."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        a = server.execute("print a\nsleep 2\nlose", context)
        a.wait_for("stdout")
        jupyter.kernel(context, "deaf")
        mark = jupyter.mark()
        jupyter.set(channels={"delay": 1.5, "times": 1}, interrupt={"delay": 3})
        jupyter.wait(since=mark, ev="rest", name="channels", timeout=30)
        a.close()
        jupyter.wait(since=mark, ev="rest", name="interrupt")
        jupyter.wait(since=mark, ev="ws_open")
        jupyter.set(interrupt=None)
        server.usable(context, limit=12)


@scenario(many=5, location="kexec_ready_timeout 4s; kexec_queue size=64 timeout=30s;")
def never_restarted(server, rounds):
    """Jupyter refuses again and again to restart a stuck kernel: the slot goes on all the same, and who has it next tries it."""
    jupyter = server.jupyter
    for i in range(rounds):
        context = server.create_context()
        a = server.execute("print a\nswallow 3600", context)
        a.wait_for("stdout")
        jupyter.set(restart={"status": 500})
        mark = jupyter.mark()
        left = a.close()
        jupyter.wait(since=mark, ev="rest", name="restart")
        b = gather([server.execute("print b", context)], 25)[0]
        ok(verdict(b) in ("KernelNotReady", "ContextRestarted"), "who waits is told", verdict(b))
        at_most(b.finished_at - left, 2 + 4 + 5, "in time")
        jupyter.set(restart=None)
        last = gather([server.execute("print last", context)], 25)[0]
        ok(verdict(last) in ("ok", "ContextRestarted"), "it is restarted when Jupyter does it", verdict(last))
        server.usable(context)


# All at once


@scenario(rounds=10, many=200)
def leave_anywhere(server, rounds):
    """A client leaves in any state of a slow kernel's execution: the next one is served, nobody else is hit."""
    jupyter = server.jupyter
    contexts = server.contexts(10)
    jupyter.set(silent_delay=0.05, arm_delay=0.02, order="random", sigint_delay=[0, 0.05], sigint_before_answer=True,
                interrupt={"delay": [0, 0.1]}, channels={"delay": [0, 0.2]}, kernel_info={"delay": 0.02})
    mark = jupyter.mark()
    codes = ["print a", "sleep 0.2\nprint a", "print a\nsleep 30", "error ValueError no", "sleep_uninterruptible 0.4",
             "swallow 0.6",
             "abort 1\nprint a\nsleep 5", "idle_first 0.2\nprint a", "reply_first 0.2\nprint a\nsleep 3",
             "reply_gap 0.1", "flood 300 100",
             "drop_busy\nsleep 30\nprint a", "dup_idle\ndup_reply\nsleep 0.3"]

    def run(context, seed):
        rng = random.Random(seed)
        for i in range(rounds):
            code = rng.choice(codes) + "\nprint %d.%d" % (seed, i)
            fields = {"env_vars": {"A": "secret"}} if rng.random() < 0.5 else {}
            cut = rng.random() < 0.15
            if cut:
                jupyter.kernel(context, "cut")
            a = server.execute(code, context, **fields)
            b = server.execute("print b", context) if rng.random() < 0.5 else None
            time.sleep(rng.choice([0, rng.uniform(0, 0.1), rng.uniform(0, 0.7)]))
            if rng.random() < 0.1:
                cut = True
                jupyter.kernel(context, rng.choice(["cut", "close"]))
            left = rng.choice(LEAVE)(a)
            b = b or server.execute("print b", context)
            b.finish(15)
            if verdict(b) == "LinkLost" and cut:
                pass                            # b was sent already
            elif (verdict(b), b.text()) != ("ok", "b\n"):
                yield "round %d, %r %r: %s %r" % (i, code, fields, verdict(b), b.all())
            elif b.finished_at - left > 5 * slack():
                yield "round %d, %r %r: took %.2f s" % (i, code, fields, b.finished_at - left)
            if len(jupyter.log(mark, ev="start", code=code)) > 1:
                yield "round %d, %r: ran %d times" % (i, code, len(jupyter.log(mark, ev="start", code=code)))
            if rng.random() < 0.3:
                env = server.run("env", context_id=context)
                silent = json.loads(env.text() or "[]")
                sets = [k for k, s in enumerate(silent) if "secret" in s]
                restores = [k for k, s in enumerate(silent) if "del sys.__kexec_env__" in s]
                if sets and (not restores or restores[-1] < sets[-1]):
                    yield "round %d, %r: variables were not put back" % (i, code)

    none(parallel([lambda c=c, n=n: list(run(c, n)) for n, c in enumerate(contexts)], 90 + 2 * rounds),
         "%d rounds" % (rounds * len(contexts)))
    is_([r for r in jupyter.log(mark, ev="interrupt") if "print b" in (r.get("landed_code") or "")], [],
        "no interrupt landed in the wrong code")


@scenario(rounds=2, many=50, workers=(1, 4))
def reply_eaten(server, rounds):
    """An interrupt may eat the reply: the slot is free as soon as the kernel is idle."""
    context = server.create_context()
    for i in range(rounds):
        a = server.begun("drop_reply\nsleep 30", context)
        left = a.close()
        b = server.run("print hello", context_id=context)
        is_((told(b), b.text()), ("ok", "hello\n"), "the next one runs")
        within(b.finished_at - left, 0.5, "at once")


main(Faulty, workers=(1,), jobs=10)
