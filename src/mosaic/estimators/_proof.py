"""The program behind a fit, solved once, when somebody asks, and what it proves of the chosen."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

from mosaic.bounds import bound_of_points
from mosaic.budget import DEFAULT_ALPHA
from mosaic.choosing import Material, Selection, SelectionCertificate, Settings
from mosaic.encoding import Encoding
from mosaic.exceptions import ConvergenceWarning
from mosaic.metrics import unexplained
from mosaic.posing import Roles
from mosaic.program import encode
from mosaic.solvers.base import Status

#: A certificate weaker than this is worth a warning, even if all that limits it is memory.
WEAK_GAP = 0.25
#: The later setting of the paper's first author for the strength, a multiple of the critical one.
PAPER_ALPHA = 10.0


def strength(settings: Settings) -> tuple[float | None, float | None]:
    """Alpha and lam for ``encode``: as given, or the default multiple of the critical strength."""
    if settings.alpha is None and settings.lam is None:
        return (PAPER_ALPHA if settings.mode == "paper" else DEFAULT_ALPHA), None
    return settings.alpha, settings.lam


@dataclass(frozen=True)
class InMemory:
    """The program over all distinct points in memory.

    Attributes
    ----------
    settings : of the fit
    max_rank : columns of the factor, at most
    warm : a solution for the same points and kernel to start from
    solved : whether that is a solution of the very same program: another would only wander within its tolerance
    """

    settings: Settings
    max_rank: int
    warm: Encoding | None = field(default=None, repr=False)
    solved: bool = False

    @property
    def is_possible(self) -> bool:
        """The points are in memory."""
        return True

    def encoding(self, material: Material) -> Encoding:
        """The certified encoding; a solver that did not finish, or a void certificate, is warned of."""
        if self.warm is not None and self.solved:
            return self.warm
        settings, points = self.settings, material.points
        alpha, lam = strength(settings)
        encoding = encode(
            material.kernel,
            alpha=alpha,
            lam=lam,
            solver=settings.solver,
            tol=settings.tol,
            max_iter=settings.max_iter,
            max_rank=self.max_rank,
            roles=Roles.read(points.n, points.weights),
            warm=self.warm,
            random_state=material.seed,
        )
        warn_of_gap(encoding, settings.tol)
        return encoding

    def certificate(self, selection: Selection) -> SelectionCertificate:
        """The gap of the program, and a bound for every choice of k points, from the same factor or the kernel itself."""
        material, encoding, k = selection.material, selection.encoding, len(selection.chosen)
        weights, kernel = material.points.weights, material.kernel
        total = float(weights @ kernel.diagonal())
        ridge = total / float(weights.sum())
        return SelectionCertificate(
            encoding.certificate,
            k,
            float(weights @ unexplained(kernel, selection.chosen, ridge)),
            bound_of_points(kernel, encoding.factor, weights, k, ridge),
            selection.decisions,
            total,
            float(weights @ unexplained(kernel, selection.chosen)),
        )


def warn_of_gap(encoding: Encoding, tol: float, advice: str | None = None) -> None:
    """Say it if the solver did not finish, or if what it has proven is next to nothing; and what to do, if not the usual."""
    unfinished = encoding.status not in (Status.CONVERGED, Status.TRIVIAL, Status.KERNEL_ERROR)
    if unfinished or encoding.dual_gap > max(WEAK_GAP, tol):
        warnings.warn(
            f"the certified gap is {encoding.dual_gap:.2e}, above the tolerance {tol:g}. {advice or encoding.status.advice}",
            ConvergenceWarning,
            stacklevel=4,
        )


def same_kernel(settings: Settings, gamma: Any) -> tuple[Any, ...]:
    """All that the similarity of given points depends on."""
    return settings.kernel, gamma, settings.degree, settings.coef0, settings.n_neighbors, settings.diffusion_time
