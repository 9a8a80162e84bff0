#!/usr/bin/env python3
"""Measures a backend of PyTorch in the same form as collectives.cc.

Usage: pytorch.py --backend=gloo --ranks=2 --operations=all_reduce,barrier
                  --sizes=8,1048576
Needs torch, and for --backend=penstock also penstock.torch. Prints a line of
JSON for each operation and size.
"""

import argparse
import json
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

# The names in the rows.
LIBRARIES = {"gloo": "gloo", "penstock": "penstock.torch"}

# As in collectives.cc.
SMALL_ROUNDS, FEWEST_ROUNDS, BYTES_IN_ALL = 2000, 10, 512 << 20


def call(operation, ranks, elements):
    """Returns a function that runs the operation once."""
    data = torch.ones(max(elements, 1))
    blocks = [torch.ones(max(elements, 1)) for _ in range(ranks)]
    return {
        "all_reduce": lambda: dist.all_reduce(data, dist.ReduceOp.MAX),
        "broadcast": lambda: dist.broadcast(data, 0),
        "all_gather": lambda: dist.all_gather(blocks, data),
        "barrier": dist.barrier,
    }[operation]


def measure(rank, options, store):
    if options.backend == "penstock":
        import penstock.torch
    dist.init_process_group(options.backend, init_method=f"file://{store}",
                            rank=rank, world_size=options.ranks)
    torch.set_num_threads(1)
    for operation in options.operations.split(","):
        sizes = [0] if operation == "barrier" else [
            int(size) for size in options.sizes.split(",")]
        for size in sizes:
            run = call(operation, options.ranks, size // 4)
            rounds = min(SMALL_ROUNDS,
                         max(FEWEST_ROUNDS, BYTES_IN_ALL // max(size, 1)))
            times = []
            for _ in range(rounds + rounds // 10):
                begin = time.perf_counter()
                run()
                times.append((time.perf_counter() - begin) * 1e6)
            times = sorted(times[rounds // 10:])
            if rank == 0:
                print(json.dumps({
                    "library": LIBRARIES[options.backend],
                    "operation": operation,
                    "ranks": options.ranks, "bytes": size,
                    "p50_us": round(statistics.median(times), 2),
                    "p99_us": round(times[len(times) * 99 // 100], 2),
                    "rounds": rounds}), flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=LIBRARIES, default="gloo")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--operations",
                        default="all_reduce,broadcast,barrier")
    parser.add_argument("--sizes",
                        default="8,1024,65536,1048576,4194304,67108864")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(measure, (options, os.path.join(folder, "store")),
                 nprocs=options.ranks)


if __name__ == "__main__":
    main()
