"""The cases of roundtrip.py in IPython: a job on standard input, see there."""

import json
import linecache
import os
import subprocess
import sys

from IPython.core.interactiveshell import InteractiveShell

job = json.load(sys.stdin)
os.environ["HOME"] = os.getcwd()
stdout, sys.stdout = sys.stdout, open("printed", "w+")
shell = InteractiveShell.instance(history_load_length=0)
shell.history_manager.enabled = False
shell.autocall = 2
problems, views = [], {}

def silent(code):
    result = shell.run_cell(code, silent=True, store_history=False)
    return result.error_before_exec or result.error_in_exec

def namespace():
    # IPython counts nameless cells itself
    return {name: repr(value) for name, value in shell.user_ns.items()
            if name not in ("_ih", "In", "_oh", "Out")}

shell.run_cell("os = print = open = exec = sys = getattr = dict = 5\n"
               "builtins = a = k = n = v = s = e = f = 6\n6 * 7",
               store_history=False)
before = namespace()
if shell.user_ns.get("_") != 42:
    problems.append("_ is not 42 to begin with")

for number, case in enumerate(job["cases"]):
    names = [bytes.fromhex(var["name"]) for var in case["vars"]]

    def view():
        return {name.hex(): os.environb[name].hex()
                if name in os.environb else None for name in names}

    for name, var in zip(names, case["vars"]):
        os.environb.pop(name, None)
        if var["prior"] is not None:
            os.environb[name] = bytes.fromhex(var["prior"])
    for code in case["set"]:
        error = silent(code)
        if error:
            problems.append("case %d set: %r" % (number, error))
    views["%d set" % number] = view()
    if max(len(var["value"]) for var in case["vars"]) < 200000 \
       and number % 5 == 0:
        child = dict(line.split(b"=", 1) for line in subprocess.run(
            ["env", "-0"], stdout=subprocess.PIPE).stdout.split(b"\0")
            if b"=" in line)
        for name, var in zip(names, case["vars"]):
            if child.get(name) != bytes.fromhex(var["value"]):
                problems.append("case %d: child has not %r"
                                % (number, name))
    for name, var in zip(names, case["vars"]):
        if var["change"] == "delete":
            os.environb.pop(name, None)
        elif var["change"] == "set":
            os.environb[name] = bytes.fromhex(var["changed"])
    if number % 7 == 0:
        genuine = os.environ
        os.environ = dict(os.environ)
    error = silent(case["restore"])
    if number % 7 == 0:
        for name in names:
            if os.environ.get(os.fsdecode(name)) \
               != genuine.get(os.fsdecode(name)):
                problems.append("case %d: copy keeps %r" % (number, name))
        os.environ = genuine
    if error:
        problems.append("case %d restore: %r" % (number, error))
    views["%d restored" % number] = view()
    if namespace() != before:
        problems.append("case %d changed the namespace" % number)
        before = namespace()

extra = job["extra"]
for code in (extra["restore"], extra["restore"], extra["plain"],
             extra["restore"]):
    if silent(code):
        problems.append("failed: %s" % code)
if os.environ.get("PLAIN") != "1":
    problems.append("a plain set was restored")
os.mkdir("a '\"\\\n%x")
if silent(extra["cwd"]) or not os.getcwd().endswith("\n%x"):
    problems.append("cwd failed")
if not isinstance(silent(extra["bad_cwd"]), FileNotFoundError):
    problems.append("a bad cwd is no error")
if namespace() != before:
    problems.append("cwd changed the namespace")
if hasattr(sys, "__kexec_env__"):
    problems.append("sys.__kexec_env__ stayed")
if any("os.environ" in line for entry in linecache.cache.values()
       for line in entry[2] if "__kexec_env__" in line):
    problems.append("linecache holds a snippet")
sys.stdout.flush()
sys.stdout.seek(0)
printed = sys.stdout.read().replace("Out[1]: 42\n", "").strip()
if printed != "42" and printed:
    # the traceback of the bad cwd is IPython's to print
    if "FileNotFoundError" not in printed:
        problems.append("printed %r" % printed[:200])
json.dump({"views": views, "problems": problems}, stdout)
