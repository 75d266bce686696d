"""Built-in data: scikit-learn's, tidied, and generators."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Seed


def diabetes(*, scaled: bool = False) -> pd.DataFrame:
    """Disease progression of 442 diabetics, ten predictors, response `target`.

    Parameters
    ----------
    scaled : bool
        Whether predictors are centred and scaled to a sum of squares of one, as
        scikit-learn has them by default. Otherwise they have their units: `age` in
        years, `bmi` in kg/m2, `bp` (mean blood pressure) in mmHg, and six values of
        the blood serum, of which `s5` is the logarithm of triglycerides and `s6`
        glucose in mg/dl.

    Examples
    --------
    >>> diabetes()[["age", "bmi", "bp"]].median().to_dict()
    {'age': 50.0, 'bmi': 25.7, 'bp': 93.0}
    """
    from sklearn.datasets import load_diabetes  # noqa: PLC0415 slow import

    frame: pd.DataFrame = load_diabetes(as_frame=True, scaled=scaled).frame
    return frame


def iris() -> pd.DataFrame:
    """Fisher's 150 irises: four lengths and the `species`, a category."""
    from sklearn.datasets import load_iris  # noqa: PLC0415 slow import

    return _with_classes(load_iris(as_frame=True), "species")


def breast_cancer() -> pd.DataFrame:
    """Wisconsin diagnostic data: 569 tumours, thirty features, a `diagnosis`."""
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415 slow import

    return _with_classes(load_breast_cancer(as_frame=True), "diagnosis")


def digits() -> pd.DataFrame:
    """1797 handwritten digits: 64 pixels and the `digit`, a category."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 slow import

    return _with_classes(load_digits(as_frame=True), "digit")


def _with_classes(bunch: dict[str, Any], name: str) -> pd.DataFrame:
    frame: pd.DataFrame = bunch["frame"].drop(columns="target")
    names = np.asarray(bunch["target_names"])
    levels = pd.Index([str(name) for name in names])
    labels = pd.Categorical.from_codes(np.asarray(bunch["target"]), levels)
    frame.columns = [
        column.replace(" (cm)", "").replace(" ", "_") for column in frame.columns
    ]
    return frame.assign(**{name: labels})


def mars(n: int = 500, *, rng: Seed = None, offset: float = 0.5) -> pd.DataFrame:
    """Friedman's function of five uniform predictors, with unit noise.

    Parameters
    ----------
    n : int
        Observations.
    rng : int, Generator or None
        Seed.
    offset : float
        Centre of the quadratic term. Friedman's is 0.5; Zhou, Mentch and Hooker
        print 0.05.

    Examples
    --------
    >>> list(mars(3, rng=0).columns)
    ['x1', 'x2', 'x3', 'x4', 'x5', 'y']
    """
    generator = np.random.default_rng(rng)
    x = generator.uniform(size=(n, 5))
    mean = (
        10 * np.sin(np.pi * x[:, 0] * x[:, 1])
        + 20 * (x[:, 2] - offset) ** 2
        + 10 * x[:, 3]
        + 5 * x[:, 4]
    )
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(1, 6)])
    return frame.assign(y=mean + generator.standard_normal(n))


# Data sets by name.
LOADERS: dict[str, Callable[[], pd.DataFrame]] = {
    "diabetes": diabetes,
    "iris": iris,
    "breast_cancer": breast_cancer,
    "digits": digits,
    "mars": mars,
}
