"""From a formula and data in batches to a parsed formula."""

from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Ints
from vstatkit.exceptions import FormulaError
from vstatkit.formula import design_matrix, factor_coding, parse
from vstatkit.formula.column_checks import check_dates, check_mistakes
from vstatkit.formula.data_warnings import warn_of_texts
from vstatkit.formula.design_matrix import Missing
from vstatkit.formula.factor_coding import FactorCoding
from vstatkit.formula.formula_text import plain_name
from vstatkit.formula.formula_to_terms import (
    ResolvedFormula,
    outside_columns,
    read_names,
    resolve_formula,
)
from vstatkit.formula.parse import ParsedFormula
from vstatkit.formula.patsy_engine import Environment, SideInfo, states_of
from vstatkit.formula.streaming.encode import Plan, Sides, learn_sides, write_rows
from vstatkit.formula.streaming.scan import Survey, survey
from vstatkit.formula.streaming.stored_frame import StoredFrame
from vstatkit.formula.terms import variables
from vstatkit.formula.untrusted_formulas import MAX_COLUMNS, MAX_LEVELS
from vstatkit.sources.disk_arrays import check_space
from vstatkit.sources.source import Source


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
) -> tuple[ParsedFormula, StoredFrame]:
    """Apply a formula to data that are read in batches; see `parse`.

    Only the columns of the formula and `beside` are read; `.` does not include the
    latter, which are returned, too. `n_jobs` workers read parts of the data in
    parallel; see `in_parallel`. The matrix, response and variables are mapped from
    files, which are removed with the last reference to them.

    Notes
    -----
    The first pass finds the dtypes of the columns and the levels of columns that are
    not numeric, and checks the values. If the formula has other factors than plain
    columns, further passes find their levels and the states of stateful transforms.
    The last pass codes the rows and writes them to disk.
    """
    design_matrix.check_missing_option(missing)
    columns = pd.Index(source.columns, dtype=object)
    named = read_names(formula, columns, environment, beside)
    model = named.model(columns)
    used = variables(model.terms, columns)
    read = list(dict.fromkeys([*used, *beside]))
    needed = variables(model.left, columns) if missing == "pass" else used
    bare = set(model.columns.values())
    seen = survey(source, read, used, bare, needed=needed, n_jobs=n_jobs)
    for name in outside_columns(named, columns, seen.n_rows):
        raise FormulaError(
            f"{name!r} is not a column of the data. Arrays cannot be used with data "
            "that are read in batches; make it a column of the data."
        )
    reading = resolve_formula(named, seen.frame.reindex(columns=columns))
    options: Any = {"intercept": intercept, "missing": missing, "factors": factors}
    plan = _make_plan(formula, reading, seen, **options)
    if not named.trusted:
        _check_untrusted(plan.info)
    check_space(8 * seen.n_rows * (plan.columns.size + len(plan.used) + 2))
    stored = write_rows(plan, n_jobs)
    parse.check_rows(stored.rows.size, seen.n_rows, used)
    examples = seen.replace_missing_dates(stored.examples[plan.used])
    parsed = parse.assemble_parsed(
        formula,
        reading,
        stored.response,
        info=plan.info,
        columns=plan.columns,
        examples=examples.reset_index(drop=True),
        X=stored.X,
        rows=stored.rows,
        n_rows=seen.n_rows,
        data=stored.data[plan.used],
        states=states_of(plan.sides.right),
        **options,
    )
    return parsed, stored.data[list(beside)]


def _check_untrusted(right: SideInfo) -> None:
    """Bound the columns of an untrusted formula, now that all levels are known."""
    most = max((len(levels) for levels in right.levels.values() if levels), default=0)
    total = len(right.column_names)
    if most > MAX_LEVELS or total > MAX_COLUMNS:
        raise FormulaError(
            f"the formula makes {total:,} columns, with up to {most:,} levels of a "
            f"category; a formula given as text may make {MAX_COLUMNS:,} columns, of "
            f"categories with {MAX_LEVELS:,} levels."
        )


def _make_plan(
    formula: str,
    reading: ResolvedFormula,
    seen: Survey,
    *,
    intercept: bool,
    missing: Missing,
    factors: FactorCoding,
) -> Plan:
    model, frame = reading.model, seen.frame
    check_dates(model, frame)
    named = check_mistakes(model, frame, missing, seen.n_missing, seen.n_rows)
    warn_of_texts(frame, *named, seen.n_rows)
    sides = learn_sides(
        factor_coding.separate_factors(model, factors),
        seen.replace_missing_dates(frame),
        lambda: map(seen.replace_missing_dates, seen.batches()),
        environment=reading.environment,
        missing=missing,
        variables=variables(model.right, frame.columns),
    )
    info = factor_coding.recode_info(sides.right, model, frame, factors)
    first = _first_rows(info, sides, seen)
    columns = parse.choose_columns(info, first, intercept, formula)
    names = tuple(plain_name(info.column_names[j]) for j in columns)
    used = variables(model.right + model.left, frame.columns)
    return Plan(seen, sides, used, columns, names, info)


def _first_rows(info: SideInfo, sides: Sides, seen: Survey) -> Ints:
    """Find the first row in which each column is not zero, as `first_rows` does."""
    indicators = factor_coding.indicator_columns(info)
    first = np.full(len(info.column_names), -1)
    if not indicators.size:
        return first
    n_before = 0
    for batch in seen.batches():
        right = factor_coding.recode_matrix(
            sides.code(seen.replace_missing_dates(batch))[1], info
        )
        rows = factor_coding.first_rows(info, right.values)
        new = (first < 0) & (rows >= 0)
        first[new] = n_before + rows[new]
        n_before += len(right.values)
        if (first[indicators] >= 0).all():
            break  # every indicator has occurred
    return first
