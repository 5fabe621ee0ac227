"""Many calls and many fits in one process: the same answers, and memory that does not grow.

    OPENBLAS_NUM_THREADS=1 python fuzz/soak.py                           # 24 threads, 100 000 calls, 10 000 fits
    OPENBLAS_NUM_THREADS=1 python fuzz/soak.py --calls 2400 --fits 400   # a short look

Memory is resident memory, read after a collection of garbage. Its rise is the slope of a straight line through the second half of
the readings; the first half is for caches and pools to fill. It must stay below LEAK bytes for each call or fit, less than the
smallest thing that a call or a fit could leave behind: an array of 16 numbers with its header.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import threading
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

from mosaic import MOSAIC, MOSAICOutlierDetector

#: Bytes for each call or fit by which resident memory may rise.
LEAK = 240
READINGS = 100


def resident() -> int:
    """Bytes of resident memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def slope(readings: list[tuple[int, int]]) -> float:
    """Bytes for each call, over the second half of (calls, bytes)."""
    calls, taken = np.array(readings[len(readings) // 2 :], dtype=float).T
    return float(np.polyfit(calls - calls[0], taken - taken[0], 1)[0])


def rise(what: str, readings: list[tuple[int, int]], seconds: float, wrong: int) -> bool:
    """Print what was found; whether all is well."""
    leak = slope(readings)
    of_half = (readings[-1][1] - readings[len(readings) // 2][1]) / 2**20
    print(
        f"{readings[-1][0]:,} {what} in {seconds:.0f} s: {wrong} wrong answers; resident memory "
        f"{readings[-1][1] / 2**20:.1f} MiB, {of_half:+.2f} MiB over the second half, {leak:+.1f} bytes each (limit {LEAK})",
        flush=True,
    )
    return not wrong and leak < LEAK


def questions(seed: int) -> list[tuple[str, object, np.ndarray]]:
    """Calls of fitted models: their names, functions and rows."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(380, 4)), rng.normal(size=(20, 4)) * 9])
    selector, detector = MOSAIC(8).fit(X), MOSAICOutlierDetector().fit(X)
    asked = []
    for size in (1, 7, 40):
        rows = rng.normal(size=(size, 4)) * 2
        for model in (selector, detector):
            for name in ("predict", "transform", "score_samples", "decision_function"):
                if hasattr(model, name):
                    asked.append((f"{type(model).__name__}.{name}", getattr(model, name), rows))
    return asked


def calls(n: int, n_threads: int, seed: int) -> bool:
    """Threads ask the same two models, and compare every answer with that of a single thread."""
    asked = questions(seed)
    expected = [np.asarray(ask(rows)) for _, ask, rows in asked]
    wrong: list[str] = []
    done = [0] * n_threads

    def work(thread: int) -> None:
        rng = np.random.default_rng([seed, thread])
        for _ in range(n // n_threads + (thread < n % n_threads)):
            i = int(rng.integers(len(asked)))
            name, ask, rows = asked[i]
            try:
                if not np.array_equal(np.asarray(ask(rows)), expected[i], equal_nan=True):
                    wrong.append(f"{name} of {len(rows)} rows differs")
            except Exception as error:
                wrong.append(f"{name} of {len(rows)} rows: {error!r}")
            done[thread] += 1

    started, readings = time.monotonic(), []
    threads = [threading.Thread(target=work, args=(i,)) for i in range(n_threads)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if sum(done) >= len(readings) * n / READINGS:
            readings.append((sum(done), resident()))
        time.sleep(0.01)
    readings.append((sum(done), resident()))
    for line in sorted(set(wrong))[:10]:
        print(f"  {line} ({wrong.count(line)} times)")
    names = sorted({name for name, _, _ in asked})
    print(f"{n_threads} threads: {', '.join(names)}")
    return rise("calls", readings, time.monotonic() - started, len(wrong))


def fits(n: int, seed: int) -> bool:
    """Fit after fit of small tables of many shapes; some tables come again, and must get the same answer."""
    shapes = [(rows, columns) for rows in (12, 30, 60) for columns in (1, 3, 8)]
    rng = np.random.default_rng(seed)
    tables = [rng.normal(size=shape) for shape in shapes]
    makers = (lambda: MOSAIC(3), lambda: MOSAICOutlierDetector(), lambda: MOSAIC(coverage=0.5))
    known: dict[tuple[int, int], bytes] = {}
    started, wrong, readings = time.monotonic(), 0, []
    for i in range(n):
        which = (i % len(tables), i // len(tables) % len(makers))
        model = makers[which[1]]().fit(tables[which[0]])
        found = (
            np.asarray(model.effective_count_).tobytes()
            + np.asarray(getattr(model, "representative_indices_", ())).tobytes()
        )
        wrong += known.setdefault(which, found) != found
        if i % max(1, n // READINGS) == 0:
            readings.append((i, resident()))
    readings.append((n, resident()))
    return rise("fits", readings, time.monotonic() - started, wrong)


def main() -> int:
    """Both soaks; 0 if all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=24)
    parser.add_argument("--fits", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    good = True
    if args.calls:
        good &= calls(args.calls, args.threads, args.seed)
    if args.fits:
        good &= fits(args.fits, args.seed)
    print(f"soak: {'all is well' if good else 'FAILED'}")
    return not good


if __name__ == "__main__":
    sys.exit(main())
