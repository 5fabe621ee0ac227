"""Algorithms for the program: one per file, and one loop that runs them all."""

from mosaic.solvers.admm import ADMM
from mosaic.solvers.base import Record, Solution, Solver, Status, run
from mosaic.solvers.fista import FISTA
from mosaic.solvers.interior_point import InteriorPoint, run_interior_point
from mosaic.solvers.reference import solve_reference

__all__ = [
    "ADMM",
    "FISTA",
    "InteriorPoint",
    "Record",
    "Solution",
    "Solver",
    "Status",
    "run",
    "run_interior_point",
    "solve_reference",
]
