#!/usr/bin/env python3
"""Tests the kernels against PyTorch, step by step, for random shapes and
numbers. Needs tools/setup --torch; says so and skips where there is no
PyTorch."""

import random
import unittest

import numpy

import training

try:
    import torch_reference
except ImportError:
    torch_reference = None

TRIALS = 20  # of each rule and type


def random_config(rule, rng):
    config = {"rule": rule, "learning_rate": 10 ** rng.uniform(-4, -1)}
    if rng.random() < 0.5:
        config["weight_decay"] = 10 ** rng.uniform(-4, -1)
    if rng.random() < 0.5:
        config["clip_value"] = 10 ** rng.uniform(-1, 1)
    if rule in ("adam", "adamw"):
        config["beta1"] = rng.choice([0.5, 0.9])
        config["beta2"] = rng.choice([0.9, 0.999])
    if rng.random() < 0.5:
        config.update(rng.choice([
            {"kind": "step", "every": 3, "factor": 0.5},
            {"kind": "cosine", "every": 30, "final_rate": 1e-5}]))
    return config


@unittest.skipIf(torch_reference is None,
                 "no PyTorch here: run tools/setup --torch")
class TorchTest(unittest.TestCase):

    def test_each_step_is_that_of_pytorch(self):
        for rule in set(training.SLOTS) - {"ftrl"}:
            for dtype, tolerance in training.TOLERANCES.items():
                with self.subTest(rule=rule, dtype=dtype):
                    seed = training.new_seed()
                    rng = random.Random(seed)
                    arrays = numpy.random.RandomState(seed % (1 << 32))
                    for _ in range(TRIALS):
                        config = random_config(rule, rng)
                        shape = rng.randint(1, 30), rng.randint(1, 500)
                        own = training.DTYPES[dtype]
                        value = arrays.standard_normal(shape[1]).astype(own)
                        gradients = arrays.standard_normal(shape).astype(own)
                        found = training.train(dtype, config, value, gradients)
                        training.expect_close(
                            found[1:, 0],
                            torch_reference.train(dtype, config, value,
                                                  gradients), tolerance)


if __name__ == "__main__":
    unittest.main()
