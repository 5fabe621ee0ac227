"""Points as arrays of other libraries: the same answers, where the arrays are.

Arrays of array-api-strict have what the standard has and nothing else; PyTorch and a GPU are tried where they are installed. On a
machine with a GPU: ``pytest -m gpu`` (and ``pytest tests/test_devices.py`` for all).
"""

from unittest.mock import Mock

import numpy as np
import pytest

from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, datasets, estimate, load, solve
from mosaic.arrays.xp import cholesky, is_on_device, on_host, solve_lower, solve_with, with_diagonal
from mosaic.choosing.outliers import ROUNDING_OF_COUNTS
from mosaic.exceptions import MemoryBudgetError
from mosaic.kernels import make_kernel

KERNELS = ("rbf", "laplacian", "cosine", "linear", "polynomial")


def strict(A):
    return pytest.importorskip("array_api_strict").asarray(A)


def torch_cpu(A):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    return torch.from_numpy(np.array(A))


def torch_gpu(A):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    return torch.from_numpy(np.array(A)).cuda()


def cupy_gpu(A):
    return pytest.importorskip("cupy").asarray(A)


LIBRARIES = [
    pytest.param(library, id=library.__name__, marks=[pytest.mark.gpu] if library.__name__.endswith("gpu") else [])
    for library in (strict, torch_cpu, torch_gpu, cupy_gpu)
]


@pytest.fixture(params=LIBRARIES)
def other(request):
    request.param(np.zeros((1, 1)))  # skips where the library is not installed
    return request.param


@pytest.fixture(scope="module")
def blobs():
    return datasets.blobs_with_gross_outliers().X


def same(theirs, ours, *names):
    """The answers of two fits."""
    for name in names or ("representative_indices_", "labels_", "is_outlier_"):
        np.testing.assert_array_equal(on_host(getattr(theirs, name)), getattr(ours, name))


PROBLEMS = {
    "swiss roll": lambda: datasets.swiss_roll(700),
    "union": lambda: np.vstack([datasets.sphere(400) - 5.0, datasets.swiss_roll(300) / 10.0]),
    "embedded, with noise": lambda: datasets.embed(datasets.swiss_roll(700), 40, noise=0.05),
    "uniform outliers": lambda: datasets.contaminate(datasets.swiss_roll(600), 60).X,
    "far outliers": lambda: datasets.contaminate(datasets.trefoil(600), 60, kind="far").X,
    "copies": lambda: np.repeat(datasets.swiss_roll(200), 4, axis=0),
    "one column": lambda: np.random.default_rng(0).normal(size=(500, 1)),
    "more columns than rows": lambda: np.random.default_rng(0).normal(size=(60, 200)),
}


@pytest.mark.filterwarnings("ignore::mosaic.SelectionWarning")
@pytest.mark.parametrize("name", PROBLEMS)
def test_picks_and_certificates_are_those_of_numpy_on_every_kind_of_data(other, name):
    X = PROBLEMS[name]()
    ours, theirs = MOSAIC(15, random_state=0).fit(X), MOSAIC(15, random_state=0).fit(other(X))
    same(theirs, ours)
    assert theirs.certificate_.gap == pytest.approx(ours.certificate_.gap, abs=1e-3)
    assert theirs.certificate_.value == pytest.approx(ours.certificate_.value, rel=1e-5)
    assert theirs.certificate_.bound == pytest.approx(ours.certificate_.bound, rel=1e-3)
    solved, encoded = solve(X, tol=1e-5), solve(other(X), tol=1e-5)
    assert encoded.certificate.gap <= 1e-5
    assert encoded.certificate.primal == pytest.approx(solved.certificate.primal, rel=2e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_representatives_outliers_and_labels_are_those_of_numpy(other, blobs, kernel):
    X = blobs + 1.0 if kernel == "cosine" else blobs
    ours, theirs = MOSAIC(12, kernel=kernel).fit(X), MOSAIC(12, kernel=kernel).fit(other(X))
    same(theirs, ours)
    np.testing.assert_allclose(on_host(theirs.effective_count_), ours.effective_count_, rtol=ROUNDING_OF_COUNTS)


@pytest.mark.slow
@pytest.mark.parametrize("n", [4500, 20_000])
def test_more_points_than_are_solved_whole_or_compared(other, n):
    """Many points are sampled, and the certificate is that of the same similarities."""
    X = datasets.swiss_roll(n)
    ours, theirs = MOSAIC(10).fit(X), MOSAIC(10).fit(other(X))
    assert ours.selection_.is_sampled == (n == 20_000)
    np.testing.assert_array_equal(theirs.selection_.data.row_numbers, ours.selection_.data.row_numbers)
    same(theirs, ours)
    assert theirs.certificate_.gap <= max(1e-3, 1.05 * ours.certificate_.gap)
    assert theirs.certificate_.bound == pytest.approx(ours.certificate_.bound, rel=0.01 if n == 4500 else 0.02)
    assert theirs.certificate_.bound >= theirs.certificate_.value
    must = MOSAIC(10).fit(other(X), must_include=[5, 7])
    assert on_host(must.representative_indices_)[:2].tolist() == [5, 7]


def test_copies_weights_single_precision_and_the_detector(other, blobs):
    X, weights = np.vstack([blobs, blobs[:40]]), np.random.default_rng(0).integers(0, 3, len(blobs) + 40)
    ours = MOSAIC(8).fit(X, sample_weight=weights)
    for given in (weights, other(weights.astype(float))):
        same(MOSAIC(8).fit(other(X), sample_weight=given), ours)
    single = blobs.astype(np.float32)
    theirs = MOSAIC(10).fit(other(single))
    same(theirs, MOSAIC(10).fit(single), "representative_indices_")
    assert theirs.certificate_.gap <= 0.02
    same(MOSAICOutlierDetector().fit(other(blobs)), MOSAICOutlierDetector().fit(blobs), "is_outlier_")


def test_answers_come_back_where_the_data_is(other, blobs, tmp_path):
    model, numpy = MOSAIC(5).fit(other(blobs)), MOSAIC(5).fit(blobs)
    given = other(blobs[:7])
    for answer in (model.labels_, model.predict(given), model.transform(given), model.score_samples(given)):
        assert is_on_device(answer)
        assert type(answer) is type(given)
    assert tuple(model.select(other(blobs)).shape) == (5, 2)
    model.save(tmp_path / "a.mosaic")
    for answer in (model.predict(given), model.predict(blobs[:7]), load(tmp_path / "a.mosaic").predict(blobs[:7])):
        np.testing.assert_array_equal(on_host(answer), numpy.predict(blobs[:7]))
    assert isinstance(model.predict(blobs[:7]), np.ndarray)


def test_the_proof_for_all_rows_is_that_of_the_host(other, monkeypatch):
    monkeypatch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", 600)
    monkeypatch.setattr("mosaic.choosing.all_rows.RANDOM_ROWS", 500)
    X = np.random.default_rng(0).normal(size=(2000, 3))
    ours, theirs = (MOSAIC(5).fit(given).certify(all_rows=True) for given in (X, other(X)))
    assert ours.n_rows == theirs.n_rows > 1900
    assert (theirs.confidence, theirs.n_candidates) == (ours.confidence, ours.n_candidates)
    np.testing.assert_allclose([theirs.value, theirs.bound], [ours.value, ours.bound], atol=1e-4)


def similarities(A, B):
    """exp(−‖a − b‖²), by functions of NumPy."""
    assert type(A) is type(B) is np.ndarray
    return np.exp(-np.square(A[:, None] - B).sum(axis=-1))


@pytest.mark.parametrize("kernel", ["precomputed", "diffusion", similarities])
def test_solve_brings_what_cannot_be_computed_there_to_numpy(other, blobs, kernel):
    X = similarities(blobs, blobs) if kernel == "precomputed" else blobs
    ours, theirs = (solve(given, alpha=5.0, kernel=kernel) for given in (X, other(X)))
    np.testing.assert_array_equal(theirs.influence, ours.influence)
    assert theirs.certificate == ours.certificate


def test_other_points_stay_where_they_are_and_encodings_answer_in_numpy(other, blobs):
    encoding = solve(other(blobs), alpha=5.0)
    assert type(encoding.kernel.X) is type(other(blobs))
    few = encoding.support[:3]
    for answer in (encoding.influence, few, encoding.rows(few), encoding.effective_count):
        assert isinstance(answer, np.ndarray)
    X = np.random.default_rng(0).normal(size=(2000, 4))
    here, there = estimate(X), estimate(other(X))
    assert (there.n_rows, there.passes) == (here.n_rows, here.passes)
    paper = estimate(other(X), algorithm="paper")
    assert paper.memory >= there.memory > 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda X: X[:, 0], "two dimensions"),
        (lambda X: np.where(X[3, 1] == X, np.nan, X), "must be finite.*row 3, column 1"),
        (lambda X: X + 1j, "real numbers"),
    ],
)
def test_wrong_arrays_are_refused(other, blobs, wrong, words):
    with pytest.raises(InvalidInputError, match=words):
        MOSAIC(5).fit(other(wrong(blobs)))
    with pytest.raises(InvalidInputError, match="has 1 features, the data of fit had 2"):
        MOSAIC(5).fit(other(blobs)).predict(other(blobs[:, :1]))


def test_arrays_that_cannot_be_computed_with_where_they_are_are_refused(blobs):
    """Certificates need double precision, which some GPUs lack."""
    strict = pytest.importorskip("array_api_strict")
    X = strict.asarray(datasets.swiss_roll(50), dtype=strict.float32, device=strict.Device("no_float64"))
    for work in (solve, MOSAIC(5).fit):
        with pytest.raises(InvalidInputError, match=r"no double precision. Pass numpy.asarray\(X\)"):
            work(X)
    given = pytest.importorskip("jax.numpy").asarray(blobs)
    with pytest.raises(InvalidInputError, match=r"cannot stay where it is.*Pass numpy.asarray\(X\)"):
        MOSAIC(5).fit(given)


def test_a_device_without_memory_says_what_to_do(monkeypatch):
    error = type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory. Tried to allocate 20.00 GiB.\nmore")
    monkeypatch.setattr("mosaic.estimators.selector.choose", Mock(side_effect=error))
    with pytest.raises(MemoryBudgetError, match=r"Tried to allocate 20.00 GiB.*max_rank"):
        MOSAIC(5).fit(datasets.swiss_roll(100))


def test_products_are_not_rounded_to_tf32(monkeypatch):
    torch = pytest.importorskip("torch")

    def watch(*args, **kwargs):
        raise RuntimeError(torch.get_float32_matmul_precision())

    monkeypatch.setattr("mosaic.estimators.selector.choose", watch)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with pytest.raises(RuntimeError, match=r"^highest$"):
            MOSAIC(5).fit(torch.rand(100, 3))
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.fixture(params=[np.asarray, *LIBRARIES], ids=lambda library: library.__name__)
def somewhere(request):
    """NumPy and every other library."""
    request.param(np.zeros((1, 1)))
    return request.param


def test_linear_algebra_where_the_matrices_are(somewhere, rng):
    A, B = rng.normal(size=(20, 8)), rng.normal(size=(8, 3))
    M = A.T @ A
    L = cholesky(somewhere(M.copy()))
    for b in (B, B[:, 0].copy()):
        np.testing.assert_allclose(on_host(solve_with(L, somewhere(b))), np.linalg.solve(M, b), rtol=1e-9)
    np.testing.assert_allclose(on_host(solve_lower(L, somewhere(B))), np.linalg.solve(np.linalg.cholesky(M), B), rtol=1e-9)
    np.testing.assert_allclose(on_host(with_diagonal(somewhere(M.copy()), np.arange(8.0))), M + np.diag(np.arange(8.0)))
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(somewhere(-np.eye(4)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_points_are_at_no_distance_from_themselves_and_at_some_from_others(somewhere, rng, kernel):
    X, everyone = rng.normal(size=(300, 64)), np.arange(300)
    D = make_kernel(somewhere(X), kernel, gamma=0.01).distances(everyone, everyone)
    assert not np.diagonal(D).any()
    assert (D + np.eye(300) > 0).all()
