#!/usr/bin/python3 -B
"""Tests clipping by the global norm against the formula."""

import run_pytest

import numpy as np
import pytest

from penstock import ps


def norm_of(*arrays):
    return np.sqrt(sum(np.sum(np.square(a.astype("f8"))) for a in arrays))


@pytest.mark.parametrize("seed", range(20))
def test_one_vector_of_all_arrays(seed):
    random = np.random.default_rng(seed)
    dtypes = ["f2", "f4", "f8"]
    gradients = {
        str(i): random.normal(size=random.integers(0, 200_000)).astype(
            random.choice(dtypes)) for i in range(random.integers(0, 4))}
    rows = {"rows": (np.arange(7), random.normal(size=(7, 5)).astype("f4"))}
    arrays = list(gradients.values()) + [rows["rows"][1]]
    before = [array.copy() for array in arrays]
    limit = float(random.choice([0.5, 3.0, 1e6]))
    norm = ps.clip_by_global_norm(limit, gradients, rows=rows)
    assert norm == pytest.approx(norm_of(*before), rel=1e-9)
    scale = min(1.0, limit / norm)
    for array, old in zip(arrays, before):
        tolerance = {2: 2e-3, 4: 1e-6, 8: 1e-12}[array.itemsize]
        np.testing.assert_allclose(array, old * scale, rtol=tolerance,
                                   atol=1e-7 if array.itemsize == 2 else 0)


def test_below_the_limit_no_bit_changes():
    gradient = np.array([3, 4], "f4")
    assert ps.clip_by_global_norm(5.0, {"w": gradient}) == 5
    assert gradient.tolist() == [3, 4]


def test_an_array_that_is_not_contiguous():
    all_of_it = np.ones((4, 4), "f4")
    assert ps.clip_by_global_norm(1.0, {"w": all_of_it[:, ::2]}) == \
        pytest.approx(8**0.5)
    assert all_of_it[0].tolist() == pytest.approx([8**-0.5, 1, 8**-0.5, 1])


def test_of_nothing():
    assert ps.clip_by_global_norm(1.0) == 0
    assert ps.clip_by_global_norm(1.0, {"w": np.zeros(3, "f4")}) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_named_and_nothing_is_changed(bad):
    first = np.full(3, 100, "f4")
    with pytest.raises(ValueError, match="'second'"):
        ps.clip_by_global_norm(
            1.0, {"first": first, "second": np.array([1, bad], "f4")})
    assert first.tolist() == [100, 100, 100]


@pytest.mark.parametrize("limit", [0, -1, np.nan, np.inf])
def test_a_limit_that_is_none(limit):
    with pytest.raises(ValueError, match="max_norm"):
        ps.clip_by_global_norm(limit, {})


def test_what_cannot_be_scaled_in_place():
    frozen = np.ones(2, "f4")
    frozen.flags.writeable = False
    for array in [[1.0, 2.0], np.arange(3), frozen]:
        with pytest.raises(TypeError, match="'w'"):
            ps.clip_by_global_norm(1.0, {"w": array})


if __name__ == "__main__":
    run_pytest.main(__file__)
