"""Linear combinations of estimates, and tests of them."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Restrictions
from vstatkit.ensemble.memory import COVARIANCES, check_memory, covariance_bytes
from vstatkit.formula.linear_constraints import (
    check_together,
    linear_constraint,
    one_text,
)
from vstatkit.inference.estimates import ensemble_mean
from vstatkit.inference.linear_tests import (
    Directions,
    WaldTest,
    check_replicates,
    directions,
    joint_df,
    scaled_covariance,
    wald_test,
)
from vstatkit.results.tables import label_texts

if TYPE_CHECKING:
    from vstatkit.results.contrast_results import ContrastResults
    from vstatkit.results.ensemble_results import EnsembleResults


def contrasts(results: "EnsembleResults", R: Restrictions) -> "ContrastResults":
    """Combine estimates: a linear combination of kernels is a kernel.

    Restrictions in words may name effects too.
    """
    return _combine(*_read(results, one_text(R)))


def _read(
    results: "EnsembleResults", R: Restrictions
) -> tuple["EnsembleResults", Floats, Floats, list[str]]:
    """Read restrictions: results with what they name, coefficients, values, names."""
    if isinstance(R, str):
        _check_names_apart(results, R)
        results = with_effects(results)
    typical = results.info.typical
    predictors = [] if typical is None else [str(name) for name in typical.columns]
    texts = label_texts(results.labels)
    return results, *linear_constraint(R, texts, predictors)


def _combine(
    results: "EnsembleResults", coefs: Floats, constants: Floats, names: list[str]
) -> "ContrastResults":
    """Make the results of linear combinations, shape (r, m), of the estimates."""
    from vstatkit.results.contrast_results import as_contrast  # noqa: PLC0415 results

    info = results.info.derived("Linear combinations of estimates")
    support = None if results.support is None else results.support.combined(coefs)
    tails = None if results.tails is None else results.tails.combined(coefs)
    points = None if results.points is None else results.points.combined(coefs)
    made = replace(
        results,
        points=points,
        values=_combined(results.values, coefs),
        limit=_combined_limit(results, coefs),
        support=support,
        tails=tails,
        labels=pd.Index(names),
        null=constants,
        info=info,
        effect_values=None,
        predictor=None,
        scores=None,
        errors=None,
        recipe=None,
    )
    return as_contrast(made)


def with_effects(results: "EnsembleResults") -> "EnsembleResults":
    """Put the effects beside the estimates, each by its name.

    Where an effect has the name of an estimate, it is left out.
    """
    moves = results.effect_values
    if moves is None:
        return results
    texts, names = label_texts(results.labels), effect_names(moves.frame)
    new = [place for place, name in enumerate(names) if name not in texts]
    m, e = len(texts), len(new)
    limit, support = results.limit, results.support
    if limit is not None:
        own = np.broadcast_to(np.asarray(limit, dtype=np.float64), m)
        limit = np.concatenate([own, np.full(e, 2 * own.max())])
    if support is not None:
        support = support.beside(support.of_differences, m, e)
    tails = None if results.tails is None else results.tails.beside(m, e)
    return replace(
        results,
        values=np.concatenate([results.values, moves.values[:, new]], axis=1),
        labels=pd.Index([*texts, *(names[place] for place in new)]),
        limit=limit,
        support=support,
        tails=tails,
        effect_values=None,
    )


def _check_names_apart(results: "EnsembleResults", R: str) -> None:
    """Refuse words that name both an estimate and an effect."""
    moves = results.effect_values
    if moves is None:
        return
    texts = set(label_texts(results.labels))
    for name in effect_names(moves.frame):
        if name in texts and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", R):
            raise ValueError(
                f"{name!r} is the name of an effect and of an estimate. Rename the "
                "predictor, or label the rows of `at` otherwise; a matrix with a "
                "column for each estimate needs no names."
            )


def effect_names(frame: pd.DataFrame) -> list[str]:
    """Name effects: by the predictor, and by the level where it has several moves."""
    several = isinstance(frame.index, pd.MultiIndex)
    predictors = [label[0] if several else label for label in frame.index]
    moves = pd.Series(frame["to"].to_numpy()).groupby(predictors).nunique()
    names = [
        f"{name}[{to}]" if moves[name] > 1 else str(name)
        for name, to in zip(predictors, frame["to"], strict=True)
    ]
    if not several:
        return names
    rest = [label[1:] for label in frame.index]
    tuples = [(name, *one) for name, one in zip(names, rest, strict=True)]
    return label_texts(pd.MultiIndex.from_tuples(tuples, names=frame.index.names))


def _combined(values: Floats, coefs: Floats) -> Floats:
    """Values of linear combinations, taken about the first learner's."""
    first = values[0]
    return np.asarray((values - first) @ coefs.T + first @ coefs.T)


def _combined_limit(results: "EnsembleResults", coefs: Floats) -> Floats | None:
    if results.limit is None:
        return None
    limit = np.asarray(results.limit, dtype=np.float64)
    combined: Floats = np.abs(coefs) @ np.broadcast_to(limit, len(results.labels))
    return combined


def joint_test(results: "EnsembleResults", R: Restrictions) -> WaldTest:
    r"""Test restrictions jointly, by Wald's F.

    Notes
    -----
    The test depends on the space of the restrictions only, not on how they are
    written. The learners give every restriction a value; in the metric of the
    covariance of these values over learners we take the eigenvectors of the
    restrictions' estimated covariance. An invertible transformation of the
    restrictions gives the same directions. In each of them the variance is estimated,
    made positive and given degrees of freedom as that of any single combination
    (`inference.estimates.stabilise`). The directions are uncorrelated, so that

    .. math:: F = \frac{\nu}{\nu + r - 1} \cdot \frac{1}{r} \sum_j t_j^2 ,

    with the degrees of freedom :math:`\nu` of `inference.linear_tests.joint_df`. If the
    covariance has no negative eigenvalue and no noise, the sum is
    :math:`d' C^{-1} d` with the differences d and their covariance C. The first factor
    accounts for the estimation of C (see `inference.linear_tests.wald_test`). With one
    restriction F is the square of t.
    """
    R = one_text(R)
    null = str(R) if isinstance(R, str) else "R @ params = 0"
    results, coefs, constants, _ = _read(results, R)
    check_together(coefs, constants)
    values = _combined(results.values, coefs)
    found = directions(values, results.design.weights(0, len(values)))
    rank = len(found.varying)
    asked = _independent(coefs)
    if asked > rank >= len(values) - 1:
        raise ValueError(
            f"a joint test of {asked} restrictions needs more than {asked} base "
            f"learners; there are {len(values)}. Test fewer at once, or increase B."
        )
    difference = ensemble_mean(results.design, values) - constants
    fixed = found.fixed_differences(difference)
    if rank == 0:
        df = float(_turned(results, coefs, constants, found.fixed).estimates.df.min())
        return wald_test(fixed, np.zeros((len(fixed), len(fixed))), df, null)
    made = _turned(results, coefs, constants, _uncorrelated(results, coefs, found))
    own = made.estimates
    live = own.bse > 0
    z = (own.estimate - own.null) / np.where(live, own.bse, 1.0)
    z, ones = np.concatenate([z, fixed]), np.concatenate([live, np.zeros(len(fixed))])
    replicates = own.scaled.df is not None
    df = joint_df(own.df)
    test = wald_test(z, np.diag(ones), df, null, replicates=replicates)
    df_num = min(test.df_num, asked) if np.isnan(test.statistic) else test.df_num
    return replace(test, df_num=df_num, n_restrictions=len(coefs))


def _turned(
    results: "EnsembleResults", coefs: Floats, constants: Floats, turn: Floats
) -> "ContrastResults":
    """Combine restrictions, by coefficients of shape (q, r)."""
    names = [f"direction {j}" for j in range(len(turn))]
    return _combine(results, turn @ coefs, turn @ constants, names)


def _uncorrelated(
    results: "EnsembleResults", coefs: Floats, found: Directions
) -> Floats:
    """Find the directions, (rank, r), in which estimates are uncorrelated."""
    made = _turned(results, coefs, np.zeros(len(coefs)), found.varying)
    rank = len(found.varying)
    check_memory({COVARIANCES: covariance_bytes(rank)})
    own = made.estimates
    if own.scaled.df is not None:
        check_replicates(rank, own.scaled.df)
    matrix = scaled_covariance(made.design, made.values, own, made.points)
    vectors = np.linalg.eigh(matrix * np.outer(own.unit, own.unit))[1]
    return np.asarray(vectors.T @ found.varying)


def _independent(coefs: Floats) -> int:
    """Count the restrictions that do not follow from others."""
    size = np.abs(coefs).max(axis=1, keepdims=True)
    return int(np.linalg.matrix_rank(coefs / np.where(size > 0, size, 1.0)))
