"""MOSAICOutlierDetector: signs, thresholds, new points, weights, kinds of input, and PyOD's manners."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits

from mosaic import MOSAICOutlierDetector, datasets
from mosaic.choosing.outliers import ROUNDING_OF_COUNTS
from mosaic.exceptions import InvalidInputError, SelectionWarning
from mosaic.kernels import make_kernel

# Most of the data here is spoilt on purpose, and a fit warns of that.
pytestmark = pytest.mark.filterwarnings("ignore:.*taken for outliers:mosaic.SelectionWarning")
DIGITS = load_digits().data[:500]


def roll(n=300, dimension=10, seed=0):
    return datasets.embed(datasets.swiss_roll(n, random_state=seed), dimension, noise=0.3, random_state=seed)


@pytest.fixture(scope="module")
def spoilt():
    return datasets.contaminate(roll(), 0.2, random_state=0)


@pytest.fixture(scope="module")
def fitted(spoilt):
    return MOSAICOutlierDetector().fit(spoilt.X)


@pytest.fixture(scope="module")
def around(spoilt):
    """New points: some near old ones, some far away."""
    rng = np.random.default_rng(9)
    return spoilt.X[~spoilt.is_outlier][:30] + 0.1 * rng.normal(size=(30, 10)), 200.0 * rng.normal(size=(10, 10))


with_auto_and_share = pytest.mark.parametrize("contamination", ["auto", 0.1])


@with_auto_and_share
def test_attributes_and_methods_say_the_same(spoilt, around, contamination):
    detector = MOSAICOutlierDetector(contamination).fit(spoilt.X)
    X = np.vstack([spoilt.X, *around])
    scores = detector.score_samples(X)
    np.testing.assert_array_equal(detector.decision_function(X), scores - detector.offset_)
    np.testing.assert_array_equal(detector.predict(X), np.where(scores < detector.offset_, -1, 1))
    n = len(spoilt.X)
    np.testing.assert_allclose(scores[:n], np.log(detector.effective_count_), atol=ROUNDING_OF_COUNTS)
    np.testing.assert_array_equal(detector.predict(spoilt.X) == -1, detector.is_outlier_)
    np.testing.assert_array_equal(clone(detector).fit_predict(spoilt.X), detector.predict(spoilt.X))
    assert detector.selection_.data.count_total == pytest.approx(128.0)  # points of one small program
    assert not hasattr(detector, "outlier_probability_")
    if contamination != "auto":
        assert abs(detector.is_outlier_.sum() - contamination * n) <= 1
        assert detector.threshold_rule_ == "contamination"
    near, far = around
    assert (detector.predict(near) == 1).mean() >= 0.95
    assert (detector.predict(far) == -1).all()
    alone = np.concatenate([detector.score_samples(point[None, :]) for point in far])
    np.testing.assert_allclose(scores[-len(far) :], alone, atol=ROUNDING_OF_COUNTS)  # whatever comes with them


def test_score_is_the_mean_of_the_logs_of_four_programs_on_128_rows(spoilt, fitted):
    """Each by the formulas of ``mosaic.choosing.outliers``, with the inverse that they are written with."""
    counting = fitted.selection_.data.counting
    assert counting.weights.shape == (4, 128)
    logs = []
    for K, among, ω, strengths in zip(
        np.split(counting.reference.cross(spoilt.X), 4, axis=1),
        np.split(counting.reference.X, 4),
        counting.weights,
        counting.strengths,
        strict=True,
    ):
        S = np.flatnonzero(strengths)
        between = make_kernel(among, "rbf", gamma=counting.reference.gamma).block(np.arange(128), np.arange(128))
        P = np.linalg.inv(between[np.ix_(S, S)] + np.diag(1.0 / strengths[S]))
        Q = np.abs(K - K[:, S] @ P @ between[S])
        itself = 1.0 - np.einsum("ij,jk,ik->i", K[:, S], P, K[:, S])
        row, place = np.nonzero(K > 1.0 - 1e-9)  # rows that are points of the program
        Q[row, place] = itself[row]
        new = ~np.isin(np.arange(len(K)), row)
        logs.append(np.log((Q @ ω + new * itself) / np.maximum(Q.max(axis=1), itself)))
    np.testing.assert_allclose(fitted.score_samples(spoilt.X), np.mean(logs, axis=0), atol=ROUNDING_OF_COUNTS)


CLEAN = {
    "plane": np.random.default_rng(0).normal(size=(300, 2)),
    "ten dimensions": np.random.default_rng(1).normal(size=(300, 10)),
    "roll": roll(),
    "sphere": datasets.sphere(300),
    "digits": DIGITS[:300],
    "sparse and dense cluster": np.random.default_rng(3).normal(size=(360, 5)) * np.repeat([[1.0], [4.0]], [300, 60], axis=0)
    + np.repeat([[0.0], [12.0]], [300, 60], axis=0),
    "one point": np.array([[1.0, 2.0]]),
    "two points": np.array([[1.0], [2.0]]),
    "equal points": np.ones((5, 2)),
}


@pytest.mark.filterwarnings("ignore:A group of 60 rows")
@pytest.mark.parametrize("X", CLEAN.values(), ids=CLEAN.keys())
def test_clean_data_has_hardly_an_outlier(X):
    detector = MOSAICOutlierDetector().fit(X)
    assert detector.is_outlier_.mean() <= 0.02
    assert detector.threshold_rule_ in ("alone", "none")
    np.testing.assert_array_equal(detector.predict(X) == -1, detector.is_outlier_)


def test_where_many_are_alone_to_be_alone_is_not_odd(rng):
    crowd = rng.normal(size=(300, 3))
    few, many = (np.concatenate([crowd, 1e3 * rng.normal(size=(n, 3))]) for n in (9, 100))
    assert (MOSAICOutlierDetector().fit(few).is_outlier_ == (np.arange(309) >= 300)).all()
    assert MOSAICOutlierDetector().fit(many).threshold_rule_ != "alone"


def planted(kind):
    if kind == "gross":
        return datasets.blobs_with_gross_outliers(random_state=0)
    if kind in ("images", "shuffled"):
        noise = datasets.noise_images(25, DIGITS, random_state=0)
        odd = noise if kind == "images" else np.random.default_rng(0).permuted(DIGITS[::10], axis=1)
        return datasets.Contaminated(np.vstack([DIGITS, odd]), np.arange(len(DIGITS) + len(odd)) >= len(DIGITS))
    return datasets.contaminate(roll(300, 20), 0.2, kind=kind, random_state=0)


@pytest.mark.parametrize(
    ("kind", "rule", "found"),
    [
        ("uniform", "valley", 0.8),
        ("repetitive", "valley", 0.8),
        ("images", "valley", 0.8),
        ("shuffled", "valley", 0.8),
        ("gross", "alone", 1.0),
    ],
)
def test_planted_outliers_are_found(kind, rule, found):
    data = planted(kind)
    detector = MOSAICOutlierDetector().fit(data.X)
    assert detector.is_outlier_[data.is_outlier].mean() >= found
    assert detector.is_outlier_[~data.is_outlier].mean() <= 0.02
    assert detector.threshold_rule_ == rule
    if kind == "uniform":
        with pytest.warns(
            SelectionWarning, match=r"\d+ of 360 rows \(1\d %\) are taken for outliers.*set contamination"
        ) as caught:
            MOSAICOutlierDetector().fit(data.X)
        assert not any("`" in str(warning.message) for warning in caught)


def test_tenth_of_noise_is_told_from_a_group_by_its_dimension():
    noise = datasets.noise_images(60, DIGITS, random_state=0).reshape(60, -1)
    with pytest.warns(SelectionWarning, match="are taken for outliers"):
        detector = MOSAICOutlierDetector().fit(np.vstack([DIGITS, noise]))
    assert detector.is_outlier_[500:].mean() > 0.9
    assert not detector.is_outlier_[:500].any()


@with_auto_and_share
def test_repetition_is_a_whole_weight(spoilt, around, rng, contamination):
    times = rng.integers(1, 4, len(spoilt.X))
    owner = rng.permutation(np.repeat(np.arange(len(times)), times))
    repeated = MOSAICOutlierDetector(contamination).fit(spoilt.X[owner])
    weighted = MOSAICOutlierDetector(contamination).fit(spoilt.X, sample_weight=times)
    np.testing.assert_allclose(repeated.effective_count_, weighted.effective_count_[owner], rtol=1e-9)
    np.testing.assert_array_equal(repeated.is_outlier_, weighted.is_outlier_[owner])
    assert repeated.offset_ == pytest.approx(weighted.offset_)
    new = np.vstack(around)
    np.testing.assert_allclose(repeated.score_samples(new), weighted.score_samples(new), rtol=1e-9, atol=1e-12)


def test_row_without_weight_is_absent_but_scored(spoilt, rng):
    weights = (rng.uniform(size=len(spoilt.X)) < 0.8).astype(float)
    present = weights > 0
    weighted = MOSAICOutlierDetector().fit(spoilt.X, sample_weight=weights)
    without = MOSAICOutlierDetector().fit(spoilt.X[present])
    np.testing.assert_allclose(weighted.effective_count_[present], without.effective_count_, rtol=1e-9)
    np.testing.assert_allclose(
        np.log(weighted.effective_count_[~present]), without.score_samples(spoilt.X[~present]), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(weighted.predict(spoilt.X) == -1, weighted.is_outlier_)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_read_by_the_names_of_their_columns(spoilt, fitted, library):
    frames = pytest.importorskip(library)
    names = [f"x{j}" for j in range(10)]
    columns = {"name": [f"row {i}" for i in range(len(spoilt.X))]} | dict(zip(names, spoilt.X.T, strict=True))
    frame = frames.DataFrame(columns)
    detector = MOSAICOutlierDetector().fit(frame)
    np.testing.assert_allclose(detector.effective_count_, fitted.effective_count_, rtol=1e-9)
    assert detector.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(detector.predict(frame), fitted.predict(spoilt.X))


def test_precomputed_similarities_are_scored_like_the_points_behind_them(spoilt, around):
    X = spoilt.X[::3]  # so few that one program compares them all
    fitted = MOSAICOutlierDetector().fit(X)
    kernel = make_kernel(X, "rbf", gamma=fitted.gamma_)
    K = kernel.block(slice(None), np.arange(len(X)))
    detector = MOSAICOutlierDetector(kernel="precomputed").fit(K)
    np.testing.assert_allclose(detector.effective_count_, fitted.effective_count_, rtol=0.02)  # both to a gap
    np.testing.assert_array_equal(detector.is_outlier_, fitted.is_outlier_)
    np.testing.assert_array_equal(detector.predict(K) == -1, detector.is_outlier_)
    with pytest.raises(InvalidInputError, match="must be square; got shape"):
        clone(detector).fit(X)
    new = np.vstack(around)
    np.testing.assert_allclose(detector.score_samples(kernel.cross(new)), fitted.score_samples(new), rtol=0.02, atol=0.02)


@pytest.mark.parametrize(
    "kernel", ["laplacian", "linear", "cosine", "polynomial", "diffusion", lambda A, B: 1 / (1 + cdist(A, B))]
)
def test_any_kernel_gives_scores_and_labels_that_agree(spoilt, around, kernel):
    detector = MOSAICOutlierDetector(0.1, kernel=kernel).fit(spoilt.X[:150])
    np.testing.assert_array_equal(detector.predict(spoilt.X[:150]) == -1, detector.is_outlier_)
    assert detector.is_outlier_.sum() == 15
    assert np.isfinite(detector.score_samples(np.vstack(around))).all()


@pytest.mark.filterwarnings("ignore:A group of")
@pytest.mark.parametrize(("size", "shape"), [(2, (4, 2)), (40, (4, 40)), (500, (1, 360))])
def test_programs_compare_as_many_rows_as_asked_for(spoilt, size, shape):
    detector = MOSAICOutlierDetector(max_samples=size).fit(spoilt.X)
    assert detector.selection_.data.counting.weights.shape == shape
    assert (detector.effective_count_ <= detector.selection_.data.count_total + 1e-9).all()
