"""Trees in stages: a linear trend, a tree on its residuals, a second tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vstatkit._typing import Floats, Ints
from vstatkit.kernels.tree import StoredTreeKernel, Tree, TreeKernel
from vstatkit.kernels.tree_options import LOSSES
from vstatkit.native._engine import StageGrower, predict_stages_at
from vstatkit.workers import current_stop

# Options of the kernels "forest" and "tree" that reduce the bias of a learner.
STAGE_OPTIONS = ("trend", "boost")

_NO_SHARES = np.empty(0)


class Stages(NamedTuple):
    """The stages of a learner beside one tree."""

    trend: bool = False  # a ridge regression first; trees are grown on its residuals
    boost: bool = False  # a second tree on residuals that the first did not see

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Stages":
        """Read the options of a kernel."""
        trend, boost = options.get("trend"), options.get("boost", 0)
        if trend not in (None, "linear"):
            raise ValueError(f"`trend` must be 'linear' or None; got {trend!r}.")
        if isinstance(boost, float | str) or boost not in (0, 1):
            raise ValueError(f"`boost` must be 0 or 1; got {boost!r}.")
        return cls(trend is not None, bool(boost))

    @property
    def text(self) -> str:
        """Description of the learner."""
        parts = ["a linear trend"] * self.trend + ["a tree"]
        parts += ["a second tree on what the first leaves"] * self.boost
        *first, last = parts
        return f"{', '.join(first)} and {last}" if first else last


@dataclass(frozen=True)
class StagedTree:
    """A fitted learner of several stages; it predicts the sum of them."""

    # Nodes of all its trees, as `Tree` has them; halved where two trees are averaged
    nodes: NDArray[Any]
    sizes: Ints  # number of nodes of each tree
    # (2 p + 1,) or (0,): intercept, centres and slopes of the linear trend, of the
    # standardised response
    line: Floats
    gains: Floats  # (p,): gain of the splits of each feature, in all trees

    def __repr__(self) -> str:
        sizes = [int((tree.nodes["feature"] < 0).sum()) for tree in self.trees]
        trend = "a linear trend and " if self.line.size else ""
        return f"<StagedTree: {trend}{' + '.join(map(str, sizes))} leaves>"

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        parts = (self.nodes, self.sizes, self.line, self.gains)
        return sum(part.nbytes for part in parts)

    @property
    def trees(self) -> list[Tree]:
        """Its trees one by one; the first has the gains."""
        nodes = np.split(self.nodes, np.cumsum(self.sizes)[:-1])
        gains = [self.gains] + [np.zeros_like(self.gains)] * (len(nodes) - 1)
        pairs = zip(nodes, gains, strict=True)
        return [Tree(tree_nodes, _NO_SHARES, gain) for tree_nodes, gain in pairs]


@dataclass(frozen=True)
class StoredStagedKernel(StoredTreeKernel):
    """A kernel that predicts with learners of several stages, without their data."""

    def _predict_into(self, out: Floats, learner: StagedTree, points: Floats) -> None:
        stages, by_levels = (learner.nodes, learner.sizes), self.levels is not None
        predict_stages_at(*stages, learner.line, points, out, current_stop(), by_levels)

    def leaves(self, learner: StagedTree, X: Floats) -> NDArray[np.int32]:  # type: ignore[override]
        """Find the leaf of every row, if there is only one tree."""
        if len(learner.sizes) > 1:
            raise ValueError(
                f"a learner with boost=1 has {len(learner.sizes)} trees, and a row a "
                "leaf in each: `apply` is for boost=0."
            )
        return super().leaves(learner.trees[0], X)


@dataclass(frozen=True)
class StagedKernel(StoredStagedKernel, TreeKernel):
    """A regression tree in stages, all of them inside the subsample.

    Notes
    -----
    With a trend, the subsample's columns are standardised, and the penalty of a ridge
    regression is the one of `native/ridge.hpp` whose generalised cross-validation
    `RSS / m / (1 - df / m)**2` is smallest, m being the distinct rows; trees are grown
    on its residuals. With a boost, the distinct rows (or clusters) are divided into two
    halves; a tree on each predicts the other half, and a further tree is grown on these
    errors of all rows. The learner is the mean of the two trees plus the further one:
    Ghosal and Hooker's one-step boosted forest with both steps inside the subsample, so
    that every estimator of the variance counts both.

    References
    ----------
    Ghosal and Hooker (2021), Journal of Computational and Graphical Statistics 30(2),
    doi:10.1080/10618600.2020.1820345. Golub, Heath and Wahba (1979), Technometrics
    21(2), doi:10.1080/00401706.1979.10489751.
    """

    # The stages of every learner
    stages: Stages = field(default=Stages(), kw_only=True)

    @property
    def limit(self) -> float | None:
        """Half the range of predictions; a line has no bounds."""
        # Leaves of the second tree hold differences of two responses.
        return None if self.stages.trend else 3 * self.scale * float(np.ptp(self.y)) / 2

    @property
    def bounds(self) -> None:
        """None: sums of stages are not bounded by the responses."""
        return None

    @property
    def n_whole_trees(self) -> int:
        """Number of trees of a learner; two on halves of the subsample count as one."""
        return 2 if self.stages.boost else 1

    @property
    def n_line(self) -> int:
        """Length of the linear trend."""
        return 2 * self.n_features + 1 if self.stages.trend else 0

    def _make_grower(
        self, arguments: tuple[Any, ...], lines: Floats, unit_of_row: Ints | None
    ) -> Any:
        if unit_of_row is not None:
            unit_of_row = np.ascontiguousarray(unit_of_row, dtype=np.int32)
        return StageGrower(
            *arguments, lines=lines, unit_of_row=unit_of_row, **self.stages._asdict()
        )

    def _learners(self, kept: Sequence[Any], gains: Floats, lines: Floats) -> list[Any]:
        parts = zip(kept, lines, gains, strict=True)
        return [
            StagedTree(nodes, sizes, line, gain) for (nodes, sizes), line, gain in parts
        ]


def with_stages(kernel: TreeKernel, options: Mapping[str, Any]) -> TreeKernel:
    """Add the stages in `options`, if any, to a kernel of trees."""
    stages = Stages.of(options)
    if not any(stages):
        return kernel
    names = " and ".join(
        name for name, on in zip(STAGE_OPTIONS, stages, strict=True) if on
    )
    if kernel.n_classes is not None:
        raise ValueError(
            f"`{names}` is for a numeric response; this one has {kernel.n_classes} "
            f"classes. Leave `{names}` out."
        )
    if kernel.options["loss"] != LOSSES["squared_error"]:
        raise ValueError(
            f"`{names}` needs criterion='squared_error': other criteria do not target "
            "the mean of the residuals of a stage. Leave `criterion` out."
        )
    if stages.trend and kernel.levels is not None:
        raise ValueError(
            "`trend` needs columns of numbers; leave `categorical_splits=True` out, so "
            "that factors become indicator columns."
        )
    return replace_stages(kernel, stages)


def replace_stages(kernel: TreeKernel, stages: Stages) -> TreeKernel:
    """Return a kernel with other stages and the options of a kernel of trees."""
    if not any(stages):
        return kernel
    common = {field.name: getattr(kernel, field.name) for field in fields(TreeKernel)}
    return StagedKernel(**common, stages=stages)


def as_staged(learners: Sequence[Tree | StagedTree], p: int) -> list[StagedTree]:
    """Convert learners to the same stages; a line of zeros is a trend."""
    staged = [
        learner
        if isinstance(learner, StagedTree)
        else StagedTree(
            learner.nodes, np.array([learner.nodes.size]), _NO_SHARES, learner.gains
        )
        for learner in learners
    ]
    if not any(learner.line.size for learner in staged):
        return staged
    flat = np.zeros(2 * p + 1)
    return [
        learner if learner.line.size else replace(learner, line=flat)
        for learner in staged
    ]


def stored_kernel(kernel: TreeKernel) -> StoredTreeKernel:
    """Return a kernel that predicts with the same learners, without the data."""
    kind = StoredStagedKernel if isinstance(kernel, StagedKernel) else StoredTreeKernel
    return kind(
        *(kernel.n_features, kernel.n_classes, kernel.centre, kernel.scale),
        levels=kernel.levels,
    )
