"""Experiments of the validity study: settings of ensembles, seeds, and other packages.

Every data set of a simulation design gets one ensemble per setting; all variance
estimators are computed from the same learners.
"""

import importlib.util
import shutil
import subprocess
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.api import fit
from vstatkit.exceptions import MonteCarloWarning, VstatkitError
from vstatkit.forest import ForestClassifier, ForestRegressor
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.prediction_results import prediction_influence, predictor_of
from vstatkit.storage.checkpoint import hash_arrays, hash_frame
from vstatkit.studies.coverage import normal_quantile
from vstatkit.studies.dgps import DGP
from vstatkit.studies.experiment import Draw, Record, iteration_stream

# Variance estimators by label; the last one is ours, and determines B.
ESTIMATORS = {
    "IJ": "ij_u",
    "corrected": "corrected",
    "J": "jackknife",
    "vstatkit": "auto",
}
OURS = list(ESTIMATORS)[-1]
ALPHA = 0.05
QUICK_LEARNERS = 40

SEEDS = 50  # ensembles grown on one data set to measure the Monte Carlo error
SEED_DGPS = ("friedman10", "noise", "binary")
SEED_SIZES: tuple[int | str, ...] = (500, 2000, "auto")


@dataclass(frozen=True)
class Setting:
    """How ensembles are grown: by `fit`, or by the scikit-learn estimators."""

    name: str
    description: str
    # Arguments of `fit` that differ from its defaults
    options: Mapping[str, Any] = field(default_factory=dict)
    by_fit: bool = True

    def applies(self, dgp: DGP) -> bool:
        """Return whether ensembles of this setting respect the clusters of a DGP."""
        return self.by_fit or dgp.groups is None


_FORESTS = "the defaults of `ForestRegressor` and `ForestClassifier`"
# Settings by name, in the order of the report.
SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("fit", "the defaults of `fit`"),
        Setting("estimators", _FORESTS, by_fit=False),
        Setting("half", "U, k = n/2", {"replace": False, "k": 0.5}),
        Setting("whole", "V, k = n", {"k": 1.0}),
        Setting("B500", "500 trees, the default k", {"B": 500}),
    )
}


def draw_data(dgp: DGP, seed: int, iteration: int) -> pd.DataFrame:
    """Draw a data set, the same for every setting and every package."""
    return dgp(iteration_stream(seed, f"validity-{dgp.name}", iteration, Draw.DATA))


def grow(dgp: DGP, data: pd.DataFrame, rng: int, **options: Any) -> EnsembleResults:
    """Fit an ensemble to a data set, on one thread."""
    return fit(
        dgp.formula,
        data,
        at=dgp.points,
        groups=dgp.groups,
        missing=dgp.missing,
        variance=ESTIMATORS[OURS],
        rng=rng,
        n_jobs=1,
        progress=False,
        **options,
    )


def describe_dgp(dgp: DGP) -> dict[str, Any]:
    """Describe a DGP for JSON, which has no NaN."""
    return {
        "law": dgp.name,
        "n": dgp.n,
        "at": dgp.points.astype(object).where(dgp.points.notna(), None).to_dict("list"),
        "idle": [*dgp.null, *dgp.proxies],
    }


@dataclass(frozen=True)
class DGPExperiment(ABC):
    """Ensembles grown on data sets of a DGP; quick ones have few learners."""

    dgp: DGP
    quick: bool = field(default=False, kw_only=True)

    @abstractmethod
    def own_settings(self) -> tuple[str, dict[str, Any]]:
        """Return a name and the settings that only this experiment has."""

    @abstractmethod
    def run(self, seed: int, iteration: int) -> Record:
        """Run one iteration."""

    @property
    def name(self) -> str:
        """Name of its random streams and checkpoints."""
        return f"validity-{self.own_settings()[0]}-{self.dgp.name}"

    def settings(self) -> dict[str, Any]:
        """Describe all that the numbers depend on apart from the seed."""
        return {
            **describe_dgp(self.dgp),
            **self.own_settings()[1],
            "estimators": ESTIMATORS,
            "quick": self.quick,
        }

    def fingerprint(self, seed: int) -> dict[str, str]:
        """Hash the first data set, and the results of a few learners on it."""
        record = replace(self, quick=True).run(seed, 0)
        data_hash = hash_frame(draw_data(self.dgp, seed, 0))
        return {"drawn": data_hash, "values": hash_arrays(list(record.values()))}

    def ensemble_seed(self, seed: int, iteration: int) -> int:
        """Draw the seed of the ensemble of one iteration."""
        stream = iteration_stream(seed, self.name, iteration, Draw.ENSEMBLE)
        return int(stream.integers(2**31 - 1))


@dataclass(frozen=True)
class SettingExperiment(DGPExperiment):
    """Data sets of a DGP, each with an ensemble grown in one setting."""

    setting: Setting

    def own_settings(self) -> tuple[str, dict[str, Any]]:
        """Return the name of the setting and the options of its ensembles."""
        return self.setting.name, {"options": dict(self.setting.options)}

    def run(self, seed: int, iteration: int) -> Record:
        """Draw a data set, grow its ensemble, and record all estimators."""
        data = draw_data(self.dgp, seed, iteration)
        rng = self.ensemble_seed(seed, iteration)
        if not self.setting.by_fit:
            return _run_estimators(self.dgp, data, rng, quick=self.quick)
        options = dict(self.setting.options)
        if self.quick:
            options["B"] = QUICK_LEARNERS
        return _record_results(self.dgp, grow(self.dgp, data, rng, **options))


@dataclass(frozen=True)
class SeedExperiment(DGPExperiment):
    """One data set of a DGP, with ensembles of B learners and many seeds."""

    B: int | str

    def own_settings(self) -> tuple[str, dict[str, Any]]:
        """Return a name and the size of its ensembles."""
        return f"seeds-{self.B}", {"B": self.B}

    def run(self, seed: int, iteration: int) -> Record:
        """Grow an ensemble with its own seed."""
        B = QUICK_LEARNERS if self.quick else self.B
        rng = self.ensemble_seed(seed, iteration)
        results = grow(self.dgp, draw_data(self.dgp, seed, 0), rng, B=B)
        components = [results.with_variance(v).components for v in ESTIMATORS.values()]
        return {
            "B": np.array(float(results.B)),
            "total": np.stack([part.total for part in components]),
            "mc_se": np.stack([part.mc_se for part in components]),
        }


def _record_results(dgp: DGP, results: EnsembleResults) -> Record:
    """Record intervals at the points, the band, and tests of null predictors."""
    predictor = predictor_of(results)
    X, index = predictor.rows(dgp.band())
    # Predict the band with every learner once, for all estimators.
    joint = replace(
        results,
        values=predictor.values(X),
        labels=predictor.labels(index),
        effect_values=None,
        leaf_influence=prediction_influence(results, X),
    )
    by_estimator = [results.with_variance(name) for name in ESTIMATORS.values()]
    bands = [
        joint.with_variance(name).conf_int(ALPHA, simultaneous=True)
        for name in ESTIMATORS.values()
    ]
    return {
        "B": np.array(float(results.B)),
        "mean": results.params.to_numpy(),
        "variance": np.stack([res.bse.to_numpy() ** 2 for res in by_estimator]),
        **_stack_bounds("", [res.conf_int(ALPHA) for res in by_estimator]),
        "band_mean": joint.params.to_numpy(),
        **_stack_bounds("band_", bands),
        **_record_effects("dead_", dgp.null, by_estimator),
        **_record_effects("shadow_", dgp.proxies, by_estimator),
    }


def _stack_bounds(prefix: str, frames: Sequence[pd.DataFrame]) -> Record:
    return {
        f"{prefix}{name}": np.stack([frame[name].to_numpy() for frame in frames])
        for name in ("lower", "upper")
    }


def _record_effects(
    prefix: str, predictors: tuple[str, ...], by_estimator: Sequence[EnsembleResults]
) -> Record:
    frames = []
    for results in by_estimator:
        effects = cast(pd.DataFrame, results.effects_frame(ALPHA))  # never None here
        rows = effects[effects.index.get_level_values(0).isin(predictors)]
        frames.append(rows.rename(columns={"ci_lower": "lower", "ci_upper": "upper"}))
    return {
        f"{prefix}mean": frames[0]["estimate"].to_numpy(),
        f"{prefix}p": np.stack([frame["p_value"].to_numpy() for frame in frames]),
        **_stack_bounds(prefix, frames),
    }


def _run_estimators(dgp: DGP, data: pd.DataFrame, rng: int, *, quick: bool) -> Record:
    """Record intervals at the points; estimators have no effects and no bands."""
    make = ForestClassifier if dgp.classes else ForestRegressor
    forest = make(variance=ESTIMATORS[OURS], random_state=rng, n_jobs=1)
    if quick:
        forest.set_params(n_estimators=QUICK_LEARNERS)
    X, at = encode_factors(data[dgp.points.columns]), encode_factors(dgp.points)
    forest.fit(X, data["y"].to_numpy())
    predictions = []
    for name in ESTIMATORS.values():
        forest.set_params(variance=name)
        with warnings.catch_warnings():  # small ensembles are part of the study
            warnings.simplefilter("ignore", MonteCarloWarning)
            predictions.append(_predict_interval(forest, at))
    means, stds, bounds = map(np.stack, zip(*predictions, strict=True))
    return {
        "B": np.array(float(len(forest.estimators_))),
        "mean": means[0],
        "variance": stds**2,
        "lower": bounds[..., 0],
        "upper": bounds[..., 1],
    }


def encode_factors(X: pd.DataFrame) -> pd.DataFrame:
    """Encode factors as one column of zeros and ones per declared level."""
    return pd.get_dummies(X, dtype=np.float64)


def _predict_interval(
    forest: ForestRegressor | ForestClassifier, at: pd.DataFrame
) -> tuple[Floats, Floats, Floats]:
    """Predict means, standard errors and intervals; of two classes, for the second."""
    bounds = forest.predict_interval(at, ALPHA)
    if isinstance(forest, ForestRegressor):
        mean, std = forest.predict(at, return_std=True)
        return np.asarray(mean), np.asarray(std), bounds
    columns = slice(1, 2) if len(forest.classes_) == 2 else slice(None)
    mean, std = (
        np.asarray(values)[:, columns].ravel()
        for values in forest.predict_proba(at, return_std=True)
    )
    return mean, std, bounds[:, columns].reshape(-1, 2)


# Other packages, and our own forests with as many trees and with normal quantiles.
PEER_ITERATIONS = 200  # largest number of data sets for other packages
R_SECONDS = 1200
R_HEAD = """
given <- commandArgs(TRUE)
place <- function(name) file.path(given[1], paste0(name, ".csv"))
at <- read.csv(place("at")); trees <- as.integer(given[2]); seeds <- given[-(1:2)]
for (i in seq_along(seeds)) {
data <- read.csv(place(paste0("data", i))); seed <- as.integer(seeds[i])
x <- setdiff(names(data), c("y", "cluster"))
"""
R_TAIL = """
write.csv(found, place(paste0("out", i)), row.names = FALSE)
}
"""
R_CODE = {
    "ranger": """
forest <- ranger::ranger(y ~ ., data[c(x, "y")], num.trees = trees,
                         keep.inbag = TRUE, num.threads = 1, seed = seed)
answer <- suppressWarnings(predict(forest, at, type = "se", num.threads = 1))
found <- data.frame(mean = answer$predictions, se = answer$se)
""",
    "grf": """
forest <- grf::regression_forest(data[x], data$y, clusters = data$cluster,
                                 num.trees = trees, num.threads = 1, seed = seed)
answer <- predict(forest, at[x], estimate.variance = TRUE)
found <- data.frame(mean = answer$predictions, se = sqrt(answer$variance.estimates))
""",
}
OWN_FORESTS = "vstatkit"  # with the trees and the quantiles of other packages
PEERS = (OWN_FORESTS, *R_CODE, "EconML")


class PeerError(VstatkitError):
    """Another package failed."""


def has_r_package(name: str) -> bool:
    """Return whether R is installed and loads a package."""
    if shutil.which("Rscript") is None:
        return False
    code = f"quit(status = !requireNamespace('{name}', quietly = TRUE))"
    command = ["Rscript", "--vanilla", "-e", code]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def find_peers() -> tuple[list[str], list[str]]:
    """List the packages that are installed, and those that are not."""
    installed = [OWN_FORESTS, *(name for name in R_CODE if has_r_package(name))]
    if importlib.util.find_spec("econml") is not None:
        installed.append("EconML")
    return installed, [name for name in PEERS if name not in installed]


def peer_applies(peer: str, dgp: DGP) -> bool:
    """Return whether a package has intervals for a DGP: regression, supported data."""
    if dgp.classes:
        return False
    return peer in (OWN_FORESTS, "grf") or (dgp.groups is None and dgp.hide is None)


@dataclass(frozen=True)
class PeerExperiment:
    """Blocks of data sets of a DGP, each data set with another package's forest.

    R takes a second or two to start, so an iteration is a block of data sets.
    """

    peer: str
    dgp: DGP
    trees: int = 2000
    block: int = 20

    @property
    def name(self) -> str:
        """Name of its random streams and checkpoints."""
        return f"validity-{self.peer}-{self.dgp.name}"

    def settings(self) -> dict[str, Any]:
        """Describe all that the numbers depend on apart from the seed."""
        own = {"peer": self.peer, "trees": self.trees, "block": self.block}
        return describe_dgp(self.dgp) | own

    def run(self, seed: int, iteration: int) -> Record:
        """Draw a block of data sets and record the intervals of the forests."""
        numbers = range(iteration * self.block, (iteration + 1) * self.block)
        frames = [draw_data(self.dgp, seed, number) for number in numbers]
        stream = iteration_stream(seed, self.name, iteration, Draw.ENSEMBLE)
        seeds = stream.integers(2**31 - 1, size=self.block).tolist()
        if self.peer == OWN_FORESTS:
            fits = [
                grow(self.dgp, frame, rng, B=self.trees)
                for frame, rng in zip(frames, seeds, strict=True)
            ]
            estimates = np.array([[results.params, results.bse] for results in fits])
        else:
            fit_peer = _fit_econml if self.peer == "EconML" else self._fit_in_r
            tables = [encode_data(self.dgp, frame) for frame in frames]
            estimates = fit_peer(tables, encode_factors(self.dgp.points), seeds)
        mean, se = estimates[:, 0], estimates[:, 1]
        half = normal_quantile(1 - ALPHA) * se
        bounds = {"lower": mean - half, "upper": mean + half, "variance": se**2}
        return {"mean": mean} | {name: a[:, None] for name, a in bounds.items()}

    def _fit_in_r(
        self, tables: list[pd.DataFrame], at: pd.DataFrame, seeds: list[int]
    ) -> Floats:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            at.to_csv(folder / "at.csv", index=False)
            for i, table in enumerate(tables, 1):
                table.to_csv(folder / f"data{i}.csv", index=False)
            code = R_HEAD + R_CODE[self.peer] + R_TAIL
            _run_r(self.peer, code, [name, str(self.trees), *map(str, seeds)])
            outputs = [folder / f"out{i}.csv" for i in range(1, len(tables) + 1)]
            return np.stack([pd.read_csv(path).to_numpy(float).T for path in outputs])


def encode_data(dgp: DGP, data: pd.DataFrame) -> pd.DataFrame:
    """Encode a data set for other packages: predictors, y, and cluster if any."""
    table = encode_factors(data[dgp.points.columns]).assign(y=data["y"])
    return table if dgp.groups is None else table.assign(cluster=data[dgp.groups])


def _run_r(peer: str, code: str, arguments: list[str]) -> None:
    command = ["Rscript", "--vanilla", "-e", code, *arguments]
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=R_SECONDS
        )
    except subprocess.SubprocessError as error:
        output = str(getattr(error, "stderr", None) or error).strip()[-300:]
        raise PeerError(
            f"{peer} failed in R: {output} Repair the package, or leave 'peers' out of "
            "the settings."
        ) from error


def _fit_econml(
    tables: list[pd.DataFrame], at: pd.DataFrame, seeds: list[int]
) -> Floats:
    from econml.grf import RegressionForest  # noqa: PLC0415 an optional package

    points, predictions = at.to_numpy(), []
    for table, rng in zip(tables, seeds, strict=True):
        forest = RegressionForest(n_jobs=1, random_state=rng)
        forest.fit(table.drop(columns="y").to_numpy(), table[["y"]].to_numpy())
        both = forest.predict(points), forest.prediction_stderr(points)
        predictions.append([np.asarray(column)[:, 0] for column in both])
    return np.array(predictions)
