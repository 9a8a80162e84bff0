"""Clusters of TensorFlow tasks that measure steps; a task is a process."""

import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SETTINGS = {
    "grpc": ("grpc", {}),
    "copy": ("grpc+penstock", {}),
    "pool": ("grpc+penstock", {"PENSTOCK_TENSORFLOW_MEMORY": "pool"}),
    "tcp": ("grpc+penstock", {"PENSTOCK_FABRICS": "tcp"}),
    "verbs": ("grpc+penstock", {"PENSTOCK_FABRICS": "verbs,tcp"}),
}


def environment():
    """Returns the folder of the virtual environment with TensorFlow."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    named = os.environ.get("PENSTOCK_TENSORFLOW")
    return pathlib.Path(named or pathlib.Path(cache, "penstock/tensorflow"))


def make_wheel(folder):
    built = subprocess.run([ROOT / "tools/tensorflow_wheel", folder],
                           stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        sys.exit("steps: no wheel, see above")
    return built.stdout.strip().splitlines()[-1]


def install(wheel, folder):
    """Unpacks the wheel into `folder`, and returns the folder in which
    TensorFlow looks for plugins."""
    site = pathlib.Path(folder, "site-packages")
    subprocess.run([environment() / "bin/python3", "-m", "zipfile", "-e",
                    wheel, site], check=True)
    return site


def addresses(hosts, **counts):
    """Returns {job: addresses}. `counts` has the number of tasks per job. The
    tasks alternate over the hosts."""
    cluster, sockets = {}, []
    for job, count in counts.items():
        cluster[job] = []
        for _ in range(count):
            host = hosts[len(sockets) % len(hosts)]
            sockets.append(socket.socket())
            sockets[-1].bind((host, 0))
            cluster[job].append(f"{host}:{sockets[-1].getsockname()[1]}")
    for each in sockets:
        each.close()
    return cluster


class Task:
    """One process of a cluster. The process ends when its input ends."""

    def __init__(self, program, cluster, job, index, protocol, variables):
        self.name = f"{job} {index}"
        spec = dict(cluster=cluster, job=job, index=index, protocol=protocol)
        config = dict(cluster=cluster, task=dict(type=job, index=index),
                      rpc_layer=protocol)
        self._process = subprocess.Popen(
            [environment() / "bin/python3", HERE / program, json.dumps(spec)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
            env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2",
                     TF_CONFIG=json.dumps(config), **variables))

    def tell(self, request):
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def hear(self):
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"steps: the task {self.name} has died")
        return json.loads(line)

    def stop(self):
        self._process.kill()
        self._process.wait()


class Contender:
    """The cluster of one contender. A cluster supports some of the operations.
    """

    def __init__(self, name, kind, site, flags):
        protocol, variables = SETTINGS[name]
        variables = dict(variables, PYTHONPATH=str(site))
        cluster = addresses(flags.hosts, **kind.jobs(flags))
        self._tasks = [
            Task(kind.program, cluster, job, index, protocol, variables)
            for job, tasks in cluster.items() for index in range(len(tasks))]
        self._measuring = [task for task in self._tasks
                           if task.name.split()[0] == kind.measures]

    def wait_until_ready(self):
        for task in self._tasks:
            task.hear()

    def _ask(self, request):
        """Sends a request to all measuring tasks. Returns the first task's
        answer."""
        for task in self._measuring:
            task.tell(request)
        return [task.hear() for task in self._measuring][0]

    def measure(self, op, shapes, seconds):
        """Makes steps for about `seconds` seconds, and returns their median
        time in milliseconds."""
        trial = self._ask(dict(op=op, shapes=shapes, steps=3))
        steps = max(3, int(seconds * 1e3 / statistics.median(trial)))
        return statistics.median(self._ask(
            dict(op=op, shapes=shapes, steps=steps)))

    def forget(self):
        """Lets the tasks release the objects of a workload."""
        self._ask(dict(op="forget"))

    def paths(self):
        """Returns a text with the paths of the tensors that the measuring task
        receives."""
        description = self._ask(dict(op="describe"))
        return sorted({route["path"] for server in description["servers"]
                       for route in server["routes"]
                       if route["bytes_received"] > 0}) or ["grpc"]

    def stop(self):
        for task in self._tasks:
            task.stop()
