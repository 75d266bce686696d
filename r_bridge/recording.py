"""Forests recorded from R, read and written as compressed JSON."""

import gzip
import json
from dataclasses import dataclass
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from r_bridge.grf import GrfForest, read_trees
from r_bridge.ranger import RangerNumbers
from vstatkit._typing import Floats, Ints


@dataclass(frozen=True)
class Recording:
    """Forests of grf, with the versions of R and grf."""

    versions: dict[str, str]  # versions of R and of grf
    forests: tuple[GrfForest, ...]  # what was recorded


def read_recording(path: str | PathLike[str] | None = None) -> Recording:
    """Read forests recorded from grf; by default those that come with the package."""
    own = resources.files("r_bridge").joinpath("recorded/grf.json.gz")
    file = own if path is None else Path(path)
    found = json.loads(gzip.decompress(file.read_bytes()))
    Y, points = (np.array(found[name], dtype=float) for name in ("Y", "newdata"))
    return Recording(
        versions={"R": found["r_version"].split()[2], "grf": found["grf_version"]},
        forests=tuple(_forest(one, Y, points) for one in found["forests"]),
    )


def _forest(one: dict[str, Any], Y: Any, points: Any) -> GrfForest:
    weights, trees = one.get("weights"), one.get("tree_predictions")
    return GrfForest(
        name=one["name"],
        Y=Y,
        newdata=points,
        trees=read_trees(one["trees"]),
        group_size=int(one["ci_group_size"]),
        predictions=np.array(one["predictions"], dtype=float),
        variances=np.array(one["variance_estimates"], dtype=float),
        weights=None if weights is None else np.array(weights, dtype=float),
        tree_predictions=None if trees is None else np.array(trees, dtype=float).T,
    )


@dataclass(frozen=True)
class RecordedRanger:
    """A ranger forest's numbers, recorded; see `r_bridge.ranger.RangerNumbers`."""

    title: str  # setting in which it was grown
    replace: bool  # whether subsamples were drawn with replacement
    regression: bool  # whether it is a regression forest
    arrays: dict[str, Any]  # counts, tree values, means and variances

    def counts(self) -> Ints:
        """Count how often each observation is in each tree's subsample, (B, n)."""
        return np.asarray(self.arrays["counts"], dtype=np.int64)

    def tree_values(self) -> Floats:
        """Predict with every tree, (B, m) or (B, m x classes)."""
        return self._floats("values")

    def mean(self) -> Floats:
        """Predict with the forest."""
        return self._floats("mean")

    def squared_se(self, method: str) -> Floats:
        """Square of `predict(type = "se")`."""
        return self._floats(method)

    def uncalibrated(self) -> Floats:
        """Compute the infinitesimal jackknife before calibration, all rows, (m,)."""
        return self._floats("uncalibrated")

    def _floats(self, name: str) -> Floats:
        return np.asarray(self.arrays[name], dtype=np.float64)


def ranger_document(
    title: str, forest: RangerNumbers, *, replace: bool, regression: bool
) -> dict[str, Any]:
    """Collect a ranger forest's numbers for a recording."""
    arrays = {
        "counts": forest.counts(),
        "values": forest.tree_values(),
        "mean": forest.mean(),
        "uncalibrated": forest.uncalibrated(),
        "infjack": forest.squared_se("infjack"),
    }
    if regression:
        arrays["jack"] = forest.squared_se("jack")
    setting = {"title": title, "replace": replace, "regression": regression}
    return {**setting, "arrays": arrays}


def read_ranger(path: str | PathLike[str]) -> list[RecordedRanger]:
    """Read forests recorded from ranger."""
    found = json.loads(gzip.decompress(Path(path).read_bytes()))
    return [
        RecordedRanger(
            title=one["title"],
            replace=one["replace"],
            regression=one["regression"],
            arrays={name: np.array(rows) for name, rows in one["arrays"].items()},
        )
        for one in found["forests"]
    ]


def write_json(document: dict[str, Any], path: Path) -> None:
    """Write compressed JSON; the same numbers give the same bytes."""
    text = json.dumps(document, separators=(",", ":"), default=_plain)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _plain(value: Any) -> Any:
    """Convert arrays and numbers to JSON types."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be recorded.")
