"""Tests TF1 sessions. This process is the worker, and another process is the
parameter server."""

import random
import time
import unittest

import cluster
import numpy as np
import penstock_tensorflow
import tensorflow as tf

tf1 = tf.compat.v1
PROTOCOL = penstock_tensorflow.PROTOCOL


def setUpModule():
    global CLUSTER, PS, SERVER
    tf1.disable_eager_execution()
    CLUSTER = cluster.addresses(ps=1, worker=1)
    PS = cluster.Task(CLUSTER, "ps", 0, PROTOCOL)
    SERVER = tf.distribute.Server(CLUSTER, "worker", 0, protocol=PROTOCOL)
    PS.wait_until_ready()


def tearDownModule():
    PS.stop()


def on_ps():
    return tf1.device("/job:ps/task:0")


def on_worker():
    return tf1.device("/job:worker/task:0")


class SessionTest(unittest.TestCase):
    def setUp(self):
        self.graph = tf1.Graph()
        context = self.graph.as_default()
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def session(self):
        config = tf1.ConfigProto()
        # Disables an optimizer that would remove operations without effect,
        # and with them the tensors that the test wants to move.
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        session = tf1.Session(SERVER.target, graph=self.graph, config=config)
        self.addCleanup(session.close)
        return session

    def there_and_back(self, values):
        """Sends each value to the other task, which sends it back."""
        placeholders, results = [], []
        for value in values:
            with on_worker():
                fed = tf1.placeholder(value.dtype, value.shape)
                here = tf.identity(fed)
            with on_ps():
                there = tf.identity(here)
            with on_worker():
                back = tf.identity(there)
            placeholders.append(fed)
            results.append(back)
        return self.session().run(results, dict(zip(placeholders, values)))

    def test_bytes_go_over_shared_memory(self):
        self.there_and_back([np.arange(1 << 20, dtype=np.float32)])
        route = cluster.route_to(
            penstock_tensorflow.describe(), CLUSTER["ps"][0]
        )
        self.assertEqual(route["path"], "shm")
        self.assertGreaterEqual(route["bytes_received"], 4 << 20)
        self.assertEqual(route["grpc_calls"], 0)
        theirs = cluster.route_to(PS.describe(), CLUSTER["worker"][0])
        self.assertEqual(theirs["path"], "shm")
        self.assertGreaterEqual(theirs["bytes_received"], 4 << 20)

    def test_all_types_come_through(self):
        seed = random.randrange(1 << 32)
        generator = np.random.default_rng(seed)
        values = []
        for dtype in (
            np.float16, np.float32, np.float64, np.int8, np.int16, np.int32,
            np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.complex64,
            np.complex128,
        ):
            values.append(generator.integers(0, 100, (7, 3)).astype(dtype))
        values.append(generator.integers(0, 2, 1000).astype(bool))
        values.append(
            np.array([b"", b"short", b"x" * 100_000, "\u00e9".encode()], object)
        )
        values.append(np.array([b"y" * 1000] * 1000, object))  # 1 MB
        values.append(np.float32(3.5).reshape(()))
        values.append(np.zeros((0, 5), np.float32))
        values.append(np.zeros((3, 0), object))
        for got, sent in zip(self.there_and_back(values), values):
            self.assertEqual(got.dtype, sent.dtype, seed)
            self.assertEqual(got.shape, sent.shape, seed)
            np.testing.assert_array_equal(got, sent, str(seed))

    def test_random_variables_stay_equal(self):
        seed = random.randrange(1 << 32)
        random.seed(seed)
        sizes = [random.randrange(1, 1 << random.randrange(1, 20))
                 for _ in range(66)]
        with on_ps():
            there = [tf1.get_variable(f"there{i}", [size], tf.float32,
                                      tf1.zeros_initializer(),
                                      use_resource=True)
                     for i, size in enumerate(sizes)]
        with on_worker():
            here = [tf1.get_variable(f"here{i}", [size], tf.float32,
                                     tf1.zeros_initializer(),
                                     use_resource=True)
                    for i, size in enumerate(sizes)]
        step = tf1.placeholder(tf.float32, [])
        updates = []
        for ours, theirs in zip(here, there):
            with on_worker():
                value = tf.random.uniform(ours.shape) + step
                kept = ours.assign(value)
            with on_ps():
                sent = theirs.assign(value)
            updates += [kept, sent]
        with on_worker():
            # Compares a variable of this task with the same variable of the
            # other task.
            with tf1.control_dependencies([u.op for u in updates]):
                equal = tf.reduce_all(tf.stack(
                    [tf.reduce_all(tf.equal(ours.read_value(),
                                            theirs.read_value()))
                     for ours, theirs in zip(here, there)]))
        session = self.session()
        session.run(tf1.global_variables_initializer())
        for i in range(50):
            self.assertTrue(session.run(equal, {step: i}), f"seed {seed}")

    def test_received_tensor_that_becomes_a_variable_is_not_shared(self):
        with on_ps():
            source = tf1.get_variable("source", [1 << 18], tf.float32,
                                      tf1.ones_initializer(),
                                      use_resource=True)
            change = source.assign_add(tf.ones([1 << 18]), read_value=False)
        with on_worker():
            target = tf1.get_variable("target", [1 << 18], tf.float32,
                                      tf1.zeros_initializer(),
                                      use_resource=True)
            copy = target.assign(source.read_value(), read_value=False)
            add = target.assign_add(tf.ones([1 << 18]), read_value=False)
        session = self.session()
        session.run(tf1.global_variables_initializer())
        session.run(copy)
        session.run(change)
        self.assertEqual(set(session.run(target)), {1.0})
        session.run(add)
        self.assertEqual(set(session.run(target)), {2.0})
        self.assertEqual(set(session.run(source)), {2.0})

    def test_dead_tensors_come_through(self):
        with on_worker():
            chosen = tf1.placeholder(tf.bool, [])
            value = tf.ones([1000])
            dead_or_not = tf1.raw_ops.Switch(data=value, pred=chosen)
        with on_ps():
            doubled = dead_or_not.output_true * 2.0
        with on_worker():
            merged = tf1.raw_ops.Merge(
                inputs=[tf.identity(doubled),
                        tf.identity(dead_or_not.output_false)]).output
            total = tf.reduce_sum(merged)
        session = self.session()
        for _ in range(10):
            self.assertEqual(session.run(total, {chosen: True}), 2000)
            self.assertEqual(session.run(total, {chosen: False}), 1000)

    def test_error_at_the_peer_ends_the_step_with_its_code(self):
        with on_ps():
            index = tf1.placeholder(tf.int32, [])
            bad = tf.gather(tf.zeros([10]), index)
            large = tf.ones([1 << 20]) * bad
        with on_worker():
            result = tf.reduce_sum(large)
        session = self.session()
        self.assertEqual(session.run(result, {index: 3}), 0)
        begun = time.monotonic()
        with self.assertRaises(tf.errors.InvalidArgumentError):
            session.run(result, {index: 11})
        self.assertLess(time.monotonic() - begun, 10)
        self.assertEqual(session.run(result, {index: 4}), 0)

    def test_strings_above_protobufs_limit_are_an_error_as_over_grpc(self):
        with on_ps():
            count = tf1.placeholder(tf.int32, [])
            words = tf.fill([count], tf.constant("x" * (1 << 20)))
        with on_worker():
            length = tf.reduce_sum(tf.strings.length(words))
        session = self.session()
        self.assertEqual(session.run(length, {count: 3}), 3 << 20)
        with self.assertRaisesRegex(tf.errors.InternalError, "2GB"):
            session.run(length, {count: 2048})
        self.assertEqual(session.run(length, {count: 5}), 5 << 20)

    def test_step_that_times_out_ends_transfers_that_wait(self):
        with on_ps():
            queue = tf1.FIFOQueue(1, [tf.float32], [[1000]])
            taken = queue.dequeue()
            put = queue.enqueue([tf.ones([1000])])
        with on_worker():
            result = tf.reduce_sum(taken)
        session = self.session()
        options = tf1.RunOptions(timeout_in_ms=500)
        for _ in range(3):
            with self.assertRaises(tf.errors.DeadlineExceededError):
                session.run(result, options=options)
        session.run(put)
        self.assertEqual(session.run(result), 1000)

    def test_graphs_are_run_over_the_data_plane_with_what_they_are_fed(self):
        # Tries sizes from a few bytes to more than fits into the packet of a
        # call's name.
        for size in (1, 1000, 100_000, 3_000_000):
            with on_ps():
                fed = tf1.placeholder(tf.float32, [size])
                doubled = fed * 2.0
            session = self.session()
            value = np.arange(size, dtype=np.float32)
            calls = self.calls()
            for _ in range(3):
                np.testing.assert_array_equal(
                    session.run(doubled, {fed: value}), value * 2)
            self.assertGreaterEqual(self.calls(), calls + 3)

    def test_session_with_a_cluster_of_its_own(self):
        # Gives the tasks names that differ from those given to their servers at
        # the start.
        def local():
            return tf.distribute.Server({"localhost": ["localhost:0"]},
                                        protocol=PROTOCOL)
        one, two = local(), local()
        config = tf1.ConfigProto()
        job = config.cluster_def.job.add()
        job.name = "renamed"
        for index, server in enumerate((one, two)):
            job.tasks[index] = server.target[len("grpc://"):]
        with tf1.Graph().as_default() as graph:
            with tf1.device("/job:renamed/task:1"):
                there = tf.fill([100_000], 8.0)
            with tf1.device("/job:renamed/task:0"):
                result = tf.reduce_sum(there)
        with tf1.Session(one.target, config=config, graph=graph) as session:
            self.assertEqual(session.run(result), 800_000)

    def calls(self):
        route = cluster.route_to(
            penstock_tensorflow.describe(), CLUSTER["ps"][0])
        return route["calls"] if route else 0

    def test_two_sessions_at_once(self):
        with on_worker():
            fed = tf1.placeholder(tf.float32, [1 << 16])
        with on_ps():
            doubled = fed * 2.0
        with on_worker():
            result = doubled + 1.0
        one, other = self.session(), self.session()
        for i in range(20):
            for j, session in enumerate((one, other)):
                value = np.full(1 << 16, i * 2 + j, np.float32)
                np.testing.assert_array_equal(
                    session.run(result, {fed: value}), value * 2 + 1)


if __name__ == "__main__":
    unittest.main()
