"""Tests many steps and many transfers. The bytes must stay right, and nothing
may remain.

PENSTOCK_TEST_STEPS and PENSTOCK_TEST_TRANSFERS are their numbers, and
PENSTOCK_TEST_SEED repeats a run.
"""

import collections
import os
import random
import time
import unittest

import cluster
import numpy as np
import penstock_tensorflow
import random_variables
import tensorflow as tf
from footprint import footprint, growth

tf1 = tf.compat.v1
PROTOCOL = penstock_tensorflow.PROTOCOL
STEPS = int(os.environ.get("PENSTOCK_TEST_STEPS", "100"))
TRANSFERS = int(os.environ.get("PENSTOCK_TEST_TRANSFERS", "10000"))
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(1 << 32)))
VARIABLES = 66


def setUpModule():
    global CLUSTER, PS, SERVER
    print(f"PENSTOCK_TEST_SEED={SEED}", flush=True)
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


def routes():
    """Returns the route of each task to the other."""
    ours = penstock_tensorflow.describe()
    theirs = PS.describe()
    return (cluster.route_to(ours, CLUSTER["ps"][0]),
            cluster.route_to(theirs, CLUSTER["worker"][0]))


def session(graph):
    config = tf1.ConfigProto()
    # Disables an optimizer that would remove operations without effect, and
    # with them the tensors that the test wants to move.
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return tf1.Session(SERVER.target, graph=graph, config=config)


class VariablesTest(unittest.TestCase):
    def test_random_variables_have_the_bits_that_numpy_has(self):
        generator = np.random.default_rng(SEED)
        with tf1.Graph().as_default() as graph:
            step = tf1.placeholder(tf.int32, [])
            variables = [
                random_variables.RandomVariable(i, generator, on_ps,
                                                on_worker, step)
                for i in range(VARIABLES)
            ]
            results = [each.result for each in variables]
            prepare = [each.prepare for each in variables]
            initialize = tf1.global_variables_initializer()
        # Keeps some results for a while, because no peer may write to them
        # meanwhile.
        kept = collections.deque()
        begun = time.monotonic()
        with session(graph) as running:
            running.run(initialize)
            running.run(prepare, {each.fed: each.base for each in variables})
            for k in range(STEPS):
                got = running.run(results, {step: k})
                for variable, value in zip(variables, got):
                    variable.advance(k)
                    self.assertTrue(variable.equals(value),
                                    f"{variable.name} in step {k}")
                index = int(generator.integers(VARIABLES))
                kept.append((variables[index], k, got[index],
                             got[index].copy()))
                if len(kept) > 20:
                    self.look_again(kept.popleft())
        for each in kept:
            self.look_again(each)
        for route in routes():
            self.assertEqual(route["path"], "shm")
            self.assertEqual(route["grpc_calls"], 0)
        print(f"{STEPS} steps in {time.monotonic() - begun:.0f} s, of",
              sum(each.expected.nbytes for each in variables) >> 20,
              "MiB each way", flush=True)

    def look_again(self, kept):
        variable, step, value, copy = kept
        self.assertEqual(
            value.tobytes() if value.dtype != object else value.tolist(),
            copy.tobytes() if value.dtype != object else copy.tolist(),
            f"{variable.name} of step {step}, later")


class LeaksTest(unittest.TestCase):
    """Uses tensors whose sizes change and return, some of them in steps that
    fail."""

    WIDTH = 16  # tensors in a step, each way
    SAMPLES = 20
    # The growth in KiB that is allowed: for fragmentation while sizes change,
    # and for objects that are opened and closed all the time.
    SLACK = {"own_kib": 48 << 10, "shared_kib": 64 << 10, "threads": 4,
             "descriptors": 4, "mappings": 60, "shared_mappings": 4,
             "held_bytes": 32 << 20}

    def build(self):
        self.sizes = tf1.placeholder(tf.int32, [self.WIDTH])
        self.index = tf1.placeholder(tf.int32, [])
        with on_worker():
            here = [tf.fill([self.sizes[i]], float(i))
                    for i in range(self.WIDTH)]
        with on_ps():
            there = [each + 1.0 for each in here]
            never = tf1.FIFOQueue(1, [tf.float32], [[1000]]).dequeue()
            bad = tf.gather(tf.zeros([10]), self.index)
        with on_worker():
            # Makes a variable, whose storage will be the received tensor.
            holder = tf1.get_variable("holder", dtype=tf.float32,
                                      initializer=tf.zeros([1]),
                                      validate_shape=False, use_resource=True)
            self.initialize = holder.initializer
            hold = holder.assign(there[0], read_value=False)
            with tf1.control_dependencies([hold]):
                back = [each + 1.0 for each in there]
            self.sums = tf.stack([tf.reduce_sum(each) for each in back])
            self.fails = [tf.reduce_sum(bad + each) for each in there]
            self.times_out = [tf.reduce_sum(never), self.sums]

    def run_step(self, running, sizes):
        got = running.run(self.sums, {self.sizes: sizes})
        expected = [size * (i + 2) for i, size in enumerate(sizes)]
        np.testing.assert_allclose(got, expected, rtol=1e-4)

    def run_failing_steps(self, running, sizes, milliseconds):
        with self.assertRaises(tf.errors.InvalidArgumentError):
            running.run(self.fails, {self.sizes: sizes, self.index: 11})
        with self.assertRaises(tf.errors.DeadlineExceededError):
            running.run(self.times_out, {self.sizes: sizes},
                        options=tf1.RunOptions(timeout_in_ms=milliseconds))

    @staticmethod
    def sample():
        ours = dict(footprint(), held_bytes=penstock_tensorflow.describe()
                    ["held_bytes"])
        theirs = dict(footprint(PS.process.pid),
                      held_bytes=PS.describe()["held_bytes"])
        return ours, theirs

    def test_nothing_is_left_over(self):
        generator = np.random.default_rng(SEED)
        with tf1.Graph().as_default() as graph:
            self.build()
        steps = TRANSFERS // (2 * self.WIDTH) + 1
        begun = time.monotonic()
        before = [route["calls"] if route else 0 for route in routes()]
        samples = []
        with session(graph) as running:
            running.run(self.initialize)
            # Gives the first step more time. If a step's timeout ends before
            # the graph is at the tasks, TensorFlow waits forever, over grpc
            # too.
            self.run_failing_steps(running, np.ones(self.WIDTH), 5000)
            for k in range(steps):
                sizes = (2 ** generator.uniform(0, 18, self.WIDTH)).astype(int)
                self.run_step(running, sizes)
                if k % 100 == 99:
                    self.run_failing_steps(running, sizes, 200)
                if k % max(1, steps // self.SAMPLES) == 0:
                    samples.append(self.sample())
        samples.append(self.sample())
        made = sum(route["calls"] for route in routes()) - sum(before)
        self.assertGreaterEqual(made, TRANSFERS)
        print(f"{made} transfers in {time.monotonic() - begun:.0f} s")
        half = len(samples) // 2
        for name, taken in zip(("worker", "ps"), zip(*samples)):
            grown = growth(taken[:half], taken[half:])
            print(f"{name}: {taken[-1]}\n  grew by {grown}", flush=True)
            for what, by in grown.items():
                self.assertLessEqual(by, self.SLACK[what], f"{name}: {what}")
            self.assertLessEqual(taken[-1]["held_bytes"],
                                 self.SLACK["held_bytes"], name)


if __name__ == "__main__":
    unittest.main()
