#!/usr/bin/python3
"""Clients that leave at any byte, in any way: nothing is left behind, and the next one runs."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

GZIP = "gzip on; gzip_types application/x-ndjson; gzip_min_length 1; "

SETTINGS = {
    "plain": "",
    "gzip": GZIP,
    "aio_threads": "aio threads; sendfile on;",
    "lingering": "lingering_close always; lingering_timeout 1s; reset_timedout_connection on; send_timeout 1s;",
    "keepalives": "kexec_buffer_size 32k; kexec_keepalive 20ms;",
}

CODES = ["print a", "flood 2000 1000", "flood 20000 1000", "sleep 3", "print a\nsleep 3", "error A b",
         "flood 300 1000\nsleep 0.1\nflood 300 1000", "flood 5000 200\nsleep 1"]

STOPS = [0, 1, 10, 100, 150, 200, 300, 1000, 10000, 100000, 1000000, 3000000]


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def leave(port, contexts, rng):
    """Sends a request, or a part of it or two, in pieces; reads a part of the answer; goes away somehow."""
    body = {"code": rng.choice(CODES), "context_id": rng.choice(contexts)}
    if rng.random() < 0.2:
        body["env_vars"] = {"A": "b"}
    if rng.random() < 0.2:
        body["timeout"] = rng.choice([0.05, 0.5])
    request = build_request(port, "POST", "/execute", body, {"Accept-Encoding": "gzip",
                                                             "Connection": rng.choice(["close", "keep-alive"])})
    if rng.random() < 0.25:
        request = request.replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    kind = rng.random()
    if kind < 0.15:
        request = request[:rng.randrange(len(request))]
    elif kind < 0.25:
        request += request
    sock = socket.socket()
    if rng.random() < 0.5:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", port))
    sock.settimeout(rng.choice([0.01, 0.1, 0.3]))
    got, stop = 0, rng.choice(STOPS)
    try:
        if rng.random() < 0.3 and len(request) > 1:
            cut = rng.randrange(1, len(request))
            sock.sendall(request[:cut])
            time.sleep(0.002)
            sock.sendall(request[cut:])
        else:
            sock.sendall(request)
        while got < stop:
            data = sock.recv(min(stop - got, rng.choice([1, 1000, 65536])))
            if not data:
                break
            got += len(data)
    except OSError:
        pass
    how = rng.random()
    if how < 0.4:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    elif how < 0.7:
        sock.close()
    elif how < 0.85:
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
    return sock


def make_drops(seed, name, location):
    def drops(server, rounds):
        rng = random.Random(seed)
        worker, contexts = server.workers()[0], [server.create_context() for _ in range(3)]
        for context in contexts:
            server.run("print hello", context_id=context)
        before = descriptors(worker)
        still_there = []
        for _ in range(rounds):
            still_there.append(leave(server.port, contexts, rng))
            while len(still_there) > 6:
                still_there.pop(0).close()
        for sock in still_there:
            sock.close()
        for context in contexts:
            start = time.monotonic()
            stream = server.run("print hello", context_id=context)
            is_(stream.text(), "hello\n", "the context is usable")
            within(time.monotonic() - start, 2, "soon")
        try:
            wait_until(lambda: descriptors(worker) <= before, 10)
        except TimeoutError:
            pass
        ok(descriptors(worker) <= before, "no connection or file is left open",
           "%d descriptors, %d before" % (descriptors(worker), before))
        is_(server.workers(), [worker], "the same worker")
    drops.__name__ = name
    scenario(rounds=60, many=1000, location=location)(drops)


for _seed, (_name, _location) in enumerate(SETTINGS.items()):
    make_drops(_seed, _name, _location)

main(Scripted, workers=(1,), jobs=4)
