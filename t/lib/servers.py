"""The servers that the scripts in t/scenarios talk to, and what they ask of streams.

Server is nginx in front of a real Jupyter, or of the one given; Scripted in front of a scripted one; JupyterProcess is
the real one of a Server, to be killed.
"""

import errno
import stat

from kexec_test import *


class Server(Nginx):
    """nginx in front of a real Jupyter (or the one given).  Requests go to a port of its own for each worker's
    socket (reuseport), so they are spread over the workers; a listening socket that all share gives nearly all of
    them to one.  Answers name their worker in X-Worker.  workers=0: master_process off."""

    def __init__(self, workers=1, location="", jupyter=None, http="", default_contexts="python", env=None):
        super().__init__(jupyter, workers or 1, workers > 0, location, env, start=False)
        self.n_workers = workers or 1
        self.allowed = None             # pattern of what may stand in error.log
        self.health_port, self.port = self.port, free_port()
        self.h2_port = free_port()
        self.env["DEFAULT_CONTEXTS"] = default_contexts
        self.env["EXTRA_HTTP"] = http + """
            server {
                listen 127.0.0.1:%d reuseport;
                listen 127.0.0.1:%d http2 reuseport;
                client_max_body_size 64m;
                client_body_buffer_size 1m;
                add_header X-Worker $pid always;
                location = /-/pid { return 200 $pid; }
                location / {
                    kexec_pass http://jupyter;
                    kexec_token_file %s/token;
                    kexec_default_cwd %s;
                    include %s/location.conf;
                }
            }""" % (self.port, self.h2_port, self.run_dir, self.cwd, self.run_dir)
        self.start()

    def __exit__(self, *error):
        super().__exit__(*error)
        if self.jupyter is not None:
            self.jupyter.stop()

    @property
    def cwd(self):
        """The default one."""
        path = os.path.join(self.run_dir, "home")
        os.makedirs(path, exist_ok=True)
        self.env.setdefault("DEFAULT_CWD", path)
        return path

    def workers(self):
        return super().workers() if self.env["MASTER"] == "on" else [self.pid]

    def check_log(self):
        """nginx logs nothing worse than [error], and no worker ended by a signal; Jupyter was not made to stand still by
        what it found on a link that was replaced."""
        self.log.check(self.allowed)
        if misread(self.run_dir):
            ok(False, "Jupyter misread no message")

    def keep_log(self):
        """What a scripted Jupyter saw, beside nginx's own logs."""
        if self.jupyter is None:
            return
        with open(os.path.join(self.run_dir, "scripted.log"), "w") as f:
            for r in self.jupyter.log():
                f.write("%.3f %s\n" % (r["t"], json.dumps({k: v for k, v in r.items()
                                                           if k not in ("t", "content", "header")})))

    # Jupyter, as anybody with the token

    def rest(self, method, path, body=None, timeout=30):
        if self.jupyter is not None:
            return self.jupyter.rest(method, path, body, timeout)
        return request(self.env["JUPYTER_PORT"], method, path, body,
                       {"Authorization": "token " + self.token}, timeout)

    @property
    def token(self):
        with open(os.path.join(self.run_dir, "token")) as f:
            return f.read().strip()

    def session(self, context):
        """The Jupyter session of a context, or None."""
        return next((s for s in self.rest("GET", "/api/sessions").json() if context in s["path"]), None)

    def kernel(self, context):
        """The kernel's id."""
        return self.session(context)["kernel"]["id"]

    def connect(self, kernel_id, **more):
        """A websocket to a kernel, as JupyterLab has one."""
        return KernelSocket(self.env["JUPYTER_PORT"], kernel_id, token=self.token, **more)

    def through(self, port):
        """From now on Jupyter is reached by that port."""
        path = os.path.join(self.run_dir, "nginx.conf")
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(re.sub(r"server 127\.0\.0\.1:\d+;", "server 127.0.0.1:%d;" % port, text))
        old = set(self.workers())
        self.reload()
        wait_until(lambda: not old & set(self.workers()), 30, "the old workers' end")

    def jupyter_process(self):
        return JupyterProcess(self.run_dir, self.env["JUPYTER_PORT"])

    # Executions

    def value(self, code, context=None, **more):
        """What the last line evaluates to, as text; None when it did not run to its end."""
        stream = self.run(code, context_id=context, **more)
        return result(stream)

    def busy(self, context=None, code="import time\ntime.sleep(300)", **more):
        """An execution that was seen to run."""
        stream = self.execute("print('-started-')\n" + code, context, **more)
        if stream.wait_for("stdout", 30) is None:
            raise TimeoutError("an execution did not start: %r %r" % (stream.status_line, stream.all()))
        return stream

    def execute_on(self, worker, code, context=None, **fields):
        """An execution by that worker, 0 to n - 1, whichever that is.

        A listening socket of each worker's own gets its connections by a hash of the addresses: the same client
        port leads to the same worker again."""
        if not hasattr(self, "_ports"):
            self._find_ports()
        body = {"code": code, **fields}
        if context is not None:
            body["context_id"] = context
        while True:
            port = self._ports[worker].pop(0)
            self._ports[worker].append(port)
            try:
                return Stream(self.port, "POST", "/execute", body, local_port=port)
            except OSError as e:
                # the last connection from that port is not forgotten yet, or somebody else has it by now
                if e.errno not in (errno.EADDRNOTAVAIL, errno.EADDRINUSE):
                    raise

    def _find_ports(self, each=200):
        """Client ports by worker."""
        by_pid = {}
        while len(by_pid) < self.n_workers or min(map(len, by_pid.values())) < each:
            port = free_port(keep=False)
            stream = Stream(self.port, "GET", "/-/pid", headers={"Connection": None}, local_port=port)
            pump_all([stream], lambda: stream.ended)
            stream.reset()              # leaves no TIME_WAIT behind
            by_pid.setdefault(bytes(stream.body), set()).add(port)
        self._ports = list(map(list, by_pid.values()))

    def queued(self, code, context=None, **more):
        """An execution that was let in.  That it waits is the caller's arrangement."""
        stream = self.execute(code, context, **more)
        if stream.wait_head(10) != 200:
            raise RuntimeError("an execution was not let in: %r %r" % (stream.status_line, stream.body))
        return stream

    def path(self, name):
        """A file's name in a directory for files of a test."""
        return os.path.join(self.run_dir, "files", name)

    def gate(self):
        return Gate(self)


def pump_all(streams, test, timeout=30):
    """Reads from all of them, as it comes, until test() is true."""
    timeout *= slack()
    end = time.monotonic() + timeout
    while not test():
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError("waited %.1f s for %s" % (timeout, test))
        readable = [s for s in streams if not s.ended]
        if not readable:
            raise RuntimeError("all answers have ended before " + str(test))
        for sock in select.select([s.sock for s in readable], [], [], min(left, 0.5))[0]:
            next(s for s in readable if s.sock is sock).pump(0)


def temp_files(server):
    """The sizes of the workers' open temporary files."""
    sizes = []
    for pid in server.workers():
        for fd in os.listdir("/proc/%d/fd" % pid):
            path = "/proc/%d/fd/%s" % (pid, fd)
            try:
                status = os.stat(path)
            except OSError:
                continue
            name = os.readlink(path)                    # valgrind has files of its own
            if stat.S_ISREG(status.st_mode) and name.startswith(server.run_dir) and name.endswith(" (deleted)") \
                    and status.st_size:
                sizes.append(status.st_size)
    return sizes


def slow_reader(server, context, code, **more):
    """An execution whose client takes nothing yet."""
    return Stream(server.port, "POST", "/execute", {"code": code, "context_id": context, **more}, receive_buffer=4096,
                  timeout=120)


class Scripted(Server):
    """In front of a scripted Jupyter of its own, whose options these are.  It starts soon: each scenario has one for
    itself."""

    shared = False

    def __init__(self, workers=1, location="", http="", default_contexts="python", env=None, **options):
        super().__init__(workers, location, ScriptedJupyter(**options), http, default_contexts, env)


class JupyterProcess:
    """The Jupyter that server.sh started, to be killed and started again just as it was."""

    def __init__(self, run_dir, port):
        self.pid_file = os.path.join(run_dir, "jupyter.pid")
        self.log = os.path.join(run_dir, "jupyter.log")
        self.port = port
        with open(self.pid_file) as f:
            self.pid = int(f.read())
        read = lambda name: open("/proc/%d/%s" % (self.pid, name), "rb").read().split(b"\0")[:-1]
        self.args, self.env = read("cmdline"), dict(v.split(b"=", 1) for v in read("environ"))
        self.cwd = os.readlink("/proc/%d/cwd" % self.pid)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(self.pid), 5, "Jupyter's end")

    def start(self):
        # SIGINT: as server.sh does it, for the kernels
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["env", "--default-signal=INT", "--default-signal=QUIT", *self.args], env=self.env, cwd=self.cwd,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.pid = self.process.pid
        with open(self.pid_file, "w") as f:
            f.write("%d\n" % self.pid)
        wait_until(lambda: port_answers(self.port), 30, "Jupyter")


def misread(run_dir):
    """How often Jupyter Server 1.23 took a message for one of another format, which stops it for 20 seconds."""
    try:
        with open(os.path.join(run_dir, "jupyter.log"), errors="replace") as f:
            return f.read().count("struct.error: unpack requires a buffer")
    except FileNotFoundError:
        return 0


def result(stream):
    """The text of the (main) result."""
    return next((e.get("text") for e in stream.all() if e.get("type") == "result"), None)


def told(stream):
    """What a client was told in the end: the error's name, or "ok"; and whether the end line was the last."""
    stream.finish()
    events = stream.all()
    if not events or stream.ended != "complete" or events[-1]["type"] != "end_of_execution":
        return "no end: %r" % (events[-3:],)
    if sum(e["type"] == "end_of_execution" for e in events) != 1:
        return "several ends: %r" % (events,)
    return stream.error() or "ok"


def between(seconds, least, most, name):
    """How long something took that takes `least`.  nginx reads the clock once for what it does at once, so its timers
    may be some milliseconds early."""
    most *= slack()
    return ok(least - 0.05 <= seconds < most, name, "took %.3f s, not %s to %s s" % (seconds, least, most))


class Gate:
    """Code that runs until it is told to end: .code, .open()"""

    _n = 0

    def __init__(self, server):
        Gate._n += 1
        self.name = server.path("gate-%d" % Gate._n)
        os.makedirs(os.path.dirname(self.name), exist_ok=True)
        self.code = ("import os, time\n"
                     "while not os.path.exists(%r):\n"
                     "    time.sleep(0.005)\n" % self.name)

    def open(self):
        open(self.name, "w").close()
        return time.monotonic()


# Code that KeyboardInterrupt does not end; two of them within microseconds would
SWALLOW = """
import time
def swallow(seconds):
    end = time.monotonic() + seconds
    while True:
        try:
            while True:
                try:
                    while time.monotonic() < end:
                        time.sleep(0.5)
                    return
                except BaseException:
                    pass
        except BaseException:
            pass
swallow(300)
"""
