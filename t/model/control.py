#!/usr/bin/python3
"""Negative controls of the model: the machines that t/unit/machine_control.py breaks, and some more, each of which it has to
find, by the invariant that is named.  What those are about that the model leaves out is not among them.

    control.py BUILD SRC COMPILER...        SRC: the folder machine/, COMPILER: with its options"""

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


def broken(entry, folder, source, compiler):
    name, part, old, new, invariant = entry
    missing = walks.mutate(entry, folder, source)
    if missing:
        return missing
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
    walks.run("model", entries, lambda n: broken(entries[n], os.path.join(build, "control-%d" % n), source, compiler))


main()
