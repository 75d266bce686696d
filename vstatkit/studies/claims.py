"""The paper's conclusions from its figures, tested cell by cell."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from vstatkit._typing import Bools, Floats
from vstatkit.studies.bias import SIZES, SUBSAMPLES

AGREE = 0.05
"""Relative difference up to which BM and IJ agree."""


@dataclass(frozen=True)
class Claim:
    """A statement about the ratio of estimated to true variance.

    Attributes
    ----------
    text : str
        The statement.
    statistic : {"V", "U"}
        Sampling with replacement, or without.
    method : str
        Label of the estimator.
    verdict : {"above", "below", "one"}
        Where the ratio lies, by its bound.
    subsamples, sizes : tuple of int
        The k and B it is about.
    """

    text: str
    statistic: str
    method: str
    verdict: Literal["above", "below", "one"]
    subsamples: tuple[int, ...] = SUBSAMPLES
    sizes: tuple[int, ...] = SIZES

    def holds(self, table: pd.DataFrame) -> Bools:
        """Test every cell it is about."""
        rows = table[
            (table["statistic"] == self.statistic)
            & (table["method"] == self.method)
            & table["k"].isin(self.subsamples)
            & table["B"].isin(self.sizes)
        ]
        distance: Floats = rows["ratio"].to_numpy(dtype=np.float64) - 1
        bound: Floats = rows["ratio_bound"].to_numpy(dtype=np.float64)
        if self.verdict == "above":
            return distance > bound
        if self.verdict == "below":
            return distance < -bound
        return np.abs(distance) <= bound


CLAIMS = (
    Claim("IJ overestimates at B = 100, V", "V", "IJ", "above", sizes=(100,)),
    Claim(
        "IJ underestimates at B = 10000, U, k = 250 and 400",
        "U",
        "IJ",
        "below",
        subsamples=(250, 400),
        sizes=(10000,),
    ),
    Claim("corrected-V is accurate, V", "V", "corrected-V", "one"),
    Claim(
        "corrected-IJ overestimates at B = 100, U",
        "U",
        "corrected-IJ",
        "above",
        sizes=(100,),
    ),
    Claim("corrected-V over-corrects, U", "U", "corrected-V", "below"),
    Claim("corrected-U is accurate, U", "U", "corrected-U", "one"),
)


def check_claims(table: pd.DataFrame) -> pd.DataFrame:
    """Count the cells in which each statement holds.

    Parameters
    ----------
    table : DataFrame
        From `bias.summary`.

    Returns
    -------
    DataFrame
        `claim`, the number of cells it `holds` in, and of `cells` it is about.
    """
    results = {**_orderings(table), **{one.text: one.holds(table) for one in CLAIMS}}
    return pd.DataFrame(
        [
            {"claim": text, "holds": int(held.sum()), "cells": held.size}
            for text, held in results.items()
        ]
    )


def _orderings(table: pd.DataFrame) -> dict[str, Bools]:
    """Test statements that compare estimators, or numbers of trees."""
    ratio = {
        method: table[table["method"] == method]
        .pivot_table(index=["statistic", "k"], columns="B", values="ratio")
        .to_numpy(dtype=np.float64)
        for method in ("IM", "BM", "IJ")
    }
    apart = np.abs(ratio["BM"] / ratio["IJ"] - 1)
    return {
        "IM exceeds BM": ratio["IM"] > ratio["BM"],
        f"BM and IJ agree within {AGREE:.0%}, B = 1000 and 10000": apart[:, 1:]
        <= AGREE,
        "IJ falls as B grows": np.diff(ratio["IJ"], axis=1) < 0,
    }
