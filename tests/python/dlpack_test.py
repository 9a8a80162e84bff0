#!/usr/bin/python3 -B
"""Tests DLPack between Penstock, NumPy and PyTorch, and with producers and
consumers that break its rules."""

import ctypes
import gc

import run_pytest

import numpy as np
import pytest

import penstock

try:
    import torch
except ImportError:
    torch = None

with_torch = pytest.mark.skipif(
    torch is None, reason="no PyTorch here: apt-get install python3-torch")

GetPointer = ctypes.pythonapi.PyCapsule_GetPointer
GetPointer.restype = ctypes.c_void_p
GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
SetName = ctypes.pythonapi.PyCapsule_SetName
SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
USED = ctypes.c_char_p(b"used_dltensor")  # a capsule keeps the pointer


class Lent(ctypes.Structure):
    """The layout of DLManagedTensor."""


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Lent))
Lent._fields_ = [
    ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
    ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
    ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
    ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
    ("strides", ctypes.POINTER(ctypes.c_int64)),
    ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
    ("deleter", DELETER),
]


def lent_of(capsule):
    return Lent.from_address(GetPointer(capsule, b"dltensor"))


def test_numpy_and_penstock_share_memory_both_ways():
    array = np.arange(6, dtype="f4").reshape(2, 3)
    tensor = penstock.from_dlpack(array)
    back = np.from_dlpack(tensor)
    np.testing.assert_array_equal(back, array)
    assert np.shares_memory(back, array)
    assert tensor.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("make", [
    lambda a: a[::2], lambda a: a[::-1], lambda a: a.T, lambda a: a[:, 1:]])
def test_other_layouts_are_packed(make):
    array = make(np.arange(12).reshape(3, 4))
    capsule = array.__dlpack__()
    np.testing.assert_array_equal(penstock.from_dlpack(capsule).numpy(), array)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_scalars_and_empty_tensors_come_back(shape):
    tensor = penstock.from_dlpack(np.ones(shape).__dlpack__())
    assert tensor.shape == shape
    assert np.from_dlpack(tensor).shape == shape


def test_arrays_that_numpy_does_not_export_are_taken_directly():
    for array in (np.zeros(2, "?"), np.zeros(2, ">i4")):
        array.flags.writeable = False
        penstock.from_dlpack(array)


def test_a_capsule_is_used_once():
    capsule = np.zeros(3).__dlpack__()
    tensor = penstock.from_dlpack(capsule)
    with pytest.raises(penstock.InvalidArgument, match="used before"):
        penstock.from_dlpack(capsule)
    del tensor, capsule


def test_a_capsule_that_nobody_uses_lets_go():
    array = penstock.Tensor.empty(5000).numpy(writable=True)
    tensor = penstock.Tensor(array)
    before = tensor.__dlpack__()
    del before
    gc.collect()
    tensor = penstock.Tensor.empty(5000)
    memory = tensor.numpy(writable=True)
    capsule = tensor.__dlpack__()
    del capsule
    # Expects no copy, because nobody else uses the memory.
    assert np.shares_memory(tensor.numpy(writable=True), memory)


def test_a_consumer_that_calls_the_deleter_leaves_nothing_to_the_capsule():
    tensor = penstock.Tensor.empty(5000)
    memory = tensor.numpy(writable=True)
    capsule = tensor.__dlpack__()
    lent = lent_of(capsule)
    deleter = lent.deleter
    SetName(capsule, USED)
    deleter(ctypes.pointer(lent))
    assert np.shares_memory(tensor.numpy(writable=True), memory)
    del capsule  # must not call it again


def test_other_capsules_and_objects_are_refused():
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = ctypes.c_char_p(b"dltensor_versioned")
    for capsule in (new(1, name, None), new(1, None, None)):
        with pytest.raises(penstock.InvalidArgument, match="without arguments"):
            penstock.from_dlpack(capsule)
    for thing in (7, None, "x"):
        with pytest.raises(penstock.InvalidArgument, match="__dlpack__"):
            penstock.from_dlpack(thing)

    class Odd:
        def __dlpack__(self):
            return 7
    with pytest.raises(penstock.InvalidArgument, match="no capsule"):
        penstock.from_dlpack(Odd())


class OfDevice:
    """A DLPack producer without data. __dlpack_device__() returns `device`,
    or raises `device` if `device` is an exception. __dlpack__() must not be
    called.
    """

    def __init__(self, device):
        self.device = device

    def __dlpack_device__(self):
        if isinstance(self.device, Exception):
            raise self.device
        return self.device

    def __dlpack__(self, stream=None):
        raise AssertionError("asked for")


@pytest.mark.parametrize("device", [
    None, 7, (), (1,), (1, 0, 0), ("cpu", 0), (1, None), (1.0, 0), "10",
    (2**31, 0), (1, 2**63), (2**200, 0), (-2**200, 0), {1: 0, 2: 0}, object(),
], ids=repr)
def test_a_device_that_is_none_of_dlpacks_is_refused(device):
    for take in (penstock.from_dlpack, penstock.Tensor):
        with pytest.raises(penstock.InvalidArgument, match="(1, 0)"):
            take(OfDevice(device))


def test_what_has_no_functions_of_dlpacks_is_refused():
    source = OfDevice((1, 0))
    source.__dlpack__ = 7
    with pytest.raises(penstock.InvalidArgument, match="no function"):
        penstock.from_dlpack(source)
    source.__dlpack_device__ = (1, 0)
    with pytest.raises(penstock.InvalidArgument, match="no function"):
        penstock.from_dlpack(source)


def test_what_the_source_raises_is_passed_on():
    with pytest.raises(ZeroDivisionError):
        penstock.from_dlpack(OfDevice(ZeroDivisionError()))


# Tests memory of other devices. device_test.py tests the memory of CUDA.
def test_memory_of_other_devices_is_refused_before_it_is_asked_for():
    class OnDevice:
        def __dlpack_device__(self):
            return (10, 0)  # ROCm's

        def __dlpack__(self, stream=None):
            raise AssertionError("asked for")
    for take in (penstock.from_dlpack, penstock.Tensor):
        with pytest.raises(penstock.InvalidArgument, match=r"\.cpu\(\)"):
            take(OnDevice())


HUGE = 2**63 - 1


def numbers(*values):
    return (ctypes.c_int64 * len(values))(*values)


@pytest.mark.parametrize("change, word", [
    ({"device_type": 10}, "cpu"), ({"code": 5, "bits": 64}, "convert"),
    ({"lanes": 4}, "convert"), ({"bits": 4}, "convert"),
    ({"ndim": 17, "shape": numbers(*[1] * 17)}, "16"), ({"ndim": -1}, "dim"),
    ({"shape": None}, "null"), ({"data": None}, "null"),
    ({"shape": numbers(-1)}, "negative"),
    ({"shape": numbers(HUGE)}, "overflow"),
    ({"strides": numbers(HUGE)}, "lead out"),
    ({"byte_offset": 2**64 - 1}, "lead out"),
], ids=str)
def test_a_tensor_that_cannot_be_is_refused_and_stays_the_producers(
        change, word):
    array = np.zeros(2, "f4")
    capsule = array.__dlpack__()
    lent = lent_of(capsule)
    before = {field: getattr(lent, field) for field in change}
    for field, value in change.items():
        setattr(lent, field, ctypes.cast(value, type(before[field]))
                if isinstance(value, ctypes.Array) else value)
    with pytest.raises(penstock.InvalidArgument, match=word):
        penstock.from_dlpack(capsule)
    if "shape" in change:
        lent.shape = numbers(2)
    for field, value in before.items():
        if field not in ("shape", "strides"):
            setattr(lent, field, value)
    lent.strides = None
    lent.ndim = 1
    assert penstock.from_dlpack(capsule).shape == (2,)


def test_streams_and_devices_are_not_for_the_cpu():
    tensor = penstock.Tensor(np.zeros(3))
    tensor.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0))
    for wrong in ({"stream": 1}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError, match="copy it to the device"):
            tensor.__dlpack__(**wrong)


def test_a_copy_is_lent_on_demand():
    array = np.zeros(3)
    tensor = penstock.Tensor(array)
    other = penstock.from_dlpack(tensor.__dlpack__(copy=True))
    assert not np.shares_memory(other.numpy(), array)


@with_torch
@pytest.mark.parametrize("name", [
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32",
    "int64", "uint8"])
def test_torch_and_penstock_share_memory_both_ways(name):
    theirs = torch.ones((2, 3), dtype=getattr(torch, name))
    ours = penstock.from_dlpack(theirs)
    back = torch.from_dlpack(ours)
    assert back.dtype == theirs.dtype
    assert back.data_ptr() == theirs.data_ptr()
    assert torch.equal(back, theirs)
    del theirs, ours
    assert back.sum() == 6


@with_torch
def test_a_transposed_tensor_of_torch_is_packed():
    theirs = torch.arange(6).reshape(2, 3).T
    np.testing.assert_array_equal(penstock.Tensor(theirs).numpy(),
                                  theirs.numpy())


@with_torch
def test_torchs_own_reasons_come_through():
    with pytest.raises(Exception, match="detach"):
        penstock.Tensor(torch.ones(2, requires_grad=True))


if __name__ == "__main__":
    run_pytest.main(__file__)
