"""The formula engine: the only importer of patsy."""

import ast
import builtins
import inspect
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union

import joblib
import numpy as np
import pandas as pd
import patsy
from patsy.build import design_matrix_builders
from patsy.categorical import categorical_to_int
from patsy.eval import VarLookupDict
from patsy.parse_formula import parse_formula

from vstatkit._typing import Floats, Ints
from vstatkit.exceptions import FormulaError
from vstatkit.formula.column_checks import is_number
from vstatkit.formula.names_in_code import find_uses, parse_code
from vstatkit.formula.terms import Codes, Model

if TYPE_CHECKING:
    from vstatkit.formula.factor_coding import RecodedInfo
    from vstatkit.formula.plain_columns import PlainInfo

REMEDY = "Put what it computes into a column of the data, and fit again."


def pack_names(names: Mapping[str, Any]) -> dict[str, bytes]:
    """Pickle every name by itself; functions of the session with their code."""
    packed = {}
    for name, value in names.items():
        # joblib pickles functions that cannot be imported, and modules.
        if not inspect.isclass(value):
            value = joblib.wrap_non_picklable_objects(value, keep_wrapper=False)  # noqa: PLW2901
        try:
            packed[name] = pickle.dumps(value)
        except Exception as error:
            raise FormulaError(
                f"the formula uses {name!r}, which cannot be pickled ({error}). "
                f"{REMEDY}"
            ) from error
    return packed


def unpack_names(packed: Mapping[str, bytes]) -> dict[str, Any]:
    """Read what `pack_names` wrote; refuse what is not available here."""
    names = {}
    for name, value in packed.items():
        try:
            names[name] = pickle.loads(value)
        except Exception as error:
            raise FormulaError(
                f"the formula uses {name!r}, which is not available here ({error}). "
                f"Make it importable, or where it is: {REMEDY}"
            ) from error
    return names


# Names that code in a formula may use besides columns.
Environment: TypeAlias = patsy.EvalEnvironment
# What is done with rows that have missing values.
OnMissing = Literal["drop", "raise", "keep"]
MAX_MESSAGE = 600  # characters of somebody else's message that are passed on


# What was learnt about one side of a formula from training data.
SideInfo = Union["_PatsyInfo", "PlainInfo", "RecodedInfo"]


@dataclass(frozen=True)
class Matrix:
    """One side of a formula over training data."""

    values: Floats  # (n, columns): design matrix of the rows kept
    rows: Ints  # (n,): labels of these rows in the frame
    info: SideInfo  # names the columns and codes new data

    def select_rows(self, rows: Ints) -> "Matrix":
        """Keep some of the rows, by their labels in ascending order."""
        chosen = np.isin(self.rows, rows, assume_unique=True)
        return Matrix(self.values[chosen], rows, self.info)


def caller_environment(depth: int) -> Environment:
    """Capture the names visible `depth` calls up; 1 is the caller's caller.

    There are none where no Python code called, as from R through reticulate.
    """
    try:
        sys._getframe(depth + 1)
    except ValueError:
        return environment_of({})
    return patsy.EvalEnvironment.capture(depth + 1)


def environment_of(names: Mapping[str, Any]) -> Environment:
    """Make an environment of the given names alone."""
    return patsy.EvalEnvironment([dict(names)])


def add_functions(environment: Environment, more: Mapping[str, Any]) -> Environment:
    """Add names that are looked up after those of the environment."""
    return environment.with_outer_namespace(more)


def visible_names(environment: Environment) -> Mapping[str, Any]:
    """Names of an environment and what they stand for."""
    names: Mapping[str, Any] = environment.namespace
    return names


def read_tree(formula: str) -> Any:
    """Parse a formula to a syntax tree."""
    with engine_errors("cannot read the formula: "):
        return parse_formula(formula)


def _hint(missing: OnMissing) -> str:
    if missing != "raise":
        return ""
    return "\nUse missing='drop' to leave rows with missing values out."


def learn_batches(
    model: Model,
    terms: Iterable[Codes],
    batches: Callable[[], Iterator[pd.DataFrame]],
    environment: Environment,
    *,
    missing: OnMissing,
) -> SideInfo:
    """Learn some of the terms from data in batches, which are read repeatedly."""
    with engine_errors(hint=_hint(missing)):
        (info,) = design_matrix_builders(
            [_terms(model, terms)], batches, environment, _action(missing)
        )
    return _PatsyInfo(info)


def code_rows(info: SideInfo, frame: pd.DataFrame, missing: OnMissing) -> Matrix:
    """Code rows as the engine learnt to, and drop those that lack something."""
    assert isinstance(info, _PatsyInfo)
    with engine_errors(hint=_hint(missing)):
        (built,) = patsy.build_design_matrices(
            [info.info], frame, NA_action=_action(missing), return_type="dataframe"
        )
    if len(built) != len(frame) and not info.info.factor_infos:
        # A constant side has one row, whatever the data.
        built = built.iloc[np.zeros(len(frame), int)].set_axis(frame.index)
    return Matrix(built.to_numpy(dtype=np.float64), built.index.to_numpy(), info)


def level_places(info: SideInfo, frame: pd.DataFrame) -> dict[str, Ints]:
    """Place of every row's level, -1 if it is missing, by the factor's code."""
    if not isinstance(info, _PatsyInfo):
        return {}
    return {
        factor.code: categorical_to_int(
            factor.eval(facts.state, frame), facts.categories, _action("drop")
        )
        for factor, facts in info.info.factor_infos.items()
        if facts.type == "categorical"
    }


# What stateful transforms hold, by the code of the factor and their own name.
States = dict[str, dict[str, dict[str, Any]]]


def states_of(info: SideInfo) -> States:
    """Take out what stateful transforms have learnt."""
    return {
        code: {name: dict(vars(transform)) for name, transform in transforms.items()}
        for code, transforms in _transforms(info).items()
    }


def restore_states(info: SideInfo, states: States) -> None:
    """Let stateful transforms know what others of the same formula have learnt."""
    transforms = _transforms(info)
    for code, saved in states.items():
        for name, state in saved.items():
            vars(transforms[code][name]).update(state)


def _transforms(info: SideInfo) -> dict[str, dict[str, Any]]:
    if not isinstance(info, _PatsyInfo):
        return {}
    return {
        factor.code: transforms
        for factor, facts in info.info.factor_infos.items()
        if (transforms := facts.state.get("transforms"))
    }


def read_constraint(
    text: str, names: Sequence[str], hint: str = ""
) -> tuple[Floats, Floats]:
    """Read coefs and constants of "x1 = x2, x3 = 0", with shapes (r, m) and (r,)."""
    with engine_errors("cannot read the restrictions: ", hint):
        constraint = patsy.DesignInfo(names).linear_constraint(text)
    coefs = np.asarray(constraint.coefs, dtype=np.float64)
    return coefs, np.asarray(constraint.constants, dtype=np.float64).ravel()


@contextmanager
def engine_errors(prefix: str = "", hint: str = "") -> Iterator[None]:
    """Turn what patsy and the formula's own code raise into one kind of error."""
    try:
        yield
    except FormulaError:
        raise
    except patsy.PatsyError as error:
        # With the formula comes a mark below the place, which needs short lines.
        whole = str(error)
        text = whole if len(whole) <= MAX_MESSAGE else error.message[:MAX_MESSAGE]
        raise FormulaError(f"{prefix}{text}{hint}") from error
    except _OTHER_ERRORS as error:
        kind = type(error).__name__
        text = str(error)[:MAX_MESSAGE]
        raise FormulaError(f"{prefix}{kind}: {text}{hint}") from error


# What code in a formula raises; names and files that it lacks pass through.
_OTHER_ERRORS = (
    *(TypeError, ValueError, AttributeError, ArithmeticError, LookupError),
    *(AssertionError, MemoryError, SyntaxError),
    RuntimeError,  # too deep a recursion is one
)


@dataclass(frozen=True)
class _PatsyInfo:
    """patsy's description of one side, which cannot be pickled; see `PlainInfo`."""

    info: patsy.DesignInfo

    @property
    def column_names(self) -> Sequence[str]:
        return list(self.info.column_names)

    @property
    def levels(self) -> Mapping[str, tuple[Any, ...] | None]:
        levels = {}
        for factor, facts in self.info.factor_infos.items():
            numbers = facts.type != "categorical"
            levels[factor.code] = None if numbers else tuple(facts.categories)
        return levels

    @property
    def slices(self) -> Mapping[Codes, slice]:
        return {
            tuple(factor.code for factor in term.factors): place
            for term, place in self.info.term_slices.items()
        }

    @property
    def references(self) -> Mapping[str, int]:
        """Place of the reference level, for factors in indicators of levels."""
        places: dict[str, int] = {}
        codings = self.info.term_codings.values()
        for subterm in (subterm for subterms in codings for subterm in subterms):
            for factor, contrast in subterm.contrast_matrices.items():
                place = _reference_place(np.asarray(contrast.matrix))
                if place is not None and places.get(factor.code, 0) == 0:
                    places[factor.code] = place
        return places

    def matrix(self, frame: pd.DataFrame) -> Floats:
        with engine_errors("the new data cannot be coded: "):
            (matrix,) = patsy.build_design_matrices(
                [self.info], frame, NA_action=_action("keep"), return_type="matrix"
            )
        values = np.asarray(matrix, dtype=np.float64)
        if len(values) != len(frame):  # a constant right-hand side
            values = np.repeat(values, len(frame), axis=0)
        return values


def _reference_place(contrast: Floats) -> int | None:
    """Place of the level without an indicator; the first where all have one."""
    n_levels, width = contrast.shape
    ones = contrast.sum(axis=1)
    indicators = np.isin(contrast, (0, 1)).all() and (contrast.sum(axis=0) == 1).all()
    if not (indicators and n_levels - 1 <= width <= n_levels and (ones <= 1).all()):
        return None
    return int(np.argmin(ones))


class _Column:
    """A column of the data as a factor, for patsy.

    patsy would compile and run a name like any other code, for every column and
    every call; a column is only looked up.
    """

    def __init__(self, code: str, column: str, origin: Any) -> None:
        self.code, self.origin, self._column = code, origin, column

    def name(self) -> str:
        return self.code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Column) and self.code == other.code

    def __hash__(self) -> int:
        return hash(self.code)

    def memorize_passes_needed(self, state: Any, env: Any) -> int:
        return 0

    def eval(self, state: Any, data: pd.DataFrame) -> Any:
        """Look the column up; numbers without the overhead of a Series."""
        column = data[self._column]
        return column.to_numpy() if is_number(column) else column


class _Expression(patsy.EvalFactor):  # type: ignore[misc]
    """Code as a factor, for patsy: what it calls is a function, never a column.

    patsy looks columns up first, so that a column named `C` would hide the function.
    """

    def _eval(self, code: str, memorize_state: Any, data: pd.DataFrame) -> Any:
        tree = parse_code(code)
        hidden = {
            use.name for use in find_uses(tree) if use.called and use.name in data
        }
        if not hidden:
            return super()._eval(code, memorize_state, data)
        known = memorize_state["eval_env"].namespace
        functions = {
            _called_name(name): known[name] if name in known else vars(builtins)[name]
            for name in hidden
        }
        names = VarLookupDict([functions, data])
        for node in ast.walk(tree):
            function = node.func if isinstance(node, ast.Call) else None
            if isinstance(function, ast.Name) and function.id in hidden:
                function.id = _called_name(function.id)
        return super()._eval(ast.unparse(tree), memorize_state, names)


def _called_name(name: str) -> str:
    """Name a function so that no column has its name."""
    return f"_called_{name}"


def _terms(model: Model, listed: Iterable[Codes]) -> list[patsy.Term]:
    """Write terms as patsy's; columns by themselves are only looked up."""
    factors: dict[str, Any] = {
        code: _Column(code, model.columns[code], origin)
        if code in model.columns
        else _Expression(code, origin)
        for code, origin in model.origins.items()
    }
    return [patsy.Term([factors[code] for code in codes]) for codes in listed]


def _action(missing: OnMissing) -> patsy.NAAction:
    if missing == "keep":
        return patsy.NAAction(on_NA="raise", NA_types=[])
    return patsy.NAAction(on_NA=missing)
