"""Predictions: standard errors, bounds of new observations, classes and files."""

import os
import socket
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np
import pandas as pd

from vstatkit._typing import Bools, DataLike, Floats, Labels, Restrictions
from vstatkit.ensemble.oob_scores import Scores
from vstatkit.ensemble.prediction_intervals import (
    Limits,
    OutOfBagErrors,
    ResidualScale,
    class_thresholds,
    collect_errors,
    jackknife_limits,
    local_limits,
)
from vstatkit.exceptions import DataError, FewUnitsWarning, FormulaError
from vstatkit.formula.input_checks import as_frame, is_number_kind, suggest_name
from vstatkit.inference.conformal import least_units
from vstatkit.inference.estimates import Estimates, Estimation
from vstatkit.inference.intervals import prediction_support, prediction_tails
from vstatkit.pickling import pickled_plainly
from vstatkit.results.continuation import recipe_of
from vstatkit.results.estimate_table import (
    ContrastResults,
    EstimateTable,
    derive_table,
    mean_frame,
)
from vstatkit.results.labels import label_texts
from vstatkit.results.learners import predictor_of
from vstatkit.scratch import is_alive, removed_if_ended
from vstatkit.sources.disk_arrays import check_directory
from vstatkit.sources.recognition import find_source, read_few
from vstatkit.sources.source import Source, import_optional, split_batches
from vstatkit.text import shown_estimates
from vstatkit.validation import check_alpha

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

    from vstatkit.results.ensemble_results import EnsembleResults


class ClassSets(pd.DataFrame):
    """Which classes new observations may have; a data frame that has a picture.

    A row for each point and a column for each class: whether it is in the set.
    `attrs["least_probability"]` has the probability from which a class is in a set.
    Rows and classes that are chosen from it, as by `head()`, have the picture too; what
    is computed from it is a data frame like any other.

    Attributes
    ----------
    probabilities : DataFrame
        Of all rows and classes.
    alpha : float
        One minus the coverage.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.iris()
    >>> res = vs.fit("species ~ petal_length", data, B=200, rng=1)
    >>> sets = res.get_prediction({"petal_length": [1.4, 4.9]}).class_sets(0.05)
    >>> sets.probabilities.shape
    (2, 3)
    >>> sets.plot().get_xlabel()
    'class, in a set from a probability of 0.34 on'
    """

    _metadata: ClassVar[list[str]] = ["probabilities", "alpha"]
    probabilities: pd.DataFrame
    alpha: float

    @property
    def _constructor(self) -> Callable[..., Any]:
        return _sets_or_frame

    def plot(self, ax: "Axes | None" = None) -> "Axes":  # type: ignore[override]
        """Draw the sets, probabilities as shades; the first 40 rows of more."""
        from vstatkit.plots.predictions import draw_sets  # noqa: PLC0415 on demand

        return draw_sets(shown_shares(self), self, ax)


def _sets_or_frame(*args: Any, **options: Any) -> pd.DataFrame:
    """Make what pandas computes from sets: sets, or another table where it is none."""
    frame = pd.DataFrame(*args, **options)
    sets = len(frame.columns) > 0 and all(kind.kind == "b" for kind in frame.dtypes)
    return ClassSets(frame) if sets else frame


def shown_shares(sets: ClassSets) -> pd.DataFrame:
    """Probabilities of the rows and classes that are left, found by their labels."""
    whole = getattr(sets, "probabilities", None)
    if isinstance(whole, pd.DataFrame):
        names = [name for name in whole.columns if name in sets.columns]
        rows = _rows_of(whole, sets.index)
        if names and rows is not None:
            least = np.array([sets.attrs["least_probability"][name] for name in names])
            in_sets = members(rows[names].to_numpy(), least)
            if np.array_equal(in_sets, sets[names].to_numpy()):
                return rows[names]
    raise ValueError(
        "these are not rows of sets as `class_sets` gives them, or rows whose labels "
        "repeat. Draw the sets before you change them, or predict the rows by "
        "themselves: get_prediction(rows).class_sets().plot()."
    )


def _rows_of(whole: pd.DataFrame, labels: Labels) -> pd.DataFrame | None:
    if labels.equals(whole.index):
        return whole
    rows = whole.loc[labels] if labels.isin(whole.index).all() else None
    return rows if rows is not None and len(rows) == len(labels) else None


def members(shares: Floats, least: Floats) -> Bools:
    """Say which classes are probable enough.

    Errors are compared, as they were when the thresholds were found: rounding must
    not put out the row that a threshold comes from.
    """
    return 1 - shares <= 1 - least


def probable_classes(
    shares: Floats,
    least: Floats,
    index: Labels,
    classes: Sequence[Hashable],
    alpha: float,
) -> ClassSets:
    """Put the classes that are probable enough into sets.

    Parameters
    ----------
    shares : ndarray of shape (q, K)
        Probabilities of the classes.
    least : ndarray of shape (K,)
        Probability from which a class is in a set.
    index : Index of length q
        Labels of the points.
    classes : sequence of length K
        Names of the classes.
    alpha : float
        One minus the coverage.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> shares, least = np.array([[0.7, 0.3]]), np.array([0.4, 0.2])
    >>> probable_classes(shares, least, pd.Index([0]), ["a", "b"], 0.1).loc[0].all()
    np.True_
    """
    sets = ClassSets(members(shares, least), index, list(classes))
    sets.attrs["least_probability"] = dict(
        zip(classes, np.asarray(least).tolist(), strict=True)
    )
    sets.probabilities = pd.DataFrame(shares, index, list(classes))
    sets.alpha = alpha
    return sets


METHODS = ("local", "residuals", "jackknife+")
"""What `obs_method` chooses from."""


def check_method(method: str | None) -> None:
    """Refuse methods that there are not."""
    if method is not None and method not in METHODS:
        names = ", ".join(map(repr, METHODS))
        raise ValueError(f"`obs_method` must be one of {names}; got {method!r}.")


def collect_residuals(results: "EnsembleResults") -> OutOfBagErrors | None:
    """Collect the out-of-bag errors of results; None where it is not known whose."""
    scores, predictor = results.scores, results.predictor
    if results.errors is not None or scores is None or predictor is None:
        return results.errors
    unit_of_row, n_jobs = None, predictor.n_jobs
    if results.recipe is not None:
        unit_of_row = recipe_of(results).task.unit_of_row
    elif results.nobs != results.design.n:
        return None
    seed = results.design.seed
    return collect_errors(
        scores, predictor.kernel, unit_of_row, seed=seed, n_jobs=n_jobs
    )


def with_residuals(results: "EnsembleResults") -> "EnsembleResults":
    """Collect the out-of-bag errors now: tables and pickles then grow nothing."""
    return replace(results, errors=collect_residuals(results))


class Bounds(NamedTuple):
    """What is known about where new observations fall.

    Attributes
    ----------
    method : str or None
        What was used; None without limits.
    limits : tuple of ndarray or None
        Lower and upper limits, not a number where there are too few units for the
        level; None where there are no residuals to make them of.
    note : str or None
        Why there are none; None for classes, which have no limits.
    """

    method: str | None
    limits: Limits | None
    note: str | None


def observation_limits(
    prediction: "PredictionResults", alpha: float, method: str | None
) -> Bounds:
    """Bound new observations.

    Parameters
    ----------
    prediction : PredictionResults
        Points.
    alpha : float
        One minus the coverage.
    method : str or None
        One of `METHODS`; None for "local", or "residuals" where nothing is known
        about whose errors they are.

    Returns
    -------
    Bounds
        Without limits only if no method was asked for.
    """
    check_method(method)
    check_alpha(alpha)
    results = prediction.results
    if results.scores is None or results.scores.residuals.size == 0:
        if method is None:
            note = None if _has_classes(results) else _no_residuals_message(results)
            return Bounds(None, None, note)
        raise ValueError(_no_residuals_message(results))
    errors = results.out_of_bag_errors
    if method is None:
        known = errors is not None and errors.spread is not None
        chosen = "local" if known else "residuals"
    else:
        chosen = method
    limits = _limits(prediction, alpha, chosen, errors)
    if limits is not None:
        return Bounds(chosen, limits, None)
    note = _too_few_message(results, errors, alpha, chosen)
    if method is not None:
        raise ValueError(note)
    unknown = np.full(len(prediction.labels), np.nan)
    return Bounds(None, (unknown, unknown), note)


def _limits(
    prediction: "PredictionResults",
    alpha: float,
    method: str,
    errors: OutOfBagErrors | None,
) -> Limits | None:
    results, mean = prediction.results, prediction.estimates.estimate
    scores = cast("Scores", results.scores)
    if method == "residuals":
        offsets = scores.interval_offsets(alpha)
        return None if offsets is None else (mean + offsets[0], mean + offsets[1])
    if errors is None or (method == "local" and errors.spread is None):
        raise ValueError(_unknown_units_message(method))
    predictor = predictor_of(results)
    if method == "jackknife+":
        return jackknife_limits(errors, predictor, results.design, prediction.X, alpha)
    spread = cast("ResidualScale", errors.spread)
    expected = spread.at(prediction.X, predictor.n_jobs)
    return local_limits(errors, mean, expected, alpha)


def _has_classes(results: "EnsembleResults") -> bool:
    predictor = results.predictor
    return predictor is not None and predictor.kernel.n_classes is not None


def _no_residuals_message(results: "EnsembleResults") -> str:
    if _has_classes(results):
        return (
            "`obs_method` is for a numeric response; this one has classes. Use "
            "class_sets(alpha) for the classes that a new observation may have."
        )
    return (
        "limits of new observations need out-of-bag residuals, and these results have "
        "none. Fit with oob=True, and a `k` that leaves rows out."
    )


def _unknown_units_message(method: str) -> str:
    return (
        f"obs_method={method!r} needs to know whose the out-of-bag residuals are, and "
        "their predictors. These results do not: they were saved by an earlier "
        "version, or fitted elsewhere. Use obs_method='residuals', or fit again."
    )


def _too_few_message(
    results: "EnsembleResults", errors: OutOfBagErrors | None, alpha: float, method: str
) -> str:
    share = alpha if method == "jackknife+" else alpha / 2
    if method == "residuals" or errors is None:
        there = cast("Scores", results.scores).residuals.size
    else:
        there = errors.n_units
    fewer = method != "jackknife+" and errors is not None
    other = ""
    if fewer and least_units(alpha) <= cast("OutOfBagErrors", errors).n_units:
        other = f", or obs_method='jackknife+', which needs {least_units(alpha):,}"
    return (
        f"limits at alpha={alpha:g} need out-of-bag residuals of "
        f"{least_units(share):,} units or more by {method!r}; there are {there:,}. Use "
        f"a larger `alpha`{other}."
    )


def tabulate_class_sets(
    prediction: "PredictionResults", alpha: float, *, by_class: bool
) -> ClassSets:
    """Compute `PredictionResults.class_sets`."""
    check_alpha(alpha)
    results = prediction.results
    predictor = predictor_of(results)
    K = predictor.kernel.n_classes
    if K is None:
        raise ValueError(
            "sets of classes are for a response that has classes; this one is "
            "numeric. summary_frame(alpha) has the limits of a new observation."
        )
    errors = results.out_of_bag_errors
    if errors is None or errors.codes is None:
        raise ValueError(
            "sets of classes need out-of-bag probabilities of single observations, and "
            "these results have none: they were saved by an earlier version, fitted "
            "elsewhere, or with oob=False. Fit again, with oob=True."
        )
    classes = tuple(range(K)) if predictor.classes is None else predictor.classes
    least = class_thresholds(errors, K, alpha, by_class=by_class)
    if np.isnan(least).any():
        c = int(np.flatnonzero(np.isnan(least))[0])
        mine = errors.units[errors.codes == c] if by_class else errors.units
        of_class = f" of class {classes[c]!r}" if by_class else ""
        raise ValueError(
            f"sets at alpha={alpha:g} need {least_units(alpha):,} units or more"
            f"{of_class} that were out of bag; there are {np.unique(mine).size:,}. Use "
            "a larger `alpha`."
        )
    shares = class_shares(prediction.estimates.estimate, K)
    index = prediction.labels
    if K > 2:
        index = cast("pd.MultiIndex", index)[::K].droplevel("class")
    return probable_classes(shares, least, index, classes, alpha)


def class_shares(estimates: Floats, n_classes: int) -> Floats:
    """Give probabilities a column for each class; of two, the second is predicted."""
    if n_classes == 2:
        return np.column_stack([1 - estimates, estimates])
    return estimates.reshape(-1, n_classes)


KINDS = (".parquet", ".pq", ".csv")
"""Files that predictions are written to."""


Tabulate = Callable[[pd.DataFrame], pd.DataFrame]
"""Predicts a batch."""


def write_predictions(
    results: "EnsembleResults",
    data: DataLike,
    out: str | PathLike[str],
    tabulate: Tabulate,
) -> Path:
    """Predict batch after batch, and write every batch to a file.

    Parameters
    ----------
    results : "EnsembleResults"
        The ensemble that predicts.
    data : Any
        New data, in memory or read batch after batch.
    out : str or path
        File to write, Parquet or CSV by its name. Until all is written it has
        another name, and an older file stays as it was.
    tabulate : callable
        Predicts a batch: one row for each, or one for each and class.

    Returns
    -------
    Path
        The file.
    """
    path = Path(out)
    if path.suffix.lower() not in KINDS:
        raise DataError(f"`out` must end in {', '.join(KINDS)}; got {path}.")
    check_directory(path)
    with _replace_when_done(path) as beside, _writer(path, beside) as write:
        first = 0
        for batch in _batches(results, data):
            with _locate_errors(first):
                table = tabulate(batch.set_axis(_places(first, len(batch))))
            write(_flatten_index(table))
            first += len(batch)
    return path


def read_into_memory(results: "EnsembleResults", data: DataLike) -> DataLike:
    """Read new data into memory, if they are not there and are few."""
    source = find_source(data)
    if source is None:
        return data
    advice = "Give `out`, a file to which the predictions are written batch by batch."
    return read_few(source, _needed_columns(results, source), advice)


def _batches(results: "EnsembleResults", data: DataLike) -> Iterator[pd.DataFrame]:
    """Read the columns that are needed to predict."""
    source = find_source(data)
    if source is None:
        yield from split_batches(as_frame(data))
        return
    some = False
    for batch in source.batches(_needed_columns(results, source)):
        some = True
        yield batch
    if not some:
        raise DataError(f"{source} has no rows.")


def _needed_columns(results: "EnsembleResults", source: Source) -> list[str]:
    predictor = predictor_of(results)
    if predictor.coding is not None:
        names = list(predictor.coding.variables)
    else:
        names = list(predictor.columns or source.columns)
    for name in names:
        if name not in source.columns:
            columns = pd.Index(source.columns)
            raise FormulaError(
                f"{source} lacks the column {name!r}{suggest_name(name, columns)}"
            )
    return names


def _places(first: int, length: int) -> pd.RangeIndex:
    return pd.RangeIndex(first, first + length)


@contextmanager
def _locate_errors(first: int) -> Iterator[None]:
    """Say, where a batch is refused, where its rows are in the data."""
    try:
        yield
    except FormulaError as error:
        if first == 0:
            raise
        raise FormulaError(
            f"{error} (This is among the rows from row {first} of the data on.)"
        ) from error


def _flatten_index(table: pd.DataFrame) -> pd.DataFrame:
    """Write the class of every row, where there are several, into a column."""
    if isinstance(table.index, pd.MultiIndex):
        return table.reset_index()
    return table.reset_index(drop=True)


@contextmanager
def _replace_when_done(path: Path) -> Iterator[Path]:
    """Give a name to write under; what was written whole is moved into place."""
    machine = f".{path.name}.{socket.gethostname()}"
    _remove_abandoned(path.parent, machine)
    beside = path.with_name(f"{machine}.{os.getpid()}.part")
    with removed_if_ended(beside):
        try:
            yield beside
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def _remove_abandoned(directory: Path, machine: str) -> None:
    """Remove parts that killed processes of this machine have left."""
    for part in directory.iterdir():
        rest = part.name.removeprefix(f"{machine}.").removesuffix(".part")
        named = part.name == f"{machine}.{rest}.part" and rest.isdecimal()
        if named and not is_alive(int(rest)):
            with suppress(OSError):  # another process was faster, or has it open
                part.unlink()


@contextmanager
def _writer(path: Path, beside: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    open_writer = _csv_writer if path.suffix.lower() == ".csv" else _parquet_writer
    with open_writer(beside) as write:
        yield write


@contextmanager
def _csv_writer(beside: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    with beside.open("w", newline="", encoding="utf-8") as file:

        def write(table: pd.DataFrame) -> None:
            table.to_csv(file, header=file.tell() == 0, index=False)

        yield write


@contextmanager
def _parquet_writer(beside: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    pa = import_optional("pyarrow", "writing predictions to a Parquet file")
    pq = import_optional("pyarrow.parquet", "writing predictions to a Parquet file")
    opened: list[Any] = []

    def write(table: pd.DataFrame) -> None:
        batch = pa.Table.from_pandas(table, preserve_index=False)
        if not opened:
            opened.append(pq.ParquetWriter(beside, batch.schema))
        opened[0].write_table(batch)

    try:
        yield write
    finally:
        for writer in opened:
            writer.close()


@pickled_plainly
class PredictionResults(EstimateTable):
    """Predictions with their uncertainty.

    Attributes
    ----------
    results : "EnsembleResults"
        The ensemble that predicts.
    X : ndarray of shape (q, p)
        Coded query points.
    labels : Index of length m
        Row, or row and class, of every prediction.
    estimates : Estimates
        Estimates as arrays, with stabilised variances.
    obs_method : str or None
        How new observations are bounded, by default.

    Notes
    -----
    The predictions of single learners, `values`, are computed when covariances or
    tests need them: predictions of many rows are estimated chunk by chunk.
    """

    results: "EnsembleResults"
    X: Floats
    obs_method: str | None

    def __init__(
        self,
        results: "EnsembleResults",
        X: Floats,
        labels: Labels,
        estimates: Estimates,
        obs_method: str | None = None,
    ) -> None:
        aim = None if results.info.aim is None else results.info.aim.without_bias
        self.__dict__.update(
            results=results,
            X=X,
            obs_method=obs_method,
            estimates=estimates,
            design=results.design,
            labels=labels,
            variance=results.variance,
            info=replace(results.info, title="Predictions", aim=aim),
            units=results.units,
            null=0.0,
            limit=_largest_limit(results),
            support=estimates.support,
            tails=estimates.tails,
            kind=results.kind,
            orders=results.orders,
            points=None,
        )

    @cached_property
    def values(self) -> Floats:
        """Predictions of every learner, shape (B, m)."""
        return predictor_of(self.results).values(self.X)

    @property
    def B(self) -> int:  # noqa: N802
        """Number of base learners."""
        return self.results.B

    def __repr__(self) -> str:
        columns = self._shown_columns()
        return (
            f"<PredictionResults: {shown_estimates(label_texts(self.labels), columns)}>"
        )

    def _restriction_table(self, R: Restrictions) -> EstimateTable:
        """Give rows that are labelled by numbers names that restrictions can use."""
        labels = self.labels
        classes = isinstance(labels, pd.MultiIndex) and labels.names[-1] == "class"
        rows = labels.get_level_values(0) if classes else labels
        several = isinstance(labels, pd.MultiIndex) and labels.nlevels > 1 + classes
        if several or not is_number_kind(rows.dtype):
            return self
        named = pd.Index([f"row{label}" for label in rows])
        if classes:
            kinds = labels.get_level_values("class")
            named = pd.MultiIndex.from_arrays([named, kinds], names=[None, "class"])
        return derive_table(self, EstimateTable, labels=named)

    def with_variance(self, name: str) -> "PredictionResults":
        """Switch the variance estimator; nothing is fitted again."""
        results = self.results.with_variance(name)
        return _predict_rows(results, self.X, self.labels, self.obs_method)

    def summary(self, alpha: float = 0.05) -> "Summary":  # type: ignore[override]
        """Lay the predictions out as statsmodels does: text, HTML, LaTeX or CSV."""
        from vstatkit.results.summary import summarise_predictions  # noqa: PLC0415 slow import

        return summarise_predictions(self, alpha)

    @property
    def predicted_mean(self) -> pd.Series:
        """Ensemble means."""
        return pd.Series(self.estimates.estimate, self.labels, name="mean")

    @property
    def se_mean(self) -> pd.Series:
        """Standard errors of the means."""
        return pd.Series(self.estimates.bse, self.labels, name="mean_se")

    def summary_frame(
        self, alpha: float = 0.05, obs_method: str | None = None
    ) -> pd.DataFrame:
        """Tabulate the predictions.

        Parameters
        ----------
        alpha : float
            One minus the coverage of the intervals.
        obs_method : {"local", "residuals", "jackknife+"}, optional
            How a new observation is bounded, by default as `get_prediction` was told.
            See there.

        Returns
        -------
        DataFrame
            `mean`, `mean_se`, `mean_ci_lower`, `mean_ci_upper`; for a numeric
            response `obs_ci_lower`, `obs_ci_upper`, the bounds of a new
            observation from out-of-bag residuals; and `se_mc_error`, the Monte Carlo
            error of `mean_se`, in its unit. `attrs["obs_method"]` names the method.
            With too few units for the level the bounds are not a number,
            `attrs["obs_note"]` says why, and a `FewUnitsWarning` does (an error, if a
            method was asked for). A fit with `oob=False` has no such columns.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=200, rng=1)
        >>> frame = res.get_prediction(data.head(2)).summary_frame(alpha=0.1)
        >>> frame.attrs["obs_method"]
        'local'
        """
        frame = mean_frame(self.estimates, self.labels, alpha)
        method = self.obs_method if obs_method is None else obs_method
        bounds = observation_limits(self, alpha, method)
        if bounds.limits is not None:
            frame.insert(4, "obs_ci_lower", bounds.limits[0])
            frame.insert(5, "obs_ci_upper", bounds.limits[1])
        if bounds.method is not None:
            frame.attrs["obs_method"] = bounds.method
        if bounds.note is not None:
            frame.attrs["obs_note"] = bounds.note
        if bounds.note is not None and bounds.limits is not None:
            words = f"obs_ci_lower and obs_ci_upper are not a number: {bounds.note}"
            warnings.warn(words, FewUnitsWarning, stacklevel=2)
        return frame

    def class_sets(self, alpha: float = 0.05, *, by_class: bool = False) -> ClassSets:
        """List the classes that a new observation may have.

        Parameters
        ----------
        alpha : float
            One minus the coverage: a new observation's class is in its set with
            probability 1 - alpha, over points like those of the fit.
        by_class : bool
            Whether that must hold for the observations of every class, not only for
            all of them together.

        Returns
        -------
        ClassSets
            A data frame, with a row for each point and a column for each class:
            whether it is in the set; `plot()` draws it. A set may hold several
            classes, or none where no class is as probable as the observed ones were.
            `attrs["least_probability"]` has the probability from which a class is in
            a set.

        Notes
        -----
        A class is in the set where it is at least as probable as all but a share
        alpha of the observed classes were, out of bag. See "New observations".

        References
        ----------
        Sadinle, Lei and Wasserman (2019), Journal of the American Statistical
        Association 114, doi:10.1080/01621459.2017.1395341.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.iris()
        >>> res = vs.fit("species ~ petal_length", data, B=200, rng=1)
        >>> sets = res.get_prediction({"petal_length": [1.4, 4.9]}).class_sets(0.05)
        >>> sets.sum(axis=1).to_list()
        [1, 2]
        """
        return tabulate_class_sets(self, alpha, by_class=by_class)

    def plot(self, ax: "Axes | None" = None, *, alpha: float = 0.05) -> "Axes":
        """Draw the predictions with their intervals; see `plots.plot_prediction`."""
        from vstatkit.plots.predictions import (  # noqa: PLC0415 on demand
            plot_prediction,
        )

        return plot_prediction(self, alpha=alpha, ax=ax)

    def t_test(self, R: Restrictions) -> ContrastResults:
        """Test linear combinations of the predictions, one by one.

        Parameters
        ----------
        R : str, list of str or array-like of shape (r, m)
            A matrix with a column for each prediction, or restrictions in words, such
            as "a = b" with the labels of the rows. Rows whose labels are numbers are
            called `row0`, `row1`, ... in words; with more than two classes a
            prediction is called `row0 [class]`.

        Returns
        -------
        ContrastResults
            See `EnsembleResults.t_test`. Covariances of the predictions are included:
            standard errors come from the same learners.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x4", data, B=500, rng=1)
        >>> new = {"x1": [0.5, 0.5], "x4": [0.1, 0.9]}
        >>> bool(res.get_prediction(new).t_test("row0 = row1").pvalue < 0.05)
        True
        """
        return super().t_test(R)


def predict_means(
    results: "EnsembleResults", data: DataLike
) -> pd.Series | pd.DataFrame:
    """Predict new data; see `EnsembleResults.predict`."""
    predictor = predictor_of(results)
    X, index = predictor.rows(data)
    mean = predictor.averages(X, results.design)
    if predictor.classes is not None and len(predictor.classes) > 2:
        table = mean.reshape(-1, len(predictor.classes))
        return pd.DataFrame(table, index, list(predictor.classes))
    return pd.Series(mean, index, name=results.info.response)


def predict_with_errors(
    results: "EnsembleResults", data: DataLike, obs_method: str | None = None
) -> PredictionResults:
    """Predict new data with standard errors, chunk after chunk."""
    check_method(obs_method)
    predictor = predictor_of(results)
    X, index = predictor.rows(data)
    return _predict_rows(results, X, predictor.labels(index), obs_method)


def _predict_rows(
    results: "EnsembleResults", X: Floats, labels: Labels, obs_method: str | None
) -> PredictionResults:
    """Predict coded rows with standard errors."""
    predictor, limit = predictor_of(results), _largest_limit(results)
    estimates = predictor.estimates(
        X, Estimation(results.design, results.variance, limit, results.orders)
    )
    support = prediction_support(predictor.kernel, results.design.n)
    known = results.support is not None and not results.info.coefficients
    estimates = replace(
        estimates,
        support=results.support if known else support,
        tails=prediction_tails(predictor.kernel)
        if results.tails is None
        else results.tails,
    )
    return PredictionResults(results, X, labels, estimates, obs_method)


def _largest_limit(results: "EnsembleResults") -> float | None:
    return None if results.limit is None else float(np.max(results.limit))
