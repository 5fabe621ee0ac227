"""What the estimators cost: time and memory with growing n, digits, the time to import, and what they add to ``solve``.

Every fit with growing n has a process of its own, so that its peak of memory is its own. This process imports nothing
large for the same reason: a child's peak starts from its parent's.
"""

from __future__ import annotations

from report import header, seconds, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any
from unittest import mock

SIZES = (10_000, 100_000, 1_000_000)
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

OURS, OURS_FIXED = "MOSAIC()", f"MOSAIC({PICKS})"
MINI_BATCH, MEDOIDS = f"MiniBatchKMeans({PICKS})", f"k-medoids, {PICKS}"
DETECTOR = "MOSAICOutlierDetector()"
#: Of methods that certify nothing.
NO_GAP = -1.0


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
    """A function from points to rows and to the gap that is certified, if any, with all that it needs imported."""
    if method in (OURS, OURS_FIXED):
        from mosaic import MOSAIC

        model = MOSAIC() if method == OURS else MOSAIC(PICKS)
        # The gap of the program; ``certificate_`` would solve another one for the bound on the picks.
        return lambda X: (model.fit(X).representative_indices_, model._encoding_certificate.gap)
    from sklearn.metrics import pairwise_distances, pairwise_distances_argmin

    if method == MINI_BATCH:
        from sklearn.cluster import MiniBatchKMeans

        clusters = MiniBatchKMeans(PICKS, random_state=0)
        return lambda X: (pairwise_distances_argmin(clusters.fit(X).cluster_centers_, X), NO_GAP)
    import kmedoids

    return lambda X: (kmedoids.fasterpam(pairwise_distances(X), PICKS, random_state=0, n_cpu=1).medoids, NO_GAP)


def fit(method: str, n: int) -> dict[str, Any]:
    """Seconds, peak of the process, what of it came with the fit, and what was picked."""
    from growth import resident

    select = ready(method)
    X, is_outlier = blobs(n)
    before = resident()
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows, gap = select(X)
    spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {
        "seconds": spent,
        "peak": peak,
        "added": peak - before,
        "picks": len(rows),
        "outliers": int(is_outlier[rows].sum()),
        "gap": gap,
        "warned": len(caught),
    }


def foretell(method: str, n: int) -> dict[str, Any]:
    """What ``mosaic.estimate`` says of the same fit, and how long it takes to say it."""
    import mosaic

    X, _ = blobs(n)
    start = time.process_time()
    with mock.patch("time.perf_counter", time.process_time):  # its trial of the machine, in our kind of seconds
        told = mosaic.estimate(X, **({} if method == OURS else {"n_representatives": PICKS}))
    spent = time.process_time() - start
    return {"seconds": told.seconds, "memory": told.memory, "rank": told.rank, "took": spent}


# --- In a process of its own: several methods in turn


def spent_by(who: int) -> float:
    """Seconds that this process, or its children so far, had of the processor."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def in_turn(
    contestants: dict[str, Callable[[], Any]], repeats: int, who: int = resource.RUSAGE_SELF
) -> dict[str, float]:
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


@contextmanager
def watched(spans: dict[str, float]) -> Iterator[None]:
    """Seconds within a fit: both programs, deciding on outliers (without its program), and choosing."""
    import mosaic.estimators._nearby as nearby
    import mosaic.estimators._representatives as representatives

    def timed(module: Any, name: str, key: str) -> Any:
        function = getattr(module, name)

        def run(*args: Any, **settings: Any) -> Any:
            start = time.process_time()
            try:
                return function(*args, **settings)
            finally:
                spans[key] = spans.get(key, 0.0) + time.process_time() - start

        return mock.patch.object(module, name, run)

    with (
        timed(representatives, "solve_for", "first program"),
        timed(nearby, "encode_exactly", "second program"),
        timed(representatives, "look_twice", "deciding"),
        timed(representatives, "choose", "choosing"),
    ):
        yield
    spans.setdefault("second program", 0.0)
    spans["deciding"] -= spans["second program"]


def overhead(repeats: int) -> dict[str, dict[str, float]]:
    """``MOSAIC(20).fit`` and, with the bandwidth, the strength, the tolerance and the rank that it chose, ``solve``."""
    from sklearn.datasets import load_digits

    import mosaic
    from mosaic.tuning import affordable_rank

    def once(X: Any) -> dict[str, float]:
        spans: dict[str, float] = {}
        start = time.process_time()
        with watched(spans):
            model = mosaic.MOSAIC(DIGITS_PICKS).fit(X)
        fitted = time.process_time()
        rank = affordable_rank(len(X), X.itemsize, X.shape[1], None)
        middle_ = time.process_time()
        encoding = mosaic.solve(X, gamma=model.gamma_, alpha=model.alpha_, tol=model.tol, max_rank=rank)
        solved = time.process_time()
        _ = encoding.effective_count
        counted = time.process_time()
        return {"fit": fitted - start, "solve": solved - middle_, "counts": counted - solved, **spans}

    sets = {
        "blobs, 400 × 2": mosaic.datasets.blobs_with_gross_outliers().X,
        "swiss roll, 2,000 × 3": mosaic.datasets.swiss_roll(2000),
        "digits, 1,797 × 64": load_digits().data,
    }
    once(sets["blobs, 400 × 2"])  # load everything
    rounds = {name: repeats if len(X.T) > 3 else FAST_FACTOR * repeats for name, X in sets.items()}
    return {name: middle([once(X) for _ in range(rounds[name])]) for name, X in sets.items()}


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
            case _:
                warnings.simplefilter("ignore")  # that the rank was the limit; the first table has the gaps
                result = overhead(int(arguments_[0]))
    print(json.dumps(result))


# --- In this process: nothing but asking


def ask(task: str, *arguments_: str) -> Any:
    """Run this script for one task and read what it prints."""
    command = [sys.executable, __file__, "--child", task, *arguments_]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
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
                f"{found['gap']:.1e}" if found["gap"] != NO_GAP else "—",
            ]
        )
    head = ["n, method", "seconds", f"seconds / {OURS_FIXED}'s", "peak, MiB", "of it beyond imports and data"]
    return table([*head, "outliers among picks", "certified gap"], rows)


def estimate_table(results: dict[tuple[int, str], dict[str, Any]], repeats: int) -> str:
    """What was foretold beside what was measured."""
    rows = []
    for (n, method), found in results.items():
        if method in (OURS, OURS_FIXED):
            told = middle([ask("foretell", method, str(n)) for _ in range(repeats)])
            rows.append(
                [
                    f"{n:,}, {method}",
                    seconds(told["seconds"]),
                    seconds(found["seconds"]),
                    f"{found['seconds'] / told['seconds']:.2g}",
                    mib(told["memory"]),
                    mib(found["added"]),
                    f"{found['added'] / told['memory']:.2g}",
                    seconds(told["took"]),
                ]
            )
    head = ["n, method", "seconds told", "measured", "measured / told", "MiB told", "measured", "measured / told"]
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


def overhead_table(results: dict[str, dict[str, float]]) -> str:
    rows = []
    for name, t in results.items():
        other = t["fit"] - t["solve"] - t["counts"]
        times = [seconds(value) for value in (t["fit"], t["solve"], t["counts"], max(other, 0.0))]
        rows.append([name, *times, f"{t['fit'] / t['solve']:.2f}", f"{t['fit'] / (t['solve'] + t['counts']):.2f}"])
    head = ["data", f"MOSAIC({DIGITS_PICKS}).fit", "solve", "effective counts", "the rest of fit"]
    return table([*head, "fit / solve", "fit / (solve and counts)"], rows)


def selecting_table(results: dict[str, dict[str, float]]) -> str:
    rows = []
    for name, t in results.items():
        keys = ("first program", "second program", "deciding", "choosing")
        selecting = t["deciding"] + t["choosing"]
        both = selecting / (t["first program"] + t["second program"])
        one = (selecting + t["second program"]) / t["first program"]
        rows.append([name, *(seconds(t[key]) for key in keys), f"{both:.2f}", f"{one:.2f}"])
    head = ["data", "program", "narrow program", "deciding on outliers", "choosing"]
    return table([*head, "selecting / both programs", "all but the program / program"], rows)


def verdict(results: dict[tuple[int, str], dict[str, Any]]) -> str:
    """Whether the largest size stayed within its limit, and whether anybody warned."""
    n = max(size for size, _ in results)
    peak = max(found["peak"] for (size, method), found in results.items() if size == n and "MOSAIC" in method)
    inside = "within" if peak <= LARGEST_PEAK else "NOT within"
    warned = [f"{size:,} {method}" for (size, method), found in results.items() if found["warned"]]
    told = f"Warnings came from: {', '.join(warned)}." if warned else "No fit warned."
    return (
        f"n = {n:,}: MOSAIC's process peaks at {peak / 2**30:.2f} GiB, {inside} {LARGEST_PEAK / 2**30:g} GiB. {told}\n"
    )


def notes(repeats: int, imports: int) -> str:
    return f"""\
- Seconds are of processor time, since the machine was shared with other work; one thread. Medians of {repeats} runs, of
  {imports} for imports; methods in turn.
- MOSAIC() chooses the number itself. MiniBatchKMeans picks the point nearest to each centre. k-medoids is one start of
  `kmedoids.fasterpam`, the n×n distances included, and is not asked for n above {LARGEST_SQUARE:,}.
- Every fit with growing n has a process of its own. Its peak is that of `getrusage`; the second number is without what the
  process held after imports and data, which is what `mosaic.estimate` speaks of.
- The certified gap is that of the program for the kernel itself. Where it is above the tolerance of 0.001, the rank that is
  affordable at this n was the limit.
"""


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--quick", action="store_true", help="small sizes, one run each: only to see that it runs")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure and write benchmarks/results/estimators.md."""
    options = arguments()
    if options.child:
        child(options.child[0], options.child[1:])
        return
    repeats, imports = (1, 1) if options.quick else (REPEATS, IMPORTS)
    sizes = [2000, 5000] if options.quick else sorted(options.sizes)
    growing = growth_results(sizes, repeats)
    foretold = estimate_table(growing, repeats)
    on_digits, added, importing = ask("digits", str(repeats)), ask("overhead", str(repeats)), import_times(imports)
    ratio = importing["from mosaic import MOSAIC"] / importing["import sklearn.cluster"]
    packages = ["numpy", "scipy", "scikit-learn", "kmedoids", "pyod"]
    parts = [
        header("What the estimators cost", packages),
        notes(repeats, imports),
        "## Growing n\n",
        f"{BLOBS} Gaussian blobs in {FEATURES} dimensions, {OUTLIERS} of the points gross outliers, float64.\n",
        growth_table(growing),
        verdict(growing),
        "## What `mosaic.estimate` said beforehand\n",
        foretold,
        "## Digits, 1,797 × 64\n",
        digits_tables(on_digits),
        "## Import\n",
        import_table(importing),
        f"`from mosaic import MOSAIC` takes {ratio:.2f} times as long as `import sklearn.cluster`; "
        f"wanted is less than {LARGEST_IMPORT:g}.\n",
        "## What `fit` adds to `solve`\n",
        "The same bandwidth, strength, tolerance and limit of the rank. `solve` computes effective counts when asked for\n"
        "them, so they have a column; the rest of `fit` is looking for the bandwidth, finding outliers and picking.\n",
        overhead_table(added),
        "## What selecting costs, next to solving\n",
        "Selecting is deciding on outliers and choosing. A fit solves two programs: the one that is certified, and a\n"
        "narrow one for outliers, which may be reckoned to either side.\n",
        selecting_table(added),
    ]
    write("estimators.md", "\n".join(parts))


if __name__ == "__main__":
    main()
