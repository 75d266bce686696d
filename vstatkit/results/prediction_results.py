"""Predictions: standard errors, bounds of new observations, classes and files."""

import os
import socket
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import pandas as pd

from vstatkit._typing import Bools, DataLike, Floats, Labels, Restrictions
from vstatkit.ensemble.memory import format_bytes
from vstatkit.ensemble.oob_scores import Scores
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.prediction_intervals import (
    Limits,
    OutOfBagErrors,
    class_thresholds,
    collect_errors,
    jackknife_limits,
    local_limits,
)
from vstatkit.ensemble.retention import learner_bytes
from vstatkit.exceptions import DataError, FewUnitsWarning, FormulaError
from vstatkit.formula.column_checks import is_number_kind
from vstatkit.formula.data_frames import as_frame
from vstatkit.inference.conformal import least_units
from vstatkit.inference.estimates import Estimates, Estimation
from vstatkit.inference.intervals import (
    Support,
    Tails,
    effective_size,
    prediction_support,
    prediction_tails,
)
from vstatkit.inference.skew_correction import noise_of_skew, shrink_skew
from vstatkit.kernels.tree import StoredTreeKernel
from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.results.estimate_table import EstimateTable, derive_table, mean_frame
from vstatkit.results.labels import label_texts
from vstatkit.scratch import is_alive, removed_if_ended
from vstatkit.sources.disk_arrays import check_directory
from vstatkit.sources.recognition import find_source, read_few
from vstatkit.sources.source import Source, import_optional, split_batches
from vstatkit.text import shown_estimates, suggest_name
from vstatkit.validation import check_alpha
from vstatkit.variance.leaf_influence import LeafInfluence
from vstatkit.variance.registry import compares_groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

    from vstatkit.results.ensemble_results import EnsembleResults


def predictor_of(results: "EnsembleResults") -> Predictor:
    """Return the predictor of a fit, or raise an error if learners are missing."""
    predictor, B = results.predictor, results.B
    if predictor is None:
        raise ValueError(
            f"these results have no learners that predict: {results.info.kernel!r} is "
            "a statistic, or they were saved without learners. The estimates are in "
            "`params` and `summary()`."
        )
    n_kept, size = predictor.n_kept, ""
    if n_kept >= B:
        return predictor
    if n_kept:
        bytes_of_each = learner_bytes(predictor.learners[:n_kept]) / n_kept
        size = f" (about {format_bytes(bytes_of_each * B)} in all)"
    raise ValueError(
        f"predictions need all {B:,} learners, but only {n_kept:,} were kept. Fit "
        f"again with keep_learners=True{size}, or with a smaller `B` (`max_B` for "
        "B='auto'). Query points given to `fit` as `at` do not need kept learners."
    )


class ClassSets(pd.DataFrame):
    """Sets of classes for new observations: a data frame with a `plot` method.

    Each row is a point and each column a class; an entry is true if the class is in the
    set. `attrs["least_probability"]` has the least probability of each class in a set.
    Selected rows and classes, as by `head()`, are sets too; the result of any other
    computation is a plain data frame.

    Attributes
    ----------
    probabilities : DataFrame
        Probabilities of all rows and classes.
    alpha : float
        One minus the coverage.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.iris()
    >>> res = vs.fit("species ~ petal_length", data, B=200, rng=1)
    >>> sets = res.get_prediction({"petal_length": [1.4, 4.9]}).class_sets(0.05)
    >>> sets.probabilities.shape, sets.sum(axis=1).to_list()
    ((2, 3), [1, 2])
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
        """Draw the sets, with probabilities as shades; at most 40 rows."""
        from vstatkit.plots.estimates import draw_sets  # noqa: PLC0415 on demand

        whole = getattr(self, "probabilities", None)
        if isinstance(whole, pd.DataFrame):
            names = [name for name in whole.columns if name in self.columns]
            rows, labels = whole, self.index
            if not labels.equals(whole.index):
                known = labels.isin(whole.index).all()
                rows = whole.loc[labels] if known else whole.iloc[:0]
            if names and len(rows) == len(self):
                probable = self.attrs["least_probability"]
                least = np.array([probable[name] for name in names])
                in_sets = members(rows[names].to_numpy(), least)
                if np.array_equal(in_sets, self[names].to_numpy()):
                    return draw_sets(rows[names], self, ax)
        raise ValueError(
            "`plot` needs rows of sets as `class_sets` returns them, with unique "
            "labels; these were changed, or their labels repeat. Draw the sets before "
            "you change them, or predict the rows: "
            "get_prediction(rows).class_sets().plot()."
        )


def _sets_or_frame(*args: Any, **options: Any) -> pd.DataFrame:
    """Make sets of what pandas selects from sets; a plain frame of other tables."""
    frame = pd.DataFrame(*args, **options)
    sets = len(frame.columns) > 0 and all(kind.kind == "b" for kind in frame.dtypes)
    return ClassSets(frame) if sets else frame


def members(shares: Floats, least: Floats) -> Bools:
    """Return which classes are probable enough.

    One minus the probabilities are compared, as in the computation of the thresholds,
    so that rounding does not exclude the row that defines a threshold.
    """
    return 1 - shares <= 1 - least


def probable_classes(
    shares: Floats,
    least: Floats,
    index: Labels,
    classes: Sequence[Hashable],
    alpha: float,
) -> ClassSets:
    """Make sets of the classes with at least these probabilities, (q, K) and (K,)."""
    sets = ClassSets(members(shares, least), index, list(classes))
    sets.attrs["least_probability"] = dict(zip(classes, least.tolist(), strict=True))
    sets.probabilities = pd.DataFrame(shares, index, list(classes))
    sets.alpha = alpha
    return sets


METHODS = ("local", "residuals", "jackknife+")  # values of `obs_method`


def check_method(method: str | None) -> None:
    """Raise an error for unknown methods."""
    if method is not None and method not in METHODS:
        names = ", ".join(map(repr, METHODS))
        raise ValueError(f"`obs_method` must be one of {names}; got {method!r}.")


def collect_residuals(results: "EnsembleResults") -> OutOfBagErrors | None:
    """Collect the out-of-bag residuals; None if their units are unknown."""
    scores, predictor = results.scores, results.predictor
    if results.errors is not None or scores is None or predictor is None:
        return results.errors
    recipe = results.recipe
    if recipe is None and results.nobs != results.design.n:
        return None
    unit_of_row = None if recipe is None else recipe.task.unit_of_row
    n_jobs, kernel = predictor.n_jobs, predictor.kernel
    return collect_errors(
        scores, kernel, unit_of_row, seed=results.design.seed, n_jobs=n_jobs
    )


def with_residuals(results: "EnsembleResults") -> "EnsembleResults":
    """Collect the out-of-bag residuals now, so that pickles have them."""
    return replace(results, errors=collect_residuals(results))


def observation_limits(
    prediction: "PredictionResults", alpha: float, method: str | None
) -> tuple[Limits | None, dict[str, str]]:
    """Compute limits of new observations, and the `attrs` of their table.

    Without a `method` this is "local" if possible, otherwise "residuals", and there are
    no limits instead of an error if they cannot be computed. Limits are NaN if there
    are too few units for the level, and None without out-of-bag residuals. The attrs
    are the method that was used, or a note on why there are no limits.
    """
    check_method(method)
    check_alpha(alpha)
    results, scores = prediction.results, prediction.results.scores
    if scores is None or scores.residuals.size == 0:
        predictor = results.predictor
        classes = predictor is not None and predictor.kernel.n_classes is not None
        note = (
            "`obs_method` requires a numeric response; this one has classes. Use "
            "class_sets(alpha) for the classes that a new observation may have."
            if classes
            else "limits of new observations need out-of-bag residuals, and these "
            "results have none. Fit with oob=True, and with a `k` that leaves rows out."
        )
        if method is not None:
            raise ValueError(note)
        return None, {} if classes else {"obs_note": note}
    errors, method_used = results.out_of_bag_errors, method
    if method_used is None:
        local = errors is not None and errors.spread is not None
        method_used = "local" if local else "residuals"
    limits = _limits(prediction, alpha, method_used, scores, errors)
    if limits is not None:
        return limits, {"obs_method": method_used}
    note = _too_few_message(scores, errors, alpha, method_used)
    if method is not None:
        raise ValueError(note)
    unknown = np.full(len(prediction.labels), np.nan)
    return (unknown, unknown), {"obs_note": note}


def _limits(
    prediction: "PredictionResults",
    alpha: float,
    method: str,
    scores: Scores,
    errors: OutOfBagErrors | None,
) -> Limits | None:
    """Compute limits by one method; None if there are too few units."""
    results, mean = prediction.results, prediction.estimates.estimate
    if method == "residuals":
        offsets = scores.interval_offsets(alpha)
        return None if offsets is None else (mean + offsets[0], mean + offsets[1])
    spread = None if errors is None else errors.spread
    if errors is None or (method == "local" and spread is None):
        raise ValueError(
            f"obs_method={method!r} needs the units and predictors of the out-of-bag "
            "residuals. These results do not have them: they were saved by an earlier "
            "version, or fitted elsewhere. Use obs_method='residuals', or fit again."
        )
    predictor = predictor_of(results)
    if method == "jackknife+" or spread is None:
        return jackknife_limits(errors, predictor, results.design, prediction.X, alpha)
    return local_limits(errors, mean, spread.at(prediction.X, predictor.n_jobs), alpha)


def _too_few_message(
    scores: Scores, errors: OutOfBagErrors | None, alpha: float, method: str
) -> str:
    n_units, other = scores.residuals.size, ""
    if errors is not None and method != "residuals":
        n_units = errors.n_units
    needed = least_units(alpha if method == "jackknife+" else alpha / 2)
    fewer = least_units(alpha)
    if method != "jackknife+" and errors is not None and fewer <= errors.n_units:
        other = f", or obs_method='jackknife+', which needs {fewer:,}"
    return (
        f"limits at alpha={alpha:g} with obs_method={method!r} need out-of-bag "
        f"residuals of at least {needed:,} units; there are {n_units:,}. Use a larger "
        f"`alpha`{other}."
    )


KINDS = (".parquet", ".pq", ".csv")  # endings of files with predictions


def write_predictions(
    results: "EnsembleResults",
    data: DataLike,
    out: str | PathLike[str],
    tabulate: Callable[[pd.DataFrame], pd.Series | pd.DataFrame],
) -> Path:
    """Write predictions to a Parquet or CSV file in batches, and return its path.

    The file has a temporary name until it is complete; an older file stays until then.
    """
    path = Path(out)
    if path.suffix.lower() not in KINDS:
        raise DataError(f"`out` must end in {', '.join(KINDS)}; got {path}.")
    check_directory(path)
    open_writer = _csv_writer if path.suffix.lower() == ".csv" else _parquet_writer
    source = find_source(data)
    if source is None:
        batches = split_batches(as_frame(data))
    else:
        batches = source.batches(_needed_columns(results, source))
    with _replace_when_done(path) as beside, open_writer(beside) as write:
        first = 0
        for batch in batches:
            places = pd.RangeIndex(first, first + len(batch))
            try:
                table = pd.DataFrame(tabulate(batch.set_axis(places)))
            except FormulaError as error:
                if first == 0:
                    raise
                raise FormulaError(
                    f"{error} (This batch starts at row {first} of the data.)"
                ) from error
            several = isinstance(table.index, pd.MultiIndex)  # the class of every row
            write(table.reset_index(drop=not several))
            first += len(batch)
        if source is not None and first == 0:
            raise DataError(f"{source} has no rows.")
    return path


def read_into_memory(results: "EnsembleResults", data: DataLike) -> DataLike:
    """Read new data into memory, unless they are too many."""
    source = find_source(data)
    if source is None:
        return data
    advice = "Give `out`, a file to which the predictions are written batch by batch."
    return read_few(source, _needed_columns(results, source), advice)


def _needed_columns(results: "EnsembleResults", source: Source) -> list[str]:
    predictor = predictor_of(results)
    columns, coding = predictor.columns or tuple(source.columns), predictor.coding
    names = list(columns if coding is None else coding.variables)
    for name in names:
        if name not in source.columns:
            near = suggest_name(name, pd.Index(source.columns))
            raise FormulaError(f"{source} lacks the column {name!r}{near}")
    return names


@contextmanager
def _replace_when_done(path: Path) -> Iterator[Path]:
    """Yield a temporary name; the complete file is then moved into place."""
    machine = f".{path.name}.{socket.gethostname()}"
    # Files of processes of this machine that no longer exist are removed.
    for part in path.parent.iterdir():
        rest = part.name.removeprefix(f"{machine}.").removesuffix(".part")
        named = part.name == f"{machine}.{rest}.part" and rest.isdecimal()
        if named and not is_alive(int(rest)):
            with suppress(OSError):  # another process was faster, or has it open
                part.unlink()
    beside = path.with_name(f"{machine}.{os.getpid()}.part")
    with removed_if_ended(beside):
        try:
            yield beside
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


@contextmanager
def _csv_writer(beside: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    with beside.open("w", newline="", encoding="utf-8") as file:
        yield lambda table: table.to_csv(file, header=file.tell() == 0, index=False)


@contextmanager
def _parquet_writer(beside: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    pa = import_optional("pyarrow", "writing predictions to a Parquet file")
    pq = import_optional("pyarrow.parquet", "writing predictions to a Parquet file")
    with ExitStack() as stack:
        writer: Any = None

        def write(table: pd.DataFrame) -> None:
            nonlocal writer
            batch = pa.Table.from_pandas(table, preserve_index=False)
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(beside, batch.schema))
            writer.write_table(batch)

        yield write


@pickled_plainly
class PredictionResults(EstimateTable):
    """Predictions with their uncertainty.

    Restrictions name predictions by the labels of their rows. Rows whose labels are
    numbers are named `row0`, `row1`, ...; with more than two classes a prediction is
    named `row0 [class]`. Predictions of many rows are estimated in chunks; those of
    single learners, `values`, are computed when covariances or tests need them.

    Attributes
    ----------
    results : EnsembleResults
        The ensemble that predicts.
    X : ndarray of shape (q, p)
        Coded query points.
    labels : Index of length m
        Row, or row and class, of every prediction.
    estimates : Estimates
        Estimates as arrays, with stabilised variances.
    obs_method : str or None
        Default method for the limits of new observations.

    Examples
    --------
    >>> import vstatkit as vs
    >>> data = vs.datasets.mars(200, rng=1)
    >>> res = vs.fit("y ~ x1 + x4", data, B=500, rng=1)
    >>> prediction = res.get_prediction({"x1": [0.5, 0.5], "x4": [0.1, 0.9]})
    >>> bool(prediction.t_test("row0 = row1").pvalue < 0.05)
    True
    >>> prediction.summary_frame(alpha=0.1).attrs["obs_method"]
    'local'
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
        coefficients = results.info.coefficients
        info = replace(results.info.derive("Predictions"), coefficients=coefficients)
        shared = ("design", "variance", "units", "kind", "orders", "pooled")
        self.__dict__.update(
            {name: getattr(results, name) for name in shared},
            results=results,
            X=X,
            obs_method=obs_method,
            estimates=estimates,
            labels=labels,
            info=info,
            null=0.0,
            limit=results._largest_limit,
            support=estimates.support,
            tails=estimates.tails,
            points=None,
        )

    @cached_property
    def values(self) -> Floats:
        """Predictions of every learner, shape (B, m)."""
        return predictor_of(self.results).values(self.X)

    @cached_property
    def leaf_influence(self) -> LeafInfluence | None:
        """Influence of the units if the splits of the trees were fixed."""
        return prediction_influence(self.results, self.X)

    @property
    def B(self) -> int:  # noqa: N802
        """Number of base learners."""
        return self.results.B

    def __repr__(self) -> str:
        shown = shown_estimates(label_texts(self.labels), self._shown_columns())
        return f"<PredictionResults: {shown}>"

    def _restriction_table(self, R: Restrictions) -> EstimateTable:
        """Name rows that have numbers as labels `row0`, `row1`, ..."""
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
        """Switch to another variance estimator without refitting."""
        results = self.results.with_variance(name)
        return _predict_rows(results, self.X, self.labels, self.obs_method)

    def summary(self, alpha: float = 0.05) -> "Summary":  # type: ignore[override]
        """Summarise in a table like statsmodels': text, HTML, LaTeX or CSV."""
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

        The columns are `mean`, `mean_se`, `mean_ci_lower`, `mean_ci_upper`; for a
        numeric response `obs_ci_lower` and `obs_ci_upper`, limits of a new observation
        from out-of-bag residuals; and `se_mc_error`, the Monte Carlo error of
        `mean_se`. `attrs["obs_method"]` is the method. If there are too few units for
        the level, the limits are NaN, `attrs["obs_note"]` has the reason, and a
        `FewUnitsWarning` is issued (an error if `obs_method` was given). A fit with
        `oob=False` has no limits.

        Parameters
        ----------
        alpha : float
            One minus the coverage of the intervals.
        obs_method : {"local", "residuals", "jackknife+"}, optional
            Method for the limits of a new observation, see `get_prediction`; by
            default the method given there.
        """
        frame = mean_frame(self.estimates, self.labels, alpha)
        method = self.obs_method if obs_method is None else obs_method
        limits, attrs = observation_limits(self, alpha, method)
        frame.attrs |= attrs
        if limits is not None:
            frame.insert(4, "obs_ci_lower", limits[0])
            frame.insert(5, "obs_ci_upper", limits[1])
            if "obs_note" in attrs:
                message = f"obs_ci_lower and obs_ci_upper are NaN: {attrs['obs_note']}"
                warnings.warn(message, FewUnitsWarning, stacklevel=2)
        return frame

    def class_sets(self, alpha: float = 0.05, *, by_class: bool = False) -> ClassSets:
        """List the classes that a new observation may have.

        A class is in the set if it is at least as probable as all but a share alpha of
        the observed classes, out of bag (Sadinle, Lei and Wasserman 2019,
        doi:10.1080/01621459.2017.1395341; see "New observations"). A set may contain
        several classes, or none if no class is as probable as the observed ones were.

        Parameters
        ----------
        alpha : float
            One minus the coverage: the probability that the set of a new observation
            contains its class, on average over points like those of the fit.
        by_class : bool
            Whether the coverage is for observations of every class, not only on
            average over classes.
        """
        check_alpha(alpha)
        predictor = predictor_of(self.results)
        K = predictor.kernel.n_classes
        if K is None:
            raise ValueError(
                "sets of classes require a categorical response; this one is numeric. "
                "summary_frame(alpha) has the limits of a new observation."
            )
        errors = self.results.out_of_bag_errors
        if errors is None or errors.codes is None:
            raise ValueError(
                "sets of classes need out-of-bag probabilities of single observations, "
                "and these results have none: they were saved by an earlier version, "
                "fitted elsewhere, or with oob=False. Fit again, with oob=True."
            )
        classes = tuple(range(K)) if predictor.classes is None else predictor.classes
        least = class_thresholds(errors, K, alpha, by_class=by_class)
        if np.isnan(least).any():
            c = int(np.flatnonzero(np.isnan(least))[0])
            mine = errors.units[errors.codes == c] if by_class else errors.units
            of_class = f" of class {classes[c]!r}" if by_class else ""
            raise ValueError(
                f"sets at alpha={alpha:g} need at least {least_units(alpha):,} units"
                f"{of_class} that were out of bag; there are {np.unique(mine).size:,}. "
                "Use a larger `alpha`."
            )
        estimates, index = self.estimates.estimate, self.labels
        if K == 2:  # the second class is estimated
            shares = np.column_stack([1 - estimates, estimates])
        else:
            shares = estimates.reshape(-1, K)
            index = cast("pd.MultiIndex", index)[::K].droplevel("class")
        return probable_classes(shares, least, index, classes, alpha)

    def plot(self, ax: "Axes | None" = None, *, alpha: float = 0.05) -> "Axes":
        """Draw the predictions with their intervals; see `plots.plot_prediction`."""
        from vstatkit.plots.estimates import plot_prediction  # noqa: PLC0415 on demand

        return plot_prediction(self, alpha=alpha, ax=ax)


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
    """Predict new data with standard errors, in chunks."""
    check_method(obs_method)
    predictor = predictor_of(results)
    X, index = predictor.rows(data)
    return _predict_rows(results, X, predictor.labels(index), obs_method)


def prediction_influence(results: "EnsembleResults", X: Floats) -> LeafInfluence | None:
    """Compute the influence of the units on predictions if the splits were fixed.

    None if variances are not pooled.
    """
    if results.row_residuals is None:
        return None
    predictor = predictor_of(results)
    kernel = cast("StoredTreeKernel", predictor.kernel)
    return results.row_residuals.influence(kernel, predictor.learners, X)


def estimation_of(results: "EnsembleResults") -> Estimation:
    """Return how variances of predictions are estimated."""
    return Estimation(
        *(results.design, results.variance, results._largest_limit, results.orders),
        pooled=results.pooled,
        residuals=results.row_residuals,
    )


def _predict_rows(
    results: "EnsembleResults", X: Floats, labels: Labels, obs_method: str | None
) -> PredictionResults:
    """Predict coded rows with standard errors."""
    predictor, design = predictor_of(results), results.design
    how = estimation_of(results)
    support, tails = prediction_support(predictor.kernel, design.n), results.tails
    if results.support is not None and not results.info.coefficients:
        support = results.support
    if tails is None:
        tails = prediction_tails(predictor.kernel)
    estimates = replace(predictor.estimates(X, how), support=support, tails=tails)
    return PredictionResults(results, X, labels, estimates, obs_method)


TYPICAL_VALUES = 300  # most reference values whose moments are pooled
TYPICAL_LEARNERS = 5000  # most learners whose predictions of them are pooled
TYPICAL_DRAWS = 400_000_000  # most draws, learners times reference values, of them
TYPICAL_TREES = 256  # most trees whose leaves give the influences at them
FEWEST_LEARNERS = 50  # fewest learners from which their variances are estimated


def with_typical(results: "EnsembleResults") -> "EnsembleResults":
    """Add the support and tails of predictions in general, for their intervals."""
    predictor, rows = results.predictor, results.reference
    if predictor is None or rows is None:
        return results
    typical = typical_estimates(predictor, rows, estimation_of(results), results.B)
    support, tails = results.support, results.tails
    if support is not None:
        support = typical_support(support, typical, results.design.n)
    if tails is not None and predictor.centre is not None:
        tails = Tails()  # stacked learners may leave the range of the response
    return replace(results, support=support, tails=typical_tails(tails, typical))


def typical_estimates(
    predictor: Predictor, rows: Floats, how: Estimation, B: int
) -> Estimates | None:
    """Estimate at some reference rows; None if too few learners were kept."""
    some = rows[: max(1, TYPICAL_VALUES // predictor.kernel.n_outputs)]
    all_of_them = compares_groups(how.method) or how.design.complete
    draws = how.design.k * len(some) * predictor.kernel.n_outputs
    most = min(TYPICAL_LEARNERS, max(TYPICAL_DRAWS // draws, FEWEST_LEARNERS))
    L = B if all_of_them else min(B, predictor.n_kept, most)
    if min(B, FEWEST_LEARNERS) > L or predictor.n_kept < L:
        return None
    part = predictor.first(L)
    powers = predictor.first(min(L, TYPICAL_TREES)).powers(some, how)
    return how.of(part.values(some)[:L], powers)


def typical_support(support: Support, typical: Estimates | None, units: int) -> Support:
    """Bound the effective number of observations behind a probability."""
    if typical is None:
        return replace(support, nobs=float(units))
    size = effective_size(typical.estimate, typical.components.total, units)
    return replace(support, nobs=size)


def typical_tails(tails: Tails | None, typical: Estimates | None) -> Tails | None:
    """Pool variance and skewness over reference rows.

    The skewness is the ratio of two sums, of third moments and of variances to the
    power 3/2. A mean of the skewness of single rows would be too small.
    """
    if tails is None or typical is None or typical.scaled.skew is None:
        return tails
    unit = typical.unit.max()
    parts = typical.scaled.in_units(typical.unit / unit)
    variance = typical.positive * (typical.unit / unit) ** 2
    weight = variance**1.5
    if not weight.sum() > 0 or parts.noise is None or parts.concentration is None:
        return tails
    pooled = np.asarray(typical.scaled.skew @ weight / weight.sum())
    # All rows share the learners, and thus their noise.
    share = np.asarray(parts.noise.sum() / variance.sum())
    noise = noise_of_skew(share, np.asarray(parts.concentration.mean()), parts.n)
    skew = float(shrink_skew(pooled, noise))
    return replace(tails, error=float(np.sqrt(variance.mean()) * unit), skew=skew)
