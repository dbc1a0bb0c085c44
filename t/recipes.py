#!/usr/bin/python3
"""The README's minimal nginx.conf and docs/recipes.md: each recipe does what the text beside it says.

A recipe is a fenced block whose info string is "nginx NAME".  It is used as it stands; only what belongs to a machine
(addresses, names of files) is replaced, and each replacement has to be found.
"""

import http.server
import os
import ssl
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from kexec_test import *
from servers import told

SECRET = "secret"
SLEEP = "sleep 30"


def blocks(path):
    """{name: text} of the named blocks."""
    with open(os.path.join(ROOT, path)) as f:
        return dict(re.findall(r"^```nginx (\S+)\n(.*?)^```$", f.read(), re.S | re.M))


BLOCKS = {**blocks("README.md"), **blocks("docs/recipes.md")}


def replaced(text, old, new):
    if old not in text:
        raise ValueError("%r is not in the recipe" % old)
    return text.replace(old, new)


def without(conf, head):
    """The minimal nginx.conf without one of its blocks."""
    found = re.search(r"^    %s \{\n.*?^    \}\n" % re.escape(head), conf, re.S | re.M)
    if found is None:
        raise ValueError("the minimal nginx.conf has no %s" % head)
    return conf[:found.start()] + conf[found.end():]


class Recipe(Nginx):
    """nginx with the minimal nginx.conf and a recipe in it, at self.port.

    jupyters: the servers in the place of the addresses of the upstream block; replace: {text in the recipe: other}"""

    def __init__(self, name, jupyters, replace=None):
        super().__init__(jupyters[0], start=False)
        conf = BLOCKS["minimal"]
        if name != "minimal":
            recipe = BLOCKS[name]
            for old, new in (replace or {}).items():
                recipe = replaced(recipe, old, new.replace("RUN_DIR", self.run_dir))
            for head in re.findall(r"^(\S[^{\n]*) \{$", recipe, re.M):
                if head.split()[0] in ("server", "upstream"):
                    conf = without(conf, head)
            end = conf.rindex("}")
            conf = conf[:end] + recipe + conf[end:]
        conf = replaced(conf, "load_module modules/ngx_http_kexec_module.so", "load_module " + MODULE)
        conf = re.sub(r"\blisten (127\.0\.0\.1:)?\d+", "listen 127.0.0.1:%d" % self.port, conf)
        conf = conf.replace("/run/jupyter.token", os.path.join(self.run_dir, "token"))
        conf = conf.replace("/home/user", self.run_dir)
        addresses = re.findall(r"^ +server (\S+:8888);$", conf, re.M)
        if len(addresses) != len(jupyters):
            raise ValueError("%s has %d Jupyter Servers" % (name, len(addresses)))
        for address, jupyter in zip(addresses, jupyters):
            conf = conf.replace(address, "127.0.0.1:%d" % jupyter.port)
        self.conf = self.path("nginx.conf")
        with open(self.conf, "w") as f:
            f.write(self.around() + conf)
        self.process = subprocess.Popen([*self.command(), "-g", "daemon off;"], env=NGINX_ENV)
        self.started = True
        wait_until(lambda: port_answers(self.port) or self.process.poll() is not None, 30, "nginx")
        if self.process.poll() is not None:
            raise RuntimeError("nginx does not start with the recipe %s" % name)

    def around(self):
        """What a distribution's nginx has compiled in for it."""
        return "pid %s;\nuser root;\nworker_processes 1;\n" % self.path("nginx.pid")

    def command(self):
        return [*NGINX, "-p", self.run_dir, "-c", self.conf, "-e", self.path("error.log")]

    def path(self, name):
        return os.path.join(self.run_dir, name)

    def stop(self):
        if self.started:
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(20)
            finally:
                self.process.kill()
            self.started = False


def runs(nginx, name, **more):
    stream = nginx.run("print hello", **more)
    return is_((stream.status, told(stream), stream.text()), (200, "ok", "hello\n"), name)


def refused(nginx, jupyter, status, name, **more):
    """That status, and Jupyter hears nothing of it."""
    before = jupyter.mark()
    stream = nginx.run("print hello", **more)
    return is_((stream.status, jupyter.log(since=before, ev="execute", silent=False)), (status, []), name)


_recipes = {}


def recipe(function):
    _recipes[function.__name__.replace("_", "-")] = function
    return function


@recipe
def minimal(jupyter):
    with Recipe("minimal", [jupyter]) as nginx:
        nginx.wait_healthy()
        runs(nginx, "minimal: code runs")
        is_([c["cwd"] for c in nginx.request("GET", "/contexts").json()], [nginx.run_dir],
            "minimal: there is the default context, in its directory")
        nginx.log.check()


@recipe
def tls(jupyter):
    key, certificate = "/etc/ssl/private/kexec.key", "/etc/ssl/certs/kexec.pem"
    directory = tempfile.mkdtemp(prefix="kexec-test-")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-days", "2", "-keyout", directory + "/key",
                    "-out", directory + "/certificate"], check=True, stderr=subprocess.DEVNULL)
    with Recipe("tls", [jupyter], {key: directory + "/key", certificate: directory + "/certificate"}) as nginx:
        def execute(code):
            """A Stream over TLS."""
            stream = Stream(nginx.port, "POST", "/execute", {"code": code}, send=False)
            context = ssl.create_default_context(cafile=directory + "/certificate")
            stream.sock = context.wrap_socket(stream.sock, server_hostname="localhost")
            stream.sock.sendall(stream.request)
            return stream

        stream = execute("print hello\n" + SLEEP)
        ok(stream.wait_for("stdout", 10, text="hello\n"), "tls: an event arrives while the code runs")
        stream.close()
        hit = jupyter.wait(ev="interrupt", landed="hit")
        like(hit["landed_code"], SLEEP, "tls: a client that leaves ends its execution")
        stream = execute("print again")
        is_((told(stream), stream.text()), ("ok", "again\n"), "tls: the next one runs")
        refused(nginx, jupyter, 400, "tls: nothing runs without it")
        nginx.log.check()
    shutil.rmtree(directory)


@recipe
def token(jupyter):
    with Recipe("token", [jupyter]) as nginx:
        alice, bob = (re.search(r"(\w+)\W* +%s;" % name, BLOCKS["token"]).group(1) for name in ("alice", "bob"))
        for name in alice, bob:
            runs(nginx, "token: a client with one", headers={"X-Access-Token": name})
        for wrong in None, "", alice.upper(), alice + "0", alice[:-1], "%s, %s" % (alice, bob), "." * len(alice):
            refused(nginx, jupyter, 401, "token: not with %r" % wrong, headers={"X-Access-Token": wrong})
        is_(nginx.request("GET", "/contexts").status, 401, "token: nor the list of contexts")
        nginx.log.check()


class Decider:
    """The other server: answers as the header X-Say asks it to."""

    def __enter__(self):
        self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(handler):
                self.seen.append((handler.command, handler.path, dict(handler.headers.items())))
                handler.send_response(int(handler.headers["X-Say"]))
                handler.end_headers()
            do_GET = do_POST = answer
            log_message = lambda *_: None

        self.server = http.server.HTTPServer(("127.0.0.1", free_port()), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever).start()
        return self

    def __exit__(self, *_):
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None


@recipe
def auth_request(jupyter):
    with Decider() as decider, \
            Recipe("auth-request", [jupyter], {"127.0.0.1:9000": "127.0.0.1:%d" % decider.port}) as nginx:
        runs(nginx, "auth_request: let in", headers={"X-Say": "204", "Authorization": "Bearer x"})
        method, path, headers = decider.seen[-1]
        is_((path, headers["X-Original-Method"], headers["X-Original-URI"]), ("/check", "POST", "/execute"),
            "auth_request: it is told what is asked for")
        is_((headers["Authorization"], headers.get("Content-Length")), ("Bearer x", None),
            "auth_request: it has the headers, not the body")
        for status in 401, 403:
            refused(nginx, jupyter, status, "auth_request: a %d is the answer" % status,
                    headers={"X-Say": str(status)})
        refused(nginx, jupyter, 500, "auth_request: anything else lets nothing in", headers={"X-Say": "404"})
        is_(nginx.request("GET", "/-/auth", headers={"X-Say": "204"}).status, 404,
            "auth_request: nobody else gets at it")
        decider.__exit__()
        refused(nginx, jupyter, 500, "auth_request: nor when it is not there", headers={"X-Say": "204"})
        nginx.log.check()


@recipe
def cors(jupyter):
    known, other = "https://app.example.com", "https://other.example.com"
    with Recipe("cors", [jupyter]) as nginx:
        answer = nginx.request("OPTIONS", "/execute", headers={
            "Origin": known, "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type,x-access-token"})
        is_((answer.status, answer.headers.get("access-control-allow-origin")), (204, known),
            "cors: the page may ask")
        like(answer.headers["access-control-allow-headers"], "Content-Type.*X-Access-Token", "cors: with the headers")
        like(answer.headers["access-control-allow-methods"], "POST", "cors: and the method")
        answer = nginx.request("POST", "/execute", {"code": "print hello"}, {"Origin": known})
        is_((answer.status, answer.headers["access-control-allow-origin"], answer.headers["vary"]),
            (200, known, "Origin"), "cors: it reads what comes back")
        answer = nginx.request("POST", "/execute", {"code": 1}, {"Origin": known})
        is_((answer.status, answer.headers["access-control-allow-origin"]), (422, known), "cors: and what is wrong")
        for origin in other, "null", known + ".example.org", "https://evil https://app.example.com":
            refused(nginx, jupyter, 403, "cors: not a page of %s" % origin,
                    headers={"Origin": origin, "Content-Type": None})
            answer = nginx.request("OPTIONS", "/execute", headers={"Origin": origin})
            is_((answer.status, answer.headers.get("access-control-allow-origin")), (403, None),
                "cors: which may not ask either")
        runs(nginx, "cors: who is no page has no origin")
        nginx.log.check()


@recipe
def limits(jupyter):
    with Recipe("limits", [jupyter]) as nginx:
        contexts = [nginx.create_context() for _ in range(9)]
        running = [nginx.execute(SLEEP, context) for context in contexts[:8]]
        jupyter.wait(count=8, ev="start")
        refused(nginx, jupyter, 429, "limits: eight are running, and no ninth", context_id=contexts[8])
        running[0].reset()
        wait_until(lambda: nginx.run("print hello", context_id=contexts[8]).status == 200, what="room", step=0.2)
        ok(True, "limits: one has left, there is room")
        for stream in running:
            stream.close()
        jupyter.wait(count=8, ev="interrupt", landed="hit")
        start = time.monotonic()
        statuses = [nginx.run("print hello", context_id=contexts[8]).status for _ in range(100)]
        passed = statuses.count(200)
        ok(passed <= 21 + 10 * (time.monotonic() - start) + 1, "limits: not more than ten a second", statuses)
        is_(passed + statuses.count(429), 100, "limits: the others are told so")
        is_({nginx.request("GET", "/contexts").status for _ in range(50)}, {200}, "limits: of executions alone")
        nginx.log.check()


@recipe
def several(first):
    with ScriptedJupyter(token=SECRET) as second, Recipe("several", [first, second]) as nginx:
        nginx.wait_healthy()                # the default context is there
        marks = [j.mark() for j in (first, second)]
        contexts = [nginx.create_context() for _ in range(6)]
        is_([len(j.log(since=mark, ev="session_created")) for j, mark in zip((first, second), marks)], [3, 3],
            "several: contexts are spread")
        for context in contexts:
            runs(nginx, "several: each context runs", context_id=context)
        is_([j.executes() for j in (first, second)], [["print hello"] * 3] * 2, "several: where it was made")
        second.down()
        mark = first.mark()
        for _ in range(4):
            runs(nginx, "several: one is down, a new context runs", context_id=nginx.create_context())
        is_(len(first.log(since=mark, ev="session_created")), 4, "several: on the other one")
        is_([c["id"] for c in nginx.request("GET", "/contexts").json()][1:7], contexts,
            "several: the contexts of before are not forgotten")
        second.up()
        nginx.log.check()


@recipe
def json_log(jupyter):
    with Recipe("json-log", [jupyter], {"/var/log/nginx/kexec.json": "RUN_DIR/kexec.json"}) as nginx:
        def logged(path):
            """The line of the request for that path."""
            def find():
                with open(nginx.path("kexec.json"), errors="replace") as f:
                    lines = [json.loads(line) for line in f.read().split("\n")[:-1]]
                return next((line for line in lines if path in line["request"]), None)
            return wait_until(find, 10, "a line for %s" % path)

        def execute(path, code, **fields):
            return nginx.stream("POST", "/execute?" + path, {"code": code, **fields})

        execute("ok", "sleep 0.2").finish()
        line = logged("ok")
        context, = (c["id"] for c in nginx.request("GET", "/contexts").json())
        is_((line["status"], line["outcome"], line["context"], line["client"]),
            ("200", "ok", context, "127.0.0.1"), "json-log: what ran")
        ok(0.2 <= float(line["ran"]) <= line["seconds"] + 0.01 and float(line["queued"]) >= 0,
           "json-log: and how long", line)
        like(line["execution"], "^[0-9a-f-]{36}$", "json-log: the execution's id")
        execute("bad", "error ValueError no").finish()
        is_(logged("bad")["outcome"], "error", "json-log: an error")
        execute("late", SLEEP, timeout=0.2).finish()
        is_(logged("late")["outcome"], "timeout", "json-log: a timeout")
        stream = execute("left", "print left\n" + SLEEP)
        stream.wait_for("stdout")
        stream.reset()
        is_(logged("left")["outcome"], "cancelled", "json-log: a client that left")
        nginx.request("GET", "/no\xffpe?quote=\"\\")
        line = logged("quote")
        like(line["request"], r'^GET /no.+pe\?quote="\\ HTTP/1\.1$', "json-log: whatever is asked for")
        is_((line["execution"], line["context"], line["ran"]), ("", "", ""), "json-log: nothing of what there is not")
        nginx.log.check()


is_(sorted(_recipes), sorted(BLOCKS), "each recipe has a test")

for name, function in _recipes.items():
    with ScriptedJupyter(token=SECRET) as jupyter:
        function(jupyter)

done_testing()
