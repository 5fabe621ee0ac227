"""mosaic.solve as users meet it: bad input, degenerate data, invariances, limits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_digits, make_swiss_roll

import mosaic
from mosaic import ConvergenceWarning, InvalidInputError, MemoryBudgetError, NotPositiveSemidefiniteError
from mosaic.kernels import EffectiveCount
from mosaic.program.solvers import Status

X = np.random.default_rng(5).normal(size=(40, 3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 1.0}, r"alpha must be a finite number > 1 \(a multiple of the critical strength\); got 1"),
        ({"alpha": 0.5}, "At 1 or below nothing is selected"),
        ({"alpha": np.nan}, "alpha must be a finite number > 1"),
        ({"lam": 0.0}, "lam must be a finite number > 0; got 0.0"),
        ({"lam": 1.0, "alpha": 2.0}, "give alpha or lam, not both"),
        ({"tol": 0.0}, "tol must be a finite number > 0"),
        ({"tol": True}, "tol must be a finite number > 0; got True"),
        ({"memory_budget": "lots"}, "memory_budget must be a number of bytes > 0, or text such as 2GiB.* got 'lots'"),
        ({"row_norm": "l1"}, "row_norm must be 'l2' or 'linf'; got 'l1'"),
        ({"solver": "magic"}, "solver must be .* got 'magic'"),
        ({"row_norm": "linf", "solver": "interior-point"}, "no interior-point solver"),
        ({"row_norm": "linf", "sample_weight": np.ones(40)}, "takes no sample_weight"),
        ({"max_rank": 0}, "max_rank must be a whole number >= 1; got 0"),
        ({"sample_weight": np.zeros(40)}, "one of them more than 0; the largest is 0"),
        ({"sample_weight": -np.ones(40)}, "sample_weight must be between 0 and 1e.100; entry 0 is -1"),
        ({"kernel": lambda A, B: np.ones(3)}, r"returned shape \(3,\)"),
    ],
)
def test_bad_settings_answer_with_value_fault_and_remedy(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        mosaic.solve(X, **arguments)


@pytest.mark.parametrize(
    ("K", "error", "message"),
    [
        (np.array([[0.0, 1.0], [1.0, 0.0]]), NotPositiveSemidefiniteError, "smallest eigenvalue is -1 "),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), InvalidInputError, r"K\[0, 1\] = nan"),
        (np.zeros((3, 3)), InvalidInputError, "all similarities are zero"),
    ],
)
def test_bad_similarities_are_refused(K, error, message):
    with pytest.raises(error, match=message):
        mosaic.solve(K, kernel="precomputed")


def test_memory_budgets_are_refused_with_the_numbers():
    with pytest.raises(MemoryBudgetError, match="memory_budget of 100 bytes holds no factor of 40 points"):
        mosaic.solve(X, memory_budget=100)
    with pytest.raises(MemoryBudgetError, match="unknown of 40 × 40 and needs about 76,800 bytes; the limit is 60,000"):
        mosaic.solve(X, row_norm="linf", memory_budget=60_000)
    with pytest.raises(MemoryBudgetError, match="100,000 × 100,000"):
        mosaic.solve(np.random.default_rng(0).normal(size=(100_000, 2)), row_norm="linf", tol=0.1)


def test_a_coarse_kernel_is_admitted():
    with pytest.warns(ConvergenceWarning, match=r"certified gap is .* raise max_rank or memory_budget"):
        encoding = mosaic.solve(X, gamma=5.0, max_rank=10)
    assert encoding.status is Status.KERNEL_ERROR
    assert encoding.dual_gap > 1e-4
    assert encoding.certificate.rank == 10


def test_running_out_of_iterations_is_admitted():
    with pytest.warns(ConvergenceWarning, match="raise max_iter, loosen tol, or use solver='auto'"):
        encoding = mosaic.solve(X, solver="fista", max_iter=3, tol=1e-8)
    assert encoding.status is Status.MAX_ITER
    assert encoding.dual_gap > 1e-8


def test_a_strength_below_the_critical_one_selects_nothing():
    for row_norm in ("l2", "linf"):
        encoding = mosaic.solve(X, lam=1e-6, row_norm=row_norm)
        assert encoding.status is Status.TRIVIAL
        assert len(encoding.support) == 0
        assert encoding.dual_gap <= 1e-4
        assert not encoding.rows(np.arange(40)).any()
        np.testing.assert_allclose(encoding.representation_error, 1.0, atol=1e-6)
        assert (encoding.effective_count >= 1).all()


@pytest.mark.parametrize("row_norm", ["l2", "linf"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "cosine", "polynomial", "diffusion"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_data_is_solved(n, kernel, row_norm):
    encoding = mosaic.solve(X[:n], kernel=kernel, row_norm=row_norm, tol=1e-6)
    assert encoding.dual_gap <= 1e-6
    assert 1 <= len(encoding.support) <= n
    assert (encoding.effective_count >= 1 - 1e-9).all()


def test_all_points_equal_are_one_point():
    encoding = mosaic.solve(np.full((1000, 3), 2.0), alpha=4.0, tol=1e-8)
    np.testing.assert_allclose(encoding.influence, encoding.influence[0])
    np.testing.assert_allclose(encoding.effective_count, 1000.0)
    # One point of weight n: r = 1 − 1/(lam √n k), shared by all copies.
    total = 1 - 1 / 4.0
    np.testing.assert_allclose(encoding.rows([0]), total / 1000, rtol=1e-5)


@settings(deadline=None, max_examples=60)
@given(
    data=arrays(
        np.float64,
        st.tuples(st.integers(1, 25), st.integers(1, 4)),
        elements=st.floats(-1e3, 1e3, allow_subnormal=False) | st.sampled_from([0.0, 1.0]),
    ),
    kernel=st.sampled_from(["rbf", "laplacian", "linear", "polynomial", "cosine", "diffusion"]),
    alpha=st.floats(1.001, 1e3),
)
def test_any_finite_data_is_solved_or_refused_with_a_reason(data, kernel, alpha):
    squares = (data**2).sum(axis=1)
    too_small = 0 < abs(data).max() < 1e-100 or (kernel == "linear" and not squares.max() >= 1e-100)
    if too_small or (kernel == "cosine" and squares.min() < 1e-200):
        with pytest.raises(InvalidInputError, match=r"similarities|rows are zero|Divide X by"):
            mosaic.solve(data, kernel=kernel, alpha=alpha, tol=1e-5)
        return
    encoding = mosaic.solve(data, kernel=kernel, alpha=alpha, tol=1e-5)
    n = len(data)
    assert encoding.dual_gap <= 1e-5
    assert encoding.influence.shape == (n,)
    assert (encoding.influence >= 0).all()
    assert len(encoding.support) >= 1
    assert np.isfinite(encoding.effective_count).all()
    assert (encoding.effective_count >= 1 - 1e-9).all()
    assert (encoding.representation_error >= -1e-9).all()


@settings(deadline=None, max_examples=40)
@given(
    bad=st.sampled_from([np.nan, np.inf, -np.inf]),
    place=st.tuples(st.integers(0, 39), st.integers(0, 2)),
    sparse=st.booleans(),
    single=st.booleans(),
)
def test_a_value_that_is_not_finite_is_found_anywhere(bad, place, sparse, single):
    data = X.astype(np.float32) if single else X.copy()
    data[place] = bad
    with pytest.raises(InvalidInputError, match=rf"X\[{place[0]}, {place[1]}\] = {bad}"):
        mosaic.solve(sp.csr_array(data) if sparse else data)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 1000), alpha=st.floats(1.5, 50))
def test_permuting_points_permutes_the_answer(seed, alpha):
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(30, 2))
    order = rng.permutation(30)
    a = mosaic.solve(data, alpha=alpha, gamma=0.5, tol=1e-10)
    b = mosaic.solve(data[order], alpha=alpha, gamma=0.5, tol=1e-10)
    assert a.lam == pytest.approx(b.lam, rel=1e-8)
    assert a.certificate.primal == pytest.approx(b.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(a.influence[order], b.influence, atol=1e-3 * a.influence.max())


@settings(deadline=None, max_examples=15)
@given(scale=st.floats(1e-6, 1e6), alpha=st.floats(1.5, 50))
def test_scaling_the_similarity_scales_lam_and_nothing_else(scale, alpha):
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    a = mosaic.solve(K, kernel="precomputed", alpha=alpha, tol=1e-9)
    b = mosaic.solve(scale * K, kernel="precomputed", alpha=alpha, tol=1e-9)
    assert b.lam == pytest.approx(a.lam / scale, rel=1e-9)
    assert b.certificate.primal == pytest.approx(a.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(b.influence, a.influence, atol=1e-3 * a.influence.max())


def test_same_seed_same_answer_and_any_seed_the_same_optimum():
    data = make_swiss_roll(2000, random_state=0)[0]
    a, b, c = (mosaic.solve(data, random_state=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(a.influence, b.influence)
    assert a.certificate.primal == pytest.approx(c.certificate.primal, rel=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "cosine", "polynomial"])
def test_single_precision_agrees_to_its_precision(kernel):
    a = mosaic.solve(X, kernel=kernel, tol=1e-4)
    b = mosaic.solve(X.astype(np.float32), kernel=kernel, tol=1e-4)
    assert b.factor.F.dtype == np.float32
    assert b.dual_gap <= 1e-4
    assert b.certificate.primal == pytest.approx(a.certificate.primal, rel=3e-4)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "cosine", "polynomial", "diffusion"])
def test_sparse_input_gives_the_same_answer(kernel):
    data = load_digits().data[:150]
    a = mosaic.solve(data, kernel=kernel, tol=1e-8)
    b = mosaic.solve(sp.csr_array(data), kernel=kernel, tol=1e-8)
    assert b.certificate.primal == pytest.approx(a.certificate.primal, rel=1e-6)


@pytest.mark.slow
def test_narrow_kernel_of_high_rank_reaches_1e_4():
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(50, 50)))[0][:3]
    data = make_swiss_roll(20_000, random_state=0)[0] @ rotation + 0.02 * rng.normal(size=(20_000, 50))
    encoding = mosaic.solve(data, gamma=EffectiveCount(2000.0), tol=1e-4)
    assert encoding.certificate.rank >= 500
    assert encoding.dual_gap <= 1e-4


@pytest.mark.slow
def test_a_million_points_are_certified():
    data = make_swiss_roll(1_000_000, random_state=0)[0]
    encoding = mosaic.solve(data, tol=1e-3)
    assert encoding.dual_gap <= 1e-3


@pytest.mark.parametrize("roles", [{}, {"sample_weight": np.linspace(0.5, 3.0, 55)}])
def test_the_papers_admm_solves_the_same_program_with_copies_and_weights(roles):
    copies = np.concatenate([X, np.repeat(X[:5], 3, axis=0)])
    exact = mosaic.solve(copies, alpha=5.0, tol=1e-8, **roles)
    square = mosaic.solve(copies, alpha=5.0, tol=1e-6, solver="admm-paper", **roles)
    assert square.dual_gap <= 1e-6
    np.testing.assert_allclose(square.influence, exact.influence, atol=0.02 * exact.influence.max())
