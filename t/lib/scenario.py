"""Scenarios: the scripts in t/scenarios, their options, one line of result a scenario.

    from scenario import *

    @scenario(rounds=3, many=50)
    def one_leaves(server, rounds):
        context = server.create_context()
        for i in range(rounds):
            ...

    main(lambda workers: Server(workers, "kexec_interrupt_timeout 2s;"))

Scenarios that have no options for their server share one for each number of workers, and are run one after the other.
What makes the server may say shared = False, as Scripted does: then each scenario has a server of its own.

Without options it is a quick run: a few rounds of each scenario.

    --many          each scenario's own large number of rounds
    --rounds N      so many rounds of each
    --workers 1,4   only with so many workers, of those that a scenario is for; 0: one, with master_process off
    --only NAME     that scenario; may be repeated
    --jobs N        so many servers at a time, each in a process of its own (JOBS in the environment: not more than that);
                    scenarios that share a server are divided then, so that no job has more than its part
    --list          the scenarios' names

Around each scenario stand the lines "# scenario NAME workers=N" and "# passed NAME workers=N 1.2 s" or "# FAILED ...",
which t/rounds reads.  When one fails, its server's directory is kept.
"""

import argparse
import threading
import traceback

import kexec_test
from servers import *

_scenarios = []


class Skip(Exception):
    """For a server that cannot be made here: its scenarios are passed over."""


class _Scenario:
    def __init__(self, function, rounds, many, workers, quick, server, options):
        self.function, self.name = function, function.__name__
        self.rounds, self.many = rounds, many or rounds
        self.workers, self.quick = workers, quick or workers
        self.server, self.options = server, options


def scenario(rounds=1, many=None, workers=None, quick=None, server=None, **options):
    """rounds: of a quick run; many: of a thorough one; workers: the only numbers of workers that it is run with;
    quick: those of a quick run; server: makes its server, in the place of what main() is given; options: of the
    server."""
    def add(function):
        if function.__name__ in (s.name for s in _scenarios):
            raise ValueError("two scenarios %s" % function.__name__)
        _scenarios.append(_Scenario(function, rounds, many, workers, quick, server, options))
        return function
    return add


def main(make_server, workers=(1, 4), quick=None, jobs=1):
    """Runs the script's scenarios with each number of workers, then ends the script.  make_server(workers, **options);
    quick: the numbers of workers of a quick run; jobs: how many servers at a time."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=lambda text: tuple(map(int, text.split(","))))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--only", action="append", choices=[s.name for s in _scenarios])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", "-j", type=int, default=min(jobs, int(os.environ.get("JOBS") or jobs)))
    args = parser.parse_args()
    if args.list:
        print("\n".join(s.name for s in _scenarios))
        sys.exit(0)
    is_quick = not args.many and not args.rounds and not args.workers
    groups = {}                                 # those that share a server, in the order in which they are run
    for s in _scenarios:
        if args.only and s.name not in args.only:
            continue
        make = s.server or make_server
        shared = getattr(make, "shared", True)
        for n in is_quick and (s.quick or quick) or s.workers or workers:
            if not args.workers or n in args.workers:
                key = (n, shared or s.name, make, repr(sorted(s.options.items())))
                groups.setdefault(key, []).append(s)
    if not groups:
        skip_all("no scenario is for that number of workers")
    most = -(-sum(map(len, groups.values())) // args.jobs)
    groups = [(key[0], key[2], group[i:i + most]) for key, group in sorted(groups.items(), key=lambda item: item[0][0])
              for i in range(0, len(group), most)]
    if args.jobs > 1 and len(groups) > 1:
        start = time.monotonic()
        _run_side_by_side(groups, args)
        diag("%.1f s" % (time.monotonic() - start))
    else:
        for n, make, group in groups:
            _run_group(n, make, group, args)
    done_testing()


def _run_group(workers, make, group, args):
    try:
        with make(workers, **group[0].options) as server:
            for s in group:
                _run(server, s, args.rounds or (s.many if args.many else s.rounds), workers)
    except Skip as e:
        skip("%s: %s" % (", ".join(s.name for s in group), e))
    except Exception:
        _failed(group, workers, "their server: " + traceback.format_exc())


def _failed(group, workers, why):
    """Scenarios that were not run."""
    for s in group:
        ok(False, "%s is run" % s.name, why)
        _end_line("FAILED", s, workers, 0)


def _end_line(verdict, s, workers, seconds):
    diag("%s %s workers=%d %.1f s" % (verdict, s.name, workers, seconds))


def _run(server, s, rounds, workers):
    diag("scenario %s workers=%d rounds=%d" % (s.name, workers, rounds))
    failed = kexec_test._tests["failed"]
    start = time.monotonic()
    try:
        server.log.mark()
        s.function(server, rounds)
        server.check_log()
    except Exception:
        ok(False, "%s goes to its end" % s.name, traceback.format_exc())
    passed = kexec_test._tests["failed"] == failed
    if not passed:
        _keep_log(server)
    _end_line("passed" if passed else "FAILED", s, workers, time.monotonic() - start)


def _keep_log(server):
    try:
        server.keep_log()
    except Exception as e:
        diag("what Jupyter saw could not be kept: %r" % e)


_lock = threading.Lock()
_processes = set()


def _run_side_by_side(groups, args):
    """Each group by this script in a process of its own; what it prints comes in one piece."""
    waiting = list(groups)
    jobs = [threading.Thread(target=_run_processes, args=(waiting, args), daemon=True) for _ in range(args.jobs)]
    for job in jobs:
        job.start()
    try:
        for job in jobs:
            job.join()
    except KeyboardInterrupt:
        with _lock:
            waiting.clear()
            for process in _processes:
                process.send_signal(signal.SIGINT)
        for job in jobs:
            job.join()
        raise


def _run_processes(waiting, args):
    while True:
        with _lock:
            if not waiting:
                return
            workers, _, group = waiting.pop(0)
            options = ["--jobs", "1", "--workers", str(workers)] + ["--many"] * args.many
            for s in group:
                options += ["--only", s.name]
            if args.rounds:
                options += ["--rounds", str(args.rounds)]
            process = subprocess.Popen([sys.executable, os.path.abspath(sys.argv[0]), *options], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace")
            _processes.add(process)
        output = process.communicate()[0]
        with _lock:
            _processes.remove(process)
            if not _report(output) or process.returncode not in (0, 1):
                _failed(group, workers, "its process ended with status %d" % process.returncode)


def _report(output):
    """Prints a process's output with our numbers; whether there were tests."""
    tests, seen = kexec_test._tests, 0
    for line in output.split("\n"):
        match = re.match(r"(not ok|ok) \d+(.*)", line)
        if match:
            seen += 1
            tests["run"] += 1
            tests["failed"] += match.group(1) == "not ok"
            print("%s %d%s" % (match.group(1), tests["run"], match.group(2)))
        elif line and not re.match(r"1\.\.\d+$|# \d+ of \d+ tests failed", line):
            print(line if line.startswith("#") else "# " + line)
    sys.stdout.flush()
    return seen
