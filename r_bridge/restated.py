"""The formulas of `reported.R`, applied to the learners of one fit."""

from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from r_bridge import session
from r_bridge.compare import TOLERANCE, Quantity
from vstatkit import EnsembleResults
from vstatkit._typing import Floats, Ints
from vstatkit.sampling.design import to_dense

ALPHA = 0.1  # one minus the coverage of the intervals that are compared

# Expected values for trees: rho and its error, relative to nearest neighbours, and the
# ratio `zeta_k / (k zeta_1)` (theory.md)
EXPECTED = np.array([0.55, 0.35, 10.0])

WHY_REPORTED = (
    "compared with formulas written in plain R (r_bridge/reported.R), from the counts "
    "and the predictions of every tree."
)

# Columns of tables of estimates, and what `reported.R` calls them
COLUMNS = {
    "estimate": "estimate",
    "std_error": "bse",
    "t": "t",
    "p_value": "p",
    "ci_lower": "lower",
    "ci_upper": "upper",
    "df": "df",
    "relative_mc_error": "mc_error",
}


@dataclass(frozen=True)
class Formulas:
    """The formulas in R, for the trees of one fit."""

    results: EnsembleResults  # has the trees
    y: pd.Series  # responses
    kind: str  # kind of response; see `r_bridge.reported.Reported`

    @property
    def _classes(self) -> bool:
        return self.kind in ("probability", "rare")

    @property
    def _limit(self) -> float:
        """Return the largest standard deviation of a prediction; inf for ranger."""
        if self.kind == "ranger":
            return np.inf
        return 0.5 if self._classes else float(np.ptp(self.y)) / 2

    def of(
        self,
        values: Floats,
        *,
        difference: str | None = None,
        average: bool = False,
        widths: Floats | None = None,
    ) -> dict[str, Floats]:
        """Compute everything in R from counts and values, shape (B, m).

        `difference` says what the values are differences of: an "effect", which knows
        no range, or a "contrast". `average` says whether they are averages over rows,
        and `widths` has the distances that differences were divided by.
        """
        results = self.results
        reference = results.predictor.values(results.reference)  # type: ignore[union-attr]
        code = resources.files("r_bridge").joinpath("reported.R").read_text("utf-8")
        tables = (counts_of(results).astype(np.float64), values, reference)
        given = [np.asfortranarray(table.T) for table in tables]
        answer = session.call(
            code,
            *given,
            results.replace,
            EXPECTED,
            self._limit,
            self._ends(difference),
            self._classes,
            difference is not None,
            average,
            np.ones(values.shape[1]) if widths is None else widths,
            ALPHA,
        )
        return {name: np.asarray(one, dtype=np.float64) for name, one in answer.items()}

    def _ends(self, difference: str | None) -> Floats:
        """Return the bounds of predictions, if all responses have one sign."""
        if self._classes:
            low, high = 0.0, 1.0
        elif difference == "effect" or self.kind == "ranger":
            return np.array([-np.inf, np.inf])
        else:
            low = 0.0 if self.y.min() >= 0 else -np.inf
            high = 0.0 if self.y.max() <= 0 else np.inf
        return np.array([low, high] if difference is None else [low - high, high - low])


def counts_of(results: EnsembleResults) -> Ints:
    """Count how often each learner has drawn each unit, shape (B, n)."""
    return np.asarray(to_dense(results.design.counts(0, results.B)), dtype=np.int64)


def table_quantities(
    table: pd.DataFrame, columns: dict[str, str], name: str, theirs: dict[str, Floats]
) -> list[Quantity]:
    """Compare columns of a table with R's numbers."""
    ours = {f"{name} {column}": (table[column], key) for column, key in columns.items()}
    return quantities(ours, theirs)


def quantities(
    ours: dict[str, tuple[Any, str]], theirs: dict[str, Floats]
) -> list[Quantity]:
    """Compare numbers by name with R's numbers."""
    return [
        Quantity(
            name,
            np.asarray(numbers, dtype=np.float64).ravel(),
            theirs[key],
            TOLERANCE,
            WHY_REPORTED,
        )
        for name, (numbers, key) in ours.items()
    ]
