"""Fit a Parquet file that need not fit into memory: time, memory, relative error.

python -m benchmarks.make_parquet big.parquet
python -m benchmarks.beyond_memory big.parquet

prints, for a forest of `y ~ .` with k = 5000 at 100 points and defaults otherwise: the
seconds of the coding alone and of the whole, the largest memory that the process ever
had, and the largest relative Monte Carlo error of a standard error, as the results
state it, and a fingerprint of the estimates and standard errors. With `--passes` it
stops after the coding; with `--dask 2` the learners are grown by a local Dask cluster
of two worker processes, whose memory is not counted.
"""

import argparse
import contextlib
import hashlib
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import vstatkit as vs
from vstatkit import fit_steps
from vstatkit.formula.streaming.parse import parse_source
from vstatkit.sources.recognition import find_source


def peak_gigabytes() -> float:
    """Return the largest memory of this process; pages of mapped files count."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def points(path: Path, m: int) -> pd.DataFrame:
    """Draw points that are uniform over the columns of the file, from a fixed seed."""
    names = [name for name in pq.read_schema(path).names if name != "y"]
    draws = np.random.default_rng(7).random((m, len(names)))
    return pd.DataFrame(draws, columns=names)


def report(what: str, start: float, **more: Any) -> None:
    seconds = time.perf_counter() - start
    others = "".join(f", {name} {value}" for name, value in more.items())
    print(
        f"{what}: {seconds:.1f} s, peak {peak_gigabytes():.2f} GB{others}", flush=True
    )


def code_only(path: Path, n_jobs: int) -> None:
    """Measure the passes over the file alone."""
    source = find_source(path)
    if source is None:
        raise ValueError(f"{path} is no file to read.")
    start = time.perf_counter()
    made, _ = parse_source(
        "y ~ .", source, environment=None, intercept=False, n_jobs=n_jobs
    )
    report("coding", start, rows=f"{len(made.y):,}")
    start = time.perf_counter()
    made.typical_row, made.coding.ranges(made.frame)
    report("typical row and ranges", start)


def fit(path: Path, options: argparse.Namespace) -> None:
    """Measure a whole fit, and say what it knows of its own error."""
    start = time.perf_counter()

    def coded(*args: Any, **how: Any) -> Any:
        made = parse_source(*args, **how)
        report("coding", start)
        return made

    given = {} if options.B is None else {"B": options.B}
    with mock.patch.object(fit_steps, "parse_source", coded), warnings.catch_warnings():
        warnings.simplefilter("default")
        results = vs.fit(
            "y ~ .",
            path,
            k=options.k,
            at=points(path, options.points),
            rng=1,
            n_jobs=options.n_jobs,
            **given,
        )
    report("fit", start, B=results.B, design=results.design.name)
    error = results.diagnostics["relative_mc_error"].max()
    found = np.concatenate([results.params, results.bse])
    mark = hashlib.sha256(found.tobytes()).hexdigest()[:12]
    report("standard errors", start, relative_error=f"{error:.3f}", fingerprint=mark)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--k", type=int, default=5000)
    parser.add_argument("--B", type=int)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--dask", type=int, metavar="WORKERS")
    parser.add_argument("--passes", action="store_true", help="stop after the coding")
    options = parser.parse_args()
    if options.passes:
        code_only(options.path, options.n_jobs)
        return
    with contextlib.ExitStack() as stack:
        if options.dask is not None:
            from distributed import Client, LocalCluster  # noqa: PLC0415 optional

            cluster = LocalCluster(
                n_workers=options.dask, threads_per_worker=1, dashboard_address=None
            )
            stack.enter_context(cluster)
            stack.enter_context(Client(cluster))
        fit(options.path, options)


if __name__ == "__main__":
    main()
