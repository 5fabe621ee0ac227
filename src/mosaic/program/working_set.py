"""Solve on few candidates, certify for all, add the worst violators: the whole program at the cost of a small one.

A round solves the design problem on a working set S, at a cost that does not grow with n. Then it computes z_j for every
candidate, one n×p×p product. max z gives the dual value of the *whole* program, so the gap of every round holds for the whole
program. Two rules keep the rounds few and S small:

- Growth: violators (z_j > 1) lie close together in a few places, and the worst of all would be near-copies of one point.
  So each violator belongs to the cell of the member of S that it resembles most; the worst of every cell enter first.
- Thinning: interior point spreads weight evenly over points that can replace one another. The problem is solved on the
  heaviest members alone, and the others leave if P rises by no more than a share of the round's progress. At the end this is
  repeated with the rest of the tolerance: any η with P(η) − D within the tolerance is as good an answer, with fewer points.
"""

from __future__ import annotations

import numpy as np

from mosaic.arrays.blocks import (
    NO_ROWS,
    PRODUCT_ENTRIES,
    FloatArray,
    IntArray,
    in_blocks,
    row_norms_squared,
)
from mosaic.arrays.xp import asarray_like, host_rows, namespace, on_host, rows_of
from mosaic.program.problem import MOST_SOLVED_WHOLE, DesignProblem, primal_dual
from mosaic.program.solvers import Solution, Status, run_interior_point

#: Problems of up to this many candidates are solved whole, as are those of high rank up to ``MOST_SOLVED_WHOLE``. Larger ones
#: start from as many candidates as the rank, between 60 and this, or from √(n·rank)/10 if that is more: steps on such a working
#: set still cost less than a pass over all points.
MOST_INITIAL_MEMBERS = 300
#: With this many members (or four times the rank) the set grows slowly: steps keep five matrices of members × members.
MOST_MEMBERS = 3000
#: Gap of a subproblem, as a share of the gap of the whole problem.
SUBPROBLEM_SHARE = 0.1


def solve_design(
    problem: DesignProblem,
    *,
    tol: float,
    initial: IntArray | None = None,
    max_rounds: int = 50,
    thin: bool = True,
) -> Solution:
    """Solve a design problem with any number of candidates to a certified relative gap.

    ``initial`` are candidates to begin with, best first, such as the pivots of a factorisation. With ``thin``, members that the
    certificate does not need are dropped in the end; half of ``tol`` is reserved for what that costs.
    """
    aim = 0.5 * tol
    state = _WorkingSet(problem, initial, np.random.default_rng(0))
    status = Status.MAX_ITER
    stalled = 0
    for _ in range(max_rounds):
        old_gap = state.gap
        old_primal = state.best_primal
        state.solve(aim)
        if state.gap <= aim:
            status = Status.CONVERGED
            break
        stalled = stalled + 1 if state.gap > 0.95 * old_gap else 0
        if stalled >= 5:
            status = Status.STALLED
            break
        if state.gap < 0.5 * old_gap:
            # Losing more than a share of the round's progress would let the same points enter and leave forever.
            won = min(old_primal - state.best_primal, state.gap * problem.scale)
            state.thin(
                state.best_primal + 0.01 * won, SUBPROBLEM_SHARE * state.gap, shrink=0.5, once=True
            )
        state.grow()
    if thin and state.gap < tol:
        state.thin(state.best_dual + tol * problem.scale, 0.1 * tol, shrink=0.7)
    eta = np.zeros(problem.n)
    norms = np.zeros(problem.n)
    members, values, lengths = state.best
    eta[members] = values
    norms[members] = lengths
    status = Status.CONVERGED if state.gap <= tol else status
    return Solution(
        eta, norms, status, state.best_primal, state.best_dual, problem.scale, state.steps
    )


class _WorkingSet:
    """The members S with their η, by how much other candidates violate their constraints, and the best bounds so far."""

    def __init__(self, problem: DesignProblem, initial: IntArray | None, rng: np.random.Generator):
        self.problem = problem
        self.rng = rng
        n = problem.n
        self.excess: FloatArray = np.zeros(n)  # z − 1 of candidates outside the set
        by_rank = min(max(problem.p, 60), MOST_INITIAL_MEMBERS)
        self.size = min(max(by_rank, int(0.1 * np.sqrt(n * problem.p))), 1000)
        drawn = self.size // 6
        first = NO_ROWS if initial is None else initial[: self.size - drawn]
        if n <= MOST_INITIAL_MEMBERS or n <= min(MOST_SOLVED_WHOLE, 4 * problem.p):
            self.members = np.arange(n)
        else:
            drawn = min(n, max(drawn, self.size - len(first)))
            self.members = np.union1d(first, rng.choice(n, drawn, replace=False))
        self.eta: FloatArray = np.zeros(len(self.members))
        self.best_primal = np.inf
        self.best_dual = -np.inf
        nothing = np.zeros(len(self.members))
        # S, η, ‖w‖.
        self.best: tuple[IntArray, FloatArray, FloatArray] = (self.members, nothing, nothing)
        self.steps = 0
        self.precision = 1.0

    @property
    def gap(self) -> float:
        return min((self.best_primal - self.best_dual) / self.problem.scale, 1.0)

    def solve(self, aim: float) -> None:
        """Solve on the members, to a share of the gap of the whole problem; then compute bounds for the whole."""
        is_whole = len(self.members) == self.problem.n
        if is_whole:
            tol = aim
        else:
            tol = self.precision * max(0.5 * aim, SUBPROBLEM_SHARE * min(self.gap, 0.1))
        small = self.problem.restrict(self.members, for_steps=True)
        start = self.eta if self.eta.any() else None
        found = run_interior_point(small, tol=tol, start=start)
        self.eta = found.value
        self.steps += found.iterations
        if is_whole:
            self._record(found.primal, found.dual, found.row_norms)
        else:
            self.certify()

    def _record(self, primal: float, dual: float, norms: FloatArray) -> None:
        if primal < self.best_primal:
            self.best_primal = primal
            self.best = (self.members, self.eta, norms)
        self.best_dual = max(self.best_dual, dual)

    def certify(self) -> None:
        """Compute z of all candidates, and bounds for the whole program."""
        problem = self.problem
        point = problem.dual_point(self.eta, self.members)
        z_members = problem.scores(point.E, host_rows(problem.F, self.members))
        z = problem.scores(point.E)
        largest = float(max(z.max(), z_members.max()))
        primal, dual = primal_dual(point.inner, point.fit, float(self.eta @ z_members), largest)
        self._record(primal, dual, self.eta * z_members)
        self.excess = z - 1.0
        self.excess[self.members] = 0.0

    def thin(self, target: float, tol: float, shrink: float, *, once: bool = False) -> None:
        """Keep only the heaviest members of the best η and solve again, as long as P(η) ≤ target."""
        members, eta, _ = self.best
        order = np.argsort(-eta, kind="stable")
        keep = int((eta > 1e-3 * eta.max()).sum())
        if (
            0.9 * len(members) > self.problem.p
        ):  # otherwise hardly any member is replaceable by others
            keep = min(keep, int(shrink * len(order)))
        while 0 < keep <= 0.9 * len(order):  # to leave out fewer is not worth a solution
            chosen = np.sort(order[:keep])
            small = self.problem.restrict(members[chosen], for_steps=True)
            try:
                found = run_interior_point(small, tol=tol, start=eta[chosen], target=target)
            except np.linalg.LinAlgError:  # too ill-conditioned with fewer members at this strength
                break
            self.steps += found.iterations
            if found.primal > target:
                break
            members = members[chosen]
            eta = found.value
            self.best = (members, eta, found.row_norms)
            self.best_primal = found.primal
            order = np.argsort(-eta, kind="stable")
            keep = int(shrink * keep)
            if once:
                break
        self.members = members
        self.eta = eta

    def grow(self) -> None:
        room = max(100, len(self.members), self.size // 2)
        most = max(MOST_MEMBERS, 4 * self.problem.p)
        new = self._violators(room=max(100, min(room, most - len(self.members))))
        if not len(new):
            # Only members violate constraints: the gap of the subproblem came from the dual point of an earlier step.
            self.precision *= 0.1
        members = np.union1d(self.members, new)
        eta = np.zeros(len(members))
        eta[np.searchsorted(members, self.members)] = self.eta
        self.members = members
        self.eta = eta

    def _violators(self, room: int) -> IntArray:
        """Candidates with z > 1, the worst of each cell first; a cell holds all candidates that resemble one member most."""
        excess = self.excess
        F = self.problem.F
        places = np.flatnonzero(excess > 0.02 * max(excess.max(), 0.0))
        most = min(20_000, 10 * room)
        if len(places) > most:
            # The worst may all lie in one place, so most are drawn from all violators.
            worst = np.argpartition(-excess[places], most // 10)[: most // 10]
            drawn = self.rng.choice(len(places), most - len(worst), replace=False)
            places = places[np.union1d(worst, drawn)]
        places = places[np.argsort(-excess[places], kind="stable")]
        if len(places) <= room:
            return places
        active = host_rows(F, self.members)
        lengths = np.sqrt(row_norms_squared(active))
        centres = active[lengths > 0] / lengths[lengths > 0][:, None]
        cell = np.empty(len(places), np.intp)

        def find(part: slice) -> None:
            rows = rows_of(F, places[part])
            cell[part] = on_host(
                namespace(rows).argmax(abs(rows @ asarray_like(rows, centres.T)), axis=1)
            )

        in_blocks(find, len(places), len(centres), PRODUCT_ENTRIES, on=F)
        # Rank within the cell: places are sorted by z, so a stable sort by cell keeps that order inside each.
        order = np.argsort(cell, kind="stable")
        _, first, sizes = np.unique(cell[order], return_index=True, return_counts=True)
        rank = np.empty(len(places), np.intp)
        rank[order] = np.arange(len(places)) - np.repeat(first, sizes)
        return places[np.argsort(rank, kind="stable")[:room]]
