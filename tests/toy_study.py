"""A study from outside the package, as docs/adding.md shows it."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

import vstatkit as vs
from vstatkit.studies.experiment import Draw, iteration_stream

ITERATIONS = 40


@dataclass(frozen=True)
class MedianOfMeans:
    """The median of subsample means, and its standard error, on normal data."""

    n: int = 50
    B: int = 200

    @property
    def name(self):
        return f"median-{self.n}"

    def settings(self):
        return {"n": self.n, "B": self.B}

    def run(self, seed, iteration):
        data = iteration_stream(seed, self.name, iteration, Draw.DATA)
        ensemble = iteration_stream(seed, self.name, iteration, Draw.ENSEMBLE)
        frame = pd.DataFrame({"y": data.normal(size=self.n)})
        rng = int(ensemble.integers(2**31))
        res = vs.statistic(
            lambda rows: rows["y"].median(), frame, k=10, B=self.B, rng=rng
        )
        return {"mean": res.params.to_numpy(), "variance": res.bse.to_numpy() ** 2}


def run(plan):
    sizes = [int(n) for n in plan.options.get("sizes", ["30", "50"])]
    B = 20 if plan.quick else 200
    return {n: plan.run(MedianOfMeans(n, B), ITERATIONS) for n in sizes}


def report(found):
    table = pd.DataFrame(
        {
            "n": list(found),
            "data_sets": [len(one["mean"]) for one in found.values()],
            "true": [np.var(one["mean"], ddof=1) for one in found.values()],
            "estimated": [np.mean(one["variance"]) for one in found.values()],
        }
    )
    text = "\n".join(
        f"n = {row.n}: {row.estimated / row.true:.2f} times the true variance."
        for row in table.itertuples()
    )
    return vs.studies.Report("median", text, {"median": table})


STUDY = vs.studies.Study(
    name="median",
    description="the median of a subsample, on normal data",
    iterations=ITERATIONS,
    run=run,
    report=report,
    options={"sizes": "numbers of rows"},
)
