#!/usr/bin/python3
"""Clients that read slowly, stop reading, or find the disk full: what they get is whole, and nobody else waits."""

import os
import random
import ssl
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

try:
    from h2_client import H2Connection
except ImportError:
    H2Connection = None

LINES, SIZE = 10000, 1000
EXPECTED = "".join("%d " % i + "x" * (SIZE - len("%d " % i) - 1) + "\n" for i in range(LINES))

GZIP = "gzip on; gzip_types application/x-ndjson; gzip_min_length 1; "

SETTINGS = {
    "plain": "",
    "sendfile": "sendfile on; tcp_nopush on;",
    "small_parts": "sendfile on; sendfile_max_chunk 32k; kexec_buffer_size 32k; postpone_output 0;",
    "small_buffers": "sendfile off; output_buffers 1 4k; kexec_buffer_size 32k;",
    "aio_threads": "sendfile on; aio threads;",
    "aio_threads_no_sendfile": "sendfile off; aio threads;",
    "gzip": GZIP,
    "gzip_aio_threads": GZIP + "gzip_buffers 4 4k; aio threads;",
    "sub_filter": "sub_filter_types *; sub_filter xyzzy plugh;",
}


class Reader:
    """A request whose answer is kept as it comes."""

    def __init__(self, port, code, receive_buffer=65536, tls=False, headers=None, **fields):
        headers = {"Content-Type": "application/json", **(headers or {})}
        self.data = bytearray()
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.connect(("127.0.0.1", port))
        self.sock.settimeout(30 * slack())
        if tls:
            self.sock = ssl._create_unverified_context().wrap_socket(self.sock)
        self.sock.sendall(build_request(port, "POST", "/execute", json.dumps({"code": code, **fields}), headers))

    def read(self, size=65536):
        try:
            data = self.sock.recv(size)
        except OSError:
            return b""
        self.data += data
        return data

    def drain(self, rate=None, seed=1):
        """To the end, with reads of all sizes, at most rate bytes a second."""
        sizes, start, begin = random.Random(seed), time.monotonic(), len(self.data)
        while self.read(sizes.choice([1, 100, 5000, 65536])):
            if rate:
                ahead = (len(self.data) - begin) / rate - (time.monotonic() - start)
                if ahead > 0:
                    time.sleep(ahead)
        self.sock.close()

    def body(self):
        """The decoded body, or None when it is not complete."""
        head, _, rest = bytes(self.data).partition(b"\r\n\r\n")
        body, at = bytearray(), 0
        while True:
            end = rest.find(b"\r\n", at)
            if end < 0:
                return None
            size = int(rest[at:end], 16)
            if size == 0:
                break
            body += rest[end + 2:end + 2 + size]
            at = end + 2 + size + 2
        if rest[end + 2:] != b"\r\n":
            return None
        return zlib.decompress(bytes(body), 31) if b"Content-Encoding: gzip" in head else bytes(body)

    def events(self):
        """None when the answer is broken off or has a line that is not JSON."""
        body = self.body()
        try:
            return None if body is None else [json.loads(line) for line in body.split(b"\n") if line]
        except ValueError:
            return None


def stdout(events):
    return "".join(e["text"] for e in events or [] if e["type"] == "stdout")


def types(events):
    return [e["type"] for e in events or [] if e["type"] != "keepalive"]


def whole(reader, name, expected=EXPECTED):
    events = reader.events()
    text = stdout(events)
    return ok(text == expected and types(events)[-1:] == ["end_of_execution"] and "output_dropped" not in types(events),
              name, "%d of %d characters, %r, %d bytes" % (len(text), len(expected), types(events)[-3:],
                                                           len(reader.data)))


def temporary_file(pid):
    """Size of the largest file that a process has open and that has no name any more."""
    size = 0
    for fd in os.listdir("/proc/%d/fd" % pid):
        path = "/proc/%d/fd/%s" % (pid, fd)
        try:
            if os.readlink(path).endswith("(deleted)") and "zero" not in os.readlink(path):
                size = max(size, os.stat(path).st_size)
        except OSError:
            pass
    return size


def memory(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def settled(pid):
    """The temporary file has all of the output."""
    before = -1
    while True:
        size = temporary_file(pid)
        if size and size == before:
            return size
        before = size
        time.sleep(0.5)


def make_slow(name, location):
    def slow(server, rounds):
        """Byte for byte, whatever stands between the module and the socket."""
        worker = server.workers()[0]
        memory_before = memory(worker)
        for i in range(rounds):
            reader = Reader(server.port, "flood %d %d" % (LINES, SIZE), headers={"Accept-Encoding": "gzip"})
            reader.read(4096)
            if "gzip" not in name:
                ok(settled(worker) > 1000000, "output goes to a temporary file")
            next_one = server.run("print next")
            is_(next_one.text(), "next\n", "the context is free meanwhile")
            memory_within((memory(worker) - memory_before) * 1024, 2500 << 10, "memory is bounded")
            reader.drain(rate=20000000)
            whole(reader, "all of it, in order")
            wait_until(lambda: temporary_file(worker) == 0, 5, "the temporary file's end")
    slow.__name__ = "slow_" + name
    scenario(rounds=1, many=20, location=location)(slow)


class Tls(Scripted):
    def __init__(self, workers=1):
        self.directory = tempfile.mkdtemp(prefix="kexec-client-")
        os.chmod(self.directory, 0o755)
        key, certificate = os.path.join(self.directory, "key.pem"), os.path.join(self.directory, "certificate.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                        "-subj", "/CN=x"], check=True, stderr=subprocess.DEVNULL)
        self.tls_port = free_port()
        super().__init__(workers, http="""
            server {
                listen 127.0.0.1:%d ssl;
                ssl_certificate %s;
                ssl_certificate_key %s;
                ssl_buffer_size 4k;
                location / { kexec_pass http://jupyter; kexec_token secret; }
            }""" % (self.tls_port, certificate, key))

    def __exit__(self, *error):
        super().__exit__(*error)
        shutil.rmtree(self.directory, ignore_errors=True)


@scenario(server=Tls)
def tls(server, rounds):
    """The same through TLS."""
    reader = Reader(server.tls_port, "flood %d %d" % (LINES, SIZE), receive_buffer=8192, tls=True)
    reader.read(4096)
    settled(server.workers()[0])
    reader.drain(rate=20000000)
    whole(reader, "all of it, in order")


@scenario(location="kexec_client_timeout 2s; kexec_keepalive 500ms;", default_contexts="python javascript")
def does_not_read(server, rounds):
    """A closed window is not silence, as long as the client's system answers; send_timeout is another matter."""
    buffered = Reader(server.port, "flood 300 1000\nsleep 14\nprint end", receive_buffer=4096)
    behind = Reader(server.port, "flood %d %d" % (LINES, SIZE), receive_buffer=4096, language="javascript")
    buffered.read(4096)
    behind.read(4096)
    time.sleep(13)
    buffered.drain()
    behind.drain()
    ok(stdout(buffered.events()).endswith("end\n"), "not reading for 13 s, all of it in the socket",
       "%d bytes" % len(buffered.data))
    whole(behind, "not reading for 13 s, most of it in a file")


@scenario(location="kexec_client_timeout 2s; kexec_keepalive 500ms;")
def reads_little(server, rounds):
    """It reads all the time, but its window never opens by a whole segment."""
    reader = Reader(server.port, "flood %d %d" % (LINES, SIZE), receive_buffer=4096)
    end = time.monotonic() + 10
    while time.monotonic() < end and reader.read(1000):
        time.sleep(0.2)
    ok(time.monotonic() >= end, "1000 bytes each 0.2 s, for 10 s", "%d bytes" % len(reader.data))
    reader.sock.close()


RATE = 100000
RATE_PORT = free_port()
RATES = "limit_rate %d; send_timeout 1s; kexec_keepalive 500ms; kexec_buffer_size 32k;" % RATE
RATED = "server { listen 127.0.0.1:%d http2; location / { %s kexec_pass http://jupyter; kexec_token secret; } }" % (
    RATE_PORT, RATES)


@scenario(location=RATES, http=RATED)
def limit_rate(server, rounds):
    """nginx's limit holds; it is not the client's own slowness, and the context does not wait for it."""
    rate, lines = RATE, 300
    flood, expected = "flood %d %d" % (lines, SIZE), EXPECTED[:lines * SIZE]
    for code, text in ((flood, expected), (flood + "\nsleep 1\nprint a\nprint b", expected + "a\nb\n")):
        start = time.monotonic()
        reader = Reader(server.port, code)
        reader.read(4096)
        server.run("print next")
        free = time.monotonic() - start
        reader.drain()
        took = time.monotonic() - start
        # nginx counts whole seconds, and the one that begins
        ok(took > len(reader.data) / rate - 2, "not above limit_rate", "%d bytes in %.1f s" % (len(reader.data), took))
        ok(took < 3 * len(reader.data) / rate + 5, "nor far below", "%.1f s" % took)
        ok(free < took - 0.5, "the context is free meanwhile", "after %.1f of %.1f s" % (free, took))
        whole(reader, "all of it", text)
    if H2Connection is None:
        skip("no python3-h2", 2)
    else:
        connection = H2Connection(RATE_PORT)
        stream = connection.execute(flood)
        stream.finish()
        took = stream.finished_at - stream.sent_at
        ok(took > len(stream.body) / rate - 2, "HTTP/2: not above limit_rate", "%.1f s" % took)
        is_(stream.text(), expected, "HTTP/2: all of it")
        connection.close()
    stream = server.execute("print a\nsleep 0.3\nprint b")
    is_((stream.finish()[-1]["type"], stream.text()), ("end_of_execution", "a\nb\n"), "what is below it comes as it is")


@scenario(location="send_timeout 1s;")
def send_timeout(server, rounds):
    reader = Reader(server.port, "flood %d %d" % (LINES, SIZE), receive_buffer=4096)
    start = time.monotonic()
    server.log.wait("client timed out", 8)
    within(time.monotonic() - start, 5, "one that takes nothing at all is ended by send_timeout")
    reader.sock.close()


@scenario(location="kexec_max_temp_file_size 0;")
def no_file(server, rounds):
    stream = server.run("print hello\nerror ValueError x")
    is_(stream.types(), ["number_of_executions", "stdout", "error", "end_of_execution"],
        "without a temporary file all comes in memory")
    reader = Reader(server.port, "flood 6000 1000\nerror ValueError x", receive_buffer=4096)
    reader.read(4096)
    server.run("print next")         # nginx has all of the first one's output
    reader.drain()
    is_(types(reader.events())[-3:], ["error", "output_dropped", "end_of_execution"],
        "what does not fit is dropped and said so, an error never is")
    is_(temporary_file(server.workers()[0]), 0, "there is no file")


def take_all(reader, name):
    """As fast as Python can, nothing is kept."""
    size, part, end = len(reader.data), bytearray(4 << 20), b""
    while True:
        n = reader.sock.recv_into(part)
        if n == 0:
            break
        size += n
        end = (end + part[max(0, n - 100):n])[-100:]
    ok(size > 100000000 and end.endswith(b'{"type": "end_of_execution"}\n\r\n0\r\n\r\n'), name,
       "%d bytes, %r" % (size, end))


@scenario(location="sendfile on;", env={"LOG_LEVEL": "debug"})
def fast_at_last(server, rounds):
    """A client that takes a large file at once does not keep the worker from others."""
    reader = Reader(server.port, "flood 100000 1000", receive_buffer=4 << 20)
    reader.read(4096)
    settled(server.workers()[0])
    server.log.mark()
    take_all(reader, "it takes all of it")
    turns, sent = [0], 0
    for line in server.log.lines(r"worker cycle| sendfile: \d+ of"):
        if "worker cycle" in line:
            turns.append(0)
        else:
            turns[-1] += int(re.search(r"sendfile: (\d+) of", line).group(1))
    ok(0 < max(turns) < 9 << 20, "others have their turn in between", "%d bytes in one" % max(turns))


@scenario(rounds=3, many=50, location="sendfile on;", env={"LOG_LEVEL": "debug"})
def fast_in_the_end(server, rounds):
    """The same from a worker that leaves: it waits for the last byte."""
    for i in range(rounds):
        reader = Reader(server.port, "flood 100000 1000", receive_buffer=4 << 20)
        reader.read(4096)
        worker = server.workers()[0]
        settled(worker)
        server.log.mark()
        server.reload()
        server.log.wait("%d#%d: gracefully shutting down" % (worker, worker))
        take_all(reader, "all of it, though nginx was reloaded")
        wait_until(lambda: not is_alive(worker), 10, "the old worker's end")


@scenario(location="sendfile on; tcp_nopush on;")
def keeps_up_again(server, rounds):
    """What comes after a temporary file is sent as it comes, also where nginx likes full packets."""
    trickle = "\n".join("sleep 0.05\nprint line %d" % i for i in range(40))
    reader = Reader(server.port, "flood %d %d\nsleep 3\n%s" % (LINES, SIZE, trickle))
    reader.read(4096)
    settled(server.workers()[0])
    at = []
    while True:
        data = reader.read()
        if not data:
            break
        at += [time.monotonic()] * data.count(b'"line ')
    is_(len(at), 40, "all lines")
    apart = sum(1 for a, b in zip(at, at[1:]) if b - a > 0.02)
    ok(apart > 30, "each on its own", "%d of 39 are apart" % apart)


def fill(path):
    """Takes all the space that is left."""
    with open(path, "wb", 0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass


class Disk(Scripted):
    """kexec_temp_path is a small disk."""

    def __init__(self, workers, size):
        self.disk = tempfile.mkdtemp(prefix="kexec-disk-")
        os.chmod(self.disk, 0o755)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%s,mode=777" % size, "tmpfs", self.disk]).returncode:
            os.rmdir(self.disk)
            raise Skip("no tmpfs can be mounted here")
        try:
            super().__init__(workers, "kexec_temp_path %s;" % self.disk)
        except BaseException:
            self.unmount()
            raise
        self.allowed = r"\[crit\].*No space left on device"

    def __exit__(self, *error):
        try:
            super().__exit__(*error)
        finally:
            self.unmount()

    def unmount(self):
        wait_until(lambda: subprocess.run(["umount", self.disk], stderr=subprocess.DEVNULL).returncode == 0, 10)
        os.rmdir(self.disk)


# when it becomes full: its size, the code, what the client reads before

TRICKLE = "\n".join("print line %d %s\nsleep 0.01" % (i, "y" * 60) for i in range(100))
FULL = {
    "at_once": ("4m", "flood 20000 1000\nprint after", 0),
    "while_sent": ("12m", "flood 12000 1000\nsleep 3\n%s\nprint after" % TRICKLE, 5500000),
    "within_one_event": ("1m", "display {\"text/plain\": \"%s\"}\nprint after" % ("q" * 8000000), 0),
}


def make_full(name, code, read_first):
    def disk_full(server, rounds):
        """Neither the stream nor the code ends with the disk; events are dropped."""
        mark = server.jupyter.mark()
        reader = Reader(server.port, code)
        reader.read(4096)
        if read_first:
            settled(server.workers()[0])
        fill(os.path.join(server.disk, "fill"))
        while len(reader.data) < read_first and reader.read():
            pass
        server.run("print next")                # nginx has all of the first one's output
        server.log.wait(r"\[crit\].*No space left", 5)
        reader.drain()
        is_(types(reader.events())[-2:], ["output_dropped", "end_of_execution"], "the stream has its end")
        is_(server.jupyter.log(mark, ev="interrupt"), [], "the code was not interrupted")
    disk_full.__name__ = "disk_full_" + name
    return disk_full


for _name, (_size, _code, _read_first) in FULL.items():
    scenario(server=Disk, size=_size)(make_full(_name, _code, _read_first))

for _name, _location in SETTINGS.items():
    make_slow(_name, _location)

main(Scripted, workers=(1,), jobs=2)
