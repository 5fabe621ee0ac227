"""Bandwidth rules, the heat kernel, and what a kernel says about bad input."""

import re
from difflib import SequenceMatcher

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.linalg import expm
from sklearn.datasets import make_swiss_roll
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC

from mosaic import MOSAIC, EffectiveCount, InvalidInputError, NotPositiveSemidefiniteError, solve
from mosaic.kernels import STATIONARY_KERNELS, make_kernel
from mosaic.kernels.diffusion import heat_features


def test_scale_is_that_of_support_vector_machines_and_median_the_reciprocal_median_distance(rng):
    X = rng.normal(size=(60, 3)) * [1.0, 2.0, 3.0]
    labels = rng.integers(0, 2, 60)
    expected = 1 / (3 * X.var())
    by_name, by_value = (SVC(gamma=gamma).fit(X, labels).decision_function(X) for gamma in ("scale", expected))
    np.testing.assert_allclose(by_name, by_value)  # so that is their rule
    assert make_kernel(X, "rbf", gamma="scale").gamma == pytest.approx(expected)
    assert make_kernel(sp.csr_array(X), "rbf").gamma == pytest.approx(expected)
    D = ((X[:, None] - X[None]) ** 2).sum(-1)[np.triu_indices(60, 1)]
    assert make_kernel(X, "rbf", gamma="median").gamma == pytest.approx(1 / np.median(D))
    for gamma in ("scale", "median", EffectiveCount(3.0)):
        assert make_kernel(np.full((5, 2), 3.0), "rbf", gamma=gamma).gamma == 1.0  # constant data has no scale


@pytest.mark.parametrize("name", STATIONARY_KERNELS)
@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_effective_count_rule_is_met(rng, name, quantile):
    X = rng.normal(size=(300, 2 if name == "haversine" else 3))
    kernel = make_kernel(X, name, gamma=EffectiveCount(15.0, quantile))
    counts = (kernel.block(slice(None), np.arange(300)) ** 2).sum(axis=0)
    assert np.quantile(counts, quantile) == pytest.approx(15.0, rel=1e-5)


def test_effective_count_on_a_subsample_is_close_and_repeatable():
    X = make_swiss_roll(30_000, random_state=0)[0]
    rule = EffectiveCount(200.0)
    a, b = (make_kernel(X, "rbf", gamma=rule, random_state=4) for _ in range(2))
    assert a.gamma == b.gamma
    probe = np.random.default_rng(1).choice(30_000, 400, replace=False)
    counts = (a.block(slice(None), probe) ** 2).sum(axis=0)
    assert np.median(counts) == pytest.approx(200.0, rel=0.15)


def test_heat_kernel_approximates_the_matrix_exponential(rng):
    X = rng.normal(size=(60, 2))
    time = 30
    G = heat_features(X, n_neighbors=6, time=time)
    assert sp.issparse(G)
    W = NearestNeighbors(n_neighbors=6).fit(X).kneighbors_graph().toarray()
    W = np.maximum(W, W.T)
    S = W / np.sqrt(np.outer(W.sum(1), W.sum(1)))
    H = expm(-time * (np.eye(60) - S))
    H /= np.sqrt(np.outer(np.diagonal(H), np.diagonal(H)))
    np.testing.assert_allclose((G @ G.T).toarray(), H, atol=0.02)


@pytest.mark.parametrize("of", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_neighbours_of_copies_are_other_copies_and_never_the_point_itself(of):
    """With S_ij = W_ij / √(d_i d_j) and S_ii = 0, row i of the features is in proportion to 1 at i and S_ij elsewhere."""
    X = np.repeat(np.arange(4.0)[:, None], 5, axis=0)
    G = heat_features(of(X), n_neighbors=3, time=1).toarray()
    ratios = G / np.diagonal(G)[:, None]
    np.fill_diagonal(ratios, 0.0)
    degrees = (ratios > 0).sum(axis=1)
    assert (degrees >= 3).all()
    assert (X == X.T)[ratios > 0].all()
    np.testing.assert_allclose(ratios, (ratios > 0) / np.sqrt(np.outer(degrees, degrees)), rtol=1e-12)


def test_rbf_does_not_cancel_far_from_the_origin(rng):
    X = rng.normal(size=(30, 40))
    near = make_kernel(X, "rbf", gamma=0.01).block(slice(None), np.arange(30))
    far = make_kernel(X + 1e5, "rbf", gamma=0.01).block(slice(None), np.arange(30))
    np.testing.assert_allclose(far, near, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "gauss"}, "got 'gauss'"),
        ({"kernel": "polynomial", "gamma": "median"}, "a number or 'scale' for a polynomial kernel; got 'median'"),
        ({"gamma": EffectiveCount(50.0)}, "m0 must be smaller than the number of points 20; got 50"),
        ({"gamma": EffectiveCount(3.0)}, "copies of a point"),
    ],
)
def test_bad_settings_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        make_kernel(np.repeat(np.arange(4.0)[:, None], 5, axis=0), **arguments)
    with pytest.raises(InvalidInputError, match="m0 must be a finite number > 1"):
        EffectiveCount(1.0)
    with pytest.raises(InvalidInputError, match="quantile must be a finite number > 0 and < 1"):
        EffectiveCount(5.0, 1.0)


def test_precomputed_faults_are_named():
    with pytest.raises(InvalidInputError, match=r"square; got shape \(4, 3\)"):
        make_kernel(np.ones((4, 3)), "precomputed")
    distances = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    told = rf"smallest eigenvalue is {np.linalg.eigvalsh(distances)[0]:.3g} .*distances, use kernel='distances'"
    with pytest.raises(NotPositiveSemidefiniteError, match=told):
        solve(distances, kernel="precomputed")
    for faulty, said in ((distances - 1, "got -1, and 1"), (sp.csr_array(distances), "dense matrix"), (distances[:3], "square")):
        with pytest.raises(InvalidInputError, match=said):
            make_kernel(faulty, "distances")
    crooked = distances.copy()
    crooked[0, 1] = 3.0
    with pytest.raises(InvalidInputError, match=r"D\[0, 1\] = 3 but D\[1, 0\] = 1\. Use \(D \+ D\.T\) / 2") as told:
        make_kernel(crooked, "distances")
    assert not isinstance(told.value, NotPositiveSemidefiniteError)
    with pytest.raises(NotPositiveSemidefiniteError, match="diagonal entry 2 is -1"):
        make_kernel(np.diag([1.0, 1.0, -1.0]), "precomputed")


@pytest.mark.parametrize("place", [(3, 700), (700, 3), (255, 256), (299, 290)])
def test_a_single_entry_that_is_not_symmetric_is_found(rng, place):
    """Wherever it is among the tiles, and among noise of rounding size that is let pass."""
    F = rng.normal(size=(800, 5))
    K = F @ F.T * (1 + 1e-16 * rng.normal(size=(800, 800)))
    make_kernel(K, "precomputed")
    K[place] += 1e-6
    i, j = sorted(place)
    for given in (K, sp.csr_array(K)):
        with pytest.raises(NotPositiveSemidefiniteError, match=rf"K\[{i}, {j}\] = .* but K\[{j}, {i}\] = "):
            make_kernel(given, "precomputed")


@pytest.mark.parametrize("n", [12, 300, 400])
@pytest.mark.parametrize("kind", ["direction", "hidden pair"])
def test_low_rank_does_not_hide_that_a_similarity_is_indefinite(rng, n, kind):
    """Symmetric with a positive diagonal, and one eigenvalue far below rounding. The factor alone is accepted in any unit."""
    F, u = rng.normal(size=(n, 6)), rng.normal(size=n)
    K = F @ F.T
    for unit in (1e-12, 1.0, 1e12):
        make_kernel(unit * K, "precomputed").refuse_indefinite()
        make_kernel(sp.csr_array((unit * K).astype(np.float32)), "precomputed").refuse_indefinite()
    if kind == "direction":
        K += 1e-9 * np.eye(n) - 1e-6 * np.outer(u, u) / (u @ u)
    else:  # points of next to no length that are said to resemble one another
        K[-2:] = K[:, -2:] = 0.0
        K[[-1, -2], [-1, -2]] = 1e-13
        K[-1, -2] = K[-2, -1] = 1e-7
    K = 0.5 * (K + K.T)
    assert K.diagonal().min() > 0
    with pytest.raises(NotPositiveSemidefiniteError, match=f"smallest eigenvalue is {np.linalg.eigvalsh(K)[0]:.3g}"):
        make_kernel(K, "precomputed").refuse_indefinite()


def test_faults_of_functions_and_points_without_direction_are_named(rng):
    X = rng.normal(size=(8, 2))
    with pytest.raises(InvalidInputError, match=r"returned shape \(8,\) for 8 and 3 points; it must return \(8, 3\)"):
        make_kernel(X, lambda A, B: A[:, 0]).block(slice(None), np.arange(3))
    for bad in (np.nan, np.inf):
        with pytest.raises(InvalidInputError, match=f"returned {bad}"):
            make_kernel(X, lambda A, B, bad=bad: np.full((len(A), len(B)), bad)).cross(X[:3])
    with pytest.raises(NotPositiveSemidefiniteError, match="not symmetric"):
        make_kernel(X, lambda A, B: A @ (B + 1).T).diagonal()
    X[4] = 0
    for data in (X, sp.csr_array(X)):
        with pytest.raises(InvalidInputError, match="1 rows are zero, the first is row 4 of X"):
            make_kernel(data, "cosine")
        with pytest.raises(InvalidInputError, match="1 rows are zero, the first is row 4 of Y"):
            make_kernel(data[:4], "cosine").cross(data)


def test_places_are_compared_on_the_sphere_and_across_the_date_line():
    places = np.array([[0.0, 179.0], [0.0, -179.0], [90.0, 0.0], [-90.0, 50.0], [48.86, 2.35], [52.52, 13.40]])
    D = make_kernel(places, "haversine", gamma=1.0).distances(slice(None), np.arange(6))
    unit = np.radians(places)
    x = np.column_stack([np.cos(unit[:, 0]) * np.cos(unit[:, 1]), np.cos(unit[:, 0]) * np.sin(unit[:, 1]), np.sin(unit[:, 0])])
    np.testing.assert_allclose(D, np.arccos(np.clip(x @ x.T, -1, 1)), atol=3e-8)
    assert D[0, 1] == pytest.approx(np.radians(2.0))
    assert 6371 * D[4, 5] == pytest.approx(878, abs=1)  # Paris and Berlin


@pytest.mark.parametrize(
    ("rows", "said"),
    [([[1.0, 2.0, 3.0]], "got 3 columns"), ([[100.0, 20.0]], "latitudes reach 100°"), ([[20.0, 400.0]], "longitudes 400°")],
)
def test_rows_that_are_no_places_are_refused(rows, said):
    with pytest.raises(InvalidInputError, match=said):
        MOSAIC(1, kernel="haversine").fit(np.array(rows * 3))


def test_latitude_and_longitude_are_found_by_their_names_and_never_divided_by_their_spread(tmp_path):
    rng = np.random.default_rng(0)
    places = np.c_[rng.uniform(46, 47, 60), rng.uniform(-80, 80, 60)]
    frame = pl.DataFrame(
        {"Lng": places[:, 1], "shop": [f"s{i}" for i in range(60)], "sales": rng.random(60), "Latitude": places[:, 0]}
    )
    frame.write_csv(tmp_path / "shops.csv")
    for given in (frame, frame.to_pandas(), str(tmp_path / "shops.csv")):
        model = MOSAIC(3, kernel="haversine").fit(given)
        np.testing.assert_allclose(model.selection_.kernel.X[model.selection_.data.points.point_of], places)
        assert model.encoder_.names == ["Latitude", "Lng"]
        assert "sales (is neither latitude nor longitude)" in " ".join(model.encoder_.describe())
        np.testing.assert_array_equal(model.predict(given), model.labels_)
    with pytest.raises(InvalidInputError, match="divides columns"):
        MOSAIC(3, kernel="haversine", scale=True).fit(places)


def test_the_default_kernel_notes_columns_that_seem_to_be_places_and_compares_them_as_numbers(rng):
    n = 60
    here, there, others = rng.uniform(-60, 60, n), rng.uniform(-170, 170, n), rng.choice(["a", "b"], n)
    for columns in ({"lat": here, "lon": there}, {"LNG": there, "kind": others, "Latitude": here}):
        plain = MOSAIC(3).fit(pl.DataFrame(columns))
        assert "seem to be places: kernel='haversine'" in plain.encoder_.notes[0]
        assert len(plain.encoder_.names) == len(columns)  # nothing is left out
        assert MOSAIC(3, kernel="haversine").fit(pl.DataFrame(columns)).encoder_.notes == ()
    for columns in (
        {"latency": 10 * here, "longest": there},  # not degrees
        {"lat": others, "lon": there},
        {"lat": here, "late": here**2, "lon": there},
        {"x": here, "y": there},
    ):
        assert MOSAIC(3).fit(pl.DataFrame(columns)).encoder_.notes == ()


def test_sets_are_compared_by_what_they_share(rng):
    B = rng.random((40, 30)) < 0.2
    B[:2] = False
    shared = (B[:, None] & B).sum(axis=-1)
    either = (B[:, None] | B).sum(axis=-1)
    expected = np.divide(shared, either, out=np.ones(shared.shape), where=either > 0)
    for given in (B.astype(np.uint8), B.astype(float), sp.csr_array(B.astype(float))):
        kernel = make_kernel(given, "tanimoto")
        np.testing.assert_allclose(kernel.block(slice(None), np.arange(40)), expected, atol=1e-12)


def test_columns_that_a_kernel_of_numbers_leaves_out_are_named(rng):
    n = 60
    kinds = {"a": rng.integers(0, 3, n), "b": rng.integers(0, 3, n), "kind": rng.choice(["u", "v"], n), "none": [None] * n}
    said = "Not compared: 'kind' holds no numbers (this kernel takes nothing else)."
    with pytest.warns(UserWarning, match=re.escape(said)):
        model = MOSAIC(3, kernel="tanimoto").fit(pl.DataFrame(kinds))
    assert "Not compared: kind (holds no numbers), none (has no values)." in model.encoder_.describe()
    places = {"lat": rng.uniform(0, 60, n), "lon": rng.uniform(0, 60, n), "kind": kinds["kind"]}
    model = MOSAIC(3, kernel="haversine").fit(pl.DataFrame(places))
    assert "Not compared: kind (is neither latitude nor longitude)." in model.encoder_.describe()


def test_numbers_below_0_are_no_sets(rng):
    X = rng.normal(size=(40, 30))
    for given in (X, sp.csr_array(X)):
        with pytest.raises(InvalidInputError, match="compares sets, as rows of bits or counts; the smallest number is -"):
            MOSAIC(3, kernel="tanimoto").fit(given)
        with pytest.raises(InvalidInputError, match="compares sets"):
            MOSAIC(3, kernel="tanimoto").fit(abs(given)).predict(given)


def test_what_is_chosen_from_distances_is_what_is_chosen_from_points(rng):
    X = np.vstack([rng.normal(size=(150, 3)), [[40.0, 0.0, 0.0]]])
    D = np.abs(X[:, None] - X).sum(axis=-1)
    by_distance, by_points = MOSAIC(6, kernel="distances").fit(D), MOSAIC(6, kernel="laplacian", scale=False).fit(X)
    assert {*by_distance.representative_indices_} == {*by_points.representative_indices_}
    assert by_distance.is_outlier_[150]
    assert by_distance.coverage_ == pytest.approx(by_points.coverage_)
    np.testing.assert_array_equal(by_distance.predict(D), by_distance.labels_)
    np.testing.assert_array_equal(by_distance.predict(D[:, :]), by_points.predict(X))
    with pytest.raises(InvalidInputError, match="distances are not negative; the smallest is -"):
        by_distance.predict(-D)
    np.fill_diagonal(D, 1e-16)  # as cosine distances of SciPy have
    with pytest.raises(InvalidInputError, match="Clear what rounding left"):
        MOSAIC(6, kernel="distances").fit(D)
    np.fill_diagonal(D.clip(0, out=D), 0)
    np.testing.assert_array_equal(by_distance.predict(D), by_distance.labels_)


def test_a_similarity_that_is_not_positive_semidefinite_is_chosen_from_and_its_program_refused(rng):
    words = ["".join(rng.choice(list("abc"), 6)) for _ in range(60)]
    K = np.array([[SequenceMatcher(None, a, b).ratio() for b in words] for a in words])
    K = 0.5 * (K + K.T)
    assert np.linalg.eigvalsh(K)[0] < -0.1
    for kernel, given in (("precomputed", K), ("distances", 1.0 - K)):
        assert MOSAIC(5, kernel=kernel).fit(given).certificate_.gap < 0.05
        with pytest.raises(NotPositiveSemidefiniteError):
            solve(given, kernel=kernel)
        with pytest.raises(NotPositiveSemidefiniteError):
            MOSAIC(5, kernel=kernel, algorithm="paper").fit(given)
