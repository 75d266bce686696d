"""CPU time of everything but growing the trees, for formulas of many columns.

Run `python -m benchmarks.formula`. The time of growing is measured inside the fit and
taken off: what remains is reading the formula, coding the data, the typical row and the
settings of the effects.
"""

import time
from unittest import mock

import numpy as np
import pandas as pd

import vstatkit as vs
from vstatkit import fit_steps

COLUMNS, ROWS, TREES = 300, 80, 50


def frames():
    rng = np.random.default_rng(1)
    names = [f"x{j}" for j in range(COLUMNS)]
    shape = (ROWS, COLUMNS)
    made = {
        "numbers": pd.DataFrame(rng.normal(size=shape), columns=names),
        "whole numbers": pd.DataFrame(rng.integers(0, 50, shape), columns=names),
        "booleans": pd.DataFrame(rng.random(shape) > 0.5, columns=names),
        "text": pd.DataFrame(rng.choice(list("abcd"), shape), columns=names),
    }
    made["categories"] = made["text"].astype("category")
    return {kind: one.assign(y=rng.normal(size=ROWS)) for kind, one in made.items()}


def seconds(formula, data):
    """CPU seconds of a fit without the growing, and of the growing."""
    grown = 0.0
    grow = fit_steps.grow

    def timed(*args, **options):
        nonlocal grown
        start = time.process_time()
        answer = grow(*args, **options)
        grown += time.process_time() - start
        return answer

    with mock.patch.object(fit_steps, "grow", timed):
        start = time.process_time()
        vs.fit(formula, data, B=TREES, rng=1)
        whole = time.process_time() - start
    return whole - grown, grown


def main():
    written = "y ~ " + " + ".join(f"x{j}" for j in range(COLUMNS))
    print(f"{COLUMNS} columns x {ROWS} rows, B={TREES}: CPU seconds")
    print(f"{'columns':15s} {'formula':8s} {'all but growing':>16s} {'growing':>9s}")
    for kind, data in frames().items():
        vs.fit("y ~ x1", data, B=TREES, rng=1)  # what is loaded once
        for name, formula in (("y ~ .", "y ~ ."), ("written", written)):
            rest, grown = seconds(formula, data)
            print(f"{kind:15s} {name:8s} {rest:16.3f} {grown:9.3f}")


if __name__ == "__main__":
    main()
