"""Tests PENSTOCK_TENSORFLOW_MEMORY: where the parameter server's tensors lie.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import cluster
import numpy as np
import penstock_tensorflow
import tensorflow as tf

tf1 = tf.compat.v1
PROTOCOL = penstock_tensorflow.PROTOCOL
ELEMENTS = 1 << 20

# A program that loads the plugin after TensorFlow has taken memory.
LATE = """
import tensorflow as tf
before = tf.ones([1 << 20])
import penstock_tensorflow
tf.load_library(str(penstock_tensorflow.library_path()))
server = tf.distribute.Server({"worker": ["127.0.0.1:0"]}, "worker", 0,
                              protocol="grpc+penstock")
print(penstock_tensorflow.describe()["registered_bytes"],
      float(tf.reduce_sum(before)), flush=True)
import os
os._exit(0)
"""


def pull(settings):
    """Creates a variable at a parameter server with these settings, twice,
    with an update in between. Returns describe() of the server."""
    tasks = cluster.addresses(ps=1, worker=1)
    ps = cluster.Task(tasks, "ps", 0, PROTOCOL, **settings)
    try:
        server = tf.distribute.Server(tasks, "worker", 0, protocol=PROTOCOL)
        ps.wait_until_ready()
        with tf1.Graph().as_default():
            with tf1.device("/job:ps/task:0"):
                there = tf1.get_variable(
                    "there", use_resource=True,
                    initializer=tf.range(ELEMENTS, dtype=tf.float32))
                change = there.assign_add(tf.ones([ELEMENTS]))
            with tf1.device("/job:worker/task:0"):
                here = tf.identity(there.read_value())
            with tf1.Session(server.target) as session:
                session.run(tf1.global_variables_initializer())
                before = session.run(here)
                session.run(change.op)
                return before, session.run(here), ps.describe()
    finally:
        ps.stop()


class MemoryTest(unittest.TestCase):
    def check(self, mode):
        before, after, description = pull(
            {"PENSTOCK_TENSORFLOW_MEMORY": mode})
        expected = np.arange(ELEMENTS, dtype=np.float32)
        np.testing.assert_array_equal(before, expected)
        np.testing.assert_array_equal(after, expected + 1)
        return description["registered_bytes"]

    def test_heap_is_not_registered(self):
        self.assertEqual(self.check("heap"), 0)

    def test_pool(self):
        self.assertEqual(self.check("pool"), 0)

    def test_registered_memory_holds_the_variable(self):
        self.assertGreaterEqual(self.check("registered"), 4 * ELEMENTS)

    def test_plugin_that_comes_too_late_says_so_and_works(self):
        for mode in ("pool", "registered"):
            with tempfile.TemporaryDirectory() as folder:
                # Reaches the package through a link, so that the library is
                # not in a folder where TensorFlow looks for plugins.
                pathlib.Path(folder, "penstock_tensorflow").symlink_to(
                    pathlib.Path(penstock_tensorflow.__file__).parent)
                done = subprocess.run(
                    [sys.executable, "-c", LATE], text=True, check=False,
                    capture_output=True, timeout=120,
                    env=dict(os.environ, PYTHONPATH=folder,
                             PENSTOCK_TENSORFLOW_MEMORY=mode))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.split()[-2:],
                             ["0", f"{float(1 << 20)}"])
            self.assertIn("PENSTOCK_TENSORFLOW_MEMORY has no effect",
                          done.stderr)


if __name__ == "__main__":
    tf1.disable_eager_execution()
    unittest.main()
