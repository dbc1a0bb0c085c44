"""What makes ipykernel hold whatever the user's code does; loaded by ipython_kernel_config.py, before there is a kernel."""

from . import interrupts, mending, streams


def install():
    interrupts.install()
    streams.install()
    mending.install()
