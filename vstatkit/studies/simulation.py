"""Simulations: data sets from one process, each with an ensemble for every arm."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats, KernelLike
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.ensemble.prediction import output_labels
from vstatkit.ensemble.query import build_query
from vstatkit.exceptions import VstatkitError
from vstatkit.fit_steps import probe_function
from vstatkit.formula.data_frames import as_frame
from vstatkit.formula.design_matrix import Missing
from vstatkit.formula.parse import ParsedFormula, parse, response_name
from vstatkit.formula.patsy_engine import environment_of, pack_names, unpack_names
from vstatkit.kernels.base import (
    AnyKernel,
    BatchKernel,
    KernelKind,
    PredictiveKernel,
    PredictiveModel,
    Training,
    kind_of,
)
from vstatkit.kernels.registry import build_kernel, factor_coding, keeps_intercept
from vstatkit.kernels.user_defined import FunctionKernel
from vstatkit.sampling.design import BalancedDesign, SubsampleDesign, check_units
from vstatkit.sampling.registry import build_design
from vstatkit.storage.checkpoint import describe, hash_arrays, hash_frame
from vstatkit.studies.experiment import Draw, Record, iteration_stream, stack
from vstatkit.studies.methods import Measure, build_prefixes
from vstatkit.variance.higher_orders import reference_rows


@dataclass(frozen=True)
class Scale:
    """Divisors of n and k (`units`) and of B (`learners`) relative to the paper."""

    units: int = 1
    learners: int = 1
    suffix: str = ""

    def sizes(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Divide numbers of learners."""
        return tuple(B // self.learners for B in numbers)


FULL = Scale()
QUICK = Scale(units=5, learners=10, suffix="-quick")

Generator = Callable[[np.random.Generator], DataLike]
Meaning = dict[str, tuple[str, ...]]

# Key of the number of rows with missing values that the formula dropped.
DROPPED = "dropped"
FINGERPRINT_LEARNERS = 3  # learners per arm whose values are hashed


class LabelsError(VstatkitError):
    """The estimates of two data sets have different meanings."""


@dataclass(frozen=True)
class Arm:
    """An ensemble that is grown on every data set.

    `label` is the prefix of its arrays in the record; their second axis are `sizes`,
    the increasing numbers of learners at which `measure` is computed. The other fields
    are those of `fit`, with the options of the subsample design.
    """

    label: str
    k: int | float | None
    sizes: tuple[int, ...]
    measure: Measure
    replace: bool = True
    design: str = "iid"
    options: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FirstData:
    """The first data set of a simulation, parsed, and the labels of its estimates.

    `meaning` lists the coefficients, levels and classes behind the estimates; those of
    all later data sets must be the same.
    """

    seed: int
    parsed: ParsedFormula
    design: SubsampleDesign
    points: pd.Index
    response: str
    kind: KernelKind
    meaning: Meaning


@dataclass(frozen=True)
class Simulation:
    """Data sets drawn from one process, each with an ensemble for every arm."""

    name: str  # name of its random streams
    generator: Generator  # draws a data set from a numpy Generator
    formula: str
    arms: tuple[Arm, ...]  # ensembles grown on every data set
    at: pd.DataFrame | None = None  # query points of kernels that predict
    kernel: KernelLike = "tree"
    options: Mapping[str, Any] = field(default_factory=dict)  # options of the kernel
    environment: Any = None  # environment of names in the formula that are not columns
    missing: Missing = "drop"
    # Set by `draw_first`; the labels of later data sets are compared with it
    first: FirstData | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the names that the formula uses, not the whole environment."""
        if self.environment is None or self.first is None:
            return self.__dict__
        names = pack_names(self.first.parsed.coding.recipe.names)
        return {**self.__dict__, "environment": names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        names = state["environment"]
        environment = None if names is None else environment_of(unpack_names(names))
        self.__dict__.update(state, environment=environment)

    def settings(self) -> dict[str, Any]:
        """Describe all that the numbers depend on apart from the seed."""
        return {
            "generator": describe(self.generator),
            "formula": self.formula,
            "at": None if self.at is None else self.at.to_dict("list"),
            "kernel": describe(self.kernel),
            "options": {name: describe(value) for name, value in self.options.items()},
            "missing": self.missing,
            "arms": [
                {**dataclasses.asdict(arm), "measure": describe(arm.measure)}
                for arm in self.arms
            ],
        }

    def fingerprint(self, seed: int) -> dict[str, str]:
        """Hash the first data set, and the values of the first learners on it."""
        parsed = self._draw(seed, 0)
        values = [
            _grow(task, min(FINGERPRINT_LEARNERS, arm.sizes[-1]))
            for arm, task in zip(self.arms, self._tasks(parsed, seed, 0), strict=True)
        ]
        return {"drawn": hash_frame(parsed.data), "values": hash_arrays(values)}

    def draw_first(self, seed: int) -> tuple["Simulation", FirstData]:
        """Draw the first data set, and return a simulation that reuses it."""
        parsed = self._draw(seed, 0)
        task = self._tasks(parsed, seed, 0)[0]
        first = FirstData(
            seed=seed,
            parsed=parsed,
            design=task.design,
            points=self._points(task.kernel, parsed),
            response=response_name(parsed),
            kind=kind_of(task.kernel),
            meaning=_meaning(task.kernel, parsed),
        )
        return dataclasses.replace(self, first=first), first

    def run(self, seed: int, iteration: int) -> Record:
        """Draw a data set, grow its ensembles and measure them."""
        parsed = self._draw(seed, iteration)
        tasks = self._tasks(parsed, seed, iteration)
        if self.first is not None:
            meaning = _meaning(tasks[0].kernel, parsed)
            _check_meaning(self.first.meaning, meaning, iteration)
        record: Record = {DROPPED: np.array(float(parsed.n_dropped))}
        for arm, task in zip(self.arms, tasks, strict=True):
            for name, array in _measure(arm, task).items():
                record[f"{arm.label}/{name}"] = array
        return record

    def _draw(self, seed: int, iteration: int) -> ParsedFormula:
        """Draw a data set and apply the formula."""
        if iteration == 0 and self.first is not None and self.first.seed == seed:
            return self.first.parsed
        stream = iteration_stream(seed, self.name, iteration, Draw.DATA)
        parsed = parse(
            self.formula,
            as_frame(self.generator(stream)),
            environment=self.environment,
            intercept=keeps_intercept(self.kernel),
            missing=self.missing,
            factors=factor_coding(self.kernel, self.options),
        )
        check_units(len(parsed.y))
        return parsed

    def _tasks(self, parsed: ParsedFormula, seed: int, iteration: int) -> list[Task]:
        """Prepare the ensemble of every arm."""
        kernel = build_kernel(self.kernel, Training.of(parsed), self.options)
        rows = self._rows(kernel, parsed)
        draws = iteration_stream(seed, self.name, iteration, Draw.ENSEMBLE)
        seeds = draws.integers(2**62, size=len(self.arms)).tolist()
        tasks = []
        for arm, arm_seed in zip(self.arms, seeds, strict=True):
            design = _build_design(arm, len(parsed.y), arm_seed)
            task = Task(kernel, design, rows, None, keep=False, oob=False)
            if isinstance(kernel, FunctionKernel):
                task, _ = probe_function(task, kernel)
            tasks.append(task)
        return tasks

    def _rows(self, kernel: AnyKernel, parsed: ParsedFormula) -> Floats | None:
        if not isinstance(kernel, PredictiveModel) or kernel.coefficients:
            return build_query(kernel, parsed, self.at).rows
        if self.at is None:
            columns = ", ".join(parsed.coding.variables)
            raise ValueError(
                "a kernel that predicts needs query points, the same for every data "
                f"set; give them as `at`, with the columns {columns}."
            )
        return parsed.coding.matrix(self.at)

    def _points(self, kernel: AnyKernel, parsed: ParsedFormula) -> pd.Index:
        if isinstance(kernel, FunctionKernel):
            return pd.Index(list(kernel.names or ()))
        if self.at is None:
            return pd.Index(parsed.names)
        return output_labels(self.at.index, parsed.classes)


# Results of a simulation, and the simulation itself.
Findings = tuple[Record, Simulation]


def _meaning(kernel: AnyKernel, parsed: ParsedFormula) -> Meaning:
    """List the coefficients, levels and classes that the estimates refer to."""
    if isinstance(kernel, FunctionKernel):
        return {"values": tuple(map(str, kernel.names or ()))}
    meaning: Meaning = {}
    if isinstance(kernel, PredictiveModel) and kernel.coefficients:
        # Names of coefficients do not show which level is the reference.
        for code, levels in parsed.coding.info.levels.items():
            if levels is not None:
                meaning[f"levels of {code}"] = tuple(map(str, levels))
        meaning["coefficients"] = parsed.names
    if parsed.classes is not None:
        meaning["classes"] = tuple(map(str, parsed.classes))
    return meaning


def _check_meaning(first: Meaning, current: Meaning, iteration: int) -> None:
    """Raise an error if estimates of one name are different quantities."""
    for what in {**first, **current}:
        if first.get(what) != current.get(what):
            known, new = (
                ", ".join(meaning.get(what, ())) or "none"
                for meaning in (first, current)
            )
            remedy = REMEDIES.get(what, REMEDIES["levels"])
            raise LabelsError(
                f"every data set must have the same {what}: the first one has {known}; "
                f"that of iteration {iteration} has {new}. {remedy}"
            )


REMEDIES = {
    "values": "Let the function return the same names for every data set.",
    "classes": "Let the generator draw every class in every data set, for example with "
    "more rows or with fixed numbers in each class.",
    "levels": "Declare the levels, by C(g, levels=[...]) in the formula or by "
    "pd.Categorical(g, categories=[...]) in the generator.",
}


def _build_design(arm: Arm, n: int, seed: int) -> SubsampleDesign:
    design, _ = build_design(
        arm.design,
        n,
        arm.k,
        arm.sizes[-1],
        replace=arm.replace,
        seed=seed,
        options=dict(arm.options),
    )
    for size in arm.sizes[:-1]:
        design.with_size(size)
        if isinstance(design, BalancedDesign) and size % design.block:
            raise ValueError(
                f"for design={arm.design!r} every `B` but the largest must be whole "
                f"groups, a multiple of block = {design.block}; got {size}. Change `B` "
                "or `block`."
            )
    return design.with_size(arm.sizes[-1])


def _grow(task: Task, learners: int) -> Floats:
    return evaluate(task, 0, learners, n_jobs=1, progress=False).values


def _measure(arm: Arm, task: Task) -> Record:
    """Grow the largest ensemble once, and measure all of its prefixes."""
    kernel, full, n_reference = task.kernel, task, 0
    beyond = task.at is not None and getattr(arm.measure, "beyond", False)
    if beyond and isinstance(kernel, BatchKernel | PredictiveKernel):
        # Append the rows from which `fit` estimates effects beyond the first order.
        rows = reference_rows(kernel.X, task.design.seed, kernel.n_outputs)
        full = dataclasses.replace(task, at=np.concatenate([task.at, rows]))
        n_reference = len(rows) * kernel.n_outputs
    values = _grow(full, arm.sizes[-1])
    m = values.shape[1] - n_reference
    prefixes = build_prefixes(
        task.design,
        values[:, :m],
        arm.sizes,
        reference=values[:, m:] if n_reference else None,
        kind=kind_of(kernel),
    )
    return stack([arm.measure(prefix) for prefix in prefixes])
