"""The fake kernel of the scripted Jupyter.

One asyncio task takes shell requests in order, as ipykernel does: busy, execute_input, output,
reply, idle.  The code of a request is a small language, see scripted_language.py.

What follows a restart or a death is as observed with jupyter-server 1.23, see README.md.

An interrupt is a SIGINT: it lands `sigint_delay` after it was accepted, hits whatever handler
runs at that moment and is lost when none does.
"""

import asyncio
import collections
import random
import time
import uuid

import jupyter_wire as wire
from jupyter_wire import Message
from scripted_language import Cell, Died, Interrupted, Lost

KERNELS = {
    "python3": ("python", "Python 3 (ipykernel)", "ipython", "signal"),
    "javascript": ("javascript", "JavaScript (Node.js)", "ijavascript", "signal"),
    "typescript": ("typescript", "TypeScript (Node.js)", "itypescript", "signal"),
    "ir": ("R", "R", "IRkernel", "signal"),
    "bash": ("bash", "Bash", "bash", "signal"),
    "java": ("java", "Java", "IJava", "message"),
}


class Kernel:
    def __init__(self, server, name, path):
        self.server = server
        self.name = name
        self.path = path
        self.id = str(uuid.uuid4())
        self.overrides = {}
        self.websockets = []
        self.max_websockets = 0
        self.buffer = None                  # (session_id, [Message]) while no websocket is open
        self.losses = collections.Counter()  # of `lose` and `abort`, per code
        self.removed = False
        self.restarts = 0
        self.state = "starting"             # what Jupyter believes: the last status that it heard
        self.landing = None                 # the last delayed interrupt
        self.deaf_until = 0                 # iopub is not subscribed again yet after a restart
        self.known = asyncio.Event()        # it has answered once, in any life
        self.touch()
        self._spawn(self.option("start_delay"))

    # Life

    def _spawn(self, delay, keep_queue=False):
        self.session = str(uuid.uuid4())
        self.engine = str(uuid.uuid4())
        self.variables = {}
        self.executions = 0         # non-silent ones that ran
        self.execution_count = 0
        self.silent = []
        self.seen = set()
        if not keep_queue:
            self.queue = collections.deque()
        self.aborted = set()
        self.answers = []           # to input_request
        self.current = None         # the request being handled
        self.armed = False          # SIGINT would be noticed
        self.sigint = asyncio.Event()
        self.wake = asyncio.Event()
        self.up = asyncio.Event()
        self.alive = True
        self.task = asyncio.ensure_future(self._life(delay))

    async def _life(self, delay):
        await asyncio.sleep(delay)
        if self.restarts:
            self.deaf_until = time.monotonic() + self.option("restart_iopub_gap")
        self.iopub("status", {"execution_state": "starting"}, {})
        self.up.set()
        self.known.set()
        self.note("kernel_up", restarts=self.restarts)
        while True:
            while not self.queue:
                self.wake.clear()
                await self.wake.wait()
            request, identity = self.queue.popleft()
            try:
                await self._handle(request, identity)
            except Died as death:
                self.die(death.restart_after)
                return

    def kill(self):
        """The process is gone; nothing tells anybody."""
        if self.alive:
            self.alive = False
            self.up.clear()
            self.current, self.armed = None, False
            if self.task is not asyncio.current_task():
                self.task.cancel()
                self.note("process_gone")

    def die(self, restart_after=None):
        """The process dies; Jupyter notices and starts another one.  None: the default delay,
        a negative one: for good."""
        delay = self.option("autorestart_delay") if restart_after is None else restart_after
        keep = self.option("die_keeps_queue")
        queued = self.queue if keep else collections.deque()
        self.kill()
        self.queue = queued
        self.note("kernel_died", final=delay < 0)
        asyncio.ensure_future(self._after_death(delay))

    def exit(self, restarts):
        """What exit() has asked for, unless it was restarted by then."""
        if self.alive and self.restarts == restarts:
            self.die()

    async def _after_death(self, delay):
        generation = self.restarts
        await asyncio.sleep(abs(delay))
        if self.removed or self.restarts != generation:
            return
        if delay < 0:
            for ws in list(self.websockets):
                ws.send_status("dead")
            self.state = "dead"
            self.server.remove_kernel(self, "dead")
            return
        self.restarts += 1
        for ws in list(self.websockets):
            ws.send_status("restarting")
        self.note("kernel_restarting")
        # requests that came while no process was there reach the new one
        self._spawn(self.option("start_delay"), keep_queue=True)

    async def restart(self):
        """By REST."""
        await self.shut_down(True)
        await asyncio.sleep(self.option("restart_delay"))
        if self.removed:
            return
        self.kill()
        self.restarts += 1
        self.note("kernel_restarted")
        self._spawn(self.option("start_delay"))
        asyncio.ensure_future(self._ask_after_restart(self.restarts))

    async def shut_down(self, restart):
        """Jupyter interrupts first, then asks the kernel to end.  Whether a queued request still
        runs in between is a race."""
        if not self.alive:
            return
        if not self.option("restart_runs_queued"):
            self.queue.clear()
        if self.armed:
            self.note("interrupt", source="restart" if restart else "delete", executing=self.current.id,
                      landed="hit", landed_in=self.current.id, landed_at=time.monotonic())
            self.sigint.set()
            await asyncio.sleep(0.005)
        parent = wire.header("shutdown_request", self.server.session)
        self.iopub("status", {"execution_state": "busy"}, parent)
        self.iopub("shutdown_reply", {"status": "ok", "restart": restart}, parent)
        self.iopub("status", {"execution_state": "idle"}, parent)

    async def _ask_after_restart(self, generation):
        """Jupyter sends a kernel_info_request of its own."""
        await self.up.wait()
        await asyncio.sleep(self.option("restart_iopub_gap"))
        if self.restarts == generation and self.alive:
            request = Message("shell", wire.header("kernel_info_request", self.server.session))
            self.receive(request, None)

    def remove(self):
        self.kill()
        self.removed = True
        self.buffer = None

    # Messages out

    def publish(self, message):
        self.touch()
        for ws in list(self.websockets):
            ws.deliver(message)
        if self.buffer is not None and not self.websockets:
            self.buffer[1].append(message)

    def iopub(self, msg_type, content, parent=None, metadata=None, buffers=()):
        if parent is None:
            parent = self.current.header if self.current else {}
        if time.monotonic() < self.deaf_until:
            return
        if msg_type == "status":
            self.state = content["execution_state"]
        self.publish(Message("iopub", wire.header(msg_type, self.session), parent, metadata, content, buffers))

    def reply(self, request, identity, content, metadata=None, channel=None, msg_type=None):
        """Goes to the websocket that asked, by session id, or to the buffer; else nowhere."""
        if identity is None:
            return
        msg_type = msg_type or request.type.replace("_request", "_reply")
        message = Message(channel or request.channel, wire.header(msg_type, self.session),
                          request.header, metadata, content)
        for ws in self.websockets:
            if ws.session_id == identity:
                ws.deliver(message)
                return
        if self.buffer is not None and not self.websockets and self.buffer[0] == identity:
            self.buffer[1].append(message)

    # Messages in

    def receive(self, message, identity):
        """A request from a websocket (identity: its session_id), or a made-up one."""
        if self.removed:
            self.note("message", channel=message.channel, type=message.type, msg_id=message.id, removed=True)
            return
        if message.channel == "control":
            self._control(message, identity)
            return
        if message.type == "input_reply":
            self.answers.append(message.content["value"])
        if message.channel != "shell":
            self.note("message", channel=message.channel, type=message.type, msg_id=message.id)
            return
        if message.type == "execute_request":
            content = message.content
            self.note("execute", code=content.get("code"), silent=bool(content.get("silent")),
                      msg_id=message.id, session=identity, content=content, header=message.header)
        else:
            self.note("message", channel="shell", type=message.type, msg_id=message.id, session=identity)
        self.queue.append((message, identity))
        self.wake.set()

    def _control(self, message, identity):
        """ipykernel answers control in a thread of its own, also while a cell runs."""
        self.note("message", channel="control", type=message.type, msg_id=message.id, session=identity)
        if not self.up.is_set():
            return
        self.iopub("status", {"execution_state": "busy"}, message.header)
        if message.type == "kernel_info_request":
            self.reply(message, identity, self.info())
        elif message.type == "interrupt_request":
            self.interrupt("control")
            self.reply(message, identity, {"status": "ok"})
        elif message.type == "shutdown_request":
            self.reply(message, identity, {"status": "ok", "restart": message.content.get("restart", False)})
            self.die()
            return
        self.iopub("status", {"execution_state": "idle"}, message.header)

    async def _handle(self, request, identity):
        digest = wire.fingerprint(request)
        if digest in self.seen:
            # ipykernel: "Duplicate Signature", the message is dropped without a trace
            self.note("duplicate_signature", msg_id=request.id)
            return
        self.seen.add(digest)
        if request.type == "execute_request":
            await self._execute(request, identity)
        elif request.type == "kernel_info_request":
            await self._kernel_info(request, identity)
        else:
            self._busy(request)
            self._idle()

    def _busy(self, request):
        self.current = request
        self.iopub("status", {"execution_state": "busy"})

    async def arm(self):
        if self.option("arm_delay"):
            await asyncio.sleep(self.option("arm_delay"))
        self.sigint.clear()
        self.armed = True

    def disarm(self):
        self.armed = False
        self.sigint.clear()

    def _idle(self):
        self.disarm()
        self.iopub("status", {"execution_state": "idle"})
        self.current = None

    async def _kernel_info(self, request, identity):
        faults = self.option("kernel_info")
        internal = identity is None
        if not internal and self.take(faults, "drop"):
            self.note("kernel_info_dropped", msg_id=request.id)
            return
        drop_reply = not internal and self.take(faults, "drop_reply")
        drop_iopub = not internal and self.take(faults, "drop_iopub")
        if drop_iopub:
            self.current = request
        else:
            self._busy(request)
        await self.arm()
        try:
            if faults.get("delay") and not internal:
                await self.sleep(faults["delay"])
            if not drop_reply:
                self.reply(request, identity, self.info())
        except Interrupted:
            pass                    # "KeyboardInterrupt caught in kernel": idle without a reply
        if drop_iopub:
            self.disarm()
            self.current = None
        else:
            self._idle()
        self.note("kernel_info_done", msg_id=request.id, session=identity)

    async def _execute(self, request, identity):
        content = request.content
        if not isinstance(content.get("code"), str) or "silent" not in content:
            self.note("bad_request", msg_id=request.id)
            self._busy(request)
            self._idle()
            return
        cell = Cell(self, request, identity)
        try:
            await cell.run()
        except Lost:
            self.note("lost", msg_id=request.id)
        finally:
            if self.task is asyncio.current_task():     # else another process runs already
                self.current, self.armed = None, False

    def abort_queued(self):
        """After an error with stop_on_error: what waits already is answered `aborted`."""
        for request, _ in self.queue:
            if request.type == "execute_request":
                self.aborted.add(request.id)

    # Interrupts

    def interrupt(self, source="rest"):
        record = self.note("interrupt", source=source, executing=self.current and self.current.id,
                           landed=None, landed_in=None, landed_at=None)
        if not self.alive:
            record["landed"] = "no process"
            return record
        low, high = self.option("sigint_delay")
        delay = random.uniform(low, high)
        if delay:
            self.landing = asyncio.ensure_future(self._land_later(record, delay, self.restarts))
        else:
            self._land(record, self.restarts)
        return record

    async def _land_later(self, record, delay, restarts):
        await asyncio.sleep(delay)
        self._land(record, restarts)

    def _land(self, record, restarts):
        record["landed_at"] = time.monotonic()
        if self.restarts != restarts or not self.alive:
            record["landed"] = "other process"
        elif self.current is not None and self.armed:
            record["landed"] = "hit"
            record["landed_in"] = self.current.id
            record["landed_code"] = (self.current.content or {}).get("code")
            record["landed_session"] = self.current.header.get("session")
            self.sigint.set()
        else:
            record["landed"] = "ignored"
        self.server.log_changed()

    async def sleep(self, seconds, swallow=False, uninterruptible=False):
        """What the cell waits with; raises Interrupted."""
        end = asyncio.get_running_loop().time() + seconds
        while True:
            left = end - asyncio.get_running_loop().time()
            if uninterruptible:
                await asyncio.sleep(max(left, 0))
            else:
                try:
                    await asyncio.wait_for(self.sigint.wait(), max(left, 0))
                except asyncio.TimeoutError:
                    pass
            if self.sigint.is_set():
                self.sigint.clear()
                if not swallow:
                    raise Interrupted
                self.note("interrupt_swallowed", msg_id=self.current and self.current.id)
            elif asyncio.get_running_loop().time() >= end:
                return

    # Small things

    def option(self, name):
        return self.overrides.get(name, self.server.options[name])

    def take(self, faults, name):
        """Counts a fault with a number of times down."""
        left = faults.get(name, 0)
        if left is True:
            return True
        if left > 0:
            faults[name] = left - 1
        return left > 0

    def note(self, event, **fields):
        return self.server.note(event, kernel=self.id, **fields)

    def touch(self):
        self.last_activity = wire.now()

    def info(self):
        language, display, implementation, _ = self.server.kernels[self.name]
        return {"status": "ok", "protocol_version": "5.3", "implementation": implementation,
                "implementation_version": "8.5.0",
                "language_info": {"name": language, "version": "3.11.2", "mimetype": "text/x-" + language.lower(),
                                  "file_extension": ".txt"},
                "banner": display + " (scripted)", "help_links": []}

    def model(self):
        return {"id": self.id, "name": self.name, "last_activity": self.last_activity,
                "execution_state": self.state, "connections": len(self.websockets)}

    def foreign(self, code):
        """Somebody else's cell: another client of the same kernel."""
        header = wire.header("execute_request", "foreign-" + str(uuid.uuid4()), "somebody-else")
        message = Message("shell", header, content={
            "code": code, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": False, "stop_on_error": True})
        self.receive(message, header["session"])
        return header["msg_id"]


def spec_model(name, entry):
    language, display, _, interrupt_mode = entry
    return {"name": name,
            "spec": {"argv": ["/usr/bin/scripted", "-f", "{connection_file}"], "env": {},
                     "display_name": display, "language": language, "interrupt_mode": interrupt_mode,
                     "metadata": {}},
            "resources": {"logo-64x64": "/kernelspecs/%s/logo-64x64.png" % name}}
