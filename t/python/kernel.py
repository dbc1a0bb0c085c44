"""A kernel of docker/kernels/python3, as Jupyter starts it."""

import os
import subprocess
import tempfile
import time
import unittest
from queue import Empty

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNELS = os.path.join(ROOT, "docker", "kernels")
TIMEOUT = 60


class KernelTest(unittest.TestCase):
    """One kernel for all tests of a class, in a home of its own."""

    kernel = "python3"
    startup = {}            # start-up files of the user's profile, by name
    config = ""             # the profile's own configuration

    @classmethod
    def setUpClass(cls):
        home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(home.cleanup)
        cls.home = home.name
        profile = os.path.join(cls.home, "profile_default")
        os.makedirs(os.path.join(profile, "startup"))
        for name, text in cls.startup.items():
            cls.write(os.path.join(profile, "startup", name), text)
        cls.write(os.path.join(profile, "ipython_kernel_config.py"), cls.config)

        # jupyter_client picks ports that are free, and somebody else may be quicker to take one: that kernel ends
        while not cls.start():
            print("a port of the kernel was taken, another kernel is tried")

    @classmethod
    def start(cls):
        manager = KernelManager(kernel_name=cls.kernel,
                                kernel_spec_manager=KernelSpecManager(kernel_dirs=[KERNELS]))
        errors = os.path.join(cls.home, "stderr")
        env = {**os.environ, "IPYTHONDIR": cls.home, "PYDEVD_DISABLE_FILE_VALIDATION": "1", "JPY_PARENT_PID": ""}
        with open(errors, "w") as stderr:
            manager.start_kernel(env=env, cwd=cls.home, stdout=subprocess.DEVNULL, stderr=stderr)
        cls.addClassCleanup(manager.shutdown_kernel, now=True)
        cls.manager = manager
        cls.started()
        cls.client = manager.client()
        cls.client.start_channels()
        cls.addClassCleanup(cls.client.stop_channels)
        try:
            cls.client.wait_for_ready(timeout=TIMEOUT)
            return True
        except RuntimeError:
            with open(errors) as f:
                text = f.read()
            if "Address already in use" not in text:
                print(text)
                raise

    @classmethod
    def started(cls):
        """Its process is there, not more."""

    @staticmethod
    def write(path, text):
        with open(path, "w") as f:
            f.write(text)

    def messages(self, code):
        """(type, content) of what the code shows."""
        shown = []

        def take(message):
            if message["msg_type"] not in ("status", "execute_input"):
                shown.append((message["msg_type"], message["content"]))

        self.client.execute_interactive(code, output_hook=take, timeout=TIMEOUT, stop_on_error=False)
        return shown

    def poll(self, get, request, timeout):
        """The next message that belongs to that request, or None."""
        end = time.monotonic() + timeout
        while True:
            try:
                message = get(timeout=max(end - time.monotonic(), 0.001))
            except Empty:
                return None
            if message["parent_header"].get("msg_id") == request:
                return message

    def results(self, code):
        """The MIME bundles alone; nothing else may have come."""
        shown = self.messages(code)
        self.assertEqual({kind for kind, _ in shown} - {"execute_result", "display_data"}, set(), shown)
        return [content["data"] for _, content in shown]

    def result(self, code):
        results = self.results(code)
        self.assertEqual(len(results), 1, results)
        return results[0]

    def text(self, code):
        return self.result(code)["text/plain"]
