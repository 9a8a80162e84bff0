"""Arrays in memory that other ranks read in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._errors import FailedPrecondition, InvalidArgument

# The same value as kMaxPoolBytes in C++.
_MOST_BYTES = 64 << 30


def check_pool(pool_bytes: Any) -> None:
    """Raises unless `pool_bytes` is the size of a pool, or 0."""
    if isinstance(pool_bytes, bool) or not hasattr(pool_bytes, "__index__"):
        raise TypeError(f"pool_bytes is {pool_bytes!r}: give an int")
    if not 0 <= int(pool_bytes) <= _MOST_BYTES:
        raise InvalidArgument(f"pool_bytes is {pool_bytes}, expected 0 to "
                              f"{_MOST_BYTES}")


def empty(native: Any, has_pool: bool, shape: Any, dtype: Any) -> Any:
    """Returns an array in the pool of the group `native`."""
    if not has_pool:
        raise FailedPrecondition(
            "the group has no pool: give pool_bytes= to init() or split()")
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise InvalidArgument(
            f"dtype is {kind}: objects have no bytes that another process can "
            "read")
    lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
    size = math.prod(int(length) for length in lengths) * kind.itemsize
    # NumPy refuses negative lengths.
    memory = native.allocate(size) if size > 0 else None
    if memory is None:
        return np.empty(shape, kind)
    return np.ndarray(shape, kind, buffer=memory)
