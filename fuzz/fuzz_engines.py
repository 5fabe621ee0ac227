"""Fuzz rows that stay where they are: Ray, Dask, Zarr, HDF5, AnnData, memory maps. Each case is made from its number alone.

    OPENBLAS_NUM_THREADS=1 python fuzz/fuzz_engines.py --start 0 --cases 300 --seconds 480
    OPENBLAS_NUM_THREADS=1 python fuzz/fuzz_engines.py --case 12            # one case, with its traceback

The same rows, in blocks of random lengths, must have the representatives that they have as an array, or be refused as that is.
All else is a DEFECT, and the exit status is 1. Libraries that are not installed are left out.
"""

import os
import sys
import tempfile
import traceback
import warnings
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import cases
import numpy as np
import scipy.sparse as sp
from fuzz_api import KINDS, drawn

import mosaic

HOMES = [name for name in ("ray", "dask", "zarr", "h5py", "anndata", "numpy") if find_spec(name) is not None]


def cluster():
    import ray

    if not ray.is_initialized():
        quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
        ray.init(num_cpus=1, object_store_memory=150_000_000, **quiet)
        ray.data.DataContext.get_current().enable_progress_bars = False
    return ray


def stored(home, A, cuts, folder):
    """The rows in one of the homes, cut into blocks."""
    if home == "ray":
        return cluster().data.from_numpy(np.split(A, cuts))
    if home == "dask":
        import dask.array as da

        return da.concatenate([da.from_array(part, chunks=-1) for part in np.split(A, cuts)])
    if home == "zarr":
        import zarr

        array = zarr.create_array(str(folder / "x.zarr"), shape=A.shape, chunks=(max(1, len(A) // 3), A.shape[1]), dtype=A.dtype)
        array[:] = A
        return array
    if home == "h5py":
        import h5py

        file = h5py.File(folder / "x.h5", "w")
        return file.create_dataset("x", data=A)
    if home == "anndata":
        import anndata

        return anndata.AnnData(sp.csr_matrix(A) if cuts.size % 2 else A)
    np.save(folder / "x.npy", A)
    return np.load(folder / "x.npy", mmap_mode="r")


def answer(X, settings):
    """The representatives, or the words of a refusal."""
    try:
        return mosaic.MOSAIC(**settings).fit(X).representative_indices_.tolist()
    except mosaic.MosaicError as error:
        return type(error).__name__


def case(number, say=False):
    rng = np.random.default_rng([11, number])
    n, d = int(rng.integers(2, 400)), int(rng.integers(1, 12))
    kind, of = drawn(rng, KINDS)
    A = of(rng, rng.normal(size=(n, d)))
    A = A.astype(np.float32) if rng.random() < 0.2 and kind not in ("huge", "hugest", "tiny", "denormal") else A
    home = str(rng.choice(HOMES))
    cuts = np.sort(rng.integers(0, n + 1, int(rng.integers(0, 5))))  # some blocks are empty
    settings = {"n_representatives": int(rng.integers(1, min(n, 8) + 1))}
    if rng.random() < 0.3:
        settings["kernel"] = str(rng.choice(["laplacian", "cosine", "linear"]))
    label = {"case": number, "home": home, "data": kind, "shape": [n, d], "dtype": str(A.dtype), "cuts": cuts.tolist()} | settings
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            ours, theirs = answer(A, settings), answer(stored(home, A, cuts, Path(folder)), settings)
        except Exception as error:
            if say:
                traceback.print_exc()
            return label | {"outcome": "DEFECT", "detail": f"{home}: {type(error).__name__}: {str(error)[:200]}"}
    return label | {"outcome": "ok" if ours == theirs else "DEFECT", "detail": f"{home}: {theirs}, as an array {ours}"}


if __name__ == "__main__":
    print("in", ", ".join(HOMES))
    sys.exit(cases.run(case, cases.parser(__doc__, 300).parse_args()))
