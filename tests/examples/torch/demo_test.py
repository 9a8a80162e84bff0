"""Runs examples/torch's demo as users do, once in each way."""

import pathlib
import subprocess
import sys
import unittest

DEMO = pathlib.Path.cwd() / "examples/torch/demo.py"


class DemoTest(unittest.TestCase):

    def test_losses_are_those_of_gloo(self):
        demo = subprocess.run([sys.executable, str(DEMO), "--quick"],
                              stdout=subprocess.PIPE, text=True, check=False)
        print(demo.stdout, file=sys.stderr)
        self.assertEqual(demo.returncode, 0)
        for way in ("DDP", "DDP, 2 batches a step",
                    "FSDP2, 2 batches a step"):
            self.assertRegex(demo.stdout, rf"(?m)^{way} +\d")


if __name__ == "__main__":
    unittest.main()
