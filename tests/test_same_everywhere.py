"""The same rows, picks, flags and reasons, wherever the rows are and in whatever pieces they are read."""

import numpy as np
import pandas as pd
import pytest

from mosaic import MOSAIC
from sources import open_source

N = 9_000
rng = np.random.default_rng(0)
#: Blobs, rows far from all, copies of some rows, and one row very often.
X = 6.0 * rng.normal(size=(8, 4))[rng.integers(0, 8, N)] + rng.normal(size=(N, 4))
X[rng.choice(N, 25, replace=False)] *= 30.0
X[3000:3200] = X[:200]
X[7_000:8_000] = X[77]
#: Pieces that rows are read in.
PIECES = (700, 8192)


@pytest.fixture(scope="module", autouse=True)
def few_rows_decide():
    """A smaller sample, so that fewer rows are many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", 3000)
        yield


@pytest.fixture(scope="module")
def expected():
    found = facts(MOSAIC(10).fit(X))
    assert len(found["rows in memory"]) < N
    assert len(found["outliers"]) >= 20
    return found


def facts(model):
    """All that a fit finds, and what it says of every kind of row."""
    picks = model.representative_indices_
    odd = np.flatnonzero(model.is_outlier_)
    told = [str(model.explain(int(row))) for row in (*picks[:3], *odd[:3], 5, N - 1)]
    return {
        "rows in memory": model.selection_.data.row_numbers.tolist(),
        "picks": picks.tolist(),
        "gains": model.selection_.gains.tolist(),
        "outliers": odd.tolist(),
        "labels": model.labels_.tolist(),
        "counts": model.effective_count_.tolist(),
        "decisions": list(model.explain()),
        "reasons": told,
    }


@pytest.mark.usefixtures("by_passes")
def test_arrays_by_passes_and_memory_maps_and_a_budget_that_does_not_hold_the_rows(expected, tmp_path):
    np.save(tmp_path / "X.npy", X)
    assert facts(MOSAIC(10).fit(open_source(X))) == expected
    assert facts(MOSAIC(10).fit(np.load(tmp_path / "X.npy", mmap_mode="r"))) == expected
    assert facts(MOSAIC(10).fit(tmp_path / "X.npy")) == expected
    assert facts(MOSAIC(10, memory_budget=1.5e8).fit(X)) == expected


@pytest.mark.usefixtures("by_passes")
@pytest.mark.parametrize("piece", PIECES)
def test_files_of_tables(expected, tmp_path, piece):
    """Columns without names have no reasons, so these are compared with those of a frame."""
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=list("abcd"))
    in_memory = facts(MOSAIC(10).fit(frame))
    assert {**in_memory, "reasons": None} == {**expected, "reasons": None}
    frame.to_parquet(tmp_path / "X.parquet", row_group_size=piece)
    assert facts(MOSAIC(10).fit(tmp_path / "X.parquet")) == in_memory
    if piece == PIECES[0]:
        frame.to_csv(tmp_path / "X.csv", index=False)
        assert facts(MOSAIC(10).fit(tmp_path / "X.csv")) == in_memory
        assert facts(MOSAIC(10).fit(tmp_path / "X.csv")) == in_memory


@pytest.mark.parametrize("piece", PIECES)
def test_stored_arrays_and_dask_in_threads(expected, tmp_path, monkeypatch, piece):
    monkeypatch.setattr("mosaic.choosing.plan.leaves_room", lambda *sizes: False)
    zarr, da = pytest.importorskip("zarr"), pytest.importorskip("dask.array")
    array = zarr.create_array(str(tmp_path / "X.zarr"), shape=X.shape, chunks=(piece, 2), dtype=X.dtype)
    array[:] = X
    assert facts(MOSAIC(10).fit(tmp_path / "X.zarr")) == expected
    assert facts(MOSAIC(10).fit(da.from_array(X, chunks=(piece, 2)))) == expected
    ours, theirs = MOSAIC(10).fit(X[:2500]), MOSAIC(10).fit(da.from_array(X[:2500], chunks=(piece, 2)))  # fewer than the sample
    np.testing.assert_array_equal(theirs.representative_indices_, ours.representative_indices_)
    np.testing.assert_array_equal(theirs.labels_, ours.labels_)
    assert theirs.selection_.data.row_numbers is None


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_dask_on_a_cluster(expected, workers):
    da, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            workers, threads_per_worker=1, processes=False, dashboard_address=":0", memory_limit=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        for piece in PIECES:
            assert facts(MOSAIC(10).fit(da.from_array(X, chunks=(piece, -1)))) == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")
@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_ray(expected, piece):
    ray = pytest.importorskip("ray")
    if not ray.is_initialized():
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=150_000_000)
    data = ray.data.from_numpy([X[a : a + piece] for a in range(0, N, piece)])
    assert facts(MOSAIC(10).fit(data)) == expected


@pytest.mark.usefixtures("by_passes")
def test_constraints(tmp_path):
    demanded = {
        "groups": np.where(np.arange(N) % 500 == 3, "rare", "usual"),
        "quotas": {"rare": 12, "usual": 6},  # more rare ones than there would be in a sample without regard to groups
        "must_include": [11, 3103],
        "exclude": np.arange(0, N, 7),
    }
    np.save(tmp_path / "X.npy", X)
    ours = MOSAIC(18).fit(X, **demanded)
    theirs = MOSAIC(18).fit(tmp_path / "X.npy", **demanded)
    assert facts(theirs) == facts(ours)
    assert {11, 3103} <= set(ours.representative_indices_.tolist())
    assert (np.array(demanded["groups"])[ours.representative_indices_] == "rare").sum() == 12
    assert not (np.setdiff1d(ours.representative_indices_, [11, 3103]) % 7 == 0).any()
