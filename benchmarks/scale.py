"""What large files cost: time and memory of a fit in memory and out of it, and on Dask with one and two workers; with
``--cluster``, what two workers of Dask read, move and keep.

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


# --- A cluster of two workers

#: Folders of Parquet files: the number of files, rows of each, and columns.
FOLDERS = {"numbers": (50, 100_000, 16), "mixed": (20, 50_000, 32)}
#: What is done with them; answers come after a fit.
WORK = ("sum", "fit", "labels_")


def folder_of_files(folder: Path, kind: str, share: float) -> None:
    """Numbers around 50 centres; of mixed tables a quarter each are texts, dates, numbers with gaps and numbers, beside ids."""
    import numpy as np
    import pandas as pd

    n_files, n, d = FOLDERS[kind]
    n = max(int(share * n), 1000)
    rng = np.random.default_rng(0)
    centres = 4.0 * rng.normal(size=(50, d))
    folder.mkdir()
    for file in range(n_files):
        frame = pd.DataFrame(centres[rng.integers(0, 50, n)] + rng.normal(size=(n, d)), columns=[f"x{j}" for j in range(d)])
        if kind == "mixed":
            for j in range(d // 4):
                frame[f"x{4 * j}"] = rng.choice(["Rome", "Ulm", "Oslo", "Bern", "Paris"], n, p=[0.5, 0.3, 0.1, 0.0999, 0.0001])
                frame[f"x{4 * j + 1}"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "D")
                frame.loc[rng.random(n) < 0.01, f"x{4 * j + 2}"] = np.nan
            frame["id"] = [f"row {file}-{i}" for i in range(n)]
        frame.to_parquet(folder / f"part-{file:02}.parquet", index=False)


def part_of_folder(file: str) -> Any:
    """A file as a worker reads it, with a note that it did."""
    import pandas as pd

    Path(f"{file}-{time.time_ns()}.read").touch()
    return pd.read_parquet(file)


def run_cluster(folder: str, kind: str) -> list[dict[str, Any]]:
    """All of ``WORK``, one after the other: reads of the source, bytes between workers, peaks of memory, processor time."""
    import dask.dataframe as dd
    import numpy as np
    from distributed import Client, LocalCluster

    from mosaic import MOSAIC

    files = [str(file) for file in sorted(Path(folder).glob("*.parquet"))]
    found = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=None) as cluster,
        Client(cluster) as client,
    ):
        MOSAIC(3).fit(dd.from_map(small_part, [0, 1]))  # imports
        frame = dd.from_map(part_of_folder, files, meta=part_of_folder(files[0]).head(0))
        model = MOSAIC(PICKS)
        for what in WORK:
            for note in Path(folder).glob("*.read"):
                note.unlink()
            moved = sum(client.run(moved_by_worker).values())
            seconds = time.process_time() + sum(client.run(time.process_time).values())
            before, workers = reset(), client.run(reset)
            if what == "sum":
                frame.select_dtypes("number").sum().sum().compute()
            elif what == "fit":
                model.fit(frame)
            else:
                np.bincount(model.labels_ + 1)
            seconds = time.process_time() + sum(client.run(time.process_time).values()) - seconds
            peaks = client.run(peak)
            found.append({
                "what": what,
                "reads": len(list(Path(folder).glob("*.read"))) / len(files),
                "moved": sum(client.run(moved_by_worker).values()) - moved,
                "client": peak() - before,
                "worker": max(peaks[worker] - workers[worker] for worker in peaks),
                "seconds": seconds,
            })  # fmt: skip
    return found


def small_part(number: int) -> Any:
    import numpy as np
    import pandas as pd

    return pd.DataFrame(np.random.default_rng(number).normal(size=(300, 4)), columns=list("abcd"))


def moved_by_worker(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def cluster(folder: Path, share: float) -> str:
    lines = []
    for kind, (n_files, n, d) in FOLDERS.items():
        folder_of_files(folder / kind, kind, share)
        for run in in_a_process(str(folder / kind), kind, of="--one-cluster"):
            rows = f"{n_files} files × {max(int(share * n), 1000):,} × {d}, {kind}"
            megabytes = [f"{run[name] / 1e6:,.0f}" for name in ("moved", "client", "worker")]
            lines.append([rows, run["what"], f"{run['reads']:.1f}", *megabytes, seconds(run["seconds"])])
    head = ["rows", "what", "reads", "between workers, MB", "client grows by, MB", "a worker grows by, MB", "processor, s"]
    return table(head, lines)


# --- The report


def in_a_process(*arguments: Any, of: str = "--one") -> Any:
    """What one run gives, as JSON."""
    command = [sys.executable, __file__, of, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    if done.returncode:
        raise RuntimeError(f"{arguments} failed:\n{done.stderr[-3000:]}")
    result = json.loads(done.stdout.strip().splitlines()[-1])
    for run in [result] if isinstance(result, dict) else result:
        print({k: v for k, v in run.items() if k != "rows"}, flush=True)
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
    parser.add_argument("--cluster", action="store_true", help="the cluster of two workers only")
    parser.add_argument("--one-cluster", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one_cluster:
        print(json.dumps(run_cluster(*json.loads(given.one_cluster))))
        return
    if given.one:
        print(json.dumps(run_speed(*json.loads(given.one))))
        return
    packages = ["numpy", "scipy", "scikit-learn", "pyarrow", "dask", "distributed"]
    share = min(given.largest / 10_000_000, 1.0)
    with tempfile.TemporaryDirectory() as folder:
        if not given.cluster:
            write("scale_speed.md", header("Scale: speed", packages) + "\n" + speed(Path(folder), share))
        write("scale_cluster.md", header("Scale: a cluster", [*packages, "pandas"]) + "\n" + cluster(Path(folder), share))


if __name__ == "__main__":
    main()
