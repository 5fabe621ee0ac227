"""Published algorithms against an oracle, and running times from lines to a table, a figure and claims."""

import os

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.metrics.pairwise import rbf_kernel

from experiment_lines import line as line_of
from experiment_lines import row_of
from experiments.items import SCALABLE, jobs_of
from experiments.job import Job
from experiments.methods import all_selectors, all_solvers, ours
from experiments.methods import solvers as so
from experiments.methods._ds3_program import largest_strength
from experiments.methods._selecting import distances
from experiments.methods.smrs import row_norms
from experiments.paper import page, rules
from experiments.paper import running_time as rt
from experiments.run import run_job
from mosaic import MOSAIC, Paper, Sketch
from oracles import objective, paper_admm

pytestmark = pytest.mark.slow


def line(method, n, seconds=None, seed=0, dataset="msra_b/patches", **rest):
    """A line of this item; without seconds, cannot= says why."""
    numbers = rest if seconds is None else {"seconds": seconds, "n_picks": 20}
    return line_of("running_time", method, dataset, seed, k=20, n=n, task="time", **numbers)


@pytest.fixture
def crowded(rng):
    """Five groups of different sizes; some points are there twice."""
    X = np.repeat(rng.normal(size=(5, 3)), (12, 8, 5, 3, 2), axis=0) + 0.3 * rng.normal(size=(30, 3))
    return np.vstack([X, X[:3]])


# Algorithms


def test_timed_methods_are_those_of_the_tables():
    asked = {job.method for job in jobs_of("running_time")}
    assert asked == {method for methods in rt.TABLES.values() for method in methods}
    assert set(all_solvers()) < asked
    assert not set(all_solvers()) & set(all_selectors())


def test_the_papers_admm_ends_near_the_optimum_and_has_the_bandwidth_and_strength_of_its_mode(crowded):
    K, lam = so.similarities(crowded, 0)
    model = MOSAIC(3, algorithm=Paper(alpha=10.0)).fit(crowded)
    np.testing.assert_allclose(K, rbf_kernel(crowded, gamma=model.gamma_), rtol=1e-6)
    assert lam == pytest.approx(model.lam_, rel=1e-3)  # the library computes the critical strength from a factor
    R = so.encode(K, K, lam)
    best = paper_admm(K, K, lam)
    assert objective(K, R, lam) - objective(K, best, lam) <= 1e-3 * objective(K, np.zeros_like(K), lam)
    picks = so.paper_admm(crowded, 3, 0)
    influence = np.linalg.norm(best, axis=1)
    assert sorted(influence[picks.indices]) == pytest.approx(sorted(influence)[-3:], rel=1e-2)


def test_algorithm_3_with_all_candidates_is_algorithm_1(crowded):
    few, whole = (run(crowded, 5, 0) for run in (so.paper_admm_scalable, so.paper_admm))
    assert sorted(few.indices) == sorted(whole.indices)


def test_the_admm_of_smrs_has_the_large_rows_of_its_program(crowded):
    norms, _ = row_norms(crowded, so.SMRS_ALPHA)
    picks = so.smrs_admm(crowded, 3, 0)
    assert norms[picks.indices].min() >= 0.9 * sorted(norms)[-3]


def test_the_admm_of_ds3_is_near_the_optimum_of_its_linear_program(crowded, monkeypatch):
    """Minimise ρ Σ t_i + Σ d_ij z_ij with z_ij ≤ t_i and columns that sum to one."""
    seen = []
    honest = so.alternate
    monkeypatch.setattr(so, "alternate", lambda *a: seen.append(honest(*a)) or seen[-1])
    so.ds3_admm(crowded, 3, 0)
    (Z,) = seen
    D = distances(crowded)
    D /= D.max()
    n, rho = len(D), so.DS3_SHARE * largest_strength(D)[0]
    below = np.hstack([np.eye(n * n), -np.repeat(np.eye(n), n, axis=0)])
    sums = np.hstack([np.tile(np.eye(n), n), np.zeros((n, n))])
    best = linprog(np.r_[D.ravel(), np.full(n, rho)], below, np.zeros(n * n), sums, np.ones(n)).fun
    Z = np.maximum(Z, 0.0) / np.maximum(Z, 0.0).sum(axis=0)
    assert best <= rho * Z.max(axis=1).sum() + (D * Z).sum() <= 1.01 * best


def test_the_generic_solver_has_the_rows_of_the_optimum(crowded):
    pytest.importorskip("cvxpy")
    crowded = crowded[:-3]  # copies share a row in any way
    K, lam = so.similarities(crowded, 0)
    influence = np.linalg.norm(paper_admm(K, K, lam), axis=1)
    picks = so.generic(crowded, 3, 0)
    assert sorted(influence[picks.indices]) == pytest.approx(sorted(influence)[-3:], rel=1e-2)


# Table


def test_tables_have_medians_over_seeds_and_the_numbers_of_picks():
    lines = [line("SMRS", n, s, seed) for n in (10, 100, 200) for seed, s in enumerate((n**2, n**2, 9.0 * n**2))]
    lines += [line("DS3", n, cannot="took more than 60 s", seed=seed) for n in (100, 200) for seed in range(3)]
    lines += [line("paper's ADMM", 10, 1.0, dataset="mnist")]
    _, published, _, heading, mine = rt.parts(lines)
    assert (published, heading) == ("### As published: pictures", "### With this library's solver: patches")
    assert row_of(mine, "SMRS") == ["100", "10000", "40000", "20"]
    assert row_of(mine, "DS3") == ["—<sup>1</sup>", "—<sup>2</sup>", "—<sup>2</sup>", "—"]
    assert "<sup>1</sup> not run.  \n<sup>2</sup> took more than 60 s." in mine
    assert row_of(rt.parts([line("SMRS", 25, 0.0)])[2], "SMRS") == ["< 0.01", "20"]


def test_both_pages_say_on_what_machine_the_times_were_measured():
    timed = run_job(Job("running_time", "time", "random", "mnist", None, 0.0, 30, 5, 0))
    assert timed["cores"] == os.cpu_count()
    assert timed["load"] >= 0
    lines = [{**line("SMRS", 100, 1.0, seed), "cores": 2, "load": load} for seed, load in enumerate((3.1, 16.7))]
    lines.append({**line("SSM", 100, 1.0), "cores": 4, "load": 30.0})
    said = (
        "Running times are those of a machine with 2 cores and a load of 3 to 17; runs of each: 2. SSM ran on one with 4 cores."
    )
    assert said in rt.parts(lines)[0]
    assert said in page.summary(lines)
    assert "Running times are those" not in page.summary([])


def test_the_figure_does_not_depend_on_the_order_of_the_lines(tmp_path):
    lines = [line(m, n, n / 100 + i) for i, m in enumerate(("SMRS", "SSM", SCALABLE, rt.ADMM)) for n in (100, 200)]
    one, two = (rt.figure(some, tmp_path / name) for some, name in ((lines, "one.png"), (lines[::-1], "two.png")))
    assert one.read_bytes() == two.read_bytes()


# Claims


def of(lines, hero="MOSAIC (paper)", rivals=("SMRS",)):
    return rules.slower(lines, {"": (hero, rivals)})


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
    quick = of([line("MOSAIC (paper)", 200, 0.01), *stopped], rivals=["DS3"])
    assert quick.words == "DS3 takes more than 1000 times as long (n = 200)"


def test_all_others_must_be_slower_for_each_kind_of_points_and_a_fast_surrogate_leaves_the_claim_open():
    lines = [line(SCALABLE, 100, 1.0), line("SMRS", 100, 9.0), line("SSM", 100, 0.5)]
    pairs = {"few": (SCALABLE, rt.RIVALS), "all": (rt.HERO, rt.RIVALS)}
    assert rules.slower(lines, pairs).status == "reproduced"
    more = [*lines, line("M-kmeans", 100, 0.5)]
    assert rules.slower(more, pairs).status == "cannot be told"
    more = [*lines, line(SCALABLE, 100, 1.0, dataset="mnist"), line("DS3", 100, 0.5, dataset="mnist"), line(rt.HERO, 100, 0.01)]
    assert rules.slower(more, pairs).status == "in 2 of 3 readings"
    assert rules.as_fast(lines, {"few": (SCALABLE, ("SSM",))}).status == "reproduced"
    assert rules.as_fast(more, {"all": (rt.HERO, ("SSM",))}).status == "not reproduced"


# The scalable variant


def test_scalable_variant_asks_for_few_candidates_picks_rows_and_knows_the_errors_of_all(monkeypatch, rng):
    asked = []

    class Watched(MOSAIC):
        def fit(self, X, y=None):
            asked.append(self.algorithm)
            return super().fit(X, y)

    monkeypatch.setattr(ours, "MOSAIC", Watched)
    X = rng.normal(size=(300, 2))
    X[1] = X[0]
    errors = []
    for name in (SCALABLE, "MOSAIC (paper, not refined)"):
        picks = all_selectors()[name].run(X, 5, 0, alpha=2.0, gamma=20.0)
        assert 1 <= len(picks.indices) == len(set(picks.indices.tolist())) <= 5
        errors.append(picks.errors())
        assert errors[-1].shape == (300,)
        assert errors[-1][0] == errors[-1][1]
        assert 0 <= errors[-1].min() <= errors[-1].max() <= 1 + 1e-9
    assert asked == [Paper(alpha=2.0, sketch=Sketch(*numbers)) for numbers in ((100, 10, 3), (120, 1, 1))]
