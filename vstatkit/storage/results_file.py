"""Save results to a file, and load them again."""

import dataclasses
import warnings
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from vstatkit._typing import Counts, Floats
from vstatkit.ensemble.oob_scores import Scores
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.prediction_intervals import OutOfBagErrors, ResidualScale
from vstatkit.ensemble.typical_row_effects import EffectValues
from vstatkit.exceptions import FileError, VstatkitError, VstatkitWarning
from vstatkit.formula.factor_coding import CODINGS
from vstatkit.formula.parse import ParsedFormula, Recipe
from vstatkit.inference.intervals import (
    Support,
    Tails,
    prediction_support,
    prediction_tails,
)
from vstatkit.json_values import (
    check,
    check_fields,
    pack,
    pack_frame,
    pack_index,
    take,
    take_floats,
    take_size,
    take_texts,
    unpack,
    unpack_frame,
    unpack_index,
)
from vstatkit.kernels.base import KernelCodec, KernelKind
from vstatkit.kernels.leaf_weights import GROUPS
from vstatkit.kernels.registry import CODECS, codec_of
from vstatkit.kernels.tree import StoredTreeKernel, Tree
from vstatkit.kernels.tree_files import STAGED_CODEC, TREE_CODEC, largest_leaf_row
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.estimate_table import ContrastResults, EstimateTable, derive_table
from vstatkit.results.model_description import Aim, Growth, ModelInfo
from vstatkit.results.prediction_results import with_typical
from vstatkit.sampling.design import CompleteDesign, SubsampleDesign
from vstatkit.sampling.given import GivenDesign
from vstatkit.sampling.registry import DESIGNS
from vstatkit.sources.disk_arrays import check_directory
from vstatkit.storage.atomic_files import Arrays, read_archive, write_archive
from vstatkit.variance.higher_orders import HigherOrders
from vstatkit.variance.leaf_influence import LeafInfluence, RowResiduals
from vstatkit.variance.pooled_variance import PooledVariance
from vstatkit.variance.registry import resolve_for_design

PREFIX = "spread_"  # prefix of the arrays of the trees that estimate the residual scale


def _pack_errors(
    errors: OutOfBagErrors | None, arrays: Arrays
) -> dict[str, Any] | None:
    """Pack out-of-bag errors: sizes, units, masses, and classes or expected sizes."""
    if errors is None or (errors.codes is None and errors.spread is None):
        return None
    last = errors.expected if errors.codes is None else errors.codes
    table = (errors.sizes, errors.units, errors.masses, last)
    arrays["errors"] = np.array(table, dtype=np.float64)
    spread = errors.spread
    if spread is None:
        return {"spread": None}
    trees: dict[str, Any] = dict.fromkeys(TREE_CODEC.fields)
    if spread.trees:
        own = _without_leaf_rows(spread.trees)
        trees, stacked = TREE_CODEC.pack(spread.kernel, own)
        arrays.update({PREFIX + name: array for name, array in stacked.items()})
    return {"spread": {"n_trees": len(spread.trees), "least": spread.least, **trees}}


def _unpack_errors(
    packed: Any, arrays: Arrays, n: int, predictor: Predictor | None
) -> OutOfBagErrors | None:
    if packed is None:
        return None
    check_fields(packed, ("spread",), "`errors`")
    if predictor is None:
        raise FileError("it has errors, but no learners.")
    table = take_floats(arrays, "errors", 2)
    check(table.shape[0] == 4 and table.shape[1] > 0, "errors are missing.")
    sizes, units, masses, last = table
    whole = (units == np.floor(units)) & (units >= 0) & (units < n)
    check(whole.all(), "an error belongs to no unit.")
    check((masses > 0).all(), "an error has no mass.")
    kernel, numbers = predictor.kernel, units.astype(np.int64)
    if kernel.n_classes is not None:
        check(packed["spread"] is None, "errors of classes have no spread.")
        codes = np.isin(last, np.arange(kernel.n_classes))
        check(codes.all(), "an error is of no class.")
        check(((sizes >= 0) & (sizes <= 1)).all(), "an error is no probability.")
        return OutOfBagErrors(sizes, numbers, masses, last.astype(np.int64))
    check((last > 0).all(), "an expected error is not positive.")
    spread = _unpack_spread(packed["spread"], arrays, kernel.n_features)
    return OutOfBagErrors(sizes, numbers, masses, None, last, spread)


def _unpack_spread(packed: Any, arrays: Arrays, p: int) -> ResidualScale:
    check_fields(packed, ("n_trees", "least", *TREE_CODEC.fields), "`spread`")
    T, least = take_size(packed, "n_trees", 0), take(packed, "least", float)
    check(0 < least < np.inf, "the least expected error is not positive.")
    if T == 0:
        return ResidualScale(StoredTreeKernel(p, None, 0.0, 1.0), [], least)
    check(packed["n_classes"] is None, "expected errors are no classes.")
    stacked = _pop_arrays(arrays, PREFIX, TREE_CODEC)
    kernel, trees = TREE_CODEC.unpack(packed, stacked, T, p)
    return ResidualScale(cast("StoredTreeKernel", kernel), trees, least)


def _pop_arrays(arrays: Arrays, prefix: str, codec: KernelCodec) -> Arrays:
    """Remove the arrays of a codec that have a prefix, and return them without it."""
    names = [name for name in codec.arrays if prefix + name in arrays]
    return {name: arrays.pop(prefix + name) for name in names}


# Version of the file layout. Layout 2 had no corrections beyond the first order, 3 no
# levels, 4 no out-of-bag errors of single observations and no stages of learners, 5 no
# names of weights and groups, 6 no other learners that estimates come from, 7 no coding
# of factors that treats all levels alike, no tails, no effective number of observations
# and no notes on the data, 8 no type of the table, 9 no pooled variances.
FORMAT = 10
# Types of tables that can be saved, by name.
TABLES: dict[str, type[EstimateTable]] = {
    kind.__name__: kind for kind in (EnsembleResults, ContrastResults, EstimateTable)
}
ORDERS_FORMAT = 8  # first layout with complete corrections beyond the first order
CENTRE = "centre_"  # prefix of the arrays of other learners that estimates come from
DESIGN_FIELDS = ("n", "k", "replace", "seed")


def save_results(results: EstimateTable, path: str | PathLike[str]) -> None:
    """Save results to a file that `load` reads.

    Learners are saved if they are trees or coefficients, with the columns that the
    formula uses; other learners are left out with a warning. The file is written
    atomically: an old file is replaced only when the new one is complete.
    """
    check_directory(path)
    if type(results) not in TABLES.values():
        raise ValueError(
            f"{type(results).__name__} cannot be saved: its settings are not part of "
            "the file format. Save the fit, or the table by "
            "`summary_frame().to_csv(...)`; the estimates of averages and curves are "
            "in `results`, which can be saved."
        )
    if results.points is not None:
        raise ValueError(
            "standard errors for a population depend on the rows that were averaged, "
            "which files of results do not contain. Save the table "
            "(`frame.to_csv(...)`) or the results that were averaged."
        )
    arrays: Arrays = {"values": results.values}
    if isinstance(results, ContrastResults):
        null = np.broadcast_to(results.null, results.values.shape[1:])
        arrays["null"] = np.array(null, dtype=np.float64)
    if results.limit is not None:
        arrays["limit"] = np.array(results.limit, dtype=np.float64, ndmin=1)
    if results.support is not None:
        arrays["support"] = _stack_fields(results.support)
    if results.tails is not None:
        tails = _stack_fields(results.tails)
        # Files contain no infinite numbers; an infinite end is missing.
        arrays["tails"] = np.where(np.isinf(tails), np.nan, tails)
    if results.orders is not None:
        arrays["orders"] = np.array(dataclasses.astuple(results.orders))
    if results.pooled is not None and results.leaf_influence is not None:
        arrays["pooled"] = np.array(dataclasses.astuple(results.pooled))
        _pack_influence(results.leaf_influence, arrays, LEAVES)
    info = dataclasses.asdict(dataclasses.replace(results.info, typical=None))
    if results.info.typical is not None:
        info["typical"], arrays["typical_numbers"] = pack_frame(results.info.typical)
    document = {
        "format": FORMAT,
        "type": type(results).__name__,
        "variance": results.variance,
        "kind": results.kind.name,
        "labels": pack_index(results.labels),
        "units": pack_index(results.units),
        "info": info,
        "design": _pack_design(results.design, arrays),
        **_pack_learners(results, arrays),
    }
    write_archive(path, document, arrays)


def _pack_learners(results: EstimateTable, arrays: Arrays) -> dict[str, Any]:
    """Pack the learners, effects, scores and errors of a fit; None for other tables."""
    packed: dict[str, Any]
    packed = dict.fromkeys(("effects", "scores", "predictor", "errors"))
    if not isinstance(results, EnsembleResults):
        return packed
    if isinstance(results.reference, np.ndarray):  # a frame is for trees in R
        arrays["reference"] = results.reference
    predictor, scores = results.predictor, results.scores
    if predictor is not None and predictor.n_kept == results.B:
        pooled = results.pooled is not None
        packed["predictor"] = _pack_predictor(predictor, arrays, pooled=pooled)
    residuals = results.row_residuals
    if residuals is not None and packed["predictor"] is not None:
        arrays["row_residuals"] = residuals.residuals
        arrays["residual_unit"] = np.array([residuals.unit])
        if residuals.unit_of_row is not None:
            arrays["row_units"] = residuals.unit_of_row
    if results.effect_values is not None:
        packed["effects"] = _pack_effects(results.effect_values, arrays)
    if scores is not None:
        arrays["residuals"] = scores.residuals
        packed["scores"] = {"table": scores.table, "n_scored": scores.n_scored}
    if packed["predictor"] is not None:
        packed["errors"] = _pack_errors(results.out_of_bag_errors, arrays)
    return packed


def _without_leaf_rows(learners: Sequence[Any]) -> list[Any]:
    """Forget the rows of trees' leaves, which only pooled variances need."""
    return [
        learner.forget_leaf_rows() if isinstance(learner, Tree) else learner
        for learner in learners
    ]


def _pack_influence(influence: LeafInfluence, arrays: Arrays, prefix: str) -> None:
    """Pack the influence of units through leaves, group after group."""
    table = sparse.vstack(influence.groups, format="csr")
    for name in SPARSE:
        arrays[prefix + name] = getattr(table, name)
    arrays[prefix + "unit"] = np.array([influence.unit])


def _unpack_influence(
    arrays: Arrays, prefix: str, m: int, n: int
) -> LeafInfluence | None:
    """Unpack the influence of n units on m estimates; None if it was not saved."""
    if prefix + SPARSE[0] not in arrays:
        return None
    data = take_floats(arrays, prefix + "data", 1)
    table = _unpack_sparse(arrays, prefix, data, GROUPS * m, n)
    return LeafInfluence(
        tuple(table[group * m : (group + 1) * m] for group in range(GROUPS)),
        _unpack_unit(arrays, prefix + "unit"),
    )


def _unpack_pooled(arrays: Arrays) -> PooledVariance | None:
    if "pooled" not in arrays:
        return None
    numbers = take_floats(arrays, "pooled", 1)
    check(len(numbers) == len(_field_names(PooledVariance)), "pooled variances differ.")
    pooled = PooledVariance(*numbers.tolist())
    positive = min(pooled.ratio, pooled.typical, pooled.spread) > 0 <= pooled.error
    check(positive and pooled.near >= -1, "a pooled variance is not positive.")
    return pooled


def _unpack_row_residuals(
    arrays: Arrays, predictor: Predictor | None, info: ModelInfo, n: int
) -> RowResiduals | None:
    """Unpack the residuals of the training rows, and check the rows of leaves."""
    if "row_residuals" not in arrays:
        return None
    residuals = take_floats(arrays, "row_residuals", 2)
    check(predictor is not None, "it has residuals of rows, but no learners.")
    assert predictor is not None
    kernel = predictor.kernel
    fits = residuals.shape == (info.nobs, kernel.n_outputs)
    check(fits, "residuals and rows differ in number.")
    units = arrays.pop("row_units", None)
    if units is not None:
        whole = units.dtype == np.int64 and units.shape == (info.nobs,)
        check(whole and ((units >= 0) & (units < n)).all(), "a row is of no unit.")
    else:
        check(info.nobs == n, "the units of rows are missing.")
    several = kernel.n_outputs > 1
    last = largest_leaf_row(predictor.learners, by_class=several)
    check(last < info.nobs, "a leaf has a row that there is not.")
    return RowResiduals(residuals, units, n, _unpack_unit(arrays, "residual_unit"))


def _unpack_unit(arrays: Arrays, name: str) -> float:
    unit = take_floats(arrays, name, 1)
    check(unit.size == 1 and unit.item() > 0, "a unit is not positive.")
    return float(unit.item())


def _stack_fields(record: Support | Tails) -> Floats:
    """Stack fields for all estimates, or for each, as rows of the same length."""
    values = [getattr(record, name) for name in _field_names(record)]
    rows = np.broadcast_arrays(*map(np.atleast_1d, values))
    return np.array(rows, dtype=np.float64)


def _field_names(record: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(record)]


def _pack_design(design: SubsampleDesign, arrays: Arrays) -> dict[str, Any]:
    if not isinstance(design, GivenDesign):
        fields = dataclasses.asdict(design)
        return {"name": design.name, "fields": {n: pack(v) for n, v in fields.items()}}
    table = sparse.csr_array(design.table)
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    arrays["counts_data"] = table.data
    arrays["counts_indices"] = table.indices
    arrays["counts_indptr"] = table.indptr
    if design.labels is not None:
        arrays["counts_groups"] = np.asarray(design.labels, dtype=np.int64)
    fields = {name: pack(getattr(design, name)) for name in DESIGN_FIELDS}
    return {"name": "given", "fields": fields, "sparse": sparse.issparse(design.table)}


def _pack_effects(effects: EffectValues, arrays: Arrays) -> dict[str, Any]:
    arrays["effects"] = effects.values
    if effects.leaf_influence is not None:
        _pack_influence(effects.leaf_influence, arrays, EFFECT_LEAVES)
    settings = effects.frame.map(pack)
    return {
        "from": settings["from"].to_list(),
        "to": settings["to"].to_list(),
        "index": pack_index(effects.frame.index),
        "left_out": list(effects.left_out),
        "n_beyond": effects.n_beyond,
    }


def _pack_predictor(
    predictor: Predictor, arrays: Arrays, *, pooled: bool
) -> dict[str, Any] | None:
    """Pack the learners; trees with the rows of their leaves if they are `pooled`."""
    if predictor.coding is None:
        _warn_left_out("the ensemble was fitted by another package.")
        return None
    recipe = predictor.coding.recipe
    try:
        recipe.rebuild()
        frame, numbers = pack_frame(recipe.frame)
    except VstatkitError as error:
        _warn_left_out(
            f"the formula cannot be read again without this session: {error}"
        )
        return None
    codec = codec_of(predictor.kernel)
    if codec is None:
        _warn_left_out("they could only be pickled.")
        return None
    learners = predictor.learners
    if not pooled:
        learners = _without_leaf_rows(learners)
    fields, stacked = codec.pack(predictor.kernel, learners)
    arrays.update(stacked, frame_numbers=numbers)
    centre, classes = predictor.centre, predictor.classes
    centred_at = None
    if centre is not None:
        centre_fields, stacked = STAGED_CODEC.pack(centre.kernel, centre.learners)
        arrays.update({CENTRE + name: array for name, array in stacked.items()})
        centred_at = {"kind": STAGED_CODEC.name, **centre_fields}
    return {
        "formula": recipe.formula,
        "frame": frame,
        "intercept": recipe.intercept,
        "factors": recipe.factors,
        "columns": None if recipe.columns is None else list(recipe.columns),
        "missing": recipe.missing,
        "classes": None if classes is None else [pack(label) for label in classes],
        "kind": codec.name,
        **fields,
        "centred_at": centred_at,
    }


def _warn_left_out(reason: str) -> None:
    warnings.warn(
        f"saved without the learners: {reason} All estimates are kept; the loaded "
        "results cannot predict new data.",
        VstatkitWarning,
        stacklevel=6,
    )


MAX_DRAWN = 10**8  # largest number of units in a subsample
# Largest number of choices in a complete design of at most a million subsamples.
MAX_CHOSEN = 20
MAX_DENSE = 2**28  # largest number of entries of a dense table of counts


def _unpack_design(packed: Any, arrays: Arrays, B: int) -> SubsampleDesign:
    name = take(packed, "name", str)
    if name == GivenDesign.name:
        return _unpack_given(packed, arrays, B)
    kinds: dict[str, type[Any]] = {**DESIGNS, CompleteDesign.name: CompleteDesign}
    check(name in kinds, "its design is not known.")
    check_fields(packed, ("name", "fields"), "`design`")
    fields, names = packed["fields"], _field_names(kinds[name])
    check_fields(fields, names, "`design`")
    options = {o: take_size(fields, o, 1) for o in names if o not in DESIGN_FIELDS}
    common = _common_fields(fields)
    if name == CompleteDesign.name:
        n, k = common["n"], common["k"]
        chosen = min(k, n - 1) if common["replace"] else min(k, n - k)
        check(chosen <= MAX_CHOSEN, "a complete design would be too large.")
    design: SubsampleDesign = kinds[name](**common, **options)
    if isinstance(design, CompleteDesign):
        same = design.n_subsamples == B
    else:
        same = design.with_size(B) == design
    check(same, "the design has more learners, or fewer.")
    return design


def _common_fields(fields: Any) -> dict[str, Any]:
    return {
        "n": take_size(fields, "n", 2),
        "k": take_size(fields, "k", 1, MAX_DRAWN),
        "replace": take(fields, "replace", bool),
        "seed": take_size(fields, "seed", 0, 2**64 - 1),
    }


def _unpack_given(packed: Any, arrays: Arrays, B: int) -> GivenDesign:
    check_fields(packed, ("name", "fields", "sparse"), "`design`")
    check_fields(packed["fields"], DESIGN_FIELDS, "`design`")
    common = _common_fields(packed["fields"])
    table = _unpack_counts(arrays, B, common["n"])
    sums = np.asarray(table.sum(axis=1))
    check((sums == common["k"]).all(), "the counts do not add up to k.")
    repeats = common["replace"] or table.data.max() <= 1
    check(repeats, "a unit was drawn twice without replacement.")
    labels = arrays.pop("counts_groups", None)
    if labels is not None:
        fits = labels.dtype == np.int64 and labels.shape == (B,)
        check(fits and (labels >= 0).all(), "groups and learners differ.")
    if not take(packed, "sparse", bool):
        check(B * common["n"] <= MAX_DENSE, "the table of counts is too large.")
        table = table.toarray()
    return GivenDesign(**common, table=table, labels=labels)


def _unpack_counts(arrays: Arrays, B: int, n: int) -> Counts:
    """Unpack sparse counts, and check their structure for the compiled code."""
    check("counts_data" in arrays, "the array 'counts_data' is missing.")
    data = arrays.pop("counts_data")
    check(data.dtype.kind in "biuf" and data.ndim == 1, "counts are no numbers.")
    good = np.isfinite(data).all() and (data >= 0).all() and (data % 1 == 0).all()
    check(good, "counts must be whole numbers.")
    table = _unpack_sparse(arrays, "counts_", data, B, n)
    check(table.has_canonical_format, "a count is there twice.")
    return table


def _unpack_sparse(
    arrays: Arrays, prefix: str, data: NDArray[Any], rows: int, columns: int
) -> Any:
    """Unpack a sparse table with given entries, and check its structure."""
    names = (prefix + "indices", prefix + "indptr")
    for name in names:
        check(name in arrays, f"the array {name!r} is missing.")
    indices, indptr = (arrays.pop(name) for name in names)
    whole = indices.dtype.kind == indptr.dtype.kind == "i"
    check(whole and indices.ndim == indptr.ndim == 1, "counts are at no places.")
    check(indptr.shape == (rows + 1,), "counts and learners differ in number.")
    check(indptr[0] == 0 and (np.diff(indptr) >= 0).all(), "counts are out of order.")
    check(indptr[-1] == data.size == indices.size, "counts are missing.")
    check(((indices >= 0) & (indices < columns)).all(), "a count is of no unit.")
    return sparse.csr_array((data, indices, indptr), shape=(rows, columns))


LEAVES, EFFECT_LEAVES = "leaf_", "effect_leaf_"  # prefixes of influences by leaves
SPARSE = ("data", "indices", "indptr")  # arrays of a sparse table
# Arrays that any file may contain, besides those of the learners' codecs.
ARRAYS = (
    *("pooled", "row_residuals", "row_units", "residual_unit"),
    *(LEAVES + name for name in (*SPARSE, "unit")),
    *(EFFECT_LEAVES + name for name in (*SPARSE, "unit")),
    *("values", "null", "limit", "support", "tails", "effects", "residuals"),
    *("reference", "orders", "typical_numbers", "frame_numbers"),
    *("counts_data", "counts_indices", "counts_indptr", "counts_groups"),
    *("errors", *(PREFIX + name for name in TREE_CODEC.arrays)),
)
OLDEST = 2  # oldest file layout that can be read

FIELDS = (
    *("format", "type", "variance", "kind", "labels", "units", "info", "design"),
    *("effects", "scores", "predictor", "errors"),
)


def load(path: str | PathLike[str]) -> EstimateTable:
    """Load results that were saved with `EnsembleResults.save`.

    Parameters
    ----------
    path : str or path
        A file of arrays and JSON; nothing in it is executed. Its formula may only use
        columns, patsy's built-ins and numpy's elementwise functions, within limits.

    Returns
    -------
    EnsembleResults, ContrastResults or EstimateTable
        A table of the type that was saved.

    Raises
    ------
    FileError
        If the file does not contain results, is damaged, or is inconsistent.
    """
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    with place.open("rb"):  # raise the error of a path that cannot be opened
        pass
    try:
        return _unpack_results(*read_archive(place, known_arrays()))
    except FileError as error:
        raise FileError(f"{path} cannot be loaded: {error}") from error
    except Exception as error:
        why = f"{type(error).__name__}: {str(error)[:300]}"
        raise FileError(
            f"{path} cannot be loaded: the file is damaged ({why})."
        ) from error


def known_arrays() -> tuple[str, ...]:
    """List the arrays that a file may contain, including those of learners."""
    learners = [name for codec in CODECS.values() for name in codec.arrays]
    return (*ARRAYS, *learners, *(CENTRE + name for name in STAGED_CODEC.arrays))


def _unpack_results(document: Any, arrays: Arrays) -> EstimateTable:
    version = take(document, "format", int)
    readable = f"it has layout {version}; this version reads {OLDEST} to {FORMAT}."
    check(OLDEST <= version <= FORMAT, readable)
    if version < FORMAT:
        _bring_up_to_date(document, arrays)
    check_fields(document, FIELDS, "the document")
    values = take_floats(arrays, "values", 2)
    B, m = values.shape
    check(B >= 2 and m >= 1, "an ensemble needs two learners and an estimate.")
    design = _unpack_design(document["design"], arrays, B)
    variance = take(document, "variance", str)
    # Earlier versions saved estimates for any k, so k is not checked.
    settled = resolve_for_design(variance, design, KernelKind.SMOOTH)
    check(settled == variance, "its variance is not settled.")
    kind = take(document, "type", str)
    check(kind in TABLES, f"there is no kind {kind!r} of tables.")
    kernel_kind = take(document, "kind", str)
    known = kernel_kind in KernelKind.__members__
    check(known, f"there is no kind {kernel_kind!r} of kernels.")
    null: Floats | float = 0.0
    if kind == ContrastResults.__name__:
        null = take_floats(arrays, "null", 1)
        check(len(null) == m, "tests and estimates differ in number.")
    info = _unpack_info(document["info"], arrays)
    biases = () if info.aim is None else info.aim.bias
    check(len(biases) in (0, m), "biases and estimates differ in number.")
    check(info.nobs >= design.n, "there are fewer observations than units.")
    clusters = info.units == "clusters"
    check(clusters or info.nobs == design.n, "observations and units differ.")
    predictor = _unpack_predictor(document["predictor"], arrays, B)
    # Files of layout 7 contain the range of probabilities only.
    ends = arrays.get("support", np.empty((0, 0)))
    older = "tails" not in arrays and ends.shape[:1] != (4,)
    results = EnsembleResults(
        design=design,
        values=values,
        labels=unpack_index(document["labels"], m),
        variance=variance,
        info=info,
        units=unpack_index(document["units"], design.n),
        effect_values=_unpack_effects(document["effects"], arrays, B, design.n),
        predictor=predictor,
        scores=_unpack_scores(document["scores"], arrays, info.nobs),
        null=null,
        limit=_unpack_limit(arrays, m),
        kind=KernelKind[kernel_kind],
        reference=_unpack_reference(arrays, predictor),
        orders=_unpack_orders(arrays, earlier=version < ORDERS_FORMAT),
        support=_unpack_support(arrays, m, info, predictor, design.n),
        tails=_unpack_tails(arrays, m),
        errors=_unpack_errors(document["errors"], arrays, design.n, predictor),
        pooled=_unpack_pooled(arrays),
        leaf_influence=_unpack_influence(arrays, LEAVES, m, design.n),
        row_residuals=_unpack_row_residuals(arrays, predictor, info, design.n),
    )
    check(not arrays, f"the array {next(iter(arrays), '')!r} is not known.")
    if older and predictor is not None and not info.coefficients:
        tails = prediction_tails(predictor.kernel)
        results = with_typical(dataclasses.replace(results, tails=tails))
    if kind == EnsembleResults.__name__:
        return results
    return derive_table(results, TABLES[kind])


def _bring_up_to_date(document: Any, arrays: Arrays) -> None:
    """Fill in the fields that older layouts lack."""
    table = ContrastResults if "null" in arrays else EnsembleResults
    unknown = KernelKind.UNKNOWN.name
    _fill_in(document, kind=unknown, errors=None, type=table.__name__)
    info = take(document, "info", dict)
    _fill_in(info, aim=None, weights=None, groups=None, scale_share=1.0, data_notes=[])
    _fill_in(take(info, "growth", dict), atol=None)
    if type(info["aim"]) is dict:
        _fill_in(info["aim"], mix=None)
    predictor = document.get("predictor")
    if type(predictor) is dict:
        if "factors" not in predictor:
            whole = predictor.pop("whole_factors", False)
            check(type(whole) is bool, "`whole_factors` must be true or false.")
            predictor["factors"] = "whole" if whole else "treatment"
        _fill_in(predictor, columns=None, centred_at=None)
        if predictor.get("kind") == "trees":
            _fill_in(predictor, levels=None)


def _fill_in(fields: dict[str, Any], **defaults: Any) -> None:
    for name, value in defaults.items():
        fields.setdefault(name, value)


def _unpack_reference(arrays: Arrays, predictor: Predictor | None) -> Floats | None:
    """Unpack the reference rows; None without learners."""
    if "reference" not in arrays:
        return None
    rows = take_floats(arrays, "reference", 2, missing=True)
    check(len(rows) > 0, "there are no reference rows.")
    if predictor is None:
        return None
    fits = rows.shape[1] == predictor.kernel.n_features
    check(fits, "the reference rows do not fit the learners.")
    return rows


def _unpack_orders(arrays: Arrays, *, earlier: bool) -> HigherOrders | None:
    if "orders" not in arrays:
        return None
    numbers = take_floats(arrays, "orders", 1, missing=True)
    names = _field_names(HigherOrders)
    # Files of earlier layouts lack the last field, `share`.
    complete = len(numbers) in (len(names) - earlier, len(names))
    check(complete, "it does not say what is beyond first order.")
    fields = dict(zip(names, numbers.tolist(), strict=False))
    measured = {"measured", "measured_error", "share"}
    known = [value for name, value in fields.items() if name not in measured]
    check(np.min(known) >= 0, "what is beyond first order is negative.")
    for name in ("n_learners", "n_reference"):
        fields[name] = int(fields[name])
    return HigherOrders(**fields)


def _unpack_limit(arrays: Arrays, m: int) -> Floats | float | None:
    """Unpack the largest standard deviation of all estimates, or of each."""
    if "limit" not in arrays:
        return None
    limit = take_floats(arrays, "limit", 1)
    check(limit.size in (1, m), "limits and estimates differ in number.")
    check((limit >= 0).all(), "a limit is negative.")
    return float(limit[0]) if limit.size == 1 else limit


def _scalar_if_single(row: NDArray[Any]) -> Any:
    return row.item() if row.size == 1 else row


def _unpack_support(
    arrays: Arrays, m: int, info: ModelInfo, predictor: Predictor | None, units: int
) -> Support | None:
    """Unpack the range of all estimates, or of each; older files have fewer rows."""
    if "support" not in arrays:  # older files: the range follows from the learners
        if predictor is None or info.coefficients:
            return None
        return prediction_support(predictor.kernel, units)
    support = take_floats(arrays, "support", 2)
    known = support.shape[0] in (2, 4) and support.shape[1] in (1, m)
    check(known, "ends and estimates differ in number.")
    low, high = support[:2]
    check((low <= high).all(), "an end of the values is beyond the other.")
    nobs, average = float(units), np.zeros(low.size, dtype=bool)
    if len(support) == 4:
        nobs, average = float(support[2, 0]), support[3] == 1
        check((support[2] == nobs).all(), "numbers of observations differ.")
        check(0 < nobs <= units, "more observations than units are behind estimates.")
        check(np.isin(support[3], (0, 1)).all(), "an average is none.")
    low, high, average = map(_scalar_if_single, (low, high, average))
    return Support(low, high, nobs, average)


def _unpack_tails(arrays: Arrays, m: int) -> Tails | None:
    if "tails" not in arrays:
        return None
    rows = take_floats(arrays, "tails", 2, missing=True)
    check(rows.shape in ((4, 1), (4, m)), "tails and estimates differ in number.")
    error, skew, low, high = rows
    check((error >= 0).all(), "a typical error is negative.")
    check(not (np.abs(skew) > 1).any(), "a skewness is too large.")
    low = np.where(np.isnan(low), -np.inf, low)
    high = np.where(np.isnan(high), np.inf, high)
    check((low <= high).all(), "an end of the values is beyond the other.")
    return Tails(*map(_scalar_if_single, (error, skew, low, high)))


# Fields of `ModelInfo` that any value of their types may have.
INFO_FIELDS: dict[tuple[type, ...], tuple[str, ...]] = {
    (str,): ("title", "response", "kernel", "units"),
    (str, NoneType): ("formula", "weights", "groups"),
    (bool,): ("coefficients", "weights_in_column"),
}


def _unpack_info(packed: Any, arrays: Arrays) -> ModelInfo:
    if isinstance(packed, dict):  # early files of layout 8 lack it
        packed.setdefault("weights_in_column", packed.get("weights") != "given")
    check_fields(packed, _field_names(ModelInfo), "`info`")
    fields = {
        name: take(packed, name, *kinds)
        for kinds, names in INFO_FIELDS.items()
        for name in names
    }
    for name in ("unused_levels", "data_notes"):
        fields[name] = tuple(take_texts(packed, name))
    typical = packed["typical"]
    if typical is not None:
        numbers = take_floats(arrays, "typical_numbers", 2, missing=True)
        typical = unpack_frame(typical, numbers)
        check(len(typical) == 1, "the typical row is not one row.")
    units = fields["units"]
    check(units in ("observations", "clusters"), "its units are of no known kind.")
    aim = _unpack_aim(packed["aim"])
    # Early files contain the biases of other estimates.
    if aim is not None and fields["coefficients"]:
        aim = aim.without_bias
    share = take(packed, "scale_share", float)
    check(0 <= share <= 1, "its share of the range is none.")
    return ModelInfo(
        **fields,
        nobs=take_size(packed, "nobs", 2),
        n_dropped=take_size(packed, "n_dropped", 0),
        growth=_unpack_growth(packed["growth"]),
        typical=typical,
        ranges=_unpack_ranges(take(packed, "ranges", dict)),
        aim=aim,
        scale_share=share,
    )


def _unpack_aim(packed: Any) -> Aim | None:
    if packed is None:
        return None
    check_fields(packed, _field_names(Aim), "`aim`")
    learner, truth = take(packed, "learner", str), take(packed, "truth", bool)
    errors = take(packed, "errors", dict)
    bias, bias_error = (tuple(take(packed, n, list)) for n in ("bias", "bias_error"))
    finite = all(map(_is_finite, (*errors.values(), *bias, *bias_error)))
    check(finite, "a bias or error of its aim is not finite.")
    check(len(bias) == len(bias_error), "its biases differ.")
    mix = take(packed, "mix", str, NoneType)
    return Aim(learner, truth, errors, bias, bias_error, mix)


def _unpack_growth(packed: Any) -> Growth:
    check_fields(packed, ("tol", "max_B", "atol"), "`growth`")
    tol = take(packed, "tol", float, NoneType)
    check(tol is None or 0 < tol < 1, "its tolerance is no share.")
    atol = take(packed, "atol", float, NoneType)
    check(atol is None or 0 <= atol < np.inf, "its absolute tolerance is none.")
    given = packed["max_B"] is not None
    return Growth(tol, take_size(packed, "max_B", 2) if given else None, atol)


def _unpack_ranges(packed: dict[str, Any]) -> dict[str, tuple[float, float]]:
    ranges = {}
    for name, ends in packed.items():
        pair = type(ends) is list and [type(end) for end in ends] == [float, float]
        check(pair and not ends[0] > ends[1], f"the range of {name!r} is none.")
        ranges[name] = (ends[0], ends[1])
    return ranges


def _unpack_effects(packed: Any, arrays: Arrays, B: int, n: int) -> EffectValues | None:
    if packed is None:
        return None
    check_fields(packed, ("from", "to", "index", "left_out", "n_beyond"), "`effects`")
    values = take_floats(arrays, "effects", 2)
    check(len(values) == B, "effects and learners differ in number.")
    count = values.shape[1]
    index = unpack_index(packed["index"], count)
    sides = {side: take(packed, side, list) for side in ("from", "to")}
    check(all(len(ends) == count for ends in sides.values()), "settings are missing.")
    settings = {side: [unpack(end) for end in ends] for side, ends in sides.items()}
    return EffectValues(
        values,
        pd.DataFrame(settings, index, dtype=object),
        tuple(take_texts(packed, "left_out")),
        take_size(packed, "n_beyond", 0),
        _unpack_influence(arrays, EFFECT_LEAVES, count, n),
    )


def _unpack_scores(packed: Any, arrays: Arrays, nobs: int) -> Scores | None:
    if packed is None:
        return None
    check_fields(packed, ("table", "n_scored"), "`scores`")
    residuals = take_floats(arrays, "residuals", 1)
    n_scored = take_size(packed, "n_scored", 0, nobs)
    check(residuals.size in (0, n_scored), "residuals are missing.")
    table = take(packed, "table", dict)
    check(all(map(_is_finite, table.values())), "its scores are not numbers.")
    return Scores(table, residuals, n_scored)


def _is_finite(number: Any) -> bool:
    return type(number) is float and bool(np.isfinite(number))


PREDICTOR = (
    *("formula", "frame", "intercept", "factors", "columns", "missing"),
    *("classes", "kind", "centred_at"),
)


def _unpack_predictor(packed: Any, arrays: Arrays, B: int) -> Predictor | None:
    if packed is None:
        return None
    kind = take(packed, "kind", str)
    check(kind in CODECS, "its learners are of no known kind.")
    codec = CODECS[kind]
    check_fields(packed, PREDICTOR + codec.fields, "`predictor`")
    numbers = take_floats(arrays, "frame_numbers", 2, missing=True)
    parsed = _unpack_formula(packed, numbers)
    classes = take(packed, "classes", list, NoneType)
    if classes is not None:
        classes = tuple(unpack(label) for label in classes)
        check(len(classes) >= 2 and len(set(classes)) == len(classes), _CLASSES)
    kernel, learners = codec.unpack(packed, arrays, B, parsed.X.shape[1])
    _check_classes(parsed, classes, kernel.n_classes)
    predictor = Predictor(kernel, learners, parsed.coding, classes, None)
    fields = packed["centred_at"]
    if fields is None:
        return predictor
    # The estimates come from other learners.
    kind = take(fields, "kind", str)
    check(kind == STAGED_CODEC.name, "estimates come from learners of no known kind.")
    check_fields(fields, ("kind", *STAGED_CODEC.fields), "`centred_at`")
    stacked = _pop_arrays(arrays, CENTRE, STAGED_CODEC)
    other, learners = STAGED_CODEC.unpack(fields, stacked, B, kernel.n_features)
    check(kernel.n_classes is None, "classes have one kind of learners.")
    centre = Predictor(other, learners, None, classes, None)
    return dataclasses.replace(predictor, centre=centre)


_CLASSES = "learners and response differ in their classes."


def _check_classes(
    parsed: ParsedFormula, classes: tuple[Any, ...] | None, n_classes: int | None
) -> None:
    """Check that the classes of learners, names and response agree."""
    # A response of zeros and ones has two classes without names; forests have their own
    # class names, and the response contains codes.
    size = 2 if classes is None else len(classes)
    codes = parsed.classes is None and bool(np.isin(parsed.y, np.arange(size)).all())
    if classes is None:
        check(n_classes is None or (codes and n_classes == 2), _CLASSES)
    else:
        known = codes or parsed.classes is not None
        check(known and n_classes == size, _CLASSES)


def _unpack_formula(packed: Any, numbers: Floats) -> ParsedFormula:
    missing = take(packed, "missing", str)
    check(missing in ("drop", "raise", "pass"), "missing values: no known treatment.")
    factors = take(packed, "factors", str)
    check(factors in CODINGS, f"there is no coding {factors!r} of factors.")
    columns = take(packed, "columns", list, NoneType)
    if columns is not None:
        whole = all(type(place) is int for place in columns)
        check(whole, "its columns are no numbers.")
        columns = tuple(columns)
    return Recipe(
        take(packed, "formula", str),
        unpack_frame(packed["frame"], numbers),
        take(packed, "intercept", bool),
        missing,
        factors=factors,
        columns=columns,
    ).parse_again()
