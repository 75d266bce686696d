"""Simulation designs: the data-generating processes of the studies.

They were chosen before any estimator was tried on them. No estimator is tuned on
those with `held=True`.
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

BAND_POINTS = 20
"""Points at which a simultaneous band must hold."""


@dataclass(frozen=True)
class Law:
    """How data sets are drawn, and what is known about them.

    Attributes
    ----------
    name : str
        Name of its streams and checkpoints.
    description : str
        One line for the report.
    predictors : callable
        Draws the predictors of a number of rows, from a stream.
    mean : callable
        Noiseless mean of the response, shape (n,); for classes their probabilities,
        shape (n, K).
    respond : callable
        Draws the response, given a stream, the predictors and their means.
    points : DataFrame
        Query points inside the range of the predictors.
    n : int
        Rows of a data set.
    dead : tuple of str
        Predictors that do nothing, and are independent of those that do.
    shadows : tuple of str
        Predictors that do nothing but are correlated with some that do: a forest
        splits on them, and its own mean moves with them.
    classes : tuple of str
        Levels of the response; empty for regression.
    groups : str or None
        Column of clusters.
    hide : callable or None
        Removes values after the response was drawn.
    held : bool
        Whether the law is set aside while estimators are developed.
    """

    name: str
    description: str
    predictors: Callable[[Rng, int], pd.DataFrame]
    mean: Callable[[pd.DataFrame], Floats]
    respond: Callable[[Rng, pd.DataFrame, Floats], Floats]
    points: pd.DataFrame
    n: int = 200
    dead: tuple[str, ...] = ()
    shadows: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    groups: str | None = None
    hide: Callable[[Rng, pd.DataFrame], pd.DataFrame] | None = None
    held: bool = False

    @property
    def formula(self) -> str:
        """Explain the response by all columns but the clusters."""
        return "y ~ ."

    @property
    def missing(self) -> Missing:
        """What `fit` does with missing values."""
        return "drop" if self.hide is None else "pass"

    def __call__(self, rng: Rng) -> pd.DataFrame:
        """Draw a data set."""
        X = self.predictors(rng, self.n)
        y = self.response(rng, X)
        shown = X if self.hide is None else self.hide(rng, X)
        return shown.assign(y=y)

    def response(self, rng: Rng, X: pd.DataFrame) -> pd.Series:
        """Draw the response of given predictors."""
        drawn = self.respond(rng, X, self.mean(X))
        if not self.classes:
            return pd.Series(drawn)
        codes = drawn.astype(int)
        return pd.Series(pd.Categorical.from_codes(codes, pd.Index(self.classes)))

    def band(self) -> pd.DataFrame:
        """Points that the law draws, the same on every call."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        X = self.predictors(rng, self.n)
        shown = X if self.hide is None else self.hide(rng, X)
        spread = shown.iloc[:: self.n // BAND_POINTS].head(BAND_POINTS)
        return spread[self.points.columns].reset_index(drop=True)


DEPTHS = ((0.5,), (0.25,), (0.75,), (0.3, 0.7), (0.65, 0.35))
"""Quantiles of the predictors at each query point, repeated across its columns."""


def names(p: int) -> list[str]:
    """Name p predictors."""
    return [f"x{j}" for j in range(1, p + 1)]


def uniform(p: int) -> Callable[[Rng, int], pd.DataFrame]:
    """Draw p uniform predictors."""
    return lambda rng, n: pd.DataFrame(rng.uniform(size=(n, p)), columns=names(p))


def normal(p: int) -> Callable[[Rng, int], pd.DataFrame]:
    """Draw p standard normal predictors."""
    return lambda rng, n: pd.DataFrame(
        rng.standard_normal(size=(n, p)), columns=names(p)
    )


def inside(p: int, *, gaussian: bool = False) -> pd.DataFrame:
    """Query points at moderate quantiles of p predictors."""
    rows = np.array([np.resize(depth, p) for depth in DEPTHS])
    return pd.DataFrame(stats.norm.ppf(rows) if gaussian else rows, columns=names(p))


def gauss(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Add standard normal noise."""
    return mean + rng.standard_normal(len(X))


def choose(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Draw class codes from their probabilities."""
    u = rng.uniform(size=(len(X), 1))
    return np.asarray((u > mean.cumsum(axis=1)[:, :-1]).sum(axis=1), dtype=np.float64)


def friedman(X: pd.DataFrame) -> Floats:
    """Friedman's function of the first five predictors."""
    x1, x2, x3, x4, x5 = X[names(5)].to_numpy().T
    return np.asarray(
        10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5
    )


def nothing(X: pd.DataFrame) -> Floats:
    """Let no predictor do anything."""
    return np.zeros(len(X))


def linear(X: pd.DataFrame) -> Floats:
    """Slopes 1, 1/2, ..., 1/10 of the first ten predictors."""
    return np.asarray(X[names(10)].to_numpy() @ (1 / np.arange(1, 11)))


def wave(X: pd.DataFrame) -> Floats:
    """Add a line in the first predictor and a sine wave in the second."""
    return np.asarray(2 * X["x1"] + np.sin(2 * np.pi * X["x2"]))


def heavy(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Add errors from Student's t distribution with 3 degrees of freedom."""
    return mean + rng.standard_t(3, size=len(X))


def fanned(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Add normal noise whose spread grows with the first predictor."""
    spread = 0.2 + 2 * X["x1"].to_numpy()
    return np.asarray(mean + spread * rng.standard_normal(len(X)))


CORRELATION = 0.9


def chain(rng: Rng, n: int) -> pd.DataFrame:
    """Draw a chain of five correlated predictors, and two independent ones."""
    x = rng.standard_normal(size=(n, 7))
    for j in range(1, 5):
        x[:, j] = CORRELATION * x[:, j - 1] + np.sqrt(1 - CORRELATION**2) * x[:, j]
    return pd.DataFrame(x, columns=names(7))


def chain_points() -> pd.DataFrame:
    """Query points that follow the chain: all five predictors at the same depth."""
    rows = inside(7, gaussian=True)
    return rows.assign(**{name: rows["x1"] for name in names(5)})


def ends(X: pd.DataFrame) -> Floats:
    """Let the first and the fourth link of the chain act."""
    return np.asarray(X["x1"] + X["x4"])


LEVELS = tuple("abcdefghijkl")
LEVEL_MEANS = np.array(
    [0.0, 1.2, -0.7, 0.3, -1.5, 0.8, 2.0, -0.2, 0.5, -1.0, 1.6, -0.4]
)
DEAD_LEVELS = ("p", "q", "r", "s")


def factors(rng: Rng, n: int) -> pd.DataFrame:
    """Draw a factor of twelve levels, one of four, and two uniform predictors."""
    g = pd.Categorical.from_codes(rng.integers(len(LEVELS), size=n), pd.Index(LEVELS))
    h = pd.Categorical.from_codes(
        rng.integers(len(DEAD_LEVELS), size=n), pd.Index(DEAD_LEVELS)
    )
    x = rng.uniform(size=(n, 2))
    return pd.DataFrame({"g": g, "h": h, "x1": x[:, 0], "x2": x[:, 1]})


def factor_points() -> pd.DataFrame:
    """Query points at five of the twelve levels."""
    points = inside(2)
    g = pd.Categorical(list("abegk"), categories=LEVELS)
    return points.assign(g=g, h=pd.Categorical(list("pqrsp"), categories=DEAD_LEVELS))[
        ["g", "h", "x1", "x2"]
    ]


def by_level(X: pd.DataFrame) -> Floats:
    """Give each of the twelve levels its mean, and add a slope."""
    codes = pd.Categorical(X["g"]).codes
    return np.asarray(LEVEL_MEANS[codes] + 2 * X["x1"].to_numpy())


def two(logit: Callable[[pd.DataFrame], Floats]) -> Callable[[pd.DataFrame], Floats]:
    """Probabilities of no and yes."""

    def probabilities(X: pd.DataFrame) -> Floats:
        p = 1 / (1 + np.exp(-logit(X)))
        return np.column_stack([1 - p, p])

    return probabilities


def balanced(X: pd.DataFrame) -> Floats:
    """Logit of two classes that are equally common."""
    return np.asarray(3 * (X["x1"] - 0.5) + 2 * (X["x2"] - 0.5))


def rare(X: pd.DataFrame) -> Floats:
    """Logit of two classes, one of them in 5 % of the rows."""
    return np.asarray(-3.35 + 3 * (X["x1"] - 0.5) + 2 * (X["x2"] - 0.5))


def three(X: pd.DataFrame) -> Floats:
    """Probabilities of three classes."""
    scores = np.column_stack([2 * X["x1"], 2 * X["x2"], np.ones(len(X))])
    powers = np.exp(scores)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


CLUSTER_SIZE = 6


def clustered(rng: Rng, n: int) -> pd.DataFrame:
    """Draw rows in clusters; x2 and x4 are constant within a cluster."""
    cluster = np.arange(n) // CLUSTER_SIZE
    x = rng.uniform(size=(n, 4))
    shared = rng.uniform(size=(cluster[-1] + 1, 2))[cluster]
    x[:, [1, 3]] = shared
    return pd.DataFrame(x, columns=names(4)).assign(cluster=cluster)


def slope(X: pd.DataFrame) -> Floats:
    """Add slopes of the first two predictors."""
    return np.asarray(3 * X["x1"] + 2 * X["x2"])


def random_effects(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Add an effect for each cluster, and normal noise."""
    cluster = X["cluster"].to_numpy()
    effects = rng.standard_normal(cluster.max() + 1)
    return np.asarray(mean + effects[cluster] + rng.standard_normal(len(X)))


SHARES_MISSING = (0.2, 0.1, 0.3, 0.0)


def holes(rng: Rng, X: pd.DataFrame) -> pd.DataFrame:
    """Remove values at random."""
    hidden = rng.uniform(size=X.shape) < np.array(SHARES_MISSING)
    return X.mask(hidden)


def points_with_a_hole() -> pd.DataFrame:
    """Query points of which the last lacks a value."""
    points = inside(4)
    points.loc[len(points) - 1, "x1"] = np.nan
    return points


def off_the_edges(p: int) -> pd.DataFrame:
    """Query points away from one half, where the steps are."""
    return inside(p).replace(0.5, 0.4)


def jumps(X: pd.DataFrame) -> Floats:
    """Step up and down in three predictors."""
    corner = (X["x2"] > 0.3) & (X["x3"] < 0.6)
    return np.asarray(4 * (X["x1"] > 0.5) + 2 * corner, dtype=np.float64)


def rates(X: pd.DataFrame) -> Floats:
    """Means of Poisson counts."""
    return np.asarray(np.exp(0.3 + X["x1"] + 0.8 * X["x2"]))


def counts(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Draw Poisson counts."""
    return rng.poisson(mean).astype(np.float64)


def exclusive(X: pd.DataFrame) -> Floats:
    """Give the sign of the product of two predictors, each less one half."""
    return np.asarray(2 * np.sign((X["x1"] - 0.5) * (X["x2"] - 0.5)))


LOG_SPREAD = 0.6


def log_mean(X: pd.DataFrame) -> Floats:
    """Mean of a lognormal response."""
    return np.asarray(np.exp(X["x1"] + 0.5 * X["x2"] + LOG_SPREAD**2 / 2))


def lognormal(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Multiply the mean by lognormal noise of mean one."""
    factor = LOG_SPREAD * rng.standard_normal(len(X)) - LOG_SPREAD**2 / 2
    return np.asarray(mean * np.exp(factor))


NO_YES = ("no", "yes")

LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Law(
            "mars",
            "Friedman's function of five uniform predictors, all at work",
            uniform(5),
            friedman,
            gauss,
            inside(5),
            n=250,
        ),
        Law(
            "friedman10",
            "the same function, five more predictors do nothing",
            uniform(10),
            friedman,
            gauss,
            inside(10),
            dead=("x6", "x7", "x8", "x9", "x10"),
        ),
        Law(
            "noise",
            "five predictors, none of which does anything",
            uniform(5),
            nothing,
            gauss,
            inside(5),
            dead=("x1", "x2", "x3", "x4", "x5"),
        ),
        Law(
            "linear20",
            "twenty normal predictors, ten with the slopes 1, 1/2, ..., 1/10",
            normal(20),
            linear,
            gauss,
            inside(20, gaussian=True),
            dead=tuple(names(20)[10:]),
        ),
        Law(
            "heavy",
            "a line and a wave, errors by Student's t with 3 degrees of freedom",
            uniform(4),
            wave,
            heavy,
            inside(4),
            dead=("x3", "x4"),
        ),
        Law(
            "spread",
            "a line and a wave, errors whose spread grows elevenfold with x1",
            uniform(4),
            wave,
            fanned,
            inside(4),
            dead=("x3", "x4"),
        ),
        Law(
            "correlated",
            "a chain of five normal predictors correlated at 0.9, two of them at work",
            chain,
            ends,
            gauss,
            chain_points(),
            dead=("x6", "x7"),
            shadows=("x2", "x3", "x5"),
        ),
        Law(
            "levels",
            "a factor of twelve levels and a slope; a factor of four does nothing",
            factors,
            by_level,
            gauss,
            factor_points(),
            n=240,
            dead=("h", "x2"),
        ),
        Law(
            "binary",
            "two classes in balance",
            uniform(4),
            two(balanced),
            choose,
            inside(4),
            dead=("x3", "x4"),
            classes=NO_YES,
        ),
        Law(
            "rare",
            "two classes, one of them in 5 % of the rows",
            uniform(4),
            two(rare),
            choose,
            inside(4),
            n=300,
            dead=("x3", "x4"),
            classes=NO_YES,
        ),
        Law(
            "three",
            "three classes",
            uniform(4),
            three,
            choose,
            inside(4),
            n=240,
            dead=("x3", "x4"),
            classes=("a", "b", "c"),
        ),
        Law(
            "clusters",
            "forty clusters of six rows, random effects as large as the noise",
            clustered,
            slope,
            random_effects,
            inside(4),
            n=240,
            dead=("x3", "x4"),
            groups="cluster",
        ),
        Law(
            "missing",
            "a line and a wave; 10 to 30 % of three predictors missing at random",
            uniform(4),
            wave,
            gauss,
            points_with_a_hole(),
            dead=("x3", "x4"),
            hide=holes,
        ),
        Law(
            "jumps",
            "steps in three predictors",
            uniform(5),
            jumps,
            gauss,
            off_the_edges(5),
            dead=("x4", "x5"),
            held=True,
        ),
        Law(
            "counts",
            "Poisson counts with a mean of 1.3 to 8",
            uniform(4),
            rates,
            counts,
            inside(4),
            dead=("x3", "x4"),
            held=True,
        ),
        Law(
            "exclusive",
            "the exclusive or of two predictors, neither of which acts alone",
            uniform(4),
            exclusive,
            gauss,
            off_the_edges(4),
            dead=("x3", "x4"),
            held=True,
        ),
        Law(
            "lognormal",
            "a positive, skewed response",
            uniform(4),
            log_mean,
            lognormal,
            inside(4),
            dead=("x3", "x4"),
            held=True,
        ),
    )
}
"""Laws by name, in the order of the report; those set aside come last."""


def chosen_laws(wanted: Sequence[str] | None) -> list[Law]:
    """Look laws up by name; all of them by default."""
    for name in wanted or ():
        if name not in LAWS:
            raise ValueError(f"laws must be some of {', '.join(LAWS)}; got {name!r}.")
    return [law for law in LAWS.values() if wanted is None or law.name in wanted]


@dataclass(frozen=True)
class Mars:
    """Friedman's function with the constant 0.05 that the paper prints.

    Attributes
    ----------
    n : int
        Observations.
    offset : float
        Centre of the quadratic term.
    """

    n: int = 500
    offset: float = 0.05

    def __call__(self, rng: np.random.Generator) -> pd.DataFrame:
        """Draw a data set."""
        return datasets.mars(self.n, rng=rng, offset=self.offset)


@dataclass(frozen=True)
class Line:
    """`y = 2 x + e`, with x uniform on (0, 20) and standard normal noise.

    Attributes
    ----------
    n : int
        Observations.
    """

    n: int = 500

    def __call__(self, rng: np.random.Generator) -> pd.DataFrame:
        """Draw a data set."""
        x = 20 * rng.uniform(size=self.n)
        return pd.DataFrame({"x": x, "y": 2 * x + rng.standard_normal(self.n)})
