"""Starts a cluster of TensorFlow tasks on this host, each in its own process.
"""

import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import time

TASK = pathlib.Path(__file__).resolve().with_name("task.py")

# Limits the seconds until a task's first output. Longer than a start takes on a
# machine that compiles on all cores: ten parallel `import tensorflow` took more
# than three minutes.
SILENCE_LIMIT_S = 600
END_LIMIT_S = 60
LOG_LINES = 20


# The environment variables of a task, unless a user has set them. Without
# CUDA_VISIBLE_DEVICES, all tasks would allocate all memory of the same GPU.
DEFAULTS = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}


class Failure(Exception):
    """An error with a message for the user."""


def free_addresses(jobs):
    """Returns {job: addresses}, with a free port for each task."""
    sockets = {
        job: [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        for job, count in jobs.items()
    }
    addresses = {}
    for job, servers in sockets.items():
        addresses[job] = [
            f"127.0.0.1:{each.getsockname()[1]}" for each in servers]
        for each in servers:
            each.close()
    return addresses


class Task:
    def __init__(self, name, command, config, folder, leads):
        self.name = name
        self._log = folder / f"{name}.log"
        self._description = folder / f"{name}.json"
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(TASK), str(os.getpid()),
                 str(self._description), *(["--leads"] if leads else []),
                 *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if leads else log, stderr=log,
                env=dict(DEFAULTS, **os.environ,
                         TF_CONFIG=json.dumps(config)))
        self._said = b""

    def death(self):
        """Returns a description of the task's failure, or None."""
        code = self._process.poll()
        if code is None or code == 0:
            return None
        how = (f"was killed by signal {-code} ({signal.strsignal(-code)})"
               if code < 0 else f"exited with {code}")
        return f"{self.name} {how}{self.end_of_log()}"

    def has_description(self):
        return self._description.exists()

    def end_of_log(self):
        lines = self._log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        if not lines:
            return "; it had logged nothing"
        return "; the end of its log:\n" + "\n".join(f"  {x}" for x in lines)

    def read_line(self, seconds):
        """Returns the next line of output, or None after `seconds`."""
        output = self._process.stdout
        deadline = time.monotonic() + seconds
        while b"\n" not in self._said:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([output], [], [], left)[0]:
                return None
            part = os.read(output.fileno(), 4096)
            if not part:  # the task is about to end
                time.sleep(left)
                return None
            self._said += part
        line, self._said = self._said.split(b"\n", 1)
        return line.decode()

    def write_line(self):
        """Lets the leader continue. Makes any other task write its
        description."""
        try:
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the task has died, which _check() reports

    def end_input(self):
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass

    def wait(self, deadline):
        try:
            self._process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            raise Failure(
                f"{self.name} does not end{self.end_of_log()}") from None

    def description(self):
        return json.loads(self._description.read_text(encoding="utf-8"))

    def kill(self):
        self._process.kill()
        self._process.wait()
        self.end_input()
        if self._process.stdout:
            self._process.stdout.close()


class Cluster:
    """A cluster of tasks. The first task of the first job leads. The cluster's
    output is the output of this leader."""

    def __init__(self, jobs, protocol, command, folder):
        folder.mkdir()
        addresses = free_addresses(jobs)
        self._tasks = []
        self._waits = False  # true while the leader waits
        try:
            for job, count in jobs.items():
                for index in range(count):
                    config = {"cluster": addresses, "rpc_layer": protocol,
                              "task": {"type": job, "index": index}}
                    self._tasks.append(Task(
                        f"{job} {index}", command, config, folder,
                        leads=not self._tasks))
        except BaseException:
            self.kill()
            raise

    def next_line(self):
        """Continues the leader until its next line, and returns the line."""
        leader = self._tasks[0]
        if self._waits:
            leader.write_line()
        for _ in range(SILENCE_LIMIT_S):
            line = leader.read_line(seconds=1)
            self._check()  # a chief continues if a worker dies
            if line is not None:
                self._waits = True
                return line
            if leader.has_description():
                raise Failure(
                    f"{leader.name} ended early{leader.end_of_log()}")
        raise Failure(f"{leader.name} has said nothing for {SILENCE_LIMIT_S} s"
                      + leader.end_of_log())

    def finish(self):
        """Ends the tasks. Returns the result of describe() of each, by name."""
        deadline = time.monotonic() + END_LIMIT_S
        # End the leader first, because other tasks serve it.
        for task in self._tasks:
            task.write_line()
            while not task.has_description():
                self._check()
                if time.monotonic() > deadline:
                    raise Failure(
                        f"{task.name} does not end{task.end_of_log()}")
                time.sleep(0.01)
        for task in self._tasks:
            task.end_input()
        for task in self._tasks:
            task.wait(deadline)
        self._check()
        return {task.name: task.description() for task in self._tasks}

    def _check(self):
        """Raises an error if tasks have died. Often one death causes others."""
        deaths = [death for task in self._tasks if (death := task.death())]
        if deaths:
            raise Failure("\n".join(deaths))

    def kill(self):
        for task in self._tasks:
            task.kill()
