#!/usr/bin/env python3
"""Compares collectives.cc with torch's gloo, which run alternately.

Usage: compare.py PROGRAM [--python=PYTHON] [--torch-backend] [--rounds=3]
                  [--ranks=2] [--operations=...] [--sizes=...] [--transport=host]

PROGRAM is bazel-bin/bench/collectives/collectives. PYTHON has torch. With
--torch-backend, PYTHON also has penstock.torch, which takes turns with both.
Prints for each operation and size the median of the runs' medians in
microseconds, and how many times faster than gloo each is.
"""

import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import sys

PYTORCH = pathlib.Path(__file__).resolve().parent / "pytorch.py"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--torch-backend", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--operations", default="all_reduce,broadcast,barrier")
    parser.add_argument("--sizes",
                        default="8,1024,65536,1048576,4194304,67108864")
    parser.add_argument("--transport", default="host")
    options = parser.parse_args()
    flags = [f"--{name}={getattr(options, name)}"
             for name in ("ranks", "operations", "sizes")]
    pytorch = [options.python, str(PYTORCH)]
    commands = {"penstock": [options.program,
                             f"--transport={options.transport}"],
                "gloo": pytorch + ["--backend=gloo"]}
    if options.torch_backend:
        commands["penstock.torch"] = pytorch + ["--backend=penstock"]
    show(commands, run(commands, flags, options.rounds))


def run(commands, flags, rounds):
    """Returns the times of each library, by operation and bytes."""
    times = collections.defaultdict(lambda: collections.defaultdict(list))
    for _ in range(rounds):
        for command in commands.values():
            said = subprocess.run(command + flags, check=True, text=True,
                                  stdout=subprocess.PIPE).stdout
            for row in map(json.loads, said.splitlines()):
                times[row["operation"], row["bytes"]][row["library"]].append(
                    row["p50_us"])
    return times


def show(libraries, times):
    ours = [library for library in libraries if library != "gloo"]
    print(f"{'operation':12} {'bytes':>10} {'gloo':>12}"
          + "".join(f" {library:>14} {'ratio':>7}" for library in ours))
    for (operation, size), found in times.items():
        p50 = {library: statistics.median(found[library])
               for library in libraries}
        print(f"{operation:12} {size:10} {p50['gloo']:12.2f}"
              + "".join(f" {p50[library]:14.2f} "
                        f"{p50['gloo'] / p50[library]:7.1f}"
                        for library in ours))


if __name__ == "__main__":
    main()
