"""Random parts of calls, for the tests that compare programs over grpcio and
over penstock.grpc."""

import os
import random
import time

import grpc

CODES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]
DETAILS = ("", "why", "süß % \n", "d" * 500)
# A deadline that every answer meets, in seconds.
FAR = 60


def log_uniform(chance, most):
    return int(2 ** chance.uniform(0, most.bit_length() - 1)) - 1


def random_metadata(chance):
    def pair():
        name = "x-" + chance.choice("abc") + str(chance.randrange(3))
        if chance.random() < 0.3:
            return name + "-bin", chance.randbytes(log_uniform(chance, 300))
        return name, "v" * log_uniform(chance, 300)

    return [pair() for _ in range(chance.choice((0, 0, 1, 4)))]


def as_json(metadata):
    return [[key, value if isinstance(value, str) else list(value)]
            for key, value in metadata]


def of_json(metadata):
    return tuple((key, value if isinstance(value, str) else bytes(value))
                 for key, value in metadata)


def pairs(metadata):
    """Returns the metadata that the program has set, without grpcio's own."""
    return [(key, value) for key, value in metadata or ()
            if key.startswith("x-")]


def seeds():
    """Yields seeds and their generators for SEEDS_SECONDS, by default 5. If
    the environment has GRPC_SEED, yields only that seed."""
    end = time.monotonic() + float(os.environ.get("SEEDS_SECONDS", "5"))
    chosen = os.environ.get("GRPC_SEED")
    while True:
        seed = int(chosen or random.randrange(2**32))
        print("seed", seed, flush=True)
        yield seed, random.Random(seed)
        if chosen or time.monotonic() > end:
            return
