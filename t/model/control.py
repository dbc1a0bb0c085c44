#!/usr/bin/python3
"""Negative controls of the model: the machines that t/unit/machine_control.py breaks, and some more, each of which it has to
find, by the invariant that is named.  What those are about that the model leaves out is not among them.

    control.py BUILD SRC COMPILER...        SRC: the folder machine/, COMPILER: with its options"""

import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "unit"))
import machine_control as walks

STATES = ["8000000", "500000"]          # of all kinds together, and of each pair

# the walks do not have a kernel, the model has: what they say may be is seen here
REACHES = "an interrupt reaches the next one"
BEHIND = "variables stay behind, and nobody knows"

# by what else one is found
ALSO = {
    "no barrier behind interrupts": [walks.FLYING],
}

MORE = [
    ("variables are forgotten with their process", "base", "    m->facts.prepared = 0;\n",
     "    m->facts.prepared = 0;\n    m->facts.owes_restore = 0;\n", BEHIND),
]


def broken(entry, number, build, source, compiler):
    name, part, old, new, invariant = entry
    folder = os.path.join(build, "control-%d" % number)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    path = os.path.join(folder, "ngx_kexec_machine%s.c" % ("_" + part if part else ""))
    with open(path) as f:
        text = f.read()
    for there, instead in zip(*([old], [new]) if isinstance(old, str) else (old, new)):
        if there not in text:
            return "does not stand there any more: " + there
        text = text.replace(there, instead, 1)
    with open(path, "w") as f:
        f.write(text)
    program = os.path.join(folder, "model")
    files = sorted(glob.glob(folder + "/*.c") + glob.glob(HERE + "/*.c"))
    subprocess.run([compiler[0], "-I", folder, *compiler[1:], "-o", program, *files], check=True)
    said = subprocess.run([program, *STATES], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    shutil.rmtree(folder)
    found = re.search(r"after (\d+) states:.*FAILED: ([^\n]*)", said, re.S)
    if not found:
        return "is not found"
    wanted = "|".join([invariant, *ALSO.get(name, [])]).replace(walks.NEXT, REACHES)
    if not re.fullmatch(wanted, found[2]):
        return "is found by \"%s\"" % found[2]
    print("found after %s states: %s (%s)" % (found[1], name, found[2]), flush=True)


def main():
    build, source, *compiler = sys.argv[1:]
    entries = [e for e in walks.BREAKS + MORE if e[1] != "operation"]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = [pool.submit(broken, e, n, build, source, compiler) for n, e in enumerate(entries)]
        for entry, result in zip(entries, results):
            if result.result():
                failed += 1
                print("NOT FOUND: %s: %s" % (entry[0], result.result()), flush=True)
    print("model: %d of %d mutations found" % (len(entries) - failed, len(entries)))
    sys.exit(failed != 0)


main()
