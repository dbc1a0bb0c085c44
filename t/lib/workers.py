"""For scenarios in which worker processes die, leave and are replaced: the zone's state, watched from outside.

    from workers import *

    with watched(server):       # fails if the zone was ever wrong, or a slot free with somebody waiting for it
        server.signal(signal.SIGKILL, worker_of(stream))

The zone is read by the variable $kexec_zone, which a module has that was built with --with-debug, as Debian's is.
"""

import contextlib

from scenario import *

CONF = """
    kexec_interrupt_timeout 4s;
    kexec_reconnect_timeout 3s;
    kexec_ready_timeout 30s;
    kexec_keepalive 1s;
    kexec_queue size=64 timeout=60s;
"""

# What nginx says when a worker is killed, which is no fault here
KILLED = "exited on signal 9"

# and when that one was inside the zone
KILLED_INSIDE = KILLED + "|was locked by|died while it was changing the kexec zone"


class Workers(Server):
    """A Server whose zone can be read, and whose nginx.conf can be changed."""

    def __init__(self, workers=4, conf=CONF, http="", **more):
        self.zone_port = free_port()
        super().__init__(workers, conf, http="""
            server {
                listen 127.0.0.1:%d;
                access_log off;
                location / { return 200 $kexec_zone; }
            }""" % self.zone_port + http, **more)

    @property
    def conf_file(self):
        return os.path.join(self.run_dir, "nginx.conf")

    def configure(self, change):
        """Writes nginx.conf anew; change gets its text and returns another one."""
        with open(self.conf_file) as f:
            text = change(f.read())
        with open(self.conf_file, "w") as f:
            f.write(text)

    def zone(self):
        return request(self.zone_port, "GET", "/", timeout=10).json()

    def quiet(self, name="nothing is left in the zone", timeout=10):
        """No claims at all are left, within a limit: none of dead workers', none of clients that are gone."""
        try:
            state = wait_until(lambda: [z for z in [self.zone()] if z["claims"] == z["dead"] == 0], timeout, "no claims")[0]
        except TimeoutError:
            state = self.zone()
        return is_({k: state[k] for k in ("claims", "held", "queued", "dead", "wrong")},
                   dict.fromkeys(("claims", "held", "queued", "dead", "wrong"), 0), name)

    def renew(self):
        """A reload, until only new workers take requests; returns the old ones' pids."""
        old = self.workers()
        self.reload()
        for pid in old:
            said = r"\[notice\] %d#.* gracefully shutting down" % pid
            wait_until(lambda: not is_alive(pid) or self.log.lines(said), 10, "the old workers to leave")
        return old

    def replaced(self, pid, timeout=5):
        """Waits until another process is in the place of a worker that is gone."""
        wait_until(lambda: not is_alive(pid), timeout, "the end of a worker")
        wait_until(lambda: len(self.workers()) >= self.n_workers, timeout, "a new worker")


def worker_of(stream):
    """The pid of the worker that has a stream, once its head has come."""
    stream.wait_head(10)
    return int(stream.headers["x-worker"])


@contextlib.contextmanager
def watched(server, name="the zone", idle=2, dead=10):
    """Looks at the zone all the time.  `idle`, `dead`: seconds for which a slot may be free with a queue behind it, a
    record may be a dead worker's."""
    stop, problems = threading.Event(), []

    def watch():
        since = {}
        while not stop.wait(0.05):
            try:
                state = server.zone()
            except (OSError, ValueError, IndexError):
                continue            # a worker that is being killed has the connection
            now = time.monotonic()
            if state["wrong"]:
                problems.append("the checker finds %r" % state)
            for what, bad, limit in (("records of dead workers", state["dead"], dead),
                                     ("a queue without a holder", state["queued"] and not state["held"], idle)):
                if not bad:
                    since.pop(what, None)
                elif now - since.setdefault(what, now) > limit:
                    problems.append("%s for %.1f s: %r" % (what, now - since[what], state))
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    ok(not problems, name + " was sound all the time", "\n".join(problems[:5]))
