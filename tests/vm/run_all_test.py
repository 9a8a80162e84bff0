#!/usr/bin/env -S python3 -B
"""Tests of run_all, outside of a virtual machine."""

import base64
import json
import pathlib
import subprocess
import tempfile
import time
import unittest

TOOL = pathlib.Path(__file__).parent / "run_all"


class RunAllTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, text, limit_s=30, args=()):
        """Returns a test of the plan: a script of bash."""
        path = self.folder / f"test{len(list(self.folder.iterdir()))}"
        path.write_text("#!/bin/bash\n" + text)
        path.chmod(0o755)
        return {"program": str(path), "args": list(args),
                "folder": str(self.folder), "limit_s": limit_s}

    def run_all(self, *plan):
        """Runs the plan. Returns (events, other output)."""
        path = self.folder / "plan.json"
        path.write_text(json.dumps(plan))
        run = subprocess.run([TOOL, path], stdout=subprocess.PIPE, text=True,
                             check=True)
        lines = run.stdout.split("\n")  # not at the mark
        events = [json.loads(line[1:]) for line in lines
                  if line.startswith("\x1e")]
        return events, [line for line in lines
                        if line and not line.startswith("\x1e")]

    def codes(self, *plan):
        events, _ = self.run_all(*plan)
        return [event["code"] for event in events if event["event"] == "end"]

    def test_each_program_runs_and_its_status_is_told(self):
        self.assertEqual(self.codes(self.program("exit 3"),
                                    self.program("kill -ABRT $$"),
                                    self.program("true")), [3, -6, 0])

    def test_output_stands_between_the_events(self):
        events, text = self.run_all(
            self.program('echo out; echo "$1" >&2; printf unended',
                         args=["a b"]))
        self.assertEqual(text, ["out", "a b", "unended"])
        self.assertEqual([event["event"] for event in events],
                         ["start", "end"])

    def test_a_program_that_cannot_start_fails_alone(self):
        missing = dict(self.program(""), program="/nowhere/test")
        self.assertEqual(self.codes(missing, self.program("true")), [127, 0])

    def test_a_time_limit_ends_all_processes_of_the_test(self):
        begin = time.monotonic()
        marker = self.folder / "alive"
        self.assertEqual(self.codes(
            self.program(f"trap '' TERM; (sleep 5; touch {marker}) & "
                         "while :; do sleep 1; done", limit_s=1),
            self.program("true")), ["timeout", 0])
        self.assertLess(time.monotonic() - begin, 20)
        self.assertNotIn("alive", [p.name for p in self.folder.iterdir()])

    def test_what_a_program_leaves_behind_is_ended(self):
        begin = time.monotonic()
        self.assertEqual(self.codes(self.program("sleep 1000 & exit 0")), [0])
        self.assertLess(time.monotonic() - begin, 20)

    def test_a_long_report_comes_in_parts_of_short_lines(self):
        report = "<x>" + "ä" * 5000 + "</x>"
        events, _ = self.run_all(
            self.program(f'printf %s "{report}" >"$XML_OUTPUT_FILE"'))
        parts = [event["part"] for event in events
                 if event["event"] == "report"]
        self.assertEqual(
            b"".join(map(base64.b64decode, parts)).decode(), report)
        self.assertLess(max(map(len, parts)), 3900)

    def test_a_report_is_of_its_own_test(self):
        events, _ = self.run_all(
            self.program('echo "<x/>" >"$XML_OUTPUT_FILE"'),
            self.program("true"))
        self.assertEqual([event["index"] for event in events
                          if event["event"] == "report"], [0])


if __name__ == "__main__":
    unittest.main()
