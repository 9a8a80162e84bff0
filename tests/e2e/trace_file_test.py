#!/usr/bin/env python3
"""The file of PENSTOCK_TRACE: good and bad paths, ends of processes; and the
probes that a program has for tracers."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

GREETER = pathlib.Path("examples/greeter")
LIMIT_S = 30


class TraceFileTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.server = subprocess.Popen(
            [GREETER / "greeter_server", "127.0.0.1:0"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ,
                 "PENSTOCK_TRACE": str(self.folder / "server.json")})
        self.addCleanup(self.end_server)
        self.port = int(self.server.stdout.readline().split()[-1])

    def end_server(self):
        self.server.kill()
        self.server.communicate(timeout=LIMIT_S)

    def greet(self, trace):
        """The client's standard error."""
        done = subprocess.run(
            [GREETER / "greeter_client", f"127.0.0.1:{self.port}"], text=True,
            capture_output=True, timeout=LIMIT_S, check=True,
            env={**os.environ, "PENSTOCK_TRACE": str(trace)})
        self.assertIn("Hello", done.stdout)
        return done.stderr

    def names(self, path):
        with open(path, encoding="ascii") as file:
            return sorted(event["name"] for event in json.load(file))

    def test_a_program_that_ends_has_its_last_events_in_the_file(self):
        for _ in range(5):
            self.greet(self.folder / "client.json")
            self.assertEqual(self.names(self.folder / "client.json"),
                             ["call"] * 2)

    def test_a_killed_program_leaves_an_array(self):
        for _ in range(3):
            self.greet(self.folder / "client.json")
        self.server.send_signal(signal.SIGKILL)
        self.server.wait(LIMIT_S)
        self.assertLessEqual(set(self.names(self.folder / "server.json")),
                             {"handling"})

    def test_the_pid_may_be_in_the_name(self):
        self.greet(self.folder / "client-%p.json")
        self.assertEqual(len(list(self.folder.glob("client-[0-9]*.json"))), 1)

    def test_the_file_is_its_users_alone(self):
        self.greet(self.folder / "client.json")
        self.assertEqual((self.folder / "client.json").stat().st_mode & 0o777,
                         0o600)

    def test_a_path_that_cannot_be_written_costs_one_line(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        link = self.folder / "link"
        link.symlink_to(self.folder / "elsewhere")
        for path in ("/nowhere/trace.json", "/dev/null", pipe, link,
                     self.folder / "server.json"):
            said = self.greet(path)
            self.assertEqual(said.count("write a trace to"), 1, said)
        self.assertFalse((self.folder / "elsewhere").exists())

    def test_a_relative_path_costs_one_line(self):
        self.assertEqual(self.greet("trace.json").count("PENSTOCK_TRACE="), 1)

    def test_a_full_disk_ends_the_trace_and_nothing_else(self):
        said = subprocess.run(
            ["bash", "-c", 'ulimit -f 0; trap "" XFSZ; exec "$@"', "bash",
             GREETER / "greeter_client", f"127.0.0.1:{self.port}"], text=True,
            capture_output=True, timeout=LIMIT_S, check=True,
            env={**os.environ,
                 "PENSTOCK_TRACE": str(self.folder / "client.json")})
        self.assertIn("Hello", said.stdout)
        self.assertEqual(said.stderr.count("the trace ends here"), 1)


class ProbesTest(unittest.TestCase):

    def test_the_program_has_those_that_are_documented(self):
        notes = subprocess.run(
            ["readelf", "-n", GREETER / "greeter_server"], text=True,
            capture_output=True, timeout=LIMIT_S, check=True).stdout
        found = set(re.findall(r"Provider: penstock\s+Name: (\w+)", notes))
        document = pathlib.Path("docs/operations.md").read_text("utf-8")
        documented = set(re.findall(r"^\| `(\w+)\([\w, ]*\)` \|", document,
                                    re.MULTILINE))
        self.assertEqual(found, documented)
        self.assertTrue(found)


if __name__ == "__main__":
    unittest.main()
