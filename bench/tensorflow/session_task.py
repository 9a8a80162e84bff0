"""One task of a benchmark: a parameter server, or the worker that measures.

Its argument is JSON: cluster, job, protocol. It writes "ready". Then a worker
takes one measurement a line, as JSON: op ("pull" or "push"), shapes, seconds;
and writes the times of its steps in milliseconds, as JSON. "describe" writes
what the plugin has to say. The end of the input ends the process.
"""

import json
import os
import sys
import time

import penstock_tensorflow
import tensorflow as tf

tf1 = tf.compat.v1


class Step:
    """All of a model's variables, from the parameter server or to it."""

    def __init__(self, server, op, shapes):
        graph = tf1.Graph()
        with graph.as_default():
            theirs = self._variables("/job:ps/task:0", shapes)
            ours = self._variables("/job:worker/task:0", shapes)
            operations = []
            for there, here in zip(theirs, ours):
                if op == "pull":
                    with tf1.device("/job:worker/task:0"):
                        # Has the tensor, and does nothing with it.
                        with tf1.control_dependencies(
                                [tf1.identity(there.read_value())]):
                            operations.append(tf1.no_op())
                else:
                    with tf1.device("/job:worker/task:0"):
                        value = here.read_value()
                    with tf1.device("/job:ps/task:0"):
                        operations.append(
                            there.assign(value, read_value=False))
            self._step = tf1.group(*operations)
            initialize = tf1.global_variables_initializer()
        config = tf1.ConfigProto()
        # Else what does nothing is left out, and with it what it would move.
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        self._session = tf1.Session(server.target, graph=graph, config=config)
        self._session.run(initialize)
        for _ in range(3):
            self._session.run(self._step)

    @staticmethod
    def _variables(device, shapes):
        with tf1.device(device):
            return [
                tf1.Variable(tf1.ones(shape), use_resource=True)
                for shape in shapes
            ]

    def close(self):
        self._session.close()

    def measure(self, seconds):
        times = []
        end = time.perf_counter() + seconds
        while True:
            begun = time.perf_counter()
            self._session.run(self._step)
            now = time.perf_counter()
            times.append((now - begun) * 1e3)
            if now > end:
                return times


def main():
    spec = json.loads(sys.argv[1])
    tf1.disable_eager_execution()
    server = tf.distribute.Server(
        spec["cluster"], spec["job"], 0, protocol=spec["protocol"])
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "describe":
            print(json.dumps(penstock_tensorflow.describe()), flush=True)
            continue
        request = json.loads(line)
        step = Step(server, request["op"], request["shapes"])
        print(json.dumps(step.measure(request["seconds"])), flush=True)
        step.close()
    os._exit(0)  # TensorFlow's servers are not made to be destroyed


main()
