#!/usr/bin/env python3
"""Measures penstock.collectives with arrays of NumPy, in the same form as
collectives.cc.

Usage: arrays.py --ranks=2 --operations=all_reduce,broadcast --sizes=8,1048576
                 [--pool]
Needs the Python package (python/README.md). With --pool, arrays are in memory
that other ranks can read. Prints a line of JSON for each operation and size.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import time

import numpy as np

from penstock import collectives

# The same values as in collectives.cc.
SMALL_ROUNDS, FEWEST_ROUNDS, BYTES_IN_ALL = 2000, 10, 512 << 20


def call(group, operation, array):
    """Returns a function that runs the operation once."""
    return {
        "all_reduce": lambda: group.allreduce(array, "max", out=array),
        "broadcast": lambda: group.broadcast(array, 0),
        "barrier": group.barrier,
    }[operation]


def measure(rank, options, folder):
    sizes = [int(size) for size in options.sizes.split(",")]
    with collectives.init(
            rank, options.ranks, folder=folder,
            pool_bytes=2 * max(sizes) if options.pool else 0) as group:
        for operation in options.operations.split(","):
            for size in [0] if operation == "barrier" else sizes:
                make = group.empty if options.pool else np.empty
                array = make(size // 4, "f4")
                array[:] = 1
                run = call(group, operation, array)
                rounds = min(options.rounds,
                             max(FEWEST_ROUNDS, BYTES_IN_ALL // max(size, 1)))
                times = []
                for _ in range(rounds + rounds // 10):
                    begin = time.perf_counter()
                    run()
                    times.append((time.perf_counter() - begin) * 1e6)
                times = sorted(times[rounds // 10:])
                if rank == 0:
                    print(json.dumps({
                        "library": "penstock.collectives",
                        "operation": operation, "ranks": options.ranks,
                        "bytes": size,
                        "p50_us": round(statistics.median(times), 2),
                        "p99_us": round(times[len(times) * 99 // 100], 2),
                        "rounds": rounds}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--operations",
                        default="all_reduce,broadcast,barrier")
    parser.add_argument("--sizes",
                        default="8,1024,65536,1048576,4194304,67108864")
    parser.add_argument("--pool", action="store_true",
                        help="arrays that other ranks read in place")
    parser.add_argument("--rounds", type=int, default=SMALL_ROUNDS,
                        help="most repetitions")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [multiprocessing.Process(
            target=measure, args=(rank, options, os.path.join(folder, "ranks")))
            for rank in range(options.ranks)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()


if __name__ == "__main__":
    main()
