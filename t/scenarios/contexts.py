#!/usr/bin/python3
"""Contexts are made, found and taken away again; what fails leaves nothing behind in Jupyter."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *


def in_jupyter(server):
    """How many sessions and kernels there are."""
    return len(server.rest("GET", "/api/sessions").json()), len(server.rest("GET", "/api/kernels").json())


def same_again(server, before, name):
    """Nothing was left behind; what is being taken away may take a moment."""
    try:
        wait_until(lambda: in_jupyter(server) == before, 10)
    except TimeoutError:
        pass
    is_(in_jupyter(server), before, name)


@scenario(rounds=1, many=20)
def cwd(server, rounds):
    path = server.path("it's a \"dir\" \u00e9 $HOME {x}\\")
    os.makedirs(path, exist_ok=True)
    for i in range(rounds):
        answer = server.request("POST", "/contexts", {"cwd": path})
        is_((answer.status, answer.json().get("cwd")), (200, path), "made in a directory with any name")
        context = answer.json()["id"]
        look = "import os\nos.getcwd() == %r" % path
        is_(server.value(look, context), "True", "the code runs there")
        is_(server.request("POST", "/contexts/%s/restart" % context).status, 200, "restarted")
        is_(server.value(look, context), "True", "the code runs there again")
        os.kill(int(server.value("os.getpid()", context)), signal.SIGKILL)
        # unless Jupyter has noticed the crash by then
        first = server.run(look, context_id=context)
        ok(told(first) == "KernelDied" or (told(first), result(first)) == ("ok", "True"),
           "a request after a crash is told", first.all())
        is_(server.value(look, context), "True", "runs there again")
        server.request("DELETE", "/contexts/" + context)


@scenario(rounds=1, many=20)
def bad_cwd(server, rounds):
    before = in_jupyter(server)
    listed = server.request("GET", "/contexts").json()
    file = server.path("a file")
    os.makedirs(os.path.dirname(file), exist_ok=True)
    open(file, "w").close()
    for i in range(rounds):
        answer = server.request("POST", "/contexts", {"cwd": "/tmp\0x"})
        is_((answer.status, b"NUL" in answer.body), (400, True), "a NUL character: 400 in words")
        for path in ("/does/not/exist", file):
            answer = server.request("POST", "/contexts", {"cwd": path})
            is_(answer.status, 400, "%s: 400" % os.path.basename(path))
            like(answer.body, re.escape(path), "the directory is named")
        same_again(server, before, "no session and no kernel is left")
        is_(server.request("GET", "/contexts").json(), listed, "no context is listed")


@scenario(rounds=1, many=20)
def unknown_language(server, rounds):
    before = in_jupyter(server)
    for i in range(rounds):
        for method, path, body in (("POST", "/contexts", {"language": "cobol"}),
                                   ("POST", "/execute", {"language": "cobol", "code": "1"})):
            answer = server.request(method, path, body)
            is_(answer.status, 400, path + ": 400")
            like(answer.body, "(?i)cobol", "the language is named")
        same_again(server, before, "nothing is left")


@scenario(rounds=2, many=50)
def one_for_a_new_language(server, rounds):
    """Several first requests for a language at once make one context."""
    for i in range(rounds):
        for context in server.request("GET", "/contexts").json():
            if context["language"] == "bash":
                server.request("DELETE", "/contexts/" + context["id"])
        before = in_jupyter(server)
        streams = [server.execute("n=$((n + 1)); echo $$", language="bash") for n in range(6)]
        is_([told(s) for s in streams], ["ok"] * 6, "all run")
        is_(len({s.text() for s in streams}), 1, "in one kernel")
        is_(server.run("echo $n", language="bash").text(), "6\n", "each once")
        is_(in_jupyter(server), tuple(n + 1 for n in before), "one session and one kernel were made")
        is_([c["language"] for c in server.request("GET", "/contexts").json()].count("bash"), 1, "one context")


@scenario(rounds=2, many=50)
def default_deleted(server, rounds):
    for i in range(rounds):
        told(server.run("x = 1"))
        before = in_jupyter(server)
        old = next(c["id"] for c in server.request("GET", "/contexts").json() if c["language"] == "python")
        is_(server.request("DELETE", "/contexts/" + old).status, 200, "the default context is deleted")
        streams = [server.execute("'x' in globals()") for n in range(3)]
        is_([(told(s), result(s)) for s in streams], [("ok", "False")] * 3, "it is made anew on the next use")
        contexts = [c["id"] for c in server.request("GET", "/contexts").json() if c["language"] == "python"]
        ok(len(contexts) == 1 and contexts != [old], "with another id", contexts)
        same_again(server, before, "the old one is gone")


@scenario(rounds=5, many=100)
def maker_leaves(server, rounds):
    """A client that leaves while its context is made leaves no kernel behind."""
    before = in_jupyter(server)
    listed = server.request("GET", "/contexts").json()
    for i in range(0, rounds, 5):
        for n in range(min(5, rounds - i)):
            stream = server.stream("POST", "/contexts", {})
            time.sleep(random.uniform(0, 0.8))
            stream.pump(0)
            if stream.ended:
                server.request("DELETE", "/contexts/" + stream.answer().json()["id"])
            elif n % 2:
                stream.close()
            else:
                stream.reset()
        try:
            wait_until(lambda: in_jupyter(server) == before
                       and server.request("GET", "/contexts").json() == listed, 20)
        except TimeoutError:
            pass
        is_(in_jupyter(server), before, "no session and no kernel is left")
        is_(server.request("GET", "/contexts").json(), listed, "no context is left")


@scenario(rounds=1, many=10)
def in_order(server, rounds):
    """The list is in the order of creation; any worker knows all of them."""
    for i in range(rounds):
        made = [server.create_context(language=language) for language in ("python", "bash", "python")]
        for n in range(4):
            listed = [c["id"] for c in server.request("GET", "/contexts").json()]
            is_([c for c in listed if c in made], made, "in order")
        for context in made:
            is_(server.request("DELETE", "/contexts/" + context).status, 200, "deleted")


main(lambda workers: Server(workers, "kexec_interrupt_timeout 2s; kexec_keepalive 1s;"), quick=(4,))
