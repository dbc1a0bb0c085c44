#!/usr/bin/python3
"""What happens to the running, the queued and the arriving request: the table in docs/cancelling.md, each cell."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

CONF = "kexec_interrupt_timeout 2s; kexec_keepalive 1s; kexec_reconnect_timeout 2s; kexec_queue size=16 timeout=30s;"
SLEEP = "import time\ntime.sleep(300)"


def ran(stream, value, name):
    return is_((told(stream), result(stream)), ("ok", value), name)


def ids(server):
    return [c["id"] for c in server.request("GET", "/contexts").json()]


@scenario(rounds=1, many=50, quick=(1,))
def kernel_restarted_by_itself(server, rounds):
    context = server.create_context()
    for i in range(rounds):
        gate = server.gate()
        told(server.run("x = 1", context_id=context))
        a = server.busy(context, gate.code + "os.kill(os.getpid(), 9)")
        b = server.queued("'x' in globals()", context)
        gate.open()
        is_(told(a), "KernelDied", "running: KernelDied, end")
        c = server.queued("2", context)
        ran(b, "False", "queued: runs on the new kernel")
        ran(c, "2", "arriving: runs")


@scenario(rounds=1, many=50, quick=(1,))
def escalation(server, rounds):
    context = server.create_context()
    for i in range(rounds):
        told(server.run("x = 1", context_id=context))
        a = server.busy(context, SWALLOW, timeout=0.3)
        b = server.queued("1", context)
        is_(told(a), "ExecutionTimeout", "running: ended by its own reason")
        is_(told(b), "ContextRestarted", "queued: ContextRestarted, end")
        c = server.queued("'x' in globals()", context)
        ran(c, "False", "arriving: runs on the new kernel")


@scenario(rounds=1, many=50)
def post_restart(server, rounds):
    context = server.create_context()
    for i in range(rounds):
        told(server.run("x = 1", context_id=context))
        a = server.busy(context, SWALLOW if i % 2 else SLEEP)
        b = server.queued("1", context)
        restart = server.stream("POST", "/contexts/%s/restart" % context)
        is_(told(a), "ContextRestarted", "running: ContextRestarted, end")
        is_(told(b), "ContextRestarted", "queued: ContextRestarted, end")
        c = server.queued("'x' in globals()", context)
        restart.pump(0)
        ok(not restart.ended, "the restart is still going on")
        ran(c, "False", "arriving: runs on the new kernel")
        is_(restart.answer().status, 200, "the restart is answered 200")
        ran(server.run("1", context_id=context), "1", "afterwards: runs")


@scenario(rounds=1, many=50, quick=(4,))
def post_restart_idle(server, rounds):
    context = server.create_context()
    for i in range(rounds):
        told(server.run("x = 1", context_id=context))
        answer = server.request("POST", "/contexts/%s/restart" % context)
        is_((answer.status, answer.body), (200, b"null"), "200")
        ran(server.run("'x' in globals()", context_id=context), "False", "the variables are gone")


@scenario(rounds=3, many=50)
def post_interrupt(server, rounds):
    context = server.create_context()
    for i in range(rounds):
        told(server.run("x = %d" % i, context_id=context))
        a = server.busy(context)
        b = server.queued("x", context)
        interrupt = server.stream("POST", "/contexts/%s/interrupt" % context)
        c = server.queued("x", context)
        is_(told(a), "KeyboardInterrupt", "running: its own error and end")
        is_(interrupt.answer().status, 200, "the interrupt is answered 200")
        ran(b, str(i), "queued: runs next, variables intact")
        ran(c, str(i), "arriving: runs")


@scenario(rounds=3, many=50, quick=(4,))
def post_interrupt_idle(server, rounds):
    """Nothing of ours runs: 200, and nothing is sent."""
    context = server.create_context()
    for i in range(rounds):
        answer = server.request("POST", "/contexts/%s/interrupt" % context)
        is_((answer.status, answer.body), (200, b"null"), "200")
        ran(server.run("import time\ntime.sleep(0.1)\n1", context_id=context), "1", "the next one is not hit")


@scenario(rounds=1, many=50)
def post_interrupt_swallowed(server, rounds):
    """Code that swallows it: 504 in words, nothing is restarted, all goes on."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("x = 1", context_id=context))
        a = server.busy(context, SWALLOW.replace("300", "4") + "\n'end'")
        b = server.queued("x", context)
        asked = time.monotonic()
        answer = server.request("POST", "/contexts/%s/interrupt" % context)
        took = time.monotonic() - asked
        is_(answer.status, 504, "504")
        like(answer.body, "interrupt", "in words")
        between(took, 2, 3, "after kexec_interrupt_timeout")
        c = server.queued("x", context)
        is_((told(a), result(a)), ("ok", "end"), "running: ends by itself")
        ran(b, "1", "queued: runs then, variables intact")
        ran(c, "1", "arriving: runs")


@scenario(rounds=1, many=50, quick=(4,))
def delete(server, rounds):
    for i in range(rounds):
        context = server.create_context()
        kernel = server.kernel(context)
        a = server.busy(context, SWALLOW if i % 2 else SLEEP)
        b = server.queued("1", context)
        deletion = server.stream("DELETE", "/contexts/%s" % context)
        is_(told(a), "ContextDeleted", "running: ContextDeleted, end")
        is_(told(b), "ContextDeleted", "queued: ContextDeleted, end")
        is_(server.run("1", context_id=context).status, 404, "arriving: 404")
        is_(deletion.answer().status, 200, "the deletion is answered 200")
        is_(server.run("1", context_id=context).status, 404, "afterwards: 404")
        ok(context not in ids(server), "it is not listed")
        is_(server.request("DELETE", "/contexts/%s" % context).status, 404, "a second deletion: 404")
        is_((server.session(context), server.rest("GET", "/api/kernels/" + kernel).status), (None, 404),
            "neither session nor kernel are left")


@scenario(rounds=1, many=10, quick=(1,))
def found_gone(server, rounds):
    """The kernel is deleted through Jupyter, by session or by kernel, while code runs that swallows interrupts: the
    context goes on with another one."""
    for i in range(rounds):
        context = server.create_context()
        session = server.session(context)
        a = server.busy(context, SWALLOW)
        b = server.queued("1", context)
        start = time.monotonic()
        gone = server.rest("DELETE", "/api/sessions/" + session["id"] if (i + server.n_workers) % 2
                           else "/api/kernels/" + session["kernel"]["id"], timeout=60)
        is_(gone.status, 204, "it is deleted")
        is_(told(a), "KernelDied", "running: KernelDied, end")
        ran(b, "1", "queued: runs in another kernel")
        within(a.finished_at - start, 15, "in time")
        ran(server.run("2", context_id=context), "2", "arriving: runs")
        isnt(server.kernel(context), session["kernel"]["id"], "it is another kernel")
        ok(context in ids(server), "the context is listed")


@scenario(rounds=1, many=10, quick=(4,))
def found_gone_idle(server, rounds):
    """The same while nothing runs: the next one runs in another kernel."""
    for i in range(rounds):
        context = server.create_context()
        session = server.session(context)
        server.rest("DELETE", "/api/sessions/" + session["id"] if i % 2 == 0
                    else "/api/kernels/" + session["kernel"]["id"])
        a = server.run("1", context_id=context)
        ok(told(a) == "KernelDied" or (told(a), result(a)) == ("ok", "1"),
           "the next one runs, unless it was sent to the old kernel", "%s %r" % (a.status_line, a.all()))
        within(a.finished_at - a.sent_at, 15, "in time")
        ran(server.run("2", context_id=context), "2", "then: runs")
        isnt(server.kernel(context), session["kernel"]["id"], "it is another kernel")
        ok(context in ids(server), "the context is listed")


@scenario(rounds=1, many=10, quick=(1,))
def jupyter_killed(server, rounds):
    """Jupyter is killed and started again: its kernels are gone with it, the contexts are not."""
    for i in range(rounds):
        home = server.path("elsewhere")
        os.makedirs(home, exist_ok=True)
        context = server.create_context(cwd=home)
        a = server.busy(context)
        b = server.queued("import os\nprint(os.getcwd())", context)
        jupyter = server.jupyter_process()
        jupyter.kill()
        start = time.monotonic()
        is_(told(a), "JupyterUnavailable", "running: JupyterUnavailable, end")
        between(a.finished_at - start, 2, 4, "after kexec_reconnect_timeout")
        c = server.execute("2", context)
        ok(c.wait_head() in (200, 503), "arriving: queued or 503", c.status_line)
        is_(server.run("2", language="bash").status, 503, "arriving for a context that is not there: 503")
        is_(server.request("POST", "/contexts", {}).status, 503, "POST /contexts: 503")
        # longer than kexec_interrupt_timeout: a restart that Jupyter cannot do is none
        is_(b.next(3), None, "queued: still waits")
        jupyter.start()
        is_((told(b), b.text()), ("ok", home + "\n"), "queued: runs in a new kernel, in the context's directory")
        if c.status == 200:
            ran(c, "2", "arriving: runs as well")
        wait_until(lambda: server.value("41 + 1") == "42", 30, "a default context")
        ok(context in ids(server), "the context is listed")
        is_(server.request("DELETE", "/contexts/" + context).status, 200, "until it is deleted")


main(lambda workers: Server(workers, CONF), jobs=2)
