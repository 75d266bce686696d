"""The validity study: standard errors on laws that nobody tuned to.

Every data set of a law gets one ensemble for each setting; all variance
estimators see the same learners.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.api import fit
from vstatkit.exceptions import MonteCarloWarning
from vstatkit.forest import ForestClassifier, ForestRegressor
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.studies.experiment import (
    Draw,
    Record,
    hash_arrays,
    hash_frame,
    iteration_stream,
)
from vstatkit.studies.law import Law

ITERATIONS = 500
SEEDS = 50
"""Seeds of the study of the Monte Carlo error."""

ESTIMATORS = {
    "IJ": "ij_u",
    "corrected": "corrected",
    "J": "jackknife",
    "vstatkit": "auto",
}
"""Variance estimators by their labels; the last one is ours, and grows the forests."""

OURS = list(ESTIMATORS)[-1]

ALPHA = 0.05
QUICK_LEARNERS = 40


@dataclass(frozen=True)
class Setting:
    """How ensembles are grown.

    Attributes
    ----------
    name : str
        Name of its streams and checkpoints.
    description : str
        One line for the report.
    options : mapping
        Arguments of `fit`, beside the defaults.
    by_fit : bool
        Whether `fit` grows them, or the scikit-learn estimators.
    """

    name: str
    description: str
    options: Mapping[str, Any] = field(default_factory=dict)
    by_fit: bool = True

    def applies(self, law: Law) -> bool:
        """Tell whether it can respect what the law is."""
        return self.by_fit or law.groups is None


SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("fit", "the defaults of `fit`"),
        Setting(
            "estimators",
            "the defaults of `ForestRegressor` and `ForestClassifier`",
            by_fit=False,
        ),
        Setting("half", "U, k = n/2", {"replace": False, "k": 0.5}),
        Setting("whole", "V, k = n", {"k": 1.0}),
        Setting("B500", "500 trees, the default k", {"B": 500}),
    )
}
"""Settings by name, in the order of the report."""


EXTRAS = ("seeds", "peers")
"""Parts beside the settings: the Monte Carlo error, and what others give."""


def check_settings(wanted: Sequence[str]) -> None:
    """Refuse names that are neither a setting nor another part."""
    known = [*SETTINGS, *EXTRAS]
    for name in wanted:
        if name not in known:
            raise ValueError(
                f"settings must be some of {', '.join(known)}; got {name!r}."
            )
    if not set(wanted) & set(SETTINGS):
        raise ValueError(
            f"settings must name one of {', '.join(SETTINGS)} at least; got "
            f"{', '.join(wanted) or 'none'}."
        )


def draw_data(law: Law, seed: int, iteration: int) -> pd.DataFrame:
    """Draw a data set; every setting and every peer sees the same ones."""
    return law(iteration_stream(seed, f"validity-{law.name}", iteration, Draw.DATA))


def grow(law: Law, data: pd.DataFrame, rng: int, **options: Any) -> EnsembleResults:
    """Fit an ensemble to a data set, on one thread."""
    return fit(
        law.formula,
        data,
        at=law.points,
        groups=law.groups,
        missing=law.missing,
        variance=ESTIMATORS[OURS],
        rng=rng,
        n_jobs=1,
        progress=False,
        **options,
    )


@dataclass(frozen=True)
class Validity:
    """Data sets of a law, each with an ensemble grown in one way.

    Attributes
    ----------
    law : Law
        Where data sets come from.
    setting : Setting
        How ensembles are grown.
    quick : bool
        Whether they have few learners only.
    """

    law: Law
    setting: Setting
    quick: bool = False

    @property
    def name(self) -> str:
        """Name of its streams and of its checkpoints."""
        return f"validity-{self.setting.name}-{self.law.name}"

    def settings(self) -> dict[str, Any]:
        """All that the numbers depend on beside the seed."""
        return {
            **describe_law(self.law),
            "options": dict(self.setting.options),
            "estimators": ESTIMATORS,
            "quick": self.quick,
        }

    def fingerprint(self, seed: int) -> dict[str, str]:
        """Hash the first data set, and what a few learners say of it."""
        record = replace(self, quick=True).run(seed, 0)
        drawn = hash_frame(draw_data(self.law, seed, 0))
        return {"drawn": drawn, "values": hash_arrays(list(record.values()))}

    def run(self, seed: int, iteration: int) -> Record:
        """Draw a data set, grow its ensemble, and keep what all estimators say."""
        data = draw_data(self.law, seed, iteration)
        stream = iteration_stream(seed, self.name, iteration, Draw.ENSEMBLE)
        rng = int(stream.integers(2**31 - 1))
        if not self.setting.by_fit:
            return _by_estimators(self.law, data, rng, quick=self.quick)
        options = dict(self.setting.options)
        if self.quick:
            options["B"] = QUICK_LEARNERS
        return _by_fit(self.law, grow(self.law, data, rng, **options))


def describe_law(law: Law) -> dict[str, Any]:
    """Describe a law, as JSON can hold it; NaN is no value there."""
    points = law.points.astype(object).where(law.points.notna(), None)
    return {
        "law": law.name,
        "n": law.n,
        "at": points.to_dict("list"),
        "idle": [*law.dead, *law.shadows],
    }


def _by_fit(law: Law, results: EnsembleResults) -> Record:
    """Keep intervals at the points, the band, and tests of idle predictors."""
    joint = at_band(results, law.band())
    found = [results.with_variance(name) for name in ESTIMATORS.values()]
    bands = [
        joint.with_variance(name).conf_int(ALPHA, simultaneous=True)
        for name in ESTIMATORS.values()
    ]
    return {
        "B": np.array(float(results.B)),
        "mean": results.params.to_numpy(),
        "variance": np.stack([one.bse.to_numpy() ** 2 for one in found]),
        **_bounds("", [one.conf_int(ALPHA) for one in found]),
        "band_mean": joint.params.to_numpy(),
        **_bounds("band_", bands),
        **_idle("dead_", law.dead, found),
        **_idle("shadow_", law.shadows, found),
    }


def at_band(results: EnsembleResults, points: pd.DataFrame) -> EnsembleResults:
    """Predict with every learner once, for all estimators."""
    predictor = results.predictor
    if predictor is None:
        raise TypeError("the ensembles of the study must predict.")
    X, index = predictor.rows(points)
    return replace(
        results,
        values=predictor.values(X),
        labels=predictor.labels(index),
        effect_values=None,
    )


def _bounds(prefix: str, frames: Sequence[pd.DataFrame]) -> Record:
    names = ("lower", "upper")
    return {
        f"{prefix}{name}": np.stack([frame[name].to_numpy() for frame in frames])
        for name in names
    }


def _idle(
    prefix: str, predictors: tuple[str, ...], found: Sequence[EnsembleResults]
) -> Record:
    """Keep the rows of the effects that move given predictors."""
    frames = []
    for one in found:
        effects = one.effects_frame(ALPHA)
        if effects is None:
            raise TypeError("the ensembles of the study must have effects.")
        frames.append(effects[effects.index.get_level_values(0).isin(predictors)])
    shown = [
        frame.rename(columns={"ci_lower": "lower", "ci_upper": "upper"})
        for frame in frames
    ]
    return {
        f"{prefix}mean": shown[0]["estimate"].to_numpy(),
        f"{prefix}p": np.stack([frame["p_value"].to_numpy() for frame in shown]),
        **_bounds(prefix, shown),
    }


def _by_estimators(law: Law, data: pd.DataFrame, rng: int, *, quick: bool) -> Record:
    """Keep intervals at the points; estimators have no effects and no bands."""
    make = ForestClassifier if law.classes else ForestRegressor
    forest = make(variance=ESTIMATORS[OURS], random_state=rng, n_jobs=1)
    if quick:
        forest.set_params(n_estimators=QUICK_LEARNERS)
    X, at = plain_columns(data[law.points.columns]), plain_columns(law.points)
    forest.fit(X, data["y"].to_numpy())
    answers = []
    for name in ESTIMATORS.values():
        forest.set_params(variance=name)
        answers.append(_ask(forest, at))
    return {
        "B": np.array(float(len(forest.estimators_))),
        "mean": answers[0][0],
        "variance": np.stack([std**2 for _, std, _ in answers]),
        "lower": np.stack([bounds[:, 0] for _, _, bounds in answers]),
        "upper": np.stack([bounds[:, 1] for _, _, bounds in answers]),
    }


def plain_columns(X: pd.DataFrame) -> pd.DataFrame:
    """Write factors as a column of zeros and ones for each declared level."""
    return pd.get_dummies(X, dtype=np.float64)


def _ask(
    forest: ForestRegressor | ForestClassifier, at: pd.DataFrame
) -> tuple[Floats, Floats, Floats]:
    """Ask for means, standard errors and intervals; of two classes, the second."""
    with warnings.catch_warnings():  # how well they are known is what is studied
        warnings.simplefilter("ignore", MonteCarloWarning)
        return _answers(forest, at)


def _answers(
    forest: ForestRegressor | ForestClassifier, at: pd.DataFrame
) -> tuple[Floats, Floats, Floats]:
    bounds = forest.predict_interval(at, ALPHA)
    if isinstance(forest, ForestRegressor):
        mean, std = forest.predict(at, return_std=True)
        return np.asarray(mean), np.asarray(std), bounds
    mean, std = forest.predict_proba(at, return_std=True)
    kept = slice(1, 2) if len(forest.classes_) == 2 else slice(None)
    flat = bounds[:, kept].reshape(-1, 2)
    return np.asarray(mean)[:, kept].ravel(), np.asarray(std)[:, kept].ravel(), flat


MC_LAWS = ("friedman10", "noise", "binary")
MC_SIZES: tuple[int | str, ...] = (500, 2000, "auto")


@dataclass(frozen=True)
class Seeds:
    """One data set, with ensembles of many seeds.

    Attributes
    ----------
    law : Law
        Where the data set comes from.
    B : int or "auto"
        Learners.
    quick : bool
        Whether there are few of them only.
    """

    law: Law
    B: int | str
    quick: bool = False

    @property
    def name(self) -> str:
        """Name of its streams and of its checkpoints."""
        return f"validity-seeds-{self.B}-{self.law.name}"

    def settings(self) -> dict[str, Any]:
        """All that the numbers depend on beside the seed."""
        return {
            **describe_law(self.law),
            "B": self.B,
            "estimators": ESTIMATORS,
            "quick": self.quick,
        }

    def fingerprint(self, seed: int) -> dict[str, str]:
        """Hash the data set, and what a few learners say of it."""
        record = replace(self, quick=True).run(seed, 0)
        drawn = hash_frame(draw_data(self.law, seed, 0))
        return {"drawn": drawn, "values": hash_arrays(list(record.values()))}

    def run(self, seed: int, iteration: int) -> Record:
        """Grow an ensemble with a seed of its own."""
        stream = iteration_stream(seed, self.name, iteration, Draw.ENSEMBLE)
        rng = int(stream.integers(2**31 - 1))
        B = QUICK_LEARNERS if self.quick else self.B
        results = grow(self.law, draw_data(self.law, seed, 0), rng, B=B)
        parts = [results.with_variance(n).components for n in ESTIMATORS.values()]
        return {
            "B": np.array(float(results.B)),
            "total": np.stack([one.total for one in parts]),
            "mc_se": np.stack([one.mc_se for one in parts]),
        }
