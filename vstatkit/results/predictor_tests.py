"""Tests of predictors: interactions and additivity, and what such tests need."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vstatkit._typing import Floats
from vstatkit.ensemble.marginal_averages import Sample
from vstatkit.ensemble.out_of_bag_by_learner import OutOfBagPredictor
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.regrown_learners import refit_learners, refit_values
from vstatkit.formula.new_data_coding import Coding
from vstatkit.inference.pooled_test import PooledTest, pooled_test
from vstatkit.kernels.base import BatchKernel
from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.results.continuation import Continuation
from vstatkit.results.estimate_table import (
    ContrastResults,
    difference_table,
    estimates_frame,
)
from vstatkit.results.labels import short_text, write_table
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.text import suggest_name

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
        from vstatkit.plots.estimates import draw_differences  # noqa: PLC0415

        return draw_differences(self, ax)

    def __str__(self) -> str:
        return f"{self.null}\n{write_table(self.frame)}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.question}, p = {self.pvalue:.4g}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.null)}</p>{self.frame.to_html()}"


class InteractionTest(JointTest):
    """A test that predictors act additively."""


def training_predictors(results: "EnsembleResults") -> pd.DataFrame | None:
    """Return the predictors of the training rows, if available."""
    data = None if results.recipe is None else results.recipe.data
    coding = None if results.predictor is None else results.predictor.coding
    return None if data is None or coding is None else data[list(coding.variables)]


@dataclass(frozen=True)
class PredictorQuestion:
    """A fit with the training data and learners that tests of predictors need."""

    results: "EnsembleResults"  # the fit
    recipe: Continuation  # its training data and settings
    predictor: Predictor  # its learners
    coding: Coding  # coding of the design matrix
    frame: pd.DataFrame  # the predictors before coding
    n_learners: int  # number of learners to use

    @classmethod
    def of(
        cls,
        results: "EnsembleResults",
        learners: int | None,
        what: str,
        usual: int = 1000,
    ) -> "PredictorQuestion":
        """Collect what a test needs, or raise an error if something is missing.

        Without `learners`, `usual` ones are used, or those of the fit. Missing learners
        of an iid design are grown if the kernel is fast; other designs use the learners
        of the fit.
        """
        recipe, predictor = results.recipe, results.predictor
        coding = None if predictor is None else predictor.coding
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
        if frame is None or recipe is None or predictor is None or coding is None:
            raise ValueError(f"{what} needs {reason}.")
        if learners is not None:
            check_number("learners", learners, least=2)
        if results.design.name != "iid":
            used = results.B
        elif learners is not None:
            used = int(learners)
        else:
            quick = isinstance(recipe.task.kernel, BatchKernel)
            used = usual if quick else min(results.B, usual)
        return cls(results, recipe, predictor, coding, frame, used)

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
        recipe, L = self.recipe, self.n_learners
        learners = self.predictor.learners[:L]
        if len(learners) < L:
            return refit_values(recipe.task, at, L, recipe.n_jobs)
        return replace(self.predictor, learners=learners, centre=None).values(at)

    def reader(self, tables: Sequence[Floats]) -> OutOfBagPredictor:
        """Return an object that predicts the rows of tables with the learners."""
        recipe, L = self.recipe, self.n_learners
        learners = self.predictor.learners[:L]
        if len(learners) < L:
            learners = refit_learners(recipe.task, L, recipe.n_jobs)
        return OutOfBagPredictor(recipe.task, learners, tuple(tables), recipe.n_jobs)


def check_number(name: str, number: Any, *, least: int = 1) -> None:
    """Raise an error unless a number is whole, and not below the least one."""
    if not isinstance(number, int | np.integer) or number < least:
        raise ValueError(
            f"`{name}` must be a whole number of at least {least}; got {number!r}."
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
    pairs, predictors = [(first, second)], f"{first} and {second}"
    name = f"{first}:{second}"
    return _test_pairs(question, pairs, name, predictors, grid=grid, rows=rows)


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
    pairs, predictors = list(combinations(names, 2)), ", ".join(names)
    return _test_pairs(question, pairs, "all pairs", predictors, grid=grid, rows=rows)


def _test_pairs(
    question: PredictorQuestion,
    pairs: list[tuple[str, str]],
    name: str,
    predictors: str,
    *,
    grid: int,
    rows: int,
) -> InteractionTest:
    check_number("rows", rows)
    check_number("grid", grid, least=2)
    results, n = question.results, len(question.frame)
    rng = stream(results.seed, 3, Purpose.QUESTION)
    places = np.sort(rng.choice(n, min(rows, n), replace=False))
    background = question.frame.iloc[places]
    contrasts = [_contrasts(question, pair, background, grid) for pair in pairs]
    values = np.concatenate([values for values, _ in contrasts], axis=1)
    points = pd.concat([where for _, where in contrasts], ignore_index=True)
    # Contrasts are named by the second value of each predictor.
    ends = points[["first", "to_first", "second", "to_second"]].to_numpy()
    names = [f"{a}={short_text(u)}, {b}={short_text(v)}" for a, u, b, v in ends]
    labels = question.predictor.labels(pd.Index(names))
    return InteractionTest(
        question=name,
        null=f"Null: {predictors} are additive in the expectation of the ensemble",
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
    first, second = pair
    sample = Sample(background, None, len(background), question.coding.variables)
    means = []  # over the background, each of shape (L, values of the second, c)
    for start in u:
        frames = [sample.at({first: start, second: end}) for end in v]
        rows = pd.concat(frames, ignore_index=True)
        values = question.values(question.coding.matrix(rows))
        shaped = values.reshape(len(values), len(v), len(background), -1)
        means.append(shaped.mean(axis=2))
    away = np.stack(means, axis=1)
    away = away - away[:, :1]
    away = away - away[:, :, :1]
    columns = ["first", "second", "from_first", "to_first", "from_second", "to_second"]
    places = [(*pair, u[0], i, v[0], j) for i in u[1:] for j in v[1:]]
    points = pd.DataFrame(places, columns=columns)
    return away[:, 1:, 1:].reshape(len(away), -1), points


def _settings(question: PredictorQuestion, name: str, grid: int) -> list[Any]:
    """Choose quantiles of a numeric predictor, frequent levels of a factor."""
    column = question.frame[name].dropna()
    if name in question.coding.categorical:
        values = list(column.value_counts().index[:grid])
    else:
        values = list(grid_values(column.to_numpy(), grid))
    if len(values) < 2:
        raise ValueError(f"{name!r} must vary for a test of interactions; it does not.")
    return values


def grid_values(column: NDArray[Any], number: int) -> NDArray[Any]:
    """Choose values of a column: all if they are few, otherwise quantiles.

    If quantiles coincide, because many rows have the same value, quantiles of the other
    rows are added.

    Examples
    --------
    >>> grid_values(np.array([0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]), 3).tolist()
    [0, 2, 3]
    """
    values = np.unique(column)
    if len(values) <= number:
        return values
    grid = values[:0]
    while len(grid) < number:
        rest = np.sort(column[~np.isin(column, grid)])
        missing = number - len(grid)
        shares = (np.arange(missing) + 0.5) / missing
        nearest = np.round(shares * (len(rest) - 1)).astype(int)
        grid = np.union1d(grid, rest[nearest])
    return grid
