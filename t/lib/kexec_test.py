"""Helpers for test scripts with several clients: TAP, processes, raw HTTP, NDJSON events.

    from kexec_test import *

    with ScriptedJupyter() as jupyter, Nginx(jupyter) as nginx:
        a = nginx.execute("sleep 30")
        jupyter.wait(ev="start")
        a.reset()
        b = nginx.execute("print hello")
        is_(b.finish()[-1]["type"], "end_of_execution", "the context is free again")
        nginx.log.check()
    done_testing()
"""

import errno
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from kernel_socket import KernelSocket, brief, is_status

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def slack():
    """What limits of time are multiplied by: how many processes want each CPU now, or did in the last minute.  SLACK in
    the environment: how much slower a slow build is."""
    with open("/proc/loadavg") as f:
        load, _, _, running, *_ = f.read().split()
    wanted = max(float(load), int(running.split("/")[0])) / os.cpu_count()
    return min(max(wanted, 1), 8) * float(os.environ.get("SLACK") or 1.5)

# The nginx and module to test; NGINX means inherited sockets to nginx itself
NGINX = (os.environ.get("NGINX") or shutil.which("nginx") or "/usr/sbin/nginx").split()
NGINX_ENV = {k: v for k, v in os.environ.items() if k != "NGINX"}
MODULE = os.path.join(ROOT, os.environ.get("MODULE", "build/ngx_http_kexec_module.so"))

# An nginx under ASan or valgrind: its memory is not what the module uses
INSTRUMENTED = bool(os.environ.get("INSTRUMENTED"))


# TAP

_tests = {"run": 0, "failed": 0}


def ok(value, name, detail=None):
    _tests["run"] += 1
    if not value:
        _tests["failed"] += 1
    print("%sok %d - %s" % ("" if value else "not ", _tests["run"], name), flush=True)
    if not value:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        diag("at %s line %d" % (os.path.basename(frame.f_code.co_filename), frame.f_lineno))
        if detail is not None:
            diag(detail)
    return bool(value)


def is_(got, expected, name):
    return ok(got == expected, name, "     got: %r\nexpected: %r" % (got, expected))


def isnt(got, unexpected, name):
    return ok(got != unexpected, name, "got: %r" % (got,))


def like(got, pattern, name):
    text = got.decode("latin-1") if isinstance(got, bytes) else str(got)
    return ok(re.search(pattern, text, re.S), name, "     got: %r\npattern: %s" % (got, pattern))


def within(seconds, limit, name):
    """A duration in seconds: ok when below the limit, on an idle machine."""
    limit *= slack()
    return ok(seconds < limit, name, "took %.3f s, limit %.3f s" % (seconds, limit))


def memory_within(used, limit, name):
    """Bytes that nginx's memory has grown by."""
    if INSTRUMENTED:
        return skip("%s: not measured in an instrumented nginx" % name)
    return ok(used < limit, name, "%.1f MB, limit %.1f MB" % (used / 1e6, limit / 1e6))


def diag(text):
    for line in str(text).split("\n"):
        print("# " + line, flush=True)


def skip(reason, count=1):
    for _ in range(count):
        _tests["run"] += 1
        print("ok %d # skip %s" % (_tests["run"], reason), flush=True)


def skip_all(reason):
    print("1..0 # skip " + reason, flush=True)
    sys.exit(0)


def bail_out(reason):
    print("Bail out! " + reason, flush=True)
    sys.exit(255)


def done_testing():
    """Prints the plan and ends the script."""
    print("1..%d" % _tests["run"], flush=True)
    if _tests["failed"]:
        diag("%d of %d tests failed" % (_tests["failed"], _tests["run"]))
    sys.exit(1 if _tests["failed"] or not _tests["run"] else 0)


# Waiting

_kept = []


def free_port(keep=True):
    """One below those that the system gives to clients: nobody takes it by chance before it is used.  keep: nor does
    another process that asks here, as long as this one lives."""
    while True:
        port = random.randrange(10000, 32000)
        mark, probe = socket.socket(socket.AF_UNIX), socket.socket()
        try:
            mark.bind("\0kexec-test-port-%d" % port)
            probe.bind(("127.0.0.1", port))
        except OSError as e:
            mark.close()
            if e.errno != errno.EADDRINUSE:
                raise
            continue
        finally:
            probe.close()
        if keep:
            _kept.append(mark)
        else:
            mark.close()
        return port


def wait_until(test, timeout=10, what=None, step=0.02):
    """For what no event tells: asks again and again.  Returns the value, or fails loudly."""
    timeout *= slack()
    end = time.monotonic() + timeout
    while True:
        value = test()
        if value:
            return value
        if time.monotonic() >= end:
            raise TimeoutError("waited %.1f s for %s" % (timeout, what or test))
        time.sleep(step)


def port_answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def is_alive(pid):
    """A zombie is not alive."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# HTTP

class Answer:
    def __init__(self, status_line, headers, body):
        self.status_line = status_line
        self.status = int(status_line.split(" ")[1])
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return "<%s %r>" % (self.status_line, self.body[:200])


class Stream:
    """One HTTP request on a connection of its own; the answer is read as it comes.

    .sent_at, .head_at, .events [(time, event)], .lines [(time, bytes)], .ended: None while the
    answer goes on, then "complete", "eof" (broken off), "reset" or "malformed"."""

    def __init__(self, port, method="GET", path="/", body=None, headers=None, timeout=30, send=True,
                 receive_buffer=None, local_port=None, host="127.0.0.1"):
        self.timeout = timeout
        self.status_line = self.status = None
        self.headers = {}
        self.body = bytearray()
        self.lines, self.events = [], []
        self.head_at = self.ended = None
        self.raw = b""
        self.position = 0
        self._left = None           # of the body, or of the chunk
        self._chunked = False
        self._line = bytearray()
        self.sock = socket.socket()
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(timeout)
        if local_port:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.sock.bind(("127.0.0.1", local_port))
        self.sock.connect((host, port))
        self.request = build_request(port, method, path, body, headers)
        if send:
            self.sock.sendall(self.request)
        self.sent_at = time.monotonic()

    # Reading

    def pump(self, timeout):
        """Reads once; False when nothing came or the answer is over."""
        if self.ended or not select.select([self.sock], [], [], max(timeout, 0))[0]:
            return False
        try:
            data = self.sock.recv(1 << 18)
        except OSError as e:
            self.ended = "reset" if e.errno == errno.ECONNRESET else "eof"
            return False
        if not data:
            self._end_of_file()
            return False
        self.raw += data
        try:
            self._parse()
        except (ValueError, IndexError):
            self.ended = "malformed"
        return True

    def _end_of_file(self):
        complete = self.status is not None and not self._chunked and self._left is None
        self.ended = "complete" if complete else "eof"

    def _parse(self):
        if self.status is None:
            head, found, rest = self.raw.partition(b"\r\n\r\n")
            if not found:
                return
            self.raw = rest
            self.head_at = time.monotonic()
            self.status_line, *lines = head.decode("latin-1").split("\r\n")
            self.status_line = self.status_line.partition(" ")[2]
            self.status = int(self.status_line.split(" ")[0])
            for line in lines:
                name, _, value = line.partition(":")
                self.headers[name.lower()] = value.strip()
            self._chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
            if not self._chunked and "content-length" in self.headers:
                self._left = int(self.headers["content-length"])
            if self.status == 204 or self._left == 0:
                self.ended = "complete"
        if self._chunked:
            self._parse_chunks()
        elif self.raw:
            self._take(self.raw)
            if self._left is not None:
                self._left -= len(self.raw)
                if self._left <= 0:
                    self.ended = "complete"
            self.raw = b""

    def _parse_chunks(self):
        at, raw = 0, self.raw
        while True:
            if self._left is None:
                end = raw.find(b"\r\n", at)
                if end < 0:
                    break
                self._left = int(raw[at:end].split(b";")[0], 16)
                at = end + 2
                if self._left == 0:
                    self.ended = "complete"
                    break
            if len(raw) - at < self._left + 2:
                break
            self._take(raw[at:at + self._left])
            at += self._left + 2
            self._left = None
        self.raw = raw[at:]

    def _take(self, data):
        self.body += data
        if b"\n" not in data:
            self._line += data          # in place: a line may have many megabytes
            return
        now = time.monotonic()
        self._line += data
        *lines, rest = self._line.split(b"\n")
        self._line = rest
        for line in map(bytes, lines):
            self.lines.append((now, line))
            try:
                self.events.append((now, json.loads(line)))
            except ValueError:
                self.events.append((now, {"type": "not json", "line": line}))

    def wait_head(self, timeout=None):
        end = time.monotonic() + (timeout or self.timeout)
        while self.status is None and not self.ended and time.monotonic() < end:
            self.pump(end - time.monotonic())
        return self.status

    def next(self, timeout=None, keepalives=False):
        """The next event, or None at the end or when none came in time."""
        end = time.monotonic() + (timeout if timeout is not None else self.timeout)
        while True:
            while self.position < len(self.events):
                event = self.events[self.position][1]
                self.position += 1
                if keepalives or event.get("type") != "keepalive":
                    return event
            if self.ended or time.monotonic() >= end:
                return None
            self.pump(end - time.monotonic())

    def wait_for(self, event_type, timeout=None, **fields):
        """Skips to the next event of that type (and with those values)."""
        end = time.monotonic() + (timeout or self.timeout)
        while True:
            event = self.next(max(end - time.monotonic(), 0), keepalives=True)
            if event is None:
                return None
            if event.get("type") == event_type and all(event.get(k) == v for k, v in fields.items()):
                return event

    def finish(self, timeout=None):
        """Reads to the end of the answer; returns the events without keepalives."""
        end = time.monotonic() + (timeout or self.timeout)
        while not self.ended and time.monotonic() < end:
            self.pump(end - time.monotonic())
        self.finished_at = time.monotonic()
        if self.ended == "complete":
            self.sock.close()
        return self.all()

    def all(self):
        return [e for _, e in self.events if e.get("type") != "keepalive"]

    def types(self):
        return [e.get("type") for e in self.all()]

    def text(self, kind="stdout"):
        return "".join(e.get("text", "") for e in self.all() if e.get("type") == kind)

    def error(self):
        """Name of the (first) error event, or None."""
        return next((e.get("name") for e in self.all() if e.get("type") == "error"), None)

    def at(self, event_type):
        """When the first event of that type came."""
        return next((t for t, e in self.events if e.get("type") == event_type), None)

    def answer(self, timeout=None):
        self.finish(timeout)
        return Answer("HTTP/1.1 " + (self.status_line or "0 none"), self.headers, bytes(self.body))

    # Leaving

    def close(self):
        self.sock.close()
        self.ended = self.ended or "left"
        return time.monotonic()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return self.close()

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)
        return time.monotonic()


def build_request(port, method, path, body, headers):
    headers = dict(headers or {})
    if body is not None and not isinstance(body, (bytes, str)):
        body = json.dumps(body)
        headers.setdefault("Content-Type", "application/json")
    body = body.encode() if isinstance(body, str) else body
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: 127.0.0.1:%d" % port]
    if body is not None:
        headers.setdefault("Content-Length", len(body))
    headers.setdefault("Connection", "close")
    lines += ["%s: %s" % h for h in headers.items() if h[1] is not None]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")


def request(port, method, path, body=None, headers=None, timeout=30):
    return Stream(port, method, path, body, headers, timeout).answer()


# Processes

class ScriptedJupyter:
    def __init__(self, port=None, token="secret", **options):
        self.port = port or free_port()
        self.control_port = free_port()
        self.token = token
        self.process = None
        self.start(**options)

    def start(self, **options):
        self.process = subprocess.Popen(
            ["/usr/bin/python3", os.path.join(HERE, "scripted_jupyter.py"), "--port", str(self.port),
             "--control-port", str(self.control_port), "--token", self.token,
             "--options", json.dumps(options), "--with-parent"], stdout=subprocess.PIPE)
        if self.process.stdout.readline().strip() != b"ready":
            raise RuntimeError("the scripted Jupyter does not start")

    def stop(self, number=signal.SIGTERM):
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(10)
            self.process.stdout.close()
            self.process = None

    def pause(self):
        """Hangs as a whole: connections open, nothing answers."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # REST, as anybody with the token

    def rest(self, method, path, body=None, timeout=30):
        headers = {"Authorization": "token " + self.token} if self.token else {}
        return request(self.port, method, path, body, headers, timeout)

    def create_session(self, kernel="python3", path=None, name="test"):
        path = path or "test-%d" % time.monotonic_ns()
        return self.rest("POST", "/api/sessions", {"path": path, "type": "console", "name": name,
                                                   "kernel": {"name": kernel}}).json()

    def connect(self, kernel_id, **more):
        return KernelSocket(self.port, kernel_id, token=self.token, **more)

    # Control

    def control(self, path, body=None, timeout=30):
        answer = request(self.control_port, "GET" if body is None else "POST", "/_control/" + path, body,
                         timeout=timeout)
        if answer.status != 200:
            raise RuntimeError("%s: %s" % (path, answer.body.decode()))
        return answer.json()

    def set(self, **faults):
        return self.control("set", faults)

    def reset(self, kernels=False):
        self.control("reset", {"kernels": kernels})

    def log(self, since=0, **match):
        """The log's records; with values to match, `name~` for a substring."""
        records = self.control("log?since=%d" % since)
        return [r for r in records if all(matches(r, k, v) for k, v in match.items())]

    def mark(self):
        """For `since`: where the log is now."""
        return self.control("state")["log"]

    def wait(self, count=1, since=0, timeout=10, **match):
        """Waits until the log has `count` such records; returns the last of them."""
        timeout *= slack()
        answer = self.control("wait", {"match": match, "count": count, "since": since, "timeout": timeout},
                              timeout + 10)
        if not answer["found"]:
            raise TimeoutError("waited %.1f s for %s in the scripted Jupyter's log" % (timeout, match))
        return answer["records"][count - 1]

    def state(self):
        return self.control("state")

    def kernel(self, which, action, **args):
        """die, dead, delete, restart, interrupt, foreign, cut, close, set, message, fragment."""
        return self.control("kernel/%s/%s" % (which, action), args)

    def cut_all(self):
        return self.control("cut_all", {})

    def down(self, **args):
        """Connections are refused; seconds=N: until then."""
        return self.control("down", args)

    def up(self):
        return self.control("up", {})

    def executes(self, silent=False, since=0):
        """The codes of the execute requests that came, in order."""
        return [r["code"] for r in self.log(since, ev="execute", silent=silent)]


def matches(record, key, value):
    if key.endswith("~"):
        return value in str(record.get(key[:-1]))
    return record.get(key) == value


class Nginx:
    """nginx with the module, by tools/server.sh.  jupyter: a ScriptedJupyter, or None for a real one
    that server.sh starts itself."""

    def __init__(self, jupyter=None, workers=1, master=True, location="", env=None, start=True):
        self.port = free_port()
        self.jupyter = jupyter
        self.run_dir = tempfile.mkdtemp(prefix="kexec-test-")
        os.chmod(self.run_dir, 0o755)
        self.env = {"PORT": self.port, "WORKERS": workers, "RUN_DIR": self.run_dir,
                    "EXTRA_LOCATION": location, "MASTER": "on" if master else "off"}
        if jupyter is not None:
            self.env.update(JUPYTER_PORT=jupyter.port, NO_JUPYTER=1)
            with open(os.path.join(self.run_dir, "token"), "w") as f:
                f.write(jupyter.token)
        else:
            self.env.update(JUPYTER_PORT=free_port())
        self.env.update(env or {})
        self.log = ErrorLog(self.run_dir)
        self.started = False
        if start:
            self.start()

    def _script(self, command):
        env = {**os.environ, **{k: str(v) for k, v in self.env.items()}}
        result = subprocess.run([os.path.join(ROOT, "tools", "server.sh"), command], env=env,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        if result.returncode:
            raise RuntimeError("server.sh %s: %s" % (command, result.stdout.decode("utf-8", "replace")))
        return result.stdout.decode("utf-8", "replace")

    def start(self):
        self._script("start")
        self.started = True
        wait_until(lambda: port_answers(self.port), 30, "nginx")

    def stop(self):
        if self.started:
            self._script("stop")
            self.started = False

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        self.stop()
        if error or _tests["failed"]:
            diag("logs are in " + self.run_dir)
        else:
            shutil.rmtree(self.run_dir, ignore_errors=True)

    # Processes

    @property
    def pid(self):
        for name in ("nginx.pid", "logs/nginx.pid"):
            try:
                with open(os.path.join(self.run_dir, name)) as f:
                    return int(f.read())
            except (OSError, ValueError):
                pass
        raise RuntimeError("no nginx.pid in the run directory")

    def workers(self):
        """Pids of the workers of this master, draining ones included."""
        with open("/proc/%d/task/%d/children" % (self.pid, self.pid)) as f:
            return [int(pid) for pid in f.read().split()]

    def signal(self, number, pid=None):
        os.kill(pid or self.pid, number)

    def kill(self):
        """SIGKILL for all of nginx."""
        master, workers = self.pid, self.workers()
        for pid in [master] + [w for w in workers if w != master]:
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not is_alive(pid), 5, "the end of a process of nginx")

    def start_nginx(self):
        """nginx alone, with the configuration that is there; does not wait for anything."""
        subprocess.run([*NGINX, "-p", self.run_dir + "/", "-c", os.path.join(self.run_dir, "nginx.conf")],
                       env=NGINX_ENV, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=30)

    def reload(self, timeout=10):
        """SIGHUP; returns once a new generation of workers runs."""
        old = set(self.workers())
        self.signal(signal.SIGHUP)
        wait_until(lambda: set(self.workers()) - old, timeout, "new workers")

    # Requests

    def request(self, method, path, body=None, headers=None, timeout=30):
        return request(self.port, method, path, body, headers, timeout)

    def stream(self, method, path, body=None, **more):
        return Stream(self.port, method, path, body, **more)

    def execute(self, code, context_id=None, headers=None, stream_timeout=30, **fields):
        """Sends POST /execute; returns the Stream, nothing is read yet."""
        body = {"code": code, **fields}
        if context_id is not None:
            body["context_id"] = context_id
        return Stream(self.port, "POST", "/execute", body, headers, stream_timeout)

    def run(self, code, **more):
        """An execution to its end."""
        stream = self.execute(code, **more)
        stream.finish()
        return stream

    def create_context(self, **fields):
        answer = self.request("POST", "/contexts", fields)
        if answer.status != 200:
            raise RuntimeError("POST /contexts: %r" % answer)
        return answer.json()["id"]

    def wait_healthy(self, timeout=60):
        wait_until(lambda: self.request("GET", "/health").status == 200, timeout, "/health", 0.1)


class ErrorLog:
    """nginx's error.log: nothing in it may be worse than [error]."""

    bad = re.compile(r"\[(alert|emerg|crit)\]|Sanitizer|==ERROR")

    def __init__(self, run_dir):
        self.run_dir = run_dir
        self.position = 0

    @property
    def path(self):
        for name in ("error.log", "logs/error.log", "nginx-error.log"):
            path = os.path.join(self.run_dir, name)
            if os.path.exists(path):
                return path
        return None

    def lines(self, pattern=None):
        """What was logged since the last mark."""
        if self.path is None:
            return []
        with open(self.path, errors="replace") as f:
            f.seek(self.position)
            lines = f.read().split("\n")
        return [line for line in lines if line and (pattern is None or re.search(pattern, line))]

    def mark(self):
        self.position = os.path.getsize(self.path) if self.path else 0

    def wait(self, pattern, timeout=10):
        return wait_until(lambda: self.lines(pattern), timeout, "%r in error.log" % pattern)[0]

    def check(self, allow=None, name="nothing bad in error.log"):
        if self.path is None:
            return ok(False, name, "no error.log")
        lines = [line for line in self.lines() if self.bad.search(line) and not (allow and re.search(allow, line))]
        return ok(not lines, name, "\n".join(lines[:20]))
