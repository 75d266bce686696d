"""Learners that are fitted again when they are needed."""

from typing import Any

from vstatkit.ensemble.evaluate import Task, fit_learner


class AbsentLearner:
    """A learner of which only the values are at hand.

    It was fitted in another process and cannot be written to a file. Its subsample
    and its stream are known, so the first prediction fits the same learner again.

    Parameters
    ----------
    task : Task
        What is evaluated.
    number : int
        Which of the learners it is.
    """

    def __init__(self, task: Task, number: int) -> None:
        self._task = task
        self._number = number
        self._learner: Any = None

    @property
    def nbytes(self) -> int:
        """Bytes that it takes: as good as none."""
        return 0

    def fitted(self) -> Any:
        """Fit the learner, unless that has been done."""
        if self._learner is None:
            self._learner = fit_learner(self._task, self._number)
        return self._learner

    def __reduce__(self) -> tuple[Any, tuple[Any]]:
        return _itself, (self.fitted(),)  # a pickle holds the learner, not the data


class PassingLearner:
    """A learner that was not kept: it is fitted again for every use, and let go.

    Parameters
    ----------
    task : Task
        What is evaluated.
    number : int
        Which of the learners it is.
    """

    def __init__(self, task: Task, number: int) -> None:
        self._task = task
        self._number = number

    def fitted(self) -> Any:
        """Fit the learner; always the same one."""
        return fit_learner(self._task, self._number)


def _itself(learner: Any) -> Any:
    return learner


def at_hand(learner: Any) -> Any:
    """Give a learner that predicts, fitting it again if need be."""
    absent = isinstance(learner, AbsentLearner | PassingLearner)
    return learner.fitted() if absent else learner
