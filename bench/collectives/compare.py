#!/usr/bin/env python3
"""Compares collectives.cc with torch's gloo, which run alternately.

Usage: compare.py PROGRAM [--python=PYTHON] [--rounds=3] [--ranks=2]
                  [--operations=...] [--sizes=...] [--transport=host]

PROGRAM is bazel-bin/bench/collectives/collectives. PYTHON has torch. Prints for
each operation and size the median of the runs' medians, and their ratio.
"""

import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import sys

GLOO = pathlib.Path(__file__).resolve().parent / "pytorch.py"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--operations", default="all_reduce,broadcast,barrier")
    parser.add_argument("--sizes",
                        default="8,1024,65536,1048576,4194304,67108864")
    parser.add_argument("--transport", default="host")
    options = parser.parse_args()
    ours = [options.program, f"--transport={options.transport}"]
    flags = [f"--{name}={getattr(options, name)}"
             for name in ("ranks", "operations", "sizes")]
    times = collections.defaultdict(list)
    for _ in range(options.rounds):
        for command in (ours, [options.python, str(GLOO)]):
            said = subprocess.run(command + flags, check=True, text=True,
                                  stdout=subprocess.PIPE).stdout
            for row in map(json.loads, said.splitlines()):
                times[row["operation"], row["bytes"],
                      row["library"]].append(row["p50_us"])
    print(f"{'operation':12} {'bytes':>10} {'penstock us':>12} "
          f"{'gloo us':>12} {'ratio':>7}")
    for operation, size, library in times:
        if library != "penstock":
            continue
        mine, gloo = (statistics.median(times[operation, size, name])
                      for name in ("penstock", "gloo"))
        print(f"{operation:12} {size:10} {mine:12.2f} {gloo:12.2f} "
              f"{gloo / mine:7.1f}")


if __name__ == "__main__":
    main()
