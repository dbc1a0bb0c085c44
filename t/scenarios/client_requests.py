#!/usr/bin/python3
"""Requests that are odd but legal, and what stands in front of or behind the location."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

PASS = "kexec_pass http://%s; kexec_token secret;"
JUPYTER = PASS % "jupyter"


@scenario()
def conditional(server, rounds):
    """Whatever a cache says it has: an answer tells what was done."""
    for header in ({"If-None-Match": "*"}, {"If-Match": '"x"'}, {"Range": "bytes=0-3"},
                   {"If-Unmodified-Since": "Sat, 29 Oct 1994 19:43:31 GMT"},
                   {"If-Modified-Since": "Sat, 29 Oct 2094 19:43:31 GMT"}):
        name = list(header)[0]
        answer = server.request("POST", "/contexts", {}, header)
        if not is_(answer.status, 200, "%s: the new context's id is told" % name):
            continue
        stream = server.execute("print hello", answer.json()["id"], header)
        stream.finish()
        is_((stream.status, stream.text()), (200, "hello\n"), "%s: the stream is whole" % name)
        is_(server.request("DELETE", "/contexts/" + answer.json()["id"], None, header).status, 200,
            "%s: a deletion is confirmed" % name)


@scenario()
def interrupt_outlives(server, rounds):
    """A request that lives on after its answer (its body is unread, the connection lingers) gets one answer."""
    context = server.create_context()
    head = "POST /contexts/%s/interrupt HTTP/1.1\r\nHost: x\r\n" % context
    for name, request, code in (
            ("nothing runs, body unread", head + "Content-Length: 10\r\n\r\n", None),
            ("code runs, body unread", head + "Content-Length: 10\r\n\r\n", "sleep 30"),
            ("connection lingers", head + "Connection: close\r\n\r\nX", None)):
        if code:
            mark = server.jupyter.mark()
            running = server.execute(code, context)
            server.jupyter.wait(since=mark, ev="start", code=code)
        stream = Stream(server.port, send=False)
        stream.sock.sendall(request.encode())
        is_(stream.wait_head(10), 200, "interrupt, %s: answered" % name)
        for _ in range(3):
            is_(server.run("print hello", context_id=context).text(), "hello\n", "interrupt, %s: the next one" % name)
        stream.pump(0.2)
        is_(stream.body + stream.raw, b"null", "interrupt, %s: one answer" % name)
        if code:
            is_(running.finish()[-1]["type"], "end_of_execution", "the code has ended")
        stream.close()


def memory(server):
    with open("/proc/%d/status" % server.workers()[0]) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


@scenario()
def waiters(server, rounds):
    """What waits in a queue is kept once, and is limited."""
    size, count, context = 7 << 20, 8, server.create_context()
    for fields in ({"env_vars": {"A": "a" * (40 << 20)}}, {"env_vars": {"A%d" % i: "a" * 1000 for i in range(9000)}},
                   {"code": "#" * (5 << 20), "env_vars": {"A": "a" * (4 << 20)}}):
        answer = server.request("POST", "/execute", {"code": "print x", "context_id": context, **fields}, timeout=60)
        ok(answer.status == 413 and b"The code and its variables have " in answer.body, "too much is a 413 that says so",
           answer)
    running = server.execute("sleep 30", context)
    server.jupyter.wait(ev="start", code="sleep 30")
    before = memory(server)
    streams = []
    for i in range(count):
        streams.append(server.execute("print hello", context, env_vars={"A": "a" * (size // 2), "B": "b" * (size // 2)}))
        is_(streams[-1].wait_head(10), 200, "one more waits")
    memory_within((memory(server) - before) * 1024, 1.2 * count * size + (4 << 20),
                  "%d waiters with %d MB each" % (count, size >> 20))
    for stream in streams[1:]:
        stream.reset()
    running.reset()
    is_(streams[0].finish()[-1]["type"], "end_of_execution", "the first one runs")
    is_(streams[0].text(), "hello\n", "with its variables")


@scenario()
def values(server, rounds):
    """A body of millions of values stops nobody else."""
    before = memory(server)
    start = time.monotonic()
    for code, status, name in (("1", 200, "passed over"), ("[" + "{}," * (10 << 20) + "0]", 422, "refused")):
        body = '{"code":%s,"x":[%s0]}' % (code if status == 422 else '"1"', "{}," * (10 << 20) if status == 200 else "")
        answer = server.request("POST", "/execute", body.encode(), {"Content-Type": "application/json"}, 60)
        is_(answer.status, status, "30 MB of empty objects are %s" % name)
    within(time.monotonic() - start, 6, "at once")
    memory_within((memory(server) - before) * 1024, 40 << 20, "for no more memory than the body's")
    answer = server.request("POST", "/execute", b'{"y":"' + b"z" * (5 << 20) + b'"}',
                           {"Content-Type": "application/json"}, 60)
    ok(answer.status == 422 and len(answer.body) < 1000, "a large body is not sent back with its error",
       "%d, %d bytes" % (answer.status, len(answer.body)))
    answer = server.run("print hello", env_vars={"A%d" % i: "b" for i in range(5000)})
    is_(answer.text(), "hello\n", "many variables are no harm")


# other modules of nginx in front of the location, or their redirects

FRONT = free_port()
LOCATIONS = "".join("location %s { %s }\n" % (path, text) for path, text in (
    ("/", JUPYTER),
    ("/break/", "rewrite ^/break/v1(/.*)$ $1 break; " + JUPYTER),
    ("/last/", "rewrite ^/last(/.*)$ $1 last;"),
    ("/files/", "try_files /nope /other$uri;"),
    ("/other/files/", JUPYTER),
    ("/auth/", "auth_request /yes; " + JUPYTER),
    ("/mirror/", "mirror /yes; " + JUPYTER),
    ("= /yes", "return 204;"),
    ("/rate/", "limit_rate 1k; " + JUPYTER),
    ("/file/", "client_body_in_file_only clean; " + JUPYTER),
    ("/single/", "client_body_in_single_buffer on; client_body_buffer_size 1k; " + JUPYTER),
    ("/post/", "post_action /yes; " + JUPYTER),
    ("/if/", JUPYTER + " if ($arg_x) { set $y 1; }"),
    ("/plain/", "chunked_transfer_encoding off; " + JUPYTER),
    ("/accel/", "proxy_pass http://127.0.0.1:%d/source/;" % FRONT),
    ("/source/", "add_header X-Accel-Redirect /contexts; return 200;"),
    ("/page/", "error_page 404 =200 /contexts; return 404;"),
))
HTTP = "server { listen 127.0.0.1:%d; client_body_buffer_size 8k; %s }" % (FRONT, LOCATIONS)


@scenario(http=HTTP)
def in_front(server, rounds):
    """Whatever nginx did with a request before, the module has it whole."""
    for path in ("", "/break/v1", "/last", "/files", "/auth", "/mirror", "/rate", "/file", "/single", "/post", "/if",
                 "/plain"):
        for code, query in (("print hello", ""), ("print hello\n#" + "z" * 50000, "?x=1")):
            stream = Stream(FRONT, "POST", path + "/execute" + query, {"code": code}, timeout=10)
            stream.finish()
            is_((stream.status, stream.text(), stream.ended), (200, "hello\n", "complete"),
                "%s/execute%s, %d bytes of code" % (path, query, len(code)))
    for path in ("/accel/x", "/page/x"):
        answer = request(FRONT, "GET", path)
        ok(answer.status == 200 and answer.body.startswith(b"["), path, answer)


PROXY = """location /proxy/ { proxy_pass http://jupyter/; proxy_http_version 1.1; proxy_set_header Connection ''; }"""


@scenario(location=PROXY)
def behind(server, rounds):
    """Upstream blocks: a context is made where a server is, and health knows it."""
    port, dead = server.jupyter.port, free_port()
    blocks = {
        "keepalive": "server 127.0.0.1:%d; keepalive 4;" % port,
        "zone": "zone z1 64k; server 127.0.0.1:%d;" % port,
        "least_conn": "zone z2 64k; least_conn; server 127.0.0.1:%d max_conns=1;" % port,
        "hash": "hash $arg_x consistent; server 127.0.0.1:%d;" % port,
        "random": "random two least_conn; server 127.0.0.1:%d; server 127.0.0.1:%d;" % (port, port),
        "one down": "server 127.0.0.1:%d down; server 127.0.0.1:%d;" % (free_port(), port),
        "backup": "server 127.0.0.1:%d down; server 127.0.0.1:%d backup;" % (free_port(), port),
    }
    blocks["one dead"] = "server 127.0.0.1:%d max_fails=1 fail_timeout=60s; server 127.0.0.1:%d;" % (dead, port)
    blocks["none"] = "server 127.0.0.1:%d down;" % dead
    conf = os.path.join(server.run_dir, "nginx.conf")
    with open(conf) as f:
        text = f.read()
    for name, block in blocks.items():
        with open(conf, "w") as f:
            f.write(re.sub(r"(upstream jupyter) \{.*?\}", lambda m: "%s { %s }" % (m.group(1), block), text, flags=re.S))
        old = set(server.workers())
        server.reload()
        wait_until(lambda: not old & set(server.workers()), 30, "the old workers' end")
        if name == "none":
            is_(server.request("POST", "/contexts", {}).status, 503, "no live server: no context")
            is_(server.request("GET", "/health").status, 503, "no live server: not healthy")
            continue
        for i in range(4):
            if name != "one dead":
                server.request("GET", "/proxy/api")
            answer = server.request("POST", "/contexts?x=%d" % i, {})
            if not is_(answer.status, 200, "%s: a context" % name):
                continue
            context = answer.json()["id"]
            stream = server.run("print hello", context_id=context)
            is_(stream.text(), "hello\n", "%s: it runs code" % name)
            is_(server.request("DELETE", "/contexts/" + context).status, 200, "%s: and is deleted" % name)
        is_(server.request("GET", "/health").status, 200, "%s: healthy" % name)


@scenario()
def page(server, rounds):
    """Jupyter's pages for browsers hold the token."""
    token = "0123456789abcdef-token"
    html = "<!DOCTYPE HTML><html data-jupyter-api-token=\"%s\">" % token
    server.jupyter.control("set", {"session_create": {"status": 404, "body": html}})
    answer = server.request("POST", "/contexts", {})
    server.jupyter.control("set", {"session_create": None})
    ok(answer.status == 500 and token.encode() not in answer.body and b"HTML" in answer.body,
       "a page is not quoted", answer)
    with open(os.path.join(server.run_dir, "error.log")) as f:
        ok(token not in f.read(), "nor logged")


@scenario(location="lingering_timeout 300ms;")
def body_behind(server, rounds):
    """A body that nobody reads comes while its request waits: the connection is as good as before."""
    context = server.create_context()
    for method, path, name in (("POST", "/contexts/%s/restart" % context, "restart"),
                               ("DELETE", "/contexts/%s" % context, "session_delete")):
        server.jupyter.set(**{name: {"delay_after": 0.6, "act": True}})
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.settimeout(5)
            head = "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n" % (method, path)
            sock.sendall(head.encode())
            time.sleep(0.1)         # it is parked
            sock.sendall(b"{}")
            is_(sock.recv(65536)[:15], b"HTTP/1.1 200 OK", "%s %s" % (method, name))
            time.sleep(1)           # longer than nginx lingers
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            is_(sock.recv(65536)[:15], b"HTTP/1.1 200 OK", "the next one on its connection")
        server.jupyter.set(**{name: None})


main(Scripted, workers=(1,), jobs=4)
