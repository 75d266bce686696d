"""Simulation designs of `benchmarks.truth` that `target="truth"` was not tuned on.

The first four were written down before the amount of smoothing was chosen by the data,
the last four before estimates came from a mix of learners.
"""

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.studies import dgps as parts
from vstatkit.studies.dgps import DGP, Rng


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
    return np.asarray(3 * np.tanh(X[parts.predictor_names(5)].to_numpy() @ slopes))


def coins(rng: Rng, n: int) -> pd.DataFrame:
    """Draw eight predictors that are zero or one."""
    X = rng.integers(2, size=(n, 8)).astype(np.float64)
    return pd.DataFrame(X, columns=parts.predictor_names(8))


def bits(X: pd.DataFrame) -> Floats:
    """Add three of them, and the product of two others."""
    return np.asarray(X["x1"] - X["x2"] + 0.5 * X["x3"] + 1.5 * X["x4"] * X["x5"])


def bit_points() -> pd.DataFrame:
    """Query points with several of them at one."""
    rows = ("00000000", "10101010", "11111000", "01011101", "10010011")
    table = np.array([list(map(float, row)) for row in rows])
    return pd.DataFrame(table, columns=parts.predictor_names(8))


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


NEW_DGPS: dict[str, DGP] = {
    dgp.name: dgp
    for dgp in (
        DGP(
            "sine",
            "a wave of one predictor, five more do nothing",
            parts.uniform_predictors(6),
            sine,
            parts.add_normal_noise,
            parts.query_points(6),
            null=tuple(parts.predictor_names(6)[1:]),
            held_out=True,
        ),
        DGP(
            "sparse30",
            "thirty normal predictors, three at work",
            parts.normal_predictors(30),
            sparse,
            parts.add_normal_noise,
            parts.query_points(30, gaussian=True),
            n=250,
            null=tuple(parts.predictor_names(30)[3:]),
            held_out=True,
        ),
        DGP(
            "product",
            "a product of two predictors and a slope",
            parts.uniform_predictors(4),
            product,
            parts.add_normal_noise,
            parts.query_points(4),
            null=("x4",),
            held_out=True,
        ),
        DGP(
            "bump",
            "a smooth bump of two predictors, noise that grows with a third",
            parts.uniform_predictors(4),
            bump,
            growing,
            parts.query_points(4),
            null=("x3", "x4"),
            held_out=True,
        ),
        DGP(
            "index",
            "an S of one sum of five normal predictors",
            parts.normal_predictors(7),
            index,
            parts.add_normal_noise,
            parts.query_points(7, gaussian=True),
            null=("x6", "x7"),
            held_out=True,
        ),
        DGP(
            "bits",
            "eight predictors that are zero or one, five at work",
            coins,
            bits,
            lighter,
            bit_points(),
            null=("x6", "x7", "x8"),
            held_out=True,
        ),
        DGP(
            "gate",
            "a step that opens a slope",
            parts.uniform_predictors(5),
            gate,
            parts.add_normal_noise,
            parts.query_points(5),
            null=("x4", "x5"),
            held_out=True,
        ),
        DGP(
            "decay",
            "three smooth and monotone curves",
            parts.uniform_predictors(5),
            decay,
            quiet,
            parts.query_points(5),
            null=("x4", "x5"),
            held_out=True,
        ),
    )
}
"""Designs by name."""
