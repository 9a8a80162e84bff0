#!/usr/bin/python3 -B
"""Tests tensors on CUDA devices, in Python, with simulated devices. Reading
their memory kills a process, and their streams run only while somebody waits.
See tests/tensor_service/fake_device.h."""

import contextlib
import ctypes
import gc
import importlib.util
import pathlib
import signal
import sys
import threading
import time

import run_pytest

import numpy as np
import pytest

import peer

# The module to import instead of the package's own, which would find no
# device.
MODULE = pathlib.Path("tests/python/with_devices/_penstock.so").absolute()
spec = importlib.util.spec_from_file_location("penstock._penstock", MODULE)
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])

import penstock

fake = ctypes.CDLL(str(MODULE))
for name, result, *arguments in [
        ("FakeMalloc", "u", "i", "u"), ("FakeFree", None, "u"),
        ("FakeWrite", None, "u", "p", "u"), ("FakeRead", None, "u", "p", "u"),
        ("FakeQueueSet", None, "i", "u", "u", "i", "u"),
        ("FakeQueued", "u", "i", "u"), ("FakeRun", "i", "i", "u"),
        ("FakeAllocations", "u"), ("FakeBeSlow", None, "i")]:
    types = {"u": ctypes.c_uint64, "i": ctypes.c_int, "p": ctypes.c_void_p,
             None: None}
    getattr(fake, name).restype = types[result]
    getattr(fake, name).argtypes = [types[each] for each in arguments]

CUDA, CUDA_MANAGED = 2, 13  # in DLPack
STREAM, OTHER = 0x1000, 0x2000
lent_out = set()  # arrays that a capsule may refer to


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = fake.FakeAllocations()
    yield
    fake.FakeFailAfter(-1)
    fake.FakeBeSlow(0)
    fake.FakeEnable(1)
    lent_out.clear()
    gc.collect()
    assert fake.FakeAllocations() == before


class Memory:
    """An array on a device, in the form in which another library makes it."""

    def __init__(self, array, device=0):
        self.array = np.ascontiguousarray(array)
        self.device = device
        self.address = fake.FakeMalloc(device, max(self.array.nbytes, 1))
        fake.FakeWrite(self.address, self.array.ctypes.data, self.array.nbytes)

    def __del__(self):
        fake.FakeFree(self.address)

    def read(self):
        array = np.empty_like(self.array)
        fake.FakeRead(self.address, array.ctypes.data, array.nbytes)
        return array


class WithInterface(Memory):
    """An object with __cuda_array_interface__, like Numba's arrays."""

    def __init__(self, array, device=0, **change):
        super().__init__(array, device)
        self.change = change

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.array.shape, "typestr": self.array.dtype.str,
                "data": (self.address, False), "version": 3, **self.change}


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
NewCapsule = ctypes.pythonapi.PyCapsule_New
NewCapsule.restype = ctypes.py_object
NewCapsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
GetPointer = ctypes.pythonapi.PyCapsule_GetPointer
GetPointer.restype = ctypes.c_void_p
GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class WithDLPack(Memory):
    """Has __dlpack__, like PyTorch's tensors. The device works in STREAM."""

    def __init__(self, array, device=0, type=CUDA, strides=None):
        super().__init__(array, device)
        self.type = type
        self.asked_for = []
        self.deleted = 0
        shape = self.array.shape
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        self._strides = strides and (ctypes.c_int64 * len(shape))(*strides)
        self._deleter = DELETER(self._delete)

    def _delete(self, _):
        self.deleted += 1
        lent_out.discard(self)

    def __dlpack_device__(self):
        return (self.type, self.device)

    def __dlpack__(self, stream=None):
        self.asked_for.append(stream)
        lent_out.add(self)
        if stream not in (None, -1):  # a stream that waits for STREAM
            fake.FakeRun(self.device, STREAM)
        dtype = self.array.dtype
        self._lent = Lent(
            self.address, self.type, self.device, self.array.ndim,
            {"i": 0, "u": 1, "f": 2}[dtype.kind], dtype.itemsize * 8, 1,
            self._shape, self._strides, 0, None, self._deleter)
        return NewCapsule(ctypes.addressof(self._lent), b"dltensor", None)


def values(dtype="f4"):
    return np.arange(6).reshape(2, 3).astype(dtype)


@pytest.mark.parametrize("make", [WithInterface, WithDLPack])
@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "i8", "u1"])
def test_an_array_of_another_library_is_borrowed_where_it_is(
        make, device, dtype):
    array = values(dtype)
    there = make(array, device)
    tensor = penstock.Tensor(there)
    assert tensor.device == f"cuda:{device}"
    assert (tensor.shape, tensor.nbytes) == ((2, 3), array.nbytes)
    assert tensor.__dlpack_device__() == (CUDA, device)
    here = tensor.to_host()
    assert here.device == "cpu"
    np.testing.assert_array_equal(here.numpy(), array)
    assert tensor.to_device(f"cuda:{device}").device == tensor.device
    assert penstock.from_dlpack(there).device == tensor.device


def test_an_array_is_kept_as_long_as_its_tensor():
    there = WithInterface(values())
    address, before = there.address, fake.FakeAllocations()
    tensor = penstock.Tensor(there)
    del there
    gc.collect()
    assert fake.FakeAllocations() == before
    assert tensor.__cuda_array_interface__["data"] == (address, True)
    del tensor
    gc.collect()
    assert fake.FakeAllocations() == before - 1


def test_the_deleter_of_dlpack_runs_once():
    there = WithDLPack(values())
    tensor = penstock.from_dlpack(there)
    again = penstock.from_dlpack(tensor)
    del tensor
    assert there.deleted == 0
    del again
    gc.collect()
    assert there.deleted == 1


def test_a_producer_is_asked_for_the_default_stream():
    there = WithDLPack(values())
    fake.FakeQueueSet(0, STREAM, there.address, 7, 4)
    tensor = penstock.from_dlpack(there)
    assert there.asked_for == [1]
    assert tensor.to_host().bits()[0, 0] == 0x07070707


@pytest.mark.parametrize("stream", [1, 2, STREAM])
def test_the_stream_of_an_interface_is_waited_for_and_no_other(stream):
    there = WithInterface(values(), stream=stream)
    fake.FakeQueueSet(0, stream, there.address, 7, 4)
    fake.FakeQueueSet(0, OTHER, there.address, 9, 4)
    tensor = penstock.Tensor(there)
    # Queues more work, later than the moment for which the tensor waits.
    fake.FakeQueueSet(0, stream, there.address, 8, 4)
    assert tensor.to_host().bits()[0, 0] == 0x07070707
    assert fake.FakeQueued(0, stream) == 1
    for each in (stream, OTHER):
        fake.FakeRun(0, each)


def test_an_interface_without_a_stream_needs_no_waiting():
    there = WithInterface(values(), stream=None)
    fake.FakeQueueSet(0, 1, there.address, 7, 4)
    assert penstock.Tensor(there).to_host().numpy()[0, 0] == 0
    old = WithInterface(values(), version=2)  # knows no streams
    fake.FakeQueueSet(0, 1, old.address, 8, 4)
    assert penstock.Tensor(old).to_host().bits()[0, 0] == 0x08080808
    with pytest.raises(penstock.InvalidArgument, match="give 1 or 2"):
        penstock.Tensor(WithInterface(values(), stream=0))


def test_the_interface_that_is_lent_has_no_work_under_way():
    there = WithInterface(values(), stream=STREAM)
    fake.FakeQueueSet(0, STREAM, there.address, 7, 4)
    tensor = penstock.Tensor(there)
    assert fake.FakeQueued(0, STREAM) == 1
    lent = tensor.__cuda_array_interface__
    assert fake.FakeQueued(0, STREAM) == 0
    assert lent == {"version": 3, "shape": (2, 3), "typestr": "<f4",
                    "data": (there.address, True), "strides": None,
                    "stream": None}
    own = penstock.Tensor(values()).to_device("cuda:1")
    assert own.__cuda_array_interface__["data"][1] is False
    np.testing.assert_array_equal(
        penstock.Tensor(own.to_device("cuda:0")).to_host().numpy(), values())


@pytest.mark.parametrize("asked, waits", [
    (None, 1), (1, 1), (2, 2), (OTHER, OTHER)])
def test_the_stream_of_a_consumer_waits_for_the_producers(asked, waits):
    there = WithInterface(values(), stream=STREAM)
    fake.FakeQueueSet(0, STREAM, there.address, 7, 4)
    capsule = penstock.Tensor(there).__dlpack__(stream=asked)
    assert fake.FakeQueued(0, STREAM) == 1  # the caller has not waited
    assert fake.FakeQueued(0, waits) == 1
    fake.FakeRun(0, waits)
    assert fake.FakeQueued(0, STREAM) == 0
    del capsule


def test_a_consumer_that_wants_no_order_gets_none():
    there = WithInterface(values(), stream=STREAM)
    fake.FakeQueueSet(0, STREAM, there.address, 7, 4)
    penstock.Tensor(there).__dlpack__(stream=-1)
    assert fake.FakeQueued(0, STREAM) == 1
    assert fake.FakeQueued(0, 1) == 0
    fake.FakeRun(0, STREAM)


def test_wrong_streams_and_devices_are_refused():
    tensor = penstock.Tensor(values()).to_device("cuda:1")
    for stream in (0, "1", 1.0, object()):
        with pytest.raises(BufferError, match="stream"):
            tensor.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="to_device"):
        tensor.__dlpack__(dl_device=(CUDA, 0))
    with pytest.raises(BufferError, match="without a copy"):
        tensor.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(penstock.InvalidArgument, match="cuda:0"):
        tensor.to_device("gpu")
    with pytest.raises(penstock.InvalidArgument):
        tensor.to_device("cuda:2")


def test_what_is_lent_says_where_it_is():
    tensor = penstock.Tensor(values()).to_device("cuda:1")
    capsule = tensor.__dlpack__(dl_device=(CUDA, 1))
    lent = Lent.from_address(GetPointer(capsule, b"dltensor"))
    assert (lent.device_type, lent.device_id) == (CUDA, 1)
    assert lent.data == tensor.__cuda_array_interface__["data"][0]
    copy = tensor.__dlpack__(copy=True)
    other = Lent.from_address(GetPointer(copy, b"dltensor"))
    assert (other.device_type, other.device_id) == (CUDA, 1)
    assert other.data != lent.data
    on_cpu = penstock.from_dlpack(tensor.__dlpack__(dl_device=(1, 0)))
    np.testing.assert_array_equal(on_cpu.numpy(), values())


@pytest.mark.parametrize("use", [
    lambda t: t.numpy(), lambda t: t.numpy(writable=True), lambda t: t.bits(),
    lambda t: np.asarray(t), lambda t: np.array(t, "f8")])
def test_numpy_is_refused_with_the_remedy(use):
    tensor = penstock.Tensor(values()).to_device("cuda:0")
    with pytest.raises(penstock.FailedPrecondition, match=r"to_host\(\)"):
        use(tensor)


def test_what_needs_no_elements_works():
    tensor = penstock.Tensor(values()).to_device("cuda:0")
    assert repr(tensor) == "penstock.Tensor(f32[2,3])"
    assert (tensor.shape, tensor.dtype, tensor.nbytes) == ((2, 3), "f32", 24)
    assert tensor.held_bytes == 24
    bits = tensor.view("int32")
    assert bits.device == "cuda:0"
    np.testing.assert_array_equal(bits.to_host().numpy(), values().view("i4"))
    for copy in (tensor.copy(), penstock.Tensor(tensor, copy=True)):
        assert copy.device == "cuda:0"
        assert (copy.__cuda_array_interface__["data"]
                != tensor.__cuda_array_interface__["data"])
        np.testing.assert_array_equal(copy.to_host().numpy(), values())
    here = penstock.Tensor(values())
    assert here.device == "cpu"
    assert not hasattr(here, "__cuda_array_interface__")
    np.testing.assert_array_equal(here.to_host().numpy(), values())
    bf16 = penstock.Tensor.from_bits(values("u2"), "bf16").to_device("cuda:0")
    assert not hasattr(bf16, "__cuda_array_interface__")
    assert hasattr(bf16.view("int16"), "__cuda_array_interface__")


def test_no_elements_are_no_memory():
    there = WithInterface(np.zeros((0, 3), "f4"), data=(0, False))
    assert penstock.Tensor(there).shape == (0, 3)
    empty = penstock.Tensor(np.zeros((0, 3), "f4")).to_device("cuda:1")
    assert empty.device == "cuda:1"
    assert empty.__cuda_array_interface__["data"][0] == 0
    assert empty.to_host().numpy().shape == (0, 3)


@pytest.mark.parametrize("change, word", [
    ({"strides": (4, 8)}, "row-major"), ({"strides": (24, 4)}, "row-major"),
    ({"strides": (4,)}, "row-major"), ({"mask": object()}, "mask"),
    ({"typestr": ">f4"}, "byte order"), ({"typestr": "<c8"}, ""),
    ({"shape": (-1, 3)}, "negative"), ({"shape": (2**62, 2**62)}, "overflow"),
    ({"shape": (1,) * 17}, "16"), ({"data": (8, False)}, "no device has"),
    ({"data": None}, "form"), ({"shape": 3}, "form"), ({"typestr": 4}, "form"),
    ({"stream": "1"}, "form"), ({"shape": ("2", 3)}, "form"),
    ({"data": ()}, "pair"), ({"data": (8,)}, "pair"),
    ({"data": (-1, False)}, "form"), ({"data": (2**200, False)}, "form"),
    ({"stream": 2**200}, "form"), ({"shape": (2**200,)}, "form"),
    ({"typestr": "nonsense"}, "form"),
], ids=str)
def test_an_interface_that_is_none_is_refused(change, word):
    with pytest.raises(penstock.InvalidArgument, match=word):
        penstock.Tensor(WithInterface(values(), **change))


def test_the_strides_of_packed_elements_are_taken():
    tensor = penstock.Tensor(WithInterface(values(), strides=(12, 4)))
    np.testing.assert_array_equal(tensor.to_host().numpy(), values())


def test_gaps_of_dlpack_are_refused_and_stay_the_producers():
    there = WithDLPack(values(), strides=(1, 2))
    with pytest.raises(penstock.InvalidArgument, match="contiguous"):
        penstock.from_dlpack(there)
    assert there.deleted == 0


# Tests that other threads run while the device is queried.
@pytest.mark.parametrize("fails", [False, True])
def test_a_capsule_that_threads_use_at_once_is_used_once(fails):
    there = WithDLPack(values())
    capsule = there.__dlpack__()
    fake.FakeBeSlow(1)
    begin, results = threading.Barrier(4), []

    def use():
        begin.wait()
        try:
            results.append(penstock.from_dlpack(capsule))
        except penstock.Error as error:
            results.append(error)
    if fails:
        fake.FakeFailAfter(0)
    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tensors = [each for each in results if isinstance(each, penstock.Tensor)]
    assert len(tensors) == (0 if fails else 1), results
    assert len([each for each in results if "used before" in str(each)]) == 3
    fake.FakeBeSlow(0)
    if fails:  # the producer has the tensor again
        tensors = [penstock.from_dlpack(capsule)]
    np.testing.assert_array_equal(tensors.pop().to_host().numpy(), values())
    del results[:], capsule
    gc.collect()
    assert there.deleted == 1


def test_managed_memory_is_a_devices():
    there = WithDLPack(values(), type=CUDA_MANAGED)
    tensor = penstock.from_dlpack(there)
    assert tensor.device == "cuda:0"
    np.testing.assert_array_equal(tensor.to_host().numpy(), values())


def test_without_devices_the_remedy_is_the_cpu():
    there = WithDLPack(values())
    capsule = WithDLPack.__dlpack__(there)
    fake.FakeEnable(0)
    for source in (there, capsule, WithInterface(values())):
        with pytest.raises(penstock.FailedPrecondition, match=r"\.cpu\(\)"):
            penstock.Tensor(source) if source is not capsule else (
                penstock.from_dlpack(source))
    assert there.asked_for == [None]
    with pytest.raises(penstock.FailedPrecondition, match="no driver"):
        penstock.Tensor(values()).to_device("cuda:0")
    fake.FakeEnable(1)
    assert penstock.from_dlpack(capsule).device == "cuda:0"


def test_tensors_on_devices_go_to_another_process():
    with peer.server() as address, penstock.TensorClient(address) as client:
        first = WithDLPack(values())
        client.put({"a": first, "b": WithInterface(values("i8"), 1, stream=2),
                    "c": values("u1"),
                    "d": penstock.Tensor(values()).to_device("cuda:1")})
        got = client.get(["a", "b", "c", "d"])
        for name, dtype in zip("abcd", ["f4", "i8", "u1", "f4"]):
            assert got[name].device == "cpu"
            np.testing.assert_array_equal(got[name].numpy(), values(dtype))
        old = client.exchange({"a": got["d"].to_device("cuda:0")})
        np.testing.assert_array_equal(old["a"].numpy(), values())


def test_a_device_that_fails_raises_and_the_next_call_is_good():
    tensor = penstock.Tensor(values()).to_device("cuda:0")
    there = WithInterface(values(), stream=STREAM)
    borrowed = penstock.Tensor(there)
    for use in (tensor.to_host, tensor.copy, lambda: tensor.to_device("cuda:1"),
                lambda: penstock.Tensor(there),
                lambda: penstock.from_dlpack(WithDLPack(values()).__dlpack__()),
                lambda: borrowed.__dlpack__(stream=2),
                lambda: borrowed.__cuda_array_interface__):
        fake.FakeFailAfter(0)
        with pytest.raises(penstock.Error, match="told to fail"):
            use()
        use()
    with peer.server() as address, penstock.TensorClient(address) as client:
        fake.FakeFailAfter(0)
        with pytest.raises(penstock.Error, match="told to fail"):
            client.put({"x": tensor})
        client.put({"x": tensor})
        np.testing.assert_array_equal(client.get(["x"])["x"].numpy(), values())
    fake.FakeRun(0, 2)


def test_tensors_are_received_into_arrays_on_devices():
    with peer.server() as address, penstock.TensorClient(address) as client:
        client.put({"a": values(), "b": values("i8"), "c": values("u1")})
        a = WithDLPack(np.zeros((2, 3), "f4"), 1)
        b = WithInterface(np.zeros((2, 3), "i8"))
        c = penstock.Tensor(np.zeros((2, 3), "u1")).to_device("cuda:1")
        got = client.get(["a", "b", "c"], into={"a": a, "b": b, "c": c})
        assert [got[each].device for each in "abc"] == [
            "cuda:1", "cuda:0", "cuda:1"]
        np.testing.assert_array_equal(a.read(), values())
        np.testing.assert_array_equal(b.read(), values("i8"))
        np.testing.assert_array_equal(c.to_host().numpy(), values("u1"))
        again = WithInterface(np.zeros((2, 3), "f4"), 1)
        for round in range(3):
            old = client.exchange({"a": values() + 1 + round},
                                  into={"a": again})
            assert old["a"].device == "cuda:1"
            np.testing.assert_array_equal(again.read(), values() + round)


def test_a_destination_is_written_once_its_stream_has_got_so_far():
    with peer.server() as address, penstock.TensorClient(address) as client:
        client.put({"a": values()})
        there = WithInterface(np.zeros((2, 3), "f4"), stream=STREAM)
        fake.FakeQueueSet(0, STREAM, there.address, 7, 24)
        client.get(["a"], into={"a": there})
        assert fake.FakeQueued(0, STREAM) == 0
        np.testing.assert_array_equal(there.read(), values())


def test_a_destination_on_a_device_that_cannot_be_is_refused():
    with peer.server() as address, penstock.TensorClient(address) as client:
        client.put({"a": values()})
        there = WithInterface(values())
        read_only = WithInterface(values(), data=(there.address, True))
        with pytest.raises(penstock.InvalidArgument, match="writeable"):
            client.get(["a"], into={"a": read_only})
        short = WithInterface(np.zeros(5, "f4"))
        with pytest.raises(penstock.InvalidArgument, match=r"into\['a'\]"):
            client.get(["a"], into={"a": short})
        np.testing.assert_array_equal(short.read(), np.zeros(5, "f4"))
        fake.FakeFailAfter(3)
        with pytest.raises(penstock.Error, match="told to fail"):
            for _ in range(4):
                client.get(["a"], into={"a": there})
        client.get(["a"], into={"a": there})
        np.testing.assert_array_equal(there.read(), values())


@contextlib.contextmanager
def held_up():
    """Makes an array with queued work that makes no progress."""
    there = WithInterface(np.zeros((2, 3), "f4"), stream=STREAM)
    fake.FakeQueueSet(0, STREAM, there.address, 7, 24)
    fake.FakeStall(1)
    go_on = threading.Timer(30, fake.FakeStall, [0])
    go_on.start()
    try:
        yield there
    finally:
        go_on.cancel()
        fake.FakeStall(0)
        fake.FakeRun(0, STREAM)


def test_a_timeout_holds_for_a_destination_that_is_held_up():
    with peer.server() as address, held_up() as there:
        with penstock.TensorClient(address, timeout=2) as client:
            client.put({"a": values()})
            begin = time.monotonic()
            with pytest.raises(TimeoutError, match="destination a"):
                client.get(["a"], into={"a": there})
            assert 2 <= time.monotonic() - begin < 10
            fake.FakeStall(0)
            client.get(["a"], into={"a": there})
            np.testing.assert_array_equal(there.read(), values())


def test_ctrl_c_ends_the_wait_for_a_destination():
    with peer.server() as address, held_up() as there:
        with penstock.TensorClient(address) as client:
            client.put({"a": values()})
            threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
            begin = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                client.get(["a"], into={"a": there})
            assert time.monotonic() - begin < 10


def test_who_uses_devices_too_late_is_told():
    fake.FakeBeLate(1)
    with pytest.raises(penstock.FailedPrecondition,
                       match="too late.*before the first client"):
        penstock.use_devices()
    fake.FakeBeLate(0)
    penstock.use_devices()


def test_a_timeout_holds_for_what_is_sent_and_held_up():
    with peer.server() as address, held_up() as there:
        with penstock.TensorClient(address, timeout=2) as client:
            client.list()
            begin = time.monotonic()
            with pytest.raises(TimeoutError, match="written tensor a"):
                client.put({"a": there})
            assert 2 <= time.monotonic() - begin < 10


def test_what_is_to_stay_on_a_device_needs_one():
    penstock.use_devices()
    with penstock.TensorServer(keep_on_device=True) as server:
        with penstock.TensorClient(f"127.0.0.1:{server.port}") as client:
            there = penstock.Tensor(values()).to_device("cuda:1")
            client.put({"a": there})
            # Expects tensors on the host, because no transport in this test
            # reaches a simulated device.
            got = client.get(["a"], keep_on_device=True)
            np.testing.assert_array_equal(got["a"].to_host().numpy(), values())
            fake.FakeEnable(0)
            for use in (penstock.use_devices,
                        lambda: client.get(["a"], keep_on_device=True),
                        lambda: client.exchange({}, keep_on_device=True),
                        lambda: penstock.TensorServer(keep_on_device=True)):
                with pytest.raises(penstock.FailedPrecondition,
                                   match="no driver"):
                    use()
            fake.FakeEnable(1)


if __name__ == "__main__":
    run_pytest.main(__file__)
