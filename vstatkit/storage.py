"""Save and load results: arrays and JSON in one zip file, never pickles."""

import dataclasses
import json
import warnings
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from vstatkit._typing import Floats, Labels
from vstatkit.exceptions import VstatkitError, VstatkitWarning
from vstatkit.forest.trees import StoredTreeKernel, Tree
from vstatkit.formula import Recipe
from vstatkit.info import EffectValues, Growth, ModelInfo
from vstatkit.kernels import LinearKernel
from vstatkit.prediction import Predictor
from vstatkit.results import EnsembleResults
from vstatkit.scores import Scores
from vstatkit.subsample import DESIGNS, CompleteDesign, GivenDesign, SubsampleDesign

FORMAT = 1
"""Version of the file layout."""

Arrays = dict[str, Any]


def save_results(results: EnsembleResults, path: str | PathLike[str]) -> None:
    """Save results to a file that `load` reads.

    Learners are saved where they are trees or coefficients, with the columns
    that the formula reads; other learners are left out, with a warning.
    """
    arrays: Arrays = {"values": results.values}
    document = {
        "format": FORMAT,
        "variance": results.variance,
        "labels": _pack_index(results.labels),
        "units": _pack_index(results.units),
        "info": _pack_info(results.info),
        "design": _pack_design(results.design, arrays),
        "effects": _pack_effects(results.effect_values, arrays),
        "scores": _pack_scores(results.scores, arrays),
        "predictor": _pack_predictor(results.predictor, arrays),
    }
    arrays["document"] = np.array(json.dumps(document, default=_pack))
    with Path(path).open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def load(path: str | PathLike[str]) -> EnsembleResults:
    """Load results that were saved with `EnsembleResults.save`.

    Parameters
    ----------
    path : str or path
        A file; it holds arrays and JSON, and nothing in it is executed. Its
        formula may only use columns, patsy's built-ins and numpy's elementwise
        functions.

    Returns
    -------
    EnsembleResults
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no file {path}.")
    if not zipfile.is_zipfile(path):
        raise VstatkitError(f"{path} does not hold saved results.")
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    if "document" not in arrays:
        raise VstatkitError(f"{path} does not hold saved results.")
    document = json.loads(str(arrays["document"]))
    if document["format"] != FORMAT:
        raise VstatkitError(
            f"{path} has layout {document['format']}; this version reads {FORMAT}."
        )
    return EnsembleResults(
        design=_unpack_design(document["design"], arrays),
        values=arrays["values"],
        labels=_unpack_index(document["labels"]),
        variance=document["variance"],
        info=_unpack_info(document["info"]),
        units=_unpack_index(document["units"]),
        effect_values=_unpack_effects(document["effects"], arrays),
        predictor=_unpack_predictor(document["predictor"], arrays),
        scores=_unpack_scores(document["scores"], arrays),
    )


def _pack(value: Any) -> Any:
    """Turn a scalar into what JSON knows; kinds that JSON lacks are tagged."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, pd.Timestamp):
        return {"timestamp": value.isoformat()}
    if isinstance(value, pd.Interval):
        return {"interval": [_pack(value.left), _pack(value.right), value.closed]}
    if isinstance(value, tuple):
        return {"tuple": [_pack(part) for part in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise VstatkitError(
        f"labels and levels must be numbers, text, dates or intervals to be saved; got "
        f"{type(value).__name__}."
    )


def _unpack(packed: Any) -> Any:
    if not isinstance(packed, dict):
        return packed
    if "timestamp" in packed:
        return pd.Timestamp(packed["timestamp"])
    if "interval" in packed:
        left, right, closed = packed["interval"]
        return pd.Interval(_unpack(left), _unpack(right), closed)
    return tuple(_unpack(part) for part in packed["tuple"])


def _pack_index(index: Labels) -> dict[str, Any]:
    if isinstance(index, pd.MultiIndex):
        return {"rows": [_pack(row) for row in index], "names": list(index.names)}
    return {"items": [_pack(item) for item in index], "name": _pack(index.name)}


def _unpack_index(packed: dict[str, Any]) -> Labels:
    if "rows" in packed:
        rows = [_unpack(row) for row in packed["rows"]]
        return pd.MultiIndex.from_tuples(rows, names=packed["names"])
    items = [_unpack(item) for item in packed["items"]]
    kept: Labels = pd.Index(items, name=packed["name"], tupleize_cols=False)
    return kept


def _pack_frame(frame: pd.DataFrame) -> dict[str, Any]:
    columns = []
    for name in frame.columns:
        column = frame[name]
        kind = column.dtype
        packed: dict[str, Any] = {
            "name": name,
            "items": [_missing_as_none(v) for v in column],
        }
        if isinstance(kind, pd.CategoricalDtype):
            packed["categories"] = [_pack(level) for level in kind.categories]
            packed["ordered"] = bool(kind.ordered)
        else:
            packed["dtype"] = str(kind) if kind.kind in "biufM" else "object"
        columns.append(packed)
    return {"columns": columns, "index": _pack_index(frame.index)}


def _missing_as_none(value: Any) -> Any:
    return None if pd.isna(value) else _pack(value)


def _unpack_frame(packed: dict[str, Any]) -> pd.DataFrame:
    index = _unpack_index(packed["index"])
    columns = {}
    for column in packed["columns"]:
        if "categories" in column:
            values: Any = pd.Categorical(
                [_unpack(item) for item in column["items"]],
                [_unpack(level) for level in column["categories"]],
                column["ordered"],
            )
        else:
            items = [_unpack(item) for item in column["items"]]
            values = pd.Series(items, index, dtype=column["dtype"])
        columns[column["name"]] = values
    return pd.DataFrame(columns, index)


def _pack_info(info: ModelInfo) -> dict[str, Any]:
    packed = dataclasses.asdict(dataclasses.replace(info, typical=None))
    packed["typical"] = None if info.typical is None else _pack_frame(info.typical)
    return packed


def _unpack_info(packed: dict[str, Any]) -> ModelInfo:
    typical = packed["typical"]
    fields = {
        **packed,
        "growth": Growth(**packed["growth"]),
        "unused_levels": tuple(packed["unused_levels"]),
        "typical": None if typical is None else _unpack_frame(typical),
        "ranges": {name: (low, high) for name, (low, high) in packed["ranges"].items()},
    }
    return ModelInfo(**fields)


def _pack_design(design: SubsampleDesign, arrays: Arrays) -> dict[str, Any]:
    if not isinstance(design, GivenDesign):
        return {"name": design.name, "fields": dataclasses.asdict(design)}
    table = sparse.csr_array(design.table)
    arrays["counts_data"] = table.data
    arrays["counts_indices"] = table.indices
    arrays["counts_indptr"] = table.indptr
    if design.labels is not None:
        arrays["counts_groups"] = design.labels
    fields = {name: getattr(design, name) for name in ("n", "k", "replace", "seed")}
    return {"name": "given", "fields": fields, "sparse": sparse.issparse(design.table)}


def _unpack_design(packed: dict[str, Any], arrays: Arrays) -> SubsampleDesign:
    fields = packed["fields"]
    if packed["name"] != "given":
        complete = packed["name"] == CompleteDesign.name
        kind = CompleteDesign if complete else DESIGNS[packed["name"]]
        return kind(**fields)
    parts = (arrays["counts_data"], arrays["counts_indices"], arrays["counts_indptr"])
    shape = (len(arrays["counts_indptr"]) - 1, fields["n"])
    table = sparse.csr_array(parts, shape=shape)
    return GivenDesign(
        **fields,
        table=table if packed["sparse"] else table.toarray(),
        labels=arrays.get("counts_groups"),
    )


def _pack_effects(
    effects: EffectValues | None, arrays: Arrays
) -> dict[str, Any] | None:
    if effects is None:
        return None
    arrays["effects"] = effects.values
    settings = effects.frame.map(_pack)
    return {
        "from": settings["from"].to_list(),
        "to": settings["to"].to_list(),
        "index": _pack_index(effects.frame.index),
        "left_out": list(effects.left_out),
    }


def _unpack_effects(
    packed: dict[str, Any] | None, arrays: Arrays
) -> EffectValues | None:
    if packed is None:
        return None
    frame = pd.DataFrame(
        {side: [_unpack(one) for one in packed[side]] for side in ("from", "to")},
        _unpack_index(packed["index"]),
        dtype=object,
    )
    return EffectValues(arrays["effects"], frame, tuple(packed["left_out"]))


def _pack_scores(scores: Scores | None, arrays: Arrays) -> dict[str, Any] | None:
    if scores is None:
        return None
    arrays["residuals"] = scores.residuals
    return {"table": scores.table, "n_scored": scores.n_scored}


def _unpack_scores(packed: dict[str, Any] | None, arrays: Arrays) -> Scores | None:
    if packed is None:
        return None
    return Scores(packed["table"], arrays["residuals"], packed["n_scored"])


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
        frame = _pack_frame(recipe.frame)
    except VstatkitError as error:
        _warn_left_out(
            f"the formula cannot be read again without this session: {error}"
        )
        return None
    packed = {
        "formula": recipe.formula,
        "frame": frame,
        "intercept": recipe.intercept,
        "missing": recipe.missing,
        "classes": None
        if predictor.classes is None
        else [_pack(one) for one in predictor.classes],
    }
    kernel = predictor.kernel
    if isinstance(kernel, LinearKernel):
        arrays["coefficients"] = np.stack(predictor.learners)
        return {**packed, "kind": "linear", "logit": kernel.logit}
    if isinstance(kernel, StoredTreeKernel):
        arrays.update(Tree.stack(predictor.learners))
        kept = {
            name: getattr(kernel, name) for name in ("n_classes", "centre", "scale")
        }
        return {**packed, "kind": "trees", **kept}
    _warn_left_out("they could only be pickled.")
    return None


def _warn_left_out(reason: str) -> None:
    warnings.warn(
        f"saved without the learners: {reason} All estimates are kept; the loaded "
        "results cannot predict new data.",
        VstatkitWarning,
        stacklevel=5,
    )


def _unpack_predictor(
    packed: dict[str, Any] | None, arrays: Arrays
) -> Predictor | None:
    if packed is None:
        return None
    recipe = Recipe(
        packed["formula"],
        _unpack_frame(packed["frame"]),
        packed["intercept"],
        packed["missing"],
    )
    coding = recipe.rebuild()
    classes = (
        None if packed["classes"] is None else tuple(map(_unpack, packed["classes"]))
    )
    nothing: Floats = np.empty((0, coding.columns.size))
    if packed["kind"] == "linear":
        linear = LinearKernel(nothing, np.empty(0), packed["logit"], None)
        return Predictor(linear, list(arrays["coefficients"]), coding, classes, None)
    kernel = StoredTreeKernel(
        coding.columns.size, packed["n_classes"], packed["centre"], packed["scale"]
    )
    return Predictor(kernel, Tree.unstack(arrays), coding, classes, None)
