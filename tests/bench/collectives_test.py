#!/usr/bin/env python3
"""Runs the benchmark of collectives, and its comparison with a stand-in for
gloo."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

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
                           f"--python={python}", "--torch-backend",
                           f"--json={folder}/rows.json")
            rows = json.loads(pathlib.Path(folder, "rows.json").read_text())
        self.assertEqual(
            [(row["library"], row["operation"], row["ranks"], row["bytes"],
              row["p50_us"]) for row in rows],
            [("gloo", "all_reduce", 2, 8, 7),
             ("penstock", "all_reduce", 2, 8, 2),
             ("penstock.torch", "all_reduce", 2, 8, 3.5)])
        self.assertEqual(table.splitlines()[1].split(),
                         ["all_reduce", "8", "7.00", "2.00", "3.5", "3.50",
                          "2.0"])

    def test_the_page_has_a_plot_for_each_operation_and_all_times(self):
        rows = [{"library": library, "operation": operation, "ranks": 2,
                 "bytes": size, "p50_us": us}
                for library, us in (("gloo", 1000.0), ("penstock", 10.0))
                for operation in ("all_reduce", "broadcast")
                for size in (8, 1 << 20)]
        rows += [{"library": "a<b", "operation": "barrier", "ranks": 2,
                  "bytes": 0, "p50_us": 0.25}]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "rows.json")
            file.write_text(json.dumps(rows))
            output("bench/collectives/latency_page.py", str(file),
                   f"--svg={folder}/x.svg", f"--html={folder}/x.html")
            svg = pathlib.Path(folder, "x.svg").read_text()
            page = pathlib.Path(folder, "x.html").read_text()
        plots = xml.etree.ElementTree.fromstring(svg).findall(
            "{http://www.w3.org/2000/svg}g")
        self.assertEqual(len(plots), 3)
        texts = [["".join(text.itertext()) for text in plot
                  if text.tag.endswith("text")] for plot in plots]
        self.assertIn("all_reduce, 2 ranks", texts[0])
        for text in ("10 us", "1000 us", "8B", "1M", "gloo", "penstock"):
            self.assertIn(text, texts[0])
        self.assertIn("a<b", texts[2])
        # The slower library is higher, by the whole height of two decades.
        circles = [float(circle.get("cy")) for circle in plots[0]
                   if circle.tag.endswith("circle")]
        self.assertEqual(circles[:2], [28, 28])
        self.assertEqual(circles[2:], [288, 288])
        self.assertIn(svg, page)
        self.assertIn("<tr><td>broadcast<td>2<td>1048576<td>1000.00<td>10.00",
                      page)
        self.assertIn("<tr><td>barrier<td>2<td>0<td><td><td>0.25", page)

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
