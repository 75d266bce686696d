"""Data sets of the paper's Table 1, built in or read from files and R."""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from vstatkit import datasets
from vstatkit._typing import Floats
from vstatkit.exceptions import VstatkitError
from vstatkit.studies.dgps import Mars

ENVIRONMENT = "VSTATKIT_DATA"
R_SECONDS = 60  # time limit for R to write a data set


class MissingDataError(VstatkitError):
    """A data set is missing; the message says how to get it."""


@dataclass(frozen=True, eq=False)
class Observations:
    """A fixed table of predictors and responses, or class codes."""

    X: Floats
    y: Floats
    n_classes: int | None

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the table, whatever the stream."""
        return self.X, self.y

    def fingerprint(self) -> str:
        """Hash the table, so that checkpoints of another table raise an error."""
        digest = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        digest.update(np.ascontiguousarray(self.y).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class SimulatedTable:
    """A table drawn again for every split; the response is `y`."""

    generator: Mars
    n_classes: None = None

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw a table."""
        frame = self.generator(rng)
        return _numbers(frame.drop(columns="y")), _numbers(frame["y"])

    def fingerprint(self) -> str:
        """Describe the generator."""
        return repr(self.generator)


Source = Observations | SimulatedTable


def resolve_data_path(given: Path | str | None) -> Path | None:
    """Return the path of the data, by default from the environment; it must exist."""
    path = os.environ.get(ENVIRONMENT) if given is None else given
    if not path:
        return None
    if not Path(path).exists():
        origin = f"{ENVIRONMENT} in the environment" if given is None else "`data`"
        raise ValueError(
            f"{origin} must name a directory with boston.csv and retinopathy.arff, or "
            f"one of the two; {path} does not exist."
        )
    return Path(path)


def load(name: str, path: Path | None = None) -> Source:
    """Load a data set of Table 1 by name, or raise `MissingDataError`.

    `path` is a directory with `boston.csv` and `retinopathy.arff`, or one of the two
    files; by default the value of the environment variable `VSTATKIT_DATA`.
    """
    return SOURCES[name](resolve_data_path(path))


def _from_loader(loader: Callable[[], pd.DataFrame]) -> Callable[[Path | None], Source]:
    return lambda path: _from_frame(loader())


def _from_frame(frame: pd.DataFrame) -> Observations:
    """Take the last column as the response."""
    if frame.isna().any(axis=None):
        raise MissingDataError(
            f"the data must have no missing values; column "
            f"{frame.columns[frame.isna().any()][0]!r} has some."
        )
    X, response = _numbers(frame.iloc[:, :-1]), frame.iloc[:, -1]
    if isinstance(response.dtype, pd.CategoricalDtype):
        codes = np.asarray(response.cat.codes, dtype=np.float64)
        return Observations(X, codes, len(response.cat.categories))
    return Observations(X, _numbers(response), None)


def _numbers(frame: pd.DataFrame | pd.Series) -> Floats:
    return np.ascontiguousarray(frame.to_numpy(dtype=np.float64))


def _find(path: Path | None, names: tuple[str, ...]) -> Path | None:
    """Find a file with one of these names; a given file must have their suffix."""
    if path is None:
        return None
    if path.is_file():
        return path if path.suffix == Path(names[0]).suffix else None
    return next((path / name for name in names if (path / name).is_file()), None)


def _boston(path: Path | None) -> Observations:
    file = _find(path, ("boston.csv", "Boston.csv"))
    frame = _boston_from_r() if file is None else pd.read_csv(file)
    frame.columns = frame.columns.str.lower()
    if "medv" not in frame or frame.shape != (506, 14):
        raise MissingDataError(
            f"boston must have 506 rows and 14 columns, `medv` among them, as R's "
            f"MASS::Boston; {file or 'R'} has {frame.shape[0]} rows and the columns "
            f"{', '.join(frame.columns)}."
        )
    return _from_frame(frame[[*frame.columns.drop("medv"), "medv"]])


def _boston_from_r() -> pd.DataFrame:
    """Read MASS::Boston from R."""
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "boston.csv"
        code = "write.csv(MASS::Boston, commandArgs(TRUE)[1], row.names = FALSE)"
        command = ["Rscript", "--vanilla", "-e", code, str(target)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=R_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            raise MissingDataError(
                "boston is not there: install R with its package MASS (Debian: "
                "r-cran-mass), or put MASS::Boston as boston.csv into the directory "
                f"that --data or {ENVIRONMENT} names."
            ) from error
        return pd.read_csv(target)


def _retinopathy(path: Path | None) -> Observations:
    file = _find(path, ("retinopathy.arff", "messidor_features.arff"))
    if file is None:
        raise MissingDataError(
            "retinopathy is not there: download the file messidor_features.arff of "
            "UCI's data set 329, Diabetic Retinopathy Debrecen "
            "(https://archive.ics.uci.edu/dataset/329), and name it, or its "
            f"directory, by --data or {ENVIRONMENT}."
        )
    from scipy.io import arff  # noqa: PLC0415 slow import

    try:
        frame = pd.DataFrame(arff.loadarff(file)[0])
    except (OSError, ValueError, StopIteration, NotImplementedError) as error:
        raise MissingDataError(
            f"retinopathy: {file} cannot be read as an ARFF file."
        ) from error
    if frame.shape != (1151, 20):
        raise MissingDataError(
            f"retinopathy must have 1151 rows and 20 columns; {file} has "
            f"{frame.shape[0]} and {frame.shape[1]}."
        )
    response = pd.Categorical(frame.iloc[:, -1].astype(float))
    return _from_frame(frame.iloc[:, :-1].assign(response=response))


# Data sets in the order of the table.
SOURCES: dict[str, Callable[[Path | None], Source]] = {
    "boston": _boston,
    "diabetes": _from_loader(partial(datasets.diabetes, scaled=True)),
    "MARS": lambda path: SimulatedTable(Mars()),
    "iris": _from_loader(datasets.iris),
    "digits": _from_loader(datasets.digits),
    "retinopathy": _retinopathy,
    "breast_cancer": _from_loader(datasets.breast_cancer),
}
