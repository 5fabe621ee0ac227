"""Algorithms for the program: one a file, one loop for all (``base.run``).

The package itself imports neither an algorithm nor NumPy: the command line takes the names from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from mosaic.problem import RowProgram
    from mosaic.solvers.base import Solver

SolverName: TypeAlias = Literal["auto", "interior-point", "fista", "admm", "admm-paper", "reference"]


def first_order(name: str) -> Solver[RowProgram, Any]:
    """The algorithm of this name that steps on the rows of W.

    A further one is a name in ``SolverName`` and a line here.
    """
    from mosaic.solvers.admm import ADMM
    from mosaic.solvers.fista import FISTA

    algorithms: dict[str, Solver[RowProgram, Any]] = {"fista": FISTA(), "admm": ADMM(), "admm-paper": ADMM()}
    return algorithms[name]
