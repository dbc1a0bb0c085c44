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
    return {name: repr(value) for name, value in shell.user_ns.items()}


def view(names):
    return {name.hex(): os.environb[name].hex() if name in os.environb else None
            for name in names}


def put(name, value):
    os.environb.pop(name, None)
    if value is not None:
        os.environb[name] = bytes.fromhex(value)


def run_case(number, case):
    names = [bytes.fromhex(var["name"]) for var in case["vars"]]
    for name, var in zip(names, case["vars"]):
        put(name, var["prior"])

    for code in case["set"]:
        error = silent(code)
        if error:
            problems.append("case %d set: %r" % (number, error))
    views["%d set" % number] = view(names)

    if number % 5 == 0:
        child = subprocess.run(["env", "-0"], stdout=subprocess.PIPE).stdout
        for name, var in zip(names, case["vars"]):
            entry = name + b"=" + bytes.fromhex(var["value"])
            if entry not in child.split(b"\0"):
                problems.append("case %d: child has not %r" % (number, name))

    for name, var in zip(names, case["vars"]):
        if var["change"] != "no":
            put(name, var["changed"] if var["change"] == "set" else None)

    # a copy of os.environ must not keep what was set
    genuine = os.environ
    if number % 7 == 0:
        os.environ = dict(genuine)
    error = silent(case["restore"])
    copy, os.environ = os.environ, genuine
    if error:
        problems.append("case %d restore: %r" % (number, error))
    for name in map(os.fsdecode, names):
        if copy.get(name) != genuine.get(name):
            problems.append("case %d: copy keeps %r" % (number, name))
    views["%d restored" % number] = view(names)


def run_extra(extra):
    for code in (extra["restore"], extra["restore"], extra["plain"],
                 extra["restore"]):
        if silent(code):
            problems.append("failed: %s" % code)
    if os.environ.get("PLAIN") != "1":
        problems.append("a plain set was restored")
    if hasattr(sys, "__kexec_env__"):
        problems.append("sys.__kexec_env__ stayed")
    if any("__kexec_env__" in line for entry in linecache.cache.values()
           for line in entry[2]):
        problems.append("linecache holds a snippet")
    os.mkdir("a '\"\\\n%x")
    if silent(extra["cwd"]) or not os.getcwd().endswith("\n%x"):
        problems.append("cwd failed")


shell.run_cell("os = print = open = exec = sys = getattr = dict = 5\n"
               "builtins = a = k = n = v = s = e = f = 6\n6 * 7",
               store_history=False)
before = namespace()
if shell.user_ns.get("_") != 42:
    problems.append("_ is not 42 to begin with")
printed = sys.stdout.tell()

for number, case in enumerate(job["cases"]):
    run_case(number, case)
    if namespace() != before:
        problems.append("case %d changed the namespace" % number)
        before = namespace()

run_extra(job["extra"])
if namespace() != before:
    problems.append("the namespace changed")
if sys.stdout.tell() != printed:
    problems.append("something was printed")
if not isinstance(silent(job["extra"]["bad_cwd"]), FileNotFoundError):
    problems.append("a bad cwd is no error")

json.dump({"views": views, "problems": problems}, stdout)
