"""A container of the image, run by buildah."""

import json
import os
import signal
import subprocess
import sys
import time
import traceback

from kexec_test import ROOT, Stream, _tests, diag, ok, request, wait_until

PORT = 49999
JUPYTER_PORT = 8888
NGINX = "nginx: master"                             # how their command lines begin
JUPYTER = "/usr/bin/python3 -m jupyter_server"


def buildah(*arguments):
    return subprocess.run(["buildah", *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def play(checks, *arguments):
    """Runs the checks one after the other, prints their sum and returns the exit status."""
    for check in checks:
        diag(check.__doc__.partition("\n")[0])
        try:
            check(*arguments)
        except Exception:
            ok(False, check.__name__, traceback.format_exc())
    passed = _tests["run"] - _tests["failed"]
    print("%d passed, %d failed" % (passed, _tests["failed"]))
    return 0 if passed and not _tests["failed"] else 1


class Container:
    @staticmethod
    def make(image):
        name = buildah("from", "--pull-never", image)
        root = buildah("mount", name)
        # As in the recordings, and as a user would set it.
        with open(os.path.join(root, "etc/kexec/location.conf"), "w") as f:
            f.write("kexec_env E2B_TEST_VARIABLE true;\n")
        return {"name": name, "root": root}

    @staticmethod
    def remove(made):
        buildah("rm", made["name"])

    def __init__(self, made):
        self.name, self.root = made["name"], made["root"]
        self.config = json.loads(buildah("inspect", self.name))["Docker"]["config"]
        self.process = None
        self.port = PORT
        self.log = os.path.join(ROOT, "build", "log", "container.log")
        os.makedirs(os.path.dirname(self.log), exist_ok=True)
        open(self.log, "w").close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if _tests["failed"]:
            with open(self.log) as f:
                sys.stdout.writelines("# | " + line for line in f.readlines()[-40:])

    # Its life

    def start(self, **env):
        """With these variables; returns how long it took until it was healthy.

        Its first process has the number 1, as in any container: unshare, which needs the capability, sees to it."""
        started = time.monotonic()
        self.port = int(env.get("PORT", PORT))
        variables = ["--env=%s=%s" % variable for variable in env.items()]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                ["buildah", "run", "--isolation", "chroot", "--cap-add", "CAP_SYS_ADMIN", *variables, self.name, "--",
                 "unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *self.config["Cmd"]],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.wait_healthy()
        return time.monotonic() - started

    def wait_healthy(self, timeout=60):
        def healthy():
            if self.process.poll() is not None:
                raise RuntimeError("the container ended with %d" % self.process.returncode)
            try:
                return request(self.port, "GET", "/health").status == 200
            except OSError:
                return False
        wait_until(healthy, timeout, "/health")

    def terminate(self):
        """SIGTERM for the first process; returns how long its end took and the exit status."""
        sent = time.monotonic()
        os.kill(self.pid("s6-svscan"), signal.SIGTERM)
        status = self.process.wait(30)
        return time.monotonic() - sent, status

    # Its processes, by the numbers that they have out here

    def processes(self):
        """[(pid, uid, command line)] without zombies."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    command = f.read().replace(b"\0", b" ").decode(errors="replace").strip()
                if command:
                    found.append((int(pid), os.stat("/proc/" + pid).st_uid, command))
            except OSError:
                pass
        return found

    def pids(self, command):
        return [pid for pid, _, line in self.processes() if line.startswith(command)]

    def pid(self, command):
        """The one process whose command line begins so, which may be about to start."""
        return wait_until(lambda: self.pids(command), 10, command)[0]

    def nginx(self):
        return self.pid(NGINX)

    def jupyter(self):
        return self.pid(JUPYTER)

    def kernels(self):
        """What Jupyter started, and what that started: all processes of its user."""
        jupyter = self.jupyter()
        return {pid for pid, uid, _ in self.processes() if uid == 1000 and pid != jupyter}

    def listening(self):
        """{port: address}, IPv4 in hexadecimal as the kernel writes it; IPv6 would be there with all its digits."""
        found = {}
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(table) as f:
                for fields in (line.split() for line in f.readlines()[1:]):
                    if fields[3] == "0A":
                        address, _, port = fields[1].partition(":")
                        found[int(port, 16)] = address
        return found

    def sh(self, command):
        """A shell in the container."""
        return subprocess.run(["chroot", "/proc/%d/root" % self.pid("s6-svscan"), "sh", "-c", command],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    # What a client does

    def execute(self, code, timeout=60, **fields):
        return Stream(self.port, "POST", "/execute", {"code": code, **fields}, timeout=timeout)

    def run(self, code, **fields):
        stream = self.execute(code, **fields)
        stream.finish()
        return stream
