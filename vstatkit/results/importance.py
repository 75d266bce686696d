"""What each predictor saves of the out-of-bag loss."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.copies import How, check_how
from vstatkit.ensemble.losses import Saved, mean_saved, saved_losses
from vstatkit.ensemble.refitted import Reader, grown, on_design
from vstatkit.inference.estimates import check_alpha
from vstatkit.inference.multiple import benjamini_hochberg, holm
from vstatkit.results.asked import Asked
from vstatkit.results.feature_tests import check_number
from vstatkit.results.tabular import Tabular

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vstatkit.results.ensemble_results import EnsembleResults

LEARNERS = 500
"""Learners that are asked, unless told otherwise."""

THROUGH = ("iid", "balanced")
"""Designs in which what units do through learners is seen in those without them.

Of others the standard errors are those of the rows by themselves.
"""


@dataclass(frozen=True)
class Importance(Tabular):
    """What each predictor saves of the out-of-bag loss.

    Attributes
    ----------
    frame : DataFrame
        One row per predictor: `importance`, the mean loss that it saves; `std_error`;
        `share` of the loss that there is; `pvalue` of the null that it saves nothing
        (one-sided); `holm` and `bh`, the same adjusted for the number of predictors.
    loss : float
        Out-of-bag loss of the learners that were asked: mean squared error, of classes
        that of their probabilities.
    how : str
        What took the place of each predictor.
    df : int
        Degrees of freedom of the standard errors.
    n_rows : int
        Rows that were predicted out of bag.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> found = vs.fit("y ~ x1 + x4", data, B=100, rng=1).importance()
    >>> list(found.frame)
    ['importance', 'std_error', 'share', 'pvalue', 'holm', 'bh']
    >>> (found.conf_int()["lower"] > 0).to_dict()["x4"]
    True
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
            f"Out-of-bag loss that each predictor saves (how={self.how!r}; with all of "
            f"them: {self.loss:.4g}, {self.n_rows} rows)\n{table}"
        )

    def __repr__(self) -> str:
        real = int((self.frame["holm"] < 0.05).sum())
        return f"<Importance: {len(self.frame)} predictors, {real} with holm < 0.05>"

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
    asked = Asked.of(results, learners, "importance", LEARNERS)
    names = asked.names(asked.coding.variables if variables is None else variables)
    full = asked.reader([asked.design_matrix])
    rows, found = {}, None
    for name in names:
        found = _saved(asked, full, _tables(asked, name, how, copies), how)
        if not np.isfinite(found.base).any():
            raise ValueError(
                "importance needs rows that some learners have not seen; every learner "
                "has seen every row. Use a smaller `k`."
            )
        rows[name] = _row(asked, found)
    assert found is not None
    base = found.base[np.isfinite(found.base)]
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame["holm"] = holm(frame["pvalue"].to_numpy())
    frame["bh"] = benjamini_hochberg(frame["pvalue"].to_numpy())
    frame.index.name = "predictor"
    n_units = len(np.unique(_units(asked)[np.isfinite(found.base)]))
    return Importance(frame, float(base.mean()), how, n_units - 1, len(base))


def _rows(asked: Asked) -> Ints:
    """Choose the rows that are predicted out of bag."""
    n = len(asked.frame)
    some = asked.task.oob_rows(n)
    return np.arange(n) if some is None else some


def _units(asked: Asked) -> Ints:
    """Give the unit of every row that is predicted."""
    rows, members = _rows(asked), asked.task.rows
    return rows if members is None else members[rows]


def _tables(asked: Asked, name: str, how: How, copies: int) -> list[Floats]:
    """Code the data with copies of one predictor."""
    made = asked.copier().copies([name], how, copies)
    return [asked.coding.matrix(one) for one in made]


def _saved(asked: Asked, full: Reader, tables: list[Floats], how: How) -> Saved:
    """Compare losses with those that copies of one predictor leave."""
    if how == "drop":
        task = on_design(asked.task, tables[0])
        learners = grown(task, asked.n_learners, asked.n_jobs)
        reduced = Reader(task, learners, tuple(tables), asked.n_jobs)
    else:
        reduced = replace(full, tables=tuple(tables))
    kernel: Any = asked.task.kernel
    assert asked.recipe.y is not None
    return saved_losses(full, reduced, asked.recipe.y, _rows(asked), kernel.n_classes)


def _row(asked: Asked, found: Saved) -> dict[str, float]:
    design = asked.results.design
    through = design.name in THROUGH
    one = mean_saved(found, design, _units(asked), through=through)
    loss = float(np.nanmean(found.base))
    return {
        "importance": one.mean,
        "std_error": one.error,
        "share": one.mean / loss if loss > 0 else 0.0,
        "pvalue": one.pvalue,
    }
