"""What each predictor saves of the out-of-bag loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.ensemble.copies import How, check_how
from vstatkit.ensemble.losses import mean_and_error, row_losses
from vstatkit.ensemble.refitted import on_design, outside, refitted_outside
from vstatkit.inference.estimates import check_alpha
from vstatkit.inference.multiple import benjamini_hochberg, holm
from vstatkit.kernels.evaluation import OutOfBag
from vstatkit.results.asked import Asked
from vstatkit.results.feature_tests import check_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vstatkit.results.ensemble_results import EnsembleResults

COPIES = 5
"""Copies of a predictor that losses are averaged over."""


@dataclass(frozen=True)
class Importance:
    """What each predictor saves of the out-of-bag loss.

    Attributes
    ----------
    frame : DataFrame
        One row per predictor: `importance`, the mean loss that it saves; `std_error`;
        `share` of the loss that there is; `pvalue` of the null that it saves nothing
        (one-sided); `holm` and `bh`, the same adjusted for the number of predictors.
    loss : float
        Out-of-bag loss of the fit: mean squared error, of classes that of their
        probabilities.
    how : str
        What took the place of each predictor.
    df : int
        Degrees of freedom of the standard errors.
    n_rows : int
        Rows that were predicted out of bag.
    """

    frame: pd.DataFrame
    loss: float
    how: str
    df: int
    n_rows: int

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals of the importances, by Student's t."""
        check_alpha(alpha)
        half = stats.t.isf(alpha / 2, self.df) * self.frame["std_error"]
        centre = self.frame["importance"]
        return pd.DataFrame({"lower": centre - half, "upper": centre + half})

    def plot(self, ax: "Axes | None" = None, *, alpha: float = 0.05) -> "Axes":
        """Draw the importances with their intervals, the largest on top."""
        from vstatkit.results.answer_plots import draw_importance  # noqa: PLC0415

        return draw_importance(self, alpha, ax)

    def __str__(self) -> str:
        table = self.frame.to_string(float_format=lambda number: f"{number:.4g}")
        return (
            f"Out-of-bag loss that each predictor saves (how={self.how!r}; the fit's "
            f"own: {self.loss:.4g}, {self.n_rows} rows)\n{table}"
        )

    def _repr_html_(self) -> str:
        return str(self.frame.to_html())


def importance(
    results: "EnsembleResults",
    variables: Sequence[str] | None,
    *,
    how: How,
    copies: int,
    learners: int | None,
) -> Importance:
    """Compare losses; see `Asking.importance`."""
    check_how(how)
    check_number("copies", copies)
    asked = Asked.of(results, learners, "importance")
    names = asked.names(asked.coding.variables if variables is None else variables)
    own = _own(asked)
    base = _losses(asked, own)
    known = np.isfinite(base)
    if not known.any():
        raise ValueError(
            "importance needs rows that some learners have not seen; every learner "
            "has seen every row. Use a smaller `k`."
        )
    members = asked.task.rows
    units = None if members is None else own.of(members)[known]
    rows, df = {}, 0
    for name in names:
        saved = (_copied(asked, name, how, copies) - base)[known]
        mean, error, df, pvalue = mean_and_error(saved, units)
        share = mean / base[known].mean() if base[known].any() else 0.0
        rows[name] = {
            "importance": mean,
            "std_error": error,
            "share": share,
            "pvalue": pvalue,
        }
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame["holm"] = holm(frame["pvalue"].to_numpy())
    frame["bh"] = benjamini_hochberg(frame["pvalue"].to_numpy())
    frame.index.name = "predictor"
    return Importance(frame, float(base[known].mean()), how, df, int(known.sum()))


def _learners(asked: Asked) -> list[Any]:
    predictor = asked.results.predictor
    assert predictor is not None
    if len(predictor.learners) < asked.n_learners:
        raise ValueError(
            f"of {asked.n_learners:,} learners only {len(predictor.learners):,} were "
            "kept. Fit with keep_learners=True, ask for fewer `learners`, or use "
            "how='drop', which fits them again."
        )
    return predictor.learners[: asked.n_learners]


def _own(asked: Asked) -> OutOfBag:
    """Predict every row by the learners that have not seen it."""
    predictor, kernel = asked.results.predictor, asked.task.kernel
    assert predictor is not None
    if len(predictor.learners) < asked.n_learners:
        return refitted_outside(asked.task, asked.n_learners, asked.n_jobs)
    X = getattr(kernel, "X")  # noqa: B009 kernels that were fitted have it
    return outside(asked.task, _learners(asked), [X], asked.n_jobs)[0]


def _losses(asked: Asked, oob: OutOfBag) -> Floats:
    kernel: Any = asked.task.kernel
    y = asked.recipe.y
    assert y is not None
    return row_losses(oob.of(y), oob.mean, kernel.n_classes)


def _copied(asked: Asked, name: str, how: How, copies: int) -> Floats:
    """Losses with copies of one predictor, averaged over the copies."""
    made = asked.copier().copies([name], how, copies)
    tables = [asked.coding.matrix(one) for one in made]
    if how == "drop":
        task = on_design(asked.task, tables[0])
        found = [refitted_outside(task, asked.n_learners, asked.n_jobs)]
    else:
        found = outside(asked.task, _learners(asked), tables, asked.n_jobs)
    return np.asarray(np.mean([_losses(asked, one) for one in found], axis=0))
