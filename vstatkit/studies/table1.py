"""Table 1: prediction error of forests by sampling and subsample size."""

import hashlib
import math
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit import datasets
from vstatkit._typing import Floats
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.exceptions import VstatkitError
from vstatkit.kernels.tree import TreeKernel, tree_kernel
from vstatkit.sampling.design import IidDesign
from vstatkit.sampling.registry import subsample_size
from vstatkit.studies.dgps import Mars
from vstatkit.studies.experiment import Draw, Record, iteration_stream
from vstatkit.studies.registry import DATA_VARIABLE, Plan, resolve_data_path
from vstatkit.studies.report import (
    COLOURS,
    Report,
    clean_axes,
    format_count,
    format_numbers,
    markdown_table,
    read_printed,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ITERATIONS = 20
FORESTS = 20
TREES = 100
TEST_SHARE = 0.2
FRACTIONS = (0.2, 0.4, 0.6, 0.8, 1.0)
# Whether subsamples are drawn with replacement, by the letter of the column.
STATISTICS = {"U": False, "V": True}
WITHIN = 3.0  # largest accepted distance from print, in standard deviations over splits
R_SECONDS = 60  # time limit for R to write a data set


class MissingDataError(VstatkitError):
    """A data set is missing; the message says how to get it."""


@dataclass(frozen=True, eq=False)
class Observations:
    """A fixed table of predictors and responses, or class codes."""

    X: Floats
    y: Floats
    n_classes: int | None

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the table, whatever the stream."""
        return self.X, self.y

    def fingerprint(self) -> str:
        """Hash the table, so that checkpoints of another table raise an error."""
        return hashlib.sha256(self.X.tobytes() + self.y.tobytes()).hexdigest()


@dataclass(frozen=True)
class SimulatedTable:
    """A table drawn again for every split; the response is `y`."""

    generator: Mars
    n_classes: None = None

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw a table."""
        frame = self.generator(rng)
        return _numbers(frame.drop(columns="y")), _numbers(frame["y"])

    def fingerprint(self) -> str:
        """Describe the generator."""
        return repr(self.generator)


Source = Observations | SimulatedTable


def load_dataset(name: str, path: Path | None = None) -> Source:
    """Load a data set of Table 1 by name, or raise `MissingDataError`.

    `path` is a directory with `boston.csv` and `retinopathy.arff`, or one of the two
    files; by default the value of the environment variable `VSTATKIT_DATA`.
    """
    return SOURCES[name](resolve_data_path(path))


def _from_frame(frame: pd.DataFrame) -> Observations:
    """Take the last column as the response."""
    if frame.isna().any(axis=None):
        raise MissingDataError(
            f"the data must have no missing values; column "
            f"{frame.columns[frame.isna().any()][0]!r} has some."
        )
    X, response = _numbers(frame.iloc[:, :-1]), frame.iloc[:, -1]
    if isinstance(response.dtype, pd.CategoricalDtype):
        codes = np.asarray(response.cat.codes, dtype=np.float64)
        return Observations(X, codes, len(response.cat.categories))
    return Observations(X, _numbers(response), None)


def _numbers(frame: pd.DataFrame | pd.Series) -> Floats:
    return np.ascontiguousarray(frame.to_numpy(dtype=np.float64))


def _find(path: Path | None, names: tuple[str, ...]) -> Path | None:
    """Find a file with one of these names; a given file must have their suffix."""
    if path is None:
        return None
    if path.is_file():
        return path if path.suffix == Path(names[0]).suffix else None
    return next((path / name for name in names if (path / name).is_file()), None)


def _boston(path: Path | None) -> Observations:
    file = _find(path, ("boston.csv", "Boston.csv"))
    frame = _boston_from_r() if file is None else pd.read_csv(file)
    frame.columns = frame.columns.str.lower()
    if "medv" not in frame or frame.shape != (506, 14):
        raise MissingDataError(
            f"boston must have 506 rows and 14 columns, `medv` among them, as R's "
            f"MASS::Boston; {file or 'R'} has {frame.shape[0]} rows and the columns "
            f"{', '.join(frame.columns)}."
        )
    return _from_frame(frame[[*frame.columns.drop("medv"), "medv"]])


def _boston_from_r() -> pd.DataFrame:
    """Read MASS::Boston from R."""
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "boston.csv"
        code = "write.csv(MASS::Boston, commandArgs(TRUE)[1], row.names = FALSE)"
        command = ["Rscript", "--vanilla", "-e", code, str(target)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=R_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            raise MissingDataError(
                "boston is not there: install R with its package MASS (Debian: "
                "r-cran-mass), or put MASS::Boston as boston.csv into the directory "
                f"that --data or {DATA_VARIABLE} names."
            ) from error
        return pd.read_csv(target)


def _retinopathy(path: Path | None) -> Observations:
    file = _find(path, ("retinopathy.arff", "messidor_features.arff"))
    if file is None:
        raise MissingDataError(
            "retinopathy is not there: download the file messidor_features.arff of "
            "UCI's data set 329, Diabetic Retinopathy Debrecen "
            "(https://archive.ics.uci.edu/dataset/329), and name it, or its "
            f"directory, by --data or {DATA_VARIABLE}."
        )
    from scipy.io import arff  # noqa: PLC0415 slow import

    try:
        frame = pd.DataFrame(arff.loadarff(file)[0])
    except (OSError, ValueError, StopIteration, NotImplementedError) as error:
        raise MissingDataError(
            f"retinopathy: {file} cannot be read as an ARFF file."
        ) from error
    if frame.shape != (1151, 20):
        raise MissingDataError(
            f"retinopathy must have 1151 rows and 20 columns; {file} has "
            f"{frame.shape[0]} and {frame.shape[1]}."
        )
    response = pd.Categorical(frame.iloc[:, -1].astype(float))
    return _from_frame(frame.iloc[:, :-1].assign(response=response))


# Data sets in the order of the table.
SOURCES: dict[str, Callable[[Path | None], Source]] = {
    "boston": _boston,
    "diabetes": lambda path: _from_frame(datasets.diabetes(scaled=True)),
    "MARS": lambda path: SimulatedTable(Mars()),
    "iris": lambda path: _from_frame(datasets.iris()),
    "digits": lambda path: _from_frame(datasets.digits()),
    "retinopathy": _retinopathy,
    "breast_cancer": lambda path: _from_frame(datasets.breast_cancer()),
}


@dataclass(frozen=True)
class Prediction:
    """Random splits of a data set, with forests fitted to one part and scored."""

    dataset: str
    source: Source
    forests: int = FORESTS  # for each split, sampling and fraction
    trees: int = TREES  # in each forest
    quick: bool = False

    @property
    def name(self) -> str:
        """Name of its random streams and checkpoints."""
        return f"table1-{self.dataset}{'-quick' if self.quick else ''}"

    def settings(self) -> dict[str, Any]:
        """Describe all that the numbers depend on apart from the seed."""
        return {
            "data": self.source.fingerprint(),
            "forests": self.forests,
            "trees": self.trees,
            "fractions": FRACTIONS,
            "test_share": TEST_SHARE,
        }

    def run(self, seed: int, iteration: int) -> Record:
        """Split, fit and score; return arrays of shape (fractions, forests)."""
        rng = iteration_stream(seed, self.name, iteration, Draw.DATA)
        X, y = self.source.draw(rng)
        order = rng.permutation(len(y))
        n_test = math.ceil(TEST_SHARE * len(y))
        test, train = order[:n_test], order[n_test:]
        kernel = tree_kernel(
            "forest",  # p/3 or sqrt(p) features are tried at each split
            X[train],
            y[train],
            n_classes=self.source.n_classes,
            options={},
        )
        draws = iteration_stream(seed, self.name, iteration, Draw.ENSEMBLE)
        record = {}
        for letter, replace in STATISTICS.items():
            seeds = draws.integers(2**62, size=len(FRACTIONS)).tolist()
            scores = []
            for fraction, key in zip(FRACTIONS, seeds, strict=True):
                k = subsample_size(fraction, len(train))
                design = IidDesign(len(train), k, replace, key)
                scores.append(self._scores(kernel, X[test], y[test], design))
            record[letter] = np.stack(scores)
        return record

    def _scores(
        self, kernel: TreeKernel, X: Floats, y: Floats, design: IidDesign
    ) -> Floats:
        """Score forests that consist of consecutive trees of one ensemble."""
        task = Task(kernel, design, X, None, keep=False, oob=False)
        scores = []
        for start in range(0, self.forests * self.trees, self.trees):
            stop = start + self.trees
            values = evaluate(task, start, stop, n_jobs=1, progress=False).values
            mean = values.mean(axis=0).reshape(len(y), -1)
            scores.append(score(y, mean, kernel.n_classes))
        return np.array(scores)


# Records by data set, and why other data sets are missing.
Findings = tuple[Mapping[str, Record], Mapping[str, str]]


def run(plan: Plan) -> Findings:
    """Score every data set that is available."""
    records: dict[str, Record] = {}
    missing: dict[str, str] = {}
    size = {"forests": 2, "trees": 10} if plan.quick else {}
    for name in SOURCES:
        try:
            source = load_dataset(name, plan.path)
        except MissingDataError as error:
            missing[name] = str(error)
            continue
        experiment = Prediction(name, source, quick=plan.quick, **size)
        records[name] = plan.run(experiment, ITERATIONS)
    return records, missing


def score(y: Floats, predicted: Floats, n_classes: int | None) -> float:
    """Compute the root mean squared error, or the share of correct classes.

    `predicted` has one column of means, of probabilities of the second of two
    classes, or a column of probabilities for each class.
    """
    if n_classes is None:
        return float(np.sqrt(np.mean((predicted[:, 0] - y) ** 2)))
    classes = predicted[:, 0] > 0.5 if n_classes == 2 else predicted.argmax(axis=1)
    return float(np.mean(classes == y))


def compare(dataset: str, record: Record) -> pd.DataFrame:
    """Compare the measured scores of a data set with the printed ones.

    `measured` is the mean over splits and forests, `split_sd` the standard deviation
    over splits of a split's mean, `forest_sd` the one over forests on the same split
    (printed in parentheses, as `printed_sd`), and `deviations` the difference in units
    of `split_sd`.
    """
    rows = []
    for letter, (j, fraction) in product(STATISTICS, enumerate(FRACTIONS)):
        printed = _printed_rows(dataset, letter).set_index("fraction").loc[fraction]
        scores = record[letter][:, j]  # splits, forests
        means = scores.mean(axis=1)
        difference, spread = means.mean() - printed["score"], means.std(ddof=1)
        rows.append(
            {
                "dataset": dataset,
                "statistic": letter,
                "fraction": fraction,
                "printed": printed["score"],
                "measured": means.mean(),
                "difference": difference,
                "split_sd": spread,
                "deviations": difference / spread if spread > 0 else np.nan,
                "within": bool(abs(difference) <= WITHIN * spread),
                "printed_sd": printed["standard_error"],
                "forest_sd": scores.std(axis=1, ddof=1).mean(),
            }
        )
    return pd.DataFrame(rows)


def _printed_rows(dataset: str, letter: str) -> pd.DataFrame:
    printed = read_printed("table1")
    return printed[(printed["dataset"] == dataset) & (printed["statistic"] == letter)]


def larger_is_better(dataset: str) -> bool:
    """Return whether the score is an accuracy instead of an error."""
    return dataset not in ("boston", "diabetes", "MARS")


def best_fractions(dataset: str, record: Record) -> pd.DataFrame:
    """Test the first observation: scores decline on both sides of a best fraction.

    For U and V: the `best` fraction measured and printed, the number of other
    fractions it `beats` beyond twice the paired standard error over splits, and
    whether the score `declines`: no step away from the best fraction improves it
    beyond twice its paired standard error.
    """
    sign = 1.0 if larger_is_better(dataset) else -1.0
    rows = []
    for letter in STATISTICS:
        merit = sign * record[letter].mean(axis=2)  # splits, fractions
        top = int(merit.mean(axis=0).argmax())
        printed = sign * _printed_rows(dataset, letter)["score"].to_numpy()
        others = [j for j in range(len(FRACTIONS)) if j != top]
        gains = [_gain(merit[:, top] - merit[:, j]) for j in others]
        steps = [merit[:, j + 1 if j < top else j - 1] - merit[:, j] for j in others]
        rows.append(
            {
                "dataset": dataset,
                "statistic": letter,
                "best": FRACTIONS[top],
                "best_printed": FRACTIONS[int(printed.argmax())],
                "beats": sum(gain > 2 for gain in gains),
                "declines": all(_gain(step) > -2 for step in steps),
            }
        )
    return pd.DataFrame(rows)


def _gain(gain: Floats) -> float:
    """Divide the mean of paired gains by its standard error."""
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return float(gain.mean() / error) if error > 0 else float(np.sign(gain.mean()) * 99)


def discrepancies(dataset: str, record: Record) -> dict[str, Any]:
    """Test the second observation: U varies more with the fraction than V.

    `U` and `V` are the range of the mean score over fractions, measured and printed;
    `gain` is the paired excess of U over V, over the ranges of single splits, in
    standard errors.
    """
    row: dict[str, Any] = {"dataset": dataset}
    by_split = {}
    for letter in STATISTICS:
        means = record[letter].mean(axis=2)
        row[letter] = float(np.ptp(means.mean(axis=0)))
        by_split[letter] = np.ptp(means, axis=1)
        printed = _printed_rows(dataset, letter)["score"].to_numpy()
        row[f"{letter}_printed"] = float(np.ptp(printed))
    return row | {"gain": _gain(by_split["U"] - by_split["V"])}


def report(findings: Findings) -> Report:
    """Report printed and measured scores, and the paper's two observations."""
    records, missing = findings
    items = records.items()
    table = pd.concat([compare(name, record) for name, record in items])
    best = pd.concat([best_fractions(name, record) for name, record in items])
    spread = pd.DataFrame([discrepancies(name, record) for name, record in items])
    splits, _, forests = next(iter(records.values()))["U"].shape
    pieces = [
        f"{splits} random splits, {forests} forests on each. `split sd` is the "
        "standard deviation over splits of a split's mean score; `forest sd` that "
        "over forests on one split, which is what print shows in parentheses "
        "(`printed sd`).",
        *(f"Left out: {reason}" for reason in missing.values()),
        *_report_scores(table),
        *_report_best(best),
        *_report_spread(spread),
        "![Scores by fraction, printed and measured](table1.png)",
    ]
    tables = {"table1": table, "table1-best": best, "table1-discrepancy": spread}
    return Report("table1", "\n\n".join(pieces), tables, {"table1": draw(table)})


def _report_scores(table: pd.DataFrame) -> list[str]:
    cells = ", ".join(
        f"{row.dataset} {row.statistic} {row.fraction}"
        for row in table[~table["within"]].itertuples()
    )
    shown = table[["dataset", "statistic", "fraction"]].copy()
    columns = ("printed", "measured", "difference", "split_sd")
    for column in (*columns, "printed_sd", "forest_sd"):
        shown[column.replace("_", " ")] = format_numbers(table[column], 4)
    marks = np.where(table["within"], "", "*")
    shown["deviations"] = format_numbers(table["deviations"], 2) + marks
    return [
        f"The printed score lies within {WITHIN:.0f} split-to-split standard "
        f"deviations of the measured mean in {format_count(table['within'])} cells"
        + (f"; not in {cells}." if cells else "."),
        markdown_table(shown),
    ]


def _report_best(best: pd.DataFrame) -> list[str]:
    shown = pd.DataFrame(
        {
            "dataset": best["dataset"],
            "statistic": best["statistic"],
            "best printed": best["best_printed"],
            "best measured": best["best"],
            "others it beats": best["beats"].map("{} of 4".format),
            "declines away": np.where(best["declines"], "yes", "no"),
        }
    )
    beats_all = (best["beats"] == len(FRACTIONS) - 1).sum()
    at_end = best["best"].isin([FRACTIONS[0], FRACTIONS[-1]]).sum()
    return [
        "**First observation: there is a best fraction.** "
        f"Of {len(best)} rows, scores decline away from the best fraction in "
        f"{best['declines'].sum()} (no step away gains more than twice its paired "
        "standard error over splits); the best fraction beats all others beyond that "
        f"error in {beats_all}, is an end of the range (0.2 or 1.0) in {at_end}, and "
        f"is the printed one in {(best['best'] == best['best_printed']).sum()}.",
        markdown_table(shown),
    ]


def _report_spread(spread: pd.DataFrame) -> list[str]:
    larger = (spread["U"] > spread["V"]).sum()
    printed = (spread["U_printed"] > spread["V_printed"]).sum()
    clear = ", ".join(spread[spread["gain"] > 2]["dataset"]) or "none"
    against = ", ".join(spread[spread["gain"] < -2]["dataset"]) or "none"
    shown = spread[["dataset"]].copy()
    for letter in STATISTICS:
        shown[f"{letter} printed"] = format_numbers(spread[f"{letter}_printed"], 4)
        shown[f"{letter} measured"] = format_numbers(spread[letter], 4)
    gains = format_numbers(spread["gain"], 1)
    return [
        "**Second observation: U varies more with the fraction than V.** "
        "Largest less smallest mean score over fractions: U's exceeds V's in "
        f"{larger} of {len(spread)} data sets (print: {printed}). Taken within each "
        "split, where noise widens both, U's is larger by more than twice its paired "
        f"standard error over splits on {clear}; smaller on {against}.",
        markdown_table(shown.assign(**{"U − V by split, in standard errors": gains})),
    ]


def draw(table: pd.DataFrame) -> "Figure":
    """Plot printed and measured scores by fraction, with split sd as error bars."""
    from matplotlib.figure import Figure  # noqa: PLC0415 only figures need it

    names = list(dict.fromkeys(table["dataset"]))
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    axes = figure.subplots(2, 4).ravel()
    styles = {"U": ("o", "orange", -0.012, "x"), "V": ("s", "blue", 0.012, "+")}
    for ax, name in zip(axes, names, strict=False):
        for letter, (marker, colour, shift, printed) in styles.items():
            rows = table[(table["dataset"] == name) & (table["statistic"] == letter)]
            ax.errorbar(
                rows["fraction"] + shift,
                rows["measured"],
                yerr=rows["split_sd"],
                fmt=marker,
                color=COLOURS[colour],
                markersize=4.5,
                linewidth=1,
                label=f"{letter}, measured ± split sd",
            )
            ax.plot(
                rows["fraction"] + 3 * shift,
                rows["printed"],
                printed,
                color=COLOURS["black"],
                markersize=6.5,
                label=f"{letter}, printed",
            )
        ax.set_title(name, fontsize=10)
        ax.set_ylabel("Accuracy" if larger_is_better(name) else "RMSE", fontsize=9)
        ax.set_xticks(FRACTIONS)
        clean_axes(ax)
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    axes[-1].legend(*axes[0].get_legend_handles_labels(), loc="center", frameon=False)
    figure.supxlabel("Subsample size, as a fraction of the training data", fontsize=10)
    return figure
