#!/usr/bin/python3
"""What the scripted Jupyter and the helpers promise."""

import json
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import jupyter_wire as wire
from kexec_test import (ErrorLog, ScriptedJupyter, Stream, brief, diag, done_testing, free_port, is_, is_status,
                        isnt, like, ok, within)

RUN = ["busy", "execute_input"]
GOOD = ["reply:ok", "idle"]


def open_kernel(jupyter, **more):
    session = jupyter.create_session()
    kernel = session["kernel"]["id"]
    return kernel, jupyter.connect(kernel, **more)


def interrupt(jupyter, kernel):
    return jupyter.rest("POST", "/api/kernels/%s/interrupt" % kernel)


def running(jupyter, ws, code):
    """Sends it and waits until it runs."""
    mark = jupyter.mark()
    it = ws.execute(code)
    jupyter.wait(ev="start", msg_id=it, since=mark)
    return it


def test_cells(jupyter, protocol):
    kernel, ws = open_kernel(jupyter, protocol=protocol)
    for code, expected in (
            ("anything else = 5\nfor x in y:\n    pass", RUN + GOOD),
            ("print a\nstderr b", RUN + ["stdout:a\n", "stderr:b\n"] + GOOD),
            ('print "no newline\\u0000"', RUN + ["stdout:no newline\0"] + GOOD),
            ('result {"text/plain": "1"}\ndisplay {"a": 1}\ndisplay_buffers {}',
             RUN + ["execute_result", "display_data", "display_data"] + GOOD),
            ("error NameError x is not", RUN + ["error:NameError", "reply:error", "idle"]),
            ("drop_error\nerror NameError x", RUN + ["reply:error", "idle"]),
            ("drop_busy\nno_execute_input\nprint a", ["stdout:a\n"] + GOOD),
            ("idle_first", RUN + ["idle", "reply:ok"]),
            ("reply_first 0.05", RUN + GOOD),
            ("late_output 0.03", RUN + ["reply:ok", "stdout:late 0\n", "stdout:late 1\n", "stdout:late 2\n", "idle"]),
            ("abort 1\nprint x", ["busy", "reply:aborted", "idle"]),
            ("set x 5\nget x\ncount", RUN + ["stdout:5\n", "stdout:11\n"] + GOOD),
            ("get y", RUN + ["error:NameError", "reply:error", "idle"]),
            ("message update_display_data {\"data\": {}}", RUN + ["update_display_data"] + GOOD)):
        is_(brief(ws.run(code)), expected, repr(code))
    is_(brief(ws.run("abort 1\nprint x")), RUN + ["stdout:x\n"] + GOOD, "abort 1: the second time it runs")

    is_(brief(ws.result(ws.execute("drop_idle\nprint x"), 0.3)), RUN + ["stdout:x\n", "reply:ok"], "drop_idle")
    is_(jupyter.rest("GET", "/api/kernels/" + kernel).json()["execution_state"], "idle", "by REST it is idle all the same")
    is_(brief(ws.result(ws.execute("drop_reply"), 0.3)), RUN + ["idle"], "drop_reply")
    it = ws.execute("dup_idle\ndup_reply")
    ws.settle(0.2)
    is_(brief(m for m in ws.messages if m.parent_id == it), RUN + ["reply:ok"] * 2 + ["idle"] * 2, "dup_idle, dup_reply")
    is_(brief(ws.result(ws.execute("lose 1\nprint x"), 0.3)), [], "lose: nothing at all")
    is_(brief(ws.run("lose 1\nprint x")), RUN + ["stdout:x\n"] + GOOD, "the second time it runs")
    first = ws.execute("abort_next 2")
    more = [ws.execute("print %d" % i, silent=i == 0) for i in range(3)]
    is_([brief(ws.result(m))[-2] for m in [first] + more], ["reply:ok", "reply:aborted", "reply:aborted", "reply:ok"],
        "abort_next 2")
    is_(brief(ws.run("print x", silent=True)), ["busy"] + GOOD, "a silent request is not interpreted")
    is_(json.loads(ws.run("env")[2].content["text"]), ["print x"], "env shows it")
    is_(len(ws.run("flood 200 1000")), 204, "flood")
    is_({len(m.content["text"]) for m in ws.messages[-150:-3]}, {1000}, "of the right size")
    text = next(m for m in ws.run("nan") if m.type == "execute_result").text
    like(text, "NaN.*-Infinity", "nan is not JSON")
    ws.close()


def test_frames(jupyter, protocol):
    kernel, ws = open_kernel(jupyter, protocol=protocol)
    is_(brief(ws.run("fragment 3\nprint a")), RUN + ["stdout:a\n"] + GOOD, "fragment")
    jupyter.kernel(kernel, "fragment", size=0)
    ws.run("ping 3")
    is_(ws.pings, [b"ping 0", b"ping 1", b"ping 2"], "ping")
    jupyter.wait(ev="ws_pong", count=3, kernel=kernel)
    is_(len(ws.bad), 0, "nothing bad so far")
    for part in ("header", "parent", "metadata", "content"):
        ws.run("bad_json " + part)
    is_(len(ws.bad), 4, "bad_json in each part")
    ws.run("bad_frame_binary")
    is_(len(ws.bad), 10, "bad_frame_binary, all kinds")
    ws.run("raw_frame 8a026869")
    is_(ws.pongs, [b"hi"], "raw_frame")
    ws.run("text_frame nonsense")
    is_(len(ws.bad), 11, "text_frame")
    others = ws.position = len(ws.messages)
    it = ws.execute("foreign hello\nprint mine")
    is_(brief(ws.result(it)), RUN + ["stdout:mine\n"] + GOOD, "foreign: ours")
    is_(brief(m for m in ws.messages[others:] if m.parent_id != it),
        ["busy", "stdout:hello\n", "error:ForeignError", "reply:error", "idle"], "foreign: theirs")

    it = ws.execute("close 1012 restarting\nprint after")
    is_(ws.wait_closed(), (1012, "restarting"), "close with a code")
    for code, expected in (("cut\nprint after", "reset"), ("cut_mid_frame\nprint after", "eof")):
        ws = jupyter.connect(kernel, protocol=protocol, session_id="again")
        ws.settle(0.1)
        it = ws.execute(code)
        is_(ws.wait_closed(), expected, code.split()[0])
        jupyter.wait(ev="end", msg_id=it)
        again = jupyter.connect(kernel, protocol=protocol, session_id="again")
        is_(brief(again.result(it))[-3:], ["stdout:after\n"] + GOOD, "and what came then is replayed")
        again.close()


def test_interrupts(jupyter):
    kernel, ws = open_kernel(jupyter)
    it = running(jupyter, ws, "print a\nsleep 20\nprint b")
    interrupt(jupyter, kernel)
    is_(brief(ws.result(it)), RUN + ["stdout:a\n", "error:KeyboardInterrupt", "reply:error", "idle"], "interrupt")
    record = jupyter.log(ev="interrupt")[-1]
    is_((record["executing"], record["landed"], record["landed_in"]), (it, "hit", it), "and the log knows")

    interrupt(jupyter, kernel)
    is_(jupyter.log(ev="interrupt")[-1]["landed"], "ignored", "idle: ignored")
    is_(brief(ws.run("print x")), RUN + ["stdout:x\n"] + GOOD, "and the next one is not hit")

    it = running(jupyter, ws, "swallow 0.3\nprint x")
    interrupt(jupyter, kernel)
    is_(brief(ws.result(it)), RUN + ["stdout:x\n"] + GOOD, "swallow")
    it = running(jupyter, ws, "sleep_uninterruptible 0.3\nprint x")
    interrupt(jupyter, kernel)
    is_(brief(ws.result(it)), RUN + ["error:KeyboardInterrupt", "reply:error", "idle"], "sleep_uninterruptible: at its end")

    it = running(jupyter, ws, "sleep 20")
    queued = ws.execute("print queued")
    interrupt(jupyter, kernel)
    is_([brief(ws.result(m))[-2] for m in (it, queued)], ["reply:error", "reply:ok"], "stop_on_error false: the next runs")
    mark = jupyter.mark()
    it = ws.execute("sleep 20", stop_on_error=True)
    jupyter.wait(ev="start", since=mark)
    queued = ws.execute("print queued")
    jupyter.wait(ev="execute", msg_id=queued)
    interrupt(jupyter, kernel)
    is_([brief(ws.result(m))[-2] for m in (it, queued)], ["reply:error", "reply:aborted"], "stop_on_error: aborted")

    # the hazard: accepted while one cell runs, landing in the next
    jupyter.set(sigint_delay=[0.3, 0.3])
    first = running(jupyter, ws, "sleep 0.1")
    interrupt(jupyter, kernel)
    ws.result(first)
    second = ws.execute("sleep 5")
    is_(brief(ws.result(second)), RUN + ["error:KeyboardInterrupt", "reply:error", "idle"], "a late SIGINT hits the next cell")
    record = jupyter.log(ev="interrupt")[-1]
    is_((record["executing"], record["landed_in"]), (first, second), "and the log tells of both")
    first = running(jupyter, ws, "sleep 0.1")
    interrupt(jupyter, kernel)
    ws.result(first)
    jupyter.wait(ev="interrupt", landed="ignored", executing=first)
    ok(True, "or is lost between cells")
    jupyter.set(sigint_before_answer=True)
    first = running(jupyter, ws, "sleep 20")
    started = time.monotonic()
    interrupt(jupyter, kernel)
    ok(time.monotonic() - started > 0.3, "sigint_before_answer: the call takes as long")
    ws.result(first)
    jupyter.set(sigint_delay=None, sigint_before_answer=None)
    jupyter.set(interrupt={"delay": [0.1, 0.2]})
    first = running(jupyter, ws, "sleep 0.05")
    interrupt(jupyter, kernel)
    is_(jupyter.log(ev="interrupt")[-1]["executing"], None, "a slow interrupt call: delayed before it acts")
    jupyter.set(interrupt=None)

    jupyter.set(arm_delay=0.2)
    it = ws.execute("print x")
    ws.read_until(lambda m: m.parent_id == it and is_status(m, "busy"))
    interrupt(jupyter, kernel)
    is_(brief(ws.result(it)), RUN + ["stdout:x\n"] + GOOD, "too early, between busy and arming: lost")
    jupyter.set(arm_delay=None)
    it = running(jupyter, ws, "reply_gap 5")
    interrupt(jupyter, kernel)
    is_(brief(ws.result(it, reply=False)), RUN + ["idle"], "reply_gap: the reply is eaten")

    jupyter.set(kernel_info={"delay": 0.3})
    it = ws.request("kernel_info_request")
    ws.read_until(lambda m: m.parent_id == it)
    interrupt(jupyter, kernel)
    is_(brief(ws.result(it, reply=False)), ["busy", "idle"], "kernel_info interrupted: idle without a reply")
    jupyter.set(kernel_info={"drop": 1})
    it = ws.request("kernel_info_request")
    is_(brief(ws.result(ws.request("kernel_info_request"))), ["busy", "reply:ok", "idle"], "kernel_info: the second is answered")
    is_(brief(m for m in ws.messages if m.parent_id == it), [], "the first was dropped")
    jupyter.set(kernel_info=None)

    foreign = jupyter.kernel(kernel, "foreign", seconds=20)["msg_id"]
    mine = ws.execute("print mine")
    jupyter.wait(ev="start", msg_id=foreign)
    interrupt(jupyter, kernel)
    ws.result(mine)
    is_(jupyter.log(ev="interrupt")[-1]["landed_in"], foreign, "somebody else's cell was hit")
    is_(brief(m for m in ws.messages if m.parent_id == foreign), RUN + ["error:KeyboardInterrupt", "idle"],
        "and is seen, without a reply")
    ws.close()


def test_life(jupyter):
    kernel, ws = open_kernel(jupyter)
    ws.run("set x 1")
    it = running(jupyter, ws, "print a\ndie 0.2")
    ws.read_until(lambda m: is_status(m, "restarting"))
    is_(brief(m for m in ws.messages if m.parent_id == it), RUN + ["stdout:a\n"], "die: neither reply nor idle")
    is_(ws.messages[-1].parent, {}, "restarting has no parent")
    jupyter.wait(ev="kernel_up", kernel=kernel, count=2)
    ws.settle(0.2)
    is_(brief(ws.run("get x"))[2], "error:NameError", "the new process has no variables")

    jupyter.kernel(kernel, "set", restart_iopub_gap=0)
    it = running(jupyter, ws, "sleep 20")
    queued = ws.execute("print queued")
    jupyter.wait(ev="execute", msg_id=queued)
    jupyter.kernel(kernel, "die", restart_after=0.2)
    late = ws.execute("print late")
    is_(brief(ws.result(late)), RUN + ["stdout:late\n"] + GOOD, "a request sent to no process reaches the next one")
    is_(brief(m for m in ws.messages if m.parent_id in (it, queued)), RUN, "the killed one and what waited behind it stay silent")
    jupyter.kernel(kernel, "set", restart_iopub_gap=0.2)
    jupyter.kernel(kernel, "die", restart_after=0.1)
    late = ws.execute("print late")
    is_(brief(ws.result(late, 1)), ["reply:ok"], "restart_iopub_gap: only the reply of it is seen")

    jupyter.kernel(kernel, "set", restart_iopub_gap=0)
    it = running(jupyter, ws, "sleep 20")
    answer = jupyter.rest("POST", "/api/kernels/%s/restart" % kernel)
    is_((answer.status, answer.json()["id"]), (200, kernel), "restart by REST")
    is_(brief(ws.result(it))[-2:], ["reply:error", "idle"], "it interrupts the running cell first")
    like(brief(ws.run("count")), "stdout:1", "and the kernel is a new one")

    it = running(jupyter, ws, "sleep 20")
    ws.execute("dead")
    interrupt(jupyter, kernel)
    ok(ws.read_until(lambda m: is_status(m, "dead")), "dead: the status")
    is_(jupyter.rest("GET", "/api/kernels/" + kernel).status, 404, "and a 404")
    is_(jupyter.rest("GET", "/api/sessions").json(), [], "and no session")
    ws.close()

    session = jupyter.create_session(path="find/me")
    jupyter.kernel("find/me", "delete")
    is_(jupyter.rest("GET", "/api/kernels/" + session["kernel"]["id"]).status, 404, "deleted behind our back")
    jupyter.set(start_delay=0.3)
    kernel, ws = open_kernel(jupyter)
    started, created = jupyter.log(ev="ws_open")[-1]["t"], jupyter.log(ev="session_created")[-1]["t"]
    ok(started - created > 0.25, "start_delay: the websocket opens once the kernel has answered")
    jupyter.set(start_delay=None)
    ws.close()


def test_links(jupyter):
    kernel, ws = open_kernel(jupyter, session_id="one")
    it = running(jupyter, ws, "print 0\nsleep 0.3\nprint 1")
    ws.read_until(lambda m: m.type == "stream")
    ws.drop(reset=True)
    jupyter.wait(ev="end", msg_id=it)
    again = jupyter.connect(kernel, session_id="one")
    is_(brief(again.result(it)), ["stdout:1\n"] + GOOD, "what came while no websocket was open is replayed")
    is_(jupyter.log(ev="ws_open")[-1]["resumed"], True, "and logged so")
    is_(jupyter.log(ev="ws_close")[-1]["reason"], "reset by the client", "and how the old one went")

    reader = threading.Thread(target=again.wait_closed)
    reader.start()
    newer = jupyter.connect(kernel, session_id="one")
    reader.join()
    is_(again.closed, (None, ""), "the same session id evicts the older one")
    is_(jupyter.state()["max_websockets"][kernel], 1, "so there was one at a time")
    newer.answer_close = False
    jupyter.set(close_timeout=0.5)
    it = running(jupyter, newer, "sleep 0.2\nprint lost\nsleep 0.6\nprint seen")
    newest = jupyter.connect(kernel, session_id="one")
    is_(brief(newest.result(it)), ["stdout:seen\n"] + GOOD, "output between the server's close and the client's is lost")
    jupyter.set(close_timeout=None)
    other = jupyter.connect(kernel, session_id="two")
    it = newest.execute("print x")
    newest.result(it)
    other.settle(0.1)
    is_(brief(m for m in other.messages if m.parent_id == it), RUN + ["stdout:x\n", "idle"], "another one sees iopub only")
    is_(jupyter.state()["max_websockets"][kernel], 2, "two at a time now")
    it = running(jupyter, newest, "sleep 0.2\nprint x")
    newest.drop()
    jupyter.wait(ev="end", msg_id=it)
    newest = jupyter.connect(kernel, session_id="one")
    is_(brief(newest.result(it, 0.3)), [], "no buffering while another websocket is open")
    jupyter.cut_all()
    is_((newest.wait_closed(), other.wait_closed()), ("reset", "reset"), "cut_all")

    jupyter.set(iopub_subscription_delay=0.2)
    late = jupyter.connect(kernel, session_id="three")
    is_(brief(late.run("print x", timeout=0.1)), ["reply:ok"], "iopub_subscription_delay: only replies at first")
    late.settle(0.3)
    is_(brief(late.run("print x")), RUN + ["stdout:x\n"] + GOOD, "and all later")
    jupyter.set(iopub_subscription_delay=None)
    late.send_raw(wire.frame(wire.BINARY, b"unmasked"))
    is_(late.wait_closed(), "eof", "an unmasked frame ends the link")
    ok(jupyter.log(ev="protocol_error"), "and is logged")
    jupyter.set(protocol="json")
    is_(jupyter.connect(kernel).protocol, None, "protocol json: v1 is refused")
    jupyter.set(protocol=None)


def test_rest(jupyter):
    jupyter.reset(kernels=True)
    session = jupyter.create_session()
    kernel = session["kernel"]["id"]
    jupyter.set(chunked=10)
    answer = jupyter.rest("GET", "/api/sessions")
    is_((answer.headers.get("transfer-encoding"), answer.json()[0]["id"]), ("chunked", session["id"]), "chunked")
    jupyter.set(chunked=None, interrupt={"status": 500, "times": 1})
    is_([interrupt(jupyter, kernel).status for _ in range(2)], [500, 204], "status, times")
    is_(len(jupyter.log(ev="interrupt")), 1, "the failed one did nothing")
    jupyter.set(interrupt={"status": 500, "act": True, "times": 1})
    interrupt(jupyter, kernel)
    is_(len(jupyter.log(ev="interrupt")), 2, "act: it did")
    jupyter.set(restart={"delay": 0.3, "skip": 1})
    times = []
    for _ in range(2):
        started = time.monotonic()
        jupyter.rest("POST", "/api/kernels/%s/restart" % kernel)
        times.append(time.monotonic() - started)
    ok(times[0] < 0.3 <= times[1], "delay, skip")
    jupyter.set(kernel_get={"hang": True})
    stream = Stream(jupyter.port, "GET", "/api/kernels/" + kernel, headers={"Authorization": "token secret"})
    is_(stream.wait_head(0.3), None, "hang")
    stream.close()
    jupyter.wait(ev="rest", name="kernel_get", **{"client_left!": True})
    ok(True, "and the log knows when the client gave up")
    for fault, ended in (("reset", "reset"), ("close", "eof"), ("cut_body", "eof")):
        jupyter.set(kernel_get={fault: True})
        stream = Stream(jupyter.port, "GET", "/api/kernels/" + kernel, headers={"Authorization": "token secret"})
        stream.finish()
        is_(stream.ended, ended, fault)
    jupyter.set(kernel_get=None, channels={"refuse": True, "times": 1})
    is_([jupyter.connect(kernel).status for _ in range(2)], [503, 101], "channels: refuse")
    jupyter.set(channels={"status": 403})
    is_(jupyter.connect(kernel).status, 403, "channels: a status")
    jupyter.set(channels=None, kernelspecs=["bash"])
    is_(list(jupyter.rest("GET", "/api/kernelspecs").json()["kernelspecs"]), ["bash"], "kernelspecs")
    jupyter.set(kernelspecs={"status": 503})
    is_(jupyter.rest("GET", "/api/kernelspecs").status, 503, "kernelspecs as a fault")
    jupyter.reset()
    is_(jupyter.rest("GET", "/api/kernelspecs").status, 200, "reset")

    ws = jupyter.connect(kernel)
    jupyter.set(fail_silent={"match": "chdir", "ename": "FileNotFoundError", "times": 1}, abort_silent=1)
    is_([m.content.get("ename") or m.content["status"] for _ in range(3)
         for m in ws.run("os.chdir('/x')", silent=True) if m.type == "execute_reply"],
        ["aborted", "FileNotFoundError", "ok"], "abort_silent, fail_silent")
    is_(jupyter.executes(silent=True), ["os.chdir('/x')"] * 3, "all are in the log")
    jupyter.down(seconds=0.3)
    is_(ws.wait_closed(), "reset", "down: websockets are reset")
    refused = False
    try:
        Stream(jupyter.port, "GET", "/api")
    except ConnectionRefusedError:
        refused = True
    ok(refused, "and connections refused")
    time.sleep(0.4)
    is_(jupyter.rest("GET", "/api/kernels/" + kernel).status, 200, "until it is up again, the kernel alive")
    jupyter.down()
    jupyter.up()
    is_(jupyter.rest("GET", "/api").status, 200, "down, up")
    error = None
    try:
        jupyter.set(nonsense=1)
    except RuntimeError as e:
        error = e
    like(error, "neither an option", "an unknown option is an error")


def test_stream():
    """The HTTP client, against a server of a few lines."""
    port = free_port()
    listener = socket.create_server(("127.0.0.1", port))
    seen = {}

    def serve():
        for n in range(4):
            conn, _ = listener.accept()
            seen[n] = conn.recv(65536)
            conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n")
            for piece in (b'9\r\n{"type": \r\n', b'6\r\n"a"}\n{\r\n', b'10;x=y\r\n"type": "keepali\r\n',
                          b'5\r\nve"}\n\r\n'):
                conn.sendall(piece)
                time.sleep(0.05)
            if n == 0:
                conn.sendall(b'1c\r\n{"type": "end_of_execution"}\r\n1\r\n\n\r\n0\r\n\r\n')
                conn.close()
            elif n == 1:
                conn.close()
            else:
                try:
                    seen[n] = conn.recv(10)
                except ConnectionResetError:
                    seen[n] = "reset"
                conn.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    stream = Stream(port, "POST", "/execute", {"code": "x"})
    is_(stream.next(), {"type": "a"}, "Stream: an event over two chunks")
    is_(stream.status_line, "200 OK", "status line")
    is_(stream.headers["x-a"], "b", "headers")
    is_(stream.finish(), [{"type": "a"}, {"type": "end_of_execution"}], "the events without keepalives")
    is_(stream.ended, "complete", "complete")
    ok(stream.at("keepalive") > stream.at("a") > stream.sent_at, "events have times")
    like(seen[0], r'POST /execute HTTP/1.1\r\n.*application/json.*{"code": "x"}', "the request")
    stream = Stream(port, "POST", "/execute", {"code": "x"})
    stream.finish()
    is_(stream.ended, "eof", "broken off")
    stream = Stream(port, "POST", "/execute", {"code": "x"})
    stream.wait_for("keepalive")
    stream.half_close()
    stream.finish()
    is_(seen[2], b"", "half_close")
    stream = Stream(port, "POST", "/execute", {"code": "x"})
    stream.wait_for("keepalive")
    within(stream.reset() - stream.sent_at, 5, "reset")
    thread.join()
    is_(seen[3], "reset", "is a RST")


def test_error_log(directory):
    path = os.path.join(directory, "error.log")
    with open(path, "w") as f:
        f.write("x [alert] 1#0: old\n")
    log = ErrorLog(directory)
    log.mark()
    with open(path, "a") as f:
        f.write("x [info] 1#0: fine\n")
    log.check(name="ErrorLog: only what came after the mark")
    with open(path, "a") as f:
        f.write("x [crit] 1#0: bad\n")
    is_(len([line for line in log.lines() if log.bad.search(line)]), 1, "[crit] is found")
    is_(log.wait("fine"), "x [info] 1#0: fine", "wait")


def main():
    import tempfile
    with ScriptedJupyter() as jupyter:
        for protocol in (wire.V1, None):
            diag("protocol %s" % (protocol or "default"))
            test_cells(jupyter, protocol)
            test_frames(jupyter, protocol)
        test_interrupts(jupyter)
        jupyter.reset(kernels=True)
        test_life(jupyter)
        test_links(jupyter)
        test_rest(jupyter)
        isnt(jupyter.process.poll(), 1, "it still runs")
    is_(jupyter.process, None, "and ends on SIGTERM")
    test_stream()
    with tempfile.TemporaryDirectory() as directory:
        test_error_log(directory)
    done_testing()


if __name__ == "__main__":
    main()
