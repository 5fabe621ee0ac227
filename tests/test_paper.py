"""``Paper()`` is Algorithm 1, ``Paper(sketch=…)`` Algorithm 3: against an ADMM in NumPy that was written from the text alone."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import mosaic
from mosaic import MOSAIC, InvalidInputError, Paper, SelectionWarning, Sketch, datasets
from mosaic.kernels.points import RBF
from oracles import algorithm_3, outlier_probability, paper_admm, paper_picks

CLOUD = np.random.default_rng(0).normal(size=(200, 4))
SIXTY = np.vstack([datasets.swiss_roll(55, random_state=1) / 5.0, 20.0 * np.random.default_rng(1).normal(size=(5, 3))])
SIMILARITIES = {
    "rbf": ({"kernel": "rbf", "gamma": 0.4}, rbf_kernel(SIXTY, gamma=0.4)),
    "laplacian": ({"kernel": "laplacian", "gamma": 0.2}, laplacian_kernel(SIXTY, gamma=0.2)),
    "linear": ({"kernel": "linear"}, SIXTY @ SIXTY.T),
}


@pytest.mark.parametrize("alpha", [2.0, 10.0, 50.0])
@pytest.mark.parametrize("name", SIMILARITIES)
def test_paper_is_algorithm_1_as_written(name, alpha):
    settings, K = SIMILARITIES[name]
    model = MOSAIC(algorithm=Paper(alpha=alpha), **settings).fit(SIXTY)
    assert model.lam_ == pytest.approx(alpha / np.linalg.norm(K, axis=1).max(), rel=1e-6)
    R = paper_admm(K, K, model.lam_)
    rows = np.flatnonzero(R.any(axis=1))
    assert np.flatnonzero(model.influence_).tolist() == rows.tolist()
    np.testing.assert_allclose(model.influence_[rows], np.linalg.norm(R[rows], axis=1), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(model.outlier_probability_[rows], outlier_probability(R[rows]), atol=2e-4)
    assert model.representative_indices_.tolist() == paper_picks(K, R)


@pytest.mark.parametrize("solver", ["auto", "admm"])
@pytest.mark.parametrize("share", [0.7, 0.95, 1.0])
@pytest.mark.parametrize("threshold", [None, 0.97])
def test_pruning_and_the_threshold_are_those_of_the_text_for_similarities_and_with_admm(solver, share, threshold):
    _, K = SIMILARITIES["rbf"]
    paper = Paper(alpha=5.0, diversity=share, op_threshold=threshold, solver=solver, max_iter=100_000)
    model = MOSAIC(algorithm=paper, kernel="precomputed").fit(K)
    R = paper_admm(K, K, model.lam_)
    expected = paper_picks(K, R, share, threshold)
    assert model.representative_indices_.tolist() == expected
    assert (len(paper_picks(K, R, share, 1.0)) < np.count_nonzero(R.any(axis=1))) == (share < 1)
    few = MOSAIC(2, algorithm=paper, kernel="precomputed").fit(K)
    assert few.representative_indices_.tolist() == expected[:2]
    everyone = MOSAIC(algorithm=paper, kernel="precomputed", outliers="keep").fit(K)
    assert everyone.representative_indices_.tolist() == paper_picks(K, R, share, 1.0)


def test_the_default_threshold_rejects_nobody_where_all_that_pruning_keeps_are_below_it():
    apart = 10.0 * np.arange(6.0)[:, None]
    model = MOSAIC(algorithm=Paper(diversity=1.0), gamma=1.0).fit(apart)
    assert sorted(model.representative_indices_) == [0, 1, 2, 3, 4, 5]
    assert model.outlier_probability_ == pytest.approx(1.0)  # each stands for itself alone
    with pytest.raises(InvalidInputError, match="no representative is left"):
        MOSAIC(algorithm=Paper(diversity=1.0, op_threshold=0.8), gamma=1.0).fit(apart)  # the same threshold, asked for
    group = np.vstack([apart, [[0.1], [0.2], [0.3]]])
    assert set(MOSAIC(algorithm=Paper(diversity=1.0), gamma=1.0).fit(group).representative_indices_) <= {0, 6, 7, 8}


@pytest.mark.parametrize("solver", ["auto", "admm"])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_a_sketch_is_algorithm_3_round_by_round(kernel, solver):
    X = datasets.contaminate(datasets.swiss_roll(360, random_state=0) / 5.0, 1 / 9, random_state=1).X
    assert len(X) == 400
    K = rbf_kernel(X, gamma=0.3)
    given = {"kernel": kernel, "gamma": 0.3} if kernel == "rbf" else {"kernel": kernel}

    def fit(rounds):
        paper = Paper(lam=0.2, sketch=Sketch(40, 8, rounds), solver=solver, max_iter=100_000)
        return MOSAIC(algorithm=paper, **given).fit(X if kernel == "rbf" else K)

    models = [fit(rounds) for rounds in (1, 2, 3)]
    drawn = np.random.default_rng(0).permutation(400)[:40]
    first = models[0].selection_.data.points.first[drawn]
    for model, R in zip(models, algorithm_3(K, 0.2, first, 8, 3), strict=True):
        rows = np.flatnonzero(R.any(axis=1))
        assert np.flatnonzero(model.influence_).tolist() == rows.tolist()
        np.testing.assert_allclose(model.outlier_probability_[rows], outlier_probability(R[rows]), atol=2e-4)
        assert model.representative_indices_.tolist() == paper_picks(K, R)


def test_rows_in_single_precision_are_computed_in_double():
    X = CLOUD.astype(np.float32)
    single, double = (MOSAIC(algorithm="paper").fit(rows).influence_ for rows in (X, X.astype(np.float64)))
    np.testing.assert_array_equal(single, double)


def test_the_norm_of_the_theorem_can_be_asked_for():
    X = SIXTY[:40]
    model = MOSAIC(algorithm=Paper(alpha=3.0, row_norm="linf", tol=1e-6), gamma=0.4).fit(X)
    encoding = mosaic.solve(X, gamma=0.4, alpha=3.0, row_norm="linf", tol=1e-6)
    np.testing.assert_allclose(model.influence_, encoding.influence, atol=1e-3)
    rows = model.representative_indices_[:1]
    R = np.abs(encoding.rows(rows))
    np.testing.assert_allclose(model.effective_count_[rows], R.sum(axis=1) / R.max(axis=1), rtol=1e-2)
    with pytest.raises(InvalidInputError, match="says nothing of rows that were not in it"):
        model.predict(X[:3] + 0.1)
    with pytest.raises(InvalidInputError, match="takes no weights, and some rows are equal"):
        MOSAIC(algorithm=Paper(row_norm="linf")).fit(np.vstack([X, X[:1]]))
    with pytest.raises(InvalidInputError, match="which Algorithm 3 has not"):
        MOSAIC(algorithm=Paper(row_norm="linf", sketch=Sketch(10))).fit(X)


def test_fewer_rows_than_asked_for_give_a_warning():
    X = np.repeat(np.random.default_rng(0).normal(size=(3, 2)) * 50.0, 20, axis=0) + np.random.default_rng(1).normal(size=(60, 2))
    with pytest.warns(SelectionWarning, match=r"8 representatives were asked for, and \d rows? left: of \d+ rows with influence"):
        model = MOSAIC(8, algorithm="paper").fit(X)
    assert model.n_representatives_ < 8
    MOSAIC(model.n_representatives_, algorithm="paper").fit(X)
    MOSAIC(algorithm="paper").fit(X)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 255.0])
def test_the_default_bandwidth_has_the_unit_of_the_data(unit):
    model, scaled = (MOSAIC(algorithm="paper").fit(X) for X in (CLOUD, unit * CLOUD))
    apart = ((CLOUD[:, None] - CLOUD) ** 2).sum(axis=-1)
    assert model.gamma_ == pytest.approx(1.0 / np.median(apart[np.triu_indices(200, 1)]))
    assert scaled.gamma_ * unit**2 == pytest.approx(model.gamma_)
    assert scaled.representative_indices_.tolist() == model.representative_indices_.tolist()
    assert model.alpha_ == pytest.approx(10.0)


def test_similarities_below_1e30_are_zero():
    K = RBF(np.array([[0.0], [8.0], [9.0], [27.0]]), 1.0).block(slice(None), np.arange(4))
    assert K[0].tolist() == [1.0, np.exp(-64.0), 0.0, 0.0]


def test_paper_refuses_constraints():
    for constraint in ({"must_include": [0]}, {"exclude": [0]}, {"candidates": range(9)}, {"groups": [0, 1] * 100}):
        with pytest.raises(InvalidInputError, match=r"knows no constraints\. Leave algorithm at None"):
            MOSAIC(algorithm="paper").fit(CLOUD, **constraint)
