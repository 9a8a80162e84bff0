"""Tests strangers that talk to a task's data plane while a session uses it."""

import os
import random
import re
import resource
import socket
import threading
import time
import unittest

import cluster
import grpc
import numpy as np
import penstock_tensorflow
import tensorflow as tf
from footprint import footprint

tf1 = tf.compat.v1
PROTOCOL = penstock_tensorflow.PROTOCOL
SEED = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(1 << 32)))
SIZE = 1 << 18
FLOOD = 2000
# The time that the server gives to clients that send no greeting, plus a
# margin for a busy machine.
PATIENCE = 40


def hello(address):
    """Asks a task, as a peer does, for the port and the token of its data
    plane."""
    key = b"penstock: where is your data plane?"
    kind = b"type.penstock/tensorflow.hello.1"
    any_field = b"\x0a" + bytes([len(kind)]) + kind
    request = (b"\x08" + b"\xff" * 9 + b"\x01"  # step_id: -1
               + b"\x12" + bytes([len(key)]) + key
               + b"\x32" + bytes([len(any_field)]) + any_field)
    with grpc.insecure_channel(address) as channel:
        answer = channel.unary_unary("/tensorflow.WorkerService/RecvTensor")(
            request, timeout=PATIENCE)
    value = re.search(rb"tensorflow\.here\.1\x12(.)(.*)", answer, re.DOTALL)
    value = value.group(2)[:value.group(1)[0]]
    return int.from_bytes(value[:2], "little"), value[3:3 + value[2]]


def greeting(token, oldest=0, newest=255):
    return (b"PSTKrpc?" + bytes([oldest, newest])
            + len(token).to_bytes(2, "little") + token)


class GarbageTest(unittest.TestCase):
    """Tests strangers at a worker, this process, whose session never stops."""

    @classmethod
    def setUpClass(cls):
        print(f"PENSTOCK_TEST_SEED={SEED}", flush=True)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        tf1.disable_eager_execution()
        cls.addresses = cluster.addresses(ps=1, worker=1)
        cls.ps = cluster.Task(cls.addresses, "ps", 0, PROTOCOL)
        cls.server = tf.distribute.Server(cls.addresses, "worker", 0,
                                          protocol=PROTOCOL)
        cls.ps.wait_until_ready()
        cls.port, cls.token = hello(cls.addresses["ps"][0])
        cls.steps = 0
        cls.failure = None
        cls.ends = False
        cls.thread = threading.Thread(target=cls.train)
        cls.thread.start()
        assert cluster.wait_for(lambda: cls.steps > 20 or cls.failure, 60)

    @classmethod
    def tearDownClass(cls):
        cls.ends = True
        cls.thread.join()
        cls.ps.stop()

    @classmethod
    def train(cls):
        try:
            with tf1.Graph().as_default() as graph:
                fed = tf1.placeholder(tf.float32, [])
                with tf1.device("/job:worker/task:0"):
                    here = tf.fill([SIZE], fed)
                with tf1.device("/job:ps/task:0"):
                    there = here * 2.0
                with tf1.device("/job:worker/task:0"):
                    result = there + 1.0
            with tf1.Session(cls.server.target, graph=graph) as session:
                while not cls.ends:
                    got = session.run(result, {fed: cls.steps % 1000})
                    np.testing.assert_array_equal(
                        got, np.full(SIZE, cls.steps % 1000 * 2 + 1))
                    cls.steps += 1
        except Exception as error:  # the tests report the error
            cls.failure = error

    def setUp(self):
        self.generator = random.Random(SEED)
        self.before = footprint(self.ps.process.pid)

    def tearDown(self):
        """Checks that the session continues as before, and that nothing of the
        strangers' connections remains."""
        self.assertIsNone(self.failure)
        steps = self.steps
        self.assertTrue(cluster.wait_for(
            lambda: self.failure or self.steps > steps + 20, PATIENCE))
        self.assertIsNone(self.failure)
        route = cluster.route_to(penstock_tensorflow.describe(),
                                 self.addresses["ps"][0])
        self.assertEqual(route["path"], "shm")
        self.assertEqual(route["grpc_calls"], 0)
        cluster.wait_for(lambda: self.grown("descriptors") <= 2, PATIENCE)
        self.assertLessEqual(self.grown("descriptors"), 2)
        self.assertLessEqual(self.grown("threads"), 8)
        self.assertLessEqual(self.grown("shared_mappings"), 2)
        self.assertLessEqual(self.grown("own_kib"), 64 << 10)

    def grown(self, what):
        return footprint(self.ps.process.pid)[what] - self.before[what]

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port),
                                        timeout=PATIENCE)

    def say(self, *parts):
        """Sends the bytes. Returns True if the server then ends the
        connection."""
        with self.connect() as raw:
            try:
                for part in parts:
                    raw.sendall(part)
                while raw.recv(4096):
                    pass
                return True
            except ConnectionError:
                return True
            except socket.timeout:
                return False

    def test_random_bytes(self):
        for _ in range(200):
            self.assertTrue(
                self.say(self.generator.randbytes(
                    self.generator.randrange(8, 5000))))

    def test_greeting_with_a_wrong_token(self):
        for length in (0, 1, len(self.token) - 1, len(self.token), 64, 65,
                       65535):
            wrong = self.generator.randbytes(length)
            self.assertTrue(self.say(greeting(wrong)))
        for i in range(len(self.token)):  # wrong in one bit
            wrong = bytearray(self.token)
            wrong[i] ^= 1 << self.generator.randrange(8)
            self.assertTrue(self.say(greeting(bytes(wrong))))

    def test_greeting_cut_at_each_byte(self):
        whole = greeting(self.token)
        for length in range(len(whole) + 1):
            with self.connect() as raw:
                raw.sendall(whole[:length])
        # Makes connections that send only a part of a greeting. The server
        # must drop them after its timeout.
        stalled = []
        for length in range(len(whole)):
            raw = self.connect()
            self.addCleanup(raw.close)
            raw.sendall(whole[:length])
            stalled.append(raw)
        for raw in stalled:
            try:
                self.assertEqual(raw.recv(1), b"")
            except ConnectionError:
                pass

    def test_garbage_behind_the_right_greeting(self):
        for _ in range(100):
            self.assertTrue(
                self.say(greeting(self.token),
                         self.generator.randbytes(
                             self.generator.randrange(8, 5000))))

    def test_silence_behind_the_right_greeting(self):
        self.assertTrue(self.say(greeting(self.token)))

    def test_flood_of_connections(self):
        flood = []
        try:
            for i in range(FLOOD):
                raw = self.connect()
                flood.append(raw)
                if i % 3 == 1:
                    raw.sendall(b"PSTKrpc?")
                if i % 3 == 2:
                    raw.sendall(self.generator.randbytes(3))
            self.assertLessEqual(self.grown("descriptors"), FLOOD + 10)
            self.assertLessEqual(self.grown("own_kib"), 64 << 10)
            steps = self.steps
            self.assertTrue(cluster.wait_for(
                lambda: self.failure or self.steps > steps + 5, PATIENCE))
            # Expects that the server drops all connections, although the
            # clients stay.
            self.assertTrue(cluster.wait_for(
                lambda: self.grown("descriptors") <= 2, PATIENCE))
        finally:
            for raw in flood:
                raw.close()


if __name__ == "__main__":
    unittest.main()
