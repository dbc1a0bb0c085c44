"""The code that a fake kernel understands: one command a line.

Lines that are not a command do nothing, so any real code is a cell that succeeds without
output.  Silent requests are recorded and answered, never interpreted.  The list of commands is
in README.md; each is one method or one word below.
"""

import asyncio
import json
import random
import uuid

import jupyter_wire as wire
from jupyter_wire import Message, Raw


class Interrupted(Exception):
    """KeyboardInterrupt in the running cell."""


class Died(Exception):
    def __init__(self, restart_after=None):
        self.restart_after = restart_after


class Lost(Exception):
    """The request leaves no trace."""


class CellError(Exception):
    def __init__(self, name, value):
        self.name, self.value = name, value


# Words that change how the request as a whole is answered; each takes one optional number.
MODIFIERS = {"drop_busy", "r_abort", "no_execute_input", "drop_idle", "drop_reply", "dup_idle", "dup_reply",
             "idle_first", "reply_first", "late_output", "reply_gap", "abort", "lose", "drop_error",
             "leftover", "leftover_stubborn", "no_end"}


class Cell:
    """One execute_request, from busy to idle."""

    def __init__(self, kernel, request, identity):
        self.kernel = kernel
        self.request = request
        self.identity = identity
        content = request.content
        self.code = content["code"]
        self.is_silent = bool(content["silent"])
        self.stop_on_error = content.get("stop_on_error", True)
        self.lines, self.flags, self.payload = [], {}, []
        if not self.is_silent:
            for line in self.code.split("\n"):
                word, _, rest = line.strip().partition(" ")
                if word in MODIFIERS:
                    self.flags[word] = float(rest) if rest.strip() else None
                else:
                    self.lines.append((word, rest))

    # The course of a request

    async def run(self):
        kernel = self.kernel
        if self._first_times("lose", default=1):
            raise Lost
        kernel.current = self.request
        if self._must_abort():
            await self._answer_aborted()
            return
        record = kernel.note("start", msg_id=self.request.id, code=self.code, silent=self.is_silent,
                             session=self.identity)
        if "drop_busy" not in self.flags:
            kernel.iopub("status", {"execution_state": "busy"})
        await kernel.arm()
        reply = await (self._run_silent() if self.is_silent else self._run_code())
        kernel.note("ran", msg_id=self.request.id, status=reply["status"], ename=reply.get("ename"),
                    silent=self.is_silent, started=record["t"])
        await self._finish(reply)
        await self._leave_behind()

    async def _run_code(self):
        kernel = self.kernel
        kernel.executions += 1
        kernel.execution_count += 1
        if "no_execute_input" not in self.flags:
            kernel.iopub("execute_input", {"code": self.code, "execution_count": kernel.execution_count})
        try:
            for word, rest in self.lines:
                command = COMMANDS.get(word)
                if command is not None:
                    await command(self, rest)
                self._check_interrupt()
            self._check_interrupt()
        except Interrupted:
            if "r_abort" in self.flags:
                return {"status": "abort"}
            return self._error("KeyboardInterrupt", "")
        except CellError as e:
            return self._error(e.name, e.value)
        return {"status": "ok", "execution_count": kernel.execution_count, "user_expressions": {},
                "payload": self.payload}

    async def _run_silent(self):
        kernel = self.kernel
        kernel.silent.append(self.code)
        try:
            if kernel.option("silent_delay"):
                await kernel.sleep(kernel.option("silent_delay"))
            self._check_interrupt()
        except Interrupted:
            return self._error("KeyboardInterrupt", "")
        failure = self._silent_failure()
        if failure:
            return self._error(failure.get("ename", "RuntimeError"), failure.get("evalue", "scripted failure"))
        return {"status": "ok", "execution_count": kernel.execution_count, "user_expressions": {}, "payload": []}

    async def _finish(self, reply):
        kernel, flags = self.kernel, self.flags
        if reply["status"] == "error" and not self.is_silent and self.stop_on_error:
            kernel.abort_queued()
        if "reply_gap" in flags:
            # ipykernel is still interruptible between the end of the code and its reply
            try:
                await kernel.sleep(flags["reply_gap"] or 0)
            except Interrupted:
                kernel.note("reply_eaten", msg_id=self.request.id)
                flags["drop_reply"] = None
        order = [self._send_reply, self._send_idle]
        wanted = kernel.option("order")
        idle_first = wanted == "idle" or wanted == "random" and random.random() < 0.5
        if "idle_first" in flags or idle_first and "reply_first" not in flags:
            order.reverse()
        await order[0](reply)
        gap = flags.get("idle_first") or flags.get("reply_first")
        if gap:
            await asyncio.sleep(gap)
        if "late_output" in flags:
            await self._late_output(flags["late_output"] or 0.1)
        await order[1](reply)
        kernel.disarm()
        if "drop_idle" in flags:
            kernel.state = "idle"       # Jupyter's own subscription has heard it
        kernel.note("end", msg_id=self.request.id, status=reply["status"], silent=self.is_silent)
        if self.payload and not self.payload[0]["keepkernel"]:
            asyncio.get_running_loop().call_later(0.1, kernel.exit, kernel.restarts)

    async def _leave_behind(self):
        """Something of a cell that has ended keeps the kernel from its next request, as a callback does."""
        stubborn = "leftover_stubborn" in self.flags
        if not stubborn and "leftover" not in self.flags:
            return
        kernel = self.kernel
        kernel.armed = True
        kernel.note("leftover", msg_id=self.request.id)
        try:
            await kernel.sleep(self.flags.get("leftover_stubborn") or self.flags.get("leftover") or 3600, swallow=stubborn)
        except Interrupted:
            kernel.note("leftover_interrupted", msg_id=self.request.id)
        kernel.disarm()

    async def _send_reply(self, reply):
        if "drop_reply" in self.flags or "no_end" in self.flags:
            return
        metadata = {"started": wire.now(), "dependencies_met": True, "engine": self.kernel.engine,
                    "status": reply["status"]}
        for _ in range(2 if "dup_reply" in self.flags else 1):
            self.kernel.reply(self.request, self.identity, reply, metadata)

    async def _send_idle(self, _):
        if "drop_idle" in self.flags or "no_end" in self.flags:
            return
        for _ in range(2 if "dup_idle" in self.flags else 1):
            self.kernel.iopub("status", {"execution_state": "idle"})

    async def _late_output(self, seconds):
        for i in range(3):
            await asyncio.sleep(seconds / 3)
            self.stream("stdout", "late %d\n" % i)

    # What a modifier or a fault decides

    def _first_times(self, flag, default=None):
        """True for the first N times that this kernel gets this code; N missing: the default,
        None is always."""
        if flag not in self.flags:
            return False
        limit = self.flags[flag] if self.flags[flag] is not None else default
        key = (flag, self.code)
        if limit is not None and self.kernel.losses[key] >= limit:
            return False
        self.kernel.losses[key] += 1
        return True

    def _must_abort(self):
        kernel = self.kernel
        if self.request.id in kernel.aborted:
            kernel.aborted.discard(self.request.id)
            return True
        if self._first_times("abort") or kernel.server.take_option(kernel, "abort_next"):
            return True
        return self.is_silent and kernel.server.take_option(kernel, "abort_silent")

    async def _answer_aborted(self):
        kernel = self.kernel
        kernel.iopub("status", {"execution_state": "busy"})
        kernel.reply(self.request, self.identity, {"status": "aborted"},
                     {"started": wire.now(), "dependencies_met": True, "engine": kernel.engine,
                      "status": "aborted"})
        kernel.iopub("status", {"execution_state": "idle"})
        kernel.note("aborted", msg_id=self.request.id, silent=self.is_silent, code=self.code)

    def _silent_failure(self):
        faults = self.kernel.option("fail_silent") or []
        if not isinstance(faults, list):
            faults = [faults]
        for fault in faults:
            fault = {"match": fault} if isinstance(fault, str) else fault
            if fault["match"] in self.code and fault.get("times", 1) > 0:
                if "times" in fault:
                    fault["times"] -= 1
                return fault
        return None

    def _check_interrupt(self):
        if self.kernel.sigint.is_set():
            self.kernel.sigint.clear()
            raise Interrupted

    # Output

    def _error(self, name, value):
        traceback = ["\x1b[0;31m%s\x1b[0m" % ("-" * 60),
                     "\x1b[0;31m%s\x1b[0m Traceback (most recent call last)" % name,
                     "\x1b[0;31m%s\x1b[0m: %s" % (name, value)]
        error = {"traceback": traceback, "ename": name, "evalue": value}
        if "drop_error" not in self.flags:
            self.kernel.iopub("error", error)
        return {"status": "error", **error, "engine_info": {
            "engine_uuid": self.kernel.engine, "engine_id": -1, "method": "execute"},
            "execution_count": self.kernel.execution_count, "user_expressions": {}, "payload": []}

    def stream(self, name, text, parent=None):
        """text: a str, or Raw for a JSON string that goes out as it stands."""
        text = text if isinstance(text, Raw) else json.dumps(text, ensure_ascii=False)
        self.kernel.iopub("stream", Raw('{"name": "%s", "text": %s}' % (name, text)), parent)

    async def _print(self, rest, name="stdout"):
        self.stream(name, Raw(rest) if rest.startswith('"') else rest + "\n")

    async def _stderr(self, rest):
        await self._print(rest, "stderr")

    async def _result(self, rest):
        content = '{"data": %s, "metadata": {}, "execution_count": %d}' % (rest, self.kernel.execution_count)
        self.kernel.iopub("execute_result", Raw(content))

    async def _display(self, rest):
        self.kernel.iopub("display_data", Raw('{"data": %s, "metadata": {}, "transient": {}}' % rest))

    async def _display_buffers(self, rest):
        self.kernel.iopub("display_data", Raw('{"data": %s, "metadata": {}, "transient": {}}' % rest),
                          buffers=[b"\x00\x01\x02", b"\xff" * 100])

    async def _nan(self, _):
        await self._result('{"text/plain": "nan", "application/json": {"x": NaN, "y": [Infinity, -Infinity]}}')

    async def _message(self, rest):
        """message TYPE CONTENT: an iopub message whose content goes out as it stands."""
        msg_type, _, content = rest.partition(" ")
        self.kernel.iopub(msg_type, Raw(content or "{}"))

    async def _reply(self, rest):
        """reply CONTENT: a reply before the code's end, as the code itself can forge one."""
        self.kernel.reply(self.request, self.identity, Raw(rest or "{}"))

    async def _forge_end(self, _):
        """All that ends an execution, though the rest of the code still runs."""
        await self._send_reply({"status": "ok", "execution_count": 1, "user_expressions": {}, "payload": []})
        await self._send_idle(None)
        self.flags["drop_reply"] = self.flags["drop_idle"] = None

    async def _forge_status(self, rest):
        """A status in Jupyter's name."""
        self.kernel.iopub("status", {"execution_state": rest}, {})

    async def _forge(self, rest):
        """forge N SIZE: so many error replies, of that size each."""
        count, size = (int(x) for x in rest.split())
        for _ in range(count):
            await self._reply('{"status": "error", "ename": "Forged", "evalue": "%s", "traceback": []}' % ("x" * size))
            await asyncio.sleep(0)

    async def _forge_fences(self, rest):
        """forge_fences SECONDS: again and again, all that would answer a question behind this code, by ids made of its own."""
        own = self.request.id.split("-")
        for _ in range(int(float(rest) * 5)):
            for serial in range(int(own[5]) + 1, int(own[5]) + 10):
                parent = {**self.request.header, "msg_id": "-".join(own[:5] + [str(serial)] + own[6:])}
                asked = wire.Message("shell", {**parent, "msg_type": "kernel_info_request"})
                self.kernel.reply(asked, self.identity, {"status": "ok", "implementation": "ipython"})
                self.kernel.iopub("status", {"execution_state": "idle"}, parent)
            await self.kernel.sleep(0.2)

    async def _flood(self, rest):
        count, size = (int(x) for x in rest.split()[:2])
        for i in range(count):
            head = "%d " % i
            self.stream("stdout", head + "x" * max(size - len(head) - 1, 0) + "\n")
            if i % 50 == 49:
                await asyncio.sleep(0)
                self._check_interrupt()

    async def _env(self, _):
        self.stream("stdout", json.dumps(self.kernel.silent) + "\n")

    async def _set(self, rest):
        name, _, value = rest.partition(" ")
        self.kernel.variables[name] = value

    async def _get(self, rest):
        if rest not in self.kernel.variables:
            raise CellError("NameError", "name '%s' is not defined" % rest)
        self.stream("stdout", self.kernel.variables[rest] + "\n")

    async def _count(self, _):
        self.stream("stdout", "%d\n" % self.kernel.executions)

    async def _input(self, rest):
        if not self.request.content.get("allow_stdin", True):
            raise CellError("StdinNotImplementedError",
                            "raw_input was called, but this frontend does not support input requests.")
        self.kernel.reply(self.request, self.identity, {"prompt": rest, "password": False},
                          channel="stdin", msg_type="input_request")
        await self.kernel.sleep(3600)

    async def _ask(self, rest):
        """ask PROMPT: a question in spite of allow_stdin false, as R's kernel has it; prints the answer."""
        kernel = self.kernel
        kernel.answers.clear()
        kernel.reply(self.request, self.identity, {"prompt": rest, "password": False},
                     channel="stdin", msg_type="input_request")
        while not kernel.answers:
            await kernel.sleep(0.01)
        self.stream("stdout", "answer: %r\n" % kernel.answers.pop())

    # Time, ends

    async def _sleep(self, rest):
        await self.kernel.sleep(float(rest))

    async def _sleep_uninterruptible(self, rest):
        await self.kernel.sleep(float(rest), uninterruptible=True)

    async def _swallow(self, rest):
        await self.kernel.sleep(float(rest), swallow=True)

    async def _raise(self, rest):
        name, _, value = rest.partition(" ")
        raise CellError(name, value)

    async def _die(self, rest):
        raise Died(float(rest) if rest.strip() else None)

    async def _dead(self, rest):
        raise Died(-float(rest or 0.001))

    async def _ask_exit(self, rest):
        self.payload = [{"source": "ask_exit", "keepkernel": rest == "keep"}]

    async def _abort_next(self, rest):
        self.kernel.overrides["abort_next"] = int(rest or 1)

    # Others' messages

    async def _foreign(self, rest):
        kernel = self.kernel
        parent = wire.header("execute_request", "foreign-" + str(uuid.uuid4()), "somebody-else")
        kernel.iopub("status", {"execution_state": "busy"}, parent)
        self.stream("stdout", rest + "\n", parent)
        kernel.iopub("error", {"ename": "ForeignError", "evalue": rest, "traceback": []}, parent)
        other = Message("shell", parent)
        kernel.reply(other, self.identity, {"status": "error", "ename": "ForeignError", "evalue": rest,
                                            "traceback": [], "execution_count": 1}, msg_type="execute_reply")
        kernel.iopub("status", {"execution_state": "idle"}, parent)

    # The websockets themselves

    def _sockets(self):
        return list(self.kernel.websockets)

    async def _raw_frame(self, rest):
        for ws in self._sockets():
            ws.send_raw(bytes.fromhex(rest))

    async def _text_frame(self, rest):
        for ws in self._sockets():
            ws.send_raw(wire.frame(wire.TEXT, rest.encode()))

    async def _bad_json(self, rest):
        """One part of an otherwise sound message is not JSON."""
        part = rest or "content"
        fields = dict(header=wire.header("stream", self.kernel.session), parent=self.request.header,
                      metadata={}, content={"name": "stdout", "text": "bad"})
        fields[part] = Raw('{"unfinished": ')
        message = Message("iopub", **fields)
        for ws in self._sockets():
            ws.send_message(message)

    async def _bad_frame_binary(self, rest):
        for kind in rest.split() or BAD_FRAMES:
            for ws in self._sockets():
                ws.send_raw(wire.frame(wire.BINARY, BAD_FRAMES[kind]))

    async def _close(self, rest):
        code, _, reason = rest.partition(" ")
        for ws in self._sockets():
            ws.close(int(code) if code else None, reason)
        await asyncio.sleep(0.01)

    async def _cut(self, _):
        for ws in self._sockets():
            ws.reset()
        await asyncio.sleep(0)

    async def _cut_mid_frame(self, _):
        message = Message("iopub", wire.header("stream", self.kernel.session), self.request.header,
                          {}, {"name": "stdout", "text": "never whole\n"})
        for ws in self._sockets():
            ws.cut_mid_frame(message)
        await asyncio.sleep(0.01)

    async def _fragment(self, rest):
        for ws in self._sockets():
            ws.fragment = int(rest or 7)

    async def _ping(self, rest):
        for ws in self._sockets():
            for i in range(int(rest or 1)):
                ws.send_raw(wire.frame(wire.PING, b"ping %d" % i))


BAD_FRAMES = {
    "empty": b"",
    "short": b"\x06\x00\x00",
    "count": b"\xff" * 8 + b"\x00" * 64,
    "zero": b"\x00" * 64,
    "descending": b"".join(n.to_bytes(8, "little") for n in (6, 90, 80, 70, 60, 50, 40)) + b"x" * 64,
    "beyond": b"".join(n.to_bytes(8, "little") for n in (6, 56, 61, 70, 80, 90, 1 << 40)) + b"iopub" + b"x" * 64,
}

COMMANDS = {
    "print": Cell._print, "stderr": Cell._stderr, "result": Cell._result, "display": Cell._display,
    "display_buffers": Cell._display_buffers, "nan": Cell._nan, "message": Cell._message,
    "reply": Cell._reply, "forge": Cell._forge, "forge_end": Cell._forge_end,
    "forge_fences": Cell._forge_fences,
    "forge_status": Cell._forge_status, "flood": Cell._flood, "env": Cell._env, "set": Cell._set, "get": Cell._get,
    "count": Cell._count,
    "input": Cell._input, "ask": Cell._ask, "sleep": Cell._sleep, "sleep_uninterruptible": Cell._sleep_uninterruptible,
    "swallow": Cell._swallow, "error": Cell._raise, "die": Cell._die, "dead": Cell._dead, "ask_exit": Cell._ask_exit,
    "abort_next": Cell._abort_next, "foreign": Cell._foreign, "raw_frame": Cell._raw_frame,
    "text_frame": Cell._text_frame, "bad_json": Cell._bad_json, "bad_frame_binary": Cell._bad_frame_binary,
    "close": Cell._close, "cut": Cell._cut, "cut_mid_frame": Cell._cut_mid_frame,
    "fragment": Cell._fragment, "ping": Cell._ping,
}
