#!/usr/bin/python3
"""Follows the README's "Five minutes" as a new user would: its commands, in a new folder, with other ports.

    t/five_minutes.py [--show]

--show only prints the commands."""

import os
import re
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SECTION = "Five minutes"
PORT = 49999                            # the README's
NOT_A_NEWCOMERS = ("RUN_DIR", "BUILD_DIR", "MODULE", "MAKEFLAGS", "MAKELEVEL")


def commands():
    """All that is indented in the section."""
    with open(os.path.join(TOP, "README.md")) as f:
        section = re.search(r"^## %s$(.*?)^## " % SECTION, f.read(), re.M | re.S)[1]
    return "\n".join(line[4:] for line in section.split("\n") if line.startswith("    ") or not line)


def is_there(package):
    """As a package, or as a command that came by another way."""
    return shutil.which(package) or subprocess.run(["dpkg", "-s", package], stdout=subprocess.DEVNULL,
                                                   stderr=subprocess.DEVNULL).returncode == 0


def without_installing(script):
    """What is there already is not installed again: a test changes nothing on the machine without need."""
    lines = []
    for line in script.split("\n"):
        _, found, packages = line.partition("apt-get install -y ")
        if not found or not all(is_there(package) for package in shlex.split(packages)):
            lines.append(line)
    return "\n".join(lines)


def free_ports(n):
    """Not of those that the kernel gives to clients; all different."""
    sockets, port = [], 20000 + os.getpid() % 5000
    while len(sockets) < n:
        port += 1
        s = socket.socket()
        try:
            s.bind(("127.0.0.1", port))
            sockets.append(s)
        except OSError:
            s.close()
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def check_png(path):
    with open(path, "rb") as f:
        data = f.read()
    width, height = struct.unpack(">II", data[16:24])
    whole = data.startswith(b"\x89PNG\r\n\x1a\n") and data.endswith(b"IEND\xaeB`\x82")
    print("# %s: %d bytes, %dx%d" % (os.path.basename(path), len(data), width, height))
    return whole and width > 100 and height > 100


def main():
    script = commands()
    if sys.argv[1:] == ["--show"]:
        print(script)
        return 0
    port, jupyter_port = free_ports(2)
    folder = tempfile.mkdtemp(prefix="kexec-five-minutes-")
    config = os.path.join(folder, "gitconfig")
    with open(config, "w") as f:        # whoever owns the repository
        f.write("[safe]\n\tdirectory = *\n")
    env = {name: value for name, value in os.environ.items() if name not in NOT_A_NEWCOMERS}
    env.update(URL=TOP, GIT_CONFIG_GLOBAL=config, PORT=str(port), JUPYTER_PORT=str(jupyter_port),
               E2B_SANDBOX_URL="http://localhost:%d" % port)
    script = "set -exo pipefail\n" + without_installing(script).replace("localhost:%d" % PORT, "localhost:%d" % port)
    clone = os.path.join(folder, "ngx_kexec_module")
    try:
        status = subprocess.run(["bash", "-c", script], cwd=folder, env=env).returncode
        plots = [check_png(os.path.join(clone, "run", name)) for name in ("curl.png", "sdk.png")] if not status else []
    finally:
        if os.path.isdir(clone):
            subprocess.run(["make", "-s", "stop"], cwd=clone, env=env)
    good = len(plots) == 2 and all(plots)
    if good:
        shutil.rmtree(folder)
    else:
        print("# status %d, see %s" % (status, folder))
    print("five_minutes: %s" % ("1 passed, 0 failed" if good else "0 passed, 1 failed"))
    return 0 if good else 1


sys.exit(main())
