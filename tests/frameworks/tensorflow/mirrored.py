"""One worker of a MultiWorkerMirroredStrategy. TF_CONFIG says which worker.

Reduces arrays of several sizes over all workers, and checks the sums. Prints
the plugin's description, and a digest of the sums of random numbers. If
PENSTOCK_TEST_DEATH is set, all workers but the first end then. The first one
reduces once more, and prints the error.
"""

import hashlib
import json
import os
import time
import traceback

import numpy as np
import penstock_tensorflow
import tensorflow as tf

SIZES = [1, 1000, 1 << 16, 1 << 20]


def make_reduce(strategy, operation=tf.distribute.ReduceOp.SUM):
    @tf.function
    def reduce(values):
        def replica(parts):
            context = tf.distribute.get_replica_context()
            # Makes one operation for each tensor, in no order. An argument
            # belongs to no device.
            return [context.all_reduce(operation, part + tf.zeros_like(part))
                    for part in parts]
        return strategy.run(replica, args=(values,))
    return reduce


def check_sums(reduce, index, workers):
    for step in range(3):
        for size in SIZES:
            mine = np.arange(size, dtype=np.float32) * (index + 1) + step
            total = reduce([tf.constant(mine)])[0].numpy()
            expected = sum(
                np.arange(size, dtype=np.float32) * (i + 1) + step
                for i in range(workers))
            np.testing.assert_array_equal(total, expected)


def check_types(reduce, index, workers):
    """Reduces tensors of all types at once."""
    types = [tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int32,
             tf.int64]
    values = [tf.cast(tf.fill([7, 300], index + number), kind)
              for number, kind in enumerate(types)]
    for number, total in enumerate(reduce(values)):
        expected = sum(range(workers)) + workers * number
        assert total.dtype == types[number], total.dtype
        np.testing.assert_array_equal(tf.cast(total, tf.float64), expected)


def digest(reduce, index):
    random = np.random.default_rng(index)
    totals = reduce([tf.constant(random.standard_normal(size, np.float32))
                     for size in SIZES])
    return hashlib.sha256(b"".join(t.numpy().tobytes() for t in totals))


def die_or_report(reduce, index):
    if index > 0:
        return
    begun = time.monotonic()
    try:
        while True:
            reduce([tf.ones(1000)])
    except tf.errors.OpError as error:
        print(json.dumps({"error": str(error),
                          "seconds": time.monotonic() - begun}), flush=True)


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(
            implementation=tf.distribute.experimental
            .CommunicationImplementation.RING))
    workers = strategy.num_replicas_in_sync
    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    reduce = make_reduce(strategy)
    check_sums(reduce, index, workers)
    check_types(reduce, index, workers)
    mean = make_reduce(strategy, tf.distribute.ReduceOp.MEAN)
    assert mean([tf.constant([float(index)])])[0] == (workers - 1) / 2
    result = digest(reduce, index).hexdigest()
    print(json.dumps(dict(penstock_tensorflow.describe(), digest=result)),
          flush=True)
    if "PENSTOCK_TEST_DEATH" in os.environ:
        die_or_report(reduce, index)
    os._exit(0)


try:
    main()
except BaseException:  # pylint: disable=broad-except
    traceback.print_exc()
    os._exit(1)  # destructors of TensorFlow's servers fail
