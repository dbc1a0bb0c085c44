#!/usr/bin/python3
"""tools/rooms finds what it is there to find, in small sources made for that; and nothing new in the module's."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from kexec_test import *

TOOL = os.path.join(ROOT, "tools", "rooms")


def rooms(sources, allowed=""):
    """What tools/rooms says is wrong with such sources, and whether it passes."""

    with tempfile.TemporaryDirectory() as folder:
        for name, text in sources.items():
            path = os.path.join(folder, "src", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text)

        listed = os.path.join(folder, "allowed")
        with open(listed, "w") as f:
            f.write(allowed)

        run = subprocess.run([TOOL, "--sources", os.path.join(folder, "src"), "--allowed", listed],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return [line[len("rooms: "):] for line in run.stderr.splitlines()], run.returncode == 0


def function(name, body="", kind="void", parameters="void"):
    return "\n\n%s\n%s(%s)\n{\n%s\n}\n" % (kind, name, parameters, body)


def ring(folder, names):
    return {"%s/ngx_kexec_%s.c" % (folder, name): function("ngx_kexec_" + name, "    ngx_kexec_%s();" % after)
            for name, after in zip(names, names[1:] + names[:1])}


HIGH = "api/ngx_kexec_high.c"
LOW = "zone/ngx_kexec_low.c"

high = function("ngx_kexec_high", "    ngx_kexec_low();")
low = function("ngx_kexec_low")
call = "call %s %s ngx_kexec_high\n" % (LOW, HIGH)

is_(rooms({HIGH: high, LOW: low}), ([], True), "calls down")

up = {HIGH: function("ngx_kexec_high"), LOW: function("ngx_kexec_low", "    ngx_kexec_high();")}
said = "%s calls up: ngx_kexec_high() of %s" % (LOW, HIGH)

is_(rooms(up), ([said], False), "a call up")
is_(rooms(up, "# known\n\n" + call), ([], True), "a call up that is allowed")
is_(rooms({HIGH: high, LOW: low}, call),
    (["allowed, but not found any more, take it from the list: " + call.strip()], False), "one that is there no more")

up[LOW] = function("ngx_kexec_low", "    ev->handler = ngx_kexec_high;\n    ngx_kexec_high();")
is_(rooms(up), ([said + ", 2 times"], False), "an address taken")

up[LOW] = "\n\nstatic ngx_kexec_t  list[] = {\n    { ngx_kexec_high },\n};\n"
is_(rooms(up), ([said], False), "a table")

up[LOW] = function("ngx_kexec_low", "    /* ngx_kexec_high(), below\n     ngx_kexec_high() */ f(\"ngx_kexec_high()\", '\"');")
is_(rooms(up), ([], True), "comments and strings are no calls")

up[LOW] = "static void ngx_kexec_high(void);\n" + function("ngx_kexec_low", "    ngx_kexec_high();") \
    + function("ngx_kexec_high", kind="static void")
is_(rooms(up), ([], True), "a static function of that name")

up[LOW] = low
up["base/ngx_kexec_inline.h"] = "void ngx_kexec_low(void);\n" \
    + function("ngx_kexec_inline", "    ngx_kexec_high();", "static ngx_inline void")
is_(rooms(up), (["base/ngx_kexec_inline.h calls up: ngx_kexec_high() of " + HIGH,
                 "ngx_kexec_low() of %s is declared in base/ngx_kexec_inline.h, of another room" % LOW], False),
    "a header's inline function, and a prototype of another room's")

is_(rooms({"api/ngx_kexec_high.h": "", LOW: "#include <ngx_kexec_high.h>\n"}),
    (["%s includes api/ngx_kexec_high.h of a room above" % LOW], False), "an include up")

three = ring("zone", ["a", "b", "c"])
four = ring("zone", ["a", "b", "c", "d"])
listed = "circle " + " ".join(sorted(four)) + "\n"

is_(rooms(three), ([], True), "a circle of three")
is_(rooms(four), (["4 files call each other in a circle: " + " ".join(sorted(four))], False), "one of four")
is_(rooms(four, listed), ([], True), "one of four that is allowed")
is_(rooms(three, listed), (["the circle of 4 files that is allowed is not there now: " + " ".join(sorted(four))], False),
    "one that is there no more")

five = dict(four, **{"zone/ngx_kexec_e.c": function("ngx_kexec_e", "    ngx_kexec_a();")})
five["zone/ngx_kexec_c.c"] += function("ngx_kexec_more", "    ngx_kexec_e();")
listed = "circle " + " ".join(sorted(five)) + "\n"
is_(rooms(five, listed), ([], True), "one of five")
five["zone/ngx_kexec_e.c"] = function("ngx_kexec_e")
is_(rooms(five, listed)[0],
    ["4 files call each other in a circle: " + " ".join(sorted(four)),
     "the circle of 5 files that is allowed is smaller now: " + " ".join(sorted(five))], "one that shrank")

is_(rooms({LOW: function("ngx_kexec_low", "\n" * 95)}), ([], True), "a function of 100 lines")
is_(rooms({LOW: function("ngx_kexec_low", "\n" * 96, "static void")}),
    (["ngx_kexec_low() of %s has 101 lines, over 100" % LOW], False), "of 101")

eight = "int a, int b, int c, int d, int e, int f, int g,\n    void (*h)(int i, int j)"
is_(rooms({LOW: function("ngx_kexec_low", parameters=eight)}), ([], True), "8 parameters")
is_(rooms({LOW: function("ngx_kexec_low", parameters=eight + ", int k")}),
    (["ngx_kexec_low() of %s has 9 parameters, more than 8" % LOW], False), "9 parameters")

is_(rooms({"attic/ngx_kexec_low.c": low}), (["attic/ngx_kexec_low.c is in a room that tools/rooms does not know"], False),
    "an unknown room")
is_(rooms({LOW: low, "api/ngx_kexec_low.c": ""}),
    (["api/ngx_kexec_low.c and %s have the same name" % LOW], False), "a name twice")

with open(os.path.join(ROOT, "config")) as f:
    built = set(re.findall(r"ngx_kexec_module/(\w+)", f.read()))
is_(built, {name for name in os.listdir(os.path.join(ROOT, "ngx_kexec_module")) if "." not in name}, "config has all rooms")

run = subprocess.run([TOOL], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
for line in run.stdout.splitlines():
    print("# " + line)
ok(run.returncode == 0, "the module's own sources")

done_testing()
