"""What a fitted forest answers beyond predictions: results, as `fit` gives them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from vstatkit._typing import Floats
from vstatkit.ensemble.evaluate import Task
from vstatkit.ensemble.forests import tree_variance
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.query import build_query
from vstatkit.ensemble.reading import OwnLearners
from vstatkit.forest.training import Trained
from vstatkit.formula.observations import response_name
from vstatkit.formula.tabled import parsed_table
from vstatkit.kernels.evaluation import Evaluation, OutOfBag
from vstatkit.kernels.levels import Factors
from vstatkit.results.aiming import aim_of
from vstatkit.results.assembling import assembled
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.model_info import ModelInfo


def results_of(
    trained: Trained,
    learners: Sequence[Any],
    *,
    name: str,
    names: Sequence[str],
    factors: Factors,
    classes: Sequence[Any] | None,
    variance: str,
    n_jobs: int | None,
) -> EnsembleResults:
    """Make results of a fitted forest: at the typical row, with effects.

    Parameters
    ----------
    trained : Trained
        What the forest was grown from.
    learners : sequence
        Its trees.
    name : str
        What the summary calls it.
    names : sequence of str
        Names of the features.
    factors : Factors
        Those that are unordered factors.
    classes : sequence or None
        Class labels.
    variance : str
        Variance estimator, as in `fit`.
    n_jobs : int or None
        Threads.
    """
    kernel, design = trained.kernel, trained.design.sized(len(learners))
    features = features_frame(kernel.X, names, factors, trained.units)
    parsed = parsed_table(
        features, trained.y, response=trained.response, classes=classes
    )
    query = build_query(kernel, parsed, None)
    assert query.rows is not None  # trees predict
    task = Task(kernel, design, query.rows, None, keep=True)
    predictor = Predictor(kernel, list(learners), None, None, n_jobs)
    oob = out_of_bag(predictor, task) if trained.oob is None else trained.oob
    evaluation = Evaluation(predictor.values(query.rows), list(learners), oob)
    info = ModelInfo(
        title="Forest Results",
        response=response_name(parsed),
        formula=f"{parsed.response} ~ .",
        kernel=name,
        nobs=len(parsed.y),
        typical=parsed.typical,
        ranges=parsed.coding.ranges(parsed.frame),
        aim=aim_of(kernel, None),
        weights=None if kernel.weights is None else "given",
        weights_in_column=False,
    )
    results = assembled(
        task,
        design,
        evaluation.with_moves(len(query.labels)),
        query,
        info=info,
        units=trained.units,
        method=tree_variance(variance, design),
        n_jobs=n_jobs,
        progress=False,
        parsed=parsed,
    )
    assert results.predictor is not None
    named = replace(results.predictor, columns=tuple(names))
    return replace(results, predictor=named)


def features_frame(
    X: Floats, names: Sequence[str], factors: Factors, index: Any
) -> pd.DataFrame:
    """Write coded features with their names, factors with their categories."""
    frame = pd.DataFrame(X, index, list(names))
    for place in factors.places:
        column = frame.iloc[:, place]
        codes = column.fillna(-1).to_numpy().astype(np.int64)
        if codes.min() < 0:
            raise ValueError(
                f"results need factors without missing values; {names[place]!r} has "
                f"{int((codes < 0).sum())}. Make missing a level of its own, or use "
                "predict(X, return_std=True), which takes them."
            )
        levels = factors.categories.get(place, pd.RangeIndex(1 + codes.max()))
        frame[names[place]] = pd.Categorical.from_codes(codes, levels)
    return frame


def out_of_bag(predictor: Predictor, task: Task) -> OutOfBag:
    """Predict the rows that each tree left out, as a fit that scores them does."""
    X = predictor.kernel.X  # type: ignore[attr-defined]  # trees with their data
    some = task.oob_rows(len(X))
    rows = np.arange(len(X)) if some is None else some
    nothing = sparse.csr_array((1, rows.size))
    found = predictor.sums(X[rows], nothing, OwnLearners(task.design, rows))
    times = np.asarray(found.times).reshape(-1)
    return OutOfBag(np.asarray(found.total), times, some)
