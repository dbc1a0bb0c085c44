#!/usr/bin/python3
"""What a kernel says, in any order, twice, not at all, or in frames that are none: each stream ends once, whole or told
so."""

import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faulty import *

OUTPUTS = {
    "nothing": ("", "ok", ""),
    "output": ("print 1\nprint 2\nresult {\"text/plain\": \"3\"}", "ok", "1\n2\n"),
    "an error": ("print 1\nerror ValueError no", "ValueError", "1\n"),
}


# Order and loss


def orderings():
    """Every way to leave out, repeat or turn around busy, execute_input, reply and idle."""
    for busy, started, order, reply, idle, output in itertools.product(
            ("", "drop_busy"), ("", "no_execute_input"),
            ("reply_first", "idle_first", "reply_first 0.2", "idle_first 0.2", "reply_first 0.3\nlate_output 0.2"),
            ("", "drop_reply", "dup_reply"), ("", "drop_idle", "dup_idle"), OUTPUTS):
        lines, told_, text = OUTPUTS[output]
        if reply == "drop_reply" and idle == "drop_idle":
            continue        # see silence()
        late = "late_output" in order
        # an error without any trace on iopub cannot be known: here there always is one
        case = Case(
            "%s %s %s %s %s %s" % (busy, started, order.replace("\n", " "), reply, idle, output),
            "\n".join(filter(None, (busy, started, order, reply, idle, lines))), told_,
            text + "late 0\nlate 1\nlate 2\n" * late if late and idle != "drop_idle" else None if late else text)
        if idle == "drop_idle":
            # 2 s of silence, then a fence
            case.lost, case.least, case.most = True, 1.5, 6
        elif reply == "drop_reply":
            case.least, case.most = 0.5, 4
            case.told = told_ if told_ != "ok" else "ExecutionLost"     # nobody said that it ended well
        else:
            case.most = 4
        yield case


@scenario()
def all_orderings(server, rounds):
    def run(contexts, protocol):
        cases = list(orderings())
        if protocol == "json" and rounds == 1:
            random.seed(7)
            cases = random.sample(cases, 60)
        # whatever takes seconds first, so that nothing waits at the end
        cases.sort(key=lambda c: -c.least)
        table(server, contexts, cases, "all orderings, " + protocol, 90)
        for context in contexts[:3]:
            server.usable(context)
    for _ in range(rounds):
        protocols(server, run)


@scenario()
def silence(server, rounds):
    """Neither reply nor idle: Jupyter is asked after 10 s.  Never a busy: the code counts as lost on its way."""
    server.fresh()
    contexts = server.contexts(8)
    cases = [
        Case("no reply, no idle", "drop_reply\ndrop_idle\nprint 1", "ExecutionLost", "1\n", True, 9, 16),
        Case("an error without reply and idle", "drop_reply\ndrop_idle\nerror ValueError no", "ExecutionLost", "",
             True, 9, 16),
        Case("idle without a reply that would tell the error", "drop_reply\ndrop_error\nerror ValueError no", "ExecutionLost",
             "", False, 0.5, 4),
        Case("an error told by the reply alone", "drop_error\nerror ValueError no", "ValueError", "", False, 0, 2),
        Case("an error told by iopub alone", "drop_reply\nerror ValueError no", "ValueError", "", False, 0.5, 4),
        Case("somebody else's messages", "foreign other\nprint 1\nforeign other\nsleep 0.2\nprint 2", "ok", "1\n2\n",
             False,
             0.2, 3),
        Case("a reply long before idle", "reply_first 5\nlate_output 5\nprint 1", "ok", "1\nlate 0\nlate 1\nlate 2\n",
             False,
             4.5, 12),
        Case("a reply long before a silent idle", "reply_first 3.5\nprint 1", "ok", "1\n", False, 3, 7),
        Case("input() is refused", "input who\nprint 1", "StdinNotImplementedError", "", False, 0, 2),
    ]
    table(server, contexts, cases, "silence and odd messages", 40)


@scenario(many=5)
def odd_states(server, rounds):
    """busy twice, late, of others; states that there are not; status messages that are none."""
    jupyter = server.jupyter
    own = {"busy late": ["busy"], "busy often": ["busy"] * 3, "an unknown one": ["dreaming"], "starting": ["starting"]}
    for i in range(rounds):
        for name, states in own.items():
            context = server.create_context()
            kernel = server.kernel(context)
            mark = jupyter.mark()
            stream = server.execute(("drop_busy\n" if name == "busy late" else "") + "print 1\nsleep 0.3\nprint 2",
                                    context)
            stream.wait_for("stdout")
            header = jupyter.wait(since=mark, ev="execute", silent=False)["header"]
            for state in states:
                jupyter.kernel(kernel, "message", type="status", content={"execution_state": state}, parent=header)
            # nobody's, and somebody else's
            for parent in {}, {"msg_id": "somebody else's"}, {"msg_id": 5}:
                for state in "busy", "idle", "dreaming", "":
                    jupyter.kernel(kernel, "message", type="status", content={"execution_state": state}, parent=parent)
            gather([stream], 10)
            is_((verdict(stream), stream.text(), dropped(stream)), ("ok", "1\n2\n", False), name + ": it ends well")
            at_most(took(stream), 2, "in time")
            server.usable(context)


@scenario(many=10)
def thousands_behind_the_reply(server, rounds):
    """The reply is there, thousands of messages are on their way: idle alone is the end."""
    for protocol in "v1", "json":
        server.fresh()
        server.jupyter.set(protocol=protocol)
        context = server.create_context()
        kernel = server.kernel(context)
        for i in range(rounds):
            mark = server.jupyter.mark()
            stream = server.execute("reply_first 4\nprint begin %d" % i, context)
            stream.wait_for("stdout")
            parent = server.jupyter.wait(since=mark, ev="execute", silent=False)["header"]
            n = 3000
            body = [json.dumps({"type": "stream", "content": {"name": "stdout", "text": "%d\n" % k}, "parent": parent})
                    for k in range(n)]
            with socket.create_connection(("127.0.0.1", server.jupyter.control_port)) as control:
                data = "".join("POST /_control/kernel/%s/message HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
                               % (kernel, len(b), b) for b in body)
                reader = threading.Thread(target=drain, args=(control, n), daemon=True)
                reader.start()
                control.sendall(data.encode())
                gather([stream], 30)
                reader.join(10)
            is_((verdict(stream), dropped(stream)), ("ok", False), "%s: it ends well" % protocol)
            is_(stream.text(), "begin %d\n" % i + "".join("%d\n" % k for k in range(n)), "all is there, in order")


def drain(sock, answers):
    data, seen = b"", 0
    while seen < answers:
        more = sock.recv(1 << 16)
        if not more:
            return
        data += more
        seen += data.count(b"HTTP/1.1 200")
        data = data[-11:]


# Requests that the kernel does not take


@scenario()
def lost_requests(server, rounds):
    """A request that left no trace is sent again, once; one that was aborted did not run and is sent again."""
    server.fresh()
    jupyter = server.jupyter
    contexts = server.contexts(12)
    mark = jupyter.mark()
    cases = [
        Case("lost once", "lose 1\nprint lost once", "ok", "lost once\n", False, 1.5, 5),
        Case("lost twice", "lose 2\nprint lost twice", "KernelUnresponsive", "", False, 1.5, 8),
        Case("lost for ever", "lose 99\nprint lost for ever", "KernelUnresponsive", "", False, 1.5, 8),
        Case("aborted once", "abort 1\nprint aborted once", "ok", "aborted once\n", False, 0, 2),
        Case("aborted ten times", "abort 10\nprint aborted ten", "ok", "aborted ten\n", False, 0, 3),
        Case("aborted for ever", "abort\nprint aborted for ever", "KernelUnresponsive", "", False, 0, 6),
        Case("aborted, then lost, then there", "abort 2\nlose 1\nprint both", "ok", "both\n", False, 1.5, 5),
    ]
    table(server, contexts[:7], cases, "lost and aborted requests", 30)
    for case in cases:
        runs, sent = server.ran(case.code, mark), server.sent(case.code, mark)
        is_(runs, int(case.told == "ok"), "%s: ran %d times" % (case.name, case.told == "ok"))
        wanted = {"lost once": 2, "lost twice": 2, "lost for ever": 2, "aborted once": 2, "aborted ten times": 11}
        if case.name in wanted:
            is_(sent, wanted[case.name], "%s: sent %d times" % (case.name, wanted[case.name]))

    # abort_next: also the set-up's silent requests
    mark = jupyter.mark()
    streams = []
    for n, context in enumerate(contexts[7:]):
        jupyter.kernel(server.kernel(context), "set", abort_next=n + 1)
        streams.append(server.execute("print next %d" % n, context, env_vars={"A": str(n)}))
    gather(streams)
    for n, stream in enumerate(streams):
        is_((verdict(stream), stream.text(), server.ran("print next %d" % n, mark)), ("ok", "next %d\n" % n, 1),
            "abort_next %d: ran once" % (n + 1))
    for context in contexts:
        server.usable(context)


@scenario(many=20)
def aborted_behind_a_fence(server, rounds):
    """Somebody else's cell fails in front of ours, which is aborted and sent again, behind a fence that was sent before: it
    runs once."""
    jupyter = server.jupyter
    for i in range(rounds):
        contexts = server.contexts(4)
        mark = jupyter.mark()
        for n, context in enumerate(contexts):
            jupyter.kernel(context, "foreign", code="sleep %s\nerror ValueError x" % [0.5, 2.1, 2.5, 3.5][n])
        streams = gather([server.execute("print once %d\nsleep 0.3" % n, c) for n, c in enumerate(contexts)], 15)
        time.sleep(0.5)
        for n, stream in enumerate(streams):
            is_((verdict(stream), stream.text()), ("ok", "once %d\n" % n), "it runs")
            is_(server.ran("print once %d\nsleep 0.3" % n, mark), 1, "once")


@scenario()
def cancelled_while_lost(server, rounds):
    """The client leaves while its request is lost or aborted: it is not sent again, the slot is free soon."""
    server.fresh()
    jupyter = server.jupyter
    contexts = server.contexts(4)
    mark = jupyter.mark()
    codes = ["lose 99\nprint a", "abort\nprint b", "lose 1\nprint c", "drop_busy\nno_execute_input\nsleep 1.5\nprint d"]
    streams = [server.execute(code, context) for code, context in zip(codes, contexts)]
    time.sleep(0.5)
    left = [s.close() for s in streams]
    after = gather([server.execute("print after", context) for context in contexts], 15)
    for code, stream, t in zip(codes, after, left):
        is_((verdict(stream), stream.text()), ("ok", "after\n"), "%r: the next one runs" % code)
        at_most(stream.finished_at - t, 4.5, "soon")
    time.sleep(0.5)
    is_([server.ran(c, mark) for c in codes], [0, 0, 0, 1], "none ran later")
    is_(server.sent(codes[0], mark), 1, "the lost one was not sent again")


# Frames


@scenario(location="kexec_max_message 8m;")
def frames(server, rounds):
    """Fragments, pings, frames that are none: nothing is lost but what cannot be read."""
    sizes = [1, 2, 7, 125, 126, 127, 300, 65535, 65536] if rounds > 1 else [1, 7, 126, 4096, 65536]
    big = "x" * 70000

    def run(contexts, protocol):
        cases = [Case("fragments of %d" % n,
                      "fragment %d\nprint 1\nprint %s\nping 3\nprint 2\nresult {\"text/plain\": \"r\"}"
                      % (n, big if n > 5 else big[:3000]), "ok", "1\n%s\n2\n" % (big if n > 5 else big[:3000]), False,
                      0, 9)
                 for n in sizes]
        cases += [Case("pings", "ping 50\nprint 1\nping 50\nsleep 0.1\nping 1\nprint 2", "ok", "1\n2\n", False, 0, 3)]
        cases += [Case("bad JSON in " + part, "print 1\nbad_json %s\nprint 2" % part, "ok", None, None, 0, 3,
                       check=lambda s: None if (s.text(), dropped(s)) in (("1\nbad2\n", False), ("1\n2\n", True))
                       else "%r, dropped: %r" % (s.text(), dropped(s)))
                  for part in ("header", "parent", "metadata", "content")]
        if protocol == "v1":
            cases += [Case("binary rubbish " + kind, "print 1\nbad_frame_binary %s\nprint 2" % kind, "ok", "1\n2\n",
                           True, 0, 3)
                      for kind in ("empty", "short", "count", "zero", "descending", "beyond")]
        else:
            cases += [Case("binary rubbish", "print 1\nbad_frame_binary\nprint 2", "ok", "1\n2\n", True, 0, 3)]
        cases += [Case("text rubbish %d" % n, "print 1\ntext_frame %s\nprint 2" % text, "ok", "1\n2\n", True, 0, 3)
                  for n, text in enumerate(("", "{", "null", "[]", "{}", "\"x\"", "1",
                                            '{"header": 1, "parent_header": []}',
                                            '{"channel": "iopub", "header": {"msg_type": 3}, "parent_header": {}}'))]
        cases += [Case("%d levels" % n, "display {\"application/json\": %s%s}\nprint 1" % ("[" * n, "]" * n), "ok", "1\n",
                       n > 510, 0, 3, check=nested if n < 510 else why_dropped) for n in (500, 600, 100000)]
        cases += [
            Case("NaN", "print 1\nnan\nprint 2", "ok", "1\n2\n", False, 0, 3, check=has_null),
            Case("buffers", "display_buffers {\"text/plain\": \"b\"}\nprint 1", "ok", "1\n", False, 0, 3),
            Case("odd text", "print \"a\\u0000\\ud800\\n\"\nprint 1", "ok", "a\0\ud800\n1\n", False, 0, 3),
            Case("content that is none",
                 "message stream 3\nmessage stream {}\nmessage stream {\"text\": 5, \"name\": []}\n"
                 "message execute_result []\nmessage error 1\nmessage display_data {\"data\": 7}\nprint 1", None,
                 "1\n", None, 0, 3),
            Case("an unknown kind", "message novel {\"text\": \"no\"}\nprint 1", "ok", "1\n", False, 0, 3),
            Case("5 MB", "flood 1 5000000\nprint 1", "ok", "0 " + "x" * 4999997 + "\n1\n", False, 0, 15),
            Case("more than is taken", "print 1\nflood 1 9000000\nprint 2", "ok", "1\n2\n", True, 0, 15),
            Case("more than is taken, in fragments", "fragment 100000\nprint 1\nflood 1 9000000\nprint 2", "ok",
                 "1\n2\n", True,
                 0, 15),
        ]
        for case in cases:
            if case.told is None:
                case.told = "ok"
                case.problems = lambda s=case: [] if not verdict(s.stream).startswith(("no end", "several ends")) \
                    and s.stream.text().endswith("1\n") else [repr(s.stream.all())]
        # a fragment size stays with its link: each case gets a context of its own
        more = server.contexts(max(len(cases) - len(contexts), 0))
        table(server, contexts + more, cases, "frames, " + protocol, 60)
        contexts += more
        for context in contexts[::7]:
            server.usable(context)
    protocols(server, run)
    is_(server.log.lines("\\[alert\\]"), [], "no alert")


def nested(stream):
    """What is nested as deep as it may be comes as it is."""
    if b'"json": ' + b"[" * 500 + b"]" * 500 not in stream.body:
        return "no 500 brackets"


def why_dropped(stream):
    reason = next((e["reason"] for e in stream.all() if e["type"] == "output_dropped"), "")
    if "nested deeper than 512 levels" not in reason:
        return "the reason is %r" % reason


def has_null(stream):
    """NaN is not JSON, null is."""
    result = [e for e in stream.all() if e["type"] == "result"]
    if not result or result[0].get("json") != {"x": None, "y": [None, None]}:
        return "result %r" % result


@scenario()
def broken_framing(server, rounds):
    """What loses the framing closes the link, and the next one goes on."""
    server.fresh()
    raw = {"reserved bits": "f20161", "a masked frame": "828100000000ff", "an unknown opcode": "8300",
           "a control frame in fragments": "0900", "a long control frame": "89fe0100" + "00" * 16,
           "a continuation of nothing": "8001ff", "64 bits of length": "82ffffffffffffffffff00"}
    cases = [Case(name, "print 1\nsleep 0.1\nraw_frame %s\nprint 2\nsleep 0.2\nprint 3" % frame, "ok", None, None, 0, 5,
                  check=lambda s: None if s.text().startswith("1\n") and s.text().endswith("3\n") else s.text())
             for name, frame in raw.items()]
    contexts = server.contexts(len(cases))
    table(server, contexts, cases, "broken framing", 30)
    for case in cases:
        is_(server.ran(case.code), 1, case.name + ": ran once")
        server.usable(case.context)


# What it sends fills no log


@scenario(many=10, location="kexec_max_message 64k;")
def skipped(server, rounds):
    """Messages that cannot be read, or are too long: one line for each kind, and one that says how many there were."""
    for i in range(rounds):
        context = server.create_context()
        server.log.mark()
        for n in range(3):
            stream = server.run("bad_json header\n" * 300 + "flood 100 70000\nprint a", context_id=context)
            is_((verdict(stream), stream.text(), dropped(stream)), ("ok", "a\n", True), "told to the client")
        lines = server.log.lines("message.* skipped")
        is_(len(lines), 2, "one line of each kind")
        like(lines[0] + lines[1], "malformed.*longer than kexec_max_message", "which says what it was")
        server.jupyter.kernel(context, "cut")
        server.log.wait("messages from kernel were skipped: longer")
        is_(sorted(int(re.search(r"(\d+) more messages", line).group(1))
                   for line in server.log.lines("more messages from kernel")), [299, 899], "and how many more there were")
        server.usable(context)


main(Faulty, workers=(1,), jobs=10)
