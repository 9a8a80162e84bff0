"""PENSTOCK_POLICY=require, beside a stock peer; bad settings."""

import os
import unittest

import cluster
import penstock_tensorflow
import tensorflow as tf

tf1 = tf.compat.v1


class RequireTest(unittest.TestCase):
    def test_error_names_the_peer_and_the_remedy(self):
        tf1.disable_eager_execution()
        os.environ["PENSTOCK_POLICY"] = "require"
        addresses = cluster.addresses(ps=1, worker=1)
        task = cluster.Task(addresses, "ps", 0, "grpc")
        self.addCleanup(task.stop)
        server = tf.distribute.Server(
            addresses, "worker", 0, protocol=penstock_tensorflow.PROTOCOL)
        task.wait_until_ready()
        with tf1.device("/job:ps/task:0"):
            there = tf.random.uniform([1000])
        with tf1.device("/job:worker/task:0"):
            result = tf.reduce_sum(there)
        with tf1.Session(server.target) as session:
            with self.assertRaises(tf.errors.FailedPreconditionError) as raised:
                session.run(result)
        self.assertIn(addresses["ps"][0], str(raised.exception))
        self.assertIn("PENSTOCK_POLICY=prefer", str(raised.exception))

    def test_bad_settings_are_errors_of_the_server(self):
        for name, value in (
            ("PENSTOCK_POLICY", "perhaps"),
            ("PENSTOCK_TENSORFLOW_MEMORY", "moon"),
            ("PENSTOCK_TENSORFLOW_HELD_MIB", "-1"),
        ):
            before = os.environ.get(name)
            os.environ[name] = value
            try:
                with self.assertRaises(
                        tf.errors.InvalidArgumentError) as raised:
                    tf.distribute.Server(
                        {"worker": ["127.0.0.1:0"]}, "worker", 0,
                        protocol=penstock_tensorflow.PROTOCOL)
                self.assertIn(name, str(raised.exception))
            finally:
                if before is None:
                    del os.environ[name]
                else:
                    os.environ[name] = before


if __name__ == "__main__":
    unittest.main()
