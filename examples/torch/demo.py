#!/usr/bin/env python3
"""Trains digits.py over gloo and over penstock, alternately, and compares.

Usage: demo.py [--quick] [--ranks=2] [--rounds=3]

Fails if an accuracy is below 93 %, if the ranks of a run have different losses,
or if the losses of the two backends differ by more than rounding.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

DIGITS = pathlib.Path(__file__).resolve().parent / "digits.py"
WAYS = {"DDP": [], "DDP, 2 batches a step": ["--accumulate=2"],
        "FSDP2, 2 batches a step": ["--sharded", "--accumulate=2"]}
LEAST_ACCURACY = 0.93
# The tolerated difference of two losses. Rounding grows during a training.
ROUNDING = 1e-3


def train(backend, ranks, flags):
    said = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone",
         f"--nproc-per-node={ranks}", str(DIGITS), f"--backend={backend}",
         *flags], check=True, text=True, stdout=subprocess.PIPE).stdout
    return json.loads(said.splitlines()[-1])


def check(way, runs):
    """Exits with a reason if something is wrong."""
    losses = {backend: run["losses"] for backend, run in runs.items()}
    for backend, run in runs.items():
        if run["accuracy"] < LEAST_ACCURACY:
            sys.exit(f"{way} over {backend}: accuracy {run['accuracy']:.3f}")
        if len(set(run["losses"])) != 1:
            sys.exit(f"{way} over {backend}: ranks differ: {run['losses']}")
    ours, theirs = losses["penstock"][0], losses["gloo"][0]
    if abs(ours - theirs) > ROUNDING * theirs:
        sys.exit(f"{way}: loss {ours} over penstock, {theirs} over gloo")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of each")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{'':24} {'gloo':>16} {'penstock':>16} {'accuracy':>9} {'loss':>10}")
    for way, flags in WAYS.items():
        times = {"gloo": [], "penstock": []}
        for _ in range(1 if options.quick else options.rounds):
            runs = {backend: train(backend, options.ranks, flags)
                    for backend in times}
            check(way, runs)
            for backend, run in runs.items():
                times[backend].append(run["ms_per_batch"])
        gloo, ours = (statistics.median(times[name])
                      for name in ("gloo", "penstock"))
        run = runs["penstock"]
        print(f"{way:24} {gloo:10.2f} ms/b {ours:10.2f} ms/b "
              f"{run['accuracy']:9.3f} {run['losses'][0]:10.6f}", flush=True)


if __name__ == "__main__":
    main()
