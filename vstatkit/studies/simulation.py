"""One machine for every simulation: generator x design x kernel x estimators."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import DataLike, Floats, KernelLike
from vstatkit.assemble import build_design, build_kernel, keeps_intercept, probe
from vstatkit.components import (
    ESTIMATORS,
    VarianceComponents,
    estimate_components,
    moment_components,
)
from vstatkit.ensemble import Task, evaluate
from vstatkit.formula import Design, parse
from vstatkit.frames import as_frame
from vstatkit.inference import stabilise
from vstatkit.kernels import AnyKernel, FunctionKernel, Predictive
from vstatkit.prediction import output_labels
from vstatkit.studies.experiment import Draw, Record, describe, iteration_stream
from vstatkit.studies.prefixes import Prefix, prefixes
from vstatkit.studies.variants import sampling_variance

Generator = Callable[[np.random.Generator], DataLike]
Interval = Literal["normal", "t"]


class Measure(Protocol):
    """What is kept of an ensemble."""

    def __call__(self, prefix: Prefix) -> Record:
        """Measure the first B learners."""


@dataclass(frozen=True)
class Method:
    """A variance estimate, and the interval made of it.

    Attributes
    ----------
    label : str
        Name in tables.
    sampling : str
        Estimator of the sampling variance, of vstatkit or of the study.
    monte_carlo : bool
        Whether `zeta_k / B` is added.
    interval : {"normal", "t"}
        Normal quantile times the root of the raw variance; or what vstatkit
        reports, a stabilised variance and Student's t.
    """

    label: str
    sampling: str
    monte_carlo: bool = True
    interval: Interval = "normal"


@dataclass(frozen=True)
class Intervals:
    """Estimates, their variances and half the widths of their intervals.

    Attributes
    ----------
    methods : tuple of Method
        The second to last axis of `variance` and `half_width`.
    alpha : float
        One minus the nominal coverage.
    """

    methods: tuple[Method, ...]
    alpha: float = 0.05

    def __call__(self, prefix: Prefix) -> Record:
        """Measure the first B learners."""
        pairs = [self._interval(method, prefix) for method in self.methods]
        return {
            "mean": prefix.mean,
            "variance": np.stack([variance for variance, _ in pairs]),
            "half_width": np.stack([half for _, half in pairs]),
        }

    def _interval(self, method: Method, prefix: Prefix) -> tuple[Floats, Floats]:
        if method.interval == "t":
            estimates = stabilise(
                prefix.mean, _components(method.sampling, prefix), prefix.n_learners
            )
            return estimates.variance, estimates.half_width(self.alpha)
        variance = sampling_variance(method.sampling, prefix)
        if method.monte_carlo:
            variance = variance + learner_variance(prefix) / prefix.n_learners
        # A negative variance has no interval: NaN covers nothing.
        root = np.sqrt(np.where(variance < 0, np.nan, variance))
        return variance, stats.norm.isf(self.alpha / 2) * root


@dataclass(frozen=True)
class Components:
    """Estimates, and the variance components by several estimators.

    Attributes
    ----------
    methods : tuple of str
        The second to last axis of `sampling` and `zeta_1`.
    """

    methods: tuple[str, ...]

    def __call__(self, prefix: Prefix) -> Record:
        """Measure the first B learners."""
        n, k = prefix.design.n, prefix.design.k
        sampling = np.stack([sampling_variance(name, prefix) for name in self.methods])
        return {
            "mean": prefix.mean,
            "sampling": sampling,
            "zeta_1": n / k**2 * sampling,
            "zeta_k": learner_variance(prefix),
        }


def learner_variance(prefix: Prefix) -> Floats:
    """Variance of a single learner, `zeta_k`."""
    return np.asarray(prefix.values.var(axis=0, ddof=1))


def _components(method: str, prefix: Prefix) -> VarianceComponents:
    if ESTIMATORS[method].source == "moments":
        replace = prefix.design.replace
        return moment_components(method, prefix.moments, replace=replace)
    return estimate_components(method, prefix.design, prefix.values)


@dataclass(frozen=True)
class Arm:
    """An ensemble that every data set gets.

    Attributes
    ----------
    label : str
        Prefix of its arrays in the record.
    k : int, float or None
        Subsample size, or a fraction of n.
    sizes : tuple of int
        Numbers of learners, increasing; the second axis of its arrays.
    measure : Measure
        What is kept.
    replace : bool
        Subsamples with replacement, or without.
    design : str
        How subsamples are drawn.
    options : mapping
        Options of the design.
    """

    label: str
    k: int | float | None
    sizes: tuple[int, ...]
    measure: Measure
    replace: bool = True
    design: str = "iid"
    options: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Simulation:
    """Data sets of a law, each with an ensemble for every arm.

    Attributes
    ----------
    name : str
        Name of its streams.
    generator : callable
        Data set from a stream.
    formula : str
        As in `fit`.
    arms : tuple of Arm
        Ensembles.
    at : DataFrame or None
        Query points of kernels that predict.
    kernel : str, scikit-learn estimator or callable
        As in `fit`.
    options : mapping
        Options of the kernel.
    environment : object or None
        Where the formula finds names that are not columns.
    """

    name: str
    generator: Generator
    formula: str
    arms: tuple[Arm, ...]
    at: pd.DataFrame | None = None
    kernel: KernelLike = "tree"
    options: Mapping[str, Any] = field(default_factory=dict)
    environment: Any = None

    def settings(self) -> dict[str, Any]:
        """All that the numbers depend on beside the seed."""
        return {
            "generator": describe(self.generator),
            "formula": self.formula,
            "at": None if self.at is None else self.at.to_dict("list"),
            "kernel": describe(self.kernel),
            "options": {name: repr(value) for name, value in self.options.items()},
            "arms": [
                {**dataclasses.asdict(arm), "measure": describe(arm.measure)}
                for arm in self.arms
            ],
        }

    def run(self, seed: int, iteration: int) -> Record:
        """Draw a data set and measure its ensembles."""
        data = iteration_stream(seed, self.name, iteration, Draw.DATA)
        parsed = self._parse(as_frame(self.generator(data)))
        kernel = build_kernel(self.kernel, parsed, None, dict(self.options))
        rows = self._rows(kernel, parsed)
        draws = iteration_stream(seed, self.name, iteration, Draw.ENSEMBLE)
        seeds = draws.integers(2**62, size=len(self.arms)).tolist()
        record: Record = {}
        for arm, arm_seed in zip(self.arms, seeds, strict=True):
            measured = _measure(arm, kernel, rows, len(parsed.y), arm_seed)
            record |= {f"{arm.label}/{name}": a for name, a in measured.items()}
        return record

    def first(self, seed: int) -> tuple[int, pd.Index]:
        """Count the observations of the first data set, and name the values."""
        data = iteration_stream(seed, self.name, 0, Draw.DATA)
        parsed = self._parse(as_frame(self.generator(data)))
        n = len(parsed.y)
        kernel = build_kernel(self.kernel, parsed, None, dict(self.options))
        if isinstance(kernel, FunctionKernel):
            task = _task(self.arms[0], kernel, None, n, 0)
            return n, probe(task, kernel)[1].labels
        if self._rows(kernel, parsed) is None or self.at is None:
            return n, pd.Index(parsed.names)
        return n, output_labels(self.at.index, parsed.classes)

    def _parse(self, frame: pd.DataFrame) -> Design:
        return parse(
            self.formula,
            frame,
            environment=self.environment,
            intercept=keeps_intercept(self.kernel),
        )

    def _rows(self, kernel: AnyKernel, parsed: Design) -> Floats | None:
        if not isinstance(kernel, Predictive) or kernel.coefficients:
            return None
        if self.at is None:
            raise ValueError(
                "a kernel that predicts needs query points, the same for every data "
                "set; give them as `at`."
            )
        return parsed.coding.matrix(self.at)


def _task(arm: Arm, kernel: AnyKernel, rows: Floats | None, n: int, seed: int) -> Task:
    design, _ = build_design(
        arm.design,
        n,
        arm.k,
        arm.sizes[-1],
        replace=arm.replace,
        seed=seed,
        options=dict(arm.options),
    )
    for size in arm.sizes:
        if design.rounded(size, at_most=arm.sizes[-1]) != size:
            raise ValueError(
                f"every number of learners must be whole groups of design="
                f"{arm.design!r}; got {size}."
            )
    sized = design.sized(arm.sizes[-1])
    return Task(kernel, sized, rows, None, keep=False, oob=False)


def _measure(
    arm: Arm, kernel: AnyKernel, rows: Floats | None, n: int, seed: int
) -> Record:
    """Grow the largest ensemble once, and measure all its prefixes."""
    task = _task(arm, kernel, rows, n, seed)
    if isinstance(kernel, FunctionKernel):
        task, _ = probe(task, kernel)
    values = evaluate(task, 0, arm.sizes[-1], n_jobs=1, progress=False).values
    measured = [arm.measure(one) for one in prefixes(task.design, values, arm.sizes)]
    return {name: np.stack([one[name] for one in measured]) for name in measured[0]}
