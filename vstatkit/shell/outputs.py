"""Output files of the command: checked before the work, written after it."""

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from statsmodels.iolib.table import SimpleTable

from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.summary import (
    EnsembleSummary,
    components_section,
    normality_section,
)
from vstatkit.storage.atomic_files import write_whole

# Estimates, effects and predictions, by these names.
Tables = Mapping[str, pd.DataFrame]
MOST_PRINTED = 50  # predictions that are printed; files have all


class Show(NamedTuple):
    """What a summary shows."""

    alpha: float = 0.05  # one minus the coverage of the intervals
    # Whether it has the tables of variance components and normality tests
    full: bool = False


def print_note(text: str) -> None:
    """Print a line about files to standard error."""
    print(f"vstatkit: note: {text}", file=sys.stderr)


PICTURES = (".png", ".pdf", ".svg", ".jpg")


def check_output(
    option: str, path: Path, endings: Sequence[str], inputs: Sequence[Path]
) -> None:
    """Refuse a path that could not be written once the work is done.

    `endings` are those that the name may have, any if there is none, and `inputs` the
    files that are read, which must not be overwritten.
    """
    if endings and path.suffix.lower() not in endings:
        raise ValueError(
            f"{option} must end in one of {', '.join(endings)}; got {path}."
        )
    folder = path.parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{option} {path}: there is no folder {folder}; make it first."
        )
    if path.is_dir():
        raise IsADirectoryError(f"{option} {path} is a folder; give a file's name.")
    if path.exists() and any(file.exists() and file.samefile(path) for file in inputs):
        raise ValueError(
            f"{option} {path} would overwrite the data; name another file."
        )
    target = path if path.exists() else folder
    if not os.access(target, os.W_OK):
        raise PermissionError(f"{option} {path} may not be written: see permissions.")


def tables_of(
    results: EnsembleResults, predictions: pd.DataFrame | None, alpha: float
) -> Tables:
    """Tabulate the estimates, the effects and the predictions, as far as they are."""
    effects = results.effects_frame(alpha)
    tables = {"estimates": results.tidy(alpha)}
    if effects is not None:
        tables["effects"] = effects.reset_index()
    if predictions is not None:
        # The point becomes a column, and so does the class if there are several.
        index = predictions.index
        names = ["point" if name is None else str(name) for name in index.names]
        tables["predictions"] = predictions.rename_axis(index=names).reset_index()
    return tables


def as_csv(results: EnsembleResults, tables: Tables, show: Show) -> str:
    """Write one table; its first column says what each row is."""
    names = {"predictor": "term", "point": "term", "mean": "estimate"}
    names |= {"mean_se": "std_error", "t": "statistic"}
    names |= {"mean_ci_lower": "conf_low", "mean_ci_upper": "conf_high"}
    names |= {"ci_lower": "conf_low", "ci_upper": "conf_high"}
    parts = [
        table.rename(columns=names).assign(table=name).astype({"term": object})
        for name, table in tables.items()
    ]
    whole = pd.concat(parts, ignore_index=True)
    return whole[["table", *whole.columns.drop("table")]].to_csv(index=False)


def as_json(results: EnsembleResults, tables: Tables, show: Show) -> str:
    """Write the tables as lists of records, and what there is to say of the fit."""
    records: dict[str, Any] = {
        name: [
            {str(key): _plain_value(value) for key, value in row.items()}
            for row in table.to_dict(orient="records")
        ]
        for name, table in {"fit": results.glance(), **tables}.items()
    }
    settings = {"formula": results.info.formula, "alpha": show.alpha}
    records["fit"] = settings | records["fit"][0]
    return f"{json.dumps(records, indent=1, ensure_ascii=False)}\n"


def _plain_value(value: Any) -> Any:
    """Write a value as JSON has it: to the last digit, null where there is none."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int | str | None) else str(value)


def as_markdown(results: EnsembleResults, tables: Tables, show: Show) -> str:
    """Write the tables in Markdown, the notes below."""
    parts = [f"# {results.info.title}\n\n`{results.info.formula}`\n"]
    glance = results.glance().T.reset_index()
    parts.append(_markdown_table(["", ""], glance.itertuples(index=False)))
    for name, table in tables.items():
        rows = _markdown_table(map(str, table.columns), table.itertuples(index=False))
        parts += [f"## {name.capitalize()}\n", rows]
    if show.full:
        sections = components_section(results), normality_section(results)
        for section in filter(None, sections):
            cells = zip(section.stubs, section.cells, strict=True)
            texts = ([stub, *row] for stub, row in cells)
            rows = _markdown_table(["", *section.headers], texts)
            parts += [f"## {section.name}\n", rows]
    notes = str(results.summary(show.alpha, full=show.full)).partition("\nNotes:\n")[2]
    return "\n".join([*parts, f"```text\n{notes}\n```\n"])


def _markdown_table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    names = list(header)
    lines = [names, ["---"] * len(names)]
    lines += [[_format_value(value).replace("|", r"\|") for value in x] for x in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _format_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    return str(value).replace("\n", " ")


def as_html(results: EnsembleResults, tables: Tables, show: Show) -> str:
    """Write the summary in HTML, with the predictions."""
    text = _with_predictions(results, tables, show).as_html()
    return f'<!DOCTYPE html>\n<meta charset="utf-8">\n{text}\n'


def as_latex(results: EnsembleResults, tables: Tables, show: Show) -> str:
    """Write the summary in LaTeX, with the predictions; it needs booktabs."""
    return f"{_with_predictions(results, tables, show).as_latex()}\n"


def _with_predictions(
    results: EnsembleResults, tables: Tables, show: Show
) -> EnsembleSummary:
    summary: EnsembleSummary = results.summary(show.alpha, full=show.full)
    if "predictions" in tables:
        frame = tables["predictions"]
        rows = [list(map(_format_value, row)) for row in frame.itertuples(index=False)]
        summary.tables.append(SimpleTable(rows, list(map(str, frame.columns))))
    return summary


def as_text(results: EnsembleResults, tables: Tables, show: Show) -> str:
    """Write the summary, the predictions below."""
    text = f"{results.summary(show.alpha, full=show.full)}\n"
    if "predictions" in tables:
        table = tables["predictions"].round(4).to_string(index=False)
        text += f"\nPredictions:\n\n{table}\n"
    return text


def as_printed(results: EnsembleResults, tables: Tables, show: Show) -> str:
    """Write what is printed: as text, the first of many predictions."""
    predictions = tables.get("predictions")
    if predictions is None or len(predictions) <= MOST_PRINTED:
        return as_text(results, tables, show)
    shown = {**tables, "predictions": predictions.head(MOST_PRINTED)}
    hidden = len(predictions) - MOST_PRINTED
    text = as_text(results, shown, show)
    return f"{text}... and {hidden:,} more; --out FILE writes all of them.\n"


# What writes an answer, by the ending of its file.
WRITERS: dict[str, Callable[[EnsembleResults, Tables, Show], str]] = {
    ".csv": as_csv,
    ".html": as_html,
    ".json": as_json,
    ".md": as_markdown,
    ".tex": as_latex,
    ".txt": as_text,
}


def draw(
    path: Path, results: EnsembleResults, kind: str | None, variable: str | None
) -> None:
    """Draw a picture of the results into a file."""
    import matplotlib as mpl  # noqa: PLC0415 only pictures need it

    mpl.use("agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    options: dict[str, Any] = {} if variable is None else {"variable": variable}
    figure: Any = results.plot(kind=kind, **options).figure
    ending = path.suffix[1:].lower()
    write_whole(
        path,
        lambda file: figure.savefig(file, dpi=150, format=ending, bbox_inches="tight"),
    )
    plt.close("all")
