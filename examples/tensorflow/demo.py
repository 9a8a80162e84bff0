#!/usr/bin/env python3
"""Trains handwritten digits in TensorFlow, over grpc and over grpc+penstock.

The demo uses a ParameterServerStrategy (a chief, two parameter servers, two
workers; parameter_server.py) and a MultiWorkerMirroredStrategy (two workers;
mirrored.py). Each task is a separate process on this host. The clusters of both
protocols live at the same time, and alternate after some epochs.

Run the demo with the Python that has TensorFlow and penstock-tensorflow, or by
tools/tensorflow_demo, which installs both.
"""

import argparse
import collections
import contextlib
import importlib.util
import pathlib
import re
import signal
import statistics
import sys
import tempfile
import time

import cluster

FOLDER = pathlib.Path(__file__).resolve().parent
PENSTOCK = "grpc+penstock"
PROTOCOLS = ("grpc", PENSTOCK)
STRATEGIES = {
    "ParameterServerStrategy": (
        "parameter_server.py", {"chief": 1, "ps": 2, "worker": 2}),
    "MultiWorkerMirroredStrategy": ("mirrored.py", {"worker": 2}),
}
GOOD_ACCURACY = 0.95
WARM_UP_EPOCHS = 1  # for tracing functions and connecting
EPOCH = re.compile(r"epoch \d+: loss (\S+), (\S+) ms a step")
RESULT = re.compile(r"accuracy (\S+), loss (\S+) on held-out digits")


class Training:
    """A cluster that trains over one protocol, and the cluster's output."""

    def __init__(self, protocol, strategy, flags, folder):
        program, jobs = STRATEGIES[strategy]
        self.protocol = protocol
        self.step_ms = []
        self.loss = None
        self.accuracy = None
        self.path = None
        self._cluster = cluster.Cluster(
            jobs, protocol,
            [str(FOLDER / program), f"--hidden={flags.hidden}",
             f"--epochs={flags.epochs}", f"--seed={flags.seed}"],
            folder / f"{strategy}-{protocol}")

    def run_epoch(self):
        self.loss, took = self._next(EPOCH)
        self.step_ms.append(took)

    def finish(self):
        self.accuracy, self.loss = self._next(RESULT)
        self.path = path_of(self._cluster.finish(), self.protocol)

    def _next(self, pattern):
        line = self._cluster.next_line()
        match = pattern.fullmatch(line)
        if not match:
            raise cluster.Failure(f"the program said: {line}")
        return [float(number) for number in match.groups()]

    def p50(self):
        return statistics.median(self.step_ms[WARM_UP_EPOCHS:])

    def kill(self):
        self._cluster.kill()


def path_of(descriptions, protocol):
    """Returns a text with the paths over which the tasks received tensors."""
    if protocol != PENSTOCK:
        return protocol
    paths = collections.Counter()
    for task, description in descriptions.items():
        for server in description["servers"]:
            for route in server["routes"]:
                if route["path"] == "grpc":
                    raise cluster.Failure(
                        f"{task} received tensors from {route['address']} over "
                        f"grpc: {route['reason']}")
                name = route["path"]
                if route["reason"]:
                    name += f" ({route['reason']})"
                paths[name] += route["bytes_received"]
    if not any(paths.values()):
        raise cluster.Failure(
            "no tensors went over Penstock; is PENSTOCK_POLICY=off?")
    return ", ".join(name for name, count in paths.items() if count)


@contextlib.contextmanager
def named(name):
    """Prepends `name` to the message of a failure in the block."""
    try:
        yield
    except cluster.Failure as failure:
        raise cluster.Failure(f"{name}: {failure}") from None


def train(strategy, flags, folder, trainings):
    for protocol in PROTOCOLS:
        trainings[protocol] = Training(protocol, strategy, flags, folder)
    for round_ in range(flags.rounds):
        epochs = (flags.epochs * (round_ + 1) // flags.rounds
                  - flags.epochs * round_ // flags.rounds)
        for training in trainings.values():
            with named(training.protocol):
                for _ in range(epochs):
                    training.run_epoch()
        print(f"  round {round_ + 1} of {flags.rounds}: epoch "
              f"{len(training.step_ms)} of {flags.epochs}, loss "
              + " and ".join(f"{x.loss:.4f}" for x in trainings.values()),
              flush=True)
    for training in trainings.values():
        with named(training.protocol):
            training.finish()


def check(strategy, trainings):
    for training in trainings.values():
        if training.accuracy < GOOD_ACCURACY:
            raise cluster.Failure(
                f"{training.protocol}: accuracy is {training.accuracy:.2%}, "
                f"below {GOOD_ACCURACY:.0%}")
    # Compares the losses of a MultiWorkerMirroredStrategy, whose steps sum the
    # gradients of all workers. With equal seeds, no bit may depend on the
    # transport. Parameter servers apply each worker's gradients on arrival, so
    # no two runs are equal, even over grpc.
    if strategy == "MultiWorkerMirroredStrategy":
        ends = {(x.accuracy, x.loss) for x in trainings.values()}
        if len(ends) != 1:
            raise cluster.Failure(
                "the results differ, and should not in a bit: "
                + " and ".join(f"accuracy {accuracy}, loss {loss}"
                               for accuracy, loss in sorted(ends)))


def run(strategy, flags, folder):
    tasks = ", ".join(f"{job} {index}"
                      for job, count in STRATEGIES[strategy][1].items()
                      for index in range(count))
    print(f"{strategy}: {tasks}", flush=True)
    trainings = {}
    try:
        with named(strategy):
            train(strategy, flags, folder, trainings)
            check(strategy, trainings)
    finally:
        for training in trainings.values():
            training.kill()
    return trainings


def print_table(results):
    print("\nMilliseconds of a step, p50 over the epochs, and accuracy on the "
          "held-out digits:")
    print(f"{'':<28}{'grpc':>18}{PENSTOCK:>18}{'ratio':>7}  path")
    for strategy, trainings in results.items():
        cells = (f"{x.p50():.1f}, {x.accuracy:.2%}" for x in trainings.values())
        stock, ours = trainings.values()
        print(f"{strategy:<28}" + "".join(f"{cell:>18}" for cell in cells)
              + f"{stock.p50() / ours.p50():>7.2f}  {ours.path}")


def parse_flags():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", choices=STRATEGIES, action="append",
                        help="only this one")
    parser.add_argument("--hidden", type=positive, default=1024,
                        help="width of the hidden layers; twice as wide moves "
                        "four times the bytes (1024)")
    parser.add_argument("--epochs", type=positive,
                        help="16; with --quick 8")
    parser.add_argument("--rounds", type=positive, default=4,
                        help="turns of each of the two (4)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few epochs")
    flags = parser.parse_args()
    flags.epochs = flags.epochs or (8 if flags.quick else 16)
    flags.rounds = min(flags.rounds, flags.epochs)
    if flags.epochs <= WARM_UP_EPOCHS:
        parser.error(f"--epochs: the first {WARM_UP_EPOCHS} is not counted")
    return flags


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("has to be 1 or more")
    return number


def check_installed():
    for module, remedy in (
            ("tensorflow", "pip install tensorflow-cpu"),
            ("penstock_tensorflow",
             "pip install the wheel that tools/tensorflow_wheel makes")):
        if importlib.util.find_spec(module) is None:
            raise cluster.Failure(f"{sys.executable} has no {module}: {remedy}")


def main():
    flags = parse_flags()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begun = time.monotonic()
    size = 4 * (64 + 2 * flags.hidden + 10) * flags.hidden / 1e6
    try:
        check_installed()
        print(f"grpc and {PENSTOCK} by turns, {flags.epochs} epochs each; "
              f"{size:.1f} MB of variables;\neach task is a process")
        with tempfile.TemporaryDirectory() as folder:
            results = {
                strategy: run(strategy, flags, pathlib.Path(folder))
                for strategy in flags.strategy or STRATEGIES
            }
        print_table(results)
    except cluster.Failure as failure:
        sys.exit(f"demo: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
    print(f"{time.monotonic() - begun:.0f} s in all")


if __name__ == "__main__":
    main()
