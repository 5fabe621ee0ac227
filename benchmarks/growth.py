"""How time and memory grow with the number of points, against the least that any method of this kind must do.

The floor is what it takes to compute p columns of the kernel and one n×p×p product, at the rank p that was
used. Each size runs in a process of its own, so that its peak of memory is its own.
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
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import mosaic
from mosaic.arrays.blocks import FloatArray, row_blocks
from mosaic.kernels import EffectiveCount, Gamma, Kernel
from problems import rotated_manifold, swiss_roll

ALPHA = 10.0
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
TOLERANCE = 1e-3
REPEATS = 3
#: The second set: a manifold in many dimensions, and a share of all points as the effective count.
MANIFOLD_SIZE, MANIFOLD_NOISE, MANIFOLD_SHARE, MANIFOLD_TOLERANCE = 20_000, 0.02, 0.1, 1e-4
MEGABYTE = 1e6


# One size, in a process of its own


def measure(X: FloatArray, gamma: Gamma, tol: float) -> dict[str, Any]:
    """Seconds, floor, rank, gap, support and memory for one set of points."""
    baseline = resident()
    times = []
    for _ in range(REPEATS):
        encoding = None  # the last answer's memory is free before the next is asked for
        start = time.perf_counter()
        encoding = mosaic.solve(X, gamma=gamma, alpha=ALPHA, tol=tol)
        times.append(time.perf_counter() - start)
    assert encoding is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    rank, n = encoding.certificate.rank, len(X)
    result = {
        "n": n,
        "seconds": median(times),
        "rank": rank,
        "gap": encoding.dual_gap,
        "support": len(encoding.support),
        "memory": (peak - baseline) / MEGABYTE,
        "allowed": 3 * n * rank * 8 / MEGABYTE + 300,
    }
    kernel = encoding.kernel
    del encoding
    return result | {"floor": floor(kernel, rank)}


def floor(kernel: Kernel, rank: int) -> float:
    """Seconds for ``rank`` columns of the kernel and one product n×p×p, each into memory of its own as in the solver."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.choice(kernel.n, rank, replace=False))
    right = rng.standard_normal((rank, rank))

    def once() -> None:
        F = kernel.block(slice(None), columns)
        for rows in row_blocks(kernel.n, rank):
            F[rows] @ right

    once()
    return median(timed(once) for _ in range(REPEATS))


def timed(work: Callable[[], None]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def resident() -> float:
    """Bytes of memory in use now; where the system does not say, the most that was in use so far."""
    status = Path("/proc/self/statm")
    if status.exists():
        return float(status.read_text().split()[1]) * resource.getpagesize()
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def child(kind: str, n: int) -> None:
    """Measure one size and print the result as JSON."""
    with threadpool_limits(1):
        if kind == "swiss":
            result = measure(swiss_roll(n), "scale", TOLERANCE)
        else:
            X = rotated_manifold(n, MANIFOLD_NOISE)
            result = measure(X, EffectiveCount(MANIFOLD_SHARE * n), MANIFOLD_TOLERANCE)
    print(json.dumps(result))


# All sizes


def in_own_process(kind: str, n: int) -> dict[str, Any]:
    """Run this script for one size and read what it prints."""
    command = [sys.executable, __file__, "--child", kind, str(n)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    print(
        f"{kind}, n={n}: {seconds(result['seconds'])} s, {result['seconds'] / result['floor']:.1f} × floor, "
        f"rank {result['rank']}, gap {result['gap']:.1e}, {result['memory']:.0f} MB",
        flush=True,
    )
    return result


def exponent(results: list[dict[str, Any]]) -> float:
    """Slope of log seconds over log n."""
    logs = np.log([[r["n"], r["seconds"]] for r in results])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


HEAD = ["n", "seconds", "floor", "ratio", "rank", "certified gap", "support", "memory, MB", "allowed, MB"]


def line(r: dict[str, Any]) -> list[str]:
    """A line of the table."""
    return [
        f"{r['n']:,}",
        seconds(r["seconds"]),
        seconds(r["floor"]),
        f"{r['seconds'] / r['floor']:.2f}",
        str(r["rank"]),
        f"{r['gap']:.1e}",
        str(r["support"]),
        f"{r['memory']:.0f}",
        f"{r['allowed']:.0f}",
    ]


NOTES = f"""\
- Swiss roll in 3 dimensions, float64, default bandwidth, alpha = {ALPHA:g}, tol = {TOLERANCE:g}.
- Medians of {REPEATS} runs.
- The floor is p columns of the kernel and one n×p×p product, p being the rank that was used.
- The gap is for the kernel itself, what its factor leaves out included.
- Memory is the peak of the process less what it held after imports and data.
- Allowed are 3·n·p·8 bytes + 300 MB.
"""


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--manifold-size", type=int, default=MANIFOLD_SIZE)
    parser.add_argument("--quick", action="store_true", help="small sizes: only to see that it runs")
    parser.add_argument("--child", nargs=2, metavar=("KIND", "N"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.manifold_size = [2000, 5000, 10_000], 2000
    return options


def main() -> None:
    """Measure and write benchmarks/results/growth.md."""
    options = arguments()
    if options.child:
        child(options.child[0], int(options.child[1]))
        return
    results = [in_own_process("swiss", n) for n in sorted(options.sizes)]
    manifold = in_own_process("manifold", options.manifold_size)
    parts = [header("Growth with the number of points", ["numpy", "scipy", "scikit-learn"]), NOTES]
    parts += [table(HEAD, map(line, results))]
    if len(results) > 1:
        parts.append(f"Time grows like n^{exponent(results):.2f} (least squares on logarithms).\n")
    parts.append(
        f"## Rotated manifold\n\nSwiss roll rotated into 50 dimensions, noise {MANIFOLD_NOISE:g} in each, "
        f"EffectiveCount({MANIFOLD_SHARE:g}·n), tol = {MANIFOLD_TOLERANCE:g}.\n"
    )
    parts.append(table(HEAD, [line(manifold)]))
    write("growth.md", "\n".join(parts))


if __name__ == "__main__":
    main()
