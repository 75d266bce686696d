"""Results beside other models in one table: ours, and that of other packages."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from vstatkit.results.fitted import FittedModel, ModelData

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary

    from vstatkit.results.columns import Column


def table(
    models: Any,
    *more: Any,
    names: Sequence[str] | None = None,
    alpha: float | None = None,
    stars: bool = False,
    title: str = "Models side by side",
) -> "Summary":
    """Put several models into one table: text, HTML, LaTeX or CSV.

    Parameters
    ----------
    models : results, a sequence of them, or a dict of them by their headings
        Results of `fit` and `statistic` (shown by their effects, where they have
        some), what they answer (`avg_slopes()`, `avg_effects()`, curves, functions of
        estimates, `importance()`), and results of statsmodels or others that have
        `params`, `bse`, `pvalues` and `conf_int`.
    *more : results
        Further models, one by one.
    names : sequence of str, optional
        Headings, one for each model.
    alpha : float, optional
        Show intervals of this level instead of standard errors.
    stars : bool
        Whether p-values below 0.1, 0.05 and 0.01 are marked.
    title : str
        Title of the table.

    Returns
    -------
    Summary
        Prints; `as_html()`, `as_latex()` and `as_csv()` give other formats.

    Notes
    -----
    Terms stand in one line where they have the same name. An effect is named with its
    ends, `bmi: 21 → 32.3`, since it is no slope; `avg_slopes()` has slopes, which can
    be compared with the coefficients of a linear regression.

    Examples
    --------
    >>> import statsmodels.formula.api as smf
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(200, rng=1)
    >>> line = smf.ols("y ~ x1 + x4", data).fit()
    >>> forest = vs.fit("y ~ x1 + x4", data, B=300, rng=1)
    >>> text = str(vs.table([line, forest.avg_slopes()]))
    >>> [word in text for word in ("Intercept", "x4", "OLS", "average slopes")]
    [True, True, True, True]
    """
    from vstatkit.results.side_by_side import compose_table  # noqa: PLC0415 slow import

    if isinstance(models, Mapping) and not more:
        names = list(models) if names is None else names
        models = list(models.values())
    many = [*models] if isinstance(models, Sequence) else [models]
    many += more
    return compose_table(many, names=names, alpha=alpha, stars=stars, title=title)


def _column(model: Any) -> "Column":
    from vstatkit.results.side_by_side import column_of  # noqa: PLC0415 slow import

    return column_of(model)


SHORT = {"b": "estimate", "se": "std_error", "t": "t", "p": "p_value"}
SHORT |= {"ci95l": "ci_lower", "ci95u": "ci_upper"}
"""maketables' names of the columns."""

KEYS = {
    "N": "Observations",
    "r2": "OOB R-squared",
    "rmse": "OOB RMSE",
    "accuracy": "OOB accuracy",
    "log_loss": "OOB log-loss",
    "B": "Base learners B",
}
"""What maketables may ask for."""


class Tabular:
    """What tables of other packages read: statsmodels' `model`, maketables' protocol.

    maketables reads its names from any object; it is not needed here.
    """

    @property
    def model(self) -> FittedModel:
        """What was estimated, by statsmodels' names."""
        column = _column(self)
        names = [str(name) for name in column.frame.index]
        data = ModelData(names, column.response)
        return FittedModel(None, column.response, names, column.kind, data)

    @property
    def __maketables_coef_table__(self) -> pd.DataFrame:
        frame = _column(self).frame
        return pd.DataFrame({short: frame[name] for short, name in SHORT.items()})

    @property
    def __maketables_depvar__(self) -> str:
        return _column(self).response

    def __maketables_stat__(self, key: str) -> Any:
        return _column(self).stats.get(KEYS.get(key, key))

    @property
    def __maketables_stat_labels__(self) -> dict[str, str]:
        return KEYS

    @property
    def __maketables_default_stat_keys__(self) -> list[str]:
        stats = _column(self).stats
        return [key for key, name in KEYS.items() if name in stats]
