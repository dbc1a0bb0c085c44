#!/usr/bin/python3
"""Requests bring Jupyter's token, or locations have one each: nobody is served by what another one's token opened."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faulty import *

BY_REQUEST, WRONG = free_port(), free_port()

# Jupyter's sessions are asked for with the first token that no request is needed for: it has to be the right one
HTTP = "".join("server { listen 127.0.0.1:%d; large_client_header_buffers 4 16k; set $wrong wrong; "
               "location / { kexec_pass http://jupyter; kexec_token %s; } }\n" % pair
               for pair in ((BY_REQUEST, "$http_x_jupyter"), (WRONG, "$wrong")))


def execute(port, context, code, token=None):
    headers = {"X-Jupyter": token} if token else None
    return Stream(port, "POST", "/execute", {"code": code, "context_id": context}, headers)


@scenario(many=10, http=HTTP)
def each_its_own(server, rounds):
    """A link that is open serves no request with another token: Jupyter says what that is worth."""
    context = server.create_context()
    right = server.jupyter.token
    for i in range(rounds):
        for name, port, token in (("a wrong one", BY_REQUEST, "wrong"), ("none", BY_REQUEST, None),
                                  ("one that begins like it", BY_REQUEST, right[:-1]),
                                  ("another location's", WRONG, None)):
            server.usable(context)
            mark = server.jupyter.mark()
            a = gather([execute(port, context, "print a", token)], 10)[0]
            is_(verdict(a), "JupyterUnavailable", "%s is refused" % name)
            like(value(a), "token.*did not run", "in words")
            is_(server.jupyter.log(mark, ev="execute", code="print a"), [], "its code is not sent")
        a = gather([execute(BY_REQUEST, context, "print a", right)], 10)[0]
        is_((verdict(a), a.text()), ("ok", "a\n"), "the right one is served")
        server.usable(context)


def resident(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) * 1024


@scenario(rounds=150, many=1000, http=HTTP)
def memory(server, rounds):
    """Tokens that change with each request leave nothing behind."""
    context = server.create_context()
    pid = server.workers()[0]

    def some(n):
        for i in range(n):
            a = gather([execute(BY_REQUEST, context, "print a", "%d-%s" % (i, "x" * 8000))], 10)[0]
            b = gather([execute(BY_REQUEST, context, "print b", server.jupyter.token)], 10)[0]
            if (verdict(a), verdict(b)) != ("JupyterUnavailable", "ok"):
                yield "%d: %s, %s" % (i, verdict(a), verdict(b))

    none(list(some(30)), "the first ones")
    before = resident(pid)
    none(list(some(rounds)), "%d more" % rounds)
    memory_within(resident(pid) - before, 1e6 + 1000 * rounds, "nothing is left of them")


main(Faulty, workers=(1,), jobs=10)
