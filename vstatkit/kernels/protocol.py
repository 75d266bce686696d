"""The `Kernel` protocol and its adapters.

A kernel is anything evaluated on a subsample. It is given the counts of every
observation, so the same design serves all of them.
"""

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vstatkit._typing import Floats, Ints
from vstatkit.kernels.drawn import Drawn, RowDraw
from vstatkit.kernels.evaluation import Evaluation
from vstatkit.kernels.function import ArrayKernel
from vstatkit.kernels.kind import KernelKind


@runtime_checkable
class Kernel(Protocol):
    """What is evaluated on each subsample."""

    def fit(self, counts: Ints, rng: np.random.Generator) -> Any:
        """Fit a learner to the observations, each repeated `counts` times."""

    def value(self, learner: Any, at: Floats | None) -> Floats:
        """Evaluate the learner: the statistic's value, shape (m,)."""


@runtime_checkable
class RowKernel(Kernel, Protocol):
    """A kernel that takes rows of a subsample: counts would be mostly zero."""

    def fit_rows(self, rows: Ints, times: Ints, rng: np.random.Generator) -> Any:
        """Fit a learner to distinct rows, in ascending order, each `times` over."""


def fit_drawn(kernel: Kernel, drawn: RowDraw, rng: np.random.Generator) -> Any:
    """Fit a learner by rows if the kernel takes them, else by counts."""
    if isinstance(kernel, RowKernel):
        return kernel.fit_rows(drawn.rows, drawn.times, rng)
    return kernel.fit(drawn.counts, rng)


@runtime_checkable
class Predictive(Protocol):
    """Something whose learners predict at rows of the design matrix.

    Attributes
    ----------
    n_classes : int or None
        Classes of the response; None for regression.
    n_outputs : int
        Columns of a prediction (classes, or one).
    coefficients : bool
        Whether the kernel's value is its coefficients, not its predictions.
    """

    @property
    def n_classes(self) -> int | None:
        """Classes of the response."""

    @property
    def n_outputs(self) -> int:
        """Columns of a prediction."""

    @property
    def n_features(self) -> int:
        """Columns of the design matrix."""

    @property
    def coefficients(self) -> bool:
        """Whether the value is coefficients."""

    def predict(self, learner: Any, X: Floats) -> Floats:
        """Predict at rows of the design matrix, shape (rows, n_outputs)."""


@runtime_checkable
class PredictiveKernel(Kernel, Predictive, Protocol):
    """A kernel that fits one learner at a time, and whose learners predict."""

    @property
    def X(self) -> Floats:  # noqa: N802
        """Design matrix."""


@runtime_checkable
class BatchKernel(Predictive, Protocol):
    """A predictive kernel that evaluates many subsamples in one compiled call."""

    @property
    def X(self) -> Floats:  # noqa: N802
        """Design matrix."""

    def grow(
        self,
        counts: Floats,
        keys: NDArray[np.uint64],
        at: Floats,
        *,
        oob: bool,
        keep: bool,
    ) -> Evaluation:
        """Evaluate one learner for each row of counts."""


@runtime_checkable
class DrawnKernel(BatchKernel, Protocol):
    """A batch kernel that knows how to use small subsamples of large data."""

    def grow_drawn(
        self,
        drawn: Drawn,
        keys: NDArray[np.uint64],
        at: Floats,
        *,
        oob_rows: Ints | None,
        keep: bool,
    ) -> Evaluation:
        """Evaluate one learner for each row of counts."""


AnyKernel: TypeAlias = "Kernel | BatchKernel | ArrayKernel"


def learner_seed(rng: np.random.Generator) -> int:
    """Draw a seed for a library that wants a legacy 32-bit one."""
    return int(rng.integers(2**31 - 1))


def output_columns(n_classes: int | None) -> int:
    """Count the columns of a prediction; two classes need only one."""
    return 1 if n_classes is None or n_classes == 2 else n_classes


def class_columns(share: Floats, classes: Ints, n_classes: int) -> Floats:
    """Spread the classes that a learner saw over all columns; two need only one."""
    full = np.zeros((len(share), n_classes))
    full[:, np.asarray(classes, dtype=np.int64)] = share
    return full[:, 1:] if n_classes == 2 else full


def kind_of(kernel: Any) -> KernelKind:
    """Say how a kernel depends on its observations, as far as it is known."""
    return getattr(kernel, "kind", KernelKind.UNKNOWN)


def require_points(at: Floats | None) -> Floats:
    """Refuse to predict at no points."""
    if at is None:
        raise ValueError("this kernel predicts, so it needs query points.")
    return at
