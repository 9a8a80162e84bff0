"""Runs further processes of a test."""

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


def run(program, arguments=(), **options):
    """Runs a Python program until it ends. Returns its result."""
    return subprocess.run([sys.executable, "-B", "-c", program, *arguments],
                          text=True, capture_output=True, timeout=60, **options)


@contextlib.contextmanager
def server():
    """Runs a TensorServer in its own process. Yields its address."""
    process = subprocess.Popen([sys.executable, "-B", "-c", SERVER], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        yield f"127.0.0.1:{int(process.stdout.readline())}"
        process.stdin.close()
        assert process.wait(timeout=30) == 0


@contextlib.contextmanager
def ps_server(*flags, workers=1):
    """Runs the program ps_server. Yields its address."""
    process = subprocess.Popen(
        ["ps/ps_server", f"--workers={workers}", "--quiet", *flags], text=True,
        stdout=subprocess.PIPE)
    with process:
        word, port = process.stdout.readline().split()
        assert word == "port"
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            assert process.wait(timeout=30) == 0


def mapping_of(array):
    """Returns the line of /proc/self/maps for the memory of the array."""
    at = array.__array_interface__["data"][0]
    with open("/proc/self/maps") as maps:
        for line in maps:
            begin, end = (int(x, 16) for x in line.split()[0].split("-"))
            if begin <= at < end:
                return line
    return ""
