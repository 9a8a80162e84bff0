#!/usr/bin/env python3
"""Tests the file of PENSTOCK_TRACE with good and bad paths, and at the ends of
processes. Also tests the program's probes for tracers."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
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
        """Runs a client that writes a trace, and returns its standard error."""
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
        older = self.folder / "older.json"
        older.touch(0o666)
        older.chmod(0o666)
        for path in (self.folder / "client.json", older):
            self.greet(path)
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)

    def test_a_file_that_may_be_somebody_elses_is_left_alone(self):
        kept = self.folder / "kept"
        kept.write_text("kept", "ascii")
        name = self.folder / "name.json"
        name.hardlink_to(kept)
        self.assertIn("other names", self.greet(name))
        self.assertEqual(kept.read_text("ascii"), "kept")

    @unittest.skipIf(os.geteuid() != 0, "only root can make another's file")
    def test_a_file_of_another_user_is_left_alone(self):
        theirs = self.folder / "theirs.json"
        theirs.write_text("theirs", "ascii")
        theirs.chmod(0o666)
        os.chown(theirs, 65534, 65534)
        self.assertIn("another user's", self.greet(theirs))
        self.assertEqual(theirs.read_text("ascii"), "theirs")

    def test_a_path_that_cannot_be_written_costs_one_line(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        link = self.folder / "link"
        link.symlink_to(self.folder / "elsewhere")
        for path, remedy in [
                ("/nowhere/trace.json", "make the folder first"),
                (self.folder, "name a file in a folder"),
                ("/dev/null", "not a regular file"), (pipe, ""),
                (link, "not by a symbolic link"),
                (self.folder / "server.json", "put %p")]:
            said = self.greet(path)
            self.assertEqual(
                said.count("PENSTOCK_TRACE is not used: write a trace to"), 1,
                said)
            self.assertIn(remedy, said)
        self.assertFalse((self.folder / "elsewhere").exists())

    def test_a_relative_path_costs_one_line(self):
        self.assertEqual(self.greet("trace.json").count("PENSTOCK_TRACE="), 1)

    def test_a_full_disk_ends_the_trace_and_nothing_else(self):
        """Tests that a full disk ends only the trace. The signal SIGXFSZ must
        not end the program either."""
        for what_the_program_does in ("", 'trap "" XFSZ;'):
            said = subprocess.run(
                ["bash", "-c",
                 f'ulimit -f 0; {what_the_program_does} exec "$@"', "bash",
                 GREETER / "greeter_client", f"127.0.0.1:{self.port}"],
                text=True, capture_output=True, timeout=LIMIT_S, check=True,
                env={**os.environ,
                     "PENSTOCK_TRACE": str(self.folder / "client.json")})
            self.assertIn("Hello", said.stdout)
            self.assertEqual(
                said.stderr.count("PENSTOCK_TRACE: the trace ends here"), 1)
            self.assertIn("ulimit -f", said.stderr)

    def test_a_recording_without_room_costs_one_line_and_nothing_else(self):
        server = subprocess.Popen(
            ["bash", "-c", 'ulimit -f 0; exec "$@"', "bash",
             GREETER / "greeter_server", "127.0.0.1:0"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ,
                 "PENSTOCK_RECORD": str(self.folder / "server.gz")})
        self.addCleanup(server.kill)
        port = server.stdout.readline().split()[-1]
        done = subprocess.run(
            [GREETER / "greeter_client", f"127.0.0.1:{port}"], text=True,
            stdout=subprocess.PIPE, timeout=LIMIT_S, check=True)
        self.assertIn("Hello", done.stdout)
        server.kill()
        said = server.communicate(timeout=LIMIT_S)[1]
        self.assertEqual(
            said.count("PENSTOCK_RECORD is not used: write a recording to"), 1,
            said)
        self.assertIn("ulimit -f", said)

    def test_a_disk_that_fills_leaves_an_array_and_a_count(self):
        """Tests that the file has all events for which there was room, and that
        all other events are counted."""
        calls = 40
        trace = self.folder / "full.json"
        server = subprocess.Popen(
            ["bash", "-c", 'ulimit -f 8; trap "" XFSZ; exec "$@"', "bash",
             GREETER / "greeter_server", "127.0.0.1:0"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "PENSTOCK_TRACE": str(trace)})
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        port = server.stdout.readline().split()[-1]
        for _ in range(calls):
            subprocess.run(
                [GREETER / "greeter_client", f"127.0.0.1:{port}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=LIMIT_S, check=True)
        dropped = 0
        limit = time.monotonic() + LIMIT_S / 2
        while (len(self.names(trace)) // 2 + dropped < calls and
               time.monotonic() < limit):
            dropped = self.dropped(server.pid)
        self.assertGreater(dropped, 0)
        self.assertEqual(len(self.names(trace)) // 2 + dropped, calls)

    @staticmethod
    def dropped(pid):
        """Returns how many events of its trace a process has dropped."""
        with socket.socket(socket.AF_UNIX) as asker:
            asker.connect(f"\0penstock-status-{pid}")
            asker.sendall(b"metrics\n")
            answer = asker.makefile(encoding="ascii").read()
        return int(re.search(r"^penstock_trace_events_dropped_total (\d+)",
                             answer, re.MULTILINE)[1])


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
