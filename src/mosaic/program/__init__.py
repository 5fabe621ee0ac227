"""The program: posed, solved by one of several algorithms, and certified. Importing it imports neither NumPy nor an algorithm."""

from typing import Literal, TypeAlias

SolverName: TypeAlias = Literal["auto", "fista", "admm"]
RowNorm: TypeAlias = Literal["l2", "linf"]
