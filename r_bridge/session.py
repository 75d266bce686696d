"""The only importer of rpy2: start R, call functions, convert values.

R starts with the first call. There is one interpreter for the whole process, so
calls from several threads take turns. If R runs this Python, a second R is started
in a separate process.
"""

import os
import signal
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from r_bridge.availability import require
from r_bridge.exceptions import RError, ROutputWarning, RUnavailableError, RWarning
from r_bridge.host import host_has, inside_r, save_from_host
from r_bridge.objects import Answer, RObject
from r_bridge.serial import NA_INTEGER
from r_bridge.worker import Worker

# Column names may have any letters; in the C locale R would spell them out
_READ_ALL_LETTERS = """
if (!l10n_info()[["UTF-8"]]) suppressWarnings(Sys.setlocale("LC_CTYPE", "C.UTF-8"))
"""


@contextmanager
def _library_path_kept() -> Iterator[None]:
    """Restore the library path of this process after R has started.

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
            code = resources.files("r_bridge").joinpath("caller.R")
            self.caller = self.ri.evalr(code.read_text("utf-8"))


_STARTING = threading.Lock()


_RUNNING: list[_R | Worker] = []  # the R that answers, once there is one


def _started() -> _R | Worker:
    require("R", "rpy2")
    if inside_r():
        return Worker()
    try:
        return _R()
    except (ImportError, OSError, AttributeError, RuntimeError, ValueError) as error:
        raise RUnavailableError(
            f"rpy2 is installed but could not start R: {error}. Run "
            "`python -m rpy2.situation`; rpy2 must fit the version of R."
        ) from error


def start() -> _R | Worker:
    """Start R, once for the process; raise an error if a part is missing.

    An R in a separate process that has ended is restarted.
    """
    with _STARTING:
        running = _RUNNING[0] if _RUNNING else None
        if isinstance(running, Worker) and not running.alive:
            running.close()
            _RUNNING.clear()
        if not _RUNNING:
            _RUNNING.append(_started())
        return _RUNNING[0]


def call(function: str | RObject, *arguments: Any, **options: Any) -> Any:
    """Call an R function, and convert its value to Python.

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
    errors as `RError`. Ctrl-C stops what R does, and R lives on; so it does where
    the function calls `quit()`, which is an `RError`.
    """
    return _asked(function, arguments, options, keep=False)


def keep(function: str | RObject, *arguments: Any, **options: Any) -> RObject:
    """Call an R function, and keep its value in R; see `call`."""
    made: RObject = _asked(function, arguments, options, keep=True)
    return made


def _asked(
    function: str | RObject,
    arguments: tuple[Any, ...],
    options: Mapping[str, Any],
    *,
    keep: bool,
) -> Any:
    r = start()
    if isinstance(r, Worker):
        return _value(r.invoke(function, arguments, options, keep=keep))
    with r.lock:
        value = _invoke(r, function, arguments, options)
        return _handle(value) if keep else _from_r(r, value)


def find(given: Any) -> RObject:
    """Find an R object.

    It is given by a handle, its name in the running R's global environment, an `.rds`
    file, or an `.RData` file. Of several objects in the latter one is named after two
    colons: `models.RData::forest`.
    """
    if isinstance(given, RObject):
        return given
    if isinstance(given, str | Path):
        path, _, name = str(given).partition("::")
        if path.lower().endswith(".rds"):
            return keep("readRDS", _existing(path))
        if path.lower().endswith((".rdata", ".rda")):
            return _from_image(_existing(path), name)
    if isinstance(given, str):
        return _by_name(given)
    if hasattr(given, "__sexp__"):
        return _handle(given)
    raise TypeError(
        "the model must be an object of R, the name of one, or the path of an .rds or "
        f".RData file; got {type(given).__name__}."
    )


def _existing(path: str) -> str:
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no file {path}.")
    return path


def _from_image(path: str, name: str) -> RObject:
    """Load an object from a file of R's `save`."""
    shelf = keep("function(path) { e <- new.env(); load(path, e); e }", path)
    names = [str(one) for one in call("ls", shelf, **{"all.names": True})]
    if not name and len(names) == 1:
        name = names[0]
    if name not in names:
        raise RError(
            f"{path} holds {', '.join(names) or 'nothing'}; name one of its objects, "
            f"as in {path}::{names[0] if names else 'forest'}."
        )
    return keep("get", name, envir=shelf)


def _by_name(name: str) -> RObject:
    """Find an object by its name, in the R around this Python first."""
    if isinstance(start(), Worker) and host_has(name):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "object.rds")
            save_from_host(name, file)
            return keep("readRDS", str(file))
    if not call("exists", name, envir=keep("globalenv"), inherits=False)[0]:
        raise RError(
            f"the running R has no object {name!r}. Give the name of an object in its "
            "global environment, or the path of an .rds or .RData file."
        )
    return keep("get", name, envir=keep("globalenv"))


def _invoke(
    r: _R,
    function: str | RObject,
    arguments: tuple[Any, ...],
    options: Mapping[str, Any],
) -> Any:
    """Call, report R's output, and return rpy2's handle of the value."""
    f = _to_r(r, function)
    values = [_to_r(r, value) for value in (*arguments, *options.values())]
    names = ["" for _ in arguments] + list(options)
    with _console(r) as console, _interrupts_go_to_r(r) as pressed:
        try:
            answer = r.caller(f, _named_list(r, values, names))
        except r.embedded.RRuntimeError as error:  # a jump to R's top level
            # rpy2 would show the message of an earlier error.
            raise RError("R stopped, and gave no reason.") from error
    value, failed, warned, printed, interrupted = answer
    return _value(
        Answer(
            value=value,
            failed=None if failed == r.ri.NULL else failed[0],
            warned=list(warned),
            printed=[*console, *(str(line) for line in printed)],
            interrupted=bool(pressed) or bool(interrupted[0]),
        )
    )


def _value(answer: Answer) -> Any:
    """Report R's output, and return the value."""
    if answer.interrupted:
        raise KeyboardInterrupt
    for text in answer.warned:
        warnings.warn(f"R: {text}", RWarning, stacklevel=6)
    said = "\n".join(answer.printed).strip()
    if answer.failed is not None:
        raise RError(f"R stopped: {answer.failed}" + (f"\n{said}" if said else ""))
    if said:
        warnings.warn(f"R printed: {said}", ROutputWarning, stacklevel=6)
    return answer.value


@contextmanager
def _interrupts_go_to_r(r: _R) -> Iterator[list[int]]:
    """Let Ctrl-C stop R, and record it, since compiled code may report an error.

    Python's own handler would raise inside one of R's callbacks, where it is lost.
    The user's own handlers stay; only the main thread has any.
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
    """Collect output of compiled code to R's error console."""
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
    """Convert a Python value to an R vector, list or array."""
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
    """Convert a scalar to an R vector of length one."""
    for kinds, vector in _SCALARS:
        if isinstance(value, kinds):
            return getattr(r.ri, vector)([value])
    raise TypeError(f"R has no place for {type(value).__name__}: {value!r}.")


# Kinds of scalars and their vectors; truth values come before whole numbers
_SCALARS: tuple[tuple[Any, str], ...] = (
    (str, "StrSexpVector"),
    (bool | np.bool_, "BoolSexpVector"),
    (int | np.integer, "IntSexpVector"),
    (float | np.floating, "FloatSexpVector"),
)


def _list_to_r(r: _R, values: Any) -> Any:
    """Convert a list of strings to a character vector, other lists to a list."""
    if isinstance(values, Mapping):
        return _named_list(r, [_to_r(r, one) for one in values.values()], list(values))
    if all(one is None or isinstance(one, str) for one in values):
        na = r.ri.NA_Character
        return r.ri.StrSexpVector([na if one is None else one for one in values])
    return r.ri.ListSexpVector([_to_r(r, one) for one in values])


_VECTORS = {"f": "FloatSexpVector", "i": "IntSexpVector", "b": "BoolSexpVector"}


def _array_to_r(r: _R, array: Any) -> Any:
    """Convert an array to an R vector or matrix; R's integers have 32 bits."""
    kind = {"f": np.float64, "b": np.bool_}.get(array.dtype.kind, np.int32)
    whole: Any = np.asfortranarray(array, dtype=kind)
    if whole.ndim == 1:  # rpy2 would make it an array of one dimension
        make = getattr(r.ri, _VECTORS[whole.dtype.kind])
        return make(whole.tolist())
    # rpy2's global conversion rules are lost in threads, so they are local.
    with r.converter.context() as rules:
        return rules.py2rpy(whole)


def _from_r(r: _R, sexp: Any) -> Any:
    """Convert an R vector, list or array to a Python value."""
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
    """Convert numbers or booleans; other objects stay in R.

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
    """Convert text; missing values become None."""
    texts = [None if one is r.ri.NA_Character else one for one in sexp]
    shape = sexp.do_slot("dim") if "dim" in sexp.list_attrs() else [len(texts)]
    return np.array(texts, dtype=object).reshape(tuple(shape), order="F")


def _whole_from_r(vector: Any, kind: Any) -> Any:
    """Convert integers or booleans; floats if some are missing."""
    raw = np.array(vector, dtype=np.int64)
    missing = raw == NA_INTEGER
    return np.where(missing, np.nan, raw) if missing.any() else raw.astype(kind)
