#!/usr/bin/python3
"""Measures how long a worker's step takes with backups: a pull, some computing,
and a push. Excludes the CPU time of the backups.

Each group has three servers and a worker. One server leads all shards: the two
others were killed, and some of them started again as backups. Workers and
leading servers run on core 0, backups on core 1, so that backups take no CPU
from a step. A step is longer only by the work of the leading server and by the
wait for the backup. All groups run at the same time, and make steps in turns.
With --free, all processes run on all cores.

  step.py [--rounds=N] [--seconds=S] [--bytes=N] [--table=dense|rows]
          [--compute-us=N,...] [--synchronous] [--free]
          [--backups=N,...] [--programs=FOLDER,...]

A folder of --programs has ps/ps_server, as bazel-bin has. Two folders compare
two builds.
"""

import argparse
import os
import pathlib
import re
import signal
import statistics
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cost  # noqa: E402

SERVERS = 3
READY = 30  # seconds until views have changed


def cpu_seconds(pid):
    """Returns the CPU time of a process, by its clock."""
    return time.clock_gettime((~pid << 3) | 2)


def switches(pid):
    """Returns how often the threads of a process have gone to sleep."""
    total = 0
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)",
                               status.read_text(), re.MULTILINE)[1])
    return total


class Group:
    """A leading server, its backups, and a worker."""

    def __init__(self, programs, backups, etcd, options, compute):
        self.name = f"{backups}" if len(options.programs) == 1 else (
            f"{backups} {programs.name}")
        self.programs, self.options = programs, options
        if not (programs / "ps/ps_server").exists():
            raise SystemExit(f"{programs} has no ps/ps_server: "
                             f"{cost.build_command('ps/ps_server')}")
        self.prefix = f"{programs}/{backups}/{compute}".replace("/", "_")
        ports = cost.free_ports(2 * SERVERS)
        self.addresses = [f"127.0.0.1:{port}" for port in ports[:SERVERS]]
        self.metrics = ports[SERVERS:]
        self.etcd = etcd
        self.servers = [self.start_server(i) for i in range(SERVERS)]
        self.worker = self.bind(0, cost.start([
            cost.program("bench/ps/replicas/replicas_worker"),
            f"--servers={','.join(self.addresses)}",
            f"--table={options.table}", f"--bytes={options.bytes}",
            f"--compute-us={compute}",
            *(["--synchronous"] if options.synchronous else [])]))
        cost.find(self.worker, "ready")
        self.backups = backups
        self.steps, self.medians = [], []
        self.used, self.received = [0] * 5, 0

    def bind(self, core, process):
        if not self.options.free:
            for task in os.listdir(f"/proc/{process.pid}/task"):
                os.sched_setaffinity(int(task), {core})
        return process

    def start_server(self, i):
        here = os.sched_getaffinity(0)
        if not self.options.free:
            os.sched_setaffinity(0, {0 if i == 0 else 1})
        server = cost.start([
            self.programs / "ps/ps_server", f"--listen={self.addresses[i]}",
            "--workers=1", f"--etcd={self.etcd.address}",
            f"--servers={SERVERS}", f"--etcd-prefix={self.prefix}",
            f"--name=ps-{i}", f"--replicas={SERVERS - 1}"],
            PENSTOCK_METRICS=f"127.0.0.1:{self.metrics[i]}")
        os.sched_setaffinity(0, here)
        cost.find(server, "port ")
        return server

    def page(self, i):
        with urllib.request.urlopen(
                f"http://127.0.0.1:{self.metrics[i]}/metrics") as page:
            return page.read().decode()

    def metric(self, name):
        found = re.search(rf"^penstock_ps_{name} (\S+)", self.page(0),
                          re.MULTILINE)
        return float(found[1]) if found else None

    def await_missing(self, missing, led=range(1, SERVERS + 1)):
        """Waits until each led shard lacks the given number of backups, and
        server 0 leads the shards in `led`."""
        end = time.monotonic() + READY
        while True:
            leads = self.metric("shards_led")
            if leads in led and (
                    self.metric("backups_missing") == missing * leads):
                return
            if time.monotonic() > end:
                raise SystemExit(f"group {self.name}: the views do not change")
            time.sleep(0.1)

    def kill(self, i):
        self.servers[i].send_signal(signal.SIGKILL)
        self.servers[i].wait()

    def add_backups(self):
        for i in range(1, 1 + self.backups):
            self.servers[i] = self.start_server(i)

    def received_bytes(self):
        """Returns the bytes of the messages that the backups received."""
        return sum(
            float(value) for i in range(1, 1 + self.backups)
            for value in re.findall(
                r'^penstock_message_bytes_total\{[^}]*direction="received"'
                r'[^}]*\} (\S+)', self.page(i), re.MULTILINE))

    def usage(self):
        leader = self.servers[0].pid
        backups = [each.pid for each in self.servers[1:1 + self.backups]]
        return [cpu_seconds(self.worker.pid), cpu_seconds(leader),
                sum(map(cpu_seconds, backups)), switches(leader),
                sum(map(switches, backups))]

    def run(self, seconds):
        before, received = self.usage(), self.received_bytes()
        self.worker.stdin.write(f"{seconds}\n")
        self.worker.stdin.flush()
        times = list(map(int, self.worker.stdout.readline().split()))
        if not times:
            raise SystemExit(f"the worker of group {self.name} has ended")
        self.used = [total + now - then for total, now, then in zip(
            self.used, self.usage(), before)]
        self.received += self.received_bytes() - received
        self.steps += times
        self.medians.append(statistics.median(times))

    def reset(self):
        self.steps, self.medians = [], []
        self.used, self.received = [0] * 5, 0

    def end(self):
        for each in (self.worker, *self.servers):
            each.send_signal(signal.SIGKILL)
            each.wait()


def settle(groups):
    """Makes server 0 lead all shards, and starts the backups."""
    for group in groups:
        group.await_missing(0)
    for dead in range(1, SERVERS):
        for group in groups:
            group.kill(dead)
        for group in groups:
            is_last = dead == SERVERS - 1
            group.await_missing(dead, [SERVERS] if is_last else [1, 2])
    for group in groups:
        group.add_backups()
    for group in groups:
        group.await_missing(SERVERS - 1 - group.backups)


def report(groups, options, compute):
    kind = "synchronous" if options.synchronous else "asynchronous"
    where = "all cores" if options.free else "backups on core 1, others on 0"
    print(f"\n{options.table}, {kind}, {options.bytes} bytes a push, "
          f"{compute} us of computing, {options.rounds} rounds of "
          f"{options.seconds} s, {where}")
    print(f"{'backups':>10} {'steps':>6} {'p50 us':>7} {'p99 us':>7} "
          f"{'CPU us: worker':>15} {'leader':>7} {'backups':>8} "
          f"{'sleeps: leader':>15} {'backups':>8} "
          f"{'bytes between / pushed':>23} {'p50 / first':>12}")
    for group in groups:
        steps = len(group.steps)
        ordered = sorted(group.steps)
        ratio = statistics.median(mine / first for mine, first in zip(
            group.medians, groups[0].medians))
        worker, leader, backups = (1e6 * each / steps
                                   for each in group.used[:3])
        sleeps = [each / steps for each in group.used[3:]]
        between = group.received / steps / options.bytes
        print(f"{group.name:>10} {steps:>6} {ordered[steps // 2]:>7} "
              f"{ordered[steps * 99 // 100]:>7} {worker:>15.0f} {leader:>7.0f} "
              f"{backups:>8.0f} {sleeps[0]:>15.1f} {sleeps[1]:>8.1f} "
              f"{between:>23.3f} {ratio:>12.2f}", flush=True)


def measure(etcd, options, compute):
    groups = [Group(programs, backups, etcd, options, compute)
              for programs in options.programs for backups in options.backups]
    settle(groups)
    for group in groups:  # pages are touched
        group.run(options.seconds)
        group.reset()
    for round_number in range(options.rounds):
        for i in range(len(groups)):
            groups[(i + round_number) % len(groups)].run(options.seconds)
    report(groups, options, compute)
    for group in groups:
        group.end()


def numbers(text):
    return [int(each) for each in text.split(",")]


def folders(text):
    return [pathlib.Path(each).resolve() for each in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--bytes", type=int, default=1 << 20)
    parser.add_argument("--table", default="dense", choices=("dense", "rows"))
    parser.add_argument("--compute-us", type=numbers, default=[0, 1000, 5000])
    parser.add_argument("--backups", type=numbers, default=[0, 1, 2])
    parser.add_argument("--synchronous", action="store_true")
    parser.add_argument("--free", action="store_true")
    parser.add_argument("--programs", type=folders,
                        default=[cost.PROGRAMS / "bazel-bin"])
    options = parser.parse_args()
    with cost.running_etcd() as etcd:
        for compute in options.compute_us:
            measure(etcd, options, compute)


if __name__ == "__main__":
    main()
