"""Shared fixtures: a seeded generator, a guard on global randomness, R."""

import os

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import settings

import r_bridge
from r_bridge import session as r_session

mpl.use("agg")

# A busy machine is no counterexample.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")


@pytest.fixture
def rng():
    return np.random.default_rng(20191202)


@pytest.fixture(autouse=True)
def _global_generator_untouched(request):
    """Fail any test that draws from numpy's global generator."""
    if request.node.get_closest_marker("global_generator"):
        yield
        return
    before = _global_state()
    yield
    assert _global_state() == before, "the global random generator was used"


def _global_state():
    """Numbers that the global generator has made, and how many of them are used."""
    _, numbers, place, *_ = np.random.get_state()  # noqa: NPY002
    return numbers.tobytes(), place


def need(*names):
    """Skip by name where parts of R are missing; with CI=true R and ranger must be."""
    found = r_bridge.available()
    missing = [name for name in names if found[name] is None]
    if not missing:
        return
    reason = f"not installed: {', '.join(missing)}"
    demanded = {"R", "rpy2", "ranger"} & set(missing)
    if demanded and os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def r_is_there():
    """R, rpy2 and ranger, or a skip."""
    need("R", "rpy2", "ranger")


@pytest.fixture
def session(r_is_there):
    """R through rpy2; without it, a skip by name, or a failure when CI=true."""
    return r_session


@pytest.fixture
def random_forest(session):
    """R with randomForest and MASS."""
    need("randomForest", "MASS")
    return session
