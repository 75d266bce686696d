"""The `vstatkit` command."""

import argparse
import importlib
import importlib.util
import os
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from vstatkit import __version__, datasets, plots
from vstatkit.api import fit
from vstatkit.exceptions import VstatkitError
from vstatkit.shell import fit_command
from vstatkit.storage.atomic_files import write_whole
from vstatkit.studies import registry
from vstatkit.studies.registry import QUICK_FOLDER, reproduce

# Exit status of a program whose reader has gone: 128 and SIGPIPE's number.
BROKEN_PIPE = 141
# Line below an error that names arguments or code of Python.
PYTHON_NOTE = (
    "arguments of Python are options of the command: `n_jobs` is --n-jobs, `rng` is "
    "--seed, and options of a kernel are --option NAME=VALUE. --na, --decimal and "
    "--thousands describe how the file writes numbers."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    try:
        import_plugins(arguments)
        options = _options(arguments)
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            status = int(options.run(options))
        sys.stdout.flush()  # a reader that has gone is noticed here at the latest
    except BrokenPipeError:
        # What is still buffered would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (VstatkitError, ValueError, TypeError, OSError) as error:
        print(f"vstatkit: error: {error}", file=sys.stderr)
        if "`" in str(error) or "data[" in str(error):
            print(f"vstatkit: note: {PYTHON_NOTE}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("vstatkit: interrupted", file=sys.stderr)
        return 130
    return status


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        message = f"unrecognized arguments: {' '.join(unknown)}"
        formula = getattr(options, "formula", "~")
        if "~" not in formula:  # the shell took ~ for the home directory
            message += (
                '\nPut the formula in quotes: vstatkit fit "y ~ x1 + x2" data.csv'
            )
        parser.error(message)
    return options


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning in one line, without the place in the code."""
    print(f"vstatkit: warning: {message}", file=sys.stderr)


def _plugins() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a module, or a .py file, that registers kernels, designs, "
        "variance estimators or studies",
    )
    return parser


def import_plugins(arguments: Sequence[str] | None) -> None:
    """Import what may add to the choices, before they are read."""
    for plugin in _plugins().parse_known_args(arguments)[0].plugin:
        if plugin.endswith(".py"):
            _import_file(Path(plugin))
        elif importlib.util.find_spec(plugin) is None:
            raise ValueError(
                f"--plugin must be a module that Python finds, or a .py file; got "
                f"{plugin}."
            )
        else:
            importlib.import_module(plugin)


def _import_file(path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path} to import as a plugin.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} cannot be imported as a plugin.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # data classes look their module up
    spec.loader.exec_module(module)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vstatkit",
        description="Ensembles with believable standard errors.",
        parents=[_plugins()],
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="command")
    demo = commands.add_parser("demo", help="fit built-in data and draw a picture")
    demo.add_argument(
        "--picture", type=Path, default=Path("vstatkit-demo.png"), metavar="FILE"
    )
    demo.set_defaults(run=_demo)
    fits = commands.add_parser("fit", help="fit a formula to a CSV or Parquet file")
    fit_command.add_options(fits)
    fits.set_defaults(run=fit_command.run)
    _add_reproduce(
        commands.add_parser("reproduce", help="repeat the paper, or the validity study")
    )
    return parser


def _add_reproduce(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    studies = [
        f"  {study.part:<10}{study.description} ({study.iterations} {study.unit})"
        for study in registry.STUDIES.values()
    ]
    listed = ["studies:", *studies, f"  {registry.ALL:<10}the whole paper"]
    parser.epilog = "\n".join(listed)
    parser.add_argument("part", choices=registry.parts())
    parser.add_argument(
        "--iterations",
        type=int,
        help="number of data sets (table1: splits) instead of the study's own; for a "
        "part of several studies at most their own",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("vstatkit-paper"),
        metavar="DIR",
        help="directory for CSV, Markdown and PNG files, and for checkpoints, from "
        "which an interrupted run resumes",
    )
    parser.add_argument("--n-jobs", type=int, default=-1, help="threads; all cores")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="PATH",
        help="directory with boston.csv and retinopathy.arff, or one of them; by "
        "default $VSTATKIT_DATA",
    )
    for name, study in registry.options().items():
        aliases = [_flag(a) for a, option in study.aliases.items() if option == name]
        parser.add_argument(
            *(_flag(name), *aliases),
            type=lambda names: [name.strip() for name in names.split(",")],
            metavar="NAMES",
            help=f"{study.part}: {study.options[name]}",
        )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small studies, to check the machinery; files go into DIR/quick",
    )
    parser.set_defaults(run=_reproduce)


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _reproduce(options: argparse.Namespace) -> int:
    start = time.monotonic()
    reports = reproduce(
        options.part,
        options.out,
        iterations=options.iterations,
        seed=options.seed,
        n_jobs=options.n_jobs,
        data=options.data,
        quick=options.quick,
        progress=True,
        **{name: getattr(options, name) for name in registry.options()},
    )
    for report in reports:
        print(f"# {report.name}\n\n{report.markdown}\n", flush=True)
        elapsed = time.monotonic() - start
        print(f"{report.name}: {elapsed:.0f} s since the start", file=sys.stderr)
    folder = options.out / QUICK_FOLDER if options.quick else options.out
    print(f"Files written to {folder.resolve()}")
    return 0


def _demo(options: argparse.Namespace) -> int:
    data = datasets.diabetes()
    print('vs.fit("target ~ .", vs.datasets.diabetes(), rng=1)\n')
    results = fit("target ~ .", data, rng=1)
    print(results.summary())
    print("\nThe first five patients, with 95% intervals:\n")
    table = results.get_prediction(data.head()).summary_frame()
    with pd.option_context("display.width", 120, "display.max_columns", None):
        print(table.round(4))
    from matplotlib.figure import Figure  # noqa: PLC0415 only pictures need it

    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plots.plot_effects(results, ax=left)
    plots.plot_profile(results, "bmi", ax=right)
    kind = options.picture.suffix[1:] or "png"
    write_whole(
        options.picture, lambda file: figure.savefig(file, dpi=150, format=kind)
    )
    print(f"\nPicture written to {options.picture.resolve()}")
    return 0
