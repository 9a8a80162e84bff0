"""Tests PENSTOCK_POLICY=require with a stock peer, and bad settings."""

import os
import unittest

import cluster
import penstock_tensorflow
import tensorflow as tf

tf1 = tf.compat.v1


class RequireTest(unittest.TestCase):
    def begin(self, protocol):
        """Starts a parameter server, this worker's session, and the operation
        to run."""
        tf1.disable_eager_execution()
        os.environ["PENSTOCK_POLICY"] = "require"
        addresses = cluster.addresses(ps=1, worker=1)
        task = cluster.Task(addresses, "ps", 0, protocol)
        self.addCleanup(task.stop)
        server = tf.distribute.Server(
            addresses, "worker", 0, protocol=penstock_tensorflow.PROTOCOL)
        task.wait_until_ready()
        with tf1.Graph().as_default() as graph:
            with tf1.device("/job:ps/task:0"):
                there = tf.random.uniform([1000])
            with tf1.device("/job:worker/task:0"):
                result = tf.reduce_sum(there)
        session = tf1.Session(server.target, graph=graph)
        self.addCleanup(session.close)
        return addresses["ps"][0], task, session, result

    def test_error_names_the_peer_and_the_remedy(self):
        address, _, session, result = self.begin("grpc")
        with self.assertRaises(tf.errors.FailedPreconditionError) as raised:
            session.run(result)
        self.assertIn(address, str(raised.exception))
        self.assertIn("PENSTOCK_POLICY=prefer", str(raised.exception))

    def test_peer_that_is_gone_is_unavailable(self):
        # Expects the error code that makes programs wait until the task is
        # restarted, and begin again.
        _, task, session, result = self.begin(penstock_tensorflow.PROTOCOL)
        session.run(result)
        task.kill()
        for _ in range(3):
            with self.assertRaises(tf.errors.UnavailableError):
                session.run(result)

    def test_bad_settings_are_errors_of_the_server(self):
        for name, value in (
            ("PENSTOCK_POLICY", "perhaps"),
            ("PENSTOCK_TENSORFLOW_MEMORY", "moon"),
            ("PENSTOCK_TENSORFLOW_ALL_REDUCE", "tree"),
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
