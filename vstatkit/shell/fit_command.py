"""`vstatkit fit`: its options, and what it does with them."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from vstatkit._typing import DataLike
from vstatkit.api import fit
from vstatkit.ensemble.bias_reduction import TARGETS
from vstatkit.inference.stopping import TOL
from vstatkit.kernels.registry import KERNELS
from vstatkit.plots.registry import PLOTS
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.prediction_results import METHODS
from vstatkit.sampling.registry import DESIGNS
from vstatkit.shell.input_tables import (
    STDIN,
    QueryPoints,
    list_predictors,
    open_table,
    parse_format,
    read_query_points,
)
from vstatkit.shell.outputs import (
    PICTURES,
    WRITERS,
    Show,
    Tables,
    as_printed,
    check_output,
    draw,
    print_note,
    tables_of,
)
from vstatkit.storage.atomic_files import write_text_whole
from vstatkit.validation import ARGUMENTS
from vstatkit.variance.registry import ESTIMATORS

# Arguments of `fit` that are options of the same name, with the same values.
UNCHANGED = (
    *("kernel", "design", "variance", "groups", "weights", "missing", "target", "tol"),
    *("max_B", "n_jobs", "checkpoint", "memory_limit"),
)
# Arguments of `fit` that are given by --option.
ONLY_BY_OPTION = ("progress", "atol", "oob", "keep_learners")

EXAMPLES = """\
examples:
  vstatkit fit "price ~ ." houses.csv
  vstatkit fit "price ~ log(area) + C(zone)" houses.csv --at new.csv --out table.html
  vstatkit fit 'price ~ Q("living area") + rooms' houses.csv --seed 1
  vstatkit fit "y ~ ." data.csv --groups clinic --weights w --plot effects.png
  zcat big.csv.gz | grep -v test | vstatkit fit "y ~ x1 + x2" - --out table.json
  vstatkit fit "y ~ ." umsatz.csv --sep ";" --decimal , --encoding cp1252

The formula stands in quotes: a shell reads ~, * and ( itself. A column whose name is
no plain word is written Q("living area").

Text is UTF-8 and separated by commas (.tsv, .tab: by tabs), with decimal points, unless
--encoding, --sep, --decimal and --thousands say otherwise; they hold for the data and
for --at. Numbers are printed to standard output.

exit status: 0 if all went well, 2 after an error (one line on standard error), 130
after Ctrl-C, 141 where the reader of the output has gone."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `vstatkit fit`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = (
        "Fit an ensemble to a table and print its summary: estimates, effects of the\n"
        "predictors, standard errors and intervals."
    )
    parser.epilog = EXAMPLES
    for name, description in POSITIONAL.items():
        parser.add_argument(name, help=description)
    for title, options in _options_by_group().items():
        group: Any = parser.add_argument_group(title)
        for flags, option in options.items():
            names, _, metavar = flags.partition(" ")
            text, settings = (option, {}) if isinstance(option, str) else option
            shown = {"metavar": metavar} if metavar else {}
            group.add_argument(*names.split(","), help=text, **shown, **settings)


POSITIONAL = {
    "formula": 'in quotes: "y ~ x1 + x2"; in "y ~ ." the dot is all others',
    "data": "CSV or TSV file with a header row (also packed: .gz, .bz2, .xz, .zip), "
    "Parquet file, folder of Parquet files, or - for standard input",
}
_SEVERAL = {"action": "append", "default": []}
_FILES = {**_SEVERAL, "type": Path}
_FILE = {"type": Path}
_FLAG = {"action": "store_true"}
# Help text, or help text and further arguments of `add_argument`.
Option = str | tuple[str | None, dict[str, Any]]


def _options_by_group() -> dict[str, dict[str, Option]]:
    """List the options of every group, by their flags and placeholder.

    The choices are read when the command runs: plugins may have added some.
    """
    return {
        "the model": {
            "--kernel": (None, {"default": "forest", "choices": list(KERNELS)}),
            "--at FILE": "rows to predict; a table as above",
            "--groups COLUMN": "clusters, which are resampled whole",
            "--weights COLUMN": "sampling weights of the rows",
            "--missing": (
                "rows with missing values: drop them, stop, or hand them to the kernel",
                {"choices": ["drop", "raise", "pass"]},
            ),
            "--target": (
                "what intervals cover: the expectation of the ensemble, or E[y|x]",
                {"choices": TARGETS},
            ),
            "--option NAME=VALUE": (
                "of the kernel or design, such as max_features=3 or honest=true; "
                "may be given several times",
                _SEVERAL,
            ),
        },
        "subsamples and standard errors": {
            "--k": "subsample size, or a fraction of the rows",
            "--B": ("number of base learners, auto or complete", {"default": "auto"}),
            "--tol": (
                "auto stops at this relative Monte Carlo error of the standard errors "
                f"({TOL:g})",
                {"type": float},
            ),
            "--max-B B": ("auto stops there in any case", {"type": int}),
            "--no-replace,--without-replacement": (
                "subsample without replacement: a U- instead of a V-statistic",
                {"dest": "without_replacement", **_FLAG},
            ),
            "--design": (None, {"choices": ["auto", *DESIGNS]}),
            "--variance NAME": (
                f"estimator: auto, corrected, {', '.join(ESTIMATORS)}",
                {"choices": ["auto", "corrected", *ESTIMATORS]},
            ),
            "--alpha": (
                "intervals at 1 - alpha (0.05)",
                {"type": float, "default": 0.05},
            ),
            "--obs-method": (
                "how new observations at the rows of --at are bounded",
                {"choices": METHODS},
            ),
            "--seed": ("repeats the same numbers", {"type": int}),
        },
        "how the tables are written": {
            "--sep": "separator of fields: one character, tab or space; default: "
            "comma, or tab in .tsv and .tab files",
            "--encoding NAME": "encoding of text, such as cp1252 or utf-16 (utf-8)",
            "--decimal SIGN": "decimal sign: . or , (.)",
            "--thousands SIGN": "sign between thousands (none)",
            "--na TEXT": (
                "stands for a missing value, besides NA, nan and nothing; may be given "
                "several times",
                _SEVERAL,
            ),
        },
        "output": {
            "--full": ("show variance components and normality tests too", _FLAG),
            "--out FILE": (
                f"write the tables; the ending says how: {', '.join(WRITERS)}; may be "
                "given several times",
                _FILES,
            ),
            "--plot FILE": (
                f"draw the effects ({', '.join(PICTURES)}); may be given several times",
                _FILES,
            ),
            "--plot-kind KIND": (", ".join(PLOTS), {"choices": list(PLOTS)}),
            "--plot-of COLUMN": "predictor of the profile or the partial dependence",
            "--report FILE": (
                "write one page to hand on (.html): tables, pictures, notes, settings",
                _FILE,
            ),
            "--save FILE": ("keep the results for vs.load(FILE)", _FILE),
        },
        "running": {
            "--n-jobs N": ("threads; -1 is all", {"type": int}),
            "--checkpoint DIR": (
                "directory where learners are saved as they are grown; the same "
                "command resumes from it after an interruption",
                _FILE,
            ),
            "--memory-limit SIZE": "most memory to use, such as 2GB",
        },
    }


def run(options: argparse.Namespace) -> int:
    """Fit, print and write; everything that can be checked before is."""
    _check(options)
    data, at = _read_tables(options)
    results = _fit(options, data, None if at is None else at.frame)
    predictions = None
    if at is not None:
        prediction = results.get_prediction(at.frame, obs_method=options.obs_method)
        predictions = at.align(prediction.summary_frame(options.alpha))
    tables = tables_of(results, predictions, options.alpha)
    show = Show(options.alpha, options.full)
    text = as_printed(results, tables, show)
    # Files are written first: the reader of standard output may stop reading.
    _write(options, results, tables, show)
    print(text, end="")
    return 0


def _write(
    options: argparse.Namespace, results: EnsembleResults, tables: Tables, show: Show
) -> None:
    """Write files, and say so beside what is printed."""
    for path in options.out:
        write_text_whole(path, WRITERS[path.suffix.lower()](results, tables, show))
        print_note(f"table written to {path}")
    for path in options.plot:
        draw(path, results, options.plot_kind, options.plot_of)
        print_note(f"picture written to {path}")
    if options.report is not None:
        results.report(options.report, alpha=options.alpha)
        print_note(f"report written to {options.report}")
    if options.save is not None:
        results.save(options.save)
        print_note(f"results saved in {options.save}")


def _fit(
    options: argparse.Namespace, data: DataLike, at: pd.DataFrame | None
) -> EnsembleResults:
    values = vars(options)
    return fit(
        options.formula,
        data,
        k=None if options.k is None else _size(options.k),
        B=options.B if options.B in ("auto", "complete") else _whole(options.B),
        replace=not options.without_replacement,
        at=None if KERNELS[options.kernel].coefficients else at,
        rng=options.seed,
        eval_env="restricted",
        **{name: values[name] for name in UNCHANGED if values[name] is not None},
        **dict(map(_option, options.option)),
    )


def _check(options: argparse.Namespace) -> None:
    """Check the options before the data are read."""
    if "~" not in options.formula:
        swapped = " The formula comes first." if "~" in options.data else ""
        raise ValueError(
            f"the formula needs a response, a ~ and predictors, in quotes: "
            f'"y ~ x1 + x2"; got {options.formula!r}.{swapped}'
        )
    if not 0 < options.alpha < 1:
        raise ValueError(f"--alpha must lie between 0 and 1; got {options.alpha:g}.")
    if options.n_jobs == 0:
        raise ValueError("--n-jobs must be a number of threads, or -1 for all; got 0.")
    for name, _ in map(_option, options.option):
        _check_option(name)
    if options.data == options.at == STDIN:
        raise ValueError("the data and --at cannot both come from standard input.")
    inputs = [
        Path(name) for name in (options.data, options.at) if name not in (None, STDIN)
    ]
    for flag, paths, endings in (
        ("--out", options.out, tuple(WRITERS)),
        ("--plot", options.plot, PICTURES),
        ("--report", [options.report], (".html",)),
        ("--save", [options.save], ()),
    ):
        for path in paths:
            if path is not None:
                check_output(flag, path, endings, inputs)
    _check_picture(options)


def _check_picture(options: argparse.Namespace) -> None:
    about_one = options.plot_kind in ("profile", "partial dependence")
    if not options.plot and (options.plot_kind or options.plot_of):
        raise ValueError("--plot-kind and --plot-of need --plot, the file to draw to.")
    if about_one and options.plot_of is None:
        raise ValueError(f"--plot-kind {options.plot_kind!r} needs --plot-of COLUMN.")
    if options.plot_of is not None and not about_one:
        raise ValueError(
            "--plot-of is for --plot-kind profile and 'partial dependence'."
        )


def _read_tables(options: argparse.Namespace) -> tuple[DataLike, QueryPoints | None]:
    text_format = parse_format(
        options.sep, options.encoding, options.decimal, options.thousands, options.na
    )
    data = open_table(options.data, text_format).data
    if options.at is None:
        return data, None
    not_in_dot = options.groups, options.weights
    predictors = list_predictors(options.formula, data, not_in_dot)
    points = read_query_points(
        *(options.at, text_format, data, predictors),
        keep_missing=options.missing == "pass",
    )
    if points.warning:
        print(f"vstatkit: warning: {points.warning}", file=sys.stderr)
    return data, points


def _option(text: str) -> tuple[str, Any]:
    """Read `name=value`; numbers, true and false are such, anything else is text."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip().isidentifier():
        raise ValueError(f"--option must be NAME=VALUE; got {text!r}.")
    try:
        parsed = json.loads(value.lower() if value in ("True", "False") else value)
    except ValueError:
        parsed = value
    return name.strip(), parsed


def _check_option(name: str) -> None:
    """Refuse arguments that have their own option or that the command sets."""
    if name in ("formula", "data", "eval_env"):
        raise ValueError(f"--option is not for {name}, which the command sets.")
    if name in ARGUMENTS and name not in ONLY_BY_OPTION:
        others = {"replace": "--no-replace", "rng": "--seed"}
        flag = others.get(name, f"--{name.replace('_', '-')}")
        raise ValueError(f"--option is not for {name}: use {flag}.")


def _size(text: str) -> int | float:
    """Read a whole number, or a fraction."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise ValueError(f"--k: expected a number; got {text!r}.") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f"--B must be a number of learners, 'auto' or 'complete'; got {text!r}."
        ) from None
