"""Many calls from many threads, and many fits, in one process: the same answers, and memory that does not grow.

    OPENBLAS_NUM_THREADS=1 python fuzz/soak.py --calls 100000 --threads 24 --fits 10000

The rise of resident memory is the slope of a straight line through the second half of the readings; the first half is for caches
and pools to fill. It must stay below LEAK bytes for each call or fit, less than the smallest array that one could leave behind.
"""

import argparse
import gc
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

from mosaic import MOSAIC, MOSAICOutlierDetector

LEAK, READINGS = 240, 100


def resident():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def soaked(what, n, ask):
    """Whether ``ask(numbers)``, which counts wrong answers, is always right, and memory does not rise over n of them."""
    numbers, readings, wrong = np.array_split(np.arange(n), READINGS), [], 0
    for some in numbers:
        wrong += ask(some)
        readings.append((some[-1], resident()))
    done, taken = np.array(readings[READINGS // 2 :], dtype=float).T
    leak = float(np.polyfit(done - done[0], taken - taken[0], 1)[0])
    print(f"{n:,} {what}: {wrong} wrong answers; {taken[-1] / 2**20:.1f} MiB, {leak:+.1f} bytes each (limit {LEAK})")
    return not wrong and leak < LEAK


def calls(n, n_threads):
    """Threads ask the same two models, and compare every answer with that of a single thread."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(380, 4)), rng.normal(size=(20, 4)) * 9])
    models = (MOSAIC(8).fit(X), MOSAICOutlierDetector().fit(X))
    names = ("predict", "transform", "score_samples", "decision_function")
    methods = [getattr(model, name) for model in models for name in names if hasattr(model, name)]
    asked = [(method, rng.normal(size=(size, 4)) * 2) for size in (1, 7, 40) for method in methods]
    expected = [np.asarray(method(rows)) for method, rows in asked]

    def is_wrong(i):
        method, rows = asked[i % len(asked)]
        return not np.array_equal(np.asarray(method(rows)), expected[i % len(asked)], equal_nan=True)

    with ThreadPoolExecutor(n_threads) as pool:
        return soaked(f"calls in {n_threads} threads", n, lambda some: sum(pool.map(is_wrong, some.tolist())))


def fits(n):
    """Fit after fit of small tables of many shapes, which come again and must get the same answer."""
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(rows, columns)) for rows in (12, 30, 60) for columns in (1, 3, 8)]
    makers, known = (lambda: MOSAIC(3), MOSAICOutlierDetector, lambda: MOSAIC(coverage=0.5)), {}

    def is_wrong(i):
        which = (i % len(tables), i // len(tables) % len(makers))
        model = makers[which[1]]().fit(tables[which[0]])
        found = model.effective_count_.tobytes() + np.asarray(getattr(model, "representative_indices_", ())).tobytes()
        return known.setdefault(which, found) != found

    return soaked("fits", n, lambda some: sum(map(is_wrong, some.tolist())))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--calls", 100_000), ("--threads", 24), ("--fits", 10_000)):
        parser.add_argument(name, type=int, default=default)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.exit(not all([calls(args.calls, args.threads), fits(args.fits)]))
