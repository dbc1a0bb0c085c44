#!/usr/bin/python3
"""Requests that are odd but legal, and what stands in front of or behind the location."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from kexec_test import *

PASS = "kexec_pass http://%s; kexec_token secret;"
JUPYTER = PASS % "jupyter"


def conditional(nginx, jupyter):
    """Whatever a cache says it has: an answer tells what was done."""
    for header in ({"If-None-Match": "*"}, {"If-Match": '"x"'}, {"Range": "bytes=0-3"},
                   {"If-Unmodified-Since": "Sat, 29 Oct 1994 19:43:31 GMT"},
                   {"If-Modified-Since": "Sat, 29 Oct 2094 19:43:31 GMT"}):
        name = list(header)[0]
        answer = nginx.request("POST", "/contexts", {}, header)
        if not is_(answer.status, 200, "%s: the new context's id is told" % name):
            continue
        stream = nginx.execute("print hello", answer.json()["id"], header)
        stream.finish()
        is_((stream.status, stream.text()), (200, "hello\n"), "%s: the stream is whole" % name)
        is_(nginx.request("DELETE", "/contexts/" + answer.json()["id"], None, header).status, 200,
            "%s: a deletion is confirmed" % name)


def interrupt_outlives(nginx, jupyter):
    """A request that lives on after its answer (its body is unread, the connection lingers) gets one answer."""
    context = nginx.create_context()
    head = "POST /contexts/%s/interrupt HTTP/1.1\r\nHost: x\r\n" % context
    for name, request, code in (
            ("nothing runs, body unread", head + "Content-Length: 10\r\n\r\n", None),
            ("code runs, body unread", head + "Content-Length: 10\r\n\r\n", "sleep 30"),
            ("connection lingers", head + "Connection: close\r\n\r\nX", None)):
        if code:
            mark = jupyter.mark()
            running = nginx.execute(code, context)
            jupyter.wait(since=mark, ev="start", code=code)
        stream = Stream(nginx.port, send=False)
        stream.sock.sendall(request.encode())
        is_(stream.wait_head(10), 200, "interrupt, %s: answered" % name)
        for _ in range(3):
            is_(nginx.run("print hello", context_id=context).text(), "hello\n", "interrupt, %s: the next one" % name)
        stream.pump(0.2)
        is_(stream.body + stream.raw, b"null", "interrupt, %s: one answer" % name)
        if code:
            is_(running.finish()[-1]["type"], "end_of_execution", "the code has ended")
        stream.close()


def memory(nginx):
    with open("/proc/%d/status" % nginx.workers()[0]) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def waiters(nginx, jupyter):
    """What waits in a queue is kept once, and is limited."""
    size, count, context = 7 << 20, 8, nginx.create_context()
    for fields in ({"env_vars": {"A": "a" * (40 << 20)}}, {"env_vars": {"A%d" % i: "a" * 1000 for i in range(9000)}},
                   {"code": "#" * (5 << 20), "env_vars": {"A": "a" * (4 << 20)}}):
        answer = nginx.request("POST", "/execute", {"code": "print x", "context_id": context, **fields}, timeout=60)
        ok(answer.status == 413 and b"The code and its variables have " in answer.body, "too much is a 413 that says so",
           answer)
    running = nginx.execute("sleep 30", context)
    jupyter.wait(ev="start", code="sleep 30")
    before = memory(nginx)
    streams = []
    for i in range(count):
        streams.append(nginx.execute("print hello", context, env_vars={"A": "a" * (size // 2), "B": "b" * (size // 2)}))
        is_(streams[-1].wait_head(10), 200, "one more waits")
    memory_within((memory(nginx) - before) * 1024, 1.2 * count * size + (4 << 20),
                  "%d waiters with %d MB each" % (count, size >> 20))
    for stream in streams[1:]:
        stream.reset()
    running.reset()
    is_(streams[0].finish()[-1]["type"], "end_of_execution", "the first one runs")
    is_(streams[0].text(), "hello\n", "with its variables")


def values(nginx, jupyter):
    """A body of millions of values stops nobody else."""
    before = memory(nginx)
    start = time.monotonic()
    for code, status, name in (("1", 200, "passed over"), ("[" + "{}," * (10 << 20) + "0]", 422, "refused")):
        body = '{"code":%s,"x":[%s0]}' % (code if status == 422 else '"1"', "{}," * (10 << 20) if status == 200 else "")
        answer = nginx.request("POST", "/execute", body.encode(), {"Content-Type": "application/json"}, 60)
        is_(answer.status, status, "30 MB of empty objects are %s" % name)
    within(time.monotonic() - start, 6, "at once")
    memory_within((memory(nginx) - before) * 1024, 40 << 20, "for no more memory than the body's")
    answer = nginx.request("POST", "/execute", b'{"y":"' + b"z" * (5 << 20) + b'"}',
                           {"Content-Type": "application/json"}, 60)
    ok(answer.status == 422 and len(answer.body) < 1000, "a large body is not sent back with its error",
       "%d, %d bytes" % (answer.status, len(answer.body)))
    answer = nginx.run("print hello", env_vars={"A%d" % i: "b" for i in range(5000)})
    is_(answer.text(), "hello\n", "many variables are no harm")


def in_front(jupyter):
    """Other modules of nginx in front of the location, or their redirects."""
    port = free_port()
    locations = "".join("location %s { %s }\n" % (path, text) for path, text in (
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
        ("/accel/", "proxy_pass http://127.0.0.1:%d/source/;" % port),
        ("/source/", "add_header X-Accel-Redirect /contexts; return 200;"),
        ("/page/", "error_page 404 =200 /contexts; return 404;"),
    ))
    http = "server { listen 127.0.0.1:%d; client_body_buffer_size 8k; %s }" % (port, locations)
    with Nginx(jupyter, env={"EXTRA_HTTP": http, "DEFAULT_CONTEXTS": "python"}) as nginx:
        for path in ("", "/break/v1", "/last", "/files", "/auth", "/mirror", "/rate", "/file", "/single", "/post", "/if",
                     "/plain"):
            for code, query in (("print hello", ""), ("print hello\n#" + "z" * 50000, "?x=1")):
                stream = Stream(port, "POST", path + "/execute" + query, {"code": code}, timeout=10)
                stream.finish()
                is_((stream.status, stream.text(), stream.ended), (200, "hello\n", "complete"),
                    "%s/execute%s, %d bytes of code" % (path, query, len(code)))
        for path in ("/accel/x", "/page/x"):
            answer = request(port, "GET", path)
            ok(answer.status == 200 and answer.body.startswith(b"["), path, answer)
        nginx.log.check()


def behind(jupyter):
    """Upstream blocks: a context is made where a server is, and health knows it."""
    dead, blocks = free_port(), {
        "keepalive": "server 127.0.0.1:%d; keepalive 4;" % jupyter.port,
        "zone": "zone z1 64k; server 127.0.0.1:%d;" % jupyter.port,
        "least_conn": "zone z2 64k; least_conn; server 127.0.0.1:%d max_conns=1;" % jupyter.port,
        "hash": "hash $arg_x consistent; server 127.0.0.1:%d;" % jupyter.port,
        "random": "random two least_conn; server 127.0.0.1:%d; server 127.0.0.1:%d;" % (jupyter.port, jupyter.port),
        "one down": "server 127.0.0.1:%d down; server 127.0.0.1:%d;" % (free_port(), jupyter.port),
        "backup": "server 127.0.0.1:%d down; server 127.0.0.1:%d backup;" % (free_port(), jupyter.port),
    }
    blocks["one dead"] = "server 127.0.0.1:%d max_fails=1 fail_timeout=60s; server 127.0.0.1:%d;" % (dead, jupyter.port)
    blocks["none"] = "server 127.0.0.1:%d down;" % dead
    with Nginx(jupyter, location="location /proxy/ { proxy_pass http://jupyter/; proxy_http_version 1.1; "
               "proxy_set_header Connection ''; }", env={"DEFAULT_CONTEXTS": "python"}) as nginx:
        conf = os.path.join(nginx.run_dir, "nginx.conf")
        with open(conf) as f:
            text = f.read()
        for name, block in blocks.items():
            with open(conf, "w") as f:
                f.write(re.sub(r"(upstream jupyter) \{.*?\}", lambda m: "%s { %s }" % (m.group(1), block), text, flags=re.S))
            old = set(nginx.workers())
            nginx.reload()
            wait_until(lambda: not old & set(nginx.workers()), 30, "the old workers' end")
            if name == "none":
                is_(nginx.request("POST", "/contexts", {}).status, 503, "no live server: no context")
                is_(nginx.request("GET", "/health").status, 503, "no live server: not healthy")
                continue
            for i in range(4):
                if name != "one dead":
                    nginx.request("GET", "/proxy/api")
                answer = nginx.request("POST", "/contexts?x=%d" % i, {})
                if not is_(answer.status, 200, "%s: a context" % name):
                    continue
                context = answer.json()["id"]
                stream = nginx.run("print hello", context_id=context)
                is_(stream.text(), "hello\n", "%s: it runs code" % name)
                is_(nginx.request("DELETE", "/contexts/" + context).status, 200, "%s: and is deleted" % name)
            is_(nginx.request("GET", "/health").status, 200, "%s: healthy" % name)
        nginx.log.check()


def page(jupyter):
    """Jupyter's pages for browsers hold the token."""
    token = "0123456789abcdef-token"
    with Nginx(jupyter, env={"DEFAULT_CONTEXTS": "python"}) as nginx:
        html = "<!DOCTYPE HTML><html data-jupyter-api-token=\"%s\">" % token
        jupyter.control("set", {"session_create": {"status": 404, "body": html}})
        answer = nginx.request("POST", "/contexts", {})
        jupyter.control("set", {"session_create": None})
        ok(answer.status == 500 and token.encode() not in answer.body and b"HTML" in answer.body,
           "a page is not quoted", answer)
        with open(os.path.join(nginx.run_dir, "error.log")) as f:
            ok(token not in f.read(), "nor logged")
        nginx.log.check()


def body_behind(jupyter):
    """A body that nobody reads comes while its request waits: the connection is as good as before."""
    with Nginx(jupyter, location="lingering_timeout 300ms;") as nginx:
        context = nginx.create_context()
        for method, path, name in (("POST", "/contexts/%s/restart" % context, "restart"),
                                   ("DELETE", "/contexts/%s" % context, "session_delete")):
            jupyter.set(**{name: {"delay_after": 0.6, "act": True}})
            with socket.create_connection(("127.0.0.1", nginx.port)) as sock:
                sock.settimeout(5)
                head = "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n" % (method, path)
                sock.sendall(head.encode())
                time.sleep(0.1)         # it is parked
                sock.sendall(b"{}")
                is_(sock.recv(65536)[:15], b"HTTP/1.1 200 OK", "%s %s" % (method, name))
                time.sleep(1)           # longer than nginx lingers
                sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                is_(sock.recv(65536)[:15], b"HTTP/1.1 200 OK", "the next one on its connection")
            jupyter.set(**{name: None})
        nginx.log.check()


def run(function):
    with ScriptedJupyter() as jupyter:
        if function in (in_front, behind, page, body_behind):
            function(jupyter)
            return
        with Nginx(jupyter, env={"DEFAULT_CONTEXTS": "python"}) as nginx:
            function(nginx, jupyter)
            nginx.log.check()


if __name__ == "__main__":
    for part in (conditional, interrupt_outlives, values, waiters, in_front, behind, page, body_behind):
        if not sys.argv[1:] or part.__name__ in sys.argv[1:]:
            run(part)
    done_testing()
