#!/usr/bin/python3
"""A kernel whose port was taken by somebody else ends at once: then Jupyter starts another one, with other ports."""

import json
import os
import socket
import subprocess
import tempfile
import unittest

from kernel import ROOT, TIMEOUT

SPEC = os.path.join(ROOT, "docker", "kernels", "python3")


class PortsTest(unittest.TestCase):
    def test_each(self):
        with open(os.path.join(SPEC, "kernel.json")) as f:
            argv = json.load(f)["argv"]
        for taken in "shell_port", "iopub_port", "stdin_port", "control_port":
            with socket.socket() as other, tempfile.TemporaryDirectory() as directory:
                other.bind(("127.0.0.1", 0))
                other.listen()
                path = os.path.join(directory, "connection.json")
                with open(path, "w") as f:
                    json.dump({taken: other.getsockname()[1], "ip": "127.0.0.1", "transport": "tcp", "key": "k",
                               "signature_scheme": "hmac-sha256"}, f)
                words = [word.replace("{connection_file}", path).replace("{resource_dir}", SPEC) for word in argv]
                done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, timeout=TIMEOUT)
                self.assertEqual((done.returncode, b"no port for the kernel" in done.stderr), (1, True), taken)


if __name__ == "__main__":
    unittest.main()
