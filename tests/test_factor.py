import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_swiss_roll

from mosaic.exceptions import NotPositiveSemidefiniteError
from mosaic.kernels import Precomputed, make_kernel
from mosaic.program.factor import factorize

X = make_swiss_roll(300, random_state=0)[0]


def full(kernel):
    return kernel.block(slice(None), np.arange(kernel.n)).astype(np.float64)


@pytest.mark.parametrize("tol", [1e-2, 0.0])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "polynomial", "diffusion"])
def test_residual_is_psd_zero_on_pivots_and_its_trace_is_reported(tol, name):
    kernel = make_kernel(X, name)
    factor = factorize(kernel, tol=tol)
    Δ = full(kernel) - factor.F @ factor.F.T
    size = np.trace(full(kernel))
    assert np.linalg.eigvalsh(Δ)[0] > -1e-11 * size
    np.testing.assert_allclose(Δ[factor.pivots], 0, atol=1e-11 * size)
    np.testing.assert_allclose(factor.residual, np.diagonal(Δ), atol=1e-11 * size)
    assert factor.error == pytest.approx(np.trace(Δ), abs=1e-11 * size)
    assert factor.relative_error <= max(tol, 1e-13)
    assert len(np.unique(factor.pivots)) == factor.rank


def test_random_pivots_follow_the_residual():
    """With two orthogonal groups of unequal weight the first pivot is drawn in proportion to the diagonal."""
    K = np.diag([3.0, 1.0])
    first = [factorize(Precomputed(K), max_rank=1, tol=1e-9, random_state=s).pivots[0] for s in range(2000)]
    assert np.mean(first) == pytest.approx(0.25, abs=0.04)


def test_random_pivoting_is_near_the_best_rank_and_the_same_for_the_same_seed():
    kernel = make_kernel(X, "rbf", gamma="median")
    factor = factorize(kernel, tol=1e-4)
    w = np.linalg.eigvalsh(full(kernel))[::-1]
    best = int(np.argmax(np.cumsum(w) >= (1 - 1e-4) * w.sum())) + 1
    assert best <= factor.rank <= 2 * best + 64
    again, other = (factorize(kernel, tol=1e-4, random_state=seed) for seed in (0, 1))
    np.testing.assert_array_equal(again.F, factor.F)
    assert other.pivots.tolist() != factor.pivots.tolist()


def test_weights_count_in_the_trace_and_all_points_together_as_much_as_they_in_the_draws():
    kernel, weights = Precomputed(np.eye(4)), np.array([3.0, 1.0, 0.0, 0.0])
    first = [factorize(kernel, max_rank=1, weights=weights, random_state=s).pivots[0] for s in range(2000)]
    np.testing.assert_allclose(np.bincount(first) / 2000, [0.5, 0.25, 0.125, 0.125], atol=0.04)
    factor = factorize(kernel, max_rank=1, weights=weights)
    assert (factor.trace, factor.error) == (4.0, 4.0 - weights[factor.pivots[0]])


@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_linear_kernels_are_their_own_factor(name):
    for data in (X, sp.csr_array(X)):
        factor = factorize(make_kernel(data, name))
        assert (factor.F.shape, factor.error) == ((300, 3), 0.0)
        np.testing.assert_allclose(factor.F @ factor.F.T, full(make_kernel(X, name)), atol=1e-10)
    single = factorize(make_kernel(X.astype(np.float32), "rbf"), tol=0.0)
    assert single.F.dtype == np.float32
    np.testing.assert_allclose(single.F @ single.F.T, full(make_kernel(X, "rbf")), atol=1e-4)


def test_limits_are_kept_and_said():
    kernel = make_kernel(X, "rbf", gamma=10.0)
    factor = factorize(kernel, tol=1e-9, max_rank=10)
    assert (factor.is_finest, factor.rank) == (True, 10)
    assert not factorize(kernel, tol=0.5).is_finest


def test_a_function_that_is_indefinite_is_refused(rng):
    indefinite = make_kernel(rng.normal(size=(60, 2)), lambda a, b: np.cos(3 * (a @ b.T)) * 3 + np.equal.outer(a[:, 0], b[:, 0]))
    with pytest.raises(NotPositiveSemidefiniteError, match="not positive semi-definite"):
        factorize(indefinite, tol=1e-12)
