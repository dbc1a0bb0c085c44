#!/usr/bin/python3
"""Every event in every state of an execution: it ends within a bound and once, its code runs at most once, who waits is
served or told why not, and the context is usable afterwards."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from situations import *

def make_matrix(state):
    def matrix(server, rounds):
        jupyter = server.jupyter
        for i in range(rounds):
            server.fresh()
            situations = [Situation(server, state, event, waiting) for event in EVENTS for waiting in (False, True)
                          if not (event == "leave" and state not in WATCHED)]
            # what makes a state last; the same for all, so that each state has a process of its own
            if state == "linking":
                jupyter.set(channels={"delay": 0.7})
            if state == "barrier":
                jupyter.set(interrupt={"delay": 0.7})
            if state == "restarting":
                jupyter.set(restart={"delay": 0.7})
            problems = parallel([s.run for s in situations], 80)
            if rounds == 1 or problems:
                for event in EVENTS:
                    none([p for p in problems if p.startswith(event + " in ")], "%s in %s" % (event, state))
                none([p for p in problems if not any(p.startswith(e + " in ") for e in EVENTS)], "nothing else")
            jupyter.set(channels=None, interrupt=None, restart=None)
    matrix.__name__ = "matrix_" + state
    return matrix


for _state in STATES:
    scenario(many=20, location="kexec_ready_timeout 20s;")(make_matrix(_state))

main(Faulty, workers=(1,), jobs=10)
