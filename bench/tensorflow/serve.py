"""Serves the benchmark's requests: code that all tasks share.

A task has one argument, JSON with cluster, job, index and protocol. The task
writes "ready", as JSON. A measuring task then reads one request per line (op,
shapes, steps), and answers with the steps' times in milliseconds. The end of
the input ends the process.
"""

import json
import os
import sys
import time

import penstock_tensorflow


def write(answer):
    print(json.dumps(answer), flush=True)


def measure(make_step):
    """Answers requests. `make_step(op, shapes)` returns a function that makes a
    step. The function is kept until a "forget" request."""
    write("ready")
    steps = {}
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "describe":
            write(penstock_tensorflow.describe())
            continue
        if request["op"] == "forget":
            steps.clear()
            write("forgotten")
            continue
        key = line_of(request)
        if key not in steps:
            steps[key] = make_step(request["op"], request["shapes"])
            for _ in range(3):
                steps[key]()
        write([milliseconds(steps[key]) for _ in range(request["steps"])])
    os._exit(0)  # destructors of TensorFlow's servers fail


def line_of(request):
    return json.dumps([request["op"], request["shapes"]])


def milliseconds(step):
    begun = time.perf_counter()
    step()
    return (time.perf_counter() - begun) * 1e3


def wait_for_the_end():
    """Serves as a task that does not measure. Waits for the end of the input.
    """
    write("ready")
    sys.stdin.read()
    os._exit(0)
