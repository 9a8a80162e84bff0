#!/usr/bin/env python3
"""Tests each step of each rule against its published formula. The formula is
computed in twice the kernel's precision for f32, and with 11 more bits for f64
(x86's long double).

Each step starts from the kernel's own state, so errors do not add up. A result
is a sum of terms. A result may differ from the formula's by TOLERANCE units in
the last place of its largest term. The most roundings are those of FTRL's z
with L2: 14, including those of constants, of half a unit each. If a factor is
just above a power of two, a rounding counts up to twice. In some hundred trials
of each rule, the largest difference was 5.6. A wrong formula differs by
thousands.
"""

import random
import unittest

import numpy

import training

TOLERANCE = 10
WIDER = {"f32": numpy.float64, "f64": numpy.longdouble}
TRIALS = 12  # of each rule and type


def random_config(rule, dtype, rng):
    config = {"rule": rule, "learning_rate": 10 ** rng.uniform(-4, 0)}
    if rng.random() < 0.5:
        config["weight_decay"] = 10 ** rng.uniform(-4, -1)
    if rng.random() < 0.5:
        config["clip_value"] = 10 ** rng.uniform(-2, 1)
    fields = {
        "momentum": ["momentum"], "nesterov": ["momentum"],
        "rmsprop": ["decay"], "adam": ["beta1", "beta2"],
        "adamw": ["beta1", "beta2"]}
    for field in fields.get(rule, []):
        config[field] = rng.choice([0, 0.5, 0.9, 0.999])
    if rule in ("adagrad", "rmsprop", "adam", "adamw"):
        config["epsilon"] = 10 ** rng.uniform(-10, -2)
    if rule in ("adagrad", "ftrl"):
        config["initial_accumulator"] = rng.choice([0, 0.1])
    if rule == "ftrl":
        config["ftrl_beta"] = rng.choice([0, 1])
        config["lambda1"] = rng.choice([0, 0.3])
        config["lambda2"] = rng.choice([0, 0.2])
    elif dtype == "f32" and rng.random() < 0.5:
        # Draws a schedule only for f32. Rates are computed in f64, which is not
        # exact enough for the steps of f64.
        config.update(rng.choice([
            {"kind": "step", "every": 3, "factor": 0.5},
            {"kind": "cosine", "every": 6, "final_rate": 1e-5},
            {"warm_up_steps": 5}]))
    return config


def rate_of(config, step):
    rate, warm_up = config["learning_rate"], config.get("warm_up_steps", 0)
    if step <= warm_up:
        return rate * step / warm_up
    done = step - warm_up - 1
    if config.get("kind") == "step":
        return rate * config["factor"] ** (done // config["every"])
    if config.get("kind") == "cosine":
        final, part = config["final_rate"], min(done / config["every"], 1)
        return final + (rate - final) / 2 * (1 + numpy.cos(numpy.pi * part))
    return rate


def quotient(above, below):
    """Returns the quotient, or 0 for a zero divisor."""
    return numpy.divide(above, below, out=numpy.zeros_like(above),
                        where=below != 0)


class Formula:
    """Computes a step from a state, with the size of the largest term of each
    result. Values are computed from the kernel's own slots, so that each
    result is checked by itself."""

    def __init__(self, config, dtype, step, raw, before, after):
        self.wide = WIDER[dtype]
        self.config = config
        self.rate = self.wide(rate_of(config, step))
        self.step = step
        self.w = before[0].astype(self.wide)
        self.before = before[1:].astype(self.wide)
        self.after = after[1:].astype(self.wide)
        g = raw.astype(self.wide)
        clip = config.get("clip_value", 0)
        if clip:
            g = numpy.clip(g, -self.wide(clip), self.wide(clip))
        l2 = 0 if config["rule"] == "adamw" else self.get("weight_decay", 0)
        self.g = g + l2 * self.w
        self.size = numpy.maximum(abs(g), abs(l2 * self.w))  # of the gradient

    def get(self, field, default):
        return self.wide(self.config.get(field, default))

    def largest(self, *terms):
        return numpy.max([abs(term) for term in terms], axis=0)

    def moved(self, update, size, kept=None):
        kept = self.w if kept is None else kept
        return kept - update, self.largest(kept, size)

    def sgd(self):
        return [self.moved(self.rate * self.g, self.rate * self.size)]

    def momentum(self, nesterov=False):
        mu = self.get("momentum", 0.9)
        slot = (mu * self.before[0] + self.g,
                self.largest(mu * self.before[0], self.size))
        b = self.after[0]
        ahead, size = b, b
        if nesterov:
            ahead = self.g + mu * b
            size = self.largest(self.size, mu * b)
        return [self.moved(self.rate * ahead, self.rate * size), slot]

    def nesterov(self):
        return self.momentum(nesterov=True)

    def adagrad(self):
        slot = (self.before[0] + self.g ** 2,
                self.largest(self.before[0], self.size ** 2))
        below = numpy.sqrt(self.after[0]) + self.get("epsilon", 1e-8)
        return [self.moved(self.rate * self.g / below,
                           self.rate * self.size / below), slot]

    def mean_square(self, k, decay):
        kept = decay * self.before[k]
        return (kept + (1 - decay) * self.g ** 2,
                self.largest(kept, (1 - decay) * self.size ** 2))

    def rmsprop(self):
        slot = self.mean_square(0, self.get("decay", 0.99))
        below = numpy.sqrt(self.after[0]) + self.get("epsilon", 1e-8)
        return [self.moved(self.rate * self.g / below,
                           self.rate * self.size / below), slot]

    def adam(self, keep=1):
        beta1, beta2 = self.get("beta1", 0.9), self.get("beta2", 0.999)
        first = (beta1 * self.before[0] + (1 - beta1) * self.g,
                 self.largest(beta1 * self.before[0], (1 - beta1) * self.size))
        corrected1 = self.after[0] / (1 - beta1 ** self.step)
        corrected2 = self.after[1] / (1 - beta2 ** self.step)
        update = self.rate * corrected1 / (
            numpy.sqrt(corrected2) + self.get("epsilon", 1e-8))
        return [self.moved(update, update, self.w * keep), first,
                self.mean_square(1, beta2)]

    def adamw(self):
        return self.adam(1 - self.rate * self.get("weight_decay", 0))

    def ftrl(self):
        """Returns the results of FTRL: McMahan et al., KDD 2013, alg. 1."""
        n, z = self.before[1], self.before[0]
        grown = n + self.g ** 2
        sigma = (numpy.sqrt(grown) - numpy.sqrt(n)) / self.rate
        if self.wide is numpy.longdouble:
            # Uses an equal form of the formula: 11 more bits are too few for
            # the difference in the published form.
            sigma = quotient(self.g ** 2, numpy.sqrt(grown) + numpy.sqrt(n))
            sigma /= self.rate
        size = quotient(self.size ** 2, numpy.sqrt(grown) + numpy.sqrt(n))
        slots = [(z + self.g - sigma * self.w,
                  self.largest(z, self.size, size / self.rate * self.w)),
                 (grown, self.largest(n, self.size ** 2))]
        lambda1 = self.get("lambda1", 0)
        z, n = self.after
        below = (self.get("ftrl_beta", 1) + numpy.sqrt(n)) / self.rate + (
            self.get("lambda2", 0))
        w = numpy.where(abs(z) <= lambda1, 0,
                        quotient(numpy.sign(z) * lambda1 - z, below))
        return [(w, quotient(self.largest(z, w * 0 + lambda1), below)), *slots]


def worst_error(dtype, config, states, gradients):
    """Returns the errors, in units in the last place, of all results of all
    steps."""
    own, worst = training.DTYPES[dtype], 0
    for step, raw in enumerate(gradients, 1):
        before, after = states[step - 1], states[step]
        formula = Formula(config, dtype, step, raw, before, after)
        results = getattr(formula, config["rule"])()
        assert len(results) == len(after)
        for found, (exact, size) in zip(after, results):
            unit = numpy.spacing(numpy.maximum(size, abs(exact)).astype(own))
            error = abs(found.astype(formula.wide) - exact) / unit
            assert numpy.isfinite(error).all()
            worst = max(worst, error.max())
    return worst


class FormulaTest(unittest.TestCase):

    def test_each_step_is_what_the_formula_says(self):
        for rule in training.SLOTS:
            for dtype in training.DTYPES:
                with self.subTest(rule=rule, dtype=dtype):
                    seed, worst = training.new_seed(), 0
                    rng, arrays = random.Random(seed), numpy.random.RandomState(
                        seed % (1 << 32))
                    for _ in range(TRIALS):
                        config = random_config(rule, dtype, rng)
                        count, steps = rng.randint(1, 700), rng.randint(1, 12)
                        own = training.DTYPES[dtype]
                        value = arrays.standard_normal(count).astype(own)
                        gradients = [
                            (arrays.standard_normal(count) *
                             10 ** arrays.uniform(-4, 2, count) *
                             (arrays.uniform(size=count) > 0.1)).astype(own)
                            for _ in range(steps)]
                        states = training.train(dtype, config, value, gradients)
                        worst = max(worst, worst_error(dtype, config, states,
                                                       gradients))
                    print(f"{rule} {dtype}: at most {worst:.2f} ulp")
                    self.assertLessEqual(worst, TOLERANCE)


if __name__ == "__main__":
    unittest.main()
