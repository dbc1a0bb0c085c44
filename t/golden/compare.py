"""What of an answer counts: a view, a list of short texts, made alike of a recorded answer, of a documented
difference and of ours."""

import json

import masks

# Of every answer: what the module and nginx say beyond the reference.
HEADERS = {"connection": "keep-alive"}
STREAM_HEADERS = {"content-type": "application/x-ndjson", "cache-control": "no-store", "x-accel-buffering": "no"}

VOLATILE_HEADERS = ("date", "server")

# ipykernel fails to send this output, in one thread or another, and in the midst of sending the traceback of that, too.
SCRAMBLED = {"stdout_lone_surrogate": "surrogates not allowed"}


class Case:
    def __init__(self, record):
        self.record = record
        self.name = record["name"]
        self.request = record["request"]
        self.recorded = record["answer"]
        self.context = self.request.get("context")

    @property
    def counts(self):
        """A context of its own: execution counts are comparable."""
        return self.context is not None

    @property
    def python(self):
        return self.context is None or self.context["language"] == "python"

    @property
    def big(self):
        return "body_length" in self.recorded

    def answered(self, **change):
        """The case with another answer recorded."""
        return Case({**self.record, "answer": {**self.recorded, **change}})

    def expectation(self):
        """The recorded answer, and what ours has in addition, whatever the case."""
        headers = dict(h.split(": ", 1) for h in self.recorded["headers"])
        is_stream = self.recorded["status"] == "200 OK" and self.request["path"] == "/execute" \
            and "content-type" not in headers
        return Expectation(self.recorded["status"], {**HEADERS, **(STREAM_HEADERS if is_stream else {}), **headers},
                           self.recorded.get("body"))


class Expectation:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body            # text; None: recorded by head and tail alone

    def changed(self, status=None, headers=None, body=None, events=None):
        """As a documented difference says; a header that is None is not there."""
        if events is not None:
            body = "".join(json.dumps(e) + "\n" for e in events)
        headers = {**self.headers, **(headers or {})}
        if body is not None and "transfer-encoding" in headers and headers["transfer-encoding"] is None:
            headers["content-length"] = ""
        if body is not None and "content-length" in headers:
            headers["content-length"] = str(len(body.encode()))
        return Expectation(status or self.status, {k: v for k, v in headers.items() if v is not None},
                           self.body if body is None else body)


def expected_view(case, expectation):
    view = ["status " + expectation.status]
    body = (expectation.body or "").encode("utf-8", "surrogateescape")
    view += header_view(case, expectation.headers.items(), body, [])
    if case.big and expectation.body is None:
        return view + big_view(case, case.recorded["body_head"], case.recorded["body_tail"],
                               case.recorded["body_length"], [])
    return view + body_view(case, expectation.headers, body, [])


def actual_view(case, expectation, answer, places):
    view = ["status " + answer.status]
    view += header_view(case, answer.headers, answer.body, places)
    if case.big and expectation.body is None:
        text = answer.body.decode("utf-8", "surrogateescape")
        view += big_view(case, text[:400], text[-400:], len(text), places)
        return view + ["wrong: " + w for w in masks.split_events(answer.body, case.python)[1]]
    return view + body_view(case, dict(answer.headers), answer.body, places)


def header_view(case, headers, body, places):
    view = []
    for name, value in headers:
        if name in VOLATILE_HEADERS:
            continue
        if name == "content-length" and value == str(len(body)):
            value = str(len(normal_body(case, body, places)))
        view.append("header %s: %s" % (name, masks.mask_text(value, places)))
    return sorted(view)


def body_view(case, headers, body, places):
    if headers.get("content-type") != STREAM_HEADERS["content-type"]:
        return ["body " + normal_body(case, body, places)]
    events, wrong = masks.split_events(body, case.python)
    events = masks.mask_events(events, places, case.counts, SCRAMBLED.get(case.name))
    return ["event " + json.dumps(e) for e in events] + ["wrong: " + w for w in wrong]


def normal_body(case, body, places):
    text = masks.mask_text(body.decode("utf-8", "surrogateescape"), places)
    if case.name == "http_contexts_list":
        return first_of_list(text)
    return text


def first_of_list(text):
    """How many contexts there are depends on what was done before: the first one, and the form of all others."""
    try:
        contexts = json.loads(text)
        same = all(list(c) == ["id", "language", "cwd"] and c["id"] == "ID"
                   and all(isinstance(v, str) for v in c.values()) for c in contexts)
    except (ValueError, TypeError, AttributeError):
        return text
    if not contexts or not same or json.dumps(contexts, separators=(",", ":")) != text:
        return text
    return json.dumps(contexts[:1], separators=(",", ":"))


def big_view(case, head, tail, length, places):
    """Head and tail as far as all agree on, and the length, give or take another split of a stream."""
    head, tail = masks.mask_raw(head, places), masks.mask_raw(tail, places)
    if '"type": "std' in head:
        length = "%d modulo one event" % (length % masks.STREAM_OVERHEAD)
    return ["begins " + head[:150], "ends " + tail[-150:], "length %s" % length]


def differences(expected, actual):
    """Lines that tell two views apart."""
    lines = []
    for kind in ("status", "header"):
        a, b = ({v for v in view if v.startswith(kind)} for view in (expected, actual))
        lines += ["expected %s" % v for v in sorted(a - b)] + ["     got %s" % v for v in sorted(b - a)]
    a, b = ([v for v in view if not v.startswith(("status ", "header "))] for view in (expected, actual))
    for i in range(max(len(a), len(b))):
        x, y = a[i] if i < len(a) else None, b[i] if i < len(b) else None
        if x != y:
            lines += ["expected %s" % x] if x is not None else []
            lines += ["     got %s" % y] if y is not None else []
    return lines
