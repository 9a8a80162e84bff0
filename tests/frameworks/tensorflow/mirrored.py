"""One worker of a MultiWorkerMirroredStrategy. TF_CONFIG says which worker.

Reduces arrays of several sizes over all workers, and checks the sums. Prints
the plugin's description.
"""

import json
import os

import numpy as np
import penstock_tensorflow
import tensorflow as tf

SIZES = [1, 1000, 1 << 16, 1 << 20]


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(
            implementation=tf.distribute.experimental
            .CommunicationImplementation.RING))
    workers = strategy.num_replicas_in_sync
    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]

    @tf.function
    def reduce(value):
        def replica(part):
            return tf.distribute.get_replica_context().all_reduce(
                tf.distribute.ReduceOp.SUM,
                part * 1.0)  # an argument belongs to no device
        return strategy.run(replica, args=(value,))

    for step in range(3):
        for size in SIZES:
            mine = np.arange(size, dtype=np.float32) * (index + 1) + step
            total = reduce(tf.constant(mine)).numpy()
            expected = sum(
                np.arange(size, dtype=np.float32) * (i + 1) + step
                for i in range(workers))
            np.testing.assert_array_equal(total, expected)
    print(json.dumps(penstock_tensorflow.describe()), flush=True)
    os._exit(0)


main()
