"""The interface of kernels, and what they are built from and evaluate to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from vstatkit._typing import Counts, Floats, Ints
from vstatkit.formula.parse import ParsedFormula


class KernelKind(Enum):
    """How a kernel depends on its observations, as far as that is known.

    SMOOTH kernels are nearly linear in the counts of the observations: means,
    regressions, most statistics. A member's value is the expected `rho` and the
    uncertainty of it, in units of the `rho` of nearest neighbours.
    """

    SMOOTH = (0.0, 0.0)
    TREES = (0.55, 0.35)
    UNKNOWN = (0.5, 0.5)

    def expected_rho(self, presence: float) -> tuple[float, float]:
        """Return the expected rho and its uncertainty for a chance of presence."""
        neighbours = presence / (2 - presence)
        mean, spread = self.value
        return mean * neighbours, spread * neighbours

    @property
    def typical_ratio(self) -> float:
        """Typical value of `zeta_k / (k zeta_1)`, which is at least one.

        It is one for means and regressions; measurements gave 6 to 47 for forests and
        4 to 20 for single trees.
        """
        return {KernelKind.SMOOTH: 1.0, KernelKind.UNKNOWN: 3.0}.get(self, 10.0)


def kernel_kind(name: str) -> KernelKind:
    """Return the kind of this name, in lower case."""
    kinds = {kind.name.lower(): kind for kind in KernelKind}
    if name not in kinds:
        names = ", ".join(map(repr, kinds))
        raise ValueError(f"`kind` must be one of {names}; got {name!r}.")
    return kinds[name]


@dataclass(frozen=True)
class UnitRows:
    """The rows of every unit, if units are clusters."""

    bounds: Ints  # (n_units + 1,): where the rows of each unit begin and end
    rows: NDArray[np.int32]  # (n_rows,): rows, unit after unit

    @classmethod
    def of(cls, unit_of_row: Ints, n_units: int) -> "UnitRows":
        """Sort rows by their unit."""
        bounds = np.zeros(n_units + 1, dtype=np.int64)
        np.cumsum(np.bincount(unit_of_row, minlength=n_units), out=bounds[1:])
        return cls(bounds, np.argsort(unit_of_row, kind="stable").astype(np.int32))


@dataclass(frozen=True)
class RowDraw:
    """The rows of one learner."""

    # Distinct rows, in ascending order, and how often each was drawn
    rows: Ints
    times: Ints
    n_rows: int  # rows of the data

    @property
    def counts(self) -> Ints:
        """Times each row of the data was drawn, shape (n_rows,)."""
        counts = np.zeros(self.n_rows, dtype=np.int64)
        counts[self.rows] = self.times
        return counts

    def holds(self, rows: Ints) -> NDArray[np.bool_]:
        """Return whether rows were drawn."""
        places = np.minimum(np.searchsorted(self.rows, rows), self.rows.size - 1)
        return np.asarray(self.rows[places] == rows)


@dataclass(frozen=True)
class UnitDraw:
    """Units that consecutive learners drew, and their rows."""

    counts: Counts  # (L, n_units): times each unit was drawn by each learner
    unit_of_row: Ints | None = None  # (n_rows,): unit of every row, if clusters
    index: UnitRows | None = None  # the rows of every unit, if units are clusters

    @property
    def row_counts(self) -> Floats:
        """Times each row is in each subsample, shape (L, n_rows)."""
        counts = self.counts
        units = counts.toarray() if sparse.issparse(counts) else counts
        return np.asarray(
            units if self.unit_of_row is None else units[:, self.unit_of_row]
        )

    def rows(self, learner: int) -> RowDraw:
        """List the rows of one learner."""
        table = sparse.csr_array(self.counts[[learner]])
        drawn = table.data > 0
        units, times = table.indices[drawn].astype(np.int64), table.data[drawn]
        if self.index is not None:
            first, last = self.index.bounds[units], self.index.bounds[units + 1]
            sizes = last - first
            ends = np.cumsum(sizes)
            places = np.arange(sizes.sum()) + np.repeat(last - ends, sizes)
            units = self.index.rows[places].astype(np.int64)
            times = np.repeat(times, sizes)
        order = np.argsort(units)
        n_rows = table.shape[1] if self.unit_of_row is None else self.unit_of_row.size
        return RowDraw(units[order], times[order].astype(np.int64), n_rows)


@dataclass(frozen=True)
class OutOfBag:
    """Sums of predictions by learners that did not see an observation."""

    total: Floats  # (r, c): summed predictions
    times: Floats  # (r,): number (in a complete design: weight) of learners in each sum
    # (r,): the observations, in ascending order; None for all of them
    rows: Ints | None = None

    def __add__(self, other: "OutOfBag") -> "OutOfBag":
        return OutOfBag(self.total + other.total, self.times + other.times, self.rows)

    def of(self, observed: Floats) -> Floats:
        """Select observed values, shape (n,), at the rows of the sums."""
        return observed if self.rows is None else observed[self.rows]

    @property
    def mean(self) -> Floats:
        """Out-of-bag predictions; NaN where every learner saw the observation."""
        times = np.where(self.times > 0, self.times, np.nan)
        return self.total / times[:, None]


@dataclass(frozen=True)
class Evaluation:
    """Values of consecutive learners."""

    values: Floats  # (L, m): kernel values, learners first
    learners: list[Any]  # the first of the fitted learners, as many as were kept
    oob: OutOfBag | None  # out-of-bag sums of predictive kernels

    def with_moves(self, n_query: int | None) -> "Evaluation":
        """Replace values beyond `n_query`, before and after moves, by differences."""
        if n_query is None or self.values.shape[1] == n_query:
            return self
        start, end = np.split(self.values[:, n_query:], 2, axis=1)
        values = np.concatenate([self.values[:, :n_query], end - start], axis=1)
        return replace(self, values=values)

    def __add__(self, other: "Evaluation") -> "Evaluation":
        oob = self.oob
        if oob is not None and other.oob is not None:
            oob = oob + other.oob
        values = np.concatenate([self.values, other.values])
        # Only leading learners are kept: once one is missing, none follows.
        complete = len(self.learners) == len(self.values)
        learners = self.learners + other.learners if complete else self.learners
        return Evaluation(values, learners, oob)


@dataclass(frozen=True)
class Training:
    """Training data, coded."""

    X: Floats  # (n, p): design matrix
    y: Floats  # (n,): response, or class codes
    names: tuple[str, ...]  # columns of the design matrix
    classes: tuple[Any, ...] | None  # levels of a categorical response
    weights: Floats | None  # (n,): weight of every observation
    data: pd.DataFrame  # all columns of the data, the same rows
    # Number of levels of every column that holds the codes of an unordered factor, 0
    # for numbers; None if all are numbers
    levels: tuple[int, ...] | None = None

    @classmethod
    def of(cls, parsed: ParsedFormula, weights: Floats | None = None) -> "Training":
        """Collect the training data of a parsed formula."""
        return cls(
            X=parsed.X,
            y=parsed.y,
            names=parsed.names,
            classes=parsed.classes,
            weights=weights,
            data=parsed.data,
            levels=tuple(parsed.levels.tolist()) if parsed.levels.any() else None,
        )

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None for regression."""
        return None if self.classes is None else len(self.classes)

    @property
    def response(self) -> NDArray[Any]:
        """The response in its original form: numbers, or levels."""
        if self.classes is None:
            return self.y
        return np.asarray(np.asarray(self.classes)[self.y.astype(int)])


@runtime_checkable
class Kernel(Protocol):
    """A statistic or learner that is evaluated on each subsample."""

    def fit(self, counts: Ints, rng: np.random.Generator) -> Any:
        """Fit a learner to the observations, each repeated `counts` times."""

    def value(self, learner: Any, at: Floats | None) -> Floats:
        """Evaluate the learner: the statistic's value, shape (m,)."""


@runtime_checkable
class RowKernel(Kernel, Protocol):
    """A kernel that takes rows of a subsample: counts would be mostly zero."""

    def fit(self, counts: Ints, rng: np.random.Generator) -> Any:
        """Fit a learner to the observations, each repeated `counts` times."""
        drawn = np.flatnonzero(counts)
        return self.fit_rows(drawn, counts[drawn], rng)

    def fit_rows(self, rows: Ints, times: Ints, rng: np.random.Generator) -> Any:
        """Fit a learner to distinct rows, in ascending order, each repeated `times`."""


def fit_drawn(kernel: Kernel, drawn: RowDraw, rng: np.random.Generator) -> Any:
    """Fit a learner by rows if the kernel takes them, else by counts."""
    if isinstance(kernel, RowKernel):
        return kernel.fit_rows(drawn.rows, drawn.times, rng)
    return kernel.fit(drawn.counts, rng)


@runtime_checkable
class PredictiveModel(Protocol):
    """A kernel, fitted or not, whose learners predict at rows of the design matrix."""

    @property
    def n_classes(self) -> int | None:
        """Classes of the response; None for regression."""

    @property
    def n_outputs(self) -> int:
        """Columns of a prediction: classes, or one."""

    @property
    def n_features(self) -> int:
        """Columns of the design matrix."""

    @property
    def coefficients(self) -> bool:
        """Whether the kernel's value is its coefficients, not its predictions."""

    def predict(self, learner: Any, X: Floats) -> Floats:
        """Predict at rows of the design matrix, shape (rows, n_outputs)."""


@runtime_checkable
class PredictiveKernel(Kernel, PredictiveModel, Protocol):
    """A kernel that fits one learner at a time, and whose learners predict."""

    @property
    def X(self) -> Floats:  # noqa: N802
        """Design matrix."""


@runtime_checkable
class BatchKernel(PredictiveModel, Protocol):
    """A predictive kernel that evaluates many subsamples in one compiled call."""

    @property
    def X(self) -> Floats:  # noqa: N802
        """Design matrix."""

    def grow(
        self,
        drawn: UnitDraw,
        keys: NDArray[np.uint64],
        at: Floats,
        *,
        oob_rows: Ints | None,
        keep: bool,
    ) -> Evaluation:
        """Evaluate one learner for each draw; without `oob_rows` no out-of-bag sums."""


AnyKernel: TypeAlias = "Kernel | BatchKernel | ArrayKernel"


def output_columns(n_classes: int | None) -> int:
    """Count the columns of a prediction; two classes need only one."""
    return 1 if n_classes is None or n_classes == 2 else n_classes


def class_columns(share: Floats, classes: Ints, n_classes: int) -> Floats:
    """Spread the classes that a learner saw over all columns; two need only one."""
    full = np.zeros((len(share), n_classes))
    full[:, np.asarray(classes, dtype=np.int64)] = share
    return full[:, 1:] if n_classes == 2 else full


def kind_of(kernel: Any) -> KernelKind:
    """Return how a kernel depends on its observations, as far as it is known."""
    return getattr(kernel, "kind", KernelKind.UNKNOWN)


# Pairs of observations that an array kernel takes at a time.
SUBSAMPLE_ENTRIES = 1_000_000


@dataclass(frozen=True)
class ArrayKernel:
    """A function that takes many subsamples in one array."""

    # From subsamples of one size, shape (L, k) or (L, k, c), to their values, (L,)
    function: Callable[[Floats], Floats]
    data: Floats  # (n,) or (n, c): observations

    kind: ClassVar[KernelKind] = KernelKind.SMOOTH

    def values(self, rows: Ints) -> Floats:
        """Evaluate subsamples, given as rows of the data, shape (L, k) to (L, 1)."""
        step = max(1, SUBSAMPLE_ENTRIES // rows.shape[1] ** 2)
        parts = [
            self.function(self.data[rows[first : first + step]])
            for first in range(0, len(rows), step)
        ]
        return np.concatenate(parts)[:, None]


Fields = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class KernelCodec:
    """Conversion of learners to plain fields and arrays, and back.

    Attributes
    ----------
    name : str
        Name of such learners in files.
    kernel : type
        Class of the kernels whose learners it writes.
    fields, arrays : tuple of str
        Names of the fields, and of the arrays, that it writes and reads.
    pack : callable
        `(kernel, learners) -> (fields, arrays)`; fields hold what JSON can.
    unpack : callable
        `(fields, arrays, B, p) -> (kernel, learners)` of B learners that predict
        from p columns. The content of a file is checked (`vstatkit.json_values.check`),
        since it may be damaged or malicious.
    """

    name: str
    kernel: type
    fields: tuple[str, ...]
    arrays: tuple[str, ...]
    pack: Callable[[Any, list[Any]], tuple[Fields, Arrays]]
    unpack: Callable[
        [Mapping[str, Any], Arrays, int, int], tuple[PredictiveModel, list[Any]]
    ]
