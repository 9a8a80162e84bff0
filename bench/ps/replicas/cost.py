#!/usr/bin/python3
"""Measures the cost of backups of shards: the time of an acknowledged push, CPU
seconds, and bytes between servers.

Starts an etcd, and for each number of backups three servers and a worker. All
run at the same time, and push in turn, so that a disturbance of the machine
affects all alike. The row "without" has servers without etcd and replicas.

  cost.py [--rounds=N] [--seconds=S] [--bytes=N] [--tables=dense,rows]
"""

import argparse
import atexit
import contextlib
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from ports import free_ports  # noqa: E402

PROGRAMS = pathlib.Path(__file__).resolve().parents[3]
GROUPS = {"without": None, "0": 0, "1": 1, "2": 2}
SERVERS = 3
TICKS = os.sysconf("SC_CLK_TCK")


def start(command, **environment):
    errors = tempfile.TemporaryFile()
    process = subprocess.Popen(
        [str(word) for word in command], text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=errors,
        env={**os.environ, "PENSTOCK_LOG": "warning", **environment})
    process.errors = errors
    atexit.register(process.kill)
    return process


def build_command(program_path):
    """Returns the command that builds a program, from its path in bazel-bin."""
    folder, _, name = str(program_path).rpartition("/")
    return f"bazel build //{folder.rpartition('bazel-bin/')[2]}:{name}"


def find(process, wanted):
    """Reads the process's output up to a line with `wanted`."""
    for line in process.stdout:
        if wanted in line:
            return line
    process.errors.seek(0)
    said = process.errors.read().decode(errors="replace").strip()
    raise SystemExit(
        f"{process.args[0]} has ended before it printed {wanted!r}: "
        f"{said[-500:] or 'it said nothing'}\nIf it is of an older build: "
        f"{build_command(process.args[0])}")


def program(name):
    for folder in (PROGRAMS, PROGRAMS / "bazel-bin"):
        if (folder / name).exists():
            return folder / name
    raise SystemExit(f"{name} is not built: {build_command(name)}")


class Etcd:
    def __init__(self, folder):
        found = shutil.which("etcd") or next(iter(
            (pathlib.Path.home() / ".cache/penstock/etcd").glob("usr/bin/etcd")),
            None)
        if found is None:
            raise SystemExit("no etcd here: apt-get install etcd-server")
        client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
        self.address = client.partition("//")[2]
        self.process = start([
            found, f"--data-dir={folder}", f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}"])


@contextlib.contextmanager
def running_etcd():
    """Runs an etcd, whose files are in memory if possible."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        etcd = Etcd(folder)
        try:
            yield etcd
        finally:
            etcd.process.kill()
            etcd.process.wait()


class Group:
    """Three servers and their worker."""

    def __init__(self, name, backups, etcd, table, size):
        self.name = name
        ports = free_ports(2 * SERVERS)
        self.metrics = ports[SERVERS:]
        addresses = [f"127.0.0.1:{port}" for port in ports[:SERVERS]]
        self.servers = []
        for i, address in enumerate(addresses):
            flags = [f"--listen={address}", "--workers=1"]
            if backups is not None:
                flags += [f"--etcd={etcd.address}", f"--servers={SERVERS}",
                          f"--etcd-prefix={table}{name}", f"--name=ps-{i}",
                          f"--replicas={backups}"]
            self.servers.append(start(
                [program("ps/ps_server"), *flags],
                PENSTOCK_METRICS=f"127.0.0.1:{self.metrics[i]}"))
        for each in self.servers:
            find(each, "port ")
        self.worker = start([
            program("bench/ps/replicas/replicas_worker"),
            f"--servers={','.join(addresses)}", f"--table={table}",
            f"--bytes={size}"])
        find(self.worker, "ready")
        self.times, self.cpu, self.received = [], 0, 0
        self.medians = []

    def server_cpu(self):
        total = 0
        for each in self.servers:
            stat = pathlib.Path(f"/proc/{each.pid}/stat").read_text()
            total += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
        return total / TICKS

    def server_bytes(self):
        """Returns the bytes of the messages that the servers received."""
        total = 0
        for port in self.metrics:
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{port}/metrics") as page:
                text = page.read().decode()
            total += sum(float(value) for value in re.findall(
                r'^penstock_message_bytes_total\{[^}]*direction="received"'
                r'[^}]*\} (\S+)', text, re.MULTILINE))
        return total

    def push(self, seconds):
        cpu, received = self.server_cpu(), self.server_bytes()
        self.worker.stdin.write(f"{seconds}\n")
        self.worker.stdin.flush()
        times = list(map(int, self.worker.stdout.readline().split()))
        if not times:
            raise SystemExit(f"the worker of group {self.name} has ended")
        self.cpu += self.server_cpu() - cpu
        self.received += self.server_bytes() - received
        self.times += times
        self.medians.append(statistics.median(times))

    def end(self):
        for each in (self.worker, *self.servers):
            each.send_signal(signal.SIGKILL)
            each.wait()


def measure(table, options, etcd):
    groups = [Group(name, backups, etcd, table, options.bytes)
              for name, backups in GROUPS.items()]
    for group in groups:  # backups catch up, and pages are touched
        group.push(options.seconds)
        group.times, group.medians, group.cpu, group.received = [], [], 0, 0
    for round_number in range(options.rounds):
        for i in range(len(groups)):
            groups[(i + round_number) % len(groups)].push(options.seconds)
    print(f"\n{table}, {options.bytes} bytes a push, {options.rounds} rounds "
          f"of {options.seconds} s")
    print(f"{'backups':>8} {'pushes':>7} {'p50 us':>8} {'p99 us':>8} "
          f"{'CPU us':>8} {'bytes between / pushed':>23} {'p50 / without':>14}")
    first = groups[0]
    for group in groups:
        pushes = len(group.times)
        ordered = sorted(group.times)
        ratio = statistics.median(
            mine / other for mine, other in zip(group.medians, first.medians))
        between = group.received / pushes / options.bytes - 1
        print(f"{group.name:>8} {pushes:>7} {ordered[pushes // 2]:>8} "
              f"{ordered[pushes * 99 // 100]:>8} "
              f"{1e6 * group.cpu / pushes:>8.0f} {between:>23.3f} "
              f"{ratio:>14.2f}", flush=True)
    for group in groups:
        group.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--bytes", type=int, default=1 << 20)
    parser.add_argument("--tables", default="dense,rows")
    options = parser.parse_args()
    with running_etcd() as etcd:
        for table in options.tables.split(","):
            measure(table, options, etcd)


if __name__ == "__main__":
    main()
