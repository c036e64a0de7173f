"""From windows to the whole: how fast a process executes instructions, and how sure that is.

The rate is the mean of the windows' rates, each an observation of its own. Its
95 % confidence interval is Student's: mean ± t(n - 1) * s / sqrt(n), where s is the
windows' standard deviation. It says what chance there is in the choice of windows;
it does not say what being watched costs: in a window the process is slower than without.
"""

from __future__ import annotations

from math import isfinite, sqrt
from typing import NamedTuple

import numpy as np

from livepro.model import SamplingResult

# Student's t, two-sided 95 %, by degrees of freedom from 1 on (e.g. NIST/SEMATECH e-Handbook of
# Statistical Methods, 1.3.6.7.2); behind the table the next smaller entry, which errs on the safe side.
_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_T_BEHIND = ((120, 1.980), (100, 1.984), (60, 2.000), (40, 2.021), (30, 2.042))


class Estimate(NamedTuple):
    """Instructions per second: the `mean` of the windows, the `margin` of its 95 % confidence interval
    (infinite for a single window), and the `total` for the whole time with its own."""

    mean: float
    margin: float
    total: float
    total_margin: float


def estimate(sampling: SamplingResult) -> Estimate:
    """What the windows say of the whole. Zeros where there is no window."""
    rates = np.array([w.instructions / w.seconds for w in sampling.windows if w.seconds > 0])
    if not len(rates):
        return Estimate(0.0, 0.0, 0.0, 0.0)
    mean = float(rates.mean())
    margin = float("inf")
    if len(rates) > 1:
        margin = quantile(len(rates) - 1) * float(rates.std(ddof=1)) / sqrt(len(rates))
    return Estimate(mean, margin, mean * sampling.seconds, margin * sampling.seconds)


def quantile(freedom: int) -> float:
    """Student's t for a two-sided 95 % interval with so many degrees of freedom (1 or more)."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    return next(t for least, t in _T_BEHIND if freedom >= least)


def document(sampling: SamplingResult) -> dict[str, object]:
    """The windows and the estimate as values that JSON knows."""
    found = estimate(sampling)
    sure = isfinite(found.margin)
    return {
        "seconds": sampling.seconds,
        "rate": found.mean,
        "rate_margin": found.margin if sure else None,
        "total": found.total,
        "total_margin": found.total_margin if sure else None,
        "windows": [
            {"began": w.began, "seconds": w.seconds, "instructions": w.instructions} for w in sampling.windows
        ],
    }
