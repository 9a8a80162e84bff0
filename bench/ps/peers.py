#!/usr/bin/env python3
"""Measures pulls, pushes and whole steps of one table of 10 million floats,
alternately with Penstock's parameter server and with others.

usage: bench/ps/peers.py [--elements=10000000] [--rounds=5] [--count=5]
           [--training=bazel-bin/bench/ps/training/training]

  stock, tcp, shm  Penstock's server, over stock gRPC and over Penstock. A push
                   is acknowledged once its gradient is checked, and applied
                   afterwards; a step ends when the new values have arrived
  torch            torch.distributed.rpc with TensorPipe, rpc_sync(); a push is
                   applied when it returns (tools/setup --torch)
  tensorflow       ParameterServerStrategy, one worker and one server, over its
                   own gRPC; a push is applied when it returns
                   (tools/setup --tensorflow)
  ps-lite          not measured: it is not packaged. The figures are from an
                   earlier run, with 10 million keyed floats

Each round runs --count of each operation with each peer. The table has the
medians of the rounds' medians in milliseconds, the quartiles, and the ratio to
shm. Missing peers are listed.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from ports import free_ports  # noqa: E402

OPS = ("pull", "push", "step")
OURS = ("stock", "tcp", "shm")
PS_LITE = {"pull": 190.0, "push": 141.0}


class Peer:
    """The processes of one system. The last process measures. All of them end
    when their input ends."""

    def __init__(self, python, commands):
        self._tasks = [subprocess.Popen(
            [python, HERE / command[0], *command[1:]], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2", **variables))
            for command, variables in commands]

    def hear(self):
        line = self._tasks[-1].stdout.readline()
        if not line:
            raise RuntimeError("it has died")
        return json.loads(line)

    def measure(self, op, count):
        """Asks the last process to run an operation `count` times. Returns the
        median in seconds."""
        request = json.dumps(dict(op=op, count=count))
        self._tasks[-1].stdin.write(request + "\n")
        self._tasks[-1].stdin.flush()
        return statistics.median(self.hear())

    def stop(self):
        for task in reversed(self._tasks):
            task.kill()
            task.wait()


def python_with(module, candidates):
    for python in candidates:
        if pathlib.Path(python).exists() and subprocess.run(
                [python, "-c", f"import {module}"], check=False,
                stderr=subprocess.DEVNULL).returncode == 0:
            return str(python)
    raise RuntimeError(f"no Python here has {module}: tools/setup --{module}")


def start_torch(elements):
    python = python_with("torch", [sys.executable, "/usr/bin/python3"])
    port = str(free_ports(1)[0])
    return Peer(python, [
        (["peer_torch.py", role, port, str(elements)], {})
        for role in ("server", "worker")])


def start_tensorflow(elements):
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    home = os.environ.get("PENSTOCK_TENSORFLOW") or pathlib.Path(
        cache, "penstock/tensorflow")
    python = python_with("tensorflow", [
        pathlib.Path(home, "bin/python3"), sys.executable])
    jobs = ("ps", "worker", "chief")
    cluster = {job: [f"127.0.0.1:{port}"]
               for job, port in zip(jobs, free_ports(len(jobs)))}
    return Peer(python, [
        (["peer_tensorflow.py", str(elements)],
         {"TF_CONFIG": json.dumps(dict(cluster=cluster,
                                       task=dict(type=job, index=0)))})
        for job in jobs])


def start(name, make, elements, count):
    """Starts a peer, and runs each operation once. Returns the peer, or None
    on failure."""
    peer = None
    try:
        peer = make(elements)
        peer.hear()
        for op in OPS:
            peer.measure(op, count)
        return peer
    except (RuntimeError, OSError) as error:
        print(f"peers: {name} is left out: {error}", file=sys.stderr)
        if peer is not None:
            peer.stop()
        return None


def measure_ours(flags):
    """Runs the training program for one round. Returns the times of each
    transport, by name and operation."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(
            [flags.training.resolve(), "--workloads=dense", "--rounds=1",
             f"--elements={flags.elements}", f"--seconds={flags.seconds}",
             "--contenders=" + ",".join(OURS), f"--json={file.name}"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        figures = json.load(file)["dense"]
    return {name: {op: figures[name][op][0] for op in OPS} for name in OURS}


def cell(samples, of):
    median = statistics.median(samples)
    low, _, high = (statistics.quantiles(samples, n=4, method="inclusive")
                    if len(samples) > 1 else (median,) * 3)
    return f"{median:.3g} ({low:.3g}-{high:.3g}) x{median / of:.3g}"


def print_table(elements, samples):
    print(f"{elements} floats, ms" + "".join(f"{op:>32}" for op in OPS))
    shm = {op: statistics.median(samples["shm"][op]) for op in OPS}
    for name, by_op in samples.items():
        print(f"{name:20}" + "".join(
            f"{cell(by_op[op], shm[op]):>32}" for op in OPS))
    quoted = (f"{PS_LITE[op]:g} (quoted)" if op in PS_LITE else "-"
              for op in OPS)
    print(f"{'ps-lite':20}" + "".join(f"{each:>32}" for each in quoted))


def parse_flags():
    parser = argparse.ArgumentParser(
        usage=argparse.SUPPRESS, description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--training", type=pathlib.Path,
                        default=HERE.parents[1]
                        / "bazel-bin/bench/ps/training/training")
    return parser.parse_args()


def main():
    flags = parse_flags()
    if not flags.training.exists():
        sys.exit(f"peers: no {flags.training}: "
                 "bazel build //bench/ps/training")
    peers = {"torch": start_torch, "tensorflow": start_tensorflow}
    peers = {name: start(name, make, flags.elements, flags.count)
             for name, make in peers.items()}
    peers = {name: peer for name, peer in peers.items() if peer is not None}
    samples = {name: {op: [] for op in OPS} for name in (*OURS, *peers)}
    try:
        for _ in range(flags.rounds):
            for name, figures in measure_ours(flags).items():
                for op in OPS:
                    samples[name][op].append(figures[op] * 1e3)
            for name, peer in peers.items():
                for op in OPS:
                    samples[name][op].append(
                        peer.measure(op, flags.count) * 1e3)
    finally:
        for peer in peers.values():
            peer.stop()
    print_table(flags.elements, samples)


main()
