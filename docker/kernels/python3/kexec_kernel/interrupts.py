"""What SIGINT ends: the code of a cell, or what an earlier cell left behind in the loop, and nothing else.

A KeyboardInterrupt in ipykernel's own code ends the process in order, or eats a reply: between the moment when ipykernel
arms SIGINT and the one when the code runs, behind the code, in a callback of the loop.  So the handler looks at the
stack first.  What it must not hit goes on; whoever interrupts and sees no effect tries again.

Before ipykernel arms SIGINT at all, the process is started with it ignored (kernel.json): Python's own handler would end it,
and who interrupts code of which nothing is heard cannot know that another process is just being started."""

import asyncio
import signal
from _thread import interrupt_main
from asyncio.events import Handle
from contextlib import contextmanager
from functools import partial, wraps
from threading import Timer
from time import monotonic
from types import BuiltinFunctionType

from IPython.core.interactiveshell import InteractiveShell
from ipykernel.comm.manager import CommManager
from ipykernel.ipkernel import IPythonKernel
from tornado.ioloop import IOLoop

# What runs a cell that does not await, and the handlers of widgets; ipykernel catches what they raise.
CELL = {IPythonKernel.do_execute.__code__}
CELL.update(getattr(CommManager, name).__code__ for name in ("comm_open", "comm_msg", "comm_close")
            if hasattr(CommManager, name))

# What calls compiled code, its own or that of a cell that awaits, in a task of its own.
RUN_CODE = InteractiveShell.run_code.__code__
RUN_CELL = InteractiveShell.run_cell_async.__code__

# The loop runs a callback, or a task until its next await, by the first one; tornado's callbacks by both.
RUN_HANDLE = Handle._run.__code__
RUN_CALLBACK = IOLoop._run_callback.__code__

TRACEBACK = InteractiveShell.showtraceback.__code__
TRACEBACK_TIME = 0.25                   # seconds

# Modules whose code is left alone, and those that run on behalf of anybody.
KERNEL = {"ipykernel", "jupyter_client", "tornado", "zmq"}
ANYBODY = {"asyncio", "concurrent", "contextlib", "functools", "threading", "traitlets", "IPython", "kexec_kernel"}

AGAIN = signal.SIGRTMAX                 # never sent, only simulated
AGAIN_AFTER = 0.001                     # seconds
AGAIN_TIME = 0.05


class CallbackInterrupted(BaseException):
    """Ends a callback of the loop.  KeyboardInterrupt would end the loop, and with it the process."""


class Cell:
    """One that awaits, whose task can be cancelled."""

    def __init__(self, task):
        self.task = task
        self.interrupted = False

    def cancel(self):
        if self.task.cancel():
            self.interrupted = True


cell = None
last = 0                                # when there was an effect


def interrupt(number, frame):
    what, handle = find(frame)
    if what is KeyboardInterrupt:
        raise_in_cell()
    if cell is not None:                # safe in a handler of signals, and wakes the loop
        cell.task.get_loop().call_soon_threadsafe(cell.cancel)
    interrupt_callback(what, handle, monotonic() + AGAIN_TIME)


def raise_in_cell():
    global last
    last = monotonic()
    raise KeyboardInterrupt


def interrupt_callback(what, handle, end):
    if what is CallbackInterrupted:
        raise CallbackInterrupted
    if handle is not None and monotonic() < end:
        try_again(handle, end)


def try_again(handle, end):
    """A callback of the user's is in ipykernel's code for a moment, as for print()."""
    def again(number, frame):
        what, running = find(frame)
        if running is handle:
            interrupt_callback(what, handle, end)

    signal.signal(AGAIN, again)
    timer = Timer(AGAIN_AFTER, interrupt_main, (AGAIN,))
    timer.daemon = True
    timer.start()


def find(frame):
    """What can be raised in this frame, or None; and the handle of the user's callback or task that runs there."""
    below = None
    innermost = frame
    user = kernel = in_cell = False

    while frame is not None:
        code = frame.f_code

        if code is TRACEBACK and monotonic() - last < TRACEBACK_TIME:
            return None, None           # or the error would be lost

        if code in CELL:
            return KeyboardInterrupt, None

        if code is RUN_CODE and below is not None and below.f_code is frame.f_locals.get("code_obj"):
            return KeyboardInterrupt, None

        if code is RUN_CELL:
            in_cell = True

        if code is RUN_HANDLE:
            handle = frame.f_locals.get("self")
            if in_cell or handle is None:
                return None, None
            if not user and frame is innermost:
                user = is_foreign(handle._callback)
            if not user:
                return None, None
            if kernel:
                return None, handle
            return (KeyboardInterrupt if is_in_cell(frame) else CallbackInterrupted), handle

        if code is RUN_CALLBACK:
            if frame is innermost:
                user = is_foreign(frame.f_locals.get("callback"))
        else:
            module = str(frame.f_globals.get("__name__")).partition(".")[0]
            if module in KERNEL:
                kernel = True
            elif module not in ANYBODY:
                user = True

        below, frame = frame, frame.f_back

    return None, None


def is_in_cell(frame):
    """A loop in a loop, as nest_asyncio has it."""
    while frame is not None and frame.f_code not in CELL:
        frame = frame.f_back
    return frame is not None


def is_foreign(callback):
    """A function in C, which has no frame: the loop itself and ipykernel call none but those of futures."""
    while isinstance(callback, partial):
        callback = callback.func
    return isinstance(callback, BuiltinFunctionType) and not asyncio.isfuture(callback.__self__)


# ---- where all that takes hold

def arm(kernel):
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    signal.signal(signal.SIGINT, interrupt)


def armed_from_the_start(start):
    @wraps(start)
    def armed_start(kernel):
        start(kernel)
        arm(kernel)
    return armed_start


def guarded(run):
    """Handle._run() catches what a callback raises, but not what a second interrupt raises in that moment."""
    @wraps(run)
    def guarded_run(handle):
        try:
            run(handle)
        except CallbackInterrupted:
            pass
    return guarded_run


@contextmanager
def cancel_on_interrupt(kernel, task):
    """Instead of ipykernel's own, which does not wake the loop: a cell that waits went on waiting."""
    global cell
    outer, cell = cell, Cell(task)
    try:
        yield
    finally:
        cell = outer


def interrupted_cell(error):
    """It was cancelled, or what it awaits was ended."""
    return cell is not None and cell.interrupted and isinstance(error, (asyncio.CancelledError, CallbackInterrupted))


def told_as_interrupt(run_code):
    """A cell that was cancelled by an interrupt ends with KeyboardInterrupt, as any other."""
    @wraps(run_code)
    async def run_and_tell(shell, code_obj, result=None, **more):
        failed = await run_code(shell, code_obj, result, **more)
        if result is not None and interrupted_cell(result.error_in_exec):
            result.error_in_exec = KeyboardInterrupt()
        return failed
    return run_and_tell


def shown_as_interrupt(get_error):
    @wraps(get_error)
    def error_to_show(shell, *args, **more):
        kind, error, trace = get_error(shell, *args, **more)
        if interrupted_cell(error):
            return KeyboardInterrupt, KeyboardInterrupt(), trace
        hide_handler(trace)
        return kind, error, trace
    return error_to_show


def hide_handler(trace):
    while trace is not None:
        if trace.tb_next is not None and trace.tb_next.tb_frame.f_code is interrupt.__code__:
            trace.tb_next = None
        trace = trace.tb_next


def install():
    IPythonKernel.pre_handler_hook = IPythonKernel.post_handler_hook = arm
    IPythonKernel.start = armed_from_the_start(IPythonKernel.start)
    IPythonKernel._cancel_on_sigint = cancel_on_interrupt
    InteractiveShell.run_code = told_as_interrupt(InteractiveShell.run_code)
    InteractiveShell._get_exc_info = shown_as_interrupt(InteractiveShell._get_exc_info)
    Handle._run = guarded(Handle._run)
