#!/usr/bin/python3
"""The kernels with a child of theirs: an interrupt ends the cell that runs when it comes, and no later one.

    ROUNDS      cells per language that are interrupted at moments of chance
"""

import os
import random
import signal
import time
import unittest

import psutil
from kernel import ROOT, TIMEOUT, KernelTest

os.environ["NODE_PATH"] = os.path.join(ROOT, "build", "node", "node_modules")
ROUNDS = int(os.environ.get("ROUNDS", "10"))


class LateInterrupts(KernelTest):
    """A storm of interrupts, a request that Jupyter answers behind them, and the next cell."""

    kernel = "javascript"
    before, after = "x = 42", "x"
    cells = [
        "1",
        "for (;;);",
        "await new Promise(() => {})",
        "(async () => { await new Promise(() => {}) })()",
        "for (let i = 0; i < 1e6; i++); await null; ({})",
        "await new Promise((done) => setTimeout(done, 5)); new Date()",
        "require('child_process').execSync('sleep 60')",
        "await null; require('child_process').execSync('sleep 60')",
        "try { for (;;); } finally { for (;;); }",
        "[1, 2, 3].map((i) => ({ get then() { for (let j = 0; j < 1e4; j++); } }))",
    ]

    def interrupt(self):
        os.killpg(self.manager.provisioner.pgid, signal.SIGINT)

    def run_cell(self, code, storm=None):
        """The reply's content and what was shown; storm() goes on with interrupts until the reply."""
        request = self.client.execute(code, stop_on_error=False)
        reply = storm(request) if storm else self.poll(self.client.get_shell_msg, request, TIMEOUT)
        self.assertIsNotNone(reply, code)
        shown = ""
        while True:
            message = self.poll(self.client.get_iopub_msg, request, TIMEOUT)
            self.assertIsNotNone(message, code)
            content = message["content"]
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                return reply["content"], shown
            shown += content.get("text", "") or content.get("data", {}).get("text/plain", "")

    def storm(self, request):
        end = time.monotonic() + TIMEOUT
        time.sleep(random.choice([0, random.uniform(0, 0.03)]))
        while time.monotonic() < end:
            for _ in range(random.randint(1, 4)):
                self.interrupt()
                time.sleep(random.choice([0, 0, random.uniform(0, 0.003)]))
            reply = self.poll(self.client.get_shell_msg, request, random.uniform(0, 0.1))
            if reply:
                return reply

    def test_storm(self):
        self.assertEqual(self.run_cell(self.before)[0]["status"], "ok")
        for i in range(ROUNDS):
            for cell in self.cells:
                self.run_cell(cell, self.storm)
                for _ in range(random.randint(0, 4)):
                    self.interrupt()
                fence = self.client.kernel_info()
                self.assertIsNotNone(self.poll(self.client.get_shell_msg, fence, TIMEOUT))
                reply, shown = self.run_cell(self.after)
                self.assertEqual((reply.get("ename", "ok"), shown.strip()), ("ok", "42"),
                                 "after %r, round %d: %s" % (cell, i, reply.get("evalue")))

    def test_each(self):
        """A running cell ends by the interrupts that the module sends, again after 0.1, 0.3, 1 s and so on."""
        for i in range(ROUNDS):
            for cell, says in self.endless:
                request = self.client.execute(cell, stop_on_error=False)
                while says:
                    message = self.poll(self.client.get_iopub_msg, request, TIMEOUT)
                    self.assertIsNotNone(message, cell)
                    if message["content"].get("text", "").strip() == "started":
                        break
                time.sleep(random.choice([0, random.uniform(0, 0.03)]))
                for pause in 0.1, 0.2, 0.7, 1, 2, TIMEOUT / 4:
                    self.interrupt()
                    reply = self.poll(self.client.get_shell_msg, request, pause)
                    if reply:
                        break
                self.assertIsNotNone(reply, "%r, round %d" % (cell, i))
                self.assertEqual(reply["content"]["status"], "error", cell)

    endless = [
        ("console.log('started'); for (;;);", True),
        ("console.log('started'); await new Promise(() => {})", True),
        ("await null; console.log('started'); await new Promise(() => {})", True),
        ("require('child_process').execSync('echo started; sleep 60', { stdio: 'inherit' })", True),
        ("await null; require('child_process').execSync('echo started; sleep 60', { stdio: 'inherit' })", True),
    ]


class Ends(KernelTest):
    """What runs in node's process group, which is not the kernel's, ends with the kernel."""

    kernel = "javascript"

    def test_shutdown(self):
        self.ended(["sleep", "node"], lambda: self.manager.shutdown_kernel())

    def ended(self, names, end):
        self.client.execute("require('child_process').execSync('echo; exec sleep 1000', { stdio: 'inherit' })")
        while self.client.get_iopub_msg(timeout=TIMEOUT)["msg_type"] != "stream":
            pass
        kernel = psutil.Process(self.manager.provisioner.pid)
        processes, deadline = [], time.monotonic() + TIMEOUT
        while {process.name() for process in processes} != set(names):
            self.assertLess(time.monotonic(), deadline)     # the shell becomes sleep behind its echo
            processes = [process for process in kernel.children(recursive=True) if process.name() in names]
            time.sleep(0.05)
        end()
        _, alive = psutil.wait_procs(processes, TIMEOUT)
        self.assertEqual(alive, [])


class EndsByKill(Ends):
    def test_shutdown(self):
        self.ended(["node"], self.kill)

    def kill(self):
        sleep, = [process for process in psutil.Process(self.manager.provisioner.pid).children(recursive=True)
                  if process.name() == "sleep"]
        os.killpg(self.manager.provisioner.pgid, signal.SIGKILL)
        sleep.kill()


class LateInterruptsTypeScript(LateInterrupts):
    kernel = "typescript"


class LateInterruptsBash(LateInterrupts):
    kernel = "bash"
    before, after = "x=42", "echo $x"
    cells = ["true", "echo a", "sleep 60", "while :; do :; done", "for i in {1..1000}; do :; done",
             "f() { sleep 60; echo b; }; f; f", "read -t 60 line < <(sleep 60)", "(sleep 60)", "y=$(sleep 60)"]
    endless = [
        ("echo started; while :; do :; done", True),
        ("echo started; sleep 60", True),
        ("f() { echo started; sleep 60; }; f", True),
        ("(echo started; sleep 60)", True),
    ]


if __name__ == "__main__":
    unittest.main()
