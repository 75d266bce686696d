"""Is a predictor real? Out-of-bag losses of the fit and of fits to copies, in order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.ensemble.copies import How, check_how
from vstatkit.ensemble.losses import row_losses
from vstatkit.ensemble.refitted import (
    Reader,
    grown,
    on_design,
    refitted_outside,
)
from vstatkit.kernels.evaluation import OutOfBag
from vstatkit.results.asked import Asked
from vstatkit.results.feature_tests import check_number
from vstatkit.sampling.streams import Purpose, stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vstatkit.results.ensemble_results import EnsembleResults

Swap = Literal["copies", "trees"]
"""What changes places under the null."""

LEARNERS = 500
"""Learners of each fit, unless told otherwise."""


@dataclass(frozen=True)
class PermutationTest:
    """A test by the order of a statistic among others that are alike under the null.

    Attributes
    ----------
    variables : tuple of str
        The predictors.
    statistic : float
        Loss without the predictors, less the loss with them.
    others : ndarray of shape (P,)
        The statistics that it is compared with.
    pvalue : float
        `(1 + count) / (1 + P)`, the count being of those as large or larger.
    how, swap : str
        What took the place of the predictors, and what changed places.
    n_rows, n_learners : int
        Rows that were predicted out of bag, and learners of each fit.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> res = vs.fit("y ~ x1 + x4", data, B=50, rng=1)
    >>> found = res.permutation_test("x4", permutations=9, learners=50)
    >>> found.pvalue, len(found.others)
    (0.1, 9)
    """

    variables: tuple[str, ...]
    statistic: float
    others: Floats
    pvalue: float
    how: str
    swap: str
    n_rows: int
    n_learners: int

    @property
    def frame(self) -> pd.DataFrame:
        """The test in one row."""
        row = {
            "statistic": self.statistic,
            "pvalue": self.pvalue,
            "how": self.how,
            "swap": self.swap,
            "permutations": len(self.others),
            "rows": self.n_rows,
            "learners": self.n_learners,
        }
        return pd.DataFrame([row], index=[", ".join(self.variables)])

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the statistic among the others."""
        from vstatkit.results.answer_plots import draw_permutations  # noqa: PLC0415

        return draw_permutations(self, ax)

    def __str__(self) -> str:
        table = self.frame.to_string(float_format=lambda number: f"{number:.4g}")
        named = ", ".join(self.variables)
        return f"Null: the fit loses nothing with a copy of {named}\n{table}"

    def __repr__(self) -> str:
        named = ", ".join(self.variables)
        return f"<PermutationTest: {named}, p = {self.pvalue:.4g}>"

    def _repr_html_(self) -> str:
        return str(self.frame.to_html())


def permutation_test(
    results: "EnsembleResults",
    variables: str | Sequence[str],
    *,
    how: How,
    swap: Swap,
    permutations: int | None,
    learners: int | None,
) -> PermutationTest:
    """Compare losses; see `Asking.permutation_test`."""
    check_how(how)
    if swap not in ("copies", "trees"):
        raise ValueError(f"`swap` must be 'copies' or 'trees'; got {swap!r}.")
    if how == "drop":
        raise ValueError(
            "a permutation test needs copies that are like the predictor: use "
            "how='conditional' or 'permute'."
        )
    count = (99 if swap == "copies" else 999) if permutations is None else permutations
    check_number("permutations", count)
    asked = Asked.of(results, learners, "permutation_test", LEARNERS)
    names = asked.names(variables)
    compare = _swap_copies if swap == "copies" else _swap_trees
    statistic, others, n_rows = compare(asked, names, how, count)
    larger = int(np.sum(others >= statistic))
    return PermutationTest(
        variables=tuple(names),
        statistic=statistic,
        others=others,
        pvalue=(1 + larger) / (1 + count),
        how=how,
        swap=swap,
        n_rows=n_rows,
        n_learners=asked.n_learners,
    )


def _loss(asked: Asked, oob: OutOfBag) -> tuple[float, int]:
    """Mean loss over the rows that some learner has not seen, and their number."""
    kernel: Any = asked.task.kernel
    assert asked.recipe.y is not None
    losses = row_losses(oob.of(asked.recipe.y), oob.mean, kernel.n_classes)
    known = np.isfinite(losses)
    if not known.any():
        raise ValueError(
            "a permutation test needs rows that some learners have not seen; every "
            "learner has seen every row. Use a smaller `k`."
        )
    return float(losses[known].mean()), int(known.sum())


def _swap_copies(
    asked: Asked, names: list[str], how: How, count: int
) -> tuple[float, Floats, int]:
    """Put the fit's loss in order with the losses of fits to copies.

    The statistic of each is the mean loss of all of them less its own.
    """
    L, n_jobs = asked.n_learners, asked.n_jobs
    own, n_rows = _loss(asked, refitted_outside(asked.task, L, n_jobs))
    losses = []
    for copy in asked.copier().copies(names, how, count):
        task = on_design(asked.task, asked.coding.matrix(copy))
        losses.append(_loss(asked, refitted_outside(task, L, n_jobs))[0])
    centre = float(np.mean([own, *losses]))
    return centre - own, centre - np.array(losses), n_rows


def _swap_trees(
    asked: Asked, names: list[str], how: How, count: int
) -> tuple[float, Floats, int]:
    """Let learners of the fit and of one fit to a copy change places, pair by pair."""
    L, task = asked.n_learners, asked.task
    (copy,) = asked.copier().copies(names, how, 1)
    X = asked.coding.matrix(copy)
    some = task.oob_rows(len(X))
    rows = np.arange(len(X)) if some is None else some
    full, weights = asked.reader([asked.design_matrix]).outside(rows)
    other = on_design(task, X)
    again = Reader(other, grown(other, L, asked.n_jobs), (X,), asked.n_jobs)
    reduced = again.outside(rows)[0]
    times = weights.sum(axis=0)
    first = OutOfBag(full[:, :, 0].sum(axis=0), times, some)
    second = OutOfBag(reduced[:, :, 0].sum(axis=0), times, some)
    loss, n_rows = _loss(asked, first)
    statistic = _loss(asked, second)[0] - loss
    step = (reduced - full).reshape(L, -1)
    rng = stream(asked.results.seed, 2, Purpose.QUESTION)
    others = np.empty(count)
    for j in range(count):
        swapped = (rng.random(L) < 0.5).astype(np.float64)
        moved = (swapped @ step).reshape(first.total.shape)
        one = replace(first, total=first.total + moved)
        two = replace(second, total=second.total - moved)
        others[j] = _loss(asked, two)[0] - _loss(asked, one)[0]
    return statistic, others, n_rows
