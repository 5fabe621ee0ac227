"""Manifolds in any ambient dimension, by name: "sphere", "trefoil", "swiss_roll", or "swiss_roll/10" for ten dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from mosaic.arrays.blocks import FloatArray, Seed
from mosaic.datasets import embed, sphere, swiss_roll, trefoil
from mosaic.exceptions import InvalidInputError

MANIFOLDS: Mapping[str, Callable[..., FloatArray]] = MappingProxyType(
    {"sphere": sphere, "trefoil": trefoil, "swiss_roll": swiss_roll}
)


def is_manifold(name: str) -> bool:
    """Whether the name, up to a "/", is that of a manifold."""
    return name.partition("/")[0] in MANIFOLDS


def draw(name: str, n: int, *, random_state: Seed = 0) -> FloatArray:
    """X Qᵀ with X uniform on the manifold in R³ and Q of d orthonormal columns: n points in R^d, d = 3 if not named.

    Examples
    --------
    >>> draw("trefoil/20", 100).shape
    (100, 20)
    """
    kind, slash, ambient = name.partition("/")
    if kind not in MANIFOLDS or (slash and not ambient.isdecimal()):
        raise InvalidInputError(
            f"name must be one of {', '.join(MANIFOLDS)}, alone or with '/' and the ambient dimension; got {name!r}."
        )
    rng = np.random.default_rng(random_state)
    X = MANIFOLDS[kind](n, random_state=rng)
    return embed(X, int(ambient), random_state=rng) if slash else X
