"""Runs deploy/slurm/tensorflow.sbatch to its end: both strategies must learn,
and tensors must go over shared memory."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
# pylint: disable=wrong-import-position
from slurm_test import free_ports, submit

FLAGS = ["--epochs=2", "--hidden=64"]


class TensorFlowTest(unittest.TestCase):

    def train(self, program, **environment):
        done = submit("tensorflow.sbatch", f"examples/tensorflow/{program}",
                      *FLAGS, timeout=400, PYTHON=sys.executable,
                      PORT=str(free_ports(4)), **environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^accuracy ")
        self.assertIn(": shm (ring", done.stdout)

    def test_a_chief_with_a_parameter_server_and_two_workers(self):
        self.train("parameter_server.py", nodes=4)

    def test_workers_alone(self):
        self.train("mirrored.py", nodes=2, SERVERS="0")

    def test_a_job_without_workers_is_refused(self):
        done = submit("tensorflow.sbatch", "x.py", nodes=2)
        self.assertEqual(done.returncode, 2)
        self.assertIn("too few nodes", done.stdout)


if __name__ == "__main__":
    unittest.main()
