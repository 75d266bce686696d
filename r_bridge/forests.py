"""Kinds of R forests: how each is read, adopted and checked."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from r_bridge import session
from r_bridge.adopt import AdoptedForest, ReadTrees, check_columns
from r_bridge.availability import Availability, require
from r_bridge.columns import aligned_frame, kind_of
from r_bridge.compare import Comparison
from r_bridge.convert import to_r_frame, trees_first
from r_bridge.objects import RObject
from r_bridge.packages import FOREST_PACKAGES
from r_bridge.training import check_rows, check_training, oob_scores
from vstatkit import EnsembleResults, VstatkitWarning
from vstatkit._typing import DataLike, Floats, Ints
from vstatkit.ensemble.oob_scores import Scores
from vstatkit.formula.data_frames import as_frame

# Comparisons with R by the setting that they were made in
Sections = Mapping[str, Sequence[Comparison]]

_RESPONSE = """
function(forest) {
  given <- as.list(forest$call)[-1]
  named <- given$dependent.variable.name
  if (is.character(named)) return(named)
  first <- if (is.null(given$formula) && length(given)) given[[1]] else given$formula
  formula <- is.call(first) && identical(first[[1]], as.name("~")) && length(first) == 3
  if (formula) paste(deparse(first[[2]]), collapse = " ")
}
"""


@dataclass(frozen=True)
class Fitted:
    """A fitted model in R, with its description."""

    model: RObject
    said: Mapping[str, Any]  # what the R function `about` of its kind returned
    counts: Ints  # (B, n): in-bag counts
    columns: list[str]  # predictors
    classes: tuple[str, ...] | None  # levels of a categorical response
    response: str | None  # name of the response, if known


@dataclass(frozen=True)
class RForest:
    """A kind of forest of an R package.

    For most packages the R code of `about` and `trees` is enough; where R's answers
    need more work, a subclass overrides `read_values`, `check`, `unlike` or `adopt`.

    Attributes
    ----------
    package : str
        R package that grows the forests.
    r_class : str
        Class that fitted models have in R.
    maker : str
        R function that grows them, for messages.
    install : str
        Command that installs the package.
    about : str
        R code of `function(model)` that gives a list: `counts`, the matrix
        (rows, trees) of in-bag counts, NULL if it was not kept; `columns`, the names
        of the predictors; and, where they apply, `classes` (levels of the response,
        NULL for regression), `grown` (FALSE if the trees were not kept), `replace`,
        `response`, `y`, `oob` (out-of-bag predictions, by which the training data
        are checked), and `unlike` (text: how rows are drawn, if not all alike).
    trees : str
        R code of `function(model, newdata, threads)` that gives every tree's
        predictions, (points, trees) or (points, classes, trees).
    keep_inbag, keep_trees : str
        What to refit with if the model has not kept its counts or its trees.
    compare : callable or None
        Gives comparisons for the certificate, from the seeds of the data sets and
        what is installed.
    record : callable or None
        Grows forests, and gives what `python -m r_bridge.record` writes.
    """

    package: str
    r_class: str
    maker: str
    install: str
    about: str = ""
    trees: str = ""
    keep_inbag: str = "an option that keeps the in-bag counts"
    keep_trees: str = "an option that keeps the trees"
    compare: Callable[[Sequence[int], Availability], Sections] | None = None
    record: Callable[[], dict[str, Any]] | None = None

    def adopt(
        self,
        model: Any,
        data: DataLike,
        newdata: DataLike,
        *,
        variance: str = "auto",
        threads: int = 1,
    ) -> EnsembleResults:
        """Convert a fitted model to results; see `r_bridge.from_forest`."""
        found = self.find(model)
        fitted = self.describe(found)
        frame = as_frame(data)
        check_rows(frame, fitted.counts.shape[1])
        read = self.reader(fitted, to_r_frame(frame), threads)
        check_columns(frame, fitted.columns)
        x = frame[fitted.columns]
        self.check_training(x, fitted, read)
        for how in self.unlike(fitted, frame):
            warnings.warn(
                f"this forest draws rows {how}; the variances here are for rows that "
                "are drawn alike.",
                VstatkitWarning,
                stacklevel=3,
            )
        adopted = AdoptedForest(
            package=self.package,
            counts=fitted.counts,
            read=read,
            columns=tuple(fitted.columns),
            kinds={name: kind_of(x[name]) for name in fitted.columns},
            replace=self.draws_again(fitted),
            response=fitted.response or "y",
            classes=fitted.classes,
            scores=self.scores(fitted, frame),
        )
        return adopted.results(newdata, frame, frame.index, variance)

    def find(self, model: Any) -> RObject:
        """Find a fitted model, and check that it is of this kind."""
        require("R", "rpy2", self.package)
        session.keep("loadNamespace", self.package)
        found = session.find(model)
        if self.r_class not in found.classes:
            raise TypeError(
                f"`model` must be a forest of {self.maker}; its class in R is "
                f"{' '.join(found.classes)}."
            )
        return found

    def describe(self, model: RObject) -> Fitted:
        """Read the description of a fitted model, and check that it is complete."""
        said = session.call(self.about, model)
        if said.get("counts") is None:
            raise ValueError(
                f"this {self.package} forest does not store which rows each tree has "
                f"seen. Refit it with {self.keep_inbag}."
            )
        if not said.get("grown", [True])[0]:
            raise ValueError(
                f"this {self.package} model does not store its trees. Refit it with "
                f"{self.keep_trees}."
            )
        self.check(said)
        classes, response = said.get("classes"), said.get("response")
        if response is None:
            response = session.call(_RESPONSE, model)
        return Fitted(
            model=model,
            said=said,
            counts=trees_first(said["counts"]).astype(np.int64),
            columns=[str(name) for name in said["columns"]],
            classes=None if classes is None else tuple(map(str, classes)),
            response=None if response is None else str(response[0]),
        )

    def reader(self, fitted: Fitted, train: RObject, threads: int) -> ReadTrees:
        """Return the function that predicts with every tree."""

        def read(points: pd.DataFrame) -> Floats:
            self.check_points(points)
            query = aligned_frame(points, train)
            found = session.call(self.trees, fitted.model, query, threads)
            return self.read_values(found, fitted, len(points))

        return read

    def check(self, said: Mapping[str, Any]) -> None:
        """Raise an error for models without a variance; none by default."""

    def check_points(self, points: pd.DataFrame) -> None:
        """Raise an error for query points that R cannot predict; none by default."""

    def read_values(self, found: Any, fitted: Fitted, n_points: int) -> Floats:
        """Convert the output of `trees` to values, (B, m) or (B, m, classes)."""
        values = trees_first(found)
        if fitted.classes is None:
            return values.reshape(len(values), n_points)
        return values.reshape(len(values), n_points, -1)

    def check_training(self, x: pd.DataFrame, fitted: Fitted, read: ReadTrees) -> None:
        """Raise an error if the data do not give the model's out-of-bag predictions."""
        oob = fitted.said.get("oob")
        if oob is not None:
            check_training(x, fitted.counts, read, oob)

    def unlike(self, fitted: Fitted, frame: pd.DataFrame) -> list[str]:
        """Describe how rows are drawn, if not with equal probabilities."""
        given = fitted.said.get("unlike")
        return [] if given is None else [str(text) for text in given]

    def draws_again(self, fitted: Fitted) -> bool:
        """Return whether subsamples were drawn with replacement."""
        given = fitted.said.get("replace")
        # Subsamples that were given to R may be without replacement.
        return (given is None or bool(given[0])) and bool(fitted.counts.max() > 1)

    def scores(self, fitted: Fitted, frame: pd.DataFrame) -> Scores | None:
        """Score R's out-of-bag predictions, if the responses are known."""
        y = fitted.said.get("y")
        known = frame.get(fitted.response) if y is None else pd.Series(list(y))
        return oob_scores(known, fitted.said.get("oob"), fitted.classes)


# Kinds of forests by the class that their models have in R
FORESTS: dict[str, RForest] = {}


def register_forest(forest: RForest) -> RForest:
    """Add a kind of forest, so that the bridge can adopt and check it.

    `available()` then lists its package, `from_forest` takes its models, and the
    certificate includes its comparisons.

    Parameters
    ----------
    forest : RForest
        What to add. No other kind may have its class in R.

    Returns
    -------
    RForest
        The same.
    """
    if forest.r_class in FORESTS:
        raise ValueError(
            f"forests of class {forest.r_class!r} are registered already, by "
            f"{FORESTS[forest.r_class].package}."
        )
    FORESTS[forest.r_class] = forest
    FOREST_PACKAGES.setdefault(forest.package, forest.install)
    return forest


def from_forest(
    model: Any,
    data: DataLike,
    newdata: DataLike,
    *,
    variance: str = "auto",
    threads: int = 1,
) -> EnsembleResults:
    """Compute standard errors for a forest fitted by any registered R package.

    Parameters
    ----------
    model : str, path or R object
        Name of the fitted model in the running R, path of an `.rds` file, or an
        rpy2 object. Its class decides how it is read.
    data, newdata : DataFrame or dict of columns
        Its training data, row by row, and the query points.
    variance : str
        Variance estimator, as in `vstatkit.fit`.
    threads : int
        Threads that R uses, where the package lets one choose.

    Returns
    -------
    EnsembleResults
        As from `from_ranger`, `from_randomforest` and `from_grf`; for other
        packages, as defined by their `register_forest`.
    """
    require("R", "rpy2")
    found = session.find(model)
    known = [FORESTS[name] for name in found.classes if name in FORESTS]
    if not known:
        makers = ", ".join(forest.maker for forest in FORESTS.values())
        raise TypeError(
            f"`model` must be a forest of one of {makers}; its class in R is "
            f"{' '.join(found.classes)}. `register_forest` adds other packages."
        )
    return known[0].adopt(found, data, newdata, variance=variance, threads=threads)
