"""Do intervals cover E[y|x]? Plain forests, trends, boosts, on known designs.

`python -m benchmarks.truth [data sets] [file] [designs ...]` draws data sets from the
regression designs of the validity study, fits a forest by each method, and counts how
often the 95 % intervals at the design's points cover its mean. Every interval is
appended to the file; a run that was stopped goes on, and with 0 data sets it reports
what there is. Where grf and EconML are installed, their forests take part.
`VSTATKIT_TRUTH_B` sets the number of learners, `VSTATKIT_TRUTH_K` the size of
subsamples, as a fraction of n, and `VSTATKIT_TRUTH_METHODS` some of the methods.

The designs, and which of them were set aside, were named before the first run.
`missing` is left out, because the mean at points with missing values is unknown.
"""

import itertools
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import vstatkit as vs
from benchmarks.truth_designs import NEW_DGPS
from benchmarks.truth_peers import econml_intervals, grf_intervals, has_econml
from vstatkit.studies.dgps import DGP, DGPS
from vstatkit.studies.validity_experiments import has_r_package

DEVELOPED = (
    *("mars", "friedman10", "noise", "linear20", "heavy"),
    *("spread", "correlated", "levels", "clusters"),
)
SEEN = ("jumps", "counts", "exclusive", "lognormal")
"""Set aside until `trend` and `boost` were settled, and looked at since."""

ASIDE = ("sine", "sparse30", "product", "bump")
"""Set aside until the choice of smoothing was settled."""

LAST = ("index", "bits", "gate", "decay")
"""Set aside until the mix was settled."""

ALL_DGPS = DGPS | NEW_DGPS

METHODS: dict[str, dict[str, Any]] = {
    "plain": {},
    "trend": {"trend": "linear"},
    "boost": {"boost": 1},
    "both": {"trend": "linear", "boost": 1},
    "truth": {"target": "truth"},
}
PEERS = {"grf": grf_intervals, "econml": econml_intervals}
SEED = 20_261
COLUMNS = [
    *("estimate", "se", "left", "lower", "upper", "seconds", "method", "point"),
    *("truth", "chosen", "law", "data"),
]

B = int(os.environ.get("VSTATKIT_TRUTH_B", "1000"))
K = os.environ.get("VSTATKIT_TRUTH_K")
ASKED = os.environ.get("VSTATKIT_TRUTH_METHODS", ",".join(METHODS)).split(",")


def fit(dgp: DGP, frame: pd.DataFrame, number: int, **options: Any) -> Any:
    """Fit a forest to a data set."""
    how = {"at": dgp.points, "groups": dgp.groups, "rng": number, "n_jobs": 1, "B": B}
    how["k"] = None if K is None else float(K)
    return vs.fit(dgp.formula, frame, **(how | options))


def fitted(dgp: DGP, number: int, methods: list[str]) -> pd.DataFrame:
    """Fit one data set by some methods, and list the intervals."""
    frame = dgp(np.random.default_rng([SEED, number]))
    parts = []
    for method in methods:
        start = time.process_time()
        res = fit(dgp, frame, number, **METHODS[method])
        part = pd.DataFrame({"estimate": res.params.to_numpy()})
        part["se"] = res.bse.to_numpy()
        part[["lower", "upper"]] = res.conf_int().to_numpy()
        part["seconds"] = time.process_time() - start
        truth = method == "truth"
        part["left"] = res.bias_left()["bias"].to_numpy() if truth else np.nan
        part["chosen"] = name_of(res.recipe.task.kernel) if truth else None
        parts.append(part.assign(method=method, point=range(len(part))))
    return with_truth(dgp, pd.concat(parts).assign(data=number))


def with_truth(dgp: DGP, found: pd.DataFrame) -> pd.DataFrame:
    """Add the design and its means, and put the columns in the order of the file."""
    means = np.asarray(dgp.mean(dgp.points))[found["point"]]
    return found.assign(truth=means, law=dgp.name).reindex(columns=COLUMNS)


def fitted_by_peer(peer: str, dgp: DGP, numbers: list[int]) -> pd.DataFrame:
    """List a peer's intervals on data sets."""
    frames = {one: dgp(np.random.default_rng([SEED, one])) for one in numbers}
    return with_truth(dgp, PEERS[peer](dgp, frames))


def name_of(kernel: Any) -> str:
    """Name the stages of a kernel as METHODS does, its leaves and its columns."""
    trend, boost = getattr(kernel, "stages", (False, False))
    stages = {(0, 0): "plain", (1, 0): "trend", (0, 1): "boost"}.get(
        (int(trend), int(boost)), "both"
    )
    leaf, tried = kernel.options["min_samples_leaf"], kernel.options["max_features"]
    return f"{stages} {leaf} {tried}"


def cells(found: pd.DataFrame) -> pd.DataFrame:
    """Count for every design, method and point."""
    error = found["estimate"] - found["truth"]
    covered = (found["lower"] <= found["truth"]) & (found["truth"] <= found["upper"])
    width = found["upper"] - found["lower"]
    table = found.assign(covered=covered, error=error, square=error**2, width=width)
    by = table.groupby(["law", "method", "point"], sort=False)
    cell = by.agg(
        coverage=("covered", "mean"),
        bias=("error", "mean"),
        left=("left", "mean"),
        sd=("error", "std"),
        se=("se", "mean"),
        rmse=("square", "mean"),
        width=("width", "mean"),
        seconds=("seconds", "mean"),
        data_sets=("data", "size"),
    )
    shift = cell["bias"] / cell["sd"]
    known = stats.norm.cdf(1.96 - shift) - stats.norm.cdf(-1.96 - shift)
    # What normal intervals would cover if the standard deviation were known.
    return cell.assign(rmse=np.sqrt(cell["rmse"]), known_sd=known)


def by_law(cell: pd.DataFrame) -> pd.DataFrame:
    """Say how each method does on a design, over its points."""
    by = cell.groupby(["law", "method"], sort=False)
    table = by.agg(
        coverage=("coverage", "mean"),
        least=("coverage", "min"),
        known_sd=("known_sd", "mean"),
        rmse=("rmse", lambda one: np.sqrt(np.mean(one**2))),
        width=("width", "mean"),
        seconds=("seconds", "mean"),
        data_sets=("data_sets", "min"),
    )
    table["from 90 %"] = by["coverage"].apply(lambda one: (one >= 0.9).mean())
    return table


def report(path: Path) -> None:
    """Print what a file holds."""
    found = pd.read_csv(path)
    cell = cells(found)
    print(by_law(cell).round(3).to_string())
    points = cell["coverage"].unstack("method", sort=False)  # noqa: PD010
    print(points.round(2).to_string())
    for names in (DEVELOPED, SEEN, ASIDE, LAST):
        some = points[points.index.get_level_values("law").isin(names)]
        print(f"\n{len(some)} cells of {', '.join(names)}")
        shares = {"from 90 %": (some >= 0.9).mean(), "mean": some.mean()}
        if "plain" in some:
            below = [(some[method] < some["plain"]).sum() for method in some]
            shares["below plain"] = pd.Series(below, some.columns)
        print(pd.DataFrame(shares).round(3).to_string())
    print(pd.crosstab(found["chosen"], found["law"]).to_string())


def main() -> None:
    """Go through the data sets, every design in turn, and report."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    path = Path(sys.argv[2] if len(sys.argv) > 2 else "truth.csv")
    designs = sys.argv[3:] or (*DEVELOPED, *SEEN, *ASIDE, *LAST)
    done = finished(path)
    for number in range(count):
        for name in designs:
            missing = [one for one in ASKED if (name, one, number) not in done]
            if missing:
                append(path, fitted(ALL_DGPS[name], number, missing))
    here = {"grf": has_r_package("grf"), "econml": has_econml()}
    for peer, name in itertools.product((one for one in here if here[one]), designs):
        missing = [one for one in range(count) if (name, peer, one) not in done]
        if missing:
            append(path, fitted_by_peer(peer, ALL_DGPS[name], missing))
    report(path)


def finished(path: Path) -> set[tuple[str, str, int]]:
    """List designs, methods and data sets that a file holds."""
    if not path.exists():
        return set()
    old = pd.read_csv(path, usecols=["law", "method", "data"])
    return set(zip(old["law"], old["method"], old["data"], strict=True))


def append(path: Path, part: pd.DataFrame) -> None:
    """Write intervals below those that are there."""
    part.to_csv(path, mode="a", index=False, header=not path.exists())


if __name__ == "__main__":
    main()
