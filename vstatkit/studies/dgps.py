"""Simulation designs: the data-generating processes (DGPs) of the studies.

They were chosen before any estimator was tried on them. No estimator was tuned on
those with `held_out=True`.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit import datasets
from vstatkit._typing import Floats
from vstatkit.formula.design_matrix import Missing

Rng = np.random.Generator
Mean = Callable[[pd.DataFrame], Floats]
Respond = Callable[[Rng, pd.DataFrame, Floats], Floats]

BAND_POINTS = 20  # number of points of a simultaneous band


@dataclass(frozen=True)
class DGP:
    """A data-generating process."""

    name: str  # name of its random streams and checkpoints
    description: str  # one line for the report
    # Draws the predictors, given a Generator and the number of rows
    predictors: Callable[[Rng, int], pd.DataFrame]
    mean: Mean  # E[y|x], shape (n,); for classes their probabilities, shape (n, K)
    respond: Respond  # draws the response, given the predictors and their means
    points: pd.DataFrame  # query points inside the range of the predictors
    n: int = 200  # number of rows of a data set
    null: tuple[str, ...] = ()  # null predictors that are independent of all others
    # Null predictors that are correlated with relevant ones: a forest splits on them,
    # and its expectation depends on them
    proxies: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()  # levels of the response; empty for regression
    groups: str | None = None  # column of clusters
    # Removes values after the response is drawn
    hide: Callable[[Rng, pd.DataFrame], pd.DataFrame] | None = None
    held_out: bool = False  # whether it was set aside while estimators were developed
    formula: ClassVar[str] = "y ~ ."  # all columns except the clusters

    @property
    def missing(self) -> Missing:
        """How `fit` handles missing values."""
        return "drop" if self.hide is None else "pass"

    def __call__(self, rng: Rng) -> pd.DataFrame:
        """Draw a data set."""
        X = self.predictors(rng, self.n)
        y = self.response(rng, X)
        return (X if self.hide is None else self.hide(rng, X)).assign(y=y)

    def response(self, rng: Rng, X: pd.DataFrame) -> pd.Series:
        """Draw the response of given predictors."""
        y = self.respond(rng, X, self.mean(X))
        if not self.classes:
            return pd.Series(y)
        codes = y.astype(int)
        return pd.Series(pd.Categorical.from_codes(codes, pd.Index(self.classes)))

    def band(self) -> pd.DataFrame:
        """Draw the points of the simultaneous band, the same on every call."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        X = self.predictors(rng, self.n)
        rows = X if self.hide is None else self.hide(rng, X)
        rows = rows.iloc[:: self.n // BAND_POINTS].head(BAND_POINTS)
        return rows[self.points.columns].reset_index(drop=True)


# Quantiles of the predictors at each query point, repeated across columns.
DEPTHS = ((0.5,), (0.25,), (0.75,), (0.3, 0.7), (0.65, 0.35))


def predictor_names(p: int) -> list[str]:
    """Name p predictors."""
    return [f"x{j}" for j in range(1, p + 1)]


def uniform_predictors(p: int) -> Callable[[Rng, int], pd.DataFrame]:
    """Return a function that draws p uniform predictors."""
    return lambda rng, n: pd.DataFrame(
        rng.uniform(size=(n, p)), columns=predictor_names(p)
    )


def normal_predictors(p: int) -> Callable[[Rng, int], pd.DataFrame]:
    """Return a function that draws p standard normal predictors."""
    return lambda rng, n: pd.DataFrame(
        rng.standard_normal(size=(n, p)), columns=predictor_names(p)
    )


def query_points(p: int, *, gaussian: bool = False) -> pd.DataFrame:
    """Return query points at moderate quantiles of p predictors."""
    rows = np.array([np.resize(depth, p) for depth in DEPTHS])
    return pd.DataFrame(
        stats.norm.ppf(rows) if gaussian else rows, columns=predictor_names(p)
    )


def add_normal_noise(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Add standard normal noise."""
    return mean + rng.standard_normal(len(X))


def draw_classes(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Draw class codes from their probabilities."""
    u = rng.uniform(size=(len(X), 1))
    return np.asarray((u > mean.cumsum(axis=1)[:, :-1]).sum(axis=1), dtype=np.float64)


def friedman_mean(X: pd.DataFrame) -> Floats:
    """Compute Friedman's function of the first five predictors."""
    x1, x2, x3, x4, x5 = X[predictor_names(5)].to_numpy().T
    return np.asarray(
        10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5
    )


def add_t_noise(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Add Student's t noise with 3 degrees of freedom."""
    return mean + rng.standard_t(3, size=len(X))


def _add_heteroskedastic_noise(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    spread = 0.2 + 2 * X["x1"].to_numpy()
    return np.asarray(mean + spread * rng.standard_normal(len(X)))


def _wave_mean(X: pd.DataFrame) -> Floats:
    return np.asarray(2 * X["x1"] + np.sin(2 * np.pi * X["x2"]))


CORRELATION = 0.9


def draw_chain(rng: Rng, n: int) -> pd.DataFrame:
    """Draw a chain of five correlated predictors, and two independent ones."""
    x = rng.standard_normal(size=(n, 7))
    for j in range(1, 5):
        x[:, j] = CORRELATION * x[:, j - 1] + np.sqrt(1 - CORRELATION**2) * x[:, j]
    return pd.DataFrame(x, columns=predictor_names(7))


def chain_points() -> pd.DataFrame:
    """Return query points with all five predictors of the chain at one quantile."""
    rows = query_points(7, gaussian=True)
    return rows.assign(**{name: rows["x1"] for name in predictor_names(5)})


def chain_mean(X: pd.DataFrame) -> Floats:
    """Add the first and the fourth predictor of the chain."""
    return np.asarray(X["x1"] + X["x4"])


LEVELS = tuple("abcdefghijkl")
LEVEL_MEANS = np.array(
    [0.0, 1.2, -0.7, 0.3, -1.5, 0.8, 2.0, -0.2, 0.5, -1.0, 1.6, -0.4]
)
NULL_LEVELS = tuple("pqrs")


def _draw_factors(rng: Rng, n: int) -> pd.DataFrame:
    """Draw a factor of twelve levels, one of four, and two uniform predictors."""
    factors = {
        name: pd.Categorical.from_codes(
            rng.integers(len(levels), size=n), pd.Index(levels)
        )
        for name, levels in (("g", LEVELS), ("h", NULL_LEVELS))
    }
    x = rng.uniform(size=(n, 2))
    return pd.DataFrame({**factors, "x1": x[:, 0], "x2": x[:, 1]})


def _factor_points() -> pd.DataFrame:
    """Return query points at five of the twelve levels."""
    g = pd.Categorical(list("abegk"), categories=LEVELS)
    h = pd.Categorical(list("pqrsp"), categories=NULL_LEVELS)
    return query_points(2).assign(g=g, h=h)[["g", "h", "x1", "x2"]]


def _level_mean(X: pd.DataFrame) -> Floats:
    codes = pd.Categorical(X["g"]).codes
    return np.asarray(LEVEL_MEANS[codes] + 2 * X["x1"].to_numpy())


def _binary_probabilities(intercept: float) -> Mean:
    """Return a function that computes the probabilities of no and yes."""

    def probabilities(X: pd.DataFrame) -> Floats:
        logit = np.asarray(intercept + 3 * (X["x1"] - 0.5) + 2 * (X["x2"] - 0.5))
        p = 1 / (1 + np.exp(-logit))
        return np.column_stack([1 - p, p])

    return probabilities


def _three_class_probabilities(X: pd.DataFrame) -> Floats:
    scores = np.column_stack([2 * X["x1"], 2 * X["x2"], np.ones(len(X))])
    powers = np.exp(scores)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


CLUSTER_SIZE = 6


def _draw_clusters(rng: Rng, n: int) -> pd.DataFrame:
    """Draw rows in clusters; x2 and x4 are constant within clusters."""
    cluster = np.arange(n) // CLUSTER_SIZE
    x = rng.uniform(size=(n, 4))
    x[:, [1, 3]] = rng.uniform(size=(cluster[-1] + 1, 2))[cluster]
    return pd.DataFrame(x, columns=predictor_names(4)).assign(cluster=cluster)


def _add_random_effects(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Add an effect for each cluster, and normal noise."""
    cluster = X["cluster"].to_numpy()
    effects = rng.standard_normal(cluster.max() + 1)
    return np.asarray(mean + effects[cluster] + rng.standard_normal(len(X)))


SHARES_MISSING = np.array([0.2, 0.1, 0.3, 0.0])


def _step_mean(X: pd.DataFrame) -> Floats:
    corner = (X["x2"] > 0.3) & (X["x3"] < 0.6)
    return np.asarray(4 * (X["x1"] > 0.5) + 2 * corner, dtype=np.float64)


LOG_SPREAD = 0.6


def _draw_lognormal(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Multiply the mean by lognormal noise of mean one."""
    factor = LOG_SPREAD * rng.standard_normal(len(X)) - LOG_SPREAD**2 / 2
    return np.asarray(mean * np.exp(factor))


def _uniform_dgp(
    name: str,
    description: str,
    relevant: tuple[int, int],
    mean: Mean,
    respond: Respond = add_normal_noise,
    *,
    points: pd.DataFrame | None = None,
    **options: Any,
) -> DGP:
    """Define a DGP of uniform predictors, with the number of relevant ones, of all."""
    first, p = relevant
    return DGP(
        *(name, description, uniform_predictors(p), mean, respond),
        query_points(p) if points is None else points,
        null=tuple(predictor_names(p)[first:]),
        **options,
    )


NO_YES = ("no", "yes")

_DESIGNS = (
    _uniform_dgp(
        "mars",
        "Friedman's function of five uniform predictors",
        *((5, 5), friedman_mean),
        n=250,
    ),
    _uniform_dgp(
        "friedman10",
        "Friedman's function and five null predictors",
        *((5, 10), friedman_mean),
    ),
    _uniform_dgp(
        "noise",
        "five null predictors",
        *((0, 5), lambda X: np.zeros(len(X))),
    ),
    DGP(
        "linear20",
        "twenty normal predictors; ten have the slopes 1, 1/2, ..., 1/10",
        normal_predictors(20),
        lambda X: X[predictor_names(10)].to_numpy() @ (1 / np.arange(1, 11)),
        add_normal_noise,
        query_points(20, gaussian=True),
        null=tuple(predictor_names(20)[10:]),
    ),
    _uniform_dgp(
        "heavy",
        "a line and a wave; Student's t errors with 3 degrees of freedom",
        *((2, 4), _wave_mean, add_t_noise),
    ),
    _uniform_dgp(
        "spread",
        "a line and a wave; the standard deviation of the errors is 0.2 + 2 x1",
        *((2, 4), _wave_mean, _add_heteroskedastic_noise),
    ),
    DGP(
        "correlated",
        "a chain of five normal predictors correlated at 0.9, two of them relevant",
        *(draw_chain, chain_mean, add_normal_noise, chain_points()),
        null=("x6", "x7"),
        proxies=("x2", "x3", "x5"),
    ),
    DGP(
        "levels",
        "a factor of twelve levels and a slope; a null factor of four levels",
        *(_draw_factors, _level_mean, add_normal_noise, _factor_points()),
        n=240,
        null=("h", "x2"),
    ),
    _uniform_dgp(
        "binary",
        "two balanced classes",
        *((2, 4), _binary_probabilities(0.0), draw_classes),
        classes=NO_YES,
    ),
    _uniform_dgp(
        "rare",
        "two classes, one of them in 5 % of the rows",
        *((2, 4), _binary_probabilities(-3.35), draw_classes),
        n=300,
        classes=NO_YES,
    ),
    _uniform_dgp(
        "three",
        "three classes",
        *((2, 4), _three_class_probabilities, draw_classes),
        n=240,
        classes=("a", "b", "c"),
    ),
    DGP(
        "clusters",
        "forty clusters of six rows; random effects as large as the noise",
        _draw_clusters,
        lambda X: np.asarray(3 * X["x1"] + 2 * X["x2"]),
        *(_add_random_effects, query_points(4)),
        n=240,
        null=("x3", "x4"),
        groups="cluster",
    ),
    _uniform_dgp(
        "missing",
        "a line and a wave; 10 to 30 % of three predictors missing at random",
        *((2, 4), _wave_mean),
        points=query_points(4).assign(x1=[0.5, 0.25, 0.75, 0.3, np.nan]),
        hide=lambda rng, X: X.mask(rng.uniform(size=X.shape) < SHARES_MISSING),
    ),
    _uniform_dgp(
        "jumps",
        "steps in three predictors",
        *((3, 5), _step_mean),
        points=query_points(5).replace(0.5, 0.4),  # away from a step
        held_out=True,
    ),
    _uniform_dgp(
        "counts",
        "Poisson counts with a mean of 1.3 to 8",
        *((2, 4), lambda X: np.asarray(np.exp(0.3 + X["x1"] + 0.8 * X["x2"]))),
        lambda rng, X, mean: rng.poisson(mean).astype(np.float64),
        held_out=True,
    ),
    _uniform_dgp(
        "exclusive",
        "the exclusive or of two predictors; neither has a main effect",
        *((2, 4), lambda X: 2 * np.sign((X["x1"] - 0.5) * (X["x2"] - 0.5)).to_numpy()),
        points=query_points(4).replace(0.5, 0.4),  # away from a step
        held_out=True,
    ),
    _uniform_dgp(
        "lognormal",
        "a positive, skewed response",
        (2, 4),
        lambda X: np.asarray(np.exp(X["x1"] + 0.5 * X["x2"] + LOG_SPREAD**2 / 2)),
        _draw_lognormal,
        held_out=True,
    ),
)
# Simulation designs by name, in the order of the report; held-out ones are last.
DGPS: dict[str, DGP] = {dgp.name: dgp for dgp in _DESIGNS}


def select_dgps(names: Sequence[str] | None) -> list[DGP]:
    """Look simulation designs up by name; all of them by default."""
    for name in names or ():
        if name not in DGPS:
            raise ValueError(
                f"designs must be some of {', '.join(DGPS)}; got {name!r}."
            )
    return [dgp for dgp in DGPS.values() if names is None or dgp.name in names]


@dataclass(frozen=True)
class Mars:
    """Friedman's function with the centre 0.05 of the quadratic term, as printed."""

    n: int = 500
    offset: float = 0.05

    def __call__(self, rng: Rng) -> pd.DataFrame:
        """Draw a data set."""
        return datasets.mars(self.n, rng=rng, offset=self.offset)


@dataclass(frozen=True)
class Line:
    """`y = 2 x + e`, with x uniform on (0, 20) and standard normal noise."""

    n: int = 500

    def __call__(self, rng: Rng) -> pd.DataFrame:
        """Draw a data set."""
        x = 20 * rng.uniform(size=self.n)
        return pd.DataFrame({"x": x, "y": 2 * x + rng.standard_normal(self.n)})
