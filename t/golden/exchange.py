"""One HTTP request on a connection of its own, as bytes, and its whole answer."""

import json
import socket


class Answer:
    def __init__(self, status, headers, body, interim):
        self.status = status        # "200 OK"
        self.headers = headers      # [(name, value)], names in lower case
        self.body = body            # bytes
        self.interim = interim      # status lines before the last one, such as "100 Continue"


def request_bytes(request, host):
    """The bytes of a recorded case's request."""
    if request.get("raw_request"):
        return request["raw_request"].encode("latin-1")
    headers = {"Host": host, **request["headers"]}
    body = request_body(request)
    if "raw_chunks" in request:
        chunks = [c.encode() for c in request["raw_chunks"]] + [b""]
        body = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks)
    elif body or request["method"] in ("POST", "PUT"):
        headers["Content-Length"] = len(body)
    lines = ["%s %s HTTP/1.1" % (request["method"], request["path"])]
    lines += ["%s: %s" % h for h in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def request_body(request):
    if "raw_body" in request:
        return bytes.fromhex(request["raw_body"])
    body = request["body"]
    if body is None:
        return b""
    return (body if isinstance(body, str) else json.dumps(body)).encode()


def exchange(address, data, head=False, timeout=60):
    with socket.create_connection(address, timeout) as sock:
        sock.sendall(data)
        with sock.makefile("rb") as file:
            return read_answer(file, head)


def read_answer(file, head):
    interim = []
    while True:
        status, headers = read_head(file)
        if not status.startswith("1"):
            break
        interim.append(status)
    values = dict(headers)
    if head or status[:3] in ("204", "304"):
        body = b""
    elif values.get("transfer-encoding", "").lower() == "chunked":
        body = read_chunks(file)
    elif "content-length" in values:
        body = read_exactly(file, int(values["content-length"]))
    else:
        body = file.read()
    return Answer(status, headers, body, interim)


def read_head(file):
    line = read_line(file)
    version, _, status = line.partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("no HTTP answer: %r" % line)
    headers = []
    while True:
        line = read_line(file)
        if not line:
            return status, headers
        name, _, value = line.partition(":")
        headers.append((name.lower(), value.strip()))


def read_chunks(file):
    body = b""
    while True:
        size = int(read_line(file).partition(";")[0], 16)
        body += read_exactly(file, size)
        if read_line(file):
            raise ValueError("a chunk is longer than it says")
        if size == 0:
            return body


def read_line(file):
    line = file.readline()
    if not line.endswith(b"\r\n"):
        raise ValueError("the answer breaks off at %r" % line)
    return line[:-2].decode("latin-1")


def read_exactly(file, size):
    data = file.read(size)
    if len(data) != size:
        raise ValueError("the answer's body breaks off after %d of %d bytes" % (len(data), size))
    return data
