#!/usr/bin/env -S python3 -B
"""Tests that scripts whose help is the comment at their head print that
comment."""

import os
import pathlib
import subprocess
import unittest

TOOLS = pathlib.Path(__file__).parent


class HelpTest(unittest.TestCase):

    def test_help_is_the_whole_comment_and_nothing_else(self):
        for name in ("docs", "grpcio_tests", "package", "setup",
                     "tensorflow_wheel", "torch_wheel", "wheel"):
            for flag in ("-h", "--help"):
                with self.subTest(tool=name, flag=flag):
                    done = subprocess.run([TOOLS / name, flag], text=True,
                                          capture_output=True, check=False,
                                          env=dict(os.environ, HOME="/"))
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    lines = (TOOLS / name).read_text().split("\n")
                    end = next(number for number, line in enumerate(lines)
                               if not line.startswith("#"))
                    self.assertEqual(
                        done.stdout.splitlines(),
                        [line[2:] for line in lines[1:end]])


if __name__ == "__main__":
    unittest.main()
