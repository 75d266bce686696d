"""Warn of data that are probably not as meant: leaks, identifiers, far rows, levels.

Each check returns a `Finding` or None. The rules are independent of units, and are
made so that data without these problems pass: see "Warnings about the data" in the
guide.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.exceptions import (
    ConstantResponseWarning,
    DataWarning,
    ExtrapolationWarning,
    IdentifierWarning,
    LeakageWarning,
    TextNumbersWarning,
    UnobservedLevelWarning,
    warn_caller,
)
from vstatkit.formula.column_checks import FEW, MOSTLY, is_numeric, texts_of
from vstatkit.formula.column_spellings import respell_columns
from vstatkit.formula.data_frames import as_frame
from vstatkit.formula.formula_text import quote
from vstatkit.formula.new_data_coding import Coding
from vstatkit.text import row_name

if TYPE_CHECKING:
    from vstatkit.formula.parse import ParsedFormula

LEAST_ROWS = 20  # fewest rows, and fewest different values, that a check needs
LEAK_ROWS = 2_000  # most rows in which columns are compared with the response
UNEXPLAINED = 5e-4  # share of the variance that a copy leaves unexplained, at most
FAR = 0.25  # distance from the training data, over their range, of far values
MOST_NAMED = 3  # columns that a warning names
CLASSES = 10  # most whole numbers, written as text, that are classes of a response
# Digits from which whole numbers of one length are codes; years have fewer.
CODE_DIGITS = 5
# A number without a unit; with a zero in front it is a code, such as 01234.
_PLAIN = re.compile(r"\s*[+-]?(?!0\d)(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")


class Finding(NamedTuple):
    """What a check found."""

    category: type[DataWarning]  # class of the warning
    message: str  # what was found, and what to do
    note: str  # the same in one sentence, for the notes of a summary


def warn_of(findings: Iterable[Finding | None]) -> tuple[str, ...]:
    """Warn of what was found, at the user's line, and return the notes."""
    known = [finding for finding in findings if finding is not None]
    for finding in known:
        warn_caller(finding.message, finding.category)
    return tuple(finding.note for finding in known)


def find_leaks(parsed: "ParsedFormula") -> Finding | None:
    """Find predictors that are almost copies of the response.

    A predictor is one if it explains all but `UNEXPLAINED` of the response's variance,
    as a number or by ranks, or if its values and those of a response with few values
    belong to each other one to one. A sole predictor is meant.
    """
    n = len(parsed.y)
    if n < LEAST_ROWS or len(parsed.coding.variables) < 2:
        return None
    some = slice(None, None, -(-n // LEAK_ROWS))
    leaks = [*_near_copies(parsed, some), *_one_to_one_variables(parsed)]
    names = list(dict.fromkeys(leaks))
    if not names:
        return None
    listed, more = ", ".join(map(repr, names[:MOST_NAMED])), len(names) - MOST_NAMED
    listed += f" and {more} more" if more > 0 else ""
    are, them, known = (
        ("is almost a copy", "it", "it is")
        if len(names) == 1
        else ("are almost copies", "them", "they are")
    )
    terms = [quote(name) if name in parsed.frame.columns else name for name in names]
    left_out = " ".join(f"- {term}" for term in terms)
    return Finding(
        LeakageWarning,
        f"{listed} {are} of the response {parsed.response!r}: the other predictors "
        f"have nothing left to explain. Leave {them} out of the formula "
        f"(`{left_out}`), unless {known} known before the response is.",
        f"{listed} {are} of the response.",
    )


def _near_copies(parsed: "ParsedFormula", some: slice) -> list[str]:
    """Name numeric columns that explain the response, linearly or by ranks."""
    y = parsed.y[some]
    if parsed.classes is not None or np.unique(y).size < LEAST_ROWS:
        return []
    X = np.asarray(parsed.X[some])
    columns = np.flatnonzero(np.isfinite(X).all(axis=0) & (parsed.levels == 0))
    if not columns.size:
        return []
    X = X[:, columns]
    linear = _squared_correlations(X, y)
    monotone = _squared_correlations(stats.rankdata(X, axis=0), stats.rankdata(y))
    close = np.maximum(linear, monotone) > 1 - UNEXPLAINED
    return [parsed.names[j] for j in columns[close]]


def _squared_correlations(X: Floats, y: Floats) -> Floats:
    """Squared correlations of columns with y; 0 for constant columns."""
    return np.asarray((_unit_columns(y[:, None]).T @ _unit_columns(X))[0] ** 2)


def _unit_columns(X: Floats) -> Floats:
    """Centre columns and scale them to length one; squares must not overflow."""
    largest = np.abs(X).max(axis=0)
    X = X / np.where(largest > 0, largest, 1.0)
    X = X - X.mean(axis=0)
    spread = np.abs(X).max(axis=0)
    constant = spread < 1e-12
    X = np.where(constant, 0.0, X / np.where(constant, 1.0, spread))
    length = np.sqrt((X**2).sum(axis=0))
    return np.asarray(X / np.where(length > 0, length, 1.0))


def _one_to_one_variables(parsed: "ParsedFormula") -> list[str]:
    """Name variables whose values stand for the response's, one to one."""
    y = pd.factorize(parsed.y)[0]
    levels = int(y.max()) + 1
    if levels < 2 or levels > y.size / LEAST_ROWS:
        return []
    coded = ((n, pd.factorize(parsed.frame[n])[0]) for n in parsed.coding.variables)
    return [
        name
        for name, codes in coded
        if codes.max() + 1 == levels
        and codes.min() >= 0
        and np.unique(codes * levels + y).size == levels
    ]


def find_far_rows(
    frame: pd.DataFrame, ranges: Mapping[str, tuple[float, float]]
) -> Finding | None:
    """Find rows far outside the `ranges` of numeric predictors in the training data."""
    any_far, texts = np.zeros(len(frame), dtype=bool), []
    for name, (low, high) in ranges.items():
        values, step = frame[name].to_numpy(dtype=np.float64), FAR * high - FAR * low
        far = (values < low - step) | (values > high + step)
        if far.any():
            any_far |= far
            first = int(np.flatnonzero(far)[0])
            value, row = frame[name].iloc[first], row_name(frame.index[first])
            texts.append(
                f"{name} = {value:.4g} in row {row}, where the training data go from "
                f"{low:.4g} to {high:.4g}"
            )
    if not texts:
        return None
    rows = f"{int(any_far.sum()):,} of {len(frame):,} rows"
    shown, more = "; ".join(texts[:MOST_NAMED]), len(texts) - MOST_NAMED
    shown += f"; and {more} more columns" if more > 0 else ""
    return Finding(
        ExtrapolationWarning,
        f"{rows} to predict lie far outside the training data: {shown}. Predictions "
        "there are extrapolated, and their standard errors do not include the error of "
        "that. Check the units, or leave such rows out.",
        f"{rows} to predict lie far outside the training data ({shown}); the std err "
        "does not include the error of extrapolation.",
    )


def find_unobserved_levels(frame: pd.DataFrame, coding: Coding) -> Finding | None:
    """Find levels that the training data declare and no training row has."""
    trained, passes = coding.recipe.frame, coding.recipe.missing == "pass"
    for name in coding.variables:
        declared = getattr(trained[name].dtype, "categories", None)
        if declared is None:
            continue
        known = (trained if passes else trained.dropna())[name]
        given = pd.Series(frame[name]).dropna()
        unseen = given[given.isin(declared) & ~given.isin(known.unique())]
        if len(unseen):
            return unobserved_finding(name, unseen, len(frame))
    return None


def unobserved_finding(name: str, unseen: pd.Series, n_rows: int) -> Finding:
    """Report values of a predictor, labelled by rows, that no training row has."""
    text = f"{name} = {str(unseen.iloc[0])!r} in row {row_name(unseen.index[0])}"
    return Finding(
        UnobservedLevelWarning,
        f"{len(unseen):,} of {n_rows:,} rows to predict have a level that no training "
        f"row has: {text}. The learners know nothing about it. Leave such rows out, or "
        "give them a level that was observed.",
        f"Rows to predict have a level that no training row has: {text}.",
    )


def warn_of_new_rows(
    data: Any, coding: Coding, ranges: Mapping[str, tuple[float, float]]
) -> tuple[str, ...]:
    """Warn of coded rows about which the training data say nothing; return notes."""
    frame = respell_columns(as_frame(data), coding.variables)
    findings = find_far_rows(frame, ranges), find_unobserved_levels(frame, coding)
    return warn_of(findings)


def warn_if_constant(parsed: "ParsedFormula") -> None:
    """Warn when there is nothing to explain."""
    if np.all(parsed.y == parsed.y[0]):
        warn_caller(
            f"the response {parsed.response!r} is constant, so every estimate is exact "
            "and every standard error zero.",
            ConstantResponseWarning,
        )


def warn_of_texts(
    frame: pd.DataFrame, left: Sequence[str], right: Sequence[str], n_rows: int
) -> None:
    """Warn of text that looks like numbers, and of categories that are identifiers."""
    for name in [*left, *right]:
        values = texts_of(frame[name])
        numbers = [value for value in values if _PLAIN.fullmatch(value) is not None]
        column, used = f"data[{name!r}]", "classes" if name in left else "categories"
        mostly = len(numbers) > 2 and len(numbers) >= MOSTLY * len(values)
        # A response may have few whole numbers: text makes classes of them.
        few = len(values) <= CLASSES and all(value.isdecimal() for value in values)
        if mostly and not (name in left and few) and not _are_codes(numbers):
            how = ", errors='coerce'" if len(numbers) < len(values) else ""
            warn_caller(
                f"column {name!r} is text that looks like numbers, such as "
                f"{numbers[0]!r}: its {len(values)} different values are {used} "
                f"without an order. Convert it: {column} = pd.to_numeric({column}"
                f"{how}); or write C({quote(name)}) if they are {used}.",
                TextNumbersWarning,
            )
            continue
        count = 0 if is_numeric(frame[name]) else frame[name].nunique()
        if name in right and count > FEW and 2 * count > n_rows:
            warn_caller(
                f"column {name!r} has {count:,} different values in {n_rows:,} rows, "
                f"such as {str(frame[name].dropna().iloc[0])!r}: it identifies rows, "
                "and says nothing about new ones. Leave it out of the formula (`- "
                f"{quote(name)}`), or make groups of its values.",
                IdentifierWarning,
            )


def _are_codes(numbers: list[str]) -> bool:
    """Whether texts are codes of as many digits each, such as postcodes."""
    lengths = {len(number) for number in numbers}
    digits = all(number.isdecimal() for number in numbers)
    return digits and len(lengths) == 1 and lengths.pop() >= CODE_DIGITS
