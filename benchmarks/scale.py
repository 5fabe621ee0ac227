"""What large files cost and what passes give: time and memory of a fit, quality against the whole program, peers.

Parts: ``speed`` (files in memory and out of it, Dask with one and two workers), ``quality`` (the same program on all points),
``peers`` (selectors that take a million points). The paper's own comparison is among its experiments (docs/results.md).
Every run has a process of its own, so that its peak of memory is its own. All that a comparison has is run side by side.
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

FEATURES, BLOBS, PICKS = 16, 20, 20
#: Files with their rows and columns, and what is run on each; reading and the fit in memory come first.
FILES = (("rows.parquet", 5_000_000, 8), ("rows.npy", 10_000_000, 16))
RUNS = (
    "reading", "fit in memory", "fit of the file", "fit of the file, 1 GiB", "fit with Dask, 1 worker",
    "fit with Dask, 2 workers", "MiniBatchKMeans in memory", "MiniBatchKMeans of the file",
)  # fmt: skip
#: Data, points, candidates, and the rank that all points are solved with; None for as much as the gap needs.
QUALITY = (
    ("blobs", 4000, 500, None),
    ("swiss roll", 100_000, 300, None),
    ("blobs", 100_000, 500, 500),
    ("blobs", 1_000_000, 1000, 1000),
)
PEER_SIZES = (100_000, 1_000_000)
MEBIBYTE = 2**20


# --- Data


def blobs_to_file(path: Path, n: int, seed: int = 0) -> None:
    """Float32 points of 20 blobs, one in 100,000 of them far away, written in pieces."""
    import numpy as np

    rng = np.random.default_rng(seed)
    centres = rng.uniform(-4.0, 4.0, (BLOBS, FEATURES))
    file = np.lib.format.open_memmap(path, "w+", np.float32, (n, FEATURES))
    for start in range(0, n, 100_000):
        stop = min(start + 100_000, n)
        part = rng.standard_normal((stop - start, FEATURES)) + centres[np.arange(start, stop) % BLOBS]
        odd = max(1, (stop - start) // 100_000)
        v = rng.standard_normal((odd, FEATURES))
        part[rng.choice(len(part), odd, replace=False)] = 100.0 * v / np.linalg.norm(v, axis=1, keepdims=True)
        file[start:stop] = part
    file.flush()
    del file


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


def mixture(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """50 overlapping classes of different sizes and shapes in 16 dimensions, one point in 1000 an outlier far from all."""
    import numpy as np

    classes, rng = np.random.default_rng(0), np.random.default_rng(seed + 1)
    share = classes.dirichlet(np.full(50, 2.0))
    centres, spread = classes.normal(scale=1.2, size=(50, FEATURES)), classes.uniform(0.4, 1.2, (50, FEATURES))
    y = rng.choice(50, n, p=share)
    X = centres[y] + spread[y] * rng.standard_normal((n, FEATURES))
    odd = rng.choice(n, n // 1000, replace=False)
    v = rng.standard_normal((len(odd), FEATURES))
    X[odd] = rng.uniform(30.0, 60.0, (len(odd), 1)) * v / np.linalg.norm(v, axis=1, keepdims=True)
    is_outlier = np.zeros(n, dtype=bool)
    is_outlier[odd] = True
    return X.astype(np.float32), y, is_outlier


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


def run_quality(name: str, n: int, r: int, rank: int | None) -> dict[str, Any]:
    """The sketch, then the program on all points with the same kernel and strength."""
    import numpy as np

    from mosaic import datasets
    from mosaic.arrays.codes import row_codes
    from mosaic.choosing import draw_by_passes
    from mosaic.choosing.geometry import bandwidth
    from mosaic.kernels import RBF
    from mosaic.program.solve import encode
    from mosaic.rows import open_source
    from mosaic.sketch import Sample, run_sketch

    if name == "blobs":
        with tempfile.TemporaryDirectory() as folder:
            blobs_to_file(Path(folder) / "X.npy", n)
            X = np.load(Path(folder) / "X.npy")
    else:
        X = datasets.swiss_roll(n).astype(np.float32)
    started = time.process_time()
    source = open_source(X)

    def run(_: str, task: Any) -> Any:
        return source.run(task)

    drawn = draw_by_passes(run, n, 16_384)
    sample = Sample(drawn.rows, row_codes(drawn.rows), drawn.numbers, drawn.copies, drawn.weights)
    gamma = bandwidth(RBF(sample.rows))
    kernel = RBF(X, gamma)
    sketch = run_sketch(run, kernel.over, sample, n_initial=r, n_added=r // 10, n_rounds=1, alpha=100.0)
    ours = time.process_time() - started
    lam = sketch.problem.lam

    def explained(certificate: Any, norms: float) -> float:
        return 1.0 - 2.0 * (certificate.primal - norms) / lam / n

    found = {
        "name": name,
        "n": n,
        "r": r,
        "seconds": ours,
        "gap": sketch.certificate.gap,
        "kernel_error": sketch.certificate.kernel_error,
        "explained": explained(sketch.certificate, float(sketch.solution.row_norms.sum())),
        "support": int((sketch.solution.value > 0).sum()),
    }
    started = time.process_time()
    whole = encode(kernel, lam=lam, tol=1e-3, max_rank=rank)
    found |= {
        "whole_seconds": time.process_time() - started,
        "whole_gap": whole.certificate.gap,
        "whole_explained": explained(whole.certificate, float(whole.influence.sum())),
        "whole_support": len(whole.support),
        "whole_rank": whole.certificate.rank,
        "between": [
            max(sketch.certificate.dual, whole.certificate.dual),
            min(sketch.certificate.primal, whole.certificate.primal),
        ],
    }
    return found


def run_peer(method: str, n: int) -> dict[str, Any]:
    """Rows that a method picks, and what they are worth to one who knows their classes only."""
    import numpy as np
    from sklearn.neighbors import KNeighborsClassifier

    X, y, is_outlier = mixture(n)
    test, y_test, odd = mixture(20_000, seed=1)
    started = time.perf_counter()
    rows, remark = select(method, X)
    taken = time.perf_counter() - started
    clean = ~odd
    classifier = KNeighborsClassifier(1).fit(X[rows], y[rows])
    distances = classifier.kneighbors(test[clean])[0].ravel()
    return {
        "method": method,
        "n": n,
        "seconds": taken,
        "accuracy": float(classifier.score(test[clean], y_test[clean])),
        "outliers": int(is_outlier[rows].sum()),
        "distance": float(np.mean(distances)),
        "peak": peak(),
        "remark": remark,
    }


def select(method: str, X: Any) -> tuple[Any, str]:
    """100 rows by one of the methods."""
    import numpy as np

    k, rng = 100, np.random.default_rng(0)
    if method.startswith("MOSAIC"):
        from mosaic import MOSAIC

        model = MOSAIC(k, algorithm="sketch" if "sketch" in method else None).fit(X)
        return model.representative_indices_, f"gap {model.selection_.program_certificate.gap:.3f}"
    if method == "random":
        return rng.choice(len(X), k, replace=False), ""
    if method == "MiniBatchKMeans":
        from sklearn.cluster import MiniBatchKMeans
        from sklearn.metrics import pairwise_distances_argmin

        centres = MiniBatchKMeans(k, random_state=0, n_init=3).fit(X).cluster_centers_
        return np.unique(pairwise_distances_argmin(centres, X)), "nearest points to the centres"
    if method == "farthest points":
        rows, nearest = [0], np.full(len(X), np.inf, np.float32)
        for _ in range(k - 1):
            nearest = np.minimum(nearest, ((X - X[rows[-1]]) ** 2).sum(axis=1))
            rows.append(int(nearest.argmax()))
        return np.array(rows), ""
    if method == "geosketch":
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        from experiments.methods.geosketch import SELECTORS

        return SELECTORS[0].run(X, k, 0).indices, "our version of it"
    if method == "apricot":
        from apricot import FacilityLocationSelection

        some = rng.choice(len(X), 5000, replace=False)  # it keeps all similarities
        picks = FacilityLocationSelection(k, optimizer="two-stage", random_state=0).fit(X[some].astype(np.float64))
        return some[picks.ranking], "facility location, two-stage, of 5000 random points"
    raise ValueError(method)


METHODS = (
    "MOSAIC, sketch", "MOSAIC, low-rank", "MiniBatchKMeans", "geosketch", "farthest points", "apricot", "random",
)  # fmt: skip


# --- The report


def in_a_process(part: str, *arguments: Any) -> dict[str, Any]:
    """What one run gives, as JSON."""
    command = [sys.executable, __file__, "--one", part, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    if done.returncode:
        raise RuntimeError(f"{part} {arguments} failed:\n{done.stderr[-3000:]}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    print({k: v for k, v in result.items() if k != "rows"}, flush=True)
    return result


def speed(folder: Path, share: float) -> str:
    """A fit of a file against reading it once and a fit in memory, and against k-means."""
    lines = []
    for name, n, d in FILES:
        path, rows = folder / name, max(int(share * n), 100_000)
        rows_to_file(path, rows, d)
        found = [in_a_process("speed", str(path), what) for what in RUNS if name.endswith(".npy") or "Dask" not in what]
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


def quality(cases: tuple[tuple[str, int, int, int | None], ...]) -> str:
    """The sketch against the program on all points, same kernel, same strength."""
    lines = []
    for case in cases:
        run = in_a_process("quality", *case)
        lines.append(
            [f"{run['name']}, {run['n']:,}", str(run["r"]), seconds(run["seconds"]), f"{run['explained']:.4f}",
             f"{run['gap']:.4f}", seconds(run["whole_seconds"]), str(run["whole_rank"]), f"{run['whole_explained']:.4f}",
             f"{run['whole_gap']:.4f}", f"{run['explained'] / run['whole_explained']:.4f}",
             f"{run['seconds'] / run['whole_seconds']:.2f}"]
        )  # fmt: skip
    head = [
        "data",
        "r",
        "sketch, s",
        "explained",
        "gap",
        "all points, s",
        "explained",
        "gap",
        "explained, ratio",
        "time, ratio",
    ]
    return table(head, lines)


def peers(sizes: tuple[int, ...]) -> str:
    """100 picks of a mixture of 50 classes."""
    lines = []
    for n in sizes:
        for method in METHODS:
            run = in_a_process("peer", method, n)
            lines.append(
                [f"{n:,}", method, f"{run['accuracy']:.3f}", str(run["outliers"]), f"{run['distance']:.3f}",
                 seconds(run["seconds"]), f"{run['peak'] / MEBIBYTE:,.0f}", run["remark"]]
            )  # fmt: skip
    head = ["points", "method", "1-NN accuracy", "outliers picked", "mean distance", "seconds", "peak, MiB", ""]
    return table(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["speed", "quality", "peers"], action="append")
    parser.add_argument("--largest", type=int, default=10**9, help="leave out larger sizes")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one = {"speed": run_speed, "quality": run_quality, "peer": run_peer}[given.one[0]]
        print(json.dumps(one(*json.loads(given.one[1]))))
        return
    parts = given.part or ["speed", "quality", "peers"]
    packages = ["numpy", "scipy", "scikit-learn", "pyarrow", "dask", "distributed"]
    with tempfile.TemporaryDirectory() as folder:
        made = {
            "speed": lambda: speed(Path(folder), min(given.largest / 10_000_000, 1.0)),
            "quality": lambda: quality(tuple(case for case in QUALITY if case[1] <= given.largest)),
            "peers": lambda: peers(tuple(n for n in PEER_SIZES if n <= given.largest)),
        }
        for part in parts:
            write(f"scale_{part}.md", header(f"Scale: {part}", packages) + "\n" + made[part]())


if __name__ == "__main__":
    main()
