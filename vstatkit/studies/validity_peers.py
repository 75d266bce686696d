"""Intervals of other packages on the data sets of the validity study.

Our own forests are included, with as many trees and with normal quantiles.
"""

import importlib.util
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.exceptions import VstatkitError
from vstatkit.studies.dgps import Law
from vstatkit.studies.experiment import Draw, Record, iteration_stream
from vstatkit.studies.metrics import normal_quantile
from vstatkit.studies.validity import (
    ALPHA,
    describe_law,
    draw_data,
    grow,
    plain_columns,
)


def has_r_package(name: str) -> bool:
    """Tell whether R is installed and loads a package."""
    if shutil.which("Rscript") is None:
        return False
    code = f"quit(status = !requireNamespace('{name}', quietly = TRUE))"
    asked = ["Rscript", "--vanilla", "-e", code]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


ITERATIONS = 200
"""Largest number of data sets that peers see."""

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
ALIKE = "vstatkit"
"""Our forests with the trees and the quantiles of peers."""

PEERS = (ALIKE, *R_CODE, "EconML")


class PeerError(VstatkitError):
    """Another package could not do what the study asks."""


def installed() -> tuple[list[str], list[str]]:
    """Peers that can run here, and those that cannot."""
    there = [ALIKE, *(name for name in R_CODE if has_r_package(name))]
    if importlib.util.find_spec("econml") is not None:
        there.append("EconML")
    return there, [name for name in PEERS if name not in there]


def applies(peer: str, law: Law) -> bool:
    """Tell whether a peer has intervals for a law: regression, and data it can read."""
    if law.classes:
        return False
    return peer in (ALIKE, "grf") or (law.groups is None and law.hide is None)


@dataclass(frozen=True)
class Peer:
    """Blocks of data sets from a law, each data set with another package's forest.

    R takes a second or two to start: an iteration is a block of data sets.

    Attributes
    ----------
    peer : str
        Package.
    law : Law
        Where data sets come from; the same ones as ours.
    trees : int
        Trees of a forest.
    block : int
        Data sets of an iteration.
    """

    peer: str
    law: Law
    trees: int = 2000
    block: int = 20

    @property
    def name(self) -> str:
        """Name of its streams and of its checkpoints."""
        return f"validity-{self.peer}-{self.law.name}"

    def settings(self) -> dict[str, Any]:
        """All that the numbers depend on apart from the seed."""
        return {
            **describe_law(self.law),
            "peer": self.peer,
            "trees": self.trees,
            "block": self.block,
        }

    def run(self, seed: int, iteration: int) -> Record:
        """Draw a block of data sets and keep the forests' intervals."""
        first = iteration * self.block
        drawn = [
            draw_data(self.law, seed, one) for one in range(first, first + self.block)
        ]
        stream = iteration_stream(seed, self.name, iteration, Draw.ENSEMBLE)
        seeds = stream.integers(2**31 - 1, size=self.block).tolist()
        if self.peer == ALIKE:
            mean, se = self._ask_ours(drawn, seeds)
        else:
            ask = _ask_econml if self.peer == "EconML" else self._ask_r
            tables = [self._table(data) for data in drawn]
            mean, se = ask(tables, plain_columns(self.law.points), seeds)
        half = normal_quantile(1 - ALPHA) * se
        bounds = {"lower": mean - half, "upper": mean + half, "variance": se**2}
        return {"mean": mean} | {name: a[:, None] for name, a in bounds.items()}

    def _table(self, data: pd.DataFrame) -> pd.DataFrame:
        table = plain_columns(data[self.law.points.columns]).assign(y=data["y"])
        if self.law.groups is not None:
            table["cluster"] = data[self.law.groups]
        return table

    def _ask_ours(
        self, drawn: list[pd.DataFrame], seeds: list[int]
    ) -> tuple[Floats, Floats]:
        found = [
            grow(self.law, data, rng, B=self.trees)
            for data, rng in zip(drawn, seeds, strict=True)
        ]
        both = np.array([[one.params, one.bse] for one in found])
        return both[:, 0], both[:, 1]

    def _ask_r(
        self, tables: list[pd.DataFrame], at: pd.DataFrame, seeds: list[int]
    ) -> tuple[Floats, Floats]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            at.to_csv(folder / "at.csv", index=False)
            for i, table in enumerate(tables, 1):
                table.to_csv(folder / f"data{i}.csv", index=False)
            code = R_HEAD + R_CODE[self.peer] + R_TAIL
            _run_r(self.peer, code, [name, str(self.trees), *map(str, seeds)])
            found = [
                pd.read_csv(folder / f"out{i}.csv").to_numpy(float)
                for i in range(1, len(tables) + 1)
            ]
        both = np.stack(found)
        return both[..., 0], both[..., 1]


def one_by_one(record: Record) -> Record:
    """Undo the blocks: data sets become the first axis."""
    return {name: a.reshape(-1, *a.shape[2:]) for name, a in record.items()}


def _run_r(peer: str, code: str, given: list[str]) -> None:
    command = ["Rscript", "--vanilla", "-e", code, *given]
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=R_SECONDS
        )
    except subprocess.SubprocessError as error:
        said = str(getattr(error, "stderr", None) or error).strip()[-300:]
        raise PeerError(
            f"{peer} failed in R: {said} Mend the package, or leave 'peers' out of the "
            "settings."
        ) from error


def _ask_econml(
    tables: list[pd.DataFrame], at: pd.DataFrame, seeds: list[int]
) -> tuple[Floats, Floats]:
    from econml.grf import RegressionForest  # noqa: PLC0415 an optional package

    points, answers = at.to_numpy(), []
    for table, rng in zip(tables, seeds, strict=True):
        forest = RegressionForest(n_jobs=1, random_state=rng)
        forest.fit(table.drop(columns="y").to_numpy(), table[["y"]].to_numpy())
        found = forest.predict(points), forest.prediction_stderr(points)
        answers.append([np.asarray(one)[:, 0] for one in found])
    both = np.array(answers)
    return both[:, 0], both[:, 1]
