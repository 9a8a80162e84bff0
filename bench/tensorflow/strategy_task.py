"""Makes training steps of a ParameterServerStrategy. Each worker reads all
variables, and subtracts tensors of the same size. The chief measures."""

import json
import sys

import serve
import tensorflow as tf


def make_step(strategy, coordinator, workers, shapes):
    with strategy.scope():
        variables = [tf.Variable(tf.ones(shape)) for shape in shapes]

    @tf.function
    def train():
        def replica():
            gradients = [0.01 * variable.read_value()
                         for variable in variables]
            for variable, gradient in zip(variables, gradients):
                variable.assign_sub(gradient, read_value=False)
        strategy.run(replica)

    def step():
        for _ in range(workers):
            coordinator.schedule(train)
        coordinator.join()

    return step


def main():
    spec = json.loads(sys.argv[1])
    if spec["job"] != "chief":
        server = tf.distribute.Server(spec["cluster"], spec["job"],
                                      spec["index"],
                                      protocol=spec["protocol"])
        assert server
        serve.wait_for_the_end()
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver())
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    workers = len(spec["cluster"]["worker"])
    serve.measure(lambda _, shapes: make_step(strategy, coordinator, workers,
                                              shapes))


main()
