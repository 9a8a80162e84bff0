#!/usr/bin/env python3
"""Runs the benchmark of collectives, and its comparison with a stand-in for
gloo."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = "bench/collectives/collectives"
OPERATIONS = ["all_reduce", "broadcast", "reduce_scatter", "all_gather",
              "all_to_all", "barrier"]
# Prints a row. The second argument of pytorch.py is its backend.
FAKE = r"""#!/bin/sh
case $2 in *gloo) library=gloo time=7;; *) library=penstock.torch time=3.5;; esac
echo "{\"library\": \"%s\", \"bytes\": 8, \"operation\": \"all_reduce\", \
\"p50_us\": %s}"
"""


def output(*command, env=None):
    return subprocess.run(command, check=True, text=True, env=env,
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

    def test_the_comparison_takes_medians_and_ratios(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "penstock")
            program.write_text(FAKE % ("penstock", 2))
            # A fake that runs in place of the Python that runs pytorch.py.
            python = pathlib.Path(folder, "python")
            python.write_text(FAKE % ("$library", "$time"))
            for fake in (program, python):
                fake.chmod(0o755)
            table = output("bench/collectives/compare.py", str(program),
                           f"--python={python}", "--torch-backend")
        self.assertEqual(table.splitlines()[1].split(),
                         ["all_reduce", "8", "7.00", "2.00", "3.5", "3.50",
                          "2.0"])

    def test_the_comparison_compiles_and_runs_mpi(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("penstock", FAKE % ("penstock", 2)),
                               ("mpirun.mpich", FAKE % ("mpich", 3)),
                               ("mpicc.mpich", "#!/bin/sh\necho > $4\n")):
                fake = pathlib.Path(folder, name)
                fake.write_text(text)
                fake.chmod(0o755)
            table = output(sys.executable, "bench/collectives/compare.py",
                           f"{folder}/penstock", "--mpi", "--no-gloo", "--pool",
                           env={"PATH": folder})
        head, row = table.splitlines()
        self.assertIn("mpich", head)
        self.assertEqual(row.split()[-5:], ["3.00", "2.00", "1.5", "2.00",
                                            "1.5"])


if __name__ == "__main__":
    unittest.main()
