"""Standard errors of shards, checked on data sets from known designs.

`python -m benchmarks.shards [iterations] [directory]` draws data sets of 20,000 rows,
fits forests of k = 200 on 40 shards, and compares the reported variance with that of
the estimates over the data sets, and the coverage of the intervals with 95 %. The
designs are those of the validity study, set to 20,000 rows; they were named before the
first run. With a directory, finished data sets are kept, and a run that was stopped
goes on.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import vstatkit as vs
from vstatkit.studies.dgps import DGPS

NAMES = ("mars", "heavy", "binary", "lognormal")
ROWS, K, SHARDS, PER_SHARD = 20_000, 200, 40, 5


def checked(name: str, iterations: int, directory: str | None) -> pd.DataFrame:
    dgp = replace(DGPS[name], n=ROWS)
    return vs.studies.coverage(
        dgp,
        dgp.formula,
        at=dgp.band(),
        k=K,
        B=SHARDS * PER_SHARD,
        design="shards",
        n_shards=SHARDS,
        iterations=iterations,
        rng=20_000,
        n_jobs=-1,
        progress=True,
        checkpoint=None if directory is None else Path(directory) / name,
    )


def row(name: str, frame: pd.DataFrame) -> dict[str, object]:
    pooled = frame["mean_variance"].sum() / frame["true_variance"].sum()
    return {
        "law": name,
        "points": len(frame),
        "variance ratio": pooled,
        "median of points": frame["ratio"].median(),
        "lowest": frame["ratio"].min(),
        "highest": frame["ratio"].max(),
        "coverage": frame["coverage"].mean(),
        "lowest coverage": frame["coverage"].min(),
    }


def main() -> None:
    iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    directory = sys.argv[2] if len(sys.argv) > 2 else None
    rows = [row(name, checked(name, iterations, directory)) for name in NAMES]
    table = pd.DataFrame(rows).set_index("law")
    print(table.round(3).to_string())
    print(f"The variance ratio of one point is known to {np.sqrt(2 / iterations):.1%}.")


if __name__ == "__main__":
    main()
