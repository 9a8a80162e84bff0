#!/usr/bin/env python3
"""Runs PyTorch's own tests of process groups over gloo and over penstock.

Usage: stock_tests.py [--ranks=2] [--output=FILE] [--only=REGEX] [BACKEND...]

The tests are those of the wheel, torch.testing._internal.distributed. BACKEND
is one or more of
  gloo       PyTorch's own backend.
  penstock   The backend by its name. Many tests skip themselves, because they
             know only names of PyTorch's own backends.
  as-gloo    The backend in the place of gloo: under gloo's name, so that no
             test skips itself.
Needs penstock.torch. Prints a line for each test and backend, and the tests
that do not give the same result over all backends. --output gets JSON. Exits
with 1 if a test passes over gloo only.
"""

import argparse
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import unittest

BACKENDS = ("gloo", "penstock", "as-gloo")


def suite_of(backend):
    """Loads PyTorch's tests, which read the environment."""
    os.environ["BACKEND"] = "gloo" if backend == "as-gloo" else backend
    from torch.testing._internal.distributed import distributed_test as stock

    if backend == "as-gloo":
        # Keeps penstock's name for the events of profiles.
        find = stock.get_profiling_event
        stock.get_profiling_event = lambda name, *more, **named: find(
            name.replace("gloo:", "penstock:"), *more, **named)

    class StockTest(stock.TestDistBackend,
                    stock.DistributedTest._DistTestBase):

        def setUp(self):
            super().setUp()
            # Forks ranks, so that they need not import torch again. Users of
            # the wheel spawn them.
            fork = multiprocessing.get_context("fork")
            self._start_processes(fork.Process)

    return list(unittest.defaultTestLoader.loadTestsFromTestCase(StockTest))


def take_the_place_of_gloo():
    """Makes init_process_group("gloo") use penstock."""
    import penstock.torch
    import torch.distributed as dist
    penstock.torch.register()
    plugins = dist.Backend._plugins
    plugins["GLOO"] = plugins["PENSTOCK"]
    # DDP's logger casts each backend of gloo's type to gloo's class, and reads
    # the number of its threads (Logger::set_env_variables()).
    dist.Backend.backend_type_map[dist.Backend.GLOO] = (
        dist.ProcessGroup.BackendType.CUSTOM)


def announce_penstock():
    """Adds penstock to the tables in which the tests look for features."""
    import penstock.torch
    from torch.testing._internal.common_distributed import DistTestCases
    penstock.torch.register()
    DistTestCases.backend_feature["ddp"].add("penstock")
    DistTestCases.backend_feature["subgroup"].add("penstock")


class Recorder(unittest.TestResult):
    """Prints and keeps the result of each test."""

    def __init__(self, backend):
        super().__init__()
        self.backend = backend
        self.found = {}

    def record(self, test, result, why=""):
        name = test.id().rsplit(".", 1)[1]
        self.found[name] = [result, why]
        print(f"{result:4} {self.backend:8} {name} {why}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.record(test, "pass")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.record(test, "skip", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.record(test, "fail", str(err[1]).strip()[-400:])

    addError = addFailure


def run_here(backend, ranks, only, output):
    """Runs the tests over one backend in this process."""
    import torch
    torch.set_num_threads(1)
    if backend == "as-gloo":
        take_the_place_of_gloo()
    elif backend == "penstock":
        announce_penstock()
    recorder = Recorder(backend)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(WORLD_SIZE=str(ranks), TEMP_DIR=folder)
        for test in suite_of(backend):
            if re.search(only, test.id()):
                test.run(recorder)
    with open(output, "w") as file:
        json.dump(recorder.found, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backends", nargs="*", default=list(BACKENDS))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", default="", help="a regular expression")
    parser.add_argument("--output")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        return run_here(options.backends[0], options.ranks, options.only,
                        options.output)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for backend in options.backends:
            file = os.path.join(folder, backend)
            # A process for each backend, whose name the tests read once.
            subprocess.run(
                [sys.executable, __file__, "--here", f"--ranks={options.ranks}",
                 f"--only={options.only}", f"--output={file}", backend],
                check=True)
            with open(file) as found:
                for name, result in json.load(found).items():
                    results.setdefault(name, {})[backend] = result
    if options.output:
        with open(options.output, "w") as output:
            json.dump(results, output, indent=1)
    summarize(results, options.backends)
    lost = [name for name, found in results.items()
            if found.get("gloo", [""])[0] == "pass"
            and found.get("as-gloo", ["pass"])[0] == "fail"]
    sys.exit(1 if lost else 0)


def summarize(results, backends):
    for backend in backends:
        counts = {"pass": 0, "fail": 0, "skip": 0}
        for found in results.values():
            counts[found[backend][0]] += 1
        print(backend, counts)
    for name, found in results.items():
        if len({result[0] for result in found.values()}) > 1:
            print(name, found)


if __name__ == "__main__":
    main()
