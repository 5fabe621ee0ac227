"""From an estimator's parameters to a kernel, a strength and a seed, and from there to a certified encoding."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from mosaic._arrays import FloatArray
from mosaic.encoding import Encoding
from mosaic.estimators._points import Distinct
from mosaic.estimators._progress import Narrator
from mosaic.exceptions import ConvergenceWarning, InvalidInputError
from mosaic.kernels import RBF, EffectiveCount, Kernel, Laplacian, make_kernel, resolve_gamma
from mosaic.program import encode
from mosaic.solvers import Status
from mosaic.tuning import DEFAULT_ALPHA, fit_bandwidth, memory_needed
from mosaic.wishes import Wishes

STATIONARY: dict[str, type[RBF] | type[Laplacian]] = {"rbf": RBF, "laplacian": Laplacian}
#: A certificate weaker than this is worth a warning, even if all that limits it is memory.
WEAK_GAP = 0.25
#: The later setting of the paper's first author for the strength, a multiple of the critical one.
PAPER_ALPHA = 10.0


def build_kernel(estimator: Any, matrix: Any, points: Distinct, wanted: float, max_rank: int, seed: int) -> Kernel:
    """The kernel between distinct points. ``wanted`` is how many points one should resemble if the bandwidth is automatic."""
    name, gamma = estimator.kernel, estimator.gamma
    if isinstance(name, str) and name == "precomputed":
        kernel = make_kernel(matrix, "precomputed")
        return kernel if points.n == kernel.n else kernel.take(points.first)
    rows = matrix[points.first]
    if isinstance(gamma, str) and gamma == "auto":
        if name in STATIONARY and points.n > 1:
            kind = STATIONARY[name](rows)
            if getattr(estimator, "mode", "auto") == "paper":
                gamma = _paper_gamma(rows)
            else:
                gamma = fit_bandwidth(kind, wanted, max_rank, random_state=seed)
        else:
            gamma = "scale"
    return make_kernel(
        rows,
        name,
        gamma=gamma,
        degree=estimator.degree,
        coef0=estimator.coef0,
        n_neighbors=estimator.n_neighbors,
        time=estimator.diffusion_time,
        random_state=seed,
    )


def solve_for(
    estimator: Any,
    kernel: Kernel,
    points: Distinct,
    max_rank: int,
    seed: int,
    narrator: Narrator,
    warm: Encoding | None = None,
) -> Encoding:
    """The encoding at the estimator's settings; a solver that did not finish, or a void certificate, is warned of."""
    alpha, lam = strength(estimator)
    encoding = encode(
        kernel,
        alpha=alpha,
        lam=lam,
        solver=estimator.solver,
        tol=estimator.tol,
        max_iter=estimator.max_iter,
        max_rank=max_rank,
        wishes=Wishes.read(points.n, points.weights),
        warm=warm,
        random_state=seed,
        callback=narrator.callback,
    )
    warn_of_gap(encoding, estimator.tol)
    return encoding


def left_to_us(estimator: Any) -> bool:
    """Whether kernel, bandwidth and strength are ours to choose, so that points may be looked at in further kernels."""
    name, gamma = estimator.kernel, estimator.gamma
    automatic = isinstance(name, str) and name == "rbf" and isinstance(gamma, str) and gamma == "auto"
    return (
        automatic and estimator.alpha is None and estimator.lam is None and getattr(estimator, "mode", "auto") == "auto"
    )


def encode_exactly(
    estimator: Any, rows: Any, weights: FloatArray, looks: Sequence[tuple[float, float]], seed: int
) -> list[Encoding] | None:
    """Encodings of some points at full rank, for each (points that a typical one resembles, lam); None where that cannot be.

    It cannot where the limits forbid the rank, and where so many points are copies, but for rounding, that every one
    resembles more.
    """
    n, budget = len(weights), estimator.memory_budget
    if estimator.max_rank is not None and estimator.max_rank < n:
        return None
    if budget is not None and memory_needed(n, n, 8, rows.shape[1]) > budget:
        return None
    try:
        gammas = [resolve_gamma(RBF(rows), EffectiveCount(count), seed) for count, _ in looks]
    except InvalidInputError:
        return None
    return [
        encode(
            RBF(rows, gamma),
            lam=lam,
            solver=estimator.solver,
            tol=estimator.tol,
            max_iter=estimator.max_iter,
            wishes=Wishes.read(n, weights),
            random_state=seed,
        )
        for gamma, (_, lam) in zip(gammas, looks, strict=True)
    ]


def warn_of_gap(encoding: Encoding, tol: float, advice: str | None = None) -> None:
    """Say it if the solver did not finish, or if what it has proven is next to nothing; and what to do, if not the usual."""
    unfinished = encoding.status not in (Status.CONVERGED, Status.TRIVIAL, Status.KERNEL_ERROR)
    if unfinished or encoding.dual_gap > max(WEAK_GAP, tol):
        warnings.warn(
            f"the certified gap is {encoding.dual_gap:.2e}, above the tolerance {tol:g}. {advice or encoding.status.advice}",
            ConvergenceWarning,
            stacklevel=4,
        )


def _paper_gamma(X: Any) -> float:
    """1/σ² with σ² = 10·s², s the mean over features of the variance: the widest of three settings in later work."""
    dense = X.toarray() if hasattr(X, "toarray") else X
    s = float(np.asarray(dense, np.float64).var(axis=0).mean())
    return 0.1 / s**2 if s > 0 else 1.0


def strength(estimator: Any) -> tuple[float | None, float | None]:
    """Alpha and lam for ``encode``: as given, or the default multiple of the critical strength."""
    for name in ("alpha", "lam"):
        value = getattr(estimator, name)
        if value is not None and not isinstance(value, Real):
            raise InvalidInputError(f"{name} must be a number or None; got {value!r}.")
    if estimator.alpha is None and estimator.lam is None:
        return (PAPER_ALPHA if getattr(estimator, "mode", "auto") == "paper" else DEFAULT_ALPHA), None
    return estimator.alpha, estimator.lam


def seed_of(random_state: Any) -> int:
    """A whole number from what scikit-learn takes for a random state; None draws a new one."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise InvalidInputError(f"random_state must be a whole number >= 0, a generator or None; got {random_state!r}.")
