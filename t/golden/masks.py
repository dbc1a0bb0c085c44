"""Answers with everything volatile taken out, so that they can be compared."""

import json
import re

STREAMS = ("stdout", "stderr")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

# Addresses, names of cells' temporary files, recursion depths, descriptors, line numbers of Debian's packages.
TEXTS = [
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "0xADDRESS"),
    (re.compile(r"/tmp/ipykernel_\d+/\d+\.py"), "/tmp/ipykernel_PID/NUMBER.py"),
    (re.compile(r"\(\d+\.py, line "), "(NUMBER.py, line "),
    (re.compile(r"\(\d+ times\)"), "(N times)"),
    (re.compile(r"_handle_events\(\d+, 1\)"), "_handle_events(FD, 1)"),
]

# What a stream event adds to its text.
STREAM_OVERHEAD = len('{"type": "stdout", "text": "", "timestamp": "2026-11-29T14:32:49.214768+00:00"}\n')


def mask_text(text, places):
    """places: [(path of this server, path of the recorded one)]."""
    for here, there in places:
        text = text.replace(here, there)
    for pattern, name in TEXTS:
        text = pattern.sub(name, text)
    return UUID.sub("ID", text)


def mask_value(value, places):
    if isinstance(value, str):
        return mask_text(value, places)
    if isinstance(value, list):
        return [mask_value(v, places) for v in value]
    if isinstance(value, dict):
        return {k: mask_value(v, places) for k, v in value.items()}
    return value


def split_events(body, python=True):
    """Event lines as objects (members in their order), and what is wrong with how they are written.  What other
    kernels than Python's write passes through as it is."""
    text = body.decode("utf-8", "surrogateescape")
    wrong = []
    if not text.endswith("\n"):
        wrong.append("the last line has no end")
    if not text.isascii():
        wrong.append("a line is not ASCII")
    events = []
    for line in text.splitlines():
        try:
            event = json.loads(line, parse_constant=bare_constant)
        except ValueError as e:
            wrong.append("not JSON (%s): %.200s" % (e, line))
            continue
        if python and json.dumps(event) != line:
            wrong.append("not written as Python does: %.200s" % line)
        events.append(event)
    return events, wrong


def bare_constant(name):
    raise ValueError("a bare " + name)


def mask_events(events, places, count=True, scrambled=None):
    """No keepalives, streams not split, timestamps by their form; count: execution counts are comparable; scrambled:
    the phrase that a stream's text has to have, all of it is not comparable."""
    masked = []
    for event in events:
        event = mask_event(event, places)
        kind = event.get("type")
        if kind == "keepalive":
            continue
        if kind == "number_of_executions" and not count:
            event["execution_count"] = "COUNT" if event["execution_count"] else None
        before = masked[-1] if masked else {}
        if kind in STREAMS and {**before, "text": event["text"]} == event:
            before["text"] += event["text"]
            continue
        masked.append(event)
    if scrambled:
        for event in masked:
            if event.get("type") in STREAMS and scrambled in event["text"]:
                event["text"] = scrambled
    return put_reply_error_last(masked)


def put_reply_error_last(events):
    """An error that is told in the kernel's reply alone has no traceback.  The reply comes on another socket than the
    output, so that it is a race where among the output the reference tells of it."""
    late = [e for e in events if e.get("type") == "error" and e.get("traceback") == ""]
    rest = [e for e in events if e not in late]
    return rest[:-1] + late + rest[-1:]


def mask_event(event, places):
    timestamp = event.get("timestamp")
    event = mask_value(event, places)
    if isinstance(timestamp, str) and TIMESTAMP.fullmatch(timestamp):
        event["timestamp"] = "TIMESTAMP"
    return event


def mask_raw(text, places):
    """A piece of a body that was recorded by its head and tail alone."""
    return mask_text(TIMESTAMP.sub("TIMESTAMP", text), places)
