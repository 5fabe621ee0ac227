"""The problems that the benchmarks are run on: points, and the bandwidth of their RBF similarity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits, make_swiss_roll

from mosaic.arrays.blocks import FloatArray
from mosaic.kernels import RBF, EffectiveCount, Gamma, make_kernel, resolve_gamma

#: Dimensions that the rotated manifold lies in.
AMBIENT = 50
#: Standard deviation of its noise, in each coordinate; the roll itself is some 30 wide.
NOISE = 0.5
#: Points that resemble a point in the narrow problems, by effective count.
NEIGHBOURS = 20.0


class Problem(NamedTuple):
    """Points and the γ of exp(−γ ‖x − y‖²)."""

    name: str
    X: FloatArray
    gamma: float

    @property
    def n(self) -> int:
        """Number of points, which a data set may cap."""
        return len(self.X)

    def similarity(self) -> FloatArray:
        """The n×n matrix K, symmetric to the last bit."""
        K = make_kernel(self.X, "rbf", gamma=self.gamma).block(slice(None), np.arange(self.n))
        return 0.5 * (K + K.T)


def swiss_roll(n: int, seed: int = 0) -> FloatArray:
    """A rolled-up sheet in three dimensions."""
    return np.asarray(make_swiss_roll(n, random_state=seed)[0])


def rotated_manifold(n: int, noise: float = NOISE, seed: int = 0) -> FloatArray:
    """The swiss roll rotated into 50 dimensions, with gaussian noise in all of them."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.standard_normal((AMBIENT, AMBIENT)))[0][:3]
    return np.asarray(swiss_roll(n, seed) @ rotation + noise * rng.standard_normal((n, AMBIENT)))


def make_problem(name: str, n: int) -> Problem:
    """One of the four problems at size n. The digits have 1797 rows, so they end there."""
    gamma: Gamma
    match name:
        case "swiss wide":
            X, gamma = swiss_roll(n), "median"
        case "swiss narrow":
            X, gamma = swiss_roll(n), EffectiveCount(NEIGHBOURS)
        case "digits":
            X, gamma = np.asarray(load_digits().data[:n]), "median"
        case "rotated manifold":
            X, gamma = rotated_manifold(n), EffectiveCount(NEIGHBOURS)
        case _:
            raise ValueError(f"no problem is called {name!r}; there are {', '.join(PROBLEMS)}.")
    return Problem(name, X, resolve_gamma(RBF(X), gamma))


PROBLEMS = ("swiss wide", "swiss narrow", "digits", "rotated manifold")
