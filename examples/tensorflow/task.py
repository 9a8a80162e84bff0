"""Runs a program as one task of demo.py, which starts this; see cluster.py.

usage: task.py LAUNCHER DESCRIPTION [--leads] PROGRAM [ARGUMENTS...]

The program is one of TensorFlow, and knows nothing of this. The process ends
when its launcher dies, whose process id is LAUNCHER, and else

- with --leads: when the program ends. Standard input holds one line for each
  line that the program may print: until it comes, the program waits.
- without: also when standard input ends.

Before, what penstock_tensorflow.describe() says is written to DESCRIPTION.
"""

import ctypes
import json
import os
import pathlib
import runpy
import signal
import sys
import threading

PR_SET_PDEATHSIG = 1


def end_with(launcher):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher:  # it died before the line above
        os._exit(1)


def describe(file):
    try:
        import penstock_tensorflow  # pylint: disable=import-outside-toplevel
        description = penstock_tensorflow.describe()
    except ImportError:
        description = {"servers": []}
    pathlib.Path(file).write_text(json.dumps(description), encoding="utf-8")


def end_with_input(description):
    sys.stdin.read()
    describe(description)
    os._exit(0)


class Turns:
    """Standard output that goes on after a line when the launcher says so."""

    def __init__(self, output):
        self._output = output

    def write(self, text):
        self._output.write(text)
        if "\n" in text:
            self._output.flush()
            if not sys.stdin.readline():
                os._exit(1)

    def __getattr__(self, name):
        return getattr(self._output, name)


def main():
    launcher, description, *program = sys.argv[1:]
    end_with(int(launcher))
    if program[0] == "--leads":
        program.pop(0)
        sys.stdout = Turns(sys.stdout)
    else:
        threading.Thread(
            target=end_with_input, args=(description,), daemon=True).start()
    sys.argv = program
    sys.path[0] = str(pathlib.Path(program[0]).parent)
    runpy.run_path(program[0], run_name="__main__")
    describe(description)


main()
