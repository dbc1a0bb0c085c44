"""A Jupyter kernel for bash."""

import os
import subprocess
import sys

from ipykernel.kernelapp import IPKernelApp

HERE = os.path.dirname(os.path.abspath(__file__))

sys.path.insert(0, os.path.join(HERE, "../lib"))

from child import ChildKernel, Failure  # noqa: E402


class BashKernel(ChildKernel):
    implementation = "kexec_bash"
    language = "bash"
    banner = "bash"
    language_info = {
        "name": "bash",
        "version": subprocess.check_output(
            ["bash", "-c", "echo -n $BASH_VERSION"], text=True),
        "mimetype": "text/x-sh",
        "file_extension": ".sh",
    }

    def argv(self):
        # The code is a file, so that "return" and the line numbers in bash's
        # own messages ("/dev/fd/250: line 1: ...") are its.

        with open(os.path.join(HERE, "loop.sh")) as loop:
            return ["bash", "-c", loop.read(), "bash"]

    def outcome(self, answer):
        *exited, status = answer.split()
        status = int(status)

        # The next shell has the state of one that said how it ended.

        if exited:
            how = self.start_again()

            if "signal" in how:
                raise Failure("ProcessExited", how + "; a new one has its "
                              "variables")

        if status == 130 and self.interrupted:
            raise Failure("KeyboardInterrupt", "")

        if status != 0:
            raise Failure("ExitError", str(status))


if __name__ == "__main__":
    IPKernelApp.launch_instance(kernel_class=BashKernel)
