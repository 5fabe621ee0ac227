"""One fit on several cores: seconds of the clock on one core and on more, in processes of their own.

Run ``python benchmarks/cores.py`` on a quiet machine, or ``python benchmarks/cores.py 8 100000`` for other numbers of cores and
rows. Needs ``taskset``, as Linux has it. The answers must be the same; the last column says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time

import numpy as np

STAGES = ("fit", "certificate", "labels", "scores")
#: Rows and columns.
SIZES = ((300, 8), (1000, 8), (5000, 8), (20_000, 8), (100_000, 16), (1_000_000, 16))


def points(n: int, d: int) -> np.ndarray:
    """Points on a manifold of three dimensions: random cosine features of uniform coordinates."""
    rng = np.random.default_rng(0)
    return np.cos(2.0 * rng.random((n, 3)) @ rng.normal(size=(3, d)) + rng.uniform(0.0, 6.28, d))


def measure(n: int, d: int) -> dict[str, float | str]:
    """The best seconds of each stage, and a hash of the picks and of the gap."""
    from mosaic import MOSAIC

    X, k = points(n, d), 100 if n >= 1000 else 20
    _ = MOSAIC(20).fit(X[:300]).certificate_  # loads what is loaded on first use
    runs = []
    for _ in range(5 if n <= 20_000 else 2):
        clock = [time.perf_counter()]
        model = MOSAIC(k, random_state=0).fit(X)
        clock.append(time.perf_counter())
        gap = model.certificate_.gap
        clock.append(time.perf_counter())
        labels = model.labels_
        clock.append(time.perf_counter())
        model.score_samples(X)
        clock.append(time.perf_counter())
        runs.append(np.diff(clock))
    answer = hashlib.sha256(model.representative_indices_.tobytes() + labels.tobytes() + str(gap).encode()).hexdigest()
    return {**dict(zip(STAGES, np.min(runs, axis=0).tolist(), strict=True)), "answer": answer[:8]}


def on_cores(cores: int, n: int, d: int) -> dict[str, float | str]:
    """``measure`` in a process that may use this many cores."""
    threads = {name: str(cores) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    mask = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))
    command = ["taskset", "-c", mask, sys.executable, __file__, "measure", str(n), str(d)]
    found = subprocess.run(command, env=os.environ | threads, check=True, capture_output=True, text=True)
    return dict(json.loads(found.stdout))


def main() -> None:
    """Print a line for every size: seconds on one core, and how many times as fast it is on more."""
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(int(sys.argv[2]), int(sys.argv[3]))))
        return
    cores = int(sys.argv[1]) if len(sys.argv) > 1 else len(os.sched_getaffinity(0))
    sizes = [size for size in SIZES if len(sys.argv) < 3 or str(size[0]) in sys.argv[2:]]
    print(f"| rows × columns | {' | '.join(f'{stage}, 1 core (s)' for stage in STAGES)} | {cores} cores, times as fast | same |")
    print("| --: | " + "--: | " * (len(STAGES) + 2))
    for n, d in sizes:
        one, many = on_cores(1, n, d), on_cores(cores, n, d)
        seconds = " | ".join(f"{one[stage]:.3g}" for stage in STAGES)
        faster = ", ".join(f"{float(one[stage]) / float(many[stage]):.1f}" for stage in STAGES)
        print(f"| {n:,} × {d} | {seconds} | {faster} | {one['answer'] == many['answer']} |", flush=True)


if __name__ == "__main__":
    main()
