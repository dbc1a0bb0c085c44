"""A blocking websocket client for a kernel's channels, real or scripted."""

import select
import socket
import struct
import time
import uuid

import jupyter_wire as wire


class KernelSocket:
    """One link to a kernel.  Messages are kept in .messages as they come, with .at for the time;
    .closed tells how the link ended: (code, reason), "eof" or "reset"."""

    def __init__(self, port, kernel_id, session_id=None, token="", protocol=wire.V1, timeout=30,
                 answer_close=True):
        self.session_id = session_id or uuid.uuid4().hex
        self.protocol = protocol
        self.answer_close = answer_close
        self.messages = []
        self.position = 0
        self.pings = []
        self.pongs = []
        self.bad = []
        self.closed = None
        self.frames = wire.FrameReader(False)
        self.sock = socket.create_connection(("127.0.0.1", port), timeout)
        self._handshake(port, kernel_id, token)

    def _handshake(self, port, kernel_id, token):
        lines = ["GET /api/kernels/%s/channels?session_id=%s HTTP/1.1" % (kernel_id, self.session_id),
                 "Host: 127.0.0.1:%d" % port, "Upgrade: websocket", "Connection: Upgrade",
                 "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
        if token:
            lines.append("Authorization: token " + token)
        if self.protocol:
            lines.append("Sec-WebSocket-Protocol: " + self.protocol)
        self.sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            data = self.sock.recv(65536)
            if not data:
                break
            head += data
        head, _, rest = head.partition(b"\r\n\r\n")
        self.head = head.decode("latin-1")
        self.status = int(self.head.split(" ")[1]) if self.head else 0
        self.body = rest
        if self.status != 101:
            self.closed = "refused"
            self.sock.close()
            return
        if self.protocol and self.protocol.lower() not in self.head.lower():
            self.protocol = None
        self.body = b""
        self._feed(rest)

    # Out

    def send(self, message):
        opcode, payload = message.encode(self.protocol)
        self.send_raw(wire.frame(opcode, payload, masked=True))
        return message.id

    def send_raw(self, data):
        self.sock.sendall(data)

    def request(self, msg_type, content=None, channel="shell"):
        return self.send(wire.Message(channel, wire.header(msg_type, self.session_id), content=content or {}))

    def execute(self, code, silent=False, stop_on_error=False, **more):
        content = {"code": code, "silent": silent, "store_history": not silent, "user_expressions": {},
                   "allow_stdin": False, "stop_on_error": stop_on_error, **more}
        return self.request("execute_request", content)

    def close(self, code=1000):
        if self.closed is None:
            self.send_raw(wire.frame(wire.CLOSE, wire.close_payload(code), masked=True))
            self.read_until(lambda m: False, 3)
        self.sock.close()

    def drop(self, reset=False):
        """Gone without a close frame."""
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.closed = self.closed or "dropped"
        self.sock.close()

    # In

    def _feed(self, data):
        for opcode, payload in self.frames.feed(data):
            if opcode == wire.PING:
                self.pings.append(payload)
                self.send_raw(wire.frame(wire.PONG, payload, masked=True))
            elif opcode == wire.PONG:
                self.pongs.append(payload)
            elif opcode == wire.CLOSE:
                code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else None
                if self.closed is None and self.answer_close:
                    try:
                        self.send_raw(wire.frame(wire.CLOSE, payload[:2], masked=True))
                    except OSError:
                        pass
                self.closed = (code, payload[2:].decode("utf-8", "replace"))
            else:
                try:
                    message = wire.decode(self.protocol, opcode, payload)
                    message.text = payload
                except Exception as e:
                    self.bad.append((e, payload))
                    continue
                message.at = time.monotonic()
                message.opcode = opcode
                self.messages.append(message)

    def pump(self, timeout):
        """Reads once; False when nothing came or the link ended."""
        if self.closed is not None or not select.select([self.sock], [], [], max(timeout, 0))[0]:
            return False
        try:
            data = self.sock.recv(1 << 18)
        except ConnectionResetError:
            self.closed = "reset"
            return False
        if not data:
            self.closed = "eof"
            return False
        self._feed(data)
        return True

    def read_until(self, test, timeout=10):
        """The first message not yet looked at for which test is true, or None."""
        end = time.monotonic() + timeout
        while True:
            while self.position < len(self.messages):
                message = self.messages[self.position]
                self.position += 1
                if test(message):
                    return message
            left = end - time.monotonic()
            if self.closed is not None or left <= 0:
                return None
            self.pump(left)

    def wait_closed(self, timeout=10):
        self.read_until(lambda m: False, timeout)
        return self.closed

    def settle(self, quiet=0.3, timeout=10):
        """Reads until nothing has come for `quiet` seconds."""
        end = time.monotonic() + timeout
        while time.monotonic() < end and self.pump(quiet):
            pass
        return self.messages

    def result(self, msg_id, timeout=10, reply=True, idle=True):
        """The messages of one request, until its reply and idle."""
        end = time.monotonic() + timeout
        while True:
            mine = [m for m in self.messages if m.parent_id == msg_id]
            have_reply = any(m.type.endswith("_reply") for m in mine)
            have_idle = any(is_status(m, "idle") for m in mine)
            if (have_reply or not reply) and (have_idle or not idle):
                return mine
            left = end - time.monotonic()
            if self.closed is not None or left <= 0:
                return mine
            self.pump(left)

    def run(self, code, timeout=10, **more):
        return self.result(self.execute(code, **more), timeout)


def is_status(message, state):
    return message.type == "status" and message.content.get("execution_state") == state


def brief(messages):
    """The messages of one request as short words, for comparisons."""
    words = []
    for m in messages:
        if m.type == "status":
            words.append(m.content["execution_state"])
        elif m.type == "stream":
            words.append("%s:%s" % (m.content["name"], m.content["text"]))
        elif m.type == "error":
            words.append("error:" + m.content["ename"])
        elif m.type.endswith("_reply"):
            words.append("reply:%s" % m.content.get("status"))
        else:
            words.append(m.type)
    return words


__all__ = ["KernelSocket", "is_status", "brief"]
