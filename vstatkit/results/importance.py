"""Importance: each predictor's reduction in out-of-bag loss."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Bools, Floats, Ints
from vstatkit.ensemble.conditional_copies import Copier, How, check_how
from vstatkit.ensemble.loss_differences import (
    LossDifferences,
    compare_losses,
    target_values,
)
from vstatkit.ensemble.mean_loss_difference import average_differences
from vstatkit.ensemble.out_of_bag_by_learner import OutOfBagPredictor
from vstatkit.ensemble.regression_on_other_predictors import predict_leave_one_out
from vstatkit.inference.estimates import estimate
from vstatkit.inference.linear_tests import benjamini_hochberg, holm
from vstatkit.inference.population import (
    RowInfluence,
    population_estimates,
    row_influence,
)
from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.results.labels import write_table
from vstatkit.results.marginal_effects import training_weights
from vstatkit.results.model_description import (
    NUMBERS,
    OBSERVATIONS,
    Column,
    TabularModel,
)
from vstatkit.results.predictor_tests import PredictorQuestion, check_number
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.validation import check_alpha

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vstatkit.results.ensemble_results import EnsembleResults


# Predictors, and sets of predictors; None for all predictors one by one.
PredictorSets = str | Sequence[str | Sequence[str]] | None
LEARNERS = 500  # default number of learners
# Power of one minus the leverage by which rows are weighted in the test.
WEIGHT_POWER = 2

# Designs for which the influence of units through the learners is estimated. For other
# designs p-values use the rows alone, and there are no intervals.
THROUGH = ("iid", "balanced")


@pickled_plainly
@dataclass(frozen=True)
class Importance(TabularModel):
    """Each predictor's reduction in out-of-bag loss.

    Attributes
    ----------
    frame : DataFrame
        One row per predictor, or set of predictors: `importance`, the mean reduction in
        loss; its `std_error` over data sets, NaN if unknown; its `share` of the loss;
        the one-sided `p_value` of no reduction, with a standard error under the null;
        and the p-values adjusted for multiple tests, `holm` and `bh`. There are no
        p-values for `how="permute"`.
    loss : float
        Out-of-bag loss of the learners: mean squared error, of class probabilities for
        a categorical response.
    how : str
        Values that replaced each predictor, "conditional" or "permute".
    df : Series
        Degrees of freedom of the standard errors.
    n_rows : int
        Number of rows that were predicted out of bag.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> importance = vs.fit("y ~ x1 + x4", data, B=100, rng=1).importance()
    >>> list(importance.frame)
    ['importance', 'std_error', 'share', 'p_value', 'holm', 'bh']
    >>> (importance.conf_int()["lower"] > 0).to_dict()["x4"]
    True
    """

    frame: pd.DataFrame
    loss: float
    how: str
    df: pd.Series
    n_rows: int

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Compute intervals by Student's t; NaN for `how="permute"`.

        They cover the expected importance over data sets of this size, each with an
        ensemble of its own.
        """
        check_alpha(alpha)
        half = stats.t.isf(alpha / 2, self.df) * self.frame["std_error"]
        centre = self.frame["importance"]
        return pd.DataFrame({"lower": centre - half, "upper": centre + half})

    def plot(self, ax: "Axes | None" = None, *, alpha: float = 0.05) -> "Axes":
        """Draw the importances with their intervals, the largest on top."""
        from vstatkit.plots.estimates import draw_importance  # noqa: PLC0415

        return draw_importance(self, alpha, ax)

    def _column(self, alpha: float = 0.05) -> Column:
        """Describe the importances as a column.

        There is no t, because the test uses another standard error than the column.
        """
        names = {"importance": "estimate", "lower": "ci_lower", "upper": "ci_upper"}
        frame = pd.concat([self.frame, self.conf_int(alpha)], axis=1)
        frame = frame.rename(columns=names).reindex(columns=NUMBERS)
        tested = "p_value" in self.frame
        note = f"reduction in out-of-bag loss, how={self.how!r}; "
        note += "one-sided p-values of no reduction" if tested else "no tests"
        stats = {OBSERVATIONS: self.n_rows, "OOB loss": self.loss}
        frame = frame.set_axis([str(name) for name in frame.index])
        return Column("loss", "importance", frame, stats, note, own_test=tested)

    def __str__(self) -> str:
        return (
            f"Reduction in out-of-bag loss by each predictor (how={self.how!r}; loss "
            f"with all predictors: {self.loss:.4g}, {self.n_rows} rows)\n"
            f"{write_table(self.frame)}"
        )

    def __repr__(self) -> str:
        number = len(self.frame)
        detail = f"how={self.how!r}"
        if "holm" in self.frame:
            detail = f"{int((self.frame['holm'] < 0.05).sum())} with holm < 0.05"
        return f"<Importance: {number} predictor{'s'[: number != 1]}, {detail}>"

    def _repr_html_(self) -> str:
        return str(self.frame.to_html())


def importance(
    results: "EnsembleResults",
    variables: PredictorSets,
    *,
    how: How,
    copies: int,
    learners: int | None,
) -> Importance:
    """Compute `EnsembleResults.importance`."""
    check_how(how)
    check_number("copies", copies)
    question = PredictorQuestion.of(results, learners, "importance", LEARNERS)
    given = question.coding.variables if variables is None else variables
    listed = [given] if isinstance(given, str) else list(given)
    if not listed:
        raise ValueError("`variables` must have at least one predictor; got none.")
    order = list(question.coding.variables).index
    ordered = [sorted(question.names(names), key=order) for names in listed]
    sets = {", ".join(names): names for names in ordered}
    n, task = len(question.frame), question.recipe.task
    kernel: Any = task.kernel  # its design matrix is not in a protocol
    full = question.reader([np.asarray(kernel.X)])
    some = task.oob_rows(n)
    rows = np.arange(n) if some is None else some  # predicted out of bag
    unit_of_row = rows if task.unit_of_row is None else task.unit_of_row[rows]
    weights = training_weights(results)
    weights = np.ones(len(rows)) if weights is None else weights[rows]
    lines, losses = {}, None
    for label, names in sets.items():
        losses, leverage = _compare_losses(
            question, full, names, rows, how=how, copies=copies
        )
        if not np.isfinite(losses.base).any():
            raise ValueError(
                "importance needs out-of-bag rows, but every learner has seen every "
                "row. Use a smaller `k`."
            )
        lines[label] = _line(results, losses, weights, leverage, unit_of_row)
    assert losses is not None
    known = np.isfinite(losses.base)
    frame = pd.DataFrame.from_dict(lines, orient="index")
    df = frame.pop("df")
    if how == "permute":
        frame = frame.drop(columns="p_value")
    else:
        frame["holm"] = holm(frame["p_value"].to_numpy())
        frame["bh"] = benjamini_hochberg(frame["p_value"].to_numpy())
    frame.index.name = df.index.name = "predictor"
    loss = float(_shares(weights, known) @ losses.base[known])
    return Importance(frame, loss, how, df, int(known.sum()))


def _shares(weights: Floats, known: Bools) -> Floats:
    """Return the weights of known rows in a mean, which add up to one."""
    return np.asarray(weights[known] / weights[known].sum())


def _compare_losses(
    question: PredictorQuestion,
    full: OutOfBagPredictor,
    names: list[str],
    rows: Ints,
    *,
    how: How,
    copies: int,
) -> tuple[LossDifferences, Floats | None]:
    """Compare losses with and without copies; return leverages for the test too."""
    y = question.recipe.y
    assert y is not None
    task, n_jobs = question.recipe.task, question.recipe.n_jobs
    copier = Copier(question.frame, question.results.seed, task.unit_of_row, n_jobs)
    others = None if how == "permute" else copier.others(names)
    frames = copier.copies(names, how, copies, others)
    tables = [question.coding.matrix(frame) for frame in frames]
    kernel: Any = task.kernel
    if others is None:
        return compare_losses(full, tables, y, rows, kernel.n_classes), None
    # Predict the response, or each class, from the other predictors.
    key = zlib.crc32("\0".join(names).encode())
    rng = stream(question.results.seed, key, Purpose.QUESTION)
    targets = target_values(y, kernel.n_classes)
    predictions = [predict_leave_one_out(column, others, rng) for column in targets.T]
    expected = np.column_stack([prediction.mean for prediction in predictions])
    leverage = np.max([prediction.leverage for prediction in predictions], axis=0)
    saved = compare_losses(full, tables, y, rows, kernel.n_classes, expected=expected)
    return saved, leverage[rows]


def _line(
    results: "EnsembleResults",
    losses: LossDifferences,
    weights: Floats,
    leverage: Floats | None,
    unit_of_row: Ints,
) -> dict[str, float]:
    r"""Compute a line of the table: the mean reduction, its errors over data sets.

    Notes
    -----
    A unit has influence through the reductions of its own rows, and through the
    learners that saw it. Reductions are linear in the learners to the first order,
    with the values :math:`\bar d + L \sum_i w_i p_{bi}` for weights w that add up to
    one, so the standard error is that of an average over rows; see
    `population_estimates`.
    """
    design, through = results.design, results.design.name in THROUGH
    known = np.isfinite(losses.saved)
    shares = _shares(weights, known)
    saved = float(shares @ losses.saved[known])
    loss = float(shares @ losses.base[known])
    error = df = pvalue = np.nan
    if leverage is not None:
        counted = weights * (1 - leverage) ** WEIGHT_POWER
        pvalue = average_differences(
            losses.weighted(counted),
            design,
            unit_of_row,
            through=through,
            freedom=float(np.average(leverage, weights=counted)),
        ).pvalue
    if leverage is not None and through:
        reductions, parts = losses.saved[known], losses.parts[:, known]
        values = shares @ reductions + len(parts) * (parts @ shares)[:, None]
        rows = row_influence(reductions[:, None], shares, unit_of_row[known], design.n)
        first = estimate(design, values, results.variance)
        points = RowInfluence(rows, shared=True)
        spread = population_estimates(first, design, values, points, None)
        error, df = float(spread.bse[0]), float(spread.df[0])
        # Without a reduction the first order vanishes, and the second order counts.
        own = average_differences(
            losses.weighted(weights), design, unit_of_row, skewness=False
        )
        error = max(error, own.error)
    return {
        "importance": saved,
        "std_error": error,
        "share": saved / loss if loss > 0 else 0.0,
        "p_value": pvalue,
        "df": df,
    }
