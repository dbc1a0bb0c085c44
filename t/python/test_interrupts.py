#!/usr/bin/python3
"""What SIGINT ends: the code of a cell, and what an earlier one left behind; never the kernel, nor the next cell."""

import time
import unittest

from kernel import TIMEOUT, KernelTest

SOON = 10                               # seconds; what is interrupted would take a minute and more
LEFT_BEHIND = {
    "a function of Python's own": "asyncio.get_running_loop().call_later(0, time.sleep, 10**8)",
    "a function": "asyncio.get_running_loop().call_soon(spin)",
    "a function with arguments": "asyncio.get_running_loop().call_soon(functools.partial(spin, 1))",
    "a task": "task = asyncio.get_running_loop().create_task(block())",
    "a task, later": "task = asyncio.get_running_loop().create_task(block(0))",
    "a lock": "lock = threading.Lock(); lock.acquire(); asyncio.get_running_loop().call_soon(lock.acquire)",
    "a program": "asyncio.get_running_loop().call_soon(subprocess.run, ['sleep', '1000'])",
    "a function that prints": "asyncio.get_running_loop().call_soon(chatter)",
    "a callback of tornado's": "tornado.ioloop.IOLoop.current().add_callback(spin)",
    "a timer of tornado's": "tornado.ioloop.IOLoop.current().call_later(0, time.sleep, 10**8)",
    "a reader": "r, w = os.pipe(); os.write(w, b'x'); asyncio.get_running_loop().add_reader(r, left_reader, r)",
    "a function that catches exceptions": "asyncio.get_running_loop().call_soon(catch)",
}
SETUP = """
import asyncio, functools, os, subprocess, sys, threading, time, tornado.ioloop
x = 7
begun = None
def spin(*args):
    while True:
        pass
def catch():
    while True:
        try:
            time.sleep(1)
        except Exception:
            pass
def chatter():
    while True:
        print("x" * 100, end="")
def left_reader(fd):
    asyncio.get_running_loop().remove_reader(fd)
    spin()
async def block(first=None):
    if first is not None:
        await asyncio.sleep(first)
    time.sleep(10**8)
"""


class InterruptTest(KernelTest):
    def setUp(self):
        self.assertEqual(self.main_result("%s\nos.getpid(), x" % SETUP), "(%d, 7)" % self.pid)

    def main_result(self, code):
        """Whatever else is told: asyncio tells of tasks that failed when they are collected."""
        text, = (c["data"]["text/plain"] for kind, c in self.messages(code) if kind == "execute_result")
        return text

    @property
    def pid(self):
        return self.manager.provisioner.pid

    def tearDown(self):
        self.assertTrue(self.manager.is_alive())

    def interrupt_until(self, test):
        """As the module does it; a single one may come at a moment when it must have no effect."""
        end = time.monotonic() + SOON
        while not test(0.1):
            self.assertLess(time.monotonic(), end, "nothing was interrupted")
            self.manager.interrupt_kernel()

    def interrupted(self, code):
        """The error's name and traceback of code that prints once it runs."""
        request = self.client.execute(code, stop_on_error=False)
        while self.take(self.client.get_iopub_msg, request)["msg_type"] != "stream":
            pass
        reply = None

        def ended(timeout):
            nonlocal reply
            reply = self.poll(self.client.get_shell_msg, request, timeout)
            return reply

        self.interrupt_until(ended)
        while True:
            message = self.take(self.client.get_iopub_msg, request)
            if message["content"].get("execution_state") == "idle":
                break
        self.assertEqual(reply["content"]["status"], "error", reply)
        return reply["content"]["ename"], "\n".join(reply["content"]["traceback"])

    def take(self, get, request):
        message = self.poll(get, request, TIMEOUT)
        self.assertIsNotNone(message)
        return message


class Cells(InterruptTest):
    def check(self, code, line=None):
        name, traceback = self.interrupted(code)
        self.assertEqual(name, "KeyboardInterrupt")
        self.assertIn("----> 2 " + (line or code.splitlines()[1]), traceback)
        self.assertNotIn("kexec_kernel", traceback)
        self.assertNotIn("Cancelled", traceback)
        self.assertEqual(self.text("x"), "7")

    def test_code(self):
        self.check("print(1)\ntime.sleep(60)")

    def test_await(self):
        self.check("print(1)\nawait asyncio.sleep(60)")

    def test_await_of_several(self):
        self.check("print(1)\nawait asyncio.gather(*(asyncio.sleep(60) for _ in range(3)))")

    def test_await_of_a_task(self):
        self.check("print(1)\nawait asyncio.create_task(asyncio.sleep(60))")

    def test_await_of_a_thread(self):
        self.check("print(1)\nawait asyncio.get_running_loop().run_in_executor(None, threading.Event().wait, 5)")

    def test_code_between_awaits(self):
        self.check("await asyncio.sleep(0); print(1)\ntime.sleep(60)")

    def test_await_behind_a_task_that_blocks(self):
        self.check("print(1)\nawait asyncio.create_task(block(.1))")

    def test_children_of_an_await_end(self):
        code = "ended = []\nasync def child():\n try: print(1); await asyncio.sleep(60)\n finally: ended.append(1)\n" \
               "await asyncio.gather(child(), child())"
        self.interrupted(code)
        self.assertEqual(self.text("str(ended)"), "'[1, 1]'")

    def test_await_that_is_cleaned_up(self):
        self.interrupted("try:\n print(1)\n await asyncio.sleep(60)\nfinally: x = 8")
        self.assertEqual(self.text("x"), "8")

    def test_cancelled_by_itself(self):
        name, traceback = self.error("await asyncio.sleep(0)\nraise asyncio.CancelledError('own')")
        self.assertEqual(name, "CancelledError")
        self.assertIn("own", traceback)

    def test_the_users_handler_ends_with_the_cell(self):
        self.results("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN);")
        self.check("print(1)\ntime.sleep(60)")

    def test_blocked_by_the_user(self):
        self.results("import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]);")
        self.check("print(1)\ntime.sleep(60)")

    def error(self, code):
        shown = self.messages(code)
        errors = [content for kind, content in shown if kind == "error"]
        self.assertEqual(len(errors), 1, shown)
        return errors[0]["ename"], "\n".join(errors[0]["traceback"])


class LeftBehind(InterruptTest):
    def test(self):
        for name, code in LEFT_BEHIND.items():
            with self.subTest(name):
                self.messages(code + "\nx = %r" % name)
                request = self.client.execute("x", stop_on_error=False)
                self.interrupt_until(lambda timeout: self.poll(self.client.get_shell_msg, request, timeout))
                self.assertEqual(self.main_result("x"), repr(name))
                self.assertTrue(self.manager.is_alive())

    def test_what_awaits_goes_on(self):
        self.messages("async def wait():\n await asyncio.sleep(1.5)\n return 'done'\ntask = asyncio.create_task(wait())")
        for _ in range(10):
            self.manager.interrupt_kernel()
            time.sleep(0.01)
        self.assertEqual(self.main_result("await task"), "'done'")


class NothingRuns(InterruptTest):
    def test_storm(self):
        """Interrupts at any moment between and around cells that are short: none ends the kernel, none hangs it."""
        end = time.monotonic() + 3
        n = 0
        while time.monotonic() < end:
            request = self.client.execute("x", stop_on_error=False)
            for _ in range(n % 4):
                self.manager.interrupt_kernel()
            n += 1
            # one that hits ipykernel while it makes the reply eats that; idle always comes
            while True:
                message = self.take(self.client.get_iopub_msg, request)
                if message["content"].get("execution_state") == "idle":
                    break
        self.assertEqual(self.text("x"), "7")


if __name__ == "__main__":
    unittest.main()
