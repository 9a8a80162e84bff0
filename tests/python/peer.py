"""Processes beside that of a test."""

import contextlib
import subprocess
import sys

SERVER = """
import sys
import penstock
with penstock.TensorServer(budget_bytes=2**28) as server:
    print(server.port, flush=True)
    sys.stdin.read()  # until the test closes it
"""


def run(program, **options):
    """Runs a Python program to its end; returns what became of it."""
    return subprocess.run([sys.executable, "-B", "-c", program], text=True,
                          capture_output=True, timeout=60, **options)


@contextlib.contextmanager
def server():
    """A TensorServer in a process of its own; yields its address."""
    process = subprocess.Popen([sys.executable, "-B", "-c", SERVER], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        yield f"127.0.0.1:{int(process.stdout.readline())}"
        process.stdin.close()
        assert process.wait(timeout=30) == 0
