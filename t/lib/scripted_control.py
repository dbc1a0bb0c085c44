"""The control interface of the scripted Jupyter: everything under /_control/."""

import asyncio
import json

from scripted_kernel import KERNELS

OPTIONS = {
    "start_delay": 0.02,        # from a kernel's creation to its first answer
    "restart_delay": 0.02,      # of POST restart
    "autorestart_delay": 0.3,   # until Jupyter notices a death (up to 3 s in the real one)
    "restart_iopub_gap": 0.05,  # after a restart of any kind iopub messages of that time are lost
    "restart_runs_queued": False,   # POST restart interrupts first: queued requests may still run
    "order": "reply",           # what comes first, "reply", "idle" or "random"
    "close_on_delete": False,   # a removed kernel's websockets get closed
    "die_keeps_queue": False,   # requests waiting in a dying kernel reach the next one
    "sigint_delay": [0, 0],     # from the interrupt call to SIGINT, seconds, random between
    "sigint_before_answer": False,  # POST interrupt is answered once SIGINT has landed, as with
                                    # interrupt_mode signal; else at once, as with interrupt_mode message
    "arm_delay": 0,             # from busy until SIGINT is noticed
    "silent_delay": 0,          # how long a silent request runs
    "fail_silent": None,        # substring, {match, ename, evalue, times}, or a list of them
    "abort_silent": 0,          # the next N silent requests are answered aborted
    "abort_next": 0,            # the next N execute requests are answered aborted
    "kernel_info": {},          # {drop: N, drop_reply: N, drop_iopub: N, delay: seconds}
    "protocol": "v1",           # "json": the v1 subprotocol is refused
    "iopub_subscription_delay": 0,  # iopub messages of that time are lost to a fresh websocket
    "deaf": 0,                  # 1: the next websocket gets nothing; 2: nor does any later one of its session, until
                                # one of another session was open
    "nudge": 0,                 # seconds for which an open websocket is not read yet
    "nudge_eats": 0,            # iopub messages lost when a websocket opens
    "chunked": 0,               # REST bodies in chunks of that size
    "keepalive": True,          # of REST connections
    "max_message": 10 * 1024 * 1024,
    "ws_ping_interval": 30,
    "close_timeout": 5,         # how long a closing websocket waits for the client's close
    "nodelay": False,           # TCP_NODELAY of websockets; Jupyter has it off
    "kernel_info_timeout": 60,
}

# The names by which /_control/ sets faults for REST calls.
REST = {"api", "status", "kernelspecs", "session_create", "session_list", "session_get", "session_patch",
        "session_delete", "kernel_list", "kernel_get", "kernel_delete", "interrupt", "restart",
        "channels", "any"}


async def handle(server, connection, request):
    path = request.path[len("/_control/"):].strip("/")
    try:
        body = json.loads(request.body) if request.body.strip() else {}
        result = await dispatch(server, connection, request, path, body)
        status = 200
    except (KeyError, ValueError, TypeError) as e:
        status, result = 400, {"error": "%s: %s" % (type(e).__name__, e)}
    chunked, server.options["chunked"] = server.options["chunked"], 0
    connection.respond(status, result)
    server.options["chunked"] = chunked
    return True


async def dispatch(server, connection, request, path, body):
    name, *rest = path.split("/")
    if name in ("", "set"):
        return configure(server, body)
    if name == "log":
        return select(server, request.args, 0)
    if name == "wait":
        return await wait(server, body)
    if name == "state":
        return state(server)
    if name == "reset":
        return reset(server, body)
    if name in ("kernel", "kernels"):
        kernels = find(server, "/".join(rest[:-1]))
        action = KERNEL_ACTIONS[rest[-1]]
        results = [await result if asyncio.iscoroutine(result := action(server, k, body)) else result
                   for k in kernels]
        return results[0] if len(results) == 1 else results
    if name == "cut_all":
        return each_websocket(server, lambda ws: ws.reset())
    if name == "close_all":
        return each_websocket(server, lambda ws: ws.close(body.get("code"), body.get("reason", "")))
    if name == "down":
        return down(server, connection, body)
    if name == "up":
        await server.listener.up()
        return {}
    raise KeyError("no such control call: " + path)


def configure(server, body):
    """Options by their name, faults by the name of a REST call; null takes a fault away."""
    for key, value in body.items():
        if key == "kernelspecs" and isinstance(value, list):
            server.kernels = {n: KERNELS[n] for n in value}
        elif key == "kernels":
            server.kernels = {n: tuple(v) for n, v in value.items()}
        elif key in REST:
            if value is None:
                server.faults.pop(key, None)
            else:
                server.faults[key] = {"hang": True} if value == "hang" else dict(value)
        elif key in server.options:
            server.options[key] = OPTIONS[key] if value is None else value
        else:
            raise KeyError("neither an option nor a REST call: " + key)
    return {"options": server.options, "faults": server.faults}


def reset(server, body):
    """Faults and log; with {"kernels": true} kernels and sessions, too."""
    server.reset_faults()
    if body.get("kernels"):
        for kernel in list(server.running.values()):
            server.remove_kernel(kernel, "reset")
        server.sessions.clear()
    server.log.clear()
    server.max_websockets = {}
    for kernel in server.running.values():
        kernel.max_websockets = len(kernel.websockets)
    return {}


# The log

def matches(record, wanted):
    """wanted: a value each; a name with ~ behind: a substring; with !: anything but null."""
    for key, value in wanted.items():
        if key.endswith("~"):
            if value not in str(record.get(key[:-1])):
                return False
        elif key.endswith("!"):
            if record.get(key[:-1]) is None:
                return False
        elif record.get(key) != value:
            return False
    return True


def select(server, args, since):
    wanted = {k: v for k, v in args.items() if k != "since"}
    return [r for r in server.log[int(args.get("since", since)):] if matches(r, wanted)]


async def wait(server, body):
    """{match: {...}, since: N, count: 1, timeout: s}: the matching records, once there are enough."""
    loop = asyncio.get_running_loop()
    end = loop.time() + body.get("timeout", 10)
    while True:
        found = [r for r in server.log[body.get("since", 0):] if matches(r, body.get("match", {}))]
        if len(found) >= body.get("count", 1) or loop.time() >= end:
            return {"found": len(found) >= body.get("count", 1), "records": found}
        # everybody who waits shares one event: replaced, never cleared
        event = server.log_event
        if event.is_set():
            event = server.log_event = asyncio.Event()
        try:
            await asyncio.wait_for(event.wait(), max(end - loop.time(), 0))
        except asyncio.TimeoutError:
            pass


def state(server):
    kernels = {}
    for kernel in server.running.values():
        kernels[kernel.id] = {
            **kernel.model(), "path": kernel.path, "alive": kernel.alive, "restarts": kernel.restarts,
            "current": kernel.current and kernel.current.id, "queued": len(kernel.queue),
            "variables": kernel.variables, "silent": kernel.silent, "executions": kernel.executions,
            "buffered": len(kernel.buffer[1]) if kernel.buffer else 0,
            "websockets": [ws.session_id for ws in kernel.websockets]}
    return {"kernels": kernels, "sessions": list(server.sessions.values()), "log": len(server.log),
            "max_websockets": server.max_websockets, "connections": len(server.connections) - 1,
            "options": server.options, "faults": server.faults}


# Kernels

def find(server, which):
    """By kernel id, session id, "all", "last", or a part of a session's path or name."""
    running = server.running
    if which == "all":
        return list(running.values())
    if which == "last":
        return [list(running.values())[-1]]
    if which in running:
        return [running[which]]
    found = [running[s["kernel"]] for s in server.sessions.values() if s["kernel"] in running
             and (s["id"] == which or which in (s["path"] or "") or which in (s["name"] or ""))]
    if not found:
        raise KeyError("no kernel " + which)
    return found


def die(server, kernel, body):
    kernel.die(body.get("restart_after"))
    return {}


def dead(server, kernel, body):
    kernel.die(-body.get("after", 0.001))
    return {}


async def delete(server, kernel, body):
    await server.shut_down(kernel, "deleted behind the module's back")
    return {}


async def restart(server, kernel, body):
    await kernel.restart()
    return {}


def foreign(server, kernel, body):
    code = body.get("code") or "%s %s" % ("sleep" if body.get("interruptible", True) else "sleep_uninterruptible",
                                          body.get("seconds", 3))
    return {"msg_id": kernel.foreign(code)}


def overrides(server, kernel, body):
    for key, value in body.items():
        if key not in server.options:
            raise KeyError("not an option: " + key)
        kernel.overrides[key] = value
    return {}


def message(server, kernel, body):
    """Puts an iopub message out of order: {type, content, parent}."""
    kernel.iopub(body["type"], body.get("content", {}), body.get("parent", {}))
    return {}


def each(do):
    def action(server, kernel, body):
        sockets = list(kernel.websockets)
        for ws in sockets:
            do(ws, body)
        return {"websockets": len(sockets)}
    return action


KERNEL_ACTIONS = {
    "die": die, "dead": dead, "delete": delete, "restart": restart, "foreign": foreign,
    "interrupt": lambda server, kernel, body: kernel.interrupt("somebody else"),
    "set": overrides, "message": message,
    "cut": each(lambda ws, body: ws.reset()),
    "deaf": each(lambda ws, body: setattr(ws, "deaf", True)),
    "close": each(lambda ws, body: ws.close(body.get("code"), body.get("reason", ""))),
    "fragment": each(lambda ws, body: setattr(ws, "fragment", body.get("size", 7))),
}


# Everything

def each_websocket(server, do):
    sockets = [ws for k in server.running.values() for ws in k.websockets]
    for ws in sockets:
        do(ws)
    return {"websockets": len(sockets)}


def down(server, connection, body):
    """The port refuses connections, for some seconds or until /_control/up on the control port."""
    server.listener.down(connection)
    if "seconds" in body:
        loop = asyncio.get_running_loop()
        loop.call_later(body["seconds"], lambda: asyncio.ensure_future(server.listener.up()))
    return {}
