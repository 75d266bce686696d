"""Methods of results that check the theory they rest on."""

from os import PathLike
from typing import TYPE_CHECKING, cast

from vstatkit._typing import Seed
from vstatkit.results.bootstrap import Bootstrap, bootstrapped
from vstatkit.results.normality_check import NormalityCheck, check_normality

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


def _results(checking: "Checking") -> "EnsembleResults":
    """Tell the type checker what has these methods."""
    return cast("EnsembleResults", checking)


class Checking:
    """Methods of results that check normality and standard errors."""

    def normality_check(self, alpha: float = 0.05) -> NormalityCheck:
        """Say whether normal intervals can be relied on, from this fit alone.

        Parameters
        ----------
        alpha : float
            One minus the coverage of the intervals.

        Returns
        -------
        NormalityCheck
            Prints as a table with a verdict for every estimate: "safe", "lopsided"
            (fine as a two-sided interval only), "not safe", or "not known" where
            there are too few learners to tell. `frame` holds the numbers, and
            `plot()` draws them.

        Notes
        -----
        Skewness and kurtosis of an estimate follow from the influences of single
        observations, since it is nearly a sum of them; their Monte Carlo noise is
        taken out. Edgeworth's expansion of a studentised sum turns them into the
        probabilities that an interval misses on either side. What comes from
        interactions of observations is taken to be normal.

        References
        ----------
        Hall (1992), The Bootstrap and Edgeworth Expansion, section 2.6.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, kernel="ols", B=2000, rng=1)
        >>> res.normality_check().frame["verdict"].to_list()
        ['safe', 'safe', 'safe']
        """
        return check_normality(_results(self), alpha)

    def bootstrap(
        self,
        R: int = 200,
        *,
        B: int | None = None,
        rng: Seed = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Bootstrap:
        """Repeat the whole fit on resampled data.

        Observations (or clusters) are drawn again with replacement, as many as there
        are, and an ensemble of the same size is fitted to them. Formula and query
        points stay as they are, and so does what `target="truth"` has chosen: the
        learners of the standard errors are fitted again, and their estimates moved as
        far as those of the fit were.

        Parameters
        ----------
        R : int
            Number of resampled data sets.
        B : int, optional
            Learners of each; by default as many as there are. Fewer are faster, and
            leave more Monte Carlo variance.
        rng : int, Generator or None
            Seed of the resampling; by default it follows from that of the fit.
        n_jobs, progress
            See `fit`; those of the fit by default.
        checkpoint : str or path, optional
            A directory where repetitions are kept as they are made. A bootstrap that
            was killed and is called again on the same fit goes on from there, to the
            same numbers; so does one with a larger `R`. Other data, fits or seeds are
            refused, and so is a second process at the same time.

        Returns
        -------
        Bootstrap
            Prints as a table: standard errors and percentile intervals beside those
            of the fit, and normality tests of the R estimates. `plot()` draws their
            quantiles.

        References
        ----------
        Efron and Tibshirani (1993), An Introduction to the Bootstrap.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(60, rng=1)
        >>> res = vs.statistic("variance", data["y"], k=2, B=500, rng=1)
        >>> res.bootstrap(50).R
        50
        """
        return bootstrapped(
            _results(self),
            R,
            B=B,
            rng=rng,
            n_jobs=n_jobs,
            progress=progress,
            checkpoint=checkpoint,
        )
