"""Tests the wheel with the wrong TensorFlow, without TensorFlow, and damaged.

TensorFlow has to give the reason, and to work as without the wheel.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import penstock_tensorflow

PLUGINS = "tensorflow-plugins"
LOADER = "libpenstock_tensorflow_loader.so"
OUTDATED = pathlib.Path("tests/frameworks/tensorflow/liboutdated_loader.so")

# A user's program, and its checks of TensorFlow afterwards. Exits with 0 if
# everything except Penstock's protocol works.
USE_TENSORFLOW = """
import penstock_tensorflow
import tensorflow as tf

assert float(tf.reduce_sum(tf.ones([10]))) == 10
cluster = {"worker": ["127.0.0.1:0"]}
server = tf.distribute.Server(cluster, "worker", 0, protocol="grpc")
with tf.Graph().as_default():
    total = tf.reduce_sum(tf.ones([20]))
    with tf.compat.v1.Session(server.target) as session:
        assert session.run(total) == 20
try:
    tf.distribute.Server(cluster, "worker", 0,
                         protocol=penstock_tensorflow.PROTOCOL)
except tf.errors.NotFoundError as error:
    print("NotFound:", error)
try:
    penstock_tensorflow.describe()
except ImportError as error:
    print("ImportError:", error)
import os, sys
sys.stdout.flush()
os._exit(0)  # TensorFlow's servers are not made to be destroyed
"""
WITHOUT_PROTOCOL = "continues without the protocol grpc+penstock"


class LoaderTest(unittest.TestCase):
    def setUp(self):
        """Gives each test its own installed wheel, which the test may damage.
        """
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.site = pathlib.Path(folder.name, "site-packages")
        installed = penstock_tensorflow.library_path().parent.parent
        shutil.copytree(installed, self.site)
        self.plugin = self.site.joinpath("penstock_tensorflow",
                                         "libpenstock_tensorflow.so")
        self.loader = self.site / PLUGINS / LOADER

    def run_python(self, program, *flags):
        return subprocess.run(
            [sys.executable, *flags, "-c", program], check=False,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=120, env=dict(os.environ, PYTHONPATH=str(self.site)))

    def expect_plain_tensorflow(self, why):
        done = self.run_python(USE_TENSORFLOW)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = [line for line in done.stderr.splitlines()
                if line.startswith("penstock-tensorflow: ")]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertRegex(said[0], why)
        self.assertIn(WITHOUT_PROTOCOL, said[0])
        self.assertIn("NotFound: No server factory registered", done.stdout)
        self.assertIn("ImportError: TensorFlow has not loaded", done.stdout)

    def test_other_release_is_named_and_tensorflow_goes_on(self):
        self.loader.unlink()
        shutil.copy(OUTDATED, self.loader)
        self.expect_plain_tensorflow(
            r"it was built for TensorFlow 1\.98, and this is 2\.\d+\.\d+; "
            "install the wheel for this release")

    def test_plugin_that_is_missing_is_named_and_tensorflow_goes_on(self):
        self.plugin.unlink()
        self.expect_plain_tensorflow(
            r"libpenstock_tensorflow\.so: cannot open shared object file")

    def test_plugin_that_does_not_load_is_named_and_tensorflow_goes_on(self):
        self.plugin.unlink()
        self.plugin.write_bytes(b"no library " * 1000)
        self.expect_plain_tensorflow(
            r"libpenstock_tensorflow\.so: (invalid ELF header|file too short)")

    def test_right_release_is_loaded_without_a_word(self):
        done = self.run_python(
            "import penstock_tensorflow, tensorflow\n"
            "print(penstock_tensorflow.built_for(), tensorflow.__version__)")
        self.assertEqual(done.returncode, 0, done.stderr)
        built_for, release = done.stdout.split()
        self.assertEqual(built_for, release)
        self.assertNotIn("penstock", done.stderr)

    def test_without_tensorflow_the_package_says_so(self):
        """Tests Python with -S, which leaves out the site-packages with
        TensorFlow."""
        done = self.run_python(
            "import penstock_tensorflow\npenstock_tensorflow.describe()", "-S")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ImportError: TensorFlow has not loaded", done.stderr)
        self.assertIn("none is installed for this Python", done.stderr)


if __name__ == "__main__":
    unittest.main()
