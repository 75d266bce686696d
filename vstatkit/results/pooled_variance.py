"""Pool the variances of a fitted forest's predictions."""

from dataclasses import replace
from typing import TYPE_CHECKING

from scipy import sparse

from vstatkit.ensemble.pooled_variance import ForestData, measure_pooled_variance
from vstatkit.kernels.leaf_weights import has_leaf_rows
from vstatkit.kernels.tree import TreeKernel
from vstatkit.variance.registry import ESTIMATORS

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


def with_pooled_variance(results: "EnsembleResults") -> "EnsembleResults":
    """Add the pooled variance to a forest with so few trees that it matters.

    This needs the trees and the training data. Stacked learners are left as they are.
    """
    predictor, recipe, orders = results.predictor, results.recipe, results.orders
    if results.pooled is not None or not ESTIMATORS[results.variance].beyond:
        return results
    if predictor is None or recipe is None or orders is None:
        return results
    kernel, at = recipe.task.kernel, recipe.task.at
    stacked = predictor.centre is not None or recipe.centre is not None
    kept = predictor.n_kept >= results.B and not predictor.refits
    if stacked or not kept or at is None or not isinstance(kernel, TreeKernel):
        return results
    if not has_leaf_rows(kernel, predictor.learners):
        return results
    unit_of_row = recipe.task.unit_of_row
    trees = predictor.learners[: results.B]
    forest = ForestData(kernel, results.design, unit_of_row, trees)
    measured = measure_pooled_variance(forest, orders, n_jobs=recipe.n_jobs)
    if measured is None:  # nothing else needs the rows of leaves
        bare = [replace(tree, leaf_rows=None, leaf_shares=None) for tree in trees]
        return replace(results, predictor=replace(predictor, learners=bare))
    pooled, residuals = measured
    influence = residuals.influence(kernel, trees, at)
    m, moves = len(results.labels), results.effect_values
    if moves is not None:
        e = moves.values.shape[1]
        both = influence.take(slice(m, m + 2 * e))
        eye = sparse.eye_array(e, format="csr")
        difference = both.combine(sparse.hstack([-eye, eye], format="csr"))
        moves = replace(moves, leaf_influence=difference)
    return replace(
        results,
        pooled=pooled,
        row_residuals=residuals,
        leaf_influence=influence.take(slice(m)),
        effect_values=moves,
    )
