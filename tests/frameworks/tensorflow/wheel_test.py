"""Tests the wheel in an environment without any other part of Penstock."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import tensorflow as tf

USE = """
import penstock_tensorflow
import tensorflow as tf
server = tf.distribute.Server({"worker": ["127.0.0.1:0"]}, "worker", 0,
                              protocol="grpc+penstock")
with tf.Graph().as_default():
    with tf.compat.v1.Session(server.target) as session:
        assert session.run(tf.reduce_sum(tf.ones([20]))) == 20
print(penstock_tensorflow.describe()["servers"][0]["task"])
print(penstock_tensorflow.__file__)
import os, sys
sys.stdout.flush()
os._exit(0)  # TensorFlow's servers are not made to be destroyed
"""


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        made = subprocess.run(
            ["tools/tensorflow_wheel", "--built=frameworks/tensorflow",
             cls.folder],
            text=True, stdout=subprocess.PIPE, check=True,
            env=dict(os.environ, PENSTOCK_TENSORFLOW=sys.prefix))
        cls.wheel = pathlib.Path(made.stdout.strip())

    def test_its_name_says_where_it_runs(self):
        release = ".".join(tf.__version__.split(".")[:2])
        self.assertRegex(
            self.wheel.name,
            r"^penstock_tensorflow-[\d.]+\+tf" + release.replace(".", r"\.")
            + r"-py3-none-manylinux_2_\d+_x86_64\.whl$")

    def test_it_has_what_the_plugin_is_and_no_more(self):
        names = {name for name in zipfile.ZipFile(self.wheel).namelist()
                 if ".dist-info/" not in name}
        self.assertEqual(names, {
            "penstock_tensorflow/__init__.py",
            "penstock_tensorflow/py.typed",
            "penstock_tensorflow/libpenstock_tensorflow.so",
            "tensorflow-plugins/libpenstock_tensorflow_loader.so",
        })

    def test_pip_installs_it_and_import_tensorflow_loads_it(self):
        home = self.folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        site, = home.glob("lib/python*/site-packages")
        # Borrows the installed TensorFlow. A separate installation would take
        # 1.3 GB.
        site.joinpath("tensorflow.pth").write_text(
            str(pathlib.Path(tf.__file__).parent.parent), encoding="utf-8")
        environment = {name: value for name, value in os.environ.items()
                       if name != "PYTHONPATH"}
        pip = [home / "bin/pip", "--disable-pip-version-check", "--quiet"]
        subprocess.run([*pip, "install", "--no-index", "--no-deps", self.wheel],
                       check=True, env=environment)
        used = subprocess.run(
            [home / "bin/python3", "-c", USE], text=True, cwd=self.folder,
            stdout=subprocess.PIPE, check=True, env=environment)
        task, place = used.stdout.splitlines()
        self.assertEqual(task, "/job:worker/replica:0/task:0")
        self.assertTrue(place.startswith(str(home)), place)
        subprocess.run([*pip, "uninstall", "--yes", "penstock-tensorflow"],
                       check=True, env=environment)
        self.assertEqual(list(site.glob("**/*penstock*")), [])


if __name__ == "__main__":
    unittest.main()
