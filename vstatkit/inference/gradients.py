"""Gradients of functions of estimates, by differences scaled by standard errors."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vstatkit._typing import Floats

STEP = 0.1  # longest step of the differences, in standard errors
# Largest ratio of the differences of one-sided slopes at half the step and the step: it
# is one half for a function with two derivatives, and one at a kink.
KINK = 0.75
MATTERS = 0.05  # smallest relevant difference of one-sided slopes, in standard errors
NEAR = "a point near the estimates"


class Gradient(NamedTuple):
    """A function at the estimates, and its first derivatives."""

    value: Floats  # (r,): the function
    slopes: Floats  # (r, m): its derivatives
    # (r,): largest deviation from the tangent at one standard error from the estimates,
    # relative to the change of the tangent; zero for linear functions
    bend: Floats


def gradient(
    function: Callable[[Floats], Floats], at: Floats, errors: Floats
) -> Gradient:
    """Differentiate a function of estimates, from shape (m,) to shape (r,).

    The standard errors set the step. Estimates without error are fixed.

    With central differences :math:`D(h) = (f(p + h) - f(p - h)) / 2h` at the steps h of
    a tenth and a twentieth of a standard error the derivative is
    :math:`(4 D(h/2) - D(h)) / 3`, with an error of the fourth order in h; it is exact
    for polynomials of the fourth degree. If the slopes to the left and to the right do
    not approach each other as h is halved, the function has a kink or a jump, and an
    error is raised.

    Richardson (1911), The approximate arithmetical solution by finite differences of
    physical problems, Philosophical Transactions A 210. doi:10.1098/rsta.1911.0009

    >>> result = gradient(lambda p: p[:1] / p[1:], np.array([3.0, 2.0]), np.ones(2))
    >>> result.slopes.round(4)
    array([[ 0.5 , -0.75]])
    """
    value = _check_finite(function(at), "the estimates")
    slopes = np.zeros((value.size, at.size))
    kinks = np.zeros((2, value.size, at.size))
    bend = np.zeros(value.size)
    for j in np.flatnonzero(errors > 0):
        central = []
        for place, step in enumerate((STEP, STEP / 2)):
            h = step * errors[j]
            up, down = (
                _check_finite(function(_shift_estimate(at, int(j), move)), NEAR)
                for move in (h, -h)
            )
            # The step in floating point, which differs from `h` by rounding.
            above = (at[j] + h) - at[j]
            below = at[j] - (at[j] - h)
            central.append((up - down) / (above + below))
            right, left = (up - value) / above, (value - down) / below
            kinks[place, :, j] = np.abs(right - left) * errors[j]
        slopes[:, j] = (4 * central[1] - central[0]) / 3
        bend = np.maximum(bend, kinks[0, :, j] / (2 * STEP))
    for signs in _directions(at.size):
        h = STEP * signs * errors
        up, down = (_check_finite(function(at + shift), NEAR) for shift in (h, -h))
        bend = np.maximum(bend, np.abs(up + down - 2 * value) / (2 * STEP**2))
    scale = np.abs(slopes * errors).max(axis=1, initial=0.0)
    _check_smooth(kinks, np.where(scale > 0, scale, kinks[0].max(axis=1, initial=0.0)))
    safe = np.where(scale > 0, scale, 1.0)
    return Gradient(value, slopes, np.where(scale > 0, bend / safe, 0.0))


def _directions(m: int) -> list[Floats]:
    """List sign patterns in which any two estimates agree once and differ once."""
    places, n_bits = np.arange(m), max(m - 1, 0).bit_length()
    bits = [(places >> bit) & 1 for bit in range(n_bits)]
    return [np.ones(m), *(np.where(bit, -1.0, 1.0) for bit in bits)]


def _shift_estimate(at: Floats, j: int, h: float) -> Floats:
    shifted = at.copy()
    shifted[j] += h
    return shifted


def _check_finite(value: Floats, where: str) -> Floats:
    if not np.isfinite(value).all():
        raise ValueError(
            f"the function must be finite at the estimates and near them; at {where} "
            f"it is {value}."
        )
    return value


def _check_smooth(kinks: Floats, scale: Floats) -> None:
    """Raise an error at kinks, where one-sided slopes do not approach each other."""
    longer, shorter = kinks
    kinked = (shorter > KINK * longer) & (shorter > MATTERS * scale[:, None])
    if kinked.any():
        row, column = (int(places[0]) for places in np.nonzero(kinked))
        raise ValueError(
            f"the function (output {row}) has a kink or a jump in estimate {column} "
            "within a tenth of a standard error; the delta method needs a smooth "
            "function. Test the parts separately, or use t_test."
        )
