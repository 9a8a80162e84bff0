"""Variables of random types and sizes, and a program of TensorFlow whose results
NumPy computes again.

In step k a variable v at the parameter server becomes, from the base b that
lies at the worker:

    numbers   v + b * c(k), where c(k) sums up to 0 over 11 steps
    bool      v != (b == (k is odd))
    strings   b, then ":", k, and the first 9 bytes of v

The worker sends the changes, such as b * c(k), and receives v. Each product and
sum is one operation, rounded once, so that NumPy has the same bits.
"""

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
BFLOAT16 = tf.bfloat16.as_numpy_dtype
TYPES = [
    np.float16, np.float32, np.float64, BFLOAT16, np.int8, np.int16, np.int32,
    np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.complex64,
    np.complex128, np.bool_, np.object_,
]
MOST_BYTES = 4 << 20
# Shapes for each type: empty, scalar, just below and above the limits of
# lending and of the pool, and the largest.
SHAPES = [(0,), (5, 0), (), (1,), (16383,), (16385,), (17, 241, 3)]


def factor(step):
    return step * 7 % 11 - 5


class RandomVariable:
    def __init__(self, index, generator, on_ps, on_worker, step):
        self.dtype = np.dtype(TYPES[index % len(TYPES)])
        self.shape = self._shape(index, generator)
        self.base = self._base(generator)
        self.name = f"{self.dtype}{list(self.shape)} ({index})"
        if self.dtype == object:
            self.expected = np.full(self.shape, b"", object)
        else:
            self.expected = np.zeros(self.shape, self.dtype)
        self._build(index, on_ps, on_worker, step)

    def _shape(self, index, generator):
        if index < len(SHAPES):
            return SHAPES[index]
        if self.dtype == object:
            return (int(generator.integers(1, 200)),)
        if index == len(SHAPES):
            return (MOST_BYTES // self.dtype.itemsize,)
        most = MOST_BYTES // 4 // self.dtype.itemsize
        return (int(2 ** generator.uniform(0, np.log2(most))),)

    def _base(self, generator):
        if self.dtype == object:
            flat = [generator.bytes(generator.integers(0, 300))
                    for _ in range(int(np.prod(self.shape)))]
            return np.array(flat, object).reshape(self.shape)
        values = generator.integers(0, 100, self.shape)
        if self.dtype.kind in "fcV":
            values = values / 7.0
        if self.dtype == bool:
            values = values % 2
        return np.asarray(values).astype(self.dtype)

    def _build(self, index, on_ps, on_worker, step):
        dtype = tf.as_dtype(self.dtype)
        with on_worker():
            self.fed = tf1.placeholder(dtype, self.shape)
            base = tf1.get_variable(f"base{index}", self.shape, dtype,
                                    self._zeros, use_resource=True)
            self.prepare = base.assign(self.fed).op
            change = self._change(base.read_value(), step)
        with on_ps():
            there = tf1.get_variable(f"there{index}", self.shape, dtype,
                                     self._zeros, use_resource=True)
            if dtype == tf.bool:
                become = tf.not_equal(there.read_value(), change)
                update = there.assign(become, read_value=False)
            elif dtype == tf.string:
                start = tf.strings.substr(there.read_value(), 0, 9)
                become = tf.strings.join([change, start])
                update = there.assign(become, read_value=False)
            elif dtype in (tf.uint16, tf.uint32, tf.uint64):
                # Reads and assigns in two steps, because assign_add() does not
                # support these types.
                become = there.read_value() + change
                update = there.assign(become, read_value=False)
            else:
                update = there.assign_add(change, read_value=False)
            with tf1.control_dependencies([update]):
                value = there.read_value()
        with on_worker():
            self.result = tf.identity(value)

    @staticmethod
    def _zeros(shape, dtype, **_):
        return tf.fill(shape, "") if dtype == tf.string else tf.zeros(
            shape, dtype)

    @staticmethod
    def _change(base, step):
        if base.dtype == tf.bool:
            return tf.equal(base, tf.equal(step % 2, 1))
        if base.dtype == tf.string:
            return tf.strings.join([base, ":", tf.strings.as_string(step)])
        return base * tf.cast(step * 7 % 11 - 5, base.dtype)

    def advance(self, step):
        """Computes with NumPy what TensorFlow computes in a step."""
        if self.dtype == bool:
            self.expected = self.expected != (self.base == (step % 2 == 1))
        elif self.dtype == object:
            end = b":%d" % step
            flat = [base + end + old[:9] for base, old in
                    zip(self.base.flat, self.expected.flat)]
            self.expected = np.array(flat, object).reshape(self.shape)
        else:
            by = np.asarray(factor(step)).astype(self.dtype)
            self.expected = self.expected + self.base * by

    def equals(self, got):
        """Returns whether `got` has exactly the expected bits."""
        if got.dtype != self.dtype or got.shape != self.shape:
            return False
        if self.dtype == object:
            return got.tolist() == self.expected.tolist()
        bits = np.dtype(f"V{self.dtype.itemsize}")
        return np.array_equal(
            np.ascontiguousarray(got).reshape(-1).view(bits),
            np.ascontiguousarray(self.expected).reshape(-1).view(bits))
