"""Methods of results that answer questions about predictors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast

from vstatkit._typing import DataLike

if TYPE_CHECKING:
    from vstatkit.ensemble.copies import How
    from vstatkit.results.answers import FeatureTest, InteractionTest
    from vstatkit.results.ensemble_results import EnsembleResults
    from vstatkit.results.importance import Importance
    from vstatkit.results.permutation_tests import PermutationTest


def _results(asking: "Asking") -> "EnsembleResults":
    """Tell the type checker what has these methods."""
    return cast("EnsembleResults", asking)


class Asking:
    """Methods of results that answer questions about predictors.

    What answers takes results as its argument, so that it is imported when asked for.
    """

    def feature_test(
        self,
        variables: str | Sequence[str],
        *,
        how: "How" = "conditional",
        at: DataLike | None = None,
        points: int = 200,
        copies: int = 1,
        learners: int | None = None,
    ) -> "FeatureTest":
        r"""Test whether predictors tell anything of the response.

        The learners are fitted again, on the same subsamples and by the same seeds, to
        data in which something else stands in the place of the predictors; the test is
        that the mean predictions of both fits are the same at many points.

        Parameters
        ----------
        variables : str or sequence of str
            Predictors, as columns of the data; several are tested together. All terms
            of the formula that they are in are made again.
        how : {"conditional", "permute", "drop"}
            What stands in their place. "conditional": a copy that depends on the other
            predictors as they do, but on the response only through these. The null is
            that the response does not depend on them, given the others: what is usually
            asked. "permute": their values in other rows. A predictor that does nothing
            but tells of one that does counts as real then. "drop": their typical
            values. The same, and where learners try a few predictors at each split the
            means also differ because the others are tried more often.
        at : DataFrame or dict of columns, optional
            Points to compare at; by default `points` rows of the data, drawn by the
            seed, with yet another copy of the predictors.
        points : int
            How many of them.
        copies : int
            Copies, each with a fit, that the reduced predictions are averaged over.
        learners : int, optional
            Learners that are used: 1000 trees by default, of which those that the fit
            does not have are grown; of other kernels at most those of the fit. Designs
            other than "iid" use all of the fit's. With `target="truth"` they are those
            that standard errors come from, not the mix of the estimates.

        Returns
        -------
        FeatureTest
            Prints as a line of a table; `frame` is that line, `differences` the
            differences with their standard errors, `plot()` draws them.

        Notes
        -----
        Differences of learners on the same subsamples are kernels, so that their joint
        covariance comes from the learners. Rows with their copies are nearly
        independent and alike: the randomness of the copies is part of that covariance
        already, and nothing is to be added for it. Of differences of trees more of the
        variance is beyond the first order than of predictions; it is measured on them.
        See `pooled_test` for the test.

        A copy is what the other predictors say of the predictor (least squares, curves
        and a small forest, out of bag) plus what they leave unexplained, taken from
        another row; it has the values of the predictor in another order. Levels are
        drawn from out-of-bag shares. Weights play no part in the copies.

        References
        ----------
        Mentch and Hooker (2016), Quantifying uncertainty in random forests via
        confidence intervals and hypothesis tests, JMLR 17(26).

        Candès, Fan, Janson and Lv (2018), Panning for gold: model-X knockoffs, JRSS B
        80. doi:10.1111/rssb.12265

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x2 + x4", data, B=200, rng=1)
        >>> res.feature_test("x4").pvalue < 0.001
        True
        """
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
        how: "How" = "conditional",
        copies: int = 3,
        learners: int | None = None,
    ) -> "Importance":
        """Say what each predictor saves of the out-of-bag loss.

        Parameters
        ----------
        variables : sequence of str, optional
            Predictors, as columns of the data; all by default.
        how : {"conditional", "permute", "drop"}
            What the loss is compared with. "conditional" and "permute": the same
            learners predict rows with copies of the predictor, see `feature_test`.
            "drop": learners are fitted again without it.
        copies : int
            Copies that losses are averaged over.
        learners : int, optional
            Learners that are used, see `feature_test`; 500 by default.

        Returns
        -------
        Importance
            Prints as a table; `frame` holds its numbers, `plot()` draws it. The loss is
            the squared error, of classes that of their probabilities, summed.

        Notes
        -----
        The standard error is that of the rows' differences, what pairs of rows have in
        common through the learners that saw one of them, and what other learners would
        change, each counted once; see `mean_saved`. It is made for the question whether
        a predictor saves anything. That another training set would give another
        ensemble, in which a real predictor saves more or less, is not in it. p-values
        are one-sided. `holm`
        keeps the chance of any false discovery, `bh` the expected share of false ones.

        References
        ----------
        Watson and Wright (2021), Testing conditional independence in supervised
        learning algorithms, Machine Learning 110. doi:10.1007/s10994-021-06030-6

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> res = vs.fit("y ~ x1 + x2 + x4", data, B=200, rng=1)
        >>> res.importance().frame["importance"].idxmax()
        'x4'
        """
        from vstatkit.results.importance import importance  # noqa: PLC0415

        return importance(
            _results(self), variables, how=how, copies=copies, learners=learners
        )

    def permutation_test(
        self,
        variables: str | Sequence[str],
        *,
        how: "How" = "conditional",
        swap: Literal["copies", "trees"] = "copies",
        permutations: int | None = None,
        learners: int | None = None,
    ) -> "PermutationTest":
        """Test whether predictors lower the out-of-bag loss, by order alone.

        Parameters
        ----------
        variables : str or sequence of str
            Predictors, as columns of the data; several are tested together.
        how : {"conditional", "permute"}
            What stands in their place; see `feature_test`.
        swap : {"copies", "trees"}
            What changes places. "copies": the loss of the fit is put in order with the
            losses of fits to copies. "trees": trees of the fit and of one fit to a copy
            change places, pair by pair, as Coleman, Peng and Mentch do; quick, but not
            to be trusted with many trees, see Notes.
        permutations : int, optional
            How many; 99 copies or 999 swaps by default.
        learners : int, optional
            Learners of each fit, see `feature_test`; 500 by default.

        Returns
        -------
        PermutationTest
            Prints as a line of a table; `frame` is that line, `plot()` draws the
            statistic among the others.

        Notes
        -----
        With copies that are right the data and each of their copies are alike under
        the null, so that the order of the losses is uniform whatever the learners and
        however many: the test needs no variance.

        Swaps of trees take the data as given. Two forests of infinitely many trees
        differ by what is in the data, under the null too, and swaps do not see that:
        the more trees, the more often a predictor that does nothing is called real.

        References
        ----------
        Coleman, Peng and Mentch (2022), Scalable and efficient hypothesis testing with
        random forests, JMLR 23(170).

        Candès, Fan, Janson and Lv (2018), Panning for gold: model-X knockoffs, JRSS B
        80. doi:10.1111/rssb.12265

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(100, rng=1)
        >>> res = vs.fit("y ~ x1 + x2 + x4", data, B=50, rng=1)
        >>> res.permutation_test("x4", permutations=19).pvalue
        0.05
        """
        from vstatkit.results.permutation_tests import (  # noqa: PLC0415
            permutation_test,
        )

        return permutation_test(
            _results(self),
            variables,
            how=how,
            swap=swap,
            permutations=permutations,
            learners=learners,
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
        """Test whether two predictors add up in the mean of the learners.

        Parameters
        ----------
        first, second : str
            Predictors, as columns of the data.
        grid : int
            Values of each: quantiles of numbers, the most frequent levels of
            categories.
        rows : int
            Rows of the data, drawn by the seed, from which the other predictors are
            taken; contrasts are averaged over them.
        learners : int, optional
            Learners that are used, see `feature_test`.

        Returns
        -------
        InteractionTest
            Prints as a line of a table; `table()` has the contrasts.

        Notes
        -----
        With values u of the first and v of the second predictor the contrasts
        `f(u_i, v_j) - f(u_i, v_0) - f(u_0, v_j) + f(u_0, v_0)` are all zero where they
        add up. f is the mean of learners of size k, not the truth: trees of an
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
        """Test whether all predictors add up in the mean of the learners, pair by pair.

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
