"""Save results: arrays and JSON in one zip file, never pickles."""

import dataclasses
import warnings
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from vstatkit._typing import Floats
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.query import EffectValues
from vstatkit.ensemble.scores import Scores
from vstatkit.exceptions import VstatkitError, VstatkitWarning
from vstatkit.kernels.registry import codec_of
from vstatkit.kernels.stored_stages import STAGED_CODEC
from vstatkit.packing import pack, pack_frame, pack_index
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.model_info import ModelInfo
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.given import GivenDesign
from vstatkit.sources.store import check_directory
from vstatkit.storage.archive import Arrays, write_archive
from vstatkit.storage.errors import pack_errors

FORMAT = 8
"""Version of the file layout; 2 had nothing beyond the first order, 3 no levels, 4 no
out-of-bag errors of single observations, and no stages of learners, 5 no names of
weights and groups, 6 no other learners that estimates come from, 7 no coding of
factors that treats all levels alike, no tails, no effective number of observations and
no notes on the data."""

CENTRE = "centre_"
"""What the names of the arrays of these other learners begin with."""

DESIGN_FIELDS = ("n", "k", "replace", "seed")


def save_results(results: EnsembleResults, path: str | PathLike[str]) -> None:
    """Save results to a file that `load` reads.

    Learners are saved where they are trees or coefficients, with the columns
    that the formula reads; other learners are left out, with a warning. If this is
    killed or out of space, an old file of the same name stays as it was.
    """
    check_directory(path)
    if results.points is not None:
        raise ValueError(
            "standard errors for a population rest on the rows that were averaged, "
            "which files of results do not hold. Save the table (`frame.to_csv(...)`) "
            "or the results that were averaged."
        )
    arrays: Arrays = {"values": results.values}
    if results.null is not None:
        arrays["null"] = np.asarray(results.null, dtype=np.float64)
    if results.limit is not None:
        arrays["limit"] = np.atleast_1d(np.asarray(results.limit, dtype=np.float64))
    if results.support is not None:
        known = results.support
        arrays["support"] = _rows(known.low, known.high, known.nobs, known.average)
    if results.tails is not None:
        tails = results.tails
        # Files hold no infinite numbers: where there is no end it is missing.
        ends = [np.where(np.isinf(end), np.nan, end) for end in (tails.low, tails.high)]
        arrays["tails"] = _rows(tails.error, tails.skew, *ends)
    if isinstance(results.reference, np.ndarray):  # frames belong to trees in R
        arrays["reference"] = results.reference
    if results.orders is not None:
        arrays["orders"] = np.array(dataclasses.astuple(results.orders))
    predictor = _pack_predictor(kept_predictor(results), arrays)
    document = {
        "format": FORMAT,
        "variance": results.variance,
        "kind": results.kind.name,
        "labels": pack_index(results.labels),
        "units": pack_index(results.units),
        "info": _pack_info(results.info, arrays),
        "design": _pack_design(results.design, arrays),
        "effects": _pack_effects(results.effect_values, arrays),
        "scores": _pack_scores(results.scores, arrays),
        "predictor": predictor,
        "errors": None if predictor is None else pack_errors(results, arrays),
    }
    write_archive(path, document, arrays)


def _rows(*numbers: Any) -> Floats:
    """Put numbers for all estimates, or for each, into rows of the same length."""
    rows = np.broadcast_arrays(*(np.atleast_1d(one) for one in numbers))
    return np.array(rows, dtype=np.float64)


def kept_predictor(results: EnsembleResults) -> Predictor | None:
    """Return what predicts; None where learners were not kept."""
    predictor = results.predictor
    whole = predictor is not None and predictor.n_kept == results.B
    return predictor if whole else None


def _pack_info(info: ModelInfo, arrays: Arrays) -> dict[str, Any]:
    packed = dataclasses.asdict(dataclasses.replace(info, typical=None))
    if info.typical is not None:
        packed["typical"], arrays["typical_numbers"] = pack_frame(info.typical)
    return packed


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


def _pack_effects(
    effects: EffectValues | None, arrays: Arrays
) -> dict[str, Any] | None:
    if effects is None:
        return None
    arrays["effects"] = effects.values
    settings = effects.frame.map(pack)
    return {
        "from": settings["from"].to_list(),
        "to": settings["to"].to_list(),
        "index": pack_index(effects.frame.index),
        "left_out": list(effects.left_out),
        "n_beyond": effects.n_beyond,
    }


def _pack_scores(scores: Scores | None, arrays: Arrays) -> dict[str, Any] | None:
    if scores is None:
        return None
    arrays["residuals"] = scores.residuals
    return {"table": scores.table, "n_scored": scores.n_scored}


def _pack_predictor(
    predictor: Predictor | None, arrays: Arrays
) -> dict[str, Any] | None:
    if predictor is None:
        return None
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
    packed = {
        "formula": recipe.formula,
        "frame": frame,
        "intercept": recipe.intercept,
        "factors": recipe.factors,
        "columns": None if recipe.columns is None else list(recipe.columns),
        "missing": recipe.missing,
        "classes": None
        if predictor.classes is None
        else [pack(one) for one in predictor.classes],
    }
    codec = codec_of(predictor.kernel)
    if codec is None:
        _warn_left_out("they could only be pickled.")
        return None
    fields, packed_learners = codec.pack(predictor.kernel, predictor.learners)
    arrays.update(packed_learners, frame_numbers=numbers)
    centre = _pack_centre(predictor.centre, arrays)
    return {**packed, "kind": codec.name, **fields, "centred_at": centre}


def _pack_centre(centre: Predictor | None, arrays: Arrays) -> dict[str, Any] | None:
    if centre is None:
        return None
    fields, learners = STAGED_CODEC.pack(centre.kernel, centre.learners)
    arrays.update({CENTRE + name: one for name, one in learners.items()})
    return {"kind": STAGED_CODEC.name, **fields}


def _warn_left_out(reason: str) -> None:
    warnings.warn(
        f"saved without the learners: {reason} All estimates are kept; the loaded "
        "results cannot predict new data.",
        VstatkitWarning,
        stacklevel=5,
    )
