#!/usr/bin/env python3
"""Writes torch_vectors.json again: the results of PyTorch for some trainings
in f64.

Usage: make_torch_vectors.py >torch_vectors.json, where there is PyTorch
(tools/setup --torch, and Debian's own Python).
"""

import json
import sys

import numpy
import torch

import torch_reference

CONFIGS = [
    {"rule": "sgd", "learning_rate": 0.1},
    {"rule": "sgd", "learning_rate": 0.1, "clip_value": 0.5},
    {"rule": "sgd", "learning_rate": 0.1, "kind": "step", "every": 2,
     "factor": 0.5},
    {"rule": "sgd", "learning_rate": 0.1, "kind": "cosine", "every": 6,
     "final_rate": 0.01},
    {"rule": "momentum", "learning_rate": 0.01},
    {"rule": "momentum", "learning_rate": 0.01, "weight_decay": 0.1,
     "momentum": 0.5},
    {"rule": "nesterov", "learning_rate": 0.01},
    {"rule": "nesterov", "learning_rate": 0.01, "weight_decay": 0.1},
    {"rule": "adagrad", "learning_rate": 0.1},
    {"rule": "adagrad", "learning_rate": 0.1, "initial_accumulator": 0.1,
     "weight_decay": 0.1},
    {"rule": "rmsprop", "learning_rate": 0.01},
    {"rule": "rmsprop", "learning_rate": 0.01, "decay": 0.9,
     "weight_decay": 0.1},
    {"rule": "adam", "learning_rate": 0.01},
    {"rule": "adam", "learning_rate": 0.01, "beta1": 0.5, "beta2": 0.9,
     "epsilon": 0.01, "weight_decay": 0.1, "clip_value": 0.5},
    {"rule": "adamw", "learning_rate": 0.01, "weight_decay": 0.1},
    {"rule": "adamw", "learning_rate": 0.01, "weight_decay": 0.1,
     "kind": "cosine", "every": 6, "final_rate": 0.001},
]
STEPS, COUNT = 6, 5


def main():
    random = numpy.random.RandomState(15)
    vectors = []
    for config in CONFIGS:
        value = random.standard_normal(COUNT)
        gradients = random.standard_normal((STEPS, COUNT))
        values = torch_reference.train("f64", config, value, gradients)
        vectors.append({"config": config, "value": value.tolist(),
                        "gradients": gradients.tolist(),
                        "values": values.tolist()})
    lines = ",\n".join(json.dumps(vector) for vector in vectors)
    sys.stdout.write('{"torch": %s, "vectors": [\n%s\n]}\n' %
                     (json.dumps(torch.__version__), lines))


if __name__ == "__main__":
    main()
