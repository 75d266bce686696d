"""Shared fixtures: a seeded generator, a guard on global randomness, R."""

import os

import matplotlib as mpl
import numpy as np
import pytest

import r_bridge

mpl.use("agg")


@pytest.fixture
def rng():
    return np.random.default_rng(20191202)


@pytest.fixture(autouse=True)
def _global_generator_untouched(request):
    """Fail any test that draws from numpy's global generator."""
    if request.node.get_closest_marker("global_generator"):
        yield
        return
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    yield
    after = np.random.get_state()[1]  # noqa: NPY002
    assert np.array_equal(before, after), "the global random generator was used"


@pytest.fixture
def session():
    """R through rpy2; without it, a skip by name, or a failure when CI=true."""
    found = r_bridge.available()
    missing = [name for name in ("R", "rpy2", "ranger") if found[name] is None]
    if missing:
        reason = f"not installed: {', '.join(missing)}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    from r_bridge import session as r_session  # noqa: PLC0415 starts R

    return r_session
