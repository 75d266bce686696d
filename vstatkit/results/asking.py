"""Methods of results that answer questions about predictors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from vstatkit._typing import DataLike
from vstatkit.ensemble.copies import How

if TYPE_CHECKING:
    from vstatkit.results.answers import FeatureTest
    from vstatkit.results.ensemble_results import EnsembleResults
    from vstatkit.results.importance import Importance


def _results(asking: "Asking") -> "EnsembleResults":
    """Tell the type checker what has these methods."""
    return cast("EnsembleResults", asking)


class Asking:
    """Methods of results that answer questions about predictors."""

    def feature_test(
        self,
        variables: str | Sequence[str],
        *,
        how: How = "conditional",
        at: DataLike | None = None,
        points: int = 200,
        copies: int = 2,
        learners: int | None = None,
    ) -> "FeatureTest":
        """Test whether predictors tell anything of the response."""
        from vstatkit.results.feature_tests import feature_test  # noqa: PLC0415

        return feature_test(
            _results(self),
            variables,
            how=how,
            at=at,
            points=points,
            copies=copies,
            learners=learners,
        )

    def importance(
        self,
        variables: Sequence[str] | None = None,
        *,
        how: How = "conditional",
        copies: int = 5,
        learners: int | None = None,
    ) -> "Importance":
        """Say what each predictor saves of the out-of-bag loss."""
        from vstatkit.results.importance import importance  # noqa: PLC0415

        return importance(
            _results(self), variables, how=how, copies=copies, learners=learners
        )
