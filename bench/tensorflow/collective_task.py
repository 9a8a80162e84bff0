"""Sums tensors of two workers by all_reduce of a MultiWorkerMirroredStrategy.
Both make the same steps. The first worker's times are the result."""

import serve
import tensorflow as tf


def make_step(strategy, shapes):
    values = [tf.ones(shape) for shape in shapes]

    @tf.function
    def reduce():
        def replica():
            # Multiply, because the captured tensors are not on a device, and
            # the product is.
            return tf.distribute.get_replica_context().all_reduce(
                tf.distribute.ReduceOp.SUM, [value * 1.0 for value in values])
        sums = strategy.run(replica)
        with tf.control_dependencies(sums):
            return tf.constant(0)  # keeps the sums out of Python

    return lambda: reduce().numpy()


def main():
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation
        .RING)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=options)
    serve.measure(lambda _, shapes: make_step(strategy, shapes))


main()
