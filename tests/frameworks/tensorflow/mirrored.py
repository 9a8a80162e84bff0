"""One worker of a MultiWorkerMirroredStrategy. TF_CONFIG says which worker.

Reduces arrays of several sizes over all workers, and checks the sums. Prints
the plugin's description, and a digest of the sums of random numbers. If
PENSTOCK_TEST_FAULTS names a folder, the workers then reduce in conflicting
orders, cancel a step, let one time out, and reduce again by another strategy. At
last, all workers but the first end. The first one reduces once more, and prints
the error.
"""

import hashlib
import json
import os
import pathlib
import threading
import time
import traceback

import numpy as np
import penstock_tensorflow
import tensorflow as tf

SIZES = [1, 1000, 1 << 16, 1 << 20]


def make_strategy(**options):
    ring = tf.distribute.experimental.CommunicationImplementation.RING
    return tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(
            implementation=ring, **options))


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


def check_conflicting_orders(strategy, index):
    """The first worker starts both reductions at once, `second` before `first`.
    The other workers call one after the other."""
    first, second = make_reduce(strategy), make_reduce(strategy)
    workers = strategy.num_replicas_in_sync
    for reduce in (first, second):  # traces them in one order
        reduce([tf.ones(10)])
    totals = []
    def call(reduce):
        totals.append(float(reduce([tf.ones(10)])[0][0]))
    if index > 0:
        call(first)
        call(second)
    else:
        threads = [threading.Thread(target=call, args=(reduce,))
                   for reduce in (second, first)]
        for thread in threads:
            thread.start()
            time.sleep(0.2)
        for thread in threads:
            thread.join()
    assert totals == [workers, workers], totals


def check_cancelled_step(strategy, index):
    """All workers cancel a step, while the first one waits in its all_reduce.
    The next step gives its own sum."""
    fails = False
    def check():
        if not fails:
            return 0.0
        time.sleep(0.5 if index == 0 else 0)
        raise ValueError("a step that fails")
    @tf.function
    def step(values):
        def replica(part):
            checked = tf.py_function(check, [], tf.float32)
            checked.set_shape([])
            context = tf.distribute.get_replica_context()
            before = part + (0.0 if index == 0 else checked)
            total = context.all_reduce(tf.distribute.ReduceOp.SUM, before)
            return total + checked
        return strategy.run(replica, args=(values,))
    step(tf.zeros([1000]))  # all workers learn of the all_reduce
    fails = True
    try:
        step(tf.fill([1000], 100.0))
        raise AssertionError("the step should have failed")
    except (tf.errors.OpError, ValueError) as error:
        assert "a step that fails" in str(error), error
    fails = False
    for value in range(3):
        total = step(tf.fill([1000], float(value))).numpy()
        np.testing.assert_array_equal(
            total, value * strategy.num_replicas_in_sync)


def make_another_strategy(name, index, workers, **options):
    """Waits until all workers have made the strategy. Otherwise TensorFlow's
    workers may ask one for a group that it then forgets."""
    strategy = make_strategy(**options)
    folder = pathlib.Path(os.environ["PENSTOCK_TEST_FAULTS"])
    (folder / f"{name}.{index}").touch()
    while len(list(folder.glob(f"{name}.*"))) < workers:
        time.sleep(0.05)
    return strategy


def check_timeout(index, workers):
    """Only the first worker calls an all_reduce. The others call theirs after
    the timeout. Nobody waits for ever."""
    reduce = make_reduce(make_another_strategy(
        "impatient", index, workers, timeout_seconds=5))
    reduce([tf.ones(10)])
    begun = time.monotonic()
    if index > 0:
        time.sleep(7)
    try:
        reduce([tf.ones(10)])
        raise AssertionError("the reduction should have failed")
    except tf.errors.OpError as error:
        if index == 0:
            assert isinstance(error, tf.errors.DeadlineExceededError), error
    assert time.monotonic() - begun < 30


def check_faults(strategy, index):
    check_conflicting_orders(strategy, index)
    check_cancelled_step(strategy, index)
    workers = strategy.num_replicas_in_sync
    check_timeout(index, workers)
    # Another strategy works even after TensorFlow has given up collectives.
    another = make_another_strategy("another", index, workers)
    check_sums(make_reduce(another), index, workers)
    check_sums(make_reduce(strategy), index, workers)
    print(json.dumps(penstock_tensorflow.describe()), flush=True)
    die_or_report(make_reduce(another), index)


def die_or_report(reduce, index):
    reduce([tf.ones(1000)])
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
    strategy = make_strategy()
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
    if "PENSTOCK_TEST_FAULTS" in os.environ:
        check_faults(strategy, index)
    os._exit(0)


try:
    main()
except BaseException:  # pylint: disable=broad-except
    traceback.print_exc()
    os._exit(1)  # destructors of TensorFlow's servers fail
