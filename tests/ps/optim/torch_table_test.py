#!/usr/bin/env python3
"""Tests the kernels against a table of PyTorch's results; see
make_torch_vectors.py. torch_test.py runs PyTorch itself."""

import json
import pathlib
import unittest

import numpy

import training

TABLE = pathlib.Path("tests/ps/optim/torch_vectors.json")


class TorchTableTest(unittest.TestCase):

    def test_trainings_end_where_those_of_pytorch_do(self):
        vectors = json.loads(TABLE.read_text())["vectors"]
        rules = {vector["config"]["rule"] for vector in vectors}
        # Expects all rules except FTRL, which PyTorch does not have.
        self.assertEqual(rules, set(training.SLOTS) - {"ftrl"})
        for vector in vectors:
            for dtype, tolerance in training.TOLERANCES.items():
                with self.subTest(**vector["config"], dtype=dtype):
                    states = training.train(
                        dtype, vector["config"], numpy.array(vector["value"]),
                        numpy.array(vector["gradients"]))
                    training.expect_close(states[1:, 0], vector["values"],
                                          tolerance)


if __name__ == "__main__":
    unittest.main()
