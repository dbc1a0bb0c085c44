"""Asks build/unit/answer, which see."""

import struct
import subprocess

TEXT, BINARY, V1 = range(3)


class Answer:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, what, data):
        """The bytes, or None for NGX_DECLINED."""
        stdin, stdout = self.process.stdin, self.process.stdout
        stdin.write(what.encode() + struct.pack('<I', len(data)) + data)
        stdin.flush()
        head = stdout.read(5)
        if len(head) < 5:
            raise SystemExit(f'answer died ({self.process.wait()}) of '
                             f'{what} {data!r}')
        body = stdout.read(struct.unpack('<I', head[1:])[0])
        return body if head[:1] == b'0' else None

    def value(self, text):
        return self.ask('w', text)

    def text(self, data):
        return self.ask('x', data)

    def event(self, layout, message):
        return self.ask('e', bytes([layout]) + message)

    def parsed(self, layout, message):
        """channel, type, state, verdict, parent_id"""
        body = self.ask('p', bytes([layout]) + message)
        if body is None:
            return None
        numbers = body.split(b' ', 4)
        return [int(n) for n in numbers[:4]] + [numbers[4].decode()]

    def request(self, layout, code, info=False, silent=False):
        return self.ask('q', bytes([layout, info, silent]) + code)

    def close(self):
        self.process.stdin.close()
        if self.process.wait():
            raise SystemExit(f'answer died ({self.process.returncode})')


def pack_binary(text, buffers=()):
    """jupyter_server's serialize_binary_message()"""
    parts = [text, *buffers]
    offsets = [4 * (len(parts) + 1)]
    for part in parts[:-1]:
        offsets.append(offsets[-1] + len(part))
    return struct.pack(f'!{len(parts) + 1}I', len(parts), *offsets) \
        + b''.join(parts)


def pack_v1(channel, *parts):
    """jupyter_server's serialize_msg_to_ws_v1()"""
    parts = [channel, *parts]
    offsets = [8 * (len(parts) + 2)]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return struct.pack(f'<{len(offsets) + 1}Q', len(offsets), *offsets) \
        + b''.join(parts)


def unpack_v1(message):
    """jupyter_server's deserialize_msg_from_ws_v1()"""
    n, = struct.unpack_from('<Q', message)
    offsets = struct.unpack_from(f'<{n}Q', message, 8)
    assert offsets[-1] == len(message) and offsets[0] == 8 * (n + 1)
    return [message[a:b] for a, b in zip(offsets, offsets[1:])]
