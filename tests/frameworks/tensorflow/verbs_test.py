"""Tests a parameter server and a worker over RDMA devices, in one virtual
machine or in two."""

import os
import unittest

import cluster
import numpy as np
import penstock_tensorflow
import tensorflow as tf

tf1 = tf.compat.v1
PROTOCOL = penstock_tensorflow.PROTOCOL
RANK = os.environ.get("RDMA_VM_RANK")  # none: there is one machine
SIZES = (1, 1000, 1 << 12, 100_003, 1 << 18, 1 << 20)
ROUNDS = 3


def addresses():
    if RANK is None:
        os.environ["PENSTOCK_FABRICS"] = "verbs,tcp"  # else shared memory
        return {"ps": ["10.9.0.2:7001"], "worker": ["10.9.0.1:7002"]}
    return {"ps": ["10.8.0.1:7001"], "worker": ["10.8.0.2:7002"]}


def end_of_the_test():
    """Returns a queue at the parameter server. The worker ends the server
    through this queue."""
    with tf1.device("/job:ps/task:0"):
        return tf1.FIFOQueue(1, [tf.bool], [[]], shared_name="end")


class VerbsTest(unittest.TestCase):
    def setUp(self):
        if "RDMA_VM" not in os.environ:
            self.skipTest("wants the devices of tools/rdma-vm")
        tf1.disable_eager_execution()
        self.cluster = addresses()

    def test_variables_come_and_go_over_verbs(self):
        if RANK == "0":
            return self.serve()
        if RANK is None:
            ps = cluster.Task(self.cluster, "ps", 0, PROTOCOL)
            self.addCleanup(ps.stop)
        server = tf.distribute.Server(self.cluster, "worker", 0,
                                      protocol=PROTOCOL)
        with tf1.Graph().as_default():
            self.exchange(server)

    def serve(self):
        server = tf.distribute.Server(self.cluster, "ps", 0, protocol=PROTOCOL)
        with tf1.Graph().as_default():
            ended = end_of_the_test().dequeue()
            with tf1.Session(server.target) as session:
                session.run(ended)

    def exchange(self, server):
        with tf1.device("/job:ps/task:0"):
            theirs = [tf1.get_variable(f"there{size}", [size], tf.float32,
                                       tf1.zeros_initializer(),
                                       use_resource=True) for size in SIZES]
        with tf1.device("/job:worker/task:0"):
            fed = [tf1.placeholder(tf.float32, [size]) for size in SIZES]
            ours = [tf.identity(each) for each in fed]
        updates = []
        for there, value in zip(theirs, ours):
            with tf1.device("/job:ps/task:0"):
                updates.append(there.assign_add(value, read_value=False))
        with tf1.device("/job:worker/task:0"):
            here = [tf.identity(there.read_value()) for there in theirs]
        end = end_of_the_test().enqueue([True])
        generator = np.random.default_rng(7)
        with tf1.Session(server.target) as session:
            session.run(tf1.global_variables_initializer())
            sums = [np.zeros(size, np.float32) for size in SIZES]
            for _ in range(ROUNDS):
                values = [generator.integers(-100, 100, size)
                          .astype(np.float32) for size in SIZES]
                session.run(updates, dict(zip(fed, values)))
                sums = [a + b for a, b in zip(sums, values)]
                for got, expected in zip(session.run(here), sums):
                    np.testing.assert_array_equal(got, expected)
            self.check_path()
            session.run(end)

    def check_path(self):
        description = penstock_tensorflow.describe()
        route = cluster.route_to(description, self.cluster["ps"][0])
        self.assertEqual(route["path"], "verbs", route)
        self.assertIn("RoCE v2", route["detail"])
        self.assertEqual(route["grpc_calls"], 0, route)
        self.assertGreaterEqual(route["bytes_received"],
                                ROUNDS * 4 * sum(SIZES))


if __name__ == "__main__":
    unittest.main()
