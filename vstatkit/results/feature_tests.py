"""Is a predictor real? The fit against the same fit to a copy of the predictor."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats
from vstatkit.ensemble.copies import How, check_how
from vstatkit.ensemble.refitted import on_design, refitted_values
from vstatkit.formula.frames import as_frame
from vstatkit.inference.pooled import pooled_test
from vstatkit.results.answers import FeatureTest
from vstatkit.results.asked import Asked, apart, differences
from vstatkit.sampling.streams import Purpose, stream

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


def feature_test(
    results: "EnsembleResults",
    variables: str | Sequence[str],
    *,
    how: How,
    at: DataLike | None,
    points: int,
    copies: int,
    learners: int | None,
) -> FeatureTest:
    """Test whether predictors matter; see `Asking.feature_test`."""
    check_how(how)
    check_number("copies", copies)
    check_number("points", points)
    asked = Asked.of(results, learners, "feature_test")
    names = asked.names(variables)
    made = list(asked.copier().copies(names, how, copies + 1))
    spare = asked.frame if how == "drop" else made[-1]
    where = _points(asked, spare, points) if at is None else as_frame(at)
    rows = asked.coding.matrix(where)
    used = made[:copies]
    reduced = sum(_refitted(asked, one, rows) for one in used) / len(used)
    labels = asked.labels(where.index)
    values = asked.values(rows) - np.asarray(reduced)
    lead = apart(results, values)
    found = differences(lead, values, labels, "Full against reduced fit")
    named = ", ".join(names)
    return FeatureTest(
        question=named,
        null=_null(results, names, how),
        test=pooled_test(lead.design, values, lead.variance, lead.orders),
        differences=found,
        points=where[list(asked.coding.variables)],
        details={"how": how, "copies": len(used)},
    )


def _null(results: "EnsembleResults", names: list[str], how: How) -> str:
    y, named = results.info.response, ", ".join(names)
    return {
        "conditional": f"Null: {y} does not depend on {named}, given the others",
        "permute": f"Null: neither {y} nor the others depend on {named}",
        "drop": f"Null: the fit predicts the same without {named}",
    }[how]


def _refitted(asked: Asked, copy: pd.DataFrame, rows: Floats) -> Floats:
    task = on_design(asked.task, asked.coding.matrix(copy))
    return refitted_values(task, rows, asked.n_learners, asked.n_jobs)


def _points(asked: Asked, copy: pd.DataFrame, number: int) -> pd.DataFrame:
    """Draw rows, with one more copy of the predictor.

    The copy is neither what the full fit nor what a reduced fit has seen, so that
    under the null no fit is closer to the points.
    """
    rng = stream(asked.results.seed, 0, Purpose.QUESTION)
    n = len(copy)
    rows = np.sort(rng.choice(n, min(number, n), replace=False))
    return copy.iloc[rows]


def check_number(name: str, number: Any) -> None:
    """Refuse anything but whole numbers from one on."""
    if not isinstance(number, int | np.integer) or number < 1:
        raise ValueError(f"`{name}` must be a whole number from 1 on; got {number!r}.")
