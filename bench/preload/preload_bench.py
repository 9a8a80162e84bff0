#!/usr/bin/python3 -B
"""Stock programs in C++ and Python, as they are and with the stub preloaded, and
the C++ one with Penstock linked to it: the time of a call, one at a time.

usage: preload_bench [--rounds=N] [--calls=N] [--programs=c++,sync,aio]

Client and server are processes of their own. All programs take turns in each
round, in an order that changes; the median of the rounds' medians is shown, and
the least and the greatest of them. To be run from a build tree:
bazel run //bench/preload
"""

import argparse
import os
import random
import statistics
import subprocess
import sys

STUB = os.path.abspath("preload/libpenstock-preload.so")
LIBRARY = os.path.abspath("penstock/libpenstock.so.0")
SIZES = {"8": 8, "64KiB": 65536, "1MiB": 1 << 20}
PYTHON = "/usr/bin/python3"
COMMANDS = {
    "c++": {
        "stock": ["bench/preload/stock_echo"],
        "run": ["bench/preload/stock_echo"],
        "linked": ["bench/preload/linked_echo"],
    },
    "sync": {kind: [PYTHON, "bench/preload/echo.py", "sync"]
             for kind in ("stock", "run")},
    "aio": {kind: [PYTHON, "bench/preload/echo.py", "aio"]
            for kind in ("stock", "run")},
}
# For a C++ call of 8 bytes, about 13 us.
SHARE = {"8": 1, "64KiB": 0.5, "1MiB": 0.1}


def environment(kind):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("PENSTOCK_", "LD_PRELOAD"))}
    kept["PENSTOCK_LOG"] = "error"
    if kind != "stock":
        # So that nothing is measured but shared memory.
        kept.update(PENSTOCK_POLICY="require", PENSTOCK_FABRICS="shm")
    if kind == "run":
        kept.update(LD_PRELOAD=STUB, PENSTOCK_LIBRARY=LIBRARY)
    return kept


def measure(command, kind, size, calls):
    """The median of a call's time in us, and the 99th percentile."""
    with subprocess.Popen([*command, "server"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True,
                          env=environment(kind)) as server:
        try:
            port = server.stdout.readline().split()[1]
            said = subprocess.run(
                [*command, "client", "127.0.0.1:" + port, str(size),
                 str(calls)], text=True, stdout=subprocess.PIPE, check=True,
                env=environment(kind), timeout=300).stdout
        finally:
            server.kill()
    times = sorted(map(float, said.split()))
    return times[len(times) // 2], times[len(times) * 99 // 100]


def rounds_of(program, size_name, options):
    kinds = list(COMMANDS[program])
    found = {kind: [] for kind in kinds}
    calls = int(options.calls * SHARE[size_name] *
                (1 if program == "c++" else 0.3)) + 10
    for _ in range(options.rounds):
        random.shuffle(kinds)
        for kind in kinds:
            found[kind].append(measure(COMMANDS[program][kind], kind,
                                       SIZES[size_name], calls))
    return found


def show(program, size_name, found):
    print(f"{program}, {size_name}")
    print(f"{'':12}{'p50 us':>9}{'p99 us':>9}{'p50 min..max':>20}"
          f"{'vs stock':>10}")
    stock = statistics.median(each[0] for each in found["stock"])
    for kind in COMMANDS[program]:
        p50s = [each[0] for each in found[kind]]
        p50 = statistics.median(p50s)
        p99 = statistics.median(each[1] for each in found[kind])
        spread = f"{min(p50s):.1f}..{max(p50s):.1f}"
        print(f"  {kind:10}{p50:9.1f}{p99:9.1f}{spread:>20}"
              f"{stock / p50:9.2f}x", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=10000,
                        help="of a round in C++ with 8 bytes; others have fewer")
    parser.add_argument("--programs", default="c++,sync,aio")
    options = parser.parse_args()
    for program in options.programs.split(","):
        if program not in COMMANDS:
            parser.error(f"no program {program}")
        for size_name in SIZES:
            show(program, size_name, rounds_of(program, size_name, options))


if __name__ == "__main__":
    sys.exit(main())
