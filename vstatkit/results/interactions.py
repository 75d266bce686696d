"""Do predictors act additively? Contrasts of predictions on a grid."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vstatkit._typing import Floats
from vstatkit.inference.pooled_test import pooled_test
from vstatkit.results.answers import InteractionTest
from vstatkit.results.asked import Asked, check_number, differences
from vstatkit.sampling.streams import Purpose, stream

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


def interaction_test(
    results: "EnsembleResults",
    first: str,
    second: str,
    *,
    grid: int,
    rows: int,
    learners: int | None,
) -> InteractionTest:
    """Test one pair of predictors; see `Asking.interaction_test`."""
    asked = Asked.of(results, learners, "interaction_test")
    if first == second:
        raise ValueError(f"an interaction is of two predictors; got {first!r} twice.")
    asked.names([first, second])
    null = f"Null: {first} and {second} are additive in the expectation of the ensemble"
    texts = f"{first}:{second}", null
    return _tested(asked, [(first, second)], texts, grid=grid, rows=rows)


def additivity_test(
    results: "EnsembleResults",
    variables: Sequence[str] | None,
    *,
    grid: int,
    rows: int,
    learners: int | None,
) -> InteractionTest:
    """Test all pairs of predictors at once; see `Asking.additivity_test`."""
    asked = Asked.of(results, learners, "additivity_test")
    names = asked.names(asked.coding.variables if variables is None else variables)
    if len(names) < 2:
        raise ValueError("additivity is of two or more predictors; there is one.")
    null = f"Null: {', '.join(names)} are additive in the expectation of the ensemble"
    pairs = list(combinations(names, 2))
    return _tested(asked, pairs, ("all pairs", null), grid=grid, rows=rows)


def _tested(
    asked: Asked,
    pairs: list[tuple[str, str]],
    texts: tuple[str, str],
    *,
    grid: int,
    rows: int,
) -> InteractionTest:
    check_number("rows", rows)
    if not isinstance(grid, int | np.integer) or grid < 2:
        raise ValueError(f"`grid` must be a whole number from 2 on; got {grid!r}.")
    background = _background(asked, rows)
    found = [_contrasts(asked, pair, background, grid) for pair in pairs]
    values = np.concatenate([one for one, _ in found], axis=1)
    points = pd.concat([where for _, where in found], ignore_index=True)
    results = asked.results
    labels = asked.labels(pd.Index(_written(points)))
    return InteractionTest(
        question=texts[0],
        null=texts[1],
        test=pooled_test(results.design, values, results.variance, results.orders),
        differences=differences(results, values, labels, "Interaction contrasts"),
        points=points,
        details={"grid": grid, "rows": len(background)},
    )


def _background(asked: Asked, rows: int) -> pd.DataFrame:
    """Draw the rows that contrasts are averaged over."""
    rng = stream(asked.results.seed, 3, Purpose.QUESTION)
    n = len(asked.frame)
    return asked.frame.iloc[np.sort(rng.choice(n, min(rows, n), replace=False))]


def _contrasts(
    asked: Asked, pair: tuple[str, str], background: pd.DataFrame, grid: int
) -> tuple[Floats, pd.DataFrame]:
    """Give the contrasts of a pair, learner by learner, and where they were taken.

    On the values `u_0, u_1, ...` of one predictor and `v_0, v_1, ...` of the other
    these are `f(u_i, v_j) - f(u_i, v_0) - f(u_0, v_j) + f(u_0, v_0)`.
    """
    u, v = (_settings(asked, name, grid) for name in pair)
    means = np.stack([_means(asked, pair, one, v, background) for one in u], axis=1)
    away = means - means[:, :1]
    away = away - away[:, :, :1]
    inner = away[:, 1:, 1:]
    where = pd.DataFrame(
        [
            {"first": pair[0], "second": pair[1], "from_first": u[0], "to_first": i}
            | {"from_second": v[0], "to_second": j}
            for i in u[1:]
            for j in v[1:]
        ]
    )
    return inner.reshape(len(inner), -1), where


def _means(
    asked: Asked,
    pair: tuple[str, str],
    one: Any,
    others: list[Any],
    background: pd.DataFrame,
) -> Floats:
    """Average predictions over the background, shape (L, values of the second, c)."""
    frames = [
        background.assign(
            **{
                name: pd.Series([value] * len(background), background.index).astype(
                    background[name].dtype
                )
                for name, value in zip(pair, (one, other), strict=True)
            }
        )
        for other in others
    ]
    rows = asked.coding.matrix(pd.concat(frames, ignore_index=True))
    values = asked.values(rows)
    shaped = values.reshape(len(values), len(others), len(background), -1)
    return np.asarray(shaped.mean(axis=2))


def _settings(asked: Asked, name: str, grid: int) -> list[Any]:
    """Choose values: quantiles of a number, the most frequent levels of a category."""
    column = asked.frame[name].dropna()
    if name in asked.coding.categorical:
        chosen = list(column.value_counts().index[:grid])
    else:
        chosen = list(grid_values(column.to_numpy(), grid))
    if len(chosen) < 2:
        raise ValueError(f"{name!r} has one value only, so that nothing can interact.")
    return chosen


def grid_values(column: NDArray[Any], number: int) -> NDArray[Any]:
    """Choose values of a column: all, if they are few, or quantiles.

    Where quantiles coincide, because many rows have the same value, quantiles of the
    other rows are added.

    Examples
    --------
    >>> grid_values(np.array([0, 0, 0, 0, 0, 0, 0, 1]), 3).tolist()
    [0, 1]
    >>> grid_values(np.array([0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]), 3).tolist()
    [0, 2, 3]
    """
    values = np.unique(column)
    if len(values) <= number:
        return values
    chosen = values[:0]
    while len(chosen) < number:
        rest = np.sort(column[~np.isin(column, chosen)])
        missing = number - len(chosen)
        shares = (np.arange(missing) + 0.5) / missing
        nearest = np.round(shares * (len(rest) - 1)).astype(int)
        chosen = np.union1d(chosen, rest[nearest])
    return chosen


def _written(points: pd.DataFrame) -> list[str]:
    """Name contrasts by the values they go to."""
    columns = points[["first", "to_first", "second", "to_second"]]
    return [f"{a}={_short(u)}, {b}={_short(v)}" for a, u, b, v in columns.to_numpy()]


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
