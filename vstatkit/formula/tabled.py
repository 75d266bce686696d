"""A table of features, read as the formula in which each column stands by itself."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.exceptions import FormulaError
from vstatkit.formula.expressions import plain_name, quote
from vstatkit.formula.parse import parse
from vstatkit.formula.parsed import ParsedFormula


def parsed_table(
    features: pd.DataFrame,
    y: Floats,
    *,
    response: str,
    classes: Sequence[Any] | None = None,
) -> ParsedFormula:
    """Read features and a response as `response ~ .` does, columns in their order.

    Parameters
    ----------
    features : DataFrame of shape (n, p)
        Numbers, and categories that stay in one column of codes; missing values stay.
    y : ndarray of shape (n,)
        Response, or class codes.
    response : str
        Its name; changed where a feature has it.
    classes : sequence, optional
        Labels of the classes.

    Examples
    --------
    >>> table = pd.DataFrame({"my x": [1.0, 2.0, 4.0]})
    >>> parsed_table(table, np.arange(3.0), response="y").typical["my x"].item()
    2.0
    """
    name = response
    while name in features.columns:
        name += "_"
    parsed = parse(
        f"{quote(name)} ~ .",
        features.assign(**{name: np.asarray(y, dtype=np.float64)}),
        environment=None,
        intercept=False,
        missing="pass",
        factors="whole",
    )
    places = {one: j for j, one in enumerate(map(plain_name, parsed.names))}
    wanted = [places.get(one) for one in features.columns]
    if None in wanted or len(wanted) != len(places):
        raise FormulaError(
            "a factor of one level, or of more than 64, has no column of codes. Leave "
            "it out, or join rare levels."
        )
    order = np.array(wanted, dtype=np.int64)
    columns = parsed.coding.columns[order]
    recipe = replace(parsed.coding.recipe, columns=tuple(columns.tolist()))
    coding = replace(parsed.coding, columns=columns, recipe=recipe)
    return replace(
        parsed,
        X=parsed.X[:, order],
        names=tuple(parsed.names[j] for j in order),
        levels=parsed.levels[order],
        coding=coding,
        classes=None if classes is None else tuple(classes),
        response=name,
    )
