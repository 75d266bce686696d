"""Memory that a fit needs, from its sizes alone.

The estimate counts arrays that grow with the data, the learners or the query points. It
excludes chunks of bounded size, Python itself, and learners other than trees and
coefficients, whose size is unknown.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib

from vstatkit.available_memory import available_memory
from vstatkit.ensemble.evaluation import BATCH_ENTRIES, Task
from vstatkit.ensemble.retention import RESIDENT_BYTES
from vstatkit.exceptions import MemoryLimitError
from vstatkit.kernels.base import PredictiveModel
from vstatkit.kernels.tree import (
    NEVER_RANKED_FROM,
    NODE_BYTES,
    OWN_ROWS_BELOW,
    OWN_ROWS_FROM,
    TreeKernel,
)
from vstatkit.kernels.user_defined import FunctionKernel
from vstatkit.sampling.design import SPARSE_BELOW, SubsampleDesign

FLOAT = 8  # bytes of a number
# Bytes for each entry of a design matrix whose columns are ranked: 8 of sorted values,
# 4 each of order and ranks, and 8 of the order before it is packed.
RANKED_BYTES = 24
# Bytes for each row of the leaves with several rows: its number and its share.
LISTED_BYTES = 8
OBJECT_BYTES = 600  # bytes of a learner apart from its numbers
# Rows in a leaf, per row of `min_samples_leaf` and of `min_samples_split`.
LEAF_ROWS, SPLIT_ROWS = 1.5, 0.57
# Leaves for each distinct row, in trees that stop where leaves are of one class, and in
# trees that grow with one half of the rows. Other trees have a leaf for every row.
PURE_SHARE, HONEST_SHARE = 0.3, 0.27
SMALL = 2**27  # bytes below which the available memory is not checked
# A number of bytes, with its unit.
SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]?)(i?)b?", re.IGNORECASE)

VALUES = "the learners' values at the query points"
LEARNERS = "the learners"
RANKS = "the ranks of the predictors"
COUNTS = "the counts of batches under way"
SUMS = "the sums of out-of-bag predictions"
DATA = "the design matrix"
POINTS = "the coded query points and their estimates"
PREDICTIONS = "every learner's predictions"
COVARIANCES = "the covariances of the estimates"

# Numbers that are held for each estimate, its standard error included.
ESTIMATE_NUMBERS = 20
# Tables of the size of a covariance matrix that it takes to compute one.
COVARIANCE_TABLES = 6
# How to reduce the largest part.
ADVICE = {
    VALUES: "Give fewer query points (`at`), and the others to get_prediction() later; "
    "or use a smaller `B`.",
    LEARNERS: "Use `keep_learners=False`, a smaller `B`, or a smaller `k`.",
    RANKS: "Use a smaller `k`, so that every tree ranks its own rows; or fewer "
    "predictors.",
    COUNTS: "Use fewer workers (`n_jobs`).",
    SUMS: "Use fewer workers (`n_jobs`).",
    DATA: "Use fewer rows or predictors, or give the data as a Parquet file.",
    POINTS: "Predict the rows in several parts.",
    PREDICTIONS: "Predict fewer query points at a time.",
    COVARIANCES: "Compute the covariances of fewer query points at a time.",
}


@dataclass(frozen=True)
class MemoryPlan:
    """The bytes that a fit needs."""

    fixed: dict[str, int]  # whatever the number of learners, by what they are for
    values: float  # for the values of a learner
    learner: float  # for a learner that is kept
    spilled: float = 0.0  # part of `learner` that is moved to a file if there are many

    def needs(self, B: int) -> dict[str, int]:
        """Bytes that B learners need beside the design matrix."""
        in_file = max(0.0, B * self.spilled - RESIDENT_BYTES)
        retained = int(B * self.learner - in_file)
        return {**self.fixed, VALUES: int(B * self.values), LEARNERS: retained}

    def most(self, limit: int) -> int:
        """Count the learners for which there is room."""
        left = limit - sum(self.fixed.values())
        each = self.values + self.learner
        in_memory = left // each
        in_file = (left - RESIDENT_BYTES) // (each - self.spilled)
        return max(0, int(in_memory), int(in_file) if self.spilled else 0)


def plan_memory(
    task: Task, n_jobs: int | None, stack: Sequence[tuple[TreeKernel, float]] = ()
) -> MemoryPlan:
    """Plan the memory of what is to be evaluated, and of the learners of a `stack`."""
    kernel, design = task.kernel, task.design
    n = design.n if task.unit_of_row is None else len(task.unit_of_row)
    p, outputs = 0, 1
    if isinstance(kernel, PredictiveModel):
        p, outputs = kernel.n_features, kernel.n_outputs
    m = max(1, p)
    if task.at is not None:
        m = len(task.at) * outputs
    elif isinstance(kernel, FunctionKernel):
        m = len(kernel.names or ("statistic",))
    trees = isinstance(kernel, TreeKernel)
    ranked = trees and _all_ranked(design, n)
    kernels = [(kernel, 1.0), *stack] if task.keep else []
    learner = sum(share * learner_bytes(part, design, n) for part, share in kernels)
    beside = sum(share for _, share in kernels) * (FLOAT * p + OBJECT_BYTES)
    spilled = learner - beside if trees and task.keep else 0.0
    scored = 0  # rows that are predicted if a subsample leaves them out
    if task.oob and p > 0:
        scored = n if task.most_oob is None else min(n, task.most_oob)
    entries = max(n, BATCH_ENTRIES) if ranked else 0 if trees else n
    workers = joblib.effective_n_jobs(n_jobs)
    fixed = {
        RANKS: RANKED_BYTES * n * p if ranked else 0,
        COUNTS: entries * FLOAT * workers,
        SUMS: scored * (outputs + 1) * FLOAT * (1 + workers),
    }
    # Growth copies values once; centring holds those of the stack, in parts and joined,
    # and the ensemble's own before and after the shift.
    copies = 4.0 if stack else 2.0
    return MemoryPlan(fixed, copies * m * FLOAT, learner, spilled)


def _all_ranked(design: SubsampleDesign, n: int) -> bool:
    """Whether trees rank all rows, and not each its own."""
    share = design.k / design.n
    if n >= NEVER_RANKED_FROM:
        return share >= SPARSE_BELOW
    return share >= OWN_ROWS_BELOW or n < OWN_ROWS_FROM


def learner_bytes(kernel: Any, design: SubsampleDesign, n_rows: int) -> float:
    """Estimate the bytes of a learner; zero for kinds whose size is not known."""
    if isinstance(kernel, TreeKernel):
        per_unit = n_rows / design.n
        distinct = (design.n - design.n_absent) * per_unit
        leaves = _leaves(kernel, design.k * per_unit, distinct) * kernel.n_whole_trees
        numbers = kernel.n_features + kernel.n_line
        # Rows are listed for leaves of several rows.
        listed = distinct if leaves < distinct and kernel.n_whole_trees == 1 else 0.0
        tables = 2 * leaves * NODE_BYTES + LISTED_BYTES * listed
        return tables + FLOAT * numbers + OBJECT_BYTES
    if isinstance(kernel, PredictiveModel) and kernel.coefficients:
        return float(FLOAT * kernel.n_features + OBJECT_BYTES / 4)
    return 0.0


def _leaves(kernel: TreeKernel, drawn: float, distinct: float) -> float:
    """Estimate how many leaves a tree has that is grown on so many rows."""
    options = kernel.options
    share = 1.0 if kernel.n_classes is None else PURE_SHARE
    if options["honest"]:
        share = min(share, HONEST_SHARE)
    bounds = [share * distinct]
    if options["min_samples_leaf"] > 1:
        bounds.append(drawn / (LEAF_ROWS * options["min_samples_leaf"]))
    if options["min_samples_split"] > 2:
        bounds.append(drawn / (SPLIT_ROWS * options["min_samples_split"]))
    if options["max_depth"]:
        bounds.append(2.0 ** min(options["max_depth"], 60))
    if options["max_leaf_nodes"]:
        bounds.append(options["max_leaf_nodes"])
    return min(bounds)


def covariance_bytes(m: int) -> int:
    """Bytes that the covariances of m estimates need."""
    return COVARIANCE_TABLES * FLOAT * m**2


def check_memory(
    needs: Mapping[str, int], limit: int | None = None, *, held: int = 0
) -> None:
    """Check that memory suffices, before it is allocated.

    `needs` are the bytes that are still to be allocated, by what they are for. `limit`
    is what may be used, by default what the machine has left. The `held` bytes of the
    design matrix are allocated already and count against a given limit. The error names
    the largest parts and how to reduce them.
    """
    parts = dict(needs) if limit is None else {DATA: held, **needs}
    total = sum(parts.values())
    free = available_bytes(total) if limit is None else limit
    if free is None or total <= free:
        return
    largest = sorted(parts, key=lambda name: -parts[name])[:3]
    listed = ", ".join(f"{format_bytes(parts[name])} for {name}" for name in largest)
    source = "are available" if limit is None else "are allowed (`memory_limit`)"
    advice = ADVICE.get(largest[0], "")
    raise MemoryLimitError(
        f"about {format_bytes(total)} of memory would be needed, and "
        f"{format_bytes(free)} {source}: {listed}. {advice}".rstrip()
    )


def available_bytes(total: int) -> int | None:
    """Return the available memory in bytes; None if `total` is too small to matter."""
    return None if total <= SMALL else available_memory()


def format_bytes(size: float) -> str:
    """Format a number of bytes, such as "2.5 GB" or "512 bytes"."""
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if size >= 1000**power:
            return f"{size / 1000**power:.3g} {unit}"
    return f"{size:.0f} bytes"


def memory_bytes(limit: Any) -> int | None:
    """Read a `memory_limit`: bytes, or a text such as "2GB".

    Examples
    --------
    >>> memory_bytes("2GB"), memory_bytes("500 MB"), memory_bytes("1.5 GiB")
    (2000000000, 500000000, 1610612736)
    """
    if limit is None:
        return None
    size = 0
    match = SIZE.fullmatch(limit.strip()) if isinstance(limit, str) else None
    if match is not None:
        number, letter, binary = match.groups()
        power = " kmgt".index(letter.lower() or " ")
        size = int(float(number) * (1024 if binary else 1000) ** power)
    elif not isinstance(limit, bool | str) and hasattr(limit, "__index__"):
        size = int(limit)
    if size <= 0:
        raise ValueError(
            "`memory_limit` must be a positive number of bytes, or a text such as "
            f"'2GB' or '500 MB'; got {limit!r}."
        )
    return size
