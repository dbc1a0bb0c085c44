#!/usr/bin/python3
"""How many contexts there may be, how long they may lie idle, and requests that come before Jupyter's first answer."""

import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

CONF = "kexec_ready_timeout 20s; kexec_queue size=1100;"


def with_jupyter(http):
    """A decorator: the scenario's server has a scripted Jupyter and these directives."""
    def wrap(function):
        def run(server, rounds):
            with ScriptedJupyter() as jupyter, Server(server.n_workers, CONF, jupyter, http) as own:
                own.wait_healthy()
                own.log.mark()
                function(own, rounds)
                own.check_log()
        run.__name__ = function.__name__
        return run
    return wrap


class Nobody:
    """In the place of the server that the scenarios don't share."""

    def __init__(self, workers):
        self.n_workers = workers
        self.log = self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def mark(self):
        pass

    def check_log(self):
        pass


def ids(server):
    return [c["id"] for c in server.request("GET", "/contexts").json()]


@scenario()
@with_jupyter("kexec_max_contexts 4;")
def max_contexts(server, rounds):
    """The default one counts, failed ones don't; of many at once just as many as there is room for are made."""
    streams = [server.stream("POST", "/contexts", {}) for _ in range(20)]
    pump_all(streams, lambda: all(s.ended for s in streams))
    is_(sorted(s.status for s in streams), [200] * 3 + [429] * 17, "three of twenty")
    refused = next(s for s in streams if s.status == 429)
    ok(b"kexec_max_contexts" in refused.body and b"delete one" in refused.body, "told why, and what to do",
       bytes(refused.body))
    is_(len(ids(server)), 4, "there are four")
    is_(server.request("POST", "/execute", {"code": "1", "language": "r"}).status, 429, "no default one of a new language")
    is_(told(server.run("print 1")), "ok", "the ones that are there work")
    is_(server.request("DELETE", "/contexts/" + ids(server)[-1]).status, 200, "one is deleted")
    is_(server.request("POST", "/contexts", {"language": "nope"}).status, 400, "one that can't be made")
    is_(server.request("POST", "/contexts", {}).status, 200, "does not take the room")
    is_(server.request("POST", "/contexts", {}).status, 429, "full again")


@scenario()
@with_jupyter("kexec_context_idle_timeout 1500ms;")
def idle_timeout(server, rounds):
    """A context that is used stays, one that is not goes with its kernel; a default one is made anew on its next use."""
    jupyter = server.jupyter
    default = ids(server)[0]
    used, busy, idle = (server.create_context() for _ in range(3))
    stream = server.execute("print 1\nsleep 4", busy)
    end = time.monotonic() + 3.5
    while time.monotonic() < end:
        told(server.run("print 1", context_id=used))
        time.sleep(0.2)
    is_(ids(server), [used, busy], "the idle ones are gone")
    is_(sorted(s["path"][6:42] for s in jupyter.rest("GET", "/api/sessions").json()), sorted([used, busy]),
        "their kernels as well")
    is_(told(stream), "ok", "one that was busy for longer ends well")
    is_(server.request("POST", "/execute", {"code": "1", "context_id": idle}).status, 404, "an idle one is not found")
    is_(told(server.run("print 1")), "ok", "a default one")
    ok(default not in ids(server), "is a new one")
    wait_until(lambda: ids(server) == [], 10, "the end of all")
    is_(jupyter.rest("GET", "/api/sessions").json(), [], "no session is left")


@scenario(workers=(1, 4), quick=(4,))
@with_jupyter("kexec_sync 300ms;")
def early_requests(server, rounds):
    """Jupyter takes a second for its first answer: requests wait for it, and are served as if nothing had been."""
    jupyter = server.jupyter
    context = server.create_context()
    told(server.run("set x 7", context_id=context))
    other = server.create_context()
    before = ids(server)
    jupyter.set(session_list={"delay": 1, "times": 1})
    server.kill()
    server.start_nginx()
    wait_until(lambda: port_answers(server.port), 10, "nginx")
    streams = [server.execute("get x", context), server.execute("print 1"), server.stream("GET", "/contexts"),
               server.stream("POST", "/contexts/%s/interrupt" % other), server.execute("print 2", NOBODY)]
    gone = [server.execute("set x 8", context), server.stream("GET", "/contexts")]
    is_(server.request("GET", "/health").status, 200, "health does not wait for it")
    for stream in gone:
        stream.reset()
    pump_all(streams, lambda: all(s.ended for s in streams))
    is_((told(streams[0]), streams[0].text()), ("ok", "7\n"), "an execution")
    is_(told(streams[1]), "ok", "one in the default context")
    is_([c["id"] for c in json.loads(streams[2].body)], before, "the list")
    is_((streams[3].status, streams[4].status), (200, 404), "an interrupt, an unknown context")
    is_(server.run("get x", context_id=context).text(), "7\n", "whose client left does not run")
    is_(ids(server), before, "no default context was made anew")


@scenario()
@with_jupyter("kexec_sync 300ms;")
def without_jupyter(server, rounds):
    """Jupyter is away when nginx starts: what it knows is not said to be unknown."""
    jupyter = server.jupyter
    context = server.create_context()
    before = ids(server)
    jupyter.down()
    server.kill()
    server.start_nginx()
    wait_until(lambda: port_answers(server.port), 10, "nginx")
    for method, path, body in (("POST", "/execute", {"code": "1", "context_id": context}), ("GET", "/contexts", None),
                               ("POST", "/contexts/%s/restart" % context, None), ("DELETE", "/contexts/" + context, None)):
        answer = server.request(method, path, body)
        is_(answer.status, 503, "%s %s" % (method, path))
        like(answer.body.decode(), "not known yet", "and why")
    jupyter.up()
    server.wait_healthy()
    wait_until(lambda: server.request("GET", "/contexts").status == 200, 10, "the list")
    is_(ids(server), before, "then all are there")


@scenario(rounds=100, many=1000)
@with_jupyter("kexec_sync 300ms;")
def create_and_leave(server, rounds):
    """Clients that ask for a context and leave at any moment: no kernel is left over."""
    server.jupyter.set(start_delay=0.05)
    for i in range(rounds):
        stream = server.stream("POST", "/contexts", {})
        time.sleep(random.uniform(0, 0.02))
        (stream.reset if i % 2 else stream.close)()
    wait_until(lambda: len(server.jupyter.rest("GET", "/api/sessions").json()) == 1, 30, "the default context's session")
    is_(len(ids(server)), 1, "only that context is there")
    is_(told(server.run("print 1")), "ok", "and it works")


NOBODY = "00000000-0000-4000-8000-000000000000"


@scenario(workers=(1, 4), quick=(4,))
@with_jupyter("kexec_context_idle_timeout 1500ms;")
def no_location_any_more(server, rounds):
    """A reload takes the location away: contexts that nobody can reach stay where they are, and so do the workers."""
    files = {}
    for name in "nginx.conf", "http.conf":
        with open(os.path.join(server.run_dir, name)) as f:
            files[name] = f.read()

    def write(change):
        for name, conf in files.items():
            with open(os.path.join(server.run_dir, name), "w") as f:
                f.write(change(conf))
        server.reload()

    server.create_context()
    try:
        write(lambda conf: re.sub(r"kexec_pass [^;]*;", "return 204;", re.sub(r"kexec_default_context [^;]*;", "", conf)))
        time.sleep(4)           # twice what makes a context idle
    finally:
        write(lambda conf: conf)
    is_(server.log.lines("exited on signal"), [], "no worker died")
    wait_until(lambda: server.request("GET", "/contexts").status == 200, 5, "the location")


main(Nobody, quick=(4,))
