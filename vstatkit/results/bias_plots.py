"""A picture of the bias that is left."""

from matplotlib.axes import Axes
from scipy import stats

from vstatkit._typing import DataLike
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.strokes import BAND, GREY, draw_intervals, new_axes
from vstatkit.results.tables import label_texts
from vstatkit.validation import check_alpha


def plot_bias(
    results: EnsembleResults,
    *,
    data: DataLike | None = None,
    alpha: float = 0.05,
    ax: Axes | None = None,
) -> Axes:
    """Draw what bias is left, beside the standard errors of the predictions.

    Parameters
    ----------
    results : EnsembleResults
        Of a forest with a numeric response.
    data : DataFrame or dict of columns, optional
        New data; the query points by default.
    alpha : float
        One less the level of the bias's normal intervals.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(120, rng=1)
    >>> res = vs.fit("y ~ .", data, at=data.iloc[:3], B=100, rng=1, target="truth")
    >>> res.plot(kind="bias").get_xlabel()
    'bias left, y, 95% interval; bars: standard error of the prediction'

    Notes
    -----
    A wide bar reaches one standard error of the prediction to either side of zero:
    where the bias lies within half of it, intervals cover nearly as often as they say.
    """
    check_alpha(alpha)
    left = results.bias_left(data)
    ax = new_axes(ax, len(left))
    if data is None:
        reach = results.bse.to_numpy()
    else:
        reach = results.get_prediction(data).estimates.bse
    places = range(len(left))[::-1]
    ax.barh(places, 2 * reach, left=-reach, height=0.6, color=BAND, alpha=0.35)
    ax.axvline(0, color=GREY, linewidth=1)
    half = stats.norm.isf(alpha / 2) * left["std_error"]
    low, high = left["bias"] - half, left["bias"] + half
    draw_intervals(ax, label_texts(left.index), left["bias"], low, high)
    ax.set_xlabel(
        f"bias left, {results.info.response}, {1 - alpha:.0%} interval; "
        "bars: standard error of the prediction"
    )
    return ax
