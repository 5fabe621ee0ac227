"""What the estimators cost: against k-medoids and isolation forests, with growing n, on digits, to import, and what a proof adds.

Every fit with growing n has a process of its own, so that its peak of memory is its own. This process imports nothing
large for the same reason: a child's peak starts from its parent's.
"""

from __future__ import annotations

from report import header, seconds, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

SIZES = (10_000, 100_000, 1_000_000)
#: Sizes at which two versions are compared.
VERSION_SIZES = (300, 1000, 3000, 10_000, 100_000, 1_000_000)
#: The data: blobs, features, gross outliers.
BLOBS, FEATURES, OUTLIERS = 20, 10, 50
PICKS = 50
#: Largest n for which the n×n distances of k-medoids are asked for.
LARGEST_SQUARE = 10_000
REPEATS, IMPORTS = 3, 7
#: What takes a second at most is run so many times more often.
FAST_FACTOR = 3
DIGITS_PICKS = 20
MEBIBYTE = 2**20
#: What a million points may take.
LARGEST_PEAK = 4 * 2**30
#: What importing mosaic may take, relative to importing sklearn.cluster.
LARGEST_IMPORT = 1.2

#: Rows of everyday data, and how many times as long as k-medoids a fit may take there; columns; the same for isolation forests.
EVERYDAY = {1000: 10.0, 2000: 4.0, 5000: 1.0, 10_000: 0.5}
EVERYDAY_FEATURES, FOREST, FOREST_SIZES = (16, 64), 4.0, (1000, 10_000, 50_000, 200_000)

OURS, OURS_FIXED = "MOSAIC()", f"MOSAIC({PICKS})"
MINI_BATCH, MEDOIDS = f"MiniBatchKMeans({PICKS})", f"k-medoids, {PICKS}"
DETECTOR = "MOSAICOutlierDetector()"


# --- In a process of its own: one fit


def blobs(n: int) -> tuple[Any, Any]:
    """Points of 20 Gaussian blobs with 50 of them moved 3 to 6 data radii away; made in place, which keeps the peak low."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, FEATURES))
    for blob, centre in enumerate(rng.uniform(-10.0, 10.0, (BLOBS, FEATURES))):
        X[blob::BLOBS] += centre
    radius = np.sqrt(np.einsum("ij,ij->i", X, X).max())
    is_outlier = np.zeros(n, dtype=bool)
    is_outlier[rng.choice(n, OUTLIERS, replace=False)] = True
    v = rng.standard_normal((OUTLIERS, FEATURES))
    X[is_outlier] = radius * rng.uniform(3.0, 6.0, (OUTLIERS, 1)) * v / np.linalg.norm(v, axis=1, keepdims=True)
    return X, is_outlier


def ready(method: str) -> Callable[[Any], Any]:
    """A function from points to rows, with all that it needs imported."""
    if method in (OURS, OURS_FIXED):
        from mosaic import MOSAIC

        model = MOSAIC() if method == OURS else MOSAIC(PICKS)
        return lambda X: model.fit(X).representative_indices_
    from sklearn.metrics import pairwise_distances, pairwise_distances_argmin

    if method == MINI_BATCH:
        from sklearn.cluster import MiniBatchKMeans

        clusters = MiniBatchKMeans(PICKS, random_state=0)
        return lambda X: pairwise_distances_argmin(clusters.fit(X).cluster_centers_, X)
    import kmedoids

    return lambda X: kmedoids.fasterpam(pairwise_distances(X), PICKS, random_state=0, n_cpu=1).medoids


def fit(method: str, n: int) -> dict[str, Any]:
    """Seconds, peak of the process, what of it came with the fit, and what was picked."""
    from growth import resident

    select = ready(method)
    X, is_outlier = blobs(n)
    before = resident()
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = select(X)
    spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {
        "seconds": spent,
        "peak": peak,
        "added": peak - before,
        "picks": len(rows),
        "outliers": int(is_outlier[rows].sum()),
        "warned": len(caught),
    }


def foretell(method: str, n: int) -> dict[str, Any]:
    """What ``mosaic.estimate`` says of the same fit, and how long it takes to say it."""
    import mosaic

    X, _ = blobs(n)
    start = time.process_time()
    told = mosaic.estimate(X, **({} if method == OURS else {"n_representatives": PICKS}))
    spent = time.process_time() - start
    return {"memory": told.memory, "rank": told.rank, "took": spent}


# --- In a process of its own: several methods in turn


def spent_by(who: int) -> float:
    """Seconds that this process, or its children so far, had of the processor."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def in_turn(contestants: dict[str, Callable[[], Any]], repeats: int, who: int = resource.RUSAGE_SELF) -> dict[str, float]:
    """Median seconds of each, measured in turn."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, work in contestants.items():
            start = spent_by(who)
            work()
            times[name].append(spent_by(who) - start)
    return {name: median(spent) for name, spent in times.items()}


def digits(repeats: int) -> dict[str, float]:
    """Selectors and detectors on the 1797 digits."""
    import kmedoids
    from pyod.models.ecod import ECOD
    from pyod.models.knn import KNN
    from sklearn.datasets import load_digits
    from sklearn.ensemble import IsolationForest
    from sklearn.metrics import pairwise_distances
    from sklearn.neighbors import LocalOutlierFactor

    from mosaic import MOSAIC, MOSAICOutlierDetector

    X = load_digits().data
    k = DIGITS_PICKS
    contestants: dict[str, Callable[[], Any]] = {
        f"MOSAIC({k})": lambda: MOSAIC(k).fit(X),
        f"k-medoids, {k}": lambda: kmedoids.fasterpam(pairwise_distances(X), k, random_state=0, n_cpu=1),
        DETECTOR: lambda: MOSAICOutlierDetector().fit_predict(X),
        "IsolationForest()": lambda: IsolationForest(random_state=0).fit_predict(X),
        "LocalOutlierFactor()": lambda: LocalOutlierFactor().fit_predict(X),
        "PyOD KNN()": lambda: KNN().fit(X),
        "PyOD ECOD()": lambda: ECOD().fit(X),
    }
    for name, work in contestants.items():
        if not name.startswith("MOSAIC"):
            work()  # load and compile; ours has nothing to compile
    return in_turn(contestants, repeats)


def everyday(n: int, d: int, repeats: int) -> dict[str, float]:
    """``MOSAIC(20).fit`` and FasterPAM with its distance matrix, on 20 blobs."""
    import kmedoids
    from scipy.spatial.distance import cdist
    from sklearn.datasets import make_blobs

    from mosaic import MOSAIC

    X, k = make_blobs(n, d, centers=BLOBS, random_state=0)[0], DIGITS_PICKS
    MOSAIC(k).fit(X[: max(4 * k, 100)])  # load everything
    contestants: dict[str, Callable[[], Any]] = {
        "MOSAIC": lambda: MOSAIC(k).fit(X),
        "k-medoids": lambda: kmedoids.fasterpam(cdist(X, X), k, random_state=0, n_cpu=1),
    }
    return in_turn(contestants, repeats)


def odd_rows(n: int, d: int, repeats: int) -> dict[str, float]:
    """The detector and an isolation forest, fitted and asked for the scores of all rows."""
    from sklearn.datasets import make_blobs
    from sklearn.ensemble import IsolationForest

    from mosaic import MOSAICOutlierDetector

    X = make_blobs(n, d, centers=BLOBS, random_state=0)[0]
    MOSAICOutlierDetector().fit(X[:200])
    contestants: dict[str, Callable[[], Any]] = {
        "MOSAIC": lambda: MOSAICOutlierDetector().fit(X).score_samples(X),
        "forest": lambda: IsolationForest(random_state=0).fit(X).score_samples(X),
    }
    return in_turn(contestants, repeats)


def one_version(n: int, repeats: int) -> dict[str, tuple[float, float]]:
    """Seconds of the processor and of the clock, with whichever version of the library is first on the path."""
    from mosaic import MOSAIC, MOSAICOutlierDetector

    X = blobs(n)[0]
    _ = MOSAIC(5).fit(X[:200]).certificate_  # load everything
    MOSAICOutlierDetector().fit(X[:200])
    spent: dict[str, list[tuple[float, float]]] = {}

    def take(name: str, work: Callable[[], Any]) -> Any:
        start = time.process_time(), time.perf_counter()
        result = work()
        spent.setdefault(name, []).append((time.process_time() - start[0], time.perf_counter() - start[1]))
        return result

    for _ in range(repeats):
        model = take("fit", lambda: MOSAIC(DIGITS_PICKS).fit(X))
        take("certificate", lambda model=model: model.certificate_)
        take("detector", lambda: MOSAICOutlierDetector().fit(X))
    return {name: (median(cpu for cpu, _ in each), median(wall for _, wall in each)) for name, each in spent.items()}


def proofs(repeats: int) -> dict[str, dict[str, float]]:
    """A fit, what is asked of all rows, and the certificate, one after another."""
    from sklearn.datasets import load_digits

    import mosaic

    def once(X: Any) -> dict[str, float]:
        start = time.process_time()
        model = mosaic.MOSAIC(DIGITS_PICKS).fit(X)
        fitted = time.process_time()
        _ = model.labels_
        answered = time.process_time()
        gap = model.certificate_.gap
        proven = time.process_time()
        return {"fit": fitted - start, "rows": answered - fitted, "proof": proven - answered, "gap": gap}

    sets = {
        "blobs, 400 × 2": mosaic.datasets.blobs_with_gross_outliers().X,
        "swiss roll, 2,000 × 3": mosaic.datasets.swiss_roll(2000),
        "digits, 1,797 × 64": load_digits().data,
        "blobs, 100,000 × 10": blobs(100_000)[0],
        "blobs, 1,000,000 × 10": blobs(1_000_000)[0],
    }
    once(sets["blobs, 400 × 2"])  # load everything
    return {name: middle([once(X) for _ in range(repeats if len(X) < 50_000 else 1)]) for name, X in sets.items()}


def child(task: str, arguments_: list[str]) -> None:
    """Do one task and print the result as JSON."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        match task:
            case "fit":
                result: Any = fit(arguments_[0], int(arguments_[1]))
            case "foretell":
                result = foretell(arguments_[0], int(arguments_[1]))
            case "digits":
                result = digits(int(arguments_[0]))
            case "everyday":
                result = everyday(*map(int, arguments_))
            case "odd rows":
                result = odd_rows(*map(int, arguments_))
            case "version":
                warnings.simplefilter("ignore")
                result = one_version(*map(int, arguments_))
            case _:
                warnings.simplefilter("ignore")  # that the rank was the limit; the table has the gaps
                result = proofs(int(arguments_[0]))
    print(json.dumps(result))


# --- In this process: nothing but asking


def ask(task: str, *arguments_: str, source: str | None = None) -> Any:
    """Run this script for one task and read what it prints; with the library of another checkout, if its folder is given."""
    command = [sys.executable, __file__, "--child", task, *arguments_]
    environment = None if source is None else os.environ | {"PYTHONPATH": str(Path(source) / "src")}
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    result = json.loads(output.splitlines()[-1])
    print(task, *arguments_, result, flush=True)
    return result


def middle(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of every number."""
    return {key: median(result[key] for result in results) for key in results[0]}


def growth_results(sizes: list[int], repeats: int) -> dict[tuple[int, str], dict[str, Any]]:
    """All methods at all sizes, in turn."""
    found: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for n in sizes:
        methods = [OURS, OURS_FIXED, MINI_BATCH, *([MEDOIDS] if n <= LARGEST_SQUARE else [])]
        for _ in range(repeats):
            for method in methods:
                found.setdefault((n, method), []).append(ask("fit", method, str(n)))
    return {key: middle(results) for key, results in found.items()}


def mib(value: float) -> str:
    return f"{value / MEBIBYTE:,.0f}"


def growth_table(results: dict[tuple[int, str], dict[str, Any]]) -> str:
    rows = []
    for (n, method), found in results.items():
        rows.append(
            [
                f"{n:,}, {method}",
                seconds(found["seconds"]),
                f"{found['seconds'] / results[n, OURS_FIXED]['seconds']:.2g}",
                mib(found["peak"]),
                mib(found["added"]),
                f"{found['outliers']:.0f} of {found['picks']:.0f}",
            ]
        )
    head = ["n, method", "seconds", f"seconds / {OURS_FIXED}'s", "peak, MiB", "of it beyond imports and data"]
    return table([*head, "outliers among picks"], rows)


def estimate_table(results: dict[tuple[int, str], dict[str, Any]], repeats: int) -> str:
    """What was foretold beside what was measured."""
    rows = []
    for (n, method), found in results.items():
        if method in (OURS, OURS_FIXED):
            told = middle([ask("foretell", method, str(n)) for _ in range(repeats)])
            rows.append(
                [
                    f"{n:,}, {method}",
                    mib(told["memory"]),
                    mib(found["added"]),
                    f"{found['added'] / told['memory']:.2g}",
                    seconds(told["took"]),
                ]
            )
    head = ["n, method", "MiB told", "measured", "measured / told"]
    return table([*head, "seconds that the estimate took"], rows)


def digits_tables(times: dict[str, float]) -> str:
    """Selectors, then detectors, each relative to ours."""

    def part(names: list[str]) -> str:
        ours = times[names[0]]
        return table(
            ["method", "seconds", f"{names[0]}'s seconds / its"],
            [[name, seconds(times[name]), f"{ours / times[name]:.3g}"] for name in names],
        )

    names = list(times)
    return part(names[:2]) + "\n" + part(names[2:])


def import_times(runs: int) -> dict[str, float]:
    """Median seconds of a whole process that imports one thing, in turn."""
    statements = ("pass", "import sklearn.cluster", "import mosaic", "from mosaic import MOSAIC")

    def once(statement: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, "-c", statement], check=True)

    contestants = {statement: once(statement) for statement in statements}
    in_turn(contestants, 1)  # compiles to bytecode
    return in_turn(contestants, runs, resource.RUSAGE_CHILDREN)


def import_table(times: dict[str, float]) -> str:
    base = times["import sklearn.cluster"]
    rows = [[f"`{name}`", seconds(spent), f"{spent / base:.2f}"] for name, spent in times.items()]
    return table(["python -c", "seconds", "relative to sklearn.cluster"], rows)


def everyday_table(repeats: int, sizes: Sequence[int]) -> str:
    """Ours against k-medoids."""
    rows = []
    for n, d in product(sizes, EVERYDAY_FEATURES):
        t = ask("everyday", str(n), str(d), str(repeats))
        wanted = f"{EVERYDAY[n]:g}" if n in EVERYDAY else "—"
        ratio = t["MOSAIC"] / t["k-medoids"]
        rows.append([f"{n:,} × {d}", seconds(t["MOSAIC"]), seconds(t["k-medoids"]), f"{ratio:.2f}", wanted])
    return table(["data", f"MOSAIC({DIGITS_PICKS}).fit", "k-medoids", "ratio", "wanted, at most"], rows)


def odd_rows_table(repeats: int, sizes: Sequence[int]) -> str:
    """Ours against isolation forests."""
    rows = []
    for n, d in product(sizes, EVERYDAY_FEATURES):
        t = ask("odd rows", str(n), str(d), str(repeats if n < 50_000 else 1))
        ratio = t["MOSAIC"] / t["forest"]
        rows.append([f"{n:,} × {d}", seconds(t["MOSAIC"]), seconds(t["forest"]), f"{ratio:.2f}", f"{FOREST:g}"])
    return table(["data", "MOSAICOutlierDetector, fit and score", "IsolationForest", "ratio", "wanted, at most"], rows)


def commands(n: int, source: str) -> dict[str, tuple[float, float]]:
    """The same of ``mosaic select`` for a Parquet file, its start included; once."""
    found, environment = {}, os.environ | {"PYTHONPATH": str(Path(source).resolve() / "src")}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "points.parquet")
        make = f"import estimators as e, pandas as pd; pd.DataFrame(e.blobs({n})[0]).add_prefix('x').to_parquet({path!r})"
        subprocess.run([sys.executable, "-c", make], check=True, cwd=Path(__file__).parent)
        command = [sys.executable, "-W", "ignore", "-m", "mosaic", "select", path, "-k", str(DIGITS_PICKS), "--quiet"]
        for name, more in {"`select`": [], "`select --report`": ["--report", str(Path(folder) / "r.html")]}.items():
            start = spent_by(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run([*command, *more], check=True, env=environment, stdout=subprocess.DEVNULL, cwd=folder)
            found[name] = spent_by(resource.RUSAGE_CHILDREN) - start[0], time.perf_counter() - start[1]
    print("select", n, found, flush=True)
    return found


def versions_table(before: str, sizes: Sequence[int], repeats: int) -> str:
    """This version against an earlier one: seconds of the processor, and of the clock in parentheses."""
    here, rows = str(Path(__file__).parents[1]), []
    for n in sizes:
        times = repeats if n < 50_000 else 1
        old, new = (ask("version", str(n), str(times), source=source) | commands(n, source) for source in (before, here))
        for name in new:
            cells = [f"{seconds(cpu)} ({seconds(wall)})" for cpu, wall in (old[name], new[name])]
            rows.append([f"{n:,} × {FEATURES}", name, *cells, f"{new[name][0] / old[name][0]:.2f}"])
    return table(["rows × columns", "", "earlier", "now", "ratio"], rows)


def proofs_table(results: dict[str, dict[str, float]]) -> str:
    rows = []
    for name, t in results.items():
        spans = [seconds(t[key]) for key in ("fit", "rows", "proof")]
        rows.append([name, *spans, f"{100 * t['gap']:.2g} %"])
    return table(["data", f"MOSAIC({DIGITS_PICKS}).fit", "labels of all rows", "certificate", "at most below the best"], rows)


def verdict(results: dict[tuple[int, str], dict[str, Any]]) -> str:
    """Whether the largest size stayed within its limit, and whether anybody warned."""
    n = max(size for size, _ in results)
    peak = max(found["peak"] for (size, method), found in results.items() if size == n and "MOSAIC" in method)
    inside = "within" if peak <= LARGEST_PEAK else "NOT within"
    warned = [f"{size:,} {method}" for (size, method), found in results.items() if found["warned"]]
    told = f"Warnings came from: {', '.join(warned)}." if warned else "No fit warned."
    return f"n = {n:,}: MOSAIC's process peaks at {peak / 2**30:.2f} GiB, {inside} {LARGEST_PEAK / 2**30:g} GiB. {told}\n"


def notes(repeats: int, imports: int) -> str:
    return f"""\
- Seconds are of processor time, since the machine was shared with other work; one thread. Medians of {repeats} runs, of
  {imports} for imports; methods in turn.
- MOSAIC() chooses the number itself. MiniBatchKMeans picks the point nearest to each centre. k-medoids is one start of
  `kmedoids.fasterpam`, the n×n distances included, and is not asked for n above {LARGEST_SQUARE:,}.
- Every fit with growing n has a process of its own. Its peak is that of `getrusage`; the second number is without what the
  process held after imports and data, which is what `mosaic.estimate` speaks of.
- A fit solves no program but four of at most 128 points. The program of all rows is solved when its certificate is asked for. Its
  gap is one for the kernel itself; where it is above the tolerance of 0.001, the rank that is affordable at this n was the limit.
"""


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--quick", action="store_true", help="small sizes, one run each: only to see that it runs")
    parser.add_argument("--before", metavar="FOLDER", help="only compare with a checkout of an earlier version, in versions.md")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure and write benchmarks/results/estimators.md."""
    options = arguments()
    if options.child:
        child(options.child[0], options.child[1:])
        return
    repeats, imports = (1, 1) if options.quick else (REPEATS, IMPORTS)
    if options.before:
        told = (
            f"`MOSAIC({DIGITS_PICKS})`, its certificate, `MOSAICOutlierDetector()`, and `mosaic select` of a Parquet file, start "
            "included: seconds of the processor, one thread of the linear algebra library, and of the clock in parentheses."
        )
        sizes = options.sizes if options.sizes != list(SIZES) else VERSION_SIZES
        compared = versions_table(options.before, sizes[:1] if options.quick else sizes, repeats)
        write("versions.md", f"{header('Before and after', ['numpy', 'scipy', 'scikit-learn'])}\n{told}\n\n{compared}")
        return
    sizes = [2000, 5000] if options.quick else sorted(options.sizes)
    growing = growth_results(sizes, repeats)
    foretold = estimate_table(growing, repeats)
    on_digits, proven, importing = ask("digits", str(repeats)), ask("proofs", str(repeats)), import_times(imports)
    ratio = importing["from mosaic import MOSAIC"] / importing["import sklearn.cluster"]
    packages = ["numpy", "scipy", "scikit-learn", "kmedoids", "pyod"]
    parts = [
        header("What the estimators cost", packages),
        notes(repeats, imports),
        "## Against k-medoids, where most people are\n",
        f"{BLOBS} blobs; k-medoids is one start of FasterPAM, its distance matrix included.\n",
        everyday_table(repeats, [1000, 2000] if options.quick else [500, *EVERYDAY]),
        "## Against isolation forests\n",
        odd_rows_table(repeats, FOREST_SIZES[: 1 if options.quick else None]),
        "## Growing n\n",
        f"{BLOBS} Gaussian blobs in {FEATURES} dimensions, {OUTLIERS} of the points gross outliers, float64.\n",
        growth_table(growing),
        verdict(growing),
        "## What `mosaic.estimate` said beforehand\n",
        foretold,
        "## Digits, 1,797 × 64\n",
        digits_tables(on_digits),
        "## What a proof costs\n",
        "One after another: the fit, what is said of all rows, the program with its gap, and the bound for the chosen number.\n",
        proofs_table(proven),
        "## Import\n",
        import_table(importing),
        f"`from mosaic import MOSAIC` takes {ratio:.2f} times as long as `import sklearn.cluster`; "
        f"wanted is less than {LARGEST_IMPORT:g}.\n",
    ]
    write("estimators.md", "\n".join(parts))


if __name__ == "__main__":
    main()
