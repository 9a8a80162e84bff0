"""A process of peers.py with TensorFlow's ParameterServerStrategy.

usage: peer_tensorflow.py ELEMENTS, with TF_CONFIG set; the chief measures.

A pull reads the variable at the worker. A push subtracts a tensor that the
worker has filled. A step subtracts the variable that the worker has read and
scaled.
"""

import json
import os
import sys
import time

import tensorflow as tf

RATE = 1 / 1024


def measure(elements):
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver())
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        variable = tf.Variable(tf.zeros([elements]))

    @tf.function
    def pull():
        return variable.read_value()[0]

    @tf.function
    def push():
        variable.assign_sub(tf.fill([elements], RATE), read_value=False)

    @tf.function
    def step():
        variable.assign_sub(RATE * variable.read_value(), read_value=False)

    steps = {"pull": pull, "push": push, "step": step}
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        seconds = []
        for _ in range(request["count"]):
            begun = time.perf_counter()
            coordinator.schedule(steps[request["op"]])
            coordinator.join()
            seconds.append(time.perf_counter() - begun)
        print(json.dumps(seconds), flush=True)


def main():
    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    if task["type"] == "chief":
        measure(int(sys.argv[1]))
    else:
        server = tf.distribute.Server(config["cluster"], task["type"],
                                      task["index"], protocol="grpc")
        assert server
        sys.stdin.read()
    os._exit(0)  # destructors of TensorFlow's servers fail


main()
