"""Libraries that users come from, used as they use them: AnnData and scanpy.

Dask, Ray and Spark have files of their own (``test_engine_*.py``). Nothing is fetched from the network.
"""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from cli_runs import run
from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default:::(anndata|scanpy|numba|umap|legacy_api_wrap)")]


def library(name):
    return pytest.importorskip(name, reason=f"{name} is not installed: pip install 'mosaic-select[others]'")


# ------------------------------------------------------------------------------------------------ AnnData and scanpy


@pytest.fixture(scope="module")
def counts():
    """300 cells of three kinds × 60 genes as sparse counts, with names, kinds and depths."""
    anndata = library("anndata")
    rng = np.random.default_rng(0)
    kinds = np.repeat(["B", "T", "NK"], [150, 100, 50])
    rates = {kind: rng.gamma(0.5, 2.0, 60) for kind in ("B", "T", "NK")}
    X = sp.csr_matrix(rng.poisson([rates[kind] for kind in kinds]).astype(np.float32))
    obs = pd.DataFrame(
        {"kind": pd.Categorical(kinds), "depth": np.asarray(X.sum(axis=1)).ravel()}, index=[f"cell-{i}" for i in range(300)]
    )
    return anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=[f"gene{j}" for j in range(60)]))


@pytest.fixture
def stored(counts, tmp_path):
    counts.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


def test_cells_in_memory_in_a_file_and_backed_have_the_same_representatives_and_names(counts, stored):
    backed = library("anndata").read_h5ad(stored, backed="r")
    fits = {"memory": counts, "file": stored, "backed": backed, "matrix": counts.X, "frame": counts.to_df()}
    models = {name: MOSAIC(6).fit(given) for name, given in fits.items()}
    for model in models.values():
        np.testing.assert_array_equal(model.representative_indices_, models["matrix"].representative_indices_)
        np.testing.assert_array_equal(model.predict(counts), models["matrix"].predict(counts.X))
    for name in ("memory", "file", "backed", "frame"):
        assert models[name].row_names_[7] == "cell-7"
        assert models[name].feature_names_in_.tolist() == counts.var_names.tolist()
        assert str(models[name].explain("cell-7")).startswith("cell-7 (row 7)")


def test_columns_of_obs_are_groups_and_names_of_cells_are_rows(counts):
    model = MOSAIC(6).fit(counts, groups="kind", quotas="equal", must_include=["cell-7"], exclude=["cell-9"])
    assert counts.obs["kind"].iloc[model.representative_indices_].value_counts().to_dict() == {"B": 2, "T": 2, "NK": 2}
    assert 7 in model.representative_indices_
    with pytest.raises(InvalidInputError, match=r"names the column 'knd', which X does not have\. Did you mean 'kind'"):
        MOSAIC(6).fit(counts, groups="knd")


def test_outliers_among_cells(counts, stored):
    anndata = library("anndata")
    plain = MOSAICOutlierDetector().fit(counts.X)
    for given in (counts, anndata.read_h5ad(stored, backed="r")):
        found = MOSAICOutlierDetector().fit(given)
        np.testing.assert_array_equal(found.is_outlier_, plain.is_outlier_)
        np.testing.assert_array_equal(found.predict(counts[:20]), plain.predict(counts.X[:20]))
        np.testing.assert_array_equal(MOSAIC(6).fit(given).is_outlier_, MOSAIC(6).fit(counts.X).is_outlier_)


def test_other_genes_than_in_fit_are_refused(counts):
    for model in (MOSAIC(6).fit(counts), MOSAICOutlierDetector().fit(counts)):
        with pytest.raises(InvalidInputError, match="those of fit were"):
            model.predict(counts[:, ::-1])


def test_the_command_reads_cells(counts, stored, capsys, tmp_path):
    table = tmp_path / "picks.csv"
    ran = run(capsys, "select", stored, "-k", 6, "-o", table, "--group", "kind", "--quotas", "equal", "-q")
    assert (ran.code, ran.err) == (0, "")
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["obs_names"] for row in rows] == [f"cell-{row['mosaic_row']}" for row in rows]
    assert sorted(row["kind"] for row in rows) == sorted(["B", "T", "NK"] * 2)


@pytest.fixture(scope="module")
def processed(counts):
    """The usual way: counts in ten thousand, logarithms, principal components."""
    sc = library("scanpy")
    cells = counts.copy()
    cells.layers["counts"] = cells.X.copy()
    sc.pp.normalize_total(cells, target_sum=1e4)
    sc.pp.log1p(cells)
    sc.pp.pca(cells, n_comps=10)
    return cells


def test_after_the_usual_steps_of_scanpy_every_kind_is_represented(processed, tmp_path, capsys):
    model = MOSAIC(9).fit(processed.obsm["X_pca"])
    chosen = processed[model.representative_indices_]
    assert set(chosen.obs["kind"]) == {"B", "T", "NK"}
    processed.write_h5ad(tmp_path / "cells.h5ad")
    ran = run(capsys, "select", tmp_path / "cells.h5ad", "-k", 9, "--array", "obsm/X_pca", "-q")
    assert ran.code == 0
    assert [row["obs_names"] for row in csv.DictReader(ran.out.splitlines())] == chosen.obs_names.tolist()
