#!/usr/bin/python3
"""Clients that read slowly, stop reading, or find the disk full: what they get is whole, and nobody else waits."""

import os
import random
import ssl
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from kexec_test import *

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
    "small parts": "sendfile on; sendfile_max_chunk 32k; kexec_buffer_size 32k; postpone_output 0;",
    "small buffers": "sendfile off; output_buffers 1 4k; kexec_buffer_size 32k;",
    "aio threads": "sendfile on; aio threads;",
    "aio threads, no sendfile": "sendfile off; aio threads;",
    "gzip": GZIP,
    "gzip, aio threads": GZIP + "gzip_buffers 4 4k; aio threads;",
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
        self.sock.settimeout(30)
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


def slow(jupyter):
    """Byte for byte, whatever stands between the module and the socket."""
    for name, location in SETTINGS.items():
        with Nginx(jupyter, location=location, env={"DEFAULT_CONTEXTS": "python"}) as nginx:
            worker = nginx.workers()[0]
            memory_before = memory(worker)
            reader = Reader(nginx.port, "flood %d %d" % (LINES, SIZE), headers={"Accept-Encoding": "gzip"})
            reader.read(4096)
            if "gzip" not in name:
                ok(settled(worker) > 1000000, "%s: output goes to a temporary file" % name)
            next_one = nginx.run("print next")
            is_(next_one.text(), "next\n", "%s: the context is free meanwhile" % name)
            memory_within((memory(worker) - memory_before) * 1024, 2500 << 10, "%s: memory is bounded" % name)
            reader.drain(rate=20000000)
            whole(reader, "%s: all of it, in order" % name)
            wait_until(lambda: temporary_file(worker) == 0, 5, "the temporary file's end")
            nginx.log.check()


def tls(jupyter, directory):
    key, certificate = os.path.join(directory, "key.pem"), os.path.join(directory, "certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                    "-subj", "/CN=x"], check=True, stderr=subprocess.DEVNULL)
    port = free_port()
    http = """server { listen 127.0.0.1:%d ssl; ssl_certificate %s; ssl_certificate_key %s; ssl_buffer_size 4k;
        location / { kexec_pass http://jupyter; kexec_token secret; } }""" % (port, certificate, key)
    with Nginx(jupyter, env={"EXTRA_HTTP": http, "DEFAULT_CONTEXTS": "python"}) as nginx:
        reader = Reader(port, "flood %d %d" % (LINES, SIZE), receive_buffer=8192, tls=True)
        reader.read(4096)
        settled(nginx.workers()[0])
        reader.drain(rate=20000000)
        whole(reader, "TLS: all of it, in order")
        nginx.log.check()


def does_not_read(jupyter):
    """A closed window is not silence, as long as the client's system answers; send_timeout is another matter."""
    with Nginx(jupyter, location="kexec_client_timeout 2s; kexec_keepalive 500ms;",
               env={"DEFAULT_CONTEXTS": "python javascript"}) as nginx:
        buffered = Reader(nginx.port, "flood 300 1000\nsleep 14\nprint end", receive_buffer=4096)
        behind = Reader(nginx.port, "flood %d %d" % (LINES, SIZE), receive_buffer=4096, language="javascript")
        buffered.read(4096)
        behind.read(4096)
        time.sleep(13)
        buffered.drain()
        behind.drain()
        ok(stdout(buffered.events()).endswith("end\n"), "not reading for 13 s, all of it in the socket",
           "%d bytes" % len(buffered.data))
        whole(behind, "not reading for 13 s, most of it in a file")
        nginx.log.check()


def reads_little(jupyter):
    """It reads all the time, but its window never opens by a whole segment."""
    with Nginx(jupyter, location="kexec_client_timeout 2s; kexec_keepalive 500ms;",
               env={"DEFAULT_CONTEXTS": "python"}) as nginx:
        reader = Reader(nginx.port, "flood %d %d" % (LINES, SIZE), receive_buffer=4096)
        end = time.monotonic() + 10
        while time.monotonic() < end and reader.read(1000):
            time.sleep(0.2)
        ok(time.monotonic() >= end, "1000 bytes each 0.2 s, for 10 s", "%d bytes" % len(reader.data))
        reader.sock.close()
        nginx.log.check()


def limit_rate(jupyter):
    """nginx's limit holds; it is not the client's own slowness, and the context does not wait for it."""
    rate, lines, port = 100000, 300, free_port()
    flood, expected = "flood %d %d" % (lines, SIZE), EXPECTED[:lines * SIZE]
    limits = "limit_rate %d; send_timeout 1s; kexec_keepalive 500ms; kexec_buffer_size 32k;" % rate
    http = "server { listen 127.0.0.1:%d http2; location / { %s kexec_pass http://jupyter; kexec_token secret; } }" % (
        port, limits)
    with Nginx(jupyter, location=limits, env={"EXTRA_HTTP": http, "DEFAULT_CONTEXTS": "python"}) as nginx:
        for code, text in ((flood, expected), (flood + "\nsleep 1\nprint a\nprint b", expected + "a\nb\n")):
            start = time.monotonic()
            reader = Reader(nginx.port, code)
            reader.read(4096)
            nginx.run("print next")
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
            connection = H2Connection(port)
            stream = connection.execute(flood)
            stream.finish()
            took = stream.finished_at - stream.sent_at
            ok(took > len(stream.body) / rate - 2, "HTTP/2: not above limit_rate", "%.1f s" % took)
            is_(stream.text(), expected, "HTTP/2: all of it")
            connection.close()
        stream = nginx.execute("print a\nsleep 0.3\nprint b")
        is_((stream.finish()[-1]["type"], stream.text()), ("end_of_execution", "a\nb\n"), "what is below it comes as it is")
        nginx.log.check()


def send_timeout(jupyter):
    with Nginx(jupyter, location="send_timeout 1s;", env={"DEFAULT_CONTEXTS": "python"}) as nginx:
        reader = Reader(nginx.port, "flood %d %d" % (LINES, SIZE), receive_buffer=4096)
        start = time.monotonic()
        nginx.log.wait("client timed out", 8)
        within(time.monotonic() - start, 5, "one that takes nothing at all is ended by send_timeout")
        reader.sock.close()
        nginx.log.check()


def no_file(jupyter):
    with Nginx(jupyter, location="kexec_max_temp_file_size 0;", env={"DEFAULT_CONTEXTS": "python"}) as nginx:
        stream = nginx.run("print hello\nerror ValueError x")
        is_(stream.types(), ["number_of_executions", "stdout", "error", "end_of_execution"],
            "without a temporary file all comes in memory")
        reader = Reader(nginx.port, "flood 6000 1000\nerror ValueError x", receive_buffer=4096)
        reader.read(4096)
        nginx.run("print next")         # nginx has all of the first one's output
        reader.drain()
        is_(types(reader.events())[-3:], ["error", "output_dropped", "end_of_execution"],
            "what does not fit is dropped and said so, an error never is")
        is_(temporary_file(nginx.workers()[0]), 0, "there is no file")
        nginx.log.check()


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


def fast_at_last(jupyter):
    """A client that takes a large file at once does not keep the worker from others."""
    with Nginx(jupyter, location="sendfile on;", env={"DEFAULT_CONTEXTS": "python", "LOG_LEVEL": "debug"}) as nginx:
        reader = Reader(nginx.port, "flood 100000 1000", receive_buffer=4 << 20)
        reader.read(4096)
        settled(nginx.workers()[0])
        nginx.log.mark()
        take_all(reader, "it takes all of it")
        turns, sent = [0], 0
        for line in nginx.log.lines(r"worker cycle| sendfile: \d+ of"):
            if "worker cycle" in line:
                turns.append(0)
            else:
                turns[-1] += int(re.search(r"sendfile: (\d+) of", line).group(1))
        ok(0 < max(turns) < 9 << 20, "others have their turn in between", "%d bytes in one" % max(turns))


def fast_in_the_end(jupyter):
    """The same from a worker that leaves: it waits for the last byte."""
    with Nginx(jupyter, location="sendfile on;", env={"DEFAULT_CONTEXTS": "python", "LOG_LEVEL": "debug"}) as nginx:
        for i in range(3):
            reader = Reader(nginx.port, "flood 100000 1000", receive_buffer=4 << 20)
            reader.read(4096)
            worker = nginx.workers()[0]
            settled(worker)
            nginx.log.mark()
            nginx.reload()
            nginx.log.wait("%d#%d: gracefully shutting down" % (worker, worker))
            take_all(reader, "all of it, though nginx was reloaded")
            wait_until(lambda: not is_alive(worker), 10, "the old worker's end")
        nginx.log.check()


def keeps_up_again(jupyter):
    """What comes after a temporary file is sent as it comes, also where nginx likes full packets."""
    trickle = "\n".join("sleep 0.05\nprint line %d" % i for i in range(40))
    with Nginx(jupyter, location="sendfile on; tcp_nopush on;", env={"DEFAULT_CONTEXTS": "python"}) as nginx:
        reader = Reader(nginx.port, "flood %d %d\nsleep 3\n%s" % (LINES, SIZE, trickle))
        reader.read(4096)
        settled(nginx.workers()[0])
        at = []
        while True:
            data = reader.read()
            if not data:
                break
            at += [time.monotonic()] * data.count(b'"line ')
        is_(len(at), 40, "all lines")
        apart = sum(1 for a, b in zip(at, at[1:]) if b - a > 0.02)
        ok(apart > 30, "each on its own", "%d of 39 are apart" % apart)
        nginx.log.check()


def fill(path):
    """Takes all the space that is left."""
    with open(path, "wb", 0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass


def full_disk(jupyter, directory):
    """Neither the stream nor the code ends with the disk; events are dropped."""
    trickle = "\n".join("print line %d %s\nsleep 0.01" % (i, "y" * 60) for i in range(100))
    cases = (
        ("all at once", "4m", "flood 20000 1000\nprint after", 0),
        ("while the file is being sent", "12m", "flood 12000 1000\nsleep 3\n%s\nprint after" % trickle, 5500000),
        ("within one event", "1m", "display {\"text/plain\": \"%s\"}\nprint after" % ("q" * 8000000), 0),
    )
    for name, size, code, read_first in cases:
        disk = os.path.join(directory, name.replace(" ", "-"))
        os.mkdir(disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%s,mode=777" % size, "tmpfs", disk]).returncode:
            skip("no tmpfs can be mounted here", 3)
            continue
        try:
            with Nginx(jupyter, location="kexec_temp_path %s;" % disk, env={"DEFAULT_CONTEXTS": "python"}) as nginx:
                mark = jupyter.mark()
                reader = Reader(nginx.port, code)
                reader.read(4096)
                if read_first:
                    settled(nginx.workers()[0])
                fill(os.path.join(disk, "fill"))
                while len(reader.data) < read_first and reader.read():
                    pass
                nginx.run("print next")         # nginx has all of the first one's output
                nginx.log.wait(r"\[crit\].*No space left", 5)
                reader.drain()
                is_(types(reader.events())[-2:], ["output_dropped", "end_of_execution"],
                    "disk full %s: the stream has its end" % name)
                is_(jupyter.log(mark, ev="interrupt"), [], "disk full %s: the code was not interrupted" % name)
                nginx.log.check(allow=r"\[crit\].*No space left on device")
        finally:
            wait_until(lambda: subprocess.run(["umount", disk], stderr=subprocess.DEVNULL).returncode == 0, 10)


def main():
    directory = tempfile.mkdtemp(prefix="kexec-client-")
    os.chmod(directory, 0o755)
    parts = {"slow": slow, "tls": lambda j: tls(j, directory), "does_not_read": does_not_read,
             "reads_little": reads_little, "send_timeout": send_timeout, "limit_rate": limit_rate, "no_file": no_file, "fast_at_last": fast_at_last,
             "fast_in_the_end": fast_in_the_end, "keeps_up_again": keeps_up_again,
             "full_disk": lambda j: full_disk(j, directory)}
    try:
        for name, part in parts.items():
            if not sys.argv[1:] or name in sys.argv[1:]:
                with ScriptedJupyter() as jupyter:
                    part(jupyter)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    done_testing()


if __name__ == "__main__":
    main()
