"""Live comparisons with R; skipped by name where R is missing."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import r_bridge
import vstatkit as vs
from tests.ensembles import SAME_ALGEBRA, make_ensemble


@pytest.mark.r
@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("k", [8, 20, 32])
def test_uncalibrated_jackknife_is_rangers(session, k, replace):
    case = make_ensemble(n=40, k=k, B=150, m=25, replace=replace)
    answer = session.call(
        "ranger:::rInfJack",
        np.asfortranarray(case.values.T),
        np.asfortranarray(case.counts.T, dtype=float),
        calibrate=False,
    )
    ours = vs.variance_components(
        case.counts, case.values, method="ij_u", replace=replace
    )
    assert_allclose(ours.sampling, answer["var.hat"], **SAME_ALGEBRA)


def test_importing_the_bridge_does_not_start_r():
    code = "import r_bridge, sys; print('rpy2' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "False"


def test_what_is_missing_is_reported(monkeypatch):
    monkeypatch.setenv("PATH", "")
    found = r_bridge.available()
    assert found["R"] is None
    assert found["ranger"] is None
