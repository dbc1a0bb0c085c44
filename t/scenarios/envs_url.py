#!/usr/bin/python3
"""kexec_envs_url: variables that somebody else knows are asked for once a context, by its first execution."""

import http.server
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *


class Variables(http.server.ThreadingHTTPServer):
    """Answers every GET with what answer is: an object, or bytes, or a status; hangs as long as it is None."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.asked, self.changed = {}, [], threading.Condition()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def set(self, answer):
        with self.changed:
            self.answer, self.asked = answer, []
            self.changed.notify_all()

    def wait_asked(self):
        with self.changed:
            if not self.changed.wait_for(lambda: self.asked, 10 * slack()):
                raise TimeoutError("nobody asked for variables")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        with server.changed:
            server.asked.append((self.path, self.headers.get("X-Access-Token"), self.headers.get("Authorization")))
            server.changed.notify_all()
            server.changed.wait_for(lambda: server.answer is not None, 30)
            answer = server.answer
        status = answer if isinstance(answer, int) else 200
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except ConnectionError:
            pass                # whoever asked has left

    def log_message(self, *_):
        pass


variables = Variables()
CONF = ("kexec_envs_url http://127.0.0.1:%d/envs?of=me; kexec_env COMMON here; kexec_env BOTH kexec_env;"
        " kexec_jupyter_timeout 7s;" % variables.server_address[1])
GIVEN = {"GLOBAL": "it's \"given\"\n$HOME \U0001f600", "BOTH": "url"}


def look(*names):
    return "import os\n" + ", ".join("os.environ.get(%r)" % name for name in names)


@scenario(rounds=2, many=50)
def once(server, rounds):
    """Asked by the first execution with its client's token, set for all that follow."""
    for i in range(rounds):
        variables.set(GIVEN)
        context = server.create_context()
        is_(variables.asked, [], "a new context does not ask")
        for n in range(3):
            is_(server.value(look("GLOBAL", "BOTH", "COMMON"), context, headers={"X-Access-Token": "token-%d" % n}),
                repr((GIVEN["GLOBAL"], "url", "here")), "set, and stronger than kexec_env")
        is_(variables.asked, [("/envs?of=me", "token-0", None)], "asked once, with the first one's token and no other")
        is_(server.value(look("GLOBAL", "NEW"), context, env_vars={"GLOBAL": "mine", "NEW": "mine"}),
            repr(("mine", "mine")), "a request's own are stronger")
        is_(server.value(look("GLOBAL", "NEW"), context), repr((GIVEN["GLOBAL"], None)), "and gone again")
        bash = server.create_context(language="bash")
        is_(server.run("printf %s \"$GLOBAL\"", context_id=bash).text(), GIVEN["GLOBAL"], "in another language, too")
        is_([token for _, token, _ in variables.asked], ["token-0", None], "without a token none is sent")
        server.request("DELETE", "/contexts/" + bash)


@scenario(rounds=1, many=50)
def new_kernel(server, rounds):
    """A new process is given them again, as they are then; a new nginx knows that a kernel has them."""
    for i in range(rounds):
        variables.set({"GLOBAL": "first"})
        context = server.create_context()
        is_(server.value(look("GLOBAL"), context), "first", "set")
        is_(server.request("POST", "/contexts/%s/restart" % context).status, 200, "restarted")
        variables.set({"GLOBAL": "second"})
        is_(server.value(look("GLOBAL"), context), "second", "set anew after a restart")
        gate = server.gate()
        a = server.busy(context, gate.code + "os.kill(os.getpid(), 9)")
        gate.open()
        is_(told(a), "KernelDied", "killed")
        is_(server.value(look("GLOBAL"), context), "second", "and after the kernel's death")
        is_(len(variables.asked), 2, "asked for each process once")
        told(server.run("os.environ['GLOBAL'] = 'changed'", context_id=context))
        server.kill()
        server.start_nginx()
        wait_until(lambda: port_answers(server.port), 10, "nginx")
        is_(server.value(look("GLOBAL"), context), "changed", "a new nginx does not set them again")
        is_(len(variables.asked), 2, "nor ask")
        # a context whose first execution is yet to come, over that
        unused = server.create_context()
        server.kill()
        server.start_nginx()
        wait_until(lambda: port_answers(server.port), 10, "nginx")
        is_(server.value(look("GLOBAL"), unused), "second", "but does where nobody did yet")


@scenario(rounds=1, many=50)
def fails(server, rounds):
    """Code does not run without its variables: told in words, and the next execution asks again."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("x = 0", context_id=context))
        for answer, words in ((500, "the answer was 500"), (401, "the answer was 401"), (b"rubbish", "no JSON object"),
                              (b"", "no JSON object"), (["GLOBAL"], "no JSON object"), (None, "timed out")):
            server.request("POST", "/contexts/%s/restart" % context)
            variables.set(answer)
            stream = server.run("x = 1", context_id=context)
            is_(told(stream), "EnvironmentError", "%r: told" % (answer,))
            like(stream.all()[-2]["value"], "did not run: .*" + words, "in words")
            is_(stream.types()[-1], "end_of_execution", "with an end")
            variables.set(GIVEN)
            is_(server.value("import os\n'x' in dir(), os.environ['BOTH']", context), repr((False, "url")),
                "the next one runs, with its variables")


@scenario(rounds=1, many=50)
def client_leaves(server, rounds):
    """Whoever waits for variables of somebody that hangs keeps nobody else waiting."""
    context = server.create_context()
    for i in range(rounds):
        for leave in ("reset", "half_close", "interrupt", "restart", "timeout"):
            server.request("POST", "/contexts/%s/restart" % context)
            variables.set(None)
            a = server.execute("raise SystemExit", context)
            variables.wait_asked()
            if leave == "interrupt":
                is_(server.request("POST", "/contexts/%s/interrupt" % context).status, 200, "interrupted")
                is_(told(a), "ExecutionInterrupted", "told")
            elif leave == "restart":
                is_(server.request("POST", "/contexts/%s/restart" % context).status, 200, "restarted")
                is_(told(a), "ContextRestarted", "told")
            elif leave == "timeout":
                is_(told(a), "EnvironmentError", "kexec_jupyter_timeout is over")
            else:
                getattr(a, leave)()
            sent = time.monotonic()
            b = server.execute(look("GLOBAL"), context, headers={"X-Access-Token": "b"})
            wait_until(lambda: any(token == "b" for _, token, _ in variables.asked), 10, "the next one's question")
            within(time.monotonic() - sent, 3, "%s: the next one has its turn" % leave)
            variables.set(GIVEN)
            is_((told(b), result(b)), ("ok", repr(GIVEN["GLOBAL"])[1:-1]), "and its variables")


@scenario(rounds=1, many=50)
def kernel_dies(server, rounds):
    """Or is restarted by somebody while variables are asked for: the new one is prepared, and its session says so."""
    context = server.create_context()
    for i in range(rounds):
        for how in ("killed", "restarted"):
            for leaves in (False, True):
                server.request("POST", "/contexts/%s/restart" % context)
                variables.set(None)
                a = server.execute("1", context, headers={"X-Access-Token": "a"})
                variables.wait_asked()
                pid = kernel_pid(server.kernel(context))
                if how == "killed":
                    os.kill(pid, 9)
                else:
                    server.rest("POST", "/api/kernels/%s/restart" % server.kernel(context))
                wait_until(lambda: kernel_pid(server.kernel(context)) not in (None, pid), 20, "the new process")
                server.connect(server.kernel(context)).close()      # Jupyter lets nobody in before its first messages
                if leaves:
                    a.reset()
                sent = time.monotonic()
                b = server.execute(look("GLOBAL"), context, headers={"X-Access-Token": "b"})
                variables.set(GIVEN)
                is_((told(b), result(b)), ("ok", repr(GIVEN["GLOBAL"])[1:-1]), "%s: the next one runs" % how)
                within(b.finished_at - sent, 3, "at once")
                if not leaves:
                    is_((told(a), result(a)), ("ok", "1"), "so did the first one")
                isnt(json.loads(server.session(context)["name"])["process"], 0, "and a new nginx will know the process")


def kernel_pid(kernel):
    """Of the process that has the kernel's connection file."""
    for pid in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % pid) as f:
                if "ipykernel" in f.read() and kernel in open("/proc/%s/cmdline" % pid).read():
                    return int(pid)
        except (OSError, ValueError):
            pass
    return None


@scenario(rounds=1, many=20)
def odd_ones(server, rounds):
    """What a language cannot hold is left out and said in the log; nothing else is lost by it."""
    for i in range(rounds):
        variables.set({**GIVEN, "a.dotted-name": "x", "NUL": "\0", "NUMBER": 7, "UID": "5"})
        bash = server.create_context(language="bash")
        server.log.mark()
        is_(server.run("printf %s \"$GLOBAL\"", context_id=bash).text(), GIVEN["GLOBAL"], "bash has what it can hold")
        for name in ("a.dotted-name", "NUL", "NUMBER", "UID"):
            server.log.wait("variable \"%s\" of \"kexec_envs_url\" is left out" % name)
        python = server.create_context()
        is_(server.value(look("a.dotted-name", "NUL", "NUMBER", "BOTH"), python), repr(("x", None, None, "url")),
            "python holds other names")
        variables.set({})
        none = server.create_context()
        is_([server.value(look("GLOBAL", "COMMON"), none) for _ in range(2)], [repr((None, "here"))] * 2, "none at all")
        is_(len(variables.asked), 1, "is an answer")


main(lambda workers: Server(workers, CONF), workers=(1, 4), quick=(4,), jobs=2)
