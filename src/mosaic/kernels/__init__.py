"""Similarities that can be asked for their diagonal, chosen columns and blocks. None stores n×n unasked.

A kernel is bound to its points, so everything above speaks of row numbers only: ``kernel.block(rows, columns)`` is
K[rows][:, columns], computed when asked. New points come in by ``kernel.cross(Y)``.
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
