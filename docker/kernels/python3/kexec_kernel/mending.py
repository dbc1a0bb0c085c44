"""What the user's code breaks of what ipykernel itself needs is put right behind it; what it replaces by something that
works stays.  A cell that ipykernel cannot tell the end of is answered all the same."""

import asyncio
import builtins
import datetime
import importlib
import inspect
import io
import json
import linecache
import os
import select
import signal
import sys
import threading
import time
import traceback
from functools import wraps

from IPython.core.interactiveshell import InteractiveShell
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from jupyter_client import session

MODULES = (builtins, asyncio, datetime, inspect, io, json, linecache, os, select, signal, sys, threading, time, traceback)

whole = [(vars(module), {name: value for name, value in vars(module).items()
                         if callable(value) or module is linecache and name == "cache"}) for module in MODULES]
modules = dict(sys.modules)
is_callable = callable                  # that may be broken as well


def mend():
    for names, values in whole:
        for name in changed(values, names):
            now = names.get(name)
            if now is None or is_callable(values[name]) and not is_callable(now):
                names[name] = values[name]
    if "builtins" not in sys.modules:
        sys.modules.update(modules)


def changed(values, names):
    try:
        if values.items() <= names.items():     # fast, but may compare what the user put there
            return ()
    except Exception:
        pass
    return [name for name in values if names.get(name) is not values[name]]


def mend_namespace(shell):
    names = shell.user_ns
    if not isinstance(names, dict):
        shell.user_ns = names = {}
    if names.get("__builtins__") is not vars(builtins):
        names["__builtins__"] = builtins
    if "_oh" not in names:              # cleared as a whole
        shell.init_user_ns()


def mended(run_code):
    @wraps(run_code)
    async def run_and_mend(shell, code_obj, result=None, **more):
        try:
            failed = await run_code(shell, code_obj, result, **more)
        finally:
            mend()
            mend_namespace(shell)
        if result is not None and result.error_in_exec is not None:
            result.error_in_exec = tellable(result.error_in_exec)
        return failed
    return run_and_mend


def tellable(error):
    """Its own str() may fail."""
    try:
        str(error)
        return error
    except Exception as failure:
        text = "%s in str() of this exception" % type(failure).__name__
        return type(type(error).__name__, (Exception,), {})(text)


def shown_if_tellable(get_error):
    @wraps(get_error)
    def error_to_show(shell, *args, **more):
        kind, error, trace = get_error(shell, *args, **more)
        told = tellable(error)
        return (kind if told is error else type(told)), told, trace
    return error_to_show


def answered(execute_request):
    @wraps(execute_request)
    async def execute_and_answer(kernel, stream, ident, parent):
        try:
            await execute_request(kernel, stream, ident, parent)
        except Exception as error:
            mend()
            told = tellable(error)
            kernel.session.send(stream, "execute_reply", {
                "status": "error", "ename": type(told).__name__, "evalue": str(told),
                "traceback": traceback.format_exception(told), "execution_count": kernel.shell.execution_count,
                "payload": [], "user_expressions": {}}, parent, ident=ident)
    return execute_and_answer


def started_again(start):
    @wraps(start)
    def start_until_exit(app):
        """The code may stop the loop that it runs in."""
        start(app)
        while app.shell is not None and not app.shell.exit_now:
            app.io_loop.start()
    return start_until_exit


def own_copy(name):
    """A module that the user's code does not get to see."""
    names = [n for n in sys.modules if n == name or n.startswith(name + ".")]
    kept = {n: sys.modules.pop(n) for n in names}
    try:
        return importlib.import_module(name)
    finally:
        sys.modules.update(kept)


def install():
    InteractiveShell.run_code = mended(InteractiveShell.run_code)
    InteractiveShell._get_exc_info = shown_if_tellable(InteractiveShell._get_exc_info)
    IPythonKernel.execute_request = answered(IPythonKernel.execute_request)
    IPKernelApp.start = started_again(IPKernelApp.start)
    session.json = own_copy("json")
