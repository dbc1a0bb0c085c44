# ipykernel throws output away when a thousand messages wait to be sent
# (ZeroMQ's high-water mark), the "idle" that ends an execution among them.
# There is no setting for the mark.  It counts only when it is set before the
# socket is bound, which is before any start-up file runs, so the one method
# that makes the socket is wrapped: while it runs, sockets are made without a
# mark.  This file may be read twice, so it does no harm to wrap it again.
# Nothing of this is seen by the user's code.

import os

from ipykernel.kernelapp import IPKernelApp
from zmq import SNDHWM, ZMQError


def lift_mark(make_socket):
    def init_iopub(self, context):
        context.sockopts[SNDHWM] = 0

        try:
            make_socket(self, context)
        finally:
            context.sockopts.pop(SNDHWM, None)

    return init_iopub


IPKernelApp.init_iopub = lift_mark(IPKernelApp.init_iopub)


# Jupyter has chosen the ports, and somebody else may have taken one since.  What
# ZeroMQ has begun would keep the process from its end; without a process, Jupyter
# starts another one with other ports.

def end_without_ports(make_sockets):
    def init_sockets(self):
        try:
            make_sockets(self)
        except ZMQError as error:
            os.write(2, b"no port for the kernel: %s\n" % str(error).encode())
            os._exit(1)

    return init_sockets


IPKernelApp.init_sockets = end_without_ports(IPKernelApp.init_sockets)


# Both packages are found beside this file, whatever sys.path is.

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def load(name):
    """False if it was there."""

    if name in sys.modules:
        return False

    spec = spec_from_file_location(
        name, Path(__file__).with_name(name) / "__init__.py")
    sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])

    return True


# What ipykernel does when it is interrupted is changed.

if load("kexec_kernel"):
    sys.modules["kexec_kernel"].install()


# Results as the SDKs know them: data, charts and JSON beside the text, which
# is told in full and without colours.  Extensions and start-up files of
# the user's own profile are loaded as well.

c = get_config()  # noqa: F821

load("kexec_display")
c.InteractiveShellApp.extensions.append("kexec_display")
c.InteractiveShell.colors = "NoColor"
c.PlainTextFormatter.max_seq_length = 0


# All kernels of a user write what ran into one SQLite file and wait for each
# other: with six busy ones an execution in a hundred took 0.3 to 0.8 s, and
# "database is locked" may end up in its output.  A kernel's own history is
# kept in memory, for %history, %rerun, In and _i.

c.HistoryManager.hist_file = ":memory:"
