"""Laws that `benchmarks.truth` holds aside from what `target="truth"` was settled on.

The first four were written down before the amount of smoothing was chosen by the data,
the last four before estimates came from a mix of learners.
"""

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.studies import dgps as parts
from vstatkit.studies.dgps import Law, Rng


def sine(X: pd.DataFrame) -> Floats:
    """Let one predictor act, by a full wave."""
    return np.asarray(2 * np.sin(2 * np.pi * X["x1"]))


def sparse(X: pd.DataFrame) -> Floats:
    """Let three of many predictors act, one of them by its square."""
    return np.asarray(2 * X["x1"] - X["x2"] + X["x3"] ** 2)


def product(X: pd.DataFrame) -> Floats:
    """Multiply two predictors, and add a third."""
    return np.asarray(6 * X["x1"] * X["x2"] + X["x3"])


def bump(X: pd.DataFrame) -> Floats:
    """Raise the middle of two predictors."""
    apart = (X["x1"] - 0.5) ** 2 + (X["x2"] - 0.5) ** 2
    return np.asarray(3 * np.exp(-20 * apart))


def growing(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Add normal noise whose spread grows with the third predictor."""
    spread = 0.3 + X["x3"].to_numpy()
    return np.asarray(mean + spread * rng.standard_normal(len(X)))


def index(X: pd.DataFrame) -> Floats:
    """Let five predictors act by one sum of them, along an S."""
    slopes = np.array([1, -1, 0.5, 0.5, 0.25])
    return np.asarray(3 * np.tanh(X[parts.names(5)].to_numpy() @ slopes))


def coins(rng: Rng, n: int) -> pd.DataFrame:
    """Draw eight predictors that are zero or one."""
    X = rng.integers(2, size=(n, 8)).astype(np.float64)
    return pd.DataFrame(X, columns=parts.names(8))


def bits(X: pd.DataFrame) -> Floats:
    """Add three of them, and the product of two others."""
    return np.asarray(X["x1"] - X["x2"] + 0.5 * X["x3"] + 1.5 * X["x4"] * X["x5"])


def bit_points() -> pd.DataFrame:
    """Query points with several of them at one."""
    rows = ("00000000", "10101010", "11111000", "01011101", "10010011")
    table = np.array([list(map(float, row)) for row in rows])
    return pd.DataFrame(table, columns=parts.names(8))


def lighter(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Add errors from Student's t distribution with 5 degrees of freedom."""
    return mean + rng.standard_t(5, size=len(X))


def gate(X: pd.DataFrame) -> Floats:
    """Let a step of one predictor open the slope of another."""
    return np.asarray(np.where(X["x1"] > 0.45, 3 * X["x2"], 1.0) + X["x3"])


def decay(X: pd.DataFrame) -> Floats:
    """Add three smooth and monotone curves."""
    falling = 4 * np.exp(-4 * X["x1"])
    return np.asarray(falling + np.log1p(5 * X["x2"]) + np.sqrt(X["x3"]))


def quiet(rng: Rng, X: pd.DataFrame, mean: Floats) -> Floats:
    """Add normal noise of half the usual size."""
    return mean + 0.5 * rng.standard_normal(len(X))


NEW_LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Law(
            "sine",
            "a wave of one predictor, five more do nothing",
            parts.uniform(6),
            sine,
            parts.gauss,
            parts.inside(6),
            dead=tuple(parts.names(6)[1:]),
            held=True,
        ),
        Law(
            "sparse30",
            "thirty normal predictors, three at work",
            parts.normal(30),
            sparse,
            parts.gauss,
            parts.inside(30, gaussian=True),
            n=250,
            dead=tuple(parts.names(30)[3:]),
            held=True,
        ),
        Law(
            "product",
            "a product of two predictors and a slope",
            parts.uniform(4),
            product,
            parts.gauss,
            parts.inside(4),
            dead=("x4",),
            held=True,
        ),
        Law(
            "bump",
            "a smooth bump of two predictors, noise that grows with a third",
            parts.uniform(4),
            bump,
            growing,
            parts.inside(4),
            dead=("x3", "x4"),
            held=True,
        ),
        Law(
            "index",
            "an S of one sum of five normal predictors",
            parts.normal(7),
            index,
            parts.gauss,
            parts.inside(7, gaussian=True),
            dead=("x6", "x7"),
            held=True,
        ),
        Law(
            "bits",
            "eight predictors that are zero or one, five at work",
            coins,
            bits,
            lighter,
            bit_points(),
            dead=("x6", "x7", "x8"),
            held=True,
        ),
        Law(
            "gate",
            "a step that opens a slope",
            parts.uniform(5),
            gate,
            parts.gauss,
            parts.inside(5),
            dead=("x4", "x5"),
            held=True,
        ),
        Law(
            "decay",
            "three smooth and monotone curves",
            parts.uniform(5),
            decay,
            quiet,
            parts.inside(5),
            dead=("x4", "x5"),
            held=True,
        ),
    )
}
"""Laws by name."""
