"""Runs programs with Penstock's library preloaded, and reads their output."""

import os
import re
import subprocess
import threading

FOLDER = os.path.abspath("preload")
STUB = f"{FOLDER}/libpenstock-preload.so"
LIBRARY = os.path.abspath("penstock/libpenstock.so.0")
PYTHON = "/usr/bin/python3"

# The timeout of a program in seconds. Allows for slow and busy machines.
SECONDS = 60

OVER_SHM = r"penstock\[\d+\]: connection (to|from) \S+: shm \(ring"
NOT_USED = r"warning penstock\[\d+\]: Penstock is not used(?: for \S+)?: (.*)"


def environment(preload=STUB, **settings):
    """Returns this process's environment without Penstock's settings, plus the
    given ones."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("PENSTOCK_", "LD_PRELOAD"))}
    if preload:
        kept["LD_PRELOAD"] = preload
    return {**kept, "PENSTOCK_LIBRARY": LIBRARY, "PYTHONDONTWRITEBYTECODE": "1",
            **settings}


class Ended:
    """The result of a program that has ended."""

    def __init__(self, code, said, log):
        self.code, self.said, self.log = code, said, log

    def sides_over_shm(self):
        return {match[1] for match in re.finditer(OVER_SHM, self.log)}

    def reasons_not_to(self):
        return re.findall(NOT_USED, self.log)

    def __repr__(self):
        return f"code {self.code}\n{self.said}\n{self.log}"


def run(*command, preload=STUB, **settings):
    done = subprocess.run(command, env=environment(preload, **settings),
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=SECONDS)
    return Ended(done.returncode, done.stdout, done.stderr)


class Child:
    """A server that prints its port on a line, and ends with its standard
    input."""

    def __init__(self, *command, preload=STUB, **settings):
        self.process = subprocess.Popen(
            command, env=environment(preload, **settings),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self._log = []
        self._reader = threading.Thread(
            target=lambda: self._log.extend(self.process.stderr))
        self._reader.start()
        self.first_line = self.process.stdout.readline().strip()
        self.address = "127.0.0.1:" + (self.first_line.split() or [""])[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.process.stdout.closed:
            self.process.kill()
            self.end()

    def maps(self):
        with open(f"/proc/{self.process.pid}/maps", encoding="utf-8") as maps:
            return maps.read()

    def end(self):
        """Ends the program. Returns its exit status and its output."""
        said, _ = "", self.process.stdin.close()
        try:
            said = self.process.stdout.read()
            code = self.process.wait(SECONDS)
        finally:
            self.process.kill()
            self._reader.join()
            self.process.stdout.close()
            self.process.stderr.close()
        return Ended(code, self.first_line + "\n" + said, "".join(self._log))
