#!/usr/bin/python3
"""Speed that can be tested on any machine: instructions and calls, which callgrind counts whatever else
runs, and the stall of 40 ms that Nagle's algorithm and a delayed ACK make together.

The limits are a tenth above what was counted when they were set.  Who makes the module faster lowers
them; who has to raise one says why.  `bench/README.md` tells how to see where the instructions go.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from kexec_test import *

BUILD = os.path.join(ROOT, "build", "bench")

KEEP = os.environ.get("CALLGRIND_OUT")
kept = []

EXECUTIONS, PER_EXECUTION = 100, 105000
OUTPUT, PER_KB = 10, 4950               # MB

# What one write costs is that of 30 000 instructions.  These are the code, the headers with the events
# and the body's end, and the line of the access log; the reads are the request and the answer.
WRITES, READS = 3, 2

# In ms.  With the stall each answer takes 40 or more; a busy machine makes many of them late, but not all.
STALL = 36


class Kernels:
    """The bench's scripted kernels."""

    token = ""

    def __init__(self, *options):
        self.port = free_port()
        self.process = subprocess.Popen([os.path.join(BUILD, "kernel"), str(self.port), *options],
                                        stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def sessions(self):
        return request(self.port, "GET", "/api/sessions").json()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def client(*args):
    run = subprocess.run([os.path.join(BUILD, "client"), "run", *map(str, args)], stdout=subprocess.PIPE, check=True)
    result = json.loads(run.stdout)
    if result["errors"]:
        raise RuntimeError("%d answers were not as expected" % result["errors"])
    return result


# Instructions

def callgrind(*runs):
    """What nginx did from its start through those runs of the client to its end: (instructions, writes, reads)."""
    with Kernels() as kernels:
        nginx = Nginx(kernels, master=False, start=False, env={"DEFAULT_CONTEXTS": "python", "LOG_LEVEL": "notice"})
        nginx._script("conf")
        conf = os.path.join(nginx.run_dir, "nginx.conf")
        with open(conf) as f:
            text = f.read().replace("daemon on;", "daemon off;")
        with open(conf, "w") as f:
            f.write(text)
        out = os.path.join(nginx.run_dir, "callgrind.out")

        # which memcpy() is taken must not depend on the processor
        env = {**os.environ, "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX_Fast_Unaligned_Load,-AVX512F,-ERMS,-FSRM"}
        process = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out,
             "--log-file=" + os.path.join(nginx.run_dir, "valgrind.log"),
             shutil.which("nginx") or "/usr/sbin/nginx", "-p", nginx.run_dir, "-c", conf], env=env)
        try:
            wait_until(lambda: process.poll() is not None or port_answers(nginx.port), 60, "nginx")
            for run in runs:
                client("--http", nginx.port, "--target", "default", *run)
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait(60)
        with open(out) as f:
            text = f.read()
        counts = (int(re.search(r"^(?:summary|totals): (\d+)", text, re.M).group(1)),
                  calls(text, "writev", "write", "send"), calls(text, "recv", "readv"))
        if KEEP:
            shutil.move(out, "%s.%d" % (KEEP, len(kept)))
            kept.append(out)
        shutil.rmtree(nginx.run_dir, ignore_errors=True)
    return counts


def calls(text, *functions):
    """How often they were called.  A function's name stands where it is mentioned first."""
    ids = set(re.findall(r"^c?fn=\((\d+)\) (?:%s)$" % "|".join(functions), text, re.M))
    return sum(int(count) for called, count in re.findall(r"^cfn=\((\d+)\).*\n(?:c[fo].*\n)*calls=(\d+)", text, re.M)
               if called in ids)


def instructions():
    short = ["--count", 10, "--events", 3]
    base = callgrind(short)

    counted = callgrind(["--count", 10 + EXECUTIONS, "--events", 3])
    instructions, writes, reads = ((a - b) / EXECUTIONS for a, b in zip(counted, base))
    within_limit(instructions, PER_EXECUTION, "instructions for an execution")
    within_limit(writes, WRITES + 0.5, "writes for an execution")
    within_limit(reads, READS + 0.5, "reads for an execution")

    stream = ["--code", "stream %d 65536" % (16 * OUTPUT), "--count", 1, "--events", 16 * OUTPUT + 2]
    within_limit((callgrind(short, stream)[0] - base[0]) / (1024 * OUTPUT), PER_KB, "instructions for 1 kB of output")


def within_limit(counted, limit, name):
    ok(counted < limit, name, "%.1f, the limit is %.1f" % (counted, limit))
    diag("%.1f %s, the limit is %.1f" % (counted, name, limit))


# The stall

def stall(name, port, *options, which="min", limit=STALL):
    """which: the fastest answer, or the fastest first event."""
    result = client("--http", port, "--target", "default", "--warm", 2, *options)
    ok(result[which] < limit, name, "%.1f ms" % result[which])
    diag("%s %.2f ms, p50 %.2f ms" % (which, result[which], result["p50"]))


def stalls():
    count, many = (["--count", n, "--events", 3] for n in (40, 100))
    with Kernels("--split") as kernels, Nginx(kernels) as nginx:
        stall("messages in small segments under Nagle's algorithm are acknowledged at once", nginx.port, *count)
        stall("silent requests and the code do not wait for each other's acknowledgement", nginx.port, *count, "--env")
        stall("the first event does not wait for a client that acknowledges late", nginx.port, "--new", "--delack",
              "--count", 20, "--events", 2, "--code", "sleep 0.1", which="first")
        nginx.log.check()

    with Nginx() as nginx:
        stall("a real Jupyter", nginx.port, *many)
        # there would be three of them, one behind the other
        stall("a real Jupyter and variables", nginx.port, *many, "--env", limit=2 * STALL)
        nginx.log.check()


subprocess.run(["make", "-s", "-C", os.path.join(ROOT, "bench")], check=True)

instructions()
stalls()

done_testing()
