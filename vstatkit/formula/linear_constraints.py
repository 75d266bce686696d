"""Linear restrictions on named parameters."""

import re
import reprlib
from collections import Counter
from collections.abc import Sequence

import numpy as np

from vstatkit._typing import Floats, Restrictions
from vstatkit.formula.patsy_engine import read_constraint
from vstatkit.text import list_names, suggest_name


def join_restrictions(R: Restrictions) -> Restrictions:
    """Join a list of restrictions in words; leave all else as it is."""
    if not isinstance(R, list | tuple) or not R:
        return R
    texts = [text for text in R if isinstance(text, str)]
    return ", ".join(texts) if len(texts) == len(R) else R


def spell_out_factors(
    R: str, names: Sequence[str], predictors: Sequence[str] = ()
) -> str:
    """Restrict all effects of a factor where its own name is restricted.

    Interactions with the factor have names and restrictions of their own, and so have
    other predictors, such as `dose [mg]` beside the factor `dose`.

    Examples
    --------
    >>> spell_out_factors("x = 0, g = 0", ["x", "g[b]", "g[c]", "g[b]:x"])
    'x = 0, g[b] = 0, g[c] = 0'
    """
    parts = []
    for part in R.split(","):
        name, equals, rest = (piece.strip() for piece in part.partition("="))
        others = tuple(
            predictor for predictor in predictors if len(predictor) > len(name)
        )
        own = [effect for effect in names if _is_level(effect, name, others)]
        spell = own and name not in names
        parts += [f" {effect} {equals} {rest}" for effect in own] if spell else [part]
    return ",".join(parts).strip()


def _is_level(text: str, name: str, others: tuple[str, ...]) -> bool:
    """Whether an effect is that of a level (or on a class) of what has the name."""
    rest = text.removeprefix(name) if name else text
    level = rest != text and rest.startswith(("[", " [")) and "]:" not in rest
    return level and not text.startswith(others)


def linear_constraint(
    R: Restrictions, names: Sequence[str], predictors: Sequence[str] = ()
) -> tuple[Floats, Floats, list[str]]:
    """Read linear restrictions on named parameters.

    `R` is "x1 = x2, x3 = 0", or a matrix with a column for each parameter. In words, 0
    is zero, also where rows are called by numbers. `predictors` are columns of the data
    whose effects are among the parameters. Returns `coefs` and `constants` of
    `coefs @ params = constants`, shapes (r, m) and (r,), and a text for each.
    """
    texts: list[str] = []
    if isinstance(R, str):
        R, coefs, constants = _read_words(R, names, predictors)
        texts = [part.strip() for part in R.split(",")]
    else:
        coefs = _matrix(R)
        constants = np.zeros(len(coefs))
        if coefs.shape[1] != len(names):
            raise ValueError(
                f"`R` must have a column for each of the {len(names)} estimates; "
                f"got {coefs.shape[1]}."
            )
    if len(texts) != len(coefs):
        texts = [f"c{j}" for j in range(len(coefs))]
    return coefs, constants, texts


def check_consistent(coefs: Floats, constants: Floats) -> None:
    """Refuse restrictions of which no parameters meet all."""
    some = np.linalg.lstsq(coefs, constants, rcond=None)[0]
    size = float(np.abs(constants).max(initial=0.0))
    if not np.allclose(coefs @ some, constants, rtol=0, atol=1e-8 * size):
        raise ValueError(
            "restrictions that contradict each other cannot be tested together; test "
            "them one by one, by `t_test`."
        )


def _read_words(
    R: str, names: Sequence[str], predictors: Sequence[str]
) -> tuple[str, Floats, Floats]:
    """Read restrictions in words, spelt out; numbers are values, whatever rows are."""
    times = Counter(names)
    words = [name for name in times if name in predictors or not _is_number(name)]
    clear = [word for word in words if times[word] == 1]
    hint = f"\nThe names are: {list_names(clear)}." if clear else ""
    if len(words) < len(times):
        hint += (
            "\nNumbers are values, not names of rows: combine rows by a matrix with a "
            "column for each estimate."
        )
    if not R.strip() or not words:
        raise ValueError(f"`R` names nothing that can be restricted.{hint}")
    plain = re.sub("`([^`]*)`", r"\1", R)  # as formulas may quote names
    R = spell_out_factors(plain, words, predictors)
    hint += _suggest_word(R, words)
    word_coefs, constants = read_constraint(R, words, hint=hint)
    for word, column in zip(words, word_coefs.T, strict=True):
        if times[word] > 1 and column.any():
            raise ValueError(
                f"{word!r} is the name of {times[word]} estimates; give a matrix with "
                "a column for each estimate, or label the rows of `at` otherwise."
            )
    coefs = np.zeros((len(word_coefs), len(names)))
    places = {name: place for place, name in enumerate(names)}
    coefs[:, [places[word] for word in words]] = word_coefs
    return R, coefs, constants


def _matrix(R: Restrictions) -> Floats:
    """Read a matrix of restrictions, or a single row of it."""
    try:
        coefs = np.atleast_2d(np.asarray(R, dtype=np.float64))
    except (TypeError, ValueError):
        coefs = np.full((1, 1), np.nan)
    if coefs.ndim != 2 or not np.isfinite(coefs).all():
        raise ValueError(
            "`R` must be restrictions in words, such as 'x1 = 0, x2 = 3', a list of "
            "such texts, or a matrix of finite numbers, the combinations that are "
            f"zero; got {reprlib.repr(R)}."
        )
    return coefs


def _is_number(name: str) -> bool:
    """Whether a restriction would have to take a name for a value."""
    try:
        return bool(np.isfinite(float(name)))
    except ValueError:
        return False


def _suggest_word(R: str, words: Sequence[str]) -> str:
    """Suggest a name for the first word that is in none of them."""
    known = {part for word in words for part in re.findall(r"\w+", word)}
    unknown = (word for word in re.findall(r"[^\W\d]\w*", R) if word not in known)
    word = next(unknown, None)
    return f"\n{word!r} is not among them{suggest_name(word, words)}" if word else ""
