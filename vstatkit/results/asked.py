"""What questions about predictors need: the training data, and copies of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Labels
from vstatkit.ensemble.conditional_copies import Copier
from vstatkit.ensemble.evaluation import Task
from vstatkit.ensemble.refit import Reader, grown, refitted_values
from vstatkit.formula.coding import Coding
from vstatkit.formula.input_checks import nearest
from vstatkit.kernels.base import BatchKernel
from vstatkit.results.continuation import Continuation

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


def training_predictors(results: "EnsembleResults") -> pd.DataFrame | None:
    """Take the predictors of the rows that were used; None where they are not held."""
    recipe, predictor = results.recipe, results.predictor
    if recipe is None or recipe.data is None:
        return None
    if predictor is None or predictor.coding is None:
        return None
    return recipe.data[list(predictor.coding.variables)]


USUAL_LEARNERS = 1000
"""Learners that answer a question, unless told otherwise."""


@dataclass(frozen=True)
class Asked:
    """Results that questions are asked of, with their training data.

    Attributes
    ----------
    results : EnsembleResults
        The fit.
    recipe : Continuation
        How it was fitted.
    coding : Coding
        How data become rows of the design matrix.
    frame : DataFrame
        The predictors, as they are in the data.
    n_learners : int
        Learners that are used, the first ones.
    """

    results: "EnsembleResults"
    recipe: Continuation
    coding: Coding
    frame: pd.DataFrame
    n_learners: int

    @classmethod
    def of(
        cls,
        results: "EnsembleResults",
        learners: int | None,
        what: str,
        usual: int = USUAL_LEARNERS,
    ) -> "Asked":
        """Take what is needed from results, or say what is missing."""
        recipe, coding = results.recipe, None
        if results.predictor is not None:
            coding = results.predictor.coding
        reason = None
        if recipe is None:
            reason = (
                "the training data, and these results hold none: they were loaded from "
                "a file or a pickle, are combinations of other results, or their "
                "learners were fitted elsewhere. Fit again with the same data and "
                f"rng={results.seed}"
            )
        elif coding is None:
            reason = (
                "a formula and learners that predict; the kernel "
                f"{results.info.kernel!r} is a statistic"
            )
        elif recipe.data is None:
            reason = (
                "the predictors in memory; these were read batch after batch. Fit to "
                "a data frame of some of the rows"
            )
        frame = training_predictors(results)
        if frame is None or recipe is None or coding is None:
            raise ValueError(f"{what} needs {reason}.")
        used = _count(results, learners, usual)
        return cls(results, recipe, coding, frame, used)

    @property
    def task(self) -> Task:
        """What was evaluated."""
        return self.recipe.task

    @property
    def n_jobs(self) -> int | None:
        """Workers."""
        return self.recipe.n_jobs

    def copier(self) -> Copier:
        """Get ready to make copies of predictors."""
        return Copier(self.frame, self.results.seed, self.task.rows, self.n_jobs)

    def names(self, given: str | Sequence[str]) -> list[str]:
        """Check names of predictors."""
        names = [given] if isinstance(given, str) else list(given)
        if not names:
            raise ValueError("name at least one predictor.")
        for name in names:
            if name not in self.coding.variables:
                raise ValueError(
                    f"{name!r} is not a predictor of the formula"
                    f"{nearest(name, self.coding.variables)} Its predictors are "
                    f"{', '.join(self.coding.variables)}."
                )
        return list(dict.fromkeys(names))

    def values(self, at: Floats) -> Floats:
        """Predict at coded rows with every learner that is used, as they are."""
        predictor = self.results.predictor
        assert predictor is not None
        L = self.n_learners
        if len(predictor.learners) < L:
            return refitted_values(self.task, at, L, self.n_jobs)
        own = replace(predictor, learners=predictor.learners[:L], centre=None)
        return own.values(at)

    @property
    def design_matrix(self) -> Floats:
        """The predictors, coded."""
        return np.asarray(getattr(self.task.kernel, "X"))  # noqa: B009 not in a protocol

    def reader(self, tables: Sequence[Floats]) -> Reader:
        """Get ready to ask the learners about rows of some tables."""
        predictor, L = self.results.predictor, self.n_learners
        assert predictor is not None
        learners = predictor.learners[:L]
        if len(learners) < L:
            learners = grown(self.task, L, self.n_jobs)
        return Reader(self.task, learners, tuple(tables), self.n_jobs)

    def labels(self, index: Labels) -> Labels:
        """Label predictions: the row, or the row and the class."""
        predictor = self.results.predictor
        assert predictor is not None
        return predictor.labels(index)


def _count(results: "EnsembleResults", learners: int | None, usual: int) -> int:
    """Count the learners that are used.

    Those of an iid design are a beginning of more: where they are grown in a moment,
    missing ones are. Other designs are used as they are.
    """
    if learners is not None and not (
        isinstance(learners, int | np.integer) and learners >= 2
    ):
        raise ValueError(
            f"`learners` must be a whole number from 2 on; got {learners!r}."
        )
    if results.design.name != "iid":
        return results.B
    if learners is not None:
        return int(learners)
    assert results.recipe is not None
    quick = isinstance(results.recipe.task.kernel, BatchKernel)
    return usual if quick else min(results.B, usual)


def check_number(name: str, number: Any) -> None:
    """Refuse anything but whole numbers from one on."""
    if not isinstance(number, int | np.integer) or number < 1:
        raise ValueError(f"`{name}` must be a whole number from 1 on; got {number!r}.")


def differences(
    results: "EnsembleResults", values: Floats, labels: Labels, title: str
) -> "EnsembleResults":
    """Make results of differences: those of kernels are kernels.

    Parameters
    ----------
    results : EnsembleResults
        Whose design and variance estimator are used.
    values : ndarray of shape (L, m)
        Differences, learner by learner.
    labels : Index of length m
        Their names.
    title : str
        Title of the summary.
    """
    info = results.info.derived(title)
    support = None if results.support is None else results.support.of_differences
    limit = None if results.limit is None else 2 * float(np.max(results.limit))
    return replace(
        results,
        values=values,
        labels=labels,
        limit=limit,
        support=support,
        tails=None if results.tails is None else results.tails.of_differences,
        null=np.zeros(values.shape[1]),
        info=info,
        effect_values=None,
        predictor=None,
        scores=None,
        recipe=None,
        reference=None,
    )
