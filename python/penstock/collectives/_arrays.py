"""Converts arrays to the bytes that the module in C++ reads and writes."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Tuple

import numpy as np

from .. import _collectives  # type: ignore[attr-defined]
from .._errors import InvalidArgument

# The element types of NumPy that have reductions of their own, with their
# names.
_TYPES = {
    ("f", 4): "f32", ("f", 8): "f64", ("f", 2): "f16",
    ("i", 1): "int8", ("i", 2): "int16", ("i", 4): "int32", ("i", 8): "int64",
    ("u", 1): "uint8", ("b", 1): "bool",
}
# NumPy's complex types, which are reduced as pairs of floats.
_COMPLEX = {8: ("f4", "f32"), 16: ("f8", "f64")}
# DLPack's numbers of devices whose memory the CPU can use: the CPU, memory
# pinned for CUDA, and memory pinned for ROCm.
_DEVICES = (1, 3, 11)
_SUMS_OF_UNSIGNED = ("sum", "product", "and", "or", "xor")


class Elements(NamedTuple):
    """An array as flat memory in row-major order."""

    flat: Any      # has Python's buffer protocol
    type: str      # "f32" and so on
    array: Any     # NumPy's view of `flat`, in the caller's shape and type
    target: Any    # the caller's array if `flat` is a copy, else None
    is_bfloat16: bool

    def finish(self) -> None:
        """Copies a result to the caller's array."""
        if self.target is not None:
            np.copyto(self.target, self.array)


def _array_of(value: Any, title: str) -> Tuple[Any, bool]:
    """Returns `value` as a NumPy array. Also returns whether the array's
    elements are the bits of bfloat16."""
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
            raise InvalidArgument(
                f"elements of {title} are masked, and collectives have no "
                "mask: give array.filled(value)")
        value = np.asarray(value)
        if value.dtype.name == "bfloat16":  # of the package ml_dtypes
            return value.view(np.uint16), True
        return value, False
    if type(value).__module__ == "penstock":  # a penstock.Tensor
        # Makes the array read-only, because DLPack cannot say that it is.
        is_bfloat16 = value.dtype == "bf16"
        return value.bits() if is_bfloat16 else value.numpy(), is_bfloat16
    if hasattr(value, "__dlpack__"):
        lent = _lend(value, title)
        return np.asarray(lent), lent.is_bfloat16
    return None, False


def _lend(value: Any, title: str) -> Any:
    # Checks the device first. CUDA's __dlpack__ needs a stream, and arrays on
    # a device are refused anyway.
    device = getattr(value, "__dlpack_device__", lambda: (1, 0))()
    if int(device[0]) not in _DEVICES:
        raise InvalidArgument(
            f"{title} is on a device of DLPack's type {int(device[0])}, and "
            "collectives take arrays of the CPU: copy it there first, for "
            "example by array.cpu()")
    return _collectives.LentMemory(value.__dlpack__())


def _flat(array: Any, type_and_view: Tuple[str, Optional[str]]) -> Any:
    view = type_and_view[1]
    flat = array.reshape(-1)
    return flat if view is None else flat.view(view)


def _type_of(dtype: Any, op: Optional[str], is_bfloat16: bool,
             title: str) -> Tuple[str, Optional[str]]:
    """Returns the name of the element type. Also returns the NumPy type as
    which the memory is viewed, or None."""
    if is_bfloat16:
        return "bf16", None
    name = _TYPES.get((dtype.kind, dtype.itemsize))
    if name is not None:
        return name, None
    if dtype.hasobject or dtype.itemsize == 0:
        raise InvalidArgument(
            f"{title} has elements of type {dtype}, which have no bytes that "
            "another process can read: convert them, for example by "
            "array.astype()")
    if op is None:
        return "uint8", "u1"  # moves bytes
    if dtype.kind == "c" and dtype.itemsize in _COMPLEX and (
            op in ("sum", "average")):
        view, name = _COMPLEX[dtype.itemsize]
        return name, view
    if dtype.kind == "u" and op in _SUMS_OF_UNSIGNED:
        return f"int{8 * dtype.itemsize}", f"i{dtype.itemsize}"
    raise InvalidArgument(
        f"{title} has elements of type {dtype}, which have no {op}: convert "
        "them by array.astype()")


def _is_plain(array: Any) -> bool:
    return bool(array.flags.c_contiguous and array.dtype.isnative)


def _copied(array: Any, has_values: bool) -> Any:
    native = array.dtype.newbyteorder("=")
    if has_values:
        return np.array(array, dtype=native, order="C")
    return np.empty(array.shape, native)


def reads(value: Any, op: Optional[str] = None,
          title: str = "the array") -> Elements:
    """Returns the elements of any array or number. `op` is the reduction, or
    None for operations that only move elements."""
    array, is_bfloat16 = _array_of(value, title)
    if array is None:
        array = np.asarray(value)
    how = _type_of(array.dtype, op, is_bfloat16, title)
    if not _is_plain(array):
        array = _copied(array, True)
    return Elements(_flat(array, how), how[0], array, None, is_bfloat16)


def writes(value: Any, op: Optional[str] = None, title: str = "out",
           has_values: bool = False) -> Elements:
    """Returns the elements of an array that an operation overwrites. If
    `has_values`, the operation reads them first."""
    array, is_bfloat16 = _array_of(value, title)
    if array is None:
        raise TypeError(f"{title} is of type {type(value).__name__}: give a "
                        "numpy array, or an object that has __dlpack__")
    if not array.flags.writeable:
        raise InvalidArgument(f"{title} is read-only: give array.copy()")
    how = _type_of(array.dtype, op, is_bfloat16, title)
    if _is_plain(array):
        return Elements(_flat(array, how), how[0], array, None, is_bfloat16)
    copy = _copied(array, has_values)
    return Elements(_flat(copy, how), how[0], copy, array, is_bfloat16)


def result(out: Any, like: Elements, shape: List[int],
           op: Optional[str] = None) -> Tuple[Elements, Any]:
    """Returns the elements for an operation's result, and the array that the
    operation returns: `out`, or a new array if `out` is None. Checks the shape
    and the type of `out`."""
    if out is None:
        if like.is_bfloat16:
            raise InvalidArgument(
                "numpy has no bfloat16 for the result: give out=, of the "
                "array's own library")
        out = np.empty(shape, like.array.dtype)
        return writes(out, op), out
    elements = writes(out, op)
    if (list(elements.array.shape) != list(shape)
            or elements.array.dtype.newbyteorder("=")
            != like.array.dtype.newbyteorder("=")
            or elements.is_bfloat16 != like.is_bfloat16):
        raise InvalidArgument(
            f"out has shape {_shape(elements.array.shape)} and type "
            f"{_name(elements)}, expected {_shape(shape)} and {_name(like)}")
    return elements, out


def _shape(shape: Any) -> Tuple[int, ...]:
    return tuple(int(n) for n in shape)


def _name(elements: Elements) -> str:
    return "bfloat16" if elements.is_bfloat16 else str(elements.array.dtype)


def split(shape: Any, size: int, title: str) -> List[int]:
    """Returns the shape of one of `size` equal blocks along the first
    dimension."""
    if len(shape) == 0 or shape[0] % size != 0:
        raise InvalidArgument(
            f"{title} has shape {_shape(shape)}: its first dimension must be "
            f"a multiple of the group's size, {size}")
    return [shape[0] // size, *shape[1:]]


def join(shape: Any, size: int) -> List[int]:
    """Returns the shape of `size` blocks, one after another along the first
    dimension. A block without dimensions counts as one element."""
    if len(shape) == 0:
        return [size]
    return [shape[0] * size, *shape[1:]]
