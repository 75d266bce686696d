"""Laws that the validity study draws its data sets from.

They were chosen before any estimator was held against them. Those with
`held=True` stay aside while estimators are made: nothing is tuned on them.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.formula.matrices import Missing

Rng = np.random.Generator

BAND_POINTS = 20
"""Points that a simultaneous band is to hold at."""

DEPTHS = ((0.5,), (0.25,), (0.75,), (0.3, 0.7), (0.65, 0.35))
"""Quantiles of the predictors at the query points, repeated along a row."""


@dataclass(frozen=True)
class Law:
    """How data sets are drawn, and what is known of them.

    Attributes
    ----------
    name : str
        Name of its streams and checkpoints.
    description : str
        One line for the report.
    predictors : callable
        Predictors of a number of rows, from a stream.
    mean : callable
        Noiseless mean of the response, shape (n,); of classes their probabilities,
        shape (n, K).
    respond : callable
        Response, from a stream, the predictors and their means.
    points : DataFrame
        Query points inside the law.
    n : int
        Rows of a data set.
    dead : tuple of str
        Predictors that do nothing, and are independent of those that do.
    shadows : tuple of str
        Predictors that do nothing, but go along with some that do: a forest
        splits on them, and its own mean moves with them.
    classes : tuple of str
        Levels of the response; empty for regression.
    groups : str or None
        Column of clusters.
    hide : callable or None
        Takes values away after the response was drawn.
    held : bool
        Whether the law stays aside while estimators are made.
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
        """All columns but the clusters explain the response."""
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
        """Points that the law draws, the same for ever."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        X = self.predictors(rng, self.n)
        shown = X if self.hide is None else self.hide(rng, X)
        spread = shown.iloc[:: self.n // BAND_POINTS].head(BAND_POINTS)
        return spread[self.points.columns].reset_index(drop=True)


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
    """Draw the codes of classes by their probabilities."""
    u = rng.uniform(size=(len(X), 1))
    return np.asarray((u > mean.cumsum(axis=1)[:, :-1]).sum(axis=1), dtype=np.float64)


def friedman(X: pd.DataFrame) -> Floats:
    """Friedman's function of the first five predictors."""
    x1, x2, x3, x4, x5 = X[names(5)].to_numpy().T
    return np.asarray(
        10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5
    )


def _nothing(X: pd.DataFrame) -> Floats:
    return np.zeros(len(X))


def _linear(X: pd.DataFrame) -> Floats:
    return np.asarray(X[names(10)].to_numpy() @ (1 / np.arange(1, 11)))


def _wave(X: pd.DataFrame) -> Floats:
    return np.asarray(2 * X["x1"] + np.sin(2 * np.pi * X["x2"]))


def _heavy(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    return mean + rng.standard_t(3, size=len(X))


def _fanned(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    spread = 0.2 + 2 * X["x1"].to_numpy()
    return np.asarray(mean + spread * rng.standard_normal(len(X)))


CORRELATION = 0.9


def _chain(rng: Rng, n: int) -> pd.DataFrame:
    """Five predictors that follow each other, and two by themselves."""
    x = rng.standard_normal(size=(n, 7))
    for j in range(1, 5):
        x[:, j] = CORRELATION * x[:, j - 1] + np.sqrt(1 - CORRELATION**2) * x[:, j]
    return pd.DataFrame(x, columns=names(7))


def _chain_points() -> pd.DataFrame:
    """Let the points follow the chain: all five at the same depth."""
    rows = inside(7, gaussian=True)
    return rows.assign(**{name: rows["x1"] for name in names(5)})


def _ends(X: pd.DataFrame) -> Floats:
    return np.asarray(X["x1"] + X["x4"])


LEVELS = tuple("abcdefghijkl")
LEVEL_MEANS = np.array(
    [0.0, 1.2, -0.7, 0.3, -1.5, 0.8, 2.0, -0.2, 0.5, -1.0, 1.6, -0.4]
)
DEAD_LEVELS = ("p", "q", "r", "s")


def _factors(rng: Rng, n: int) -> pd.DataFrame:
    g = pd.Categorical.from_codes(rng.integers(len(LEVELS), size=n), pd.Index(LEVELS))
    h = pd.Categorical.from_codes(
        rng.integers(len(DEAD_LEVELS), size=n), pd.Index(DEAD_LEVELS)
    )
    x = rng.uniform(size=(n, 2))
    return pd.DataFrame({"g": g, "h": h, "x1": x[:, 0], "x2": x[:, 1]})


def _factor_points() -> pd.DataFrame:
    points = inside(2)
    g = pd.Categorical(list("abegk"), categories=LEVELS)
    return points.assign(g=g, h=pd.Categorical(list("pqrsp"), categories=DEAD_LEVELS))[
        ["g", "h", "x1", "x2"]
    ]


def _by_level(X: pd.DataFrame) -> Floats:
    codes = pd.Categorical(X["g"]).codes
    return np.asarray(LEVEL_MEANS[codes] + 2 * X["x1"].to_numpy())


def _two(logit: Callable[[pd.DataFrame], Floats]) -> Callable[[pd.DataFrame], Floats]:
    """Probabilities of no and yes."""

    def probabilities(X: pd.DataFrame) -> Floats:
        p = 1 / (1 + np.exp(-logit(X)))
        return np.column_stack([1 - p, p])

    return probabilities


def _balanced(X: pd.DataFrame) -> Floats:
    return np.asarray(3 * (X["x1"] - 0.5) + 2 * (X["x2"] - 0.5))


def _rare(X: pd.DataFrame) -> Floats:
    return np.asarray(-3.35 + 3 * (X["x1"] - 0.5) + 2 * (X["x2"] - 0.5))


def _three(X: pd.DataFrame) -> Floats:
    scores = np.column_stack([2 * X["x1"], 2 * X["x2"], np.ones(len(X))])
    powers = np.exp(scores)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


CLUSTER_SIZE = 6


def _clustered(rng: Rng, n: int) -> pd.DataFrame:
    """Rows in clusters; x2 and x4 are the same within one."""
    cluster = np.arange(n) // CLUSTER_SIZE
    x = rng.uniform(size=(n, 4))
    shared = rng.uniform(size=(cluster[-1] + 1, 2))[cluster]
    x[:, [1, 3]] = shared
    return pd.DataFrame(x, columns=names(4)).assign(cluster=cluster)


def _slope(X: pd.DataFrame) -> Floats:
    return np.asarray(3 * X["x1"] + 2 * X["x2"])


def _random_effects(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    cluster = X["cluster"].to_numpy()
    effects = rng.standard_normal(cluster.max() + 1)
    return np.asarray(mean + effects[cluster] + rng.standard_normal(len(X)))


SHARES_MISSING = (0.2, 0.1, 0.3, 0.0)


def _holes(rng: Rng, X: pd.DataFrame) -> pd.DataFrame:
    """Take values away at random."""
    hidden = rng.uniform(size=X.shape) < np.array(SHARES_MISSING)
    return X.mask(hidden)


def _points_with_a_hole() -> pd.DataFrame:
    points = inside(4)
    points.loc[len(points) - 1, "x1"] = np.nan
    return points


def _off_the_edges(p: int) -> pd.DataFrame:
    """Query points away from one half, where steps are."""
    return inside(p).replace(0.5, 0.4)


def _jumps(X: pd.DataFrame) -> Floats:
    corner = (X["x2"] > 0.3) & (X["x3"] < 0.6)
    return np.asarray(4 * (X["x1"] > 0.5) + 2 * corner, dtype=np.float64)


def _rates(X: pd.DataFrame) -> Floats:
    return np.asarray(np.exp(0.3 + X["x1"] + 0.8 * X["x2"]))


def _counts(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    return rng.poisson(mean).astype(np.float64)


def _exclusive(X: pd.DataFrame) -> Floats:
    return np.asarray(2 * np.sign((X["x1"] - 0.5) * (X["x2"] - 0.5)))


LOG_SPREAD = 0.6


def _log_mean(X: pd.DataFrame) -> Floats:
    return np.asarray(np.exp(X["x1"] + 0.5 * X["x2"] + LOG_SPREAD**2 / 2))


def _lognormal(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
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
            _nothing,
            gauss,
            inside(5),
            dead=("x1", "x2", "x3", "x4", "x5"),
        ),
        Law(
            "linear20",
            "twenty normal predictors, ten with the slopes 1, 1/2, ..., 1/10",
            normal(20),
            _linear,
            gauss,
            inside(20, gaussian=True),
            dead=tuple(names(20)[10:]),
        ),
        Law(
            "heavy",
            "a line and a wave, errors by Student's t with 3 degrees of freedom",
            uniform(4),
            _wave,
            _heavy,
            inside(4),
            dead=("x3", "x4"),
        ),
        Law(
            "spread",
            "a line and a wave, errors whose spread grows elevenfold with x1",
            uniform(4),
            _wave,
            _fanned,
            inside(4),
            dead=("x3", "x4"),
        ),
        Law(
            "correlated",
            "a chain of five normal predictors correlated at 0.9, two of them at work",
            _chain,
            _ends,
            gauss,
            _chain_points(),
            dead=("x6", "x7"),
            shadows=("x2", "x3", "x5"),
        ),
        Law(
            "levels",
            "a factor of twelve levels and a slope; a factor of four does nothing",
            _factors,
            _by_level,
            gauss,
            _factor_points(),
            n=240,
            dead=("h", "x2"),
        ),
        Law(
            "binary",
            "two classes in balance",
            uniform(4),
            _two(_balanced),
            choose,
            inside(4),
            dead=("x3", "x4"),
            classes=NO_YES,
        ),
        Law(
            "rare",
            "two classes, one of them in 5 % of the rows",
            uniform(4),
            _two(_rare),
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
            _three,
            choose,
            inside(4),
            n=240,
            dead=("x3", "x4"),
            classes=("a", "b", "c"),
        ),
        Law(
            "clusters",
            "forty clusters of six rows, random effects as large as the noise",
            _clustered,
            _slope,
            _random_effects,
            inside(4),
            n=240,
            dead=("x3", "x4"),
            groups="cluster",
        ),
        Law(
            "missing",
            "a line and a wave; 10 to 30 % of three predictors missing at random",
            uniform(4),
            _wave,
            gauss,
            _points_with_a_hole(),
            dead=("x3", "x4"),
            hide=_holes,
        ),
        Law(
            "jumps",
            "steps in three predictors",
            uniform(5),
            _jumps,
            gauss,
            _off_the_edges(5),
            dead=("x4", "x5"),
            held=True,
        ),
        Law(
            "counts",
            "Poisson counts with a mean of 1.3 to 8",
            uniform(4),
            _rates,
            _counts,
            inside(4),
            dead=("x3", "x4"),
            held=True,
        ),
        Law(
            "exclusive",
            "the exclusive or of two predictors, neither of which acts alone",
            uniform(4),
            _exclusive,
            gauss,
            _off_the_edges(4),
            dead=("x3", "x4"),
            held=True,
        ),
        Law(
            "lognormal",
            "a positive, skewed response",
            uniform(4),
            _log_mean,
            _lognormal,
            inside(4),
            dead=("x3", "x4"),
            held=True,
        ),
    )
}
"""Laws by name, in the order of the report; those held aside last."""


def chosen_laws(wanted: Sequence[str] | None) -> list[Law]:
    """Find laws by their names; all of them by default."""
    for name in wanted or ():
        if name not in LAWS:
            raise ValueError(f"laws must be some of {', '.join(LAWS)}; got {name!r}.")
    return [law for law in LAWS.values() if wanted is None or law.name in wanted]
