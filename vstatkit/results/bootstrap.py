"""Bootstrap of a whole fit on resampled data."""

from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats, Labels, Seed
from vstatkit.ensemble.bootstrap_repetitions import RepeatedFit, repeat_fit
from vstatkit.inference.normality import MIN_OBSERVATIONS, normality_tests
from vstatkit.sampling.streams import Purpose, resolve_seed, stream
from vstatkit.validation import check_alpha, is_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

    from vstatkit.results.ensemble_results import EnsembleResults

# Most estimates for which the p-value of the Shapiro-Wilk test is accurate.
MOST_FOR_SHAPIRO = 5000


def repetitions_needed(alpha: float) -> int:
    """Count the resampled data sets that percentile intervals need."""
    check_alpha(alpha)
    return int(np.ceil(2 / alpha - 1e-9)) - 1


@dataclass(frozen=True)
class Bootstrap:
    """Estimates on resampled data sets, beside those of the fit.

    Attributes
    ----------
    results : EnsembleResults
        The fit.
    estimates : ndarray of shape (R, m)
        Estimates on each resampled data set.
    seed : int
        Seed of the resampling.
    """

    results: "EnsembleResults"
    estimates: Floats
    seed: int

    @property
    def R(self) -> int:  # noqa: N802
        """Number of resampled data sets."""
        return len(self.estimates)

    @property
    def labels(self) -> Labels:
        """Names of the estimates."""
        return self.results.labels

    @property
    def bse(self) -> pd.Series:
        """Bootstrap standard errors: standard deviations with divisor R - 1."""
        spread = self.estimates.std(axis=0, ddof=1)
        return pd.Series(spread, self.labels, name="bootstrap_se")

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Compute percentile intervals: order statistics of the estimates.

        Parameters
        ----------
        alpha : float
            One minus the coverage; at least `2 / (R + 1)`.
        """
        needed = repetitions_needed(alpha)
        if needed > self.R:
            raise ValueError(
                f"percentile intervals at alpha={alpha:g} need at least {needed:,} "
                f"resampled data sets; there are {self.R:,}. Use a larger `alpha` or a "
                "larger `R`."
            )
        rank = int(np.floor((self.R + 1) * alpha / 2 + 1e-9))
        ordered = np.sort(self.estimates, axis=0)
        bounds = np.column_stack([ordered[rank - 1], ordered[self.R - rank]])
        return pd.DataFrame(bounds, self.labels, ["lower", "upper"])

    @property
    def normality(self) -> pd.DataFrame:
        """Normality tests of the estimates, one row for each.

        They are those of `normality_tests`, and the Shapiro-Wilk test (`shapiro`,
        `shapiro_p`) of up to 5,000 estimates.
        """
        table = normality_tests(self.estimates).set_axis(self.labels)
        tests = np.ones((len(table), 2))  # estimates that do not vary are not tested
        for j, column in enumerate(self.estimates[:MOST_FOR_SHAPIRO].T):
            spread = np.ptp(column)
            if spread > 1e-12 * np.abs(column).max():
                tests[j] = stats.shapiro((column - column.mean()) / spread)
        table[["shapiro", "shapiro_p"]] = tests
        return table

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate standard errors and intervals beside those of the fit.

        Returns
        -------
        DataFrame
            `estimate`; `se` and `ci_lower`, `ci_upper` of the fit; `bootstrap_se`,
            its Monte Carlo standard error `bootstrap_se_error`, and the percentile
            interval `bootstrap_ci_lower`, `bootstrap_ci_upper`, which is NaN if R is
            too small; `omnibus_p`, `jarque_bera_p` and `shapiro_p` of the estimates on
            resampled data.
        """
        ours = self.results.conf_int(alpha)
        enough = repetitions_needed(alpha) <= self.R
        theirs = self.conf_int(alpha) if enough else ours * np.nan
        tests, bse = self.normality, self.bse
        excess = np.maximum(tests["kurtosis"] - 1, 0)
        columns = {
            "estimate": self.results.params,
            "se": self.results.bse,
            "ci_lower": ours["lower"],
            "ci_upper": ours["upper"],
            "bootstrap_se": bse,
            "bootstrap_se_error": bse * np.sqrt(excess / (4 * self.R)),
            "bootstrap_ci_lower": theirs["lower"],
            "bootstrap_ci_upper": theirs["upper"],
        }
        p_values = tests[["omnibus_p", "jarque_bera_p", "shapiro_p"]]
        return pd.DataFrame({**columns, **p_values}, self.labels)

    def summary(self, alpha: float = 0.05) -> "Summary":
        """Summarise in a table like statsmodels': text, HTML, LaTeX or CSV."""
        from vstatkit.results.summary import summarise_bootstrap  # noqa: PLC0415 slow import

        return summarise_bootstrap(self, alpha)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the quantiles of the estimates against those of a normal variable."""
        from vstatkit.plots.estimates import plot_quantiles  # noqa: PLC0415 on demand

        return plot_quantiles(self, ax=ax)

    def __str__(self) -> str:
        return str(self.summary())

    def __repr__(self) -> str:
        return f"<Bootstrap: {len(self.labels)} estimates, R={self.R}>"


def bootstrap_fit(
    results: "EnsembleResults",
    R: int,
    *,
    B: int | None,
    rng: Seed,
    n_jobs: int | None,
    progress: bool | None,
    checkpoint: str | PathLike[str] | None,
) -> Bootstrap:
    """Compute `EnsembleResults.bootstrap`."""
    from vstatkit.storage.checkpoint import open_repetitions  # noqa: PLC0415 rarely needed

    if not is_whole(R):
        raise TypeError(f"`R` must be a whole number; got {R!r}.")
    if R < MIN_OBSERVATIONS:
        raise ValueError(
            f"`R` must be at least {MIN_OBSERVATIONS}, for tests of normality; got {R}."
        )
    recipe = results.recipe
    if recipe is None:
        raise ValueError(
            "the bootstrap refits to resampled training data, which these results do "
            "not have: they were loaded from a file or a pickle, or their learners "
            "were fitted elsewhere. Use the results of `fit` or `statistic`."
        )
    design, m = results.design, len(results.labels)
    size = results.B if B is None else int(B)
    if size != results.B:
        if design.complete:
            raise ValueError(
                f"`B` of a complete ensemble must be {results.B:,}; got {B}. Omit it."
            )
        design = design.with_size(size)
    if rng is None:
        seed = int(stream(results.seed, 0, Purpose.BOOTSTRAP).integers(2**63))
    else:
        seed = resolve_seed(rng)
    task = replace(recipe.task, design=design)
    points = task.at
    if points is not None:  # effects are not bootstrapped
        outputs = getattr(task.kernel, "n_outputs", 1)
        task = replace(task, at=points[: m // outputs])
    repeating = RepeatedFit(task, size, m, seed)
    with open_repetitions(checkpoint, repeating, results.values) as keeper:
        estimates = repeat_fit(
            repeating,
            int(R),
            n_jobs=recipe.n_jobs if n_jobs is None else n_jobs,
            progress=recipe.progress if progress is None else progress,
            keeper=keeper,
        )
    if recipe.centre is not None:  # the learners of the standard errors were refitted
        estimates = estimates + recipe.centre.shift[:m]
    return Bootstrap(results, estimates, seed)
