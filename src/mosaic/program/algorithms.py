"""Algorithms for the program: one per file, and one loop that runs them all (``base.run``).

The package itself imports neither an algorithm nor NumPy: the command line takes the names from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from mosaic.program.loop import Solver
    from mosaic.program.problem import RowProgram

SolverName: TypeAlias = Literal["auto", "interior-point", "fista", "admm", "admm-paper", "reference"]


def first_order(name: str) -> Solver[RowProgram, Any]:
    """The algorithm of this name that steps on the rows of W.

    A further one is a name in ``SolverName`` and a line here.
    """
    from mosaic.program.admm import ADMM
    from mosaic.program.fista import FISTA

    algorithms: dict[str, Solver[RowProgram, Any]] = {"fista": FISTA(), "admm": ADMM(), "admm-paper": ADMM()}
    return algorithms[name]
