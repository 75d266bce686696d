"""Do intervals cover E[y|x]? Plain forests, trends, boosts, on laws that are known.

`python -m benchmarks.truth [data sets] [directory] [laws ...]` draws data sets from the
regression laws of the validity study, fits a forest by each method, and counts how
often the 95 % intervals at the law's points hold the law's mean. A file for each law
is kept in the directory, one line a point and method. `VSTATKIT_TRUTH_K` sets the size
of the subsamples, as a fraction of n, and `VSTATKIT_TRUTH_B` the number of learners.

The laws and the two groups were named before the first run. `missing` is left out:
what is missing at its points has no mean that the law states.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import vstatkit as vs
from vstatkit.studies.laws import LAWS

DEVELOPED = (
    "mars",
    "friedman10",
    "noise",
    "linear20",
    "heavy",
    "spread",
    "correlated",
    "levels",
    "clusters",
)
ASIDE = ("jumps", "counts", "exclusive", "lognormal")

METHODS: dict[str, dict[str, Any]] = {
    "plain": {},
    "trend": {"trend": "linear"},
    "boost": {"boost": 1},
    "both": {"trend": "linear", "boost": 1},
}
B, SEED = int(os.environ.get("VSTATKIT_TRUTH_B", "1000")), 20_261


def fitted(name: str, number: int, methods: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Fit one data set by every method, and list the intervals."""
    law = LAWS[name]
    frame = law(np.random.default_rng([SEED, number]))
    size = os.environ.get("VSTATKIT_TRUTH_K")
    parts = []
    chosen = vs.fit(
        law.formula,
        frame,
        groups=law.groups,
        k=None if size is None else float(size),
        B=20,
        rng=number,
        n_jobs=1,
        oob=False,
        target="truth",
    ).info.aim
    for method, options in methods.items():
        start = time.process_time()
        res = vs.fit(
            law.formula,
            frame,
            at=law.points,
            groups=law.groups,
            k=None if size is None else float(size),
            B=B,
            rng=number,
            n_jobs=1,
            **options,
        )
        bounds = res.conf_int().reset_index(drop=True)
        part = pd.DataFrame({"estimate": res.params.to_numpy()})
        part["se"] = res.bse.to_numpy()
        part[["lower", "upper"]] = bounds[["lower", "upper"]]
        part["truth"] = law.mean(law.points)
        part["aim"] = None if res.info.aim is None else res.info.aim.learner
        part["left"] = np.nan
        if res.info.aim is not None and res.info.aim.bias:
            part["left"] = res.info.aim.bias
        part["seconds"] = time.process_time() - start
        parts.append(part.assign(method=method, point=range(len(part)), data=number))
    return pd.concat(parts)


def cells(found: pd.DataFrame) -> pd.DataFrame:
    """Count for every method and point."""
    error = found["estimate"] - found["truth"]
    covered = (found["lower"] <= found["truth"]) & (found["truth"] <= found["upper"])
    table = found.assign(
        coverage=covered, error=error, square=error**2, width=found.upper - found.lower
    )
    by = table.groupby(["method", "point"], sort=False)
    cell = by.agg(
        coverage=("coverage", "mean"),
        bias=("error", "mean"),
        sd=("error", "std"),
        se=("se", "mean"),
        rmse=("square", "mean"),
        width=("width", "mean"),
        left=("left", "mean"),
        seconds=("seconds", "mean"),
    )
    return cell.assign(rmse=np.sqrt(cell["rmse"]))


def summary(law: str, cell: pd.DataFrame) -> pd.DataFrame:
    """Say how a method does on a law, over its points."""
    by = cell.groupby("method", sort=False)
    table = by.agg(
        coverage=("coverage", "mean"),
        least=("coverage", "min"),
        rmse=("rmse", lambda one: np.sqrt(np.mean(one**2))),
        width=("width", "mean"),
        seconds=("seconds", "mean"),
    )
    table["cells >= .9"] = by["coverage"].apply(lambda one: (one >= 0.9).mean())
    return table.assign(law=law).set_index("law", append=True).swaplevel()


def main() -> None:
    """Run the laws that are asked for, and print what was found."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    directory = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    names = sys.argv[3:] or [*DEVELOPED, *ASIDE]
    tables = []
    for name in names:
        found = pd.concat([fitted(name, number, METHODS) for number in range(count)])
        cell = cells(found)
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            cell.to_csv(directory / f"{name}.csv", float_format="%.5g")
        tables.append(summary(name, cell))
        print(tables[-1].round(3).to_string(), flush=True)
    print(pd.concat(tables).groupby("method", sort=False).mean().round(3).to_string())


if __name__ == "__main__":
    main()
