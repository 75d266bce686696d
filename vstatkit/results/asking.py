"""Methods of results that answer questions about predictors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, cast

if TYPE_CHECKING:
    from vstatkit.ensemble.conditional_copies import How
    from vstatkit.results.answers import InteractionTest
    from vstatkit.results.ensemble_results import EnsembleResults
    from vstatkit.results.importance import Importance, Variables


def _results(asking: "Asking") -> "EnsembleResults":
    """Tell the type checker what has these methods."""
    return cast("EnsembleResults", asking)


class Asking:
    """Methods of results that answer questions about predictors.

    What answers takes results as its argument, so that it is imported when asked for.
    """

    @property
    def feature_test(self) -> NoReturn:
        """Raise an error: `importance` answers the question."""
        raise AttributeError(
            "feature_test was removed: its p-values depended on the seed, and it found "
            "less than importance(), which tests the same null hypothesis. Use "
            "res.importance(['x1']).frame['p_value']."
        )

    @property
    def permutation_test(self) -> NoReturn:
        """Raise an error: `importance` answers the question."""
        raise AttributeError(
            "permutation_test was removed: it rejected irrelevant proxies of relevant "
            "predictors too often. Use res.importance(['x1']).frame['p_value'], or "
            "res.importance([('x1', 'x2')]) for several predictors together."
        )

    def importance(
        self,
        variables: "Variables" = None,
        *,
        how: "How" = "conditional",
        copies: int = 20,
        learners: int | None = None,
    ) -> "Importance":
        r"""Estimate each predictor's reduction in out-of-bag loss, and test it.

        Parameters
        ----------
        variables : str or sequence, optional
            Predictors, as columns of the data; all by default, one by one. A tuple of
            names among them is a set of predictors that are tested together.
        how : {"conditional", "permute"}
            What stands in the place of the predictor when the learners predict rows
            that they have not seen. "conditional": copies that depend on the other
            predictors as it does, but on the response only through these. The null is
            that the response does not depend on the predictor, given the others.
            "permute": its values in other rows. An irrelevant predictor that is a
            proxy for a relevant one then saves much, so there are neither p-values
            nor intervals.
        copies : int
            Copies that losses are averaged over.
        learners : int, optional
            Learners that are used: 500 trees by default, of which those that the fit
            does not have are grown; of other kernels at most those of the fit. Designs
            other than "iid" use all of the fit's. With `target="truth"` they are those
            that standard errors come from, not the stacked ensemble.

        Returns
        -------
        Importance
            Prints as a table; `frame` holds its numbers, `plot()` draws it. The loss is
            the squared error, of classes that of their probabilities, summed.

        Notes
        -----
        With f the out-of-bag prediction of a row, :math:`\tilde f` its mean with copies
        and g a prediction of the response from the other predictors, the importance is
        the mean of :math:`2 (y - g)(f - \tilde f)`. With ideal copies this has the
        expectation of :math:`(y - \tilde f)^2 - (y - f)^2`, the loss that is saved, but
        errors of the copies matter only if g has errors too; see `saved_losses`.

        The standard error is over data sets: it counts what every observation does
        through its own row and through the learners that saw it. The interval covers
        the expected importance of an ensemble of this size. The p-value is one-sided
        and uses another standard error, derived under the null (see `mean_saved`), and
        rows count less, by :math:`(1 - h)^2`, where no other row is near: h is the
        leverage of the row in the prediction g. `holm` controls the family-wise error
        rate, `bh` the false discovery rate.

        A copy is a prediction of the predictor from the others (see `explain`) plus
        the residual of another row; it has the values of the predictor in another
        order. Levels are drawn from out-of-bag shares. Several predictors are taken
        from the same row. The mean is over rows by their sampling weights, if there
        are any; copies and g are made without weights.

        References
        ----------
        Watson and Wright (2021), Testing conditional independence in supervised
        learning algorithms, Machine Learning 110. doi:10.1007/s10994-021-06030-6

        Williamson, Gilbert, Simon and Carone (2023), A general framework for inference
        on algorithm-agnostic variable importance, JASA 118.
        doi:10.1080/01621459.2021.2003200

        Candès, Fan, Janson and Lv (2018), Panning for gold: model-X knockoffs, JRSS B
        80. doi:10.1111/rssb.12265

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x2 + x4", data, B=200, rng=1)
        >>> res.importance().frame["importance"].idxmax()
        'x4'
        >>> res.importance([("x1", "x2")]).frame.index.item()
        'x1, x2'
        """
        from vstatkit.results.importance import importance  # noqa: PLC0415

        return importance(
            _results(self), variables, how=how, copies=copies, learners=learners
        )

    def interaction_test(
        self,
        first: str,
        second: str,
        *,
        grid: int = 3,
        rows: int = 50,
        learners: int | None = None,
    ) -> "InteractionTest":
        """Test whether two predictors are additive in the expectation of the ensemble.

        Parameters
        ----------
        first, second : str
            Predictors, as columns of the data.
        grid : int
            Values of each: all values of a number that has no more than these,
            otherwise quantiles; the most frequent levels of a category.
        rows : int
            Rows of the data, drawn by the seed, from which the other predictors are
            taken; contrasts are averaged over them.
        learners : int, optional
            Learners that are used, see `importance`; 1000 by default.

        Returns
        -------
        InteractionTest
            Prints as a line of a table; `table()` has the contrasts.

        Notes
        -----
        With values u of the first and v of the second predictor the contrasts
        `f(u_i, v_j) - f(u_i, v_0) - f(u_0, v_j) + f(u_0, v_0)` are all zero where they
        add up. f is the expectation of the ensemble, not E[y|x]: trees of an
        additive truth are not quite additive themselves, so that a small p-value says
        that the *fit* has an interaction, not that nature has.

        References
        ----------
        Mentch and Hooker (2017), Formal hypothesis tests for additive structure in
        random forests, Journal of Computational and Graphical Statistics 26.
        doi:10.1080/10618600.2016.1256817

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x2 + x4", data, B=200, rng=1)
        >>> len(res.interaction_test("x1", "x2").table())
        4
        """
        from vstatkit.results.interactions import interaction_test  # noqa: PLC0415

        return interaction_test(
            _results(self), first, second, grid=grid, rows=rows, learners=learners
        )

    def additivity_test(
        self,
        variables: Sequence[str] | None = None,
        *,
        grid: int = 3,
        rows: int = 50,
        learners: int | None = None,
    ) -> "InteractionTest":
        """Test whether all pairs of predictors are additive in the ensemble.

        Parameters
        ----------
        variables : sequence of str, optional
            Predictors, as columns of the data; all by default.
        grid, rows, learners
            See `interaction_test`, and what is said there of trees.

        Returns
        -------
        InteractionTest
            Prints as a line of a table; `table()` has the contrasts of all pairs.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x2 + x4", data, B=200, rng=1)
        >>> len(res.additivity_test().table())
        12
        """
        from vstatkit.results.interactions import additivity_test  # noqa: PLC0415

        return additivity_test(
            _results(self), variables, grid=grid, rows=rows, learners=learners
        )
