"""Starts clusters of TensorFlow tasks on this host, each in its own
process."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from ports import free_ports

TASK = pathlib.Path(__file__).with_name("task.py")


def addresses(**counts):
    """Returns a cluster with the given number of tasks of each job, at free
    ports.
    """
    return {
        job: [f"127.0.0.1:{port}" for port in free_ports(count)]
        for job, count in counts.items()
    }


class Task:
    """A task whose output goes to the test's output."""

    def __init__(self, cluster, job, index, protocol, **environment):
        spec = json.dumps(
            dict(cluster=cluster, job=job, index=index, protocol=protocol)
        )
        self.process = subprocess.Popen(
            [sys.executable, str(TASK), spec],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ, **environment),
        )

    def wait_until_ready(self):
        line = self.process.stdout.readline()
        assert line == "ready\n", f"the task said {line!r}"
        return self

    def describe(self):
        self.process.stdin.write("describe\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Ends the process if it still runs."""
        if self.process.poll() is None:
            self.kill()
        self.process.stdin.close()
        self.process.stdout.close()


def route_to(description, address):
    """Returns the route of describe() to the peer at an address, or None."""
    for server in description["servers"]:
        for route in server["routes"]:
            if route["address"] == address:
                return route
    return None


def wait_for(condition, seconds=20):
    """Calls the function until it returns something true, and returns the
    result."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result or time.monotonic() > deadline:
            return result
        time.sleep(0.05)
