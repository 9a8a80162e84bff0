#!/usr/bin/python3 -B
"""Tests tensors and NumPy arrays: what is shared, copied and refused."""

import gc
import sys
import weakref

import run_pytest

import numpy as np
import pytest

import penstock

DTYPES = {"f32": "f4", "f64": "f8", "f16": "f2", "int8": "i1", "int16": "i2",
          "int32": "i4", "int64": "i8", "uint8": "u1", "bool": "?"}


def address(array):
    return array.__array_interface__["data"][0]


def is_same_memory(a, b):
    return address(a) == address(b)


@pytest.mark.parametrize("name", DTYPES)
def test_an_array_of_each_type_is_shared_both_ways(name):
    array = np.ones((2, 3), DTYPES[name])
    tensor = penstock.Tensor(array)
    assert (tensor.dtype, tensor.shape) == (name, (2, 3))
    assert tensor.nbytes == array.nbytes
    back = tensor.numpy()
    assert back.dtype == array.dtype
    assert is_same_memory(back, array)
    assert not back.flags.writeable


def test_the_array_lives_as_long_as_its_memory_is_used():
    array = np.ones(3)
    before = sys.getrefcount(array)
    tensor = penstock.Tensor(array)
    shown = tensor.numpy()
    del tensor
    assert sys.getrefcount(array) == before + 1
    del shown
    assert sys.getrefcount(array) == before


def test_masked_elements_are_refused_and_masks_of_nothing_are_not():
    array = np.ma.MaskedArray([1.0, 2.0, 3.0], mask=[False, True, False])
    for take in (penstock.Tensor, penstock.from_dlpack,
                 lambda a: penstock.Tensor(a, copy=True),
                 lambda a: penstock.Tensor(a[1::-1]),
                 lambda a: penstock.Tensor.from_bits(a.view("u8"), "f64")):
        with pytest.raises(penstock.InvalidArgument, match="filled"):
            take(array)
    assert penstock.Tensor(array.filled(7)).numpy().tolist() == [1, 7, 3]
    for nothing in (np.ma.MaskedArray([1.0, 2.0]),
                    np.ma.MaskedArray([1.0, 2.0], mask=[False, False]),
                    array[::2]):
        assert penstock.Tensor(nothing).numpy().tolist() == nothing.tolist()
    assert penstock.Tensor(np.matrix([[1, 2]])).shape == (1, 2)


# Tests shapes whose product overflows, but that have no elements. A peer may
# send such a tensor, too.
@pytest.mark.parametrize("shape", [(0, 2**63 - 1), (2**63 - 1, 0, 2**63 - 1)])
def test_a_shape_that_numpy_cannot_have_is_refused(shape):
    tensor = penstock.Tensor.empty(shape)
    assert (tensor.shape, tensor.nbytes) == (shape, 0)
    for show in (tensor.numpy, tensor.bits, lambda: np.asarray(tensor),
                 lambda: tensor.numpy(writable=True)):
        with pytest.raises(penstock.InvalidArgument, match="elements"):
            show()
    assert tensor.copy().shape == penstock.from_dlpack(
        tensor.__dlpack__()).shape == shape


@pytest.mark.parametrize("make", [
    lambda a: a[::2], lambda a: a[::-1], lambda a: a.T, lambda a: a[:, 1:],
    lambda a: a.astype(">i4"), np.asfortranarray,
    lambda a: np.broadcast_to(a[0], (5, 4)),
    lambda a: np.frombuffer(b"x" + a.tobytes(), "i4", offset=1),
], ids=["strided", "reversed", "transposed", "part", "big-endian", "fortran",
        "broadcast", "unaligned"])
def test_other_layouts_are_copied(make):
    array = make(np.arange(12, dtype="i4").reshape(3, 4))
    tensor = penstock.Tensor(array)
    assert tensor.shape == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert not is_same_memory(tensor.numpy(), array)


def test_a_read_only_array_is_shared():
    array = np.arange(3)
    array.flags.writeable = False
    assert is_same_memory(penstock.Tensor(array).numpy(), array)


def test_copy_copies():
    array = np.arange(3)
    for tensor in (penstock.Tensor(array, copy=True),
                   penstock.Tensor(array).copy()):
        assert not is_same_memory(tensor.numpy(), array)
        np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 16])
def test_scalars_empty_and_deep_arrays_come_back(shape):
    array = np.ones(shape, "f4")
    tensor = penstock.Tensor(array)
    assert tensor.shape == shape
    assert tensor.numpy().shape == shape
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert penstock.Tensor.empty(shape).numpy().shape == shape


def test_lists_and_numbers_become_tensors():
    assert penstock.Tensor([[1.5, 2.5]]).dtype == "f64"
    assert penstock.Tensor(7).shape == ()


@pytest.mark.parametrize("array, remedy", [
    (np.ones(2, "u4"), "view('int32')"), (np.ones(2, "c8"), "view"),
    (np.array(["a"]), "astype"), (np.array([None]), "astype"),
    (np.ones((1,) * 17), "16"), (np.zeros(2, "M8[s]"), "astype"),
    (np.zeros(2, [("a", "i4")]), "astype"), (np.ones(2, "g"), "astype"),
])
def test_what_a_tensor_cannot_hold_is_refused_with_a_remedy(array, remedy):
    with pytest.raises(penstock.InvalidArgument) as raised:
        penstock.Tensor(array)
    assert remedy in str(raised.value)
    assert isinstance(raised.value, ValueError)


def test_bf16_has_bits_and_no_numpy_type():
    bits = np.array([0x3F80, 0x4000], "u2")
    tensor = penstock.Tensor.from_bits(bits, "bf16")
    assert tensor.dtype == "bf16"
    assert is_same_memory(tensor.bits(), bits)
    assert tensor.bits().dtype == np.uint16
    with pytest.raises(penstock.InvalidArgument, match=r"bits\(\)"):
        tensor.numpy()
    with pytest.raises(penstock.InvalidArgument, match="uint16"):
        penstock.Tensor.from_bits(np.zeros(2, "i4"), "bf16")


def test_a_view_shares_memory_and_keeps_the_size():
    tensor = penstock.Tensor(np.array([1.0], "f4"))
    assert tensor.view("int32").numpy()[0] == 0x3F800000
    with pytest.raises(penstock.InvalidArgument, match="astype"):
        tensor.view("f64")
    with pytest.raises(TypeError):
        tensor.view("no such type")


def test_a_bool_of_another_byte_is_true():
    raw = np.array([0, 1, 2, 255], "u1")
    tensor = penstock.Tensor(raw).view("bool")
    array = tensor.numpy()
    np.testing.assert_array_equal(array.view("u1"), [0, 1, 1, 1])
    np.testing.assert_array_equal(raw, [0, 1, 2, 255])
    assert is_same_memory(tensor.numpy(), array)


def test_an_empty_tensor_is_filled_in_place():
    tensor = penstock.Tensor.empty((2, 5000), np.float64)
    assert tensor.dtype == "f64"
    array = tensor.numpy(writable=True)
    array[:] = 7
    assert is_same_memory(tensor.numpy(writable=True), array)
    assert tensor.numpy()[1, 4999] == 7
    assert penstock.Tensor.empty(3).shape == (3,)


def test_writing_copies_what_another_uses():
    array = np.zeros(3)
    tensor = penstock.Tensor(array)
    tensor.numpy(writable=True)[0] = 1
    assert array[0] == 0
    assert tensor.numpy()[0] == 1

    other = penstock.Tensor(tensor)
    tensor.numpy(writable=True)[0] = 2
    assert other.numpy()[0] == 1

    capsule = tensor.__dlpack__()
    lent = tensor.numpy()
    tensor.numpy(writable=True)[0] = 3
    assert lent[0] == 2
    del capsule


@pytest.mark.parametrize("shape", [-1, (2, -3), (1,) * 17, (2**40, 2**40)])
def test_a_shape_that_cannot_be_is_refused(shape):
    with pytest.raises(penstock.InvalidArgument):
        penstock.Tensor.empty(shape)


def test_a_shape_is_a_number_or_numbers():
    assert penstock.Tensor.empty(np.int64(3)).shape == (3,)
    assert penstock.Tensor.empty([2, np.int32(3)]).shape == (2, 3)
    for wrong in ("x", 1.5, [1.5], None):
        with pytest.raises(TypeError):
            penstock.Tensor.empty(wrong)
    with pytest.raises(OverflowError):
        penstock.Tensor.empty(2**70)


def test_more_memory_than_there_is_is_an_error():
    with pytest.raises(penstock.ResourceExhausted) as raised:
        penstock.Tensor.empty(2**60, "int8")
    assert isinstance(raised.value, MemoryError)


def test_numpy_takes_a_tensor_as_an_array():
    tensor = penstock.Tensor(np.arange(3))
    assert np.asarray(tensor).sum() == 3
    assert np.asarray(tensor, dtype="f4").dtype == np.float32
    assert repr(tensor) == "penstock.Tensor(int64[3])"


def test_arrays_and_tensors_that_nobody_holds_are_freed():
    arrays = [np.zeros(10) for _ in range(100)]
    gone = [weakref.ref(array) for array in arrays]
    for array in arrays:
        penstock.Tensor(array).numpy()
    del array, arrays
    gc.collect()
    assert not [ref for ref in gone if ref() is not None]


if __name__ == "__main__":
    run_pytest.main(__file__)
