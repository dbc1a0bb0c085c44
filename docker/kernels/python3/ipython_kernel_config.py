# ipykernel throws output away when a thousand messages wait to be sent
# (ZeroMQ's high-water mark), the "idle" that ends an execution among them.
# There is no setting for the mark.  It counts only when it is set before the
# socket is bound, which is before any start-up file runs, so the one method
# that makes the socket is wrapped: while it runs, sockets are made without a
# mark.  This file may be read twice, so it does no harm to wrap it again.
# Nothing of this is seen by the user's code.

from ipykernel.kernelapp import IPKernelApp
from zmq import SNDHWM


def lift_mark(make_socket):
    def init_iopub(self, context):
        context.sockopts[SNDHWM] = 0

        try:
            make_socket(self, context)
        finally:
            context.sockopts.pop(SNDHWM, None)

    return init_iopub


IPKernelApp.init_iopub = lift_mark(IPKernelApp.init_iopub)
