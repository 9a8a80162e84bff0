"""What is trained: tables, optimizers, schedules, and compression.

Each of these is a frozen dataclass, whose fields the extension module reads and
checks: a wrong one is refused by its name, when a Worker is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

UNLIMITED = 2**63 - 1
"""A staleness: no pull waits for other workers."""


class Schedule:
    """A learning rate by steps: Constant, Step or Cosine."""


@dataclass(frozen=True)
class Constant(Schedule):
    """A learning rate, after a linear warm-up over the first steps."""

    learning_rate: float
    warm_up_steps: int = 0
    kind: ClassVar[str] = "constant"


@dataclass(frozen=True)
class Step(Schedule):
    """learning_rate * factor ** floor((step - 1) / every), after a warm-up."""

    learning_rate: float
    every: int
    factor: float = 0.1
    warm_up_steps: int = 0
    kind: ClassVar[str] = "step"


@dataclass(frozen=True)
class Cosine(Schedule):
    """Half a cosine down to final_rate after `every` steps and a warm-up."""

    learning_rate: float
    every: int
    final_rate: float = 0.0
    warm_up_steps: int = 0
    kind: ClassVar[str] = "cosine"


@dataclass(frozen=True)
class Optimizer:
    """What gradients do to a value: Sgd, Adam and so on.

    Elements of a gradient beyond +-`clip_value` become that; then
    `weight_decay` times the value is added. 0 is none.
    """

    learning_rate: float | Schedule
    weight_decay: float = field(default=0.0, kw_only=True)
    clip_value: float = field(default=0.0, kw_only=True)


@dataclass(frozen=True)
class Sgd(Optimizer):
    """w -= rate * gradient."""

    rule: ClassVar[str] = "sgd"


@dataclass(frozen=True)
class Momentum(Optimizer):
    """Sgd along a moving sum of the gradients."""

    momentum: float = field(default=0.9, kw_only=True)
    rule: ClassVar[str] = "momentum"


@dataclass(frozen=True)
class Nesterov(Optimizer):
    """Momentum that looks one step ahead."""

    momentum: float = field(default=0.9, kw_only=True)
    rule: ClassVar[str] = "nesterov"


@dataclass(frozen=True)
class Adagrad(Optimizer):
    """Sgd divided by the root of the sum of squares so far."""

    epsilon: float = field(default=1e-8, kw_only=True)
    initial_accumulator: float = field(default=0.0, kw_only=True)
    rule: ClassVar[str] = "adagrad"


@dataclass(frozen=True)
class RmsProp(Optimizer):
    """Sgd divided by the root of a moving mean of squares."""

    decay: float = field(default=0.99, kw_only=True)
    epsilon: float = field(default=1e-8, kw_only=True)
    rule: ClassVar[str] = "rmsprop"


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma and Ba), with the correction of both biases."""

    beta1: float = field(default=0.9, kw_only=True)
    beta2: float = field(default=0.999, kw_only=True)
    epsilon: float = field(default=1e-8, kw_only=True)
    rule: ClassVar[str] = "adam"


@dataclass(frozen=True)
class AdamW(Optimizer):
    """Adam, with a weight_decay that shrinks the value itself."""

    beta1: float = field(default=0.9, kw_only=True)
    beta2: float = field(default=0.999, kw_only=True)
    epsilon: float = field(default=1e-8, kw_only=True)
    rule: ClassVar[str] = "adamw"


@dataclass(frozen=True)
class Ftrl(Optimizer):
    """FTRL-proximal (McMahan et al.); learning_rate, a float, is its alpha."""

    ftrl_beta: float = field(default=1.0, kw_only=True)
    lambda1: float = field(default=0.0, kw_only=True)
    lambda2: float = field(default=0.0, kw_only=True)
    initial_accumulator: float = field(default=0.0, kw_only=True)
    rule: ClassVar[str] = "ftrl"


class Initial:
    """What rows begin as: Zeros, Uniform or Normal."""


@dataclass(frozen=True)
class Zeros(Initial):
    """Rows begin as zeros."""

    kind: ClassVar[str] = "zeros"


@dataclass(frozen=True)
class Uniform(Initial):
    """Elements of rows begin from `low`, below `high`, by seed and id."""

    low: float
    high: float
    kind: ClassVar[str] = "uniform"


@dataclass(frozen=True)
class Normal(Initial):
    """Elements of rows begin normally distributed, by seed and id."""

    mean: float = 0.0
    stddev: float = 1.0
    kind: ClassVar[str] = "normal"


class TableSpec:
    """A table of a model: Dense or Sparse."""


@dataclass(frozen=True)
class Dense(TableSpec):
    """A tensor that is trained as a whole.

    `dtype` is "f32", "f64", "f16" or "bf16", or NumPy's. With `staleness` 0 it
    is trained synchronously, with N workers may be N steps ahead of the
    slowest, with UNLIMITED asynchronously. A synchronous step does not wait for
    the `backup_workers` slowest.
    """

    name: str
    dtype: object
    shape: int | Sequence[int]
    optimizer: Optimizer = field(kw_only=True)
    staleness: int = field(default=0, kw_only=True)
    backup_workers: int = field(default=0, kw_only=True)
    kind: ClassVar[str] = "dense"


@dataclass(frozen=True)
class Sparse(TableSpec):
    """Rows of `dim` floats by 64-bit ids, such as embeddings.

    A row is there once its id was pushed `min_count` times. It goes when it was
    not used for `time_to_live` seconds; and when there are more than `max_rows`
    at a server, or they take more than `budget_bytes` of its memory, and
    `above_budget` is "evict". With "refuse" a push that finds no room is tried
    again, and raises ResourceExhausted when `push_timeout` is over. With
    "spill" rows go to the servers' disks, if they were started with --spill,
    and nothing is lost. 0 is no limit.
    """

    name: str
    dim: int
    optimizer: Optimizer = field(kw_only=True)
    staleness: int = field(default=0, kw_only=True)
    backup_workers: int = field(default=0, kw_only=True)
    initial: Initial = field(default=Zeros(), kw_only=True)
    seed: int = field(default=0, kw_only=True)
    min_count: int = field(default=1, kw_only=True)
    time_to_live: float | None = field(default=None, kw_only=True)
    max_rows: int = field(default=0, kw_only=True)
    budget_bytes: int = field(default=0, kw_only=True)
    above_budget: str = field(default="refuse", kw_only=True)
    kind: ClassVar[str] = "sparse"


class Compression:
    """How gradients are sent: Half, TopK, RandomK or Int8."""


@dataclass(frozen=True)
class Half(Compression):
    """Sends each element of a gradient rounded to "bf16" or "f16"."""

    dtype: object = "bf16"
    kind: ClassVar[str] = "half"


@dataclass(frozen=True)
class TopK(Compression):
    """Sends the largest elements, `ratio` of all; the others come later."""

    ratio: float = 0.01
    dtype: object = "bf16"
    kind: ClassVar[str] = "top_k"


@dataclass(frozen=True)
class RandomK(Compression):
    """Sends random elements, `ratio` of all; the others come later.

    Workers with the same seed choose the same ones.
    """

    ratio: float = 0.01
    dtype: object = "bf16"
    seed: int = 0
    kind: ClassVar[str] = "random_k"


@dataclass(frozen=True)
class Int8(Compression):
    """Sends each element rounded at random to one of 255 numbers.

    Without a seed each rank draws other numbers.
    """

    seed: int | None = None
    kind: ClassVar[str] = "int8"


class Table(NamedTuple):
    """A table of the model that the servers have."""

    name: str
    kind: str  # "dense" or "sparse"
    dtype: str
    shape: tuple[int, ...]  # of a sparse one: (dim,)
    optimizer: str
    staleness: int
