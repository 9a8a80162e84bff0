#!/usr/bin/python3 -B
"""Measures the time of a call, one at a time, in stock programs in C++ and
Python: without Penstock, with the library preloaded, and (C++) with Penstock
linked.

usage: preload_bench [--rounds=N] [--calls=N] [--programs=c++,sync,aio]
                     [--sizes=8,64KiB,1MiB] [--kinds=stock,run,linked]

Client and server are separate processes. All programs run in each round, in a
changing order. The table shows the median of the rounds' medians, quartiles,
minimum and maximum, and the difference from the first kind. Run it from a build
tree: bazel run //bench/preload
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
# The number of calls of each size, as a multiple of --calls. A C++ call of 8
# bytes takes about 13 us.
SHARE = {"8": 1, "64KiB": 0.5, "1MiB": 0.1}


def environment(kind):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("PENSTOCK_", "LD_PRELOAD"))}
    kept["PENSTOCK_LOG"] = "error"
    if kind != "stock":
        # Allows only shared memory, so that no other path is measured.
        kept.update(PENSTOCK_POLICY="require", PENSTOCK_FABRICS="shm")
    if kind == "run":
        kept.update(LD_PRELOAD=STUB, PENSTOCK_LIBRARY=LIBRARY)
    return kept


def measure(command, kind, size, calls):
    """Runs server and client, and returns the median and the 99th percentile
    of the calls, in microseconds."""
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


def rounds_of(program, size_name, kinds, options):
    kinds = list(kinds)
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
    first = next(iter(found))
    print(f"{'':12}{'p50 us':>9}{'p99 us':>9}{'p50 quartiles':>20}"
          f"{'p50 min..max':>20}{'vs ' + first:>12}")
    base = statistics.median(each[0] for each in found[first])
    for kind, rounds in found.items():
        p50s = [each[0] for each in rounds]
        p50 = statistics.median(p50s)
        p99 = statistics.median(each[1] for each in rounds)
        # A single round has no quartiles.
        lower, _, upper = (statistics.quantiles(p50s, n=4)
                           if len(p50s) > 1 else 3 * p50s)
        quartiles = f"{lower:.2f}..{upper:.2f}"
        spread = f"{min(p50s):.2f}..{max(p50s):.2f}"
        print(f"  {kind:10}{p50:9.2f}{p99:9.2f}{quartiles:>20}{spread:>20}"
              f"{base / p50:11.3f}x", flush=True)


def chosen(parser, what, names, known):
    names = names.split(",")
    for name in names:
        if name not in known:
            parser.error(f"no {what} {name}")
    return names


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=10000,
                        help="of a round in C++ with 8 bytes; others have fewer")
    parser.add_argument("--programs", default="c++,sync,aio")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--kinds", default=",".join(COMMANDS["c++"]),
                        help="linked is in C++ only")
    options = parser.parse_args()
    programs = chosen(parser, "program", options.programs, COMMANDS)
    sizes = chosen(parser, "size", options.sizes, SIZES)
    wanted = chosen(parser, "kind", options.kinds, COMMANDS["c++"])
    for program in programs:
        kinds = [kind for kind in wanted if kind in COMMANDS[program]]
        if not kinds:
            parser.error(f"no {options.kinds} of {program}")
        for size in sizes:
            show(program, size, rounds_of(program, size, kinds, options))


if __name__ == "__main__":
    sys.exit(main())
