"""What a law is: a way to draw data sets, and what is known about them."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

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
