"""mosaic.solve as users meet it: bad input, degenerate data, invariances, limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import make_swiss_roll

import mosaic
from mosaic import ConvergenceWarning, InvalidInputError, MemoryBudgetError
from mosaic.program.solvers import Status

X = np.random.default_rng(5).normal(size=(40, 3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 1.0}, r"alpha must be a finite number > 1 \(a .*\); got 1.0. At 1 or below nothing is selected"),
        ({"lam": 1.0, "alpha": 2.0}, "give alpha or lam, not both"),
        ({"tol": 0.0}, "tol must be a finite number > 0"),
        ({"row_norm": "l1"}, "row_norm must be 'l2' or 'linf'; got 'l1'"),
        ({"solver": "magic"}, "solver must be .* got 'magic'"),
        ({"row_norm": "linf", "sample_weight": np.ones(40)}, "takes no sample_weight"),
        ({"sample_weight": np.zeros(40)}, "one of them more than 0; the largest is 0"),
    ],
)
def test_bad_settings_answer_with_value_fault_and_remedy(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        mosaic.solve(X, **arguments)
    with pytest.raises(InvalidInputError, match="all similarities are zero"):
        mosaic.solve(np.zeros((3, 3)), kernel="precomputed")


def test_a_program_that_does_not_fit_into_memory_is_refused_with_the_numbers():
    with pytest.raises(MemoryBudgetError, match=r"row_norm asks for 100,000 × 100,000 numbers.* got 'linf'. Use 'l2'"):
        mosaic.solve(np.random.default_rng(0).normal(size=(100_000, 2)), row_norm="linf", tol=0.1)


def test_a_coarse_kernel_and_running_out_of_iterations_are_admitted():
    with pytest.warns(ConvergenceWarning, match=r"certified gap is .* raise max_rank, or loosen tol"):
        encoding = mosaic.solve(X, gamma=5.0, max_rank=10)
    assert (encoding.status, encoding.certificate.rank) == (Status.KERNEL_ERROR, 10)
    assert encoding.dual_gap > 1e-4
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
    """Of weight n: r = 1 − 1/(lam √n k), shared by all copies."""
    encoding = mosaic.solve(np.full((1000, 3), 2.0), alpha=4.0, tol=1e-8)
    np.testing.assert_allclose(encoding.influence, encoding.influence[0])
    np.testing.assert_allclose(encoding.effective_count, 1000.0)
    np.testing.assert_allclose(encoding.rows([0]), (1 - 1 / 4.0) / 1000, rtol=1e-5)


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


@settings(deadline=None, max_examples=15)
@given(scale=st.floats(1e-6, 1e6), alpha=st.floats(1.5, 50))
def test_scaling_the_similarity_scales_lam_and_nothing_else(scale, alpha):
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    a = mosaic.solve(K, kernel="precomputed", alpha=alpha, tol=1e-9)
    b = mosaic.solve(scale * K, kernel="precomputed", alpha=alpha, tol=1e-9)
    assert b.lam == pytest.approx(a.lam / scale, rel=1e-9)
    assert b.certificate.primal == pytest.approx(a.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(b.influence, a.influence, atol=1e-3 * a.influence.max())


def test_same_seed_same_answer_and_any_seed_and_precision_the_same_optimum():
    data = make_swiss_roll(2000, random_state=0)[0]
    a, b, c = (mosaic.solve(data, random_state=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(a.influence, b.influence)
    assert a.certificate.primal == pytest.approx(c.certificate.primal, rel=1e-3)
    single = mosaic.solve(data.astype(np.float32), random_state=1)
    assert single.factor.F.dtype == np.float32
    assert single.dual_gap <= 1e-4
    assert single.certificate.primal == pytest.approx(a.certificate.primal, rel=3e-4)


@pytest.mark.slow
def test_a_million_points_are_certified():
    data = make_swiss_roll(1_000_000, random_state=0)[0]
    encoding = mosaic.solve(data, tol=1e-3)
    assert encoding.dual_gap <= 1e-3


@pytest.mark.parametrize("roles", [{}, {"sample_weight": np.linspace(0.5, 3.0, 55)}])
def test_the_papers_admm_solves_the_same_program_with_copies_and_weights(roles):
    copies = np.concatenate([X, np.repeat(X[:5], 3, axis=0)])
    exact = mosaic.solve(copies, alpha=5.0, tol=1e-8, **roles)
    square = mosaic.solve(copies, alpha=5.0, tol=1e-6, solver="admm", **roles)
    assert square.dual_gap <= 1e-6
    np.testing.assert_allclose(square.influence, exact.influence, atol=0.02 * exact.influence.max())
