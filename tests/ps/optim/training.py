"""Runs the program apply_steps, which trains with the optimizers' kernels."""

import os
import pathlib
import random
import subprocess

import numpy

# The path of the program, relative to the folder in which Bazel starts a test.
PROGRAM = pathlib.Path("tests/ps/optim/apply_steps").absolute()
DTYPES = {"f32": numpy.float32, "f64": numpy.float64}
SLOTS = {"sgd": 0, "momentum": 1, "nesterov": 1, "adagrad": 1, "rmsprop": 1,
         "adam": 2, "adamw": 2, "ftrl": 2}


def new_seed():
    """Returns the seed: PENSTOCK_TEST_SEED, or a new one for each run."""
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(1 << 32)))
    print(f"PENSTOCK_TEST_SEED={seed}", flush=True)
    return seed


def train(dtype, config, value, gradients):
    """Returns the states of the training, the first included: each is the
    value followed by the slots."""
    own = DTYPES[dtype]
    flags = {"dtype": dtype, "count": len(value), "steps": len(gradients),
             **config}
    result = subprocess.run(
        [PROGRAM, *(f"{key}={flag}" for key, flag in flags.items())],
        input=b"".join(array.astype(own).tobytes()
                       for array in [value, *gradients]),
        capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()
    return numpy.frombuffer(result.stdout, own).reshape(
        len(gradients) + 1, 1 + SLOTS[config["rule"]], len(value))


# The upper bounds on the difference of two trainings of up to 30 steps,
# relative to the largest element or to 1. Each training rounds about ten times
# a step, in a different order. With weight decay, values also enter their next
# steps.
TOLERANCES = {"f32": 30 * 10 * 2.0 ** -24, "f64": 30 * 10 * 2.0 ** -53}


def expect_close(found, expected, tolerance):
    expected = numpy.asarray(expected)
    scale = max(1, abs(expected).max())
    error = abs(found - expected).max() / scale
    assert error <= tolerance, f"off by {error}, more than {tolerance}"
