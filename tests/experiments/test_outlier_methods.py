"""Outlier contestants against answers worked out by hand, written out plainly, or found by another solver."""

import inspect
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist, pdist
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from experiments.methods import CannotRun, all_detectors, detect_coherence, detect_l1_kpca, detect_parts

pytestmark = pytest.mark.slow

FILES = sorted(file.stem for file in Path(detect_parts.__file__).parent.glob("detect_*.py"))
DETECTORS = [d for file in FILES for d in getattr(import_module(f"experiments.methods.{file}"), "DETECTORS", ())]
BY_NAME = {d.name: d for d in DETECTORS}
each_detector = pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: d.name)
#: These have a threshold of their own.
DECIDING = {"DS3", "LOF", "Isolation forest", "One-class SVM", "ECOD", "COPOD", "HBOS"}
#: These judge by direction or by local planes, not by distance from the rest.
BY_DIRECTION = {"CoP", "RML (surrogate)"}


def scores_of(detector, X, seed=0, **settings):
    try:
        return detector.run(X, seed, **settings)
    except CannotRun as reason:
        if "pyod cannot be imported" in str(reason):
            pytest.skip(str(reason))
        raise


@pytest.fixture
def blob(rng):
    """A Gaussian blob and eight points on a shell around it."""
    X = rng.normal(size=(120, 3))
    X[:8] *= 8.0 / np.linalg.norm(X[:8], axis=1, keepdims=True)
    return X, np.arange(120) < 8


@pytest.fixture
def plane(rng):
    """Points on a plane through the origin in many dimensions, and eight that are not."""
    X = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 20))
    X[:8] = 2.0 * rng.normal(size=(8, 20))
    return X, np.arange(120) < 8


# What holds for all


def test_every_wanted_contestant_is_collected_once_with_its_tier():
    tiers = dict.fromkeys(("SMRS", "DS3", "CoP", "Kernel CoP", "L1-KPCA"), "paper") | dict.fromkeys(DECIDING, "peer")
    tiers |= {"DS3": "paper", "kNN distance": "peer"}
    tiers |= dict.fromkeys(("FDR (surrogate)", "RML (surrogate)", "GCP (surrogate)"), "surrogate")
    assert {d.name: d.tier for d in DETECTORS} == tiers
    assert all(all_detectors()[name] is detector for name, detector in BY_NAME.items())


@each_detector
def test_every_setting_of_the_grid_scores_every_point_and_the_same_seed_gives_the_same_scores(detector, blob):
    X = blob[0][:60]
    for settings in detector.grid:
        inspect.signature(detector.run).bind(X, 0, **settings)
        found = scores_of(detector, X, seed=3, **settings)
        assert found.values.shape == (60,)
        assert np.isfinite(found.values).all()
        np.testing.assert_array_equal(found.values, scores_of(detector, X, seed=3, **settings).values)
        assert (found.flagged is not None) == (detector.name in DECIDING)
        if found.flagged is not None:
            assert (found.flagged.shape, found.flagged.dtype) == ((60,), bool)


@each_detector
def test_planted_outliers_and_a_far_point_are_found_and_what_is_flagged_scores_no_less(detector, blob, plane, rng):
    X, odd = plane if detector.name in BY_DIRECTION else blob
    found = scores_of(detector, X)
    assert roc_auc_score(odd, found.values) > 0.9
    if found.flagged is not None:
        assert 0 < found.flagged.sum() < len(X)
    if found.flagged is not None and detector.name != "DS3":  # its decision compares e with the other entries of the same column
        assert found.values[found.flagged].min() >= found.values[~found.flagged].max()
    if detector.name != "CoP":  # coherence ignores length
        X = rng.normal(size=(80, 4))
        X[17] = 30.0
        values = scores_of(detector, X).values
        assert np.argmax(values) == 17
        assert (values == values[17]).sum() == 1 or detector.name == "DS3"  # its score ends at one


@each_detector
@pytest.mark.parametrize("kind", ["repeated", "all equal", "three points", "one feature", "sparse"])
def test_awkward_data_do_not_crash(detector, kind, rng):
    X = rng.normal(size=(6, 2))
    X = {
        "repeated": np.repeat(X, 15, axis=0),
        "all equal": np.ones((20, 2)),
        "three points": X[:3],
        "one feature": rng.normal(size=(30, 1)),
        "sparse": csr_array(rng.normal(size=(30, 3)) * (rng.random((30, 3)) < 0.3)),
    }[kind]
    for settings in (detector.grid[0], detector.grid[-1]):
        assert np.isfinite(scores_of(detector, X, **settings).values).all()


@each_detector
def test_more_points_than_a_method_can_take_are_refused_with_the_reason(detector):
    X = np.broadcast_to(np.zeros((1, 1)), (detector.largest + 1, 1))  # takes no memory
    with pytest.raises(CannotRun, match=f"takes at most {detector.largest:,}: "):
        detector.run(X, 0)


# Coherence pursuit


@pytest.mark.parametrize("power", [1, 2])
def test_coherence_of_orthogonal_lines_counts_companions_and_is_the_sum_over_all_pairs(rng, power):
    X = np.array([[1.0, 0.0], [-2.0, 0.0], [5.0, 0.0], [0.0, 1.0], [0.0, -3.0]])
    np.testing.assert_allclose(detect_coherence.coherence(X, power), [2, 2, 2, 1, 1])
    np.testing.assert_allclose(BY_NAME["CoP"].run(X, 0, power=power).values, [-1, -1, -1, -0.5, -0.5])
    X = rng.normal(size=(30, 4))
    pairs = np.abs(cosine_similarity(X)) ** power
    np.testing.assert_allclose(detect_coherence.coherence(X, power), pairs.sum(axis=1) - 1.0)
    X[2] = 0.0
    assert detect_coherence.coherence(X, power)[2] == 0


@pytest.mark.parametrize("bandwidth", [0.1, 1.0, 10.0])
def test_kernel_coherence_pursuit_is_the_sum_of_squared_gaussian_similarities(rng, bandwidth):
    X = rng.normal(size=(40, 3))
    G = rbf_kernel(X, gamma=1.0 / (bandwidth * np.median(pdist(X)) ** 2))
    expected = (G**2).sum(axis=1) - 1.0
    found = BY_NAME["Kernel CoP"].run(X, 0, bandwidth=bandwidth).values
    np.testing.assert_allclose(found, -expected / expected.max(), rtol=1e-9)
    assert detect_parts.squared_median_distance(np.array([[0.0], [0.0], [1.0], [4.0]]), 0) == 3.0**2  # of points that differ


# L1-norm kernel PCA


@pytest.fixture
def centred_kernel(rng):
    X = rng.normal(size=(12, 2))
    H = np.eye(12) - 1 / 12
    return H @ rbf_kernel(X, gamma=0.5) @ H


def test_first_component_is_the_best_of_all_sign_vectors(centred_kernel):
    K = centred_kernel
    best = max(np.array(c) @ K @ c for c in product([-1.0, 1.0], repeat=len(K)))
    s, energy = detect_l1_kpca.first_component(lambda A: K @ A, len(K), np.random.default_rng(0))
    assert energy == pytest.approx(best)
    assert np.abs(s).sum() == pytest.approx(np.sqrt(best))  # Σ|φ(a_i)ᵀx| = √(cᵀKc) at a fixed point


def test_residual_is_the_diagonal_of_the_deflated_kernel(rng, centred_kernel):
    S = detect_l1_kpca.components(centred_kernel, 3, seed=0)
    deflated = centred_kernel.copy()
    for s in S.T:
        # s = Kc/√(cᵀKc) on the kernel deflated so far, where c = sign(s)
        c = np.sign(s)
        np.testing.assert_allclose(s, deflated @ c / np.sqrt(c @ deflated @ c), atol=1e-12)
        deflated -= np.outer(deflated @ c, deflated @ c) / (c @ deflated @ c)
    np.testing.assert_allclose(np.diagonal(centred_kernel) - (S**2).sum(axis=1), np.diagonal(deflated), atol=1e-12)


# Surrogates, which are judged by what they find above, and tools that users use


def test_components_are_joined_by_the_shortest_bridges(rng):
    X = rng.uniform(size=(60, 2))
    X[20:40, 0] += 5.0
    X[40:, 0] += 20.0
    graph = detect_parts.neighbour_graph(X, 4)
    assert connected_components(graph, directed=False)[0] == 3
    joined = detect_parts.joined(graph, X)
    assert connected_components(joined, directed=False)[0] == 1
    added = (joined - graph).tocsr()
    added.eliminate_zeros()
    D = cdist(X, X)
    np.testing.assert_allclose(np.sort(added.data), np.sort([D[:20, 20:40].min(), D[20:40, 40:].min()]))


def test_distances_and_decisions_are_those_of_scikit_learn(blob):
    X = blob[0]
    np.testing.assert_allclose(BY_NAME["kNN distance"].run(X, 0).values, np.sort(cdist(X, X), axis=1)[:, 10])
    unit = np.median(pdist(X)) ** 2
    for name, settings, model in (
        ("LOF", {"k": 20}, LocalOutlierFactor()),
        ("Isolation forest", {}, IsolationForest(random_state=5)),
        ("One-class SVM", {"bandwidth": 10.0, "nu": 0.1}, OneClassSVM(gamma=1 / (10 * unit), nu=0.1)),
    ):
        np.testing.assert_array_equal(BY_NAME[name].run(X, 5, **settings).flagged, model.fit_predict(X) == -1)
