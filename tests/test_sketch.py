"""Algorithm 3 by passes: its sums, its certificate for all points, who comes in and who is let go, against brute force."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from mosaic import datasets
from mosaic.arrays.blocks import Prepare
from mosaic.arrays.codes import EqualRows, row_codes
from mosaic.choosing.draw import draw_by_passes
from mosaic.kernels import RBF, make_kernel
from mosaic.kernels.points import Laplacian, Linear, PolynomialKernel
from mosaic.program.encoding import DesignRows
from mosaic.program.solve import Program
from mosaic.rows import open_source
from mosaic.sketch.blocks import Basis, GramSum, LargestScores, Sample, Scores, counted, triangle, with_rows
from mosaic.sketch.rounds import _needed, _solve, run_sketch
from oracles import objective

X = datasets.swiss_roll(700, random_state=1)
KERNELS = {
    "rbf": RBF(X, 0.01),
    "laplacian": Laplacian(X, 0.05),
    "linear": Linear(X),
    "cosine": make_kernel(X + 5.0, "cosine"),
    "polynomial": PolynomialKernel(X / 10.0, 1.0, 2, 1.0),
}


def sketch(kernel, **settings):
    """Of all points of a kernel, none of them left out of the sample."""
    rows = kernel.X
    settings = {"n_added": 15, "n_rounds": 3, "alpha": 20.0, **settings}
    n_initial, sample = settings.pop("n_initial", 60), drawn(rows, len(rows))
    uniform = np.sort(np.random.default_rng(0).permutation(len(sample))[:n_initial])
    return run_sketch(runner(rows), kernel.over, sample, settings.pop("first", uniform), **settings)


def drawn(rows, size):
    found = draw_by_passes(runner(rows), len(rows), size)
    return Sample(found.rows, row_codes(found.rows), found.numbers, found.copies, found.weights)


def runner(rows):
    source = open_source(rows)
    return lambda _, task: source.run(task)


def all_of(kernel):
    return kernel.block(slice(None), np.arange(kernel.n))


def check_certificate(found, kernel, weights, slack=0.0):
    """It holds for the program of all points and the kernel itself."""
    program = Program(kernel, weights, EqualRows.trivial(kernel.n), tol=1e-7)
    optimum = program.encode(lam=found.problem.lam).certificate
    assert found.certificate.dual <= optimum.primal + slack * optimum.scale
    assert optimum.dual - slack * optimum.scale <= found.certificate.primal
    assert found.certificate.scale == pytest.approx(optimum.scale, rel=1e-9)
    assert found.certificate.gap < 1.5 * found.certificate.kernel_error + 0.02


@pytest.mark.parametrize("name", KERNELS)
def test_certificate_holds_and_primal_is_the_value_of_the_rows_that_are_told(name):
    found = sketch(KERNELS[name], n_rounds=2, tol=1e-6)
    check_certificate(found, KERNELS[name], np.ones(700), slack=1e-6)
    kernel = KERNELS[name].over(found.sample.rows)
    encoding = found.encoding(kernel, kernel.n)
    R = encoding.rows(np.arange(kernel.n))
    np.testing.assert_allclose(found.certificate.primal, objective(all_of(kernel), R, encoding.lam), rtol=1e-6)
    np.testing.assert_allclose(encoding.influence, np.linalg.norm(R, axis=1), rtol=1e-5, atol=1e-8)


def test_points_that_are_equal_once_they_are_prepared_are_one():
    prepare = Prepare(directions=True)
    rows = np.concatenate([4.0 * X[:300], X, 2.0 * X[600:]])  # equal directions, to the last bit
    first = np.concatenate([np.arange(300), np.arange(600, 1000)])
    sample = with_rows(prepare(rows[first]), row_codes(prepare(rows[first])), first)
    again, order = counted(runner(rows), "copies", sample, prepare), np.argsort(sample.codes)
    np.testing.assert_array_equal(again.first, first[order])
    np.testing.assert_array_equal(again.counts, np.where((first < 300) | (first >= 900), 2, 1)[order])
    settings = {"n_added": 10, "n_rounds": 3, "alpha": 20.0, "tol": 1e-9, "prepare": prepare}
    found = run_sketch(runner(rows), RBF(sample.rows, 1.0).over, again, np.arange(30), **settings)
    assert len(found.sample) == 700  # those that come in are known, whatever their length


def test_candidates_in_the_span_of_others_are_not_in_the_basis():
    candidates = np.arange(50)
    basis, pivots, spanned = Basis.of(KERNELS["linear"], candidates)
    assert len(pivots) == basis.kernel.n == 3
    np.testing.assert_array_equal(spanned, candidates)  # they may have rows
    copies = KERNELS["rbf"].over(np.concatenate([X[:20], X[:20] + 1e-9]))
    _, pivots, spanned = Basis.of(copies, np.arange(40))
    assert (len(pivots), len(spanned)) == (20, 40)
    apart = KERNELS["rbf"].over(np.concatenate([X[:20], X[:20] + 1e-3]))
    _, pivots, spanned = Basis.of(apart, np.arange(40))
    assert len(pivots) == len(spanned) < 40  # what is neither apart nor in the span is no candidate


def brute_scores(kernel, candidates, solved):
    K = all_of(kernel)
    basis, pivots, _ = Basis.of(kernel, candidates)
    F = solve_triangular(basis.L, K[pivots], lower=True).T
    z = np.linalg.norm(F @ solved.point.E, axis=1)
    R = np.zeros((kernel.n, kernel.n))
    used = np.flatnonzero(solved.found.value)
    rows = DesignRows(F, candidates[used], solved.few.restrict(used), solved.found.value[used])
    R[candidates[used]] = rows.part(slice(None), slice(None))
    rest = np.eye(kernel.n) - R
    return z, np.einsum("ij,ik,kj->j", rest, K, rest), np.diagonal(K) - (F * F).sum(axis=1)


@pytest.fixture(scope="module")
def scored():
    kernel, candidates = KERNELS["rbf"], np.arange(0, 700, 25)
    basis, pivots, _ = Basis.of(kernel, candidates)
    sums = open_source(X).run(GramSum(basis))
    solved = _solve(basis, candidates, kernel, sums, 20.0, None, None, 1e-4)
    return kernel, candidates, basis, pivots, sums, solved, brute_scores(kernel, candidates, solved)


def test_the_look_at_everybody_finds_the_largest_score_and_the_largest_errors(scored):
    kernel, _, basis, pivots, sums, solved, (z, errors, _) = scored
    K = kernel.block(slice(None), pivots)
    np.testing.assert_allclose(np.tril(sums["G"]), np.tril(K.T @ K), rtol=1e-12)
    assert sums["trace"] == pytest.approx(700.0)
    used = np.flatnonzero(solved.found.value)
    V = solved.few.restrict(used).solve_M(solved.found.value[used], np.eye(solved.few.p)) / solved.few.lam
    found = open_source(X).run(Scores(basis, triangle(solved.point.E), V, 5, Prepare()))
    assert np.sqrt(found["largest"]) == pytest.approx(z.max(), rel=1e-6)
    np.testing.assert_array_equal(np.sort(found["worst"]["first"]), np.sort(np.argsort(-errors)[:20]))
    np.testing.assert_array_equal(found["worst"]["rows"], X[found["worst"]["first"]])
    np.testing.assert_allclose(found["worst"]["values"], np.sort(errors)[::-1][:20], rtol=1e-8)


def test_the_largest_scores_are_those_of_distinct_points(scored):
    _, _, basis, _, _, solved, (z, _, left) = scored
    task = LargestScores(basis, triangle(solved.point.E), 30, Prepare())
    twice = np.concatenate([X, X[np.argsort(-z)[:10]]])
    found = open_source(twice).run(task)
    np.testing.assert_allclose(found["best"]["values"], np.sort(z**2)[::-1][:30], rtol=1e-6)
    assert found["longest"] == pytest.approx((1.0 - left).max(), rel=1e-9)
    halves = [task.map_block(part, 0) for part in (twice[:300], twice[300:])]
    np.testing.assert_allclose(task.merge(*halves)["best"]["values"], found["best"]["values"])


def test_candidates_are_let_go_by_what_is_lost_without_them(scored):
    kernel, candidates, basis, pivots, sums, solved, _ = scored
    idle = solved._replace(found=solved.found.__class__(**{**solved.found.__dict__, "value": np.zeros(len(candidates))}))
    K = all_of(kernel)

    def missed(chosen):
        part = K[:, chosen]
        return float(np.trace(K) - np.trace(np.linalg.solve(K[np.ix_(chosen, chosen)], part.T @ part)))

    growth = [missed(np.delete(pivots, j)) - missed(pivots) for j in range(len(pivots))]
    least = int(np.argmin(growth))
    whole = idle._replace(missed=60 * growth[least])  # what may be lost is a fiftieth of this: one candidate's part and no more
    stay = _needed(basis, pivots, candidates, whole, sums, 5)
    np.testing.assert_array_equal(np.setdiff1d(candidates, stay), [pivots[least]])
    assert len(_needed(basis, pivots, candidates, solved._replace(missed=0.0), sums, 5)) == len(candidates)


def test_rounds_bring_the_gap_down_and_stop_when_it_is_reached():
    all_of_them = [gap for _, gap in sketch(KERNELS["rbf"], n_initial=20, n_added=20, n_rounds=6, tol=1e-9).rounds]
    assert len(all_of_them) == 6
    assert min(all_of_them) < 0.5 * all_of_them[0]
    tol = 1.01 * all_of_them[2]
    found = sketch(KERNELS["rbf"], n_initial=20, n_added=20, n_rounds=6, tol=tol)
    gaps = [gap for _, gap in found.rounds]
    assert gaps[-1] <= tol
    assert all(gap > tol for gap in gaps[:-1])
    assert len(gaps) < 6


def test_the_paper_adds_the_points_that_are_represented_worst():
    kernel = KERNELS["rbf"]
    first = np.arange(0, 700, 35)
    one = sketch(kernel, first=first, n_rounds=1)
    two = sketch(kernel, first=first, n_rounds=2, n_added=7, tol=1e-9)
    encoding = one.encoding(kernel.over(one.sample.rows), 700)
    left = np.eye(700) - encoding.rows(np.arange(700))
    errors = np.einsum("ij,ij->j", left, all_of(encoding.kernel) @ left)
    worst = np.argsort(-errors, kind="stable")[:7]
    new, _ = two.rounds[1]
    assert new == len(np.union1d(first, worst))
    assert two.certificate.primal <= one.certificate.primal * (1 + 1e-3)


def test_copies_weigh_in_the_program_as_often_as_they_are_there():
    found = sketch(RBF(np.concatenate([X[:300], np.repeat(X[:10], 30, axis=0)]), 0.05), n_initial=100, n_rounds=1)
    assert found.certificate.scale == pytest.approx(0.5 * found.problem.lam * 600)
    check_certificate(found, RBF(X[:300], 0.05), np.where(np.arange(300) < 10, 31.0, 1.0))
