"""Does the working set stall? A million points in 64 dimensions, a narrow kernel cut off at rank 1024.

The factor misses much of such a kernel, so this is about the gap of the factored program, not of the kernel: it shows
how the rules for growth and thinning behave where supports are large and every neighbourhood is crowded.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from mosaic.kernels import EffectiveCount, make_kernel
from mosaic.program.factor import factorize
from mosaic.program.problem import DesignProblem, critical_lam, weighted_gram
from mosaic.program.working_set import solve_design


def crumpled_sheet(n: int, d: int, latent: int, seed: int) -> np.ndarray:
    """A smooth random map of a cube of ``latent`` dimensions into d dimensions, with a little noise."""
    rng = np.random.default_rng(seed)
    U = rng.uniform(-1, 1, size=(n, latent))
    X = np.sin(U @ rng.normal(size=(latent, d)) * 2.0 + rng.uniform(0, 2 * np.pi, size=d))
    return X + 0.02 * rng.normal(size=(n, d))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--rank", type=int, default=1024)
    parser.add_argument("--latent", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.002, help="effective count as a share of n")
    parser.add_argument("--tol", type=float, nargs="+", default=[1e-3, 1e-4])
    options = parser.parse_args()
    X = crumpled_sheet(options.n, 64, options.latent, 0)
    start = time.perf_counter()
    kernel = make_kernel(X, "rbf", gamma=EffectiveCount(options.share * options.n))
    factor = factorize(kernel, tol=1e-6, max_rank=options.rank)
    print(
        f"factor: rank {factor.rank}, error {factor.relative_error:.1e}, {time.perf_counter() - start:.1f} s",
        flush=True,
    )
    problem = DesignProblem(factor.F, weighted_gram(factor.F, np.ones(options.n)), 1.0)
    problem = problem.with_lam(10 * critical_lam(problem))
    for tol in options.tol:
        begin = time.perf_counter()

        found = solve_design(problem, tol=tol, initial=factor.pivots)
        spent = time.perf_counter() - begin
        for r in found.trace:
            print(f"  after {r.iteration} steps: gap {r.gap:.1e}", flush=True)
        rows = np.count_nonzero(found.value)
        print(f"tol {tol:g}: {found.status.name}, gap {found.gap:.1e}, {rows} rows, {spent:.1f} s", flush=True)


if __name__ == "__main__":
    main()
