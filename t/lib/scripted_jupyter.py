#!/usr/bin/python3
"""A scripted Jupyter Server for fault tests: the REST calls and websockets that the module uses,
fake kernels that are told by their code how to behave, and faults set through /_control/.

    scripted_jupyter.py --port P [--token T] [--control-port C] [--options JSON]

Prints "ready" once it listens, ends on SIGTERM.  See README.md.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import struct
import sys
import time
import traceback
import urllib.parse
import uuid

import jupyter_wire as wire
import scripted_control
from scripted_control import OPTIONS
from scripted_kernel import KERNELS, Kernel, spec_model

REASONS = {200: "OK", 201: "Created", 204: "No Content", 400: "Bad Request", 403: "Forbidden",
           404: "Not Found", 405: "Method Not Allowed", 410: "Gone", 426: "Upgrade Required",
           500: "Internal Server Error", 501: "Not Implemented", 503: "Service Unavailable"}

# Tornado sets one with every answer to an authenticated request.
COOKIE = 'username-127-0-0-1="2|1:0|10:1795966763|24:username-127-0-0-1|44:%s|%s"; HttpOnly; Path=/' % (
    "M" * 44, "d" * 64)


class HTTPError(Exception):
    def __init__(self, status, message=None):
        self.status = status
        self.message = message


class Request:
    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.path, _, query = target.partition("?")
        self.args = {k: v[-1] for k, v in urllib.parse.parse_qs(query, keep_blank_values=True).items()}

    def json(self):
        try:
            return json.loads(self.body) if self.body.strip() else None
        except ValueError:
            raise HTTPError(400, "Invalid JSON in body of request")


class WebSocket:
    """The server's side of one websocket to a kernel."""

    count = 0

    def __init__(self, connection, kernel, session_id, protocol):
        WebSocket.count += 1
        self.number = WebSocket.count
        self.connection = connection
        self.server = connection.server
        self.writer = connection.writer
        self.kernel = kernel
        self.session_id = session_id
        self.protocol = protocol
        self.fragment = 0
        self.held = []              # until the nudge is over
        self.closing = False        # our close frame is out: what comes now is lost
        self.gone = asyncio.Event()
        self.iopub_from = 0
        self.deaf = False
        self.close_reason = "client gone"

    # Out

    def deliver(self, message):
        """A message of the kernel, through this websocket's own ZMQ sockets."""
        if self.closing or self.gone.is_set() or self.deaf:
            return
        if message.channel == "iopub" and time.monotonic() < self.iopub_from:
            return
        if self.held is not None:
            self.held.append(message)
            return
        self.send_message(message)

    def release(self, replay, eaten):
        """The nudge is over: what was buffered first, then what came meanwhile."""
        held, self.held = self.held, None
        for message in held:
            if message.channel == "iopub" and eaten > 0:
                eaten -= 1
                continue
            replay.append(message)
        for message in replay:
            self.send_message(message)

    def send_message(self, message):
        if self.closing or self.gone.is_set():
            return
        opcode, payload = message.encode(self.protocol)
        self.send_raw(wire.fragments(opcode, payload, self.fragment) if self.fragment
                      else wire.frame(opcode, payload))

    def send_status(self, state):
        """Jupyter's own word on a kernel: no parent, never buffered."""
        self.send_message(wire.Message("iopub", wire.header("status", self.session_id), {}, {},
                                       {"execution_state": state}))

    def send_raw(self, data):
        if not self.gone.is_set():
            self.writer.write(data)

    def close(self, code=None, reason="", why="closed by the server"):
        """Sends the close frame; the client has a few seconds to answer."""
        if self.closing:
            return
        self.send_raw(wire.frame(wire.CLOSE, wire.close_payload(code, reason)))
        self.closing = True
        self.close_reason = why
        asyncio.get_running_loop().call_later(self.server.options["close_timeout"], self.writer.close)

    def reset(self):
        self.close_reason = "reset by the server"
        self.connection.reset()
        self.detach()

    def cut_mid_frame(self, message):
        data = wire.frame(*message.encode(self.protocol))
        self.send_raw(data[:len(data) // 2])
        self.close_reason = "cut by the server in a frame"
        self.closing = True
        self.writer.close()
        self.detach()

    def detach(self):
        """Off the kernel; the last one to leave starts the buffering."""
        if self.gone.is_set():
            return
        self.gone.set()
        kernel = self.kernel
        if self in kernel.websockets:
            kernel.websockets.remove(self)
            if not kernel.websockets and not kernel.removed:
                kernel.buffer = (self.session_id, [])
        self.server.note("ws_close", kernel=kernel.id, ws=self.number, session_id=self.session_id,
                         reason=self.close_reason, open=len(kernel.websockets))

    # In

    async def run(self):
        frames = wire.FrameReader(True, self.server.options["max_message"])
        pinger = asyncio.ensure_future(self._ping())
        nudge = self.server.options["nudge"]
        try:
            await asyncio.sleep(nudge)
            while True:
                data = await self.connection.read()
                if not data:
                    break
                for opcode, payload in frames.feed(data):
                    if nudge and opcode in (wire.TEXT, wire.BINARY):
                        self.server.note("ws_unread", kernel=self.kernel.id, ws=self.number)
                    if not self._take(opcode, payload):
                        return
                nudge = 0
        except ConnectionError:
            self.close_reason = "reset by the client"
        except wire.MessageTooBig as e:
            self._broken(e)
            self.close(1009, "message too big", "message too big")
        except (wire.ProtocolError, ValueError, KeyError, IndexError, struct.error) as e:
            self._broken(e)
        finally:
            pinger.cancel()
            self.writer.close()
            self.detach()

    def _broken(self, error):
        self.close_reason = "protocol error"
        self.server.note("protocol_error", kernel=self.kernel.id, ws=self.number, error=repr(error))

    def _take(self, opcode, payload):
        if opcode == wire.CLOSE:
            code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else None
            if not self.closing:
                self.close_reason = "closed by the client"
                self.send_raw(wire.frame(wire.CLOSE, payload[:2]))
            self.server.note("ws_close_frame", kernel=self.kernel.id, ws=self.number, code=code)
            return False
        if opcode == wire.PING:
            self.send_raw(wire.frame(wire.PONG, payload))
            self.server.note("ws_ping", kernel=self.kernel.id, ws=self.number)
        elif opcode == wire.PONG:
            self.server.note("ws_pong", kernel=self.kernel.id, ws=self.number, data=payload.decode("latin-1"))
        elif not self.closing:
            self.kernel.receive(wire.decode(self.protocol, opcode, payload), self.session_id)
        return True

    async def _ping(self):
        while self.server.options["ws_ping_interval"]:
            await asyncio.sleep(self.server.options["ws_ping_interval"])
            self.send_raw(wire.frame(wire.PING))


class Connection:
    """One TCP connection: HTTP requests, maybe a websocket in the end."""

    def __init__(self, server, reader, writer):
        self.server = server
        self.reader = reader
        self.writer = writer
        self.websocket = None

    async def read(self):
        return await self.reader.read(1 << 18)

    def reset(self):
        sock = self.writer.get_extra_info("socket")
        if sock is not None and sock.fileno() >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def run(self):
        self.server.connections.add(self)
        try:
            while True:
                request = await self._request()
                if request is None or not await self.server.handle(self, request):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        except asyncio.CancelledError:
            raise
        except Exception:
            traceback.print_exc()
        finally:
            self.server.connections.discard(self)
            self.writer.close()

    async def _request(self):
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, target, _ = first.split(" ", 2)
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        body = b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while True:
                size = int((await self.reader.readline()).split(b";")[0], 16)
                body += (await self.reader.readexactly(size + 2))[:-2]
                if size == 0:
                    break
        elif int(headers.get("content-length", 0)):
            body = await self.reader.readexactly(int(headers["content-length"]))
        return Request(method, target, headers, body)

    def respond(self, status, body=b"", headers=(), keepalive=True, cut=False):
        """Sends an answer; cut: only a part of it."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        lines = ["HTTP/1.1 %d %s" % (status, REASONS.get(status, "Unknown")), "Server: TornadoServer/6.2",
                 "Date: " + time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()),
                 "X-Content-Type-Options: nosniff",
                 "Content-Security-Policy: frame-ancestors 'self'; report-uri /api/security/csp-report; "
                 "default-src 'none'", "Access-Control-Allow-Origin: "]
        if not any(name == "Content-Type" for name, _ in headers) and (status != 204 or body):
            lines.append("Content-Type: application/json")
        lines += ["%s: %s" % h for h in headers]
        size = self.server.options["chunked"]
        if status == 204 and not body:
            data = b""
        elif size:
            lines.append("Transfer-Encoding: chunked")
            pieces = [body[i:i + size] for i in range(0, len(body), size)] + [b""]
            data = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces)
        else:
            lines.append("Content-Length: %d" % len(body))
            data = body
        if not keepalive:
            lines.append("Connection: close")
        if cut:
            data = data[:len(data) // 2]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + data)


class Server:
    def __init__(self, token, options=None):
        self.token = token
        self.options = {}
        self.kernels = {}           # the kernel specs
        self.faults = {}
        self.log = []
        self.log_event = None
        self.deaf = None            # a session id whose links get nothing
        self.running = {}           # kernel id -> Kernel
        self.sessions = {}
        self.connections = set()
        self.max_websockets = {}
        self.start_options = options or {}
        self.started = wire.now()
        self.session = uuid.uuid4().hex     # of Jupyter's own requests to kernels
        self.reset_faults()

    def reset_faults(self):
        self.options = json.loads(json.dumps({**OPTIONS, **self.start_options}))
        self.kernels = dict(KERNELS)
        self.faults = {}
        for kernel in self.running.values():
            kernel.overrides = {}

    # The log

    def note(self, event, **fields):
        record = {"n": len(self.log), "t": time.monotonic(), "ev": event, **fields}
        self.log.append(record)
        self.log_changed()
        return record

    def log_changed(self):
        if self.log_event is not None:
            self.log_event.set()

    def take_option(self, kernel, name):
        """Counts a number down, the kernel's own or everybody's."""
        for where in (kernel.overrides, self.options):
            if where.get(name, 0) > 0:
                where[name] -= 1
                return True
        return False

    # HTTP

    async def handle(self, connection, request):
        """Returns whether the connection goes on."""
        if request.path.startswith("/_control/"):
            return await scripted_control.handle(self, connection, request)
        record = self.note("rest", method=request.method, path=request.target, status=None)
        keepalive = self.options["keepalive"] and request.headers.get("connection", "").lower() != "close"
        try:
            name, args = route(request)
            record["name"] = name
            if request.body:
                record["body"] = request.body.decode("utf-8", "replace")
            if name != "api":
                self.authorize(request)
            fault = self.fault(name, request)
            if fault:
                record["fault"] = True
                if not await self.misbehave(connection, request, name, args, fault, record):
                    return False
                if fault.get("status") or fault.get("raw"):
                    connection.respond(fault.get("status", 200), fault_body(fault), keepalive=keepalive,
                                       headers=list(fault.get("headers", {}).items()),
                                       cut=fault.get("cut_body", False))
                    record["status"] = fault.get("status", 200)
                    return keepalive and not fault.get("cut_body")
            if name == "channels":
                return await self.open_websocket(connection, request, args[0], record)
            status, body, headers = await getattr(self, "do_" + name)(request, *args)
            headers = list(headers) + [("Set-Cookie", COOKIE)] if name != "api" else headers
        except HTTPError as e:
            status, headers = e.status, ()
            body = {"message": e.message or REASONS.get(e.status), "reason": None}
            if e.status != 405 and record.get("name", "channels") == "channels":
                headers = (("Content-Type", "text/html"),)
                body = b"<!DOCTYPE HTML>\n<html><body><h1>%d : %s</h1>%s</body></html>\n" % (
                    e.status, REASONS.get(e.status, "").encode(), b"\n" * 2500)
        record["status"] = status
        connection.respond(status, body, headers, keepalive, bool(record.get("fault") and fault.get("cut_body")))
        if record.get("fault") and fault.get("cut_body"):
            return False
        return keepalive

    def authorize(self, request):
        if not self.token or request.args.get("token") == self.token:
            return
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "token" or value.strip() != self.token:
            raise HTTPError(403)

    def fault(self, name, request):
        for key in (name, "any"):
            fault = self.faults.get(key)
            if not fault or fault.get("match", "") not in request.target:
                continue
            if fault.get("skip", 0) > 0:
                fault["skip"] -= 1
                continue
            if "times" in fault:
                if fault["times"] <= 0:
                    continue
                fault["times"] -= 1
            return fault
        return None

    async def misbehave(self, connection, request, name, args, fault, record):
        """Returns False when the connection is at its end."""
        if fault.get("stall"):
            await asyncio.sleep(fault["stall"])
        if fault.get("delay"):
            if not await self.client_stays(connection, fault["delay"], record):
                return False
        if fault.get("act") and name != "channels":
            try:
                await getattr(self, "do_" + name)(request, *args)
            except HTTPError:
                pass
        if fault.get("delay_after"):
            if not await self.client_stays(connection, fault["delay_after"], record):
                return False
        if fault.get("hang"):
            await self.client_stays(connection, None, record)
            return False
        if fault.get("reset"):
            connection.reset()
            return False
        if fault.get("close"):
            return False
        if "raw" in fault:
            connection.writer.write(fault["raw"].encode("latin-1"))
            record["status"] = "raw"
            return False
        if name == "channels" and fault.get("refuse") and "status" not in fault:
            fault["status"] = 503
        return True

    async def client_stays(self, connection, seconds, record):
        """Waits; False when the client left first.  seconds: a number, [min, max], or None."""
        if isinstance(seconds, list):
            seconds = random.uniform(*seconds)
        try:
            data = await asyncio.wait_for(connection.reader.read(1), seconds)
        except asyncio.TimeoutError:
            return True
        except ConnectionError:
            data = b""
        if not data:
            record["client_left"] = time.monotonic()
            self.log_changed()
        return False

    # REST calls: each returns status, body, headers

    async def do_api(self, request):
        return 200, {"version": "1.23.3"}, ()

    async def do_status(self, request):
        kernels = list(self.running.values())
        return 200, {"connections": sum(len(k.websockets) for k in kernels), "kernels": len(kernels),
                     "last_activity": max([k.last_activity for k in kernels] or [self.started]),
                     "started": self.started}, ()

    async def do_kernelspecs(self, request):
        specs = {name: spec_model(name, entry) for name, entry in self.kernels.items()}
        default = "python3" if "python3" in specs else next(iter(specs), "python3")
        return 200, {"default": default, "kernelspecs": specs}, ()

    async def do_session_create(self, request):
        model = request.json()
        if model is None:
            raise HTTPError(400, "No JSON data provided")
        for field in ("path", "type"):
            if field not in model:
                raise HTTPError(400, "Missing field in JSON data: " + field)
        for session in self.sessions.values():
            if session["path"] == model["path"] and session["kernel"] in self.running:
                return 201, self.session_model(session), (("Location", "/api/sessions/" + session["id"]),)
        kernel_model = model.get("kernel") or {}
        if kernel_model.get("id") in self.running:
            kernel = self.running[kernel_model["id"]]
        else:
            name = kernel_model.get("name") or "python3"
            if name not in self.kernels:
                return 501, {"message": "The '%s' kernel is not available. Please pick another suitable kernel "
                                        "instead, or install that kernel." % name,
                             "short_message": "%s not found" % name}, ()
            kernel = Kernel(self, name, model["path"])
            self.running[kernel.id] = kernel
        session = {"id": str(uuid.uuid4()), "path": model["path"], "name": model.get("name"),
                   "type": model["type"], "kernel": kernel.id}
        self.sessions[session["id"]] = session
        self.note("session_created", session=session["id"], kernel=kernel.id, name=session["name"],
                  path=session["path"])
        return 201, self.session_model(session), (("Location", "/api/sessions/" + session["id"]),)

    def session_model(self, session):
        kernel = self.running[session["kernel"]].model()
        model = {**session, "kernel": kernel}
        if session["type"] == "notebook":
            model["notebook"] = {"path": session["path"], "name": session["name"]}
        return model

    async def do_session_list(self, request):
        self.sessions = {k: s for k, s in self.sessions.items() if s["kernel"] in self.running}
        return 200, [self.session_model(s) for s in self.sessions.values()], ()

    def find_session(self, session_id):
        session = self.sessions.get(session_id)
        if session is None:
            raise HTTPError(404, "Session not found: session_id='%s'" % session_id)
        if session["kernel"] not in self.running:
            del self.sessions[session_id]
            raise HTTPError(404, "Session not found: \"Kernel '%s' appears to have been culled or died "
                                 "unexpectedly, invalidating session '%s'. The session has been removed.\""
                            % (session["kernel"], session_id))
        return session

    async def do_session_get(self, request, session_id):
        return 200, self.session_model(self.find_session(session_id)), ()

    async def do_session_patch(self, request, session_id):
        session = self.find_session(session_id)
        model = request.json()
        if model is None:
            raise HTTPError(400, "No JSON data provided")
        session.update({k: model[k] for k in ("path", "name", "type") if model.get(k) is not None})
        return 200, self.session_model(session), ()

    async def do_session_delete(self, request, session_id):
        session = self.find_session(session_id)
        await self.shut_down(self.running[session["kernel"]], "session deleted")
        self.sessions.pop(session_id, None)
        return 204, b"", ()

    def find_kernel(self, kernel_id):
        kernel = self.running.get(kernel_id)
        if kernel is None:
            raise HTTPError(404, "Kernel does not exist: " + kernel_id)
        return kernel

    async def do_kernel_list(self, request):
        return 200, [k.model() for k in self.running.values()], ()

    async def do_kernel_get(self, request, kernel_id):
        return 200, self.find_kernel(kernel_id).model(), ()

    async def do_kernel_delete(self, request, kernel_id):
        await self.shut_down(self.find_kernel(kernel_id), "kernel deleted")
        return 204, b"", ()

    async def do_interrupt(self, request, kernel_id):
        kernel = self.find_kernel(kernel_id)
        kernel.landing = None
        kernel.interrupt()
        if kernel.landing is not None and kernel.option("sigint_before_answer"):
            await kernel.landing
        return 204, b"", ()

    async def do_restart(self, request, kernel_id):
        if kernel_id not in self.running:       # not a 404, indeed
            return 500, {"message": "Exception restarting kernel", "traceback": [
                '    raise web.HTTPError(404, "Kernel does not exist: %s" % kernel_id)\n']}, ()
        await self.running[kernel_id].restart()
        return 200, self.find_kernel(kernel_id).model(), ()

    async def shut_down(self, kernel, why):
        await kernel.shut_down(False)
        self.remove_kernel(kernel, why)

    def remove_kernel(self, kernel, why):
        self.running.pop(kernel.id, None)
        kernel.remove()
        self.note("kernel_removed", kernel=kernel.id, why=why)
        if self.options["close_on_delete"]:
            for ws in list(kernel.websockets):
                ws.close(why="kernel removed")

    # Websockets

    async def open_websocket(self, connection, request, kernel_id, record):
        kernel = self.find_kernel(kernel_id)
        key = request.headers.get("sec-websocket-key")
        if "websocket" not in request.headers.get("upgrade", "").lower() or not key:
            raise HTTPError(400, 'Can "Upgrade" only to "WebSocket".')
        session_id = request.args.get("session_id") or uuid.uuid4().hex
        for stale in [w for w in kernel.websockets if w.session_id == session_id]:
            stale.close(why="evicted")
            await stale.gone.wait()
        try:
            await asyncio.wait_for(kernel.known.wait(), self.options["kernel_info_timeout"])
        except asyncio.TimeoutError:
            pass
        offered = [p.strip() for p in request.headers.get("sec-websocket-protocol", "").split(",")]
        protocol = wire.V1 if wire.V1 in offered and self.options["protocol"] == "v1" else None
        ws = WebSocket(connection, kernel, session_id, protocol)
        lines = ["HTTP/1.1 101 Switching Protocols", "Server: TornadoServer/6.2", "Upgrade: websocket",
                 "Connection: Upgrade", "Sec-Websocket-Accept: " + wire.accept_key(key), "Set-Cookie: " + COOKIE]
        if protocol:
            lines.append("Sec-Websocket-Protocol: " + protocol)
        connection.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        sock = connection.writer.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(self.options["nodelay"]))
        record["status"] = 101
        connection.websocket = ws
        self.attach(ws)
        await ws.run()
        return False

    def attach(self, ws):
        """Onto the kernel, with what was buffered for this session id; Jupyter then nudges an
        idle kernel with kernel_info requests of its own until iopub works."""
        kernel = ws.kernel
        resumed, replay = False, []
        if kernel.buffer is not None:
            resumed = kernel.buffer[0] == ws.session_id
            replay = kernel.buffer[1] if resumed else []
            kernel.buffer = None
        if self.options["deaf"]:
            self.deaf = ws.session_id if self.options["deaf"] == 2 else None
            self.options["deaf"] = 0
            ws.deaf = True
        elif self.deaf == ws.session_id:
            ws.deaf = True
        else:
            self.deaf = None
        kernel.websockets.append(ws)
        kernel.max_websockets = max(kernel.max_websockets, len(kernel.websockets))
        self.max_websockets[kernel.id] = kernel.max_websockets
        self.note("ws_open", kernel=kernel.id, ws=ws.number, session_id=ws.session_id, resumed=resumed,
                  replayed=len(replay), open=len(kernel.websockets), protocol=ws.protocol or "json")
        if not resumed and self.options["iopub_subscription_delay"]:
            ws.iopub_from = time.monotonic() + self.options["iopub_subscription_delay"]
        if kernel.state == "busy":
            ws.release(replay, self.options["nudge_eats"])
        elif kernel.up.is_set():
            self.nudge(ws, replay)
        else:
            asyncio.ensure_future(self.nudge_later(ws, replay))

    def nudge(self, ws, replay):
        """Once on control, which answers at once, and once on shell; the first iopub message ends
        the nudge and is not passed on."""
        for channel in ("control", "shell"):
            ws.kernel.receive(wire.Message(channel, wire.header("kernel_info_request", ws.session_id)), None)
        ws.release(replay, 1 + self.options["nudge_eats"])

    async def nudge_later(self, ws, replay):
        # the next process has another event: one that dies before it is up never sets its own
        while not ws.kernel.up.is_set() and not ws.gone.is_set():
            try:
                await asyncio.wait_for(ws.kernel.up.wait(), 0.05)
            except asyncio.TimeoutError:
                pass
        if not ws.gone.is_set():
            self.nudge(ws, replay)


def fault_body(fault):
    body = fault.get("body", {"message": REASONS.get(fault.get("status"), "scripted"), "reason": None})
    return body.encode() if isinstance(body, str) else body


def route(request):
    """Returns the call's name and its arguments."""
    parts = request.path.strip("/").split("/")
    key = (request.method, *("*" if len(p) == 36 and p.count("-") == 4 else p for p in parts))
    ids = [p for p in parts if len(p) == 36 and p.count("-") == 4]
    name = ROUTES.get(key)
    if name is None:
        known = [k for k in ROUTES if k[1:] == key[1:]]
        raise HTTPError(405 if known else 404)
    return name, ids


ROUTES = {
    ("GET", "api"): "api",
    ("GET", "api", "status"): "status",
    ("GET", "api", "kernelspecs"): "kernelspecs",
    ("POST", "api", "sessions"): "session_create",
    ("GET", "api", "sessions"): "session_list",
    ("GET", "api", "sessions", "*"): "session_get",
    ("PATCH", "api", "sessions", "*"): "session_patch",
    ("DELETE", "api", "sessions", "*"): "session_delete",
    ("GET", "api", "kernels"): "kernel_list",
    ("GET", "api", "kernels", "*"): "kernel_get",
    ("DELETE", "api", "kernels", "*"): "kernel_delete",
    ("POST", "api", "kernels", "*", "interrupt"): "interrupt",
    ("POST", "api", "kernels", "*", "restart"): "restart",
    ("GET", "api", "kernels", "*", "channels"): "channels",
}


class Listener:
    """The listening sockets; the main one can go down and up again."""

    def __init__(self, server, port, control_port):
        self.server, self.port, self.control_port = server, port, control_port
        self.main = None

    async def _accept(self, reader, writer):
        await Connection(self.server, reader, writer).run()

    async def up(self):
        if self.main is None:
            self.main = await asyncio.start_server(self._accept, "127.0.0.1", self.port, limit=1 << 20,
                                                   reuse_address=True)

    async def start(self):
        await self.up()
        if self.control_port:
            await asyncio.start_server(self._accept, "127.0.0.1", self.control_port, limit=1 << 20)

    def down(self, spare):
        """Connections are refused and the open ones reset."""
        if self.main is not None:
            self.main.close()
            self.main = None
        for connection in list(self.server.connections):
            if connection is not spare:
                if connection.websocket:
                    connection.websocket.reset()
                else:
                    connection.reset()


async def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--token", default="")
    parser.add_argument("--control-port", type=int)
    parser.add_argument("--options", default="{}", help="JSON with other defaults for the options")
    parser.add_argument("--with-parent", action="store_true", help="end when the parent process does")
    args = parser.parse_args()

    server = Server(args.token, json.loads(args.options))
    server.log_event = asyncio.Event()
    server.listener = Listener(server, args.port, args.control_port)
    await server.listener.start()
    print("ready", flush=True)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    parent = os.getppid()
    while not stop.is_set() and not (args.with_parent and os.getppid() != parent):
        try:
            await asyncio.wait_for(stop.wait(), 1)
        except asyncio.TimeoutError:
            pass


if __name__ == "__main__":
    asyncio.run(main())
    sys.exit(0)
