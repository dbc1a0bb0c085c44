"""A TCP proxy in front of Jupyter whose connections can be cut."""

import asyncio
import random
import re
import socket
import struct
import threading
import time


class LinkProxy:
    """with LinkProxy(jupyter_port) as proxy: proxy.port, proxy.cut()"""

    def __init__(self, target):
        self.target = target
        self.links = []
        self.were_cut = []
        self.refuses_until = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server = self._call(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    async def _serve(self, reader, writer):
        if time.monotonic() < self.refuses_until:
            writer.transport.abort()
            return
        try:
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        for w in writer, other_writer:
            w.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = {"writers": (writer, other_writer), "at": time.monotonic(), "websocket": None}
        self.links.append(link)
        await asyncio.gather(self._pump(link, reader, other_writer), self._pump(link, other_reader, writer))
        self.links.remove(link)

    async def _pump(self, link, reader, writer):
        try:
            while data := await reader.read(1 << 16):
                link["at"] = time.monotonic()
                link["websocket"] = link["websocket"] or re.match(rb"GET /api/kernels/([^/ ]+)/channels\?", data)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    def refuse(self, seconds):
        """New connections are reset for so long."""
        self.refuses_until = time.monotonic() + seconds

    def cut(self, quiet=0.0, every=False):
        """Resets a websocket, or all of them, if nothing passed for `quiet` seconds, so that nothing is on its way;
        returns how many.  Which kernels' they were is in .were_cut."""
        return self._call(self._cut(quiet, every))

    async def _cut(self, quiet, every):
        found = [k for k in self.links if k["websocket"] and time.monotonic() - k["at"] >= quiet]
        random.shuffle(found)
        found = found if every else found[:1]
        self.were_cut = [link["websocket"].group(1).decode() for link in found]
        for link in found:
            for writer in link["writers"]:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
        return len(found)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._call(self._end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)

    async def _end(self):
        self.server.close()
        tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
