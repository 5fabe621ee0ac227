"""L1-norm kernel PCA: points that the robust principal components leave unexplained are odd.

Kim, Klabjan: A Simple and Fast Algorithm for L1-norm Kernel PCA, IEEE TPAMI 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from experiments.methods import Detector, Scores
from experiments.methods.detect_parts import BANDWIDTHS, Floats, gaussian, points, squared_median_distance

LARGEST = 10_000
WHY = "the kernel matrix is held in memory and read some hundred times"
MOST_STEPS, POWER_STEPS, RANDOM_STARTS = 1000, 20, 4

Product = Callable[[Floats], Floats]


def centred(K: Floats) -> Floats:
    """H K H with H = I − 11ᵀ/n, in place."""
    means = K.mean(axis=0)
    K -= means
    K -= (means - means.mean())[:, None]
    return K


def climb(times: Product, signs: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Repeat c ← sign(Kc), ties keep their sign, until nothing changes; yields (c, Kc), columns side by side.

    No step lowers Σ_i |(Kc)_i| / √(cᵀKc), the L1 norm of the projections on the direction that c stands for.
    """
    for _ in range(MOST_STEPS):
        projected = times(signs)
        yield signs, projected
        new = np.where(projected == 0, signs, np.sign(projected))
        if np.array_equal(new, signs):
            return
        signs = new


def first_component(times: Product, n: int, rng: np.random.Generator) -> tuple[Floats, float]:
    """Projections s = Kc/√(cᵀKc) on a local maximum of Σ_i |φ(a_i)ᵀx| over ‖x‖ = 1, and cᵀKc.

    The best of several climbs: from the signs of the leading eigenvector (by power steps) and from random signs.
    """
    leading = rng.normal(size=(n, 1))
    for _ in range(POWER_STEPS):
        leading = times(leading)
        leading /= max(float(np.linalg.norm(leading)), np.finfo(np.float64).tiny)
    starts = np.hstack([np.where(leading < 0, -1.0, 1.0), rng.choice([-1.0, 1.0], size=(n, RANDOM_STARTS))])
    for signs, projected in climb(times, starts):
        energy, last = np.einsum("ij,ij->j", signs, projected), projected
    best = int(np.argmax(energy))
    return np.asarray(last[:, best] / np.sqrt(max(energy[best], np.finfo(np.float64).tiny))), float(energy[best])


def components(K: Floats, q: int, seed: int) -> Floats:
    """Projections on q components (n × at most q), each found on K less what those before explain, K − Σ_k s_k s_kᵀ."""
    rng = np.random.default_rng(seed)
    S = np.zeros((len(K), 0))
    for _ in range(q):
        explained = S

        def times(A: Floats, explained: Floats = explained) -> Floats:
            return np.asarray(K @ A - explained @ (explained.T @ A))

        s, energy = first_component(times, len(K), rng)
        if energy <= 1e-10 * len(K) * max(float(np.trace(K)), np.finfo(np.float64).tiny):  # nothing is left
            break
        S = np.column_stack([S, s])
    return S


def detect(X: Any, seed: int, bandwidth: float = 1.0, q: int = 5) -> Scores:
    """k_ii − Σ_k s_ik² after q components of the centred Gaussian kernel, σ² = bandwidth · (median distance)².

    The iteration is the authors'; their own outlier score could not be read, the residual energy is the usual one.
    """
    X = points(X, LARGEST, WHY)
    K = centred(gaussian(X, X, bandwidth * squared_median_distance(X, seed)))
    S = components(K, q, seed)
    return Scores(np.maximum(np.diagonal(K) - np.einsum("ij,ij->i", S, S), 0.0))


DETECTORS = (
    Detector(
        "L1-KPCA",
        "paper",
        detect,
        tuple({"bandwidth": bandwidth, "q": q} for bandwidth, q in product(BANDWIDTHS, (2, 5, 20))),
        LARGEST,
    ),
)
