#!/usr/bin/python3
"""A kernel that is interrupted while it starts goes on: who interrupts cannot know what the process is at."""

import os
import signal
import threading
import time
import unittest

from kernel import KernelTest


class StartTest(KernelTest):
    @classmethod
    def interrupt(cls):
        """As Jupyter does it."""
        os.killpg(cls.manager.provisioner.pgid, signal.SIGINT)

    @classmethod
    def program(cls):
        with open("/proc/%d/cmdline" % cls.manager.provisioner.pid) as f:
            return f.read().split("\0")[0]

    @classmethod
    def started(cls):
        while "python" not in cls.program():
            time.sleep(0.001)

        cls.ready = cls.interrupts(0.01)

    @classmethod
    def interrupts(cls, pause):
        """Again and again, until the event that it returns is set."""
        over = threading.Event()
        cls.addClassCleanup(over.set)

        def run():
            while not over.wait(pause):
                cls.interrupt()

        threading.Thread(target=run).start()
        return over

    def test(self):
        self.ready.set()
        self.assertEqual(self.text("6 * 7"), "42")

    def test_code(self):
        """What runs later can be interrupted as ever, programs too."""
        self.ready.set()
        for code in "import time; time.sleep(1000)", "import subprocess; subprocess.run(['sleep', '1000'])":
            over = self.interrupts(3)       # the next one would eat the error of the last
            shown = self.messages(code)
            over.set()
            self.assertEqual([c["ename"] for kind, c in shown if kind == "error"], ["KeyboardInterrupt"])


if __name__ == "__main__":
    unittest.main()
