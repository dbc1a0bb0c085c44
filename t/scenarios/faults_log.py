#!/usr/bin/python3
"""What a kernel sends fills no log."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from faulty import *


@scenario(many=10, location="kexec_max_message 64k;")
def skipped(server, rounds):
    """Messages that cannot be read, or are too long: one line for each kind, and one that says how many there were."""
    for i in range(rounds):
        context = server.create_context()
        server.log.mark()
        for n in range(3):
            stream = server.run("bad_json header\n" * 300 + "flood 100 70000\nprint a", context_id=context)
            is_((verdict(stream), stream.text(), dropped(stream)), ("ok", "a\n", True), "told to the client")
        lines = server.log.lines("message.* skipped")
        is_(len(lines), 2, "one line of each kind")
        like(lines[0] + lines[1], "malformed.*longer than kexec_max_message", "which says what it was")
        server.jupyter.kernel(context, "cut")
        server.log.wait("messages from kernel were skipped: longer")
        is_(sorted(int(re.search(r"(\d+) more messages", line).group(1))
                   for line in server.log.lines("more messages from kernel")), [299, 899], "and how many more there were")
        server.usable(context)


main(Faulty, workers=(1,), jobs=10)
