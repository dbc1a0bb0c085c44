#!/usr/bin/python3
"""Clients that leave at any byte, in any way: nothing is left behind, and the next one runs."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from kexec_test import *

GZIP = "gzip on; gzip_types application/x-ndjson; gzip_min_length 1; "

SETTINGS = {
    "plain": "",
    "gzip": GZIP,
    "aio threads": "aio threads; sendfile on;",
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


def drops(rounds):
    for seed, (name, location) in enumerate(SETTINGS.items()):
        with ScriptedJupyter() as jupyter, \
                Nginx(jupyter, location=location, env={"DEFAULT_CONTEXTS": "python"}) as nginx:
            rng = random.Random(seed)
            worker, contexts = nginx.workers()[0], [nginx.create_context() for _ in range(3)]
            for context in contexts:
                nginx.run("print hello", context_id=context)
            before = descriptors(worker)
            still_there = []
            for _ in range(rounds):
                still_there.append(leave(nginx.port, contexts, rng))
                while len(still_there) > 6:
                    still_there.pop(0).close()
            for sock in still_there:
                sock.close()
            for context in contexts:
                start = time.monotonic()
                stream = nginx.run("print hello", context_id=context)
                is_(stream.text(), "hello\n", "%s: the context is usable" % name)
                within(time.monotonic() - start, 2, "%s: soon" % name)
            try:
                wait_until(lambda: descriptors(worker) <= before, 10)
            except TimeoutError:
                pass
            ok(descriptors(worker) <= before, "%s: no connection or file is left open" % name,
               "%d descriptors, %d before" % (descriptors(worker), before))
            is_(nginx.workers(), [worker], "%s: the same worker" % name)
            nginx.log.check()


VANISHING = """
import json, socket, sys, time
s = socket.socket()
if int(sys.argv[3]):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(sys.argv[3]))
s.connect(("10.231.7.1", int(sys.argv[1])))
body = json.dumps({"code": sys.argv[2]}).encode()
s.sendall(b"POST /execute HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: application/json\\r\\n"
          b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
print(s.recv(2000), flush=True)
while True:
    time.sleep(1) if int(sys.argv[3]) else s.recv(65536)
"""


def ip(command, check=True):
    return subprocess.run("ip " + command, shell=True, stderr=subprocess.DEVNULL).returncode


def vanished():
    """The cable is pulled: no FIN, no RST, no acknowledgement."""
    namespace = "kexec%d" % os.getpid()
    if ip("netns add " + namespace) or ip("link add kexec0 type veth peer name kexec1"):
        ip("netns del " + namespace)
        return skip("no network namespace can be made here", 8)
    inside = "netns exec %s ip " % namespace
    try:
        for command in ("link set kexec1 netns " + namespace, "addr add 10.231.7.1/24 dev kexec0", "link set kexec0 up",
                        inside + "addr add 10.231.7.2/24 dev kexec1", inside + "link set kexec1 up"):
            ip(command)
        port = free_port()
        http = """server { listen 10.231.7.1:%d; location / { kexec_pass http://jupyter; kexec_token secret;
            kexec_client_timeout 3s; kexec_keepalive 500ms; send_timeout 600s; } }""" % port
        with ScriptedJupyter() as jupyter, \
                Nginx(jupyter, env={"EXTRA_HTTP": http, "DEFAULT_CONTEXTS": "python"}) as nginx:
            for name, code, receive_buffer in (
                    ("code without output", "sleep 100", 0),
                    ("code that prints", "print x\nsleep 0.3\n" * 300, 0),
                    ("a reader that had stopped, all of it in the socket", "flood 300 1000\nsleep 100", 4096),
                    ("a reader that had stopped, a file behind it", "flood 20000 1000\nsleep 100", 4096)):
                nginx.log.mark()
                client = subprocess.Popen(["ip", "netns", "exec", namespace, sys.executable, "-c", VANISHING, str(port),
                                           code, str(receive_buffer)], stdout=subprocess.PIPE)
                client.stdout.readline()
                time.sleep(1)
                ip(inside + "link set kexec1 down")
                start = time.monotonic()
                try:
                    nginx.log.wait("client does not acknowledge", 15)
                except TimeoutError:
                    pass
                within(time.monotonic() - start, 8, "%s: noticed" % name)
                client.kill()
                client.wait()
                client.stdout.close()
                ip(inside + "link set kexec1 up")
                is_(nginx.run("print hello").text(), "hello\n", "%s: the next one runs" % name)
            nginx.log.check()
    finally:
        ip("link del kexec0")
        ip("netns del " + namespace)


if __name__ == "__main__":
    drops(int(sys.argv[1]) if sys.argv[1:] else 60)
    vanished()
    done_testing()
