"""The only importer of rpy2: start R, call its functions, carry values across.

R starts with the first call. It is one interpreter for the whole process, so
calls take turns; they may come from any thread.
"""

import os
import signal
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from r_bridge.availability import require
from r_bridge.exceptions import RError, ROutputWarning, RUnavailableError, RWarning

_CALLER = """
function(f, arguments) {
  warned <- character()
  noted <- character()
  value <- NULL
  failed <- NULL
  interrupted <- FALSE
  printed <- utils::capture.output(
    tryCatch(
      withCallingHandlers(
        {
          if (is.character(f)) {
            f <- eval(parse(text = f, keep.source = FALSE), globalenv())
          }
          value <- do.call(f, arguments, quote = TRUE)
        },
        warning = function(w) {
          warned <<- c(warned, conditionMessage(w))
          invokeRestart("muffleWarning")
        },
        message = function(m) {
          noted <<- c(noted, conditionMessage(m))
          invokeRestart("muffleMessage")
        }
      ),
      error = function(e) failed <<- conditionMessage(e),
      interrupt = function(i) interrupted <<- TRUE
    )
  )
  list(value = value, failed = failed, warned = unique(warned),
       printed = c(noted, printed), interrupted = interrupted)
}
"""
"""Call a function in R and give back its value with all that it said."""

_READ_ALL_LETTERS = """
if (!l10n_info()[["UTF-8"]]) suppressWarnings(Sys.setlocale("LC_CTYPE", "C.UTF-8"))
"""
"""Column names may have any letters; in the C locale R would spell them out."""


@dataclass(frozen=True)
class RObject:
    """An object that stays in R, such as a fitted forest.

    Attributes
    ----------
    sexp : Any
        rpy2's handle of it.
    classes : tuple of str
        Its classes in R.
    """

    sexp: Any
    classes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<R object of class {' '.join(self.classes)}>"


@contextmanager
def _library_path_kept() -> Iterator[None]:
    """Keep the library path of this process to itself while R starts.

    R puts its own folders first on it. The loader has read the path already;
    children would find another libpython there.
    """
    before = os.environ.get("LD_LIBRARY_PATH")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("LD_LIBRARY_PATH", None)
        else:
            os.environ["LD_LIBRARY_PATH"] = before


class _R:
    """A running R."""

    def __init__(self) -> None:
        with _library_path_kept(), warnings.catch_warnings():
            # R started from a worker thread warns that Ctrl-C may not reach it.
            warnings.filterwarnings("ignore", message="R is not initialized by the")
            import rpy2.robjects as ro  # noqa: PLC0415 starts R
            from rpy2.rinterface_lib import (  # noqa: PLC0415
                callbacks,
                embedded,
                openrlib,
            )
            from rpy2.robjects import numpy2ri  # noqa: PLC0415

        self.ro = ro
        self.ri = ro.rinterface
        self.lock = openrlib.rlock
        self.rlib = openrlib.rlib
        self.callbacks = callbacks
        self.embedded = embedded
        self.converter = ro.default_converter + numpy2ri.converter
        with self.lock:
            self.ri.evalr(_READ_ALL_LETTERS)
            self.caller = self.ri.evalr(_CALLER)


_STARTING = threading.Lock()


@lru_cache(maxsize=1)
def _started() -> _R:
    require("R", "rpy2")
    try:
        return _R()
    except (ImportError, OSError, AttributeError, RuntimeError, ValueError) as error:
        raise RUnavailableError(
            f"rpy2 is installed but could not start R: {error}. Run "
            "`python -m rpy2.situation`; rpy2 must fit the version of R."
        ) from error


def start() -> _R:
    """Start R, once for the process; say what is missing where that fails."""
    with _STARTING:
        return _started()


def call(function: str | RObject, *arguments: Any, **options: Any) -> Any:
    """Call an R function and bring its value to Python.

    Parameters
    ----------
    function : str or RObject
        R code that gives a function, such as `ranger:::rInfJack`.
    *arguments, **options
        Arrays, numbers, text, lists, dicts and objects of R.

    Returns
    -------
    Arrays, text, lists and dicts; an `RObject` for what is none of them

    Notes
    -----
    R's warnings come as `RWarning`, what it prints as `ROutputWarning`, its
    errors as `RError`. Ctrl-C stops what R does, and R lives on.
    """
    r = start()
    with r.lock:
        return _from_r(r, _invoke(r, function, arguments, options))


def keep(function: str | RObject, *arguments: Any, **options: Any) -> RObject:
    """Call an R function and leave its value in R; see `call`."""
    r = start()
    with r.lock:
        return _handle(_invoke(r, function, arguments, options))


def find(given: Any) -> RObject:
    """Find an object of R.

    Parameters
    ----------
    given : RObject, rpy2 object, str or path
        A handle, the name of an object in the running R's global environment, or
        an `.rds` file.
    """
    if isinstance(given, RObject):
        return given
    if isinstance(given, str | Path) and str(given).lower().endswith(".rds"):
        if not Path(given).exists():
            raise FileNotFoundError(f"there is no file {given}.")
        return keep("readRDS", str(Path(given)))
    if isinstance(given, str):
        if not call("exists", given, envir=keep("globalenv"), inherits=False)[0]:
            raise RError(
                f"the running R has no object {given!r}. Give the name of an object in "
                "its global environment, or the path of an .rds file."
            )
        return keep("get", given, envir=keep("globalenv"))
    if hasattr(given, "__sexp__"):
        return _handle(given)
    raise TypeError(
        "the model must be an object of R, the name of one, or the path of an .rds "
        f"file; got {type(given).__name__}."
    )


def _invoke(
    r: _R,
    function: str | RObject,
    arguments: tuple[Any, ...],
    options: Mapping[str, Any],
) -> Any:
    """Call, show what R said, and give rpy2's handle of the value."""
    f = _to_r(r, function)
    values = [_to_r(r, value) for value in (*arguments, *options.values())]
    names = ["" for _ in arguments] + list(options)
    with _console(r) as console, _interrupts_go_to_r(r) as pressed:
        answer = _answer(r, f, _named_list(r, values, names))
    value, failed, warned, printed, interrupted = answer
    if pressed or interrupted[0]:
        raise KeyboardInterrupt
    for text in warned:
        warnings.warn(f"R: {text}", RWarning, stacklevel=4)
    said = "\n".join([*console, *(str(line) for line in printed)]).strip()
    if failed != r.ri.NULL:
        raise RError(f"R stopped: {failed[0]}" + (f"\n{said}" if said else ""))
    if said:
        warnings.warn(f"R printed: {said}", ROutputWarning, stacklevel=4)
    return value


def _answer(r: _R, function: Any, arguments: Any) -> Any:
    """Call in R; a jump past all handlers, to R's top level, is an error as well."""
    try:
        return r.caller(function, arguments)
    except r.embedded.RRuntimeError as error:
        # rpy2 would show the message of an earlier error.
        raise RError("R stopped, and gave no reason.") from error


@contextmanager
def _interrupts_go_to_r(r: _R) -> Iterator[list[int]]:
    """Let Ctrl-C stop R, and note it, since compiled code may call it an error.

    Python's own handler would raise inside a callback of R's, where it is lost.
    Handlers of the user's stay; only the main thread has any.
    """
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or before is not signal.default_int_handler:
        yield pressed
        return

    def hand_on(number: int, frame: object) -> None:
        pressed.append(number)
        r.rlib.R_interrupts_pending = 1

    signal.signal(signal.SIGINT, hand_on)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
        r.rlib.R_interrupts_pending = 0


@contextmanager
def _console(r: _R) -> Iterator[list[str]]:
    """Collect what compiled code of R writes to its error console."""
    written: list[str] = []
    callbacks: Any = r.callbacks
    before = callbacks.consolewrite_warnerror
    callbacks.consolewrite_warnerror = written.append
    try:
        yield written
    finally:
        callbacks.consolewrite_warnerror = before


def _handle(sexp: Any) -> RObject:
    return RObject(sexp, tuple(sexp.rclass))


def _named_list(r: _R, values: list[Any], names: list[str]) -> Any:
    made = r.ri.ListSexpVector(values)
    made.names = r.ri.StrSexpVector(names)
    return made


def _to_r(r: _R, value: Any) -> Any:
    """Make an R vector, list or array of a Python value."""
    if value is None:
        return r.ri.NULL
    if isinstance(value, RObject):
        return value.sexp
    if hasattr(value, "__sexp__"):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return _array_to_r(r, value)
    if isinstance(value, str | bool | int | float | np.generic):
        return _scalar_to_r(r, value)
    return _list_to_r(r, value)


def _scalar_to_r(r: _R, value: Any) -> Any:
    """Make an R vector of length one."""
    for kinds, vector in _SCALARS:
        if isinstance(value, kinds):
            return getattr(r.ri, vector)([value])
    raise TypeError(f"R has no place for {type(value).__name__}: {value!r}.")


_SCALARS: tuple[tuple[Any, str], ...] = (
    (str, "StrSexpVector"),
    (bool | np.bool_, "BoolSexpVector"),
    (int | np.integer, "IntSexpVector"),
    (float | np.floating, "FloatSexpVector"),
)
"""Kinds of scalars and their vectors; truth values come before whole numbers."""


def _list_to_r(r: _R, values: Any) -> Any:
    """Make a character vector of texts, a list of anything else."""
    if isinstance(values, Mapping):
        return _named_list(r, [_to_r(r, one) for one in values.values()], list(values))
    if all(one is None or isinstance(one, str) for one in values):
        na = r.ri.NA_Character
        return r.ri.StrSexpVector([na if one is None else one for one in values])
    return r.ri.ListSexpVector([_to_r(r, one) for one in values])


_VECTORS = {"f": "FloatSexpVector", "i": "IntSexpVector", "b": "BoolSexpVector"}


def _array_to_r(r: _R, array: Any) -> Any:
    """Make an R vector or matrix; R's whole numbers have 32 bits."""
    kind = {"f": np.float64, "b": np.bool_}.get(array.dtype.kind, np.int32)
    whole: Any = np.asfortranarray(array, dtype=kind)
    if whole.ndim == 1:  # rpy2 would make it an array of one dimension
        make = getattr(r.ri, _VECTORS[whole.dtype.kind])
        return make(whole.tolist())
    # rpy2's global conversion rules are lost in threads, so they are local.
    with r.converter.context() as rules:
        return rules.py2rpy(whole)


def _from_r(r: _R, sexp: Any) -> Any:
    """Make a Python value of an R vector, list or array."""
    ri = r.ri
    if sexp == ri.NULL:
        return None
    if isinstance(sexp, ri.ListSexpVector):
        values = [_from_r(r, one) for one in sexp]
        names = sexp.names
        return values if names == ri.NULL else dict(zip(names, values, strict=True))
    if isinstance(sexp, ri.StrSexpVector):
        return _texts_from_r(r, sexp)
    return _numbers_from_r(r, sexp)


def _numbers_from_r(r: _R, sexp: Any) -> Any:
    """Read numbers or truth values; anything else stays in R.

    rpy2's `memoryview` of a vector loses a reference to None each time, which ends
    the process after some thousand; the array interface does not.
    """
    ri, vectors = r.ri, r.ro.vectors
    if isinstance(sexp, ri.FloatSexpVector):
        return np.array(vectors.FloatVector(sexp), dtype=np.float64)
    if isinstance(sexp, ri.BoolSexpVector):
        return _whole_from_r(vectors.BoolVector(sexp), np.bool_)
    if isinstance(sexp, ri.IntSexpVector):
        return _whole_from_r(vectors.IntVector(sexp), np.int64)
    return _handle(sexp)


def _texts_from_r(r: _R, sexp: Any) -> Any:
    """Read text, None where it is missing."""
    texts = [None if one is r.ri.NA_Character else one for one in sexp]
    shape = sexp.do_slot("dim") if "dim" in sexp.list_attrs() else [len(texts)]
    return np.array(texts, dtype=object).reshape(tuple(shape), order="F")


NA_INTEGER = np.iinfo(np.int32).min
"""How R writes a missing whole number or truth value."""


def _whole_from_r(vector: Any, kind: Any) -> Any:
    """Read whole numbers or truth values; floats where some are missing."""
    raw = np.array(vector, dtype=np.int64)
    missing = raw == NA_INTEGER
    return np.where(missing, np.nan, raw) if missing.any() else raw.astype(kind)
