#!/usr/bin/python3 -B
"""Tests what bench/rpc/plot.py draws, and which results it refuses."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

PLOT = "bench/rpc/plot.py"
SIZES = (8, 65536, 1 << 20)


def row(transport, size, api="sync", **more):
    return {"transport": transport, "api": api, "bytes": size,
            "p50_us": 10 + size / 1000, "p99_us": 30 + size / 500,
            "mb_per_s": 1 + size / 1e4, **more}


class PlotTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name, "results.json")
        self.svg = pathlib.Path(folder.name, "plot.svg")

    def plot(self, content, *flags):
        self.results.write_text(
            content if isinstance(content, str) else json.dumps(content),
            encoding="utf-8")
        return subprocess.run([PLOT, self.results, self.svg, *flags],
                              text=True, capture_output=True, timeout=120)

    def test_a_line_for_each_transport_with_its_name(self):
        rows = [row(name, size) for size in SIZES for name in ("tcp", "shm")]
        # Adds a row without a measurement, and so without a time.
        rows.append({"transport": "verbs", "api": "sync", "bytes": 8})
        for what in ("latency", "bandwidth"):
            done = self.plot(rows, f"--what={what}", "--title=A & B")
            self.assertEqual(done.returncode, 0, done.stderr)
            text = self.svg.read_text(encoding="utf-8")
            root = xml.etree.ElementTree.fromstring(text)
            shown = " ".join(root.itertext())
            for name in ("gRPC over TCP", "Penstock over shm", "A & B",
                         "64 KiB", "1 MiB"):
                self.assertIn(name, shown)
            self.assertNotIn("RDMA", shown)
            # The colours of one tcp line and one shm line.
            for colour in ("#7f7f7f", "#d62728"):
                self.assertRegex(text, rf"stroke: {colour}; stroke-width")

    def test_the_same_results_make_the_same_file(self):
        rows = [row("shm", size) for size in SIZES]
        self.plot(rows)
        first = self.svg.read_bytes()
        self.plot(rows)
        self.assertEqual(self.svg.read_bytes(), first)

    def refused(self, done, said):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertTrue(re.fullmatch(r"plot\.py: .*\n", done.stderr),
                        done.stderr)
        self.assertIn(said, done.stderr)

    def test_what_is_no_result_is_refused_in_a_line(self):
        rows = [row("shm", 8), row("shm", 8, api="async")]
        for content, flags, said in (
                ("{", (), "results.json"), ("{}", (), "no results"),
                ("\0", (), "results.json"), ("[" * 100_000, (), "results.json"),
                ([], (), "nothing was measured"), ([7], (), "nothing was"),
                (rows, (), "which --api? async, sync"),
                (rows, ("--api=callback",), "nothing was measured"),
                ([{"p50_us": 1}], (), "without its transport"),
                ([row("shm", 8, p99_us=None)], (), "shm: p99_us is no number"),
                ([{**row("shm", 8), "bytes": "8"}], (), "shm: bytes is no number"),
                ([row("shm", 0)], (), "shm: bytes is no number above 0"),
                ([row("shm", 8, mb_per_s=float("nan"))], ("--what=bandwidth",),
                 "shm: mb_per_s is no number"),
                ([row("shm", 8), row("shm", 8)], (), "8 B was measured twice")):
            with self.subTest(str(content)[:60], flags=flags):
                self.refused(self.plot(content, *flags), said)
                self.assertFalse(self.svg.exists())

    def test_a_line_is_of_one_benchmark_one_scheme_and_so_many_buffers(self):
        for name, values in (("benchmark", ("latency", "push")),
                             ("buffers", (1, 100)),
                             ("scheme", ("skew", "uniform"))):
            rows = [row("shm", size, **{name: value}) for size in SIZES
                    for value in values]
            rows += [row("tcp", size, **{name: values[1]}) for size in SIZES]
            with self.subTest(name):
                said = f"which --{name}? {values[0]}, {values[1]}"
                self.refused(self.plot(rows), said)
                done = self.plot(rows, f"--{name}={values[1]}")
                self.assertEqual(done.returncode, 0, done.stderr)
                chosen = self.svg.read_bytes()
                self.plot([each for each in rows if each[name] == values[1]])
                self.assertEqual(chosen, self.svg.read_bytes())

    def test_files_that_cannot_be_read_or_written_are_named(self):
        self.results.write_text(json.dumps([row("shm", 8)]), encoding="utf-8")
        folder = self.results.parent
        for results, svg, said in (
                (folder / "none.json", self.svg, "none.json"),
                (folder, self.svg, "directory"),
                (self.results, folder / "none/plot.svg", "none/plot.svg"),
                (self.results, folder, "directory"),
                (self.results, "/dev/full", "/dev/full")):
            with self.subTest(results=results, svg=svg):
                self.refused(subprocess.run([PLOT, results, svg], text=True,
                                            capture_output=True, timeout=120),
                             said)

    def test_a_dollar_is_no_formula(self):
        done = self.plot([row("$\\no$", size) for size in SIZES],
                         "--title=$\\frac$")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("$\\frac$", self.svg.read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
