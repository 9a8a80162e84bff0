#!/usr/bin/env -S python3 -B
"""Runs Bazel for tools/test and tools/lint, and shows how far it is.

  watch.py --name=NAME --events=FILE [--testing] COMMAND [ARGUMENT...]

COMMAND is Bazel with --build_event_json_file=FILE and --noshow_progress.
Prints Bazel's output, without chatter, to standard output. Writes progress to
standard error: on a terminal a bar that is redrawn each second, elsewhere a
line every 30 s. Exits as COMMAND does.

Environment, set by tools/gate/steps.sh; each may be missing or empty:
  GATE_BEGUN       when the whole run began, in seconds since the epoch
  GATE_EXPECTED_S  how long this step takes by experience
  GATE_AFTER_S     how long the steps after it take
"""

import argparse
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time

import progress_line

ESCAPES = re.compile(rb"\x1b\[[\d;]*[A-Za-z]|\r")
# Lines about Bazel itself, not about the code.
CHATTER = re.compile(
    rb"INFO: (?:Analyzed |Found |Elapsed time|Critical Path|Invocation ID|"
    rb"Build completed|Build option |Build Event Protocol|"
    rb"\d+ process|Writing tracer profile)|"
    rb"(?:Loading|Analyzing): |\[[\d,]+ / [\d,]+\] |"
    rb"There were tests whose specified size is too big")

# Bazel's exit code after an interruption. Tests that were running are wrongly
# reported as failed.
INTERRUPTED = 8


def is_chatter(line):
    return CHATTER.match(ESCAPES.sub(b"", line)) is not None


def number_in(name):
    try:
        return float(os.environ.get(name, ""))
    except ValueError:
        return None


def line_of(name):
    """Returns the line of progress, by the environment."""
    return progress_line.Line(name, time.time, number_in("GATE_BEGUN"),
                              number_in("GATE_EXPECTED_S"),
                              number_in("GATE_AFTER_S"))


class Screen:
    """Shows lines of output, and below them the progress.

    Not for several threads. On a terminal the bar is erased before each line.
    """

    def __init__(self, line, describe):
        """describe: returns the progress in words, and as a share of the
        whole."""
        self._line, self._describe = line, describe
        self._terminal = sys.stderr.isatty()
        self._bar = False

    def tick(self):
        """Shows the progress. Call about once a second."""
        if self._terminal:
            columns = shutil.get_terminal_size().columns
            print("\r\x1b[K" + self._line.bar(*self._describe(), columns),
                  end="", file=sys.stderr, flush=True)
            self._bar = True
        elif self._line.due():
            self._say(self._line.text(*self._describe()))

    def finish(self):
        self.erase()
        self._say(self._line.final(self._describe()[0]))

    def show(self, data):
        self.erase()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()

    def erase(self):
        if self._bar:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self._bar = False

    @staticmethod
    def _say(text):
        print(text, file=sys.stderr, flush=True)


class Events:
    """Follows a file of build events while Bazel writes it."""

    def __init__(self, path, progress):
        self._path, self._progress, self._file = path, progress, None

    def read(self):
        if self._file is None:
            try:
                self._file = open(self._path, "rb")
            except OSError:
                return
        self._progress.feed(self._file.read())


class Output:
    """Sorts Bazel's output by lines."""

    def __init__(self, show):
        self._show, self._part = show, b""

    def take(self, data):
        *lines, self._part = (self._part + data).split(b"\n")
        kept = b"".join(line + b"\n" for line in lines if not is_chatter(line))
        if kept:
            self._show(kept)

    def end(self):
        if self._part:
            self.take(b"\n")


def start(command):
    # Starts Bazel's client so that it gets a signal, however this process ends.
    if shutil.which("setpriv"):
        command = ["setpriv", "--pdeathsig", "TERM", "--", *command]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # Ignores Ctrl-C, which reaches the child by itself, and the child then ends
    # properly.
    signal.signal(signal.SIGINT, lambda *_: None)
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda *_: child.terminate())
    return child


def follow(child, events, screen):
    """Shows progress and output until the child has ended."""
    output, pipe = Output(screen.show), child.stdout.fileno()
    updated = 0
    while True:
        if select.select([pipe], [], [], 0.5)[0]:
            data = os.read(pipe, 65536)
            if not data:
                break
            output.take(data)
        elif child.poll() is not None:
            break  # Bazel's server may hold the pipe open
        if time.monotonic() - updated >= 1:
            updated = time.monotonic()
            events.read()
            screen.tick()
    output.end()
    code = child.wait()
    events.read()
    return code


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", required=True)
    parser.add_argument("--events", required=True)
    parser.add_argument("--testing", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()

    # Removes the events of an earlier run.
    if os.path.exists(arguments.events):
        os.unlink(arguments.events)
    progress = progress_line.BazelProgress()
    screen = Screen(line_of(arguments.name),
                    lambda: (progress.text(arguments.testing),
                             progress.share(arguments.testing)))
    code = follow(start(arguments.command),
                  Events(arguments.events, progress), screen)
    if progress.has_targets() and code != INTERRUPTED:
        screen.finish()
    else:
        screen.erase()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
