"""Fitted forests and bagging ensembles of scikit-learn."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.oob_scores import Scores, score
from vstatkit.ensemble.prediction import Predictor, feature_array
from vstatkit.ensemble.query import build_query
from vstatkit.ensemble.typical_row_effects import effect_values
from vstatkit.forest.base import Forest, check_response
from vstatkit.formula.parse import parse_table, response_name
from vstatkit.inference.intervals import Tails, prediction_support
from vstatkit.inference.stopping import robust_share
from vstatkit.interop.from_arrays import from_arrays
from vstatkit.kernels.base import Evaluation, KernelKind, output_columns
from vstatkit.kernels.tree import response_bounds
from vstatkit.kernels.user_defined import predict_columns
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.marginal_effects import column_names
from vstatkit.results.prediction_results import prediction_influence, predictor_of
from vstatkit.variance.higher_orders import reference_rows

N_TREES = 10  # number of trees that are compared with the training data
# Criteria whose trees have means or shares in their leaves, not medians.
MEANS = ("squared_error", "friedman_mse", "poisson", "gini", "entropy", "log_loss")
# Tolerated share of rows in other leaves, because features may have been rounded.
MISPLACED = 1e-3
ROUNDING = 1e-6  # tolerated difference of means, relative to the range of the responses
SINGLE = 1e-7  # tolerated difference of means relative to their size: single precision


def check_training_data(forest: Any, adopted: "AdoptedEnsemble") -> None:
    """Raise an error for data that the trees of a forest were not fitted to.

    Only scikit-learn's own ensembles are checked; others may train trees differently.
    """
    learners, kernel = adopted.learners, adopted.kernel
    models = [forest, *(tree for tree, _ in learners)]
    if any(type(model).__module__.split(".")[0] != "sklearn" for model in models):
        return
    checked = list(zip(learners, adopted.counts, strict=True))[:N_TREES]
    if _has_plain_weights(forest, adopted):
        mean = "another mean" if kernel.n_classes is None else "other shares of classes"
        for b, ((tree, _), drawn) in enumerate(checked):
            if not _has_root(tree, drawn, adopted.y, kernel.n_classes):
                raise _mismatch(forest, f"the rows drawn for tree {b} have {mean}")
    for b, ((tree, features), drawn) in enumerate(checked):
        if not _has_leaves(tree, drawn, kernel.X[:, features]):
            raise _mismatch(forest, f"the rows drawn for tree {b} reach other leaves")


def _mismatch(forest: Any, what: str) -> ValueError:
    return ValueError(
        f"`X` and `y` must be the {type(forest).__name__}'s training data, with the "
        f"same rows in the same order; in those given, {what} than in the fit. Give "
        "the X and y of the fit, or fit again."
    )


def _has_plain_weights(forest: Any, adopted: "AdoptedEnsemble") -> bool:
    """Whether roots have unweighted means: no weights other than counts."""
    if getattr(forest, "class_weight", None) is not None:
        return False
    return all(
        hasattr(tree, "tree_")
        and tree.criterion in MEANS
        and getattr(tree, "class_weight", None) is None
        and np.isclose(tree.tree_.weighted_n_node_samples[0], drawn.sum(), rtol=1e-9)
        for (tree, _), drawn in zip(adopted.learners, adopted.counts, strict=True)
    )


def _has_root(tree: Any, drawn: Ints, y: Floats, n_classes: int | None) -> bool:
    """Compare the root with the mean, or the shares, of the rows drawn."""
    root = tree.tree_.value[0]
    if len(root) != 1:
        return True  # several responses raise an error elsewhere
    if n_classes is None:
        scale = ROUNDING * np.ptp(y) + SINGLE * np.abs(y).max()
        return bool(abs(root[0, 0] - np.average(y, weights=drawn)) <= scale)
    class_counts = np.bincount(y.astype(np.int64), weights=drawn, minlength=n_classes)
    root_shares = np.zeros(n_classes)
    root_shares[tree.classes_.astype(np.int64)] = root[0] / root[0].sum()
    return bool(np.abs(root_shares - class_counts / drawn.sum()).max() <= ROUNDING)


def _has_leaves(tree: Any, drawn: Ints, X: Floats) -> bool:
    """Compare the size of each leaf with the number of rows that reach it."""
    if not hasattr(tree, "tree_"):
        return True
    nodes = tree.tree_
    size = nodes.n_node_samples
    # Trees with counts as weights count rows once. Rows of weight zero are unknown.
    seen = np.minimum(drawn, 1) if size[0] == np.count_nonzero(drawn) else drawn
    if size[0] != seen.sum():
        return True
    inside = np.flatnonzero(seen)
    leaves = tree.apply(X[inside])
    counts = np.bincount(leaves, weights=seen[inside], minlength=nodes.node_count)
    leaf_sizes = np.where(nodes.children_left < 0, size, 0)
    return bool(np.abs(counts - leaf_sizes).sum() / 2 <= MISPLACED * size[0])


@dataclass(frozen=True)
class AdoptedKernel:
    """Learners that were fitted elsewhere, which predict but cannot be refitted."""

    X: Floats  # (n, p): training data
    n_classes: int | None  # none for regression

    coefficients: ClassVar[bool] = False

    @property
    def n_outputs(self) -> int:
        """Number of columns: one, or one for each of more than two classes."""
        return output_columns(self.n_classes)

    @property
    def n_features(self) -> int:
        """Columns of the design matrix."""
        return int(self.X.shape[1])

    def predict(self, learner: tuple[Any, Ints], X: Floats) -> Floats:
        """Predict means, or class probabilities, from a learner's own features."""
        estimator, features = learner
        return predict_columns(estimator, X[:, features], self.n_classes)


@dataclass(frozen=True)
class AdoptedEnsemble:
    """A scikit-learn ensemble, described as one of ours."""

    kernel: AdoptedKernel
    learners: list[tuple[Any, Ints]]  # learners, each with the columns it uses
    counts: Ints  # (B, n): number of times each observation occurs in each subsample
    replace: bool  # whether the subsamples were drawn with replacement
    y: Floats  # (n,): response, or class codes
    classes: tuple[Any, ...] | None  # class labels
    # Names of the features, if the ensemble was fitted to a data frame
    columns: tuple[str, ...] | None
    name: str  # name of the response

    def scores(self) -> Scores:
        """Score the out-of-bag predictions."""
        n = self.y.size
        total = np.zeros((n, self.kernel.n_outputs))
        for learner, counts in zip(self.learners, self.counts, strict=True):
            outside = np.flatnonzero(counts == 0)
            if outside.size:
                total[outside] += self.kernel.predict(learner, self.kernel.X[outside])
        times = (self.counts == 0).sum(axis=0).astype(np.float64)
        times[times == 0] = np.nan
        return score(self.y, total / times[:, None], self.kernel.n_classes)


def adopt(forest: BaseEstimator, X: Any, y: Any) -> AdoptedEnsemble:
    """Read a fitted forest or bagging ensemble.

    Subsamples come from the public `estimators_samples_`, because draws from a seed may
    differ between versions.
    """
    _check_ensemble(forest)
    kind = type(forest).__name__
    names = getattr(forest, "feature_names_in_", None)
    columns = None if names is None else tuple(map(str, names))
    rows = feature_array(X, columns)
    samples: Sequence[Ints] = forest.estimators_samples_
    n = len(rows)
    drawn_from = 1 + max(int(drawn.max()) for drawn in samples)
    # Only scikit-learn knows the rows that no learner drew.
    fitted = max(drawn_from, getattr(forest, "_n_samples", n))
    if fitted != n:
        raise ValueError(
            f"`X` must be the {kind}'s training data; it has {n} rows, but the forest "
            f"was fitted to {fitted}."
        )
    counts = np.stack([np.bincount(drawn, minlength=n) for drawn in samples])
    if np.all(counts == 1):
        raise ValueError(
            f"every learner of this {kind} saw every row once, so its variance cannot "
            "be estimated. Refit with bootstrap=True or max_samples < n."
        )
    classes = tuple(forest.classes_) if is_classifier(forest) else None
    if classes is not None and not hasattr(forest.estimators_[0], "predict_proba"):
        raise ValueError(
            f"the learners of a {kind} must have `predict_proba`; these do not. Refit "
            "with learners that estimate class probabilities."
        )
    everything = [np.arange(rows.shape[1])] * len(counts)
    features = getattr(forest, "estimators_features_", everything)
    adopted = AdoptedEnsemble(
        kernel=AdoptedKernel(rows, None if classes is None else len(classes)),
        learners=list(zip(forest.estimators_, features, strict=True)),
        counts=counts,
        replace=bool(forest.bootstrap),
        y=_response(y, n, None if classes is None else forest.classes_),
        classes=classes,
        columns=columns,
        name=str(getattr(y, "name", None) or "y"),
    )
    check_training_data(forest, adopted)
    return adopted


def _check_ensemble(forest: BaseEstimator) -> None:
    """Raise an error unless `forest` is a fitted ensemble on subsamples."""
    kind = type(forest).__name__
    if not hasattr(forest, "fit"):
        raise TypeError(f"`forest` must be a scikit-learn ensemble; got {kind}.")
    check_is_fitted(forest)
    if hasattr(forest, "steps"):
        raise TypeError(
            f"`forest` must be the forest itself; got a {kind}. Give its last step and "
            "the input of that step: from_sklearn(pipe[-1], pipe[:-1].transform(X), y)."
        )
    if not hasattr(forest, "estimators_samples_") or not hasattr(forest, "bootstrap"):
        raise TypeError(
            f"`forest` must be a random forest or a bagging ensemble, whose learners "
            f"are fitted to subsamples; got {kind}."
        )


def _response(y: Any, n: int, classes: Any) -> Floats:
    """Read the training response, or the codes of its classes."""
    response = np.asarray(y)
    if response.shape != (n,):
        raise ValueError(
            f"`y` must be one-dimensional with {n} values; got shape {response.shape}."
        )
    if classes is None:
        numbers = response.astype(np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError("`y` must be finite, as in the fit; got infinity.")
        return numbers
    unknown = response[~np.isin(response, classes)]
    if unknown.size:
        raise ValueError(
            f"`y` must have the classes of the fit, {', '.join(map(str, classes))}; "
            f"got {str(unknown[0])!r}."
        )
    return np.searchsorted(classes, response).astype(np.float64)


def from_sklearn(
    forest: BaseEstimator,
    X: Any,
    y: Any,
    at: Any = None,
    *,
    variance: str = "auto",
    n_jobs: int | None = None,
) -> EnsembleResults:
    """Compute standard errors for a fitted scikit-learn forest or bagging ensemble.

    Parameters
    ----------
    forest : RandomForest*, ExtraTrees* (with bootstrap=True) or Bagging*
        Ensemble fitted to (X, y); subsamples are read from `estimators_samples_`. For a
        `ForestRegressor` or `ForestClassifier` the results are its `results_`.
    X : array-like of shape (n, p)
        Training data, in the order of the fit; data that do not match the trees raise
        an error.
    y : array-like of shape (n,)
        Training response, for the out-of-bag scores, without missing values.
    at : array-like of shape (q, p), optional
        Query points; the typical row (medians) by default. `get_prediction` predicts
        other points.
    variance, n_jobs
        See `fit`.

    Returns
    -------
    EnsembleResults

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(100, rng=1)
    >>> X, y = data.drop(columns="y"), data["y"]
    >>> forest = RandomForestRegressor(200, max_samples=40, random_state=1).fit(X, y)
    >>> vs.from_sklearn(forest, X, y, X.iloc[:2]).variance
    'hoeffding'
    >>> list(vs.from_sklearn(forest, X, y).effects.index)
    ['x1', 'x2', 'x3', 'x4', 'x5']
    """
    if isinstance(forest, Forest):
        return _own_results(forest, X, at, variance, n_jobs)
    check_response(y, numeric=not hasattr(forest, "classes_"))
    adopted = adopt(forest, X, y)
    kernel, classes = adopted.kernel, adopted.classes
    predictor = Predictor(
        kernel, adopted.learners, None, classes, n_jobs, adopted.columns
    )
    features = pd.DataFrame(kernel.X, columns=column_names(predictor))
    parsed = parse_table(features, adopted.y, response=adopted.name, classes=classes)
    trees = all(hasattr(learner, "tree_") for learner, _ in adopted.learners)
    limit: float | None = 0.5  # largest standard deviation of class probabilities
    tails: Tails | None = None
    if classes is None:
        # Trees average responses; other learners may leave their range.
        limit = float(np.ptp(adopted.y)) / 2 if trees else None
        tails = Tails(0.0, np.nan, *response_bounds(adopted.y)) if trees else Tails()
    query = build_query(cast(Any, kernel), parsed, None)
    rows = query.rows
    assert rows is not None  # learners predict
    if at is not None:
        given, index = predictor.rows(at)
        rows = np.concatenate([given, rows[1:]])  # moves, after the typical row
        query = changed(query, rows=rows, labels=predictor.labels(index))
    evaluation = Evaluation(predictor.values(rows), adopted.learners, None)
    evaluation = evaluation.with_moves(len(query.labels))
    results = from_arrays(
        adopted.counts,
        evaluation.values[:, : len(query.labels)],
        replace=adopted.replace,
        variance="bm",  # replaced below, once the results have learners
        labels=query.labels,
        units=X.index if isinstance(X, pd.DataFrame) else None,
        name=type(forest).__name__,
    )
    info = changed(
        results.info,
        title="Forest Results",
        response=response_name(parsed),
        coefficients=False,
        typical=parsed.typical_row,
        ranges=parsed.coding.ranges(parsed.frame),
        scale_share=1.0 if classes is not None else robust_share(adopted.y),
    )
    return changed(
        results,
        info=info,
        effect_values=effect_values(query, evaluation, classes),
        predictor=predictor,
        scores=adopted.scores(),
        limit=limit,
        kind=KernelKind.TREES if trees else KernelKind.UNKNOWN,
        reference=reference_rows(kernel.X, 0, kernel.n_outputs),
        support=prediction_support(kernel, results.design.n),
        tails=tails,
    ).with_variance(variance)


def _own_results(
    forest: Forest, X: Any, at: Any, variance: str, n_jobs: int | None
) -> EnsembleResults:
    """Return the results of one of our forests, at other points if given."""
    if len(X) != forest.design_.n:
        raise ValueError(
            f"`X` must be the {type(forest).__name__}'s training data, of "
            f"{forest.design_.n} rows; it has {len(X)}."
        )
    results = forest.results_
    predictor = predictor_of(results)
    if n_jobs is not None:
        predictor = changed(predictor, n_jobs=n_jobs)
        results = changed(results, predictor=predictor)
    if at is not None:
        rows, index = predictor.rows(at)
        values, labels = predictor.values(rows), predictor.labels(index)
        results = changed(
            results,
            values=values,
            labels=labels,
            leaf_influence=prediction_influence(results, rows),
        )
    return results if variance == "auto" else results.with_variance(variance)
