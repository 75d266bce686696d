"""Linear combinations of estimates, and tests of them."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Restrictions
from vstatkit.formula.constraints import check_together, linear_constraint, one_text
from vstatkit.inference.wald import WaldTest, wald_test
from vstatkit.results.tables import label_texts

if TYPE_CHECKING:
    from vstatkit.results.contrast_results import ContrastResults
    from vstatkit.results.ensemble_results import EnsembleResults


def contrasts(
    results: "EnsembleResults", R: Restrictions, *, together: bool = False
) -> "ContrastResults":
    """Combine estimates: a linear combination of kernels is a kernel.

    Restrictions in words may name effects too. Those that are tested `together` must
    not contradict each other.
    """
    from vstatkit.results.contrast_results import as_contrast  # noqa: PLC0415 results

    R = one_text(R)
    if isinstance(R, str):
        _check_names_apart(results, R)
        results = with_effects(results)
    typical = results.info.typical
    coefs, constants, names = linear_constraint(
        R,
        label_texts(results.labels),
        [] if typical is None else [str(name) for name in typical.columns],
    )
    if together:
        check_together(coefs, constants)
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
    """Test restrictions jointly, by Wald's F."""
    R = one_text(R)
    contrast = contrasts(results, R, together=True)
    null = R if isinstance(R, str) else "R @ params = 0"
    found = contrast.estimates
    # In standard errors: squares of the estimates may leave floating point.
    scale = np.where(found.bse > 0, found.bse, 1.0)
    z = (found.estimate - found.null) / scale
    df = float(found.df.min())
    replicates = found.scaled.df is not None
    matrix = contrast.covariances.correlation
    return wald_test(z, matrix, df, str(null), replicates=replicates)
