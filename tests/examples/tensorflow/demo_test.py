"""Tests examples/tensorflow's digits as users run them, but for a shorter
time."""

import pathlib
import subprocess
import sys
import unittest

EXAMPLE = pathlib.Path.cwd() / "examples/tensorflow"
sys.path.insert(0, str(EXAMPLE))
import digits  # noqa: E402 pylint: disable=wrong-import-position


class DigitsTest(unittest.TestCase):
    def test_split_is_that_of_the_example_in_cxx(self):
        training, validation, held_out = digits.load(digits.CSV)
        self.assertEqual([len(part[0]) for part in
                          (training, validation, held_out)], [1078, 359, 360])
        # Expects the same digits as tests/examples/digits_test.cc.
        self.assertEqual(list(held_out[1][:12]),
                         [2, 5, 1, 5, 2, 4, 7, 1, 3, 7, 3, 4])
        self.assertEqual(held_out[0].sum() * 16, 111858)


class DemoTest(unittest.TestCase):
    def test_both_strategies_learn_over_shared_memory(self):
        demo = subprocess.run(
            [sys.executable, str(EXAMPLE / "demo.py"), "--quick"],
            stdout=subprocess.PIPE, text=True, check=False)
        print(demo.stdout, file=sys.stderr)
        self.assertEqual(demo.returncode, 0)
        for strategy in ("ParameterServerStrategy",
                         "MultiWorkerMirroredStrategy"):
            row = rf"(?m)^{strategy} .* shm$"
            self.assertRegex(demo.stdout, row)


if __name__ == "__main__":
    unittest.main()
