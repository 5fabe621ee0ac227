"""The proof for all rows from random ones."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom

from mosaic import MOSAIC, InvalidInputError
from mosaic.choosing import all_rows, proof_for_all
from mosaic.choosing.all_rows import most_likely
from mosaic.choosing.choose import Chooser
from sources import open_source


@pytest.mark.parametrize("m", [10, 100, 1000])
@pytest.mark.parametrize("mu", [0.01, 0.2, 0.5, 0.9])
def test_the_bound_for_all_rows_holds_as_often_as_it_says(m, mu):
    """Zeros and ones have the largest variance of all numbers between 0 and 1."""
    counts = np.arange(m + 1)
    bounds = np.array([most_likely(count / m, m, 10**9) for count in counts])
    assert binom.pmf(counts[bounds < mu], m, mu).sum() <= 0.05
    assert (bounds >= counts / m).all()
    assert (np.diff(bounds) >= 0).all()


def test_a_bound_from_all_rows_is_certain():
    assert most_likely(0.4, 50, 50) == 0.4


def proof_of(X, model, chosen, seed=0):
    selection = replace(model.selection_, data=replace(model.selection_.data, seed=seed))
    source = open_source(X)
    return proof_for_all(selection, X[chosen], lambda name, task: source.run(task), np.asarray)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_no_two_rows_cover_more_of_all_rows(kernel, monkeypatch):
    monkeypatch.setattr(all_rows, "RANDOM_ROWS", 60)
    X = np.random.default_rng(1).normal(size=(150, 2))
    model = MOSAIC(2, outliers="keep", kernel=kernel).fit(X)
    chooser, everyone = Chooser(model.selection_, 2), np.arange(150)
    S = np.asarray(chooser.cover.between(everyone, everyone), np.float64)
    first = model.selection_.data.points.first
    values = {frozenset(first[list(pair)].tolist()): S[:, pair].max(axis=1).mean() for pair in combinations(range(150), 2)}
    proofs = [proof_of(X, model, model.representative_indices_, seed) for seed in range(40)]
    assert proofs[0].value == pytest.approx(values[frozenset(model.representative_indices_.tolist())], abs=1e-4)
    assert proofs[0].n_rows == 150
    assert sum(proof.bound < max(values.values()) for proof in proofs) <= 4  # 2 of 40 are expected at most
    assert max(proof.bound for proof in proofs) < 1.5 * max(values.values())
    with_all = proof_of(X, model, model.representative_indices_)
    monkeypatch.setattr(all_rows, "RANDOM_ROWS", 1000)
    certain = proof_of(X, model, model.representative_indices_)
    assert max(values.values()) <= certain.bound < with_all.bound
    assert certain.gap < 0.01


def test_rows_that_were_not_compared_join_the_candidates(monkeypatch):
    """A quarter of the rows lies where the candidates are not."""
    X = np.random.default_rng(0).normal(size=(400, 2))
    model = MOSAIC(4, outliers="keep").fit(X)
    few = lambda self, k: np.flatnonzero(X[:, 0] < 0.7)  # noqa: E731
    monkeypatch.setattr(Chooser, "candidates", few)
    monkeypatch.setattr(all_rows, "RANDOM_ROWS", 1000)
    rows = np.flatnonzero(X[:, 0] < -0.5)[:4]
    proof, best = proof_of(X, model, rows), model.certificate_
    assert proof.bound >= best.value - 1e-4
    assert proof.bound < 1.02 * best.value


def test_certify_proves_it_for_all_rows_when_asked():
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    model = MOSAIC(5).fit(X)
    certificate = model.certify(all_rows=True)
    assert certificate.is_about_all
    assert certificate.confidence == 0.95
    assert str(certificate).startswith("With 95 % confidence within ")
    assert f"of the best 5 of all {certificate.n_rows:,} rows" in str(certificate)
    assert len(str(certificate).split()) <= 30
    assert "at most once in 20 draws" in certificate.details()
    assert certificate.value == pytest.approx(model.certificate_.value, rel=0.02)
    assert model.certificate_.gap < certificate.gap < 0.08
    random = model.certify(np.arange(5), all_rows=True)
    assert random.gap > 0.05 + certificate.gap
    small = MOSAIC(5).fit(X[:300])
    assert small.certify(all_rows=True) is small.certificate_


def test_weights_have_no_proof_for_all_rows():
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    model = MOSAIC(3).fit(X, sample_weight=np.random.default_rng(1).uniform(1, 2, 20_000))
    with pytest.raises(InvalidInputError, match="knows no weights"):
        model.certify(all_rows=True)
