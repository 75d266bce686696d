"""Ways to look at results, and to keep them: what results hand themselves on to.

What shows and saves results takes them as its argument, so that it is imported here
when it is asked for.
"""

from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from vstatkit.results.drawing import draw
from vstatkit.validation import with_advice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

    from vstatkit.results.comparison import VarianceComparison
    from vstatkit.results.ensemble_results import EnsembleResults


def _results(views: "Views") -> "EnsembleResults":
    """Tell the type checker what has these methods."""
    return cast("EnsembleResults", views)


class Views:
    """Methods of results that show, compare or save them."""

    def compare_variance(self, alpha: float = 0.05) -> "VarianceComparison":
        """Estimate the variance by every estimator that applies to this design.

        Returns
        -------
        VarianceComparison
            Prints as a table; `frame` holds its numbers (`sampling`, `se`,
            `se_mc_error`, `df` and the interval, one row per estimate and estimator),
            `left_out` says why the other estimators do not apply, and `plot()`
            draws the intervals. Nothing is fitted again.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=400, rng=1, variance="corrected_v")
        >>> sorted(res.compare_variance().left_out)
        ['corrected_u', 'im', 'little_bags', 'matched', 'shards']
        """
        from vstatkit.results.comparison import compare  # noqa: PLC0415 it takes results

        return compare(_results(self), alpha)

    def to_marginaleffects(self) -> Any:
        """Hand results on to the package marginaleffects, where it is installed.

        Returns
        -------
        model
            What its `predictions`, `comparisons`, `slopes` and their averages take.

        Notes
        -----
        Estimates and standard errors are ours, for the rows as they are: those of
        `get_prediction` for predictions and comparisons row by row, and those of
        `avg_predictions` and `avg_effects` for averages. Functions of them, such as
        ratios, have those of the delta method. The package has one number of degrees
        of freedom for a table: the smallest of ours. Its slopes take very short
        steps, which trees, being step functions, refuse: give `eps` a length, such as
        a standard deviation.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
        >>> model = res.to_marginaleffects()  # doctest: +SKIP
        >>> marginaleffects.avg_comparisons(model, {"x4": [0.2, 0.8]})  # doctest: +SKIP
        """
        from vstatkit.results.marginal import marginal_model  # noqa: PLC0415

        return marginal_model(_results(self))

    @with_advice
    def summary(
        self, alpha: float = 0.05, *, full: bool = False, title: str | None = None
    ) -> "Summary":
        """Summarise in statsmodels' tables: text, HTML, LaTeX or CSV.

        Parameters
        ----------
        alpha : float
            One minus the coverage of the intervals.
        full : bool
            Whether to add the variance components and the normality tests as tables,
            with notes on how they are computed. Otherwise there is a line of each.
        title : str, optional
            Title of the table.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=200, rng=1)
        >>> "zeta_1" in str(res.summary(full=True, title="Friedman's function"))
        True
        """
        from vstatkit.results.summary import summarise  # noqa: PLC0415 slow import

        return summarise(_results(self), alpha, full=full, title=title)

    def summary2(self, alpha: float = 0.05, title: str | None = None) -> "Summary":
        """Summarise with all tables: `summary(full=True)`, by statsmodels' name."""
        return self.summary(alpha, full=True, title=title)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        kind: str | None = None,
        **options: Any,
    ) -> "Axes":
        """Draw the effects, or the estimates where there are no effects.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw.
        kind : str, optional
            Another picture: "estimates", "effects", "average effects", "profile",
            "partial dependence", "importance", "influence", "convergence", "bias"
            (of what is left; see `bias_left`), or one added by
            `vstatkit.register_plot`.
        **options
            Of the picture; see `vstatkit.plots` and `vstatkit.results.pictures`.
        """
        return draw(_results(self), kind, ax, options)

    def save(self, path: str | PathLike[str]) -> None:
        """Save as arrays and JSON; `vstatkit.load` reads it back."""
        from vstatkit.storage.results_file import save_results  # noqa: PLC0415 rarely needed

        save_results(_results(self), path)

    def report(
        self,
        path: str | PathLike[str],
        *,
        alpha: float = 0.05,
        title: str | None = None,
    ) -> None:
        """Write one page that stands alone: tables, pictures, notes, settings, seed.

        The page is an HTML file with its pictures inside. It loads nothing from the
        network, runs nothing, and can be printed. The same results give the same
        page.

        Parameters
        ----------
        path : str or path
            Where to write it; ends with .html. A file of that name is replaced.
        alpha : float
            One minus the coverage of the intervals.
        title : str, optional
            The heading; by default the kind of results and the response.

        Examples
        --------
        >>> import tempfile
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     res.report(f"{folder}/fit.html")
        """
        from vstatkit.report.writing import write_report  # noqa: PLC0415 rarely needed

        write_report(_results(self), path, alpha, title)

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())
