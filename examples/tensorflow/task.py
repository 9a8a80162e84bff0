"""Runs a program as one task of demo.py; see cluster.py.

usage: task.py LAUNCHER DESCRIPTION [--leads] PROGRAM [ARGUMENTS...]

The program is an unmodified TensorFlow program. The process ends when standard
input ends, or when the launcher dies; LAUNCHER is the launcher's process id.
The result of penstock_tensorflow.describe() is written to DESCRIPTION when the
program ends and, without --leads, after each line of standard input. With
--leads, the program waits for a line of standard input after each line that it
prints.
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
DESCRIBING = threading.Lock()


def end_with(launcher):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher:  # the launcher died before prctl()
        os._exit(1)


def describe(file):
    try:
        import penstock_tensorflow  # pylint: disable=import-outside-toplevel
        description = penstock_tensorflow.describe()
    except ImportError:
        description = {"servers": []}
    part = pathlib.Path(file + ".part")
    with DESCRIBING:
        part.write_text(json.dumps(description), encoding="utf-8")
        part.rename(file)


# Ends the process when standard input ends, without TensorFlow's own shutdown.
# The shutdown takes up to half a minute, and destructors of its servers fail.
def end_with_input(description):
    for _ in sys.stdin:
        describe(description)
    os._exit(0)


class Turns:
    """A standard output that blocks after each line until the launcher lets
    the program continue."""

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
    if isinstance(sys.stdout, Turns):
        end_with_input(description)
    else:
        threading.Event().wait()


main()
