#!/usr/bin/env -S python3 -B
"""Tests watch.py with scripts in place of Bazel."""

import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import watch

HERE = pathlib.Path(__file__).resolve().parent
EVENTS = [
    {"id": {"targetConfigured": {"label": "//a"}},
     "configured": {"testSize": "SMALL"}},
    {"id": {"targetCompleted": {"label": "//a"}},
     "completed": {"success": True}},
    {"id": {"testSummary": {"label": "//a"}},
     "testSummary": {"overallStatus": "FAILED"}},
]
CHATTER = """\
Loading: 0 packages loaded
INFO: Analyzed 3 targets (0 packages loaded, 0 targets configured).
INFO: Found 2 targets and 1 test target...
[12 / 34] Compiling a.cc; 3s local
INFO: Elapsed time: 1.2s, Critical Path: 0.1s
INFO: 1 process: 1 internal.
INFO: Build completed, 1 test FAILED, 1 total action
"""
WORTH_READING = """\
INFO: From Compiling a.cc:
a.cc:1: warning: unused
ERROR: /x/BUILD:1:1: Compiling b.cc failed: (Exit 1)
b.cc:7: error: no
FAIL: //a (see test.log)
==== Test output for //a:
it failed
"""


class GateWatchTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.events = self.folder / "events"

    def command(self, script):
        return [sys.executable, "-B", HERE / "watch.py", "--name=tests",
                f"--events={self.events}", "--testing", "bash", "-c", script]

    def run_watch(self, script):
        return subprocess.run(self.command(script), text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def script(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def write_events(self):
        lines = "".join(json.dumps(event) + "\n" for event in EVENTS)
        return f"cat {self.script('all', lines)} >{self.events}"

    def test_chatter_is_left_out_and_the_rest_is_shown_in_full(self):
        text = self.script("said", CHATTER + WORTH_READING)
        for where in "", " >&2":
            run = self.run_watch(f"cat {text}{where}")
            self.assertEqual(run.stdout, WORTH_READING)

    def test_colours_do_not_hide_chatter(self):
        self.assertTrue(watch.is_chatter(
            b"\r\x1b[1A\x1b[K\x1b[32mINFO: \x1b[0mFound 2 targets"))

    def test_a_line_without_an_end_is_shown(self):
        self.assertEqual(self.run_watch("printf 'no end'").stdout, "no end\n")

    def test_exits_as_the_command_does(self):
        self.assertEqual(self.run_watch("exit 3").returncode, 3)
        self.assertEqual(self.run_watch("kill -KILL $$").returncode, 137)

    def test_closes_with_what_the_events_say(self):
        self.assertRegex(self.run_watch(self.write_events()).stderr,
                         "^tests: 1 of 1 test targets done, 1 failed, "
                         r"1 of 1 targets built; \d+ s so far\n$")

    def test_events_of_an_earlier_run_do_not_count(self):
        self.events.write_text(json.dumps(EVENTS[0]) + "\n")
        self.assertEqual(self.run_watch("true").stderr, "")

    def test_a_terminal_gets_a_bar(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        run = subprocess.Popen(self.command(f"{self.write_events()}; sleep 4"),
                               stdout=theirs, stderr=theirs)
        os.close(theirs)
        run.wait()
        self.assertIn(b"\r\x1b[K[####################] tests: 1 of 1",
                      os.read(ours, 65536))

    def start(self, script):
        """Starts a script that prints its process, in a group of its own."""
        run = subprocess.Popen(self.command(script), text=True,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL,
                               start_new_session=True)
        self.addCleanup(run.stdout.close)
        return run, int(run.stdout.readline())

    def test_an_interrupt_waits_for_the_command_to_end_in_order(self):
        run, _ = self.start("trap 'sleep 0.5; exit 8' INT; echo $$; "
                            "while :; do sleep 0.05; done")
        os.killpg(run.pid, signal.SIGINT)
        self.assertEqual(run.wait(), 8)

    def assert_gone(self, process):
        for _ in range(600):
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)
        self.fail(f"process {process} is still there")

    def test_the_command_ends_however_the_watch_ends(self):
        for number in signal.SIGTERM, signal.SIGKILL:
            run, process = self.start("echo $$; exec sleep 100")
            run.send_signal(number)
            run.wait()
            self.assert_gone(process)


if __name__ == "__main__":
    unittest.main()
