"""Messages with command-line options in place of Python arguments."""

import re

OPTIONS = {
    "kernel": "--kernel",
    "k": "--k",
    "B": "--B",
    "replace": "--no-replace",
    "design": "--design",
    "variance": "--variance",
    "at": "--at",
    "groups": "--groups",
    "weights": "--weights",
    "missing": "--missing",
    "rng": "--seed",
    "n_jobs": "--n-jobs",
    "tol": "--tol",
    "max_B": "--max-B",
    "checkpoint": "--checkpoint",
    "memory_limit": "--memory-limit",
    "target": "--target",
    "alpha": "--alpha",
    "obs_method": "--obs-method",
}
"""Options of `vstatkit fit` by the arguments that they are."""

_SAID: tuple[tuple[str, str], ...] = (
    (r"Use `replace=True`", "Leave out --no-replace"),
    (r"use `replace=True`", "leave out --no-replace"),
    (r"`?replace=False`?", "--no-replace"),
    (r"`?replace=True`?", "no --no-replace"),
    (
        r"Convert it: .*; or write",
        "Say by --na what stands for missing values, by --decimal and --thousands how "
        "numbers are written; or write",
    ),
    (r"such as days: .*; or write", "such as days, in the file; or write"),
)
"""Advice that is Python's, and what it is here."""


_NOTED: tuple[tuple[str, str], ...] = (
    (r"summary\(full=True\)", "--full"),
    (r"\bkeep_learners=True\b", "--option keep_learners=true"),
    (r"\bmax_B = ", "--max-B "),
    (r"`summary_frame\(\)`.* hold all", "--out FILE.csv holds all"),
)
"""What notes of a summary say of Python, and what it is here."""


def note_in_shell_words(text: str) -> str:
    """Write a note of a summary for a shell; names in it stay as they are.

    Examples
    --------
    >>> note_in_shell_words("summary(full=True) adds tables; see target='truth'.")
    '--full adds tables; see --target truth.'
    """
    for pattern, said in _NOTED:
        text = re.sub(pattern, said, text)
    return re.sub(r"\b(target|variance)='(\w+)'", _setting, text)


def in_shell_words(text: str) -> str:
    """Write a message of Python's for a shell; rows are counted from 1.

    Examples
    --------
    >>> in_shell_words("`rng` must be a seed; see missing='drop', row 0.")
    '--seed must be a seed; see --missing drop, row 0.'
    >>> in_shell_words("'x' must be finite; row 0 has nan. `honest` must be True.")
    "'x' must be finite; row 1 has nan. --option honest must be true."
    """
    for pattern, said in _SAID:
        text = re.sub(pattern, said, text, flags=re.DOTALL)
    text = re.sub(r"`?\b(\w+)='([\w-]+)'`?", _setting, text)
    text = re.sub(r"`([a-zA-Z_]\w*)`", _name, text)
    text = re.sub(r"((?:in|;) row )(\d+)(?=[ ;,]|\.(?:\s|$)|$)", _from_one, text)
    for word, shown in (("True", "true"), ("False", "false"), ("None", "null")):
        text = re.sub(rf"(?<!['\w]){word}\b", shown, text)
    return text


def _setting(found: re.Match[str]) -> str:
    option = OPTIONS.get(found[1])
    return found[0] if option is None else f"{option} {found[2]}"


def _name(found: re.Match[str]) -> str:
    name = found[1]
    if name in ("data", "formula"):
        return f"the {name}"
    return OPTIONS.get(name, f"--option {name}")


def _from_one(found: re.Match[str]) -> str:
    return f"{found[1]}{int(found[2]) + 1}"
