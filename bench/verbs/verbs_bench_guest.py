"""Runs the part of bench/verbs/verbs_bench in the virtual machine.

  python3 verbs_bench_guest.py FOLDER

FOLDER has plan.json. The output is samples.json: {name: [one per repeat]}.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

SMALL, LARGE = 8, 1 << 20
CLIENT, SERVER = "10.9.0.1", "10.9.0.2"
# Limits the seconds from a server's start until it listens, by the guest's
# clock.
LISTEN_S = 10
# The number of unmeasured runs of a program, in which files may still be read
# from the host.
WARM_UPS = 5
# The models of bench/tensors that are measured: ResNet-50, and one tensor of
# the same size.
MODELS = ("resnet50", "resnet50_slice")
STEPS = 2
# Settings of perf: the nanoseconds between samples, and the numbers of RPCs of
# the short and the long run.
SAMPLE_NS = 50_000
PROFILED = (200, 1200)


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True,
                          stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, **options).stdout


def route_over_the_cable():
    """Makes Linux send packets for its own addresses over the cable.

    By default, Linux delivers such packets without a network. With these rules,
    only packets from an interface are delivered locally; other packets are
    sent. RDMA does not need this: a queue pair is bound to its device.
    """
    for command in (f"route add {SERVER} dev n0 src {CLIENT} table 100",
                    f"route add {CLIENT} dev n1 src {SERVER} table 100",
                    "rule add pref 1 iif n0 lookup local",
                    "rule add pref 2 iif n1 lookup local",
                    "rule add pref 3 iif lo lookup 100",
                    "rule add pref 4 lookup local",
                    "rule del pref 0"):
        run("ip", *command.split())


def listens(port):
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    lines += pathlib.Path("/proc/net/tcp6").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") and
               line.split()[3] == "0A" for line in lines)


def perftest(program, size, count):
    """Runs a program of perftest. Returns the typical microseconds for one
    way, or MB/s (10^6 bytes)."""
    arguments = [program, "-x", "1", "-e", "-s", str(size), "-n", str(count)]
    server = subprocess.Popen(arguments + ["-d", "rxe1"],
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    end = time.monotonic() + LISTEN_S
    while not listens(18515) and time.monotonic() < end:
        time.sleep(0.01)
    text = run(*arguments, "-d", "rxe0", SERVER, stderr=subprocess.DEVNULL)
    server.wait()
    fields = re.search(rf"^ *{size} +{count} +(.*)$", text, re.M)[1].split()
    if program.endswith("_lat"):
        return float(fields[2])
    return float(fields[1]) * 1.048576  # perftest's unit MB is 2^20 bytes


def rpc(program, **flags):
    """Runs bench/rpc. Returns {(transport, API, bytes): cell} from its JSON."""
    out = pathlib.Path("/dev/shm/rpc.json")
    words = [f"--{name}={value}" for name, value in flags.items()]
    try:
        run(program, f"--address={SERVER}", "--client-device=rxe0",
            "--server-device=rxe1", f"--json={out}", *words)
    except subprocess.CalledProcessError:
        say("    FAILED:", *words)  # the error was already printed
        return {}
    return {(cell["transport"], cell["api"], cell["bytes"]): cell
            for cell in json.loads(out.read_text())}


def tensors(program, model, steps):
    """Runs bench/tensors with pool memory and windows. Returns the bytes of a
    step, and the microseconds until the handler has the tensors and until it
    has read them."""
    text = run(program, f"--host={SERVER}", f"--models={model}",
               "--contenders=verbs-pool", "--rounds=1", f"--steps={steps}",
               stderr=subprocess.STDOUT,
               env={**os.environ, "RDMA_VM_WINDOWS": "1",
                    "PENSTOCK_LOG": "info"})
    if "windows for a test" not in text:
        raise RuntimeError(f"not through windows:\n{text}")
    megabytes = re.search(rf"^{model}: \d+ tensors, ([\d.]+) MB$", text, re.M)
    # The columns have the form "1234 (1200-1300)": a median and a spread.
    times = re.search(r"^verbs-pool +(\d+) \([^)]*\) *(\d+) \(", text, re.M)
    return float(megabytes[1]) * 1e6, float(times[1]), float(times[2])


# The arguments of warm-up runs, by program. A warm-up run fetches the program's
# files.
WARM_UP = ("--address=" + SERVER, "--transports=tcp,verbs", "--sizes=8",
           "--rpcs=1", "--rounds=1", "--api=sync")
WARM_UP_OF = {"tensors": ("--host=" + SERVER, "--models=small", "--rounds=1",
                          "--steps=1", "--contenders=verbs-pool")}


def warm_up(plan):
    """Copies programs and their files into memory.

    While the guest fetches a file from the host, it idles, and its instruction
    clock jumps from timer to timer: a timeout of ten seconds would expire
    immediately. Touching a file copies it to the root's layer in memory.
    Touching a symbolic link avoids a request to the host at each access.
    """
    for path in plan["files"]:
        os.utime(path, follow_symlinks=False)
    # Copy programs to /dev/shm, because writable folders are not in that layer.
    plan["programs"] = {name: shutil.copy(path, "/dev/shm")
                        for name, path in plan["programs"].items()}
    for name, program in plan["programs"].items():
        for _ in range(WARM_UPS):
            result = subprocess.run(
                [program, *WARM_UP_OF.get(name, WARM_UP)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                check=False)
            if result.returncode == 0:
                break


class Guest:
    def __init__(self, plan, out):
        self.plan, self.out = plan, out
        self.start = time.monotonic()
        self.samples = {}  # {name: [a measurement per repeat]}

    def note(self, name, value):
        self.samples.setdefault(name, []).append(value)
        say(f"    {name}: {value:.1f}")

    def device(self):
        count = self.plan["small"]
        self.note("send_lat 8", perftest("ib_send_lat", SMALL, count))
        for size in (64 << 10, LARGE):
            for program in ("send", "read"):
                self.note(f"{program}_bw {size}",
                          perftest(f"ib_{program}_bw", size, 40))

    def calls(self, name, program):
        # Measures latency, the default benchmark: small messages through every
        # API, and large ones through one API.
        cells = rpc(program, transports="tcp,inproc,verbs", sizes=SMALL,
                    rounds=1, rpcs=self.plan["small"])
        cells.update(rpc(program, transports="tcp,inproc,verbs", sizes=LARGE,
                         rounds=1, rpcs=self.plan["large"], api="async"))
        for (transport, api, size), cell in cells.items():
            self.note(f"{name} {transport} {api} {size}", cell["p50_us"])
        for benchmark in ("bandwidth", "stream"):
            cells = rpc(program, transports="tcp,inproc,verbs", sizes=LARGE,
                        rounds=1, rpcs=2 * self.plan["large"], api="async",
                        benchmark=benchmark, window=4)
            for (transport, _, _), cell in cells.items():
                self.note(f"{name} {transport} {benchmark}", cell["mb_per_s"])

    def tensors(self, program):
        self.note(f"read_bw {LARGE}", perftest("ib_read_bw", LARGE, 40))
        for model in MODELS:
            size, handed_us, read_us = tensors(program, model, STEPS)
            self.note(f"{model} bytes", size)
            self.note(f"{model} handed", handed_us)
            self.note(f"{model} read", read_us)

    def repeat(self):
        if "tensors" in self.plan["programs"]:
            return self.tensors(self.plan["programs"]["tensors"])
        self.device()
        for name, program in self.plan["programs"].items():
            self.calls(name, program)

    def measure(self):
        os.environ.update(PENSTOCK_POLLING="event", PENSTOCK_LOG="warning")
        route_over_the_cable()
        say("  reading the programs")
        warm_up(self.plan)
        if self.plan["profile"]:
            self.profile()
        for repeat in range(self.plan["repeats"] + 1):
            say(f"  repeat {repeat} of {self.plan['repeats']}" +
                (", to be dropped" if repeat == 0 else ""))
            self.repeat()
        self.out.write_text(json.dumps(self.samples))

    def profile(self):
        """Profiles RPCs of 8 bytes, in long and short runs.

        The difference of the runs excludes the cost of start and end.
        """
        for transport in ("inproc", "verbs"):
            for count in PROFILED:
                say(f"  profile of {count} RPCs over {transport}")
                run("perf", "record", "-q", "-e", "cpu-clock", "-c", SAMPLE_NS,
                    "-a", "-o", "/dev/shm/perf", "--",
                    self.plan["programs"]["this"], f"--address={SERVER}",
                    "--client-device=rxe0", "--server-device=rxe1",
                    f"--transports={transport}", "--api=async", "--sizes=8",
                    f"--rpcs={count}", "--rounds=1", stderr=subprocess.DEVNULL)
                self.samples[f"profile {transport} {count}"] = run(
                    "perf", "report", "-i", "/dev/shm/perf", "--stdio", "-n",
                    "-t", "\t", "--sort", "dso,symbol",
                    stderr=subprocess.DEVNULL)


def main():
    work = pathlib.Path(sys.argv[1])
    plan = json.loads((work / "plan.json").read_text())
    Guest(plan, work / "samples.json").measure()


if __name__ == "__main__":
    main()
