#!/usr/bin/python3 -B
"""Runs examples/collectives as users do."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

PROGRAM = pathlib.Path("examples/collectives/digits.py").absolute()


def learn(ranks):
    """Returns the accuracy and the loss of a short training."""
    ended = subprocess.run(
        [sys.executable, "-B", PROGRAM, f"--ranks={ranks}", "--epochs=6",
         "--hidden=64"],
        text=True, capture_output=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(pathlib.Path("python").absolute()),
             "PENSTOCK_LOG": "warning"})
    line = re.fullmatch(rf"{ranks} ranks: accuracy (\S+) % on held-out digits, "
                        r"loss (\S+)\n", ended.stdout)
    assert ended.returncode == 0 and line, ended
    return float(line[1]), float(line[2])


class DigitsTest(unittest.TestCase):

    def test_two_ranks_learn_what_one_learns(self):
        one, two = learn(1), learn(2)
        self.assertGreater(two[0], 93)
        # Averages of halves, and of whole batches, differ by rounding.
        self.assertAlmostEqual(one[1], two[1], delta=0.01)


if __name__ == "__main__":
    unittest.main()
