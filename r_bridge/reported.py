"""The numbers that tables show, held against formulas written in R.

`reported.R` computes standard errors, degrees of freedom, tests and intervals of the
default estimator from in-bag counts and the predictions of every tree.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

import vstatkit as vs
from r_bridge import session
from r_bridge.availability import require
from r_bridge.battery import data_set
from r_bridge.compare import TOLERANCE, Comparison, Quantity
from r_bridge.convert import to_r_frame
from r_bridge.from_ranger import from_ranger
from vstatkit import EnsembleResults
from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.prediction import Predictor
from vstatkit.sampling.counts import dense

N = 40
"""Observations of each data set."""

POINTS = 5
"""Query points."""

MOST_SEEDS = 3
"""Data sets of each setting: every forest has some thirty quantities."""

ALPHA = 0.1
"""One minus the coverage of the intervals that are compared."""

EXPECTED = np.array([0.55, 0.35, 10.0])
"""Expected of trees: rho and its error, relative to nearest neighbours, and the ratio
`zeta_k / (k zeta_1)` (theory.md)."""

FORMULA = 'y ~ Q("x 1") + x2 + größe + x4'

WHY_REPORTED = (
    "held against formulas written in plain R (r_bridge/reported.R), from the counts "
    "and the predictions of every tree."
)

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
    """One way to fit a forest whose tables are compared.

    Attributes
    ----------
    title : str
        What the certificate calls it.
    kind : {"regression", "skewed", "probability", "rare", "ranger"}
        Kind of response: as drawn, positive with a long tail, two classes of equal
        size, or one of them rare; "ranger" for regression by a forest that ranger has
        grown.
    options : dict
        Options of `vstatkit.fit`. Of at most 256 trees all pairs are compared.
    """

    title: str
    kind: str = "regression"
    options: dict[str, Any] = field(default_factory=dict)


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
"""Forests whose tables are compared."""


def reported_sections(seeds: Iterable[int]) -> dict[str, list[Comparison]]:
    """All comparisons of tables, by the title of their setting."""
    each = list(seeds)[:MOST_SEEDS]
    return {
        setting.title: [compare_reported(setting, seed) for seed in each]
        for setting in SETTINGS
    }


def compare_reported(setting: Reported, seed: int) -> Comparison:
    """Fit one forest, and compare what its tables show with R's formulas."""
    found = require("R", "rpy2", "ranger")
    data = _data(setting, seed)
    points = _data(setting, seed + 1000).iloc[np.linspace(0, N - 1, POINTS).astype(int)]
    results = _fitted(setting, data, points, seed)
    formulas = Formulas(results, data["y"], setting.kind)
    quantities = [
        *_estimates(results, formulas.of(results.values)),
        *_effects(results, formulas),
        *_contrast(results, formulas),
        *_scores(results, data),
    ]
    way = "with" if results.replace else "without"
    return Comparison(
        title=f"vstatkit and R: {FORMULA}",
        setting=(
            f"{setting.kind}, {way} replacement, n = {results.design.n}, "
            f"k = {results.k}, B = {results.B}"
        ),
        quantities=tuple(quantities),
        versions={"vstatkit": vs.__version__, "R": str(found["R"])},
    )


def _fitted(
    setting: Reported, data: pd.DataFrame, points: pd.DataFrame, seed: int
) -> EnsembleResults:
    """Fit a forest here, or adopt one that ranger grows."""
    if setting.kind == "ranger":
        columns = data[["y", "x2", "größe", "x4"]]
        model = session.keep(_GROW, to_r_frame(columns), seed + 1)
        return from_ranger(model, columns, points)
    options: dict[str, Any] = {"B": 250, "rng": seed, **setting.options}
    return vs.fit(FORMULA, data, at=points, **options)


def _data(setting: Reported, seed: int) -> pd.DataFrame:
    """Draw the data of the battery, in pairs of rows; of classes, two.

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


@dataclass(frozen=True)
class Formulas:
    """The formulas in R, for the trees of one fit.

    Attributes
    ----------
    results : EnsembleResults
        Has the trees.
    y : Series
        Responses.
    kind : str
        Kind of response; see `Reported`.
    """

    results: EnsembleResults
    y: pd.Series
    kind: str

    @property
    def _classes(self) -> bool:
        return self.kind in ("probability", "rare")

    @property
    def _limit(self) -> float:
        """Largest standard deviation of a prediction; trees of R have none."""
        if self.kind == "ranger":
            return np.inf
        return 0.5 if self._classes else float(np.ptp(self.y)) / 2

    def of(self, values: Floats, *, difference: str | None = None) -> dict[str, Floats]:
        """Compute everything in R from counts and values, shape (B, m).

        `difference` says what the values are differences of: an "effect", which knows
        no range, or a "contrast".
        """
        results = self.results
        reference = results.predictor.values(results.reference)  # type: ignore[union-attr]
        code = resources.files("r_bridge").joinpath("reported.R").read_text("utf-8")
        tables = (_counts(results).astype(np.float64), values, reference)
        given = [np.asfortranarray(table.T) for table in tables]
        answer = session.call(
            code,
            *given,
            results.replace,
            EXPECTED,
            self._limit,
            self._ends(difference),
            self._classes,
            difference is not None,
            ALPHA,
        )
        return {name: np.asarray(one, dtype=np.float64) for name, one in answer.items()}

    def _ends(self, difference: str | None) -> Floats:
        """Least and greatest value: trees average responses of one sign."""
        if self._classes:
            low, high = 0.0, 1.0
        elif difference == "effect" or self.kind == "ranger":
            return np.array([-np.inf, np.inf])
        else:
            low = 0.0 if self.y.min() >= 0 else -np.inf
            high = 0.0 if self.y.max() <= 0 else np.inf
        return np.array([low, high] if difference is None else [low - high, high - low])


def _counts(results: EnsembleResults) -> Ints:
    return np.asarray(dense(results.design.counts(0, results.B)), dtype=np.int64)


def _estimates(results: EnsembleResults, theirs: dict[str, Floats]) -> list[Quantity]:
    """Compare the table of estimates, and what the summary says of the variance."""
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
    return _quantities(ours, theirs)


def _effects(results: EnsembleResults, formulas: Formulas) -> list[Quantity]:
    """Compare the table of effects; trees predict the rows that it moves between."""
    table, typical = results.effects_frame(ALPHA), results.info.typical
    if table is None or typical is None or results.predictor is None:
        return []
    start, end = (
        _moved(results.predictor, typical, table[place]) for place in ("from", "to")
    )
    theirs = formulas.of(end - start, difference="effect")
    columns = {"estimate": "estimate", "std_error": "bse", "df": "df", "t": "t"}
    ours = {
        f"effects {name}": (table[name], their)
        for name, their in {**columns, "p_value": "p"}.items()
    }
    ours |= _interval(table, ("ci_lower", "ci_upper"), "effects ci")
    return _quantities(ours, theirs)


def _moved(predictor: Predictor, typical: pd.DataFrame, places: pd.Series) -> Floats:
    """Predict the typical row with each predictor moved, shape (B, effects)."""
    rows = [
        typical.assign(**{str(name): place}).astype(typical.dtypes)
        for name, place in places.items()
    ]
    return predictor.values(predictor.rows(pd.concat(rows))[0])


def _contrast(results: EnsembleResults, formulas: Formulas) -> list[Quantity]:
    """Compare a difference of two estimates, as `t_test` gives it."""
    coefs = np.zeros(results.values.shape[1])
    coefs[:2] = 1, -1
    made = results.t_test(coefs)
    theirs = formulas.of(results.values @ coefs[:, None], difference="contrast")
    ours = {
        "t_test coef": (made.params, "estimate"),
        "t_test std err": (made.bse, "bse"),
        "t_test P>|t|": (made.pvalues, "p"),
        **_interval(made.conf_int(ALPHA), ("lower", "upper"), "t_test ci"),
    }
    return _quantities(ours, theirs)


def _interval(
    table: pd.DataFrame, columns: tuple[str, str], name: str
) -> dict[str, tuple[Any, str]]:
    """Name the ends of intervals."""
    pairs = zip(columns, ("lower", "upper"), strict=True)
    return {f"{name} {end}": (table[column], end) for column, end in pairs}


def _quantities(
    ours: dict[str, tuple[Any, str]], theirs: dict[str, Floats]
) -> list[Quantity]:
    return [
        Quantity(
            name,
            np.asarray(numbers, dtype=np.float64).ravel(),
            theirs[key],
            TOLERANCE,
            WHY_REPORTED,
        )
        for name, (numbers, key) in ours.items()
    ]


def _scores(results: EnsembleResults, data: pd.DataFrame) -> list[Quantity]:
    """Compare out-of-bag scores; R averages the trees that have not seen a row."""
    if results.predictor is None or results.scores is None or results.recipe is None:
        return []
    X, _ = results.predictor.rows(data)
    values = results.predictor.values(X)
    y, classes = results.recipe.y, results.support is not None
    size = len(data) // results.design.n  # rows of a cluster follow each other
    absent = np.repeat(_counts(results) == 0, size, axis=1)
    theirs = session.call(_SCORES, values, absent, y, classes)
    return [
        Quantity(name, np.array([one]), np.array(theirs[name]), TOLERANCE, WHY_SCORES)
        for name, one in results.scores.table.items()
    ]
