"""Similarities that compute their diagonal, columns and blocks on demand; an n×n matrix is stored only if it was given.

A kernel holds its points, so other modules use row numbers only: ``kernel.block(rows, columns)`` computes
K[rows][:, columns]. ``kernel.cross(Y)`` computes similarities to new points.
"""

from mosaic.kernels.diffusion import Diffusion, heat_features
from mosaic.kernels.make import EffectiveCount, Gamma, make_kernel, resolve_gamma
from mosaic.kernels.points import (
    FEW_FEATURES,
    RBF,
    Cosine,
    FromCallable,
    Kernel,
    Laplacian,
    Linear,
    PointKernel,
    Polynomial,
    Rows,
)
from mosaic.kernels.precomputed import DEFINITENESS_TEST_SIZE, Precomputed

__all__ = [
    "DEFINITENESS_TEST_SIZE",
    "FEW_FEATURES",
    "RBF",
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
    "heat_features",
    "make_kernel",
    "resolve_gamma",
]
