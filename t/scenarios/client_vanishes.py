#!/usr/bin/python3
"""A client that vanishes without a FIN, its cable pulled: noticed within kexec_client_timeout and a keepalive, whether its
code runs or waits, whether it reads or not.  It lives in a network namespace of its own, whose link goes down."""

import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

TIMEOUT, KEEPALIVE = 3, 1
CONF = "kexec_client_timeout %ds; kexec_keepalive %ds; kexec_interrupt_timeout 4s;" % (TIMEOUT, KEEPALIVE)

# the first probes take their time, so does the interrupt
NOTICED = TIMEOUT + KEEPALIVE + 1.5


class Namespace:
    """A network namespace with a veth pair; .here is our address, from there it is reached."""

    def __init__(self):
        self.name = "kexec-%d" % os.getpid()
        self.link = "kx%d" % os.getpid()
        net = "198.18.%d.%%d" % random.randrange(1, 255)        # RFC 2544: for tests
        self.here, there = net % 1, net % 2
        self.run("netns", "add", self.name)
        try:
            self.run("link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.name)
            self.run("addr", "add", self.here + "/24", "dev", self.link)
            self.run("link", "set", self.link, "up")
            self.run("-n", self.name, "addr", "add", there + "/24", "dev", "eth0")
            self.up()
        except subprocess.CalledProcessError:
            self.delete()
            raise

    @staticmethod
    def run(*args):
        subprocess.run(["ip", *args], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def delete(self):
        self.run("netns", "del", self.name)

    def up(self):
        self.run("-n", self.name, "link", "set", "eth0", "up")

    def down(self):
        self.run("-n", self.name, "link", "set", "eth0", "down")
        return time.monotonic()

    def enter(self, function):
        """Calls it by a thread that is in the namespace: a socket stays where it was made."""
        returned = []

        def run():
            with open("/run/netns/" + self.name) as f:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(f.fileno(), 0x40000000):          # CLONE_NEWNET
                    raise OSError(ctypes.get_errno(), "setns")
            returned.append(function())
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return returned[0]

    def execute(self, server, code, context, **more):
        return self.enter(lambda: Stream(server.port_there, "POST", "/execute", {"code": code, "context_id": context},
                                         host=self.here, **more))


class Reachable(Server):
    """From a namespace, too."""

    def __init__(self, workers=1, conf=CONF, jupyter=None):
        try:
            self.namespace = Namespace()
        except (OSError, subprocess.CalledProcessError) as e:
            raise Skip("no network namespaces here: %s %s" % (e, getattr(e, "stdout", b"").decode()))
        self.port_there = free_port()
        try:
            super().__init__(workers, conf, jupyter, """
                server {
                    listen %s:%d;
                    location / {
                        kexec_pass http://jupyter;
                        kexec_token_file token;
                        %s
                    }
                }""" % (self.namespace.here, self.port_there, conf))
        except BaseException:
            self.namespace.delete()
            raise

    def __exit__(self, *error):
        try:
            super().__exit__(*error)
        finally:
            self.namespace.delete()


def running(server, context, code):
    stream = server.namespace.execute(server, "print('-started-')\n" + code, context)
    if stream.wait_for("stdout", 10) is None:
        raise TimeoutError("it does not start: %r %r" % (stream.status_line, stream.all()))
    return stream


@scenario(rounds=1, many=30)
def while_it_runs(server, rounds):
    """Silent code, and code that prints all the time: the next one gets the context, with its variables."""
    context = server.create_context()
    for i in range(rounds):
        for code in "import time\ntime.sleep(300)", "while True:\n    print('x' * 100)":
            told(server.run("x = %d" % i, context_id=context))
            gone = running(server, context, code)
            waiting = server.queued("x", context)
            down = server.namespace.down()
            try:
                is_((told(waiting), result(waiting)), ("ok", str(i)), "the next one runs")
                between(waiting.finished_at - down, 1, NOTICED, "when the client was given up")
            finally:
                server.namespace.up()
            gone.close()


@scenario(rounds=1, many=30)
def while_it_waits(server, rounds):
    """In the queue: it is taken out, its code does not run."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("ran = []", context_id=context))
        gate = server.gate()
        holder = server.busy(context, gate.code)
        gone = server.namespace.execute(server, "ran.append('gone')", context)
        is_(gone.wait_head(10), 200, "it is let in")
        after = server.queued("ran.append('after')", context)
        server.log.mark()
        down = server.namespace.down()
        try:
            server.log.wait("client does not acknowledge", NOTICED)
            between(time.monotonic() - down, 1, NOTICED, "noticed in time")
        finally:
            server.namespace.up()
        gate.open()
        is_((told(holder), told(after)), ("ok", "ok"), "the others run")
        is_(server.value("ran", context), "['after']", "it does not")
        gone.close()


@scenario(rounds=1, many=30)
def comes_back(server, rounds):
    """Away for less than that: nothing is lost."""
    context = server.create_context()
    for i in range(rounds):
        code = "import time\nfor i in range(200):\n    print(i)\n    time.sleep(0.01)"
        stream = running(server, context, code)
        server.namespace.down()
        time.sleep(TIMEOUT / 4)
        server.namespace.up()
        is_((told(stream), stream.text()), ("ok", "-started-\n" + "".join("%d\n" % n for n in range(200))), "all is there")


# what a client of a scripted kernel does until its cable is pulled: the code, its receive buffer

READERS = {
    "code without output": ("sleep 100", None),
    "code that prints": ("print x\nsleep 0.3\n" * 300, None),
    "a reader that had stopped, all of it in the socket": ("flood 300 1000\nsleep 100", 4096),
    "a reader that had stopped, a file behind it": ("flood 20000 1000\nsleep 100", 4096),
}


def scripted(workers):
    return Reachable(workers, "kexec_client_timeout 3s; kexec_keepalive 500ms; send_timeout 600s;", ScriptedJupyter())


@scenario(rounds=1, many=20, workers=(1,), server=scripted)
def with_more_to_read(server, rounds):
    """Whatever is on its way to it, in the socket or behind it."""
    contexts = {name: server.create_context() for name in READERS}
    for i in range(rounds):
        server.log.mark()
        mark = server.jupyter.mark()
        gone = []
        for name, (code, receive_buffer) in READERS.items():
            gone.append(server.namespace.execute(server, code, contexts[name], receive_buffer=receive_buffer))
            is_(gone[-1].wait_head(10), 200, name + ": it is let in")
            server.jupyter.wait(since=mark, ev="start", code=code)
        time.sleep(1)                   # what they print at once is on its way
        down = server.namespace.down()
        try:
            wait_until(lambda: len(server.log.lines("client does not acknowledge")) == len(READERS), 8, "all to be noticed")
            within(time.monotonic() - down, 8, "all are noticed")
        except TimeoutError as e:
            ok(False, "all are noticed", "\n".join([str(e)] + server.log.lines("client does not acknowledge")))
        finally:
            server.namespace.up()
        for name, context in contexts.items():
            is_(server.run("print hello", context_id=context).text(), "hello\n", name + ": the next one runs")
        for stream in gone:
            stream.close()


main(Reachable, quick=(4,), jobs=2)
