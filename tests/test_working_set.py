from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_swiss_roll

from mosaic.kernels import EffectiveCount, make_kernel
from mosaic.program.factor import factorize
from mosaic.program.problem import DesignProblem, critical_lam
from mosaic.program.solvers import InteriorPoint, Status, run, run_interior_point
from mosaic.program.working_set import solve_design
from oracles import certify


def make_problem(n, gamma, tol, alpha=10.0):
    X = make_swiss_roll(n, random_state=0)[0]
    factor = factorize(make_kernel(X, "rbf", gamma=gamma), tol=tol)
    problem = DesignProblem(factor.F, factor.F.T @ factor.F, 1.0)
    return problem.with_lam(alpha * critical_lam(problem)), factor.pivots


def test_certifies_the_whole_program():
    problem, pivots = make_problem(6000, "scale", 1e-6)
    found = solve_design(problem, tol=1e-4, initial=pivots)
    assert found.status is Status.CONVERGED
    # The value is right, the bound is below the optimum, and the optimum is that of everybody.
    tight = solve_design(problem, tol=1e-8, initial=pivots)
    assert certify(problem, found.value).primal == pytest.approx(found.primal, rel=1e-10)
    assert found.dual <= tight.primal * (1 + 1e-9)
    assert tight.dual <= found.primal
    assert (found.primal - found.dual) / problem.scale == pytest.approx(found.gap)
    assert found.gap <= 1e-4
    everybody = certify(problem, tight.value)
    assert (everybody.primal - everybody.dual) / problem.scale < 1e-5


@pytest.mark.parametrize(("gamma", "trace"), [("scale", 1e-7), (EffectiveCount(500.0), 1e-5)], ids=["wide", "narrow"])
def test_reaches_tight_gaps_on_wide_and_narrow_kernels(gamma, trace):
    problem, pivots = make_problem(5000, gamma, trace)
    found = solve_design(problem, tol=1e-6, initial=pivots)
    assert found.status is Status.CONVERGED
    assert found.gap <= 1e-6


def test_thinning_keeps_the_certificate():
    problem, pivots = make_problem(3000, "scale", 1e-6)
    thick = run(InteriorPoint(), problem, tol=1e-3, max_iter=50)
    thin = solve_design(problem, tol=1e-3, initial=pivots)
    assert np.count_nonzero(thin.value) < 0.5 * np.count_nonzero(thick.value)
    assert certify(problem, thin.value).primal - thin.dual <= 1e-3 * problem.scale * (1 + 1e-9)
    problem, pivots = make_problem(800, EffectiveCount(5.0), 1e-5)  # by its rank, hardly anyone can be replaced: nobody is tried
    steps = run(InteriorPoint(), problem, tol=5e-5, max_iter=50).iterations
    assert solve_design(problem, tol=1e-4, initial=pivots).iterations <= steps + 1


@pytest.mark.parametrize("n", [200, 5000])
def test_an_impossible_tolerance_and_too_few_rounds_end_with_an_honest_gap(n):
    problem, pivots = make_problem(n, "scale", 1e-4)
    single = DesignProblem(problem.F.astype(np.float32), problem.C, problem.lam)
    found = solve_design(single, tol=1e-18, initial=pivots)
    assert found.status in (Status.STALLED, Status.CONVERGED)
    assert found.gap < 1e-4
    if n == 5000:  # scores of outsiders are computed in single precision
        assert found.status is Status.STALLED
        assert found.gap > 0
        found = solve_design(problem, tol=1e-8, initial=pivots, max_rounds=1)
        assert found.status is Status.MAX_ITER
        assert found.gap > 1e-8
        bounds = certify(problem, found.value)
        assert (bounds.primal - bounds.dual) / problem.scale == pytest.approx(found.gap, rel=1e-6)


@pytest.mark.parametrize("seed", range(80, 92))
def test_bound_is_never_above_the_optimum(seed):
    """The members alone prove nothing."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(310, 900)), int(rng.integers(2, 9))
    F = rng.normal(size=(n, p)) * 10 ** rng.uniform(-1, 1, size=(n, 1))
    problem = DesignProblem(F, F.T @ F, 1.0)
    problem = problem.with_lam(10 ** rng.uniform(0.02, 2.5) * critical_lam(problem))
    found = solve_design(problem, tol=1e-9)
    optimum = run(InteriorPoint(), problem, tol=1e-12, max_iter=80).primal
    assert found.dual <= optimum * (1 + 1e-11)
    assert certify(problem, found.value).primal - found.dual <= 1e-8 * problem.scale


def test_members_that_violate_only_themselves_are_solved_finer():
    """A subproblem may owe its gap to the dual point of an earlier step; repeating it as loosely would go on for ever."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(20, 10)) * 4
    X = centres[rng.integers(20, size=2000)] + rng.normal(size=(2000, 10))
    X[:20] = rng.normal(size=(20, 10)) * 100
    factor = factorize(make_kernel(X, "rbf", gamma=0.0094), tol=2.5e-4, max_rank=300)
    problem = DesignProblem(factor.F, factor.F.T @ factor.F, 1.0)
    solution = solve_design(problem.with_lam(100 * critical_lam(problem)), tol=2.4e-3, initial=factor.pivots)
    assert solution.status is Status.CONVERGED
    assert solution.gap <= 2.4e-3


@pytest.mark.parametrize("gamma", ["scale", EffectiveCount(20.0)], ids=["wide", "narrow"])
@pytest.mark.parametrize("tol", [1e-4, 1e-8])
def test_steps_in_single_precision_leave_bounds_of_double_precision(gamma, tol):
    problem, _ = make_problem(600, gamma, 1e-7)
    found = run_interior_point(problem, tol=tol)
    double = run(InteriorPoint(), problem, tol=tol, max_iter=50)
    assert found.status is Status.CONVERGED
    assert found.gap <= tol
    tight = run(InteriorPoint(), problem, tol=1e-10, max_iter=60)
    assert tight.dual * (1 - 1e-12) <= found.primal
    assert found.dual <= tight.primal * (1 + 1e-12)
    assert certify(problem, found.value).primal == pytest.approx(found.primal, rel=1e-10)
    assert found.iterations <= double.iterations + 3


def test_a_problem_that_single_precision_does_not_bear_is_solved_in_double():
    """At a strength of 1e12 times the critical one B has a condition far beyond 1e7."""
    problem, _ = make_problem(600, "scale", 1e-12, alpha=1e12)
    found = run_interior_point(problem, tol=1e-4)
    assert found.status is Status.CONVERGED
    assert certify(problem, found.value).primal == pytest.approx(found.primal, rel=1e-6)


def test_a_target_below_the_optimum_is_given_up_early():
    problem, _ = make_problem(600, "scale", 1e-6)
    best = run(InteriorPoint(), problem, tol=1e-8, max_iter=50)
    for solve in (run_interior_point, partial(run, InteriorPoint(), max_iter=50)):
        vain = solve(problem=problem, tol=1e-8, target=0.9 * best.dual)
        assert vain.status is Status.STALLED
        assert vain.primal > 0.9 * best.dual
        assert vain.iterations < best.iterations
        reached = solve(problem=problem, tol=1e-8, target=1.1 * best.primal)
        assert reached.status is Status.CONVERGED
        assert certify(problem, reached.value).primal <= 1.1 * best.primal * (1 + 1e-9)
