"""What holds for any data: drawn clouds, lattices full of ties and copies, and blobs with points far away from them."""

import re

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import euclidean_distances

from mosaic import MOSAIC, InvalidInputError
from mosaic.arrays.codes import equal_rows
from mosaic.choosing import rank
from mosaic.choosing.choose import Chooser
from mosaic.choosing.outliers import ROUNDING_OF_COUNTS

property_test = settings(deadline=None, max_examples=25, derandomize=True)
ATTRIBUTES = [
    "representative_indices_", "n_representatives_", "effective_count_", "is_outlier_",
    "outlier_threshold_", "labels_", "representation_error_", "coverage_", "gamma_", "column_scale_", "n_features_in_",
]  # fmt: skip
COPIES = re.compile(r"(\d+) rows − (\d+) outliers − (\d+) not allowed − (\d+) copies or without weight = (\d+)")


@st.composite
def points(draw, least=8, most=40, distinct=False, kinds=("cloud", "lattice", "blobs")):
    """A cloud, a lattice with copies and ties, or blobs with a few points far from everything."""
    n, d = draw(st.integers(least, most)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(kinds))
    if kind == "cloud":
        X = rng.normal(size=(n, d))
    elif kind == "lattice":
        X = rng.integers(-3, 4, size=(n, d)) / 2.0
    else:
        X = 5.0 * rng.integers(0, 3, size=(n, 1)) + 0.3 * rng.normal(size=(n, d))
        far = draw(st.integers(0, 2))
        X[:far] = 1000.0 * rng.normal(size=(far, d))
    if not distinct and draw(st.booleans()):
        X = X[rng.integers(0, n, size=n)]
    if distinct:
        X = rng.permutation(np.unique(X, axis=0))
        assume(len(X) >= least)
    return X


def n_distinct(X):
    return len(np.unique(X, axis=0))


def attributes(model):
    """All that a fit has found out, by name; the program apart, which is solved when it is asked for."""
    found = {name: getattr(model, name) for name in ATTRIBUTES}
    return found | {"gains": model.selection_.gains, "decisions": "\n".join(model.selection_.decisions)}


def same(actual, expected):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        if value is None or isinstance(value, str):
            assert actual[name] == value, name
        else:
            np.testing.assert_allclose(actual[name], value, rtol=1e-9, atol=1e-12, err_msg=name)


def outcome(fit):
    """Attributes of a fitted model, or the reason why there is none."""
    try:
        return attributes(fit())
    except InvalidInputError as error:
        return {"refused": str(error)}


def mean_similarity(S, weights, chosen):
    """Weighted mean over rows of S of the similarity to the nearest of the first 1, 2, 3, … chosen."""
    return weights @ np.maximum.accumulate(S[:, chosen], axis=1) / weights.sum()


@property_test
@given(points(), st.data())
def test_number_that_is_said_is_no_worse_than_a_ranking_and_no_exchange_makes_it_better(X, data):
    k = data.draw(st.integers(1, max(1, n_distinct(X) // 2)))
    kernel = data.draw(st.sampled_from(["rbf", "laplacian", "linear", "polynomial"]))
    assume(kernel != "linear" or X.any())
    model = MOSAIC(k, kernel=kernel).fit(X)
    ranking = rank(model.selection_, k)
    similarity = ranking.similarity
    belongs, chosen = (~model.is_outlier_).astype(float), model.representative_indices_
    points = model.selection_.data.points.point_of
    cover = Chooser(model.selection_, k).cover
    S = cover.between(points, points)
    if kernel == "rbf":
        np.testing.assert_allclose(S, np.exp(-euclidean_distances(X) / cover.reach), rtol=1e-5)
    found = mean_similarity(S, belongs, chosen)
    np.testing.assert_allclose(similarity, mean_similarity(S, belongs, ranking.members), rtol=1e-9, atol=1e-12)
    assert found[-1] >= similarity[-1] * (1 - 1e-12)
    # In the order of what they add: any beginning has at least its share of the whole.
    gains = model.selection_.gains
    assert (np.diff(gains) <= 1e-10).all()
    np.testing.assert_allclose(np.cumsum(gains), found, rtol=1e-7)
    for place in range(k):
        others = np.delete(S[:, chosen], place, axis=1).max(axis=1, initial=0.0)
        for candidate in np.flatnonzero(~model.is_outlier_):
            exchanged = belongs @ np.maximum(others, S[:, candidate]) / belongs.sum()
            assert exchanged <= found[-1] * (1 + 2e-9)


@property_test
@given(points(), st.data())
def test_as_many_as_asked_for_all_different_and_labels_name_them(X, data):
    if data.draw(st.booleans()):  # copies are never chosen twice
        X = np.vstack([X, X])[np.random.default_rng(data.draw(st.integers(0, 99))).permutation(2 * len(X))]
    # No more than half of the distinct points can be outliers, so half of them can always be had.
    k = data.draw(st.integers(1, max(1, n_distinct(X) // 2)))
    model = MOSAIC(k, outliers=data.draw(st.sampled_from(["reject", "keep", "report"]))).fit(X)
    chosen = model.representative_indices_
    assert len(chosen) == model.n_representatives_ == k == n_distinct(X[chosen])
    assert set(model.labels_[~model.is_outlier_].tolist()) == set(range(k))
    if model.outliers == "reject":
        assert (model.labels_[model.is_outlier_] == -1).all()
    np.testing.assert_array_equal(model.labels_[chosen], np.arange(k))
    assert (model.representation_error_[chosen] < 1e-6).all()


@property_test
@given(points(), st.sampled_from(["auto", 0.05, 0.2, 0.5]), st.sampled_from([None, "paper"]))
def test_flagged_outlier_is_never_a_representative(X, contamination, algorithm):
    model = MOSAIC(contamination=contamination, algorithm=algorithm).fit(X)
    assert not model.is_outlier_[model.representative_indices_].any()
    low = model.effective_count_ < model.outlier_threshold_
    if algorithm is None and contamination == "auto":  # rows are kept whose neighbours are near
        assert not (model.is_outlier_ & ~low).any()
    else:
        np.testing.assert_array_equal(model.is_outlier_, low)


@property_test
@given(points(distinct=True), st.data())
def test_constraints_on_single_rows_are_met(X, data):
    rows = data.draw(st.permutations(range(len(X))))
    n_must, n_exclude = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    must, exclude, rest = rows[:n_must], rows[n_must : n_must + n_exclude], rows[n_must + n_exclude :]
    candidates = None
    if data.draw(st.booleans()):
        candidates = rest[: data.draw(st.integers(1, len(rest)))] + exclude
    k = data.draw(st.integers(max(n_must, 1), len(rest) + n_must))
    model = MOSAIC(k)
    try:
        model.fit(X, must_include=must, exclude=exclude, candidates=candidates)
    except InvalidInputError as error:
        total, flagged, forbidden, copies, left = map(int, COPIES.search(str(error)).groups())
        assert total - flagged - forbidden - copies == left < k
        assert (total, copies) == (len(X), 0)
        assert left <= n_must + (len(rest) if candidates is None else len(candidates) - len(exclude))
        return
    chosen = model.representative_indices_.tolist()
    assert len(chosen) == k
    assert chosen[:n_must] == must
    assert not set(chosen) & set(exclude)
    if candidates is not None:
        assert set(chosen) <= set(candidates) | set(must)
    assert not model.is_outlier_[must].any()


@property_test
@given(points(least=12, distinct=True), st.sampled_from(["proportional", "equal", None, "numbers", "shares"]), st.data())
def test_quotas_are_obeyed_exactly_or_refused_with_the_numbers(X, kind, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    groups = rng.choice(["a", "b", "c"], size=len(X), p=[0.6, 0.3, 0.1])
    names, sizes = np.unique(groups, return_counts=True)
    k = data.draw(st.integers(1, len(X) // 2))
    quotas = kind
    if kind in ("numbers", "shares"):
        part = st.integers(0, 4) if kind == "numbers" else st.floats(0.0, 1.0 / len(names))
        quotas = {name: data.draw(part) for name in names.tolist()}
    try:
        model = MOSAIC(k, outliers="keep").fit(X, groups=groups, quotas=quotas)
    except InvalidInputError as error:
        text = str(error)
        if isinstance(quotas, dict) and "quotas ask for" in text:
            # Either they do not add up …
            total, parts = int(re.search(r"ask for (\d+)", text)[1]), re.findall(r"'\w': (\d+)", text)
            assert f"n_representatives for {k}" in text
            assert total == sum(map(int, parts)) != k
        else:
            # … or a group has too few.
            wanted, name, available = re.search(r"(\d+) representatives of group '(\w)' are asked for, but (\d+)", text).groups()
            assert int(wanted) > int(available) == sizes[names.tolist().index(name)]
            assert kind != "proportional"
        return
    found = np.array([(groups[model.representative_indices_] == name).sum() for name in names])
    assert found.sum() == k == model.n_representatives_
    if kind == "numbers":
        assert found.tolist() == list(quotas.values())
    elif kind == "equal":
        assert found.max() - found.min() <= 1
    else:
        shares = np.array(list(quotas.values())) if kind == "shares" else sizes / sizes.sum()
        assert (np.abs(found - k * shares) < 1 + 1e-9).all()


@property_test
@given(points(), st.data())
def test_order_of_the_rows_does_not_matter(X, data):
    order = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(len(X))
    kernel = data.draw(st.sampled_from(["rbf", "laplacian", "diffusion", "polynomial"]))
    k = data.draw(st.sampled_from(["auto", 1, max(1, n_distinct(X) // 2)]))
    model, shuffled = MOSAIC(k, kernel=kernel).fit(X), MOSAIC(k, kernel=kernel).fit(X[order])
    np.testing.assert_array_equal(shuffled.select(X[order]), model.select(X))
    if equal_rows(X).is_trivial:
        np.testing.assert_array_equal(order[shuffled.representative_indices_], model.representative_indices_)
    np.testing.assert_array_equal(shuffled.labels_, model.labels_[order])
    np.testing.assert_array_equal(shuffled.is_outlier_, model.is_outlier_[order])
    for name in ("effective_count_", "representation_error_"):
        np.testing.assert_allclose(getattr(shuffled, name), getattr(model, name)[order], rtol=1e-10, atol=1e-12)
    assert shuffled.gamma_ == model.gamma_
    np.testing.assert_allclose(shuffled.coverage_, model.coverage_, rtol=1e-10)


@property_test
@given(points(most=25), st.data())
def test_whole_number_weights_are_repetitions(X, data):
    weights = np.array(data.draw(st.lists(st.integers(1, 4), min_size=len(X), max_size=len(X))))
    settings = {
        "n_representatives": data.draw(st.sampled_from(["auto", 1, max(1, n_distinct(X) // 2)])),
        "contamination": data.draw(st.sampled_from(["auto", 0.2])),
    }
    repeated = np.repeat(np.arange(len(X)), weights)
    weighted, whole = MOSAIC(**settings).fit(X, sample_weight=weights), MOSAIC(**settings).fit(X[repeated])
    np.testing.assert_array_equal(weighted.select(X), whole.select(X[repeated]))
    for name in ("labels_", "is_outlier_", "effective_count_", "representation_error_"):
        np.testing.assert_allclose(getattr(whole, name), getattr(weighted, name)[repeated], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(whole.coverage_, weighted.coverage_, rtol=1e-10)
    assert whole.outlier_threshold_ == weighted.outlier_threshold_


@property_test
@given(points(), st.data())
def test_rows_without_weight_are_as_good_as_absent(X, data):
    present = np.array(data.draw(st.lists(st.booleans(), min_size=len(X), max_size=len(X))))
    assume(present.sum() >= 4)
    k = data.draw(st.sampled_from(["auto", 1, max(1, n_distinct(X[present]) // 2)]))
    without, alone = MOSAIC(k).fit(X, sample_weight=present.astype(float)), MOSAIC(k).fit(X[present])
    np.testing.assert_array_equal(without.select(X), alone.select(X[present]))
    assert present[without.representative_indices_].all()
    for name in ("labels_", "is_outlier_", "effective_count_", "representation_error_"):
        rtol = ROUNDING_OF_COUNTS if name == "effective_count_" else 1e-10
        np.testing.assert_allclose(getattr(without, name)[present], getattr(alone, name), rtol=rtol, atol=1e-12)
    # Absent rows are answered for as new points are.
    np.testing.assert_array_equal(without.labels_[~present], alone.predict(X)[~present])
    scores = np.exp(alone.score_samples(X)[~present])
    np.testing.assert_allclose(without.effective_count_[~present], scores, rtol=ROUNDING_OF_COUNTS)


@settings(property_test, max_examples=50)
@given(points(), st.sampled_from([None, "paper"]), st.data())
def test_other_settings_of_the_choice_give_what_a_fresh_fit_with_them_gives(X, algorithm, data):
    of_paper = [{"algorithm__op_threshold": 0.9}, {"algorithm__diversity": 0.5}, {"n_representatives": 2}, {"outliers": "keep"}]
    numbers = [{"n_representatives": k} for k in (1, max(1, n_distinct(X) // 2), "auto", 0.25)]
    numbers += [{"coverage": 0.3}, {"coverage": 0.9}]
    before = data.draw(st.sampled_from([{}] if algorithm else numbers))
    changes = data.draw(st.sampled_from(of_paper if algorithm else numbers))
    model = MOSAIC(algorithm=algorithm, **before).fit(X)
    expected = outcome(lambda: MOSAIC(algorithm=algorithm).set_params(**changes).fit(X))
    same(outcome(lambda: model.rethreshold(**changes)), expected)


@property_test
@given(points(), st.data())
def test_points_of_the_data_get_the_answers_of_the_fit(X, data):
    settings = {
        "n_representatives": data.draw(st.sampled_from(["auto", 1, max(1, n_distinct(X) // 2)])),
        "kernel": data.draw(st.sampled_from(["rbf", "laplacian", "diffusion", "polynomial"])),
        "contamination": data.draw(st.sampled_from(["auto", 0.2])),
        "outliers": data.draw(st.sampled_from(["reject", "report", "keep"])),
    }
    model = MOSAIC(**settings).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(np.exp(model.score_samples(X)), model.effective_count_, rtol=1e-8)
    own = model.selection_.kernel.diagonal()[model.selection_.chosen]
    np.testing.assert_allclose(model.transform(X)[model.representative_indices_].diagonal(), own, rtol=1e-10)
