"""Comparison of two fits on the same subsamples."""

from dataclasses import replace

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats
from vstatkit.ensemble.prediction import shift_mean
from vstatkit.ensemble.regrown_learners import refit_values
from vstatkit.formula.data_frames import as_frame
from vstatkit.inference.pooled_test import pooled_test
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.estimate_table import difference_table
from vstatkit.results.labels import write_table
from vstatkit.results.prediction_results import predictor_of
from vstatkit.results.predictor_tests import JointTest, training_predictors
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.variance.registry import ESTIMATORS

POINTS = 20  # default number of rows at which fits are compared


class FitComparison(JointTest):
    """Differences of two fits, and a joint test that they predict the same."""

    def __str__(self) -> str:
        shown = self.table()
        if len(shown) > 20:
            shown = pd.concat([shown.head(10), shown.tail(10)])
        columns = ["estimate", "std_error", "p_value", "ci_lower", "ci_upper"]
        return f"{super().__str__()}\n\n{write_table(shown[columns])}"


def compare(
    a: EnsembleResults, b: EnsembleResults, at: DataLike | None = None
) -> FitComparison:
    """Compare the predictions of two fits to the same data.

    Parameters
    ----------
    a, b : EnsembleResults
        Fits to the same rows and the same response, such as a forest and a regression,
        or two formulas. They should have the same `k`, `replace`, `design` and `rng`.
        Otherwise `b` is refitted on the subsamples of `a`, which requires its training
        data.
    at : DataFrame or dict of columns, optional
        Points to compare at; by default 20 rows of the data, drawn by the seed.

    Returns
    -------
    FitComparison
        Prints the differences `a - b` with standard errors, and a joint test that they
        are zero; `frame` has the test, `table()` the differences, and `plot()` draws
        them.

    Notes
    -----
    On the same subsamples, the difference of the two learners' predictions is a kernel,
    so its standard error comes from the learners as that of a prediction does, and
    common variation cancels. The variance estimator is that of `a`, or that of `b` if
    only `b` includes higher orders; the correction for higher orders is the one of its
    predictions. For a fit with `target="truth"`, whose estimates come from a stacked
    ensemble, the learners of the standard errors are used, shifted to these estimates.

    References
    ----------
    Mentch and Hooker (2016), Quantifying uncertainty in random forests via confidence
    intervals and hypothesis tests, JMLR 17(26).

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> forest = vs.fit("y ~ x1 + x4", data, B=200, rng=1)
    >>> line = vs.fit("y ~ x1 + x4", data, kernel="ols", B=200, rng=1)
    >>> len(vs.compare(forest, line).table())
    20
    """
    _check_comparable(a, b)
    points = _draw_points(a, b) if at is None else as_frame(at)
    values_b, refitted = _second_values(a, b, points)
    values = _values(a, points, len(values_b)) - values_b
    beyond = [ESTIMATORS[results.variance].beyond for results in (a, b)]
    lead = replace(b if beyond == [False, True] else a, design=a.design)
    labels = predictor_of(a).labels(points.index)
    names = zip(_identity(a), _identity(b), strict=True)
    different = (pair for pair in names if pair[0] != pair[1])
    name_a, name_b = next(different, ("the first fit", "the second fit"))
    return FitComparison(
        question=f"{name_a} - {name_b}",
        null=f"Null: {name_a} and {name_b} predict the same {a.info.response}",
        test=pooled_test(a.design, values, lead.variance, lead.orders),
        differences=difference_table(lead, values, labels, f"{name_a} minus {name_b}"),
        points=points,
        details={"refitted": refitted},
    )


def _identity(results: EnsembleResults) -> tuple[str, str, str]:
    """List kernel, formula and target; fits are named by their first difference."""
    aim = results.info.aim
    target = "truth" if aim is not None and aim.truth else "mean"
    return results.info.kernel, str(results.info.formula), f"target={target!r}"


def _check_comparable(a: EnsembleResults, b: EnsembleResults) -> None:
    """Raise an error for fits of different responses, or to different rows."""
    for results, name in ((a, "first"), (b, "second")):
        if not isinstance(results, EnsembleResults):
            raise TypeError(
                f"the {name} argument must be results of `fit`; got "
                f"{type(results).__name__}."
            )
        predictor_of(results)
    if a.info.response != b.info.response:
        raise ValueError(
            "fits to compare must have the same response; these have "
            f"{a.info.response!r} and {b.info.response!r}."
        )
    if predictor_of(a).classes != predictor_of(b).classes:
        raise ValueError("fits to compare must have the same classes of the response.")
    if a.design.n != b.design.n or not a.units.equals(b.units):
        raise ValueError(
            "fits to compare must use the same rows (or clusters), in the same order; "
            f"these use {a.design.n} and {b.design.n}. If one of them dropped rows "
            "with missing values, drop these from the data first."
        )


def _draw_points(a: EnsembleResults, b: EnsembleResults) -> pd.DataFrame:
    """Draw rows of the data, with the predictors of both fits."""
    first, second = training_predictors(a), training_predictors(b)
    if first is None or second is None:
        raise ValueError(
            "without `at`, fits are compared at rows of their training data, which "
            "these results do not have. Give points as `at`."
        )
    new = [name for name in second.columns if name not in first.columns]
    joined = first.assign(**{name: second[name].array for name in new})
    rng = stream(a.seed, 1, Purpose.QUESTION)
    rows = rng.choice(len(joined), min(POINTS, len(joined)), replace=False)
    return joined.iloc[np.sort(rows)]


def _values(results: EnsembleResults, points: pd.DataFrame, L: int) -> Floats:
    predictor = predictor_of(results)
    X = predictor.rows(points)[0]
    return replace(predictor, learners=predictor.learners[:L]).values(X)


def _second_values(
    a: EnsembleResults, b: EnsembleResults, points: pd.DataFrame
) -> tuple[Floats, bool]:
    """Predict with the second fit, refitted on the subsamples of the first if needed.

    Also return whether it was refitted.
    """
    prefix = a.design.name == "iid"  # other designs depend on B
    if a.design == b.design and (prefix or a.B == b.B):
        return _values(b, points, min(a.B, b.B)), False
    if b.recipe is None:
        raise ValueError(
            "fits to compare must use the same subsamples. Fit the second as the first "
            f"was fitted: k={a.k}, B={a.B}, replace={a.replace}, "
            f"design={a.design.name!r}, rng={a.seed}."
        )
    predictor = predictor_of(b)
    X = predictor.rows(points)[0]
    task = replace(b.recipe.task, design=a.design)
    values = refit_values(task, X, a.B, b.recipe.n_jobs)
    if predictor.centre is not None:
        values = shift_mean(predictor.centre.mean(X), values)
    return values, True
