"""Table 1: how well forests predict, by sampling and size of the subsamples."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.kernels.tree import TreeKernel, tree_kernel
from vstatkit.sampling.design import IidDesign
from vstatkit.sampling.registry import subsample_size
from vstatkit.studies.data import Source
from vstatkit.studies.experiment import Draw, Record, iteration_stream
from vstatkit.studies.report import read_printed

ITERATIONS = 20
FORESTS = 20
TREES = 100
TEST_SHARE = 0.2
FRACTIONS = (0.2, 0.4, 0.6, 0.8, 1.0)
STATISTICS = {"U": False, "V": True}
"""Sampling with replacement, by the letter of its column."""

WITHIN = 3.0
"""Largest distance from print, in standard deviations over splits."""


@dataclass(frozen=True)
class Prediction:
    """Forests fitted to one part of a data set and scored on the rest.

    Every iteration is a random split; every split gets `forests` forests for each
    sampling and fraction.

    Attributes
    ----------
    dataset : str
        Name of the data set.
    source : Source
        Where its rows come from.
    forests, trees : int
        Forests for each split, and trees of a forest.
    quick : bool
        Whether this is the smaller study.
    """

    dataset: str
    source: Source
    forests: int = FORESTS
    trees: int = TREES
    quick: bool = False

    @property
    def name(self) -> str:
        """Name of its streams and checkpoints."""
        return f"table1-{self.dataset}{'-quick' if self.quick else ''}"

    def settings(self) -> dict[str, Any]:
        """All that the numbers depend on apart from the seed."""
        return {
            "data": self.source.fingerprint(),
            "forests": self.forests,
            "trees": self.trees,
            "fractions": FRACTIONS,
            "test_share": TEST_SHARE,
        }

    def run(self, seed: int, iteration: int) -> Record:
        """Split, fit and score; arrays of shape (fractions, forests)."""
        rng = iteration_stream(seed, self.name, iteration, Draw.DATA)
        X, y = self.source.draw(rng)
        order = rng.permutation(len(y))
        n_test = math.ceil(TEST_SHARE * len(y))
        test, train = order[:n_test], order[n_test:]
        kernel = tree_kernel(
            "forest",  # p/3 features tried at a split, or the root of p
            X[train],
            y[train],
            n_classes=self.source.n_classes,
            weights=None,
            options={},
        )
        draws = iteration_stream(seed, self.name, iteration, Draw.ENSEMBLE)
        record = {}
        for letter, replace in STATISTICS.items():
            scores = [
                self._scores(
                    kernel,
                    X[test],
                    y[test],
                    IidDesign(
                        len(train), subsample_size(fraction, len(train)), replace, key
                    ),
                )
                for fraction, key in zip(
                    FRACTIONS,
                    draws.integers(2**62, size=len(FRACTIONS)).tolist(),
                    strict=True,
                )
            ]
            record[letter] = np.stack(scores)
        return record

    def _scores(
        self, kernel: TreeKernel, X: Floats, y: Floats, design: IidDesign
    ) -> Floats:
        """Score forests made of consecutive trees of one ensemble."""
        task = Task(kernel, design, X, None, keep=False, oob=False)
        scores = []
        for start in range(0, self.forests * self.trees, self.trees):
            stop = start + self.trees
            grown = evaluate(task, start, stop, n_jobs=1, progress=False)
            mean = grown.values.mean(axis=0).reshape(len(y), -1)
            scores.append(score(y, mean, kernel.n_classes))
        return np.array(scores)


def score(y: Floats, predicted: Floats, n_classes: int | None) -> float:
    """Root mean squared error, or the share of correct classes.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Responses, or class codes.
    predicted : ndarray of shape (m, c)
        Means; the probability of the second of two classes; or of every class.
    n_classes : int or None
        None for regression.
    """
    if n_classes is None:
        return float(np.sqrt(np.mean((predicted[:, 0] - y) ** 2)))
    if n_classes == 2:
        classes = (predicted[:, 0] > 0.5).astype(np.float64)
    else:
        classes = predicted.argmax(axis=1).astype(np.float64)
    return float(np.mean(classes == y))


def compare(dataset: str, record: Record) -> pd.DataFrame:
    """Compare the measured scores of a data set with the printed ones.

    Returns
    -------
    DataFrame
        `measured` is the mean over splits and forests, `split_sd` the standard
        deviation over splits of a split's mean, `forest_sd` the one over forests
        on the same split (what print shows in parentheses, as
        `printed_sd`), `deviations` the difference in units of `split_sd`.
    """
    printed = read_printed("table1")
    rows = []
    for letter in STATISTICS:
        scores = record[letter]  # splits, fractions, forests
        for j, fraction in enumerate(FRACTIONS):
            chosen = (
                (printed["dataset"] == dataset)
                & (printed["statistic"] == letter)
                & (printed["fraction"] == fraction)
            )
            cell = printed[chosen].iloc[0]
            means = scores[:, j].mean(axis=1)
            difference = means.mean() - cell["score"]
            spread = means.std(ddof=1)
            rows.append(
                {
                    "dataset": dataset,
                    "statistic": letter,
                    "fraction": fraction,
                    "printed": cell["score"],
                    "measured": means.mean(),
                    "difference": difference,
                    "split_sd": spread,
                    "deviations": difference / spread if spread > 0 else np.nan,
                    "within": bool(abs(difference) <= WITHIN * spread),
                    "printed_sd": cell["standard_error"],
                    "forest_sd": scores[:, j].std(axis=1, ddof=1).mean(),
                }
            )
    return pd.DataFrame(rows)


def larger_is_better(dataset: str) -> bool:
    """Tell accuracies from errors."""
    return dataset not in ("boston", "diabetes", "MARS")


def best_fractions(dataset: str, record: Record) -> pd.DataFrame:
    """Test the first observation: there is a best fraction, with decline around it.

    Returns
    -------
    DataFrame
        For U and V: the `best` fraction measured and printed, the number of other
        fractions it `beats` beyond twice the paired standard error over splits,
        and whether scores `decline` on both sides: no step away from the best
        improves beyond twice its paired standard error.
    """
    sign = 1.0 if larger_is_better(dataset) else -1.0
    printed = read_printed("table1")
    rows = []
    for letter in STATISTICS:
        merit = sign * record[letter].mean(axis=2)  # splits, fractions
        top = int(merit.mean(axis=0).argmax())
        chosen = (printed["dataset"] == dataset) & (printed["statistic"] == letter)
        in_print = sign * printed[chosen]["score"].to_numpy()
        steps = [(j + 1, j) for j in range(top)]
        steps += [(j, j + 1) for j in range(top, len(FRACTIONS) - 1)]
        rows.append(
            {
                "dataset": dataset,
                "statistic": letter,
                "best": FRACTIONS[top],
                "best_printed": FRACTIONS[int(in_print.argmax())],
                "beats": sum(
                    _gain(merit, top, j) > 2 for j in range(len(FRACTIONS)) if j != top
                ),
                "declines": all(_gain(merit, near, far) > -2 for near, far in steps),
            }
        )
    return pd.DataFrame(rows)


def _gain(merit: Floats, one: int, two: int) -> float:
    """Paired gain of one fraction over another, in standard errors."""
    gain = merit[:, one] - merit[:, two]
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return float(gain.mean() / error) if error > 0 else float(np.sign(gain.mean()) * 99)


def discrepancies(dataset: str, record: Record) -> dict[str, Any]:
    """Test the second observation: U varies more with the fraction than V.

    Returns
    -------
    dict
        `U` and `V`: largest less smallest mean score over fractions; the same in
        print; and `gain`, the paired excess of U over V in standard errors, of
        the discrepancies of single splits.
    """
    printed = read_printed("table1")
    row: dict[str, Any] = {"dataset": dataset}
    by_split = {}
    for letter in STATISTICS:
        means = record[letter].mean(axis=2)
        row[letter] = float(np.ptp(means.mean(axis=0)))
        by_split[letter] = np.ptp(means, axis=1)
        chosen = (printed["dataset"] == dataset) & (printed["statistic"] == letter)
        row[f"{letter}_printed"] = float(np.ptp(printed[chosen]["score"].to_numpy()))
    pair = np.stack([by_split["U"], by_split["V"]], axis=1)
    return row | {"gain": _gain(pair, 0, 1)}
