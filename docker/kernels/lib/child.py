"""Jupyter kernels around a long-lived child: the shell of bash, or node.

The child reads requests, numbers, from descriptor 252 and answers each one with
a line on 251, the same number and what there is to say; what it prints in
between is the output.

SIGINT comes to the whole process group.  A shell deals with it by itself, node
does not: it notices late, in the middle of what comes next, and at some moments
is ended.  So a child can be gated: it has a process group of its own, reads the
number of a request that is interrupted, followed by "!", from 252 as well, and
gets SIGINT only while it wants it.  Then there is a token in its gate, an
eventfd at 248.  Who takes it out decides: the kernel, and one SIGINT is sent,
which the child waits for; or the child, and none will come.
"""

import codecs
import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import threading

import psutil
from ipykernel.kernelbase import Kernel

GATE, STATE, CODE, REPLY, REQUEST = 248, 249, 250, 251, 252


class Child:
    """state: a file that the child finds at 249, for what the next child is to
    know of it."""

    def __init__(self, argv, state, cwd=None, gated=False):
        self.number = 0
        self.gate = new_eventfd() if gated else None
        self.code = os.memfd_create("code")
        request, self.request = os.pipe()
        self.reply, reply = os.pipe()
        stdout, stdout_end = os.pipe()
        stderr, stderr_end = os.pipe()

        theirs = {STATE: state, CODE: self.code, REPLY: reply, REQUEST: request}

        if gated:
            theirs[GATE] = self.gate

            # Whoever ends this process group does not reach it.

            argv = ["setpriv", "--pdeathsig", "KILL", *argv]

        # Popen() hands descriptors on under the numbers that they have here,
        # so a shell renames them before the child runs.

        moves = [f"{number}<&{fd}" for number, fd in theirs.items()]
        closes = [f"{fd}<&-" for fd in theirs.values()]

        self.process = subprocess.Popen(
            ["bash", "-c", f"exec {' '.join(moves + closes)}; exec \"$@\"",
             "bash", *argv],
            stdin=subprocess.DEVNULL, stdout=stdout_end, stderr=stderr_end,
            pass_fds=theirs.values(), cwd=cwd,
            process_group=0 if gated else None)

        for fd in (request, reply, stdout_end, stderr_end):
            os.close(fd)

        self.death = os.pidfd_open(self.process.pid)

        # ipykernel's shutdown waits until no child is left, zombies included.

        threading.Thread(target=self.process.wait, daemon=True).start()

        self.names = {stdout: "stdout", stderr: "stderr"}
        self.decoders = {
            fd: codecs.getincrementaldecoder("utf-8")("replace")
            for fd in self.names
        }

    def run(self, code, write, interrupts):
        """Runs code; returns the child's answer, or None when it is gone.
        interrupts: an eventfd that is readable when SIGINT came."""

        os.ftruncate(self.code, 0)
        os.pwrite(self.code, code.encode("utf-8", "replace"), 0)

        # The code can write to the child's descriptors as well: what does not
        # begin with this request's number is no answer to it.

        self.number += 1
        number = b"%d" % self.number

        if not self.tell(number):
            return None

        poll = select.poll()
        said = b""
        answer = None
        interrupted = False

        for fd in (*self.names, self.reply, self.death):
            poll.register(fd, select.POLLIN)

        if self.gate is not None:
            poll.register(interrupts, select.POLLIN)

        while True:
            ready = {fd for fd, _ in poll.poll()}

            if self.reply in ready:
                said += os.read(self.reply, 65536)
                *lines, said = said.split(b"\n")

                for line in lines:
                    name, _, words = line.partition(b" ")
                    answer = words if name == number else answer

            if interrupts in ready:
                os.eventfd_read(interrupts)

                if not interrupted:
                    interrupted = True
                    self.tell(number + b"!")

                poll.register(self.gate, select.POLLIN)

                self.interrupt_others()

            elif self.gate in ready and take(self.gate):
                poll.unregister(self.gate)
                self.signal(signal.SIGINT)

            # What was written before the answer is in the pipes by now.  A job
            # in the background may write on for ever, so no more than that is
            # taken; what it writes until the next piece of code waits.

            ended = self.death in ready or answer is not None

            for fd in self.names:
                size = waiting(fd)

                if size:
                    text = self.decoders[fd].decode(os.read(fd, size))
                    write(self.names[fd], text)

                elif fd in ready:               # closed by all who had it
                    poll.unregister(fd)

            if ended:
                return answer

    def tell(self, line):
        try:
            os.write(self.request, line + b"\n")
            return True
        except BrokenPipeError:         # it may live, with 252 closed
            self.signal(signal.SIGKILL)
            return False

    def signal(self, number):
        try:
            signal.pidfd_send_signal(self.death, number)
        except ProcessLookupError:      # it is gone by itself
            pass

    def interrupt_others(self):
        """As a signal to the whole group does it: what starts meanwhile gets
        it as well."""

        told = {self.process.pid}

        for _ in range(10):             # some start others for ever
            others = [process for process in self.group()
                      if process.pid not in told]

            for process in others:
                told.add(process.pid)

                try:
                    process.send_signal(signal.SIGINT)
                except psutil.Error:    # is gone, or is another user's
                    pass

            if not others:
                break

    def group(self):
        """The processes in a gated child's group."""

        return [process for process in psutil.Process().children(recursive=True)
                if group_of(process.pid) == self.process.pid]

    def cwd(self):
        try:
            return os.readlink(f"/proc/{self.process.pid}/cwd")
        except OSError:
            return None

    def close(self):
        """Returns in words how the child ended."""

        for fd in (self.code, self.request, self.reply, self.death,
                   *self.names):
            os.close(fd)

        if self.gate is not None:
            os.close(self.gate)

        status = self.process.wait()
        return f"status {status}" if status >= 0 else f"signal {-status}"


def waiting(fd):
    """How many bytes are in a pipe."""

    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"0000"))[0]


def new_eventfd():
    return os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)


def take(fd):
    """Whether there was something in an eventfd, which is empty then."""

    try:
        return os.eventfd_read(fd) > 0
    except BlockingIOError:
        return False


def group_of(pid):
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


class ChildKernel(Kernel):
    """Subclasses have argv(), the child's command line, and outcome(), which
    makes a MIME bundle or None of an answer, or raises Failure."""

    implementation_version = "1.0"
    gated = False

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.interrupts = new_eventfd()
        self.pre_handler_hook()
        self.stopping = False
        self.state = os.memfd_create("state")
        self.child = Child(self.argv(), self.state, gated=self.gated)
        self.cwd = self.child.cwd()

    def pre_handler_hook(self):
        # SIGINT is the child's to deal with.  A handler, and not SIG_IGN, which
        # the child would inherit.

        signal.signal(signal.SIGINT, self.note_interrupt)

    def post_handler_hook(self):
        pass

    def note_interrupt(self, *_):
        self.interrupted = True
        os.eventfd_write(self.interrupts, 1)

    def _process_children(self):        # that are ended at the shutdown
        children = super()._process_children()

        return children + self.child.group() if self.gated else children

    def do_shutdown(self, restart):
        self.stopping = True            # this is not the thread of do_execute()
        return super().do_shutdown(restart)

    def start_again(self):
        """Returns in words how the last child ended."""

        if self.stopping:
            raise Failure("ProcessExited", "the kernel is being shut down")

        how = self.child.close()
        self.child = Child(self.argv(), self.state, self.cwd, self.gated)

        return f"{self.language} ended with {how}"

    def do_execute(self, code, silent, store_history=True,
                   user_expressions=None, allow_stdin=False, **_):
        def write(name, text):
            if text and not silent:
                self.send_response(self.iopub_socket, "stream",
                                   {"name": name, "text": text})

        # What came until now was meant for others.

        self.interrupted = False
        take(self.interrupts)
        answer = self.child.run(code, write, self.interrupts)

        try:
            if answer is None:
                raise Failure("ProcessExited", self.start_again() + "; its "
                              "variables are lost and a new one was started")

            data = self.outcome(answer)

        except Failure as failure:
            content = failure.content

            if not silent:
                self.send_response(self.iopub_socket, "error", content)

            return {
                "status": "error",
                "execution_count": self.execution_count,
                **content,
            }

        finally:
            self.cwd = self.child.cwd()

        if data and not silent:
            self.send_response(self.iopub_socket, "execute_result", {
                "execution_count": self.execution_count,
                "data": data,
                "metadata": {},
            })

        return {
            "status": "ok",
            "execution_count": self.execution_count,
            "payload": [],
            "user_expressions": {},
        }


class Failure(Exception):
    def __init__(self, name, value, traceback=()):
        self.content = {
            "ename": name,
            "evalue": value,
            "traceback": list(traceback),
        }
