"""Solvers of the paper's program against an oracle, and running times from lines to a table, a figure and claims."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from experiment_lines import TIER, row_of
from experiment_lines import line as line_of
from experiments.items import SCALABLE
from experiments.methods import CannotRun, all_selectors, all_solvers, ours
from experiments.methods import solvers as so
from experiments.paper import rules
from experiments.paper import running_time as rt
from mosaic import MOSAIC, Paper, Sketch
from oracles import lasso_solution, objective

pytestmark = pytest.mark.slow


def line(method, n, seconds=None, seed=0, **rest):
    """A line of this item; without seconds, cannot= says why."""
    numbers = rest if seconds is None else {"seconds": seconds, "n_picks": 20}
    return line_of("running_time", method, "msra_b/patches", seed, k=20, n=n, task="time", **numbers)


@pytest.fixture
def crowded(rng):
    """Five groups of different sizes; some points are there twice."""
    X = np.repeat(rng.normal(size=(5, 3)), (12, 8, 5, 3, 2), axis=0) + 0.3 * rng.normal(size=(30, 3))
    return np.vstack([X, X[:3]])


def solution_of(X):
    """K, lam and R by scikit-learn, at the settings of the paper's mode."""
    model = MOSAIC(3, algorithm=Paper(alpha=10.0)).fit(X)
    K = rbf_kernel(X, gamma=model.gamma_)
    return K, model.lam_, lasso_solution(K, model.lam_)


# Solvers


def test_solvers_are_those_that_the_page_knows_and_answers_above_the_gap_are_none():
    assert set(all_solvers()) == set(rt.SOLVERS)
    assert not set(all_solvers()) & set(all_selectors())
    with pytest.raises(CannotRun, match=r"reached a gap of 2\.0e-03, not 0\.001"):
        so.largest_rows(np.ones(4), 2, 2e-3)
    with pytest.raises(CannotRun):
        so.largest_rows(np.ones(4), 2, float("nan"))


def test_program_is_the_one_of_the_papers_mode_copies_included(crowded):
    K, lam, R = solution_of(crowded)
    program = so.program_of(crowded)
    assert so.gamma_of(crowded) == pytest.approx(MOSAIC(3, algorithm="paper").fit(crowded).gamma_, rel=1e-12)
    assert program.lam == pytest.approx(lam, rel=1e-3)  # the library computes the critical strength from a factor
    assert program.bounds(R).primal == pytest.approx(objective(K, R, program.lam), rel=1e-9)


@pytest.mark.parametrize("name", list(rt.SOLVERS))
def test_every_solver_is_within_the_gap_of_the_optimum(monkeypatch, crowded, name):
    """Row norms η say all: R(η) = (lam K + 1/η)⁻¹ lam K on the rows that are not zero is no worse than the solver's R."""
    if name == "CVX reference":
        pytest.importorskip("cvxpy")
    seen = []
    honest = so.largest_rows
    monkeypatch.setattr(so, "largest_rows", lambda norms, k, gap: seen.append((norms, gap)) or honest(norms, k, gap))
    picks = all_solvers()[name].run(crowded, 3, 0)
    ((eta, gap),) = seen
    K, lam, best = solution_of(crowded)
    used = np.flatnonzero(eta > 1e-9)
    R = np.zeros_like(K)
    R[used] = np.linalg.solve(lam * K[np.ix_(used, used)] + np.diag(1.0 / eta[used]), lam * K[used])
    distance = objective(K, R, lam) - objective(K, best, lam)
    assert distance <= so.TOL * objective(K, np.zeros_like(K), lam)
    assert gap <= so.TOL
    assert sorted(eta[picks.indices]) == sorted(eta)[-3:]


# Table


def test_table_has_medians_over_seeds_and_the_exponent_of_the_last_three_sizes():
    lines = [line("SMRS", n, s, seed) for n in (10, 100, 200, 400) for seed, s in enumerate((n**2, n**2, 9.0 * n**2))]
    lines[0] = line("SMRS", 10, 1e6)
    lines += [line("DS3", n, cannot="took more than 60 s", seed=seed) for n in (200, 400) for seed in range(3)]
    table = rt.parts(lines)[1]
    assert row_of(table, "SMRS") == ["900", "10000", "40000", "160000", "2.0"]
    assert row_of(table, "DS3") == ["—<sup>1</sup>", "—<sup>1</sup>", "—<sup>2</sup>", "—<sup>2</sup>", "—"]
    assert "<sup>1</sup> not run.  \n<sup>2</sup> took more than 60 s." in table


def test_scalable_variant_is_in_a_table_of_its_own_and_changes_no_other(tmp_path):
    lines = [line(m, n, n / 100 + i) for i, m in enumerate((*TIER, "random")) for n in (100, 200, 400) if m != SCALABLE]
    more = [*lines, *(line(SCALABLE, n, 1e-3) for n in (100, 400, 800)), line("paper's ADMM", 800, cannot="took more than 60 s")]
    assert rt.figure(lines, tmp_path / "a" / "one.png").read_bytes() == rt.figure(more[-2::-1], tmp_path / "two.png").read_bytes()
    assert rt.scalable_table(lines) == ""
    own = rt.scalable_table(more)
    assert row_of(own, SCALABLE) == ["0.0010", "—<sup>1</sup>", "0.0010", "0.0010", "0.0"]
    assert row_of(own, "MOSAIC (paper) / scalable") == ["2000", "—", "5000", "—", "—"]
    assert row_of(own, "paper's ADMM / scalable")[3] == "> 60000"


# Claims


def of(lines, hero="MOSAIC (paper)", rivals=("SMRS",)):
    return rules.slower(lines, hero, rivals)


def test_ratio_of_three_is_much_slower_and_less_is_not():
    hero = [line("MOSAIC (paper)", 100, 1.0), line("MOSAIC (paper)", 200, 2.0)]
    assert of([*hero, line("SMRS", 200, 6.0)]).status == "reproduced"
    assert of([*hero, line("SMRS", 200, 5.9)]).status == "not reproduced"
    # The largest common size decides.
    assert of([*hero, line("SMRS", 100, 99.0), line("SMRS", 200, 5.9)]).status == "not reproduced"
    assert of([*hero, line("SMRS", 100, 99.0), line("SMRS", 400, 5.9)]).status == "reproduced"


def test_stopped_rival_is_slower_if_its_limit_says_so_and_open_if_not():
    stopped = [line("DS3", 200, cannot="took more than 60 s")]
    stopped += [line("DS3", 400, cannot="not tried: took more than 60 s with n = 200")]
    fast = [line("MOSAIC (paper)", 200, 2.0), line("MOSAIC (paper)", 400, 50.0)]
    found = of([*fast, *stopped], rivals=["DS3"])
    assert (found.status, found.words) == ("reproduced", "DS3 takes > 30 times as long (n = 200)")
    assert of([line("MOSAIC (paper)", 200, 30.0), *stopped], rivals=["DS3"]).status == "cannot be told"


def test_all_others_must_be_slower_and_a_fast_surrogate_leaves_the_claim_open():
    lines = [line(SCALABLE, 100, 1.0), line("SMRS", 100, 9.0), line("SSM", 100, 0.1)]
    assert rules.all_slower(lines, [SCALABLE, rt.ADMM], rt.RIVALS).status == "reproduced"
    more = [*lines, line("M-kmeans", 100, 0.5)]
    assert rules.all_slower(more, [SCALABLE], rt.RIVALS).status == "cannot be told"
    more += [line("DS3", 100, 0.5), line(rt.ADMM, 100, 0.01)]
    assert rules.all_slower(more, [SCALABLE, rt.ADMM], rt.RIVALS).status == "in 1 of 2 readings"


# The scalable variant


def test_scalable_variant_asks_for_the_stated_candidates_and_picks_rows(monkeypatch, rng):
    asked = []

    class Watched(MOSAIC):
        def fit(self, X, y=None):
            asked.append(self.algorithm)
            return super().fit(X, y)

    monkeypatch.setattr(ours, "MOSAIC", Watched)
    for n in (60, 300, 2500):
        picks = all_selectors()[SCALABLE].run(rng.normal(size=(n, 2)), 5, 0, alpha=2.0, gamma=20.0)
        assert 1 <= len(picks.indices) == len(set(picks.indices.tolist())) <= 5
        assert picks.indices.max() < n
    assert asked == [Paper(alpha=2.0, sketch=Sketch(*numbers)) for numbers in ((60, 6, 3), (200, 20, 3), (250, 25, 3))]
