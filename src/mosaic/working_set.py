"""Solve on few candidates, certify for all, add those that violate most: the whole program at the price of a small one.

A round solves the design problem on a working set S, which costs nothing that grows with n, then computes z_j for every
candidate that may still matter, one n×p×p product. max z gives the dual value for the *whole* program, so the gap
holds for the whole in every round. Three rules keep the rounds few and S small:

- Growth: violators (z_j > 1) crowd around a few places, and taking the worst of them would add many near-copies of one
  point. Each violator belongs to the member of S that it resembles most; the worst of every cell enter first.
- Thinning: interior point spreads weight evenly over points that can replace one another. The heaviest members are
  solved for alone, and the others leave, as long as P gives back no more than a share of what the round won. In the end this
  runs once more with what the tolerance has left: any η with P(η) − D within it is as good an answer, and a shorter one.
- Screening: a candidate that provably has a zero row (``problem.screen``) is dropped for good. The certificate
  of the remaining candidates holds for all, since removing zero rows does not change the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mosaic._arrays import BoolArray, FloatArray, IntArray, row_norms_squared
from mosaic.problem import MOST_SOLVED_WHOLE, DesignProblem, feasible_scale, screen
from mosaic.solvers.base import Record, Solution, Status
from mosaic.solvers.interior_point import run_interior_point

#: Problems of this many candidates are solved whole, and so are those of up to ``MOST_SOLVED_WHOLE`` and of high rank. Larger
#: ones start from as many candidates as the rank, between 60 and this, or from √(n·rank)/10 where that is more: then steps on the
#: working set still cost less than a pass over all points.
MOST_INITIAL_MEMBERS = 300
#: From this many members on (or four times the rank) the set grows slowly: steps keep five matrices of its size squared.
MOST_MEMBERS = 3000
#: Violators that are compared with the members of the working set, at most.
MOST_COMPARED = 20_000
#: A subproblem is solved to this share of the gap of the whole.
SUBPROBLEM_SHARE = 0.1
#: Share of the primal progress of a round that thinning may give back.
GIVEN_BACK_SHARE = 0.01
#: Thinning is tried when it promises to leave at most this share of the members.
THINNED_SHARE = 0.9


@dataclass(frozen=True)
class Round:
    """What happened in one round, for progress reports."""

    number: int
    working_set: int
    candidates_left: int
    gap: float


def solve_design(
    problem: DesignProblem,
    *,
    tol: float,
    initial: IntArray | None = None,
    start: FloatArray | None = None,
    max_rounds: int = 50,
    thin: bool = True,
    random_state: int = 0,
    callback: Callable[[Round], None] | None = None,
) -> Solution:
    """Solve a design problem with any number of candidates to a certified relative gap.

    Parameters
    ----------
    problem : the design problem
    tol : relative gap to reach; when thinning, half of it is left for that
    initial : candidates to begin with, best first (the pivots of a factorisation, say)
    start : η of a similar problem (warm start)
    max_rounds : rounds of growth at most
    thin : drop what the certificate does not need
    random_state : seed for the few random candidates that join ``initial``
    callback : called after every round

    Returns
    -------
    Solution
        With η for all candidates as its value and one record per round in its trace.
    """
    aim = 0.5 * tol if thin else tol
    state = _WorkingSet(problem, initial, start, np.random.default_rng(random_state))
    trace: list[Record] = []
    status, stalled = Status.MAX_ITER, 0
    for number in range(max_rounds):
        old_gap, old_primal = state.gap, state.best_primal
        state.solve(aim)
        trace.append(Record(state.steps, state.best_primal, state.best_dual, state.gap))
        if callback is not None:
            callback(Round(number, len(state.members), len(state.left), state.gap))
        if state.gap <= aim:
            status = Status.CONVERGED
            break
        stalled = stalled + 1 if state.gap > 0.95 * old_gap else 0
        if stalled >= 5:
            status = Status.STALLED
            break
        if state.gap < 0.5 * old_gap:
            # Giving back more than a share of what the round has won would let the same points enter and leave for ever.
            won = min(old_primal - state.best_primal, state.gap * problem.scale)
            state.thin(state.best_primal + GIVEN_BACK_SHARE * won, SUBPROBLEM_SHARE * state.gap, shrink=0.5, once=True)
        state.grow()
    if thin and state.gap < tol:
        state.thin(state.best_dual + tol * problem.scale, 0.1 * tol, shrink=0.7)
    solution = state.solution(status, tuple(trace))
    return replace(solution, status=Status.CONVERGED) if solution.gap <= tol else solution


class _WorkingSet:
    """Members S with their η, the candidates that may still enter, and the best bounds so far."""

    def __init__(
        self, problem: DesignProblem, initial: IntArray | None, start: FloatArray | None, rng: np.random.Generator
    ):
        self.problem, self.rng = problem, rng
        n = problem.n
        self.lengths = np.sqrt(row_norms_squared(problem.F)).astype(np.float64)
        self.left: IntArray = np.arange(n)
        self.rows = problem.F  # F[left]
        size = max(min(max(problem.p, 60), MOST_INITIAL_MEMBERS), int(0.1 * np.sqrt(n * problem.p)))
        self.size = min(size, 1000)
        first = np.zeros(0, np.intp) if initial is None else initial[: self.size - self.size // 6]
        if start is not None:
            first = np.union1d(first, np.flatnonzero(start))
        if n <= MOST_INITIAL_MEMBERS or n <= min(MOST_SOLVED_WHOLE, 4 * problem.p):
            self.members = np.arange(n)
        else:
            extra = rng.choice(n, min(n, max(self.size // 6, self.size - len(first))), replace=False)
            self.members = np.union1d(first, extra)
        self.eta: FloatArray = np.zeros(len(self.members)) if start is None else start[self.members]
        self.best_primal, self.best_dual = np.inf, -np.inf
        nothing = np.zeros(len(self.members))
        self.best: tuple[IntArray, FloatArray, FloatArray] = (self.members, nothing, nothing)  # S, η, ‖w‖
        self.steps = 0
        self.precision = 1.0
        self.z: FloatArray = np.zeros(0)

    @property
    def gap(self) -> float:
        """Relative gap for the whole program; 1 before anything is known."""
        return min((self.best_primal - self.best_dual) / self.problem.scale, 1.0)

    def solve(self, aim: float) -> None:
        """Interior point on the members, as precisely as the gap of the whole deserves; then bounds for the whole."""
        is_whole = len(self.members) >= len(self.left) and bool(self._is_member()[self.left].all())
        tol = aim if is_whole else self.precision * max(0.5 * aim, SUBPROBLEM_SHARE * min(self.gap, 0.1))
        small = self.problem.restrict(self.members, for_steps=True)
        start = self.eta if self.eta.any() else None
        found = run_interior_point(small, tol=tol, start=start)
        self.eta = found.value
        self.steps += found.iterations
        if is_whole:
            self.z = np.zeros(len(self.left))  # no candidate outside is left that could violate anything
            self._record(found.primal, found.dual, found.row_norms)
        else:
            self.certify()

    def _record(self, primal: float, dual: float, norms: FloatArray) -> None:
        if primal < self.best_primal:
            self.best_primal, self.best = primal, (self.members, self.eta, norms)
        self.best_dual = max(self.best_dual, dual)

    def certify(self) -> None:
        """Compute z for all candidates left, bounds for the whole program, and the candidates that can be screened."""
        problem, eta = self.problem, np.zeros(self.problem.n)
        eta[self.members] = self.eta
        point = problem.dual_point(eta)
        z_members = problem.scores(point.E, np.asarray(problem.F[self.members], np.float64))
        self.z = problem.scores(point.E, self.rows)
        largest = max(float(self.z.max()), float(z_members.max()))
        primal, dual = problem.bounds(point.inner, point.fit, float(self.eta @ z_members), largest)
        self._record(primal, dual, self.eta * z_members)
        s = feasible_scale(point.inner, point.fit, largest)
        keep = screen(self.z, self.lengths[self.left], s, problem.lam, self.best_primal - dual)
        # A smaller copy of F pays only if it is much smaller.
        if 2 * int(keep.sum()) < len(keep):
            self.left, self.rows, self.z = self.left[keep], self.rows[keep], self.z[keep]

    def thin(self, target: float, tol: float, shrink: float, *, once: bool = False) -> None:
        """Keep the heaviest members of the best η, solve on them, for as long as P(η) ≤ target."""
        members, eta, _ = self.best
        order = np.argsort(-eta, kind="stable")
        keep = int((eta > 1e-3 * eta.max()).sum())
        if THINNED_SHARE * len(members) > self.problem.p:  # otherwise hardly any member can be replaced by others
            keep = min(keep, int(shrink * len(order)))
        while 0 < keep <= THINNED_SHARE * len(order):
            chosen = np.sort(order[:keep])
            small = self.problem.restrict(members[chosen], for_steps=True)
            try:
                found = run_interior_point(small, tol=tol, start=eta[chosen], target=target)
            except np.linalg.LinAlgError:  # too ill-conditioned with fewer members at this strength
                break
            self.steps += found.iterations
            if found.primal > target:
                break
            members, eta = members[chosen], found.value
            self.best, self.best_primal = (members, eta, found.row_norms), found.primal
            order = np.argsort(-eta, kind="stable")
            keep = int(shrink * keep)
            if once:
                break
        self.members, self.eta = members, eta

    def grow(self) -> None:
        """Admit violators."""
        room = max(100, len(self.members), self.size // 2)
        most = max(MOST_MEMBERS, 4 * self.problem.p)
        new = self._violators(room=max(100, min(room, most - len(self.members))))
        if not len(new):
            # The members violate their own constraints: the subproblem owes its gap to the dual point of an earlier step.
            self.precision *= 0.1
        members = np.concatenate([self.members, new])
        eta = np.concatenate([self.eta, np.zeros(len(new))])
        order = np.argsort(members)
        self.members, self.eta = members[order], eta[order]

    def _is_member(self) -> BoolArray:
        inside = np.zeros(self.problem.n, dtype=bool)
        inside[self.members] = True
        return inside

    def _violators(self, room: int) -> IntArray:
        """Candidates with z > 1, the worst of each cell first; the cell of a member is all that resemble it most."""
        excess = self.z - 1.0
        worth = excess > 0.02 * max(float(excess.max()), 0.0)
        worth &= ~self._is_member()[self.left]
        places = np.flatnonzero(worth)
        places = places[np.argsort(-excess[places], kind="stable")]
        most = min(MOST_COMPARED, 10 * room)
        if len(places) > most:
            # The worst may all lie in one place, so most are drawn from all violators.
            worst, others = np.split(places, [most // 10])
            drawn = self.rng.choice(len(others), most - len(worst), replace=False)
            places = np.concatenate([worst, others[np.sort(drawn)]])
        if len(places) <= room:
            return self.left[places]
        active = self.members
        active = active[self.lengths[active] > 0]
        centres = self.problem.F[active] / self.lengths[active].astype(self.problem.F.dtype)[:, None]
        cell = np.abs(self.rows[places] @ centres.T).argmax(axis=1)
        # Rank within the cell: places are sorted by z, so a stable sort by cell keeps that order inside each.
        order = np.argsort(cell, kind="stable")
        starts = np.concatenate([[True], cell[order[1:]] != cell[order[:-1]]])
        rank = np.empty(len(places), np.intp)
        position = np.arange(len(places))
        rank[order] = position - np.maximum.accumulate(np.where(starts, position, 0))
        return self.left[places[np.argsort(rank, kind="stable")[:room]]]

    def solution(self, status: Status, trace: tuple[Record, ...]) -> Solution:
        eta, norms = np.zeros(self.problem.n), np.zeros(self.problem.n)
        members, values, lengths = self.best
        eta[members], norms[members] = values, lengths
        return Solution(eta, norms, status, self.best_primal, self.best_dual, self.gap, self.steps, trace)
