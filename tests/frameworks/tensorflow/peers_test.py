"""Tests peers that lack the plugin's protocol, die, stop, or send garbage."""

import os
import random
import signal
import socket
import time
import unittest

import cluster
import numpy as np
import penstock_tensorflow
import tensorflow as tf

tf1 = tf.compat.v1
PROTOCOL = penstock_tensorflow.PROTOCOL
SIZE = 1 << 18


class PeersTest(unittest.TestCase):
    """This process is the only worker; several parameter servers are other
    processes."""

    @classmethod
    def setUpClass(cls):
        tf1.disable_eager_execution()
        cls.cluster = cluster.addresses(ps=3, worker=1)
        # Starts task 0, which will be killed and started again, task 1, which
        # is a stock task, and task 2, which always works.
        cls.tasks = [
            cluster.Task(cls.cluster, "ps", index, protocol)
            for index, protocol in enumerate([PROTOCOL, "grpc", PROTOCOL])
        ]
        cls.server = tf.distribute.Server(
            cls.cluster, "worker", 0, protocol=PROTOCOL
        )
        for task in cls.tasks:
            task.wait_until_ready()

    @classmethod
    def tearDownClass(cls):
        for task in cls.tasks:
            task.stop()

    def run_on(self, index, session=None):
        """Makes a task double an array."""
        with tf1.Graph().as_default() as graph:
            with tf1.device("/job:worker/task:0"):
                fed = tf1.placeholder(tf.float32, [SIZE])
                here = tf.identity(fed)
            with tf1.device(f"/job:ps/task:{index}"):
                doubled = here * 2.0
            with tf1.device("/job:worker/task:0"):
                result = tf.identity(doubled)
            filters = [f"/job:ps/task:{index}", "/job:worker/task:0"]
            config = tf1.ConfigProto(device_filters=filters)
            with tf1.Session(self.server.target, graph=graph,
                             config=config) as session:
                value = np.arange(SIZE, dtype=np.float32)
                np.testing.assert_array_equal(
                    session.run(result, {fed: value}), value * 2
                )

    def route(self, index):
        return cluster.route_to(
            penstock_tensorflow.describe(), self.cluster["ps"][index]
        )

    def test_stock_peer_is_reached_by_grpc(self):
        self.run_on(1)
        route = self.route(1)
        self.assertEqual(route["path"], "grpc")
        self.assertIn("penstock", route["reason"])
        self.assertGreater(route["grpc_calls"], 0)
        self.assertEqual(route["calls"], 0)

    def test_killed_peer_is_unavailable_and_used_again(self):
        self.run_on(0)
        self.assertEqual(self.route(0)["path"], "shm")
        with tf1.Graph().as_default() as graph:
            with tf1.device("/job:ps/task:0"):
                queue = tf1.FIFOQueue(1, [tf.float32], [[SIZE]])
                never = queue.dequeue()
            with tf1.device("/job:worker/task:0"):
                result = tf.reduce_sum(never)
            config = tf1.ConfigProto(
                device_filters=["/job:ps/task:0", "/job:worker/task:0"])
            with tf1.Session(self.server.target, graph=graph,
                             config=config) as session:
                killed = []
                calls = self.route(0)["calls"]

                def kill():
                    # Kills the task during the step, not before: TensorFlow
                    # waits forever for a task that is killed while the step is
                    # set up.
                    cluster.wait_for(
                        lambda: self.route(0)["calls"] > calls, seconds=60)
                    time.sleep(0.5)
                    killed.append(time.monotonic())
                    self.tasks[0].kill()

                timer = __import__("threading").Timer(0, kill)
                timer.start()
                with self.assertRaises(tf.errors.OpError) as raised:
                    session.run(result)
                took = time.monotonic() - killed[0]
                timer.join()
        self.assertIsInstance(
            raised.exception,
            (tf.errors.UnavailableError, tf.errors.AbortedError))
        self.assertLess(took, 2.0)
        self.run_on(2)  # the others work
        self.tasks[0].stop()
        self.tasks[0] = cluster.Task(
            self.cluster, "ps", 0, PROTOCOL).wait_until_ready()

        def works():
            try:
                self.run_on(0)
                return self.route(0)["path"] == "shm"
            except (tf.errors.UnavailableError, tf.errors.AbortedError):
                return False

        self.assertTrue(cluster.wait_for(works))

    def test_stopped_peer_goes_on(self):
        self.run_on(2)
        process = self.tasks[2].process
        process.send_signal(signal.SIGSTOP)
        timer = __import__("threading").Timer(
            1.0, process.send_signal, [signal.SIGCONT])
        timer.start()
        self.run_on(2)
        timer.join()
        self.assertEqual(self.route(2)["path"], "shm")

    def test_garbage_at_the_data_plane_harms_nobody(self):
        self.run_on(2)
        seed = random.randrange(1 << 32)
        generator = random.Random(seed)
        ports = self.data_ports(self.tasks[2].process.pid)
        self.assertGreaterEqual(len(ports), 2, "its gRPC, and the data plane")
        for port in ports:
            for _ in range(20):
                with socket.create_connection(("127.0.0.1", port)) as raw:
                    raw.sendall(generator.randbytes(generator.randrange(2000)))
        self.run_on(2)
        self.assertEqual(self.route(2)["path"], "shm", seed)

    @staticmethod
    def data_ports(pid):
        """Returns the TCP ports at which a process listens."""
        inodes = set()
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{fd}")
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
        ports = set()
        for table in ("tcp", "tcp6"):
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as lines:
                for line in list(lines)[1:]:
                    fields = line.split()
                    if fields[3] == "0A" and fields[9] in inodes:
                        ports.add(int(fields[1].rpartition(":")[2], 16))
        return ports


if __name__ == "__main__":
    unittest.main()
