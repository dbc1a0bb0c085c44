"""The kernel's own stdout and stderr, which the user's code may replace, close and write to by their descriptors.

ipykernel flushes whatever sys.stdout is: if that fails, a cell gets neither reply nor idle.  What other programs print
it decodes in pieces, and after one that is no UTF-8 it takes no more, until they wait for the full pipe."""

import fcntl
import os
import sys
from codecs import getincrementaldecoder
from functools import wraps
from select import POLLIN, poll
from struct import unpack
from termios import FIONREAD
from threading import Condition

from ipykernel import displayhook, kernelbase, zmqshell
from ipykernel.iostream import OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp

from .interrupts import CELL

PIECE = 65536                           # bytes
MESSAGE = 1 << 20                       # the most that goes into one message
DRAIN_TIME = 1                          # seconds
DESCRIPTORS = {"stdout": 1, "stderr": 2}
SPARE = 200                             # from that number on, where no program looks for descriptors

own = {}                                # streams by name
spare = {}                              # copies of their descriptors


class Sys:
    """sys as ipykernel's own code has it: with the kernel's streams, not with what the user put in their place."""

    def __getattr__(self, name):
        if name not in own:
            return getattr(sys, name)
        vars(own[name]).pop("flush", None)      # somebody's that may fail
        return own[name]


# ---- what other programs print

class Pipe:
    """What was written to a descriptor, on its way to the stream; not to Jupyter's log as well, as by ipykernel, which
    has no limit."""

    def __init__(self, stream):
        self.stream = stream
        self.decoder = getincrementaldecoder("utf-8")("replace")
        self.taken = 0
        self.changed = Condition()

    def watch(self):
        readable = poll()
        readable.register(self.stream._fid, POLLIN)
        sent = 0
        while True:
            readable.poll()
            with self.changed:
                data = os.read(self.stream._fid, PIECE)
                if not data:
                    return
                self.write(data)
                self.taken += len(data)
                self.changed.notify_all()
            if self.taken - sent >= MESSAGE:
                OutStream.flush(self.stream)
                sent = self.taken

    def write(self, data, final=False):
        text = self.decoder.decode(data, final)
        if text:
            OutStream.write(self.stream, text)

    def drain(self):
        """What was written until now belongs to the cell that ends; somebody may write on for ever."""
        with self.changed:
            target = self.taken + unpack("i", fcntl.ioctl(self.stream._fid, FIONREAD, b"0000"))[0]
            self.changed.wait_for(lambda: self.taken >= target, DRAIN_TIME)
            self.write(b"", True)


def watch(stream):
    stream.kexec_pipe = Pipe(stream)
    stream.kexec_pipe.watch()


# ---- what the user's code leaves behind

def settle():
    """At the end of a cell: what was printed is on its way, and the next one can print."""
    for name, stream in own.items():
        if is_broken(getattr(sys, name, None)):
            setattr(sys, name, stream)
            vars(stream).pop("write", None)
        if name in spare:
            restore_descriptor(name)
        pipe = getattr(stream, "kexec_pipe", None)
        if pipe is not None:
            pipe.drain()


def is_broken(stream):
    """Closed, or nobody can print to it.  One that the user put there and that works stays."""
    try:
        if getattr(stream, "closed", False) or not callable(stream.write):
            return True
        if not isinstance(stream, OutStream) and hasattr(stream, "flush"):
            stream.flush()
        return False
    except BaseException:
        return True


def restore_descriptor(name):
    try:
        os.fstat(DESCRIPTORS[name])
    except OSError:
        os.dup2(spare[name], DESCRIPTORS[name])


# ---- where all that takes hold

def remembered(init_io):
    @wraps(init_io)
    def init_and_remember(app):
        init_io(app)
        for name, fd in DESCRIPTORS.items():
            if isinstance(getattr(sys, name), OutStream):
                own[name] = getattr(sys, name)
                spare[name] = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, SPARE)
    return init_and_remember


def settled(do_execute):
    @wraps(do_execute)
    async def execute_and_settle(*args, **more):
        try:
            return await do_execute(*args, **more)
        finally:
            settle()
    return execute_and_settle


def install():
    IPKernelApp.init_io = remembered(IPKernelApp.init_io)
    IPythonKernel.do_execute = settled(IPythonKernel.do_execute)
    OutStream._watch_pipe_fd = watch
    OutStream.close = OutStream.flush   # or all that comes is lost, or waited for
    kernelbase.sys = displayhook.sys = zmqshell.sys = Sys()
    CELL.add(is_broken.__code__)        # flush() may be the user's
