#!/usr/bin/env python3
"""Compiles abi_check.cc against cuda.h, and library.cc's names against it.

Without a CUDA Toolkit (/usr/local/cuda, or CUDA_HOME) the test is skipped.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

CUDA = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
ROOT = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
CHECK = ROOT / "tests/transport/device/abi_check.cc"


def compile_check(text):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "check.cc"
        source.write_text(text)
        return subprocess.run(
            ["g++", "-std=c++17", "-fsyntax-only", f"-I{ROOT}",
             f"-I{CUDA}/include", str(source)],
            capture_output=True, text=True, check=False)


@unittest.skipUnless((CUDA / "include/cuda.h").exists(),
                     f"no CUDA Toolkit in {CUDA}")
class AbiTest(unittest.TestCase):
    def test_constants_and_functions_are_those_of_cuda_h(self):
        done = compile_check(CHECK.read_text())
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_wrong_constant_is_found(self):
        text = CHECK.read_text().replace("(kSuccess, CUDA_SUCCESS)",
                                         "(kSuccess, CUDA_ERROR_ASSERT)")
        self.assertIn("kSuccess", compile_check(text).stderr)

    def test_each_function_that_is_loaded_is_checked(self):
        library = (ROOT / "transport/device/library.cc").read_text()
        loaded = set(re.findall(r"PENSTOCK_FIND(?:_IF_THERE)?\((cu\w+)\)", library))
        checked = set(re.findall(r"PENSTOCK_TAKES\((cu\w+)",
                                 CHECK.read_text()))
        # cuda.h gives cuDeviceGetUuid two signatures by a macro, so it is not
        # compared.
        self.assertEqual(loaded - checked, {"cuInit", "cuDeviceGetUuid"})

    def test_each_constant_is_checked(self):
        abi = (ROOT / "transport/device/abi.h").read_text()
        ours = set(re.findall(r"constexpr \w+ (k\w+) =", abi))
        checked = set(re.findall(r"PENSTOCK_SAME\((k\w+)", CHECK.read_text()))
        self.assertEqual(ours, checked)


if __name__ == "__main__":
    unittest.main()
