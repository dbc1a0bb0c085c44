#!/usr/bin/python3
"""What the user's code breaks of what the kernel needs: the cell ends, the next one runs."""

import unittest

from kernel import KernelTest

BREAK = (
    "import json; json.dumps = None", "import json; json.dumps = lambda value: 5", "import json; json.JSONEncoder = None",
    "import json; json.loads = None", "import builtins; builtins.print = None", "import builtins; builtins.len = 5",
    "import builtins; builtins.str = builtins.isinstance = None", "import builtins; del builtins.type",
    "import builtins; builtins.callable = None",
    "import builtins; builtins.__import__ = None", "import builtins; builtins.exec = builtins.eval = None",
    "import sys; sys.modules.clear()", "import sys; sys.modules['json'] = None", "import sys; sys.excepthook = None",
    "import sys; sys.setrecursionlimit(60)", "import sys; sys.stdin.close()", "import time; time.sleep = None",
    "import time; time.time = time.monotonic = None", "import os; os.getpid = os.write = None",
    "import threading; threading.Event = None", "import signal; signal.signal = None",
    "import asyncio; asyncio.get_event_loop = None", "import asyncio; asyncio.get_event_loop().stop()",
    "import asyncio; asyncio.set_event_loop(None)", "import datetime; datetime.datetime = None",
    "import inspect; inspect.isawaitable = None", "import linecache; linecache.cache = None", "import io; io.StringIO = None",
    "__builtins__ = None", "__name__ = None", "globals().clear()", "get_ipython().user_ns = None", "%reset -f",
    "del In, Out, get_ipython",
)


class Mending(KernelTest):
    def test(self):
        for code in BREAK:
            with self.subTest(code):
                self.messages(code)
                self.assertEqual(self.text("6 * 7"), "42")
                (_, content), = self.messages("print('hi', end='')")
                self.assertEqual(content["text"], "hi")

    def test_what_works_stays(self):
        self.messages("import builtins, time\nbuiltins.abs = time.sleep = lambda *args: 'mine'")
        self.assertEqual(self.text("abs(1), time.sleep(2)"), "('mine', 'mine')")

    def test_errors_that_cannot_be_told(self):
        for code, name, value in (
                ("class E(Exception):\n def __str__(self): raise ValueError\n __repr__ = __str__\nraise E",
                 "E", "ValueError in str() of this exception"),
                ("class E(Exception):\n def _render_traceback_(self): return 5\nraise E", "TypeError", None)):
            with self.subTest(code):
                request = self.client.execute(code, stop_on_error=False)
                reply = self.poll(self.client.get_shell_msg, request, 30)["content"]
                self.assertEqual((reply["status"], reply["ename"]), ("error", name))
                self.assertIn(reply["evalue"] if value is None else value, reply["evalue"])
                self.assertEqual(self.text("42"), "42")


class Exit(KernelTest):
    def test(self):
        """The loop goes on when the code stops it, but not then."""
        self.client.execute("exit()")
        self.assertEqual(self.manager.provisioner.process.wait(30), 0)


if __name__ == "__main__":
    unittest.main()
