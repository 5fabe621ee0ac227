"""What is proven about a choice of k points."""

from __future__ import annotations

from dataclasses import dataclass

from mosaic.encoding import Certificate
from mosaic.lam_path import Bound


@dataclass(frozen=True)
class SelectionCertificate:
    """How far the solved program and the chosen set can be from the best, for the kernel that the user asked for.

    Attributes
    ----------
    gap : relative duality gap of the program, approximation of the kernel included
    kernel_error : share of the kernel that the factor misses, contained in the gap
    rank : columns of the factor
    k : number of representatives
    error : what they leave unexplained of all points, err_g, with ridge g
    bound : what *every* set of k points leaves at least
    bounds : the same for sets of any size, ``bounds.at(k)``; it is tightest for this k
    ridge : g, the mean of k_ii
    excess : error / bound − 1
    settings : what was decided about the data, in sentences
    """

    encoding: Certificate
    k: int
    error: float
    bounds: Bound
    settings: tuple[str, ...] = ()

    @property
    def bound(self) -> float:
        """What every set of k points leaves at least."""
        return self.bounds.at(self.k)

    @property
    def ridge(self) -> float:
        """The price g of coefficients."""
        return self.bounds.ridge

    @property
    def gap(self) -> float:
        """Relative duality gap of the program."""
        return self.encoding.gap

    @property
    def kernel_error(self) -> float:
        """Share of the kernel that the factor misses."""
        return self.encoding.kernel_error

    @property
    def rank(self) -> int:
        """Columns of the factor."""
        return self.encoding.rank

    @property
    def excess(self) -> float:
        """How much more is left unexplained than by the best k points, at most."""
        return excess(self.error, self.bound)

    def __str__(self) -> str:
        these, best = (f"These {self.k} leave", f"{self.k}") if self.k > 1 else ("This one leaves", "one")
        return (
            f"{these} at most {percent(self.excess)} more unexplained than the best possible {best} would; "
            f"the program behind {'them' if self.k > 1 else 'it'} is solved to a gap of {percent(self.gap)} "
            f"(kernel error {percent(self.kernel_error)} at rank {self.rank} included)."
        )


def excess(error: float, bound: float) -> float:
    """Error / bound − 1: how much more is left than by the best set, at most.

    Examples
    --------
    >>> round(excess(1.1, 1.0), 9), excess(1.0, 0.0)
    (0.1, inf)
    """
    return max(error / bound - 1.0, 0.0) if bound > 0 else float("inf")


def percent(share: float) -> str:
    """Two digits that count, and whole numbers above a hundred.

    Examples
    --------
    >>> percent(0.0283), percent(14.42), percent(2e-9), percent(0.0)
    ('2.8 %', '1,442 %', 'less than 0.001 %', '0 %')
    """
    value = 100.0 * share
    if not value > 1e-10:
        return "0 %"
    return "less than 0.001 %" if value < 1e-3 else f"{value:.2g} %" if value < 99.5 else f"{value:,.0f} %"
