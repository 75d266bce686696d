"""Check arguments, and the keyword options of kernels and designs."""

import re
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from vstatkit.text import suggest_name

P = ParamSpec("P")
T = TypeVar("T")


def split_options(
    options: Mapping[str, Any], known: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split keyword options into those of the design and the rest."""
    rest = dict(options)
    return {name: rest.pop(name) for name in options if name in known}, rest


# Arguments of `fit`, which may be meant by misspelled options.
ARGUMENTS = (
    *("kernel", "k", "B", "replace", "design", "variance", "at", "groups", "weights"),
    *("missing", "rng", "n_jobs", "progress", "tol", "atol", "max_B", "checkpoint"),
    *("memory_limit", "oob", "keep_learners", "eval_env", "target"),
)

_LEARNERS = "`B`, the number of learners"
_SUBSAMPLE = "`k`, the number of rows of a subsample, or their share"
_SEED = "`rng`"
_LEAF = "`min_samples_leaf`, or `min_samples_split` for the size of what is split"

# Arguments of other packages, and what they are called here.
ELSEWHERE = {
    **dict.fromkeys(
        ("n_estimators", "num_trees", "ntree", "trees", "n_trees"), _LEARNERS
    ),
    **dict.fromkeys(("n_learners", "n_bootstrap"), _LEARNERS),
    **dict.fromkeys(("seed", "random_state", "random_seed", "set_seed"), _SEED),
    **dict.fromkeys(("sample_fraction", "max_samples", "sampsize"), _SUBSAMPLE),
    **dict.fromkeys(("subsample", "subsample_size", "sample_size"), _SUBSAMPLE),
    **dict.fromkeys(("min_node_size", "nodesize", "min_n", "min_bucket"), _LEAF),
    **dict.fromkeys(("mtry", "max_feats", "colsample_bynode"), "`max_features`"),
    **dict.fromkeys(("sample_weight", "sample_weights", "case_weights"), "`weights`"),
    **dict.fromkeys(("cluster", "clusters", "cov_kwds"), "`groups`, clusters of rows"),
    **dict.fromkeys(("num_threads", "n_threads", "nthread", "cores"), "`n_jobs`"),
    **dict.fromkeys(("oob_score", "compute_oob_predictions"), "`oob`"),
    **dict.fromkeys(("keep_inbag", "keep_forest", "write_forest"), "`keep_learners`"),
    "probability": "the default: a response of classes gives their probabilities",
    "classification": "the default where the response is text, or C(y)",
    "importance": "a method of the results: `res.importance()`",
    "bootstrap": "`replace`",
    "extratrees": "`splitter='random'`",
    "honesty": "`honest`",
    "respect_unordered_factors": "`categorical_splits`",
    "verbose": "`progress`",
    "alpha": "an argument of methods: `res.summary(alpha)`, `res.conf_int(alpha)`",
    "conf_level": "one minus `alpha`: `res.summary(alpha)`, `res.conf_int(alpha)`",
    "quantiles": "`res.get_prediction(new).summary_frame(alpha)`, its obs_ci columns",
    "warm_start": "`res.more(B)`",
    "cov_type": "not needed: standard errors come from the subsamples and allow for "
    "unequal variances ('HC'); for clusters, or blocks of time ('HAC'), use `groups`; "
    "`variance` chooses the estimator",
    "method": "`kernel`, or `variance` for standard errors",
    "family": "not needed: a numeric response gives means (trees split counts by "
    "`criterion='poisson'`), text or C(y) gives probabilities of classes, and "
    "`kernel='logit'` is a logistic regression",
    "na_action": "`missing`",
    "subset": "a part of the data: `fit(formula, data.query(...))`",
    "offset": "not offered; with kernel='ols' subtract it from the response",
    "newdata": "`at`, or `res.get_prediction(new)` later",
}
# Arguments of other packages' results and predictions, and their names here.
ASKED_ELSEWHERE = {
    **dict.fromkeys(("exog", "newdata", "new_data", "X"), "`data`"),
    **dict.fromkeys(("conf_level", "level"), "one minus `alpha`"),
    "transform": "always applied: data are coded as the training data were",
    "row_labels": "the index of `data`",
    "cols": "a selection of rows: `conf_int().iloc[cols]`",
    "yname": "the name of the column: `data.rename(columns={old: new})`",
    "xname": "the names of the columns: `data.rename(columns={old: new})`",
    "slim": "the default; `full=True` adds tables",
    "grid_resolution": "`points`",
    "custom_values": "`grid`",
    "features": "the first argument, by name: `partial_dependence('x')`",
    **dict.fromkeys(
        ("return_std", "return_interval"),
        "`get_prediction(data).summary_frame()` of results, and an argument of "
        "`predict_proba` of a ForestClassifier",
    ),
}


def with_advice(method: Callable[P, T]) -> Callable[P, T]:
    """Explain keywords of other packages in the errors of a method; a decorator."""
    known = tuple(signature(method).parameters)

    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs:
            if name not in known and name in ASKED_ELSEWHERE:
                raise TypeError(
                    f"{method.__name__} has no argument {name!r}; here it is "
                    f"{ASKED_ELSEWHERE[name]}."
                )
        return method(*args, **kwargs)

    return called


def check_options(options: Mapping[str, Any], known: tuple[str, ...], of: str) -> None:
    """Raise an error for unknown options."""
    for name in options:
        if name not in known:
            meant = ELSEWHERE.get(name.replace(".", "_"))
            if meant is not None:
                raise TypeError(f"{of} has no option {name!r}; here it is {meant}.")
            # Short names resemble too many words.
            arguments = (argument for argument in ARGUMENTS if len(argument) > 4)
            _raise_unknown(name, known, of, (*known, *arguments))


# What to do instead of giving arguments of `fit` to `statistic`.
NOT_OF_STATISTICS = {
    "weights": "Let the statistic read them from a column: statistic(lambda d: "
    "np.average(d['y'], weights=d['w']), data, k=...)",
    "at": "A statistic has no query points; use `fit` for predictions",
    "kernel": "The statistic itself is the kernel: statistic(h, data, k=...)",
    "missing": "Drop rows with missing values first: data.dropna()",
    "target": "Its intervals cover the mean of the statistic of k observations",
}


def check_statistic_options(
    options: Mapping[str, Any], designs: tuple[str, ...], arguments: tuple[str, ...]
) -> None:
    """Raise an error for options not of `designs`, with advice for known arguments."""
    for name in options:
        if name in designs:
            continue
        meant = ELSEWHERE.get(name.replace(".", "_"), f"`{name}`")
        named = re.match(r"`(\w+)`", meant)
        ours = "" if named is None else named[1]
        if ours in arguments:
            raise TypeError(f"`statistic` has no option {name!r}; here it is {meant}.")
        if ours in ARGUMENTS:
            advice = NOT_OF_STATISTICS.get(ours, "It is an argument of `fit` only")
            raise TypeError(f"`statistic` takes no {ours}; got {name!r}. {advice}.")
        _raise_unknown(name, designs, "`statistic`", (*designs, *arguments))


def _raise_unknown(
    name: str, known: tuple[str, ...], of: str, meant: tuple[str, ...]
) -> None:
    listed = ", ".join(known) if known else "none"
    raise TypeError(
        f"{of} has no option {name!r}{suggest_name(name, meant)} Its options are: "
        f"{listed}."
    )


def check_workers(n_jobs: Any) -> None:
    """Check a number of workers as joblib counts them."""
    if n_jobs is not None and not (is_whole(n_jobs) and int(n_jobs) != 0):
        raise ValueError(
            "`n_jobs` must be None or a whole number other than 0 (-1 for all "
            f"processors); got {n_jobs!r}."
        )


def is_whole(given: Any) -> bool:
    """Return whether a value is a whole number; True and False are not."""
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


def check_alpha(alpha: float) -> None:
    """Raise an error for levels outside (0, 1)."""
    if not 0 < alpha < 1:
        raise ValueError(
            f"`alpha` must lie strictly between 0 and 1 (0.05 gives 95 % intervals); "
            f"got {alpha}."
        )
