#!/usr/bin/env -S python3 -B
"""Tests the clock of tools/setup."""

import os
import pathlib
import pty
import signal
import subprocess
import tempfile
import time
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent


def script(commands):
    return ["bash", "-euc", f". {TOOLS}/clock.sh; {commands}"]


def read_to_end(terminal):
    """Reads until no process has the terminal any more."""
    data = b""
    while True:
        try:
            data += os.read(terminal, 65536)
        except OSError:  # EIO
            return data


class ClockTest(unittest.TestCase):

    def run_bash(self, commands):
        return subprocess.run(script(commands), text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_a_fast_command_is_silent_and_its_exit_code_is_kept(self):
        run = self.run_bash("with_clock x '' bash -c 'exit 7'")
        self.assertEqual((run.returncode, run.stderr), (7, ""))

    def test_a_slow_command_shows_time_and_the_end_of_its_log(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            log.write_text("Get:1 one\nUnpacking two\n\n")
            run = self.run_bash(f"show_clock setup {log} 10; "
                                f"show_clock setup {log} 11; "
                                "show_clock setup '' 130")
        self.assertEqual(run.stderr,
                         "setup, 0:10: Unpacking two\nsetup, 2:10\n")

    def test_a_terminal_is_redrawn_each_second(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        run = subprocess.Popen(script("with_clock x '' read -t 4.5 <> <(:)"),
                               stderr=theirs)
        os.close(theirs)
        said = read_to_end(ours).decode()
        run.wait()
        self.assertTrue(said.startswith("\x1b[Kx, 0:01\r\x1b[Kx, 0:02\r"), said)
        self.assertTrue(said.endswith("\x1b[K"), said)

    def test_no_process_stays_however_the_script_ends(self):
        for number in signal.SIGINT, signal.SIGKILL:
            run = subprocess.Popen(
                script("with_clock x '' bash -c 'echo; exec sleep 100'"),
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                start_new_session=True)
            run.stdout.readline()
            os.killpg(run.pid, number)
            run.wait()
            run.stdout.close()
            self.assert_no_group(run.pid)

    def assert_no_group(self, group):
        for _ in range(600):
            try:
                os.killpg(group, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)
        self.fail("a process stayed")


if __name__ == "__main__":
    unittest.main()
