"""A Jupyter kernel for JavaScript and TypeScript, which node runs."""

import json
import os
import subprocess
import sys

from ipykernel.kernelapp import IPKernelApp
from traitlets import Unicode

HERE = os.path.dirname(os.path.abspath(__file__))

sys.path.insert(0, os.path.join(HERE, "../lib"))

from child import ChildKernel, Failure  # noqa: E402


# Once: an interrupt would end it as well.

VERSION = subprocess.check_output(["node", "--version"], text=True)


class NodeKernel(ChildKernel):
    implementation = "kexec_node"
    language = Unicode("javascript").tag(config=True)
    banner = "node"
    gated = True

    @property
    def language_info(self):
        typed = self.language == "typescript"

        return {
            "name": self.language,
            "version": VERSION.strip().lstrip("v"),
            "mimetype": "text/typescript" if typed else "text/javascript",
            "file_extension": ".ts" if typed else ".js",
        }

    def argv(self):
        return ["node", os.path.join(HERE, "loop.js"), self.language]

    def outcome(self, answer):
        answer = json.loads(answer)

        if "data" in answer:
            return answer["data"]

        raise Failure(answer["name"], answer["value"], answer["traceback"])


if __name__ == "__main__":
    IPKernelApp.launch_instance(kernel_class=NodeKernel)
