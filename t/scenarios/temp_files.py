#!/usr/bin/python3
"""What all clients' temporary files may take up together, whichever workers have them."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from workers import *

MB = 1 << 20
LIMIT = 32 * MB             # sockets take up to 4 MB each
WHY = "so many clients are slow that kexec_max_temp_files_size is reached"


def slow(server, size, text="x"):
    """A client that reads nothing, of code that has ended."""
    context = server.create_context()
    stream = slow_reader(server, context, "flood %d 10000" % (size // 10000))
    next_one = server.run("print next", context_id=context)
    is_((told(next_one), next_one.text()), ("ok", "next\n"), "the context is free")
    return stream


def fill(server):
    """Slow clients until no more is kept for them."""
    streams = [slow(server, 20 * MB) for i in range(3)]
    size = server.zone()["temp"]
    # one worker's last message may go beyond it; what little the last one had may all be in its socket by now
    ok(LIMIT - 4 * MB < size < LIMIT + MB, "their files take up what is allowed", "%d" % size)
    wait_until(lambda: server.zone()["temp"] == sum(temp_files(server)), 5, "the zone to know it")
    return streams


def whole(server, name):
    """Has room beside one that takes up more than half of it, not beside two."""
    stream = slow(server, 10 * MB)
    ok(told(stream) == "ok" and len(stream.text()) > 9.9 * MB and "output_dropped" not in stream.types(), name,
       stream.all()[-2:])


def dropped(stream, name):
    told(stream)
    is_([e.get("reason") for e in stream.all()[-2:]], [WHY, None], name)


@scenario(rounds=1, many=20)
def limited(server, rounds):
    """More is dropped, and that is told; what is taken or given up leaves room."""
    for i in range(rounds):
        streams = fill(server)
        dropped(streams[2], "who came last is told what is missing")
        is_(told(streams[0]), "ok", "who came first has all of it")
        ok("output_dropped" not in streams[0].types() and len(streams[0].text()) > 19.9 * MB, "nothing is missing")
        # they have read all of it before nginx closes their files
        wait_until(lambda: len(temp_files(server)) == 1 and server.zone()["temp"] == sum(temp_files(server)), 5,
                   "the end of their files")
        whole(server, "then there is room for another one")
        streams[1].reset()
        wait_until(lambda: server.zone()["temp"] == 0, 5, "the end of the files")
        is_(temp_files(server), [], "no files are left")


@scenario(rounds=1, many=20)
def worker_killed(server, rounds):
    """A dead worker's files count no more."""
    server.allowed = KILLED
    for i in range(rounds):
        fill(server)
        for pid in server.workers():
            server.signal(signal.SIGKILL, pid)
            server.replaced(pid)
        wait_until(lambda: server.zone()["temp"] == 0, 10, "the dead workers' part to be given back")
        whole(server, "there is room again")
    server.quiet()


@scenario(rounds=1, many=20)
def reload(server, rounds):
    """Workers that leave count until their clients have gone."""
    for i in range(rounds):
        streams = fill(server)
        server.renew()
        stream = slow(server, 20 * MB)
        dropped(stream, "a new worker has no room")
        for stream in streams:
            stream.reset()
        wait_until(lambda: server.zone()["temp"] == 0, 5, "the end of the files")
        whole(server, "then it has")


main(lambda workers: Workers(workers, "kexec_interrupt_timeout 2s; kexec_buffer_size 32k;", jupyter=ScriptedJupyter(),
                             http="kexec_max_temp_files_size 32m;"), quick=(4,))
