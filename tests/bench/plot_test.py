#!/usr/bin/python3 -B
"""bench/rpc/plot.py: what it draws of results, and what it refuses."""

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
        # What could not be measured has no time.
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
            for colour in ("#7f7f7f", "#d62728"):  # of tcp and of shm
                self.assertRegex(text, rf"stroke: {colour}; stroke-width")

    def test_the_same_results_make_the_same_file(self):
        rows = [row("shm", size) for size in SIZES]
        self.plot(rows)
        first = self.svg.read_bytes()
        self.plot(rows)
        self.assertEqual(self.svg.read_bytes(), first)

    def test_what_is_no_result_is_refused_in_a_line(self):
        rows = [row("shm", 8), row("shm", 8, api="async")]
        for content, flags, said in (
                ("{", (), "results.json"), ("{}", (), "no results"),
                ([], (), "nothing was measured"), ([7], (), "nothing was"),
                (rows, (), "which --api? async, sync"),
                (rows, ("--api=callback",), "nothing was measured")):
            done = self.plot(content, *flags)
            self.assertEqual(done.returncode, 1)
            self.assertTrue(re.fullmatch(r"plot\.py: .*\n", done.stderr),
                            done.stderr)
            self.assertIn(said, done.stderr)
            self.assertFalse(self.svg.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
