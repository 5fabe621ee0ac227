"""What large files cost: time and memory of a fit in memory and out of it, and on Dask with one and two workers.

Every run has a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

from report import header, seconds, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PICKS = 20
#: Files with their rows and columns, and what is run on each; reading and the fit in memory come first.
FILES = (("rows.parquet", 5_000_000, 8), ("rows.npy", 10_000_000, 16))
RUNS = (
    "reading", "fit in memory", "fit of the file", "fit of the file, 1 GiB", "fit with Dask, 1 worker",
    "fit with Dask, 2 workers", "MiniBatchKMeans in memory", "MiniBatchKMeans of the file",
)  # fmt: skip
MEBIBYTE = 2**20


# --- Data


def rows_to_file(path: Path, n: int, d: int) -> None:
    """Points around 50 centres, float32 in .npy and float64 in Parquet, written in pieces."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    centres = 4.0 * rng.normal(size=(50, d))
    names = [f"x{j}" for j in range(d)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    table_ = pq.ParquetWriter(path, schema) if path.suffix == ".parquet" else None
    array = np.lib.format.open_memmap(path, "w+", np.float32, (n, d)) if table_ is None else None
    for start in range(0, n, 200_000):
        size = min(200_000, n - start)
        part = centres[rng.integers(0, 50, size)] + rng.normal(size=(size, d))
        if table_ is not None:
            table_.write_table(pa.table(dict(zip(names, part.T, strict=True)), schema))
        if array is not None:
            array[start : start + size] = part
    if table_ is not None:
        table_.close()


# --- In a process of its own


def peak() -> float:
    """Largest resident memory of this process so far, in bytes; what getrusage tells begins with that of the parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024.0 * int(line.split()[1])
    raise RuntimeError("the kernel does not tell the peak of memory")


def reset() -> float:
    """Resident memory now, from which on the peak is counted."""
    Path("/proc/self/clear_refs").write_text("5")
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return 1024.0 * int(line.split()[1])
    raise RuntimeError("the kernel does not tell the resident memory")


def read(path: str) -> Any:
    """All rows of a file in memory."""
    import numpy as np
    import pyarrow.parquet as pq

    if path.endswith(".npy"):
        return np.load(path)
    return np.column_stack([column.to_numpy() for column in pq.read_table(path).columns])


def pieces(path: str) -> Any:
    """The rows of a file in blocks of 8192."""
    import numpy as np
    import pyarrow.parquet as pq

    if path.endswith(".npy"):
        X = np.load(path, mmap_mode="r")
        yield from (X[a : a + 8192] for a in range(0, len(X), 8192))
    else:
        for batch in pq.ParquetFile(path).iter_batches(8192):
            yield np.column_stack([column.to_numpy() for column in batch.columns])


def run_speed(path: str, what: str) -> dict[str, Any]:
    """One of ``RUNS``: seconds of the processor and of the clock, and how far memory rises."""
    import numpy as np
    from sklearn.cluster import MiniBatchKMeans

    from mosaic import MOSAIC

    MOSAIC(3).fit(np.random.default_rng(0).normal(size=(300, 4)))  # imports
    X: Any = read(path) if "in memory" in what else None
    cluster = client = None
    if "Dask" in what:
        import dask.array as da
        from distributed import Client, LocalCluster

        workers = int(what.split()[-2])
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=None)
        client = Client(cluster)
        n, d = np.load(path, mmap_mode="r").shape
        chunks = (tuple(min(200_000, n - a) for a in range(0, n, 200_000)), (d,))
        meta = np.zeros((0, d), np.float32)
        X = da.map_blocks(_piece, path=path, chunks=chunks, dtype=np.float32, meta=meta)
    before, started, began = reset(), time.process_time(), time.perf_counter()
    rows: list[int] = []
    if what == "reading":
        read(path)
    elif what.startswith("MiniBatchKMeans"):
        # Its own fit draws every batch from all rows, which takes longer than the batch.
        means = MiniBatchKMeans(PICKS, n_init=1, random_state=0)
        blocks = pieces(path) if X is None else (X[a : a + 8192] for a in range(0, len(X), 8192))
        for block in blocks:
            means.partial_fit(block)
    else:
        model = MOSAIC(PICKS, memory_budget="1GiB" if "1 GiB" in what else None)
        rows = model.fit(path if X is None else X).representative_indices_.tolist()
    found = {
        "what": what,
        "seconds": time.process_time() - started,
        "clock": time.perf_counter() - began,
        "rise": peak() - before,
        "rows": rows,
    }
    if client is not None and cluster is not None:
        client.close()
        cluster.close()
    return found


def _piece(path: str, block_info: Any = None) -> Any:
    """Rows of a chunk, read by the worker that needs them."""
    import numpy as np

    (start, stop), _ = block_info[None]["array-location"]
    return np.array(np.load(path, mmap_mode="r")[start:stop])


# --- The report


def in_a_process(*arguments: Any) -> dict[str, Any]:
    """What one run gives, as JSON."""
    command = [sys.executable, __file__, "--one", json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    if done.returncode:
        raise RuntimeError(f"{arguments} failed:\n{done.stderr[-3000:]}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    print({k: v for k, v in result.items() if k != "rows"}, flush=True)
    return result


def speed(folder: Path, share: float) -> str:
    """A fit of a file against reading it once and a fit in memory, and against k-means."""
    lines = []
    for name, n, d in FILES:
        path, rows = folder / name, max(int(share * n), 100_000)
        rows_to_file(path, rows, d)
        found = [in_a_process(str(path), what) for what in RUNS if name.endswith(".npy") or "Dask" not in what]
        picks = [run["rows"] for run in found if run["rows"]]
        floor = sum(run["seconds"] for run in found[:2])
        for run in found:
            same = "" if not run["rows"] else "yes" if run["rows"] == picks[0] else "NO"
            times = f"{run['seconds'] / floor:.2f}" if "file" in run["what"] else ""
            lines.append(
                [f"{rows:,} × {d} {path.suffix}", run["what"], seconds(run["seconds"]), seconds(run["clock"]), times,
                 f"{run['rise'] / MEBIBYTE:,.0f}", same]
            )  # fmt: skip
        path.unlink()
    head = ["file", "what", "processor, s", "clock, s", "times reading + fit in memory", "memory, MiB", "same picks"]
    return table(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=10**9, help="leave out larger sizes")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(run_speed(*json.loads(given.one))))
        return
    packages = ["numpy", "scipy", "scikit-learn", "pyarrow", "dask", "distributed"]
    with tempfile.TemporaryDirectory() as folder:
        made = speed(Path(folder), min(given.largest / 10_000_000, 1.0))
    write("scale_speed.md", header("Scale: speed", packages) + "\n" + made)


if __name__ == "__main__":
    main()
