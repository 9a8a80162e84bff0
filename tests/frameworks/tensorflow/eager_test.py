"""Tests eager execution on remote tasks: this process is the client of two
workers.

Runs twice. By default TensorFlow's client pushes tensors to the workers. With
TF_EAGER_REMOTE_USE_SEND_TENSOR_RPC=0 the worker fetches them, over Penstock.
"""

import os
import threading
import time
import unittest

import cluster
import numpy as np
import penstock_tensorflow
import tensorflow as tf

PROTOCOL = penstock_tensorflow.PROTOCOL
CLIENT = "localhost"  # the job, as TensorFlow calls it
WORKERS = ["/job:worker/task:0", "/job:worker/task:1"]
FETCHES = os.environ.get("TF_EAGER_REMOTE_USE_SEND_TENSOR_RPC") == "0"
SIZE = 1 << 20


def setUpModule():
    global CLUSTER, TASKS
    # The addresses of client and workers. An explicit address makes the
    # client's server start there. Otherwise TensorFlow gives the server
    # another port each time, and continues to serve at the first port.
    CLUSTER = cluster.addresses(localhost=1, worker=2)
    TASKS = [cluster.Task(CLUSTER, "worker", i, PROTOCOL) for i in range(2)]
    for task in TASKS:
        task.wait_until_ready()
    connect()


def tearDownModule():
    for task in TASKS:
        task.stop()


def connect():
    tf.config.experimental_connect_to_cluster(
        tf.train.ClusterSpec(CLUSTER), job_name=CLIENT, protocol=PROTOCOL)


def on(index):
    return tf.device(WORKERS[index])


def received(description, address):
    """Returns the bytes that a task has received from `address` by Penstock."""
    route = cluster.route_to(description, address)
    return route["bytes_received"] if route else 0


def received_by_worker(index):
    return received(TASKS[index].describe(), CLUSTER["worker"][1 - index])


def received_by_client(index):
    return received(penstock_tensorflow.describe(), CLUSTER["worker"][index])


class EagerTest(unittest.TestCase):
    def test_operations_run_there_and_results_come_by_penstock(self):
        before = received_by_client(0)
        value = np.arange(SIZE, dtype=np.float32)
        with on(0):
            doubled = tf.constant(value) * 2.0
        self.assertIn(WORKERS[0].replace("/task", "/replica:0/task"),
                      doubled.device)
        np.testing.assert_array_equal(doubled.numpy(), value * 2)
        self.assertGreaterEqual(received_by_client(0) - before, value.nbytes)
        route = cluster.route_to(penstock_tensorflow.describe(),
                                 CLUSTER["worker"][0])
        self.assertEqual(route["path"], "shm")
        self.assertEqual(route["grpc_calls"], 0)

    def test_what_the_client_sends_goes_as_the_setting_says(self):
        def sent():
            return received(TASKS[0].describe(), CLUSTER[CLIENT][0])

        before = sent()
        value = np.random.default_rng().random(SIZE)
        with tf.device("/job:localhost/task:0/device:CPU:0"):
            here = tf.constant(value)
        with on(0):
            there = tf.identity(here)
        np.testing.assert_array_equal(there.numpy(), value)
        if FETCHES:
            self.assertGreaterEqual(sent() - before, value.nbytes)
        else:
            self.assertLess(sent() - before, value.nbytes)

    def test_tensors_go_from_worker_to_worker(self):
        value = np.random.default_rng().random(SIZE)
        with on(0):
            first = tf.constant(value)
        with on(1):
            second = first + 1.0
        with on(0):
            third = second * 2.0
        np.testing.assert_array_equal(third.numpy(), (value + 1) * 2)

    def test_function_on_two_workers_exchanges_tensors(self):
        rounds = 5

        @tf.function
        def there_and_back(value, many):
            for _ in range(rounds):
                with on(1):
                    value = value + 1.0
                    many = [each * 2.0 for each in many]
                with on(0):
                    value = value * 2.0
                    many = [each + 1.0 for each in many]
            return value, many

        before = [received_by_worker(i) for i in range(2)]
        with on(0):
            value = tf.range(SIZE, dtype=tf.float32)
            many = [tf.fill([i], float(i)) for i in range(50)]
        result, results = there_and_back(value, many)
        expected = np.arange(SIZE, dtype=np.float32)
        for _ in range(rounds):
            expected = (expected + 1) * 2
        np.testing.assert_array_equal(result.numpy(), expected)
        for i, each in enumerate(results):
            number = float(i)
            for _ in range(rounds):
                number = number * 2 + 1
            np.testing.assert_array_equal(each.numpy(), np.full(i, number))
        for index in range(2):
            grown = received_by_worker(index) - before[index]
            self.assertGreaterEqual(grown, rounds * expected.nbytes)
            route = cluster.route_to(TASKS[index].describe(),
                                     CLUSTER["worker"][1 - index])
            self.assertEqual(route["path"], "shm")
            self.assertEqual(route["grpc_calls"], 0)

    def test_loop_and_branches_cross_tasks(self):
        @tf.function
        def count(limit):
            with on(0):
                total = tf.zeros([1000])
            for i in tf.range(limit):
                with on(1):
                    if i % 2 == 0:
                        part = tf.fill([1000], tf.cast(i, tf.float32))
                    else:
                        part = tf.zeros([1000])
                with on(0):
                    total = total + part
            return total

        np.testing.assert_array_equal(count(tf.constant(20)).numpy(),
                                      np.full(1000, 90.0))

    def test_functions_with_strings(self):
        @tf.function
        def shout(words, number):
            with on(1):
                loud = tf.strings.upper(words)
            with on(0):
                return tf.strings.join([loud, tf.strings.as_string(number)])

        words = [b"", b"short", b"x" * 300_000, bytes(range(128))]
        with on(0):
            there = tf.constant(words)
        self.assertEqual(shout(there, tf.constant(7)).numpy().tolist(),
                         [each.upper() + b"7" for each in words])

    def test_functions_with_resources_of_another_task(self):
        with on(0):
            variable = tf.Variable(tf.ones([SIZE]))
            table = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)

        @tf.function
        def use(keys):
            variable.assign_add(tf.ones([SIZE]))
            with on(1):
                total = tf.reduce_sum(variable.read_value() * 2.0)
            found = table.lookup(keys)
            with on(1):
                return total, found * 10

        for step in range(3):
            total, found = use(tf.constant(["b", "c"]))
            self.assertEqual(total.numpy(), SIZE * 2 * (step + 2))
            self.assertEqual(found.numpy().tolist(), [20, -10])

    def test_variables_on_workers(self):
        value = np.arange(SIZE, dtype=np.int64)
        with on(0):
            source = tf.Variable(value)
        with on(1):
            target = tf.Variable(tf.zeros([SIZE], tf.int64))
            target.assign(source)
        source.assign_add(tf.ones_like(value))
        np.testing.assert_array_equal(target.numpy(), value)
        np.testing.assert_array_equal(source.numpy(), value + 1)

    def test_variables_of_strings(self):
        words = [b"", b"one", b"y" * 100_000]
        with on(0):
            source = tf.Variable(words)
        with on(1):
            target = tf.Variable(tf.strings.join([source, "!"]))
        source.assign([b"1", b"2", b"3"])
        self.assertEqual(target.numpy().tolist(),
                         [each + b"!" for each in words])
        self.assertEqual(source.numpy().tolist(), [b"1", b"2", b"3"])

    def test_gradients_through_both_workers(self):
        with on(0):
            weights = tf.Variable(tf.ones([1000]))

        @tf.function
        def gradient():
            with tf.GradientTape() as tape:
                with on(1):
                    loss = tf.reduce_sum(weights ** 3)
            return tape.gradient(loss, weights)

        np.testing.assert_array_equal(gradient().numpy(), np.full(1000, 3.0))

    def test_errors_keep_their_codes(self):
        def clear_errors():
            """Clears old errors, so that the next operation does not report
            them again.

            An error reaches TensorFlow's executors some time after the result
            does.
            """
            tf.experimental.async_clear_error()

        def gather():
            return tf.gather(tf.zeros([10]), tf.constant(11))

        def read():
            return tf.io.read_file("/no/such/file")

        def parse():
            return tf.io.decode_raw(tf.constant([b"123"]), tf.int32)

        def uninitialized():
            table = tf.raw_ops.HashTableV2(key_dtype=tf.int64,
                                           value_dtype=tf.int64)
            return tf.raw_ops.LookupTableFindV2(
                table_handle=table, keys=tf.constant([1], tf.int64),
                default_value=tf.constant(0, tf.int64))

        for fails, error in (
            (gather, tf.errors.InvalidArgumentError),
            (read, tf.errors.NotFoundError),
            (parse, tf.errors.InvalidArgumentError),
            (uninitialized, tf.errors.FailedPreconditionError),
        ):
            with self.subTest(fails.__name__):
                with self.assertRaises(error):
                    with on(0):
                        fails().numpy()
                clear_errors()

                @tf.function
                def crosses():
                    with on(1):
                        bad = fails()
                    with on(0):
                        return tf.identity(bad)

                with self.assertRaises(error):
                    crosses().numpy()
                clear_errors()
        with on(0):
            well = tf.constant(1) + 1
        self.assertEqual(well.numpy(), 2)

    def test_functions_at_once(self):
        """Runs many threads, each of which computes with its own values."""
        @tf.function
        def cross(value):
            with on(1):
                value = value + 1.0
            with on(0):
                return value * 2.0

        wrong = []

        def work(number):
            for step in range(10):
                value = np.full(1 << 16, number * 100 + step, np.float32)
                if not np.array_equal(cross(tf.constant(value)).numpy(),
                                      (value + 1) * 2):
                    wrong.append((number, step))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class LostWorkerTest(unittest.TestCase):
    """Runs after EagerTest, because it kills a worker."""

    def test_killed_worker_is_an_error_and_is_used_again(self):
        with on(1):
            queue = tf.queue.FIFOQueue(1, [tf.float32], [[SIZE]])

        @tf.function
        def waits():
            with on(1):
                never = queue.dequeue()
            with on(0):
                return tf.reduce_sum(never)

        killed = []

        def kill():
            killed.append(time.monotonic())
            TASKS[1].kill()

        with on(0):
            survives = tf.Variable(tf.ones([1000]))
        timer = threading.Timer(3.0, kill)
        timer.start()
        with self.assertRaises((tf.errors.UnavailableError,
                                tf.errors.AbortedError)):
            waits().numpy()
        took = time.monotonic() - killed[0]
        timer.join()
        self.assertLess(took, 5.0)
        begun = time.monotonic()
        with self.assertRaises(tf.errors.OpError):
            with on(1):
                (tf.zeros([SIZE]) + 1.0).numpy()
        self.assertLess(time.monotonic() - begun, 30)
        TASKS[1].stop()
        TASKS[1] = cluster.Task(CLUSTER, "worker", 1,
                                PROTOCOL).wait_until_ready()
        connect()

        @tf.function
        def cross():
            with on(1):
                there = tf.random.uniform([SIZE])  # not a constant: constants
            with on(0):                            # folded, and do not move
                return tf.reduce_sum(there)

        def works():
            try:
                return 0 < cross().numpy() < SIZE
            except tf.errors.UnavailableError:
                return False  # gRPC's channel does not try again at once

        self.assertTrue(cluster.wait_for(works, 60))
        route = cluster.route_to(TASKS[0].describe(), CLUSTER["worker"][1])
        self.assertEqual(route["path"], "shm")
        self.assertEqual(survives.numpy().sum(), 1000)


if __name__ == "__main__":
    unittest.main()
