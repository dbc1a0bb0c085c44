# ipykernel throws output away when a thousand messages wait to be sent
# (ZeroMQ's high-water mark), the "idle" that ends an execution among them.
# There is no setting for the mark.  It counts only when it is set before the
# socket is bound, which is before any start-up file runs, so the one method
# that makes the socket is wrapped: while it runs, sockets are made without a
# mark.  This file may be read twice, so it does no harm to wrap it again.
# Nothing of this is seen by the user's code.

from ipykernel.kernelapp import IPKernelApp
from zmq import SNDHWM


def lift_mark(make_socket):
    def init_iopub(self, context):
        context.sockopts[SNDHWM] = 0

        try:
            make_socket(self, context)
        finally:
            context.sockopts.pop(SNDHWM, None)

    return init_iopub


IPKernelApp.init_iopub = lift_mark(IPKernelApp.init_iopub)


# A SIGINT between the moment when ipykernel arms it and the one when the code
# runs, or behind the code until it is ignored again, ends the kernel's process
# in order; one that comes while the kernel replies eats the reply.  So only
# the code itself, and the handlers of widgets, are interrupted.  Whoever
# interrupts and sees no effect tries again: for a moment after one that had an
# effect none hits the making of the traceback, which would eat the error.  After
# that they may, others wait for their turn.

from time import monotonic

from ipykernel import kernelbase
from ipykernel.ipkernel import IPythonKernel
from IPython.core.interactiveshell import InteractiveShell

TRACEBACK = InteractiveShell.showtraceback.__code__
INTERRUPTIBLE = {IPythonKernel.do_execute.__code__}

try:
    from ipykernel.comm.manager import CommManager

    for name in ("comm_open", "comm_msg", "comm_close"):
        code = getattr(getattr(CommManager, name, None), "__code__", None)
        if code is not None:
            INTERRUPTIBLE.add(code)

except ImportError:
    pass


last = 0


def interrupt(number, frame):
    global last

    while frame is not None:
        if frame.f_code is TRACEBACK and monotonic() - last < 0.25:
            return

        if frame.f_code in INTERRUPTIBLE:
            last = monotonic()
            raise KeyboardInterrupt

        frame = frame.f_back


kernelbase.default_int_handler = interrupt


# Results as the SDKs know them: data, charts and JSON beside the text, which
# is told in full and without colours.  The package is found beside this file,
# whatever sys.path is.  Extensions and start-up files of the user's own
# profile are loaded as well.

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

c = get_config()  # noqa: F821

PACKAGE = "kexec_display"

if PACKAGE not in sys.modules:
    spec = spec_from_file_location(
        PACKAGE, Path(__file__).with_name(PACKAGE) / "__init__.py")
    sys.modules[PACKAGE] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[PACKAGE])

c.InteractiveShellApp.extensions.append(PACKAGE)
c.InteractiveShell.colors = "NoColor"
c.PlainTextFormatter.max_seq_length = 0


# All kernels of a user write what ran into one SQLite file and wait for each
# other: with six busy ones an execution in a hundred took 0.3 to 0.8 s, and
# "database is locked" may end up in its output.  A kernel's own %history, In
# and _i are kept in memory as before.

c.HistoryManager.enabled = False
