#!/usr/bin/python3 -B
"""Tests tools/results, on the tree's page and with a benchmark that is a
script."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PAGE = """# Results
<!-- tools/results: begin -->
old
<!-- tools/results: end -->
after
"""
# A benchmark in which each transport takes ten times as long as the next one in
# the list.
FAKE = """#!/usr/bin/python3
import json, sys
flags = dict(word[2:].split("=", 1) for word in sys.argv[1:])
rows = [{"transport": name, "bytes": 8, "p50_us": 10.0 ** (4 - i),
         "p99_us": 10.0 ** (5 - i), "mb_per_s": 10.0 ** i}
        for i, name in enumerate(flags["transports"].split(","))]
json.dump(rows, open(flags["json"], "w"))
"""


def results(*arguments):
    return subprocess.run([sys.executable, HERE / "results", *arguments],
                          text=True, capture_output=True, check=False)


class ResultsTest(unittest.TestCase):

    def test_the_page_of_the_tree_is_what_the_saved_figures_give(self):
        done = results("--check")
        self.assertEqual(0, done.returncode, done.stderr)

    def test_what_is_measured_is_saved_and_drawn(self):
        with tempfile.TemporaryDirectory() as name:
            docs = pathlib.Path(name)
            (docs / "results.md").write_text(PAGE)
            fake = docs / "rpc"
            fake.write_text(FAKE)
            fake.chmod(0o755)
            done = results(f"--docs={docs}", f"--rpc={fake}")
            if "python3-matplotlib" in done.stderr:
                self.skipTest("no matplotlib")
            self.assertEqual(0, done.returncode, done.stderr)
            page = (docs / "results.md").read_text()
            self.assertIn("| 8 B | 10,000 / 100,000 | 1,000 / 10,000 | "
                          "100 / 1,000 | 10.0 / 100 | 100.0 x | 1000.0 x | "
                          "`penstock bench --benchmark=latency --api=sync "
                          "--sizes=8` |",
                          page)
            self.assertIn("| 8 B | 1.0 | 10.0 | 100 | 1,000 | 100.0 x | "
                          "1000.0 x |", page)
            self.assertTrue(page.endswith("after\n"))
            self.assertNotIn("old", page)
            self.assertIn(b"</svg>", (docs / "images/push.svg").read_bytes())
            # Checks the page, which agrees with the figures until either is
            # changed.
            self.assertEqual(0, results(f"--docs={docs}", "--check").returncode)
            saved = json.loads((docs / "results.json").read_text())
            saved["figures"]["push"][0]["mb_per_s"] = 7
            (docs / "results.json").write_text(json.dumps(saved))
            done = results(f"--docs={docs}", "--check")
            self.assertEqual(1, done.returncode)
            self.assertIn("run tools/results --draw", done.stderr)


if __name__ == "__main__":
    unittest.main()
