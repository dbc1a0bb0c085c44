"""A Jupyter kernel for bash: one shell that lives as long as the kernel."""

import codecs
import fcntl
import os
import select
import signal
import struct
import subprocess
import termios

from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

# The shell's ends of the kernel's pipes, and the file with the code; its name
# is in bash's own messages ("/dev/fd/250: line 1: foo: command not found").

CODE, STATUS, REQUEST = 250, 251, 252

LOOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "loop.sh")


class Shell:
    """The bash process and its pipes."""

    def __init__(self, cwd=None):
        self.code = os.memfd_create("code")
        request, self.request = os.pipe()
        self.status, status = os.pipe()
        stdout, stdout_end = os.pipe()
        stderr, stderr_end = os.pipe()

        # Popen() hands on descriptors under their own numbers only, so bash
        # gets low ones and renames them before it runs anything.

        self.process = subprocess.Popen(
            ["bash", "-c",
             f"exec {CODE}<&{self.code} {STATUS}>&{status} "
             f"{REQUEST}<&{request} {self.code}<&- {status}>&- {request}<&-; "
             f"exec bash -c \"$(cat \"$1\")\" bash /dev/fd/{CODE}",
             "bash", LOOP],
            stdin=subprocess.DEVNULL, stdout=stdout_end, stderr=stderr_end,
            pass_fds=(self.code, status, request), cwd=cwd)

        for fd in (request, status, stdout_end, stderr_end):
            os.close(fd)

        self.death = os.pidfd_open(self.process.pid)
        self.names = {stdout: "stdout", stderr: "stderr"}
        self.decoders = {
            fd: codecs.getincrementaldecoder("utf-8")("replace")
            for fd in self.names
        }

    def run(self, code, write):
        """Runs code, returns its exit status, or None when bash is gone."""

        os.ftruncate(self.code, 0)
        os.pwrite(self.code, code.encode("utf-8", "replace"), 0)

        try:
            os.write(self.request, b"\n")
        except BrokenPipeError:
            return None

        poll = select.poll()

        for fd in (*self.names, self.status, self.death):
            poll.register(fd, select.POLLIN)

        while True:
            ready = {fd for fd, _ in poll.poll()}

            # What was written before the status is in the pipes now; a job in
            # the background may go on writing for ever, so no more than that
            # is taken.

            ended = ready & {self.status, self.death}

            for fd in self.names:
                left = waiting(fd) if ended else 1

                while left > 0 and (ended or fd in ready):
                    data = os.read(fd, 65536)
                    left -= len(data) or left

                    if not data:                # nobody has it open any more
                        poll.unregister(fd)

                    self.write(fd, data, write)

            if self.status in ready:
                return int(os.read(self.status, 64))

            if self.death in ready:
                return None

    def write(self, fd, data, write):
        text = self.decoders[fd].decode(data)

        if text:
            write(self.names[fd], text)

    def cwd(self):
        try:
            return os.readlink(f"/proc/{self.process.pid}/cwd")
        except OSError:
            return None

    def close(self):
        for fd in (self.code, self.request, self.status, self.death,
                   *self.names):
            os.close(fd)

        return self.process.wait()


def waiting(fd):
    """How many bytes are in a pipe."""

    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"0000"))[0]


class BashKernel(Kernel):
    implementation = "kexec_bash"
    implementation_version = "1.0"
    language = "bash"
    banner = "bash"
    language_info = {
        "name": "bash",
        "version": subprocess.getoutput("bash -c 'echo $BASH_VERSION'"),
        "mimetype": "text/x-sh",
        "file_extension": ".sh",
    }

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.shell_cwd = None
        self.pre_handler_hook()
        self.bash = Shell()

    def pre_handler_hook(self):
        # SIGINT is the shell's to deal with, which gets it as a member of the
        # same process group.  A handler that does nothing, and not SIG_IGN,
        # which the shell would inherit.

        signal.signal(signal.SIGINT, self.note_interrupt)

    def post_handler_hook(self):
        pass

    def note_interrupt(self, *_):
        self.interrupted = True

    def do_execute(self, code, silent, store_history=True,
                   user_expressions=None, allow_stdin=False, **_):
        def write(name, text):
            if not silent:
                self.send_response(self.iopub_socket, "stream",
                                   {"name": name, "text": text})

        self.interrupted = False
        status = self.bash.run(code, write)

        if status is None:
            status = self.bash.close()
            self.bash = Shell(self.shell_cwd)
            error = "ShellExited", f"bash ended with {status}, " \
                "its variables are lost and a new one was started"

        elif status == 130 and self.interrupted:
            error = "KeyboardInterrupt", ""

        elif status != 0:
            error = "ExitError", str(status)

        else:
            error = None

        self.shell_cwd = self.bash.cwd()

        if error is None:
            return {
                "status": "ok",
                "execution_count": self.execution_count,
                "payload": [],
                "user_expressions": {},
            }

        content = {"ename": error[0], "evalue": error[1], "traceback": []}

        if not silent:
            self.send_response(self.iopub_socket, "error", content)

        return {
            "status": "error",
            "execution_count": self.execution_count,
            **content,
        }


if __name__ == "__main__":
    IPKernelApp.launch_instance(kernel_class=BashKernel)
