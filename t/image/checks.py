"""What the image promises, one function a subject, in the order in which they run."""

import filecmp
import json
import os
import shutil
import signal
import subprocess
import time
import zipfile

from container import JUPYTER, JUPYTER_PORT, NGINX, PORT
from kexec_test import ROOT, diag, is_, isnt, like, ok, port_answers, request, wait_until, within

# For each language, code that prints where it is and, on stderr, as whom, then has 42 as its result; the result's text;
# code that fails, and the name of the error.

LANGUAGES = {
    "python": ("import getpass, os, sys\nprint(os.getcwd())\nprint(getpass.getuser(), file=sys.stderr)\n6 * 7",
               "42", "1 / 0", "ZeroDivisionError"),
    "javascript": ("console.log(process.cwd()); console.error(require('os').userInfo().username); 6 * 7",
                   "42", "undefined.x", "TypeError"),
    "typescript": ("enum E { A = 6 }\nconst n: number = 7; console.log(process.cwd());\n"
                   "console.error(require('os').userInfo().username); E.A * n",
                   "42", "const s: string = null; s.length", "TypeError"),
    "r": ("cat(getwd(), '\\n', sep = ''); message(Sys.info()[['effective_user']]); 6 * 7",
          "[1] 42", "stop('no')", "ERROR"),
    "bash": ("pwd; id -un >&2", None, "false", "ExitError"),
}


def result(stream):
    return next((event for event in stream.all() if event["type"] == "result"), {})


def ended(stream):
    return stream.ended == "complete" and stream.types()[-1:] == ["end_of_execution"]


def languages(container):
    """Every language: stdout, stderr, result, error, the working directory and the user."""
    for language, (code, text, wrong, name) in LANGUAGES.items():
        stream = container.run(code, language=language)
        is_(stream.text("stdout"), "/home/user\n", language + ": stdout, and the working directory")
        is_(stream.text("stderr").rstrip(), "user", language + ": stderr, and the user")
        is_(result(stream).get("text"), text, language + ": result")
        ok(ended(stream), language + ": the end", stream.all())
        is_(container.run(wrong, language=language).error(), name, language + ": error")
    is_(result(container.run("import os; os.environ['E2B_TEST_VARIABLE']")).get("text"), "true",
        "location.conf is included")
    answer = request(PORT, "POST", "/contexts", {"language": "none"})
    is_(answer.body.decode().rpartition(": ")[2], "bash, ir, javascript, python, python3, R, typescript",
        "these languages and no others, by language and by name")


def libraries(container):
    """The libraries that belong in, and pip."""
    for code in ("import numpy, PIL\nimport pandas as pd\npd.DataFrame({'a': [1, 2]}).a.sum()",
                 "import path from 'node:path'; path.sep"):
        stream = container.run(code, language="javascript" if "from 'node" in code else "python")
        ok(result(stream) and not stream.error(), code.replace("\n", "; "), stream.all())
    plot = container.run("import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])\nplt.show()")
    diag("the first plot: %.2f s" % (plot.finished_at - plot.sent_at))
    like(result(plot).get("png"), "^iVBOR", "matplotlib plots")
    ok(not plot.text("stderr"), "and says nothing else", plot.text("stderr"))
    plot = container.run("plot(1:3)", language="r")
    like(result(plot).get("png"), "^iVBOR", "R plots")
    with zipfile.ZipFile(os.path.join(container.root, "tmp/kexec_wheel-1-py3-none-any.whl"), "w") as wheel:
        info = "kexec_wheel-1.dist-info/"
        wheel.writestr("kexec_wheel.py", "answer = 42")
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: kexec_wheel\nVersion: 1\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(info + "RECORD", "")
    stream = container.run("%pip install -q --no-index /tmp/kexec_wheel-1-py3-none-any.whl\n"
                           "import kexec_wheel\nkexec_wheel.answer")
    is_(result(stream).get("text"), "42", "pip installs for the kernel that runs")


def output(container):
    """No output is dropped, however fast it comes."""
    stream = container.run("for i in range(20000): print(i, flush=True)")
    is_(stream.text(), "".join("%d\n" % i for i in range(20000)), "20000 flushed lines, complete and in order")
    ok(ended(stream), "and the end")


def access(container):
    """Who may do what."""
    listening = container.listening()
    is_(listening.pop(PORT, None), "00000000", "nginx listens everywhere")
    is_(set(listening.values()), {"0100007F"}, "all else on loopback alone")
    is_(request(JUPYTER_PORT, "GET", "/api/kernels").status, 403, "Jupyter wants its token")
    is_(container.sh("stat -c '%A %U' /run/kexec/token").stdout, "-r-------- user\n", "which is its user's alone")
    token = container.sh("cat /run/kexec/token").stdout
    like(token, "^[0-9a-f]{48}$", "and not empty")
    ok(not any(token in command for _, _, command in container.processes()), "the token is in no command line")
    env = container.run("env", language="bash").text()
    ok(token not in env and "PATH=" in env, "nor in the kernels' environment", env)
    users = {command.split()[0].rstrip(":"): uid for _, uid, command in container.processes() if "worker" in command}
    is_(users, {"nginx": 33}, "nginx's worker is www-data")
    is_({uid for pid, uid, command in container.processes() if "jupyter_server" in command}, {1000}, "Jupyter is user")
    is_(container.run("cat /proc/1/comm; ls ~", language="bash").text(), "s6-svscan\n", "the user's home is empty")


def left_over(container):
    """Nothing of the building is in the image."""
    is_(container.sh("find /run/secrets /var/lib/apt/lists /root/.npm /root/.npmrc /src -type f 2> /dev/null").stdout,
        "", "no secrets, package lists, caches, sources")
    sources = container.sh("cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null").stdout
    mirrors = [subprocess.check_output([os.path.join(ROOT, "tools", "mirror.sh"), *what], text=True).strip()
               for what in ([], ["security"])]
    is_({line.split()[1].rstrip("/") for line in sources.splitlines() if line.startswith("URIs:")},
        {mirror.rstrip("/") for mirror in mirrors if mirror}, "the base image's mirrors and no others")


def health(container):
    """HEALTHCHECK, as it stands in the image."""
    kind, command = container.config["Healthcheck"]["Test"]
    is_(kind, "CMD-SHELL", "there is one")
    is_(container.sh(command).returncode, 0, "it finds the server healthy")
    nginx = container.nginx()
    jupyter = container.jupyter()
    os.kill(jupyter, signal.SIGSTOP)
    os.kill(container.pid("nginx: worker"), signal.SIGSTOP)
    isnt(container.sh("timeout 1 sh -c '%s'" % command.replace("'", "'\\''")).returncode, 0, "and one that hangs not")
    os.kill(container.pid("nginx: worker"), signal.SIGCONT)
    os.kill(jupyter, signal.SIGCONT)
    is_((container.nginx(), container.jupyter()), (nginx, jupyter), "nothing was restarted")


def install_sdk():
    """What t/sdk/run would do."""
    folder = os.path.join(ROOT, "t/sdk")
    lock, installed = os.path.join(folder, "package-lock.json"), os.path.join(folder, "node_modules/installed")
    if not os.path.exists(lock) or os.path.exists(installed) and filecmp.cmp(lock, installed, shallow=False):
        return
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], cwd=folder,
                   check=True, stdout=subprocess.DEVNULL)
    shutil.copyfile(lock, installed)


def sdk(container):
    """The published SDK as a client."""
    run("t/sdk/run", "--url", "http://127.0.0.1:%d" % PORT)


def golden(container):
    """What the reference server answered on the same release of Debian."""
    run("t/golden/run", "t/golden/debian13.jsonl", "--url", "http://127.0.0.1:%d" % PORT)


def run(*command):
    if not os.path.exists(os.path.join(ROOT, command[0])):
        return
    started = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    diag(done.stdout.strip())
    is_(done.returncode, 0, "%s, in %.0f s" % (command[0], time.monotonic() - started))


def jupyter_dies(container):
    """Jupyter alone is killed: it comes back, its kernels don't live on, nginx stays."""
    nginx, jupyter, kernels = container.nginx(), container.jupyter(), container.kernels()
    busy = [container.execute("echo x; sleep 1000 & sleep 1000", language="bash"),
            container.execute("cat('x\\n'); Sys.sleep(1000)", language="r")]
    for stream in busy:
        stream.wait_for("stdout")
    kernels |= container.kernels()
    ok(len(kernels) >= len(LANGUAGES) + 2, "kernels and what they started", kernels)
    os.kill(jupyter, signal.SIGKILL)
    killed = time.monotonic()
    for stream in busy:
        stream.finish()
        ok(ended(stream) and stream.error() in ("JupyterUnavailable", "KernelDied"), "who ran code is told",
           stream.all())
    wait_until(lambda: container.pids(JUPYTER)[:1] not in ([], [jupyter]), 10, "another Jupyter")
    wait_until(lambda: port_answers(JUPYTER_PORT), 30, "its port")
    for language in LANGUAGES:
        is_(container.run("", language=language).error(), None, language + " has another kernel")
    works_again(container, killed)
    is_(kernels & {pid for pid, _, _ in container.processes()}, set(), "no old kernel lives")
    is_(container.nginx(), nginx, "nginx is the same process")


def nginx_dies(container):
    """nginx alone is killed: it comes back with all contexts, Jupyter stays."""
    is_(container.run("x = 'kept'").error(), None, "a variable is set")
    nginx, jupyter, contexts = container.nginx(), container.jupyter(), request(PORT, "GET", "/contexts").json()
    os.kill(nginx, signal.SIGKILL)
    killed = time.monotonic()
    wait_until(lambda: container.pids(NGINX)[:1] not in ([], [nginx]), 10, "another nginx")
    container.wait_healthy()
    is_(request(PORT, "GET", "/contexts").json(), contexts, "the contexts are there")
    is_(result(container.run("x")).get("text"), "kept", "with their variables")
    works_again(container, killed)
    is_(container.jupyter(), jupyter, "Jupyter is the same process")


def works_again(container, since):
    for language, (code, text, _, _) in LANGUAGES.items():
        stream = container.run(code, language=language)
        is_((stream.text(), result(stream).get("text"), stream.error()), ("/home/user\n", text, None),
            language + " works again")
    diag("all of them %.2f s after the kill" % (time.monotonic() - since))


def ends(container):
    """SIGTERM ends all of it within 5 s, also under code that cannot be interrupted; it starts again, as it is told."""
    stubborn = container.execute("import signal, time\nsignal.signal(signal.SIGINT, lambda *_: None)\nprint('x')\n"
                                 "while True: time.sleep(1)")
    stubborn.wait_for("stdout")
    took, status = container.terminate()
    diag("ended after %.2f s" % took)
    within(took, 5, "in time")
    is_(status, 0, "in order")
    is_([p for p in container.processes() if p[0] not in (1, os.getpid())], [], "no process is left")
    stubborn.finish()
    diag("the client was told: %s" % json.dumps(stubborn.all()[2:]))
    logged = os.path.getsize(container.log)
    diag("healthy after %.2f s" % container.start(PORT=20500, JUPYTER_PORT=20501, WORKERS=2, ACCESS_LOG="/dev/null"))
    is_(result(container.run("6 * 7")).get("text"), "42", "it works again")
    is_({PORT, JUPYTER_PORT, 20500, 20501} & set(container.listening()), {20500, 20501}, "PORT and JUPYTER_PORT")
    is_(len(container.pids("nginx: worker")), 2, "WORKERS")
    with open(container.log) as log:
        log.seek(logged)
        like(log.read(), "^(?!.*GET /health).*Kernel started", "ACCESS_LOG")
    took, status = container.terminate()
    diag("ended after %.2f s" % took)
    is_((took < 5, status), (True, 0), "an idle one ends, too")


# The recordings know the contexts in the order in which they are made at first.

ALL = [languages, golden, libraries, output, access, left_over, health, sdk, jupyter_dies, nginx_dies, ends]
