"""A fit on a GPU: seconds of its stages, against the ceilings of the card, the CPU, and what users would run on a GPU otherwise.

Run ``python benchmarks/gpu.py`` where PyTorch sees a GPU. Seconds are of the clock, of the second of two runs,
until the device has finished. ``python benchmarks/gpu.py quick`` leaves out the CPU, the ranks and the largest sizes,
``python benchmarks/gpu.py proofs`` has certificates only, those for all rows among them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from mosaic import MOSAIC, solve
from mosaic.program.problem import DesignProblem

#: Rows, columns, and the largest rank of the factor (None: what the library chooses).
SIZES: tuple[tuple[int, int, int | None], ...] = (
    (100_000, 3, None),
    (100_000, 64, None),
    (1_000_000, 3, None),
    (1_000_000, 64, None),
    (1_000_000, 768, None),
    (10_000_000, 16, None),
    (1_000_000, 64, 100),
    (100_000, 64, 2000),
    (100_000_000, 3, None),
)
QUICK = SIZES[3:6]
#: Rows and columns of the proofs for all rows.
PROVEN = ((200_000, 20), (2_000_000, 20), (10_000_000, 16))
#: Picks, and the strength of the program.
K, ALPHA = 100, 100.0


def points(n: int, d: int) -> torch.Tensor:
    """Points on a manifold of three dimensions: random cosine features of uniform coordinates, in single precision."""
    torch.manual_seed(0)
    angles = torch.rand(n, 3, device="cuda") @ torch.randn(3, d, device="cuda") * 2.0
    angles += torch.rand(d, device="cuda") * 6.28
    return angles.cos_()


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the clock until the device has finished."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    found = work()
    torch.cuda.synchronize()
    return time.perf_counter() - start, found


def ceilings() -> tuple[float, float, float]:
    """Bytes a second of a copy on the device, and operations a second of matrix products in single and double precision."""
    A = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    copy = min(seconds(lambda: A.clone())[0] for _ in range(5))
    rates = []
    for dtype in (torch.float32, torch.float64):
        B = torch.rand(8192, 8192, dtype=dtype, device="cuda")
        rates.append(2.0 * 8192**3 / min(seconds(lambda B=B: B @ B)[0] for _ in range(5)))
    return 2.0 * (1 << 30) / copy, rates[0], rates[1]


def kmeans(X: torch.Tensor, rounds: int = 20) -> torch.Tensor:
    """Lloyd's k-means from random rows, then the row nearest to every centre."""
    centres = X[torch.randperm(len(X), device="cuda")[:K]].clone()
    for _ in range(rounds):
        label = torch.cat([torch.cdist(part, centres).argmin(1) for part in X.split(1 << 20)])
        sums = torch.zeros_like(centres).index_add_(0, label, X)
        centres = sums / torch.bincount(label, minlength=K).clamp(min=1)[:, None]
    return torch.stack([torch.cdist(centre[None], X)[0].argmin() for centre in centres])


def farthest(X: torch.Tensor) -> torch.Tensor:
    """Farthest-point sampling."""
    chosen, apart = [0], torch.full((len(X),), torch.inf, device="cuda")
    for _ in range(K - 1):
        apart = torch.minimum(apart, (X - X[chosen[-1]]).square_().sum(1))
        chosen.append(int(apart.argmax()))
    return torch.tensor(chosen)


def line(n: int, d: int, rank: int | None, rates: tuple[float, float, float], *, cpu: bool) -> str:
    """A row of the table."""
    X = points(n, d)
    for _ in range(2):  # the second run counts
        model = encoding = certificate = None
        torch.cuda.reset_peak_memory_stats()
        fit, model = seconds(lambda: MOSAIC(K, random_state=0).fit(X))
        program, encoding = seconds(lambda model=model: solve(X, gamma=model.gamma_, alpha=ALPHA))
        bound, certificate = seconds(lambda model=model: model.certificate_)
        peak = torch.cuda.max_memory_allocated() / 2**30
    selection = model.selection_
    # Passes over the factor: a product of n × p with p × p in single precision, and its reading.
    E = torch.rand(encoding.factor.rank, encoding.factor.rank, device="cuda").cpu().numpy().astype("float64")
    problem = DesignProblem(encoding.factor.F, E, 1.0)
    scoring = min(seconds(lambda: problem.scores(E))[0] for _ in range(3))
    p = encoding.factor.rank
    floor = max(2.0 * n * p * p / rates[1], 4.0 * n * p / rates[0])
    theirs = []
    for rival in (kmeans, farthest):
        spent, picks = seconds(lambda rival=rival: rival(X))
        places = selection.data.points.point_of[picks.cpu().numpy()]
        theirs.append(f"{spent:.2f} ({selection.measure.along(places)[-1]:.3f})")
    ours = selection.coverage
    host = "-"
    if cpu and n <= 1_000_000 and d <= 64:
        Y = X.cpu().numpy()
        start = time.perf_counter()
        model = MOSAIC(K, random_state=0).fit(Y)
        _ = model.certificate_
        host = f"{time.perf_counter() - start:.1f}"
    return (
        f"| {n:,} × {d} | {fit:.2f} | {program:.2f} | {bound:.2f} | {certificate.gap:.1e} | {p} | {peak:.1f} | "
        f"{floor / scoring:.2f} | {host} | {ours:.3f} | {' | '.join(theirs)} |"
    )


def clouds(n: int, d: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Points on a manifold, normal ones, and twelve clusters."""
    yield "manifold", points(n, d)
    torch.manual_seed(0)
    yield "normal", torch.randn(n, d, device="cuda")
    centres = 10.0 * torch.rand(12, d, device="cuda")
    yield "blobs", centres[torch.randint(12, (n,), device="cuda")] + torch.randn(n, d, device="cuda")


def proofs() -> None:
    """Print what certificates take, of the rows that are compared and of all rows."""
    print("| data | rows × columns | k | fit (s) | certificate (s) | gap | for all rows (s) | of the best, 95 % confidence |")
    print("| --: " * 8 + "|")
    MOSAIC(5).fit(points(50_000, 3)).certify(all_rows=True)  # the first run loads kernels
    for n, d in PROVEN:
        for name, X in clouds(n, d):
            for k in (20, 100):
                fit, model = seconds(lambda X=X, k=k: MOSAIC(k, random_state=0).fit(X))
                sample, certificate = seconds(lambda model=model: model.certificate_)
                whole, proof = seconds(lambda model=model: model.certify(all_rows=True))
                gap, share = f"{certificate.gap:.1e}", f"{100 * (1 - proof.gap):.1f} %"
                cells = [
                    name,
                    f"{n:,} × {d}",
                    str(k),
                    f"{fit:.2f}",
                    f"{sample:.2f}",
                    f"{certificate.gap:.1e}",
                    f"{whole:.2f}",
                    share,
                ]
                print(f"| {' | '.join(cells)} |", flush=True)
            torch.cuda.empty_cache()


def main() -> None:
    """Print the ceilings and the table."""
    if sys.argv[1:] == ["proofs"]:
        proofs()
        return
    quick = sys.argv[1:] == ["quick"]
    rates = ceilings()
    print(
        f"{torch.cuda.get_device_name()}: copies {rates[0] / 1e12:.2f} TB/s; products {rates[1] / 1e12:.0f} (single) and "
        f"{rates[2] / 1e12:.0f} (double) TFLOP/s"
    )
    print(
        "| rows × columns | fit (s) | program (s) | bound (s) | gap | rank | GiB | passes, share of the ceiling | CPU, all (s) | "
        "coverage | k-means + nearest: s (coverage) | farthest points: s (coverage) |"
    )
    print("| --: " * 12 + "|")
    for n, d, rank in QUICK if quick else SIZES:
        print(line(n, d, rank, rates, cpu=not quick), flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
