"""Simulation designs: the data-generating processes (DGPs) of the studies.

They were chosen before any estimator was tried on them. No estimator was tuned on
those with `held_out=True`.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit import datasets
from vstatkit._typing import Floats
from vstatkit.formula.design_matrix import Missing

Rng = np.random.Generator

BAND_POINTS = 20  # number of points of a simultaneous band


@dataclass(frozen=True)
class DGP:
    """A data-generating process.

    Attributes
    ----------
    name : str
        Name of its random streams and checkpoints.
    description : str
        One line for the report.
    predictors : callable
        Draws the predictors, given a Generator and the number of rows.
    mean : callable
        E[y|x], shape (n,); for classes their probabilities, shape (n, K).
    respond : callable
        Draws the response, given a Generator, the predictors and their means.
    points : DataFrame
        Query points inside the range of the predictors.
    n : int
        Number of rows of a data set.
    null : tuple of str
        Null predictors that are independent of all others.
    proxies : tuple of str
        Null predictors that are correlated with relevant ones: a forest splits on
        them, and its expectation depends on them.
    classes : tuple of str
        Levels of the response; empty for regression.
    groups : str or None
        Column of clusters.
    hide : callable or None
        Removes values after the response is drawn.
    held_out : bool
        Whether the design was set aside while estimators were developed.
    """

    name: str
    description: str
    predictors: Callable[[Rng, int], pd.DataFrame]
    mean: Callable[[pd.DataFrame], Floats]
    respond: Callable[[Rng, pd.DataFrame, Floats], Floats]
    points: pd.DataFrame
    n: int = 200
    null: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    groups: str | None = None
    hide: Callable[[Rng, pd.DataFrame], pd.DataFrame] | None = None
    held_out: bool = False

    @property
    def formula(self) -> str:
        """Formula of the response: all columns except the clusters."""
        return "y ~ ."

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


def zero_mean(X: pd.DataFrame) -> Floats:
    """Return zero for every row."""
    return np.zeros(len(X))


def linear_mean(X: pd.DataFrame) -> Floats:
    """Add the first ten predictors with slopes 1, 1/2, ..., 1/10."""
    return np.asarray(X[predictor_names(10)].to_numpy() @ (1 / np.arange(1, 11)))


def wave_mean(X: pd.DataFrame) -> Floats:
    """Add a line in the first predictor and a sine wave in the second."""
    return np.asarray(2 * X["x1"] + np.sin(2 * np.pi * X["x2"]))


def add_t_noise(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Add Student's t noise with 3 degrees of freedom."""
    return mean + rng.standard_t(3, size=len(X))


def add_heteroskedastic_noise(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Add normal noise whose spread grows with the first predictor."""
    spread = 0.2 + 2 * X["x1"].to_numpy()
    return np.asarray(mean + spread * rng.standard_normal(len(X)))


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
NULL_LEVELS = ("p", "q", "r", "s")


def draw_factors(rng: Rng, n: int) -> pd.DataFrame:
    """Draw a factor of twelve levels, one of four, and two uniform predictors."""
    g = pd.Categorical.from_codes(rng.integers(len(LEVELS), size=n), pd.Index(LEVELS))
    h = pd.Categorical.from_codes(
        rng.integers(len(NULL_LEVELS), size=n), pd.Index(NULL_LEVELS)
    )
    x = rng.uniform(size=(n, 2))
    return pd.DataFrame({"g": g, "h": h, "x1": x[:, 0], "x2": x[:, 1]})


def factor_points() -> pd.DataFrame:
    """Return query points at five of the twelve levels."""
    points = query_points(2)
    g = pd.Categorical(list("abegk"), categories=LEVELS)
    return points.assign(g=g, h=pd.Categorical(list("pqrsp"), categories=NULL_LEVELS))[
        ["g", "h", "x1", "x2"]
    ]


def level_mean(X: pd.DataFrame) -> Floats:
    """Add the mean of the level and a slope."""
    codes = pd.Categorical(X["g"]).codes
    return np.asarray(LEVEL_MEANS[codes] + 2 * X["x1"].to_numpy())


def binary_probabilities(intercept: float) -> Callable[[pd.DataFrame], Floats]:
    """Return a function that computes the probabilities of no and yes."""

    def probabilities(X: pd.DataFrame) -> Floats:
        logit = np.asarray(intercept + 3 * (X["x1"] - 0.5) + 2 * (X["x2"] - 0.5))
        p = 1 / (1 + np.exp(-logit))
        return np.column_stack([1 - p, p])

    return probabilities


def three_class_probabilities(X: pd.DataFrame) -> Floats:
    """Compute the probabilities of three classes."""
    scores = np.column_stack([2 * X["x1"], 2 * X["x2"], np.ones(len(X))])
    powers = np.exp(scores)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


CLUSTER_SIZE = 6


def draw_clusters(rng: Rng, n: int) -> pd.DataFrame:
    """Draw rows in clusters; x2 and x4 are constant within clusters."""
    cluster = np.arange(n) // CLUSTER_SIZE
    x = rng.uniform(size=(n, 4))
    shared = rng.uniform(size=(cluster[-1] + 1, 2))[cluster]
    x[:, [1, 3]] = shared
    return pd.DataFrame(x, columns=predictor_names(4)).assign(cluster=cluster)


def slope_mean(X: pd.DataFrame) -> Floats:
    """Add slopes of the first two predictors."""
    return np.asarray(3 * X["x1"] + 2 * X["x2"])


def add_random_effects(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Add an effect for each cluster, and normal noise."""
    cluster = X["cluster"].to_numpy()
    effects = rng.standard_normal(cluster.max() + 1)
    return np.asarray(mean + effects[cluster] + rng.standard_normal(len(X)))


SHARES_MISSING = (0.2, 0.1, 0.3, 0.0)


def remove_at_random(rng: Rng, X: pd.DataFrame) -> pd.DataFrame:
    """Remove values completely at random."""
    hidden = rng.uniform(size=X.shape) < np.array(SHARES_MISSING)
    return X.mask(hidden)


def points_with_missing() -> pd.DataFrame:
    """Return query points, the last with a missing value."""
    points = query_points(4)
    points.loc[len(points) - 1, "x1"] = np.nan
    return points


def off_step_points(p: int) -> pd.DataFrame:
    """Return query points away from one half, where the steps are."""
    return query_points(p).replace(0.5, 0.4)


def step_mean(X: pd.DataFrame) -> Floats:
    """Compute a step function of three predictors."""
    corner = (X["x2"] > 0.3) & (X["x3"] < 0.6)
    return np.asarray(4 * (X["x1"] > 0.5) + 2 * corner, dtype=np.float64)


def poisson_mean(X: pd.DataFrame) -> Floats:
    """Compute the mean of Poisson counts."""
    return np.asarray(np.exp(0.3 + X["x1"] + 0.8 * X["x2"]))


def draw_counts(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Draw Poisson counts."""
    return rng.poisson(mean).astype(np.float64)


def xor_mean(X: pd.DataFrame) -> Floats:
    """Compute twice the sign of the product of two centred predictors."""
    return np.asarray(2 * np.sign((X["x1"] - 0.5) * (X["x2"] - 0.5)))


LOG_SPREAD = 0.6


def lognormal_mean(X: pd.DataFrame) -> Floats:
    """Compute the mean of a lognormal response."""
    return np.asarray(np.exp(X["x1"] + 0.5 * X["x2"] + LOG_SPREAD**2 / 2))


def draw_lognormal(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Multiply the mean by lognormal noise of mean one."""
    factor = LOG_SPREAD * rng.standard_normal(len(X)) - LOG_SPREAD**2 / 2
    return np.asarray(mean * np.exp(factor))


NO_YES = ("no", "yes")

# Simulation designs by name, in the order of the report; held-out ones are last.
DGPS: dict[str, DGP] = {
    dgp.name: dgp
    for dgp in (
        DGP(
            "mars",
            "Friedman's function of five uniform predictors, all at work",
            *(uniform_predictors(5), friedman_mean, add_normal_noise, query_points(5)),
            n=250,
        ),
        DGP(
            "friedman10",
            "the same function, five more predictors do nothing",
            uniform_predictors(10),
            friedman_mean,
            add_normal_noise,
            query_points(10),
            null=("x6", "x7", "x8", "x9", "x10"),
        ),
        DGP(
            "noise",
            "five predictors, none of which does anything",
            *(uniform_predictors(5), zero_mean, add_normal_noise, query_points(5)),
            null=("x1", "x2", "x3", "x4", "x5"),
        ),
        DGP(
            "linear20",
            "twenty normal predictors, ten with the slopes 1, 1/2, ..., 1/10",
            normal_predictors(20),
            linear_mean,
            add_normal_noise,
            query_points(20, gaussian=True),
            null=tuple(predictor_names(20)[10:]),
        ),
        DGP(
            "heavy",
            "a line and a wave, errors by Student's t with 3 degrees of freedom",
            *(uniform_predictors(4), wave_mean, add_t_noise, query_points(4)),
            null=("x3", "x4"),
        ),
        DGP(
            "spread",
            "a line and a wave, errors whose spread grows elevenfold with x1",
            uniform_predictors(4),
            wave_mean,
            add_heteroskedastic_noise,
            query_points(4),
            null=("x3", "x4"),
        ),
        DGP(
            "correlated",
            "a chain of five normal predictors correlated at 0.9, two of them at work",
            *(draw_chain, chain_mean, add_normal_noise, chain_points()),
            null=("x6", "x7"),
            proxies=("x2", "x3", "x5"),
        ),
        DGP(
            "levels",
            "a factor of twelve levels and a slope; a factor of four does nothing",
            *(draw_factors, level_mean, add_normal_noise, factor_points()),
            n=240,
            null=("h", "x2"),
        ),
        DGP(
            "binary",
            "two classes in balance",
            uniform_predictors(4),
            binary_probabilities(0.0),
            draw_classes,
            query_points(4),
            null=("x3", "x4"),
            classes=NO_YES,
        ),
        DGP(
            "rare",
            "two classes, one of them in 5 % of the rows",
            uniform_predictors(4),
            binary_probabilities(-3.35),
            draw_classes,
            query_points(4),
            n=300,
            null=("x3", "x4"),
            classes=NO_YES,
        ),
        DGP(
            "three",
            "three classes",
            uniform_predictors(4),
            three_class_probabilities,
            draw_classes,
            query_points(4),
            n=240,
            null=("x3", "x4"),
            classes=("a", "b", "c"),
        ),
        DGP(
            "clusters",
            "forty clusters of six rows, random effects as large as the noise",
            *(draw_clusters, slope_mean, add_random_effects, query_points(4)),
            n=240,
            null=("x3", "x4"),
            groups="cluster",
        ),
        DGP(
            "missing",
            "a line and a wave; 10 to 30 % of three predictors missing at random",
            uniform_predictors(4),
            wave_mean,
            add_normal_noise,
            points_with_missing(),
            null=("x3", "x4"),
            hide=remove_at_random,
        ),
        DGP(
            "jumps",
            "steps in three predictors",
            *(uniform_predictors(5), step_mean, add_normal_noise, off_step_points(5)),
            null=("x4", "x5"),
            held_out=True,
        ),
        DGP(
            "counts",
            "Poisson counts with a mean of 1.3 to 8",
            *(uniform_predictors(4), poisson_mean, draw_counts, query_points(4)),
            null=("x3", "x4"),
            held_out=True,
        ),
        DGP(
            "exclusive",
            "the exclusive or of two predictors, neither of which acts alone",
            *(uniform_predictors(4), xor_mean, add_normal_noise, off_step_points(4)),
            null=("x3", "x4"),
            held_out=True,
        ),
        DGP(
            "lognormal",
            "a positive, skewed response",
            *(uniform_predictors(4), lognormal_mean, draw_lognormal, query_points(4)),
            null=("x3", "x4"),
            held_out=True,
        ),
    )
}


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

    def __call__(self, rng: np.random.Generator) -> pd.DataFrame:
        """Draw a data set."""
        return datasets.mars(self.n, rng=rng, offset=self.offset)


@dataclass(frozen=True)
class Line:
    """`y = 2 x + e`, with x uniform on (0, 20) and standard normal noise."""

    n: int = 500

    def __call__(self, rng: np.random.Generator) -> pd.DataFrame:
        """Draw a data set."""
        x = 20 * rng.uniform(size=self.n)
        return pd.DataFrame({"x": x, "y": 2 * x + rng.standard_normal(self.n)})
