#!/usr/bin/python3
"""Much output: nothing is missing, the order is kept, a slow reader holds up nobody but itself."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

CONF = "kexec_interrupt_timeout 2s; kexec_keepalive 1s; kexec_max_temp_file_size 40m;"
MB = 1 << 20


def memory(server):
    """What the workers have allocated, in bytes."""
    total = 0
    for pid in server.workers():
        with open("/proc/%d/status" % pid) as f:
            total += int(re.search(r"RssAnon:\s*(\d+) kB", f.read()).group(1)) * 1024
    return total


def read_slowly(stream, seconds, rate=1024):
    """Takes some bytes, by and by."""
    end = time.monotonic() + seconds
    stream.sock.setblocking(False)
    while time.monotonic() < end and not stream.ended:
        try:
            stream.raw += stream.sock.recv(rate // 10)
        except BlockingIOError:
            pass
        time.sleep(0.1)         # this is what makes it slow
    stream.sock.setblocking(True)


@scenario(rounds=1, many=50)
def displays(server, rounds):
    """6000 display(i), then a result."""
    context = server.create_context()
    for i in range(rounds):
        stream = server.execute("for i in range(6000):\n    display(i)\n'result'", context, stream_timeout=120)
        is_(told(stream), "ok", "it ends well")
        texts = [e["text"] for e in stream.all() if e["type"] == "result"]
        ok(texts == [str(n) for n in range(6000)] + ["result"], "6000 displays and the result, in order",
           "%d: %r ... %r" % (len(texts), texts[:3], texts[-3:]))
        is_([e["is_main_result"] for e in stream.all() if e["type"] == "result"][-2:], [False, True],
            "the last is the main result")


@scenario(rounds=1, many=50)
def one_print(server, rounds):
    """40 MB in one print."""
    context = server.create_context()
    for i in range(rounds):
        stream = server.execute("print('0123456789abcdef' * (40 * 65536))\n'result'", context, stream_timeout=120)
        is_((told(stream), result(stream)), ("ok", "result"), "it ends well")
        text = stream.text()
        ok(text == "0123456789abcdef" * (40 * 65536) + "\n", "all of it is there", "%d bytes" % len(text))


@scenario(rounds=1, many=50)
def flushed_lines(server, rounds):
    """20 000 flushed lines."""
    context = server.create_context()
    for i in range(rounds):
        stream = server.execute("for i in range(20000):\n    print(i, flush=True)\n'result'", context,
                                stream_timeout=120)
        is_((told(stream), result(stream)), ("ok", "result"), "it ends well")
        lines = stream.text().split("\n")[:-1]
        ok(lines == [str(n) for n in range(20000)], "all lines are there, in order",
           "%d lines, the first wrong one: %r" % (len(lines), next(((n, l) for n, l in enumerate(lines)
                                                                    if l != str(n)), None)))


@scenario(rounds=1, many=50)
def slow(server, rounds):
    """A client that takes 1 KB/s of 20 MB: the slot is free at idle, memory is bounded, all arrives in order."""
    context = server.create_context()
    line = "0123456789abcdef" * 4
    code = ("for i in range(320):\n    print('\\n'.join('%%06d %s' %% (i * 1000 + n) for n in range(1000)), flush=True)"
            "\n'result'" % line)
    for i in range(rounds):
        told(server.run("for i in range(20): print('-' * 65536, flush=True)", context_id=context))   # warm
        before = memory(server)
        a = slow_reader(server, context, code)
        b = server.queued("'next'", context)
        read_slowly(a, 1)
        is_((told(b), result(b)), ("ok", "next"), "the next one runs while the slow one has not read its output")
        read_slowly(a, 1)
        ok(not a.ended, "the slow one is still reading")
        memory_within(memory(server) - before, 1.5 * MB, "the workers have not grown by more than 1.5 MB")
        sizes = temp_files(server)
        ok(sizes and max(sizes) > 15 * MB, "the output is in a temporary file", sizes)
        is_((told(a), result(a)), ("ok", "result"), "it gets its end")
        expected = "".join("%06d %s\n" % (n, line) for n in range(320000))
        ok(a.text() == expected, "and all of its output, in order", "%d of %d bytes" % (len(a.text()), len(expected)))
        wait_until(lambda: not temp_files(server), 5, "the temporary file's end")


@scenario(rounds=1, many=50)
def slow_and_left(server, rounds):
    """A slow client that leaves after its code's end: its file goes, nothing else happens."""
    context = server.create_context()
    for i in range(rounds):
        told(server.run("x = 7", context_id=context))
        a = slow_reader(server, context, "for i in range(100): print('-' * 65536, flush=True)")
        b = server.queued("x", context)
        is_((told(b), result(b)), ("ok", "7"), "the next one runs")
        wait_until(lambda: temp_files(server), 5, "the temporary file")
        c = server.busy(context, "import time\ntime.sleep(0.5)\nx")
        a.reset()
        wait_until(lambda: not temp_files(server), 5, "the temporary file's end")
        is_((told(c), result(c)), ("ok", "7"), "the leaving does not hit who runs now")


@scenario(rounds=1, many=10)
def too_slow(server, rounds):
    """More output than kexec_max_temp_file_size, and nobody reads it: the rest is dropped, and that is told."""
    context = server.create_context()
    for i in range(rounds):
        a = slow_reader(server, context, "for i in range(1000): print('%06d' % i + '-' * 65529, flush=True)\n'end'")
        b = server.queued("'next'", context)
        is_((told(b), result(b)), ("ok", "next"), "the next one runs")
        a.finish(60)
        types = a.types()
        is_(types[-1], "end_of_execution", "it gets its end")
        ok("output_dropped" in types, "and is told that output is missing", types[-3:])
        numbers = [int(line[:6]) for line in a.text().split("\n")[:-1]]
        ok(500 < len(numbers) < 1000 and numbers == list(range(len(numbers))), "what came is the beginning, in order",
           "%d lines" % len(numbers))


@scenario(rounds=1, many=10)
def others_are_quick(server, rounds):
    """While 30 MB pass, others are answered without delay."""
    big, small = server.create_context(), server.create_context()
    for i in range(rounds):
        a = server.execute("print('-' * (30 << 20))\n'end'", big, stream_timeout=60)
        times, start = [], time.monotonic()
        reader = threading.Thread(target=a.finish)
        reader.start()
        while reader.is_alive() and time.monotonic() < start + 60:
            b = server.run("1", context_id=small)
            times.append(b.finished_at - b.sent_at)
        reader.join()
        is_((told(a), result(a)), ("ok", "end"), "the large one ends")
        times.sort()
        ok(len(times) > 3, "others are answered meanwhile", "%r" % times)
        within(times[-1], 1.5, "none of them late")


@scenario()
def stdout_closed(server, rounds):
    """Code that replaces stdout and closes it ends as any other, and the next one's output comes."""
    context = server.create_context()
    for code in ("import sys\nsys.stdout = open('/dev/null', 'w'); print('x'); sys.stdout.close()",
                 "import sys\nsys.stdout.close()", "import os\nos.close(1)"):
        a = server.run(code, context_id=context)
        is_(told(a), "ok", "it ends")
        b = server.run("print('out', flush=True)\nimport os\nos.write(1, b'a\\xffb\\n')", context_id=context)
        is_((told(b), b.text("stdout")), ("ok", "out\na\ufffdb\n"), "the next one's output comes, by its descriptor too")


main(lambda workers: Server(workers, CONF), quick=(1,))
