"""Similarities that can be asked for their diagonal, chosen columns and blocks. None stores n×n unasked.

A kernel is bound to its points, so everything above speaks of row numbers only: ``kernel.block(rows, columns)`` is
K[rows][:, columns], computed when asked. New points come in by ``kernel.cross(Y)``.
"""

from mosaic.kernels.bandwidth import EffectiveCount, Gamma, resolve_gamma
from mosaic.kernels.base import Kernel, PointKernel, Rows
from mosaic.kernels.diffusion import Diffusion, heat_features
from mosaic.kernels.make import make_kernel
from mosaic.kernels.points import FEW_FEATURES, RBF, Cosine, FromCallable, Laplacian, Linear, Polynomial
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
