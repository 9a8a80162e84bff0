"""Sums over two workers: all_reduce of a MultiWorkerMirroredStrategy. Both take
the same steps, and the first one's times count."""

import serve
import tensorflow as tf


def make_step(strategy, shapes):
    values = [tf.ones(shape) for shape in shapes]

    @tf.function
    def reduce():
        def replica():
            # Of a device; the captured tensors are of none.
            return tf.distribute.get_replica_context().all_reduce(
                tf.distribute.ReduceOp.SUM, [value * 1.0 for value in values])
        sums = strategy.run(replica)
        with tf.control_dependencies(sums):
            return tf.constant(0)  # so that none leaves the runtime

    return lambda: reduce().numpy()


def main():
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation
        .RING)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=options)
    serve.measure(lambda _, shapes: make_step(strategy, shapes))


main()
