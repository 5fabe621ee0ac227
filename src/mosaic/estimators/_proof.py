"""The program of a fit, solved once on first access, and the certificate that it gives for the choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from mosaic.bounds import bound_of, strength_for_k
from mosaic.budget import DEFAULT_ALPHA
from mosaic.choosing import CERTIFIED_GAP, Answers, Material, Selection, SelectionCertificate, Settings
from mosaic.encoding import Encoding
from mosaic.exceptions import ConvergenceWarning, warn
from mosaic.metrics import unexplained_at
from mosaic.posing import Posed, Roles
from mosaic.program import encode
from mosaic.solvers.base import Status

#: A certified gap above this gives a warning, even if only memory limits it.
WEAK_GAP = 0.25
#: Strength, as a multiple of the critical one, that the paper's first author used in later work.
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
    settings : settings of the fit
    max_rank : largest number of columns of the factor
    warm : a solution for the same points and kernel to start from
    solved : whether ``warm`` solves the same program; then it is returned: a new solution would differ only within tolerance
    """

    settings: Settings
    max_rank: int
    warm: Encoding | None = field(default=None, repr=False)
    solved: bool = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "warm": None, "solved": False}  # a copy starts anew

    @property
    def is_possible(self) -> bool:
        """Always true: the points are in memory."""
        return True

    def encoding(self, material: Material) -> Encoding:
        """The certified encoding; warns if the solver did not finish or the certificate is weak."""
        if self.warm is not None and self.solved:
            return self.warm
        return self._solve(material, self.settings, self.settings.gap, *strength(self.settings))

    def _solve(
        self,
        material: Material,
        settings: Settings,
        gap: float,
        alpha: float | None,
        lam: float | Callable[[Posed], float] | None,
    ) -> Encoding:
        points = material.points
        encoding = encode(
            material.kernel,
            alpha=alpha,
            lam=lam,
            solver=settings.solver,
            tol=gap,
            max_iter=settings.max_iter,
            max_rank=self.max_rank,
            roles=Roles.read(points.n, points.weights),
            warm=None if callable(lam) else self.warm,
            thin=not callable(lam),
            random_state=material.seed,
        )
        warn_of_gap(encoding, gap)
        return encoding

    def certificate(self, selection: Selection) -> SelectionCertificate:
        """A bound for every choice of k points, from the program at the strength for k, and the gap of the program.

        If a strength was set, or rows were chosen by the program, the gap is that of this program and not of the one for k.
        """
        material, settings, k = selection.material, selection.settings, len(selection.chosen)
        weights, kernel = material.points.weights, material.kernel
        total = float(weights @ kernel.diagonal())
        ridge = total / float(weights.sum())
        with_ridge, without = unexplained_at(kernel, selection.chosen, [ridge, 0.0])

        def lam(posed: Posed) -> float:
            return strength_for_k(posed.problem, k, ridge, posed.lam_crit, posed.initial)

        is_set = settings.mode == "paper" or settings.alpha is not None or settings.lam is not None
        quick = replace(settings, solver="auto") if is_set else settings
        program = self._solve(material, quick, settings.tol or CERTIFIED_GAP, None, lam)
        given = selection.encoding if is_set else program
        if is_set and settings.gap != self.settings.gap:
            given = self._solve(material, settings, settings.gap, *strength(settings))
        return SelectionCertificate(
            given.certificate,
            k,
            float(weights @ with_ridge),
            bound_of(program, k, ridge),
            selection.decisions,
            total,
            float(weights @ without),
            material.constraints.are_given,
        )

    def answers(self, selection: Selection) -> Answers:
        """Those of the rows in memory, which are all."""
        return selection.answers_in_memory


def warn_of_gap(encoding: Encoding, tol: float, advice: str | None = None) -> None:
    """Warn if the solver did not finish or the certified gap is large; ``advice`` replaces the usual advice."""
    unfinished = encoding.status not in (Status.CONVERGED, Status.TRIVIAL, Status.KERNEL_ERROR)
    if unfinished or encoding.dual_gap > max(WEAK_GAP, tol):
        warn(
            ConvergenceWarning(
                f"the certified gap is {encoding.dual_gap:.2e}, above the tolerance {tol:g}. {advice or encoding.status.advice}"
            )
        )


def same_kernel(settings: Settings, gamma: Any) -> tuple[Any, ...]:
    """All settings that the similarity of given points depends on."""
    return settings.kernel, gamma, settings.degree, settings.coef0, settings.n_neighbors, settings.diffusion_time
