"""Plain types of the package."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A tensor that a server holds."""

    name: str
    dtype: str
    shape: tuple[int, ...]
