"""The door: numbers of any unit between 1e-100 and 1e100 give the same answer, others are refused with the remedy."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mosaic import MOSAIC, EffectiveCount, InvalidInputError, MOSAICOutlierDetector, Polynomial, solve
from mosaic.arrays.blocks import row_blocks
from mosaic.arrays.codes import equal_rows, row_codes
from mosaic.door import as_indices, as_points
from mosaic.kernels import RBF, make_kernel
from sources import open_source

UNIT_FREE = [{"kernel": name} for name in ("rbf", "laplacian", "cosine", "diffusion", "polynomial")]
UNIT_FREE += [{}, {"gamma": "scale"}, {"gamma": "median"}, {"scale": True}]
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(120, 3)) + 4.0 * rng.integers(0, 3, (120, 1))
    rows[7] = [60.0, -60.0, 60.0]
    return rows


@pytest.mark.parametrize("settings", UNIT_FREE, ids=str)
def test_a_power_of_two_changes_nothing(X, settings):
    model = MOSAIC(5, **settings).fit(X)
    for power in (-320, -60, -3, 1, 51, 320):
        other = MOSAIC(5, **settings).fit(X * 2.0**power)
        assert other.representative_indices_.tolist() == model.representative_indices_.tolist(), power
        if settings == {} and abs(power) < 100:
            for form in (sp.csr_array, np.float32):
                found, expected = MOSAIC(5).fit(form(X * 2.0**power)), MOSAIC(5).fit(form(X))
                np.testing.assert_array_equal(found.representative_indices_, expected.representative_indices_)
                np.testing.assert_array_equal(found.labels_, expected.labels_)
        for name in ("labels_", "is_outlier_", "effective_count_", "representation_error_"):
            np.testing.assert_array_equal(getattr(other, name), getattr(model, name), err_msg=f"{name} at 2^{power}")
        np.testing.assert_array_equal(other.predict(X * 2.0**power), model.predict(X))
        np.testing.assert_array_equal(other.transform(X * 2.0**power), model.transform(X))


@pytest.mark.parametrize("factor", [1e-95, 1e-15, 1e20, 1e95])
def test_any_unit_gives_the_same_answer(X, factor):
    model, other = MOSAIC(5).fit(X), MOSAIC(5).fit(X * factor)
    assert other.representative_indices_.tolist() == model.representative_indices_.tolist()
    assert np.flatnonzero(other.is_outlier_).tolist() == np.flatnonzero(model.is_outlier_).tolist() == [7]
    assert other.certificate_.gap == pytest.approx(model.certificate_.gap)
    detector = MOSAICOutlierDetector().fit(X * factor)
    np.testing.assert_array_equal(detector.predict(X * factor), MOSAICOutlierDetector().fit(X).predict(X))
    assert solve(X * factor).support.tolist() == solve(X).support.tolist()


CALLS = {
    "MOSAIC": MOSAIC(5).fit,
    "precomputed": lambda X: MOSAIC(5, kernel="precomputed").fit(np.diag(abs(X[:, 0]))),
    "sparse": lambda X: MOSAIC(5).fit(sp.csr_array(X)),
    "detector": MOSAICOutlierDetector().fit,
    "solve": solve,
    "kernel": make_kernel,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    ("factor", "dtype"), [(1e-300, "f8"), (1e-110, "f8"), (1e110, "f8"), (1e300, "f8"), (1e-34, "f4"), (1e34, "f4")]
)
def test_numbers_beyond_the_range_are_refused_and_the_remedy_works(X, call, factor, dtype):
    rows = (X * factor).astype(dtype)
    with pytest.raises(InvalidInputError) as refused:
        call(rows)
    divisor = re.search(r"ivide [XK] by (1e-?\d+)\.", refused.value.remedy)[1]
    call(rows / rows.dtype.type(divisor))


def test_the_row_and_column_of_a_number_that_is_too_large_are_named(X):
    rows = np.array(X)
    rows[31, 2], rows[33, 1] = 1e101, -1e205
    fault = r"X has numbers larger than 1e\+100, .* 2 entries, the first is X\[31, 2\] = 1e\+101, in row 31, column 2"
    for call in (MOSAIC(5).fit, lambda X: MOSAIC(5).fit(open_source(X)), lambda X: MOSAIC(5).fit(sp.csr_array(X))):
        with pytest.raises(InvalidInputError, match=fault):
            call(rows)
    with pytest.raises(InvalidInputError, match="column 'c'"):
        MOSAIC(5).fit(pd.DataFrame(rows, columns=["a", "b", "c"]))
    assert MOSAIC(5).fit(X).predict(1e-200 * X[:3]).tolist()
    with pytest.raises(InvalidInputError, match="numbers larger than"):
        MOSAIC(5).fit(X).predict(rows)
    kinds = np.where(X[:, 0] > 0, "x", "y")
    mixed, beyond = (pd.DataFrame(A, columns=["a", "b", "c"]).assign(kind=kinds) for A in (X, rows))
    with pytest.raises(InvalidInputError, match="column 'c'"):
        MOSAIC(5).fit(mixed).predict(beyond)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial"])
def test_a_given_bandwidth_is_in_the_unit_of_the_data(X, kernel):
    order = 1 if kernel == "laplacian" else 2
    model = MOSAIC(5, kernel=kernel, gamma=0.25).fit(X)
    other = MOSAIC(5, kernel=kernel, gamma=0.25 * 2.0 ** (-order * 100)).fit(X * 2.0**100)
    np.testing.assert_array_equal(other.transform(X * 2.0**100), model.transform(X))
    assert other.gamma_ == 0.25 * 2.0 ** (-order * 100)


@pytest.mark.parametrize("settings", [{}, {"scale": True}, {"kernel": "laplacian"}, {"algorithm": "paper"}], ids=str)
@pytest.mark.parametrize("size", [1e10, 1e50, 1e100])
def test_new_rows_far_outside_are_outliers(X, settings, size):
    far = np.array([[size, 0.0, -size], [size, size, size]])
    model = MOSAIC(5, **settings).fit(X)
    assert np.isfinite(model.score_samples(far)).all()
    assert not model.transform(far).any()
    if settings.get("algorithm") != "paper":
        assert model.predict(far).tolist() == [-1, -1]
    wide = np.hstack([X, np.zeros((120, 40))])  # distances by products
    assert MOSAICOutlierDetector().fit(wide).predict(np.full((2, 43), size)).tolist() == [-1, -1]
    if settings == {}:  # and one of them in the data hides nothing
        other = MOSAIC(5).fit(np.vstack([X, far[:1]]))
        assert np.flatnonzero(other.is_outlier_).tolist() == [7, 120]
        assert len(np.intersect1d(other.representative_indices_, model.representative_indices_)) >= 3


def test_directions_of_rows_of_any_length(X):
    lengths = 2.0 ** np.linspace(-300, 300, 120)[:, None].round()
    model, plain, other = MOSAIC(5, kernel="cosine").fit(X), make_kernel(X, "cosine"), make_kernel(X * lengths, "cosine")
    np.testing.assert_array_equal(other.block(slice(None), np.arange(5)), plain.block(slice(None), np.arange(5)))
    np.testing.assert_array_equal(model.transform(X * lengths), model.transform(X))
    with pytest.raises(InvalidInputError, match="1 rows are zero"):
        make_kernel(np.vstack([X, np.zeros((1, 3))]), "cosine")


@pytest.mark.parametrize("factor", [1e-60, 1e60])
def test_similarities_in_the_unit_of_the_data_are_refused_where_their_squares_are_no_floats(X, factor):
    K = make_kernel(X, "rbf", gamma=0.1).block(slice(None), np.arange(120))
    for rows, kernel in ((X * factor, "linear"), (K * factor**2, "precomputed"), (X, lambda A, B: factor**2 * (A @ B.T))):
        for call in (MOSAIC(5, kernel=kernel).fit, MOSAICOutlierDetector(kernel=kernel).fit, partial(solve, kernel=kernel)):
            with pytest.raises(InvalidInputError, match=r"similarit|kernel function|numbers larger|no entry larger"):
                call(rows)


def test_similarities_that_are_no_floats_are_refused(X):
    for kernel, gamma in ((Polynomial(), 1e200), (Polynomial(200), 1.0), (Polynomial(coef0=1e200), "auto")):
        with pytest.raises(InvalidInputError, match="similarities"):
            MOSAIC(5, kernel=kernel, gamma=gamma).fit(X)
    with pytest.raises(InvalidInputError, match="leave the range"):
        MOSAIC(5, kernel=Polynomial(degree=5)).fit(X).predict(np.full((1, 3), 1e99))
    with pytest.raises(InvalidInputError, match="their squares do not fit float32"):
        MOSAIC(5, kernel="linear").fit((X * 1e10).astype(np.float32))


@pytest.mark.parametrize("factor", [1e-99, 1e90])
def test_only_ratios_of_weights_matter_where_they_are_no_numbers_of_copies(X, factor):
    weights = np.random.default_rng(0).random(120) + 0.5
    model, other = (MOSAIC(5).fit(X, sample_weight=weights * f) for f in (1.0, factor))
    assert other.representative_indices_.tolist() == model.representative_indices_.tolist()
    np.testing.assert_allclose(other.effective_count_, model.effective_count_)


@pytest.mark.parametrize(
    ("name", "values"), [("sample_weight", 1e308), ("sample_weight", 1e-310), ("lam", 1e308), ("lam", 1e-308)]
)
def test_programs_whose_values_are_no_floats_are_refused(X, name, values):
    with pytest.raises(InvalidInputError, match=name) as error:
        solve(X, **{name: values if name == "lam" else np.full(120, values)})
    assert error.value.remedy


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_rounding_between_equal_rows_does_not_set_the_bandwidth(form):
    rng = np.random.default_rng(0)
    few = rng.normal(size=(30, 40)) + 10.0
    copies = form(few[rng.integers(0, 30, 600)])
    distances = RBF(few).distances(np.arange(30), np.arange(30))
    usual = 1.0 / np.median(distances[distances > 0])
    for rule in ("median", EffectiveCount(100.0)):
        assert usual / 10 < make_kernel(copies, "rbf", gamma=rule).gamma < 10 * usual
    alike = form(rng.normal(size=(1, 40)) * 1e3 + np.zeros((600, 1)))
    assert make_kernel(alike, "rbf", gamma=EffectiveCount(100.0)).gamma == 1.0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("gamma", [1e12, 1e30])
def test_rounding_of_distances_does_not_make_a_similarity_indefinite(form, gamma):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 40))[rng.integers(0, 30, 600)] * (1.0 + 1e-15 * rng.normal(size=(600, 40)))
    encoding = solve(form(rows), gamma=gamma)
    assert encoding.dual_gap <= 1e-4
    first = encoding.groups.first
    K = encoding.kernel.block(slice(None), np.arange(encoding.kernel.n))
    np.testing.assert_allclose(K, make_kernel(rows, "rbf", gamma=gamma).block(first, first))
    assert np.linalg.eigvalsh(0.5 * (K + K.T))[0] > -1e-8


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array, sp.coo_array])
@pytest.mark.parametrize("n", [6, 300_000], ids=["one block", "many blocks"])
def test_entries_that_are_not_finite_are_counted_and_the_first_is_found(form, n):
    rows = np.zeros((n, 2))  # of a sparse matrix only these are stored:
    rows[0, 0], rows[n - 1, 1], rows[n // 2, 0], rows[n - 1, 0] = 1.0, np.inf, -np.inf, np.nan
    said = rf"1 NaN, 2 inf\. The first is X\[{n // 2}, 0\] = -inf, in row {n // 2}, column 0, .*SimpleImputer.* Replace inf"
    with pytest.raises(InvalidInputError, match=said):
        as_points(form(rows))


@given(arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=st.sampled_from([-1.0, -0.0, 0.0, 2.5])))
def test_equal_rows_are_found_dense_and_sparse(X):
    first = np.unique(X + 0.0, axis=0)
    for data in (X, sp.csr_array(X)):
        found = equal_rows(data)
        assert found.n == len(X)
        assert found.is_trivial is (len(first) == len(X))
        assert len(found.first) == len(first)
        assert (np.diff(found.first) > 0).all()
        np.testing.assert_array_equal(X[found.first][found.group] + 0.0, X + 0.0)

        np.testing.assert_array_equal(found.sums(np.ones(len(X))), np.bincount(found.group))
        for known, again in zip(found, equal_rows(data, row_codes(data)), strict=True):
            np.testing.assert_array_equal(known, again)


def test_rows_with_equal_codes_are_compared():
    X = np.arange(6.0).reshape(3, 2)
    assert equal_rows(X, np.zeros(3, np.uint64)).group.tolist() == [0, 1, 2]


@given(st.integers(0, 5000), st.integers(1, 300))
def test_row_blocks_cover_all_rows_once(n, columns):
    blocks = list(row_blocks(n, columns, entries=10_000))
    assert [i for b in blocks for i in range(b.start, b.stop)] == list(range(n))


def test_checking_lifts_whole_numbers_and_does_not_change_the_callers_matrix():
    assert as_points(np.ones((2, 2), np.float32)).dtype == np.float32
    for points in ([[1, 2], [3, 4]], np.ones((2, 2), bool), sp.csr_matrix(np.eye(3, dtype=int))):
        assert as_points(points).dtype == np.float64
    X = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    as_points(X)
    assert (X.indices.tolist(), X.data.tolist()) == ([1, 0, 1], [1.0, 2.0, 3.0])
    assert as_indices(np.array([True, False, True]), 3, "candidates").tolist() == [0, 2]
    assert as_indices([], 3, "candidates").tolist() == []


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: as_points([[1j, 2.0]]), "dtype complex128"),
        (lambda: as_points([[1.0], [2.0, 3.0]]), "rectangular"),
        (lambda: as_points(np.zeros((3, 0))), r"got shape \(3, 0\)"),
        (lambda: as_indices([-1, 3], 5, "candidates"), r"lie in 0 … 4; got -1 … 3"),
        (lambda: as_indices([1, 1, 2], 5, "candidates"), "3 given, 2 distinct"),
        (lambda: as_indices(np.ones(4, bool), 5, "candidates"), "candidates must have length 5 as a mask"),
        (lambda: as_indices([0.5], 5, "candidates"), "list of row numbers"),
    ],
)
def test_bad_points_and_indices_are_refused(check, message):
    with pytest.raises(InvalidInputError, match=message):
        check()
