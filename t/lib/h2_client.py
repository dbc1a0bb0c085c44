"""A small HTTP/2 client (python3-h2): several streams on one connection, each readable as it comes."""

import json
import select
import socket
import time

import h2.config
import h2.connection
import h2.errors
import h2.events


class H2Connection:
    """auto_window: whether the streams' windows are opened again for what was read."""

    def __init__(self, port, timeout=30, auto_window=True, initial_window=None):
        self.port, self.timeout, self.auto_window = port, timeout, auto_window
        self.streams = {}
        self.closed = None
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.sock = socket.create_connection(("127.0.0.1", port), timeout)
        self.h2.initiate_connection()
        if initial_window is not None:
            self.h2.update_settings({0x4: initial_window})      # SETTINGS_INITIAL_WINDOW_SIZE
        self.flush()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.sock.sendall(data)

    def request(self, method, path, body=None):
        body = b"" if body is None else json.dumps(body).encode()
        stream = H2Stream(self, self.h2.get_next_available_stream_id())
        self.streams[stream.id] = stream
        headers = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "127.0.0.1")]
        if body:
            headers += [("content-type", "application/json"), ("content-length", str(len(body)))]
        self.h2.send_headers(stream.id, headers, end_stream=not body)
        if body:
            self.h2.send_data(stream.id, body, end_stream=True)
        self.flush()
        return stream

    def execute(self, code, context_id=None, **fields):
        body = {"code": code, **fields}
        if context_id is not None:
            body["context_id"] = context_id
        return self.request("POST", "/execute", body)

    def pump(self, timeout):
        """Reads once."""
        if self.closed or not select.select([self.sock], [], [], max(timeout, 0))[0]:
            return False
        try:
            data = self.sock.recv(1 << 18)
        except OSError as e:
            self.closed = repr(e)
            return False
        if not data:
            self.closed = "eof"
            return False
        for event in self.h2.receive_data(data):
            self._take(event)
        self.flush()
        return True

    def _take(self, event):
        if isinstance(event, h2.events.ConnectionTerminated):
            self.closed = "goaway %s" % event.error_code
        stream = self.streams.get(getattr(event, "stream_id", None))
        if stream is None:
            return
        if isinstance(event, h2.events.ResponseReceived):
            stream.headers = dict(event.headers)
            stream.status = int(stream.headers[":status"])
        elif isinstance(event, h2.events.DataReceived):
            stream.take(event.data)
            if self.auto_window:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            stream.ended = stream.ended or "complete"
        elif isinstance(event, h2.events.StreamReset):
            stream.ended = "reset"

    def close(self):
        self.sock.close()
        self.closed = self.closed or "left"
        return time.monotonic()


class H2Stream:
    """Looks like kexec_test's Stream, as far as it goes."""

    def __init__(self, connection, number):
        self.connection, self.id = connection, number
        self.status, self.headers, self.ended = None, {}, None
        self.events, self.body, self.line = [], b"", b""
        self.unread = 0
        self.sent_at, self.finished_at = time.monotonic(), None

    def take(self, data):
        self.body += data
        self.unread += len(data)
        *lines, self.line = (self.line + data).split(b"\n")
        for line in lines:
            self.events.append((time.monotonic(), json.loads(line)))

    def wait(self, test, timeout=None):
        end = time.monotonic() + (timeout or self.connection.timeout)
        while not test() and not self.ended and not self.connection.closed and time.monotonic() < end:
            self.connection.pump(end - time.monotonic())
        return test()

    def wait_head(self, timeout=None):
        self.wait(lambda: self.status is not None, timeout)
        return self.status

    def wait_for(self, event_type, timeout=None):
        self.wait(lambda: event_type in self.types(), timeout)
        return next((e for e in self.all() if e["type"] == event_type), None)

    def finish(self, timeout=None):
        self.wait(lambda: self.ended, timeout)
        self.finished_at = time.monotonic()
        return self.all()

    def all(self):
        return [e for _, e in self.events if e["type"] != "keepalive"]

    def types(self):
        return [e["type"] for e in self.all()]

    def text(self, kind="stdout"):
        return "".join(e["text"] for e in self.all() if e["type"] == kind)

    def error(self):
        return next((e["name"] for e in self.all() if e["type"] == "error"), None)

    def reset(self):
        """RST_STREAM with CANCEL, as a client that is not interested any more sends it."""
        self.connection.h2.reset_stream(self.id, h2.errors.ErrorCodes.CANCEL)
        self.connection.flush()
        self.ended = "left"
        return time.monotonic()

    def open_window(self):
        """Gives back what was read, stream and connection."""
        if self.unread:
            self.connection.h2.acknowledge_received_data(self.unread, self.id)
            self.unread = 0
            self.connection.flush()
