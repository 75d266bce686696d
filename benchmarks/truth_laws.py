"""Laws that `benchmarks.truth` holds aside from what `target="truth"` was settled on.

They were written down before the amount of smoothing was chosen by the data, and looked
at once the rule was settled.
"""

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.studies import law_parts as parts
from vstatkit.studies.law import Law, Rng


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
    )
}
"""Laws by name."""
