#!/usr/bin/python3
"""Ordinary Python code that keeps its kernel busy after its end: the context is usable again, with its variables where an interrupt helps."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

READY, INTERRUPT = 8, 6
CONF = "kexec_ready_timeout %ds; kexec_interrupt_timeout %ds; kexec_keepalive 1s;" % (READY, INTERRUPT)
BLOCK = "import asyncio, time\nx = 1\n"

# what is left behind, and whether an interrupt can end it
LEFT = {
    "call_later": (BLOCK + "_ = asyncio.get_event_loop().call_later(0.3, time.sleep, 10**8)", True),
    "create_task": (BLOCK + "async def block():\n    await asyncio.sleep(0.3)\n    time.sleep(10**8)\n"
                    "t = asyncio.get_event_loop().create_task(block())", True),
    "SIGSTOP": (BLOCK + "import os, signal, subprocess\n"
                "_ = subprocess.Popen(['sh', '-c', 'sleep 0.3; kill -STOP %d' % os.getpid()])", False),
}


@scenario(rounds=1, many=20, quick=(1,))
def left(server, rounds):
    """Who comes next leaves, or waits: what was left behind is ended."""
    for i in range(rounds):
        for name, (code, helps) in LEFT.items():
            for leaves in True, False:
                context = server.create_context()
                is_(told(server.run(code, context_id=context)), "ok", name + ": its own execution ends well")
                time.sleep(0.8)                         # 0.3 s is when it begins
                a = server.execute("1", context)
                if leaves:
                    a.wait_head(10)
                    a.close()
                else:
                    is_(told(a), "KernelNotReady", name + ": who waits is told")
                begun = time.monotonic()
                while True:
                    b = server.run("x", context_id=context)
                    if told(b) != "ContextRestarted" or helps:
                        break
                is_((told(b), result(b)), ("ok", "1") if helps else ("NameError", None), name + ": usable again, " +
                    ("with its variables" if helps else "in a new process"))
                within(b.finished_at - begun, 5 + (0 if helps else INTERRUPT + 4), "in time")


main(lambda workers: Server(workers, CONF))
