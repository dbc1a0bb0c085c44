#!/usr/bin/python3
"""The same sequences against the real Jupyter Server with ipykernel and against the scripted one:
what clients see must be the same.  What was observed is told in README.md."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import jupyter_wire as wire
from kexec_test import (KernelSocket, ScriptedJupyter, diag, done_testing, free_port, is_, is_status, ok,
                        port_answers, skip_all, wait_until)

NOBODY = "11111111-1111-1111-1111-111111111111"


class RealJupyter(ScriptedJupyter):
    kind = 0

    def start(self, **options):
        self.dir = tempfile.mkdtemp(prefix="kexec-real-")
        env = dict(os.environ, HOME=self.dir, JUPYTER_PLATFORM_DIRS="0",
                   **{"JUPYTER_%s_DIR" % n: os.path.join(self.dir, n.lower()) for n in ("RUNTIME", "DATA", "CONFIG")})
        with open(os.path.join(self.dir, "log"), "w") as log:
            self.process = subprocess.Popen(
                ["/usr/bin/python3", "-m", "jupyter_server", "--allow-root", "--no-browser", "--ServerApp.ip=127.0.0.1",
                 "--ServerApp.port=%d" % self.port, "--ServerApp.token=" + self.token,
                 "--ServerApp.root_dir=" + self.dir, "--ServerApp.iopub_msg_rate_limit=0",
                 "--ServerApp.iopub_data_rate_limit=0", *options.get("args", [])],
                env=env, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        wait_until(lambda: port_answers(self.port), 60, "the real Jupyter")

    def stop(self, number=signal.SIGTERM):
        if self.process is None:
            return
        for kernel in self.rest("GET", "/api/kernels").json():
            self.rest("DELETE", "/api/kernels/" + kernel["id"])
        self.process.send_signal(number)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
        shutil.rmtree(self.dir, ignore_errors=True)


class Scripted(ScriptedJupyter):
    kind = 1


# The same cell for ipykernel and for the fake.
ONE = ("1", 'result {"text/plain": "1"}')
PRINT = ("print('a')", "print a")
STDERR = ("import sys; print('a', file=sys.stderr)", "stderr a")
ERROR = ("raise ValueError('x')", "error ValueError x")
SLOW_ERROR = ("import time; time.sleep(0.3); " + ERROR[0], "sleep 0.3\n" + ERROR[1])
SLEEP = ("import time; time.sleep(20)", "sleep 20")
STUBBORN = ("import time\nfor i in range(40):\n  try: time.sleep(0.5)\n  except KeyboardInterrupt: pass", "swallow 20")
COUNT = ("import time\nfor n in range(12):\n  print(n, flush=True); time.sleep(0.1)",
         "\n".join("print %d\nsleep 0.1" % n for n in range(12)))
SET, GET = ("x = 5", "set x 5"), ("print(x)", "get x")
INPUT = ("input('?')", "input ?")
DISPLAY = ("from IPython.display import display\ndisplay({'text/html': 'h'}, raw=True)", 'display {"text/html": "h"}')


def fresh(server):
    session = server.create_session()
    ws = server.connect(session["kernel"]["id"], session_id="mine")
    ws.settle(0.6)
    return session, session["kernel"]["id"], ws


def words(messages, names):
    """iopub and the rest apart: their order against each other is nobody's promise.  Nor is the
    way in which a stream is split."""
    iopub, others = [], []
    for m in merge_streams(messages):
        parent = names.get(m.parent_id) or m.parent.get("msg_type") or "no parent"
        if m.type == "status":
            what = m.content["execution_state"]
        elif m.type == "stream":
            what = m.content["name"] + " " + repr(m.content["text"])
        elif m.type == "error":
            what = "error " + m.content["ename"]
        elif m.type.endswith("_reply"):
            what = m.type + " " + str(m.content.get("status"))
        else:
            what = m.type
        (iopub if m.channel == "iopub" else others).append("%s: %s" % (parent, what))
    return {"iopub": iopub, "others": others}


def merge_streams(messages):
    merged = []
    for m in messages:
        last = merged[-1] if merged else None
        if m.type == "stream" and last is not None and last.type == "stream" and last.parent_id == m.parent_id \
                and last.content["name"] == m.content["name"]:
            text = last.content["text"] + m.content["text"]
            merged[-1] = wire.Message("iopub", m.header, m.parent, {}, {"name": m.content["name"], "text": text})
        else:
            merged.append(m)
    return merged


def output(messages):
    return "".join(m.content["text"] for m in messages if m.type == "stream").split()


class Taken:
    """Collects what one request, or several, bring."""

    def __init__(self, ws):
        self.ws, self.start, self.names = ws, len(ws.messages), {}

    def execute(self, server, name, code, **more):
        msg_id = self.ws.execute(code[server.kind], **more)
        self.names[msg_id] = name
        return msg_id

    def words(self, quiet=0.5, timeout=10):
        self.ws.settle(quiet, timeout)
        return words(self.ws.messages[self.start:], self.names)


def restart_of(server, kernel_id):
    return server.rest("POST", "/api/kernels/%s/restart" % kernel_id)


# Observations: each yields (name, value)

def observe_requests(server):
    session, kernel, ws = fresh(server)
    nudges = ws.messages
    yield "fresh websocket: parents", sorted({m.parent.get("msg_type") for m in nudges})
    yield "fresh websocket: its own session id in the parents", {m.parent.get("session") for m in nudges}
    yield "fresh websocket: how many busy, idle", [sum(is_status(m, s) for m in nudges) for s in ("busy", "idle")]
    yield "kernel model", sorted(server.rest("GET", "/api/kernels/" + kernel).json())
    for name, code, more in (
            ("expression", ONE, {}), ("print", PRINT, {}), ("stderr", STDERR, {}), ("display", DISPLAY, {}),
            ("error", ERROR, {}), ("input", INPUT, {}), ("silent", PRINT[:1] + ("",), {"silent": True})):
        if name == "silent":
            code = ("1", "")
        taken = Taken(ws)
        taken.execute(server, "it", code, **more)
        yield name, taken.words()
    reply = [m for m in ws.messages if m.type == "execute_reply"]
    yield "keys of a good reply", sorted(reply[0].content)
    yield "keys of a bad reply", sorted(next(m for m in reply if m.content["status"] == "error").content)
    yield "metadata of a reply", sorted(reply[0].metadata)

    for channel in ("shell", "control"):
        taken = Taken(ws)
        taken.names[ws.request("kernel_info_request", channel=channel)] = "it"
        yield "kernel_info on " + channel, taken.words()
    taken = Taken(ws)
    taken.names[ws.request("execute_request", {"silent": False})] = "it"
    yield "execute_request without code", taken.words()
    taken = Taken(ws)
    taken.names[ws.request("nonsense_request")] = "it"
    yield "unknown request", taken.words()

    taken = Taken(ws)
    message = wire.Message("shell", wire.header("execute_request", "mine"), content={
        "code": PRINT[server.kind], "silent": False, "stop_on_error": False})
    taken.names[message.id] = "it"
    ws.send(message)
    first = taken.words()
    taken.start = len(ws.messages)
    ws.send(message)
    yield "the same bytes again: first", first
    yield "the same bytes again: nothing", taken.words()

    taken = Taken(ws)
    taken.execute(server, "bad", SLOW_ERROR, stop_on_error=True)
    taken.execute(server, "next", PRINT)
    taken.execute(server, "silent", PRINT, silent=True)
    yield "stop_on_error", taken.words()
    taken = Taken(ws)
    taken.execute(server, "bad", ERROR, stop_on_error=False)
    taken.execute(server, "next", PRINT)
    yield "without stop_on_error", taken.words()

    model = server.rest("DELETE", "/api/sessions/" + session["id"])
    yield "DELETE of a session: status, body", (model.status, model.body)
    taken = Taken(ws)
    taken.start = max(len(ws.messages) - 3, 0)
    ws.settle(0.5)
    yield "DELETE of a session: last messages", words(ws.messages[-3:], {})
    yield "DELETE of a session: the websocket stays open", ws.closed
    ws.execute("1")
    ws.settle(0.5)
    yield "a request to a deleted kernel: nothing, open", (ws.messages[-1].type, ws.closed)
    ws.close()


def observe_interrupts(server):
    session, kernel, ws = fresh(server)
    interrupt = "/api/kernels/%s/interrupt" % kernel
    answer = server.rest("POST", interrupt)
    yield "interrupt of an idle kernel: status, body", (answer.status, answer.body, "content-type" in answer.headers,
                                                        "content-length" in answer.headers)
    taken = Taken(ws)
    taken.execute(server, "it", PRINT)
    yield "after an interrupt of an idle kernel", taken.words()
    for silent in (False, True):
        taken = Taken(ws)
        it = taken.execute(server, "it", SLEEP if not silent else ("import time; time.sleep(20)", ""), silent=silent)
        if silent and server.kind:
            continue                # the fake's silent requests don't sleep; the same error otherwise
        ws.read_until(lambda m: m.parent_id == it and is_status(m, "busy"))
        time.sleep(0.1)
        server.rest("POST", interrupt)
        if silent:
            diag("real, interrupt of a silent request: %s" % taken.words())
            continue
        yield "interrupt", taken.words()
    ws.settle(0.5)
    taken = Taken(ws)
    it = taken.execute(server, "running", SLEEP)
    taken.execute(server, "queued", PRINT)
    ws.read_until(lambda m: m.parent_id == it and is_status(m, "busy"))
    time.sleep(0.1)
    server.rest("POST", interrupt)
    yield "interrupt with one queued", taken.words()
    ws.close()
    server.rest("DELETE", "/api/sessions/" + session["id"])


def observe_restarts(server):
    session, kernel, ws = fresh(server)
    Taken(ws).execute(server, "it", SET)
    ws.settle()
    taken = Taken(ws)
    answer = restart_of(server, kernel)
    yield "restart: status, state told", (answer.status, answer.json()["execution_state"], answer.json()["connections"])
    ws.settle(2)
    messages = words(ws.messages[taken.start:], {})["iopub"]
    # whether `starting` and Jupyter's own kernel_info get through is a race
    yield "restart: iopub", [m for m in messages if "starting" not in m and "kernel_info" not in m]
    taken = Taken(ws)
    taken.execute(server, "it", GET)
    yield "restart: variables are gone", taken.words()

    taken = Taken(ws)
    it = taken.execute(server, "running", SLEEP)
    taken.execute(server, "queued", PRINT)
    ws.read_until(lambda m: m.parent_id == it and is_status(m, "busy"))
    time.sleep(0.2)
    restart_of(server, kernel)
    seen = taken.words(2)
    yield "restart of a busy kernel: of the cell", {k: [m for m in v if m.startswith("running")] for k, v in seen.items()}
    queued = [m for m in seen["iopub"] + seen["others"] if m.startswith("queued")]
    if server.kind == 0:
        diag("real, restart of a busy kernel, of the queued request (a race): %s" % queued)
    taken = Taken(ws)
    it = taken.execute(server, "running", STUBBORN)
    ws.read_until(lambda m: m.parent_id == it and is_status(m, "busy"))
    time.sleep(0.2)
    started = time.monotonic()
    restart_of(server, kernel)
    if server.kind == 0:
        diag("real, restart of a cell that swallows interrupts takes %.1f s" % (time.monotonic() - started))
    seen = taken.words(2)
    yield "restart of a stubborn cell: neither reply nor idle", [m for m in seen["iopub"] + seen["others"]
                                                                 if m.startswith("running") and ("idle" in m or "reply" in m)]
    ws.close()
    server.rest("DELETE", "/api/sessions/" + session["id"])


def kill_process(server, ws, kernel):
    """A sleeping cell whose process gets killed; returns the execution's id."""
    if server.kind == 0:
        it = ws.execute("import os, time; print(os.getpid(), flush=True); time.sleep(30)")
        said = ws.read_until(lambda m: m.parent_id == it and m.type == "stream")
        os.kill(int(said.content["text"]), signal.SIGKILL)
    else:
        it = ws.execute("print 0\nsleep 30")
        ws.read_until(lambda m: m.parent_id == it and m.type == "stream")
        server.kernel(kernel, "die", restart_after=1.5)
    return it


def observe_deaths(server):
    session, kernel, ws = fresh(server)
    start = len(ws.messages)
    it = kill_process(server, ws, kernel)
    queued = ws.execute(PRINT[server.kind])     # the dead process's connection may still take it
    yield "kill -9: interrupt answers", server.rest("POST", "/api/kernels/%s/interrupt" % kernel).status
    time.sleep(0.5)
    late = ws.execute(PRINT[server.kind])
    restarting = ws.read_until(lambda m: is_status(m, "restarting"), 8)
    yield "kill -9: parent, metadata, session of restarting", (restarting.parent, restarting.metadata,
                                                               restarting.header["session"])
    ws.result(late, 15, idle=False)
    ws.settle(1)
    names = {it: "killed", late: "late", queued: "queued"}
    seen = words(ws.messages[start:], names)
    yield "kill -9: of the killed", [m for m in seen["iopub"] + seen["others"]
                                     if m.startswith("killed") and "stdout" not in m]
    yield "kill -9: a request sent to no process runs in the next one", [m for m in seen["others"] if m.startswith("late")]
    if server.kind == 0:
        diag("real, iopub of that request (lost as a rule): %s" % [m for m in seen["iopub"] if m.startswith("late")])
        diag("real, what Jupyter believes then: " + server.rest("GET", "/api/kernels/" + kernel).json()["execution_state"])
    taken = Taken(ws)
    taken.execute(server, "it", PRINT)
    yield "kill -9: afterwards", taken.words()

    it = kill_process(server, ws, kernel)
    ws.drop()
    time.sleep(4.5 if server.kind == 0 else 2)
    ws = server.connect(kernel, session_id="mine")
    ws.settle(1)
    yield "death and autorestart while no websocket was open: nothing tells", [
        m for m in ws.messages if m.parent_id == it or is_status(m, "restarting")]
    if server.kind == 0:
        diag("real, what comes then: %s" % words(ws.messages, {})["iopub"])
        diag("real, and what Jupyter believes: " + server.rest("GET", "/api/kernels/" + kernel).json()["execution_state"])
    taken = Taken(ws)
    taken.execute(server, "it", PRINT)
    yield "and the next request", taken.words()

    started = time.monotonic()
    kill_process(server, ws, kernel)
    answer = restart_of(server, kernel)
    yield "restart of a dead process", answer.status
    ok(time.monotonic() - started < 2, "%s: restart of a dead process is quick" % type(server).__name__)
    ws.settle(1.5)
    yield "no status restarting after that", any(is_status(m, "restarting") for m in ws.messages[taken.start:])
    ws.close()
    server.rest("DELETE", "/api/sessions/" + session["id"])


def observe_websockets(server):
    session, kernel, ws = fresh(server)
    it = ws.execute(COUNT[server.kind])
    ws.read_until(lambda m: m.type == "stream" and m.content["text"] == "3\n")
    ws.drop()
    time.sleep(1.5)
    second = server.connect(kernel, session_id="mine")
    second.settle(0.6)
    both = ws.messages + second.messages
    yield "output while no websocket was open is replayed", output(both)
    yield "and the reply", [m.content["status"] for m in both if m.type == "execute_reply"]
    yield "and the idle", sum(m.parent_id == it and is_status(m, "idle") for m in both)
    yield "then a nudge", sorted(words(second.messages, {it: "it"})["iopub"][-3:])

    it = second.execute(COUNT[server.kind])
    second.read_until(lambda m: m.type == "stream" and m.content["text"] == "3\n")
    second.drop()
    other = server.connect(kernel, session_id="other")
    other.settle(0.3)
    other.close()
    time.sleep(1)
    third = server.connect(kernel, session_id="mine")
    third.settle(0.6)
    yield "another session id in between: the buffer is thrown away", [
        m.type for m in third.messages if m.parent_id == it and m.type == "execute_reply"]

    # eviction; the old one must read at the same time
    import threading
    reader = threading.Thread(target=third.wait_closed, args=(10,))
    it = third.execute(COUNT[server.kind])
    third.read_until(lambda m: m.type == "stream" and m.content["text"] == "3\n")
    reader.start()
    fourth = server.connect(kernel, session_id="mine")
    reader.join()
    fourth.result(it)
    yield "evicted: close code and reason", third.closed
    texts = output(m for m in third.messages + fourth.messages if m.parent_id == it)
    yield "evicted, closed at once: next to nothing is lost, nothing twice", (len(texts) >= 10, len(set(texts)) == len(texts))
    fourth.settle(0.5)
    fourth.answer_close = False
    started = time.monotonic()
    fifth = server.connect(kernel, session_id="mine")
    yield "evicted without an answer: seconds", round(time.monotonic() - started)
    fifth.settle(0.5)
    sixth = server.connect(kernel, session_id="other")
    sixth.settle(0.5)
    fifth.settle(0.2)
    marks = len(fifth.messages), len(sixth.messages)
    it = sixth.execute(PRINT[server.kind])
    sixth.result(it)
    fifth.settle(0.3)
    yield "two websockets: the asking one sees", words(sixth.messages[marks[1]:], {it: "it"})
    yield "two websockets: the other one sees", words(fifth.messages[marks[0]:], {it: "it"})
    yield "two websockets: connections", server.rest("GET", "/api/kernels/" + kernel).json()["connections"]
    sixth.close()
    yield "a close is answered with its code", sixth.closed

    fifth.send_raw(wire.frame(wire.PING, b"hello", masked=True))
    fifth.settle(0.3)
    yield "a ping is answered", fifth.pongs
    fifth.send_raw(wire.frame(wire.TEXT, b"text", masked=True))
    yield "text in the binary protocol: cut without a close frame", fifth.wait_closed(3)
    seventh = server.connect(kernel, session_id="seven")
    try:
        seventh.send_raw(wire.frame(wire.BINARY, bytes(11 << 20), masked=True))
    except OSError:
        pass
    seventh.pump(2)
    yield "a message over 10 MiB", seventh.closed

    legacy = server.connect(kernel, session_id="legacy", protocol=None)
    legacy.settle(0.5)
    taken = Taken(legacy)
    taken.execute(server, "it", ONE)
    yield "default protocol", taken.words()
    import json
    yield "default protocol: order of members", list(json.loads(legacy.messages[-1].text))
    yield "default protocol: text frames", {m.opcode for m in legacy.messages}
    taken = Taken(legacy)
    taken.execute(server, "it", (
        "k = get_ipython().kernel\n_ = k.session.send(k.iopub_socket, 'display_data', {'data': {}}, "
        "parent=k.get_parent('shell'), buffers=[b'a', b'bc'])", "display_buffers {}"))
    taken.words()
    binary = [m for m in legacy.messages if m.opcode == wire.BINARY]
    yield "default protocol: buffers come in binary frames", [(m.type, len(m.buffers)) for m in binary]
    yield "default protocol: members of those", list(json.loads(wire.unpack_legacy(binary[0].text)[0]))
    legacy.close()
    server.rest("DELETE", "/api/sessions/" + session["id"])


def observe_rest(server):
    def told(answer, body=True):
        text = answer.body.decode()
        for known in (session["id"], session["kernel"]["id"]):
            text = text.replace(known, "ID")
        return answer.status, answer.headers.get("content-type"), text if body else None

    def bare(method, path, body=None):
        token, server.token = server.token, ""
        try:
            return server.rest(method, path, body)
        finally:
            server.token = token

    session = server.create_session(path="a/b", name="name")
    yield "session model", {k: type(v).__name__ for k, v in session.items()}
    yield "session: path, name, type", (session["path"], session["name"], session["type"])
    yield "no token: api", told(bare("GET", "/api"))
    yield "no token: kernelspecs", told(bare("GET", "/api/kernelspecs"))
    yield "no token: kernels", told(bare("GET", "/api/kernels"))
    yield "status", sorted(server.rest("GET", "/api/status").json())
    specs = server.rest("GET", "/api/kernelspecs").json()
    yield "kernelspecs: default, keys", (specs["default"], sorted(specs["kernelspecs"]["python3"]),
                                         sorted(specs["kernelspecs"]["python3"]["spec"]))
    yield "unknown kernel name", told(server.rest("POST", "/api/sessions", {
        "path": "x", "name": "x", "type": "x", "kernel": {"name": "nope"}}))
    yield "no path", told(server.rest("POST", "/api/sessions", {"name": "x"}))
    yield "not JSON", told(server.rest("POST", "/api/sessions", "nonsense"))
    again = server.create_session(path="a/b", name="other")
    yield "the same path again is the same session", (again["id"] == session["id"], again["name"])
    patched = server.rest("PATCH", "/api/sessions/" + session["id"], {"name": "new"})
    yield "PATCH of a session: status, name", (patched.status, patched.json()["name"])
    yield "PATCH of a session: it stays", server.rest("GET", "/api/sessions/" + session["id"]).json()["name"]
    yield "PATCH of an unknown session", told(server.rest("PATCH", "/api/sessions/" + NOBODY, {"name": "new"}))
    for what in ("sessions", "kernels"):
        for method in ("GET", "DELETE"):
            yield "unknown: %s %s" % (method, what), told(server.rest(method, "/api/%s/%s" % (what, NOBODY)))
    yield "unknown: interrupt", told(server.rest("POST", "/api/kernels/%s/interrupt" % NOBODY))
    yield "unknown: restart is a 500", told(server.rest("POST", "/api/kernels/%s/restart" % NOBODY), False)
    yield "unknown: websocket", refused(server, NOBODY)
    yield "wrong token: websocket", refused(server, session["kernel"]["id"], "wrong")
    yield "405", told(server.rest("PUT", "/api/sessions", {}))
    yield "kernel deleted: session", [server.rest("DELETE", "/api/kernels/" + session["kernel"]["id"]).status,
                                      told(server.rest("GET", "/api/sessions/" + session["id"])),
                                      told(server.rest("GET", "/api/sessions/" + session["id"])),
                                      server.rest("GET", "/api/sessions").json()]
    session = server.create_session()
    server.rest("DELETE", "/api/kernels/" + session["kernel"]["id"])
    yield "kernel deleted: DELETE of the session", told(server.rest("DELETE", "/api/sessions/" + session["id"]))


def refused(server, kernel, token=None):
    ws = KernelSocket(server.port, kernel, token=server.token if token is None else token)
    return ws.status, "text/html" in ws.head.lower()


def observe_dead(server):
    session, kernel, ws = fresh(server)
    if server.kind == 0:
        kill_process(server, ws, kernel)
    else:
        ws.execute("dead")
    dead = ws.read_until(lambda m: is_status(m, "dead"), 8)
    yield "dead: parent", dead and dead.parent
    ws.settle(0.5)
    yield "dead: the websocket stays open", ws.closed
    yield "dead: the kernel is a", server.rest("GET", "/api/kernels/" + kernel).status
    yield "dead: the session is a", server.rest("GET", "/api/sessions/" + session["id"]).status
    ws.close()


def main():
    if not os.path.isdir("/usr/lib/python3/dist-packages/jupyter_server"):
        skip_all("no jupyter_server here")
    groups = [observe_rest, observe_requests, observe_interrupts, observe_restarts, observe_websockets, observe_deaths]
    wanted = sys.argv[1:]
    compare(RealJupyter, {}, [g for g in groups if not wanted or g.__name__ in wanted])
    if not wanted or "observe_dead" in wanted:
        compare(RealJupyter, {"args": ["--KernelRestarter.restart_limit=0"]}, [observe_dead])
    done_testing()


def compare(real_class, options, groups):
    real = start_with(real_class, options)
    with real, Scripted() as scripted:
        for group in groups:
            diag(group.__name__)
            expected = list(group(real))
            got = dict(group(scripted))
            for name, value in expected:
                is_(got.get(name, "not observed"), value, name)


def start_with(real_class, options):
    class Other(real_class):
        def start(self, **_):
            super().start(**options)
    return Other(free_port())


if __name__ == "__main__":
    main()
