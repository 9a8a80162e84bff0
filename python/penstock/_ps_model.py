"""The model to train: tables, optimizers, schedules, and compression.

Each class is a frozen dataclass. The extension module reads and checks the
fields when a Worker is made; errors name the wrong field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

UNLIMITED = 2**63 - 1
"""The staleness with which no pull waits for other workers."""


class Schedule:
    """A learning rate as a function of the step: Constant, Step or Cosine."""


@dataclass(frozen=True)
class Constant(Schedule):
    """A constant learning rate, after a linear warm-up over the first steps."""

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
    """Half a cosine down to final_rate, `every` steps after a warm-up."""

    learning_rate: float
    every: int
    final_rate: float = 0.0
    warm_up_steps: int = 0
    kind: ClassVar[str] = "cosine"


@dataclass(frozen=True)
class Optimizer:
    """The rule that applies gradients to a value: Sgd, Adam and so on.

    Elements of a gradient are first clipped to +-`clip_value`. Then
    `weight_decay` times the value is added. 0 disables either.
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
    """Sgd with a moving sum of the gradients."""

    momentum: float = field(default=0.9, kw_only=True)
    rule: ClassVar[str] = "momentum"


@dataclass(frozen=True)
class Nesterov(Optimizer):
    """Momentum whose gradient is taken one step ahead."""

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
    """Adam (Kingma and Ba), with both bias corrections."""

    beta1: float = field(default=0.9, kw_only=True)
    beta2: float = field(default=0.999, kw_only=True)
    epsilon: float = field(default=1e-8, kw_only=True)
    rule: ClassVar[str] = "adam"


@dataclass(frozen=True)
class AdamW(Optimizer):
    """Adam with decoupled weight decay, which shrinks the value itself."""

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
    """The initial values of rows: Zeros, Uniform or Normal."""


@dataclass(frozen=True)
class Zeros(Initial):
    """Initialises rows to zeros."""

    kind: ClassVar[str] = "zeros"


@dataclass(frozen=True)
class Uniform(Initial):
    """Initialises elements uniformly in [low, high), by seed and id."""

    low: float
    high: float
    kind: ClassVar[str] = "uniform"


@dataclass(frozen=True)
class Normal(Initial):
    """Initialises elements from a normal distribution, by seed and id."""

    mean: float = 0.0
    stddev: float = 1.0
    kind: ClassVar[str] = "normal"


class TableSpec:
    """A table of a model: Dense or Sparse."""


@dataclass(frozen=True)
class Dense(TableSpec):
    """A tensor that is trained as a whole.

    `dtype` is "f32", "f64", "f16" or "bf16", or a NumPy type. `staleness` is
    the number of steps by which a worker may be ahead of the slowest worker: 0
    trains synchronously, and UNLIMITED trains asynchronously. A synchronous
    step does not wait for the `backup_workers` slowest workers.
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
    """Rows of `dim` floats, each with a 64-bit id, such as embeddings.

    A row is created once its id was pushed `min_count` times. A row is deleted
    if it was not used for `time_to_live` seconds. `max_rows` limits the rows of
    a server, and `budget_bytes` their memory; 0 disables a limit.
    `above_budget` selects the action above a limit:

    - "evict" deletes rows.
    - "refuse" retries a push that finds no room, and raises ResourceExhausted
      after `push_timeout`.
    - "spill" moves rows to the servers' disks without loss. The servers must be
      started with --spill.
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
    """The encoding of sent gradients: Half, TopK, RandomK or Int8."""


@dataclass(frozen=True)
class Half(Compression):
    """Sends each element of a gradient rounded to "bf16" or "f16"."""

    dtype: object = "bf16"
    kind: ClassVar[str] = "half"


@dataclass(frozen=True)
class TopK(Compression):
    """Sends the largest elements: a fraction `ratio` of all elements. The
    other elements are sent later."""

    ratio: float = 0.01
    dtype: object = "bf16"
    kind: ClassVar[str] = "top_k"


@dataclass(frozen=True)
class RandomK(Compression):
    """Sends random elements, a fraction `ratio` of all. The other elements are
    sent later.

    Workers with the same seed choose the same elements.
    """

    ratio: float = 0.01
    dtype: object = "bf16"
    seed: int = 0
    kind: ClassVar[str] = "random_k"


@dataclass(frozen=True)
class Int8(Compression):
    """Sends each element rounded randomly to one of 255 numbers.

    Without a seed, each rank draws different random numbers.
    """

    seed: int | None = None
    kind: ClassVar[str] = "int8"


class Table(NamedTuple):
    """A table of the servers' model."""

    name: str
    kind: str  # "dense" or "sparse"
    dtype: str
    shape: tuple[int, ...]  # (dim,) for a sparse table
    optimizer: str
    staleness: int
