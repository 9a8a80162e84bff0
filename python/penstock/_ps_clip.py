"""Clips gradients before they are pushed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# The number of elements of a piece, whose squares in float64 fit into a cache.
_PIECE = 1 << 16


def clip_by_global_norm(
        max_norm: float,
        gradients: Mapping[str, NDArray[Any]] | None = None, *,
        rows: Mapping[str, tuple[ArrayLike, NDArray[Any]]] | None = None
) -> float:
    """Scales the arrays in place, so that the Euclidean norm of all arrays
    together is at most `max_norm`. Returns the norm before scaling.

    Call it on a worker, before a push: a server has only a part of a step's
    gradients.

    Raises ValueError, with the table, if an element is not finite; the arrays
    are then unchanged. Raises TypeError for an argument that is no writable
    array of floats. For a tensor in the host's memory, pass
    `numpy.asarray(tensor)`.
    """
    if not (max_norm > 0 and math.isfinite(max_norm)):
        raise ValueError(f"max_norm is a number above 0, not {max_norm}")
    arrays = dict(gradients or {})
    arrays.update((name, pair[1]) for name, pair in (rows or {}).items())
    total = 0.0
    for name, array in arrays.items():
        _check(name, array)
        total += sum(
            float(np.square(piece, dtype=np.float64).sum())
            for piece in _pieces(array))
        if not math.isfinite(total):
            raise ValueError(f"table {name!r}: an element is not finite, or "
                             "above 1e154")
    norm = math.sqrt(total)
    if norm > max_norm:
        for array in arrays.values():
            np.multiply(array, max_norm / norm, out=array, casting="same_kind")
    return norm


def _check(name: str, array: Any) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"table {name!r}: a gradient is a numpy array, not "
                        f"{type(array).__name__}; numpy.asarray() makes one of "
                        "a tensor without a copy")
    if array.dtype.kind != "f" or not array.flags.writeable:
        raise TypeError(f"table {name!r}: a gradient is of floats and can be "
                        f"written to, this one is {array.dtype}, writeable="
                        f"{array.flags.writeable}")


def _pieces(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    flat = array.reshape(-1)  # copies only an array that is not contiguous
    for begin in range(0, flat.size, _PIECE):
        yield flat[begin:begin + _PIECE]
