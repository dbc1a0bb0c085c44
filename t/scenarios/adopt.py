#!/usr/bin/python3
"""Jupyter is the truth: a new nginx finds its contexts there, what only one of the two knows does not stay."""

import json
import os
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

HTTP = "kexec_sync 300ms;"
CONF = "kexec_ready_timeout 8s; kexec_interrupt_timeout 4s; kexec_env KEXEC_SCENARIO here;"


def contexts(server):
    answer = server.request("GET", "/contexts")
    return answer.json() if answer.status == 200 else answer


def again(server):
    """nginx dies and is started; the first request is sent as soon as the port is open."""
    server.kill()
    server.start_nginx()
    wait_until(lambda: port_answers(server.port), 10, "nginx")


@scenario(rounds=2, many=50, workers=(0, 1, 4), quick=(0, 4))
def killed_and_started(server, rounds):
    """All contexts are back in order: ids, languages, directories, variables; default ones are still that."""
    home = server.path("elsewhere")
    os.makedirs(home, exist_ok=True)
    made = [server.create_context(), server.create_context(cwd=home), server.create_context(language="bash")]
    told(server.run("import os\nx = 0\nos.chdir('/')", context_id=made[0]))
    told(server.run("x = 'elsewhere'", context_id=made[1]))
    told(server.run("x=bash", context_id=made[2]))
    told(server.run("x = 'default'"))
    for i in range(rounds):
        before = contexts(server)
        told(server.run("x += 1", context_id=made[0]))
        again(server)
        is_(contexts(server), before, "the very first answer lists them all, in order")
        is_(server.value("x, os.getcwd()", made[0]), "(%d, '/')" % (i + 1), "variables are there, the user's chdir as well")
        is_(server.value("import os\nx, os.getcwd(), os.environ['KEXEC_SCENARIO']", made[1]),
            repr(("elsewhere", home, "here")), "in its directory, too")
        is_(server.run("echo $x", context_id=made[2]).text(), "bash\n", "and in another language")
        is_(server.value("x"), "default", "the default context is the one that it was")
        server.wait_healthy()
        is_(contexts(server), before, "none was made anew")
        new = server.create_context()
        is_(contexts(server)[-1]["id"], new, "a new one comes last")
        is_(server.request("DELETE", "/contexts/" + new).status, 200, "and can go")


@scenario(rounds=1, many=20, workers=(1, 4), quick=(4,))
def killed_while_busy(server, rounds):
    """Code runs on while nginx is killed: who comes next gets the context soon, with its variables."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("x = %d" % i, context_id=context))
        server.busy(context)
        again(server)
        sent = time.monotonic()
        stream = server.run("x", context_id=context)
        is_((told(stream), result(stream)), ("ok", str(i)), "the orphan is interrupted, the variables are there")
        within(stream.finished_at - sent, 4.5, "soon")


@scenario(workers=(1, 4), quick=(4,))
def restarted_meanwhile(server, rounds):
    """The kernel is another process by then: directory and environment are set again."""
    context = server.create_context()
    told(server.run("import os\nos.chdir('/')\nx = 1", context_id=context))
    server.kill()
    server.rest("POST", "/api/kernels/%s/restart" % server.kernel(context))
    server.start_nginx()
    wait_until(lambda: port_answers(server.port), 10, "nginx")
    stream = server.run("import os\n'x' in dir(), os.getcwd(), os.environ['KEXEC_SCENARIO']", context_id=context)
    is_((told(stream), result(stream)), ("ok", repr((False, server.cwd, "here"))), "prepared anew")


@scenario(workers=(1, 4), quick=(4,))
def deleted_behind(server, rounds):
    """Sessions that somebody deletes: their contexts stay, and have another kernel on their next use."""
    home = server.path("elsewhere")
    os.makedirs(home, exist_ok=True)
    told(server.run("1"))
    made = [server.create_context(cwd=home), server.create_context(), server.create_context()]
    before = contexts(server)
    for context in [before[0]["id"], *made]:        # one that is not used again would not be found by a new nginx
        told(server.run("x = 1", context_id=context))
        server.rest("DELETE", "/api/sessions/" + server.session(context)["id"])
    time.sleep(1)           # some rounds, in which nothing is to happen to them
    is_(contexts(server), before, "all are listed")
    is_(server.request("POST", "/contexts/%s/restart" % made[1]).status, 200, "one can be restarted")
    is_(server.request("POST", "/contexts/%s/interrupt" % made[1]).status, 200, "and interrupted")
    look = "import os\n'x' in dir(), os.getcwd(), os.environ['KEXEC_SCENARIO']"
    is_(server.value(look, made[0]), repr((False, home, "here")), "it has another kernel, prepared")
    is_(server.value(look, made[1]), repr((False, server.cwd, "here")), "so has the one that was restarted")
    is_(server.value(look), repr((False, server.cwd, "here")), "and the default one")
    is_(server.request("DELETE", "/contexts/" + made[2]).status, 200, "one that has none is deleted")
    left = [c for c in before if c["id"] != made[2]]
    is_(contexts(server), left, "the others are the same")
    again(server)
    is_(contexts(server), left, "and are found again")
    is_(server.value("x = 1\nx", made[0]), "1", "with their new kernels")


@scenario(workers=(1, 4), quick=(4,))
def not_asked(server, rounds):
    """A Jupyter that is not asked for its sessions keeps its contexts: it is being drained, or only requests know
    its token."""
    path = os.path.join(server.run_dir, "nginx.conf")
    with open(path) as f:
        conf = f.read()
    context = server.create_context()
    told(server.run("x = 1", context_id=context))
    drained = re.sub(r"(upstream jupyter \{\s+server [^;]+);", r"\1 down;", conf)
    by_request = re.sub(r"kexec_token_file [^;]+;", "set $of_request %s; kexec_token $of_request;" % server.token,
                        re.sub(r"kexec_default_context [^;]+;", "", conf))
    try:
        for name, changed in (("drained", drained), ("a token of requests", by_request)):
            isnt(changed, conf, "%s: another configuration" % name)
            with open(path, "w") as f:
                f.write(changed)
            old = server.workers()
            server.reload()
            wait_until(lambda: not any(map(is_alive, old)), 10, "the old workers' end")
            time.sleep(1)           # some rounds of kexec_sync
            is_(server.value("x", context), "1", "%s: the context is there" % name)
    finally:
        with open(path, "w") as f:
            f.write(conf)
        server.reload()


@scenario(workers=(1, 4), quick=(4,))
def strangers(server, rounds):
    """Sessions of ours that the zone does not know: one whose making was interrupted goes, another one is adopted."""
    context = server.create_context()
    told(server.run("x = 1", context_id=context))
    session = server.session(context)
    name = json.loads(session["name"])
    other = str(uuid.uuid4())
    made = []
    for n, process in (0, 0), (1, name["process"]):
        this = {**name, "kexec": other[:-1] + str(n), "process": process, "serial": 1000 + n}
        made.append(server.rest("POST", "/api/sessions", {
            "path": "kexec-%s-0" % this["kexec"], "name": json.dumps(this), "type": "notebook",
            "kernel": {"name": "python3"}}).json())
    sessions = lambda: [s["id"] for s in server.rest("GET", "/api/sessions").json()]
    wait_until(lambda: made[0]["id"] not in sessions(), 30, "the end of the unfinished one")
    wait_until(lambda: contexts(server)[-1]["id"] == other[:-1] + "1", 10, "the other one's adoption")
    is_(server.value("import os\nos.getcwd()", other[:-1] + "1"), server.cwd, "it runs, prepared")
    is_(server.request("DELETE", "/contexts/%s1" % other[:-1]).status, 200, "and can be deleted")
    time.sleep(1)           # some rounds, in which it must not come back
    is_([c["id"] for c in contexts(server)][-1], context, "for good")
    is_(server.value("x", context), "1", "nothing happened to others")


@scenario(workers=(4,))
def forged_serials(server, rounds):
    """Whatever a session in Jupyter says of its place in the order: those made after it are found again."""
    own = server.create_context()
    name = json.loads(server.session(own)["name"])
    for serial in 2 ** 63 - 1, 2 ** 62 + 1, 2 ** 62 - 1, 2 ** 53:
        forged = str(uuid.uuid4())
        server.rest("POST", "/api/sessions", {
            "path": "kexec-%s-0" % forged, "name": json.dumps({**name, "kexec": forged, "serial": serial}),
            "type": "notebook", "kernel": {"name": "python3"}})
        again(server)
        is_(forged in [c["id"] for c in contexts(server)], True, "%d: it is found" % serial)
        made = server.create_context()
        again(server)
        is_([c["id"] for c in contexts(server) if c["id"] in (own, made)], [own, made],
            "so is the one that was made after it, behind earlier ones")
        is_(server.value("1", made), "1", "and can be used")
        for context in forged, made:
            is_(server.request("DELETE", "/contexts/" + context).status, 200, "they are deleted")


@scenario(workers=(4,))
def one_id_twice(server, rounds):
    """Of sessions that claim one id, the last kernel that was prepared has it, not the session that was made last."""
    context, other = server.create_context(), server.create_context()
    server.rest("DELETE", "/api/sessions/" + server.session(context)["id"])
    told(server.run("x = 'own'", context_id=context))               # in a new kernel, of a later epoch
    told(server.run("x = 'other'", context_id=other))
    session = server.session(context)
    name, epoch = json.loads(session["name"]), int(session["path"].rpartition("-")[2])
    before = contexts(server)
    for forged, process in (epoch - 1, name["process"]), (epoch + 5, 0):
        made = server.rest("POST", "/api/sessions", {
            "path": "kexec-%s-%d" % (context, forged), "name": json.dumps({**name, "process": process}),
            "type": "notebook", "kernel": {"name": "python3"}}).json()
        isnt(made["id"], session["id"], "another session, %s" % made["path"][-3:])
        again(server)
        is_(server.value("x", context), "own", "the context has its own kernel")
        is_(server.value("x", other), "other", "so has the other one")
        is_(contexts(server), before, "the list is the same")


@scenario(rounds=1, many=10, workers=(4,))
def upgrade(server, rounds):
    """USR2: the new binary's workers find the contexts, what runs in the old ones ends there, complete."""
    context = server.create_context()
    told(server.run("x = 7", context_id=context))
    for i in range(rounds):
        gate = server.gate()
        stream = server.busy(context, gate.code + "print('the end')\nx")
        old, pid_file = server.pid, os.path.join(server.run_dir, "nginx.pid")
        server.signal(signal.SIGUSR2)
        wait_until(lambda: os.path.exists(pid_file + ".oldbin") and os.path.exists(pid_file)
                   and server.pid != old, 10, "the new master")
        wait_until(lambda: server.workers(), 10, "its workers")
        server.signal(signal.SIGWINCH, old)
        with open("/proc/%d/task/%d/children" % (old, old)) as f:
            leaving = [int(pid) for pid in f.read().split() if int(pid) != server.pid]
        wait_until(lambda: server.value("1") == "1", 10, "the new one's answer")
        is_(context in [c["id"] for c in contexts(server)], True, "the new one knows the context")
        b = server.execute("x", context)
        time.sleep(1)       # longer than the interrupts of an orphan take
        gate.open()
        is_((told(stream), result(stream)), ("ok", "7"), "what ran in the old one ends well")
        is_("the end" in stream.text(), True, "complete")
        is_((told(b), result(b)), ("ok", "7"), "then the new one's runs")
        server.signal(signal.SIGQUIT, old)
        wait_until(lambda: not any(map(is_alive, [old, *leaving])), 10, "the old one's end")
        is_(server.value("x", context), "7", "and it goes on")


main(lambda workers: Server(workers, CONF, http=HTTP), workers=(0, 1, 4), jobs=2)
