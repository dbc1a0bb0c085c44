#!/usr/bin/python3
"""Environment variables are data: any value arrives, and what was there before is back afterwards."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from scenario import *

CONF = "kexec_interrupt_timeout 3s; kexec_keepalive 1s;"
VALUES = {
    "QUOTES": "'single' \"double\" '''three''' \"\"\"three\"\"\"",
    "NEWLINES": "one\ntwo\r\nthree\n",
    "BACKSLASH": "\\ \\n \\\\ \\x41 \\",
    "DOLLAR": "$HOME ${HOME} $(echo no) $$ $",
    "BACKTICK": "`echo no`",
    "EMOJI": "\U0001f600 \u00e9 \u2028 \u2029 \x7f \x01",
    "BRACES": "{} {x} %s %(x)s #{x}",
    "EMPTY": "",
    "LONG": "0123456789" * 10000,
}


@scenario(rounds=1, many=50)
def any_value(server, rounds):
    context = server.create_context()
    for i in range(rounds):
        for name, value in VALUES.items():
            stream = server.run("import os, json\nprint(json.dumps(os.environ[%r]))" % name, context_id=context,
                                env_vars={name: value})
            is_((told(stream), json.loads(stream.text() or "null") == value), ("ok", True), name)
            is_(server.value("os.environ.get(%r)" % name, context), None, "and it is gone")
        stream = server.run("import os, json\nprint(json.dumps({k: os.environ[k] for k in %r}))" % list(VALUES),
                            context_id=context, env_vars=VALUES)
        ok(json.loads(stream.text() or "null") == VALUES, "all at once", stream.all())
        for bad in ({"A": "nul\0"}, {"A=B": "x"}, {"": "x"}):
            answer = server.request("POST", "/execute", {"code": "1", "context_id": context, "env_vars": bad})
            is_(answer.status, 400, "%r: 400" % bad)


@scenario(rounds=1, many=50)
def any_value_bash(server, rounds):
    context = server.create_context(language="bash")
    for i in range(rounds):
        for name, value in VALUES.items():
            stream = server.run("printf '%%s' \"$%s\" | od -An -v -tx1" % name, context_id=context,
                                env_vars={name: value})
            is_((told(stream), bytes.fromhex(stream.text()) == value.encode()), ("ok", True), name)
        stream = server.run("echo \"${DOLLAR-unset}\"; export A=before", context_id=context)
        is_((told(stream), stream.text()), ("ok", "unset\n"), "all gone")
        stream = server.run("sh -c 'echo $A'", context_id=context, env_vars={"A": "now"})
        is_(stream.text(), "now\n", "a subprocess gets it")
        stream = server.run("sh -c 'echo $A'", context_id=context)
        is_(stream.text(), "before\n", "and what was there before is back")


@scenario(rounds=2, many=50)
def restored(server, rounds):
    """Prior values are back, however the code ends."""
    context = server.create_context()
    env = {"PRIOR": "now", "NEW": "now"}
    look = "import os\nos.environ.get('PRIOR'), os.environ.get('NEW')"
    during, after = "('now', 'now')", "('before', None)"
    for i in range(rounds):
        is_(told(server.run("import os, time\nos.environ['PRIOR'] = 'before'\nos.environ.pop('NEW', None)\nx = 7",
                            context_id=context)), "ok", "a prior value is set")
        is_(server.value(look, context, env_vars=env), during, "the code sees the request's values")
        is_(server.value(look, context), after, "the next one the prior ones")
        told(server.run("os.environ['PRIOR'] = os.environ['NEW'] = 'changed'", context_id=context, env_vars=env))
        is_(server.value(look, context), after, "after code that changes them")
        told(server.run("del os.environ['PRIOR'], os.environ['NEW']", context_id=context, env_vars=env))
        is_(server.value(look, context), after, "after code that deletes them")
        is_(told(server.run("1 / 0", context_id=context, env_vars=env)), "ZeroDivisionError", "an error")
        is_(server.value(look, context), after, "after an error")
        is_(told(server.run("this is no python", context_id=context, env_vars=env)), "SyntaxError", "a syntax error")
        is_(server.value(look, context), after, "after a syntax error")
        is_(told(server.run("import sys; sys.exit(1)", context_id=context, env_vars=env)), "SystemExit", "an exit")
        is_(server.value(look, context), after, "after an exit")
        is_(told(server.run("time.sleep(300)", context_id=context, env_vars=env, timeout=0.2)), "ExecutionTimeout",
            "a timeout")
        is_(server.value(look, context), after, "after a timeout")
        a = server.busy(context, env_vars=env)
        server.request("POST", "/contexts/%s/interrupt" % context)
        is_(told(a), "KeyboardInterrupt", "an interrupt")
        is_(server.value(look, context), after, "after an interrupt")
        a = server.busy(context, env_vars=env)
        b = server.queued(look, context)
        a.reset()
        is_((told(b), result(b)), ("ok", after), "after a client that left, for who waited")
        a = server.busy(context, env_vars={"PRIOR": "first"})
        b = server.queued(look, context, env_vars=env)
        a.close()
        is_((told(b), result(b)), ("ok", during), "and with variables of its own")
        is_(server.value(look, context), after, "after that")
        is_(server.value("x", context), "7", "the variables of the code are intact")


@scenario(rounds=1, many=50)
def unseen(server, rounds):
    """The user's code is as it was sent: lines, magics, indentation, history."""
    context = server.create_context()
    env = {"A": "from env"}

    def traceback_of(code, **more):
        error = next(e for e in server.run(code, context_id=context, **more).all() if e["type"] == "error")
        text = re.sub(r"\x1b\[[0-9;]*m", "", "%s" % error["traceback"])
        return re.sub(r"((Cell|Input) )?In ?\[\d+\]|ipykernel_\d+/\d+", "", text)

    for i in range(rounds):
        code = "# one\n\ndef f():\n    raise ValueError('here')\n\nf()\n"
        plain, with_env = traceback_of(code), traceback_of(code, env_vars=env)
        is_(with_env, plain, "a traceback is the same with and without variables")
        like(with_env, r"(?m)^-+> 4 +raise", "and has the user's own line numbers")
        stream = server.run("%%bash\necho \"$A\"", context_id=context, env_vars=env)
        is_((told(stream), stream.text()), ("ok", "from env\n"), "a %%bash cell")
        stream = server.run("%%time\nprint('timed')", context_id=context, env_vars=env)
        ok(told(stream) == "ok" and stream.text().startswith("timed\n"), "a %%time cell", stream.all())
        stream = server.run("    import os\n    print(os.environ['A'])\n", context_id=context, env_vars=env)
        is_((told(stream), stream.text()), ("ok", "from env\n"), "indented code")
        stream = server.run("!echo $A", context_id=context, env_vars=env)
        is_((told(stream), stream.text().replace("\r\n", "\n")), ("ok", "from env\n"), "a shell line")
        stream = server.run("from __future__ import annotations\n'future'", context_id=context, env_vars=env)
        is_((told(stream), result(stream)), ("ok", "future"), "a __future__ import")
        stream = server.run("# -*- coding: utf-8 -*-\nawait __import__('asyncio').sleep(0, 'awaited')",
                            context_id=context, env_vars=env)
        is_((told(stream), result(stream)), ("ok", "awaited"), "await at the top level")
        server.run("40 + 2", context_id=context, env_vars=env)
        is_(server.value("_", context, env_vars=env), "42", "_ is the last result")
        counts = [server.run("1", context_id=context, **more).all()[0]["execution_count"]
                  for more in ({}, {"env_vars": env}, {})]
        is_([n - counts[0] for n in counts], [0, 1, 2], "the executions are counted as sent")
        server.run("before = set(globals())", context_id=context)
        server.run("1", context_id=context, env_vars=env)
        names = server.value("sorted(n for n in set(globals()) - before if n[:1] != '_' and n != 'before')", context)
        is_(names, "[]", "no name is left behind")


@scenario(rounds=1, many=20)
def new_kernel(server, rounds):
    """Who waited while the kernel died gets its variables in the new one; a restart forgets the prior ones."""
    context = server.create_context()
    look = "import os\nos.environ.get('PRIOR'), os.environ.get('NEW')"
    for i in range(rounds):
        told(server.run("import os\nos.environ['PRIOR'] = 'before'", context_id=context))
        gate = server.gate()
        a = server.busy(context, gate.code + "os.kill(os.getpid(), 9)", env_vars={"PRIOR": "first"})
        b = server.queued(look, context, env_vars={"NEW": "now"})
        gate.open()
        is_(told(a), "KernelDied", "the kernel dies")
        is_((told(b), result(b)), ("ok", "(None, 'now')"), "who waited has its variables in the new one")
        is_(server.value(look, context), "(None, None)", "and they are gone again")
        a = server.busy(context, env_vars={"PRIOR": "first"})
        is_(server.request("POST", "/contexts/%s/restart" % context).status, 200, "a restart")
        is_(told(a), "ContextRestarted", "is told")
        is_(server.value(look, context, env_vars={"NEW": "now"}), "(None, 'now')", "variables in the new kernel")
        is_(server.value(look, context), "(None, None)", "and they are gone again")


main(lambda workers: Server(workers, CONF), quick=(4,))
