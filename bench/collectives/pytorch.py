#!/usr/bin/env python3
"""Measures a backend of PyTorch in the same form as collectives.cc.

Usage: pytorch.py --backend=gloo --ranks=2 --operations=all_reduce,barrier
                  --sizes=8,1048576 [--two-hosts]
Needs torch, and for --backend=penstock also penstock.torch. Prints a line of
JSON for each operation and size. With --two-hosts, the ranks are alternately in
two network namespaces, which needs root.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

# The name of each --backend in the rows of the output.
LIBRARIES = {"gloo": "gloo", "penstock": "penstock.torch"}

# The same values as in collectives.cc.
SMALL_ROUNDS, FEWEST_ROUNDS, BYTES_IN_ALL = 2000, 10, 512 << 20


def call(operation, ranks, elements):
    """Returns a function that runs the operation once."""
    data = torch.ones(max(elements, 1))
    whole = torch.ones(max(elements, 1) * ranks)
    other = torch.ones_like(whole)
    blocks = list(whole.chunk(ranks))
    of_root = blocks if dist.get_rank() == 0 else None
    largest = dist.ReduceOp.MAX
    return {
        "all_reduce": lambda: dist.all_reduce(data, largest),
        "broadcast": lambda: dist.broadcast(data, 0),
        "reduce": lambda: dist.reduce(data, 0, largest),
        "reduce_scatter":
            lambda: dist.reduce_scatter_tensor(data, whole, largest),
        "all_gather": lambda: dist.all_gather(blocks, data),
        "gather": lambda: dist.gather(data, of_root, 0),
        "scatter": lambda: dist.scatter(data, of_root, 0),
        "all_to_all": lambda: dist.all_to_all_single(other, whole),
        "barrier": dist.barrier,
    }[operation]


def measure(rank, options, store, hosts):
    if hosts is not None:
        hosts.enter(rank % 2)
    if options.backend == "penstock":
        import penstock.torch
        if options.pool:
            penstock.torch.use_pool()
    dist.init_process_group(options.backend, init_method=f"file://{store}",
                            rank=rank, world_size=options.ranks)
    torch.set_num_threads(1)
    for operation in options.operations.split(","):
        sizes = [0] if operation == "barrier" else [
            int(size) for size in options.sizes.split(",")]
        for size in sizes:
            run = call(operation, options.ranks, size // 4)
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
                    "library": LIBRARIES[options.backend],
                    "operation": operation,
                    "ranks": options.ranks, "bytes": size,
                    "p50_us": round(statistics.median(times), 2),
                    "p99_us": round(times[len(times) * 99 // 100], 2),
                    "rounds": rounds}), flush=True)
    dist.destroy_process_group()


def hosts_of(options):
    """Returns a context manager, whose value is the two hosts or None."""
    if not options.two_hosts:
        return contextlib.nullcontext()
    tests = pathlib.Path(__file__).resolve().parents[2] / "tests"
    sys.path.append(str(tests / "frameworks" / "torch"))
    import two_hosts
    os.environ["GLOO_SOCKET_IFNAME"] = two_hosts.INTERFACE
    return two_hosts.TwoHosts()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=LIBRARIES, default="gloo")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--operations",
                        default="all_reduce,broadcast,barrier")
    parser.add_argument("--sizes",
                        default="8,1024,65536,1048576,4194304,67108864")
    parser.add_argument("--two-hosts", action="store_true")
    parser.add_argument("--pool", action="store_true",
                        help="with penstock: tensors that peers read in place")
    parser.add_argument("--rounds", type=int, default=SMALL_ROUNDS,
                        help="most repetitions")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, hosts_of(options) as hosts:
        # Forks, because a new process could not enter the namespaces.
        mp.start_processes(
            measure, (options, os.path.join(folder, "store"), hosts),
            nprocs=options.ranks, start_method="fork")


if __name__ == "__main__":
    main()
