"""The proof for all rows from random ones."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom

from mosaic import MOSAIC, InvalidInputError, MemoryBudgetError
from mosaic.choosing import all_rows, certificate_for_all
from mosaic.choosing.all_rows import most_above
from mosaic.choosing.choose import Chooser


@pytest.fixture
def sampled(monkeypatch):
    """Fits decide with 1000 rows, so that few rows are many."""
    monkeypatch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", 1000)


def proof_of(model, rows, seed=0):
    """The certificate for all rows of a model, with targets of some seed."""
    data = model.selection_.data
    object.__setattr__(data, "seed", seed)
    return certificate_for_all(model.selection_, np.asarray(rows), model.certificate_)


def similarities(model, k):
    chooser, points = Chooser(model.selection_, k), model.selection_.data.points
    return np.asarray(chooser.cover.between(points.point_of, points.point_of), np.float64)


@pytest.mark.parametrize("rate", [0.2, 0.5])
@pytest.mark.parametrize(("low", "high"), [(-0.3, 0.3), (-0.1, 0.9), (-0.9, 0.1)])
def test_the_concentration_holds_as_often_as_it_says(rate, low, high):
    """Differences f − c that take two values, of 400 random rows: all counts of the larger value, with their probabilities."""
    m, counts = 400, np.arange(401)
    often = []
    for share in (0.02, 0.1, 0.3, 0.5, 0.8):
        g = -(counts * np.log1p(-rate * high) + (m - counts) * np.log1p(-rate * low)) / m
        most = np.array([most_above(mean, m, 10**9, rate) for mean in g])
        truth = share * high + (1 - share) * low
        often.append(binom.pmf(counts[most < truth], m, share).sum())
    assert max(often) <= 0.05
    assert max(often) > 0.001  # with any sign or factor wrong it is far larger, or none


def test_the_concentration_of_all_rows_is_certain():
    rng = np.random.default_rng(0)
    differences = rng.uniform(-0.9, 0.5, 100)
    truth, mean = differences.mean(), -np.log1p(-0.2 * differences).mean()
    assert truth <= most_above(mean, 100, 100, 0.2) < truth + 0.05


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_no_two_rows_cover_more_of_all_rows(kernel, monkeypatch):
    monkeypatch.setattr(all_rows, "RANDOM_ROWS", 75)
    X = np.random.default_rng(1).normal(size=(150, 2))
    model = MOSAIC(2, outliers="keep", kernel=kernel).fit(X)
    S = similarities(model, 2)
    values = {pair: S[:, pair].max(axis=1).mean() for pair in combinations(range(150), 2)}
    best, picks = max(values.values()), [3, 77]
    proofs = [proof_of(model, rows, seed) for seed in range(10) for rows in (model.representative_indices_, picks)]
    assert proofs[1].value == pytest.approx(values[3, 77], abs=1e-4)
    assert {(proof.n_rows, proof.n_targets, proof.confidence) for proof in proofs} == {(150, 75, 0.95)}
    assert sum(proof.bound < best for proof in proofs) <= 2
    assert np.median([proof.bound for proof in proofs]) < 1.2 * best


def test_a_bound_from_all_rows_is_certain():
    X = np.random.default_rng(1).normal(size=(150, 2))
    model = MOSAIC(2, outliers="keep").fit(X)
    S = similarities(model, 2)
    best = max(S[:, pair].max(axis=1).mean() for pair in combinations(range(150), 2))
    proof = proof_of(model, [3, 77])
    assert proof.confidence is None
    assert str(proof).startswith("Provably within ")
    assert best <= proof.bound < 1.01 * best


def test_little_is_lost_where_the_best_may_be_other_clusters(sampled, monkeypatch):
    """With 30 clusters and 10 picks, rows that other picks cover and ours do not differ by nearly 1."""
    monkeypatch.setattr(all_rows, "RANDOM_ROWS", 4096)
    rng = np.random.default_rng(0)
    centres = 10.0 * rng.normal(size=(30, 8))
    X = centres[rng.integers(30, size=6000)] + rng.normal(size=(6000, 8))
    model = MOSAIC(10).fit(X)
    least = model.certify(all_rows=True).gap
    monkeypatch.setattr(all_rows, "DIFFERENCES", (0.05,))
    assert least < 0.6 * model.certify(all_rows=True).gap


def test_rows_that_were_not_compared_join_the_candidates(monkeypatch):
    """A quarter of the rows lies where the candidates are not."""
    X = np.random.default_rng(0).normal(size=(400, 2))
    model = MOSAIC(4, outliers="keep").fit(X)
    best = model.certificate_.value
    monkeypatch.setattr(Chooser, "candidates", lambda self, k: np.flatnonzero(X[:, 0] < 0.7))
    proof = proof_of(model, np.flatnonzero(X[:, 0] < -0.5)[:4])
    assert best - 1e-4 <= proof.bound < 1.02 * best


def test_equal_rows_are_one_candidate():
    X = np.repeat(np.random.default_rng(0).normal(size=(200, 2)), 30, axis=0)
    model = MOSAIC(4, outliers="keep").fit(X)
    proof = proof_of(model, model.representative_indices_)
    assert (proof.n_rows, proof.n_candidates) == (6000, 200)
    assert proof.gap < 0.01


def test_certify_proves_it_for_all_rows_when_asked(sampled, monkeypatch):
    monkeypatch.setattr(all_rows, "RANDOM_ROWS", 2048)
    X = np.random.default_rng(0).normal(size=(4000, 3))
    model = MOSAIC(5).fit(X)
    certificate = model.certify(all_rows=True)
    assert certificate.is_about_all
    assert certificate.confidence == 0.95
    assert str(certificate).startswith("With 95 % confidence within ")
    assert f"of the best 5 of all {certificate.n_rows:,} rows. Random choices are " in str(certificate)
    assert len(str(certificate).split()) <= 30
    assert "at most once in 20 draws" in certificate.details()
    assert certificate.value == pytest.approx(model.certificate_.value, rel=0.02)
    assert certificate.random == pytest.approx(model.certificate_.random, rel=0.04)
    assert model.certificate_.gap < certificate.gap < 0.05
    random = model.certify(np.arange(5), all_rows=True)
    assert random.gap > 0.05
    assert random.bound == pytest.approx(certificate.bound, rel=0.02)
    assert "No better than random" in str(random)
    small = MOSAIC(5).fit(X[:300])
    assert small.certify(all_rows=True) is small.certificate_


def test_more_picks_than_distinct_rows_have_a_proof(monkeypatch):
    monkeypatch.setattr(all_rows, "RANDOM_ROWS", 500)
    X = np.repeat(np.random.default_rng(0).normal(size=(200, 2)), 100, axis=0)
    proof = MOSAIC(5).fit(X).certify(np.arange(0, 20_000, 50), all_rows=True)
    assert proof.k == 400
    assert proof.gap < 1e-4


def test_all_rows_are_compared_without_the_constraints_of_the_fit(sampled, monkeypatch):
    monkeypatch.setattr(all_rows, "RANDOM_ROWS", 500)
    X = np.random.default_rng(0).normal(size=(4000, 3))
    model = MOSAIC(5).fit(X, must_include=[0])
    assert model.certificate_.constrained
    proof = model.certify(all_rows=True)
    assert not proof.constrained
    assert "constraints" not in proof.details()


def test_rows_of_a_file_have_a_proof_too(sampled, tmp_path, monkeypatch):
    monkeypatch.setattr(all_rows, "RANDOM_ROWS", 2048)
    X = np.random.default_rng(0).normal(size=(4000, 3))
    np.save(tmp_path / "x.npy", X)
    model = MOSAIC(5, memory_budget="60MB").fit(np.load(tmp_path / "x.npy", mmap_mode="r"))
    assert model.certify(all_rows=True).gap < 0.05


def test_a_budget_that_cannot_hold_the_proof_is_said_to_be_too_small(sampled, monkeypatch):
    X = np.random.default_rng(0).normal(size=(4000, 3))
    model = MOSAIC(5, memory_budget="40MB").fit(X)
    monkeypatch.setattr("mosaic.choosing.budget.MOST_SIMILARITIES", 1_000_000)
    with pytest.raises(MemoryBudgetError, match="Certificates of 5 picks need about"):
        model.certify(all_rows=True)


@pytest.mark.parametrize(("n", "sample"), [(4000, 1000), (8000, 16_384)])
def test_weights_have_no_proof_for_all_rows(n, sample, monkeypatch):
    monkeypatch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", sample)
    X = np.random.default_rng(0).normal(size=(n, 2))
    model = MOSAIC(3).fit(X, sample_weight=np.random.default_rng(1).uniform(1, 2, n))
    with pytest.raises(InvalidInputError, match="knows no weights"):
        model.certify(all_rows=True)
    model = MOSAIC(3).fit(X, sample_weight=np.arange(n) > 10)
    with pytest.raises(InvalidInputError, match="knows no weights"):
        model.certify(all_rows=True)
