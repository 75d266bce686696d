"""Comparisons of the numbers in tables with formulas written in R.

`reported.R` computes standard errors, degrees of freedom, tests and intervals of the
default estimator from in-bag counts and the predictions of every tree: of estimates,
predictions, effects, contrasts, and averages over rows (`r_bridge.averaged`).
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import vstatkit as vs
from r_bridge import session
from r_bridge.availability import require
from r_bridge.averaged import averages, place_quantities
from r_bridge.battery import data_set
from r_bridge.compare import TOLERANCE, Comparison, Quantity
from r_bridge.convert import to_r_frame
from r_bridge.from_ranger import from_ranger
from r_bridge.restated import (
    ALPHA,
    COLUMNS,
    Formulas,
    counts_of,
    quantities,
    table_quantities,
)
from vstatkit import EnsembleResults
from vstatkit._typing import Floats
from vstatkit.ensemble.prediction import Predictor
from vstatkit.exceptions import FewUnitsWarning

N = 40  # observations of each data set

POINTS = 5  # query points

MOST_SEEDS = 3  # data sets of each setting: every forest has some ninety quantities

# Columns of `tidy()`, and what `reported.R` calls them
TIDY = {
    "estimate": "estimate",
    "std_error": "bse",
    "statistic": "t",
    "p_value": "p",
    "conf_low": "lower",
    "conf_high": "upper",
    "df": "df",
}

# Columns of `get_prediction().summary_frame()` about the mean
MEAN = {
    "mean": "estimate",
    "mean_se": "bse",
    "mean_ci_lower": "lower",
    "mean_ci_upper": "upper",
    "se_mc_error": "se_mc_error",
}

# Columns of `t_test().summary_frame()`
TESTS = {
    "coef": "estimate",
    "std err": "bse",
    "t": "t",
    "P>|t|": "p",
    "Conf. Int. Low": "lower",
    "Conf. Int. Upp.": "upper",
}

FORMULA = 'y ~ Q("x 1") + x2 + größe + x4'

# Columns that forests of ranger are grown on
RANGER_COLUMNS = ["y", "x2", "größe", "x4"]

WHY_SCORES = "computed in R from the predictions of every tree for every row."

_GROW = """
function(data, seed) {
  ranger::ranger(y ~ ., data, num.trees = 250, keep.inbag = TRUE, num.threads = 1,
                 seed = seed)
}
"""

_SCORES = """
function(values, absent, y, classes) {
  trees <- nrow(absent)
  oob <- sapply(seq_along(y), function(i) mean(values[absent[, i], i]))
  known <- is.finite(oob)
  y <- y[known]
  oob <- oob[known]
  if (!classes) {
    return(list(`OOB R-squared` = 1 - sum((y - oob)^2) / sum((y - mean(y))^2),
                `OOB RMSE` = sqrt(mean((y - oob)^2))))
  }
  own <- ifelse(y == 1, oob, 1 - oob)
  list(`OOB accuracy` = mean((oob > 0.5) == (y == 1)),
       `OOB log-loss` = -mean(log(pmax(own, .Machine$double.eps))))
}
"""


@dataclass(frozen=True)
class Reported:
    """Setting of a forest whose tables are compared."""

    title: str  # what the certificate calls it
    # Response: "regression", as drawn; "skewed", positive with a long tail;
    # "probability", two classes of equal size; "rare", one of them rare; "ranger",
    # regression by a forest that ranger has grown
    kind: str = "regression"
    # Options of `vstatkit.fit`. Of at most 256 trees all pairs are compared.
    options: dict[str, Any] = field(default_factory=dict)


# Forests whose tables are compared
SETTINGS = (
    Reported("tables of a forest, defaults"),
    Reported("tables of a forest, without replacement", options={"replace": False}),
    Reported("tables of a forest, balanced", options={"design": "balanced", "k": 20}),
    Reported("tables of a forest, clusters of two", options={"groups": "pair"}),
    Reported("tables of a forest, few trees", options={"B": 12}),
    Reported("tables of a forest, skewed response", "skewed", {"k": 8}),
    Reported("tables of a forest, two classes", "probability"),
    Reported("tables of a forest, a rare class", "rare"),
    Reported("tables of a forest that ranger has grown", "ranger"),
)


def reported_sections(seeds: Iterable[int]) -> dict[str, list[Comparison]]:
    """Run all comparisons of tables, by the title of their setting."""
    each = list(seeds)[:MOST_SEEDS]
    return {
        setting.title: [compare_reported(setting, seed) for seed in each]
        for setting in SETTINGS
    }


def compare_reported(setting: Reported, seed: int) -> Comparison:
    """Fit one forest, and compare its tables with R's formulas."""
    found = require("R", "rpy2", "ranger")
    data = _data(setting, seed)
    some = np.linspace(0, N - 1, POINTS).astype(int)
    points = _data(setting, seed + 1000).iloc[some]
    results = _fitted(setting, data, points, seed)
    formulas = Formulas(results, data["y"], setting.kind)
    held = data if setting.kind != "ranger" else data[RANGER_COLUMNS]
    compared = [
        *_estimates(results, formulas.of(results.values)),
        *_predictions(results, data.iloc[some], formulas),
        *_effects(results, data, formulas),
        *_contrast(results, formulas),
        *averages(results, held, formulas),
        *_scores(results, data),
    ]
    way = "with" if results.replace else "without"
    return Comparison(
        title=f"vstatkit and R: {FORMULA}",
        setting=(
            f"{setting.kind}, {way} replacement, n = {results.design.n}, "
            f"k = {results.k}, B = {results.B}"
        ),
        quantities=tuple(compared),
        versions={"vstatkit": vs.__version__, "R": str(found["R"])},
    )


def _fitted(
    setting: Reported, data: pd.DataFrame, points: pd.DataFrame, seed: int
) -> EnsembleResults:
    """Fit a forest here, or adopt one fitted by ranger."""
    if setting.kind == "ranger":
        columns = data[RANGER_COLUMNS]
        model = session.keep(_GROW, to_r_frame(columns), seed + 1)
        return from_ranger(model, columns, points)
    options: dict[str, Any] = {"B": 250, "rng": seed, **setting.options}
    return vs.fit(FORMULA, data, at=points, **options)


def _data(setting: Reported, seed: int) -> pd.DataFrame:
    """Draw the data of the battery, in pairs of rows, with two classes at most.

    If one is rare, rows are sorted by the response that classes are made of: there are
    query points where all trees agree, and others where lower limits are not zero.
    """
    data = data_set(seed, "regression", N).assign(pair=np.arange(N) // 2)
    if setting.kind in ("regression", "ranger"):
        return data
    if setting.kind == "skewed":
        return data.assign(y=np.exp(4 * data["y"] / data["y"].std()))
    share = 0.5
    if setting.kind == "rare":
        data, share = data.sort_values("y", ignore_index=True), 0.9
    return data.assign(y=np.where(data["y"] > data["y"].quantile(share), "yes", "no"))


def _estimates(results: EnsembleResults, theirs: dict[str, Floats]) -> list[Quantity]:
    """Compare the table of estimates, and the variance components of the summary."""
    table, checks = results.summary_frame(ALPHA), results.diagnostics
    parts, orders = results.components, results.orders
    rho = np.nan if orders is None else orders.rho
    ours = {
        "mean": (table["mean"], "estimate"),
        "std err": (results.bse, "bse"),
        "mean_se": (table["mean_se"], "bse"),
        "df": (checks["df"], "df"),
        "t": (results.tvalues, "t"),
        "P>|t|": (results.pvalues, "p"),
        "zeta_1": (parts.zeta_1, "zeta_1"),
        "zeta_k": (parts.zeta_k, "zeta_k"),
        "raw sampling variance": (parts.sampling, "sampling"),
        "zeta_k/B": (parts.monte_carlo, "monte_carlo"),
        "rho": ([rho], "rho"),
        "MC error of std err": (checks["relative_mc_error"], "mc_error"),
        "se_mc_error": (table["se_mc_error"], "se_mc_error"),
        **_interval(results.conf_int(ALPHA), ("lower", "upper"), "conf_int"),
        **_interval(table, ("mean_ci_lower", "mean_ci_upper"), "mean_ci"),
    }
    tidy = table_quantities(results.tidy(ALPHA), TIDY, "tidy", theirs)
    return [*quantities(ours, theirs), *tidy]


def _predictions(
    results: EnsembleResults, rows: pd.DataFrame, formulas: Formulas
) -> list[Quantity]:
    """Compare predictions of some training rows, without limits of observations."""
    if results.predictor is None:
        return []
    made = results.get_prediction(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewUnitsWarning)  # of the limits
        table = made.summary_frame(ALPHA)
    theirs = formulas.of(results.predictor.values(results.predictor.rows(rows)[0]))
    ours = {
        "predicted_mean": (made.predicted_mean, "estimate"),
        "se_mean": (made.se_mean, "bse"),
        **_interval(made.conf_int(ALPHA), ("lower", "upper"), "prediction conf_int"),
    }
    return [
        *quantities(ours, theirs),
        *table_quantities(table, MEAN, "prediction", theirs),
    ]


def _effects(
    results: EnsembleResults, data: pd.DataFrame, formulas: Formulas
) -> list[Quantity]:
    """Compare the table of effects; trees predict the rows that it moves between."""
    table, typical = results.effects_frame(ALPHA), results.info.typical
    if table is None or typical is None or results.predictor is None:
        return []
    start, end = (
        _moved(results.predictor, typical, table[place]) for place in ("from", "to")
    )
    theirs = formulas.of(end - start, difference="effect")
    return [
        *table_quantities(table, COLUMNS, "effects", theirs),
        *place_quantities(table, data, "effects"),
    ]


def _moved(predictor: Predictor, typical: pd.DataFrame, places: pd.Series) -> Floats:
    """Predict the typical row with each predictor moved, shape (B, effects)."""
    rows = [
        typical.assign(**{str(name): place}).astype(typical.dtypes)
        for name, place in places.items()
    ]
    return predictor.values(predictor.rows(pd.concat(rows))[0])


def _contrast(results: EnsembleResults, formulas: Formulas) -> list[Quantity]:
    """Compare a difference of two estimates by `t_test`."""
    coefs = np.zeros(results.values.shape[1])
    coefs[:2] = 1, -1
    made = results.t_test(coefs)
    theirs = formulas.of(results.values @ coefs[:, None], difference="contrast")
    ours = {
        "t_test coef": (made.params, "estimate"),
        "t_test std err": (made.bse, "bse"),
        "t_test t": (made.tvalues, "t"),
        "t_test P>|t|": (made.pvalues, "p"),
        "t_test df": (made.df_denom, "df"),
        **_interval(made.conf_int(ALPHA), ("lower", "upper"), "t_test ci"),
    }
    frame = made.summary_frame(ALPHA)
    return [
        *quantities(ours, theirs),
        *table_quantities(frame, TESTS, "t_test frame", theirs),
    ]


def _interval(
    table: pd.DataFrame, columns: tuple[str, str], name: str
) -> dict[str, tuple[Any, str]]:
    """Name the ends of intervals."""
    pairs = zip(columns, ("lower", "upper"), strict=True)
    return {f"{name} {end}": (table[column], end) for column, end in pairs}


def _scores(results: EnsembleResults, data: pd.DataFrame) -> list[Quantity]:
    """Compare out-of-bag scores; R averages the trees that have not seen a row."""
    if results.predictor is None or results.scores is None or results.recipe is None:
        return []
    X, _ = results.predictor.rows(data)
    values = results.predictor.values(X)
    y, classes = results.recipe.y, results.support is not None
    size = len(data) // results.design.n  # rows of a cluster follow each other
    absent = np.repeat(counts_of(results) == 0, size, axis=1)
    theirs = session.call(_SCORES, values, absent, y, classes)
    return [
        Quantity(name, np.array([one]), np.array(theirs[name]), TOLERANCE, WHY_SCORES)
        for name, one in results.scores.table.items()
    ]
