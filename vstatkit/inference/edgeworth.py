"""Edgeworth expansions: tail probabilities of studentised estimates."""

import numpy as np
from scipy import stats

from vstatkit._typing import Floats


def studentised_tails(
    critical: Floats | float, skew: Floats, excess: Floats, n: int
) -> tuple[Floats, Floats]:
    r"""Compute the probabilities that an interval lies above or below the truth.

    Parameters
    ----------
    critical : ndarray or float
        Half the width of the interval, in standard errors.
    skew, excess : ndarray of shape (m,)
        Skewness and excess kurtosis of the estimates, not of single observations:
        of a mean of n these are :math:`\gamma/\sqrt n` and :math:`\kappa/n`.
    n : int
        Number of independent units.

    Returns
    -------
    above, below : ndarray of shape (m,)
        Probability that the whole interval lies above the truth, and below it. The
        expansion is not valid if they are outside [0, 1].

    Notes
    -----
    With :math:`T` the estimate minus the truth over its standard error (variance with
    divisor n - 1),

    .. math::

       P(T \le x) \approx \Phi(x) + \varphi(x) \Bigl\{ \frac{g}{6} (2 x^2 + 1)
       + x \Bigl[ \frac{c}{12} (x^2 - 3) - \frac{g^2}{18} (x^4 + 2 x^2 - 3)
       - \frac{x^2 + 1}{4 n} \Bigr] \Bigr\}

    with the skewness g and the excess kurtosis c of the estimate.

    References
    ----------
    Hall (1992), The Bootstrap and Edgeworth Expansion, section 2.6,
    doi:10.1007/978-1-4612-4384-7. There the variance has divisor n, which gives
    :math:`x^2 + 3` in place of :math:`x^2 + 1`.

    Examples
    --------
    >>> above, below = studentised_tails(1.96, np.array([0.1]), np.array([0.01]), 1000)
    >>> above.round(4), below.round(4)
    (array([0.0178]), array([0.0348]))
    """
    x = np.asarray(critical, dtype=np.float64)
    first = skew / 6 * (2 * x**2 + 1)
    second = x * (
        excess / 12 * (x**2 - 3)
        - skew**2 / 18 * (x**4 + 2 * x**2 - 3)
        - (x**2 + 1) / (4 * n)
    )
    tail, density = stats.norm.sf(x), stats.norm.pdf(x)
    return tail - density * (first + second), tail + density * (first - second)
