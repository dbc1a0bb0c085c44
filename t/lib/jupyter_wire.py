"""Bytes on the wire: RFC 6455 frames and the two websocket layouts of Jupyter
messages.  Used by the scripted server and by the clients of the tests."""

import base64
import datetime
import hashlib
import json
import os
import struct
import uuid

V1 = "v1.kernel.websocket.jupyter.org"

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


# Websocket frames

def accept_key(key):
    digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode())
    return base64.b64encode(digest.digest()).decode()


def apply_mask(data, mask):
    size = len(data)
    if not size:
        return b""
    pattern = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(pattern, "big")).to_bytes(size, "big")


def frame(opcode, payload=b"", fin=True, masked=False):
    """One frame; a client's frames are masked."""
    head = bytearray([(0x80 if fin else 0) | opcode])
    bit = 0x80 if masked else 0
    if len(payload) < 126:
        head.append(bit | len(payload))
    elif len(payload) < 65536:
        head += struct.pack("!BH", bit | 126, len(payload))
    else:
        head += struct.pack("!BQ", bit | 127, len(payload))
    if masked:
        mask = os.urandom(4)
        return bytes(head) + mask + apply_mask(payload, mask)
    return bytes(head) + payload


def fragments(opcode, payload, size):
    """The same message in frames of at most `size` bytes."""
    pieces = [payload[i:i + size] for i in range(0, len(payload), size)] or [b""]
    out = []
    for i, piece in enumerate(pieces):
        out.append(frame(opcode if i == 0 else CONTINUATION, piece, i == len(pieces) - 1))
    return b"".join(out)


def close_payload(code=None, reason=""):
    return b"" if code is None else struct.pack("!H", code) + reason.encode()


class ProtocolError(Exception):
    pass


class FrameReader:
    """Takes bytes in any split, gives whole messages and control frames."""

    def __init__(self, must_be_masked, max_message=None):
        self.must_be_masked = must_be_masked
        self.max_message = max_message
        self.data = bytearray()
        self.opcode = None
        self.parts = []
        self.size = 0

    def feed(self, data):
        """Returns a list of (opcode, payload)."""
        self.data += data
        out = []
        while True:
            one = self._frame()
            if one is None:
                return out
            fin, opcode, payload = one
            if opcode >= 8:
                if not fin or len(payload) > 125:
                    raise ProtocolError("fragmented or long control frame")
                out.append((opcode, payload))
                continue
            if (opcode == CONTINUATION) == (self.opcode is None):
                raise ProtocolError("continuation frame expected or unexpected")
            if opcode != CONTINUATION:
                self.opcode = opcode
            self.parts.append(payload)
            self.size += len(payload)
            if fin:
                out.append((self.opcode, b"".join(self.parts)))
                self.opcode, self.parts, self.size = None, [], 0

    def _frame(self):
        data = self.data
        if len(data) < 2:
            return None
        if data[0] & 0x70:
            raise ProtocolError("reserved bits set")
        masked, size, at = bool(data[1] & 0x80), data[1] & 0x7F, 2
        if masked != self.must_be_masked:
            raise ProtocolError("frame is masked" if masked else "frame is not masked")
        if size == 126:
            if len(data) < 4:
                return None
            size, at = struct.unpack_from("!H", data, 2)[0], 4
        elif size == 127:
            if len(data) < 10:
                return None
            size, at = struct.unpack_from("!Q", data, 2)[0], 10
        if self.max_message and self.size + size > self.max_message:
            raise MessageTooBig("message of %d bytes" % (self.size + size))
        end = at + (4 if masked else 0) + size
        if len(data) < end:
            return None
        payload = bytes(data[end - size:end])
        if masked:
            payload = apply_mask(payload, bytes(data[at:at + 4]))
        first = data[0]
        del data[:end]
        return bool(first & 0x80), first & 0x0F, payload


class MessageTooBig(ProtocolError):
    pass


# Jupyter messages

def now():
    return datetime.datetime.utcnow().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def header(msg_type, session, username="username"):
    return {"msg_id": str(uuid.uuid4()), "msg_type": msg_type, "username": username,
            "session": session, "date": now(), "version": "5.3"}


def to_bytes(text):
    """ipykernel's packer lets undecodable bytes pass; lone surrogates too, here."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


class Raw(str):
    """JSON text that goes out as it stands, valid or not."""


def dump(value, ascii_only):
    return str(value) if isinstance(value, Raw) else json.dumps(value, ensure_ascii=ascii_only)


class Message:
    """One Jupyter message.  header, parent, metadata, content: values or Raw."""

    def __init__(self, channel, header, parent=None, metadata=None, content=None, buffers=()):
        self.channel = channel
        self.header = header
        self.parent = {} if parent is None else parent
        self.metadata = {} if metadata is None else metadata
        self.content = {} if content is None else content
        self.buffers = list(buffers)

    @property
    def type(self):
        return self.header.get("msg_type")

    @property
    def id(self):
        return self.header.get("msg_id")

    @property
    def parent_id(self):
        return self.parent.get("msg_id")

    def __repr__(self):
        return "<%s %s %s parent=%s>" % (self.channel, self.type, self.content, self.parent_id)

    def _parts(self):
        return self.header, self.parent, self.metadata, self.content

    def encode(self, protocol):
        """Returns (opcode, payload)."""
        if protocol == V1:
            parts = [to_bytes(dump(p, False)) for p in self._parts()] + self.buffers
            return BINARY, pack_v1(self.channel, parts)
        header, parent, metadata, content = (dump(p, True) for p in self._parts())
        known = self.header if isinstance(self.header, dict) else {}
        text = ('{"header": %s, "msg_id": %s, "msg_type": %s, "parent_header": %s, "metadata": %s, "content": %s'
                % (header, json.dumps(known.get("msg_id")), json.dumps(known.get("msg_type")),
                   parent, metadata, content))
        channel = ', "channel": %s}' % json.dumps(self.channel)
        if not self.buffers:
            return TEXT, to_bytes(text + ', "buffers": []' + channel)
        return BINARY, pack_legacy(to_bytes(text + channel), self.buffers)


def pack_v1(channel, parts):
    offsets = [8 * (len(parts) + 3)]
    for part in [channel.encode()] + parts:
        offsets.append(offsets[-1] + len(part))
    numbers = [len(offsets)] + offsets
    return struct.pack("<%dQ" % len(numbers), *numbers) + channel.encode() + b"".join(parts)


def unpack_v1(data):
    """Returns the channel and the list of parts."""
    (count,) = struct.unpack_from("<Q", data)
    offsets = struct.unpack_from("<%dQ" % count, data, 8)
    spans = [bytes(data[a:b]) for a, b in zip(offsets, offsets[1:])]
    if count < 6 or offsets[-1] > len(data) or list(offsets) != sorted(offsets):
        raise ProtocolError("bad offsets in a message")
    return spans[0].decode(), spans[1:]


def pack_legacy(text, buffers):
    parts = [text] + buffers
    offsets = [4 * (len(parts) + 1)]
    for part in parts[:-1]:
        offsets.append(offsets[-1] + len(part))
    return struct.pack("!%dI" % (len(parts) + 1), len(parts), *offsets) + b"".join(parts)


def unpack_legacy(data):
    (count,) = struct.unpack_from("!I", data)
    offsets = list(struct.unpack_from("!%dI" % count, data, 4)) + [len(data)]
    return [bytes(data[a:b]) for a, b in zip(offsets, offsets[1:])]


def decode(protocol, opcode, payload):
    """A websocket message as a Message; raises on anything malformed."""
    if protocol == V1:
        if opcode != BINARY:
            raise ProtocolError("text frame in the binary protocol")
        channel, parts = unpack_v1(payload)
        values = [json.loads(p.decode("utf-8", "replace")) for p in parts[:4]]
        return Message(channel, *values, buffers=parts[4:])
    buffers = []
    if opcode == BINARY:
        payload, *buffers = unpack_legacy(payload)
    value = json.loads(payload.decode("utf-8"))
    return Message(value.get("channel") or "shell", value["header"], value.get("parent_header"),
                   value.get("metadata"), value.get("content"), buffers)


def fingerprint(message):
    """What Jupyter signs: a kernel drops a message whose signature it has seen."""
    text = json.dumps([message.header, message.parent, message.metadata, message.content],
                      sort_keys=True)
    return hashlib.sha1(text.encode("utf-8", "surrogatepass")).hexdigest()
