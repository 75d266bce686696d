"""From a formula and data that come in batches to a parsed formula on disk."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from vstatkit._typing import Ints
from vstatkit.exceptions import FormulaError
from vstatkit.formula.batches import Sides, learn_sides
from vstatkit.formula.coding import Coding, categories
from vstatkit.formula.engine import Environment, Learnt, states_of
from vstatkit.formula.expressions import plain_name
from vstatkit.formula.factors import (
    FactorCoding,
    arranged_columns,
    factors_alone,
    first_rows,
    level_counts,
    recode,
    recoded,
    spread_columns,
)
from vstatkit.formula.frames import check_dates
from vstatkit.formula.limits import MAX_COLUMNS, MAX_LEVELS
from vstatkit.formula.matrices import Missing, check_missing_option
from vstatkit.formula.mistakes import check_mistakes
from vstatkit.formula.model import variables
from vstatkit.formula.parse import Recipe, check_rows, kept_columns
from vstatkit.formula.parsed import ParsedFormula
from vstatkit.formula.reading import (
    Named,
    Reading,
    outside_columns,
    read_names,
    reading_of,
)
from vstatkit.formula.stored import StoredFrame
from vstatkit.formula.survey import Survey, survey
from vstatkit.formula.writing import Plan, Written, write_rows
from vstatkit.sources.source import Source
from vstatkit.sources.store import check_space


@dataclass(frozen=True)
class Streamed:
    """A formula applied to data that were read batch after batch.

    Attributes
    ----------
    parsed : ParsedFormula
        Its matrix, response and variables are mapped from files, which are removed
        when nobody uses them any more.
    beside : StoredFrame
        Columns beside the formula, the same rows.
    n_rows : int
        Rows of the data, those included that were dropped.
    """

    parsed: ParsedFormula
    beside: StoredFrame
    n_rows: int


def parse_source(
    formula: str,
    source: Source,
    *,
    environment: Environment | None,
    intercept: bool,
    missing: Missing = "drop",
    beside: tuple[str, ...] = (),
    factors: FactorCoding = "treatment",
    n_jobs: int | None = None,
) -> Streamed:
    """Apply a formula to data that are read batch after batch.

    Parameters
    ----------
    formula, environment, intercept, missing, factors
        See `parse`.
    source : Source
        Data. Columns that neither the formula nor `beside` names are not read.
    beside : tuple of str
        Columns to keep beside the formula; `.` does not stand for them.
    n_jobs : int or None
        Workers that read parts of the data side by side; see `in_parallel`.

    Returns
    -------
    Streamed

    Notes
    -----
    A first pass finds the kinds of the columns, the levels of those that are not
    numbers, and what must be refused. Where the formula has more than plain columns,
    further passes find the levels of its factors and what stateful transforms learn,
    one batch after the other. The last pass codes the rows, and writes them to disk.
    """
    check_missing_option(missing)
    columns = pd.Index(source.columns, dtype=object)
    named = read_names(formula, columns, environment, beside)
    model = named.model(columns)
    used = variables(model.terms, columns)
    read = list(dict.fromkeys([*used, *beside]))
    needed = variables(model.left, columns) if missing == "pass" else used
    bare = set(model.columns.values())
    seen = survey(source, read, used, bare, needed=needed, n_jobs=n_jobs)
    _check_outside(named, columns, seen.n_rows)
    reading = reading_of(named, seen.frame.reindex(columns=columns))
    plan = _plan(
        formula,
        reading,
        seen,
        intercept=intercept,
        missing=missing,
        factors=factors,
    )
    if not named.trusted:
        _check_stranger(plan.info)
    check_space(8 * seen.n_rows * (plan.kept.size + len(plan.used) + 2))
    written = write_rows(plan, beside, n_jobs)
    check_rows(written.rows.size, seen.n_rows, used)
    recipe = _recipe(reading, plan, written, intercept, factors)
    parsed = _parsed(formula, plan, written, recipe)
    return Streamed(parsed, written.beside, seen.n_rows)


def _check_outside(named: Named, columns: pd.Index, n_rows: int) -> None:
    """Refuse arrays of the caller's in place of columns: they come in no batches."""
    for name in outside_columns(named, columns, n_rows):
        raise FormulaError(
            f"{name!r} is not a column of the data. Arrays beside data that are read "
            "batch after batch are not taken: make it a column."
        )


def _check_stranger(right: Learnt) -> None:
    """Bound the columns of a formula from a stranger, now that all levels are known."""
    most = max((len(one) for one in right.levels.values() if one), default=0)
    total = len(right.column_names)
    if most > MAX_LEVELS or total > MAX_COLUMNS:
        raise FormulaError(
            f"the formula makes {total:,} columns, with up to {most:,} levels of a "
            f"category; a formula given as text may make {MAX_COLUMNS:,} columns, of "
            f"categories with {MAX_LEVELS:,} levels."
        )


def _plan(
    formula: str,
    reading: Reading,
    seen: Survey,
    *,
    intercept: bool,
    missing: Missing,
    factors: FactorCoding,
) -> Plan:
    model, frame = reading.model, seen.frame
    right = variables(model.right, frame.columns)
    used = list(dict.fromkeys([*right, *variables(model.left, frame.columns)]))
    bare = set(model.columns.values())
    check_dates(frame, [name for name in used if name in bare])
    check_mistakes(model, frame, missing, seen.n_missing, seen.n_rows)
    sides = learn_sides(
        factors_alone(model, factors),
        seen.plain(frame),
        lambda: map(seen.plain, seen.batches()),
        environment=reading.environment,
        missing=missing,
        variables=right,
    )
    info = recoded(sides.right, model, frame, factors)
    written = info.column_names
    kept = kept_columns(written, intercept, formula)
    kept = arranged_columns(info, kept, _first_rows(info, sides, seen))
    names = tuple(plain_name(written[j]) for j in kept)
    return Plan(seen, sides, used, kept, names, info)


def _first_rows(info: Learnt, sides: Sides, seen: Survey) -> Ints:
    """Find the row in which each column is first not zero, as `first_rows` does.

    Reading ends as soon as every indicator was seen, which is rarely late.
    """
    spread = spread_columns(info)
    first = np.full(len(info.column_names), -1)
    if not spread.size:
        return first
    n_before = 0
    for batch in seen.batches():
        right = recode(sides.coded(seen.plain(batch))[1], info)
        found = first_rows(info, right.values)
        new = (first < 0) & (found >= 0)
        first[new] = n_before + found[new]
        n_before += len(right.values)
        if (first[spread] >= 0).all():
            break
    return first


def _recipe(
    reading: Reading,
    plan: Plan,
    written: Written,
    intercept: bool,
    factors: FactorCoding,
) -> Recipe:
    examples = plan.seen.plain(written.examples[plan.used])
    return Recipe(
        reading.model.written(),
        examples.reset_index(drop=True),
        intercept,
        plan.sides.missing,
        reading.names(),
        factors,
        states_of(plan.sides.right),
        tuple(plan.kept.tolist()),
    )


def _parsed(
    formula: str, plan: Plan, written: Written, recipe: Recipe
) -> ParsedFormula:
    names, frame = tuple(plan.sides.variables), plan.seen.frame
    info = plan.info
    return ParsedFormula(
        y=written.response.y,
        X=written.X,
        names=plan.names,
        response=plain_name(formula.partition("~")[0].strip()),
        classes=written.response.classes,
        unused_levels=written.response.unused_levels,
        rows=written.rows,
        n_dropped=plan.seen.n_rows - written.rows.size,
        frame=written.data.only(names),
        data=written.data,
        coding=Coding(
            info=info,
            columns=plan.kept,
            variables=names,
            categorical=categories(info, frame, names),
            recipe=recipe,
        ),
        levels=level_counts(info)[plan.kept],
    )
