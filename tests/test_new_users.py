"""What new users met once, each tried as a new user would, stays mended."""

import kmedoids
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, make_blobs
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import pairwise_distances

from mosaic import MOSAIC, MOSAICOutlierDetector, SelectionWarning, datasets

DIGITS = load_digits().data


@pytest.mark.parametrize("n", [300, 800, *(pytest.param(n, marks=pytest.mark.slow) for n in (3000, 4990, 5010, 20_000))])
def test_picks_are_as_near_to_blobs_as_medoids_are(n):
    X = make_blobs(n, 10, centers=12, random_state=0)[0]
    some = np.random.default_rng(0).permutation(n)[:5000]
    D = pairwise_distances(X[some])
    theirs = [some[kmedoids.fasterpam(D, 12, random_state=seed).medoids.astype(int)] for seed in range(2)]
    own, *others = (
        pairwise_distances(X, X[rows]).min(axis=1).mean() for rows in (MOSAIC(12).fit(X).representative_indices_, *theirs)
    )
    assert own <= 1.05 * min(others)


def with_sparse_fifth(d, seed):
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(size=(1200, d)), 3.0 * rng.normal(size=(300, d)) + 20.0])


@pytest.mark.filterwarnings("ignore:A group of")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("d", [2, 3, 5, 8])
def test_sparse_fifth_of_the_data_is_represented_and_kept(d, seed):
    model = MOSAIC(10).fit(with_sparse_fifth(d, seed))
    assert (model.representative_indices_ >= 1200).any()
    assert model.is_outlier_[1200:].mean() < 0.1


@pytest.mark.filterwarnings("ignore:A group of")
@pytest.mark.parametrize("seed", [170, 0, 1, 2])
@pytest.mark.parametrize("n", [500, pytest.param(5000, marks=pytest.mark.slow)])
def test_widest_of_three_blobs_is_represented_and_kept(n, seed):
    X, kind = make_blobs(n, 2, cluster_std=[1.0, 2.5, 0.5], random_state=seed)
    model = MOSAIC(10).fit(X)
    assert (kind[model.representative_indices_] == 1).any()
    assert model.is_outlier_[kind == 1].mean() < 0.1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("d", [2, 5])
def test_smallest_group_protects_a_sparse_fifth_from_a_share_that_is_declared(d, seed):
    X = with_sparse_fifth(d, seed)
    rejected = MOSAIC(10, contamination=0.2).fit(X)
    assert rejected.is_outlier_[1200:].mean() > 0.9
    assert not (rejected.representative_indices_ >= 1200).any()
    protected = MOSAIC(10, contamination=0.2, min_group=50).fit(X)
    assert protected.is_outlier_[1200:].mean() < 0.2
    assert (protected.representative_indices_ >= 1200).any()


@pytest.mark.parametrize("name", ["cancer", "digits"])
def test_coverage_never_falls_as_more_are_chosen_and_outliers_stay_the_same(name):
    X = load_breast_cancer().data if name == "cancer" else DIGITS
    models = [MOSAIC(k).fit(X) for k in (3, 5, 10, 20, 40)]
    covered = [model.coverage_ for model in models]
    assert (np.diff(covered) > 0).all()
    for model in models[1:]:
        np.testing.assert_array_equal(model.is_outlier_, models[0].is_outlier_)
    assert abs(MOSAIC(10).fit(X[:-1]).coverage_ - covered[2]) < 0.01  # one row more or less
    assert "compared by their direction" not in models[0].explain()[0]


@pytest.mark.parametrize("name", ["counts", "dense counts", "tf-idf", "embeddings"])
def test_word_counts_and_embeddings_are_recognised_and_lengths_do_not_matter(name):
    rng = np.random.default_rng(0)
    middles = rng.normal(size=(12, 60))[np.arange(300) % 12]  # 300 directions around twelve, of any length
    embeddings = (middles + 0.5 * rng.normal(size=(300, 60))) * rng.uniform(0.7, 1.4, size=(300, 1))
    words = rng.dirichlet(np.full(1500, 0.05), 6)  # word counts of 400 texts on six topics
    counts = sp.csr_array(np.array([rng.multinomial(60, words[i % 6]) for i in range(400)], np.float64))
    tfidf = sp.csr_array(TfidfTransformer().fit_transform(counts))
    X = {"counts": counts, "dense counts": counts.toarray(), "tf-idf": tfidf, "embeddings": embeddings}[name]
    model = MOSAIC(12).fit(X)
    assert "compared by their direction" in model.explain()[0]
    stretched = X * np.random.default_rng(1).choice([1.0, 2.0], size=(X.shape[0], 1))
    other = MOSAIC(12).fit(sp.csr_array(stretched) if sp.issparse(X) else stretched)
    np.testing.assert_array_equal(other.representative_indices_, model.representative_indices_)
    assert "compared by their direction" not in MOSAIC(12, scale=False).fit(X).explain()[0]


SYMMETRIC = {
    "normal": (np.random.default_rng(0).normal(size=(300, 4)), 15),
    "sampled": (np.random.default_rng(0).normal(size=(3000, 4)), 15),  # the bandwidth is found with 2048 of them
    "digits": (DIGITS[:600], 20),
}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_order_of_rows_and_columns_and_powers_of_two_change_nothing(name, seed):
    X, k = SYMMETRIC[name]
    rng, rows = np.random.default_rng(seed), MOSAIC(k).fit(X).representative_indices_
    order, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    np.testing.assert_array_equal(order[MOSAIC(k).fit(X[order]).representative_indices_], rows)
    np.testing.assert_array_equal(MOSAIC(k).fit(X[:, columns]).representative_indices_, rows)
    np.testing.assert_array_equal(MOSAIC(k).fit(1024.0 * X).representative_indices_, rows)
    turned = X @ np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]
    assert len(set(MOSAIC(k).fit(turned).representative_indices_) & set(rows)) >= 0.9 * k


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("kind", [lambda **s: MOSAIC(10, **s), MOSAICOutlierDetector], ids=["selector", "detector"])
def test_rejection_of_more_than_a_twentieth_is_warned_of_with_its_size_and_a_remedy(kind, share):
    roll = datasets.embed(datasets.swiss_roll(600, random_state=0), 10, noise=0.3, random_state=0)
    X = datasets.contaminate(roll, share, random_state=0).X
    with pytest.warns(SelectionWarning) as caught:
        model = kind().fit(X)
    number = int(model.is_outlier_.sum())
    assert number > 0.05 * len(X)
    (told,) = (str(warning.message) for warning in caught)
    assert told.startswith(f"{number} of {len(X)} rows ({100 * number / len(X):.0f} %) are taken for outliers")
    assert all(remedy in told for remedy in ("outliers='keep'", "min_group", "set contamination"))
    assert kind(contamination=0.2).fit(X).is_outlier_.any()  # whoever says how many is not told
