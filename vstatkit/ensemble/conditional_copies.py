"""Conditional copies of predictors, given the other predictors."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.regression_on_other_predictors import (
    FEW_VALUES,
    OtherPredictors,
    levels_by_rows,
    predict_leave_one_out,
    predict_shares,
)
from vstatkit.formula.column_checks import is_number
from vstatkit.sampling.streams import Purpose, stream

# Smallest conditional spread of a number, divided by the mean spread.
LEAST_SPREAD = 0.1


@dataclass(frozen=True)
class ConditionalModel:
    """A predictor, its prediction from the others, and the residual."""

    column: pd.Series  # length n: the predictor
    # (n,) or (n, L): predicted mean of a number, or shares of the L levels
    centre: Floats
    levels: pd.Index | None  # of a category, or few values; None for other numbers
    # (n,): `(value - centre) / spread`; for levels a normal score of their position in
    # the cumulative shares, standard normal if the shares are correct
    residual: Floats
    # (n,) or float: predicted mean of `abs(value - centre)`; not used for levels
    spread: Floats | float = 1.0

    def copy_with(self, residual: Floats) -> pd.Series:
        """Combine the predictions with other residuals.

        Numbers are moved to the nearest rank of the column's own values, so that the
        copy has the same values as the column, in another order.
        """
        if self.levels is None:
            order = np.argsort(self.centre + self.spread * residual, kind="stable")
            values = np.sort(self.column.to_numpy())
            copy = np.empty_like(values)
            copy[order] = values
            return pd.Series(copy, self.column.index)
        place = stats.norm.cdf(residual)[:, None]
        codes = (place > self.centre.cumsum(axis=1)[:, :-1]).sum(axis=1)
        labels = self.levels.take(codes)
        return pd.Series(labels, self.column.index).astype(self.column.dtype)


def fit_conditional_model(
    column: pd.Series, others: OtherPredictors, rng: np.random.Generator
) -> ConditionalModel:
    """Predict a predictor from the others, each row by fits that have not seen it.

    Values of the `column` must not be missing.

    Notes
    -----
    A number is regressed on predictions that have not seen the row: of least
    squares in the others; in squares and hinges of them too; in products of two of
    them too, shrunk by the penalty that predicts best (Allen 1974); of kernel ridge
    regressions, whose kernels are sums of Gaussian kernels of single predictors, or
    squares of such sums; and of a small forest. Coefficients are not negative (Breiman
    1996): predictions that leave a value out are low where it is high, by chance, and
    with the opposite sign they would repeat the very value. The residual is
    uncorrelated with the prediction, so that one of another row on top of it gives back
    the variance: predictions by themselves are noisy where there is little to predict,
    and a copy made from them would spread more than the predictor does. How far values
    lie from their predictions is predicted in the same way, and residuals change places
    in units of that.

    Shares of levels are predicted by a forest or, of at most `MOST_SMOOTHED` levels, in
    the same way as numbers, and mixed with the overall shares: by the kind and the
    weight with the largest log-likelihood of values that were left out.

    References
    ----------
    Allen (1974), The relationship between variable selection and data augmentation and
    a method for prediction, Technometrics 16. doi:10.1080/00401706.1974.10489157

    Breiman (1996), Stacked regressions, Machine Learning 24. doi:10.1007/BF00117832
    """
    levels = _levels(column)
    if levels is None:
        x = column.to_numpy(dtype=np.float64)
        centre = predict_leave_one_out(x, others, rng).mean
        away = np.abs(x - centre)
        spread = predict_leave_one_out(away, others, rng).mean
        least = max(LEAST_SPREAD * away.mean(), np.finfo(float).tiny)
        spread = np.maximum(spread, least)
        return ConditionalModel(column, centre, None, (x - centre) / spread, spread)
    codes = levels.get_indexer(pd.Index(column))
    shares = predict_shares(codes, len(levels), others, rng)
    top = shares.cumsum(axis=1)[np.arange(len(codes)), codes]
    share = shares[np.arange(len(codes)), codes]
    place = top - share * (1 - rng.random(len(codes)))
    score = stats.norm.ppf(np.clip(place, 1e-12, 1 - 1e-12))
    return ConditionalModel(column, shares, levels, score)


def _levels(column: pd.Series) -> pd.Index | None:
    """List the levels that occur; None for numbers of many values."""
    if not is_number(column):
        return levels_by_rows(column)
    if column.nunique() > FEW_VALUES:
        return None
    used: pd.Index = pd.Categorical(column).categories
    return used


How = Literal["conditional", "permute"]  # how a predictor is replaced


@dataclass(frozen=True)
class Copier:
    """Makes copies of predictors, from the data and the seed alone."""

    frame: pd.DataFrame  # n rows: all predictors
    seed: int  # seed of the copies
    unit_of_row: Ints | None = None  # (n,): cluster of every row
    n_jobs: int | None = None  # workers

    def others(self, names: Sequence[str]) -> OtherPredictors:
        """Take all predictors but some."""
        rest = [name for name in self.frame.columns if name not in names]
        return OtherPredictors(self.frame[rest], self.unit_of_row, self.n_jobs)

    def copies(
        self,
        names: Sequence[str],
        how: How,
        number: int,
        others: OtherPredictors | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Yield the data, `number` times, with other values of some predictors.

        If `how` is "conditional", a value is its prediction from the other predictors
        plus the residual of another row; if it is "permute", it is the value of another
        row. `others` are all other predictors, given so that their smoothers are
        reused.

        Several predictors are taken from the same row, so that they stay related to
        each other. Where rows come in clusters, the clusters' means and the rows'
        deviations from them change places separately, and a predictor that is constant
        within clusters stays so. Rows where a value is missing keep theirs.
        """
        check_how(how)
        names = list(names)
        live = self.frame[names].notna().all(axis=1).to_numpy()
        key = zlib.crc32("\0".join([how, *names]).encode())
        rng = stream(self.seed, key, Purpose.COPY)
        others = self.others(names) if others is None else others
        frame, unit_of_row, cluster = self.frame[live], None, None
        if self.unit_of_row is not None:
            # Clusters that lost all their rows to missing values are not counted.
            unit_of_row = np.unique(self.unit_of_row[live], return_inverse=True)[1]
            grouped = frame[names].groupby(unit_of_row, observed=True)
            if grouped.nunique().to_numpy().max() <= 1:  # constant within clusters
                frame, cluster = _per_cluster(frame, unit_of_row), unit_of_row
                unit_of_row = None
        if how == "permute" or cluster is not None or not live.all():
            rest = list(others.frame.columns) if how == "conditional" else []
            others = OtherPredictors(frame[rest], unit_of_row, self.n_jobs)
        models = [fit_conditional_model(frame[name], others, rng) for name in names]
        table = np.column_stack([model.residual for model in models])
        for _ in range(number):
            copies = {}
            shuffled = shuffle_residuals(table, unit_of_row, rng)
            for name, model, residual in zip(names, models, shuffled.T, strict=True):
                copy = model.copy_with(residual)
                if cluster is not None:
                    copy = copy.iloc[cluster]
                column = self.frame[name].copy()
                column[live] = copy.to_numpy() if is_number(column) else copy.array
                copies[name] = column
            yield self.frame.assign(**copies)


def shuffle_residuals(
    residuals: Floats, unit_of_row: Ints | None, rng: np.random.Generator
) -> Floats:
    """Permute rows of residuals; means of clusters and deviations from them apart."""
    n = len(residuals)
    if unit_of_row is None:
        return np.asarray(residuals[rng.permutation(n)])
    sizes = np.bincount(unit_of_row)
    sums = [np.bincount(unit_of_row, column) for column in residuals.T]
    means = np.column_stack(sums) / sizes[:, None]
    away = residuals - means[unit_of_row]
    other = rng.permutation(len(sizes))
    return np.asarray(means[other][unit_of_row] + away[rng.permutation(n)])


def _per_cluster(frame: pd.DataFrame, unit_of_row: Ints) -> pd.DataFrame:
    """Make one row of each cluster: means of numbers, first levels of categories."""
    grouped = frame.groupby(unit_of_row)
    first = grouped.first()
    means = {
        name: grouped[name].mean()
        for name in frame.columns
        if is_number(frame[name]) and grouped[name].nunique().max() > 1
    }
    return first.assign(**means)


def check_how(how: str) -> None:
    """Check how a predictor is replaced."""
    if how not in get_args(How):
        names = ", ".join(map(repr, get_args(How)))
        raise ValueError(f"`how` must be one of {names}; got {how!r}.")
