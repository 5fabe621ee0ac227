"""Similarities on demand; an n×n matrix is stored only if it was given.

A kernel holds its points: ``kernel.block(rows, columns)`` is K[rows][:, columns], ``kernel.cross(Y)`` similarities to new points.
"""

from mosaic.kernels.diffusion import DiffusionKernel
from mosaic.kernels.make import (
    EffectiveCount,
    Gamma,
    decay_rate,
    make_kernel,
    resolve_gamma,
    stationary,
    to_kernel_device,
)
from mosaic.kernels.points import (
    POINT_KERNELS,
    RBF,
    STATIONARY_KERNELS,
    Kernel,
    PointKernel,
    StationaryKernel,
    check_similarities,
)
from mosaic.kernels.precomputed import DISTANCES, Distances, Precomputed
from mosaic.parameters import KERNELS

__all__ = [
    "DISTANCES", "KERNELS", "POINT_KERNELS", "RBF", "STATIONARY_KERNELS", "DiffusionKernel", "Distances", "EffectiveCount",
    "Gamma", "Kernel", "PointKernel", "Precomputed", "StationaryKernel", "check_similarities", "decay_rate", "make_kernel",
    "resolve_gamma", "stationary", "to_kernel_device",
]  # fmt: skip
