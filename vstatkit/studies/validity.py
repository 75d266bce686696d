"""The experiment of the validity study, on designs that no rule was tuned on.

Every data set that a law draws gets one ensemble per setting; all variance
estimators see the same learners.
"""

import warnings
from abc import ABC, abstractmethod
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
from vstatkit.storage.directory import hash_arrays, hash_frame
from vstatkit.studies.dgps import Law
from vstatkit.studies.experiment import (
    Draw,
    Record,
    iteration_stream,
)

ITERATIONS = 500

ESTIMATORS = {
    "IJ": "ij_u",
    "corrected": "corrected",
    "J": "jackknife",
    "vstatkit": "auto",
}
"""Variance estimators by label; the last one is ours, and decides how large B is."""

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
        Arguments of `fit` that differ from its defaults.
    by_fit : bool
        Whether `fit` grows them, or the scikit-learn estimators.
    """

    name: str
    description: str
    options: Mapping[str, Any] = field(default_factory=dict)
    by_fit: bool = True

    def applies(self, law: Law) -> bool:
        """Tell whether ensembles grown this way respect the law's clusters."""
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
"""Further parts of the study: the Monte Carlo error, and other packages."""


def check_settings(wanted: Sequence[str]) -> None:
    """Refuse names that are neither a setting nor a further part of the study."""
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
class LawExperiment(ABC):
    """Ensembles grown on data sets that a law draws.

    Attributes
    ----------
    law : Law
        Where data sets come from.
    quick : bool
        Whether ensembles have few learners only.
    """

    law: Law
    quick: bool = field(default=False, kw_only=True)

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of its streams and of its checkpoints."""

    @abstractmethod
    def choices(self) -> dict[str, Any]:
        """List the settings that only this experiment has."""

    @abstractmethod
    def run(self, seed: int, iteration: int) -> Record:
        """Run one iteration."""

    def settings(self) -> dict[str, Any]:
        """All that the numbers depend on apart from the seed."""
        return {
            **describe_law(self.law),
            **self.choices(),
            "estimators": ESTIMATORS,
            "quick": self.quick,
        }

    def fingerprint(self, seed: int) -> dict[str, str]:
        """Hash the first data set, and what a few learners say about it."""
        record = replace(self, quick=True).run(seed, 0)
        drawn = hash_frame(draw_data(self.law, seed, 0))
        return {"drawn": drawn, "values": hash_arrays(list(record.values()))}

    def ensemble_seed(self, seed: int, iteration: int) -> int:
        """Draw the seed of the ensemble of one iteration."""
        stream = iteration_stream(seed, self.name, iteration, Draw.ENSEMBLE)
        return int(stream.integers(2**31 - 1))


@dataclass(frozen=True)
class Validity(LawExperiment):
    """Data sets from a law, each with an ensemble grown in one way.

    Attributes
    ----------
    setting : Setting
        How ensembles are grown.
    """

    setting: Setting

    @property
    def name(self) -> str:
        """Name of its streams and of its checkpoints."""
        return f"validity-{self.setting.name}-{self.law.name}"

    def choices(self) -> dict[str, Any]:
        """List the options of its ensembles."""
        return {"options": dict(self.setting.options)}

    def run(self, seed: int, iteration: int) -> Record:
        """Draw a data set, grow its ensemble, and keep what all estimators say."""
        data = draw_data(self.law, seed, iteration)
        rng = self.ensemble_seed(seed, iteration)
        if not self.setting.by_fit:
            return _by_estimators(self.law, data, rng, quick=self.quick)
        options = dict(self.setting.options)
        if self.quick:
            options["B"] = QUICK_LEARNERS
        return _by_fit(self.law, grow(self.law, data, rng, **options))


def describe_law(law: Law) -> dict[str, Any]:
    """Describe a law as JSON can hold it; JSON has no NaN."""
    points = law.points.astype(object).where(law.points.notna(), None)
    return {
        "law": law.name,
        "n": law.n,
        "at": points.to_dict("list"),
        "idle": [*law.dead, *law.shadows],
    }


def _by_fit(law: Law, results: EnsembleResults) -> Record:
    """Keep the intervals at the points, the band, and tests of idle predictors."""
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
    """Keep the effects of given predictors."""
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
    """Write a factor as one column of zeros and ones per declared level."""
    return pd.get_dummies(X, dtype=np.float64)


def _ask(
    forest: ForestRegressor | ForestClassifier, at: pd.DataFrame
) -> tuple[Floats, Floats, Floats]:
    """Ask for means, standard errors and intervals; of two classes, for the second."""
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
