"""Solve on few candidates, certify all of them, let the worst enter: the whole program at the price of a small one.

A round solves the design problem on a working set S, which costs nothing that grows with n, then computes z_j for every
candidate that may still matter, one n×p×p product. max z gives the dual value for the *whole* program, so the gap is
honest in every round. Three rules keep the rounds few and S small:

- Growth: violators (z_j > 1) crowd around a few places, and taking the worst of them adds many copies of one
  point. Each violator belongs to the member of S that it resembles most; the worst of every cell enter first.
- Dropping: members with next to no weight whose z is below 1 leave.
- Screening: a candidate that provably has a zero row (``problem.screen``) is never looked at again. The certificate
  of the remaining candidates is one for all, since removing zero rows does not change the optimum.

At the end the support is thinned: a lower bound for the whole program is known, so any sparser η with
P(η) − D within the tolerance is as good an answer, and a shorter one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mosaic._arrays import FloatArray, IntArray, row_norms_squared
from mosaic.problem import DesignProblem, feasible_scale, screen
from mosaic.solvers import InteriorPoint, Record, Solution, Status, run

#: Working set to start with; smaller problems are solved whole.
INITIAL_SIZE = 300
#: Violators that are compared with the members of the working set, at most.
MOST_COMPARED = 20_000
#: A subproblem is solved to this share of the gap of the whole.
SUBPROBLEM_SHARE = 0.1
#: Weight, relative to the mean, that a member must have to stay while its z is well below 1.
NEGLIGIBLE = 1e-3
#: Steps of interior point that one subproblem may take.
MOST_STEPS = 50


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
        before = state.gap
        state.solve(aim)
        state.certify()
        trace.append(Record(state.steps, state.best_primal, state.best_dual, state.gap))
        if callback is not None:
            callback(Round(number, len(state.members), len(state.left), state.gap))
        if state.gap <= aim:
            status = Status.CONVERGED
            break
        stalled = stalled + 1 if state.gap > 0.95 * before else 0
        if stalled >= 5 or not state.grow():
            status = Status.STALLED
            break
    solution = state.solution(status, tuple(trace))
    if thin and solution.gap < tol:
        solution = _thin(problem, solution, tol)
    return replace(solution, status=Status.CONVERGED) if solution.gap <= tol else solution


class _WorkingSet:
    """Members S with their η, the candidates that may still enter, and the best bounds so far."""

    def __init__(
        self, problem: DesignProblem, initial: IntArray | None, start: FloatArray | None, rng: np.random.Generator
    ):
        self.problem = problem
        n = problem.n
        self.lengths = np.sqrt(row_norms_squared(problem.F)).astype(np.float64)
        self.left: IntArray = np.arange(n)
        self.rows = problem.F  # F[left]
        first = np.zeros(0, np.intp) if initial is None else initial[: INITIAL_SIZE - 50]
        if start is not None:
            first = np.union1d(first, np.flatnonzero(start))
        if n <= INITIAL_SIZE:
            self.members = np.arange(n)
        else:
            extra = rng.choice(n, min(n, max(50, INITIAL_SIZE - len(first))), replace=False)
            self.members = np.union1d(first, extra)
        self.eta: FloatArray | None = None if start is None else start[self.members]
        self.best_primal, self.best_dual = np.inf, -np.inf
        self.best: tuple[IntArray, FloatArray] = (self.members, np.zeros(len(self.members)))
        self.gap = 1.0
        self.steps = 0
        self.z: FloatArray = np.zeros(0)
        self.z_members: FloatArray = np.zeros(0)

    def solve(self, aim: float) -> None:
        """Interior point on the members, as precisely as the gap of the whole deserves."""
        tol = max(0.5 * aim, SUBPROBLEM_SHARE * min(self.gap, 0.1))
        if len(self.members) == len(self.left):
            tol = aim
        small = self.problem.restrict(self.members)
        found = run(InteriorPoint(), small, tol=tol, max_iter=MOST_STEPS, start=self._lifted())
        self.eta = found.value
        self.steps += found.iterations

    def _lifted(self) -> FloatArray | None:
        if self.eta is None or not self.eta.any():
            return None
        return self.eta

    def certify(self) -> None:
        """z for all candidates left, bounds for the whole program, and who can be screened for good."""
        assert self.eta is not None
        problem, eta = self.problem, np.zeros(self.problem.n)
        eta[self.members] = self.eta
        point = problem.dual_point(eta)
        self.z_members = problem.scores(point.E, np.asarray(problem.F[self.members], np.float64))
        self.z = problem.scores(point.E, self.rows)
        largest = max(float(self.z.max()), float(self.z_members.max()))
        primal, dual = problem.bounds(point.inner, point.fit, float(self.eta @ self.z_members), largest)
        if primal < self.best_primal:
            self.best_primal, self.best = primal, (self.members, self.eta)
        self.best_dual = max(self.best_dual, dual)
        self.gap = (self.best_primal - self.best_dual) / problem.scale
        s = feasible_scale(point.inner, point.fit, largest)
        keep = screen(self.z, self.lengths[self.left], s, problem.lam, self.best_primal - dual)
        # A smaller copy of F pays only if it is much smaller.
        if 2 * int(keep.sum()) < len(keep):
            self.left, self.rows, self.z = self.left[keep], self.rows[keep], self.z[keep]

    def grow(self) -> bool:
        """Drop idle members, admit violators; False when there is nobody to admit."""
        assert self.eta is not None
        weight = self.eta * self.z_members
        mean = float(weight @ weight) / max(float(weight.sum()), np.finfo(np.float64).tiny)
        stay = (weight > NEGLIGIBLE * mean * (1.0 - self.z_members)) | (self.z_members >= 1.0)
        stay &= np.isin(self.members, self.left)
        new = self._violators(room=max(100, int(stay.sum())))
        if not len(new) and bool(stay.all()):
            # Everyone who matters is inside: only a more precise subproblem can help.
            return self.gap > 0
        members = np.concatenate([self.members[stay], new])
        eta = np.concatenate([self.eta[stay], np.zeros(len(new))])
        order = np.argsort(members)
        self.members, self.eta = members[order], eta[order]
        return True

    def _violators(self, room: int) -> IntArray:
        """Candidates with z > 1, the worst of each cell first; a cell is who resembles one member most."""
        excess = self.z - 1.0
        worth = excess > 0.02 * max(float(excess.max()), 0.0)
        worth &= ~np.isin(self.left, self.members)
        places = np.flatnonzero(worth)
        places = places[np.argsort(-excess[places], kind="stable")][:MOST_COMPARED]
        if len(places) <= room:
            return self.left[places]
        assert self.eta is not None
        weight = self.eta * self.z_members
        active = self.members[weight > 1e-2 * weight.max()]
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
        eta = np.zeros(self.problem.n)
        members, values = self.best
        eta[members] = values
        return Solution(eta, status, self.best_primal, self.best_dual, self.gap, self.steps, trace)


def _thin(problem: DesignProblem, solution: Solution, tol: float) -> Solution:
    """Keep the heaviest rows, solve again on them, as long as P(η) ≤ D + tol · P(0).

    Interior point spreads weight evenly over points that can replace one another; this gathers it.
    """
    target = solution.dual + tol * problem.scale
    eta, primal, steps = solution.value, solution.primal, solution.iterations
    support = np.flatnonzero(eta)
    support = support[np.argsort(-eta[support], kind="stable")]
    keep = int((eta[support] > NEGLIGIBLE * eta.max()).sum())
    while 0 < keep < len(support):
        chosen = np.sort(support[:keep])
        found = run(
            InteriorPoint(), problem.restrict(chosen), tol=0.1 * tol, max_iter=MOST_STEPS, start=eta[chosen], target=target
        )
        steps += found.iterations
        if found.primal > target:
            break
        eta, primal = np.zeros(problem.n), found.primal
        eta[chosen] = found.value
        support = chosen[np.argsort(-found.value, kind="stable")]
        keep = int(0.8 * len(support))
    gap = (primal - solution.dual) / problem.scale
    return replace(solution, value=eta, primal=primal, gap=gap, iterations=steps)
