"""Tests of predictors: interactions and additivity, and what such tests need."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vstatkit._typing import Floats, Labels
from vstatkit.ensemble.conditional_copies import Copier
from vstatkit.ensemble.evaluation import Task
from vstatkit.ensemble.refit import OutOfBagPredictor, refit_learners, refit_values
from vstatkit.formula.coding import Coding
from vstatkit.formula.input_checks import suggest_name
from vstatkit.inference.pooled_test import PooledTest, pooled_test
from vstatkit.kernels.base import BatchKernel
from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.results.continuation import Continuation
from vstatkit.results.estimate_table import (
    ContrastResults,
    derive_table,
    estimates_frame,
)
from vstatkit.sampling.streams import Purpose, stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vstatkit.results.ensemble_results import EnsembleResults


@pickled_plainly
@dataclass(frozen=True, repr=False)
class JointTest:
    """A joint test that differences of predictions are zero.

    Attributes
    ----------
    question : str
        Short name of the test.
    null : str
        The null hypothesis.
    test : PooledTest
        The joint test.
    differences : ContrastResults
        The differences, with standard errors, as `params`, `bse`, `conf_int()`.
    points : DataFrame
        Points of the differences, one row each.
    details : dict
        Further columns of the table.
    """

    question: str
    null: str
    test: PooledTest
    differences: ContrastResults
    points: pd.DataFrame
    details: dict[str, Any]

    @property
    def statistic(self) -> float:
        """Sum of squared differences over the sum of their variances."""
        return self.test.statistic

    @property
    def df_num(self) -> float:
        """Degrees of freedom of the differences."""
        return self.test.df_num

    @property
    def df_denom(self) -> float:
        """Degrees of freedom of their variances."""
        return self.test.df_denom

    @property
    def pvalue(self) -> float:
        """P-value of the joint test."""
        return self.test.pvalue

    @property
    def frame(self) -> pd.DataFrame:
        """The test in one row, for `pandas.concat`."""
        row = {
            "statistic": self.statistic,
            "df_num": self.df_num,
            "df_denom": self.df_denom,
            "p_value": self.pvalue,
            **self.details,
            "points": len(self.points),
            "learners": self.differences.B,
        }
        return pd.DataFrame([row], index=[self.question])

    def table(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate the differences one by one, with standard errors and intervals."""
        differences = self.differences
        return estimates_frame(differences.estimates, differences.labels, alpha)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the differences with their intervals."""
        from vstatkit.plots.tests import draw_differences  # noqa: PLC0415

        return draw_differences(self, ax)

    def __str__(self) -> str:
        return f"{self.null}\n{write_table(self.frame)}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.question}, p = {self.pvalue:.4g}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.null)}</p>{self.frame.to_html()}"


def write_table(frame: pd.DataFrame) -> str:
    """Write a table with four digits."""
    return frame.to_string(float_format=lambda number: f"{number:.4g}")


class InteractionTest(JointTest):
    """A test that predictors act additively.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> res = vs.fit("y ~ x1 + x4", data, B=100, rng=1)
    >>> list(res.interaction_test("x1", "x4", grid=2).points)[:4]
    ['first', 'second', 'from_first', 'to_first']
    """


def training_predictors(results: "EnsembleResults") -> pd.DataFrame | None:
    """Return the predictors of the training rows, if available."""
    recipe, predictor = results.recipe, results.predictor
    if recipe is None or recipe.data is None:
        return None
    if predictor is None or predictor.coding is None:
        return None
    return recipe.data[list(predictor.coding.variables)]


USUAL_LEARNERS = 1000  # default number of learners


@dataclass(frozen=True)
class PredictorQuestion:
    """A fit with the training data and learners that tests of predictors need."""

    results: "EnsembleResults"  # the fit
    recipe: Continuation  # its training data and settings
    coding: Coding  # coding of the design matrix
    frame: pd.DataFrame  # the predictors before coding
    n_learners: int  # number of learners to use

    @classmethod
    def of(
        cls,
        results: "EnsembleResults",
        learners: int | None,
        what: str,
        usual: int = USUAL_LEARNERS,
    ) -> "PredictorQuestion":
        """Collect what a test needs, or raise an error if something is missing."""
        recipe, coding = results.recipe, None
        if results.predictor is not None:
            coding = results.predictor.coding
        reason = None
        if recipe is None:
            reason = (
                "the training data, which these results do not have: they were loaded "
                "from a file or a pickle, or their learners were fitted elsewhere. Fit "
                f"again with the same data and rng={results.seed}"
            )
        elif coding is None:
            reason = (
                "a formula and learners that predict; the kernel "
                f"{results.info.kernel!r} is a statistic"
            )
        elif recipe.data is None:
            reason = (
                "the predictors in memory; these were read in batches. Fit to a data "
                "frame of some of the rows"
            )
        frame = training_predictors(results)
        if frame is None or recipe is None or coding is None:
            raise ValueError(f"{what} needs {reason}.")
        used = _count(results, learners, usual)
        return cls(results, recipe, coding, frame, used)

    @property
    def task(self) -> Task:
        """The task of the fit."""
        return self.recipe.task

    @property
    def n_jobs(self) -> int | None:
        """Workers."""
        return self.recipe.n_jobs

    def copier(self) -> Copier:
        """Return an object that makes copies of predictors."""
        return Copier(self.frame, self.results.seed, self.task.unit_of_row, self.n_jobs)

    def names(self, given: str | Sequence[str]) -> list[str]:
        """Check names of predictors."""
        names = [given] if isinstance(given, str) else list(given)
        if not names:
            raise ValueError("`variables` must have at least one predictor; got none.")
        for name in names:
            if name not in self.coding.variables:
                raise ValueError(
                    f"{name!r} is not a predictor of the formula"
                    f"{suggest_name(name, self.coding.variables)} Its predictors are "
                    f"{', '.join(self.coding.variables)}."
                )
        return list(dict.fromkeys(names))

    def values(self, at: Floats) -> Floats:
        """Predict at coded rows with every learner."""
        predictor = self.results.predictor
        assert predictor is not None
        L = self.n_learners
        if len(predictor.learners) < L:
            return refit_values(self.task, at, L, self.n_jobs)
        own = replace(predictor, learners=predictor.learners[:L], centre=None)
        return own.values(at)

    @property
    def design_matrix(self) -> Floats:
        """The predictors, coded."""
        return np.asarray(getattr(self.task.kernel, "X"))  # noqa: B009 not in a protocol

    def reader(self, tables: Sequence[Floats]) -> OutOfBagPredictor:
        """Return an object that predicts the rows of tables with the learners."""
        predictor, L = self.results.predictor, self.n_learners
        assert predictor is not None
        learners = predictor.learners[:L]
        if len(learners) < L:
            learners = refit_learners(self.task, L, self.n_jobs)
        return OutOfBagPredictor(self.task, learners, tuple(tables), self.n_jobs)

    def labels(self, index: Labels) -> Labels:
        """Label predictions: the row, or the row and the class."""
        predictor = self.results.predictor
        assert predictor is not None
        return predictor.labels(index)


def _count(results: "EnsembleResults", learners: int | None, usual: int) -> int:
    """Choose the number of learners.

    Missing learners of an iid design are grown if the kernel is fast; other designs use
    the learners of the fit.
    """
    if learners is not None and not (
        isinstance(learners, int | np.integer) and learners >= 2
    ):
        raise ValueError(
            f"`learners` must be a whole number of at least 2; got {learners!r}."
        )
    if results.design.name != "iid":
        return results.B
    if learners is not None:
        return int(learners)
    assert results.recipe is not None
    quick = isinstance(results.recipe.task.kernel, BatchKernel)
    return usual if quick else min(results.B, usual)


def check_number(name: str, number: Any) -> None:
    """Raise an error unless a number is whole and at least 1."""
    if not isinstance(number, int | np.integer) or number < 1:
        raise ValueError(
            f"`{name}` must be a whole number of at least 1; got {number!r}."
        )


def difference_table(
    results: "EnsembleResults", values: Floats, labels: Labels, title: str
) -> ContrastResults:
    """Make a table of differences of predictions, with values of shape (L, m)."""
    limit, support, tails = results.limit, results.support, results.tails
    return derive_table(
        results,
        ContrastResults,
        values=values,
        labels=labels,
        limit=None if limit is None else 2 * float(np.max(limit)),
        support=None if support is None else support.of_differences,
        tails=None if tails is None else tails.of_differences,
        null=np.zeros(values.shape[1]),
        info=results.info.derive(title),
        points=None,
    )


def interaction_test(
    results: "EnsembleResults",
    first: str,
    second: str,
    *,
    grid: int,
    rows: int,
    learners: int | None,
) -> InteractionTest:
    """Compute `EnsembleResults.interaction_test`."""
    question = PredictorQuestion.of(results, learners, "interaction_test")
    if first == second:
        raise ValueError(
            f"an interaction needs two different predictors; got {first!r} twice."
        )
    question.names([first, second])
    null = f"Null: {first} and {second} are additive in the expectation of the ensemble"
    texts = f"{first}:{second}", null
    return _test_pairs(question, [(first, second)], texts, grid=grid, rows=rows)


def additivity_test(
    results: "EnsembleResults",
    variables: Sequence[str] | None,
    *,
    grid: int,
    rows: int,
    learners: int | None,
) -> InteractionTest:
    """Compute `EnsembleResults.additivity_test`."""
    question = PredictorQuestion.of(results, learners, "additivity_test")
    names = question.names(
        question.coding.variables if variables is None else variables
    )
    if len(names) < 2:
        raise ValueError("additivity_test needs at least two predictors; got one.")
    null = f"Null: {', '.join(names)} are additive in the expectation of the ensemble"
    pairs = list(combinations(names, 2))
    return _test_pairs(question, pairs, ("all pairs", null), grid=grid, rows=rows)


def _test_pairs(
    question: PredictorQuestion,
    pairs: list[tuple[str, str]],
    texts: tuple[str, str],
    *,
    grid: int,
    rows: int,
) -> InteractionTest:
    check_number("rows", rows)
    if not isinstance(grid, int | np.integer) or grid < 2:
        raise ValueError(f"`grid` must be a whole number of at least 2; got {grid!r}.")
    rng, n = stream(question.results.seed, 3, Purpose.QUESTION), len(question.frame)
    drawn = np.sort(rng.choice(n, min(rows, n), replace=False))
    background = question.frame.iloc[drawn]
    contrasts = [_contrasts(question, pair, background, grid) for pair in pairs]
    values = np.concatenate([values for values, _ in contrasts], axis=1)
    points = pd.concat([where for _, where in contrasts], ignore_index=True)
    results = question.results
    labels = question.labels(pd.Index(_contrast_names(points)))
    return InteractionTest(
        question=texts[0],
        null=texts[1],
        test=pooled_test(results.design, values, results.variance, results.orders),
        differences=difference_table(results, values, labels, "Interaction contrasts"),
        points=points,
        details={"grid": grid, "rows": len(background)},
    )


def _contrasts(
    question: PredictorQuestion,
    pair: tuple[str, str],
    background: pd.DataFrame,
    grid: int,
) -> tuple[Floats, pd.DataFrame]:
    """Compute the contrasts of a pair by every learner, and their points.

    With values `u_0, u_1, ...` of one predictor and `v_0, v_1, ...` of the other they
    are `f(u_i, v_j) - f(u_i, v_0) - f(u_0, v_j) + f(u_0, v_0)`.
    """
    u, v = (_settings(question, name, grid) for name in pair)
    means = np.stack(
        [_means(question, pair, value, v, background) for value in u], axis=1
    )
    away = means - means[:, :1]
    away = away - away[:, :, :1]
    inner = away[:, 1:, 1:]
    where = pd.DataFrame(
        [
            {"first": pair[0], "second": pair[1], "from_first": u[0], "to_first": i}
            | {"from_second": v[0], "to_second": j}
            for i in u[1:]
            for j in v[1:]
        ]
    )
    return inner.reshape(len(inner), -1), where


def _means(
    question: PredictorQuestion,
    pair: tuple[str, str],
    first_value: Any,
    others: list[Any],
    background: pd.DataFrame,
) -> Floats:
    """Average predictions over the background, shape (L, values of the second, c)."""
    frames = [
        background.assign(
            **{
                name: pd.Series([value] * len(background), background.index).astype(
                    background[name].dtype
                )
                for name, value in zip(pair, (first_value, other), strict=True)
            }
        )
        for other in others
    ]
    rows = question.coding.matrix(pd.concat(frames, ignore_index=True))
    values = question.values(rows)
    shaped = values.reshape(len(values), len(others), len(background), -1)
    return np.asarray(shaped.mean(axis=2))


def _settings(question: PredictorQuestion, name: str, grid: int) -> list[Any]:
    """Choose quantiles of a numeric predictor, frequent levels of a factor."""
    column = question.frame[name].dropna()
    if name in question.coding.categorical:
        chosen = list(column.value_counts().index[:grid])
    else:
        chosen = list(grid_values(column.to_numpy(), grid))
    if len(chosen) < 2:
        raise ValueError(f"{name!r} must vary for a test of interactions; it does not.")
    return chosen


def grid_values(column: NDArray[Any], number: int) -> NDArray[Any]:
    """Choose values of a column: all if they are few, otherwise quantiles.

    If quantiles coincide, because many rows have the same value, quantiles of the other
    rows are added.

    Examples
    --------
    >>> grid_values(np.array([0, 0, 0, 0, 0, 0, 0, 1]), 3).tolist()
    [0, 1]
    >>> grid_values(np.array([0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]), 3).tolist()
    [0, 2, 3]
    """
    values = np.unique(column)
    if len(values) <= number:
        return values
    chosen = values[:0]
    while len(chosen) < number:
        rest = np.sort(column[~np.isin(column, chosen)])
        missing = number - len(chosen)
        shares = (np.arange(missing) + 0.5) / missing
        nearest = np.round(shares * (len(rest) - 1)).astype(int)
        chosen = np.union1d(chosen, rest[nearest])
    return chosen


def _contrast_names(points: pd.DataFrame) -> list[str]:
    """Name contrasts by the second value of each predictor."""
    columns = points[["first", "to_first", "second", "to_second"]]
    return [f"{a}={_short(u)}, {b}={_short(v)}" for a, u, b, v in columns.to_numpy()]


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
