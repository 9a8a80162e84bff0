#!/usr/bin/env -S python3 -B
"""Tests the parsing and the output of bench/ucx/ucx_bench."""

import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import shutil
import subprocess
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).parent
loader = importlib.machinery.SourceFileLoader("ucx_bench",
                                              str(FOLDER / "ucx_bench"))
ucx_bench = importlib.util.module_from_spec(
    importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(ucx_bench)

CSV = """\
iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr
3000,50.776,147.841,147.841,1234.04,1000.00,6764
"""


class UcxBenchTest(unittest.TestCase):

    def test_bandwidth_of_the_whole_run_in_decimal_megabytes(self):
        self.assertAlmostEqual(ucx_bench.read_perftest(CSV), 1048.576)

    def test_other_output_is_shown_not_guessed(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            with self.assertRaises(SystemExit):
                ucx_bench.read_perftest("connection refused")
        self.assertIn("connection refused", said.getvalue())

    def test_cma_is_a_transport_not_a_word_in_the_list(self):
        self.assertTrue(ucx_bench.has_cma("#      Transport: cma\n"))
        self.assertFalse(ucx_bench.has_cma("# Memory domain: cma\n"
                                           "#      Transport: posix\n"))

    def test_sizes(self):
        self.assertEqual(ucx_bench.bytes_of("1MiB"), 1 << 20)
        self.assertEqual(ucx_bench.bytes_of("100"), 100)
        with contextlib.redirect_stderr(io.StringIO()):
            with self.assertRaises(SystemExit):
                ucx_bench.bytes_of("big")

    def report(self, samples):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            ucx_bench.report(samples, list(samples))
        return out.getvalue()

    def test_medians_are_compared_with_the_target(self):
        good = self.report({"ucx_perftest": [100, 90, 5000],
                            "resend shm": [80, 81, 10]})
        self.assertIn("10..81      80%", good)
        self.assertIn("at least 80%", good)
        self.assertIn("less than 80%",
                      self.report({"ucx_perftest": [100], "resend shm": [79]}))

    def test_without_ucx_there_is_no_share(self):
        text = self.report({"resend shm": [80]})
        self.assertNotIn("%", text)

    def test_a_missing_program_is_named_with_the_remedy(self):
        with tempfile.TemporaryDirectory() as empty:
            run = subprocess.run(
                [shutil.which("python3"), "-B", FOLDER / "ucx_bench"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                check=False, env={"PATH": empty})
        self.assertEqual(run.returncode, 1)
        self.assertIn("Debian package ucx-utils", run.stdout)
        self.assertIn("tools/setup --profile", run.stdout)


if __name__ == "__main__":
    unittest.main()
