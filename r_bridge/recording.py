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


@dataclass(frozen=True)
class Recording:
    """grf's forests, with the versions that they come from.

    Attributes
    ----------
    versions : dict
        Versions of R and of grf.
    forests : tuple of GrfForest
        What was recorded.
    """

    versions: dict[str, str]
    forests: tuple[GrfForest, ...]


def read_recording(path: str | PathLike[str] | None = None) -> Recording:
    """Read forests recorded from grf.

    Parameters
    ----------
    path : str or path, optional
        A file that `python -m r_bridge.record` wrote; by default the one that
        comes with the package.
    """
    if path is None:
        packed = resources.files("r_bridge").joinpath("recorded/grf.json.gz").read_bytes()
    else:
        packed = Path(path).read_bytes()
    found = json.loads(gzip.decompress(packed))
    Y, points = np.array(found["Y"], dtype=float), np.array(found["newdata"], dtype=float)
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


def write_json(document: dict[str, Any], path: Path) -> None:
    """Write compressed JSON; the same numbers give the same bytes."""
    text = json.dumps(document, separators=(",", ":"), default=_plain)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _plain(value: Any) -> Any:
    """Turn arrays and their numbers into what JSON knows."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be recorded.")
