"""Similarities that give their diagonal, columns and blocks on demand; no n×n matrix is stored, unless it was given.

A kernel is bound to its points, so other modules need row numbers only: ``kernel.block(rows, columns)`` is
K[rows][:, columns], computed when called. Similarities to new points are ``kernel.cross(Y)``.
"""

from mosaic._checks import KERNELS
from mosaic.kernels.diffusion import Diffusion, heat_features
from mosaic.kernels.make import EffectiveCount, Gamma, make_kernel, resolve_gamma
from mosaic.kernels.points import (
    FEW_FEATURES,
    POINT_KERNELS,
    RBF,
    STATIONARY_KERNELS,
    Cosine,
    FromCallable,
    Kernel,
    Laplacian,
    Linear,
    PointKernel,
    Polynomial,
    Rows,
    StationaryKernel,
)
from mosaic.kernels.precomputed import DEFINITENESS_TEST_SIZE, Precomputed

__all__ = [
    "DEFINITENESS_TEST_SIZE",
    "FEW_FEATURES",
    "KERNELS",
    "POINT_KERNELS",
    "RBF",
    "STATIONARY_KERNELS",
    "Cosine",
    "Diffusion",
    "EffectiveCount",
    "FromCallable",
    "Gamma",
    "Kernel",
    "Laplacian",
    "Linear",
    "PointKernel",
    "Polynomial",
    "Precomputed",
    "Rows",
    "StationaryKernel",
    "heat_features",
    "make_kernel",
    "resolve_gamma",
]
