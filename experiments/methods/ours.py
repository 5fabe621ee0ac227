"""MOSAIC with its defaults, without one of its rules at a time, and the paper's Algorithm 1 as written."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from experiments.methods import Detector, Picks, Scores, Selector
from mosaic import MOSAIC, MOSAICOutlierDetector
from mosaic.kernels import EffectiveCount
from mosaic.tuning import SMALLEST_COUNT


def select(X: Any, k: int, seed: int, **parameters: Any) -> Picks:
    """No settings; variants have parameters."""
    model = MOSAIC(k, random_state=seed, **parameters).fit(X)
    return Picks(model.representative_indices_, f"{int(model.is_outlier_.sum())} flagged")


def select_in_own_kernel(X: Any, k: int, seed: int) -> Picks:
    """With the default bandwidth, but as if it were the user's: picks are chosen by it, in all directions."""
    return select(X, k, seed, gamma=EffectiveCount(max(X.shape[0] / k, SMALLEST_COUNT)))


def select_like_the_paper(X: Any, k: int, seed: int, alpha: float = 10.0, gamma: Any = "auto") -> Picks:
    """Algorithm 1: at most k of the rows that are located, novel and no outliers, by influence."""
    model = MOSAIC(k, mode="paper", alpha=alpha, gamma=_bandwidth(gamma), random_state=seed).fit(X)
    return Picks(model.representative_indices_, f"{len(model.representative_indices_)} of {k}")


def select_by_candidates(X: Any, k: int, seed: int, alpha: float = 10.0, gamma: Any = "auto") -> Picks:
    """Algorithm 3: Algorithm 1 on r random candidates, and in I rounds the r̂ worst represented rows are added to them.

    Notes
    -----
    1. The paper states neither r, r̂ nor I. Here r = max(200, n / 10), at most n; r̂ = r / 10; I = 3.
    """
    n = X.shape[0]
    r = min(n, max(FEWEST_CANDIDATES, n // 10))
    model = MOSAIC(
        k,
        mode="paper",
        strategy="sketch",
        n_initial=r,
        n_added=max(r // 10, 1),
        n_rounds=ROUNDS,
        alpha=alpha,
        gamma=_bandwidth(gamma),
        random_state=seed,
    ).fit(X)
    return Picks(model.representative_indices_, f"{len(model.representative_indices_)} of {k}")


def detect(X: Any, seed: int, **parameters: Any) -> Scores:
    """No settings; variants have parameters."""
    model = MOSAICOutlierDetector(random_state=seed, **parameters).fit(X)
    return Scores(-np.log(model.effective_count_), model.is_outlier_, model.threshold_rule_)


def detect_like_the_paper(X: Any, seed: int, alpha: float = 10.0, gamma: Any = "auto") -> Scores:
    """OP of the encoding at the paper's strength; rows below a count of two are rejected."""
    model = MOSAIC("auto", mode="paper", alpha=alpha, gamma=_bandwidth(gamma), random_state=seed).fit(X)
    return Scores(model.outlier_probability_, model.is_outlier_)


def _bandwidth(gamma: Any) -> Any:
    """A number in a grid is the number of points that one resembles: grids are written to files as plain values."""
    return EffectiveCount(gamma) if isinstance(gamma, float) else gamma


#: Candidates of the scalable variant, at least, and its rounds.
FEWEST_CANDIDATES, ROUNDS = 200, 3
#: The paper states neither strength nor bandwidth. "auto" is the bandwidth of its first author's later work, which depends on
#: the units of the data.
SETTINGS = tuple(
    {"alpha": alpha, "gamma": gamma} for alpha, gamma in product((2.0, 10.0, 50.0), ("auto", "median", 20.0))
)
SELECTORS = (
    Selector("MOSAIC", "ours", select, largest=10_000_000),
    Selector("MOSAIC (paper)", "ours", select_like_the_paper, SETTINGS, largest=5000),
    Selector("MOSAIC (paper, scalable)", "ours", select_by_candidates, SETTINGS, largest=1_000_000),
)
DETECTORS = (
    Detector("MOSAIC", "ours", detect, largest=10_000_000),
    Detector("MOSAIC (paper)", "ours", detect_like_the_paper, SETTINGS, largest=5000),
)
#: A given diversity turns exchanges off, and 0 leaves all else as it is; ``mosaic.path`` would change the bandwidth, too.
SELECTOR_VARIANTS = (
    Selector("no rejection", "ours", partial(select, outliers="keep")),
    Selector("own kernel", "ours", select_in_own_kernel),
    Selector("greedy", "ours", partial(select, diversity=0.0)),
    Selector("unscaled", "ours", partial(select, scale=False)),
)
#: Neighbours of a typical point, and strength, are those of either scale of the detector, and of one in between.
DETECTOR_VARIANTS = (
    Detector("near only", "ours", partial(detect, gamma=EffectiveCount(5.0), lam=30.0)),
    Detector("far only", "ours", partial(detect, gamma=EffectiveCount(80.0), lam=10.0)),
    Detector("one scale", "ours", partial(detect, gamma=EffectiveCount(20.0), lam=10.0)),
    Detector("unscaled", "ours", partial(detect, scale=False)),
)
