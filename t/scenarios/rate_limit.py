#!/usr/bin/python3
"""A Jupyter Server whose iopub rate limits were left on: what it throws away is told as an event."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

# 2.x has them elsewhere, and each version passes over what it does not know
OPTIONS = " ".join("--%s.%s" % (owner, option) for owner in ("ServerApp", "ZMQChannelsWebsocketConnection")
                   for option in ("limit_rate=True", "iopub_msg_rate_limit=100", "iopub_data_rate_limit=100000"))


class Limited(Server):
    def start(self):
        self.env["JUPYTER_OPTIONS"] = OPTIONS
        super().start()


@scenario(rounds=1, many=20)
def limited(server, rounds):
    context = server.create_context()
    for i in range(rounds):
        for what, code in (("message", "for i in range(2000): print(i, flush=True)"),
                           ("data", "for i in range(20): print('-' * 30000, flush=True)")):
            a = server.run(code + "\n'the end'", context_id=context)
            is_(told(a), "ok", "%s: the code ends" % what)
            dropped = [e for e in a.all() if e["type"] == "output_dropped"]
            ok(dropped and all("%s_rate_limit" % k in dropped[0]["reason"] for k in ("msg", "data")),
               "it is told that output is missing, and which settings do it", a.types()[-5:])
            time.sleep(3.5)         # Jupyter counts over three seconds
        words = "IOPub data rate exceeded.\\nThe Jupyter server"
        a = server.run("import sys; print('%s', file=sys.stderr)" % words, context_id=context)
        is_((told(a), "output_dropped" in a.types()), ("ok", False), "code that prints the same words is no notice")


main(lambda workers: Limited(workers), workers=(1,))
