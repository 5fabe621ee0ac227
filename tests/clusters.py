"""Tables and arrays that every engine must answer as they are answered in memory."""

import warnings

import numpy as np
import pandas as pd
import pytest

from mosaic import MOSAIC, SelectionWarning

N = 9000
pa = pytest.importorskip("pyarrow")
#: Rows of the parts: one after the other empty, a single row, most of the rows, and some.
SKEWED = np.cumsum([0, 0, 1, 6000, 1, 0, 700, 2298])


def blobs(n=N):
    """Clusters, rows far from all, copies, and one row very often."""
    rng = np.random.default_rng(0)
    X = 6.0 * rng.normal(size=(8, 4))[rng.integers(0, 8, n)] + rng.normal(size=(n, 4))
    X[rng.choice(n, 25, replace=False)] *= 30.0
    X[n // 3 : n // 3 + 200] = X[:200]
    X[-n // 5 : -n // 9] = X[77]
    return X


def table(kind, n=N):
    """A table of numbers, a mixed one with gaps, or one of vectors."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(blobs(n), columns=list("abcd"))
    if kind == "vectors":
        return pd.DataFrame({"vector": list(frame.to_numpy())})
    if kind == "mixed":
        frame["city"] = rng.choice(["Rome", "Ulm", "Oslo", None], n, p=[0.5, 0.3, 0.19, 0.01])
        frame["day"] = (pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "D")).astype("datetime64[us]")
        frame["words"] = [f"order {i % 977} of {i % 13} parts" for i in range(n)]
        frame["place"] = list(rng.normal(size=(n, 3)))
        frame.loc[rng.choice(n, 50), "b"] = np.nan
    return frame


def folder_of(frame, folder, cuts=SKEWED):
    """A folder of Parquet files with these rows."""
    folder.mkdir()
    schema = pa.Schema.from_pandas(frame, preserve_index=False)  # also of parts without any value
    for i in range(len(cuts) - 1):
        frame.iloc[cuts[i] : cuts[i + 1]].to_parquet(folder / f"part-{i}.parquet", schema=schema, index=False)
    return folder


def same_fit(given, expected, **how):
    """The same picks, outliers and labels as of the frame or array in memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        ours, theirs = MOSAIC(10).fit(given, **how), MOSAIC(10).fit(expected, **how)
        for name in ("representative_indices_", "is_outlier_", "labels_"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    return ours
