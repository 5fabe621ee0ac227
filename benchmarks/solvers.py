"""Seconds until a relative gap is reached, for this library and for others that solve the same program.

Everybody is handed the points, or everybody is handed K, and one strength lam; what has to be computed from there (K, a
factor of it) counts. One judge looks at all answers: the value P of the n×n matrix R with the exact K, against one lower
bound D* for all, proven by interior point far beyond the smallest gap. Only ``mosaic.solve`` proves its answer; the others
end as soon as the judge sees the gap. The judge's own time does not count.
"""

from __future__ import annotations

from report import header, seconds, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from scipy.linalg.lapack import dpstrf
from threadpoolctl import threadpool_limits

import mosaic
from mosaic.arrays.blocks import FloatArray
from mosaic.kernels import Kernel, make_kernel
from mosaic.program.factor import factorize
from mosaic.program.problem import DesignProblem, RowProgram
from mosaic.program.solvers import ADMM, FISTA, InteriorPoint, Solution, run
from problems import PROBLEMS, Problem, make_problem

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracles import conic_solution

ALPHA = 10.0
GAPS = (1e-3, 1e-4, 1e-6)
SIZES = (1000, 2000)
#: Gap of the summary: the tolerance that the library has by default.
SUMMARY_GAP = 1e-4
#: Conic solvers get a size of their own.
CONIC_SIZE = 100
#: Runs shorter than this are repeated, and the median counts.
SHORT, REPEATS = 5.0, 3
#: Share of tr K that the factor of other libraries leaves out: nothing that the smallest gap could see.
NEGLIGIBLE = 1e-9
#: The judge is asked again when this much more time has passed, and other libraries pause as often.
PATIENCE = 0.05

OURS = "mosaic"
Start: TypeAlias = Literal["points", "K"]


class Found(NamedTuple):
    """R = W · basis, or R = W where there is no basis."""

    W: FloatArray
    basis: FloatArray | None = None


@dataclass(frozen=True)
class Case:
    """One problem at one size: K, lam, and the judge. ``start`` says what contestants are handed."""

    problem: Problem
    K: FloatArray
    start: Start = "points"

    @classmethod
    def of(cls, name: str, n: int) -> Case:
        """With the judge ready, so that nobody pays for it."""
        problem = make_problem(name, n)
        case = cls(problem, problem.similarity())
        _ = case.program, case.reference
        return case

    def started_from(self, start: Start) -> Case:
        """The same case and judge, other material."""
        other = replace(self, start=start)
        other.__dict__.update({known: self.__dict__[known] for known in ("lam", "program", "reference")})
        _ = other.given
        return other

    def similarity(self) -> FloatArray:
        """K, computed from the points where these are what is given."""
        return self.problem.similarity() if self.start == "points" else self.K

    @cached_property
    def given(self) -> Kernel:
        """K as a kernel whose checks are done."""
        return make_kernel(self.K, "precomputed")

    @cached_property
    def lam(self) -> float:
        """ALPHA times the critical strength 1 / max_j ‖K_j‖."""
        return ALPHA / float(np.sqrt((self.K * self.K).sum(axis=0)).max())

    @cached_property
    def program(self) -> RowProgram:
        """The program in R with the exact K = F Fᵀ; products with K are products with K itself."""
        values, vectors = np.linalg.eigh(self.K)
        F = vectors * np.sqrt(np.maximum(values, 0.0))
        program = RowProgram(F, np.ascontiguousarray(F.T), self.lam)
        program.__dict__["K"] = program.__dict__["FT"] = self.K
        return program

    @cached_property
    def reference(self) -> Solution:
        """Interior point on the whole problem, far beyond the smallest gap: its bound serves all."""
        F = Reduced.of(self.K).F
        return run(InteriorPoint(), DesignProblem(F, F.T @ F, self.lam), tol=0.01 * min(GAPS), max_iter=100)

    @property
    def steps(self) -> int:
        """Steps to the smallest gap."""
        F = Reduced.of(self.K).F
        return run(InteriorPoint(), DesignProblem(F, F.T @ F, self.lam), tol=min(GAPS), max_iter=100).iterations

    def gap(self, found: Found) -> float:
        """(P(R) − D*) / P(0)."""
        return (self._primal(found) - self.reference.dual) / self.program.scale

    def _primal(self, found: Found) -> float:
        """P at R = W B: ‖r_j‖² = w_jᵀ B Bᵀ w_j, tr(K R) = ⟨K Bᵀ, W⟩ and tr(Rᵀ K R) = ⟨K W, W B Bᵀ⟩, which is n²q."""
        W, B = found
        if B is None:
            return self.program.bounds(W).primal
        gram, KB = self._products(B)
        WG = W @ gram
        square = float(np.trace(self.K)) - 2.0 * float(np.vdot(KB, W)) + float(np.vdot(self.K @ W, WG))
        rows = np.sqrt(np.maximum(np.einsum("ij,ij->i", WG, W), 0.0))
        return 0.5 * self.lam * max(square, 0.0) + float(rows.sum())

    def _products(self, B: FloatArray) -> tuple[FloatArray, FloatArray]:
        """B Bᵀ and K Bᵀ, kept for the basis that was seen last."""
        seen = self.__dict__.get("_seen")
        if seen is None or seen[0] is not B:
            seen = self.__dict__["_seen"] = (B, B @ B.T, self.K @ B.T)
        return seen[1], seen[2]


@dataclass(frozen=True)
class Reduced:
    """K = F Fᵀ and T Tᵀ = FᵀF: a small multi-task lasso. A solution W (n×q) belongs to R = W · ``basis``."""

    F: FloatArray
    T: FloatArray
    basis: FloatArray

    @classmethod
    def of(cls, K: FloatArray) -> Reduced:
        """Pivoted Cholesky to rounding level, then F = QA gives T = Aᵀ and the basis Qᵀ."""
        n = len(K)
        L, pivots, rank, _ = dpstrf(K, lower=1, tol=NEGLIGIBLE * float(np.trace(K)) / n)
        F = np.zeros((n, rank))
        F[pivots - 1] = np.tril(L)[:, :rank]
        Q, A = np.linalg.qr(F)
        return cls(F, np.ascontiguousarray(A.T), Q.T)

    def regression(self, lam: float) -> tuple[FloatArray, FloatArray, float]:
        """Design, tasks and penalty of the lasso that averages its squares over the p samples."""
        return np.asfortranarray(self.F.T), np.asfortranarray(self.T), 1.0 / (lam * self.F.shape[1])


# --- Contestants: each yields a way to obtain its present R; only the time that it takes to get there counts.

T = TypeVar("T")
Answer = Callable[[], Found]
Contestant = Callable[[Case], Iterator[Answer]]


class Chunks:
    """Runs a library some passes at a time: few at first, then a share PATIENCE of all passes made so far.

    Chunks that take next to no time are doubled, so that entering a library costs little.
    """

    def __init__(self, smallest: int = 1, largest: int = 50_000):
        self.smallest, self.largest, self.size, self.total = smallest, largest, smallest, 0

    def run(self, work: Callable[[int], T]) -> T:
        """Call ``work`` with the number of passes that it may make now."""
        start = time.process_time()
        result = work(self.size)
        self.total += self.size
        short = time.process_time() - start < 0.01
        wanted = 2 * self.size if short else int(PATIENCE * self.total)
        self.size = min(max(wanted, self.smallest), self.largest)
        return result


def interior_point(case: Case, tol: float) -> Iterator[Answer]:
    """This library as a user calls it; where K is given, it is checked for symmetry and definiteness."""
    if case.start == "points":
        encoding = mosaic.solve(case.problem.X, gamma=case.problem.gamma, lam=case.lam, tol=tol)
    else:
        encoding = mosaic.solve(case.K, kernel="precomputed", lam=case.lam, tol=tol)

    def answer() -> Found:
        R = np.zeros_like(case.K)
        R[encoding.support] = encoding.rows(encoding.support)
        return Found(R)

    yield answer


def reduced_first_order(case: Case, tol: float, method: FISTA | ADMM) -> Iterator[Answer]:
    """FISTA or ADMM on reduced tasks, as ``mosaic.solve(solver=...)`` sets them up for a tolerance."""
    points = case.start == "points"
    kernel = make_kernel(case.problem.X, "rbf", gamma=case.problem.gamma) if points else case.given
    factor = factorize(kernel, tol=0.25 * tol)
    design = DesignProblem(factor.F, factor.F.T @ factor.F, case.lam)
    program = RowProgram(factor.F, design.T, case.lam)

    @cache
    def basis() -> FloatArray:
        return np.asarray(np.linalg.lstsq(design.T, factor.F.T)[0])

    yield from _steps(method, program, lambda W: Found(W, basis()))


def square_first_order(case: Case, method: FISTA | ADMM) -> Iterator[Answer]:
    """FISTA or the paper's ADMM on the n×n unknown R, with products by K. Nothing is factored."""
    program = RowProgram(case.program.F, case.program.T, case.lam)
    program.__dict__["K"] = program.__dict__["FT"] = case.similarity()
    yield from _steps(method, program, Found)


def _steps(method: Any, program: RowProgram, answer: Callable[[FloatArray], Found]) -> Iterator[Answer]:
    state = method.init(program)
    while True:
        for _ in range(method.check_every):
            state = method.step(program, state)
        yield partial(answer, state[0])


def scikit_learn(case: Case) -> Iterator[Answer]:
    """MultiTaskLasso, continued from where it stood by ``warm_start``."""
    from sklearn.linear_model import MultiTaskLasso

    reduced = Reduced.of(case.similarity())
    X, Y, alpha = reduced.regression(case.lam)
    model = MultiTaskLasso(alpha=alpha, fit_intercept=False, tol=1e-14, warm_start=True)
    chunks = Chunks()
    while True:
        chunks.run(lambda passes: model.set_params(max_iter=passes).fit(X, Y))
        yield lambda: Found(model.coef_.T, reduced.basis)


def skglm(case: Case) -> Iterator[Answer]:
    """Block coordinate descent with working sets and Anderson acceleration, continued from where it stood."""
    from skglm.datafits import QuadraticMultiTask
    from skglm.penalties import L2_1
    from skglm.solvers import MultiTaskBCD

    reduced = Reduced.of(case.similarity())
    X, Y, alpha = reduced.regression(case.lam)
    W, XW = np.zeros((X.shape[1], Y.shape[1])), np.zeros(Y.shape)  # both change in place

    def descend(passes: int) -> None:
        solver = MultiTaskBCD(max_iter=1, max_epochs=passes, tol=1e-14, fit_intercept=False)
        solver.solve(X, Y, QuadraticMultiTask(), L2_1(alpha), W, XW)

    chunks = Chunks(smallest=12)  # two rounds of extrapolation
    while True:
        chunks.run(descend)
        yield lambda: Found(W, reduced.basis)


def celer(case: Case) -> Iterator[Answer]:
    """Celer's working sets, continued from where they stood; twice as large as the support, as Celer has it.

    Its estimator does not run with current scikit-learn; the function beneath it does.
    """
    from celer.homotopy import mtl_path

    reduced = Reduced.of(case.similarity())
    X, Y, alpha = reduced.regression(case.lam)
    W = np.zeros((Y.shape[1], X.shape[1]), order="F")

    def descend(passes: int) -> None:
        working_set = max(10, 2 * int(W.any(axis=0).sum()))
        options = {"max_iter": 1, "max_epochs": passes, "p0": working_set, "tol": 1e-14}
        W[:] = mtl_path(X, Y, alphas=[alpha], coef_init=W, **options)[1][..., 0]

    chunks = Chunks(smallest=10)
    while True:
        chunks.run(descend)
        yield lambda: Found(W.T, reduced.basis)


def conic(case: Case) -> Iterator[Answer]:
    """CVXPY with Clarabel, on reduced tasks."""
    reduced = Reduced.of(case.similarity())
    W = conic_solution(RowProgram(reduced.F, reduced.T, case.lam))
    yield lambda: Found(W, reduced.basis)


#: This library's methods, which start anew for every gap since their factor depends on it.
OWN: dict[str, Callable[[Case, float], Iterator[Answer]]] = {
    OURS: interior_point,
    "reduced FISTA": partial(reduced_first_order, method=FISTA()),
    "reduced ADMM": partial(reduced_first_order, method=ADMM()),
}
#: Others, in this library's or in their own code, which go on from gap to gap.
PEERS: dict[str, Contestant] = {
    "ADMM n×n (paper)": partial(square_first_order, method=ADMM()),
    "FISTA n×n": partial(square_first_order, method=FISTA()),
    "scikit-learn": scikit_learn,
    "skglm": skglm,
    "celer": celer,
}
LIBRARIES = ("scikit-learn", "skglm", "celer")
OTHERS = [name for name in (*OWN, *PEERS) if name != OURS]
#: Where K is given: those that were among the fastest from the points.
FROM_K = (OURS, "reduced FISTA", "reduced ADMM", "ADMM n×n (paper)", "celer")


# --- Timing and judging


@dataclass(frozen=True)
class Outcome:
    """Seconds to a gap, or None with the smallest gap that was reached within the limit."""

    seconds: float | None
    gap: float

    def text(self, limit: float) -> str:
        """As it stands in the table."""
        if self.seconds is not None:
            return seconds(self.seconds)
        return f">{limit:g} s (gap reached {self.gap:.0e})" if np.isfinite(self.gap) else "—"


def follow(case: Case, contestant: Iterator[Answer], gaps: tuple[float, ...], limit: float) -> dict[float, Outcome]:
    """Seconds until each gap, by the best value so far; the judge's time is left out."""
    gap, spent, judged = 1.0, 0.0, 0.0
    reached: dict[float, Outcome] = {}
    while spent < limit and len(reached) < len(gaps):
        start = time.process_time()
        answer = next(contestant, None)
        spent += time.process_time() - start
        if answer is None or spent > limit:
            break
        if spent < (1.0 + 0.5 * PATIENCE) * judged:
            continue
        judged = spent
        gap = min(gap, case.gap(answer()))
        for target in gaps:
            if gap <= target:
                reached.setdefault(target, Outcome(spent, gap))
    return {target: reached.get(target, Outcome(None, gap)) for target in gaps}


def measure(start: Callable[[], dict[float, Outcome]]) -> dict[float, Outcome]:
    """One run, or the medians of a few where it is short and reaches every gap."""
    runs = [start()]
    times = [outcome.seconds for outcome in runs[0].values()]
    if all(t is not None and t < SHORT for t in times):
        runs += [start() for _ in range(REPEATS - 1)]

    def middle(target: float) -> Outcome:
        found = [run_[target].seconds for run_ in runs]
        known = [t for t in found if t is not None]
        return Outcome(median(known) if len(known) == len(found) else None, runs[0][target].gap)

    return {target: middle(target) for target in runs[0]}


def measure_own(name: str, case: Case, limit: float) -> dict[float, Outcome]:
    """One run per gap; a gap is not tried when a wider one was out of reach."""
    outcomes: dict[float, Outcome] = {}
    failed: Outcome | None = None
    for gap in GAPS:
        if failed is None:
            contestant = partial(OWN[name], case, gap)
            outcomes |= measure(lambda gap=gap, go=contestant: follow(case, go(), (gap,), limit))
            failed = None if outcomes[gap].seconds is not None else outcomes[gap]
        else:
            outcomes[gap] = failed
    return outcomes


@dataclass(frozen=True)
class Result:
    """All that was measured on one case."""

    name: str
    n: int
    start: Start
    steps: int
    outcomes: dict[str, dict[float, Outcome]]


def compete(case: Case, contestants: Sequence[str], limit: float) -> Result:
    """Run some contestants on one case."""
    problem = case.problem
    outcomes: dict[str, dict[float, Outcome]] = {}
    for contestant in contestants:
        if contestant in OWN:
            outcomes[contestant] = measure_own(contestant, case, limit)
        else:
            outcomes[contestant] = _measure_peer(contestant, case, limit)
        shown = ", ".join(f"{gap:.0e}: {o.text(limit)}" for gap, o in outcomes[contestant].items())
        print(f"{problem.name}, n={problem.n}, from {case.start}: {contestant:<18} {shown}", flush=True)
    return Result(problem.name, problem.n, case.start, case.steps, outcomes)


def _measure_peer(name: str, case: Case, limit: float) -> dict[float, Outcome]:
    try:
        return measure(lambda: follow(case, PEERS[name](case), GAPS, limit))
    except (ImportError, AttributeError) as error:
        print(f"{name} does not run here: {error!r}")
        return {gap: Outcome(None, float("nan")) for gap in GAPS}


def warm_up() -> None:
    """Compile and load everything once, on a problem of no size."""
    case = Case.of("swiss wide", 40)
    for name in OWN:
        follow(case, OWN[name](case, 1e-2), (1e-2,), 1.0)
    for name in PEERS:
        _measure_peer(name, case, 1.0)


# --- Report


def fastest(result: Result, names: Sequence[str], gap: float) -> tuple[str, float] | None:
    """Name and seconds of the first of some contestants to reach the gap; None if nobody did."""
    times = {name: result.outcomes[name][gap].seconds for name in names if name in result.outcomes}
    reached = {name: t for name, t in times.items() if t is not None}
    return min(reached.items(), key=lambda item: item[1]) if reached else None


def lead(result: Result, names: Sequence[str], gap: float, limit: float) -> str:
    """Their seconds over ours; below 1 they were faster. The limit stands for those who did not get there."""
    ours = result.outcomes[OURS][gap].seconds
    if ours is None:
        return "—"
    best = fastest(result, names, gap)
    return f"> {limit / ours:.3g}×" if best is None else f"{best[1] / ours:.3g}×"


def summary(results: list[Result], limit: float) -> str:
    """The table for a reader in a hurry."""
    rows = []
    for result in results:
        row = [result.name, str(result.n), result.start]
        row.append(f"{result.outcomes[OURS][SUMMARY_GAP].text(limit)} s")
        for names in (OTHERS, LIBRARIES):
            best = fastest(result, names, SUMMARY_GAP)
            row.append(f"> {limit:g} s (all)" if best is None else f"{seconds(best[1])} s ({best[0]})")
            row.append(lead(result, names, SUMMARY_GAP, limit))
        rows.append(row)
    return table(["problem", "n", "from", OURS, "fastest other", "its time / ours", "fastest library", "its time / ours"], rows)


def details(results: list[Result], limit: float) -> str:
    """For each problem a table with a line per size and gap."""
    parts = []
    for name, start in dict.fromkeys((result.name, result.start) for result in results):
        same = [result for result in results if (result.name, result.start) == (name, start)]
        contestants = list(same[0].outcomes)
        rows = []
        for result in same:
            for gap in GAPS:
                cells = [result.outcomes[contestant][gap].text(limit) for contestant in contestants]
                steps = str(result.steps) if gap == min(GAPS) else ""
                rows.append([f"{result.n}, {gap:.0e}", *cells, lead(result, OTHERS, gap, limit), steps])
        head = ["n, gap", *contestants, "fastest other / mosaic", "interior point steps"]
        parts.append(f"### {name}, from {'the points' if start == 'points' else 'K'}\n\n{table(head, rows)}")
    return "\n".join(parts)


def conic_table(names: list[str], limit: float) -> str:
    """CVXPY and Clarabel against ours, at a size that they can do."""
    rows = []
    for name in names:
        case = Case.of(name, CONIC_SIZE)
        problem = case.problem
        ours = measure_own(OURS, case, limit)[1e-6]
        start = time.process_time()
        answer = next(conic(case))
        spent = time.process_time() - start
        gap = case.gap(answer())
        print(f"{name}, n={problem.n}: CVXPY {seconds(spent)} s, gap {gap:.0e}", flush=True)
        rows.append([name, str(problem.n), ours.text(limit), seconds(spent), f"{gap:.0e}"])
    return table(["problem", "n", f"{OURS}, gap 1e-06", "CVXPY + Clarabel", "its gap"], rows)


def notes() -> str:
    """What the numbers mean."""
    return f"""\
Seconds of processor time until the relative gap (P − D*)/P(0) falls to the target, alpha = {ALPHA:g}.

- From the points: all are handed the points and lam; K, or a factor of it, is part of the times. From K: all are handed K
  and lam; a factor of it is part of the times, and so are the checks that `mosaic.solve` makes and the others do not.
- One function computes P for all from the n×n matrix R, with the exact K, and one lower bound D* serves all, from
  interior point on the whole problem. Neither is part of the times. All but "mosaic" end as soon as this judge sees the
  gap, and would still have to prove it; "mosaic" has proven it in the time shown.
- Medians of {REPEATS} runs where a run takes less than {SHORT:g} s.
- "mosaic" is `mosaic.solve` with its defaults. Reduced FISTA and ADMM are this library's own first-order methods on
  the reduced tasks (T Tᵀ = FᵀF, F to a quarter of the gap, as for "mosaic"), ADMM and FISTA n×n are those of the paper's form.
- scikit-learn, skglm and celer get the reduced tasks (T Tᵀ = FᵀF, F by pivoted Cholesky to {NEGLIGIBLE:.0e}
  of tr K), the fastest form for them. They are continued from where they stood, some passes at a time;
  times are up to some {100 * PATIENCE:.0f} % late for that.
- "Interior point steps" are those on the whole problem, to {min(GAPS):.0e}.
- The digits have 1797 rows, so that is their largest n.
- CVXPY cannot do these sizes and has a table of its own.
"""


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds per run (default 30)")
    parser.add_argument("--out", default="solvers.md", help="file in benchmarks/results")
    parser.add_argument("--quick", action="store_true", help="100 and 200 points, 2 s: to see that it runs")
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.limit = [100, 200], 2.0
    return options


def main() -> None:
    """Measure and write benchmarks/results/solvers.md."""
    options = arguments()
    warnings.filterwarnings("ignore")  # of others, that they have not converged yet
    packages = ["numpy", "scipy", "scikit-learn", "skglm", "celer", "numba", "cvxpy", "clarabel"]
    with threadpool_limits(1):
        warm_up()
        results = []
        for name in options.problems:
            for n in sorted(options.sizes):
                case = Case.of(name, n)
                results.append(compete(case, (*OWN, *PEERS), options.limit))
                if n == max(options.sizes):
                    results.append(compete(case.started_from("K"), FROM_K, options.limit))
        parts = [header("Time to a certified gap", packages), notes()]
        parts += [f"## Summary, gap {SUMMARY_GAP:.0e}\n", summary(results, options.limit)]
        parts += ["## All problems\n", details(results, options.limit)]
        parts += ["## Conic solver\n", conic_table(options.problems, options.limit)]
    write(options.out, "\n".join(parts))


if __name__ == "__main__":
    main()
