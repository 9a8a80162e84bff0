#!/usr/bin/env python3
"""Runs the benchmark of collectives, and its comparison with a stand-in for
gloo."""

import json
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = "bench/collectives/collectives"
OPERATIONS = ["all_reduce", "broadcast", "reduce_scatter", "all_gather",
              "all_to_all", "barrier"]


def output(*command):
    return subprocess.run(command, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


class CollectivesTest(unittest.TestCase):

    def test_each_operation_and_size_has_a_row(self):
        rows = [json.loads(line) for line in output(
            PROGRAM, "--ranks=3", f"--operations={','.join(OPERATIONS)}",
            "--sizes=8,16KiB", "--rounds=10").splitlines()]
        self.assertEqual(
            [(row["operation"], row["bytes"]) for row in rows],
            [(operation, size) for operation in OPERATIONS
             for size in ([0] if operation == "barrier" else [8, 16384])])
        for row in rows:
            self.assertGreater(row["p50_us"], 0)
            self.assertEqual(row["ranks"], 3)

    def test_a_group_as_between_hosts_has_the_same_rows(self):
        rows = [json.loads(line) for line in output(
            PROGRAM, "--transport=tcp", "--operations=all_reduce,barrier",
            "--sizes=8", "--rounds=10").splitlines()]
        self.assertEqual([(row["operation"], row["bytes"]) for row in rows],
                         [("all_reduce", 8), ("barrier", 0)])

    def test_a_slot_of_a_wrong_size_is_an_error(self):
        run = subprocess.run([PROGRAM, "--slot=100"], text=True,
                             stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(run.returncode, 1)
        self.assertIn("slots of 100 bytes", run.stderr)

    def test_the_comparison_takes_medians_and_a_ratio(self):
        with tempfile.TemporaryDirectory() as folder:
            fakes = {}
            for library, time in [("penstock", 2), ("gloo", 7)]:
                row = json.dumps({"library": library, "bytes": 8,
                                  "operation": "all_reduce", "p50_us": time})
                fakes[library] = pathlib.Path(folder, library)
                fakes[library].write_text(f"#!/bin/sh\necho '{row}'\n")
                fakes[library].chmod(0o755)
            table = output("bench/collectives/compare.py",
                           str(fakes["penstock"]),
                           f"--python={fakes['gloo']}")
        self.assertEqual(table.splitlines()[1].split(),
                         ["all_reduce", "8", "2.00", "7.00", "3.5"])


if __name__ == "__main__":
    unittest.main()
