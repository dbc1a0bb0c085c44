#!/usr/bin/python3
"""The bench: the module against a raw websocket client to the same Jupyter, in turns.

    run.py [--quick] [--repeats N] [--only PART]... [--rows REGEX] [--output FILE]

Each row is measured --repeats times, each time with all columns one after the other; a cell is the
median and what lies around it, a ratio the median of the repeats' own ratios: on a machine whose
speed changes only ratios of one run say something.

OTHER=http://127.0.0.1:PORT is another server with the same HTTP interface, in front of a Jupyter of
its own: it gets a column.  BENCH_PORT is the first of a few ports (29300).  --quick is for work on
the bench itself: two short repeats, and nothing is written unless --output says so.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BUILD = os.path.join(ROOT, "build", "bench")
BASE = int(os.environ.get("BENCH_PORT", "29300"))
OTHER = os.environ.get("OTHER")
DOC = os.path.join(ROOT, "docs", "benchmarks.md")
NOTES = "<!-- What follows is written by hand and kept. -->\n"

PARTS = "escape", "jupyter", "scripted", "workers", "memory"

MODULE, V1, TEXT, THIRD = "module", "raw, v1", "raw, JSON", "other"

REAL_STREAM = 's = ("x" * 79 + "\\n") * 819\nimport sys\nfor i in range(800):\n' \
              '    sys.stdout.write(s)\n    sys.stdout.flush()'
REAL_LINES = 'import sys\nfor i in range(20000):\n    sys.stdout.write("a line of output, as programs print them\\n")\n' \
             '    sys.stdout.flush()'
REAL_RESULT = '"x" * 20000000'
REAL_SLEEP = 'import time\nprint("g" + "o!")\ntime.sleep(30)'
STREAM_BYTES = 800 * 65520


class Failed(Exception):
    pass


def client(*args):
    """Runs the client; returns its line, or both of them for `make`."""
    run = subprocess.run([os.path.join(BUILD, "client"), *map(str, args)], stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    if run.returncode or not lines or any(line["errors"] for line in lines):
        raise Failed("client %s" % " ".join(map(str, args))[:300])
    return lines if args[0] == "make" else lines[0]


def call(port, method, path, body=None, token=""):
    request = urllib.request.Request("http://127.0.0.1:%d%s" % (port, path), method=method,
                                     data=None if body is None else json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json", "Authorization": "token " + token})
    with urllib.request.urlopen(request, timeout=120) as answer:
        data = answer.read()
    return json.loads(data) if data else None


class Processes:
    """A process and its children: processor time and memory."""

    def __init__(self, pid):
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            self.workers = list(map(int, f.read().split()))
        self.pids = [pid] + self.workers

    def cpu(self):
        """Seconds on a processor."""
        total = 0
        for pid in self.pids:
            with open("/proc/%d/schedstat" % pid) as f:
                total += int(f.read().split()[0])
        return total / 1e9

    def memory(self, name="Rss", pids=None):
        """In MB; pages that two of them share count twice in Rss, once in Pss."""
        total = 0
        for pid in pids or self.pids:
            with open("/proc/%d/smaps_rollup" % pid) as f:
                total += int(re.search(r"^%s:\s+(\d+)" % name, f.read(), re.M).group(1))
        return total / 1024

    def forget_peak(self):
        for pid in self.pids:
            with open("/proc/%d/clear_refs" % pid, "w") as f:
                f.write("5")

    def peak(self):
        total = 0
        for pid in self.pids:
            with open("/proc/%d/status" % pid) as f:
                total += int(re.search(r"^VmHWM:\s+(\d+)", f.read(), re.M).group(1))
        return total / 1024


class Setting:
    """A back end with nginx in front of it; port and jupyter_port, contexts and kernels for the floor."""

    count = 0

    def __init__(self, real=False, workers=1, contexts=1, kernels=0):
        Setting.count += 1
        self.real = real
        self.port = BASE + 10 * Setting.count
        self.jupyter_port = self.port + 1
        self.dir = tempfile.mkdtemp(prefix="kexec-bench-")
        self.kernel = None
        self.env = dict(os.environ, PORT=str(self.port), JUPYTER_PORT=str(self.jupyter_port), RUN_DIR=self.dir,
                        WORKERS=str(workers), DEFAULT_CONTEXTS="python", LOG_LEVEL="notice")
        for name in ("NGINX", "MODULE", "EXTRA_HTTP", "EXTRA_LOCATION", "NO_JUPYTER"):
            self.env.pop(name, None)
        if not real:
            self.env["NO_JUPYTER"] = "1"
            self.kernel = subprocess.Popen([os.path.join(BUILD, "kernel"), str(self.jupyter_port)],
                                           stdout=subprocess.PIPE)
            self.kernel.stdout.readline()
        try:
            subprocess.run([os.path.join(ROOT, "tools", "server.sh"), "start"], env=self.env, check=True)
            with open(os.path.join(self.dir, "token")) as f:
                self.token = f.read().strip()
            with open(os.path.join(self.dir, "nginx.pid")) as f:
                self.nginx = Processes(int(f.read()))
            self.contexts = [self.create(self.port) for _ in range(contexts)]
            self.kernels = [self.create_kernel(n) for n in range(kernels)]
            self.others = [self.create(other_port()) for _ in range(min(contexts, 8))] if OTHER and real else []
        except BaseException:
            self.stop()
            raise

    @staticmethod
    def create(port):
        return call(port, "POST", "/contexts", {})["id"]

    def create_kernel(self, n):
        model = {"path": "bench-%d" % n, "name": "bench", "type": "notebook", "kernel": {"name": "python3"}}
        return call(self.jupyter_port, "POST", "/api/sessions", model, self.token)["kernel"]["id"]

    def stop(self):
        subprocess.run([os.path.join(ROOT, "tools", "server.sh"), "stop"], env=self.env)
        if self.kernel:
            self.kernel.terminate()
            self.kernel.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def columns(self):
        return [MODULE, V1, TEXT] + ([THIRD] if self.others else [])

    def where(self, column, n=1):
        """The client's options for n contexts or kernels in a column."""
        if column == MODULE:
            options, targets = ["--http", self.port], self.contexts
        elif column == THIRD:
            options, targets = ["--http", other_port()], self.others
        else:
            options, targets = ["--ws", self.jupyter_port, "--token", self.token], self.kernels
            options += ["--json"] if column == TEXT else []
        if n > len(targets):
            return None
        for target in targets[:n]:
            options += ["--target", target]
        return options


def other_port():
    return urllib.parse.urlsplit(OTHER).port


class Table:
    """row -> column -> {repeat: value}"""

    def __init__(self, wanted):
        self.rows = {}
        self.wanted = re.compile(wanted)
        self.failures = 0

    def repeats(self, n, what, *parts):
        """Calls the parts n times.  One that fails leaves a gap, and the bench fails in the end."""
        for self.repeat in range(n):
            print("bench: %s, %d of %d" % (what, self.repeat + 1, n), file=sys.stderr)
            for part in parts:
                try:
                    part()
                except Failed as error:
                    self.failures += 1
                    print("bench: FAILED: %s" % error, file=sys.stderr)

    def wants(self, *names):
        return any(self.wanted.search(name) for name in names)

    def add(self, row, unit, column, value):
        cells = self.rows.setdefault(row, {"unit": unit})
        cells.setdefault(column, {})[self.repeat] = value

    def median(self, row, column=MODULE):
        values = self.rows.get(row, {}).get(column)
        return statistics.median(values.values()) if values else None

    def ratios(self, row, column=V1):
        cells = self.rows.get(row, {})
        ours, theirs = cells.get(MODULE, {}), cells.get(column, {})
        return [ours[n] / theirs[n] for n in ours if n in theirs]

    def ratio(self, row, column=V1):
        values = self.ratios(row, column)
        return statistics.median(values) if values else None

    def lines(self):
        columns = [MODULE, V1, TEXT] + ([THIRD] if OTHER else [])
        yield "| | %s | module / raw, v1 |" % " | ".join(columns)
        yield "|" + "---|" * (len(columns) + 2)
        for row, cells in self.rows.items():
            texts = [spread(cells[c].values(), cells["unit"]) if c in cells else "" for c in columns]
            ratio = spread(self.ratios(row), "") if self.ratios(row) else ""
            yield "| %s | %s | %s |" % (row, " | ".join(texts), ratio)


def number(value):
    for limit, form in ((0.095, "%.3f"), (9.95, "%.2f"), (99.5, "%.1f")):
        if abs(value) < limit:
            return form % value
    return "{:,.0f}".format(value).replace(",", " ")


def spread(values, unit):
    text = number(statistics.median(values)) + (" " + unit if unit else "")
    if len(values) > 1:
        text += " (%s to %s)" % (number(min(values)), number(max(values)))
    return text


# The rows

def executions(table, s, quick, tag):
    """Latency and executions a second."""
    count = (200 if s.real else 5000) // (4 if quick else 1)
    for column in s.columns():
        http = column in (MODULE, THIRD)
        events = ["--events", 3] if http else [] if s.real else ["--events", 2]
        where = s.where(column)
        if table.wants(tag + "p50 of `1`", tag + "p99 of `1`"):
            r = client("run", *where, "--count", count, "--warm", 10, *events)
            table.add(tag + "p50 of `1`", "ms", column, r["p50"])
            table.add(tag + "p99 of `1`", "ms", column, r["p99"])
        for name, option in (("new connection", "--new"), ("with `env_vars`", "--env")):
            row = tag + "p50 of `1`, " + name
            if http and table.wants(row):
                table.add(row, "ms", column,
                          client("run", *where, "--count", count // 2, "--warm", 10, *events, option)["p50"])
        for n in (1, 8, 64):
            row = tag + "executions/s, contexts: %d" % n
            cpu = tag + "processor time for 1000 executions, contexts: %d" % n
            where = s.where(column, n)
            if where and table.wants(row, cpu):
                before = s.nginx.cpu()
                r = client("run", *where, "--seconds", 0.5 if quick else 2, "--warm", 5, *events)
                table.add(row, "", column, r["count"] / r["seconds"])
                if column != THIRD:
                    used = s.nginx.cpu() - before if column == MODULE else r["cpu"]
                    table.add(cpu, "ms", column, 1e6 * used / (r["count"] + 5 * n))


def output(table, s, tag):
    for column in s.columns():
        http = column in (MODULE, THIRD)
        where = s.where(column)
        row, cpu = tag + "50 MB in 64 kB writes", tag + "processor time for 1 GB of output"
        if table.wants(row, cpu):
            before = s.nginx.cpu()
            runs = 1 if s.real else 5
            r = client("run", *where, "--code", REAL_STREAM if s.real else "stream 800 65520", "--count", runs)
            if r["bytes"] < runs * STREAM_BYTES:
                raise Failed("output is missing")
            table.add(row, "MB/s", column, STREAM_BYTES * runs / 1e6 / r["seconds"])
            if column != THIRD:
                used = s.nginx.cpu() - before if column == MODULE else r["cpu"]
                table.add(cpu, "s", column, used / (STREAM_BYTES * runs / 1e9))
        row = tag + "20 000 flushed lines"
        if table.wants(row):
            r = client("run", *where, "--code", REAL_LINES if s.real else "lines 20000", "--count", 1,
                       "--events", 20002 if http else 20001)
            table.add(row, "ms", column, 1e3 * r["seconds"])
        row = tag + "a result of 20 MB"
        if table.wants(row):
            r = client("run", *where, "--code", REAL_RESULT if s.real else "result 20000000", "--count", 1)
            table.add(row, "MB/s", column, 20 / r["seconds"])


def scenes(table, s, quick, tag):
    rounds = 3 if quick else 10
    for case, words in (("alone", "alone"), ("waiter", "with a waiter"), ("leavers", "with 20 leavers")):
        for column in (MODULE, V1):
            row = tag + "drop to next result, %s, %%s" % words
            if table.wants(row % "p50", row % "p99"):
                r = client("drop", *s.where(column), "--case", case, "--count", rounds, "--warm", 1,
                           "--code", REAL_SLEEP if s.real else "sleep 30",
                           *(["--started", "go!"] if s.real else []))
                table.add(row % "p50", "ms", column, r["p50"])
                table.add(row % "p99", "ms", column, r["p99"])
    if table.wants(tag + "create a context", tag + "delete it"):
        for column in (MODULE, V1):
            made, deleted = client("make", *s.where(column)[:4], "--count", 3 if s.real else 50)
            table.add(tag + "create a context", "ms", column, made["p50"])
            table.add(tag + "delete it", "ms", column, deleted["p50"])


def health(table, s, quick):
    row = "/health requests/s, 32 connections"
    if table.wants(row):
        r = client("run", "--http", s.port, "--lanes", 32, "--get", "/health", "--seconds", 0.5 if quick else 2,
                   "--warm", 5)
        table.add(row, "", MODULE, r["count"] / r["seconds"])


def escape(table):
    run = subprocess.run([os.path.join(BUILD, "escape")], stdout=subprocess.PIPE, text=True, check=True)
    for name, value in json.loads(run.stdout).items():
        table.add("escape pass alone, " + name, "GB/s", MODULE, value)


def scale(table, quick, repeats):
    """The same executions on more and more contexts, four workers."""
    with Setting(workers=4, contexts=512) as s:
        def measure():
            for n in (1, 8, 64, 512):
                before = s.nginx.cpu()
                r = client("run", *s.where(MODULE, n), "--seconds", 0.5 if quick else 2, "--warm", 3, "--events", 3)
                table.add("4 workers, executions/s, contexts: %d" % n, "", MODULE, r["count"] / r["seconds"])
                table.add("4 workers, processor time for 1000 executions, contexts: %d" % n, "ms", MODULE,
                          1e6 * (s.nginx.cpu() - before) / (r["count"] + 3 * n))

        table.repeats(repeats, "4 workers", measure)


def memory(table, quick, repeats):
    """Each time in an nginx that has just started."""

    def measure():
        with Setting(contexts=0) as s:
            idle = s.nginx.memory()
            table.add("memory, idle", "MB", MODULE, idle)
            table.add("memory, idle, shared pages once", "MB", MODULE, s.nginx.memory("Pss"))

            s.contexts = [s.create(s.port) for _ in range(64)]
            client("run", *s.where(MODULE, 64), "--count", 3, "--events", 3)
            with_64 = s.nginx.memory()
            table.add("memory, 64 contexts", "MB", MODULE, with_64)
            table.add("memory, a context", "kB", MODULE, 1024 * (with_64 - idle) / 64)

            s.nginx.forget_peak()
            client("run", *s.where(MODULE), "--code", "stream 1600 65536", "--count", 1, "--events", 1602,
                   "--slow", 1 if quick else 4)
            table.add("memory, peak above that with a slow reader of 100 MB", "MB", MODULE, s.nginx.peak() - with_64)

            s.contexts += [s.create(s.port) for _ in range(1000 - 64)]
            client("run", *s.where(MODULE, 1000), "--count", 1, "--events", 3)
            before = s.nginx.memory()
            holder = subprocess.Popen([os.path.join(BUILD, "client"), "run", "--hold", "--code", "sleep 600",
                                       *map(str, s.where(MODULE, 1000))],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            holder.stdout.readline()
            while call(s.jupyter_port, "GET", "/api/status")["running"] < 1000:
                time.sleep(0.05)
            table.add("memory, an open execution (of 1000)", "kB", MODULE, 1024 * (s.nginx.memory() - before) / 1000)
            holder.stdin.close()
            holder.wait()

    table.repeats(1 if quick else min(repeats, 3), "memory", measure)


# What is asked for

def asked(table):
    """(what, got, reached) of each number that is to be shown."""
    real, fast = "Jupyter: ", "scripted: "

    def at_most(what, got, limit):
        if got is not None:
            yield what, number(got), got <= limit

    def at_least(what, got, limit):
        if got is not None:
            yield what, number(got), got >= limit

    p50, raw = (table.median(fast + "p50 of `1`", c) for c in (MODULE, V1))
    yield from at_most("p50 of `1`, Jupyter: at most 1.15 x the raw client's", table.ratio(real + "p50 of `1`"), 1.15)
    yield from at_most("p50 of `1`, scripted: at most 0.10 ms above the raw client's",
                       p50 - raw if p50 and raw else None, 0.10)
    yield from at_least("executions/s on 64 scripted contexts, one worker: at least 20 000",
                        table.median(fast + "executions/s, contexts: 64"), 20000)
    yield from at_least("50 MB, Jupyter: at least 0.9 x the raw client's throughput",
                        table.ratio(real + "50 MB in 64 kB writes"), 0.9)
    yield from at_least("escape pass, lines: at least 1 GB/s", table.median("escape pass alone, lines"), 1)
    yield from at_least("50 MB, scripted: at least 600 MB/s", table.median(fast + "50 MB in 64 kB writes"), 600)
    for case in ("alone", "with a waiter", "with 20 leavers"):
        yield from at_most("drop to next result, Jupyter, %s, p50: at most 1.3 x the raw client's" % case,
                           table.ratio(real + "drop to next result, %s, p50" % case), 1.3)
    yield from at_most("nginx's processor time for 1000 executions: at most 60 ms",
                       table.median(fast + "processor time for 1000 executions, contexts: 64"), 60)
    yield from at_most("nginx's processor time for 1 GB: at most 1 s",
                       table.median(fast + "processor time for 1 GB of output"), 1)
    yield from at_most("memory with 64 contexts, master and one worker: under 12 MB",
                       table.median("memory, 64 contexts"), 12)
    yield from at_most("memory, slow reader of 100 MB: at most 2 MB above idle",
                       table.median("memory, peak above that with a slow reader of 100 MB"), 2)


def machine():
    def first(pattern, path):
        with open(path) as f:
            found = re.search(pattern, f.read(), re.M)
        return found.group(1).strip() if found else "unknown"

    def version(package):
        run = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], stdout=subprocess.PIPE, text=True)
        return "%s %s" % (package, run.stdout or "unknown")

    yield "%d processors (%s), %d GB, Linux %s" % (
        os.cpu_count(), first(r"^model name\s*: (.*)", "/proc/cpuinfo"),
        round(int(first(r"^MemTotal:\s+(\d+)", "/proc/meminfo")) / 1024 ** 2), os.uname().release.split("-")[0])
    yield first(r'^PRETTY_NAME="(.*)"', "/etc/os-release") + ": " + ", ".join(
        map(version, ("nginx", "jupyter-server", "python3-ipykernel", "gcc")))
    head = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE, text=True)
    yield "module at %s, %s, load average when it began %.1f" % (
        head.stdout.strip(), datetime.date.today(), os.getloadavg()[0])


def document(table, about):
    yield "# Benchmarks"
    yield ""
    yield "`make bench` prints this table and writes it here. Client, nginx and Jupyter share the machine; of numbers"
    yield "from different runs only ratios compare."
    yield ""
    for line in about:
        yield "* " + line
    yield ""
    yield "*raw* is a minimal websocket client in C straight to the same Jupyter, with `TCP_QUICKACK`, in the"
    yield "protocol `v1.kernel.websocket.jupyter.org` and in the default one. *scripted* is a Jupyter in C that does"
    yield "nothing, fast (`bench/kernel.c`). In a cell: the median of the repeats and, in parentheses, their extremes;"
    yield "the ratio is the median of the repeats' ratios. Processor time is nginx's, or the raw client's own. One worker"
    yield "unless it says otherwise."
    yield ""
    yield from table.lines()
    yield ""
    yield "## What is asked for"
    yield ""
    yield "| | this run | reached |"
    yield "|---|---|---|"
    for what, got, reached in asked(table):
        yield "| %s | %s | %s |" % (what, got, "yes" if reached else "**no**")
    yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--only", action="append", choices=PARTS, help="only this part; may be repeated")
    parser.add_argument("--rows", default="", help="only rows that match this regular expression")
    parser.add_argument("--output", help="where the table goes (docs/benchmarks.md when all rows are measured)")
    args = parser.parse_args()
    repeats = args.repeats or (2 if args.quick else 5)
    about = list(machine())

    subprocess.run([os.path.join(ROOT, "tools", "build.sh")], check=True)
    subprocess.run(["make", "-s", "-C", HERE], check=True)

    table = Table(args.rows)

    parts = args.only or PARTS

    if "escape" in parts:
        table.repeats(repeats, "escape pass", lambda: escape(table))

    for real, tag, n in ((True, "Jupyter: ", 8), (False, "scripted: ", 64)):
        if tag[:-2].lower() in parts:
            with Setting(real=real, contexts=n, kernels=n) as s:
                table.repeats(repeats, tag[:-2],
                              lambda: executions(table, s, args.quick, tag),
                              lambda: output(table, s, tag),
                              lambda: scenes(table, s, args.quick, tag),
                              lambda: real or health(table, s, args.quick))

    if "workers" in parts:
        scale(table, args.quick, repeats)
    if "memory" in parts:
        memory(table, args.quick, repeats)

    text = "\n".join(document(table, about))
    print(text)
    path = args.output or (None if args.quick or args.rows or args.only else DOC)
    if path:
        notes = ""
        if os.path.exists(path):
            with open(path) as f:
                notes = "".join(f.read().partition(NOTES)[1:])
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "w") as f:
            f.write(text + "\n" + (notes or NOTES))
    if table.failures:
        sys.exit("bench: %d measurements failed" % table.failures)


if __name__ == "__main__":
    main()
