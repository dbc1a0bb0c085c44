#!/usr/bin/python3
"""Negative controls of test_machine*: a machine is broken in one place after the other, and each time its test has to
find it, by the invariant that is named here.

    machine_control.py BUILD SRC COMPILER...        SRC: the folder machine/, COMPILER: with its options"""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS = "6000000"

NEXT = "an interrupt may reach the next one"
FLYING = "an interrupt is on its way when the slot goes on"
LIMIT = "timers alone do not end it"
WAITS = "nothing is waited for"
WORD = "an end without a word"

# what is broken: file, what stands there, what instead (lists where it takes more than one), by what it is found
BREAKS = [
    ("no barrier behind interrupts", "run", "if (m->interrupted || (m->code.reply", "if (0 && (m->code.reply", NEXT),
    ("the barrier's fence is sent ahead of an interrupt", "prepare", "if (!m->covers) {", "if (0) {", NEXT + "|" + FLYING),
    ("an interrupt without an answer is forgotten", "cancel", "    if (ev->n) {\n        m->unanswered = 0;\n\n    } else if (ev->connected) {",
     "    m->unanswered = 0;\n\n    if (ev->n == 0 && ev->connected) {", NEXT + "|" + FLYING),
    ("its answer is not waited for when the process died", "run", "    if (m->state == NGX_KEXEC_EX_BUSY) {\n"
     "        ngx_kexec_machine_leave(m);", "    if (m->state == NGX_KEXEC_EX_BUSY) {\n        ngx_kexec_machine_done(m);", FLYING),
    ("code that starts late goes without the barrier that was owed", "prepare", "    m->interrupts = 0;\n\n    ngx_kexec_machine_wait_not",
     "    ngx_kexec_machine_interrupts_none(m);\n\n    ngx_kexec_machine_wait_not", NEXT),
    ("code is interrupted that was not seen to start", "cancel",
     ["    case NGX_KEXEC_EX_BUSY:\n        return m->cancel", "    if (m->state == NGX_KEXEC_EX_SENT) {\n\n        /*\n         * The kernel may"],
     ["    case NGX_KEXEC_EX_SENT:\n    case NGX_KEXEC_EX_BUSY:\n        return m->cancel", "    if (0) {\n\n        /*\n         * The kernel may"],
     "an interrupt in SENT"),
    ("code is interrupted behind its idle", "cancel", "!m->over && !m->code.idle", "!m->over", "an interrupt after the code's end"),
    ("somebody else's cell is", "cancel", "if (m->state != NGX_KEXEC_EX_BUSY && m->foreign) {", "if (0) {",
     "somebody else's cell is interrupted"),
    ("code is sent again after a death", "run", "    m->cancel = NGX_KEXEC_CANCEL_CLIENT;\n    m->step", "    m->step",
     "code is sent again after a death"),
    ("nor when somebody restarts the context", "cancel", "        (void) ngx_kexec_machine_orphan(m);\n    }\n\n"
     "    ngx_kexec_machine_leave(m);", "        (void) ngx_kexec_machine_orphan(m);\n    }\n\n    ngx_kexec_machine_done(m);", FLYING),
    ("code that does not end has none", "cancel", "        if (m->cancel != NGX_KEXEC_CANCEL_INTERRUPT) {", "        if (0) {",
     LIMIT),
    ("an abort behind a reply has code sent again", "run", "&& !m->code.iopub && !m->code.reply && !m->code.idle;",
     "&& !m->code.iopub;", LIMIT + "|" + FLYING),
    ("the barrier has none", "cancel", "        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_BARRIER,\n"
     "                               NGX_KEXEC_BARRIER_TIME);", "        ;", LIMIT),
    ("a failed restart is not repeated where the process ends meanwhile", "process",
     "    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_STUCK);\n}",
     "    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_STUCK);\n    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_RESTART);\n}", WAITS),
    ("a queued one does not look any more", "", "    case NGX_KEXEC_ON_QUEUED:\n        ngx_kexec_machine_wait(m, NGX_KEXEC_WAIT_LOOK,\n"
     "                               NGX_KEXEC_RECHECK_TIME);", "    case NGX_KEXEC_ON_QUEUED:", WAITS),
    ("a link that was lost is not opened again", "prepare", "                           ngx_min(pause, NGX_KEXEC_CONNECT_TIME));\n",
     "                           600000000);\n", LIMIT),
    ("two calls at a time", "base", "if (m->call == NGX_KEXEC_CALL_NONE && m->reach) {", "if (m->reach) {", "two calls at a time"),
    ("a restart beside an interrupt", "cancel", "    ngx_kexec_machine_call_not(m);\n    ngx_kexec_machine_call(m, NGX_KEXEC_CALL_RESTART);",
     "    ngx_kexec_machine_call(m, NGX_KEXEC_CALL_RESTART);", "two calls at a time"),
    ("a stream ends twice", "base", "        m->viewer = 0;\n    }\n}", "    }\n}", "whether there is a client|a stream ends twice"),
    ("nobody is told that code was not started", "prepare", "        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_NOT_STARTED, 0);\n", "",
     WORD),
    ("nor that its end is not known", "run", "        ngx_kexec_machine_tell(m, NGX_KEXEC_SAY_LOST, 0);\n", "        ;\n", WORD),
    ("nor that the kernel died", "run", "    ngx_kexec_machine_tell(m, m->state == NGX_KEXEC_EX_BUSY\n"
     "                              ? NGX_KEXEC_SAY_DIED : NGX_KEXEC_SAY_DIED_SENT,\n                           0);\n", "", WORD),
    ("a kernel is used that was thrown away", "base", "    if (m->reach) {\n        m->reach = NGX_KEXEC_REACH_NOT;\n", "    if (m->reach) {\n",
     "whether there is a kernel|no kernel is thrown away|a call for no kernel|a link to no kernel"),
    ("a restart without an answer is repeated", "operation", "    if (status >= NGX_HTTP_INTERNAL_SERVER_ERROR\n        && m->raised++",
     "    if ((status == 0 || status >= NGX_HTTP_INTERNAL_SERVER_ERROR)\n        && m->raised++",
     "a call that Jupyter may still be at is repeated"),
    ("one that Jupyter raised at is, without end", "operation", "        && m->raised++ < NGX_KEXEC_RAISED_TIMES)", "        )",
     "a call is repeated for ever"),
    ("a refused deletion removes the context", "operation", "    ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_LOG, status);\n",
     "    ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_LOG, status);\n    if (!m->restart) {\n        ngx_kexec_op_deleted(m);\n        return;\n"
     "    }\n", "a context is removed that was not deleted"),
    ("a deletion leaves the record", "operation", "    ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_REMOVE, 0);\n", "", "a deletion is taken back"),
    ("a context is restarted that somebody deletes", "operation", "        if (m->restart) {\n            ngx_kexec_op_end(m, "
     "NGX_KEXEC_OP_END_DELETED);", "        if (m->restart && !m->facts.kernel) {\n            ngx_kexec_op_end(m, "
     "NGX_KEXEC_OP_END_DELETED);", "a context is restarted that is to be deleted"),
    ("a restart forgets that the process is another one", "operation", "    ngx_kexec_facts_new_process(&m->facts);\n", "",
     "the next one takes the kernel's new process for the old one"),
    ("nor that its kernel is gone", "operation", "        m->facts.kernel = 0;\n", "        ;\n", "whether the record has a kernel"),
    ("one that failed leaves the kernel as ready", "operation", "        m->facts.ready = 0;\n", "        ;\n",
     "the next one trusts a kernel that may have been restarted"),
    ("those who wait for a restart hear nothing", "operation", "        ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_ANSWER, end);\n", "        ;\n",
     "restarts that wait are not told how this one ended"),
    ("an operation ends when its client leaves", "operation", "        m->client = 0;\n        ngx_kexec_op_unwanted(m);\n",
     "        m->client = 0;\n        if (m->state == NGX_KEXEC_OP_CALLING) {\n            ngx_kexec_op_end(m, NGX_KEXEC_OP_END_LOST);\n        }\n",
     "the slot is given on while Jupyter is at it"),
    ("it does while it waits for the slot", "operation", "        ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_ABANDON, 0);\n",
     "        ngx_kexec_op_end(m, NGX_KEXEC_OP_END_LOST);\n", "an operation is given up that others felt"),
    ("a client that left is told", "operation", "    if (m->client) {\n        m->client = 0;\n", "    {\n",
     "a client is told twice, or that is not there"),
    ("a notice while Jupyter is called ends in a second call", "operation", "        ngx_kexec_op_failed(m);\n    }\n}\n",
     "        ngx_kexec_op_failed(m);\n\n    } else {\n        ngx_kexec_op_claim(m, ev);\n    }\n}\n",
     "two calls at a time"),
    ("a queued operation does not look any more", "operation", "        ngx_kexec_op_wait(m, NGX_KEXEC_OP_WAIT_LOOK, NGX_KEXEC_RECHECK_TIME);\n", "", WAITS),
    ("the pause has no end", "operation", "        ngx_kexec_op_wait(m, NGX_KEXEC_OP_WAIT_AGAIN, NGX_KEXEC_RAISED_TIME);\n", "", WAITS),
    ("a notice ends the pause", "operation", "        if (!ngx_kexec_op_waits(m, NGX_KEXEC_OP_WAIT_AGAIN)) {", "        if (1) {",
     "a call is repeated without a pause"),
    ("its worker's end is forgotten with the next state", "operation", "    m->waits &= 1 << NGX_KEXEC_OP_WAIT_SHUTDOWN;\n",
     "    m->waits = 0;\n", "a worker that ends leaves a client without a word"),
    ("the slot is kept", "operation", "    ngx_kexec_op_do(m, NGX_KEXEC_OP_DO_LEAVE, 0);\n", "",
     "an end that keeps the slot|a client is told before the slot is given on"),
]

# and what is found by a rule of the check, ngx_kexec_machine_check.c, behind an event
CHECKED = [
    ("a timer stays behind the state that it means something in", "base", "    m->waits &= ngx_kexec_machine_states[state].waits;\n", "",
     "(m->waits & ~state->waits) == 0"),
    ("the next try to open a link stays behind the link", "base", "        ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_CONNECT);\n", "",
     "waits(CONNECT) == reach(DOWN)"),
    ("a fence that is back is waited for", "base", "    m->fence.sent = 0;\n    m->links = 0;", "    m->links = 0;",
     "m->fence.sent == waits(FENCE)"),
    ("a new kernel has no limit", "prepare", "    if (!ngx_kexec_machine_waits(m, NGX_KEXEC_WAIT_READY)) {", "    if (0) {",
     "in(SESSION) without waits(READY)"),
    ("a new context's kernel is restarted as stuck", "cancel", "    if (m->conf.create) {\n\n        /* it goes", "    if (0) {\n\n        /* it goes",
     "m->conf.create without !m->started && !in(BARRIER) && !in(RESTARTING)"),
    ("an orphan is asked for while it is interrupted", "cancel", "    ngx_kexec_machine_wait_not(m, NGX_KEXEC_WAIT_ORPHAN);\n", "",
     "waits(ORPHAN) without m->recover && m->interrupts == 0"),
    ("code aborted behind interrupted code ends before the fence", "run", "    if (ngx_kexec_machine_before(m)) {\n\n        /* what held",
     "    if (0) {\n\n        /* what held", "m->recover without in(LINKING) || in(PROBING) || in(RESTARTING)"),
    ("variables are to be put back that were", "prepare", "        m->facts.owes_restore = 0;\n        m->env_set = 0;\n",
     "        m->facts.owes_restore = 0;\n",
     "m->env_set without m->facts.owes_restore"),
]


def mutate(entry, folder, source):
    """A copy of the machine in folder, broken.  What does not stand there any more, or None."""
    name, part, old, new, invariant = entry
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
    return None


def broken(number, build, source, compiler):
    name, part, old, new, invariant = (BREAKS + CHECKED)[number]
    if number >= len(BREAKS):
        invariant = re.escape(invariant)
        compiler = [*compiler, "-D", "NGX_KEXEC_TEST=1"]
    folder = os.path.join(build, "machine-%d" % number)
    missing = mutate((BREAKS + CHECKED)[number], folder, source)
    if missing:
        return missing
    test = "test_machine_operation" if part == "operation" else "test_machine"
    program = os.path.join(folder, test)
    files = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".c"))
    subprocess.run([compiler[0], "-I", folder, *compiler[1:], "-o", program, os.path.join(HERE, test + ".c"), *files, "-lcmocka"], check=True)
    said = subprocess.run([program, RUNS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    shutil.rmtree(folder)
    found = re.search(r"run (\d+), state (\w+): (.*)", said)
    if not found:
        return "is not found"
    if not re.fullmatch(invariant, found[3]):
        return "is found by \"%s\"" % found[3]
    print("found in run %s, in %s: %s (%s)" % (found[1], found[2], name, found[3]), flush=True)


def run(who, entries, find):
    """Calls find(NUMBER) for each entry, which returns why it was not found, or None.  Ends the program."""
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for entry, why in zip(entries, pool.map(find, range(len(entries)))):
            if why:
                failed += 1
                print("NOT FOUND: %s: %s" % (entry[0], why), flush=True)
    print("%s: %d of %d mutations found" % (who, len(entries) - failed, len(entries)))
    sys.exit(failed != 0)


def main():
    build, source, *compiler = sys.argv[1:]
    run("machine", BREAKS + CHECKED, lambda number: broken(number, build, source, compiler))


if __name__ == "__main__":
    main()
