"""Texts of labels, effects, settings and numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Labels


def label_texts(labels: Labels) -> list[str]:
    """Write the label of each estimate as text, with classes in brackets."""
    if not isinstance(labels, pd.MultiIndex) or labels.names[-1] != "class":
        return [_join(label) for label in labels]
    return add_classes([_join(label[:-1]) for label in labels], labels)


def add_classes(texts: Sequence[str], labels: Labels) -> list[str]:
    """Add the classes of the response, the last level of the labels, in brackets."""
    classes = labels.get_level_values(-1)
    return [f"{text} [{level}]" for text, level in zip(texts, classes, strict=True)]


def _join(label: Any) -> str:
    """Join the levels of a label by commas."""
    if isinstance(label, tuple):
        return ", ".join(_join(part) for part in label)
    return str(label)


def setting_text(value: Any) -> str:
    """Write a value of a predictor, a number or a level; "" if it is missing."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def effect_names(frame: pd.DataFrame) -> list[str]:
    """Name effects by the predictor, and by the level if it has several moves."""
    predictors = list(frame.index.get_level_values(0))
    moves = pd.Series(frame["to"].to_numpy()).groupby(predictors).nunique()
    names = [
        f"{name}[{to}]" if moves[name] > 1 else str(name)
        for name, to in zip(predictors, frame["to"], strict=True)
    ]
    classes = isinstance(frame.index, pd.MultiIndex)
    return add_classes(names, frame.index) if classes else names


def add_moves(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Add the ends of moves to names."""
    rows = zip(names, frame["from"], frame["to"], strict=True)
    return [f"{name}: {setting_text(a)} → {setting_text(b)}" for name, a, b in rows]


def slope_names(frame: pd.DataFrame, names: list[str]) -> list[str]:
    """Name slopes as coefficients of a regression: by the predictor, or its level."""
    predictors = frame.index.get_level_values(0)
    rows = zip(names, predictors, frame["to"], frame["step"].isna(), strict=True)
    return [
        f"{name}[T.{to}]{text.removeprefix(str(name))}" if contrast else text
        for text, name, to, contrast in rows
    ]


def short_text(value: Any) -> str:
    """Write a value of a predictor in few characters."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def number_text(value: float) -> str:
    """Write a number with four significant digits, without exponent if possible."""
    if value == 0:
        return "0"
    if not np.isfinite(value):
        return str(value)
    if abs(value) >= 1e5 or abs(value) < 1e-3:
        return f"{value:.3e}"
    decimals = max(0, 3 - int(np.floor(np.log10(abs(value)))))
    return f"{value:.{min(decimals, 4)}f}"


def write_table(frame: pd.DataFrame) -> str:
    """Write a table with four digits."""
    return frame.to_string(float_format=lambda number: f"{number:.4g}")
