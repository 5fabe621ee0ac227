"""What passes cost and what they give: rows a second against the floor, memory, quality against the whole program, peers.

Parts: ``speed`` (memory, memory map, Dask with one and two workers), ``quality`` (the same program solved on all points),
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

FEATURES, BLOBS, PICKS = 16, 20, 50
SPEED_SIZES = (100_000, 1_000_000, 10_000_000)
SOURCES = ("memory", "memory map", "Dask, 1 worker", "Dask, 2 workers")
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


def floor_rates(r: int) -> dict[str, float]:
    """Rows a second of the kernel columns, of the Gram product and of two triangular ones, on data in the cache."""
    import numpy as np
    from scipy.linalg.blas import dsyrk, dtrmm
    from scipy.spatial.distance import cdist

    rng = np.random.default_rng(0)
    m = 1024
    A, Z = rng.random((m, FEATURES)), rng.random((r, FEATURES))
    K, G = rng.random((m, r)), np.zeros((r, r), order="F")
    L = np.asfortranarray(np.tril(rng.random((r, r))) / r)

    def columns() -> None:
        D = cdist(A, Z, "sqeuclidean")
        D *= -0.01
        np.exp(D, out=D)

    def rate(function: Any) -> float:
        function()
        times = []
        for _ in range(15):
            started = time.perf_counter()
            function()
            times.append(time.perf_counter() - started)
        return m / sorted(times)[len(times) // 2]

    return {
        "columns": rate(columns),
        "gram": rate(lambda: dsyrk(1.0, K.T, beta=1.0, c=G, lower=1, overwrite_c=1)),
        "triangles": 0.5 * rate(lambda: dtrmm(1.0, L, K.T, lower=1)),
    }


def run_speed(path: str, source: str, r: int | None) -> dict[str, Any]:
    """One fit; seconds of every pass, the floor of each, and the peak of memory of this process and its workers."""
    import numpy as np

    from mosaic import MOSAIC
    from mosaic.engines import journal

    times: dict[str, float] = {}
    original = journal.Journal._pass

    def timed(self: Any, name: str, *args: Any) -> Any:
        started = time.perf_counter()
        found = original(self, name, *args)
        times[name] = time.perf_counter() - started
        return found

    journal.Journal._pass = timed
    X: Any = np.load(path, mmap_mode=None if source == "memory" else "r")
    n = len(X)
    cluster = client = None
    if source.startswith("Dask"):
        import dask
        import dask.array as da
        from distributed import Client, LocalCluster

        dask.config.set({"distributed.worker.daemon": False})
        workers = int(source.split()[1])
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=None)
        client = Client(cluster)
        X = da.map_blocks(
            _piece, path=path, chunks=(tuple(min(200_000, n - a) for a in range(0, n, 200_000)), (FEATURES,)),
            dtype=np.float32, meta=np.zeros((0, FEATURES), np.float32),
        )  # fmt: skip
    started = time.perf_counter()
    model = MOSAIC(PICKS, strategy="sketch", n_initial=r, n_rounds=1).fit(X)
    whole = time.perf_counter() - started
    found = {
        "n": n,
        "source": source,
        "r": model.selection_.material.proof.sketch.rounds[0].candidates,
        "seconds": whole,
        "passes": times,
        "peak": peak(),
        "gap": model.selection_.program_certificate.gap,
        "kernel_error": model.selection_.program_certificate.kernel_error,
        "rows": model.representative_indices_.tolist(),
    }
    if client is not None and cluster is not None:
        client.close()
        cluster.close()
    found["floor"] = floor_rates(found["r"])
    return found


def _piece(path: str, block_info: Any = None) -> Any:
    """Rows of a chunk, read by the worker that needs them."""
    import numpy as np

    (start, stop), _ = block_info[None]["array-location"]
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def read_rate(path: str) -> float:
    """Rows a second of reading the file once, in blocks, as a pass does."""
    import numpy as np

    X = np.load(path, mmap_mode="r")
    started = time.perf_counter()
    total = 0.0
    for start in range(0, len(X), 8192):
        total += float(X[start : start + 8192].sum())
    return len(X) / (time.perf_counter() - started)


def run_quality(name: str, n: int, r: int, rank: int | None) -> dict[str, Any]:
    """The sketch, then the program on all points with the same kernel and strength."""
    import numpy as np

    from mosaic import datasets
    from mosaic.choosing.geometry import bandwidth
    from mosaic.data import open_source
    from mosaic.kernels import RBF
    from mosaic.program import encode
    from mosaic.sketch import draw, run_sketch

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

    sample = draw(run, n, 16_384, 0)
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

        model = MOSAIC(k, strategy=method.split(", ")[1]).fit(X)
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


def speed(folder: Path, sizes: tuple[int, ...]) -> str:
    """Rows a second of each pass, next to its floor."""
    lines = []
    text = ""
    for n in sizes:
        path = folder / f"{n}.npy"
        blobs_to_file(path, n)
        reading = read_rate(str(path))
        found = [in_a_process("speed", str(path), source, None) for source in SOURCES]
        same = all(run["rows"] == found[0]["rows"] for run in found)
        for run in found:
            rates = {name.split()[0]: n / took for name, took in run["passes"].items()}
            read = reading if run["source"] != "memory" else float("inf")
            columns, workers = run["floor"]["columns"], 2 if "2" in run["source"] else 1
            floors = {
                "gram": workers / (1 / read + 1 / columns + 1 / run["floor"]["gram"]),
                "scores": workers / (1 / read + 1 / columns + 1 / run["floor"]["triangles"]),
            }
            cells = [f"{rates[p]:,.0f} ({rates[p] / floors[p]:.2f})" for p in ("gram", "scores")]
            lines.append(
                [f"{n:,}", run["source"], f"{run['r']}", f"{rates['look']:,.0f}", *cells, seconds(run["seconds"]),
                 f"{run['peak'] / MEBIBYTE:,.0f}", f"{run['gap']:.3f}", "yes" if same else "NO"]
            )  # fmt: skip
        path.unlink()
    head = ["rows", "where they are", "candidates", "look, rows/s", "sums, rows/s (of floor)", "look at all, rows/s (of floor)",
            "whole fit, s", "peak, MiB", "gap", "same picks"]  # fmt: skip
    text += table(head, lines)
    largest = [line for line in lines if line[0] == f"{max(sizes):,}"]
    if largest:
        n, took = max(sizes), float(largest[1][6].replace(",", ""))
        text += f"\nBy extrapolation, not measured: {10 * n:,} rows of a memory map, same candidates, {took / 6:,.0f} minutes.\n"
    return text


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
    packages = ["numpy", "scipy", "scikit-learn", "dask", "distributed"]
    with tempfile.TemporaryDirectory() as folder:
        made = {
            "speed": lambda: speed(Path(folder), tuple(n for n in SPEED_SIZES if n <= given.largest)),
            "quality": lambda: quality(tuple(case for case in QUALITY if case[1] <= given.largest)),
            "peers": lambda: peers(tuple(n for n in PEER_SIZES if n <= given.largest)),
        }
        for part in parts:
            write(f"scale_{part}.md", header(f"Scale: {part}", packages) + "\n" + made[part]())


if __name__ == "__main__":
    main()
